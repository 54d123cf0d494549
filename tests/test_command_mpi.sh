#!/usr/bin/env bash
# peridot-mpi under mpirun: the numbers and texts of one device, bit for bit, and an end in time where a rank fails.
. "$(dirname "$0")/command.sh"

mpi=$peridot-mpi
[ -x "$mpi" ] || { echo "skipped: peridot-mpi was not built"; exit 0; }
command -v mpirun >/dev/null || { echo "skipped: there is no mpirun"; exit 0; }
stories=$source/models/stories.gguf
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export ASAN_OPTIONS=detect_leaks=0   # those of MPI
export OMPI_MCA_btl=self,sm OMPI_MCA_hwloc_base_binding_policy=none
launch=(mpirun --oversubscribe)
failure='= 1'
at_work=503
# MPICH's kills the other ranks at once, whose signal is its status: none has time to answer.
! mpirun --version 2>&1 | grep -q HYDRA || launch=(mpirun) failure='-gt 0' at_work='000'

# ranks N ARGUMENTS...: as run, on N ranks of this machine.
ranks() {
    local begun=$(date +%s%N)
    timeout 120 "${launch[@]}" -n "$1" "$mpi" "${@:2}" >"$folder/out" 2>"$folder/err" </dev/null
    status=$?
    took_ms=$((($(date +%s%N) - begun) / 1000000))
}

n_layers() { "$peridot" inspect "$1" | sed -nE 's/.*(block_count|num_hidden_layers)[": ]+([0-9]+).*/\2/p' | head -1; }
tokens() { seq 3 66 | sed '1s/.*/2/' | paste -sd,; }

# same_on N... -- ARGUMENTS...: what the command writes on N ranks is what it writes on one device.
same_on() {
    local counts=() n
    while [ "$1" != -- ]; do counts+=("$1") && shift; done
    run "${@:2}"
    check "peridot ${*:2} succeeds" [ $status = 0 ]
    cp "$folder/out" "$folder/want"
    for n in "${counts[@]}"; do
        ranks "$n" "${@:2}"
        check "$n ranks: ${*:2} succeeds" [ $status = 0 ]
        check "$n ranks: ${*:2}: the same bits" cmp -s "$folder/out" "$folder/want"
    done
}

# Rows of logits of 64 positions, and a greedy text.
test_numbers() {
    local model kv models=("$goldens/gemma3") kvs=(f16)
    [ ! "${PERIDOT_TEST_ALL:-}" ] ||
        kvs=(f16 f32) models=("$goldens"/{gemma1,gemma2-q8_0/model.gguf,gemma3,llama/model.gguf,llama3})
    for model in "${models[@]}"; do
        for kv in "${kvs[@]}"; do
            same_on 2 -- logits -m "$model" --tokens "$(tokens)" --out - --kv "$kv"
            [ "${PERIDOT_TEST_ALL:-}" ] || continue
            same_on 1 -- logits -m "$model" --tokens "$(tokens)" --out - --kv "$kv"
            [ "$(n_layers "$model")" -lt 3 ] || same_on 3 -- logits -m "$model" --tokens "$(tokens)" --out - --kv "$kv"
        done
    done
    same_on 3 -- run -m "$stories" -n 60 --temp 0 "The little fox"
    [ ! "${PERIDOT_TEST_ALL:-}" ] || same_on 1 2 -- run -m "$stories" -n 60 --temp 0.8 --seed 3 "The little fox"
}

test_division() {
    ranks 2 run -m "$stories" -n 4 --layers 0-0,1-5 "The"
    check "--layers divides as it says" [ $status = 0 ]
    check "--layers: the table" matches err '^1 .* 1-5 '
    ranks 2 run -m "$stories" -n 4 --layers 0-2,4-5 "The"
    check "--layers with a gap fails" [ $status = 1 ]
    check "--layers with a gap: a sentence" matches err '^peridot: --layers 0-2,4-5: 2 ranks need a range each'
}

