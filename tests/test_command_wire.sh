#!/usr/bin/env bash
# peridot serve in the words of others than OpenAI: Anthropic's messages, and Ollama's interface, as curl sees them.
# Their own clients are in test_command_serve_clients.sh.
. "$(dirname "$0")/serve.sh"
"$(dirname "$peridot")/tests/write_thinkers" "$folder" || exit 1

hi='"messages": [{"role": "user", "content": "Once upon a time"}]'
# event NAME, data NAME: how many events are called so, and what the last of them has.
event() { grep -c "^event: $1\$" "$folder/out"; }
data() { grep -A1 "^event: $1\$" "$folder/out" | sed -n 's/^data: //p' | tail -1; }
has() { grep -qF -- "$2" <<<"$1"; }
# lines NAME: the strings of that name in a stream of lines, as one.
lines() {
    grep -oE "\"$1\":\"([^\"\\\\]|\\\\.)*\"" "$folder/out" | sed -E 's/^"[a-z]+":"(.*)"$/\1/' | tr -d '\n'
}
# joined NAME: the strings of that name in a stream, as one.
joined() {
    sed -n 's/^data: //p' "$folder/out" | grep -oE "\"$1\":\"([^\"\\\\]|\\\\.)*\"" | sed -E 's/^"[a-z]+":"(.*)"$/\1/' |
        tr -d '\n'
}

# refused_plainly STATUS PATH TEXT BODY: an error as Ollama's clients know it.
refused_plainly() {
    ask "$2" "$4"
    check "$2 ${4:0:200}: status $status, not $1" [ "$status" = "$1" ]
    check "$2 ${4:0:200}: a sentence" matches out '^\{"error":".*"\}$'
    check "$2 ${4:0:200}: says '$3'" contains out "$3"
}

# ---- Anthropic ----

# anthropic_refused STATUS TYPE TEXT BODY [CURL_OPTIONS...]
anthropic_refused() {
    local details=',"details":\{"error_code":"[a-z_]+"\}'
    ask /v1/messages "$4" "${@:5}"
    check "${4:0:200}: status $status, not $1" [ "$status" = "$1" ]
    check "${4:0:200}: an error of the type $2" \
        matches out "^\\{\"type\":\"error\",\"error\":\\{\"type\":\"$2\",\"message\":\"[^\"]*\"($details)?\\}\\}\$"
    check "${4:0:200}: says '$3'" contains out "$3"
}

test_messages() {
    local n text long="There was a king who had three sons and a daughter, and they lived by the sea." path=/v1/messages
    ask $path "{$hi, \"max_tokens\": 24, \"seed\": 1}"
    check "a message is 200" [ "$status" = 200 ]
    text=$(field text)
    check "it has a text" [ ${#text} -gt 20 ]
    check "says that it was cut" contains out '"stop_reason":"max_tokens","stop_sequence":null'
    check "and counts tokens" contains out '"usage":{"input_tokens":5,"cache_creation_input_tokens":0,'
    ask /v1/chat/completions "$(chat 'Once upon a time' 24 1)"
    check "its text is that of a chat completion" [ "$(field content)" = "$text" ]
    ask /messages "{$hi, \"max_tokens\": 24, \"seed\": 1}"
    check "/messages is /v1/messages" [ "$(field text)" = "$text" ]
    for n in 1 2; do
        ask $path "{\"messages\": [$(message user "$long")],
            \"max_tokens\": 1}"
    done
    check "what the cache had is counted apart" matches out '"input_tokens":1,.*"cache_read_input_tokens":[12][0-9],'
    ask $path "{$hi, \"max_tokens\": 60, \"seed\": 1, \"stop_sequences\": [\"zzzz\", \"${text:5:6}\"]}"
    check "a stop sequence ends it" [ "$(field text)" = "${text:0:5}" ]
    check "and is named" contains out "\"stop_reason\":\"stop_sequence\",\"stop_sequence\":\"${text:5:6}\""
    ask $path '{"messages": [{"role": "user", "content": [{"type": "text", "text": "Once upon"},
        {"type": "text", "text": " a time", "cache_control": {"type": "ephemeral"}}]}], "max_tokens": 24, "seed": 1}'
    check "content may come in blocks" [ "$(field text)" = "$text" ]
    ask $path "{\"messages\": [$(message user 'Once upon a time'), $(message assistant ' there was'),
        $(message user a), $(message user b)], \"system\": [{\"type\": \"text\", \"text\": \"Be brief.\"}],
        \"max_tokens\": 4, \"temperature\": 0, \"top_p\": 0.9, \"top_k\": 5, \"metadata\": {\"user_id\": \"me\"},
        \"service_tier\": \"auto\", \"tools\": [], \"thinking\": {\"type\": \"adaptive\"}}" \
        -H 'anthropic-version: 2023-06-01' -H 'anthropic-beta: one,two'
    check "systems, turns and what changes nothing are accepted" [ "$status" = 200 ]
    ask $path '{"messages": [{"role": "user", "content": [{"type": "document", "source": {"type": "content",
        "content": [{"type": "text", "text": "Once upon"}]}}, {"type": "text", "text": " a time"}]}], "max_tokens": 24,
        "seed": 1}'
    check "a document may be made of blocks" [ "$(field text)" = "$text" ]
    ask $path '{"messages": [{"role": "user", "content": [{"type": "search_result", "title": "Once", "source": "upon",
        "content": [{"type": "text", "text": "a time"}]}]}], "max_tokens": 24, "seed": 1}'
    n=$(field text)
    ask $path "{\"messages\": [$(message user 'Once\nupon\na time')], \"max_tokens\": 24, \"seed\": 1}"
    check "what was found is its title, its source and its text" [ "$(field text)" = "$n" ]
    ask $path "{$hi, \"max_tokens\": 1, \"mcp_servers\": [{\"type\": \"url\"}]}" -D "$folder/headers"
    check "servers of tools are left out" matches headers '^Warning: 299 - "ignored: mcp_servers"'
}

