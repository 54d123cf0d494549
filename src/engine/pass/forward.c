/* The forward pass, in the order of the papers. Of rows in any mix, those of decode steps first, it computes
 *   x = embed(tokens), in some families normed, or rows that stand for images
 *   in each layer   x += post(o(attention(rope(qkv(norm(x)))))), in some with attention's output gated,
 *                        or o(recurrence(qkv(norm(x)))), or o(short convolution(bch(norm(x))))
 *                   x = (x + post(down(act(gate(norm(x))) up(norm(x))))) scale, or so of experts
 *                   and in models whose layers have inputs of their own, before that scale, one more branch
 *   logits = softcap(output(norm(x)))
 * where norm and post are norms or, in some families, nothing, and scale is 1 but in those that have one. What a layer
 * has is data: of the config (sizes, window, table of rotation, whose keys it reads) and of the weights (a norm that is
 * not there has no address). src/ops lowers it: in a decode step of one row norms, sums, rotation and activations are
 * fused into the matrices and attention, so that a layer takes six dispatches. */
#include "engine/pass/pass.h"

#include "arch/arch.h"
#include "base/base.h"
#include "ops/ops.h"

#include <math.h>

struct pd_heads pd_layer_heads(const struct pd_config *c, const struct pd_weights *weights, uint32_t i)
{
    const struct pd_layer *layer = &c->layers[i];
    const uint64_t *norms = weights->layers[i].norms;
    return (struct pd_heads){.n_heads = layer->n_heads, .n_kv_heads = layer->n_kv_heads, .head_dim = layer->head_dim,
        .window = layer->window, .scale = layer->query_scale, .softcap = c->attn_softcap, .eps = c->eps,
        .q_norm = layer->qk_norms ? norms[PD_ROLE_Q_NORM] : 0, .k_norm = layer->qk_norms ? norms[PD_ROLE_K_NORM] : 0,
        .sinks = norms[PD_ROLE_SINKS], .v_norm = layer->v_norm, .shares_kv = !pd_layer_owns_kv(c, i),
        .v_is_k = !layer->has_v};
}

/* x = pre_proj(the target's embedding of the token, its hidden state), of a block both normed */
static void read_target(const struct pd_forward_args *p)
{
    const struct pd_target *t = p->target;
    const struct pd_embed embed = {.x = t->in, .table = t->lookup, .tokens = p->tokens, .scale = t->embed_scale};
    pd_op_embed(p->recorder, &embed, p->n_tokens);
    for (uint32_t i = 0; i < 2 && p->weights->pre_norms[i]; i++) {
        const struct pd_rows half = pd_rows_at(t->in, 0, i * p->config->target_dim);
        const struct pd_norm norm = {.x = half, .normed = half, .w = p->weights->pre_norms[i],
            .n = p->config->target_dim, .eps = p->config->eps, .x_scale = 1};
        pd_op_rmsnorm(p->recorder, &norm, p->n_tokens);
    }
    pd_op_linear(p->recorder, p->scratch->x, &p->weights->pre_proj, t->in, p->n_tokens);        /* [n][d_model] */
}

/* x = embed(tokens), or rms of that. */
static void embed_tokens(const struct pd_forward_args *p)
{
    const struct pd_rows x = p->scratch->x;
    const struct pd_embed embed = {.x = x, .table = &p->weights->lookup, .tokens = p->tokens,
                                   .embedded = p->embedded, .scale = pd_stream_embed_scale(p->config)};
    const struct pd_norm norm = {.x = x, .normed = x, .w = p->weights->embed_norm, .n = p->config->d_model,
                                 .eps = pd_stream_eps(p->config), .x_scale = 1};
    pd_op_embed(p->recorder, &embed, p->n_tokens);                                        /* [n][d_model] */
    if (norm.w) pd_op_rmsnorm(p->recorder, &norm, p->n_tokens);
}

