"""Random conversations and random Jinja programs, for comparing Peridot's renderer with jinja2 (template.py)."""

import random
import string

TEXTS = [
    "", "hi", " padded \n", "Caf\u00e9 \U0001f600", "\u4e2d\u6587\u3000", "<|im_start|>user", "a\"b'c\\d",
    "line\nline\r\n\n last", "{\"k\": 1}", "\u00df\u0104\u03a3\u03c2\u0416\u0130", "tab\tx\u00a0y\u2028z", "0", "12",
    "-3.5", "1e5", "Don't", "<b>&</b>", "\x01\x7f\u200d", "<think>\nwhy\n</think>\n\nbecause", "one, two,three",
    "A-b (c) [d] x_y",
    "x" * 40,
    "%s {}", "user", "None", "\ud7ff\ue000\uffff",
]
NUMBERS = [
    0, 1, -1, 2, 7, 255, 2**31,
    -(2**63),
    2**63 - 1, 2**53 + 1, 1.0, -0.0, 0.5, 1e16, 1e-7, 1e22, 123456.789, 1.5e300, 2.5, 1e15, -3.7,
]
KEYS = [
    "name", "type", "items", "properties", "role", "content", "a", "B", "b", "\u00e9", "keys", "description",
    "required",
]


def text(r):
    if r.random() < 0.7:
        return r.choice(TEXTS)
    letters = string.ascii_letters + " \n\t.<>|'\"\\\u00e9\u4e2d\U0001f600\u0301"
    return "".join(r.choice(letters) for _ in range(r.randrange(12)))


def value(r, depth=0):
    kind = r.randrange(8 if depth < 3 else 5)
    if kind < 2:
        return text(r)
    if kind == 2:
        return r.choice(NUMBERS)
    if kind == 3:
        return r.choice([True, False, None])
    if kind == 4:
        return r.randrange(-5, 20)
    if kind == 5:
        return [value(r, depth + 1) for _ in range(r.randrange(4))]
    return {r.choice(KEYS): value(r, depth + 1) for _ in range(r.randrange(5))}


def tool(r):
    properties = {
        r.choice(["city", "unit", "n", "\u00e9t\u00e9", "items", "q"]): r.choice(
            [
                {"type": "string", "description": text(r)},
                {"type": "string", "enum": ["a", "b\"c"]},
                {"type": "integer"},
                {"type": ["number", "null"], "default": r.choice(NUMBERS)},
                {"type": "array", "items": {"type": "string"}},
                {"type": "object", "properties": {"x": {"type": "boolean"}}, "required": ["x"]},
                value(r),
            ]
        )
        for _ in range(r.randrange(4))
    }
    parameters = {"type": "object", "properties": properties}
    if r.random() < 0.6:
        parameters["required"] = list(properties)[: r.randrange(3)]
    function = {"name": r.choice(["get_weather", "f", "a.b"]), "description": text(r), "parameters": parameters}
    if r.random() < 0.2:
        function["return"] = {"type": "string", "description": text(r)}
    if r.random() < 0.1:
        del function["parameters"]
    return {"type": "function", "function": function} if r.random() < 0.9 else function


def content(r):
    kind = r.randrange(10)
    if kind < 6:
        return text(r) + (text(r) if r.random() < 0.3 else "")
    if kind == 6:
        return None
    if kind == 7:
        return value(r)
    return [
        r.choice(
            [{"type": "text", "text": text(r)}, {"type": "image"}, {"type": "image_url", "image_url": {"url": "x"}}]
        )
        for _ in range(r.randrange(4))
    ]


def message(r, role):
    m = {"role": role, "content": content(r)}
    if role == "assistant" and r.random() < 0.4:
        arguments = {k: value(r, 1) for k in r.sample(KEYS, r.randrange(4))}
        m["tool_calls"] = [
            {
                "id": "call_" + str(i),
                "type": "function",
                "function": {
                    "name": r.choice(["get_weather", "f"]),
                    "arguments": arguments if r.random() < 0.8 else '{"a": 1}',
                },
            }
            for i in range(r.randrange(1, 3))
        ]
        if r.random() < 0.3:
            del m["content"]
    if role == "assistant" and r.random() < 0.3:
        m["reasoning_content"] = text(r)
    if role == "tool":
        m.update({"name": "f", "tool_call_id": "call_0"})
        if r.random() < 0.2:
            m["content"] = value(r)
    return m


