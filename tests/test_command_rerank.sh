#!/usr/bin/env bash
# Rerankers: transformers' scores of a tiny Qwen3-Reranker on the command line and from the server, and what is refused.
. "$(dirname "$0")/command.sh"

model=$source/tests/golden/reranker-qwen3
query=$(cat "$model/query.txt")
instruct=$(cat "$model/instruct.txt")
n=$(wc -l <"$model/documents.txt")

# scores_are FILE: scores by index in "got" are those of the file, within 1e-5.
scores_are() {
    [ "$(wc -l <"$folder/got")" = "$(wc -l <"$1")" ] &&
        paste -d ' ' "$folder/got" "$1" | awk '{ if (($1 - $2) ^ 2 > 1e-10) exit 1 }'
}
best_first() { awk -F '\t' 'NR > 1 && $1 > before { exit 1 } { before = $1 }' "$folder/out"; }
# Of the columns that it writes: scores by index.
by_index() { sort -t $'\t' -k 2n "$folder/out" | cut -f 1 >"$folder/got"; }
# Of JSON, the command's or the server's.
json_by_index() {
    grep -oE '"index": ?[0-9]+, ?"relevance_score": ?[0-9.e-]+' "$folder/out" | tr -d '"a-z_: ' | tr , ' ' |
        sort -n | cut -d ' ' -f 2 >"$folder/got"
}

test_scores() {
    local made=$folder/made.gguf from
    head -n "$n" "$model/scores.txt" >"$folder/usual"
    tail -n "$n" "$model/scores.txt" >"$folder/own"
    run convert "$model" -o "$made" --type bf16
    check "convert succeeds" [ $status = 0 ]
    for from in "$model" "$made"; do
        run rerank -m "$from" --kv f32 --query "$query" "$model/documents.txt"
        check "${from##*/}: rerank succeeds" [ $status = 0 ]
        check "${from##*/}: the best is first" best_first
        cut -f 3 "$folder/out" | sort >"$folder/texts"
        check "${from##*/}: the documents" cmp "$folder/texts" <(sort "$model/documents.txt")
        by_index
        check "${from##*/}: transformers' scores" scores_are "$folder/usual"
        "$peridot" rerank -m "$from" --kv f32 --query "$query" --instruct "$instruct" --json \
            <"$model/documents.txt" >"$folder/out" 2>"$folder/err"
        json_by_index
        check "${from##*/}: and with an instruction" scores_are "$folder/own"
    done
    # more than there are sequences, with a last line that does not end
    for from in 1 2 3 4 5 6; do cat "$model/documents.txt"; cat "$folder/usual" >&3; done 3>"$folder/want" |
        head -c -1 >"$folder/many"
    run rerank -m "$model" --kv f32 --query "$query" "$folder/many"
    by_index
    check "many documents" scores_are "$folder/want"
    run rerank -m "$model" --kv f32 --query "$query" --top 2 "$model/documents.txt"
    check "--top: the best two" [ "$(cut -f 2 "$folder/out" | tr '\n' ' ')" = "4 2 " ]
}

test_refusals() {
    fails_with 2 '--query' rerank -m "$model" "$model/documents.txt"
    fails_with 1 'there are no documents' rerank -m "$model" --query x /dev/null
    fails_with 1 'document 1 has a NUL in it' rerank -m "$model" --query x <(printf 'a\nb\0c\n')
    fails_with 1 'none' rerank -m "$model" --query x "$folder/none"
    fails_with 1 'the prompt of document 0 has' rerank -m "$model" --query x --ctx 40 "$model/documents.txt"
    fails_with 1 'rerank needs a language model' \
        rerank -m "$source/tests/golden/embedding-gemma" --query x "$model/documents.txt"
    fails_with 1 'the model is no reranker: "no" is no token of its vocabulary' rerank --query x "$model/documents.txt"
    cp -r "$model" "$folder/copy"
    sed -i 's/<|im_start|>/<|im_begin|>/g' "$folder/copy/tokenizer.json"
    fails_with 1 "the model is no reranker: its vocabulary lacks ChatML's tokens" \
        rerank -m "$folder/copy" --query x "$model/documents.txt"
}

test_scores
test_refusals
finish
