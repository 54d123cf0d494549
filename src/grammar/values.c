/* How JSON spells what is in it, written into rules: constants, characters of strings, numbers, white space. Where a
 * string is not free, each of its characters has one spelling: itself, or the shortest escape where it needs one.
 *
 * Arguments of tool calls have a dialect beside it: strings are as they are between two delimiters, which are not in
 * them, names of members are as they are, and there is no white space. Another has JSON's values, but the arguments
 * themselves are keywords: (name=value, ...); or tags, in which what may be a string is text as it is. */
#include "grammar/grammar.h"

#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pd_values_begin(struct pd_values *v, struct pd_rules *r, const char *delimiter)
{
    *v = (struct pd_values){.rules = r, .delimiter = delimiter};
    v->space = pd_rules_add(r);
    v->escape = pd_rules_add(r);
}

void pd_values_free(struct pd_values *v) { free(v->chars); }

uint32_t pd_write_space(struct pd_values *v, uint32_t from)
{
    if (v->delimiter) return from;
    uint32_t to = pd_nfa_state(v->rules);
    pd_nfa_skip(v->rules, from, to);
    pd_nfa_call(v->rules, from, v->space, to);
    return to;
}

uint32_t pd_write_mark(struct pd_values *v, uint32_t from, char mark)
{
    return pd_write_space(v, pd_nfa_text(v->rules, from, &mark, 1));
}

/* ---- characters ---- */

/* What a string of JSON cannot hold as it is. */
static bool needs_escape(const struct pd_values *v, uint32_t c)
{
    return !v->delimiter && (c < 0x20 || c == '"' || c == '\\');
}

static size_t spell(char out[8], uint32_t c)
{
    static const char letters[] = "btnfr", codes[] = "\b\t\n\f\r";
    const char *found = c ? strchr(codes, (int)c) : NULL;
    if (found) return (size_t)snprintf(out, 8, "\\%c", letters[found - codes]);
    if (c < 0x20) return (size_t)snprintf(out, 8, "\\u%04x", (unsigned)c);
    return (size_t)snprintf(out, 8, "\\%c", (int)c);
}

static uint32_t find_rule(struct pd_values *v, uint32_t low, uint32_t high)
{
    struct pd_rules *r = v->rules;
    if (!pd_rules_work(r, v->n_chars / 2)) return 0;
    for (size_t i = 0; i < v->n_chars; i++)
        if (v->chars[i].low == low && v->chars[i].high == high) return v->chars[i].rule;
    uint32_t rule = pd_rules_add(r);
    peridot_status status =
        pd_array_reserve(&v->chars, &v->chars_capacity, v->n_chars, 1, sizeof *v->chars, "grammar");
    if (r->status == PERIDOT_OK) r->status = status;
    if (r->status == PERIDOT_OK) v->chars[v->n_chars++] = (struct pd_char_rule){low, high, rule};
    return rule;
}

/* Those that are bytes by themselves become edges; the others are rules, as many strings have the same ones. */
void pd_write_char(struct pd_values *v, uint32_t from, uint32_t low, uint32_t high, uint32_t to)
{
    uint32_t begin = low;
    bool escapes = !v->delimiter;
    for (uint32_t c = low; c <= high && c < 0x80; c++) {
        if (!needs_escape(v, c)) continue;
        if (begin < c) pd_nfa_bytes(v->rules, from, (uint8_t)begin, (uint8_t)(c - 1), to);
        begin = c + 1;
    }
    if (begin <= high && begin < 0x80)
        pd_nfa_bytes(v->rules, from, (uint8_t)begin, (uint8_t)pd_min(high, 0x7f), to);
    if (escapes && low < 0x20) pd_nfa_call(v->rules, from, find_rule(v, low, (uint32_t)pd_min(high, 0x1f)), to);
    if (escapes && low <= '"' && high >= '"') pd_nfa_call(v->rules, from, find_rule(v, '"', '"'), to);
    if (escapes && low <= '\\' && high >= '\\') pd_nfa_call(v->rules, from, find_rule(v, '\\', '\\'), to);
    if (high >= 0x80) pd_nfa_call(v->rules, from, find_rule(v, (uint32_t)pd_max(low, 0x80), high), to);
}

