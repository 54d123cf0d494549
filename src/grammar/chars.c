#include "grammar/chars.h"

#include "base/array.h"
#include "base/num.h"

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
