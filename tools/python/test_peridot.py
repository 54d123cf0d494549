"""The package beside the command, of which it must say the same. tests/test_python.sh runs it: FOLDER is for files."""
import asyncio
import gc
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np
import peridot
from peridot import GREEDY as greedy, _library

root = Path(__file__).resolve().parents[2]
stories, golden = str(root / "models/stories.gguf"), Path(os.environ["PERIDOT_COMMAND"]).parent / "golden"

# As Gemma 3's published one has the parts of a message.
TEMPLATE = """{{ bos_token }}{% for m in messages %}{{ m.role }}: {% if m.content is string %}{{ m.content | trim }}
{%- else %}{% for p in m.content %}{% if p.type == 'image' %}{{ '<start_of_image>' }}{% elif p.type == 'text' %}
{{- p.text | trim }}{% endif %}{% endfor %}{% endif %}{{ '\\n' }}{% endfor %}model: """


def command(*args, text=None):
    args = [os.environ["PERIDOT_COMMAND"], *map(str, args)]
    return subprocess.run(args, input=text, capture_output=True, check=True).stdout


def story(*args):
    return command("run", "-m", stories, *args).decode()[:-1]


class Test(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = peridot.Model(stories)
        cls.ids = cls.model.encode("Once upon a time", bos=True)

    def test_header(self):
        header = (root / "include/peridot.h").read_text()
        names = re.findall(r"\b(peridot_\w+)\(", _library.declarations(header))
        self.assertGreater(len(names), 50)
        for name in names:
            getattr(_library.lib, name)
        self.assertIn(f'version = "{peridot.version()}"', (root / "tools/python/pyproject.toml").read_text())

    def test_info(self):
        with peridot.Model(golden / "gemma2-sequence") as model:
            self.assertEqual((model.info.head, model.labels), ("sequence", ["calm", "glad", "sad"]))
        self.assertGreater(min(self.model.bench(64, 16, 1)), 0)
        self.assertEqual(self.model.info.precision, "default")
        with peridot.Model(stories, precision="exact") as model:
            self.assertEqual(model.info.precision, "exact")
        for device, other in zip(peridot.devices(), json.loads(command("devices", "--json")), strict=True):
            for name in set(vars(device)) & set(other) - {"heap_budget", "type"}:
                self.assertEqual(getattr(device, name), other[name])

    def test_adapters(self):
        base, lora = golden / "llama/model.gguf", golden / "lora/llama"
        ids = [int(i) for i in (lora / "tokens.txt").read_text().split(",")]

        def error(rows, name):
            want = np.fromfile(lora / name, "<f4").reshape(rows.shape)
            return np.linalg.norm(rows - want) / np.linalg.norm(want)

        with peridot.Model(base, adapters={lora / "first": 1, lora / "second.gguf": 0}) as model:
            self.assertEqual(model.adapters, {"first": 1.0, "second": 0.0})
            with peridot.Session(model, kv="f32", n_sequences=4, n_positions=1024) as session:
                self.assertLess(error(session.sequence().logits(ids), "first.f32"), 1e-4)
                second = session.sequence(adapters={"second": 1})
                self.assertLess(error(second.logits(ids), "second.f32"), 1e-4)
                both = session.sequence(adapters={"first": 0.75, "second": -0.5})
                self.assertLess(error(both.logits(ids), "both.f32"), 1e-4)
                with self.assertRaisesRegex(peridot.ArgumentError, "no adapter third; it has: first, second"):
                    session.sequence(adapters={"third": 1})
            first = model.generate("abc", 8, greedy).read()
            self.assertEqual(model.generate("abc", 8, greedy, adapters={"first": 1.0}).read(), first)
            plain = model.generate("abc", 8, greedy, adapters={}).read()
        with peridot.Model(base) as model:
            self.assertEqual(model.adapters, {})
            self.assertEqual(model.generate("abc", 8, greedy).read(), plain)
        with peridot.Model(base, adapters=[lora / "first"]) as model:
            self.assertEqual(model.adapters, {"first": 1.0})

    def test_tokens(self):
        text = "Once upon a time,\n there was a füchs ✓"
        ids = self.model.encode(text)
        self.assertEqual(ids, [int(i) for i in command("tokenize", "-m", stories, text=text.encode()).split(b",")])
        self.assertEqual(self.model.decode(ids), text)
        with peridot.Model(Path(sys.argv[1]) / "filler.gguf") as filler:
            reply = peridot.Session(filler).sequence().generate(filler.encode_infill("mode", " the"), 20, greedy)
            self.assertEqual(reply.read(), "hello model")
        self.assertRaisesRegex(peridot.UnsupportedError, "fill-in-the-middle", self.model.encode_infill, "a", "b")

    def test_generate(self):
        with peridot.Session(self.model) as session, session.sequence() as sequence:
            pieces = list(sequence.generate(self.ids, 24, greedy))
            self.assertGreater(len(pieces), 12)
            self.assertEqual("".join(pieces), story("--temp", 0, "-n", 24, "Once upon a time"))
            for seed in 7, 8:
                sequence.truncate(0)
                reply = sequence.generate(self.ids, 24, peridot.Sampling(seed=seed, stop=["king"]))
                self.assertEqual(reply.read(), story("--seed", seed, "-n", 24, "--stop", "king", "Once upon a time"))
                self.assertEqual((reply.stats.n_prompt, reply.stats.n_generated), (5, len(reply.tokens)))
            sequence.truncate(0)
            next(sequence.generate(self.ids, 100, greedy))   # and dropped
            gc.collect()
            self.assertLess(sequence.pos, 20)
            sequence.truncate(0)
            sampling = peridot.Sampling(temperature=0, json_schema={"enum": ["yes", "no"]}, bias={5: -1.0})
            self.assertIn(json.loads(sequence.generate(self.ids, 24, sampling).read()), ["yes", "no"])

    def test_draft(self):
        with peridot.Model(stories) as other:
            for draft, name in ("ngram", "ngram"), (other, stories):
                for sampling, args in (greedy, ["--temp", 0]), (peridot.Sampling(seed=7), ["--seed", 7]):
                    reply = self.model.generate("Once upon a time", 48, sampling, draft=draft)
                    self.assertEqual(reply.read(), story(*args, "-n", 48, "--draft", name, "Once upon a time"))
                    self.assertGreaterEqual(reply.stats.n_drafted, reply.stats.n_accepted)
            session = peridot.Session(self.model, draft=other, draft_tokens=3, kv="q8_0")
            sequence = session.sequence()
            for begun in range(2):   # the second goes on after the first
                reply = sequence.generate(self.ids if begun == 0 else [5], 16, greedy)
                reply.read()
                self.assertGreater(reply.stats.n_accepted, 8)
            next(reply := sequence.generate([5], 64, greedy))
        self.assertRaises(StopIteration, lambda: [next(reply) for _ in range(64)])   # its draft model has closed
        self.assertRaisesRegex(ValueError, "is closed", sequence.generate, [5], 4, greedy)
        session.close()
        with peridot.Model(golden / "gemma2-q8_0/model.gguf") as other:
            self.assertRaisesRegex(peridot.Error, "draft", peridot.Session, self.model, draft=other)
        self.assertRaisesRegex(ValueError, "not nothing", peridot.Session, self.model, draft="nothing")

    def test_together(self):
        prompts = ["Once upon a time", "The little fox", "A king"]
        with peridot.Session(self.model, n_sequences=3, ctx=128) as session:
            ids = [self.model.encode(prompt, bos=True) for prompt in prompts]
            replies = [session.sequence().generate(prompt, 16, greedy) for prompt in ids]
            for reply, prompt in zip(replies, prompts):
                self.assertEqual(reply.read(), story("--temp", 0, "-n", 16, prompt))

    def test_awaited(self):
        """Texts that are awaited together are those that are read one after the other."""
        prompts = ["Once upon a time", "The little fox", "A king"]

        async def read(reply):
            return "".join([piece async for piece in reply])

        async def read_all(replies):
            return await asyncio.gather(*map(read, replies))

        with peridot.Session(self.model, n_sequences=3, ctx=128) as session:
            replies = [session.sequence().generate(self.model.encode(prompt, bos=True), 16, greedy)
                       for prompt in prompts]
            for text, prompt in zip(asyncio.run(read_all(replies)), prompts):
                self.assertEqual(text, story("--temp", 0, "-n", 16, prompt))

    def test_find(self):
        os.environ["PERIDOT_MODELS"] = str(root / "models")
        self.addCleanup(os.environ.pop, "PERIDOT_MODELS")
        self.assertEqual(peridot.find("stories"), {"path": stories, "vision": None})
        with peridot.Model("stories") as model:
            self.assertEqual(model.info.vocab_size, self.model.info.vocab_size)
        self.assertRaisesRegex(peridot.FileError, "^no-such-model: ", peridot.Model, "no-such-model")

    def test_completion(self):
        """In OpenAI's form: what a chat says, in one or in parts; the second question reads only what it adds."""
        def ask(messages, **params):
            return self.model.create_chat_completion(messages, temperature=0, repeat_penalty=1, **params)

        messages = [{"role": "user", "content": "The old king"}]
        said = self.model.chat().send("The old king", 12, greedy).read()
        whole = ask(messages, max_tokens=12)
        self.assertEqual((whole["object"], whole["choices"][0]["message"], whole["choices"][0]["finish_reason"]),
                         ("chat.completion", {"role": "assistant", "content": said}, "length"))
        parts = list(ask(messages, max_tokens=12, stream=True))
        self.assertEqual("".join(part["choices"][0]["delta"].get("content", "") for part in parts), said)
        self.assertEqual((parts[-1]["usage"], parts[-1]["choices"][0]["finish_reason"]), (whole["usage"], "length"))
        self.assertEqual(whole["usage"]["completion_tokens"], 12)
        warm = {"temperature": 1.5, "seed": 3}
        drawn = self.model.create_chat_completion(messages, max_tokens=12, **warm)["choices"][0]["message"]["content"]
        self.assertNotEqual(drawn, said)
        self.assertEqual(drawn, self.model.chat().send("The old king", 12, peridot.Sampling(**warm)).read())
        messages += [whole["choices"][0]["message"], {"role": "user", "content": "The fox"}]
        longer = ask(messages, max_tokens=1)
        self.assertGreater(longer["usage"]["prompt_tokens"], whole["usage"]["total_tokens"])
        tools = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]
        with peridot.Model(Path(sys.argv[1]) / "caller.gguf") as model:
            messages = [{"role": "user", "content": "hello"}]
            choice = model.create_chat_completion(messages, tools=tools, temperature=0)["choices"][0]
            call = choice["message"]["tool_calls"][0]
            self.assertEqual((choice["finish_reason"], call["function"]["name"]), ("tool_calls", "add"))
            messages += [choice["message"], {"role": "tool", "tool_call_id": call["id"], "content": "42"}]
            choice = model.create_chat_completion(messages, tools=tools, temperature=0)["choices"][0]
            self.assertEqual((choice["message"]["content"], choice["finish_reason"]), ("hello model", "stop"))

    def test_chat(self):
        lines = command("chat", "-m", stories, "--temp", 0, "-n", 12, text=b"The old king\nThe fox\n").decode()
        chat = self.model.chat()
        for line in "The old king", "The fox":
            reply = chat.send(line, 12, greedy).read() + "\n"
            self.assertEqual(lines[:len(reply)], reply)
            lines = lines[len(reply):]

    def test_drafter(self):
        """Gemma 4's own drafter, which reads the model's cache: the text is the same."""
        path = golden / "gemma4/model.gguf"
        with peridot.Model(path) as model:
            plain = model.generate("a b", 24, greedy).read()
            drafter = peridot.Model(golden / "gemma4-assistant", target=model)
            reply = peridot.Session(model, draft=drafter, draft_tokens=3).sequence().generate(
                model.encode("a b", bos=True), 24, greedy)
            self.assertEqual(reply.read(), plain)
            self.assertGreater(reply.stats.n_drafted, 10)
            self.assertRaisesRegex(peridot.Error, "is a drafter", peridot.Model, golden / "gemma4-assistant")

    def test_thoughts(self):
        """They are apart from the answer, end within a budget, and later turns do not see them."""
        folder = sys.argv[1]
        with peridot.Model(Path(folder) / "thinker.gguf") as model:
            chat = model.chat(think=True)
            for _ in range(2):
                reply = chat.send("hello", 24, greedy)
                self.assertEqual((reply.read(), reply.thought), ("hello model", "us user"))
            self.assertLess(len(model._without_thoughts(reply.tokens)), len(reply.tokens))
            self.assertEqual(chat.ids.count(reply.tokens[0]), 1)   # the mark of a thought
        with peridot.Model(Path(folder) / "ponderer.gguf") as model:
            reply = model.chat(think=6).send("hello", 24, greedy)
            self.assertEqual((reply.read(), len(reply.thought) > 0), ("hello model", True))

    def test_tools(self):
        """A reply calls a function by its schema, and the next one answers with the result."""
        schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                  "required": ["a", "b"], "additionalProperties": False}
        tools = [{"type": "function", "function": {"name": "add", "parameters": schema}}]
        for name in "caller", "caller-gemma4":
            with peridot.Model(Path(sys.argv[1]) / f"{name}.gguf") as model:
                chat = model.chat(tools=tools)
                for _ in range(2):
                    reply = chat.send("hello", 0, greedy)
                    self.assertEqual(reply.read(), "")
                    self.assertEqual([(call.name, call.arguments, call.complete) for call in reply.calls],
                                     [("add", {"a": 2, "b": 40}, True)])
                    self.assertRaisesRegex(ValueError, "1 calls", chat.answer, [])
                    reply = chat.answer(["42"], 0, greedy)
                    self.assertEqual((reply.read(), reply.calls), ("hello model", []))
                self.assertRaises(peridot.FormatError, model.chat,
                                  tools=[{"name": "f", "parameters": {"$ref": "#/nowhere"}}])

    def test_recommended(self):
        """What the publisher recommends is the default; what is given wins; other samplers change a text."""
        folder = Path(sys.argv[1]) / "recommended"
        folder.mkdir()
        for name in "gemma2/config.json", "gemma2/model.safetensors", "gemma2-base/tokenizer.model":
            shutil.copy(golden / name, folder)
        (folder / "generation_config.json").write_text('{"top_k": 1, "temperature": 50, "repetition_penalty": 1.5}')
        with peridot.Model(folder) as model:
            sequence = peridot.Session(model).sequence()

            def texts(**options):
                found = set()
                for seed in range(3):
                    sequence.truncate(0)
                    reply = sequence.generate([2, 5, 7], 8, peridot.Sampling(seed=seed, **options))
                    reply.read()
                    found.add(tuple(reply.tokens))
                return found
            self.assertEqual(len(texts()), 1)
            self.assertGreater(len(texts(top_k=40)), 1)
            self.assertNotEqual(texts(repeat_penalty=1), texts())
            self.assertEqual(texts(repeat_penalty=1), texts(repeat_penalty=1, temperature=0))
            self.assertNotEqual(texts(repeat_penalty=1, dry_multiplier=90, dry_allowed_length=1, dry_breakers=()),
                                texts(repeat_penalty=1))

    def test_limits(self):
        """Numbers that no option of the command takes."""
        for name, value in [("temperature", -1), ("temperature", float("nan")), ("top_p", 1.5), ("top_k", -1),
                            ("min_p", -0.1), ("repeat_penalty", -1), ("presence_penalty", 1e9), ("seed", -1),
                            ("xtc_probability", 2), ("dry_multiplier", float("inf")), ("dry_last_n", -2)]:
            with self.assertRaisesRegex(ValueError, f"^{name} must be from .* to .*, not "):
                peridot.Sampling(**{name: value})

    def test_images(self):
        """All kinds of pictures are one, and a prompt and a chat with them give what the command gives."""
        tiny, copy = golden / "gemma3-vision", Path(sys.argv[1]) / "seeing"
        hot, options = peridot.Sampling(40, 0, 1, 0, seed=5), "--temp 40 --top-k 0 --top-p 1 --min-p 0 --seed 5".split()
        path, pixels = tiny / "image-1.png", np.fromfile(tiny / "pixels.f32", "<f4").reshape(3, 96, 96)
        pixels = np.rint((pixels.transpose(1, 2, 0) + 1) * 127.5).astype(np.uint8)
        with peridot.Model(tiny / "model.gguf", vision=tiny / "mmproj.gguf") as model:
            self.assertEqual(model.info.image_rows, 16)
            image = model.image(path)
            kinds = [str(path), path.read_bytes(), pixels, np.asfortranarray(pixels)]
            try:
                from PIL import Image
                kinds += [Image.open(path), Image.open(path).convert("RGBA")]
            except ImportError:
                pass
            for kind in kinds:
                self.assertEqual(model.image(kind).ids, image.ids)
            self.assertNotEqual(model.image(tiny / "image-2.png").ids, image.ids)
            self.assertEqual((len(image.ids), max(image.ids) < 0), (16, True))
            for wrong in pixels[..., 0], pixels.astype(float):
                self.assertRaisesRegex(ValueError, "not .* of (uint8|float64)", model.image, wrong)
            self.assertRaisesRegex(TypeError, "not int", model.image, 7)
            self.assertRaisesRegex(peridot.Error, "the picture: ", model.image, b"no picture")
            self.assertRaisesRegex(OSError, "none.png", model.image, "none.png")
            whole, cropped = (model.image(tiny / "crops.png", pan_and_scan=each) for each in (False, True))
            self.assertEqual((len(cropped.ids), cropped.ids[:16]), (64, whole.ids))
            self.assertEqual((model.image(pixels, pan_and_scan=True).ids, model.info.image_crops), (image.ids, 4))
            ids = [int(i) for i in (tiny / "tokens.txt").read_text().split(",")]
            begin = ids.index(model.info.image_token)
            ids[begin:begin + 16] = image.ids
            rows = command("logits", "-m", tiny / "model.gguf", "--vision", tiny / "mmproj.gguf", "--image", path,
                           "--tokens", (tiny / "tokens.txt").read_text(), "--out", "-")
            with peridot.Session(model) as session, session.sequence() as sequence:
                np.testing.assert_array_equal(sequence.logits(ids), np.frombuffer(rows, "<f4").reshape(len(ids), -1))
            one, other = (model.generate("the cat", 8, hot, images=[each]) for each in (path, tiny / "image-2.png"))
            gc.collect()   # nothing but the replies refers to the images
            one.read(), other.read()
            self.assertNotEqual(one.tokens, other.tokens)
        with peridot.Model(tiny / "model.gguf") as model:
            self.assertRaisesRegex(peridot.UnsupportedError, "does not see images", model.generate, "a", images=[path])
        shutil.copytree(tiny, copy)
        (copy / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}))
        with peridot.Model(copy) as model:
            chat = model.chat()
            for k in 1, 2:
                reply = chat.send("the cat", 8, hot, images=[path] * k)
                reply.read()
                if k == 1:
                    made = command("run", "-m", copy, *options, "-n", 8, "--ids", "--image", path, "the cat")
                    self.assertEqual(reply.tokens, [int(i) for i in made.split(b",")][:len(reply.tokens)])
                self.assertEqual(sum(i < 0 for i in chat.ids), 16 * k * (k + 1) // 2)
            long = tiny / "crops.png"
            reply = model.chat().send("the cat", 8, hot, images=[model.image(long, pan_and_scan=True)])
            made = command("run", "-m", copy, *options, "-n", 8, "--ids", "--image", long, "--pan-and-scan", "the cat")
            self.assertEqual((reply.read() and reply.tokens), [int(i) for i in made.split(b",")][:len(reply.tokens)])
            again = model.chat()
            again._tools = [{"type": "function", "function": {"name": "add"}}]   # whose calls it has no bytes to write
            for images in [path], ():
                again.send("the cat", 4, greedy, images=images).read()
                self.assertEqual(sum(i < 0 for i in again.ids), 16)

        with peridot.Model(golden / "gemma4-vision") as model:
            self.assertRaisesRegex(peridot.UnsupportedError, "pan and scan is Gemma 3's",
                                   lambda: model.image(path, pan_and_scan=True))

    def test_rows(self):
        model, ids = peridot.Model(golden / "gemma2-q8_0/model.gguf"), [2, 5, 7, 11]
        with model, peridot.Session(model) as session, session.sequence() as sequence:
            for kind, width in ("logits", model.info.n_outputs), ("hidden", model.info.d_model):
                rows = command(kind, "-m", golden / "gemma2-q8_0/model.gguf", "--tokens", "2,5,7,11", "--out", "-")
                sequence.truncate(0)
                rows = np.frombuffer(rows, "<f4").reshape(4, width)
                np.testing.assert_array_equal(getattr(sequence, kind)(ids), rows)
            sequence.truncate(0)
            logits = sequence.logits(ids).astype(float)
            np.testing.assert_array_equal(sequence.logits(), logits[-1].astype(np.float32))
            sequence.truncate(1)
            scores, best = sequence.score(ids[1:], first=2)
            for k in 2, 3:
                self.assertAlmostEqual(scores[k - 2], logits[k - 1][ids[k]] - np.log(np.exp(logits[k - 1]).sum()), 4)
                self.assertEqual(best[k - 2], logits[k - 1].argmax() == ids[k])

    def test_embed(self):
        texts = ["the cat", "a", *map(str, range(40)), "one two " * 40]
        for pool in "mean", "last", "cls":
            rows = [json.loads(line) for line in command("embed", "-m", stories, "--pool", pool, *texts).splitlines()]
            np.testing.assert_allclose(self.model.embed(texts, pool=pool), rows, atol=2e-6)

    def test_embedding_model(self):
        texts = ["the cat", "a", "one two " * 40]
        for name in "embedding-gemma", "embedding-gemma2/model.gguf":
            with peridot.Model(golden / name) as model:
                self.assertEqual(model.tasks["document"], "title: none | text: ")
                for how in {}, {"task": "document"}, {"dimensions": 16, "pool": "cls"}:
                    options = [word for key, value in how.items() for word in (f"--{key}", value)]
                    lines = command("embed", "-m", golden / name, *options, *texts).splitlines()
                    rows = [json.loads(line) for line in lines]
                    np.testing.assert_allclose(model.embed(texts, **how), rows, atol=2e-6)
                self.assertRaises(peridot.ArgumentError, model.embed, texts, dimensions=49)
                self.assertRaises(ValueError, model.embed, texts, task="poetry")

    def test_save(self):
        path, session = Path(sys.argv[1], "sequence"), peridot.Session(self.model, n_sequences=3, kv="q8_0")
        sequence = session.sequence()
        begun = sequence.generate(self.ids, 8, peridot.Sampling(seed=3))
        written = begun.read()
        sequence.save(path)
        last = sequence.fork().generate(begun.tokens[-1:], 8, None).read()
        self.assertEqual(session.load(path).generate(begun.tokens[-1:], 8, None).read(), last)
        self.assertEqual(written + last, story("--kv", "q8_0", "--seed", 3, "-n", 16, "Once upon a time"))

    def test_errors(self):
        with self.assertRaisesRegex(OSError, "none.gguf: No such file"):
            peridot.Model("none.gguf")
        with self.assertRaisesRegex(peridot.DeviceError, "nowhere"):
            peridot.Model(stories, device="nowhere")
        with self.assertRaisesRegex(ValueError, "contradicts precision exact|lacks"):
            peridot.Model(stories, precision="exact", kernels=["matmul=dot"])
        with peridot.Session(self.model, ctx=8) as session, session.sequence() as sequence:
            with self.assertRaisesRegex(ValueError, "context of 8 positions"):
                sequence.eval(range(9))
            with self.assertRaisesRegex(OverflowError, ""):
                sequence.eval([2**32 + 2])

    def test_lifetimes(self):
        model = peridot.Model(stories)
        sequence = peridot.Session(model).sequence()   # nothing else refers to the session
        reply = sequence.generate(self.ids, 100)
        next(reply)
        model.close()
        for use in sequence.logits, lambda: sequence.pos, lambda: peridot.Session(model):
            self.assertRaisesRegex(ValueError, "is closed", use)
        reply.close()
        sequence = peridot.Session(peridot.Model(stories)).sequence()
        gc.collect()
        sequence.eval(self.ids)
        self.assertEqual(list(sequence.tokens), self.ids)

    def test_interrupt(self):
        with peridot.Session(self.model, chunk=1) as session, session.sequence() as sequence:
            with self.assertRaises(KeyboardInterrupt):
                sequence.eval(self.ids * 100, progress=lambda *_: os.kill(os.getpid(), signal.SIGINT))
            self.assertLess(sequence.pos, 500)
            sequence.eval([5])   # goes on
        for call in {"progress": lambda done, total: 1 / 0}, {"log": lambda message: 1 / 0}:
            self.assertRaises(ZeroDivisionError, peridot.Model, stories, **call)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