# A reply that is begun goes on as the one that it begins.
test_prefill() {
    local text begun path=/v1/chat/completions short='"max_tokens": 4, "temperature": 0'
    local first=$(message user 'Once upon a time')
    ask $path "{\"messages\": [$first], \"max_tokens\": 12, \"temperature\": 0}"
    text=$(field content)
    begun=$(cut -d ' ' -f 1-4 <<<"$text")
    [ "${text:0:1}" != ' ' ] || begun=" $(cut -d ' ' -f 2-4 <<<"$text")"
    ask $path "{\"messages\": [$first, $(message assistant "$begun")], \"continue_final_message\": true,
        \"add_generation_prompt\": false, $short}"
    check "continue_final_message is answered" [ "$status" = 200 ]
    check "with what comes next" [ "${text#"$begun"}" != "$text" ]
    check "and nothing else" [ -n "$(field content)" ]
    check "as it came before" has "$text" "$begun$(field content)"
    cp "$folder/out" "$folder/chat"
    ask /v1/messages "{\"messages\": [$first, $(message assistant "$begun")], $short}"
    check "Anthropic's last message of the assistant is continued, too" \
        [ "$(field text)" = "$(sed -nE 's/.*"content":"([^"]*)".*/\1/p' "$folder/chat")" ]
    ask $path "{\"messages\": [$first], \"continue_final_message\": true, $short}"
    check "the user's cannot be continued" [ "$status" = 400 ]
    check "which is said" contains out 'it must be a text of the assistant'
    ask $path "{\"messages\": [$first], \"add_generation_prompt\": false, $short}"
    check "and a turn that is not opened needs one" contains out 'only false with continue_final_message'
}

test_messages_stream() {
    local path=/v1/messages text
    ask $path "{$hi, \"max_tokens\": 12, \"seed\": 1}"
    text=$(field text)
    ask $path "{$hi, \"max_tokens\": 12, \"seed\": 1, \"stream\": true}" -D "$folder/headers"
    check "a stream is one of events" matches headers '^Content-Type: text/event-stream'
    check "it begins with its message" matches out '^event: message_start'
    check "which has nothing yet" has "$(data message_start)" '"content":[],"stop_reason":null,"stop_sequence":null'
    check "it has a ping" [ "$(event ping)" = 1 ]
    check "one block" [ "$(event content_block_start) $(event content_block_stop)" = "1 1" ]
    check "deltas that are its text" [ "$(joined text)" = "$text" ]
    check "why it ended" has "$(data message_delta)" '"delta":{"stop_reason":"max_tokens","stop_sequence":null}'
    check "what it took" has "$(data message_delta)" '"output_tokens":12'
    check "and ends" [ "$(tail -2 "$folder/out" | head -1)" = 'data: {"type":"message_stop"}' ]
}

test_messages_refused() {
    local type=invalid_request_error
    anthropic_refused 400 $type 'not JSON' '{'
    anthropic_refused 400 $type 'max_tokens is required' "{$hi}"
    anthropic_refused 400 $type 'max_tokens' "{$hi, \"max_tokens\": 0}"
    anthropic_refused 400 $type 'messages' '{"max_tokens": 1}'
    anthropic_refused 400 $type 'at least one message' '{"max_tokens": 1, "messages": []}'
    anthropic_refused 400 $type 'none, auto, any or tool' \
        "{$hi, \"max_tokens\": 1, \"tools\": [{\"name\": \"f\"}], \"tool_choice\": {\"type\": \"f\"}}"
    anthropic_refused 400 $type 'part of type tool_result' '{"max_tokens": 1, "messages": [{"role": "assistant",
        "content": [{"type": "tool_result", "tool_use_id": "x"}]}]}'
    anthropic_refused 400 $type 'does not see images' '{"max_tokens": 1, "messages": [{"role": "user",
        "content": [{"type": "image", "source": {}}]}]}'
    anthropic_refused 400 $type 'role tool' "{\"max_tokens\": 1, \"messages\": [$(message tool a)]}"
    anthropic_refused 400 $type 'thread is not supported' \
        "{$hi, \"max_tokens\": 1, \"thread\": {\"type\": \"create\"}}"
    check "with the code by which clients send all messages" \
        contains out '"details":{"error_code":"thread_unsupported_request"}'
    anthropic_refused 400 $type 'prompt is too long: ' \
        "{\"max_tokens\": 1, \"messages\": [$(message user "$(printf 'the lion %.0s' {1..400})")]}"
    check "as Claude Code knows it" matches out '"message":"prompt is too long: [0-9]+ tokens > 512 maximum"'
    ask /v1/messages "{$hi, \"max_tokens\": 1, \"thread\": null}"
    check "no thread is accepted" [ "$status" = 200 ]
    anthropic_refused 400 $type 'thinking' "{$hi, \"max_tokens\": 1, \"thinking\": {\"type\": \"enabled\"}}"
    anthropic_refused 400 $type 'output_config' \
        "{$hi, \"max_tokens\": 1, \"output_config\": {\"format\": {\"type\": \"json_schema\", \"schema\": 3}}}"
    anthropic_refused 400 $type 'prompt is too long: 802 tokens > 512 maximum' \
        "{\"messages\": [$(message user "$(printf 'the lion %.0s' $(seq 400))")], \"max_tokens\": 1}"
    anthropic_refused 403 permission_error 'localhost' "{$hi}" -H 'Host: example.org'
    anthropic_refused 415 $type 'application/json' "{$hi}" -H 'Content-Type: multipart/form-data'
    get /v1/messages
    check "GET is not allowed" [ "$status" = 405 ]
    check "and says so as Anthropic does" contains out '{"type":"error","error":{"type":"invalid_request_error"'
    get /v1/messages/batches -H 'anthropic-version: 2023-06-01'
    check "a path that is not there says so to its clients, too" contains out \
        '{"type":"error","error":{"type":"not_found_error","message":"there is no /v1/messages/batches'
    get /v1/models
    check "models have the names that it has for them" \
        matches out '"type":"model","display_name":"stories",.*"has_more":false'
}

