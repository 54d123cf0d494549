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
finish
