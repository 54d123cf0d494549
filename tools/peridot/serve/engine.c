#define _POSIX_C_SOURCE 200809L
#include "engine.h"
#include "cache.h"
#include "rows.h"
#include "write.h"
#include "../draft.h"
#include "../os.h"
#include "../template.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    AHEAD = 128,               /* tokens of a reply for which there must be room when it begins */
    DEFAULT_POSITIONS = 16384, DEFAULT_CTX = 8192
};
#define PIECE_SECONDS 0.2      /* of texts that are only read, while others write */
#define LOOK_SECONDS 0.05      /* between looks whether connections of those that wait are still there */

struct serve_engine {
    struct serve_server *server;
    pthread_t thread;
    /* shared, under the lock */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct serve_task *added, **last_added;
    bool stop;
    peridot_vocab *vocab;          /* of the last model */
    _Atomic double step_begun_s;   /* 0: none is at work */
    /* the thread's */
    peridot_model *model;
    struct cmd_draft draft;
    struct serve_cache cache;
    struct serve_task *waiting;    /* in order */
    struct serve_task *running[SERVE_MAX_SLOTS];
    uint32_t n_running, chunk, n_piece;
    double looked_s;
};

/* ---- the end of tasks ---- */

static void end_request(struct serve_engine *e, struct serve_task *task)
{
    peridot_stats stats = {.size = sizeof stats};
    if (task->request) peridot_request_done(task->request, NULL, &stats);
    serve_count(&e->server->metrics, SERVE_DRAFTED_TOKENS, stats.n_drafted);
    serve_count(&e->server->metrics, SERVE_ACCEPTED_TOKENS, stats.n_accepted);
    peridot_request_free(task->request);
    peridot_sequence_free(task->draft);
    task->request = NULL;
    task->draft = NULL;
}

static void end_task(struct serve_engine *e, struct serve_task *task)
{
    struct serve_job *job = task->job;
    end_request(e, task);
    if (task->sequence) serve_cache_release(&e->cache, task, !job->error.status);
    task->state = SERVE_ENDED;
    if (!job->error.status && !job->closed) serve_write_task_end(task);
    if (++job->n_ended < job->n_tasks) return;
    if (job->error.status) serve_job_fail(job);
    else if (!job->closed) serve_write_end(job);
    else serve_job_write(job, NULL, true);
    e->server->n_jobs--;
    serve_job_drop(job);
}

static void fail_task(struct serve_engine *e, struct serve_task *task, peridot_status status)
{
    serve_refuse_status(&task->job->error, status);
    end_task(e, task);
}

/* Takes task i out of those that run; the others keep their order. */
static struct serve_task *leave(struct serve_engine *e, uint32_t i)
{
    struct serve_task *task = e->running[i];
    memmove(&e->running[i], &e->running[i + 1], (--e->n_running - i) * sizeof *e->running);
    return task;
}

/* It goes on later, before all others, from its tokens. */
static void put_back(struct serve_engine *e, struct serve_task *task)
{
    end_request(e, task);
    if (task->sequence) serve_cache_release(&e->cache, task, false);
    task->state = SERVE_WAITS;
    task->n_read = 0;
    task->next = e->waiting;
    e->waiting = task;
}

/* ---- what comes out ---- */

static void see_token(struct serve_task *task, int32_t token)
{
    struct serve_metrics *m = &task->job->server->metrics;
    double now = cmd_now();
    if (task->n_reply == 0) serve_observe(m, SERVE_FIRST_TOKEN, now - task->job->begun_s);
    else serve_observe(m, SERVE_NEXT_TOKEN, now - task->last_s);
    serve_count(m, SERVE_GENERATED_TOKENS, 1);
    task->last_s = now;
    task->tokens[task->n_prompt + task->n_reply++] = token;
}

static bool take_text(void *user, int32_t token, const char *text, size_t size)
{
    struct serve_task *task = user;
    if (token >= 0) {
        see_token(task, token);
        if (task->job->logprobs) serve_take_token(task, token);
    }
    task->state = SERVE_WRITES;
    serve_put(&task->text, text, size);
    if (task->text.failed) serve_refuse(&task->job->error, 500, NULL, NULL, "out of memory for the text of an answer");
    else serve_write_piece(task);
    return !task->job->closed && !task->job->error.status;
}

