#include "api/info.h"

#include "arch/layers.h"

void pd_model_info_begin(peridot_model_info *out, const struct pd_config *c)
{
    const struct pd_layer_sizes most = pd_layers_largest(c);
    *out = (peridot_model_info){.name = c->name, .family = pd_families[c->family].name, .n_layers = c->n_layers,
        .d_model = c->d_model, .ffn_dim = most.ffn_dim, .n_heads = most.n_heads, .n_kv_heads = most.n_kv_heads,
        .head_dim = most.head_dim, .window = most.window, .ctx_max = c->ctx_max, .vocab_size = c->vocab_size,
        .head = c->head, .problem = c->problem};
}
