#!/usr/bin/env bash
# The command line where a model's states are read: classify, tag, embed, perplexity.
. "$(dirname "$0")/command.sh"

stories=$source/models/stories.gguf
heldout=${PERIDOT_SHARED:-}/data/stories-heldout.txt   # of CMake's PERIDOT_SHARED
texts=('the cat' 'a' 'one two')

# near A B PART: A is within PART of B.
near() { awk -v a="$1" -v b="$2" -v part="$3" 'BEGIN { d = a - b; exit !(d < 0 ? -d <= part * b : d <= part * b) }'; }
# alike A B [D]: the same words, numbers within D, or 2e-4 (fp16 caches of prompts and of single steps may differ in a
# last bit).
alike() {
    cat "$1" >"$folder/a"
    cat "$2" >"$folder/b"
    [ "$(wc -lw <"$folder/a")" = "$(wc -lw <"$folder/b")" ] &&
        paste -d '\n' "$folder/a" "$folder/b" | awk -v most="${3:-2e-4}" '
        NR % 2 { n = split($0, want); next }
        NF != n { exit 1 }
        { for (i = 1; i <= NF; i++) {
              d = $i - want[i]
              if ($i != want[i] && (d * d > most * most || $i !~ /^[-+0-9.e]*$/)) exit 1
          } }'
}
lines() { [ "$(wc -l <"$folder/out")" = "$1" ]; }

# The scores of a text's last token, as peridot logits has them, as probabilities in the order of labels.
scores() {
    printf '%s' "$2" | "$peridot" tokenize -m "$1" --bos |
        "$peridot" logits -m "$1" --tokens - --out - --kv f32 2>/dev/null | od -An -v -tf4 -w12 | tail -1 |
        awk '{ for (i = 1; i <= NF; i++) t += exp($i); for (i = 1; i <= NF; i++) printf "%.6f\n", exp($i) / t }'
}

test_classify() {
    local model=$goldens/gemma2-sequence text
    for text in "${texts[@]}"; do
        scores "$model" "$text" | paste <(printf '%s\n' calm glad sad) - | sort -k2,2gr | tr '\n' '\t' | sed 's/\t$/\n/'
    done >"$folder/want"
    run classify -m "$model" --kv f32 --all "${texts[@]}"
    check "classify succeeds" [ $status = 0 ]
    check "classify --all: every label's softmax, likeliest first" alike "$folder/out" "$folder/want"
    run classify -m "$model" --kv f32 "${texts[@]}"
    check "classify: the likeliest label" alike "$folder/out" <(cut -f1,2 "$folder/want")
    cp "$folder/out" "$folder/first"
    printf '%s\n' "${texts[@]}" | "$peridot" classify -m "$model" --kv f32 >"$folder/out" 2>"$folder/err"
    check "classify: lines are texts" cmp -s "$folder/out" "$folder/first"
    printf '\nlast' | "$peridot" classify -m "$model" >"$folder/out" 2>"$folder/err"
    check "classify: an empty line is a text, a last line needs no newline" lines 2
    run classify -m "$model" --json --all -- "${texts[@]}"
    check "classify --json: a line for each text" lines 3
    check "classify --json: objects" matches out \
        '^\[\{"label": "[a-z]+", "probability": [0-9.]+\}(, \{"label": "[a-z]+", "probability": [0-9.e-]+\}){2}\]$'
    "$peridot" classify -m "$model" </dev/null >"$folder/out" 2>"$folder/err"
    check "classify: no texts, nothing written" [ $? = 0 -a ! -s "$folder/out" ]
}

# copy_head MODEL SED: a copy of a golden model in the folder "head", with its config.json changed.
copy_head() {
    rm -rf "$folder/head"
    mkdir "$folder/head"
    cp "$goldens/$1"/{model.safetensors,tokenizer.model} "$folder/head"
    sed "$2" "$goldens/$1/config.json" >"$folder/head/config.json"
}

