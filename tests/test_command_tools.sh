#!/usr/bin/env bash
# The tools of peridot chat: programs, and servers of the Model Context Protocol (mcp_server.py) on standard streams and
# over HTTP. What calls them is call_tools.c, as a conversation would.
. "$(dirname "$0")/command.sh"
calls=$(dirname "$peridot")/tests/call_tools
server=$source/tests/mcp_server.py
log=$folder/log
# libedit keeps what it made of its settings: not ours to free.
printf 'leak:wcsdup\n' >"$folder/leaks"
export LSAN_OPTIONS=suppressions=$folder/leaks:print_suppressions=0
export XDG_STATE_HOME=$folder/state TERM=xterm LC_ALL=C.UTF-8 no_proxy=127.0.0.1 TEST_ONE=
unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY

# call SOURCE... -- [NAME ARGUMENTS]...: leaves $status, out and err.
call() {
    "$calls" "$@" </dev/null >"$folder/out" 2>"$folder/err"
    status=$?
}
# The I-th result.
result() { awk -v i="$1" '$0 == "." { n++; next } n == i - 1' "$folder/out"; }
gives() { [ "$(result "$1")" = "$2" ]; }
# gives_like I PATTERN
gives_like() { result "$1" | grep -qE -e "$2"; }
lacks() { ! contains "$1" "$2"; }

# ---- files ----

# refuses JSON TEXT: the file is refused by a sentence with its name and TEXT.
refuses() {
    printf '%s' "$1" >"$folder/file.json"
    call "$folder/file.json" --
    check "$1 is refused" [ $status = 1 ]
    check "$1: one sentence" one_sentence
    check "$1: says '$2'" contains err "$folder/file.json: $2"
}

test_files() {
    refuses '{"tools": [}' 'byte 11: '
    refuses '[]' 'is no object with "mcpServers"'
    refuses '{"mcp": {}}' 'is no object with "mcpServers"'
    refuses '{"tools": {}}' 'is no object with "mcpServers"'
    refuses '{"servers": []}' '"servers" is not an object'
    refuses '{"mcpServers": {"a": 1}}' 'server a: "a" is not an object'
    refuses '{"mcpServers": {"a": {}}}' 'server a: "command" and "url": a server has one of them'
    refuses '{"mcpServers": {"a": {"command": "x", "url": "http://y"}}}' 'server a: "command" and "url"'
    refuses '{"mcpServers": {"a": {"command": ["x"]}}}' 'server a: "command" is not a text'
    refuses '{"mcpServers": {"a": {"command": "x", "args": "y"}}}' 'server a: "args" is not a list of texts'
    refuses '{"mcpServers": {"a": {"command": "x", "args": [1]}}}' 'server a: "args" is not a text'
    refuses '{"mcpServers": {"a": {"command": "x\u0000"}}}' 'server a: "command" has a zero byte'
    refuses '{"mcpServers": {"a": {"command": "x", "env": {"A=B": "c"}}}}' 'server a: "env" has a name or a value'
    refuses '{"mcpServers": {"a": {"url": "http://x", "headers": {"A": "b\nC: d"}}}}' 'server a: "headers" has a name'
    refuses '{"mcpServers": {"a": {"url": "ftp://x"}}}' 'server a: "url" begins with neither http:// nor https://'
    refuses '{"mcpServers": {"a": {"url": "http://x", "type": "sse"}}}' 'server a: "type" is sse'
    refuses '{"mcpServers": {"a": {"command": "${NOT_SET}"}}}' 'server a: "command" has ${NOT_SET}, which is not set'
    refuses '{"mcpServers": {"a": {"command": "${input:x}"}}}' 'server a: "command" has ${input:x}, which is'
    refuses '{"mcpServers": {"\u001b[31m": {}}}' 'server \x1b[31m: '
    refuses '{"tools": [{"command": ["x"]}]}' 'a tool has no name'
    refuses '{"tools": [{"name": "a b", "command": ["x"]}]}' 'tool a b: "name" is not 1 to 64 of'
    refuses '{"tools": [{"name": "a"}]}' 'tool a: "command" is not a list of a program'
    refuses '{"tools": [{"name": "a", "command": []}]}' 'tool a: "command" is not a list of a program'
    refuses '{"tools": [{"name": "a", "command": "x"}]}' 'tool a: "command" is not a list of texts'
    refuses '{"tools": [{"name": "a", "command": ["x"], "parameters": []}]}' 'tool a: "parameters" is not a JSON Schema'
    refuses '{"tools": [{"name": "a", "command": ["x"], "timout": 3}]}' 'tool a: "timout" is not a key that tools have'
    refuses '{"tools": [{"name": "a", "command": ["x"], "timeout": 0}]}' 'tool a: "timeout" is not a number of seconds'
    refuses '{"tools": [{"name": "a", "command": ["x"], "timeout": "9"}]}' 'tool a: "timeout" is not a number'
    refuses '{"tools": [{"name": "a", "command": ["x"], "max_output": 9}]}' 'tool a: "max_output" is not a'
    printf '{"tools": [{"name": "a", "command": ["x"]}, {"name": "a", "command": ["y"]}]}' >"$folder/file.json"
    call "$folder/file.json" --
    check "two programs of one name are refused" contains err 'two tools have the name a'
    call "$folder/nowhere.json" --
    check "a file that is not there is named" contains err "$folder/nowhere.json: No such file"
    call http://127.0.0.1:1/mcp --
    check "a server that is not there is named" contains err 'server 127.0.0.1:1: '
    printf '// a comment\n{"servers": {"off": {"command": "x", "disabled": true,},},}' >"$folder/file.json"
    call "$folder/file.json" --
    check "comments, commas at ends, and servers that are switched off" [ "$status $(<"$folder/out")" = "0 []" ]
}

