#!/usr/bin/env bash
# Fill-in-the-middle by peridot run --suffix, by the server's suffix and by /infill, with what else llama.cpp's server
# has of its own: what stands between two texts, and what has no such thing.
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

# What editors' plugins send to llama.cpp's server.
test_editors() {
    local path=/infill text='"input_prefix": "mo", "prompt": "de", "input_suffix": " the", "temperature": 0' long
    local files='"input_extra": [{"filename": "a.c", "text": "hello"}, {"filename": "b.c", "text": "model"}]'
    local vim='"samplers": ["top_k", "top_p", "infill"], "top_k": 40, "top_p": 0.9, "cache_prompt": true, "id_slot": 0,
        "n_indent": 4, "t_max_prompt_ms": 500, "t_max_predict_ms": 1000, "stream": false, "n_predict": 128, "stop": [],
        "response_fields": ["content", "timings/prompt_n", "tokens_cached", "timings/nothing", "content/x"]'
    ask $path "{$text}"
    check "/infill is 200" [ "$status" = 200 ]
    check "it is the middle" contains out '"content":"hello model","tokens":[],"id_slot":0,"stop":true,'
    check "after what was typed" contains out '"prompt":"<bos><|fim_prefix|>mode<|fim_suffix|> the<|fim_middle|>"'
    check "it says what it took" matches out '"tokens_predicted":2,"tokens_evaluated":6,.*"prompt_ms":[0-9.]+,'
    check "and why it ended" contains out '"truncated":false,"stop_type":"eos","stopping_word":"","tokens_cached":8,'
    ask $path "{$text, $files}"
    check "files stand before it" contains out \
        '"prompt":"<bos><|repo_name|>myproject\n<|file_sep|>a.c\nhello<|file_sep|>b.c\nmodel<|fim_prefix|>mode<'
    ask $path "{$text, $files, $vim}" -D "$folder/headers"
    check "an editor gets the fields that it wants" \
        matches out '^\{"content":"hello model","timings/prompt_n":[0-9]+,"tokens_cached":[0-9]+\}$'
    check "and is told which samplers there are not" contains headers '"ignored: samplers"'
    ask $path "{$files, \"input_prefix\": \"\", \"input_suffix\": \"\", \"prompt\": \"\", \"n_predict\": 0}"
    check "files may be read ahead" contains out '"content":"","tokens":[],"id_slot":0,"stop":true,"tokens_predicted":0'
    ask $path "{$text, \"stream\": true, \"return_tokens\": true}"
    check "a stream of it is the same" [ "$(contents)" = "hello model" ]
    check "in events that have no end before the last" [ "$(grep -c '"stop":false' "$folder/out")" = 2 ]
    check "which has it all" matches out '^data: .*"content":"",.*"stop":true,.*"timings":'
    ask /completion '{"prompt": "\n", "n_predict": 7, "temperature": 0}'
    check "a text has lines" contains out '"content":"a\na\na\na","tokens"'
    ask /completion '{"prompt": "\n", "n_predict": 7, "temperature": 0, "n_indent": 1}'
    check "n_indent ends it at one that has less" matches out '"content":"a\\n","tokens".*"stop_type":"limit"'
    ask /completion '{"prompt": "\n", "n_predict": 7, "temperature": 0, "t_max_predict_ms": 0.000001}'
    check "so does time at the end of one" matches out '"content":"a\\n",.*"has_new_line":true,.*"stop_type":"limit"'
    long=$(printf 'mode %.0s' {1..3000})
    ask $path "{\"input_prefix\": \"${long}m\", \"input_suffix\": \"$long\", \"n_predict\": 8, $files}"
    check "what does not fit is left out" contains out '"truncated":true'
    check "of both ends, and the place stays" matches out '[^>]m<\|fim_suffix\|>mode mode .*<\|fim_middle\|>"'
    check "so that all fits" [ "$(field tokens_evaluated)" -lt 4096 ] && [ "$(field tokens_evaluated)" -gt 4000 ]
    refused_llama 400 'input_extra must be a list' $path "{$text, \"input_extra\": [3]}"
    refused_llama 400 'input_prefix must be a string' $path '{"input_prefix": 3}'
    refused_llama 400 'response_fields must be a list' $path "{$text, \"response_fields\": [3]}"
    ask /tokenize '{"content": "<|fim_middle|>", "parse_special": true}'
    check "/tokenize reads control tokens where it is asked to" matches out '"tokens":\[[0-9]+\]'
    ask /v1/completions '{"prompt": "a<|fim_middle|>", "temperature": 0, "echo": true, "max_tokens": 1}'
    check "OpenAI's completions never do" contains out '"text":"a<|fim_middle|>'
}

