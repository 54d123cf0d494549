#include "read.h"
#include "engine.h"
#include "grammars.h"
#include "log.h"
#include "messages.h"
#include "params.h"
#include "tokens.h"
#include "write.h"
#include "../os.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct serve_reader {
    struct serve_server *server;
    struct serve_grammars *grammars;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct serve_job *first, **last;
    bool stop;
};

/* ---- tasks ---- */

static bool refuse_length(struct serve_job *job, size_t n_prompt)
{
    const char *what = job->api == SERVE_CHAT || job->api == SERVE_RESPONSES ? "messages" : "prompt";
    uint32_t ctx = job->server->ctx;
    if (job->drops)
        return serve_refuse(&job->error, 400, "context_length_exceeded", what,
                            "The last message is too long for the context of %" PRIu32 " tokens: with the system "
                            "prompt it has %zu.", ctx, n_prompt);
    return serve_refuse(&job->error, 400, "context_length_exceeded", what,
                        "This model's maximum context length is %" PRIu32 " tokens. However, your %s resulted in "
                        "%zu tokens. Please reduce the length of the %s.", ctx, what, n_prompt, what);
}

/* Tokens of a reply for which no length was given. In a conversation the next message and its reply fit after it. */
static uint64_t default_length(const struct serve_job *job, uint64_t rest)
{
    uint64_t reserve = serve_reserve(job->server->ctx);
    if (job->api == SERVE_COMPLETIONS) return 16;
    return !job->leaves_room ? rest : rest > 3 * reserve ? rest - 2 * reserve : reserve;
}

/* Room for a reply, or the error. */
static bool find_room(uint64_t *n_max, struct serve_job *job, size_t n_ids)
{
    uint64_t ctx = job->server->ctx, rest = n_ids < ctx ? ctx - n_ids : 0;
    *n_max = cmd_min(rest, job->max_given ? job->n_max : default_length(job, rest));
    if (job->api == SERVE_DETOKENIZE) return true;
    if (n_ids == 0) return serve_refuse(&job->error, 400, "invalid_value", NULL, "the text has no tokens");
    if (job->api == SERVE_EMBEDDINGS) *n_max = 0;
    return n_ids < ctx || (n_ids == ctx && job->api == SERVE_EMBEDDINGS) || refuse_length(job, n_ids);
}

/* Makes n tasks of a prompt: choices of one text. */
static bool add_tasks(struct serve_job *job, const int32_t *ids, size_t n_ids)
{
    uint64_t n_max;
    if (!find_room(&n_max, job, n_ids)) return false;
    for (uint32_t i = 0; i < job->n; i++) {
        struct serve_task *task = &job->tasks[job->n_tasks];
        *task = (struct serve_task){.job = job, .index = (uint32_t)job->n_tasks, .n_prompt = n_ids,
                                    .n_max = (uint32_t)n_max, .sampling = job->sampling,
                                    .tokens = malloc((n_ids + n_max + 1) * sizeof *task->tokens)};
        job->n_tasks++;
        if (!task->tokens) return serve_refuse(&job->error, 500, NULL, NULL, "out of memory");
        if (n_ids) memcpy(task->tokens, ids, n_ids * sizeof *ids);
        task->sampling.seed += i;
        task->sampling.stop = job->stops;
        task->sampling.bias = job->bias;
    }
    return true;
}

static bool make_tasks(struct serve_job *job, size_t n_texts)
{
    if (n_texts * job->n > SERVE_MAX_TASKS || n_texts == 0)
        return serve_refuse(&job->error, 400, "invalid_value", NULL, "there must be 1 to %d choices, texts times n",
                            SERVE_MAX_TASKS);
    job->tasks = calloc(n_texts * job->n, sizeof *job->tasks);
    return job->tasks || serve_refuse(&job->error, 500, NULL, NULL, "out of memory");
}

static bool read_chat(struct serve_job *job, const peridot_vocab *vocab, yyjson_val *root)
{
    int32_t *ids = NULL;
    size_t n = 0;
    bool good = serve_messages_encode(&ids, &n, job, vocab, root) && make_tasks(job, 1) && add_tasks(job, ids, n);
    peridot_free(ids);
    return good;
}

