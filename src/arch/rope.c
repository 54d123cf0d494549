/* Rotations: the rules of their frequencies, and the tables that angles are made of. */
#include "arch/arch.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double two_pi = 6.283185307179586;

bool pd_rope_equal(const struct pd_rope *a, const struct pd_rope *b) { return memcmp(a, b, sizeof *a) == 0; }

/* ---- rules ---- */

double pd_rope_mscale(double divisor, double weight) { return divisor > 1 ? 0.1 * weight * log(divisor) + 1 : 1; }

double pd_rope_yarn_factor(const struct pd_rope *rope)
{
    double weighted = rope->yarn_weight != 0 ? pd_rope_mscale(rope->divisor, rope->yarn_weight) : 1;
    return rope->beta_fast != 0 ? pd_rope_mscale(rope->divisor, 1) / weighted : 1;
}

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

/* Of pair i of n columns, before any rule. */
static double plain_frequency(const struct pd_rope *rope, uint32_t n, uint32_t i)
{
    uint32_t n_pairs = rope->rotated_part > 0 ? (uint32_t)(rope->rotated_part * n / 2) : n / 2;
    return i < n_pairs ? pow(rope->base, -2.0 * i / n) : 0;
}

static double frequency(const struct pd_rope *rope, uint32_t n, uint32_t i)
{
    double f = plain_frequency(rope, n, i), part = divided_part(rope, n, i);
    return llama3_frequency(rope, part * f / rope->divisor + (1 - part) * f);
}

/* ---- as a GGUF file has them ---- */

const struct pd_layer *pd_rope_global_layer(const struct pd_config *config)
{
    for (uint32_t i = 0; i < config->n_layers; i++)
        if (!config->layers[i].window && !pd_layer_recurs(&config->layers[i])) return &config->layers[i];
    return &config->layers[0];
}

bool pd_rope_has_usual_ramp(const struct pd_config *config)
{
    const struct pd_rope *rope = &config->ropes[PD_ROPE_GLOBAL];
    return rope->beta_fast == 0 || (rope->exact_ramp != 0) == pd_families[config->family].exact_ramp;
}

bool pd_rope_needs_factors(const struct pd_config *config)
{
    const struct pd_rope *rope = &config->ropes[PD_ROPE_GLOBAL];
    /* without the tensor, files of families with such a part are taken to rotate it */
    return rope->factor != 0 || !pd_rope_has_usual_ramp(config) || pd_families[config->family].rotated_part > 0;
}

void pd_rope_factors(float *out, const struct pd_config *config, uint32_t n)
{
    const struct pd_rope *rope = &config->ropes[PD_ROPE_GLOBAL];
    double divisor = pd_rope_has_usual_ramp(config) ? rope->divisor : 1;   /* that is in keys */
    for (uint32_t i = 0; i < n; i++) {
        double f = plain_frequency(rope, 2 * n, i) / divisor;
        out[i] = f > 0 ? (float)(f / frequency(rope, 2 * n, i)) : PD_ROPE_STILL;
    }
}

bool pd_rope_is_usually_absent(const struct pd_config *config, uint32_t layer)
{
    const struct pd_family_traits *family = &pd_families[config->family];
    if (family->windows_rotate) return !config->layers[layer].window;
    return family->no_rope_interval && pd_family_is_nth(family, family->no_rope_interval, layer, config->n_layers);
}

/* ---- rows ---- */

struct pd_head_order pd_head_order_of(const struct pd_config *config, uint32_t layer)
{
    const struct pd_layer *l = &config->layers[layer];
    return (struct pd_head_order){l->head_dim, l->n_rotated, config->rope_interleaved};
}

bool pd_head_order_differs(const struct pd_head_order *o) { return o->interleaved || o->n_rotated < o->head_dim; }

uint32_t pd_head_order_row(const struct pd_head_order *o, uint32_t row)
{
    uint32_t in_head = row % o->head_dim, n = o->head_dim / 2, n_pairs = o->n_rotated / 2;
    uint32_t pair = in_head % n, half = in_head / n;
    uint32_t in_file = pair >= n_pairs ? n_pairs + pair + half * (n - n_pairs)
        : o->interleaved               ? 2 * pair + half
                                       : pair + half * n_pairs;
    return row - in_head + in_file;
}

