#!/usr/bin/env bash
# peridot serve, asked by curl: what it answers, what it refuses, and that it ends in order.
. "$(dirname "$0")/serve.sh"

# refused STATUS PATH TEXT BODY: an error as OpenAI's clients know it.
refused() {
    ask "$2" "$4"
    check "$2 $4: status $status, not $1" [ "$status" = "$1" ]
    check "$2 $4: an error object" matches out \
        '^\{"error":\{"message":".*","type":"[a-z_]+","param":(null|"[^"]*"),"code":(null|"[a-z_]+")\}\}$'
    check "$2 $4: names '$3'" contains out "$3"
}

test_pages() {
    get /health
    check "/health is 200 once the model is loaded" [ "$status" = 200 ]
    get /v1/models
    check "/v1/models lists the model" contains out '"id":"stories","object":"model"'
    get /v1/models/stories
    check "/v1/models/NAME is that model" [ "$(field id)" = stories ]
    get /v1/models/other
    check "/v1/models/OTHER is 404" [ "$status" = 404 ]
    get /models/stories
    check "with or without /v1" [ "$(field id)" = stories ]
    get /
    check "/ is the page" contains out "<title>Peridot</title>"
    get / -D "$folder/headers" -o /dev/null
    check "the page allows nothing from elsewhere" matches headers "^Content-Security-Policy: default-src 'none'"
    get /openapi.json
    check "/openapi.json is there" contains out '"openapi"'
    get /metrics
    check "/metrics has histograms" contains out 'peridot_time_to_first_token_seconds_bucket{le="+Inf"}'
}

test_chat() {
    local text first
    ask /v1/chat/completions "$(chat 'Once upon a time' 24 1)"
    check "a chat completion is 200" [ "$status" = 200 ]
    check "it says why it ended" [ "$(field finish_reason)" = length ]
    check "it counts tokens" contains out '"usage":{"prompt_tokens":5,"completion_tokens":24,"total_tokens":29,'
    text=$(field content)
    check "it has a text" [ ${#text} -gt 20 ]
    ask /v1/chat/completions \
        "$(chat 'Once upon a time' 24 1 ', "stream": true, "stream_options": {"include_usage": true}')"
    check "a stream has the same text" [ "$(deltas)" = "$text" ]
    check "a stream ends" [ "$(tail -2 "$folder/out" | head -1)" = "data: [DONE]" ]
    check "and has the usage before its end" contains out '"choices":[],"usage":{"prompt_tokens":5'
    ask /v1/chat/completions "$(chat 'Once upon a time' 24 1 ', "temperature": 0')"
    first=$(field content)
    ask /v1/chat/completions "$(chat 'Once upon a time' 24 1 ', "temperature": 2, "top_p": 0')"
    check "a top_p of 0 takes the likeliest" [ "$(field content)" = "$first" ]
    ask /v1/chat/completions "$(chat 'Once upon a time' 24 2)"
    first=$(field content)
    check "another seed, another text" [ "$first" != "$text" ]
    ask /v1/chat/completions "$(chat 'Once upon a time' 24 1 ', "n": 2')"
    check "n choices, the second by the next seed" \
        contains out "\"index\":1,\"message\":{\"role\":\"assistant\",\"content\":\"$first\""
    ask /v1/chat/completions '{"messages": [{"role": "user", "content": [{"type": "text", "text": "Once upon"},
        {"type": "text", "text": " a time"}]}], "max_completion_tokens": 24, "seed": 1}'
    check "a message in parts is the same message" [ "$(field content)" = "$text" ]
    ask /v1/chat/completions "$(chat 'Once upon a time' 60 1 ", \"stop\": [\"zzzz\", \"${text:5:6}\"]")"
    check "a stop text ends it" [ "$(field content)" = "${text:0:5}" ]
    check "and is the reason" [ "$(field finish_reason)" = stop ]
    ask /v1/chat/completions "$(chat 'Once upon a time' 4 1 ', "logprobs": true, "top_logprobs": 2, "temperature": 0')"
    check "logprobs come with alternatives" matches out '"logprobs":\{"content":\[\{"token":"[^"]+",'
    check "each of which has its bytes" \
        matches out '"logprob":-[0-9.e-]+,"bytes":\[[0-9,]+\],"top_logprobs":\[\{"token"'
}

# What other servers answer too: a length beyond the context, and another model's name.
test_lenient() {
    local field path=/v1/chat/completions hi='"messages": [{"role": "user", "content": "a"}]'
    for field in max_tokens max_completion_tokens; do
        ask $path "{$hi, \"$field\": 100000$endless}"
        check "$field beyond the context is cut" [ "$(field finish_reason) $(field total_tokens)" = "length 512" ]
    done
    ask /v1/responses "{\"input\": \"a\", \"max_output_tokens\": 100000, \"seed\": 1}"
    check "max_output_tokens too" [ "$status" = 200 ]
    ask /v1/completions "{\"prompt\": \"a\", \"max_tokens\": -1$endless}"
    check "-1 is no limit" [ "$(field total_tokens)" = 512 ]
    ask $path "{$hi, \"max_tokens\": 1}" -D "$folder/headers"
    check "the model needs no name" [ "$(grep -c '^Warning:' "$folder/headers")" = 0 ]
    ask $path "{$hi, \"max_tokens\": 1, \"model\": \"gpt-4\", \"stream\": true}" -D "$folder/headers"
    check "another model's name is answered by the one that is served" contains out '"model":"stories"'
    check "with a warning" \
        contains headers 'Warning: 299 - "answered by stories, the only model of this server"'
}

person='{"type": "object", "properties": {"name": {"type": "string", "minLength": 60, "maxLength": 90},
    "old": {"type": "boolean"}}, "required": ["name", "old"]}'
# nested_schema SCHEMA, flat_schema SCHEMA: of a request's body, that its answer is to be of this schema.
format=', "response_format": {"type": "json_schema", '
nested_schema() { printf '%s"json_schema": {"name": "x", "schema": %s}}' "$format" "$1"; }
flat_schema() { printf '%s"schema": %s}' "$format" "$1"; }

# A stream tells how much of its prompt is read, to whom asks for that, as llama.cpp's server does.
test_progress() {
    local long='"stream": true, "return_progress": true'
    ask /v1/chat/completions "$(chat "$(printf 'the king said %.0s' $(seq 120))" 1 1 ", $long")"
    check "how much of a prompt is read" matches out '"prompt_progress":\{"total":[0-9]+,"cache":0,"processed":[0-9]+,'
    ask /v1/chat/completions "$(chat 'a bird and a cat' 1 1 ', "stream": true')"
    check "which is told to nobody else" [ "$(grep -c prompt_progress "$folder/out")" = 0 ]
}

test_json() {
    local schema
    for schema in nested_schema flat_schema; do
        ask /v1/chat/completions "$(chat 'A person' 300 3 "$($schema "$person")")"
        check "a schema holds" matches out \
            '"content":"[ \\n]*\{[ \\n]*\\"name\\":.*\\"old\\":[ \\n]*(true|false)[ \\n]*\}[ \\n]*"'
        check "to the end" [ "$(field finish_reason)" = stop ]
    done
    ask /v1/chat/completions "$(chat 'A person' 300 3 ', "response_format": {"type": "json_object"}')"
    check "an object is one" matches out '"content":"[ \\n]*\{'
    refused 400 /v1/chat/completions 'contains' \
        "$(chat a 9 1 "$(flat_schema '{"contains": {"type": "null"}}')")"
    refused 400 /v1/responses 'text' '{"input": "a", "text": {"format": {"type": "json_schema", "schema": 3}}}'
}

