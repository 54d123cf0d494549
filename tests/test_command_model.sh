#!/usr/bin/env bash
# The command line with a model on a device: devices, logits, hidden, run.
. "$(dirname "$0")/command.sh"

golden=$goldens/gemma2-q8_0/model.gguf
stories=$source/models/stories.gguf

test_devices() {
    run devices
    check "devices succeeds" [ $status = 0 ]
    check "devices names the first" matches out '^0  .'
    run devices --json
    check "devices --json succeeds" [ $status = 0 ]
    check "devices --json is an array" matches out '^\['
    check "devices --json has sizes" matches out '^    "heap_size": [0-9]+,$'
    fails_with 1 'no-such-device' logits -m "$golden" --device no-such-device --tokens 1 --out "$folder/x"
}

# Every variant that the device has gives the same text; what there is not, or the device has not, is refused.
test_kernels() {
    local prompt variant variants
    prompt=$(seq -s ' ' 60)
    run devices
    check "devices lists kernels and the one taken" matches out '^   kernels   matmul: .*\(taken\)'
    variants=$(sed -n 's/^   kernels   matmul: \([^;]*\).*/\1/p' "$folder/out" | head -1 | sed 's/ (taken)//; s/,//g')
    run run --temp 0 -n 8 "$prompt"
    cp "$folder/out" "$folder/story"
    for variant in $variants; do
        run run --temp 0 -n 8 --kernel matmul=$variant "$prompt"
        check "matmul=$variant succeeds" [ $status = 0 ]
        check "matmul=$variant has the same text" cmp -s "$folder/out" "$folder/story"
    done
    fails_with 1 'no kernel variant matmul=no-such' run --kernel matmul=no-such x
    fails_with 1 'no kernel variant no-such=tile' run --kernel matmul=tile --kernel no-such=tile x
    [ "${variants#*coop}" != "$variants" ] || fails_with 1 'cannot do matmul=coop: it lacks ' run --kernel matmul=coop x
}

# What rounds is refused; where exact takes the same kernels as default, as a CPU does, the numbers are the same bits.
test_precision() {
    local default exact variant
    run logits --tokens "$(seq -s, 1 60)" --out "$folder/default"
    default=$(sed -n 's/^precision: default, with //p' "$folder/err")
    check "logits says with which precision and kernels" matches err '^precision: default, with matmul='
    run logits --tokens "$(seq -s, 1 60)" --out "$folder/exact" --precision exact
    exact=$(sed -n 's/^precision: exact, with //p' "$folder/err")
    check "--precision exact says so" [ -n "$exact" ]
    [ "$exact" != "$default" ] ||
        check "the same kernels give the same bits" cmp -s "$folder/default" "$folder/exact"
    run hidden --tokens 1,2 --out "$folder/exact" --precision exact --kernel matmul=tile
    check "exact may be forced to what is exact" matches err '^precision: exact, with matmul=tile, '
    echo "The little fox was hungry." >"$folder/text"
    run perplexity -f "$folder/text" --precision exact
    check "perplexity says with which precision" matches err '^precision: exact, with '
    run embed --precision exact "The fox"
    check "embed takes --precision" [ $status = 0 ]
    run devices
    variant=$(sed -n 's/^   kernels   matmul: .*\(coop\|dot\).*; matvec.*/\1/p' "$folder/out" | head -1)
    [ -z "$variant" ] ||
        fails_with 1 "matmul=$variant contradicts precision exact" run --precision exact --kernel matmul=$variant x
    fails_with 2 '--precision does not know double' run --precision double x
}

# Where host and device share their memory there is nothing to place; elsewhere the text stays the same.
test_placement() {
    local size
    run_story
    cp "$folder/out" "$folder/story"
    run_story --gpu-memory 2.5M
    check "--gpu-memory succeeds" [ $status = 0 ]
    check "--gpu-memory says what it did" \
        matches err "shares the host's memory: --gpu-memory has no meaning|^weights: 2[.0-9]* MB on the GPU, "
    check "--gpu-memory leaves the text as it is" cmp -s "$folder/out" "$folder/story"
    for size in 6X G 0 -1 6GG; do
        fails_with 2 "--gpu-memory takes a size such as 6G, not $size" run --gpu-memory=$size x
    done
}

# Prints a side of a matrix of the golden model: 1 for rows, 2 for columns.
side() {
    "$peridot" inspect "$golden" | sed -n "s/^  token_embd.weight  *[a-z0-9_]* *\([0-9]*\) x \([0-9]*\) .*/\\$1/p"
}

