/* What a sampling chain points to: a copy of biases and texts, and an ownership of the grammar. Immutable, and
 * counted by reference: a sequence, its forks and its requests have one, whatever the program frees or sets anew. */
#ifndef PD_ENGINE_CHAIN_H
#define PD_ENGINE_CHAIN_H

#include "base/refs.h"
#include "grammar/grammar.h"

struct pd_chain {
    struct pd_refs refs;
    peridot_sampling p;        /* points to what follows it in memory */
};

/* *out is NULL where the chain points to nothing. */
peridot_status pd_chain_create(struct pd_chain **out, const peridot_sampling *p);
/* Another owner. NULL is allowed, here and below. */
struct pd_chain *pd_chain_ref(struct pd_chain *chain);
/* Gives up an ownership; the last owner frees it. */
void pd_chain_free(struct pd_chain *chain);

#endif
