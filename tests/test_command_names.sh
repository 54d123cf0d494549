#!/usr/bin/env bash
# Names and texts from files that would drive a terminal or forge a line, wherever a command shows them: escape
# sequences, line breaks, C1 controls, characters that change the direction of a text, bytes that are no UTF-8.
. "$(dirname "$0")/command.sh"

hostile=$'\x1b[31m\nFORGED: ok\r\xc2\x9b2J\xe2\x80\xae\xe2\x80\xa8\x7f'
json='\u001b[31m\nFORGED: ok\r\u009b2J\u202e\u2028\u007f'

# clean FILE: nothing in it but printable characters, tabs and line breaks; no line is forged.
clean() {
    local bad='[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]'
    ! LC_ALL=C grep -qP "$bad" "$folder/$1" &&
        ! grep -q '^FORGED' "$folder/$1" && iconv -f UTF-8 -t UTF-8 "$folder/$1" >/dev/null 2>&1
}

shown() { contains out "$1" || contains err "$1"; }

# shows STATUS TEXT ARGUMENTS...: that status; TEXT in the output, which is clean.
shows() {
    run "${@:3}"
    check "peridot ${*:3}: status $status, not $1" [ $status = "$1" ]
    check "peridot ${*:3}: shows '$2'" shown "$2"
    check "peridot ${*:3}: clean on stdout" clean out
    check "peridot ${*:3}: clean on stderr" clean err
    [ "$1" = 0 ] || check "peridot ${*:3}: one sentence" one_sentence
}

# with_config MODEL PERL: a copy of a golden model in the folder "model", its config.json changed; $ENV{JSON} in PERL is
# the hostile text.
with_config() {
    rm -rf "$folder/model"
    cp -r "$goldens/$1" "$folder/model"
    JSON=$json perl -0777 -pi -e "$2" "$folder/model/config.json"
}

test_config() {
    local rest
    for rest in '"model_type": "JSON"' '"rope_scaling": {"rope_type": "JSON", "factor": 2}' \
        '"hidden_activation": "JSON"' '"layer_types": ["JSON", "full_attention"]' '"JSON": 1' \
        '"quantization_config": {"quant_method": "JSON"}, "JSON": 2' \
        '"architectures": ["JSONForSequenceClassification"], "problem_type": "JSON"' \
        '"text_config": {"model_type": "JSON"}' \
        '"architectures": ["GemmaForSequenceClassification"], "id2label": {"JSON": "a"}'; do
        rm -rf "$folder/model"
        mkdir "$folder/model"
        cp "$goldens/gemma2-base/model.safetensors" "$folder/model"
        printf '{"hidden_size": 64, "num_hidden_layers": 2, "head_dim": 16, %s%s}' "${rest//JSON/$json}" \
            "$(case $rest in *model_type*) ;; *) echo ', "model_type": "gemma2"' ;; esac)" >"$folder/model/config.json"
        shows 1 'config.json' logits -m "$folder/model" --tokens 1 --out "$folder/x"
        shows 1 'config.json' convert "$folder/model" -o "$folder/x.gguf"
        run inspect "$folder/model"
        check "inspect of $rest: clean on stdout" clean out
        check "inspect of $rest: clean on stderr" clean err
    done
}

test_labels() {
    with_config gemma2-sequence 's/"label2id": \{[^}]*\},//s; s/: "(calm|glad|sad)"/: "A\\t\\\\B$ENV{JSON}"/g'
    run classify -m "$folder/model" x
    check "classify: clean on stderr" clean err
    check "classify: labels are escaped" matches out \
        '^A\\t\\\\B\\x1b\[31m\\nFORGED: ok\\r\\xc2\\x9b2J\\xe2\\x80\\xae\\xe2\\x80\\xa8\\x7f	[01]\.[0-9]{6}$'
    check "classify: clean on stdout" clean out
    run classify -m "$folder/model" --json --all x
    check "classify --json: labels are escaped" contains out \
        '"A\u0009\\B\u001b[31m\u000aFORGED: ok\u000d\u009b2J\u202e\u2028\u007f"'
    check "classify --json: clean" clean out
    with_config gemma2-token 's/"label2id": \{[^}]*\},//s; s/: "(O|[BI]-[A-Z]+)"/: "A\\t$ENV{JSON}"/g'
    run tag -m "$folder/model" "the cat"
    check "tag: labels are escaped" matches out '	A\\t\\x1b\[31m\\nFORGED: ok\\r.*\\x7f	[01]\.[0-9]{6}$'
    check "tag: clean on stdout" clean out
    run tag -m "$folder/model" --json "the cat"
    check "tag --json: clean" clean out
}

# patch FROM TO: a copy of the file in which one string is another one of as many bytes.
patch_bytes() { FROM=$1 TO=$2 perl -0777 -pe 's/\Q$ENV{FROM}\E/$ENV{TO}/g' "$folder/fine.gguf" >"$folder/bad.gguf"; }

