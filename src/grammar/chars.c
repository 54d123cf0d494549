/* Sets of strings as nondeterministic automata over characters: what patterns, formats and limits of length become
 * before strings.c writes them as JSON. Functions that write keep what goes wrong in `status`. */
#include "base/base.h"
#include "grammar/grammar.h"

#include <stdlib.h>
#include <string.h>

void pd_chars_begin(struct pd_chars *c, struct pd_work *work)
{
    *c = (struct pd_chars){.n_states = PD_CHARS_END + 1, .work = work};
}

void pd_chars_free(struct pd_chars *c)
{
    free(c->edges);
    *c = (struct pd_chars){0};
}

bool pd_chars_work(struct pd_chars *c, uint64_t n)
{
    if (c->status == PERIDOT_OK) c->status = pd_work_spend(c->work, n);
    return c->status == PERIDOT_OK;
}

uint32_t pd_chars_state(struct pd_chars *c)
{
    if (pd_chars_work(c, 4) && c->n_states > PD_MAX_STATES)
        c->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the pattern is too large");
    return c->n_states++;
}

void pd_chars_edge(struct pd_chars *c, uint32_t from, uint32_t low, uint32_t high, uint32_t to)
{
    if (!pd_chars_work(c, 4)) return;
    if (c->n_edges == PD_MAX_STATES) c->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the pattern is too large");
    else c->status = pd_array_reserve(&c->edges, &c->edges_capacity, c->n_edges, 1, sizeof *c->edges, "pattern");
    if (c->status == PERIDOT_OK) c->edges[c->n_edges++] = (struct pd_char_edge){from, to, low, high};
}

void pd_chars_skip(struct pd_chars *c, uint32_t from, uint32_t to) { pd_chars_edge(c, from, PD_SKIP, PD_SKIP, to); }

void pd_chars_add(struct pd_chars *c, const struct pd_chars *of, uint32_t from, uint32_t to)
{
    uint32_t base = c->n_states;
    for (uint32_t i = 0; i < of->n_states && c->status == PERIDOT_OK; i++) pd_chars_state(c);
    for (size_t i = 0; i < of->n_edges && c->status == PERIDOT_OK; i++)
        pd_chars_edge(c, base + of->edges[i].from, of->edges[i].low, of->edges[i].high, base + of->edges[i].to);
    pd_chars_skip(c, from, base + PD_CHARS_START);
    pd_chars_skip(c, base + PD_CHARS_END, to);
}

peridot_status pd_chars_from_length(struct pd_chars *out, struct pd_work *work, uint32_t min, uint32_t max)
{
    uint32_t state = PD_CHARS_START;
    pd_chars_begin(out, work);
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

/* ---- chars sets ---- */

/* Intersection and complement of sets of strings, and deterministic automata of them. All follow only what can be
 * reached, and leave out the states from which no string ends. */

#define FREE UINT32_MAX

/* Edges of each state, one after another: skips first, then by their first character. */
static int compare_edges(const void *a, const void *b)
{
    const struct pd_char_edge *x = a, *y = b;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    uint32_t x_low = x->low + 1, y_low = y->low + 1;   /* PD_SKIP: 0 */
    return x_low < y_low ? -1 : x_low > y_low;
}

struct sorted {
    struct pd_char_edge *edges;
    uint32_t *first;               /* [n_states + 1] */
};

static void sorted_free(struct sorted *s)
{
    free(s->edges);
    free(s->first);
}

/* The edges of c; `reversed`: from each state backwards. */
static peridot_status chars_sort(struct sorted *out, const struct pd_chars *c, bool reversed)
{
    size_t n = c->n_edges;
    PD_TRY(pd_work_spend(c->work, c->n_states));
    PD_TRY(pd_work_spend_sort(c->work, 4 * n));
    out->edges = malloc((n + 1) * sizeof *out->edges);
    out->first = calloc(c->n_states + (size_t)1, sizeof *out->first);
    if (!out->edges || !out->first) return pd_fail_alloc(n * sizeof *out->edges, "pattern");
    for (size_t i = 0; i < n; i++) {
        out->edges[i] = c->edges[i];
        if (reversed) out->edges[i].from = c->edges[i].to;
        if (reversed) out->edges[i].to = c->edges[i].from;
    }
    qsort(out->edges, n, sizeof *out->edges, compare_edges);
    for (size_t i = 0; i < n; i++) out->first[out->edges[i].from + 1]++;
    for (uint32_t i = 0; i < c->n_states; i++) out->first[i + 1] += out->first[i];
    return PERIDOT_OK;
}

/* ---- what ends ---- */

/* Numbers of the states from which a string ends, and of the first two. */
static uint32_t number_ends(uint32_t *number, uint32_t *queue, const struct sorted *backwards, uint32_t n_states)
{
    uint32_t n = 1, n_kept = PD_CHARS_END + 1;
    memset(number, 0xff, n_states * sizeof *number);
    number[PD_CHARS_START] = PD_CHARS_START;
    number[PD_CHARS_END] = PD_CHARS_END;
    queue[0] = PD_CHARS_END;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t e = backwards->first[queue[i]]; e < backwards->first[queue[i] + 1]; e++) {
            uint32_t from = backwards->edges[e].to;
            if (number[from] != FREE) continue;
            number[from] = n_kept++;
            queue[n++] = from;
        }
    return n_kept;
}

