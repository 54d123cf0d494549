"""Asks peridot serve, which has a model of golden/gemma3-vision, about images: serve_images.py PART URL GOLDEN

PART: forms (of each interface, and what their tokens are), crops (of requests, and "default" as the next argument where
the server makes them of all images), hostile, drop (a full context, of 256 positions), one (a single request, of a
model that may have to be loaded), users (a template that writes the user's alone), blind (another model), placed (the
command and the model's folder as the next arguments), fetch (URL of images as the next argument, and what is
expected)."""

import array
import base64
import concurrent.futures
import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zlib

part, url, golden = sys.argv[1:4]
files = [(pathlib.Path(golden) / f"image-{i}.png").read_bytes() for i in (1, 2)]
ROWS = 16


def post(path, body):
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=600) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def encode(data):
    return base64.b64encode(data).decode()


def data_url(data):
    return "data:image/png;base64," + encode(data)


def message(*content, role="user"):
    return {"role": role, "content": list(content)}


def text(s):
    return {"type": "text", "text": s}


def seen(source):
    return {"type": "image_url", "image_url": {"url": source}}


def shown(data):
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": encode(data)}}


def chat(*messages, **more):
    return post("/v1/chat/completions", {"messages": list(messages), "max_tokens": 12, "seed": 1, **more})


def reply(*messages, **more):
    status, answer = chat(*messages, logprobs=True, return_token_ids=True, **more)
    assert status == 200, answer
    return answer["choices"][0]["logprobs"], answer["prompt_token_ids"], answer["usage"]["prompt_tokens"]


def rows(ids):
    return [i for i in ids if i < 0]


def refused(status, sentence, answer):
    assert answer[0] == status and sentence in json.dumps(answer[1]), (status, sentence, answer)


