"""Schemas at their worst beside other requests of peridot serve: serve_schemas.py URL FOLDER SCHEMA

FOLDER has schemas that each take as long as they can (test_grammar_work --write), in files of their own. All are sent,
several at a time, while one client reads texts as they are written and another sends short requests. Fails where the
one waits 2 s for the next piece of a text, the other for an answer, or a schema has none. SCHEMA: one that is known to
the server.
"""

import concurrent.futures
import http.client
import json
import pathlib
import sys
import threading
import time
import urllib.parse

url, folder, known = sys.argv[1:]
address = urllib.parse.urlsplit(url)
AT_ONCE = 6
LONGEST = 2.0
ended = threading.Event()
gaps = {"a text's next piece": 0.0, "an answer": 0.0}
texts = 0


def post(path, body, timeout=120):
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=timeout)
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    return connection, connection.getresponse()


def ask(path, body):
    connection, response = post(path, body)
    answer = json.loads(response.read())
    connection.close()
    return response.status, answer


def schema_body(schema, prompt):
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    return {"prompt": prompt, "max_tokens": 2, "seed": 1, "response_format": form}


def waited(what, since):
    gaps[what] = max(gaps[what], time.monotonic() - since)


def read_texts():
    """One after the other, each as long as the context allows."""
    global texts
    while not ended.is_set():
        body = {"prompt": "The king said", "max_tokens": 400, "seed": texts, "stream": True, "logit_bias": {"1": -100}}
        last = time.monotonic()
        connection, response = post("/v1/completions", body)
        for line in response:
            if not line.startswith(b"data: "):
                continue
            waited("a text's next piece", last)
            last = time.monotonic()
            if ended.is_set():
                break
        connection.close()
        texts += 1


def ask_others():
    while not ended.is_set():
        for path, body in [("/tokenize", {"content": "Once upon a time"}),
                           ("/v1/completions", schema_body(json.loads(known), "A person"))]:
            began = time.monotonic()
            status, answer = ask(path, body)
            waited("an answer", began)
            if status != 200:
                raise SystemExit(f"{path}: {status}: {answer}")
        time.sleep(0.1)


def send_schema(path):
    """The schema's own text: Python would write another."""
    head, tail = json.dumps(schema_body("@", "a")).split('"@"')
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=120)
    connection.request("POST", "/v1/completions", head.encode() + path.read_bytes() + tail.encode(),
                       {"Content-Type": "application/json"})
    response = connection.getresponse()
    answer = json.loads(response.read())
    connection.close()
    return path.name, response.status, answer


def main():
    schemas = sorted(pathlib.Path(folder).iterdir(), key=lambda path: int(path.name))
    statuses = {}
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE + 2) as pool:   # two are for the others
        others = [pool.submit(read_texts), pool.submit(ask_others)]
        try:
            for name, status, answer in pool.map(send_schema, schemas):
                statuses.setdefault(status, []).append(name)
                if status not in (200, 400) or not ("choices" in answer or "error" in answer):
                    raise SystemExit(f"schema {name}: {status}: {answer}")
                if max(gaps.values()) >= LONGEST:
                    break
        finally:
            ended.set()
            pool.shutdown(wait=False, cancel_futures=True)
        for other in others:
            other.result()
    print(", ".join(f"{len(names)} with status {status}" for status, names in sorted(statuses.items())), "of",
          len(schemas), "schemas;", texts, "texts; the longest waits:",
          ", ".join(f"{seconds:.2f} s for {what}" for what, seconds in gaps.items()))
    for what, seconds in gaps.items():
        if seconds >= LONGEST:
            raise SystemExit(f"{seconds:.2f} s for {what}")
    if len(schemas) < 100 or len(statuses.get(200, [])) < 20 or len(statuses.get(400, [])) < 20:
        raise SystemExit("too few schemas, or all of one kind")


main()
