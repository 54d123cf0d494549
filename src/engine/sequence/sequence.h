/* An open model, and sequences of it: their tokens, positions, draws and images, and what a file keeps of them. */
#ifndef PD_ENGINE_SEQUENCE_SEQUENCE_H
#define PD_ENGINE_SEQUENCE_SEQUENCE_H

#include "base/base.h"
#include "engine/load/load.h"
#include "engine/memory/memory.h"
#include "engine/ranks/ranks.h"
#include "engine/vision/vision.h"
#include "grammar/grammar.h"
#include "ops/ops.h"
#include "params.h"

#include <stddef.h>
#include <stdint.h>

/* ---- model ---- */

/* A loaded model: what sessions share. Owns its checkpoint, device and weights.
 *
 * Threads: one at a time has a model, with all that is made of it: its device, of which there is one queue, weights,
 * adapters and tower, and its sessions with their sequences, requests and passes. Where several threads have sessions
 * of one model their callers take turns (peridot.h), so that nothing in src/engine locks but what any thread may use:
 * `images`, `spellings`, counts of references, and pd_session.cancelled. */

struct pd_model {
    struct pd_checkpoint *checkpoint;  /* stays open: weights may be read in place */
    struct pd_gpu *gpu;
    struct pd_variants variants;
    struct pd_tunings tunings;         /* of which sessions take a copy */
    struct pd_config config;
    struct pd_weights weights;
    struct pd_adapters adapters;       /* to the weights */
    struct pd_checkpoint *tower_checkpoint;   /* an mmproj file; NULL: there is none */
    struct pd_tower *tower;            /* NULL: the model does not see */
    struct pd_images *images;          /* of pictures for it */
    struct pd_link *link;              /* to the ranks that hold the other layers; NULL: all are here */
    bool in_use;                       /* the other ranks have a session */
    uint64_t ranks_read_size, ranks_weights_size;   /* of all ranks: rank 0 knows */
    uint64_t hash;                     /* of its tensors: saved sequences belong to it */
    uint32_t n_pieces;                 /* ids that may be drawn; rows of the output beyond them never win */
    /* Bytes of the pieces, for DRY; NULL: no chain had it yet, or there is no vocabulary. The vocabulary's. */
    struct pd_spellings *_Atomic spellings;
};

/* ---- candidates ---- */

/* Of candidates [draw->n], best first: the id. What sample.comp does. */
uint32_t pd_draw_from(const struct pd_draw *draw, const struct pd_candidate *candidates);
/* The same token from n candidates in any order, of which draw->n are not yet the best ones. They are divided by their
 * distance from the best one, and only those are sorted among which a limit or the token lies: O(n). Their order
 * changes. */
uint32_t pd_draw_from_all(const struct pd_draw *draw, struct pd_candidate *candidates, uint32_t n);
/* Best first: by logit, then by lower id. */
void pd_candidates_sort(struct pd_candidate *candidates, size_t n);

/* ---- dry ---- */

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

/* ---- sampler ---- */

struct pd_sampler {
    peridot_sampling p;
    uint64_t rng;
    int32_t recent[PD_REPEAT_WINDOW];   /* a ring */
    uint64_t n_seen;
    const struct pd_dry *dry;           /* of the next draw; NULL: not found yet, or there is no DRY */
    double deviation;                   /* of all logits of the next draw, where there is top-n-sigma */
    /* The grammar's value is tokens value_begin .. of the sequence; `walk` is where those before value_end led. */
    bool value_begun;
    uint32_t value_begin, value_end;
    struct pd_walk walk;
};

void pd_sampler_set(struct pd_sampler *s, const peridot_sampling *p);
/* Remembers an evaluated token for the penalties. */
void pd_sampler_accept(struct pd_sampler *s, int32_t token);
/* Where there is a grammar: its value begins with the token at `pos`, which may be yet to come. */
void pd_sampler_begin_value(struct pd_sampler *s, uint32_t pos);
/* Where there is a grammar: brings the walk to the end of these tokens, after which one is to be drawn. */
void pd_sampler_follow(struct pd_sampler *s, const int32_t *tokens, uint32_t n);
/* The sequence has only its first n tokens left. */
void pd_sampler_truncate(struct pd_sampler *s, uint32_t n);
/* The chain has DRY: it needs `dry`. */
bool pd_sampler_has_dry(const struct pd_sampler *s);
/* Standard deviation of n logits, but for those that are not finite. */
double pd_sampler_deviation(const float *logits, size_t n);
/* Candidates that a draw must see to be exact, best first; 0: the whole vocabulary. Penalties lower at most as many
 * candidates as they remember, DRY those of its pairs, and a bias one; a bonus can promote any token. */
uint32_t pd_sampler_needs(const struct pd_sampler *s);
/* Draws from n >= 1 candidates in any order, which it changes; faster where many are in the order of their ids. */
int32_t pd_sampler_draw(struct pd_sampler *s, struct pd_candidate *candidates, size_t n);
/* The best PD_TOPK are enough for the chain, and there is neither a grammar nor DRY: kernel sample can do it. */
bool pd_sampler_can_sample_on_device(const struct pd_sampler *s);
/* What a chain does: logit bias and penalties, and puts candidates in order again. */
void pd_sampler_adjust(const struct pd_sampler *s, struct pd_candidate *candidates, size_t n);
/* The chain for draw number `ahead` (0: the next one) from n candidates, made when one more token has been accepted for
 * each draw, that one included. */
struct pd_draw pd_sampler_draw_ahead(const struct pd_sampler *s, uint32_t n, uint32_t ahead);
/* What those draws look back at, on the device: the tokens that came last, of which `token` is the last one, and the
 * chain's biases. */
void pd_sampler_write_chain(const struct pd_sampler *s, int32_t recent[PD_REPEAT_WINDOW],
                            struct pd_candidate bias[PD_TOPK], int32_t token);
/* The next draw has been made. */
void pd_sampler_drawn(struct pd_sampler *s);

/* ---- sequence ---- */

/* A sequence owns its tokens, its pages, its sampler and the candidates for its next token; passes evaluate them
 * (pass.h). The first `pos` tokens have been evaluated, and their keys are in the pages, but for those that windows
 * have passed over; what queued passes write beyond `pos` counts for nothing until their rows are taken. */

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

/* ---- saved ---- */

/* Replaces the file only when all is written. */
peridot_status pd_sequence_save(const struct pd_sequence *q, const struct pd_model *model, const char *path);
peridot_status pd_sequence_load(struct pd_sequence **out, struct pd_sequence_set *set, const struct pd_model *model,
                                const char *path);

#endif
