"""Texts that tokenizers are tried on: what a small vocabulary is trained on, what Unicode's form C changes and
must not, and what patterns of words split. And the tools of conversations."""
import random

CORPUS = (
    "The quick brown fox jumps over the lazy dog, and it's 12345 times faster than they'd think; we'll see, won"
    "'t we?\n"
    "system user assistant You are a helpful assistant. Why is the sky blue? What is the weather in Paris tomor"
    "row?\n"
    "def main(args):\n"
    "    for i in range(10):\n"
    "        print(i, args[i])\n"
    "\n"
    "    return 0\n"
    "{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n"
    "Qu'est-ce que c'est que \xe7a? \xc9l\xe8ve fran\xe7ais, \xfcber gr\xf6\xdfe, ma\xf1ana, \u0141\xf3d\u017a,"
    " Vi\u1ec7t Nam, ti\u1ebfng Vi\u1ec7t\n"
    "\u4f60\u597d\uff0c\u4e16\u754c\uff01\u4eca\u5929\u5929\u6c14\u600e\u4e48\u6837\uff1f\u6211\u662f\u5343"
    "\u95ee\u3002\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8\u3067\u3059\u3002\uac00\ub098\ub2e4\ub77c "
    "\ud55c\uad6d\uc5b4\n"
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440! \u0395\u03bb\u03bb\u03b7\u03bd\u03b9\u03ba\u03ac"
    " \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627 \u0939\u093f\u0928\u094d\u0926\u0940 \u0e44\u0e17"
    "\u0e22 \U0001f600\U0001f680\n"
)
# What form C changes, what it must not, and the order of marks.
UNICODE = [
    "cafe\u0301 re\u0301sume\u0301", "A\u030a \u212b \u2126 \u212a",
    "Vie\u0323\u0302t Vi\xea\u0323t Vie\u0302\u0323t", "a\u0315\u0300\u05ae\u0301b", "q\u0307\u0323 q\u0323\u0307",
    "\u1100\u1161\u11a8\u1112\u1161\u11ab \uac00\u11a8", "\u1112\u1161\u11ab\u1100", "\u0344 \u0340 \u0374 \u037e",
    "\u0958\u09dc\u0a33 \u0915\u093c", "\u09c7\u09be \u0b47\u0b56 \u0bc6\u0bbe \u0cca\u0cd5",
    "\u1e9b\u0323 \u1e69 s\u0323\u0307 s\u0307\u0323", "\ufb01 \uff21 \u2460 \xbd", "\uf900\u2f800\U0002f800\ufa6c",
    "\U0001d15e\U0001d1bb", "\xe9\u0301 e\u0301\u0301", "\u0301", "\u0301a", "\u0338", "<\u0338 =\u0338 >\u0338",
    "<|im_end|\u0338>", "\U00011131\U00011127 \U00011347\U0001133e", "\u0f71\u0f72\u0f74 \u0f73",
    "\u304b\u3099\u30cf\u309a", "e\u0301", "E\u0301x e\u0301's \u0301's", "1\u0301 2\u20e3",
    "\u4e2d\u0301 \ue000\u0301", "a" + "\u0301\u0323\u0315" * 40,
]
PLAIN = [
    "", " ", "  ", "a", "Hello, world!", "it's they'd we'll I'VE don'T '' 's", "1234567890 1 12 123 1.5e-10",
    "\u0661\u0662\u0663 \xb2\xbd", " \n", "\n\n\n", " \n \n a", "a\r\nb\r\n\r\n c", "\t\tx = 1;\t// y\n",
    "    four spaces\n        eight", "trailing   ", "\xa0\u2003\u3000x\u3000", "!!!???...", "(a)[b]{c}<d>",
    "a_b-c/d\\e", "#include <stdio.h>\n", "\u200b\u200d\ufeffx", "\u180e a\u180e",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f44d\U0001f3fd", "\u6570\u5b66123\u8bed\u6587ABC",
    "<|im_start|>user\nhi<|im_end|>", "<think>\n\n</think>\n\n", "a<tool_call>b</tool_call>c", "<|endoftext|>",
    "<|im_start", "\x00\x01\x7f\x85", *CORPUS.split("\n"),
]


def random_texts(n):
    r = random.Random(7)
    parts = [
        "a", "b", "1", " ", "\n", "\t", ".", "'", "<", "|", ">", "\xe9", "e\u0301", "\u0323", "\u0302", "\u0301",
        "\u0327", "\u1100", "\u1161", "\u11a8", "\uac00", "\u4e2d", "\u3099", "\u304b", "\u09c7", "\u09be", "\u212b",
        "\U0001f600", "'s", "  ", "\r\n", "the", " The", "<think>", "<|im_end|>",
    ]
    return ["".join(r.choice(parts) for _ in range(r.randint(1, 24))) for _ in range(n)]


TOOLS = [{"type": "function", "function": {
    "name": "get_weather", "description": "Tells of the weather in a city, e.g. <Z\u00fcrich> & \"Paris\".",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                   "required": ["city"]}}},
    {"type": "function", "function": {"name": "now", "description": "The time.", "parameters": {"type": "object",
                                                                                              "properties": {}}}}]
