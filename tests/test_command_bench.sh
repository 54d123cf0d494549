#!/usr/bin/env bash
# peridot bench: every format, saved reports beside each other, files that are no reports, and what is refused.
. "$(dirname "$0")/command.sh"

stories=$source/models/stories.gguf
saved=$goldens/report/schema-1.json
tiny=(-p 8 -n 4 -r 2)

# columns FILE: true when every line of a CSV has as many fields as the first; commas in quotes are none.
columns() {
    sed 's/"[^"]*"/x/g' "$folder/$1" | awk -F , 'NR == 1 { n = NF } NF != n { bad = 1 } END { exit bad || n < 30 }'
}
# count FILE EXPRESSION: how often it is there.
count() { grep -oE -e "$2" "$folder/$1" | wc -l; }
lines() { [ "$(wc -l <"$folder/out")" = "$1" ]; }
# cell N NAME: field NAME of line N of the CSV in `out`.
cell() {
    sed 's/"\([^",]*\)[^"]*"/\1/g' "$folder/out" | awk -F , -v n="$1" -v name="$2" \
        'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i } NR == n { print $c }'
}

speed='[0-9.]+ ± [0-9.]+'
of_bandwidth='[0-9.]+ GB/s, [0-9]+ % of bandwidth( \(roof in doubt\))?'

test_md() {
    run bench "${tiny[@]}" -m "$stories" --save "$folder/one.json" --note "a note | with a bar"
    check "bench succeeds" [ $status = 0 ]
    check "md has a table" matches out '^\|---\|'
    check "md has the prompt" matches out "^\\| .* \\| p8 \\| $speed \\| [0-9.]+ GFLOP/s, [0-9]+ % of fp32.* \\|$"
    check "md has the generation" matches out "^\\| .* \\| n4 \\| $speed \\| $of_bandwidth \\|$"
    check "md has kernels" matches out '^\| matvec\\_[a-z0-9\\_]+ \| [0-9]+ \| [0-9.]+ \| [0-9.]+ % \|$'
    check "the logits are right" contains out "The logits are finite, and the same in all repeats."
    check "md has the note" contains out 'a note \| with a bar'
    check "md has the generation of several" matches out "^\\| .* \\| n4 b8 \\| $speed \\| $of_bandwidth \\|$"
    check "md has the machine" matches out ' Machine: .*, Linux [^ ]+ '
    check "md has how far rates vary" matches out ' These rates vary by [0-9.]+ % at most\.'
    check "a line of progress for each test" [ "$(grep -cE '^(p8|n4|n4 b8): ' "$folder/err")" = 3 ]
    check "nothing for a terminal" [ "$(tr -cd '\033\r' <"$folder/err" | wc -c)" = 0 ]
    check "--save keeps the report" [ -s "$folder/one.json" ]
    check "md has the program, its commit, the date and the kernels" matches out \
        ' Measured by peridot [0-9.]+ \(([0-9a-f]+(-dirty)?|unknown)\), 20[0-9-]+T[0-9:]+Z; [a-z].*=.*\.$'
}

# What is measured can be read again, whatever the note holds and however long it is.
test_note() {
    run bench -m "$stories" -p 0 -n 1 -b 0 -r 1 --note "$(printf 'a\033[2J\xff%0600d' 0)" --save "$folder/note.json"
    check "a note of odd bytes" [ $status = 0 ]
    check "its bytes are shown" contains out 'a\\x1b\[2J\\xff0000'
    run bench "$folder/note.json"
    check "and it can be read" [ $status = 0 ]
}

test_csv() {
    run bench "${tiny[@]}" -m "$stories" -o csv -p 0 -n 4,5 -b 2,5 -d 0,16
    check "csv succeeds" [ $status = 0 ]
    check "csv has a line for each test" lines 13
    check "csv is regular" columns out
    check "csv: test" [ "$(cell 5 test)" = "n5 @ d16" ]
    check "csv: depth" [ "$(cell 5 depth)" = 16 ]
    check "csv: several sequences" [ "$(cell 13 test) $(cell 13 n_sequences)" = "n5 b5 @ d16 5" ]
    check "csv: one sequence" [ "$(cell 5 n_sequences)" = 1 ]
    check "csv: a speed" [ "$(cell 2 median | tr -d 0-9.)" = "" ]
}

