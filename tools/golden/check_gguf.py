"""Is a GGUF file one that llama.cpp would load, as far as the gguf package knows what that takes?

    python tools/golden/check_gguf.py FILE...

Checks the names and shapes of all tensors against the architecture's list (gguf.MODEL_TENSORS), that none is missing,
and that the keys are there, of the right type, which llama.cpp's loader asks for.
"""
import re
import sys

import gguf

U32, F32, BOOL, STRING = (gguf.GGUFValueType[n] for n in ("UINT32", "FLOAT32", "BOOL", "STRING"))
K = gguf.Keys
# What llama_model::load_hparams and llama_vocab::impl::load require of these architectures.
COMMON = {
    K.General.ARCHITECTURE: STRING, K.General.FILE_TYPE: U32, K.General.QUANTIZATION_VERSION: U32,
    K.LLM.CONTEXT_LENGTH: U32, K.LLM.EMBEDDING_LENGTH: U32, K.LLM.BLOCK_COUNT: U32,
    K.LLM.FEED_FORWARD_LENGTH: U32, K.Attention.HEAD_COUNT: U32,
    K.Attention.HEAD_COUNT_KV: U32, K.Attention.KEY_LENGTH: U32, K.Attention.VALUE_LENGTH: U32,
    K.Attention.LAYERNORM_RMS_EPS: F32,
}
FAMILY = {
    "gemma": {}, "llama": {K.Rope.DIMENSION_COUNT: U32, K.Rope.FREQ_BASE: F32, K.LLM.VOCAB_SIZE: U32},
    "gemma2": {K.Attention.SLIDING_WINDOW: U32, K.LLM.ATTN_LOGIT_SOFTCAPPING: F32, K.LLM.FINAL_LOGIT_SOFTCAPPING: F32},
    "gemma3": {K.Attention.SLIDING_WINDOW: U32, K.Rope.FREQ_BASE: F32},
    "qwen2": {K.Rope.FREQ_BASE: F32}, "qwen3": {K.Rope.FREQ_BASE: F32},
}
TOKENIZER = {K.Tokenizer.MODEL: STRING, K.Tokenizer.PRE: STRING, K.Tokenizer.EOS_ID: U32, K.Tokenizer.ADD_BOS: BOOL}
OPTIONAL = {"OUTPUT", "ROPE_FREQS", "ATTN_ROT_EMBD", "FFN_GATE_INP", "FFN_GATE_EXP", "FFN_DOWN_EXP", "FFN_UP_EXP"}


def text(field):
    return str(bytes(field.parts[field.data[0]]), "utf-8")


def number(field):
    return field.parts[field.data[0]][0]


def check_keys(fields, keys, arch):
    for key, kind in keys.items():
        name = key.format(arch=arch)
        assert name in fields, f"no key {name}"
        assert fields[name].types[0] == kind, f"{name} is {fields[name].types[0].name}, not {kind.name}"


def check_tensors(reader, arch, n_layers):
    kind = next(a for a, n in gguf.MODEL_ARCH_NAMES.items() if n == arch)
    there = {t.name for t in reader.tensors}
    for tensor in gguf.MODEL_TENSORS[kind]:
        pattern = gguf.TENSOR_NAMES[tensor]
        names = {pattern.format(bid=i) + ".weight" for i in range(n_layers if "{bid}" in pattern else 1)}
        if tensor.name not in OPTIONAL:
            assert names <= there, f"no tensor {sorted(names - there)[0]}"
        there -= names | {n.replace(".weight", ".bias") for n in names if arch == "qwen2" and re.search("attn_[qkv]", n)}
    assert not there, f"tensors unknown to {arch}: {sorted(there)[:3]}"


def check_tokenizer(reader, fields):
    rows = int(next(t for t in reader.tensors if t.name == "token_embd.weight").shape[1])
    bos = {K.Tokenizer.BOS_ID: U32} if number(fields[K.Tokenizer.ADD_BOS]) else {}
    check_keys(fields, TOKENIZER | bos, "")
    lists = ["merges"] if text(fields[K.Tokenizer.MODEL]) == "gpt2" else ["scores"]
    for name in ("tokens", "token_type"):
        n = len(fields["tokenizer.ggml." + name].data)
        assert n == rows, f"{n} {name} for {rows} rows"
    for name in lists:
        assert len(fields["tokenizer.ggml." + name].data) > 0, f"no {name}"
    tokens = fields[K.Tokenizer.LIST]
    assert len({bytes(tokens.parts[i]) for i in tokens.data}) == rows, "a token is there twice"


def check(path):
    reader = gguf.GGUFReader(path)
    fields = reader.fields
    arch = text(fields[K.General.ARCHITECTURE])
    check_keys(fields, COMMON | FAMILY[arch], arch)
    check_tensors(reader, arch, int(number(fields[f"{arch}.block_count"])))
    if K.Tokenizer.MODEL in fields:
        check_tokenizer(reader, fields)
    print(f"{path}: {arch}, {len(reader.tensors)} tensors, {len(fields)} keys"
          f"{'' if K.Tokenizer.MODEL in fields else ', no tokenizer'}: as it should be")


for name in sys.argv[1:]:
    check(name)
