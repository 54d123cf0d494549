#!/usr/bin/env python3
"""Makes tests/golden/chat-crops.json: conversations with images that pan and scan crops, and the ids that transformers
gives for them. chat_images.py has those without.

    python3 tools/golden/chat_crops.py [FOLDER]     FOLDER has the tokenizers, as for chat.py

With Gemma 3's tokenizer, and a program that writes parts as the published one does; the rest is Gemma3Processor's of
transformers 5.23, with pan and scan. n_crops: of each image. Each image and each crop has N_ROWS rows; row i of image k
and its crops is -100 (k + 1) - i. Needs what chat.py does.
"""
import json
import pathlib
import shutil
import sys
import tempfile

from PIL import Image
from transformers import Gemma3ImageProcessor, Gemma3Processor, GemmaTokenizer

TOP = pathlib.Path(__file__).resolve().parents[2]
N_ROWS = 3
ROW = "<image_soft_token>"
TOKENS = {"boi_token": "<start_of_image>", "eoi_token": "<end_of_image>", "image_token": ROW}
SQUARE, TWO, FOUR = (300, 300), (600, 280), (260, 1200)   # sizes, by what is cropped of them

JINJA = """{{ bos_token }}
{%- for m in messages %}
  {{- '<start_of_turn>' + ('model' if m['role'] == 'assistant' else m['role']) + '\\n' }}
  {%- if m['content'] is string %}{{ m['content'] | trim }}{% else %}
    {%- for part in m['content'] %}
      {%- if part['type'] == 'image' %}{{ '<start_of_image>' }}{% else %}{{ part['text'] | trim }}{% endif %}
    {%- endfor %}
  {%- endif %}
  {{- '<end_of_turn>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}"""

U, A, IMAGE = "user", "assistant", {"type": "image"}


def text(s):
    return {"type": "text", "text": s}


# With the sizes of their images.
CONVERSATIONS = [
    ([(U, [IMAGE, text("What is this?")])], [SQUARE]),
    ([(U, [text(" Look: "), IMAGE, text("\nand"), IMAGE, text("Which one? ")])], [SQUARE, SQUARE]),
    ([(U, [text("one\n\n"), IMAGE, IMAGE])], [SQUARE, SQUARE]),
    ([(U, [IMAGE])], [SQUARE]),
    ([(U, "Hello"), (A, "Yes?"), (U, [IMAGE, text("\n\U0001f600  ")]), (A, "A cat."), (U, "Sure?")], [SQUARE]),
    ([(U, [IMAGE, text("What is this?")])], [TWO]),
    ([(U, [IMAGE])], [FOUR]),
    ([(U, [text(" Look: "), IMAGE, text("\nand"), IMAGE, text("Which one? ")]), (A, "This."), (U, [IMAGE, IMAGE])],
     [FOUR, SQUARE, TWO, TWO]),
]


def number(ids, row, n_crops):
    """Rows of images as what they are named here."""
    names = [-100 * (k + 1) - i for k, n in enumerate(n_crops) for i in range((1 + n) * N_ROWS)]
    assert ids.count(row) == len(names)
    return [names.pop(0) if i == row else i for i in ids]


def encode(processor, conversation, sizes):
    messages = [{"role": role, "content": content} for role, content in conversation]
    rendered = processor.tokenizer.apply_chat_template(messages, chat_template=JINJA, add_generation_prompt=True,
                                                       tokenize=False)
    images = [Image.new("RGB", size) for size in sizes]
    options = Gemma3Processor.images_kwargs | {"do_pan_and_scan": True}
    n_crops = processor.image_processor(images, **options)["num_crops"]
    ids = processor(images=[images], text=[rendered], do_pan_and_scan=True, add_special_tokens=False)["input_ids"][0]
    return {"messages": messages, "n_crops": n_crops, "ids": number(ids, processor.tokenizer.image_token_id, n_crops)}


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else TOP.parent / "shared" / "data" / "tokenizers"
    with tempfile.TemporaryDirectory() as d:
        shutil.copy(folder / "gemma3.model", pathlib.Path(d) / "tokenizer.model")
        tokenizer = GemmaTokenizer.from_pretrained(d, extra_special_tokens=TOKENS)
    processor = Gemma3Processor(Gemma3ImageProcessor(), tokenizer, image_seq_length=N_ROWS)
    rows = [json.dumps(encode(processor, *c)) for c in CONVERSATIONS]
    head = json.dumps({"model": "gemma3", "jinja": JINJA, "conversations": []}).removesuffix("]}")
    (TOP / "tests" / "golden" / "chat-crops.json").write_text(head + "\n" + ",\n".join(rows) + "\n]}\n")


main()
