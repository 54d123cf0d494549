#include "arch/rope.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double two_pi = 6.283185307179586;

bool pd_rope_equal(const struct pd_rope *a, const struct pd_rope *b) { return memcmp(a, b, sizeof *a) == 0; }

/* ---- rules ---- */

double pd_rope_mscale(double divisor, double weight) { return divisor > 1 ? 0.1 * weight * log(divisor) + 1 : 1; }

peridot_status pd_rope_check_yarn(const struct pd_rope *rope, const char *key)
{
    if (!(rope->base > 1))
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: YaRN has no meaning for a RoPE base of %g", key, rope->base);
    if (rope->beta_fast < rope->beta_slow)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: YaRN's beta_fast is %g, less than its beta_slow, which is %g", key,
                       rope->beta_fast, rope->beta_slow);
    return PERIDOT_OK;
}

/* Llama 3.1's rule (Meta's apply_scaling): long waves are slowed by `factor`, short ones stay, those between are
 * blended. */
static double llama3_frequency(const struct pd_rope *rope, double f)
{
    double turns = rope->old_ctx * f / two_pi;   /* in the old context */
    if (rope->factor == 0 || turns > rope->high_freq_factor) return f;
    if (turns < rope->low_freq_factor) return f / rope->factor;
    double smooth = (turns - rope->low_freq_factor) / (rope->high_freq_factor - rope->low_freq_factor);
    return (1 - smooth) * f / rope->factor + smooth * f;
}

/* The pair of n columns, or what lies between two of them, that turns so often in the old context. */
static double pair_of_turns(const struct pd_rope *rope, uint32_t n, double turns)
{
    return n * log(rope->old_ctx / (turns * two_pi)) / (2 * log(rope->base));
}

/* How much of pair i is divided, from 0 to 1: the ramp of YaRN, as its authors and transformers have it. */
static double divided_part(const struct pd_rope *rope, uint32_t n, uint32_t i)
{
    if (rope->beta_fast == 0) return 1;
    double low = pair_of_turns(rope, n, rope->beta_fast), high = pair_of_turns(rope, n, rope->beta_slow);
    low = fmax(rope->exact_ramp != 0 ? low : floor(low), 0);
    high = fmin(rope->exact_ramp != 0 ? high : ceil(high), n - 1.0);
    return fmin(fmax((i - low) / (high != low ? high - low : 1e-3), 0), 1);
}

static uint32_t n_rotated_pairs(const struct pd_rope *rope, uint32_t head_dim)
{
    return rope->rotated_part > 0 ? (uint32_t)(rope->rotated_part * head_dim / 2) : head_dim / 2;
}

/* Before any rule. */
static double plain_frequency(const struct pd_rope *rope, uint32_t head_dim, uint32_t i)
{
    return i < n_rotated_pairs(rope, head_dim) ? pow(rope->base, -2.0 * i / head_dim) : 0;
}

static double frequency(const struct pd_rope *rope, uint32_t head_dim, uint32_t i)
{
    double f = plain_frequency(rope, head_dim, i), part = divided_part(rope, head_dim, i);
    return llama3_frequency(rope, part * f / rope->divisor + (1 - part) * f);
}

/* ---- as a GGUF file has them ---- */

uint32_t pd_rope_global_head_dim(const struct pd_config *config)
{
    for (uint32_t i = 0; i < config->n_layers; i++)
        if (!config->layers[i].window) return config->layers[i].head_dim;
    return config->layers[0].head_dim;
}

bool pd_rope_needs_factors(const struct pd_config *config)
{
    const struct pd_rope *rope = &config->ropes[PD_ROPE_GLOBAL];
    /* without the tensor, files of families with such a part are taken to rotate it */
    return rope->factor != 0 || rope->exact_ramp != 0 || pd_families[config->family].rotated_part > 0;
}

void pd_rope_factors(float *out, const struct pd_config *config, uint32_t n)
{
    const struct pd_rope *rope = &config->ropes[PD_ROPE_GLOBAL];
    double divisor = rope->exact_ramp != 0 ? 1 : rope->divisor;   /* that is in keys */
    for (uint32_t i = 0; i < n; i++) {
        double f = plain_frequency(rope, 2 * n, i) / divisor;
        out[i] = f > 0 ? (float)(f / frequency(rope, 2 * n, i)) : PD_ROPE_STILL;
    }
}

/* ---- tables ---- */

static peridot_status make_frequencies(double **out, const struct pd_rope *rope, uint32_t head_dim, bool is_long,
                                       bool has_factors)
{
    uint32_t n = head_dim / 2;
    *out = malloc(sizeof **out * n);
    if (!*out) return pd_fail_alloc(sizeof **out * n, "RoPE frequencies");
    for (uint32_t i = 0; i < n; i++)
        (*out)[i] = frequency(rope, head_dim, i) / (has_factors ? (double)rope->factors[is_long][i] : 1);
    return PERIDOT_OK;
}

static peridot_status add_table(struct pd_config *c, uint32_t number, uint32_t head_dim)
{
    const struct pd_rope *rope = &c->ropes[number];
    struct pd_rope_table *table = &c->rope_tables[c->n_rope_tables];
    if (c->n_rope_tables == PD_MAX_ROPE_TABLES)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "more than %d tables of rotation are not supported",
                       PD_MAX_ROPE_TABLES);
    if (rope->n_factors && rope->n_factors != head_dim / 2)
        return pd_fail(PERIDOT_ERROR_FORMAT, "there are %u factors of rotation for the %u pairs of a head",
                       rope->n_factors, head_dim / 2);
    *table = (struct pd_rope_table){.rope = number, .head_dim = head_dim, .attn_factor = rope->attn_factor};
    c->n_rope_tables++;
    PD_TRY(make_frequencies(&table->inv_freq, rope, head_dim, false, rope->n_factors != 0));
    return rope->is_long ? make_frequencies(&table->long_inv_freq, rope, head_dim, true, true) : PERIDOT_OK;
}

/* Of Gemma 2 all layers rotate alike. */
peridot_status pd_rope_find_table(struct pd_config *c, struct pd_layer *layer)
{
    uint32_t rope = layer->window ? PD_ROPE_LOCAL : PD_ROPE_GLOBAL;
    for (layer->rope = 0; layer->rope < c->n_rope_tables; layer->rope++) {
        const struct pd_rope_table *table = &c->rope_tables[layer->rope];
        if (pd_rope_equal(&c->ropes[table->rope], &c->ropes[rope]) && table->head_dim == layer->head_dim)
            return PERIDOT_OK;
    }
    return add_table(c, rope, layer->head_dim);
}

bool pd_rope_is_long(const struct pd_config *config, uint32_t ctx)
{
    const struct pd_rope *rope = &config->ropes[PD_ROPE_GLOBAL];
    return rope->is_long && ctx > rope->old_ctx;
}
