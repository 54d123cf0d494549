"""Asks peridot serve as programs do that were written for OpenAI: serve_clients.py http://HOST:PORT/v1 [KEY]"""

import asyncio
import json
import sys

import openai
import pydantic

url = sys.argv[1]
key = sys.argv[2] if len(sys.argv) > 2 else "none"
client = openai.OpenAI(base_url=url, api_key=key, max_retries=0)
asynchronous = openai.AsyncOpenAI(base_url=url, api_key=key, max_retries=0)
model = client.models.list().data[0].id
messages = [{"role": "user", "content": "Once upon a time"}]


class Person(pydantic.BaseModel):
    name: str = pydantic.Field(max_length=20)
    age: int = pydantic.Field(ge=0, le=150)
    friendly: bool


def test_sync():
    reply = client.chat.completions.create(model=model, messages=messages, max_tokens=12, seed=1)
    assert reply.choices[0].message.content and reply.usage.completion_tokens == 12
    assert reply.choices[0].finish_reason == "length"
    assert client.models.retrieve(model).id == model


def test_stream():
    whole = client.chat.completions.create(model=model, messages=messages, max_tokens=12, seed=1)
    pieces = client.chat.completions.create(model=model, messages=messages, max_tokens=12, seed=1, stream=True,
                                            stream_options={"include_usage": True})
    pieces = list(pieces)
    text = "".join(p.choices[0].delta.content or "" for p in pieces if p.choices)
    assert text == whole.choices[0].message.content
    assert pieces[-1].usage.completion_tokens == 12


def test_async():
    async def ask(seed):
        stream = await asynchronous.chat.completions.create(model=model, messages=messages, max_tokens=12, seed=seed,
                                                            stream=True)
        return "".join([p.choices[0].delta.content or "" async for p in stream])

    async def ask_all():
        return await asyncio.gather(*(ask(seed % 3) for seed in range(9)))

    texts = asyncio.run(ask_all())
    assert len(set(texts)) == 3 and texts[:3] == texts[3:6] == texts[6:]


def test_others():
    text = client.completions.create(model=model, prompt="Once upon a time", max_tokens=5, logprobs=2, seed=1)
    assert len(text.choices[0].logprobs.tokens) == 5
    vectors = client.embeddings.create(model=model, input=["a cat", "a dog"])
    assert len(vectors.data) == 2 and abs(sum(x * x for x in vectors.data[0].embedding) - 1) < 1e-4

    def text_of(seed):
        return client.responses.create(model=model, input="Once upon a time", max_output_tokens=8,
                                       extra_body={"seed": seed}).output_text
    events = list(client.responses.create(model=model, input="Once upon a time", max_output_tokens=8,
                                          extra_body={"seed": 1}, stream=True))
    assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == text_of(seed=1)
    assert events[-1].type == "response.incomplete" and events[-1].response.usage.output_tokens == 8


def test_responses_stream():
    arguments = {"model": model, "input": "Once upon a time", "metadata": {"a": "b"}, "instructions": "Be brief."}
    body = {**arguments, "max_output_tokens": 8, "stream": True}
    with client.responses.with_streaming_response.create(**body) as response:
        lines = [line.removeprefix("data: ") for line in response.iter_lines() if line.startswith("data: ")]
    for line in lines:   # as strictly as the client itself never is
        pydantic.TypeAdapter(openai.types.responses.ResponseStreamEvent).validate_json(line)
    last = json.loads(lines[-1])["response"]
    assert (last["metadata"], last["instructions"], last["max_output_tokens"]) == ({"a": "b"}, "Be brief.", 8)
    bias = {"extra_body": {"seed": 1, "text": {"format": {"type": "json_schema", "schema": {"enum": ["yes", "no"]}}}}}
    with client.responses.stream(**arguments, **bias) as stream:
        kinds = [e.type for e in stream]
        text = stream.get_final_response().output_text
    assert json.loads(text) in ("yes", "no")
    assert kinds[:3] == ["response.created", "response.in_progress", "response.output_item.added"]
    assert kinds[-4:] == ["response.output_text.done", "response.content_part.done", "response.output_item.done",
                          "response.completed"]


def test_kept():
    usual = {"model": model, "max_output_tokens": 8}
    first = client.responses.create(**usual, input="Once upon a time", metadata={"a": "b"})
    second = client.responses.create(**usual, input="And then?", previous_response_id=first.id)
    assert second.previous_response_id == first.id and second.usage.input_tokens > first.usage.total_tokens
    assert client.responses.retrieve(first.id) == first
    items = list(client.responses.input_items.list(first.id, limit=1))
    pydantic.TypeAdapter(openai.types.responses.ResponseItem).validate_python(items[0].to_dict())
    assert items[0].content[0].text == "Once upon a time" and len(items) == 1
    client.responses.delete(first.id)
    try:
        client.responses.retrieve(first.id)
        assert False, "it was deleted"
    except openai.NotFoundError:
        pass
    try:
        client.responses.create(**usual, input="And then?", previous_response_id=first.id)
        assert False, "it was deleted"
    except openai.BadRequestError as error:
        assert error.code == "previous_response_not_found"


