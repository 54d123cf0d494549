"""Shows that the golden data can catch mistakes and that honest rounding stays below the tests' tolerance.

For each model: the files hold the weights and say the configuration that models.py meant; how large scores and logits
get; the error of honest choices (float32, fp16 cache, 8-bit activations), worst row; and how far each mistake moves the
logits over the last 32 positions (least and median row). All numbers are relative L2 of a row.
"""
import contextlib
import copy
import math
import re
import sys
import types
from dataclasses import replace

import numpy as np
import torch

import files
import models
import oracle

LATE = 32


def rel(a, b):
    return ((a.double() - b.double()).norm(dim=-1) / b.double().norm(dim=-1)).numpy()


@contextlib.contextmanager
def patched(owner, name, value):
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield before
    finally:
        setattr(owner, name, before)


def fp16_to_zero(t):
    h = t.half()
    return torch.where(h.to(t.dtype).abs() > t.abs(), (h.view(torch.int16) - 1).view(torch.float16), h)


def q8_0_cache(t, mistake=1):
    """Peridot's q8_0 cache (shaders/kv_write.glsl): in blocks of 32 elements of a head, or fewer at its end, the least
    bf16 of which no element is more than 127 times, and whole numbers. It is read as `mistake` times what was
    written."""
    blocks = []
    for block in t.float().split(32, -1):
        least = (block.abs().amax(-1, keepdim=True).clamp(1e-30, 65504) / 127).view(torch.int32)
        scale = ((least + 0xffff) & -0x10000).view(torch.float32)
        blocks.append((block / scale).round().clamp(-127, 127) * scale * mistake)
    return torch.cat(blocks, -1)


def attention(module, query, key, value, mask, scaling, softcap=None, round_kv=None, float64=False, mask_first=False,
              modulo=False, seen=None, by_head=False, **_):
    """transformers' eager_attention_forward with one thing changed."""
    scaling = query.shape[-1] ** -0.5 if by_head else scaling
    if round_kv is not None:
        key, value = (round_kv(t).to(t.dtype) for t in (key, value))
    n = query.shape[1] // key.shape[1]
    key, value = ((t.repeat(1, n, 1, 1) if modulo else t.repeat_interleave(n, 1)) for t in (key, value))
    scores = query @ key.transpose(2, 3) * scaling
    if seen is not None:
        seen.append(scores.masked_fill(mask < 0, 0).abs().max().item())
    if mask_first:
        scores = scores + mask
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if not mask_first:
        scores = scores + mask
    att = torch.softmax(scores, -1, dtype=torch.float64 if float64 else torch.float32).to(query.dtype)
    return (att @ value).transpose(1, 2).contiguous(), att


class Case:
    """A model to run with changes: of its configuration, of its weights, of its code."""

    def __init__(self, s, base, ids):
        self.s, self.base, self.ids = s, base, ids

    def run(self, config=None, state=None, model=None, **changes):
        c = copy.deepcopy(self.base.config)
        w = {k: v.clone() for k, v in self.base.state_dict().items() if k != "lm_head.weight" or self.s.tied == "no"}
        if config:
            config(c)
        if state:
            state(w)
        m = oracle.build(self.s, c, w)
        if model:
            m = model(m) or m
        with contextlib.ExitStack() as stack:
            if changes:
                stack.enter_context(patched(sys.modules[type(m).__module__], "eager_attention_forward",
                                            lambda *a, **k: attention(*a, **k | changes)))
            return oracle.run(m, self.ids)


def run_q8_0_cache(s, model, ids):
    """-> hidden states"""
    return Case(s, model, ids).run(round_kv=q8_0_cache)[1]


def set_rope(kind, key, value):
    def change(c):
        (c.rope_parameters[kind] if kind in c.rope_parameters else c.rope_parameters)[key] = value
    return change


def set_layers(s, is_global):
    def change(c):
        c.layer_types = ["full_attention" if is_global(i) else "sliding_attention" for i in range(s.n_layers)]
    return change


def each(pattern, change):
    """A change of every tensor whose name ends so."""
    def apply(w):
        for k in w:
            if k.endswith(pattern):
                w[k] = change(w[k])
    return apply