/* A reply of the greatest length may end with a stop text nonetheless. */
static bool ends_with_stop(const struct serve_task *task)
{
    char *text;
    size_t size;
    bool found = false;
    if (task->sampling.n_stop == 0
        || peridot_decode(&text, &size, task->job->vocab, task->tokens + task->n_prompt, task->n_reply) != PERIDOT_OK)
        return false;
    for (size_t i = 0; i < task->sampling.n_stop; i++) found = found || strstr(text, task->sampling.stop[i]);
    peridot_free(text);
    return found;
}

/* ---- beginning ---- */

static peridot_status begin_reply(struct serve_engine *e, struct serve_task *task)
{
    size_t n = task->n_prompt + task->n_reply, pos = peridot_sequence_pos(task->sequence);
    if (e->draft.session) CMD_TRY(peridot_sequence_create(&task->draft, e->draft.session));
    const peridot_request_params params = {.size = sizeof params, .prompt = task->tokens + pos, .n_prompt = n - pos,
        .n_max = task->n_max - (uint32_t)task->n_reply, .n_replied = task->n_reply, .text = take_text, .user = task,
        .logits = task->job->logprobs ? serve_take_logits : NULL,
        .n_shared = task->n_shared > pos ? task->n_shared - pos : 0,
        .n_draft = cmd_draft_tokens(&e->server->args->draft), .draft = task->draft};
    task->state = SERVE_WRITES;
    return peridot_request_create(&task->request, task->sequence, &params);
}

/* A text is only read where its rows are wanted: vectors, or the probabilities of a prompt. */
static bool is_read(const struct serve_task *task)
{
    return task->job->api == SERVE_EMBEDDINGS || (task->job->echo && task->job->logprobs && task->n_reply == 0);
}

/* Choices of one text wait for the first, whose prompt they share. */
static bool must_wait(const struct serve_task *task)
{
    const struct serve_task *first = task - task->index % task->job->n;
    return first != task && (first->state == SERVE_WAITS || (first->state != SERVE_ENDED && first->n_reply == 0));
}

static bool begin(struct serve_engine *e, struct serve_task *task)
{
    size_t n = task->n_prompt + task->n_reply;
    bool reads = is_read(task);
    if (e->n_running && !serve_cache_n_kept(&e->cache)
        && peridot_session_free_positions(e->cache.session) < 64 * (e->n_running + 1))
        return false;
    if (!serve_cache_take(&e->cache, task, reads ? 0 : cmd_min(task->n_prompt, n - 1))) return false;
    uint64_t needed = n - task->n_cached + cmd_min(task->n_max - task->n_reply, AHEAD) + 64 * (e->n_running + 1);
    if (!serve_cache_make_room(&e->cache, needed) && e->n_running) {
        serve_cache_release(&e->cache, task, true);
        return false;
    }
    task->begun_s = cmd_now();
    task->state = SERVE_READS;
    serve_count(&e->server->metrics, SERVE_CACHED_TOKENS, task->n_cached);
    serve_count(&e->server->metrics, SERVE_PROMPT_TOKENS, n - task->n_cached);
    task->sampling.grammar = task->job->grammar;
    peridot_status status = peridot_set_sampling(task->sequence, &task->sampling);
    if (status == PERIDOT_OK && !reads) status = begin_reply(e, task);
    if (status != PERIDOT_OK) fail_task(e, task, status);
    else e->running[e->n_running++] = task;
    return true;
}

/* In order; who cannot begin yet keeps those behind waiting, or it might wait for ever. */
static void begin_some(struct serve_engine *e)
{
    struct serve_task **at = &e->waiting;
    while (*at && e->n_running < e->server->args->n_parallel) {
        struct serve_task *task = *at, *next = task->next;
        if (must_wait(task)) {
            at = &task->next;
            continue;
        }
        if (!begin(e, task)) return;
        *at = next;   /* nothing was put before it meanwhile */
    }
}

/* ---- a round ---- */

static bool is_gone(struct serve_job *job)
{
    pthread_mutex_lock(&job->lock);
    if (job->socket >= 0 && cmd_socket_is_closed(job->socket)) job->closed = true;
    pthread_mutex_unlock(&job->lock);
    return job->closed;
}

