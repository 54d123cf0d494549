#!/usr/bin/env bash
# peridot pull from tests/hub.py, which answers as huggingface.co does: the cache's layout, what is fetched of a model,
# what a cut or wrong answer leaves, tokens, and names that would lead out of the cache. With PERIDOT_TEST_ALL,
# huggingface_hub reads the cache and fetches from the same server: that of PERIDOT_PYTHON, a Python that has it, or of
# PyPI.
. "$(dirname "$0")/command.sh"

command -v python3 >/dev/null || { echo "skipped: python3 is not there"; exit 0; }
if [ "${PERIDOT_TEST_ALL:-}" ] && [ ! "${PERIDOT_PYTHON:-}" ] && packages huggingface_hub==2.4.0; then
    PERIDOT_PYTHON=$folder/venv/bin/python
fi
repos=$folder/repos
log=$folder/log
cache=$folder/home/.cache/huggingface/hub
odd=$'a\xc2\x9b31m\xe2\x80\xae-Q8_$(touch pwned).gguf'   # U+009B, U+202E
unset HF_TOKEN HUGGING_FACE_HUB_TOKEN HF_TOKEN_PATH HF_HUB_OFFLINE
unset HF_HOME HF_HUB_CACHE HUGGINGFACE_HUB_CACHE XDG_CACHE_HOME
unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY PERIDOT_MODELS OLLAMA_MODELS LLAMA_CACHE
export HOME=$folder/home no_proxy=127.0.0.1

make_repos() {
    local name
    mkdir -p "$repos/test"/{directory/original,quants/split} "$folder/home"
    cp "$goldens"/gemma2-bf16-shards/{config.json,model*} "$repos/test/directory"
    echo '{}' >"$repos/test/directory/generation_config.json"
    for name in README.md pytorch_model.bin original/consolidated.00.pth consolidated.safetensors "a b+c%.json"; do
        head -c 2000 /dev/urandom >"$repos/test/directory/$name"
    done
    cp "$goldens/gemma2-q8_0/model.gguf" "$repos/test/quants/tiny-Q4_K_M.gguf"
    cp "$goldens/gemma1/model.gguf" "$repos/test/quants/tiny-Q8_0.gguf"
    for name in tiny-Q4_K_S mmproj-Q8_0 split/tiny-F16-00001-of-00002 split/tiny-F16-00002-of-00002; do
        head -c 3000 /dev/urandom >"$repos/test/quants/$name.gguf"
    done
    mkdir "$repos/test/seeing"
    cp "$goldens/gemma3-vision/model.gguf" "$repos/test/seeing/tiny-it-Q4_K_M.gguf"
    cp "$goldens/gemma3-vision/mmproj.gguf" "$repos/test/seeing/mmproj-tiny-it-F16.gguf"
    for name in mmproj-tiny-it-BF16 mmproj-tiny-it-Q8_0 mmproj-other-F16; do
        cp "$goldens/gemma3-vision/mmproj-q8_0.gguf" "$repos/test/seeing/$name.gguf"
    done
    mkdir "$repos/test/dynamic"
    for name in tiny-UD-Q4_K_XL tiny-Q4_K_XL tiny-i1-Q6_K tiny-Q4_K_M; do
        cp "$goldens/gemma1/model.gguf" "$repos/test/dynamic/$name.gguf"
    done
    for name in gated private cut wrong long slow still unranged forbidden hostile nonsense busy huge vast fewer endless \
        astray adrift circular odd; do
        mkdir "$repos/test/$name"
        cp "$goldens/gemma2-q8_0/model.gguf" "$repos/test/$name/tiny-Q8_0.gguf"
    done
    mv "$repos/test/vast/tiny-Q8_0.gguf" "$repos/test/vast/tiny-Q8_0-00001-of-00002.gguf"
    cp "$repos/test/vast/tiny-Q8_0-00001-of-00002.gguf" "$repos/test/vast/tiny-Q8_0-00002-of-00002.gguf"
    mv "$repos/test/odd/tiny-Q8_0.gguf" "$repos/test/odd/$odd"
}

