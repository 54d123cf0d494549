#!/usr/bin/env python3
"""Names characters that Python's Unicode normalises and Hugging Face's tokenizers (0.23.3) leave as they are: those
that src/text/split.c must have among its unknown ones, and has not, end this with status 1.

    python3 tools/nfc.py
"""
import pathlib
import re
import sys
import unicodedata

from tokenizers import normalizers

SOURCE = pathlib.Path(__file__).resolve().parents[1] / "src" / "text" / "split.c"
NFD = normalizers.NFD()


def is_unknown(c):
    """A mark that does not swap places with one of another class, or a letter that is not taken apart."""
    if unicodedata.normalize("NFD", chr(c)) != NFD.normalize_str(chr(c)):
        return True
    k = unicodedata.combining(chr(c))
    other = "\u0338" if k != 1 else "\u0301"
    both = ("a" + chr(c) + other, "a" + other + chr(c))
    return k and NFD.normalize_str(both[0]) != NFD.normalize_str(both[1])


def main():
    rows = re.search(r"unknown\[\]\[2\] = \{(.*?)\};", SOURCE.read_text(), re.S).group(1)
    rows = [(int(a, 0), int(b, 0)) for a, b in re.findall(r"\{(\w+), (\w+)\}", rows)]
    unknown = [c for c in range(0x110000) if not 0xd800 <= c < 0xe000 and is_unknown(c)]
    lacking = [c for c in unknown if not any(a <= c <= b for a, b in rows)]
    print(f"Unicode {unicodedata.unidata_version}: {len(unknown)} that tokenizers do not know, {len(lacking)} of which "
          f"split.c lacks: {' '.join(map(hex, lacking))}")
    sys.exit(len(lacking) > 0)


main()
