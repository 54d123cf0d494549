#!/usr/bin/env python3
"""What goes round from one request to the next, on a server of the model cutter (script_model.h), whose template shows
past thoughts: thoughts in the forms of each interface, and responses that are kept. Prompts are told apart by their
numbers of tokens.
  serve_turns.py URL KEY OTHER_KEY
"""
import json
import sys
import urllib.error
import urllib.request

BASE, KEY, OTHER = sys.argv[1:]
FUNCTION = {"name": "add", "parameters": {
    "type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}}
USER = {"role": "user", "content": "hi"}
MORE = {"role": "user", "content": "more"}
LONG = "m" * 60
BIG, BODY_MAX, STORED_BYTES = 2 << 20, 32 << 20, 64 << 20


def ask(path, body=None, status=200, key=KEY, method=None):
    headers = {"content-type": "application/json", "authorization": "Bearer " + key}
    text = body if isinstance(body, str) else json.dumps(body)
    request = urllib.request.Request(BASE + path, None if body is None else text.encode(), headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=100) as answer:
            got, text, warning = answer.status, answer.read().decode(), answer.headers["Warning"] or ""
    except urllib.error.HTTPError as error:
        got, text, warning = error.code, error.read().decode(), ""
    assert got == status, (path, body, got, text[:500])
    if isinstance(body, dict) and body.get("stream"):
        return [json.loads(line[6:]) for line in text.split("\n") if line.startswith("data: {")]
    return {**json.loads(text), "warning": warning}


def tokens(answer):
    usage = answer["usage"]
    if "prompt_tokens" in usage:
        return usage["prompt_tokens"]
    return usage["input_tokens"] + usage.get("cache_read_input_tokens", 0)


def without(item, *names):
    return {name: value for name, value in item.items() if name not in names}


# ---- thoughts ----

def chat(messages, **more):
    return ask("/v1/chat/completions", {"messages": messages, "temperature": 0, "enable_thinking": True,
                                        "tools": [{"type": "function", "function": FUNCTION}], **more})


def test_chat():
    """The tokens of a prompt without the thought, and with it; what OpenRouter's clients send is as good."""
    answer = chat([USER])["choices"][0]["message"]
    assert answer["reasoning_content"] == "ж" and "reasoning_details" not in answer, answer
    called = without(answer, "reasoning_content")
    result = {"role": "tool", "tool_call_id": answer["tool_calls"][0]["id"], "content": "42"}
    n, n_thought = (tokens(chat([USER, message, result], max_tokens=1)) for message in (called, answer))
    assert n_thought > n, (n, n_thought)
    answer = chat([USER], reasoning={"effort": "high"})["choices"][0]["message"]
    details = answer["reasoning_details"]
    assert [d["type"] + d["text"] for d in details] == ["reasoning.textж"], details
    deltas = [e["choices"][0]["delta"] for e in chat([USER], reasoning={"effort": "high"}, stream=True)]
    assert "".join(d["text"] for delta in deltas for d in delta.get("reasoning_details", [])) == "ж", deltas
    given = [{**called, "reasoning_details": list} for list in (
        details, [{"type": "reasoning.summary", "summary": "ж"}], [{"type": "reasoning.encrypted", "data": "x"}], [])]
    got = [tokens(chat([USER, message, result], max_tokens=1)) for message in given]
    assert got == [n_thought, n_thought, n, n], (got, n, n_thought)
    hidden = json.dumps(chat([USER], reasoning={"effort": "high", "exclude": True}), ensure_ascii=False)
    assert "ж" not in hidden and "🦊" in hidden, hidden
    hidden = json.dumps(chat([USER], reasoning={"effort": "high", "exclude": True}, stream=True), ensure_ascii=False)
    assert "ж" not in hidden and "reasoning" not in hidden, hidden
    return n, n_thought


def responses(items, **more):
    return ask("/v1/responses", {"input": items, "temperature": 0, "reasoning": {"effort": "high"},
                                 "tools": [{"type": "function", **FUNCTION}], **more})


def test_items(n, n_thought):
    asked = {"include": ["reasoning.encrypted_content"], "store": False}
    first = responses("hi", **asked)
    thought, said, call = first["output"]
    assert [item["type"] for item in first["output"]] == ["reasoning", "message", "function_call"], first
    assert [item["status"] for item in first["output"]] == ["completed"] * 3, first
    seal = thought["encrypted_content"]
    assert "encrypted_content" not in responses("hi")["output"][0]
    events = responses("hi", stream=True, **asked)
    done = [e["item"] for e in events if e["type"] == "response.output_item.done"]
    assert [item["status"] for item in done] == ["completed"] * 3, done
    assert done[0]["encrypted_content"] == seal, done
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "42"}
    plain = without(thought, "content", "encrypted_content")
    damaged = seal[:20] + ("0" if seal[20] != "0" else "1") + seal[21:]
    for given, want, warned in (
            (thought, n_thought, False), (without(thought, "encrypted_content"), n_thought, False),
            ({**plain, "encrypted_content": seal}, n_thought, False),   # Codex shows the rest to nobody
            ({**thought, "content": [{"type": "reasoning_text", "text": LONG}]}, n_thought, False),
            ({**plain, "summary": [{"type": "summary_text", "text": "ж"}]}, n_thought, False),
            ({**plain, "encrypted_content": damaged}, n, True), ({**plain, "encrypted_content": seal[:-4]}, n, True),
            ({**plain, "encrypted_content": "gAAAAABo"}, n, True), ({**plain, "encrypted_content": 3}, n, False),
            ({**thought, "encrypted_content": damaged}, n_thought, True), ({"type": "reasoning"}, n, False)):
        answer = responses([USER, given, said, call, result], max_output_tokens=1)
        assert tokens(answer) == want, (given, tokens(answer), n, n_thought)
        assert ("encrypted_content" in answer["warning"]) == warned, (given, answer["warning"])
    # A call right after its thought, a second round of both, and a thought that was cut.
    short = tokens(responses([USER, call, result], max_output_tokens=1))
    assert tokens(responses([USER, thought, call, result], max_output_tokens=1)) == short + n_thought - n
    twice = [call, result]
    assert tokens(responses([USER, thought, *twice, thought, *twice], max_output_tokens=1)) == \
        tokens(responses([USER, *twice, *twice], max_output_tokens=1)) + 2 * (n_thought - n)
    once = [call, {**call, "call_id": "c2"}, result, {**result, "call_id": "c2"}]   # two calls, each with its thought
    got = tokens(responses([USER, thought, call, thought, *once[1:]], max_output_tokens=1))
    plain = tokens(responses([USER, *once], max_output_tokens=1))
    assert got > plain + n_thought - n, (got, plain, n, n_thought)
    for rest in [], [MORE]:
        assert tokens(responses([USER, thought, *rest], max_output_tokens=1)) > \
            tokens(responses([USER, *rest], max_output_tokens=1))


def messages(list, **more):
    return ask("/v1/messages", {"messages": list, "temperature": 0, "max_tokens": 99, "thinking": {"type": "enabled"},
                                "tools": [{"name": "add", "input_schema": FUNCTION["parameters"]}], **more})


def test_blocks(n, n_thought):
    thought, said, use = messages([USER])["content"]
    assert thought["thinking"] == "ж", thought
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use["id"], "content": "42"}]}
    hidden = messages([USER], thinking={"type": "adaptive", "display": "omitted"})["content"][0]
    assert hidden["thinking"] == "", hidden
    signature = "".join(e["delta"]["signature"] for e in messages([USER], stream=True)
                        if e["type"] == "content_block_delta" and e["delta"]["type"] == "signature_delta")
    sealed = hidden["signature"]
    damaged = sealed[:-8] + ("0000" if sealed[-8:-4] != "0000" else "1111") + sealed[-4:]
    for given, want in ((thought, n_thought), ({**thought, "signature": signature}, n_thought), (hidden, n_thought),
                        ({**thought, "signature": "of another server"}, n_thought),
                        (without(thought, "signature"), n_thought), ({**thought, "thinking": LONG}, n),
                        ({**hidden, "signature": damaged}, n), ({**hidden, "signature": "x"}, n),
                        ({"type": "redacted_thinking", "data": "x"}, n)):
        answer = messages([USER, {"role": "assistant", "content": [given, said, use]}, result], max_tokens=1)
        assert tokens(answer) == want, (given, tokens(answer), n, n_thought)
    apart = [{"role": "assistant", "content": [part]} for part in (thought, said, use)]
    assert tokens(messages([USER, *apart, result], max_tokens=1)) == n_thought, "blocks in messages of their own"


