"""The golden models: their shapes, random weights and tokens.

A model here is a Shape (a row of SHAPES) and weights drawn from the seed and each tensor's name with numpy, so that
they are the same on every machine and with every version of torch. The spreads are chosen so that what can go wrong
shows: attention scores reach tens before their softcap, logits pass 30 before theirs, norm weights vary by 0.3 around
zero (the Hugging Face form). The other bound is the fp16 KV cache, whose rounding must stay below 1e-3 in the logits.
"""
import zlib
from dataclasses import dataclass, field

import numpy as np

LLAMA_LIKE = ("llama", "qwen2", "qwen3")     # the same blocks, but for biases and norms of heads
N_TOKENS = 100          # 14 chunks of 7 and a rest of 2; six windows of 16


@dataclass(frozen=True)
class Shape:
    arch: str                       # model_type of transformers: gemma, gemma2, vaultgemma, gemma3_text, ...
    seed: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    ffn_dim: int
    vocab_size: int
    query_scalar: int | None = None     # None: head_dim (the only value that GGUF can mean)
    window: int | None = None
    pattern: int | None = None          # Gemma 3: every pattern-th layer is global
    n_full: int | None = None           # Qwen: so many layers before those with a window
    rope_base: float = 10000.0          # of global layers
    rope_local: float | None = None
    rope_factor: float | None = None    # the global layers' position divisor
    rope_llama3: dict | None = field(default=None, hash=False)   # the numbers of Llama 3.1's rule
    rope: dict | None = field(default=None, hash=False)          # any other rule: rope_parameters without the base
    attn_cap: float | None = None
    final_cap: float | None = None
    d_model: int = 64                   # its square root is exact in bf16
    eps: float = 1e-6
    spread: dict = field(default_factory=dict, hash=False)      # what differs from SPREADS
    form: str = "hf"                    # which writer of files.py makes config.json and the tensors; "" for none
    dtype: str = "F32"                  # of the safetensors
    tied: str = "embed"                 # the tied matrix is stored as "embed", "head" or "both"; "no": two matrices
    head: str = ""                      # "base": none is stored; "sequence", "token": label scores
    n_pieces: int | None = None         # of the tokenizer, fewer than rows of the embedding; None: as many
    special: tuple = ()                 # its last pieces, control pieces
    gguf: dict | None = field(default=None, hash=False)   # {pattern in the tensor's name: type}, "" for the others
    gemma4: dict = field(default_factory=dict, hash=False)      # what transformers' configuration has of its own
    proves: str = ""

    @property
    def q_scalar(self):
        return 1 if self.gemma4 else self.query_scalar or self.head_dim

    @property
    def norm_plus_one(self):
        return self.arch not in ("gemma4_text", *LLAMA_LIKE)

    def is_global(self, layer):
        if self.arch in ("gemma", *LLAMA_LIKE):
            return self.n_full is None or layer < self.n_full
        return (layer + 1) % (2 if self.arch in ("gemma2", "vaultgemma") else self.pattern) == 0


GEMMA1 = dict(arch="gemma", n_layers=3, n_heads=4, n_kv_heads=1, head_dim=16, ffn_dim=96, vocab_size=288)
GEMMA2 = dict(arch="gemma2", n_layers=4, n_heads=4, n_kv_heads=2, head_dim=16, ffn_dim=96, vocab_size=272,
              window=16, attn_cap=50.0, final_cap=30.0)
# head_dim 32: heads * head_dim = 128, twice d_model
GEMMA2_WIDE = GEMMA2 | dict(head_dim=32, ffn_dim=160, vocab_size=288)
GEMMA3 = dict(arch="gemma3_text", n_layers=7, n_heads=4, n_kv_heads=2, head_dim=16, ffn_dim=96, vocab_size=272,
              window=12, pattern=6, rope_base=1e6, rope_local=10000.0, rope_factor=8.0)
# Llama does not scale its embedding, so that any d_model will do.
LLAMA = dict(arch="llama", n_layers=2, n_heads=4, n_kv_heads=2, head_dim=8, ffn_dim=64, vocab_size=272, d_model=32,
             eps=1e-5)