def conversation(r):
    messages = [message(r, r.choice(["system", "developer"]))] if r.random() < 0.4 else []
    for _ in range(r.randrange(1, 5)):
        messages.append(message(r, "user"))
        if r.random() < 0.7:
            messages.append(message(r, "assistant"))
            if "tool_calls" in messages[-1] and r.random() < 0.8:
                messages.append(message(r, "tool"))
    if r.random() < 0.15:
        r.shuffle(messages)
    if r.random() < 0.05:
        messages.append(message(r, r.choice(["ipython", "", "model", "System"])))
    v = {"messages": messages, "add_generation_prompt": r.random() < 0.5}
    if r.random() < 0.4:
        v["tools"] = [tool(r) for _ in range(r.randrange(3))]
    if r.random() < 0.3:
        v["enable_thinking"] = r.random() < 0.5
    if r.random() < 0.2:
        v["documents"] = [{"title": text(r), "text": text(r)} for _ in range(r.randrange(3))]
    if r.random() < 0.1:
        v["date_string"] = "04 Jul 2026"
    return v


# ---- programs ----
# Expressions are mostly of types that go together, so that most programs run to their end.

NAMES = {
    "str": ["s", "t", "s", "bos_token"],
    "num": ["n", "n", "f"],
    "list": ["l", "ms"],
    "dict": ["d"],
    "any": ["x", "e", "none_", "missing", "undef"],
}
LITERALS = {
    "str": ["'a'", "''", "\"it's\"", "'\\n'", "'x' 'y'", "'\\u00e9\\x41'", "'a b,c'", "'<b>'"],
    "num": ["1", "0", "2", "1.5", "-1", "1e3", "3.0", "0x1f", "1_000", "true"],
    "list": [
        "[]", "[1, 'a', none]", "[s, n]", "(s,)", "('a', 2)", "range(3)|list", "[3, 1, 2]", "['b', 'A', 'a']",
        "[[1, 2], [3, 4]]", "[s, t, 'q']",
    ],
    "dict": ["{}", "{'a': 1, 'b': [s]}", "{'k': s}", "dict(a=s)", "{'B': 1, 'a': t}"],
    "any": ["none", "True", "False", "None", "range(n)"],
}
FILTERS = {
    ("str", "str"): [
        "upper", "lower", "trim", "title", "capitalize", "string", "reverse", "e", "replace('a', 'b')",
        "replace('', '-')", "trim('a ')", "indent", "indent(2, true)", "indent('> ', blank=true)", "default('D')",
        "tojson", "replace('<', '&lt;', 1)", "tojson(ensure_ascii=true)", "center(9)", "truncate(6, leeway=1)",
        "truncate(5, true, '.', 0)", "wordwrap(4)", "wordwrap(5, false)", "wordwrap(3, break_on_hyphens=false)",
        "wordwrap(7, wrapstring='|')", "urlencode", "striptags", "forceescape", "pprint",
    ],
    ("str", "num"): ["length", "wordcount", "int", "float", "int(3)", "int(base=16)", "float(2.5)", "count"],
    ("str", "list"): ["list"],
    ("str", "any"): ["first", "last"],
    ("num", "num"): ["abs", "round", "round(1)", "round(1, 'floor')", "int", "float", "round(0, 'ceil')", "default(1)"],
    ("num", "str"): ["string", "tojson"],
    ("list", "str"): [
        "join", "join(', ')", "join('|', attribute='a')", "tojson", "tojson(indent=2)", "map('string')|join('+')",
        "string", "tojson(separators=(',', ':'))", "pprint",
    ],
    ("list", "num"): ["length", "count", "select|list|length"],
    ("list", "any"): ["first", "last", "min", "max", "sum"],
    ("list", "list"): [
        "list", "reverse|list", "sort", "unique|list", "select|list", "select('string')|list", "reject('none')|list",
        "map('upper')|list", "map(attribute='a')|list", "map(attribute='a', default='q')|list", "batch(2)|list",
        "batch(3, 'f')|list", "selectattr('a')|list", "selectattr('a', 'defined')|list", "sort(reverse=true)",
        "rejectattr('role', 'equalto', 'user')|list", "map('tojson')|list", "map('trim')|list",
        "select('in', [1, 'a', none])|list", "sort(attribute='a')", "map('int')|list", "default([])",
        "selectattr('type', 'in', ['text'])|list", "select('number')|list", "map('length')|list", "slice(2)|list",
        "slice(3, 'f')|list", "groupby('role')",
        "groupby('a', default='q')", "groupby(0)",
    ],
    ("dict", "str"): [
        "tojson", "tojson(sort_keys=true)", "tojson(indent=1)", "string", "xmlattr", "xmlattr(false)", "urlencode",
        "pprint",
    ],
    ("dict", "list"): ["list", "dictsort", "items|list", "dictsort(by='value')", "dictsort(reverse=true)"],
    ("dict", "num"): ["length"],
    ("dict", "dict"): ["default({})"],
    ("any", "str"): ["string", "tojson", "trim", "upper", "safe"],
    ("any", "num"): ["int", "length"],
    ("any", "list"): ["list"],
    ("any", "any"): ["default('D', true)", "default(1)", "first"],
}
METHODS = {
    ("str", "str"): [
        "upper()", "lower()", "strip()", "lstrip()", "rstrip('\\n')", "strip('a<')", "title()", "capitalize()",
        "replace('a', 'bb')", "replace('', '.', 2)", "removeprefix('<')", "removesuffix('n')", "join(['x', 'y'])",
        "split(',')[-1]", "format(1, 'b')", "center(7)", "ljust(6, '.')", "rjust(6)", "zfill(5)", "swapcase()",
    ],
    ("str", "list"): [
        "split()", "split(' ')", "split('a', 1)", "rsplit(' ', 1)", "rsplit(None, 1)", "splitlines()",
        "splitlines(true)", "partition('a')", "rpartition(' ')", "split(None, 1)",
    ],
    ("str", "num"): ["find('a')", "rfind('n')", "count('a')", "count('')", "find('a', 1, 4)", "rfind('', 1)"],
    ("str", "bool"): [
        "startswith('<')", "endswith(('n', ' '))", "isdigit()", "isalpha()", "isspace()", "islower()", "isupper()",
        "isalnum()", "isascii()", "startswith('a', 1)",
    ],
    ("dict", "list"): ["keys()|list", "items()|list", "values()|list"],
    ("dict", "any"): ["get('a')", "get('a', 'z')", "get('items')", "items", "a", "name", "copy()"],
    ("list", "num"): ["count(1)", "count(s)"],
    ("any", "any"): ["a", "items()", "append(1)", "__class__", "upper()", "get('a')"],
}
TESTS = [
    "defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "iterable",
    "sequence", "true", "false", "callable", "sameas none", "in l", "eq 1", "equalto('a')", "ne n", "escaped",
    "not string", "not none", "lower", "upper", "filter", "test",
]
NUMBER_TESTS = ["odd", "even", "divisibleby 3", "divisibleby(2)", "lt 3", "ge(n)", "gt f"]
ITEMS = {
    "str": ["0", "-1", "1:", ":-1", "::-1", "::2", "-2:", "1:3", "5", "n", "-1::-2", ":n", "'upper'"],
    "list": ["0", "-1", "1:", "::-1", "1:3", "5", "'a'", "::2", "n:"],
    "dict": ["'a'", "'items'", "s", "'get'", "n"],
}
TYPES = ["str", "str", "num", "list", "dict", "any", "bool"]


