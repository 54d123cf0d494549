#!/usr/bin/env python3
"""Shows that the golden models that see can catch mistakes.

    python3 tools/golden/vision_check.py [NAME...]

For each model: the files are what transformers gives; towers and masks written plainly, from the tensors of the files,
give what transformers gives; and how far each mistake moves the images' rows (least, median) and the logits of
tokens-2.txt (the last rows: least, median; all rows: greatest). All numbers are relative L2 of a row.
"""
import argparse
import math
import pathlib
import sys

import numpy as np
import torch
import torch.nn.functional as F
import transformers

import check
import files
import models
import vision
from assemble import BUILT

LATE = 15
GGUF_ROWS = {"mmproj.gguf": "rows", "mmproj-q8_0.gguf": "rows-q8_0", "mmproj-q4_0.gguf": "rows-q4_0"}
TANH, ERF = lambda x: F.gelu(x, approximate="tanh"), F.gelu
QUICK = lambda x: x * torch.sigmoid(1.702 * x)
rel = check.rel


# ---- towers, plainly; **wrong: what is done otherwise ----

def layer_norm(w, name, x, eps):
    x = (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, unbiased=False) + eps).sqrt()
    return x * w[name + ".weight"] + w[name + ".bias"]


def rms(x, weight=None, eps=1e-6):
    x = x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt()
    return x if weight is None else x * weight


def heads(x, n):
    return x.view(len(x), n, -1).transpose(0, 1)        # [heads, patches, head_dim]


def attend(q, k, v, scale, causal=False):
    scores = q @ k.transpose(1, 2) * scale
    if causal:
        scores = scores + torch.full(scores.shape[1:], -math.inf).triu(1)
    return (torch.softmax(scores, -1) @ v).transpose(0, 1).flatten(1)


