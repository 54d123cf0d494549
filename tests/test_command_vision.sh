#!/usr/bin/env bash
# Which vision tower belongs to a model: the mmproj file beside it that fits and is named after it, in folders and in
# the stores of other programs; that one which is damaged or does not fit takes nothing from text; and what inspect
# says.
. "$(dirname "$0")/command.sh"

tiny=$goldens/gemma3-vision
home=$folder/home
ones=$(printf '1%.0s' {1..40})
unset HF_HOME HF_HUB_CACHE HUGGINGFACE_HUB_CACHE OLLAMA_MODELS LLAMA_CACHE PERIDOT_MODELS
export HOME=$home XDG_CACHE_HOME=$home/.cache

# place FOLDER MODEL [MMPROJ NAME]...: a new folder with copies.
place() {
    rm -rf "$folder/$1"
    mkdir -p "$folder/$1"
    cp "$tiny/model.gguf" "$folder/$1/$2"
    local at=$1
    shift 2
    while [ $# -gt 0 ]; do
        cp "$1" "$folder/$at/$2"
        shift 2
    done
}

# look MODEL [OPTION...]: the logits of the golden prompt with its image, to $folder/logits.
look() {
    rm -f "$folder/logits"
    run logits -m "$@" --precision exact --kv f32 --tokens "$(cat "$tiny/tokens.txt")" --image "$tiny/image-1.png" \
        --out "$folder/logits"
}

# sees FILE MODEL: the model's image is seen through that file, and gives what it gives where the file is named.
sees() {
    look "$2" --vision "$1"
    check "--vision $1: status $status, not 0" [ $status = 0 ]
    check "--vision $1 is not told of" matches_not err '^vision:'
    mv "$folder/logits" "$folder/named"
    look "$2"
    check "$2 sees" [ $status = 0 ]
    check "$2 takes $1" grep -qxF "vision: $1" "$folder/err"
    check "$2: as with $1 by its name" cmp -s "$folder/logits" "$folder/named"
}

# blind TEXT MODEL [OPTION...]: text is evaluated, and an image refused with a sentence that holds TEXT.
blind() {
    run logits -m "${@:2}" --tokens 2,113 --out "$folder/logits"
    check "${*:2}: text goes on" [ $status = 0 ]
    check "${*:2}: without a word on vision" matches_not err '^vision:'
    look "${@:2}"
    check "${*:2}: an image does not" [ $status = 1 ]
    check "${*:2}: says '$1'" grep -qF -e "$1" <(tail -1 "$folder/err" | grep '^peridot: ')
}

test_folder() {
    local at=$folder/flat name
    place flat tiny-it-Q4_K_M.gguf "$tiny/mmproj.gguf" mmproj.gguf
    sees "$at/mmproj.gguf" "$at/tiny-it-Q4_K_M.gguf"
    look "$tiny"
    check "a Hugging Face directory needs none" [ $status = 0 ]
    check "and is not told of" matches_not err '^vision:'
    place flat tiny-it-Q4_K_M.gguf "$tiny/mmproj-q8_0.gguf" tiny-it.MMPROJ-q8_0.gguf "$tiny/mmproj.gguf" \
        mmproj-other-f16.gguf
    sees "$at/tiny-it.MMPROJ-q8_0.gguf" "$at/tiny-it-Q4_K_M.gguf"
    place flat tiny-it-BF16.gguf "$tiny/mmproj-q8_0.gguf" mmproj-BF16.gguf "$tiny/mmproj.gguf" mmproj-F16.gguf \
        "$tiny/mmproj-q8_0.gguf" mmproj-F32.gguf
    sees "$at/mmproj-F16.gguf" "$at/tiny-it-BF16.gguf"
    (cd "$at" && look tiny-it-BF16.gguf && grep -qx 'vision: mmproj-F16.gguf' "$folder/err")
    check "in the present folder" [ $? = 0 ]
    place flat tiny-it-Q4_0.gguf "$tiny/mmproj.gguf" mmproj-x-q8_0.gguf
    for name in {a..h}-mmproj {a..h}-mmproj-tiny-it mmproj-{a..h}; do   # in whatever order a folder gives them
        cp "$goldens/gemma4-vision/mmproj.gguf" "$at/$name-f16.gguf"
    done
    sees "$at/mmproj-x-q8_0.gguf" "$at/tiny-it-Q4_0.gguf"
}

test_blind() {
    local at=$folder/flat
    place flat tiny.gguf "$tiny/mmproj.gguf" mmproj.gguf
    blind "it was opened without its vision tower" "$at/tiny.gguf" --vision none
    blind "it was opened without its vision tower" "$tiny" --vision none
    place flat tiny.gguf
    blind "is in a file of its own (mmproj), and none was given" "$at/tiny.gguf"
    place flat tiny.gguf "$goldens/gemma4-vision/mmproj.gguf" mmproj-tiny.gguf
    blind "mmproj-tiny.gguf: the vision tower is one of gemma4, which does not fit" "$at/tiny.gguf"
    head -c 3000 "$tiny/mmproj.gguf" >"$at/mmproj-tiny.gguf"
    blind "mmproj-tiny.gguf: it has 3000 bytes and needs" "$at/tiny.gguf"
    cp "$goldens/gemma1/model.gguf" "$at/mmproj-tiny.gguf"
    blind "mmproj-tiny.gguf: it has no clip.projector_type" "$at/tiny.gguf"
    rm "$at/mmproj-tiny.gguf"
    mkfifo "$at/mmproj-tiny.gguf"
    ln -s nowhere "$at/mmproj-dangling.gguf"
    blind "is in a file of its own (mmproj), and none was given" "$at/tiny.gguf"
    fails_with 1 "mmproj-none.gguf" logits -m "$at/tiny.gguf" --vision "$at/mmproj-none.gguf" --tokens 2 \
        --out "$folder/logits"
    cp "$tiny/mmproj.gguf" "$at/mmproj-2.gguf"
    run perplexity -m "$at/tiny.gguf" -f "$source/tests/test_command_vision.sh"
    check "commands without images do not look" matches_not err '^vision:'
}

# Where other programs put both.
test_stores() {
    local snapshot=home/.cache/huggingface/hub/models--test--tiny-GGUF/snapshots/$ones
    place "$snapshot" mmproj.gguf
    mv "$folder/$snapshot/mmproj.gguf" "$folder/$snapshot/tiny-Q8_0.gguf"
    mkdir "$folder/$snapshot/BF16"
    cp "$tiny/model.gguf" "$folder/$snapshot/BF16/tiny-BF16.gguf"
    cp "$tiny/mmproj.gguf" "$folder/blob"
    ln -s "$folder/blob" "$folder/$snapshot/mmproj-F16.gguf"
    sees "$folder/$snapshot/mmproj-F16.gguf" test/tiny-GGUF:Q8_0
    sees "$folder/$snapshot/mmproj-F16.gguf" test/tiny-GGUF:BF16
    local store=$home/.ollama/models model=$(printf 'a%.0s' {1..64}) tower=$(printf 'b%.0s' {1..64})
    mkdir -p "$store/blobs" "$store/manifests/registry.ollama.ai/library/tiny"
    cp "$tiny/model.gguf" "$store/blobs/sha256-$model"
    cp "$tiny/mmproj-q8_0.gguf" "$store/blobs/sha256-$tower"
    printf '{"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:%s"},
        {"mediaType":"application/vnd.ollama.image.projector","digest":"sha256:%s"}]}' "$model" "$tower" \
        >"$store/manifests/registry.ollama.ai/library/tiny/4b"
    sees "$store/blobs/sha256-$tower" tiny:4b
    place home/.lmstudio/models/someone/tiny tiny-Q4_0.gguf "$tiny/mmproj.gguf" mmproj-model-f16.gguf
    sees "$home/.lmstudio/models/someone/tiny/mmproj-model-f16.gguf" someone/tiny/tiny-Q4_0
}

