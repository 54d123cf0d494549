/* What is held back is matched anew with every byte against all that it may become: it is short, and a byte that no
 * call begins with is not held at all. */
#include "grammar/calls/calls.h"

#include "base/base.h"
#include "grammar/grammar.h"

#include <string.h>

/* ---- matching what is held ---- */

enum match { NO, PARTIAL, FULL };

struct matcher {
    const struct pd_call_parser *p;
    size_t at;                     /* bytes of `held` that are matched */
    enum match match;              /* FULL, so far */
    const char *name;              /* of the call */
    size_t name_size;
    struct pd_tool tool;           /* where there is a list of them */
};

static bool has_more(const struct matcher *m) { return m->at < m->p->n_held; }

/* As PD_INDENT says. */
static void match_space(struct matcher *m)
{
    if (!has_more(m)) return;
    char c = m->p->held[m->at];
    m->at += c == ' ' || c == '\n';
    for (int i = 0; c == '\n' && i < PD_INDENT && has_more(m) && m->p->held[m->at] == ' '; i++) m->at++;
}

static void match_byte(struct matcher *m, char byte)
{
    if (m->match != FULL) return;
    if (!has_more(m)) m->match = PARTIAL;
    else if (m->p->held[m->at] != byte) m->match = NO;
    else m->at++;
}

/* Of a call, or its id. */
static void match_name(struct matcher *m, const char **name, size_t *size)
{
    *name = m->p->held + m->at;
    for (; has_more(m) && pd_call_is_name_char(m->p->held[m->at]) && *size <= PD_MAX_CALL_NAME; m->at++) ++*size;
    if (!has_more(m)) m->match = PARTIAL;
    if (*size > PD_MAX_CALL_NAME || (*size == 0 && has_more(m))) m->match = NO;
}

static void match_id(struct matcher *m);

static void match_literal(struct matcher *m, const char *literal)
{
    char bytes[PD_CALL_LITERAL];
    size_t n = pd_call_literal(bytes, literal, m->p->marks);
    struct matcher without = *m;
    bool maybe = false;            /* what comes may be left out */
    for (size_t i = 0; i < n && m->match == FULL; i++) {
        if (bytes[i] == *PD_CALL_MAYBE) {
            without = *m;
            maybe = !maybe;
            continue;
        }
        if (pd_call_is_space(bytes[i])) match_space(m);
        else if (bytes[i] == *PD_CALL_ID) match_id(m);
        else if (bytes[i] == *PD_CALL_NAME) for (size_t k = 0; k < m->name_size; k++) match_byte(m, m->name[k]);
        else match_byte(m, pd_call_byte(bytes[i]));
        if (m->match != NO || !maybe) continue;
        while (bytes[i] != *PD_CALL_MAYBE) i++;
        *m = without;
        maybe = false;
    }
}

static void match_id(struct matcher *m)
{
    const struct matcher without = *m;
    const char *id;
    size_t size = 0;
    match_literal(m, m->p->format->id[0]);
    if (m->match == FULL) match_name(m, &id, &size);
    if (m->match == FULL) match_literal(m, m->p->format->id[1]);
    if (m->match == NO) *m = without;
}

static bool is_tool(struct pd_tool *tool, const struct pd_call_parser *p, const char *name, size_t size)
{
    size_t i, n;
    yyjson_val *value;
    *tool = (struct pd_tool){0};
    if (p->name && (strlen(p->name) != size || memcmp(p->name, name, size) != 0)) return false;
    yyjson_arr_foreach(p->tools, i, n, value)
        if (pd_tool_read(tool, value, i) == PERIDOT_OK && tool->name_size == size &&
            memcmp(tool->name, name, size) == 0)
            return true;
    return !p->tools;
}

/* A call up to its arguments, whose first byte is not counted. */
static void match_head(struct matcher *m, size_t shape)
{
    const struct pd_call_format *f = m->p->format;
    match_literal(m, pd_call_before(f, &f->shapes[shape]));
    if (m->match != FULL) return;
    match_name(m, &m->name, &m->name_size);
    match_literal(m, pd_call_middle(f, &f->shapes[shape]));
    match_byte(m, f->tags ? *f->tags->end : f->keywords ? '(' : '{');
    if (m->match != FULL) return;
    m->at--;
    if (!is_tool(&m->tool, m->p, m->name, m->name_size)) m->match = NO;
}

