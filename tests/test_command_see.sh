#!/usr/bin/env bash
# Pictures in peridot run and peridot chat: what the model is shown changes what it writes, and stays in a conversation.
. "$(dirname "$0")/command.sh"

golden=$goldens/gemma3-vision
seer=$folder/seer
mkdir "$seer"
cp "$golden"/{config.json,preprocessor_config.json,model.safetensors,tokenizer.model} "$seer"
cp "$golden/image-1.png" "$seer/one.png"
cp "$golden/image-2.png" "$seer/two pictures.png"
cp "$golden/crops.png" "$seer/long.png"
template="{{ bos_token }}{%- for m in messages %}{{ m['role'] + '\n' }}{%- if m['content'] is string %}"
template+="{{ m['content'] | trim }}{%- else %}{%- for p in m['content'] %}{%- if p['type'] == 'image' %}"
template+="{{ '<start_of_image>' }}{%- else %}{{ p['text'] | trim }}{%- endif %}{%- endfor %}{%- endif %}{{ '\n' }}"
template+="{%- endfor %}"
printf '{"chat_template": "%s"}\n' "$template" >"$seer/tokenizer_config.json"

options=()   # of talk
# talk LINE...: a conversation; prompts: tokens of each prompt, as --verbose tells them
talk() {
    printf '%s\n' "$@" | "$peridot" chat -m "$seer" -n 4 --temp 0 --verbose "${options[@]}" >"$folder/out" \
        2>"$folder/err"
    status=$?
}
prompts() { sed -n 's/^prompt: \([0-9]*\) tokens*,.*/\1/p' "$folder/err" | paste -sd ' '; }

test_run() {
    run run -m "$seer" --image "$seer/one.png" -n 4 --temp 0 --ids "Hi"
    check "run shows a picture" [ $status = 0 ]
    local one=$(prompts)
    run run -m "$seer" -n 4 --temp 0 --ids "Hi"
    check "which adds its 16 rows and four tokens around them" [ "$one" -ge $(($(prompts) + 18)) ]
    "$peridot" run -m "$seer" --image - -n 4 --temp 0 --ids "Hi" <"$seer/one.png" >"$folder/out" 2>"$folder/err"
    check "a picture from standard input" [ "$(prompts)" = "$one" ]
    fails_with 1 "it is not a known kind of picture" run -m "$seer" --image "$seer/config.json" "Hi"
    fails_with 1 "No such file" run -m "$seer" --image "$seer/none.png" "Hi"
    fails_with 2 "--image puts pictures into a chat template" run -m "$seer" --image "$seer/one.png" --raw "Hi"
    fails_with 1 "does not see images" run -m "$goldens/gemma2-q8_0/model.gguf" --image "$seer/one.png" "Hi"
}

test_chat() {
    talk "/image $seer/one.png" Hi
    check "/image shows a picture" contains err "1 picture goes with the next message"
    local one=$(prompts)
    talk Hi
    check "with the next message" [ "$one" -gt $(($(prompts) + 17)) ]
    talk "'$seer/two pictures.png' $seer/one.png" Hi /retry
    check "files that are dragged into the terminal too" contains err "2 pictures go with the next message"
    check "/retry shows them again" [ "$(wc -w <<<"$(prompts)")" = 2 ]
    talk "$seer/two\\ pictures.png" Hi "/save $folder/seen.json"
    check "a path with a backslash" contains err "1 picture goes"
    check "/save names the file" contains seen.json "\"url\": \"file:$seer/two pictures.png\""
    local all=$(prompts)
    talk "/load $folder/seen.json" "/undo" "/image off" Hi
    check "/undo takes the picture back" [ "$(prompts)" -lt "$all" ]
    talk "/load $folder/seen.json" "And now?"
    check "/load shows it again" [ "$(prompts)" -gt "$all" ]
    rm "$seer/two pictures.png"
    talk "/load $folder/seen.json"
    check "a picture that is gone is named" contains err "two pictures.png: No such file"
    check "and that is a failure" [ $status = 1 ]
    talk "/image /etc/passwd"
    check "a file that is no picture is refused" contains err "/etc/passwd: it is not a known kind of picture"
}

