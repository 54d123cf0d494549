#!/usr/bin/env python3
"""Makes tests/golden/qwen: a small tokenizer with the steps of Qwen's, and what transformers makes of texts and
conversations with it.

    python3 tools/golden/qwen.py            writes the folder
    python3 tools/golden/qwen.py FILE...    shows that the command `peridot` (of build/) splits the lines of these files
                                            as transformers does

The steps are those of transformers' Qwen2Tokenizer, which are the published files' own; the merges are of the texts
here, and the added tokens are Qwen3's. The template programs, qwen2.5.jinja and qwen3.jinja, write what those of the
published Qwen 2.5 and Qwen3 write; qwen3.5.jinja is the published one. images.json has conversations with images by it,
and by a program that writes ChatML alone. Of their <|image_pad|> N_ROWS are made, as Qwen3VLProcessor does it; row i of
image k is -100 (k + 1) - i. Needs transformers 5 and tokenizers.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, trainers
from transformers import Qwen2Tokenizer

from texts import CORPUS, PLAIN, TOOLS, UNICODE, random_texts

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
OUT = TOP / "tests" / "golden" / "qwen"

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>",
           "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>",
           "<|image_pad|>", "<|video_pad|>"]
ADDED = ["<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>",
         "<|repo_name|>", "<|file_sep|>", "<tool_response>", "</tool_response>", "<think>", "</think>"]

def make_tokenizer():
    trained = Tokenizer(models.BPE())
    own = Qwen2Tokenizer().backend_tokenizer
    trained.normalizer, trained.pre_tokenizer = own.normalizer, own.pre_tokenizer
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trained.train_from_iterator([CORPUS] * 2, trainers.BpeTrainer(
        vocab_size=600, min_frequency=2, initial_alphabet=alphabet, show_progress=False))
    model = json.loads(trained.to_str())["model"]
    t = Qwen2Tokenizer(vocab=model["vocab"], merges=[tuple(m) for m in model["merges"]],
                       extra_special_tokens=SPECIAL[1:], eos_token="<|im_end|>", pad_token="<|endoftext|>")
    t.add_tokens([AddedToken(text, normalized=False, special=False) for text in ADDED])
    return t


# ---- conversations ----

S, U, A, T = "system", "user", "assistant", "tool"
def call(name, arguments):
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


CONVERSATIONS = [
    [{"role": U, "content": "hi"}],
    [{"role": U, "content": "  Why is the sky blue?\n\n"}],
    [{"role": S, "content": "You are terse.\n"}, {"role": U, "content": "cafe\u0301 \u4f60\u597d \U0001f600 12345"}],
    [{"role": U, "content": "One"}, {"role": A, "content": "Two\n"}, {"role": U, "content": "\nThree"},
     {"role": A, "content": "Four"}, {"role": U, "content": "And then?"}],
    [{"role": S, "content": "a"}, {"role": U, "content": "b"}, {"role": S, "content": "c"}, {"role": U, "content": ""}],
    [{"role": U, "content": "q"}, {"role": A, "content": "An answer.", "reasoning_content": "Hm."}],
    [{"role": U, "content": "Weather?"}, {"role": A, "content": "", "tool_calls": [
        call("get_weather", {"city": "Paris", "days": 3})]}, {"role": T, "content": "{\"sky\": \"blue\"}"}],
    [{"role": S, "content": "Rules."}, {"role": U, "content": "Both?"},
     {"role": A, "content": "Let me see.", "reasoning_content": "Two calls.\n", "tool_calls": [
         call("get_weather", {"city": "Z\u00fcrich"}), call("now", {})]},
     {"role": T, "content": "rain"}, {"role": T, "content": "12:30"}, {"role": A, "content": "Rain at 12:30."},
     {"role": U, "content": "Thanks"}],
]
THOUGHTS = [    # which Qwen 2.5 would take as the text of a message; to Peridot that has no control tokens
    [{"role": U, "content": "q"}, {"role": A, "content": "<think>\nHm, well.\n</think>\n\nAn answer."},
     {"role": U, "content": "more"}],
]


def part(x):
    return {"type": "text", "text": x} if isinstance(x, str) else x


def message(role, *parts, **others):
    return {"role": role, "content": list(map(part, parts))} | others


IMAGE = {"type": "image"}
IMAGES = [
    [message(U, IMAGE, "What is this?")],
    [{"role": S, "content": "Be brief."}, message(U, "Look:\n", IMAGE, "\nand", IMAGE, " Which one?")],
    [message(U, IMAGE, IMAGE)],
    [{"role": U, "content": "Hello"}, {"role": A, "content": "Yes?"}, message(U, "\U0001f600\n", IMAGE),
     {"role": A, "content": "A cat."}, {"role": U, "content": "Sure?"}],
    [message(U, "Draw ", IMAGE), message(A, "Here: ", IMAGE, " it is"), message(U, "Like", IMAGE)],
]
IMAGES_TRIMMED = [    # by Qwen 3.5's program
    [message(U, " \n", IMAGE, " What? \n")],
    [{"role": U, "content": "Look"}, {"role": A, "content": "", "tool_calls": [call("shot", {})]},
     message(T, "a screen ", IMAGE)],
]
N_ROWS = 3
CHATML = """{%- for m in messages %}
    {{- '<|im_start|>' + m.role + '\\n' }}
    {%- for part in ([{'text': m.content}] if m.content is string else m.content) %}
        {{- '<|vision_start|><|image_pad|><|vision_end|>' if part.type == 'image' else part.text }}
    {%- endfor %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{{- '<|im_start|>assistant\\n' }}"""


def ids_of(t, jinja, messages, **options):
    return t.apply_chat_template(messages, chat_template=jinja, add_generation_prompt=True, tokenize=True,
                                 return_dict=False, **options)


def chats(t, name):
    rows, jinja = [], (HERE / f"{name}.jinja").read_text()
    for messages in CONVERSATIONS + (THOUGHTS if name == "qwen3" else []):
        for tools in (None, TOOLS):
            for think in (False, True) if name == "qwen3" else (False,):
                options = {"enable_thinking": think} if name == "qwen3" else {}
                rows.append({"messages": messages, "tools": tools is not None, "think": think,
                             "ids": ids_of(t, jinja, messages, tools=tools, **options)})
    return {"name": name, "jinja": jinja, "conversations": rows}


def encode_images(t, jinja, messages, think):
    whole = t.apply_chat_template(messages, chat_template=jinja, add_generation_prompt=True, tokenize=False,
                                  enable_thinking=think)
    ids = t.encode(whole.replace("<|image_pad|>", "<|image_pad|>" * N_ROWS), add_special_tokens=False)
    rows = [i for i, token in enumerate(ids) if token == t.convert_tokens_to_ids("<|image_pad|>")]
    n_images = sum(x == IMAGE for m in messages for x in m["content"])
    assert len(rows) == N_ROWS * n_images, whole
    for n, i in enumerate(rows):
        ids[i] = -100 * (n // N_ROWS + 1) - n % N_ROWS
    return {"messages": messages, "n_images": n_images, "think": think, "ids": ids}


def images(t):
    published = (HERE / "qwen3.5.jinja").read_text()
    return [{"jinja": published, "conversations": [encode_images(t, published, m, think)
                                                   for m in IMAGES + IMAGES_TRIMMED for think in (False, True)]},
            {"jinja": CHATML, "conversations": [encode_images(t, CHATML, m, False) for m in IMAGES]}]


# ---- files ----

def save_rows(path, rows):
    path.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


def save(t):
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    t.save_pretrained(OUT)
    texts = [*PLAIN, *UNICODE, *random_texts(150)]
    save_rows(OUT / "texts.json", [[x, t.encode(x, add_special_tokens=False)] for x in texts])
    save_rows(OUT / "chats.json", [TOOLS, chats(t, "qwen2.5"), chats(t, "qwen3")])
    save_rows(OUT / "images.json", images(t))
    for f in OUT.iterdir():
        f.chmod(0o644)
        print(f.name, f.stat().st_size)


def compare(t, path):
    lines = [x for x in pathlib.Path(path).read_text().split("\n") if x]
    with tempfile.TemporaryDirectory() as folder:
        t.save_pretrained(folder)
        got = subprocess.run([TOP / "build" / "peridot", "tokenize", "-m", folder, "--special", "--lines"],
                             input="\n".join(lines) + "\n", capture_output=True, text=True, check=True).stdout
    rows = [[int(x) for x in row.replace(",", " ").split()] for row in got.rstrip("\n").split("\n")]
    assert len(rows) == len(lines), (len(rows), len(lines))
    wrong = [x for x, ids in zip(lines, rows) if t.encode(x, add_special_tokens=False) != ids]
    print(f"{path}: {len(lines)} lines, {sum(map(len, rows))} ids, {len(wrong)} differ", *map(ascii, wrong[:3]))


def main():
    t = make_tokenizer()
    for path in sys.argv[1:]:
        compare(t, path)
    if len(sys.argv) == 1:
        save(t)


main()
