#!/usr/bin/env bash
# Several models in one server: chosen by name, loaded on demand, unloaded, and a broken one among them.
. "$(dirname "$0")/serve.sh"

# loaded: the names of the models that are, with spaces.
loaded() { curl -s "$url/api/ps" | grep -oE '"name":"[^"]*"' | sed -E 's/.*:"(.*)"/\1/' | tr '\n' ' ' | sed 's/ $//'; }
# await_loaded NAMES: within 20 s.
await_loaded() {
    for _ in $(seq 200); do
        [ "$(loaded)" = "$1" ] && return
        sleep 0.1
    done
    false
}
of() { printf ', "temperature": 0, "model": "%s"' "$1"; }

one_model=30000000   # bytes of which one takes 20 million
mkdir "$folder/models"
cp "$model" "$folder/models/tale.gguf"
cp "$model" "$folder/models/yarn.gguf"
head -c 5000 "$model" >"$folder/models/broken.gguf"
echo text >"$folder/models/README.md"

test_on_demand() {
    local text
    start -m "$folder/models" --ctx 512
    check "only the first model is loaded at the start" [ "$(loaded)" = stories ]
    get /v1/models
    for name in stories tale yarn broken; do check "/v1/models lists $name" contains out "\"id\":\"$name\""; done
    check "and nothing else" [ "$(grep -o '"id":' "$folder/out" | wc -l)" = 4 ]
    get /api/tags
    check "/api/tags lists a model that is not loaded" contains out '"name":"yarn"'
    get /v1/models/yarn
    check "/v1/models/NAME is any of them" [ "$(field id)" = yarn ]

    ask /v1/completions "$(completion Once 12 1 "$(of stories)")"
    text=$(field text)
    check "the first model answers" [ "$status" = 200 ]
    send long /v1/completions "$(completion Once 400 1 "$(of stories), \"stream\": true$endless")"
    ask /v1/completions "$(completion Once 12 1 "$(of tale)")" -D "$folder/headers"
    check "another one is loaded for a request that names it" [ "$status" = 200 ]
    check "and says its name" [ "$(field model)" = tale ]
    check "and has the same text, as it is the same file" [ "$(field text)" = "$text" ]
    check "without a warning" [ "$(grep -c ^Warning "$folder/headers")" = 0 ]
    check "both are loaded" [ "$(loaded)" = "stories tale" ]
    check "the metrics have the sum of both" [ "$(gauge cache_positions)" = 1024 ]
    await
    answer long
    check "the stream of the first went on" contains out 'data: [DONE]'

    ask /api/show '{"model": "yarn:latest"}'
    check "/api/show of one that is not loaded" contains out '"general.parameter_count":'
    ask /v1/completions "$(completion Once 12 1 "$(of other)")" -D "$folder/headers"
    check "the first answers for a name that is not here" [ "$(field model)" = stories ]
    check "with a warning" contains headers 'answered by stories, the first model of this server'
}

test_broken() {
    ask /v1/completions "$(completion Once 12 1 "$(of broken)")" -D "$folder/headers"
    check "a model that can never be loaded: 500, not $status" [ "$status" = 500 ]
    check "and why" contains out 'the model broken cannot be opened, and trying again does not help: broken.gguf: '
    check "without a word of folders" [ "$(grep -c "$folder\|models/" "$folder/out")" = 0 ]
    check "nor of trying again" [ "$(grep -ci '^Retry-After' "$folder/headers")" = 0 ]
    ask /v1/chat/completions "$(chat Once 12 1 "$(of broken)")"
    check "it is tried again" [ "$status" = 500 ]
    ask /v1/completions "$(completion Once 12 1 "$(of tale)")"
    check "the others go on" [ "$status" = 200 ]
    stop
}

await_gauge() {   # await_gauge NAME VALUE
    for _ in $(seq 1000); do
        [ "$(gauge "$1")" = "$2" ] && return
        sleep 0.02
    done
    false
}

test_idle() {
    start -m "$folder/models/tale.gguf" --ctx 512 --idle 1
    check "an idle model is unloaded" await_loaded ""
    check "its cache, too" await_gauge cache_positions 0   # which takes a moment more
    get /health
    check "the server is well" [ "$status" = 200 ]
    ask /tokenize '{"content": "Once upon a time", "model": "stories"}'
    check "tokens need no loaded model" [ "$status" = 200 ]
    check "which stays unloaded" [ "$(loaded)" = "" ]
    for name in stories tale; do send $name /v1/completions "$(completion Once 12 1 "$(of $name)")"; done
    await
    for name in stories tale; do
        answer $name
        check "$name is loaded again" [ "$(field model)" = $name ]
    done
    check "and unloaded again" await_loaded ""
    stop
}