test_json() {
    run bench "${tiny[@]}" -m "$stories" -o json --kv f32 --chunk 4 --kernel matmul=tile
    check "json succeeds" [ $status = 0 ]
    cp "$folder/out" "$folder/two.json"
    check "json has its schema" contains out '"schema": 2'
    check "json has the commit" matches out '"commit": "([0-9a-f]{7,}(-dirty)?|unknown)"'
    check "json has the device's identity" matches out '"uuid": "[0-9a-f]{8}-'
    check "json has the vendor" matches out '"vendor_id": [1-9]'
    check "json has the machine" matches out '"kernel": "Linux '
    check "json has the conditions before and after" [ "$(count out '"power_source": ')" = 2 ]
    check "json has how far rates vary" matches out '"fp32": 0?\.[0-9]'
    check "json has the session" contains out '"kv": "f32"'
    check "json has the kernels" matches out '"kernels": "matmul=tile'
    check "json has all repeats equal" [ "$(grep -c '"repeats_equal": true' "$folder/out")" = 3 ]
    check "json has the sequences" [ "$(grep -c '"n_sequences": 8' "$folder/out")" = 1 ]
    check "json has a rate" matches out '"read": [1-9]'
    check "json has fp16's rate, or none" matches out '"fp16": ([1-9]|null)'
    check "json has the matrices' rate, or none" matches out '"matrix": ([1-9]|null)'
    check "json has a prompt beside a text" [ "$(count out '"n_prompt": 8,')" = 1 ]
    check "json has the placement of weights" contains out '"decode_far_size": 0'
    check "a prompt is held against fp32" [ "$(grep -c '"arithmetic": "fp32"' "$folder/out")" = 3 ]
    run bench "$folder/one.json" "$folder/two.json"
    check "what is saved and what is printed can both be read" [ $status = 0 ]
    check "reports are named" matches out '^\| two \|'
    check "the first is once the first" matches out '^\| one .* 1\.00 \|$'
    run bench "$folder/one.json" "$folder/two.json" -o csv
    check "csv of two has both" lines 7
    check "csv of two is regular" columns out
    check "the file's name" [ "$(cell 5 report)" = two ]
    check "the same model" [ "$(cell 2 hash)" = "$(cell 5 hash)" ]
}

# The demo model tells its story with guesses that are accepted; both speeds are of the same text.
test_drafts() {
    run bench -m "$stories" -p 0 -n 48 -b 0 -r 1 --beside 0 --draft ngram --draft-tokens 4 --save "$folder/drafts.json"
    check "--draft succeeds" [ $status = 0 ]
    check "--draft says what came of it" [ "$(count err '^drafts, a (story|list): [0-9.]+ tokens/s, without')" = 2 ]
    check "--draft in md" matches out \
        'Drafts by ngram: a story at [0-9.]+ tokens/s, [0-9.]+ times as fast as without, with [0-9]+ of [0-9]+ guesses'
    check "--draft in json" python3 - "$folder/drafts.json" <<'PYTHON'
import json, sys
report = json.load(open(sys.argv[1]))
texts = [report["drafts_story"], report["drafts_list"]]
assert report["draft"] == "ngram"
for t in texts:
    assert 0 < t["n_tokens"] <= 48 and t["n_accepted"] <= t["n_drafted"] and t["plain"] > 0 < t["drafted"], t
assert 0 < sum(t["n_accepted"] for t in texts)
PYTHON
    run bench -o html "$folder/drafts.json"
    check "--draft in html" contains out 'times as fast as without, with'
    sed 's/\("n_drafted": \).*/\1-1,/' "$folder/drafts.json" >"$folder/x.json"
    fails_with 1 'drafts_story.n_drafted is not a whole number' bench "$folder/x.json"
    fails_with 2 '--quick measures a fixed set' bench --quick --draft ngram
}