# An old context of 64 positions leaves the first frequency, blends the second and slows the others.
LLAMA3 = LLAMA | dict(rope_llama3=dict(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                       original_max_position_embeddings=64))
# Texts of 100 tokens are three times as long as the context that YaRN extends; two pairs are left, three blended.
YARN = LLAMA | dict(head_dim=16, rope_base=100.0, form="hf", rope=dict(
    rope_type="yarn", factor=4.0, original_max_position_embeddings=32, beta_fast=2.0, beta_slow=0.5))
# Texts are longer than 64 positions, and shorter than 128.
LONGROPE = LLAMA | dict(head_dim=16, rope_base=100.0, form="hf", rope=dict(
    rope_type="longrope", original_max_position_embeddings=64,
    short_factor=[1.0, 1.05, 1.1, 1.2, 1.3, 1.5, 1.7, 2.0], long_factor=[1.2, 1.5, 2.0, 2.6, 3.4, 4.5, 6.0, 8.0]))
QUANTS = {"token_embd": "Q4_K", "output.weight": "Q6_K",
          "blk.0.attn_q": "Q2_K", "blk.0.attn_k": "Q3_K", "blk.0.attn_v": "Q4_K", "blk.0.attn_output": "Q4_1",
          "blk.0.ffn_gate": "Q5_K", "blk.0.ffn_up": "Q6_K", "blk.0.ffn_down": "Q5_0",
          "blk.1.attn_q": "IQ4_XS", "blk.1.attn_k": "IQ4_XS", "blk.1.attn_v": "Q6_K", "blk.1.attn_output": "IQ4_NL",
          "blk.1.ffn_gate": "Q3_K", "blk.1.ffn_up": "Q2_K", "blk.1.ffn_down": "Q5_1"}
CODEBOOKS = {"token_embd": "IQ3_XXS", "output.weight": "IQ2_XS",
             "blk.0.attn_q": "IQ2_XXS", "blk.0.attn_k": "IQ2_XS", "blk.0.attn_v": "IQ3_XXS",
             "blk.0.attn_output": "MXFP4", "blk.0.ffn_gate": "IQ1_S", "blk.0.ffn_up": "IQ1_M",
             "blk.0.ffn_down": "NVFP4",
             "blk.1.attn_q": "TQ1_0", "blk.1.attn_k": "TQ2_0", "blk.1.attn_v": "IQ2_S", "blk.1.attn_output": "NVFP4",
             "blk.1.ffn_gate": "IQ3_S", "blk.1.ffn_up": "IQ3_S", "blk.1.ffn_down": "MXFP4"}
# Heads of 32 and one kv head in global layers, whose values are their keys.
GEMMA4 = dict(arch="gemma4_text", n_layers=6, n_heads=4, n_kv_heads=2, head_dim=16, ffn_dim=96, vocab_size=272,
              window=12, pattern=3, rope_base=1e6, rope_local=10000.0, final_cap=30.0)
DENSE4 = dict(attention_k_eq_v=True, num_global_key_value_heads=1, global_head_dim=32, hidden_size_per_layer_input=0)
MOE4 = DENSE4 | dict(enable_moe_block=True, num_experts=12, top_k_experts=3, moe_intermediate_size=40)
SMALL4 = dict(global_head_dim=32, hidden_size_per_layer_input=64, num_kv_shared_layers=3, use_double_wide_mlp=True)
# Qwen3's heads * head_dim is 128, Qwen 2's has no head_dim of its own.
QWEN2 = LLAMA | dict(arch="qwen2", n_layers=3, eps=1e-6, rope_base=1e4)
QWEN3 = LLAMA | dict(arch="qwen3", n_layers=3, d_model=64, head_dim=32, ffn_dim=96, eps=1e-6, rope_base=1e6)
HEAD2 = GEMMA2 | dict(n_layers=2, attn_cap=20.0)
LABELS = {"sequence": ["calm", "glad", "sad"], "token": ["O", "B-NAME", "I-NAME", "B-PLACE", "I-PLACE"]}

