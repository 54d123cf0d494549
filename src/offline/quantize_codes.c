/* Quantisers of the types whose weights are picked from codebooks, eight or four at a time: IQ1, IQ2 and IQ3. For a
 * step s an entry of values v makes the error sum w (s v - x)^2 = s^2 A - 2 s B + const with A = sum w v^2 and
 * B = sum w x v. Both are computed once for each entry, so that the best entry of a codebook for any step is one pass
 * over them, without lists of neighbours. Some steps are tried for each group of weights, each with the scale that fits
 * its entries best, and when scales are rounded the entries for them are found anew.
 *     Errors count by importance, but not by all of it: with its power of 3/4 weighted errors are 3 to 7 % below those
 * of ggml's quantisers, and plain ones at most theirs; with all of it the former would be some 2 % better still, and
 * the latter 4 to 7 % worse. */
#include "codebooks.h"
#include "offline/offline_.h"

#include "format/format.h"

#include <math.h>
#include <string.h>

enum { LANES = 8, MOST_ENTRIES = 2048, MOST_SUMS = 4 * MOST_ENTRIES, BLOCK = 256, OCTETS = BLOCK / 8 };

/* What a type's blocks are made of. A weight is d * unit * (2 * scale + 1) * value. */
struct form {
    const uint32_t *grid;
    int n_entries, dim;          /* weights of an entry: 8 or 4 */
    const uint8_t *magnitudes;   /* NULL: values are -1, 0 and 1, moved by an eighth up or down */
    int group;                   /* weights that have a scale: 32 or 16 */
    int n_scales;                /* that a group may have */
    float unit;
    bool has_parity;             /* an octet has an even number of minuses */
    int moved;                   /* weights that are moved alike; 0: none are */
    uint64_t size;               /* bytes of a block */
};

static const uint8_t iq2_magnitudes[] = {PD_IQ2_MAGNITUDES}, iq3_xxs_magnitudes[] = {PD_IQ3_XXS_MAGNITUDES},
    iq3_s_magnitudes[] = {PD_IQ3_S_MAGNITUDES};
static const uint32_t iq1_grid[] = {PD_IQ1_GRID}, iq2_xxs_grid[] = {PD_IQ2_XXS_GRID}, iq2_xs_grid[] = {PD_IQ2_XS_GRID},
    iq2_s_grid[] = {PD_IQ2_S_GRID}, iq3_xxs_grid[] = {PD_IQ3_XXS_GRID}, iq3_s_grid[] = {PD_IQ3_S_GRID};
static const struct form iq2_xxs = {iq2_xxs_grid, 256, 8, iq2_magnitudes, 32, 16, 0.125f, true, 0, 66},
    iq2_xs = {iq2_xs_grid, 512, 8, iq2_magnitudes, 16, 16, 0.125f, true, 0, 74},
    iq2_s = {iq2_s_grid, 1024, 8, iq2_magnitudes, 16, 16, 0.125f, false, 0, 82},
    iq3_xxs = {iq3_xxs_grid, 256, 4, iq3_xxs_magnitudes, 32, 16, 0.25f, true, 0, 98},
    iq3_s = {iq3_s_grid, 512, 4, iq3_s_magnitudes, 32, 16, 1, false, 0, 110},
    iq1_s = {iq1_grid, 2048, 8, NULL, 32, 8, 1, false, 32, 50},
    iq1_m = {iq1_grid, 2048, 8, NULL, 16, 8, 1, false, 8, 56};

/* A codebook as numbers: values [dim][n_entries]. */
struct book {
    const struct form *form;
    float values[8][MOST_ENTRIES];
    float size;                  /* root of the mean square */
};

/* What a block becomes. */
struct codes {
    unsigned index[64];          /* of each entry */
    uint8_t signs[OCTETS];       /* bit j: weight j is negative */
    bool down[OCTETS];           /* an eighth is taken off */
    int scale[16];
    float d;
};

/* Weights of a group and, for each of its entries, the sums for all entries of the book. */
struct group {
    const struct book *book;
    int n;                       /* entries of it */
    float x[32], weights[32];    /* x: magnitudes, where signs are apart */
    float sum_wx[8], sum_w[8];
    float a[MOST_SUMS], b[MOST_SUMS], v[MOST_SUMS];   /* [n][n_entries]; v: sums w v, where values are moved */
};

/* Entries for a step, and what they make of the error. */
struct choice {
    int index[8];
    bool down[8];
    float xv, vv;                /* sums of w x v and w v^2 */
};

