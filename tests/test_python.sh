#!/usr/bin/env bash
# The Python package of tools/python beside the command: tools/python/test_peridot.py. It needs cffi and numpy.
. "$(dirname "$0")/command.sh"

library=$(dirname "$peridot")/libperidot.so
if ! python3 -c 'import cffi, numpy' 2>"$folder/err"; then
    echo "skipped: $(tail -1 "$folder/err")"
    exit 0
fi
if nm -D "$library" | grep -q __asan_init; then
    echo "skipped: Python cannot load a library with sanitizers"
    exit 0
fi
"$(dirname "$peridot")/tests/write_thinkers" "$folder"
export PERIDOT_LIBRARY=$library PERIDOT_COMMAND=$peridot PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$source/tools/python
python3 "$source/tools/python/test_peridot.py" "$folder" >"$folder/out" 2>&1
check "the package does what the command does" [ $? = 0 ]
tail -1 "$folder/out"
PERIDOT_LIBRARY=$folder/none.so python3 -c 'import peridot' 2>"$folder/err"
check "a library that is not there is named" \
    matches err "^ImportError: libperidot.so cannot be loaded .*$folder/none.so"
cp -rL "$source"/tools/python/peridot{,_command.py} "$folder"
mkdir "$folder"/peridot/{lib,bin}
cp "$library" "$folder/peridot"
python() { env -u PERIDOT_LIBRARY PYTHONPATH="$folder" python3 "$@" >"$folder/out" 2>"$folder/err"; }
python -c 'import peridot; print("peridot", peridot.version())'
check "a library beside the package is found" [ "$(cat "$folder/out")" = "$("$peridot" --version)" ]
mv "$folder/peridot/libperidot.so" "$folder/peridot/lib"
python -c 'import peridot; print("peridot", peridot.version())'
check "so is one in its lib" [ "$(cat "$folder/out")" = "$("$peridot" --version)" ]
python -m peridot --version
check "a package without a command says so" contains err "peridot: this package has the library alone"
ln -s "$peridot" "$folder/peridot/bin"
python -m peridot --version
check "that of the package is run" [ "$(cat "$folder/out")" = "$("$peridot" --version)" ]
mv "$folder"/peridot/bin/peridot{,.exe}
python -c 'import sys; sys.platform = "win32"; import peridot_command; peridot_command.main()' tokenize --none
check "so is Windows', whose status is handed on" [ $? = 2 ]
check "with its arguments" contains err --none

# ---- the sdist ----

# Unpacked in $folder/sdist: what CMake needs is in it. With PERIDOT_TEST_ALL=1 a wheel is built of it as pip does.
cp -r "$source/tools/python" "$folder/package"
mkdir -p "$folder/top/tools" "$folder/sdist"
for name in CMakeLists.txt LICENSE include models shaders src; do ln -s "$source/$name" "$folder/top"; done
for name in cmake completions peridot third_party; do ln -s "$source/tools/$name" "$folder/top/tools"; done
mv "$folder/package" "$folder/top/tools/python"
if ! python3 -c 'import setuptools.command.bdist_wheel' 2>"$folder/err"; then
    echo "skipped: the sdist: $(tail -1 "$folder/err")"
    finish
fi
(cd "$folder/top/tools/python" && python3 -c "from setuptools import build_meta
print(build_meta.build_sdist('$folder'))") >"$folder/out" 2>"$folder/err"
check "an sdist is made" tar -C "$folder/sdist" --strip-components=1 -xzf "$folder/$(tail -1 "$folder/out")"
check "it has the header that the package reads" cmp "$folder/sdist/peridot/peridot.h" "$source/include/peridot.h"
cmake -S "$folder/sdist/source" -B "$folder/sdist/out" -G Ninja -D PERIDOT_TESTS=OFF >"$folder/out" 2>"$folder/err"
check "and sources that CMake configures" [ $? = 0 ]
ninja -C "$folder/sdist/out" -n >"$folder/out" 2>"$folder/err"
check "of which none is missing" [ $? = 0 ]
if [ "${PERIDOT_TEST_ALL:-}" ]; then
    python3 -m venv --system-site-packages "$folder/venv"
    "$folder/venv/bin/pip" install -q --no-build-isolation --no-deps "$folder"/peridot-*.tar.gz \
        >"$folder/out" 2>"$folder/err"
    check "pip installs it" [ $? = 0 ]
    cd /
    check "with the command" [ "$("$folder/venv/bin/peridot" --version)" = "$("$peridot" --version)" ]
    env -u PERIDOT_LIBRARY -u PYTHONPATH "$folder/venv/bin/python" -c 'import peridot; print(peridot.version())' \
        >"$folder/out" 2>"$folder/err"
    check "and the library" [ "peridot $(cat "$folder/out")" = "$("$peridot" --version)" ]
fi
finish
