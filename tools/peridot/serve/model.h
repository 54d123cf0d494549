/* A model of the server: what requests are read by and what is said of it. It is copied once, as the model itself
 * is the engine's and may be gone for a while: when a device is lost, the same one is opened again. */
#ifndef PERIDOT_COMMAND_SERVE_MODEL_H
#define PERIDOT_COMMAND_SERVE_MODEL_H

#include <peridot.h>
#include <stdbool.h>

struct serve_engine;

struct serve_model {
    char id[256];
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
    struct serve_engine *engine;
};

#endif
