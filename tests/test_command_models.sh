#!/usr/bin/env bash
# peridot models, and names after -m: the models that other programs put on a machine, found in their own layouts; files
# that are broken, hostile or of other families; and which name means which model.
. "$(dirname "$0")/command.sh"

home=$folder/home
ones=$(printf '1%.0s' {1..40})
unset HF_HOME HF_HUB_CACHE HUGGINGFACE_HUB_CACHE OLLAMA_MODELS LLAMA_CACHE
export HOME=$home PERIDOT_MODELS=$folder/own:$folder/nothing::
export XDG_CACHE_HOME=$home/.cache
hub=$home/.cache/huggingface/hub
ollama=$home/.ollama/models
studio=$home/.lmstudio/models/someone/gemma-1-tiny-GGUF

# add_ollama NAME HASH: a manifest whose weights are the blob of that hash.
add_ollama() {
    mkdir -p "$ollama/manifests/$(dirname "$1")" "$ollama/blobs"
    printf '{"layers":[{"mediaType":"application/vnd.ollama.image.license","digest":"sha256:x"},
        {"mediaType":"application/vnd.ollama.image.model","digest":"sha256:%s","size":428640}]}' \
        "$2" >"$ollama/manifests/$1"
}

make_stores() {
    local snapshot=$hub/models--google--gemma-2-tiny/snapshots/$ones hash=$(printf 'a%.0s' {1..64})
    mkdir -p "$snapshot" "${snapshot/$ones/222}" "$hub/models--google--gemma-2-tiny/refs"
    mkdir -p "$hub/models--unsloth--tiny-GGUF/snapshots/$ones" "$hub/datasets--google--x/snapshots/$ones"
    mkdir -p "$hub/models--empty" "$folder/own/deep/gemma-3" "$studio"
    printf %s "$ones" >"$hub/models--google--gemma-2-tiny/refs/main"
    cp "$goldens"/gemma2-bf16-shards/{config.json,*.safetensors,*.index.json} "$snapshot"
    cp "$goldens/gemma2-q8_0/model.gguf" "$hub/models--unsloth--tiny-GGUF/snapshots/$ones/tiny-Q8_0.gguf"
    cp "$goldens/gemma1/model.gguf" "$hub/models--unsloth--tiny-GGUF/snapshots/$ones/tiny-Q4_K_M.gguf"
    cp "$goldens/gemma1/model.gguf" "$hub/models--unsloth--tiny-GGUF/snapshots/$ones/mmproj-F16.gguf"
    add_ollama registry.ollama.ai/library/tiny3/1b "$hash"
    add_ollama registry.ollama.ai/library/tiny3/latest "$hash"
    add_ollama hf.co/someone/other/Q8_0 "$hash"
    cp "$goldens/gemma1/model.gguf" "$ollama/blobs/sha256-$hash"
    mkdir -p "$folder/own/sees" "$folder/own/deep/gemma-3-sees"
    cp "$goldens/gemma3-vision/model.gguf" "$folder/own/sees/watcher.gguf"
    cp "$goldens/gemma3-vision/mmproj.gguf" "$folder/own/sees/mmproj-watcher.gguf"
    cp "$goldens/gemma3-vision/mmproj.gguf" "$folder/own/a-tower.gguf"
    cp "$goldens/gemma4-vision/mmproj.gguf" "$folder/own/mmproj-that-fits-none.gguf"
    cp "$goldens"/gemma3-vision/{*.json,*.safetensors} "$folder/own/deep/gemma-3-sees"
    LC_ALL=C sed 's/\(general\.file_type\x04\x00\x00\x00\)\x07/\1\x0f/' "$goldens/gemma2-q8_0/model.gguf" \
        >"$folder/own/mixed.gguf"
    add_ollama registry.ollama.ai/library/lost/1b "$(printf 'b%.0s' {1..64})"
    add_ollama registry.ollama.ai/library/climbing/1b ../../../../../../etc/passwd
    echo '{"layers":[7,{"mediaType":{}}' >"$ollama/manifests/registry.ollama.ai/library/lost/broken"
    cp "$goldens/gemma1/model.gguf" "$studio/gemma-1-tiny-F32.gguf"
    mkdir -p "$home/.cache/llama.cpp"
    cp "$goldens/llama3/model.gguf" "$home/.cache/llama.cpp/someone_llama-tiny-F16.gguf"
    cp "$goldens"/gemma3/{config.json,*.safetensors} "$folder/own/deep/gemma-3"
    cp -r "$goldens/embedding-gemma" "$folder/own/deep/embedder"
    rm "$folder/own/deep/embedder/model.gguf"
    # files that are none
    head -c 3000 "$goldens/gemma1/model.gguf" >"$folder/own/cut-Q6_K.gguf"
    sed 's/gemma/germa/g' "$goldens/gemma1/model.gguf" >"$folder/own/germa.gguf"
    : >"$folder/own/empty.gguf"
    mkfifo "$folder/own/fifo.gguf"
    ln -s /dev/zero "$folder/own/endless.gguf"
    ln -s nowhere "$folder/own/dangling.gguf"
    ln -s .. "$folder/own/deep/circle"
    cp "$folder/own/empty.gguf" "$folder/own/"$'forged\nFORGED \x1b[31m.gguf'
    : >"$folder/own/"$'latin-1-\xe9.gguf'
    for i in 1 2; do cp "$goldens/gemma1/model.gguf" "$folder/own/split-0000$i-of-00002.gguf"; done
}

