#!/usr/bin/env bash
# peridot chat, by a pipe and on a pseudo-terminal (script, of util-linux).
. "$(dirname "$0")/command.sh"
# libedit keeps what it made of its settings: not ours to free.
printf 'leak:wcsdup\n' >"$folder/leaks"
export LSAN_OPTIONS=suppressions=$folder/leaks:print_suppressions=0

golden=$goldens/gemma2-q8_0/model.gguf
export XDG_STATE_HOME=$folder/state TERM=xterm LC_ALL=C.UTF-8

# chat LINES ARGUMENTS...: a conversation by a pipe; leaves $status, out and err.
chat() {
    printf '%s' "$1" | "$peridot" chat --temp 0 "${@:2}" >"$folder/out" 2>"$folder/err"
    status=${PIPESTATUS[1]}
}
differ() { ! cmp -s <(sed -n "$1p" "$folder/out") <(sed -n "$2p" "$folder/out"); }
goes_on() { [ "$(wc -l <"$folder/out")" = "$1" ]; }
# What the I-th /stats said: tokens that were read, kept from before, and in the context.
read_tokens() { sed -n 's/^prompt: \([0-9]*\) .*/\1/p' "$folder/err" | sed -n "$1p"; }
kept_tokens() { sed -n 's/^context: .* \([0-9]*\) of them kept.*/\1/p' "$folder/err" | sed -n "$1p"; }
all_tokens() { sed -n 's/^context: \([0-9]*\) of.*/\1/p' "$folder/err" | sed -n "$1p"; }

# A turn reads what it adds and nothing more, whatever was changed before; and gives what a new conversation gives.
test_turns() {
    local lines=$'Once upon a time\n/stats\nThe fox\n/stats\n/retry\n/stats\n'
    lines+=$'/undo\nThe fox\n/stats\n/edit The dog\n/stats\n'
    run run --temp 0 -n 12 "Once upon a time"
    cp "$folder/out" "$folder/story"
    chat "$lines" -n 12
    check "chat succeeds" [ $status = 0 ]
    check "chat says that there is no template, once" [ "$(grep -c ' has no chat template: ' "$folder/err")" = 1 ]
    check "the first turn is what run writes" cmp -s <(head -1 "$folder/out") "$folder/story"
    check "a reply that -n cuts says so" contains err "the reply was cut after 12 tokens"
    check "the second turn keeps all but the last token, which nothing had followed" \
        [ "$(kept_tokens 2)" = $(($(all_tokens 1) - 1)) ]
    check "and reads the others" [ $(($(kept_tokens 2) + $(read_tokens 2) + 12)) = "$(all_tokens 2)" ]
    check "/retry reads one token" [ "$(read_tokens 3)" = 1 ]
    check "/undo and the same message: one too" [ "$(read_tokens 4)" = 1 ]
    check "/edit reads from the first word that is another" [ "$(kept_tokens 5)" = "$(kept_tokens 3)" ]
    check "/retry and /undo leave the reply as it was" cmp -s <(sed -n 2p "$folder/out") <(sed -n 4p "$folder/out")
    chat $'Once upon a time\nThe fox\n' -n 12
    cp "$folder/out" "$folder/two"
    chat $'Once upon a time\nThe fox\n' -n 12 --chunk 1
    check "in decode steps the replies are the same" cmp -s "$folder/out" "$folder/two"
    chat $'Once upon a time\nThe fox\n' -n 12 --draft "$source/models/stories.gguf"
    check "and with drafts" cmp -s "$folder/out" "$folder/two"
    chat $'\n  \nOnce upon a time' -n 12
    check "empty lines are no messages, and the last needs no newline" cmp -s "$folder/out" <(head -1 "$folder/two")
}

