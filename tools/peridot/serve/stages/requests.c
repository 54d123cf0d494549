/* A task as a request of the library: what it asks for, and what comes out of it, token by token, on the thread of the
 * engine. */
#include "stages_.h"
#include "../job/job.h"
#include "../../base/base.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What its prompt took, once, when that is evaluated. */
static void count_prompt(struct serve_task *task, const peridot_stats *stats)
{
    struct serve_metrics *m = &task->job->server->metrics;
    if (task->counted || stats->prompt_s <= 0) return;
    task->counted = true;
    if (task->n_reply == 0) task->n_cached = stats->n_cached;   /* else it goes on, and evaluates its reply anew */
    serve_count(m, SERVE_CACHED_TOKENS, stats->n_cached);
    serve_count(m, SERVE_PROMPT_TOKENS, stats->n_prompt - stats->n_cached);
}

void serve_request_end(struct serve_task *task)
{
    struct serve_metrics *m = &task->job->server->metrics;
    peridot_stats stats = {.size = sizeof stats};
    if (!task->request) return;
    peridot_request_done(task->request, NULL, &stats);
    count_prompt(task, &stats);
    task->prompt_s += stats.prompt_s;
    task->reply_s += stats.decode_s;
    serve_count(m, SERVE_DRAFTED_TOKENS, stats.n_drafted);
    serve_count(m, SERVE_ACCEPTED_TOKENS, stats.n_accepted);
    serve_gauge_add(m, SERVE_DRAFT_SAVED, stats.draft_saved_s);
    peridot_request_free(task->request);
    task->request = NULL;
}

/* ---- what comes out ---- */

static void see_token(struct serve_task *task, int32_t token)
{
    struct serve_metrics *m = &task->job->server->metrics;
    double now = pd_now();
    if (!task->counted) {
        peridot_stats stats = {.size = sizeof stats};
        peridot_request_done(task->request, NULL, &stats);
        count_prompt(task, &stats);
    }
    if (task->n_reply == 0) task->first_s = now;
    if (task->n_reply == 0) serve_observe(m, SERVE_FIRST_TOKEN, now - task->job->begun_s);
    else serve_observe(m, SERVE_NEXT_TOKEN, now - task->last_s);
    serve_count(m, SERVE_GENERATED_TOKENS, 1);
    task->last_s = now;
    task->tokens[task->n_prompt + task->n_reply++] = token;
}

/* What of the text is a line that is indented less than the request wants is left out. */
static bool is_indented_less(struct serve_task *task)
{
    struct pd_buffer *b = &task->text;
    for (;;) {
        size_t at = task->line;
        while (at < b->size && (b->data[at] == ' ' || b->data[at] == '\t')) at++;
        if (task->line && at < b->size && at - task->line < task->job->asks.n_indent) {
            b->size = at;
            return true;
        }
        const char *end = b->size ? memchr(b->data + task->line, '\n', b->size - task->line) : NULL;
        if (!end) return false;
        task->line = (size_t)(end + 1 - b->data);
    }
}

/* Whether the reply ends with these `size` bytes, as llama.cpp's server has it: its time is up at the end of a line. */
static bool is_limited(struct serve_task *task, const char *text, size_t size)
{
    const struct serve_job *job = task->job;
    bool late = job->asks.most_ms > 0 && 1e3 * (pd_now() - task->first_s) > (double)job->asks.most_ms;
    return (late && size && memchr(text, '\n', size)) || (job->asks.n_indent && is_indented_less(task));
}

/* More of what the task has written; `what` it is: false, and the job's error, where memory is short. */
static bool requests_put(struct serve_task *task, struct pd_buffer *out, const char *text, size_t size,
                         const char *what)
{
    pd_buffer_add(out, text, size);
    return !out->failed || serve_refuse(&task->job->error, 500, NULL, NULL, "out of memory for the %s", what);
}

/* Where nobody waits for it any more the sweep ends it. */
static bool requests_take_text(void *user, int32_t token, const char *text, size_t size)
{
    struct serve_task *task = user;
    if (task->limited) return false;
    if (token >= 0) see_token(task, token);
    if (token >= 0 && task->job->asks.logprobs) serve_take_token(task, token);
    if (!requests_put(task, &task->text, text, size, "text of an answer")) return false;
    task->limited = is_limited(task, text, size);
    serve_write_piece(task);
    return !task->limited && !task->job->error.status;
}

static bool take_thought(void *user, int32_t token, const char *text, size_t size)
{
    struct serve_task *task = user;
    if (token >= 0) see_token(task, token);
    task->n_thought += token >= 0;
    if (!requests_put(task, &task->thought, text, size, "text of a thought")) return false;
    serve_write_piece(task);
    return !task->job->error.status;
}