static peridot_status trim(struct pd_chars *c)
{
    struct sorted backwards = {0};
    uint32_t *number = malloc(c->n_states * sizeof *number), *queue = malloc(c->n_states * sizeof *queue);
    size_t kept = 0;
    if (!number || !queue) c->status = pd_fail_alloc(c->n_states * sizeof *number, "pattern");
    if (c->status == PERIDOT_OK) c->status = chars_sort(&backwards, c, true);
    if (c->status == PERIDOT_OK) {
        c->n_states = number_ends(number, queue, &backwards, c->n_states);
        for (size_t i = 0; i < c->n_edges; i++) {
            struct pd_char_edge e = c->edges[i];
            if (number[e.from] == FREE || number[e.to] == FREE) continue;
            c->edges[kept++] = (struct pd_char_edge){number[e.from], number[e.to], e.low, e.high};
        }
        c->n_edges = kept;
    }
    sorted_free(&backwards);
    free(number);
    free(queue);
    return c->status;
}

/* *a becomes `made`. */
static peridot_status replace(struct pd_chars *a, struct pd_chars *made)
{
    if (made->status == PERIDOT_OK) trim(made);
    peridot_status status = made->status;
    if (status == PERIDOT_OK) {
        pd_chars_free(a);
        *a = *made;
    } else {
        pd_chars_free(made);
        a->status = status;
    }
    return status;
}

/* ---- sets of numbers ---- */

/* Sets of states, or pairs of them, each numbered when it is first met. */
struct sets {
    struct pd_work *work;
    uint32_t *members;             /* of all sets, one after another */
    size_t n_members, members_capacity;
    size_t *begin;                 /* [n + 1] */
    size_t n, begin_capacity;
    uint32_t *table;               /* set + 1 by the hash of its members; 0: free */
    size_t mask;
};

static peridot_status sets_begin(struct sets *s, struct pd_work *work)
{
    *s = (struct sets){.work = work, .mask = 63};
    s->table = calloc(s->mask + 1, sizeof *s->table);
    if (!s->table) return pd_fail_alloc((s->mask + 1) * sizeof *s->table, "pattern");
    PD_TRY(pd_array_reserve(&s->begin, &s->begin_capacity, 0, 2, sizeof *s->begin, "pattern"));
    s->begin[0] = 0;
    return PERIDOT_OK;
}

static void sets_free(struct sets *s)
{
    free(s->members);
    free(s->begin);
    free(s->table);
}

/* A member of the set that is being made. */
static peridot_status sets_add(struct sets *s, uint32_t member)
{
    PD_TRY(pd_work_spend(s->work, 4));
    PD_TRY(pd_array_reserve(&s->members, &s->members_capacity, s->n_members, 1, sizeof *s->members, "pattern"));
    s->members[s->n_members++] = member;
    return PERIDOT_OK;
}

