#!/usr/bin/env python3
"""Makes tests/golden/chat.json: conversations, and the ids that transformers' apply_chat_template gives for them.

    python3 tools/golden/chat.py [FOLDER]     FOLDER has the tokenizers; ../shared/data/tokenizers when not named

The tokenizers are the real ones of Gemma 2, Gemma 3, Llama 2 and Llama 3, and Gemma 3's with Gemma 4's control tokens
in their places, whose other pieces are the same as far as these texts go. The published models' template programs are
not among that data: those below were written from the models' documentation, without the parts for tools and images,
and write what the published programs write for messages of text. Needs transformers 5, sentencepiece and protobuf.
"""
import json
import pathlib
import shutil
import sys
import tempfile

from sentencepiece import SentencePieceProcessor
from tokenizers import Tokenizer
from transformers import GemmaTokenizer, LlamaTokenizer, PreTrainedTokenizerFast

TOP = pathlib.Path(__file__).resolve().parents[2]

GEMMA2 = """{{ bos_token }}
{%- if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}
{%- for m in messages %}
  {%- set role = 'model' if m['role'] == 'assistant' else m['role'] %}
  {{- '<start_of_turn>' + role + '\\n' + m['content'] | trim + '<end_of_turn>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}"""

GEMMA3 = """{{ bos_token }}
{%- if messages[0]['role'] == 'system' %}
  {%- set prefix = messages[0]['content'] + '\\n\\n' %}{% set turns = messages[1:] %}
{%- else %}
  {%- set prefix = '' %}{% set turns = messages %}
{%- endif %}
{%- for m in turns %}
  {%- set role = 'model' if m['role'] == 'assistant' else m['role'] %}
  {{- '<start_of_turn>' + role + '\\n' + (prefix if loop.first else '') + m['content'] | trim + '<end_of_turn>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}"""

# The programs of the larger sizes end in an empty thought where the model is not to think.
GEMMA4 = """{{ bos_token }}
{%- set turns = messages %}
{%- if enable_thinking or messages[0]['role'] == 'system' %}
  {{- '<|turn>system\\n' + ('<|think|>\\n' if enable_thinking else '') }}
  {%- if messages[0]['role'] == 'system' %}{{ messages[0]['content'] | trim }}{% set turns = messages[1:] %}{% endif %}
  {{- '<turn|>\\n' }}
{%- endif %}
{%- for m in turns %}
  {%- set ns = namespace(text='') %}
  {%- for part in m['content'].split('<channel|>') if m['role'] == 'assistant' %}
    {%- set ns.text = ns.text + part.split('<|channel>')[0] %}
  {%- else %}{% set ns.text = m['content'] %}{% endfor %}
  {%- if m['role'] == 'assistant' %}
    {%- if loop.first or turns[loop.index0 - 1]['role'] != 'assistant' %}{{ '<|turn>model\\n' }}{% endif %}
  {%- else %}{{ '<|turn>' + m['role'] + '\\n' }}{% endif %}
  {{- ns.text | trim + '<turn|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|turn>model\\n' }}NO_THOUGHT{% endif %}"""
GEMMA4_SMALL = GEMMA4.replace("NO_THOUGHT", "")
GEMMA4_LARGE = GEMMA4.replace("NO_THOUGHT",
                              "{% if not enable_thinking %}{{ '<|channel>thought\\n<channel|>' }}{% endif %}")
GEMMA4_CONTROL = {98: "<|think|>", 100: "<|channel>", 101: "<channel|>", 105: "<|turn>", 106: "<turn|>"}

LLAMA2 = """
{%- if messages[0]['role'] == 'system' %}
  {%- set prefix = '<<SYS>>\\n' + messages[0]['content'] + '\\n<</SYS>>\\n\\n' %}{% set turns = messages[1:] %}
{%- else %}
  {%- set prefix = '' %}{% set turns = messages %}
{%- endif %}
{%- for m in turns %}
  {%- set content = ((prefix if loop.first else '') + m['content']).strip() %}
  {%- if m['role'] == 'user' %}{{ bos_token + '[INST] ' + content + ' [/INST]' }}
  {%- else %}{{ ' ' + content + ' ' + eos_token }}{% endif %}
{%- endfor %}"""

LLAMA3 = """{{ bos_token }}
{%- for m in messages %}
  {{- '<|start_header_id|>' + m['role'] + '<|end_header_id|>\\n\\n' + m['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"""

LLAMA31 = """{{ bos_token }}
{%- if date_string is not defined %}{% set date_string = '26 Jul 2024' %}{% endif %}
{%- if messages[0]['role'] == 'system' %}
  {%- set system = messages[0]['content'] | trim %}{% set turns = messages[1:] %}
{%- else %}
  {%- set system = '' %}{% set turns = messages %}
{%- endif %}
{{- '<|start_header_id|>system<|end_header_id|>\\n\\n' }}
{{- 'Cutting Knowledge Date: December 2023\\nToday Date: ' + date_string + '\\n\\n' + system + '<|eot_id|>' }}
{%- for m in turns %}
  {{- '<|start_header_id|>' + m['role'] + '<|end_header_id|>\\n\\n' + m['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"""

