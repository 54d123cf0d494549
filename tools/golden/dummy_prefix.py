#!/usr/bin/env python3
"""Makes tests/golden/dummy-prefix.json: texts with control tokens in them, and the ids that Llama 2's vocabulary gives:
with a space before each stretch of text, as its published tokenizer.json has it ("legacy"); before each that does not
begin with one ("prepend_scheme": "always"); before the first alone ("legacy": false); and before none
("add_prefix_space": false). The template writes text i for a message "i".

    python3 tools/golden/dummy_prefix.py [FOLDER]     FOLDER has llama2.model; ../shared/data/tokenizers when not named

Needs transformers 5, sentencepiece and protobuf.
"""
import json
import pathlib
import shutil
import sys
import tempfile

from chat import TOP, as_published
from transformers import LlamaTokenizer, PreTrainedTokenizerFast

TEXTS = ["<s>[INST] a [/INST] b</s>[INST] c [/INST]", "<|user|>\nhi</s>\n<|assistant|>\n",
         "<s>[INST] a [/INST] b </s><s>[INST] c [/INST]", "a</s>  b", "a</s> b", "a</s>b", "</s>\n", "</s></s> a",
         "<s>", "<s>  x", "[INST]", " lead", "  lead2", "\n<s>\n", "<unk> a", "\u00e9</s> \u0436"]


def load(path, config):
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(path, pathlib.Path(folder) / "tokenizer.model")
        return LlamaTokenizer.from_pretrained(folder, **config)


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else TOP.parent / "shared" / "data" / "tokenizers"
    path = folder / "llama2.model"
    published = as_published(load(path, {"legacy": True}).backend_tokenizer, path)
    model = json.loads(published.to_str())["model"]
    tokenizers = {"each": PreTrainedTokenizerFast(tokenizer_object=published)}
    for name, config in (("always", {"legacy": True}), ("first", {"legacy": False}),
                         ("none", {"legacy": False, "add_prefix_space": False})):
        backend = json.loads(load(path, config).backend_tokenizer.to_str())
        backend["model"] = model   # merges by score
        tokenizers[name] = PreTrainedTokenizerFast(
            tokenizer_object=type(published).from_str(json.dumps(backend)))
    jinja = "".join("{%% if messages[0].content == '%d' %%}{{ '%s' }}{%% endif %%}" % (i, text.replace("\n", "\\n"))
                    for i, text in enumerate(TEXTS))
    golden = {"jinja": jinja, "texts": TEXTS}
    golden |= {name: [t(text, add_special_tokens=False)["input_ids"] for text in TEXTS]
               for name, t in tokenizers.items()}
    lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in golden.items())
    (TOP / "tests" / "golden" / "dummy-prefix.json").write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    main()
