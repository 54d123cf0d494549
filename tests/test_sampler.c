/* The sampler's chain: distributions against exact probabilities, of the host's draws and of kernel sample's, cuts,
 * penalties, ties and seeds. DRY, top-n-sigma and XTC against golden/samplers.json. */
#include "base/base.h"
#include "draw.h"
#include "engine/sequence/sequence.h"
#include "ops/ops.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <yyjson.h>

enum { N = 12, N_DRAWS = 60000, N_SAMPLES = 4000 };

static struct pd_gpu *gpu;

static int open_gpu(void **state)
{
    (void)state;
    return pd_gpu_open(&gpu, NULL, NULL) == PERIDOT_OK ? 0 : -1;
}

static int close_gpu(void **state)
{
    (void)state;
    pd_gpu_close(gpu);
    return 0;
}

#define EXPECT_OK(call)                                                  \
    do {                                                                 \
        if ((call) != PERIDOT_OK) fail_msg("%s: %s", #call, pd_error()); \
    } while (0)

static const float some_logits[N] = {2.0f, 1.7f, 1.7f, 1.1f, 0.9f, 0.4f, 0.0f, -0.3f, -1.0f, -1.2f, -2.5f, -30.0f};

static int32_t draw(struct pd_sampler *s, const float logits[N])
{
    struct pd_candidate c[N];
    for (uint32_t i = 0; i < N; i++) c[i] = (struct pd_candidate){logits[i], i};
    pd_candidates_sort(c, N);
    return pd_sampler_draw(s, c, N);
}

static const int32_t history[] = {0, 3, 3, 5, 0, 3};   /* what the session holds when a distribution is drawn from */

/* Logits after biases and penalties. */
static void adjusted(double logits[N], const peridot_sampling *s)
{
    for (uint32_t i = 0; i < N; i++) {
        uint32_t count = 0;
        logits[i] = (double)some_logits[i];
        for (size_t j = 0; j < s->n_bias; j++)
            if ((uint32_t)s->bias[j].token == i) logits[i] += (double)s->bias[j].value;
        for (size_t j = 0; j < PD_COUNT(history); j++) count += (uint32_t)history[j] == i;
        if (count == 0) continue;
        if (s->repeat_penalty > 0)
            logits[i] *= logits[i] > 0 ? 1 / (double)s->repeat_penalty : (double)s->repeat_penalty;
        logits[i] -= (double)s->presence_penalty + count * (double)s->frequency_penalty;
    }
}

/* Tokens that are likelier; the lower id of equals goes before. */
static uint32_t rank(const double logits[N], uint32_t i)
{
    uint32_t n = 0;
    for (uint32_t j = 0; j < N; j++) n += logits[j] > logits[i] || (logits[j] == logits[i] && j < i);
    return n;
}

/* The chain as the public header words it, over all tokens, with no regard for speed. */
static void exact(double p[N], const peridot_sampling *s)
{
    double logits[N], weight[N] = {0}, total = 0, sum = 0;
    uint32_t order[N], n = s->top_k ? (uint32_t)pd_min(s->top_k, N) : N, kept = 0;
    adjusted(logits, s);
    for (uint32_t i = 0; i < N; i++) order[rank(logits, i)] = i;
    for (uint32_t k = 0; k < n; k++) total += weight[k] = exp(logits[order[k]] / (double)s->temperature);
    for (uint32_t k = 0; k < N; k++) {
        bool in = weight[k] > 0
            && (k == 0 || ((s->top_p == 0 || sum / total < (double)s->top_p)
                           && weight[k] >= (double)s->min_p * weight[0]));
        sum += weight[k];
        p[order[k]] = in ? weight[k] : 0;
        kept += in;
    }
    assert_true(kept > 0);
    total = 0;
    for (uint32_t i = 0; i < N; i++) total += p[i];
    for (uint32_t i = 0; i < N; i++) p[i] /= total;
}

/* Pearson's chi-square against the value that 1 of 10,000 honest samplers passes: k + 4 sqrt(2 k) + 9 is above it for
 * all k here. A token that cannot be drawn must not be. */
static void check_counts(const uint32_t counts[N], uint32_t n_draws, const double p[N])
{
    double chi = 0;
    uint32_t freedom = 0;
    for (uint32_t i = 0; i < N; i++) {
        double expected = p[i] * n_draws, off = counts[i] - expected;
        if (p[i] == 0) assert_int_equal(counts[i], 0);
        if (expected < 5) continue;
        chi += off * off / expected;
        freedom++;
    }
    if (!(chi < freedom + 4 * sqrt(2.0 * freedom) + 9)) fail_msg("chi-square is %g over %u tokens", chi, freedom);
}

static void check_distribution(const peridot_sampling *chain)
{
    struct pd_sampler s = {0};
    uint32_t counts[N] = {0};
    double p[N];
    exact(p, chain);
    pd_sampler_set(&s, chain);
    for (size_t i = 0; i < PD_COUNT(history); i++) pd_sampler_accept(&s, history[i]);
    for (uint32_t i = 0; i < N_DRAWS; i++) counts[draw(&s, some_logits)]++;
    check_counts(counts, N_DRAWS, p);
}

/* What N_SAMPLES samples read and write. */
struct samples {
    struct pd_candidate best[PD_TOPK];
    struct pd_draw draws[N_SAMPLES];
    struct pd_candidate drawn[N_SAMPLES];
    uint32_t tokens[N_SAMPLES];
    int32_t recent[N_SAMPLES][PD_REPEAT_WINDOW];
    struct pd_candidate bias[PD_TOPK];
};

static void run_samples(struct pd_commands *commands, struct pd_span span)
{
    const struct samples *p = span.host;
    const uint64_t at = span.address - (uintptr_t)p;   /* device minus host */
    struct pd_recorder r = {.gpu = gpu, .commands = commands};
    EXPECT_OK(pd_commands_begin(commands));
    for (int i = 0; i < N_SAMPLES; i++)
        pd_op_sample(&r, &(struct pd_sample_push){.best = at + (uintptr_t)p->best,
            .draws = at + (uintptr_t)&p->draws[i],
            .tokens = at + (uintptr_t)&p->tokens[i], .drawn = at + (uintptr_t)&p->drawn[i],
            .recent = at + (uintptr_t)p->recent[i], .bias = at + (uintptr_t)p->bias}, 1);
    EXPECT_OK(r.status);
    EXPECT_OK(pd_commands_end(commands));
    EXPECT_OK(pd_commands_run(commands));
}

/* The kernel draws as probabilities say, and the very tokens that the host draws with the same seed. */
static void check_kernel(struct pd_sampler s, const float logits[N], const double of[N], struct pd_commands *commands,
                         struct pd_span span)
{
    struct samples *p = span.host;
    uint32_t counts[N] = {0};
    for (uint32_t i = 0; i < N; i++) p->best[i] = (struct pd_candidate){logits[i], i};
    pd_candidates_sort(p->best, N);
    for (uint32_t i = 0; i < N_SAMPLES; i++) p->draws[i] = pd_sampler_draw_ahead(&s, N, i);
    run_samples(commands, span);
    for (uint32_t i = 0; i < N_SAMPLES; i++) {
        assert_true(p->tokens[i] < N && p->drawn[i].id == p->tokens[i]);
        assert_int_equal(p->tokens[i], draw(&s, logits));
        counts[p->tokens[i]]++;
    }
    check_counts(counts, N_SAMPLES, of);
}

/* Chains that kernel sample can do as well, as far as it sees candidates. */
static const peridot_sampling plain[] = {
    {.temperature = 1, .seed = 1}, {.temperature = 0.5f, .seed = 2}, {.temperature = 3, .seed = 3},
    {.temperature = 1, .top_k = 3, .seed = 4}, {.temperature = 1, .top_k = 1, .seed = 5},
    {.temperature = 1, .top_k = 1000, .seed = 6},
    {.temperature = 1, .top_p = 0.6f, .seed = 7}, {.temperature = 1, .top_p = 0.01f, .seed = 8},
    {.temperature = 1, .top_p = 1, .seed = 9},
    {.temperature = 1, .min_p = 0.3f, .seed = 10}, {.temperature = 1, .min_p = 1, .seed = 11},
    {.temperature = 0.8f, .top_k = 8, .top_p = 0.9f, .min_p = 0.2f, .seed = 12},
    {.temperature = 2, .top_k = 7, .top_p = 0.7f, .seed = 13},
};

static void test_distributions(void **state)
{
    (void)state;
    static const peridot_bias biases[] = {{3, -1.5f}, {7, 2.5f}, {0, -INFINITY}, {1000, 50}, {-1, 50}, {7, 0.25f}};
    static const peridot_sampling chains[] = {
        {.temperature = 1, .repeat_penalty = 1.5f, .seed = 14}, {.temperature = 1, .repeat_penalty = 0.7f, .seed = 15},
        {.temperature = 1, .presence_penalty = 0.8f, .seed = 16},
        {.temperature = 1, .presence_penalty = -0.8f, .seed = 17},
        {.temperature = 1, .frequency_penalty = 0.6f, .seed = 18},
        {.temperature = 1, .frequency_penalty = -0.3f, .top_k = 4, .seed = 19},
        {.temperature = 1, .bias = biases, .n_bias = PD_COUNT(biases), .seed = 20},
        {.temperature = 0.9f, .bias = biases, .n_bias = 3, .repeat_penalty = 1.2f, .presence_penalty = 0.2f,
         .frequency_penalty = 0.1f,
         .top_k = 6, .top_p = 0.95f, .min_p = 0.05f, .seed = 21},
    };
    struct pd_heap *heap;
    struct pd_span span;
    struct pd_commands *commands;
    EXPECT_OK(pd_heap_create(&heap, gpu, PD_HEAP_HOST, sizeof(struct samples)));
    EXPECT_OK(pd_heap_alloc(&span, heap, sizeof(struct samples), "samples"));
    EXPECT_OK(pd_commands_create(&commands, gpu));
    for (size_t i = 0; i < PD_COUNT(chains); i++) check_distribution(&chains[i]);
    for (size_t i = 0; i < PD_COUNT(plain); i++) {
        struct pd_sampler s = {0};
        double p[N];
        exact(p, &plain[i]);
        pd_sampler_set(&s, &plain[i]);
        check_distribution(&plain[i]);
        check_kernel(s, some_logits, p, commands, span);
    }
    pd_commands_free(commands);
    pd_heap_free(heap);
}

/* ---- DRY, top-n-sigma and XTC ---- */

static double number(yyjson_val *o, const char *key) { return yyjson_get_num(yyjson_obj_get(o, key)); }

static peridot_sampling read_chain(yyjson_val *o, const char *breakers[8])
{
    peridot_sampling p = {.temperature = (float)number(o, "temperature"), .top_k = (uint32_t)number(o, "top_k"),
        .top_p = (float)number(o, "top_p"), .min_p = (float)number(o, "min_p"),
        .top_n_sigma = (float)number(o, "top_n_sigma"), .xtc_probability = (float)number(o, "xtc_probability"),
        .xtc_threshold = (float)number(o, "xtc_threshold"), .dry_multiplier = (float)number(o, "dry_multiplier"),
        .dry_base = (float)number(o, "dry_base"), .dry_allowed_length = (uint32_t)number(o, "dry_allowed_length"),
        .dry_last_n = (uint32_t)number(o, "dry_last_n"), .seed = 48};
    yyjson_val *texts = yyjson_obj_get(o, "dry_breakers"), *each;
    size_t i, n;
    if (texts) p.dry_breakers = breakers;
    yyjson_arr_foreach(texts, i, n, each) breakers[p.n_dry_breakers++] = yyjson_get_str(each);
    return p;
}

static void spell(struct pd_spellings *s, yyjson_val *pieces)
{
    size_t i, n;
    yyjson_val *each;
    *s = (struct pd_spellings){0};
    yyjson_arr_foreach(pieces, i, n, each)
        EXPECT_OK(pd_spellings_add(s, (uint32_t)i, yyjson_get_str(each), yyjson_get_len(each)));
    EXPECT_OK(pd_spellings_add_stop(s, (uint32_t)n));
    EXPECT_OK(pd_spellings_finish(s, (uint32_t)n + 1));
}

static uint32_t read_numbers(int32_t *out, yyjson_val *list)
{
    size_t i, n;
    yyjson_val *each;
    yyjson_arr_foreach(list, i, n, each) out[i] = (int32_t)yyjson_get_sint(each);
    return (uint32_t)yyjson_arr_size(list);
}

static yyjson_doc *open_samplers(void)
{
    yyjson_doc *doc = yyjson_read_file(PERIDOT_GOLDEN "/samplers.json", 0, NULL, NULL);
    assert_non_null(doc);
    return doc;
}

/* The host's draws, and where the kernel can do the chain its draws: it has no history. */
static void test_golden_chains(void **state)
{
    (void)state;
    yyjson_doc *doc = open_samplers();
    yyjson_val *root = yyjson_doc_get_root(doc), *each;
    struct pd_spellings spellings;
    struct pd_dry dry = {0};
    struct pd_heap *heap;
    struct pd_span span;
    struct pd_commands *commands;
    float logits[N];
    int32_t tokens[64];
    size_t i, n;
    EXPECT_OK(pd_heap_create(&heap, gpu, PD_HEAP_HOST, sizeof(struct samples)));
    EXPECT_OK(pd_heap_alloc(&span, heap, sizeof(struct samples), "samples"));
    EXPECT_OK(pd_commands_create(&commands, gpu));
    spell(&spellings, yyjson_obj_get(root, "pieces"));
    uint32_t n_tokens = read_numbers(tokens, yyjson_obj_get(root, "history"));
    for (i = 0; i < N; i++)
        logits[i] = (float)yyjson_get_num(yyjson_arr_get(yyjson_obj_get(root, "logits"), i));
    yyjson_arr_foreach(yyjson_obj_get(root, "chains"), i, n, each) {
        const char *breakers[8];
        const peridot_sampling chain = read_chain(yyjson_obj_get(each, "params"), breakers);
        struct pd_sampler s = {0};
        uint32_t counts[N] = {0};
        double p[N];
        for (size_t k = 0; k < N; k++) p[k] = yyjson_get_num(yyjson_arr_get(yyjson_obj_get(each, "p"), k));
        pd_sampler_set(&s, &chain);
        s.deviation = pd_sampler_deviation(logits, N);
        if (pd_sampler_has_dry(&s)) {
            EXPECT_OK(pd_dry_find(&dry, &chain, &spellings, tokens, n_tokens));
            s.dry = &dry;
        }
        const struct pd_sampler begun = s;
        for (uint32_t k = 0; k < N_DRAWS; k++) counts[draw(&s, logits)]++;
        check_counts(counts, N_DRAWS, p);
        if (!s.dry) check_kernel(begun, logits, p, commands, span);
    }
    pd_commands_free(commands);
    pd_heap_free(heap);
    pd_spellings_free(&spellings);
    free(dry.at);
    yyjson_doc_free(doc);
}

static void test_golden_repetitions(void **state)
{
    (void)state;
    yyjson_doc *doc = open_samplers();
    yyjson_val *each;
    struct pd_dry dry = {0};
    size_t i, n;
    yyjson_arr_foreach(yyjson_obj_get(yyjson_doc_get_root(doc), "dry"), i, n, each) {
        const char *breakers[8];
        const peridot_sampling chain = read_chain(yyjson_obj_get(each, "params"), breakers);
        yyjson_val *pairs = yyjson_obj_get(each, "pairs");
        struct pd_spellings spellings;
        int32_t tokens[64], pair[2];
        spell(&spellings, yyjson_obj_get(each, "pieces"));
        uint32_t n_tokens = read_numbers(tokens, yyjson_obj_get(each, "history"));
        EXPECT_OK(pd_dry_find(&dry, &chain, &spellings, tokens, n_tokens));
        bool same = dry.n == yyjson_arr_size(pairs);
        for (uint32_t k = 0; same && k < dry.n; k++) {
            read_numbers(pair, yyjson_arr_get(pairs, k));
            same = dry.at[k].token == pair[0] && dry.at[k].length == (uint32_t)pair[1];
        }
        if (!same) fail_msg("repetitions of text %zu: %u tokens", i, dry.n);
        pd_spellings_free(&spellings);
    }
    free(dry.at);
    yyjson_doc_free(doc);
}

/* An image is neither repeated nor penalised; without spellings nothing breaks; a long text takes no time. */
static void test_repetitions(void **state)
{
    (void)state;
    enum { LONG = 200000 };
    static const int32_t seen[] = {1, 2, -9, -8, 3, 1, 2, -9, -8, 3}, after[] = {1, 2, -9, 1, 2};
    const peridot_sampling p = {.dry_multiplier = 1, .dry_allowed_length = 1};
    struct pd_dry dry = {0};
    EXPECT_OK(pd_dry_find(&dry, &p, NULL, seen, PD_COUNT(seen)));
    assert_true(dry.n == 1 && dry.at[0].token == 1 && dry.at[0].length == 1);
    EXPECT_OK(pd_dry_find(&dry, &p, NULL, after, PD_COUNT(after)));
    assert_int_equal(dry.n, 0);
    EXPECT_OK(pd_dry_find(&dry, &p, NULL, seen, 0));
    assert_int_equal(dry.n, 0);
    int32_t *same = calloc(LONG, sizeof *same);
    assert_non_null(same);
    EXPECT_OK(pd_dry_find(&dry, &p, NULL, same, LONG));
    assert_true(dry.n == 1 && dry.at[0].token == 0 && dry.at[0].length == LONG - 1);
    free(same);
    free(dry.at);
}

/* Of all a vocabulary's tokens, however many and unlikely, none is left out, and 2^-x is what it says. */
static void test_weights(void **state)
{
    (void)state;
    enum { MANY = 200001 };
    struct pd_candidate *c = malloc(sizeof *c * MANY);
    double tail = (MANY - 1) * exp(-18), part = tail / (1 + tail);   /* 0.003 of the weight */
    struct pd_draw draw = {.scale = 1.4426950f, .n = MANY};
    assert_non_null(c);
    for (uint32_t i = 0; i < MANY; i++) c[i] = (struct pd_candidate){i ? -18 : 0, i};
    for (int i = 1; i < 10; i++) {
        draw.random = (uint32_t)(0x1p32 * (1 - part * i / 10));
        assert_true(fabs(pd_draw_from(&draw, c) - (1 - i / 10.0) * MANY) < 0.001 * MANY);
    }
    draw.random = (uint32_t)(0x1p32 * (1 - part * 1.01));
    assert_int_equal(pd_draw_from(&draw, c), 0);
    free(c);
    for (int i = 0; i < 100000; i++) {
        float x = (float)i / 100000;
        assert_true(fabs(pd_pow2(x) - ldexp(exp2(-(double)x), 31)) < 6.5);
    }
    assert_int_equal(pd_pow2(0), 1u << 31);
}

/* ---- drawing from all ---- */

enum { ALL = 30000, N_SHAPES = 6 };

/* Logits of a vocabulary, and some that are hard to divide: 0 peaked, 1 flat, 2 all equal, 3 few different ones, 4 a
 * peak above many that hardly differ, 5 wide, with ends that are not finite. */
static float logit_of(int shape, uint32_t i, struct pd_random *random)
{
    float x = pd_random_uniform(random), y = pd_random_uniform(random), z = pd_random_uniform(random);
    switch (shape) {
    case 0: return 12 * x * y * z;
    case 1: return x;
    case 2: return -7;
    case 3: return (float)(int)(3 * x);
    case 4: return i == ALL / 3 ? 10 : -3 - 1e-5f * x;
    default: return i % 97 == 0 ? -INFINITY : 100 * x;
    }
}

/* As where all are put in order and logits are adjusted one by one. */
static int32_t draw_in_order(struct pd_sampler *s, struct pd_candidate *c, uint32_t n)
{
    const peridot_sampling *p = &s->p;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t count = 0;
        for (size_t j = 0; j < p->n_bias; j++)
            if ((uint32_t)p->bias[j].token == c[i].id) c[i].logit += p->bias[j].value;
        for (uint32_t j = 0; j < pd_min(s->n_seen, PD_REPEAT_WINDOW); j++) count += (uint32_t)s->recent[j] == c[i].id;
        if (count && p->repeat_penalty > 0)
            c[i].logit *= c[i].logit > 0 ? 1 / p->repeat_penalty : p->repeat_penalty;
        if (count) c[i].logit = c[i].logit - p->presence_penalty - p->frequency_penalty * (float)count;
        if (isnan(c[i].logit)) c[i].logit = -INFINITY;
    }
    pd_candidates_sort(c, n);
    struct pd_draw d = pd_sampler_draw_ahead(s, n, 0);
    pd_sampler_drawn(s);
    return (int32_t)pd_draw_from(&d, c);
}

