"""What transformers computes with published models in GGUF files, as tests/golden/real keeps it: a few kB of each, and
nothing of the models. real.py FOLDER [NAME...] writes what is found in FOLDER; with --check before that it compares.

transformers 5.24.0 with torch 2.15.0 reads the files itself and dequantises them; it computes in float64 from these
numbers, but norms, angles and softmax as its eager path does, in float32. Gemma's embeddings are multiplied by
sqrt(d_model) in bf16, as with the published weights.
"""
import copy
import json
import math
import sys
import tempfile
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests"))
import real_checks  # noqa: E402

MODELS = {"smollm2": ("SmolLM2-135M-Instruct.Q4_1.gguf", True), "gemma3-270m": ("gemma-3-270m-q4_k_m.gguf", False)}
N_GREEDY, CTX = 24, 64
TEXT = """Peridot is one of the few gems that come in a single colour. It is green because of iron, and how much of it
there is decides whether a stone looks yellow, olive or nearly brown. The mineral, olivine, makes up most of the upper
mantle of the Earth. It seldom reaches the surface whole: volcanoes carry it up in lumps of basalt, and a few stones have
fallen from the sky in meteorites. Sailors of old fetched it from a small island in the Red Sea, which they could find
only by night, or so they said, because the stones shone in the dark and hid in the light of the day. The island was
guarded, and whoever came near without leave did not come back. Later the place was forgotten for some centuries, and the
green stones in the treasuries of Europe were thought to be emeralds. Today most of them come from a reservation in
Arizona, where families dig them out of old lava flows with picks and bars, and from high valleys in Pakistan, where men
climb for days to reach the veins. A good stone is clear, without the small dark discs that jewellers call lily pads. It
is not very hard, and it does not like sudden heat or acid, so that a ring of it should be taken off before washing up.
"""
PROMPTS = ["What is the capital of France?", "Write one sentence about the sea.", "Count from one to five."]
RAW = ["The capital of France is", "Once upon a time there was a volcano that", "def fibonacci(n):\n"]
WORDS = ["the cat sat on the mat", "Volcanoes bring green stones to the surface."]


def load(folder, file):
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.float32,
                                                 attn_implementation="eager").double().eval()
    scale = getattr(model.model.embed_tokens, "embed_scale", None)
    if scale is not None:
        scale.copy_(torch.tensor(model.config.hidden_size ** 0.5).bfloat16())
    return model, AutoTokenizer.from_pretrained(folder, gguf_file=file)


def rows_of(logits, positions):
    """Of each row the largest number, and 23 others."""
    rows = []
    for p in positions:
        row = logits[p]
        columns = sorted({int(row.argmax()), *range(17, len(row), len(row) // 23)})
        rows.append([p, {str(c): round(float(row[c]), 5) for c in columns}])
    return rows


@torch.no_grad()
def greedy(model, ids, stops):
    out = []
    while len(out) < N_GREEDY:
        best = model(torch.tensor([ids + out])).logits[0, -1].topk(2)
        if int(best.indices[0]) in stops:
            break
        if float(best.values[0] - best.values[1]) < 2e-3 and out:   # too near to call
            break
        out.append(int(best.indices[0]))
    return out


@torch.no_grad()
def perplexity(model, ids, bos):
    losses = []
    for begin in range(0, len(ids) - CTX + 1, CTX):
        window = ids[begin:begin + CTX]
        window = ([bos] if bos is not None else window[:1]) + window[1:]
        scores = torch.log_softmax(model(torch.tensor([window])).logits[0], -1)
        losses += [-float(scores[j][window[j + 1]]) for j in range(CTX // 2, CTX - 1)]
    return math.exp(sum(losses) / len(losses))


@torch.no_grad()
def embedding(model, ids):
    state = model.model(torch.tensor([ids])).last_hidden_state[0].mean(0)
    state = state / state.norm()
    return {str(c): round(float(state[c]), 7) for c in range(3, len(state), len(state) // 16)}


@torch.no_grad()
def adapted(model, ids, positions, folder):
    model, c = copy.deepcopy(model), model.config
    q_rows = model.model.layers[0].self_attn.q_proj.weight.shape[0]
    tensors = real_checks.adapter(folder, c.num_hidden_layers, q_rows, c.hidden_size)
    for i, layer in enumerate(model.model.layers):
        a, b = (torch.tensor(numbers).reshape(rows, columns).double() for rows, columns, numbers in (
            tensors[f"base_model.model.model.layers.{i}.self_attn.q_proj.lora_{part}.weight"] for part in "AB"))
        layer.self_attn.q_proj.weight += real_checks.ALPHA / real_checks.RANK * b @ a
    return {"n_layers": c.num_hidden_layers, "q_rows": q_rows, "d_model": c.hidden_size, "ids": ids,
            "rows": rows_of(model(torch.tensor([ids])).logits[0], positions)}


def golden(folder, name):
    file, chats = MODELS[name]
    model, tokenizer = load(folder, file)
    bos = tokenizer.bos_token_id if name.startswith("gemma") else None
    begin = [bos] if bos is not None else []

    def encode(text):
        return tokenizer(text, add_special_tokens=False).input_ids

    stops = {tokenizer.eos_token_id, *encode("<|im_end|>")[:1]} if chats else {tokenizer.eos_token_id}
    cases = [(p, tokenizer.apply_chat_template([{"role": "user", "content": p}], tokenize=False,
                                               add_generation_prompt=True), []) for p in PROMPTS] if chats else []
    cases = [(p, encode(text), o) for p, text, o in cases] + [(p, begin + encode(p), ["--raw"]) for p in RAW]
    made = [{"prompt": p, "options": o, "ids": greedy(model, ids, stops)} for p, ids, o in cases]
    for m in made:
        m["least"] = len(m["ids"])
    ids = begin + encode(TEXT)[:48]
    with torch.no_grad():
        rows = rows_of(model(torch.tensor([ids])).logits[0], [1, 16, 31, 47])
    with tempfile.TemporaryDirectory() as work:
        with_adapter = adapted(model, ids, [31, 47], Path(work))
    return {"chats": chats, "tokens": [[t, encode(t)] for t in (*RAW, *WORDS)], "greedy": made,
            "logits": {"ids": ids, "rows": rows},
            "perplexity": {"text": TEXT, "ctx": CTX,
                           "value": round(perplexity(model, begin + encode(TEXT.rstrip("\n")), bos), 5)},
            "embedding": [{"text": t, "columns": embedding(model, begin + encode(t))} for t in WORDS],
            "adapter": with_adapter}


def near(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= 1e-4 * max(1, abs(b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(near(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(near, a, b))
    return a == b


def main(args):
    check = args[:1] == ["--check"]
    folder, names = Path(args[check]), args[check + 1:] or list(MODELS)
    failed = False
    for name in names:
        if not (folder / MODELS[name][0]).is_file():
            print(f"skipped: {MODELS[name][0]} is not in {folder}")
            continue
        path, made = ROOT / "tests/golden/real" / f"{name}.json", golden(folder, name)
        if check:
            good = near(made, json.loads(path.read_text()))
            failed |= not good
            print(f"{'' if good else 'FAILED: '}{name} is what transformers computes")
        else:
            path.write_text(json.dumps(made, separators=(",", ":")) + "\n")
    sys.exit(failed)


if __name__ == "__main__":
    main(sys.argv[1:])
