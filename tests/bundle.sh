#!/usr/bin/env bash
# What tools/bundle made, on a bare system, as root: .ci/run runs it on several. The archive first with nothing else,
# then with Mesa's driver, with the system's Vulkan loader and with its own; then the wheel in clean venvs of the Pythons
# that the system has. tests/bundle.sh FOLDER SOURCE [aarch64], where FOLDER has both; that machine's are run by qemu.
export DEBIAN_FRONTEND=noninteractive
machine=${3:-$(uname -m)}
made=$(cd "$1" && pwd)
archive=$made/peridot-linux-$machine.tar.gz
wheel=$(ls "$made"/peridot-*_"$machine".whl)
. "$(dirname "$0")/command.sh"

mkdir "$folder/any where ü"
tar -xzf "$archive" -C "$folder/any where ü"
top=$folder/any\ where\ ü/peridot-linux-$machine
peridot=$top/bin/peridot
program=$peridot
emulator= other=
if [ "$machine" != "$(uname -m)" ]; then
    emulator=qemu-$machine other=:arm64
    dpkg --add-architecture arm64
    apt-get update -qq && apt-get install -y -qq --no-install-recommends qemu-user libc6:arm64 >/dev/null
    peridot=$folder/peridot
    printf '#!/bin/sh\nexec %s "%s" "$@"\n' $emulator "$program" >"$peridot"
    chmod +x "$peridot"
    ldd() { for file; do $emulator /lib/ld-linux-*.so.1 --list "$file"; done; }
fi
stories=$top/share/peridot/stories.gguf
tale='The little fox'

# ---- the archive, and nothing else ----

check "the archive has at most 25 MB" [ "$(stat -c %s "$archive")" -le 25000000 ]
ldd "$program" "$top"/lib/*.so.?* | sed -nE 's/^\s+([^ ]+).*/\1/p' | sort -u |
    grep -vE '^(linux-vdso|/lib.*/ld-linux|lib(c|m|dl|rt|pthread)\.so|ld-linux)|^lib(peridot|microhttpd)\.so' \
        >"$folder/out"
check "it needs the C library alone" [ ! -s "$folder/out" ]
ldd "$program" >"$folder/out"
for name in libperidot libmicrohttpd; do check "its own $name is used" matches out "$name.* => $top/"; done
for name in README.txt share/man/man1/peridot-chat.1.gz share/bash-completion/completions/peridot include/peridot.h \
    share/doc/peridot/licences/{peridot,openssl,curl,libmicrohttpd,sentencepiece,vulkan-loader,libstdc++6}.txt; do
    check "it has $name" [ -s "$top/$name" ]
done
run --version
check "--version" matches out '^peridot [0-9]'
run inspect "$stories"
check "inspect reads the demo model" [ $status = 0 ]
run tokenize -m "$stories" "Größe, 日本 🦊"
check "tokenize" [ $status = 0 ]
ln -s "$program" "$folder/link"
check "by a link, too" [ "$($emulator "$folder/link" --version)" = "$("$peridot" --version)" ]
run devices
check "it brings a Vulkan loader, and misses a driver alone" contains err 'no Vulkan driver found'

# ---- with a driver ----

apt-get update -qq &&
    apt-get install -y -qq --no-install-recommends mesa-vulkan-drivers$other libvulkan1$other >/dev/null 2>"$folder/err"
VK_DRIVER_FILES=$(ls /usr/share/vulkan/icd.d/lvp_icd*.json)
export VK_DRIVER_FILES VK_ICD_FILENAMES=$VK_DRIVER_FILES   # the latter for older loaders

# tells TITLE: the story, where this Mesa's device can run it; else devices says what it lacks.
tells() {
    run devices
    check "devices, $1" contains out llvmpipe
    if matches out '^ *usable +no'; then
        echo "Mesa's device, $1:$(grep -m1 '^ *usable' "$folder/out")"
        return
    fi
    run run --temp 0 -n 16 "$tale"
    check "run, $1" [ $status = 0 ]
    check "run, $1: tells of something" matches out '[a-z]{3} [a-z]{2}'
    cp "$folder/out" "$folder/story"
}
tells "with the system's loader"
for file in /usr/lib/*/libvulkan.so.1*; do mv "$file" "$file.hidden"; done
tells "with its own loader"
for file in /usr/lib/*/libvulkan.so.1*.hidden; do mv "$file" "${file%.hidden}"; done

# ---- serve ----