GENTLE = dict(embed=1.5, q=0.2, k=0.2)       # for models that shall bear 8-bit activations, too: below 1e-2

SHAPES = {
    "gemma1": Shape(**GEMMA1, seed=11, form="old", gguf={"": "F32"},
                    proves="Gemma 1: multi-query, no post norms, no caps; old config.json with hidden_act gelu; "
                           "F32 GGUF"),
    "gemma1-lm-head": Shape(**(GEMMA1 | dict(n_layers=2, n_heads=3, n_kv_heads=3)), seed=12, form="old", tied="head",
                            proves="the tied matrix stored only as lm_head.weight; 3 heads (48 != 64)"),
    "gemma2": Shape(**GEMMA2, seed=21, form="old", query_scalar=24,
                    proves="Gemma 2: grouped queries, window 16, both softcaps, query divisor 24 with head_dim 16"),
    "gemma2-bf16-shards": Shape(**(GEMMA2_WIDE | dict(attn_cap=30.0)), seed=22, form="old-shards", dtype="BF16",
                                query_scalar=48,
                                proves="BF16 in 3 shards with an index; heads * head_dim = 128"),
    "gemma2-f16": Shape(**(GEMMA2 | dict(attn_cap=20.0, final_cap=25.0)), seed=23, form="hf", dtype="F16", tied="both",
                        proves="F16; config.json as transformers 5 writes it; tied matrix stored under both names"),
    "gemma2-q8_0": Shape(**(GEMMA2_WIDE | dict(attn_cap=10.0)), seed=24, spread=GENTLE, form="", gguf={"": "Q8_0"},
                         proves="GGUF with Q8_0 matrices and embedding; logits of the dequantised weights"),
    "gemma2-q4_0": Shape(**(GEMMA2_WIDE | dict(attn_cap=8.0)), seed=25, spread=GENTLE, form="",
                         gguf={"": "Q4_0", "token_embd": "Q8_0"},
                         proves="GGUF with Q4_0 matrices and a Q8_0 embedding: types mixed in one file"),
    "vaultgemma": Shape(**(GEMMA2 | dict(arch="vaultgemma")), seed=28, form="hf", dtype="BF16", query_scalar=24,
                        proves="VaultGemma: Gemma 2 without post norms; names of norms as if there were some; BF16"),
    "gemma3": Shape(**GEMMA3, seed=31, form="old", gguf={"": "F32"},
                    proves="Gemma 3: q and k norms, layer 5 global, two RoPE bases, divisor 8; old config.json; "
                           "F32 GGUF"),
    "gemma3-new": Shape(**(GEMMA3 | dict(n_layers=6, head_dim=32, pattern=3, rope_base=500000.0, rope_local=5000.0,
                                         rope_factor=4.0, window=16)),
                        seed=32, eps=0.05, form="hf", dtype="BF16", query_scalar=40,
                        proves="config.json as transformers 5 writes it: layer_types (every third global), "
                               "rope_parameters by layer type with unusual values, eps 0.05; heads * head_dim = 128"),
    "gemma3-wrapped": Shape(**GEMMA3, seed=33, form="wrapped", dtype="BF16",
                            proves="text_config without what has defaults, language_model. names, vision tensors"),
    "gemma3-mixed": Shape(**(GEMMA3 | dict(ffn_dim=160)), seed=34, eps=0.05, form="",
                          gguf={"": "F16", "ffn_down": "BF16", "blk.0.": "F32"},
                          proves="GGUF with F16, BF16 and F32 matrices in one file, eps 0.05"),
    "gemma3-padding": Shape(**(GEMMA3 | dict(n_layers=2, vocab_size=288)), seed=35, n_pieces=272, form="",
                            gguf={"": "F16"},
                            proves="GGUF with 16 rows of the embedding beyond its pieces, whose logits are largest"),
    "gemma4": Shape(**GEMMA4, seed=61, gemma4=DENSE4, gguf={"": "F32"},
                    proves="Gemma 4: heads of 16 and 32, values from keys in global layers and normed without weight, "
                           "queries not scaled, a quarter of the pairs rotated, layer scalars; F32 GGUF"),
    "gemma4-old": Shape(**(GEMMA4 | dict(window=16)), seed=62, gemma4=DENSE4, form="old", dtype="BF16", eps=0.05,
                        proves="config.json as published: num_global_key_value_heads, global_head_dim, text_config "
                               "in gemma4_unified, model.language_model. names, vision tensors; eps 0.05; BF16"),
    "gemma4-moe": Shape(**(GEMMA4 | dict(n_layers=3)), seed=64, gemma4=MOE4, dtype="BF16", gguf={"": "BF16"},
                        proves="Gemma 4 26B-A4B: beside the gated unit 12 experts of which a token takes 3, with "
                               "norms, scales and a router of their own; BF16 GGUF"),
    "gemma4-small": Shape(**(GEMMA4 | dict(n_kv_heads=1)), seed=63, gemma4=SMALL4, dtype="BF16", gguf={"": "BF16"},
                          proves="Gemma 4 E2B: inputs of each layer, three layers that read the keys of the second and "
                                 "third and are twice as wide, their unread keys in the files; BF16 GGUF"),
    "llama": Shape(**LLAMA, seed=41, form="old", tied="no", gguf={"": "F32"},
                   proves="Llama: SiLU, no +1, grouped queries, eps 1e-5, an output matrix of its own; old config.json "
                          "without head_dim; F32 GGUF with permuted q and k rows"),
    "llama3": Shape(**LLAMA3, seed=42, rope_base=500.0, form="old", gguf={"": "F32"},
                    proves="tied; Llama 3.1's frequencies by rope_scaling and by rope_freqs.weight"),
    "llama3-new": Shape(**(LLAMA3 | dict(head_dim=16, rope_llama3=LLAMA3["rope_llama3"] | dict(
                            factor=32.0, original_max_position_embeddings=48))), seed=43, rope_base=500.0, form="hf",
                        dtype="BF16",
                        proves="the same rule in rope_parameters, config.json as transformers 5 writes it; BF16"),
    "llama-linear": Shape(**(LLAMA | dict(n_kv_heads=1, head_dim=16, eps=0.05)), seed=44, rope_factor=4.0, form="old",
                          dtype="F16", gguf={"": "F16"},
                          proves="head_dim given: heads * head_dim = 64, d_model 32; positions divided by 4; eps 0.05"),
    "llama-yarn": Shape(**YARN | dict(form="old"), seed=46, gguf={"": "F32"},
                        proves="YaRN with its own bounds, by rope_scaling and by GGUF's keys"),
    "llama-yarn-mscale": Shape(**YARN | dict(rope=YARN["rope"] | dict(
                                   truncate=False, mscale=0.9, mscale_all_dim=0.4)), seed=47, gguf={"": "F32"},
                               proves="YaRN with a ramp between pairs, mscale and mscale_all_dim, in rope_parameters; "
                                      "by rope_freqs.weight and attn_factor"),
    "llama-longrope": Shape(**LONGROPE | dict(form="old"), seed=48, gguf={"": "F32"},
                            proves="LongRoPE in texts longer than the old context, by rope_scaling and by tensors"),
    "llama-longrope-short": Shape(**LONGROPE | dict(rope=LONGROPE["rope"] | dict(
                                      original_max_position_embeddings=128, factor=3.0)), seed=49, gguf={"": "F32"},
                                  proves="LongRoPE in texts shorter than the old context; a factor of its own"),
    "llama-dynamic": Shape(**LLAMA, seed=57, form="old", rope=dict(rope_type="dynamic", factor=2.0),
                           proves="dynamic scaling, which changes nothing up to max_position_embeddings"),
    "llama-quants": Shape(**(LLAMA | dict(d_model=256, head_dim=32, vocab_size=264)), seed=45, form="", tied="no",
                          gguf=QUANTS,
                          spread=dict(embed=4.0, q=0.04, k=0.04, v=0.04, o=0.05, gate=0.05, up=0.05, down=0.1,
                                      head=0.2),
                          proves="GGUF with Q4_1, Q5_0, Q5_1, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL and IQ4_XS mixed, "
                                 "blocks of random bytes; q, k and v of three types"),
    "llama-codebooks": Shape(**(LLAMA | dict(d_model=256, head_dim=32, vocab_size=264)), seed=58, form="", tied="no",
                             gguf=CODEBOOKS,
                             spread=dict(embed=4.0, q=0.08, k=0.08, v=0.06, o=0.06, gate=0.05, up=0.05, down=0.1,
                                         head=0.2),
                             proves="GGUF with IQ1_S to IQ3_S, TQ1_0, TQ2_0, MXFP4 and NVFP4 mixed, blocks of random "
                                    "bytes; NVFP4's matrices with scales"),
    "qwen2": Shape(**QWEN2, seed=71, form="old", tied="no", gguf={"": "F32"},
                   proves="Qwen 2: biases of q, k and v; untied; old config.json; F32 GGUF, its rows not permuted"),
    "qwen2-window": Shape(**(QWEN2 | dict(n_heads=14)), seed=90, form="hf", dtype="BF16", window=12, n_full=1,
                          proves="use_sliding_window: the last two of three layers see 12 keys; 7 query "
                                 "heads for each kv head; tied; config.json as transformers 5 writes it; BF16"),
    "qwen3": Shape(**QWEN3, seed=76, form="old", dtype="BF16", gguf={"": "BF16"},
                   proves="Qwen3: norms of q and k, head_dim of its own; tied; old config.json; BF16 GGUF"),
    "qwen3-untied": Shape(**(QWEN3 | dict(n_heads=5, n_kv_heads=1, eps=0.05)), seed=84, form="hf", tied="no",
                          proves="untied, 5 query heads for one kv head, eps 0.05; config.json as transformers 5 "
                                 "writes it"),
    "gemma2-base": Shape(**HEAD2, seed=51, form="hf", dtype="BF16", head="base",
                         proves="Gemma2Model: names without model.; its head is the embedding"),
    "gemma2-sequence": Shape(**HEAD2, seed=52, spread=GENTLE, form="hf", dtype="BF16", head="sequence",
                             proves="Gemma2ForSequenceClassification: 3 labels, tokenizer.model"),
    "gemma2-token": Shape(**HEAD2, seed=53, spread=GENTLE, form="hf", dtype="BF16", head="token",
                          proves="Gemma2ForTokenClassification: 5 labels with biases, tokenizer.model"),
    "llama-base": Shape(**LLAMA, seed=54, form="hf", tied="no", head="base",
                        proves="LlamaModel, untied: hidden states and nothing else"),
    "llama-sequence": Shape(**LLAMA, seed=56, spread=dict(q=0.18, k=0.18), form="hf", head="sequence", tied="no",
                            proves="LlamaForSequenceClassification: 3 labels"),
}

