/* The engine: one thread that owns the model and its session, submits the tasks as requests, by turns of their clients
 * (serve_admission_next), and runs the session. Who shares a prefix and who makes room in the cache is the session's
 * business. When the device is lost, the model is opened again and all tasks are submitted anew, with what they have
 * written. A model is opened when its first job comes, and closed after --idle, or when another needs the memory. */
#define _POSIX_C_SOURCE 200809L
#include "stages.h"
#include "stages_.h"
#include "../job/job.h"
#include "../pictures/pictures.h"
#include "../../base/base.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_POSITIONS = 16384, DEFAULT_CTX = 8192, MAX_SEQUENCES = 64,
    WHOLE_CTX = 2048 };   /* where a text is one chunk, whose activations take memory */
#define RETRY_SECONDS 2        /* between attempts to open a lost model again */
#define LOOK_SECONDS 0.05      /* between looks whether connections of those that wait are still there */

struct serve_engine {
    struct serve_server *server;
    struct serve_model *served;    /* what is said of the model */
    pthread_t thread;
    /* shared, under the lock */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct serve_queue queued;     /* jobs with tasks, that came lately, */
    struct serve_queue unread;     /* and those that wait for the vocabulary, or for the model */
    bool busy;                     /* there are tasks or unread jobs, or soon were */
    bool unload;                   /* the model is to be closed, if the engine is not busy */
    bool stop;
    double idle_begun_s;
    peridot_vocab *vocab;          /* of the last model; NULL: there was none yet */
    _Atomic double step_begun_s;   /* 0: none is at work */
    /* the thread's */
    peridot_model *model;
    struct cmd_draft draft;
    peridot_session *session;
    struct serve_task *tasks;      /* in the order in which they came */
    struct serve_admission admission;
    bool lost;                     /* the device was, and the model is not open again */
    bool runs;                     /* the thread was created */
    uint64_t n_preempted;          /* by the session, of those that were counted */
    double gauges[SERVE_N_GAUGES]; /* its part of them */
    double looked_s;
};

/* ---- the end of tasks ---- */

static void end_task(struct serve_task *task)
{
    struct serve_job *job = task->job;
    serve_request_end(task);
    if (!job->error.status && !job->closed) serve_write_task_end(task);
    if (++job->work.n_ended < job->work.n_tasks) return;
    if (!job->error.status && !job->closed) serve_write_end(job);
    else if (!job->error.status) serve_job_write(job, NULL, true);
    serve_job_to(job, SERVE_DONE);
}

static void fail_task(struct serve_task *task, peridot_status status)
{
    serve_refuse_status(&task->job->error, status);
    end_task(task);
}

static void refuse_all(struct serve_engine *e, int status, const char *why)
{
    while (e->tasks) {
        struct serve_task *task = e->tasks;
        e->tasks = task->next;
        serve_refuse(&task->job->error, status, NULL, NULL, "%s", why);
        end_task(task);
    }
}

/* ---- a round ---- */

static void submit_some(struct serve_engine *e)
{
    struct serve_task *task;
    while ((task = serve_admission_next(&e->admission, e->tasks)) != NULL) {
        peridot_status status = serve_request_submit(task, e->session, &e->draft);
        if (status == PERIDOT_OK && task->job->stage == SERVE_QUEUED) serve_job_to(task->job, SERVE_AT_WORK);
        if (status == PERIDOT_OK) continue;
        struct serve_task **at = &e->tasks;
        while (*at != task) at = &(*at)->next;
        *at = task->next;
        fail_task(task, status);
    }
}

/* Tasks whose answer nobody waits for, or cannot be given any more, end, and those that are to stop: that write, at
 * once. */
static void sweep(struct serve_engine *e)
{
    double now = pd_now();
    bool look = now - e->looked_s > LOOK_SECONDS;
    if (look) e->looked_s = now;
    for (struct serve_task **at = &e->tasks; *at;) {
        struct serve_task *task = *at;
        bool gone = (look || task->counted) && serve_job_is_gone(task->job);
        if (task->job->stopped) task->finish = SERVE_FINISH_STOP;
        if (gone || task->job->stopped || task->job->closed || task->job->error.status) {
            *at = task->next;
            end_task(task);
        } else at = &task->next;
    }
}