# The worst schema of each rule keeps neither a text that is being written nor other requests waiting.
test_schemas() {
    mkdir "$folder/schemas"
    "$(dirname "$peridot")/tests/peridot_tests" test_grammar_work --write "$folder/schemas"
    ask /v1/completions "$(completion 'A person' 40 2 "$(flat_schema "$person")")"
    python3 "$source/tests/serve_schemas.py" "$url" "$folder/schemas" "$person" >"$folder/out" 2>&1
    status=$?
    check "schemas at their worst keep nobody waiting" [ $status = 0 ]
    cat "$folder/out"
}

# What a conversation has in the cache is not read again.
test_prefix() {
    local long='There was a king who had three sons and a daughter, and they lived by the sea.' reply n
    ask /v1/chat/completions "$(chat "$long" 30 5)"
    reply=$(field content)
    n=$(field total_tokens)
    ask /v1/chat/completions "{\"messages\": [$(message user "$long"), $(message assistant "$reply"),
        $(message user 'And then?')], \"max_tokens\": 4, \"seed\": 5}"
    # The last token of a reply is not evaluated before there is a next one.
    check "a second turn evaluates only its own part" [ "$(field cached_tokens)" = $((n - 1)) ]
    ask /v1/chat/completions "$(chat "$long Then they went away." 4 5)"
    check "a prompt that begins like another evaluates only the rest" [ "$(field cached_tokens)" -ge 16 ]
}

# A long beginning is read twice at most: from then on it can be begun with, though windows have passed over its end.
test_windows() {
    local model=$goldens/gemma2-q8_0/model.gguf first
    start
    for first in 10 20 30; do
        ask /v1/completions "{\"prompt\": [2, $(seq -s, 3 102), $(seq -s, $first $((first + 174))),
            $(seq -s, $first $((first + 174)))], \"max_tokens\": 20$endless}"
        check "a prompt of 451 ids is answered" [ "$(field prompt_tokens)" = 451 ]
    done
    check "the third conversation reads only its own part" [ "$(field cached_tokens)" = 101 ]
    stop
}

test_completions() {
    local path body
    ask /v1/completions '{"prompt": "Once upon a time", "max_tokens": 0, "echo": true, "logprobs": 1}'
    check "echo gives the prompt" [ "$(field text)" = "Once upon a time" ]
    check "and the probabilities of its tokens" matches out '"token_logprobs":\[null(,-[0-9.e-]+){4}\]'
    ask /v1/completions '{"prompt": ["Once upon a time", "The king", [2, 2336, 742]], "max_tokens": 3, "seed": 1}'
    check "many prompts are many choices" contains out '"index":2,"text":"'
    ask /v1/embeddings '{"input": ["a cat", "a dog"]}'
    check "embeddings are lists" contains out '"object":"embedding","index":1,"embedding":['
    cp "$folder/out" "$folder/got"
    "$peridot" embed -m "$model" "a cat" 2>/dev/null | tr -d '[] ' | tr , '\n' | head -5 >"$folder/want"
    sed 's/.*"index":0,"embedding":\[//; s/\].*//' "$folder/got" | tr , '\n' | head -5 |
        paste - "$folder/want" >"$folder/both"
    check "and those of peridot embed" awk '{ d = $1 - $2; if (d * d > 1e-10) exit 1 }' "$folder/both"
    ask /v1/embeddings '{"input": "a cat", "encoding_format": "base64"}'
    check "or base64" matches out '"embedding":"[A-Za-z0-9+/]+=*"'
    ask /v1/responses '{"input": "Once upon a time", "max_output_tokens": 5}'
    check "responses answer" contains out '"status":"incomplete"'
    ask /v1/responses '{"input": "Once upon a time", "max_output_tokens": 5, "stream": true}'
    check "responses stream events" contains out 'event: response.incomplete'
    while read -r path body; do
        ask "/$path" "$body"
        check "/$path is /v1/$path" [ "$status" = 200 ]
    done <<'END'
chat/completions {"messages": [{"role": "user", "content": "a"}], "max_tokens": 1}
completions {"prompt": "a", "max_tokens": 1}
responses {"input": "a", "max_output_tokens": 1}
embeddings {"input": "a"}
END
    ask /tokenize '{"content": "Once upon a time"}'
    check "/tokenize" contains out '"tokens":[2336,742,263,529]'
    ask /detokenize '{"tokens": [2336, 742, 263, 529]}'
    check "/detokenize" [ "$(field content)" = "Once upon a time" ]
    ask /detokenize '{"tokens": [2336.0, 742]}'
    check "a whole number may be written with a point" [ "$(field content)" = "Once upon" ]
}

test_refused() {
    local path=/v1/chat/completions hi='"messages": [{"role": "user", "content": "a"}]'
    refused 400 $path 'not JSON' '{'
    refused 400 $path 'messages' '{}'
    refused 400 $path 'tools' "{$hi, \"tools\": [{\"type\": \"function\"}]}"
    refused 400 $path 'temperature' "{$hi, \"temperature\": 3}"
    refused 400 $path 'twice' "{$hi, \"seed\": 3, \"seed\": 4}"
    refused 400 $path "This model's maximum context length is 512 tokens. However, your messages resulted in" \
        "{\"messages\": [$(message user "$(printf 'the lion %.0s' $(seq 400))")], \"max_tokens\": 1}"
    refused 400 $path 'does not see images' \
        '{"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}'
    refused 400 $path 'json_schema' "{$hi, \"response_format\": {\"type\": \"text\", \"json_schema\": 3}}"
    refused 400 /v1/completions 'best_of' '{"prompt": "a", "best_of": 2}'
    refused 400 /v1/responses 'previous_response_id' '{"input": "a", "previous_response_id": "x"}'
    refused 400 /v1/embeddings 'input' '{}'
    # The connection must not see that it is refused before it sees why.
    curl -s -m 120 -d '{"stream": true, "prompt": "a", "best_of": 2}' -H 'Content-Type: application/json' \
        "$url/v1/completions?[1-500]" >"$folder/out"
    check "a refused stream says why, every time" [ "$(grep -o '"code":"unsupported' "$folder/out" | wc -l)" = 500 ]
    # A text with a NUL in it is not the one before the NUL.
    refused 400 $path 'a key that is not a token id' "{$hi, \"logit_bias\": {\"1\\u0000x\": -100}}"
    refused 400 $path 'a key that is not a token id' "{$hi, \"logit_bias\": {\"1x\": -100}}"
    refused 400 $path 'NUL' "{$hi, \"stop\": \"a\\u0000b\"}"
    refused 400 $path 'NUL' "{$hi, \"model\": \"stories\\u0000x\"}"
    refused 400 $path 'NUL' "{\"messages\": [$(message user 'a\u0000b')]}"
    refused 400 $path 'role' "{\"messages\": [$(message 'user\u0000x' a)]}"
    refused 400 $path 'only text' \
        '{"messages": [{"role": "user", "content": [{"type": "text\u0000x", "text": "a"}]}]}'
    refused 404 /v1/embeddings%00 'there is no' '{}'
    refused 404 /v1/nothing 'there is no' '{}'
    refused 405 /health 'does not allow POST' '{}'
    get /v1/embeddings -D "$folder/headers"
    check "what is not allowed says what is" matches headers '^Allow: POST'
    ask $path "{$hi}" -H 'Host: example.org'
    check "another name's host is refused" [ "$status" = 403 ]
    ask $path "{$hi}" -H 'Origin: http://example.org'
    check "another page's request is refused" [ "$status" = 403 ]
    ask $path "{$hi}" -H 'Content-Type: multipart/form-data'
    check "another type of body is refused" [ "$status" = 415 ]
    head -c 34000000 /dev/zero >"$folder/large"
    ask $path "@$folder/large"
    check "a large body is refused" [ "$status" = 413 ]
    ask $path "{$hi, \"user\": \"me\", \"metadata\": {}, \"store\": false, \"max_tokens\": 1}"
    check "what changes nothing is accepted" [ "$status" = 200 ]
}

# same NAME PATH BODY_WITHOUT_ITS_LAST_BRACE PARAMETERS: that these change nothing of the answer.
same() {
    local want
    ask "$2" "$3}"
    want=$(field content)$(field text)
    ask "$2" "$3, $4}"
    check "$1: $(head -c 300 "$folder/out")" [ "$status $want" = "200 $(field content)$(field text)" ]
}

# ids NAME: the ids of all lists of that name, in order.
ids() { grep -oE "\"$1\":\[[0-9,]*\]" "$folder/out" | sed 's/.*\[//; s/\]//' | xargs | tr ' ' ,; }

test_token_ids() {
    local want path=/v1/chat/completions more=', "return_token_ids": true, "logprobs":'
    ask $path "$(chat 'Once upon a time' 12 1 "$more true")"
    want=$(ids token_ids)
    check "a reply has its ids" [ "$(tr ',' '\n' <<<"$want" | wc -l)" = 12 ]
    check "and its prompt's beside the choices" matches out '\],"prompt_token_ids":\[2,2336,742,263,529\],"usage"'
    ask /detokenize "{\"tokens\": [2, 2336, 742, 263, 529, $want]}"
    check "which are its text" contains out '"content":"Once upon a time'
    ask $path "$(chat 'Once upon a time' 12 1 "$more true, \"stream\": true")"
    check "a stream has them, too" [ "$(ids token_ids)" = "$want" ]
    check "one by one" [ "$(grep -c '"token_ids"' "$folder/out")" -gt 5 ]
    check "and the prompt's in its first event" [ "$(ids prompt_token_ids)" = 2,2336,742,263,529 ]
    ask /v1/completions "$(completion 'Once upon a time' 12 1 "$more 1")"
    check "so have texts" [ "$(ids token_ids)" = "$want" ]
    check "with the prompt's in each choice" matches out '"prompt_token_ids":\[[0-9,]*\],"token_ids":\[[0-9,]*\],"fin'
    ask /v1/completions "$(completion 'Once upon a time' 12 1 "$more 1, \"stream\": true, \"n\": 2")"
    check "and streams of them" [ "$(ids prompt_token_ids)" = 2,2336,742,263,529,2,2336,742,263,529 ]
}

