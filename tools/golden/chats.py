#!/usr/bin/env python3
"""Makes tests/golden/chats.json: what transformers makes of conversations by families' template programs.

    python3 tools/golden/chats.py

The programs, chats/*.jinja, write what those of the published models write; where those ask for today's date, they take
`date_string` first. Needs transformers 5 and tokenizers.
"""
import json
import pathlib

from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast
from transformers.utils.chat_template_utils import render_jinja_template

from texts import TOOLS

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE.parents[1] / "tests" / "golden" / "chats.json"

S, U, A, T = "system", "user", "assistant", "tool"

# `calls`: the format of calls, where the program has tools. `added`: tokens beside bos and eos. `spells`: calls as text
# of messages, where the program does not read them; `each` of them, with `between`. `row`: of Peridot's table of
# templates. `untold`: the program writes calls, but no tools. `single`: it takes one call a message. `thoughts`: the
# marks of one, where they are not the usual ones; `blocks`: the program reads blocks of them.
MISTRAL = ["[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_CALLS]", "[TOOL_RESULTS]",
           "[/TOOL_RESULTS]"]
GRANITE = ["<|start_of_role|>", "<|end_of_role|>"]
PHI = ["<|system|>", "<|user|>", "<|assistant|>", "<|end|>"]
CHATML = ["<|im_start|>", "<|im_end|>"]
DEEPSEEK = "<\uff5c%s\uff5c>"
FAMILIES = [
    {"name": "mistral-v1", "bos": "<s>", "eos": "</s>", "added": []},
    {"name": "mistral-v3", "calls": "mistral-v3", "bos": "<s>", "eos": "</s>", "added": MISTRAL},
    {"name": "mistral-v3-tekken", "calls": "mistral-v3", "bos": "<s>", "eos": "</s>", "added": MISTRAL},
    {"name": "mistral-v13", "calls": "mistral", "bos": "<s>", "eos": "</s>",
     "added": [*MISTRAL, "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[ARGS]", "[IMG]"]},
    {"name": "granite3", "calls": "granite", "spells": "<|tool_call|>[%s]", "between": ", ",
     "bos": "<|end_of_text|>", "eos": "<|end_of_text|>", "added": [*GRANITE, "<|tool_call|>"]},
    {"name": "granite4", "calls": "hermes", "bos": "<|end_of_text|>", "eos": "<|end_of_text|>",
     "added": [*GRANITE, "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]},
    {"name": "phi3", "row": "phi3", "bos": "<s>", "eos": "<|endoftext|>", "added": PHI, "rstrip": True},
    {"name": "phi4-mini", "row": "phi3", "calls": "phi4", "spells": "<|tool_call|>[%s]<|/tool_call|>", "between": ", ",
     "bos": "<|endoftext|>", "eos": "<|endoftext|>",
     "added": [*PHI, "<|tool|>", "<|/tool|>", "<|tool_call|>", "<|/tool_call|>"], "rstrip": True},
    {"name": "olmo2", "bos": "<|endoftext|>", "eos": "<|endoftext|>", "added": []},
    {"name": "olmo3", "calls": "olmo", "bos": "<|endoftext|>", "eos": "<|im_end|>",
     "added": [*CHATML, "<functions>", "</functions>", "<function_calls>", "</function_calls>"]},
    {"name": "smollm3", "calls": "hermes", "spells": "%s", "between": "\n", "each": "<tool_call>\n%s\n</tool_call>",
     "thinks": True, "bos": "<|begin_of_text|>", "eos": "<|im_end|>",
     "added": [*CHATML, "<think>", "</think>", "<tool_call>", "</tool_call>"]},
    {"name": "ministral3", "calls": "mistral", "thoughts": ["[THINK]", "[/THINK]"], "blocks": True, "bos": "<s>",
     "eos": "</s>",
     "added": [*MISTRAL, "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[ARGS]", "[CALL_ID]", "[THINK]", "[/THINK]"]},
    {"name": "muse-glimmer", "calls": "atem", "thoughts": ["<|message|>", "<|eom|>", "<|start|>"],
     "bos": "<|begin_of_text|>", "eos": "<|end_of_text|>", "added": ["<|start|>", "<|message|>", "<|eom|>", "<|eot|>"]},
    {"name": "llama3-tools", "calls": "llama3", "single": True, "bos": "<|begin_of_text|>", "eos": "<|eot_id|>",
     "added": ["<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>", "<|python_tag|>"]},
    {"name": "deepseek-r1", "calls": "deepseek", "untold": True, "bos": DEEPSEEK % "begin\u2581of\u2581sentence",
     "eos": DEEPSEEK % "end\u2581of\u2581sentence",
     "added": [DEEPSEEK % "User", DEEPSEEK % "Assistant", "<think>", "</think>",
               *(DEEPSEEK % f"tool\u2581{x}" for x in ("calls\u2581begin", "calls\u2581end", "call\u2581begin",
                                                     "call\u2581end", "sep"))]},
]


def call(id, name, arguments):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


TURNS = [
    [{"role": U, "content": " Why is the sky blue?\n"}],
    [{"role": S, "content": "You are terse.\n"}, {"role": U, "content": "  cafe\u0301 \u4f60\u597d <b> 12345"}],
    [{"role": U, "content": "One"}, {"role": A, "content": "Two\n"}, {"role": U, "content": "\nThree"},
     {"role": A, "content": "Four"}, {"role": U, "content": "And then?"}],
]
CALLS = [
    [{"role": U, "content": "Weather?"},
     {"role": A, "content": "", "tool_calls": [call("abcDEF123", "get_weather", {"city": "Z\u00fcrich", "days": 3})]},
     {"role": T, "tool_call_id": "abcDEF123", "content": "{\"sky\": \"blue\"}"}],
    [{"role": S, "content": "Rules."}, {"role": U, "content": "Both?"},
     {"role": A, "content": "Let me see.", "tool_calls": [
         call("000000001", "get_weather", {"city": "Paris"}), call("000000002", "now", {})]},
     {"role": T, "tool_call_id": "000000001", "content": "rain"},
     {"role": T, "tool_call_id": "000000002", "content": "12:30"},
     {"role": A, "content": "Rain at 12:30."}, {"role": U, "content": "Thanks"}],
]
SINGLE = [
    [{"role": U, "content": "All?"},
     {"role": A, "content": "", "tool_calls": [call(x, "get_weather", {"city": x}) for x in ("A", "B", "C")]},
     *({"role": T, "tool_call_id": x, "content": f"sun in {x}"} for x in ("B", "C", "A")),
     {"role": U, "content": "Thanks"}],
]
THOUGHTS = [
    [{"role": U, "content": "One"}, {"role": A, "reasoning_content": "Hm.\n", "content": "Two"},
     {"role": U, "content": "Weather?"},
     {"role": A, "reasoning_content": "I need it.", "content": "",
      "tool_calls": [call("abcDEF123", "get_weather", {"city": "Paris"})]},
     {"role": T, "tool_call_id": "abcDEF123", "content": "rain"}],
]


def with_blocks(family, message):
    """A message whose thoughts are a block of its content."""
    if "reasoning_content" not in message or "blocks" not in family:
        return message
    blocks = [{"type": "thinking", "thinking": message["reasoning_content"]}]
    if message["content"]:
        blocks.append({"type": "text", "text": message["content"]})
    return {k: v for k, v in message.items() if k != "reasoning_content"} | {"content": blocks}


def spelled(family, message):
    """A message whose calls are text."""
    if "spells" not in family or "tool_calls" not in message:
        return message
    calls = [json.dumps({"name": c["function"]["name"], "arguments": c["function"]["arguments"]}, ensure_ascii=False)
             for c in message["tool_calls"]]
    text = family["spells"] % family["between"].join(family.get("each", "%s") % c for c in calls)
    return {"role": A, "content": "\n\n".join(x for x in (message["content"], text) if x)}


def as_text(message):
    """A message whose calls come without a text, and with arguments that are text."""
    if "tool_calls" not in message:
        return message
    calls = [call(c["id"], c["function"]["name"], json.dumps(c["function"]["arguments"], ensure_ascii=False))
             for c in message["tool_calls"]]
    return {"role": A, "content": message["content"] or None, "tool_calls": calls}


def single(messages):
    """Each call as a message before its result."""
    told, results = [], {m["tool_call_id"]: m for m in messages if m["role"] == T}
    for m in messages:
        for i, c in enumerate(m.get("tool_calls", [])):
            told += [{"role": A, "content": "" if i else m["content"], "tool_calls": [c]}, results[c["id"]]]
        if m["role"] != T and "tool_calls" not in m:
            told.append(m)
    return told


def list_of(tools):
    """As Peridot writes it: the schemas without white space."""
    texts = []
    for f in (x["function"] for x in tools):
        schema = json.dumps(f["parameters"], ensure_ascii=False, separators=(",", ":"))
        texts.append("{\"name\": %s, \"description\": %s, \"parameters\": %s}" % (
            json.dumps(f["name"]), json.dumps(f["description"], ensure_ascii=False), schema))
    return "[" + ", ".join(texts) + "]"


def with_tools(messages, tools):
    """Phi-4-mini reads them from the system's message."""
    system = messages[0] if messages[0]["role"] == S else {"role": S, "content": ""}
    return [system | {"tools": list_of(tools)}, *messages[messages[0]["role"] == S:]]


def text_of(t, jinja, messages, **options):
    """As apply_chat_template, which would leave out what is None."""
    (text,), _ = render_jinja_template([messages], chat_template=jinja, add_generation_prompt=True,
                                       date_string="05 July 2025", **t.special_tokens_map, **options)
    return text


def rows_of(family, t, jinja):
    thinks = [{"enable_thinking": x} for x in (False, True)] if "thinks" in family else [{}]
    for messages in TURNS + (CALLS if "calls" in family else []) + (THOUGHTS if "thoughts" in family else []) + \
            (SINGLE if "single" in family else []):
        for tools in (None, TOOLS) if "calls" in family and "untold" not in family else (None,):
            if not tools and messages in CALLS and "untold" not in family:
                continue
            for think in thinks:
                told = [as_text(m) if "untold" in family else spelled(family, with_blocks(family, m))
                        for m in messages]
                if "single" in family:
                    told = single(told)
                if tools and family["name"] == "phi4-mini":
                    told = with_tools(told, tools)
                yield {"messages": messages, "tools": tools is not None, "think": think.get("enable_thinking", False),
                       "text": text_of(t, jinja, told, tools=tools, **think)}


def main():
    rows = [TOOLS]
    for f in FAMILIES:
        jinja = (HERE / "chats" / f"{f['name']}.jinja").read_text()
        t = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), bos_token=f["bos"], eos_token=f["eos"])
        rows.append(f | {"jinja": jinja, "conversations": list(rows_of(f, t, jinja))})
    OUT.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    OUT.chmod(0o644)
    print(OUT.name, OUT.stat().st_size)


main()
