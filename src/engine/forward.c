/* The forward pass twice: a chunk of a prompt, operation by operation, and a decode step, where norms, residual sums,
 * rotation and activations are fused into the matrices and attention, so that a layer takes six dispatches. A step of
 * several tokens is computed as a chunk is, and may share its matrices with one. All compute
 *   x += post(attention(norm(x)));   x = (x + post(ffn(norm(x)))) scale
 * where post is a norm in Gemma 2 and 3 and nothing in the others, and scale is 1 but in families that have one. */
#include "engine/forward.h"

#include "arch/layers.h"
#include "base/num.h"

struct pd_heads pd_layer_heads(const struct pd_config *c, const struct pd_weights *weights, uint32_t i)
{
    const struct pd_layer *layer = &c->layers[i];
    return (struct pd_heads){.n_heads = layer->n_heads, .n_kv_heads = layer->n_kv_heads, .head_dim = layer->head_dim,
        .window = layer->window, .scale = layer->query_scale, .softcap = c->attn_softcap, .eps = c->eps,
        .q_norm = weights->layers[i].norms[PD_ROLE_Q_NORM], .k_norm = weights->layers[i].norms[PD_ROLE_K_NORM],
        .shares_kv = !pd_layer_owns_kv(c, i), .v_is_k = !layer->has_v};
}

/* The norm that reads x after layer i; 0: another rank's. */
static uint64_t next_norm(const struct pd_forward_args *p, uint32_t i)
{
    return i + 1 < p->config->n_layers ? p->weights->layers[i + 1].norms[PD_ROLE_ATTN_NORM] : p->weights->output_norm;
}

/* The norm that reads x first. */
static uint64_t first_norm(const struct pd_forward_args *p)
{
    return p->weights->layers[p->weights->first_layer].norms[PD_ROLE_ATTN_NORM];
}

static bool uses_silu(const struct pd_forward_args *p) { return pd_families[p->config->family].silu; }

static void send_rows(const struct pd_forward_args *p, struct pd_span x)
{
    pd_op_copy(p->recorder, p->rows_out, x, (uint64_t)p->n_tokens * p->scratch->x.stride * sizeof(float));
}

/* ---- a chunk ---- */

/* x = (x + norm(branch)) x_scale (or branch itself, where there are no post norms); normed = norm(x) for what comes
 * next */
static void add_and_norm(const struct pd_forward_args *p, uint64_t w_post, float x_scale, uint64_t w_next)
{
    const struct pd_scratch *s = p->scratch;
    struct pd_norm norm = {.x = s->x, .y = s->branch, .normed = s->normed, .w_post = w_post, .w = w_next,
        .n = p->config->d_model, .eps = p->config->eps, .x_scale = x_scale};
    pd_op_rmsnorm(p->recorder, &norm, p->n_tokens);
}

/* In layer i, of n tokens from `first` on. */
static struct pd_attention attention_of(const struct pd_forward_args *p, uint32_t i, uint32_t first, uint32_t n)
{
    const struct pd_layer *layer = &p->config->layers[i];
    return (struct pd_attention){.heads = pd_layer_heads(p->config, p->weights, i), .kv = p->cache->layers[i],
        .qkv = pd_rows_at(p->scratch->qkv, first, 0), .y = pd_rows_at(p->scratch->att, first, 0),
        .places = p->places[layer->kind] + first * sizeof(struct pd_place),
        .angles = p->angles[layer->rope] + (uint64_t)first * layer->head_dim * sizeof(float),
        .n_tokens = n,
        .n_keys = layer->window ? (uint32_t)pd_min(p->n_keys, layer->window) : p->n_keys, .kind = layer->kind,
        .consecutive = p->consecutive, .step = p->step, .partial = p->scratch->partial};
}

/* branch = o(attention(rope(qkv(normed)))). Tokens of a decode step have their own keys each. */
static void chunk_attention(const struct pd_forward_args *p, uint32_t i)
{
    const struct pd_layer_weights *w = &p->weights->layers[i];
    const struct pd_scratch *s = p->scratch;
    struct pd_attention step = attention_of(p, i, 0, p->n_decode),
                        chunk = attention_of(p, i, p->n_decode, p->n_tokens - p->n_decode);

    pd_op_matmul(p->recorder, s->qkv, &w->matrices[PD_MATRIX_QKV], s->normed, p->n_tokens, 0);
    if (step.n_tokens) pd_op_attention_decode(p->recorder, &step);
    if (chunk.n_tokens) {
        pd_op_rope(p->recorder, &chunk);
        pd_op_attention(p->recorder, &chunk);
    }
    pd_op_matmul(p->recorder, s->branch, &w->matrices[PD_MATRIX_O], s->att, p->n_tokens, 0);
}

/* branch = down(act(gate(normed)) * up(normed)) */
static void chunk_ffn(const struct pd_forward_args *p, uint32_t i)
{
    const struct pd_layer_weights *w = &p->weights->layers[i];
    const struct pd_scratch *s = p->scratch;

    pd_op_matmul(p->recorder, s->gate_up, &w->matrices[PD_MATRIX_GATE_UP], s->normed, p->n_tokens, 0);
    pd_op_glu(p->recorder, s->act, s->gate_up, p->config->layers[i].ffn_dim, p->n_tokens, uses_silu(p));
    pd_op_matmul(p->recorder, s->branch, &w->matrices[PD_MATRIX_DOWN], s->act, p->n_tokens, 0);
}