# contents: the text of a stream of llama.cpp's server.
contents() { sed -nE 's/^data: \{"index":0,"content":"([^"]*)".*/\1/p' "$folder/out" | tr -d '\n'; }

# refused_llama STATUS TEXT PATH BODY: an error as that server has it.
refused_llama() {
    ask "$3" "$4"
    check "$3 $4: status $status, not $1" [ "$status" = "$1" ]
    check "$3 $4: says '$2'" matches out "^\{\"error\":\{\"code\":$1,\"message\":\"[^\"]*$2.*\",\"type\":\"[a-z_]+\""
}

test_llama() {
    local text='"prompt": "The little fox", "seed": 1'
    refused_llama 501 "$none" /infill '{"input_prefix": "Once"}'
    ask /completion "{$text, \"n_predict\": 40}"
    check "/completion has llama.cpp's form" matches out '^\{"index":0,"content":".*"stop_type":"limit"'
    check "and its control tokens count" contains out '"prompt":"<s>The little fox"'
    ask /completions "{$text, \"n_predict\": 4, \"stop\": [\"a\"]}"
    check "/completions with n_predict is the same" matches out '^\{"index":0,"content":'
    ask /completions "{$text, \"max_tokens\": 4}"
    check "and OpenAI's with max_tokens" contains out '"choices":[{"index":0,'
    ask /completion '{"prompt": ["a", "b"], "n_predict": 2}'
    check "several texts are a list" matches out '^\[\{"index":0,.*\},\{"index":1,'
    refused_llama 400 'exceeds the available context size \(512 tokens\), try increasing it' /completion \
        "{\"prompt\": \"$(printf 'lion %.0s' {1..600})\"}"
    check "with numbers" matches out '"type":"exceed_context_size_error","n_prompt_tokens":[0-9]+,"n_ctx":512\}\}$'
    ask /completion '{"prompt": "A", "json_schema": {"enum": [7]}}'
    check "json_schema holds" matches out '"content":"[ \\n]*7[ \\n]*"'
    ask /apply-template "{\"messages\": [$(message user 'Once upon')]}"
    check "/apply-template writes the prompt, without bos" is out '{"prompt":"Once upon"}'
    refused_llama 400 'messages must be a list' /apply-template '{}'
    get /props
    check "/props says the context of a request" contains out \
        '{"default_generation_settings":{"id":0,"n_ctx":512,"speculative":false,"is_processing":false,'
    check "and how many there may be" contains out '"total_slots":8,"model_alias":"stories"'
    get /slots
    check "/slots has as many" [ "$(grep -o '"is_processing":false' "$folder/out" | wc -l)" = 8 ]
    get /v1/health
    check "/v1/health is /health" contains out '"status": "ok"'
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
    test_editors
    stop
    model=$source/models/stories.gguf
    start
    refused "suffix is not supported: stories's $none" '{"prompt": "Once", "suffix": "the end"}'
    ask /v1/completions '{"prompt": "Once", "suffix": "", "max_tokens": 1}'
    check "an empty one changes nothing" [ "$status" = 200 ]
    test_llama
    stop
}

test_run
test_serve
finish