# ---- programs ----

test_programs() {
    cat >"$folder/tools.json" <<'END'
{"tools": [
  {"name": "back", "description": "Gives \"all\" back.", "parameters": {"type": "object"}, "command": ["cat"],
   "allow": true},
  {"name": "words", "command": ["printf", "<%s>", "a b", "$HOME;", "*"], "allow": true},
  {"name": "place", "command": ["sh", "-c", "echo \"$PWD $TEST_VALUE $TEST_OTHER\""], "cwd": "/", "allow": true,
   "env": {"TEST_VALUE": "new"}},
  {"name": "fails", "command": ["sh", "-c", "echo out; echo why >&2; exit 3"], "allow": true},
  {"name": "killed", "command": ["sh", "-c", "kill -9 $$"], "allow": true},
  {"name": "missing", "command": ["no-such-program"], "allow": true},
  {"name": "nowhere", "command": ["cat"], "cwd": "/no/such/folder", "allow": true},
  {"name": "stays", "command": ["sh", "-c", "echo $$ >PIDS; trap '' TERM; sleep 100 & echo $! >>PIDS; wait"],
   "timeout": 0.5, "allow": true},
  {"name": "huge", "command": ["sh", "-c", "yes 'ä' | head -c 3000000"], "max_output": 70, "allow": true},
  {"name": "bytes", "command": ["printf", "a\\377b\\000c \\033[31m \\n\\n"], "allow": true},
  {"name": "warns", "command": ["sh", "-c", "printf 'careful \\033[31m' >&2; echo done"], "allow": true},
  {"name": "deaf", "command": ["sh", "-c", "exec <&-; sleep 0.2; echo heard nothing"], "allow": true},
  {"name": "leaves", "command": ["sh", "-c", "sleep 3 & echo gone"], "allow": true},
  {"name": "floods", "max_output": 64, "allow": true, "command": ["sh", "-c",
   "trap '' PIPE; (while :; do yes | head -c 1000000; done) & echo $! >PIDS; sleep 0.1"]},
  {"name": "frees", "command": ["sh", "FREE", "echo", "out"], "allow": true},
  {"name": "waits", "command": ["sh", "FREE", "sleep", "100"], "timeout": 0.5, "allow": true},
  {"name": "finds", "command": ["sh", "-c", "kill -0 $(cat PIDS) && echo found"], "allow": true},
  {"name": "quiet", "command": ["true"], "allow": true},
  {"name": "asks", "command": ["cat"]}
]}
END
    # free.sh COMMAND...: runs it, with children that leave the group and lose their parent; one leaves no name either
    cat >"$folder/free.sh" <<'END'
rm -f PIDS
for way in '' 'env -i'; do (setsid $way sh -c 'echo $$ >>PIDS; exec sleep 100' >/dev/null 2>&1 &) done
until [ "$(grep -c . PIDS 2>/dev/null)" = 2 ]; do sleep 0.02; done
exec "$@"
END
    sed -i "s#PIDS#$folder/pids#g; s#FREE#$folder/free.sh#g" "$folder/tools.json" "$folder/free.sh"
    call "$folder/tools.json" --
    check "the list is what models are given" contains out '[{"type":"function","function":{"name":"back",'
    check "as the file has it" contains out '"description":"Gives \"all\" back.","parameters":{"type":"object"}}},{'
    check "or without parameters" contains out '"name":"words","parameters":{"type":"object","properties":{}}}},'
    TEST_VALUE=old TEST_OTHER=kept call "$folder/tools.json" -- back '{"a": "é"}' words '{}' place '{}' fails '{}' \
        killed '{}' missing '{}' nowhere '{}' asks '{}' none '{}' back '[1]' back '{"a"' quiet '{}' tools ''
    check "calls succeed, whatever tools do" [ $status = 0 ]
    check "a program gets the arguments, and gives its output" gives 1 '{"a": "é"}'
    check "no shell reads its command" gives 2 '<a b><$HOME;><*>'
    check "it has its folder, and its variables beside others" gives 3 '/ new kept'
    check "a failure says how and why" gives 4 $'error: fails ended with status 3\nwhy\nout'
    check "so does a signal" gives 5 'error: killed was ended by signal 9'
    check "a program that is not there" gives 6 'error: no-such-program cannot be started: No such file or directory'
    check "a folder that is not there" gives_like 7 '^error: cat cannot be started in /no/such/folder: No such file'
    check "what no file allows is refused where nobody can be asked" gives 8 'error: the user does not allow this call'
    check "and a line says so" contains err 'asks is not called: there is no terminal to ask at'
    check "a tool that is not there" gives 9 'error: there is no tool none'
    check "arguments are an object" gives 10 'error: the arguments are not a JSON object'
    check "and JSON" gives 11 'error: the arguments are not a JSON object'
    check "no output is a result" gives 12 ''
    check "calls are shown" contains err 'back (program cat): {"a": "é"}'
    check "and results" contains err '-> error: fails ended with status 3\nwhy\nout'
    check "the list says what is allowed" contains err 'back (program cat, allowed): Gives "all" back.'
    check "and what is not" matches err '^asks \(program cat\)$'
    call "$folder/tools.json" -- huge '{}' bytes '{}' warns '{}' deaf "{\"a\": \"$(printf '%0100000d' 0)\"}" leaves '{}'
    check "output has a limit" gives_like 1 '^\[cut here: [0-9]+ more bytes are left out\]$'
    check "of whole lines and characters" [ "$(result 1 | grep -c '^ä$')" = 23 ]
    result 1 | iconv -f UTF-8 -t UTF-8 >"$folder/valid" 2>/dev/null
    check "which are not cut" [ "$(result 1 | wc -c)" = "$(stat -c %s "$folder/valid")" ]
    check "what is no UTF-8 is replaced" gives 2 $'a\ufffdb\ufffdc \033[31m'
    check "but no control character reaches the terminal" lacks err $'\033'
    check "standard error of a program that succeeds is shown" contains err 'warns: careful \x1b[31m'
    check "and is no part of the result" gives 3 done
    check "a program need not read" gives 4 'heard nothing'
    check "nor do children of its that go on matter" gives 5 gone
    SECONDS=0
    call "$folder/tools.json" -- stays '{}'
    check "a time limit" gives 1 'error: stays gave no result within 0.5 s'
    check "that is kept" [ $SECONDS -le 5 ]
    check "ends the program and its children" are_gone
    timeout 20 "$calls" "$folder/tools.json" -- floods '{}' </dev/null >"$folder/out" 2>"$folder/err"
    check "a child that goes on writing is not read for ever" [ $? = 0 ]
    check "but ended" are_gone
    call "$folder/tools.json" -- frees '{}'
    check "a program that leaves others behind" gives 1 out
    check "which end with it" are_gone
    call "$folder/tools.json" -- waits '{}'
    check "or with its time limit" are_gone
}

