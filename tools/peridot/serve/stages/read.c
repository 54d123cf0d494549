/* The reader: threads that make tasks of bodies, so that neither connections nor the device wait for JSON and
 * tokenizing. Bodies go by turns (serve_fair), and long ones leave threads to others. It answers what needs no device,
 * and hands pictures and schemas to threads of their own. */
#include "../../base/base.h"
#include "../job/job.h"
#include "../pictures/pictures.h"
#include "../wire/wire.h"
#include "stages.h"
#include "stages_.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A long body takes its time, where its client means it badly a second or more: long ones leave threads to others. */
enum { N_THREADS = 4, MOST_LONG = 2, LONG = 64 << 10 };

struct serve_reader {
    struct serve_server *server;
    struct serve_grammars *grammars;
    struct serve_pictures *pictures;
    struct serve_workers workers;   /* their lock is of what follows */
    struct serve_queue queue;
    unsigned n_long;           /* long bodies at work */
};

/* ---- a job ---- */

static void set_defaults(struct serve_job *job)
{
    const char *prefix = job->api->id_prefix;
    uint64_t random;
    pd_random_bytes(&random, sizeof random);
    snprintf(job->id, sizeof job->id, "%s%016" PRIx64, prefix ? prefix : "", random);
    job->asks.n = 1;
    job->asks.stream = job->api->streams;
    job->asks.truncates = job->api->truncates;
    job->asks.think = job->server->args->think;
    job->asks.stores = true;
}

/* An adapter of the first model is as good as a model; that answers, without any, where the name is that of none. */
static void choose_model(struct serve_job *job)
{
    yyjson_val *root = yyjson_doc_get_root(job->asks.document), *name = yyjson_obj_get(root, "model");
    if (!name && job->api->id == SERVE_SHOW) name = yyjson_obj_get(root, "name");
    const char *text = yyjson_is_str(name) ? yyjson_get_str(name) : "";
    const struct serve_model *m = serve_models_get(job->server, text);
    const peridot_adapter *adapter = m ? NULL : serve_models_get_adapter(job->server, text);
    if (m) job->model = m;
    if (!adapter) return;
    job->asks.adapter = adapter->name;
    job->asks.adapters[job->asks.n_adapters++] = *adapter;
}

/* /completions is llama.cpp's own where it is asked for by that server's name of the length, and OpenAI's else, whose
 * clients are often given a base URL without its /v1. */
static void choose_interface(struct serve_job *job)
{
    yyjson_val *root = yyjson_doc_get_root(job->asks.document);
    if (job->body.bare && job->api->id == SERVE_COMPLETIONS && yyjson_obj_get(root, "n_predict")
        && !yyjson_obj_get(root, "max_tokens"))
        job->api = serve_interface_get(SERVE_COMPLETION);
}

static bool parse(struct serve_job *job)
{
    yyjson_read_err error;
    if (job->asks.document) return true;
    char *text = job->body.text.data ? job->body.text.data : (char *)"";
    job->asks.document = yyjson_read_opts(text, job->body.text.size, 0, NULL, &error);
    if (!job->asks.document)
        return serve_refuse(&job->error, 400, "invalid_json", NULL, "the body is not JSON: %s at byte %zu", error.msg,
                            error.pos);
    choose_interface(job);
    set_defaults(job);
    choose_model(job);
    return serve_stored_continue(job);
}

bool serve_read_body(struct pd_buffer *out, struct serve_job *job, const peridot_vocab *vocab)
{
    if (!parse(job)) return false;
    yyjson_val *root = yyjson_doc_get_root(job->asks.document);
    uint64_t random;
    pd_random_bytes(&random, sizeof random);
    job->asks.sampling = job->model->sampling;
    job->asks.sampling.size = sizeof job->asks.sampling;
    job->asks.sampling.seed = random & UINT32_MAX;
    if (!serve_params_read(job, root)) return false;
    bool needs_head = serve_kind_writes(job->kind) || job->kind == SERVE_SCORES;
    if (needs_head && job->model->only_embeds)
        return serve_refuse(&job->error, 400, "unsupported_parameter", "model",
                            "%s is an embedding model: it writes no text, and has /v1/embeddings",
                            job->model->id);
    return job->api->read(out, job, vocab, root);
}

/* A stream that has begun can have no status of an error any more: where there may be too many jobs, the engine begins
 * it. */
void serve_reader_pass_on(struct serve_job *job)
{
    const struct serve_server *s = job->server;
    bool few = s->n_jobs <= s->args->n_parallel + s->args->n_queue;
    if (!job->error.status && few) serve_write_begin(job);
    serve_job_to(job, job->error.status ? SERVE_DONE : SERVE_QUEUED);
}

