#!/usr/bin/env bash
# Rooms: includes and uses of symbols point down only, each room has one door, and Vulkan stays in src/gpu. Arguments:
# the command, beside which the object files are, and the source folder.
objects=$(cd "$(dirname "$1")" && pwd)/CMakeFiles
cd "$2" || exit 1
n_wrong=0

# Rooms, from below, and what the files of each may include and use beside its own: other rooms by their doors. Those of
# the library are folders of src; those of the command come after them. A room may have several lines.
layers='
base
format                base
picture               base
gpu                   base
arch                  base format
ops                   base format gpu
grammar               base format
engine/load           base format gpu arch ops
engine/ranks          base grammar
engine/vision         base picture format gpu arch ops engine/load
engine/memory         base format gpu arch ops engine/ranks
engine/sequence       base format gpu arch ops engine/load engine/ranks engine/vision engine/memory grammar
engine/pass           base format gpu arch ops grammar engine/load engine/ranks engine/memory engine/sequence
engine/rounds         base format gpu arch ops grammar engine/load engine/ranks engine/vision engine/memory
engine/rounds         engine/sequence engine/pass
text/template         base format
text                  base format text/template
grammar/calls         base format grammar
offline               base format arch text
selftest              base format gpu ops engine/sequence
probe                 base format gpu arch ops engine/load engine/vision engine/memory engine/sequence engine/pass
probe                 engine/rounds offline
api                   base format picture gpu arch ops grammar grammar/calls text offline selftest probe
api                   engine/load engine/ranks engine/vision engine/memory engine/sequence engine/pass engine/rounds
'
command_layers='
base                  src/base
console               base
models                base console
toolbox               base console
report                base
cli                   base console models
bench                 base console cli report
mpi                   base console cli
chat                  base console cli toolbox
serve/common          base
serve/job             base cli models serve/common
serve/pictures        base serve/common serve/job
serve/wire            base cli serve/common serve/job serve/pictures
serve/stages          base console toolbox models cli serve/common serve/job serve/pictures serve/wire
serve/http            base console toolbox models cli serve/common serve/job serve/pictures serve/wire serve/stages
commands              base console models cli chat
'

wrong() {
    n_wrong=$((n_wrong + 1))
    printf '%s\n' "$*"
}

# Each line of stdin is wrong.
all_wrong() { while read -r line; do wrong "$line"; done; }

# check_rooms ROOT LAYERS < lines "FILE ROOM WHAT": a file uses something of a room, which must be its own or below it.
check_rooms() {
    all_wrong < <(awk -v root="$1/" -v layers="$2" '
        BEGIN {
            n = split(layers, rows, "\n")
            for (i = 1; i <= n; i++) {
                k = split(rows[i], rooms, " ")
                for (j = 1; j <= k; j++) may[rooms[1], rooms[j]] = 1
            }
        }
        {
            own = substr($1, length(root) + 1)
            sub(/\/[^\/]*$/, "", own)
            what = $0
            sub(/^[^ ]* [^ ]* /, "", what)
            if (!((own, $2) in may)) print $1 " uses " what ", which is not below it"
        }')
}

# includes_of ROOT: lines "FILE ROOM HEADER" of what files include of rooms: a header of src by its path there, a header
# of the command by the path from the file. A room "?" has headers that are in neither.
includes_of() {
    grep -roE '^#include "[^"]+"' "$1" --include='*.[ch]' --include='*.cc' | sed -E 's/:#include "(.*)"/ \1/' |
        while read -r file include; do
            path=${file%/*}/$include
            if [ "$1" = src ] && [ -f "src/$include" ]; then path=src/$include
            elif [ ! -f "$path" ]; then
                echo "$file ? $include"
                continue
            fi
            while [[ $path == */../* ]]; do
                before=/${path%%/../*}
                path=${before%/*}/${path#*/../}
                path=${path#/}
            done
            path=${path#"$1"/}
            echo "$file ${path%/*} $path"
        done
}
for root in src tools/peridot; do
    includes=$(includes_of $root)
    [ $root = src ] && order=$layers || order=$command_layers
    check_rooms $root "$order" < <(grep -v -e "^$root/windows\.c " -e ' ? ' <<<"$includes")
    while read -r file room path; do
        own=${file#"$root"/}
        case $room:$path in
        \?:peridot.h | \?:peridot_tools.h) ;;
        \?:*) [ $root = src ] || wrong "$file includes $path, which is not public" ;;
        *_.h) [ "${own%/*}" = "$room" ] || wrong "$file includes $path, which is private" ;;
        esac
    done <<<"$includes"
done

# A folder has one door and at most one private header, and so few files that one can look over them.
while read -r folder; do
    door=${folder##*/}
    for header in "$folder"/*.h; do
        case ${header##*/} in
        "$door.h" | "${door}_.h" | sentencepiece.h | '*.h') ;;   # the bridge to C++ has a door of its own
        *) wrong "$header is neither the door of its folder nor its private header" ;;
        esac
    done
    n=$(find "$folder" -maxdepth 1 -name '*.[ch]' -o -maxdepth 1 -name '*.cc' | wc -l)
    [ "$n" -le 20 ] || wrong "$folder has $n files: at most 20"
done < <(find src tools/peridot -type d)
n=$(find src tools/peridot -name '*.[ch]' -o -name '*.cc' | wc -l)
[ "$n" -le 400 ] || wrong "src and tools/peridot have $n C files: at most 400"