static void check_draws(const peridot_sampling *chain, int shape, uint32_t n_draws)
{
    struct pd_candidate *all = malloc(sizeof *all * ALL), *c = malloc(sizeof *c * ALL);
    struct pd_sampler s = {0}, expected;
    struct pd_random random;
    assert_true(all && c);
    pd_random_seed(&random, chain->seed, 5);
    for (uint32_t i = 0; i < ALL; i++) all[i] = (struct pd_candidate){logit_of(shape, i, &random), i};
    pd_sampler_set(&s, chain);
    for (uint32_t i = 0; i < 200; i++) pd_sampler_accept(&s, (int32_t)(i * i % ALL));
    s.deviation = 2;
    expected = s;
    for (uint32_t i = 0; i < n_draws; i++) {
        memcpy(c, all, sizeof *c * ALL);
        int32_t a = pd_sampler_draw(&s, c, ALL);
        memcpy(c, all, sizeof *c * ALL);
        int32_t b = draw_in_order(&expected, c, ALL);
        if (a != b) fail_msg("chain %llu, logits %d: token %d, not %d", (unsigned long long)chain->seed, shape, a, b);
    }
    free(all);
    free(c);
}

/* The very tokens that sorting gives. */
static void test_all(void **state)
{
    (void)state;
    static const peridot_bias biases[] = {{3, 40}, {29999, -1}, {-1, 9}, {400, -INFINITY}, {3, 0.5f}, {12, INFINITY},
                                          {12, -INFINITY}};
    static const peridot_sampling chains[] = {
        {.seed = 0, .bias = biases, .n_bias = PD_COUNT(biases)}, {.temperature = 1, .seed = 1},
        {.temperature = 0.3f, .seed = 2}, {.temperature = 50, .seed = 3}, {.temperature = 1e-30f, .seed = 4},
        {.temperature = 1, .top_p = 0.9f, .seed = 5}, {.temperature = 1, .top_p = 1e-9f, .seed = 6},
        {.temperature = 2, .min_p = 0.3f, .seed = 7}, {.temperature = 1, .top_k = 1000, .seed = 8},
        {.temperature = 1, .top_k = 40, .repeat_penalty = 0.5f, .seed = 9},
        {.temperature = 1, .top_k = 20000, .top_p = 0.5f, .min_p = 1e-4f, .presence_penalty = -2, .seed = 10},
        {.temperature = 3, .top_k = 129, .top_p = 0.8f, .bias = biases, .n_bias = 3, .frequency_penalty = 0.5f,
         .seed = 11},
        {.temperature = 1, .xtc_probability = 1, .xtc_threshold = 0.01f, .seed = 12},
        {.temperature = 1, .xtc_probability = 1, .top_p = 0.5f, .seed = 13},
        {.temperature = 9, .top_k = 500, .xtc_probability = 0.5f, .xtc_threshold = 0.002f, .seed = 14},
        {.temperature = 2, .min_p = 0.1f, .xtc_probability = 1, .xtc_threshold = 1e-4f, .seed = 15},
        {.temperature = 5, .top_n_sigma = 1, .seed = 16},
        {.temperature = 5, .top_n_sigma = 0.3f, .top_k = 1000, .xtc_probability = 1, .seed = 17}};
    for (size_t i = 0; i < PD_COUNT(chains); i++)
        for (int shape = 0; shape < N_SHAPES; shape++) check_draws(&chains[i], shape, 4);
}

