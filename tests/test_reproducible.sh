#!/usr/bin/env bash
# A release (tools/release) of a small tree, made twice and verified. Then that two builds in two folders install the
# same bytes: only with PERIDOT_TEST_ALL=1, as it builds twice, and on one driver.
. "$(dirname "$0")/command.sh"


export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x@x.invalid
export GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x@x.invalid GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory
export GIT_CONFIG_VALUE_0='*'
version=$("$peridot" --version | cut -d' ' -f2)

# release FOLDER OPTIONS...: of the tree in that folder.
release() {
    "$folder/$1/tools/release" "${@:2}" >"$folder/out" 2>"$folder/err"
    status=$?
}

# refuses TEXT FOLDER OPTIONS...: tools/release does not do that, and says TEXT.
refuses() {
    release "${@:2}"
    check "tools/release ${*:3}: refused" [ $status != 0 ]
    check "tools/release ${*:3}: says '$1'" contains err "$1"
}

# commit SUBJECT: of the tree in $folder/tree.
commit() { git -C "$folder/tree" add -A && git -C "$folder/tree" commit -qm "$1"; }

# A checkout with as much as a release takes, and two commits after a release before this one.
make_tree() {
    local tree=$folder/tree file
    mkdir "$tree"
    (cd "$source" && cp -r --parents CMakeLists.txt LICENSE include shaders/kernels.def src/base \
        tools/{release,libraries,packages,cmake,completions,python,third_party} tools/peridot/mpi "$tree")
    mkdir "$tree/models"
    echo x >"$tree/models/stories.gguf"
    printf '__pycache__/\n*.egg-info/\n/build*\n' >"$tree/.gitignore"
    git -C "$tree" init -q
    commit 'all: Begin'
    git -C "$tree" tag v0.0.1
    for file in one two; do
        echo $file >"$tree/src/base/$file"
        commit "gpu: Do <$file> & \"more\""
    done
    echo >>"$tree/src/base/two"
    commit 'Do what has no area'
}

# What other systems made: an archive whose program runs, a package, and a wheel whose program does not run here.
make_from() {
    local from=$folder/from top=$folder/peridot-linux-x86_64 deb=$folder/deb
    mkdir -p "$from" "$top"/{bin,share/doc/peridot/licences} "$deb"/{DEBIAN,usr/bin}
    { printf '#!/bin/sh\necho peridot %s\nexit\n' "$version"; head -c 2000 /dev/urandom | od; } >"$top/bin/peridot"
    echo x >"$top/share/doc/peridot/licences/peridot.txt"
    echo x >"$top/share/doc/peridot/licences/zlib.txt"
    echo 'zlib 1.2.3' >"$top/share/doc/peridot/licences/versions"
    tar -C "$folder" -czf "$from/peridot-linux-x86_64.tar.gz" peridot-linux-x86_64
    cp "$top/bin/peridot" "$deb/usr/bin"
    printf '%s: %s\n' Package peridot Version "$version" Architecture all Maintainer x Description x \
        >"$deb/DEBIAN/control"
    chmod -R go-w "$deb"
    dpkg-deb --root-owner-group -b "$deb" "$from/peridot_${version}_all.deb" >"$folder/out" 2>"$folder/err"
    python3 - "$from/peridot-$version-py3-none-win_amd64.whl" "$version" <<'END'
import os, sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    wheel.writestr("peridot/bin/peridot.exe", os.urandom(2000) + sys.argv[2].encode())
    wheel.writestr(f"peridot-{sys.argv[2]}.dist-info/METADATA", f"Name: peridot\nVersion: {sys.argv[2]}\n")
END
}

