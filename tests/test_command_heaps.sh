#!/usr/bin/env bash
# Devices that offer their memory in other heaps than a CPU's (layer_heaps.c): an integrated GPU takes all of them, the
# device-local one first; a card's weights are in its own memory. A model of 6.2 MB writes the same text on each.
. "$(dirname "$0")/command.sh"

stories=$source/models/stories.gguf
half=$folder/half.gguf
peaks=$folder/peaks
layers=$(dirname "$peridot")/tests/layers

# on SHAPE LOCAL SHARED ARGUMENTS...: as run, on a device with that many bytes in its heaps; $local and $shared are what
# was allocated of them at most.
on() {
    rm -f "$peaks"
    VK_ADD_LAYER_PATH=$layers VK_INSTANCE_LAYERS=VK_LAYER_PERIDOT_heaps PERIDOT_TEST_PEAKS=$peaks \
        PERIDOT_TEST_SHAPE=$1 PERIDOT_TEST_LOCAL=$2 PERIDOT_TEST_SHARED=$3 run "${@:4}"
    local=0 shared=0
    [ ! -e "$peaks" ] || read -r local shared < <(tail -1 "$peaks")
}

# same TITLE TEXT MODEL SHAPE LOCAL SHARED [ARGUMENTS...]
same() {
    on "${@:4:3}" run -m "$3" -n 12 --temp 0 "${@:7}" "The little fox"
    check "$1: succeeds" [ $status = 0 ]
    check "$1: the same text" cmp -s "$folder/out" "$2"
}

# refused TITLE NUMBERS SHAPE LOCAL SHARED
refused() {
    on "${@:3}" run -m "$stories" -n 12 "The little fox"
    check "$1: refused" [ $status = 1 ]
    check "$1: says '$2'" matches err "^peridot: this model needs 6\.2 MB, and .* has $2"
}

# offers TITLE SHAPE LOCAL SHARED SIZE WORDS
offers() {
    on "${@:2:3}" devices --json
    check "$1: heap_size" matches out "^    \"heap_size\": $5,\$"
    check "$1: heap_budget" matches out "^    \"heap_budget\": $5,\$"
    on "${@:2:3}" devices
    check "$1: in words" matches out "^ +memory +$6, of which $6 are free now; "
}

run run -m "$stories" -n 12 --temp 0 "The little fox"
cp "$folder/out" "$folder/text"
run convert "$stories" -o "$half" --type f16
run run -m "$half" -n 12 --temp 0 "The little fox"
cp "$folder/out" "$folder/half"

offers integrated integrated 8388608 67108864 75497472 "75\.5 MB"
offers discrete discrete 8388608 67108864 8388608 "8\.39 MB"
offers unified unified 8388608 67108864 8388608 "8\.39 MB"

for shape in integrated unmapped; do
    same "$shape" "$folder/text" "$stories" $shape 4194304 67108864
    check "$shape: the carve-out is used ($local)" [ "$local" -gt 3900000 ]
    check "$shape: and the host's memory ($shared)" [ "$shared" -gt 4000000 ]
    same "$shape, roomy" "$folder/text" "$stories" $shape 67108864 67108864
    check "$shape, roomy: the carve-out holds the model ($local)" [ "$local" -gt 6200000 ]
    PERIDOT_TEST_BUDGET=none same "$shape, a heap that fails" "$folder/text" "$stories" $shape 4194304 67108864
    same "$shape, numbers in place" "$folder/half" "$half" $shape 1048576 67108864
    refused "$shape" '5\.0 MB free of 5\.0 MB$' $shape 2000000 3000000
done

same unified "$folder/text" "$stories" unified 67108864 0
check "unified: one heap ($local $shared)" [ "$local" -gt 6200000 -a "$shared" = 0 ]
refused unified '5\.0 MB free of 5\.0 MB$' unified 5000000 67108864

