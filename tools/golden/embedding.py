#!/usr/bin/env python3
"""Makes tests/golden/embedding-gemma and embedding-gemma2: tiny random embedding models, and the vectors of texts.

    python3 tools/golden/embedding.py

Each folder has a Hugging Face directory with sentence-transformers' files beside it, the same model as model.gguf, and
- texts.txt: of each text a line of token ids; their lengths differ, and some are longer than both sides of a window
- hidden.f32: final-norm states of all texts, row after row; vectors.f32: a vector for each
computed by transformers in float64, text by text, and from there by a few lines of numpy.
"""
import json
import pathlib
import shutil

import gguf
import numpy as np
import torch
import transformers
from safetensors.torch import save_file
from transformers import EmbeddingGemma2TextConfig, EmbeddingGemma2TextModel, Gemma3TextConfig, Gemma3TextModel

import files
import tokenizer
from weights import EMBEDDING_SEEDS, embedding

HERE = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"
D, FFN, VOCAB, N_HEADS, HEAD, GLOBAL_HEAD, LAYERS, PATTERN = 64, 96, 288, 4, 16, 32, 6, 3
DENSE, OUT, PER_LAYER = 160, 48, 32
LENGTHS = (1, 2, 9, 40, 23, 70, 5)
PROMPTS = {"query": "task: search result | query: ", "document": "title: none | text: ", "Clustering": "x"}


def layer_types():
    return ["sliding_attention" if (i + 1) % PATTERN else "full_attention" for i in range(LAYERS)]


def texts(seed):
    """bos, random ids, eos; the first text is bos alone."""
    rng = np.random.Generator(np.random.PCG64([seed, 1]))
    return [([2] + [int(i) for i in rng.integers(3, VOCAB, n)] + [1])[:max(n, 1)] if n > 1 else [2] for n in LENGTHS]


def save(folder, name, tensors):
    (folder / name).parent.mkdir(exist_ok=True)
    save_file({n: torch.from_numpy(w) for n, w in tensors.items()}, folder / name, metadata={"format": "pt"})


def save_json(folder, name, value):
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(value, indent=2) + "\n")


def save_modules(folder, dense):
    module = "sentence_transformers.models."
    names = ["Transformer", "Pooling"] + ["Dense"] * dense + ["Normalize"]
    save_json(folder, "modules.json", [
        {"idx": i, "name": str(i), "path": "" if i == 0 else f"{i}_{name}", "type": module + name}
        for i, name in enumerate(names)])
    save_json(folder, "1_Pooling/config.json", {
        "word_embedding_dimension": D, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True,
        "pooling_mode_max_tokens": False, "pooling_mode_lasttoken": False, "include_prompt": True})
    save_json(folder, "config_sentence_transformers.json", {"default_prompt_name": None, "prompts": PROMPTS,
                                                            "similarity_fn_name": "cosine"})


def save_tokenizer(folder):
    (folder / "tokenizer.model").write_bytes(tokenizer.sentencepiece_model(*tokenizer.pieces(VOCAB)))
    save_json(folder, "tokenizer_config.json", {"add_bos_token": True, "add_eos_token": True, "bos_token": "<bos>",
                                                "eos_token": "<eos>"})


def writer(folder, arch, window):
    w = gguf.GGUFWriter(folder / "model.gguf", arch)
    w.add_type("model")
    w.add_name(folder.name)
    w.add_context_length(512)
    w.add_embedding_length(D)
    w.add_block_count(LAYERS)
    w.add_feed_forward_length(FFN)
    w.add_head_count(N_HEADS)
    w.add_layer_norm_rms_eps(1e-6)
    w.add_sliding_window(window)
    w.add_bool(f"{arch}.attention.causal", False)
    w.add_uint32(f"{arch}.pooling_type", 1)
    w.add_rope_freq_base(1e6)
    w.add_array(f"{arch}.attention.sliding_window_pattern", [t == "sliding_attention" for t in layer_types()])
    w.add_float32(f"{arch}.rope.freq_base_swa", 10000.0)
    files.add_pieces(w, VOCAB, adds_eos=True)
    return w


