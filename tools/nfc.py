#!/usr/bin/env python3
"""Writes src/text/nfc_table.h: the canonical decompositions and combining classes of Unicode.

    python3 tools/nfc.py

As Hugging Face's tokenizers (0.23.3) know them, whose Unicode is older than Python's: what they leave as it is, is left
out. Shows that normalising by the table gives what they give, for every character between others.
"""
import pathlib
import unicodedata

from tokenizers import normalizers

OUT = pathlib.Path(__file__).resolve().parents[1] / "src" / "text" / "nfc_table.h"
NFC, NFD = normalizers.NFC(), normalizers.NFD()
ALL = [c for c in range(0x110000) if not 0xd800 <= c < 0xe000]


def decompositions():
    """[(code, first, second or 0)], Hangul left out."""
    rows = []
    for c in ALL:
        parts = unicodedata.decomposition(chr(c))
        if parts and not parts.startswith("<") and NFD.normalize_str(chr(c)) != chr(c):
            first, second = ([int(p, 16) for p in parts.split()] + [0])[:2]
            rows.append((c, first, second))
    return rows


def classes():
    """[(first code, last code, class)]: a mark that tokenizers know swaps places with one of another class."""
    rows = []
    for c in ALL:
        k = unicodedata.combining(chr(c))
        other = "\u0338" if k != 1 else "\u0301"
        both = ("a" + chr(c) + other, "a" + other + chr(c))
        if not k or NFD.normalize_str(both[0]) != NFD.normalize_str(both[1]):
            continue
        if rows and rows[-1][1] == c - 1 and rows[-1][2] == k:
            rows[-1] = (rows[-1][0], c, k)
        else:
            rows.append((c, c, k))
    return rows


def composes(row):
    return row[2] and NFC.normalize_str(chr(row[1]) + chr(row[2])) == chr(row[0])


def lines(texts):
    line = "   "
    for text in texts:
        if len(line) + len(text) + 2 > 120:
            yield line
            line = "   "
        line += f" {text},"
    yield line


def write(rows, pairs, kinds):
    parts = ["/* Made by tools/nfc.py; for nfc.c. */", "",
             "/* A character's canonical decomposition: two characters, or one and 0. By character. */",
             "static const struct decomposition { uint32_t code, first, second; } decompositions[] = {",
             *lines("{%s}" % ", ".join(hex(x) if x else "0" for x in row) for row in rows), "};", "",
             "/* Those of two that are composed again, by the two. */", "static const uint16_t compositions[] = {",
             *lines(str(i) for i in pairs), "};", "",
             "/* Canonical combining classes other than 0. */",
             "static const struct combining { uint32_t first, last; uint8_t class; } combining[] = {",
             *lines(f"{{{a:#x}, {b:#x}, {k}}}" for a, b, k in kinds), "};"]
    OUT.write_text("\n".join(parts) + "\n")


# ---- the same in Python, for the check ----

def normalise(text, by_code, by_pair, kind):
    def spread(c):
        if 0xac00 <= c < 0xd7a4:
            s = c - 0xac00
            return [0x1100 + s // 588, 0x1161 + s % 588 // 28] + [0x11a7 + s % 28] * (s % 28 > 0)
        if c not in by_code:
            return [c]
        first, second = by_code[c]
        return spread(first) + ([second] if second else [])
    codes = [x for c in text for x in spread(ord(c))]
    out, run = [], []
    for c in codes + [0]:       # marks in the order of their classes
        if c in kind:
            run.append(c)
        else:
            out += sorted(run, key=kind.get) + [c]
            run = []
    out.pop()
    made, starter, last = [], None, -1
    for c in out:
        k = kind.get(c, 0)
        pair = None if starter is None or last >= k else compose(made[starter], c, by_pair)
        if pair:
            made[starter] = pair
            continue
        if k == 0:
            starter, last = len(made), -1
        else:
            last = k
        made.append(c)
    return "".join(map(chr, made))


def compose(a, b, by_pair):
    if 0x1100 <= a < 0x1113 and 0x1161 <= b < 0x1176:
        return 0xac00 + ((a - 0x1100) * 21 + b - 0x1161) * 28
    if 0xac00 <= a < 0xd7a4 and (a - 0xac00) % 28 == 0 and 0x11a7 < b < 0x11c3:
        return a + b - 0x11a7
    return by_pair.get((a, b))


def main():
    rows, kinds = decompositions(), classes()
    pairs = sorted((i for i, row in enumerate(rows) if composes(row)), key=lambda i: rows[i][1:])
    write(rows, pairs, kinds)
    by_code = {c: (a, b) for c, a, b in rows}
    by_pair = {rows[i][1:]: rows[i][0] for i in pairs}
    kind = {c: k for a, b, k in kinds for c in range(a, b + 1)}
    for c in ALL:
        for text in (chr(c), "a" + chr(c) + "\u0301", "\u0344" + chr(c) + "\u0327\u0338", chr(c) + "\u1161\u11a8\u0323"):
            assert normalise(text, by_code, by_pair, kind) == NFC.normalize_str(text), ascii(text)
    print(f"{len(rows)} decompositions, {len(pairs)} of which are composed, {len(kinds)} ranges of classes")


main()
