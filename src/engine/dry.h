/* DRY, "don't repeat yourself": tokens that would go on with a repetition, and how long it is. Where the last n tokens
 * of a text were in it before, the token that followed them there is one. No repetition reaches over a breaker: a text
 * such as a newline, or an image. What is taken from the logits is the sampler's work (sampler.h). */
#ifndef PD_ENGINE_DRY_H
#define PD_ENGINE_DRY_H

#include "base/status.h"
#include "grammar/spellings.h"

struct pd_dry_pair {
    int32_t token;
    uint32_t length;           /* tokens of the longest repetition that it goes on with */
};

/* Memory for them, which is kept from draw to draw. Zero-initialise; free(at) in the end. */
struct pd_dry {
    struct pd_dry_pair *at;    /* [n], by token */
    uint32_t n, capacity;
};

/* Tokens that repeat, at least, where the chain penalises what goes on with them. */
static inline uint32_t pd_dry_least(const peridot_sampling *p)
{
    return p->dry_allowed_length ? p->dry_allowed_length : 2;
}

/* Of the n tokens of a text, in O(n log n). spellings: the bytes of tokens; NULL: they are not known, and break
 * nothing. */
peridot_status pd_dry_find(struct pd_dry *dry, const peridot_sampling *p, const struct pd_spellings *spellings,
                           const int32_t *tokens, uint32_t n);

#endif
