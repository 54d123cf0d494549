#!/usr/bin/env bash
# Thoughts in peridot run, chat and serve: what a model thinks is shown apart from its answer, and ends within a budget.
. "$(dirname "$0")/serve.sh"
"$(dirname "$peridot")/tests/write_thinkers" "$folder" || exit 1
thinker=$folder/thinker.gguf
ponderer=$folder/ponderer.gguf
golden=$goldens/gemma2-q8_0/model.gguf
export XDG_STATE_HOME=$folder/state TERM=xterm LC_ALL=C.UTF-8

lacks() { ! contains "$1" "$2"; }
is() { [ "$(cat "$folder/$1")" = "$2" ]; }

test_run() {
    run run -m "$thinker" --temp 0 hello
    check "run succeeds" [ $status = 0 ]
    check "standard output gets the answer alone" is out "hello model"
    check "standard error says how long the thought was" matches err '^thought for 3 tokens$'
    check "and not what" lacks err "us user"
    run run -m "$thinker" --temp 0 --verbose --think on hello
    check "--verbose shows it" matches err '^us user$'
    run run -m "$thinker" --temp 0 --think on --ids hello
    check "--ids has the ids of both" [ "$(tr , '\n' <"$folder/out" | wc -l)" = 7 ]
    run run -m "$thinker" --temp 0 --raw $'hello\n'
    check "--raw knows no thoughts" matches out 'thought$'
    run run -m "$ponderer" --temp 0 --think 6 hello
    check "a budget ends the thought" is out "hello model"
    check "after so many tokens" contains err "thought for 6 tokens"
    run run -m "$ponderer" --temp 0 --think on -n 20 hello
    check "without one it goes on" is out ""
    check "up to the reply's length" contains err "thought for 19 tokens"
    fails_with 2 '--think: the model cannot be told to think: its chat template, "llama2", has no thoughts' \
        run -m "$golden" --template llama2 --think on hello
    fails_with 2 "--think: the model has no chat template" run -m "$golden" --think 5 hello
    fails_with 2 "--think takes on, off or a whole number, not perhaps" run -m "$thinker" --think perhaps hello
    fails_with 2 "--think is said in a chat template" run -m "$thinker" --think on --raw hello
}

test_grammar() {
    printf '{"enum": ["he", "mode"]}' >"$folder/schema"
    run run -m "$ponderer" --temp 0 --think 4 --json-schema "$folder/schema" hello
    check "a schema holds for the answer" is out ' "he"'
    check "and not for the thought" contains err "thought for 4 tokens"
}

# talk LINES ARGUMENTS...: a conversation by a pipe; leaves $status, out and err.
talk() {
    printf '%s' "$1" | "$peridot" chat --temp 0 "${@:2}" >"$folder/out" 2>"$folder/err"
    status=${PIPESTATUS[1]}
}
# What the I-th /stats said of the context.
all_tokens() { sed -n 's/^context: \([0-9]*\) of.*/\1/p' "$folder/err" | sed -n "$1p"; }

test_chat() {
    talk $'hello\n/thought\n/stats\nhe\n/stats\n/save '"$folder/saved"$'\n' -m "$thinker" --think on
    check "chat succeeds" [ $status = 0 ]
    check "it writes the answers" is out $'hello model\nhello model'
    check "says how long the thoughts were" \
        [ "$(grep -c '^thought for 3 tokens (/thought shows it)$' "$folder/err")" = 2 ]
    check "/thought shows the last" matches err '^us user$'
    check "saved messages have no thoughts" lacks saved "us user"
    # A turn adds <turn|> \n <|turn> user \n he <turn|> \n <|turn> model \n to the ids so far, less a thought of five,
    # and a reply of seven.
    check "thoughts of past turns are left out" [ $(($(all_tokens 2) - $(all_tokens 1))) = $((-5 + 11 + 7)) ]
    talk $'hello\n/set think 4\nhello\n/set think off\nhello\n/set think 0\n' -m "$ponderer" -n 24
    check "/set think sets a budget" \
        [ "$(sed -n 's/^thought for \([0-9]*\) .*/\1/p' "$folder/err" | xargs)" = "23 4 23" ]
    talk $'/set think on\n/set\nhello\n' -m "$golden" --template llama2 -n 4
    check "where there are no thoughts /set think says so" contains err "has no thoughts"
    check "and changes nothing" matches err '^think +off$'
    talk $'hello\n' -m "$golden" --think 5
    check "--think is refused as it begins" [ $status = 2 ]
    talk $'/thought\n' -m "$thinker"
    check "/thought without one says so" contains err "the last reply had no thought"
}

test_terminal() {
    has_terminal "thoughts on a terminal" || return
    printf 'hello\n/exit\n' |
        script -qec "'$peridot' chat -m '$thinker' --temp 0 --think on" /dev/null >"$folder/out" 2>&1
    check "a thought is dimmed" grep -qF $'\033[2mthought for 3 tokens (/thought shows it)' "$folder/out"
    check "the answer is not" grep -qF $'\033[0mhello model' "$folder/out"
}

# ---- the server ----

hi='"messages": [{"role": "user", "content": "hello"}], "temperature": 0'
reasoning() {
    sed -n 's/^data: //p' "$folder/out" | grep -oE '"reasoning_content":"([^"\\]|\\.)*"' |
        sed -E 's/^"reasoning_content":"(.*)"$/\1/' | tr -d '\n'
}

