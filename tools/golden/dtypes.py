"""Hashes of what the gguf package makes of the weight types, as the tables of tests/test_dtype.c.

    python tools/golden/dtypes.py [LIBGGML_BASE]

Types that the package does not decode are decoded by ggml's library, where its path is given.

The inputs are made here and in the test by one rule: blocks are bytes of a linear congruential generator, so that
scales take all values, infinities and NaNs too; floats are small integers times powers of two. NaN hashes as
0x7fc00000.
"""
import ctypes
import sys

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as T
from gguf.quants import dequantize, quantize

DECODED = [T.Q8_0, T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q2_K, T.Q3_K, T.Q4_K, T.Q5_K, T.Q6_K, T.IQ4_NL, T.IQ4_XS,
           T.TQ1_0, T.TQ2_0, T.IQ1_S, T.IQ1_M, T.IQ2_XXS, T.IQ2_XS, T.IQ2_S, T.IQ3_XXS, T.IQ3_S, T.MXFP4, T.NVFP4]
ENCODED = [T.F16, T.BF16, T.Q8_0, T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1]
OF_LIBRARY = {"Q1_0": (128, 18), "Q2_0": (64, 18)}   # weights of a block, and its bytes
N_BLOCKS = 500
N_FLOATS = 32000


def generator():
    v = 1
    while True:
        v = (v * 1664525 + 1013904223) & 0xFFFFFFFF
        yield v


def random_blocks(size):
    g = generator()
    return np.array([next(g) >> 24 for _ in range(N_BLOCKS * size)], dtype=np.uint8)


def floats():
    g = generator()
    x = np.empty(N_FLOATS, dtype=np.float32)
    for i in range(N_FLOATS):
        block, k = i // 32, (next(g) >> 16) - 32768
        if block % 10 == 3:
            k = int(np.fmod(k, 17)) * 2048
        if block % 50 == 7:
            k = 0
        x[i] = np.ldexp(np.float32(k), block % 46 - 45)
    return x


def fnv(data):
    h = 2166136261
    for byte in data:
        h = ((h ^ byte) * 16777619) & 0xFFFFFFFF
    return h


def float_hash(x):
    bits = x.view(np.uint32).copy()
    bits[np.isnan(x)] = 0x7FC00000
    return fnv(bits.tobytes())


def decoded_by_library(library, name, block_len, block_size):
    blocks, weights = random_blocks(block_size), np.empty(N_BLOCKS * block_len, dtype=np.float32)
    decode = getattr(library, f"dequantize_row_{name.lower()}")
    decode(ctypes.c_void_p(blocks.ctypes.data), ctypes.c_void_p(weights.ctypes.data), ctypes.c_int64(weights.size))
    return weights


def main():
    print("decoded")
    for t in DECODED:
        blocks = random_blocks(GGML_QUANT_SIZES[t][1])
        with np.errstate(all="ignore"):
            print(f"        {{PD_{t.name}, 0x{float_hash(dequantize(blocks, t)):08x}}},")
    for name, sizes in OF_LIBRARY.items() if len(sys.argv) > 1 else ():
        weights = decoded_by_library(ctypes.CDLL(sys.argv[1]), name, *sizes)
        print(f"        {{PD_{name}, 0x{float_hash(weights):08x}}},")
    print("encoded")
    x = floats()
    for t in ENCODED:
        with np.errstate(all="ignore"):
            blocks = quantize(x, t).view(np.uint8)
            back = dequantize(blocks.view(np.float16) if t == T.F16 else blocks, t)
        print(f"        {{PD_{t.name}, 0x{fnv(blocks.tobytes()):08x}, 0x{float_hash(back):08x}}},")


if __name__ == "__main__":
    main()