static void read_book(struct book *book, const struct form *form)
{
    int n_bits = form->dim == 8 ? 2 : 3;
    double squares = 0;
    book->form = form;
    for (int e = 0; e < form->n_entries; e++) {
        unsigned entry = form->grid[e / 2] >> e % 2 * 16 & 0xffff;
        for (int j = 0; j < form->dim; j++) {
            unsigned bits = entry >> n_bits * j & ((1u << n_bits) - 1);
            float value = form->magnitudes ? (float)form->magnitudes[bits] : (float)bits - 1;
            book->values[j][e] = value;
            squares += (double)(value * value);
        }
    }
    book->size = (float)sqrt(squares / (form->n_entries * form->dim));
}

/* Takes signs off an octet's weights. Where their number must be even, that which costs least has the wrong one. */
static uint8_t take_signs(float x[8], const float weights[8], bool has_parity)
{
    unsigned signs = 0;
    int n = 0, least = 0;
    for (int j = 0; j < 8; j++) {
        if (weights[j] * x[j] * x[j] < weights[least] * x[least] * x[least]) least = j;
        if (!(x[j] < 0)) continue;
        signs |= 1u << j;
        n++;
        x[j] = -x[j];
    }
    if (has_parity && n % 2) {
        signs ^= 1u << least;
        x[least] = -x[least];
    }
    return (uint8_t)signs;
}

static void sum_entries(struct group *s)
{
    const struct form *form = s->book->form;
    for (int i = 0; i < s->n; i++) {
        float *a = s->a + form->n_entries * i, *b = s->b + form->n_entries * i, *v = s->v + form->n_entries * i;
        const float *x = s->x + form->dim * i, *weights = s->weights + form->dim * i;
        s->sum_w[i] = s->sum_wx[i] = 0;
        memset(a, 0, (size_t)form->n_entries * sizeof *a);
        memset(b, 0, (size_t)form->n_entries * sizeof *b);
        memset(v, 0, form->moved ? (size_t)form->n_entries * sizeof *v : 0);
        for (int j = 0; j < form->dim; j++) {
            const float *values = s->book->values[j], w = weights[j], wx = weights[j] * x[j];
            s->sum_w[i] += w;
            s->sum_wx[i] += wx;
            for (int e = 0; e < form->n_entries; e++) {
                a[e] += w * values[e] * values[e];
                b[e] += wx * values[e];
            }
            for (int e = 0; form->moved && e < form->n_entries; e++) v[e] += w * values[e];
        }
    }
}

/* For entry i of a group, that which, its values moved by t, makes step * A - 2 * B + 2 * t * step * V least; *least:
 * so much. */
static inline int best_entry(float *least, const struct group *s, int i, float step, float t)
{
    const int n = s->book->form->n_entries;
    const float *a = s->a + n * i, *b = s->b + n * i, *v = s->v + n * i, by_v = 2 * t * step;
    float best[LANES];
    int index[LANES] = {0}, at = 0;
    for (int l = 0; l < LANES; l++) best[l] = INFINITY;
    for (int e = 0; e < n; e += LANES)
        for (int l = 0; l < LANES; l++) {
            float cost = step * a[e + l] - 2 * b[e + l];
            if (by_v != 0) cost += by_v * v[e + l];
            bool better = cost < best[l];
            best[l] = better ? cost : best[l];
            index[l] = better ? e : index[l];
        }
    for (int l = 1; l < LANES; l++)
        if (best[l] < best[at]) at = l;
    *least = best[at];
    return index[at] + at;
}

/* Entries of magnitudes. */
static void choose_magnitudes(struct choice *c, const struct group *s, float step)
{
    c->xv = c->vv = 0;
    for (int i = 0; i < s->n; i++) {
        float cost;
        int e = best_entry(&cost, s, i, step, 0);
        c->index[i] = e;
        c->xv += s->b[s->book->form->n_entries * i + e];
        c->vv += s->a[s->book->form->n_entries * i + e];
    }
}

/* Values v are moved by t, an eighth up or down: sum w (v + t)^2 = A + 2 t V + t^2 W, sum w x (v + t) = B + t X. */
static void choose_moved(struct choice *c, const struct group *s, float step)
{
    const struct form *form = s->book->form;
    int alike = form->moved / form->dim, index[2][8];
    c->xv = c->vv = 0;
    for (int first = 0; first < s->n; first += alike) {
        float costs[2] = {0}, xv[2] = {0}, vv[2] = {0};
        for (int way = 0; way < 2; way++)
            for (int i = first; i < first + alike; i++) {
                float cost, t = way ? -0.125f : 0.125f;
                int e = best_entry(&cost, s, i, step, t), sums = form->n_entries * i + e;
                index[way][i] = e;
                xv[way] += s->b[sums] + t * s->sum_wx[i];
                vv[way] += s->a[sums] + 2 * t * s->v[sums] + t * t * s->sum_w[i];
                costs[way] += cost - 2 * t * s->sum_wx[i];
            }
        int way = costs[1] < costs[0];
        for (int i = first; i < first + alike; i++) {
            c->index[i] = index[way][i];
            c->down[i] = way;
        }
        c->xv += xv[way];
        c->vv += vv[way];
    }
}

