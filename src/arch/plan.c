/* The layer plan: of every tensor of a model what it is for, what it is called in either form of file, its shape in
 * each layer, the matrix of the device that it is part of, and which layers have it. Loading, converting, making and
 * the list of pipelines go by it. */
#include "arch/arch.h"

#include "base/base.h"

#include <stdio.h>
#include <string.h>

enum size { ONE, D_MODEL, N_HEADS, QKV_DIM, Q_DIM, KV_DIM, Q_NORM_DIM, K_NORM_DIM, HALF_HEAD, TWO_FFN_DIMS,
    FFN_DIM, PER_LAYER_DIM, ALL_PER_LAYER_DIMS,
    N_EXPERTS, N_CHOICE_BIASES, SHARED_GATES, EXPERT_DIM, TWO_EXPERT_DIMS, DENSE_2_DIM, DENSE_3_DIM, TARGET_DIM,
    TWO_TARGET_DIMS,
    MIXER_IN_DIM, CONV_DIM, CONV_WIDTH, MIXED_DIM, DELTA_HEADS, DELTA_NORM_DIM,
    DELTA_Z_DIM, DELTA_GATES, MAMBA_BIAS_DIM, MAMBA_HEADS,   /* 0 where recurrences have none */
    ANY };

/* What a layer has, or its model: bits of what rows of the table need and forbid. */
enum {
    PRE_NORMS = 1 << 0, POST_NORMS = 1 << 1, FUSED_QKV = 1 << 2, KV = 1 << 3, V = 1 << 4, QK_NORMS = 1 << 5,
    ATTN_GATE = 1 << 6, QKV_BIASES = 1 << 7, FUSED_QKV_BIAS = 1 << 8, O_BIAS = 1 << 9, FFN_BIASES = 1 << 10,
    FUSED_GATE_UP = 1 << 11, EXPERTS = 1 << 12, EXPERTS_SPLIT = 1 << 13, PER_LAYER = 1 << 14,
    PER_LAYER_PROJECTED = 1 << 15, OUTPUT_SCALE = 1 << 16, UNTIED = 1 << 17, ROPE_FACTORS = 1 << 18,
    LONG_ROPE = 1 << 19, CLASSIFIES = 1 << 20, DENSE_2 = 1 << 21, DENSE_3 = 1 << 22, PROJECTS = 1 << 23,
    DRAFTS = 1 << 24, FFN = 1 << 25, EXPERTS_BESIDE = 1 << 26, RECURS = 1 << 27, ATTENDS = 1 << 28,
    SINKS = 1 << 29, EXPERT_BIASES = 1 << 30
};
#define NEXTN (1u << 31)

/* %u is the layer. Where a family has post norms, Hugging Face's post_attention_layernorm norms attention's output;
 * else it is the norm before the ffn. A classification head of GGUF is a reranker's. */