/* From byte `at` on. */
static struct matcher match_block(const struct pd_call_parser *p, size_t shape, size_t at)
{
    struct matcher m = {.p = p, .at = at, .match = FULL};
    match_literal(&m, p->format->shapes[shape].begin);
    match_head(&m, shape);
    return m;
}

static struct matcher match_between(const struct pd_call_parser *p)
{
    struct matcher m = {.p = p, .match = FULL};
    const char *between = p->format->shapes[p->shape].between;
    if (!between) return (struct matcher){.match = NO};
    match_literal(&m, p->format->after);
    match_literal(&m, between);
    match_head(&m, p->shape);
    return m;
}

static struct matcher match_end(const struct pd_call_parser *p)
{
    struct matcher m = {.p = p, .match = FULL};
    match_literal(&m, p->format->after);
    match_literal(&m, p->format->shapes[p->shape].end);
    return m;
}

/* ---- taking it ---- */

struct parsing {
    struct pd_call_parser *p;
    const struct pd_call_sink *sink;
    struct pd_call_bytes text, arguments;
    bool end;                      /* nothing follows what is held */
};

static peridot_status status_of(const struct parsing *g)
{
    return g->text.status != PERIDOT_OK ? g->text.status : g->arguments.status;
}

static void drop(struct pd_call_parser *p, size_t n)
{
    p->n_held -= n;
    memmove(p->held, p->held + n, p->n_held);
}

static void parser_put_text(struct parsing *g, char byte)
{
    const char *mark = pd_call_mark(pd_call_mark_index(g->p->marks, byte));
    if (mark) pd_call_put(&g->text, mark, strlen(mark));
    else pd_call_put(&g->text, &byte, 1);
}

static void parser_begin_call(struct parsing *g, const struct matcher *m)
{
    pd_call_flush(&g->text);
    if (status_of(g) == PERIDOT_OK) g->text.status = g->sink->begin(g->sink->user, m->name, m->name_size);
    g->p->state = PD_CALL_ARGUMENTS;
    g->p->arguments = (struct pd_call_arguments){.delimiter = pd_call_delimiter(g->p->format, g->p->marks),
                                                   .keywords = g->p->format->keywords,
                                                   .tags = g->p->format->tags,
                                                   .parameters = m->tool.parameters};
    drop(g->p, m->at);
}

/* Each of these takes some of what is held, or goes on to another state; false: more bytes are needed. */

/* What is held may become the header of a thought: then the parser is given no more of it. */
static bool may_think(const struct pd_call_parser *p)
{
    for (size_t i = 0; i < PD_COUNT(p->format->thoughts) && p->format->thoughts[i]; i++) {
        struct matcher m = {.p = p, .match = FULL};
        match_literal(&m, p->format->thoughts[i]);
        if (m.match == PARTIAL || (m.match == FULL && !has_more(&m))) return p->state == PD_CALL_FIRST;
    }
    return false;
}

/* A header of text, and what ends the last message, are no text. */
static enum match take_header(struct parsing *g)
{
    struct pd_call_parser *p = g->p;
    enum match match = NO;
    for (size_t i = 0; p->format->headers[i] && p->state == PD_CALL_FIRST; i++) {
        struct matcher m = {.p = p, .match = FULL};
        match_literal(&m, p->format->headers[i]);
        if (m.match != NO) match = m.match;
        if (m.match != FULL) continue;
        p->state = PD_CALL_TEXT;
        drop(p, m.at);
        return FULL;
    }
    struct matcher m = {.p = p, .match = g->end && p->format->ends ? FULL : NO};
    if (m.match == FULL) match_literal(&m, p->format->ends);
    if (m.match != FULL || has_more(&m)) return match;
    p->n_held = 0;
    return FULL;
}

