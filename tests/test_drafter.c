/* Drafters, which read the cache of the model that they draft for, against Hugging Face transformers: tests/golden/
 * gemma4-assistant and gemma4-small-assistant (tools/golden/drafter.py), from their files in either form, after texts
 * of several lengths, with each type of the cache, where the last token came with the prompt and where it was a decode
 * step. That texts are the same with them as without is shown in test_draft.c. And what is refused. */
#include "format_fixture.h"

#include "api/api.h"
#include "engine/rounds/rounds.h"
#include "relative_error.h"

enum { N_POSITIONS = 5, N_GUESSES = 5, VOCAB = 272, N_TOKENS = 100 };

static const uint32_t positions[N_POSITIONS] = {1, 7, 13, 40, 99};   /* tokens that were evaluated */

struct golden {
    int32_t tokens[N_TOKENS];
    float logits[N_POSITIONS][N_GUESSES][VOCAB];
};

static void read_golden(struct golden *g, const char *of)
{
    char path[512], text[1024], *at = text;
    snprintf(path, sizeof path, PERIDOT_GOLDEN "/%s/tokens.txt", of);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    for (int i = 0; i < N_TOKENS; i++, at++) g->tokens[i] = (int32_t)strtol(at, &at, 10);
    snprintf(path, sizeof path, PERIDOT_GOLDEN "/%s-assistant/guesses.f32", of);
    f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fread(g->logits, 1, sizeof g->logits, f), sizeof g->logits);
    fclose(f);
}

static peridot_model *open_model(const char *file, peridot_model *target)
{
    char path[512];
    peridot_model *model;
    snprintf(path, sizeof path, PERIDOT_GOLDEN "/%s", file);
    EXPECT_OK(peridot_model_open(&model, path, &(peridot_model_params){.size = sizeof(peridot_model_params),
                                                                       .target = target}));
    return model;
}

static peridot_session *open_session(peridot_model *model, peridot_model *drafter, peridot_kv_type kv)
{
    peridot_session *s;
    const peridot_session_params params = {.size = sizeof params, .ctx = 128, .chunk = 16, .kv_type = kv,
        .n_sequences = 2, .n_draft = 7, .drafter = drafter};
    EXPECT_OK(peridot_session_create(&s, model, &params));
    return s;
}

/* Of the candidates that were best, against what the oracle has for the same tokens. */
static double error_of(const struct pd_drafter *d, uint32_t j, const float *want)
{
    const struct pd_candidate *best = (const struct pd_candidate *)d->best.host + j * PD_TOPK;
    float a[PD_TOPK], b[PD_TOPK];
    for (int i = 0; i < PD_TOPK; i++) {
        assert_true(best[i].id < VOCAB);
        a[i] = best[i].logit;
        b[i] = want[best[i].id];
    }
    return relative_error(a, b, PD_TOPK);
}