# The text models of those that see (vision.py), whose vocabularies end in pieces of their own.
SPECIAL_3 = ("\n\n", "<start_of_image>", "<end_of_image>", "<image_soft_token>")
SPECIAL_4 = ("<|image>", "<image|>", "<|image|>")
VISION3 = GEMMA3 | dict(ffn_dim=64, vocab_size=288, special=SPECIAL_3, form="wrapped", dtype="BF16")
VISION4 = GEMMA4 | dict(ffn_dim=64, vocab_size=288, special=SPECIAL_4, form="old", dtype="BF16")
BOTH_WAYS = DENSE4 | dict(use_bidirectional_attention="vision")
VISION = {
    "gemma3-vision": Shape(**VISION3, seed=81, gguf={"": "BF16"}),
    "gemma4-vision": Shape(**(VISION4 | dict(n_kv_heads=1)), seed=82,
                           gemma4=SMALL4 | dict(hidden_size_per_layer_input=32)),
    "gemma4-dense-vision": Shape(**VISION4, seed=83, gemma4=BOTH_WAYS),
    "gemma4-unified-vision": Shape(**VISION4, seed=84, gemma4=BOTH_WAYS),
}

# Standard deviation of each kind of matrix, by architecture. Norm weights: (mean, deviation).
NORM = (0.0, 0.3)
SPREADS = {
    "gemma": dict(embed=1.0, q=0.35, k=0.35, v=0.12, o=0.15, gate=0.15, up=0.15, down=0.10),
    "gemma2": dict(embed=1.0, q=0.4, k=0.4, v=0.12, o=0.15, gate=0.15, up=0.15, down=0.15),
    "vaultgemma": dict(embed=1.0, q=0.4, k=0.4, v=0.12, o=0.15, gate=0.15, up=0.15, down=0.10),
    "gemma3_text": dict(embed=1.0, q=0.12, k=0.12, v=0.12, o=0.15, gate=0.15, up=0.15, down=0.15,
                        q_norm=(1.4, 0.3), k_norm=(1.4, 0.3)),
    "gemma4_text": dict(norm=(1.0, 0.3), out_norm=(0.3, 0.1), embed=4.0, q=0.12, k=0.12, v=0.12, o=0.15, gate=0.15,
                        up=0.15, down=0.15, q_norm=(0.5, 0.15), k_norm=(0.5, 0.15), scalar=(0.7, 0.2), layer_gate=0.15,
                        layer_proj=0.15, layer_embed=1.0, layer_norm=(1.0, 0.3), router=1.0),
    "llama": dict(norm=(1.0, 0.3), embed=2.0, q=0.24, k=0.24, v=0.15, o=0.12, gate=0.2, up=0.2, down=0.15, head=0.5),
    "qwen2": dict(norm=(1.0, 0.3), embed=2.0, q=0.24, k=0.24, v=0.15, o=0.12, gate=0.2, up=0.2, down=0.15, head=0.5,
                  bias=0.5),
    "qwen3": dict(norm=(1.0, 0.3), embed=2.0, q=0.12, k=0.12, v=0.12, o=0.12, gate=0.15, up=0.15, down=0.12, head=0.4,
                  q_norm=(1.2, 0.3), k_norm=(1.2, 0.3)),
}
SCORE = dict(score=0.5, score_bias=2.0)