# None of those in $folder/pids is left.
are_gone() { [ -s "$folder/pids" ] && [ "$(xargs ps -o stat= -p <"$folder/pids" | grep -vc Z)" = 0 ]; }

# ---- servers on standard streams ----

# serve_stdio MODE...: writes server.json.
serve_stdio() {
    local mode arguments=
    for mode in "$@"; do arguments+=", \"$mode\""; done
    rm -f "$log"
    cat >"$folder/server.json" <<END
{"mcpServers": {"test": {"command": "python3", "args": ["$server", "stdio", "$log"$arguments], "allow": true,
    "timeout": 1, "cwd": "/", "env": {"TEST_VALUE": "\${TEST_ANY:-a}\${env:TEST_ONE}"}}}}
END
}

# What every transport and revision must do; $folder/server.json is set.
test_calls() {
    call "$folder/server.json" -- echo '{"text": "é \" x", "deep": {"n": -5, "yes": true}}' structured '{}' \
        mixed '{}' fails '{}' error '{}' hang '{}' huge '{}' garbage '{}' input '{}' dotted_name '{"a": 1}' \
        flood '{}' echo '{}'
    check "$1: calls succeed" [ $status = 0 ]
    check "$1: arguments and results" gives 1 '["echo", {"text": "é \" x", "deep": {"n": -5, "yes": true}}]'
    check "$1: structured content" gives 2 '{"a":[1,2.5,null]}'
    check "$1: what is no text is named" gives 3 \
        $'one\n[image, image/png]\n[link, file:///a\033[2J]\ntwo\n[resource, b:d]\n[strange]\n[content]\nthré\ufffde'
    check "$1: a tool that fails" gives 4 'error: it went wrong'
    check "$1: an error of the protocol" gives 5 'error: server test: tools/call: no \x1b[31msuch tool'
    check "$1: a time limit" gives 6 'error: server test: does not answer in time'
    check "$1: output has a limit" gives_like 7 '^\[cut here: [0-9]+ more bytes are left out\]$'
    check "$1: what is no message does not matter" gives 8 tidy
    check "$1: more input is not given" gives_like 9 '^error: the tool asks for more'
    check "$1: names fit the formats of models" gives 10 '["dotted.name", {"a": 1}]'
    check "$1: after all that it works" gives 12 '["echo", {}]'
    check "$1: no control character reaches the terminal" lacks err $'\033'
    check "$1: a tool without a name is left out" contains err 'server test: the tool  is left out: it has no name'
    check "$1: so is one without a schema of an object" contains err 'the tool list is left out: its inputSchema is not'
    call "$folder/server.json" --
    check "$1: all pages are listed" contains out '"name":"forget"'
    check "$1: long names are cut" matches out '"name":"x{64}"'
    check "$1: and told apart" matches out '"name":"x{59}_2"'
    call "$folder/server.json" -- tools '' late '{}' more '{"is": "1"}' tools '' late '{}' same '{}' tools ''
    check "$1: a tool that comes later is not there at first" gives_like 1 'error: there is no tool late'
    check "$1: and then is" gives_like 3 '\["late", \{\}\]'
    check "$1: the list is new only if it has changed" \
        [ "$(grep -xE 'changed|as before' "$folder/out" | xargs)" = "as before changed as before" ]
}

