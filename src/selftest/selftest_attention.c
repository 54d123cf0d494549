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
    a->k_cache = pd_trial_cache(t, a->k, &a->h, s->type);
    a->v_cache = pd_trial_cache(t, a->v, &a->h, s->type);
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

/* Kernels that round queries and weights to fp16 and sum 16 products in it: half a unit of fp16 (2^-11) in a sum moves
 * a score by as much of its size, and the worst of hundreds by a few times that. What the cap bounds moves no more than
 * it, and weights are 1 at most. */
static double tolerance_of(const struct pd_trial *t, const struct place *p)
{
    bool half = t->r.variants.of[PD_VARIED_ATTENTION] == PD_VARIANT_ATTENTION_HALF;
    return half ? 3 * 0x1p-10 * (1 + (double)p->amplitude / 2) : fp32_tolerance(p);
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

static const struct place places[] = {
    {0, 1, 0, 64, 0, 6, 0, 0},       /* one key */
    {299, 1, 0, 320, 50, 6, 0, 0},
    {166, 1, 33, 128, 0, 6, 0, 0},   /* tables that have gone round */
    {39, 1, 40, 64, 50, 6, 0, 0},    /* a window just full */
    {40, 1, 40, 64, 50, 6, 0, 0},    /* and its first key out of sight */
    {0, 37, 0, 64, 50, 300, 0, 0},   /* scores far beyond the cap */
    {200, 7, 64, 192, 0, 6, 0, 0},   /* windows from one page to the next but one */
    {31, 5, 32, 64, 50, 6, 0, 0},
    {5, 3, 1, 64, 0, 6, 0, 0},       /* each sees itself only */
    {63, 33, 0, 128, 0, 300, 0, 0},
    {0, 37, 0, 64, 0, 6, 37, 0},     /* a text whose rows see each other, */
    {0, 71, 9, 128, 50, 6, 71, 0},   /* with windows to both sides, */
    {0, 1, 9, 64, 0, 6, 1, 0},       /* of one row */
    {60, 40, 33, 128, 0, 6, 21, 0},  /* an image within a text */
    {60, 75, 33, 192, 0, 6, 66, TO_END},   /* larger than a window, which ends what is seen before a row */
};

/* All keys have the lowest score that the cap allows. A key masked before the cap would count as much as they do. */
static void try_softcap_order(struct pd_trial *t, const struct shape *s)
{
    const struct place p = {20, 12, 9, 64, 50, 0, 0, 0};
    uint32_t q_width = s->n_heads * s->head_dim;
    struct attention a;
    begin_attention(t, &a, s, &p, 1);
    for (uint32_t i = 0; i < p.n_tokens * q_width; i++) a.q[i] = -1000;
    for (size_t i = 0; i < PD_N_SEQUENCES * pd_trial_sequence_size(&a.h); i++) a.k[i] = 1;
    a.op.kv.k = pd_trial_cache(t, a.k, &a.h, s->type)->address;
    a.op.qkv = pd_trial_rows_of(pd_trial_rows(t, a.q, p.n_tokens, q_width));
    end_attention(t, &a, &p);
}

/* Keys and values up to the largest of fp16, where sums of products would overflow in it; scores are as small as
 * ever. */
static void try_large_cache(struct pd_trial *t, const struct shape *s)
{
    const struct place p = {20, 40, 0, 64, 0, 6, 0, 0};
    struct attention a;
    begin_attention(t, &a, s, &p, 1);
    for (uint32_t i = 0; i < p.n_tokens * s->n_heads * s->head_dim; i++) a.q[i] *= 0x1p-15f;
    for (size_t i = 0; i < PD_N_SEQUENCES * pd_trial_sequence_size(&a.h); i++) {
        a.k[i] *= 0x1p15f;
        a.v[i] *= 0x1p15f;
    }
    a.op.kv.k = pd_trial_cache(t, a.k, &a.h, s->type)->address;
    a.op.kv.v = pd_trial_cache(t, a.v, &a.h, s->type)->address;
    a.op.qkv = pd_trial_rows_of(pd_trial_rows(t, a.q, p.n_tokens, s->n_heads * s->head_dim));
    end_attention(t, &a, &p);
}

/* A decode step of two sequences, the second one further on: q, k and v as the matrix gives them, these positions'
 * slots of the cache still without a number in them. An fp16 unit (2^-10) of the newest key and value may go either
 * way, as in pd_trial_check_cache, and some drivers (Mesa's) take rounding to fp16 and back for nothing: it moves a
 * score by as much of its size, which is about half the amplitude, and the result with it. */
static void try_decode(struct pd_trial *t, const struct shape *s, const struct place *p, uint32_t split_pages,
                       enum pd_trial_norms norms, enum pd_trial_kv from)
{
    struct attention a;
    const uint32_t per_split = s->n_heads * (s->head_dim + 2), q_width = s->n_heads * s->head_dim;
    struct pd_place at[PD_N_SEQUENCES] = {{.pos = p->pos / 3}, {.pos = p->pos}};
    struct pd_step step = {.dispatch = {{1, 1, 1}, {1, 1, 1}}};
    uint32_t n_splits = 0, kind = split_pages % 2;
    begin_attention(t, &a, s, p, split_pages);
    a.h.v_norm = norms == PD_NORMS_QKV;
    snprintf(t->label + strlen(t->label), sizeof t->label - strlen(t->label), ", %s, norms %d", pd_trial_kv_names[from],
             (int)norms);
    for (uint32_t m = 0; m < PD_N_SEQUENCES; m++) {
        at[m] = pd_decode_place(at[m].pos, p->window, split_pages);
        at[m].text = m * PD_TABLE_PAGES * PD_PAGE;
        at[m].first_split = n_splits;
        at[m].q_growth = pd_trial_growth(m);
        n_splits += at[m].n_splits;
        step.dispatch[kind][1] = (uint32_t)pd_max(step.dispatch[kind][1], at[m].n_splits);
    }
    uint32_t width = pd_trial_qkv_width(&a.h, PD_KV_OWN), n_own = from == PD_KV_SHARED ? 0 : 1;
    float *qkv = pd_trial_random(t, (size_t)PD_N_SEQUENCES * width, 1),
        *angles = pd_trial_floats(t, (size_t)PD_N_SEQUENCES * s->head_dim);
    float *q_norm = pd_trial_random(t, s->head_dim, p->amplitude), *k_norm = pd_trial_random(t, s->head_dim, 1.5f);
    const uint32_t n_positions[] = {at[0].pos + 1 - n_own, at[1].pos + 1 - n_own};
    a.k = random_cache(t, &a.h, n_positions, 0);
    a.v = random_cache(t, &a.h, n_positions, 0.3f);
    a.want = pd_trial_floats(t, (size_t)PD_N_SEQUENCES * q_width);
    for (uint32_t m = 0; m < PD_N_SEQUENCES; m++) {
        size_t slot = m * pd_trial_sequence_size(&a.h) + at[m].pos % p->ring * pd_trial_kv_width(&a.h);
        for (uint32_t i = 0; i < q_width; i++) qkv[m * width + i] *= p->amplitude;
        for (uint32_t i = 0; i < n_own * pd_trial_kv_width(&a.h); i++) a.k[slot + i] = a.v[slot + i] = NAN;
        memcpy(angles + m * s->head_dim, pd_trial_angles(t, s->head_dim, at[m].pos, 1), s->head_dim * sizeof *angles);
    }
    a.k_cache = pd_trial_cache(t, a.k, &a.h, s->type);
    a.v_cache = pd_trial_cache(t, a.v, &a.h, s->type);
    a.y_rows = pd_trial_rows(t, NULL, PD_N_SEQUENCES, q_width);
    a.h.eps = 1e-6f;
    struct pd_trial_buffer *w_q = pd_trial_rows(t, q_norm, 1, s->head_dim),
        *w_k = pd_trial_rows(t, k_norm, 1, s->head_dim);
    struct pd_trial_buffer *partial = pd_trial_words(t, NULL, 1, n_splits * per_split, n_splits * per_split);
    partial->written = true;
    a.op.heads = pd_trial_heads(&a.h, norms ? w_q : NULL, norms ? w_k : NULL);
    a.op.heads.window = p->window;
    pd_trial_set_kv(&a.op.heads, from);
    a.op.kv.k = a.k_cache->address;
    a.op.kv.v = a.v_cache->address;
    a.op.kind = kind;
    const float *rows = pd_trial_device_qkv(t, qkv, &a.h, from, PD_N_SEQUENCES);
    a.op.qkv = pd_trial_rows_of(pd_trial_rows(t, rows, PD_N_SEQUENCES, pd_trial_qkv_width(&a.h, from)));
    a.op.y = pd_trial_rows_of(a.y_rows);
    a.op.angles = pd_trial_words(t, angles, PD_N_SEQUENCES, s->head_dim, s->head_dim)->address;
    a.op.places = pd_trial_words(t, at, PD_N_SEQUENCES, sizeof *at / 4, sizeof *at / 4)->address;
    a.op.n_tokens = step.dispatch[kind][2] = PD_N_SEQUENCES;
    step.dispatch[kind][0] = pd_attention_groups(&t->r, &a.op.heads);
    a.op.step = pd_trial_words(t, &step, 1, sizeof step / 4, sizeof step / 4)->span;
    a.op.partial = partial->address;
    pd_op_attention_decode(&t->r, &a.op);
    pd_trial_run(t);
    if (!t->ran) {
        pd_trial_end(t);
        return;
    }
    a.h.q_norm = norms ? q_norm : NULL;
    a.h.k_norm = norms ? k_norm : NULL;
    for (uint32_t m = 0; m < PD_N_SEQUENCES; m++) {
        size_t first = m * pd_trial_sequence_size(&a.h);
        struct pd_reference_cache cache = {a.k + first, a.v + first},
            own = pd_trial_written_cache(t, &cache, &a.h, from);
        struct pd_trial_written written = {s->type, m, at[m].pos, n_own};
        float *q = qkv + m * width;
        pd_reference_rope(q, &own, &a.h, angles + m * s->head_dim, at[m].pos, 1);
        pd_trial_grow(q, &a.h, m);
        pd_trial_check_cache(t, "k", a.k_cache, a.k, &a.h, &written);
        pd_trial_check_cache(t, "v", a.v_cache, a.v, &a.h, &written);
        const struct pd_reference_sight sight = {first_key(p, at[m].pos), at[m].pos};
        pd_reference_attention(a.want + m * q_width, q, &cache, &a.h, &sight, 1);
    }
    pd_trial_check_rows(t, a.y_rows, a.want, NULL,
                        s->type == PERIDOT_KV_F16 ? 0x1p-10 * (1 + (double)p->amplitude / 2) : fp32_tolerance(p));
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
                struct shape s = shapes[i];
                bool of_type = type == PERIDOT_KV_F16 ? n % 4 == 0 : type == PERIDOT_KV_F32 ? n % 4 != 0 : n % 4 == 1;
                bool taken = t->thorough ? (n + p + i) % 2 == 0 && of_type : s.quick && n == 1 + p % 3;
                if (!s.split || !taken) continue;
                s.type = type;
                /* heads of 512 are Gemma 4's, which norms them all */
                enum pd_trial_norms norms = s.head_dim == 512 ? PD_NORMS_QKV
                                            : (enum pd_trial_norms)((i + p) % PD_N_NORMS);
                for (int from = 0; from < PD_N_KV; from++)
                    if (from == PD_KV_OWN || (p + n) % 3 == (size_t)from)
                        try_decode(t, &s, &few[p], n, norms, (enum pd_trial_kv)from);
            }
    const struct place deep = {(PD_MAX_SPLITS + 3) * PD_PAGE, 1, 0, (PD_MAX_SPLITS + 4) * PD_PAGE, 0, 6, 0, 0};
    const struct shape s = {1, 1, 16, type, true, true};
    try_decode(t, &s, &deep, 1, PD_NORMS_NONE, PD_KV_OWN);
}

