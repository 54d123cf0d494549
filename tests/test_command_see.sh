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

# Qwen 3.5's rows between its two tokens, from a directory and from two GGUF files.
test_qwen() {
    local model one golden=$goldens/qwen35-vision gguf=$folder/qwen/seer.gguf
    local hot=(-n 20 --temp 30 --top-k 0 --top-p 1 --min-p 0 --seed 3 --verbose)
    make_qwen_seer "$folder/qwen" || return
    run convert "$folder/qwen" -o "$gguf" --type bf16
    check "its text becomes a GGUF file" [ $status = 0 ]
    cp "$golden/mmproj.gguf" "$folder/qwen/mmproj-seer.gguf"
    for model in "$folder/qwen" "$gguf"; do
        run run -m "$model" "${hot[@]}" "Hi"
        one=$(prompts)
        cp "$folder/out" "$folder/blind"
        run run -m "$model" --image "$golden/image-1.png" "${hot[@]}" "Hi"
        check "$model: run shows a picture" [ $status = 0 ]
        check "as 35 rows between two tokens" [ "$(prompts)" = $((one + 37)) ]
        [ -e "$folder/seen" ] || cp "$folder/out" "$folder/seen"
        check "of which it writes something" eval '! cmp -s "$folder/out" "$folder/blind"'
        check "and writes the same from all files" cmp -s "$folder/out" "$folder/seen"
        run run -m "$model" --image "$golden/image-2.png" --image "$golden/image-1.png" "${hot[@]}" "<|image_pad|>Hi"
        check "two pictures, and a mark that is text" [ "$(prompts)" -gt $((one + 37 + 10 + 1)) ]
    done
    printf '%s\n' "/image $golden/image-1.png" Hi "And now?" /undo /retry >"$folder/lines"
    run chat -m "$folder/qwen" -n 8 --temp 0 --verbose <"$folder/lines"
    read -ra prompts <<<"$(prompts)"
    check "chat shows it too" [ "${prompts[0]}" = $((one + 37)) ]
    check "in later turns as well" [ "${prompts[1]}" -gt $((one + 37)) ]
    check "and when its turn is retried" [ "${prompts[2]}" = $((one + 37)) ]
    python3 - "$folder/narrow.png" <<'END'
import struct, sys, zlib
chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
open(sys.argv[1], "wb").write(
    b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 30000, 1, 8, 0, 0, 0, 0))
    + chunk(b"IDAT", zlib.compress(bytes(30001))) + chunk(b"IEND", b""))
END
    fails_with 1 "narrow.png: a picture of 30000 x 1 pixels is too long and narrow" run -m "$folder/qwen" \
        --image "$folder/narrow.png" "Hi"
    cp "$goldens/gemma3-vision/mmproj.gguf" "$folder/qwen/mmproj-seer.gguf"
    fails_with 1 "the vision tower is one of" run -m "$gguf" --image "$golden/image-1.png" "Hi"
    run run -m "$gguf" "${hot[@]}" "Hi"
    check "text goes on beside another family's tower" [ "$(prompts)" = "$one" ]
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
            for _ in $(seq 2400); do grep -qE '^(context|peridot):' "$folder/err" && break; sleep 0.05; done
            echo $fault >"$folder/fault"
            printf '%s\n' "And now?" /retry
        } | timeout -k 5 180 "$peridot" chat -m "$seer" -n 4 --temp 0 --verbose >"$folder/out" 2>"$folder/err"
        status=${PIPESTATUS[1]}
        check "$fault: the conversation goes on" [ $status = 0 ]
        check "$fault: the model is opened again" contains err "the model is opened again"
        read -ra prompts <<<"$(prompts)"
        check "$fault: /retry reads all, with the picture" [ "${prompts[1]:-0}" -gt "${prompts[0]}" ]
    done
    echo hang >"$folder/fault"
    timeout -k 5 100 "$peridot" run -m "$seer" -n 4 "Hi" >"$folder/out" 2>"$folder/err"
    check "run ends where the device hangs" [ $? = 1 ]
    check "and says so" contains err "no response for 30 s"
    for fault in run chat; do
        echo block >"$folder/fault"
        echo Hi | "$peridot" $fault -m "$seer" -n 4 >"$folder/out" 2>"$folder/err" &
        for _ in $(seq 2400); do [ -e "$folder/fault" ] || break; sleep 0.05; done
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
test_qwen
test_crops
test_lost
finish
