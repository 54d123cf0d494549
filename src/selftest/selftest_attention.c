/* Attention over whole and split keys, and attention_reduce, against the CPU reference. Slots that no position has
 * reached yet hold NaN, as real ones hold anything: a key that is masked only after it was read would show. What the
 * caches are: selftest_kv.c. */
#include "selftest/selftest_.h"

#include <math.h>
#include <stdio.h>

/* ---- attention ---- */

/* Few, as llvmpipe takes a second to compile each. */
static const struct shape {
    uint32_t n_heads, n_kv_heads, head_dim;
    peridot_kv_type type;
    bool split;                   /* tried with split keys too */
    bool quick;                   /* and where a user waits */
} shapes[] = {
    {1, 1, 4, PERIDOT_KV_F32, false, false}, {16, 1, 16, PERIDOT_KV_F16, true, false},
    {3, 1, 20, PERIDOT_KV_F16, false, true},
    {4, 2, 32, PERIDOT_KV_F32, false, false}, {8, 2, 64, PERIDOT_KV_F16, true, true},
    {8, 1, 64, PERIDOT_KV_F32, true, true},
    {4, 2, 128, PERIDOT_KV_F16, false, false}, {3, 3, 256, PERIDOT_KV_F16, false, false},
    {4, 2, 256, PERIDOT_KV_F16, true, true},
    {16, 1, 512, PERIDOT_KV_F16, true, false}, {8, 1, 512, PERIDOT_KV_F16, true, true},
    {16, 1, 512, PERIDOT_KV_F32, false, false}, {8, 1, 512, PERIDOT_KV_Q8_0, false, false},
    {1, 1, 4, PERIDOT_KV_Q8_0, false, false}, {3, 1, 20, PERIDOT_KV_Q8_0, false, true},
    {4, 2, 96, PERIDOT_KV_Q8_0, false, false}, {2, 2, 72, PERIDOT_KV_F16, false, false},
    {2, 2, 72, PERIDOT_KV_F32, true, true},
    {4, 2, 256, PERIDOT_KV_Q8_0, false, true},
    {3, 1, 20, PERIDOT_KV_Q8_0_Q4_1, false, true}, {8, 1, 512, PERIDOT_KV_Q8_0_Q4_1, false, false},
    {2, 2, 72, PERIDOT_KV_Q5_1, false, true}, {3, 1, 20, PERIDOT_KV_Q5_1, false, false},
    {4, 2, 96, PERIDOT_KV_Q4_1, false, true}, {3, 3, 256, PERIDOT_KV_Q4_1, false, false},
};

struct place {
    uint32_t pos, n_tokens, window, ring;
    float softcap, amplitude;     /* of q: scores have a standard deviation of about a third of it */
    uint32_t n_mutual;            /* rows from the first on that see each other; 0: none */
    enum { TO_WINDOW, TO_END } mutual;   /* as far as windows to both sides go, or to the end of them */
};

struct attention {
    struct pd_reference_heads h;
    float *q, *k, *v, *want;
    struct pd_reference_sight *sights;   /* [n_tokens] */
    struct pd_trial_buffer *k_cache, *v_cache, *q_rows, *y_rows, *places;
    struct pd_attention op;
};

/* Random numbers where n_positions[i] positions have left some of sequence i, NaN elsewhere. */
static float *random_cache(struct pd_trial *t, const struct pd_reference_heads *h,
                           const uint32_t n_positions[PD_N_SEQUENCES], float bias)
{
    size_t n = pd_trial_sequence_size(h), width = pd_trial_kv_width(h);
    float *x = pd_trial_random(t, PD_N_SEQUENCES * n, 1);
    for (size_t i = 0; i < PD_N_SEQUENCES * n; i++) x[i] = i % n / width < n_positions[i / n] ? x[i] + bias : NAN;
    return x;
}

static uint32_t first_key(const struct place *p, uint32_t pos)
{
    return p->window && pos + 1 > p->window ? pos + 1 - p->window : 0;
}

