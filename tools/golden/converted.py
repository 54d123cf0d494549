#!/usr/bin/env python3
"""Makes tests/golden/converted: what llama.cpp's own converter makes of models of tests/golden/dense: the keys of the
architecture, and of each tensor its type, shape and a hash of its bytes. tests/test_convert.c compares files that
peridot_convert makes of the same models.

    python3 tools/golden/converted.py LLAMA_CPP [NAME...]

LLAMA_CPP is a folder of llama.cpp's source. The models have no tokenizers, so that none is written. Needs what the
converter needs: torch, transformers, gguf.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

import gguf

TOP = pathlib.Path(__file__).resolve().parents[2]
MODELS, OUT = TOP / "build" / "golden" / "dense", TOP / "tests" / "golden" / "converted"
NAMES = ("granite4-h", "lfm2", "qwen35-moe", "qwen35-mtp", "qwen3-next")   # the last two with blocks that draft
WITHOUT_VOCABULARY = """
import sys
sys.path[:0] = [{source!r}, {source!r} + "/gguf-py"]
import convert_hf_to_gguf
from conversion import base
base.TextModel.set_vocab = lambda self: None
for c in list(base.TextModel.__subclasses__()):
    todo = [c]
    while todo:
        one = todo.pop()
        todo += one.__subclasses__()
        if "set_vocab" in vars(one):
            one.set_vocab = base.TextModel.set_vocab
sys.argv[1:] = [{model!r}, "--outtype", "bf16", "--outfile", {out!r}] + {options!r}
convert_hf_to_gguf.main()
"""


def fnv(data):
    """FNV-1a in 64 bits."""
    out = 0xcbf29ce484222325
    for byte in data:
        out = (out ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return out


def lines_of(path):
    """Without what the converter says of experts where there are none, of a gated unit where there are, which no tensor
    has, and of the length of texts: always 2^20 in Granite's hybrids."""
    reader = gguf.GGUFReader(path)
    arch = reader.fields["general.architecture"].contents()
    has_experts = any("_exps" in t.name for t in reader.tensors)
    for name, field in sorted(reader.fields.items()):
        value = field.contents()
        value = value if isinstance(value, list) else [value]
        own = name.startswith(arch + ".") and name != "granitehybrid.context_length" \
            and not (".feed_forward_length" if has_experts else ".expert_") in name
        if own and not isinstance(value[0], str):
            yield f"key {name} " + ",".join(f"{int(x) if isinstance(x, bool) else x:.9g}" for x in value)
    for t in sorted(reader.tensors, key=lambda t: t.name):
        shape = ",".join(str(n) for n in reversed(t.shape.tolist()))
        yield f"tensor {t.name} {t.tensor_type.name.lower()} {shape} {fnv(t.data.tobytes()):016x}"


def make(source, name):
    with tempfile.TemporaryDirectory() as folder:
        out, model = (str(pathlib.Path(folder) / n) for n in ("x.gguf", name))
        shutil.copytree(MODELS / name, model)
        if name.startswith("granite"):    # as published: the converter knows no other names of kinds of layers
            config = pathlib.Path(model) / "config.json"
            text = config.read_text().replace("linear_attention", "mamba").replace("full_attention", "attention")
            config.write_text(text)
        program = WITHOUT_VOCABULARY.format(source=source, model=model, out=out,
                                            options=["--no-mtp"] * (name == "qwen35-moe"))
        subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
        lines = list(lines_of(out))
    (OUT / f"{name}.txt").write_text("\n".join(lines) + "\n")
    print(f"{name}: {len(lines)} lines")


OUT.mkdir(exist_ok=True)
for one in sys.argv[2:] or NAMES:
    make(sys.argv[1], one)