static void test_greedy(void **state)
{
    (void)state;
    struct pd_sampler s = {0};
    static const float tied[N] = {-1, 3, 0, 3, 3};
    pd_sampler_set(&s, NULL);
    assert_int_equal(draw(&s, tied), 1);
    assert_int_equal(pd_sampler_needs(&s), 1);
    /* without a temperature all else is idle */
    pd_sampler_set(&s, &(peridot_sampling){.top_k = 5, .top_p = 0.1f, .seed = 9});
    for (int i = 0; i < 100; i++) assert_int_equal(draw(&s, tied), 1);
}

static void check_last(const peridot_sampling *chain, int32_t token)
{
    struct pd_sampler s = {0};
    pd_sampler_set(&s, chain);
    pd_sampler_accept(&s, token);
    for (int i = 0; i < 100; i++) {
        int32_t id = draw(&s, some_logits);
        if (id == token || id < 0 || id >= N) fail_msg("token %d was drawn, with %d to come last", (int)id, (int)token);
    }
}

/* A token whose logit the chain makes NaN or minus infinity comes last, wherever it was. */
static void test_unordered(void **state)
{
    (void)state;
    for (int32_t token = 0; token < N; token++) {
        const peridot_bias opposite[] = {{token, INFINITY}, {token, -INFINITY}};
        check_last(&(peridot_sampling){.temperature = 9, .presence_penalty = NAN}, token);
        check_last(&(peridot_sampling){.temperature = 9, .frequency_penalty = INFINITY}, token);
        check_last(&(peridot_sampling){.temperature = 9, .presence_penalty = 3e38f, .frequency_penalty = 3e38f}, token);
        check_last(&(peridot_sampling){.temperature = 9, .bias = opposite, .n_bias = PD_COUNT(opposite)}, token);
    }
}

