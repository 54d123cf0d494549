#!/usr/bin/env python3
"""Makes tests/golden/splits: small tokenizers with the steps of families' own, and what Hugging Face's tokenizers makes
of texts with them.

    python3 tools/golden/splits.py            writes the folder
    python3 tools/golden/splits.py FILE...    shows that the command `peridot` (of build/) splits these files as
                                              tokenizers does: lines by themselves, and their beginning at once

The steps are those of the published tokenizer.json files, the merges are of texts here, across what some of the
patterns split, and the same for all: two vocabularies, by bytes and by characters. Needs tokenizers, and gguf for FILE.
"""
import copy
import json
import pathlib
import random
import subprocess
import sys
import tempfile

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from texts import CORPUS, PLAIN, UNICODE, random_texts

TOP = pathlib.Path(__file__).resolve().parents[2]
OUT = TOP / "tests" / "golden" / "splits"

# ---- steps ----

ENGLISH = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = ENGLISH + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + SPACES
CASED = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+%s|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*%s|")
PUNCTUATION = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|"
TEKKEN = CASED % ("", "") + r"\p{N}" + PUNCTUATION + SPACES
GPT4O = CASED % (ENGLISH + "?", ENGLISH + "?") + r"\p{N}{1,3}" + PUNCTUATION + SPACES


def sequence(kind, *steps):
    return {"type": "Sequence", kind: list(steps)}


def byte_level(regex):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": regex}


def split(pattern, removed=False):
    step = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Removed" if removed else "Isolated",
            "invert": removed}
    return sequence("pretokenizers", step, byte_level(False))


def begin_with(token):
    text = {"Sequence": {"id": "A", "type_id": 0}}
    special = {"SpecialToken": {"id": token, "type_id": 0}}
    return {"type": "TemplateProcessing", "single": [special, text], "pair": [special, text],
            "special_tokens": {token: {"id": token, "ids": [0], "tokens": [token]}}}


DIGITS = sequence("pretokenizers", {"type": "Digits", "individual_digits": True}, byte_level(True))
REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
PREPEND = sequence("normalizers", {"type": "Prepend", "prepend": "\u2581"}, REPLACE)
METASPACE = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": False}
FALLBACK = sequence("decoders", {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
                    {"type": "ByteFallback"}, {"type": "Fuse"},
                    {"type": "Strip", "content": " ", "start": 1, "stop": 0})
BYTES = {"normalizer": None, "post_processor": None, "decoder": byte_level(True)}
CHARS = {"pre_tokenizer": None, "decoder": FALLBACK}

# `pre`: of those with merges of bytes, GGUF's names for the steps (Phi 4's flags have no place there). `added`: beside
# what all have, "<" and ">" for flags that strip there, "!" for what is not special.
FAMILIES = [
    {"name": "llama3", "pre": ["llama-bpe"], "whole_words": True, "bos": "<|begin_of_text|>",
     "steps": BYTES | {"pre_tokenizer": split(LLAMA3)}},
    {"name": "smollm3", "pre": ["smaug-bpe", "dbrx"], "steps": BYTES | {"pre_tokenizer": split(LLAMA3)}},
    {"name": "olmo2", "pre": ["dbrx"], "steps": BYTES | {"pre_tokenizer": split(LLAMA3, removed=True)}},
    {"name": "phi4", "pre": [], "steps": BYTES | {"pre_tokenizer": split(LLAMA3)},
     "added": ["<|im_start|> <>", "<|im_end|> <>", "<x> >!"]},
    {"name": "mistral-nemo", "pre": ["tekken"], "whole_words": True, "bos": "<s>",
     "steps": BYTES | {"pre_tokenizer": split(TEKKEN)}, "added": ["[INST]", "[/INST]"]},
    {"name": "phi4-mini", "pre": ["gpt-4o", "llama4"], "steps": BYTES | {"pre_tokenizer": split(GPT4O, removed=True)},
     "added": ["<|user|> >", "<|end|> >"], "architecture": "phi3"},
    {"name": "granite3", "pre": ["refact", "starcoder", "smollm"], "steps": BYTES | {"pre_tokenizer": DIGITS}},
    {"name": "granite-docling", "pre": ["granite-docling", "gpt-2"],
     "steps": BYTES | {"pre_tokenizer": byte_level(True)}},
    {"name": "olmo", "pre": ["olmo"],
     "steps": BYTES | {"normalizer": {"type": "NFC"}, "pre_tokenizer": byte_level(True)}},
    {"name": "mistral-7b", "bos": "<s>", "steps": CHARS | {"normalizer": PREPEND}},
    {"name": "mistral-7b-v0.3", "bos": "<s>", "steps": CHARS | {"normalizer": None, "pre_tokenizer": METASPACE},
     "added": ["[INST]", "[/INST]"]},
    {"name": "phi3", "bos": "<s>", "steps": CHARS | {"normalizer": PREPEND},
     "added": ["</s> >", "<|user|> >", "<|end|> >"], "architecture": "phi3"},
]

# ---- vocabularies ----

WHOLE = ["hello", " Paris", "123", "12", "\u4f60\u597d", "'ll", "They", "1", " \n", "  "]   # which no merge makes


def spell(text):
    table = dict(zip(range(256), bytes_to_codes()))
    return "".join(table[b] for b in text.encode())


def bytes_to_codes():
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(b) if b in plain else chr(next(others)) for b in range(256)]


