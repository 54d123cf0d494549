#!/usr/bin/env bash
# peridot logits and hidden with pictures: the numbers of transformers, and what is refused.
. "$(dirname "$0")/command.sh"

golden=$source/tests/golden/gemma3-vision
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

test_refusals() {
    local out=(--out "$folder/rows")
    cp "$golden/model.gguf" "$folder/alone.gguf"
    head -c 2000 "$golden/image-1.png" >"$folder/cut.png"
    rm -f "$folder/rows"
    fails_with 1 "its vision tower is a file of its own" logits -m "$folder/alone.gguf" "${prompt[@]}" \
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
test_refusals
finish