# What clients of other servers send as well. What would change the answer is refused.
test_neutral() {
    local path=/v1/chat/completions name hi='"messages": [{"role": "user", "content": "a"}], "max_tokens": 5, "seed": 1'
    same "llama.cpp's page" $path "{$hi" '"cache_prompt": true, "timings_per_token": true, "return_progress": true,
        "id_slot": -1, "reasoning_format": "auto", "backend_sampling": false, "dynatemp_range": 0,
        "dynatemp_exponent": 1, "xtc_probability": 0, "xtc_threshold": 0.1, "typ_p": 1, "repeat_last_n": 64,
        "dry_multiplier": 0.0, "dry_base": 1.75, "dry_allowed_length": 2, "dry_penalty_last_n": -1, "n_predict": -1'
    same "llama.cpp's server" /v1/completions '{"prompt": "a", "max_tokens": 5, "seed": 1' '"typical_p": 1.0,
        "mirostat": 0, "mirostat_tau": 5, "mirostat_eta": 0.1, "n_keep": 0, "ignore_eos": false, "grammar": "",
        "n_probs": 0, "lora": [], "speculative.n_max": 16'
    same "vLLM" $path "{$hi" '"repetition_penalty": 1.0, "min_tokens": 0, "stop_token_ids": [],
        "skip_special_tokens": true, "spaces_between_special_tokens": true, "length_penalty": 1.0, "priority": 3,
        "use_beam_search": false, "include_stop_str_in_output": false, "add_generation_prompt": true,
        "chat_template_kwargs": {"enable_thinking": false}, "request_id": "x", "bad_words": [],
        "stream_options": {"include_usage": true, "continuous_usage_stats": false}'
    same "Ollama, LM Studio" $path "{$hi" '"keep_alive": "5m", "think": false, "ttl": 300, "draft_model": "x"'
    same "OpenAI" $path "{$hi" '"user": "me", "metadata": {"a": "b"}, "store": true, "service_tier": "auto",
        "prompt_cache_key": "x", "tool_choice": "auto", "parallel_tool_calls": true, "verbosity": "medium"'
    same "OpenAI's responses" /v1/responses '{"input": "a", "max_output_tokens": 5, "seed": 1' '"store": false,
        "include": ["reasoning.encrypted_content"], "truncation": "disabled", "text": {"verbosity": "medium"}'
    for name in '"mirostat": 2' '"typical_p": 0.9' '"typical_p": true' '"min_tokens": 4' '"repetition_penalty": 1.1' \
        '"grammar": "root ::= \"a\""' '"ignore_eos": true' '"prompt_logprobs": 1' '"think": true' '"lora": [1]'; do
        name=${name#\"}
        refused 400 $path "${name%%\"*}" "{$hi, \"$name}"
    done
    for name in $(sed -nE 's/^    \{"([a-z_.]+)", [A-Z].*/\1/p' "$source/tools/peridot/serve/wire/neutral.c"); do
        check "openapi.json has $name" grep -qE "[(|]${name//./.*}[|)]" "$source/tools/peridot/serve/openapi.json"
    done
}

# DRY, XTC and top-n-sigma, by llama.cpp's names.
test_samplers() {
    local path=/v1/completions story='"prompt": "Once upon a time", "max_tokens": 40, "seed": 1' likely hot want more
    likely="$story, \"temperature\": 0" hot="$story, \"temperature\": 1, \"top_k\": 40"
    for more in '"dry_penalty_last_n": 0, "dry_allowed_length": 1' '"dry_allowed_length": 30' \
        '"dry_allowed_length": 1, "dry_sequence_breakers": ["a", "e", "i", "o", "u", "s", ".", ","]'; do
        same "DRY does nothing" $path "{$likely" "\"dry_multiplier\": 90, $more"
    done
    want=$(field text)
    ask $path "{$likely, \"dry_multiplier\": 90, \"dry_allowed_length\": 1, \"dry_penalty_last_n\": -1}"
    check "DRY changes what repeats itself" [ "$status" = 200 -a "$(field text)" != "$want" ]
    ask $path "{$hot, \"top_n_sigma\": 0.001}"
    check "top-n-sigma leaves the likeliest" [ "$(field text)" = "$want" ]
    same "XTC that is off" $path "{$hot" '"xtc_probability": 1, "xtc_threshold": 0.6, "top_n_sigma": -1'
    want=$(field text)
    ask $path "{$hot, \"xtc_probability\": 1, \"xtc_threshold\": 0.01}"
    check "XTC leaves out what is likely" [ "$status" = 200 -a "$(field text)" != "$want" ]
    refused 400 $path xtc_probability "{$hot, \"xtc_probability\": 1.5}"
    refused 400 $path top_n_sigma "{$hot, \"top_n_sigma\": \"1\"}"
    refused 400 $path dry_sequence_breakers "{$hot, \"dry_sequence_breakers\": \"a\"}"
    refused 400 $path "more than 64 texts" "{$hot, \"dry_sequence_breakers\": [\"a\"$(printf ',"a"%.0s' {1..64})]}"
    refused 400 $path "more than 64 bytes" "{$hot, \"dry_sequence_breakers\": [\"$(printf 'a%.0s' {1..65})\"]}"
}

# What is unknown, and null, changes nothing: a header names it.
test_ignored() {
    local path=/v1/chat/completions hi='"messages": [{"role": "user", "content": "a"}], "max_tokens": 5, "seed": 1'
    same "unknown parameters" $path "{$hi" '"foo": 1, "seed\u0000x": 3, "cache_salt": "x", "a\"b": 1, "grammar": null'
    same "what only llama.cpp's own interfaces have" $path "{$hi" '"input_extra": []'
    same "and Anthropic's has not" /v1/messages "{$hi" '"n_predict": 4, "t_max_predict_ms": 5'
    ask $path "{$hi, \"foo\": 1, \"bar\": null, \"b\\\"r\": 2, \"foo\": 3}" -D "$folder/headers"
    check "they are named once" matches headers '^Warning: 299 - "ignored: foo, b\?r"'
    ask $path "{$hi, \"foo\": 1, \"\": 1, \"\": 2}" -D "$folder/headers"
    check "a name may be empty" matches headers '^Warning: 299 - "ignored: foo, \?"'
    check "and once in the log" [ "$(grep -c '^ignored in a request: foo$' "$folder/log")" = 1 ]
    refused 400 $path 'Unrecognized request argument supplied: max_output_tokens' "{$hi, \"max_output_tokens\": 4}"
    ask /v1/messages "{$hi, \"context_management\": {\"edits\": []}, \"output_config\": {\"effort\": \"max\", \"x\": 1},
        \"thinking\": {\"type\": \"adaptive\", \"budget_tokens\": 0, \"display\": \"updates\"}}" -D "$folder/headers"
    check "what Claude Code sends is taken" [ "$status" = 200 ]
    check "an effort is ignored where no model thinks" matches headers '^Warning: 299 - "ignored: .*effort, x'
    ask /v1/responses '{"input": [{"type": "message", "role": "developer", "content": "d"}, {"role": "user",
        "content": "hi"}, {"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": "x"},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "ok"}, {"type": "web_search_call", "id": "w"}],
        "max_output_tokens": 4, "reasoning": {"effort": "max", "summary": "auto"}, "text": {"verbosity": "low"},
        "include": ["reasoning.encrypted_content"], "client_metadata": {"a": "b"},
        "tools": [{"type": "web_search"}, {"type": "namespace", "name": "mcp", "tools": []}]}' -D "$folder/headers"
    check "what Codex sends is taken" [ "$status" = 200 ]
    check "and what is left out named" matches headers \
        '^Warning: 299 - "ignored: reasoning, verbosity, web_search, web_search_call"'
    ask $path "{$hi, \"web_search_options\": {}}" -D "$folder/headers"
    check "searching is left out of chats, too" matches headers '^Warning: 299 - "ignored: web_search_options"'
    ask $path '{"max_tokens": 4, "messages": ['"$(message user hi)"', {"role": "assistant", "content": [{"type":
        "refusal", "refusal": "no"}]}, '"$(message user why)]}"
    check "a model may have refused" [ "$status" = 200 ]
    test_bodies
}

