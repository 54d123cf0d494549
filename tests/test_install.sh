#!/usr/bin/env bash
# An installed copy, moved to another folder: the command and the programs of tests/embed, built against it, do what
# they say; and libraries that export what the public headers declare, and nothing else.
. "$(dirname "$0")/command.sh"

build=$(cd "$(dirname "$peridot")" && pwd)
stories=$source/models/stories.gguf
copy=$folder/moved
flags=(-std=c11 -Wall -Wextra -Werror)

cmake --install "$build" --prefix "$folder/first" >"$folder/out" 2>"$folder/err" ||
    { failed "cmake --install"; finish; }
mv "$folder/first" "$copy"
library=$(dirname "$(find "$copy" -name libperidot.a)")
export PKG_CONFIG_PATH=$library/pkgconfig
if nm -D "$library/libperidot.so" | grep -q __asan_init; then flags+=(-fsanitize=address,undefined); fi

# ---- libraries ----

# declared HEADER...: the functions of public headers.
declared() {
    (cd "$copy/include" && cat "$@") | tr '\n' ' ' | grep -oE 'PERIDOT_API [a-z0-9_ *]*\(' |
        grep -oE 'peridot_[a-z0-9_]+\($' | tr -d '(' | sort
}
for exported in "nm -D $library/libperidot.so" "nm $library/libperidot.a"; do
    diff <(declared peridot.h peridot_tools.h) <($exported | awk '$2 ~ /^[A-TV-Z]$/ { print $3 }' | sort) \
        >"$folder/out" 2>&1
    check "${exported##*/}: the headers declare what is exported (< declared, > exported)" [ ! -s "$folder/out" ]
done
check "there are many functions" [ "$(declared peridot.h | wc -l)" -gt 40 ]
version=$("$peridot" --version | cut -d' ' -f2)
readelf -d "$library/libperidot.so" >"$folder/out"
check "the shared library is named by its minor version" contains out "[libperidot.so.${version%.*}]"
check "and its file by the whole" [ "$(readlink -f "$library/libperidot.so")" = "$library/libperidot.so.$version" ]
# The sanitizers name the lines of sources.
contains out libasan || check "nothing of the build is in what is installed" \
    [ -z "$(grep -rlF -e "$build" -e "$source" "$copy")" ]

# ---- the command ----

first=$("$peridot" run --ids --temp 0 -n 5 "Once upon a time" 2>/dev/null)
peridot=$copy/bin/peridot
run run --ids --temp 0 -n 5 "Once upon a time"
check "the command finds the demo model" [ $status = 0 ]
check "and gives the same ids" [ "$(cat "$folder/out")" = "$first" ]

# ---- man pages ----

page() { gunzip -c "$copy/share/man/man$2/$1.$2.gz" >"$folder/out" 2>"$folder/err"; }
words() { grep -o '[^[:space:]]*'; }
# The words of the page from its synopsis on, without roff's requests and escapes.
page_words() {
    sed -e '1,/^\.SH SYNOPSIS/d; /^\.SH SEE/,$d; s/^\.SH //; /^\.[A-Z]*$/d; s/\\f[BIR]//g; s/\\ / /g; s/\\&//g' \
        -e 's/\\e/\\/g; s/\\\([-.]\)/\1/g' "$folder/out" | words
}
for command in $("$peridot" help | sed -n '/^COMMANDS/,/^$/ s/^    \([a-z]*\) .*/\1/p'); do
    page "peridot-$command" 1
    check "$command has a man page" matches out "^peridot.-$command .- "
    page_words | diff <("$peridot" help "$command" all | sed '1,/^SYNOPSIS/d' | words) - >"$folder/err"
    check "$command's says what its help says (< help, > page)" [ ! -s "$folder/err" ]
    page peridot 1
    check "and peridot(1) names it" [ "$(grep -c "^.BR peridot.-$command (1)" "$folder/out")" = 1 ]
done
page libperidot 3
check "libperidot(3) declares the functions of peridot.h" \
    [ -z "$(comm -23 <(declared peridot.h) <(grep -oE 'peridot_[a-z0-9_]+\(' "$folder/out" | tr -d '(' | sort -u))" ]

# ---- completions ----

