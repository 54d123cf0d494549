/* RoPE with the cache write, attention over whole and split keys, and merge, against the CPU reference. Caches have the rings
 * that a session gives them. Slots that no position has reached yet hold NaN, as real ones hold anything: a key that is
 * masked only after it was read would show. fp16 caches are rounded before the reference reads them, so that all that
 * differs is fp32 arithmetic. */
#include "kernel_fixture.h"

/* ---- caches ---- */

static uint32_t kv_width(const struct pd_reference_heads *h) { return h->n_kv_heads * h->head_dim; }

/* A half of the cache on the device; f16 values become what fp16 makes of them. */
static struct buffer *make_cache(float *values, const struct pd_reference_heads *h, peridot_kv_type type)
{
    uint32_t width = kv_width(h), n = h->ring * width;
    if (type == PERIDOT_KV_F32) return make_words(values, h->ring, width, width);
    uint16_t *halves = malloc(sizeof *halves * n);
    assert_non_null(halves);
    for (uint32_t i = 0; i < n; i++) {
        halves[i] = pd_f16_from_f32(values[i]);
        values[i] = pd_f32_from_f16(halves[i]);
    }
    struct buffer *b = make_words(halves, h->ring, width / 2, width / 2);
    free(halves);
    return b;
}

static float cache_value(const struct buffer *b, peridot_kv_type type, uint32_t slot, uint32_t i)
{
    const uint32_t *row = row_words(b, slot);
    return type == PERIDOT_KV_F32 ? pd_f32_from_bits(row[i]) : pd_f32_from_f16((uint16_t)(row[i / 2] >> (i % 2 * 16)));
}

static struct pd_heads device_heads(const struct pd_reference_heads *h, const struct buffer *q_norm, const struct buffer *k_norm)
{
    return (struct pd_heads){.n_heads = h->n_heads, .n_kv_heads = h->n_kv_heads, .head_dim = h->head_dim, .window = h->window,
        .scale = h->scale, .softcap = h->softcap, .eps = h->eps, .q_norm = address_of(q_norm), .k_norm = address_of(k_norm)};
}

static struct buffer *make_places(uint32_t pos, uint32_t n_tokens)
{
    struct pd_place places[64] = {{0}};
    assert_true(n_tokens <= PD_COUNT(places));
    for (uint32_t m = 0; m < n_tokens; m++) places[m] = (struct pd_place){.pos = pos + m};
    return make_words(places, n_tokens, 2, 2);
}

/* ---- rope ---- */

/* cos and sin of position * 10000^(-2 i / head_dim), as a session makes them. */
static float *make_angles(uint32_t head_dim, uint32_t pos, uint32_t n_tokens)
{
    float *angles = zeros((size_t)n_tokens * head_dim);
    for (uint32_t m = 0; m < n_tokens; m++)
        for (uint32_t i = 0; i < head_dim / 2; i++) {
            double angle = (pos + m) * pow(10000, -2.0 * i / head_dim);
            angles[(size_t)m * head_dim + i] = (float)cos(angle);
            angles[(size_t)m * head_dim + head_dim / 2 + i] = (float)sin(angle);
        }
    return angles;
}

/* The slots of the chunk hold what is wanted. Vulkan lets a driver round to fp16 either way, so a half may be one unit off;
 * what is beyond its range is clamped. Checked slots are put back, so that end_case sees writes to any other. */
static void check_cache(struct buffer *b, const float *want, const struct pd_reference_heads *h, peridot_kv_type type,
                        uint32_t pos, uint32_t n_tokens, const char *name)
{
    uint32_t width = kv_width(h);
    for (uint32_t m = 0; m < n_tokens; m++) {
        uint32_t slot = (pos + m) % h->ring;
        for (uint32_t i = 0; i < width; i++) {
            double x = (double)want[(size_t)slot * width + i];
            if (type == PERIDOT_KV_F16) x = fmax(-65504, fmin(x, 65504));
            double limit = 4e-6 + fabs(x) * 1e-6 + (type == PERIDOT_KV_F16 ? fmax(0x1p-24, fabs(x) * 0x1p-10) : 0);
            double got = (double)cache_value(b, type, slot, i);
            if (!(fabs(got - x) <= limit)) fail_msg("%s: %s of slot %u at %u is %.9g, not %.9g", bench.label, name, slot, i, got, x);
        }
        size_t at = GUARD + (size_t)slot * b->stride;
        memcpy(b->now + at, b->image + at, b->width * 4);
    }
}

