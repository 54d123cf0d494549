/* A grammar of a vocabulary: which tokens may come next, given what has been written (grammar_walk). Immutable but for
 * a cache of masks, which threads share without a lock. */
#include "grammar/grammar.h"

#include <stdlib.h>

/* To what the vocabulary can write. */
static peridot_status restrict_rules(struct pd_rules *r, const struct pd_spellings *s)
{
    unsigned byte = 0x20;
    if (!s->lacks) return PERIDOT_OK;
    PD_TRY(pd_rules_restrict(r, s->lacking));
    if (r->states[r->starts[0]].height != PD_NEVER) return PERIDOT_OK;
    while (!s->lacking[byte]) byte++;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED,
                   "the vocabulary cannot write any such text: it has no token for byte 0x%02x by itself", byte);
}

peridot_status pd_grammar_create_of(peridot_grammar **out, struct pd_spellings *spellings, struct pd_rules *rules)
{
    *out = NULL;
    peridot_status status = restrict_rules(rules, spellings);
    peridot_grammar *g = status == PERIDOT_OK ? calloc(1, sizeof *g) : NULL;
    if (g) g->masks = calloc(PD_N_MASKS, sizeof *g->masks);
    if (!g || !g->masks) {
        free(g);
        pd_rules_free(rules);
        return status == PERIDOT_OK ? pd_fail_alloc(PD_N_MASKS * sizeof *g->masks, "grammar") : status;
    }
    g->spellings = spellings;
    pd_refs_add(&spellings->refs);
    g->rules = *rules;
    *out = g;
    return PERIDOT_OK;
}

peridot_status pd_grammar_create(peridot_grammar **out, struct pd_spellings *spellings, const char *schema,
                                 size_t size, uint64_t max_work)
{
    struct pd_rules rules;
    *out = NULL;
    peridot_status status = pd_schema_compile_within(&rules, max_work, schema, size);
    if (status == PERIDOT_OK) return pd_grammar_create_of(out, spellings, &rules);
    pd_rules_free(&rules);
    return status;
}

peridot_grammar *pd_grammar_ref(const peridot_grammar *g)
{
    peridot_grammar *shared = (peridot_grammar *)g;   /* but for its count it is as it was */
    if (shared) pd_refs_add(&shared->refs);
    return shared;
}

void pd_grammar_free(peridot_grammar *g)
{
    if (!g || !pd_refs_drop(&g->refs)) return;
    for (int i = 0; g->masks && i < PD_N_MASKS; i++) free(atomic_load(&g->masks[i]));
    free(g->masks);
    pd_rules_free(&g->rules);
    pd_spellings_drop(g->spellings);
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
        struct pd_walk copy;
        uint32_t at = ids[i] < s->n_pieces ? s->of_id[ids[i]] : UINT32_MAX;
        const struct pd_spelling *spelling = at == UINT32_MAX ? NULL : &s->sorted[at];
        const char *bytes = spelling ? s->bytes + spelling->offset : NULL;
        if (!spelling) allowed[i] = complete && is_stop(s, ids[i]);
        else if (spelling->size <= PD_MAX_STEPS) allowed[i] = pd_trail_take(&trail, bytes, spelling->size);
        else allowed[i] = (copy = *w, pd_walk_take(&copy, &g->rules, bytes, spelling->size));
    }
}

bool pd_grammar_take(struct pd_walk *w, const peridot_grammar *g, int32_t token)
{
    const struct pd_spellings *s = g->spellings;
    if (token < 0 || (uint32_t)token >= s->n_pieces || s->of_id[token] == UINT32_MAX) return false;
    const struct pd_spelling *spelling = &s->sorted[s->of_id[token]];
    return pd_walk_take(w, &g->rules, s->bytes + spelling->offset, spelling->size);
}