/* A text, an image in it, or a whole text of which each row sees later ones as well. */
static struct pd_reference_sight *sights_of(struct pd_trial *t, const struct place *p)
{
    struct pd_reference_sight *sights = pd_trial_zeros(t, p->n_tokens * sizeof *sights);
    for (uint32_t m = 0; m < p->n_tokens; m++) {
        struct pd_reference_sight *s = &sights[m];
        uint32_t pos = p->pos + m;
        bool mutual = m < p->n_mutual;
        s->first = first_key(p, pos);
        s->last = mutual ? p->pos + p->n_mutual - 1 : pos;
        if (p->window && p->mutual == TO_WINDOW) s->last = (uint32_t)pd_min(s->last, pos + p->window - 1);
    }
    return sights;
}

static void begin_attention(struct pd_trial *t, struct attention *a, const struct shape *s, const struct place *p,
                            uint32_t split_pages)
{
    pd_trial_begin(t,
                   "attention %u/%u heads of %u, kv type %d, position %u, %u tokens, window %u, ring %u, softcap %g, "
                   "amplitude %g, splits of %u pages, %u see each other, %d",
                   s->n_heads, s->n_kv_heads, s->head_dim, (int)s->type, p->pos, p->n_tokens, p->window, p->ring,
                   (double)p->softcap, (double)p->amplitude, split_pages, p->n_mutual, (int)p->mutual);
    uint32_t q_width = s->n_heads * s->head_dim;
    *a = (struct attention){.h = {.n_heads = s->n_heads, .n_kv_heads = s->n_kv_heads, .head_dim = s->head_dim,
        .ring = p->ring, .softcap = p->softcap, .scale = (float)pow(s->head_dim, -0.5)}};
    a->q = pd_trial_random(t, (size_t)p->n_tokens * q_width, p->amplitude);
    const uint32_t n_positions[] = {0, p->pos + p->n_tokens};
    a->k = random_cache(t, &a->h, n_positions, 0);
    a->v = random_cache(t, &a->h, n_positions, 0.3f);
    a->want = pd_trial_floats(t, (size_t)p->n_tokens * q_width);
    a->k_cache = pd_trial_cache(t, a->k, &a->h, s->type, PD_KEYS);
    a->v_cache = pd_trial_cache(t, a->v, &a->h, s->type, PD_VALUES);
    a->q_rows = pd_trial_rows(t, a->q, p->n_tokens, q_width);
    a->y_rows = pd_trial_rows(t, NULL, p->n_tokens, q_width);
    a->sights = sights_of(t, p);
    a->places = pd_trial_places(t, p->pos, a->sights, p->n_tokens);
    a->op = (struct pd_attention){.heads = pd_trial_heads(&a->h, NULL, NULL),
        .kv = {.k = a->k_cache->address, .v = a->v_cache->address, .pages = pd_trial_tables(t, &a->h)->address,
            .type = s->type}, .qkv = pd_trial_rows_of(a->q_rows), .y = pd_trial_rows_of(a->y_rows),
            .places = a->places->address, .n_tokens = p->n_tokens};
    a->op.heads.window = p->window;
}

/* An exponent is off by what rounding does to a score: where these reach the hundreds, 2e-5 for a chain of 64 sums in
 * fp32, and five times that in the worst of hundreds. */
static double fp32_tolerance(const struct place *p) { return 1e-5 + 4e-7 * (double)p->amplitude; }

/* Kernels that round queries and weights to fp16, and some that sum 16 products in it: half a unit of fp16 (2^-11) in a
 * sum moves a score by as much of its size, and the worst of hundreds by a few times that. What the cap bounds moves no
 * more than it, and weights are 1 at most. */
static double tolerance_of(const struct pd_trial *t, const struct place *p)
{
    enum pd_variant v = t->r.variants.of[PD_VARIED_ATTENTION];
    bool rounds = v == PD_VARIANT_ATTENTION_HALF || v == PD_VARIANT_ATTENTION_COOP;
    return rounds ? 3 * 0x1p-10 * (1 + (double)p->amplitude / 2) : fp32_tolerance(p);
}

/* What errors are relative to: the root mean square of a row, and no less than that of all rows. The values of a short
 * head may cancel by chance, and what rounding does to its weights does not become less by that. Sums of values in fp16
 * are rounded to its units of their own size, which may be three times that. */