static const struct row {
    const char *gguf, *hf, *hf_post_norms;   /* of families with post norms or hf_pre_ffn_norm, if it is another */
    enum size rows, cols;          /* rows ONE: a vector */
    uint32_t needs, forbids;       /* of its layer */
    enum pd_layer_matrix matrix;
    bool each_expert;              /* one for each expert */
} table[PD_N_ROLES] = {
    [PD_ROLE_EMBEDDING] = {"token_embd.weight", "embed_tokens.weight", NULL, ANY, D_MODEL},
    [PD_ROLE_OUTPUT] = {"output.weight", "lm_head.weight", NULL, ANY, D_MODEL, UNTIED},
    [PD_ROLE_OUTPUT_NORM] = {"output_norm.weight", "norm.weight", NULL, ONE, D_MODEL},
    [PD_ROLE_ROPE_FREQS] = {"rope_freqs.weight", "", NULL, ONE, HALF_HEAD, ROPE_FACTORS},
    [PD_ROLE_ROPE_SHORT] = {"rope_factors_short.weight", "", NULL, ONE, HALF_HEAD, LONG_ROPE},
    [PD_ROLE_ROPE_LONG] = {"rope_factors_long.weight", "", NULL, ONE, HALF_HEAD, LONG_ROPE},
    [PD_ROLE_SCORE] = {"cls.output.weight", "score.weight", NULL, ANY, D_MODEL, CLASSIFIES},
    [PD_ROLE_SCORE_BIAS] = {"cls.output.bias", "score.bias", NULL, ONE, ANY, CLASSIFIES},
    [PD_ROLE_DENSE_2] = {"dense_2.weight", "dense_2.weight", NULL, DENSE_2_DIM, D_MODEL, DENSE_2, PROJECTS},
    [PD_ROLE_DENSE_3] = {"dense_3.weight", "dense_3.weight", NULL, DENSE_3_DIM, DENSE_2_DIM, DENSE_3},
    [PD_ROLE_EMBEDDING_PROJ] = {"output.weight", "embedding_projection.weight", NULL, DENSE_2_DIM, D_MODEL, PROJECTS},
    [PD_ROLE_PER_LAYER_EMBEDDING] = {"per_layer_token_embd.weight", "embed_tokens_per_layer.weight", NULL, ANY,
        ALL_PER_LAYER_DIMS, PER_LAYER, PER_LAYER_PROJECTED},
    [PD_ROLE_PER_LAYER_MODEL_PROJ] = {"per_layer_model_proj.weight", "per_layer_model_projection.weight", NULL,
        ALL_PER_LAYER_DIMS, D_MODEL, PER_LAYER},
    [PD_ROLE_PER_LAYER_MODEL_NORM] = {"per_layer_proj_norm.weight", "per_layer_projection_norm.weight", NULL, ONE,
        PER_LAYER_DIM, PER_LAYER},
    [PD_ROLE_PRE_PROJ] = {"nextn.pre_projection.weight", "pre_projection.weight", NULL, D_MODEL, TWO_TARGET_DIMS,
        DRAFTS},
    [PD_ROLE_POST_PROJ] = {"nextn.post_projection.weight", "post_projection.weight", NULL, TARGET_DIM, D_MODEL, DRAFTS},
    [PD_ROLE_NEXTN_PROJ] = {"blk.%u.nextn.eh_proj.weight", "fc.weight", NULL, D_MODEL, TWO_TARGET_DIMS, NEXTN},
    [PD_ROLE_NEXTN_E_NORM] = {"blk.%u.nextn.enorm.weight", "pre_fc_norm_embedding.weight", NULL, ONE, D_MODEL, NEXTN},
    [PD_ROLE_NEXTN_H_NORM] = {"blk.%u.nextn.hnorm.weight", "pre_fc_norm_hidden.weight", NULL, ONE, D_MODEL, NEXTN},
    [PD_ROLE_NEXTN_NORM] = {"blk.%u.nextn.shared_head_norm.weight", "norm.weight", NULL, ONE, D_MODEL, NEXTN},
    [PD_ROLE_ATTN_NORM] = {"blk.%u.attn_norm.weight", "layers.%u.input_layernorm.weight", NULL, ONE, D_MODEL,
        PRE_NORMS},
    [PD_ROLE_QKV] = {"blk.%u.attn_qkv.weight", "layers.%u.self_attn.qkv_proj.weight", NULL, QKV_DIM, D_MODEL, FUSED_QKV,
        0, PD_MATRIX_QKV},
    [PD_ROLE_Q] = {"blk.%u.attn_q.weight", "layers.%u.self_attn.q_proj.weight", NULL, Q_DIM, D_MODEL, ATTENDS,
        FUSED_QKV, PD_MATRIX_QKV},
    [PD_ROLE_K] = {"blk.%u.attn_k.weight", "layers.%u.self_attn.k_proj.weight", NULL, KV_DIM, D_MODEL, KV, FUSED_QKV,
        PD_MATRIX_QKV},
    [PD_ROLE_V] = {"blk.%u.attn_v.weight", "layers.%u.self_attn.v_proj.weight", NULL, KV_DIM, D_MODEL, KV | V,
        FUSED_QKV, PD_MATRIX_QKV},
    [PD_ROLE_ATTN_GATE] = {"blk.%u.attn_gate.weight", "layers.%u.self_attn.gate_proj.weight", NULL, Q_DIM, D_MODEL,
        ATTN_GATE, 0, PD_MATRIX_QKV},
    [PD_ROLE_QKV_BIAS] = {"blk.%u.attn_qkv.bias", "", NULL, ONE, QKV_DIM, QKV_BIASES | FUSED_QKV_BIAS, 0,
        PD_MATRIX_QKV},
    [PD_ROLE_Q_BIAS] = {"blk.%u.attn_q.bias", "layers.%u.self_attn.q_proj.bias", NULL, ONE, Q_DIM, QKV_BIASES,
        FUSED_QKV_BIAS, PD_MATRIX_QKV},
    [PD_ROLE_K_BIAS] = {"blk.%u.attn_k.bias", "layers.%u.self_attn.k_proj.bias", NULL, ONE, KV_DIM, QKV_BIASES | KV,
        FUSED_QKV_BIAS, PD_MATRIX_QKV},
    [PD_ROLE_V_BIAS] = {"blk.%u.attn_v.bias", "layers.%u.self_attn.v_proj.bias", NULL, ONE, KV_DIM, QKV_BIASES | KV | V,
        FUSED_QKV_BIAS, PD_MATRIX_QKV},
    [PD_ROLE_O] = {"blk.%u.attn_output.weight", "layers.%u.self_attn.o_proj.weight", NULL, D_MODEL, Q_DIM,
        ATTENDS, 0, PD_MATRIX_O},
    [PD_ROLE_O_BIAS] = {"blk.%u.attn_output.bias", "layers.%u.self_attn.o_proj.bias", NULL, ONE, D_MODEL, O_BIAS, 0,
        PD_MATRIX_O},
    [PD_ROLE_SINKS] = {"blk.%u.attn_sinks.weight", "layers.%u.self_attn.sinks", NULL, ONE, N_HEADS, SINKS},
    [PD_ROLE_Q_NORM] = {"blk.%u.attn_q_norm.weight", "layers.%u.self_attn.q_norm.weight", NULL, ONE, Q_NORM_DIM,
        QK_NORMS},
    [PD_ROLE_K_NORM] = {"blk.%u.attn_k_norm.weight", "layers.%u.self_attn.k_norm.weight", NULL, ONE, K_NORM_DIM,
        QK_NORMS | KV},
    [PD_ROLE_DELTA_QKV] = {"blk.%u.attn_qkv.weight", "layers.%u.linear_attn.in_proj_qkv.weight", NULL,
        MIXER_IN_DIM, D_MODEL, RECURS, 0, PD_MATRIX_QKV},
    [PD_ROLE_DELTA_Z] = {"blk.%u.attn_gate.weight", "layers.%u.linear_attn.in_proj_z.weight", NULL, DELTA_Z_DIM,
        D_MODEL, RECURS, 0, PD_MATRIX_QKV},
    [PD_ROLE_DELTA_B] = {"blk.%u.ssm_beta.weight", "layers.%u.linear_attn.in_proj_b.weight", NULL, DELTA_GATES, D_MODEL,
        RECURS, 0, PD_MATRIX_QKV},
    [PD_ROLE_DELTA_A] = {"blk.%u.ssm_alpha.weight", "layers.%u.linear_attn.in_proj_a.weight", NULL, DELTA_GATES,
        D_MODEL, RECURS, 0, PD_MATRIX_QKV},
    [PD_ROLE_DELTA_CONV] = {"blk.%u.ssm_conv1d.weight", "layers.%u.linear_attn.conv1d.weight", NULL, CONV_DIM,
        CONV_WIDTH, RECURS},
    [PD_ROLE_DELTA_DT] = {"blk.%u.ssm_dt.bias", "layers.%u.linear_attn.dt_bias", NULL, ONE, DELTA_HEADS, RECURS},
    [PD_ROLE_DELTA_DECAY] = {"blk.%u.ssm_a", "layers.%u.linear_attn.A_log", NULL, ONE, DELTA_HEADS, RECURS},
    [PD_ROLE_DELTA_NORM] = {"blk.%u.ssm_norm.weight", "layers.%u.linear_attn.norm.weight", NULL, ONE, DELTA_NORM_DIM,
        RECURS},
    [PD_ROLE_DELTA_O] = {"blk.%u.ssm_out.weight", "layers.%u.linear_attn.out_proj.weight", NULL, D_MODEL, MIXED_DIM,
        RECURS, 0, PD_MATRIX_O},
    [PD_ROLE_DELTA_CONV_BIAS] = {"blk.%u.ssm_conv1d.bias", "layers.%u.mamba.conv1d.bias", NULL, ONE, MAMBA_BIAS_DIM,
        RECURS},
    [PD_ROLE_DELTA_SKIP] = {"blk.%u.ssm_d", "layers.%u.mamba.D", NULL, ONE, MAMBA_HEADS, RECURS},
    [PD_ROLE_POST_ATTN_NORM] = {"blk.%u.post_attention_norm.weight", "layers.%u.post_attention_layernorm.weight", NULL,
        ONE, D_MODEL, POST_NORMS},
    [PD_ROLE_FFN_NORM] = {"blk.%u.ffn_norm.weight", "layers.%u.post_attention_layernorm.weight",
        "layers.%u.pre_feedforward_layernorm.weight", ONE, D_MODEL, PRE_NORMS},
    [PD_ROLE_GATE_UP] = {"blk.%u.ffn_up.weight", "layers.%u.mlp.gate_up_proj.weight", NULL, TWO_FFN_DIMS, D_MODEL,
        FUSED_GATE_UP | FFN, 0, PD_MATRIX_GATE_UP},
    [PD_ROLE_GATE] = {"blk.%u.ffn_gate.weight", "layers.%u.mlp.gate_proj.weight", NULL, FFN_DIM, D_MODEL, FFN,
        FUSED_GATE_UP, PD_MATRIX_GATE_UP},
    [PD_ROLE_UP] = {"blk.%u.ffn_up.weight", "layers.%u.mlp.up_proj.weight", NULL, FFN_DIM, D_MODEL, FFN, FUSED_GATE_UP,
        PD_MATRIX_GATE_UP},
    [PD_ROLE_GATE_BIAS] = {"blk.%u.ffn_gate.bias", "layers.%u.mlp.gate_proj.bias", NULL, ONE, FFN_DIM,
        FFN | FFN_BIASES, 0, PD_MATRIX_GATE_UP},
    [PD_ROLE_UP_BIAS] = {"blk.%u.ffn_up.bias", "layers.%u.mlp.up_proj.bias", NULL, ONE, FFN_DIM, FFN | FFN_BIASES, 0,
        PD_MATRIX_GATE_UP},
    [PD_ROLE_DOWN] = {"blk.%u.ffn_down.weight", "layers.%u.mlp.down_proj.weight", NULL, D_MODEL, FFN_DIM, FFN, 0,
        PD_MATRIX_DOWN},
    [PD_ROLE_DOWN_BIAS] = {"blk.%u.ffn_down.bias", "layers.%u.mlp.down_proj.bias", NULL, ONE, D_MODEL,
        FFN | FFN_BIASES, 0, PD_MATRIX_DOWN},
    [PD_ROLE_POST_FFN_NORM] = {"blk.%u.post_ffw_norm.weight", "layers.%u.post_feedforward_layernorm.weight", NULL, ONE,
        D_MODEL, POST_NORMS},
    [PD_ROLE_POST_DENSE_NORM] = {"blk.%u.post_ffw_norm_1.weight", "layers.%u.post_feedforward_layernorm_1.weight", NULL,
        ONE, D_MODEL, EXPERTS_BESIDE},
    [PD_ROLE_EXPERTS_NORM] = {"blk.%u.pre_ffw_norm_2.weight", "layers.%u.pre_feedforward_layernorm_2.weight", NULL, ONE,
        D_MODEL, EXPERTS_BESIDE},
    [PD_ROLE_POST_EXPERTS_NORM] = {"blk.%u.post_ffw_norm_2.weight", "layers.%u.post_feedforward_layernorm_2.weight",
        NULL, ONE, D_MODEL, EXPERTS_BESIDE},
    [PD_ROLE_ROUTER] = {"blk.%u.ffn_gate_inp.weight", "layers.%u.router.proj.weight", NULL, N_EXPERTS, D_MODEL, EXPERTS,
        0, PD_MATRIX_ROUTER},
    [PD_ROLE_SHARED_GATE] = {"blk.%u.ffn_gate_inp_shexp.weight", "layers.%u.mlp.shared_expert_gate.weight", NULL,
        SHARED_GATES, D_MODEL, EXPERTS, 0, PD_MATRIX_ROUTER},
    [PD_ROLE_ROUTER_BIAS] = {"blk.%u.ffn_gate_inp.bias", "layers.%u.mlp.router.bias", NULL, ONE, N_EXPERTS,
        EXPERT_BIASES, 0, PD_MATRIX_ROUTER},
    [PD_ROLE_ROUTER_SCALE] = {"blk.%u.ffn_gate_inp.scale", "layers.%u.router.scale", NULL, ONE, D_MODEL,
        EXPERTS_BESIDE},
    [PD_ROLE_EXPERT_SCALES] = {"blk.%u.ffn_down_exps.scale", "layers.%u.router.per_expert_scale", NULL, ONE, N_EXPERTS,
        EXPERTS_BESIDE},
    [PD_ROLE_CHOICE_BIASES] = {"blk.%u.exp_probs_b.bias", "layers.%u.feed_forward.expert_bias", NULL, ONE,
        N_CHOICE_BIASES, EXPERTS},
    [PD_ROLE_EXPERTS_GATE_UP] = {"blk.%u.ffn_gate_up_exps.weight", "layers.%u.experts.gate_up_proj", NULL,
        TWO_EXPERT_DIMS, D_MODEL, EXPERTS, EXPERTS_SPLIT, PD_MATRIX_EXPERTS_GATE_UP, true},
    [PD_ROLE_EXPERTS_GATE] = {"blk.%u.ffn_gate_exps.weight", "", NULL, EXPERT_DIM, D_MODEL, EXPERTS | EXPERTS_SPLIT, 0,
        PD_MATRIX_EXPERTS_GATE_UP, true},
    [PD_ROLE_EXPERTS_UP] = {"blk.%u.ffn_up_exps.weight", "", NULL, EXPERT_DIM, D_MODEL, EXPERTS | EXPERTS_SPLIT, 0,
        PD_MATRIX_EXPERTS_GATE_UP, true},
    [PD_ROLE_EXPERTS_GATE_BIAS] = {"blk.%u.ffn_gate_exps.bias", "layers.%u.mlp.experts.gate_proj_bias", NULL, ONE,
        EXPERT_DIM, EXPERT_BIASES, 0, PD_MATRIX_EXPERTS_GATE_UP, true},
    [PD_ROLE_EXPERTS_UP_BIAS] = {"blk.%u.ffn_up_exps.bias", "layers.%u.mlp.experts.up_proj_bias", NULL, ONE,
        EXPERT_DIM, EXPERT_BIASES, 0, PD_MATRIX_EXPERTS_GATE_UP, true},
    [PD_ROLE_EXPERTS_DOWN] = {"blk.%u.ffn_down_exps.weight", "layers.%u.experts.down_proj", NULL, D_MODEL, EXPERT_DIM,
        EXPERTS, 0, PD_MATRIX_EXPERTS_DOWN, true},
    [PD_ROLE_EXPERTS_DOWN_BIAS] = {"blk.%u.ffn_down_exps.bias", "layers.%u.mlp.experts.down_proj_bias", NULL, ONE,
        D_MODEL, EXPERT_BIASES, 0, PD_MATRIX_EXPERTS_DOWN, true},
    [PD_ROLE_PER_LAYER_GATE] = {"blk.%u.inp_gate.weight", "layers.%u.per_layer_input_gate.weight", NULL, PER_LAYER_DIM,
        D_MODEL, PER_LAYER, 0, PD_MATRIX_PER_LAYER_GATE},
    [PD_ROLE_PER_LAYER_PROJ] = {"blk.%u.proj.weight", "layers.%u.per_layer_projection.weight", NULL, D_MODEL,
        PER_LAYER_DIM, PER_LAYER, 0, PD_MATRIX_PER_LAYER_PROJ},
    [PD_ROLE_POST_PER_LAYER_NORM] = {"blk.%u.post_norm.weight", "layers.%u.post_per_layer_input_norm.weight", NULL, ONE,
        D_MODEL, PER_LAYER},
    [PD_ROLE_OUTPUT_SCALE] = {"blk.%u.layer_output_scale.weight", "layers.%u.layer_scalar", NULL, ONE, ONE,
        OUTPUT_SCALE},
};

