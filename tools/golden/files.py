"""Writes a golden model's files as the world publishes them: Hugging Face directories of both config generations, and
GGUF files with llama.cpp's names and conventions. Nothing is computed here but casts and quantisation.
"""
import json
import zlib

import gguf
import numpy as np
import torch
import transformers
from safetensors.torch import save_file

import blocks
import models
import tokenizer

MAX_POSITIONS = 512
DTYPE_NAME = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}
TORCH = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
FAMILY = {"gemma": "Gemma", "gemma2": "Gemma2", "vaultgemma": "VaultGemma", "gemma3_text": "Gemma3",
          "gemma4_text": "Gemma4", "llama": "Llama", "qwen2": "Qwen2", "qwen3": "Qwen3"}
HEAD_CLASS = {"": "ForCausalLM", "base": "Model", "sequence": "ForSequenceClassification",
              "token": "ForTokenClassification"}


def class_name(s):
    return FAMILY[s.arch] + HEAD_CLASS[s.head]


def config_llama(s):
    """config.json as Meta's published checkpoints have it; those of Llama 2 leave out head_dim."""
    c = {
        "architectures": [class_name(s)], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 2,
        "eos_token_id": 1, "hidden_act": "silu", "hidden_size": s.d_model, "initializer_range": 0.02,
        "intermediate_size": s.ffn_dim, "max_position_embeddings": MAX_POSITIONS, "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": s.n_heads, "num_hidden_layers": s.n_layers, "num_key_value_heads": s.n_kv_heads,
        "pretraining_tp": 1, "rms_norm_eps": s.eps, "rope_scaling": None, "rope_theta": s.rope_base,
        "tie_word_embeddings": s.tied != "no", "torch_dtype": DTYPE_NAME[s.dtype],
        "transformers_version": "4.45.0.dev0", "use_cache": True, "vocab_size": s.vocab_size,
    }
    if s.n_heads * s.head_dim != s.d_model:
        c["head_dim"] = s.head_dim
    if s.rope_llama3:
        c["rope_scaling"] = s.rope_llama3 | {"rope_type": "llama3"}
    elif s.rope:
        c["rope_scaling"] = s.rope
    elif s.rope_factor:
        c["rope_scaling"] = {"factor": s.rope_factor, "type": "linear"}
    return c


def config_qwen(s):
    """config.json as the published checkpoints of Qwen 2, 2.5 and 3 have it; only Qwen3's say head_dim."""
    c = {
        "architectures": [class_name(s)], "attention_dropout": 0.0, "bos_token_id": 2, "eos_token_id": 1,
        "hidden_act": "silu", "hidden_size": s.d_model, "initializer_range": 0.02, "intermediate_size": s.ffn_dim,
        "max_position_embeddings": 512, "max_window_layers": s.n_layers, "model_type": s.arch,
        "num_attention_heads": s.n_heads, "num_hidden_layers": s.n_layers, "num_key_value_heads": s.n_kv_heads,
        "rms_norm_eps": s.eps, "rope_theta": s.rope_base, "tie_word_embeddings": s.tied != "no",
        "torch_dtype": DTYPE_NAME[s.dtype], "transformers_version": "4.51.0", "use_cache": True,
        "use_sliding_window": False, "vocab_size": s.vocab_size,
    }
    if s.arch == "qwen2":       # a window that no layer has
        return c | {"sliding_window": 16}
    return c | {"attention_bias": False, "head_dim": s.head_dim, "rope_scaling": None, "sliding_window": None}


