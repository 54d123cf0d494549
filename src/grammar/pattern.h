/* A pattern that is being read: its text and the automaton that it becomes. What goes wrong stays in the automaton. */
#ifndef PD_GRAMMAR_PATTERN_H
#define PD_GRAMMAR_PATTERN_H

#include "base/utf8.h"
#include "grammar/chars.h"

#include <string.h>

#define PD_MAX_RANGES 256

struct pd_range {
    uint32_t low, high;
};

struct pd_pattern {
    struct pd_chars *out;
    const char *text;
    size_t size, at;
    uint32_t depth;
    bool looks_ahead;              /* the text has (?= or (?! somewhere */
};

/* Characters of a class. */
struct pd_ranges {
    struct pd_range r[PD_MAX_RANGES];
    uint32_t n;
    bool ascii;                    /* its complement is of ASCII characters only */
};

static inline bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

static inline void refuse(struct pd_pattern *p, const char *what)
{
    if (p->out->status == PERIDOT_OK)
        p->out->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s (byte %zu of the pattern)", what, p->at);
}

static inline bool ok(const struct pd_pattern *p) { return p->out->status == PERIDOT_OK; }
static inline bool more(const struct pd_pattern *p) { return ok(p) && p->at < p->size; }
static inline bool next_is(const struct pd_pattern *p, char c) { return more(p) && p->text[p->at] == c; }

static inline bool begins_with(const struct pd_pattern *p, const char *text)
{
    size_t n = strlen(text);
    return more(p) && p->size - p->at >= n && memcmp(p->text + p->at, text, n) == 0;
}

static inline bool take(struct pd_pattern *p, char c)
{
    bool is = next_is(p, c);
    p->at += is;
    return is;
}

static inline uint32_t take_char(struct pd_pattern *p)
{
    uint32_t code = 0;
    size_t length = 1;
    pd_chars_work(p->out, 8);
    if (!more(p)) refuse(p, "it ends too early");
    else if (pd_utf8_next(&code, &length, p->text + p->at, p->size - p->at) != PD_UTF8_CHARACTER)
        refuse(p, "it is not UTF-8");
    if (ok(p)) p->at += length;
    return code;
}

/* The characters that an expression of one stands for, of which c is the first of the text: a class, an escape, a dot,
 * or c itself. */
void pd_pattern_take_ranges(struct pd_pattern *p, struct pd_ranges *r, uint32_t c);

#endif
