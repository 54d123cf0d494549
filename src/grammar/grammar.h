/* A grammar of a vocabulary: which tokens may come next, given what has been written (grammar_walk). Immutable but for
 * a cache of masks, which threads share without a lock. */
#ifndef PD_GRAMMAR_GRAMMAR_H
#define PD_GRAMMAR_GRAMMAR_H

#include "grammar/spellings.h"
#include "grammar/walk.h"

#include <stdatomic.h>

#define PD_N_MASKS 512             /* that a grammar keeps: 16 MB for a vocabulary of 256,000 */

/* The tokens that may come next where a walk is. */
struct pd_mask {
    uint64_t key;                  /* hash of the walk */
    struct pd_walk walk;
    uint32_t n_allowed;
    uint32_t bits[];               /* [n_pieces / 32] */
};

struct peridot_grammar {
    struct pd_refs refs;
    struct pd_rules rules;
    struct pd_spellings *spellings;         /* owned with the vocabulary */
    struct pd_mask *_Atomic *masks;         /* [PD_N_MASKS]; each NULL at first, and never changed after that */
};

/* From a JSON Schema; see peridot_grammar_json_schema. max_work: see work.h. */
peridot_status pd_grammar_create(peridot_grammar **out, struct pd_spellings *spellings, const char *schema,
                                 size_t size, uint64_t max_work);
/* From rules, which it takes, whatever it returns. */
peridot_status pd_grammar_create_of(peridot_grammar **out, struct pd_spellings *spellings, struct pd_rules *rules);
/* Another owner. NULL is allowed, here and below. */
peridot_grammar *pd_grammar_ref(const peridot_grammar *g);
/* Gives up an ownership; the last owner frees it. */
void pd_grammar_free(peridot_grammar *g);

/* Whether each of n tokens may come next. */
void pd_grammar_allows(bool *allowed, const peridot_grammar *g, const struct pd_walk *w, const uint32_t *ids,
                       size_t n);
/* The token has come: false, with the walk as it was, when it cannot. A stop token cannot. */
bool pd_grammar_take(struct pd_walk *w, const peridot_grammar *g, int32_t token);

/* All tokens that may come next. *made is what the caller frees, NULL where the grammar keeps it. */
peridot_status pd_grammar_mask(const struct pd_mask **out, struct pd_mask **made, const peridot_grammar *g,
                               const struct pd_walk *w);
/* It is that of the walk. */
bool pd_mask_is_of(const struct pd_mask *m, const struct pd_walk *w);
static inline bool pd_mask_has(const struct pd_mask *m, uint32_t id) { return m->bits[id / 32] >> (id % 32) & 1; }

/* The same in pieces of at most *steps steps, of which *steps becomes those that are left; a step is some 5 ns. *job is
 * NULL at first. *out NULL: the mask is not finished, and the next call for the same walk goes on with it, one for
 * another begins anew; else *job is NULL again. */
struct pd_mask_job;
peridot_status pd_grammar_mask_some(const struct pd_mask **out, struct pd_mask **made, struct pd_mask_job **job,
                                    const peridot_grammar *g, const struct pd_walk *w, uint64_t *steps);
/* Of a mask that is wanted no more. NULL is allowed. */
void pd_mask_job_free(struct pd_mask_job *job);

#endif
