#!/usr/bin/env bash
# Tools in peridot chat, with models that call one (write_thinkers): by a pipe and on a terminal. What becomes of calls
# in all other ways is in test_command_tools.sh.
. "$(dirname "$0")/command.sh"
# libedit keeps what it made of its settings: not ours to free.
printf 'leak:wcsdup\n' >"$folder/leaks"
export LSAN_OPTIONS=suppressions=$folder/leaks:print_suppressions=0
export XDG_STATE_HOME=$folder/state TERM=xterm LC_ALL=C.UTF-8
"$(dirname "$peridot")/tests/write_thinkers" "$folder" || exit 1

cat >"$folder/add.json" <<END
{"tools": [{"name": "add", "command": ["sh", "-c", "cat >>$folder/arguments; echo 42"], "allow": true, "parameters":
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}}]}
END
sed 's/ "allow": true,//' "$folder/add.json" >"$folder/add-ask.json"
printf '{"tools": [{"name": "other", "command": ["cat"], "allow": true}]}' >"$folder/other.json"
printf '{"servers": {"test": {"command": "python3", "args": ["%s", "stdio", "%s"], "allow": ["add"]}}}' \
    "$source/tests/mcp_server.py" "$folder/log" >"$folder/server.json"

lacks() { ! contains "$1" "$2"; }

# talk LINES ARGUMENTS...: a conversation by a pipe with the model $model; leaves $status, out and err.
talk() {
    printf '%s' "$1" | "$peridot" chat -m "$model" --temp 0 "${@:2}" >"$folder/out" 2>"$folder/err"
    status=${PIPESTATUS[1]}
}
is() { [ "$(cat "$folder/$1")" = "$2" ]; }

# The model calls add with the arguments {"a": 2, "b": 40}, and answers "hello model" when it has the result.
test_model() {
    rm -f "$folder/arguments"
    talk $'hello\n/save '"$folder/one.json"$'\nhello\n/stats\n/retry\n' --tools "$folder/add.json"
    check "$1: a conversation with calls" [ $status = 0 ]
    check "$1: gives the answers alone" is out $'hello model\nhello model\nhello model'
    check "$1: each had its call" [ "$(tr -d ' ' <"$folder/arguments" | xargs)" = "{a:2,b:40} {a:2,b:40} {a:2,b:40}" ]
    check "$1: which is shown" matches err '^add \(program sh\): \{"a": ?2'
    check "$1: the cache is kept from turn to turn" matches err ' [1-9][0-9]* of them kept from before; 2 turns$'
    check "$1: /save has the call" matches one.json '"tool_calls":\[\{"id":"call_1_0".*"name":"add","arguments":"\{'
    check "$1: and the result" contains one.json '"tool_call_id":"call_1_0","name":"add","content":"42"}'
    talk $'/save '"$folder/two.json"$'\nhello\n/undo\n/save '"$folder/three.json"$'\n' --load "$folder/one.json" \
        --tools "$folder/add.json"
    check "$1: --load goes on with it" is out 'hello model'
    check "$1: what was loaded is saved as it was" cmp -s "$folder/one.json" "$folder/two.json"
    check "$1: /undo takes back a turn with its calls" cmp -s "$folder/one.json" "$folder/three.json"
    rm -f "$folder/arguments"
    talk $'hello\n/save '"$folder/one.json"$'\n' --tools "$folder/add-ask.json"
    check "$1: without a terminal nothing is called that no file allows" [ ! -e "$folder/arguments" ]
    check "$1: which the model is told" contains one.json '"content":"error: the user does not allow this call"'
    talk $'hello\n/save '"$folder/one.json"$'\n' --tools "$folder/server.json"
    check "$1: a server" contains one.json '"name":"add","content":"42"}'
    talk $'hello\n' --tools "$folder/other.json"
    check "$1: only what there is can be called" lacks err 'add ('
    fails_with 2 '--json-schema is for replies without --tools' \
        chat -m "$model" --tools "$folder/add.json" --json-schema "$folder/add.json"
}

# prompts: tokens of each prompt, as --verbose tells them
prompts() { sed -n 's/^prompt: \([0-9]*\) tokens*,.*/\1/p' "$folder/err" | paste -sd ' '; }

