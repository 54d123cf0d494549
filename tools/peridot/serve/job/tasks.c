/* The tasks of a job: one for each choice of each of its texts, with room for a reply. */
#include "job.h"
#include "job_.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

uint64_t serve_reserve(uint32_t ctx) { return pd_max(64, ctx / 8); }

/* at_least: it was not counted. */
static bool refuse_length(struct serve_job *job, uint64_t n_prompt, bool at_least)
{
    const char *what = job->api->input;
    uint32_t ctx = job->model->ctx;
    if (job->asks.drops)
        return serve_refuse(&job->error, 400, "context_length_exceeded", what,
                            "The last message is too long for the context of %" PRIu32 " tokens: with the system "
                            "prompt it has %s%" PRIu64 ".", ctx, at_least ? "at least " : "", n_prompt);
    return serve_refuse_length(&job->error, job->api->errors, &(struct serve_length){what, n_prompt, at_least, ctx});
}

/* Tokens of a reply for which no length was given. In a conversation the next message and its reply fit after it. */
static uint64_t default_length(const struct serve_job *job, uint64_t rest)
{
    uint64_t reserve = serve_reserve(job->model->ctx);
    if (job->api->n_default) return job->api->n_default;
    return !job->asks.leaves_room ? rest : rest > 3 * reserve ? rest - 2 * reserve : reserve;
}

/* Room for a reply, or the error. */
static bool find_room(uint64_t *n_max, struct serve_job *job, size_t n_ids)
{
    uint64_t ctx = job->model->ctx, rest = n_ids < ctx ? ctx - n_ids : 0;
    *n_max = pd_min(rest, job->asks.max_given ? job->asks.n_max : default_length(job, rest));
    if (job->kind == SERVE_AT_ONCE) return true;
    if (n_ids == 0) return serve_refuse(&job->error, 400, "invalid_value", NULL, "the text has no tokens");
    if (!serve_kind_writes(job->kind)) *n_max = 0;
    return n_ids < ctx || (n_ids == ctx && !serve_kind_writes(job->kind)) || refuse_length(job, n_ids, false);
}

static bool go_on(void *user) { return serve_job_is_awaited(user); }

peridot_encode_limit serve_limit(struct serve_job *job)
{
    bool cuts = job->asks.truncates && job->kind == SERVE_VECTORS;
    return (peridot_encode_limit){.size = sizeof(peridot_encode_limit), .user = job,
                                  .go_on = job->body.is_long ? go_on : NULL,
                                  .n_most = cuts || job->kind == SERVE_AT_ONCE ? 0 : job->model->ctx};
}

bool serve_refuse_encoding(struct serve_job *job, const peridot_encode_limit *limit, peridot_status status)
{
    return limit->n_least ? refuse_length(job, limit->n_least, true) : serve_refuse_status(&job->error, status);
}

bool serve_tasks_add(struct serve_job *job, const int32_t *ids, size_t n_ids)
{
    uint64_t n_max;
    bool cut = job->asks.truncates && job->kind == SERVE_VECTORS && n_ids > job->model->ctx;
    const int32_t last = n_ids ? ids[n_ids - 1] : 0;   /* that ends a text, cut or not */
    if (cut) n_ids = job->model->ctx;
    if (!find_room(&n_max, job, n_ids)) return false;
    for (uint32_t i = 0; i < job->asks.n; i++) {
        struct serve_task *task = &job->work.tasks[job->work.n_tasks];
        *task = (struct serve_task){.job = job, .index = (uint32_t)job->work.n_tasks, .n_prompt = n_ids,
                                    .n_max = (uint32_t)n_max, .sampling = job->asks.sampling,
                                    .tokens = malloc((n_ids + n_max + 1) * sizeof *task->tokens)};
        job->work.n_tasks++;
        if (!task->tokens) return serve_refuse_memory(job);
        if (n_ids) memcpy(task->tokens, ids, n_ids * sizeof *ids);
        if (cut) task->tokens[n_ids - 1] = last;
        task->sampling.seed += i;
        task->sampling.stop = job->asks.stops;
        task->sampling.bias = job->asks.bias;
    }
    return true;
}

bool serve_tasks_make(struct serve_job *job, size_t n_texts)
{
    if (n_texts == 0)
        return serve_refuse(&job->error, 400, "invalid_value", job->api->input, "%s must have at least one text",
                            job->api->input);
    if (n_texts * job->asks.n > SERVE_MAX_TASKS)
        return serve_refuse(&job->error, 400, "invalid_value", NULL, "there must be 1 to %d choices, texts times n",
                            SERVE_MAX_TASKS);
    job->work.tasks = calloc(n_texts * job->asks.n, sizeof *job->work.tasks);
    return job->work.tasks || serve_refuse_memory(job);
}