test_count_tokens() {
    local n
    ask /v1/messages/count_tokens "{$hi, \"model\": \"claude\", \"tools\": []}"
    check "tokens are counted" [ "$status $(cat "$folder/out")" = '200 {"input_tokens":5}' ]
    ask /messages/count_tokens "{\"messages\": [$(message user a)], \"system\": \"the king\"}"
    n=$(field input_tokens)
    ask /v1/messages "{\"messages\": [$(message user a)], \"system\": \"the king\", \"max_tokens\": 1}"
    check "as they are used" [ "$(($(field input_tokens) + $(field cache_read_input_tokens)))" = "$n" ]
    ask /v1/messages/count_tokens "{\"messages\": [$(message user "$(printf 'the lion %.0s' $(seq 400))")]}"
    check "even where they do not fit" [ "$(field input_tokens)" -gt 512 ]
    ask /v1/messages/count_tokens "{\"messages\": [$(message user 'the king\n\nthe lion\n\na')]}"
    n=$(field input_tokens)
    ask /v1/messages/count_tokens "{\"messages\": [$(message user 'the king'), $(message user 'the lion'),
        {\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"a\"}]}]}"
    check "messages of one role are one, with a line between them" [ "$(field input_tokens)" = "$n" ]
    ask /v1/messages/count_tokens "{$hi, \"max_tokens\": 1}"
    check "what is no parameter of it changes nothing" [ "$status" = 200 ]
}

test_messages_think() {
    local hello='"messages": [{"role": "user", "content": "hello"}], "max_tokens": 20, "temperature": 0'
    local model=$folder/thinker.gguf
    start
    ask /v1/messages "{$hello, \"thinking\": {\"type\": \"enabled\", \"budget_tokens\": 9}}"
    check "a thought is a block with a signature" \
        matches out '"content":\[\{"type":"thinking","thinking":"us user","signature":"msg_[0-9a-f]*"\},\{"type"'
    check "and is counted" contains out '"output_tokens_details":{"thinking_tokens":5}'
    ask /v1/messages "{$hello, \"thinking\": {\"type\": \"enabled\"}, \"stream\": true}"
    check "in a stream it is the first of two" [ "$(event content_block_start) $(event content_block_stop)" = "2 2" ]
    check "its deltas are its text" [ "$(joined thinking | sed 's/^thinking//')" = "us user" ]
    check "it is signed at its end" [ "$(grep -c '"index":0,"delta":{"type":"signature_delta",' "$folder/out")" = 1 ]
    check "the answer is the second" contains out '"index":1,"delta":{"type":"text_delta","text":" model"}'
    ask /v1/messages "{$hello, \"thinking\": {\"type\": \"adaptive\", \"display\": \"omitted\"}}"
    check "a thought may be left out" contains out '"thinking":"","signature":"msg_'
    ask /v1/messages '{"max_tokens": 20, "temperature": 0, "messages": [{"role": "user", "content": "hello"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "us", "signature": "x"},
        {"type": "text", "text": "hello"}]}, {"role": "user", "content": "hello"}]}'
    check "past thoughts are accepted" [ "$status" = 200 ]
    stop
}