start_hub() {
    local certificate=
    mkfifo "$folder/to_hub"
    : >"$log"
    if command -v openssl >/dev/null; then
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=hub \
            -addext subjectAltName=IP:127.0.0.1 -keyout "$folder/key" -out "$folder/certificate" 2>"$folder/hub_err"
        certificate=$folder/hub.pem
        cat "$folder/key" "$folder/certificate" >"$certificate"
    fi
    python3 "$source/tests/hub.py" "$repos" "$log" ${certificate:+"$certificate"} <"$folder/to_hub" \
        >"$folder/ports" 2>"$folder/hub_err" &
    exec 8>"$folder/to_hub"
    await_text "$folder/ports" ''
    read -r hub store secure <"$folder/ports"
    export HF_ENDPOINT=http://127.0.0.1:$hub
}

# pulls ARGUMENTS...: succeeds.
pulls() {
    : >"$log"
    run pull "$@"
    check "pull $*: status $status, not 0" [ $status = 0 ]
}

# refuses TEXT ARGUMENTS...: fails with a sentence that holds TEXT, as its last line.
refuses() {
    : >"$log"
    run pull "${@:2}"
    check "pull ${*:2}: status $status, not 1" [ $status = 1 ]
    check "pull ${*:2}: says '$1'" grep -qF -e "$1" <(tail -1 "$folder/err" | grep '^peridot: ')
    check "pull ${*:2}: silent on stdout" [ ! -s "$folder/out" ]
}

here() { [ -f "$cache/models--test--$1/snapshots/$ones/$2" ]; }
same() { cmp -s "$repos/test/$1/$2" "$cache/models--test--$1/snapshots/$ones/$2"; }
asked() { grep -qE -e "$1" "$log"; }
n_files() { [ "$(find "$cache/models--test--$1" -type f -o -type l | wc -l)" = "$2" ]; }
ones=$(printf '1%.0s' {1..40})