static bool read_ids(struct serve_job *job, const peridot_vocab *vocab, const char *name, yyjson_val *list)
{
    size_t i, n, n_ids = yyjson_arr_size(list);
    yyjson_val *each;
    int32_t *ids = malloc((n_ids + 1) * sizeof *ids);
    bool good = ids || serve_refuse(&job->error, 500, NULL, NULL, "out of memory");
    yyjson_arr_foreach(list, i, n, each) {
        double id = yyjson_get_num(each);   /* 1.0 is a whole number too */
        good = good && yyjson_is_num(each) && id >= 0 && id < peridot_vocab_size(vocab) && floor(id) == id;
        if (good) ids[i] = (int32_t)id;
    }
    if (good && job->suffix)
        good = serve_refuse(&job->error, 400, "unsupported_parameter", "suffix",
                            "suffix needs a prompt that is text, not token ids");
    else if (good) good = add_tasks(job, ids, n_ids);
    else serve_refuse_type(&job->error, name, "contains a number that is not a token id");
    free(ids);
    return good;
}

/* Of a text and job->suffix. */
static bool encode_infill(int32_t **ids, size_t *n, struct serve_job *job, const peridot_vocab *vocab,
                          yyjson_val *value)
{
    const peridot_infill infill = {.size = sizeof infill, .prefix = yyjson_get_str(value),
        .prefix_size = yyjson_get_len(value), .suffix = job->suffix, .suffix_size = job->suffix_size};
    if (!peridot_vocab_has_infill(vocab))
        return serve_refuse(&job->error, 400, "unsupported_parameter", "suffix",
                            "suffix is not supported: %s's vocabulary has no tokens for fill-in-the-middle",
                            job->server->model_id);
    peridot_status status = peridot_encode_infill(ids, n, vocab, &infill);
    return status == PERIDOT_OK || serve_refuse_status(&job->error, status);
}

static bool encode_text(int32_t **ids, size_t *n, struct serve_job *job, const peridot_vocab *vocab,
                        yyjson_val *value)
{
    struct serve_buffer text = {0};
    unsigned flags = PERIDOT_ENCODE_BOS | (job->api == SERVE_EMBEDDINGS ? PERIDOT_ENCODE_EOS : 0u);
    if (job->prefix) serve_put(&text, job->prefix, strlen(job->prefix));
    serve_put(&text, yyjson_get_str(value), yyjson_get_len(value));
    peridot_status status = text.failed ? PERIDOT_ERROR_MEMORY
                                        : peridot_encode(ids, n, vocab, text.data, text.size, flags);
    serve_buffer_free(&text);
    return status == PERIDOT_OK || serve_refuse_status(&job->error, status);
}

static bool read_text(struct serve_job *job, const peridot_vocab *vocab, const char *name, yyjson_val *value)
{
    int32_t *ids;
    size_t n;
    if (!yyjson_is_str(value))
        return serve_refuse_type(&job->error, name, "must be a string, a list of token ids, or a list of these");
    if (!(job->suffix ? encode_infill : encode_text)(&ids, &n, job, vocab, value)) return false;
    bool good = add_tasks(job, ids, n);
    peridot_free(ids);
    return good;
}

/* A text, its ids, texts, or lists of ids. */
static bool read_texts(struct serve_job *job, const peridot_vocab *vocab, yyjson_val *root)
{
    const char *name = job->api == SERVE_COMPLETIONS ? "prompt" : "input";
    yyjson_val *value = yyjson_obj_get(root, name), *each;
    size_t i, n;
    if (!value || yyjson_is_null(value)) return serve_refuse_type(&job->error, name, "is required");
    bool ids = yyjson_is_arr(value) && yyjson_is_num(yyjson_arr_get_first(value));
    bool many = yyjson_is_arr(value) && !ids;
    if (!make_tasks(job, many ? yyjson_arr_size(value) : 1)) return false;
    if (ids) return read_ids(job, vocab, name, value);
    if (!many) return read_text(job, vocab, name, value);
    yyjson_arr_foreach(value, i, n, each) {
        if (!(yyjson_is_arr(each) ? read_ids : read_text)(job, vocab, name, each)) return false;
    }
    return true;
}