def permute(s, order_of, applies=lambda i: True):
    """Rotating other pairs of a head is the same as permuting the rows of q and k, and what goes by them. Where values
    are keys, too, columns of o make good for what that does to them."""
    def apply(w):
        for k in w:
            layer = re.search(r"layers\.(\d+)\.", k)
            if not layer or not applies(int(layer[1])):
                continue
            own = s.gemma4 and s.is_global(int(layer[1]))
            head_dim = s.gemma4["global_head_dim"] if own else s.head_dim
            order = order_of(head_dim)
            if k.endswith(("q_proj.weight", "k_proj.weight", "q_proj.bias", "k_proj.bias")):
                w[k] = w[k].view(-1, head_dim, *w[k].shape[1:])[:, order].reshape(w[k].shape)
            if k.endswith(("q_norm.weight", "k_norm.weight")):
                w[k] = w[k][order]
            if k.endswith("o_proj.weight") and own and s.gemma4.get("attention_k_eq_v"):
                w[k] = w[k].view(s.d_model, -1, head_dim)[:, :, order].reshape(w[k].shape)
    return apply


def interleaved(head_dim):
    """Pairs (2i, 2i+1) instead of halves."""
    return torch.arange(head_dim).view(2, -1).T.reshape(-1).argsort()


def prefix(head_dim):
    """The first quarter of the head, by halves of its own, instead of the first quarters of the head's halves."""
    n = head_dim // 8
    order = torch.arange(head_dim)
    order[n:2 * n], order[head_dim // 2:head_dim // 2 + n] = torch.arange(head_dim // 2, head_dim // 2 + n), \
        torch.arange(n, 2 * n)
    return order


def swap(a, b):
    def apply(w):
        for k in [k for k in w if a in k]:
            other = k.replace(a, b)
            w[k], w[other] = w[other], w[k]
    return apply


def activation(f):
    def apply(m):
        for layer in oracle.backbone(m).layers:
            layer.mlp.act_fn = layer.act_fn = f     # the second: of inputs of layers
    return apply


def unscaled(m):
    oracle.backbone(m).embed_tokens.embed_scale.fill_(1.0)


def unscaled_table(m):
    m.model.embed_tokens_per_layer.embed_scale.fill_(1.0)


def scaled(m):
    backbone = oracle.backbone(m)
    backbone.embed_tokens.register_forward_hook(lambda module, args, out: out * out.shape[-1] ** 0.5)


def without_qk_norm(m):
    for layer in m.model.layers:
        layer.self_attn.q_norm = layer.self_attn.k_norm = torch.nn.Identity()


# ---- Gemma 4 ----

def values(s, make, keys_only=False):
    """Another norm of values, in layers that have some, or in those whose values are keys."""
    def apply(m):
        for layer in m.model.layers:
            a = layer.self_attn
            if not a.is_kv_shared_layer and (a.v_proj is None or not keys_only):
                a.v_norm = make(a)
    return apply


def scaled_branches(m):
    """The scalar of a layer multiplies what the layer adds, and not what it adds to."""
    for layer in m.model.layers:
        layer.register_forward_hook(
            lambda layer, args, out: args[0] + layer.layer_scalar * (out / layer.layer_scalar - args[0]))


def early_inputs(m):
    """A layer's input comes before its feed-forward unit."""
    def forward(self, x, per_layer_input, **kwargs):
        x = x + self.post_attention_layernorm(self.self_attn(hidden_states=self.input_layernorm(x), **kwargs)[0])
        gated = self.act_fn(self.per_layer_input_gate(x)) * per_layer_input
        x = x + self.post_per_layer_input_norm(self.per_layer_projection(gated))
        x = x + self.post_feedforward_layernorm(self.mlp(self.pre_feedforward_layernorm(x)))
        return x * self.layer_scalar
    for layer in m.model.layers:
        layer.forward = types.MethodType(forward, layer)


def set_scale(m, scale):
    m.model.per_layer_input_scale = scale


def read_earlier(m):
    """The tail reads the first layer with a window, not the last that has keys of its own."""
    stores = [layer.self_attn for layer in m.model.layers if layer.self_attn.is_sliding]
    for a in stores:
        a.store_full_length_kv = a is stores[0]


def by_columns(s):
    """The table of inputs with layers innermost."""
    dim = s.gemma4["hidden_size_per_layer_input"]
    return lambda t: t.view(-1, s.n_layers, dim).transpose(1, 2).reshape(t.shape)


def own_exponents(m):
    """Exponents of the rotated part of a head, not of all of it."""
    f = m.model.rotary_emb.full_attention_inv_freq
    n = int((f > 0).sum())
    f[:n] = 1e6 ** -(torch.arange(n) / n)


def mistakes_4(s):
    full, g = "full_attention", s.gemma4
    yield "no final softcap", dict(config=lambda c: setattr(c, "final_logit_softcapping", None))
    yield "scores / root of head_dim", dict(by_head=True)
    yield "all pairs rotated", dict(config=lambda c: c.rope_parameters[full].update(rope_type="default"))
    yield "the head's first quarter rotated", dict(state=permute(s, prefix, s.is_global))
    yield "exponents of the rotated part", dict(model=own_exponents)
    yield "no norm of values", dict(model=values(s, lambda a: torch.nn.Identity()))
    yield "norm of values by k's weight", dict(model=values(s, lambda a: a.k_norm))
    if g.get("attention_k_eq_v"):
        yield "values from normed keys", dict(
            model=values(s, lambda a: torch.nn.Sequential(a.k_norm, a.v_norm), keys_only=True))
    yield "no layer scalars", dict(state=each("layer_scalar", torch.ones_like))
    yield "layer scalars on branches", dict(model=scaled_branches)
    if not g["hidden_size_per_layer_input"]:
        return
    yield "inputs of layers before the ffn", dict(model=early_inputs)
    yield "inputs of layers not / root 2", dict(model=lambda m: set_scale(m, 1.0))
    yield "no inputs of layers", dict(state=each("post_per_layer_input_norm.weight", torch.zeros_like))
    yield "no table in inputs", dict(state=each("embed_tokens_per_layer.weight", torch.zeros_like))
    yield "table not scaled", dict(model=unscaled_table)
    yield "no projection in inputs", dict(state=each("per_layer_projection_norm.weight", torch.zeros_like))
    yield "table with layers innermost", dict(state=each("embed_tokens_per_layer.weight", by_columns(s)))
    yield "norms of ffn and input swapped", dict(state=swap("post_feedforward_layernorm", "post_per_layer_input_norm"))
    yield "tail reads an earlier layer", dict(model=read_earlier)


def q8(x):
    """Blocks of 32 on an 8-bit grid, as integer dot products want their activations."""
    x = x.unflatten(-1, (-1, math.gcd(32, x.shape[-1])))
    step = x.abs().amax(-1, keepdim=True) / 127
    return ((x / step.clamp(min=1e-30)).round() * step).flatten(-2)


def inputs(change):
    """Changes what goes into every matrix, the head's too."""
    def apply(m):
        for module in m.modules():
            if isinstance(module, torch.nn.Linear):
                module.register_forward_pre_hook(lambda module, args: change(args[0]))
    return apply


def has_global(s):
    return any(s.is_global(i) for i in range(s.n_layers))


def mistakes(s):
    """(what, changes for Case.run) for all that apply to this model."""
    local, full = "sliding_attention", "full_attention"
    if s.window:
        for d in (1, -1):
            yield f"window {s.window + d}", dict(config=lambda c, d=d: setattr(c, "sliding_window", s.window + d))
        yield "no window", dict(config=lambda c: setattr(c, "sliding_window", 4096))
        if has_global(s) and not s.gemma4:     # whose layers have sizes of their own
            yield "global layers one later", dict(config=set_layers(s, lambda i: i > 0 and s.is_global(i - 1)))
    if s.attn_cap:
        yield "no attention softcap", dict(config=lambda c: setattr(c, "attn_logit_softcapping", None))
        if s.head not in models.LABELS:
            yield "no final softcap", dict(config=lambda c: setattr(c, "final_logit_softcapping", None))
        yield "mask before the softcap", dict(mask_first=True)
    for wrong in {s.head_dim, s.d_model // s.n_heads, s.d_model} - {s.q_scalar} if not s.gemma4 else ():
        if s.arch in models.LLAMA_LIKE:
            yield f"query divisor {wrong}", dict(scaling=wrong ** -0.5)
            continue
        yield f"query divisor {wrong}", dict(config=lambda c, v=wrong: setattr(c, "query_pre_attn_scalar", v),
                                             **({"scaling": wrong ** -0.5} if s.arch == "gemma" else {}))
    if has_global(s):
        yield "RoPE base x 2", dict(config=set_rope(full, "rope_theta", 2 * s.rope_base))
    if s.rope_local:
        yield "local base = global", dict(config=set_rope(local, "rope_theta", s.rope_base))
        if has_global(s):
            yield "global base = local", dict(config=set_rope(full, "rope_theta", s.rope_local))
        if has_global(s) and s.rope_factor:
            yield "no position divisor", dict(config=set_rope(full, "factor", 1.0))
        if s.rope_factor:
            yield "local divided, too", dict(config=lambda c: c.rope_parameters[local].update(rope_type="linear",
                                                                                             factor=s.rope_factor))
    if s.rope_local or s.arch == "qwen3":
        none = torch.zeros_like if s.norm_plus_one else torch.ones_like
        yield "no q and k norms", dict(model=without_qk_norm)
        yield "q and k norms without weights", dict(state=lambda w: (each("q_norm.weight", none)(w),
                                                                     each("k_norm.weight", none)(w)))
    if s.arch == "qwen2":
        for name in ("q_proj", "k_proj", "v_proj"):
            yield f"no bias of {name}", dict(state=each(name + ".bias", torch.zeros_like))
    if s.gemma4:
        yield from mistakes_4(s)
    yield "interleaved RoPE", dict(state=permute(s, interleaved))
    if 1 < s.n_kv_heads < s.n_heads:
        yield "kv head h mod n", dict(modulo=True)
    if s.norm_plus_one:
        yield "norm weights without +1", dict(state=each("norm.weight", lambda t: t - 1))
    yield f"norm weights with +{1 + s.norm_plus_one}", dict(state=each("norm.weight", lambda t: t + 1))
    if s.arch in ("gemma2", "gemma3_text", "gemma4_text"):
        yield "two norms swapped", dict(state=swap("post_attention", "pre_feedforward"))
    if s.rope_llama3:
        for key in s.rope_llama3:
            yield f"{key} x 2", dict(config=set_rope("", key, 2 * s.rope_llama3[key]))
    if s.rope and s.rope["rope_type"] == "longrope":
        lists = ("long_factor", "short_factor")
        used, other = lists if s.rope["original_max_position_embeddings"] < models.N_TOKENS else lists[::-1]
        yield f"{other} for {used}", dict(config=set_rope("", used, s.rope[other]))
    for key in s.rope or ():
        if isinstance(s.rope[key], float | int):
            wrong = not s.rope[key] if key == "truncate" else 2 * s.rope[key]
            yield f"{key} {wrong}", dict(config=set_rope("", key, wrong))
    if s.arch == "llama" and s.rope_factor:
        yield "positions not divided", dict(config=set_rope("", "factor", 1.0))
    if s.eps != 1e-6:
        yield "eps 1e-6", dict(config=lambda c: setattr(c, "rms_norm_eps", 1e-6))
    if s.tied == "no" and not s.head:
        yield "tied", dict(state=lambda w: w.update({"lm_head.weight": w["model.embed_tokens.weight"]}))
    if s.head == "token":
        yield "no bias", dict(state=each("score.bias", torch.zeros_like))
    if s.arch in models.LLAMA_LIKE:
        yield "embedding scaled", dict(model=scaled)
        yield "GELU", dict(model=activation(torch.nn.GELU("tanh")))
        return
    yield "embedding not scaled", dict(model=unscaled)
    yield "SiLU", dict(model=activation(torch.nn.SiLU()))
    yield "GELU by erf", dict(model=activation(torch.nn.GELU()))


def same(a, b):
    return a is b or torch.equal(a, b)


def inverse_frequencies(s):
    """The rule of Llama 3.1, as Meta's code has it: wavelengths against the old context."""
    f = s.rope_base ** -(torch.arange(0, s.head_dim, 2).double() / s.head_dim)
    if s.rope:
        return torch.from_numpy(files.frequencies(s, models.N_TOKENS))
    if not s.rope_llama3:
        return f / (s.rope_factor or 1.0)
    factor, low, high, old = (s.rope_llama3[k] for k in ("factor", "low_freq_factor", "high_freq_factor",
                                                         "original_max_position_embeddings"))
    waves = 2 * math.pi / f
    smooth = (old / waves - low) / (high - low)
    blend = (1 - smooth) * f / factor + smooth * f
    return torch.where(waves < old / high, f, torch.where(waves > old / low, f / factor, blend))


def check_files(s, folder, base, wanted):
    """What transformers read from the files is what models.py meant: weights to the bit, and the same logits."""
    ids = [int(i) for i in (folder / "tokens.txt").read_text().split(",")]
    assert ids == models.tokens(s) and ids[0] == 2
    state = base.state_dict()
    cast = files.TORCH[s.dtype]
    for name, w in models.weights(s).items():
        want = torch.from_numpy(w).to(cast).double()
        if s.form and not models.is_unread(s, name):
            assert torch.equal(state[oracle.full_name(s, name)], want), name
    meant = {oracle.full_name(s, n): torch.from_numpy(w).to(cast).double() for n, w in models.weights(s).items()}
    if not s.form:
        meant = files.read_gguf(s, folder / "model.gguf")
    logits, hidden = oracle.run(oracle.build(s, files.own_config(s), meant), ids)
    assert same(logits, wanted[0]) and same(hidden, wanted[1]), "config.json says something else"
    for what, t in zip(("logits", "hidden"), wanted):
        if t is None:
            continue
        stored = np.fromfile(folder / f"{what}.f32", "<f4").reshape(t.shape)
        assert np.array_equal(stored, t.numpy().astype("<f4")), f"{what}.f32 is not what transformers gives"
    stored = np.fromfile(folder / "hidden-q8_0.f32", "<f4").reshape(hidden.shape)
    assert np.array_equal(stored, run_q8_0_cache(s, base, ids).numpy().astype("<f4")), "hidden-q8_0.f32 differs"
    twin = None
    if s.form and s.gguf:
        twin = oracle.run(oracle.build(s, files.own_config(s), files.read_gguf(s, folder / "model.gguf")), ids)
        twin = rel(twin[0], wanted[0]).max()
    return ids, twin


def check_rope(s, base):
    """The angles that the oracle uses, against the rule."""
    r, steps = oracle.backbone(base).rotary_emb, torch.arange(0, s.head_dim, 2).double() / s.head_dim
    if s.gemma4:
        n = s.gemma4["global_head_dim"]
        rotated = s.rope_base ** -(torch.arange(0, n // 4, 2).double() / n)
        pairs = [(r.sliding_attention_inv_freq, s.rope_local ** -steps),
                 (r.full_attention_inv_freq, torch.cat((rotated, torch.zeros(n // 2 - len(rotated)))))]
    elif s.arch == "gemma3_text":
        pairs = [(r.sliding_attention_inv_freq, s.rope_local ** -steps)]
        if has_global(s):
            pairs.append((r.full_attention_inv_freq, s.rope_base ** -steps / s.rope_factor))
    else:
        pairs = [(r.inv_freq, inverse_frequencies(s))]
        assert math.isclose(r.attention_scaling, files.attention_factor(s)), "what multiplies cos and sin"
    for got, wanted in pairs:
        assert torch.allclose(got.double(), wanted, rtol=1e-6), "RoPE"
    if s.rope_llama3:
        plain = inverse_frequencies(replace(s, rope_llama3=None))
        assert torch.allclose(plain / torch.from_numpy(files.rope_freqs(s)), wanted, rtol=1e-6), "rope_freqs.weight"


def report(name, s, folder):
    base = oracle.load(s, folder)
    want = oracle.run(base, models.tokens(s))
    ids, twin = check_files(s, folder, base, want)
    check_rope(s, base)
    case = Case(s, base, ids)
    seen = []
    case.run(seen=seen)
    uncapped, _ = case.run(config=lambda c: setattr(c, "final_logit_softcapping", None))
    uncapped = torch.zeros(1) if uncapped is None else uncapped
    shown = 1 if want[0] is None else 0     # where a model has no logits, its hidden states tell
    print(f"\n{name}: {s.proves}")
    print(f"  greatest |score| before the cap by layer: {' '.join(f'{x:.0f}' for x in seen)}; logits before the cap "
          f"{uncapped.min():.0f} .. {uncapped.max():.0f}; hidden rms {want[1].pow(2).mean().sqrt():.2f}")
    if twin is not None:
        print(f"  the GGUF's weights against the directory's: {twin:.1e}")
    with patched(torch.Tensor, "float", lambda t: t.double() if t.dtype == torch.float64 else t.to(torch.float32)):
        pure = case.run(float64=True)
    print(f"  {'honest rounding':<32} {'logits':>8} {'hidden':>8}   worst row")
    for what, got in (("all float64", pure), ("all float32", case.run(model=lambda m: m.float())),
                      ("fp16 cache", case.run(round_kv=torch.Tensor.half)),
                      ("fp16 cache, rounded to zero", case.run(round_kv=fp16_to_zero)),
                      ("fp16 cache and matrix inputs", case.run(round_kv=torch.Tensor.half,
                                                                model=inputs(lambda x: x.half().to(x.dtype)))),
                      ("q8_0 cache", case.run(round_kv=q8_0_cache)),
                      ("q8_0 cache, scales 2 % off", case.run(round_kv=lambda t: q8_0_cache(t, 1.02))),
                      ("8-bit matrix inputs", case.run(model=inputs(q8)))):
        print(f"  {what:<32} {rel(got[shown], want[shown]).max():8.1e} {rel(got[1], want[1]).max():8.1e}")
    print(f"  {'mistake':<32} {'least':>8} {'median':>8}   {('logits', 'hidden')[shown]}, last {LATE} rows")
    for what, changes in mistakes(s):
        r = rel(case.run(**changes)[shown], want[shown])[-LATE:]
        print(f"  {what:<32} {r.min():8.1e} {np.median(r):8.1e}{'   NOT SEEN' if np.median(r) < 5e-3 else ''}")