def test_forms():
    one, two = map(data_url, files)
    numbers, ids, n = reply(message(text("What is it?"), seen(one)))
    assert len(rows(ids)) == ROWS and n == len(ids)
    assert reply(message(text("What is it?"), {"type": "image_url", "image_url": one}))[:2] == (numbers, ids)
    assert reply(message(text("What is it?"), seen("DATA:" + one[5:])))[1] == ids
    start, data = one.split(",")
    lines = lambda end, n: end.join(data[i:i + n] for i in range(0, len(data), n))
    for same in [lines("\n", 76), lines("\r\n", 64), " " + data + "\n", data.rstrip("="), data[:-2] + "\n==",
                 data.replace("+", "-").replace("/", "_"), urllib.parse.quote(data, safe="")]:
        assert reply(message(text("What is it?"), seen(f"{start},{same}")))[1] == ids, same[-80:]
    other = reply(message(text("What is it?"), seen(two)))
    assert other[2] == n and other[0] != numbers and not set(rows(other[1])) & set(rows(ids))
    both = reply(message(seen(one), text("and"), seen(two)), message(text("yes"), role="assistant"), message(seen(one)))
    assert rows(both[1]) == rows(ids) + rows(other[1]) + rows(ids)
    alone = reply(message(text("What is it?")))[2]

    status, answer = post("/v1/responses", {"max_output_tokens": 4, "input": [message(
        {"type": "input_text", "text": "What is it?"}, {"type": "input_image", "image_url": one})]})
    assert status == 200 and answer["usage"]["input_tokens"] == n, answer
    body = {"messages": [message(text("What is it?"), shown(files[0]))]}
    status, answer = post("/v1/messages", {**body, "max_tokens": 4})
    usage = answer["usage"]
    assert status == 200 and usage["input_tokens"] + usage["cache_read_input_tokens"] == n, answer
    assert post("/v1/messages/count_tokens", body) == (200, {"input_tokens": n})
    # turns of one role become one, in their order
    turns = [message(text("a"), shown(files[0]), text("b")), message(text("c")), message(text("d"), shown(files[0]))]
    joined = message(text("a"), seen(one), text("b\n\nc\n\nd"), seen(one))
    assert post("/v1/messages/count_tokens", {"messages": turns})[1]["input_tokens"] == reply(joined)[2]

    # Ollama's images come before the text
    first = reply(message(seen(one), text("What is it?")))[2]
    options = {"stream": False, "options": {"num_predict": 4}}
    for path, asked in [("/api/chat", {"messages": [{"role": "user", "content": "What is it?"}]}),
                        ("/api/generate", {"prompt": "What is it?"})]:
        holder = asked.get("messages", [asked])[0]
        for images, n_tokens in [([encode(files[0])], first), ([one], first), ([], alone), (None, alone)]:
            holder["images"] = images
            status, answer = post(path, {**asked, **options})
            assert status == 200 and answer["prompt_eval_count"] == n_tokens, (answer, n_tokens)
    assert "vision" in post("/api/show", {"model": "seer"})[1]["capabilities"]
    with urllib.request.urlopen(url + "/v1/models") as response:
        assert json.load(response)["data"][0]["architecture"]["input_modalities"] == ["text", "image"]

    # what others than the user show: where the template has no calls, results are in the user's turn
    assert rows(reply(message(text("look"), seen(one), role="system"), message(text("a"), seen(two)))[1]) == \
        rows(ids) + rows(other[1])
    assert rows(reply(message(text("a")), message(seen(two), role="assistant"), message(seen(one)))[1]) == \
        rows(other[1]) + rows(ids)
    called = {"id": "c", "type": "function", "function": {"name": "shot", "arguments": "{}"}}
    shot = [message(text("look")), {"role": "assistant", "content": "", "tool_calls": [called]},
            {"role": "tool", "tool_call_id": "c", "content": [text("done"), seen(two)]}]
    _, result, n = reply(*shot)
    assert rows(result) == rows(other[1])
    both = reply(*shot, message(text("like"), seen(one)))
    assert rows(both[1]) == rows(other[1]) + rows(ids)
    status, answer = post("/v1/responses", {"max_output_tokens": 4, "input": [
        message({"type": "input_text", "text": "look"}),
        {"type": "function_call", "call_id": "c", "name": "shot", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": [
            {"type": "input_text", "text": "done"}, {"type": "input_image", "image_url": two}]}]})
    assert status == 200 and answer["usage"]["input_tokens"] == n, answer
    turns = [message(text("look")), message({"type": "tool_use", "id": "c", "name": "shot", "input": {}},
                                            role="assistant")]
    block = {"type": "tool_result", "tool_use_id": "c", "content": [text("done"), shown(files[1])]}
    body = {"messages": turns + [message(block)]}
    assert post("/v1/messages/count_tokens", body)[1] == {"input_tokens": n}
    # a result stands before what else is in its message
    body["messages"][-1] = message(text("like"), shown(files[0]), block)
    cached = reply(*shot, message(text("like"), seen(one)), max_tokens=4) and \
        post("/v1/messages", {**body, "max_tokens": 4})[1]["usage"]
    assert cached["cache_read_input_tokens"] + cached["input_tokens"] == both[2], cached
    assert cached["cache_read_input_tokens"] > both[2] - ROWS, cached
    status, answer = post("/api/chat", {**options, "messages": [
        {"role": "user", "content": "look"}, {"role": "assistant", "content": "", "tool_calls": [
            {"function": {"name": "shot", "arguments": {}}}]},
        {"role": "tool", "tool_name": "shot", "content": "done", "images": [encode(files[1])]}]})
    assert status == 200 and answer["prompt_eval_count"] == n, answer

    # the same alone and among others
    asked = [[message(seen(one), text(str(i)))] if i % 3 == 0 else
             [message(text(str(i)), seen(two), seen(one))] if i % 3 == 1 else [message(text(str(i) * 30))]
             for i in range(9)]
    wanted = [reply(*each)[:2] for each in asked]
    with concurrent.futures.ThreadPoolExecutor(9) as threads:
        assert [got[:2] for got in threads.map(lambda each: reply(*each), asked)] == wanted


def png(width, height):
    """Of one grey row, whatever it says."""
    chunk = lambda kind, data: (struct.pack(">I", len(data)) + kind + data
                                + struct.pack(">I", zlib.crc32(kind + data)))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(bytes(width + 1))) + chunk(b"IEND", b""))