void pd_write_any_char(struct pd_values *v, uint32_t from, uint32_t to)
{
    if (v->delimiter) {
        pd_write_char(v, from, 0, PD_LAST_CHAR, to);
        return;
    }
    pd_nfa_bytes(v->rules, from, 0x20, '"' - 1, to);
    pd_nfa_bytes(v->rules, from, '"' + 1, '\\' - 1, to);
    pd_nfa_bytes(v->rules, from, '\\' + 1, 0x7f, to);
    pd_nfa_call(v->rules, from, v->escape, to);
    pd_nfa_call(v->rules, from, find_rule(v, 0x80, PD_LAST_CHAR), to);
}

/* Characters of one length in UTF-8: cut until each byte is of a range, whatever the others are. */
static void write_utf8(struct pd_rules *r, uint32_t low, uint32_t high)
{
    char first[4], last[4];
    for (int i = 1; i < 4; i++) {
        uint32_t mask = (1u << (6 * i)) - 1;
        if ((low & ~mask) == (high & ~mask)) break;
        if (low & mask) {
            write_utf8(r, low, low | mask);
            write_utf8(r, (low | mask) + 1, high);
            return;
        }
        if ((high & mask) != mask) {
            write_utf8(r, low, (high & ~mask) - 1);
            write_utf8(r, high & ~mask, high);
            return;
        }
    }
    int n = (int)pd_utf8_write(first, low);
    pd_utf8_write(last, high);
    for (uint32_t i = 0, from = PD_NFA_START; i < (uint32_t)n; i++) {
        uint32_t to = i + 1 == (uint32_t)n ? PD_NFA_END : pd_nfa_state(r);
        pd_nfa_bytes(r, from, first[i], last[i], to);
        from = to;
    }
}

static void write_chars(struct pd_rules *r, uint32_t low, uint32_t high)
{
    static const struct {
        uint32_t low, high;
    } lengths[] = {{0x80, 0x7ff}, {0x800, 0xd7ff}, {0xe000, 0xffff}, {0x10000, PD_LAST_CHAR}};
    for (uint32_t c = low; c <= high && c < 0x80; c++) {
        char text[8];
        size_t n = spell(text, c);
        uint32_t last = pd_nfa_text(r, PD_NFA_START, text, n - 1);
        pd_nfa_bytes(r, last, (uint8_t)text[n - 1], (uint8_t)text[n - 1], PD_NFA_END);
    }
    for (size_t i = 0; i < PD_COUNT(lengths); i++) {
        uint32_t from = (uint32_t)pd_max(low, lengths[i].low), to = (uint32_t)pd_min(high, lengths[i].high);
        if (from <= to) write_utf8(r, from, to);
    }
}

/* ---- rules that are called ---- */

static void write_space_rule(struct pd_values *v)
{
    struct pd_rules *r = v->rules;
    pd_nfa_any_of(r, PD_NFA_START, " ", PD_NFA_END);
    uint32_t state = pd_nfa_text(r, PD_NFA_START, "\n", 1);
    for (int i = 0; i < PD_INDENT; i++) {
        pd_nfa_skip(r, state, PD_NFA_END);
        state = pd_nfa_text(r, state, " ", 1);
    }
    pd_nfa_skip(r, state, PD_NFA_END);
}

/* \" and its like, \uXXXX of what is no surrogate, and of two surrogates that are a pair. */
static void write_escape_rule(struct pd_values *v)
{
    static const char hex[] = "0123456789abcdefABCDEF";
    struct pd_rules *r = v->rules;
    uint32_t escape = pd_nfa_text(r, PD_NFA_START, "\\", 1), u = pd_nfa_text(r, escape, "u", 1),
             three = pd_nfa_state(r), two = pd_nfa_state(r), one = pd_nfa_state(r), d = pd_nfa_state(r),
             high = pd_nfa_state(r);
    pd_nfa_any_of(r, escape, "\"\\/bfnrt", PD_NFA_END);
    pd_nfa_any_of(r, u, "0123456789abcefABCEF", three);
    pd_nfa_any_of(r, three, hex, two);
    pd_nfa_any_of(r, two, hex, one);
    pd_nfa_any_of(r, one, hex, PD_NFA_END);
    pd_nfa_any_of(r, u, "dD", d);
    pd_nfa_any_of(r, d, "01234567", two);
    pd_nfa_any_of(r, d, "89abAB", high);
    for (int i = 0; i < 2; i++) {
        uint32_t next = pd_nfa_state(r);
        pd_nfa_any_of(r, high, hex, next);
        high = next;
    }
    uint32_t low = pd_nfa_text(r, high, "\\u", 2), after = pd_nfa_state(r);
    pd_nfa_any_of(r, low, "dD", after);
    pd_nfa_any_of(r, after, "cdefCDEF", two);
}

