/* Regular expressions of ECMA-262 become automata by Thompson's construction. A string is read between two marks, which
 * are characters of their own: ^ is the first, $ the last, and what neither holds may have anything before or after.
 * Look-ahead at the start is a set of strings by itself, which is intersected with that of the rest. */
#include "base/base.h"
#include "grammar/grammar_.h"

#include <stdlib.h>

#define MARK_BEGIN (PD_LAST_CHAR + 1)
#define MARK_END (PD_LAST_CHAR + 2)
#define MAX_DEPTH 32u
#define MAX_REPEAT 1000u

/* ---- expressions ---- */

static uint32_t take_choice(struct pd_pattern *p, uint32_t from);

static uint32_t write_ranges(struct pd_pattern *p, uint32_t from, const struct pd_ranges *r)
{
    uint32_t to = pd_chars_state(p->out);
    for (uint32_t i = 0; i < r->n; i++) pd_chars_edge(p->out, from, r->r[i].low, r->r[i].high, to);
    return to;
}

/* What is not a group after (?, by the dialect that has it. */
static void refuse_group(struct pd_pattern *p)
{
    static const struct {
        const char *begins, *what;
    } groups[] = {
        {"=", "look-ahead is supported only at the start of the pattern, after ^"},
        {"!", "look-ahead is supported only at the start of the pattern, after ^"},
        {"<=", "look-behind is not supported"},
        {"<!", "look-behind is not supported"},
        {"P<", "named groups are (?<name>...) in ECMA-262, not (?P<name>...)"},
        {"P=", "back-references are not supported"},
        {"P>", "calls of groups are not supported"},
        {"&", "calls of groups are not supported"},
        {"R", "calls of groups are not supported"},
        {">", "atomic groups are not supported"},
        {"(", "conditions are not supported"},
        {"#", "comments are not supported"},
    };
    const char *what = more(p) && (is_letter(p->text[p->at]) || p->text[p->at] == '-')
                           ? "flags such as (?i) are not supported" : "this kind of group is not supported";
    for (size_t i = PD_COUNT(groups); i-- > 0;)
        if (begins_with(p, groups[i].begins)) what = groups[i].what;
    refuse(p, what);
}

static void take_name(struct pd_pattern *p)
{
    size_t begin = p->at;
    while (more(p) && !next_is(p, '>')) take_char(p);
    if (p->at == begin || !take(p, '>')) refuse(p, "a group has no name");
}

static uint32_t take_group(struct pd_pattern *p, uint32_t from)
{
    bool plain = !take(p, '?') || take(p, ':');
    if (!plain && (begins_with(p, "<=") || begins_with(p, "<!") || !take(p, '<'))) refuse_group(p);
    else if (!plain) take_name(p);
    if (++p->depth > MAX_DEPTH) refuse(p, "groups nest too deep");
    uint32_t to = take_choice(p, from);
    p->depth--;
    if (!take(p, ')')) refuse(p, "a group has no end");
    return to;
}

static uint32_t take_atom(struct pd_pattern *p, uint32_t from)
{
    struct pd_ranges r = {0};
    uint32_t c = take_char(p);
    if (c == '(') return take_group(p, from);
    if (c == '^' || c == '$') {
        uint32_t to = pd_chars_state(p->out), mark = c == '^' ? MARK_BEGIN : MARK_END;
        pd_chars_edge(p->out, from, mark, mark, to);
        return to;
    }
    if (ok(p) && c && c < 0x80 && strchr("*+?{", (int)c)) refuse(p, "there is nothing to repeat");
    pd_pattern_take_ranges(p, &r, c);
    return write_ranges(p, from, &r);
}

static uint32_t take_count(struct pd_pattern *p)
{
    uint32_t n = 0;
    if (!more(p) || p->text[p->at] < '0' || p->text[p->at] > '9') refuse(p, "{ is not followed by a count");
    for (; more(p) && p->text[p->at] >= '0' && p->text[p->at] <= '9'; p->at++) {
        n = 10 * n + (uint32_t)(p->text[p->at] - '0');
        if (n > MAX_REPEAT) refuse(p, "it repeats something more than 1000 times");
    }
    return n;
}

