#!/usr/bin/env python3
"""Makes the golden drafters: tiny random models of gemma4_assistant beside the golden models that they draft for, and
what transformers guesses with them.

    python3 tools/golden/drafter.py

The models that they draft for are read in build/golden, where a build puts them.

gemma4-assistant drafts for gemma4, gemma4-small-assistant for gemma4-small, with clusters of tokens in its files. Each
folder has config.json and model.safetensors, the first one a model.gguf too, and guesses.f32: at each position of
POSITIONS the logits of N_GUESSES greedy guesses, [positions][guesses][272], little-endian float32. The guesses come
after tokens.txt of the target up to there, of which the last one is not evaluated: float64 weights and activations.
"""
import json
import pathlib

import gguf
import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

import files
import models
import oracle
import weights
from assemble import BUILT

HERE = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"
POSITIONS = (1, 7, 13, 40, 99)      # tokens that were evaluated: windows are of 12
N_GUESSES = 5


def kv_sharing_modes(c):
    """What Gemma4TextConfig 5.23 means to say, but that it refuses a model all of whose layers read another's cache, and
    keeps none of a model whose layers have caches of their own."""
    n_own = c.num_hidden_layers - c.num_kv_shared_layers
    out = [None if i < n_own else "reuse" for i in range(c.num_hidden_layers)]
    for kind in set(c.layer_types[:n_own]):
        out[max(i for i in range(n_own) if c.layer_types[i] == kind)] = "store"
    return out


transformers.Gemma4TextConfig.kv_sharing_modes = property(kv_sharing_modes)


def config(target):
    own = files.own_config(target)
    text = transformers.Gemma4TextConfig(
        vocab_size=target.vocab_size, hidden_size=32, intermediate_size=48, num_hidden_layers=4,
        num_attention_heads=target.n_heads, num_key_value_heads=target.n_kv_heads, head_dim=target.head_dim,
        rms_norm_eps=target.eps, max_position_embeddings=512, pad_token_id=0, eos_token_id=1, bos_token_id=2,
        sliding_window=target.window, layer_types=["sliding_attention"] * 3 + ["full_attention"],
        rope_parameters=files.rope_parameters_4(target), num_kv_shared_layers=4, hidden_size_per_layer_input=0,
        vocab_size_per_layer_input=0, global_head_dim=target.gemma4["global_head_dim"],
        attention_k_eq_v=target.gemma4.get("attention_k_eq_v", False),
        num_global_key_value_heads=target.gemma4.get("num_global_key_value_heads"))
    return transformers.Gemma4AssistantConfig(text_config=text, backbone_hidden_size=own.hidden_size)


def build(c, name):
    c = transformers.Gemma4AssistantConfig.from_dict(c.to_dict())
    c._attn_implementation = c.text_config._attn_implementation = "eager"
    model = transformers.Gemma4AssistantForCausalLM(c)
    state = {n: torch.from_numpy(weights.drafter(name, n, tuple(t.shape)).astype(np.float32))
             for n, t in model.state_dict().items() if n != "lm_head.weight"}
    missing, extra = model.double().load_state_dict({n: t.double() for n, t in state.items()}, strict=False)
    assert set(missing) <= {"lm_head.weight"} and not extra, (missing, extra)
    model.tie_weights()
    return model.eval(), state


@torch.no_grad()
def guess(model, target, ids, n):
    """Logits of greedy guesses after ids[:n + 1], of which the target has evaluated n."""
    out = target(input_ids=torch.tensor([ids[:n]]), output_hidden_states=True, return_shared_kv_states=True,
                 use_cache=False)
    seen, hidden = torch.tensor([[ids[n]]]), out.hidden_states[-1][:, -1:]
    rows = []
    for _ in range(N_GUESSES):
        embedded = target.get_input_embeddings()(seen)
        got = model(inputs_embeds=torch.cat([embedded, hidden], dim=-1), position_ids=torch.tensor([[n]]),
                    shared_kv_states=out.shared_kv_states, use_cache=False)
        rows.append(got.logits[0, 0])
        seen, hidden = got.logits.argmax(dim=-1), got.last_hidden_state
    return torch.stack(rows)


