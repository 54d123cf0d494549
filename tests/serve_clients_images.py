"""Shows images to a model that sees, with openai, anthropic and ollama: serve_clients_images.py URL FILE"""

import base64
import pathlib
import sys

import anthropic
import ollama
import openai

url, path = sys.argv[1:3]
data = base64.b64encode(pathlib.Path(path).read_bytes()).decode()
data_url = "data:image/png;base64," + data
question = "What is this?"
ROWS = 16   # and what stands around them


def test_openai():
    client = openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0)
    model = client.models.list().data[0].id
    ask = lambda *parts: client.chat.completions.create(
        model=model, max_tokens=8, messages=[{"role": "user", "content": [{"type": "text", "text": question}, *parts]}])
    image = {"type": "image_url", "image_url": {"url": data_url, "detail": "low"}}
    seen, alone = ask(image), ask()
    assert seen.choices[0].message.content
    assert seen.usage.prompt_tokens >= alone.usage.prompt_tokens + ROWS
    stream = client.chat.completions.create(model=model, max_tokens=8, stream=True,
                                            messages=[{"role": "user", "content": [image]}])
    assert [chunk for chunk in stream][-1].choices[0].finish_reason == "length"
    answer = client.responses.create(model=model, max_output_tokens=16, input=[{"role": "user", "content": [
        {"type": "input_text", "text": question}, {"type": "input_image", "image_url": data_url, "detail": "auto"}]}])
    assert answer.output_text and answer.usage.input_tokens == seen.usage.prompt_tokens
    for bad, sentence in [(data_url[:422], "cut short"), (data_url + "!", "not base64"),
                          ("https://example.org/a.png", "--allow-url example.org")]:
        try:
            ask({"type": "image_url", "image_url": {"url": bad}})
        except openai.BadRequestError as e:
            assert sentence in str(e), e
        else:
            raise AssertionError(f"{bad[:40]} is accepted")


def test_anthropic():
    client = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)
    model = "seer"
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    ask = lambda *blocks: [{"role": "user", "content": [*blocks, {"type": "text", "text": question}]}]
    count = lambda messages: client.messages.count_tokens(model=model, messages=messages).input_tokens
    assert count(ask(image)) >= count(ask()) + ROWS
    answer = client.messages.create(model=model, max_tokens=8, messages=ask(image))
    assert answer.content[0].text
    assert answer.usage.input_tokens + answer.usage.cache_read_input_tokens == count(ask(image))
    with client.messages.stream(model=model, max_tokens=8, messages=ask(image, image)) as stream:
        assert "".join(stream.text_stream)
    try:
        client.messages.create(model=model, max_tokens=8, messages=ask(
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}))
    except anthropic.BadRequestError as e:
        assert "--allow-url example.org" in str(e)
    else:
        raise AssertionError("a URL is fetched")


def test_ollama():
    client = ollama.Client(host=url)
    model = client.list().models[0].model
    assert "vision" in client.show(model).capabilities
    counts = []
    for image in (path, pathlib.Path(path).read_bytes(), data):   # the package makes base64 of all of them
        answer = client.chat(model, [{"role": "user", "content": question, "images": [image]}],
                             options={"num_predict": 8})
        assert answer.message.content
        counts.append(answer.prompt_eval_count)
    alone = client.chat(model, [{"role": "user", "content": question}], options={"num_predict": 8}).prompt_eval_count
    assert counts == [counts[0]] * 3 and counts[0] >= alone + ROWS
    answer = client.generate(model, question, images=[path], options={"num_predict": 8})
    assert answer.response and answer.prompt_eval_count == counts[0]


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print(name, "passed")
