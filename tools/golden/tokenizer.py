"""A tiny sentencepiece vocabulary, as lists for a GGUF file and as a tokenizer.model."""
import struct

import gguf


def pieces(n, special=()):
    """A tiny sentencepiece vocabulary: control pieces, 256 bytes, normal pieces, and as the last ones control pieces of
    the model's own. -> texts, scores, types"""
    t = gguf.TokenType
    texts = ["<pad>", "<eos>", "<bos>", "<unk>"] + [f"<0x{b:02X}>" for b in range(256)]
    types = [t.CONTROL, t.CONTROL, t.CONTROL, t.UNKNOWN] + [t.BYTE] * 256
    normal = ["\u2581", "e", "t", "a", "o", "n", "\u2581a", "he", "\u2581t", "\u2581the", "s", "i"]
    normal += [chr(ord("A") + i) for i in range(26)]
    normal = normal[:n - len(texts) - len(special)]
    scores = [0.0] * len(texts) + [-1.0 - i for i in range(len(normal))] + [0.0] * len(special)
    return texts + normal + list(special), scores, types + [t.NORMAL] * len(normal) + [t.CONTROL] * len(special)


# ---- tokenizer.model: sentencepiece_model.proto, by hand ----

def varint(n):
    out = b""
    while n >= 128:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def message(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def sentencepiece_model(texts, scores, types):
    """BPE with bytes as the last resort and the ids of Gemma; the text is taken as it is."""
    out = b""
    for text, score, kind in zip(texts, scores, types):
        piece = message(1, text.encode()) + varint(2 << 3 | 5) + struct.pack("<f", score)
        out += message(1, piece + number(3, int(kind)))
    trainer = number(3, 2) + number(4, len(texts)) + number(35, 1)
    trainer += number(40, 3) + number(41, 2) + number(42, 1) + number(43, 0)
    trainer += message(45, b"<unk>") + message(46, b"<bos>") + message(47, b"<eos>") + message(48, b"<pad>")
    normalizer = message(1, b"identity") + number(3, 0) + number(4, 0) + number(5, 1)
    return out + message(2, trainer) + message(3, normalizer)
