#!/usr/bin/env python3
"""Makes tests/golden/pan-and-scan.json: of pictures of many sizes, the parts that Gemma3ImageProcessor of transformers
5.23 crops with the numbers of Gemma3Processor. Used by tests/test_crops.c.

    python3 tools/golden/pan_and_scan.py

[width, height, [[x, y, width, height] of each part]] of each size, and of the same turned by 90 degrees.
"""
import json
import pathlib
import random

import torch
from transformers import Gemma3ImageProcessor, Gemma3Processor

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "pan-and-scan.json"
NUMBERS = {k: v for k, v in Gemma3Processor.images_kwargs.items() if k.startswith("pan_and_scan")}
# Where the ratio, what it is rounded to, the least side of a part and the rest of a division change the answer.
EDGES = [(1, 1), (2, 1), (255, 255), (512, 512), (511, 256), (512, 256), (512, 255), (513, 256), (512, 426), (512, 427),
         (600, 500), (599, 500), (601, 500), (1200, 1000), (1199, 1000), (12000, 10000), (11999, 10000), (6, 5),
         (767, 256), (768, 256), (769, 256), (640, 256), (639, 256), (896, 256), (897, 256), (1023, 256), (1024, 256),
         (1025, 256), (1025, 257), (1150, 500), (1250, 500), (1249, 500), (1750, 500), (1749, 500), (3500, 1000),
         (3499, 1000), (1001, 300), (1002, 300), (1003, 300), (32768, 256), (32768, 255), (32768, 3051), (10000, 9999),
         (767, 300), (770, 300), (1535, 1024), (1536, 1024), (1537, 1024), (4096, 2304), (1920, 1080), (3024, 4032)]


def crops(width, height):
    """The picture's values are their own places; it takes no memory."""
    x = torch.arange(width).expand(height, width)
    y = torch.arange(height)[:, None].expand(height, width)
    both = [Gemma3ImageProcessor().pan_and_scan_batched(at[None, None], **NUMBERS) for at in (x, y)]
    return [[int(a[0, 0, 0, 0]), int(b[0, 0, 0, 0]), a.shape[3], a.shape[2]] for a, b in zip(*both, strict=True)]


def main():
    r = random.Random(1)
    sizes = EDGES + [(r.randint(256, 3000), r.randint(256, 1500)) for _ in range(60)]
    rows = [[w, h, crops(w, h)] for size in sizes for w, h in dict.fromkeys((size, size[::-1]))]
    OUT.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


main()
