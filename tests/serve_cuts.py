#!/usr/bin/env python3
"""Replies of the model cutter (script_model.h), which writes a thought, text and a call byte by byte, cut after every
token, on every interface: what a stream says is whole characters, and together what the whole answer says; and both
say that it was cut.
  serve_cuts.py URL
"""
import concurrent.futures
import json
import sys
import urllib.request

BASE = sys.argv[1]
HEAD = b'.<tool_call>\n{"name": "add", "arguments": {"a": "'
TOKENS = [b"", b"\xd0", b"\xb6", b"", b"\xf0", b"\x9f", b"\xa6", b"\x8a", HEAD, b"\xc3", b"\xa9", b"\xe2", b"\x82",
          b"\xac", b'"}}\n</tool_call>']   # the marks of the thought are no text
FUNCTION = {"name": "add", "description": "", "parameters": {
    "type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}}
MESSAGES = [{"role": "user", "content": "hi"}]


def text(tokens):
    """Their characters; one that was cut is U+FFFD."""
    return b"".join(tokens).decode("utf-8", "replace")


def expected(n, thinks, tools):
    """thought, text and arguments of a reply of n tokens"""
    tokens = TOKENS[:n]
    thought, answer = (text(tokens[:4]), tokens[4:]) if thinks else ("", tokens)
    if not tools or n < 9:
        return thought, text(answer), ""
    arguments = text([b'{"a": "'] + tokens[9:])
    return thought, text(answer[:-len(tokens[8:])] + [b"."]), arguments.replace('"}}\n</tool_call>', '"}')


def ask(path, body):
    request = urllib.request.Request(BASE + path, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=100) as answer:
        return answer.read().decode()


def events(path, body):
    lines = ask(path, {**body, "stream": True}).split("\n")
    lines = [line.removeprefix("data: ") for line in lines]
    return [json.loads(line) for line in lines if line.startswith("{")]


def join(parts):
    """A text of each, which whole characters make."""
    parts = list(parts)
    for part in parts[:-1]:
        assert "\ufffd" not in part, parts
    return "".join(parts)


def texts(deltas):
    """Thought, text and arguments of a list of those three, as far as each delta has any."""
    return tuple(join(d[k] for d in deltas if d[k]) for k in range(3))


def of_message(m):
    calls = m.get("tool_calls") or [{"function": {}}]
    return (m.get("reasoning_content") or m.get("thinking") or "", m.get("content") or "",
            calls[0]["function"].get("arguments") or "")


def logged(probabilities):
    return b"".join(bytes(p["bytes"]) for p in probabilities or [])


def is_cut(n, tools):
    """Unless all of the call is there, and ends the reply."""
    return n < len(TOKENS) or not tools


def within_thought(n):
    """There is something of the thought and nothing of what follows."""
    return 2 <= n < 5


def chat(n, tools):
    body = {"messages": MESSAGES, "max_tokens": n, "temperature": 0, "logprobs": True,
            "enable_thinking": True}
    if tools:
        body["tools"] = [{"type": "function", "function": FUNCTION}]
    choices = [e["choices"][0] for e in events("/v1/chat/completions", body) if e["choices"]]
    streamed = texts([of_message(c["delta"]) for c in choices])
    bytes_streamed = b"".join(logged((c["logprobs"] or {}).get("content")) for c in choices)
    whole = json.loads(ask("/v1/chat/completions", body))["choices"][0]
    reason = "length" if is_cut(n, tools) else "tool_calls"
    assert whole["finish_reason"] == choices[-1]["finish_reason"] == reason, (n, tools, whole, choices[-1])
    assert bytes_streamed == logged(whole["logprobs"]["content"]) == b"".join(TOKENS[4:n]), (n, bytes_streamed)
    return streamed, of_message(whole["message"])


def completions(n, tools):
    body = {"prompt": "a", "max_tokens": n, "temperature": 0, "logprobs": 1}
    choices = [e["choices"][0] for e in events("/v1/completions", body) if e["choices"]]
    whole = json.loads(ask("/v1/completions", body))["choices"][0]
    for member in "tokens", "token_logprobs", "text_offset":
        assert whole["finish_reason"] == choices[-1]["finish_reason"] == "length", (n, whole)
        assert sum((c["logprobs"][member] for c in choices), []) == whole["logprobs"][member], (n, member)
    return ("", join(c["text"] for c in choices if c["text"]), ""), ("", whole["text"], "")


def messages(n, tools):
    body = {"messages": MESSAGES, "max_tokens": n, "temperature": 0,
            "thinking": {"type": "enabled", "budget_tokens": 1000}}
    if tools:
        body["tools"] = [{"name": "add", "input_schema": FUNCTION["parameters"]}]
    said = events("/v1/messages", body)
    deltas = [e["delta"] for e in said if e["type"] == "content_block_delta"]
    streamed = texts([(d.get("thinking"), d.get("text"), d.get("partial_json")) for d in deltas])
    whole = json.loads(ask("/v1/messages", body))
    content = {part["type"]: part for part in whole["content"]}
    reason = "max_tokens" if is_cut(n, tools) else "tool_use"
    assert whole["stop_reason"] == reason == said[-2]["delta"]["stop_reason"], (n, tools, whole, said[-2])
    begun = [e["content_block"]["type"] for e in said if e["type"] == "content_block_start"]
    assert begun == [part["type"] for part in whole["content"]], (n, tools, begun, whole)
    assert within_thought(n) == (begun == ["thinking"]), (n, tools, begun)
    arguments = content.get("tool_use", {}).get("input")
    arguments = json.dumps(arguments, ensure_ascii=False) if arguments else streamed[2]   # not of a call that is cut
    return streamed, (content.get("thinking", {}).get("thinking", ""), content.get("text", {}).get("text", ""),
                      arguments)


def responses(n, tools):
    body = {"input": "hi", "max_output_tokens": n, "temperature": 0, "reasoning": {"effort": "high"}}
    if tools:
        body["tools"] = [{"type": "function", **FUNCTION}]
    kinds = ("response.reasoning_text.delta", "response.output_text.delta", "response.function_call_arguments.delta")
    said = events("/v1/responses", body)
    streamed = texts([[e["delta"] if e["type"] == kind else None for kind in kinds]
                      for e in said if e["type"] in kinds])
    whole = ["", "", ""]
    answer = json.loads(ask("/v1/responses", body))
    state = "incomplete" if is_cut(n, tools) else "completed"
    for r in answer, said[-1]["response"]:
        states = [item["status"] for item in r["output"]]
        assert r["status"] == state == said[-1]["type"].split(".")[1], (n, tools, r, said[-1]["type"])
        assert (r["incomplete_details"] or {}).get("reason") == ("max_output_tokens" if is_cut(n, tools) else None), r
        assert states == ["completed"] * (len(states) - 1) + [state], (n, tools, states)
        assert within_thought(n) == ([item["type"] for item in r["output"]] == ["reasoning"]), (n, tools, r)
    done = [e["item"]["status"] for e in said if e["type"] == "response.output_item.done"]
    assert done == states, (n, tools, done, states)
    for item in answer["output"]:
        if item["type"] == "reasoning":
            whole[0] = item["content"][0]["text"]
        elif item["type"] == "message":
            whole[1] = item["content"][0]["text"]
        else:
            whole[2] = item["arguments"]
    return streamed, tuple(whole)


def ollama(n, tools):
    """Whole calls come, or none."""
    body = {"messages": MESSAGES, "think": True, "options": {"num_predict": n, "temperature": 0}}
    if tools:
        body["tools"] = [{"type": "function", "function": FUNCTION}]
    said = events("/api/chat", body)
    answers = [of_message(e["message"]) for e in said]
    message = json.loads(ask("/api/chat", {**body, "stream": False}))
    reason = "length" if is_cut(n, tools) else "stop"
    assert message["done_reason"] == said[-1]["done_reason"] == reason, (n, tools, message)
    message = message["message"]
    whole = of_message(message)
    streamed = texts([(thought, said, "") for thought, said, _ in answers])
    calls = [call for _, _, call in answers if call]
    assert calls == [call["function"]["arguments"] for call in message.get("tool_calls", [])], (n, calls, message)
    arguments = expected(n, True, tools)[2] if not whole[2] else json.dumps(whole[2], ensure_ascii=False)
    return (*streamed[:2], arguments), (*whole[:2], arguments)


def generate(n, tools):
    body = {"prompt": "hi", "think": True, "options": {"num_predict": n, "temperature": 0}}
    answers = events("/api/generate", body)
    whole = json.loads(ask("/api/generate", {**body, "stream": False}))
    assert whole["done_reason"] == answers[-1]["done_reason"] == "length", (n, whole)
    return (texts([(e.get("thinking"), e["response"], "") for e in answers]),
            (whole.get("thinking", ""), whole["response"], ""))


def check(interface, n, tools):
    want = expected(n, interface is not completions, tools)
    for got in interface(n, tools):
        assert got == want, (interface.__name__, n, tools, got, want)


def main():
    every = [(chat, 2), (messages, 2), (responses, 2), (ollama, 2), (completions, 1), (generate, 1)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(check, interface, n, bool(tools))
                for interface, kinds in every for tools in range(kinds) for n in range(1, len(TOKENS) + 1)]
        for job in jobs:
            job.result()
    # a budget that ends the thought within its first character
    body = {"messages": MESSAGES, "max_tokens": 99, "thinking": {"type": "enabled", "budget_tokens": 1}}
    content = json.loads(ask("/v1/messages", body))["content"]
    assert [part.get("thinking", part.get("text")) for part in content] == ["\ufffd", text(TOKENS[4:])], content


main()
