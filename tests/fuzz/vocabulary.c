#include "../bpe_fixture.h"   /* sets what it needs of POSIX */

#include "vocabulary.h"

#include "text/template/template.h"

struct pd_tokenizer *fuzz_tokenizer(fuzz_pieces_reader *read, const uint8_t *data, uint64_t size)
{
    struct pd_tokenizer *t = calloc(1, sizeof *t);
    FUZZ_CHECK(t);
    if (fuzz_ok(read(&t->pieces, data, size)) && fuzz_ok(pd_tokenizer_build(t))) return t;
    pd_tokenizer_close(t);
    return NULL;
}

static struct pd_tokenizer *from_json(const struct json_parts *parts)
{
    struct pd_buffer b = json_make(parts);
    struct pd_tokenizer *t = fuzz_tokenizer(pd_pieces_read_json, (const uint8_t *)b.data, b.size);
    free(b.data);
    return t;
}

static struct pd_tokenizer *from_model(int prefix)
{
    struct pd_buffer b;
    struct tiny tiny;
    tiny_make(&tiny);
    tiny.prefix = prefix;
    tiny_model(&b, &tiny);
    struct pd_tokenizer *t = fuzz_tokenizer(pd_pieces_read_model, (const uint8_t *)b.data, b.size);
    free(b.data);
    return t;
}

static struct pd_tokenizer *with_chat(struct pd_tokenizer *t)
{
    FUZZ_CHECK(t && pd_chat_get(&t->chat, "llama3", &t->special, &t->pieces) == PERIDOT_OK);
    return t;
}

/* A comment has what makes messages other ones, before the program has them: see program_messages.c. */
static struct pd_tokenizer *with_program(struct pd_tokenizer *t)
{
    static const char jinja[] =
        "{# single tool-calls; length != 9; ['content'] is not none; block['thinking'] #}{{ tools | tojson }}"
        "{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>{{ m.content }}{{ m.tool_call_id }}"
        "{% for c in m.tool_calls %}{{ c.id ~ c.function.name ~ c.function.arguments.items() | list }}{% endfor %}"
        "<|eot_id|>{% endfor %}";
    FUZZ_CHECK(t && pd_buffer_add(&t->jinja, jinja, sizeof jinja) == PERIDOT_OK);
    FUZZ_CHECK(pd_template_parse(&t->program, jinja, sizeof jinja - 1) == PERIDOT_OK);
    return t;
}

static struct pd_tokenizer *open_vocabulary(size_t i)
{
    static const struct json_parts llama3_parts = {
        .added = ADDED("280", "<|begin|>", "true", "false") ", "
                 ADDED("281", "<|start_header_id|>", "true", "false") ", "
                 ADDED("282", "<|end_header_id|>", "true", "false") ", "
                 ADDED("283", "<|eot_id|>", "true", "false") ", "
                 ADDED("284", "<|eom_id|>", "true", "false"),
        .normalizer = "null", .pre_tokenizer = PRE(SPLIT(LLAMA3_PATTERN)), .post_processor = TEMPLATE("<|begin|>"),
        .decoder = BYTE_LEVEL("true"), .byte_level = true};
    struct json_parts parts = llama3_parts;
    switch (i) {
    case FUZZ_VOCAB_PROGRAM: return with_program(open_vocabulary(FUZZ_VOCAB_LLAMA3));
    case FUZZ_VOCAB_LLAMA3:
        parts.model = byte_parts.model, parts.vocab = byte_parts.vocab, parts.merges = byte_parts.merges;
        return with_chat(from_json(&parts));
    case FUZZ_VOCAB_CHARS: return from_json(&char_parts);
    default: return from_model(i == FUZZ_VOCAB_LLAMA2);
    }
}

const peridot_vocab *fuzz_vocab(size_t i)
{
    static peridot_vocab vocabs[FUZZ_N_VOCABS + 1];
    if (!vocabs[i].tokenizer) vocabs[i].tokenizer = open_vocabulary(i);
    FUZZ_CHECK(vocabs[i].tokenizer);
    return &vocabs[i];
}

static void decode(const struct pd_tokenizer *t, const int32_t *ids, size_t n)
{
    char *text;
    size_t size;
    struct pd_stream stream = {0};
    struct pd_buffer buffer = {0};
    if (fuzz_ok(pd_tokenizer_decode(&text, &size, t, ids, n))) {
        FUZZ_CHECK(text[size] == 0);
        free(text);
    }
    for (size_t i = 0; i <= n; i++)
        if (!fuzz_ok(pd_stream_next(&stream, &buffer, t, i < n ? ids[i] : -1))) break;
    free(buffer.data);
}

int32_t *fuzz_encode(size_t *n, const struct pd_tokenizer *t, const char *text, size_t size, unsigned flags)
{
    int32_t *ids;
    const peridot_plain plain = {.size = sizeof plain, .text = text, .text_size = size, .flags = flags};
    if (!fuzz_ok(pd_tokenizer_encode(&ids, n, t, &plain))) return NULL;
    FUZZ_CHECK(ids);
    for (size_t i = 0; i < *n; i++) FUZZ_CHECK(ids[i] >= 0 && (uint32_t)ids[i] < pd_tokenizer_size(t));
    decode(t, ids, *n);
    return ids;
}