# offers LINE CANDIDATE...: what bash makes of Tab at the end of a line.
offers() {
    check "Tab after '$1' offers ${*:2}" \
        [ "$(PATH=$copy/bin:$PATH bash -c '. "$1"; compopt() { :; }; COMP_LINE=$2 COMP_POINT=${#2}; _peridot
        printf "%s " "${COMPREPLY[@]}"' - "$copy/share/bash-completion/completions/peridot" "$1")" = "${*:2} " ]
}
offers 'peridot cl' classify
offers 'peridot help se' serve selftest
offers 'peridot run --te' --temp --template
offers 'peridot run --kv ' f16 f32 q8_0 q8_0/q4_1 q5_1 q4_1
offers 'peridot run --kv=f1' f16
offers 'peridot run --raw --device ' 0
offers 'peridot make --type q4_' q4_0 q4_1 q4_k q4_k_s q4_k_m
offers 'peridot convert x --type iq4' iq4_nl iq4_xs
offers 'peridot run -n ' ''
if command -v fish >/dev/null; then
    PATH=$copy/bin:$PATH fish --no-config \
        -c "source $copy/share/fish/vendor_completions.d/peridot.fish; complete -C 'peridot run --kv '" \
        >"$folder/out" 2>"$folder/err"
    check "fish offers the same" [ "$(xargs <"$folder/out")" = "f16 f32 q4_1 q5_1 q8_0 q8_0/q4_1" ]
fi
if command -v zsh >/dev/null; then check "zsh reads its own" zsh -n "$copy/share/zsh/site-functions/_peridot"; fi

# ---- programs, by pkg-config and by CMake ----

check "pkg-config knows the version" [ "$(pkg-config --modversion peridot)" = "$version" ]
read -ra used <<<"$(pkg-config --cflags --libs peridot) -Wl,-rpath,$library -lm"
for file in "$source"/tests/embed/*.c; do
    name=$(basename "$file" .c)
    cc "${flags[@]}" "$file" "${used[@]}" -o "$folder/$name" >"$folder/out" 2>"$folder/err"
    check "$name builds" [ $? = 0 ]
done
c++ "${flags[@]/-std=c11/-std=c++11}" "$source/tests/embed/headers.cc" "${used[@]}" -o "$folder/headers" \
    >"$folder/out" 2>"$folder/err"
check "headers builds" [ $? = 0 ]

# A host that has functions of its own by the library's internal names, and links the Vulkan loader.
cat >"$folder/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(host LANGUAGES C)
find_package(peridot ${version%.*} REQUIRED CONFIG)
add_executable(static host.c)
add_executable(shared host.c)
target_link_libraries(static PRIVATE peridot::static vulkan)
target_link_libraries(shared PRIVATE peridot::peridot vulkan)
END
cat >"$folder/host.c" <<'END'
#include <peridot.h>
#include <stdio.h>
#include <vulkan/vulkan.h>
int pd_fail(void) { return 1; }
int pd_instance_open(void) { return 2; }
int main(int argc, char **argv)
{
    uint32_t version;
    peridot_file *file;
    peridot_status status = peridot_file_open(&file, argc > 1 ? argv[1] : "");
    puts(peridot_last_error());
    return status != PERIDOT_ERROR_IO || vkEnumerateInstanceVersion(&version) != VK_SUCCESS ||
        pd_fail() + pd_instance_open() != 3;
}
END
cmake -S "$folder" -B "$folder/host" -G Ninja -Dperidot_ROOT="$copy" -DCMAKE_C_FLAGS="${flags[*]:4}" \
    >"$folder/out" 2>"$folder/err" &&
    cmake --build "$folder/host" >>"$folder/out" 2>&1
check "a host builds with find_package" [ $? = 0 ]
for kind in static shared; do
    "$folder/host/$kind" "$folder/none.gguf" >"$folder/out" 2>"$folder/err"
    check "a host of the $kind library runs" [ $? = 0 ]
    check "the $kind library uses its own functions" matches out 'none.gguf: '
done

# A part of another project, built with PERIDOT_TEST_ALL=1: the same targets, and neither command nor tests.
mkdir "$folder/part"
cat >"$folder/part/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(host LANGUAGES C CXX)
include(FetchContent)
FetchContent_Declare(peridot SOURCE_DIR "$source")
FetchContent_MakeAvailable(peridot)
add_executable(shared "$folder/host.c")
add_executable(static "$folder/host.c")
target_link_libraries(shared PRIVATE peridot::peridot vulkan)
target_link_libraries(static PRIVATE peridot::static vulkan)
END
cmake -S "$folder/part" -B "$folder/part/build" -G Ninja >"$folder/out" 2>"$folder/err" &&
    { [ ! "${PERIDOT_TEST_ALL:-}" ] || cmake --build "$folder/part/build" >>"$folder/out" 2>&1; }
check "it is a part of another project" [ $? = 0 ]
cmake --build "$folder/part/build" --target help >"$folder/out" 2>"$folder/err"
check "without the command and the tests" eval '! matches out "peridot_command|^test_|test_base"'

# ---- the examples ----

# example NAME ARGUMENTS...: as run, of an example.
example() {
    "$folder/$1" "${@:2}" >"$folder/out" 2>"$folder/err"
    status=$?
}
lines() { [ "$(wc -l <"$folder/out")" = "$1" ]; }

"$peridot" run -m "$stories" --temp 0.8 --top-k 40 --top-p 1 --min-p 0 --seed 1 -n 64 "Once upon a time" \
    >"$folder/want" 2>/dev/null
example generate "$stories" "Once upon a time"
check "generate succeeds" [ $status = 0 ]
check "generate writes what the command does" [ "$(cat "$folder/out")" = "$(cat "$folder/want")" ]
example generate "$folder/none.gguf" "Once"
check "a failure has a name and a sentence" matches err '^PERIDOT_ERROR_IO: .*none.gguf: '

"$peridot" run -m "$stories" --temp 0 -n 24 "Once there was a king who" >"$folder/want" 2>/dev/null
printf 'Once there was a king who\nThe queen said\n' >"$folder/lines"
example chat "$stories" <"$folder/lines"
check "chat succeeds" [ $status = 0 ]
check "chat begins as the command does" \
    [ "$(head -c "$(wc -c <"$folder/want")" "$folder/out")" = "$(cat "$folder/want")" ]
"$peridot" run -m "$stories" --temp 0 -n 24 "Once there was a king who$(cat "$folder/want")

The queen said" >>"$folder/want" 2>/dev/null
check "chat goes on after its own reply" [ "$(cat "$folder/out")" = "$(cat "$folder/want")" ]

for prompt in "Once upon a time" "The little fox" "A king"; do
    printf '%s|%s\n' "$prompt" "$("$peridot" run -m "$stories" --temp 0 -n 24 "$prompt" 2>/dev/null)"
done >"$folder/want"
example many "$stories" "Once upon a time" "The little fox" "A king"
check "many succeeds" [ $status = 0 ]
check "many at once write what each writes alone" [ "$(cat "$folder/out")" = "$(cat "$folder/want")" ]

example embeddings "$stories" "The cat sat." "The cat sat."
check "a text is like itself" [ "$(cat "$folder/out")" = 1.0000 ]
example embeddings "$stories" "The cat sat." "Numbers, numbers!"
check "and less like another" matches out '^-?0\.[0-9]{4}$'

example logits "$stories" "Once upon a"
check "logits gives five tokens" lines 5
first=$("$peridot" run -m "$stories" --ids --temp 0 -n 1 "Once upon a" 2>/dev/null)
check "of which the first is what the command takes" [ "$(head -1 "$folder/out" | cut -d' ' -f1)" = "$first" ]
check "with its probability" matches out '^[0-9]+ 0\.9[0-9]{3}  ?time$'

tiny=$goldens/gemma3-vision
cp -r "$tiny" "$folder/seeing"   # with a template that writes the parts of a message
printf '{"chat_template": "{{ bos_token }}{%% for m in messages %%}{%% for p in m.content %%}%s%s%s"}' \
    "{% if p.type == 'image' %}{{ '<start_of_image>' }}" "{% else %}{{ p.text | trim }}{% endif %}" \
    "{% endfor %}{% endfor %}" >"$folder/seeing/tokenizer_config.json"
for vision in "" "$tiny/mmproj-q8_0.gguf"; do
    "$peridot" run -m "$folder/seeing" ${vision:+--vision "$vision"} --image "$tiny/image-1.png" --temp 0 -n 64 \
        "What is this?" >"$folder/want" 2>"$folder/err"
    check "the command sees a picture" [ -s "$folder/want" ]
    example picture "$folder/seeing" "$tiny/image-1.png" ${vision:+"$vision"}
    check "picture succeeds" [ $status = 0 ]
    check "picture writes what the command does" [ "$(cat "$folder/out")" = "$(cat "$folder/want")" ]
done
example picture "$stories" "$tiny/image-1.png"
check "a model that does not see says so" matches err '^PERIDOT_ERROR_UNSUPPORTED: .* does not see images'

example headers
check "C++ can use the headers" contains out "$("$peridot" --version | cut -d' ' -f2)"
for file in "$source"/tests/embed/*.c; do check "${file##*/} is a page" [ "$(wc -l <"$file")" -lt 60 ]; done
finish
