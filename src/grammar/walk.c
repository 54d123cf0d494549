/* Where a text is in a grammar. A thread is a state and the states to which the open calls return; where calls overlap
 * there are several. Every thread can be completed within the limits, so that dropping one, where there are too many,
 * only narrows what is written. */
#include "grammar/grammar.h"

#include "base/base.h"

void pd_walk_begin(struct pd_walk *w, const struct pd_rules *r)
{
    w->n = 1;
    w->threads[0].state = r->starts[0];
    w->threads[0].n_calls = 0;
}

void pd_trail_begin(struct pd_trail *t, const struct pd_rules *r, const struct pd_walk *w)
{
    struct pd_trail_level *level = &t->levels[0];
    t->rules = r;
    t->calls[0] = (struct pd_trail_call){0};
    level->n = w->n;
    level->n_calls = 1;
    for (uint32_t i = 0; i < w->n; i++) {
        const struct pd_walk_thread *from = &w->threads[i];
        uint32_t outer = 0;
        for (uint32_t k = 0; k < from->n_calls; k++) {
            t->calls[level->n_calls] = (struct pd_trail_call){from->returns[k], outer, k + 1};
            outer = level->n_calls++;
        }
        level->threads[i] = (struct pd_trail_thread){from->state, outer};
    }
}

struct step {
    const struct pd_rules *r;
    struct pd_trail_call *calls;
    struct pd_trail_level *level;  /* that is being made */
    uint8_t byte;
};

static bool is_same_call(const struct pd_trail_call *calls, uint32_t a, uint32_t b)
{
    for (; a != b; a = calls[a].outer, b = calls[b].outer)
        if (calls[a].depth != calls[b].depth || calls[a].to != calls[b].to) return false;
    return true;
}

/* Nothing follows in the rule: the call that it is in is as good as left. */
static bool is_last(const struct pd_state *s) { return s->ends && s->n_bytes == 0 && s->n_calls == 0; }

/* A thread in `state`, inside a call that returns to `to` unless that is UINT32_MAX. */
static void add_thread(struct step *s, uint32_t state, uint32_t call, uint32_t to)
{
    struct pd_trail_level *level = s->level;
    if (to != UINT32_MAX && is_last(&s->r->states[state])) {
        state = to;
        to = UINT32_MAX;
    }
    for (; to == UINT32_MAX && call && is_last(&s->r->states[state]); call = s->calls[call].outer)
        state = s->calls[call].to;
    uint32_t depth = s->calls[call].depth + (to != UINT32_MAX);
    if (depth + s->r->states[state].height > PD_MAX_CALLS || level->n == PD_MAX_THREADS) return;
    if (to != UINT32_MAX) {
        s->calls[level->n_calls] = (struct pd_trail_call){to, call, depth};
        call = level->n_calls;
    }
    for (uint32_t i = 0; i < level->n; i++)
        if (level->threads[i].state == state && is_same_call(s->calls, level->threads[i].call, call)) return;
    level->threads[level->n++] = (struct pd_trail_thread){state, call};
    if (to != UINT32_MAX) level->n_calls++;
}

/* Edges are in the order of their bytes. */
static bool find_byte(uint32_t *to, const struct pd_rules *r, const struct pd_state *s, uint8_t byte)
{
    const struct pd_byte_edge *e = r->bytes + s->bytes;
    uint32_t low = 0, high = s->n_bytes;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (e[middle].high < byte) low = middle + 1;
        else high = middle;
    }
    if (low == s->n_bytes || e[low].low > byte) return false;
    *to = e[low].to;
    return true;
}

/* Calls that end where the thread is are left, as far as they do. */
static void walk_follow(struct step *step, struct pd_trail_thread thread)
{
    const struct pd_rules *r = step->r;
    for (;;) {
        const struct pd_state *s = &r->states[thread.state];
        uint32_t to, depth = step->calls[thread.call].depth;
        if (find_byte(&to, r, s, step->byte)) add_thread(step, to, thread.call, UINT32_MAX);
        const struct pd_call_edge *c = r->calls + s->calls, *end = c + s->n_calls;
        for (; c < end && c->low <= step->byte && step->level->n < PD_MAX_THREADS; c++) {
            if (c->high < step->byte || depth + r->states[c->to].height > PD_MAX_CALLS) continue;
            if (find_byte(&to, r, &r->states[r->starts[c->rule]], step->byte)) add_thread(step, to, thread.call, c->to);
        }
        if (!s->ends || thread.call == 0) return;
        thread.state = step->calls[thread.call].to;
        thread.call = step->calls[thread.call].outer;
    }
}

bool pd_level_step(struct pd_trail_level *level, const struct pd_rules *r, struct pd_trail_call *calls,
                   uint32_t n_calls, const struct pd_trail_level *from, uint8_t byte)
{
    struct step step = {r, calls, level, byte};
    level->n = 0;
    level->n_calls = n_calls;
    for (uint32_t i = 0; i < from->n && level->n < PD_MAX_THREADS; i++) walk_follow(&step, from->threads[i]);
    return level->n > 0;
}

bool pd_trail_step(struct pd_trail *t, uint32_t at, uint8_t byte)
{
    const struct pd_trail_level *from = &t->levels[at];
    return pd_level_step(&t->levels[at + 1], t->rules, t->calls, from->n_calls, from, byte);
}

bool pd_trail_take(struct pd_trail *t, const char *bytes, size_t size)
{
    for (uint32_t i = 0; i < size; i++)
        if (!pd_trail_step(t, i, (uint8_t)bytes[i])) return false;
    return true;
}

static void end_trail(struct pd_walk *w, const struct pd_trail *t, uint32_t at)
{
    const struct pd_trail_level *level = &t->levels[at];
    w->n = level->n;
    for (uint32_t i = 0; i < level->n; i++) {
        struct pd_walk_thread *thread = &w->threads[i];
        uint32_t call = level->threads[i].call;
        thread->state = level->threads[i].state;
        thread->n_calls = t->calls[call].depth;
        for (uint32_t k = thread->n_calls; k > 0; k--, call = t->calls[call].outer)
            thread->returns[k - 1] = t->calls[call].to;
    }
}

bool pd_walk_take(struct pd_walk *w, const struct pd_rules *r, const char *bytes, size_t size)
{
    struct pd_walk made = *w;
    struct pd_trail t;
    for (size_t i = 0; i < size; i += PD_MAX_STEPS) {
        uint32_t n = (uint32_t)pd_min(size - i, PD_MAX_STEPS);
        pd_trail_begin(&t, r, &made);
        if (!pd_trail_take(&t, bytes + i, n)) return false;
        end_trail(&made, &t, n);
    }
    *w = made;
    return made.n > 0;
}

bool pd_walk_is_complete(const struct pd_walk *w, const struct pd_rules *r)
{
    for (uint32_t i = 0; i < w->n; i++) {
        const struct pd_walk_thread *t = &w->threads[i];
        uint32_t n = t->n_calls;
        bool ends = r->states[t->state].ends;
        while (ends && n > 0) ends = r->states[t->returns[--n]].ends;
        if (ends) return true;
    }
    return false;
}
