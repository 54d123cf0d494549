"""How far models of each type are from the weights they were made of, by `peridot convert` and by llama.cpp's
llama-quantize (tests/reports/quality.txt):

    quality.py PERIDOT LLAMA_QUANTIZE MODEL.gguf IMATRIX.gguf TEXT FOLDER [TYPE...]

MODEL is in F32. Where its weights were once of a small type they lie on that type's grid, and types that have the same
look better than they are: `quality.py --fold MODEL.gguf` changes a file of a Llama so that it computes the same with
weights off the grid (norms move into the matrices that follow them, and rows of v and up are divided by what the
columns of o and down are multiplied by). TEXT may be "": then there is no KL, which takes most of the time. Needs numpy
and gguf.

Error: the root of the mean square of the differences over that of the weights, of all matrices that have the same type
in both files; weighted: each square counts by the importance of its column. KL: the mean divergence, in nats, of the
next token's distribution from the model's, of the first 2,000 tokens of the text in windows of 500. Of a type, a file
of llama-quantize has that alone (--pure), and its embedding the type that convert gives it; of a mix, which has several
types, the errors are of all matrices whose types are the same in both. A mix that is refused without an importance
matrix has one row. `same`: all matrices have the same bytes in both.
"""
import subprocess
import sys
from pathlib import Path

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize

TYPES = ["q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q4_k", "q5_k", "q6_k"]
MIXES = ["q2_k", "q2_k_s", "q3_k_s", "q3_k_m", "q3_k_l", "q4_k_s", "q4_k_m", "q5_k_s", "q5_k_m", "iq4_nl", "iq4_xs",
         "iq3_m", "iq3_s", "iq3_xs", "iq3_xxs", "iq2_m", "iq2_s", "iq2_xs", "iq2_xxs", "iq1_m", "iq1_s"]
BY_IMATRIX = ["q2_k_s", "iq3_xs", "iq3_xxs", "iq2_m", "iq2_s", "iq2_xs", "iq2_xxs", "iq1_m", "iq1_s"]
WINDOW, N_WINDOWS = 500, 4


def fold(path):
    reader = GGUFReader(path, "r+")
    tensors, head_dim = {t.name: t.data for t in reader.tensors}, reader.fields["llama.rope.dimension_count"].contents()
    draw = np.random.default_rng(1)
    for name in [n for n in tensors if n.endswith(".attn_norm.weight")]:
        layer = name.removesuffix("attn_norm.weight")
        for norm, matrices in (("attn_norm", ("attn_q", "attn_k", "attn_v")), ("ffn_norm", ("ffn_gate", "ffn_up"))):
            for matrix in matrices:
                tensors[f"{layer}{matrix}.weight"][:] *= tensors[f"{layer}{norm}.weight"]
            tensors[f"{layer}{norm}.weight"][:] = 1
        for rows, columns in (("attn_v", "attn_output"), ("ffn_up", "ffn_down")):
            a, b = tensors[f"{layer}{rows}.weight"], tensors[f"{layer}{columns}.weight"]
            by = draw.uniform(0.8, 1.25, a.shape[0]).astype(np.float32)
            a /= by[:, None]
            head = head_dim if rows == "attn_v" else a.shape[0]   # heads that share a v follow one another
            b *= np.repeat(by.reshape(-1, head), b.shape[1] // a.shape[0], 0).reshape(-1)


def matrices(path):
    return {t.name: t for t in GGUFReader(path).tensors if len(t.shape) > 1}


def errors(wanted, got, names, importance):
    """-> relative errors, plain and weighted"""
    sums = np.zeros(4)
    for name in names:
        want = np.asarray(wanted[name].data, np.float32)
        squares, w = (dequantize(got[name].data, got[name].tensor_type) - want) ** 2, want ** 2
        by = importance.get(name)
        sums[:2] += squares.sum(dtype=np.float64), w.sum(dtype=np.float64)
        if by is not None:
            sums[2:] += (squares * by).sum(dtype=np.float64), (w * by).sum(dtype=np.float64)
    return np.sqrt(sums[0] / sums[1]), np.sqrt(sums[2] / sums[3])


class Logits:
    def __init__(self, peridot, model, text, folder):
        self.peridot, self.out = peridot, folder / "logits.f32"
        ids = subprocess.run([peridot, "tokenize", "-m", model], input=Path(text).read_bytes()[:16000], check=True,
                             capture_output=True).stdout.decode().split(",")
        self.windows = [",".join(ids[i * WINDOW:(i + 1) * WINDOW]) for i in range(N_WINDOWS)]
        self.wanted = [self.log_softmax(self.logits(model, w)) for w in self.windows]

    def logits(self, model, ids):
        subprocess.run([self.peridot, "logits", "-m", model, "--tokens", ids, "--out", self.out], check=True,
                       capture_output=True)
        return np.fromfile(self.out, np.float32).reshape(WINDOW, -1)

    @staticmethod
    def log_softmax(x):
        x = x - x.max(1, keepdims=True)
        return x - np.log(np.exp(x).sum(1, keepdims=True))

    def divergence(self, model):
        kl = [(np.exp(p) * (p - self.log_softmax(self.logits(model, w)))).sum(1).mean()
              for p, w in zip(self.wanted, self.windows)]
        return np.mean(kl)


def main(peridot, llama, model, imatrix, text, folder, *types):
    folder = Path(folder)
    wanted, logits = matrices(model), Logits(peridot, model, text, folder) if text else None
    importance = {t.name.removesuffix(".in_sum2"): t.data.reshape(-1) for t in GGUFReader(imatrix).tensors
                  if t.name.endswith(".in_sum2")}
    ours, theirs = folder / "ours.gguf", folder / "theirs.gguf"
    print("type imatrix matrices error theirs weighted theirs kl theirs")
    for name in types or TYPES + MIXES:
        for by in ([], ["--imatrix", imatrix])[name in BY_IMATRIX:]:
            subprocess.run([peridot, "convert", model, "-o", ours, "--type", name, *by], check=True,
                           capture_output=True)
            a = matrices(ours)
            embedding = a["token_embd.weight"].tensor_type.name.lower()
            alone = [] if name in MIXES else ["--pure", "--token-embedding-type", embedding]
            subprocess.run([llama, *by, *alone, model, theirs, name], check=True, capture_output=True)
            b = matrices(theirs)
            names = [n for n in a if a[n].tensor_type == b[n].tensor_type
                     and (name in MIXES or a[n].tensor_type.name.lower() == name)]
            pairs = zip(errors(wanted, a, names, importance), errors(wanted, b, names, importance))
            row = [f"{x:.6f}" for pair in pairs for x in pair]
            same = all(np.array_equal(a[n].data, b[n].data) for n in a)
            kl = [f"{logits.divergence(m):.5f}" if logits else "-" for m in (ours, theirs)[:2 - same]] + ["same"] * same
            print(name, "yes" if by else "no", f"{len(names)}/{len(a)}", *row, *kl, flush=True)
    for path in (ours, theirs, folder / "logits.f32"):
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    if sys.argv[1] == "--fold":
        fold(sys.argv[2])
    else:
        main(*sys.argv[1:])