test_stdio() {
    serve_stdio
    TEST_ONE=bc call "$folder/server.json" -- echo '{}'
    check "a server has its folder and variables" contains log 'begins / abc'
    check "it is greeted" contains log 'notifications/initialized {}'
    check "its input ends" contains log ends
    check "and so does it" [ $status = 0 ]
    test_calls "standard streams"
    call "$folder/server.json" -- flood '{}' asks '{}' dies '{}' echo '{}'
    check "a message has a limit" gives 1 'error: server test: sent a message of more than 8 MiB'
    check "a server may ask whether one is there, and nothing else" gives 2 \
        "$(printf '[{"jsonrpc": "2.0", "id": "p-1", "result": {}}, {"jsonrpc": "2.0", "id": 5, "error": %s}]' \
            '{"code": -32601, "message": "not supported by this client"}')"
    check "a server that ends says why" gives 3 'error: server test: has ended: the \x1b[31mlast words'
    check "and is started again" gives 4 '["echo", {}]'
    printf '{"tools": [{"name": "nap", "command": ["sleep", "0.3"], "allow": true}]}' >"$folder/nap.json"
    call "$folder/server.json" "$folder/nap.json" -- leaves '{}' nap '{}' echo '{}'
    check "one that has ended between calls is started for the next" gives 3 '["echo", {}]'
    rm -f "$log"
    call "$folder/server.json" -- hang '{}'
    check "what is not waited for any longer is cancelled" matches log '^notifications/cancelled \{"requestId": [0-9]+'
    serve_stdio stateless
    test_calls "without a handshake"
    check "there is no handshake" lacks log initialized
    serve_stdio old
    call "$folder/server.json" -- echo '{}'
    check "an older version" gives 1 '["echo", {}]'
    serve_stdio odd
    call "$folder/server.json" --
    check "a version that nobody knows" contains err 'server test: speaks a version of the protocol that is not known'
    serve_stdio empty
    call "$folder/server.json" --
    check "a server without tools" [ "$(<"$folder/out")" = "[]" ]
    serve_stdio endless
    call "$folder/server.json" --
    check "a list without an end" contains err 'server test: its list of tools has no end'
    serve_stdio heavy
    call "$folder/server.json" --
    check "or one whose pages are too much together" contains err 'server test: its list of tools has more than 8 MiB'
    check "ends after eight of them" [ "$(grep -c '^lists' "$log")" = 8 ]
    if [ "${PERIDOT_TEST_ALL:-}" ]; then
        serve_stdio slow
        SECONDS=0
        call "$folder/server.json" --
        check "or too slow together" contains err 'server test: does not answer in time'
        check "ends after a minute, $SECONDS s" eval '[ $SECONDS -ge 55 ] && [ $SECONDS -le 70 ]'
    fi
    printf '{"mcpServers": {"a": {"command": "sh", "args": ["%s", "python3", "%s", "stdio", "%s"], "allow": true}}}' \
        "$folder/free.sh" "$server" "$log" >"$folder/server.json"
    call "$folder/server.json" "$folder/tools.json" -- quiet '{}' finds '{}'
    check "what a server starts is not ended by calls of others" gives 2 found
    check "but with it" are_gone
    serve_stdio deaf
    SECONDS=0
    call "$folder/server.json" -- echo '{}'
    check "a server that does not end is ended" eval '[ $SECONDS -ge 3 ] && [ $SECONDS -le 9 ]'
    printf '{"servers": {"a": {"command": "sh", "args": ["-c", "sleep 1; exit 1"]},
        "b": {"command": "touch", "args": ["%s/both"]}}}' "$folder" >"$folder/server.json"
    call "$folder/server.json" --
    check "servers start at the same time" [ -e "$folder/both" ]
    printf '{"mcpServers": {"a": {"command": "true"}}}' >"$folder/server.json"
    call "$folder/server.json" --
    check "a program that is no server" contains err 'server a: has ended'
    printf '{"mcpServers": {"a": {"command": "no-such-program"}}}' >"$folder/server.json"
    call "$folder/server.json" --
    check "a program that is not there" contains err 'server a: no-such-program cannot be started: No such file'
}

