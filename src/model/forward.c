#include "model/forward.h"

struct pd_heads pd_layer_heads(const struct pd_config *c, const struct pd_weights *weights, uint32_t i)
{
    return (struct pd_heads){.n_heads = c->n_heads, .n_kv_heads = c->n_kv_heads, .head_dim = c->head_dim,
        .window = c->layers[i].window, .scale = c->query_scale, .softcap = c->attn_softcap, .eps = c->eps,
        .q_norm = weights->layers[i].q_norm, .k_norm = weights->layers[i].k_norm};
}

/* branch = attention(normed) */
static void attention(const struct pd_pass *p, uint32_t i)
{
    const struct pd_layer_weights *w = &p->weights->layers[i];
    const struct pd_scratch *s = p->scratch;
    const struct pd_kv *kv = &p->cache->layers[i];
    struct pd_heads heads = pd_layer_heads(p->config, p->weights, i);
    uint32_t kind = p->config->layers[i].rope;

    pd_op_matmul(p->recorder, s->qkv, &w->qkv, s->normed, p->n_tokens, 0);
    pd_op_rope(p->recorder, s->qkv, kv, &heads, p->step.address, p->angles[kind], p->n_tokens);
    if (p->n_tokens == 1) pd_op_attention_split(p->recorder, s->att, s->qkv, kv, &heads, p->step, heads.window != 0, s->partial);
    else pd_op_attention(p->recorder, s->att, s->qkv, kv, &heads, p->step.address, p->n_tokens);
    pd_op_matmul(p->recorder, s->branch, &w->o, s->att, p->n_tokens, 0);
}

/* branch = down(act(gate(normed)) * up(normed)) */
static void ffn(const struct pd_pass *p, uint32_t i)
{
    const struct pd_layer_weights *w = &p->weights->layers[i];
    const struct pd_scratch *s = p->scratch;

    pd_op_matmul(p->recorder, s->gate_up, &w->gate_up, s->normed, p->n_tokens, 0);
    pd_op_glu(p->recorder, s->act, s->gate_up, p->config->ffn_dim, p->n_tokens, pd_families[p->config->family].silu);
    pd_op_matmul(p->recorder, s->branch, &w->down, s->act, p->n_tokens, 0);
}

/* x += norm(branch) (or branch itself, where the family has no post norms); normed = norm(x) for what comes next */
static void add_and_norm(const struct pd_pass *p, uint64_t w_post, uint64_t w_next)
{
    const struct pd_scratch *s = p->scratch;
    struct pd_norm norm = {.x = s->x, .y = s->branch, .normed = s->normed, .w_post = w_post, .w = w_next,
        .n = p->config->d_model, .eps = p->config->eps};
    pd_op_rmsnorm(p->recorder, &norm, p->n_tokens);
}

void pd_forward(const struct pd_pass *p)
{
    const struct pd_config *c = p->config;
    const struct pd_weights *w = p->weights;
    const struct pd_scratch *s = p->scratch;
    struct pd_norm first = {.x = s->x, .normed = s->normed, .w = w->layers[0].attn_norm, .n = c->d_model, .eps = c->eps};

    pd_op_embed(p->recorder, s->x, &w->lookup, p->tokens, p->n_tokens, c->embed_scale);
    pd_op_rmsnorm(p->recorder, &first, p->n_tokens);
    for (uint32_t i = 0; i < c->n_layers; i++) {
        const struct pd_layer_weights *layer = &w->layers[i];
        attention(p, i);
        add_and_norm(p, layer->post_attn_norm, layer->ffn_norm);
        ffn(p, i);
        add_and_norm(p, layer->post_ffn_norm, i + 1 < c->n_layers ? w->layers[i + 1].attn_norm : w->output_norm);
    }
}

void pd_forward_head(const struct pd_pass *p, struct pd_rows logits, uint32_t row, uint32_t n)
{
    pd_op_matmul(p->recorder, logits, pd_weights_output(p->weights), pd_rows_at(p->scratch->normed, row, 0), n, p->config->final_softcap);
}