/* Others are read as fast as it is looked up whether they are awaited. */
static bool is_worth_it(struct serve_job *job) { return !job->body.is_long || serve_job_is_awaited(job); }

void serve_reader_read(struct serve_job *job)
{
    serve_log_prompt(job);
    bool good = is_worth_it(job) && parse(job) && serve_job_find_pictures(job);
    pd_buffer_free(&job->body.text);
    if (!good) serve_job_to(job, SERVE_DONE);
    else if (!serve_engine_set_vocab(job)) serve_job_to(job, SERVE_LOADING);
    else serve_job_to(job, job->pictures.n ? SERVE_PICTURES : SERVE_ENCODING);
}

void serve_reader_go_on(struct serve_job *job)
{
    if (!is_worth_it(job)) serve_job_to(job, SERVE_DONE);
    else serve_job_to(job, serve_engine_set_vocab(job) ? SERVE_ENCODING : SERVE_LOADING);
}

void serve_reader_encode(struct serve_job *job)
{
    struct pd_buffer out = {0};
    bool good = serve_read_body(&out, job, job->work.vocab);
    bool whole = good && out.size;   /* no device is needed for it */
    if (whole) serve_job_answer(job, &out);
    pd_buffer_free(&out);
    if (!good || whole) serve_job_to(job, SERVE_DONE);
    else if (serve_grammars_find(job)) serve_reader_pass_on(job);
    else serve_job_to(job, SERVE_TRYING);
}

/* ---- the threads ---- */

static uint64_t read_cost_of(const struct serve_job *job, const void *user)
{
    const struct serve_reader *r = user;
    return job->body.is_long && r->n_long == MOST_LONG ? SERVE_FAIR_NEVER : job->body.size;
}

static bool take_one(void *user)
{
    struct serve_reader *r = user;
    struct serve_job *job = serve_queue_next(&r->queue, read_cost_of, r);
    if (!job) return false;
    bool took_long = job->body.is_long;   /* the job may be gone later */
    r->n_long += took_long;
    pthread_mutex_unlock(&r->workers.lock);
    serve_job_step(job);
    pthread_mutex_lock(&r->workers.lock);
    r->n_long -= took_long;
    if (took_long) pthread_cond_signal(&r->workers.changed);
    return true;
}

peridot_status serve_reader_create(struct serve_reader **out, struct serve_server *server)
{
    struct serve_reader *r = calloc(1, sizeof *r);
    *out = NULL;
    if (!r) return pd_fail_alloc(sizeof *r, "reader");
    r->server = server;
    serve_queue_init(&r->queue, &r->workers.lock, &r->workers.changed);
    peridot_status status = serve_grammars_create(&r->grammars, server);
    if (status == PERIDOT_OK) status = serve_pictures_create(&r->pictures, server);
    if (status == PERIDOT_OK) status = serve_workers_start(&r->workers, N_THREADS, SERVE_READER, take_one, r);
    if (status == PERIDOT_OK) {
        *out = r;
        return status;
    }
    serve_pictures_free(r->pictures);
    serve_grammars_free(r->grammars);
    free(r);
    return status;
}

void serve_reader_free(struct serve_reader *r)
{
    if (!r) return;
    serve_workers_stop(&r->workers);
    serve_queue_close(&r->queue);
    serve_grammars_free(r->grammars);
    serve_pictures_free(r->pictures);
    serve_workers_free(&r->workers);
    free(r);
}

struct serve_queue *serve_reader_queue(const struct serve_job *job) { return &job->server->reader->queue; }

bool serve_reader_add(struct serve_reader *r, struct serve_job *job)
{
    const struct serve_args *args = r->server->args;
    job->body.size = job->body.text.size;
    bool is_long = job->body.size > LONG;   /* others are read first, and the engine refuses those that are too many */
    if (is_long && r->server->n_long >= args->n_parallel + args->n_queue) return false;
    job->body.is_long = is_long;
    r->server->n_long += is_long;
    serve_job_to(job, SERVE_READING);
    return true;
}

/* ---- interfaces ---- */

const struct serve_interface *serve_interface_get(enum serve_api id)
{
    static const struct serve_interface *const all[SERVE_N_APIS] = {
#define ROW(ID, name) [SERVE_##ID] = &serve_wire_##name,
        SERVE_INTERFACES(ROW)
#undef ROW
    };
    return all[id];
}
