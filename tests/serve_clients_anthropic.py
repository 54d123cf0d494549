"""Asks peridot serve as programs do that were written for Anthropic: serve_clients_anthropic.py URL [KEY]"""

import asyncio
import sys
from typing import Literal

import anthropic
import pydantic

url = sys.argv[1]
key = sys.argv[2] if len(sys.argv) > 2 else "none"
client = anthropic.Anthropic(base_url=url, api_key=key, max_retries=0)
asynchronous = anthropic.AsyncAnthropic(base_url=url, api_key=key, max_retries=0)
model = client.models.list().data[0].id
messages = [{"role": "user", "content": "Once upon a time"}]
usual = {"model": model, "max_tokens": 12, "messages": messages, "extra_body": {"seed": 1}}


def test_create():
    reply = client.messages.create(**usual)
    assert reply.role == "assistant" and reply.content[0].text and reply.usage.output_tokens == 12
    assert reply.stop_reason == "max_tokens" and reply.stop_sequence is None
    stop = reply.content[0].text[4:10]
    stopped = client.messages.create(**{**usual, "max_tokens": 60}, stop_sequences=["zzzz", stop])
    assert (stopped.stop_reason, stopped.stop_sequence) == ("stop_sequence", stop)
    assert stopped.content[0].text == reply.content[0].text[:4]
    assert client.beta.messages.create(**usual, betas=["x-2026-01-01"]).content[0].text == reply.content[0].text


def test_stream():
    whole = client.messages.create(**usual)
    with client.messages.stream(**usual) as stream:
        events = list(stream)
        last = stream.get_final_message()
    kinds = [e.type for e in events]
    assert kinds[0] == "message_start" and kinds[-1] == "message_stop" and kinds.count("content_block_stop") == 1
    assert "".join(e.text for e in events if e.type == "text") == whole.content[0].text
    assert last.content[0].text == whole.content[0].text
    assert last.stop_reason == "max_tokens" and last.usage.output_tokens == 12
    with client.messages.stream(**usual) as stream:
        assert "".join(stream.text_stream) == whole.content[0].text
    raw = client.messages.create(**usual, stream=True)
    assert sum(e.type == "content_block_delta" for e in raw) > 5


def test_async():
    async def ask(seed):
        async with asynchronous.messages.stream(**{**usual, "extra_body": {"seed": seed}}) as stream:
            return await stream.get_final_text()

    async def ask_all():
        return await asyncio.gather(*(ask(seed % 3) for seed in range(9)))

    texts = asyncio.run(ask_all())
    assert len(set(texts)) == 3 and texts[:3] == texts[3:6] == texts[6:]


def test_conversation():
    blocks = [{"type": "text", "text": "Once upon", "cache_control": {"type": "ephemeral"}},
              {"type": "text", "text": " a time"}]
    reply = client.messages.create(**{**usual, "messages": [{"role": "user", "content": blocks}]})
    assert reply.content[0].text == client.messages.create(**usual).content[0].text
    turns = [*messages, reply.to_param(), {"role": "user", "content": "And then?"}]
    system = [{"type": "text", "text": "Be brief."}]
    extra = {"temperature": 0, "top_p": 0.9, "top_k": 5}
    second = client.messages.create(model=model, max_tokens=4, messages=turns, system=system,
                                    metadata={"user_id": "me"}, thinking={"type": "disabled"}, extra_body=extra)
    count = client.messages.count_tokens(model=model, messages=turns, system=system)
    assert count.input_tokens == second.usage.input_tokens + second.usage.cache_read_input_tokens


def test_parse():
    class Answer(pydantic.BaseModel):   # of what this client leaves in a schema
        friendly: bool
        colour: Literal["red", "blue"]

    for seed in range(4):
        reply = client.messages.parse(**{**usual, "max_tokens": 200, "extra_body": {"seed": seed}},
                                      output_format=Answer)
        assert isinstance(reply.parsed_output, Answer)


def test_prefill():
    reply = client.messages.create(**{**usual, "messages": [*messages, {"role": "assistant", "content": "There"}]})
    assert reply.content[0].text and not reply.content[0].text.startswith("There")


def test_errors():
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aaaa"}}
    for name, arguments in [("image", {"messages": [{"role": "user", "content": [image]}]}),
                            ("max_tokens", {"max_tokens": 0}),
                            ("thinking", {"thinking": {"type": "enabled", "budget_tokens": 1024}}),
                            ("too long", {"messages": [{"role": "user", "content": "king " * 10**4}]})]:
        try:
            client.messages.create(**{**usual, **arguments})
        except anthropic.BadRequestError as e:
            assert e.body["error"]["type"] == "invalid_request_error" and name in e.body["error"]["message"]
        else:
            raise AssertionError(f"{arguments} is accepted")


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print(name, "passed")