/* False: the atom comes once. */
static bool take_quantifier(struct pd_pattern *p, uint32_t *min, uint32_t *max)
{
    *min = 0;
    *max = UINT32_MAX;
    if (take(p, '+')) *min = 1;
    else if (take(p, '?')) *max = 1;
    else if (take(p, '{')) {
        *min = *max = take_count(p);
        if (take(p, ',')) *max = next_is(p, '}') ? UINT32_MAX : take_count(p);
        if (!take(p, '}')) refuse(p, "{ has no end");
        if (*max < *min) refuse(p, "it repeats something at most fewer times than at least");
    } else if (!take(p, '*')) return false;
    take(p, '?');   /* lazy: the same strings */
    if (next_is(p, '+')) refuse(p, "possessive quantifiers (such as a++) are not supported");
    return true;
}

/* The atom at `begin`, of which there is a copy from `start` to `end`, min .. max times. */
static uint32_t repeat(struct pd_pattern *p, size_t begin, uint32_t start, uint32_t end, uint32_t min, uint32_t max)
{
    size_t after = p->at;
    uint32_t last = pd_chars_state(p->out);
    if (min == 0) pd_chars_skip(p->out, start, last);
    for (uint32_t i = 1; ok(p) && i < (max == UINT32_MAX ? min : max); i++) {
        if (i >= min) pd_chars_skip(p->out, end, last);
        start = pd_chars_state(p->out);
        pd_chars_skip(p->out, end, start);
        p->at = begin;
        end = take_atom(p, start);
    }
    if (max == UINT32_MAX) pd_chars_skip(p->out, end, start);
    if (max > 0) pd_chars_skip(p->out, end, last);
    if (ok(p)) p->at = after;
    return last;
}

static uint32_t take_sequence(struct pd_pattern *p, uint32_t state)
{
    while (more(p) && !next_is(p, '|') && !next_is(p, ')')) {
        size_t begin = p->at;
        uint32_t start = pd_chars_state(p->out), min, max;
        bool mark = p->text[begin] == '^' || p->text[begin] == '$';
        pd_chars_skip(p->out, state, start);
        state = take_atom(p, start);
        if (!ok(p) || !take_quantifier(p, &min, &max)) continue;
        if (mark) refuse(p, "there is nothing to repeat");
        else state = repeat(p, begin, start, state, min, max);
    }
    return state;
}

static uint32_t take_choice(struct pd_pattern *p, uint32_t from)
{
    uint32_t to = pd_chars_state(p->out);
    do pd_chars_skip(p->out, take_sequence(p, from), to);
    while (take(p, '|'));
    return to;
}

/* ---- marks ---- */

/* Marks the states that skips lead to from one, backwards or not. */
static peridot_status close_skips(struct pd_chars *c, bool *marked, uint32_t from, bool backwards)
{
    uint32_t *first = calloc(c->n_states + (size_t)2, sizeof *first), *to = malloc((c->n_edges + 1) * sizeof *to),
             *queue = malloc(c->n_states * sizeof *queue), n = 0;
    if (first && to && queue) {
        for (int fill = 0; fill < 2; fill++) {
            for (size_t i = 0; i < c->n_edges; i++) {
                const struct pd_char_edge *e = &c->edges[i];
                uint32_t begin = backwards ? e->to : e->from, end = backwards ? e->from : e->to;
                if (e->low == PD_SKIP && !fill) first[begin + 2]++;
                if (e->low == PD_SKIP && fill) to[first[begin + 1]++] = end;
            }
            for (uint32_t i = 2; i < c->n_states + 2 && !fill; i++) first[i] += first[i - 1];
        }
        marked[queue[n++] = from] = true;
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t k = first[queue[i]]; k < first[queue[i] + 1]; k++)
                if (!marked[to[k]]) marked[queue[n++] = to[k]] = true;
    } else {
        c->status = pd_fail_alloc((c->n_states + c->n_edges) * sizeof *to, "pattern");
    }
    free(first);
    free(to);
    free(queue);
    return c->status;
}

/* The first mark is taken before the first character and the last one after the last: both are skips then, of a state
 * that only the beginning leads to, and of states that only the end follows. */
