#!/usr/bin/env python3
"""Makes tests/golden/chat-images.json: conversations with images, and the ids that transformers gives for them.

    python3 tools/golden/chat_images.py [FOLDER]     FOLDER has the tokenizers, as for chat.py

With the tokenizers of Gemma 3 and Gemma 4 as chat.py has them, and programs that write parts as the published ones do:
Gemma 3's in what the user and the model say, and text alone of what the system says; Gemma 4's in all messages, those
of tools after their text. Around their mark of an image stands the text that Gemma3Processor and Gemma4Processor of
transformers 5.23 put there, and all is tokenized as one text. Each image has N_ROWS rows; row i of image k is
-100 (k + 1) - i. "ids" is null where the program passes over an image. Gemma 3's program does not know of tools:
"written" is a conversation as Peridot writes it for such programs, from which its ids come. Needs what chat.py does.
"""
import json
import pathlib
import sys

import chat

TOP = pathlib.Path(__file__).resolve().parents[2]
N_ROWS = 3
ROW = "<unused80>"      # stands for a row
# Those of images are elsewhere in the published vocabulary, where Gemma 3's has merged pieces.
CONTROL = chat.GEMMA4_CONTROL | {46: "<|tool>", 47: "<tool|>", 48: "<|tool_call>", 49: "<tool_call|>",
                                 50: "<|tool_response>", 51: "<tool_response|>", 52: '<|"|>',
                                 90: "<|image>", 91: "<|image|>", 92: "<image|>"}

GEMMA3 = """{{ bos_token }}
{%- set prefix = '' %}{% set turns = messages %}
{%- if messages[0]['role'] == 'system' %}
  {%- set prefix = messages[0]['content'] if messages[0]['content'] is string else messages[0]['content'][0]['text'] %}
  {%- set prefix = prefix + '\\n\\n' %}{% set turns = messages[1:] %}
{%- endif %}
{%- for m in turns %}
  {%- if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}
  {{- '<start_of_turn>' + ('model' if m['role'] == 'assistant' else m['role']) + '\\n' + (prefix if loop.first else '') }}
  {%- if m['content'] is string %}{{ m['content'] | trim }}{% else %}
    {%- for part in m['content'] %}
      {%- if part['type'] == 'image' %}{{ '<start_of_image>' }}{% else %}{{ part['text'] | trim }}{% endif %}
    {%- endfor %}
  {%- endif %}
  {{- '<end_of_turn>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}"""

GEMMA4 = """{{ bos_token }}
{%- for m in messages if m['role'] != 'tool' %}
  {{- '<|turn>' + ('model' if m['role'] == 'assistant' else m['role']) + '\\n' }}
  {%- for c in m['tool_calls'] %}{{ '<|tool_call>call:' + c['function']['name'] + '{}<tool_call|>' }}{% endfor %}
  {%- for r in messages if m['tool_calls'] and r['role'] == 'tool' %}
    {%- set ns = namespace(text='') %}
    {%- for part in r['content'] if r['content'] is not string %}
      {%- if part['type'] == 'text' %}{% set ns.text = ns.text + part['text'] %}{% endif %}
    {%- else %}{% set ns.text = r['content'] %}{% endfor %}
    {{- '<|tool_response>response:' + r['name'] + '{value:<|"|>' + ns.text + '<|"|>}<tool_response|>' }}
    {%- for part in r['content'] if r['content'] is not string and part['type'] == 'image' %}{{ '<|image|>' }}{% endfor %}
  {%- endfor %}
  {%- if m['content'] is string %}{{ m['content'] | trim }}{% else %}
    {%- for part in m['content'] %}
      {%- if part['type'] == 'image' %}{{ '<|image|>' }}{% else %}{{ part['text'] | trim }}{% endif %}
    {%- endfor %}
  {%- endif %}
  {%- if not m['tool_calls'] %}{{ '<turn|>\\n' }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt and not messages[-1]['role'] == 'tool' %}{{ '<|turn>model\\n' }}{% endif %}"""

S, U, A, T, IMAGE = "system", "user", "assistant", "tool", {"type": "image"}


def text(s):
    return {"type": "text", "text": s}


def call(*names):
    return {"role": A, "content": "", "tool_calls": [
        {"id": f"{name}-{i}", "type": "function", "function": {"name": name, "arguments": {}}}
        for i, name in enumerate(names)]}