static size_t sets_size(const struct sets *s, size_t set) { return s->begin[set + 1] - s->begin[set]; }

static size_t slot_of(const struct sets *s, const uint32_t *members, size_t n)
{
    uint64_t h = n;
    for (size_t i = 0; i < n; i++) {
        h = (h ^ members[i]) * 0xd6e8feb86659fd93u;
        h ^= h >> 32;
    }
    return h & s->mask;
}

static peridot_status sets_grow(struct sets *s)
{
    if (s->n < s->mask / 2) return PERIDOT_OK;
    PD_TRY(pd_work_spend(s->work, s->n_members + s->n));
    uint32_t *table = calloc(2 * (s->mask + 1), sizeof *table);
    if (!table) return pd_fail_alloc(2 * (s->mask + 1) * sizeof *table, "pattern");
    free(s->table);
    s->table = table;
    s->mask = 2 * s->mask + 1;
    for (size_t i = 0; i < s->n; i++) {
        size_t slot = slot_of(s, s->members + s->begin[i], sets_size(s, i));
        while (table[slot]) slot = (slot + 1) & s->mask;
        table[slot] = (uint32_t)i + 1;
    }
    return PERIDOT_OK;
}

/* The number of the set that was made, in the order of its members. */
static peridot_status sets_end(uint32_t *out, struct sets *s)
{
    uint32_t *members = s->members + s->begin[s->n];
    size_t n = s->n_members - s->begin[s->n];
    PD_TRY(sets_grow(s));
    PD_TRY(pd_work_spend(s->work, 4 + n));
    size_t slot = slot_of(s, members, n);
    for (; s->table[slot]; slot = (slot + 1) & s->mask) {
        uint32_t found = s->table[slot] - 1;
        PD_TRY(pd_work_spend(s->work, 1 + n / 8));
        if (sets_size(s, found) != n || (n && memcmp(s->members + s->begin[found], members, n * sizeof *members) != 0))
            continue;
        s->n_members = s->begin[s->n];
        *out = found;
        return PERIDOT_OK;
    }
    PD_TRY(pd_array_reserve(&s->begin, &s->begin_capacity, s->n + 1, 1, sizeof *s->begin, "pattern"));
    *out = (uint32_t)s->n;
    s->table[slot] = (uint32_t)++s->n;
    s->begin[s->n] = s->n_members;
    return PERIDOT_OK;
}

/* ---- both of two ---- */

struct product {
    struct pd_chars *out;
    struct sets pairs;             /* each is a state of *out */
    struct sorted a, b;
};

static uint32_t pair(struct product *p, uint32_t a, uint32_t b)
{
    struct pd_chars *out = p->out;
    uint32_t state = 0;
    if (out->status == PERIDOT_OK) out->status = sets_add(&p->pairs, a);
    if (out->status == PERIDOT_OK) out->status = sets_add(&p->pairs, b);
    if (out->status == PERIDOT_OK) out->status = sets_end(&state, &p->pairs);
    if (out->status == PERIDOT_OK && state == out->n_states) pd_chars_state(out);
    return state;
}

static void expand(struct product *p, uint32_t state)
{
    uint32_t left = p->pairs.members[2 * state], right = p->pairs.members[2 * state + 1];
    uint32_t i = p->a.first[left], a_end = p->a.first[left + 1], b = p->b.first[right], b_end = p->b.first[right + 1];
    for (; i < a_end && p->a.edges[i].low == PD_SKIP; i++)
        pd_chars_skip(p->out, state, pair(p, p->a.edges[i].to, right));
    for (; b < b_end && p->b.edges[b].low == PD_SKIP; b++)
        pd_chars_skip(p->out, state, pair(p, left, p->b.edges[b].to));
    for (; i < a_end && pd_chars_work(p->out, b_end - b); i++)
        for (uint32_t k = b; k < b_end; k++) {
            const struct pd_char_edge *x = &p->a.edges[i], *y = &p->b.edges[k];
            uint32_t low = (uint32_t)pd_max(x->low, y->low), high = (uint32_t)pd_min(x->high, y->high);
            if (low <= high) pd_chars_edge(p->out, state, low, high, pair(p, x->to, y->to));
        }
}

