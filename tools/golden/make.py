#!/usr/bin/env python3
"""Makes tests/golden: tiny random Gemma, Llama and Qwen models, and what Hugging Face transformers computes with them.

    python3 tools/golden/make.py [NAME...]            write the models to tests/golden
    python3 tools/golden/make.py --check [NAME...]    only read them: do the files say what models.py means, which
                                                      errors do honest roundings cause, and does every mistake show

Needs torch, transformers 5, safetensors and gguf (tests/golden/README.md has the versions used). Of what is written,
assemble.py --cut then takes the weights away; --check reads them where a build has put them, in build/golden.
"""
import argparse
import pathlib
import shutil
import sys

import numpy as np
import transformers

import check
import files
import models
import oracle
import perplexity
from assemble import BUILT

SCORED = ("gemma2-base", "gemma4", "gemma4-small")     # language models with a tokenizer of their own
HERE = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"


def make(name, s, folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if s.form:
        files.save_hf(s, folder)
    if s.gguf:
        files.save_gguf(s, folder / "model.gguf")
    ids = models.tokens(s)
    (folder / "tokens.txt").write_text(",".join(map(str, ids)) + "\n")
    model = oracle.load(s, folder)
    logits, hidden = oracle.run(model, ids)
    if s.head == "sequence":
        oracle.check_padding(model, ids, pad=0)
    if name in SCORED:
        perplexity.save(model, 2, s.seed, folder)
    if logits is not None:
        logits.numpy().astype("<f4").tofile(folder / "logits.f32")
    hidden.numpy().astype("<f4").tofile(folder / "hidden.f32")
    hidden = check.run_q8_0_cache(s, model, ids)
    hidden.numpy().astype("<f4").tofile(folder / "hidden-q8_0.f32")
    for f in folder.iterdir():
        f.chmod(0o644)      # safetensors makes its files private
    size = sum(f.stat().st_size for f in folder.iterdir())
    print(f"{name}: {size / 1024:.0f} KiB", end="" if logits is not None else "\n")
    if logits is not None:
        print(f", logits {float(logits.min()):.1f} .. {float(logits.max()):.1f}, "
              f"{len(np.unique(logits.argmax(-1)))} different winners in {len(ids)} rows")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("names", nargs="*", help="models, all by default")
    p.add_argument("--out", type=pathlib.Path, help="tests/golden, or build/golden with --check")
    p.add_argument("--check", action="store_true")
    a = p.parse_args()
    transformers.logging.set_verbosity_error()
    out = a.out or (BUILT if a.check else HERE)
    for name in a.names or models.SHAPES:
        if a.check:
            check.report(name, models.SHAPES[name], out / name)
        else:
            make(name, models.SHAPES[name], out / name)


if __name__ == "__main__":
    sys.exit(main())
