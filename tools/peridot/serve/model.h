/* The models of the server, and what it says of each: that is copied once, as a model itself is its engine's and may be
 * gone for a while. Where a device is lost, or the model was unloaded, the same one is opened again. */
#ifndef PERIDOT_COMMAND_SERVE_MODEL_H
#define PERIDOT_COMMAND_SERVE_MODEL_H

#include "../open.h"

#include <stdatomic.h>
#include <stdbool.h>

struct serve_engine;
struct serve_images;
struct serve_server;

struct serve_model {
    char id[256];
    char *path;                        /* NULL: the demo model */
    atomic_bool loaded;                /* it is open, and its device was not lost */
    /* set before `known` */
    uint32_t embedding_size, d_model, n_vocab;
    uint32_t ctx_max;                  /* that it was trained for */
    atomic_uint ctx, n_positions;      /* of its session, which may be smaller when it is opened again */
    uint64_t n_params, weights_size;
    char family[32], type[32];         /* of most weights: "q4_k" */
    char *bos, *eos;                   /* texts of these tokens; "": it has none */
    peridot_pool pool;
    int32_t rank_labels[2];            /* see cmd_ranking_labels */
    bool only_embeds;                  /* it is an embedding model */
    struct serve_prefix {
        char *task, *prefix;
    } *prefixes;                       /* [n_prefixes]: the model's tasks */
    uint32_t n_prefixes;
    peridot_adapter *adapters;         /* [n_adapters]: with the scales of the command line */
    uint32_t n_adapters;
    const char *template_name;         /* of conversations; NULL: the model's own */
    bool is_cpu;
    char *template_note;               /* that the one in its files cannot be run; NULL: it can, or is not wanted */
    bool runs_template;                /* it is a program in the model's files, and may read variables of requests */
    bool thinks;                       /* the template has thoughts */
    bool sees;                         /* it reads images */
    peridot_sampling sampling;         /* where a request says nothing */
    atomic_bool known;                 /* it was open once */
    struct serve_engine *engine;
    struct serve_images *images;       /* of its jobs, whoever has them */
};

enum { SERVE_MAX_MODELS = 64 };

/* Names the models of the command line; those in a folder are in the order of their names. */
peridot_status serve_models_find(struct serve_server *server);
void serve_models_free(struct serve_server *server);
/* What opens it. */
struct cmd_model_args serve_model_args(const struct serve_server *server, const struct serve_model *model);
/* The model of that name, with or without Ollama's ":latest"; NULL: there is none. */
const struct serve_model *serve_models_get(const struct serve_server *server, const char *name);
/* The first model's adapter that the name NAME or MODEL:NAME stands for, as if it were a model; NULL: there is none. */
const peridot_adapter *serve_models_get_adapter(const struct serve_server *server, const char *name);

#endif
