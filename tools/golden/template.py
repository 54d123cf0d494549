"""Writes tests/golden/template.json: chat templates, rendered by jinja2 as transformers sets it up, with which
tests/test_template.c compares Peridot's renderer. Needs transformers 5.23 with its jinja2 3.1.6.

    python3 tools/golden/template.py
    python3 tools/golden/template.py --random N PROGRAM [SEED]

The second compares N random renderings, of the templates with random conversations and of random programs, with those
of PROGRAM (build/tests/test_template), and prints how many were the same, and each that was not.
"""
import collections
import datetime
import functools
import json
import pathlib
import random
import re
import subprocess
import sys
import warnings

from template_cases import CONVERSATIONS, TEMPLATES
import template_random
from transformers.utils.chat_template_utils import _cached_compile_jinja_template

TOP = pathlib.Path(__file__).resolve().parents[2]
NOW = datetime.datetime(2026, 7, 4, 9, 5, 7)         # what the tests say it is
WORDS = {"bos_token": "<s>", "eos_token": "</s>"}

# What Python writes of an object is where it is in memory.
ADDRESS = re.compile(r"<[^<>]*(object|function|method|Macro|Loop|Namespace|generator)[^<>]*>|range\(")


@functools.lru_cache(maxsize=200)
def compiled(source):
    return _cached_compile_jinja_template(source)


def render(source, variables):
    """The text; None: it fails."""
    try:
        return compiled(source).render(**WORDS, strftime_now=NOW.strftime, **variables)
    except Exception:
        return None


def write_golden():
    rows = []
    for name, source in TEMPLATES.items():
        texts = [render(source, v) for v in CONVERSATIONS]
        rows.append(json.dumps({"name": name, "template": source, "texts": texts}))
    conversations = ",\n".join(map(json.dumps, CONVERSATIONS))
    golden = '{"templates": [\n' + ",\n".join(rows) + '\n],\n"conversations": [\n' + conversations + "\n]}\n"
    (TOP / "tests" / "golden" / "template.json").write_text(golden)


def random_case(r):
    """Of every four: two conversations, an expression, a program."""
    kind = r.randrange(4)
    if kind < 2:
        return r.choice(list(TEMPLATES.values())), template_random.conversation(r)
    variables = template_random.variables(r)
    source = "{{ " + template_random.expression(r) + " }}" if kind == 2 else template_random.program(r)
    return source, variables


def compare(n, program, seed):
    counts = collections.Counter()
    peridot = subprocess.Popen([program, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for i in range(seed, seed + n):
        source, variables = random_case(random.Random(i))
        theirs = render(source, variables)
        peridot.stdin.write(json.dumps({"template": source, "variables": variables}) + "\n")
        peridot.stdin.flush()
        line = peridot.stdout.readline()
        if not line:
            sys.exit(f"{program} ended at seed {i}: {json.dumps({'template': source, 'variables': variables})}")
        ours = json.loads(line)
        if theirs is None:
            kind = "DIFFERENT: only jinja2 fails" if "text" in ours else "both fail"
        elif "text" not in ours:
            kind = "an address" if ADDRESS.search(theirs) else "refused: " + re.sub(r"line \d+: ", "", *ours.values())
        else:
            kind = "the same" if ours["text"] == theirs else "DIFFERENT"
        counts[kind] += 1
        if kind.startswith("DIFFERENT"):
            print(json.dumps({"seed": i, "template": source, "variables": variables, "jinja2": theirs,
                              "peridot": ours}))
    for kind, count in counts.most_common():
        print(count, kind, file=sys.stderr)
    return 1 if any(kind.startswith("DIFFERENT") for kind in counts) else 0


def main():
    warnings.simplefilter("ignore")
    if sys.argv[1:2] == ["--random"]:
        return compare(int(sys.argv[2]), sys.argv[3], int(sys.argv[4]) if len(sys.argv) > 4 else 0)
    return write_golden()


if __name__ == "__main__":
    sys.exit(main())
