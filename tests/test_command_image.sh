#!/usr/bin/env bash
# peridot logits, hidden and perplexity with pictures: the numbers of transformers, and what is refused.
. "$(dirname "$0")/command.sh"

golden=$goldens/gemma3-vision
prompt=(--tokens "@$golden/tokens-2.txt" --kv f32 --precision exact)
pictures=(--image "$golden/image-1.png" --image "$golden/image-2.png")

# near FILE FILE: floats, whose difference is within 2e-5 of the second's length.
near() {
    paste <(od -An -v -tf4 -w4 "$1") <(od -An -v -tf4 -w4 "$2") |
        awk '{ d += ($1 - $2) ^ 2; s += $2 ^ 2 } NF != 2 { bad = 1 } END { exit bad || !(sqrt(d) < 2e-5 * sqrt(s)) }'
}

test_numbers() {
    run logits -m "$golden" "${prompt[@]}" "${pictures[@]}" --out "$folder/rows"
    check "logits with pictures" [ $status = 0 ]
    check "logits are transformers'" near "$folder/rows" "$golden/logits-2.f32"
    run hidden -m "$golden/model.gguf" --vision "$golden/mmproj.gguf" "${prompt[@]}" "${pictures[@]}" \
        --out "$folder/rows"
    check "hidden states with a file of its own" [ $status = 0 ]
    check "hidden states are transformers'" near "$folder/rows" "$golden/hidden-2.f32"
    run logits -m "$golden" "${prompt[@]}" --image "$golden/image-2.png" --image - --out "$folder/rows" \
        <"$golden/image-1.png"
    check "pictures in another order, one from standard input" [ $status = 0 ]
    check "are other numbers" eval '! near "$folder/rows" "$golden/logits-2.f32"'
}

value() { sed -n "s/^$1: \([0-9.]*\).*/\1/p" "$folder/out"; }
# close A B: within 1e-4 of each other.
close() { awk -v a="$1" -v b="$2" 'BEGIN { d = a / b - 1; exit !(d * d < 1e-8) }'; }

# Contexts in which windows hold an image and a token, would part an image at either end, and hold all.
test_perplexity() {
    local model at ctx tokens perplexity error
    for model in gemma3-vision gemma4-vision gemma4-dense-vision gemma4-unified-vision; do
        at=$goldens/$model
        while read -r ctx tokens perplexity error; do
            run perplexity -m "$at" --precision exact --kv f32 --tokens "@$at/tokens-2.txt" --ctx "$ctx" \
                --image "$at/image-1.png" --image "$at/image-2.png"
            check "$model --ctx $ctx scores what is no image" [ "$(value tokens)" = "$tokens" ]
            check "$model --ctx $ctx: perplexity" close "$(value perplexity)" "$perplexity"
            check "$model --ctx $ctx: its error" close "$(sed -n 's/.* +- //p' "$folder/out")" "$error"
            check "$model --ctx $ctx: no bytes" [ "$(wc -l <"$folder/out")" = 2 ]
        done <"$at/perplexity-2.txt"
    done
    local text=$goldens/gemma2-base
    run perplexity -m "$text" -f "$text/text.txt" --ctx 64
    perplexity=$(tail -1 "$folder/out")
    "$peridot" tokenize -m "$text" --bos <"$text/text.txt" >"$folder/ids"
    run perplexity -m "$text" --tokens - --ctx 64 <"$folder/ids"
    check "a text's tokens from standard input: its perplexity" [ "$(tail -1 "$folder/out")" = "$perplexity" ]
    # images at both ends, and without bos: what precedes the first token is the image
    local rows
    rows=$(seq 16 | sed 's/.*/287/' | paste -sd,)
    run perplexity -m "$golden" --tokens "$rows,9,10,$rows" "${pictures[@]}"
    check "tokens between images" [ "$(value tokens)" = 2 ]
    fails_with 1 "the text has no tokens to score" perplexity -m "$golden" --tokens "2,$rows" "${pictures[@]:0:2}"
    fails_with 1 "a window of 17 positions has no room for the 16 rows of the image at position 7" \
        perplexity -m "$golden" "${prompt[@]}" "${pictures[@]}" --ctx 17
    fails_with 1 "32 image tokens (287), but 1 image of 16 rows" perplexity -m "$golden" "${prompt[@]}" \
        "${pictures[@]:0:2}"
    fails_with 1 "--tokens: 4000 is not a token of" perplexity -m "$text" --tokens 2,4000
    fails_with 1 "--tokens: x at byte 2 is not a token id" perplexity -m "$text" --tokens 2,x
    fails_with 2 "--image goes with --tokens" perplexity -m "$golden" -f "$golden/tokens.txt" "${pictures[@]}"
    fails_with 2 "one of --file and --tokens" perplexity -m "$golden" "${prompt[@]}" -f "$golden/tokens.txt"
    fails_with 2 "texts without images" perplexity -m "$golden" "${prompt[@]}" "${pictures[@]}" --method llama.cpp
}

test_crops() {
    local cropped=(logits -m "$golden" --tokens "@$golden/tokens-crops.txt" --kv f32 --precision exact \
        --image "$golden/crops.png" --image "$golden/image-1.png" --out "$folder/rows")
    run "${cropped[@]}" --pan-and-scan --first 174
    check "logits with pan and scan" [ $status = 0 ]
    check "are transformers'" near "$folder/rows" "$golden/logits-crops.f32"
    rm "$folder/rows"
    fails_with 1 "80 image tokens (287), but 2 images of 32 rows" "${cropped[@]}"
    fails_with 1 "--pan-and-scan: gemma4-vision is not a Gemma 3 model that sees images" logits \
        -m "$goldens/gemma4-vision" --tokens 2 --pan-and-scan --out "$folder/rows"
    check "no file is left" [ ! -e "$folder/rows" ]
}

test_refusals() {
    local out=(--out "$folder/rows")
    cp "$golden/model.gguf" "$folder/alone.gguf"
    head -c 2000 "$golden/image-1.png" >"$folder/cut.png"
    rm -f "$folder/rows"
    fails_with 1 "is in a file of its own (mmproj), and none was given" logits -m "$folder/alone.gguf" "${prompt[@]}" \
        "${pictures[@]}" "${out[@]}"
    fails_with 1 "32 image tokens (287), but 1 image of 16 rows" logits -m "$golden" "${prompt[@]}" \
        --image "$golden/image-1.png" "${out[@]}"
    fails_with 1 "cut.png" logits -m "$golden" "${prompt[@]}" --image "$folder/cut.png" "${out[@]}"
    fails_with 1 "tokens.txt" hidden -m "$golden" "${prompt[@]}" --image "$golden/tokens.txt" "${out[@]}"
    fails_with 1 "none.png" logits -m "$golden" "${prompt[@]}" --image "$folder/none.png" "${out[@]}"
    fails_with 1 "it is not the vision part of a model" logits -m "$golden/model.gguf" --vision "$golden/model.gguf" \
        "${prompt[@]}" "${pictures[@]}" "${out[@]}"
    check "no file is left" [ ! -e "$folder/rows" ]
}

test_numbers
test_perplexity
test_crops
test_refusals
finish