test_names() {
    local name
    for name in one 'two words'; do
        printf '{"servers": {"%s": {"command": "python3", "args": ["%s", "stdio", "%s"], "allow": ["upper"]}}}' \
            "$name" "$server" "$log" >"$folder/$name.json"
    done
    printf '{"tools": [{"name": "upper", "command": ["tr", "a-z", "A-Z"], "allow": true}]}' >"$folder/upper.json"
    call "$folder/one.json" "$folder/two words.json" "$folder/upper.json" -- one_upper '{}' two_words_upper '{}' \
        upper '{"a": 1}' one_echo '{}' tools ''
    check "names that clash begin with the server's" gives 1 '["upper", {}]'
    check "in characters that names have" gives 2 '["upper", {}]'
    check "a program keeps its own" gives 3 '{"A": 1}'
    check "what may be called is said tool by tool" gives 4 'error: the user does not allow this call'
    check "the list says so" contains err 'two_words_upper (server two words, allowed)'
    check "of each" matches err '^two_words_echo \(server two words\): Gives the arguments back\.$'
}

# ---- servers over HTTP ----

# serve_http MODE...: starts one; at PATH writes server.json for a path of its.
serve_http() {
    rm -f "$log" "$folder/port"
    python3 "$server" http "$log" "$@" >"$folder/port" 2>"$folder/server.err" &
    http=$!
    await_text "$folder/port" $'\n' || sleep 0.1
    port=$(<"$folder/port")
}
stop_http() { kill $http; wait $http 2>/dev/null; }
at() {
    printf '{"servers": {"test": {"url": "http://127.0.0.1:%s%s", "allow": true, "timeout": 1, "headers": {%s}}}}' \
        "$port" "$1" "${2:-}" >"$folder/server.json"
}

