#!/usr/bin/env bash
# The command line where no device is needed: help, wrong usage, exit statuses, tokenize, inspect, make.
. "$(dirname "$0")/command.sh"

model=$goldens/gemma2-q8_0/model.gguf

test_help() {
    local command section
    run --help
    check "--help succeeds" [ $status = 0 ]
    for command in $(sed -n '/^COMMANDS/,/^$/s/^    \([a-z]*\) .*/\1/p' "$folder/out"); do
        run "$command" --help
        check "$command --help succeeds" [ $status = 0 ]
        for section in NAME SYNOPSIS DESCRIPTION OPTIONS 'EXIT STATUS' EXAMPLES; do
            check "$command --help has $section" matches out "^$section\$"
        done
        sed '/^EXAMPLES/,$d' "$folder/out" >"$folder/narrow"
        check "$command --help fits 80 columns" [ "$(wc -L <"$folder/narrow")" -le 80 ]
        cp "$folder/out" "$folder/first"
        case $command in classify | tag | rerank) check "$command --help does not promise the demo model" \
            [ "$(tr -s ' \n' ' ' <"$folder/first" | grep -c 'Without it, the demo model')" = 0 ] ;; esac
        run help "$command"
        check "help $command is $command --help" cmp -s "$folder/out" "$folder/first"
        fails_with 2 --no-such-option "$command" --no-such-option
    done
    run run --help
    check "what few need is named, and not explained" \
        [ "$(grep -c -- --dry-base "$folder/out") $(grep -c 'What a repetition costs' "$folder/out")" = "1 0" ]
    run run --help all
    check "--help all explains it under a title" \
        [ "$(grep -c 'What a repetition costs\|^CHOICE OF TOKENS$\|MORE OPTIONS' "$folder/out")" = 2 ]
    cp "$folder/out" "$folder/first"
    run help run all
    check "help COMMAND all" cmp -s "$folder/out" "$folder/first"
    run --version
    check "--version" matches out '^peridot [0-9]+\.[0-9]+\.[0-9]+$'
}

test_usage() {
    fails_with 2 'did you mean peridot tokenize?' tokenise
    fails_with 2 'did you mean peridot run?' help runn
    fails_with 2 'did you mean --temp' run --tmp 1 x
    fails_with 2 --temp run --temp warm x
    fails_with 2 --temp run --temp -1 x
    fails_with 2 --temp run --temp nan x
    fails_with 2 --top-p run --top-p 1.5 x
    fails_with 2 --top-k run --top-k 4294967296 x
    fails_with 2 --length run -n
    fails_with 2 --length run -n 1x x
    fails_with 2 --raw run --raw=yes x
    fails_with 2 --kv run --kv f64 x
    fails_with 2 --seed run --seed -1 x
    fails_with 2 PROMPT run one two
    fails_with 2 --presence-penalty run --presence-penalty 101 x
    fails_with 2 --logit-bias run --logit-bias 5 x
    fails_with 2 --logit-bias run --logit-bias 5=x x
    fails_with 2 --logit-bias run --logit-bias -1=2 x
    fails_with 2 --logit-bias run --logit-bias 5=inf x
    fails_with 2 --stop run --stop '' x
    fails_with 2 '64 times' run $(printf -- '--stop=%s ' {1..65}) x
    fails_with 2 --out logits --tokens 1,2
    fails_with 2 --tokens logits --out "$folder/x"
    fails_with 2 --tokens logits --out "$folder/x" --tokens ''
    fails_with 2 'at byte 3' logits --out "$folder/x" --tokens '1, 2x'
    fails_with 2 --tokens logits --out "$folder/x" --tokens 2147483648
    fails_with 2 --first logits --out "$folder/x" --tokens 1,2 --first 2
    fails_with 2 --shape make -o "$folder/x"
    fails_with 2 --shape make --shape gemma9-1b -o "$folder/x"
    fails_with 2 extra devices extra
    check "wrong usage leaves no file" [ ! -e "$folder/x" ]
}

no_hint() { ! contains err 'did you mean' && ! contains err 'without one'; }

