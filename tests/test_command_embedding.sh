#!/usr/bin/env bash
# Embedding models on the command line: vectors from both forms of a model, tasks, dimensions, what is refused, and the
# server. That the numbers are right is test_embedding.c's.
. "$(dirname "$0")/command.sh"

names=(embedding-gemma embedding-gemma2)
texts=('the cat' 'a' 'one two and a longer text that goes on for more than a window to either side of it')

# alike A B: files of the same words, numbers within 1e-5.
alike() {
    [ -s "$1" ] && [ "$(wc -lw <"$1")" = "$(wc -lw <"$2")" ] && paste -d '\n' "$1" "$2" | tr -d '[],' | awk '
        NR % 2 { n = split($0, want); next }
        { for (i = 1; i <= NF; i++) if (($i - want[i]) ^ 2 > 1e-10) exit 1 }'
}
# Its numbers in a line, and the sum of their squares.
columns() { tr -d '[],' <"$folder/out" | awk -v n="$1" 'NF != n { exit 1 }'; }
of_length_1() { tr -d '[],' <"$folder/out" | awk '{ t = 0; for (i = 1; i <= NF; i++) t += $i ^ 2
                                                   if ((t - 1) ^ 2 > 1e-8) exit 1 }'; }

test_forms() {
    local model=$goldens/$1 text
    run embed -m "$model" "${texts[@]}"
    check "$1: embed succeeds" [ $status = 0 ]
    check "$1: a vector for each text" [ "$(wc -l <"$folder/out")" = 3 ]
    check "$1: as many numbers as the last dense layer has rows" columns 48
    check "$1: of length 1" of_length_1
    cp "$folder/out" "$folder/want"
    run embed -m "$model/model.gguf" "${texts[@]}"
    check "$1: the same from GGUF" alike "$folder/out" "$folder/want"
    for text in "${texts[@]}"; do "$peridot" embed -m "$model" "$text" 2>/dev/null; done >"$folder/out"
    check "$1: the same one by one" alike "$folder/out" "$folder/want"
    run convert "$model" -o "$folder/made.gguf" --type f32
    check "$1: convert succeeds" [ $status = 0 ]
    run embed -m "$folder/made.gguf" "${texts[@]}"
    check "$1: the same from what convert makes" alike "$folder/out" "$folder/want"
    run embed -m "$model" --dimensions 16 "${texts[@]}"
    check "$1: --dimensions 16" columns 16
    check "$1: of length 1 as well" of_length_1
    run embed -m "$model" --pool cls --out "$folder/vectors" "${texts[@]}"
    check "$1: --pool cls" [ $status = 0 -a "$(wc -c <"$folder/vectors")" = $((3 * 48 * 4)) ]
    check "$1: the first row of a text depends on all of it" [ \
        "$(head -c 192 "$folder/vectors" | md5sum)" != "$(tail -c 192 "$folder/vectors" | md5sum)" ]
}

test_tasks() {
    local model=$goldens/$1
    run embed -m "$model" 'task: search result | query: the cat' 'title: none | text: the cat'
    cp "$folder/out" "$folder/want"
    { "$peridot" embed -m "$model" --task query 'the cat'; "$peridot" embed -m "$model" --task document 'the cat'
    } >"$folder/out" 2>/dev/null
    check "$1: --task puts the texts behind its prefix" alike "$folder/out" "$folder/want"
    run embed -m "$model" --task Clustering 'y'
    cp "$folder/out" "$folder/want"
    run embed -m "$model" 'xy'
    check "$1: prefixes are those of config_sentence_transformers.json" alike "$folder/out" "$folder/want"
}

test_refusals() {
    local command
    for command in run chat; do
        fails_with 1 "$command needs a language model, and embedding-gemma is an embedding model: use peridot embed" \
            $command -m "$goldens/embedding-gemma" $([ $command = run ] && echo x)
    done
    fails_with 1 "task \"poetry\" is not one of the model's (query, document, Clustering)" \
        embed -m "$goldens/embedding-gemma" --task poetry x
    fails_with 1 'more than the 48' embed -m "$goldens/embedding-gemma" --dimensions 49 x
    fails_with 2 'there is no option --image' embed -m "$goldens/embedding-gemma" --image x y
    fails_with 1 'no tasks' embed -m "$goldens/gemma2-base" --task query x
    fails_with 1 'context 4 positions' embed -m "$goldens/embedding-gemma" --ctx 4 "far too long"
}

