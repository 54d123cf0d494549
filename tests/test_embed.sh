#!/usr/bin/env bash
# The programs of tests/embed, built as an embedder would, do what they say.
. "$(dirname "$0")/command.sh"

build=$(dirname "$peridot")/tests
stories=$source/models/stories.gguf

# example NAME ARGUMENTS...: as run, of an example.
example() {
    "$build/embed_$1" "${@:2}" >"$folder/out" 2>"$folder/err"
    status=$?
}
lines() { [ "$(wc -l <"$folder/out")" = "$1" ]; }

"$peridot" run -m "$stories" --temp 0.8 --top-k 40 --top-p 1 --min-p 0 --seed 1 -n 64 "Once upon a time" >"$folder/want" 2>/dev/null
example generate "$stories" "Once upon a time"
check "generate succeeds" [ $status = 0 ]
check "generate writes what the command does" [ "$(cat "$folder/out")" = "$(cat "$folder/want")" ]
example generate "$folder/none.gguf" "Once"
check "a failure has a name and a sentence" matches err '^PERIDOT_ERROR_IO: .*none.gguf: '

"$peridot" run -m "$stories" --temp 0 -n 24 "Once there was a king who" >"$folder/want" 2>/dev/null
printf 'Once there was a king who\nThe queen said\n' >"$folder/lines"
example chat "$stories" <"$folder/lines"
check "chat succeeds" [ $status = 0 ]
check "chat begins as the command does" [ "$(head -c "$(wc -c <"$folder/want")" "$folder/out")" = "$(cat "$folder/want")" ]
printf '\n' >>"$folder/want"
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
check "of which the first is what the command takes" \
    [ "$(head -1 "$folder/out" | cut -d' ' -f1)" = "$("$peridot" run -m "$stories" --ids --temp 0 -n 1 "Once upon a" 2>/dev/null)" ]
check "with its probability" matches out '^[0-9]+ 0\.9[0-9]{3}  ?time$'

example headers
check "C++ can use the headers" contains out "$("$peridot" --version | cut -d' ' -f2)"
for file in "$source"/tests/embed/*.c; do check "${file##*/} is a page" [ "$(wc -l <"$file")" -lt 60 ]; done
finish