/* From tokens, from a drafter's target, or from the rank that holds the layers before. */
static struct pd_residual begin_stream(const struct pd_forward_args *p)
{
    const struct pd_scratch *s = p->scratch;
    uint64_t size = (uint64_t)p->n_tokens * s->x.stride * sizeof(float);
    if (p->target) read_target(p);
    else if (p->weights->first_layer) pd_op_copy(p->recorder, s->x_span, 0, p->rows_in, 0, size);
    else embed_tokens(p);
    return (struct pd_residual){.x = s->x, .x_other = s->x_other, .normed = s->normed, .n_rows = p->n_tokens,
        .n = p->config->d_model, .eps = pd_stream_eps(p->config)};
}

/* What each layer gets of the tokens themselves: (rms(model_proj(x) / sqrt(d_model)) + table[token] sqrt(dim))
 * / sqrt(2), the norm being of each layer's part, or where there is no table that norm alone. That it does not depend
 * on the size of what it norms, but for eps, makes the first factor one of eps. */
static void get_per_layer_inputs(const struct pd_forward_args *p, const struct pd_residual *x)
{
    const struct pd_scratch *s = p->scratch;
    const struct pd_config *c = p->config;
    const struct pd_embed embed = {.x = s->per_layer, .table = &p->weights->per_layer_lookup, .tokens = p->tokens,
                                   .scale = c->per_layer_scale};
    const struct pd_rows inputs = {s->per_layer.address, c->per_layer_dim},
                         of_model = {s->per_layer_model.address, c->per_layer_dim},
                         first = p->weights->first_layer ? s->branch : x->x;   /* what goes into the first layer */
    const struct pd_embed embed_first = {.x = first, .table = &p->weights->lookup, .tokens = p->tokens,
                                         .scale = pd_stream_embed_scale(c)};
    struct pd_norm norm = {.n = c->per_layer_dim, .eps = c->eps * (float)c->d_model};
    bool has_table = p->weights->per_layer_embedding.n_slices != 0;
    if (!c->per_layer_dim) return;
    if (p->weights->first_layer) pd_op_embed(p->recorder, &embed_first, p->n_tokens);
    if (has_table) pd_op_embed(p->recorder, &embed, p->n_tokens);          /* [n][n_layers][per_layer_dim] */
    pd_op_linear(p->recorder, s->per_layer_model, &p->weights->per_layer_model_proj, first, p->n_tokens);
    if (has_table) {
        norm.x = inputs;
        norm.y = of_model;
        norm.w_post = p->weights->per_layer_model_norm;
        norm.x_scale = sqrtf(0.5f);
    } else {
        norm.x = of_model;
        norm.normed = inputs;
        norm.w = p->weights->per_layer_model_norm;
        norm.x_scale = 1;
    }
    pd_op_rmsnorm(p->recorder, &norm, p->n_tokens * c->n_layers);
}

/* In layer i, of n rows from `first` on. */
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

/* att = attention(rope(qkv)). Rows of a decode step have their own keys each; those of prompts share them. */
static void attend(const struct pd_forward_args *p, uint32_t i)
{
    struct pd_attention step = attention_of(p, i, 0, p->n_decode),
                        chunk = attention_of(p, i, p->n_decode, p->n_tokens - p->n_decode);
    if (step.n_tokens) pd_op_attention_decode(p->recorder, &step);
    if (!chunk.n_tokens) return;
    pd_op_rope(p->recorder, &chunk);
    pd_op_attention(p->recorder, &chunk);
}

/* att *= sigmoid(gate), which stands behind q, k and v */
static void gate_attention(const struct pd_forward_args *p, uint32_t i)
{
    uint32_t n = pd_layer_q_dim(&p->config->layers[i]);
    const struct pd_rows att = p->scratch->att,
                         gate = pd_rows_at(p->scratch->qkv, 0, pd_layer_qkv_dim(p->config, i) - n);
    pd_op_glu(p->recorder, &(struct pd_glu){att, gate, att, n, PD_SIGMOID}, p->n_tokens);
}

/* delta = norm(delta rule(silu(convolution(q, k, v)), b, a)) silu(z), what it reads being in qkv, or Mamba-2's; or in
 * layers without a rule, c convolution(b h) */