# The logits of a text's last token, a line each.
raw_scores() {
    printf '%s' "$1" | "$peridot" tokenize -m "$folder/head" --bos |
        "$peridot" logits -m "$folder/head" --tokens - --out - --kv f32 2>/dev/null |
        od -An -v -tf4 -w"$2" | tail -1 | xargs -n1
}

test_problem_types() {
    local problem='s/"architectures"/"problem_type": "TYPE", &/'
    copy_head gemma2-sequence "${problem/TYPE/multi_label_classification}"
    raw_scores "the cat" 12 | awk '{ printf "%.6f\n", 1 / (1 + exp(-$1)) }' | paste <(printf '%s\n' calm glad sad) - |
        sort -k2,2gr | tr '\n' '\t' | sed 's/\t$/\n/' >"$folder/want"
    run classify -m "$folder/head" --kv f32 --all "the cat"
    check "classify: several labels can be right, each by its sigmoid" alike "$folder/out" "$folder/want"
    run classify -m "$folder/head" --kv f32 --json "the cat"
    check "classify --json: the likeliest of them" matches out '^\[\{"label": "[a-z]+", "probability": [0-9.]+\}\]$'
    copy_head gemma2-sequence "${problem/TYPE/regression}"
    raw_scores "the cat" 12 | paste <(printf '%s\n' calm glad sad) - | tr '\n' '\t' | sed 's/\t$/\n/' >"$folder/want"
    run classify -m "$folder/head" --kv f32 "the cat"
    check "classify: all results of a regression as they are, in their order" alike "$folder/out" "$folder/want"
    run classify -m "$folder/head" --kv f32 --json "the cat"
    check "classify --json: scores" matches out \
        '^\[\{"label": "calm", "score": [-0-9.]+\}, \{"label": "glad", "score": [-0-9.]+\}, \{"label": "sad", "score": '
    copy_head gemma2-sequence "${problem/TYPE/single_label_classification}"
    run classify -m "$folder/head" --kv f32 --all "the cat"
    cp "$folder/out" "$folder/want"
    run classify -m "$goldens/gemma2-sequence" --kv f32 --all "the cat"
    check "classify: one label is right where nothing else is said" cmp -s "$folder/out" "$folder/want"
    copy_head gemma2-sequence "${problem/TYPE/ranking}"
    fails_with 1 'problem_type "ranking"' classify -m "$folder/head" x

    # One row of the head is left.
    copy_head gemma2-sequence 's/"id2label"/"id2other"/'
    LC_ALL=C sed -i 's/\[3,64\],"data_offsets":\[158848,159232\]/[1,64],"data_offsets":[158848,158976]/' \
        "$folder/head/model.safetensors"
    truncate -s -256 "$folder/head/model.safetensors"
    raw_scores "the cat" 4 | paste <(echo LABEL_0) - >"$folder/want"
    run classify -m "$folder/head" --kv f32 "the cat"
    check "classify: one output is a score" alike "$folder/out" "$folder/want"
    check "classify: which is not 1" [ "$(cut -f2 "$folder/out")" != 1 ]
    run classify -m "$folder/head" --kv f32 --json --all "the cat"
    check "classify --json: one output is a score" matches out '^\[\{"label": "LABEL_0", "score": -?[0-9.]+\}\]$'
    sed -i 's/"architectures"/"problem_type": "multi_label_classification", &/' "$folder/head/config.json"
    awk '{ printf "%s\t%.6f\n", $1, 1 / (1 + exp(-$2)) }' "$folder/want" >"$folder/sigmoid"
    run classify -m "$folder/head" --kv f32 "the cat"
    check "classify: but the probability of a label that may be right" alike "$folder/out" "$folder/sigmoid"

    copy_head gemma2-token 's/"id2label"/"id2other"/'
    { LC_ALL=C sed 's/\[5\],"data_offsets":\[158848,158858\]/[1],"data_offsets":[158848,158850]/
        s/\[5,64\],"data_offsets":\[158858,159498\]/[1,64],"data_offsets":[158850,158978]/' \
        "$goldens/gemma2-token/model.safetensors" | head -c $((2656 + 158850))
        tail -c 640 "$goldens/gemma2-token/model.safetensors" | head -c 128; } >"$folder/head/model.safetensors"
    raw_scores "a" 4 | tail -1 >"$folder/want"
    run tag -m "$folder/head" --kv f32 a
    check "tag: one output is a score" alike <(sed -n '1s/.*\tLABEL_0\t//p' "$folder/out") "$folder/want"
    run tag -m "$folder/head" --kv f32 --json a
    check "tag --json: one output is a score" matches out '"label": "LABEL_0", "score": -?[0-9.]+\}'
}

