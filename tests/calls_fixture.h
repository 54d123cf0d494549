/* What the tests of tool calls share: texts with their control tokens as marks, and what the parser says of one. */
#ifndef CALLS_FIXTURE_H
#define CALLS_FIXTURE_H

#include "format_fixture.h"

#include "base/base.h"
#include "grammar/calls/calls.h"
#include "grammar/grammar.h"

/* Of DeepSeek's tokens. */
#define TOOL_TOKEN(name) "<\xef\xbd\x9ctool\xe2\x96\x81" name "\xef\xbd\x9c>"

#define ATEM(name, tags) \
    " to=" name "<|message|><atem:function_calls>\n<atem:invoke name=\"" name "\">\n" tags "</atem:invoke>\n" \
    "</atem:function_calls>"
#define ATEM_TAG(name, value) "<atem:parameter name=\"" name "\">" value "</atem:parameter>\n"
#define ATEM_NEXT "<|eom|><|start|>assistant"
#define HARMONY(name, json) "<|channel|>commentary to=functions." name " <|constrain|>json<|message|>" json
/* As the published template writes past calls. */
#define HARMONY_TO(name, json) " to=functions." name "<|channel|>commentary json<|message|>" json
#define HARMONY_NEXT "<|end|><|start|>assistant"

/* The control tokens that a format's calls have. */
static inline unsigned marks_of(const char *format)
{
    const struct pd_call_format *f = pd_call_format_find(format);
    unsigned marks = 0;
    for (size_t i = 0; pd_call_mark(i); i++) {
        const char *const literals[] = {f->before, f->middle, f->after, f->id[0]};
        bool has = f->delimiter && strcmp(f->delimiter, pd_call_mark(i)) == 0;
        for (size_t k = 0; k < PD_COUNT(literals); k++)
            has = has || (literals[k] && strstr(literals[k], pd_call_mark(i)));
        for (const struct pd_call_shape *s = f->shapes; s->begin; s++)
            has = has || strstr(s->begin, pd_call_mark(i)) || strstr(s->end, pd_call_mark(i));
        marks |= (unsigned)has << i;
    }
    return marks;
}

static const char weather_tools[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"get_weather\",\"description\":\"Of a \\\"city\\\"\","
    "\"parameters\":{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\"},\"days\":{\"type\":"
    "\"integer\",\"minimum\":1,\"maximum\":9}},\"required\":[\"city\"],\"additionalProperties\":false}}},"
    "{\"type\":\"function\",\"name\":\"ping\",\"strict\":true},"
    "{\"name\":\"a.b/c:d-1\",\"parameters\":{\"properties\":{\"x\":{\"enum\":[1,null,true]}},\"required\":[\"x\"]}}]";

/* The text with a mark for each control token of `marks`, terminated. */
static inline size_t put_marks(char *out, const char *text, size_t size, unsigned marks)
{
    size_t n = 0;
    for (size_t i = 0; i < size;) {
        size_t length = 1;
        out[n] = text[i];
        for (size_t k = 0; pd_call_mark(k); k++) {
            size_t n_mark = strlen(pd_call_mark(k));
            if (!(marks >> k & 1) || n_mark > size - i || memcmp(text + i, pd_call_mark(k), n_mark) != 0) continue;
            out[n] = pd_call_mark_byte(marks, k);
            length = n_mark;
        }
        n++;
        i += length;
    }
    out[n] = 0;
    return n;
}

/* ---- what the parser says: text as it is, calls as {{NAME ARGUMENTS}} ---- */

struct transcript {
    struct pd_buffer said;
    unsigned n_said;               /* events, the failed ones included */
    bool fails;                    /* every event does */
};

static inline peridot_status say(struct transcript *t, const char *text, size_t size)
{
    t->n_said++;
    if (t->fails) return pd_fail(PERIDOT_ERROR_ARGUMENT, "the sink fails");
    assert_true(size > 0);
    return pd_buffer_add(&t->said, text, size);
}

static inline peridot_status say_text(void *user, const char *bytes, size_t size) { return say(user, bytes, size); }

/* Whole characters, whatever was cut. */
static inline peridot_status say_arguments(void *user, const char *bytes, size_t size)
{
    size_t length = 0;
    uint32_t code;
    enum pd_utf8_state last = PD_UTF8_CHARACTER;
    for (size_t i = 0; i < size; i += length) last = pd_utf8_next(&code, &length, bytes + i, size - i);
    assert_int_not_equal(last, PD_UTF8_INCOMPLETE);
    return say(user, bytes, size);
}

static inline peridot_status say_begin(void *user, const char *name, size_t size)
{
    struct transcript *t = user;
    PD_TRY(say(t, "{{", 2));
    PD_TRY(say(t, name, size));
    return say(t, " ", 1);
}

static inline peridot_status say_end(void *user) { return say(user, "}}", 2); }

static inline struct pd_call_sink sink_of(struct transcript *t)
{
    return (struct pd_call_sink){t, say_text, say_begin, say_arguments, say_end};
}

/* In two pieces, of which the first has `cut` bytes; 0: byte by byte. */
static inline void parse(struct transcript *out, const struct pd_calls *c, const char *bytes, size_t size, size_t cut)
{
    struct pd_call_parser p = {.format = c->format, .marks = c->marks, .tools = c->tools,
                               .name = c->name};
    *out = (struct transcript){0};
    const struct pd_call_sink sink = sink_of(out);
    for (size_t i = 0; !cut && i < size; i++) EXPECT_OK(pd_call_parser_next(&p, &sink, bytes + i, 1, false));
    if (cut) EXPECT_OK(pd_call_parser_next(&p, &sink, bytes, cut, false));
    EXPECT_OK(pd_call_parser_next(&p, &sink, bytes + (cut ? cut : size), cut ? size - cut : 0, true));
    EXPECT_OK(pd_buffer_end(&out->said));
}

/* The same however the bytes are split; of long replies at some places. */
static inline void parse_all_ways(struct transcript *out, const struct pd_calls *c, const char *bytes, size_t size)
{
    parse(out, c, bytes, size, size);
    for (size_t cut = 0; cut < size; cut += 1 + size / 200) {
        struct transcript other;
        parse(&other, c, bytes, size, cut);
        if (strcmp(out->said.data, other.said.data) != 0)
            fail_msg("%s\nwhole: %s\ncut at %zu: %s", bytes, out->said.data, cut, other.said.data);
        free(other.said.data);
    }
}

/* ---- the grammar ---- */

static inline bool accepts(const struct pd_rules *r, const char *bytes, size_t size)
{
    struct pd_walk w;
    pd_walk_begin(&w, r);
    return pd_walk_take(&w, r, bytes, size) && pd_walk_is_complete(&w, r);
}

#endif
