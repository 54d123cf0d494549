/* A cost model of prompt chunks: a chunk takes a fixed time, mostly to read the weights, and a time per multiplication.
 * It is fitted to the chunks measured so far and predicts how many tokens fit a given time. It knows no clock: times
 * are its caller's.
 *
 * Why in time: chunks of a number of tokens suit no device. With 256, whoever came next waited for 6.6 s (Gemma 3 1B
 * on llvmpipe); with few, weights are read more often than is worth it, and where they come across the bus a chunk of
 * 1 s would do little else. Why two measurements: from chunks of one size nobody learns that four tokens take hardly
 * longer than one. Why 0.4 s: a request that comes waits for half of a chunk, and its first token is to come within
 * 0.5 s; a longer chunk is worth it only where weights are a tenth of it. Why flop: a token deep in a context costs
 * more than one at its beginning. Why at_once: matrices multiply so many tokens together, and two take as long as four
 * on llvmpipe, or as 32 or 64 where there are tiles. A decode step is no chunk, as single tokens have kernels of their
 * own: what it takes is in `step`. */
#include "engine/rounds/rounds.h"

#include "arch/arch.h"
#include "base/base.h"

#include <math.h>

#define FIRST_CHUNK 64       /* tokens, before anything was measured */
#define CHUNK_SECONDS 0.4    /* target of a chunk, */
#define FIXED_TIMES 10       /* or so many times its fixed time, */
#define LONGEST_SECONDS 1.0  /* up to this, */
#define LEAST_FIXED_TIMES 5  /* or so many times */
#define SHARED_SECONDS 0.2   /* target where others wait */
#define WAIT_SECONDS 0.3     /* limit for a step and a chunk */
#define SLOWER 1.1           /* limit for a chunk, relative to one token, or to a step */
#define AT_ONCE_SLOWER 1.25  /* limit for tokens that are multiplied at once, relative to one token or to the target */
#define DIFFERENT 1.25       /* ratio above which two measurements differ by more than noise */

uint64_t pd_n_keys(const struct pd_layer *layer, uint32_t pos)
{
    return layer->window ? pd_min((uint64_t)pos + 1, layer->window) : (uint64_t)pos + 1;
}

/* Per key 2 for the score and 2 for the weighted value; the embedding is a lookup. */
double pd_token_flop(const struct pd_model *model, uint32_t pos, bool head)
{
    const struct pd_config *c = &model->config;
    double flop = head ? 2.0 * model->weights.n_outputs * c->d_model : 0;
    uint32_t n_layers = head ? c->n_layers : c->n_layers - c->n_shared_kv;   /* rows without a head end there */
    for (uint32_t i = 0; i < n_layers; i++) {
        const struct pd_layer_weights *w = &model->weights.layers[i];
        for (size_t m = 0; m < PD_COUNT(w->linears); m++) {
            double share = w->linears[m].n_experts ? (double)c->layers[i].n_experts_used / w->linears[m].n_experts : 1;
            flop += 2.0 * w->linears[m].w.n_rows * w->linears[m].w.n_cols * share;
        }
        flop += 4.0 * pd_layer_q_dim(&c->layers[i]) * (double)pd_n_keys(&c->layers[i], pos);
    }
    return flop;
}

static bool differ(double a, double b) { return a > DIFFERENT * b || b > DIFFERENT * a; }

/* n tokens and the padding rows that are multiplied with them. */
static uint32_t filled(const struct pd_pace *p, uint32_t n) { return n > 1 ? (uint32_t)pd_align(n, p->at_once) : n; }

void pd_pace_took(struct pd_pace *p, uint32_t n, double flop, double seconds)
{
    flop *= (double)filled(p, n) / n;
    if (differ(flop, p->last.flop)) p->other = p->last;
    else if (differ(seconds, p->last.seconds)) p->other = (struct pd_timed_work){0};   /* the device changed speed */
    p->last = (struct pd_timed_work){flop, fmax(seconds, 1e-6)};
}

/* Seconds per flop: the slope of the line through both chunks, or through the last one and the origin where both are of
 * one size. The fixed time is at most a decode step's, which noise in two chunks of similar sizes would hide: 12 tokens
 * in 0.24 s after 16 in 0.20 s do not mean that more cost nothing. */
static double slope(const struct pd_pace *p)
{
    double all = p->last.seconds / p->last.flop, flop = p->last.flop - p->other.flop;
    double least = p->step > 0 ? fmax(p->last.seconds - p->step, 0) / p->last.flop : 0;
    if (!differ(p->last.flop, p->other.flop)) return all;
    return fmin(fmax((p->last.seconds - p->other.seconds) / flop, least), all);
}

