/* Sequences: timelines of tokens that share one cache. Each owns its tokens, its pages, its sampler and the candidates
 * for its next token; passes evaluate them (pass.h). The first `pos` tokens have been evaluated, and their keys are in
 * the pages, but for those that windows have passed over; what queued passes write beyond `pos` counts for nothing
 * until their rows are taken. The thread of the session uses them. */
#ifndef PD_ENGINE_SEQUENCE_H
#define PD_ENGINE_SEQUENCE_H

#include "engine/adapters.h"
#include "engine/cache.h"
#include "engine/chain.h"
#include "engine/sampler.h"

#define PD_MAX_SEQUENCES 64

/* Of a draw under a grammar: all tokens that may come next. It may be made in pieces: see pd_draw_prepare. */
struct pd_next_mask {
    struct pd_mask_job *job;               /* NULL: it is finished, or not begun */
    const struct pd_mask *mask;            /* NULL: it is not finished */
    struct pd_mask *made;                  /* `mask`, where the grammar does not keep it */
};

/* Frees what there is of it. */
void pd_next_mask_drop(struct pd_next_mask *m);

struct pd_sequence {
    struct pd_sequence_set *set;
    void *owner;                           /* the handle that the library's user has */
    uint32_t index;                        /* in the set, of its table of pages and of its row of logits */
    struct pd_pages pages;
    struct pd_scales scales;               /* of the model's adapters, on which its keys depend: it shares pages with
                                              sequences of the same ones only */
    uint32_t pos, capacity;
    int32_t *tokens;                       /* [capacity]: the pos tokens so far; rows of images are negative */
    struct pd_sampler sampler;
    struct pd_chain *chain;                /* what the sampler points to; NULL: nothing */
    struct pd_next_mask next_mask;         /* of the chain's grammar */
    struct pd_dry dry;                     /* what the sampler is told where the chain has DRY */
    struct pd_candidate best[PD_TOPK];     /* of the last position's logits, wherever these are */
    /* The last position's logits are in a row of the device until another pass writes to it. */
    uint32_t logits_row;
    uint64_t logits_pass;                  /* the number of the pass that they are of: see pd_workspace; 0: there are
                                              none, as no token was evaluated, or only hidden states were asked for */
};

struct pd_sequence_set {
    struct pd_cache cache;
    struct pd_scales scales;               /* of those that are created */
    uint32_t n_max, ctx, slack;            /* slack: see pd_pages_release */
    struct pd_sequence *at[PD_MAX_SEQUENCES];   /* NULL: free */
};

peridot_status pd_sequence_create(struct pd_sequence **out, struct pd_sequence_set *set);
void pd_sequence_free(struct pd_sequence *q);
/* A new sequence of the first n tokens of q, which can go back there; it shares the pages, and samples as q does. */
peridot_status pd_sequence_fork(struct pd_sequence **out, const struct pd_sequence *q, uint32_t n);
/* Goes back to the nearest place at or before n where layers with windows still have their keys: *kept tokens
 * remain; none where it fails, but all where the device was lost. */
peridot_status pd_sequence_truncate(struct pd_sequence *q, uint32_t n, uint32_t *kept);
/* Where that would be. */
uint32_t pd_sequence_nearest(const struct pd_sequence *q, uint32_t n);
/* Room for n tokens in all: see pd_pages_extend. */
peridot_status pd_sequence_extend(struct pd_sequence *q, uint32_t n);
/* Tokens that have been evaluated. */
void pd_sequence_append(struct pd_sequence *q, const int32_t *tokens, uint32_t n);
/* Keeps what it takes to go back to the present position. Where memory is short nothing is kept. */
void pd_sequence_mark(struct pd_sequence *q);

#endif