static uint32_t properties_of(const struct pd_config *c, uint32_t layer)
{
    const struct pd_layer *l = &c->layers[layer];
    bool projects = c->family == PD_GEMMA_EMBEDDING2;
    const struct { bool has; uint32_t bit; } all[] = {
        {l->pre_norms, PRE_NORMS}, {l->post_norms, POST_NORMS}, {l->fused_qkv, FUSED_QKV},
        {pd_layer_owns_kv(c, layer) && !pd_layer_recurs(l), KV}, {l->has_v, V},
        {l->qk_norms || l->whole_qk_norms, QK_NORMS}, {l->attn_gate, ATTN_GATE},
        {l->qkv_biases, QKV_BIASES}, {l->fused_qkv_bias, FUSED_QKV_BIAS},
        {l->o_bias, O_BIAS}, {l->ffn_biases, FFN_BIASES}, {c->fused_gate_up, FUSED_GATE_UP},
        {l->ffn_dim != 0, FFN}, {l->n_experts != 0, EXPERTS}, {l->experts_beside, EXPERTS_BESIDE},
        {l->experts_split, EXPERTS_SPLIT}, {l->sinks, SINKS}, {l->expert_biases, EXPERT_BIASES},
        {c->per_layer_dim != 0, PER_LAYER},
        {pd_families[c->family].per_layer_projected, PER_LAYER_PROJECTED}, {l->output_scale, OUTPUT_SCALE},
        {!c->tied && c->head == PERIDOT_HEAD_LANGUAGE, UNTIED}, {pd_rope_needs_factors(c), ROPE_FACTORS},
        {c->ropes[PD_ROPE_GLOBAL].is_long, LONG_ROPE},
        {c->head == PERIDOT_HEAD_SEQUENCE || c->head == PERIDOT_HEAD_TOKEN, CLASSIFIES},
        {c->embedding.n_dense > 0, DENSE_2}, {c->embedding.n_dense > 1, DENSE_3}, {projects, PROJECTS},
        {c->target_dim && !c->nextn_at, DRAFTS}, {c->nextn_at != 0, NEXTN},
        {pd_layer_recurs(l), RECURS}, {!pd_layer_recurs(l), ATTENDS}};
    uint32_t properties = 0;
    for (size_t i = 0; i < PD_COUNT(all); i++) properties |= all[i].has ? all[i].bit : 0;
    return properties;
}