# What bench says of ranks and links, and what is refused.
test_report() {
    run help
    cp "$folder/out" "$folder/want"
    "$mpi" help >"$folder/out" 2>"$folder/err"
    check "peridot-mpi help: peridot's, and its own options" \
        [ "$(comm -13 <(sort "$folder/out") <(sort "$folder/want") | wc -l)" = 0 ]
    check "peridot-mpi help: --split" contains out '[--split layers|data]'
    ranks 2 run -m "$stories" -n 4 --draft ngram "The"
    check "drafts over ranks fail" [ $status $failure ]
    check "drafts over ranks: a sentence" matches err '^peridot: drafts are not supported where several ranks'
    "$mpi" run --split data >"$folder/out" 2>"$folder/err"
    check "--split data with another command is a wrong usage" [ $? = 2 ]
    [ "${PERIDOT_TEST_ALL:-}" ] || return
    ranks 2 bench -m "$stories" -p 16 -n 8 -r 1 -o json
    check "bench over ranks: memory, busy share and the link of each" \
        matches err '^0 .* 0-[0-9]+ +[0-9.]+ [kMG]B +[0-9]+ %  [0-9.]+ [kMG]B/s, [0-9.]+ us$'
    check "bench over ranks: the same as JSON" python3 -c "
import json, sys
ranks = json.load(open(sys.argv[1]))['ranks']
first = 0
for i, r in enumerate(ranks):
    assert r['host'] and r['device'] and r['first_layer'] == first and r['n_layers'] > 0
    assert r['memory'] > 1e6 and 0 < r['busy'] <= 1
    link = r['link']['bandwidth'], r['link']['latency_s']
    assert link == (None, None) if i == 1 else link[0] > 1e6 and 0 < link[1] < 1
    first += r['n_layers']
assert len(ranks) == 2 and first == 6" "$folder/out"
    cp "$folder/out" "$folder/ranks.json"
    run bench "$folder/ranks.json"
    check "bench over ranks: the report is read" [ $status = 0 ]
    sed 's/"busy":/"bus":/' "$folder/ranks.json" >"$folder/wrong.json"
    fails_with 1 'ranks[0].busy is missing' bench "$folder/wrong.json"
}

# Where the model fits each rank's device, and with --split data, ranks divide texts and windows.
test_data() {
    local model=$goldens/gemma2-sequence base=$goldens/gemma2-base options=(--ctx 64)
    seq 7 | sed 's/^/line /' >"$folder/lines"
    head -c 1500 "$source/README.md" >"$folder/text"
    "$peridot" classify -m "$model" <"$folder/lines" >"$folder/want" 2>/dev/null
    "${launch[@]}" -n 3 "$mpi" classify --split data -m "$model" <"$folder/lines" \
        >"$folder/out" 2>"$folder/err"
    check "--split data: the lines in their order" cmp -s "$folder/out" "$folder/want"
    same_on 2 -- classify -m "$model" "one text" "another" "a third"
    check "the texts are divided where the model fits" \
        matches err "^split: data, as the model's .* fit the device of each rank"
    same_on 3 -- perplexity -f "$folder/text" "${options[@]}"
    same_on 2 -- perplexity -f "$folder/text" "${options[@]}" --method llama.cpp
    local seer=$goldens/gemma3-vision
    same_on 2 -- perplexity -m "$seer" --tokens "@$seer/tokens-2.txt" --image "$seer/image-1.png" \
        --image "$seer/image-2.png" --ctx 24
    "$peridot" embed -m "$base" -o "$folder/want" <"$folder/lines" 2>/dev/null
    "${launch[@]}" -n 2 "$mpi" embed -m "$base" -o "$folder/out" <"$folder/lines" 2>"$folder/err"
    check "--split data: one file of vectors" cmp -s "$folder/out" "$folder/want"
    # a model of 6.2 MB, and two ranks on a device that has 13 MB
    run perplexity -f "$folder/text" "${options[@]}"
    cp "$folder/out" "$folder/want"
    VK_ADD_LAYER_PATH=$(dirname "$peridot")/tests/layers VK_INSTANCE_LAYERS=VK_LAYER_PERIDOT_faults \
        PERIDOT_TEST_HEAP=13000000 ranks 2 perplexity -f "$folder/text" "${options[@]}"
    check "the layers are divided where the model does not fit" \
        matches err "^split: layers, as the model's .* do not fit the .* that rank 0 has free"
    check "perplexity, its layers divided" cmp -s "$folder/out" "$folder/want"
    [ "${PERIDOT_TEST_ALL:-}" ] || return
    "$peridot" perplexity -f - "${options[@]}" <"$folder/text" >"$folder/want" 2>/dev/null
    "${launch[@]}" -n 2 "$mpi" perplexity -f - "${options[@]}" <"$folder/text" \
        >"$folder/out" 2>"$folder/err"
    check "perplexity of standard input, divided" cmp -s "$folder/out" "$folder/want"
    { cat "$folder/lines" && seq 400 | paste -sd' '; } >"$folder/long"
    "${launch[@]}" -n 2 "$mpi" classify --ctx 60 -m "$model" <"$folder/long" >"$folder/out" 2>"$folder/err"
    check "a text that is too long fails: status" [ $? = 1 ]
    check "a text that is too long: its number in the whole input" matches err '^peridot: text 8 has [0-9]+ tokens'
}

