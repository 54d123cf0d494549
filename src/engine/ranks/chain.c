/* What a sampling chain points to: a copy of biases and texts, and an ownership of the grammar. Immutable, and counted
 * by reference: a sequence, its forks and its requests have one, whatever the program frees or sets anew. */
#include "engine/ranks/ranks.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

static size_t size_of_texts(const char *const *texts, size_t n)
{
    size_t size = 0;
    for (size_t i = 0; i < n; i++) size += strlen(texts[i]) + 1;
    return size;
}

/* Behind the last one. */
static char *copy_texts(const char **out, char *to, const char *const *texts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t size = strlen(texts[i]) + 1;
        out[i] = memcpy(to, texts[i], size);
        to += size;
    }
    return to;
}

/* One block: the chain, pointers to its texts, biases, the texts. */
peridot_status pd_chain_create(struct pd_chain **out, const peridot_sampling *p)
{
    *out = NULL;
    if (!p || (!p->n_bias && !p->n_stop && !p->grammar && !p->dry_breakers)) return PERIDOT_OK;
    size_t n_breakers = p->dry_breakers ? p->n_dry_breakers : 0;
    size_t size = sizeof(struct pd_chain) + (p->n_stop + n_breakers) * sizeof *p->stop + p->n_bias * sizeof *p->bias
        + size_of_texts(p->stop, p->n_stop) + size_of_texts(p->dry_breakers, n_breakers);
    struct pd_chain *chain = calloc(1, size);
    if (!chain) return pd_fail_alloc(size, "a sampling chain");
    const char **stop = (const char **)(chain + 1), **breakers = stop + p->n_stop;
    peridot_bias *bias = (peridot_bias *)(breakers + n_breakers);
    char *text = copy_texts(stop, (char *)(bias + p->n_bias), p->stop, p->n_stop);
    copy_texts(breakers, text, p->dry_breakers, n_breakers);
    if (p->n_bias) memcpy(bias, p->bias, p->n_bias * sizeof *bias);
    chain->p = *p;
    chain->p.stop = stop;
    chain->p.bias = bias;
    if (p->dry_breakers) chain->p.dry_breakers = breakers;
    pd_grammar_ref(p->grammar);
    *out = chain;
    return PERIDOT_OK;
}

struct pd_chain *pd_chain_ref(struct pd_chain *chain)
{
    if (chain) pd_refs_add(&chain->refs);
    return chain;
}

void pd_chain_free(struct pd_chain *chain)
{
    if (!chain || !pd_refs_drop(&chain->refs)) return;
    pd_grammar_free((peridot_grammar *)chain->p.grammar);   /* its own reference */
    free(chain);
}