def expression(r, depth=0, kind=None):
    if kind is None or r.random() < 0.02:
        kind = r.choice(TYPES)
    if kind == "bool":
        return condition(r, depth + 1)
    if depth > 3 or r.random() < 0.25:
        return r.choice((NAMES if r.random() < 0.6 else LITERALS)[kind])
    way = r.randrange(8)
    if way < 3:
        source, filters = r.choice([(pair[0], f) for pair, f in FILTERS.items() if pair[1] == kind])
        return f"{operand(r, depth, source)}|{r.choice(filters)}"
    methods = [(pair[0], m) for pair, m in METHODS.items() if pair[1] == kind]
    if way < 5 and methods:
        source, names = r.choice(methods)
        return f"{operand(r, depth, source)}.{r.choice(names)}"
    if way == 5:
        return f"{operand(r, depth, kind)} if {condition(r, depth + 1)} else {operand(r, depth, kind)}"
    if kind == "any":
        source = r.choice(["str", "list", "dict"])
        return f"{operand(r, depth, source)}[{r.choice(ITEMS[source])}]"
    if kind in ("str", "list") and r.random() < 0.4:
        return f"{operand(r, depth, kind)}[{r.choice([i for i in ITEMS[kind] if ':' in i])}]"
    ops = {"str": ["+", "~", "~"], "num": ["+", "-", "*", "/", "//", "%"], "list": ["+"], "dict": ["or", "and"]}[kind]
    if kind == "str" and r.random() < 0.15:
        formats = [f"'%s|%5s' % ({operand(r, depth, 'any')}, s)", f"'%d %05.1f' % (n, {operand(r, depth, 'num')})"]
        formats += [f"'{{}}-{{}}'.format({operand(r, depth, 'any')}, n)", f"{operand(r, depth, 'str')} * 3"]
        return r.choice(formats)
    if kind == "num" and r.random() < 0.05:
        return f"{operand(r, depth, kind)} ** {r.choice(['2', '0', '-1', '0.5'])}"
    if kind == "num" and r.random() < 0.2:
        return r.choice("-+") + operand(r, depth, kind)
    parts = [operand(r, depth, kind)]
    for _ in range(r.choice([1, 1, 2])):
        parts += [r.choice(ops), operand(r, depth, kind)]
    return " ".join(parts)