test_keys() {
    start --api-key secret
    ask /v1/messages "{$hi, \"max_tokens\": 1}"
    check "without a key: 401" [ "$status" = 401 ]
    check "as Anthropic says it" contains out '"type":"authentication_error"'
    ask /v1/messages "{$hi, \"max_tokens\": 1}" -H 'x-api-key: secre'
    check "with half of one: 401" [ "$status" = 401 ]
    ask /v1/messages "{$hi, \"max_tokens\": 1}" -H 'x-api-key: secret'
    check "with x-api-key: 200" [ "$status" = 200 ]
    stop
}

# ---- Ollama ----

name='"model": "stories"'
opts='"options": {"num_predict": 12, "seed": 1}'

test_ollama_chat() {
    local text path=/api/chat
    ask /v1/chat/completions "$(chat 'Once upon a time' 12 1)"
    text=$(field content)
    ask $path "{$name, $hi, $opts, \"stream\": false, \"keep_alive\": \"5m\", \"think\": false}"
    check "/api/chat is 200" [ "$status" = 200 ]
    check "its text is that of a chat completion" [ "$(field content)" = "$text" ]
    check "it is done and says why" contains out '"done":true,"done_reason":"length","total_duration":'
    check "it counts tokens" matches out '"prompt_eval_count":5,"prompt_eval_duration":[0-9]+,"eval_count":12,"eval_dur'
    check "it has a date" matches out '"created_at":"20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z"'
    ask $path "{$name, $hi, $opts}" -D "$folder/headers"
    check "a stream is the default, of lines" matches headers '^Content-Type: application/x-ndjson'
    check "its lines are the text" [ "$(lines content)" = "$text" ]
    check "but for the last, none is done" [ "$(grep -c '"done":true' "$folder/out")" = 1 ]
    check "which has what it took" matches out '"content":""\},"done":true,"done_reason":"length","total'
    ask $path "{$name, $hi, \"stream\": false, \"options\": {\"seed\": 1, \"num_predict\": 60,
        \"stop\": [\"${text:5:6}\"], \"num_ctx\": 512, \"num_gpu\": 9,
        \"mirostat\": 0, \"repeat_last_n\": 64, \"top_k\": 40}}"
    check "options are read" [ "$(field content) $(field done_reason)" = "${text:0:5} stop" ]
    ask $path '{"model": "stories:latest", "messages": []}' -D "$folder/headers"
    check "without messages the model is loaded" contains out '"done":true,"done_reason":"load"'
    check "its name may have a tag" [ "$(grep -c '^Warning' "$folder/headers")" = 0 ]
    ask $path "{$name, $hi, \"stream\": false,
        \"format\": {\"type\": \"object\", \"properties\": {\"a\": {\"enum\": [7]}}, \"required\": [\"a\"]}}"
    check "a schema holds" matches out '"content":"[ \\n]*\{[ \\n]*\\"a\\":[ \\n]*7[ \\n]*\}'
    ask $path "{$name, $hi, \"stream\": false, \"format\": \"json\", $opts}"
    check "so does json" matches out '"content":"[ \\n]*\{'
    ask $path "{$name, $hi, $opts, \"logprobs\": true, \"top_logprobs\": 2}"
    check "logprobs come with their lines" \
        [ "$(grep -c '"logprobs":\[{"token":.*"top_logprobs":\[{.*},{.*}\]}\]' "$folder/out")" = 12 ]
    ask $path "{$name, \"stream\": false, $opts, \"messages\": [$(many_turns 60), $(message user 'Once upon a time')]}"
    check "the oldest turns are left out where all do not fit" [ "$(field prompt_eval_count)" -lt 500 ]
    refused_plainly 400 $path 'maximum context length' "{$name, $opts, \"truncate\": false,
        \"messages\": [$(many_turns 60), $(message user 'Once upon a time')]}"
    check "in Ollama's words, too" contains out 'the input length exceeds the context length)"'
}