peridot_status pd_chars_intersect(struct pd_chars *a, const struct pd_chars *b)
{
    struct pd_chars made;
    struct product p = {.out = &made};
    pd_chars_begin(&made, a->work);
    made.status = sets_begin(&p.pairs, a->work);
    if (made.status == PERIDOT_OK) made.status = chars_sort(&p.a, a, false);
    if (made.status == PERIDOT_OK) made.status = chars_sort(&p.b, b, false);
    pair(&p, PD_CHARS_START, PD_CHARS_START);
    pair(&p, PD_CHARS_END, PD_CHARS_END);
    for (uint32_t i = 0; i < p.pairs.n && made.status == PERIDOT_OK; i++) expand(&p, i);
    sets_free(&p.pairs);
    sorted_free(&p.a);
    sorted_free(&p.b);
    return replace(a, &made);
}

/* ---- deterministic, or all but those of one ---- */

struct subsets {
    struct pd_chars *out;
    struct sets sets;              /* set i is state PD_CHARS_END + 1 + i of *out */
    struct sorted of;
    uint32_t *seen;                /* [n_states]: number of the closure that a state was added to last */
    uint32_t n_closures;
    uint32_t universal;            /* a state from which every string ends; FREE: none is known */
    bool complement;
    struct pd_char_edge *edges;    /* that leave a set */
    size_t n_edges, edges_capacity;
    uint32_t *cuts;                /* first characters from which on other edges are taken */
    size_t cuts_capacity;
};

static peridot_status add_member(struct subsets *s, uint32_t state)
{
    if (s->seen[state] == s->n_closures) return PERIDOT_OK;
    s->seen[state] = s->n_closures;
    return sets_add(&s->sets, state);
}

/* The state that stays with any character, and may end. */
static uint32_t find_universal(const struct sorted *of, uint32_t n_states)
{
    for (uint32_t i = 0; i < n_states; i++) {
        bool stays = false, ends = false;
        for (uint32_t e = of->first[i]; e < of->first[i + 1]; e++) {
            const struct pd_char_edge *edge = &of->edges[e];
            stays = stays || (edge->low == 0 && edge->high == PD_LAST_CHAR && edge->to == i);
            ends = ends || (edge->low == PD_SKIP && edge->to == PD_CHARS_END);
        }
        if (stays && ends) return i;
    }
    return FREE;
}

/* The set of the members that were added and of all that skips lead to: its state. With the universal state, the others
 * make no difference. */
static peridot_status end_subset(uint32_t *state, struct subsets *s)
{
    size_t begin = s->sets.begin[s->sets.n];
    for (size_t i = begin; i < s->sets.n_members; i++) {
        if (s->sets.members[i] == s->universal) {
            s->sets.n_members = begin + 1;
            s->sets.members[begin] = s->universal;
            break;
        }
        uint32_t e = s->of.first[s->sets.members[i]], end = s->of.first[s->sets.members[i] + 1];
        for (; e < end && s->of.edges[e].low == PD_SKIP; e++) {
            PD_TRY(pd_work_spend(s->sets.work, 2));
            PD_TRY(add_member(s, s->of.edges[e].to));
        }
    }
    s->n_closures++;
    size_t n = s->sets.n_members - begin;
    PD_TRY(pd_work_sort(s->sets.work, s->sets.members + begin, n));
    PD_TRY(sets_end(state, &s->sets));
    *state += PD_CHARS_END + 1;
    if (*state == s->out->n_states) pd_chars_state(s->out);
    return s->out->status;
}

