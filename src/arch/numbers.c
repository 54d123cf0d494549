#include "arch/numbers.h"

#include "params.h"

const struct pd_number_row pd_numbers[PD_N_NUMBERS] = {
    [PD_NUMBER_LAYERS] = {"num_hidden_layers", "block_count", 1, 1024},
    [PD_NUMBER_D_MODEL] = {"hidden_size", "embedding_length", 4, 32768, 4},
    [PD_NUMBER_CTX] = {"max_position_embeddings", "context_length", 1, 1 << 27},
    [PD_NUMBER_VOCAB_SIZE] = {"vocab_size", "vocab_size", 1, 1 << 24},
    [PD_NUMBER_SHARED_KV] = {"num_kv_shared_layers", "attention.shared_kv_layers", 0, 1024},
    [PD_NUMBER_PER_LAYER_DIM] = {"hidden_size_per_layer_input", "embedding_length_per_layer_input", 0, 4096, 32},
    [PD_NUMBER_TARGET_DIM] = {"backbone_hidden_size", "embedding_length_out", 4, 32768, 4},
    [PD_NUMBER_EPS] = {"rms_norm_eps", "attention.layer_norm_rms_epsilon", 1e-20, 1},
    [PD_NUMBER_ATTN_SOFTCAP] = {"attn_logit_softcapping", "attn_logit_softcapping", 1e-3, 1e6},
    [PD_NUMBER_FINAL_SOFTCAP] = {"final_logit_softcapping", "final_logit_softcapping", 1e-3, 1e6},
    [PD_NUMBER_EMBED_SCALE] = {"embedding_multiplier", "embedding_scale", 1e-3, 1e3},
    [PD_NUMBER_RESIDUAL_SCALE] = {"residual_multiplier", "residual_scale", 1e-3, 1e3},
    [PD_NUMBER_LOGIT_DIVISOR] = {"logits_scaling", "logit_scale", 1e-3, 1e3},
    [PD_NUMBER_LOGIT_SCALE] = {"output_multiplier", "logit_scale", 1e-6, 1e3},
    [PD_NUMBER_POST_EPS] = {"post_norm_eps", NULL, 1e-20, 1},
    [PD_NUMBER_Q_NORM_WEIGHT] = {"qk_scale_factor", NULL, 1e-3, 1e3},
    [PD_NUMBER_FFN_DIM] = {"intermediate_size", "feed_forward_length", 1, 1 << 20},
    [PD_NUMBER_SHARED_DIM] = {"shared_intermediate_size", NULL, 1, 1 << 20},
    [PD_NUMBER_HEADS] = {"num_attention_heads", "attention.head_count", 1, 1024},
    [PD_NUMBER_KV_HEADS] = {"num_key_value_heads", "attention.head_count_kv", 1, 1024},
    [PD_NUMBER_HEAD_DIM] = {"head_dim", "attention.key_length", 4, 512, 4},
    [PD_NUMBER_KV_HEADS_GLOBAL] = {"num_global_key_value_heads", NULL, 1, 1024},
    [PD_NUMBER_HEAD_DIM_GLOBAL] = {"global_head_dim", NULL, 4, 512, 4},
    [PD_NUMBER_HEAD_DIM_LOCAL] = {NULL, "attention.key_length_swa", 4, 512, 4},
    [PD_NUMBER_QUERY_DIVISOR] = {"query_pre_attn_scalar", NULL, 1e-3, 1e6},
    [PD_NUMBER_QUERY_SCALE] = {"attention_multiplier", "attention.scale", 1e-6, 1e3},
    [PD_NUMBER_WINDOW] = {"sliding_window", "attention.sliding_window", 0, INT32_MAX},   /* 0: none */
    [PD_NUMBER_PATTERN] = {"sliding_window_pattern", "attention.sliding_window_pattern", 1, 1024},
    [PD_NUMBER_FULL_LAYERS] = {"max_window_layers", NULL, 0, 1024},
    [PD_NUMBER_EXPERTS] = {"num_experts", "expert_count", 0, PD_MAX_EXPERTS},   /* 0: none */
    [PD_NUMBER_EXPERTS_USED] = {"top_k_experts", "expert_used_count", 1, PD_MAX_EXPERTS_USED},
    [PD_NUMBER_EXPERT_DIM] = {"moe_intermediate_size", "expert_feed_forward_length", 1, 1 << 20},
    [PD_NUMBER_ROPE_BASE] = {"rope_theta", "rope.freq_base", 1, 1e12},
    [PD_NUMBER_ROPE_BASE_LOCAL] = {"rope_local_base_freq", "rope.freq_base_swa", 1, 1e12},
    [PD_NUMBER_ROPE_PART] = {"partial_rotary_factor", NULL, 1e-3, 1},
    [PD_NUMBER_ROPE_FACTOR] = {"factor", "rope.scaling.factor", 1e-3, 1e4},
    [PD_NUMBER_LOW_FREQ] = {"low_freq_factor", NULL, 1e-3, 1e6},
    [PD_NUMBER_HIGH_FREQ] = {"high_freq_factor", NULL, 1e-3, 1e6},
    [PD_NUMBER_OLD_CTX] = {"original_max_position_embeddings", "rope.scaling.original_context_length", 2, 1 << 27},
    [PD_NUMBER_BETA_FAST] = {"beta_fast", "rope.scaling.yarn_beta_fast", 1e-3, 1e6},
    [PD_NUMBER_BETA_SLOW] = {"beta_slow", "rope.scaling.yarn_beta_slow", 1e-3, 1e6},
    [PD_NUMBER_MSCALE] = {"mscale", NULL, 0, 1e3},   /* 0: none */
    [PD_NUMBER_MSCALE_ALL_DIM] = {"mscale_all_dim", "rope.scaling.yarn_log_multiplier", 0, 1e3},
    [PD_NUMBER_ATTN_FACTOR] = {"attention_factor", "rope.scaling.attn_factor", 1e-3, 1e3},
    [PD_NUMBER_QUERY_GROWTH] = {"llama_4_scaling_beta", "attention.temperature_scale", 0, 100},   /* 0: none */
    [PD_NUMBER_NO_ROPE_INTERVAL] = {"no_rope_layer_interval", NULL, 1, 1024},
};

peridot_status pd_number_check(enum pd_number number, double value, const char *key)
{
    const struct pd_number_row *row = &pd_numbers[number];
    if (!(value >= row->low && value <= row->high))   /* NaN is not */
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s is %.10g, not between %.10g and %.10g", key, value,
                       row->low, row->high);
    if (row->multiple && (uint32_t)value % row->multiple != 0)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s is %u, not a multiple of %u", key, (uint32_t)value,
                       row->multiple);
    return PERIDOT_OK;
}
