#!/usr/bin/env bash
# The page of peridot serve in Chromium: tests/page.py drives it.
. "$(dirname "$0")/command.sh"

for program in chromedriver python3; do
    command -v $program >/dev/null || { echo "skipped: $program is not there"; exit 0; }
done

# started NAME PATTERN: what the pattern's group finds in the output of a process that was just started.
started() {
    local found
    for _ in $(seq 600); do
        found=$(sed -nE "s|$2|\\1|p" "$folder/$1")
        if [ "$found" ]; then echo "$found"; return; fi
        sleep 0.1
    done
    return 1
}

HOME=$folder chromedriver --port=0 >"$folder/driver" 2>&1 &
driver=$!
"$peridot" serve --port 0 >"$folder/out" 2>"$folder/err" &
server=$!
"$(dirname "$peridot")/tests/write_thinkers" "$folder"
"$peridot" serve -m "$folder/thinker.gguf" --port 0 >"$folder/out" 2>"$folder/thinker" &
thinker=$!
cat >"$folder/tools.json" <<END
{"tools": [{"name": "add", "description": "Adds two numbers.", "timeout": 90, "command": ["sh", "-c",
    "if [ -e $folder/slow ]; then echo \$\$ >$folder/slow; exec sleep 60; fi; cat >>$folder/arguments; echo 42"],
    "parameters": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"]}}]}
END
"$peridot" serve -m "$folder/caller.gguf" --tools "$folder/tools.json" --port 0 >"$folder/out" 2>"$folder/caller" &
caller=$!
make_seer "$folder/seer"
"$peridot" serve -m "$folder/seer" --port 0 >"$folder/out" 2>"$folder/sees" &
seer=$!
"$peridot" serve -m "$goldens/llama/model.gguf" --lora "$goldens/lora/llama/first" \
    --lora "$goldens/lora/llama/second.gguf" --port 0 >"$folder/out" 2>"$folder/adapts" &
adapted=$!
trap 'kill $driver $server $thinker $caller $seer $adapted 2>/dev/null; wait; rm -rf "$folder"' EXIT
port=$(started driver '.*started successfully on port ([0-9]+).*')
check "chromedriver starts" [ "$port" ]
url=$(started err '^serving .* at (http:[^ ]*): .*')
check "the server starts" [ "$url" ]
thinker_url=$(started thinker '^serving .* at (http:[^ ]*): .*')
check "and that of a model that thinks" [ "$thinker_url" ]
caller_url=$(started caller '^serving .* at (http:[^ ]*): .*')
check "and that of one that calls tools" [ "$caller_url" ]
seer_url=$(started sees '^serving .* at (http:[^ ]*): .*')
check "and that of one that sees" [ "$seer_url" ]
adapted_url=$(started adapts '^serving .* at (http:[^ ]*): .*')
check "and that of one with adapters" [ "$adapted_url" ]
python3 "$source/tests/page.py" "http://127.0.0.1:$port" "$url/" "$thinker_url/" \
    "$caller_url/" "$seer_url/" "$adapted_url/" "$folder" \
    ${PERIDOT_SCREENSHOTS:+"$PERIDOT_SCREENSHOTS"} \
    >"$folder/out" 2>&1
check "the page works" [ $? = 0 ]
finish
