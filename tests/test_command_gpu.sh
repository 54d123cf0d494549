#!/usr/bin/env bash
# What a GPU that nobody has measured is asked: the device, whatever it is, calls itself a discrete GPU
# (layer_faults.c), is searched once for what suits it, and takes kernels that are for GPUs.
. "$(dirname "$0")/command.sh"

export VK_ADD_LAYER_PATH VK_INSTANCE_LAYERS=VK_LAYER_PERIDOT_faults PERIDOT_TEST_DISCRETE=1
VK_ADD_LAYER_PATH=$(dirname "$peridot")/tests/layers
stories=$source/models/stories.gguf
story=(run -m "$stories" -n 12 --temp 0 "The little fox")

run devices
check "the device calls itself a discrete GPU" matches out '^ +kind +discrete GPU$'
check "kernels are those for GPUs" matches out \
    ' matmul: .*(coop|dot|half|tile) \(taken\).* attention: .*(half|tile) \(taken\)'

run "${story[@]}"
check "run succeeds" [ $status = 0 ]
check "run searches first" matches err '^tuning: searching for what suits the device$'
check "the search ends" matches err '^tuning: took [0-9.]+ s$'
check "what it found is remembered" \
    grep -qE '^matvec_[a-z0-9_]+ [0-9a-f]{16} normed ' "$XDG_CACHE_HOME"/peridot/tune-*.txt
cp "$folder/out" "$folder/text"

run "${story[@]}"
check "the second run succeeds" [ $status = 0 ]
check "it does not search" [ "$(grep -c '^tuning: ' "$folder/err")" = 0 ]
check "it says the same" cmp -s "$folder/out" "$folder/text"

run bench -m "$stories" -p 0 -n 4 -r 1 -o json
check "bench takes what was found" matches out '"tuning": "(as by default|matvec_)'
check "and does not search" [ "$(grep -c '^tuning: ' "$folder/err")" = 0 ]

XDG_CACHE_HOME=$folder/other run "${story[@]}" --kernel matvec=columns
check "another folder's cache knows nothing: it searches" matches err '^tuning: searching '
check "and says the same" cmp -s "$folder/out" "$folder/text"

unset VK_INSTANCE_LAYERS
run "${story[@]}"
check "the CPU that it is says the same" cmp -s "$folder/out" "$folder/text"
check "and is known" [ "$(grep -c '^tuning: ' "$folder/err")" = 0 ]

finish
