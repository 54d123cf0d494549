/* Tool calls: a byte that chooses the format and the mode, a list of tools, and a reply. The reply is parsed to the
 * same however it is split, and the arguments of a call that is complete are JSON. Under the grammar of the tools,
 * texts whose bytes the input chooses end, and parse to complete calls. */
#include "harness.h"

#include "base/base.h"
#include "grammar/calls/calls.h"
#include "grammar/grammar.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_REPLY = 2000, MAX_WORK = 20000000, FIRST_MARKS = 0x1ff, LAST_MARKS = 0x9e01 };

struct heard {
    struct pd_buffer all, arguments;
    unsigned n_begun, n_ended;
    bool utf8;                     /* the reply is, but for marks */
    bool text_after;               /* text came after a call */
};

static peridot_status hear_text(void *user, const char *bytes, size_t size)
{
    struct heard *h = user;
    FUZZ_CHECK(size > 0);
    h->text_after = h->text_after || h->n_begun;
    return pd_buffer_add(&h->all, bytes, size);
}

static peridot_status hear_begin(void *user, const char *name, size_t size)
{
    struct heard *h = user;
    h->n_begun++;
    h->arguments.size = 0;
    PD_TRY(pd_buffer_add(&h->all, "\1", 1));
    return pd_buffer_add(&h->all, name, size);
}

static peridot_status hear_arguments(void *user, const char *json, size_t size)
{
    struct heard *h = user;
    FUZZ_CHECK(size > 0 && h->n_begun > h->n_ended);
    PD_TRY(pd_buffer_add(&h->arguments, json, size));
    return pd_buffer_add(&h->all, json, size);
}

static peridot_status hear_end(void *user)
{
    struct heard *h = user;
    h->n_ended++;
    yyjson_doc *doc = yyjson_read(h->arguments.data, h->arguments.size, YYJSON_READ_NUMBER_AS_RAW);
    FUZZ_CHECK(!h->utf8 || yyjson_is_obj(yyjson_doc_get_root(doc)));
    yyjson_doc_free(doc);
    return pd_buffer_add(&h->all, "\2", 1);
}

static bool is_utf8(const uint8_t *data, size_t size)
{
    uint32_t code;
    size_t length;
    for (size_t i = 0; i < size; i += length) {
        if (pd_utf8_next(&code, &length, (const char *)data + i, size - i) == PD_UTF8_CHARACTER) continue;
        if (data[i] < PD_CALL_MARK) return false;
        length = 1;
    }
    return true;
}

/* In pieces of `step` bytes. */
static void parse(struct heard *h, const struct pd_calls *c, const uint8_t *data, size_t size, size_t step)
{
    struct pd_call_parser p = {.format = c->format, .marks = c->marks, .tools = c->tools,
                               .name = c->name};
    const struct pd_call_sink sink = {h, hear_text, hear_begin, hear_arguments, hear_end};
    *h = (struct heard){.utf8 = is_utf8(data, size)};
    for (size_t i = 0; i < size; i += step) {
        size_t n = size - i < step ? size - i : step;
        FUZZ_CHECK(fuzz_ok(pd_call_parser_next(&p, &sink, (const char *)data + i, n, false)));
    }
    FUZZ_CHECK(fuzz_ok(pd_call_parser_next(&p, &sink, NULL, 0, true)));
}

static void free_heard(struct heard *h)
{
    free(h->all.data);
    free(h->arguments.data);
}

static void check_splits(const struct pd_calls *c, const uint8_t *data, size_t size)
{
    struct heard whole, pieces;
    parse(&whole, c, data, size, size + 1);
    for (size_t step = 1; step < 40; step = 3 * step + 1) {
        parse(&pieces, c, data, size, step);
        FUZZ_CHECK(whole.all.size == pieces.all.size && whole.n_ended == pieces.n_ended);
        FUZZ_CHECK(whole.all.size == 0 || memcmp(whole.all.data, pieces.all.data, whole.all.size) == 0);
        free_heard(&pieces);
    }
    free_heard(&whole);
}

static bool add_byte(char *text, size_t n, struct pd_walk *w, const struct pd_rules *r, unsigned wish)
{
    for (unsigned i = 0; i < 256; i++) {
        text[n] = (char)((wish + i) & 0xff);
        if (pd_walk_take(w, r, text + n, 1)) return true;
    }
    return false;
}

static void write_reply(const struct pd_calls *c, const struct pd_rules *r, const uint8_t *data, size_t size,
                        unsigned seed)
{
    char text[MAX_REPLY];
    struct pd_walk walk;
    struct heard h;
    size_t n = 0;
    pd_walk_begin(&walk, r);
    while (n < MAX_REPLY) {
        seed = (seed * 33 + (size ? data[n % size] : 0)) & 0xffff;
        if (pd_walk_is_complete(&walk, r) && seed % 7 == 0) break;
        unsigned wish = seed % 4 ? seed >> 4 : (uint8_t)"}\"]<\xf8\xf9\xfa\xfb"[seed >> 4 & 7];
        if (!add_byte(text, n, &walk, r, wish)) break;
        n++;
    }
    if (n == MAX_REPLY) return;
    FUZZ_CHECK(pd_walk_is_complete(&walk, r));
    parse(&h, c, (const uint8_t *)text, n, n + 1);
    FUZZ_CHECK(h.n_begun == h.n_ended && !h.text_after);
    FUZZ_CHECK(h.n_begun > 0 || c->choice == PD_CALL_AUTO);
    FUZZ_CHECK(h.n_begun <= 1 || c->parallel);
    free_heard(&h);
}

static void use_texts(const struct pd_calls *c)
{
    struct pd_buffer text = {0};
    const struct pd_call call = {"f", yyjson_arr_get_first(c->tools)};
    FUZZ_CHECK(fuzz_ok(pd_calls_describe(&text, c)));
    fuzz_ok(pd_calls_write(&text, c, &call, 1));
    free(text.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    struct fuzz_part input = {data + 1, size - 1}, tools = {0}, reply = {0};
    size_t n_formats = 0;
    while (pd_call_format_name_at(n_formats)) n_formats++;
    struct pd_calls c = {.format = pd_call_format_find(pd_call_format_name_at((data[0] >> 3) % n_formats)),
                         .marks = !(data[0] & 1) ? 0 : data[0] & 128 ? LAST_MARKS : FIRST_MARKS,
                         .choice = data[0] & 2 ? PD_CALL_REQUIRED : PD_CALL_AUTO,
                         .parallel = data[0] & 4};
    fuzz_next_part(&tools, &input);
    fuzz_next_part(&reply, &input);
    check_splits(&c, reply.data, reply.size);
    yyjson_doc *doc = yyjson_read((const char *)tools.data, tools.size, 0);
    c.tools = yyjson_doc_get_root(doc);
    if (fuzz_ok(pd_calls_check(&c))) {
        struct pd_rules r;
        bool compiled = fuzz_ok(pd_calls_compile_within(&r, MAX_WORK, &c));
        check_splits(&c, reply.data, reply.size);
        use_texts(&c);
        for (unsigned seed = 0; seed < 4 && compiled; seed++) write_reply(&c, &r, data, size, seed * 77);
        pd_rules_free(&r);
    }
    yyjson_doc_free(doc);
    return 0;
}