test_rows() {
    local rows columns f=$folder/x
    rows=$(side 1)
    columns=$(side 2)
    run logits -m "$golden" --tokens 2,5,7,11 --out "$f"
    check "logits succeeds" [ $status = 0 ]
    check "logits is silent on stdout" [ ! -s "$folder/out" ]
    check "logits says which device and why" matches err '^device: .+: .+$'
    check "logits has a row for each token" size_is "$f" $((4 * rows * 4))
    run logits -m "$golden" --tokens '2 5, 7
11' --out - --first 3
    check "--first and --out -" [ $status = 0 ]
    tail -c $((rows * 4)) "$f" >"$folder/last"
    check "--first 3 is the last row" cmp -s "$folder/out" "$folder/last"
    echo 2,5,7,11 >"$folder/ids"
    run logits -m "$golden" --tokens "@$folder/ids" --out - --chunk 1 --kv f32
    check "--chunk 1 --kv f32 has the same rows" size_is "$folder/out" $((4 * rows * 4))
    run hidden -m "$golden" --tokens - --out "$f" <"$folder/ids"
    check "hidden has d_model columns" size_is "$f" $((4 * columns * 4))
    check "no temporary file stays" [ "$(ls "$folder" | grep -c '^x')" = 1 ]
}

test_rows_fail() {
    rm -f "$folder/x"
    run logits -m "$golden" --tokens 2,999999999 --out "$folder/x"
    check "an id out of range fails" [ $status = 1 ]
    check "and is named" contains err 999999999
    if on_full_disk logits -m "$golden" --tokens "$(seq -s, 1 60)" --out DISK/x; then
        check "logits on a full disk fails" [ $status = 1 ]
        check "and is told" matches err '^peridot: .*/x: '
        check "and leaves nothing" [ ! -s "$folder/left" ]
    fi
    [ -c /dev/full ] || return
    "$peridot" logits -m "$golden" --tokens 1,2 --out - >/dev/full 2>"$folder/err"
    check "logits into a full pipe fails" [ $? = 1 ]
}

run_story() { run run --temp 0 -n 24 "$@" "Once upon a time"; }

test_run() {
    local text ids
    run_story
    check "run succeeds" [ $status = 0 ]
    check "run writes something" [ -s "$folder/out" ]
    check "and ends the line" [ "$(tail -c 1 "$folder/out" | od -An -c | tr -d ' ')" = '\n' ]
    check "run ends with statistics" \
        matches err '^prompt: [0-9]+ tokens, .*reply: 24 tokens, .* tokens/s, .* GB/s; first token after .* s$'
    cp "$folder/out" "$folder/text"
    run_story --chunk 1
    check "greedy is repeatable, in decode steps too" cmp -s "$folder/out" "$folder/text"
    run_story --ids
    ids=$(cat "$folder/out")
    check "--ids are 24 ids" [ "$(tr -cd , <<<"$ids" | wc -c)" = 23 ]
    "$peridot" tokenize --decode <<<"$ids" >"$folder/out" 2>"$folder/err"
    check "--ids say the same text" cmp -s <(cat "$folder/out"; echo) "$folder/text"
    ids=$(printf '\n' | "$peridot" tokenize | sed 's/.*,//')
    run_story -n 2 --logit-bias "$ids=1000"
    check "a text that ends in a newline gets no second one" [ "$(od -An -c "$folder/out" | tr -d ' ')" = '\n\n' ]
    run run --temp 0 -n 1 ""
    check "one is no plural" matches err '^prompt: 1 token, .*; reply: 1 token;'
    echo "Once upon a time" | "$peridot" run --temp 0 -n 24 >"$folder/out" 2>"$folder/err"
    check "a prompt from standard input" cmp -s "$folder/out" "$folder/text"
    check "pipelines are kept" [ -n "$(ls "$folder/cache/peridot")" ]
}

test_run_seed() {
    run run --seed 7 -n 16 "The fox"
    cp "$folder/out" "$folder/text"
    run run --seed 7 -n 16 "The fox"
    check "the same seed writes the same text" cmp -s "$folder/out" "$folder/text"
    check "statistics show the seed" matches err 'seed 7$'
}