test_gguf() {
    local bad=$folder/bad.gguf
    "$peridot" convert "$goldens/gemma2-base" -o "$folder/fine.gguf" --type f16 2>/dev/null
    patch_bytes gemma2-base $'\x1b[31m\nFORG\xff'
    shows 0 'general.name: \x1b[31m\nFORG\xff' inspect "$bad"
    run run -m "$bad" --raw -n 2 x
    check "run: clean on stderr" clean err
    shows 1 '\x1b[31m\nFORG\xff is a language model' classify -m "$bad" x
    shows 0 'tokens/s' bench -m "$bad" -p 8 -n 2 -r 1 -o md
    shows 0 '<html' bench -m "$bad" -p 8 -n 2 -r 1 -o html
    shows 0 '"\\x1b[31m\\nFORG\\xff"' bench -m "$bad" -p 8 -n 2 -r 1 -o json
    TO=$'\x1b[2J\nF' perl -0777 -pe 's/(general\.architecture.{12})gemma2/$1$ENV{TO}/s' "$folder/fine.gguf" >"$bad"
    shows 1 'general.architecture is "\x1b[2J\nF"' logits -m "$bad" --tokens 1 --out "$folder/x"
    shows 0 'general.architecture: \x1b[2J\nF' inspect "$bad"
    patch_bytes tokenizer.ggml.bos_token_id $'tokenizer.ggml.\x1b[2J\nFORGEDX'
    shows 1 'control characters' inspect "$bad"
    patch_bytes blk.0.attn_q.weight $'blk.0.\nFORGED\x1b[2Jxx'
    shows 1 'control characters' inspect "$bad"
    patch_bytes blk.0.attn_q.weight $'blk.0.\xe2\x80\xaeevil.weight'
    shows 1 'control characters' logits -m "$bad" --tokens 1 --out "$folder/x"
    TO=$'\x1b[2J\n' perl -0777 -pe 's/(tokenizer\.ggml\.model.{12})llama/$1$ENV{TO}/s' "$folder/fine.gguf" >"$bad"
    printf x | "$peridot" tokenize -m "$bad" >"$folder/out" 2>"$folder/err"
    check "tokenize: an unknown tokenizer is named" contains err '\x1b[2J\n'
    check "tokenize: clean on stderr" clean err
    run run -m "$bad" --raw x
    check "run: clean on stderr without a tokenizer" clean err
}

# Folders and files with such names.
test_paths() {
    local name=$folder/$'m\x1b[31m\nFORGED: ok\xff\xe2\x80\xae'
    cp -r "$goldens/gemma2-base" "$name"
    shows 0 'm\x1b[31m\nFORGED: ok\xff\xe2\x80\xae' inspect "$name"
    shows 1 'm\x1b[31m\nFORGED: ok\xff\xe2\x80\xae is a language model' classify -m "$name" x
    shows 0 'm\x1b[31m\nFORGED: ok\xff\xe2\x80\xae.gguf: ' convert "$name" -o "$name.gguf"
    shows 0 'm\x1b[31m\nFORGED: ok\xff\xe2\x80\xae.gguf' inspect "$name.gguf"
    shows 1 'none\x1b' inspect "$folder/none"$'\x1b'
    shows 1 'none\x1b' run -m "$folder/none"$'\x1b' x
    shows 1 'none\x1b' perplexity -m "$goldens/gemma2-base" -f "$folder/none"$'\x1b'
    shows 2 '\x1b[31m\n' bench --shape $'\x1b[31m\n'
    shows 2 '\x1b[31m\n' $'\x1b[31m\n'
    shows 2 '\x1b[31m\n' run --$'\x1b[31m\n'
    rm "$name/model.safetensors"
    shows 1 'm\x1b[31m\nFORGED' logits -m "$name" --tokens 1 --out "$folder/x"
    printf '{"weight_map": {"a%s": "b%s"}}' "$json" "$json" >"$name/model.safetensors.index.json"
    shows 1 'control characters' logits -m "$name" --tokens 1 --out "$folder/x"
    printf '{"model": {"type": "%s", "vocab": {}, "merges": []}}' "$json" >"$name/tokenizer.json"
    rm "$name/tokenizer.model"
    printf x | "$peridot" tokenize -m "$name" >"$folder/out" 2>"$folder/err"
    check "tokenize: fails" one_sentence
    check "tokenize: clean on stderr" clean err
    printf '{"model": {"type": "BPE", "vocab": {"%s": 0, "b": "%s"}, "merges": ["%s"]},
        "pre_tokenizer": {"type": "%s"}}' \
        "$json" "$json" "$json" "$json" >"$name/tokenizer.json"
    printf x | "$peridot" tokenize -m "$name" >"$folder/out" 2>"$folder/err"
    check "tokenize: fails on a mistyped vocabulary" one_sentence
    check "tokenize: clean on stderr" clean err
}

test_reports() {
    "$peridot" bench -m "$goldens/gemma2-q8_0/model.gguf" -p 8 -n 2 -r 1 -o json >"$folder/fine.json" 2>/dev/null
    JSON=$json perl -pe 's/"name": "llvmpipe/"name": "$ENV{JSON}/' "$folder/fine.json" >"$folder/bad.json"
    cmp -s "$folder/fine.json" "$folder/bad.json" || shows 1 'control character' bench "$folder/bad.json"
    cp "$folder/fine.json" "$folder/"$'r\x1b[31m\nFORGED.json'
    for form in md csv html json; do
        run bench "$folder/fine.json" "$folder/"$'r\x1b[31m\nFORGED.json' -o $form
        check "bench -o $form of a report with such a name: clean" clean out
        check "bench -o $form of a report with such a name: clean on stderr" clean err
    done
}

test_config
test_labels
test_gguf
test_paths
test_reports
finish
