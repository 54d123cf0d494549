"""Load on peridot serve: serve_load.py http://HOST:PORT [--clients 64] [--requests 2000] [--pid PID]

Every text is one that was asked for alone before: under load it must be the same. A third of the requests is cut off at
random. Prints what was wrong or lost, times to the first and between tokens beside those of one client alone, and, with
the server's process id, its memory before and after. Fails where a text was wrong or lost, or the server kept memory:
LEAK more than it had after the first requests of so many clients.
"""

import argparse
import http.client
import json
import random
import statistics
import threading
import time
import urllib.parse

options = argparse.ArgumentParser()
options.add_argument("url")
options.add_argument("--clients", type=int, default=64)
options.add_argument("--requests", type=int, default=2000)
options.add_argument("--cut", type=float, default=1 / 3)
options.add_argument("--seed", type=int, default=1)
options.add_argument("--pid", type=int)
options.add_argument("--key", default="none")
options.add_argument("--tokens", type=int, default=48, help="of a reply at most")
args = options.parse_args()
address = urllib.parse.urlsplit(args.url).netloc
LEAK = 0.02
words = "the king had three sons who went into the wood and met an old woman by the water with a golden bird".split()


def body(i):
    """Request i of those that there are: lengths are mixed, some begin alike."""
    r = random.Random(i)
    prompt = "Once upon a time " * (i % 3 == 0) + " ".join(r.choices(words, k=r.choice([2, 8, 30, 90, 200])))
    return {"messages": [{"role": "user", "content": prompt}], "stream": True, "seed": i, "temperature": 1.0,
            "max_tokens": r.randint(2, args.tokens), "stream_options": {"include_usage": True}}


class Cut(Exception):
    pass


def ask(i, cut_after=None):
    """The text, and the times of its tokens; Cut after so many events."""
    connection = http.client.HTTPConnection(address, timeout=300)
    begun, times, text, ended, usage = time.monotonic(), [], "", False, None
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(body(i)),
                           {"Content-Type": "application/json", "Authorization": "Bearer " + args.key})
        answer = connection.getresponse()
        if answer.status != 200:
            raise RuntimeError(f"status {answer.status}: {answer.read(300)}")
        n = 0
        while True:
            line = answer.readline()
            if not line:
                break
            if not line.startswith(b"data: "):
                continue
            if line.strip() == b"data: [DONE]":
                ended = True
                break
            event = json.loads(line[6:])
            if "error" in event:
                raise RuntimeError(event["error"]["message"])
            usage = event.get("usage") or usage
            content = event["choices"][0]["delta"].get("content") if event["choices"] else None
            if content:
                times.append(time.monotonic())
                text += content
            n += 1
            if cut_after is not None and n > cut_after:
                raise Cut
        if not ended:
            raise RuntimeError("the stream ended early")
        return text, begun, times, usage
    finally:
        connection.close()


def memory():
    if not args.pid:
        return 0
    with open(f"/proc/{args.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def quantiles(values):
    values = sorted(values)
    return (statistics.median(values), values[int(0.95 * (len(values) - 1))]) if values else (0, 0)


class Times:
    def __init__(self):
        self.first, self.following, self.tokens, self.begun = [], [], 0, time.monotonic()

    def add(self, begun, times, usage):
        if times:
            self.first.append(times[0] - begun)
        self.following += [b - a for a, b in zip(times, times[1:])]
        self.tokens += usage["completion_tokens"]

    def show(self, name):
        seconds = time.monotonic() - self.begun
        print(f"{name}: first token p50 {quantiles(self.first)[0]:.3f} s, p95 {quantiles(self.first)[1]:.3f} s; next "
              f"p50 {1e3 * quantiles(self.following)[0]:.1f} ms, p95 {1e3 * quantiles(self.following)[1]:.1f} ms; "
              f"{self.tokens / seconds:.1f} tokens/s")


n_kinds = min(40, args.requests)
alone, expected = Times(), {}
for i in range(n_kinds):
    expected[i], begun, times, usage = ask(i)
    alone.add(begun, times, usage)
alone.show("1 client")

lock = threading.Lock()
choices = random.Random(args.seed)
left = args.requests
counts = {"right": 0, "wrong": 0, "lost": 0, "cut": 0}
examples = []
together = Times()


def client():
    global left
    while True:
        with lock:
            if left == 0:
                return
            left -= 1
            i = choices.randrange(n_kinds)
            cut = choices.randrange(0, 40) if choices.random() < args.cut else None
        try:
            text, begun, times, usage = ask(i, cut)
            with lock:
                counts["right" if text == expected[i] else "wrong"] += 1
                together.add(begun, times, usage)
                if text != expected[i] and len(examples) < 3:
                    examples.append((i, expected[i], text))
        except Cut:
            with lock:
                counts["cut"] += 1
        except Exception as e:
            with lock:
                counts["lost"] += 1
                if len(examples) < 3:
                    examples.append((i, repr(e)))


def run(n):
    threads = [threading.Thread(target=client) for _ in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


total, left = left, args.clients   # the memory that so many take is not to count
run(args.clients)
together, left, counts = Times(), total, dict.fromkeys(counts, 0)
before = memory()
run(args.clients)
together.show(f"{args.clients} clients")
time.sleep(1)
after = memory()
print(f"{total} requests: " + ", ".join(f"{n} {name}" for name, n in counts.items()))
leaks = after > (1 + LEAK) * before
if args.pid:
    change = 100 * (after - before) / before
    print(f"memory: {before} KiB before, {after} KiB after ({change:+.1f} %{', a leak' if leaks else ''})")
for example in examples:
    print(*example, sep="\n    ")
raise SystemExit(counts["wrong"] + counts["lost"] > 0 or leaks)