# With drafts of either kind the text is the same; a model of another vocabulary cannot make them.
test_run_draft() {
    local temp draft
    for temp in 0 0.9; do
        run run --temp $temp --seed 7 -n 60 "The fox and the fox and"
        cp "$folder/out" "$folder/text"
        for draft in ngram "$stories"; do
            run run --temp $temp --seed 7 -n 60 --draft "$draft" --draft-tokens 3 "The fox and the fox and"
            check "--draft $draft writes the same text at temperature $temp" cmp -s "$folder/out" "$folder/text"
            check "--draft $draft says what was accepted" \
                matches err '; [0-9]+ of [1-9][0-9]* drafted tokens accepted( .[0-9.-]+ times as fast.)?; '
        done
    done
    fails_with 1 " cannot draft for gemma2-q8_0: their vocabularies differ (token 4)" \
        run -m "$golden" --draft "$stories" x
    fails_with 1 "none.gguf" run --draft "$folder/none.gguf" x
    fails_with 2 "--draft-tokens" run --draft ngram --draft-tokens 32 x
}

# A model whose files have a block that drafts tokens does so unasked, also once converted; --draft none does not.
test_run_block() {
    command -v python3 >/dev/null || return 0
    local model=$folder/block file=$folder/block.gguf
    mkdir -p "$model"
    cp "$goldens"/dense/qwen35-mtp/{config.json,model.safetensors} "$model"
    python3 - >"$model/tokenizer.json" <<'END'
import json
plain = [*range(33, 127), *range(161, 173), *range(174, 256)]   # what letters stand for themselves in byte-level BPE
letters = [chr(b) for b in plain] + [chr(256 + i) for i in range(256 - len(plain))]
level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
print(json.dumps({"version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": level, "decoder": level,
                  "post_processor": None, "model": {"type": "BPE", "vocab": {c: i for i, c in enumerate(letters)},
                                                    "merges": []}}))
END
    run convert "$model" -o "$file" --type f32
    check "a model with a block is converted" [ $status = 0 ]
    check "block and all" [ "$(grep -c 'left out' "$folder/err")" = 0 ]
    run inspect "$file"
    check "inspect says that it drafts" contains out 'block that drafts tokens (MTP)'
    run run -m "$model" --raw --ids -n 50 --temp 0 --draft none --ctx 128 "The fox"
    check "--draft none drafts nothing" [ "$(grep -c 'drafted' "$folder/err")" = 0 ]
    cp "$folder/out" "$folder/text"
    for model in "$model" "$file"; do
        run run -m "$model" --raw --ids -n 50 --temp 0 --ctx 128 "The fox"
        check "a model's own block drafts unasked" matches err ' of [1-9][0-9]* drafted tokens accepted'
        check "and writes the same text" cmp "$folder/out" "$folder/text"
    done
}

# Stop texts, biases and what --verbose tells of them, on a story that is the same every time.
test_run_sampling() {
    local text first ids half
    run_story --verbose
    text=$(cat "$folder/out")
    check "--verbose: greedy" matches err '^sampling: the likeliest$'
    first=$(head -1 <<<"$text" | cut -d' ' -f4)
    run_story --stop "$first"
    check "a stop text is not written, nor what follows" [ "$(cat "$folder/out")." = "${text%%"$first"*}." ]
    check "and ends the reply" grep -qE 'reply: ([0-9]|1[0-9]) tokens' "$folder/err"
    half=${text:15:9}   # begins and ends within tokens
    run_story --stop nowhere --stop "$half" --verbose
    check "a stop text of several tokens" [ "$(cat "$folder/out")." = "${text%%"$half"*}." ]
    check "--verbose: stop texts" contains err "stop texts: \"nowhere\", \"$half\""
    run_story --stop nowhere
    check "a stop text that does not come changes nothing" [ "$(cat "$folder/out")" = "$text" ]
    run_story --ids
    ids=$(cut -d, -f1 "$folder/out")
    run_story --ids --logit-bias "$ids=-inf"
    check "a banned token does not come" [ "$(tr , '\n' <"$folder/out" | grep -cx "$ids")" = 0 ]
    run run --temp 1 -n 8 --ids --logit-bias 99=1000 "Once"
    check "a favoured token always comes" [ "$(cat "$folder/out")" = 99,99,99,99,99,99,99,99 ]
    run run --temp 1 --top-k 0 --seed 3 -n 40 --ids --logit-bias 99=1000 --frequency-penalty 100 "Once"
    check "until it is frequent" [ "$(tr , '\n' <"$folder/out" | grep -cx 99)" -le 11 ]
    run run -n 1 --seed 5 --verbose --repeat-penalty 1.1 --presence-penalty 0.5 --frequency-penalty -0.25 \
        --logit-bias 7=-2 "Once"
    check "--verbose: the chain in its order" \
        matches err '^sampling: logit bias 7=-2, repeat penalty 1\.1, presence penalty 0\.5, '\
'frequency penalty -0\.25, top-k 40, temperature 0\.8, top-p 0\.95, min-p 0\.05, draw with seed 5$'
    run run -n 1 --seed 5 --verbose --dry-multiplier 0.5 --dry-penalty-last-n -1 --top-n-sigma 1 \
        --xtc-probability 0.3 --dry-sequence-breaker none "Once"
    check "--verbose: DRY, top-n-sigma and XTC" matches err '^sampling: DRY 0\.5 x 1\.75 from 2 tokens, '\
'top-n-sigma 1, top-k 40, temperature 0\.8, top-p 0\.95, min-p 0\.05, XTC 0\.3 from 0\.1, draw with seed 5$'
    run run --temp 0 -n 48 --ids "Once upon a time"
    ids=$(cat "$folder/out")
    run run --temp 0 -n 48 --ids --dry-multiplier 90 --dry-allowed-length 1 "Once upon a time"
    check "DRY changes what repeats itself" [ "$(cat "$folder/out")" != "$ids" ]
    run run --temp 2 --top-k 0 --top-p 1 --min-p 0 --top-n-sigma 0.001 --seed 9 -n 8 --ids "Once upon a time"
    check "top-n-sigma leaves the likeliest" [ "$(cat "$folder/out")" = "$(cut -d, -f1-8 <<<"$ids")" ]
}