peridot_status pd_values_finish(struct pd_values *v)
{
    pd_rules_begin(v->rules);
    write_space_rule(v);
    PD_TRY(pd_rules_end(v->rules, v->space));
    pd_rules_begin(v->rules);
    write_escape_rule(v);
    PD_TRY(pd_rules_end(v->rules, v->escape));
    for (size_t i = 0; i < v->n_chars; i++) {
        pd_rules_begin(v->rules);
        write_chars(v->rules, v->chars[i].low, v->chars[i].high);
        PD_TRY(pd_rules_end(v->rules, v->chars[i].rule));
    }
    return PERIDOT_OK;
}

/* ---- strings ---- */

static uint32_t quote(struct pd_values *v, uint32_t from)
{
    const char *mark = v->delimiter ? v->delimiter : "\"";
    return pd_nfa_text(v->rules, from, mark, strlen(mark));
}

static void unquote(struct pd_values *v, uint32_t from, uint32_t to) { pd_nfa_skip(v->rules, quote(v, from), to); }

static void keep_failure(struct pd_values *v, peridot_status status)
{
    if (v->rules->status == PERIDOT_OK) v->rules->status = status;
}

/* A delimiter that is text, rather than a control token's mark, must be kept out of strings. */
static bool is_text(const char *delimiter) { return delimiter && delimiter[1]; }

static bool values_contains(const char *text, size_t size, const char *what)
{
    size_t n = strlen(what);
    for (size_t i = 0; n <= size && i <= size - n; i++)
        if (memcmp(text + i, what, n) == 0) return true;
    return false;
}

void pd_write_text(struct pd_values *v, uint32_t from, const char *text, size_t size, uint32_t to)
{
    uint32_t state = quote(v, from);
    if (is_text(v->delimiter) && values_contains(text, size, v->delimiter))
        keep_failure(v, pd_fail(PERIDOT_ERROR_UNSUPPORTED, "calls cannot have a constant with %s in it", v->delimiter));
    for (size_t i = 0; i < size; i++) {
        char escape[8];
        uint8_t c = (uint8_t)text[i];
        if (needs_escape(v, c)) state = pd_nfa_text(v->rules, state, escape, spell(escape, c));
        else state = pd_nfa_text(v->rules, state, text + i, 1);
    }
    unquote(v, state, to);
}

static void write_automaton(struct pd_values *v, uint32_t from, const struct pd_chars *c, uint32_t to)
{
    uint32_t base = v->rules->n_nfa_states;
    for (uint32_t i = 0; i < c->n_states; i++) pd_nfa_state(v->rules);
    for (size_t i = 0; i < c->n_edges && v->rules->status == PERIDOT_OK; i++) {
        const struct pd_char_edge *e = &c->edges[i];
        if (e->low == PD_SKIP) pd_nfa_skip(v->rules, base + e->from, base + e->to);
        else pd_write_char(v, base + e->from, e->low, e->high, base + e->to);
    }
    pd_nfa_skip(v->rules, from, base + PD_CHARS_START);
    pd_nfa_skip(v->rules, base + PD_CHARS_END, to);
}

/* Those of c that `limit` has too. */
static void write_both(struct pd_values *v, uint32_t from, const struct pd_chars *c, const struct pd_chars *limit,
                       uint32_t to)
{
    struct pd_chars both;
    pd_chars_begin(&both, &v->rules->work);
    pd_chars_add(&both, c, PD_CHARS_START, PD_CHARS_END);
    peridot_status status = both.status;
    if (status == PERIDOT_OK) status = pd_chars_intersect(&both, limit);
    if (status == PERIDOT_OK) write_automaton(v, from, &both, to);
    else keep_failure(v, status);
    pd_chars_free(&both);
}

