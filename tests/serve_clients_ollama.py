"""Asks peridot serve as programs do that were written for Ollama: serve_clients_ollama.py URL [KEY]"""

import asyncio
import sys
from typing import Literal

import ollama
import pydantic

key = {"headers": {"Authorization": f"Bearer {sys.argv[2]}"}} if len(sys.argv) > 2 else {}
client = ollama.Client(host=sys.argv[1], **key)
asynchronous = ollama.AsyncClient(host=sys.argv[1], **key)
model = client.list().models[0].model
messages = [{"role": "user", "content": "Once upon a time"}]
options = {"num_predict": 12, "seed": 1}


def test_chat():
    reply = client.chat(model, messages, options=options, keep_alive="5m")
    assert reply.message.role == "assistant" and reply.message.content
    assert reply.done and reply.done_reason == "length" and reply.eval_count == 12
    assert reply.total_duration >= reply.eval_duration > 0
    pieces = list(client.chat(model, messages, options=options, stream=True))
    assert "".join(p.message.content for p in pieces) == reply.message.content
    assert [p.done for p in pieces] == [False] * (len(pieces) - 1) + [True] and pieces[-1].eval_count == 12
    assert client.chat(model + ":latest", messages, options=options).message.content == reply.message.content
    assert client.chat(model).done_reason == "load"


def test_generate():
    reply = client.generate(model, "Once upon a time", options=options)
    assert reply.response and reply.eval_count == 12
    pieces = client.generate(model, "Once upon a time", options=options, stream=True)
    assert "".join(p.response for p in pieces) == reply.response
    assert client.generate(model, "Once upon a time", options=options, raw=True).response
    assert client.generate(model).done_reason == "load"


def test_async():
    async def ask(seed):
        stream = await asynchronous.chat(model, messages, options={**options, "seed": seed}, stream=True)
        return "".join([p.message.content async for p in stream])

    async def ask_all():
        return await asyncio.gather(*(ask(seed % 3) for seed in range(9)))

    texts = asyncio.run(ask_all())
    assert len(set(texts)) == 3 and texts[:3] == texts[3:6] == texts[6:]


def test_format():
    class Person(pydantic.BaseModel):
        name: str = pydantic.Field(max_length=20)
        friendly: bool
        colour: Literal["red", "blue"]

    for seed in range(4):
        reply = client.chat(model, messages, format=Person.model_json_schema(), options={"seed": seed})
        Person.model_validate_json(reply.message.content)
    assert client.chat(model, messages, format="json", options=options).message.content.lstrip().startswith("{")


def test_logprobs():
    reply = client.chat(model, messages, options=options, logprobs=True, top_logprobs=2)
    assert len(reply.logprobs) == 12 and len(reply.logprobs[0].top_logprobs) == 2


def test_embed():
    reply = client.embed(model, ["a cat", "a dog"])
    assert len(reply.embeddings) == 2 and abs(sum(x * x for x in reply.embeddings[0]) - 1) < 1e-4
    assert list(client.embeddings(model, "a dog").embedding) == list(reply.embeddings[1])
    assert client.embed(model, "the lion " * 1000).prompt_eval_count == client.ps().models[0].context_length


def test_models():
    assert client.ps().models[0].model == model
    shown = client.show(model)
    assert "completion" in shown.capabilities and shown.modelinfo["general.parameter_count"] > 0


def test_errors():
    for name, ask in [("peridot pull", lambda: client.pull("other")),
                      ("peridot pull", lambda: list(client.pull("other", stream=True))),
                      ("peridot pull", lambda: client.delete("other")),
                      ("template", lambda: client.generate(model, "a", template="b")),
                      ("suffix", lambda: client.generate(model, "a", suffix="b")),
                      ("think", lambda: client.chat(model, messages, think=True)),
                      ("images", lambda: client.chat(model, [{"role": "user", "content": "a", "images": ["aaaa"]}])),
                      ("tools", lambda: client.chat(model, messages, tools=[{"type": "function"}])),
                      ("num_ctx", lambda: client.chat(model, messages, options={"num_ctx": 10**6})),
                      ("mirostat", lambda: list(client.chat(model, messages, options={"mirostat": 2}, stream=True))),
                      ("context", lambda: client.generate(model, "king " * 10**4))]:
        try:
            ask()
        except ollama.ResponseError as e:
            assert e.status_code == 400 and name in e.error
        else:
            raise AssertionError(f"{name} is accepted")


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print(name, "passed")