static void chunk(const struct pd_forward_args *p, const struct pd_rows *logits)
{
    const struct pd_scratch *s = p->scratch;
    struct pd_norm first = {
        .x = s->x, .normed = s->normed, .w = first_norm(p), .n = p->config->d_model, .eps = p->config->eps};

    pd_op_rmsnorm(p->recorder, &first, p->n_tokens);
    for (uint32_t i = p->weights->first_layer; i < p->weights->end_layer; i++) {
        const struct pd_layer_weights *layer = &p->weights->layers[i];
        chunk_attention(p, i);
        add_and_norm(p, layer->norms[PD_ROLE_POST_ATTN_NORM], 1, layer->norms[PD_ROLE_FFN_NORM]);
        chunk_ffn(p, i);
        add_and_norm(p, layer->norms[PD_ROLE_POST_FFN_NORM], layer->output_scale, next_norm(p, i));
    }
    if (!p->weights->has_output) send_rows(p, s->x_span);
    else if (logits) pd_forward_head(p, *logits, p->n_decode ? 0 : p->n_tokens - 1, p->n_decode ? p->n_decode : 1);
}

/* ---- a decode step ---- */

/* What the next matrix reads once a branch is done; x moves to the other of its two places. */
static void join(const struct pd_forward_args *p, struct pd_fused_norm *in, uint64_t w_post, float x_scale, uint64_t w)
{
    if (in->x_out) in->x = in->x_out;
    in->x_out = in->x == p->scratch->x.address ? p->scratch->x_other.address : p->scratch->x.address;
    in->branch = p->scratch->branch.address;
    in->w_post = w_post;
    in->x_scale = x_scale;
    in->w = w;
}

static void step_layer(const struct pd_forward_args *p, struct pd_fused_norm *in, uint32_t i)
{
    const struct pd_layer_weights *w = &p->weights->layers[i];
    const struct pd_scratch *s = p->scratch;
    struct pd_attention attention = attention_of(p, i, 0, 1);

    pd_op_fused_norm_matvec(p->recorder, s->qkv, &w->matrices[PD_MATRIX_QKV], in, 0);
    pd_op_attention_decode(p->recorder, &attention);
    pd_op_matmul(p->recorder, s->branch, &w->matrices[PD_MATRIX_O], s->att, 1, 0);
    join(p, in, w->norms[PD_ROLE_POST_ATTN_NORM], 1, w->norms[PD_ROLE_FFN_NORM]);
    pd_op_fused_norm_gated(p->recorder, s->act, &w->matrices[PD_MATRIX_GATE_UP], in, uses_silu(p), s->gate_up);
    pd_op_matmul(p->recorder, s->branch, &w->matrices[PD_MATRIX_DOWN], s->act, 1, 0);
    join(p, in, w->norms[PD_ROLE_POST_FFN_NORM], w->output_scale, next_norm(p, i));
}

/* Adds the last branch, as the next rank's first matrix would: the kernel's bits are the same. */
static void end_range(const struct pd_forward_args *p, const struct pd_fused_norm *in)
{
    const struct pd_scratch *s = p->scratch;
    bool other = in->x == s->x_other.address;
    struct pd_norm add = {.x = other ? s->x_other : s->x, .y = s->branch, .w_post = in->w_post, .n = in->n,
        .eps = in->eps, .x_scale = in->x_scale};
    pd_op_rmsnorm(p->recorder, &add, 1);
    send_rows(p, other ? s->x_other_span : s->x_span);
}

static void step(const struct pd_forward_args *p, struct pd_rows logits)
{
    struct pd_fused_norm in = {
        .x = p->scratch->x.address, .w = first_norm(p), .n = p->config->d_model, .eps = p->config->eps};

    for (uint32_t i = p->weights->first_layer; i < p->weights->end_layer; i++) step_layer(p, &in, i);
    if (!p->weights->has_output) {
        end_range(p, &in);
        return;
    }
    in.x_out = 0;
    in.normed = p->scratch->normed.address;
    pd_op_fused_norm_matvec(p->recorder, logits, pd_weights_output(p->weights), &in, p->config->final_softcap);
}

void pd_forward(const struct pd_forward_args *p, const struct pd_rows *logits)
{
    p->recorder->decode = p->n_decode != 0;
    p->recorder->chunk = p->n_decode < p->n_tokens;
    const struct pd_embed embed = {.x = p->scratch->x, .table = &p->weights->lookup, .tokens = p->tokens,
                                   .embedded = p->embedded, .scale = p->config->embed_scale};
    if (p->weights->first_layer)
        pd_op_copy(p->recorder, p->scratch->x_span, p->rows_in,
                   (uint64_t)p->n_tokens * p->scratch->x.stride * sizeof(float));
    else pd_op_embed(p->recorder, &embed, p->n_tokens);
    if (p->n_tokens == 1 && p->n_decode && logits && pd_can_fuse_norm(p->recorder->gpu, p->config->d_model))
        step(p, *logits);
    else chunk(p, logits);
}

void pd_forward_head(const struct pd_forward_args *p, struct pd_rows logits, uint32_t row, uint32_t n)
{
    p->recorder->chunk = false;   /* as few rows as are asked for */
    pd_op_matmul(p->recorder, logits, pd_weights_output(p->weights), pd_rows_at(p->scratch->normed, row, 0), n,
                 p->config->final_softcap);
}