/* The request of a task that was taken out has ended. */
static void take_end(struct serve_engine *e, struct serve_task *task, peridot_status status)
{
    bool called = task->n_calls && task->calls[task->n_calls - 1].complete;
    task->stop = serve_request_find_stop(task);
    bool full = task->limited || (task->n_reply == task->n_max && !called && !task->stop);
    task->finish = full ? SERVE_FINISH_LENGTH : called ? SERVE_FINISH_CALLS : SERVE_FINISH_STOP;
    if (status == PERIDOT_OK && task->job->kind == SERVE_VECTORS && !serve_finish_vector(task, e->model))
        status = PERIDOT_ERROR_MEMORY;
    if (status == PERIDOT_OK) end_task(task);
    else fail_task(task, status);
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

/* False: the device was lost. */
static bool run_round(struct serve_engine *e)
{
    size_t unused;
    peridot_status status = peridot_session_run(e->session, &unused);
    bool lost = status == PERIDOT_ERROR_DEVICE_LOST;
    if (status == PERIDOT_ERROR_LINK) give_up(e);
    for (struct serve_task **at = &e->tasks; *at;) {
        struct serve_task *task = *at;
        bool done = task->request && peridot_request_done(task->request, &status, NULL);
        lost = lost || (done && status == PERIDOT_ERROR_DEVICE_LOST);
        if (!done || status == PERIDOT_ERROR_DEVICE_LOST) {
            at = &task->next;
            continue;
        }
        *at = task->next;
        take_end(e, task, status);
    }
    return !lost;
}

static void set_gauge(struct serve_engine *e, enum serve_gauge gauge, double value)
{
    serve_gauge_add(&e->server->metrics, gauge, value - e->gauges[gauge]);
    e->gauges[gauge] = value;
}

static void engine_show(struct serve_engine *e)
{
    peridot_session_state state = {.size = sizeof state};
    uint32_t n = 0;
    for (const struct serve_task *task = e->tasks; task; task = task->next) n++;
    if (e->session) peridot_session_get_state(e->session, &state);
    set_gauge(e, SERVE_WAITING, n - state.n_running);
    set_gauge(e, SERVE_RUNNING, state.n_running);
    set_gauge(e, SERVE_KEPT, state.n_kept);
    set_gauge(e, SERVE_FREE_POSITIONS, e->session ? peridot_session_free_positions(e->session) : 0);
    set_gauge(e, SERVE_POSITIONS, e->session ? e->served->n_positions : 0);
    serve_count(&e->server->metrics, SERVE_PREEMPTIONS, state.n_preempted - e->n_preempted);
    e->n_preempted = state.n_preempted;
}

/* Unloads the model that has had nothing to do for the longest time; false: there is none but `wants`. */
static bool make_room(struct serve_server *s, const struct serve_model *wants)
{
    struct serve_model *idle = NULL;
    double longest = -1;
    for (struct serve_model *m = s->models; m < s->models + s->n_models; m++) {
        double seconds = m == wants || !m->loaded ? -1 : serve_engine_idle_s(m->engine);
        if (seconds <= longest) continue;
        idle = m;
        longest = seconds;
    }
    return idle && serve_engine_unload(idle->engine);
}

/* ---- the model ---- */

static peridot_status create_session(struct serve_engine *e)
{
    const struct serve_args *args = e->server->args;
    const peridot_model_info *info = peridot_model_get_info(e->model);
    uint32_t usual = info->whole_texts ? WHOLE_CTX : DEFAULT_CTX;
    uint32_t ctx = (uint32_t)pd_min(info->ctx_max, args->ctx ? args->ctx : usual);
    uint64_t total = args->ctx ? args->ctx : pd_min((uint64_t)ctx * args->n_parallel, DEFAULT_POSITIONS);
    peridot_session_params params = {.size = sizeof params, .kv_type = (peridot_kv_type)args->kv,
        .n_sequences = (uint32_t)pd_min(2 * args->n_parallel, MAX_SEQUENCES), .n_parallel = args->n_parallel};
    peridot_status status;
    const struct cmd_model_args model = serve_model_args(e->server, e->served);
    PD_TRY(cmd_draft_open(&e->draft, &args->draft, &model, e->model));
    do {
        params.ctx = (uint32_t)pd_min(ctx, total);
        params.n_positions = (uint32_t)total;
        status = cmd_draft_create_target(&e->session, &e->draft, e->model, &params);
        if (status == PERIDOT_ERROR_MEMORY && make_room(e->server, e->served)) continue;
        if (status == PERIDOT_ERROR_MEMORY && info->states_size && params.n_sequences > 1) {
            params.n_sequences /= 2;   /* each of them takes much of it: others wait */
            continue;
        }
        total /= 2;
        if (args->ctx || total < 512) break;
    } while (status == PERIDOT_ERROR_MEMORY);
    if (status == PERIDOT_OK && params.n_sequences < args->n_parallel)
        fprintf(stderr, "peridot: %s: memory is short: at most %" PRIu32 " text%s at the same time\n", e->served->id,
                params.n_sequences, params.n_sequences == 1 ? "" : "s");
    PD_TRY(status);
    PD_TRY(cmd_draft_create_session(&e->draft, &params));
    e->served->drafts = params.n_draft != 0;
    e->served->ctx = params.ctx;
    e->served->n_positions = params.n_positions;
    return PERIDOT_OK;
}

/* No request may be left. */
static void close_model(struct serve_engine *e)
{
    e->served->loaded = false;
    serve_images_close(e->served->images);
    peridot_session_free(e->session);
    cmd_draft_close(&e->draft);
    peridot_model_close(e->model);
    e->session = NULL;
    e->model = NULL;
    e->n_preempted = 0;
}

static void set_vocab(struct serve_engine *e, const peridot_vocab *vocab)
{
    pthread_mutex_lock(&e->lock);
    peridot_vocab_close(e->vocab);
    e->vocab = peridot_vocab_ref(vocab);
    pthread_mutex_unlock(&e->lock);
}

/* One model at a time is opened, as they may be tuned then. Where memory is short the others make room. */
static peridot_status open_model(struct serve_engine *e)
{
    const struct cmd_model_args args = serve_model_args(e->server, e->served);
    peridot_status status = PERIDOT_OK;
    const double begun = pd_now();
    pthread_mutex_lock(&e->server->loading);
    if (!e->vocab) status = cmd_model_need_head(&args, CMD_HEAD_LANGUAGE | CMD_HEAD_NONE | CMD_HEAD_RERANKER, "serve");
    if (status == PERIDOT_OK) do status = cmd_model_open(&e->model, &args);
    while (status == PERIDOT_ERROR_MEMORY && make_room(e->server, e->served));
    if (status == PERIDOT_OK && !peridot_model_vocab(e->model)) status = PERIDOT_ERROR_UNSUPPORTED;
    if (status == PERIDOT_OK) status = cmd_model_tune_once(e->model);
    if (status == PERIDOT_OK) status = create_session(e);
    if (status == PERIDOT_OK && !e->vocab) status = serve_facts_read(e->server, e->served, e->model);
    if (status != PERIDOT_OK && !e->vocab) serve_facts_free(e->served);
    if (status == PERIDOT_OK) {
        set_vocab(e, peridot_model_vocab(e->model));
        serve_images_open(e->served->images, e->model);
    } else close_model(e);
    e->served->loaded = status == PERIDOT_OK;
    pthread_mutex_unlock(&e->server->loading);
    if (status == PERIDOT_OK) serve_log_model(e->server, "loaded", e->served->id, pd_now() - begun);
    engine_show(e);
    return status;
}

/* Jobs whose bodies are not read yet go on; `why` not NULL: they are refused. */
static void pass_unread(struct serve_engine *e, int status, const char *why)
{
    pthread_mutex_lock(&e->lock);
    struct serve_job *job = serve_queue_take_all(&e->unread);
    pthread_mutex_unlock(&e->lock);
    for (struct serve_job *next; job; job = next) {
        next = job->next;
        if (why) serve_refuse(&job->error, status, NULL, NULL, "%s", why);
        serve_job_step(job);
    }
}

void serve_engine_pass(struct serve_job *job)
{
    bool needs_pictures = job->pictures.n_read < job->pictures.n;
    serve_job_to(job, job->error.status ? SERVE_DONE : needs_pictures ? SERVE_PICTURES : SERVE_RETURNED);
}

/* The device is lost: the model is opened again, and what was at work goes on from its tokens. Where that fails, those
 * who wait are told. */
static void recover(struct serve_engine *e)
{
    bool only = e->server->n_models == 1;
    e->lost = true;
    if (only) e->server->ready = false;
    serve_count(&e->server->metrics, SERVE_LOST_DEVICES, 1);
    fprintf(stderr, "peridot: %s; reopening the model\n", peridot_last_error());
    for (struct serve_task *task = e->tasks; task; task = task->next) serve_request_end(task);
    close_model(e);
    e->step_begun_s = 0;       /* loading may take long */
    peridot_status status = open_model(e);
    e->lost = status != PERIDOT_OK;
    if (!e->lost) {
        if (only) e->server->ready = true;
        return;
    }
    fprintf(stderr, "peridot: %s\n", peridot_last_error());
    refuse_all(e, 503, "the device was lost, and the model cannot be reopened");
    pass_unread(e, 503, "the device was lost, and the model cannot be reopened");
}

/* Bytes of the folder that a path in a sentence begins with: `known`, which may have spaces, or an absolute one. */
static size_t folder_size(const char *text, const char *known, size_t n_known)
{
    size_t n = strcspn(text, " :'\")");
    if (n_known && strncmp(text, known, n_known) == 0) return n_known;
    if (text[0] != '/') return 0;
    while (n > 1 && text[n - 1] == '/') n--;
    while (text[n - 1] != '/') n--;
    return n;
}

/* Folders of this machine are no client's business: of "/srv/models/a.gguf: ..." "a.gguf: ..." is left. */
static void drop_folders(char *text, const char *path)
{
    size_t n_known = path ? strlen(path) : 0;
    while (n_known && path[n_known - 1] == '/') n_known--;
    while (n_known && path[n_known - 1] != '/') n_known--;
    for (char *at = text; *at; at++) {
        bool begins = at == text || strchr(" '\"(", at[-1]);
        size_t n = begins ? folder_size(at, path, n_known) : 0;
        if (n) memmove(at, at + n, strlen(at + n) + 1);
        if (!*at) return;
    }
}

/* A failure is told to all who wait; those who come later have it tried again. That helps where memory was short; a
 * file that is none of a model stays so. */
static void engine_load(struct serve_engine *e)
{
    char why[512];
    e->step_begun_s = 0;
    serve_log_model(e->server, "loading", e->served->id, 0);
    peridot_status status = open_model(e);
    if (status == PERIDOT_OK) {
        pass_unread(e, 0, NULL);
        return;
    }
    fprintf(stderr, "peridot: %s\n", peridot_last_error());
    bool passes = status == PERIDOT_ERROR_MEMORY || status == PERIDOT_ERROR_DEVICE_LOST || status == PERIDOT_ERROR_LINK;
    snprintf(why, sizeof why, "%s%s%s%s", passes ? "" : "the model ", passes ? "" : cmd_shown(e->served->id),
             passes ? "" : " cannot be opened, and trying again does not help: ", peridot_last_error());
    drop_folders(why, e->served->path);
    refuse_all(e, passes ? 503 : 500, why);
    pass_unread(e, passes ? 503 : 500, why);
}

static void unload(struct serve_engine *e)
{
    close_model(e);
    engine_show(e);
    serve_log_model(e->server, "unloaded", e->served->id, 0);
}

/* ---- the thread ---- */

/* Under the lock, with nothing to do: until there is, or the time for that is up. A lost model is opened again every
 * now and then, one that is idle is closed. */
static void wait_for_work(struct serve_engine *e)
{
    struct timespec until;
    uint32_t seconds = e->lost ? RETRY_SECONDS : e->model ? e->server->args->idle_s : 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds;
    e->idle_begun_s = pd_now();
    e->busy = false;
    while (!e->queued.first && !e->unread.first && !e->unload && !e->stop) {
        if (!seconds) pthread_cond_wait(&e->changed, &e->lock);
        else if (pthread_cond_timedwait(&e->changed, &e->lock, &until) == ETIMEDOUT) {
            e->unload = !e->lost;
            break;
        }
    }
    e->busy = e->queued.first || e->unread.first;
}

/* Behind the others, as admission goes by the order in which they came. */
static void add_tasks(struct serve_engine *e, struct serve_job *job)
{
    struct serve_task **end = &e->tasks;
    while (*end) end = &(*end)->next;
    for (struct serve_job *next; job; job = next) {
        next = job->next;
        for (size_t i = 0; i < job->work.n_tasks; i++, end = &(*end)->next) *end = &job->work.tasks[i];
    }
}

/* Takes in what was added, and waits where there is nothing to do. False: it is over. */
static bool take_in(struct serve_engine *e)
{
    pthread_mutex_lock(&e->lock);
    if (!e->tasks) wait_for_work(e);
    add_tasks(e, serve_queue_take_all(&e->queued));
    bool go_on = !e->stop;
    pthread_mutex_unlock(&e->lock);
    return go_on;
}

/* It is asked for, and not needed; or it is too late for that. */
static void take_unload(struct serve_engine *e)
{
    pthread_mutex_lock(&e->lock);
    bool asked = e->unload, busy = e->busy;
    pthread_mutex_unlock(&e->lock);
    if (!asked) return;
    if (!busy && e->model && !serve_images_used(e->served->images)) unload(e);
    pthread_mutex_lock(&e->lock);
    e->unload = false;
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->lock);
}

