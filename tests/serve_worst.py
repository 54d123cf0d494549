"""The worst that one client can ask of peridot serve, and what another gets meanwhile:
serve_worst.py URL KIND... [--pid PID] [--seconds S]

Kinds are those of `attacks` below. While each goes on, short requests are sent, one after the other, each on a
connection of its own, for S seconds. Fails where one of them is refused or waits for 2 s, one with a picture for 10;
and, with the server's process id, where SIGTERM does not end it within 10 s of the last attack. All come from one
address: what tells clients apart is what they ask for.
"""

import argparse
import base64
import json
import os
import pathlib
import resource
import signal
import socket
import struct
import sys
import threading
import time
import urllib.parse
import zlib

options = argparse.ArgumentParser()
options.add_argument("url")
options.add_argument("kinds", nargs="+")
options.add_argument("--pid", type=int)
options.add_argument("--seconds", type=float, default=6)
options.add_argument("--pictures", action="store_true", help="the model sees: others ask with a picture as well")
options.add_argument("--key", help="of the attacker; the others have --other-key")
options.add_argument("--other-key")
args = options.parse_args()
address = urllib.parse.urlsplit(args.url)
host, port = address.hostname, address.port
ended = threading.Event()
MB = 1 << 20


def request(path, body, key=None):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
    head += f"Authorization: Bearer {key}\r\n" if key else ""
    return head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body


def open_socket(timeout=120):
    return socket.create_connection((host, port), timeout=timeout)