/* As many rows, which all see each other, as kernels may be laid out for in another way. */
static void try_picture(struct pd_trial *t, const struct shape *s)
{
    const struct place p = {0, 1100, 33, 1152, 0, 6, 1100, 0};
    struct attention a;
    begin_attention(t, &a, s, &p, 1);
    end_attention(t, &a, &p);
}

void pd_try_attention(struct pd_trial *t, uint32_t type)
{
    for (size_t s = 0; s < PD_COUNT(shapes); s++) {
        if ((uint32_t)shapes[s].type != type || !(t->thorough || shapes[s].quick)) continue;
        for (size_t p = 0; p < PD_COUNT(places); p++) {
            struct attention a;
            begin_attention(t, &a, &shapes[s], &places[p], 1);
            end_attention(t, &a, &places[p]);
        }
        if (shapes[s].head_dim == 72 && t->thorough) try_picture(t, &shapes[s]);
        if (shapes[s].head_dim != 64) continue;
        try_softcap_order(t, &shapes[s]);
        try_large_cache(t, &shapes[s]);
    }
    try_decodes(t, (peridot_kv_type)type);
}

/* ---- attention_reduce ---- */

/* Of two tokens: splits of very different weight, and empty ones, as attention writes them: no sum, the lowest
 * maximum. */