# The kinds of tensors by the last word of their names; the others are norms.
KINDS = {"embed_tokens": "embed", "lm_head": "head", "score": "score", "q_proj": "q", "k_proj": "k", "v_proj": "v",
         "o_proj": "o", "gate_proj": "gate", "up_proj": "up", "down_proj": "down", "gate_up_proj": "gate",
         "q_norm": "q_norm", "k_norm": "k_norm", "layer_scalar": "scalar", "per_layer_input_gate": "layer_gate",
         "per_layer_projection": "layer_proj", "embed_tokens_per_layer": "layer_embed",
         "per_layer_model_projection": "layer_proj", "per_layer_projection_norm": "layer_norm", "proj": "router",
         "scale": "layer_norm", "per_expert_scale": "layer_norm"}


def kind(s, name):
    if name.endswith(".bias"):
        return "score_bias" if name == "score.bias" else "bias"
    if s.gemma4 and name == "norm.weight":
        return "out_norm"
    return KINDS.get(name.removesuffix(".weight").split(".")[-1], "norm")


def tensor_shapes_4(s):
    """Of Gemma 4, whose layers differ: those that transformers itself has, and unread keys as published."""
    import files    # needs torch and transformers, which what draws weights does not
    out = {name.removeprefix("model."): shape for name, shape in files.own_shapes(s).items()}
    shared = s.gemma4.get("num_kv_shared_layers", 0)
    for i in range(s.n_layers - shared, s.n_layers):
        dim = s.gemma4["global_head_dim"] if s.is_global(i) else s.head_dim
        p = f"layers.{i}.self_attn."
        out[p + "k_proj.weight"] = out[p + "v_proj.weight"] = (s.n_kv_heads * dim, s.d_model)
        out[p + "k_norm.weight"] = (dim,)
    return out