static const float *magnitudes_of(struct pd_trial *t, const float *want, uint32_t n_rows, uint32_t width)
{
    float *out = pd_trial_floats(t, (size_t)n_rows * width);
    bool half = t->r.variants.of[PD_VARIED_ATTENTION] == PD_VARIANT_ATTENTION_HALF;
    double all = 0;
    for (size_t i = 0; i < (size_t)n_rows * width; i++) all += (double)want[i] * (double)want[i] / n_rows / width;
    for (uint32_t r = 0; r < n_rows; r++) {
        const float *row = want + (size_t)r * width;
        double squares = 0;
        for (uint32_t i = 0; i < width; i++) squares += (double)row[i] * (double)row[i] / width;
        for (uint32_t i = 0; i < width; i++) {
            double own = half ? (double)row[i] * (double)row[i] : 0;
            out[(size_t)r * width + i] = (float)sqrt(fmax(own, fmax(squares, all)));
        }
    }
    return out;
}

/* Scores of hundreds cost digits: fp32 has a score of 300 to 3e-5, and so its weight. The cap takes that back. */
static void end_attention(struct pd_trial *t, struct attention *a, const struct place *p)
{
    pd_op_attention(&t->r, &a->op);
    pd_trial_run(t);
    if (!t->ran) {
        pd_trial_end(t);
        return;
    }
    struct pd_reference_cache second = {a->k + pd_trial_sequence_size(&a->h), a->v + pd_trial_sequence_size(&a->h)};
    pd_reference_attention(a->want, a->q, &second, &a->h, a->sights, p->n_tokens);
    pd_trial_check_rows(t, a->y_rows, a->want, magnitudes_of(t, a->want, p->n_tokens, a->h.n_heads * a->h.head_dim),
                        tolerance_of(t, p));
    pd_trial_end(t);
}

enum numbers {
    RANDOM,
    /* all keys have the lowest score that the cap allows: a key masked before the cap would count as much as they do */
    LOWEST,
    /* keys and values up to the largest of fp16, where sums of products would overflow in it; scores are as small as
     * ever */
    LARGE,
    /* heads have sinks, far below all scores, far above, and among them */
    SINKS,
};

static float *random_sinks(struct pd_trial *t, uint32_t n_heads)
{
    float *sinks = pd_trial_random(t, n_heads, 5);
    for (uint32_t h = 0; h < n_heads; h += 3) sinks[h] = h % 2 ? 30 : -30;
    return sinks;
}

static void set_sinks(struct pd_trial *t, struct attention *a)
{
    float *sinks = random_sinks(t, a->h.n_heads);
    a->h.sinks = sinks;
    a->op.heads.sinks = pd_trial_rows(t, sinks, 1, a->h.n_heads)->address;
}

static void set_numbers(struct pd_trial *t, struct attention *a, const struct place *p, enum numbers numbers)
{
    if (numbers == SINKS) set_sinks(t, a);
    if (numbers == RANDOM || numbers == SINKS) return;
    uint32_t q_width = a->h.n_heads * a->h.head_dim;
    for (uint32_t i = 0; i < p->n_tokens * q_width; i++) a->q[i] = numbers == LOWEST ? -1000 : a->q[i] * 0x1p-15f;
    for (size_t i = 0; i < PD_N_SEQUENCES * pd_trial_sequence_size(&a->h); i++) {
        a->k[i] = numbers == LOWEST ? 1 : a->k[i] * 0x1p15f;
        if (numbers == LARGE) a->v[i] *= 0x1p15f;
    }
    a->op.kv.k = pd_trial_cache(t, a->k, &a->h, a->op.kv.type, PD_KEYS)->address;
    if (numbers == LARGE) a->op.kv.v = pd_trial_cache(t, a->v, &a->h, a->op.kv.type, PD_VALUES)->address;
    a->op.qkv = pd_trial_rows_of(pd_trial_rows(t, a->q, p->n_tokens, q_width));
}