uint32_t pd_head_order_split_row(const struct pd_head_order *o, uint32_t row)
{
    uint32_t in_head = row % o->head_dim;
    return in_head < o->n_rotated ? row - in_head + in_head % 2 * (o->n_rotated / 2) + in_head / 2 : row;
}

/* ---- tables ---- */

/* Of pairs that are not rotated 0. */
static peridot_status make_frequencies(double **out, const struct pd_rope *rope, const struct pd_layer *layer,
                                       bool is_long)
{
    *out = calloc(layer->head_dim / 2, sizeof **out);
    if (!*out) return pd_fail_alloc(sizeof **out * layer->head_dim / 2, "RoPE frequencies");
    for (uint32_t i = 0; i < layer->n_rotated / 2; i++)
        (*out)[i] = frequency(rope, layer->n_rotated, i) / (rope->n_factors ? (double)rope->factors[is_long][i] : 1);
    return PERIDOT_OK;
}

static peridot_status add_table(struct pd_config *c, uint32_t number, const struct pd_layer *layer)
{
    const struct pd_rope *rope = &c->ropes[number];
    struct pd_rope_table *table = &c->rope_tables[c->n_rope_tables];
    if (c->n_rope_tables == PD_MAX_ROPE_TABLES)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "more than %d tables of rotation are not supported",
                       PD_MAX_ROPE_TABLES);
    if (rope->n_factors && rope->n_factors != layer->n_rotated / 2)
        return pd_fail(PERIDOT_ERROR_FORMAT, "there are %u factors of rotation for the %u pairs of a head",
                       rope->n_factors, layer->n_rotated / 2);
    *table = (struct pd_rope_table){.rope = number, .head_dim = layer->head_dim, .n_rotated = layer->n_rotated,
        .attn_factor = rope->attn_factor};
    c->n_rope_tables++;
    PD_TRY(make_frequencies(&table->inv_freq, rope, layer, false));
    return rope->is_long ? make_frequencies(&table->long_inv_freq, rope, layer, true) : PERIDOT_OK;
}

/* By readers, or from what the rule says of a head. Values that are the keys' would be ordered as these are. */
static peridot_status set_n_rotated(struct pd_layer *layer, const struct pd_rope *rope)
{
    double part = rope->rotated_columns > 0 ? rope->rotated_columns : 1;
    if (!layer->n_rotated) layer->n_rotated = (uint32_t)(part * layer->head_dim);
    if (layer->n_rotated < 2 || layer->n_rotated > layer->head_dim || layer->n_rotated % 2 != 0)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%u of %u columns of a head are rotated, which are not pairs",
                       layer->n_rotated, layer->head_dim);
    if (layer->n_rotated == layer->head_dim || layer->has_v) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "heads of which a part is rotated, and whose values are the keys, are "
                   "not supported");
}

/* Of Gemma 2 all layers rotate alike. */
peridot_status pd_rope_find_table(struct pd_config *c, struct pd_layer *layer)
{
    uint32_t rope = layer->no_rope ? PD_ROPE_NONE : layer->window ? PD_ROPE_LOCAL : PD_ROPE_GLOBAL;
    c->ropes[PD_ROPE_NONE] = (struct pd_rope){.base = 1, .divisor = 1, .rotated_part = DBL_MIN, .attn_factor = 1};
    PD_TRY(set_n_rotated(layer, &c->ropes[rope]));
    for (layer->rope = 0; layer->rope < c->n_rope_tables; layer->rope++) {
        const struct pd_rope_table *table = &c->rope_tables[layer->rope];
        if (pd_rope_equal(&c->ropes[table->rope], &c->ropes[rope]) && table->head_dim == layer->head_dim
            && table->n_rotated == layer->n_rotated) return PERIDOT_OK;
    }
    return add_table(c, rope, layer);
}

bool pd_rope_is_long(const struct pd_config *config, uint32_t ctx)
{
    const struct pd_rope *rope = &config->ropes[PD_ROPE_GLOBAL];
    return rope->is_long && ctx > rope->old_ctx;
}