static peridot_status remove_marks(struct pd_chars *c, uint32_t start, uint32_t end)
{
    bool *begins = calloc(c->n_states, sizeof *begins), *ends = calloc(c->n_states, sizeof *ends);
    size_t n = c->n_edges, kept = 0;
    pd_chars_work(c, 8 * (n + c->n_states));
    if (begins && ends && c->status == PERIDOT_OK && close_skips(c, begins, start, false) == PERIDOT_OK &&
        close_skips(c, ends, end, true) == PERIDOT_OK) {
        for (size_t i = 0; i < n && c->status == PERIDOT_OK; i++) {
            const struct pd_char_edge e = c->edges[i];
            if (e.low == MARK_BEGIN && begins[e.from]) pd_chars_skip(c, PD_CHARS_START, e.to);
            if (e.low == MARK_END && ends[e.to]) pd_chars_skip(c, e.from, PD_CHARS_END);
        }
        for (size_t i = 0; i < c->n_edges; i++)
            if (c->edges[i].low == PD_SKIP || c->edges[i].low <= PD_LAST_CHAR) c->edges[kept++] = c->edges[i];
        c->n_edges = kept;
    }
    if (!begins || !ends) c->status = pd_fail_alloc(c->n_states, "pattern");
    free(begins);
    free(ends);
    return c->status;
}

/* ---- sets of strings ---- */

/* The strings of an expression, or of one alternative of it, which begins at the first character if it is `anchored`:
 * the mark and anything, or neither; the expression; the same at the end. */
static void take_strings(struct pd_pattern *p, struct pd_chars *out, bool anchored, bool alternative)
{
    struct pd_chars *outer = p->out;
    pd_chars_begin(out, outer->work);
    out->status = outer->status;
    p->out = out;
    uint32_t start = pd_chars_state(out), any = pd_chars_state(out), first = pd_chars_state(out),
             rest = pd_chars_state(out), end = pd_chars_state(out);
    pd_chars_edge(out, start, MARK_BEGIN, MARK_BEGIN, any);
    if (!anchored) pd_chars_edge(out, any, 0, PD_LAST_CHAR, any);
    pd_chars_skip(out, any, first);
    pd_chars_skip(out, start, first);
    uint32_t last = alternative ? take_sequence(p, first) : take_choice(p, first);
    pd_chars_skip(out, last, rest);
    pd_chars_skip(out, last, end);
    pd_chars_edge(out, rest, 0, PD_LAST_CHAR, rest);
    pd_chars_edge(out, rest, MARK_END, MARK_END, end);
    if (ok(p)) remove_marks(out, start, end);
    p->out = outer;
    if (ok(p)) outer->status = out->status;
}

static void take_set(struct pd_pattern *p, struct pd_chars *out, bool anchored);

/* The strings that are as (?=...) or (?!...) wants them. */
static void take_look_ahead(struct pd_pattern *p, struct pd_chars *out)
{
    bool negative = begins_with(p, "(?!");
    p->at += 3;
    if (++p->depth > MAX_DEPTH) refuse(p, "groups nest too deep");
    take_set(p, out, true);
    p->depth--;
    if (!take(p, ')')) refuse(p, "a group has no end");
    if (ok(p)) p->out->status = negative ? pd_chars_complement(out) : pd_chars_determinise(out);
    if (more(p) && strchr("*+?{", p->text[p->at])) refuse(p, "there is nothing to repeat");
}

static bool looks_ahead(const struct pd_pattern *p) { return begins_with(p, "(?=") || begins_with(p, "(?!"); }

/* An alternative: *out becomes the strings of what follows its look-ahead and of that. */
static void take_alternative(struct pd_pattern *p, struct pd_chars *out, bool anchored)
{
    struct pd_chars ahead[2] = {{0}};
    bool any = false;
    if (begins_with(p, "^(?=") || begins_with(p, "^(?!")) anchored = take(p, '^');
    while (anchored && looks_ahead(p)) {
        take_look_ahead(p, &ahead[any]);
        if (ok(p) && any) p->out->status = pd_chars_intersect(&ahead[0], &ahead[1]);
        if (any) pd_chars_free(&ahead[1]);
        any = true;
    }
    take_strings(p, out, anchored, true);
    if (ok(p) && any) p->out->status = pd_chars_intersect(out, &ahead[0]);
    pd_chars_free(&ahead[0]);
}

