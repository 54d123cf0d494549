"""Which type llama-quantize gives each matrix, for tests/mixes.txt:

    python tools/golden/mixes.py LLAMA_QUANTIZE > tests/mixes.txt

Models of 2 to 80 layers, whose matrices have two rows, are quantised without writing anything (--dry-run). Needs the
gguf package.
"""
import re
import subprocess
import sys
import tempfile
from itertools import groupby
from pathlib import Path

import numpy as np
from gguf import GGUFWriter

DENSE = "attn_q attn_k attn_v attn_output ffn_gate ffn_up ffn_down"
FUSED = "attn_qkv attn_output ffn_up ffn_down"
EXPERTS = "attn_q attn_k attn_v attn_output ffn_gate_exps ffn_up_exps ffn_down_exps"
# name, architecture, columns, layers, heads, heads of keys, experts, matrices; NAME/3 is in every third layer alone
MODELS = [
    ("narrow-2", "llama", 96, 2, 3, 3, 0, f"token_embd output {DENSE}"),
    ("odd-2", "llama", 40, 2, 4, 4, 0, f"token_embd output {DENSE}"),
    ("plain-2", "llama", 256, 2, 4, 4, 0, f"token_embd output {DENSE}"),
    ("plain-8", "llama", 256, 8, 4, 4, 0, f"token_embd {DENSE}"),
    ("plain-32", "llama", 256, 32, 4, 4, 0, f"token_embd output {DENSE}"),
    ("shared-8", "llama", 256, 8, 8, 2, 0, f"token_embd output {DENSE}"),
    ("shared-32", "qwen2", 256, 32, 8, 2, 0, f"token_embd {DENSE}"),
    ("fused-32", "phi3", 256, 32, 4, 4, 0, f"token_embd output {FUSED}"),
    ("some-32", "llama", 256, 32, 4, 4, 0, f"token_embd output {DENSE.replace('attn_v', 'attn_v/3')}"),
    ("large-80", "llama", 256, 80, 8, 2, 0, f"token_embd output {DENSE}"),
    ("eight-32", "llama", 256, 32, 4, 1, 8, f"token_embd output {EXPERTS}"),
    ("many-32", "qwen3moe", 256, 32, 4, 4, 16, f"token_embd output {EXPERTS}"),
]
TYPES = """q2_k q2_k_s q3_k_s q3_k_m q3_k_l q4_k_s q4_k_m q5_k_s q5_k_m iq1_s iq1_m iq2_xxs iq2_xs iq2_s iq2_m iq3_xxs
    iq3_xs iq3_s iq3_m iq4_nl iq4_xs mxfp4_moe""".split()
BY_IMATRIX = "iq3_xxs iq4_nl iq4_xs".split()   # whose choice depends on whether there is one


def names_of(matrices, n_layers):
    for matrix in matrices.split():
        part, _, every = matrix.partition("/")
        if part in ("token_embd", "output"):
            yield part
        else:
            yield from (f"blk.{i}.{part}" for i in range(n_layers) if (i + 1) % int(every or 1) == 0)


def write_model(path, architecture, n_cols, n_layers, heads, kv_heads, n_experts, matrices):
    w = GGUFWriter(path, architecture)
    w.add_block_count(n_layers)
    w.add_context_length(64)
    w.add_embedding_length(n_cols)
    w.add_feed_forward_length(n_cols)
    w.add_head_count(heads)
    w.add_head_count_kv(kv_heads)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_vocab_size(1)
    w.add_rope_dimension_count(n_cols // heads)
    w.add_sliding_window(64)
    if n_experts:
        w.add_expert_count(n_experts)
        w.add_expert_used_count(2)
        w.add_expert_feed_forward_length(n_cols)
    for name in names_of(matrices, n_layers):
        shape = (n_experts, 2, n_cols) if "_exps" in name else (2, n_cols)
        w.add_tensor(f"{name}.weight", np.zeros(shape, np.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def write_imatrix(path):
    w = GGUFWriter(path, "")
    w.add_type("imatrix")
    w.add_array("imatrix.datasets", ["none"])
    w.add_uint32("imatrix.chunk_count", 1)
    w.add_uint32("imatrix.chunk_size", 64)
    for ending, n in (("in_sum2", 256), ("counts", 1)):
        w.add_tensor(f"none.weight.{ending}", np.ones((1, n), np.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def chosen(quantize, model, kind, imatrix):
    """-> {name: type}"""
    done = subprocess.run([quantize, *imatrix, "--dry-run", model, kind], capture_output=True, text=True)
    out = done.stdout + done.stderr
    if done.returncode:
        sys.exit(f"mixes.py: {kind}: {out[-2000:]}")
    rows = re.findall(r"\]\s+(\S+)\.weight\s.*type =\s*(\S+), size.*?(?:\((\S+)\))?$", out, re.M)
    return {name: (to or was).lower() for name, was, to in rows}


def runs(types, matrix, n_layers):
    all_runs = [(kind, len(list(run))) for kind, run in groupby(types[n] for n in names_of(matrix, n_layers))]
    return all_runs[0][0] if len(all_runs) == 1 else ",".join(f"{kind}*{n}" for kind, n in all_runs)


def main(quantize):
    print(__doc__.split("\n\n")[1].strip().replace("python", "# python", 1))
    print("# model NAME ARCHITECTURE COLUMNS LAYERS HEADS HEADS_OF_KEYS EXPERTS MATRICES...")
    print("# TYPE IMATRIX, and for each of the matrices its type or, from the first layer that has it on, TYPE*LAYERS,...")
    with tempfile.TemporaryDirectory() as folder:
        imatrix = Path(folder) / "imatrix.gguf"
        write_imatrix(imatrix)
        for name, *shape in MODELS:
            model = Path(folder) / f"{name}.gguf"
            write_model(model, *shape)
            print("model", name, *shape)
            for kind in TYPES:
                for by in [["--imatrix", imatrix]] + [[]] * (kind in BY_IMATRIX):
                    types = chosen(quantize, model, kind, by)
                    print(kind, "yes" if by else "no", *(runs(types, matrix, shape[2]) for matrix in shape[-1].split()))



if __name__ == "__main__":
    main(sys.argv[1])
