#include "grammar/chars.h"

#include "base/array.h"
#include "base/num.h"

#include <stdlib.h>

#define MAX_EDGES 200000u
#define MAX_PAIRS 4000000u

void pd_chars_begin(struct pd_chars *c) { *c = (struct pd_chars){.n_states = PD_CHARS_END + 1}; }

void pd_chars_free(struct pd_chars *c)
{
    free(c->edges);
    *c = (struct pd_chars){0};
}

uint32_t pd_chars_state(struct pd_chars *c)
{
    if (c->n_states > MAX_EDGES && c->status == PERIDOT_OK)
        c->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the pattern is too large");
    return c->n_states++;
}

void pd_chars_edge(struct pd_chars *c, uint32_t from, uint32_t low, uint32_t high, uint32_t to)
{
    if (c->status != PERIDOT_OK) return;
    if (c->n_edges == MAX_EDGES) c->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the pattern is too large");
    else c->status = pd_array_reserve(&c->edges, &c->edges_capacity, c->n_edges, 1, sizeof *c->edges, "pattern");
    if (c->status == PERIDOT_OK) c->edges[c->n_edges++] = (struct pd_char_edge){from, to, low, high};
}

void pd_chars_skip(struct pd_chars *c, uint32_t from, uint32_t to) { pd_chars_edge(c, from, PD_SKIP, PD_SKIP, to); }

peridot_status pd_chars_from_length(struct pd_chars *out, uint32_t min, uint32_t max)
{
    uint32_t state = PD_CHARS_START;
    pd_chars_begin(out);
    for (uint32_t i = 0; i < (max == UINT32_MAX ? min : max) && out->status == PERIDOT_OK; i++) {
        uint32_t next = pd_chars_state(out);
        if (i >= min) pd_chars_skip(out, state, PD_CHARS_END);
        pd_chars_edge(out, state, 0, PD_LAST_CHAR, next);
        state = next;
    }
    if (max == UINT32_MAX) pd_chars_edge(out, state, 0, PD_LAST_CHAR, state);
    pd_chars_skip(out, state, PD_CHARS_END);
    return out->status;
}

/* ---- both of two ---- */

struct pairs {
    struct pd_chars *out;
    uint32_t *number;              /* [a's states * b's]: the pair's state, 0: none yet */
    struct {
        uint32_t a, b;
    } *of;                         /* [out->n_states]: what each is the pair of */
    size_t of_capacity;
    uint32_t n_b;                  /* states of b */
};

static uint32_t pair(struct pairs *p, uint32_t a, uint32_t b)
{
    uint32_t *number = &p->number[(size_t)a * p->n_b + b];
    struct pd_chars *out = p->out;
    if (a == PD_CHARS_END && b == PD_CHARS_END) return PD_CHARS_END;
    if (*number || (a == PD_CHARS_START && b == PD_CHARS_START)) return *number;
    uint32_t state = pd_chars_state(out);
    if (out->status == PERIDOT_OK)
        out->status = pd_array_reserve(&p->of, &p->of_capacity, state, 1, sizeof *p->of, "pattern");
    if (out->status != PERIDOT_OK) return 0;
    p->of[state].a = a;
    p->of[state].b = b;
    return *number = state;
}

static void expand(struct pairs *p, uint32_t state, const struct pd_chars *a, const uint32_t *first_a,
                   const struct pd_chars *b, const uint32_t *first_b)
{
    uint32_t left = p->of[state].a, right = p->of[state].b;
    for (uint32_t i = first_a[left]; i < first_a[left + 1]; i++)
        if (a->edges[i].low == PD_SKIP) pd_chars_skip(p->out, state, pair(p, a->edges[i].to, right));
    for (uint32_t k = first_b[right]; k < first_b[right + 1]; k++)
        if (b->edges[k].low == PD_SKIP) pd_chars_skip(p->out, state, pair(p, left, b->edges[k].to));
    for (uint32_t i = first_a[left]; i < first_a[left + 1]; i++)
        for (uint32_t k = first_b[right]; k < first_b[right + 1]; k++) {
            const struct pd_char_edge *x = &a->edges[i], *y = &b->edges[k];
            uint32_t low = (uint32_t)pd_max(x->low, y->low), high = (uint32_t)pd_min(x->high, y->high);
            if (x->low == PD_SKIP || y->low == PD_SKIP || low > high || p->out->status != PERIDOT_OK) continue;
            pd_chars_edge(p->out, state, low, high, pair(p, x->to, y->to));
        }
}