/* For q the root mean square of its head; k and v must stay as they are. */
static float *rope_magnitudes(const float *qkv, const struct pd_reference_heads *h, uint32_t n_tokens)
{
    uint32_t d = h->head_dim, width = (h->n_heads + 2 * h->n_kv_heads) * d;
    float *magnitudes = zeros((size_t)n_tokens * width);
    for (uint32_t m = 0; m < n_tokens; m++)
        for (uint32_t head = 0; head < h->n_heads; head++) {
            size_t at = (size_t)m * width + head * d;
            double squares = 0;
            for (uint32_t i = 0; i < d; i++) squares += (double)qkv[at + i] * (double)qkv[at + i];
            for (uint32_t i = 0; i < d; i++) magnitudes[at + i] = (float)sqrt(squares / d);
        }
    return magnitudes;
}

static void run_rope(struct pd_reference_heads h, bool has_norms, peridot_kv_type type, uint32_t pos, uint32_t n_tokens)
{
    begin_case("rope %u + 2 * %u heads of %u, norms %d, kv type %d, ring %u, position %u, %u tokens", h.n_heads, h.n_kv_heads,
               h.head_dim, has_norms, (int)type, h.ring, pos, n_tokens);
    uint32_t width = (h.n_heads + 2 * h.n_kv_heads) * h.head_dim;
    float *qkv = random_floats((size_t)n_tokens * width, 5), *angles = make_angles(h.head_dim, pos, n_tokens);
    float *k = random_floats((size_t)h.ring * kv_width(&h), 1), *v = random_floats((size_t)h.ring * kv_width(&h), 1);
    float *q_norm = random_floats(h.head_dim, 2), *k_norm = random_floats(h.head_dim, 2);
    qkv[width - 1] = 1e5f;   /* of v */
    qkv[width - 2] = -1e9f;
    qkv[width - 3] = 1e-7f;
    struct buffer *rows = make_rows(qkv, n_tokens, width), *k_cache = make_cache(k, &h, type), *v_cache = make_cache(v, &h, type);
    struct buffer *w_q = has_norms ? make_rows(q_norm, 1, h.head_dim) : NULL, *w_k = has_norms ? make_rows(k_norm, 1, h.head_dim) : NULL;
    struct buffer *places = make_places(pos, n_tokens), *turns = make_words(angles, n_tokens, h.head_dim, h.head_dim);
    struct pd_kv kv = {.k = address_of(k_cache), .v = address_of(v_cache), .ring = h.ring, .type = type};
    struct pd_heads heads = device_heads(&h, w_q, w_k);
    pd_op_rope(&bench.r, rows_of(rows), &kv, &heads, address_of(places), address_of(turns), n_tokens);
    run_case();
    h.q_norm = has_norms ? q_norm : NULL;
    h.k_norm = has_norms ? k_norm : NULL;
    pd_reference_rope(qkv, k, v, &h, angles, pos, n_tokens);
    float *magnitudes = rope_magnitudes(qkv, &h, n_tokens);
    check_rows(rows, qkv, magnitudes, 4e-6);
    check_cache(k_cache, k, &h, type, pos, n_tokens, "k");
    check_cache(v_cache, v, &h, type, pos, n_tokens, "v");
    end_case();
    float *all[] = {qkv, angles, k, v, q_norm, k_norm, magnitudes};
    for (size_t i = 0; i < PD_COUNT(all); i++) free(all[i]);
}

static void test_rope(void **state)
{
    (void)state;
    static const uint32_t head_dims[] = {4, 16, 20, 32, 64, 128, 256, 512}, heads[][2] = {{1, 1}, {4, 2}, {6, 1}};
    static const struct { uint32_t ring, pos, n_tokens; } places[] = {
        {8, 0, 1}, {8, 7, 1}, {8, 6, 5}, {8, 24, 8}, {3, 1000, 3}, {64, 8191, 33}};
    for (size_t d = 0; d < PD_COUNT(head_dims); d++)
        for (size_t p = 0; p < PD_COUNT(places); p++)
            for (int kind = 0; kind < 4; kind++) {
                const uint32_t *n = heads[(d + p) % PD_COUNT(heads)];
                struct pd_reference_heads h = {.n_heads = n[0], .n_kv_heads = n[1], .head_dim = head_dims[d],
                    .ring = places[p].ring, .eps = 1e-6f};
                run_rope(h, kind & 1, kind & 2 ? PERIDOT_KV_F16 : PERIDOT_KV_F32, places[p].pos, places[p].n_tokens);
            }
}

/* ---- attention ---- */