# ---- responses that are kept ----

def test_kept():
    first = responses("hi", metadata={"a": "b"})
    place = "/v1/responses/" + first["id"]
    assert first["store"] is True and first["previous_response_id"] is None, first
    assert without(ask(place), "warning") == without(first, "warning")
    (item,) = ask(place + "/input_items")["data"]
    assert item["content"] == [{"type": "input_text", "text": "hi"}] and item["id"].startswith("msg_"), item
    call = first["output"][2]
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "42"}
    want = tokens(responses([USER, *first["output"], result], max_output_tokens=1))
    second = responses([result], previous_response_id=first["id"], max_output_tokens=1)
    assert tokens(second) == want and second["previous_response_id"] == first["id"], (second, want)
    assert second["usage"]["input_tokens_details"]["cached_tokens"] >= want - 10, second["usage"]
    events = responses("more", previous_response_id=second["id"], stream=True)
    third = events[-1]["response"]
    want = tokens(responses([USER, *first["output"], result, *second["output"], MORE], max_output_tokens=1))
    assert tokens(third) == want, (third, want)
    assert tokens(responses([], previous_response_id=third["id"], max_output_tokens=1)) > want
    # lists
    answer = responses([USER, {"role": "assistant", "content": "a"}, MORE], max_output_tokens=1)
    place3 = "/v1/responses/" + answer["id"] + "/input_items"
    page = ask(place3 + "?limit=2")
    assert [x["content"][0]["text"] for x in page["data"]] == ["more", "a"] and page["has_more"], page
    assert page["first_id"] == page["data"][0]["id"] and page["data"][1]["content"][0]["type"] == "output_text", page
    page = ask(place3 + "?limit=2&after=" + page["last_id"])
    assert [x["content"][0]["text"] for x in page["data"]] == ["hi"] and not page["has_more"], page
    assert [x["content"][0]["text"] for x in ask(place3 + "?order=asc")["data"]] == ["hi", "a", "more"]
    for query in "limit=0", "limit=x", "order=up":
        assert query[:5] in ask(place3 + "?" + query, status=400)["error"]["message"]
    assert "stream" in ask(place + "?stream=true", status=400)["error"]["message"]
    # what is deleted is found no more, but what goes on from it does
    assert without(ask(place, method="DELETE"), "warning") == \
        {"id": first["id"], "object": "response", "deleted": True}
    for path, method in (place, None), (place, "DELETE"), (place + "/input_items", None):
        error = ask(path, status=404, method=method)["error"]
        assert error["message"] == "Response with id '%s' not found." % first["id"], error
    assert tokens(responses("more", previous_response_id=second["id"], max_output_tokens=1)) == want
    for id in first["id"], "resp_x":
        error = ask("/v1/responses", {"input": "more", "previous_response_id": id}, status=400)["error"]
        assert error == {"message": "Previous response with id '%s' not found." % id, "type": "invalid_request_error",
                         "param": "previous_response_id", "code": "previous_response_not_found"}, error
    deep = "[" * 1000000 + "]" * 1000000   # which nothing goes down into
    for _ in range(2):
        second = ask("/v1/responses", '{"previous_response_id": "%s", "max_output_tokens": 1, "input": [{"role": '
                     '"user", "content": "more", "unknown": %s}]}' % (second["id"], deep))
    # what is not to be kept
    hidden = responses("hi", store=False)
    assert hidden["store"] is False
    ask("/v1/responses/" + hidden["id"], status=404)
    ask(place + "/cancel", {}, status=405)
    # another key
    ask("/v1/responses/" + second["id"])
    for method in None, "DELETE":
        ask("/v1/responses/" + second["id"], status=404, key=OTHER, method=method)
    ask("/v1/responses", {"input": "more", "previous_response_id": second["id"]}, status=400, key=OTHER)
    ask("/v1/responses/" + second["id"], status=401, key="none")


def test_bounds():
    """What was used least recently goes."""
    def keep(size, **more):
        return ask("/v1/responses", {"input": [{**USER, "unknown": "x" * size}], "max_output_tokens": 1, **more})["id"]
    used, unused = keep(9), keep(9)
    later = keep(9, previous_response_id=used)
    for i in range(STORED_BYTES // BIG):
        keep(BIG)
        ask("/v1/responses/" + later)
    ask("/v1/responses/" + later)
    ask("/v1/responses/" + used)   # before those that go on from it nothing is forgotten
    ask("/v1/responses/" + unused, status=404)
    for i in range(BODY_MAX // BIG):
        later = keep(BIG, previous_response_id=later)
    assert "bytes" in ask("/v1/responses", {"input": "a", "previous_response_id": later},
                          status=400)["error"]["message"], "a conversation that is larger than any request"


n, n_thought = test_chat()
test_items(n, n_thought)
test_blocks(n, n_thought)
test_kept()
test_bounds()
