"""What an attacker sends to peridot serve: serve_attacks.py http://HOST:PORT [--all] [--pid PID]

The server must have been started with --timeout 2 and no key. Prints what was tried, how often, and what was answered;
fails where two requests were made of what is one, where the server stops answering, or where its memory grows. --all:
10,000 connections and fuzzed requests by the thousand.
"""

import argparse
import collections
import random
import re
import socket
import time
import urllib.parse

options = argparse.ArgumentParser()
options.add_argument("url")
options.add_argument("--all", action="store_true")
options.add_argument("--pid", type=int)
args = options.parse_args()
address = urllib.parse.urlsplit(args.url)
host, port = address.hostname, address.port
HOST = f"Host: {host}:{port}\r\n".encode()
failures = []


def check(good, what):
    if not good:
        failures.append(what)
        print("FAILED:", what)


def send(data, wait=1.0, limit=1 << 20):
    """All that comes back until the server closes, or says nothing for so long."""
    got = b""
    with socket.create_connection((host, port), timeout=wait) as s:
        try:
            s.sendall(data)
            while len(got) < limit:
                piece = s.recv(65536)
                if not piece:
                    break
                got += piece
        except (TimeoutError, ConnectionError):
            pass
    return got


def statuses(got):
    return [int(status) for status in re.findall(rb"HTTP/1\.[01] ([0-9]{3}) ", got)]


def alive():
    began = time.monotonic()
    good = statuses(send(b"GET /health HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n", 5)) == [200]
    return good and time.monotonic() - began < 2


def memory():
    if not args.pid:
        return 0
    with open(f"/proc/{args.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


POST = b"POST /tokenize HTTP/1.1\r\n" + HOST
SECOND = b"GET /v1/models HTTP/1.1\r\n" + HOST + b"\r\n"
BODY = b'{"content": "a"}'


def length(n):
    return b"Content-Length: %d\r\n" % n


def chunked(body):
    return b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)


# Bytes after what one of the two lengths says must never be a request of their own that is answered.
smuggling = {
    "Content-Length and Transfer-Encoding":
        POST + length(len(BODY)) + b"Transfer-Encoding: chunked\r\n\r\n" + b"0\r\n\r\n" + SECOND,
    "Transfer-Encoding and a long Content-Length":
        POST + b"Transfer-Encoding: chunked\r\n" + length(500) + b"\r\n" + chunked(BODY) + SECOND,
    "two Content-Lengths": POST + length(len(BODY)) + length(len(BODY) + len(SECOND)) + b"\r\n" + BODY + SECOND,
    "two in one": POST + b"Content-Length: 16, 80\r\n\r\n" + BODY + SECOND,
    "negative": POST + b"Content-Length: -1\r\n\r\n" + SECOND,
    "plus": POST + b"Content-Length: +16\r\n\r\n" + BODY + SECOND,
    "hexadecimal": POST + b"Content-Length: 0x10\r\n\r\n" + BODY + SECOND,
    "too large for 64 bits": POST + b"Content-Length: 18446744073709551632\r\n\r\n" + BODY + SECOND,
    "space before the colon": POST + b"Content-Length : 16\r\n\r\n" + BODY + SECOND,
    "obs-fold": POST + b"Content-Length:\r\n 16\r\n\r\n" + BODY + SECOND,
    "folded Transfer-Encoding": POST + b"Transfer-Encoding:\r\n chunked\r\n" + length(5) + b"\r\n0\r\n\r\n" + SECOND,
    "xchunked": POST + b"Transfer-Encoding: xchunked\r\n" + length(5) + b"\r\n0\r\n\r\n" + SECOND,
    "chunked, identity": POST + b"Transfer-Encoding: chunked, identity\r\n" + length(5) + b"\r\n0\r\n\r\n" + SECOND,
    "chunked with a tab": POST + b"Transfer-Encoding:\tchunked\r\n" + length(5) + b"\r\n0\r\n\r\n" + SECOND,
    "two Transfer-Encodings":
        POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n" + length(5) + b"\r\n0\r\n\r\n" + SECOND,
    "chunk size with a sign": POST + b"Transfer-Encoding: chunked\r\n\r\n+10\r\n" + BODY + b"\r\n0\r\n\r\n" + SECOND,
    "chunk size too large": POST + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n" + BODY + SECOND,
    "chunk without its end": POST + b"Transfer-Encoding: chunked\r\n\r\n10\r\n" + BODY + b"XX" + SECOND,
    "NUL in a header": POST + b"X-A: a\0b\r\n" + length(len(BODY)) + b"\r\n" + BODY + SECOND,
    "bare CR": POST + b"X-A: a\rContent-Length: 0\r\n" + length(len(BODY)) + b"\r\n" + BODY,
    "GET with a body": b"GET /health HTTP/1.1\r\n" + HOST + length(len(SECOND)) + b"\r\n" + SECOND,
}
odd = {
    "no Host": b"GET /health HTTP/1.1\r\n\r\n",
    "two Hosts": b"GET /health HTTP/1.1\r\n" + HOST + b"Host: example.org\r\n\r\n",
    "another Host": b"GET /v1/models HTTP/1.1\r\nHost: example.org\r\n\r\n",
    "HTTP/0.9": b"GET /health\r\n",
    "HTTP/9.9": b"GET /health HTTP/9.9\r\n" + HOST + b"\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TLS": bytes.fromhex("16030100c8010000c40303") + bytes(200),
    "long path": b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
    "long header": b"GET /health HTTP/1.1\r\n" + HOST + b"X-A: " + b"a" * 1000000 + b"\r\n\r\n",
    "many headers": b"GET /health HTTP/1.1\r\n" + HOST + b"".join(b"X-%d: a\r\n" % i for i in range(20000)) + b"\r\n",
    "up and out": b"GET /../../etc/passwd HTTP/1.1\r\n" + HOST + b"\r\n",
    "absolute": b"GET http://example.org/v1/models HTTP/1.1\r\nHost: example.org\r\n\r\n",
    "CONNECT": b"CONNECT example.org:443 HTTP/1.1\r\n" + HOST + b"\r\n",
    "TRACE": b"TRACE / HTTP/1.1\r\n" + HOST + b"\r\n",
    "Upgrade": b"GET /health HTTP/1.1\r\n" + HOST + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    "deep JSON": POST + length(200000) + b"\r\n" + b"[" * 200000,
    "a large body": POST + length(1 << 40) + b"\r\n" + BODY,
    "a large chunked body":
        POST + b"Transfer-Encoding: chunked\r\n\r\n" + (b"10000\r\n" + b"a" * 65536 + b"\r\n") * 600,
}