/* Strings that do not contain a text. */
static peridot_status find_without(struct pd_chars *out, struct pd_work *work, const char *text)
{
    uint32_t state, last;
    pd_chars_begin(out, work);
    state = pd_chars_state(out);
    pd_chars_skip(out, PD_CHARS_START, state);
    pd_chars_edge(out, state, 0, PD_LAST_CHAR, state);
    for (; *text; text++, state = last) {
        last = pd_chars_state(out);
        pd_chars_edge(out, state, (uint8_t)*text, (uint8_t)*text, last);
    }
    pd_chars_edge(out, state, 0, PD_LAST_CHAR, state);
    pd_chars_skip(out, state, PD_CHARS_END);
    return out->status == PERIDOT_OK ? pd_chars_complement(out) : out->status;
}

void pd_write_strings(struct pd_values *v, uint32_t from, const struct pd_chars *c, uint32_t to)
{
    uint32_t begin = quote(v, from), end = pd_nfa_state(v->rules);
    if (is_text(v->delimiter)) {
        struct pd_chars without;
        peridot_status status = find_without(&without, &v->rules->work, v->delimiter);
        if (status == PERIDOT_OK) write_both(v, begin, c, &without, end);
        else keep_failure(v, status);
        pd_chars_free(&without);
    } else {
        write_automaton(v, begin, c, end);
    }
    unquote(v, end, to);
}

void pd_write_length(struct pd_values *v, uint32_t from, uint32_t min, uint32_t max, uint32_t to)
{
    if (is_text(v->delimiter)) {
        struct pd_chars length;
        keep_failure(v, pd_chars_from_length(&length, &v->rules->work, min, max));
        if (v->rules->status == PERIDOT_OK) pd_write_strings(v, from, &length, to);
        pd_chars_free(&length);
        return;
    }
    uint32_t state = quote(v, from);
    for (uint32_t i = 0; i < (max == UINT32_MAX ? min : max) && v->rules->status == PERIDOT_OK; i++) {
        uint32_t next = pd_nfa_state(v->rules);
        if (i >= min) unquote(v, state, to);
        pd_write_any_char(v, state, next);
        state = next;
    }
    if (max == UINT32_MAX) pd_write_any_char(v, state, state);
    unquote(v, state, to);
}

void pd_write_tagged(struct pd_values *v, uint32_t from, const struct pd_chars *c, uint32_t to)
{
    struct pd_chars without;
    const char *delimiter = v->delimiter;
    uint32_t end = pd_nfa_state(v->rules);
    keep_failure(v, find_without(&without, &v->rules->work, v->tags->after));
    v->delimiter = v->tags->after;   /* characters are as they are */
    if (v->rules->status == PERIDOT_OK) write_both(v, from, c, &without, end);
    v->delimiter = delimiter;
    pd_chars_free(&without);
    pd_nfa_skip(v->rules, pd_nfa_text(v->rules, end, v->tags->after, strlen(v->tags->after)), to);
}

/* ---- names ---- */

static int lower(char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : (uint8_t)c; }

int pd_name_compare(const char *a, size_t a_size, const char *b, size_t b_size)
{
    size_t n = (size_t)pd_min(a_size, b_size);
    for (size_t i = 0; i < n; i++)
        if (lower(a[i]) != lower(b[i])) return lower(a[i]) - lower(b[i]);
    if (a_size != b_size) return a_size < b_size ? -1 : 1;
    return memcmp(a, b, n);
}

bool pd_is_name_char(uint32_t c) { return c > ' ' && c != 0x7f && (c >= 0x80 || !strchr("\"\\,:{}[]<>", (int)c)); }

bool pd_is_keyword_char(uint32_t c) { return pd_is_name_char(c) && (c >= 0x80 || !strchr("=()'#", (int)c)); }

static bool has_quotes(const struct pd_values *v) { return !v->delimiter && !v->keywords && !v->tags; }
static bool is_inner(const struct pd_values *v, uint32_t c) { return c == ' ' && !v->keywords; }

static bool is_outer(const struct pd_values *v, uint32_t c)
{
    return v->keywords ? pd_is_keyword_char(c) : pd_is_name_char(c);
}

bool pd_is_name(const struct pd_values *v, const char *text, size_t size)
{
    if (has_quotes(v)) return true;
    for (size_t i = 0; i < size; i++) {
        bool inner = i > 0 && i + 1 < size;
        if (!is_outer(v, (uint8_t)text[i]) && !(inner && is_inner(v, (uint8_t)text[i]))) return false;
    }
    return size > 0;
}