/* Few, as llvmpipe takes a second to compile each. */
static const struct shape {
    uint32_t n_heads, n_kv_heads, head_dim;
    peridot_kv_type type;
    bool split;                   /* tested with split keys too */
} shapes[] = {
    {1, 1, 4, PERIDOT_KV_F32, false}, {16, 1, 16, PERIDOT_KV_F16, true}, {3, 1, 20, PERIDOT_KV_F16, false},
    {4, 2, 32, PERIDOT_KV_F32, false}, {8, 2, 64, PERIDOT_KV_F16, true}, {8, 1, 64, PERIDOT_KV_F32, true},
    {4, 2, 128, PERIDOT_KV_F16, false}, {3, 3, 256, PERIDOT_KV_F16, false}, {4, 2, 256, PERIDOT_KV_F16, true},
    {16, 1, 512, PERIDOT_KV_F16, true},
};

/* The tests run once with each variant that the device has. */
static enum pd_variant variant = PD_VARIANT_ATTENTION_ROWS - 1;

static bool next_variant(void)
{
    while (++variant <= PD_VARIANT_ATTENTION_COLUMNS)
        if (pd_variant_available(pd_gpu_info(bench.gpu), variant)) return true;
    variant = PD_VARIANT_ATTENTION_ROWS - 1;
    return false;
}

struct place {
    uint32_t pos, n_tokens, window, ring;
    float softcap, amplitude;     /* of q: scores have a standard deviation of about a third of it */
};

struct attention_case {
    struct pd_reference_heads h;
    float *q, *k, *v, *want;
    struct buffer *k_cache, *v_cache, *q_rows, *y_rows, *step, *places;
    struct pd_kv kv;
    struct pd_heads heads;
};

/* Random keys where positions up to pos + n_tokens have left some, NaN elsewhere. */
static float *random_cache(const struct pd_reference_heads *h, uint32_t n_positions, float bias)
{
    size_t width = kv_width(h), n = h->ring * width;
    float *x = random_floats(n, 1);
    for (size_t i = 0; i < n; i++) x[i] = i / width < n_positions ? x[i] + bias : NAN;
    return x;
}

static void begin_attention(struct attention_case *a, const struct shape *s, const struct place *p, uint32_t kind, uint32_t n_splits)
{
    begin_case("attention %u/%u heads of %u, kv type %d, position %u, %u tokens, window %u, ring %u, softcap %g, amplitude %g, %u splits, variant %d",
               s->n_heads, s->n_kv_heads, s->head_dim, (int)s->type, p->pos, p->n_tokens, p->window, p->ring, (double)p->softcap,
               (double)p->amplitude, n_splits, (int)variant);
    pd_variants_force(&bench.r.variants, variant);
    uint32_t q_width = s->n_heads * s->head_dim;
    *a = (struct attention_case){.h = {.n_heads = s->n_heads, .n_kv_heads = s->n_kv_heads, .head_dim = s->head_dim,
        .window = p->window, .ring = p->ring, .softcap = p->softcap, .scale = (float)pow(s->head_dim, -0.5)}};
    a->q = random_floats((size_t)p->n_tokens * q_width, p->amplitude);
    a->k = random_cache(&a->h, p->pos + p->n_tokens, 0);
    a->v = random_cache(&a->h, p->pos + p->n_tokens, 0.3f);
    a->want = zeros((size_t)p->n_tokens * q_width);
    a->k_cache = make_cache(a->k, &a->h, s->type);
    a->v_cache = make_cache(a->v, &a->h, s->type);
    a->q_rows = make_rows(a->q, p->n_tokens, q_width);
    a->y_rows = make_rows(NULL, p->n_tokens, q_width);
    a->kv = (struct pd_kv){.k = address_of(a->k_cache), .v = address_of(a->v_cache), .ring = p->ring, .type = s->type};
    a->heads = device_heads(&a->h, NULL, NULL);
    struct pd_step step = {.n_splits = {7, 7}, .dispatch = {{1, 1, 1}, {1, 1, 1}}};
    step.n_splits[kind] = step.dispatch[kind][1] = n_splits;
    step.dispatch[kind][0] = pd_attention_groups(&bench.r, &a->heads);
    a->step = make_words(&step, 1, sizeof step / 4, sizeof step / 4);
    a->places = make_places(p->pos, p->n_tokens);
}

/* Scores of hundreds cost digits: fp32 has a score of 300 to 3e-5, and so its weight. The cap takes that back. */
static void end_attention(struct attention_case *a, const struct place *p)
{
    run_case();
    pd_reference_attention(a->want, a->q, a->k, a->v, &a->h, p->pos, p->n_tokens);
    check_rows(a->y_rows, a->want, NULL, p->amplitude > 50 ? 6e-5 : 1e-5);
    end_case();
    free(a->q);
    free(a->k);
    free(a->v);
    free(a->want);
}