/* Positive logits are divided, negative ones multiplied, and only for tokens of the last 64. */
static void test_repeat_penalty(void **state)
{
    (void)state;
    struct pd_sampler s = {0};
    static const float positive[N] = {4, 3.5f, 1}, negative[N] = {-1, -1.5f, -9, -9, -9, -9, -9, -9, -9, -9, -9, -9};
    pd_sampler_set(&s, &(peridot_sampling){.repeat_penalty = 2});
    assert_int_equal(draw(&s, positive), 0);
    pd_sampler_accept(&s, 0);
    assert_int_equal(draw(&s, positive), 1);
    assert_int_equal(draw(&s, negative), 1);
    pd_sampler_accept(&s, 1);
    assert_int_equal(draw(&s, positive), 0);
    for (int i = 0; i < 62; i++) pd_sampler_accept(&s, 11);
    assert_int_equal(draw(&s, positive), 0);    /* 4 / 2 against 3.5 / 2 */
    pd_sampler_accept(&s, 11);                  /* token 0 is 65 back: forgotten */
    assert_int_equal(draw(&s, negative), 0);
    pd_sampler_accept(&s, 0);
    pd_sampler_accept(&s, 11);                  /* and token 1 now, while 0 is new again */
    assert_int_equal(draw(&s, positive), 1);
    pd_sampler_set(&s, &(peridot_sampling){.repeat_penalty = 1});
    assert_int_equal(draw(&s, positive), 0);
}