static void try_attention_reduce(struct pd_trial *t, uint32_t n_heads, uint32_t n_splits, uint32_t head_dim)
{
    enum { N_TOKENS = 2 };
    pd_trial_begin(t, "attention_reduce %u splits of %u heads of %u", n_splits, n_heads, head_dim);
    uint32_t stride = head_dim + 2, n = n_heads * n_splits * stride, width = n_heads * head_dim, spec[] = {64};
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
    pd_trial_dispatch(t, PD_KERNEL_attention_reduce, spec, 1, &push, (uint32_t[2]){n_heads, N_TOKENS});
    pd_trial_run(t);
    for (uint32_t m = 0; m < N_TOKENS; m++)
        pd_reference_attention_reduce(y + m * width, partial + m * n, n_heads, n_splits, head_dim);
    pd_trial_check_rows(t, y_rows, y, NULL, 1e-5);
    pd_trial_end(t);
}

void pd_try_attention_reduce(struct pd_trial *t, uint32_t type)
{
    (void)type;
    static const uint32_t head_dims[] = {4, 20, 64, 256, 512}, n_heads[] = {1, 3, 16};
    for (size_t d = 0; d < PD_COUNT(head_dims); d++)
        for (uint32_t n = 1; n <= PD_MAX_SPLITS; n += n < 4 ? 1 : 7)
            try_attention_reduce(t, n_heads[(d + n) % 3], n, head_dims[d]);
}
