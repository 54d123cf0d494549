#!/usr/bin/env bash
# What the command writes its results into and what it reads them from: devices, FIFOs, links, closed descriptors.
. "$(dirname "$0")/command.sh"

golden=$goldens/gemma1
model=$goldens/gemma2-q8_0/model.gguf

convert() { run convert "$golden" --type f32 -o "$@"; }
mode_is() { [ "$(stat -c %a "$1")" = "$2" ]; }
is_whole() { cmp -s "$1" "$folder/whole.gguf"; }
is_empty() { [ -z "$(ls -A "$1")" ]; }

test_special() {
    local fifo=$folder/fifo got
    convert "$folder/whole.gguf"
    check "convert succeeds" [ $status = 0 ]
    if [ -c /dev/full ]; then
        fails_with 1 "No space left" convert "$golden" -o /dev/full
        check "/dev/full stays a device" [ -c /dev/full ]
    fi
    convert /dev/null
    check "/dev/null takes anything" [ $status = 0 ]
    check "and stays a device" [ -c /dev/null ]
    mkfifo "$fifo"
    cat "$fifo" >"$folder/read" &
    convert "$fifo"
    wait $!
    check "a FIFO is written into" [ $status = 0 ]
    check "its reader gets the file" is_whole "$folder/read"
    check "and it stays a FIFO" [ -p "$fifo" ]
    "$peridot" convert "$golden" --type f32 -o /dev/stdout 2>"$folder/err" | cat >"$folder/read"
    check "/dev/stdout is a pipe" is_whole "$folder/read"
    "$peridot" convert "$golden" --type f32 -o >(cat >"$folder/substituted") 2>"$folder/err"
    wait $! 2>/dev/null
    check "a process substitution gets the file" is_whole "$folder/substituted"
    echo before >"$folder/read"
    "$peridot" convert "$golden" --type f32 -o /dev/fd/7 7>>"$folder/read" 2>"$folder/err"
    { echo before; cat "$folder/whole.gguf"; } | cmp -s - "$folder/read"
    check "/dev/fd/7 is appended to where it appends" [ $? = 0 ]
    got=$(stat -c %i "$folder/read")
    { echo first; "$peridot" convert "$golden" --type f32 -o /proc/self/fd/1 2>"$folder/err"; } >"$folder/read"
    { echo first; cat "$folder/whole.gguf"; } | cmp -s - "$folder/read"
    check "/proc/self/fd/1 goes on where it is" [ $? = 0 ]
    check "and is not replaced" [ "$(stat -c %i "$folder/read")" = "$got" ]
    fails_with 1 "Bad file descriptor" convert "$golden" -o /dev/fd/0 </dev/null
    fails_with 1 "/dev/fd/99" convert "$golden" -o /dev/fd/99
}

test_links() {
    local f=$folder/links
    mkdir -p "$f/below"
    echo old >"$f/target"
    ln -s target "$f/link"
    ln -s link "$f/second"
    ln -s ../second "$f/below/third"
    convert "$f/below/third"
    check "a link is followed" is_whole "$f/target"
    check "and all stay" [ -L "$f/below/third" -a -L "$f/second" -a -L "$f/link" ]
    ln -s "$f/below/new" "$f/dangling"
    convert "$f/dangling"
    check "a dangling link makes its target" is_whole "$f/below/new"
    check "and stays as well" [ -L "$f/dangling" ]
    ln -s a "$f/b"; ln -s b "$f/a"
    fails_with 1 "Too many levels of symbolic links" convert "$golden" -o "$f/a"
    ln -s "$f" "$f/folder"
    fails_with 1 "it is a folder" convert "$golden" -o "$f/folder"
    convert "$f/folder/inside"
    check "folders may be links" is_whole "$f/inside"
    echo old >"$f/one"
    ln "$f/one" "$f/other"
    convert "$f/one"
    check "the other hard link keeps the old file" [ "$(cat "$f/other")" = old ]
    if [ "$(id -u)" = 0 ]; then
        mkdir -m 1777 "$f/shared"
        echo mine >"$f/victim"
        ln -s "$f/victim" "$f/shared/link"
        chown -h 12345 "$f/shared/link"
        fails_with 1 "shared/link" convert "$golden" -o "$f/shared/link"
        check "another's link in a shared folder is not followed" [ "$(cat "$f/victim")" = mine ]
    fi
}

test_modes() {
    local f=$folder/modes mode name
    mkdir "$f"
    for mode in 600 640 666 755; do
        echo old >"$f/x"
        chmod $mode "$f/x"
        (umask 077; convert "$f/x")
        check "mode $mode is kept" mode_is "$f/x" $mode
    done
    (umask 027; convert "$f/new")
    check "a new file has the umask's mode" mode_is "$f/new" 640
    if [ "$(id -u)" = 0 ]; then
        chown 12345:23456 "$f/x"
        convert "$f/x"
        check "the owner is kept" [ "$(stat -c %u:%g "$f/x")" = 12345:23456 ]
    else
        chmod a-w "$f/x"
        fails_with 1 "Permission denied" convert "$golden" -o "$f/x"
        mkdir -m 555 "$f/closed"
        fails_with 1 "folder $f/closed: " convert "$golden" -o "$f/closed/x"
    fi
    fails_with 1 "folder $f/none: " convert "$golden" -o "$f/none/x"
    name=$(printf 'n%.0s' {1..255})
    convert "$f/$name"
    check "the longest name there can be" is_whole "$f/$name"
}

