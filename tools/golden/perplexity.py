"""A text whose tokens are certain, and its perplexity by the definition of `peridot perplexity --help`, in float64."""
import math

import numpy as np
import torch

import tokenizer

N_TOKENS = 300
CONTEXTS = (2, 7, 64, 512)


def lone_characters(n):
    """Characters that are one token each whatever is beside them -> ids; the vocabulary joins only he, and what follows
    a space."""
    texts, _, _ = tokenizer.pieces(n)
    own = {t: i for i, t in enumerate(texts) if len(t) == 1}
    return {c: own.get(c, 4 + ord(c)) for c in map(chr, [10, *range(33, 127)]) if c != "h"}


@torch.no_grad()
def log_probabilities(model, ids):
    return torch.log_softmax(model(input_ids=torch.tensor([ids]), use_cache=False).logits[0], -1)


def write_text(model, bos, seed):
    """Drawn from the model itself, so that it is not hopelessly surprised, but hotly: else it repeats one character.
    -> text, ids"""
    table = lone_characters(model.config.vocab_size)
    characters, allowed = list(table), torch.tensor(list(table.values()))
    rng = np.random.Generator(np.random.PCG64([seed, 3]))
    ids = []
    while len(ids) < N_TOKENS:
        p = log_probabilities(model, [bos] + ids[-40:])[-1][allowed].div(6).exp().numpy()
        ids.append(int(allowed[rng.choice(len(allowed), p=p / p.sum())]))
    back = {i: c for c, i in table.items()}
    return "".join(back[i] for i in ids), ids


def losses(model, ids, bos, ctx):
    """Token by token: which window scores it first, and what that window says."""
    length, stride = ctx - 1, ctx // 2
    out, rows = [], {}
    for i, token in enumerate(ids):
        w = 0 if i < length else -(-(i - length + 1) // stride)
        begin = w * stride
        if w not in rows:
            rows[w] = log_probabilities(model, [bos] + ids[begin:begin + length])
        out.append(-float(rows[w][i - begin][token]))
    return np.array(out)


def save(model, bos, seed, folder):
    text, ids = write_text(model, bos, seed)
    (folder / "text.txt").write_text(text)
    lines = []
    for ctx in CONTEXTS:
        x = losses(model, ids, bos, ctx)
        ppl = math.exp(x.mean())
        error = ppl * x.std(ddof=1) / math.sqrt(len(x))
        lines.append(f"{ctx} {len(x)} {x.sum() / math.log(2) / len(text):.6f} {ppl:.6f} {error:.6f}\n")
    (folder / "perplexity.txt").write_text("".join(lines))
