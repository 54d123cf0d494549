#!/usr/bin/env python3
"""Writes shaders/codebooks.h: the tables that types of few bits pick their weights from, as the gguf package has them.

    python3 tools/codebooks.py
"""
import pathlib

import numpy as np
from gguf import quants

OUT = pathlib.Path(__file__).resolve().parents[1] / "shaders" / "codebooks.h"
HEAD = """/* The tables that weight types of few bits pick their weights from, as lists for C and GLSL. Made by
 * tools/codebooks.py. A grid is 32-bit words of two entries each, the even one in the low half. An entry of IQ1's grid
 * is eight weights of 2 bits (weight j at bits 2j), each its value plus 1. An entry of IQ2's is eight places in
 * PD_IQ2_MAGNITUDES of 2 bits, of IQ3's four places in the magnitudes of 3 bits (at bits 3j). FP4's values
 * are doubled. */
#ifndef PD_CODEBOOKS_H
#define PD_CODEBOOKS_H
"""
GRIDS = [("IQ1", quants.IQ1_S, 2), ("IQ2_XXS", quants.IQ2_XXS, 2), ("IQ2_XS", quants.IQ2_XS, 2),
         ("IQ2_S", quants.IQ2_S, 2), ("IQ3_XXS", quants.IQ3_XXS, 3), ("IQ3_S", quants.IQ3_S, 3)]
LISTS = [("IQ2_MAGNITUDES", quants.IQ2_S.grid_map), ("IQ3_XXS_MAGNITUDES", quants.IQ3_XXS.grid_map),
         ("IQ3_S_MAGNITUDES", quants.IQ3_S.grid_map), ("IQ4_VALUES", quants.IQ4_NL.kvalues),
         ("FP4_VALUES", quants.MXFP4.kvalues)]   # e2m1, doubled
WORDS_PER_LINE = 8


def words_of(kind, n_bits):
    """-> [entries / 2] words of two entries"""
    kind.init_grid()
    places = np.searchsorted(np.array(kind.grid_map, np.float32), kind.grid.reshape(kind.grid_shape)).astype(np.uint32)
    entries = (places << (n_bits * np.arange(places.shape[1], dtype=np.uint32))).sum(axis=1, dtype=np.uint32)
    return entries[::2] | entries[1::2] << 16


def main():
    with OUT.open("w") as out:
        out.write(HEAD)
        out.write("\n")
        for name, values in LISTS:
            out.write(f"#define PD_{name} {', '.join(map(str, values))}\n")
        for name, kind, n_bits in GRIDS:
            words = [f"0x{w:08x}u" for w in words_of(kind, n_bits)]
            lines = [", ".join(words[i:i + WORDS_PER_LINE]) for i in range(0, len(words), WORDS_PER_LINE)]
            out.write(f"\n#define PD_{name}_GRID \\\n    " + ", \\\n    ".join(lines) + "\n")
        out.write("\n#endif\n")


if __name__ == "__main__":
    main()