/* Taken from a logit once, and once for each time. */
static void test_presence_and_frequency(void **state)
{
    (void)state;
    struct pd_sampler s = {0};
    static const float close[N] = {4, 3.5f, 3.2f, -5, -5, -5, -5, -5, -5, -5, -5, -5};
    pd_sampler_set(&s, &(peridot_sampling){.presence_penalty = 1});
    pd_sampler_accept(&s, 0);
    pd_sampler_accept(&s, 0);
    assert_int_equal(draw(&s, close), 1);
    pd_sampler_accept(&s, 1);
    assert_int_equal(draw(&s, close), 2);
    pd_sampler_accept(&s, 2);
    assert_int_equal(draw(&s, close), 0);    /* 3 against 2.5 and 2.2 */
    pd_sampler_set(&s, &(peridot_sampling){.frequency_penalty = 0.6f});
    assert_int_equal(draw(&s, close), 1);    /* 2.8 against 2.9 and 2.6 */
    for (int i = 0; i < 64; i++) pd_sampler_accept(&s, 11);
    assert_int_equal(draw(&s, close), 0);
}

static void test_bias(void **state)
{
    (void)state;
    struct pd_sampler s = {0};
    static const float positive[N] = {4, 3.5f, 1};
    peridot_bias bias[N] = {{0, -INFINITY}};
    pd_sampler_set(&s, &(peridot_sampling){.bias = bias, .n_bias = 1});
    assert_int_equal(draw(&s, positive), 1);
    bias[0] = (peridot_bias){9, 100};
    assert_int_equal(draw(&s, positive), 9);
    for (int32_t i = 0; i < N; i++) bias[i] = (peridot_bias){i, -INFINITY};   /* nothing is left: still an answer */
    pd_sampler_set(&s, &(peridot_sampling){.temperature = 1, .bias = bias, .n_bias = N});
    int32_t drawn = draw(&s, positive);
    assert_true(drawn >= 0 && drawn < N);
}