test_run_template() {
    run run --temp 0 -n 2 "Once"
    check "without a template run says so" matches err ' has no chat template: it continues the prompt$'
    check "and what the demo model is for, and which one chats on a CPU" matches err \
        '^the demo model only tells stories \(peridot pull ggml-org/gemma-3-1b-it-GGUF:Q4_K_M fetches one that chats\): '
    cp "$folder/out" "$folder/plain"
    run run --temp 0 -n 2 --raw "Once"
    check "--raw asks for that, and hears nothing" [ "$(grep -c 'chat template' "$folder/err")" = 0 ]
    check "and gets the same text" cmp -s "$folder/out" "$folder/plain"
    run run --temp 0 -n 2 --template plain "Once"
    check "--template plain: status 0" [ $status = 0 ]
    fails_with 1 "llama3" run --template llama3 "Once"
    fails_with 2 "--template" run --template nonsense "Once"
}

# A model whose files have a chat template: what is used in its place is said, unless --template chooses it.
test_foreign_template() {
    local model=$folder/templated port warned
    mkdir -p "$model"
    cp "$goldens"/gemma2/{config.json,model.safetensors} "$model"
    cp "$goldens/gemma2-base/tokenizer.model" "$model"
    echo '{"chat_template": "{{ \u0027[INST] <<SYS>>\u0027 }}"}' >"$model/tokenizer_config.json"
    run run -m "$model" -n 1 hi
    check "run names the file and the template" contains err \
        "its chat template cannot be run (it does not read messages): \"llama2\" is used in its place (--template"
    "$peridot" chat -m "$model" -n 1 <<<hi >"$folder/out" 2>"$folder/err"
    check "and so does chat" contains err '"llama2" is used in its place'
    run run -m "$model" -n 1 --template llama2 hi
    check "not where --template chose it" [ "$(grep -c template "$folder/err")" = 0 ]
    "$peridot" serve -m "$model" --port 0 >"$folder/out" 2>"$folder/err" &
    await_text "$folder/err" 'serving '
    check "and so does serve" contains err '"llama2" is used in its place'
    port=$(sed -nE 's|^serving .* at http://[^ ]*:([0-9]+): .*|\1|p' "$folder/err")
    if command -v curl >/dev/null; then
        warned='Warning: 299 - "the chat template of templated cannot be run (it does not read messages): llama2 is'
        curl -s -m 100 -D "$folder/headers" "http://127.0.0.1:$port/v1/chat/completions" --data \
            '{"messages": [{"role": "user", "content": "a"}], "max_tokens": 1}' >"$folder/out"
        check "which tells its clients" contains headers "$warned used in its place\""
        curl -s -m 100 -D "$folder/headers" "http://127.0.0.1:$port/v1/completions" --data \
            '{"prompt": "a", "max_tokens": 1}' >"$folder/out"
        check "where it is used" [ "$(grep -c ^Warning "$folder/headers")" = 0 ]
    fi
    kill $! && wait $!
    echo '{"chat_template": "<|im_start|>"}' >"$model/tokenizer_config.json"
    run run -m "$model" -n 1 hi
    check "a template of no family is not called none" contains err "messages): it continues the prompt (--template"
    check "without another word of it" [ "$(grep -c template "$folder/err")" = 1 ]
    fails_with 1 "lacks control tokens" serve -m "$model" --port 0 --template llama3
}