# changed FILE SED: a copy of the model in the folder "copy", with one of its files changed.
changed() {
    rm -rf "$folder/copy"
    cp -r "$goldens/embedding-gemma" "$folder/copy"
    sed -i "$2" "$folder/copy/$1"
}
test_files() {
    changed modules.json 's/models.Pooling/models.WordWeights/'
    fails_with 1 'modules.json: type "sentence_transformers.models.WordWeights" is not known' embed -m "$folder/copy" x
    changed modules.json 's/"2_Dense"/"..\/2_Dense"/'
    fails_with 1 "path of a dense layer is not a folder's name" embed -m "$folder/copy" x
    changed modules.json 's/^\[/{/'
    fails_with 1 'modules.json: ' embed -m "$folder/copy" x
    changed 2_Dense/config.json 's/linear.Identity/activation.Tanh/'
    fails_with 1 '2_Dense/config.json: activation_function is not torch.nn.modules.linear.Identity' \
        embed -m "$folder/copy" x
    changed 1_Pooling/config.json 's/"pooling_mode_max_tokens": false/"pooling_mode_max_tokens": true/'
    fails_with 1 '1_Pooling/config.json: only the mean' embed -m "$folder/copy" x
    changed 1_Pooling/config.json 's/"include_prompt": true/"include_prompt": false/'
    fails_with 1 'include_prompt is false' embed -m "$folder/copy" x
    changed config_sentence_transformers.json 's/"x"/7/'
    fails_with 1 'prompt "Clustering" is not a string' embed -m "$folder/copy" x
    changed config.json 's/x/x/'
    rm "$folder/copy/3_Dense/model.safetensors"
    fails_with 1 '3_Dense/model.safetensors' embed -m "$folder/copy" x
    changed config.json 's/x/x/'
    cp "$folder/copy/2_Dense/model.safetensors" "$folder/copy/3_Dense/model.safetensors"
    fails_with 1 'dense_3.weight has shape [160, 64], but the config says [160, 160]' embed -m "$folder/copy" x
    changed config.json 's/x/x/'   # a model without them: see pooling alone
    rm -r "$folder/copy/modules.json" "$folder/copy/2_Dense" "$folder/copy/3_Dense"
    run embed -m "$folder/copy" x
    check "without dense layers vectors have d_model columns" columns 64
}

# A GGUF file of EmbeddingGemma without its dense layers, as converters write it.
test_lacking() {
    local lacks='no dense layers \(dense_2, dense_3\), which EmbeddingGemma was trained with'
    mkdir -p "$folder/models"
    "$peridot" convert "$folder/copy" -o "$folder/models/lacking.gguf" --type f32 2>/dev/null
    run embed -m "$folder/models/lacking.gguf" x
    check "embed says that dense layers are missing" matches err "warning: .*$lacks"
    run inspect "$folder/models/lacking.gguf"
    check "inspect, too" matches out "warning: .*$lacks"
    run inspect --json "$folder/models/lacking.gguf"
    check "and in JSON" contains out '"lacks_dense": true'
    HOME=$folder/nothing XDG_CACHE_HOME=$folder/nothing PERIDOT_MODELS=$folder/models run models
    check "models, too" matches out "^lacking .*  yes, but .*$lacks"
    run embed -m "$goldens/embedding-gemma/model.gguf" x
    check "nothing is said of a whole one" matches_not err 'dense layers'
}

# Qwen3-Embedding: the state of the token that its tokenizer ends texts with, as transformers computes it.
test_last() {
    local from=$goldens/embedding-qwen3 model
    local -a texts
    mapfile -t texts <"$from/texts.txt"
    run convert "$from" -o "$folder/made.gguf" --type bf16
    check "embedding-qwen3: convert succeeds" [ $status = 0 ]
    for model in "$from" "$folder/made.gguf"; do
        run embed -m "$model" --kv f32 "${texts[@]}"
        check "${model##*/}: a vector for each text" [ "$(wc -l <"$folder/out")" = "${#texts[@]}" ]
        head -n "${#texts[@]}" "$from/vectors.txt" >"$folder/want"
        check "${model##*/}: transformers' vectors" alike "$folder/out" "$folder/want"
        run embed -m "$model" --kv f32 --task query "${texts[@]}"
        tail -n "${#texts[@]}" "$from/vectors.txt" >"$folder/want"
        check "${model##*/}: transformers' vectors of queries" alike "$folder/out" "$folder/want"
    done
    fails_with 1 'run needs a language model' run -m "$from" x
    rm -rf "$folder/copy"
    cp -r "$from" "$folder/copy"
    sed -i 's/models.Normalize/models.Dense/' "$folder/copy/modules.json"
    cp -r "$goldens/embedding-gemma/2_Dense" "$folder/copy/2_Normalize"
    fails_with 1 'modules.json: type "sentence_transformers.models.Dense" is not known of a qwen3 model' \
        embed -m "$folder/copy" x
}

for name in "${names[@]}"; do
    test_forms $name
    test_tasks $name
done
test_refusals
test_files
test_lacking
test_last
finish