def answer_of(s):
    """The status, when the whole head has come; 0: the connection was closed."""
    got = b""
    while b"\r\n\r\n" not in got:
        piece = s.recv(65536)
        if not piece:
            return 0, b""
        got += piece
    head, body = got.split(b"\r\n\r\n", 1)
    lines = [line.lower() for line in head.split(b"\r\n")]
    size = next((int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length")), 0)
    while len(body) < size:
        piece = s.recv(65536)
        if not piece:
            break
        body += piece
    return int(head.split()[1]), body


def post(path, body, key=None, timeout=120):
    with open_socket(timeout) as s:
        s.sendall(request(path, body, key))
        return answer_of(s)


def png(width, height):
    """All of one colour, and small in a file."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    packer = zlib.compressobj(9)
    row = bytes(1 + 3 * width)
    data = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def chat(content, **more):
    return {"messages": [{"role": "user", "content": content}], "max_tokens": 4, "seed": 1, **more}


def seen(data, n=1):
    url = "data:image/png;base64," + base64.b64encode(data).decode()
    return [{"type": "image_url", "image_url": {"url": url}}] * n + [{"type": "text", "text": "What is it?"}]


# ---- attacks: each gives (path, body) for as many requests as it sends at the same time ----

def long():
    """Prompts of letters that no context holds."""
    return [("/v1/completions", b'{"max_tokens": 1, "prompt": "' + b"ab" * (31 * MB // 2) + b'"}')] * 4


def fitting():
    """Prompts that are too long, but not by their size alone."""
    return [("/v1/completions", b'{"max_tokens": 1, "prompt": "' + b"abcdefgh" * 2000 + b'"}')] * 40


def spaces():
    return [("/v1/chat/completions", json.dumps(chat(" " * 8 * MB)).encode())] * 4


def left():
    """Prompts of clients that do not wait."""
    return long() + fitting()


def turns():
    """Of 100,000 messages the oldest are to be left out."""
    some = [{"role": ("user", "assistant")[i % 2], "content": f"It is {i} now."} for i in range(99999)]
    body = json.dumps({"messages": some, "full": "drop", "max_tokens": 4}).encode()
    return [("/v1/chat/completions", body)] * 4


def pictures():
    """64 pictures of 100 million pixels: two requests of 32."""
    large = base64.b64encode(png(10000, 10000)).decode()
    parts = [{"type": "image_url", "image_url": {"url": "data:image/png;base64," + large}}] * 32
    return [("/v1/chat/completions", json.dumps(chat(parts)).encode())] * 2


def single_pictures():
    return [("/v1/chat/completions", json.dumps(chat(seen(png(10000, 10000)))).encode())] * 64


def patterns():
    """24 patterns at the limit of what may be compiled; none is one that the server had before."""
    bodies = []
    for i in range(24):
        schema = {"type": "string", "pattern": f"^(a|b)*a(a|b){{{15 + i % 3}}}@{i}$"}
        bodies.append({"prompt": "a", "max_tokens": 2, "response_format": {"type": "json_schema", "json_schema": {
            "name": "x", "schema": schema}}})
    return [("/v1/completions", json.dumps(body).encode()) for body in bodies]


def streams():
    body = json.dumps(chat("The king said", max_tokens=400, stream=True, logit_bias={"1": -100}) | {"max_tokens": 400})
    return [("/v1/chat/completions", body.encode())] * 1100


attacks = {f.__name__: f for f in (long, fitting, spaces, left, turns, pictures, single_pictures, patterns, streams)}


def attack(kind):
    """Sends all at once, and again what was answered, until the end."""
    sockets = []

    def one(path, body):
        n = 0
        while not ended.is_set():
            try:
                with open_socket() as s:
                    sockets.append(s)
                    n += 1
                    s.sendall(request(path, body.replace(b"@", b"%dx" % n) if kind == "patterns" else body, args.key))
                    if kind == "left":
                        time.sleep(0.2)
                    while kind != "left" and s.recv(65536):
                        if kind in ("streams",):
                            continue
                        break
            except OSError:
                pass
            time.sleep(0.05)

    threads = [threading.Thread(target=one, args=each, daemon=True) for each in attacks[kind]()]
    for thread in threads:
        thread.start()
    return sockets


def pages():
    """Connections that ask for the page many times over and do not read it."""
    sockets = []
    for _ in range(900):
        try:
            s = open_socket(5)
            s.setblocking(False)
            s.send(f"GET / HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode() * 400)
            sockets.append(s)
        except OSError:
            pass
    return sockets


def ask(what, path, body, most, found):
    began = time.monotonic()
    try:
        status, answer = post(path, body, args.other_key, most + 60)
    except OSError as e:
        status, answer = 0, str(e).encode()
    waited = time.monotonic() - began
    worst, n, failed = found.get(what, (0, 0, ""))
    if status != 200 or waited >= most:
        failed = failed or f"{what}: {status} after {waited:.2f} s: {answer[:200]!r}"
    found[what] = (max(worst, waited), n + 1, failed)


def other(found):
    """The other client: a text, a text of a schema or one with a picture."""
    schema = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 9}}, "required": ["name"]}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    end, n = time.monotonic() + args.seconds, 0
    while time.monotonic() < end:
        n += 1
        ask("a text", "/v1/chat/completions", chat("Hello", seed=n), 2, found)
        schema["properties"]["name"]["maxLength"] = 5 + n   # which none had before
        if not args.pictures:   # its vocabulary cannot write JSON
            ask("a schema", "/v1/completions", {"prompt": "A", "max_tokens": 4, "response_format": form}, 2,
                found)
        if args.pictures:
            ask("a picture", "/v1/chat/completions", chat(seen(png(64, 48 + n % 8))), 10, found)
        time.sleep(0.1)


def runs(pid):
    """It is there, and not only for its parent to wait for."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def main():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    threading.stack_size(256 << 10)
    failures = []
    for kind in args.kinds:
        found = {}
        ended.clear()
        sockets = pages() if kind == "pages" else attack(kind)
        time.sleep(1.0)
        other(found)
        print(f"{kind}: " + ", ".join(f"{worst:.2f} s for {what} ({n})" for what, (worst, n, _) in found.items()),
              flush=True)
        failures += [f"{kind}: {failed}" for _, _, failed in found.values() if failed]
        last = kind == args.kinds[-1]
        if last and args.pid:
            began = time.monotonic()
            os.kill(args.pid, signal.SIGTERM)
            while time.monotonic() - began < 60 and runs(args.pid):
                time.sleep(0.05)
            waited = time.monotonic() - began
            print(f"{kind}: SIGTERM ends the server after {waited:.2f} s", flush=True)
            if waited >= 10:
                failures.append(f"{kind}: SIGTERM: {waited:.1f} s")
        ended.set()
        for s in sockets:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()
        if not last:
            time.sleep(2)
    for failure in failures:
        print("FAILED:", failure, flush=True)
    os._exit(bool(failures))


main()
