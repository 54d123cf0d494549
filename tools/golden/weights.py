"""How the weights of golden models are drawn. The scripts that compute references with them have this in common with
assemble.py, which draws the same weights again for every build.

A tensor follows from a seed and its name alone, by numpy's PCG64, so that it is the same on every machine and with
every version of torch. models.py has Gemma, Llama and Qwen, whose shapes it knows; here are the families that are as
transformers has them, one function each: (what it is of, the tensor's name, its shape) -> array.
"""
import zlib

import numpy as np

import models
from models import normal


def last_word(name):
    return name.removesuffix(".weight").split(".")[-1]


# ---- dense.py ----

# Standard deviations, and those of matrices whose columns' root is divided by: an fp16 cache must stay below 1e-3.
DENSE_SPREAD = {"embed_tokens": 2.0, "lm_head": 0.5}
DENSE_GAIN = {"q_proj": 1.4, "k_proj": 1.4, "qkv_proj": 1.2, "v_proj": 0.8, "o_proj": 0.8,
              "conv1d": 2.0, "gate": 2.0, "shared_expert_gate": 2.0, "layer": 2.0}     # the latter: routers
RECURRENCE = {"A_log": -1.5, "dt_bias": -1.0, "D": 0.5}     # means, such that a state is remembered for some tokens
# Muse Glimmer's branches are so small that the eps of their norms counts.
OWN_GAIN = {"muse-glimmer": {"o_proj": 8e-5, "down_proj": 2e-4}}


def is_centred(model, name):
    """Whether a norm multiplies by one more than its weight."""
    if model.startswith(("qwen35", "qwen3-next")):
        return "norm" in name and "linear_attn" not in name and "visual" not in name
    return model == "muse-glimmer" and name.endswith("layernorm.weight")


