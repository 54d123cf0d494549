/* Which experts a token takes, how pairs are sorted by them, and how their results are summed, against the CPU
 * reference. Matrices of experts are in selftest_matrix.c. */
#include "selftest/selftest_.h"

#include <math.h>
#include <string.h>

/* ---- routes ---- */

struct routing {
    struct pd_routes routes;
    uint32_t n_slots, n_pairs;
    float *logits, *scale, *biases;
    struct pd_trial_buffer *choices, *slots;
};

/* Sigmoids of large logits would be too close to tell apart. Of every fourth token all logits are one of two
 * numbers; of the last one, if that is asked for, one is no number. */
static void make_routing(struct pd_trial *t, struct routing *c, struct pd_routes shape, bool damaged)
{
    uint32_t n_experts = shape.n_experts, n_tokens = shape.n_tokens;
    *c = (struct routing){.routes = shape, .n_pairs = n_tokens * shape.n_used,
        .logits = pd_trial_random(t, (size_t)n_tokens * n_experts, shape.sigmoid ? 3 : 8)};
    c->n_slots = (uint32_t)pd_min(n_experts, c->n_pairs);
    for (uint32_t m = 0; m < n_tokens; m += 4)
        for (uint32_t e = 0; e < n_experts; e++) c->logits[m * n_experts + e] = (float)((e + m) % 3 == 0);
    if (damaged) c->logits[n_tokens * n_experts - 1] = NAN;
    c->choices = pd_trial_words(t, NULL, 1, 2 * c->n_pairs, 2 * c->n_pairs);
    uint32_t n_words = 4 * c->n_slots + c->n_pairs;
    c->slots = pd_trial_words(t, NULL, 1, n_words, n_words);
    c->choices->written = c->slots->written = true;
    c->routes.choices = c->choices->address;
    c->routes.slots = c->slots->address;
}

static void check_choices(struct pd_trial *t, const struct routing *c)
{
    const uint32_t *got = pd_trial_row(t, c->choices, 0);
    uint32_t n_experts = c->routes.n_experts, n_used = c->routes.n_used;
    struct pd_choice want[PD_MAX_EXPERTS_USED];
    for (uint32_t i = 0; i < c->n_pairs; i++) {
        const float *logits = c->logits + (size_t)(i / n_used) * n_experts;
        float weight = pd_f32_from_bits(got[2 * i + 1]);
        if (i % n_used == 0) pd_reference_route(want, logits, c->scale, c->biases, &c->routes);
        const struct pd_choice *w = &want[i % n_used];
        if (isnan(w->weight)) {
            if (!isnan(weight)) pd_trial_fail(t, "pair %u: weight %g where a logit is no number", i, (double)weight);
            continue;
        }
        pd_trial_check(t, "expert", i, got[2 * i], w->expert, (struct pd_bound){0, 0});
        pd_trial_check(t, "weight", i, (double)weight, (double)w->weight, (struct pd_bound){2, 2e-6});
    }
}

/* Each pair is once in a slot, in order, with others of its expert; slots have the experts in order. */
static void check_slots(struct pd_trial *t, const struct routing *c)
{
    const uint32_t *choices = pd_trial_row(t, c->choices, 0), *slots = pd_trial_row(t, c->slots, 0);
    uint32_t slot = 0, at = 4 * c->n_slots;
    for (uint32_t e = 0; e < c->routes.n_experts; e++) {
        uint32_t n = 0, first = at;
        for (uint32_t i = 0; i < c->n_pairs; i++) {
            if (choices[2 * i] != e) continue;
            pd_trial_check(t, "pair", at, slots[at], i, (struct pd_bound){0, 0});
            at++;
            n++;
        }
        if (!n) continue;
        pd_trial_check(t, "expert of slot", slot, slots[4 * slot], e, (struct pd_bound){0, 0});
        pd_trial_check(t, "pairs of slot", slot, slots[4 * slot + 1], n, (struct pd_bound){0, 0});
        pd_trial_check(t, "first of slot", slot, slots[4 * slot + 2], first, (struct pd_bound){0, 0});
        slot++;
    }
    for (; slot < c->n_slots; slot++)
        pd_trial_check(t, "pairs of slot", slot, slots[4 * slot + 1], 0, (struct pd_bound){0, 0});
}