static uint32_t size_of(const struct pd_config *c, enum size size, uint32_t i)
{
    const struct pd_layer *layer = &c->layers[i];
    switch (size) {
    case ONE: return 1;
    case D_MODEL: return c->d_model;
    case N_HEADS: return layer->n_heads;
    case QKV_DIM: return pd_layer_q_dim(layer) + 2 * pd_layer_kv_dim(layer);
    case Q_DIM: return pd_layer_q_dim(layer);
    case KV_DIM: return pd_layer_kv_dim(layer);
    case Q_NORM_DIM: return layer->whole_qk_norms ? pd_layer_q_dim(layer) : layer->head_dim;
    case K_NORM_DIM: return layer->whole_qk_norms ? pd_layer_kv_dim(layer) : layer->head_dim;
    case HALF_HEAD: return pd_rope_global_layer(c)->n_rotated / 2;
    case TWO_FFN_DIMS: return 2 * layer->ffn_dim;
    case FFN_DIM: return layer->ffn_dim;
    case PER_LAYER_DIM: return c->per_layer_dim;
    case N_EXPERTS: return layer->n_experts;
    case N_CHOICE_BIASES: return layer->choice_biases ? layer->n_experts : 0;
    case SHARED_GATES: return layer->shared_gate;
    case EXPERT_DIM: return layer->expert_dim;
    case TWO_EXPERT_DIMS: return 2 * layer->expert_dim;
    case ALL_PER_LAYER_DIMS: return c->n_layers * c->per_layer_dim;
    case DENSE_2_DIM: return c->embedding.dense_dims[0];
    case DENSE_3_DIM: return c->embedding.dense_dims[1];
    case TARGET_DIM: return c->target_dim;
    case TWO_TARGET_DIMS: return 2 * c->target_dim;
    case MIXER_IN_DIM:
        if (layer->delta.n_channels || layer->delta.mamba) return pd_layer_qkv_dim(c, i);
        return pd_delta_conv_dim(&layer->delta);
    case CONV_DIM: return pd_delta_conv_dim(&layer->delta);
    case CONV_WIDTH: return layer->delta.conv;
    case MIXED_DIM: return pd_delta_dim(&layer->delta);
    case DELTA_HEADS: return layer->delta.n_v;
    case DELTA_NORM_DIM: return layer->delta.mamba ? pd_delta_dim(&layer->delta) : layer->delta.d_v;
    case DELTA_Z_DIM: return layer->delta.mamba ? 0 : layer->delta.n_v * layer->delta.d_v;
    case DELTA_GATES: return layer->delta.mamba ? 0 : layer->delta.n_v;
    case MAMBA_BIAS_DIM: return layer->delta.conv_bias ? pd_delta_conv_dim(&layer->delta) : 0;
    case MAMBA_HEADS: return layer->delta.mamba ? layer->delta.n_v : 0;
    case ANY: break;
    }
    return PD_ANY_SIZE;
}

