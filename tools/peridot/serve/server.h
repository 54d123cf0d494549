/* What the threads of peridot serve share: the one of HTTP, the reader, the engine, and the main thread, which watches
 * them. */
#ifndef PERIDOT_COMMAND_SERVE_SERVER_H
#define PERIDOT_COMMAND_SERVE_SERVER_H

#include "../draft.h"
#include "../sampling.h"
#include "job.h"
#include "metrics.h"
#include "model.h"
#include "pings.h"
#include "stored.h"

enum { SERVE_FULL_DROP, SERVE_FULL_REFUSE };   /* --full */

struct serve_args {
    struct cmd_model_args model;
    const char *host, *key, *key_file, *alias, *cors, *template_name;
    struct cmd_texts models, tools;    /* the former are -m; model.path is not used */
    struct cmd_texts allowed_urls;     /* hosts that pictures may be fetched from */
    uint32_t port, n_parallel, n_queue, ctx, kv, timeout_s, idle_s, full, think;
    bool insecure, log_json, log_prompts;
    struct cmd_draft_args draft;
    struct cmd_sampling sampling;      /* where a request says nothing */
};

enum { SERVE_BODY_MAX = 32 << 20, SERVE_MAX_KEYS = 64 };

struct serve_server {
    const struct serve_args *args;
    char *key_text;                    /* what --api-key-file holds */
    const char *keys[SERVE_MAX_KEYS];
    size_t n_keys;
    int64_t created;
    struct serve_model models[SERVE_MAX_MODELS];   /* the first answers requests for names that are not here */
    size_t n_models;
    pthread_mutex_t loading;           /* held by the engine that opens a model */
    bool misused;                      /* --think asks for what it lacks: the server cannot begin */
    atomic_bool ready;                 /* the first model was loaded, and if it is the only one, no device was lost */
    atomic_bool draining;              /* no new requests */
    atomic_bool stopping;              /* what waits is refused */
    char failure[512];                 /* why the server ends; set before `failed` */
    atomic_bool failed;
    atomic_uint n_jobs;                /* that the reader was given and that have not ended, */
    atomic_uint n_long;                /* and those with a long body that are not freed yet */
    struct serve_metrics metrics;
    struct serve_pings pings;          /* streams */
    const struct serve_thoughts *thoughts;   /* what their seals are made by */
    struct serve_stored stored;        /* responses */
    struct serve_http *http;
    struct serve_reader *reader;
    struct serve_pictures *pictures;   /* the reader's */
    struct cmd_toolbox *toolbox;       /* of --tools; NULL: none, as are */
    struct serve_tools *tools;
    void (*give_back)(struct serve_reader *reader, struct serve_job *job);   /* whose model is loaded now */
};

#endif