# The device has the memory of one model.
test_memory() {
    VK_ADD_LAYER_PATH=$(dirname "$peridot")/tests/layers VK_INSTANCE_LAYERS=VK_LAYER_PERIDOT_faults \
        PERIDOT_TEST_MEMORY=$one_model XDG_CACHE_HOME= HOME= start -m "$folder/models/tale.gguf" --ctx 512
    ask /v1/completions "$(completion Once 12 1 "$(of tale)")"
    check "a model is loaded where memory is short" [ "$status" = 200 ]
    check "in place of the one that was idle" [ "$(loaded)" = tale ]
    ask /v1/completions "$(completion Once 12 1 "$(of stories)")"
    check "which comes back" [ "$status $(loaded)" = "200 stories" ]
    send long /v1/completions "$(completion Once 400 1 "$(of stories), \"stream\": true$endless")"
    await_gauge running 1
    ask /v1/completions "$(completion Once 12 1 "$(of tale)")"
    check "one that is at work stays: 503" [ "$status" = 503 ]
    check "and the sentence of memory" contains out 'memory'
    await
    answer long
    check "its stream goes on" contains out 'data: [DONE]'
    stop
}

# refuses TEXT ARGUMENTS...
refuses() {
    "$peridot" serve -m "$model" --port 0 "${@:2}" >"$folder/out" 2>"$folder/err"
    status=$?
    check "${*:2}: does not begin" [ $status != 0 ]
    check "${*:2}: says '$1'" contains err "$1"
}