# many_turns N
many_turns() {
    local i
    for i in $(seq "$1"); do
        printf '%s, %s%s' "$(message user "The lion went away $i")" "$(message assistant 'And then?')" \
            "$([ "$i" = "$1" ] || printf ', ')"
    done
}

test_generate() {
    local text path=/api/generate
    ask /v1/completions "$(completion 'Once upon a time' 12 1)"
    text=$(field text)
    ask $path "{$name, \"prompt\": \"Once upon a time\", $opts, \"stream\": false, \"raw\": true}"
    check "a raw prompt is a text" [ "$(field response)" = "$text" ]
    ask $path "{$name, \"prompt\": \"Once upon a time\", $opts, \"raw\": true}"
    check "a stream has the same" [ "$(lines response)" = "$text" ]
    ask /v1/chat/completions "{\"messages\": [$(message system 'Be brief.'), $(message user Hello)], \"seed\": 1,
        \"max_tokens\": 12}"
    text=$(field content)
    ask $path "{$name, \"prompt\": \"Hello\", \"system\": \"Be brief.\", $opts, \"stream\": false, \"suffix\": \"\",
        \"images\": [], \"template\": \"\"}"
    check "others are a message" [ "$(field response)" = "$text" ]
    ask $path "{$name}"
    check "without a prompt the model is loaded" contains out '"response":"","done":true,"done_reason":"load"'
    refused_plainly 400 $path 'suffix' "{$name, \"prompt\": \"a\", \"suffix\": \"b\"}"
    refused_plainly 400 $path 'template' "{$name, \"prompt\": \"a\", \"template\": \"b\"}"
    refused_plainly 400 $path 'context' "{$name, \"prompt\": \"a\", \"context\": [1]}"
    refused_plainly 400 $path 'prompt must be a string' "{$name, \"prompt\": [\"a\"], \"raw\": true}"
    refused_plainly 400 $path 'your prompt' "{$name, \"prompt\": \"$(printf 'the lion %.0s' $(seq 400))\"}"
}

test_embed() {
    local want
    ask /v1/embeddings '{"input": "a cat"}'
    want=$(grep -oE '"embedding":\[[^]]*\]' "$folder/out" | cut -d: -f2)
    ask /api/embed "{$name, \"input\": [\"a dog\", \"a cat\"]}"
    check "/api/embed has the vectors" contains out ",$want],\"total_duration\":"
    check "and counts tokens" contains out '"prompt_eval_count":6'
    ask /api/embeddings "{$name, \"prompt\": \"a cat\"}"
    check "/api/embeddings has one" [ "$(cat "$folder/out")" = "{\"embedding\":$want}" ]
    ask /api/embed "{$name, \"input\": \"$(printf 'the lion %.0s' $(seq 400))\"}"
    check "a text that is too long is cut" contains out '"prompt_eval_count":512'
    refused_plainly 400 /api/embed 'your input' \
        "{$name, \"truncate\": false, \"input\": \"$(printf 'the lion %.0s' $(seq 400))\"}"
    refused_plainly 400 /api/embed 'input' "{$name}"
    refused_plainly 400 /api/embeddings 'prompt' "{$name, \"prompt\": 3}"
}

