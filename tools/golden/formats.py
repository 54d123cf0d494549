"""Safetensors and GGUF files with numpy alone: what is before the tensors, and numbers as the tensors hold them, to the
bit as torch and the gguf package round them. With these the scripts that compute references write their files;
assemble.py, which any build runs, has them from here.
"""
import json
import struct

import numpy as np

GGUF_TYPES = {0: "F32", 1: "F16", 2: "Q4_0", 8: "Q8_0", 30: "BF16", 39: "MXFP4"}     # those that can be written


# ---- numbers as files hold them ----

def bf16(x):
    bits = x.astype("<f4").view("<u4")
    return (bits + 0x7FFF + (bits >> 16 & 1) >> 16).astype("<u2")


def inverse(d):
    return np.divide(1, d, out=np.zeros_like(d), where=d != 0)


def q8_0(x):
    """Halves are rounded away from zero."""
    x = x.astype(np.float32).reshape(-1, 32)
    d = abs(x).max(1, keepdims=True) / np.float32(127)
    scaled = x * inverse(d)
    whole = np.floor(abs(scaled))
    q = np.sign(scaled) * (whole + np.floor(2 * (abs(scaled) - whole)))
    return np.hstack([d.astype("<f2").view(np.uint8), q.astype(np.int8).view(np.uint8)])


def q4_0(x):
    x = x.astype(np.float32).reshape(-1, 32)
    d = np.take_along_axis(x, abs(x).argmax(1)[:, None], 1) / np.float32(-8)
    q = (x * inverse(d) + np.float32(8.5)).clip(0, 15).astype(np.uint8)
    return np.hstack([d.astype("<f2").view(np.uint8), q[:, :16] | q[:, 16:] << 4])


def mxfp4(blocks, scales):
    """gpt-oss's as GGUF has them: the scale first, and weight i beside weight i + 16, no more beside its neighbour."""
    q = np.stack([blocks & 15, blocks >> 4], -1).reshape(*blocks.shape[:-1], 32)
    return np.concatenate([scales[..., None], q[..., :16] | q[..., 16:] << 4], -1).reshape(*blocks.shape[:2], -1)


ENCODE = {"F32": lambda x: x.astype("<f4"), "F16": lambda x: x.astype(np.float32).astype("<f2"), "BF16": bf16,
          "U8": lambda x: x.astype("u1"), "Q8_0": q8_0, "Q4_0": q4_0, "MXFP4": lambda x: x}


def rounded(kind, x):
    """As a file of type kind has it, in float32."""
    out = np.atleast_1d(ENCODE[kind](x))
    return (out.astype("<u4") << 16).view("<f4") if kind == "BF16" else out.astype(np.float32)


def size_of(kind, shape):
    n = int(np.prod(shape, dtype=np.int64))
    sizes = {"F32": 4 * n, "F16": 2 * n, "BF16": 2 * n, "U8": n, "I64": 8 * n, "Q8_0": n // 32 * 34,
             "Q4_0": n // 32 * 18, "MXFP4": n // 32 * 17}
    return sizes.get(kind)


# ---- what is before the tensors: (name, type, shape, where it begins) in the file's order ----

def read_safetensors(data):
    begin = 8 + struct.unpack_from("<Q", data)[0]
    tensors = json.loads(data[8:begin])
    tensors.pop("__metadata__", None)
    rows = [(n, t["dtype"], tuple(t["shape"]), begin + t["data_offsets"][0]) for n, t in tensors.items()]
    return begin, sorted(rows, key=lambda row: row[3])


class Gguf:
    """The keys that are needed, and the tensors."""
    SIZES = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}

    def __init__(self, data):
        self.data, self.at = data, 8
        n_tensors, n_keys = self.number("Q"), self.number("Q")
        self.keys = {self.text(): self.value(self.number("I")) for _ in range(n_keys)}
        rows = []
        for _ in range(n_tensors):
            name, n_dims = self.text(), self.number("I")
            shape = tuple(self.number("Q") for _ in range(n_dims))[::-1]
            rows.append((name, self.number("I"), shape, self.number("Q")))
        self.begin = (self.at + 31) // 32 * 32
        self.tensors = [(n, GGUF_TYPES.get(kind), shape, self.begin + at) for n, kind, shape, at in rows]

    def number(self, form):
        self.at += struct.calcsize(form)
        return struct.unpack_from("<" + form, self.data, self.at - struct.calcsize(form))[0]

    def text(self):
        n = self.number("Q")
        self.at += n
        return self.data[self.at - n:self.at].decode()

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            kind = self.number("I")
            return [self.value(kind) for _ in range(self.number("Q"))]
        return self.number(self.SIZES[kind])
