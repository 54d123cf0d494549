/* What the threads of peridot serve share: the one of HTTP, the reader, the engine, and the main thread, which watches
 * them. */
#ifndef PERIDOT_COMMAND_SERVE_SERVER_H
#define PERIDOT_COMMAND_SERVE_SERVER_H

#include "../draft.h"
#include "job.h"
#include "metrics.h"

enum { SERVE_FULL_DROP, SERVE_FULL_REFUSE };   /* --full */

struct serve_args {
    struct cmd_model_args model;
    const char *host, *key, *key_file, *alias, *cors, *template_name;
    uint32_t port, n_parallel, n_queue, ctx, kv, timeout_s, full, think;
    bool insecure, log_json, log_prompts;
    struct cmd_draft_args draft;
};

enum { SERVE_BODY_MAX = 16 << 20, SERVE_MAX_KEYS = 64 };

struct serve_server {
    const struct serve_args *args;
    char *key_text;                    /* what --api-key-file holds */
    const char *keys[SERVE_MAX_KEYS];
    size_t n_keys;
    char model_id[256];
    int64_t created;
    /* of the model, set before `ready` */
    uint32_t ctx, n_positions, embedding_size, ctx_max;
    uint64_t n_params, weights_size;
    char family[32], type[32];         /* of most weights: "q4_k" */
    peridot_pool pool;
    bool only_embeds;                  /* it is an embedding model */
    struct serve_prefix {
        char *task, *prefix;
    } *prefixes;                       /* [n_prefixes]: the model's tasks */
    uint32_t n_prefixes;
    const char *template_name;         /* of conversations; NULL: the model's own */
    bool is_cpu;
    bool thinks;                       /* the template has thoughts */
    bool misused;                      /* --think asks for what it lacks: the server cannot begin */
    atomic_bool ready;                 /* the model is loaded, and no device was lost */
    atomic_bool draining;              /* no new requests */
    char failure[512];                 /* why the server ends; set before `failed` */
    atomic_bool failed;
    atomic_uint n_jobs;                /* that the reader was given and that have not ended */
    struct serve_metrics metrics;
    struct serve_http *http;
    struct serve_reader *reader;
    struct serve_engine *engine;
};

#endif
