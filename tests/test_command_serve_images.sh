#!/usr/bin/env bash
# Images in requests to peridot serve: tests/serve_images.py asks about them.
. "$(dirname "$0")/serve.sh"

command -v python3 >/dev/null || { echo "skipped: Python is not there"; exit 0; }
golden=$goldens/gemma3-vision
make_seer "$folder/seer"

# asks TITLE PART ARGUMENTS...
asks() {
    python3 "$source/tests/serve_images.py" "$2" "$url" "$golden" "${@:3}" >"$folder/out" 2>"$folder/err"
    check "$1" [ $? = 0 ]
}

test_requests() {
    local host
    set --
    for host in localhost 127.0.0.1 127.1 2130706433 169.254.169.254 '[::1]' '[::ffff:10.0.0.1]' '[fe80::1]' \
        '[fd00::1]'; do
        set -- "$@" --allow-url "$host"
    done
    model=$folder/seer
    start --parallel 2 "$@"   # fewer than asks at once
    asks "each interface takes images" forms
    asks "what is no image, or elsewhere, is refused" hostile
    stop
    cp -r "$folder/seer" "$folder/user"
    sed -i "s/m.content is string/m.role != 'user'/" "$folder/user/tokenizer_config.json"
    model=$folder/user
    start
    asks "an image that the template passes over is refused" users
    stop
    model=$folder/seer
    start --ctx 256
    asks "turns that are left out take their images with them" drop
    stop
    start --vision "$golden/mmproj.gguf" --image-rows 16
    asks "a tower of another file is as good" one
    stop
    start
    asks "pan and scan is a request's to ask for" crops
    stop
    if [ "${PERIDOT_TEST_ALL:-}" ]; then
        start
        python3 "$source/tests/serve_worst.py" "$url" single_pictures pictures --pictures --pid $server \
            >"$folder/out" 2>&1
        check "large pictures keep nobody waiting" [ $? = 0 ]
        cat "$folder/out"
        wait $server
    fi
    start --pan-and-scan
    asks "or for all images" crops default
    stop
    fails_with 1 '--pan-and-scan: Peridot Stories is not a Gemma 3 model' serve --pan-and-scan \
        -m "$source/models/stories.gguf"
    fails_with 1 '--vision needs a server with one model' serve -m "$model" -m "$source/models/stories.gguf" \
        --vision "$golden/mmproj.gguf"
    fails_with 2 '--allow-url takes a host' serve --allow-url https://example.org
}

# A model that is unloaded, or was never loaded, is opened for images, and a model that does not see says so.
test_models() {
    model=$source/models/stories.gguf
    start -m "$folder/seer" --idle 1
    asks "a model is loaded for an image" one
    asks "a model that does not see refuses images" blind "does not see"
    for _ in $(seq 100); do grep -q 'unloaded seer' "$folder/log" && break; sleep 0.1; done
    check "the model is unloaded" grep -q 'unloaded seer' "$folder/log"
    asks "and loaded again for another" one
    stop
}

# Qwen 3.5's rows have places in three dimensions, and its template writes the tokens around them.
test_qwen() {
    local golden=$goldens/qwen35-vision
    make_qwen_seer "$folder/qwen" || return
    model=$folder/qwen
    start --kv f32 --precision exact
    asks "a reply to an image is that to its rows between two tokens" placed "$peridot" "$model"
    stop
}

# The device is lost while a request with an image is at work: it goes on.
test_lost() {
    local want body
    model=$folder/seer
    body="{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image_url\", \"image_url\":
        \"data:image/png;base64,$(base64 -w0 "$golden/image-1.png")\"}]}], \"max_tokens\": 2000, \"seed\": 3,
        \"temperature\": 2, \"top_k\": 0}"
    VK_ADD_LAYER_PATH=$(dirname "$peridot")/tests/layers VK_INSTANCE_LAYERS=VK_LAYER_PERIDOT_faults \
        PERIDOT_TEST_FAULT=$folder/fault start
    ask /v1/chat/completions "$body"
    want=$(field content)
    check "a text about an image is long" [ ${#want} -gt 1000 ]
    send lost /v1/chat/completions "$body"
    sleep 0.5
    echo lose >"$folder/fault"
    await
    answer lost
    check "it goes on after its device was lost" [ "$(field content)" = "$want" ]
    check "which it was" [ "$(gauge lost_devices_total)" = 1 ]
    asks "and the server goes on" one
    stop
}

# What a server on the Internet gives out: in a network of its own, whose machine has a public address.
test_fetch() {
    command -v openssl >/dev/null || { echo "skipped: openssl is not there"; return; }
    if ! unshare --net --mount true 2>/dev/null || ! command -v ip >/dev/null; then
        echo "skipped: no right to make a network"
        return
    fi
    unshare --net --mount "$0" "$peridot" "$source" in_network
    check "images are fetched from hosts that are named" [ $? = 0 ]
}

if [ "${3:-}" = in_network ]; then
    ip link set lo up && ip address add 1.2.3.4/32 dev lo || exit 1
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=1.2.3.4 -addext subjectAltName=IP:1.2.3.4 \
        -keyout "$folder/key" -out "$folder/certificate" 2>/dev/null || exit 1
    mount --bind "$folder/certificate" /etc/ssl/certs/ca-certificates.crt || exit 1
    cp "$golden/image-1.png" "$folder/"
    python3 - "$folder" <<'END' &
import http.server, ssl, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        data = open(sys.argv[1] + "/image-1.png", "rb").read()
        data = {"/large": bytes(21 << 20), "/empty": b""}.get(self.path, data)
        self.send_response({"/moved": 302, "/none": 404}.get(self.path, 200))
        self.send_header("Location", "/image")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("1.2.3.4", 443), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1] + "/certificate", sys.argv[1] + "/key")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
END
    web=$!
    model=$folder/seer
    start --allow-url 1.2.3.4
    asks "an image is fetched" fetch https://1.2.3.4/image image
    asks "redirects are not followed" fetch https://1.2.3.4/moved 'redirects are not followed'
    asks "what is not there is not" fetch https://1.2.3.4/none 'status 404'
    asks "nor what is too large" fetch https://1.2.3.4/large 'more than 20971520 bytes'
    asks "nor what is empty" fetch https://1.2.3.4/empty 'is empty'
    asks "and only from the port that is named" fetch https://1.2.3.4:444/image '--allow-url 1.2.3.4:444'
    kill $web
    stop
    finish
fi

test_requests
test_models
test_qwen
test_lost
test_fetch
finish