def means(x, width, k, wrong):
    """[height * width, n] -> means of k x k neighbours, row by row"""
    x = x.view(-1, width, x.shape[-1])
    if wrong.get("pool") == "runs":
        return x.flatten(0, 1).view(-1, k * k, x.shape[-1]).mean(1)
    if wrong.get("pool") == "first":
        return x[::k, ::k].flatten(0, 1)
    x = x.view(len(x) // k, k, width // k, k, -1).mean((1, 3))
    return (x.transpose(0, 1) if wrong.get("pool") == "columns" else x).flatten(0, 1)


def siglip(m, w, values, at, eps=1e-6, act=TANH, **wrong):
    """values: [3, side, side]"""
    t, size = m.tower, m.tower["patch_size"]
    side = t["image_size"] // size
    x = values.view(3, side, size, side, size).permute(1, 3, 0, 2, 4)       # [y][x][channel][y in patch][x in patch]
    if wrong.get("channels_last"):
        x = x.permute(0, 1, 3, 4, 2)
    if wrong.get("bgr"):
        x = x.flip(2)
    v, n = "model.vision_tower.", t["num_attention_heads"]
    x = x.reshape(side * side, -1) @ w[v + "embeddings.patch_embedding.weight"].flatten(1).T
    x = x + w[v + "embeddings.patch_embedding.bias"] * (not wrong.get("no_patch_bias"))
    table = w[v + "embeddings.position_embedding.weight"]
    if wrong.get("positions") == "columns":
        table = table.view(side, side, -1).transpose(0, 1).flatten(0, 1)
    x = x + table * (wrong.get("positions") != "none")
    for i in range(t["num_hidden_layers"]):
        p = f"{v}encoder.layers.{i}."

        def linear(name, x):
            return x @ w[p + name + ".weight"].T + w[p + name + ".bias"] * (name not in wrong.get("no_bias", ()))
        h = layer_norm(w, p + "layer_norm1", x, eps)
        if wrong.get("rms"):
            h = rms(x, w[p + "layer_norm1.weight"])
        q, k, val = (heads(linear(f"self_attn.{name}_proj", h), n) for name in "qkv")
        scale = 1.0 if wrong.get("no_scale") else q.shape[-1] ** -0.5
        x = x + linear("self_attn.out_proj", attend(q, k, val, scale, wrong.get("causal")))
        h = layer_norm(w, p + "layer_norm2", x, eps)
        x = x + linear("mlp.fc2", act(linear("mlp.fc1", h)))
    if not wrong.get("no_last_norm"):
        x = layer_norm(w, v + "post_layernorm", x, eps)
    x = means(x, side, math.isqrt(side * side // m.top["mm_tokens_per_image"]), wrong)
    p = "model.multi_modal_projector."
    x = rms(x, w[p + "mm_soft_emb_norm.weight"] + (not wrong.get("no_plus_one")))
    return x @ w[p + "mm_input_projection_weight"]


def rotated(x, positions, wrong):
    """x: [heads, patches, head_dim]: the first half by x, the second by y, each by halves of its own."""
    n = x.shape[-1] // 2
    f = wrong.get("base", 100.0) ** -(torch.arange(0, n, 2).double() / n)
    out = []
    for part, pos in zip(x.split(n, -1), (positions.flip(-1) if wrong.get("rope") == "y first" else positions).T):
        angle = pos[:, None] * f
        a, b = part.chunk(2, -1)
        if wrong.get("rope") == "interleaved":
            a, b = part[..., ::2], part[..., 1::2]
        pair = a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()
        out.append(torch.stack(pair, -1).flatten(-2) if wrong.get("rope") == "interleaved" else torch.cat(pair, -1))
    return x if wrong.get("rope") == "none" else torch.cat(out, -1)


def tower_4(m, w, values, at, act=TANH, **wrong):
    """values: [patches, size * size * 3] in [0, 1]; at: [patches, 2] of (x, y)"""
    t, v = m.tower, "model.vision_tower."
    n, width = t["num_attention_heads"], int(at[:, 0].max()) + 1
    values = values if wrong.get("unscaled_pixels") else 2 * values - 1
    if wrong.get("channels_first"):
        values = values.view(len(values), -1, 3).transpose(1, 2).flatten(1)
    table = w[v + "patch_embedder.position_embedding_table"]
    xy = at.flip(-1) if wrong.get("positions") == "y first" else at
    x = values @ w[v + "patch_embedder.input_proj.weight"].T
    x = x + (table[0][xy[:, 0]] + table[1][xy[:, 1]]) * (wrong.get("positions") != "none")
    for i in range(t["num_hidden_layers"]):
        p = f"{v}encoder.layers.{i}."

        def norm(name, x):
            return x if name in wrong.get("no_norm", ()) else rms(x, w[f"{p}{name}.weight"] + wrong.get("plus", 0))

        def linear(name, x):
            clips = [w.get(f"{p}{name}.{c}") for c in ("input_min", "input_max", "output_min", "output_max")]
            if clips[0] is None:
                return x @ w[p + name + ".linear.weight"].T
            if wrong.get("clips") not in ("none", "outputs alone"):
                x = x.clamp(clips[0], clips[1])
            x = x @ w[p + name + ".linear.weight"].T
            return x if wrong.get("clips") in ("none", "inputs alone") else x.clamp(clips[2], clips[3])
        h = norm("input_layernorm", x)
        q, k, val = (heads(linear(f"self_attn.{name}_proj", h), n) for name in "qkv")
        q, k = (rotated(norm(f"self_attn.{name}_norm", y), at, wrong) for name, y in (("q", q), ("k", k)))
        val = val if "v" in wrong.get("no_norm", ()) else rms(val)
        scale = q.shape[-1] ** -0.5 if wrong.get("scaled") else 1.0
        a = attend(q, k, val, scale, wrong.get("causal"))
        x = x + norm("post_attention_layernorm", linear("self_attn.o_proj", a))
        h = norm("pre_feedforward_layernorm", x)
        h = linear("mlp.down_proj", act(linear("mlp.gate_proj", h)) * linear("mlp.up_proj", h))
        x = x + norm("post_feedforward_layernorm", h)
    x = means(x, width, t["pooling_kernel_size"], wrong)
    x = x * (1.0 if wrong.get("no_root") else t["hidden_size"] ** 0.5)
    if t["standardize"] and not wrong.get("no_standard"):
        x = (x - w[v + "std_bias"]) * w[v + "std_scale"]
    x = x if wrong.get("no_last_norm") else rms(x)
    return x @ w["model.embed_vision.embedding_projection.weight"].T


def unified(m, w, values, at, eps=1e-5, **wrong):
    """values: [patches, size * size * 3] in [0, 1], patches as large as what is pooled elsewhere"""
    v = "model.embed_vision."
    values = 2 * values - 1 if wrong.get("scaled_pixels") else values
    if wrong.get("channels_first"):
        values = values.view(len(values), -1, 3).transpose(1, 2).flatten(1)
    if wrong.get("small_patches"):      # small patches one after another instead of pixels row by row
        k, size = m.tower["pooling_kernel_size"], m.tower["patch_size"]
        values = values.view(-1, k, size, k, size, 3).transpose(2, 3).flatten(1)

    def norm(name, x):
        return x if name in wrong.get("no_norm", ()) else layer_norm(w, v + name, x, eps)
    x = norm("patch_ln1", values) @ w[v + "patch_dense.weight"].T
    x = norm("patch_ln2", x + w[v + "patch_dense.bias"] * (not wrong.get("no_bias")))
    table = w[v + "pos_embedding"]
    xy = at.flip(-1) if wrong.get("positions") == "y first" else at
    x = x + (table[xy[:, 0], 0] + table[xy[:, 1], 1]) * (wrong.get("positions") != "none")
    x = norm("pos_norm", x)
    x = x if wrong.get("no_last_norm") else rms(x)
    return x @ w[v + "multimodal_embedder.embedding_projection.weight"].T


def tower(m):
    return siglip if m.is_gemma3 else unified if m.is_unified else tower_4


def tower_mistakes(m):
    yield "positions by columns" if m.is_gemma3 else "y first in positions", dict(
        positions="columns" if m.is_gemma3 else "y first")
    yield "no positions", dict(positions="none")
    if not m.is_unified:
        yield "GELU by erf", dict(act=ERF)
        yield "GELU by sigmoid", dict(act=QUICK)
        for how, what in (("runs", "means of runs"), ("first", "first patch of each block"), ("columns", "by columns")):
            yield f"pool: {what}", dict(pool=how)
        yield "causal", dict(causal=True)
    if m.is_gemma3:
        yield "channels innermost", dict(channels_last=True)
        yield "BGR", dict(bgr=True)
        yield "no bias of patches", dict(no_patch_bias=True)
        for names in (["self_attn.q_proj"], ["self_attn.k_proj"], ["self_attn.v_proj"], ["self_attn.out_proj"],
                      ["mlp.fc1"], ["mlp.fc2"]):
            yield f"no bias of {names[0]}", dict(no_bias=names)
        yield "RMS norm for LayerNorm", dict(rms=True)
        yield "scores not scaled", dict(no_scale=True)
        yield "no norm after the layers", dict(no_last_norm=True)
        yield "soft_emb_norm without +1", dict(no_plus_one=True)
        yield "eps 1e-5", dict(eps=1e-5)
        return
    yield "channels outermost", dict(channels_first=True)
    yield "no norm before the projection", dict(no_last_norm=True)
    if m.is_unified:
        yield "pixels from -1", dict(scaled_pixels=True)
        yield "small patches one after another", dict(small_patches=True)
        yield "no bias", dict(no_bias=True)
        for name in ("patch_ln1", "patch_ln2", "pos_norm"):
            yield f"no {name}", dict(no_norm=(name,))
        yield "eps 1e-6", dict(eps=1e-6)
        return
    yield "pixels from 0", dict(unscaled_pixels=True)
    for how in ("none", "y first", "interleaved"):
        yield f"rotation: {how}", dict(rope=how)
    yield "rotation: base 10000", dict(base=10000.0)
    yield "scores / root of head_dim", dict(scaled=True)
    for name in ("self_attn.q_norm", "self_attn.k_norm", "v", "post_attention_layernorm", "post_feedforward_layernorm"):
        yield f"no norm: {name}", dict(no_norm=(name,))
    yield "norm weights with +1", dict(plus=1)
    yield "not times root of width", dict(no_root=True)
    if m.tower["standardize"]:
        yield "not standardised", dict(no_standard=True)
    if m.tower["use_clipped_linears"]:
        for how in ("none", "inputs alone", "outputs alone"):
            yield f"clips: {how}", dict(clips=how)


# ---- masks ----

def masks(m, ids, ways=None, window=0, past=True, one_image=False):
    """{kind of layer: [n, n]: who sees whom}. ways: kinds of layer in which rows of an image see each other; past: not
    beyond the window, though."""
    tokens = torch.tensor(ids)
    soft = tokens == m.token(vision.SOFT)
    starts = soft & ~torch.cat((torch.tensor([False]), soft[:-1]))
    image = torch.where(soft, 1 if one_image else starts.cumsum(0), 0)
    same = (image[:, None] == image) & soft
    n = torch.arange(len(ids))
    causal = n <= n[:, None]
    near = n > n[:, None] - m.text.window - window
    local, full = "sliding_attention", "full_attention"
    ways = ways if ways is not None else own_ways(m)
    out = {full: causal | same if full in ways else causal, local: causal & near}
    if local in ways:
        out[local] = near & (causal | same) if past else causal & near | same
    return out


def own_ways(m):
    if m.is_gemma3:
        return ("sliding_attention", "full_attention")
    return ("sliding_attention",) if m.text.gemma4.get("use_bidirectional_attention") else ()


def mask_mistakes(m):
    local, full = "sliding_attention", "full_attention"
    for what, ways in (("causal in all layers", ()), ("both ways in local layers alone", (local,)),
                       ("both ways in global layers alone", (full,)), ("both ways in all layers", (local, full))):
        if ways != own_ways(m):
            yield what, dict(ways=ways)
    if own_ways(m):
        yield "images see beyond the window", dict(past=False)
    if m.is_unified:
        yield "transformers 5.23's own forward", dict(past=False, ways=(local, full))
        yield "images see later images", dict(one_image=True)
    yield "window + 1", dict(window=1)


# ---- the text's side ----

def text_mistakes(m, model, ids):
    """(what, owner and name of a method, what it does instead), and changes of rows"""
    text, soft = model.model.language_model, torch.tensor([ids]) == m.token(vision.SOFT)
    if not (m.text.gemma4 and m.text.gemma4["hidden_size_per_layer_input"]):
        return
    inputs, project, table = text.get_per_layer_inputs, text.project_per_layer_inputs, text.embed_tokens_per_layer

    def with_table(row):
        return lambda ids, embeds: torch.where(soft[..., None, None], row.view(1, 1, m.text.n_layers, -1),
                                               inputs(ids, embeds))

    def with_pad(embeds, per_layer):
        pad = text.embed_tokens(torch.zeros_like(soft, dtype=torch.long))
        return project(torch.where(soft[..., None], pad, embeds), per_layer)

    def without_table(embeds, per_layer):
        own = project(embeds, per_layer)
        return torch.where(soft[..., None, None], project(embeds, None), own)
    zero = torch.zeros(m.text.n_layers * m.text.gemma4["hidden_size_per_layer_input"]).double()
    yield "inputs of layers: the image token's", (text, "get_per_layer_inputs",
                                                  with_table(table(torch.tensor(m.token(vision.SOFT)))))
    yield "inputs of layers: no token's", (text, "get_per_layer_inputs", with_table(zero))
    yield "inputs of layers: rows alone", (text, "project_per_layer_inputs", without_table)
    yield "inputs of layers: pad's projection", (text, "project_per_layer_inputs", with_pad)
    yield "no inputs of layers at images", (text, "project_per_layer_inputs", lambda embeds, per_layer: torch.where(
        soft[..., None, None], 0.0, project(embeds, per_layer)))


# ---- the report ----

def check_files(m, folder, model, values, positions, rows):
    """What transformers reads is what vision.py meant, and the folder holds what transformers gives."""
    meant = files.own_config(m.text).to_dict()
    read = model.config.text_config.to_dict()
    for key in ("layer_types", "rope_parameters", "sliding_window", "rms_norm_eps", "vocab_size", "hidden_size",
                "per_layer_config", "num_kv_shared_layers", "final_logit_softcapping", "query_pre_attn_scalar"):
        assert read.get(key) == meant.get(key), key
    state = model.state_dict()
    tower = vision.tower_weights(m)
    for name, w in tower.items():
        assert torch.equal(state[name].double(), w.double()), name
    for name, w in models.weights(m.text).items():
        if not models.is_unread(m.text, name):
            want = torch.from_numpy(w).to(torch.bfloat16).double()
            assert torch.equal(state["model.language_model." + name], want), name
    for i, (height, width) in enumerate(m.sizes):       # nothing was resampled
        raw = torch.from_numpy(vision.picture(m.text.seed + i, height, width)).double() / 255
        got, at = vision.patches(values, positions, i)
        if at is None:
            assert torch.allclose(got.double(), (2 * raw - 1).permute(2, 0, 1), atol=1e-6)
            continue
        side = math.isqrt(got.shape[1] // 3)
        assert torch.equal(at, torch.tensor([[x, y] for y in range(height // side) for x in range(width // side)]))
        want = raw.view(height // side, side, width // side, side, 3).transpose(1, 2).flatten(2).flatten(0, 1)
        assert torch.allclose(got.double(), want, atol=1e-6)
    stored = {"pixels": vision.patches(values, positions, 0)[0], "rows": torch.cat(rows)}
    ids = []
    for suffix, seen, want in zip(("", "-2"), (rows[:1], rows), vision.prompts(m, [len(r) for r in rows])):
        ids = [int(i) for i in (folder / f"tokens{suffix}.txt").read_text().split(",")]
        assert ids == want
        stored["logits" + suffix], stored["hidden" + suffix] = vision.run(m, model, ids, seen)
    with vision.rounded_cache(model):
        stored["hidden-2-q8_0"] = vision.run(m, model, ids, rows)[1]
    for name, want in stored.items():
        got = torch.from_numpy(np.fromfile(folder / f"{name}.f32", "<f4").reshape(want.shape))
        assert torch.equal(got, want.float()), name
    return tower, ids


def check_whole(m, model, values, positions, ids, logits):
    """transformers by itself, from pixels to logits; the unified model's own masks are wrong (vision.py)."""
    soft = (torch.tensor([ids]) == m.token(vision.SOFT)).int()
    extra = {} if positions is None else {"image_position_ids": positions}
    kinds = {"token_type_ids" if m.is_gemma3 else "mm_token_type_ids": soft}
    mask = vision.own_masks(model, len(ids), kinds) if m.is_unified else None
    with torch.no_grad():
        out = model(input_ids=torch.tensor([ids]), pixel_values=values.double(), attention_mask=mask, use_cache=False,
                    **kinds, **extra)
    assert torch.equal(out.logits[0], logits)


def line(what, rows, logits):
    moved = f"{rows.min():8.1e} {np.median(rows):8.1e}" if rows is not None else " " * 17
    late = logits[-LATE:]
    unseen = bool(logits.max() < 5e-3 and (rows is None or np.median(rows) < 1e-3))
    print(f"  {what:<36} {moved}   {late.min():8.1e} {np.median(late):8.1e} {logits.max():8.1e}"
          f"{'   NOT SEEN' * unseen}")


def report(name, m, folder):
    model = vision.load(m, folder)
    values, positions = vision.pixels(m, folder)
    rows = vision.rows_of(m, model, values, positions)
    tower_w, ids = check_files(m, folder, model, values, positions, rows)
    want = vision.run(m, model, ids, rows)[0]
    check_whole(m, model, values, positions, ids, want)
    w = {n: t.double() for n, t in tower_w.items()}
    seen = [vision.patches(values, positions, i) for i in range(2)]

    def plain(w, **wrong):
        return [tower(m)(m, w, v.double(), at, **wrong) for v, at in seen]

    def logits(rows, **how):
        return rel(vision.run(m, model, ids, rows, **how)[0], want)
    print(f"\n{name}: {m.proves}")
    exact = rel(torch.cat(plain(w)), torch.cat(rows)).max()
    own_mask = masks(m, ids)
    mask = rel(vision.run(m, model, ids, rows, mask=own_mask)[0], want).max()
    print(f"  plainly written: rows {exact:.1e}, logits by the plain mask {mask:.1e}")
    assert exact < 2e-6 and mask < 1e-12
    for path in sorted(folder.glob("mmproj*.gguf")):
        got = plain(vision.read_mmproj(m, path))
        stored = np.fromfile(folder / f"{GGUF_ROWS[path.name]}.f32", "<f4").reshape(-1, m.text.d_model)
        print(f"  {path.name}: rows {rel(torch.cat(got), torch.from_numpy(stored)).max():.1e}, from the directory's "
              f"{rel(torch.cat(got), torch.cat(rows)).max():.1e}")
    if m.is_gemma3:
        for n, twin in files.read_gguf(m.text, folder / "model.gguf").items():
            own = model.state_dict()[n.replace("model.", "model.language_model.")]
            assert torch.allclose(twin, own, rtol=1e-6, atol=1e-6), n
    with vision.rounded_cache(model):
        print(f"  q8_0 cache: logits {logits(rows).max():.1e}")
    print(f"  {'mistake':<36} rows: least, median; last {LATE} logits: least, median; all: greatest")
    for what, wrong in tower_mistakes(m):
        got = plain(w, **wrong)
        line(what, rel(torch.cat(got), torch.cat(rows)), logits(got))
    for what, wrong in mask_mistakes(m):
        line(what, None, logits(rows, mask=masks(m, ids, **wrong)))
    for what, (owner, method, instead) in text_mistakes(m, model, ids):
        with check.patched(owner, method, instead):
            line(what, None, logits(rows))
    line("rows times root of d_model", None, logits([r * m.text.d_model ** 0.5 for r in rows]))
    line("images swapped", None, logits([torch.cat(rows)[-len(rows[0]):], torch.cat(rows)[:len(rows[1])]]))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("names", nargs="*", help="models, all by default")
    p.add_argument("--out", type=pathlib.Path, default=BUILT)
    a = p.parse_args()
    transformers.logging.set_verbosity_error()
    for name in a.names or vision.MODELS:
        report(name, vision.MODELS[name], a.out / name)


if __name__ == "__main__":
    sys.exit(main())
