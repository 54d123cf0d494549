#!/usr/bin/env python3
"""Writes importance.gguf beside golden models: sums of squares of what their matrices multiply on the first ids of
tokens.txt, of each expert over the tokens that took it, as llama.cpp's imatrix files have them. Every product that
transformers computes with a layer's matrix is seen as it happens, in float64.

    python3 tools/golden/importance.py build/golden [NAME...]

The first argument is where tools/golden/assemble.py put the models with their weights.
"""
import pathlib
import re
import sys

import gguf
import numpy as np
import torch
import transformers
from torch.overrides import TorchFunctionMode

import dense

HERE = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"
MODELS = {"dense/qwen3-moe": "qwen3moe", "gemma4-moe": "gemma4"}
N_TOKENS = 6   # few enough that some experts are taken by none
PRODUCTS = (torch.nn.functional.linear, torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__)


class Watch(TorchFunctionMode):
    """Adds up, for each address of a matrix, the squares of what it multiplies, and rows."""

    def __init__(self):
        super().__init__()
        self.seen = {}

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in PRODUCTS:
            x = args[0].detach().reshape(-1, args[0].shape[-1])
            sums, rows = self.seen.get(args[1].data_ptr(), (0, 0))
            self.seen[args[1].data_ptr()] = sums + (x * x).sum(0).numpy(), rows + len(x)
        return func(*args, **(kwargs or {}))


def names_of(hf, arch, n_layers):
    """Of a tensor in GGUF files; of one with gates and what these multiply, where they are apart, two."""
    hf = hf.replace(".language_model.", ".")
    layer = re.search(r"layers\.(\d+)\.", hf)
    if hf.endswith("experts.gate_up_proj"):
        parts = ["gate_up"] if arch == "gemma4" else ["gate", "up"]
        return [f"blk.{layer[1]}.ffn_{part}_exps.weight" for part in parts]
    if hf.endswith("experts.down_proj"):
        return [f"blk.{layer[1]}.ffn_down_exps.weight"]
    return [dense.gguf_name(arch, n_layers, hf)]


def make(root, name):
    arch, folder = MODELS[name], root / name
    ids = [int(i) for i in (folder / "tokens.txt").read_text().split(",")][:N_TOKENS]
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float64, attn_implementation="eager", experts_implementation="eager")
    watch = Watch()
    with torch.no_grad(), watch:
        model(input_ids=torch.tensor([ids]), use_cache=False)
    w = gguf.GGUFWriter(HERE / name / "importance.gguf", "")
    w.add_type("imatrix")
    for hf, tensor in model.named_parameters():
        if tensor.dim() < 2 or ".layers." not in hf or hf.endswith("_bias") or "conv1d" in hf:
            continue
        seen = [watch.seen.get(matrix.data_ptr(), (0, 0)) for matrix in (tensor if tensor.dim() == 3 else [tensor])]
        n_cols = max(np.size(sums) for sums, rows in seen)
        sums = np.stack([np.broadcast_to(sums, n_cols) for sums, rows in seen]).astype(np.float32)
        counts = np.array([[rows] for sums, rows in seen], np.float32)
        print(name, hf, counts.ravel())
        for gguf_name in names_of(hf, arch, model.config.get_text_config().num_hidden_layers):
            w.add_tensor(f"{gguf_name}.in_sum2", sums)
            w.add_tensor(f"{gguf_name}.counts", counts)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    for name in sys.argv[2:] or MODELS:
        make(pathlib.Path(sys.argv[1]), name)
