# Shared by the tests of peridot serve: sourced as command.sh, which it sources. Ends the test where curl or the demo
# model is not there.
. "$(dirname "$0")/command.sh"

model=$source/models/stories.gguf
command -v curl >/dev/null || { echo "skipped: curl is not there"; exit 0; }
[ -e "$model" ] || { echo "skipped: the demo model is not there"; exit 0; }

# start ARGUMENTS...: a server at $url whose process is $server.
start() {
    : >"$folder/log"
    "$peridot" serve -m "$model" --port 0 "$@" >"$folder/out" 2>"$folder/log" &
    server=$!
    for _ in $(seq 600); do
        url=$(sed -nE 's/^serving .* at (http:[^ ]*): .*/\1/p' "$folder/log")
        [ "$url" ] && [ "$(curl -s -o /dev/null -w '%{http_code}' "$url/health")" = 200 ] && return
        kill -0 $server 2>/dev/null || break
        sleep 0.1
    done
    cp "$folder/log" "$folder/err"
    failed "the server does not start"
    finish
}

# stop: ends it as a service manager does.
stop() {
    kill -TERM $server
    wait $server
    status=$?
    check "SIGTERM ends it with status 0, not $status" [ $status = 0 ]
}

# ask PATH BODY CURL_OPTIONS...: the answer in $folder/out, its status in $status.
ask() {
    status=$(curl -sN -m 600 -o "$folder/out" -w '%{http_code}' "${@:3}" --data-binary "$2" "$url$1")
}

get() { status=$(curl -s -m 20 -o "$folder/out" -w '%{http_code}' "${@:2}" "$url$1"); }

# field NAME: the first string or number of that name.
field() {
    grep -oE "\"$1\":(\"([^\"\\\\]|\\\\.)*\"|[-0-9.e]+)" "$folder/out" | head -1 |
        sed -E 's/^"[a-z_]+"://; s/^"(.*)"$/\1/'
}
# deltas: the text of a stream.
deltas() {
    sed -n 's/^data: //p' "$folder/out" | grep -oE '"content":"([^"\\]|\\.)*"' |
        sed -E 's/^"content":"(.*)"$/\1/' | tr -d '\n'
}
gauge() { curl -s "$url/metrics" | sed -n "s/^peridot_$1 //p"; }

# send NAME PATH BODY CURL_OPTIONS...: asks in the background; after `await`, `answer NAME` puts it in $folder/out.
send() {
    curl -sN -m 600 -o "$folder/$1" "${@:4}" --data-binary "$3" "$url$2" &
    sent+=($!)
}
await() {
    wait "${sent[@]}"
    sent=()
}
answer() { cp "$folder/$1" "$folder/out"; }

# chat TEXT MAX_TOKENS SEED [MORE], completion ...: bodies. `endless`: a MORE with which no text ends early.
message() { printf '{"role": "%s", "content": "%s"}' "$1" "$2"; }
chat() { printf '{"messages": [%s], "max_tokens": %s, "seed": %s%s}' "$(message user "$1")" "$2" "$3" "$4"; }
completion() { printf '{"prompt": "%s", "max_tokens": %s, "seed": %s%s}' "$1" "$2" "$3" "$4"; }
endless=', "logit_bias": {"1": -100}'
