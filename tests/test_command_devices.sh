#!/usr/bin/env bash
# The command line's `devices`, and what it tells of compiled kernels: on any device, with statistics or without.
. "$(dirname "$0")/command.sh"

# What the lines begin with, sorted, each once; and the names that they should begin with.
kernels_in() { sed -n '2,$s/^\([a-z]\S*\) .*/\1/p' "$folder/$1" | sort -u; }
kernel_list() { kernels | sort -u; }

# Where there is no Python, nobody looks.
is_json() {
    ! command -v python3 >/dev/null || python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$folder/$1"
}

test_list() {
    run devices
    check "devices succeeds" [ $status = 0 ]
    check "devices says what is usable" matches out '^   usable    yes'
    run devices --json
    check "devices --json succeeds" [ $status = 0 ]
    check "devices --json is JSON" is_json out
}

# A device with a subset of Vulkan, as MoltenVK's: the loader lists its driver to those who ask for such.
test_portability() {
    local driver=${VK_DRIVER_FILES:-/usr/share/vulkan/icd.d/lvp_icd.json} layers
    driver=${driver%%:*}
    layers=$(dirname "$peridot")/tests/layers
    [ -f "$driver" ] || { echo "skipped: portability, without $driver"; return; }
    run run -n 4 --temp 0 "The little fox"
    cp "$folder/out" "$folder/text"
    sed -E 's|("library_path": *")\./|\1'"$(dirname "$driver")"'/|; s|"library_path"|"is_portability_driver": true, &|
        s|("file_format_version": *)"[^"]*"|\1"1.0.1"|' "$driver" >"$folder/driver.json"
    export VK_DRIVER_FILES=$folder/driver.json VK_ADD_LAYER_PATH=$layers
    export VK_INSTANCE_LAYERS=VK_LAYER_PERIDOT_portability
    run devices
    check "a portability device is listed" [ $status = 0 ]
    check "what it lacks is one sentence" [ "$(grep -c '^   subset    of Vulkan without ' "$folder/out")" = 1 ]
    check "which names it" matches out ' without pointPolygons, samplerMipLodBias, tess.*, triangleFans, which '
    run devices --json
    check "and so does --json" matches out '"subset_lacks": "pointPolygons, .*, triangleFans",$'
    run run -n 4 --temp 0 "The little fox"
    check "it writes the same text" cmp -s "$folder/out" "$folder/text"
}

# machine VENDOR RELEASE FILES...: a system in $PERIDOT_SYSTEM_ROOT, with a bridge, a network card and perhaps a GPU of
# that PCI vendor ("": none) on its bus, an os-release, and empty files.
machine() {
    local bus=$PERIDOT_SYSTEM_ROOT/sys/bus/pci/devices path
    rm -rf "$PERIDOT_SYSTEM_ROOT"
    mkdir -p "$bus"/0000:0{0,1,2}:00.0 "$PERIDOT_SYSTEM_ROOT/etc"
    echo 0x060000 | tee "$bus/0000:00:00.0/class" >/dev/null
    echo 0x020000 | tee "$bus/0000:01:00.0/class" >/dev/null
    echo 0x8086 | tee "$bus"/0000:0{0,1}:00.0/vendor >/dev/null
    if [ "$1" ]; then
        echo 0x030200 >"$bus/0000:02:00.0/class"
        echo "$1" >"$bus/0000:02:00.0/vendor"
    fi
    printf '%b' "$2" >"$PERIDOT_SYSTEM_ROOT/etc/os-release"
    for path in "${@:3}"; do
        mkdir -p "$PERIDOT_SYSTEM_ROOT$(dirname "$path")"
        : >"$PERIDOT_SYSTEM_ROOT$path"
    done
}
advice() { grep '^device: this machine has ' "$folder/err"; }
advises() { advice | grep -qF -e "$1" || failed "the advice has '$1'"; n_checks=$((n_checks + 1)); }

