#!/usr/bin/env bash
# Two builds in two folders install the same bytes. Only with PERIDOT_TEST_ALL=1, as it builds twice, and on one driver.
. "$(dirname "$0")/command.sh"

if [ ! "${PERIDOT_TEST_ALL:-}" ] || [[ ${VK_DRIVER_FILES:-lvp} != *lvp* ]] ||
    nm -D "$peridot" | grep -q __asan_init; then
    echo "skipped: two builds take minutes"
    exit 0
fi
export CCACHE_DISABLE=1
for place in "$folder/one" "$folder/another/place"; do
    mkdir -p "$place"
    cp -r "$source"/{CMakeLists.txt,include,models,shaders,src,tools} "$place"
done
for place in "$folder/one" "$folder/another/place"; do
    # The date is the changelog's, which is written now: in what is compiled there must be none, set or not.
    SOURCE_DATE_EPOCH=1 cmake -S "$place" -B "$place/build" -G Ninja -D PERIDOT_TESTS=OFF \
        >"$folder/out" 2>"$folder/err" &&
        cmake --build "$place/build" >"$folder/out" 2>"$folder/err" &&
        cmake --install "$place/build" --prefix "$place/installed" >"$folder/out" 2>"$folder/err"
    check "it builds in $place" [ $? = 0 ]
done
diff -r "$folder/one/installed" "$folder/another/place/installed" >"$folder/out" 2>"$folder/err"
check "both are the same" [ $? = 0 ]
check "and more than headers" [ -x "$folder/one/installed/bin/peridot" ]
finish
