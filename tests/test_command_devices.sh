#!/usr/bin/env bash
# The command line's `devices`, and what it tells of compiled kernels: on any device, with statistics or without.
. "$(dirname "$0")/command.sh"

# What the lines begin with, sorted, each once; and the names that they should begin with.
kernels_in() { sed -n '2,$s/^\([a-z]\S*\) .*/\1/p' "$folder/$1" | sort -u; }
kernel_list() { kernels | sort -u; }

# Where there is no Python, nobody looks.
is_json() {
    ! command -v python3 >/dev/null || python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$folder/$1"
}

test_list() {
    run devices
    check "devices succeeds" [ $status = 0 ]
    check "devices says what is usable" matches out '^   usable    yes'
    run devices --json
    check "devices --json succeeds" [ $status = 0 ]
    check "devices --json is JSON" is_json out
}

test_table() {
    run devices --pipelines
    cp "$folder/out" "$folder/table"
    check "--pipelines succeeds" [ $status = 0 ]
    check "--pipelines has a title" matches table '^kernel +specialisation +subgroup '
    check "--pipelines names every kernel" [ "$(kernels_in table)" = "$(kernel_list)" ]
    check "a decode step's attention, with and without norms of q and k" \
        [ "$(grep -cE '^attention_(rows_)?f16 +[0-9]+,256,4,4,[0-9]+,1,[01][ ,]' "$folder/table")" = 1 ]
    check "a matrix before a gated unit, GELU and SiLU" \
        [ "$(sed -nE 's/^matvec_(rows_)?q6_k +([0-9]+,){6}([0-9]+).*/\3/p' "$folder/table" | sort -u | tr -d '\n')" = \
            012 ]
    check "no pipeline is there twice" \
        [ -z "$(grep -E '^[a-z]' "$folder/table" | awk '{print $1, $2}' | sort | uniq -d)" ]
    if grep -qE '^[a-z0-9_]+ +\S+ +[0-9]+ ' "$folder/table"; then
        check "statistics need no excuse" [ ! -s "$folder/err" ]
    else
        check "a driver without statistics is told" contains err 'no statistics of compiled kernels'
    fi
}

# All kernels once more: without statistics, that shows nothing that is not in the table, and takes longest.
test_json() {
    local n
    [ ! -s "$folder/err" ] || [ "${PERIDOT_TEST_ALL:-}" ] || return
    run devices --pipelines --assembly --json
    check "--pipelines --assembly --json succeeds" [ $status = 0 ]
    check "--pipelines --assembly --json is JSON" is_json out
    n=$(grep -c '"assembly": ' "$folder/out")
    check "each pipeline has its assembly, or none where the driver shows none" \
        [ "$n" = 0 -o "$n" = "$(grep -c '"kernel": ' "$folder/out")" ]
    check "it has a row for each of the table" \
        [ "$(grep -c '"kernel": ' "$folder/out")" = \
            "$(sed 1d "$folder/table" | grep -E '^[a-z]' | grep -vc ' is not used ')" ]
    for key in device driver driver_info pipelines unused; do check "it has $key" matches out "^  \"$key\": "; done
}

test_usage() {
    fails_with 2 --pipelines devices --device 0
    fails_with 2 --pipelines devices --assembly
    fails_with 2 --pipeline devices --pipeline
    fails_with 1 'no such device' devices --pipelines --device 'no such device'
    fails_with 1 'no such device' devices --pipelines --json --device 'no such device'
    PERIDOT_DEVICE='no such device' fails_with 1 'no such device' devices --pipelines
}

test_list
test_table
test_json
test_usage
finish