static const struct whole {
    struct place at;
    uint32_t head_dim;       /* only with heads of so many numbers; 0: with all */
    enum numbers numbers;
    bool thorough;           /* not where a user waits */
} wholes[] = {
    {{0, 1, 0, 64, 0, 6, 0, 0}, 0, RANDOM, false},       /* one key */
    {{299, 1, 0, 320, 50, 6, 0, 0}, 0, RANDOM, false},
    {{166, 1, 33, 128, 0, 6, 0, 0}, 0, RANDOM, false},   /* tables that have gone round */
    {{39, 1, 40, 64, 50, 6, 0, 0}, 0, RANDOM, false},    /* a window just full */
    {{40, 1, 40, 64, 50, 6, 0, 0}, 0, RANDOM, false},    /* and its first key out of sight */
    {{0, 37, 0, 64, 50, 300, 0, 0}, 0, RANDOM, false},   /* scores far beyond the cap */
    {{200, 7, 64, 192, 0, 6, 0, 0}, 0, RANDOM, false},   /* windows from one page to the next but one */
    {{31, 5, 32, 64, 50, 6, 0, 0}, 0, RANDOM, false},
    {{5, 3, 1, 64, 0, 6, 0, 0}, 0, RANDOM, false},       /* each sees itself only */
    {{63, 33, 0, 128, 0, 300, 0, 0}, 0, RANDOM, false},
    {{0, 37, 0, 64, 0, 6, 37, 0}, 0, RANDOM, false},     /* a text whose rows see each other, */
    {{0, 71, 9, 128, 50, 6, 71, 0}, 0, RANDOM, false},   /* with windows to both sides, */
    {{0, 1, 9, 64, 0, 6, 1, 0}, 0, RANDOM, false},       /* of one row */
    {{60, 40, 33, 128, 0, 6, 21, 0}, 0, RANDOM, false},  /* an image within a text */
    {{60, 75, 33, 192, 0, 6, 66, TO_END}, 0, RANDOM, false},   /* larger than a window, which ends what they see */
    {{0, 1100, 33, 1152, 0, 6, 1100, 0}, 72, RANDOM, true},    /* as many rows as kernels may be laid out for anew */
    {{20, 12, 9, 64, 50, 0, 0, 0}, 64, LOWEST, false},
    {{20, 40, 0, 64, 0, 6, 0, 0}, 64, LARGE, false},
    {{60, 40, 33, 128, 0, 6, 0, 0}, 64, SINKS, false},
    {{0, 3, 0, 64, 0, 6, 0, 0}, 64, SINKS, false},
    {{60, 40, 0, 128, 0, 30, 0, 0}, 16, SINKS, true},
};

static void try_whole(struct pd_trial *t, const struct shape *s, const struct whole *c)
{
    struct attention a;
    begin_attention(t, &a, s, &c->at, 1);
    set_numbers(t, &a, &c->at, c->numbers);
    end_attention(t, &a, &c->at);
}

/* A decode step of two sequences, the second one further on: q, k and v as the matrix gives them, these positions'
 * slots of the cache still without a number in them. */
struct decode {
    struct shape shape;
    struct place at;         /* of the second */
    uint32_t split_pages;    /* of the keys of a split */
    enum pd_trial_norms norms;
    enum pd_trial_kv from;
};

struct decode_data {
    struct attention a;
    struct pd_place at[PD_N_SEQUENCES];
    uint32_t n_splits, most_splits;   /* of both, of one */
    uint32_t n_own;                   /* keys that a sequence writes */
    float *qkv, *angles, *q_norm, *k_norm;
};

static void begin_decode(struct pd_trial *t, struct decode_data *d, const struct decode *c)
{
    const uint32_t pos[PD_N_SEQUENCES] = {c->at.pos / 3, c->at.pos};
    *d = (struct decode_data){.n_own = c->from == PD_KV_SHARED ? 0 : 1, .most_splits = 1};
    begin_attention(t, &d->a, &c->shape, &c->at, c->split_pages);
    d->a.h.v_norm = c->norms == PD_NORMS_QKV;
    d->a.h.eps = 1e-6f;
    snprintf(t->label + strlen(t->label), sizeof t->label - strlen(t->label), ", %s, norms %d",
             pd_trial_kv_names[c->from], (int)c->norms);
    for (uint32_t m = 0; m < PD_N_SEQUENCES; m++) {
        d->at[m] = pd_decode_place(pos[m], c->at.window, c->split_pages);
        d->at[m].text = m * PD_TABLE_PAGES * PD_PAGE;
        d->at[m].first_split = d->n_splits;
        d->at[m].q_growth = pd_trial_growth(m);
        d->n_splits += d->at[m].n_splits;
        d->most_splits = (uint32_t)pd_max(d->most_splits, d->at[m].n_splits);
    }
}

