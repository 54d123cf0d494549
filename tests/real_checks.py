"""What tests/real.sh checks of a model: real_checks.py PERIDOT MODEL.gguf GOLDEN.json FOLDER. Needs nothing but Python;
the golden data are transformers' (tools/golden/real.py), of the same weights as they are when they are dequantised."""
import array
import json
import math
import os
import random
import re
import struct
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

SCHEMA = {"type": "object", "additionalProperties": False, "required": ["city", "people"], "properties": {
    "city": {"type": "string", "maxLength": 20}, "people": {"type": "integer", "minimum": 1, "maximum": 99999999}}}
TOOL = {"type": "function", "function": {"name": "find_stone", "description": "Finds a stone by its colour.",
        "parameters": {"type": "object", "additionalProperties": False, "required": ["colour"], "properties": {
            "colour": {"enum": ["green", "red", "blue"]}}}}}
RANK, ALPHA = 4, 8


def adapter(folder, n_layers, q_rows, d_model, seed=7):
    """A PEFT directory for all q projections, drawn from a seed. -> tensors by name: (rows, columns, numbers)"""
    draw, tensors, header, data = random.Random(seed), {}, {}, bytearray()
    for i in range(n_layers):
        for part, rows, columns in (("A", RANK, d_model), ("B", q_rows, RANK)):
            name = f"base_model.model.model.layers.{i}.self_attn.q_proj.lora_{part}.weight"
            numbers = array.array("f", (0.05 * (2 * draw.random() - 1) for _ in range(rows * columns)))
            tensors[name] = rows, columns, numbers
            header[name] = {"dtype": "F32", "shape": [rows, columns],
                            "data_offsets": [len(data), len(data) + 4 * len(numbers)]}
            data += numbers.tobytes()
    text = json.dumps(header).encode()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (folder / "adapter_config.json").write_text(json.dumps(
        {"peft_type": "LORA", "r": RANK, "lora_alpha": ALPHA, "target_modules": ["q_proj"], "bias": "none"}))
    return tensors


class Server:
    """peridot serve, and what it answers"""

    def __init__(self, peridot, model, *options):
        self.command = [peridot, "serve", "-m", model, "--port", 0, "--parallel", 1, *options]

    def __enter__(self):
        self.process = subprocess.Popen(list(map(str, self.command)), stderr=subprocess.PIPE, text=True,
                                        stdout=subprocess.DEVNULL)
        said = []
        for line in self.process.stderr:   # which ends with the server
            said.append(line)
            if found := re.search(r"http://[0-9.]+:[0-9]+", line):
                self.url = found.group(0)
                threading.Thread(target=self.process.stderr.read, daemon=True).start()
                return self
        raise SystemExit("".join(said))

    def __exit__(self, *error):
        self.process.terminate()
        self.process.wait(30)

    def ask(self, path, body):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=300) as answer:
            return json.load(answer)


def turns(peridot, model, folder, n, n_points, *options, seed=5):
    """A conversation of n turns where the context is always full: the oldest turns are left out, messages are edited,
    replies asked for again, some by a schema, all with drafts. -> of n_points replies at random, how many a process
    that evaluates the same prompt from its beginning writes, too; and how many prompts had turns left out"""
    draw, n_same, n_cut = random.Random(seed), 0, 0
    points = draw.sample(range(n), n_points)
    exact = "--precision", "exact", "--kv", "f32", "--temp", "0"
    words = "the fox ran over a hill to see what old river and green stone his friend had found there".split()
    schema = Path(folder) / "turns.json"
    schema.write_text(json.dumps(SCHEMA))
    messages = [{"role": "system", "content": "You tell of animals."}]
    with Server(peridot, model, *exact, "--draft", "ngram", "--draft-tokens", 3, *options) as server:
        for i in range(n):
            kind, said = draw.random(), " ".join(draw.choice(words) for _ in range(draw.randint(3, 20)))
            if kind < 0.15 and len(messages) > 2:     # again
                messages.pop()
            elif kind < 0.3 and len(messages) > 4:    # another question, not long ago
                del messages[-2 * draw.randint(1, 2):]
                messages.append({"role": "user", "content": "No: " + said})
            else:
                messages.append({"role": "user", "content": said})
            by_schema, length = draw.random() < 0.15, draw.choice((8, 16, 24))
            body = {"messages": messages, "max_tokens": length, "full": "drop"}
            if by_schema:
                body["response_format"] = {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}
            answer = server.ask("/v1/chat/completions", body)
            reply, n_dropped = answer["choices"][0]["message"]["content"] or "", answer["dropped_messages"]
            n_cut += n_dropped > 0
            if i in points:
                kept = messages[:1] + messages[1 + n_dropped:]
                prompt = server.ask("/apply-template", {"messages": kept})["prompt"]
                got = subprocess.run([peridot, "run", "-m", model, *exact, "-n", str(length), "--raw", "--special",
                                      *(["--json-schema", schema] if by_schema else []), "--", prompt],
                                     capture_output=True, check=True).stdout.decode()
                same = got.rstrip("\n") == reply.rstrip("\n")
                n_same += same
                if not same:
                    print(f"turn {i}: {reply!r}, and from the beginning {got!r}", flush=True)
            messages.append({"role": "assistant", "content": reply})
    return n_same, n_cut