test_files() {
    chat $'Once upon a time\nThe fox\n/save '"$folder/c.json"$'\n' --template llama2 -n 12
    check "/save writes a line for each message" [ "$(grep -c '^  {"role": "' "$folder/c.json")" = 4 ]
    chat $'And then\n/stats\n/save '"$folder/d.json"$'\n' --template llama2 -n 12 --load "$folder/c.json"
    cp "$folder/out" "$folder/one"
    check "--load reads all that was loaded" [ "$(kept_tokens 1)" = 0 ]
    check "and goes on with it" cmp -s <(head -5 "$folder/c.json" | sed '5s/$/,/') <(head -5 "$folder/d.json")
    chat $'The dog\n/load '"$folder/c.json"$'\nAnd then\n' --template llama2 -n 12
    check "/load does the same in the midst of another" cmp -s <(tail -1 "$folder/out") "$folder/one"
    chat $'The dog\n/reset\nOnce upon a time\n/stats\n' --template llama2 -n 12
    check "/reset begins anew" contains err "; 1 turn"
    chat $'/load '"$folder/c.json"$'\n/save '"$folder/e.json"$'\n' --template llama2
    check "what was loaded is saved as it was" cmp -s "$folder/c.json" "$folder/e.json"
}

# A model with windows and a template: going back must not change what is written.
test_windows() {
    local half model="-m $golden --template llama2 --chunk 16 -n 30 --repeat-penalty 2"
    chat $'hello\nthe cat sat\n/stats\n/retry\n/stats\n/undo\n/retry\n/stats\n' $model --system "You are a cat."
    check "chat with a template succeeds" [ $status = 0 ]
    check "and has nothing to say of it" [ "$(grep -c 'no chat template' "$folder/err")" = 0 ]
    check "with windows /retry gives the same reply" cmp -s <(sed -n 2p "$folder/out") <(sed -n 3p "$folder/out")
    check "and /undo the first one's" cmp -s <(sed -n 1p "$folder/out") <(sed -n 4p "$folder/out")
    check "the second turn reads what it adds" [ "$(read_tokens 1)" -lt 40 ]
    chat $'the cat sat on a mat and looked at the other cat\n/stats\n/retry\n/stats\n' \
        -m "$golden" --template llama2 --chunk 16 -n 200 --repeat-penalty 2 --logit-bias 1=-inf
    check "after a long reply /retry reads one token, though the window has passed" [ "$(read_tokens 2)" = 1 ]
    half=$(($(stat -c %s "$folder/out") / 2))
    check "and gives the same" cmp -s <(head -c $half "$folder/out") <(tail -c $half "$folder/out")
    check "statistics count all that is read" [ $(($(read_tokens 1) + 200)) = "$(all_tokens 1)" ]
    chat $'the cat sat\n/system You are a cat.\n/retry\n/system\n/system off\n/retry\n' $model
    check "/system counts from the next reply on" differ 1 2
    check "and shows itself" contains err "You are a cat."
    check "/system off takes it away" cmp -s <(sed -n 1p "$folder/out") <(sed -n 3p "$folder/out")
    fails_with 1 "lacks control tokens" chat -m "$golden" --template llama3
    fails_with 2 "did you mean llama3" chat --template lama3
}

two_end_with_out() { cmp -s <(tail -c "$(stat -c %s "$folder/out")" "$folder/two") "$folder/out"; }

# At the end of the context the oldest turns go, and the system prompt stays.
test_context() {
    local i lines= long="went to the king and said that he was a good fox and would like to have a house in the wood"
    local first="The fox $long" second="The queen $long" arguments="--template llama2 --ctx 120 -n 12"
    chat "$first"$'\n'"$second"$'\n' --system "A sad story" $arguments
    cp "$folder/out" "$folder/two"
    check "the oldest turn goes" matches err '^the context of 120 positions is full: the oldest 1 turn is left out$'
    chat "$second" --system "A sad story" $arguments
    check "the system prompt stays" two_end_with_out
    chat "$second" $arguments
    check "which makes a difference" eval '! two_end_with_out'
    for i in 1 2 3 4 5 6 7 8; do lines+="The fox number $i"$'\n'; done
    chat "$lines/stats"$'\n'"/save $folder/long.json"$'\n' --system "A story" --ctx 100 -n 10
    check "a conversation may be longer than the context" [ $status = 0 ]
    check "every message has a reply" goes_on 8
    check "a line says what was left out" \
        matches err '^the context of 100 positions is full: the oldest [0-9]+ turns are left out$'
    check "and /stats" matches err '^context: [0-9]+ of 100 positions, .*; 8 turns, [0-9]+ of them left out$'
    check "/save has everything" [ "$(grep -c '"role": "user"' "$folder/long.json")" = 8 ]
    chat $'/retry\n/undo\n/undo\n/undo\n/undo\n/undo\n/undo\n/retry\n/stats\n' --load "$folder/long.json" \
        --ctx 100 -n 10
    check "what was left out comes back with /undo" matches err '; 2 turns$'
    chat $'hello\n/stats\nthe cat\n' -m "$golden" --template llama2 --ctx 40 -n 100
    check "a reply that the context cuts says so" \
        contains err "it reached the end of the context of 40 positions (--ctx)"
    check "and the next one finds room" goes_on 2
    chat $'The fox\n/stats\nThe fox\n/stats\nThe fox\n/stats\n' --template llama2 --ctx 300
    check "a reply without a length ends where another turn fits" \
        contains err "the reply was cut at $((300 - 64)) of the context's 300 positions, so that another turn fits"
    check "and stays in the context" [ "$(all_tokens 1)" = $((300 - 64)) ]
    check "the next turn is there" [ "$(kept_tokens 2)" -ge $((300 - 65)) ]
    check "and has the rest" [ "$(all_tokens 2)" -ge 300 ]
    check "the third leaves out the two" \
        matches err '^the context of 300 positions is full: the oldest 2 turns are left out$'
    check "no message fails" [ $status = 0 ]
    chat $'The fox\nThe cow\nThe hen\nThe dog\n/undo\nThe fox\n' --full refuse --ctx 100 -n 30
    check "--full refuse refuses the message that does not fit" [ $status = 1 ]
    check "with a sentence" matches err '^peridot: the context is full: with this message the conversation has [0-9]+ '
    check "and leaves nothing out" [ "$(grep -c 'left out$' "$folder/err")" = 0 ]
    check "and goes on after /undo" [ "$(grep -c '^peridot: ' "$folder/err")" = 1 ]
    fails_with 2 '--full does not know keep' chat --full keep
    chat "$(seq -s ' ' 300)"$'\nOnce\n' --ctx 100 -n 4
    check "a message that is too long: status 1" [ $status = 1 ]
    check "a sentence" matches err '^peridot: the message has [0-9]+ tokens, .* 100 positions'
    check "and the conversation goes on" goes_on 1
}

test_refusals() {
    printf '[{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]' >"$folder/two.json"
    printf '[{"role": "critic", "content": "a"}]' >"$folder/role.json"
    printf '[{"role": "user", "content": ["a"]}]' >"$folder/text.json"
    printf '[{"role": "user", "content": "a\\u0000b"}]' >"$folder/zero.json"
    printf '[{"role": "user", ' >"$folder/cut.json"
    printf '{"a": 1}' >"$folder/object.json"
    printf '{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "the cat"}]}' \
        >"$folder/request.json"
    chat $'/set\n/set ctx 100\n/set system x\n/set temp 0.5\n/set\n' --ctx 100 -m "$golden" --template llama2
    check "/set lists what can be set" [ "$(grep -cE '^(length|full|temp|top-k|seed|stop) ' "$folder/err")" = 12 ]
    check "with its values" [ "$(sed -n 's/^temp  *//p' "$folder/err" | xargs)" = "0 0.5" ]
    check "/set ctx says that it is fixed" \
        contains err "ctx is fixed when the model is opened: start peridot chat with --ctx 100"
    check "/set system names its command" contains err "peridot: /system TEXT sets it"
    check "which are refusals" [ $status = 1 ]
    chat "/load $folder/none.json
/load $folder/two.json
/load $folder/role.json
/load $folder/text.json
/load $folder/zero.json
/load $folder/cut.json
/load $folder/object.json
/load
/load $folder
/save $folder/none/x.json
/hepl
/nonsense
/temp 0.3
/temp
/max-tokens
/model
/model none.gguf
/exit now
/set temp hot
/set tmep 1
/set stop
/set stop x
/set verbose perhaps
/set logit-bias 3=x
/undo
/retry
/stats
/load $folder/request.json
/edit
/retry
/save $folder/same.json
" -m "$golden" --template llama2 -n 4
    check "refusals: status 1" [ $status = 1 ]
    check "each is one sentence" [ "$(grep -c '^peridot: ' "$folder/err")" = 24 ]
    for text in "none.json: No such file" "two.json: message 1: the chat template \"llama2\" needs" \
        'role.json: message 0 has the unknown role "critic"' \
        "text.json: message 0 has a part that is neither its text nor a picture" \
        "zero.json: message 0 has a zero byte" "cut.json: byte 18: " "object.json: is no list" "/load needs a FILE" \
        "there is no command /hepl (did you mean /help?)" "there is no command /nonsense; /help lists them" \
        "there is no command /temp: /temp T sets that" "/max-tokens: /length N sets that" "none.gguf" \
        "it is not JSON, as /save writes it" \
        "/exit takes no value" "--temp takes a number from 0 to 100, not hot" "--tmep (did you mean --temp?)" \
        "--verbose takes on or off, not perhaps" "--logit-bias takes a token id" "there is no turn to take back" \
        "there is no message to send again" "/edit needs a text" "there was no reply yet"; do
        check "refusals name '$text'" contains err "$text"
    done
    check "the conversation goes on" goes_on 1
    check "with what was loaded, a message without a reply too" \
        contains err "1 message, and one without a reply: /retry sends it"
    check "and saves it" matches same.json '^  \{"role": "assistant", "content": ".+"\}$'
    printf 'a\0b\nOnce\n' | "$peridot" chat -n 2 >"$folder/out" 2>"$folder/err"
    check "a zero byte is refused" contains err "a line has a zero byte in it"
    fails_with 1 none.json chat --load "$folder/none.json"
    fails_with 1 "is a classifier of tokens" chat -m "$goldens/gemma2-token"
    yes 'Once upon a time' | "$peridot" chat -n 40 2>"$folder/err" | head -c 1 >"$folder/out"
    check "a closed stdout ends chat, as it ends run" [ "${PIPESTATUS[1]}" = 141 ]
}

test_models() {
    local other=$source/models/stories.gguf none=$goldens/llama3
    chat $'the cat\n/model '"$other"$'\n/temp 0\nand then\n/save '"$folder/changed.json"$'\n' -m "$golden" -n 4
    check "/model opens another" [ $status = 0 ]
    cp "$folder/out" "$folder/changed"
    sed -n '1,3p' "$folder/changed.json" | sed '3s/,$//; $a ]' >"$folder/before.json"
    chat $'and then\n' -m "$other" -n 4 --load "$folder/before.json"
    check "which goes on as if it had said all that was said" cmp -s <(sed -n 2p "$folder/changed") "$folder/out"
    chat $'the cat\n/model '"$none"$'\n/undo\nthe cat\n' -m "$golden" -n 4
    check "one that cannot be opened: status 1" [ $status = 1 ]
    check "is named, and the one before is opened again" \
        [ "$(grep -c 'llama3: \|the model of before is opened again' "$folder/err")" = 2 ]
    check "and says the same" cmp -s <(sed -n 1p "$folder/out") <(sed -n 2p "$folder/out")
}

# ---- a terminal ----

# begin COLUMNS ARGUMENTS...: a conversation on a terminal; what it shows goes to the file screen.
begin() {
    printf 'tty >%q; stty cols %s rows 24; exec' "$folder/tty" "$1" >"$folder/command"
    printf ' %q' "$peridot" "${verb:-chat}" --temp 0 "${@:2}" >>"$folder/command"
    rm -f "$folder/keys"
    mkfifo "$folder/keys"
    : >"$folder/screen"
    at=0
    lost=0
    # a shell lets what it starts in the background ignore Ctrl-C
    env --default-signal=INT script -qefc "exec sh '$folder/command'" "$folder/screen" <"$folder/keys" >"$folder/out" \
        2>"$folder/err" &
    terminal=$!
    exec 3>"$folder/keys"
    await '>>> '
}
keys() { printf '%b' "$1" >&3; }
# Waits until the screen shows a text, after the last one that was awaited.
await() {
    local i found
    n_checks=$((n_checks + 1))
    for ((i = 0; i < 2400 && !lost; i++)); do   # two minutes: devices may be slow
        found=$(tail -c +$((at + 1)) "$folder/screen" | LC_ALL=C grep -aboF -m1 -e "$1" | head -1 | cut -d: -f1)
        if [ -n "$found" ]; then
            at=$((at + found + $(LC_ALL=C; printf %s "$1" | wc -c)))
            return
        fi
        kill -0 $terminal 2>/dev/null || break
        sleep 0.05
    done
    [ $lost = 1 ] && return
    failed "the terminal shows '$1'"
    lost=1
    tail -c 500 "$folder/screen" | cat -v | sed 's/^/    screen: /'
}
answered() { await 'the reply was cut after'; await '>>> '; }
# leave KEYS: ends the conversation; its status must be 0.
leave() {
    keys "$1"
    exec 3>&-
    [ $lost = 0 ] || kill $terminal   # the key may have come while nobody read it
    wait $terminal
    terminal=$?
    check "the conversation ends with status 0, not $terminal" [ $terminal = 0 ]
}

test_typing() {
    begin 80 -n 8
    keys 'Once upon a time\r'; await ' there was'; answered
    keys '/sta\t\r'; await 'turn'; await '>>> '
    keys 'The \\\r'; await '... '; keys 'fox\r'; answered
    keys '"""\r'; await '... '; keys 'a\r'; await '... '; keys 'b"""\r'; answered
    keys '\033[200~one\rtwo\033[201~ three\r'; answered
    keys 'h\303\251llo \346\227\245\346\234\254x\177\r'; answered
    keys "/save $folder/typed.json\\r"; await 'messages are in'; await '>>> '
    keys "/load $folder/typ\\t"; await 'ed.json'; keys '\003'; await '>>> '
    keys '/edit\r'; await 'llo'; keys '!\r'; answered
    keys "/save $folder/edited.json\\r"; await 'messages are in'; await '>>> '
    leave '\004'
    check "a line that ends in \\ goes on" contains typed.json '"content": "The \u000afox"'
    check "lines between quotes are one message" contains typed.json '"content": "a\u000ab"'
    check "so is what is pasted" contains typed.json '"content": "one\u000atwo three"'
    check "UTF-8" contains typed.json '"content": "héllo 日本"'
    check "/edit changes the last message" contains edited.json '"content": "héllo 日本!"'
    check "and nothing else" [ "$(grep -c . "$folder/edited.json")" = "$(grep -c . "$folder/typed.json")" ]
    check "the history is private" \
        [ "$(stat -c %a "$folder/state/peridot" "$folder/state/peridot/history" | xargs)" = "700 600" ]
    begin 24 -n 8
    keys '\022upon a'; await 'time'; keys '\r'; await ' there was'; answered
    keys '\033[A\r'; answered
    keys 'a line that is much longer than the terminal is wide, of which there are many\r'; answered
    keys "/save $folder/again.json\\r"; await 'messages are in'; await '>>> '
    leave '/exit\r'
    check "Ctrl-R and the arrows find what an earlier conversation had" \
        contains again.json '"content": "Once upon a time"'
    check "long lines are one message" contains again.json "than the terminal is wide, of which there are many"
}

test_typed_ahead() {
    begin 80 -n 400
    keys 'Once upon a time\r'; await ' there was'; keys '\004'; await 'the reply was cut after'
    for _ in $(seq 200); do kill -0 $terminal 2>/dev/null || break; sleep 0.05; done
    check "Ctrl-D during a reply ends the conversation after it" eval '! kill -0 $terminal 2>/dev/null'
    exec 3>&-
    kill $terminal 2>/dev/null
    wait $terminal
}

test_run_on_terminal() {
    verb=run begin 80 -n 8
    keys 'Once upon a time\r'; await ' there was'; answered
    keys '/sta\t\r'; await 'turn'; await '>>> '
    leave '\004'
    check "run without a prompt is chat" matches screen '/help lists the commands'
}

has_lines() { [[ $(<"$folder/$1") == *"$2"* ]]; }

# On a terminal words are whole, in replies and in what is said of them, and "^C" is no part of a reply.
test_lines() {
    chat $'Once upon a time\n' -n 60
    xargs -d '\n' <"$folder/out" >"$folder/words"
    begin 40 -n 60
    keys 'Once upon a time\r'; await '/set length'; await '>>> '
    keys '/help\r'; await 'Ctrl-C stops a'; await '>>> '
    keys '/set length 400\r'; await '>>> '
    keys '/retry\r'; await 'there'; keys '\003'; await '>>> '
    leave '\004'
    sed 's/\r//g; s/\x1b\[[?0-9]*[A-Za-z]//g' "$folder/screen" >"$folder/lines"
    sed -n '/^>>> Once/,/^the reply was cut/p' "$folder/lines" | sed '1d;$d' >"$folder/reply"
    check "the reply's lines fit" [ "$(wc -L <"$folder/reply")" -le 40 ]
    check "it has more of them" [ "$(wc -l <"$folder/reply")" -ge 6 ]
    check "it has the words of one that no terminal gets" \
        [ "$(xargs -d '\n' <"$folder/reply" | xargs -d ' ')" = "$(xargs -d ' ' <"$folder/words")" ]
    check "status lines end between words" \
        has_lines lines $'\nthe reply was cut after 60 tokens (-n,\n/set length)\n'
    check "what commands do stands in one column" [ "$(grep -E '^/[a-z]+ .*  [A-Z]' "$folder/lines" |
        sed -E 's/^(.{21}).*/\1/' | grep -cvE '^/[a-z]+ +([A-Z ]+[A-Z])? +$')" = 0 ]
    check "so does /help" \
        has_lines lines $'\n/set     NAME VALUE  Sets an option, as\n    temp, top-k or length, which /temp\n'
    check "^C is no part of the reply" eval '! contains screen "^C"'
}

# Terminals break lines anew when they become narrower: the line is drawn from where it then begins.
test_resize() {
    begin 80 -n 8
    keys "$(printf '\346\227\245%.0s' $(seq 30))"; sleep 0.3
    stty -F "$(cat "$folder/tty")" cols 40; await $'\033[1A\r\033[J>>> '
    sleep 0.2
    stty -F "$(cat "$folder/tty")" cols 20; await $'\033[3A\r\033[J>>> '
    keys '\003'; await '>>> '
    leave '\004'
}

test_search() {
    begin 80 -n 8
    keys 'The fox and\r'; answered
    keys 'The dog and\r'; answered
    keys '\022The'; await 'search "The": The dog and'
    keys '\022'; await 'search "The": The fox and'
    keys 'xyz'; await 'not found "Thexyz": The fox and'
    keys '\007'; await '>>> '
    keys '\022dog'; await 'search "dog": The dog and'; keys '\r'; answered
    keys "/save $folder/found.json\\r"; await '6 messages are in'; await '>>> '
    leave '\004'
    check "Return takes what was found" [ "$(grep -c '"content": "The dog and"' "$folder/found.json")" = 2 ]
}

test_ctrl_c() {
    local size
    begin 80 -n 450
    keys 'Once upon a time\r'; await ' there'; keys '\003'; await '>>> '
    keys "/save $folder/cut.json\\r"; await '2 messages are in'; await '>>> '
    keys '/stats\r'; await 'reply: '; await '>>> '
    keys 'half a line'; await 'half a line'; keys '\003'; await '>>> '
    keys '\003'; await 'Ctrl-C once more'; await '>>> '
    leave '\003'
    size=$(sed -n 's/.*reply: \([0-9]*\) tokens.*/\1/p' "$folder/screen")
    check "Ctrl-C stops the reply" [ "${size:-450}" -lt 450 ]
    check "and keeps it" matches cut.json '"assistant", "content": " there.+"'
    begin 80 -n 4 --chunk 1
    keys "$(seq -s ' ' 120)\\r"; sleep 0.3; keys '\003'
    await 'stopped before the reply: /retry sends the message again'; await '>>> '
    keys "/save $folder/none.json\\r"; await '0 messages are in'; await '>>> '
    keys '/retry\r'; answered
    keys "/save $folder/one.json\\r"; await '2 messages are in'; await '>>> '
    leave '\004'
}

# After the device is lost the model is opened again, and the conversation goes on.
test_lost() {
    local layers
    layers=$(dirname "$peridot")/tests/layers
    export VK_ADD_LAYER_PATH=$layers VK_INSTANCE_LAYERS=VK_LAYER_PERIDOT_faults PERIDOT_TEST_FAULT=$folder/fault
    begin 80 -n 8
    keys 'Once upon a time\r'; answered
    echo lose >"$folder/fault"
    keys 'The fox\r'; await 'lost'; await 'the model is opened again'; await '>>> '
    keys '/retry\r'; answered
    keys "/save $folder/lost.json\\r"; await '4 messages are in'; await '>>> '
    leave '\004'
    unset VK_ADD_LAYER_PATH VK_INSTANCE_LAYERS PERIDOT_TEST_FAULT
}

# What a model writes moves no cursor.
test_control_characters() {
    local escape
    escape=$(printf '\033' | "$peridot" tokenize -m "$golden" | tr , '\n' | tail -1)
    chat $'hello\n' -m "$golden" --template llama2 -n 2 --logit-bias "$escape=1000"
    check "a pipe gets what the model writes" cmp -s "$folder/out" <(printf '\033\033\n')
    [ "$terminals" ] || return
    begin 80 -m "$golden" --template llama2 -n 2 --logit-bias "$escape=1000"
    keys 'hello\r'; await '\x1b\x1b'; answered
    leave '\004'
}

has_terminal "conversations on a terminal" && terminals=yes
test_windows
test_refusals
test_models
test_control_characters
if [ -e "$source/models/stories.gguf" ]; then
    test_turns
    test_files
    test_context
    if [ "$terminals" ]; then
        test_typing
        test_typed_ahead
        test_run_on_terminal
        test_lines
        test_resize
        test_search
        test_ctrl_c
        test_lost
    fi
else
    echo "skipped: models/stories.gguf is not there"
fi
finish