test_http() {
    serve_http
    at /mcp
    test_calls "events"
    stop_http
    serve_http
    at /json
    test_calls "JSON"
    at /mcp
    rm -f "$log"
    call "$folder/server.json" -- echo '{}' hang '{}' asks '{}' forget '{}' echo '{}'
    check "requests repeat the version" contains log 'POST /mcp tools/list 2025-11-25'
    check "what is not waited for any longer is cancelled" matches log '^notifications/cancelled \{"requestId": [0-9]+'
    check "what a server asks is answered" gives_like 3 '"p-1", "result": \{\}\}.*-32601'
    check "a session that has ended begins anew" gives 5 '["echo", {}]'
    check "the session is ended" contains log 'DELETE True 2025-11-25'
    check "events leave their connection to the next request" \
        [ "$(awk '/tools.list/ { print $NF }' "$log" | sort -u | wc -l)" -le 2 ]
    call "http://127.0.0.1:$port/json" -- tools ''
    check "a URL needs no file" contains err "echo (server 127.0.0.1:$port): "
    at /moved
    call "$folder/server.json" -- echo '{}'
    check "a redirection on the server" gives 1 '["echo", {}]'
    at /away
    call "$folder/server.json" --
    check "but not to another" contains err 'server test: is to be found at http://localhost:1/json'
    at /private
    call "$folder/server.json" --
    check "a key that is missing" contains err 'server test: HTTP status 401: the "headers" of a file can hold what it'
    at /private '"X-Key": "${TEST_KEY}"'
    TEST_KEY='open sesame' call "$folder/server.json" -- echo '{}'
    check "and one that is there" gives 1 '["echo", {}]'
    at /broken
    call "$folder/server.json" --
    check "an answer that is not JSON" contains err 'server test: does not answer the request with a message of MCP'
    at /nothing
    call "$folder/server.json" --
    check "an address that has no server" contains err 'server test: HTTP status 404'
    at /mcp
    call "$folder/server.json" -- flood '{}'
    check "an event has a limit" gives 1 'error: server test: sent an event of more than 8388608 bytes'
    stop_http
    call "$folder/server.json" --
    check "a server that is gone" contains err 'server test: '
    serve_http stateless
    at /mcp
    test_calls "events without a handshake"
    call "$folder/server.json" --
    check "a tool that asks for impossible headers is left out" contains err 'header is left out: its schema has an'
    stop_http
    serve_http stateless
    at /json
    test_calls "JSON without a handshake"
    check "without a handshake there is no session" lacks log DELETE
    check "nor a message to cancel" lacks log notifications/cancelled
    stop_http
}

# ---- interrupts, questions ----

# interrupt NAME: sends SIGINT during a call, once the file $folder/begun is there.
interrupt() {
    rm -f "$folder/begun"
    env --default-signal=INT "$calls" "$folder/$1.json" -- "$2" '{}' >"$folder/out" 2>"$folder/err" </dev/null &
    local id=$!
    await_text "$folder/err" "$2 (" && sleep 0.3
    kill -INT $id
    wait $id
    status=$?
}

test_interrupts() {
    printf '{"tools": [{"name": "slow", "command": ["sh", "-c", "echo $$ >%s; sleep 100"], "allow": true}]}' \
        "$folder/pids" >"$folder/slow.json"
    SECONDS=0
    interrupt slow slow
    check "Ctrl-C ends a program, and the command by that signal" [ $status = 130 ]
    check "it is gone" are_gone
    serve_stdio
    interrupt server hang
    check "Ctrl-C ends the waiting for a server" [ $status = 130 ]
    check "which is told" contains log notifications/cancelled
    check "and ended in order" contains log ends
    serve_http
    at /mcp
    interrupt server hang
    check "over HTTP, too" [ $status = 130 ]
    check "which is told as well" contains log notifications/cancelled
    stop_http
    serve_stdio silent
    "$calls" "$folder/server.json" -- >"$folder/out" 2>"$folder/err" </dev/null &
    await_text "$folder/err" 'server test: waiting for its tools' && kill -TERM $!
    wait $!
    check "a signal ends the waiting for one that never answers" [ $? = 143 ]
    check "all that without waiting for time limits" [ $SECONDS -le 25 ]
}