static int compare_edges(const void *a, const void *b)
{
    const struct pd_char_edge *x = a, *y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

/* [n_states + 1], of edges that are sorted by `from` then. */
static uint32_t *find_first(const struct pd_chars *c)
{
    uint32_t *first = calloc(c->n_states + (size_t)1, sizeof *first);
    if (c->n_edges) qsort(c->edges, c->n_edges, sizeof *c->edges, compare_edges);
    for (size_t i = 0; first && i < c->n_edges; i++) first[c->edges[i].from + 1]++;
    for (uint32_t i = 0; first && i < c->n_states; i++) first[i + 1] += first[i];
    return first;
}

peridot_status pd_chars_intersect(struct pd_chars *out, const struct pd_chars *a, const struct pd_chars *b)
{
    struct pairs p = {.out = out, .n_b = b->n_states};
    uint64_t n = (uint64_t)a->n_states * b->n_states;
    pd_chars_begin(out);
    if (n > MAX_PAIRS)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "patterns and limits of length are too large together");
    uint32_t *first_a = find_first(a), *first_b = find_first(b);
    p.number = calloc(n, sizeof *p.number);
    out->status = pd_array_reserve(&p.of, &p.of_capacity, 0, 2, sizeof *p.of, "pattern");
    if (!first_a || !first_b || !p.number) out->status = pd_fail_alloc(n * sizeof *p.number, "patterns");
    if (out->status == PERIDOT_OK) {
        p.of[PD_CHARS_START].a = p.of[PD_CHARS_START].b = PD_CHARS_START;
        p.of[PD_CHARS_END].a = p.of[PD_CHARS_END].b = PD_CHARS_END;
    }
    for (uint32_t i = 0; i < out->n_states && out->status == PERIDOT_OK; i++) expand(&p, i, a, first_a, b, first_b);
    free(first_a);
    free(first_b);
    free(p.number);
    free(p.of);
    return out->status;
}

/* ---- formats ---- */

#define HOUR "([01][0-9]|2[0-3])"
#define SIXTY "[0-5][0-9]"
#define TIME HOUR ":" SIXTY ":" SIXTY "(\\.[0-9]{1,9})?(Z|[+-]" HOUR ":" SIXTY ")"
#define LEAP "(0[48]|[2468][048]|[13579][26])"
#define YEAR "([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
#define DATE "(" YEAR "-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|" \
             "02-(0[1-9]|1[0-9]|2[0-8]))|([0-9]{2}" LEAP "|" LEAP "00)-02-29)"
#define COUNT "[0-9]{1,6}"
#define CLOCK "T(" COUNT "H(" COUNT "M(" COUNT "S)?)?|" COUNT "M(" COUNT "S)?|" COUNT "S)"
#define DAYS "(" COUNT "D|" COUNT "M(" COUNT "D)?|" COUNT "Y(" COUNT "M(" COUNT "D)?)?)"
#define LABEL "[A-Za-z0-9]([A-Za-z0-9]|-[A-Za-z0-9]){0,30}"
#define HOST LABEL "(\\." LABEL "){0,3}"
#define BYTE "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define IPV4 BYTE "(\\." BYTE "){3}"
#define HEX "[0-9a-fA-F]"
#define GROUP HEX "{1,4}"

const char *pd_format_pattern(const char *name)
{
    static const struct {
        const char *name, *pattern;
    } formats[] = {
        {"date", "^" DATE "$"},
        {"time", "^" TIME "$"},
        {"date-time", "^" DATE "T" TIME "$"},
        {"duration", "^P(" DAYS "(" CLOCK ")?|" CLOCK "|" COUNT "W)$"},
        {"email", "^[A-Za-z0-9_+-]{1,20}(\\.[A-Za-z0-9_+-]{1,20}){0,2}@" LABEL "(\\." LABEL "){1,3}$"},
        {"hostname", "^" HOST "$"},
        {"ipv4", "^" IPV4 "$"},
        {"ipv6", "^((" GROUP ":){7}" GROUP "|(" GROUP ":){6}" IPV4 "|::(" GROUP "(:" GROUP "){0,5})?|"
                 "(" GROUP ":){1}(:" GROUP "){1,6}|(" GROUP ":){2}(:" GROUP "){1,5}|(" GROUP ":){3}(:" GROUP "){1,4}|"
                 "(" GROUP ":){4}(:" GROUP "){1,3}|(" GROUP ":){5}(:" GROUP "){1,2}|(" GROUP ":){6}:" GROUP "|"
                 "(" GROUP ":){1,7}:|::(ffff:)?" IPV4 ")$"},
        {"uuid", "^" HEX "{8}-" HEX "{4}-" HEX "{4}-" HEX "{4}-" HEX "{12}$"},
    };
    for (size_t i = 0; i < PD_COUNT(formats); i++)
        if (strcmp(formats[i].name, name) == 0) return formats[i].pattern;
    return NULL;
}
