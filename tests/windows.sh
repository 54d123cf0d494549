#!/usr/bin/env bash
# peridot.exe of the zip, run by Wine on the same Vulkan driver as the native command: what it writes is the same, bit
# for bit; and what is Windows' own. .ci/windows runs it: tests/windows.sh NATIVE SOURCE ZIP, beside which the wheel is.
. "$(dirname "$0")/command.sh"

native=$peridot
zip=$3
goldens=$(dirname "$zip")/golden
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
target=x86_64-w64-mingw32ucrt
profile=$WINEPREFIX/drive_c/users/$(id -un)

# same ARGUMENTS...: both write the same on standard output.
same() {
    "$native" "$@" >"$folder/want" 2>"$folder/native_err"
    run "$@"
    check "$1 $2 $3 ...: succeeds" [ $status = 0 ]
    check "$1 $2 $3 ...: writes what it writes on Linux" cmp "$folder/want" "$folder/out"
}

test_same() {
    local model=$goldens/gemma3 ids
    cp -r "$source/models" "$folder/models"
    ids=$(seq -s, 1 40)
    same run -m "$folder/models/stories.gguf" -n 48 --temp 0 "The little fox"
    same run -m "$folder/models/stories.gguf" -n 48 --seed 3 "Größe 日本 🦊"
    same tokenize -m "$folder/models/stories.gguf" "Größe, 日本 🦊"
    same logits -m "$model" --tokens "$ids" --out -
    same logits -m "$folder/models/stories.gguf" --tokens "$ids" --out -
    same perplexity -m "$folder/models/stories.gguf" -f "$source/README.md" --ctx 128
    same inspect "$folder/models/stories.gguf"
    cp "$goldens/gemma2-q8_0/model.gguf" "$folder/größe 🦊.gguf"
    same tokenize -m "$folder/größe 🦊.gguf" "The fox"
    "$native" convert "$folder/models/stories.gguf" -o "$folder/native.gguf" --type q4_0 >"$folder/out" 2>&1
    run convert "$folder/models/stories.gguf" -o "$folder/ü 🦊.gguf" --type q4_0
    check "convert succeeds" [ $status = 0 ]
    check "and writes the same bytes" cmp "$folder/native.gguf" "$folder/ü 🦊.gguf"
    fails_with 1 'is the file that is read' convert "$folder/ü 🦊.gguf" -o "$folder/ü 🦊.gguf" --type q8_0
    truncate -s 5G "$folder/large.gguf"
    fails_with 1 'large.gguf' run -m "$folder/large.gguf" x
}

test_images() {
    local model=$goldens/gemma3-vision name
    for name in "$model/image-1.png" "$goldens"/pictures/{interlaced.png,rgb.jpg,progressive.jpg,lossy-alpha.webp} \
        "$goldens"/pictures/{lossless.webp,palette.gif}; do
        same logits --image "$name" -m "$model" --tokens "@$model/tokens.txt" --out -
    done
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
    local long
    long=$folder/$(printf 'x%.0s' {1..120})/$(printf 'y%.0s' {1..120})/$(printf 'z%.0s' {1..120})
    mkdir -p "$long"
    cp "$folder/models/stories.gguf" "$long/tale.gguf"
    same tokenize -m "$long/tale.gguf" "The fox"
    run convert "$long/tale.gguf" -o "$long/new.gguf" --type q4_0
    check "a path of more than 260 characters is read and written" [ $status = 0 ]
    check "and has what a short one has" cmp "$folder/native.gguf" "$long/new.gguf"
}

test_c() {
    ctest --test-dir "$(dirname "$zip")" -j "$(nproc)" --timeout 300 --output-on-failure >"$folder/out" 2>"$folder/err"
    check "the C tests succeed" [ $? = 0 ]
    check "there are more than 20" [ "$(grep -c ' Passed ' "$folder/out")" -gt 20 ]
}

# example NAME ARGUMENTS...: as run, of a program beside the DLL.
example() {
    HOME='' wine "$top/$1.exe" "${@:2}" >"$folder/text" 2>"$folder/err"
    status=$?
    tr -d '\r' <"$folder/text" >"$folder/out"
}