/* Tasks whose answer nobody waits for, or cannot be given any more, end: those that run at once, as they hold pages. */
static void sweep(struct serve_engine *e)
{
    double now = cmd_now();
    bool look = now - e->looked_s > LOOK_SECONDS;
    if (look) e->looked_s = now;
    for (uint32_t i = 0; i < e->n_running;) {
        struct serve_job *job = e->running[i]->job;
        if (is_gone(job) || job->error.status) end_task(e, leave(e, i));
        else i++;
    }
    for (struct serve_task **at = &e->waiting; *at;) {
        struct serve_task *task = *at;
        if ((look && is_gone(task->job)) || task->job->closed || task->job->error.status) {
            *at = task->next;
            end_task(e, task);
        } else at = &task->next;
    }
}

/* The request of task i has ended. */
static void take_end(struct serve_engine *e, uint32_t i, peridot_status status)
{
    struct serve_task *task = leave(e, i);
    if (status == PERIDOT_ERROR_MEMORY && (e->n_running || serve_cache_n_kept(&e->cache))) {
        serve_count(&e->server->metrics, SERVE_PREEMPTIONS, 1);
        put_back(e, task);
        return;
    }
    bool full = task->n_reply == task->n_max && !ends_with_stop(task);
    task->finish = full ? SERVE_FINISH_LENGTH : SERVE_FINISH_STOP;
    if (status == PERIDOT_OK) end_task(e, task);
    else fail_task(e, task, status);
}

/* Texts that are only read, of one job at a time: a piece of one, or several short ones. */
static peridot_status read_some(struct serve_engine *e)
{
    peridot_prompt prompts[SERVE_MAX_SLOTS];
    struct serve_task *of[SERVE_MAX_SLOTS];
    size_t n = 0, n_tokens = 0;
    bool writes = false;
    for (uint32_t i = 0; i < e->n_running; i++) writes = writes || e->running[i]->request;
    size_t most = writes ? e->n_piece : e->chunk;
    for (uint32_t i = 0; i < e->n_running && n_tokens < most; i++) {
        struct serve_task *task = e->running[i];
        if (task->request || (n && of[0]->job != task->job)) continue;
        size_t some = cmd_min(task->n_prompt - task->n_read, most - n_tokens);
        prompts[n] = (peridot_prompt){task->sequence, task->tokens + task->n_read, some};
        of[n++] = task;
        n_tokens += some;
    }
    if (n == 0) return PERIDOT_OK;
    struct serve_rows rows = {.tasks = of, .n = n};
    double begun = cmd_now();
    CMD_TRY(serve_rows_read(&rows, e->cache.session, prompts));
    double fits = PIECE_SECONDS * (double)n_tokens / (cmd_now() - begun);
    e->n_piece = (uint32_t)cmd_max(1, cmd_min((uint64_t)fits, 4 * n_tokens));
    for (size_t i = 0; i < n; i++) {
        struct serve_task *task = of[i];
        uint32_t at = 0;
        task->n_read += prompts[i].n;
        if (task->n_read < task->n_prompt) continue;
        peridot_status status = PERIDOT_OK;
        if (task->n_max && task->job->api != SERVE_EMBEDDINGS) status = begin_reply(e, task);
        if (task->request) continue;
        while (e->running[at] != task) at++;
        take_end(e, at, status);
    }
    return PERIDOT_OK;
}

static peridot_status run_round(struct serve_engine *e)
{
    size_t unused;
    serve_cache_make_room(&e->cache, 64 * ((uint64_t)e->n_running + 2) + e->chunk);
    CMD_TRY(peridot_session_run(e->cache.session, &unused));
    for (uint32_t i = 0; i < e->n_running;) {
        struct serve_task *task = e->running[i];
        peridot_status status;
        if (!task->request || !peridot_request_done(task->request, &status, NULL)) i++;
        else if (status == PERIDOT_ERROR_DEVICE_LOST) return status;
        else take_end(e, i, status);
    }
    return read_some(e);
}

static void show(struct serve_engine *e)
{
    struct serve_metrics *m = &e->server->metrics;
    uint32_t n = 0;
    for (const struct serve_task *task = e->waiting; task; task = task->next) n++;
    serve_gauge(m, SERVE_WAITING, n);
    serve_gauge(m, SERVE_RUNNING, e->n_running);
    serve_gauge(m, SERVE_KEPT, serve_cache_n_kept(&e->cache));
    serve_gauge(m, SERVE_FREE_POSITIONS, e->cache.session ? peridot_session_free_positions(e->cache.session) : 0);
}

/* ---- the model ---- */

