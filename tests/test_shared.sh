#!/usr/bin/env bash
# libperidot.so exports what the public headers declare and nothing else, and the command runs with it.
. "$(dirname "$0")/command.sh"

build=$(dirname "$peridot")

exported() { nm -D --defined-only "$build/libperidot.so" | awk '{ print $3 }' | sort; }
declared() {
    tr '\n' ' ' <"$source/include/peridot.h" >"$folder/headers"
    tr '\n' ' ' <"$source/include/peridot_tools.h" >>"$folder/headers"
    grep -oE 'PERIDOT_API [a-z0-9_ *]*\(' "$folder/headers" | grep -oE 'peridot_[a-z0-9_]+\($' | tr -d '(' | sort
}

diff <(declared) <(exported) >"$folder/out" 2>&1
check "the headers declare what is exported (< declared, > exported)" [ ! -s "$folder/out" ]
check "there are many functions" [ "$(exported | wc -l)" -gt 40 ]

ldd "$build/tests/peridot_with_shared" >"$folder/out"
check "the command needs the shared library" contains out libperidot.so.

first=$("$peridot" run --ids --temp 0 -n 5 "Once upon a time" 2>/dev/null)
peridot=$build/tests/peridot_with_shared
run run --ids --temp 0 -n 5 "Once upon a time"
check "the command runs with it" [ $status = 0 ]
check "and gives the same ids" [ "$(cat "$folder/out")" = "$first" ]
fails_with 1 "No such file" inspect "$folder/no-such-file.gguf"
finish
