"""A small Gemma 2 in PyTorch, laid out for fast training on a CPU.

Same mathematics as the published Gemma 2: grouped queries, alternating local and global attention, both softcaps, GeGLU
(tanh), four RMSNorms a layer, tied embeddings scaled by sqrt(d_model). Weights of all layers are stacked in one tensor
of each kind, so that the optimizer works on whole batches of matrices.
"""
import dataclasses
import math

import torch
import torch.nn.functional as F

ATTENTION_CAP = 50.0
LOGIT_CAP = 30.0
NORM_EPS = 1e-6
ROPE_BASE = 10000.0


@dataclasses.dataclass
class Shape:
    vocab_size: int = 4096
    d_model: int = 256
    n_layers: int = 6
    n_heads: int = 4
    n_kv_heads: int = 2
    head_dim: int = 64
    ffn_dim: int = 768
    window: int = 128
    ctx: int = 512

    @property
    def q_rows(self):
        return self.n_heads * self.head_dim

    @property
    def kv_rows(self):
        return self.n_kv_heads * self.head_dim


def is_local(layer):
    return layer % 2 == 0


def tanh(x):
    """Half the time of torch.tanh on a CPU, and exact enough: absolute error 1e-7."""
    return 2.0 * torch.sigmoid(2.0 * x) - 1.0


def gelu(x):
    """The tanh approximation, as x times a sigmoid."""
    return x * torch.sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))


def rms_norm(x, weight):
    x = x.float()
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + NORM_EPS) * (1.0 + weight)


def rope_table(n_positions, head_dim, device=None):
    """cos, and sin with the sign of its half, [n_positions, 2, head_dim / 2]; angles in float64."""
    inverse = ROPE_BASE ** (-torch.arange(0, head_dim, 2, dtype=torch.float64, device=device) / head_dim)
    angle = torch.arange(n_positions, dtype=torch.float64, device=device)[:, None] * inverse[None]
    cos, sin = angle.cos().float(), angle.sin().float()
    return torch.stack((cos, cos), 1), torch.stack((-sin, sin), 1)


def rotate(x, cos, sin):
    """RoPE on split halves (x[i] with x[i + head_dim / 2]). x [B, T, heads, head_dim]."""
    halves = x.float().unflatten(-1, (2, -1))
    return (halves * cos[None, :, None] + halves.flip(-2) * sin[None, :, None]).flatten(-2)


def visible(n_queries, n_keys, first_query, window, device=None):
    """Mask [n_queries, n_keys]: query i sees key j iff j <= i and, in a window, j > i - window."""
    i = first_query + torch.arange(n_queries, device=device)[:, None]
    j = torch.arange(n_keys, device=device)[None]
    seen = j <= i
    return seen & (j > i - window) if window else seen


def attend(q, k, v, seen, scale):
    """q [N, G, T, head_dim], k and v [N, S, head_dim], seen [T, S]: G query heads share a kv head.

    The cap bounds a score by 50, so exp cannot overflow and the row maximum need not be subtracted.
    """
    n, g, t, d = q.shape
    att = torch.bmm((q * scale).to(k.dtype).reshape(n, g * t, d), k.transpose(1, 2)).float()
    att = torch.exp(ATTENTION_CAP * tanh(att / ATTENTION_CAP)).view(n, g, t, -1) * seen
    att = att / att.sum(-1, keepdim=True)
    return torch.bmm(att.to(v.dtype).view(n, g * t, -1), v).view(n, g, t, d)


def attend_causal(q, k, v, block, scale):
    """attend() to everything before, in blocks of queries: keys after a block are not looked at."""
    outs = []
    for first in range(0, q.shape[2], block):
        last = first + block
        seen = visible(block, last, first, 0, q.device)
        outs.append(attend(q[:, :, first:last], k[:, :last], v[:, :last], seen, scale))
    return torch.cat(outs, 2)


def attend_window(q, k, v, window, scale):
    """attend() in a window, in blocks of the window's length: a block's queries see its keys and the block before."""
    n, g, t, d = q.shape
    blocks = t // window
    q = q.view(n, g, blocks, window, d).transpose(1, 2).reshape(n * blocks, g, window, d)

    def with_previous(x):
        x = x.reshape(n, blocks, window, d)
        before = torch.cat((torch.zeros_like(x[:, :1]), x[:, :-1]), 1)
        return torch.cat((before, x), 2).view(n * blocks, 2 * window, d)

    seen = visible(window, 2 * window, window, window, q.device)
    first = seen & (torch.arange(2 * window, device=q.device) >= window)[None]  # no block before the first
    seen = torch.stack([first] + [seen] * (blocks - 1)).repeat(n, 1, 1)[:, None]
    out = attend(q, with_previous(k), with_previous(v), seen, scale)
    return out.view(n, blocks, g, window, d).transpose(1, 2).reshape(n, g, t, d)