test_tag() {
    local model=$goldens/gemma2-token text=$'the c\tat\\\u00e9'
    run tag -m "$model" "$text"
    check "tag succeeds" [ $status = 0 ]
    check "tag: columns" matches out $'^0\t[0-9]+\tt[he]*\t(O|[BI]-(NAME|PLACE))\t[01]\\.[0-9]{6}$'
    check "tag: tabs and backslashes" matches out $'\t\\\\t\t'
    check "tag: an empty line ends a text" [ -z "$(tail -1 "$folder/out")" ]
    awk -F '\t' 'NF && $1 != end { exit 1 } NF { end = $2 } END { exit end != 11 }' "$folder/out"
    check "tag: tokens follow each other and cover the text" [ $? = 0 ]
    printf '%s' "$text" | "$peridot" tokenize -m "$model" --bos |
        "$peridot" logits -m "$model" --tokens - --out - 2>/dev/null |
        od -An -v -tf4 -w20 | tail -n +2 | awk 'BEGIN { split("O B-NAME I-NAME B-PLACE I-PLACE", l, " ") }
            { b = 1; t = 0; for (i = 1; i <= 5; i++) { if ($i > $b) b = i; t += exp($i) }
              print l[b], exp($b) / t }' >"$folder/want"
    check "tag: labels and probabilities of the rows, biases and all" \
        alike "$folder/want" <(awk -F '\t' 'NF { print $4, $5 }' "$folder/out")
    run tag -m "$model" --json "$text" a
    check "tag --json: a line for each text" lines 2
    check "tag --json: objects" matches out \
        '^\[\{"begin": 0, "end": [0-9]+, "text": "t[he]*", "label": "[A-Z-]+", "probability": [0-9.]+\}, '
    check "tag --json: no broken characters" contains out '"text": "\ufffd"'
    check "tag --json: escapes" contains out '"text": "\u0009"'
}

# Prints the vector of tokens with a pooling: mean, last or cls.
pooled() {
    "$peridot" hidden -m "$goldens/gemma2-base" --tokens "$1" --out - 2>/dev/null | od -An -v -tf4 -w256 |
        awk -v how="$2" '{ n++
              for (i = 1; i <= NF; i++) { if (how == "mean") v[i] += $i; else if (how == "last" || n == 1) v[i] = $i } }
            END { for (i = 1; i <= NF; i++) { v[i] /= how == "mean" ? n : 1; l += v[i] * v[i] }
                  for (i = 1; i <= NF; i++) printf "%.7f %.7f\n", v[i], v[i] / sqrt(l) }'
}

test_embed() {
    local model=$goldens/gemma2-base pool ids
    ids=$(printf 'the cat' | "$peridot" tokenize -m "$model" --bos)
    for pool in mean last cls; do
        pooled "$ids" $pool >"$folder/want"
        run embed -m "$model" --pool $pool --no-normalise "the cat"
        tr -d '[] ' <"$folder/out" | tr ',' '\n' >"$folder/got"
        check "embed --pool $pool --no-normalise" alike "$folder/got" <(cut -d' ' -f1 "$folder/want")
        run embed -m "$model" --pool $pool "the cat"
        tr -d '[] ' <"$folder/out" | tr ',' '\n' >"$folder/got"
        check "embed --pool $pool has length 1" alike "$folder/got" <(cut -d' ' -f2 "$folder/want")
    done
    run embed -m "$model" "${texts[@]}"
    check "embed: a line for each text" lines 3
    printf '%s\n' "${texts[@]}" | "$peridot" embed -m "$model" -o "$folder/x.f32" >"$folder/out" 2>"$folder/err"
    check "embed -o is silent" [ ! -s "$folder/out" ]
    od -An -v -tf4 -w4 "$folder/x.f32" >"$folder/got"
    run embed -m "$model" "${texts[@]}"
    check "embed -o: the same numbers" alike "$folder/got" <(tr -d '[] ' <"$folder/out" | tr ',' '\n')
    fails_with 1 none/x embed -m "$model" -o "$folder/none/x" a
}