# A name may be anything that a file is called.
test_names() {
    local odd=$folder/$(printf 'odd\033[31m').gguf
    cp "$model" "$odd"
    start -m "$odd"
    check "a name of control characters is written for a terminal" contains log 'and odd\x1b[31m, on demand'
    check "and never raw" [ "$(grep -c $'\033' "$folder/log")" = 0 ]
    ask /v1/completions "$(completion Once 1 1 ', "model": "odd\u001b[31m"')"
    check "nor when it is loaded" contains log 'loading odd\x1b[31m'
    check "of all of which nothing is raw" [ "$(grep -c $'\033' "$folder/log")" = 0 ]
    stop
}

# One port, one server; but a server that begins where another has ended need not wait for what that leaves behind.
test_port() {
    local at
    start
    at=${url#http://}
    timeout 20 "$peridot" serve -m "$model" --port "${at##*:}" >"$folder/out" 2>"$folder/err"
    status=$?
    check "a second server on a port does not begin" [ $status = 1 ]
    check "and asks whether there is another" contains err 'is another server running there?'
    exec 3<>"/dev/tcp/${at%:*}/${at#*:}"
    printf 'GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n' >&3
    check "the first one answers" [ "$(head -1 <&3 | tr -d '\r')" = 'HTTP/1.1 200 OK' ]
    stop   # which ends the connection, so that the port remembers it
    exec 3>&-
    start --port "${at##*:}"
    check "the port is free as soon as its server has ended" [ "${url##*:}" = "${at##*:}" ]
    stop
}

# A socket that is there already, as systemd hands it over: its own address counts, and no other descriptor does.
test_inherited() {
    local port hand='import os, socket, sys
host, n, *command = sys.argv[1:]
s = socket.create_server((host, 0))
print("socket", s.getsockname()[1], flush=True)
os.dup2(s.fileno() if int(n) else os.open("/dev/null", os.O_RDONLY), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=n if int(n) else "1")
os.execv(command[0], command)'
    handed() { timeout 20 python3 -c "$hand" "$@" >"$folder/out" 2>"$folder/err"; }
    : >"$folder/log"
    python3 -c "$hand" 127.0.0.1 1 "$peridot" serve -m "$model" --host 127.0.0.2 --port 1 \
        >"$folder/out" 2>"$folder/log" &
    server=$!
    await_text "$folder/out" socket
    port=$(sed -n 's/^socket //p' "$folder/out")
    status=$(curl -s -m 60 -o "$folder/answer" -w '%{http_code}' "http://127.0.0.1:$port/v1/completions" \
        -d "$(completion Once 4 1)")
    check "the request that starts a server is answered, and not with $status" [ "$status" = 200 ]
    await_text "$folder/log" serving
    check "the server listens on a socket that was handed over" \
        contains log "serving stories at http://127.0.0.1:$port: "
    url=http://127.0.0.1:$port get /health
    check "and answers there" [ "$status" = 200 ]
    stop
    handed 0.0.0.0 1 "$peridot" serve -m "$model"
    check "without a key it is refused where others can reach it" \
        contains err '--host 0.0.0.0 can be reached from other machines'
    handed 127.0.0.1 2 "$peridot" serve -m "$model"
    check "two are too many" contains err 'LISTEN_FDS: one socket is needed, and no other'
    handed 127.0.0.1 0 "$peridot" serve -m "$model"
    check "what is no socket is refused" contains err 'LISTEN_FDS: descriptor 3 is no socket that listens'
    LISTEN_PID=1 LISTEN_FDS=1 refuses '--host 0.0.0.0 can be reached' --host 0.0.0.0   # another process's
}

# install ANSWER ARGUMENTS...: as run, of serve --install-service, in the folder "here 50%$"; its units are in $units.
install() {
    (cd "$folder/here" && printf '%s' "$1" | XDG_RUNTIME_DIR=$folder/runtime XDG_CONFIG_HOME=$folder/config \
        PERIDOT_MODELS="$folder/a \"b\"" PERIDOT_DEVICE='' "$peridot" serve --install-service "${@:2}" \
        >"$folder/out" 2>"$folder/err")
    status=$?
}

test_service() {
    local units=$folder/config/systemd/user
    mkdir -p "$folder/here" "$folder/runtime"
    install '' -m x
    check "without systemd for users it is refused" [ $status = 1 ]
    check "in a sentence" contains err 'peridot: no systemd runs here for this user'
    mkdir "$folder/runtime/systemd"
    install $'no\n' -m 'my "50% $HOME' --port 8081
    check "the units are shown" contains out "# $units/peridot.service"
    check "with the options, which mean nothing to systemd" contains out \
        "ExecStart=\"$(realpath "$peridot")\" \"serve\" \"-m\" \"my \\\"50%% \$\$HOME\" \"--port\" \"8081\""
    check "the folder" contains out "WorkingDirectory=$folder/here"
    check "and variables" contains out "Environment=\"PERIDOT_MODELS=$folder/a \\\"b\\\"\""
    check "that are set" [ "$(grep -c PERIDOT_DEVICE= "$folder/out")" = 0 ]
    check "so is the socket" contains out 'ListenStream=127.0.0.1:8081'
    check "and without a yes nothing is written" [ "$status $(ls "$folder/config" 2>&1 | wc -l)" = '0 1' ]
    check "which is said" contains err 'nothing is written'
    cp "$folder/out" "$folder/shown"
    install $'yes\n' -m 'my "50% $HOME' --port 8081
    check "on a yes both are" [ "$(ls "$units" | xargs)" = 'peridot.service peridot.socket' ]
    for name in service socket; do sed "1i # $units/peridot.$name" "$units/peridot.$name"; echo; done >"$folder/written"
    check "as shown" cmp "$folder/shown" "$folder/written"
    for name in daemon-reload 'enable --now peridot.socket' 'status peridot.socket'; do
        check "it says systemctl --user $name" contains err "    systemctl --user $name"
    done
    check "and how they go again" contains err "    rm '$units/peridot.service' '$units/peridot.socket'"
    if command -v systemd-analyze >"$folder/out"; then
        systemd-analyze verify --user --man=no --recursive-errors=no "$units"/peridot.{service,socket} \
            >"$folder/out" 2>"$folder/err"
        check "systemd reads them" matches_not err 'peridot\.(service|socket):[0-9]+:'
    fi
    install '' -m 'my "50% $HOME' --port 8081
    check "the same units are there" [ $status = 0 ]
    install '' -m other --yes
    check "others are left alone" contains err "peridot.service is there already, and is another"
    check "with status 1" [ $status = 1 ]
    cp "$folder/written" "$folder/out"
    check "as they were" contains out "$(cat "$units/peridot.socket")"
    rm -r "$folder/config"
    install '' --yes --host ::1
    check "--yes does not ask" [ -e "$units/peridot.service" ]
    check "an address of IPv6" grep -qF 'ListenStream=[::1]:8080' "$units/peridot.socket"
    check "neither option is the server's" [ "$(grep -cE -e '--(yes|install)' "$units/peridot.service")" = 0 ]
    fails_with 2 'takes --api-key-file' serve --install-service --api-key x
    fails_with 2 'needs a --port' serve --install-service --port 0
    fails_with 2 '--yes is for --install-service' serve --yes
    rm -r "$folder/config"
    install '' --host example.org
    check "a name is no address" contains err 'example.org is a name'
}

test_refused() {
    mkdir "$folder/none"
    refuses 'there is another model with the name stories' -m "$model"
    refuses 'there is no model in this folder' -m "$folder/none"
    refuses '--alias needs a server with one model' -m "$folder/models/tale.gguf" --alias a
    refuses '--draft needs a server with one model' -m "$folder/models/tale.gguf" --draft ngram
}

test_on_demand
test_broken
test_idle
test_memory
test_names
test_port
test_inherited
test_service
test_refused
finish