# Nothing stays beside the file, whatever ends the command: also where files cannot be nameless, as without /proc.
test_left() {
    local f=$folder/left signal proc
    mkdir "$f"
    (ulimit -f 16; convert "$f/x"; echo $status >"$folder/status")
    check "a limit on sizes of files is a failure" [ "$(cat "$folder/status")" = 1 ]
    check "that is told" contains err "File too large"
    check "and leaves nothing" is_empty "$f"
    for proc in true 'mount -t tmpfs peridot-test /proc'; do
        unshare --mount true 2>/dev/null || [ "$proc" = true ] || continue
        for signal in INT TERM HUP QUIT ALRM USR1 USR2 XCPU; do
            with_proc "$proc" timeout -k 10 -s $signal 0.2 "$peridot" make --shape gemma3-1b --type f16 -o "$f/m.gguf"
            check "SIG$signal leaves nothing ($proc)" is_empty "$f"
        done
        with_proc "$proc" "$peridot" convert "$golden" --type f32 -o "$f/x"
        check "a file is written ($proc)" is_whole "$f/x"
        rm -f "$f/x"
    done
}

with_proc() {
    if [ "$1" = true ]; then "${@:2}"
    else unshare --mount bash -c "$1"' && "$@"' - "${@:2}"
    fi >"$folder/out" 2>"$folder/err"
}