static uint32_t n_rotated_rows(const struct pd_config *c, const struct pd_plan *plan)
{
    const struct pd_layer *l = &c->layers[plan->layer];
    switch ((int)plan->role) {
    case PD_ROLE_QKV: case PD_ROLE_QKV_BIAS: return pd_layer_q_dim(l) + pd_layer_kv_dim(l);
    case PD_ROLE_Q: return pd_layer_q_dim(l);
    case PD_ROLE_K: return plan->n_rows;
    case PD_ROLE_Q_BIAS: case PD_ROLE_K_BIAS: case PD_ROLE_Q_NORM: case PD_ROLE_K_NORM: return plan->n_cols;
    }
    return 0;
}

/* Hugging Face files centre the weights of norms on zero in some families, all or all but the last. */
static bool is_centred(const struct pd_config *c, const struct pd_plan *plan)
{
    bool of_delta = plan->role >= PD_ROLE_DELTA_QKV && plan->role <= PD_ROLE_DELTA_SKIP;
    bool norm = plan->n_dims == 1 && !plan->is_bias && plan->role != PD_ROLE_OUTPUT_SCALE && plan->role != PD_ROLE_SINKS
        && !of_delta;
    bool plain = plan->role == PD_ROLE_OUTPUT_NORM && pd_families[c->family].hf_plain_output_norm;
    return c->norm_plus_one && norm && !plain;
}

bool pd_value_order_differs(const struct pd_value_order *o)
{
    return o->block || (o->width && o->each > 1 && o->n_k > 1);
}

static uint32_t row_in_block(const struct pd_value_order *o, uint32_t row)
{
    uint32_t d_k = o->first / 2 / o->n_k, of_values = o->each * o->width;
    if (row < o->first) return row / d_k % o->n_k * o->block + row / (o->n_k * d_k) * d_k + row % d_k;
    row -= o->first;
    return row / of_values * o->block + o->at + row % of_values;
}

uint32_t pd_value_order_row(const struct pd_value_order *o, uint32_t row)
{
    if (o->block) return row_in_block(o, row);
    if (!pd_value_order_differs(o) || row < o->first) return row;
    uint32_t head = (row - o->first) / o->width, in_file = head % o->n_k * o->each + head / o->n_k;
    return o->first + in_file * o->width + (row - o->first) % o->width;
}

static void order_values(struct pd_plan *plan, const struct pd_delta *d)
{
    struct pd_value_order order = {.n_k = d->n_k, .each = d->n_v / d->n_k, .width = d->d_v};
    switch ((int)plan->role) {
    case PD_ROLE_DELTA_QKV: case PD_ROLE_DELTA_CONV: order.first = 2 * d->n_k * d->d_k; break;
    case PD_ROLE_DELTA_B: case PD_ROLE_DELTA_A: case PD_ROLE_DELTA_DT: case PD_ROLE_DELTA_DECAY: order.width = 1; break;
    case PD_ROLE_DELTA_Z: break;
    case PD_ROLE_DELTA_O: plan->value_columns = order; return;
    default: return;
    }
    plan->value_rows = order;
}

/* Of a role whose rows are in a tensor with those of another, which comes after it where it is not `again`. */
static void take_rows(struct pd_plan *plan, struct pd_value_order order, uint32_t n_others, bool again)
{
    plan->value_rows = order;
    plan->n_taken = plan->n_rows;
    plan->n_rows += n_others;
    plan->again = again;
}

