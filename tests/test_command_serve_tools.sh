#!/usr/bin/env bash
# The tools of peridot serve --tools, asked for as its page does: programs and an MCP server (mcp_server.py), calls at
# the same time, one that is given up, and who may not call. The page itself is in test_command_page.sh. And what of
# texts needs a program to be checked: replies that are cut, and what comes back with the next request.
. "$(dirname "$0")/command.sh"
command -v curl >/dev/null || { echo "skipped: curl is not there"; exit 0; }
command -v python3 >/dev/null || { echo "skipped: python3 is not there"; exit 0; }
"$(dirname "$peridot")/tests/write_thinkers" "$folder" || exit 1
export no_proxy=127.0.0.1
unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY

cat >"$folder/tools.json" <<END
{"tools": [
    {"name": "add", "command": ["sh", "-c", "cat >>$folder/arguments; echo 42"], "parameters":
        {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}},
    {"name": "slow", "command": ["sh", "-c", "echo \$\$ >>$folder/slow; exec sleep 60"], "timeout": 90, "allow": true},
    {"name": "late", "command": ["sleep", "60"], "timeout": 0.3}],
 "mcpServers": {"test": {"command": "python3", "args": ["$source/tests/mcp_server.py", "stdio", "$folder/mcp"],
    "allow": ["echo"]}}}
END

# runs PID: the process is there, and no zombie.
runs() { [ "$(ps -o stat= -p "$1" 2>/dev/null | cut -c1)" != Z ] && kill -0 "$1" 2>/dev/null; }
# ends PID: within ten seconds.
ends() {
    local i
    for ((i = 0; i < 200; i++)); do
        runs "$1" || return 0
        sleep 0.05
    done
    return 1
}

# start ARGUMENTS...: a server at $url whose process is $server.
start() {
    : >"$folder/log"
    "$peridot" serve -m "$folder/${model:-caller}.gguf" --port 0 "$@" >"$folder/out" 2>"$folder/log" &
    server=$!
    for _ in $(seq 600); do
        url=$(sed -nE 's/^serving .* at (http:[^ ]*): .*/\1/p' "$folder/log")
        [ "$url" ] && return
        kill -0 $server 2>/dev/null || break
        sleep 0.1
    done
    cp "$folder/log" "$folder/err"
    failed "the server does not start"
    finish
}
stop() {
    kill -TERM $server
    wait $server
    status=$?
    check "SIGTERM ends it with status 0, not $status" [ $status = 0 ]
}
# ask PATH BODY CURL_OPTIONS...: as the page asks; the answer in $folder/out, its status in $status.
ask() {
    status=$(curl -sN -m 60 -o "$folder/out" -w '%{http_code}' -H "Origin: $url" -H 'Content-Type: application/json' \
        "${@:3}" --data-binary "$2" "$url$1")
}
# tool NAME ARGUMENTS: calls it; the arguments have no quotes but ".
tool() { ask /tools/call "{\"name\": \"$1\", \"arguments\": \"${2//\"/\\\"}\"}" "${@:3}"; }

test_calls() {
    ask /tools/list '{}'
    check "the list is there" [ "$status" = 200 ]
    check "as chat completions take it" contains out '{"type":"function","function":{"name":"slow",'
    check "it says whose a tool is" contains out '"add":{"source":"program sh","allowed":false}'
    check "also a server's" contains out '"fails":{"source":"server test","allowed":false}'
    check "and which need no question" contains out '"echo":{"source":"server test","allowed":true}'
    tool add '{"a": 2, "b": 40}'
    check "a program is called" [ "$(cat "$folder/out")" = '{"result":"42"}' ]
    check "with the arguments" [ "$(cat "$folder/arguments")" = '{"a": 2, "b": 40}' ]
    tool echo '{"text": "é"}'
    check "a tool of a server" contains out '{"result":"[\"echo\", {\"text\": \"é\"}]"}'
    tool fails '{}'
    check "what goes wrong at a tool is a result" contains out '"result":"error: '
    tool late '{}'
    check "also what takes too long" contains out '{"result":"error: late gave no result within 0.3 s"}'
    tool nothing '{}'
    check "also a tool that is not there" contains out '{"result":"error: there is no tool nothing"}'
    tool add '[]'
    check "arguments are an object" contains out '{"result":"error: the arguments are not a JSON object"}'
    curl -s "$url/health" >"$folder/out"
    check "/health says that there are tools" [ "$(cat "$folder/out")" = '{"status": "ok", "tools": true}' ]
}