test_ollama_models() {
    local path
    get /api/tags
    check "/api/tags lists the model" contains out '{"models":[{"name":"stories","model":"stories","size":'
    check "with its family and type" matches out '"family":"gemma2",.*"parameter_size":"6M","quantization_level":"Q8_0"'
    get /api/ps
    check "/api/ps, too" contains out '"context_length":512'
    get /api/version
    check "/api/version is one" matches out '^\{"version":"[0-9.]+"\}$'
    ask /api/show "{$name, \"verbose\": true}"
    check "/api/show says what it can do" contains out '"capabilities":["completion","tools"]'
    check "and how long its texts may be" contains out '"gemma2.context_length":512'
    check "also as a parameter" contains out '"parameters":"num_ctx 512"'
    for path in pull push create copy; do refused_plainly 400 /api/$path 'peridot pull NAME' "{$name}"; done
    ask /api/delete "{$name}" -X DELETE
    check "DELETE, too" contains out '{"error":"/api/delete is not supported: '
    check "HEAD / is 200, which is what clients ask whether a server runs" \
        [ "$(curl -sI -o /dev/null -w '%{http_code}' "$url/")" = 200 ]
    refused_plainly 404 /api/nothing 'there is no' '{}'
    refused_plainly 405 /api/tags 'does not allow POST' '{}'
}

test_ollama_refused() {
    local path=/api/chat
    refused_plainly 400 $path 'not JSON' '{'
    refused_plainly 400 $path 'messages' "{$name, \"messages\": 3}"
    refused_plainly 400 $path 'has a function without a name' "{$name, $hi, \"tools\": [{\"type\": \"function\"}]}"
    refused_plainly 400 $path 'images' \
        "{$name, \"messages\": [{\"role\": \"user\", \"content\": \"a\", \"images\": [\"b\"]}]}"
    refused_plainly 400 $path 'think' "{$name, $hi, \"think\": true}"
    refused_plainly 400 $path 'format' "{$name, $hi, \"format\": \"xml\"}"
    refused_plainly 400 $path 'format' "{$name, $hi, \"format\": {\"contains\": {\"type\": \"null\"}}}"
    refused_plainly 400 $path 'num_ctx' "{$name, $hi, \"options\": {\"num_ctx\": 4096}}"
    refused_plainly 400 $path 'mirostat' "{$name, $hi, \"options\": {\"mirostat\": 1}}"
    refused_plainly 400 $path 'twice' "{$name, $hi, \"options\": {\"seed\": 1, \"seed\": 1}}"
    refused_plainly 400 $path 'options' "{$name, $hi, \"options\": []}"
}

test_ollama_think() {
    local model=$folder/thinker.gguf hello='"messages": [{"role": "user", "content": "hello"}]'
    start
    ask /api/chat "{$name, $hello, \"think\": true, \"stream\": false, \"options\": {\"temperature\": 0}}"
    check "a thought is apart" contains out '"content":"hello model","thinking":"us user"}'
    ask /api/chat "{$name, $hello, \"think\": \"high\", \"options\": {\"temperature\": 0}}"
    check "in a stream, too" [ "$(lines thinking)" = "us user" ]
    ask /api/generate "{$name, \"prompt\": \"hello\", \"think\": true, \"stream\": false,
        \"options\": {\"temperature\": 0}}"
    check "and of a prompt" contains out '"response":"hello model","thinking":"us user"'
    ask /api/show "{$name}"
    check "/api/show says that it thinks" contains out '"capabilities":["completion","tools","thinking"]'
    stop
}

lacks() { ! contains "$1" "$2"; }