def save_gguf(target, c, state, path):
    """The keys and names of published files."""
    text, arch = c.text_config, "gemma4-assistant"
    w = gguf.GGUFWriter(path, arch)
    w.add_name(path.parent.name)
    w.add_context_length(text.max_position_embeddings)
    w.add_embedding_length(text.hidden_size)
    w.add_uint32(f"{arch}.embedding_length_out", c.backbone_hidden_size)
    w.add_block_count(text.num_hidden_layers)
    w.add_feed_forward_length(text.intermediate_size)
    w.add_head_count(text.num_attention_heads)
    is_local = [t == "sliding_attention" for t in text.layer_types]
    w.add_head_count_kv([target.n_kv_heads if local else target.gemma4["num_global_key_value_heads"] for local in is_local])
    w.add_layer_norm_rms_eps(text.rms_norm_eps)
    for key in ("attention.key_length", "attention.value_length", "rope.dimension_count"):
        w.add_uint32(f"{arch}.{key}", target.gemma4["global_head_dim"])
        w.add_uint32(f"{arch}.{key}_swa", target.head_dim)
    w.add_sliding_window(text.sliding_window)
    w.add_array(f"{arch}.attention.sliding_window_pattern", is_local)
    w.add_uint32(f"{arch}.attention.shared_kv_layers", text.num_hidden_layers)
    w.add_rope_freq_base(text.rope_parameters["full_attention"]["rope_theta"])
    w.add_float32(f"{arch}.rope.freq_base_swa", text.rope_parameters["sliding_attention"]["rope_theta"])
    n = target.gemma4["global_head_dim"] // 2
    w.add_tensor("rope_freqs.weight", np.array([1.0] * (n // 4) + [1e30] * (n - n // 4), np.float32))
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.GEMMA4, text.num_hidden_layers)
    for hf, tensor in state.items():
        own = {"pre_projection.weight": "nextn.pre_projection.weight",
               "post_projection.weight": "nextn.post_projection.weight"}.get(hf)
        if hf.endswith("layer_scalar"):
            own = hf.replace("model.layers.", "blk.").replace("layer_scalar", "layer_output_scale.weight")
        w.add_tensor(own or names.get_name(hf, try_suffixes=(".weight",)), tensor.numpy())
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def make(of, has_clusters):
    folder = HERE / f"{of}-assistant"
    folder.mkdir(exist_ok=True)
    shape = models.SHAPES[of]
    c = config(shape)
    model, state = build(c, folder.name)
    target = oracle.load(shape, BUILT / of)
    ids = models.tokens(shape)
    rows = torch.stack([guess(model, target, ids, n) for n in POSITIONS])
    rows.numpy().astype("<f4").tofile(folder / "guesses.f32")
    stored = dict(state)
    published = c.to_dict()
    published["architectures"] = ["Gemma4AssistantForCausalLM"]
    if has_clusters:
        published |= {"use_ordered_embeddings": True, "num_centroids": 16, "centroid_intermediate_top_k": 4}
        stored["masked_embedding.centroids.weight"] = torch.ones(16, 32)
        stored["masked_embedding.token_ordering"] = torch.arange(shape.vocab_size)
    files.save_config(folder, published)
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    assert set(load_file(folder / "model.safetensors")) == set(stored)
    if not has_clusters:
        save_gguf(shape, c, state, folder / "model.gguf")
    for f in folder.iterdir():
        f.chmod(0o644)
    winners = rows.argmax(-1)
    print(f"{folder.name}: {len(set(winners.flatten().tolist()))} different winners in {winners.numel()} guesses, logits "
          f"{float(rows.min()):.1f} .. {float(rows.max()):.1f}", json.dumps(winners.tolist()))


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    make("gemma4", False)
    make("gemma4-small", True)