/* What a draw must see: a penalty can push down 64, and below 1 it can pull up any token. */
static void test_needs(void **state)
{
    (void)state;
    struct pd_sampler s = {0};
    static const peridot_bias down[] = {{1, -1}, {2, -INFINITY}}, up[] = {{1, -1}, {2, 0.1f}};
    static const struct { peridot_sampling p; uint32_t needs; } rows[] = {
        {{0}, 1}, {{.repeat_penalty = 1.1f}, 65}, {{.temperature = 1}, 0}, {{.temperature = 1, .top_k = 40}, 40},
        {{.temperature = 1, .top_k = 40, .repeat_penalty = 1.1f}, 104}, {{.temperature = 1, .top_p = 0.9f}, 0},
        {{.repeat_penalty = 0.5f}, 0},
        {{.temperature = 1, .top_k = 40, .repeat_penalty = 0.9f}, 0}, {{.presence_penalty = 0.1f}, 65},
        {{.frequency_penalty = 0.1f}, 65},
        {{.presence_penalty = -0.1f}, 0}, {{.frequency_penalty = -0.1f}, 0}, {{.bias = down, .n_bias = 2}, 3},
        {{.bias = up, .n_bias = 2}, 0},
        {{.temperature = 1, .top_k = 40, .frequency_penalty = 1, .bias = down, .n_bias = 2}, 106},
        {{.temperature = 1, .top_k = 40, .xtc_probability = 1}, 40},
        {{.temperature = 1, .top_k = 40, .top_n_sigma = 1}, 0},
        {{.top_n_sigma = 1}, 1}, {{.temperature = 1, .top_k = 40, .dry_multiplier = 1, .bias = down, .n_bias = 2}, 45}};
    static const struct pd_dry dry = {.n = 3};
    for (size_t i = 0; i < PD_COUNT(rows); i++) {
        pd_sampler_set(&s, &rows[i].p);
        if (pd_sampler_has_dry(&s)) s.dry = &dry;
        assert_int_equal(pd_sampler_needs(&s), rows[i].needs);
    }
}