NAMES = {"embed_tokens": "token_embd", "norm": "output_norm", "input_layernorm": "attn_norm",
         "post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
         "post_feedforward_layernorm": "post_ffw_norm", "q_proj": "attn_q", "k_proj": "attn_k", "v_proj": "attn_v",
         "o_proj": "attn_output", "q_norm": "attn_q_norm", "k_norm": "attn_k_norm", "gate_proj": "ffn_gate",
         "up_proj": "ffn_up", "down_proj": "ffn_down", "per_layer_model_projection": "per_layer_model_proj",
         "per_layer_projection_norm": "per_layer_proj_norm", "per_layer_input_gate": "inp_gate",
         "per_layer_projection": "proj", "post_per_layer_input_norm": "post_norm", "embedding_projection": "output",
         "layer_scalar": "layer_output_scale"}


def gguf_name(hf):
    parts = hf.removesuffix(".weight").split(".")
    return (f"blk.{parts[1]}." if parts[0] == "layers" else "") + NAMES[parts[-1]] + ".weight"


def finish_gguf(w, weights, plus_one):
    for hf, array in weights.items():
        w.add_tensor(gguf_name(hf), array + np.float32(1) if hf.endswith("norm.weight") and plus_one else array)


def close(w):
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


@torch.no_grad()
def run(folder, cls, config, weights, dense, seed):
    config._attn_implementation = "eager"
    model = cls(config).double()
    missing, extra = model.load_state_dict({n: torch.from_numpy(a).double() for n, a in weights.items()}, strict=False)
    assert not extra and not missing, (missing, extra)
    seen, widest = [], []
    for layer in model.layers:
        layer.mlp.down_proj.register_forward_hook(lambda module, args, out: widest.append(args[0].abs().max()))
    model.eval().norm.register_forward_hook(lambda module, args, out: seen.append(out[0].numpy()))
    lists, vectors = texts(seed), []
    for ids in lists:
        out = model(input_ids=torch.tensor([ids])).last_hidden_state[0].numpy()
        v = (seen[-1] if dense else out).mean(0)
        for matrix in dense:
            v = matrix.astype(np.float64) @ v
        vectors.append(v / np.linalg.norm(v))
    assert dense or max(widest) > 65504
    (folder / "texts.txt").write_text("".join(",".join(map(str, ids)) + "\n" for ids in lists))
    np.concatenate(seen).astype("<f4").tofile(folder / "hidden.f32")
    np.stack(vectors).astype("<f4").tofile(folder / "vectors.f32")


def shapes(cls, config):
    with torch.device("meta"):
        return {n: tuple(t.shape) for n, t in cls(config).state_dict().items()}