test_refusals() {
    rm -f "$folder/arguments"
    ask /tools/call '{"name": "add"'
    check "a body that is no JSON is 400" [ "$status" = 400 ]
    ask /tools/call '["add"]'
    check "one that is no object, too" [ "$status" = 400 ]
    ask /tools/call '{"name": "add", "arguments": {"a": 2, "b": 40}}'
    check "arguments are text" [ "$status" = 400 ]
    ask /tools/call '{"name": "add\u0000", "arguments": "{}"}'
    check "a zero byte is 400" [ "$status" = 400 ]
    ask /tools/call '{"arguments": "{}"}'
    check "a call without a name is 400" [ "$status" = 400 ]
    printf '{"name": "add", "arguments": "%*s{}"}' $((1 << 20)) '' >"$folder/long"
    ask /tools/call @"$folder/long"
    check "more than 1 MiB is 413" [ "$status" = 413 ]
    for path in /tools/call /tools/list; do
        status=$(curl -s -o "$folder/out" -w '%{http_code}' "$url$path")
        check "GET $path is 405" [ "$status" = 405 ]
        status=$(curl -s -o "$folder/out" -w '%{http_code}' -H 'Origin: https://evil.example' \
            -d '{"name": "add", "arguments": "{}"}' "$url$path")
        check "$path for a page elsewhere is 403" [ "$status" = 403 ]
        check "which says so" contains out 'web pages of https://evil.example may not use this server'
        status=$(curl -s -o "$folder/out" -w '%{http_code}' -H 'Origin: https://friend.example' \
            -d '{"name": "add", "arguments": "{}"}' "$url$path")
        check "$path for a page that --cors names, too" [ "$status" = 403 ]
        status=$(curl -s -o "$folder/out" -w '%{http_code}' -H 'Origin: null' \
            -d '{"name": "add", "arguments": "{}"}' "$url$path")
        check "$path for one in a sandbox" [ "$status" = 403 ]
        status=$(curl -s -o "$folder/out" -w '%{http_code}' -d '{"name": "add", "arguments": "{}"}' "$url$path")
        check "$path for what is no page" [ "$status" = 403 ]
        check "which says whom it is for" contains out 'tools are for the page of this server'
        status=$(curl -s -o "$folder/out" -w '%{http_code}' -H 'Host: evil.example' -H 'Origin: http://evil.example' \
            -d '{"name": "add", "arguments": "{}"}' "$url$path")
        check "$path for a name that leads here" [ "$status" = 403 ]
    done
    status=$(curl -s -o "$folder/out" -w '%{http_code}' -H 'Origin: https://friend.example' "$url/v1/models")
    check "--cors is for all else" [ "$status" = 200 ]
    check "nothing was called" [ ! -e "$folder/arguments" ]
}

# A slow tool holds up nothing, and ends when nobody waits for it.
test_slow() {
    local calls=() name pid
    rm -f "$folder/slow"
    for name in slow hang; do
        curl -s -o "$folder/unused" -H "Origin: $url" -d "{\"name\": \"$name\", \"arguments\": \"{}\"}" \
            "$url/tools/call" & calls+=($!)
    done
    check "a slow program begins" await_text "$folder/slow" ''
    sleep 0.3   # until the other is at its server
    tool add '{"a": 2, "b": 40}'
    check "another call goes on meanwhile" [ "$(cat "$folder/out")" = '{"result":"42"}' ]
    ask /tools/list '{}' -m 5
    check "so does the list" [ "$status" = 200 ]
    ask /v1/chat/completions '{"messages": [{"role": "user", "content": "hello"}]}' -m 30
    check "so do replies" [ "$status" = 200 ]
    ask /tools/call '{"name": "echo", "arguments": "{}"}' -m 0.5
    check "calls at one server wait for each other" [ "$status" = 000 ]
    pid=$(head -1 "$folder/slow")
    check "the slow one runs" runs "$pid"
    kill "${calls[@]}"
    wait "${calls[@]}" 2>/dev/null
    check "a program whose call is given up is ended" ends "$pid"
    check "a server is told" await_text "$folder/mcp" 'notifications/cancelled'
    tool echo '{}'
    check "and goes on" contains out '"result":"['
}