# row NAME REST: a row of the table.
row() { grep -qE -e "^$1 +$2" "$folder/out"; }

test_table() {
    run models
    check "status 0" [ $status = 0 ]
    check "a directory of Hugging Face" row google/gemma-2-tiny 'gemma2 +bf16 +486 kB +Hugging Face +yes$'
    check "GGUF files there, by their types" row unsloth/tiny-GGUF:Q8_0 'gemma2 +q8_0 +269 kB +Hugging Face +yes$'
    check "and another" row unsloth/tiny-GGUF:Q4_K_M 'gemma +f32 +429 kB +Hugging Face +yes$'
    check "ollama's" row tiny3:1b 'gemma +f32 +429 kB +ollama +yes$'
    check "and its of other hosts" row hf.co/someone/other:Q8_0 'gemma '
    check "LM Studio's" row someone/gemma-1-tiny-GGUF/gemma-1-tiny-F32 'gemma +f32 +429 kB +LM Studio +yes$'
    check "llama.cpp's" row someone_llama-tiny-F16 'llama .* llama.cpp +yes$'
    check "those of PERIDOT_MODELS" row deep/gemma-3 'gemma3 +f32 .* PERIDOT_MODELS +yes$'
    check "shards are one, with the size of all" row split ' *gemma .* 857 kB .*yes$'
    check "a mix of types by the name that its file says" row mixed 'gemma2 +Q4_K_M +269 kB '
    check "a lost blob" row lost:1b '.*no: .*No such file'
    check "a broken file" row cut-Q6_K ' *Q6_K +3.00 kB +PERIDOT_MODELS +no: .*(byte|past|left)'
    check "another family" row germa '.*no: .*germa'
    check "an empty file" row empty '.* no: '
    check "a name cannot forge a line" row 'forged\\nFORGED \\x1b\[31m' '.* no: '
    check "a tower beside a model" row sees/watcher 'gemma3 .* PERIDOT_MODELS +yes, sees images$'
    check "and in a directory" row deep/gemma-3-sees 'gemma3 .* PERIDOT_MODELS +yes, sees images$'
    check "nothing else is there, and no tower by itself" [ "$(wc -l <"$folder/out")" = 21 ]
    check "which device it is for" contains err "device: "
    run models --device nothing
    check "no such device" [ $status = 1 ]
    run models --json
    check "JSON" python3 -c 'import json, sys
models = {m["name"]: m for m in json.load(open(sys.argv[1]))["models"]}
m = models["google/gemma-2-tiny"]
assert m["runs"] and m["fits"] and m["family"] == "gemma2" and m["types"] == "bf16" and m["n_params"] > 1e5, m
assert m["cache_size"] > 0 and m["path"].endswith("1" * 40) and m["missing"] == ""
assert not models["germa"]["runs"] and "germa" in models["germa"]["missing"]
assert models["sees/watcher"]["vision"].endswith("own/sees/mmproj-watcher.gguf")
assert [models[name]["vision"] for name in ("deep/gemma-3-sees", "deep/gemma-3", "split")] == [True, False, False]
assert models["deep/embedder"]["runs"] and not [name for name in models if "Dense" in name]
assert models["mixed"]["type"] == "Q4_K_M" and models["mixed"]["types"] == "q8_0" and m["type"] == "bf16"
assert len(models) == 20 and "latin-1-\\xe9" in models and "forged\nFORGED \x1b[31m" in models' "$folder/out"
    HOME=$folder/nothing XDG_CACHE_HOME=$folder/nothing PERIDOT_MODELS= run models
    check "where there are none" contains err "no models were found; peridot pull "
    check "with status 0" [ $status = 0 ]
}

