#!/usr/bin/env python3
"""Makes tests/golden/chat-images.json: conversations with images, and the ids that transformers gives for them.

    python3 tools/golden/chat_images.py [FOLDER]     FOLDER has the tokenizers, as for chat.py

With Gemma 3's tokenizer, and a program that writes parts as the published one does. Around its mark of an image stands
the text that Gemma3Processor of transformers 5.23 puts there, and all is tokenized as one text. Each image has N_ROWS
rows; row i of image k is -100 (k + 1) - i. Needs what chat.py does.
"""
import json
import pathlib
import shutil
import sys
import tempfile

from transformers import GemmaTokenizer

TOP = pathlib.Path(__file__).resolve().parents[2]
N_ROWS = 3
MARK, END, ROW = "<start_of_image>", "<end_of_image>", "<unused99>"   # ROW stands for a row

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


CONVERSATIONS = [
    [(U, [IMAGE, text("What is this?")])],
    [(U, [text(" Look: "), IMAGE, text("\nand"), IMAGE, text("Which one? ")])],
    [(U, [text("one\n\n"), IMAGE, IMAGE])],
    [(U, [IMAGE])],
    [(U, "Hello"), (A, "Yes?"), (U, [IMAGE, text("\n\U0001f600  ")]), (A, "A cat."), (U, "Sure?")],
]


def encode(tokenizer, conversation):
    messages = [{"role": role, "content": content} for role, content in conversation]
    rendered = tokenizer.apply_chat_template(messages, chat_template=JINJA, add_generation_prompt=True, tokenize=False)
    whole = rendered.replace(MARK, f"\n\n{MARK}{ROW * N_ROWS}{END}\n\n")
    ids, row, n = tokenizer(whole, add_special_tokens=False)["input_ids"], tokenizer.convert_tokens_to_ids(ROW), 0
    for i, token in enumerate(ids):
        if token == row:
            ids[i] = -100 * (n // N_ROWS + 1) - n % N_ROWS
            n += 1
    return {"messages": messages, "n_images": n // N_ROWS, "ids": ids}


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else TOP.parent / "shared" / "data" / "tokenizers"
    with tempfile.TemporaryDirectory() as d:
        shutil.copy(folder / "gemma3.model", pathlib.Path(d) / "tokenizer.model")
        tokenizer = GemmaTokenizer.from_pretrained(d)
    rows = [json.dumps(encode(tokenizer, c)) for c in CONVERSATIONS]
    head = json.dumps({"model": "gemma3", "jinja": JINJA, "conversations": []}).removesuffix("]}")
    (TOP / "tests" / "golden" / "chat-images.json").write_text(head + "\n" + ",\n".join(rows) + "\n]}\n")


main()