# Lines of 0 to 8 words, the empty ones too, and every tenth much longer than a chunk of 32.
many_lines() {
    awk 'BEGIN { for (i = 0; i < 40; i++) {
        line = ""
        for (j = 0; j < (i % 10 == 7 ? 25 : i * 7 % 9); j++)
            line = line (j ? " " : "") substr("the cat sat on a mat", 1 + (i + 3 * j) % 11, 1 + (i * j) % 6)
        print line } }'
}

# together_as_alone CHUNKS ARGUMENTS...: each line evaluated alone, as no text of two tokens fits a chunk of one; then
# together.
together_as_alone() {
    local chunk
    "$peridot" "${@:2}" --kv f32 --chunk 1 <"$folder/lines" >"$folder/want" 2>"$folder/err"
    for chunk in $1; do
        "$peridot" "${@:2}" --kv f32 --chunk "$chunk" <"$folder/lines" >"$folder/out" 2>"$folder/err"
        check "$2 ${*:5}: chunks of $chunk give what each line gives alone" \
            alike <(tr -d ',[]' <"$folder/out") <(tr -d ',[]' <"$folder/want") 1e-5
    done
}

# A line that is written when the one before is answered.
answers_at_once() {
    local first second in
    coproc "$peridot" classify -m "$goldens/gemma2-sequence" --kv f32 2>"$folder/err"
    in=${COPROC[1]}
    echo "the cat" >&"$in"
    read -r -t 120 first <&"${COPROC[0]}"
    printf 'a\none two\n' >&"$in"
    eval "exec $in>&-"
    second=$(cat <&"${COPROC[0]}")
    wait
    printf '%s\n' "$first" "$second"
}

test_many() {
    local text
    many_lines >"$folder/lines"
    together_as_alone "32 256" classify -m "$goldens/gemma2-sequence" --all
    check "classify: a line for each" lines 40
    sed -n '5p;8p' "$folder/want" >"$folder/some"
    sed -n '5p;8p' "$folder/lines" | while IFS= read -r text; do
        "$peridot" classify -m "$goldens/gemma2-sequence" --kv f32 --all -- "$text"
    done 2>"$folder/err" >"$folder/out"
    check "classify: and what a process of its own gives" alike "$folder/out" "$folder/some" 1e-5
    together_as_alone 32 tag -m "$goldens/gemma2-token"
    for text in mean last; do together_as_alone 32 embed -m "$goldens/gemma2-base" --pool $text; done
    check "embed: a line for each" lines 40
    "$peridot" classify -m "$goldens/gemma2-sequence" --kv f32 "${texts[@]}" >"$folder/want" 2>"$folder/err"
    answers_at_once >"$folder/out"
    check "classify: a line in a pipe is answered at once" alike "$folder/out" "$folder/want" 1e-5
    printf '%s\n' a "the cat" "far too long for it" b |
        "$peridot" classify -m "$goldens/gemma2-sequence" --ctx 8 >"$folder/out" 2>"$folder/err"
    check "classify: what is wrong with a text comes after those before it" lines 2
    check "classify: and names the text" contains err "text 3 has"
}

value() { sed -n "s/^$1: \([0-9.]*\).*/\1/p" "$folder/out"; }