# What programs are told of the server that runs, and their files, which keep what they have.
test_connect() {
    local home=$folder/home client model=$folder/thinker.gguf
    unset XDG_CONFIG_HOME CLAUDE_CONFIG_DIR CODEX_HOME CONTINUE_GLOBAL_DIR
    mkdir -p "$home/.claude"
    fails_with 1 'nothing answers at http://127.0.0.1:1 (' connect claude --url http://127.0.0.1:1
    check "and how it is started" contains err 'start it with peridot serve -m MODEL'
    fails_with 2 'CLIENT does not know claud (did you mean claude?)' connect claud
    fails_with 2 '--url takes an address' connect codex --url ftp://x
    start --ctx 1024 --alias "two words" --api-key "it's one"
    fails_with 1 'needs its key (--api-key)' connect claude --url "$url"
    fails_with 1 'has another key (--api-key)' connect claude --url "$url" --api-key x
    connect() { HOME=$home run connect "$@" --url "$url/v1/" --api-key "it's one"; }
    for client in claude codex opencode aider continue zed openwebui; do
        connect $client
        check "connect $client: status 0" [ $status = 0 ]
        check "connect $client: the server" contains out "$url"
        check "connect $client: the model and its context" \
            contains err 'serves two words, with a context of 1024 tokens'
    done
    check "a shell takes what it is to take" contains out "export OPENAI_API_KEY='it'\\''s one'"
    connect openwebui --write
    check "what has no file is told by its environment: status $status" [ $status = 2 ]
    connect codex --model other
    check "another model is refused by name" contains err 'has no model other'
    echo '{"env": {"A": "b", "ANTHROPIC_MODEL": "x"}, "n": 1.50}' >"$home/.claude/settings.json"
    connect claude
    check "nothing is written where that is not asked for" contains home/.claude/settings.json '"x"'
    for client in claude opencode zed codex aider continue; do
        connect $client --write
        check "connect $client --write: status 0" [ $status = 0 ]
        check "connect $client --write: says where" contains err "$home/."
    done
    check "a file keeps what it has" contains home/.claude/settings.json '"n": 1.50'
    check "with what is new in its place" contains home/.claude/settings.json '"ANTHROPIC_MODEL": "two words"'
    check "beside its neighbours" contains home/.claude/settings.json '"A": "b"'
    check "and has the context" contains home/.claude/settings.json '"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "1024"'
    check "opencode's is one of JSON" contains home/.config/opencode/opencode.json '"model": "peridot/two words"'
    check "Codex's names the variable of the key" contains home/.codex/config.toml 'env_key = "PERIDOT_API_KEY"'
    check "and not the key" lacks home/.codex/config.toml "it's one"
    connect codex --write
    check "the same again is no failure" [ $status = 0 ]
    echo 'model = "mine"' >"$home/.codex/config.toml"
    connect codex --write
    check "another file is left alone: status $status" [ $status = 1 ]
    check "and says so" contains err 'config.toml is there already, and is left as it is: put this into it'
    check "as it was" [ "$(cat "$home/.codex/config.toml")" = 'model = "mine"' ]
    echo '{"theme": "dark", // mine' >"$home/.config/zed/settings.json"
    echo '}' >>"$home/.config/zed/settings.json"
    connect zed --write
    check "comments are not lost: status $status" [ $status = 1 ]
    check "but said to be there" contains err 'has comments or commas that JSON has not'
    check "and stay" contains home/.config/zed/settings.json '// mine'
    stop
}

# The oldest turns are left out where OpenAI's responses say so.
test_truncation() {
    local input="\"max_output_tokens\": 4, \"input\": [$(many_turns 60), $(message user 'Once upon a time')]"
    ask /v1/responses "{$input}"
    check "responses are refused where their input does not fit" [ "$status" = 400 ]
    ask /v1/responses "{$input, \"truncation\": \"auto\"}"
    check "the oldest turns are left out of them" [ "$(field input_tokens)" -lt 500 ]
    check "which they say" contains out '"truncation":"auto"'
    ask /v1/responses "{$input, \"truncation\": \"old\"}"
    check "by no other name" contains out 'truncation must be auto or disabled'
    ask /v1/embeddings '{"input": []}'
    check "of nothing there is no vector" contains out 'input must have at least one text'
    check "the log says why a request was refused" \
        matches log ' POST /v1/responses 400, [0-9.]+ s: truncation must be auto or disabled$'
}

start --ctx 512
test_messages
test_truncation
test_prefill
test_messages_stream
test_messages_refused
test_count_tokens
test_ollama_chat
test_generate
test_embed
test_ollama_models
test_ollama_refused
stop
test_messages_think
test_ollama_think
test_keys
test_connect
finish