# An image of a tool's result goes to a model that sees, and is named to one that does not.
test_images() {
    local golden=$goldens/gemma3-vision model=$folder/caller-seer.gguf text n
    text='42\n[image, image/png]'
    for n in image-1.png tokens.txt; do
        sed "s|\"$folder/log\"|&, \"image:$golden/$n\"|" "$folder/server.json" >"$folder/shows-$n.json"
    done
    talk $'hello\n/save '"$folder/one.json"$'\n' --tools "$folder/shows-image-1.png.json" --vision none --verbose
    check "a model that does not see answers" is out 'hello model'
    check "and the image is named" contains one.json '"content":"'"$text"'"}'
    n=$(prompts)
    talk $'hello\n/save '"$folder/one.json"$'\n' --tools "$folder/shows-image-1.png.json" --verbose \
        --vision "$golden/mmproj.gguf"
    check "a model that sees answers" is out 'hello model'
    check "it has the image" contains one.json \
        '"text":"'"$text"'"},{"type":"image_url","image_url":{"url":"data:image/png;'
    check "with its 16 rows and what is around them" [ "${n% *}" = "$(prompts | cut -d' ' -f1)" -a \
        $(("$(prompts | cut -d' ' -f2)" - ${n#* })) -ge 18 ]
    talk $'/save '"$folder/two.json"$'\nhello\n' --load "$folder/one.json" --tools "$folder/shows-image-1.png.json" \
        --vision "$golden/mmproj.gguf"
    check "--load shows it again" is out 'hello model'
    check "what was loaded is saved as it was" cmp -s "$folder/one.json" "$folder/two.json"
    talk $'hello\n/save '"$folder/one.json"$'\n' --tools "$folder/shows-tokens.txt.json" --vision "$golden/mmproj.gguf"
    check "what is no image is not shown" contains err "a tool's image is not shown to the model: the image"
    check "but named" contains one.json '"content":"'"$text"'"}'
}

# see TEXT: waits until the screen shows it, once more than at the last time.
see() {
    n_checks=$((n_checks + 1))
    local i
    for ((i = 0; i < 400; i++)); do
        [ "$(grep -aoF -e "$1" "$folder/screen" | wc -l)" -gt "${seen["$1"]:-0}" ] && break
        sleep 0.05
    done
    seen["$1"]=$(grep -aoF -e "$1" "$folder/screen" | wc -l)
    [ $i -lt 400 ] || failed "the terminal shows '$1': $(tail -c 300 "$folder/screen" | cat -v)"
}
keys() { sleep 0.1; (printf '%b' "$1" >&3); }

test_model_on_terminal() {
    has_terminal "calls on a terminal" || return
    declare -A seen
    mkfifo "$folder/keys"
    printf 'exec %q chat -m %q --temp 0 --tools %q' "$peridot" "$model" "$folder/add-ask.json" >"$folder/command"
    : >"$folder/screen"
    rm -f "$folder/arguments"
    env --default-signal=INT timeout 60 script -qefc "exec bash '$folder/command'" "$folder/screen" <"$folder/keys" \
        >/dev/null 2>&1 &
    exec 3>"$folder/keys"
    see '>>> '; keys 'hello\r'
    see 'call add? '; keys 'y\r'
    see 'hello model'; see '>>> '; keys 'hello\r'
    see 'call add? '; keys '\003'
    see 'stopped at a call'; see '>>> '; keys "/save $folder/one.json\r"
    see '7 messages are in'; see '>>> '; keys 'hello\r'
    see 'call add? '; keys 'a\r'
    see 'hello model'; see '>>> '; keys '/retry\r'
    see 'hello model'; see '>>> '; keys '\004'
    wait $!
    check "a conversation with questions ends in order" [ $? = 0 ]
    exec 3>&-
    rm "$folder/keys"
    check "Ctrl-C at a question keeps the conversation" \
        contains one.json '"content":"error: the user stopped before this call"'
    check "what was allowed was called" [ "$(grep -c . "$folder/arguments")" = 3 ]
}

test_chat() {
    printf '/tools\n/set tools x\n' | "$peridot" chat --tools "$folder/add-ask.json" >"$folder/out" 2>"$folder/err"
    check "/tools lists them" contains err 'add (program sh)'
    check "/set does not" contains err 'start peridot chat with --tools'
    printf '/tools\n' | "$peridot" chat >"$folder/out" 2>"$folder/err"
    check "without --tools /tools says so" contains err 'there are no tools'
    run chat --tools "$folder/nowhere.json"
    check "a file that is not there ends the command before the model is opened" [ $status = 1 ]
    check "by its name" one_sentence
}

for name in caller caller-gemma4; do
    model=$folder/$name.gguf
    test_model $name
done
test_images
test_model_on_terminal
if [ -e "$source/models/stories.gguf" ]; then test_chat; fi
finish
