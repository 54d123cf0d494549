"""The published search of ggml's reference quantisers for Q4_K, Q5_K and Q6_K, in numpy: the same float32 operations.

    python tools/golden/k_quantizers.py                     hashes for tests/test_dtype.c
    python tools/golden/k_quantizers.py ORIGINAL CONVERTED  root-mean-square errors of a GGUF that `peridot convert`
                                                            made, relative to the weights, beside those of this search

The gguf package dequantises these types but does not quantise to them, so this stands in for the reference.
"""
import sys

import gguf
import numpy as np
from gguf.quants import dequantize, quantize

import dtypes

F = np.float32
T = gguf.GGMLQuantizationType


def nearest(x, low, high):
    return np.clip(np.rint(x) + F(0), low, high).astype(F)     # + 0: no negative zero


def running_sum(terms):
    """Column after column, as a loop adds."""
    total = terms[:, 0].copy()
    for i in range(1, terms.shape[1]):
        total += terms[:, i]
    return total


def fit_groups(x, top, first, n_steps):
    """Scales and minimums of rows of 32."""
    w = np.sqrt(running_sum(x * x) / F(32))[:, None] + abs(x)
    low, high = np.minimum(x.min(1), F(0)), x.max(1)
    span = high - low
    sum_w, sum_x = running_sum(w), running_sum(w * x)
    per_step = F(top) / span
    scale, minimum = F(1) / per_step, -low

    def integers(step):
        return nearest(step[:, None] * (x - low[:, None]), 0, top)

    def error(scale, minimum, q):
        d = scale[:, None] * q - minimum[:, None] - x
        return running_sum(w * (d * d))

    best = error(scale, minimum, integers(per_step))
    for i in range(n_steps + 1):
        q = integers((F(first) + F(0.1) * F(i) + F(top)) / span)
        sum_q, sum_qq, sum_qx = running_sum(w * q), running_sum(w * q * q), running_sum(w * q * x)
        determinant = sum_w * sum_qq - sum_q * sum_q
        s = (sum_w * sum_qx - sum_x * sum_q) / determinant
        m = (sum_q * sum_qx - sum_qq * sum_x) / determinant
        negative = m < 0
        s, m = np.where(negative, sum_qx / sum_qq, s), np.where(negative, F(0), m)
        e = error(s, m, q)
        better = (determinant > 0) & (e < best)
        scale, minimum, best = np.where(better, s, scale), np.where(better, m, minimum), np.where(better, e, best)
    flat = span == 0
    return np.where(flat, F(0), scale), np.where(flat, -low, minimum)


def half(x):
    return x.astype(np.float16).astype(F)


def with_minimum(x, top, first, n_steps):
    """Quantised and back."""
    scale, minimum = (a.reshape(-1, 8) for a in fit_groups(x.reshape(-1, 32), top, first, n_steps))
    most_scale, most_min = scale.max(1, keepdims=True), minimum.max(1, keepdims=True)
    s = nearest(np.where(most_scale > 0, F(63) / most_scale, F(0)) * scale, 0, 63)
    m = nearest(np.where(most_min > 0, F(63) / most_min, F(0)) * minimum, 0, 63)
    d, dm = (half(most_scale / F(63)) * s)[..., None], (half(most_min / F(63)) * m)[..., None]
    groups = x.reshape(-1, 8, 32)
    q = np.where(d != 0, nearest((groups + dm) / d, 0, top), F(0))
    return (d * q - dm).reshape(x.shape)


def fit_scales(x):
    """Of rows of 16."""
    widest = np.take_along_axis(x, abs(x).argmax(1)[:, None], 1)[:, 0]
    w = x * x

    def sums(step):
        q = nearest(step[:, None] * x, -32, 31)
        return running_sum(w * x * q), running_sum(w * q * q)

    xq, qq = sums(F(-32) / widest)
    scale = np.where(qq != 0, xq / qq, F(0))
    best = scale * xq
    for i in range(-9, 10):
        if i == 0:
            continue
        xq, qq = sums(-(F(32) + F(0.1) * F(i)) / widest)
        better = (qq > 0) & (xq * xq > best * qq)
        scale = np.where(better, xq / qq, scale)
        best = np.where(better, scale * xq, best)
    return np.where(abs(widest) < F(1e-15), F(0), scale)


def q6_k(x):
    scale = fit_scales(x.reshape(-1, 16)).reshape(-1, 16)
    widest = np.take_along_axis(scale, abs(scale).argmax(1)[:, None], 1)
    per_scale = F(-128) / widest
    d = (half(F(1) / per_scale) * nearest(per_scale * scale, -128, 127))[..., None]
    groups = x.reshape(-1, 16, 16)
    q = np.where(d != 0, nearest(groups / d, -32, 31), F(0))
    zero = abs(widest)[..., None] < F(1e-15)
    return np.where(zero, F(0), d * q).reshape(x.shape)


def there_and_back(x, t):
    """x as t stores it, by the reference."""
    if t == T.Q4_K:
        return with_minimum(x, 15, -1.0, 20)
    if t == T.Q5_K:
        return with_minimum(x, 31, -0.5, 15)
    return q6_k(x) if t == T.Q6_K else dequantize(quantize(x, t), t)


def bells(n):
    """Sums of 12 bytes of the generator, centred: near to gaussian, exact in float32. Every 7th group of 32 is
    positive, every 11th 64 times smaller, every 13th zero."""
    g = dtypes.generator()
    x = np.array([sum(next(g) >> 24 for _ in range(12)) for _ in range(n)], dtype=F) - F(1530)
    x /= F(1024)
    for i in range(0, n, 32):
        group = i // 32
        if group % 7 == 3:
            x[i:i + 32] = abs(x[i:i + 32])
        if group % 11 == 5:
            x[i:i + 32] /= F(64)
        if group % 13 == 6:
            x[i:i + 32] = 0
    return x


def relative(error, x):
    return np.sqrt(np.mean(error.astype(np.float64) ** 2) / np.mean(x.astype(np.float64) ** 2))


def report(original, converted):
    before = {t.name: dequantize(t.data, t.tensor_type) for t in gguf.GGUFReader(original).tensors}
    rows = {}
    for t in gguf.GGUFReader(converted).tensors:
        if len(t.shape) != 2:
            continue
        x = np.ascontiguousarray(before[t.name].reshape(-1), dtype=F)
        ours = dequantize(t.data, t.tensor_type).reshape(-1) - x
        theirs = there_and_back(x, t.tensor_type) - x
        rows.setdefault(t.tensor_type.name, []).append((x, ours, theirs))
    for name, parts in rows.items():
        x, ours, theirs = (np.concatenate(c) for c in zip(*parts))
        print(f"{name:6} {len(x):10} weights   ours {relative(ours, x):.6f}   reference {relative(theirs, x):.6f}")


def main():
    np.seterr(all="ignore")
    if len(sys.argv) == 3:
        report(*sys.argv[1:])
        return
    x = bells(100 * 256)
    for t in (T.Q4_K, T.Q5_K, T.Q6_K):
        y = there_and_back(x, t)
        print(f"        {{PD_{t.name}, 0x{dtypes.float_hash(y):08x}}},   /* relative error {relative(y - x, x):.5f} */")


if __name__ == "__main__":
    main()