# One sequence writes while another reads a prompt: in chunks of 4 tokens there is a gap for each.
test_beside() {
    run bench -m "$stories" -p 0 -n 2 -b 0 -r 1 --chunk 4 --beside 300 --save "$folder/beside.json" -o csv
    check "--beside succeeds" [ $status = 0 ]
    check "--beside: its prompt" [ "$(cell 2 beside_n_prompt)" = 300 ]
    check "--beside: a gap for each chunk" [ "$(cell 2 beside_n_gaps)" -ge 75 ]
    check "--beside: few are slow" [ "$(cell 2 beside_n_slow)" -lt 75 ]
    check "--beside: gaps last as long as the prompt" awk -v n="$(cell 2 beside_n_gaps)" \
        -v median="$(cell 2 beside_median_s)" -v p95="$(cell 2 beside_p95_s)" -v max="$(cell 2 beside_max_s)" \
        -v prompt="$(cell 2 beside_prompt_s)" 'BEGIN { exit !(0 < median && median <= p95 && p95 <= max &&
            median * n < 2 * prompt + max && max < prompt + 1) }'
    check "--beside says what it found" matches err '^beside p300: a token every [0-9]+ ms, the longest gap [0-9]+ ms$'
    run bench "$folder/beside.json"
    check "--beside in md" matches out \
        ' Beside a prompt: [0-9.]+ ms between two tokens in the median, .* gaps over 0\.3 s'
    run bench -o html "$folder/beside.json"
    check "--beside in html" contains out 'while 300 tokens were read in'
    run bench -o html "$folder/beside.json" "$saved"
    check "--beside in the page of many, where it was measured" [ "$(count out 'Beside a prompt: ')" = 1 ]
    sed 's/\("n_gaps": \).*/\1-1,/' "$folder/beside.json" >"$folder/x.json"
    fails_with 1 'beside_prompt.n_gaps is not a whole number' bench "$folder/x.json"
    run bench -m "$stories" -p 8 -n 2 -b 0 -r 1 --beside 0 -o json
    check "--beside 0 measures none" [ "$(count out beside_prompt)" = 0 ]
    fails_with 2 'takes a whole number' bench --beside 8,16
    fails_with 2 '--quick measures a fixed set' bench --quick --beside 8
}