# Three crops of 16 rows each, and the text around them.
test_crops() {
    local plain cropped
    run run -m "$seer" --image "$seer/long.png" -n 4 --temp 0 --ids "Hi"
    plain=$(prompts)
    run run -m "$seer" --image "$seer/long.png" --pan-and-scan -n 4 --temp 0 --ids "Hi"
    cropped=$(prompts)
    check "run --pan-and-scan shows crops" [ "$cropped" -gt $((plain + 3 * 18)) ]
    run run -m "$seer" --image "$seer/one.png" --pan-and-scan -n 4 --temp 0 --ids "Hi"
    check "but none of a square picture" [ "$(prompts)" = "$plain" ]
    options=(--pan-and-scan)
    talk "/image $seer/long.png" Hi "/save $folder/cropped.json"
    check "chat --pan-and-scan shows them" [ "$(prompts)" = "$cropped" ]
    talk "/load $folder/cropped.json" /retry
    check "and again after /load" [ "$(prompts)" = "$cropped" ]
    options=()
    fails_with 1 "--pan-and-scan: gemma2-q8_0 is not a Gemma 3 model that sees images" run --pan-and-scan \
        -m "$goldens/gemma2-q8_0/model.gguf" "Hi"
    check "chat refuses it too" eval '! "$peridot" chat --pan-and-scan -m "$seer" --vision none </dev/null 2>/dev/null'
}

# A device that is lost, or hangs, while a conversation has a picture: it is read anew for the model that is opened
# again, and /retry shows it.
test_lost() {
    local fault prompts
    export VK_ADD_LAYER_PATH=$(dirname "$peridot")/tests/layers VK_INSTANCE_LAYERS=VK_LAYER_PERIDOT_faults
    export PERIDOT_TEST_FAULT=$folder/fault PERIDOT_TEST_DISCRETE=1 XDG_CACHE_HOME= HOME=
    for fault in lose hang; do
        : >"$folder/err"
        {
            printf '%s\n' "/image $seer/one.png" Hi
            for _ in $(seq 600); do grep -q '^context:' "$folder/err" && break; sleep 0.05; done
            echo $fault >"$folder/fault"
            printf '%s\n' "And now?" /retry
        } | timeout -k 5 60 "$peridot" chat -m "$seer" -n 4 --temp 0 --verbose >"$folder/out" 2>"$folder/err"
        status=${PIPESTATUS[1]}
        check "$fault: the conversation goes on" [ $status = 0 ]
        check "$fault: the model is opened again" contains err "the model is opened again"
        read -ra prompts <<<"$(prompts)"
        check "$fault: /retry reads all, with the picture" [ "${prompts[1]:-0}" -gt "${prompts[0]}" ]
    done
    echo hang >"$folder/fault"
    SECONDS=0
    timeout -k 5 60 "$peridot" run -m "$seer" -n 4 "Hi" >"$folder/out" 2>"$folder/err"
    check "run ends where the device hangs" [ $? = 1 ]
    check "and says so" contains err "no response for 30 s"
    check "before long" [ $SECONDS -lt 40 ]
    for fault in run chat; do
        echo block >"$folder/fault"
        echo Hi | "$peridot" $fault -m "$seer" -n 4 >"$folder/out" 2>"$folder/err" &
        for _ in $(seq 600); do [ -e "$folder/fault" ] || break; sleep 0.05; done
        SECONDS=0
        kill -TERM $!
        wait $!
        status=$?
        check "$fault: SIGTERM ends what a driver keeps, with status 143, not $status" [ $status = 143 ]
        check "$fault: at once" [ $SECONDS -lt 10 ]
    done
    unset VK_ADD_LAYER_PATH VK_INSTANCE_LAYERS PERIDOT_TEST_FAULT PERIDOT_TEST_DISCRETE XDG_CACHE_HOME
}

test_run
test_chat
test_crops
test_lost
finish
