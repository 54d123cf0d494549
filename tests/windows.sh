#!/usr/bin/env bash
# peridot.exe of the zip, run by Wine on the same Vulkan driver as the native command: what it writes is the same, bit
# for bit; and what is Windows' own. .ci/windows runs it: tests/windows.sh NATIVE SOURCE ZIP.
. "$(dirname "$0")/command.sh"

native=$peridot
zip=$3
golden=$source/tests/golden
unset HF_TOKEN HF_HOME HF_HUB_CACHE XDG_CACHE_HOME http_proxy https_proxy HTTP_PROXY HTTPS_PROXY
export WINEPREFIX=$folder/prefix WINEDEBUG=-all WINEDLLOVERRIDES='mscoree,mshtml=;winemenubuilder.exe=d'
export HOME=$folder/home XDG_RUNTIME_DIR=$folder no_proxy=127.0.0.1
unset DISPLAY WAYLAND_DISPLAY
mkdir -p "$HOME" "$folder/Größe 日本 🦊"
wineboot -i >/dev/null 2>&1
cd "$folder/Größe 日本 🦊" || exit 1
unzip -q "$zip"
peridot=$folder/peridot
cat >"$peridot" <<END
#!/bin/sh
HOME= exec wine '$PWD/$(basename "$zip" .zip)/peridot.exe' "\$@"
END
chmod +x "$peridot"
profile=$WINEPREFIX/drive_c/users/$(id -un)

# same ARGUMENTS...: both write the same on standard output.
same() {
    "$native" "$@" >"$folder/want" 2>"$folder/native_err"
    run "$@"
    check "$1 $2 $3 ...: succeeds" [ $status = 0 ]
    check "$1 $2 $3 ...: writes what it writes on Linux" cmp "$folder/want" "$folder/out"
}

test_same() {
    local model=$golden/gemma3 ids
    cp -r "$source/models" "$folder/models"
    ids=$(seq -s, 1 40)
    same run -m "$folder/models/stories.gguf" -n 48 --temp 0 "The little fox"
    same run -m "$folder/models/stories.gguf" -n 48 --seed 3 "Größe 日本 🦊"
    same tokenize -m "$folder/models/stories.gguf" "Größe, 日本 🦊"
    same logits -m "$model" --tokens "$ids" --out -
    same logits -m "$folder/models/stories.gguf" --tokens "$ids" --out -
    same perplexity -m "$folder/models/stories.gguf" -f "$source/README.md" --ctx 128
    same inspect "$folder/models/stories.gguf"
    cp "$golden/gemma2-q8_0/model.gguf" "$folder/größe 🦊.gguf"
    same tokenize -m "$folder/größe 🦊.gguf" "The fox"
    "$native" convert "$folder/models/stories.gguf" -o "$folder/native.gguf" --type q4_0 >"$folder/out" 2>&1
    run convert "$folder/models/stories.gguf" -o "$folder/ü 🦊.gguf" --type q4_0
    check "convert succeeds" [ $status = 0 ]
    check "and writes the same bytes" cmp "$folder/native.gguf" "$folder/ü 🦊.gguf"
    fails_with 1 'is the file that is read' convert "$folder/ü 🦊.gguf" -o "$folder/ü 🦊.gguf" --type q8_0
    truncate -s 5G "$folder/large.gguf"
    fails_with 1 'large.gguf' run -m "$folder/large.gguf" x
}

test_names() {
    mkdir -p "$folder/stores/below" "$profile/.lmstudio/models/some/one"
    cp "$folder/models/stories.gguf" "$folder/stores/below/tale.gguf"
    cp "$folder/models/stories.gguf" "$profile/.lmstudio/models/some/one/studio.gguf"
    export PERIDOT_MODELS="Z:${folder//\//\\}\\models;Z:${folder//\//\\}\\stores"
    run models
    check "PERIDOT_MODELS has folders with drives" contains out stories
    check "and what is below them is listed" contains out below/tale
    check "so is LM Studio's folder in the profile" contains out studio
    unset PERIDOT_MODELS
    run run -m "Z:${folder//\//\\}\\stores\\below\\tale.gguf" -n 4 x
    check "a path with a drive and backslashes" [ $status = 0 ]
    fails_with 1 'Z:/not/there.gguf' run -m 'Z:\not\there.gguf' x
    check "what is cached is in LOCALAPPDATA" [ -d "$profile/AppData/Local/peridot" ]
    { "$peridot" inspect "$folder/models/stories.gguf" 2>"$folder/err"; echo $? >"$folder/status"; } |
        head -1 >"$folder/out"
    check "nobody reads the rest of what it writes: it says nothing" [ ! -s "$folder/err" ]
    check "and ends well" [ "$(cat "$folder/status")" = 0 ]
    run run -n 4 x
    check "the demo model of the zip is found" [ $status = 0 ]
}

test_kernels_and_bench() {
    run selftest
    check "selftest succeeds" [ $status = 0 ]
    run bench --quick
    check "bench --quick succeeds" [ $status = 0 ]
}