if [ -e "$folder/story" ]; then
    "$peridot" serve --port 0 >"$folder/out" 2>"$folder/err" &
    server=$!
    for _ in $(seq 600); do
        port=$(sed -nE 's|^serving .* at http://127.0.0.1:([0-9]+): .*|\1|p' "$folder/err")
        [ ! "$port" ] && kill -0 $server 2>/dev/null || break
        sleep 0.1
    done
    timeout 60 bash -c 'exec 7<>"/dev/tcp/127.0.0.1/$0" && printf "GET /v1/models HTTP/1.0\r\n\r\n" >&7 && cat <&7' \
        "$port" >"$folder/out" 2>>"$folder/err"
    check "serve lists the demo model" contains out '"stories"'
    kill $server && wait $server
fi

# ---- the wheel ----

apt-get install -y -qq --no-install-recommends python3-venv $(apt-cache search --names-only '^python3\.[0-9]+-venv$' |
    cut -d' ' -f1) >/dev/null 2>"$folder/err"
python3 "$source/tests/wheel.py" "$wheel" "$top" >"$folder/out" 2>"$folder/err"
check "the wheel has what the archive has" [ $? = 0 ]
cat "$folder/out"
if [ "$emulator" ]; then   # without a Python of that machine: pip finds all that it needs, and its command runs
    python3 -m venv "$folder/venv" && "$folder/venv/bin/pip" install -q --only-binary=:all: --target "$folder/site" \
        --platform "manylinux_2_31_$machine" --platform "manylinux2014_$machine" "$wheel" >"$folder/out" 2>"$folder/err"
    check "pip installs the wheel" [ $? = 0 ]
    check "and its command runs" \
        [ "$($emulator "$folder/site/peridot/bin/peridot" --version)" = "$("$peridot" --version)" ]
    finish
fi
cd / || exit 1

test_python() {   # test_python NAME: in a clean venv
    local venv=$folder/$1 command
    "$1" -m venv "$venv" && "$venv/bin/pip" install -q "$wheel" >"$folder/out" 2>"$folder/err"
    check "$1: pip installs the wheel" [ $? = 0 ]
    for command in "$venv/bin/peridot" "$venv/bin/python -m peridot"; do
        check "$1: ${command##*/} is the command" [ "$($command --version)" = "$("$peridot" --version)" ]
    done
    "$venv/bin/python" >"$folder/out" 2>"$folder/err" <<'END'
import platform, peridot
print("Python", platform.python_version(), "peridot", peridot.version())
END
    check "$1 has the library" [ $? = 0 ]
    cat "$folder/out"
    if [ -e "$folder/story" ]; then
        "$venv/bin/python" - "$stories" "$tale" >"$folder/out" 2>"$folder/err" <<'END'
import sys
import peridot
with peridot.Model(sys.argv[1]) as model:
    print("".join(model.generate(sys.argv[2], 16, peridot.GREEDY)), end="")
END
        check "and tells what the command tells" [ "$(cat "$folder/out")" = "$(cat "$folder/story")" ]
    fi
    if "$venv/bin/pip" install -q mypy >"$folder/out" 2>"$folder/err"; then
        printf 'import peridot\nids: str = peridot.Model("a").encode("b")\n' >"$folder/typed.py"
        "$venv/bin/python" -m mypy --cache-dir "$folder/mypy" "$folder/typed.py" >"$folder/out" 2>"$folder/err"
        check "$1: its types are found" contains out '"list[int]", variable has type "str"'
    else
        echo "skipped: $1: mypy cannot be installed: $(tail -1 "$folder/err")"
    fi
}
pythons=(/usr/bin/python3.[0-9] /usr/bin/python3.[0-9][0-9])
for file in "${pythons[@]}"; do [ ! -x "$file" ] || test_python "${file##*/}"; done
pip=$folder/$(basename "$(readlink -f /usr/bin/python3)")/bin/pip
if "$pip" install -q 'auditwheel>=6' >"$folder/out" 2>"$folder/err"; then
    "${pip%/*}/auditwheel" show "$wheel" >"$folder/out" 2>"$folder/err"
    tag=$(tr -s ' \n' ' ' <"$folder/out" | sed -nE 's/.*consistent with the following platform tag: "([^"]+)".*/\1/p')
    check "auditwheel finds what the wheel's name says, not '$tag'" eval '[[ $wheel = *-py3-none-$tag.whl ]]'
else
    echo "skipped: auditwheel cannot be installed: $(tail -1 "$folder/err")"
fi
finish