def is_unread(s, name):
    """Keys of layers that read another's: published files carry them, transformers ignores them."""
    first = s.n_layers - s.gemma4.get("num_kv_shared_layers", 0)
    parts = name.split(".")
    return parts[0] == "layers" and int(parts[1]) >= first and parts[-2] in ("k_proj", "v_proj", "k_norm")


def tensor_shapes(s):
    """Hugging Face name without "model." -> shape."""
    if s.gemma4:
        return tensor_shapes_4(s)
    d, q, kv = s.d_model, s.n_heads * s.head_dim, s.n_kv_heads * s.head_dim
    out = {"embed_tokens.weight": (s.vocab_size, d)}
    for i in range(s.n_layers):
        p = f"layers.{i}."
        out[p + "input_layernorm.weight"] = (d,)
        for n, shape in (("q", (q, d)), ("k", (kv, d)), ("v", (kv, d)), ("o", (d, q))):
            out[f"{p}self_attn.{n}_proj.weight"] = shape
            if s.arch == "qwen2" and n != "o":
                out[f"{p}self_attn.{n}_proj.bias"] = shape[:1]
        if s.arch in ("gemma3_text", "qwen3"):
            for n in ("q_norm", "k_norm"):
                out[f"{p}self_attn.{n}.weight"] = (s.head_dim,)
        if s.arch != "vaultgemma":
            out[p + "post_attention_layernorm.weight"] = (d,)
        if s.arch in ("gemma2", "vaultgemma", "gemma3_text"):
            out[p + "pre_feedforward_layernorm.weight"] = (d,)
        for n, shape in (("gate", (s.ffn_dim, d)), ("up", (s.ffn_dim, d)), ("down", (d, s.ffn_dim))):
            out[f"{p}mlp.{n}_proj.weight"] = shape
        if s.arch in ("gemma2", "gemma3_text"):
            out[p + "post_feedforward_layernorm.weight"] = (d,)
    out["norm.weight"] = (d,)
    if s.head in LABELS:
        out["score.weight"] = (len(LABELS[s.head]), d)
        if s.head == "token":       # transformers gives only this one a bias
            out["score.bias"] = (len(LABELS[s.head]),)
    elif s.tied == "no" and not s.head:
        out["lm_head.weight"] = (s.vocab_size, d)
    return out


