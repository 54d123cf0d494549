#!/usr/bin/env bash
# Allocations of library and command fail, one in each run: the command says so in one sentence, with exit status 1, and
# leaves no file; or does without, and its output is as ever. Some of them by default, all with the environment's
# PERIDOT_TEST_ALL.
. "$(dirname "$0")/command.sh"

failing=$(dirname "$peridot")/tests/peridot_failing_alloc
golden=$source/tests/golden
mkdir "$folder/made"
printf 'Once upon a time\n' >"$folder/text"

# try ARGUMENTS...: with FILE for what the command writes.
try() {
    local arguments=("${@//FILE/$folder/made/file}") i n step
    "$failing" "${arguments[@]}" <"$folder/text" >/dev/null 2>&1   # what is kept for the next time is there from now on
    rm -f "$folder/made/file"
    COUNT_ALLOCATIONS=$folder/count "$failing" "${arguments[@]}" <"$folder/text" >"$folder/good" 2>"$folder/err"
    check "$1 succeeds" [ $? = 0 ]
    n=$(<"$folder/count")
    check "$1 allocates" [ "$n" -gt 0 ]
    [ ! -e "$folder/made/file" ] || mv "$folder/made/file" "$folder/good_file"
    step=$((n / 12 + 1))
    [ ! "${PERIDOT_TEST_ALL:-}" ] || step=1
    for ((i = 1; i <= n; i += step)); do
        FAIL_ALLOCATION=$i "$failing" "${arguments[@]}" <"$folder/text" >"$folder/out" 2>"$folder/err"
        status=$?
        if [ $status = 0 ]; then
            check "$1, allocation $i of $n: the same output" cmp -s "$folder/out" "$folder/good"
            [ ! -e "$folder/made/file" ] || check "$1, allocation $i of $n: the same file" cmp -s "$folder/made/file" "$folder/good_file"
        else
            check "$1, allocation $i of $n: status $status, not 1" [ $status = 1 ]
            check "$1, allocation $i of $n: one sentence" one_sentence
            check "$1, allocation $i of $n: says why" matches err 'memory'
            check "$1, allocation $i of $n: leaves no file" [ ! "$(ls -A "$folder/made")" ]
        fi
        rm -rf "$folder/made/"*
    done
}

try devices --json
try tokenize -m "$source/models/stories.gguf"
try inspect "$golden/gemma2-base"
HOME=$folder PERIDOT_MODELS=$golden/gemma1:$golden/llama3-new try models --json
try convert "$golden/gemma2-base" -o FILE --type q8_0
try logits -m "$golden/gemma2-q8_0/model.gguf" --tokens 2,5,7,11 --out FILE
try run -m "$source/models/stories.gguf" -n 8 --temp 0 'Once upon'
finish