static peridot_status create_session(struct serve_engine *e)
{
    const struct serve_args *args = e->server->args;
    const peridot_model_info *info = peridot_model_get_info(e->model);
    uint32_t ctx = (uint32_t)cmd_min(info->ctx_max, args->ctx ? args->ctx : DEFAULT_CTX);
    uint64_t total = args->ctx ? args->ctx : cmd_min((uint64_t)ctx * args->n_parallel, DEFAULT_POSITIONS);
    peridot_session_params params = {.size = sizeof params, .kv_type = (peridot_kv_type)args->kv,
        .n_sequences = (uint32_t)cmd_min(2 * args->n_parallel, SERVE_MAX_SLOTS),
        .n_draft = cmd_draft_tokens(&args->draft)};
    peridot_status status;
    do {
        params.ctx = (uint32_t)cmd_min(ctx, total);
        params.n_positions = (uint32_t)total;
        status = peridot_session_create(&e->cache.session, e->model, &params);
        total /= 2;
    } while (status == PERIDOT_ERROR_MEMORY && !args->ctx && total >= 512);
    CMD_TRY(status);
    CMD_TRY(cmd_draft_open(&e->draft, &args->draft, &args->model, e->model, &params));
    e->cache.n_slots = params.n_sequences;
    e->chunk = peridot_session_chunk(e->cache.session);
    e->n_piece = 16;
    e->server->ctx = params.ctx;
    e->server->n_positions = params.n_positions;
    e->server->d_model = info->d_model;
    e->server->is_cpu = info->device->type == PERIDOT_DEVICE_CPU;
    serve_gauge(&e->server->metrics, SERVE_POSITIONS, params.n_positions);
    return PERIDOT_OK;
}

static void close_model(struct serve_engine *e)
{
    serve_cache_forget(&e->cache);
    cmd_draft_close(&e->draft);
    peridot_session_free(e->cache.session);
    peridot_model_close(e->model);
    e->cache.session = NULL;
    e->model = NULL;
}

static void set_vocab(struct serve_engine *e, const peridot_vocab *vocab)
{
    pthread_mutex_lock(&e->lock);
    peridot_vocab_close(e->vocab);
    e->vocab = peridot_vocab_ref(vocab);
    pthread_mutex_unlock(&e->lock);
}

static peridot_status open_model(struct serve_engine *e)
{
    peridot_status status = cmd_model_open(&e->model, &e->server->args->model);
    if (status == PERIDOT_OK && !peridot_model_vocab(e->model)) status = PERIDOT_ERROR_UNSUPPORTED;
    if (status == PERIDOT_OK) status = cmd_model_tune_once(e->model);
    if (status == PERIDOT_OK) status = create_session(e);
    if (status == PERIDOT_OK) set_vocab(e, peridot_model_vocab(e->model));
    else close_model(e);
    return status;
}

/* The device is lost: the model is opened again, and what was at work goes on from its tokens. Where that fails, those
 * who wait are told. */
static void recover(struct serve_engine *e)
{
    e->server->ready = false;
    serve_count(&e->server->metrics, SERVE_LOST_DEVICES, 1);
    fprintf(stderr, "peridot: %s; reopening the model\n", peridot_last_error());
    for (uint32_t i = e->n_running; i > 0; i--) put_back(e, leave(e, i - 1));
    close_model(e);
    e->step_begun_s = 0;       /* loading may take long */
    peridot_status status = open_model(e);
    if (status == PERIDOT_OK) {
        e->server->ready = true;
        return;
    }
    fprintf(stderr, "peridot: %s\n", peridot_last_error());
    while (e->waiting) {
        struct serve_task *task = e->waiting;
        e->waiting = task->next;
        serve_refuse(&task->job->error, 503, NULL, NULL, "the device was lost, and the model cannot be reopened");
        end_task(e, task);
    }
}

/* ---- the thread ---- */

/* Takes in what was added, and waits where there is nothing to do. False: it is over. */
static bool take_in(struct serve_engine *e)
{
    struct timespec until;
    struct serve_task **end = &e->waiting;
    pthread_mutex_lock(&e->lock);
    bool idle = !e->added && !e->waiting && e->n_running == 0;
    if (idle && !e->stop && !e->model) {   /* it is opened again every now and then */
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 2;
        pthread_cond_timedwait(&e->changed, &e->lock, &until);
    }
    while (!e->added && idle && !e->stop && e->model) pthread_cond_wait(&e->changed, &e->lock);
    while (*end) end = &(*end)->next;
    *end = e->added;
    e->added = NULL;
    e->last_added = &e->added;
    bool go_on = !e->stop;
    pthread_mutex_unlock(&e->lock);
    return go_on;
}

