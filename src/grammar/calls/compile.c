/* The grammar of a reply: text, then blocks of calls. That a call follows once its begin is written, and nothing else,
 * is by construction: text is written as the strings in which no call begins, a deterministic automaton, and a call may
 * begin after any of them. Where the begin is complete, the text is none of those strings any more, and the call is all
 * that is left. */
#include "base/base.h"
#include "grammar/calls/calls.h"
#include "grammar/grammar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tool_rule {
    struct pd_tool tool;
    uint32_t arguments;            /* rule */
};

struct reply {
    const struct pd_calls *c;
    struct pd_rules *r;
    struct pd_values values;
    struct tool_rule *tools;       /* [n]: that may be called */
    size_t n;
    uint32_t answer;               /* rule, where a schema is given for it */
    uint32_t named[PD_MAX_CALL_SHAPES];   /* rules of a call from its name to its arguments, by shapes */
    const char *name;              /* of the tool whose call is being written */
};

/* ---- text without calls ---- */

static uint32_t add_space(struct pd_chars *out, uint32_t from)
{
    uint32_t to = pd_chars_state(out), state = pd_chars_state(out);
    pd_chars_skip(out, from, to);
    pd_chars_edge(out, from, ' ', ' ', to);
    pd_chars_edge(out, from, '\n', '\n', state);
    for (int i = 0; i < PD_INDENT; i++) {
        uint32_t next = pd_chars_state(out);
        pd_chars_skip(out, state, to);
        pd_chars_edge(out, state, ' ', ' ', next);
        state = next;
    }
    pd_chars_skip(out, state, to);
    return to;
}

static uint32_t add_byte(struct pd_chars *out, uint32_t from, char byte)
{
    uint32_t to = pd_chars_state(out);
    pd_chars_edge(out, from, (uint8_t)byte, (uint8_t)byte, to);
    return to;
}

static uint32_t add_literal(struct pd_chars *out, uint32_t from, const char *literal, unsigned marks)
{
    char bytes[PD_CALL_LITERAL];
    size_t n = pd_call_literal(bytes, literal, marks);
    for (size_t i = 0; i < n; i++)
        from = pd_call_is_space(bytes[i]) ? add_space(out, from) : add_byte(out, from, pd_call_byte(bytes[i]));
    return from;
}

/* What commits a text to a call of this shape: its begin leads to `begun`, or all before a tool's name to `names`. */
static void add_begin(struct pd_chars *out, const struct reply *reply, const struct pd_call_shape *shape, uint32_t from,
                      uint32_t names, uint32_t begun)
{
    uint32_t state = add_literal(out, from, shape->begin, reply->c->marks);
    if (!shape->commits) state = add_literal(out, state, pd_call_before(reply->c->format, shape), reply->c->marks);
    pd_chars_skip(out, state, shape->commits ? begun : names);
}

/* The tools' names, and the byte after them that shows their end. */
static void add_names(struct pd_chars *out, const struct reply *reply, uint32_t from, uint32_t to)
{
    for (size_t i = 0; i < reply->n; i++) {
        uint32_t state = from;
        for (size_t k = 0; k < reply->tools[i].tool.name_size; k++)
            state = add_byte(out, state, reply->tools[i].tool.name[k]);
        pd_chars_skip(out, add_byte(out, state, reply->c->format->middle[0]), to);
    }
}

/* The bytes of texts in which no call begins: characters here are bytes. */
static peridot_status find_text(struct pd_chars *out, const struct reply *reply)
{
    pd_chars_begin(out, &reply->r->work);
    uint32_t anywhere = pd_chars_state(out), names = pd_chars_state(out), begun = pd_chars_state(out);
    pd_chars_skip(out, PD_CHARS_START, anywhere);
    pd_chars_edge(out, anywhere, 0, PD_LAST_CHAR, anywhere);
    bool headers = pd_call_format_has_headers(reply->c->format);   /* after one, text is not first */
    for (const struct pd_call_shape *s = reply->c->format->shapes; s->begin; s++)
        if (!headers || !s->only_first)
            add_begin(out, reply, s, s->only_first ? PD_CHARS_START : anywhere, names, begun);
    add_names(out, reply, names, begun);
    pd_chars_edge(out, begun, 0, PD_LAST_CHAR, begun);
    pd_chars_skip(out, begun, PD_CHARS_END);
    return out->status == PERIDOT_OK ? pd_chars_complement(out) : out->status;
}