static void recur(const struct pd_forward_args *p, uint32_t i)
{
    const struct pd_delta *d = &p->config->layers[i].delta;
    const uint64_t *norms = p->weights->layers[i].norms;
    const struct pd_short_conv conv = {.runs = p->runs, .n_runs = p->n_runs, .n_rows = p->n_tokens,
        .n = d->n_channels, .conv = d->conv, .x = p->scratch->qkv, .y = p->scratch->delta,
        .tails = p->cache->layers[i].k, .w = norms[PD_ROLE_DELTA_CONV],
        .row_states = p->consecutive ? p->row_states : 0};
    if (conv.n) {
        pd_op_short_conv(p->recorder, &conv);
        return;
    }
    const struct pd_recurrence c = {.runs = p->runs, .n_runs = p->n_runs, .n_rows = p->n_tokens, .n_k = d->n_k,
        .n_v = d->n_v, .d_k = d->d_k, .d_v = d->d_v, .conv = d->conv, .mamba = d->mamba, .grouped = d->grouped,
        .x = p->scratch->qkv, .qkv = p->scratch->conv, .y = p->scratch->delta, .states = p->cache->layers[i].k,
        .tails = p->cache->layers[i].v, .row_states = p->consecutive ? p->row_states : 0,
        .w_conv = norms[PD_ROLE_DELTA_CONV], .conv_bias = norms[PD_ROLE_DELTA_CONV_BIAS],
        .dt = norms[PD_ROLE_DELTA_DT], .decay = norms[PD_ROLE_DELTA_DECAY],
        .skip = norms[PD_ROLE_DELTA_SKIP], .w_norm = norms[PD_ROLE_DELTA_NORM], .eps = p->config->eps};
    pd_op_recur(p->recorder, &c);
}

/* All q heads are normed as one vector, and all k heads. */
static void norm_whole(const struct pd_forward_args *p, uint32_t i)
{
    const struct pd_layer *layer = &p->config->layers[i];
    const uint64_t *norms = p->weights->layers[i].norms;
    uint32_t q_dim = pd_layer_q_dim(layer);
    struct pd_rows q = p->scratch->qkv, k = pd_rows_at(q, 0, q_dim);
    struct pd_norm norm = {.x = q, .normed = q, .w = norms[PD_ROLE_Q_NORM], .n = q_dim, .eps = p->config->eps,
        .x_scale = 1};
    pd_op_rmsnorm(p->recorder, &norm, p->n_tokens);
    if (!pd_layer_owns_kv(p->config, i)) return;
    norm.x = norm.normed = k;
    norm.w = norms[PD_ROLE_K_NORM];
    norm.n = pd_layer_kv_dim(layer);
    pd_op_rmsnorm(p->recorder, &norm, p->n_tokens);
}

/* Which experts each row takes, by what the router finds in `in`. */
static struct pd_routes route(const struct pd_forward_args *p, uint32_t i, struct pd_rows in)
{
    const struct pd_layer_weights *w = &p->weights->layers[i];
    const struct pd_layer *layer = &p->config->layers[i];
    const struct pd_scratch *s = p->scratch;
    struct pd_routes routes = s->routes;
    routes.n_experts = layer->n_experts;
    routes.n_used = layer->n_experts_used;
    routes.n_tokens = p->n_tokens;
    routes.raw = layer->raw_routes;
    routes.sigmoid = layer->sigmoid_routes;
    routes.biases = w->norms[PD_ROLE_CHOICE_BIASES];
    routes.shared = routes.gate = (struct pd_rows){0};
    pd_op_linear(p->recorder, s->router, &w->linears[PD_MATRIX_ROUTER], in, p->n_tokens);   /* [n][n_experts (+ 1)] */
    pd_op_route(p->recorder, &routes, s->router, w->norms[PD_ROLE_EXPERT_SCALES]);
    return routes;
}