def config_old(s):
    """config.json as the published checkpoints of 2024 and early 2025 have it."""
    if s.arch == "llama":
        return config_llama(s)
    if s.arch in ("qwen2", "qwen3"):
        return config_qwen(s)
    if s.gemma4:
        return config_unified(s)
    c = {
        "architectures": [class_name(s)], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 2,
        "eos_token_id": 1, "head_dim": s.head_dim, "hidden_size": s.d_model, "initializer_range": 0.02,
        "intermediate_size": s.ffn_dim, "max_position_embeddings": MAX_POSITIONS, "model_type": s.arch,
        "num_attention_heads": s.n_heads, "num_hidden_layers": s.n_layers, "num_key_value_heads": s.n_kv_heads,
        "pad_token_id": 0, "rms_norm_eps": s.eps, "rope_theta": s.rope_base,
        "torch_dtype": DTYPE_NAME[s.dtype],
        "transformers_version": {"gemma": "4.38.1", "gemma2": "4.42.4", "gemma3_text": "4.50.0.dev0"}[s.arch],
        "use_cache": True, "vocab_size": s.vocab_size,
    }
    if s.arch == "gemma":       # published so: "gelu" here always meant the tanh form
        return c | {"hidden_act": "gelu", "hidden_activation": None, "rope_scaling": None}
    c |= {
        "attn_logit_softcapping": s.attn_cap, "final_logit_softcapping": s.final_cap, "cache_implementation": "hybrid",
        "hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": s.q_scalar, "sliding_window": s.window,
    }
    if s.arch == "gemma2":
        return c | {"hidden_act": "gelu_pytorch_tanh"}
    return c | {
        "eos_token_id": [1, 106], "rope_local_base_freq": s.rope_local, "sliding_window_pattern": s.pattern,
        "rope_scaling": {"factor": s.rope_factor, "rope_type": "linear"},
    }


def config_wrapped(s):
    """config.json of the vision models, 4B and up. Like the published 4B it leaves out what has a default in
    transformers: RoPE bases, pattern of six, eps, activation, tied head, vocabulary. (The published one leaves out
    heads and head_dim, too; tiny models cannot have those defaults, 8, 4 and 256.)"""
    text = {
        "head_dim": s.head_dim, "hidden_size": s.d_model, "intermediate_size": s.ffn_dim, "model_type": "gemma3_text",
        "num_attention_heads": s.n_heads, "num_hidden_layers": s.n_layers, "num_key_value_heads": s.n_kv_heads,
        "query_pre_attn_scalar": s.q_scalar, "rope_scaling": {"factor": s.rope_factor, "rope_type": "linear"},
        "sliding_window": s.window,
    }
    assert (s.rope_base, s.rope_local, s.pattern) == (1e6, 10000.0, 6)
    return {
        "architectures": ["Gemma3ForConditionalGeneration"], "boi_token_index": 255999, "eoi_token_index": 256000,
        "eos_token_id": [1, 106], "image_token_index": 262144, "initializer_range": 0.02, "mm_tokens_per_image": 256,
        "model_type": "gemma3", "text_config": text, "torch_dtype": "bfloat16", "transformers_version": "4.50.0.dev0",
        "vision_config": {"hidden_size": 32, "image_size": 28, "intermediate_size": 64, "num_attention_heads": 2,
                          "model_type": "siglip_vision_model", "num_hidden_layers": 1, "patch_size": 14,
                          "vision_use_head": False},
    }


def config_unified(s):
    """config.json of Gemma 4 12B, as published before sizes were said layer by layer."""
    text = {
        "attention_bias": False, "attention_k_eq_v": True, "final_logit_softcapping": s.final_cap,
        "global_head_dim": s.gemma4["global_head_dim"], "head_dim": s.head_dim,
        "hidden_activation": "gelu_pytorch_tanh", "hidden_size": s.d_model, "intermediate_size": s.ffn_dim,
        "layer_types": layer_types(s), "max_position_embeddings": MAX_POSITIONS, "model_type": "gemma4_unified_text",
        "num_attention_heads": s.n_heads, "num_global_key_value_heads": s.gemma4["num_global_key_value_heads"],
        "num_hidden_layers": s.n_layers, "num_key_value_heads": s.n_kv_heads, "num_kv_shared_layers": 0,
        "rms_norm_eps": s.eps, "rope_parameters": rope_parameters_4(s), "sliding_window": s.window,
        "tie_word_embeddings": True, "use_bidirectional_attention": "vision", "vocab_size": s.vocab_size,
    }
    return {"architectures": ["Gemma4UnifiedForConditionalGeneration"], "dtype": "bfloat16", "eos_token_id": [1, 106],
            "model_type": "gemma4_unified", "text_config": text, "tie_word_embeddings": True,
            "transformers_version": "5.10.0"}


