#!/usr/bin/env bash
# Allocations of library and command fail, one in each run: the command says so in one sentence, with exit status 1, and
# leaves no file; or does without, and its output is as ever. Some of them by default, all with the environment's
# PERIDOT_TEST_ALL.
. "$(dirname "$0")/command.sh"

failing=$(dirname "$peridot")/tests/peridot_failing_alloc
mkdir "$folder/made"
printf 'Once upon a time\n' >"$folder/text"

# step_of N: from one failing allocation of N to the next.
step_of() { [ "${PERIDOT_TEST_ALL:-}" ] && echo 1 || echo $(($1 / 12 + 1)); }

# try ARGUMENTS...: with FILE for what the command writes.
try() {
    local arguments=("${@//FILE/$folder/made/file}") i n
    "$failing" "${arguments[@]}" <"$folder/text" >/dev/null 2>&1   # what is kept for the next time is there from now on
    rm -f "$folder/made/file"
    COUNT_ALLOCATIONS=$folder/count "$failing" "${arguments[@]}" <"$folder/text" >"$folder/good" 2>"$folder/err"
    check "$1 succeeds" [ $? = 0 ]
    n=$(<"$folder/count")
    check "$1 allocates" [ "$n" -gt 0 ]
    [ ! -e "$folder/made/file" ] || mv "$folder/made/file" "$folder/good_file"
    for ((i = 1; i <= n; i += $(step_of $n))); do
        FAIL_ALLOCATION=$i "$failing" "${arguments[@]}" <"$folder/text" >"$folder/out" 2>"$folder/err"
        status=$?
        if [ $status = 0 ]; then
            check "$1, allocation $i of $n: the same output" cmp -s "$folder/out" "$folder/good"
            [ ! -e "$folder/made/file" ] ||
                check "$1, allocation $i of $n: the same file" cmp -s "$folder/made/file" "$folder/good_file"
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
try inspect "$goldens/gemma2-base"
HOME=$folder PERIDOT_MODELS=$goldens/gemma1:$goldens/llama3-new try models --json
try convert "$goldens/gemma2-base" -o FILE --type q8_0
try logits -m "$goldens/gemma2-q8_0/model.gguf" --tokens 2,5,7,11 --out FILE
try run -m "$source/models/stories.gguf" -n 8 --temp 0 'Once upon'

# A server either does not start, and says why, or answers each of two alike requests, and one of each other form of
# them, with the text or an error, or with nothing where it has no memory for the connection, and ends in order. Without
# memory for a place to go back to, the logits are of other kernels: they agree in three decimals.
schema='{"type": "object", "properties": {"a": {"type": "string", "maxLength": 9}}, "required": ["a"]}'
declare -A bodies=(
    [v1/chat/completions]='{"messages": [{"role": "user", "content": "Once upon"}], "max_tokens": 20, "temperature": 0,
        "logprobs": true, "logit_bias": {"5": 1}, "stop": ["zzzz"],
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": '$schema'}}}'
    [v1/messages]='{"system": [{"type": "text", "text": "Be brief."}], "max_tokens": 9, "temperature": 0,
        "stop_sequences": ["zz"],
        "messages": [{"role": "user", "content": "Once"}, {"role": "user", "content": "upon"}]}'
    [api/chat]='{"messages": [{"role": "user", "content": "Once upon"}], "stream": false, "logprobs": true,
        "options": {"num_predict": 9, "temperature": 0}, "format": '$schema'}')

# exchange: leaves the answers in $folder/answers, one a line, in $started whether the server had started, and its exit
# status in $status.
exchange() {
    local server path url=
    started=
    : >"$folder/err"
    "$failing" serve -m "$source/models/stories.gguf" --port 0 2>"$folder/err" &
    server=$!
    while [ ! "$started" ] && kill -0 $server 2>/dev/null; do
        sleep 0.02
        url=$(sed -nE 's/^serving .* at (http:[^ ]*): .*/\1/p' "$folder/err")
        [ ! "$url" ] || [ "$(curl -s -m 20 -o /dev/null -w '%{http_code}' "$url/health")" != 200 ] || started=yes
    done
    for path in ${started:+v1/chat/completions v1/chat/completions v1/messages api/chat}; do
        curl -s -m 20 --data-binary "${bodies[$path]}" "$url/$path"
        echo
    done | sed -E 's/"id":"[^"]*"//; s/"created(_at)?":("[^"]*"|[0-9]+)//; s/_duration":[0-9]+//g
        s/(\.[0-9]{3})[0-9]+/\1/g' >"$folder/answers"
    kill -TERM $server 2>/dev/null
    wait $server
    status=$?
}

try_serve() {
    local answer i n
    exchange
    COUNT_ALLOCATIONS=$folder/count exchange
    cp "$folder/answers" "$folder/good"
    check "serve succeeds" [ $status = 0 ]
    check "it answers all four" [ "$(grep -c '"role":"assistant",' "$folder/good")" = 4 ]
    n=$(<"$folder/count")
    for ((i = 1; i <= n; i += $(step_of $n))); do
        FAIL_ALLOCATION=$i exchange
        if [ ! "$started" ]; then
            check "serve, allocation $i of $n: status $status, not 1" [ $status = 1 ]
            check "serve, allocation $i of $n: says why" matches err 'memory'
            continue
        fi
        check "serve, allocation $i of $n: status $status, not 0" [ $status = 0 ]
        while read -r answer; do
            n_checks=$((n_checks + 1))
            [ ! "$answer" ] || grep -qxF -e "$answer" "$folder/good" || [[ $answer == '{'*'"error":'*memory*'}' ]] ||
                failed "serve, allocation $i of $n: the text or an error, not: $answer"
        done <"$folder/answers"
    done
}
if command -v curl >/dev/null; then try_serve; else echo "skipped: curl is not there"; fi
finish