# perplexities_of FOLDER FILE: of its text, as transformers has them.
perplexities_of() {
    local ctx tokens bits perplexity error
    while read -r ctx tokens bits perplexity error; do
        run perplexity -m "$2" --kv f32 -f "$1/text.txt" --ctx "$ctx"
        check "perplexity --ctx $ctx scores every token once" [ "$(value tokens)" = "$tokens" ]
        check "perplexity --ctx $ctx: bits per byte" near "$(value 'bits per byte')" "$bits" 1e-4
        check "perplexity --ctx $ctx" near "$(value perplexity)" "$perplexity" 1e-3
        check "perplexity --ctx $ctx: its error" near "$(sed -n 's/.* +- //p' "$folder/out")" "$error" 1e-3
    done <"$1/perplexity.txt"
}

test_perplexity() {
    local model=$goldens/gemma2-base name
    for name in gemma4 gemma4-small; do perplexities_of "$goldens/$name" "$goldens/$name/model.gguf"; done
    perplexities_of "$model" "$model"
    check "perplexity's last line" \
        grep -qxE 'perplexity: [0-9]+\.[0-9]{4} \+- [0-9]+\.[0-9]{4}' <(tail -1 "$folder/out")
    cp "$folder/out" "$folder/first"
    "$peridot" perplexity -m "$model" --kv f32 -f - --ctx 512 <"$model/text.txt" >"$folder/out" 2>"$folder/err"
    check "perplexity -f - reads standard input" cmp -s "$folder/out" "$folder/first"
    fails_with 1 'no tokens' perplexity -m "$model" -f /dev/null
    fails_with 1 513 perplexity -m "$model" -f "$model/text.txt" --ctx 513
    fails_with 2 --ctx perplexity -m "$model" -f "$model/text.txt" --ctx 1
    fails_with 1 none.txt perplexity -m "$model" -f "$folder/none.txt"
    fails_with 2 --file perplexity -m "$model"
}

# The demo model has learnt something, and knows more with more of the text before it.
test_stories() {
    local short
    head -c 4000 "$heldout" >"$folder/text"
    run perplexity -m "$stories" -f "$folder/text" --ctx 4
    short=$(value 'bits per byte')
    run perplexity -m "$stories" -f "$folder/text"
    check "the demo model needs less than 2 bits per byte" near "$(value 'bits per byte')" 1 1
    check "and more with short windows" \
        awk -v a="$short" -v b="$(value 'bits per byte')" 'BEGIN { exit !(a > 1.05 * b) }'
    [ "${PERIDOT_TEST_ALL:-}" ] || return
    head -c 60000 "$heldout" >"$folder/text"
    run perplexity -m "$stories" -f "$folder/text" --ctx 512 --method llama.cpp
    check "llama.cpp says 20.73 +- 0.59" near "$(value perplexity)" 20.73 1e-3
}

# Of the first BYTES of TEXT: that of the default fp16 cache and that of another. Scales of q8_0 that are 2 % off change
# the first text's by 1.9e-3, and the other's by 3.7e-4; the cache itself by 3e-4 and 6e-5.
test_cache() {   # test_cache TYPE TEXT BYTES CHANGE
    local full
    head -c "$3" "$2" >"$folder/text"
    run perplexity -m "$stories" -f "$folder/text"
    full=$(value perplexity)
    run perplexity -m "$stories" -f "$folder/text" --kv "$1"
    check "a $1 cache: another perplexity" [ "$(value perplexity)" != "$full" ]
    check "a $1 cache: a perplexity within $4" near "$(value perplexity)" "$full" "$4"
}