# What watches over a rank hands on what that writes: to mpirun, whose environment this is, or to a file.
test_output() {
    export OMPI_COMM_WORLD_SIZE=1
    "$mpi" help >/dev/full 2>"$folder/err"
    check "a full disk: status" [ $? = 1 ]
    check "a full disk: a sentence" matches err '^peridot-mpi: rank .* standard output: No space left on device$'
    { "$mpi" run -m "$stories" -n 400 "The"; echo $? >"$folder/status"; } 2>"$folder/err" | head -c 1 >/dev/null
    check "a reader that ends: status" [ "$(cat "$folder/status")" = 1 ]
    unset OMPI_COMM_WORLD_SIZE
}

# rank_process N: the process that is rank N, not the one that watches over it.
rank_process() {
    local p parent
    for p in $(pgrep -f "^$mpi"); do
        tr '\0' '\n' <"/proc/$p/environ" 2>/dev/null | grep -qxE "(PMIX|PMI)_RANK=$1" || continue
        parent=$(awk '/^PPid/ { print $2 }' "/proc/$p/status")
        ! tr '\0' ' ' <"/proc/$parent/cmdline" | grep -q "^$mpi" || echo "$p"
    done
}

# Two ranks that serve at $url: $job.
begin_server() {
    : >"$folder/err"
    timeout 120 "${launch[@]}" -n 2 "$mpi" serve -m "$stories" --port 0 \
        >"$folder/out" 2>"$folder/err" </dev/null &
    job=$!
    for _ in $(seq 300); do
        url=$(sed -nE 's/^serving .* at (http:[^ ]*): .*/\1/p' "$folder/err")
        [ ! "$url" ] || break
        sleep 0.1
    done
    check "the server starts" [ "$url" ]
}

# signal_rank SIGNAL N: ends the job; $took_ms until it has.
signal_rank() {
    local begun=$(date +%s%N)
    kill "-$1" $(rank_process "$2") || kill $job
    wait $job
    status=$?
    took_ms=$((($(date +%s%N) - begun) / 1000000))
}

# signal_at_work SIGNAL N: the same while the server has requests; what they get: $codes.
signal_at_work() {
    local i asked=()
    begin_server
    for i in $(seq 8); do
        curl -s -m 60 -o "$folder/answer$i" -w '%{http_code}\n' "$url/v1/completions" \
            -d '{"prompt": "The little fox", "max_tokens": 480, "temperature": 0}' >"$folder/code$i" &
        asked+=($!)
    done
    sleep 0.5
    signal_rank "$@"
    wait "${asked[@]}"
    codes=$(cat "$folder"/code* | sort -u | paste -sd' ')
}

# A rank that is killed ends all within 10 s; the server tells those whose texts were at work.
test_killed() {
    local job url codes
    signal_at_work KILL 1
    check "a killed rank: status $status, not $failure" [ $status $failure ]
    check "a killed rank: all end within 10 s, not $took_ms ms" [ $took_ms -le 10000 ]
    check "a killed rank: host, rank and reason" \
        matches err "^peridot-mpi: rank 1 on $(hostname) was killed by signal 9 "
    check "a killed rank: requests at work get $at_work, not $codes" [ "$codes" = "$at_work" ]
}

# So does one that is stopped, which ends as well; with PERIDOT_TEST_ALL also rank 0, where there are no requests.
test_stopped() {
    local job url codes rank ranks=(1)
    [ ! "${PERIDOT_TEST_ALL:-}" ] || ranks=(1 0)
    for rank in "${ranks[@]}"; do
        if [ $rank = 1 ]; then
            signal_at_work STOP 1
            check "a stopped rank: requests at work get 503, not $codes" [ "$codes" = 503 ]
        else
            begin_server
            signal_rank STOP 0
        fi
        echo "rank $rank was stopped: all ended after $took_ms ms"
        check "a stopped rank: status $status, not $failure" [ $status $failure ]
        check "a stopped rank: all end within 10 s, not $took_ms ms" [ $took_ms -le 10000 ]
        check "a stopped rank: host, ranks and reason" \
            matches err "^peridot-mpi: rank $((1 - rank)) on $(hostname) has not heard from rank $rank for "
        check "a stopped rank: its process ends" [ ! "$(rank_process $rank)" ]
    done
}

# Messages longer than MPI can count are sent in pieces: here of 100 bytes.
test_pieces() {
    local mpi=$(dirname "$peridot")/tests/peridot_mpi_pieces
    same_on 3 -- run -m "$stories" -n 8 --temp 0 "The little fox"
    head -c 1500 "$source/README.md" >"$folder/text"
    same_on 2 -- perplexity -f "$folder/text" --ctx 64
}

test_numbers
test_pieces
test_division
test_report
test_data
test_output
test_killed
test_stopped
finish