def torch_weights(s, prefix="", head="lm_head.weight"):
    t = {n: torch.from_numpy(w).to(TORCH[s.dtype]) for n, w in models.weights(s).items()}
    out = {models.full_name(s, n, prefix): w for n, w in t.items()}
    if s.tied in ("head", "both"):
        out[head] = t["embed_tokens.weight"].clone()
    if s.tied == "head":
        del out[f"{prefix}model.embed_tokens.weight"]
    return out


def save_json(path, value):
    path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n")


def save_config(folder, config):
    save_json(folder / "config.json", config)


def save_shards(folder, tensors, n):
    """As save_pretrained does for large models: in name order, an index that maps each tensor to its file."""
    names, total = list(tensors), sum(t.nbytes for t in tensors.values())
    shards, size = [{} for _ in range(n)], 0
    for name in names:
        shards[min(size * n // total, n - 1)][name] = tensors[name]
        size += tensors[name].nbytes
    index = {"metadata": {"total_size": total}, "weight_map": {}}
    for i, shard in enumerate(shards):
        file = f"model-{i + 1:05d}-of-{n:05d}.safetensors"
        save_file(shard, folder / file, metadata={"format": "pt"})
        index["weight_map"] |= dict.fromkeys(shard, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2, sort_keys=True) + "\n")


def save_hf(s, folder):
    if s.form == "hf":          # config.json by transformers itself, in its own generation
        config = own_config(s)
        config.architectures = [class_name(s)]
        config.dtype = TORCH[s.dtype]
        config.save_pretrained(folder)
        save_file(torch_weights(s), folder / "model.safetensors", metadata={"format": "pt"})
        if s.arch == "gemma2" and s.head:       # their commands are tested with text
            (folder / "tokenizer.model").write_bytes(tokenizer.sentencepiece_model(*tokenizer.pieces(s.vocab_size)))
    elif s.gemma4:
        tensors = torch_weights(s)
        tensors = {n.replace("model.", "model.language_model.", 1): w for n, w in tensors.items()}
        tensors["model.embed_vision.embedding_projection.weight"] = torch.ones(64, 32, dtype=TORCH[s.dtype])
        save_config(folder, config_old(s))
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    elif s.form == "wrapped":
        tensors = torch_weights(s, prefix="language_model.")
        rng = np.random.Generator(np.random.PCG64(s.seed))
        for name, shape in (("vision_tower.vision_model.embeddings.patch_embedding.bias", (32,)),
                            ("vision_tower.vision_model.encoder.layers.0.self_attn.q_proj.weight", (32, 32)),
                            ("multi_modal_projector.mm_input_projection_weight", (32, 64))):
            tensors[name] = torch.from_numpy(rng.standard_normal(shape)).to(TORCH[s.dtype])
        save_config(folder, config_wrapped(s))
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    else:
        save_config(folder, config_old(s))
        if s.form == "old-shards":
            save_shards(folder, torch_weights(s), 3)
        else:
            save_file(torch_weights(s), folder / "model.safetensors", metadata={"format": "pt"})


def layer_types(s):
    return ["full_attention" if s.is_global(i) else "sliding_attention" for i in range(s.n_layers)]


def rope_parameters_4(s):
    return {"full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": s.rope_base},
            "sliding_attention": {"rope_type": "default", "rope_theta": s.rope_local}}


def own_shapes(s):
    """What transformers has weights for."""
    with torch.device("meta"):
        model = getattr(transformers, class_name(s))(own_config(s))
    return {n: tuple(t.shape) for n, t in model.state_dict().items() if n != "lm_head.weight"}