test_directory() {
    local folder_1=$cache/models--test--directory name
    pulls test/directory
    for name in config.json generation_config.json model-0000{1,2,3}-of-00003.safetensors "a b+c%.json"; do
        check "$name is the same" same directory "$name"
    done
    check "and nothing of other programs" n_files directory 15
    check "refs/main is the commit, without a line break" cmp -s "$folder_1/refs/main" <(printf %s "$ones")
    check "links are relative" [ "$(readlink "$folder_1/snapshots/$ones/config.json" | cut -c1-12)" = ../../blobs/ ]
    name=$(sha256sum "$repos/test/directory/model-00001-of-00003.safetensors" | cut -c1-64)
    check "large blobs have their SHA-256 as names" [ -f "$folder_1/blobs/$name" ]
    name=$repos/test/directory/config.json
    name=$({ printf 'blob %d\0' "$(stat -c %s "$name")"; cat "$name"; } | sha1sum | cut -c1-40)
    check "small ones git's SHA-1" [ -f "$folder_1/blobs/$name" ]
    check "the path is printed" [ "$(cat "$folder/out")" = "$folder_1/snapshots/$ones" ]
    check "it runs" contains err "run it: peridot chat -m test/directory"
    run inspect test/directory
    check "inspect finds it by its name" [ $status = 0 ]
    run models --json
    check "models lists it" contains out '"test/directory"'
    pulls test/directory
    check "a second time only asks what there is" [ "$(grep -c . "$log")" = 4 ]
    rm "$folder_1"/blobs/*
    echo damaged >"$folder_1/snapshots/$ones/config.json"
    pulls test/directory
    check "what is lost comes again" same directory config.json
    pulls test/renamed --revision refs/pr/1
    check "a name that the hub redirects keeps its own folder" \
        [ "$(cat "$cache/models--test--renamed/refs/refs/pr/1")" = "${ones//1/2}" ]
}

test_quants() {
    pulls test/quants
    check "without a type: Q4_K_M" same quants tiny-Q4_K_M.gguf
    check "says so" contains err "of several GGUF files: Q4_K_M"
    check "and how to run it" contains err "peridot chat -m test/quants:Q4_K_M"
    pulls test/quants:q8_0
    check "a type in whatever case" same quants tiny-Q8_0.gguf
    run inspect tEst/quants:Q8_0
    check "a type tells two files apart" contains out "tiny-Q8_0.gguf"
    run inspect test/quants
    check "without it there are two" contains err "could be any of test/quants:Q4_K_M, test/quants:Q8_0"
    pulls test/quants:F16
    check "all shards come" same quants split/tiny-F16-00002-of-00002.gguf
    name=$cache/models--test--quants/snapshots/$ones/split/tiny-F16-00001-of-00002.gguf
    check "from deeper folders as well" [ "$(readlink "$name" | cut -c1-15)" = ../../../blobs/ ]
    check "what it cannot run is said" contains err "Peridot cannot run it: "
    pulls test/quants/mmproj-Q8_0.gguf
    check "any file by its name" same quants mmproj-Q8_0.gguf
    refuses "has no GGUF file of type Q6_K; its GGUF files: F16, Q4_K_M, Q4_K_S, Q8_0" test/quants:Q6_K
    refuses "has several files of type q4_k: name one, as test/quants/FILE; its GGUF files: split/tiny" test/quants:q4_k
    refuses "has no file nothing.gguf; its GGUF files: split/tiny-F16-00001-of-00002.gguf, tiny-Q4_K_M.gguf" \
        test/quants/nothing.gguf
    rm "$repos/test/quants/tiny-Q4_K_M.gguf"
    refuses "name a type" test/quants
    for name in quants gemma3:1b test/ test/a:b/../c ../test /test/quants test/quants: test/.. 'test/qua nts' ''; do
        run pull "$name"
        check "'$name' is no name, or no type" [ $status != 0 ]
    done
    run pull test/quants --revision ../../x
    check "nor is that a revision" [ $status = 2 ]
}

# Types with what their publishers put before them.
test_markers() {
    pulls test/dynamic:UD-Q4_K_XL
    check "a type with a marker" same dynamic tiny-UD-Q4_K_XL.gguf
    check "and none but that" n_files dynamic 3
    check "which is its name from then on" contains err "peridot chat -m test/dynamic:UD-Q4_K_XL"
    run inspect test/dynamic:q4_k_xl
    check "the plain name will do where there is no other" contains out tiny-UD-Q4_K_XL.gguf
    pulls test/dynamic:q4_k_xl
    check "the plain type is another file" same dynamic tiny-Q4_K_XL.gguf
    run inspect test/dynamic:Q4_K_XL
    check "and another model" contains out /tiny-Q4_K_XL.gguf
    run inspect test/dynamic:ud-q4_k_xl
    check "beside the one with the marker" contains out tiny-UD-Q4_K_XL.gguf
    run models
    check "both are listed" matches out '^test/dynamic:UD-Q4_K_XL '
    pulls test/dynamic:Q6_K
    check "a type that has only a marker more" same dynamic tiny-i1-Q6_K.gguf
    refuses "has no GGUF file of type UD-Q6_K; its GGUF files: Q4_K_M, Q4_K_XL, UD-Q4_K_XL, i1-Q6_K" \
        test/dynamic:UD-Q6_K
}

test_vision() {
    pulls test/seeing --no-vision
    check "a model without its tower" n_files seeing 3
    check "is not told of one" [ "$(grep -c vision "$folder/err")" = 0 ]
    pulls test/seeing
    check "with its tower" same seeing mmproj-tiny-it-F16.gguf
    check "and none but that" n_files seeing 5
    check "the size is said before" contains err \
        "with its vision tower: mmproj-tiny-it-F16.gguf, 392 kB (--no-vision leaves it out)"
    check "the path is the model's" grep -q 'tiny-it-Q4_K_M.gguf$' "$folder/out"
    run models
    check "models says that it sees" matches out '^test/seeing:Q4_K_M .* yes, sees images$'
    rm "$repos/test/seeing/mmproj-tiny-it-F16.gguf"
    pulls test/seeing:Q4_K_M
    check "or else q8_0" same seeing mmproj-tiny-it-Q8_0.gguf
    pulls test/seeing/mmproj-other-F16.gguf
    check "by its name, alone" same seeing mmproj-other-F16.gguf
    pulls test/directory
    check "a directory has its own" [ "$(grep -c vision "$folder/err")" = 0 ]
}

test_tokens() {
    refuses "test/gated is gated: accept its licence at $HF_ENDPOINT/test/gated, then set HF_TOKEN" test/gated
    HF_TOKEN=other refuses "the account of the token in HF_TOKEN has no access" test/gated
    HF_TOKEN=bad refuses "refuses the token in HF_TOKEN" test/gated
    HF_TOKEN=$'good\r\nX-More: 1' refuses "HF_TOKEN does not hold an access token" test/gated
    HF_TOKEN=good pulls test/gated
    check "with a token it comes" same gated tiny-Q8_0.gguf
    check "the hub gets the token" asked '^hub GET /test/gated/resolve/.* Bearer good$'
    check "the host that it redirects to does not" asked '^store GET .* -$'
    check "in no request" [ "$(grep -c '^store .*good' "$log")" = 0 ]
    rm -r "$cache/models--test--gated"
    mkdir -p "$folder/home/.cache/huggingface"
    echo good >"$folder/home/.cache/huggingface/token"
    pulls test/gated
    check "the token's file is read" asked 'Bearer good$'
    rm "$folder/home/.cache/huggingface/token"
    refuses "there is no model test/private at $HF_ENDPOINT, or it is private: check its name, or set HF_TOKEN" \
        test/private
    HF_TOKEN=good refuses "there is no model test/nothing at $HF_ENDPOINT" test/nothing
    refuses "test/quants has no revision v9" test/quants --revision v9
    refuses 'Access to this resource is disabled.\x1b[31m' test/forbidden
    refuses "the answer about test/nonsense is not JSON" test/nonsense
    check "what fails leaves no folders" [ ! -e "$cache/models--test--nothing" ]
    HF_HUB_OFFLINE=1 refuses "HF_HUB_OFFLINE is set" test/quants
    check "and asks nobody" [ ! -s "$log" ]
    HF_ENDPOINT=file:///etc refuses "is not the address of a hub" test/quants
    HF_ENDPOINT=http://127.0.0.1:9 refuses "http://127.0.0.1:9: " test/quants
    # a proxy gets whole addresses
    HF_ENDPOINT=http://hub.invalid http_proxy=http://127.0.0.1:$hub no_proxy='' run pull test/quants:Q8_0
    check "a proxy is asked" asked '^hub GET http://hub.invalid/api/models/test/quants/revision/main '
}

test_trouble() {
    local partial name=tiny-Q8_0.gguf
    pulls test/cut
    check "cut connections are taken up again" same cut $name
    check "where they ended" asked '^store GET [^ ]* bytes=89717- '
    check "nothing incomplete stays" [ -z "$(find "$cache/models--test--cut" -name '*.incomplete')" ]
    pulls test/unranged
    check "a server without ranges begins again" same unranged $name
    pulls test/busy
    check "a busy hub is asked again" same busy $name
    refuses "the bytes received do not match the hub's SHA-256 " test/wrong
    refuses "the hub sent more than the 269152 bytes that it lists" test/long
    check "wrong bytes do not stay" [ -z "$(find "$cache/models--test--wrong" -name "$name" -o -path '*/blobs/*')" ]
    check "nor does a reference to them" [ ! -e "$cache/models--test--wrong/refs/main" ]
    partial=$cache/models--test--cut/blobs/$(sha256sum "$repos/test/cut/$name" | cut -c1-64)
    rm "$partial"
    head -c 5000 "$repos/test/cut/$name" >"$partial.incomplete"
    pulls test/cut
    check "what an earlier time left is not fetched again" asked '^store GET [^ ]* bytes=5000- '
    check "and is a part of the file" same cut $name
    rm "$partial"
    head -c 5000 /dev/urandom >"$partial.incomplete"
    pulls test/cut
    check "where it is wrong, all comes again" same cut $name
    refuses "free, but 10.0 PB are to be fetched" test/huge
    check "before anything is fetched" [ "$(grep -c resolve "$log")" = 0 ]
    pulls test/hostile
    for name in Q5_0 Q4_0 Q4_1 Q5_1; do
        refuses "has no GGUF file of type $name; its GGUF files: Q8_0" "test/hostile:$name"
    done
    run pull test/hostile/../../../escaped-Q5_0.gguf
    check "nor is that the name of a file" [ $status = 2 ]
}

# A terminal is not silent where nothing comes.
test_still() {
    has_terminal "that pull waits" || return
    script -qec "'$peridot' pull test/still" /dev/null </dev/null >"$folder/out" 2>"$folder/err"
    check "pull from a server that waits" [ $? = 0 ]
    check "shows each second" matches out 'fetching.*\(1 s\).*fetching.*\(2 s\)'
}

test_two() {
    local first name=tiny-Q8_0.gguf
    : >"$log"
    "$peridot" pull test/slow >"$folder/first" 2>"$folder/first_err" &
    first=$!
    await_text "$log" 'store GET'
    run pull test/slow
    wait $first
    check "the first of two ends well" [ $? = 0 ]
    check "so does the second" [ $status = 0 ]
    check "which waits" contains err "another program is fetching it"
    check "the bytes come once" [ "$(grep -c '^store GET' "$log")" = 1 ]
    rm -r "$cache/models--test--slow"
    : >"$log"
    "$peridot" pull test/slow >"$folder/out" 2>"$folder/err" &
    first=$!
    for _ in $(seq 50); do
        [ "$(find "$cache/models--test--slow" -name '*.incomplete' -size +40k 2>/dev/null)" ] && break
        sleep 0.1
    done
    kill -TERM $first
    wait $first
    check "a signal ends it" [ $? = 143 ]
    check "says that it can go on" contains err "the same command goes on from there"
    check "no file is there" [ ! -e "$cache/models--test--slow/snapshots/$ones/$name" ]
    pulls test/slow
    check "and it goes on" asked '^store GET [^ ]* bytes=[0-9]+- '
    check "to the whole file" same slow $name
}

# What a hub sends has an end, for Peridot: bodies, lists, connections (see begin_fewer).
test_endless() {
    SECONDS=0
    refuses "HTTP status 403 for test/endless: There is more to say." test/endless
    refuses "a redirection has more than 1048576 bytes" test/astray
    refuses "the list of the files of test/circular has no end" test/circular
    refuses "$HF_ENDPOINT: URL" test/adrift
    check "no address is tried twice: $SECONDS s" [ $SECONDS -le 8 ]
    refuses "test/vast: tiny-Q8_0-00002-of-00002.gguf and the files before it have more bytes than there can" test/vast
    check "before anything is fetched" [ "$(grep -c resolve "$log")" = 0 ]
    check "a hub that begins anew for ever is not asked for ever" [ "$(grep -c '^store GET' "$log.fewer")" -le 6 ]
    [ "${PERIDOT_TEST_ALL:-}" ] || kill $fewer 2>/dev/null
    wait $fewer
    status=$?
    [ "${PERIDOT_TEST_ALL:-}" ] || return
    check "but given up" [ $status = 1 ]
    check "says what there was" matches fewer "^peridot: $HF_ENDPOINT: "
}

# It takes 15 s; in those other tests run.
begin_fewer() {
    "$peridot" pull test/fewer >/dev/null 2>"$folder/fewer" &
    fewer=$!
}

# Names may be anything that a file can have.
test_names() {
    pulls test/odd
    check "such a file is fetched" same odd "$odd"
    check "its path is shown" contains out "/$ones/a\\xc2\\x9b31m\\xe2\\x80\\xae-Q8_\$(touch pwned).gguf"
    check "and offered to no shell" contains err "its name is not one to type: peridot chat -m takes its path"
    refuses "its GGUF files: Q8_\$(touch pwned)" test/odd:Q4_0
    refuses "its GGUF files: a\\xc2\\x9b31m\\xe2\\x80\\xae-Q8_" test/odd/other
    refuses 'has no GGUF file of type \x1b[31m; ' test/odd:$'\e[31m'
}

test_progress() {
    has_terminal "the line of progress" || return
    rm -r "$cache/models--test--slow"
    script -qefc "stty cols 70; exec '$peridot' pull test/slow" "$folder/screen" >/dev/null </dev/null
    tr '\r' '\n' <"$folder/screen" | sed -n 's/\x1b\[K$//; /^fetching/p' >"$folder/lines"
    check "a line says how fast it is, and what is left" matches lines \
        '^fetching \[#* *\] +[0-9]+ %  [0-9.]+ kB of 269 kB, [0-9.]+ .?B/s, [0-9]+ s left$'
    check "and fits the terminal" [ "$(wc -L <"$folder/lines")" -le 69 ]
}

# Allocations fail, one in each run.
test_alloc() {
    local failing i n
    failing=$(dirname "$peridot")/tests/peridot_failing_alloc
    [ "${PERIDOT_TEST_ALL:-}" ] && [ -x "$failing" ] || return
    export HF_HUB_CACHE=$folder/scarce
    COUNT_ALLOCATIONS=$folder/count "$failing" pull test/directory >"$folder/out" 2>"$folder/err"
    n=$(<"$folder/count")
    for ((i = 1; i <= n; i++)); do
        rm -rf "$folder/scarce"
        FAIL_ALLOCATION=$i "$failing" pull test/directory >"$folder/out" 2>"$folder/err"
        status=$?
        check "allocation $i of $n: status $status" [ $status -le 1 ]
        [ $status = 0 ] || check "allocation $i of $n: says why" grep -q '^peridot: .*memory' <(tail -1 "$folder/err")
    done
    unset HF_HUB_CACHE
}

test_trust() {
    local HF_ENDPOINT=https://127.0.0.1:$secure
    [ "$secure" ] || { echo "skipped: openssl, which makes certificates, is not there"; return; }
    refuses "certificate" test/nothing
    SSL_CERT_FILE=$folder/certificate refuses "there is no model test/nothing at $HF_ENDPOINT" test/nothing
}

# What Hugging Face's own library makes of the cache, and of the server.
test_library() {
    [ "${PERIDOT_PYTHON:-}" ] || { echo "skipped: PERIDOT_PYTHON is not set"; return; }
    HF_HUB_DISABLE_XET=1 "$PERIDOT_PYTHON" - "$repos/test" "$folder/other" >"$folder/out" 2>"$folder/err" <<'END'
import filecmp, os, sys
from huggingface_hub import constants, hf_hub_download, scan_cache_dir, snapshot_download, try_to_load_from_cache
repos, other = sys.argv[1:]
info = scan_cache_dir()
assert not info.warnings, info.warnings
found = {repo.repo_id: repo for repo in info.repos}
assert {"test/directory", "test/quants", "test/cut"} <= set(found), sorted(found)
assert {ref for revision in found["test/directory"].revisions for ref in revision.refs} == {"main"}
for repo, name in (("directory", "config.json"), ("directory", "model-00002-of-00003.safetensors"),
                   ("quants", "split/tiny-F16-00001-of-00002.gguf")):
    path = try_to_load_from_cache("test/" + repo, name)
    assert isinstance(path, str) and filecmp.cmp(path, os.path.join(repos, repo, name), shallow=False), (name, path)
    assert hf_hub_download("test/" + repo, name, local_files_only=True) == path
    fetched = hf_hub_download("test/" + repo, name, cache_dir=other)
    assert os.path.relpath(fetched, other) == os.path.relpath(path, constants.HF_HUB_CACHE), fetched
    assert os.readlink(fetched) == os.readlink(path)
assert hf_hub_download("test/quants", "split/tiny-F16-00001-of-00002.gguf") == path
snapshot_download("test/directory", cache_dir=other)
print("ok")
END
    check "huggingface_hub reads the cache, and makes the same one" [ "$(cat "$folder/out")" = ok ]
    HF_HUB_CACHE=$folder/other pulls test/directory
    check "what it fetched need not be fetched again" [ "$(grep -c resolve "$log")" = 0 ]
}

make_repos
start_hub
begin_fewer
test_directory
test_quants
test_markers
test_vision
test_tokens
test_trouble
test_still
test_two
test_names
test_progress
test_endless
test_trust
test_alloc
test_library
exec 8>&-
wait
finish