/* out = the weighted sum of what a row's experts find in `in` */
static void sum_experts(const struct pd_forward_args *p, uint32_t i, const struct pd_routes *routes, struct pd_rows in,
                        struct pd_rows out)
{
    const struct pd_layer_weights *w = &p->weights->layers[i];
    const struct pd_scratch *s = p->scratch;
    struct pd_recorder *r = p->recorder;
    const struct pd_gated gated = {s->expert_act, in, s->expert_both, p->config->layers[i].activation};
    /* [n n_experts_used][expert_dim] */
    pd_op_experts_gated(r, &w->linears[PD_MATRIX_EXPERTS_GATE_UP], &gated, routes);
    pd_op_experts(r, s->expert_out, &w->linears[PD_MATRIX_EXPERTS_DOWN], s->expert_act, routes, 1);
    pd_op_combine(r, out, s->expert_out, routes, p->config->d_model);                 /* [n][d_model] */
}

/* expert_x = post_dense(branch) + post_experts(the weighted sum of the token's experts, of norm(x)). The router reads x
 * by a norm of its own. x has nothing pending. */
static void add_experts(const struct pd_forward_args *p, const struct pd_residual *x, uint32_t i)
{
    const struct pd_layer_weights *w = &p->weights->layers[i];
    const struct pd_scratch *s = p->scratch;
    struct pd_recorder *r = p->recorder;
    uint32_t n = p->n_tokens;
    struct pd_norm norm = {.x = x->x, .normed = s->expert_x, .n = x->n, .eps = x->eps, .x_scale = 1};

    norm.w = w->norms[PD_ROLE_ROUTER_SCALE];
    pd_op_rmsnorm(r, &norm, n);
    const struct pd_routes routes = route(p, i, s->expert_x);

    norm.w = w->norms[PD_ROLE_EXPERTS_NORM];
    pd_op_rmsnorm(r, &norm, n);
    sum_experts(p, i, &routes, s->expert_x, s->experts);

    norm.x = s->experts;
    norm.w = w->norms[PD_ROLE_POST_EXPERTS_NORM];
    pd_op_rmsnorm(r, &norm, n);
    const struct pd_norm sum = {.x = s->expert_x, .y = s->branch, .w_post = w->norms[PD_ROLE_POST_DENSE_NORM],
        .n = x->n, .eps = x->eps, .x_scale = 1};
    pd_op_rmsnorm(r, &sum, n);
}

/* branch = down(act(gate(norm(x))) up(norm(x))), or the same of the experts in its place, to which it may be added by a
 * gate of its own */
static void feed_forward(const struct pd_forward_args *p, struct pd_residual *x, uint32_t i)
{
    const struct pd_layer_weights *w = &p->weights->layers[i];
    const struct pd_layer *layer = &p->config->layers[i];
    const struct pd_scratch *s = p->scratch;
    struct pd_recorder *r = p->recorder;
    const struct pd_rows found = layer->shares_unit ? s->experts : s->branch;
    struct pd_routes routes = {0};
    if (layer->shares_unit || !layer->ffn_dim) {
        pd_op_stream_norm(r, x);
        routes = route(p, i, x->normed);
    }
    if (layer->ffn_dim) {
        pd_op_gated_stream(r, s->act, &w->linears[PD_MATRIX_GATE_UP], x, layer->activation, s->gate_up);
        pd_op_linear(r, found, &w->linears[PD_MATRIX_DOWN], s->act, p->n_tokens);          /* act [n][ffn_dim] */
    }
    if (!routes.n_experts) return;
    if (layer->shares_unit) routes.shared = found;
    if (layer->shared_gate) routes.gate = pd_rows_at(s->router, 0, layer->n_experts);
    sum_experts(p, i, &routes, x->normed, s->branch);
}

