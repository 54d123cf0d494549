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
test_refused
finish