static void choose_entries(struct choice *c, const struct group *s, float step)
{
    if (s->book->form->moved) choose_moved(c, s, step);
    else choose_magnitudes(c, s, step);
}

/* The step of a group that makes its error least. */
static float fit_step(const struct group *s)
{
    static const float tries[] = {0.75f, 0.88f, 1.03f, 1.2f};
    float squares = 0, all = 0, best = 0, step = 0;
    struct choice c;
    for (int i = 0; i < s->n * s->book->form->dim; i++) {
        squares += s->weights[i] * s->x[i] * s->x[i];
        all += s->weights[i];
    }
    if (!(squares > 0 && all > 0)) return 0;
    float usual = sqrtf(squares / all) / s->book->size;
    for (size_t i = 0; i < PD_COUNT(tries) + 2; i++) {
        choose_entries(&c, s, i < PD_COUNT(tries) ? usual * tries[i] : step);
        if (!(c.xv > 0 && c.vv > 0 && c.xv * c.xv > best * c.vv)) continue;
        step = c.xv / c.vv;
        best = step * c.xv;
    }
    return step;
}

/* Group g of a block. */
static void read_group(struct group *s, struct codes *c, const float *src, const float *importance, int g)
{
    const struct form *form = s->book->form;
    float mean = 0;
    for (int i = 0; i < BLOCK; i++) mean += src[i] * src[i];
    mean *= 2.0f / BLOCK;
    s->n = form->group / form->dim;
    for (int i = 0; i < form->group; i++) {
        float x = s->x[i] = src[form->group * g + i];
        float by = importance ? importance[form->group * g + i] : 0, root = sqrtf(by);
        s->weights[i] = importance ? root * sqrtf(root) * sqrtf(mean + x * x) : mean + x * x;
    }
    for (int i = 0; !form->moved && i < form->group; i += 8)
        c->signs[(form->group * g + i) / 8] = take_signs(s->x + i, s->weights + i, form->has_parity);
    sum_entries(s);
}

/* Steps of all groups, and with them the block's scale; then the groups' scales, and the entries for those. */
static void encode_block(struct codes *c, struct group *s, const float *src, const float *importance)
{
    const struct form *form = s->book->form;
    float steps[16], most = 0;
    int n = BLOCK / form->group;
    memset(c, 0, sizeof *c);
    for (int g = 0; g < n; g++) {
        read_group(s, c, src, importance, g);
        steps[g] = fit_step(s);
        most = steps[g] > most ? steps[g] : most;
    }
    c->d = pd_f32_from_f16(pd_f16_from_f32(most / (form->unit * (float)(2 * form->n_scales - 1))));
    for (int g = 0; g < n && c->d > 0; g++) {
        struct choice choice = {{0}, {0}, 0, 0};
        float scale = (steps[g] / (c->d * form->unit) - 1) * 0.5f;
        c->scale[g] = pd_clamp_to_int(scale + 0.5f, 0, form->n_scales - 1);
        read_group(s, c, src, importance, g);
        choose_entries(&choice, s, c->d * form->unit * (float)(2 * c->scale[g] + 1));
        for (int i = 0; i < s->n; i++) {
            c->index[s->n * g + i] = (unsigned)choice.index[i];
            c->down[(s->n * g + i) % OCTETS] = choice.down[i];
        }
    }
}

/* ---- blocks: see src/format/dtype_iq.c ---- */

static void store_u32(uint8_t *dst, uint32_t v)
{
    pd_store_u16(dst, (uint16_t)v);
    pd_store_u16(dst + 2, (uint16_t)(v >> 16));
}

/* Seven bits of each of a group's four octets' signs, and its scale. */
static uint32_t word_of(const struct codes *c, int g)
{
    uint32_t word = (uint32_t)c->scale[g] << 28;
    for (int o = 0; o < 4; o++) word |= (uint32_t)(c->signs[4 * g + o] & 127) << 7 * o;
    return word;
}

static void put_iq2_xxs(uint8_t *dst, const struct codes *c)
{
    pd_store_f16(dst, c->d);
    for (int g = 0; g < 8; g++) {
        for (int o = 0; o < 4; o++) dst[2 + 8 * g + o] = (uint8_t)c->index[4 * g + o];
        store_u32(dst + 2 + 8 * g + 4, word_of(c, g));
    }
}

