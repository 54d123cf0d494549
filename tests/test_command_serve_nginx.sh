#!/usr/bin/env bash
# Three `peridot serve` behind nginx, by tools/nginx/peridot.conf: streams are not buffered, a conversation stays on its
# replica, and one replica that is killed under load loses only what it was writing. With PERIDOT_TEST_ALL.
. "$(dirname "$0")/serve.sh"

[ "${PERIDOT_TEST_ALL:-}" ] || { echo "skipped: PERIDOT_TEST_ALL is not set"; exit 0; }
command -v nginx >/dev/null || { echo "skipped: nginx is not there"; exit 0; }

replicas=() logs=() ports=()
for i in 1 2 3; do
    start --parallel 8
    replicas+=($server) ports+=("${url##*:}")
    mv "$folder/log" "$folder/log$i"   # the server goes on writing there
    logs+=("$folder/log$i")
done
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
url=http://127.0.0.1:$port
mkdir "$folder/nginx"
chmod 755 "$folder" "$folder/nginx"
{
    echo "daemon off; pid $folder/nginx/pid; error_log $folder/nginx/error; worker_processes 1;"
    echo "events { worker_connections 256; }"
    echo "http { access_log off;"
    for kind in client_body proxy fastcgi uwsgi scgi; do echo "${kind}_temp_path $folder/nginx/$kind;"; done
    sed "s/127.0.0.1:8080/127.0.0.1:$port/; s/127.0.0.1:8081/127.0.0.1:${ports[0]}/
         s/127.0.0.1:8082/127.0.0.1:${ports[1]}/; s/127.0.0.1:8083/127.0.0.1:${ports[2]}/" \
        "$source/tools/nginx/peridot.conf"
    echo "}"
} >"$folder/nginx/conf"
nginx -c "$folder/nginx/conf" -p "$folder/nginx" -e "$folder/nginx/error" 2>"$folder/err" &
nginx=$!
trap 'kill "$nginx" "${replicas[@]}" 2>/dev/null; wait; rm -rf "$folder"' EXIT
for _ in $(seq 100); do
    get /health
    [ "$status" != 200 ] || break
    sleep 0.1
done
check "nginx hands on what replicas answer" [ "$status" = 200 ]

# chat MESSAGES: the body of a request.
chat() { printf '{"messages": [%s], "max_tokens": 24, "temperature": 0}' "$1"; }
message() { printf '{"role": "%s", "content": "%s"}' "$1" "$2"; }
# asked I: how many requests replica I has answered.
asked() { grep -c '^POST' "${logs[$1]}"; }

test_stream() {
    local times
    times=$(curl -sN -m 600 -o "$folder/out" -w '%{time_starttransfer} %{time_total}' "$url/v1/completions" \
        -d '{"prompt": "The little fox", "max_tokens": 400, "temperature": 0, "stream": true}')
    check "a stream ends as it should" contains out 'data: [DONE]'
    check "a stream is not buffered: $times" awk -v times="$times" 'BEGIN { split(times, t); exit !(t[1] < t[2] / 2) }'
}

test_pinned() {
    local before after i first turn
    for first in one two three four; do
        before=$(for i in 0 1 2; do asked $i; done)
        turn=$(message user "$first")
        for i in 1 2 3; do
            ask /v1/chat/completions "$(chat "$turn")"
            check "a turn is answered" [ "$status" = 200 ]
            turn="$turn, $(message assistant "$i"), $(message user "go on")"
        done
        after=$(for i in 0 1 2; do asked $i; done)
        check "the turns of a conversation go to one replica" \
            [ "$(paste <(echo "$before") <(echo "$after") | awk '$1 != $2' | wc -l)" = 1 ]
    done
}

test_killed() {
    local i codes=() n_whole=0 n_cut=0 victim=0
    sent=()
    for i in $(seq 12); do
        curl -sN -m 600 -o "$folder/answer$i" "$url/v1/completions" \
            -d "{\"prompt\": \"Story number $i\", \"max_tokens\": 450, \"temperature\": 0, \"stream\": true}" &
        sent+=($!)
    done
    sleep 1
    kill -9 "${replicas[$victim]}"
    for i in $(seq 12); do
        wait "${sent[i - 1]}"
        codes[i]=$?
        if grep -q 'data: \[DONE\]' "$folder/answer$i"; then n_whole=$((n_whole + 1))
        else
            n_cut=$((n_cut + 1))
            check "a stream that is cut is an error to its client: ${codes[i]}" [ "${codes[i]}" != 0 ]
        fi
    done
    check "the other replicas' streams end as they should: $n_whole whole, $n_cut cut" [ $n_whole -ge 1 ]
    echo "killed one of three replicas with 12 streams at work: $n_cut were cut"
    for i in $(seq 12); do
        ask /v1/completions "{\"prompt\": \"Another story $i\", \"max_tokens\": 4}"
        check "new requests are answered" [ "$status" = 200 ]
    done
}

test_stream
test_pinned
test_killed
finish
