/* The part of a model's info that its configuration gives, for models and for files that are not loaded. */
#include "api/api.h"

#include "arch/arch.h"
#include "engine/rounds/rounds.h"

#include <stdio.h>
#include <string.h>

static bool has_label(const struct pd_config *c, const char *name)
{
    return strcmp(c->labels[0], name) == 0 || strcmp(c->labels[1], name) == 0;
}

void pd_model_info_begin(peridot_model_info *out, const struct pd_config *c)
{
    const struct pd_layer_sizes most = pd_layers_largest(c);
    *out = (peridot_model_info){.name = c->name, .family = pd_families[c->family].name, .n_layers = c->n_layers,
        .d_model = c->d_model, .ffn_dim = most.ffn_dim, .n_heads = most.n_heads, .n_kv_heads = most.n_kv_heads,
        .head_dim = most.head_dim, .window = most.window, .ctx_max = c->ctx_max, .vocab_size = c->vocab_size,
        .head = c->head, .problem = c->problem, .cache_size = pd_session_cache_size(c, 0, PERIDOT_KV_F16),
        .whole_texts = c->bidirectional, .pool = c->embedding.pool,
        .embedding_size = pd_embedding_dim(&c->embedding, c->d_model), .is_drafter = c->target_dim != 0,
        .n_idle_params = pd_layers_n_idle(c),
        .last_division = pd_layers_last_division(c),
        .is_reranker = c->head == PERIDOT_HEAD_SEQUENCE && c->n_labels == 2 && has_label(c, "no")
            && has_label(c, "yes"),
        .file_type = c->file_type, .states_size = pd_states_size(c),
        .lacks_dense = pd_families[c->family].embeds && c->embedding.n_dense == 0};
}

/* The most frequent first, of equals the first in types.def: a selection sort, as there are few. */
void pd_model_info_types(char *out, size_t size, const uint32_t counts[PD_N_DTYPES])
{
    uint32_t left[PD_N_DTYPES];
    size_t at = 0;
    memcpy(left, counts, sizeof left);
    out[0] = 0;
    for (;;) {
        int best = 0;
        for (int i = 1; i < PD_N_DTYPES; i++)
            if (left[i] > left[best]) best = i;
        if (!left[best] || at >= size) return;
        at += (size_t)snprintf(out + at, size - at, "%s%s", at ? ", " : "", pd_dtypes[best].name);
        left[best] = 0;
    }
}