def test_parse():
    for seed in range(4):
        reply = client.chat.completions.parse(model=model, messages=messages, response_format=Person, seed=seed)
        assert isinstance(reply.choices[0].message.parsed, Person)
        response = client.responses.parse(model=model, input="Once upon a time", text_format=Person)
        assert isinstance(response.output_parsed, Person)
    text = client.chat.completions.create(model=model, messages=messages, seed=1,
                                          response_format={"type": "json_object"})
    assert text.choices[0].finish_reason == "length" or isinstance(json.loads(text.choices[0].message.content), dict)


def test_forced_call():
    person = openai.pydantic_function_tool(Person)
    for choice in ("required", {"type": "function", "function": {"name": "Person"}}):
        reply = client.chat.completions.parse(model=model, messages=messages, seed=1, tools=[person],
                                              tool_choice=choice)
        assert isinstance(reply.choices[0].message.tool_calls[0].function.parsed_arguments, Person)
    message = client.chat.completions.create(model=model, messages=messages, tools=[person], tool_choice="none",
                                             max_tokens=5, seed=1).choices[0].message
    assert message.content and not message.tool_calls


def test_errors():
    for error, arguments in [(openai.BadRequestError, {"tools": [{"type": "function"}]}),
                             (openai.BadRequestError, {"max_tokens": 0}),
                             (openai.BadRequestError, {"messages": [{"role": "user", "content": "king " * 10**4}]}),
                             (openai.BadRequestError, {"response_format": {"type": "json_schema", "json_schema": {
                                 "name": "x", "schema": {"type": "array", "contains": {"type": "null"}}}}})]:
        try:
            client.chat.completions.create(**{"model": model, "messages": messages, **arguments})
        except error as e:
            assert e.body["message"]
        else:
            raise AssertionError(f"{arguments} is accepted")


def test_lenient():
    reply = client.chat.completions.with_raw_response.create(model="gpt-4", messages=messages, max_tokens=10**6, seed=1,
                                                             logit_bias={"1": -100}, store=True, user="me",
                                                             extra_body={"cache_prompt": True, "keep_alive": "5m"})
    assert "the only model" in reply.headers["Warning"]
    assert reply.parse().model == model and reply.parse().choices[0].finish_reason == "length"
    try:
        client.chat.completions.create(model=model, messages=messages, extra_body={"mirostat": 2})
    except openai.BadRequestError as e:
        assert e.code == "unsupported_parameter" and e.param == "mirostat"
    else:
        raise AssertionError("mirostat is accepted")
    without = openai.OpenAI(base_url=url.removesuffix("/v1"), api_key=key, max_retries=0)
    assert without.models.list().data[0].id == model
    assert without.chat.completions.create(model=model, messages=messages, max_tokens=2).usage.completion_tokens == 2


def test_token_ids():
    extra = {"model": model, "max_tokens": 12, "seed": 1, "extra_body": {"return_token_ids": True}}
    reply = client.chat.completions.create(messages=messages, **extra)
    assert len(reply.choices[0].token_ids) == 12 and len(reply.prompt_token_ids) == reply.usage.prompt_tokens
    pieces = list(client.chat.completions.create(messages=messages, stream=True, **extra))
    assert pieces[0].prompt_token_ids == reply.prompt_token_ids
    assert not any(hasattr(p, "prompt_token_ids") for p in pieces[1:])
    assert [i for p in pieces[1:] for i in p.choices[0].token_ids] == reply.choices[0].token_ids
    text = client.completions.create(prompt=reply.prompt_token_ids, **extra)
    assert text.choices[0].token_ids == reply.choices[0].token_ids
    assert text.choices[0].prompt_token_ids == reply.prompt_token_ids


def test_llm():
    try:
        from llm.default_plugins.openai_models import Chat
    except ImportError:
        print("test_llm skipped: the package llm is not there")
        return
    model_of_llm = Chat("served", model_name=model, api_base=url, key=key)
    whole = model_of_llm.prompt("Once upon a time", max_tokens=12, seed=1, stream=False, key=key).text()
    stream = model_of_llm.prompt("Once upon a time", max_tokens=12, seed=1, stream=True, key=key)
    assert whole and "".join(stream) == whole


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print(name, "passed")