test_serve() {
    local path=/v1/chat/completions name more
    model=$ponderer
    start --think 5
    ask $path "{$hi}"
    check "serve --think is the default" contains out '"reasoning_content":"us userus user"'
    check "the answer is apart" [ "$(field content)" = "hello model" ]
    check "tokens of both are counted" \
        contains out '"completion_tokens":9,"total_tokens":31,"prompt_tokens_details":{"cached_tokens":0}'
    check "and those of the thought" contains out '"completion_tokens_details":{"reasoning_tokens":7}'
    ask $path "{$hi, \"stream\": true, \"stream_options\": {\"include_usage\": true}}"
    check "a stream has the thought" [ "$(reasoning)" = "us userus user" ]
    check "and the answer" [ "$(deltas)" = "hello model" ]
    check "and the reason of its end once" [ "$(grep -c '"finish_reason":"stop"' "$folder/out")" = 1 ]
    ask /v1/responses '{"input": "hello"}'
    check "responses have it as an item" contains out \
        '"type":"reasoning","status":"completed","summary":[],"content":[{"type":"reasoning_text","text":"us'
    check "before the message" matches out '"type":"reasoning".*"type":"message"'
    ask /v1/responses '{"input": [{"role": "user", "content": "hello"}, {"type": "reasoning", "id": "rs_1",
        "summary": [], "content": [{"type": "reasoning_text", "text": "us"}]},
        {"role": "assistant", "content": "hello"}, {"role": "user", "content": "hello"}]}'
    check "items of past thoughts are left out of what is sent back" [ "$status" = 200 ]
    ask /v1/responses '{"input": "hello", "stream": true}'
    check "their events as well" [ "$(grep -c '"type":"response.reasoning_text.done"' "$folder/out")" = 1 ]
    check "of the first item" matches out '"type":"response.reasoning_text.delta".*"output_index":0,"item_id":"rs_'
    check "and the message is the second" \
        matches out '"type":"response.output_text.delta".*"output_index":1,"item_id":"msg_'
    ask $path "{$hi, \"thinking\": {\"type\": \"enabled\", \"budget_tokens\": 3}}"
    check "a request has its own budget" contains out '"reasoning_content":"us user"'
    ask $path "{$hi, \"stop\": [\"user\", \" mo\"]}"
    check "stop texts are for the answer" [ "$(field content)" = hello ]
    check "and leave the thought" contains out '"reasoning_content":"us userus user"'
    ask $path "{$hi, \"max_tokens\": 3, \"stop\": \"user\"}"
    check "a reply that ends within its thought has no answer" [ "$(field content)" = "" ]
    check "and says that it was cut" [ "$(field finish_reason)" = length ]
    ask $path "{$hi, \"response_format\": {\"type\": \"json_schema\", \"json_schema\": {\"schema\": {\"enum\": [7]}}}}"
    check "a schema is for the answer" [ "$(field content)" = " 7" ]
    check "and leaves the thought" contains out '"reasoning_content":"us userus user"'
    for name in '"reasoning_effort": "minimal"' '"think": false' '"thinking": {"type": "disabled"}' \
        '"chat_template_kwargs": {"enable_thinking": false}' '"enable_thinking": false'; do
        ask $path "{$hi, \"max_tokens\": 12, $name}"
        check "$name is off" contains out '"prompt_tokens":10,'
    done
    for name in '"reasoning_effort": "high"' '"think": true' '"think": "low"' \
        '"chat_template_kwargs": {"enable_thinking": true}' '"enable_thinking": true'; do
        ask $path "{$hi, $name}"
        check "$name is on" contains out '"prompt_tokens":22,'
    done
    for name in 'reasoning_effort": "much"' 'think": 1' 'thinking": {"type": "enabled", "budget_tokens": -1}' \
        'chat_template_kwargs": {"thinking": true}' 'enable_thinking": "on"'; do
        ask $path "{$hi, \"$name}"
        check "\"$name is refused" [ "$status" = 400 ]
        check "by name" contains out "\"param\":\"${name%%\"*}\""
    done
    ask /v1/responses '{"input": "hello", "temperature": 0, "reasoning": {"effort": "low"}}'
    check "responses have the answer" contains out '"type":"output_text","text":"hello model"'
    check "and count the thought" contains out '"reasoning_tokens":7'
    ask $path '{"messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "he",
        "reasoning_content": "us user"}, {"role": "user", "content": "he"}], "temperature": 0}'
    check "thoughts of past turns are not read" contains out '"prompt_tokens":34,'
    stop
    model=$golden
    start --template llama2
    ask $path "{$hi, \"think\": true}"
    check "a model without thoughts cannot be told to think" [ "$status" = 400 ]
    check "the parameter is named" contains out '"param":"think"'
    ask $path "{$hi, \"max_tokens\": 2, \"reasoning_effort\": \"high\"}" -D "$folder/headers"
    check "an effort, which agents ask of all models, changes nothing" [ "$status" = 200 ]
    check "and is named in a header" grep -q '^Warning: 299 - "ignored: reasoning_effort"' "$folder/headers"
    ask $path "{$hi, \"max_tokens\": 2, \"reasoning_effort\": \"none\"}"
    check "nor need it be told not to" [ "$status" = 200 ]
    stop
    run serve -m "$golden" --template llama2 --think on --port 0
    check "--think needs a template with thoughts" [ $status = 2 ]
    check "and says so" contains err '--think: the model cannot be told to think'
}

test_run
test_grammar
test_chat
test_terminal
test_serve
finish