static void take_blocks(struct pd_plan *plan, const struct pd_delta *d)
{
    uint32_t each = d->n_v / d->n_k, of_values = each * d->d_v, dim = d->n_v * d->d_v, conv_dim = pd_delta_conv_dim(d);
    struct pd_value_order order = {.n_k = d->n_k, .each = each, .width = d->d_v, .block = 2 * (d->d_k + of_values),
        .at = 2 * d->d_k}, gates = {.n_k = d->n_k, .each = each, .width = 1, .block = 2 * each};
    if (plan->role == PD_ROLE_DELTA_B) take_rows(plan, gates, d->n_v, false);
    gates.at = each;
    if (plan->role == PD_ROLE_DELTA_A) take_rows(plan, gates, d->n_v, true);
    if (!d->fused_qkvz) return;
    if (plan->role == PD_ROLE_DELTA_Z) order.at += of_values;
    if (plan->role == PD_ROLE_DELTA_Z) take_rows(plan, order, conv_dim, true);
    order.first = 2 * d->n_k * d->d_k;
    if (plan->role == PD_ROLE_DELTA_QKV) take_rows(plan, order, dim, false);
}

/* Numbers of Mamba-2's heads are a column in GGUF files, and its norm has a row for each group of heads. */
static uint32_t split_of(const struct pd_delta *d, enum pd_role role)
{
    if (!d->mamba) return 0;
    return role == PD_ROLE_DELTA_NORM ? d->n_k : role == PD_ROLE_DELTA_DECAY || role == PD_ROLE_DELTA_SKIP ? d->n_v : 0;
}

static float constant_of(const struct pd_config *c, enum pd_role role)
{
    return role == PD_ROLE_Q_NORM ? c->q_norm_weight : role == PD_ROLE_K_NORM && c->q_norm_weight != 0 ? 1 : 0;
}

/* Of a matrix. */
static bool is_bias(enum pd_role role)
{
    bool other = role == PD_ROLE_DELTA_DT || role == PD_ROLE_DELTA_CONV_BIAS || role == PD_ROLE_CHOICE_BIASES;
    return role >= PD_FIRST_LAYER_ROLE && !other && strstr(table[role].gguf, ".bias");
}

bool pd_plan_get(struct pd_plan *out, const struct pd_config *c, enum pd_role role, uint32_t layer)
{
    const struct row *row = &table[role];
    bool of_experts = row->rows == ONE && row->each_expert;
    *out = (struct pd_plan){.role = role, .layer = layer, .n_dims = (row->rows == ONE ? 1 : 2) + row->each_expert,
        .n_experts = row->each_expert ? c->layers[layer].n_experts : 0,
        .n_rows = of_experts ? c->layers[layer].n_experts : size_of(c, row->rows, layer),
        .n_cols = size_of(c, row->cols, layer), .matrix = row->matrix,
        .is_bias = is_bias(role),
        .is_vector = (row->rows == ONE && !of_experts) || role == PD_ROLE_DELTA_CONV};
    if (c->layers[layer].gate_in_q && (role == PD_ROLE_Q || role == PD_ROLE_ATTN_GATE)) {
        out->head_half = role == PD_ROLE_Q ? 1 : 2;
        out->again = role == PD_ROLE_ATTN_GATE;
        out->n_taken = out->n_rows;
        out->n_rows *= 2;
    }
    out->n_rotated_rows = n_rotated_rows(c, out);
    const struct pd_delta *delta = &c->layers[layer].delta;
    if (delta->grouped) take_blocks(out, delta);
    else if (c->hf_recurrences && delta->n_v && !delta->mamba) order_values(out, delta);
    out->split = split_of(delta, role);
    out->plus_one = is_centred(c, out);
    out->constant = constant_of(c, role);
    uint32_t properties = properties_of(c, layer);
    bool has_any = out->n_rows && out->n_cols;   /* a short convolution has no rows of a rule's tensors, for one */
    return has_any && (properties & row->needs) == row->needs && !(properties & row->forbids);
}

/* ---- names ---- */

static void write_name(char out[PD_TENSOR_NAME_SIZE], const char *prefix, const char *format, uint32_t layer)
{
    const char *percent = strstr(format, "%u");
    if (percent)
        snprintf(out, PD_TENSOR_NAME_SIZE, "%s%.*s%u%s", prefix, (int)(percent - format), format, (unsigned)layer,
                 percent + 2);
    else
        snprintf(out, PD_TENSOR_NAME_SIZE, "%s%s", prefix, format);
}

/* Of a gated unit that is one of the experts. */
static const struct shared_names {
    enum pd_role role;
    const char *gguf, *hf;
} shared_names[] = {
    {PD_ROLE_GATE, "blk.%u.ffn_gate_shexp.weight", "layers.%u.mlp.shared_expert.gate_proj.weight"},
    {PD_ROLE_UP, "blk.%u.ffn_up_shexp.weight", "layers.%u.mlp.shared_expert.up_proj.weight"},
    {PD_ROLE_DOWN, "blk.%u.ffn_down_shexp.weight", "layers.%u.mlp.shared_expert.down_proj.weight"}};

static const struct shared_names *shared_find(enum pd_role role)
{
    for (size_t i = 0; i < PD_COUNT(shared_names); i++)
        if (shared_names[i].role == role) return &shared_names[i];
    return NULL;
}

/* Names of a family's own; gguf NULL: as in the table. */
struct own_name { enum pd_role role; const char *gguf, *hf; };