# What the definition of llama.cpp's method gives, from the logits of one window after another.
by_windows() {   # by_windows MODEL TEXT CTX
    local ids window w row=$((4 * $("$peridot" inspect "$1" |
        sed -n 's/.*embed_tokens.weight  *[a-z0-9]*  *\([0-9]*\) x .*/\1/p')))
    mapfile -t ids < <("$peridot" tokenize -m "$1" --bos <"$2" | tr , '\n')
    for ((w = 0; w + $3 <= ${#ids[@]}; w += $3)); do
        window=("${ids[0]}" "${ids[@]:w + 1:$3 - 1}")
        "$peridot" logits -m "$1" --kv f32 --tokens "${window[*]}" --first $(($3 / 2)) --out - 2>/dev/null |
            od -An -v -tf4 -w$row | awk -v ids="${window[*]:$3 / 2 + 1}" 'BEGIN { split(ids, id, " ") }
            NR in id { t = 0; for (i = 1; i <= NF; i++) t += exp($i); print log(t) - $(id[NR] + 1) }'
    done | awk '{ n++; sum += $1; squares += $1 * $1 }
        END { mean = sum / n; print n, exp(mean), exp(mean) * sqrt((squares / n - mean * mean) / (n - 1)) }'
}

test_perplexity_llama_cpp() {
    local model=$goldens/gemma2-base ctx tokens perplexity error
    head -c 47 "$model/text.txt" >"$folder/text"   # 48 tokens with bos
    (cat "$folder/text"; echo) >"$folder/line"
    for ctx in 16 15 23; do
        read -r tokens perplexity error < <(by_windows "$model" "$folder/text" $ctx)
        run perplexity -m "$model" --kv f32 -f "$folder/line" --ctx $ctx --method llama.cpp
        check "--method llama.cpp --ctx $ctx scores second halves" [ "$(value tokens)" = "$tokens" ]
        check "--method llama.cpp --ctx $ctx" near "$(value perplexity)" "$perplexity" 1e-4
        check "--method llama.cpp --ctx $ctx: its error" near "$(sed -n 's/.* +- //p' "$folder/out")" "$error" 1e-3
    done
    fails_with 1 'has 48 tokens, and --method llama.cpp needs two windows of 25' \
        perplexity -m "$model" -f "$folder/line" --ctx 25 --method llama.cpp
    fails_with 2 --ctx perplexity -m "$model" -f "$folder/line" --ctx 2 --method llama.cpp
}

test_wrong_models() {
    local command arguments model
    fails_with 1 'is a language model' classify -m "$goldens/gemma2-base" x
    fails_with 1 'is a language model' tag -m "$goldens/gemma2-q8_0/model.gguf" x
    fails_with 1 'is a classifier of tokens' classify -m "$goldens/gemma2-token" x
    fails_with 1 'is a classifier of texts' tag -m "$goldens/gemma2-sequence" x
    # before it is loaded, or a device is looked for
    for command in run chat perplexity serve; do
        case $command in run) arguments=x ;; perplexity) arguments="-f $0" ;; *) arguments= ;; esac
        for model in sequence:classify token:tag; do
            fails_with 1 "$command needs a language model, and gemma2-${model%:*} is " $command \
                -m "$goldens/gemma2-${model%:*}" --device no-such-device $arguments
            check "and $command says what to use" matches err ": use peridot ${model#*:}\$"
        done
    done
    fails_with 1 'use peridot run, chat or serve' classify -m "$goldens/gemma2-base" --device no-such-device x
    fails_with 1 'is a classifier of texts' perplexity -m "$goldens/gemma2-sequence" -f "$0"
    fails_with 1 'is a base model without a head' perplexity -m "$goldens/llama-base" -f "$0"
    fails_with 1 'no logits' logits -m "$goldens/llama-base" --tokens 2 --out "$folder/x"
    fails_with 1 'context 4 positions' embed -m "$goldens/gemma2-base" --ctx 4 "far too long"
    fails_with 2 'did you mean mean' embed --pool meen x
}

test_classify
test_problem_types
test_tag
test_embed
test_many
test_perplexity
test_perplexity_llama_cpp
test_wrong_models
if [ -e "$stories" ]; then
    test_cache q8_0 "$source/models/README.md" 2000 1e-3
    test_cache q8_0/q4_1 "$source/models/README.md" 2000 3e-3
fi
if [ -e "$stories" ] && [ -e "$heldout" ]; then
    test_stories
    [ "${PERIDOT_TEST_ALL:-}" ] && test_cache q8_0 "$heldout" 60000 2e-4
else
    echo "skipped: the demo model or the stories are not there"
fi
finish