def tiled(array, part, config):
    """A tensor of a recurrence whose value heads, of which those of a key head are side by side, go with the key heads
    in turn: "out_proj" by columns, others by rows, after those of q and k in "in_proj_qkv" and "conv1d"."""
    n_k, n_v, d_v = config.linear_num_key_heads, config.linear_num_value_heads, config.linear_value_head_dim
    if part == "out_proj":
        return np.ascontiguousarray(tiled(array.T, "in_proj_z", config).T)
    first = 2 * n_k * config.linear_key_head_dim if part in ("in_proj_qkv", "conv1d") else 0
    width = 1 if part in ("in_proj_a", "in_proj_b", "A_log", "dt_bias") else d_v
    heads = array[first:].reshape(n_k, n_v // n_k, width, *array.shape[1:]).swapaxes(0, 1)
    return np.concatenate([array[:first], heads.reshape(array[first:].shape)])


def tiled_half(array, part, half, config):
    """The same of half of an adapter to it, "lora_a" or "lora_b"."""
    return tiled(array, part, config) if (half == "lora_a") == (part == "out_proj") else array


def parted(array, config):
    """Of a matrix that has of each key head in turn its rows of q, k, v and z: those of q, k and v, and those of z."""
    n_k, d_k, d_v = (getattr(config, "linear_" + n) for n in ("num_key_heads", "key_head_dim", "value_head_dim"))
    of_values = config.linear_num_value_heads // n_k * d_v
    heads = array.reshape(n_k, 2 * (d_k + of_values), -1)
    q, k, v, z = (x.reshape(-1, array.shape[1]) for x in np.split(heads, np.cumsum([d_k, d_k, of_values]), axis=1))
    return np.concatenate([q, k, v]), z


def gpt_oss(model, name, shape):
    """Sinks of -30 and 30; of ten experts one that nobody chooses, and two that are alike; factors beyond clamps."""
    values, word = normal(zlib.crc32(model.encode()), name, shape), name.removesuffix(".bias").split(".")[-1]
    if word == "sinks":
        values[:2] = -30, 30
    elif word.endswith("_bias"):
        values *= 2.5 if "gate_up" in word else 0.3
    elif word.endswith("_blocks"):
        values = np.floor(values * 1000) % 256
    elif word.endswith("_scales"):
        values = np.floor(values * 1000) % 2 + (123 if "gate_up" in word else 121)
    elif word.endswith("_proj"):
        values *= (2.0 if "gate_up" in word else 0.7) / np.sqrt(shape[1])
    elif name.endswith("router.weight"):
        values *= 2.0 / np.sqrt(shape[1])
    elif name.endswith("router.bias"):
        values[0] = -30
    if "experts" in name or ".router." in name:
        values[5] = values[3]
    return values


def dense(model, name, shape):
    if model.startswith("gpt-oss") and any(word in name for word in ("sinks", ".experts.", ".router.")):
        return gpt_oss(model, name, shape)
    values, word = normal(zlib.crc32(model.encode()), name, shape), last_word(name)
    if name.endswith(".bias"):
        return 0.3 * values
    if word in RECURRENCE:
        return RECURRENCE[word] + 0.5 * values
    if len(shape) == 1:
        return (not is_centred(model, name)) + 0.3 * values
    gain = DENSE_GAIN | OWN_GAIN.get(model, {})
    return values * (DENSE_SPREAD[word] if word in DENSE_SPREAD else gain.get(word, 1.0) / np.sqrt(shape[-1]))


# ---- embedding.py: EmbeddingGemma of 300M, whose norms multiply by one more than their weight, and 2 ----

EMBEDDING_SPREAD = {"embed_tokens": 1.0, "q_proj": 0.12, "k_proj": 0.12, "v_proj": 0.12, "o_proj": 0.15,
                    "gate_proj": 0.15, "up_proj": 0.15, "down_proj": 0.15, "per_layer_model_projection": 0.15,
                    "per_layer_input_gate": 0.15, "per_layer_projection": 0.15, "embedding_projection": 0.1,
                    "linear": 0.1}
EMBEDDING_SEEDS = {"embedding-gemma": 71, "embedding-gemma2": 72}


def embedding(model, name, shape):
    word, plus_one = last_word(name), model == "embedding-gemma"
    if word == "layer_scalar":
        mean, std = 0.7, 0.2
    elif word in ("q_norm", "k_norm"):
        mean, std = (0.4, 0.3) if plus_one else (0.5, 0.15)
    elif word in EMBEDDING_SPREAD:
        mean, std = 0.0, EMBEDDING_SPREAD[word]
    elif word == "pre_feedforward_layernorm" and not plus_one:   # the published ones' activations overflow fp16, too
        mean, std = 400.0, 100.0
    else:                       # norms
        mean, std = (0.0 if plus_one else 1.0), 0.3
    return (mean + std * normal(EMBEDDING_SEEDS[model], name, shape)).astype(np.float32)


# ---- qwen_embedding.py, qwen_reranker.py ----

QWEN_SPREAD = {"q_proj": 0.15, "k_proj": 0.15, "v_proj": 0.15, "o_proj": 0.15, "gate_proj": 0.2, "up_proj": 0.2,
               "down_proj": 0.15}
QWEN_SEEDS = {"embedding-qwen3": 91, "reranker-qwen3": 92}


def qwen(model, name, shape):
    std = (QWEN_SPREAD | {"embed_tokens": 1.0 if model == "embedding-qwen3" else 0.15}).get(last_word(name))
    return ((0.0 if std else 1.0) + (std or 0.3) * normal(QWEN_SEEDS[model], name, shape)).astype(np.float32)


# ---- lora.py ----

ADAPTERS = {
    "first": dict(r=4, lora_alpha=8, rank_pattern={"o_proj": 3, "layers.1.mlp.down_proj": 6},
                  alpha_pattern={"self_attn.o_proj": 5}),
    "second": dict(r=2, lora_alpha=3, use_rslora=True),
}


def lora_scale(adapter, module):
    """What PEFT multiplies B A by."""
    a = ADAPTERS[adapter]

    def own(pattern, usual):
        return next((v for end, v in a.get(pattern, {}).items() if module.endswith(end)), usual)
    r, alpha = own("rank_pattern", a["r"]), own("alpha_pattern", a["lora_alpha"])
    return alpha / np.sqrt(r) if a.get("use_rslora") else alpha / r


def lora(model, adapter, name, shape):
    return normal(zlib.crc32((model + adapter).encode()), name, shape) * 0.6 / np.sqrt(shape[1])


# ---- drafter.py ----

DRAFTER_SEEDS = {"gemma4-assistant": 71, "gemma4-small-assistant": 72}
DRAFTER_KINDS = {"embed_tokens": "embed", "q_proj": "q", "o_proj": "o", "gate_proj": "gate", "up_proj": "up",
                 "down_proj": "down", "q_norm": "q_norm", "layer_scalar": "scalar"}


def drafter(model, name, shape):
    values, kind = normal(DRAFTER_SEEDS[model], name, shape), DRAFTER_KINDS.get(last_word(name), "norm")
    if name == "model.norm.weight":
        kind = "out_norm"
    if name == "pre_projection.weight":     # the embedding is some hundred times larger than the hidden state
        return values * np.repeat([0.01, 0.5], shape[1] // 2)
    if name == "post_projection.weight":
        return values * 0.15
    spread = models.SPREADS["gemma4_text"][kind]
    mean, deviation = spread if isinstance(spread, tuple) else (0.0, spread)
    return mean + deviation * values


# ---- vision.py: towers and projectors, under the names of transformers' modules ----

# Standard deviations by the ends of names, or (mean, deviation): the first that fits.
TOWER_SPREADS = (
    ("position_embedding.weight", 0.5), ("position_embedding_table", 0.4), ("pos_embedding", 0.5),
    ("patch_embedding.weight", 0.12), ("input_proj.weight", 0.2), ("patch_dense.weight", 0.05),
    ("mm_input_projection_weight", 0.8), ("embedding_projection.weight", 3.0), ("mm_soft_emb_norm.weight", (0.0, 0.3)),
    ("std_bias", 3.0), ("std_scale", (0.2, 0.05)),
    ("input_min", (-1.5, 0.3)), ("input_max", (1.5, 0.3)), ("output_min", (-1.8, 0.4)), ("output_max", (1.8, 0.4)),
    ("q_norm.weight", (0.8, 0.2)), ("k_norm.weight", (0.8, 0.2)),
    ("fc1.weight", 0.3), ("gate_proj.linear.weight", 0.3),
    ("bias", 0.3), ("norm.weight", (1.0, 0.3)), ("norm1.weight", (1.0, 0.3)), ("norm2.weight", (1.0, 0.3)),
    ("ln1.weight", (1.0, 0.3)), ("ln2.weight", (1.0, 0.3)), ("weight", 0.15))


def tower(seed, name, shape):
    spread = next(s for end, s in TOWER_SPREADS if name.endswith(end))
    mean, deviation = spread if isinstance(spread, tuple) else (0.0, spread)
    return np.asarray(mean + deviation * normal(seed, name, shape), np.float32)