/* Those that pd_is_name takes. */
static void find_names(struct pd_chars *out, const struct pd_values *v)
{
    pd_chars_begin(out, &v->rules->work);
    uint32_t inner = pd_chars_state(out);
    if (is_inner(v, ' ')) pd_chars_edge(out, inner, ' ', ' ', inner);
    for (uint32_t c = 0x21, high; c <= PD_LAST_CHAR; c = high + 1) {
        high = c < 0x80 ? c : PD_LAST_CHAR;
        if (!is_outer(v, c)) continue;
        pd_chars_edge(out, PD_CHARS_START, c, high, inner);
        pd_chars_edge(out, PD_CHARS_START, c, high, PD_CHARS_END);
        pd_chars_edge(out, inner, c, high, inner);
        pd_chars_edge(out, inner, c, high, PD_CHARS_END);
    }
}

void pd_write_name(struct pd_values *v, uint32_t from, const char *text, size_t size, uint32_t to)
{
    if (has_quotes(v)) {
        pd_write_text(v, from, text, size, to);
        return;
    }
    if (!pd_is_name(v, text, size))
        keep_failure(v, pd_fail(PERIDOT_ERROR_UNSUPPORTED, "calls cannot have a property %.100s", text));
    pd_nfa_skip(v->rules, pd_nfa_text(v->rules, from, text, size), to);
}

void pd_write_names(struct pd_values *v, uint32_t from, const struct pd_chars *names, uint32_t to)
{
    struct pd_chars all;
    if (has_quotes(v) && names) pd_write_strings(v, from, names, to);
    if (has_quotes(v) && !names) pd_write_length(v, from, 0, UINT32_MAX, to);
    if (has_quotes(v)) return;
    find_names(&all, v);
    keep_failure(v, all.status);
    if (v->rules->status == PERIDOT_OK && names) write_both(v, from, names, &all, to);
    if (v->rules->status == PERIDOT_OK && !names) write_automaton(v, from, &all, to);
    pd_chars_free(&all);
}

/* ---- constants ---- */

static uint32_t write_raw(struct pd_values *v, uint32_t from, yyjson_val *value)
{
    size_t size;
    if (!pd_rules_work(v->rules, 32)) return from;
    char *text = yyjson_val_write(value, 0, &size);
    if (!text && v->rules->status == PERIDOT_OK) v->rules->status = pd_fail_alloc(64, "a constant");
    uint32_t to = text ? pd_nfa_text(v->rules, from, text, size) : from;
    free(text);
    return to;
}

static uint32_t write_members(struct pd_values *v, uint32_t from, yyjson_val *value);

static uint32_t write_value(struct pd_values *v, uint32_t from, yyjson_val *value)
{
    if (yyjson_is_ctn(value)) return write_members(v, from, value);
    if (!yyjson_is_str(value)) return write_raw(v, from, value);
    uint32_t to = pd_nfa_state(v->rules);
    pd_write_text(v, from, yyjson_get_str(value), yyjson_get_len(value), to);
    return to;
}

static uint32_t write_members(struct pd_values *v, uint32_t from, yyjson_val *value)
{
    bool object = yyjson_is_obj(value);
    size_t i, n;
    yyjson_val *key, *member;
    uint32_t state = pd_write_mark(v, from, object ? '{' : '[');
    if (object) {
        yyjson_obj_foreach(value, i, n, key, member) {
            uint32_t after = pd_nfa_state(v->rules);
            if (i) state = pd_write_mark(v, state, ',');
            pd_write_name(v, state, yyjson_get_str(key), yyjson_get_len(key), after);
            state = write_value(v, pd_write_mark(v, after, ':'), member);
        }
    } else {
        yyjson_arr_foreach(value, i, n, member) {
            if (i) state = pd_write_mark(v, state, ',');
            state = write_value(v, state, member);
        }
    }
    if (yyjson_get_len(value)) state = pd_write_space(v, state);
    return pd_nfa_text(v->rules, state, object ? "}" : "]", 1);
}

void pd_write_constant(struct pd_values *v, uint32_t from, yyjson_val *value, uint32_t to)
{
    pd_nfa_skip(v->rules, write_value(v, from, value), to);
}
