#!/usr/bin/env python3
"""Makes tests/golden/reranker-qwen3: a tiny random Qwen3-Reranker, and the scores of documents.

    python3 tools/golden/qwen_reranker.py build/peridot

A Hugging Face directory as those are published: a Qwen3ForCausalLM with tied embeddings, and a tokenizer (that of
tests/golden/qwen, whose last three merges give way to those of "no" and "yes"). Beside it
- query.txt, instruct.txt: a line each; documents.txt: a document a line
- scores.txt: the documents' scores with the instruction of Qwen3-Reranker's model card, then those with instruct.txt's
computed by transformers in float64 with the model card's formula: the prompt in three parts that are encoded by
themselves, and the softmax over the last position's logits of "no" and "yes".
- rank.gguf: the same as llama.cpp's converter writes rerankers: what `peridot convert` makes, and a head of the rows of
  "yes" and "no", the names of these labels, and pooling_type 4.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import gguf
import numpy as np
import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoTokenizer, Qwen3Config, Qwen3ForCausalLM

from weights import qwen

HERE = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"
OUT = HERE / "reranker-qwen3"
USUAL = "Given a web search query, retrieve relevant passages that answer the query"
INSTRUCT = "Find the sentence that a child would say"
QUERY = "Which stones do volcanoes make?"
DOCUMENTS = ["Peridot comes out of the mantle with basalt.", "hello", "", " \u4f60\u597d\uff0c\u4e16\u754c cafe\u0301 ",
             "the quick brown fox jumps over the lazy dog, " * 6, "A chat writes <|im_end|> after each turn.", "12345"]
BEFORE = ('<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct '
          'provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n')
AFTER = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"


def save_tokenizer():
    j = json.loads((HERE / "qwen" / "tokenizer.json").read_text())
    vocab, merges = j["model"]["vocab"], j["model"]["merges"]
    for i, pair in enumerate([("n", "o"), ("e", "s"), ("y", "es")], len(merges) - 3):
        id = vocab.pop("".join(merges[i]))
        vocab["".join(pair)] = id
        merges[i] = list(pair)
    (OUT / "tokenizer.json").write_text(json.dumps(j) + "\n")
    (OUT / "tokenizer_config.json").write_text(json.dumps(
        {"add_prefix_space": False, "bos_token": None, "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>",
         "tokenizer_class": "PreTrainedTokenizerFast"}, indent=2) + "\n")


@torch.no_grad()
def score(model, tokenizer, instruct, document):
    pair = f"<Instruct>: {instruct}\n<Query>: {QUERY}\n<Document>: {document}"
    # marks in a document are text: so are they to Peridot
    encode = lambda text, **how: tokenizer.encode(text, add_special_tokens=False, **how)
    ids = encode(BEFORE) + encode(pair, split_special_tokens=True) + encode(AFTER)
    logits = model(input_ids=torch.tensor([ids])).logits[0, -1]
    no, yes = (tokenizer.convert_tokens_to_ids(word) for word in ("no", "yes"))
    return torch.nn.functional.log_softmax(logits[[no, yes]], dim=0)[1].exp().item()


def copy_field(writer, field):
    if not field.name.startswith("GGUF.") and field.name != gguf.Keys.General.ARCHITECTURE:
        element = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), field.types[0], element)


def save_rank(embedding):
    head = embedding[[599, 597]].bfloat16().view(torch.uint16).numpy()
    with tempfile.TemporaryDirectory() as folder:
        made = pathlib.Path(folder) / "made.gguf"
        subprocess.run([sys.argv[1], "convert", OUT, "-o", made, "--type", "bf16"], check=True)
        reader = gguf.GGUFReader(made)
        writer = gguf.GGUFWriter(OUT / "rank.gguf", "qwen3")
        for field in reader.fields.values():
            copy_field(writer, field)
        writer.add_pooling_type(gguf.PoolingType.RANK)
        writer.add_classifier_output_labels(["yes", "no"])
        for t in reader.tensors:
            writer.add_tensor(t.name, t.data, raw_dtype=t.tensor_type)
        writer.add_tensor("cls.output.weight", head.view(np.uint8), raw_dtype=gguf.GGMLQuantizationType.BF16)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()


def main():
    transformers.logging.set_verbosity_error()
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    save_tokenizer()
    tokenizer = AutoTokenizer.from_pretrained(OUT)
    assert tokenizer.encode("no") == [597] and tokenizer.encode("yes") == [599]
    config = Qwen3Config(vocab_size=640, hidden_size=64, intermediate_size=96, num_hidden_layers=3,
                         num_attention_heads=4, num_key_value_heads=2, head_dim=32, max_position_embeddings=1024,
                         rope_parameters={"rope_type": "default", "rope_theta": 1e6}, tie_word_embeddings=True,
                         eos_token_id=600)
    config.architectures = ["Qwen3ForCausalLM"]
    config.save_pretrained(OUT)
    config._attn_implementation = "eager"
    model = Qwen3ForCausalLM(config).double().eval()
    weights = {n: torch.from_numpy(qwen(OUT.name, n, tuple(t.shape))).bfloat16() for n, t in model.state_dict().items()
               if n != "lm_head.weight"}
    save_file(weights, OUT / "model.safetensors", metadata={"format": "pt"})
    model.load_state_dict({n: w.double() for n, w in weights.items()}, strict=False)
    model.tie_weights()
    for name, lines in (("query", [QUERY]), ("instruct", [INSTRUCT]), ("documents", DOCUMENTS)):
        (OUT / f"{name}.txt").write_text("".join(line + "\n" for line in lines))
    scores = [score(model, tokenizer, instruct, d) for instruct in (USUAL, INSTRUCT) for d in DOCUMENTS]
    (OUT / "scores.txt").write_text("".join(f"{s:.9f}\n" for s in scores))
    print(*scores)
    save_rank(weights["model.embed_tokens.weight"])
    for f in OUT.rglob("*"):
        f.chmod(0o644)
        print(f.name, f.stat().st_size)


main()
