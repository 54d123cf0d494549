/* A cost model of prompt chunks: a chunk takes a fixed time, mostly to read the weights, and a time per multiplication.
 * It is fitted to the chunks measured so far and predicts how many tokens fit a given time. It knows no clock: times
 * are its caller's. */
#ifndef PD_ENGINE_PACE_H
#define PD_ENGINE_PACE_H

#include "engine/model.h"

/* Number of keys that attention at `pos` reads in a layer. */
uint64_t pd_n_keys(const struct pd_layer *layer, uint32_t pos);
/* Multiplications and additions to evaluate a token at `pos`; head: including its logits. */
double pd_token_flop(const struct pd_model *model, uint32_t pos, bool head);

struct pd_pace {
    uint32_t at_once;          /* see pd_op_matmul_tokens */
    struct pd_timed_work { double flop, seconds; } last, other;   /* the latest chunk, and the latest of another size */
    double step;               /* seconds of the decode step between chunks, as measured last; 0: none */
};

/* A chunk of n rows, of so many flop, took so long. */
void pd_pace_took(struct pd_pace *p, uint32_t n, double flop, double seconds);
/* Number of tokens of the next chunk, at `token` flop each: as many as take 1 s, or five times the fixed time, where a
 * chunk of 1 s would read weights most of the time. A multiple of at_once. */
uint32_t pd_next_chunk(const struct pd_pace *p, double token);
/* The same while other sequences wait for the chunk: as many as take 0.2 s, and less where the step before it and they
 * would take over 0.3 s. Where one token takes longer than that, as many as take at most 10 % longer. One token, or a
 * multiple of at_once; the first at_once may take 25 % longer than 0.2 s, or than one. */
uint32_t pd_next_shared_chunk(const struct pd_pace *p, double token);
/* The same in one pass with a decode step of n_rows, of so many flop, where the pass is to take 0.2 s, or 10 % longer
 * than the step. All its rows are a multiple of at_once; the fewest may take 25 % longer than 0.2 s, or than the step
 * and one token take in two passes. 0: they take longer. */
uint32_t pd_next_mixed_chunk(const struct pd_pace *p, double token, uint32_t n_rows, double flop);

#endif
