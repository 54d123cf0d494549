#include "grammar/grammar.h"

#include "base/num.h"
#include "grammar/schema.h"

#include <stdlib.h>

peridot_status pd_grammar_create(peridot_grammar **out, const struct pd_spellings *spellings, const char *schema,
                                 size_t size)
{
    *out = NULL;
    peridot_grammar *g = calloc(1, sizeof *g);
    if (!g) return pd_fail_alloc(sizeof *g, "grammar");
    g->spellings = spellings;
    g->masks = calloc(PD_N_MASKS, sizeof *g->masks);
    peridot_status status = g->masks ? pd_schema_compile(&g->rules, schema, size)
                                     : pd_fail_alloc(PD_N_MASKS * sizeof *g->masks, "grammar");
    if (status == PERIDOT_OK) *out = g;
    else pd_grammar_free(g);
    return status;
}

void pd_grammar_free(peridot_grammar *g)
{
    if (!g) return;
    for (int i = 0; g->masks && i < PD_N_MASKS; i++) free(atomic_load(&g->masks[i]));
    free(g->masks);
    pd_rules_free(&g->rules);
    free(g);
}

static bool is_stop(const struct pd_spellings *s, uint32_t id)
{
    for (size_t i = 0; i < s->n_stops; i++)
        if (s->stops[i] == id) return true;
    return false;
}

void pd_grammar_allows(bool *allowed, const peridot_grammar *g, const struct pd_walk *w, const uint32_t *ids,
                       size_t n)
{
    const struct pd_spellings *s = g->spellings;
    bool complete = pd_walk_is_complete(w, &g->rules);
    struct pd_trail trail;
    pd_trail_begin(&trail, &g->rules, w);
    for (size_t i = 0; i < n; i++) {
        uint32_t at = ids[i] < s->n_pieces ? s->of_id[ids[i]] : UINT32_MAX;
        const struct pd_spelling *spelling = at == UINT32_MAX ? NULL : &s->sorted[at];
        if (spelling) allowed[i] = pd_trail_take(&trail, s->bytes + spelling->offset, spelling->size);
        else allowed[i] = complete && is_stop(s, ids[i]);
    }
}

bool pd_grammar_take(struct pd_walk *w, const peridot_grammar *g, int32_t token)
{
    const struct pd_spellings *s = g->spellings;
    if (token < 0 || (uint32_t)token >= s->n_pieces || s->of_id[token] == UINT32_MAX) return false;
    const struct pd_spelling *spelling = &s->sorted[s->of_id[token]];
    return pd_walk_take(w, &g->rules, s->bytes + spelling->offset, spelling->size);
}

/* ---- masks ---- */

static void allow(struct pd_mask *m, uint32_t id)
{
    m->bits[id / 32] |= 1u << (id % 32);
    m->n_allowed++;
}

/* Where a byte cannot follow, all spellings that begin with it so far are passed over. */
static void fill(struct pd_mask *m, const peridot_grammar *g)
{
    const struct pd_spellings *s = g->spellings;
    struct pd_trail trail;
    pd_trail_begin(&trail, &g->rules, &m->walk);
    if (pd_walk_is_complete(&m->walk, &g->rules))
        for (size_t i = 0; i < s->n_stops; i++) allow(m, s->stops[i]);
    uint32_t good = 0;             /* levels of the trail that the next spelling may share */
    for (size_t i = 0; i < s->n; i++) {
        const struct pd_spelling *spelling = &s->sorted[i];
        if (spelling->shared > good) continue;
        good = spelling->shared;
        while (good < spelling->size && pd_trail_step(&trail, good, (uint8_t)s->bytes[spelling->offset + good])) good++;
        if (good == spelling->size) allow(m, spelling->id);
    }
}

/* Bytes of a thread that say something. */
static size_t thread_size(const struct pd_walk_thread *t)
{
    return offsetof(struct pd_walk_thread, returns) + sizeof t->returns[0] * t->n_calls;
}

static uint64_t hash_walk(const struct pd_walk *w)
{
    uint64_t h = pd_hash(0, &w->n, sizeof w->n);
    for (uint32_t i = 0; i < w->n; i++) h = pd_hash(h, &w->threads[i], thread_size(&w->threads[i]));
    return h;
}

static bool is_same(const struct pd_walk *a, const struct pd_walk *b)
{
    if (a->n != b->n) return false;
    for (uint32_t i = 0; i < a->n; i++) {
        const struct pd_walk_thread *x = &a->threads[i], *y = &b->threads[i];
        if (x->n_calls != y->n_calls || memcmp(x, y, thread_size(x)) != 0) return false;
    }
    return true;
}

peridot_status pd_grammar_mask(const struct pd_mask **out, struct pd_mask **made, const peridot_grammar *g,
                               const struct pd_walk *w)
{
    uint64_t key = hash_walk(w);
    struct pd_mask *_Atomic *free_slot = NULL;
    struct pd_mask *none = NULL;
    uint32_t slot = (uint32_t)(key ^ key >> 32) % PD_N_MASKS;
    *made = NULL;
    for (uint32_t tries = 0; tries < 8 && !free_slot; tries++, slot = (slot + 1) % PD_N_MASKS) {
        const struct pd_mask *m = atomic_load(&g->masks[slot]);
        if (!m) free_slot = &g->masks[slot];
        if (!m || m->key != key || !is_same(&m->walk, w)) continue;
        *out = m;
        return PERIDOT_OK;
    }
    size_t size = sizeof(struct pd_mask) + sizeof(uint32_t) * (g->spellings->n_pieces / 32 + (size_t)1);
    struct pd_mask *m = calloc(1, size);
    if (!m) return pd_fail_alloc(size, "a mask of tokens");
    m->key = key;
    m->walk = *w;
    fill(m, g);
    *out = m;
    if (!free_slot || !atomic_compare_exchange_strong(free_slot, &none, m)) *made = m;
    return PERIDOT_OK;
}