static int32_t winner(const float *logits)
{
    int32_t best = 0;
    for (int32_t i = 1; i < VOCAB; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

/* The worst error of all guesses, as far as they are the oracle's. */
static double guess(peridot_session *s, const struct golden *g, uint32_t p, bool step)
{
    struct pd_drafter *d = s->s->drafter;
    peridot_sequence *q;
    double worst = 0;
    uint32_t n = positions[p];
    EXPECT_OK(peridot_sequence_create(&q, s));
    if (step && n > 1) EXPECT_OK(peridot_sequence_eval(q, g->tokens, n - 1, NULL));
    n -= peridot_sequence_pos(q);
    EXPECT_OK(peridot_sequence_eval(q, g->tokens + positions[p] - n, n, NULL));
    EXPECT_OK(pd_sequence_extend(q->q, positions[p] + 1 + N_GUESSES));
    struct pd_draft_rows rows = {.sequence = q->q, .tokens = {g->tokens[positions[p]]}, .n = 1};
    EXPECT_OK(pd_drafter_guess(&rows, d, N_GUESSES));
    assert_int_equal(rows.n, 1 + N_GUESSES);
    for (uint32_t j = 0; j < N_GUESSES; j++) {
        worst = fmax(worst, error_of(d, j, g->logits[p][j]));
        if (rows.tokens[1 + j] == winner(g->logits[p][j])) continue;
        if (s->s->set.cache.type == PERIDOT_KV_F32) fail_msg("guess %u after %u tokens is another", j, positions[p]);
        break;
    }
    peridot_sequence_free(q);
    return worst;
}

static void check(const char *of, const char *file)
{
    static const double most[] = {[PERIDOT_KV_F16] = 5e-3, [PERIDOT_KV_F32] = 5e-6, [PERIDOT_KV_Q8_0] = 6e-2};
    static struct golden g;
    char path[128];
    read_golden(&g, of);
    snprintf(path, sizeof path, "%s%s", of, file);
    peridot_model *model = open_model(path, NULL);
    snprintf(path, sizeof path, "%s-assistant%s", of, file);
    peridot_model *drafter = open_model(path, model);
    assert_true(peridot_model_get_info(drafter)->is_drafter);
    for (int kv = PERIDOT_KV_F16; kv <= PERIDOT_KV_Q8_0; kv++) {
        peridot_session *s = open_session(model, drafter, (peridot_kv_type)kv);
        double worst = 0;
        for (uint32_t p = 0; p < N_POSITIONS; p++)
            for (int step = 0; step < 2; step++) worst = fmax(worst, guess(s, &g, p, step));
        print_message("%s, cache %d: %.1e\n", path, kv, worst);
        if (!(worst < most[kv])) fail_msg("%s: error %g with a cache of type %d", path, worst, kv);
        peridot_session_free(s);
    }
    peridot_model_close(model);   /* the drafter keeps what it needs */
    peridot_model_close(drafter);
}

static void test_dense(void **state)
{
    (void)state;
    check("gemma4", "");
    check("gemma4", "/model.gguf");
}

static void test_small(void **state)
{
    (void)state;
    check("gemma4-small", "");
}

/* Where the hidden state is gone that the token was drawn from, there is no draft. */
static void test_overwritten(void **state)
{
    static struct golden g;
    (void)state;
    read_golden(&g, "gemma4");
    peridot_model *model = open_model("gemma4", NULL), *drafter = open_model("gemma4-assistant", model);
    peridot_session *s = open_session(model, drafter, PERIDOT_KV_F32);
    peridot_sequence *a, *b;
    EXPECT_OK(peridot_sequence_create(&a, s));
    EXPECT_OK(peridot_sequence_create(&b, s));
    EXPECT_OK(peridot_sequence_eval(a, g.tokens, 20, NULL));
    EXPECT_OK(peridot_sequence_eval(a, g.tokens + 20, 1, NULL));   /* in the row of steps */
    struct pd_draft_rows rows = {.sequence = a->q, .tokens = {g.tokens[21]}, .n = 1}, kept = rows;
    EXPECT_OK(pd_session_keep_logits(s->s, a->q));                 /* in its own */
    EXPECT_OK(pd_drafter_guess(&kept, s->s->drafter, 3));
    assert_int_equal(kept.n, 4);
    EXPECT_OK(peridot_sequence_eval(b, g.tokens, 1, NULL));
    EXPECT_OK(pd_drafter_guess(&rows, s->s->drafter, 3));
    assert_int_equal(rows.n, 4);
    assert_memory_equal(rows.tokens, kept.tokens, 4 * sizeof *rows.tokens);
    EXPECT_OK(peridot_sequence_eval(a, g.tokens + 21, 1, NULL));
    EXPECT_OK(peridot_sequence_eval(b, g.tokens + 1, 1, NULL));    /* its step takes the same row */
    rows.n = 1;
    EXPECT_OK(pd_drafter_guess(&rows, s->s->drafter, 3));
    assert_int_equal(rows.n, 1);
    peridot_session_free(s);
    peridot_model_close(drafter);
    peridot_model_close(model);
}

static void test_refusals(void **state)
{
    (void)state;
    peridot_model *model = open_model("gemma4", NULL), *wide = open_model("gemma4-old", NULL),
                  *drafter = open_model("gemma4-assistant", model), *none;
    peridot_session *s;
    EXPECT_FAILURE(peridot_model_open(&none, PERIDOT_GOLDEN "/gemma4-assistant", NULL), PERIDOT_ERROR_UNSUPPORTED,
                   "gemma4-assistant", "is a drafter", "--draft");
    EXPECT_OK(peridot_draft_check(drafter, model));
    EXPECT_FAILURE(peridot_draft_check(drafter, wide), PERIDOT_ERROR_ARGUMENT, "cannot draft for gemma4-old",
                   "layer 0", "window of 12");
    const peridot_session_params params = {.size = sizeof params, .ctx = 32, .n_draft = 3, .drafter = drafter};
    EXPECT_FAILURE(peridot_session_create(&s, wide, &params), PERIDOT_ERROR_ARGUMENT, "gemma4-assistant",
                   "was not opened");
    assert_null(s);
    peridot_model *other = open_model("gemma4-assistant", wide);
    const peridot_session_params wrong = {.size = sizeof wrong, .ctx = 32, .n_draft = 3, .drafter = other};
    EXPECT_FAILURE(peridot_session_create(&s, wide, &wrong), PERIDOT_ERROR_ARGUMENT, "cannot draft");
    assert_null(s);
    peridot_model_close(other);
    peridot_model_close(drafter);
    peridot_model_close(wide);
    peridot_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense),
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_overwritten),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
