#!/usr/bin/env bash
# peridot selftest: a table and JSON; what fails is remembered, told by other commands, and cleared by a pass; and how
# it ends early.
. "$(dirname "$0")/command.sh"

plant=$(dirname "$1")/tests/plant_wrong_kernel
stories=$source/models/stories.gguf
cache=$XDG_CACHE_HOME/peridot
n_kernels=$(kernels | wc -l)

# count FILE PATTERN NUMBER
count() { [ "$(grep -cE -e "$2" "$folder/$1")" = "$3" ]; }
remembered() { [ -n "$(ls "$cache"/wrong-*.txt 2>/dev/null)" ]; }

test_pass() {
    run selftest
    check "selftest succeeds" [ $status = 0 ]
    check "a line for each kernel" count out '^   [a-z0-9_]+ +([0-9]+ .* ok|not here: .*)$' "$n_kernels"
    check "the last line is a sentence" \
        [ "$(tail -1 "$folder/out" | grep -cE '^All kernels are right.*: [0-9]+ cases .*\.$')" = 1 ]
    check "a pass is silent on stderr" [ ! -s "$folder/err" ]
    check "a pass leaves nothing to remember" eval '! remembered'
    run devices
    check "and devices tells nothing of it" eval '! matches out "selftest"'
}

test_planted() {
    "$plant" "$cache" matmul_q8_0 topk 2>"$folder/err" >"$folder/out"
    check "a failed selftest can be planted" [ $? = 0 ]
    check "and is remembered" remembered
    run devices
    check "devices names what is off" matches out '^   off       matmul_q8_0: '
    check "devices names what is wrong" matches out '^   WRONG     topk: '
    run devices --json
    check "devices --json does" matches out '"off": "matmul_q8_0"'
    check "devices --json does both" matches out '"wrong": "topk"'
    if [ -e "$stories" ]; then
        run run -m "$stories" -n 2 x
        check "a model still runs" [ $status = 0 ]
        check "with a warning in one line" count err '^warning: .* topk$' 1
        run bench -m "$stories" -p 4 -n 0 -r 1 --save "$folder/r.json"
        check "bench md tells" matches out 'Switched off, .*: matmul.*q8.*0\. WRONG .*: topk\. Measured by'
        check "bench json tells" matches r.json '"off": "matmul_q8_0"'
        run bench -o html "$folder/r.json"
        check "bench html tells" matches out 'Switched off, .*: matmul_q8_0\. WRONG .*: topk\.'
    fi
    # Of every kernel that was found wrong; test_kernels has the others' cases, and the pass of all is in --all.
    run selftest --only matmul_q8 --json
    check "a pass of one of them tells of the other" [ $status = 1 ]
    check "and leaves the other" eval 'remembered && grep -q topk "$cache"/wrong-*.txt'
    local only=topk
    [ -z "${PERIDOT_TEST_ALL:-}" ] || only=
    run selftest --device all --only "$only" --json
    check "a pass succeeds" [ $status = 0 ]
    check "--json has devices" count out '"uuid": ' "$("$peridot" devices --json | grep -c '"usable": true')"
    check "--json has kernels" matches out '"kernel": "topk"'
    [ "$only" ] || check "--json has all of them" [ $(($(grep -c '"kernel": ' "$folder/out") % n_kernels)) = 0 ]
    check "all passed" eval '! matches out "\"passed\": false"'
    check "and clears what was remembered" eval '! remembered'
}

test_failure() {
    fails_with 1 'no device matches "nothing"' selftest --device nothing
    fails_with 1 'there is no kernel whose name begins with "nothing"' selftest --only nothing
    fails_with 2 extra selftest extra
}

# Ctrl-C ends it at once, and what was found is printed and kept.
test_interrupt() {
    "$plant" "$cache" embed_f32 topk
    set -m   # else it would ignore the signal
    "$peridot" selftest >"$folder/out" 2>"$folder/err" &
    local pid=$!
    set +m
    await_text "$folder/out" embed_bf16
    kill -INT $pid
    wait $pid
    check "selftest dies of the signal that stops it" [ $? = 130 ]
    check "it says how far it was" matches out '^Stopped: [0-9]+ cases were compared'
    check "what has passed is right again" eval '! grep -q embed_f32 "$cache"/wrong-*.txt'
    check "what was not tried is as it was" grep -q topk "$cache"/wrong-*.txt
    check "it tells of that" matches out 'no others do the same: topk\.$'
    rm -f "$cache"/wrong-*.txt
}

# On a terminal it shows where it is.
test_progress() {
    has_terminal "progress" || return 0
    script -qec "$peridot selftest --only embed_q" /dev/null </dev/null >"$folder/out" 2>&1
    check "a terminal sees where it is" matches out 'comparing kernels: [0-9]+ of [0-9]+'
    run selftest --only embed_q
    check "nothing else does" [ ! -s "$folder/err" ]
}

# Whole self-tests take nearly all of the time: one is enough by default.
[ -z "${PERIDOT_TEST_ALL:-}" ] || test_pass
test_planted
test_failure
test_interrupt
test_progress
finish