def own_config(s):
    """The same model as a transformers config object, made from its arguments and not from our files."""
    from transformers import Gemma2Config, Gemma3TextConfig, GemmaConfig, LlamaConfig
    common = dict(
        vocab_size=s.vocab_size, hidden_size=s.d_model, intermediate_size=s.ffn_dim, num_hidden_layers=s.n_layers,
        num_attention_heads=s.n_heads, num_key_value_heads=s.n_kv_heads, head_dim=s.head_dim, rms_norm_eps=s.eps,
        max_position_embeddings=MAX_POSITIONS, pad_token_id=0, eos_token_id=1, bos_token_id=2)
    if s.head in models.LABELS:
        labels = models.LABELS[s.head]
        common |= dict(id2label=dict(enumerate(labels)), label2id={name: i for i, name in enumerate(labels)})
    default = {"rope_type": "default", "rope_theta": s.rope_base}
    if s.arch == "llama":
        if s.rope_llama3:
            default = {"rope_type": "llama3", "rope_theta": s.rope_base} | s.rope_llama3
        elif s.rope:
            default |= s.rope
        elif s.rope_factor:
            default |= {"rope_type": "linear", "factor": s.rope_factor}
        return LlamaConfig(**common, rope_parameters=default, tie_word_embeddings=s.tied != "no")
    if s.arch in ("qwen2", "qwen3"):
        if s.arch == "qwen2" and s.n_heads * s.head_dim == s.d_model:
            del common["head_dim"]
        windows = {} if s.n_full is None else dict(use_sliding_window=True, sliding_window=s.window,
                                                   max_window_layers=s.n_full)
        config = transformers.Qwen2Config if s.arch == "qwen2" else transformers.Qwen3Config
        return config(**common, **windows, rope_parameters=default, tie_word_embeddings=s.tied != "no")
    if s.arch == "gemma":
        return GemmaConfig(**common, rope_parameters=default)
    common |= dict(query_pre_attn_scalar=s.q_scalar, sliding_window=s.window, attn_logit_softcapping=s.attn_cap,
                   final_logit_softcapping=s.final_cap)
    if s.gemma4:
        del common["query_pre_attn_scalar"], common["attn_logit_softcapping"]
        return transformers.Gemma4TextConfig(
            **common, **s.gemma4, layer_types=layer_types(s), rope_parameters=rope_parameters_4(s),
            vocab_size_per_layer_input=s.vocab_size, experts_implementation="eager")
    types = layer_types(s)
    if s.arch in ("gemma2", "vaultgemma"):
        config = Gemma2Config if s.arch == "gemma2" else transformers.VaultGemmaConfig
        return config(**common, rope_parameters=default, layer_types=types)
    return Gemma3TextConfig(**common, layer_types=types, rope_parameters={
        "full_attention": {"rope_type": "linear", "factor": s.rope_factor, "rope_theta": s.rope_base},
        "sliding_attention": {"rope_type": "default", "rope_theta": s.rope_local}})


# ---- GGUF ----

GGUF_ARCH = {"gemma": gguf.MODEL_ARCH.GEMMA, "gemma2": gguf.MODEL_ARCH.GEMMA2, "gemma3_text": gguf.MODEL_ARCH.GEMMA3,
             "gemma4_text": gguf.MODEL_ARCH.GEMMA4, "llama": gguf.MODEL_ARCH.LLAMA, "qwen2": gguf.MODEL_ARCH.QWEN2,
             "qwen3": gguf.MODEL_ARCH.QWEN3}


def gguf_type(s, name, array):
    """Norms stay F32, as llama.cpp keeps every vector; the last pattern of s.gguf that matches decides."""
    if array.ndim == 1:
        return gguf.GGMLQuantizationType.F32
    return gguf.GGMLQuantizationType[[t for p, t in s.gguf.items() if p in name][-1]]


def swap_pairs(array, n_heads, to_gguf):
    """llama.cpp rotates neighbours (2i, 2i + 1) of Llama's heads, transformers halves (i, i + head_dim / 2)."""
    rows = array.reshape(n_heads, *((2, -1) if to_gguf else (-1, 2)), array.shape[1])
    return np.ascontiguousarray(rows.swapaxes(1, 2).reshape(array.shape))


def rotated_heads(s, name):
    """Heads of a q or k matrix whose rows llama.cpp orders anew; 0: not such a matrix."""
    heads = {"q_proj.weight": s.n_heads, "k_proj.weight": s.n_kv_heads}
    return heads.get(name.rpartition(".self_attn.")[2], 0) if s.arch == "llama" else 0


def frequencies(s, n_tokens):
    """By the rule of s.rope, in a text of so many tokens."""
    plain = s.rope_base ** (-np.arange(0, s.head_dim, 2) / s.head_dim)
    if s.rope["rope_type"] == "yarn":
        return yarn(s, plain)
    if s.rope["rope_type"] == "longrope":
        is_long = n_tokens > s.rope["original_max_position_embeddings"]
        return plain / np.array(s.rope["long_factor" if is_long else "short_factor"])
    return plain


