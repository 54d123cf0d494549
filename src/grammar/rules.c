/* A pushdown automaton over bytes: rules, each a finite automaton whose edges are bytes or calls of rules. Bytes are
 * deterministic in a rule; calls may overlap with each other, which is what walk.c has threads for. Every rule takes at
 * least one byte, and its first is never in a call, so that following a byte takes one call at most.
 *
 * Rules are written as nondeterministic automata, one after another (pd_rules_begin, pd_nfa_..., pd_rules_end), and
 * pd_rules_finish finds the states from which no value can be completed, which walks avoid. Functions that write cannot
 * fail by themselves: what goes wrong stays in `status`, and pd_rules_end gives it back. */
#include "grammar/grammar.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

enum { EDGE_SKIP, EDGE_BYTES, EDGE_CALL, N_EDGE_KINDS };

/* Steps of work: of an edge that is looked at, of a member that is added, sorted and hashed. */
#define EDGE_COST 2
#define MEMBER_COST 4

void pd_rules_free(struct pd_rules *r)
{
    free(r->states);
    free(r->bytes);
    free(r->calls);
    free(r->starts);
    free(r->edges);
    *r = (struct pd_rules){0};
}

static bool keep_failure(struct pd_rules *r, peridot_status status)
{
    if (r->status == PERIDOT_OK) r->status = status;
    return r->status == PERIDOT_OK;
}

bool pd_rules_work(struct pd_rules *r, uint64_t n)
{
    if (r->status != PERIDOT_OK) return false;
    r->status = pd_work_spend(&r->work, n);
    if (r->status == PERIDOT_OK && pd_max(r->n_nfa_states, r->n_states) > PD_MAX_STATES) r->status = pd_work_fail();
    return r->status == PERIDOT_OK;
}