same discrete "$folder/text" "$stories" discrete 67108864 67108864
check "discrete: its own memory holds the model ($local)" [ "$local" -gt 6200000 ]
same "discrete, half of it" "$folder/text" "$stories" discrete 33554432 67108864 --gpu-memory 3M
refused discrete '5\.0 MB free of 5\.0 MB \(--gpu-memory ' discrete 5000000 67108864
on discrete 8000000 67108864 run -m "$stories" -n 12 "The little fox"
check "discrete, nothing left: fails" [ $status = 1 ]
check "discrete, nothing left: says so" \
    matches err 'out of memory: .* did not fit beside 7\.3 MB in use \(heap 8\.0 MB\)$'

# Experts of the last layer, or of both, in the host's memory: 2 of 8 are read there, each of 3 * 256 * 256 numbers in
# MXFP4; and the table of embeddings, of which a token reads a row.
run make --shape tiny-gpt-oss --type mxfp4 -o "$folder/experts.gguf"
on discrete 536870912 536870912 inspect --device 0 --gpu-memory 1500K "$folder/experts.gguf"
check "discrete, experts: succeeds" [ $status = 0 ]
check "discrete, experts: how many fit" matches out '^  +1 of +2 layers .*[0-9]$'
check "discrete, experts: what does not" matches out '^  +0 of +2 layers .* does not fit$'
check "discrete, experts: both rates" matches out "^experts .* reads .*/s of its memory, .*/s of the host's\\)$"
on discrete 536870912 536870912 inspect --json --device 0 --gpu-memory 1500K "$folder/experts.gguf"
# Of 2,376,832 bytes of tensors the table has 1024 * 256 numbers.
check "discrete, experts: the table's numbers" python3 -c 'import json, sys
experts = json.load(sys.stdin)["experts"]
each, table, whole = 3 * 256 * 256 // 32 * 17, 1024 * 256 // 32 * 17, 2376832
assert [split["n_host_layers"] for split in experts["splits"]] == [0, 1, 2]
for n, split in enumerate(experts["splits"]):
    there, read = n * 8 * each + (table if n else 0), n * 2 * each
    assert split["host_size"] == there and split["host_read"] == read, split
    assert split["device_size"] == whole - there, split
    assert split["device_read"] == whole - table - 16 * each + (2 - n) * 2 * each, split
    seconds = split["device_read"] / experts["device_read"] + read / experts["host_read"]
    assert abs(split["tokens_per_s"] * seconds - 1) < 1e-4, split
    assert split["fits"] == (n > 0)' <"$folder/out"
on unified 536870912 0 inspect --device 0 "$folder/experts.gguf"
check "unified, experts: one row" [ "$(grep -c ' layers  ' "$folder/out")" = 1 ]
# States of recurrences take 4.9 MB of each text at the same time, and more for places to go back to, beside 4 MB of
# weights.
# serves BYTES: starts a server on a device with so many, waits until it can be asked or ends, and ends it.
serves() {
    VK_ADD_LAYER_PATH=$layers VK_INSTANCE_LAYERS=VK_LAYER_PERIDOT_heaps PERIDOT_TEST_SHAPE=unified \
        PERIDOT_TEST_LOCAL=$1 PERIDOT_TEST_SHARED=0 "$peridot" serve -m "$folder/states.gguf" --port 0 --ctx 512 \
        --parallel 4 >"$folder/out" 2>"$folder/err" &
    for _ in $(seq 600); do
        { grep -q '^serving ' "$folder/err" && break; kill -0 $! 2>/dev/null; } || break
        sleep 0.1
    done
    kill -TERM $! 2>/dev/null
    wait $!
    status=$?
}
run make --shape tiny-qwen3.5 --type q8_0 -o "$folder/states.gguf"
for one in "18000000 1 text" "26000000 2 texts" "40000000"; do
    read -r size most <<<"$one"
    serves $size
    check "states in $size bytes: serves" [ $status = 0 ]
    check "states in $size bytes: at most ${most:-as many as usual}" \
        [ "$(sed -n 's/^peridot: states: memory is short: at most \(.*\) at the same time$/\1/p' "$folder/err")" \
        = "$most" ]
done
serves 10000000
check "states in too few bytes: refused" [ $status = 1 ]
check "states in too few bytes: says so" matches err '^peridot: .*out of memory: '

fails_with 2 '--gpu-memory goes with --device only' inspect --gpu-memory 1G "$folder/experts.gguf"

finish
