/* Measurements in sessions of their own: the pace of a text beside a prompt, and what drafts gain.
 *
 * The pace of a text beside a prompt: in one session, as in `peridot serve`, one stream writes while a prompt is read,
 * and the gaps between its tokens are what its reader sees. The library sizes the prompt's chunks for that. A short
 * prompt goes before, not counted: it compiles what is missing, and the library sees how long chunks take.
 *
 * What drafts gain depends on the text. So the model goes on with two, greedily, as it then says the same with and
 * without drafts: with a story, in which little comes again, and with a list, whose lines are alike. */
#include "bench.h"
#include "../console/console.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    WARM_UP = 64,          /* tokens of the prompt that is not counted, at most */
    FEW = 4,               /* tokens that the stream writes before a prompt comes, and positions to spare */
    SPARE = 16,
    DRAFT_PROMPT = 256     /* more than the tokens of a text, in any vocabulary */
};

struct beside {
    peridot_session *session;
    peridot_sequence *writes, *reads;
    peridot_request *writer, *reader;
    const int32_t *tokens;
    uint32_t ctx;
    double *times;         /* [n_times]: when the stream's tokens came, since the last prompt began */
    size_t n_times, capacity;
    bool wrote;            /* the stream's present text has a token */
    uint32_t n_empty;      /* texts in a row without one */
};

static bool note_time(void *user, int32_t token, const char *text, size_t size)
{
    struct beside *b = user;
    (void)text, (void)size;
    if (token < 0) return true;
    b->wrote = true;
    if (b->n_times < b->capacity) b->times[b->n_times++] = pd_now();
    return true;
}

/* The stream goes on whatever the model says: where a text ends or the context is full, another begins. */
static peridot_status write_on(struct beside *b)
{
    peridot_status status = PERIDOT_OK;
    if (b->writer && !peridot_request_done(b->writer, &status, NULL)) return PERIDOT_OK;
    if (status != PERIDOT_OK) return status;
    b->n_empty = b->wrote ? 0 : b->n_empty + 1;
    if (b->n_empty > FEW) return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the model ends every text at once");
    b->wrote = false;
    peridot_request_free(b->writer);
    b->writer = NULL;
    if (peridot_sequence_pos(b->writes) + SPARE > b->ctx) PD_TRY(peridot_sequence_truncate(b->writes, 0, NULL));
    uint32_t pos = peridot_sequence_pos(b->writes);
    peridot_request_params params = {.size = sizeof params, .prompt = b->tokens + pos, .n_prompt = 1,
                                     .n_max = b->ctx - pos - 1, .text = note_time, .user = b};
    return peridot_request_create(&b->writer, b->writes, &params);
}

static peridot_status run_round(struct beside *b)
{
    size_t n_running;
    if (cmd_interrupted()) return pd_fail(PERIDOT_CANCELLED, "stopped before all tests were done");
    PD_TRY(write_on(b));
    PD_TRY(pd_array_reserve(&b->times, &b->capacity, b->n_times, 1, sizeof *b->times, "times of tokens"));
    return peridot_session_run(b->session, &n_running);
}

/* Until the stream has written so many tokens more. */
static peridot_status write_some(struct beside *b, size_t n)
{
    size_t end = b->n_times + n;
    while (b->n_times < end) PD_TRY(run_round(b));
    return PERIDOT_OK;
}

/* Reads a prompt of n tokens. times[0] is that of the last token before it, the last one that of the first after. */
static peridot_status beside_read_prompt(double *seconds, struct beside *b, uint32_t n)
{
    peridot_status status = PERIDOT_OK;
    peridot_request_params params = {.size = sizeof params, .prompt = b->tokens, .n_prompt = n, .n_max = 1};
    PD_TRY(write_some(b, FEW));
    b->times[0] = b->times[b->n_times - 1];
    b->n_times = 1;
    double begin = pd_now();
    PD_TRY(peridot_request_create(&b->reader, b->reads, &params));
    while (!peridot_request_done(b->reader, &status, NULL)) PD_TRY(run_round(b));
    *seconds = pd_now() - begin;
    peridot_request_free(b->reader);
    b->reader = NULL;
    if (status != PERIDOT_OK) return status;
    PD_TRY(peridot_sequence_truncate(b->reads, 0, NULL));
    return write_some(b, 1);
}

