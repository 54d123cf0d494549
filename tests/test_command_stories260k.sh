#!/usr/bin/env bash
# A real trained Llama of 260,000 parameters writes its known story, byte for byte, from the GGUF file and from the
# Hugging Face directory. The model is not part of the project: without it there is nothing to test.
set -u
. "$(dirname "$0")/command.sh"

data=${PERIDOT_SHARED:-}/data/stories260K   # of CMake's PERIDOT_SHARED
if [ ! -e "$data/expected.txt" ]; then
    echo "skipped: there is no $data"
    exit 0
fi

for model in "$data/stories260K.gguf" "$data/hf"; do
    run run -m "$model" --raw --temp 0 -n 200 ""
    check "$model: status 0" [ $status = 0 ]
    check "$model: its story" cmp -s "$folder/out" <(cat "$data/expected.txt"; echo)
    run logits -m "$model" --tokens 1,403,407,261,378 --out "$folder/logits.f32"
    check "$model: five rows of 512 logits" size_is "$folder/logits.f32" 10240
    mv "$folder/logits.f32" "$folder/$(basename "$model").f32"
done
check "both forms: the same logits" cmp -s "$folder/stories260K.gguf.f32" "$folder/hf.f32"
finish