class Checks:
    def __init__(self, peridot, model, golden, folder):
        self.peridot, self.model, self.folder = peridot, model, Path(folder)
        self.golden = json.loads(Path(golden).read_text())
        self.n = self.n_failed = 0

    def check(self, what, good, found=""):
        self.n += 1
        self.n_failed += not good
        if not good or found:
            print(f"{'' if good else 'FAILED: '}{what}{': ' if found else ''}{found}", flush=True)

    def run(self, command, *args, stdin=None):
        """-> bytes of standard output"""
        done = subprocess.run([self.peridot, command, "-m", self.model, *map(str, args)], input=stdin,
                              capture_output=True, timeout=300)
        self.check(f"{command} {' '.join(map(str, args))[:60]}: status 0", done.returncode == 0,
                   "" if done.returncode == 0 else done.stderr.decode(errors="replace")[-300:])
        return done.stdout

    def logits(self, ids, *args):
        out = self.folder / "logits.f32"
        self.run("logits", "--tokens", ",".join(map(str, ids)), "--out", out, *args)
        rows = array.array("f", out.read_bytes())
        return [rows[i * len(rows) // len(ids):(i + 1) * len(rows) // len(ids)] for i in range(len(ids))]

    def compare_logits(self, what, want, *args):
        """The numbers that the golden data keep of some rows, a part of each: (position, {column: number})"""
        rows = self.logits(want["ids"], "--precision", "exact", "--kv", "f32", *args)
        worst = max(abs(rows[p][int(c)] - x) for p, part in want["rows"] for c, x in part.items())
        self.check(f"{what} are transformers'", worst <= 3e-4, f"{worst:.1e} apart")
        first = all(max(range(len(rows[p])), key=rows[p].__getitem__) == int(max(part, key=part.get))
                    for p, part in want["rows"])
        self.check(f"{what}: the first choice is the same", first)
        return rows

    def test_logits(self):
        exact = self.compare_logits("logits", self.golden["logits"])
        rows, kl = self.logits(self.golden["logits"]["ids"]), []
        for p, q in zip(exact, rows):
            top = max(p)
            p, q = ([math.exp(x - top) for x in row] for row in (p, q))
            sum_p, sum_q = sum(p), sum(q)
            kl.append(sum(x / sum_p * math.log(x / sum_p / (y / sum_q)) for x, y in zip(p, q) if x and y))
        self.check("the default precision is near", max(kl) <= 1e-4, f"KL {max(kl):.1e}")

    def test_tokens(self):
        for text, ids in self.golden["tokens"]:
            got = self.run("tokenize", "--", text).decode().strip()
            self.check(f"tokens of {text[:30]!r}", got == ",".join(map(str, ids)))

    def test_greedy(self):
        for c in self.golden["greedy"]:
            got = self.run("run", "--temp", 0, "-n", len(c["ids"]), "--ids", *c["options"], "--", c["prompt"])
            got = [int(x) for x in got.decode().replace(",", " ").split()]
            self.check(f"greedy text of {c['prompt'][:30]!r}", got == c["ids"][:len(got)] and len(got) >= c["least"])
        c = self.golden["greedy"][0]
        got = self.run("run", "--temp", 0, "-n", len(c["ids"]), "--ids", *c["options"], "--draft", self.model,
                       "--draft-tokens", 3, "--", c["prompt"])
        got = [int(x) for x in got.decode().replace(",", " ").split()]
        self.check("a draft changes nothing", got == c["ids"][:len(got)] and len(got) >= c["least"])

    def test_perplexity(self):
        want = self.golden["perplexity"]
        (self.folder / "text.txt").write_text(want["text"])
        for kv, most in (("f32", 1e-4), ("f16", 2e-3), ("q8_0", 5e-3)):
            out = self.run("perplexity", "-f", self.folder / "text.txt", "--ctx", want["ctx"], "--method", "llama.cpp",
                           "--kv", kv, *(["--precision", "exact"] if kv == "f32" else []))
            got = float(re.search(r"^perplexity: ([0-9.]+)", out.decode(), re.M).group(1))
            self.check(f"perplexity with a cache in {kv}", abs(got / want["value"] - 1) <= most,
                       f"{got:.4f}, transformers {want['value']:.4f}")

    def test_embedding(self):
        want = self.golden["embedding"]
        out = self.run("embed", "--precision", "exact", "--kv", "f32", "--", *[e["text"] for e in want])
        for e, line in zip(want, out.decode().splitlines(), strict=True):
            vector = json.loads(line)
            worst = max(abs(vector[int(c)] - x) for c, x in e["columns"].items())
            self.check(f"vector of {e['text'][:30]!r}", worst <= 1e-5, f"{worst:.1e} apart")

    def test_adapter(self):
        want = self.golden["adapter"]
        adapter(self.folder / "adapter", want["n_layers"], want["q_rows"], want["d_model"])
        self.compare_logits("logits with an adapter", want, "--lora", self.folder / "adapter")

    def test_schema(self):
        (self.folder / "schema.json").write_text(json.dumps(SCHEMA))
        out = json.loads(self.run("run", "--temp", 0, "-n", 80, "--json-schema", self.folder / "schema.json", "--",
                                  "Name a city and how many people live there, as JSON."))
        self.check("a reply by a schema", list(out) == ["city", "people"] and isinstance(out["people"], int)
                   and 1 <= out["people"] <= 99999999 and len(out["city"]) <= 20, json.dumps(out))

    def test_tools(self):
        if not self.golden["chats"]:
            return
        with Server(self.peridot, self.model, "--ctx", 1024) as server:
            body = {"messages": [{"role": "user", "content": "Find me a green stone."}], "tools": [TOOL],
                    "tool_choice": "required", "temperature": 0, "max_tokens": 80}
            call = server.ask("/v1/chat/completions", body)["choices"][0]["message"]["tool_calls"][0]["function"]
        self.check("a call of a tool", call["name"] == "find_stone"
                   and json.loads(call["arguments"]).get("colour") in ("green", "red", "blue"), json.dumps(call))

    def test_turns(self):
        if self.golden["chats"] and os.environ.get("PERIDOT_TEST_ALL"):
            found = turns(self.peridot, self.model, self.folder, 200, 40, "--ctx", 384)
            self.check("200 turns at the edge of the context", found[0] == 40 and found[1] > 20,
                       f"{found[0]} of 40 replies as from the beginning; {found[1]} prompts without their oldest turns")

    def all(self):
        for name in sorted(n for n in dir(self) if n.startswith("test_")):
            getattr(self, name)()
        print(f"{Path(self.model).name}: {self.n} checks, {self.n_failed} failed")
        return self.n_failed


if __name__ == "__main__":
    if sys.argv[1] == "--turns":   # PERIDOT MODEL FOLDER TURNS POINTS OPTIONS...: of a small model
        n_same, n_cut = turns(*sys.argv[2:5], *map(int, sys.argv[5:7]), *sys.argv[7:])
        print(f"{n_same} of {sys.argv[6]} replies are the same; {n_cut} of {sys.argv[5]} prompts were cut")
        sys.exit(n_same != int(sys.argv[6]) or not n_cut)
    sys.exit(Checks(*sys.argv[1:5]).all() != 0)
