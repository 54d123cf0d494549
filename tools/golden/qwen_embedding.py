#!/usr/bin/env python3
"""Makes tests/golden/embedding-qwen3: a tiny random Qwen3-Embedding, and the vectors of texts.

    python3 tools/golden/qwen_embedding.py

A Hugging Face directory as the larger ones are published: the tensors of Qwen3Model, no output matrix though
config.json says that it is not the embedding, sentence-transformers' files, and a tokenizer (that of tests/golden/qwen)
whose template ends texts with another token than eos. Beside it
- texts.txt: a text a line; vectors.txt: their vectors, and those of the same texts as queries
computed by transformers in float64 from the ids that its tokenizer gives: the last token's final-norm state, of
length 1.
"""
import json
import pathlib
import shutil

import numpy as np
import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoTokenizer, Qwen3Config, Qwen3Model

from weights import qwen

HERE = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"
OUT = HERE / "embedding-qwen3"
QUERY = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
TEXTS = ["hello", "What is the weather in Paris tomorrow?", "\u4f60\u597d\uff0c\u4e16\u754c cafe\u0301",
         "def main(args): print(args) # " + "the quick brown fox jumps over the lazy dog, " * 4, "12345 + 67"]


def save_json(name, value):
    (OUT / name).parent.mkdir(exist_ok=True)
    (OUT / name).write_text(json.dumps(value, indent=2) + "\n")


def save_tokenizer():
    j = json.loads((HERE / "qwen" / "tokenizer.json").read_text())
    end = next(t["id"] for t in j["added_tokens"] if t["content"] == "<|endoftext|>")
    j["post_processor"] = {"type": "Sequence", "processors": [
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False},
        {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}},
                                                  {"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}}],
         "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
         "special_tokens": {"<|endoftext|>": {"id": "<|endoftext|>", "ids": [end], "tokens": ["<|endoftext|>"]}}}]}
    (OUT / "tokenizer.json").write_text(json.dumps(j) + "\n")
    save_json("tokenizer_config.json", {"add_prefix_space": False, "bos_token": None, "eos_token": "<|im_end|>",
                                        "pad_token": "<|endoftext|>", "tokenizer_class": "PreTrainedTokenizerFast"})
    return end


def save_modules():
    names = ["Transformer", "Pooling", "Normalize"]
    save_json("modules.json", [
        {"idx": i, "name": str(i), "path": f"{i}_{name}" if i else "", "type": "sentence_transformers.models." + name}
        for i, name in enumerate(names)])
    save_json("1_Pooling/config.json", {
        "word_embedding_dimension": 64, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": False,
        "pooling_mode_max_tokens": False, "pooling_mode_mean_sqrt_len_tokens": False,
        "pooling_mode_weightedmean_tokens": False, "pooling_mode_lasttoken": True, "include_prompt": True})
    save_json("config_sentence_transformers.json", {"prompts": {"query": QUERY, "document": ""},
                                                    "default_prompt_name": None, "similarity_fn_name": "cosine"})


@torch.no_grad()
def vector(model, tokenizer, end, text):
    ids = tokenizer.encode(text)
    assert ids[-1] == end
    v = model(input_ids=torch.tensor([ids])).last_hidden_state[0, -1].numpy()
    return v / np.linalg.norm(v)


def main():
    transformers.logging.set_verbosity_error()
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    end = save_tokenizer()
    save_modules()
    tokenizer = AutoTokenizer.from_pretrained(OUT)
    config = Qwen3Config(vocab_size=640, hidden_size=64, intermediate_size=96, num_hidden_layers=3,
                         num_attention_heads=4, num_key_value_heads=2, head_dim=32, max_position_embeddings=512,
                         rope_parameters={"rope_type": "default", "rope_theta": 1e6}, tie_word_embeddings=False,
                         eos_token_id=end)
    config.architectures = ["Qwen3ForCausalLM"]
    config.save_pretrained(OUT)
    config._attn_implementation = "eager"
    model = Qwen3Model(config).double().eval()
    weights = {n: torch.from_numpy(qwen(OUT.name, n, tuple(t.shape))).bfloat16() for n, t in model.state_dict().items()}
    save_file(weights, OUT / "model.safetensors", metadata={"format": "pt"})
    model.load_state_dict({n: w.double() for n, w in weights.items()})
    (OUT / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    vectors = [vector(model, tokenizer, end, prefix + text) for prefix in ("", QUERY) for text in TEXTS]
    (OUT / "vectors.txt").write_text("".join(json.dumps([float(f"{x:.7g}") for x in v]) + "\n" for v in vectors))
    for f in OUT.rglob("*"):
        f.chmod(0o755 if f.is_dir() else 0o644)
        print(f.name, f.stat().st_size)


main()