# recommended SEED ARGUMENTS...: what the model writes with that seed.
recommended() { run run -m "$model" -n 8 --raw --seed "$1" "${@:2}" abc; }

# What the publisher says are the defaults of all that writes, and what is said here wins.
test_recommended() {
    local model=$folder/recommended gguf=$folder/recommended.gguf text port api said
    said='sampling: top-k 1, temperature 50, as the model'"'"'s publisher recommends'
    mkdir -p "$model"
    cp "$goldens"/gemma2/{config.json,model.safetensors} "$model"
    cp "$goldens/gemma2-base/tokenizer.model" "$model"
    echo '{"temperature": 50, "top_k": 1, "min_p": "0.5"}' >"$model/generation_config.json"
    recommended 1
    text=$(cat "$folder/out")
    check "run says what is recommended, once" [ "$(grep -cxF "$said" "$folder/err")" = 1 ]
    check "and what of it is ignored" contains err \
        'sampling: generation_config.json: min_p is not a number from 0 to 1, and is ignored'
    recommended 2 --temp 50
    check "with a top-k of 1 seeds don't matter" [ "$(cat "$folder/out")" = "$text" ]
    check "what was given is not recommended" contains err "sampling: top-k 1, as the model's publisher recommends"
    recommended 2 --top-k 40
    check "--top-k wins" [ "$(cat "$folder/out")" != "$text" ]
    "$peridot" chat -m "$model" -n 1 <<<hi >"$folder/out" 2>"$folder/err"
    check "chat says so" [ "$(grep -cxF "$said" "$folder/err")" = 1 ]
    run inspect "$model"
    check "inspect shows it" contains out '  top-k 1, temperature 50'
    run inspect --json "$model"
    check "as JSON" contains out '"sampling": {"top_k": 1, "temperature": 50, "ignored": "generation_config.json: min_p '
    run convert "$model" -o "$gguf"
    model=$gguf recommended 3
    check "convert keeps it" [ "$(cat "$folder/out")" = "$text" ]
    check "and no more than that" [ "$(grep -c '^sampling: ' "$folder/err")" = 1 ]
    command -v curl >/dev/null || return
    "$peridot" serve -m "$gguf" --port 0 >"$folder/out" 2>"$folder/log" &
    await_text "$folder/log" 'serving '
    check "serve says it once" [ "$(grep -cxF "$said" "$folder/log")" = 1 ]
    port=$(sed -nE 's|^serving .* at http://[^ ]*:([0-9]+): .*|\1|p' "$folder/log")
    for api in 'v1/completions {"prompt": "abc"' 'v1/responses {"input": "abc"' \
        'v1/messages {"messages": [{"role": "user", "content": "abc"}]' \
        'v1/chat/completions {"messages": [{"role": "user", "content": "abc"}]' \
        'api/generate {"model": "recommended", "stream": false, "raw": true, "prompt": "abc"'; do
        check "${api%% *} does as recommended" [ "$(texts "$api" "")" = 1 ]
        check "${api%% *}: a request wins" [ "$(texts "$api" '"top_k": 200')" -gt 1 ]
    done
    kill $! && wait $!
    rm "$folder/log"   # of the first one, in which there is a port, too
    "$peridot" serve -m "$gguf" --port 0 --top-k 200 >"$folder/out" 2>"$folder/log" &
    await_text "$folder/log" 'serving '
    port=$(sed -nE 's|^serving .* at http://[^ ]*:([0-9]+): .*|\1|p' "$folder/log")
    check "serve --top-k wins" [ "$(texts 'v1/completions {"prompt": "abc"' "")" -gt 1 ]
    kill $! && wait $!
}