/* All text may end, and go on at `to`. */
static peridot_status write_text(struct reply *reply, uint32_t from, uint32_t to)
{
    struct pd_rules *r = reply->r;
    struct pd_chars text;
    peridot_status status = find_text(&text, reply);
    uint32_t base = r->n_nfa_states;
    for (uint32_t i = 0; i < text.n_states && status == PERIDOT_OK; i++) pd_nfa_state(r);
    for (size_t i = 0; i < text.n_edges && status == PERIDOT_OK; i++) {
        const struct pd_char_edge *e = &text.edges[i];
        if (e->low == PD_SKIP) pd_nfa_skip(r, base + e->from, base + e->to);
        else if (e->low < PD_CALL_MARK)
            pd_nfa_bytes(r, base + e->from, (uint8_t)e->low, (uint8_t)pd_min(e->high, PD_CALL_MARK - 1), base + e->to);
    }
    pd_chars_free(&text);
    if (status != PERIDOT_OK) return status;
    pd_nfa_skip(r, from, base + PD_CHARS_START);
    pd_nfa_skip(r, base + PD_CHARS_END, PD_NFA_END);
    pd_nfa_skip(r, base + PD_CHARS_END, to);
    return r->status;
}

/* ---- calls ---- */

static uint32_t write_id(struct reply *reply, uint32_t from);

static uint32_t write_literal(struct reply *reply, uint32_t from, const char *literal)
{
    char bytes[PD_CALL_LITERAL];
    size_t n = pd_call_literal(bytes, literal, reply->c->marks);
    uint32_t without = PD_NFA_END;     /* state before what may be there; PD_NFA_END: nothing is open */
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == *PD_CALL_MAYBE) {
            if (without != PD_NFA_END) pd_nfa_skip(reply->r, without, from);
            without = without == PD_NFA_END ? from : PD_NFA_END;
        } else if (pd_call_is_space(bytes[i])) from = pd_write_space(&reply->values, from);
        else if (bytes[i] == *PD_CALL_ID) from = write_id(reply, from);
        else if (bytes[i] == *PD_CALL_NAME) from = pd_nfa_text(reply->r, from, reply->name, strlen(reply->name));
        else from = pd_nfa_text(reply->r, from, &(char){pd_call_byte(bytes[i])}, 1);
    }
    return from;
}

static uint32_t write_id(struct reply *reply, uint32_t from)
{
    struct pd_rules *r = reply->r;
    uint32_t to = pd_nfa_state(r), state = write_literal(reply, from, reply->c->format->id[0]);
    for (int i = 0; i < PD_CALL_ID_SIZE; i++) {
        uint32_t next = pd_nfa_state(r);
        pd_nfa_bytes(r, state, '0', '9', next);
        pd_nfa_bytes(r, state, 'A', 'Z', next);
        pd_nfa_bytes(r, state, 'a', 'z', next);
        state = next;
    }
    pd_nfa_skip(r, write_literal(reply, state, reply->c->format->id[1]), to);
    pd_nfa_skip(r, from, to);
    return to;
}

static peridot_status write_named(struct reply *reply, size_t shape)
{
    const struct pd_call_format *f = reply->c->format;
    struct pd_rules *r = reply->r;
    if (shape && !f->shapes[shape].middle) {
        reply->named[shape] = reply->named[0];
        return PERIDOT_OK;
    }
    reply->named[shape] = pd_rules_add(r);
    pd_rules_begin(r);
    for (size_t i = 0; i < reply->n; i++) {
        const struct tool_rule *tool = &reply->tools[i];
        uint32_t state = pd_nfa_text(r, PD_NFA_START, tool->tool.name, tool->tool.name_size);
        reply->name = tool->tool.name;
        pd_nfa_call(r, write_literal(reply, state, pd_call_middle(f, &f->shapes[shape])), tool->arguments, PD_NFA_END);
    }
    return pd_rules_end(r, reply->named[shape]);
}