/* White space before the first call is no text: it is held with it. */
static bool parser_take_text(struct parsing *g)
{
    struct pd_call_parser *p = g->p;
    size_t n_spaces = 0;
    bool headers = pd_call_format_has_headers(p->format);   /* white space may begin one */
    bool spaces = p->state == PD_CALL_FIRST && !headers;
    while (spaces && n_spaces < p->n_held && pd_call_is_space(p->held[n_spaces])) n_spaces++;
    enum match header = take_header(g);
    if (header == FULL) return true;
    bool partial = header == PARTIAL || may_think(p) || (n_spaces > 0 && n_spaces == p->n_held);
    for (size_t i = 0; p->format->shapes[i].begin; i++) {
        if (p->format->shapes[i].only_first && (p->state == PD_CALL_TEXT || n_spaces)) continue;
        struct matcher m = match_block(p, i, n_spaces);
        partial = partial || m.match == PARTIAL;
        if (m.match != FULL) continue;
        p->shape = i;
        parser_begin_call(g, &m);
        return true;
    }
    if (partial && !g->end && p->n_held < PD_MAX_CALL_HEAD) return false;
    parser_put_text(g, p->held[0]);
    p->state = PD_CALL_TEXT;
    drop(p, 1);
    return true;
}

static bool take_after(struct parsing *g)
{
    if (!pd_call_is_space(g->p->held[0])) return parser_take_text(g);
    drop(g->p, 1);
    return true;
}

/* Another call of the block, or its end, of which the last bytes may be missing. */
static bool take_next(struct parsing *g)
{
    struct pd_call_parser *p = g->p;
    struct matcher between = match_between(p), end = match_end(p);
    bool partial = between.match == PARTIAL || end.match == PARTIAL;
    if (between.match == FULL) {
        parser_begin_call(g, &between);
        return true;
    }
    if (partial && !g->end && p->n_held < PD_MAX_CALL_HEAD) return false;
    p->state = end.match == NO ? PD_CALL_TEXT : PD_CALL_AFTER;
    drop(p, end.match == NO ? 0 : end.at);
    return true;
}

static bool take_argument(struct parsing *g)
{
    struct pd_call_parser *p = g->p;
    enum pd_call_taken taken = pd_call_arguments_take(&p->arguments, &g->arguments, p->held[0]);
    if (taken != PD_CALL_BROKEN) drop(p, 1);
    if (taken == PD_CALL_GOES_ON) return true;
    pd_call_flush_characters(&g->arguments, true);
    p->state = taken == PD_CALL_BROKEN ? PD_CALL_TEXT : PD_CALL_NEXT;
    if (taken == PD_CALL_COMPLETE && status_of(g) == PERIDOT_OK) g->arguments.status = g->sink->end(g->sink->user);
    return true;
}

static void take_held(struct parsing *g)
{
    static bool (*const takers[])(struct parsing *g) = {
        [PD_CALL_FIRST] = parser_take_text, [PD_CALL_TEXT] = parser_take_text, [PD_CALL_ARGUMENTS] = take_argument,
        [PD_CALL_NEXT] = take_next, [PD_CALL_AFTER] = take_after};
    while (g->p->n_held && status_of(g) == PERIDOT_OK && takers[g->p->state](g));
}

peridot_status pd_call_parser_next(struct pd_call_parser *p, const struct pd_call_sink *sink, const char *bytes,
                                   size_t size, bool end)
{
    struct parsing g = {.p = p, .sink = sink, .text = {.write = sink->text, .user = sink->user},
                        .arguments = {.write = sink->arguments, .user = sink->user}};
    pd_call_put(&g.arguments, p->begun, p->n_begun);
    for (size_t i = 0; i < size && status_of(&g) == PERIDOT_OK; i++) {
        p->held[p->n_held++] = bytes[i];
        take_held(&g);
    }
    g.end = end;
    if (end) take_held(&g);
    pd_call_flush(&g.text);
    pd_call_flush_characters(&g.arguments, end);
    p->n_begun = g.arguments.n;
    memcpy(p->begun, g.arguments.held, p->n_begun);
    return status_of(&g);
}