def full_name(s, name, prefix=""):
    """As the file spells it: what is no head's lies under "model.", except in a base model."""
    return name if s.head == "base" or name.startswith(("lm_head.", "score.")) else f"{prefix}model.{name}"


def normal(seed, name, shape):
    """Standard normal numbers that follow from the seed and the tensor's name."""
    return np.random.Generator(np.random.PCG64([seed, zlib.crc32(name.encode())])).standard_normal(shape)


def draw(s, name, shape):
    """A tensor by its Hugging Face name without "model.", as float32."""
    of, spread = kind(s, name), {"norm": NORM} | SCORE | SPREADS[s.arch] | s.spread
    mean, std = spread[of] if isinstance(spread[of], tuple) else (0.0, spread[of])
    # scores alike whatever the divisor
    if of in ("q", "k") and s.arch in ("gemma", "gemma2", "vaultgemma", "llama", "qwen2"):
        std *= (s.q_scalar / s.head_dim) ** 0.25
    out = (mean + std * normal(s.seed, name, shape)).astype(np.float32)
    if of == "embed" and s.n_pieces:    # pairs of opposite rows: one of each has a large logit whatever the state
        padding = out[s.n_pieces:]
        padding[:] *= 8
        padding[1::2] = -padding[::2]
    return out


def weights(s):
    return {name: draw(s, name, shape) for name, shape in tensor_shapes(s).items()}


def tokens(s):
    """bos, then random ids; the second half repeats pieces of the first, at other distances."""
    rng = np.random.Generator(np.random.PCG64([s.seed, 1]))
    n = s.n_pieces or s.vocab_size
    ids = rng.integers(3, n, N_TOKENS)
    ids[60:80] = ids[20:40]
    ids[-1] = n - 1
    ids[0] = 2
    return [int(i) for i in ids]