# Requests of programs that cannot be run here, made of the fields that their public sources have.
test_bodies() {
    local call='{"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{\"path\": \"a\"}"}}'
    local tool='{"type": "function", "function": {"name": "read", "description": "Reads.", "parameters": {"$schema":
        "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": {"path": {"type": "string"},
        "offset": {"type": "integer", "maximum": 9007199254740991}}, "required": ["path"],
        "additionalProperties": false}}}'
    local more='"tool_choice": "auto", "stream": true, "stream_options": {"include_usage": true}'
    ask /v1/chat/completions '{"model": "local", "max_tokens": 4, "temperature": 0.55, "top_p": 1, "messages": [
        {"role": "system", "content": "a"}, {"role": "system", "content": "b"}, {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "", "reasoning_content": "c", "tool_calls": ['"$call"']},
        {"role": "tool", "tool_call_id": "c1", "content": "d"}, {"role": "user", "content": [{"type": "text",
        "text": "e"}]}], "tools": ['"$tool"'], '"$more"', "reasoning_effort": "low", "promptCacheKey": "s",
        "chat_template_args": {"enable_thinking": true}, "store": false}'
    check "what opencode sends is taken" [ "$status" = 200 ]
    ask /v1/chat/completions '{"model": "local", "messages": [{"role": "system", "content": "a"}, {"role": "user",
        "content": "Generate a title for this conversation:\n"}, {"role": "user", "content": "hi"}],
        "max_tokens": 4, '"${more#*, }"'}'
    check "for a title, too" [ "$status" = 200 ]
    ask /v1/chat/completions '{"model": "local", "messages": [{"role": "system", "content": "a"}, {"role": "user",
        "content": [{"type": "text", "text": "b"}, {"type": "text", "text": "c"}]}, {"role": "assistant",
        "content": null, "tool_calls": ['"$call"']}, {"role": "tool", "content": "d", "tool_call_id": "c1"},
        {"role": "assistant", "content": []}, {"role": "user", "content": "e"}], "max_completion_tokens": 4,
        "temperature": 1.0, '"$more"', "parallel_tool_calls": false, "tools": ['"$tool"'], "prompt_cache_key": "k",
        "reasoning_effort": "medium"}'
    check "and what Zed sends" [ "$status" = 200 ]
    ask /api/chat '{"model": "local", "messages": [{"role": "system", "content": "a"}, {"role": "user", "content": "b"},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "read", "arguments": {}}}],
        "thinking": null}, {"role": "tool", "tool_name": "read", "content": "c"}], "stream": true, "keep_alive": -1,
        "options": {"num_ctx": 256, "num_predict": 4, "stop": [], "temperature": 1.0, "top_p": null}, "tools": [],
        "think": null}'
    check "to Ollama as well" [ "$status" = 200 ]
}

lacks() { ! contains "$1" "$2"; }

