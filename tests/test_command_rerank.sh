#!/usr/bin/env bash
# Rerankers: transformers' scores of a tiny Qwen3-Reranker, by its language head and by a head of its own, on the
# command line and from the server, and what is refused.
. "$(dirname "$0")/serve.sh"

model=$goldens/reranker-qwen3
query=$(cat "$model/query.txt")
instruct=$(cat "$model/instruct.txt")
n=$(wc -l <"$model/documents.txt")

# scores_are FILE: scores by index in "got" are those of the file, within 1e-5.
scores_are() {
    [ "$(wc -l <"$folder/got")" = "$(wc -l <"$1")" ] &&
        paste -d ' ' "$folder/got" "$1" | awk '{ if (($1 - $2) ^ 2 > 1e-10) exit 1 }'
}
lacks() { ! contains "$1" "$2"; }
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
    for from in "$model" "$made" "$model/rank.gguf"; do
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
        rerank -m "$goldens/embedding-gemma" --query x "$model/documents.txt"
    fails_with 1 'rerank needs a language model, and gemma2-sequence is a classifier' \
        rerank -m "$goldens/gemma2-sequence" --query x "$model/documents.txt"
    fails_with 1 'run needs a language model' run -m "$model/rank.gguf" x
    LC_ALL=C sed 's/output_labels\(.*\)yes/output_labels\1yea/' "$model/rank.gguf" >"$folder/other.gguf"
    fails_with 1 'is a classifier of texts (sequence classification): use peridot classify' \
        rerank -m "$folder/other.gguf" --query x "$model/documents.txt"
    LC_ALL=C sed 's/cls.output.weight/cls.output.weighs/' "$model/rank.gguf" >"$folder/other.gguf"
    fails_with 1 'qwen3.pooling_type is not 0, 1, 2 or 3' \
        rerank -m "$folder/other.gguf" --query x "$model/documents.txt"
    fails_with 1 'the model is no reranker: "no" is no token of its vocabulary' rerank --query x "$model/documents.txt"
    cp -r "$model" "$folder/copy"
    sed -i 's/<|im_start|>/<|im_begin|>/g' "$folder/copy/tokenizer.json"
    fails_with 1 "the model is no reranker: its vocabulary lacks ChatML's tokens" \
        rerank -m "$folder/copy" --query x "$model/documents.txt"
}

# refused TEXT BODY: an error as OpenAI's clients know it.
refused() {
    ask /v1/rerank "$2"
    check "$2: status $status, not 400" [ "$status" = 400 ]
    check "$2: an error object" matches out '^\{"error":\{"message":".*","type":"invalid_request_error",'
    check "$2: says '$1'" contains out "$1"
}

test_serve() {
    local documents hi='"query": "x", "documents": ["a"]'
    documents=$(sed 's/.*/"&"/' "$model/documents.txt" | paste -s -d ,)
    start --kv f32
    ask /v1/rerank "{\"query\": \"$query\", \"documents\": [$documents]}"
    check "an answer is 200" [ "$status" = 200 ]
    check "it is a list of the model's" matches out '^\{"model":"reranker-qwen3","object":"list","usage":\{'
    check "with the tokens that were read" \
        matches out '"usage":\{"prompt_tokens":[1-9][0-9]*,"total_tokens":[1-9][0-9]*\}'
    check "without documents" lacks out '"document"'
    json_by_index
    check "transformers' scores" scores_are "$folder/usual"
    check "the best is first" contains out '"results":[{"index":4,'
    get /metrics
    check "what prompts have in common is read once" \
        awk '/^peridot_cached_tokens_total/ { n = $2 } END { exit n < 500 }' "$folder/out"
    ask /rerank "{\"query\": \"$query\", \"instruct\": \"$instruct\", \"model\": null, \"documents\": [$documents]}"
    json_by_index
    check "an instruction" scores_are "$folder/own"
    documents=$(sed 's/.*/{"text": "&"}/' "$model/documents.txt" | paste -s -d ,)
    ask /v1/rerank "{\"query\": \"$query\", \"documents\": [$documents], \"top_n\": 2, \"return_documents\": true}"
    check "the best two, with their texts" matches out '"results":\[\{"index":4,"relevance_score":0\.6255[0-9]*,'\
'"document":\{"text":"the quick[^"]*"\}\},\{"index":2,"relevance_score":0\.2569[0-9]*,"document":\{"text":""\}\}\]\}$'
    ask /v1/rerank "{$hi, \"top_n\": 5}"
    check "top_n may be more than there are" matches out '"results":\[\{"index":0,"relevance_score":0\.[0-9]+\}\]'
    refused 'query' '{"documents": ["a"]}'
    refused 'query' '{"query": ["x"], "documents": ["a"]}'
    refused 'documents' '{"query": "x"}'
    refused 'documents' '{"query": "x", "documents": "a"}'
    refused 'documents' '{"query": "x", "documents": [3]}'
    refused 'documents' '{"query": "x", "documents": [{"title": "a"}]}'
    refused 'documents' '{"query": "x", "documents": ["a\u0000b"]}'
    refused 'documents must have at least one text' '{"query": "x", "documents": []}'
    refused 'top_n' "{$hi, \"top_n\": 0}"
    refused 'return_documents' "{$hi, \"return_documents\": 1}"
    refused 'context_length_exceeded' \
        "{\"query\": \"x\", \"documents\": [\"a\", \"$(printf 'the lion %.0s' $(seq 600))\"]}"
    stop
    model=$model/rank.gguf
    start --kv f32
    ask /v1/rerank "{\"query\": \"$query\", \"documents\": [$documents]}"
    json_by_index
    check "a head's scores are the same" scores_are "$folder/usual"
    ask /v1/completions '{"prompt": "a"}'
    check "a model with such a head writes no text" matches out 'scores labels: it cannot write text'
    check "which is 400" [ "$status" = 400 ]
    stop
    model=$source/models/stories.gguf
    start
    refused 'the model is no reranker' "{$hi}"
    stop
    model=$goldens/embedding-gemma
    start
    refused 'embedding model' "{$hi}"
    stop
}

test_scores
test_refusals
test_serve
finish