static void make_decode_numbers(struct pd_trial *t, struct decode_data *d, const struct decode *c)
{
    struct attention *a = &d->a;
    uint32_t width = pd_trial_qkv_width(&a->h, PD_KV_OWN), head_dim = a->h.head_dim, q_width = a->h.n_heads * head_dim;
    d->qkv = pd_trial_random(t, (size_t)PD_N_SEQUENCES * width, 1);
    d->angles = pd_trial_floats(t, (size_t)PD_N_SEQUENCES * head_dim);
    d->q_norm = pd_trial_random(t, head_dim, c->at.amplitude);
    d->k_norm = pd_trial_random(t, head_dim, 1.5f);
    const uint32_t n_positions[] = {d->at[0].pos + 1 - d->n_own, d->at[1].pos + 1 - d->n_own};
    a->k = random_cache(t, &a->h, n_positions, 0);
    a->v = random_cache(t, &a->h, n_positions, 0.3f);
    a->want = pd_trial_floats(t, (size_t)PD_N_SEQUENCES * q_width);
    for (uint32_t m = 0; m < PD_N_SEQUENCES; m++) {
        size_t slot = m * pd_trial_sequence_size(&a->h) + d->at[m].pos % a->h.ring * pd_trial_kv_width(&a->h);
        for (uint32_t i = 0; i < q_width; i++) d->qkv[m * width + i] *= c->at.amplitude;
        for (uint32_t i = 0; i < d->n_own * pd_trial_kv_width(&a->h); i++) a->k[slot + i] = a->v[slot + i] = NAN;
        memcpy(d->angles + m * head_dim, pd_trial_angles(t, head_dim, d->at[m].pos, 1), head_dim * sizeof *d->angles);
    }
}

static void record_decode(struct pd_trial *t, struct decode_data *d, const struct decode *c)
{
    struct attention *a = &d->a;
    struct pd_step step = {.dispatch = {{1, 1, 1}, {1, 1, 1}}};
    uint32_t n = d->n_splits * a->h.n_heads * (a->h.head_dim + 2), kind = c->split_pages % 2;
    a->k_cache = pd_trial_cache(t, a->k, &a->h, c->shape.type, PD_KEYS);
    a->v_cache = pd_trial_cache(t, a->v, &a->h, c->shape.type, PD_VALUES);
    a->y_rows = pd_trial_rows(t, NULL, PD_N_SEQUENCES, a->h.n_heads * a->h.head_dim);
    struct pd_trial_buffer *w_q = pd_trial_rows(t, d->q_norm, 1, a->h.head_dim),
        *w_k = pd_trial_rows(t, d->k_norm, 1, a->h.head_dim), *partial = pd_trial_words(t, NULL, 1, n, n);
    partial->written = true;
    a->op.heads = pd_trial_heads(&a->h, c->norms ? w_q : NULL, c->norms ? w_k : NULL);
    if (a->h.head_dim == 64) set_sinks(t, a);
    a->op.heads.window = c->at.window;
    pd_trial_set_kv(&a->op.heads, c->from);
    a->op.kv.k = a->k_cache->address;
    a->op.kv.v = a->v_cache->address;
    a->op.kind = kind;
    const float *rows = pd_trial_device_qkv(t, d->qkv, &a->h, c->from, PD_N_SEQUENCES);
    a->op.qkv = pd_trial_rows_of(pd_trial_rows(t, rows, PD_N_SEQUENCES, pd_trial_qkv_width(&a->h, c->from)));
    a->op.y = pd_trial_rows_of(a->y_rows);
    a->op.angles = pd_trial_words(t, d->angles, PD_N_SEQUENCES, a->h.head_dim, a->h.head_dim)->address;
    a->op.places = pd_trial_words(t, d->at, PD_N_SEQUENCES, sizeof *d->at / 4, sizeof *d->at / 4)->address;
    a->op.n_tokens = step.dispatch[kind][2] = PD_N_SEQUENCES;
    step.dispatch[kind][0] = pd_attention_groups(&t->r, &a->op.heads);
    step.dispatch[kind][1] = d->most_splits;
    a->op.step = pd_trial_words(t, &step, 1, sizeof step / 4, sizeof step / 4)->span;
    a->op.partial = partial->address;
    pd_op_attention_decode(&t->r, &a->op);
}