def test_hostile():
    ask = lambda source: chat(message(text("a"), seen(source)))
    good = data_url(files[0])
    for sentence, source in [
            ("not base64", good[:-1]), ("not base64", good[:-3]), ("not base64", good + "="),
            ("not base64", good + "A"),
            ("not base64", "data:image/png;base64,AB=="), ("not base64", "data:image/png;base64,===="),
            ("cut short", good[:500 // 4 * 4 + 22]), ("not one of base64", "data:image/png,%89PNG"),
            ("not one of base64", "data:"), ("is empty", "data:image/png;base64,"),
            ("only JPEG, PNG, WebP and GIF", data_url(b"Once upon a time")),
            ("60000 x 60000", data_url(png(60000, 60000))), ("damaged", data_url(files[0][:-300] + bytes(300))),
            ("more than 20971520 bytes", data_url(bytes(21 << 20))),
            ("--allow-url example.org", "https://example.org/a.png"),
            ("--allow-url localhost:9", "https://localhost:9/"),
            ("only https", "http://localhost/"), ("only https", "file:///etc/passwd"),
            ("user name", "https://a:b@localhost/"),
            ("https URL", "cat.png"), ("https URL", ""), ("https URL", "https://")]:
        refused(400, sentence, ask(source))
    # hosts that --allow-url names, whose addresses it does not
    for host in ["localhost", "127.0.0.1", "127.1", "2130706433", "[::1]", "[::ffff:10.0.0.1]", "169.254.169.254",
                 "[fe80::1]", "[fd00::1]"]:
        refused(400, "not of the public Internet", ask(f"https://{host}/a.png"))
    refused(400, "more than 32 images", chat(message(*[seen(good)] * 50)))
    refused(400, "image 32: it is not base64", chat(message(*[seen(good)] * 31, seen("data:;base64,A"))))
    assert chat(message(*[seen(good)] * 32))[0] == 200
    refused(400, "only text and images", chat(message({"type": "input_audio"})))
    refused(400, "beside its tool calls", chat(message(text("a")), message(seen(good), role="assistant") | {
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}))
    refused(400, "https URL", chat(message({"type": "image_url"})))
    refused(400, "https URL", chat(message({"type": "image_url", "image_url": {"url": 3}})))
    refused(400, "https URL", post("/v1/messages", {"max_tokens": 4, "messages": [
        message({"type": "image", "source": {"type": "file", "file_id": "a"}})]}))
    refused(400, "list of base64", post("/api/generate", {"prompt": "a", "images": encode(files[0])}))
    refused(400, "list of base64", post("/api/chat", {"messages": [{"role": "user", "content": "a", "images": [1]}]}))
    refused(400, "images are not supported with raw", post(
        "/api/generate", {"prompt": "a", "images": [encode(files[0])], "raw": True}))
    assert chat(message(text("a"), seen(good)))[0] == 200


def test_drop():
    turns = [m for i in range(12) for m in (message(text(f"{i}"), seen(data_url(files[i % 2]))),
                                            message(text("yes"), role="assistant"))] + [message(text("well?"))]
    refused(400, "context", chat(*turns))
    status, answer = chat(*turns, full="drop", return_token_ids=True)
    assert status == 200 and answer["dropped_messages"] % 2 == 0, answer
    left = turns[answer["dropped_messages"]:]
    assert 2 < len(left) < len(turns)
    assert answer["prompt_token_ids"] == chat(*left, return_token_ids=True)[1]["prompt_token_ids"]


def test_users():
    good = data_url(files[0])
    refused(400, "no place for all in messages of the role system", chat(
        message(text("a"), seen(good), role="system"), message(text("a"))))
    assert chat(message(text("a"), seen(good)))[0] == 200


def test_crops():
    long = data_url((pathlib.Path(golden) / "crops.png").read_bytes())
    ask = lambda source, **more: rows(reply(message(text("What is it?"), seen(source)), **more)[1])
    asked = lambda value: {"mm_processor_kwargs": {"do_pan_and_scan": value}}
    whole, cropped = ask(long, **asked(False)), ask(long, **asked(True))
    assert len(whole) == ROWS and len(cropped) == 4 * ROWS and cropped[:ROWS] == whole
    assert ask(long) == ask(long, **asked(None)) == (cropped if sys.argv[4:] == ["default"] else whole)
    assert len(ask(data_url(files[0]), **asked(True))) == ROWS
    sentence = "Here is the original image", "and here are some crops to help you see better"
    prompt = reply(message(seen(long)), **asked(True))[1]
    said = post("/detokenize", {"tokens": [i for i in prompt if i >= 0]})[1]["content"]
    assert all(each in said for each in sentence), said
    refused(400, "true or false", chat(message(seen(long)), **asked(1)))
    refused(400, "can only contain do_pan_and_scan", chat(message(seen(long)), mm_processor_kwargs={"size": 3}))
    body = {"max_tokens": 4, "messages": [message(shown(files[0]))], **asked(True)}
    refused(400, "mm_processor_kwargs", post("/v1/messages", body))


def test_one():
    assert len(rows(reply(message(seen(data_url(files[0]))), model="seer")[1])) == ROWS


def test_placed():
    """Qwen 3.5: a reply's first logits are those of tokens between which the image's are placed by hand."""
    peridot, model = sys.argv[4:6]
    config = json.loads((pathlib.Path(model) / "config.json").read_text())
    begin, row, end = (config[key + "_token_id"] for key in ("vision_start", "image", "vision_end"))
    said = "What is it? <|image_pad|>"
    status, answer = chat(message(text("Look: "), seen(data_url(files[0])), text(said)), max_tokens=1, logprobs=True,
                          temperature=0, top_logprobs=20, return_token_ids=True, chat_template_kwargs={
                              "enable_thinking": False})
    assert status == 200, answer
    prompt = lambda s: post("/tokenize", {"content": s, "parse_special": True})[1]["tokens"]
    plain = lambda s: post("/tokenize", {"content": s, "parse_special": False})[1]["tokens"]
    ids = prompt("<|im_start|>user\nLook: ") + [begin] + [row] * 35 + [end] + plain(said) + prompt(
        "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n")
    assert [row if i < 0 else i for i in answer["prompt_token_ids"]] == ids, (answer["prompt_token_ids"], ids)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([peridot, "logits", "-m", model, "--tokens", ",".join(map(str, ids)), "--image",
                        f"{golden}/image-1.png", "--kv", "f32", "--precision", "exact", "--out", folder + "/logits",
                        "--first", str(len(ids) - 1)], check=True, capture_output=True)
        logits = array.array("f", pathlib.Path(folder, "logits").read_bytes())
    most = max(logits)
    whole = most + math.log(sum(math.exp(x - most) for x in logits))
    first = answer["choices"][0]["logprobs"]["content"][0]
    wanted = sorted((x - whole for x in logits), reverse=True)
    got = [each["logprob"] for each in first["top_logprobs"]]
    assert len(got) == 20 and all(abs(a - b) < 1e-4 for a, b in zip(got, wanted)), (got, wanted[:20])
    named = chat(message(seen(data_url(files[0]))), return_token_ids=True, chat_template_kwargs={"add_vision_id": True})
    assert "Picture 1: " in post("/detokenize", {"tokens": [i for i in named[1]["prompt_token_ids"] if i >= 0]})[1][
        "content"], named
    refused(400, "System message cannot contain images", chat(
        message(seen(data_url(files[0])), role="system"), message(text("a"))))
    for sentence, size in [("30000 x 1 pixels is too long and narrow", (30000, 1)), ("100000 x 1 pixels", (100000, 1)),
                           ("damaged", (0, 8)), ("damaged", (8, 0))]:
        answer = chat(message(seen(data_url(files[1]))), message(seen(data_url(png(*size)))))
        refused(400, "image 2: ", answer)
        refused(400, sentence, answer)
    assert "vision" in post("/api/show", {"model": "qwen"})[1]["capabilities"]


def test_blind():
    refused(400, sys.argv[4], chat(message(seen(data_url(files[0])))))
    refused(400, sys.argv[4], chat(message(seen("https://example.org/"))))
    assert "vision" not in post("/api/show", {"model": "stories"})[1]["capabilities"]


def test_fetch():
    address, expected = sys.argv[4:6]
    if expected == "image":
        assert reply(message(seen(address)))[:2] == reply(message(seen(data_url(files[0]))))[:2]
        assert post("/v1/messages", {"max_tokens": 4, "messages": [
            message({"type": "image", "source": {"type": "url", "url": address}})]})[0] == 200
    else:
        refused(400, expected, chat(message(seen(address))))


globals()["test_" + part]()
