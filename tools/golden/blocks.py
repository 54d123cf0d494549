"""Blocks of random bytes in the types that the gguf package can only dequantise, with scales that give weights a wanted
spread: every bit pattern of quants and of packed scales comes up, which quantised bell curves would not give.
"""
import zlib

import gguf
import numpy as np
from gguf.quants import dequantize

# Where a block keeps its fp16 scale, and its fp16 minimum (None: it has none).
TYPES = {"Q4_1": (0, 2), "Q5_0": (0, None), "Q5_1": (0, 2), "Q2_K": (80, 82), "Q3_K": (108, None), "Q4_K": (0, 2),
         "Q5_K": (0, 2), "Q6_K": (208, None), "IQ4_NL": (0, None), "IQ4_XS": (0, None)}
# Q4_1 and Q5_1 add their minimum to quants of 0..15 and 0..31; the K types subtract it as often as they add the scale.
MINIMUM = {"Q4_1": -7.5, "Q5_1": -15.5, "Q2_K": 1.5, "Q4_K": 7.5, "Q5_K": 15.5}


def random_blocks(kind, shape, std, seed, name):
    """-> uint8 [rows, bytes of a row] of weights with a mean near zero."""
    n_weights, n_bytes = gguf.GGML_QUANT_SIZES[kind]
    rng = np.random.Generator(np.random.PCG64([seed, zlib.crc32(name.encode()), 2]))
    n_blocks = shape[0] * shape[1] // n_weights
    out = rng.integers(0, 256, (n_blocks, n_bytes), dtype=np.uint8)
    scale_at, min_at = TYPES[kind.name]
    spread = rng.uniform(0.5, 1.5, n_blocks)

    def set_scales(scale):
        scale = (scale * spread).astype(np.float16)
        out[:, scale_at:scale_at + 2] = scale.view(np.uint8).reshape(-1, 2)
        if min_at is not None:
            minimum = (scale * MINIMUM[kind.name]).astype(np.float16)
            out[:, min_at:min_at + 2] = minimum.view(np.uint8).reshape(-1, 2)

    set_scales(1 / 64)
    set_scales(std / 64 / dequantize(out.reshape(shape[0], -1), kind).std())
    return out.reshape(shape[0], -1)
