"""Asks peridot serve by frameworks for agents: serve_clients_agents.py CALLER DEMO [TEST...], by default by all that
are installed. CALLER and DEMO are the URLs of two servers: of a model that calls add(a=2, b=40) and answers "hello
model" once it has a result, and of the demo model, which calls where it must."""

import asyncio
import importlib.util
import os
import sys

import pydantic

caller, demo = sys.argv[1:3]
prompt = "hello"
os.environ.update(OPENAI_API_KEY="none", ANTHROPIC_API_KEY="none", OPENAI_AGENTS_DISABLE_TRACING="1",
                  LITELLM_LOCAL_MODEL_COST_MAP="True")
results = []   # of add


class Person(pydantic.BaseModel):
    """A person."""
    name: str = pydantic.Field(max_length=20)
    age: int = pydantic.Field(ge=0, le=150)


def add(a: int, b: int) -> int:
    """Adds two numbers.

    Args:
        a: one
        b: the other
    """
    results.append(a + b)
    return a + b


def test_langchain_openai():
    from langchain_core.messages import HumanMessage, ToolMessage
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    for responses in (False, True):
        model = ChatOpenAI(base_url=caller + "/v1", model="caller", temperature=0, use_responses_api=responses)
        tools = model.bind_tools([tool(add)])
        messages = [HumanMessage(prompt)]
        messages.append(tools.invoke(messages))
        (call,) = messages[1].tool_calls
        messages.append(ToolMessage(str(tool(add).invoke(call["args"])), tool_call_id=call["id"]))
        assert results.pop() == 42 and tools.invoke(messages).text == "hello model"
        whole = None
        for piece in tools.stream(prompt):
            whole = piece if whole is None else whole + piece
        assert whole.tool_calls[0]["args"] == {"a": 2, "b": 40}
        person = ChatOpenAI(base_url=demo + "/v1", model="stories", seed=None if responses else 1,
                            use_responses_api=responses)
        for method in ("json_schema", "function_calling"):
            assert isinstance(person.with_structured_output(Person, method=method).invoke(prompt), Person)
        assert "".join(piece.text for piece in person.stream(prompt, max_tokens=8))


def test_langchain():
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI
    model = ChatOpenAI(base_url=caller + "/v1", model="caller", temperature=0)
    state = create_agent(model, tools=[add]).invoke({"messages": [{"role": "user", "content": prompt}]})
    assert results.pop() == 42 and state["messages"][-1].content == "hello model"