static void write_block(struct reply *reply, const struct pd_call_shape *shape, uint32_t from, uint32_t to)
{
    const struct pd_call_format *f = reply->c->format;
    struct pd_rules *r = reply->r;
    uint32_t begin = pd_nfa_state(r), end = pd_nfa_state(r);
    pd_nfa_skip(r, write_literal(reply, from, shape->begin), begin);
    pd_nfa_call(r, write_literal(reply, begin, pd_call_before(f, shape)), reply->named[shape - f->shapes], end);
    end = write_literal(reply, end, f->after);
    if (shape->between && reply->c->parallel) pd_nfa_skip(r, write_literal(reply, end, shape->between), begin);
    pd_nfa_skip(r, write_literal(reply, end, shape->end), to);
}

static peridot_status write_reply(struct reply *reply)
{
    struct pd_rules *r = reply->r;
    pd_rules_begin(r);
    const struct pd_call_format *f = reply->c->format;
    bool headers = pd_call_format_has_headers(f);
    uint32_t anywhere = pd_nfa_state(r), first = pd_nfa_state(r), after = pd_nfa_state(r);
    uint32_t text = headers ? pd_nfa_state(r) : PD_NFA_START;
    for (size_t i = 0; f->headers[i]; i++) pd_nfa_skip(r, write_literal(reply, PD_NFA_START, f->headers[i]), text);
    if (reply->c->choice == PD_CALL_AUTO && reply->c->answer) pd_nfa_call(r, text, reply->answer, PD_NFA_END);
    else if (reply->c->choice == PD_CALL_AUTO) PD_TRY(write_text(reply, text, anywhere));
    else if (!headers)
        pd_nfa_skip(r, pd_write_space(&reply->values, pd_write_space(&reply->values, PD_NFA_START)), anywhere);
    pd_nfa_skip(r, PD_NFA_START, first);
    if (!headers) pd_nfa_skip(r, first, anywhere);
    for (const struct pd_call_shape *s = reply->c->format->shapes; s->begin; s++)
        write_block(reply, s, s->only_first ? first : anywhere, after);
    after = pd_write_space(&reply->values, after);
    pd_nfa_skip(r, after, PD_NFA_END);
    if (f->ends) pd_nfa_skip(r, write_literal(reply, after, f->ends), PD_NFA_END);
    if (reply->c->parallel) pd_nfa_skip(r, after, headers ? anywhere : first);
    return pd_rules_end(r, 0);
}

/* ---- arguments ---- */

enum { MOST_STATES = PD_MAX_STATES / 4 * 3, LOOSE_STATES = 1000 };

/* States that the arguments of tools may have where schemas can be loosened, as replies need some, too. A schema as it
 * is leaves room for those of the tools after it. */
static size_t most_states(const struct reply *reply, int looseness)
{
    size_t n = yyjson_arr_size(reply->c->tools), n_after = reply->c->name ? 0 : n - reply->n - 1;
    return looseness ? MOST_STATES : MOST_STATES - n_after * (size_t)pd_min(LOOSE_STATES, MOST_STATES / (2 * n));
}

static peridot_status compile_arguments(struct reply *reply, struct tool_rule *tool, int looseness)
{
    struct pd_rules rules;
    size_t size = 4;
    char *schema = tool->tool.parameters ? pd_tool_schema(&size, tool->tool.parameters, looseness) : NULL;
    if (tool->tool.parameters && !schema) return pd_fail_alloc(size, "a schema");
    const struct pd_call_format *f = reply->c->format;
    const struct pd_argument_form form = {pd_call_delimiter(f, reply->c->marks), f->keywords, f->tags};
    peridot_status status = pd_schema_compile_arguments(&rules, &reply->r->work, &form, schema ? schema : "true", size);
    if (status == PERIDOT_OK && reply->c->loosened && !tool->tool.strict
        && reply->r->n_states + rules.n_states > most_states(reply, looseness))
        status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the schemas of all tools are too large");
    if (status == PERIDOT_OK) status = pd_rules_append(&tool->arguments, reply->r, &rules);
    pd_rules_free(&rules);
    free(schema);
    return status;
}

