#!/usr/bin/env bash
# peridot convert: what is converted computes what the source does, on a device; and conversions that fail leave
# nothing.
. "$(dirname "$0")/command.sh"

stories=$source/models/stories.gguf
texts=${PERIDOT_SHARED:-}/data   # of CMake's PERIDOT_SHARED

logits() { "$peridot" logits -m "$1" --tokens "$2" --kv f32 --out "$3" 2>"$folder/err"; }

# same_logits NAME TYPE: the golden folder NAME and its GGUF file of the type it is stored in, byte for byte.
same_logits() {
    local from=$goldens/$1 tokens
    tokens=$(cat "$from/tokens.txt")
    run convert "$from" -o "$folder/x.gguf" --type "$2"
    check "convert $1 succeeds" [ $status = 0 ]
    check "convert $1 is silent on stdout" [ ! -s "$folder/out" ]
    check "logits of $1" logits "$from" "$tokens" "$folder/a.f32"
    check "logits of $1 converted" logits "$folder/x.gguf" "$tokens" "$folder/b.f32"
    check "$1: the same logits" cmp -s "$folder/a.f32" "$folder/b.f32"
}

test_logits() {
    same_logits gemma1-lm-head f32
    same_logits gemma2-bf16-shards bf16
    same_logits gemma2-f16 f16
    same_logits vaultgemma bf16
    same_logits gemma3-new bf16
    same_logits gemma3-wrapped bf16
    same_logits gemma4 f32
    same_logits gemma4-old bf16
    same_logits gemma4-small bf16
    same_logits llama f32
    same_logits llama-linear f16
    same_logits qwen2-window bf16
    same_logits qwen3 bf16
    same_logits llama-yarn f32
    same_logits llama-longrope f32
    run convert "$goldens/gemma3-wrapped" -o "$folder/x.gguf"
    check "vision is told of" contains err "3 tensors of vision were left out"
    check "a missing tokenizer is told of" contains err "no tokenizer was found"
}

# rope_freqs.weight and attn_factor are float32 where config.json gives the rule: near, not equal.
test_rope_rules() {
    local name from
    for name in llama3 llama-yarn-mscale; do
        from=$goldens/$name
        run convert "$from" -o "$folder/x.gguf" --type f32
        check "convert $name succeeds" [ $status = 0 ]
        logits "$from" "$(cat "$from/tokens.txt")" "$folder/a.f32"
        logits "$folder/x.gguf" "$(cat "$from/tokens.txt")" "$folder/b.f32"
        check "$name: nearly the same logits" near "$folder/a.f32" "$folder/b.f32"
    done
}

near() {
    paste <(od -An -v -w4 -tf4 "$1") <(od -An -v -w4 -tf4 "$2") |
        awk '{ d += ($1 - $2) ^ 2; s += $1 ^ 2 } END { exit !(NR > 0 && s > 0 && d < 1e-9 * s) }'
}

# A type at a time: the demo model still tells stories, and stays what it was.
test_stories() {
    local type
    "$peridot" run -m "$stories" --temp 0 -n 8 "Once upon a" >"$folder/text" 2>"$folder/err"
    for type in q8_0 q4_0 q5_1 q4_k q6_k; do
        run convert "$stories" -o "$folder/x.gguf" --type $type
        check "convert to $type succeeds" [ $status = 0 ]
        check "convert to $type says the size" matches err "^.*/x.gguf: [0-9]+ tensors, 0\.[0-9]+ GB$"
        run run -m "$folder/x.gguf" --temp 0 -n 8 "Once upon a"
        check "$type runs" [ $status = 0 ]
        check "$type writes a time" contains out " time"
    done
    check "no temporary file stays" [ "$(ls "$folder" | grep -c '^x')" = 1 ]
    run convert "$stories" -o "$folder/x.gguf" --type Q4_K_M
    check "convert to a mix succeeds" [ $status = 0 ]
    run inspect "$folder/x.gguf"
    check "inspect says the mix's name" contains out "Q4_K_M"
    fails_with 2 "type iq2_xs needs an importance matrix" convert "$stories" -o "$folder/y.gguf" --type IQ2_XS
}

