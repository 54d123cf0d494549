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
QWEN35 = ENGLISH + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|" + SPACES
SEED_CODER = ENGLISH + "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\r\n]+|" + SPACES
CASED_LETTERS = (
    "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373"
    "\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f"
    "\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77"
    "\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-"
    "\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec"
    "\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-"
    "\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3"
    "\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17"
    "\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-"
    "\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943")
EAST_ASIAN = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
DEEPSEEK_LLM = ["[\r\n]", r"\s?[" + CASED_LETTERS + "]+",
                "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+", r"\s+$", EAST_ASIAN]
DEEPSEEK_CODER = ["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", EAST_ASIAN]


def sequence(kind, *steps):
    return {"type": "Sequence", kind: list(steps)}


def byte_level(regex):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": regex}


def split_step(pattern, removed=False):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Removed" if removed else "Isolated",
            "invert": removed}


def split(pattern, removed=False):
    return sequence("pretokenizers", split_step(pattern, removed), byte_level(False))


def split_by_all(patterns):
    return sequence("pretokenizers", *map(split_step, patterns), EACH_DIGIT, byte_level(False))


def begin_with(token):
    text = {"Sequence": {"id": "A", "type_id": 0}}
    special = {"SpecialToken": {"id": token, "type_id": 0}}
    return {"type": "TemplateProcessing", "single": [special, text], "pair": [special, text],
            "special_tokens": {token: {"id": token, "ids": [0], "tokens": [token]}}}


EACH_DIGIT = {"type": "Digits", "individual_digits": True}
DIGITS = sequence("pretokenizers", EACH_DIGIT, byte_level(True))
REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
PREPEND = sequence("normalizers", {"type": "Prepend", "prepend": "\u2581"}, REPLACE)
METASPACE = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": False}
FALLBACK = sequence("decoders", {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
                    {"type": "ByteFallback"}, {"type": "Fuse"},
                    {"type": "Strip", "content": " ", "start": 1, "stop": 0})
BYTES = {"normalizer": None, "post_processor": None, "decoder": byte_level(True)}
CHARS = {"pre_tokenizer": None, "decoder": FALLBACK}

# `pre`: of those with merges of bytes, GGUF's names for the steps (Phi 4's flags have no place there). `added`: beside
# what all have, "<" and ">" for flags that strip there, "!" for what is not special. `vocabulary`: another than the two
# that most share.
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
    {"name": "granite3", "pre": ["refact", "starcoder", "smollm", "minerva-7b"],
     "steps": BYTES | {"pre_tokenizer": DIGITS}},
    {"name": "starcoder", "pre": ["starcoder"], "steps": BYTES | {"pre_tokenizer": DIGITS},
     "vocabulary": "fewer bytes"},
    {"name": "deepseek-llm", "pre": ["deepseek-llm"], "steps": BYTES | {"pre_tokenizer": split_by_all(DEEPSEEK_LLM)}},
    {"name": "deepseek-coder", "pre": ["deepseek-coder"],
     "steps": BYTES | {"pre_tokenizer": split_by_all(DEEPSEEK_CODER)}},
    {"name": "qwen3.5", "pre": ["qwen35"],
     "steps": BYTES | {"normalizer": {"type": "NFC"}, "pre_tokenizer": split(QWEN35)}},
    {"name": "seed-coder", "pre": ["seed-coder"], "steps": BYTES | {"pre_tokenizer": split(SEED_CODER)}},
    {"name": "granite-docling", "pre": ["granite-docling", "gpt-2", "mellum", "trillion", "a.x-4.0"],
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


def train_bytes(text, size, alphabet=pre_tokenizers.ByteLevel.alphabet()):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    t.train_from_iterator([*pieces_of(text, 12)] * 2, trainers.BpeTrainer(
        vocab_size=size, min_frequency=2, initial_alphabet=sorted(alphabet), show_progress=False))
    model = json.loads(t.to_str())["model"]
    for word in map(spell, WHOLE):
        model["vocab"].setdefault(word, len(model["vocab"]))
    return model


def alphabet_of(text):
    """As where the alphabet is what the training text has, and printable ASCII."""
    return set(map(chr, range(33, 127))) | set(spell(text))


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


def vocabulary_of(family):
    return family.get("vocabulary", "bytes" if "pre" in family else "characters")


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


# For steps that follow one another, and for bytes that a vocabulary lacks.
PARTS = ["\u6570\u5b66, \u8bed\u8a00\u3002\u201c\u5f15\u53f7\u201d!\u3002\uff01x \u2192 \u2192  \n  y  ",
         "\u1f00\u03c1\u03c7\u1f74 a\u1f00 \u0561\u0562 \u0531\u0562 \u3000abc\u3000 x\u3000\u3000\u3002 \u10d0\u1c90",
         "a  \nb\t\r\n c   \u4e2d  \u6587 1  2", "_a-b  --c  \uff0c\uac00\ub098 12\u4e2d3", "x\r\ny;\n\n {\n",
         "t\x00he\x01llo \x02 \x7f", "\U000423f0a\U0010fffdb \u07ff\xff"]


def all_texts():
    return [*PLAIN, *UNICODE, *CONTRACTIONS, *CASES, *PATHS, *NUMBERS, *TOKENS, *PARTS, *random_texts(40)]


# ---- files ----

def save():
    OUT.mkdir(exist_ok=True)
    vocabularies = {"bytes": train_bytes(CORPUS, 560), "characters": train_characters(CORPUS, 620),
                    "fewer bytes": train_bytes(CORPUS, 360, alphabet_of(CORPUS))}
    rows = []
    for f in FAMILIES:
        kind = vocabulary_of(f)
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
    models = {"bytes": train_bytes(corpus, 6000), "characters": train_characters(corpus, 6000),
              "fewer bytes": train_bytes(corpus, 6000, alphabet_of(CORPUS))}
    for f in FAMILIES:
        whole = whole_json(f, models[vocabulary_of(f)])
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