/* x = (x + post(proj(act(gate(x)) * inputs))) scale */
static void add_per_layer_input(const struct pd_forward_args *p, struct pd_residual *x, uint32_t i)
{
    const struct pd_layer_weights *w = &p->weights->layers[i];
    const struct pd_scratch *s = p->scratch;
    struct pd_recorder *r = p->recorder;
    uint32_t n = p->n_tokens, dim = p->config->per_layer_dim;
    const struct pd_glu glu = {s->per_layer_act, s->per_layer_gate, pd_rows_at(s->per_layer, 0, i * dim), dim,
        p->config->layers[i].activation};

    pd_op_stream_add(r, x);
    pd_op_linear(r, s->per_layer_gate, &w->linears[PD_MATRIX_PER_LAYER_GATE], x->x, n);     /* [n][per_layer_dim] */
    pd_op_glu(r, &glu, n);
    pd_op_linear(r, s->branch, &w->linears[PD_MATRIX_PER_LAYER_PROJ], s->per_layer_act, n);   /* [n][d_model] */
    pd_residual_add(x, s->branch, w->norms[PD_ROLE_POST_PER_LAYER_NORM], w->output_scale);
}

static void layer(const struct pd_forward_args *p, struct pd_residual *x, uint32_t i)
{
    const struct pd_layer_weights *w = &p->weights->layers[i];
    const struct pd_scratch *s = p->scratch;
    struct pd_recorder *r = p->recorder;
    uint32_t n = p->n_tokens;
    bool beside = p->config->layers[i].experts_beside;

    pd_residual_norm(x, w->norms[PD_ROLE_ATTN_NORM]);                                   /* x [n][d_model] */
    pd_op_linear_stream(r, s->qkv, &w->linears[PD_MATRIX_QKV], x);                    /* [n][heads of q, k, v, gate] */
    if (p->config->layers[i].whole_qk_norms) norm_whole(p, i);
    if (pd_layer_recurs(&p->config->layers[i])) recur(p, i);                          /* delta [n][n_v d_v] */
    else attend(p, i);                                                                /* att [n][n_heads head_dim] */
    if (p->config->layers[i].attn_gate) gate_attention(p, i);
    const struct pd_rows mixed = pd_layer_recurs(&p->config->layers[i]) ? s->delta : s->att;
    pd_op_linear(r, s->branch, &w->linears[PD_MATRIX_O], mixed, n);                   /* [n][d_model] */
    pd_residual_add(x, s->branch, w->norms[PD_ROLE_POST_ATTN_NORM], 1);
    if (beside) pd_op_stream_add(r, x);

    pd_residual_norm(x, w->norms[PD_ROLE_FFN_NORM]);
    feed_forward(p, x, i);                                                            /* [n][d_model] */
    if (beside) add_experts(p, x, i);
    float scale = p->config->per_layer_dim ? 1 : w->output_scale;   /* which comes last */
    pd_residual_add(x, beside ? s->expert_x : s->branch, w->norms[PD_ROLE_POST_FFN_NORM], scale);
    if (p->config->per_layer_dim) add_per_layer_input(p, x, i);
}

/* To the rank that holds the layers after. */
static void send_rows(const struct pd_forward_args *p, struct pd_residual *x)
{
    const struct pd_scratch *s = p->scratch;
    pd_op_stream_add(p->recorder, x);
    pd_op_copy(p->recorder, p->rows_out, 0, x->x.address == s->x.address ? s->x_span : s->x_other_span, 0,
               (uint64_t)p->n_tokens * s->x.stride * sizeof(float));
}

/* ---- layers that write no keys ---- */

/* As p, of n rows from `row` on, which are of a decode step or not. What a layer needs for itself begins at the first
 * row all the same. */
static void narrow(struct pd_forward_args *out, struct pd_scratch *s, const struct pd_forward_args *p, uint32_t row,
                   uint32_t n, bool decode)
{
    *out = *p;
    *s = *p->scratch;
    s->x = pd_rows_at(s->x, row, 0);
    s->normed = pd_rows_at(s->normed, row, 0);
    s->per_layer = pd_rows_at(s->per_layer, row, 0);
    for (uint32_t k = 0; k < p->config->n_kinds; k++) out->places[k] += row * sizeof(struct pd_place);
    for (uint32_t t = 0; t < p->config->n_rope_tables; t++)
        out->angles[t] += (uint64_t)row * p->config->rope_tables[t].head_dim * sizeof(float);
    p->recorder->lora_scales = p->lora_scales + (uint64_t)row * p->recorder->n_adapters * sizeof(float);
    out->scratch = s;
    out->n_tokens = n;
    out->n_decode = decode ? n : 0;
}