/* ---- what needs no device ---- */

static bool tokenize(struct serve_buffer *out, struct serve_job *job, const peridot_vocab *vocab, yyjson_val *root)
{
    int32_t *ids;
    size_t n;
    yyjson_val *content = yyjson_obj_get(root, "content");
    if (!yyjson_is_str(content)) return serve_refuse_type(&job->error, "content", "must be a string");
    peridot_status status = peridot_encode(&ids, &n, vocab, yyjson_get_str(content), yyjson_get_len(content),
                                           job->echo ? PERIDOT_ENCODE_BOS : 0);
    if (status != PERIDOT_OK) return serve_refuse_status(&job->error, status);
    yyjson_mut_doc *doc = cmd_json_new();
    yyjson_mut_val *root_out = yyjson_mut_obj(doc), *list = yyjson_mut_arr(doc);
    yyjson_mut_doc_set_root(doc, root_out);
    yyjson_mut_obj_add_val(doc, root_out, "tokens", list);
    for (size_t i = 0; i < n; i++) {
        yyjson_mut_val *id = yyjson_mut_sint(doc, ids[i]), *both = job->wants_pieces ? yyjson_mut_obj(doc) : NULL;
        if (both) {
            struct serve_buffer piece = {0};
            serve_put_piece(&piece, vocab, ids[i]);
            yyjson_mut_obj_add_val(doc, both, "id", id);
            yyjson_mut_obj_add_val(doc, both, "piece", serve_buffer_text(doc, &piece));
        }
        yyjson_mut_arr_append(list, both ? both : id);
    }
    peridot_free(ids);
    serve_put_json(out, doc);
    return true;
}

static bool detokenize(struct serve_buffer *out, struct serve_job *job, const peridot_vocab *vocab, yyjson_val *root)
{
    yyjson_val *tokens = yyjson_obj_get(root, "tokens");
    char *text = NULL;
    size_t size = 0;
    if (!yyjson_is_arr(tokens)) return serve_refuse_type(&job->error, "tokens", "must be a list of token ids");
    if (yyjson_arr_size(tokens)) {
        if (!make_tasks(job, 1) || !read_ids(job, vocab, "tokens", tokens)) return false;
        peridot_status status = peridot_decode(&text, &size, vocab, job->tasks[0].tokens, job->tasks[0].n_prompt);
        if (status != PERIDOT_OK) return serve_refuse_status(&job->error, status);
    }
    yyjson_mut_doc *doc = cmd_json_new();
    yyjson_mut_val *root_out = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root_out);
    yyjson_mut_obj_add_val(doc, root_out, "content", serve_text(doc, text, size));
    serve_put_json(out, doc);
    peridot_free(text);
    return true;
}

/* ---- a job ---- */

static void set_defaults(struct serve_job *job)
{
    static const char *const prefixes[SERVE_N_APIS] = {
        [SERVE_CHAT] = "chatcmpl-", [SERVE_COMPLETIONS] = "cmpl-", [SERVE_RESPONSES] = "resp_"};
    uint64_t random[2] = {0};
    cmd_random_bytes(random, sizeof random);
    snprintf(job->id, sizeof job->id, "%s%016" PRIx64, prefixes[job->api] ? prefixes[job->api] : "", random[0]);
    job->sampling = (peridot_sampling){.size = sizeof job->sampling, .temperature = 1, .top_p = 1,
                                       .top_k = 40,
                                       .seed = random[1] & UINT32_MAX};
    job->n = 1;
    job->think = job->server->args->think;
}

static bool parse(struct serve_job *job)
{
    yyjson_read_err error;
    job->document = yyjson_read_opts(job->body.data ? job->body.data : (char *)"", job->body.size, 0, NULL, &error);
    if (!job->document)
        return serve_refuse(&job->error, 400, "invalid_json", NULL, "the body is not JSON: %s at byte %zu", error.msg,
                            error.pos);
    set_defaults(job);
    return serve_params_read(job, yyjson_doc_get_root(job->document));
}