def yarn(s, plain):
    """As the paper's code has it."""
    r, n = s.rope, s.head_dim
    ends = [n * np.log(r["original_max_position_embeddings"] / (2 * np.pi * r[beta])) / (2 * np.log(s.rope_base))
            for beta in ("beta_fast", "beta_slow")]
    if r.get("truncate", True):
        ends = [np.floor(ends[0]), np.ceil(ends[1])]
    low, high = max(ends[0], 0), min(ends[1], n - 1)
    kept = 1 - np.clip((np.arange(n // 2) - low) / (high - low), 0, 1)
    return plain / r["factor"] * (1 - kept) + plain * kept


def yarn_scale(factor, weight=1.0):
    return 0.1 * weight * np.log(factor) + 1


def attention_factor(s):
    """What multiplies cos and sin."""
    r = s.rope or {}
    if r.get("rope_type") == "longrope":
        old = r["original_max_position_embeddings"]
        return np.sqrt(1 + np.log(r.get("factor", MAX_POSITIONS / old)) / np.log(old))
    if r.get("rope_type") != "yarn":
        return 1.0
    if "mscale" in r:
        return yarn_scale(r["factor"], r["mscale"]) / yarn_scale(r["factor"], r["mscale_all_dim"])
    return yarn_scale(r["factor"])


def rope_freqs(s):
    """What llama.cpp divides frequencies by, from the rule of Llama 3.1, or one that there are no keys for."""
    if s.rope:
        plain = s.rope_base ** (-np.arange(0, s.head_dim, 2) / s.head_dim)
        return (plain / yarn(s, plain)).astype(np.float32)
    r, out = s.rope_llama3, []
    for i in range(s.head_dim // 2):
        turns = r["original_max_position_embeddings"] * s.rope_base ** (-2 * i / s.head_dim) / (2 * np.pi)
        smooth = (turns - r["low_freq_factor"]) / (r["high_freq_factor"] - r["low_freq_factor"])
        smooth = min(max(smooth, 0.0), 1.0)
        out.append(1 / ((1 - smooth) / r["factor"] + smooth))
    return np.array(out, np.float32)


def has_rope_freqs(s):
    return bool(s.rope_llama3 or s.gemma4 or (s.rope or {}).get("truncate") is False)


def add_rope_rule(w, s):
    r, usual = s.rope, 1
    if r["rope_type"] == "yarn" and r.get("truncate", True):
        w.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        w.add_rope_scaling_factor(r["factor"])
        w.add_rope_scaling_orig_ctx_len(r["original_max_position_embeddings"])
        w.add_rope_scaling_yarn_beta_fast(r["beta_fast"])
        w.add_rope_scaling_yarn_beta_slow(r["beta_slow"])
        usual = yarn_scale(r["factor"])
    if r["rope_type"] == "longrope":
        w.add_rope_scaling_type(gguf.RopeScalingType.LONGROPE)
        w.add_rope_scaling_orig_ctx_len(r["original_max_position_embeddings"])
        for name in ("short", "long"):
            w.add_tensor(f"rope_factors_{name}.weight", np.array(r[f"{name}_factor"], np.float32))
    if attention_factor(s) != usual:
        w.add_rope_scaling_attn_factors(attention_factor(s) / usual)


def add_rope(w, s):
    if s.arch == "llama":
        w.add_rope_dimension_count(s.head_dim)
    if s.arch in models.LLAMA_LIKE:
        w.add_rope_freq_base(s.rope_base)
    if s.arch == "llama" and s.rope_factor:
        w.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        w.add_rope_scaling_factor(s.rope_factor)
    if has_rope_freqs(s):
        w.add_tensor("rope_freqs.weight", rope_freqs(s))
    if s.rope:
        add_rope_rule(w, s)
    if s.arch == "gemma3_text":     # the local base and the pattern are not in a GGUF: 10000 and 6
        assert (s.rope_local, s.pattern) == (10000.0, 6)
        w.add_rope_freq_base(s.rope_base)
        w.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        w.add_rope_scaling_factor(s.rope_factor)


def scale_beside(kind, seed, name):
    """NVFP4's matrices are multiplied by a number in a tensor of its own."""
    rng = np.random.Generator(np.random.PCG64([seed, zlib.crc32(name.encode()), 3]))
    return np.float32(rng.uniform(0.01, 0.1) if kind.name == "NVFP4" else 1)


def add_matrix(w, s, hf, name, array):
    kind = gguf_type(s, name, array)
    if rotated_heads(s, hf) and kind.name not in blocks.TYPES:
        array = swap_pairs(array, rotated_heads(s, hf), to_gguf=True)
    if kind == gguf.GGMLQuantizationType.F16:
        w.add_tensor(name, array.astype(np.float16))
    elif kind == gguf.GGMLQuantizationType.F32:
        w.add_tensor(name, array)
    elif kind.name in blocks.TYPES:
        scale = scale_beside(kind, s.seed, name)
        w.add_tensor(name, blocks.random_blocks(kind, array.shape, array.std() / scale, s.seed, name), raw_dtype=kind)
        if kind.name == "NVFP4":
            w.add_tensor(name.replace(".weight", ".scale"), np.array([scale]))
            w.add_tensor(name.replace(".weight", ".input_scale"), np.ones(1, np.float32))   # llama.cpp's, not ours
    else:
        w.add_tensor(name, gguf.quants.quantize(array, kind), raw_dtype=kind)


def save_gguf(s, path):
    arch = GGUF_ARCH[s.arch]
    assert s.gemma4 or s.q_scalar == s.head_dim        # GGUF has no key for it
    w = gguf.GGUFWriter(path, gguf.MODEL_ARCH_NAMES[arch])
    w.add_type("model")
    w.add_name(path.parent.name)
    add_config_4(w, s) if s.gemma4 else add_config(w, s)
    add_tokenizer(w, s)
    names = tensor_names(s)
    for hf, array in models.weights(s).items():
        name = names(hf)
        if array.ndim == 1 and s.form:       # the twin of a directory holds what that rounded
            array = torch.from_numpy(array).to(TORCH[s.dtype]).float().numpy()
        if hf.endswith("norm.weight") and s.norm_plus_one:
            array = array + np.float32(1)       # GGUF holds the factor itself
        add_matrix(w, s, hf, name, array)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def tensor_names(s):
    names = gguf.get_tensor_name_map(GGUF_ARCH[s.arch], s.n_layers)

    def name(hf):
        if hf.endswith("layer_scalar"):
            return hf.replace("layers.", "blk.").replace("layer_scalar", "layer_output_scale.weight")
        for own, theirs in (("router.scale", "ffn_gate_inp.scale"), ("router.per_expert_scale", "ffn_down_exps.scale"),
                            ("router.proj.weight", "ffn_gate_inp.weight"),
                            ("experts.gate_up_proj", "ffn_gate_up_exps.weight"),
                            ("experts.down_proj", "ffn_down_exps.weight"),
                            ("pre_feedforward_layernorm_2.weight", "pre_ffw_norm_2.weight"),
                            ("post_feedforward_layernorm_1.weight", "post_ffw_norm_1.weight"),
                            ("post_feedforward_layernorm_2.weight", "post_ffw_norm_2.weight")):
            if hf.endswith(own):
                return hf.replace("layers.", "blk.").replace(own, theirs)
        return names.get_name(models.full_name(s, hf), try_suffixes=(".weight", ".bias"))
    return name


def add_config(w, s):
    w.add_context_length(MAX_POSITIONS)
    w.add_embedding_length(s.d_model)
    w.add_block_count(s.n_layers)
    w.add_feed_forward_length(s.ffn_dim)
    w.add_head_count(s.n_heads)
    w.add_head_count_kv(s.n_kv_heads)
    w.add_layer_norm_rms_eps(s.eps)
    w.add_key_length(s.head_dim)
    w.add_value_length(s.head_dim)
    if s.window:
        w.add_sliding_window(s.window)
    if s.attn_cap:
        w.add_attn_logit_softcapping(s.attn_cap)
        w.add_final_logit_softcapping(s.final_cap)
    add_rope(w, s)


def add_config_4(w, s):
    """The keys of Gemma 4's published files."""
    g, layers = s.gemma4, range(s.n_layers)
    first_shared = s.n_layers - g.get("num_kv_shared_layers", 0)
    w.add_context_length(MAX_POSITIONS)
    w.add_embedding_length(s.d_model)
    w.add_block_count(s.n_layers)
    wide = g.get("use_double_wide_mlp")
    w.add_feed_forward_length([s.ffn_dim * (2 if i >= first_shared else 1) for i in layers] if wide else s.ffn_dim)
    w.add_head_count(s.n_heads)
    own = g.get("num_global_key_value_heads")
    w.add_head_count_kv([own if s.is_global(i) else s.n_kv_heads for i in layers] if own else s.n_kv_heads)
    w.add_layer_norm_rms_eps(s.eps)
    for key in ("attention.key_length", "attention.value_length", "rope.dimension_count"):
        w.add_uint32(f"gemma4.{key}", g["global_head_dim"])
        w.add_uint32(f"gemma4.{key}_swa", s.head_dim)
    w.add_sliding_window(s.window)
    w.add_array("gemma4.attention.sliding_window_pattern", [not s.is_global(i) for i in layers])
    if g.get("enable_moe_block"):
        w.add_expert_count(g["num_experts"])
        w.add_expert_used_count(g["top_k_experts"])
        w.add_expert_feed_forward_length(g["moe_intermediate_size"])
    w.add_uint32("gemma4.attention.shared_kv_layers", g.get("num_kv_shared_layers", 0))
    w.add_uint32("gemma4.embedding_length_per_layer_input", g["hidden_size_per_layer_input"])
    w.add_final_logit_softcapping(s.final_cap)
    w.add_rope_freq_base(s.rope_base)
    w.add_float32("gemma4.rope.freq_base_swa", s.rope_local)
    n = g["global_head_dim"] // 2
    w.add_tensor("rope_freqs.weight", np.array([1.0] * (n // 4) + [1e30] * (n - n // 4), np.float32))


def add_pieces(w, n, adds_eos, special=()):
    texts, scores, types = tokenizer.pieces(n, special)
    w.add_tokenizer_model("llama")
    w.add_tokenizer_pre("default")
    w.add_token_list(texts)
    w.add_token_scores(scores)
    w.add_token_types(types)
    w.add_bos_token_id(2)
    w.add_eos_token_id(1)
    w.add_unk_token_id(3)
    w.add_pad_token_id(0)
    w.add_add_bos_token(True)
    w.add_add_eos_token(adds_eos)
    w.add_add_space_prefix(False)


def add_tokenizer(w, s):
    w.add_file_type(gguf.LlamaFileType["ALL_F32" if s.gguf.get("") == "F32" else f"MOSTLY_{s.gguf.get('', 'Q4_K_M')}"])
    w.add_quantization_version(gguf.GGML_QUANT_VERSION)
    add_pieces(w, s.n_pieces or s.vocab_size, adds_eos=False, special=s.special)


def read_gguf(s, path):
    """Dequantised weights under Hugging Face names, norms centred on zero again, float64."""
    names = tensor_names(s)
    stored = {t.name: t for t in gguf.GGUFReader(path).tensors}
    out = {}
    for hf, shape in models.tensor_shapes(s).items():
        full = models.full_name(s, hf)
        t = stored.pop(names(hf))
        if models.is_unread(s, hf):
            continue
        array = gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float64).reshape(shape)
        if t.tensor_type.name == "NVFP4":
            array *= stored.pop(t.name.replace(".weight", ".scale")).data[0]
            del stored[t.name.replace(".weight", ".input_scale")]
        if rotated_heads(s, hf):
            array = swap_pairs(array, rotated_heads(s, hf), to_gguf=False)
        out[full] = torch.from_numpy(array - 1.0 if hf.endswith("norm.weight") and s.norm_plus_one else array)
    is_long = s.rope and s.rope["rope_type"] == "longrope"
    assert set(stored) == ({"rope_factors_short.weight", "rope_factors_long.weight"} if is_long else
                           {"rope_freqs.weight"} if has_rope_freqs(s) else set())
    return out
