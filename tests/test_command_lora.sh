#!/usr/bin/env bash
# LoRA adapters by the command: --lora of commands that open a model and of convert, and what serve makes of it. The
# model is a tiny random one, whose text means nothing.
. "$(dirname "$0")/serve.sh"

adapters=$goldens/lora/llama
model=$goldens/llama/model.gguf
tokens=$(cat "$adapters/tokens.txt")

# logits NAME ARGUMENTS...: into $folder/NAME.f32
logits() {
    run logits --tokens "$tokens" --kv f32 --out "$folder/$1.f32" "${@:2}"
    check "logits ${*:2}" [ $status = 0 ]
}
same() { cmp -s "$folder/$1.f32" "$folder/$2.f32"; }

test_commands() {
    logits plain -m "$model"
    logits first -m "$model" --lora "$adapters/first.gguf"
    check "the adapter and its scale are said" contains err 'adapter: first, scale 1'
    logits one -m "$model" --lora "$adapters/first.gguf:1"
    logits peft -m "$model" --lora "$adapters/first/"
    logits none -m "$model" --lora "$adapters/first.gguf:0"
    logits both -m "$model" --lora "$adapters/first.gguf:0.75" --lora "$adapters/second:-0.5"
    check "two of them are said" contains err 'adapter: second, scale -0.5'
    check "an adapter changes logits" [ "$(same plain first; echo $?)" = 1 ]
    check "a scale of 1 is the default" same first one
    check "a scale of 0 is none, bit for bit" same plain none
    check "two adapters are not one" [ "$(same first both; echo $?)" = 1 ]

    cp "$adapters/first.gguf" "$folder/a:b.gguf"
    logits colon -m "$model" --lora "$folder/a:b.gguf"
    check "a file's name may have a colon" same first colon
    printf 'abcdefgh abcdefgh' >"$folder/text"
    run perplexity -m "$model" -f "$folder/text"
    plain=$(tail -1 "$folder/out")
    run perplexity -m "$model" -f "$folder/text" --lora "$adapters/first"
    check "perplexity takes adapters" [ $status = 0 -a "$(tail -1 "$folder/out")" != "$plain" ]
    run bench -m "$model" --lora "$adapters/first" -p 8 -n 4 -r 1
    check "bench takes adapters" [ $status = 0 ]
}

test_convert() {
    run convert "$goldens/llama" -o "$folder/merged.gguf" --type f32 --lora "$adapters/first:0.75" \
        --lora "$adapters/second.gguf:-0.5"
    check "convert merges adapters" [ $status = 0 ]
    run run -m "$folder/merged.gguf" --raw --ids -n 12 --temp 0 abc
    merged=$(cat "$folder/out")
    run run -m "$goldens/llama" --raw --ids -n 12 --temp 0 --lora "$adapters/first:0.75" \
        --lora "$adapters/second.gguf:-0.5" abc
    check "and the file writes what the model with them does" [ "$(cat "$folder/out")" = "$merged" ]
    fails_with 1 'general.architecture is gemma3, not llama' \
        convert "$goldens/llama" -o "$folder/no.gguf" --lora "$goldens/lora/gemma3/first.gguf"
    check "what is refused is not written" [ ! -e "$folder/no.gguf" ]
}

test_refused() {
    fails_with 1 'two adapters are called first' \
        run -m "$model" --lora "$adapters/first" --lora "$adapters/first.gguf" x
    fails_with 1 'No such file' run -m "$model" --lora "$folder/nothing.gguf" x
    fails_with 1 'no adapter_config.json in this folder' run -m "$model" --lora "$goldens/llama" x
    fails_with 1 'general.type is model, not adapter' run -m "$model" --lora "$model" x
    fails_with 1 'say [4, 64]' run -m "$model" --lora "$goldens/lora/phi3/first" x
    fails_with 1 'an adapter, which is given beside its model (--lora)' run -m "$adapters/first.gguf" x
    fails_with 1 'an adapter, which is given beside its model (--lora)' run -m "$adapters/first" x
}

# words MODEL [MORE]: the text of a completion.
words() {
    ask /v1/completions "$(completion abc 12 1 ", \"temperature\": 0, \"model\": \"$1\"$2")"
    check "$1$2: status $status" [ "$status" = 200 ]
    field text
}

test_serve() {
    local base first second both
    start --lora "$adapters/first" --lora "$adapters/second.gguf:0.5" --alias llama
    get /v1/models
    for name in llama first second; do check "/v1/models lists $name" contains out "\"id\":\"$name\""; done
    check "with the model that it is for" contains out '"parent":"llama"'
    get /v1/models/second
    check "/v1/models/NAME is an adapter, too" [ "$(field id)" = second ]

    base=$(words llama) first=$(words first) second=$(words second)
    both=$(words llama ', "lora": [{"name": "first", "scale": 0.75}, {"id": 1, "scale": -0.5}]')
    check "all of them differ" [ "$(printf '%s\n' "$base" "$first" "$second" "$both" | sort -u | wc -l)" = 4 ]
    ask /v1/completions "$(completion abc 12 1 ', "temperature": 0, "model": "llama:first"')"
    check "MODEL:NAME is the adapter" [ "$(field text)" = "$first" ]
    check "whose name the answer has" [ "$(field model)" = first ]
    check "a list names it as well" [ "$(words llama ', "lora": [{"id": "first"}]')" = "$first" ]
    check "its scale is the command line's" \
        [ "$(words llama ', "lora": [{"name": "second", "scale": 0.5}]')" = "$second" ]
    check "an empty list is none" [ "$(words llama ', "lora": []')" = "$base" ]

    for i in 1 2 3; do
        for name in llama first second; do
            send $name$i /v1/completions "$(completion abc 12 1 ", \"temperature\": 0, \"model\": \"$name\"")"
        done
    done
    await
    for i in 1 2 3; do
        answer llama$i; check "at once: the model" [ "$(field text)" = "$base" ]
        answer first$i; check "at once: an adapter" [ "$(field text)" = "$first" ]
        answer second$i; check "at once: the other one" [ "$(field text)" = "$second" ]
    done

    for wrong in '1' '[1]' '[{"scale": 1}]' '[{"name": "third"}]' '[{"id": 2}]' '[{"id": 0, "scale": "1"}]' \
        '[{"id": 0, "more": 1}]'; do
        ask /v1/completions "$(completion abc 4 1 ", \"lora\": $wrong")"
        check "lora $wrong: 400, not $status" [ "$status" = 400 ]
        check "lora $wrong: the parameter is named" [ "$(field param)" = lora ]
    done
    ask /v1/completions "$(completion abc 4 1 ', "model": "first", "lora": [{"id": 1}]')"
    check "an adapter as the model, and a list: 400" [ "$status" = 400 ]
    stop
    "$peridot" serve -m "$model" --port 0 --lora "$adapters/first" --alias first >"$folder/out" 2>"$folder/err"
    check "a model and an adapter of one name are refused" contains err 'are both called first'
}

test_commands
test_convert
test_refused
test_serve
finish
