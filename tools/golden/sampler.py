#!/usr/bin/env python3
"""Writes tests/golden/samplers.json: what DRY, top-n-sigma and XTC make of small distributions, by their definitions in
float64 and with no regard for speed. Needs nothing but Python. Used by tests/test_sampler.c."""

import json
import math
import random
import sys
from pathlib import Path

N = 12
BREAKERS = ["\n", ":", "\"", "*"]


def breaker_ends(pieces, history, breakers):
    """For each token in which a breaker begins: the token in which it ends, the last of several."""
    text = "".join(pieces[t] for t in history)
    token_of = [i for i, t in enumerate(history) for _ in pieces[t]]
    ends = {}
    for b in breakers:
        for at in range(len(text)):
            if b and text.startswith(b, at):
                i, end = token_of[at], token_of[at + len(b) - 1]
                ends[i] = max(ends.get(i, end), end)
    return ends


def dry(pieces, history, p):
    """{token: length of the longest repetition that it would go on with}"""
    least = p.get("dry_allowed_length", 2)
    breakers = p.get("dry_breakers", BREAKERS)
    last_n = p.get("dry_last_n", 0)
    history = history[-last_n:] if last_n else history
    n = len(history)
    ends = breaker_ends(pieces, history, breakers)
    limit = n - 1 - ends[max(ends)] if ends else n
    found = {}
    for at in range(1, n):   # history[at] is what followed
        length = 0
        while length < at and length < limit and history[at - 1 - length] == history[n - 1 - length]:
            length += 1
        token = history[at]
        if length >= least and not any(b and b in pieces[token] for b in breakers):
            found[token] = max(found.get(token, 0), length)
    return found


def probabilities(pieces, history, logits, p):
    """Of the tokens, as the public header has the chain."""
    penalties = dry(pieces, history, p) if p.get("dry_multiplier") else {}
    least, base = p.get("dry_allowed_length", 2), p.get("dry_base", 1.75)
    x = [v - (p["dry_multiplier"] * base ** (penalties[i] - least) if i in penalties else 0)
         for i, v in enumerate(logits)]
    mean = sum(logits) / N
    sigma = math.sqrt(sum((v - mean) ** 2 for v in logits) / N)
    order = sorted(range(N), key=lambda i: (-x[i], i))
    if p.get("top_n_sigma"):
        order = [i for i in order if x[order[0]] - x[i] <= p["top_n_sigma"] * sigma]
    if p.get("top_k"):
        order = order[:p["top_k"]]
    weight = {i: math.exp((x[i] - x[order[0]]) / p["temperature"]) for i in order}
    total, before, kept = sum(weight.values()), 0.0, []
    for k, i in enumerate(order):
        if k == 0 or ((not p.get("top_p") or before / total < p["top_p"])
                      and weight[i] >= p.get("min_p", 0) * weight[order[0]]):
            kept.append(i)
        before += weight[i]
    total = sum(weight[i] for i in kept)
    out = [weight[i] / total if i in kept else 0.0 for i in range(N)]
    if not p.get("xtc_probability") or p["xtc_threshold"] > 0.5:
        return out
    above = [i for i in kept if weight[i] / total >= p["xtc_threshold"]]
    left = [i for i in kept if i not in above[:-1]]
    total = sum(weight[i] for i in left)
    rate = min(p["xtc_probability"], 1)
    return [(1 - rate) * out[i] + (rate * weight[i] / total if i in left else 0) for i in range(N)]


LOGITS = [2.0, 1.75, 1.75, 1.125, 0.875, 0.375, 0.0, -0.25, -1.0, -1.25, -2.5, -30.0]
PIECES = list("abcdefghij") + ["x:", "\n"]
CHAINS = [
    {"top_n_sigma": 0.125}, {"top_n_sigma": 0.25}, {"top_n_sigma": 0.5, "temperature": 3},
    {"top_n_sigma": 1, "top_k": 4}, {"top_n_sigma": 0.5, "top_p": 0.5}, {"top_n_sigma": 100},
    {"xtc_probability": 1, "xtc_threshold": 0.125}, {"xtc_probability": 0.5, "xtc_threshold": 0.125},
    {"xtc_probability": 0.25, "xtc_threshold": 0.0625, "temperature": 0.5}, {"xtc_probability": 1, "xtc_threshold": 0.001953125},
    {"xtc_probability": 1, "xtc_threshold": 0.5}, {"xtc_probability": 1, "xtc_threshold": 0.75},
    {"xtc_probability": 0.75, "xtc_threshold": 0.0625, "top_k": 5},
    {"xtc_probability": 1, "xtc_threshold": 0.125, "top_p": 0.5},
    {"xtc_probability": 1, "xtc_threshold": 0.1875, "min_p": 0.5},
    {"dry_multiplier": 0.75}, {"dry_multiplier": 0.5, "dry_base": 3}, {"dry_multiplier": 0.5, "dry_allowed_length": 4},
    {"dry_multiplier": 2, "dry_last_n": 6}, {"dry_multiplier": 1, "dry_breakers": ["ab"]},
    {"dry_multiplier": 1, "dry_breakers": []}, {"dry_multiplier": 1e30, "top_k": 3},
    {"dry_multiplier": 0.75, "top_n_sigma": 0.25, "top_k": 6, "top_p": 0.875, "min_p": 0.0625, "xtc_probability": 0.5,
     "xtc_threshold": 0.125, "temperature": 0.75},
]
HISTORY = [10, 0, 1, 2, 0, 0, 1, 3, 0, 1, 2, 4, 0, 1, 2]


def random_history(r):
    """Texts of few tokens, so that they repeat themselves; breakers within tokens, across them, and overlapping."""
    pieces = [r.choice(["a", "b", "c", "ab", "bc", "a\nb", "\n", "", "ca"]) for _ in range(N)]
    used = r.sample(range(N), r.choice([1, 2, 3, 5]))
    p = {"dry_multiplier": 0.5, "dry_allowed_length": r.choice([1, 2, 3, 5]), "dry_base": r.choice([1, 1.75])}
    if r.random() < 0.5:
        p["dry_breakers"] = r.sample(["\n", "ab", "bca", "aa", "cab", "", "bb", "abcabc", "zzz"], r.randrange(4))
    if r.random() < 0.3:
        p["dry_last_n"] = r.randrange(1, 40)
    return pieces, [r.choice(used) for _ in range(r.randrange(1, 60))], p


def main():
    r = random.Random(48)
    chains = []
    for i, p in enumerate(CHAINS):
        p = {"temperature": 1, **p}
        chains.append({"params": p, "p": [round(x, 12) for x in probabilities(PIECES, HISTORY, LOGITS, p)]})
    histories = []
    while len(histories) < 120:
        pieces, history, p = random_history(r)
        found = dry(pieces, history, p)
        if found or r.random() < 0.2:
            histories.append({"params": p, "pieces": pieces, "history": history, "pairs": sorted(found.items())})
    out = {"logits": LOGITS, "pieces": PIECES, "history": HISTORY, "chains": chains, "dry": histories}
    text = json.dumps(out).replace('{"params"', '\n{"params"') + "\n"
    path = Path(__file__).parents[2] / "tests/golden/samplers.json"
    if sys.argv[1:] == ["--check"]:
        sys.exit(path.read_text() != text and f"{path} is not what this script writes")
    path.write_text(text)


if __name__ == "__main__":
    main()