def condition(r, depth):
    way = r.randrange(6)
    if way == 0:
        return f"{operand(r, depth, None)} is {r.choice(TESTS)}"
    if way == 1:
        return f"{operand(r, depth, 'num')} is {r.choice(NUMBER_TESTS)}"
    if way == 2:
        kind = r.choice(["num", "str"])
        op = r.choice(["<", ">", "<=", ">=", "==", "!="])
        chained = " < f" if kind == "num" and r.random() < 0.2 else ""
        return f"{operand(r, depth, kind)} {op} {operand(r, depth, kind)}" + chained
    if way == 3:
        where = operand(r, depth, r.choice(["str", "list", "dict"]))
        contained = f"{operand(r, depth, 'str')} {r.choice(['in', 'not in'])} {where}"
        return r.choice([contained, f"{operand(r, depth, 'any')} == {operand(r, depth, None)}"])
    if way == 4:
        return f"not {operand(r, depth, None)}"
    return f"{operand(r, depth, None)} {r.choice(['and', 'or'])} {operand(r, depth, None)}"


def operand(r, depth, kind):
    e = expression(r, depth + 1, kind)
    return e if e.isidentifier() or r.random() < 0.05 else f"({e})"


def tag(r, inner, kind="%"):
    if kind == "%":
        return f"{{%{r.choice(['', '', '-', '+'])} {inner} {r.choice(['', '', '-', '+'])}%}}"
    return f"{{{{{r.choice(['', '', '-'])} {inner} {r.choice(['', '', '-'])}}}}}"


def data(r):
    return r.choice(
        [
            "", "", " ", "\n", "  \n", "text", " x ", "\n\n", "\n  ", "a\n", "{#- c -#}", "{# c #}\n", "{", "}", "\t",
            "\r\n", "{% raw %} {{ r }} {% endraw %}\n", "{%- raw -%} % } {%- endraw +%}\n",
        ]
    )


LOOP = [
    "index", "index0", "first", "last", "length", "revindex", "revindex0", "previtem", "nextitem", "depth", "depth0",
    "cycle('a', 'b')", "changed(x)",
]