/* An expression. Its alternatives share states unless there is look-ahead, which is about one of them. */
static void take_set(struct pd_pattern *p, struct pd_chars *out, bool anchored)
{
    if (!p->looks_ahead) {
        take_strings(p, out, anchored, false);
        return;
    }
    pd_chars_begin(out, p->out->work);
    do {
        struct pd_chars one;
        take_alternative(p, &one, anchored);
        if (ok(p)) pd_chars_add(out, &one, PD_CHARS_START, PD_CHARS_END);
        pd_chars_free(&one);
        if (ok(p)) p->out->status = out->status;
    } while (take(p, '|'));
}

static bool has_look_ahead(const char *text, size_t size)
{
    for (size_t i = 0; i + 2 < size; i++)
        if (text[i] == '(' && text[i + 1] == '?' && (text[i + 2] == '=' || text[i + 2] == '!')) return true;
    return false;
}

peridot_status pd_chars_from_pattern(struct pd_chars *out, struct pd_work *work, const char *pattern, size_t size)
{
    struct pd_chars whole = {.work = work};
    struct pd_pattern p = {.out = &whole, .text = pattern, .size = size, .looks_ahead = has_look_ahead(pattern, size)};
    *out = (struct pd_chars){0};
    PD_TRY(pd_work_spend(work, size));
    take_set(&p, out, false);
    if (ok(&p) && p.at < p.size) refuse(&p, "a ) closes no group");
    out->status = whole.status;
    return out->status;
}

/* ---- pattern class ---- */

/* Characters of patterns: classes and escapes. */

static void add_range(struct pd_pattern *p, struct pd_ranges *r, uint32_t low, uint32_t high)
{
    if (low > high) refuse(p, "a range of characters ends before it begins");
    else if (r->n == PD_MAX_RANGES) refuse(p, "a class has too many characters");
    else r->r[r->n++] = (struct pd_range){low, high};
}

static int compare_ranges(const void *a, const void *b)
{
    const struct pd_range *x = a, *y = b;
    return x->low < y->low ? -1 : x->low > y->low;
}

static void complement(struct pd_pattern *p, struct pd_ranges *r)
{
    const struct pd_ranges old = *r;
    struct pd_ranges sorted = old;
    uint32_t from = 0, last = r->ascii ? 0x7f : PD_LAST_CHAR;
    if (!pd_chars_work(p->out, 64 + 8 * sorted.n)) return;
    qsort(sorted.r, sorted.n, sizeof *sorted.r, compare_ranges);
    r->n = 0;
    for (uint32_t i = 0; i < sorted.n && from <= last; i++) {
        if (sorted.r[i].low > from)
            add_range(p, r, from, sorted.r[i].low - 1 < last ? sorted.r[i].low - 1 : last);
        if (sorted.r[i].high >= from) from = sorted.r[i].high + 1;
    }
    if (from <= last) add_range(p, r, from, last);
}

/* \d, \w, \s and their complements; false: the letter is none of them. */
static bool add_shorthand(struct pd_pattern *p, struct pd_ranges *r, char letter)
{
    static const struct {
        char letter;
        struct pd_range r[4];
        uint32_t n;
    } shorthands[] = {{'d', {{'0', '9'}}, 1},
                      {'w', {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}, 4},
                      {'s', {{'\t', '\r'}, {' ', ' '}}, 2}};
    for (size_t i = 0; i < sizeof shorthands / sizeof *shorthands; i++) {
        struct pd_ranges of = {.ascii = true};
        if ((letter | 0x20) != shorthands[i].letter) continue;
        for (uint32_t k = 0; k < shorthands[i].n; k++)
            add_range(p, &of, shorthands[i].r[k].low, shorthands[i].r[k].high);
        if (letter < 'a') complement(p, &of);
        for (uint32_t k = 0; k < of.n; k++) add_range(p, r, of.r[k].low, of.r[k].high);
        r->ascii = true;
        return true;
    }
    return false;
}

static uint32_t take_hex(struct pd_pattern *p, int n)
{
    uint32_t code = 0;
    for (int i = 0; i < n; i++) {
        char c = more(p) ? p->text[p->at] : 0, lower = (char)(c | 0x20);
        if (c >= '0' && c <= '9') code = code << 4 | (uint32_t)(c - '0');
        else if (lower >= 'a' && lower <= 'f') code = code << 4 | (uint32_t)(lower - 'a' + 10);
        else refuse(p, "an escape lacks hexadecimal digits");
        p->at++;
    }
    return code;
}