static const struct place places[] = {
    {0, 1, 0, 300, 0, 6},         /* one key */
    {299, 1, 0, 300, 50, 6},
    {70, 1, 33, 39, 0, 6},        /* a ring that has wrapped */
    {39, 1, 40, 64, 50, 6},       /* a window just full */
    {40, 1, 40, 64, 50, 6},       /* and its first key out of sight */
    {0, 37, 0, 64, 50, 300},      /* scores far beyond the cap */
    {200, 7, 64, 70, 0, 6},       /* the ring of a session: window + chunk - 1 */
    {31, 5, 32, 36, 50, 6},
    {5, 3, 1, 3, 0, 6},           /* each sees itself only */
    {63, 33, 0, 100, 0, 300},
};

static void run_attention(const struct shape *s, const struct place *p)
{
    struct attention_case a;
    begin_attention(&a, s, p, 0, 1);
    pd_op_attention(&bench.r, rows_of(a.y_rows), rows_of(a.q_rows), &a.kv, &a.heads, address_of(a.places), p->n_tokens);
    end_attention(&a, p);
}

static void test_attention(void **state)
{
    (void)state;
    for (size_t s = 0; s < PD_COUNT(shapes); s++)
        for (size_t p = 0; p < PD_COUNT(places); p++)
            while (next_variant()) run_attention(&shapes[s], &places[p]);
}

/* All keys have the lowest score that the cap allows. A key masked before the cap would count as much as they do. */
static void run_softcap_order(void)
{
    const struct place p = {20, 12, 9, 32, 50, 0};
    const struct shape *s = &shapes[4];
    uint32_t q_width = s->n_heads * s->head_dim;
    struct attention_case a;
    begin_attention(&a, s, &p, 0, 1);
    for (uint32_t i = 0; i < p.n_tokens * q_width; i++) a.q[i] = -1000;
    for (uint32_t i = 0; i < p.ring * kv_width(&a.h); i++) a.k[i] = 1;
    a.kv.k = address_of(make_cache(a.k, &a.h, s->type));
    a.q_rows = make_rows(a.q, p.n_tokens, q_width);
    pd_op_attention(&bench.r, rows_of(a.y_rows), rows_of(a.q_rows), &a.kv, &a.heads, address_of(a.places), p.n_tokens);
    end_attention(&a, &p);
}

static void test_softcap_order(void **state)
{
    (void)state;
    while (next_variant()) run_softcap_order();
}

/* A decode step: q, k and v as the matrix gives them, this position's slot of the cache still without a number in it. An fp16
 * unit of the newest key and value may go either way, as in check_cache; it moves the result by as much. */
static void run_decode(struct shape s, const struct place *p, uint32_t n_splits, bool has_norms)
{
    struct attention_case a;
    uint32_t kind = n_splits % 2, per_split = s.n_heads * (s.head_dim + 2), q_width = s.n_heads * s.head_dim;
    begin_attention(&a, &s, p, kind, n_splits);
    uint32_t width = q_width + 2 * kv_width(&a.h);
    float *qkv = random_floats(width, 1), *angles = make_angles(s.head_dim, p->pos, 1);
    float *q_norm = random_floats(s.head_dim, p->amplitude), *k_norm = random_floats(s.head_dim, 1.5f);
    for (uint32_t i = 0; i < q_width; i++) qkv[i] *= p->amplitude;
    for (uint32_t i = 0; i < kv_width(&a.h); i++) a.k[p->pos % p->ring * kv_width(&a.h) + i] = NAN;
    a.k_cache = make_cache(a.k, &a.h, s.type);
    a.kv.k = address_of(a.k_cache);
    a.h.eps = 1e-6f;
    a.heads = device_heads(&a.h, has_norms ? make_rows(q_norm, 1, s.head_dim) : NULL, has_norms ? make_rows(k_norm, 1, s.head_dim) : NULL);
    struct buffer *rows = make_rows(qkv, 1, width), *turns = make_words(angles, 1, s.head_dim, s.head_dim);
    struct buffer *partial = make_words(NULL, 1, n_splits * per_split, PD_MAX_SPLITS * per_split);
    partial->written = true;
    pd_op_attention_decode(&bench.r, rows_of(a.y_rows), rows_of(rows), &a.kv, &a.heads, a.step->span, kind, address_of(a.places),
                           address_of(turns), address_of(partial));
    run_case();
    a.h.q_norm = has_norms ? q_norm : NULL;
    a.h.k_norm = has_norms ? k_norm : NULL;
    pd_reference_rope(qkv, a.k, a.v, &a.h, angles, p->pos, 1);
    pd_reference_attention(a.want, qkv, a.k, a.v, &a.h, p->pos, 1);
    check_rows(a.y_rows, a.want, NULL, s.type == PERIDOT_KV_F16 ? 4e-3 : 1e-5);
    check_cache(a.k_cache, a.k, &a.h, s.type, p->pos, 1, "k");
    check_cache(a.v_cache, a.v, &a.h, s.type, p->pos, 1, "v");
    end_case();
    float *all[] = {a.q, a.k, a.v, a.want, qkv, angles, q_norm, k_norm};
    for (size_t i = 0; i < PD_COUNT(all); i++) free(all[i]);
}