/* LFM2's, whose last norm is misnamed in GGUF files. */
static const struct own_name short_conv_names[] = {
    {PD_ROLE_OUTPUT_NORM, "token_embd_norm.weight", "embedding_norm.weight"},
    {PD_ROLE_ATTN_NORM, NULL, "layers.%u.operator_norm.weight"},
    {PD_ROLE_O, NULL, "layers.%u.self_attn.out_proj.weight"},
    {PD_ROLE_Q_NORM, NULL, "layers.%u.self_attn.q_layernorm.weight"},
    {PD_ROLE_K_NORM, NULL, "layers.%u.self_attn.k_layernorm.weight"},
    {PD_ROLE_DELTA_QKV, "blk.%u.shortconv.in_proj.weight", "layers.%u.conv.in_proj.weight"},
    {PD_ROLE_DELTA_CONV, "blk.%u.shortconv.conv.weight", "layers.%u.conv.conv.weight"},
    {PD_ROLE_DELTA_O, "blk.%u.shortconv.out_proj.weight", "layers.%u.conv.out_proj.weight"},
    {PD_ROLE_FFN_NORM, NULL, "layers.%u.ffn_norm.weight"},
    {PD_ROLE_GATE, NULL, "layers.%u.feed_forward.w1.weight"},
    {PD_ROLE_UP, NULL, "layers.%u.feed_forward.w3.weight"},
    {PD_ROLE_DOWN, NULL, "layers.%u.feed_forward.w2.weight"},
};

static const struct own_name mamba_names[] = {
    {PD_ROLE_DELTA_QKV, "blk.%u.ssm_in.weight", "layers.%u.mamba.in_proj.weight"},
    {PD_ROLE_DELTA_CONV, NULL, "layers.%u.mamba.conv1d.weight"},
    {PD_ROLE_DELTA_DT, NULL, "layers.%u.mamba.dt_bias"},
    {PD_ROLE_DELTA_DECAY, NULL, "layers.%u.mamba.A_log"},
    {PD_ROLE_DELTA_NORM, NULL, "layers.%u.mamba.norm.weight"},
    {PD_ROLE_DELTA_O, NULL, "layers.%u.mamba.out_proj.weight"},
};

/* Qwen3-Next's: z and a are in the tensors of what comes before them. */
static const struct own_name grouped_names[] = {
    {PD_ROLE_DELTA_QKV, NULL, "layers.%u.linear_attn.in_proj_qkvz.weight"},
    {PD_ROLE_DELTA_Z, NULL, "layers.%u.linear_attn.in_proj_qkvz.weight"},
    {PD_ROLE_DELTA_B, "blk.%u.ssm_ba.weight", "layers.%u.linear_attn.in_proj_ba.weight"},
    {PD_ROLE_DELTA_A, "blk.%u.ssm_ba.weight", "layers.%u.linear_attn.in_proj_ba.weight"},
};

static const char *own_format(enum pd_family family, enum pd_role role, bool gguf, const char *format)
{
    bool mamba = pd_families[family].mamba, grouped = pd_families[family].grouped_values;
    const struct own_name *names = mamba ? mamba_names : grouped ? grouped_names : short_conv_names;
    size_t n = mamba                           ? PD_COUNT(mamba_names)
        : grouped                              ? PD_COUNT(grouped_names)
        : pd_families[family].short_convs      ? PD_COUNT(short_conv_names)
                                               : 0;
    for (size_t i = 0; i < n; i++)
        if (names[i].role == role && (gguf ? names[i].gguf : names[i].hf))
            return gguf ? names[i].gguf : names[i].hf;
    return format;
}

void pd_tensor_name_gguf(char out[PD_TENSOR_NAME_SIZE], enum pd_role role, uint32_t layer, enum pd_family family)
{
    bool post_attention = role == PD_ROLE_FFN_NORM && pd_families[family].gguf_post_attention_norm;
    const struct shared_names *shared = pd_families[family].shared_expert ? shared_find(role) : NULL;
    const char *format = shared ? shared->gguf : table[post_attention ? PD_ROLE_POST_ATTN_NORM : role].gguf;
    write_name(out, "", own_format(family, role, true, format), layer);
}

/* Where the tensors of layers' own inputs are in a block of the layer's, and in one of the model's. */
static void nest_name(char out[PD_TENSOR_NAME_SIZE], const char *format)
{
    static const char layer[] = "layers.%u.";
    if (strncmp(format, layer, strlen(layer)) == 0)
        snprintf(out, PD_TENSOR_NAME_SIZE, "%sple_block.%s", layer, format + strlen(layer));
    else snprintf(out, PD_TENSOR_NAME_SIZE, "ple.%s", format);
}

/* Of a unit that experts share, or would. */
static const char *shared_format(enum pd_role role, const char *format)
{
    return role == PD_ROLE_GATE_UP ? "layers.%u.shared_mlp.input_linear.weight"
        : role == PD_ROLE_DOWN     ? "layers.%u.shared_mlp.output_linear.weight"
                                   : format;
}