def result(name, content, i=0):
    return {"role": T, "tool_call_id": f"{name}-{i}", "name": name, "content": content}


COMMON = [
    [(U, [IMAGE, text("What is this?")])],
    [(U, [text(" Look: "), IMAGE, text("\nand"), IMAGE, text("Which one? ")])],
    [(U, [text("one\n\n"), IMAGE, IMAGE])],
    [(U, [IMAGE])],
    [(U, "Hello"), (A, "Yes?"), (U, [IMAGE, text("\n\U0001f600  ")]), (A, "A cat."), (U, "Sure?")],
    [(U, "Draw"), (A, [text("Here:"), IMAGE, text(" and ")]), (U, [text("Again, like"), IMAGE])],
]
SYSTEM = [(S, [text("Rules"), IMAGE]), (U, [text("Hello"), IMAGE])]
TOOLS = [
    [(U, "Look"), call("shot"), result("shot", [text("a screen"), IMAGE])],
    [(U, [text("Like"), IMAGE]), call("shot", "read"), result("shot", [IMAGE, text("a "), IMAGE, text("b")]),
     result("read", "text", 1)],
]
# A result of Gemma 3's format; what follows it is in the same turn.
WRITTEN = [
    ([(U, "Look"), (A, "Yes"), result("shot", [text("a screen"), IMAGE])],
     [(U, "Look"), (A, "Yes"), (U, [text("```tool_output\na screen\n```"), IMAGE])]),
    ([(U, "Look"), (A, "Yes"), result("shot", [IMAGE, text("a"), IMAGE]), result("read", "b", 1),
      (U, [text("So "), IMAGE, text("?")])],
     [(U, "Look"), (A, "Yes"), (U, [text("```tool_output\na\n```"), IMAGE, IMAGE,
                                    text("```tool_output\nb\n```\n\nSo "), IMAGE, text("?")])]),
]


def messages_of(conversation):
    return [m if isinstance(m, dict) else {"role": m[0], "content": m[1]} for m in conversation]


def count_images(messages):
    return sum(part == IMAGE for m in messages if isinstance(m["content"], list) for part in m["content"])


def encode(model, conversation, written=None):
    messages, n_images = messages_of(written or conversation), 0
    rendered = model.tokenizer.apply_chat_template(messages, chat_template=model.jinja, add_generation_prompt=True,
                                                   tokenize=False)
    whole = rendered.replace(model.mark, f"{model.around}{model.begin}{ROW * N_ROWS}{model.end}{model.around}")
    ids = model.tokenizer(whole, add_special_tokens=False)["input_ids"]
    row, n = model.tokenizer.convert_tokens_to_ids(ROW), 0
    for i, token in enumerate(ids):
        if token == row:
            ids[i] = -100 * (n // N_ROWS + 1) - n % N_ROWS
            n += 1
    n_images = count_images(messages)
    return {"messages": messages_of(conversation), "n_images": n_images, "written": written is not None,
            "ids": ids if n == n_images * N_ROWS else None}


class Model:
    def __init__(self, name, jinja, tokenizer, mark, begin, end, around):
        self.name, self.jinja, self.tokenizer = name, jinja, tokenizer
        self.mark, self.begin, self.end, self.around = mark, begin, end, around

    def rows(self, conversations, written=()):
        rows = [encode(self, c) for c in conversations] + [encode(self, c, w) for c, w in written]
        head = json.dumps({"model": self.name, "jinja": self.jinja, "conversations": []}).removesuffix("]}")
        return head + "\n" + ",\n".join(map(json.dumps, rows)) + "\n]}"


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else TOP.parent / "shared" / "data" / "tokenizers"
    gemma3 = chat.load("gemma3", folder)
    gemma4 = chat.as_gemma4(gemma3.backend_tokenizer, CONTROL)
    rows = [Model("gemma3", GEMMA3, gemma3, "<start_of_image>", "<start_of_image>", "<end_of_image>", "\n\n")
            .rows(COMMON + [SYSTEM], WRITTEN),
            Model("gemma4", GEMMA4, gemma4, "<|image|>", "<|image>", "<image|>", "")
            .rows(COMMON + [SYSTEM] + TOOLS)]
    (TOP / "tests" / "golden" / "chat-images.json").write_text("[\n" + ",\n".join(rows) + "\n]\n")


main()