static void forward_tail(const struct pd_forward_args *p, uint32_t first_layer, uint32_t row, uint32_t n, bool decode)
{
    struct pd_forward_args part;
    struct pd_scratch scratch;
    if (n == 0) return;
    narrow(&part, &scratch, p, row, n, decode);
    struct pd_residual x = {.x = scratch.x, .x_other = scratch.x_other, .normed = scratch.normed, .n_rows = n,
        .n = p->config->d_model, .eps = pd_stream_eps(p->config)};
    for (uint32_t i = first_layer; i < p->weights->end_layer; i++) layer(&part, &x, i);
    pd_residual_norm_last(&x, p->weights->output_norm);
    pd_op_stream_norm(p->recorder, &x);
}

/* The first of the layers at the end that only read keys, where most rows of prompts need not go, unless what goes
 * there is observed; end_layer: none. */
static uint32_t find_tail(const struct pd_forward_args *p)
{
    uint32_t tail = p->config->n_layers - p->config->n_shared_kv, n_prompt = p->n_tokens - p->n_decode;
    bool whole = p->weights->first_layer == 0 && p->weights->has_output;
    bool observed = tail < p->config->n_layers && p->weights->layers[tail].linears[PD_MATRIX_O].squares;
    return whole && !observed && p->heads && p->n_heads < n_prompt ? tail : p->weights->end_layer;
}

void pd_forward(const struct pd_forward_args *p, const struct pd_rows *logits)
{
    p->recorder->decode = p->n_decode != 0;
    p->recorder->chunk = p->n_decode < p->n_tokens;
    p->recorder->lora_scales = p->lora_scales;
    struct pd_residual x = begin_stream(p);
    uint32_t tail = find_tail(p);
    get_per_layer_inputs(p, &x);
    for (uint32_t i = p->weights->first_layer; i < tail; i++) layer(p, &x, i);
    if (tail < p->weights->end_layer) {
        pd_op_stream_add(p->recorder, &x);
        forward_tail(p, tail, 0, p->n_decode, true);
        for (uint32_t i = 0; i < p->n_heads; i++) forward_tail(p, tail, p->heads[i].row, 1, false);
        return;
    }
    if (!p->weights->has_output) {
        send_rows(p, &x);
        return;
    }
    pd_residual_norm_last(&x, p->weights->output_norm);
    if (logits && p->n_decode == p->n_tokens) {
        pd_op_linear_stream(p->recorder, *logits, &p->weights->output, &x);
        return;
    }
    pd_op_stream_norm(p->recorder, &x);
    if (logits) pd_forward_head(p, *logits, p->n_decode ? 0 : p->n_tokens - 1, p->n_decode ? p->n_decode : 1);
}

void pd_forward_block(const struct pd_forward_args *p, const struct pd_draft_block *b)
{
    struct pd_scratch s = *p->scratch;
    struct pd_forward_args of = *p;
    of.config = b->config;
    of.weights = b->weights;
    of.cache = b->cache;
    of.target = &b->target;
    of.scratch = &s;
    of.places[0] = p->places[b->kind];
    s.normed = b->normed;
    p->recorder->decode = false;
    p->recorder->chunk = true;
    struct pd_residual x = begin_stream(&of);
    pd_residual_norm(&x, b->weights->layers[0].norms[PD_ROLE_ATTN_NORM]);
    pd_op_linear_stream(p->recorder, s.qkv, &b->weights->layers[0].linears[PD_MATRIX_QKV], &x);
    const struct pd_attention keys = attention_of(&of, 0, 0, p->n_tokens);
    pd_op_rope(p->recorder, &keys);
}

void pd_forward_head(const struct pd_forward_args *p, struct pd_rows logits, uint32_t row, uint32_t n)
{
    p->recorder->chunk = false;   /* as few rows as are asked for */
    pd_op_linear(p->recorder, logits, &p->weights->output, pd_rows_at(p->scratch->normed, row, 0), n);
}