# Programs that embed libperidot.dll: by its CMake package, and by pkg-config.
test_library() {
    local top host=$folder/host stories=$folder/models/stories.gguf
    top=$PWD/$(basename "$zip" .zip)
    mkdir "$host"
    cat >"$host/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(host LANGUAGES C)
find_package(peridot REQUIRED CONFIG)
foreach(name chat embeddings generate logits many)
  add_executable(\${name} "$source/tests/embed/\${name}.c")
  target_link_libraries(\${name} PRIVATE peridot::peridot)
endforeach()
END
    cmake -S "$host" -B "$host/build" -G Ninja -D CMAKE_SYSTEM_NAME=Windows -D CMAKE_C_COMPILER="$target-gcc" \
        -D CMAKE_C_FLAGS='-std=c11 -Wall -Wextra -Werror' -D CMAKE_RUNTIME_OUTPUT_DIRECTORY="$top" \
        -D peridot_ROOT="$top" >"$folder/out" 2>"$folder/err" && cmake --build "$host/build" >>"$folder/out" 2>&1
    check "programs of tests/embed build with the DLL's CMake package" [ $? = 0 ]
    PKG_CONFIG_PATH=$top/lib/pkgconfig pkg-config --cflags --libs peridot >"$folder/flags"
    eval "$target-g++ -static-libgcc -static-libstdc++ -Wall -Wextra -Werror" \
        '"$source/tests/embed/headers.cc" -o "$top/headers.exe"' "$(<"$folder/flags")" >"$folder/out" 2>"$folder/err"
    check "and one in C++ with pkg-config" [ $? = 0 ]
    example headers
    check "which runs" contains out "$("$native" --version | cut -d' ' -f2)"
    "$native" run -m "$stories" --temp 0.8 --top-k 40 --top-p 1 --min-p 0 --seed 1 -n 64 "Once upon a time" \
        >"$folder/want" 2>"$folder/native_err"
    example generate "$stories" "Once upon a time"
    check "generate succeeds" [ $status = 0 ]
    check "and writes what the native command does" [ "$(<"$folder/out")" = "$(<"$folder/want")" ]
    "$native" run -m "$stories" --temp 0 -n 24 "A king" >"$folder/want" 2>"$folder/native_err"
    example many "$stories" "A king" "The little fox"
    check "so does many" contains out "A king|$(head -1 "$folder/want")"
    printf 'A king\n' >"$folder/lines"
    example chat "$stories" <"$folder/lines"
    check "and chat" contains out "$(head -1 "$folder/want")"
    example embeddings "$stories" "The cat sat." "The cat sat."
    check "a text is like itself" [ "$(<"$folder/out")" = 1.0000 ]
    example logits "$stories" "Once upon a"
    check "logits gives five tokens" [ "$(wc -l <"$folder/out")" = 5 ]
    example generate "$folder/none.gguf" "Once"
    check "a failure has a name and a sentence" matches err '^PERIDOT_ERROR_IO: .*none.gguf: '
}

# Pip of Linux installs what pip of Windows would; there is no Python here that Wine could run.
test_wheel() {
    local wheel top
    wheel=$(ls "$(dirname "$zip")"/peridot-*-win_amd64.whl)
    top=$PWD/$(basename "$zip" .zip)
    python3 "$source/tests/wheel.py" "$wheel" "$top" >"$folder/out" 2>"$folder/err"
    check "the wheel has what the zip has" [ $? = 0 ]
    cat "$folder/out"
    python3 -m venv "$folder/pip" && "$folder/pip/bin/pip" install -q --only-binary=:all: --target "$folder/site" \
        --platform win_amd64 --python-version 3.12 "$wheel" >"$folder/out" 2>"$folder/err"
    check "pip finds all that it needs on Windows" [ $? = 0 ]
    "$native" run -n 8 --temp 0 "The little fox" >"$folder/want" 2>"$folder/native_err"
    HOME='' wine "$folder/site/peridot/bin/peridot.exe" run -n 8 --temp 0 "The little fox" 2>"$folder/err" |
        tr -d '\r' >"$folder/out"
    check "its command tells of the demo model" cmp "$folder/want" "$folder/out"
}

test_kernels_and_bench() {
    if [ "${PERIDOT_TEST_ALL:-}" ]; then run selftest
    else   # as many kernels as can be checked in a while
        timeout -s INT 15 "$peridot" selftest >"$folder/out" 2>"$folder/err"
        status=$(($? == 124 ? 0 : $?))
        ! contains out FAILED || status=1
    fi
    check "selftest succeeds" [ $status = 0 ]
    [ "${PERIDOT_TEST_ALL:-}" ] || return 0
    run bench --quick
    check "bench --quick succeeds" [ $status = 0 ]
}