# told PATTERN: a line of inspect.
told() { check "inspect says '$1'" grep -qxE -e " *$1" "$folder/out"; }

test_inspect() {
    place flat tiny.gguf "$tiny/mmproj-q8_0.gguf" mmproj-tiny-q8_0.gguf
    run inspect "$folder/flat/tiny.gguf"
    told "vision \(siglip, in $folder/flat/mmproj-tiny-q8_0.gguf\)"
    told 'tower: 2 layers of 96, 4 heads of 24, ffn of 104'
    told 'picture: 96 x 96 pixels, patches of 6 x 6, 16 rows of 64'
    told 'weights: [0-9]+ kB, [0-9.]+ million parameters, 39 tensors, matrices in q8_0, f16, f32'
    local cache=$(grep -o "cache: .* per token" "$folder/out")
    run inspect "$tiny"
    told 'vision \(siglip\)'
    told 'weights: [0-9]+ kB, .* matrices in bf16'
    check "the tower adds nothing to the cache" [ "$(grep -o "cache: .* per token" "$folder/out")" = "$cache" ]
    run inspect "$tiny/mmproj.gguf"
    told 'vision \(siglip\)'
    check "and has none of its own" matches_not out 'cache:|sessions'
    run inspect "$goldens/gemma4-vision"
    told 'vision \(gemma4\)'
    told 'picture: patches of 4 x 4, at most 70 rows of 64'
    run inspect "$goldens/gemma4-unified-vision/mmproj.gguf"
    told 'tower: patches are projected to 96'
    run inspect "$goldens/gemma3"
    check "a model that does not see" matches_not out '^vision'
    run inspect --json "$folder/flat/tiny.gguf"
    check "JSON" python3 -c 'import json, sys
v = json.load(open(sys.argv[1]))["vision"]
assert v["path"].endswith("mmproj-tiny-q8_0.gguf") and v["kind"] == "siglip" and v["types"] == "q8_0, f16, f32", v
assert (v["n_layers"], v["d_model"], v["image_size"], v["image_rows"], v["row_dim"]) == (2, 96, 96, 16, 64), v' \
        "$folder/out"
    run inspect --json "$goldens/gemma3"
    check "JSON without a tower" contains out '"vision": null'
}

test_inspect
test_folder
test_blind
test_stores
finish
