#!/usr/bin/env python3
"""Makes tests/golden/dense: tiny random models of the dense families, and of those with experts in place of their gated
units, one by one as transformers has them, and what it computes with them. Unlike models.py, which says of Gemma and
Llama what every tensor is, this takes the tensors that transformers' class has: a family is a row of MODELS.

    python3 tools/golden/dense.py [NAME...]

A folder has config.json and model.safetensors (bf16), model.gguf where gguf-py knows the architecture (names of its
tensor map; keys of the row), tokens.txt, and logits.f32 and hidden.f32 of float64 weights and activations.
"""
import copy
import pathlib
import re
import shutil
import sys
import tempfile
import zlib

import gguf
import numpy as np
import torch
import transformers
from safetensors import safe_open
from safetensors.torch import save_file
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

import files
import formats
import weights

HERE = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "dense"
N_TOKENS = 48
# past what rounds differently, or a chunk of transformers' recurrences
LONG_TEXT = {"gpt-oss": 300, "lfm2": 90, "granite4-h": 90, "granite4-h-moe": 90, "qwen35": 90, "qwen35-untied": 90,
             "qwen35-moe": 90, "qwen3-next": 90, "qwen3-next-old": 90}
COMMON = dict(vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4,
              num_key_value_heads=2, max_position_embeddings=512, rms_norm_eps=1e-5, pad_token_id=0, bos_token_id=1,
              eos_token_id=2)
ROPE = {"rope_type": "default", "rope_theta": 10000.0}

WIDE = dict(num_attention_heads=2, num_key_value_heads=1)     # heads of 16
LONG = dict(rope_type="longrope", short_factor=[1.0, 1.05, 1.1, 1.2, 1.3, 1.5],
            long_factor=[1.2, 1.5, 2.0, 2.6, 3.4, 4.5])
LONG_KEYS = {f"rope_factors_{n}.weight": np.array(LONG[f"{n}_factor"], np.float32) for n in ("short", "long")} | {
    "rope.scaling.original_context_length": 32, "rope.scaling.attn_factor": float(np.sqrt(1 + np.log(16) / np.log(32)))}

# Router logits decide: a token's best expert has half of the weight, and some expert is chosen by few.
EXPERTS = dict(num_experts=8, num_experts_per_tok=3, moe_intermediate_size=24)
LOCAL_EXPERTS = dict(num_local_experts=8, num_experts_per_tok=3, intermediate_size=24)
DELTA = dict(num_hidden_layers=8, num_attention_heads=2, num_key_value_heads=1, linear_conv_kernel_dim=4)

# Queries of the last third of a text are multiplied by 1.55.
GROWING = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=16, beta_fast=2.0, beta_slow=0.5,
               mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.5)

OSS = dict(num_local_experts=10, num_experts_per_tok=3, intermediate_size=32, head_dim=32, sliding_window=9,
           num_hidden_layers=3, rope_parameters=dict(
               rope_type="yarn", rope_theta=1000.0, factor=32.0, original_max_position_embeddings=64, beta_fast=32.0,
               beta_slow=1.0, truncate=False))
OSS_KEYS = {"expert_count": 10, "expert_used_count": 3, "expert_feed_forward_length": 32,
            "attention.sliding_window": 9, "rope.freq_base": 1000.0, "rope.scaling.type": "yarn",
            "rope.scaling.factor": 32.0, "rope.scaling.original_context_length": 64}