bool serve_read_body(struct serve_buffer *out, struct serve_job *job, const peridot_vocab *vocab)
{
    if (!parse(job)) return false;
    yyjson_val *root = yyjson_doc_get_root(job->document);
    bool writes = job->api == SERVE_CHAT || job->api == SERVE_RESPONSES || job->api == SERVE_COMPLETIONS;
    if (writes && job->server->only_embeds)
        return serve_refuse(&job->error, 400, "unsupported_parameter", "model",
                            "%s is an embedding model: it writes no text, and has /v1/embeddings",
                            job->server->model_id);
    switch (job->api) {
    case SERVE_CHAT:
    case SERVE_RESPONSES: return read_chat(job, vocab, root);
    case SERVE_COMPLETIONS:
    case SERVE_EMBEDDINGS: return read_texts(job, vocab, root);
    case SERVE_TOKENIZE: return tokenize(out, job, vocab, root);
    default: return detokenize(out, job, vocab, root);
    }
}

static void answer(struct serve_job *job, const struct serve_buffer *out)
{
    serve_job_begin(job, 200);
    serve_job_write(job, out, true);
}

/* The job goes to the engine; one that needs no device, or has failed, ends here. */
static void pass_on(struct serve_server *s, struct serve_job *job, const struct serve_buffer *out)
{
    if (!job->error.status && !out->size) {
        serve_write_begin(job);
        serve_engine_add(s->engine, job);
        return;
    }
    if (job->error.status) serve_job_fail(job);
    else answer(job, out);
    s->n_jobs--;
    serve_job_drop(job);
}

static void pass_compiled(void *user, struct serve_job *job) { pass_on(user, job, &(struct serve_buffer){0}); }

static void take(struct serve_reader *r, struct serve_job *job)
{
    struct serve_buffer out = {0};
    serve_log_prompt(job);
    job->vocab = serve_engine_vocab(r->server->engine);
    bool good = serve_read_body(&out, job, job->vocab);
    serve_buffer_free(&job->body);
    if (!good || out.size || serve_grammars_find(r->grammars, job)) pass_on(r->server, job, &out);
    serve_buffer_free(&out);
}

/* ---- the thread ---- */

static void *run(void *user)
{
    struct serve_reader *r = user;
    pthread_mutex_lock(&r->lock);
    while (!r->stop) {
        struct serve_job *job = r->first;
        if (!job) {
            pthread_cond_wait(&r->changed, &r->lock);
            continue;
        }
        r->first = job->next;
        if (!r->first) r->last = &r->first;
        pthread_mutex_unlock(&r->lock);
        take(r, job);
        pthread_mutex_lock(&r->lock);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

peridot_status serve_reader_create(struct serve_reader **out, struct serve_server *server)
{
    struct serve_reader *r = calloc(1, sizeof *r);
    *out = NULL;
    if (!r) return cmd_fail_alloc(sizeof *r, "reader");
    r->server = server;
    r->last = &r->first;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    peridot_status status = serve_grammars_create(&r->grammars, pass_compiled, server);
    if (status == PERIDOT_OK && pthread_create(&r->thread, NULL, run, r) != 0)
        status = cmd_fail(PERIDOT_ERROR_MEMORY, "a thread cannot be created");
    if (status == PERIDOT_OK) {
        *out = r;
        return status;
    }
    serve_grammars_free(r->grammars);
    free(r);
    return status;
}

void serve_reader_free(struct serve_reader *r)
{
    if (!r) return;
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->thread, NULL);
    serve_grammars_free(r->grammars);
    while (r->first) {
        struct serve_job *job = r->first;
        r->first = job->next;
        serve_refuse(&job->error, 503, NULL, NULL, "the server is shutting down");
        serve_job_fail(job);
        r->server->n_jobs--;
        serve_job_drop(job);
    }
    free(r);
}

bool serve_reader_add(struct serve_reader *r, struct serve_job *job)
{
    const struct serve_args *args = r->server->args;
    pthread_mutex_lock(&r->lock);
    bool room = r->server->n_jobs < args->n_parallel + args->n_queue;
    if (room) {
        r->server->n_jobs++;
        job->next = NULL;
        *r->last = job;
        r->last = &job->next;
        pthread_cond_signal(&r->changed);
    }
    pthread_mutex_unlock(&r->lock);
    return room;
}