/* Every number of splits, with keys enough for all and with fewer keys than splits. */
static void test_attention_decode(void **state)
{
    (void)state;
    static const struct place few[] = {
        {0, 1, 0, 300, 50, 6}, {1, 1, 0, 300, 0, 6}, {30, 1, 0, 300, 0, 6}, {32, 1, 0, 300, 50, 30}, {299, 1, 0, 300, 0, 6},
        {200, 1, 33, 39, 50, 6}, {5, 1, 1, 1, 0, 6}};
    for (uint32_t n = 1; n <= PD_MAX_SPLITS; n++)
        for (size_t p = 0; p < PD_COUNT(few); p++)
            for (size_t i = 0; i < PD_COUNT(shapes); i++) {
                struct shape s = shapes[i];
                if (!s.split || (n + p + i) % 6 != 0) continue;
                s.type = n % 4 == 0 ? PERIDOT_KV_F16 : PERIDOT_KV_F32;
                while (next_variant()) run_decode(s, &few[p], n, i % 2);
            }
}

/* ---- merge ---- */

/* Splits of very different weight, and empty ones, as attention writes them: no sum, the lowest maximum. */
static void run_merge(uint32_t n_heads, uint32_t n_splits, uint32_t head_dim)
{
    begin_case("merge %u splits of %u heads of %u", n_splits, n_heads, head_dim);
    uint32_t stride = head_dim + 2, n = n_heads * n_splits * stride;
    float *partial = random_floats(n, 10), *y = zeros((size_t)n_heads * head_dim);
    for (uint32_t i = 0; i < n_heads * n_splits; i++) {
        float *split = partial + (size_t)i * stride;
        bool empty = n_splits > 1 && i % 3 == 1 && i % n_splits != 0;
        for (uint32_t d = 0; empty && d < head_dim; d++) split[d] = 0;
        split[head_dim] = empty ? -1e30f : split[head_dim] * (i % 5 == 0 ? 20 : 1);
        split[head_dim + 1] = empty ? 0 : fabsf(split[head_dim + 1]) + 1;
    }
    struct pd_step step = {.n_splits = {n_splits, 77}};
    struct buffer *y_rows = make_rows(NULL, 1, n_heads * head_dim), *step_words = make_words(&step, 1, sizeof step / 4, sizeof step / 4);
    struct pd_merge_push push = {.step = address_of(step_words), .partial = address_of(make_words(partial, 1, n, n)),
        .y = address_of(y_rows), .head_dim = head_dim};
    uint32_t spec[] = {64};
    dispatch(PD_KERNEL_merge, spec, 1, &push, n_heads, 1);
    run_case();
    pd_reference_merge(y, partial, n_heads, n_splits, head_dim);
    check_rows(y_rows, y, NULL, 1e-5);
    end_case();
    free(partial);
    free(y);
}

static void test_merge(void **state)
{
    (void)state;
    static const uint32_t head_dims[] = {4, 20, 64, 256, 512}, n_heads[] = {1, 3, 16};
    for (size_t d = 0; d < PD_COUNT(head_dims); d++)
        for (uint32_t n = 1; n <= PD_MAX_SPLITS; n += n < 4 ? 1 : 7) run_merge(n_heads[(d + n) % 3], n, head_dims[d]);
}

static void test_coverage(void **state)
{
    (void)state;
    check_covered("test_attention");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rope), cmocka_unit_test(test_attention), cmocka_unit_test(test_softcap_order),
        cmocka_unit_test(test_attention_decode), cmocka_unit_test(test_merge), cmocka_unit_test(test_coverage),
    };
    return cmocka_run_group_tests_name("attention", tests, open_bench, close_bench);
}