test_release() {
    local made=$folder/a/$version name
    git clone -q "$folder/tree" "$folder/elsewhere where"
    (umask 077; release tree "$version" --from "$folder/from" --to "$folder/a" --key "$folder/key"
    [ $status = 0 ])
    check "a release is made" [ $? = 0 ]
    release 'elsewhere where' "$version" --from "$folder/from" --to "$folder/b" --key "$folder/key"
    check "and another of the same commit elsewhere" [ $status = 0 ]
    check "both are the same" diff -r "$folder/a" "$folder/b"
    for name in "peridot-$version-source.tar.gz" "peridot-$version.tar.gz" peridot-linux-x86_64.tar.gz \
        "peridot_${version}_all.deb" "peridot-$version-py3-none-win_amd64.whl" SBOM.spdx.json NOTES.md; do
        check "SHA256SUMS has $name" grep -qF "  $name" "$made/SHA256SUMS"
    done
    check "the notes are what was done since the last release, by area" \
        diff <(tail -n +5 "$made/NOTES.md") - <<'END'
## gpu

- Do <two> & "more"
- Do <one> & "more"

## other

- Do what has no area
END
    check "which the page has as text" grep -qF 'Do &lt;one&gt; &amp; &quot;more' "$folder/a/index.html"
    check "it links each file" grep -qF "<a href=\"$version/peridot_${version}_all.deb\">" "$folder/a/index.html"
    check "and nothing of elsewhere" [ "$(grep -cE '(src|href)="[a-z]*:|url\(|@import' "$folder/a/index.html")" = 0 ]
    python3 - "$made/SBOM.spdx.json" >"$folder/out" 2>"$folder/err" <<'END'
import json, sys
document = json.load(open(sys.argv[1]))
packages = {p["SPDXID"]: p for p in document["packages"]}
for relation in document["relationships"]:
    if relation["relationshipType"] == "CONTAINS":
        holder, inner = packages[relation["spdxElementId"]], packages[relation["relatedSpdxElement"]]
        print(holder["name"], inner["name"], inner["versionInfo"], inner["licenseDeclared"])
END
    check "the list of what is inside has the archive's zlib" \
        contains out 'peridot-linux-x86_64.tar.gz zlib 1.2.3 Zlib'
    check "and the yyjson of the sources" matches out '^peridot-.*-source.tar.gz yyjson [0-9.]+ MIT$'
}

test_verify() {
    local made=$folder/a/$version
    release tree --verify "$made" --key "$folder/key.pub"
    check "a release is verified" [ $status = 0 ]
    release tree --verify "$made"
    check "without a key its signature must be whole" matches err 'Good "peridot" signature with ED25519 key'
    refuses 'is not signed by' tree --verify "$made" --key "$folder/other.pub"
    cp -r "$made" "$folder/c"
    echo >"$folder/c/more"
    refuses 'what its checksums do not name: more' tree --verify "$folder/c"
    rm "$folder/c/more"
    echo >>"$folder/c/NOTES.md"
    refuses 'is not what its checksums say' tree --verify "$folder/c"
    (cd "$folder/c" && sha256sum -- *[!Sg] >SHA256SUMS)
    refuses 'the signature of' tree --verify "$folder/c"
    refuses 'is not signed by' tree --verify "$folder/c" --key "$folder/key.pub"
    rm "$folder/c/SHA256SUMS.sig"
    refuses 'is not signed: there is no' tree --verify "$folder/c" --key "$folder/key.pub"
    sed -i 's|  NOTES|  ../NOTES|' "$folder/c/SHA256SUMS"
    refuses 'a line that is no checksum' tree --verify "$folder/c"
}

# from_with ARCHIVE_CHANGE: the folder x, whose archive has other contents.
from_with() {
    rm -rf "$folder/x" "$folder/z"
    mkdir "$folder/x" "$folder/z"
    cp -r "$folder/peridot-linux-x86_64" "$folder/z"
    (cd "$folder/z/peridot-linux-x86_64" && eval "$1")
    tar -C "$folder/z" -czf "$folder/x/peridot-linux-x86_64.tar.gz" peridot-linux-x86_64
    cp "$folder"/from/*.deb "$folder/x"
}

test_refused() {
    refuses 'is there already' tree "$version" --from "$folder/from" --to "$folder/a"
    refuses "CMakeLists.txt has version $version, not 0.0.9" tree 0.0.9 --to "$folder/d"
    refuses 'the key /none cannot be read' tree "$version" --to "$folder/d" --key /none
    refuses 'there is no option --form' tree "$version" --form x
    from_with 'sed -i "s/echo peridot.*/echo peridot 0.0.2/" bin/peridot'
    refuses "peridot says peridot 0.0.2, not $version" tree "$version" --from "$folder/x" --to "$folder/d"
    from_with 'sed -i "s/echo peridot.*/exit 1/" bin/peridot'
    refuses "peridot does not have the version $version" tree "$version" --from "$folder/x" --to "$folder/d"
    from_with 'echo x >share/doc/peridot/licences/liburgh.txt'
    refuses 'has liburgh, whose licence tools/libraries does not say' tree "$version" --from "$folder/x" \
        --to "$folder/d"
    from_with 'mv bin/peridot bin/other'
    refuses 'has no program' tree "$version" --from "$folder/x" --to "$folder/d"
    git -C "$folder/tree" tag "v$version" HEAD^
    refuses "the tag v$version is of another commit" tree "$version" --to "$folder/d"
    git -C "$folder/tree" tag -d "v$version" >"$folder/out"
    echo >"$folder/tree/src/base/three"
    refuses 'the tree differs from its commit: ?? src/base/three' tree "$version" --to "$folder/d"
    check "nothing is left of what was refused" [ ! -e "$folder/d" ]
}

# Recipes for other systems have this version, and the packages that tools/packages has.
test_recipes() {
    local recipes=$source/tools/packaging
    (. "$source/tools/packages" && awk '$1 == "demo" && $4 != "-" { print $4 }' <<<"$table" | sort) >"$folder/want"
    (. "$recipes/PKGBUILD" && printf '%s\n' "${depends[@]}" "${makedepends[@]}" "${optdepends[@]%%:*}" |
        grep -vx vulkan-driver | sort) >"$folder/out" 2>"$folder/err"   # whichever the GPU needs
    check "PKGBUILD has the packages of tools/packages" cmp "$folder/want" "$folder/out"
    check "and this version" [ "$(. "$recipes/PKGBUILD" && echo "$pkgver")" = "$version" ]
    mkdir "$folder/arch"
    ln -s "$(cd "$source" && pwd)" "$folder/arch/peridot-$version"
    ln -s "$(cd "$(dirname "$peridot")" && pwd)" "$folder/arch/build"
    (cd "$folder/arch" && pkgdir=$folder/arch/root && . "$recipes/PKGBUILD" && set -e && package) \
        >"$folder/out" 2>"$folder/err"
    check "its package() installs" [ $? = 0 ]
    check "the licence, too" [ -s "$folder/arch/root/usr/share/licenses/peridot/LICENSE" ]
    check "Containerfile has this version" grep -qx "ARG VERSION=$version" "$recipes/Containerfile"
    grep -oE '(mesa|lib)[a-z0-9-]+' "$recipes/Containerfile" | grep -vx library | while read -r name; do
        (. "$source/tools/packages" && grep -qE "^demo +$name " <<<"$table") || echo "$name"
    done >"$folder/out"
    check "and packages of tools/packages" [ ! -s "$folder/out" ]
}
test_recipes

if command -v git >"$folder/out" && command -v ssh-keygen >"$folder/out" && command -v dpkg-deb >"$folder/out" &&
    python3 -c 'import setuptools.command.bdist_wheel' 2>"$folder/err"; then
    for name in key other; do ssh-keygen -q -t ed25519 -N '' -f "$folder/$name"; done
    make_tree
    make_from
    test_release
    test_verify
    test_refused
else echo "skipped: a release needs git, ssh-keygen, dpkg-deb and setuptools"; fi

if [ ! "${PERIDOT_TEST_ALL:-}" ] || [[ ${VK_DRIVER_FILES:-lvp} != *lvp* ]] ||
    nm -D "$peridot" | grep -q __asan_init; then
    echo "skipped: two builds take minutes"
    finish
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
    if command -v dpkg-shlibdeps >"$folder/out" && command -v file >"$folder/out"; then   # Debian's packages, too
        (cd "$place/build" && SOURCE_DATE_EPOCH=1 cpack -G DEB) >"$folder/out" 2>"$folder/err"
        check "and makes packages" mv "$place"/build/*.deb "$place/installed"
    fi
    sleep 1   # which a clock would tell apart
done
diff -r "$folder/one/installed" "$folder/another/place/installed" >"$folder/out" 2>"$folder/err"
check "both are the same" [ $? = 0 ]
check "and more than headers" [ -x "$folder/one/installed/bin/peridot" ]
finish