def pieces_of(text, n):
    r = random.Random(5)
    at = 0
    while at < len(text):
        size = r.randint(1, n)
        yield text[at:at + size]
        at += size


def train_bytes(text, size):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    t.train_from_iterator([*pieces_of(text, 12)] * 2, trainers.BpeTrainer(
        vocab_size=size, min_frequency=2, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False))
    model = json.loads(t.to_str())["model"]
    for word in map(spell, WHOLE):
        model["vocab"].setdefault(word, len(model["vocab"]))
    return model


def train_characters(text, size):
    t = Tokenizer(models.BPE())
    t.train_from_iterator([x.replace(" ", "\u2581") for x in pieces_of(text, 12)] * 2, trainers.BpeTrainer(
        vocab_size=size, min_frequency=2, show_progress=False,
        special_tokens=["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256))]))
    model = json.loads(t.to_str())["model"]
    model |= {"unk_token": "<unk>", "byte_fallback": True, "fuse_unk": True}
    return model


def added_token(id, text):
    """"<x> <>!": the token, what it strips, and whether it is an ordinary one."""
    text, _, flags = text.partition(" ")
    return {"id": id, "content": text, "single_word": False, "lstrip": "<" in flags, "rstrip": ">" in flags,
            "normalized": False, "special": "!" not in flags}


def parts_of(family, model):
    """What the family's tokenizer.json has beside the vocabulary."""
    ids = model["vocab"]
    parts = copy.deepcopy(family["steps"])
    told = {x.partition(" ")[0]: x for x in (family.get("bos"), "<|end_of_text|>", *family.get("added", [])) if x}
    known = [x for x in ("<unk>", "<s>", "</s>") if x in ids]
    new = [x for x in told if x not in ids]
    parts["added_tokens"] = [added_token(ids[x], told.get(x, x)) for x in known]
    parts["added_tokens"] += [added_token(len(ids) + i, told[x]) for i, x in enumerate(new)]
    if "bos" in family:
        parts["post_processor"] = begin_with(family["bos"])
        id = next(x["id"] for x in parts["added_tokens"] if x["content"] == family["bos"])
        parts["post_processor"]["special_tokens"][family["bos"]]["ids"] = [id]
    else:
        parts["post_processor"] = None
    return parts


def whole_json(family, model):
    model = model | {"ignore_merges": family.get("whole_words", False)}
    return {"version": "1.0", "truncation": None, "padding": None, **parts_of(family, model), "model": model}


def is_bytes(family):
    return "pre" in family


# ---- texts ----

CONTRACTIONS = ["it's IT'S It'S they'LL we've WE'VE I'm i'M don't DON'T he'd HE'D you'Re",
                "it\u2019s they\u2019ll I\u2019M",
                "'\u017f '\u017f' a'\u017fb I'\u0132 '\u00df", "''s 'sS 's's 'tx 'llama 'vex"]
CASES = ["camelCase HTMLParser iPhone McDonald's NASA's fooBAR Baz", "\u01c5ungla \u01c4 \u01c6",
         "\u02b0a\u02b0 A\u02b0B",
         "\u0391\u03b8\u03ae\u03bd\u03b1 \u039c\u039f\u03a3\u03a7\u0391 \u043c\u043e\u0441\u043a\u0432\u0410",
         "\u0915\u094d\u0937\u093f\u0924\u093f\u091c",
         "\u0645\u064f\u062d\u064e\u0645\u0651\u064e\u062f \u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd",
         "a\u0301A\u0301 \u0301\u0301a 1\u0301", "\u4e2dABC\u6587abc\u5b57Abc"]
PATHS = ["/usr/bin//x /", "a/\n/b", "http://example.com/a?b=c", "...\n\n/\r\n", "//\n\n  x", "-/-\r\n//"]
NUMBERS = ["12 345 6789 0", " 1", "  1  22", "\t1", "a1b22c333",
           "\u0661\u0662\u0663\u0664 \u2167\u2168 \xbd\xbe \u3007\u4e00",
           "1\n2\r\n3", "x  12", "x \n 12", "\u0967\u0968\u0969 \uff11\uff12 \U0001d7d8\U0001d7d9"]
TOKENS = ["a<|end_of_text|>b", "<|end_of_text|> <|end_of_text|>", "<|user|>\nHi  <|end|>\n<|user|>\t\u3000x",
          "  <|im_start|>  user \n<|im_end|>\n\n", "<s> x</s> y", "[INST] hi [/INST] ho", "a <x>  b<x><x> \n<x>",
          "<|end|>\x1fa\u200bb"]


def all_texts():
    return [*PLAIN, *UNICODE, *CONTRACTIONS, *CASES, *PATHS, *NUMBERS, *TOKENS, *random_texts(40)]


# ---- files ----

def save():
    OUT.mkdir(exist_ok=True)
    vocabularies = {"bytes": train_bytes(CORPUS, 560), "characters": train_characters(CORPUS, 620)}
    rows = []
    for f in FAMILIES:
        kind = "bytes" if is_bytes(f) else "characters"
        t = Tokenizer.from_str(json.dumps(whole_json(f, vocabularies[kind])))
        row = {"name": f["name"], "model": kind, "pre": f.get("pre", []), "whole_words": f.get("whole_words", False),
               "architecture": f.get("architecture", "llama"), "parts": parts_of(f, vocabularies[kind]),
               "bos": "bos" in f, "ids": [t.encode(x, add_special_tokens=False).ids for x in all_texts()]}
        rows.append(json.dumps(row, separators=(",", ":")))
    (OUT / "vocabularies.json").write_text(json.dumps(vocabularies, separators=(",", ":")) + "\n")
    (OUT / "texts.json").write_text(json.dumps(all_texts()) + "\n")
    (OUT / "families.json").write_text("[\n" + ",\n".join(rows) + "\n]\n")
    for f in OUT.iterdir():
        f.chmod(0o644)
        print(f.name, f.stat().st_size)


# ---- comparing ----

def write_gguf(path, family, whole, pre):
    import gguf
    w = gguf.GGUFWriter(path, family.get("architecture", "llama"))
    vocab, added = whole["model"]["vocab"], {x["id"]: x for x in whole["added_tokens"]}
    names = {id: text for text, id in vocab.items()} | {id: x["content"] for id, x in added.items()}
    kinds = {id: gguf.TokenType.CONTROL if x["special"] else gguf.TokenType.USER_DEFINED for id, x in added.items()}
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre(pre)
    w.add_token_list([names[i] for i in range(len(names))])
    w.add_token_types([kinds.get(i, gguf.TokenType.NORMAL) for i in range(len(names))])
    w.add_token_merges([x if isinstance(x, str) else " ".join(x) for x in whole["model"]["merges"]])
    if "bos" in family:
        w.add_bos_token_id(next(i for i, x in added.items() if x["content"] == family["bos"]))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.close()


def ids_by_command(model, text, *options):
    got = subprocess.run([TOP / "build" / "peridot", "tokenize", "-m", model, "--special", "--bos", *options],
                         input=text.encode(), stdout=subprocess.PIPE, check=True).stdout.decode()
    return [[int(x) for x in row.replace(",", " ").split()] for row in got.removesuffix("\n").split("\n")]


def one_bos(ids, bos):
    """Peridot puts one before a text, whatever that begins with."""
    while ids[:2] == [bos, bos]:
        ids = ids[1:]
    return ids


def compare(name, t, bos, model, text):
    lines = text.split("\n")
    got = ids_by_command(model, text + "\n", "--lines")
    want = [one_bos(x.ids, bos) for x in t.encode_batch(lines)]
    assert len(got) == len(lines), (len(got), len(lines))
    wrong = [x for x, a, b in zip(lines, got, want) if a != b]
    text = text[:200000]
    whole = ids_by_command(model, text)[0] == one_bos(t.encode(text).ids, bos)
    print(f"{name}: {len(lines)} lines, {sum(map(len, want))} ids, {len(wrong)} differ; at once "
          f"{'the same' if whole else 'DIFFERENT'}", *map(ascii, wrong[:3]), flush=True)


def main():
    if len(sys.argv) == 1:
        return save()
    text = "\n".join(pathlib.Path(path).read_bytes().decode().removesuffix("\n") for path in sys.argv[1:])
    corpus = (text[:1000000] + CORPUS * 9).replace("<", "").replace("[", "")   # of no added token
    models = train_bytes(corpus, 6000), train_characters(corpus, 6000)
    for f in FAMILIES:
        whole = whole_json(f, models[0 if is_bytes(f) else 1])
        t = Tokenizer.from_str(json.dumps(whole))
        bos = t.token_to_id(f.get("bos", ""))
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "tokenizer.json"
            path.write_text(json.dumps(whole))
            compare(f["name"], t, bos, path, text)
            for pre in f.get("pre", []):
                write_gguf(pathlib.Path(folder) / "model.gguf", f, whole, pre)
                compare(f"{f['name']} as {pre}", t, bos, pathlib.Path(folder) / "model.gguf", text)


main()