/* Those that were not refused have a place. */
static void admit(struct serve_engine *e)
{
    const struct serve_args *args = e->server->args;
    serve_admission_limit(e->tasks, args->n_parallel + args->n_queue);
    for (const struct serve_task *task = e->tasks; task; task = task->next)
        if (!task->job->error.status) serve_write_begin(task->job);
}

static void engine_work(struct serve_engine *e)
{
    admit(e);
    sweep(e);
    if (e->lost) {
        recover(e);
        return;
    }
    if (!e->model && e->busy) engine_load(e);
    if (!e->model) return;
    pass_unread(e, 0, NULL);
    submit_some(e);
    if (e->tasks && !run_round(e)) recover(e);
    engine_show(e);
}

static void *engine_run(void *user)
{
    struct serve_engine *e = user;
    serve_act_as(SERVE_ENGINE);
    while (take_in(e)) {
        take_unload(e);
        e->step_begun_s = pd_now();
        engine_work(e);
        e->step_begun_s = 0;
    }
    take_unload(e);
    refuse_all(e, 503, "the server is shutting down");
    serve_queue_close(&e->queued);
    serve_queue_close(&e->unread);
    return NULL;
}

peridot_status serve_engine_create(struct serve_engine **out, struct serve_server *server,
                                   struct serve_model *served)
{
    struct serve_engine *e = calloc(1, sizeof *e);
    *out = NULL;
    if (!e) return pd_fail_alloc(sizeof *e, "engine");
    e->server = server;
    e->served = served;
    e->admission.n_parallel = server->args->n_parallel;
    serve_queue_init(&e->queued, &e->lock, &e->changed);
    serve_queue_init(&e->unread, &e->lock, &e->changed);
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->changed, NULL);
    peridot_status status = serve_images_create(&served->images);
    if (status == PERIDOT_OK && served == server->models) status = open_model(e);
    e->runs = status == PERIDOT_OK && pthread_create(&e->thread, NULL, engine_run, e) == 0;
    if (status == PERIDOT_OK && !e->runs) status = pd_fail(PERIDOT_ERROR_MEMORY, "a thread cannot be created");
    if (status == PERIDOT_OK) *out = e;
    else serve_engine_free(e);
    return status;
}