def begin(name):
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def make_1(name="embedding-gemma", window=13):
    """config.json as published: the window is of both sides, and odd here."""
    folder = begin(name)
    published = {
        "_sliding_window_pattern": PATTERN, "architectures": ["Gemma3TextModel"], "attention_bias": False,
        "attention_dropout": 0.0, "attn_logit_softcapping": None, "bos_token_id": 2, "dtype": "float32",
        "eos_token_id": 1, "final_logit_softcapping": None, "head_dim": HEAD,
        "hidden_activation": "gelu_pytorch_tanh", "hidden_size": D, "initializer_range": 0.02,
        "intermediate_size": FFN, "layer_types": layer_types(), "max_position_embeddings": 512,
        "model_type": "gemma3_text", "num_attention_heads": N_HEADS, "num_hidden_layers": LAYERS,
        "num_key_value_heads": 1, "pad_token_id": 0, "query_pre_attn_scalar": HEAD, "rms_norm_eps": 1e-06,
        "rope_local_base_freq": 10000.0, "rope_scaling": None, "rope_theta": 1000000.0, "sliding_window": window,
        "transformers_version": "4.57.0.dev0", "use_bidirectional_attention": True, "use_cache": True,
        "vocab_size": VOCAB}
    save_json(folder, "config.json", published)
    config = Gemma3TextConfig.from_pretrained(folder)
    assert config.sliding_window == window // 2 + 1
    weights = {n: embedding(name, n, s) for n, s in shapes(Gemma3TextModel, config).items()}
    dense = [embedding(name, f"{i}.linear", shape) for i, shape in ((2, (DENSE, D)), (3, (OUT, DENSE)))]
    save(folder, "model.safetensors", weights)
    save_modules(folder, 2)
    for i, matrix in enumerate(dense):
        identity = "torch.nn.modules.linear.Identity"
        save(folder, f"{i + 2}_Dense/model.safetensors", {"linear.weight": matrix})
        save_json(folder, f"{i + 2}_Dense/config.json", {
            "in_features": matrix.shape[1], "out_features": matrix.shape[0], "bias": False,
            "activation_function": identity})
    save_tokenizer(folder)
    w = writer(folder, "gemma-embedding", window)
    w.add_head_count_kv(1)
    w.add_key_length(HEAD)
    w.add_value_length(HEAD)
    for i, matrix in enumerate(dense):
        w.add_uint32(f"gemma-embedding.dense_{i + 2}_feat_in", matrix.shape[1])
        w.add_uint32(f"gemma-embedding.dense_{i + 2}_feat_out", matrix.shape[0])
        w.add_tensor(f"dense_{i + 2}.weight", matrix)
    finish_gguf(w, weights, True)
    close(w)
    run(folder, Gemma3TextModel, config, weights, dense, EMBEDDING_SEEDS[name])


def make_2(name="embedding-gemma2", radius=6):
    """config.json as transformers writes it: the window is of each side, and in GGUF of both."""
    folder = begin(name)
    config = EmbeddingGemma2TextConfig(
        vocab_size=VOCAB, hidden_size=D, intermediate_size=FFN, num_hidden_layers=LAYERS,
        num_attention_heads=N_HEADS, num_key_value_heads=2, head_dim=HEAD, global_head_dim=GLOBAL_HEAD,
        num_global_key_value_heads=1, sliding_window=radius, sliding_window_pattern=PATTERN,
        max_position_embeddings=512, hidden_size_per_layer_input=PER_LAYER, embedding_dim=OUT)
    weights = {n: embedding(name, n, s) for n, s in shapes(EmbeddingGemma2TextModel, config).items()}
    whole = {"architectures": ["EmbeddingGemma2Model"], "model_type": "embedding_gemma2", "dtype": "float32",
             "text_config": json.loads(config.to_json_string(use_diff=False)), "vision_config": None,
             "audio_config": None}
    save_json(folder, "config.json", whole)
    saved = {f"language_model.{n}": a for n, a in weights.items()}
    saved["embed_vision.embedding_projection.weight"] = np.ones((D, 32), np.float32)
    save(folder, "model.safetensors", saved)
    save_modules(folder, 0)
    save_tokenizer(folder)
    w = writer(folder, "gemma-embedding2", 2 * radius)
    w.add_uint32("gemma-embedding2.embedding_length_out", OUT)
    w.add_uint32("gemma-embedding2.embedding_length_per_layer_input", PER_LAYER)
    w.add_uint32("gemma-embedding2.attention.shared_kv_layers", 0)
    w.add_head_count_kv([2 if t == "sliding_attention" else 1 for t in layer_types()])
    for key in ("attention.key_length", "attention.value_length", "rope.dimension_count"):
        w.add_uint32(f"gemma-embedding2.{key}", GLOBAL_HEAD)
        w.add_uint32(f"gemma-embedding2.{key}_swa", HEAD)
    finish_gguf(w, weights, False)
    close(w)
    run(folder, EmbeddingGemma2TextModel, config, weights, [], EMBEDDING_SEEDS[name])


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    make_1()
    make_2()
    for f in (f for n in ("embedding-gemma", "embedding-gemma2") for f in (HERE / n).rglob("*") if f.is_file()):
        f.chmod(0o644)      # safetensors makes its files private
