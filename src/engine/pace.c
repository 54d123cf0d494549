#include "engine/pace.h"

#include "arch/layers.h"
#include "base/num.h"

#include <math.h>

#define FIRST_CHUNK 16       /* what even a slow GPU does in a fraction of a second */
#define SUBMIT_SECONDS 0.2   /* what chunks aim at; drivers take a device away after about two */
#define FEW_SECONDS 1.0      /* what FIRST_CHUNK tokens may take */
#define SLOWER 1.1           /* than one token */
#define DIFFERENT 1.25       /* times the work or the time: less of a difference says nothing over the noise */

uint64_t pd_n_keys(const struct pd_layer *layer, uint32_t pos)
{
    return layer->window ? pd_min((uint64_t)pos + 1, layer->window) : (uint64_t)pos + 1;
}

/* Scores and weighted values are 2 each for every key; the embedding is only looked up. */
double pd_token_flop(const struct pd_model *model, uint32_t pos, bool head)
{
    const struct pd_config *c = &model->config;
    double flop = head ? 2.0 * model->weights.n_outputs * c->d_model : 0;
    for (uint32_t i = 0; i < c->n_layers; i++) {
        const struct pd_layer_weights *w = &model->weights.layers[i];
        for (size_t m = 0; m < PD_COUNT(w->matrices); m++) flop += 2.0 * w->matrices[m].n_rows * w->matrices[m].n_cols;
        flop += 4.0 * pd_layer_q_dim(&c->layers[i]) * (double)pd_n_keys(&c->layers[i], pos);
    }
    return flop;
}

static bool differ(double a, double b) { return a > DIFFERENT * b || b > DIFFERENT * a; }

void pd_pace_took(struct pd_pace *p, double flop, double seconds)
{
    if (differ(flop, p->last.flop)) p->other = p->last;
    else if (differ(seconds, p->last.seconds)) p->other = (struct pd_timed_work){0};   /* the device has changed */
    p->last = (struct pd_timed_work){flop, fmax(seconds, 1e-6)};
}

/* Seconds per flop, on the line through both chunks; through the last one and none where they are alike. */
static double slope(const struct pd_pace *p)
{
    double all = p->last.seconds / p->last.flop, flop = p->last.flop - p->other.flop;
    if (!differ(p->last.flop, p->other.flop)) return all;
    return fmin(fmax((p->last.seconds - p->other.seconds) / flop, 0), all);
}

static double seconds_of(const struct pd_pace *p, double flop)
{
    return p->last.seconds + slope(p) * (flop - p->last.flop);
}

/* Twice the largest chunk that was timed is the most. */
static double fits(const struct pd_pace *p, double seconds, double token)
{
    double most = 2 * fmax(p->last.flop, p->other.flop), each = fmax(slope(p), 1e-30);
    return fmin(p->last.flop + (seconds - p->last.seconds) / each, most) / token;
}

static uint32_t whole(double n) { return (uint32_t)fmin(fmax(n + 0.01, 1), UINT32_MAX / 2); }

/* Where only one token was timed, a second one shows what more of them cost. */
static bool knows_one(const struct pd_pace *p, double token)
{
    return p->other.flop == 0 && p->last.flop < DIFFERENT * token;
}

/* As many as read the weights with the first one are worth a little more than what a chunk aims at. */
static double fits_or_few(const struct pd_pace *p, double seconds, double token)
{
    return fits(p, fmax(seconds, SLOWER * seconds_of(p, token)), token);
}

uint32_t pd_next_chunk(const struct pd_pace *p, double token)
{
    if (p->last.flop == 0) return FIRST_CHUNK;
    if (knows_one(p, token) && p->last.seconds < FEW_SECONDS) return 2;
    return whole(fmax(fits(p, SUBMIT_SECONDS, token), fmin(fits_or_few(p, FEW_SECONDS, token), FIRST_CHUNK)));
}

uint32_t pd_next_shared_chunk(const struct pd_pace *p, double token)
{
    if (p->last.flop == 0) return 1;
    return knows_one(p, token) ? 2 : whole(fits_or_few(p, SUBMIT_SECONDS, token));
}
