/* Drawing a token from the best candidates. The chain: logit bias, penalties, DRY, top-n-sigma, top-k, temperature,
 * top-p, min-p, XTC, draw. XTC decides by the other half of the number that the draw takes, so that a seed gives the
 * same numbers with it and without. What DRY and top-n-sigma look at is found before a draw (results.c). It runs on the
 * host or in kernel sample, which draws the same token. Where there is a grammar, callers leave out the candidates that
 * it does not allow (results.c), always on the host. */
#ifndef PD_ENGINE_SAMPLER_H
#define PD_ENGINE_SAMPLER_H

#include "engine/candidates.h"
#include "engine/dry.h"
#include "grammar/grammar.h"

#include <stddef.h>

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

#endif