# ask KEYS...: calls with the arguments in the list $asked, on a terminal; keys for each question.
ask() {
    mkfifo "$folder/keys"
    printf 'stty -echo; until read -rt 0; do sleep 0.05; done; exec' >"$folder/command"
    printf ' %q' "$calls" "${asked[@]}" >>"$folder/command"
    printf ' >%q' "$folder/results" >>"$folder/command"
    : >"$folder/screen"
    # a shell lets what it starts in the background ignore Ctrl-C
    env --default-signal=INT timeout 60 script -qefc "exec bash '$folder/command'" "$folder/screen" <"$folder/keys" \
        >/dev/null 2>&1 &
    local key n=0
    exec 3>"$folder/keys"
    (printf 'a\n' >&3)   # typed before the question, it is no answer; the command waits for it
    for key in "$@"; do
        for _ in $(seq 200); do
            [ "$(grep -aoF 'in this conversation: ' "$folder/screen" 2>/dev/null | wc -l)" -gt $n ] && break
            sleep 0.05
        done
        n=$(grep -aoF 'in this conversation: ' "$folder/screen" | wc -l)
        sleep 0.1
        (printf '%b' "$key" >&3)   # which may have ended
    done
    wait $!
    status=$?
    exec 3>&-
    rm "$folder/keys"
    cp "$folder/results" "$folder/out"
}

test_questions() {
    has_terminal "questions before calls" || return
    printf '{"tools": [{"name": "one", "command": ["cat"]}, {"name": "two", "command": ["cat"]}]}' >"$folder/ask.json"
    local asked=("$folder/ask.json" -- one '{"n": 1}' one $'{"n": "\u202e"}' two '{"n": 3}' one '{"n": 4}')
    ask 'n\r' 'perhaps\r' 'a\r' 'y\r'
    check "n refuses" gives 1 'error: the user does not allow this call'
    check "another answer is asked for again, a allows" gives 2 $'{"n": "\u202e"}'
    check "the arguments are shown, and move no cursor" contains screen '{"n": "\xe2\x80\xae"}'
    check "y calls" gives 3 '{"n": 3}'
    check "what is allowed for the conversation is not asked for again" gives 4 '{"n": 4}'
    check "so there are four questions" [ "$(grep -aoF 'in this conversation: ' "$folder/screen" | wc -l)" = 4 ]
    ask 'y\r' '\003'
    check "Ctrl-C at a question ends the turn" [ "$(grep -cx '\.' "$folder/out")" = 1 ]
    ask '\004'
    check "Ctrl-D at a question calls nothing" [ ! -s "$folder/out" ]
    printf '{"servers": {"a": {"command": "python3", "args": ["%s", "stdio", "%s"], "allow": ["more"]}}}' \
        "$server" "$log" >"$folder/ask.json"
    asked=("$folder/ask.json" -- more '{"is": "1"}' tools '' echo2 '{}' echo2 '{}' more '{"is": "2"}' tools ''
        echo2 '{}')
    ask 'a\r' 'n\r'
    check "what is allowed may be called again" [ "$(grep -c '^error: server a: ' "$folder/out")" = 2 ]
    check "until it is another tool" [ "$(grep -c '^error: the user does not' "$folder/out")" = 1 ]
}

# Each allocation fails once: the result or a sentence, and no more.
test_alloc() {
    local i n step=7
    [ "${PERIDOT_TEST_ALL:-}" ] && step=1
    serve_stdio
    local arguments=("$folder/server.json" "$folder/tools.json" -- echo '{"text": "x"}' structured '{}' back '{}')
    COUNT_ALLOCATIONS=$folder/count "${calls}_failing" "${arguments[@]}" </dev/null >"$folder/good" 2>"$folder/err"
    n=$(<"$folder/count")
    check "calls allocate" [ "${n:-0}" -gt 50 ]
    for ((i = 1; i <= n; i += step)); do
        FAIL_ALLOCATION=$i "${calls}_failing" "${arguments[@]}" </dev/null >"$folder/out" 2>"$folder/err"
        status=$?
        n_checks=$((n_checks + 1))
        [ $status = 0 ] && cmp -s "$folder/out" "$folder/good" && continue
        [ $status = 1 ] && contains err memory || failed "allocation $i of $n: status $status"
    done
}

test_files
test_programs
test_stdio
test_names
test_http
test_interrupts
test_questions
test_alloc
finish
