"""Blocks of random bytes in the types that the gguf package can only dequantise, with scales that give weights a wanted
spread: every bit pattern of quants and of packed scales comes up, which quantised bell curves would not give.
"""
import zlib

import gguf
import numpy as np
from gguf.quants import NVFP4, dequantize

# Q4_1 and Q5_1 add their minimum to quants of 0..15 and 0..31; the K types subtract it as often as they add the scale.
MINIMUM = {"Q4_1": -7.5, "Q5_1": -15.5, "Q2_K": 1.5, "Q4_K": 7.5, "Q5_K": 15.5}


def put_fp16(kind, out, scale, at):
    """With a minimum after it in the types that have one."""
    scale = scale.astype(np.float16)
    out[:, at:at + 2] = scale.view(np.uint8).reshape(-1, 2)
    if kind in MINIMUM:
        minimum = (scale * MINIMUM[kind]).astype(np.float16)
        out[:, at + 2:at + 4] = minimum.view(np.uint8).reshape(-1, 2)


def put_nibbles(out, scale):
    bits = scale.astype(np.float16).view(np.uint16)
    for i in range(4):
        out[:, 49 + 2 * i] = out[:, 49 + 2 * i] & 15 | (bits >> 4 * i & 15) << 4


def put_power_of_two(out, scale):
    out[:, 0] = np.round(np.log2(scale)) + 127


def put_four_bytes(out, scale):
    out[:, :4] = NVFP4.fp32_to_ue4m3(scale[:, None] * np.array([1, 0.8, 1.2, 0.6]))


# Where a block keeps its fp16 scale, or what else puts it there.
TYPES = {"Q4_1": 0, "Q5_0": 0, "Q5_1": 0, "Q2_K": 80, "Q3_K": 108, "Q4_K": 0, "Q5_K": 0, "Q6_K": 208, "IQ4_NL": 0,
         "IQ4_XS": 0, "TQ1_0": 52, "TQ2_0": 64, "IQ1_S": 0, "IQ1_M": put_nibbles, "IQ2_XXS": 0, "IQ2_XS": 0, "IQ2_S": 0,
         "IQ3_XXS": 0, "IQ3_S": 0, "MXFP4": put_power_of_two, "NVFP4": put_four_bytes}


def put_scale(kind, out, scale):
    place = TYPES[kind]
    put_fp16(kind, out, scale, place) if isinstance(place, int) else place(out, scale)


def random_blocks(kind, shape, std, seed, name):
    """-> uint8 [rows, bytes of a row] of weights with a mean near zero."""
    n_weights, n_bytes = gguf.GGML_QUANT_SIZES[kind]
    rng = np.random.Generator(np.random.PCG64([seed, zlib.crc32(name.encode()), 2]))
    n_blocks = shape[0] * shape[1] // n_weights
    out = rng.integers(0, 256, (n_blocks, n_bytes), dtype=np.uint8)
    spread = rng.uniform(0.5, 1.5, n_blocks)
    put_scale(kind.name, out, 1 / 64 * spread)
    put_scale(kind.name, out, std / 64 / dequantize(out.reshape(shape[0], -1), kind).std() * spread)
    return out.reshape(shape[0], -1)