void serve_engine_stop(struct serve_engine *e)
{
    pthread_mutex_lock(&e->lock);
    e->stop = e->queued.closed = e->unread.closed = true;
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->lock);
}

void serve_engine_join(struct serve_engine *e)
{
    if (!e || !e->runs) return;
    serve_engine_stop(e);
    pthread_join(e->thread, NULL);
    e->runs = false;
}

void serve_engine_free(struct serve_engine *e)
{
    if (!e) return;
    serve_engine_join(e);
    close_model(e);
    serve_facts_free(e->served);
    serve_images_free(e->served->images);
    peridot_vocab_close(e->vocab);
    free(e);
}

struct serve_queue *serve_engine_queue(const struct serve_job *job) { return &job->model->engine->queued; }

struct serve_queue *serve_engine_unread(const struct serve_job *job) { return &job->model->engine->unread; }

double serve_engine_step_s(const struct serve_engine *e)
{
    double begun = e->step_begun_s;
    return begun > 0 ? pd_now() - begun : 0;
}

bool serve_engine_set_vocab(struct serve_job *job)
{
    struct serve_engine *e = job->model->engine;
    pthread_mutex_lock(&e->lock);
    bool ready = e->vocab && (!job->pictures.n || e->served->loaded);
    if (ready && !job->work.vocab) job->work.vocab = peridot_vocab_ref(e->vocab);
    pthread_mutex_unlock(&e->lock);
    return ready;
}

double serve_engine_idle_s(struct serve_engine *e)
{
    pthread_mutex_lock(&e->lock);
    bool busy = e->busy || e->queued.first || e->stop || !e->served->loaded || serve_images_used(e->served->images);
    double seconds = busy ? -1 : pd_now() - e->idle_begun_s;
    pthread_mutex_unlock(&e->lock);
    return seconds;
}

bool serve_engine_unload(struct serve_engine *e)
{
    pthread_mutex_lock(&e->lock);
    e->unload = !e->stop && !e->busy && !e->queued.first && e->served->loaded;   /* it looks at this before it works */
    pthread_cond_broadcast(&e->changed);
    while (e->unload) pthread_cond_wait(&e->changed, &e->lock);
    pthread_mutex_unlock(&e->lock);
    return !e->served->loaded;
}