static int by_length(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

/* Times become the gaps between them. */
static void summarise(struct bench_beside *out, double *times, size_t n_times)
{
    size_t n = n_times - 1;
    for (size_t i = 0; i < n; i++) {
        times[i] = times[i + 1] - times[i];
        out->n_slow += times[i] > BENCH_SLOW_S;
    }
    qsort(times, n, sizeof *times, by_length);
    out->n_gaps = (uint32_t)n;
    out->median_s = (times[(n - 1) / 2] + times[n / 2]) / 2;
    out->p95_s = times[(size_t)ceil(0.95 * (double)n) - 1];
    out->max_s = times[n - 1];
}

static peridot_status measure_gaps(struct bench_beside *out, struct beside *b, uint32_t n_prompt)
{
    double unused;
    PD_TRY(peridot_sequence_create(&b->writes, b->session));
    PD_TRY(peridot_sequence_create(&b->reads, b->session));
    PD_TRY(beside_read_prompt(&unused, b, (uint32_t)pd_min(n_prompt, WARM_UP)));
    PD_TRY(beside_read_prompt(&out->prompt_s, b, n_prompt));
    out->n_prompt = n_prompt;
    summarise(out, b->times, b->n_times);
    return PERIDOT_OK;
}

/* With a session of two sequences. */
static peridot_status run_session(struct bench_beside *out, struct beside *b, peridot_model *model,
                                  const peridot_session_params *params, uint32_t n_prompt)
{
    int32_t *tokens;
    PD_TRY(bench_make_tokens(&tokens, b->ctx, peridot_model_get_info(model)->vocab_size));
    b->tokens = tokens;
    peridot_status status = peridot_session_create(&b->session, model, params);
    if (status == PERIDOT_OK) status = measure_gaps(out, b, n_prompt);
    peridot_request_free(b->reader);
    peridot_request_free(b->writer);
    peridot_session_free(b->session);
    free(tokens);
    free(b->times);
    return status;
}

peridot_status bench_measure_beside(struct bench_beside *out, peridot_model *model, const struct bench_plan *plan)
{
    uint32_t limit = plan->ctx ? plan->ctx : peridot_model_get_info(model)->ctx_max;
    uint32_t n_prompt = (uint32_t)pd_min(plan->beside, limit);
    struct beside b = {.wrote = true, .ctx = (uint32_t)pd_min((uint64_t)n_prompt + 2 * SPARE, limit)};
    peridot_session_params params = {.ctx = b.ctx, .chunk = plan->chunk, .kv_type = (peridot_kv_type)plan->kv,
                                     .n_sequences = 2};
    if (b.ctx < 2 * SPARE) return PERIDOT_OK;   /* too few for the stream */
    return run_session(out, &b, model, &params, n_prompt);
}

/* ---- drafts ---- */

static const char *const draft_texts[BENCH_DRAFT_TEXTS] = {
    "Once upon a time there was a miller who had three sons, and when he died",
    "January is month 1 of the year and has 31 days.\nFebruary is month 2 of the year and has 28 days.\n"
    "March is month 3 of the year and has 31 days.\nApril is month 4 of the year and has 30 days.\n"
    "May is month 5 of"
};

static uint32_t draft_length(const struct bench_plan *plan)
{
    uint32_t most = 2;
    for (size_t i = 0; i < plan->lengths.n; i++) most = (uint32_t)pd_max(most, plan->lengths.at[i]);
    return most;
}

/* A session, with drafts or without. */
struct drafted {
    peridot_session *session;
    struct cmd_draft draft;
};

/* Goes on with ids, n_max tokens at most; *speed: tokens/s, the best of those so far. */
static peridot_status write_once(double *speed, peridot_stats *stats, const struct drafted *d, const int32_t *ids,
                                 size_t n_ids, uint32_t n_max)
{
    peridot_sequence *sequence, *guesses = NULL;
    *stats = (peridot_stats){0};
    PD_TRY(peridot_sequence_create(&sequence, d->session));
    peridot_status status = d->draft.session ? peridot_sequence_create(&guesses, d->draft.session) : PERIDOT_OK;
    peridot_request_params params = {.size = sizeof params, .prompt = ids, .n_prompt = n_ids, .n_max = n_max,
                                     .text = bench_go_on, .n_draft = d->draft.n, .draft = guesses};
    if (status == PERIDOT_OK) status = peridot_generate(sequence, &params, stats);
    if (status == PERIDOT_OK && cmd_interrupted())
        status = pd_fail(PERIDOT_CANCELLED, "stopped before all tests were done");
    if (stats->n_generated > 1) *speed = fmax(*speed, (stats->n_generated - 1) / fmax(stats->decode_s, 1e-9));
    peridot_sequence_free(guesses);
    peridot_sequence_free(sequence);
    return status;
}

/* Both by turns. The first time is not counted: what is missing is compiled, and the library learns how long steps
 * take. */
static peridot_status write_repeats(struct bench_draft_text *out, const struct drafted *both, const int32_t *ids,
                                    size_t n_ids, const struct bench_plan *plan)
{
    peridot_stats stats = {0};
    for (uint32_t i = 0; i < 1 + plan->n_repeats; i++) {
        double *speeds[] = {&out->plain, &out->drafted};
        if (i == 1) out->plain = out->drafted = 0;
        for (int k = 0; k < 2; k++)
            PD_TRY(write_once(speeds[k], &stats, &both[k], ids, n_ids, draft_length(plan)));
    }
    out->n_tokens = stats.n_generated;
    out->n_drafted = (uint32_t)stats.n_drafted;
    out->n_accepted = (uint32_t)stats.n_accepted;
    return PERIDOT_OK;
}

static peridot_status write_texts(struct bench_drafts *out, const struct drafted *both, peridot_model *model,
                                  const struct bench_plan *plan)
{
    for (int i = 0; i < BENCH_DRAFT_TEXTS; i++) {
        int32_t *ids;
        size_t n_ids;
        PD_TRY(peridot_encode(&ids, &n_ids, peridot_model_vocab(model), draft_texts[i], strlen(draft_texts[i]),
                              PERIDOT_ENCODE_BOS));
        peridot_status status = write_repeats(&out->texts[i], both, ids, n_ids, plan);
        peridot_free(ids);
        if (status != PERIDOT_OK) return status;
    }
    return PERIDOT_OK;
}

static peridot_status open_drafted(struct drafted *out, peridot_model *model, const struct bench_plan *plan,
                                   const struct cmd_draft_args *args)
{
    uint64_t ctx = pd_min(draft_length(plan) + DRAFT_PROMPT, peridot_model_get_info(model)->ctx_max);
    peridot_session_params params = {.ctx = (uint32_t)ctx, .chunk = plan->chunk, .kv_type = (peridot_kv_type)plan->kv};
    PD_TRY(cmd_draft_open(&out->draft, args, plan->model, model));
    PD_TRY(cmd_draft_create_target(&out->session, &out->draft, model, &params));
    return cmd_draft_create_session(&out->draft, &params);
}

peridot_status bench_measure_drafts(struct bench_drafts *out, peridot_model *model, const struct bench_plan *plan)
{
    const struct cmd_draft_args none = {.name = "none"};
    struct drafted both[2] = {0};
    peridot_status status = open_drafted(&both[0], model, plan, &none);
    if (status == PERIDOT_OK) status = open_drafted(&both[1], model, plan, &plan->draft);
    if (status == PERIDOT_OK) status = write_texts(out, both, model, plan);
    for (int i = 0; i < 2; i++) {
        cmd_draft_close(&both[i].draft);
        peridot_session_free(both[i].session);
    }
    return status;
}
