#!/usr/bin/env bash
# Includes and uses of symbols point down only, private headers are private, the object files of library and command
# have no cycles, and Vulkan stays in src/gpu. Arguments: the command, beside which the object files are, and the source
# folder.
objects=$(cd "$(dirname "$1")" && pwd)/CMakeFiles
cd "$2" || exit 1
n_wrong=0

# Folder, and what its files may include and use; headers of the system and beside the file are free.
layers='
src/base       base
src/gpu        base gpu
src/format     base format
src/picture    base picture
src/text       base format text
src/arch       base format arch
src/grammar    base format grammar
src/grammar/calls base format grammar
src/ops        base format gpu ops
src/engine     base format picture arch ops gpu grammar engine
src/offline    base format text arch offline
src/selftest   base format gpu ops engine selftest
src/probe      base format gpu arch ops engine probe offline
src/api        base format picture text grammar gpu arch ops engine offline selftest probe api
tools/peridot  models toolbox
'

# Cycles that are still there: a line each, its files sorted. Any other fails, and so does a line that is no cycle any
# more.
known_cycles='
'

wrong() {
    n_wrong=$((n_wrong + 1))
    printf '%s\n' "$*"
}

while read -r folder allowed; do
    [ "$folder" ] || continue
    while read -r place include; do
        case " $allowed " in
        *" ${include%%/*} "*) ;;
        *) wrong "$place includes $include, which is not below $folder" ;;
        esac
    done < <(grep -nroE '^#include "[a-z_]+/[a-z_./]+"' "$folder" | sed -E 's/:#include "(.*)"/ \1/')
done <<<"$layers"

# A room's private header, its name with a line below, is nobody else's.
while IFS=: read -r place _ include; do
    include=${include#*\"}
    include=${include%\"}
    [ "${place%/*}" = "src/${include%/*}" ] || wrong "$place includes $include, which is private"
done < <(grep -nroE '^#include "[a-z_/]+_\.h"' src)

# The command and the examples of embedding see the public headers, what is beside them, and no more.
while IFS=: read -r place _ include; do
    include=${include#*\"}
    include=${include%\"*}
    case $include in
    peridot.h | peridot_tools.h) ;;
    *) [ -f "${place%/*}/$include" ] || wrong "$place includes $include, which is not public" ;;
    esac
done < <(grep -rnE '^#include "' tools/peridot tests/embed --include='*.[ch]' --include='*.cc')

# uses_in FOLDER: of the object files there, lines "FILE SYMBOL FILE": a source file, a symbol it uses, and the source
# file that defines it.
uses_in() {
    find "$1" -name '*.o' | while read -r object; do
        source=${object#"$1/"}
        [ -f "${source%.o}" ] && nm -AP "$object"
    done | awk -v skip=$((${#1} + 2)) '
    { file = substr($1, skip); sub(/\.o:$/, "", file) }
    $3 == "U" { user[++n] = file; used[n] = $2 }
    $3 ~ /^[TDBRC]$/ { definer[$2] = file }
    END {
        for (i = 1; i <= n; i++)
            if (used[i] in definer && definer[used[i]] != user[i]) print user[i], used[i], definer[used[i]]
    }'
}
uses=$(uses_in "$objects/peridot_lib.dir")
command_uses=$(uses_in "$objects/peridot_command.dir")
[ "$uses" ] && [ "$command_uses" ] || wrong "no object files in $objects"

while read -r user symbol definer; do
    folder=$(cut -d/ -f1,2 <<<"$user")
    room=${definer#src/}
    allowed=${layers#*$'\n'"$folder "}
    case " ${allowed%%$'\n'*} " in
    *" ${room%%/*} "*) ;;
    *) wrong "$user uses $symbol of $definer, which is not below $folder" ;;
    esac
done < <(sort -u <<<"$uses")

# Strongly connected components of more than one file, each on a line, sorted.
cycles=$(awk '
    { to[$1] = to[$1] " " $3 }
    function walk(from, at,    n, next_ones, i) {
        n = split(to[at], next_ones)
        for (i = 1; i <= n; i++)
            if (!((from, next_ones[i]) in reach)) {
                reach[from, next_ones[i]] = 1
                walk(from, next_ones[i])
            }
    }
    END {
        for (file in to) walk(file, file)
        for (a in to)
            for (b in to)
                if ((a, b) in reach && (b, a) in reach) print a, b
    }' <<<"$uses"$'\n'"$command_uses" | sort | awk '
    $1 != last { if (NR > 1) print line; line = ""; last = $1 }
    { line = line (line == "" ? "" : " ") $2 }
    END { if (NR) print line }' | sort -u)
while read -r cycle; do
    [ ! "$cycle" ] || grep -qxF "$cycle" <<<"$known_cycles" || wrong "these files use one another in a cycle: $cycle"
done <<<"$cycles"
while read -r cycle; do
    [ ! "$cycle" ] || grep -qxF "$cycle" <<<"$cycles" || wrong "no cycle any more, remove it from the list: $cycle"
done <<<"$known_cycles"

# Variables that can change, of the library: the loader, found once; what the handler of a process's SIGBUS looks up.
# The error sentence is in .tbss, as each thread has its own.
while read -r file variable; do
    [ "$file" = src/gpu/instance.c ] || [ "$file" = src/base/map.c ] || wrong "$file has a mutable global: $variable"
done < <(find "$objects/peridot_lib.dir/src" -name '*.o' | while read -r object; do
    nm -f sysv "$object" | awk -F '|' -v file="${object#"$objects/peridot_lib.dir/"}" '
        $4 ~ /OBJECT/ && $1 !~ /^__odr_asan/ &&
        $7 ~ /^(\.data|\.bss|\*COM\*)$/ { sub(/\.o$/, "", file); print file, $1 }'
done)

while read -r line; do
    wrong "Vulkan outside src/gpu: $line"
done < <(grep -nrE '(^|[^"A-Za-z0-9_])(Vk[A-Z]|vk[A-Z]|VK_)[A-Za-z_]+' include src tools/peridot --include='*.[ch]' |
    grep -v '^src/gpu/' || true)

[ $n_wrong = 0 ]