static void try_route(struct pd_trial *t, struct pd_routes shape, bool scaled, bool damaged)
{
    struct routing c;
    uint64_t scale = 0;
    pd_trial_begin(t, "%u of %u experts, %u tokens%s%s%s%s", shape.n_used, shape.n_experts, shape.n_tokens,
                   shape.sigmoid ? ", sigmoid" : "", shape.raw ? ", raw" : "", scaled ? ", scaled" : "",
                   damaged ? ", damaged" : "");
    make_routing(t, &c, shape, damaged);
    struct pd_rows logits = pd_trial_rows_of(pd_trial_rows(t, c.logits, shape.n_tokens, shape.n_experts));
    if (shape.sigmoid && !shape.raw) {
        c.biases = pd_trial_random(t, shape.n_experts, 1);
        c.routes.biases = pd_trial_rows(t, c.biases, 1, shape.n_experts)->address;
    }
    if (scaled) {
        c.scale = pd_trial_random(t, shape.n_experts, 2);
        scale = pd_trial_rows(t, c.scale, 1, shape.n_experts)->address;
    }
    pd_op_route(&t->r, &c.routes, logits, scale);
    pd_trial_run(t);
    if (t->ran) check_choices(t, &c);
    if (t->ran && !damaged) check_slots(t, &c);
    pd_trial_end(t);
}

void pd_try_route(struct pd_trial *t, uint32_t type)
{
    (void)type;
    static const uint32_t shapes[][2] = {{1, 1}, {3, 3}, {8, 2}, {65, 1}, {128, 8},
        {PD_MAX_EXPERTS, PD_MAX_EXPERTS_USED}};
    static const uint32_t n_tokens[] = {1, 2, 33};
    for (size_t s = 0; s < PD_COUNT(shapes); s++)
        for (size_t m = 0; m < PD_COUNT(n_tokens); m++)
            for (uint32_t way = 0; way < 5; way++) {
                const struct pd_routes shape = {.n_experts = shapes[s][0], .n_used = shapes[s][1],
                    .n_tokens = n_tokens[m], .raw = way == 1 || way == 4, .sigmoid = way > 2};
                if (t->thorough || (m == s % 3 && way == s % 5)) try_route(t, shape, way == 0, false);
            }
    try_route(t, (struct pd_routes){.n_experts = 128, .n_used = 8, .n_tokens = 3}, true, true);
}

/* ---- combine ---- */

static void try_combine(struct pd_trial *t, uint32_t n, uint32_t n_used, uint32_t n_tokens)
{
    bool shares = n_tokens > 1, gated = n_tokens % 2;
    pd_trial_begin(t, "combine %u columns of %u experts, %u tokens%s", n, n_used, n_tokens,
                   !shares ? "" : gated ? ", shared" : ", shared without a gate");
    uint32_t n_pairs = n_tokens * n_used;
    float *x = pd_trial_random(t, (size_t)n_pairs * n, 5), *y = pd_trial_floats(t, (size_t)n_tokens * n);
    float *magnitudes = pd_trial_floats(t, (size_t)n_tokens * n);
    struct pd_choice *choices = pd_trial_zeros(t, n_pairs * sizeof *choices);
    for (uint32_t i = 0; i < n_pairs; i++) choices[i].weight = pd_random_uniform(&t->random);
    struct pd_trial_buffer *x_rows = pd_trial_rows(t, x, n_pairs, n), *y_rows = pd_trial_rows(t, NULL, n_tokens, n);
    float *beside = pd_trial_random(t, (size_t)n_tokens * n, 5), *gate = pd_trial_random(t, n_tokens, 3);
    struct pd_routes routes = {.choices = pd_trial_words(t, choices, 1, 2 * n_pairs, 2 * n_pairs)->address,
        .n_used = n_used, .n_tokens = n_tokens};
    if (shares) {
        routes.shared = pd_trial_rows_of(pd_trial_rows(t, beside, n_tokens, n));
        if (gated) routes.gate = pd_trial_rows_of(pd_trial_rows(t, gate, n_tokens, 1));
    }
    pd_op_combine(&t->r, pd_trial_rows_of(y_rows), pd_trial_rows_of(x_rows), &routes, n);
    pd_trial_run(t);
    for (uint32_t k = 0; k < n_pairs * n; k++) {
        float term = choices[k / n].weight * x[k];
        y[k / n / n_used * n + k % n] += term;
        magnitudes[k / n / n_used * n + k % n] += fabsf(term);
    }
    for (uint32_t k = 0; shares && k < n_tokens * n; k++) {
        float term = gated ? beside[k] / (1 + expf(-gate[k / n])) : beside[k];
        y[k] += term;
        magnitudes[k] += fabsf(term);
    }
    pd_trial_check_rows(t, y_rows, y, magnitudes, 1e-6);
    pd_trial_end(t);
}

void pd_try_combine(struct pd_trial *t, uint32_t type)
{
    (void)type;
    static const uint32_t widths[] = {1, 36, 100, 2304}, n_used[] = {1, 3, 8};
    for (size_t n = 0; n < PD_COUNT(widths); n++)
        for (size_t k = 0; k < PD_COUNT(n_used); k++)
            if (t->thorough || k == n % 3) try_combine(t, widths[n], n_used[k], n == 1 ? 1 : 5 - n % 3 / 2);
}