/* Of experts and what chooses them; Gemma's are in the table. */
static const struct {
    enum pd_hf_experts names;
    enum pd_role role;
    const char *format;
} expert_names[] = {
    {PD_HF_EXPERTS_QWEN, PD_ROLE_ROUTER, "layers.%u.mlp.gate.weight"},
    {PD_HF_EXPERTS_QWEN, PD_ROLE_EXPERTS_GATE, "layers.%u.mlp.experts.gate_proj.weight"},
    {PD_HF_EXPERTS_QWEN, PD_ROLE_EXPERTS_UP, "layers.%u.mlp.experts.up_proj.weight"},
    {PD_HF_EXPERTS_QWEN, PD_ROLE_EXPERTS_DOWN, "layers.%u.mlp.experts.down_proj.weight"},
    {PD_HF_EXPERTS_MIXTRAL, PD_ROLE_ROUTER, "layers.%u.block_sparse_moe.gate.weight"},
    {PD_HF_EXPERTS_MIXTRAL, PD_ROLE_EXPERTS_GATE, "layers.%u.block_sparse_moe.experts.w1.weight"},
    {PD_HF_EXPERTS_MIXTRAL, PD_ROLE_EXPERTS_UP, "layers.%u.block_sparse_moe.experts.w3.weight"},
    {PD_HF_EXPERTS_MIXTRAL, PD_ROLE_EXPERTS_DOWN, "layers.%u.block_sparse_moe.experts.w2.weight"},
    {PD_HF_EXPERTS_GRANITE, PD_ROLE_ROUTER, "layers.%u.block_sparse_moe.router.layer.weight"},
    {PD_HF_EXPERTS_GRANITE, PD_ROLE_EXPERTS_GATE_UP, "layers.%u.block_sparse_moe.input_linear.weight"},
    {PD_HF_EXPERTS_GRANITE, PD_ROLE_EXPERTS_DOWN, "layers.%u.block_sparse_moe.output_linear.weight"},
    {PD_HF_EXPERTS_LFM2, PD_ROLE_ROUTER, "layers.%u.feed_forward.gate.weight"},
    {PD_HF_EXPERTS_LFM2, PD_ROLE_EXPERTS_GATE, "layers.%u.feed_forward.experts.w1.weight"},
    {PD_HF_EXPERTS_LFM2, PD_ROLE_EXPERTS_UP, "layers.%u.feed_forward.experts.w3.weight"},
    {PD_HF_EXPERTS_LFM2, PD_ROLE_EXPERTS_DOWN, "layers.%u.feed_forward.experts.w2.weight"},
    {PD_HF_EXPERTS_GPT_OSS, PD_ROLE_ROUTER, "layers.%u.mlp.router.weight"},
    {PD_HF_EXPERTS_GPT_OSS, PD_ROLE_EXPERTS_GATE, "layers.%u.mlp.experts.gate_proj"},
    {PD_HF_EXPERTS_GPT_OSS, PD_ROLE_EXPERTS_UP, "layers.%u.mlp.experts.up_proj"},
    {PD_HF_EXPERTS_GPT_OSS, PD_ROLE_EXPERTS_DOWN, "layers.%u.mlp.experts.down_proj"},
};

static const char *expert_format(enum pd_hf_experts names, enum pd_role role, const char *format)
{
    for (size_t i = 0; i < PD_COUNT(expert_names); i++)
        if (expert_names[i].names == names && expert_names[i].role == role) return expert_names[i].format;
    return format;
}

void pd_tensor_name_hf(char out[PD_TENSOR_NAME_SIZE], enum pd_role role, uint32_t layer, enum pd_family family,
                       const char *prefix)
{
    bool pre_ffn_norm = pd_families[family].post_norms || pd_families[family].hf_pre_ffn_norm;
    const char *format = pre_ffn_norm && table[role].hf_post_norms ? table[role].hf_post_norms : table[role].hf;
    char nested[PD_TENSOR_NAME_SIZE] = "";
    const struct shared_names *shared = pd_families[family].shared_expert ? shared_find(role) : NULL;
    if (shared) format = shared->hf;
    if (pd_families[family].hf_shared_unit) format = shared_format(role, format);
    format = expert_format(pd_families[family].hf_experts, role, format);
    format = own_format(family, role, false, format);
    /* Output matrices lie outside "model.". */
    bool outside = role == PD_ROLE_SCORE || role == PD_ROLE_SCORE_BIAS || role == PD_ROLE_DENSE_2
        || role == PD_ROLE_DENSE_3 || role == PD_ROLE_PRE_PROJ || role == PD_ROLE_POST_PROJ;
    if (outside) prefix = "";
    else if (role == PD_ROLE_OUTPUT) prefix = strncmp(prefix, "language_model.", 15) == 0 ? "language_model." : "";
    if (pd_families[family].per_layer_projected && table[role].needs == PER_LAYER)
        nest_name(nested, format);
    write_name(out, *format ? prefix : "", *nested ? nested : format, layer);
}

/* Plain, inside a multimodal model (old and new style), or a base model by itself. */
static const char *const prefixes[] = {"model.", "language_model.model.", "model.language_model.", "language_model.",
    ""};

const char *pd_tensor_prefix(const struct pd_checkpoint *c)
{
    char name[PD_TENSOR_NAME_SIZE];
    if (pd_checkpoint_kind(c) == PD_CHECKPOINT_GGUF) return "";
    for (size_t i = 0; i < PD_COUNT(prefixes); i++) {
        snprintf(name, sizeof name, "%snorm.weight", prefixes[i]);
        if (pd_checkpoint_find(c, name)) return prefixes[i];
    }
    return prefixes[0];
}

const char *pd_tensor_prefix_of_layers(const struct pd_checkpoint *c, const char *before)
{
    char begin[PD_TENSOR_NAME_SIZE];
    for (size_t i = 0; i < PD_COUNT(prefixes); i++) {
        int size = snprintf(begin, sizeof begin, "%s%slayers.", before, prefixes[i]);
        for (size_t t = 0; t < pd_checkpoint_n_tensors(c); t++)
            if (strncmp(pd_checkpoint_tensor(c, t)->name, begin, (size_t)size) == 0) return prefixes[i];
    }
    return NULL;
}

void pd_tensor_name(char out[PD_TENSOR_NAME_SIZE], const struct pd_checkpoint *c, enum pd_family family,
                    const char *prefix, enum pd_role role, uint32_t layer)
{
    if (role == PD_ROLE_ATTN_GATE && pd_families[family].gate_in_q) role = PD_ROLE_Q;
    if (pd_checkpoint_kind(c) == PD_CHECKPOINT_GGUF) pd_tensor_name_gguf(out, role, layer, family);
    else pd_tensor_name_hf(out, role, layer, family, prefix);
    /* llama.cpp's converter once left q, k, v and z as they are. */
    bool may_be_fused = pd_families[family].grouped_values && (role == PD_ROLE_DELTA_QKV || role == PD_ROLE_DELTA_Z);
    char fused[PD_TENSOR_NAME_SIZE];
    snprintf(fused, sizeof fused, "blk.%u.ssm_in.weight", (unsigned)layer);
    if (may_be_fused && pd_checkpoint_find(c, fused)) memcpy(out, fused, sizeof fused);
}