static void fail_all(struct serve_engine *e, peridot_status status)
{
    while (e->n_running) fail_task(e, leave(e, e->n_running - 1), status);
}

/* Another rank has failed: those at work are told, and the server ends. */
static void give_up(struct serve_engine *e)
{
    struct serve_server *s = e->server;
    if (s->failed) return;
    s->draining = true;
    snprintf(s->failure, sizeof s->failure, "%s", peridot_last_error());
    s->failed = true;
}

static void *run(void *user)
{
    struct serve_engine *e = user;
    while (take_in(e)) {
        e->step_begun_s = cmd_now();
        sweep(e);
        if (!e->model) {
            recover(e);
            e->step_begun_s = 0;
            continue;
        }
        begin_some(e);
        peridot_status status = e->n_running ? run_round(e) : PERIDOT_OK;
        if (status == PERIDOT_ERROR_LINK) give_up(e);
        if (status == PERIDOT_ERROR_DEVICE_LOST) recover(e);
        else if (status != PERIDOT_OK && status != PERIDOT_CANCELLED) fail_all(e, status);
        show(e);
        e->step_begun_s = 0;
    }
    while (e->n_running) put_back(e, leave(e, e->n_running - 1));
    while (e->waiting) {
        struct serve_task *task = e->waiting;
        e->waiting = task->next;
        serve_refuse(&task->job->error, 503, NULL, NULL, "the server is shutting down");
        end_task(e, task);
    }
    return NULL;
}

/* A base model has no conversations. */
static peridot_status choose_template(struct serve_server *s, const peridot_model *model)
{
    if (peridot_model_get_info(model)->head != PERIDOT_HEAD_LANGUAGE) return PERIDOT_OK;
    return cmd_template_choose(&s->template_name, model, &s->args->model, s->args->template_name, "plain");
}

peridot_status serve_engine_create(struct serve_engine **out, struct serve_server *server)
{
    struct serve_engine *e = calloc(1, sizeof *e);
    *out = NULL;
    if (!e) return cmd_fail_alloc(sizeof *e, "engine");
    e->server = server;
    e->last_added = &e->added;
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->changed, NULL);
    peridot_status status = open_model(e);
    if (status == PERIDOT_OK) status = choose_template(server, e->model);
    if (status == PERIDOT_OK && pthread_create(&e->thread, NULL, run, e) != 0)
        status = cmd_fail(PERIDOT_ERROR_MEMORY, "a thread cannot be created");
    if (status == PERIDOT_OK) {
        *out = e;
        return status;
    }
    close_model(e);
    peridot_vocab_close(e->vocab);
    free(e);
    return status;
}

void serve_engine_stop(struct serve_engine *e)
{
    pthread_mutex_lock(&e->lock);
    e->stop = true;
    pthread_cond_signal(&e->changed);
    pthread_mutex_unlock(&e->lock);
}

void serve_engine_free(struct serve_engine *e)
{
    if (!e) return;
    serve_engine_stop(e);
    pthread_join(e->thread, NULL);
    close_model(e);
    peridot_vocab_close(e->vocab);
    free(e);
}

void serve_engine_add(struct serve_engine *e, struct serve_job *job)
{
    pthread_mutex_lock(&e->lock);
    bool stopped = e->stop;
    for (size_t i = 0; i < job->n_tasks && !stopped; i++) {
        *e->last_added = &job->tasks[i];
        e->last_added = &job->tasks[i].next;
    }
    pthread_cond_signal(&e->changed);
    pthread_mutex_unlock(&e->lock);
    if (!stopped) return;
    serve_refuse(&job->error, 503, NULL, NULL, "the server is shutting down");
    serve_job_fail(job);
    e->server->n_jobs--;
    serve_job_drop(job);
}

double serve_engine_step_s(const struct serve_engine *e)
{
    double begun = e->step_begun_s;
    return begun > 0 ? cmd_now() - begun : 0;
}

peridot_vocab *serve_engine_vocab(struct serve_engine *e)
{
    pthread_mutex_lock(&e->lock);
    peridot_vocab *vocab = peridot_vocab_ref(e->vocab);
    pthread_mutex_unlock(&e->lock);
    return vocab;
}
