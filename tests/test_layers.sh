#!/usr/bin/env bash
# Includes point down only, and Vulkan stays in src/gpu. Arguments: the command (unused) and the source folder.
cd "$2" || exit 1
n_wrong=0

# Folder, and what its files may include; headers of the system and beside the file are free.
layers='
src/base       base
src/gpu        base gpu
src/format     base format
src/text       base format text
src/arch       base format arch
src/ops        base format gpu ops
src/engine     base format arch ops gpu engine
src/offline    base format text arch offline
src/selftest   base format gpu ops offline engine selftest
src/probe      base format gpu arch ops engine probe offline
src/api        base format text gpu arch ops engine offline selftest probe api
tools/peridot  base
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

while read -r line; do
    wrong "Vulkan outside src/gpu: $line"
done < <(grep -nrE '\b(Vk[A-Z]|vk[A-Z]|VK_)[A-Za-z_]+' include src tools/peridot --include='*.[ch]' | grep -v '^src/gpu/' || true)

[ $n_wrong = 0 ]
