#include "engine/chain.h"

#include "base/num.h"

#include <stdlib.h>
#include <string.h>

/* One block: the chain, pointers to stop texts, biases, the texts. */
peridot_status pd_chain_create(struct pd_chain **out, const peridot_sampling *p)
{
    *out = NULL;
    if (!p || (!p->n_bias && !p->n_stop && !p->grammar)) return PERIDOT_OK;
    size_t size = sizeof(struct pd_chain) + p->n_stop * sizeof *p->stop + p->n_bias * sizeof *p->bias;
    for (size_t i = 0; i < p->n_stop; i++) size += strlen(p->stop[i]) + 1;
    struct pd_chain *chain = calloc(1, size);
    if (!chain) return pd_fail_alloc(size, "a sampling chain");
    const char **stop = (const char **)(chain + 1);
    peridot_bias *bias = (peridot_bias *)(stop + p->n_stop);
    char *text = (char *)(bias + p->n_bias);
    for (size_t i = 0; i < p->n_stop; i++) {
        size_t n = strlen(p->stop[i]) + 1;
        stop[i] = memcpy(text, p->stop[i], n);
        text += n;
    }
    if (p->n_bias) memcpy(bias, p->bias, p->n_bias * sizeof *bias);
    chain->p = *p;
    chain->p.stop = stop;
    chain->p.bias = bias;
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