# What a text says of the columns changes the weights, and the file is read as it was written.
test_imatrix() {
    echo "Once upon a time there was a little fox who lived in the wood." >"$folder/text"
    run imatrix -m "$stories" -f "$folder/text" -o "$folder/i.gguf" --ctx 16
    check "imatrix succeeds" [ $status = 0 ]
    check "imatrix says how much was read" contains err "i.gguf: 1 window of 16 tokens"
    run convert "$stories" -o "$folder/x.gguf" --type q4_k
    run convert "$stories" -o "$folder/z.gguf" --type q4_k --imatrix "$folder/i.gguf"
    check "convert by an imatrix succeeds" [ $status = 0 ]
    check "convert says what was weighed" contains err "42 matrices by the importance of their columns"
    check "the weights are others" [ "$(cmp -s "$folder/x.gguf" "$folder/z.gguf"; echo $?)" = 1 ]
    run run -m "$folder/z.gguf" --temp 0 -n 8 "Once upon a"
    check "they write a time" contains out " time"
    rm "$folder/z.gguf"
    fails_with 1 "text: as an imatrix.dat its entry 0 is cut or damaged" convert "$stories" -o "$folder/y.gguf" \
        --imatrix "$folder/text"
    fails_with 1 "in_sum2" convert "$stories" -o "$folder/y.gguf" --imatrix "$stories"
    printf 'a b' >"$folder/short"
    run imatrix -m "$stories" -f "$folder/short" -o "$folder/i3.gguf"
    check "imatrix of three bytes says how little that is" matches err 'i3.gguf: 1 window of [2-5] tokens$'
    check "and that more is needed" contains err "some 100,000 tokens make an imatrix that is worth it"
    run make --shape tiny-qwen3-moe --type f16 -o "$folder/experts.gguf"   # 2 layers of 8 experts
    run imatrix -m "$folder/experts.gguf" -f "$folder/short" -o "$folder/i4.gguf"
    run convert "$folder/experts.gguf" -o "$folder/z.gguf" --type iq3_s --imatrix "$folder/i4.gguf"
    check "convert says which experts no token took" \
        matches err "^([369]|[1-3][0-9]|4[0-8]) matrices of experts without: no token of the imatrix's text took them$"
    rm "$folder/z.gguf" "$folder/experts.gguf"
    run convert "$goldens/llama" -o "$folder/y.gguf" --imatrix "$folder/i.gguf"
    check "another model's is refused" [ $status = 1 ]
    check "by what differs" contains err "columns"
}

# q4_k of the demo model, by an imatrix of 30 kB of stories, predicts 12 kB of others as well as the file that
# llama.cpp's llama-quantize makes by the same imatrix (--pure --token-embedding-type q6_k): 21.1944, and 0.2 % more.
test_imatrix_is_good() {
    local perplexity
    head -c 30000 "$texts/stories.txt" >"$folder/known"
    head -c 12000 "$texts/stories-heldout.txt" >"$folder/others"
    run imatrix -m "$stories" -f "$folder/known" -o "$folder/i.gguf" --ctx 512
    run convert "$stories" -o "$folder/x.gguf" --type q4_k --imatrix "$folder/i.gguf"
    run perplexity -m "$folder/x.gguf" -f "$folder/others" --ctx 512
    perplexity=$(sed -n 's/^perplexity: \([0-9.]*\).*/\1/p' "$folder/out")
    check "by an imatrix as good as llama.cpp's ($perplexity)" \
        awk -v p="$perplexity" 'BEGIN { exit !(p > 20 && p < 21.1944 * 1.002) }'
}

test_fails() {
    local golden=$goldens/gemma1
    fails_with 2 "-o" convert "$golden"
    fails_with 2 "--type does not know q4_m" convert "$golden" -o "$folder/y.gguf" --type q4_m
    fails_with 1 "no/y.gguf" convert "$golden" -o "$folder/no/y.gguf"
    fails_with 1 "config.json" convert "$folder" -o "$folder/y.gguf"
    if on_full_disk convert "$golden" -o DISK/y.gguf; then
        check "convert onto a full disk fails" [ $status = 1 ]
        check "and says how much is needed" \
            matches err "^peridot: .*/y.gguf: needs 0\.[0-9]+ GB, but its disk has only 0\.[0-9]+ GB left$"
        check "and leaves nothing" [ ! -s "$folder/left" ]
    fi
    check "nothing stays" [ ! -e "$folder/y.gguf" ]
}

test_logits
test_rope_rules
[ -e "$stories" ] && test_stories && test_imatrix
if [ ! "${PERIDOT_TEST_ALL:-}" ]; then :
elif [ -e "$stories" ] && [ -e "$texts/stories.txt" ]; then test_imatrix_is_good
else echo "skipped: stories to measure an imatrix by"; fi
test_fails
finish