def test_litellm():
    import json
    import litellm
    tool = {"type": "function", "function": {"name": "add", "parameters": {
        "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}}}
    bases = {"openai": "/v1", "anthropic": "", "ollama_chat": ""}   # providers, and where the server speaks as they do
    for model, base in ((f"{provider}/caller", caller + path) for provider, path in bases.items()):
        arguments = {"model": model, "api_base": base, "tools": [tool], "max_tokens": 200}
        messages = [{"role": "user", "content": prompt}]
        message = litellm.completion(messages=messages, **arguments).choices[0].message
        (call,) = message.tool_calls
        assert json.loads(call.function.arguments) == {"a": 2, "b": 40}, model
        messages += [message, {"role": "tool", "tool_call_id": call.id, "name": "add", "content": "42"}]
        assert litellm.completion(messages=messages, **arguments).choices[0].message.content == "hello model", model
        pieces = list(litellm.completion(messages=messages[:1], stream=True, **arguments))
        whole = litellm.stream_chunk_builder(pieces, messages=messages[:1])
        assert json.loads(whole.choices[0].message.tool_calls[0].function.arguments) == {"a": 2, "b": 40}, model
    for model, base in ((f"{provider}/stories", demo + path) for provider, path in bases.items()):
        arguments = {"model": model, "api_base": base, "max_tokens": 200, "messages": messages[:1]}
        pieces = litellm.completion(stream=True, **{**arguments, "max_tokens": 8})
        assert "".join(piece.choices[0].delta.content or "" for piece in pieces), model
        text = litellm.completion(response_format=Person, **arguments).choices[0].message.content
        Person.model_validate_json(text)
        try:
            litellm.completion(**{**arguments, "messages": [{"role": "user", "content": "king " * 10**4}]})
        except litellm.exceptions.BadRequestError as e:
            assert "tokens" in str(e)
        else:
            raise AssertionError(f"{model}: a prompt that is too long is accepted")


def test_pydantic_ai():
    from pydantic_ai import Agent, NativeOutput
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.models import openai as models
    from pydantic_ai.providers.anthropic import AnthropicProvider
    from pydantic_ai.providers.openai import OpenAIProvider
    settings = {"temperature": 0}

    def models_of(url, name):
        provider = OpenAIProvider(base_url=url + "/v1", api_key="none")
        return [models.OpenAIChatModel(name, provider=provider), models.OpenAIResponsesModel(name, provider=provider),
                AnthropicModel(name, provider=AnthropicProvider(base_url=url, api_key="none"))]

    async def stream(agent):
        async with agent.run_stream(prompt) as result:
            return await result.get_output()

    for model in models_of(caller, "caller"):
        agent = Agent(model, tools=[add], model_settings=settings)
        assert agent.run_sync(prompt).output == "hello model" and results.pop() == 42, model
        assert asyncio.run(stream(agent)) == "hello model" and results.pop() == 42, model
    for model in models_of(demo, "stories"):
        assert isinstance(Agent(model, output_type=Person).run_sync(prompt).output, Person), model
    model = models_of(demo, "stories")[0]
    assert isinstance(Agent(model, tools=[add], output_type=NativeOutput(Person)).run_sync(prompt).output, Person)


def test_agents():
    import agents
    from openai import AsyncOpenAI
    agents.set_tracing_disabled(True)

    def ask(agent):
        return agents.Runner.run(agent, prompt)

    async def stream(agent):
        result = agents.Runner.run_streamed(agent, prompt)
        assert "run_item_stream_event" in [event.type async for event in result.stream_events()]
        return result

    def output_of(run, kind, url, **of_agent):   # clients belong to the loop of events that they were made in
        async def made():
            client = AsyncOpenAI(base_url=url + "/v1", api_key="none", max_retries=0)
            return await run(agents.Agent(name="agent", model=kind(model="served", openai_client=client), **of_agent))
        return asyncio.run(made()).final_output

    adder = {"instructions": "hello", "tools": [agents.function_tool(add)],
             "model_settings": agents.ModelSettings(temperature=0)}
    for kind in (agents.OpenAIChatCompletionsModel, agents.OpenAIResponsesModel):
        for run in (ask, stream):
            assert output_of(run, kind, caller, **adder) == "hello model" and results.pop() == 42, kind
        assert isinstance(output_of(ask, kind, demo, output_type=Person), Person), kind
        assert isinstance(output_of(ask, kind, caller, output_type=Person, **adder), Person), kind
        assert results.pop() == 42, kind


def test_instructor():
    import instructor
    import openai
    client = openai.OpenAI(base_url=demo + "/v1", api_key="none", max_retries=0)
    for mode in ("TOOLS", "RESPONSES_TOOLS", "JSON_SCHEMA"):
        asks = instructor.from_openai(client, mode=instructor.Mode[mode])
        arguments = {"model": "stories", "response_model": Person, "messages": [{"role": "user", "content": prompt}]}
        assert isinstance(asks.create(max_retries=0, **arguments), Person), mode
        if mode == "TOOLS":
            assert isinstance(list(asks.create_partial(max_retries=0, **arguments))[-1], pydantic.BaseModel)


def test_llama_index():
    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.core.llms import ChatMessage
    from llama_index.core.tools import FunctionTool
    from llama_index.llms.openai_like import OpenAILike

    def model_of(url, name):
        return OpenAILike(api_base=url + "/v1", api_key="none", model=name, is_chat_model=True, temperature=0,
                          is_function_calling_model=True, should_use_structured_outputs=True, max_tokens=200)

    async def ask(agent):
        return str(await agent.run(prompt))

    model = model_of(caller, "caller")
    for streaming in (False, True):
        agent = FunctionAgent(tools=[FunctionTool.from_defaults(add)], llm=model, streaming=streaming)
        assert asyncio.run(ask(agent)) == "hello model" and results.pop() == 42
    model = model_of(demo, "stories")
    assert model.chat([ChatMessage(prompt)]).message.content
    assert "".join(piece.delta for piece in model.stream_chat([ChatMessage(prompt)]))
    assert isinstance(model.as_structured_llm(Person).chat([ChatMessage(prompt)]).raw, Person)


def test_llm():
    from llm.default_plugins.openai_models import Chat
    model = Chat("served", model_name="caller", api_base=caller + "/v1", key="none", supports_tools=True)
    for stream in (False, True):
        chain = model.conversation(tools=[add]).chain(prompt, key="none", stream=stream, options={"temperature": 0})
        assert chain.text().strip() == "hello model" and results.pop() == 42
    model = Chat("served", model_name="stories", api_base=demo + "/v1", key="none", supports_schema=True)
    Person.model_validate_json(model.prompt(prompt, schema=Person, key="none", stream=False).text())


chosen = sys.argv[3:] or [name for name in ("langchain_openai", "langchain", "litellm", "pydantic_ai", "agents",
                                            "instructor", "llama_index", "llm") if importlib.util.find_spec(name)]
for package in chosen:
    globals()["test_" + package]()
    print(package, "passed")
