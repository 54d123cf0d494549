"""Gives tools to a model of write_thinkers, which calls add(2, 40) and answers when it has the result, as programs do
that were written for OpenAI, Anthropic and Ollama: serve_clients_calls.py URL"""

import json
import sys

import anthropic
import ollama
import openai
import pydantic

url = sys.argv[1]
openai_client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
anthropic_client = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)
ollama_client = ollama.Client(host=url)
model = openai_client.models.list().data[0].id
hello = {"role": "user", "content": "hello"}
numbers = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"],
           "additionalProperties": False}
add = {"name": "add", "description": "Adds two numbers.", "parameters": numbers}
arguments = {"a": 2, "b": 40}


def test_chat_completions():
    usual = {"model": model, "temperature": 0, "tools": [{"type": "function", "function": add}]}
    create = openai_client.chat.completions.create
    choice = create(**usual, messages=[hello]).choices[0]
    (call,) = choice.message.tool_calls
    assert choice.finish_reason == "tool_calls" and call.function.name == "add"
    assert json.loads(call.function.arguments) == arguments
    deltas = [c.choices[0].delta.tool_calls[0] for c in create(**usual, messages=[hello], stream=True)
              if c.choices[0].delta.tool_calls]
    assert deltas[0].id and deltas[0].function.name == "add" and not any(d.id for d in deltas[1:])
    assert json.loads("".join(d.function.arguments for d in deltas)) == arguments
    result = {"role": "tool", "tool_call_id": call.id, "content": "42"}
    assert create(**usual, messages=[hello, choice.message, result]).choices[0].message.content == "hello model"


def test_parse():
    class Add(pydantic.BaseModel):
        a: int
        b: int

    usual = {"model": model, "temperature": 0, "tools": [openai.pydantic_function_tool(Add, name="add")]}
    chat = openai_client.chat.completions
    with chat.stream(**usual, messages=[hello]) as stream:
        kinds = {event.type for event in stream}
        replies = [stream.get_final_completion(), chat.parse(**usual, messages=[hello])]
    assert {"tool_calls.function.arguments.delta", "tool_calls.function.arguments.done"} <= kinds
    for reply in replies:
        assert reply.choices[0].message.tool_calls[0].function.parsed_arguments == Add(**arguments)
    (call,) = openai_client.responses.parse(**usual, input="hello").output
    assert call.parsed_arguments == Add(**arguments)


def test_responses():
    usual = {"model": model, "temperature": 0, "tools": [{"type": "function", "strict": True, **add}]}
    (call,) = openai_client.responses.create(**usual, input="hello").output
    assert call.type == "function_call" and json.loads(call.arguments) == arguments
    with openai_client.responses.with_streaming_response.create(**usual, input="hello", stream=True) as response:
        lines = [line.removeprefix("data: ") for line in response.iter_lines() if line.startswith("data: ")]
    for line in lines:
        pydantic.TypeAdapter(openai.types.responses.ResponseStreamEvent).validate_json(line)
    with openai_client.responses.stream(**usual, input="hello") as stream:
        (last,) = stream.get_final_response().output
    assert json.loads(last.arguments) == arguments
    items = [hello, call, {"type": "function_call_output", "call_id": call.call_id, "output": "42"}]
    assert openai_client.responses.create(**usual, input=items).output_text == "hello model"


def test_messages():
    usual = {"model": model, "max_tokens": 200, "extra_body": {"temperature": 0},
             "tools": [{"name": "add", "input_schema": numbers}]}
    reply = anthropic_client.messages.create(**usual, messages=[hello])
    (use,) = reply.content
    assert reply.stop_reason == "tool_use" and (use.type, use.name, use.input) == ("tool_use", "add", arguments)
    with anthropic_client.messages.stream(**usual, messages=[hello]) as stream:
        (last,) = stream.get_final_message().content
    assert (last.name, last.input) == ("add", arguments)
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use.id, "content": "42"}]}
    turns = [hello, reply.to_param(), result]
    assert anthropic_client.messages.create(**usual, messages=turns).content[0].text == "hello model"
    assert anthropic_client.messages.count_tokens(model=model, messages=turns, tools=usual["tools"]).input_tokens > 0


def test_tool_runner():
    results = []

    @anthropic.beta_tool
    def add(a: int, b: int) -> str:
        """Adds two numbers."""
        results.append(a + b)
        return str(a + b)

    def run(**more):
        return anthropic_client.beta.messages.tool_runner(model=model, max_tokens=200, tools=[add], messages=[hello],
                                                          extra_body={"temperature": 0}, **more)

    assert run().until_done().content[0].text == "hello model" and results == [42]
    last = [stream.get_final_message() for stream in run(stream=True)][-1]
    assert last.content[0].text == "hello model" and results == [42, 42]


def test_ollama():
    def add(a: int, b: int) -> int:
        """Adds two numbers."""
        return a + b

    usual = {"model": model, "tools": [add], "options": {"temperature": 0}}
    reply = ollama_client.chat(**usual, messages=[hello]).message
    (call,) = reply.tool_calls
    assert call.function.name == "add" and dict(call.function.arguments) == arguments
    pieces = [p.message.tool_calls for p in ollama_client.chat(**usual, messages=[hello], stream=True)]
    assert [dict(c.function.arguments) for calls in pieces for c in calls or []] == [arguments]
    result = {"role": "tool", "tool_name": "add", "content": "42"}
    assert ollama_client.chat(**usual, messages=[hello, reply, result]).message.content == "hello model"


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print(name, "passed")