/* Some times a second, for who wants to know. */
static bool take_progress(void *user, uint64_t done, uint64_t total)
{
    struct serve_task *task = user;
    const double now = pd_now();
    (void)total;
    if (now - task->told_s > 0.1 && !task->n_reply) {
        task->told_s = now;
        task->job->api->progress(task, done);
    }
    return true;
}

static struct serve_call *add_call(struct serve_task *task, const char *name)
{
    uint64_t random = 0;
    if (pd_array_reserve(&task->calls, &task->calls_capacity, task->n_calls, 1, sizeof *task->calls, "calls")
        != PERIDOT_OK)
        return NULL;
    struct serve_call *call = &task->calls[task->n_calls++];
    *call = (struct serve_call){0};
    pd_random_bytes(&random, sizeof random);
    snprintf(call->id, sizeof call->id, "call_%016" PRIx64, random);
    snprintf(call->name, sizeof call->name, "%s", name);
    return call;
}

static bool take_call(void *user, const peridot_call_piece *piece)
{
    struct serve_task *task = user;
    struct serve_call *call = piece->name ? add_call(task, piece->name) : &task->calls[task->n_calls - 1];
    if (!call) return serve_refuse_memory(task->job);
    if (!requests_put(task, &call->arguments, piece->arguments, piece->size, "calls of an answer")) return false;
    call->complete = piece->complete;
    serve_write_piece(task);
    return true;
}

/* The text that came out lacks a stop text, and what may be the beginning of one. */
static peridot_status decode_answer(char **text, size_t *size, const struct serve_task *task)
{
    int32_t *ids = malloc((task->n_reply + 1) * sizeof *ids);
    if (!ids) return PERIDOT_ERROR_MEMORY;
    memcpy(ids, task->tokens + task->n_prompt, task->n_reply * sizeof *ids);
    size_t n = task->n_reply;
    if (task->job->kind == SERVE_CONVERSATION) n = peridot_drop_thoughts(task->job->work.vocab, ids, n);
    peridot_status status = peridot_decode(text, size, task->job->work.vocab, ids, n);
    free(ids);
    return status;
}

const char *serve_request_find_stop(const struct serve_task *task)
{
    char *text;
    size_t size;
    const char *stop = NULL, *first = NULL;
    if (task->sampling.n_stop == 0 || decode_answer(&text, &size, task) != PERIDOT_OK) return NULL;
    for (size_t i = 0; i < task->sampling.n_stop; i++) {
        const char *at = strstr(text, task->sampling.stop[i]);
        if (!at || (first && at >= first)) continue;
        first = at;
        stop = task->sampling.stop[i];
    }
    peridot_free(text);
    return stop;
}

/* ---- beginning ---- */

static void want_vector(peridot_request_params *p, const struct serve_task *task)
{
    p->prompt_hidden = serve_take_hidden;
    p->prompt_last = serve_pool_of(task->job) == PERIDOT_POOL_LAST;
}

static void want_score(peridot_request_params *p, const struct serve_task *task)
{
    cmd_ranking_want(p, &task->job->asks.ranking, serve_take_score);
    p->sampling = NULL;
}

static void want_text(peridot_request_params *p, const struct serve_task *task)
{
    const struct serve_job *job = task->job;
    p->n_max = task->n_max - (uint32_t)task->n_reply;
    p->text = requests_take_text;
    p->think = job->asks.think;
    if (job->kind == SERVE_CONVERSATION) p->thought = take_thought;
    if (job->asks.progress && job->asks.stream && job->api->progress) p->progress = take_progress;
    p->tools = job->work.compiled;
    if (job->work.compiled) p->call = take_call;
    if (job->asks.logprobs) p->logits = serve_take_logits;
    if (job->asks.logprobs && job->asks.echo && task->n_reply == 0) p->prompt_logits = serve_take_prompt_logits;
}

peridot_status serve_request_submit(struct serve_task *task, peridot_session *session, const struct cmd_draft *draft)
{
    peridot_request_params params = {.size = sizeof params, .prompt = task->tokens,
        .n_prompt = task->n_prompt + task->n_reply, .n_replied = task->n_reply, .sampling = &task->sampling,
        .user = task};
    if (task->job->model->n_adapters) params.adapters = task->job->asks.adapters;
    params.n_adapters = task->job->asks.n_adapters;
    task->sampling.grammar = task->job->work.grammar;
    task->counted = false;
    if (task->job->kind == SERVE_VECTORS) want_vector(&params, task);
    else if (task->job->kind == SERVE_SCORES) want_score(&params, task);
    else want_text(&params, task);
    if (serve_kind_writes(task->job->kind)) {
        params.n_draft = draft->n;
        params.draft_session = draft->session;
    }
    return peridot_request_submit(&task->request, session, &params);
}