static void put_iq2_xs(uint8_t *dst, const struct codes *c)
{
    pd_store_f16(dst, c->d);
    for (int o = 0; o < OCTETS; o++) {
        pd_store_u16(dst + 2 + 2 * o, (uint16_t)(c->index[o] | (unsigned)(c->signs[o] & 127) << 9));
        dst[66 + o / 4] |= (uint8_t)(o % 2 ? 0 : c->scale[o / 2] << o / 2 % 2 * 4);
    }
}

static void put_iq2_s(uint8_t *dst, const struct codes *c)
{
    pd_store_f16(dst, c->d);
    for (int o = 0; o < OCTETS; o++) {
        dst[2 + o] = (uint8_t)c->index[o];
        dst[34 + o] = c->signs[o];
        dst[66 + o / 4] |= (uint8_t)(c->index[o] >> 8 << o % 4 * 2);
        dst[74 + o / 4] |= (uint8_t)(o % 2 ? 0 : c->scale[o / 2] << o / 2 % 2 * 4);
    }
}

static void put_iq3_xxs(uint8_t *dst, const struct codes *c)
{
    pd_store_f16(dst, c->d);
    for (int q = 0; q < 64; q++) dst[2 + q] = (uint8_t)c->index[q];
    for (int g = 0; g < 8; g++) store_u32(dst + 66 + 4 * g, word_of(c, g));
}

static void put_iq3_s(uint8_t *dst, const struct codes *c)
{
    pd_store_f16(dst, c->d);
    for (int q = 0; q < 64; q++) {
        dst[2 + q] = (uint8_t)c->index[q];
        dst[66 + q / 8] |= (uint8_t)(c->index[q] >> 8 << q % 8);
    }
    memcpy(dst + 74, c->signs, OCTETS);
    for (int g = 0; g < 8; g++) dst[106 + g / 2] |= (uint8_t)(c->scale[g] << g % 2 * 4);
}

static void put_iq1_s(uint8_t *dst, const struct codes *c)
{
    pd_store_f16(dst, c->d);
    for (int g = 0; g < 8; g++) {
        unsigned word = (unsigned)c->scale[g] << 12 | (unsigned)c->down[4 * g] << 15;
        for (int o = 0; o < 4; o++) {
            dst[2 + 4 * g + o] = (uint8_t)c->index[4 * g + o];
            word |= c->index[4 * g + o] >> 8 << o * 3;
        }
        pd_store_u16(dst + 34 + 2 * g, (uint16_t)word);
    }
}

static void put_iq1_m(uint8_t *dst, const struct codes *c)
{
    uint16_t d = pd_f16_from_f32(c->d), words[4];
    for (int o = 0; o < OCTETS; o++) {
        dst[o] = (uint8_t)c->index[o];
        dst[32 + o / 2] |= (uint8_t)((c->index[o] >> 8 | (unsigned)c->down[o] << 3) << o % 2 * 4);
    }
    for (int k = 0; k < 4; k++) {
        words[k] = (uint16_t)((d >> 4 * k & 15) << 12);
        for (int g = 0; g < 4; g++) words[k] |= (uint16_t)(c->scale[4 * k + g] << 3 * g);
        pd_store_u16(dst + 48 + 2 * k, words[k]);
    }
}

typedef void put_codes(uint8_t *dst, const struct codes *c);

/* A row of blocks. */
struct row {
    uint8_t *dst;
    const float *src, *importance;
    uint64_t n;
};

static void encode_row(const struct row *r, const struct form *form, put_codes *put)
{
    struct book book;
    struct group s;
    struct codes c;
    read_book(&book, form);
    s.book = &book;
    memset(r->dst, 0, r->n * form->size);
    for (uint64_t b = 0; b < r->n; b++) {
        encode_block(&c, &s, r->src + BLOCK * b, r->importance ? r->importance + BLOCK * b : NULL);
        put(r->dst + form->size * b, &c);
    }
}

#define ENCODE(name)                                                                                     \
    void pd_##name##_encode(uint8_t *dst, const float *src, const float *importance, uint64_t n)         \
    {                                                                                                    \
        encode_row(&(struct row){dst, src, importance, n}, &name, put_##name);                           \
    }
ENCODE(iq1_s)
ENCODE(iq1_m)
ENCODE(iq2_xxs)
ENCODE(iq2_xs)
ENCODE(iq2_s)
ENCODE(iq3_xxs)
ENCODE(iq3_s)