test_pull() {
    local hub store
    mkdir -p "$folder/repos/test/quants"
    cp "$goldens/gemma1/model.gguf" "$folder/repos/test/quants/tiny-Q8_0.gguf"
    mkfifo "$folder/to_hub"
    python3 "$source/tests/hub.py" "$folder/repos" "$folder/log" <"$folder/to_hub" >"$folder/ports" 2>"$folder/err" &
    exec 8>"$folder/to_hub"
    for _ in $(seq 100); do [ -s "$folder/ports" ] && break || sleep 0.1; done
    read -r hub store <"$folder/ports"
    export HF_ENDPOINT=http://127.0.0.1:$hub
    run pull test/quants:Q8_0
    check "pull succeeds" [ $status = 0 ]
    check "into the profile's cache" cmp "$goldens/gemma1/model.gguf" \
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
    fails_with 2 'it has no TLS: put a proxy that has before it' serve --tls-cert "$folder/cert.pem" --port 0
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
    {"name": "batch", "command": ["$folder/x.cmd"]}],
 "mcpServers": {"small": {"command": "Z:$folder/mcp.exe", "env": {"TEST_VALUE": "set"}}}}
END
    "$target-gcc" -static -Wall -Wextra -Werror "$source/tests/mcp_server.c" -o "$folder/mcp.exe"
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
    tool echo '{"a": "日本"}'
    check "a server of MCP on pipes answers" contains out 'set: {'
    check "what it was asked" contains out '日本'
    wineserver -k
    wait
}

# console ARGUMENTS: the command in a console of its own, whose keys are what is written to descriptor 7; what it shows
# goes to out. interrupt presses Ctrl-C.
console() {
    : >"$folder/out"
    rm -f "$folder/interrupt"
    local line="wine '$folder/interrupt.exe' 'Z:$folder/interrupt' $program $1; echo status \$?"
    timeout 120 script -qefc "$line" /dev/null <"$folder/keys" >"$folder/out" 2>"$folder/err" &
    console=$!
}
interrupt() { : >"$folder/interrupt"; }
shows() { [ "$(wc -c <"$folder/out")" -ge "$1" ]; }
await_shown() { local i; for ((i = 0; i < 600; i++)); do shows "$1" && return; sleep 0.1; done; false; }

# The model is slow enough to be interrupted.
test_interrupts() {
    has_terminal "Ctrl-C in a console" || return 0
    local console model=$folder/slow.gguf program
    program=$(basename "$zip" .zip)/peridot.exe   # of the present folder, whose name is no plain one
    "$target-gcc" -municode -static -Wall -Wextra -Werror "$source/tests/interrupt.c" -o "$folder/interrupt.exe"
    "$native" make --shape gemma3-270m --type q4_0 -o "$model" >"$folder/out" 2>"$folder/err"
    mkfifo "$folder/keys"
    exec 7<>"$folder/keys"
    console "run -m '$model' -n 4000 x"
    await_shown 3000
    interrupt
    wait $console
    check "Ctrl-C ends run" matches out 'status 58'   # what 0xc000013a is to a shell
    console "chat -m '$model' -n 4000"
    await_text "$folder/out" '>>>'
    printf 'x\r' >&7
    await_shown 4000
    interrupt
    sleep 2
    printf '/bye\r' >&7
    wait $console
    check "Ctrl-C in chat stops a reply" matches out 'status 0'
    console "serve -m '$folder/models/stories.gguf' --port 0"
    await_text "$folder/out" http
    interrupt
    wait $console
    check "Ctrl-C ends serve well" matches out 'status 0'
    exec 7>&-
}

test_chat() {
    has_terminal "chat in a console" || return 0
    local chat="'$peridot' chat -m '$folder/models/stories.gguf' -n 12 --temp 0"
    printf 'The little fox\n/bye\n' | timeout 60 script -qec "$chat" /dev/null >"$folder/out" 2>"$folder/err"
    check "chat answers in a console" contains out fox
}

test_same
test_images
test_names
test_c
test_library
test_wheel
test_pull
test_serve
test_tools
test_chat
test_interrupts
test_kernels_and_bench
wineserver -k 2>/dev/null
finish