# means NAME PATH...: what the name stands for ends so.
means() {
    run inspect "$1"
    check "$1 is a model" [ $status = 0 ]
    check "$1 is .../$2" grep -qF -e "$2" <(head -1 "$folder/out")
}

test_names() {
    means google/gemma-2-tiny "models--google--gemma-2-tiny/snapshots/$ones"
    means GOOGLE/Gemma-2-Tiny gemma-2-tiny
    means gemma-2-tiny gemma-2-tiny
    means gemma-2 gemma-2-tiny
    means unsloth/tiny-GGUF:q8_0 tiny-Q8_0.gguf
    means tiny-gguf:Q4_K tiny-Q4_K_M.gguf
    means tiny3:1b blobs/sha256-aaa
    means tiny3 blobs/sha256-aaa
    means gemma-1-tiny-F32.gguf gemma-1-tiny-F32.gguf
    means gemma-1-tiny:f32 gemma-1-tiny-F32.gguf
    means gemma-3 deep/gemma-3
    fails_with 1 "tiny-GGUF could be any of unsloth/tiny-GGUF:Q4_K_M, unsloth/tiny-GGUF:Q8_0: give more of the name" \
        inspect tiny-GGUF
    fails_with 1 "gemma-9: no such file, and no model of that name on this machine" inspect gemma-9
    fails_with 1 "(similar: tiny3:1b, tiny3:latest)" inspect tiny3:2b
    fails_with 1 "someone/new: no such file" inspect someone/new
    fails_with 1 "nothing.gguf: No such file" inspect nothing.gguf
    fails_with 1 "./tiny3: No such file" inspect ./tiny3
    mkdir "$folder/here"
    cp "$goldens/gemma1/model.gguf" "$folder/here/tiny3"
    (cd "$folder/here" && run inspect tiny3 && head -1 "$folder/out" | grep -qx tiny3)
    check "a path that exists wins" [ $? = 0 ]
    mkdir "$folder/one"
    cp "$goldens/gemma1/model.gguf" "$folder/one/tiny.gguf"
    cp "$goldens/gemma3-vision/mmproj.gguf" "$folder/one/mmproj-tiny.gguf"
    echo '{"model_type": "gemma"}' >"$folder/one/config.json"
    means "$folder/one" "$folder/one/tiny.gguf"
    means "$folder/one/" "$folder/one/tiny.gguf"
    cp "$goldens/gemma1/model.gguf" "$folder/one/other.gguf"
    fails_with 1 "config.json, and several GGUF files: give one of $folder/one/other.gguf, $folder/one/tiny.gguf" \
        inspect "$folder/one"
    run inspect mixed
    check "inspect names the mix" grep -qx '  type: Q4_K_M' "$folder/out"
    run run -m tiny3:1b -n 1 --temp 0 --raw --ids "x"
    check "-m takes a name" contains err "device: "
    run convert tiny3:1b -o "$folder/converted.gguf" --type Q8_0
    check "convert takes one, and a type as files carry them" [ $status = 0 ]
    run inspect "$folder/converted.gguf"
    check "and writes that type" contains out q8_0
    run convert tiny3:1b -o "$folder/converted.gguf" --type Q4_K_M
    check "Q4_K_M" [ $status = 0 ]
    fails_with 2 "--type does not know Q9_K_M" convert tiny3:1b -o "$folder/converted.gguf" --type Q9_K_M
}

test_completion() {
    run help --complete run -m gemma-2
    check "files may come as well" [ $status = 1 ]
    run help --complete run -m goo
    check "names are completed" grep -qx $'google/gemma-2-tiny\tHugging Face' "$folder/out"
    check "and only those that begin so" [ "$(wc -l <"$folder/out")" = 1 ]
}

# gpt-oss-20b is published in 12.1 GB, and Qwen3 30B-A3B as Q4_K_M in 18.6.
test_plans() {
    run models --plan 16G
    check "plans: a row for each model with experts and type" [ "$(wc -l <"$folder/out")" = 39 ]
    check "plans: what fits" matches out '^gpt-oss-20b +mxfp4_moe +12\.1 GB +131072 +12\.1 GB +-$'
    check "plans: what fits in part" \
        matches out '^qwen3-30b-a3b +q4_k_m +18\.6 GB +8192 .* experts of [0-9]+ of 48 layers$'
    check "plans: no dense model" matches_not out qwen3-32b
    run models --plan 3G
    check "plans: what does not fit" matches out '^qwen3\.5-35b-a3b .* experts of 40 of 40 layers$'
    run models --plan 1G --json
    check "plans: not even without experts" matches out '"fits": *false'
}

make_stores
test_plans
test_completion
test_table
test_names
finish