class CappedLoss(torch.autograd.Function):
    """Sum of cross entropies of softcapped logits h E^T, chunk by chunk; gradients are made on the way forward."""

    @staticmethod
    def forward(ctx, h, embedding, target, chunk, logit_step):
        embedding = embedding.to(h.dtype)
        dh, de = torch.empty_like(h), torch.zeros(embedding.shape)
        loss = torch.zeros(())
        for i in range(0, h.shape[0], chunk):
            part = slice(i, i + chunk)
            logits = h[part] @ embedding.T
            sums, grad = logit_step(logits)  # grad is `sums` times too large: cheaper divided out of h and dh
            y = torch.tanh(logits.gather(1, target[part, None]).float() / LOGIT_CAP)
            grad.scatter_add_(1, target[part, None], (sums * (y * y - 1.0)).to(grad.dtype))
            loss += (sums.log() - LOGIT_CAP * y).sum()
            dh[part] = (grad @ embedding) / sums
            de += grad.T @ (h[part] / sums).to(h.dtype)
        ctx.save_for_backward(dh, de)
        return loss

    @staticmethod
    def backward(ctx, grad):
        dh, de = ctx.saved_tensors
        return dh * grad.to(dh.dtype), de * grad, None, None, None


def logit_step(logits):
    """For logits [n, vocab_size] before the cap: sums [n, 1] of exp(capped), and exp(capped) times the cap's slope.

    The cap of 30 makes the row maximum superfluous.
    """
    y = tanh(logits.float() / LOGIT_CAP)
    p = torch.exp(LOGIT_CAP * y)
    return p.sum(-1, keepdim=True), (p * (1.0 - y * y)).to(logits.dtype)


class Gemma2(torch.nn.Module):
    def __init__(self, shape):
        super().__init__()
        s = self.shape = shape
        matrix = lambda rows, cols, gain=1.0: torch.nn.Parameter(
            torch.randn(s.n_layers, rows, cols) * (gain * cols ** -0.5))
        norm = lambda first=0.0: torch.nn.Parameter(torch.full((s.n_layers, s.d_model), first))
        small = (2 * s.n_layers) ** -0.5 - 1.0  # a branch's first share of the residual stream, centred like all norms
        self.embedding = torch.nn.Parameter(torch.randn(s.vocab_size, s.d_model) * 0.04)
        self.q = matrix(s.q_rows, s.d_model)
        self.k = matrix(s.kv_rows, s.d_model)
        self.v = matrix(s.kv_rows, s.d_model)
        self.o = matrix(s.d_model, s.q_rows)
        self.gate = matrix(s.ffn_dim, s.d_model)
        self.up = matrix(s.ffn_dim, s.d_model)
        self.down = matrix(s.d_model, s.ffn_dim)
        self.attn_norm, self.post_attention_norm = norm(), norm(small)
        self.ffn_norm, self.post_ffw_norm = norm(), norm(small)
        self.output_norm = torch.nn.Parameter(torch.zeros(s.d_model))
        for name, table in zip(("cos", "sin"), rope_table(s.ctx, s.head_dim)):
            self.register_buffer(name, table, persistent=False)

    def matrices(self):
        """The 2-D weights inside the layers: what Muon trains."""
        return [self.q, self.k, self.v, self.o, self.gate, self.up, self.down]

    def norms(self):
        return [self.attn_norm, self.post_attention_norm, self.ffn_norm, self.post_ffw_norm, self.output_norm]

    def attention(self, x, layer, cos, sin, dtype):
        s = self.shape
        b, t, _ = x.shape
        g = s.n_heads // s.n_kv_heads
        wqkv = torch.cat((self.q[layer], self.k[layer], self.v[layer])).to(dtype)
        q, k, v = (x @ wqkv.T).split((s.q_rows, s.kv_rows, s.kv_rows), -1)
        q = rotate(q.view(b, t, s.n_heads, s.head_dim), cos, sin)
        k = rotate(k.view(b, t, s.n_kv_heads, s.head_dim), cos, sin).to(dtype)
        v = v.view(b, t, s.n_kv_heads, s.head_dim)
        q = q.view(b, t, s.n_kv_heads, g, s.head_dim).permute(0, 2, 3, 1, 4).flatten(0, 1)
        k, v = (y.transpose(1, 2).flatten(0, 1) for y in (k, v))
        scale = s.head_dim ** -0.5
        if t > s.window and t % s.window == 0:
            out = (attend_window if is_local(layer) else attend_causal)(q, k, v, s.window, scale)
        else:
            out = attend(q, k, v, visible(t, t, 0, s.window if is_local(layer) else 0, x.device), scale)
        out = out.view(b, s.n_kv_heads, g, t, s.head_dim).permute(0, 3, 1, 2, 4).reshape(b, t, s.q_rows)
        return out @ self.o[layer].to(dtype).T

    def ffn(self, x, layer, dtype):
        gate_up = torch.cat((self.gate[layer], self.up[layer])).to(dtype)
        gate, up = (x @ gate_up.T).chunk(2, -1)
        h = gelu(gate.float()) * up.float()
        return h.to(dtype) @ self.down[layer].to(dtype).T

    def forward(self, tokens, dtype=torch.float32):
        """tokens [B, T] -> final-norm hidden states [B, T, d_model] in dtype."""
        s = self.shape
        cos, sin = self.cos[:tokens.shape[1]], self.sin[:tokens.shape[1]]
        x = self.embedding[tokens] * math.sqrt(s.d_model)
        for i in range(s.n_layers):
            y = self.attention(rms_norm(x, self.attn_norm[i]).to(dtype), i, cos, sin, dtype)
            x = x + rms_norm(y, self.post_attention_norm[i])
            y = self.ffn(rms_norm(x, self.ffn_norm[i]).to(dtype), i, dtype)
            x = x + rms_norm(y, self.post_ffw_norm[i])
        return rms_norm(x, self.output_norm).to(dtype)

    def logits(self, h):
        return LOGIT_CAP * torch.tanh((h @ self.embedding.to(h.dtype).T).float() / LOGIT_CAP)