before = memory()
for name, data in smuggling.items():
    got = send(data)
    answers = statuses(got)
    print(f"{name}: {answers}")
    check(b'"object":"list"' not in got and len(answers) < 2, f"{name}: a second request is answered")
    check(alive(), f"{name}: the server is gone")
for name, data in odd.items():
    answers = statuses(send(data, 3))
    print(f"{name}: {answers}")
    check(all(s < 500 or s == 505 for s in answers), f"{name}: {answers}")
    check(name == "Upgrade" or 200 not in answers, f"{name}: {answers}")
    check(alive(), f"{name}: the server is gone")

answers = statuses(send((b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n") * 200, 2))
print(f"200 requests in one piece: {len(answers)} answers")
check(answers == [200] * 200, "pipelining")
both = POST + length(len(BODY)) + b"\r\n" + BODY + b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n"
answers = statuses(send(both * 20, 2))
check(answers == [200] * 40, "pipelining with bodies")


def fuzz(n, seed):
    r = random.Random(seed)
    count = collections.Counter()
    whole = POST + length(len(BODY)) + b"Content-Type: application/json\r\nAuthorization: Bearer x\r\n\r\n" + BODY
    for _ in range(n):
        data = bytearray(whole)
        for _ in range(r.randint(1, 8)):
            at = r.randrange(len(data))
            how = r.randrange(4)
            if how == 0:
                data[at] = r.randrange(256)
            elif how == 1:
                del data[at:at + r.randint(1, 20)]
            elif how == 2:
                data[at:at] = bytes(r.choices(b"\r\n\0: \t;,0f\xff", k=r.randint(1, 6)))
            else:
                data[at:at] = data[at:at + r.randint(1, 60)]
            if not data:
                data = bytearray(b"x")
        answers = statuses(send(bytes(data), 0.05))
        count[answers[0] if answers else "none"] += 1
        check(all(a < 500 or a in (501, 505) for a in answers), f"{bytes(data)}: {answers}")
    return count


n = 4000 if args.all else 100
print(f"{n} fuzzed requests: {dict(fuzz(n, 1))}")
check(alive(), "the server is gone after fuzzed requests")


def drip(head, piece, n, seconds):
    """n connections that send a byte every now and then; how many were closed by the server in time."""
    sockets = []
    for _ in range(n):
        s = socket.create_connection((host, port), timeout=5)
        s.sendall(head)
        sockets.append(s)
    end, healthy = time.monotonic() + seconds, True
    while time.monotonic() < end:
        for s in sockets:
            try:
                s.send(piece)
            except OSError:
                pass
        healthy = healthy and alive()
        time.sleep(0.3)
    closed = 0
    for s in sockets:
        s.setblocking(False)
        try:
            closed += s.recv(1 << 16) == b"" or s.recv(1 << 16) == b""
        except BlockingIOError:
            pass
        except OSError:
            closed += 1
        s.close()
    return closed, healthy


n = 200 if args.all else 20
for name, head, piece in [("slow headers", b"GET /health HTTP/1.1\r\n" + HOST + b"X-A: ", b"a"),
                          ("slow bodies", POST + length(100000) + b"\r\n", b"a"),
                          ("slow chunks", POST + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n"),
                          ("nothing", b"", b"")]:
    closed, healthy = drip(head, piece, n, 4)
    print(f"{name}: {closed} of {n} closed within 4 s, others were {'' if healthy else 'not '}answered")
    check(closed == n and healthy, name)


def crowd(n):
    sockets, refused = [], 0
    for _ in range(n):
        try:
            sockets.append(socket.create_connection((host, port), timeout=0.2))
        except OSError:
            refused += 1
            if refused > 200:
                break
    time.sleep(0.5)
    most = memory()
    for s in sockets:
        s.close()
    time.sleep(3)
    return len(sockets), most


if args.all:
    import resource
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    opened, most = crowd(10000)
    print(f"10,000 connections: {opened} opened, {most} KiB of memory then")
    check(alive(), "the server is gone after 10,000 connections")

body = b'{"messages": [{"role": "user", "content": "a"}], "stream": true, "max_tokens": 400, "logit_bias": {"1": -100}}'
readers = []
for _ in range(8):
    s = socket.create_connection((host, port))
    s.sendall(b"POST /v1/chat/completions HTTP/1.1\r\n" + HOST + length(len(body)) + b"\r\n" + body)
    readers.append(s)
check(alive(), "clients that do not read")
for s in readers:
    s.close()
time.sleep(3)
after = memory()
if args.pid:
    print(f"memory: {before} KiB before, {after} KiB after")
    check(after < 1.3 * before, "memory has grown")
print(f"{len(failures)} failures")
raise SystemExit(bool(failures))
