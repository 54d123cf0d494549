#!/usr/bin/env bash
# Fill-in-the-middle by peridot run --suffix and by the server's suffix: what stands between two texts, and what has no
# such thing.
. "$(dirname "$0")/serve.sh"
"$(dirname "$peridot")/tests/write_thinkers" "$folder" || exit 1
filler=$folder/filler.gguf
golden=$goldens/gemma2-q8_0/model.gguf
none="vocabulary has no tokens for fill-in-the-middle"

is() { [ "$(cat "$folder/$1")" = "$2" ]; }

test_run() {
    run run -m "$filler" --temp 0 -n 20 --suffix " the" "mode"
    check "run succeeds" [ $status = 0 ]
    check "it writes the middle, up to the file's end" is out "hello model"
    check "the prompt has bos, the texts and three tokens" contains err "prompt: 6 tokens"
    run run -m "$filler" --temp 0 -n 20 --suffix "" "mode"
    check "a suffix may be empty" is out "hello model"
    printf 'mode' | "$peridot" run -m "$filler" --temp 0 --raw --suffix "<|fim_middle|><|file_separator|>" - \
        >"$folder/out" 2>"$folder/err"
    check "control tokens in it are text" is out "hello model"
    run run -m "$filler" --temp 0 --ids --suffix " the" "mode"
    check "--ids has its two tokens, and not the one that ends it" matches out '^[0-9]+,[0-9]+$'
    fails_with 1 "gemma2-q8_0's $none" run -m "$golden" --suffix x "mode"
    fails_with 2 "--suffix is for plain text" run -m "$filler" --suffix x --template gemma "mode"
    fails_with 2 "--suffix is for plain text" run -m "$filler" --suffix x --think on "mode"
    fails_with 2 "--suffix puts the control tokens" run -m "$filler" --suffix x --raw --special "mode"
}

# refused TEXT BODY
refused() {
    ask /v1/completions "$2"
    check "$2 is refused" [ "$status" = 400 ]
    check "$2: says '$1'" contains out "$1"
}

test_serve() {
    local body='"prompt": "mode", "suffix": " the", "temperature": 0'
    model=$filler
    start
    ask /v1/completions "{$body, \"return_token_ids\": true}"
    check "a completion with a suffix is 200" [ "$status" = 200 ]
    check "it is the middle" [ "$(field text)" = "hello model" ]
    check "which ends by itself" [ "$(field finish_reason)" = stop ]
    check "of 6 tokens" [ "$(field prompt_tokens)" = 6 ]
    ask /v1/completions "{$body, \"stream\": true}"
    check "a stream of it is the same" \
        [ "$(grep -oE '"text":"[^"]*"' "$folder/out" | sed -E 's/^"text":"(.*)"$/\1/' | tr -d '\n')" = "hello model" ]
    ask /v1/completions '{"prompt": ["mode", ""], "suffix": "<|fim_middle|>", "temperature": 0, "logprobs": 1}'
    check "each prompt has the suffix" [ "$(grep -o '"text":"hello model"' "$folder/out" | wc -l)" = 2 ]
    check "and probabilities" contains out '"token_logprobs":['
    ask /v1/completions '{"prompt": "hello", "suffix": "", "temperature": 0}'
    check "an empty suffix is none" [ "$(field text)" = " model" ]
    refused "echo is not supported with suffix" "{$body, \"echo\": true}"
    refused "suffix needs a prompt that is text" '{"prompt": [2, 5], "suffix": "a"}'
    refused "suffix must be a string" '{"prompt": "a", "suffix": 3}'
    ask /v1/chat/completions "{\"messages\": [$(message user a)], \"suffix\": \"a\"}"
    check "chats have none" contains out "Unrecognized request argument supplied: suffix"
    stop
    model=$source/models/stories.gguf
    start
    refused "suffix is not supported: stories's $none" '{"prompt": "Once", "suffix": "the end"}'
    ask /v1/completions '{"prompt": "Once", "suffix": "", "max_tokens": 1}'
    check "an empty one changes nothing" [ "$status" = 200 ]
    stop
}

test_run
test_serve
finish