static double seconds_of(const struct pd_pace *p, double flop)
{
    return p->last.seconds + slope(p) * (flop - p->last.flop);
}

/* Tokens that take so long; at most twice the largest chunk that was measured. */
static double tokens_within(const struct pd_pace *p, double seconds, double token)
{
    double most = 2 * fmax(p->last.flop, p->other.flop), each = fmax(slope(p), 1e-30);
    return fmin(p->last.flop + (seconds - p->last.seconds) / each, most) / token;
}

static uint32_t whole(double n) { return (uint32_t)fmin(fmax(n + 0.01, 0), UINT32_MAX / 2); }

/* Only single tokens were measured: what a further token costs is unknown. */
static bool measured_one(const struct pd_pace *p, double token)
{
    return p->other.flop == 0 && p->last.flop < DIFFERENT * token;
}

/* Of the tokens that are multiplied at once. A single one may have a kernel of its own: the line through it and a
 * larger chunk is then too high between them, and their share of that chunk counts. */
static double seconds_at_once(const struct pd_pace *p, double flop)
{
    double share = p->other.flop > flop ? p->other.seconds * flop / p->other.flop : INFINITY;
    return fmin(seconds_of(p, flop), share);
}

/* Tokens of a chunk of another size than the last one: both together tell the fixed time. */
static double try_tokens(const struct pd_pace *p, double token)
{
    double n = p->last.flop / token;
    if (2 * p->last.seconds <= CHUNK_SECONDS || n < 2 * p->at_once) return 2 * n;
    return fmin(n / 2, tokens_within(p, CHUNK_SECONDS, token));
}

uint32_t pd_next_chunk(const struct pd_pace *p, double token)
{
    if (p->last.flop == 0) return FIRST_CHUNK;
    bool two_sizes = p->other.flop > 0 && differ(p->last.flop, p->other.flop);
    double fixed = seconds_of(p, 0), seconds = fmax(CHUNK_SECONDS, fmin(FIXED_TIMES * fixed, LONGEST_SECONDS));
    seconds = fmax(seconds, LEAST_FIXED_TIMES * fixed);
    double n = two_sizes ? tokens_within(p, seconds, token) : try_tokens(p, token);
    return (uint32_t)pd_max(whole(n) / p->at_once * p->at_once, p->at_once);
}

/* Tokens that fill the rows which are multiplied along with n_rows anyhow. */
static uint32_t fewest_beside(const struct pd_pace *p, uint32_t n_rows)
{
    return (uint32_t)pd_align(n_rows + 1, p->at_once) - n_rows;
}

/* Tokens that take so long with n_rows of a decode step, of so many flop; or the fewest, if these take at_most. At
 * least as many as take little longer than the step or one token, since they share its reading of the weights. */
static uint32_t tokens_beside(const struct pd_pace *p, double token, uint32_t n_rows, double flop, double seconds,
                              double at_most)
{
    double within = tokens_within(p, fmax(seconds, SLOWER * seconds_of(p, n_rows ? flop : token)), token);
    uint32_t n = (whole(within - flop / token) + n_rows) / p->at_once * p->at_once, few = fewest_beside(p, n_rows);
    if (n > n_rows) return n - n_rows;
    return seconds_at_once(p, few * token + flop) <= at_most ? few : 0;
}

uint32_t pd_next_shared_chunk(const struct pd_pace *p, double token)
{
    if (p->last.flop == 0) return 1;
    if (measured_one(p, token)) return 2;
    double one = seconds_of(p, token), most = fmax(WAIT_SECONDS, SLOWER * (p->step + one)) - p->step;
    double at_most = fmax(fmin(AT_ONCE_SLOWER * SHARED_SECONDS, most), AT_ONCE_SLOWER * one);
    return (uint32_t)pd_max(tokens_beside(p, token, 0, 0, fmin(SHARED_SECONDS, most), at_most), 1);
}

uint32_t pd_next_mixed_chunk(const struct pd_pace *p, double token, uint32_t n_rows, double flop)
{
    if (p->last.flop == 0 || measured_one(p, token)) return fewest_beside(p, n_rows);
    double step = fmax(p->step, seconds_of(p, flop)), one = fmax(seconds_of(p, token), step * token / flop);
    return tokens_beside(p, token, n_rows, flop, SHARED_SECONDS, AT_ONCE_SLOWER * fmax(SHARED_SECONDS, step + one));
}