# What other programs call an option or a command, and what is nearly right.
test_hints() {
    local name
    for name in --prompt --promt -p; do fails_with 2 'PROMPT is given without one' run $name x; done
    for name in -c --ctx-size --num_ctx --cxt; do fails_with 2 'did you mean --ctx?' run $name 4096 x; done
    for name in --temperature --temprature -temp -temperature; do
        fails_with 2 'did you mean --temp?' run $name 0 x
    done
    fails_with 2 'there is no option --max-tokens (did you mean --length?)' run --max-tokens=9 x
    fails_with 2 'there is no option -ngl (did you mean --gpu-memory?)' run -ngl 99 x
    fails_with 2 'did you mean --parallel?' serve -np 4
    fails_with 2 'there is no option --parallel' run --parallel 4 x
    check "an option of another command is no hint" no_hint
    for name in --ssl-key-file --ssl-certfile=x --tls; do
        fails_with 2 "${name%%=*}: it has no TLS: put a proxy" serve $name
    done
    fails_with 2 'there is no option --tls' run --tls x
    check "run has nothing to do with TLS" eval '! contains err proxy'
    for name in --frobnicate -z -zebra; do
        fails_with 2 'there is no option -' run $name x
        check "nothing is near $name" no_hint
    done
    fails_with 2 'none.gguf is a model, not a PROMPT (did you mean peridot run -m none.gguf?); it is not on' \
        run none.gguf
    fails_with 2 "did you mean peridot run -m $model \"Why is the sky blue?\"?" run "$model" "Why is the sky blue?"
    fails_with 2 "did you mean peridot embed -m $goldens/gemma2-base?" \
        embed "$goldens/gemma2-base"
    fails_with 2 'one argument too many (did you mean peridot chat -m none.gguf?)' chat none.gguf
    fails_with 2 'did you mean peridot run -m gemma3:1b "Why is the sky blue?"?' run gemma3:1b "Why is the sky blue?"
    fails_with 2 'did you mean peridot chat -m google/gemma-3-1b-it?' chat google/gemma-3-1b-it
    fails_with 2 'quote it' run Why is
    fails_with 1 none.gguf run -m none.gguf other.gguf
    fails_with 2 'did you mean peridot run?' generate
    fails_with 2 'did you mean peridot serve?' server
    fails_with 2 'did you mean peridot run -m none.gguf?' none.gguf
    fails_with 2 'did you mean peridot run -m gemma3:1b?' gemma3:1b
    fails_with 2 'did you mean peridot models?' list
    fails_with 2 'did you mean peridot inspect?' show
    fails_with 2 'did you mean peridot --version?' version
    fails_with 2 'did you mean peridot --version?' -v
    fails_with 2 'did you mean peridot devices?' --list-devices
    fails_with 2 'did you mean peridot devices?' run --list-devices
    fails_with 2 'as in peridot run -m MODEL PROMPT' -m "$model" x
    fails_with 2 'there is no command rm: Peridot removes no models' rm gemma3
    fails_with 2 'there is no command ps: nothing of Peridot runs in the background' ps
    fails_with 2 'there is no command frobnicate' frobnicate
    check "nothing is near frobnicate" no_hint
}

# The name of a model by itself is no prompt, where no -m says which model it is for; -- and --raw make it one.
test_model_names() {
    local name
    for name in gemma3 gemma3:1b llama3.2 Llama-3.2-1B-Instruct google/gemma-3-1b-it qwen2.5:0.5b gemma llama; do
        fails_with 2 "$name is a model, not a PROMPT (did you mean peridot run -m $name?); it is not on" run "$name"
    done
    fails_with 2 'did you mean peridot run -m llama3.2 "why"?' run llama3.2 why
    mkdir -p "$folder/models"
    cp "$model" "$folder/models/gemma-3-1b-it-Q8_0.gguf"
    cp "$model" "$folder/models/tower.gguf"
    for name in gemma-3-1b-it gemma-3 tower gemma-3-1b-it:Q8_0; do
        PERIDOT_MODELS=$folder/models fails_with 2 "(did you mean peridot run -m $name?); -- $name takes" run "$name"
    done
    PERIDOT_MODELS=$goldens fails_with 2 'did you mean peridot run -m gemma2-q8_0/model?' \
        run gemma2-q8_0/model
    for name in tow "gemma3 is new" Gemma Llama falcon phi and/or gemstone gemma_; do
        PERIDOT_MODELS=$folder/models run run --device none "$name"
        check "$name may be a prompt" contains err 'no device matches "none"'
    done
    for name in "-- gemma3" "--raw gemma3" "-m $model gemma3"; do
        run run --device none $name
        check "$name is a prompt" contains err 'no device matches "none"'
    done
}