/* An fp16 unit (2^-10) of the newest key and value may go either way, as in pd_trial_check_cache, and some drivers
 * (Mesa's) take rounding to fp16 and back for nothing: it moves a score by as much of its size, which is about half the
 * amplitude, and the result with it. */
static double decode_tolerance(const struct decode *c)
{
    return c->shape.type == PERIDOT_KV_F16 ? 0x1p-10 * (1 + (double)c->at.amplitude / 2) : fp32_tolerance(&c->at);
}

static void check_decode(struct pd_trial *t, struct decode_data *d, const struct decode *c)
{
    struct attention *a = &d->a;
    uint32_t width = pd_trial_qkv_width(&a->h, PD_KV_OWN), q_width = a->h.n_heads * a->h.head_dim;
    a->h.q_norm = c->norms ? d->q_norm : NULL;
    a->h.k_norm = c->norms ? d->k_norm : NULL;
    for (uint32_t m = 0; m < PD_N_SEQUENCES; m++) {
        size_t first = m * pd_trial_sequence_size(&a->h);
        uint32_t pos = d->at[m].pos;
        struct pd_reference_cache cache = {a->k + first, a->v + first},
            own = pd_trial_written_cache(t, &cache, &a->h, c->from);
        struct pd_trial_written written = {c->shape.type, m, pos, d->n_own};
        const struct pd_reference_sight sight = {first_key(&c->at, pos), pos};
        float *q = d->qkv + m * width;
        pd_reference_rope(q, &own, &a->h, d->angles + m * a->h.head_dim, pos, 1);
        pd_trial_grow(q, &a->h, m);
        pd_trial_check_cache(t, PD_KEYS, a->k_cache, a->k, &a->h, &written);
        pd_trial_check_cache(t, PD_VALUES, a->v_cache, a->v, &a->h, &written);
        pd_reference_attention(a->want + m * q_width, q, &cache, &a->h, &sight, 1);
    }
    pd_trial_check_rows(t, a->y_rows, a->want, NULL, decode_tolerance(c));
}

static void try_decode(struct pd_trial *t, const struct decode *c)
{
    struct decode_data d;
    begin_decode(t, &d, c);
    make_decode_numbers(t, &d, c);
    record_decode(t, &d, c);
    pd_trial_run(t);
    if (t->ran) check_decode(t, &d, c);
    pd_trial_end(t);
}

/* Splits of one page to all pages, at positions around the borders of pages, and so many pages that splits have to be
 * larger. */
static void try_decodes(struct pd_trial *t, peridot_kv_type type)
{
    static const struct place few[] = {
        {0, 1, 0, 64, 50, 6, 0, 0}, {1, 1, 0, 64, 0, 6, 0, 0}, {63, 1, 0, 64, 0, 6, 0, 0},
        {64, 1, 0, 128, 50, 30, 0, 0}, {299, 1, 0, 320, 0, 6, 0, 0}, {511, 1, 0, 512, 0, 6, 0, 0},
        {200, 1, 33, 128, 50, 6, 0, 0}, {329, 1, 200, 320, 0, 6, 0, 0}, {5, 1, 1, 64, 0, 6, 0, 0}};
    for (uint32_t n = 1; n <= 8; n++)
        for (size_t p = 0; p < PD_COUNT(few); p++)
            for (size_t i = 0; i < PD_COUNT(shapes); i++) {
                struct decode c = {.shape = shapes[i], .at = few[p], .split_pages = n,
                    .norms = (enum pd_trial_norms)((i + p) % PD_N_NORMS)};
                bool of_type = type == PERIDOT_KV_F16 ? n % 4 == 0 : type == PERIDOT_KV_F32 ? n % 4 != 0 : n % 4 == 1;
                bool taken = t->thorough ? (n + p + i) % 2 == 0 && of_type : c.shape.quick && n == 1 + p % 3;
                if (!c.shape.split || !taken) continue;
                c.shape.type = type;
                if (c.shape.head_dim == 512) c.norms = PD_NORMS_QKV;   /* they are Gemma 4's, which norms them all */
                for (uint32_t from = 0; from < PD_N_KV; from++) {
                    c.from = (enum pd_trial_kv)from;
                    if (from == PD_KV_OWN || (p + n) % 3 == from) try_decode(t, &c);
                }
            }
    const struct decode deep = {.shape = {1, 1, 16, type, true, true}, .split_pages = 1,
        .at = {(PD_MAX_SPLITS + 3) * PD_PAGE, 1, 0, (PD_MAX_SPLITS + 4) * PD_PAGE, 0, 6, 0, 0}};
    try_decode(t, &deep);
}

