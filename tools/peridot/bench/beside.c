/* The pace of a text beside a prompt: in one session, as in `peridot serve`, one stream writes while a prompt is read,
 * and the gaps between its tokens are what its reader sees. The library sizes the prompt's chunks for that. A short
 * prompt goes before, not counted: it compiles what is missing, and the library sees how long chunks take. */
#include "bench.h"
#include "../console/console.h"

#include <math.h>
#include <stdlib.h>

enum {
    WARM_UP = 64,          /* tokens of the prompt that is not counted, at most */
    FEW = 4,               /* tokens that the stream writes before a prompt comes, and positions to spare */
    SPARE = 16
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