# The page's scripts share one scope, where the later of two functions would silently stand for both.
twice=$(sed -nE 's/^(async )?function\*? ([A-Za-z_0-9]+).*/\2/p' tools/peridot/serve/page/*.js | sort | uniq -d)
[ -z "$twice" ] || wrong "the page has several functions $twice"

# What README says of how large it is: of what runs a model, with its shaders, and of what text is.
lines_of() { find "$@" -type f -regex '.*\.\(c\|h\|cc\|comp\|glsl\|def\)' -exec cat {} + | wc -l; }
runs=$(lines_of src/{base,format,picture,gpu,arch,ops,engine,api} shaders)
texts=$(lines_of src/text src/grammar)
[ "$runs" -le 37850 ] || wrong "what runs a model has $runs lines: at most 37,850"
says="$(((runs + 500) / 1000)),000 lines of C and GLSL run a model, and $(((texts + 500) / 1000)),000"
grep -qF "$says" README.md || wrong "README does not say: $says"

# Kernels say what is their own: the walk of a tiled product over the columns, and of attention over the keys, with what
# its running softmax makes of a new maximum, stand once each.
while read -r pattern file; do
    found=$(grep -lF -e "$pattern" shaders/matmul* shaders/attention* | tr '\n' ' ')
    [ "$found" = "shaders/$file " ] || wrong "$pattern is to stand in shaders/$file alone, and is in: $found"
done <<'END'
prepare_weights() matmul.glsl
slots_of_tile( attention.glsl
exp(maximum attention.glsl
END
long=$(find shaders include src tests tools/peridot -regex '.*\.\(c\|h\|cc\|comp\|glsl\|def\)' -exec \
    awk 'length > 120 { print FILENAME ":" FNR }' {} +)
[ ! "$long" ] || wrong "lines of more than 120 columns: $long"

# uses_in FOLDERS...: of the object files there, lines "FILE SYMBOL FILE": a source file, a symbol it uses, and the
# source file that defines it.
uses_in() {
    find "$@" -name '*.o' | while read -r object; do
        source=${object#*.dir/}
        [ -f "${source%.o}" ] && nm -AP "$object"
    done | awk '
    { file = $1; sub(/^.*\.dir\//, "", file); sub(/\.o:$/, "", file) }
    $3 == "U" { user[++n] = file; used[n] = $2 }
    $3 ~ /^[TDBRC]$/ { definer[$2] = file }
    END {
        for (i = 1; i <= n; i++)
            if (used[i] in definer && definer[used[i]] != user[i]) print user[i], used[i], definer[used[i]]
    }'
}
uses=$(uses_in "$objects"/peridot_{base,lib}.dir)
command_uses=$(uses_in "$objects/peridot_command.dir")
[ "$uses" ] && [ "$command_uses" ] || wrong "no object files in $objects"

check_uses() {   # check_uses ROOT LAYERS < lines of uses_in
    check_rooms "$1" "$2" < <(sort -u | awk -v root="$1/" '
        index($1, root) == 1 && index($3, root) == 1 {
            room = substr($3, length(root) + 1)
            if (sub(/\/[^\/]*$/, "", room)) print $1, room, $2 " of " $3
        }')
}
check_uses src "$layers" <<<"$uses"
# commands.c lists all commands, which lie above it.
check_uses tools/peridot "$command_layers" < <(grep -v "^tools/peridot/cli/commands\.c " <<<"$command_uses")

# Variables that can change, of the library: the loader, found once; what the handler of a process's SIGBUS looks up.
# The error sentence is in .tbss, as each thread has its own.
while read -r file variable; do
    [ "$file" = src/gpu/instance.c ] || [ "$file" = src/base/map.c ] || wrong "$file has a mutable global: $variable"
done < <(find "$objects"/peridot_{base,lib}.dir/src -name '*.o' | while read -r object; do
    nm -f sysv "$object" | awk -F '|' -v file="${object#*.dir/}" '
        $4 ~ /OBJECT/ && $1 !~ /^__odr_asan/ &&
        $7 ~ /^(\.data|\.bss|\*COM\*)$/ { sub(/\.o$/, "", file); print file, $1 }'
done)

while read -r line; do
    wrong "Vulkan outside src/gpu: $line"
done < <(grep -nrE '(^|[^"A-Za-z0-9_])(Vk[A-Z]|vk[A-Z]|VK_)[A-Za-z_]+' include src tools/peridot --include='*.[ch]' |
    grep -v '^src/gpu/' || true)

# So it is with libcurl: one client has what is trusted, what is bounded and what a failure is called.
while read -r line; do
    wrong "libcurl outside tools/peridot/base/http.c: $line"
done < <(grep -rnE '\b(curl/|curl_|CURL)' src tools/peridot --include='*.[ch]' |
    grep -v '^tools/peridot/base/http\.c:' || true)

# A weight type that nothing does anything of its own with is told in its row alone, which other places expand.
while read -r line; do
    wrong "a type is told in shaders/types.def alone: $line"
done < <(grep -rnE '\b(PD|W)_(Q5_1|IQ2_XXS)\b' src tools/peridot shaders |
    grep -v -e '^shaders/weights_lookup\.glsl:' -e '^src/offline/mixes\.c:' || true)

[ $n_wrong = 0 ]
