# Checks shared by the tests of the command line; sourced by test_command*.sh with the executable as their first
# argument and the source folder as their second.

peridot=$1
source=$2
goldens=$(dirname "$peridot")/golden   # tests/golden with its weights
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# What Mesa compiled may be kept for the next test; what Peridot keeps may not.
export MESA_SHADER_CACHE_DIR=${MESA_SHADER_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/mesa_shader_cache_db}
export XDG_CACHE_HOME=$folder/cache
# The validation layers announce themselves on stdout.
unset VK_INSTANCE_LAYERS VK_LAYER_SETTINGS_PATH
n_failed=0
n_checks=0

failed() {
    n_failed=$((n_failed + 1))
    printf 'FAILED: %s\n' "$*"
    local name
    for name in out err; do   # how it begins, and how it ends
        { head -5 "$folder/$name"; tail -n +6 "$folder/$name" | tail -60; } | sed "s/^/    std$name: /"
    done
}

# check TITLE TEST...: TEST is a command that must succeed.
check() {
    n_checks=$((n_checks + 1))
    "${@:2}" || failed "$1"
}

# run ARGUMENTS...: runs peridot; leaves $status and the files out and err.
run() {
    "$peridot" "$@" >"$folder/out" 2>"$folder/err"
    status=$?
}

# packages PACKAGE...: from PyPI, for $folder/venv/bin/python. False, after a word, where they cannot be had.
packages() {
    if python3 -m venv "$folder/venv" >"$folder/out" 2>&1; then
        "$folder/venv/bin/pip" install -q "$@" >"$folder/out" 2>&1 && return
    fi
    echo "skipped: $* cannot be installed: $(tail -1 "$folder/out")"
    false
}

# make_seer FOLDER: a model that sees, whose chat template writes what Gemma 3's does for an image. It writes nonsense.
make_seer() {
    local file parts
    mkdir "$1"
    for file in config.json preprocessor_config.json model.safetensors tokenizer.model; do
        cp "$goldens/gemma3-vision/$file" "$1"
    done
    parts="{% for part in m.content %}{% if part.type == 'image' %}<start_of_image>{% else %}{{ part.text | trim }}"
    parts="{% if m.content is string %}{{ m.content }}{% else %}$parts{% endif %}{% endfor %}{% endif %}"
    echo "{\"chat_template\": \"{{ bos_token }}{% for m in messages %}<{{ m.role }}>$parts\\n{% endfor %}<model>\"}" \
        >"$1/tokenizer_config.json"
}

# make_qwen_seer FOLDER: a Qwen 3.5 that sees, with the family's chat template and a small tokenizer of its kind, whose
# embedding is the golden model's, made longer. It writes nonsense. False, after a word, without Python.
make_qwen_seer() {
    command -v python3 >/dev/null || { echo "skipped: Python is not there"; return 1; }
    mkdir "$1"
    cp "$goldens/qwen35-vision/preprocessor_config.json" "$goldens"/qwen/tokenizer{,_config}.json "$1"
    cp "$source/tools/golden/qwen3.5.jinja" "$1/chat_template.jinja"
    python3 - "$goldens/qwen35-vision" "$1" <<'END'
import json, struct, sys
old, new = sys.argv[1:]
ids = {t["content"]: t["id"] for t in json.load(open(new + "/tokenizer.json"))["added_tokens"]}
config = json.load(open(old + "/config.json"))
n = config["text_config"]["vocab_size"] = max(ids.values()) + 1
for key, token in (("vision_start", "vision_start"), ("vision_end", "vision_end"), ("image", "image_pad"),
                   ("video", "video_pad")):
    config[key + "_token_id"] = ids[f"<|{token}|>"]
json.dump(config, open(new + "/config.json", "w"))
with open(old + "/model.safetensors", "rb") as file:
    tensors, data = json.loads(file.read(struct.unpack("<Q", file.read(8))[0])), file.read()
out, parts = {}, []
for name, t in sorted(tensors.items()):
    if name == "__metadata__":
        continue
    part = data[slice(*t["data_offsets"])]
    if name.endswith("embed_tokens.weight"):
        rows, size = t["shape"][0], len(part) // t["shape"][0]
        row = lambda i: part[i % rows * size:(i % rows + 1) * size]
        turn = lambda i: i // rows * 6    # bytes, so that no two rows are equal
        part, t = b"".join(row(i)[turn(i):] + row(i)[:turn(i)] for i in range(n)), t | {"shape": [n, t["shape"][1]]}
    at = sum(map(len, parts))
    out[name] = t | {"data_offsets": [at, at + len(part)]}
    parts.append(part)
header = json.dumps(out).encode()
header += b" " * (-len(header) % 8)
open(new + "/model.safetensors", "wb").write(struct.pack("<Q", len(header)) + header + b"".join(parts))
END
}

# Whether script (of util-linux) can make a pseudo-terminal. False, after a word: "skipped: WHAT: WHY".
has_terminal() {
    script -qec 'test -t 0 && test -t 1' /dev/null </dev/null >"$folder/out" 2>&1 && return
    echo "skipped: $1: no pseudo-terminal can be made: $(head -1 "$folder/out")"
    false
}

# The names of all kernels, a line each.
kernels() {
    printf '#define PD_KERNEL(name, ...) name\n#include "kernels.def"\n' | cc -E -P -I "$source/shaders" - | xargs -n1
}

contains() { grep -qF -e "$2" "$folder/$1"; }
matches() { grep -qE -e "$2" "$folder/$1"; }
matches_not() { ! matches "$@"; }
# Of the failure; which device is used, and which chat template, may be said before it.
one_sentence() {
    [ "$(grep -vcE '^device: | has no chat template: |: its chat template is not one ' "$folder/err")" = 1 ] &&
        matches err '^peridot: .'
}
# await_text FILE TEXT: until the file is there and has it; false after a minute.
await_text() {
    local i
    for ((i = 0; i < 1200; i++)); do
        grep -qF -e "$2" "$1" 2>/dev/null && return
        sleep 0.05
    done
    false
}
size_is() { [ "$(stat -c %s "$1")" = "$2" ]; }

# fails_with STATUS TEXT ARGUMENTS...: that status, one sentence that holds TEXT, nothing on stdout.
fails_with() {
    run "${@:3}"
    check "peridot ${*:3}: status $status, not $1" [ $status = "$1" ]
    check "peridot ${*:3}: one sentence" one_sentence
    check "peridot ${*:3}: names '$2'" contains err "$2"
    check "peridot ${*:3}: silent on stdout" [ ! -s "$folder/out" ]
}

# on_full_disk ARGUMENTS...: as run, with DISK in the arguments a folder that holds 16 KiB; `left` lists what is in it
# afterwards. False, after a word, where such a disk cannot be mounted.
on_full_disk() {
    mkdir -p "$folder/disk"
    if ! unshare --mount mount -t tmpfs -o size=16k peridot-test "$folder/disk" 2>/dev/null; then
        echo "skipped: no right to mount a small disk"
        return 1
    fi
    unshare --mount bash -c 'mount -t tmpfs -o size=16k peridot-test "$1"; "${@:3}" >"$2/out" 2>"$2/err"
        status=$?; ls -A "$1" >"$2/left"; exit $status' - "$folder/disk" "$folder" "$peridot" "${@//DISK/$folder/disk}"
    status=$?
}

finish() {
    printf '%d checks, %d failed\n' $n_checks $n_failed
    [ $n_failed = 0 ]
    exit
}