test_pull() {
    local hub store
    mkdir -p "$folder/repos/test/quants"
    cp "$golden/gemma1/model.gguf" "$folder/repos/test/quants/tiny-Q8_0.gguf"
    mkfifo "$folder/to_hub"
    python3 "$source/tests/hub.py" "$folder/repos" "$folder/log" <"$folder/to_hub" >"$folder/ports" 2>"$folder/err" &
    exec 8>"$folder/to_hub"
    for _ in $(seq 100); do [ -s "$folder/ports" ] && break || sleep 0.1; done
    read -r hub store <"$folder/ports"
    export HF_ENDPOINT=http://127.0.0.1:$hub
    run pull test/quants:Q8_0
    check "pull succeeds" [ $status = 0 ]
    check "into the profile's cache" cmp "$golden/gemma1/model.gguf" \
        "$profile"/.cache/huggingface/hub/models--test--quants/snapshots/*/tiny-Q8_0.gguf
    run tokenize -m test/quants:Q8_0 "The fox"
    check "and it is found by its name" [ $status = 0 ]
    exec 8>&-
}

# start_server ARGUMENTS...: at $port.
start_server() {
    port=
    : >"$folder/serve_err"
    "$peridot" serve -m "$folder/models/stories.gguf" --port 0 "$@" >"$folder/serve_out" 2>"$folder/serve_err" &
    for _ in $(seq 200); do
        port=$(sed -nE 's|.*http://127.0.0.1:([0-9]+).*|\1|p' "$folder/serve_err" | head -1)
        [ "$port" ] && break || sleep 0.1
    done
}

ask() { curl -s -m 60 "http://127.0.0.1:$port/$1" "${@:2}" >"$folder/out"; }

test_serve() {
    local port i asked=() request='{"prompt": "The little fox", "max_tokens": 24, "temperature": 0}'
    start_server
    "$native" run -m "$folder/models/stories.gguf" -n 24 --temp 0 "The little fox" >"$folder/want" 2>"$folder/err"
    ask v1/completions -d "$request"
    check "serve answers as run" grep -qF "$(head -c 60 "$folder/want")" "$folder/out"
    for i in 1 2 3 4 5 6 7 8; do
        curl -s -m 60 "http://127.0.0.1:$port/v1/completions" -d "$request" >"$folder/answer.$i" &
        asked+=($!)
    done
    wait "${asked[@]}"
    check "eight at once get the same" [ "$(grep -lF "$(head -c 60 "$folder/want")" "$folder"/answer.* | wc -l)" = 8 ]
    ask v1/completions -d "${request%\}}, \"stream\": true}"
    check "in a stream, too" contains out '[DONE]'
    ask ''
    check "the page is there" contains out '<html'
    ask metrics
    check "none of them is counted as broken off" [ "$(grep -c 'code="499"} [1-9]' "$folder/out")" = 0 ]
    if packages openai==1.99.9; then
        "$folder/venv/bin/python" - "$port" >"$folder/out" 2>"$folder/err" <<'END'
import sys, openai
client = openai.OpenAI(base_url=f"http://127.0.0.1:{sys.argv[1]}/v1", api_key="x")
print("".join(part.choices[0].text for part in client.completions.create(
    model="stories", prompt="The little fox", max_tokens=24, temperature=0, stream=True)))
END
        check "the package openai reads its stream" grep -qF "$(head -c 60 "$folder/want")" "$folder/out"
    fi
    wineserver -k
    wait
}

# tool NAME ARGUMENTS: as the page calls it.
tool() {
    ask tools/call -H "Origin: http://127.0.0.1:$port" -H 'Content-Type: application/json' \
        -d "{\"name\": \"$1\", \"arguments\": \"${2//\"/\\\"}\"}"
}

# Programs that are tools: with standard input, output that is more than a pipe holds, and an end by force.
test_tools() {
    local port program="Z:$PWD/$(basename "$zip" .zip)/peridot.exe"
    cat >"$folder/tools.json" <<END
{"tools": [
    {"name": "ids", "command": ["$program", "tokenize", "-m", "$folder/models/stories.gguf"], "allow": true},
    {"name": "help", "command": ["$program", "run", "--help"], "allow": true},
    {"name": "quoted", "command": ["$program", "tokenize", "-m", "$folder/models/stories.gguf", "a \\"b\\" c\\\\"]},
    {"name": "late", "command": ["ping", "-n", "60", "127.0.0.1"], "timeout": 0.5},
    {"name": "batch", "command": ["$folder/x.cmd"]}]}
END
    echo 'echo no' >"$folder/x.cmd"
    start_server --tools "$folder/tools.json"
    tool ids '{"a": "é"}'
    check "a program gets its arguments and gives its result" contains out \
        "$(printf '{"a": "é"}\n' | "$native" tokenize -m "$folder/models/stories.gguf" 2>"$folder/err" | head -1)"
    tool help '{}'
    check "one that writes much" contains out 'EXIT STATUS'
    tool quoted '{}'
    check "arguments with spaces and quotation marks" contains out \
        "$("$native" tokenize -m "$folder/models/stories.gguf" 'a "b" c\' 2>"$folder/err")"
    tool late '{}'
    check "one that takes too long" contains out 'late gave no result within 0.5 s'
    check "is ended" [ "$(pgrep -fc 'ping.exe.*-n.*60')" = 0 ]
    tool batch '{}'
    check "a batch file is refused" contains out 'or it is a batch file'
    wineserver -k
    wait
}

test_chat() {
    has_terminal "chat in a console" || return 0
    local chat="'$peridot' chat -m '$folder/models/stories.gguf' -n 12 --temp 0"
    printf 'The little fox\n/bye\n' | timeout 60 script -qec "$chat" /dev/null >"$folder/out" 2>"$folder/err"
    check "chat answers in a console" contains out fox
}

test_same
test_names
test_pull
test_serve
test_tools
test_chat
test_kernels_and_bench
wineserver -k 2>/dev/null
finish