void pd_try_attention(struct pd_trial *t, uint32_t type)
{
    for (const struct shape *s = shapes; s < shapes + PD_COUNT(shapes); s++) {
        if ((uint32_t)s->type != type || !(t->thorough || s->quick)) continue;
        for (const struct whole *c = wholes; c < wholes + PD_COUNT(wholes); c++)
            if ((!c->head_dim || c->head_dim == s->head_dim) && (t->thorough || !c->thorough)) try_whole(t, s, c);
    }
    try_decodes(t, (peridot_kv_type)type);
}

/* ---- attention_reduce ---- */

/* Of two tokens: splits of very different weight, and empty ones, as attention writes them: no sum, the lowest
 * maximum. */
static void try_attention_reduce(struct pd_trial *t, uint32_t n_heads, uint32_t n_splits, uint32_t head_dim,
                                 bool has_sinks)
{
    enum { N_TOKENS = 2 };
    pd_trial_begin(t, "attention_reduce %u splits of %u heads of %u%s", n_splits, n_heads, head_dim,
                   has_sinks ? ", sinks" : "");
    uint32_t stride = head_dim + 2, n = n_heads * n_splits * stride, width = n_heads * head_dim;
    const uint32_t spec[] = {64, true};
    float *partial = pd_trial_random(t, N_TOKENS * n, 10), *y = pd_trial_floats(t, (size_t)N_TOKENS * width);
    for (uint32_t i = 0; i < N_TOKENS * n_heads * n_splits; i++) {
        float *split = partial + (size_t)i * stride;
        bool empty = n_splits > 1 && i % 3 == 1 && i % n_splits != 0;
        for (uint32_t d = 0; empty && d < head_dim; d++) split[d] = 0;
        split[head_dim] = empty ? -1e30f : split[head_dim] * (i % 5 == 0 ? 20 : 1);
        split[head_dim + 1] = empty ? 0 : fabsf(split[head_dim + 1]) + 1;
    }
    const struct pd_place at[N_TOKENS] = {{.n_splits = n_splits}, {.n_splits = n_splits, .first_split = n_splits}};
    struct pd_trial_buffer *y_rows = pd_trial_rows(t, NULL, N_TOKENS, width);
    struct pd_trial_buffer *words = pd_trial_words(t, at, N_TOKENS, sizeof *at / 4, sizeof *at / 4);
    struct pd_attention_reduce_push push = {.places = words->address,
        .partial = pd_trial_words(t, partial, N_TOKENS, n, n)->address, .y = y_rows->address, .head_dim = head_dim,
        .y_stride = y_rows->stride};
    const float *sinks = has_sinks ? random_sinks(t, n_heads) : NULL;
    if (has_sinks) push.sinks = pd_trial_rows(t, sinks, 1, n_heads)->address;
    pd_trial_dispatch(t, PD_KERNEL_attention_reduce, spec, has_sinks ? 2 : 1, &push, (uint32_t[2]){n_heads, N_TOKENS});
    pd_trial_run(t);
    for (uint32_t m = 0; m < N_TOKENS; m++)
        pd_reference_attention_reduce(y + m * width, partial + m * n, sinks, n_heads, n_splits, head_dim);
    pd_trial_check_rows(t, y_rows, y, NULL, 1e-5);
    pd_trial_end(t);
}

void pd_try_attention_reduce(struct pd_trial *t, uint32_t type)
{
    (void)type;
    static const uint32_t head_dims[] = {4, 20, 64, 256, 512}, n_heads[] = {1, 3, 16};
    for (size_t d = 0; d < PD_COUNT(head_dims); d++)
        for (uint32_t n = 1; n <= PD_MAX_SPLITS; n += n < 4 ? 1 : 7)
            try_attention_reduce(t, n_heads[(d + n) % 3], n, head_dims[d], d == 2 || n == 2);
}