/* With less than all of the budget what is too large is tried again, with all of it. */
static bool may_loosen(const struct pd_calls *c, const struct pd_tool *tool, peridot_status status)
{
    return c->loosened && !tool->strict && status != PERIDOT_ERROR_MEMORY
        && (status != PERIDOT_ERROR_UNSUPPORTED || !c->effort);
}

static peridot_status name_loosened(struct pd_buffer *out, const struct pd_tool *tool)
{
    if (out->size) PD_TRY(pd_buffer_add(out, ", ", 2));
    return pd_buffer_add(out, tool->name, tool->name_size);
}

static peridot_status add_arguments(struct reply *reply, struct tool_rule *tool)
{
    struct pd_work *work = &reply->r->work;
    const uint64_t before = work->done;
    peridot_status status = compile_arguments(reply, tool, 0);
    bool loosened = status != PERIDOT_OK && may_loosen(reply->c, &tool->tool, status);
    for (int i = 1; i <= PD_LOOSEST && loosened && status != PERIDOT_OK; i++) {
        /* what one tool has used up is not all that others get */
        if (work->done > work->max) work->done = before + (work->max - before) / 2;
        status = compile_arguments(reply, tool, i);
    }
    if (status == PERIDOT_OK && loosened) return name_loosened(reply->c->loosened, &tool->tool);
    if (status == PERIDOT_OK) return status;
    char place[16 + PD_MAX_CALL_NAME];
    snprintf(place, sizeof place, "tool %s", tool->tool.name);
    return pd_fail_prefix(status, place);
}

/* Its work is counted by itself. */
static peridot_status add_answer(struct reply *reply)
{
    struct pd_rules rules;
    peridot_status status =
        pd_schema_compile_within(&rules, reply->r->work.max, reply->c->answer, reply->c->answer_size);
    if (status == PERIDOT_OK) status = pd_rules_append(&reply->answer, reply->r, &rules);
    pd_rules_free(&rules);
    return status;
}

static peridot_status write_rules(struct reply *reply)
{
    size_t i, n;
    yyjson_val *value;
    pd_rules_add(reply->r);
    pd_values_begin(&reply->values, reply->r, NULL);
    yyjson_arr_foreach(reply->c->tools, i, n, value) {
        struct tool_rule *tool = &reply->tools[reply->n];
        PD_TRY(pd_tool_read(&tool->tool, value, i));
        if (reply->c->name && strcmp(tool->tool.name, reply->c->name) != 0) continue;
        PD_TRY(add_arguments(reply, tool));
        reply->n++;
    }
    if (reply->c->answer) PD_TRY(add_answer(reply));
    for (i = 0; reply->c->format->shapes[i].begin; i++) PD_TRY(write_named(reply, i));
    PD_TRY(write_reply(reply));
    PD_TRY(pd_values_finish(&reply->values));
    PD_TRY(pd_rules_finish(reply->r));
    if (reply->r->states[reply->r->starts[0]].height != PD_NEVER) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_ARGUMENT, "no tool can be called: their arguments nest too deep");
}

peridot_status pd_calls_compile_within(struct pd_rules *out, uint64_t max_work, const struct pd_calls *c)
{
    struct reply reply = {.c = c, .r = out};
    *out = (struct pd_rules){.work.max = max_work};
    PD_TRY(pd_calls_check(c));
    reply.tools = malloc(yyjson_arr_size(c->tools) * sizeof *reply.tools);
    if (!reply.tools) return pd_fail_alloc(yyjson_arr_size(c->tools) * sizeof *reply.tools, "tools");
    peridot_status status = write_rules(&reply);
    pd_values_free(&reply.values);
    free(reply.tools);
    return status;
}

peridot_status pd_calls_compile(struct pd_rules *out, const struct pd_calls *c)
{
    return pd_calls_compile_within(out, PD_MAX_WORK, c);
}