# peridot by itself is wrong usage, and lists what there is.
test_no_command() {
    run
    check "no command: status 2" [ $status = 2 ]
    check "no command: nothing on stdout" [ ! -s "$folder/out" ]
    check "no command: a sentence" matches err '^peridot: no command is given; see peridot --help$'
    cp "$folder/err" "$folder/list"
    run --help
    check "no command: all commands" cmp -s <(sed '1d; /^$/,$d' "$folder/list") \
        <(sed -n '/^COMMANDS/,/^$/p' "$folder/out" | grep '^    ')
    check "no command: and one to begin with" contains list 'peridot chat begins at once'
}

test_inspect_json() {
    local family n sizes
    command -v python3 >/dev/null || { echo "skipped: there is no python3 to read JSON with"; return; }
    run inspect --json "$model"
    check "inspect --json succeeds" [ $status = 0 ]
    family=$(python3 -c 'import json, sys; o = json.load(sys.stdin); t = o["tensors"]
print(o["model"]["family"], o["model"]["head"], o["metadata"]["general.architecture"], o["path"],
      sum(x["size"] for x in t) == o["size"] == sum(x["size"] for x in o["types"].values()),
      len(t) == sum(x["n_tensors"] for x in o["types"].values()), all(d["need"] == o["size"] + o["cache_size"]
      for d in o["devices"]), [s["tokens"] for s in o["sessions"]] == [min(8192, o["model"]["ctx_max"])],
      all(s["need"] == o["size"] + s["cache_size"] and 0 < s["cache_size"] for s in o["sessions"]),
      o["sessions"][0]["cache_size"] == o["cache_size"])' \
    <"$folder/out" 2>"$folder/err")
    check "inspect --json is whole" [ "$family" = "gemma2 language gemma2 $model True True True True True True" ]
    n=$("$peridot" inspect "$model" | sed -n 's/^tensors (\(.*\))$/\1/p')
    check "inspect --json has all tensors" [ "$n" = "$(grep -c '^  {"name": .*"shape": \[' "$folder/out")" ]
    run inspect --kv q8_0 "$model"
    check "inspect --kv q8_0 counts its blocks" matches out '^  cache: 576 bytes per token in q8_0, at most '
    run inspect --kv q8_0/q4_1 "$model"
    check "and keys and values of two types" matches out '^  cache: 448 bytes per token in q8_0/q4_1, at most '
    run inspect "$goldens/dense/qwen3-moe"
    check "inspect tells what a token takes of experts" matches out \
        '^  weights: 162 kB, 0.08096 million parameters, of which a token takes 0.0464 million$'
    run make --shape tiny-qwen3.5 --type q4_0 -o "$folder/hybrid.gguf"
    run inspect --json "$folder/hybrid.gguf"
    sizes=$(python3 -c '
import json, sys
j = json.load(sys.stdin)
print(*((s["tokens"], (s["cache_size"] - j["states_size"]) / s["tokens"]) for s in j["sessions"]))
' < "$folder/out")
    check "inspect says that states take the same at any length" \
        [ "$sizes" = "(8192, 512.0) (32768, 512.0) (131072, 512.0) (262144, 512.0)" ]
    run inspect "$folder/hybrid.gguf"
    check "inspect tells states from what a token takes" matches out \
        '^  cache: 512 bytes per token in f16, 4\.94 MB of states, at most 9\.13 MB '
}

# Sizes are the library's own, whatever the tensors are called, and are of models that run.
test_inspect_sizes() {
    local cache
    run inspect "$goldens/dense/phi3"
    cache=$(sed -nE 's/^  cache: [0-9.]+ [a-zA-Z]+ per token in f16, at most ([0-9.]+ [kM]B) for .*/\1/p' "$folder/out")
    check "inspect counts the cache of fused q, k and v" [ -n "$cache" ]
    check "and sessions say the same" matches out "^ +[0-9]+ tokens .* of which $cache of cache"
    LC_ALL=C sed 's/gemma2/germa2/g' "$model" >"$folder/germa.gguf"
    run inspect "$folder/germa.gguf"
    check "inspect of another family succeeds" [ $status = 0 ]
    check "inspect says why it is not run" matches out '^devices \(not supported: .*germa\.gguf: .*"germa2", which is'
    check "and nothing of a cache, of sessions or that it fits" matches_not out ' fits|^  cache:|^sessions'
    run inspect --json "$folder/germa.gguf"
    check "inspect --json, too" matches_not out '"fits": true'
}

test_files() {
    local size
    fails_with 1 "$folder/none.gguf" inspect "$folder/none.gguf"
    fails_with 1 "$folder/none.gguf" tokenize -m "$folder/none.gguf" </dev/null
    run inspect "$model"
    check "inspect succeeds" [ $status = 0 ]
    check "inspect shows metadata" matches out '^  general.architecture: gemma2$'
    check "inspect shows tensors" matches out '^  blk\.0\.attn_k\.weight +q8_0 +[0-9]+ x [0-9]+ '
    check "inspect shows totals" matches out '^  weights: .* parameters$'
    size=$(stat -c %s "$model")
    head -c $((size / 2)) "$model" >"$folder/half.gguf"
    fails_with 1 half.gguf inspect "$folder/half.gguf"
    if [ -c /dev/full ]; then
        "$peridot" --help >/dev/full 2>"$folder/err"
        check "a full disk behind stdout is a failure" [ $? = 1 ]
        check "and is told" one_sentence
    fi
}

encode() { "$peridot" tokenize -m "$model" "$@" 2>"$folder/err"; }

test_tokenize() {
    local text=$'Once upon a time, there was\n  a  little\tfox — ✓.\n' ids
    ids=$(printf '%s' "$text" | encode)
    check "a text may be an argument" [ "$(encode "$text")" = "$ids" ]
    check "and so may ids" [ "$(encode --decode "$ids"; echo x)" = "$text"x ]
    check "- is standard input" [ "$(printf '%s' "$text" | encode -)" = "$ids" ]
    fails_with 2 '--lines goes with standard input' tokenize --lines x
    check "ids are decimal with commas" grep -qxE '[0-9]+(,[0-9]+)+' <<<"$ids"
    printf '%s' "$text" >"$folder/text"
    echo "$ids" | encode --decode >"$folder/out"
    check "text comes back to the byte" cmp -s "$folder/out" "$folder/text"
    echo "$ids" | tr ',' '\n' | encode --decode >"$folder/out"
    check "ids one per line are ids too" cmp -s "$folder/out" "$folder/text"
    check "--bos adds one id in front" [ "$(printf '%s' "$text" | encode --bos | sed 's/^[0-9]*,//')" = "$ids" ]
    encode --lines <"$folder/text" >"$folder/out"
    check "--lines: a line for each line" [ "$(wc -l <"$folder/out")" = 2 ]
    encode --lines --decode <"$folder/out" | cmp -s - "$folder/text"
    check "--lines comes back" [ $? = 0 ]
    printf '\n\r\nx' | encode --lines >"$folder/out"
    check "--lines: empty lines, and a last one without a newline" [ "$(wc -l <"$folder/out")" = 3 ]
    check "nothing in, an empty line out" [ "$(encode </dev/null | od -An -c | tr -d ' ')" = '\n' ]
    fails_with 1 'at byte 2' tokenize -m "$model" --decode <<<'1,x'
    fails_with 1 999999999 tokenize -m "$model" --decode <<<'1,999999999'
}

is_empty() { [ -z "$(ls -A "$1")" ]; }

test_make() {
    mkdir "$folder/made"
    if on_full_disk make --shape gemma3-270m --type q4_0 -o DISK/m.gguf; then
        check "make on a full disk fails" [ $status = 1 ]
        check "and is told" one_sentence
        check "and leaves nothing" [ ! -s "$folder/left" ]
    fi
    timeout --preserve-status -s TERM 0.3 "$peridot" make --shape gemma3-1b --type f16 -o "$folder/made/m.gguf" \
        >"$folder/out" 2>"$folder/err"
    check "make dies of the signal that stops it" [ $? = 143 ]
    check "and leaves nothing" is_empty "$folder/made"
    fails_with 1 none/m.gguf make --shape gemma3-270m -o "$folder/none/m.gguf"
}

test_help
test_usage
test_hints
test_model_names
test_no_command
test_inspect_json
test_inspect_sizes
test_files
test_tokenize
test_make
finish