# Whatever the order of roles, a template that is strict of it is none the wiser, and every text is in the prompt.
test_orders() {
    local model=$goldens/gemma2-q8_0/model.gguf path=/v1/chat/completions order letter list least role i
    start --template llama2
    ask $path "$(chat 'lion lion lion' 1 1)"
    least=$(field prompt_tokens)
    for order in ssu sduu usau udu uu au uaau su us suCtu suCts suCu suaCt; do
        list=''
        for letter in $(grep -o . <<<"$order"); do
            case $letter in
            s) role=system ;; d) role=developer ;; u) role=user ;; a) role=assistant ;;
            t) list+=', {"role": "tool", "tool_call_id": "c", "content": "lion lion lion"}'; continue ;;
            C) list+=', {"role": "assistant", "content": "lion", "tool_calls": [{"id": "c", "type": "function",
                   "function": {"name": "f", "arguments": "{}"}}]}'; continue ;;
            esac
            list+=", $(message $role 'lion lion lion')"
        done
        ask $path "{\"messages\": [${list#, }], \"max_tokens\": 1}"
        if [[ $order == *C* ]]; then check "$order: never a template's words" lacks out alternate
        else
            check "$order is answered" [ "$status" = 200 ]
            check "$order: all of it is read" [ "$(field prompt_tokens)" -ge $((3 * ${#order} + least - 3)) ]
        fi
    done
    { printf '{"max_tokens": 1, "messages": ['
        for ((i = 0; i < 100000; i++)); do printf '%s,' '{"role": "user", "content": "the lion of the king"}'; done
        printf '{"role": "user", "content": "a"}]}'; } >"$folder/many"
    ask $path "@$folder/many" -m 20
    check "a hundred thousand of one role are joined in linear time" contains out context_length_exceeded
    stop
}

# raw BYTES: the statuses of what comes back for them.
raw() {
    local at=${url#http://}
    exec 3<>"/dev/tcp/${at%:*}/${at#*:}"
    printf "$1" >&3
    timeout 5 cat <&3 | grep -aoE 'HTTP/1\.1 [0-9]+' | cut -d' ' -f2 | tr '\n' ' '
    exec 3>&-
}

# The server may close before all was read, and the answer be lost with that.
one_refusal() { [ "$1" = "400 " ] || [ "$1" = "" ]; }

# Requests that hide another (tests/serve_attacks.py has more of them), and several in one piece.
test_framing() {
    local at='Host: localhost\r\n' second='GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'
    local post="POST /tokenize HTTP/1.1\r\n$at"
    check "two Content-Lengths" one_refusal "$(raw "${post}Content-Length: 2\r\nContent-Length: 60\r\n\r\n{}$second")"
    check "two Hosts" one_refusal "$(raw "GET /health HTTP/1.1\r\n${at}Host: example.org\r\n\r\n$second")"
    check "a length and chunks" one_refusal \
        "$(raw "${post}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n$second")"
    check "three requests in one piece" [ "200 200 200 " = \
        "$(raw "GET /health HTTP/1.1\r\n$at\r\n${post}Content-Length: 16\r\n\r\n{\"content\": \"a\"}$second")" ]
}

# More connections than the server holds, all from one address, with half a request line each: the oldest give way to
# those that ask, and one that waits for its answer does not.
test_crowd() {
    local at=${url#http://} i fd waiting crowd=()
    ulimit -n 2048
    send waiting /v1/completions "$(completion 'The king said' 400 1 "$endless, \"n\": 8")"
    waiting=${sent[0]}
    for i in $(seq 50); do [ "$(gauge running)" = 8 ] && break; sleep 0.02; done
    for i in $(seq 1100); do
        exec {fd}<>"/dev/tcp/${at%:*}/${at#*:}"
        printf 'GET /hea' >&$fd
        crowd+=($fd)
    done
    get /health -m 10
    check "a crowd keeps nobody out" [ "$status" = 200 ]
    printf 'lth HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&$fd
    check "the newest of it are still there" [ "$(timeout 5 head -1 <&$fd | tr -d '\r')" = 'HTTP/1.1 200 OK' ]
    check "the oldest are not" [ "$(timeout 5 cat <&${crowd[0]} 2>/dev/null; echo $?)" = 0 ]
    for fd in "${crowd[@]}"; do exec {fd}>&-; done
    kill -0 $waiting 2>/dev/null || wait $waiting
    check "one that waits for its answer stays" [ $? = 0 ]
    kill $waiting 2>/dev/null
    sent=()
}

# The same seed gives the same text among others that come and go.
test_together() {
    local i want
    ask /v1/chat/completions "$(chat 'The king said' 40 7)"
    want=$(field content)
    for i in $(seq 12); do
        if [ $((i % 3)) = 0 ]; then send together.$i /v1/chat/completions "$(chat 'The king said' 40 7)"
        else send together.$i /v1/chat/completions "$(chat "Number $i of many" 40 $i)"; fi
    done
    await
    for i in 3 6 9 12; do
        answer together.$i
        check "text $i is what it is alone" [ "$(field content)" = "$want" ]
    done
}

# waits TEST NUMBER: until the number of those that wait for their turn is so.
waits() {
    for _ in $(seq 200); do
        [ "$(gauge waiting)" "$@" ] && return
        sleep 0.02
    done
    return 1
}

# An answer with X-Stream-Id goes on without its client, and can be read from its first byte, and stopped.
test_streams_kept() {
    local id=0123456789abcdef-_AZ i whole
    ask /v1/chat/completions "$(chat 'Once upon a time' 24 1 ', "stream": true')" -H "X-Stream-Id: $id"
    whole=$(deltas)
    check "a stream that is kept is one as ever" [ "$status" = 200 -a ${#whole} -gt 20 ]
    get /v1/streams/$id -N
    check "it is there again" [ "$status" = 200 ]
    check "from its first byte to its last" [ "$(deltas)" = "$whole" ]
    ask /v1/chat/completions "$(chat a 1 1 ', "stream": true')" -H "X-Stream-Id: $id"
    check "an id that is taken: 409" [ "$status" = 409 ]
    for i in short "${id}%" "$(printf 'a%.0s' $(seq 65))"; do
        ask /v1/chat/completions "$(chat a 1 1 ', "stream": true')" -H "X-Stream-Id: $i"
        check "no id: 400" [ "$status" = 400 ]
    done
    send left /v1/chat/completions "$(chat 'The king said' 400 1 "$endless, \"stream\": true")" \
        -H 'X-Stream-Id: left-left-left-left'
    for _ in $(seq 500); do grep -q '"content":"[^"]' "$folder/left" 2>/dev/null && break; sleep 0.01; done
    kill "${sent[@]}"
    wait "${sent[@]}" 2>/dev/null
    sent=()
    get /v1/streams/left-left-left-left -N
    check "a reply whose client has left is written to its end" matches out '"finish_reason":"length"'
    check "which begins with what the client has seen" \
        cmp -s -n "$(wc -c <"$folder/left")" "$folder/left" "$folder/out"
    send stopped /v1/chat/completions \
        "$(chat 'The king said' 400 1 "$endless, \"stream\": true, \"stream_options\": {\"include_usage\": true}")" \
        -H 'X-Stream-Id: stop-stop-stop-stop'
    for _ in $(seq 500); do grep -q '"content":"[^"]' "$folder/stopped" 2>/dev/null && break; sleep 0.01; done
    get /v1/streams/stop-stop-stop-stop -X DELETE
    check "DELETE stops one" contains out '"stopped": true'
    await
    answer stopped
    check "which has an end" matches out '"finish_reason":"stop"'
    check "and the count of what was written" matches out '"completion_tokens":[1-9]'
    check "which is not all" [ "$(field completion_tokens)" -lt 400 ]
    get /v1/streams/none-none-none-none
    check "none of that id: 404" [ "$status" = 404 ]
    get /v1/streams/none-none-none-none -X DELETE
    check "nor to be stopped" [ "$status" = 404 ]
}

# A line for each request.
test_log() {
    local line='^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8} '
    check "the log says when a model was loaded" matches log "${line}loaded stories in [0-9.]+ s$"
    line+='127.0.0.1 POST /v1/chat/completions 200, '
    check "when, who, what, which model, how many tokens and how fast" \
        matches log "${line}stories: 5 \+ 24 tokens \(0 cached\), [0-9.]+ tokens/s, [0-9.]+ s$"
    check "health checks are not logged" [ "$(grep -c '/health' "$folder/log")" = 0 ]
}

# On every interface a stream whose client goes ends at once, whether it is written or waits for its turn.
test_streams_closed() {
    local body paths=() bodies=() i at n
    while read -r at body; do
        paths+=("$at")
        bodies+=("$body")
    done <<END
/v1/chat/completions {"messages": [$(message user a)], "max_tokens": 500, "n": 8, "stream": true$endless}
/v1/completions {"prompt": "a", "max_tokens": 500, "n": 8, "stream": true$endless}
/v1/responses {"input": "the king", "stream": true, "temperature": 2}
/v1/messages {"messages": [$(message user a)], "max_tokens": 500, "stream": true, "temperature": 2}
/api/chat {"model": "x", "messages": [$(message user a)], "options": {"temperature": 2}}
/api/generate {"model": "x", "prompt": "the king", "options": {"temperature": 2}}
END
    start --parallel 1
    send first "${paths[0]}" "${bodies[0]}"
    check "of eight texts seven wait" waits -ge 6
    for i in "${!paths[@]}"; do send closed.$i "${paths[i]}" "${bodies[i]}"; done
    check "and those of others" waits -ge 20
    n=$(gauge generated_tokens_total)
    kill "${sent[@]:1}"
    check "which no longer do when their clients are gone" waits -le 7
    kill "${sent[0]}"
    for _ in $(seq 100); do [ "$(gauge running)" = 0 ] && break; sleep 0.02; done
    check "nor is the first one written" [ "$(gauge running) $(gauge waiting)" = "0 0" ]
    n=$(($(gauge generated_tokens_total) - n))
    check "in place of all that, $n tokens were written" [ $n -lt 3000 ]
    wait "${sent[@]}" 2>/dev/null
    sent=()
    stop
}

# A text whose connection is closed leaves the cache as it found it.
test_closed() {
    local free stream long
    long=$(printf 'the lion %.0s' $(seq 35))
    start
    ask /v1/completions "$(completion "$long" 20 1)"
    free=$(gauge cache_free_positions)
    for stream in true false; do   # of a new prompt, and of one that goes on from what is kept
        ask /v1/completions "$(completion 'The king said' 400 1 "$endless, \"stream\": $stream")" -m 0.3
        ask /v1/completions "$(completion "$long" 400 1 "$endless, \"stream\": $stream")" -m 0.3
    done
    for _ in $(seq 20); do [ "$(gauge running)" = 0 ] && break; sleep 0.1; done
    check "a closed connection ends its text" [ "$(gauge running)" = 0 ]
    check "and frees what it took of the cache" [ "$(gauge cache_free_positions)" = "$free" ]
    ask /v1/completions "$(completion "$long" 1 1)"
    check "but not what was kept before" [ "$(field cached_tokens)" -ge 60 ]
    stop
    test_streams_closed
    check "it waits for nobody where nobody waits" [ "$(grep -c 'shutting down' "$folder/log")" = 0 ]
}

test_keys() {
    printf 'first\n\nsecond\n' >"$folder/keys"
    start --api-key-file "$folder/keys" --parallel 1 --queue 0 --log-format json --alias mine
    get /v1/models
    check "without a key: 401" [ "$status" = 401 ]
    get /v1/models -H 'Authorization: Bearer secon'
    check "with half of one: 401" [ "$status" = 401 ]
    get /v1/models -H 'Authorization: Bearer second'
    check "with a key: 200" [ "$status" = 200 ]
    check "--alias names the model" [ "$(field id)" = mine ]
    get /health
    check "/health needs no key" [ "$status" = 200 ]
    ask /v1/chat/completions "$(chat a 9 1 "$endless, \"stream\": true")" -H 'Authorization: Bearer first' \
        -H 'X-Stream-Id: kept-kept-kept-kept' -H 'X-Request-Id: a"b' -D "$folder/headers"
    check "a request's id is told" grep -qi '^X-Request-Id: a?b' "$folder/headers"
    send slow /v1/chat/completions "$(chat 'The king said' 400 1 "$endless")" -H 'Authorization: Bearer first'
    for _ in $(seq 50); do
        get /metrics -H 'Authorization: Bearer first'
        contains out 'peridot_running 1' && break
        sleep 0.05
    done
    ask /v1/chat/completions "$(chat a 1 1)" -H 'Authorization: Bearer first' -D "$folder/headers"
    check "no room for more: 429" [ "$status" = 429 ]
    check "and when to try again" grep -qi '^Retry-After: ' "$folder/headers"
    ask /v1/chat/completions "$(chat a 1 1 ', "stream": true')" -H 'Authorization: Bearer first'
    check "a stream that there is no room for has not begun: 429, not $status" [ "$status" = 429 ]
    get /v1/streams/kept-kept-kept-kept -H 'Authorization: Bearer first'
    check "a stream is there for its key" [ "$status" = 200 ]
    get /v1/streams/kept-kept-kept-kept -H 'Authorization: Bearer second'
    check "and for no other" [ "$status" = 404 ]
    local begun=${EPOCHREALTIME/[.,]/} end='"finish_reason"'
    stop
    await
    # All that it gets, where the device is slow.
    [ $((${EPOCHREALTIME/[.,]/} - begun)) -lt 8000000 ] || end='"the server is shutting down"'
    check "what was at work got its time" grep -q "$end" "$folder/slow"
    check "it says for whom it waits" matches log 'shutting down: waiting up to 10 s for 1 request$'
    check "health checks are not logged" [ "$(grep -c '/health' "$folder/log")" = 0 ]
    check "a model that is loaded is" matches log '^\{"time": [0-9]+, "event": "loaded", "model": "mine", "seconds": '
    check "who asked, how fast, and the request's id" matches log '"path": "/v1/chat/completions", "status": 200, '\
'"client": "127.0.0.1", .*"tokens_per_second": [1-9].*"model": "mine", "request_id": "a\?b"\}$'
    check "logs are JSON" matches log '^\{"time": [0-9]+, "method": "GET", "path": "/v1/models", "status": 401, '
    check "and say why a request was refused" matches log '"status": 429, .*"error": "[^"]*later[^"]*"\}$'
    check "and without texts" [ "$(grep -c king "$folder/log")" = 0 ]
}

# A short text need not wait for a long one, which gives way and goes on later; and who sends too many is refused alone.
test_share() {
    local want i one=(-H 'Authorization: Bearer first') other=(-H 'Authorization: Bearer second')
    printf 'first\nsecond\n' >"$folder/keys"
    start --api-key-file "$folder/keys" --parallel 1 --queue 3
    # with WORD: how many of those that were sent have an answer with it.
    with() { cat "$folder"/share.* 2>/dev/null | grep -o "$1" | wc -l; }
    ask /v1/completions "$(completion 'The king said' 400 1 "$endless")" "${one[@]}"
    want=$(field text)
    for i in 1 2 3 4 5 6; do
        send share.$i /v1/completions "$(completion 'The king said' 400 1 "$endless")" "${one[@]}"
    done
    for _ in $(seq 100); do [ "$(with rate_limit_exceeded)" = 2 ] && break; sleep 0.02; done
    check "of six long requests two are too many" [ "$(with rate_limit_exceeded)" = 2 ]
    ask /v1/completions "$(completion 'A cat' 2 1)" "${other[@]}"
    check "another client has room" [ "$status" = 200 ]
    check "in place of one more of these" [ "$(with rate_limit_exceeded)" = 3 ]
    check "and need not wait for them" [ "$(with finish_reason)" -lt 3 ]
    ask /v1/completions "$(completion 'A dog' 2 1)" "${one[@]}"
    check "a short request of the same client finds a place as well" [ "$status" = 200 ]
    await
    curl -s "${one[@]}" "$url/metrics" >"$folder/out"
    check "a long one gave way" [ "$(sed -n 's/^peridot_preemptions_total //p' "$folder/out")" -ge 1 ]
    for i in $(grep -l finish_reason "$folder"/share.*); do
        cp "$i" "$folder/out"
        check "and went on to the same end" [ "$(field text)" = "$want" ]
    done
    stop
}

# The worst that one client can ask (tests/serve_worst.py), and what others get meanwhile.
test_worst() {
    local kinds=long
    start
    if [ "${PERIDOT_TEST_ALL:-}" ]; then
        kinds="fitting spaces left patterns pages streams long turns"
        ulimit -n 4096
    fi
    python3 "$source/tests/serve_worst.py" "$url" $kinds --pid $server --seconds 1 >"$folder/out" 2>&1
    check "the worst requests keep nobody waiting" [ $? = 0 ]
    cat "$folder/out"
    kill -9 $server 2>/dev/null
    wait $server
    start --ctx 2048
    # What 100,000 messages take grows with their number, and not with its square, which would be minutes.
    { printf '{"full": "drop", "max_tokens": 1, "messages": [%s' "$(message user 'It is now.')"
        for _ in $(seq 50000); do
            printf ', {"role": "assistant", "content": "Yes."}, {"role": "user", "content": "And now?"}'
        done
        printf ']}'
    } >"$folder/turns"
    ask /v1/chat/completions "@$folder/turns" -m 20
    check "many turns are left out in time" [ "$status" = 200 -a "$(field dropped_messages)" -gt 90000 ]
    printf '{"max_tokens": 1, "prompt": "%s"}' "$(head -c 300000 /dev/zero | tr '\0' a)" >"$folder/long"
    ask /v1/completions "@$folder/long"
    check "what is too long by its size is not counted" matches out 'resulted in at least [0-9]+ tokens'
    check "which is refused" [ "$status" = 400 ]
    stop
}

# Drafts change no text, and are counted.
test_draft() {
    local want
    start
    ask /v1/completions "$(completion 'The king said' 60 1 "$endless")"
    want=$(field text)
    stop
    start --draft "$model" --draft-tokens 3 --parallel 1
    ask /v1/completions "$(completion 'The king said' 60 1 "$endless")"
    check "a draft model changes no text" [ "$(field text)" = "$want" ]
    check "drafted tokens are counted" [ "$(gauge drafted_tokens_total)" -gt 30 ]
    check "and those that were accepted" [ "$(gauge accepted_tokens_total)" = "$(gauge drafted_tokens_total)" ]
    stop
}

# Where all do not fit the cache some wait, or give up their place for a time; their texts are the same.
test_small_cache() {
    local i want=()
    start --ctx 512 --parallel 4
    for i in 1 2 3 4; do
        ask /v1/completions "$(completion 'The king said' 300 $i "$endless")"
        want[i]=$(field text)
    done
    for i in 1 2 3 4; do send small.$i /v1/completions "$(completion 'The king said' 300 $i "$endless")"; done
    await
    for i in 1 2 3 4; do
        answer small.$i
        check "text $i is the same though the cache is small" [ "$(field text)" = "${want[i]}" ]
    done
    check "some gave up their place" [ "$(gauge preemptions_total)" -gt 0 ]
    ask /v1/completions "$(completion "$(printf 'the lion %.0s' $(seq 400))" 1 1)"
    check "what never fits is refused" [ "$status" = 400 ]
    stop
}

# start_faulty ARGUMENTS...: a server whose device breaks when a fault of layer_faults.c is written to $folder/fault.
# Without a cache folder nothing is tuned for what calls itself a GPU.
start_faulty() {
    VK_ADD_LAYER_PATH=$(dirname "$peridot")/tests/layers VK_INSTANCE_LAYERS=VK_LAYER_PERIDOT_faults \
        PERIDOT_TEST_FAULT=$folder/fault XDG_CACHE_HOME= HOME= start "$@"
}

# break_device FAULT: once it is at work on three texts.
break_device() {
    for _ in $(seq 100); do [ "$(gauge running)" = 3 ] && break; sleep 0.02; done
    printf '%s' "$1" >"$folder/fault"
}

# A conversation that no longer fits loses its oldest turns, or is refused; a reply without a limit leaves room.
test_full() {
    local path=/v1/chat/completions system turns='' more="$endless, \"seed\": 1" i n
    local lion=$(printf 'the lion %.0s' $(seq 60))   # 120 tokens
    system=$(message system 'Be kind.')
    start
    # turn FULL TEXT: a next turn with the reply of the one before, as the page has it.
    turn() {
        turns="$turns, $(message user "$2")"
        ask $path "{\"messages\": [$system$turns], \"full\": \"$1\"$more}"
    }
    answered() { turns="$turns, {\"role\": \"assistant\", \"content\": \"$(field content)\"}"; }
    turn drop 'The king said'
    check "a reply without a limit leaves a quarter free" [ "$(field total_tokens)" = 384 ]
    check "nothing is left out" [ "$(field dropped_messages)" = 0 ]
    answered
    turn drop 'And then?'
    check "so that the next turn fits" [ "$(field dropped_messages)" = 0 ]
    check "whose reply has an eighth" [ "$(field completion_tokens)" = 64 ]
    answered
    turn drop 'And then?'
    check "the oldest turn is left out, and nothing else" [ "$(field dropped_messages)" = 2 ]
    cp "$folder/out" "$folder/dropped"
    ask $path "{\"messages\": [$system${turns#*assistant*\}}], \"full\": \"drop\"$more}"
    check "the system's message stays: the text is that without the turn" \
        [ "$(field content)" = "$(cp "$folder/dropped" "$folder/out"; field content)" ]
    ask $path "{\"messages\": [$system$turns], \"full\": \"drop\", \"stream\": true$more}"
    check "the first event of a stream says so" grep -q '"dropped_messages":2' <(head -1 "$folder/out")
    check "only that" [ "$(grep -c dropped_messages "$folder/out")" = 1 ]
    refused 400 $path 'The conversation no longer fits' "{\"messages\": [$system$turns], \"full\": \"refuse\"$more}"
    ask $path "{\"messages\": [$system$turns], \"full\": \"drop\", \"max_tokens\": 4$more}"
    check "a short reply needs less room" [ "$(field dropped_messages)" = 0 ]
    ask $path "{\"messages\": [$(message user 'The king said')], \"full\": \"drop\", \"max_tokens\": -1$more}"
    check "no limit is no limit" [ "$(field total_tokens)" = 384 ]
    turns=
    for i in $(seq 9); do turns="$turns, $(message user "$lion"), $(message assistant "$lion")"; done
    turn drop 'And then?'
    check "as many as need to be: $(field dropped_messages)" [ "$(field dropped_messages)" = 16 ]
    refused 400 $path 'maximum context length is 512' "{\"messages\": [$system$turns]$more}"
    turns=
    for i in $(seq 14); do turns="$turns, $(message user "${lion:0:72}"), $(message assistant "${lion:0:72}")"; done
    turn drop 'And then?'
    n=$(field dropped_messages)
    # Half of the context was free when the messages no longer fit first, which is a turn or two ago.
    check "turns go until half of the context is free: $n messages, $(field prompt_tokens) tokens" \
        [ "$n" -ge 10 -a "$(field prompt_tokens)" -le 330 ]
    answered
    turn drop 'And then?'
    check "so that the next turn leaves out no others" [ "$(field dropped_messages)" = "$n" ]
    check "and reads only what is new" [ "$(field cached_tokens)" -gt 150 ]
    turn drop "$lion $lion $lion $lion $lion"
    check "a last message that is too long is refused" contains out 'The last message is too long'
    refused 400 $path 'full' "{\"messages\": [$system$turns], \"full\": 3}"
    stop
    start --full refuse
    refused 400 $path 'The conversation no longer fits' "{\"messages\": [$system$turns], \"full\": \"drop\"$more}"
    stop
    python3 "$source/tests/real_checks.py" --turns "$peridot" "$model" "$folder" 12 4 --ctx 128 --template plain \
        >"$folder/out" 2>&1
    check "with edits, retries, schemas and drafts replies are as from the beginning" [ $? = 0 ]
}

# A device that is lost in the middle of texts: these go on where they were, and are the same.
test_lost() {
    local want same json
    start_faulty --parallel 3
    ask /v1/chat/completions "$(chat 'The king said' 200 9 ', "stop": ["zzzz"]')"
    want=$(field content)
    ask /v1/completions "$(completion 'The queen said' 200 9 ', "logprobs": 0')"
    same=$(field text)
    ask /v1/completions "$(completion 'A person' 300 9 "$(flat_schema "$person")")"
    json=$(field text)
    send slow /v1/chat/completions "$(chat 'The king said' 200 9 ', "stop": ["zzzz"], "stream": true')"
    send slow2 /v1/completions "$(completion 'The queen said' 200 9 ', "logprobs": 0')"
    send slow3 /v1/completions "$(completion 'A person' 300 9 "$(flat_schema "$person")")"
    break_device lose
    await
    answer slow
    check "a text goes on after its device was lost" [ "$(deltas)" = "$want" ]
    answer slow2
    check "and so does another, with its probabilities" [ "$(field text)" = "$same" ]
    check "all of them" [ "$(grep -oE '"token_logprobs":[^]]*' "$folder/out" | tr -cd , | wc -c)" = 199 ]
    answer slow3
    check "and JSON" [ "$(field text)" = "$json" ]
    check "it was lost once" [ "$(gauge lost_devices_total)" = 1 ]
    ask /v1/completions '{"prompt": "The queen said", "max_tokens": 4}'
    check "and the server goes on" [ "$status" = 200 ]
    stop
}

# A GPU that does not come back is lost after 30 s (2 s here). Until then all but texts is answered, and requests that
# come meanwhile are as well, once the model was opened again. Freed memory is overwritten, lest it be of use.
test_hang() {
    local i want=() later=() wanted=()
    MALLOC_PERTURB_=165 PERIDOT_TEST_DISCRETE=1 start_faulty --parallel 3 --precision exact
    for i in 1 2 3; do
        ask /v1/completions "$(completion 'The king said' 150 $i "$endless")"
        want[i]=$(field text)
    done
    for i in '' "$(nested_schema "$person")" ', "response_format": {"type": "json_object"}' ', "stop": ["zzzz"]'; do
        later+=("$(chat 'A person' 60 3 "$i")")
        ask /v1/chat/completions "${later[-1]}"
        wanted+=("$(field content)")
    done
    for i in 1 2 3; do send hung.$i /v1/completions "$(completion 'The king said' 150 $i "$endless")"; done
    break_device hang
    while [ -e "$folder/fault" ]; do sleep 0.02; done
    for i in "${!later[@]}"; do
        send later.$i /v1/chat/completions "${later[i]}"
        send stream.$i /v1/chat/completions "${later[i]%\}}, \"stream\": true, \"sse_ping_interval\": 0.2}"
    done
    get /health -m 1
    check "/health is answered while the device hangs" [ "$status" = 200 ]
    ask /tokenize '{"content": "Once upon a time"}' -m 1
    check "/tokenize too" [ "$status" = 200 ]
    check "/metrics too" [ "$(gauge running)" = 3 ]
    check "it is not lost yet" [ "$(gauge lost_devices_total)" = 0 ]
    await
    for i in 1 2 3; do
        answer hung.$i
        check "text $i goes on after its device hung" [ "$(field text)" = "${want[i]}" ]
    done
    for i in "${!later[@]}"; do
        answer later.$i
        check "request $i that came while it hung is answered" [ "$(field content)" = "${wanted[i]}" ]
        answer stream.$i
        check "and so is its stream" [ "$(deltas)" = "${wanted[i]}" ]
        check "which has comments meanwhile" [ "$(grep -c '^:$' "$folder/out")" -ge 2 ]
    done
    check "it was lost once" [ "$(gauge lost_devices_total)" = 1 ]
    check "the log says why" contains log 'no response for 30 s); reopening the model'
    if [ "${PERIDOT_TEST_ALL:-}" ]; then   # where not even the driver comes back only the process can end
        printf block >"$folder/fault"
        curl -s -m 90 -o /dev/null -d '{"prompt": "The king said"}' "$url/v1/completions"
        wait $server
        status=$?
        check "a driver that does not come back ends the server with status 1, not $status" [ $status = 1 ]
        check "and it says so" grep -q '^peridot: the device has not responded for 6[0-9] s' "$folder/log"
    else
        send hung /v1/completions "$(completion 'The king said' 150 1 "$endless")"
        printf block >"$folder/fault"
        while [ -e "$folder/fault" ]; do sleep 0.02; done
        SECONDS=0
        kill -TERM $server
        wait $server
        status=$?
        check "SIGTERM ends a server whose device does not come back, with status 1, not $status" [ $status = 1 ]
        check "at once" [ $SECONDS -lt 10 ]   # 1.5 s, and no grace, after which the status is 0
    fi
}

# The first vector of the answer, a number a line; of peridot embed the same.
vector() { sed 's/.*"index":0,"embedding":\[//; s/\].*//' "$folder/out" | tr , '\n'; }
embedded() { "$peridot" embed -m "$model" "$@" 2>/dev/null | tr -d '[] ' | tr , '\n'; }
same_vector() {
    paste <(vector) <(embedded "$@") | awk '{ d = $1 - $2; if (NF != 2 || d * d > 1e-10) exit 1 } END { exit !NR }'
}

test_embedding_model() {
    local model=$goldens/embedding-gemma
    start
    ask /v1/embeddings '{"input": ["the cat", "a"]}'
    check "an embedding model's vectors are those of peridot embed" same_vector "the cat"
    ask /v1/embeddings '{"input": "the cat", "dimensions": 16, "task": "document"}'
    check "with as many dimensions and the task that are asked for" \
        same_vector --dimensions 16 --task document "the cat"
    check "which are so many" [ "$(vector | wc -w)" = 16 ]
    ask /v1/embeddings '{"input": "the cat", "dimensions": null, "pooling": "last"}'
    check "or pooled as is asked for" same_vector --pool last "the cat"
    for i in 1 2 3 4 5; do send e$i /v1/embeddings "{\"input\": \"$(printf 'the cat %.0s' $(seq $i))\"}"; done
    await
    for i in 1 5; do
        answer e$i
        check "texts of unlike lengths at once: number $i" same_vector "$(printf 'the cat %.0s' $(seq $i))"
    done
    refused 400 /v1/embeddings "have 48 dimensions" '{"input": "a", "dimensions": 49}'
    refused 400 /v1/embeddings "tasks" '{"input": "a", "task": "poetry"}'
    refused 400 /v1/chat/completions "embedding model" "{\"messages\": [$(message user Hi)]}"
    refused 400 /v1/completions "embedding model" '{"prompt": "a"}'
    stop
}

fails_with 1 --insecure serve -m "$model" --port 0 --host 0.0.0.0
fails_with 1 no-such-host serve -m "$model" --port 0 --host no-such-host.invalid
fails_with 1 none.gguf serve -m "$folder/none.gguf" --port 0
fails_with 2 '--cors' serve --cors '*'
start
test_pages
test_chat
test_progress
test_json
test_schemas
test_prefix
test_completions
test_refused
test_lenient
test_token_ids
test_neutral
test_samplers
test_ignored
test_together
test_streams_kept
test_framing
test_log
test_crowd
stop
test_embedding_model
test_windows
test_closed
test_keys
test_orders
test_share
test_worst
test_draft
test_small_cache
test_full
test_lost
test_hang
finish