static void test_seeds(void **state)
{
    (void)state;
    struct pd_sampler a = {0}, b = {0}, c = {0};
    pd_sampler_set(&a, &(peridot_sampling){.temperature = 1, .seed = 42});
    pd_sampler_set(&b, &(peridot_sampling){.temperature = 1, .seed = 42});
    pd_sampler_set(&c, &(peridot_sampling){.temperature = 1, .seed = 43});
    int n_apart = 0;
    int32_t first[200];
    for (int i = 0; i < 200; i++) {
        int32_t token = first[i] = draw(&a, some_logits);
        assert_int_equal(token, draw(&b, some_logits));
        n_apart += token != draw(&c, some_logits);
    }
    assert_true(n_apart > 100);
    pd_sampler_set(&a, &(peridot_sampling){.temperature = 1, .seed = 42});   /* again from the start */
    for (int i = 0; i < 200; i++) assert_int_equal(draw(&a, some_logits), first[i]);
}

/* What was found to repeat is of the tokens so far: any that comes ends it, and so does a row of an image. */
static void test_found_repetitions_end(void **state)
{
    static const int32_t rows[] = {3, -2};
    int32_t tokens[PD_COUNT(rows)];
    struct pd_sequence q = {.tokens = tokens};
    const struct pd_dry dry = {0};
    (void)state;
    for (size_t i = 0; i < PD_COUNT(rows); i++) {
        q.sampler.dry = &dry;
        pd_sequence_append(&q, &rows[i], 1);
        assert_null(q.sampler.dry);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distributions), cmocka_unit_test(test_weights), cmocka_unit_test(test_all),
        cmocka_unit_test(test_greedy),
        cmocka_unit_test(test_unordered),     cmocka_unit_test(test_repeat_penalty),
        cmocka_unit_test(test_presence_and_frequency), cmocka_unit_test(test_bias),
        cmocka_unit_test(test_needs), cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_golden_chains), cmocka_unit_test(test_golden_repetitions),
        cmocka_unit_test(test_repetitions), cmocka_unit_test(test_found_repetitions_end),
    };
    return cmocka_run_group_tests_name("sampler", tests, open_gpu, close_gpu);
}