static uint32_t take_unicode(struct pd_pattern *p)
{
    uint32_t code = 0;
    if (take(p, '{')) {
        do code = code << 4 | take_hex(p, 1);
        while (more(p) && code <= PD_LAST_CHAR && !next_is(p, '}'));
        if (!take(p, '}') || code > PD_LAST_CHAR) refuse(p, "\\u{...} is no character");
        return code;
    }
    code = take_hex(p, 4);
    if (code < 0xd800 || code >= 0xe000) return code;
    bool pair = code < 0xdc00 && take(p, '\\') && take(p, 'u');
    uint32_t low = pair ? take_hex(p, 4) : 0;
    if (low < 0xdc00 || low >= 0xe000) refuse(p, "half a surrogate pair is no character");
    return 0x10000 + ((code - 0xd800) << 10) + (low & 0x3ff);
}

static void refuse_escape(struct pd_pattern *p, char letter)
{
    static const struct {
        const char *letters, *what;
    } escapes[] = {
        {"123456789k", "back-references are not supported"},
        {"pP", "Unicode properties (\\p) are not supported"},
        {"bB", "word boundaries (\\b) are not supported"},
        {"0", "octal escapes are not supported"},
        {"AZzG", "\\A, \\Z, \\z and \\G are not part of ECMA-262, which has ^ and $"},
    };
    const char *what = "this escape is not part of ECMA-262";
    for (size_t i = 0; i < PD_COUNT(escapes); i++)
        if (strchr(escapes[i].letters, letter)) what = escapes[i].what;
    refuse(p, what);
}

/* The character that an escape stands for, the backslash being past. */
static uint32_t take_escape(struct pd_pattern *p)
{
    static const char letters[] = "tnrfv", codes[] = "\t\n\r\f\v";
    uint32_t c = take_char(p);
    const char *found = c && c < 0x80 ? strchr(letters, (int)c) : NULL;
    if (found) return (uint32_t)codes[found - letters];
    if (c == 'x') return take_hex(p, 2);
    if (c == 'u') return take_unicode(p);
    if (c == 'c' && more(p) && is_letter(p->text[p->at])) return take_char(p) & 0x1f;
    if (c == '0' && !(more(p) && p->text[p->at] >= '0' && p->text[p->at] <= '9')) return 0;
    if (c == '0' || is_letter((char)c) || (c >= '1' && c <= '9')) refuse_escape(p, (char)c);
    return c;
}

/* One character or end of a range in a class; false: it was a shorthand, whose ranges were added. */
static bool take_class_char(struct pd_pattern *p, struct pd_ranges *r, uint32_t *c)
{
    *c = take_char(p);
    if (*c != '\\' || !more(p)) return true;
    if (add_shorthand(p, r, p->text[p->at])) {
        p->at++;
        return false;
    }
    *c = take(p, 'b') ? '\b' : take_escape(p);
    return true;
}

static void take_class(struct pd_pattern *p, struct pd_ranges *r)
{
    bool negated = take(p, '^');
    if (next_is(p, ']')) refuse(p, "an empty class is not supported");
    while (ok(p) && !take(p, ']')) {
        uint32_t low, high;
        if (!take_class_char(p, r, &low)) continue;
        high = low;
        if (next_is(p, '-') && p->at + 1 < p->size && p->text[p->at + 1] != ']') {
            p->at++;
            if (!take_class_char(p, r, &high)) refuse(p, "a range of characters ends in a class");
        }
        add_range(p, r, low, high);
    }
    if (negated) complement(p, r);
}

void pd_pattern_take_ranges(struct pd_pattern *p, struct pd_ranges *r, uint32_t c)
{
    static const struct pd_ranges line_ends = {.r = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}, .n = 3};
    if (c == '[') {
        take_class(p, r);
    } else if (c == '.') {
        *r = line_ends;
        complement(p, r);
    } else if (c == '\\' && more(p) && add_shorthand(p, r, p->text[p->at])) {
        p->at++;
    } else {
        if (c == '\\') c = take_escape(p);
        add_range(p, r, c, c);
    }
}