# texts API MORE: of three seeds, how many different texts an interface gives.
texts() {
    local seed=1 n=max_tokens body
    case $1 in v1/responses*) n=max_output_tokens ;; esac
    for seed in 1 2 3; do
        body="${1#* }, \"$n\": 6, \"seed\": $seed${2:+, $2}}"
        case $1 in api/*) body="${1#* }, \"options\": {\"num_predict\": 6, \"seed\": $seed${2:+, $2}}}" ;; esac
        curl -s -m 100 "http://127.0.0.1:$port/${1%% *}" --data "$body" |
            grep -oE '"(text|content|response)":"([^"\\]|\\.)*"' | head -1
    done | sort -u | wc -l
}

test_run_stops() {
    fails_with 1 "context 8 positions" run --ctx 8 "$(seq -s' ' 1 50)"
    "$peridot" run --temp 0 -n 500 "Once upon a time" 2>"$folder/err" | head -c 1 >"$folder/out"
    check "run dies of SIGPIPE when nobody reads" [ "${PIPESTATUS[0]}" = 141 ]
    check "and says nothing of it" [ "$(grep -c '^peridot: ' "$folder/err")" = 0 ]
    rm "$folder/out"
    "$peridot" run --temp 0 -n 4000 "Once upon a time" >"$folder/out" 2>"$folder/err" &
    while [ ! -s "$folder/out" ] && kill -0 $! 2>/dev/null; do sleep 0.02; done
    kill -TERM $!
    wait $!
    check "run dies of the signal that stops it" [ $? = 143 ]
    check "and keeps what it wrote" [ -s "$folder/out" ]
    check "and still tells the speed" matches err '^prompt: '
}

# The demo model knows no JSON: what it writes is held to it, and ends by itself.
test_run_schema() {
    local schema=$folder/schema.json text
    echo '{"type": "object", "properties": {"age": {"type": "integer", "minimum": 10, "maximum": 99},
        "kind": {"enum": ["cat", "dog"]}}, "required": ["age", "kind"], "additionalProperties": false}' >"$schema"
    for text in 0 1 5; do
        run run --temp $text --seed 3 --json-schema "$schema" "A pet."
        check "--json-schema succeeds at temperature $text" [ $status = 0 ]
        check "--json-schema holds at temperature $text" [ "$(tr -d ' \n' <"$folder/out" |
            grep -cE '^\{"age":[1-9][0-9],"kind":"(cat|dog)"\}$')" = 1 ]
    done
    fails_with 1 "$folder/none.json: " run --json-schema "$folder/none.json" x
    echo '{"type": "array", "contains": {"type": "null"}}' >"$schema"
    fails_with 1 "$schema: keyword contains at # is not supported" run --json-schema "$schema" x
    check "and nothing is written" [ ! -s "$folder/out" ]
    echo '{' >"$schema"
    fails_with 1 "$schema: not JSON" run --json-schema "$schema" x
    echo '{"type": "boolean"}' >"$schema"
    printf '%s\n' x y >"$folder/lines"
    "$peridot" chat --json-schema "$schema" --temp 5 <"$folder/lines" >"$folder/out" 2>"$folder/err"
    check "chat --json-schema holds in each reply" [ "$(grep -cxE ' ?(true|false) ?' "$folder/out")" = 2 ]
}

# A prompt that takes long shows on a terminal how far it is.
test_reading() {
    local line='reading the prompt: [0-9]+ of [0-9]+ tokens, [0-9.]+ tokens/s' prompt taken
    prompt=$(printf 'the fox %.0s' {1..200})
    has_terminal "how far a prompt is" || return
    LP_NUM_THREADS=1 script -qec "'$peridot' run --raw -m '$stories' -n 1 --chunk 1 '$prompt'" /dev/null \
        </dev/null >"$folder/out" 2>"$folder/err"
    taken=$(sed -nE 's/.*prompt: ([0-9]+) tokens, ([0-9.]+) tokens\/s;.*/\1 \2/p' "$folder/out" |
        awk '{ print $1 / $2 }')
    check "run tells how long a prompt took" [ "$taken" ]
    if awk "BEGIN { exit !($taken > 0.9) }"; then check "run shows how far a prompt is" matches out "$line"; fi
    if awk "BEGIN { exit !($taken < 0.4) }"; then
        check "run shows nothing of a short one" [ "$(grep -cE "$line" "$folder/out")" = 0 ]
    fi
    run run --raw -m "$stories" -n 1 --chunk 1 "$prompt"
    check "run shows nothing where there is no terminal" [ "$(grep -cE "$line" "$folder/err")" = 0 ]
}

test_devices
test_rows
test_rows_fail
if [ -e "$stories" ]; then
    test_run
    test_run_seed
    test_run_draft
test_run_block
    test_run_sampling
    test_run_template
    test_foreign_template
    test_recommended
    test_run_stops
    test_run_schema
    test_kernels
    test_precision
    test_placement
    test_reading
else
    echo "skipped: models/stories.gguf is not there"
fi
finish