# Where Vulkan shows no GPU, a line says what would let it use the one there is.
test_advice() {
    local icd=/usr/share/vulkan/icd.d
    export PERIDOT_SYSTEM_ROOT=$folder/system
    run run -n 1 x
    if ! matches err '^device: .*: no GPU found, running on the CPU$'; then
        echo "skipped: advice on drivers, as there is a GPU"
        unset PERIDOT_SYSTEM_ROOT
        return
    fi
    machine "" 'ID=debian\n'
    run run -n 1 x
    check "without a GPU there is no advice" [ "$(grep -c '^device: ' "$folder/err")" = 1 ]
    machine 0x1002 'NAME="Arch Linux"\nID=arch\n'
    run run -n 1 x
    advises "an AMD GPU; to use it, install its Vulkan driver: sudo pacman -S vulkan-radeon"
    run devices
    advises "an AMD GPU; to use it, install its Vulkan driver: sudo pacman -S vulkan-radeon"
    run run -n 1 --device 0 x
    check "who asks for a device gets no advice" [ "$(grep -c '^device: ' "$folder/err")" = 1 ]
    VK_DRIVER_FILES=/nonexistent run run -n 1 x
    check "it ends the sentence of a failure" \
        matches err '^peridot: no Vulkan .*; this machine has an AMD GPU; .* sudo pacman -S vulkan-radeon$'
    machine 0x10de 'ID=linuxmint\nID_LIKE="ubuntu debian"\n' $icd/nouveau_icd.json
    run devices
    advises "an NVIDIA GPU; to use it, install its Vulkan driver: sudo ubuntu-drivers install"
    machine 0x10de 'ID=debian\n'
    run devices
    advises "sudo apt install nvidia-driver"
    machine 0x8086 'VERSION_ID=42\nID="fedora"'
    run devices
    advises "an Intel GPU; to use it, install its Vulkan driver: sudo dnf install mesa-vulkan-drivers"
    machine 0x1002 'ID="opensuse-tumbleweed"\nID_LIKE="opensuse suse"\n'
    run devices
    advises "sudo zypper install libvulkan_radeon"
    machine 0x8086 'ID=haiku\nID_LIKE=debianish\n'
    run devices
    advises "install its Vulkan driver: Mesa's ANV"
    machine 0x1002 'ID=debian\n' $icd/radeon_icd.x86_64.json
    run devices
    advises "an AMD GPU, whose driver is installed, but there is no /dev/dri/renderD*"
    machine 0x1002 'ID=debian\n' $icd/radeon_icd.json /dev/dri/card0 /dev/dri/renderD128
    VK_ICD_FILENAMES=$VK_ICD_FILENAMES run devices
    advises "the environment variable VK_"
    unset PERIDOT_SYSTEM_ROOT
}

test_table() {
    run devices --pipelines
    cp "$folder/out" "$folder/table"
    check "--pipelines succeeds" [ $status = 0 ]
    check "--pipelines has a title" matches table '^kernel +specialisation +subgroup '
    check "--pipelines names every kernel" [ "$(kernels_in table)" = "$(kernel_list)" ]
    check "a decode step's attention, with and without norms of q and k" \
        [ "$(grep -cE '^attention_(rows_)?f16 +[0-9]+,256,4,4,[0-9]+,1,[01][ ,]' "$folder/table")" = 1 ]
    check "a matrix before a gated unit, GELU and SiLU" \
        [ "$(sed -nE 's/^matvec_(rows_)?q6_k +([0-9]+,){6}([0-9]+).*/\3/p' "$folder/table" | sort -u | tr -d '\n')" = \
            012 ]
    check "no pipeline is there twice" \
        [ -z "$(grep -E '^[a-z]' "$folder/table" | awk '{print $1, $2}' | sort | uniq -d)" ]
    if grep -qE '^[a-z0-9_]+ +\S+ +[0-9]+ ' "$folder/table"; then
        check "statistics need no excuse" [ ! -s "$folder/err" ]
    else
        check "a driver without statistics is told" contains err 'no statistics of compiled kernels'
    fi
}

# All kernels once more: without statistics, that shows nothing that is not in the table, and takes longest.
test_json() {
    local n
    run devices --pipelines --assembly --json
    check "--pipelines --assembly --json succeeds" [ $status = 0 ]
    check "--pipelines --assembly --json is JSON" is_json out
    n=$(grep -c '"assembly": ' "$folder/out")
    check "each pipeline has its assembly, or none where the driver shows none" \
        [ "$n" = 0 -o "$n" = "$(grep -c '"kernel": ' "$folder/out")" ]
    check "it has a row for each of the table" \
        [ "$(grep -c '"kernel": ' "$folder/out")" = \
            "$(sed 1d "$folder/table" | grep -E '^[a-z]' | grep -vc ' is not used ')" ]
    for key in device driver driver_info pipelines unused; do check "it has $key" matches out "^  \"$key\": "; done
}

test_usage() {
    fails_with 2 --pipelines devices --device 0
    fails_with 2 --pipelines devices --assembly
    fails_with 2 --pipeline devices --pipeline
    fails_with 1 'no such device' devices --pipelines --device 'no such device'
    fails_with 1 'no such device' devices --pipelines --json --device 'no such device'
    PERIDOT_DEVICE='no such device' fails_with 1 'no such device' devices --pipelines
}

test_list
test_advice
# Every pipeline of every model takes half a minute; tools/pipelines has the same of the GPUs.
[ -z "${PERIDOT_TEST_ALL:-}" ] || test_table
[ -z "${PERIDOT_TEST_ALL:-}" ] || test_json
test_usage
test_portability
finish