# Model, row of Peridot's table, program.
TEMPLATES = [("gemma2", "gemma", GEMMA2), ("gemma3", "gemma", GEMMA3), ("gemma4", "gemma4", GEMMA4_SMALL),
             ("gemma4", "gemma4", GEMMA4_LARGE), ("llama2", "llama2", LLAMA2),
             ("llama3", "llama3", LLAMA3), ("llama3", "llama3.1", LLAMA31)]

S, U, A = "system", "user", "assistant"
CONVERSATIONS = [
    [(U, "hi")],
    [(U, "  Why is the sky blue?\n\n")],
    [(U, "")],
    [(U, "\u3000caf\u00e9 \U0001f600  \u4e2d\u6587 12345\t<b>bold</b>\n\n\n  - one\n  - two\u00a0")],
    [(U, "if (x) {\n\treturn  x;\n}\n"), (A, " It returns x. ")],
    [(U, "One"), (A, "Two\n"), (U, "\nThree"), (A, "Four"), (U, "And then?")],
    [(S, "You are terse."), (U, "Hello"), (A, "Yes?"), (U, "Name 3 rivers.")],
    [(S, "  Padded rules.\n\n\nSecond line. \n"), (U, "\n  Indented \u2581 question  ")],
    [(S, ""), (U, "after an empty rule")],
    [(S, "Rules"), (U, "")],
]
FREE_ORDER = [      # where turns need not alternate
    [(S, "Only rules")],
    [(U, "a"), (U, "b"), (S, "c"), (A, "d"), (A, "e")],
    [(S, "one"), (S, " two "), (U, "three")],
]
THOUGHTS = [        # of past turns
    [(U, "One"), (A, "<|channel>thought\nHm.\n<channel|>Two\n")],
    [(U, "a"), (A, " b <|channel>c<channel|>d<channel|> e <|channel>f"), (S, "g")],
]


def load(name, folder):
    if name == "llama3":
        return PreTrainedTokenizerFast(tokenizer_file=str(folder / "llama3.tokenizer.json"),
                                       bos_token="<|begin_of_text|>", eos_token="<|end_of_text|>")
    if name == "gemma4":
        return as_gemma4(load("gemma3", folder).backend_tokenizer)
    path = folder / f"{name}.model"
    with tempfile.TemporaryDirectory() as d:
        shutil.copy(path, pathlib.Path(d) / "tokenizer.model")
        if name != "llama2":
            return GemmaTokenizer.from_pretrained(d)
        backend = LlamaTokenizer.from_pretrained(d).backend_tokenizer
    return PreTrainedTokenizerFast(tokenizer_object=as_published(backend, path), bos_token="<s>", eos_token="</s>")


def as_published(backend, path):
    """Llama 2's published tokenizer.json: merges by score, not by id, and a space before each stretch of text."""
    scores = SentencePieceProcessor(model_file=str(path))
    score = {scores.IdToPiece(i): scores.GetScore(i) for i in range(scores.GetPieceSize())}
    j = json.loads(backend.to_str())
    j["model"]["merges"].sort(key=lambda pair: -score["".join(pair)])
    j["normalizer"] = {"type": "Sequence", "normalizers": [
        {"type": "Prepend", "prepend": "\u2581"}, {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]}
    j["pre_tokenizer"] = None
    return Tokenizer.from_str(json.dumps(j))


def as_gemma4(backend, control=GEMMA4_CONTROL):
    """Gemma 3's tokenizer with Gemma 4's control tokens."""
    j = json.loads(backend.to_str())
    names = {text: i for text, i in j["model"]["vocab"].items() if i not in control}
    j["model"]["vocab"] = names | {text: i for i, text in control.items()}
    j["added_tokens"] = [t for t in j["added_tokens"] if t["id"] not in control]
    j["added_tokens"] += [{"id": i, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
                           "normalized": False, "special": True} for i, text in control.items()]
    j["added_tokens"].sort(key=lambda token: token["id"])
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(json.dumps(j)), bos_token="<bos>",
                                   eos_token="<eos>")


def render(tokenizer, jinja, conversation, **options):
    messages = [{"role": role, "content": content} for role, content in conversation]
    return tokenizer.apply_chat_template(messages, chat_template=jinja, add_generation_prompt=True, tokenize=True,
                                         return_dict=False, **options)


def cases_of(name):
    cases = [c for c in CONVERSATIONS if name != "gemma2" or c[0][0] != S]
    cases += FREE_ORDER if name in ("llama3", "gemma4") else []
    return cases + (THOUGHTS if name == "gemma4" else [])


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else TOP.parent / "shared" / "data" / "tokenizers"
    tokenizers = {name: load(name, folder) for name, _, _ in TEMPLATES}
    rows = []
    for name, row, jinja in TEMPLATES:
        made = [{"messages": c, "ids": render(tokenizers[name], jinja, c)} for c in cases_of(name)]
        if name == "gemma4":
            made += [{"messages": c, "think": True, "ids": render(tokenizers[name], jinja, c, enable_thinking=True)}
                     for c in cases_of(name)]
        head = json.dumps({"model": name, "template": row, "jinja": jinja, "conversations": []})
        rows.append(head.removesuffix("]}") + "\n" + ",\n".join(map(json.dumps, made)) + "\n]}")
    (TOP / "tests" / "golden" / "chat.json").write_text("[\n" + ",\n".join(rows) + "\n]\n")


if __name__ == "__main__":
    main()