# What is read is not replaced, by whatever name it goes.
test_sources() {
    local f=$folder/sources
    mkdir -p "$f/hf"
    cp "$folder/whole.gguf" "$f/x.gguf"
    ln "$f/x.gguf" "$f/hard.gguf"
    ln -s x.gguf "$f/soft.gguf"
    cp "$golden"/* "$f/hf"
    ln "$f/hf/model.safetensors" "$f/shard"
    (cd "$f" && fails_with 1 "the file that is read" convert x.gguf -o ./x.gguf --type q4_0
        echo $n_failed >"$folder/n")
    n_failed=$(cat "$folder/n")
    fails_with 1 "the file that is read" convert "$f/hard.gguf" -o "$f/x.gguf"
    fails_with 1 "the file that is read" convert "$f/x.gguf" -o "$f/soft.gguf"
    fails_with 1 "the file that is read" convert "$f/soft.gguf" -o "$f/../sources/hard.gguf"
    fails_with 1 "a file of the folder" convert "$f/hf" -o "$f/hf/model.safetensors"
    fails_with 1 "a file of the folder" convert "$f/hf" -o "$f/hf/config.json"
    fails_with 1 "a file of the folder" convert "$f/hf/" -o "$f/shard"
    check "the source is as it was" cmp -s "$f/hf/model.safetensors" "$golden/model.safetensors"
    check "and so is the file" is_whole "$f/x.gguf"
    run convert "$f/hf" -o "$f/hf/x.gguf"
    run convert "$f/hf" -o "$f/hf/x.gguf"
    check "a result beside the source can be replaced" [ $status = 0 ]
    echo 1,2,3 >"$f/ids"
    fails_with 1 "the file that is read" logits -m "$f/x.gguf" --tokens 1 --out "$f/hard.gguf"
    fails_with 1 "the file that is read" hidden -m "$f/hf" --tokens "@$f/ids" --out "$f/ids"
    fails_with 1 "the file that is read" hidden -m "$f/hf" --tokens - --out "$f/ids" <"$f/ids"
    fails_with 1 "a file of the folder" embed -m "$f/hf" -o "$f/hf/config.json" text
    fails_with 1 "the file that is read" embed -m "$f/x.gguf" -o "$f/ids" <"$f/ids"
    fails_with 1 "the file that is read" bench -m "$f/x.gguf" --save "$f/soft.gguf"
    check "the ids are as they were" [ "$(cat "$f/ids")" = 1,2,3 ]
}

# closed FDS ARGUMENTS...: as run, with these descriptors closed.
closed() {
    local fds
    case $1 in
        0) "$peridot" "${@:2}" 0<&- >"$folder/out" 2>"$folder/err" ;;
        1) "$peridot" "${@:2}" </dev/null 1>&- 2>"$folder/err" ;;
        2) "$peridot" "${@:2}" </dev/null >"$folder/out" 2>&- ;;
        12) "$peridot" "${@:2}" </dev/null 1>&- 2>&- ;;
        012) "$peridot" "${@:2}" 0<&- 1>&- 2>&- ;;
    esac
    status=$?
}

test_closed() {
    local fds command
    : >"$folder/out" >"$folder/err"
    for fds in 0 1 2 12 012; do
        closed $fds convert "$golden" --type f32 -o "$folder/closed.gguf"
        check "descriptors $fds closed: convert succeeds" [ $status = 0 ]
        check "descriptors $fds closed: the file is whole" is_whole "$folder/closed.gguf"
        closed $fds convert "$folder/none" -o "$folder/closed.gguf"
        check "descriptors $fds closed: a failure is one" [ $status = 1 ]
    done
    for command in --version --help "inspect $model" devices 'devices --json'; do
        closed 1 $command
        check "$command without a standard output fails" [ $status = 1 ]
        check "and says why" contains err "standard output: Bad file descriptor"
        closed 12 $command
        check "$command without both fails" [ $status = 1 ]
        closed 2 $command
        check "$command without a standard error succeeds" [ $status = 0 ]
        if [ -c /dev/full ]; then
            "$peridot" $command >/dev/full 2>"$folder/err"
            check "$command: a full disk is a failure" [ $? = 1 ]
            check "and is told" contains err "standard output: No space left on device"
        fi
        { sleep 0.05; exec "$peridot" $command 2>"$folder/err"; } | true
        check "$command: nobody reads" [ "${PIPESTATUS[0]}" = 141 -a ! -s "$folder/err" ]
        (trap '' PIPE; { sleep 0.05; exec "$peridot" $command 2>"$folder/err"; } | true; [ "${PIPESTATUS[0]}" = 1 ])
        check "$command: nobody reads, and SIGPIPE is ignored" [ $? = 0 ]
    done
    closed 0 tokenize -m "$model"
    check "tokenize without a standard input fails" [ $status = 1 ]
    check "and says so" contains err "standard input: Bad file descriptor"
    closed 1 tokenize -m "$model"
    check "tokenize without a standard output fails" [ $status = 1 ]
    closed 1 logits -m "$golden" --tokens 1,2 --out -
    check "logits without a standard output fail" [ $status = 1 ]
    closed 1 convert "$golden" -o /dev/stdout
    check "convert without the standard output it names fails" [ $status = 1 ]
}

# Only regular files and folders are models; what has no end is refused at some length.
test_endless() {
    local fifo=$folder/wait command
    mkfifo "$fifo"
    mkdir "$folder/odd"
    mkfifo "$folder/odd/config.json"
    for command in "inspect $fifo" "tokenize -m $fifo" "convert $fifo -o $folder/none.gguf" \
        "logits -m $fifo --tokens 1 --out -"; do
        timeout 10 "$peridot" $command </dev/null >"$folder/out" 2>"$folder/err"
        check "$command does not wait" [ $? = 1 ]
        check "but says what it is" contains err "$fifo: not a regular file"
    done
    timeout 10 "$peridot" inspect "$folder/odd" >"$folder/out" 2>"$folder/err"
    check "a folder with a FIFO for a configuration has none" [ $? = 1 ]
    [ -c /dev/zero ] || return
    fails_with 1 "/dev/zero: not a regular file" inspect /dev/zero
    fails_with 1 "/dev/zero: more than the 512 MiB" logits --tokens @/dev/zero --out -
    fails_with 1 "/dev/zero: more than the 512 MiB" perplexity -f /dev/zero
    fails_with 1 "standard input: more than the 512 MiB" run - </dev/zero
    fails_with 1 "a line of more than the 512 MiB" tokenize -m "$model" --lines </dev/zero
    echo 1,2 >"$fifo" &
    run logits -m "$golden" --tokens "@$fifo" --out "$folder/rows"
    check "ids may come from a FIFO" [ $status = 0 ]
}

# The cache folder is the user's alone, or not used.
test_cache() {
    local cache=$XDG_CACHE_HOME/peridot
    run hidden -m "$golden" --tokens 1 --out "$folder/rows"
    check "the cache folder is made for the user" mode_is "$cache" 700
    check "and its files" [ -z "$(find "$cache" -type f ! -perm 600)" -a -n "$(find "$cache" -type f)" ]
    chmod 777 "$cache"
    run hidden -m "$golden" --tokens 1 --out "$folder/rows"
    check "an open cache folder becomes private" mode_is "$cache" 700
    mv "$cache" "$cache.moved"
    ln -s "$cache.moved" "$cache"
    run hidden -m "$golden" --tokens 1 --out "$folder/rows"
    check "a linked cache folder is not used" [ $status = 0 ]
    check "which is said once" \
        [ "$(grep -c "^the cache folder is not used: $cache: it is a symbolic link$" "$folder/err")" = 1 ]
    rm "$cache"
    mv "$cache.moved" "$cache"
    [ "$(id -u)" = 0 ] || return
    chown 12345 "$cache"
    run hidden -m "$golden" --tokens 1 --out "$folder/rows"
    check "nor is another user's" contains err "the cache folder is not used: $cache: it belongs to another user"
    chown 0 "$cache"
}

test_special
test_links
test_modes
test_left
test_sources
test_closed
test_endless
test_cache
finish