# name: (class, what differs from COMMON, old config.json, GGUF architecture, its keys beyond those of all)
MODELS = {
    "granite": ("Granite", dict(
        embedding_multiplier=12.0, residual_multiplier=0.22, attention_multiplier=0.3, logits_scaling=4.0,
        rope_parameters=ROPE, tie_word_embeddings=True), True, "granite",
        {"embedding_scale": 12.0, "residual_scale": 0.22, "attention.scale": 0.3, "logit_scale": 4.0}),
    "granite-biases": ("Granite", dict(attention_bias=True, embedding_multiplier=12.0, attention_multiplier=0.3,
                                       rope_parameters=ROPE), True, "granite",
                       {"embedding_scale": 12.0, "attention.scale": 0.3}),
    "granite4": ("GraniteMoeHybrid", dict(
        embedding_multiplier=12.0, residual_multiplier=0.22, attention_multiplier=0.3, logits_scaling=4.0,
        num_local_experts=0, shared_intermediate_size=48, layer_types=["full_attention"] * 3, mamba_n_heads=4,
        position_embedding_type="rope", rope_parameters=ROPE, tie_word_embeddings=True), False, None, {}),
    # two groups of two heads, whose norms are apart, between which and neighbours of the file attention is
    "granite4-h": ("GraniteMoeHybrid", dict(
        embedding_multiplier=12.0, residual_multiplier=0.22, attention_multiplier=0.3, logits_scaling=4.0,
        num_hidden_layers=4, num_local_experts=0, shared_intermediate_size=48, mamba_n_heads=4, mamba_n_groups=2,
        mamba_d_state=20, mamba_d_conv=4, mamba_d_head=16, mamba_expand=2, mamba_chunk_size=32,
        layer_types=["linear_attention", "linear_attention", "full_attention", "linear_attention"],
        rope_parameters=ROPE, tie_word_embeddings=True), False, "granitehybrid",
        {"embedding_scale": 12.0, "residual_scale": 0.22, "attention.scale": 0.3, "logit_scale": 4.0,
         "ssm.conv_kernel": 4, "ssm.state_size": 20, "ssm.group_count": 2, "ssm.inner_size": 64,
         "ssm.time_step_rank": 4, "rope.scaling.finetuned": False}),
    "granite4-h-moe": ("GraniteMoeHybrid", LOCAL_EXPERTS | dict(
        embedding_multiplier=12.0, residual_multiplier=0.22, attention_multiplier=0.3, logits_scaling=4.0,
        shared_intermediate_size=40, mamba_n_heads=4, mamba_n_groups=2, mamba_d_state=20, mamba_d_conv=4,
        mamba_d_head=16, mamba_expand=2, mamba_chunk_size=32,
        layer_types=["linear_attention", "full_attention", "linear_attention"],
        rope_parameters=ROPE, tie_word_embeddings=True), False, "granitehybrid",
        {"embedding_scale": 12.0, "residual_scale": 0.22, "attention.scale": 0.3, "logit_scale": 4.0,
         "ssm.conv_kernel": 4, "ssm.state_size": 20, "ssm.group_count": 2, "ssm.inner_size": 64,
         "ssm.time_step_rank": 4, "rope.scaling.finetuned": False, "expert_count": 8, "expert_used_count": 3,
         "expert_shared_feed_forward_length": 40}),
    "llama-biases": ("Llama", dict(attention_bias=True, mlp_bias=True, rope_parameters=ROPE), True, "llama", {}),
    "mistral": ("Mistral", dict(head_dim=16, sliding_window=9, rope_parameters=ROPE), True, "llama",
                {"attention.sliding_window": 9}),
    "ministral": ("Ministral", dict(
        head_dim=16, sliding_window=9, layer_types=["full_attention"] + ["sliding_attention"] * 2,
        rope_parameters=ROPE), False, None, {}),
    "mixtral": ("Mixtral", LOCAL_EXPERTS | dict(sliding_window=9, rope_parameters=ROPE), True, "llama", {
        "expert_count": 8, "expert_used_count": 3, "attention.sliding_window": 9}),
    "granitemoe": ("GraniteMoe", LOCAL_EXPERTS | dict(
        embedding_multiplier=12.0, residual_multiplier=0.22, attention_multiplier=0.3, logits_scaling=4.0,
        rope_parameters=ROPE, tie_word_embeddings=True), True, "granitemoe",
        {"embedding_scale": 12.0, "residual_scale": 0.22, "attention.scale": 0.3, "logit_scale": 4.0,
         "expert_count": 8, "expert_used_count": 3}),
    "olmoe": ("Olmoe", dict(EXPERTS, intermediate_size=24, rope_parameters=ROPE), True, "olmoe",
              {"expert_count": 8, "expert_used_count": 3}),
    "qwen3-moe": ("Qwen3Moe", dict(EXPERTS, head_dim=16, norm_topk_prob=True, rope_parameters=ROPE), True, "qwen3moe",
                  {"expert_count": 8, "expert_used_count": 3, "expert_feed_forward_length": 24}),
    # of four layers the second and the fourth would have experts, and the second is named as dense; all are used
    "qwen3-moe-sparse": ("Qwen3Moe", dict(
        EXPERTS, num_hidden_layers=4, head_dim=16, num_experts=5, num_experts_per_tok=5, decoder_sparse_step=2,
        mlp_only_layers=[1], norm_topk_prob=True, rope_parameters=ROPE), False, None, {}),
    "qwen3-moe-raw": ("Qwen3Moe", dict(EXPERTS, head_dim=16, norm_topk_prob=False, rope_parameters=ROPE), False, None,
                      {}),
    "olmo2": ("Olmo2", dict(rope_parameters=ROPE | {"rope_theta": 500000.0}), True, "olmo2",
              {"rope.freq_base": 500000.0}),
    "olmo3": ("Olmo3", dict(
        num_hidden_layers=4, sliding_window=9, max_position_embeddings=64, rope_parameters={
            "sliding_attention": {"rope_type": "default", "rope_theta": 500.0},
            "full_attention": {"rope_type": "yarn", "rope_theta": 500.0, "factor": 4.0, "beta_fast": 32.0,
                               "beta_slow": 1.0, "original_max_position_embeddings": 16}}), False, "olmo2",
              {"rope.freq_base": 500.0, "attention.sliding_window": 9, "rope.scaling.type": "yarn",
               "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 16}),
    "phi3": ("Phi3", dict(sliding_window=11, rope_parameters=ROPE, tie_word_embeddings=True), True, "phi3",
             {"attention.sliding_window": 11}),
    "phi3-longrope": ("Phi3", dict(
        WIDE, original_max_position_embeddings=32, rope_parameters=ROPE | LONG | {"partial_rotary_factor": 0.75}),
        True, "phi3", LONG_KEYS | {"rope.dimension_count": 12}),
    "phi3-partial": ("Phi3", dict(WIDE, rope_parameters=ROPE | {"partial_rotary_factor": 0.5}), False, "phi3",
                     {"rope.dimension_count": 8}),
    "smollm3": ("SmolLM3", dict(num_hidden_layers=4, rope_parameters=ROPE, tie_word_embeddings=True), True, "smollm3",
                {}),
    "ministral3": ("Ministral3", dict(head_dim=16, rope_parameters=ROPE | GROWING), False, "mistral3", {
        "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 16,
        "rope.scaling.yarn_beta_fast": 2.0, "rope.scaling.yarn_beta_slow": 0.5,
        "rope.scaling.yarn_log_multiplier": 1.0, "attention.temperature_scale": 0.5}),
    # chunks of recurrences are of 64 tokens in transformers; more tokens, for tests of sequences
    "qwen35": ("Qwen3_5Text", dict(DELTA, vocab_size=256, max_position_embeddings=8192, head_dim=16,
                                   linear_num_key_heads=2, linear_num_value_heads=4,
                                   linear_key_head_dim=16, linear_value_head_dim=16, tie_word_embeddings=True,
                                   rope_parameters=ROPE | {"partial_rotary_factor": 0.25}), False, "qwen35", {
        "ssm.conv_kernel": 4, "ssm.state_size": 16, "ssm.group_count": 2, "ssm.time_step_rank": 4,
        "ssm.inner_size": 64, "attention.recurrent_layers": [True, True, True, False] * 2,
        "full_attention_interval": 4, "rope.dimension_count": 4, "rope.dimension_sections": [11, 11, 10, 0]}),
    "qwen35-untied": ("Qwen3_5Text", dict(
        DELTA, num_hidden_layers=5, head_dim=32, linear_num_key_heads=3, linear_num_value_heads=3,
        linear_key_head_dim=20, linear_value_head_dim=12, tie_word_embeddings=False, rms_norm_eps=0.05,
        layer_types=[f"{t}_attention" for t in ("full", "linear", "linear", "full", "linear")],
        rope_parameters=ROPE), False, None, {}),
    "qwen35-moe": ("Qwen3_5MoeText", dict(
        DELTA | EXPERTS, num_hidden_layers=4, head_dim=32, shared_expert_intermediate_size=40, linear_num_key_heads=2,
        linear_num_value_heads=4, linear_key_head_dim=16, linear_value_head_dim=16, tie_word_embeddings=False,
        rope_parameters=ROPE | {"partial_rotary_factor": 0.25}), False, "qwen35moe", {
        "ssm.conv_kernel": 4, "ssm.state_size": 16, "ssm.group_count": 2, "ssm.time_step_rank": 4,
        "ssm.inner_size": 64, "attention.recurrent_layers": [True, True, True, False], "full_attention_interval": 4,
        "rope.dimension_count": 8, "rope.dimension_sections": [11, 11, 10, 0], "expert_count": 8,
        "expert_used_count": 3, "expert_feed_forward_length": 24, "expert_shared_feed_forward_length": 40}),
    # with a block that drafts tokens: mtp.f32
    "qwen35-mtp": ("Qwen3_5Text", dict(
        DELTA, num_hidden_layers=4, vocab_size=256, head_dim=16, linear_num_key_heads=2, linear_num_value_heads=4,
        linear_key_head_dim=16, linear_value_head_dim=16, tie_word_embeddings=True,
        rope_parameters=ROPE | {"partial_rotary_factor": 0.25}), False, None, {}),
    # with such a block, which has experts, too
    "qwen3-next": ("Qwen3Next", dict(
        DELTA | EXPERTS, num_hidden_layers=4, head_dim=32, shared_expert_intermediate_size=40,
        linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=20, linear_value_head_dim=12,
        rope_parameters=ROPE | {"partial_rotary_factor": 0.25}), True, "qwen3next", {
        "ssm.conv_kernel": 4, "ssm.state_size": 20, "ssm.group_count": 2, "ssm.time_step_rank": 4,
        "ssm.inner_size": 48, "full_attention_interval": 4, "rope.dimension_count": 8, "expert_count": 8,
        "expert_used_count": 3, "expert_feed_forward_length": 24, "expert_shared_feed_forward_length": 40}),
    # the file is as llama.cpp's converter once wrote them, with q, k, v and z as one tensor
    "qwen3-next-old": ("Qwen3Next", dict(
        DELTA | EXPERTS, num_hidden_layers=3, head_dim=16, shared_expert_intermediate_size=24, linear_num_key_heads=3,
        linear_num_value_heads=3, linear_key_head_dim=16, linear_value_head_dim=20, rms_norm_eps=0.05,
        layer_types=[f"{t}_attention" for t in ("full", "linear", "linear")],
        rope_parameters=ROPE | {"partial_rotary_factor": 0.5}), False, "qwen3next", {
        "ssm.conv_kernel": 4, "ssm.state_size": 16, "ssm.group_count": 3, "ssm.time_step_rank": 3,
        "ssm.inner_size": 60, "attention.recurrent_layers": [False, True, True], "rope.dimension_count": 8,
        "expert_count": 8, "expert_used_count": 3, "expert_feed_forward_length": 24,
        "expert_shared_feed_forward_length": 24}),
    # one tensor of all gates and what they multiply, as published
    "qwen35-moe-merged": ("Qwen3_5MoeText", dict(
        DELTA | EXPERTS, num_hidden_layers=2, head_dim=16, num_experts=5, num_experts_per_tok=2,
        shared_expert_intermediate_size=24, linear_num_key_heads=2, linear_num_value_heads=2, linear_key_head_dim=16,
        linear_value_head_dim=16, layer_types=["linear_attention", "full_attention"], rope_parameters=ROPE), False,
        None, {}),
    # two thirds of the width, made a multiple of 32
    "lfm2": ("Lfm2", dict(
        vocab_size=256, max_position_embeddings=8192, hidden_size=64, intermediate_size=90, num_attention_heads=2,
        num_key_value_heads=1, num_hidden_layers=5, norm_eps=1e-5, block_multiple_of=32, block_ffn_dim_multiplier=1.1,
        layer_types=["conv", "conv", "full_attention", "conv", "full_attention"],
        rope_parameters=ROPE), True, "lfm2", {"shortconv.l_cache": 3, "vocab_size": 256}),
    "lfm2-new": ("Lfm2", dict(
        hidden_size=32, num_attention_heads=4, num_hidden_layers=3, norm_eps=0.05, conv_L_cache=4,
        block_auto_adjust_ff_dim=False, layer_types=["full_attention", "conv", "conv"], rope_parameters=ROPE,
        tie_word_embeddings=False), False, None, {}),
    "lfm2-moe": ("Lfm2Moe", EXPERTS | dict(
        num_hidden_layers=4, norm_eps=1e-5, num_dense_layers=1, layer_types=["conv", "full_attention"] * 2,
        rope_parameters=ROPE), True, "lfm2moe", {
            "shortconv.l_cache": 3, "expert_count": 8, "expert_used_count": 3, "expert_feed_forward_length": 24,
            "leading_dense_block_count": 1, "expert_gating_func": 2}),
    "gpt-oss": ("GptOss", OSS, False, "gpt-oss", OSS_KEYS),
    # As it is published: experts in blocks, from which transformers makes the plain ones. Heads are too small for a
    # q8_0 cache: with heads of 32 one token takes another expert where two are alike (0.26 of its logits; 0.025 with
    # the same choices), in transformers, too, with keys and values rounded as check.q8_0_cache does.
    "gpt-oss-mxfp4": ("GptOss", OSS | dict(hidden_size=64, head_dim=16), True, "gpt-oss", OSS_KEYS),
    # gguf-py does not know it: the file is as it is described
    "muse-glimmer": ("MuseGlimmer", dict(
        num_hidden_layers=3, head_dim=32, num_key_value_heads=1, sliding_window=9, rms_norm_eps=0.05,
        qk_scale_factor=1.5, output_multiplier=0.7, final_logit_softcapping=4.0, rope_parameters=ROPE), False,
        "muse-glimmer",
        {"logit_scale": 0.7, "final_logit_softcapping": 4.0, "attention.sliding_window": 9,
         "attention.sliding_window_pattern": [True, True, False]} | {
            f"blk.{i}.attn_{n}_norm.weight": np.full(32, 1.5 if n == "q" else 1.0, np.float32)
            for i in range(3) for n in "qk"}),
}
# Of models that transformers has inside a multimodal one alone: the rest of that one's configuration.
WRAPPED = {"MuseGlimmer": dict(
    vision_config=dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2, patch_size=2,
                       pos_emb_height=2, pos_emb_width=2), out_hidden_size=32, projector_hidden_size=8)}
# rotated: 2i, 2i + 1
NEIGHBOURS = ("granite", "granitehybrid", "granitemoe", "llama", "mistral3", "muse-glimmer", "smollm3")
FUSED = ("granite-biases",)   # GGUF files as llama.cpp's converter writes them with --fuse-qkv
WITH_BLOCK = ("qwen35-mtp", "qwen3-next")   # in the directory
NAMED_AS = {"muse-glimmer": ("gemma2", "afmoe")}   # architectures that gguf-py knows, with such names


def swap_pairs(array, head_dim):
    rows = array.reshape(-1, 2, head_dim // 2, *array.shape[1:])
    return np.ascontiguousarray(rows.swapaxes(1, 2).reshape(array.shape))


def gguf_name(arch, n_layers, hf):
    for known in NAMED_AS.get(arch, (arch,)):
        names = gguf.get_tensor_name_map({v: k for k, v in gguf.MODEL_ARCH_NAMES.items()}[known], n_layers)
        name = names.get_name(hf.replace(".language_model.", "."), try_suffixes=(".weight", ".bias"))
        if name:
            return name
    raise KeyError(hf)


def joined_experts(tensors):
    """Of experts that are apart one tensor, and of a tensor of gates and what these multiply two."""
    out, apart = {}, {}
    for name, array in tensors.items():
        expert = re.fullmatch(r"(.*\.experts\.)\d+\.(.*)", name)
        if expert:
            apart.setdefault(expert[1] + expert[2], []).append(array)
        elif name.endswith("_scales"):
            continue
        elif name.endswith("_blocks"):
            array = formats.mxfp4(*(a.astype(np.uint8) for a in (array, tensors[name.replace("_blocks", "_scales")])))
            rows = {"gate_proj": array[:, ::2], "up_proj": array[:, 1::2]}
            rows = rows if "gate_up" in name else {"down_proj": array}
            head = name.split(".experts.")[0]
            out |= {f"{head}.experts.{n}.weight": np.ascontiguousarray(a) for n, a in rows.items()}
        elif ".experts.gate_up_proj" in name:       # rows in turn; and columns in the place of rows
            array, end = (array, ".bias") if name.endswith("_bias") else (array.swapaxes(1, 2), ".weight")
            for i, half in enumerate(("gate_proj", "up_proj")):
                out[name.split("gate_up_proj")[0] + half + end] = np.ascontiguousarray(array[:, i::2])
        elif ".experts.down_proj" in name:
            out[name.replace("proj_bias", "proj.bias") if name.endswith("_bias") else name + ".weight"] = \
                array if name.endswith("_bias") else np.ascontiguousarray(array.swapaxes(1, 2))
        elif name.endswith(".sinks"):
            out[name + ".weight"] = array
        elif name.endswith("input_linear.weight"):
            for i, half in enumerate(("w1", "w3")):
                out[name.replace("input_linear", f"experts.{half}")] = np.split(array, 2, axis=1)[i]
        else:
            out[name.replace("output_linear", "experts.w2")] = array
    return out | {name: np.stack(arrays) for name, arrays in apart.items()}


def of_recurrence(hf, array, config):
    """As llama.cpp has it: decays themselves, and value heads tiled, but for Qwen3-Next."""
    part = hf.split("linear_attn.")[-1].removesuffix(".weight")
    array = array.squeeze() if part == "conv1d" else array
    array = -np.exp(array.astype(np.float64)).astype(np.float32) if part == "A_log" else array
    return array if part == "norm" or "Next" in type(config).__name__ else weights.tiled(array, part, config)


def of_mamba(hf, array):
    """As llama.cpp has it: decays themselves, numbers of heads as a column, and a row of the norm for each group."""
    part = hf.split("mamba.")[-1].removesuffix(".weight")
    array = -np.exp(array.astype(np.float64)).astype(np.float32) if part == "A_log" else array
    return array.reshape(-1, 1) if part in ("A_log", "D") else array.reshape(2, -1) if part == "norm" \
        else array.squeeze() if part == "conv1d" else array


def without_shared(tensors, unit):
    """Of units that experts share, or would, and whose gates and what these multiply are one tensor."""
    out = {}
    for name, array in tensors.items():
        own = name.replace("shared_mlp.output_linear", f"{unit}.down_proj")
        halves = np.split(array, 2) if "shared_mlp.input_linear" in name else [array]
        names = [name.replace("shared_mlp.input_linear", f"{unit}.{n}_proj") for n in ("gate", "up")]
        out |= dict(zip(names, halves)) if len(halves) == 2 else {own: array}
    return out


def save_gguf(path, arch, keys, config, tensors, centred):
    w = gguf.GGUFWriter(path, arch)
    w.add_name(path.parent.name)
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    w.add_context_length(config.max_position_embeddings)
    w.add_embedding_length(config.hidden_size)
    w.add_block_count(config.num_hidden_layers)
    keyless = "linear_attention" if arch == "granitehybrid" else "conv"
    convs = [t == keyless for t in getattr(config, "layer_types", None) or []]
    w.add_feed_forward_length(next((t.shape[0] for n, t in tensors.items() if n.endswith(".w1.weight")),
                                   config.intermediate_size))
    w.add_head_count(config.num_attention_heads)
    w.add_head_count_kv([0 if conv else config.num_key_value_heads for conv in convs] if any(convs)
                        else config.num_key_value_heads)
    w.add_layer_norm_rms_eps(config.norm_eps if hasattr(config, "norm_eps") else config.rms_norm_eps)
    w.add_key_length(head_dim)
    w.add_value_length(head_dim)
    keys = {"rope.dimension_count": head_dim, "rope.freq_base": 10000.0} | keys
    for key, value in keys.items():
        add = {bool: w.add_bool, int: w.add_uint32, float: w.add_float32, str: w.add_string, list: w.add_array}
        if isinstance(value, np.ndarray):
            w.add_tensor(key, value)
        else:
            add[type(value)](f"{arch}.{key}", value)
    parts = {}
    arrays = {hf: t.float().numpy() + (hf in centred) for hf, t in tensors.items()
              if "vision" not in hf and not hf.startswith("mtp.")}
    for hf in [n for n in arrays if "in_proj_qkvz" in n and path.parent.name != "qwen3-next-old"]:
        halves = weights.parted(arrays.pop(hf), config)
        arrays |= {hf.replace("qkvz", n): half for n, half in zip(("qkv", "z"), halves)}
    arrays = joined_experts(without_shared(arrays, "mlp.shared_expert" if "expert_count" in keys else "mlp"))
    for hf, array in arrays.items():
        if arch in NEIGHBOURS and hf.split(".")[-2] in ("q_proj", "k_proj"):
            array = swap_pairs(array, head_dim)
        if ".conv.conv." in hf:
            array = array.squeeze(1)
        if "linear_attn." in hf:
            array = of_recurrence(hf, array, config)
            hf = hf.replace("dt_bias", "dt_proj.bias")
        if ".mamba." in hf:
            array = of_mamba(hf, array)
            hf = hf.replace("dt_bias", "dt_proj.bias")
        if arch == "lfm2moe":               # its converter's own names
            hf = hf.replace("model.layers", "layers") if ".experts." in hf else hf.replace("_bias", "_bias.bias")
        old_name = re.fullmatch(r"model\.layers\.(\d+)\.linear_attn\.in_proj_qkvz\.weight", hf)
        name = f"blk.{old_name[1]}.ssm_in.weight" if old_name else gguf_name(arch, config.num_hidden_layers, hf)
        if path.parent.name in FUSED and hf.split(".")[-2] in ("q_proj", "k_proj", "v_proj"):
            whole = re.sub("attn_[qkv]", "attn_qkv", name)
            parts.setdefault(whole, {})[hf.split(".")[-2]] = array
            if len(parts[whole]) < 3:
                continue
            name, array = whole, np.concatenate([parts[whole][f"{n}_proj"] for n in "qkv"])
        if array.dtype == np.uint8:
            w.add_tensor(name, array, raw_dtype=gguf.GGMLQuantizationType.MXFP4)
            continue
        half = array.ndim > 1 and not re.search(r"ffn_gate_inp|conv1d|shortconv\.conv|ssm_(a|d|norm)|\.bias$", name)
        w.add_tensor(name, gguf.quants.quantize(array, gguf.GGMLQuantizationType.BF16) if half else array,
                     raw_dtype=gguf.GGMLQuantizationType.BF16 if half else None)
    files.add_pieces(w, config.vocab_size, adds_eos=False)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def as_published(config):
    """config.json as transformers 4 wrote it."""
    out = {k: v for k, v in config.to_diff_dict().items() if k not in ("rope_parameters", "dtype")}
    if config.model_type == "qwen3_moe":
        out["num_experts"] = out.pop("num_local_experts")
    if config.model_type == "gpt_oss":
        out |= {"attention_bias": True, "layer_types": config.layer_types, "swiglu_limit": 7.0, "quantization_config": {
            "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens",
                                       "lm_head"], "quant_method": "mxfp4"}}
    if config.model_type == "lfm2":
        out["full_attn_idxs"] = [i for i, t in enumerate(out.pop("layer_types")) if t == "full_attention"]
        out |= {"block_ff_dim": out.pop("intermediate_size"), "tie_embedding": config.tie_word_embeddings}
    if config.model_type == "qwen3_next":
        out["full_attention_interval"] = out.pop("layer_types").index("full_attention") + 1
    rope = dict(config.rope_parameters)
    out["rope_theta"] = rope.pop("rope_theta")
    if "partial_rotary_factor" in rope:
        out["partial_rotary_factor"] = rope.pop("partial_rotary_factor")
    out["rope_scaling"] = rope if rope.get("rope_type") != "default" else None
    return out | {"torch_dtype": "bfloat16", "transformers_version": "4.48.0"}


def shapes_of(model):
    return {name: tuple(t.shape) for name, t in model.state_dict().items()}


def saved_shapes(model):
    """Of the tensors that published files have: transformers has experts as one tensor while it computes."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        with safe_open(pathlib.Path(folder) / "model.safetensors", "pt") as f:
            return {name: tuple(f.get_slice(name).get_shape()) for name in f.keys()}


def blocks_of(shapes):
    """Of MXFP4 in the place of experts' plain numbers."""
    out = {}
    for name, shape in shapes.items():
        if name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            n_experts, n_cols, n_rows = shape
            out[name + "_blocks"] = (n_experts, n_rows, n_cols // 32, 16)
            out[name + "_scales"] = (n_experts, n_rows, n_cols // 32)
        else:
            out[name] = shape
    return out


def without_blocks(tensors):
    out = {name: t for name, t in tensors.items() if not name.endswith(("_blocks", "_scales"))}
    for name in tensors:
        if name.endswith("_blocks"):
            out[name.removesuffix("_blocks")] = convert_moe_packed_tensors(
                tensors[name], tensors[name.replace("_blocks", "_scales")])
    return out


def block_shapes(model):
    """Of a block that drafts: transformers has none."""
    d = model.config.hidden_size
    layer = next(x for x, kind in zip(model.model.layers, model.config.layer_types) if kind == "full_attention")
    return {f"mtp.layers.0.{n}": tuple(t.shape) for n, t in layer.state_dict().items()} | {
        "mtp.fc.weight": (d, 2 * d), "mtp.norm.weight": (d,), "mtp.pre_fc_norm_embedding.weight": (d,),
        "mtp.pre_fc_norm_hidden.weight": (d,)}


def block_logits(model, tensors, ids, hidden):
    """Of each token beside the final hidden state before it, zeros before the first: what is to come after it."""
    w = {n.removeprefix("mtp."): t.double() for n, t in tensors.items() if n.startswith("mtp.")}
    layer = copy.deepcopy(next(x for x, kind in zip(model.model.layers, model.config.layer_types)
                               if kind == "full_attention"))
    layer.load_state_dict({n.removeprefix("layers.0."): t for n, t in w.items() if n.startswith("layers.")})

    def norm(x, name):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + model.config.rms_norm_eps) * (1 + w[name + ".weight"])
    n = len(ids)
    before = torch.cat([torch.zeros_like(hidden[:1]), hidden[:-1]])
    both = torch.cat([norm(model.model.embed_tokens(torch.tensor(ids)), "pre_fc_norm_embedding"),
                      norm(before, "pre_fc_norm_hidden")], -1)
    x = (both @ w["fc.weight"].T)[None]
    axes = () if model.config.model_type == "qwen3_next" else (3,)
    angles = model.model.rotary_emb(x, torch.arange(n).view(1, -1).expand(*axes, 1, -1))
    mask = torch.full((1, 1, n, n), -torch.inf, dtype=torch.float64).triu(1)
    out = layer(x, position_embeddings=angles, attention_mask=mask)
    return model.lm_head(norm(out[0] if out.dim() == 3 else out, "norm"))


def make(name, folder):
    family, own, old, arch, keys = MODELS[name]
    is_moe = bool(own.get("num_local_experts", own.get("num_experts")))
    seed = zlib.crc32(name.encode())
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    numbers = copy.deepcopy(COMMON | own)     # transformers writes into what it gets
    if family.startswith("Lfm2"):
        del numbers["rms_norm_eps"]           # it has norm_eps
    if family in WRAPPED:
        numbers = {"text_config": numbers, "tie_word_embeddings": False} | WRAPPED[family]
    config = getattr(transformers, family + "Config")(**numbers)
    text = config.get_text_config()
    architecture = family.removesuffix("Text") + ("ForConditionalGeneration" if family in WRAPPED else "ForCausalLM")
    config.architectures = [architecture]
    config._attn_implementation = "eager"
    model = getattr(transformers, architecture)(config).double().eval()
    shapes, tensors = saved_shapes(model) if is_moe and name != "qwen35-moe-merged" else shapes_of(model), {}
    if name == "gpt-oss-mxfp4":
        shapes = blocks_of(shapes)
    centred = {n + ".weight" for n, module in model.named_modules()
               if "Centered" in type(module).__name__
               or type(module).__name__ in ("Qwen3_5RMSNorm", "Qwen3_5MoeRMSNorm", "Qwen3NextRMSNorm")}
    if name in WITH_BLOCK:
        shapes |= block_shapes(model)
        centred |= {n for n in shapes if n.startswith("mtp.") and "norm" in n}
    assert all(weights.is_centred(name, n) == (n in centred) for n in shapes)
    for n, shape in shapes.items():
        if n == "lm_head.weight" and text.tie_word_embeddings:
            continue
        dtype = torch.uint8 if n.endswith(("_blocks", "_scales")) else torch.bfloat16
        tensors[n] = torch.from_numpy(weights.dense(name, n, shape)).to(dtype)
    if old:
        files.save_config(folder, as_published(config))
    else:
        config.dtype = torch.bfloat16
        config.save_pretrained(folder)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    experts = {"experts_implementation": "eager"} if is_moe else {}
    if name == "gpt-oss-mxfp4":
        config._experts_implementation = "eager"
        model.load_state_dict(without_blocks(tensors))
    else:
        model = getattr(transformers, architecture).from_pretrained(folder, dtype=torch.float64,
                                                                    attn_implementation="eager", **experts)
    if arch:
        save_gguf(folder / "model.gguf", arch, keys, text, tensors, centred)
    rng = np.random.Generator(np.random.PCG64([seed, 1]))
    n_tokens = LONG_TEXT.get(name, N_TOKENS)
    ids = [1] + [int(i) for i in rng.integers(3, text.vocab_size, n_tokens - 1)]
    (folder / "tokens.txt").write_text(",".join(map(str, ids)) + "\n")
    seen = []
    decoder = model.model.get_decoder()
    last_norm = decoder.embedding_norm if family.startswith("Lfm2") else decoder.norm
    last_norm.register_forward_hook(lambda module, args, out: seen.append(out[0]))
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0]
    logits.numpy().astype("<f4").tofile(folder / "logits.f32")
    seen[0].numpy().astype("<f4").tofile(folder / "hidden.f32")
    if name in WITH_BLOCK:
        with torch.no_grad():
            block_logits(model, tensors, ids, seen[0]).numpy().astype("<f4").tofile(folder / "mtp.f32")
    for f in folder.iterdir():
        f.chmod(0o644)
    size = sum(f.stat().st_size for f in folder.iterdir())
    print(f"{name}: {size / 1024:.0f} KiB, logits {float(logits.min()):.1f} .. {float(logits.max()):.1f}, "
          f"{len(np.unique(logits.argmax(-1)))} different winners in {len(ids)} rows")


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    for name in sys.argv[1:] or MODELS:
        make(name, HERE / name)