def statement(r, depth):
    kind = r.randrange(12)
    body = lambda: statements(r, depth + 1)
    if kind < 4 or depth > 3:
        return tag(r, expression(r), "{")
    if kind == 4:
        name, kind = r.choice([("s", "str"), ("x", None), ("n", "num"), ("l", "list"), ("x, e", None)])
        value_of = expression(r, 0, kind) + (", " + expression(r) if "," in name else "")
        return tag(r, f"set {name} = {value_of}")
    if kind == 5:
        name = r.choice(["x", "e"])
        return tag(r, f"set {name}{r.choice(['', '', ' | trim', ' | upper | length'])}") + body() + tag(r, "endset")
    if kind == 6:
        middle = tag(r, f"elif {condition(r, 1)}") + body() if r.random() < 0.3 else ""
        middle += tag(r, "else") + body() if r.random() < 0.5 else ""
        return tag(r, f"if {condition(r, 1)}") + body() + middle + tag(r, "endif")
    if kind < 10:
        over = r.choice(
            [
                "l", "d", "ms", "s", "range(3)", "d.items()", "d|items", "[1, 2]", "missing",
                operand(r, 2, "list"),
                "ms|selectattr('a')",
            ]
        )
        target = "k, v" if "items" in over else r.choice(["x", "e", "m"])
        recursive = " recursive" if r.random() < 0.2 else ""
        loop = tag(r, f"for {target} in {over}" + (f" if {condition(r, 2)}" if r.random() < 0.3 else "") + recursive)
        if recursive:
            loop += tag(r, f"loop({operand(r, 3, 'list')}) if loop.depth < 3", "{")
        loop += body() + "".join(tag(r, f"loop.{r.choice(LOOP)}", "{") for _ in range(r.randrange(3)))
        if r.random() < 0.2:
            loop += tag(r, f"if {condition(r, 3)}") + tag(r, r.choice(["break", "continue"])) + tag(r, "endif") + body()
        return loop + (tag(r, "else") + body() if r.random() < 0.3 else "") + tag(r, "endfor")
    if kind == 10:
        body_of = tag(r, "for x in l") + tag(r, f"set ns.b = ns.b ~ {operand(r, 2, None)}") + tag(r, "endfor")
        return tag(r, "set ns = namespace(a=n, b='')") + body_of + tag(r, "ns.b", "{")
    extra = r.choice(["", "caller(1)|upper if caller is defined", "varargs", "kwargs"])
    macro = tag(r, f"macro mm(s, x={operand(r, 3, None)}, e='e')") + body()
    macro += (tag(r, extra, "{") if extra else "") + tag(r, "endmacro")
    if r.random() < 0.3:
        macro += tag(r, f"call(v, w={operand(r, 3, None)}) mm({operand(r, 3, None)})") + body() + tag(r, "endcall")
    if r.random() < 0.2:
        macro += tag(r, f"mm(1, 2, 3, {operand(r, 3, None)}, q=s)", "{")
    calls = tag(r, f"mm({operand(r, 3, None)})", "{") + tag(r, f"mm(e={operand(r, 3, None)}, s=1)", "{")
    return macro + calls


def statements(r, depth=0):
    return "".join(data(r) + statement(r, depth) + data(r) for _ in range(r.randrange(1, 4 if depth else 5)))


def variables(r):
    return {
        "s": text(r),
        "t": text(r),
        "n": r.choice([0, 1, 2, 3, 3, 5, -1, True]),
        "f": r.choice([x for x in NUMBERS if isinstance(x, float)] + [2, 0.5, 3.25]),
        "l": [value(r, 1) for _ in range(r.randrange(4))],
        "d": {k: value(r, 1) for k in r.sample(KEYS, r.randrange(4))},
        "x": value(r),
        "none_": None,
        "e": value(r),
        "ms": [
            {k: value(r, 2) for k in r.sample(["a", "role", "content", "type"], r.randrange(4))}
            for _ in range(r.randrange(4))
        ],
    }


def program(r):
    return statements(r)