/* Room for one more after n. */
#define RESERVE(r, array, n) \
    keep_failure(r, pd_array_reserve(&(r)->array, &(r)->array##_capacity, n, 1, sizeof *(r)->array, "grammar"))

/* ---- writing ---- */

uint32_t pd_rules_add(struct pd_rules *r)
{
    if (!RESERVE(r, starts, r->n_rules)) return 0;
    r->starts[r->n_rules] = UINT32_MAX;
    return (uint32_t)r->n_rules++;
}

void pd_rules_begin(struct pd_rules *r)
{
    r->n_edges = 0;
    r->n_nfa_states = PD_NFA_END + 1;
}

uint32_t pd_nfa_state(struct pd_rules *r)
{
    pd_rules_work(r, MEMBER_COST);
    return r->n_nfa_states++;
}

static void add_edge(struct pd_rules *r, struct pd_nfa_edge edge)
{
    if (!pd_rules_work(r, MEMBER_COST) || !RESERVE(r, edges, r->n_edges)) return;
    r->edges[r->n_edges++] = edge;
}

void pd_nfa_bytes(struct pd_rules *r, uint32_t from, uint8_t low, uint8_t high, uint32_t to)
{
    add_edge(r, (struct pd_nfa_edge){.from = from, .to = to, .kind = EDGE_BYTES, .low = low, .high = high});
}

void pd_nfa_any_of(struct pd_rules *r, uint32_t from, const char *characters, uint32_t to)
{
    for (const char *c = characters; *c; c++) pd_nfa_bytes(r, from, (uint8_t)*c, (uint8_t)*c, to);
}

void pd_nfa_skip(struct pd_rules *r, uint32_t from, uint32_t to)
{
    add_edge(r, (struct pd_nfa_edge){.from = from, .to = to, .kind = EDGE_SKIP});
}

void pd_nfa_call(struct pd_rules *r, uint32_t from, uint32_t rule, uint32_t to)
{
    add_edge(r, (struct pd_nfa_edge){.from = from, .to = to, .kind = EDGE_CALL, .rule = rule});
}

uint32_t pd_nfa_text(struct pd_rules *r, uint32_t from, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        uint32_t to = pd_nfa_state(r);
        pd_nfa_bytes(r, from, (uint8_t)text[i], (uint8_t)text[i], to);
        from = to;
    }
    return from;
}

/* ---- one rule made deterministic: the subset construction ---- */

struct subsets {
    struct pd_rules *r;
    uint32_t *first;               /* [N_EDGE_KINDS * n_nfa_states + 1]: edges of each state and kind */
    uint32_t *seen;                /* [n_nfa_states]: number of the closure that a state was added to last */
    uint32_t n_closures;
    uint32_t *members;             /* of all subsets, one after another */
    size_t n_members, members_capacity;
    size_t *begin;                 /* [n_subsets + 1] */
    size_t n_subsets, begin_capacity;
    uint32_t *table;               /* subset + 1 by the hash of its members; 0: free */
    uint32_t mask;
    uint32_t base;                 /* state of subset 0 */
};

static uint32_t place_of(const struct pd_nfa_edge *edge) { return N_EDGE_KINDS * edge->from + edge->kind; }

static bool sort_edges(struct subsets *s)
{
    struct pd_rules *r = s->r;
    uint32_t n = N_EDGE_KINDS * r->n_nfa_states;
    struct pd_nfa_edge *sorted = malloc((r->n_edges + 1) * sizeof *sorted);
    s->first = calloc(n + 2, sizeof *s->first);
    s->seen = calloc(r->n_nfa_states, sizeof *s->seen);
    if (!sorted || !s->first || !s->seen) {
        free(sorted);
        return keep_failure(r, pd_fail_alloc(r->n_edges * sizeof *sorted, "grammar"));
    }
    for (size_t i = 0; i < r->n_edges; i++) s->first[place_of(&r->edges[i]) + 2]++;
    for (uint32_t i = 2; i < n + 2; i++) s->first[i] += s->first[i - 1];
    for (size_t i = 0; i < r->n_edges; i++) sorted[s->first[place_of(&r->edges[i]) + 1]++] = r->edges[i];
    free(r->edges);
    r->edges = sorted;
    r->edges_capacity = r->n_edges + 1;
    return true;
}

/* Adds a state to the subset that is being made, at the end of `members`. */
static void add_member(struct subsets *s, uint32_t state)
{
    if (s->seen[state] == s->n_closures) return;
    s->seen[state] = s->n_closures;
    if (!pd_rules_work(s->r, MEMBER_COST)) return;
    if (!keep_failure(s->r, pd_array_reserve(&s->members, &s->members_capacity, s->n_members, 1, sizeof *s->members,
                                             "grammar")))
        return;
    s->members[s->n_members++] = state;
}

static uint64_t hash_members(const uint32_t *members, size_t n)
{
    uint64_t h = n;
    for (size_t i = 0; i < n; i++) {
        h = (h ^ members[i]) * 0xd6e8feb86659fd93u;
        h ^= h >> 32;
    }
    return h;
}

static bool grow_table(struct subsets *s)
{
    if (s->table && s->n_subsets < s->mask / 2) return true;
    if (!pd_rules_work(s->r, s->n_members + s->n_subsets)) return false;
    uint32_t n = s->table ? 2 * (s->mask + 1) : 64;
    uint32_t *table = calloc(n, sizeof *table);
    if (!table) return keep_failure(s->r, pd_fail_alloc(n * sizeof *table, "grammar"));
    free(s->table);
    s->table = table;
    s->mask = n - 1;
    for (size_t i = 0; i < s->n_subsets; i++) {
        uint64_t h = hash_members(s->members + s->begin[i], s->begin[i + 1] - s->begin[i]);
        uint32_t slot = (uint32_t)(h ^ h >> 32) & s->mask;
        while (table[slot]) slot = (slot + 1) & s->mask;
        table[slot] = (uint32_t)i + 1;
    }
    return true;
}

/* The subset of the members that were added since begin[n_subsets], and of all that skips lead to. */
static uint32_t end_subset(struct subsets *s)
{
    struct pd_rules *r = s->r;
    size_t begin = s->begin[s->n_subsets];
    for (size_t i = begin; i < s->n_members; i++) {
        const uint32_t *first = s->first + N_EDGE_KINDS * s->members[i] + EDGE_SKIP;
        if (!pd_rules_work(r, EDGE_COST * (1 + first[1] - first[0]))) return 0;
        for (uint32_t e = first[0]; e < first[1]; e++) add_member(s, r->edges[e].to);
    }
    s->n_closures++;
    size_t n = s->n_members - begin;
    if (!keep_failure(r, pd_work_sort(&r->work, s->members + begin, n)) || !grow_table(s)) return 0;
    uint64_t h = hash_members(s->members + begin, n);
    uint32_t slot = (uint32_t)(h ^ h >> 32) & s->mask;
    for (; s->table[slot] && pd_rules_work(r, 1 + n / 8); slot = (slot + 1) & s->mask) {
        uint32_t found = s->table[slot] - 1;
        if (s->begin[found + 1] - s->begin[found] == n &&
            memcmp(s->members + s->begin[found], s->members + begin, n * sizeof *s->members) == 0) {
            s->n_members = begin;
            return s->base + found;
        }
    }
    if (!keep_failure(r, pd_array_reserve(&s->begin, &s->begin_capacity, s->n_subsets + 1, 1, sizeof *s->begin,
                                          "grammar")))
        return 0;
    s->table[slot] = (uint32_t)s->n_subsets + 1;
    s->begin[++s->n_subsets] = s->n_members;
    return s->base + (uint32_t)s->n_subsets - 1;
}

/* Edges of one kind that leave a subset. */
static size_t gather(struct subsets *s, size_t subset, uint8_t kind, const struct pd_nfa_edge **out, size_t n_max)
{
    size_t n = 0;
    for (size_t i = s->begin[subset]; i < s->begin[subset + 1]; i++) {
        const uint32_t *first = s->first + N_EDGE_KINDS * s->members[i] + kind;
        if (!pd_rules_work(s->r, EDGE_COST * (1 + first[1] - first[0]))) return 0;
        for (uint32_t e = first[0]; e < first[1] && n < n_max; e++) out[n++] = &s->r->edges[e];
    }
    return n;
}

static void write_bytes(struct subsets *s, struct pd_state *state, const struct pd_nfa_edge **edges, size_t n)
{
    struct pd_rules *r = s->r;
    bool cut[257] = {false};
    if (n == 0 || !pd_rules_work(r, 64)) return;
    for (size_t i = 0; i < n; i++) cut[edges[i]->low] = cut[edges[i]->high + 1] = true;
    for (unsigned low = 0, high; low < 256; low = high) {
        bool any = false;
        high = low + 1;
        while (high < 256 && !cut[high]) high++;
        if (!cut[low] || !pd_rules_work(r, n)) continue;
        for (size_t i = 0; i < n; i++) {
            if (edges[i]->low > low || edges[i]->high < low) continue;
            add_member(s, edges[i]->to);
            any = true;
        }
        if (!any) continue;
        uint32_t to = end_subset(s);
        struct pd_byte_edge *last = state->n_bytes ? &r->bytes[r->n_bytes - 1] : NULL;
        if (last && last->to == to && last->high + 1u == low) {
            last->high = (uint8_t)(high - 1);
            continue;
        }
        if (!RESERVE(r, bytes, r->n_bytes)) return;
        r->bytes[r->n_bytes++] = (struct pd_byte_edge){(uint8_t)low, (uint8_t)(high - 1), to};
        state->n_bytes++;
    }
}

static int compare_calls(const void *a, const void *b)
{
    const struct pd_nfa_edge *x = *(const struct pd_nfa_edge *const *)a, *y = *(const struct pd_nfa_edge *const *)b;
    return x->rule < y->rule ? -1 : x->rule > y->rule;
}

static void write_calls(struct subsets *s, struct pd_state *state, const struct pd_nfa_edge **edges, size_t n)
{
    struct pd_rules *r = s->r;
    if (!keep_failure(r, pd_work_spend_sort(&r->work, EDGE_COST * n))) return;
    qsort(edges, n, sizeof *edges, compare_calls);
    for (size_t i = 0, next; i < n; i = next) {
        for (next = i; next < n && edges[next]->rule == edges[i]->rule; next++) add_member(s, edges[next]->to);
        uint32_t to = end_subset(s);
        if (!RESERVE(r, calls, r->n_calls)) return;
        r->calls[r->n_calls++] = (struct pd_call_edge){.rule = edges[i]->rule, .to = to};
        if (++state->n_calls > PD_MAX_CALL_EDGES) keep_failure(r, pd_work_fail());
    }
}

static void make_states(struct subsets *s)
{
    struct pd_rules *r = s->r;
    const struct pd_nfa_edge **edges = malloc((r->n_edges + 1) * sizeof *edges);
    if (!edges) keep_failure(r, pd_fail_alloc(r->n_edges * sizeof *edges, "grammar"));
    if (edges) add_member(s, PD_NFA_START);
    if (edges) end_subset(s);
    for (size_t i = 0; i < s->n_subsets && r->status == PERIDOT_OK; i++) {
        struct pd_state state = {.bytes = (uint32_t)r->n_bytes, .calls = (uint32_t)r->n_calls};
        for (size_t k = s->begin[i]; k < s->begin[i + 1]; k++) state.ends |= s->members[k] == PD_NFA_END;
        write_bytes(s, &state, edges, gather(s, i, EDGE_BYTES, edges, r->n_edges));
        write_calls(s, &state, edges, gather(s, i, EDGE_CALL, edges, r->n_edges));
        if (RESERVE(r, states, r->n_states)) r->states[r->n_states++] = state;
    }
    free(edges);
}

peridot_status pd_rules_end(struct pd_rules *r, uint32_t rule)
{
    struct subsets s = {.r = r, .n_closures = 1, .base = (uint32_t)r->n_states};
    if (r->status == PERIDOT_OK && sort_edges(&s) &&
        keep_failure(r, pd_array_reserve(&s.begin, &s.begin_capacity, 0, 2, sizeof *s.begin, "grammar"))) {
        s.begin[0] = 0;
        make_states(&s);
        r->starts[rule] = s.base;
    }
    free(s.first);
    free(s.seen);
    free(s.members);
    free(s.begin);
    free(s.table);
    return r->status;
}

peridot_status pd_rules_append(uint32_t *rule, struct pd_rules *r, const struct pd_rules *of)
{
    uint32_t states = (uint32_t)r->n_states, bytes = (uint32_t)r->n_bytes, calls = (uint32_t)r->n_calls;
    *rule = (uint32_t)r->n_rules;
    if (!pd_rules_work(r, of->n_states + of->n_bytes + of->n_calls)) return r->status;
    for (size_t i = 0; i < of->n_states && RESERVE(r, states, r->n_states); i++) {
        struct pd_state *state = &r->states[r->n_states++];
        *state = of->states[i];
        state->bytes += bytes;
        state->calls += calls;
    }
    for (size_t i = 0; i < of->n_bytes && RESERVE(r, bytes, r->n_bytes); i++) {
        r->bytes[r->n_bytes] = of->bytes[i];
        r->bytes[r->n_bytes++].to += states;
    }
    for (size_t i = 0; i < of->n_calls && RESERVE(r, calls, r->n_calls); i++) {
        r->calls[r->n_calls] = of->calls[i];
        r->calls[r->n_calls].to += states;
        r->calls[r->n_calls++].rule += *rule;
    }
    for (size_t i = 0; i < of->n_rules && RESERVE(r, starts, r->n_rules); i++)
        r->starts[r->n_rules++] = of->starts[i] + states;
    return r->status;
}

/* ---- what can be completed ---- */

/* Every edge that a text can take by the state to which it leads. */
struct reverse {
    uint32_t *first;               /* [n_states + 1] */
    uint32_t *from, *rule;         /* rule UINT32_MAX: a byte edge */
    uint32_t *queue;
};

static bool is_lacking(const struct pd_byte_edge *edge, const bool *lacking)
{
    unsigned byte = edge->low;
    while (byte <= edge->high && lacking[byte]) byte++;
    return byte > edge->high;
}

static bool make_reverse(struct reverse *v, const struct pd_rules *r, const bool *lacking)
{
    size_t n = r->n_bytes + r->n_calls;
    v->first = calloc(r->n_states + 2, sizeof *v->first);
    v->from = malloc((n + 1) * sizeof *v->from);
    v->rule = malloc((n + 1) * sizeof *v->rule);
    v->queue = malloc((r->n_states + 1) * sizeof *v->queue);
    if (!v->first || !v->from || !v->rule || !v->queue) return false;
    for (size_t i = 0; i < r->n_bytes; i++) v->first[r->bytes[i].to + 2] += !is_lacking(&r->bytes[i], lacking);
    for (size_t i = 0; i < r->n_calls; i++) v->first[r->calls[i].to + 2]++;
    for (size_t i = 2; i < r->n_states + 2; i++) v->first[i] += v->first[i - 1];
    for (uint32_t i = 0; i < r->n_states; i++) {
        const struct pd_state *s = &r->states[i];
        for (uint32_t k = 0; k < s->n_bytes + s->n_calls; k++) {
            const struct pd_call_edge *call = k < s->n_bytes ? NULL : &r->calls[s->calls + k - s->n_bytes];
            if (!call && is_lacking(&r->bytes[s->bytes + k], lacking)) continue;
            uint32_t at = v->first[(call ? call->to : r->bytes[s->bytes + k].to) + 1]++;
            v->from[at] = i;
            v->rule[at] = call ? call->rule : UINT32_MAX;
        }
    }
    return true;
}

static void free_reverse(struct reverse *v)
{
    free(v->first);
    free(v->from);
    free(v->rule);
    free(v->queue);
}

/* A call takes one more than the rule does inside. */
static bool is_open(const struct pd_rules *r, uint32_t rule, uint32_t height)
{
    return rule == UINT32_MAX || r->states[r->starts[rule]].height < height;
}

/* States from which the end is reached with `height` calls open at once; those that need fewer are known. */
static bool reach(struct pd_rules *r, const struct reverse *v, uint8_t height)
{
    size_t n = 0;
    if (!pd_rules_work(r, r->n_states + r->n_calls)) return false;
    for (uint32_t i = 0; i < r->n_states; i++) {
        struct pd_state *s = &r->states[i];
        bool reaches = height == 0 && s->ends;
        for (uint32_t k = 0; k < s->n_calls && s->height == PD_NEVER && !reaches; k++) {
            const struct pd_call_edge *call = &r->calls[s->calls + k];
            reaches = r->states[call->to].height < height && is_open(r, call->rule, height);
        }
        if (!reaches || s->height != PD_NEVER) continue;
        v->queue[n++] = i;
    }
    for (size_t i = 0; i < n; i++) r->states[v->queue[i]].height = height;
    for (size_t i = 0; i < n; i++)
        for (uint32_t e = v->first[v->queue[i]]; e < v->first[v->queue[i] + 1]; e++) {
            struct pd_state *s = &r->states[v->from[e]];
            if (s->height != PD_NEVER || !is_open(r, v->rule[e], height)) continue;
            s->height = height;
            v->queue[n++] = v->from[e];
        }
    return n > 0;
}

static int compare_first(const void *a, const void *b)
{
    const struct pd_call_edge *x = a, *y = b;
    if (x->low != y->low) return x->low < y->low ? -1 : 1;
    return x->rule < y->rule ? -1 : x->rule > y->rule;
}

/* Of calls the bytes that they begin with. */
static void sort_calls(struct pd_rules *r)
{
    for (size_t i = 0; i < r->n_calls; i++) {
        const struct pd_state *start = &r->states[r->starts[r->calls[i].rule]];
        r->calls[i].low = start->n_bytes ? r->bytes[start->bytes].low : 1;
        r->calls[i].high = start->n_bytes ? r->bytes[start->bytes + start->n_bytes - 1].high : 0;
    }
    for (size_t i = 0; i < r->n_states && keep_failure(r, pd_work_spend_sort(&r->work, r->states[i].n_calls)); i++)
        if (r->states[i].n_calls)
            qsort(r->calls + r->states[i].calls, r->states[i].n_calls, sizeof *r->calls, compare_first);
}

peridot_status pd_rules_restrict(struct pd_rules *r, const bool lacking[256])
{
    struct reverse v = {0};
    if (!pd_rules_work(r, MEMBER_COST * (r->n_states + r->n_bytes + r->n_calls))) return r->status;
    if (make_reverse(&v, r, lacking)) {
        for (size_t i = 0; i < r->n_states; i++) r->states[i].height = PD_NEVER;
        for (uint8_t height = 0; height <= PD_MAX_CALLS && reach(r, &v, height); height++);
    } else {
        keep_failure(r, pd_fail_alloc(r->n_states * sizeof *v.first, "grammar"));
    }
    free_reverse(&v);
    return r->status;
}

peridot_status pd_rules_finish(struct pd_rules *r)
{
    static const bool none[256];
    if (r->status == PERIDOT_OK) sort_calls(r);
    pd_rules_restrict(r, none);
    free(r->edges);
    r->edges = NULL;
    r->n_edges = r->edges_capacity = 0;
    return r->status;
}