/* Edges on characters, and the cuts between them; *ends: the set has the end. */
static peridot_status gather(struct subsets *s, size_t *n_cuts, bool *ends, size_t set)
{
    s->n_edges = *n_cuts = 0;
    *ends = false;
    for (size_t i = s->sets.begin[set]; i < s->sets.begin[set + 1]; i++) {
        uint32_t member = s->sets.members[i], first = s->of.first[member], n = s->of.first[member + 1] - first;
        *ends = *ends || member == PD_CHARS_END || member == s->universal;
        PD_TRY(pd_work_spend(s->sets.work, 1 + n));
        PD_TRY(pd_array_reserve(&s->edges, &s->edges_capacity, s->n_edges, n, sizeof *s->edges, "pattern"));
        for (uint32_t k = first; k < first + n; k++)
            if (s->of.edges[k].low != PD_SKIP) s->edges[s->n_edges++] = s->of.edges[k];
    }
    PD_TRY(pd_array_reserve(&s->cuts, &s->cuts_capacity, 0, 2 * s->n_edges + 2, sizeof *s->cuts, "pattern"));
    s->cuts[(*n_cuts)++] = 0;
    for (size_t i = 0; i < s->n_edges; i++) {
        s->cuts[(*n_cuts)++] = s->edges[i].low;
        s->cuts[(*n_cuts)++] = s->edges[i].high + 1;
    }
    return pd_work_sort(s->sets.work, s->cuts, *n_cuts);
}

/* Every character leads from every set to one, which may be empty. */
static peridot_status write_set(struct subsets *s, size_t set)
{
    uint32_t from = PD_CHARS_END + 1 + (uint32_t)set;
    size_t n_cuts;
    bool ends;
    PD_TRY(gather(s, &n_cuts, &ends, set));
    if (ends != s->complement) pd_chars_skip(s->out, from, PD_CHARS_END);
    for (size_t i = 0; i < n_cuts && s->cuts[i] <= PD_LAST_CHAR; i++) {
        uint32_t low = s->cuts[i], high = i + 1 < n_cuts ? s->cuts[i + 1] - 1 : PD_LAST_CHAR, to;
        if (i + 1 < n_cuts && s->cuts[i + 1] == low) continue;
        PD_TRY(pd_work_spend(s->sets.work, s->n_edges));
        for (size_t k = 0; k < s->n_edges; k++)
            if (s->edges[k].low <= low && s->edges[k].high >= low) PD_TRY(add_member(s, s->edges[k].to));
        PD_TRY(end_subset(&to, s));
        struct pd_char_edge *last = s->out->n_edges ? &s->out->edges[s->out->n_edges - 1] : NULL;
        if (last && last->from == from && last->to == to && last->high + 1 == low) last->high = high;
        else pd_chars_edge(s->out, from, low, high, to);
    }
    return s->out->status;
}

static peridot_status write_sets(struct subsets *s, const struct pd_chars *a)
{
    uint32_t first;
    PD_TRY(sets_begin(&s->sets, a->work));
    PD_TRY(chars_sort(&s->of, a, false));
    s->seen = calloc(a->n_states, sizeof *s->seen);
    if (!s->seen) return pd_fail_alloc(a->n_states * sizeof *s->seen, "pattern");
    s->n_closures = 1;
    s->universal = find_universal(&s->of, a->n_states);
    PD_TRY(add_member(s, PD_CHARS_START));
    PD_TRY(end_subset(&first, s));
    pd_chars_skip(s->out, PD_CHARS_START, first);
    for (size_t i = 0; i < s->sets.n; i++) PD_TRY(write_set(s, i));
    return PERIDOT_OK;
}

static peridot_status determinise(struct pd_chars *a, bool complement)
{
    struct pd_chars made;
    struct subsets s = {.out = &made, .complement = complement};
    pd_chars_begin(&made, a->work);
    peridot_status status = write_sets(&s, a);
    if (made.status == PERIDOT_OK) made.status = status;
    sets_free(&s.sets);
    sorted_free(&s.of);
    free(s.seen);
    free(s.edges);
    free(s.cuts);
    return replace(a, &made);
}

peridot_status pd_chars_determinise(struct pd_chars *a) { return determinise(a, false); }
peridot_status pd_chars_complement(struct pd_chars *a) { return determinise(a, true); }