# Reports of before, and what only some have: rates of fp16 and matrices, weights across the bus.
test_schema() {
    run bench "$folder/two.json" "$saved"
    check "a report of schema 1 beside one of today" [ $status = 0 ]
    check "and what bounds its prompts" matches out '^\| schema-1 .* p64 .* 8 % of fp32 \|'
    sed -E 's/"arithmetic": "fp32"/"arithmetic": "matrix"/; s/("fp16": ).*/\1null,/; s/("matrix": ).*/\11e12/
        s/("far_size": )0/\1500000/; s/("n_far_layers": )0/\12/; s/("decode_far_size": )0/\1400000/' \
        "$folder/two.json" >"$folder/x.json"
    run bench "$folder/x.json"
    check "rates, one of which is not there" contains out 'in fp32, - in fp16 and 1000 by matrices.'
    check "matrices bound a prompt" matches out '^\| .* p8 .* % of matrix \|$'
    check "weights across the bus" contains out "Of the weights, 2 of 6 layers are in the host's memory: a step reads \
5.73 MB on the GPU and 400 kB"
    check "nothing of a link that is not known" [ "$(count out 'PCIe|ReBAR')" = 0 ]
    sed -E '/"after"/,/}/ s/("link_gt_s": ).*/\18,/; s/("link_width": ).*/\18,/; s/("link_max_gt_s": ).*/\116,/
        s/("link_max_width": ).*/\116/; s/("type": )"CPU"/\1"discrete GPU"/; s/("window_size": ).*/\1268435456,/
        s/("meter": ).*/\1"hwmon",/; s/("power_w": ).*/\125.5,/; s/("j_per_token": ).*/\10.125,/' \
        "$folder/two.json" >"$folder/y.json"
    run bench "$folder/y.json"
    check "the link, and the host's view of the memory" contains out \
        'PCIe 8 GT/s x8 of 16 GT/s x16, no ReBAR (268 MB)'
    check "power and energy" contains out ' Power by hwmon: 25.5 W and 0.125 J per token in p8; 25.5 W'
    sed -i -E 's/("window_size": ).*/\11000000000000,/' "$folder/y.json"
    run bench -o html "$folder/y.json"
    check "all of the memory is seen" contains out ' of 16 GT/s x16, ReBAR<'
    run bench -o csv "$folder/x.json"
    check "no rate in csv" [ "$(cell 2 fp16)" = - ]
    check "weights across the bus in csv" [ "$(cell 2 decode_far_size)" = 400000 ]
    run bench -o html "$folder/x.json"
    check "a roof for each rate" [ "$(count out 'class="(roof|low)" d="M[0-9. ]*H')" = 2 ]
    check "no rate in html" contains out '<td>- GFLOP/s</td>'
    sed -i 's/"arithmetic": "matrix"/"arithmetic": "none"/' "$folder/x.json"
    fails_with 1 'tests[0].arithmetic is neither fp32 nor matrix' bench "$folder/x.json"
}

test_html() {
    run bench "$folder/one.json" -o html
    check "html succeeds" [ $status = 0 ]
    check "html is a page" matches out '^<!DOCTYPE html>$'
    check "html has three figures" [ "$(count out '<figure[ >]')" = 3 ]
    check "html ends its elements" [ "$(count out '</figure>')" = 3 ]
    check "html has no numbers that are none" [ "$(grep -ciE '[^a-z](nan|inf)[^a-z]' "$folder/out")" = 0 ]
    check "html needs nothing else" [ "$(grep -cE 'src=|href=|url\(|<script' "$folder/out")" = 0 ]
    run bench "$folder/one.json" "$folder/two.json" -o html
    check "html compares" contains out "2 reports compared"
    sed 's/"name": "Peridot Stories"/"name": "<script>x\&"/' "$folder/one.json" >"$folder/x.json"
    run bench "$folder/x.json" -o html
    check "html takes no markup from a report" contains out '&lt;script&gt;x&amp;'
    check "html has no script" [ "$(grep -c '<script' "$folder/out")" = 0 ]
}

test_shape() {
    mkdir "$folder/temporary"
    cp "$peridot" "$folder/alone"   # the demo model is not where this one looks for it
    TMPDIR=$folder/temporary peridot=$folder/alone run bench --shape tiny-llama --type q4_0 "${tiny[@]}" \
        --save "$folder/shape.json"
    check "--shape succeeds" [ $status = 0 ]
    check "--shape: the report is saved" [ -s "$folder/shape.json" ]
    check "random weights are labelled" contains out "tiny-llama random weights"
    check "nothing is left" [ -z "$(ls -A "$folder/temporary")" ]
    "$peridot" make --shape tiny-llama --type q4_0 -o "$folder/made.gguf"
    run bench -m "$folder/made.gguf" "${tiny[@]}" -b 0
    check "random weights are labelled in a file that make wrote" contains out "tiny-llama random weights"
    TMPDIR=$folder/temporary XDG_CACHE_HOME=$folder/tuned run bench --shape tiny-llama --type f16 -p 0 -n 2 -r 1 \
        --tune -o json
    check "--tune succeeds" [ $status = 0 ]
    check "--tune says what it found" [ "$(grep -cE '^matvec_[a-z0-9_]+, (plain|normed|gated): ' "$folder/err")" = 3 ]
    cat "$folder"/tuned/peridot/tune-*.txt >"$folder/tuned.txt"
    check "--tune remembers it" \
        [ "$(count tuned.txt '^matvec_[a-z0-9_]+ [0-9a-f]{16} (plain|normed|gated) [1248] [0-9]+ [0-9]+ [12]$')" = 3 ]
    check "the report says so" matches out '"tuning": "(as by default|matvec_)'
    TMPDIR=$folder/none fails_with 1 "$folder/none" bench --shape tiny-llama "${tiny[@]}"
    TMPDIR=$folder/temporary timeout --preserve-status -s INT 0.3 "$peridot" bench --shape gemma3-1b --type f16 \
        >"$folder/out" 2>"$folder/err"
    check "bench dies of the signal that stops it" [ $? = 130 ]
    check "and leaves nothing" [ -z "$(ls -A "$folder/temporary")" ]
}

# spoilt TEXT EXPRESSION: the saved report, changed by sed, is refused with TEXT.
spoilt() {
    sed -E "$2" "$saved" >"$folder/x.json"
    check "sed changes something: $2" [ "$(cmp "$folder/x.json" "$saved" >/dev/null; echo $?)" = 1 ]
    fails_with 1 "$1" bench "$folder/x.json"
}

test_spoilt() {
    local size
    run bench "$saved"
    check "the saved report of the project can be read" [ $status = 0 ]
    spoilt 'schema 4 is not supported, only those up to 3' 's/"schema": 1/"schema": 4/'
    spoilt 'reports is not an array' 's/"schema": 1/"schema": 3/'
    spoilt 'schema 0 is not supported' 's/"schema": 1/"schema": 0/'
    spoilt 'it has no "schema"' 's/"schema": 1/"scheme": 1/'
    spoilt 'it has no "schema"' 's/"schema": 1/"schema": -1/'
    spoilt 'device.heap_size is not a whole number' 's/("heap_size": ).*/\1"much",/'
    spoilt 'device.subgroup_size is out of range' 's/("subgroup_size": ).*/\199999999999,/'
    spoilt 'model.hash is not a string of 16 hexadecimal digits' 's/("hash": ).*/\1"xyz"/'
    spoilt 'model.family is too long' 's/("family": ).*/\1"a family with a name that nobody will ever need",/'
    spoilt 'date has a control character' 's/("date": ).*/\1"\\u001b[2J",/'
    spoilt 'date has a control character' 's/("date": ).*/\1"a\\u0000b",/'
    spoilt 'rates.read is missing' 's/"read":/"reed":/'
    spoilt 'rates.copy is out of range' 's/("copy": ).*/\1-1.5,/'
    spoilt 'rates.copy is out of range' 's/("copy": ).*/\11e300,/'
    spoilt 'no JSON' 's/("copy": ).*/\11e999,/'
    spoilt 'tests is not an array' 's/"tests": \[/"tests": 1, "x": [/'
    spoilt 'tests[0].name is not a string' '0,/"name": "p[0-9]*"/s//"name": 5/'
    spoilt 'tests[0].logits.finite is not true or false' '0,/"finite": true/s//"finite": 1/'
    spoilt 'tests[0].kernels[0].n is not a whole number' '0,/"n": [0-9]+/s//"n": 1.5/'
    for size in 0 1 50 1000 5000; do
        head -c $size "$saved" >"$folder/x.json"
        fails_with 1 x.json bench "$folder/x.json"
    done
    fails_with 1 none.json bench "$saved" "$folder/none.json"
    fails_with 1 "$folder" bench "$folder"
    head -c 200000 /dev/zero | tr '\0' '[' >"$folder/x.json"
    fails_with 1 x.json bench "$folder/x.json"
}

# Rates of 0 and tests without numbers are within the schema: no division by them shows.
test_zeros() {
    local format
    local numbers='copy|read|fp32|median|min|max|sd|bytes_per_s|flop_per_s|seconds'
    sed -E "s/(\"($numbers)\": )[0-9.e+-]+/\10/" "$saved" >"$folder/x.json"
    for format in md csv html; do
        run bench -o $format "$folder/x.json" "$saved"
        check "zeros as $format" [ $status = 0 ]
        check "zeros as $format: no nan" [ "$(grep -ciE '[^a-z](nan|inf)[^a-z]' "$folder/out")" = 0 ]
    done
    sed -E "s/(\"($numbers|first_token_s)\": )[0-9.e+-]+/\11e18/" "$saved" >"$folder/x.json"
    run bench -o html "$folder/x.json"
    check "the largest numbers" [ $status = 0 ]
    check "the largest numbers: no nan" [ "$(grep -ciE '[^a-z](nan|inf)[^a-z]' "$folder/out")" = 0 ]
    run bench -o html "$folder/x.json" "$saved"
    check "the largest numbers compared: no nan" [ "$(grep -ciE '[^a-z](nan|inf)[^a-z]' "$folder/out")" = 0 ]
}

# The program that only shows reports gives what the command gives, byte for byte, of a file, of a folder and of a pipe.
test_report() {
    local report=${peridot%/*}/peridot-report format
    [ -x "$report" ] || { echo "skipped: peridot-report is not there"; return; }
    for format in md csv html; do
        run bench -o $format "$folder/one.json" "$folder/two.json"
        "$report" -o $format "$folder/one.json" "$folder/two.json" >"$folder/x" 2>"$folder/err"
        check "peridot-report as $format" cmp "$folder/out" "$folder/x"
    done
    run bench --compare "$source/tests/reports" -o md
    "$report" "$source/tests/reports" >"$folder/x"
    check "peridot-report of a folder" cmp "$folder/out" "$folder/x"
    "$report" -o csv - <"$folder/one.json" >"$folder/out"
    check "peridot-report of a pipe" [ "$(cell 2 report) $(cell 2 test)" = "standard input p8" ]
    echo '{' | "$report" - >"$folder/out" 2>"$folder/err"
    check "peridot-report fails" [ $? = 1 ]
    check "peridot-report says why" contains err 'peridot-report: standard input: no JSON'
    "$report" -o pdf "$folder/one.json" >"$folder/out" 2>"$folder/err"
    check "peridot-report takes no other format" [ $? = 2 ]
}

# Fifty reports of made-up machines, two of them with hostile texts, and what is in tests/reports.
test_compare() {
    command -v python3 >/dev/null || { echo "skipped: python3 is not there"; return; }
    python3 "$source/tests/bench_reports.py" "$folder/one.json" "$folder/many" 50
    run bench --compare "$folder/many"
    check "--compare succeeds" [ $status = 0 ]
    check "--compare has all files" contains out "50 reports compared"
    check "--compare: a row for each" [ "$(count out 'data-l="report">[a-z0-9-]*</td><td data-l="device"')" = 50 ]
    check "--compare: a plot for each test, and the score" [ "$(count out '<h3>')" = 7 ]
    check "--compare: one script" [ "$(count out '<script')" = 1 ]
    check "--compare: no requests" [ "$(grep -cE 'src=[^x]|href=|url\(|@import' "$folder/out")" = 0 ]
    check "--compare: hostile texts are text" [ "$(count out '<img')" = 0 ]
    check "--compare: no numbers that are none" [ "$(grep -ciE '[^a-z](nan|inf)[^a-z]' "$folder/out")" = 0 ]
    python3 - "$folder/out" <<'END'
import base64, hashlib, re, sys
page = open(sys.argv[1]).read()
for tag in "script", "style":
    text = re.search(f"<{tag}>(.*?)</{tag}>", page, re.S).group(1)
    assert f"{tag}-src 'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" in page, tag
END
    check "--compare: the policy allows its script and style" [ $? = 0 ]
    run bench --compare "$folder/many" -o csv
    check "--compare as csv" columns out
    check "--compare as csv: a score" [ "$(cell 8 score | tr -d 0-9.)" = "" ]
    run bench --compare "$source/tests/reports"
    check "--compare with old reports" contains out "$(ls "$source/tests/reports/"*.json | wc -l) reports compared"
    check "old reports of random weights are marked" contains out "gemma2-2b random weights"
    set=$(ls "$folder"/many/apple-m2-max-*.json | head -1)
    run bench "$set" -o csv
    check "a set is read" lines 7
    sed 's/"matrix": null/"matrix": "x"/' "$set" >"$folder/x.json"
    fails_with 1 'reports[0].rates.matrix is not a number' bench "$folder/x.json"
    mkdir "$folder/empty"
    fails_with 1 'there are no reports' bench --compare "$folder/empty"
    echo '{' >"$folder/empty/x.json"
    fails_with 1 'empty/x.json: no JSON' bench --compare "$folder/empty"
    fails_with 1 'nowhere' bench --compare "$folder/nowhere"
}

# The score: 100 times the geometric mean of speeds by those of the reference. Here each is twice its reference.
test_score() {
    python3 - "$folder/one.json" "$folder/score.json" <<'END'
import copy, json, sys
base = json.load(open(sys.argv[1]))
reports = []
for name, types, speeds in ("gemma3-1b random", "q8_0", (1000, 80, 400)), ("gemma2-2b random", "q4_k", (400, 50, 200)):
    report = copy.deepcopy(base)
    report["model"].update(name=name, types=types)
    for test, speed, n in zip(report["tests"], speeds, (512, 128, 128)):
        test["tokens_per_s"]["median"], test["n_tokens"] = 2 * speed, n
        test["bandwidth_part"] = 1.06
    reports.append(report)
json.dump({"schema": 3, "reports": reports}, open(sys.argv[2], "w"))
END
    run bench "$folder/score.json" -o csv
    check "the score" [ "$(cell 2 score)" = 200 ]
    run bench "$folder/score.json" -o html
    check "the score and its parts" contains out '<small>(prompt 200.0, generation 200.0, 8 sequences 200.0)</small>'
    run bench "$folder/score.json"
    check "a roof below what was measured is in doubt" matches out '106 % of bandwidth \(roof in doubt\)'
    sed -i 's/"n_tokens": 512/"n_tokens": 64/' "$folder/score.json"
    run bench "$folder/score.json" -o html
    check "the score of shorter tests" contains out '8 sequences 200.0; shortened)'
    sed -i 's/"gemma2-2b random"/"another"/' "$folder/score.json"
    run bench "$folder/score.json" -o html
    check "the score of one model" contains out '; shortened; 3 of 6 parts)'
}

# About a minute, and little more on SwiftShader, which reads a token in ten seconds: that leaves tests out.
test_quick() {
    run bench --quick --save "$folder/quick.json"
    check "--quick succeeds" [ $status = 0 ]
    check "--quick: three lines" lines 3
    check "--quick: a score" matches out ': quick score [0-9.]+ \(prompt '
    check "--quick is saved" matches "quick.json" '"n_parts": [1-6]'
    matches quick.json '"n_parts": 6' || check "--quick says which tests it left out" contains out '; left out: '
}

# The standard set, made small: what is too large is not even made, a checksum that others can check, a text.
test_standard() {
    export PERIDOT_BENCH_STANDARD="tiny-llama q8_0,qwen3-32b f32"
    run bench --standard --save "$folder/standard.json"
    check "--standard succeeds" [ $status = 0 ]
    check "--standard says how long it takes, before anything else" matches err \
        '^the standard set: tiny-llama q8_0; about [0-9]+ s; '
    check "--standard leaves out what does not fit" matches err '^qwen3-32b f32: left out: does not fit \([0-9.]+ GB'
    check "--standard: lines to paste" matches out '^peridot .*: standard set on '
    check "--standard: its tests" matches out \
        'q8_0: p8 [0-9.]+, p16 [0-9.]+, n8 [0-9.]+, n8 @ d32 [0-9.]+, n8 b8 [0-9.]+ tokens/s; left out: qwen3-32b f32: '
    check "--standard: a text" [ "$(count standard.json '"tokens": \[')" = 1 ]
    run bench -o html "$folder/standard.json"
    check "the checksum is right" contains out 'the checksum is right'
    check "a standard set has no score" [ "$(count standard.json score)" = 0 ]
    sed -E 's/("n_reference": )0/\132/; s/("n_agree": )0/\123/' "$folder/standard.json" >"$folder/x.json"
    run bench "$folder/x.json"
    check "a text that is wrong" contains out ' Of its text, WRONG: only 23 of 32 tokens are the reference'
    check "a report that was changed" contains out '; THE REPORT WAS CHANGED: its checksum is another.'
    command -v python3 >/dev/null || return 0
    check "others find the same checksum" python3 "$source/tests/submitted_reports.py" "$folder/standard.json"
    check "and that one is another" [ "$(python3 "$source/tests/submitted_reports.py" "$folder/x.json" |
        grep -c 'x.json: its checksum is wrong')" = 1 ]
    check "reports that people sent in are right" python3 "$source/tests/submitted_reports.py" \
        "$source/tests/reports/submitted"
    # stopped when the first test is done: the rest is left out
    local pid
    PERIDOT_BENCH_STANDARD="tiny-llama q8_0,gemma3-1b f16" "$peridot" bench --standard --save "$folder/stopped.json" \
        >"$folder/out" 2>"$folder/err" &
    pid=$!
    for _ in $(seq 600); do
        grep -q '^p8: ' "$folder/err" && break
        sleep 0.1
    done
    kill -TERM $pid
    wait $pid
    check "--standard dies of the signal that stops it" [ $? = 143 ]
    check "and keeps what was measured" matches stopped.json '"name": "p8"'
    check "and says what was not" matches stopped.json '"left_out": ".*(stopped|cancelled)'
    run bench "$folder/stopped.json" -o html
    check "and its checksum is right" contains out 'the checksum is right'
    PERIDOT_BENCH_STANDARD="qwen3-32b f32" run bench --standard
    check "a set of which nothing fits fails" [ $status = 1 ]
    check "and says so" matches err '^peridot: does not fit'
    fails_with 1 'none/x.json' bench --standard --save "$folder/none/x.json"
    check "and that is known before anything else" [ "$(count err '^device: ')" = 0 ]
    unset PERIDOT_BENCH_STANDARD
}

# A board of thirty reports that are made, one of them hostile, one changed, and a file that is none.
test_site() {
    command -v python3 >/dev/null || { echo "skipped: python3 is not there"; return; }
    python3 "$source/tests/bench_reports.py" "$source/tests/reports/llvmpipe-gemma2-2b-q4_0.json" "$folder/thirty" 30 \
        standard
    run report --site "$folder/board" "$folder/thirty"
    check "report --site succeeds" [ $status = 0 ]
    check "it names files that are no reports" contains err 'no <b>report.json: no JSON'
    cp "$folder/board/index.html" "$folder/out"
    check "a row for each model" [ "$(count out '<tr data-f0=')" = "$(count out 'href="report-[0-9]+\.html"')" ]
    check "a page for each" [ "$(find "$folder/board" -name 'report-*.html' | wc -l)" = "$(count out '<tr data-f0=')" ]
    check "a report that was changed is marked" [ "$(count out 'CHECKSUM WRONG')" = 2 ]
    check "one without a checksum" [ "$(count out 'no checksum')" = 3 ]
    check "a text that is wrong is marked" [ "$(count out 'class="n bad" data-l="text"')" = 3 ]
    check "made reports say so" [ "$(count out '<small>made up</small>')" = "$(count out '<tr data-f0=')" ]
    check "predictions beside measurements" [ "$(count out '<small>predicted 449.4</small>')" = 3 ]
    check "none of another GPU with a longer name" [ "$(count out '<small>predicted ')" = 20 ]
    check "hostile texts are text" [ "$(cat "$folder"/board/*.html | grep -cE '<img|<script>alert|<b>report')" = 0 ]
    check "no numbers that are none" [ "$(grep -ciE '[^a-z](nan|inf)[^a-z]' "$folder/out")" = 0 ]
    check "no requests" [ "$(grep -cE 'src=[^x]|url\(|@import|href="[^r]' "$folder/out")" = 0 ]
    fails_with 1 'board/none/deep/index.html' report --site "$folder/board/none/deep" "$saved"
    fails_with 2 '--site FOLDER' report "$saved"
    fails_with 2 'are missing' report --site "$folder/board"
}

test_usage() {
    fails_with 2 'standard measures a fixed set' bench --standard -p 128
    fails_with 2 "don't go together" bench --standard --quick
    fails_with 2 '--quick measures a fixed set' bench --quick -p 128
    fails_with 2 '--quick measures a fixed set' bench --quick --shape gemma2-2b
    fails_with 2 "don't go with them" bench --quick "$saved"
    fails_with 2 'no other reports' bench --compare "$folder" "$saved"
    fails_with 2 'not as json' bench --compare "$folder" -o json
    fails_with 2 '-p/--prompts' bench -p 8,x
    fails_with 2 '-n/--lengths' bench -n 1,,2
    fails_with 2 '-d/--depths' bench -d -1
    fails_with 2 '-p/--prompts' bench -p 1,2,3,4,5,6,7,8,9
    fails_with 2 '-p/--prompts' bench -p 9999999
    fails_with 2 'nothing to measure' bench -p 0 -n 0
    fails_with 2 '-b/--batches' bench -b 2,9
    fails_with 2 '-b/--batches' bench -b 1
    fails_with 2 '-r/--repeats' bench -r 0
    fails_with 2 'did you mean html' bench -o htm
    fails_with 2 'did you mean gemma2-2b' bench --shape gemma2-2
    fails_with 2 '--type goes with --shape' bench --type q4_0
    fails_with 2 'q9' bench --shape tiny-llama --type q9
    fails_with 2 "don't go together" bench --shape tiny-llama -m x.gguf
    fails_with 2 'not as json' bench -o json "$saved"
    fails_with 2 "don't go with them" bench -m x.gguf "$saved"
    fails_with 2 "don't go with them" bench --tune "$saved"
    fails_with 1 'none.gguf' bench -m "$folder/none.gguf"
}

test_stop() {
    timeout --preserve-status -s INT 3 "$peridot" bench -m "$stories" -n 64 -r 100 >"$folder/out" 2>"$folder/err"
    check "bench dies of the signal that stops its tests" [ $? = 130 ]
    check "and shows nothing" [ ! -s "$folder/out" ]
    check "and says no more" [ "$(grep -c '^peridot: ' "$folder/err")" = 0 ]
}

test_limits() {
    fails_with 1 'p8 @ d9999 needs 10007 positions' bench -m "$stories" "${tiny[@]}" -d 9999
    fails_with 1 'n4 needs 5 positions, and the context has 4' bench -m "$stories" -p 0 -n 4 --ctx 4
    run bench -m "$stories" -p 0 -n 1 -r 1 --save "$folder/none/x.json"
    check "a report that cannot be saved is a failure" [ $status = 1 ]
    check "and is named" contains err none/x.json
    check "but it is shown" contains out '| n1 |'
}

test_usage
test_shape
test_spoilt
test_zeros
test_standard
test_site
[ ! "${PERIDOT_TEST_ALL:-}" ] || test_quick
if [ -e "$stories" ]; then
    test_md
    test_note
    test_csv
    test_json
    test_beside
    test_drafts
    test_schema
    test_html
    test_report
    test_compare
    test_score
    test_limits
    test_stop
else
    echo "skipped: the demo model is not there"
fi
finish