test_end() {
    local call pid
    rm -f "$folder/slow"
    curl -sN -m 60 -o "$folder/out" -H "Origin: $url" -d '{"name": "slow", "arguments": "{}"}' "$url/tools/call" &
    call=$!
    await_text "$folder/slow" ''
    pid=$(head -1 "$folder/slow")
    kill -TERM $server
    sleep 0.3
    stop
    wait $call
    check "the end of the server is that of its calls" ends "$pid"
    check "which are told" contains out '"error":{"message":"'
}

test_options() {
    start
    ask /tools/list '{}'
    check "without --tools there is no list" [ "$status" = 404 ]
    tool add '{}'
    check "and no call" [ "$status" = 404 ]
    check "which names the path" contains out 'there is no /tools/call'
    curl -s "$url/health" >"$folder/out"
    check "/health says nothing of tools" [ "$(cat "$folder/out")" = '{"status": "ok"}' ]
    stop
    run serve -m "$folder/caller.gguf" --port 0 --tools "$folder/nowhere.json"
    check "a file that is not there ends it" [ $status = 1 ]
    check "by its name" contains err "$folder/nowhere.json"
    run serve -m "$folder/caller.gguf" --port 0 --tools "$folder/tools.json" --host 0.0.0.0
    check "other machines need a key" [ $status = 1 ]
    check "in one sentence" one_sentence
    check "that says so" contains err '--tools with --host needs --api-key'
    run serve -m "$folder/caller.gguf" --port 0 --tools "$folder/tools.json" --insecure
    check "--insecure is not enough" contains err '--tools with --insecure needs --api-key'
    start --tools "$folder/tools.json" --api-key secret --host 0.0.0.0
    url=http://127.0.0.1:${url##*:}
    tool add '{"a": 2, "b": 40}'
    check "a call without the key is 401" [ "$status" = 401 ]
    tool add '{"a": 2, "b": 40}' -H 'Authorization: Bearer secret'
    check "with it it is made" [ "$(cat "$folder/out")" = '{"result":"42"}' ]
    stop
}

# refused PATH BODY TEXT: 400, with a sentence that has it.
refused() {
    ask "$1" "$2"
    check "$1: 400, not $status" [ "$status" = 400 ]
    check "$1: says $3" contains out "$3"
}

# Replies that are cut within characters, and what else is said of texts.
test_texts() {
    local long
    model=cutter start --ctx 1024 --parallel 4
    python3 "$source/tests/serve_cuts.py" "$url" >"$folder/out" 2>"$folder/err"
    check "streams are whole characters, wherever a reply is cut" [ $? = 0 ]
    ask /api/show '{}'
    check "/api/show says the context that is served" contains out '"llama.context_length":1024'
    curl -s "$url/v1/models" >"$folder/out"
    check "and so does /v1/models" contains out '"max_model_len":1024,"context_length":1024,"meta":{"n_vocab":'
    check "beside the one of its training" contains out '"n_ctx":1024,"n_ctx_train":4096,"n_embd":64,"n_params":'
    long=$(printf 'a %.0s' {1..2000})
    refused /v1/embeddings "{\"input\": [\"a\", \"$long\"]}" "input[1]: This model's maximum context length"
    refused /v1/embeddings '{"input": [[3], [3], [-1]]}' 'input[2]: input contains a number that is not a token id'
    refused /v1/completions '{"prompt": ["a", 5]}' 'prompt[1]: prompt must be a string'
    refused /api/embed "{\"input\": [\"$long\"], \"truncate\": false}" "input[0]: This model's maximum"
    stop
}

# Thoughts and responses that clients come back with.
test_turns() {
    printf 'first\nsecond\n' >"$folder/keys"
    model=cutter start --ctx 1024 --api-key-file "$folder/keys"
    python3 "$source/tests/serve_turns.py" "$url" first second >"$folder/out" 2>"$folder/err"
    check "what a reply was comes back as it was" [ $? = 0 ]
    stop
}

start --tools "$folder/tools.json" --cors https://friend.example
test_calls
test_refusals
test_slow
test_end
test_options
test_texts
test_turns
finish
