/* What a model is, in numbers: read from GGUF metadata or config.json, never from a table of known models. Layers are
 * described one by one, as families differ from layer to layer. */
#include "arch/arch.h"
#include "arch/arch_.h"
#include "base/base.h"
#include "params.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Files tell of a layer without v by having none, but for config.json of Gemma 4, which says so. */
static void find_v(struct pd_config *out, const struct pd_checkpoint *c)
{
    const char *prefix = pd_tensor_prefix(c);
    char name[PD_TENSOR_NAME_SIZE];
    for (uint32_t i = 0; i < out->n_layers; i++) {
        pd_tensor_name(name, c, out->family, prefix, PD_ROLE_V, i);
        out->layers[i].has_v = out->layers[i].fused_qkv || pd_checkpoint_find(c, name);
    }
}

static bool has_tensor(const struct pd_checkpoint *c, enum pd_role role, uint32_t layer)
{
    char name[PD_TENSOR_NAME_SIZE];
    pd_tensor_name_gguf(name, role, layer, PD_TEST_FAMILY);   /* alike in all */
    return pd_checkpoint_find(c, name) != NULL;
}

/* config.json says it. */
static void find_biases(struct pd_config *out, const struct pd_checkpoint *c)
{
    for (uint32_t i = 0; i < out->n_layers; i++) {
        out->layers[i].qkv_biases = out->layers[i].fused_qkv_bias || has_tensor(c, PD_ROLE_Q_BIAS, i);
        out->layers[i].o_bias = has_tensor(c, PD_ROLE_O_BIAS, i);
        out->layers[i].ffn_biases = has_tensor(c, PD_ROLE_DOWN_BIAS, i);
    }
}

/* As llama.cpp's converter writes them where it is asked to, in layers that have all three. */
static void find_fused(struct pd_config *out, const struct pd_checkpoint *c)
{
    for (uint32_t i = 0; i + out->n_shared_kv < out->n_layers; i++) {
        if (pd_layer_recurs(&out->layers[i])) continue;   /* it has a matrix of that name */
        out->layers[i].fused_qkv = has_tensor(c, PD_ROLE_QKV, i);
        out->layers[i].fused_qkv_bias = has_tensor(c, PD_ROLE_QKV_BIAS, i);
    }
}

/* Experts may be as llama.cpp's converter once wrote them, and need not have numbers to choose by. */
static void find_parts_of_experts(struct pd_config *out, const struct pd_checkpoint *c)
{
    for (uint32_t i = 0; i < out->n_layers; i++) {
        out->layers[i].experts_split = has_tensor(c, PD_ROLE_EXPERTS_GATE, i);
        out->layers[i].choice_biases = has_tensor(c, PD_ROLE_CHOICE_BIASES, i);
    }
}

/* Of embeddings with n columns: its root, which the published code keeps in the type of the weights. */
static float scale_of(uint32_t n, const struct pd_family_traits *family)
{
    const float root = sqrtf((float)n);
    return family->published_f32 ? root : pd_f32_from_bf16(pd_bf16_from_f32(root));
}

/* Windows are of both sides, and count the token itself. */
static void see_both_ways(struct pd_config *out, const struct pd_family_traits *family, bool gguf)
{
    bool each_side = !gguf && family->hf_window_each_side;
    out->head = PERIDOT_HEAD_NONE;
    out->tied = false;
    for (uint32_t i = 0; i < out->n_layers; i++) {
        uint32_t *window = &out->layers[i].window;
        if (*window) *window = (each_side ? *window : *window / 2) + 1;
    }
}

/* A tensor of what frequencies are divided by. */
static peridot_status read_factors(float *out, const struct pd_checkpoint *c, enum pd_role role, uint32_t n)
{
    char name[PD_TENSOR_NAME_SIZE];
    pd_tensor_name_gguf(name, role, 0, PD_TEST_FAMILY);
    const struct pd_tensor *t = pd_checkpoint_find(c, name);
    if (!t) return pd_fail(PERIDOT_ERROR_FORMAT, "tensor %s is missing", name);
    if (t->dtype != PD_F32 || t->n_dims != 1 || t->shape[0] != n)
        return pd_fail(PERIDOT_ERROR_FORMAT, "tensor %s is not f32 of shape [%u]", name, n);
    for (uint32_t i = 0; i < n; i++) {
        memcpy(&out[i], t->data + sizeof *out * i, sizeof *out);
        if (!(out[i] > 0 && isfinite(out[i])))
            return pd_fail(PERIDOT_ERROR_FORMAT, "tensor %s: element %u is %g", name, i, (double)out[i]);
    }
    return PERIDOT_OK;
}

static peridot_status read_rope_factors(struct pd_config *out, const struct pd_checkpoint *c)
{
    struct pd_rope *rope = &out->ropes[PD_ROPE_GLOBAL];
    const struct pd_layer *layer = pd_rope_global_layer(out);
    uint32_t n = (layer->n_rotated ? layer->n_rotated : layer->head_dim) / 2;
    bool has_rule = pd_checkpoint_find(c, "rope_freqs.weight") != NULL;
    bool is_long = !has_rule && (pd_checkpoint_find(c, "rope_factors_long.weight")
                                 || pd_checkpoint_find(c, "rope_factors_short.weight"));
    if (!has_rule && !is_long) return PERIDOT_OK;
    PD_TRY(read_factors(rope->factors[0], c, has_rule ? PD_ROLE_ROPE_FREQS : PD_ROLE_ROPE_SHORT, n));
    if (is_long) PD_TRY(read_factors(rope->factors[1], c, PD_ROLE_ROPE_LONG, n));
    rope->n_factors = n;
    rope->is_long = is_long;
    rope->rotated_part = 0;   /* they say so themselves */
    if (!pd_families[out->family].local_rope) out->ropes[PD_ROPE_LOCAL] = *rope;
    return PERIDOT_OK;
}

static peridot_status read_config(struct pd_config *out, const struct pd_checkpoint *c)
{
    bool gguf = pd_checkpoint_kind(c) == PD_CHECKPOINT_GGUF;
    PD_TRY(gguf ? pd_config_read_gguf(out, c) : pd_config_read_hf(out, c));
    const struct pd_family_traits *family = &pd_families[out->family];
    out->fused_gate_up = family->fused || (family->hf_shared_unit && !gguf);
    out->bidirectional = family->embeds;
    if (family->embeds) see_both_ways(out, family, gguf);
    out->norm_plus_one = !gguf && family->hf_norm_plus_one;
    out->hf_recurrences = !gguf;
    if (family->recurrences && !out->rope_sections[0])   /* as in all published files */
        memcpy(out->rope_sections, (const uint32_t[]){11, 11, 10}, sizeof out->rope_sections);
    out->rope_interleaved = gguf && family->gguf_interleaved;
    if (family->scale_embedding) out->embed_scale = scale_of(out->d_model, family);
    out->per_layer_scale = scale_of(out->per_layer_dim, family);
    if (gguf) out->file_type = pd_gguf_file_type(c);
    if (gguf) find_fused(out, c);
    if (gguf) find_parts_of_experts(out, c);
    if (gguf && family->optional_biases) find_biases(out, c);
    if (family->optional_v && (gguf || !family->sizes_by_window)) find_v(out, c);
    PD_TRY(pd_embedding_read(&out->embedding, c, family));
    bool headless = !gguf && out->embedding.trained && !out->tied && !pd_checkpoint_find(c, "lm_head.weight");
    if (headless) out->head = PERIDOT_HEAD_NONE;
    if (gguf) PD_TRY(read_rope_factors(out, c));
    return pd_layers_complete(out);
}

peridot_status pd_config_read(struct pd_config *out, const struct pd_checkpoint *c)
{
    *out = (struct pd_config){.embed_scale = 1, .residual_scale = 1, .logit_scale = 1};
    peridot_status status = read_config(out, c);
    if (status == PERIDOT_OK) return status;
    pd_config_free(out);
    return pd_fail_prefix(status, pd_checkpoint_path(c));
}

static bool has_nextn(const struct pd_config *config, const struct pd_checkpoint *c)
{
    char name[PD_TENSOR_NAME_SIZE];
    pd_tensor_name(name, c, config->family, "mtp.", PD_ROLE_NEXTN_PROJ, config->n_layers);
    return pd_families[config->family].recurrences && pd_checkpoint_find(c, name);
}

/* With an embedding of its own: "" where it has none. */
static const char *nextn_embedding(char name[PD_TENSOR_NAME_SIZE], const struct pd_config *config,
                                   const struct pd_checkpoint *c)
{
    snprintf(name, PD_TENSOR_NAME_SIZE, "blk.%u.nextn.embed_tokens.weight", (unsigned)config->n_layers);
    return pd_checkpoint_find(c, name) ? name : "";
}

bool pd_config_has_block(const struct pd_config *config, const struct pd_checkpoint *c)
{
    char name[PD_TENSOR_NAME_SIZE];
    return has_nextn(config, c) && config->n_nextn <= 1 && !*nextn_embedding(name, config, c);
}

/* Its layer is like those of the model that attend. */
peridot_status pd_config_take_block(struct pd_config *out, const struct pd_checkpoint *c)
{
    char name[PD_TENSOR_NAME_SIZE];
    if (!has_nextn(out, c))
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s has no block that drafts tokens (MTP)", pd_checkpoint_path(c));
    if (!pd_config_has_block(out, c))
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s has %s, which is not supported", pd_checkpoint_path(c),
                       out->n_nextn > 1 ? "several blocks that draft tokens" : nextn_embedding(name, out, c));
    out->nextn_at = out->n_layers;
    out->layers[0] = *pd_rope_global_layer(out);
    out->layers[0].kv_layer = out->layers[0].kind = out->kinds[0] = 0;
    out->n_layers = out->n_kinds = 1;
    out->target_dim = out->d_model;
    return PERIDOT_OK;
}

void pd_config_free(struct pd_config *config)
{
    free(config->layers);
    for (uint32_t i = 0; config->labels && i < config->n_labels; i++) free(config->labels[i]);
    free(config->labels);
    pd_embedding_free(&config->embedding);
    for (uint32_t i = 0; i < config->n_rope_tables; i++) {
        free(config->rope_tables[i].inv_freq);
        free(config->rope_tables[i].long_inv_freq);
    }
    *config = (struct pd_config){0};
}

/* ---- numbers ---- */

const struct pd_number_row pd_numbers[PD_N_NUMBERS] = {
    [PD_NUMBER_LAYERS] = {"num_hidden_layers", "block_count", 1, 1024},
    [PD_NUMBER_D_MODEL] = {"hidden_size", "embedding_length", 4, 32768, 4},
    [PD_NUMBER_CTX] = {"max_position_embeddings", "context_length", 1, 1 << 27},
    [PD_NUMBER_VOCAB_SIZE] = {"vocab_size", "vocab_size", 1, 1 << 24},
    [PD_NUMBER_SHARED_KV] = {"num_kv_shared_layers", "attention.shared_kv_layers", 0, 1024},
    [PD_NUMBER_PER_LAYER_DIM] = {"hidden_size_per_layer_input", "embedding_length_per_layer_input", 0, 4096, 32},
    [PD_NUMBER_TARGET_DIM] = {"backbone_hidden_size", "embedding_length_out", 4, 32768, 4},
    [PD_NUMBER_EPS] = {"rms_norm_eps", "attention.layer_norm_rms_epsilon", 1e-20, 1},
    [PD_NUMBER_NORM_EPS] = {"norm_eps", NULL, 1e-20, 1},
    [PD_NUMBER_ATTN_SOFTCAP] = {"attn_logit_softcapping", "attn_logit_softcapping", 1e-3, 1e6},
    [PD_NUMBER_FINAL_SOFTCAP] = {"final_logit_softcapping", "final_logit_softcapping", 1e-3, 1e6},
    [PD_NUMBER_EMBED_SCALE] = {"embedding_multiplier", "embedding_scale", 1e-3, 1e3},
    [PD_NUMBER_RESIDUAL_SCALE] = {"residual_multiplier", "residual_scale", 1e-3, 1e3},
    [PD_NUMBER_LOGIT_DIVISOR] = {"logits_scaling", "logit_scale", 1e-3, 1e3},
    [PD_NUMBER_LOGIT_SCALE] = {"output_multiplier", "logit_scale", 1e-6, 1e3},
    [PD_NUMBER_POST_EPS] = {"post_norm_eps", NULL, 1e-20, 1},
    [PD_NUMBER_Q_NORM_WEIGHT] = {"qk_scale_factor", NULL, 1e-3, 1e3},
    [PD_NUMBER_FFN_DIM] = {"intermediate_size", "feed_forward_length", 1, 1 << 20},
    [PD_NUMBER_BLOCK_FFN_DIM] = {"block_ff_dim", NULL, 1, 1 << 20},
    [PD_NUMBER_FFN_MULTIPLIER] = {"block_ffn_dim_multiplier", NULL, 1e-3, 1e3},
    [PD_NUMBER_FFN_MULTIPLE] = {"block_multiple_of", NULL, 1, 1 << 20},
    [PD_NUMBER_SHARED_DIM] = {"shared_intermediate_size", NULL, 1, 1 << 20},
    [PD_NUMBER_SHARED_EXPERT_DIM] = {"shared_expert_intermediate_size", "expert_shared_feed_forward_length", 1,
        1 << 20},
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
    [PD_NUMBER_LOCAL_EXPERTS] = {"num_local_experts", NULL, 0, PD_MAX_EXPERTS},
    [PD_NUMBER_EXPERTS_PER_TOKEN] = {"num_experts_per_tok", NULL, 1, PD_MAX_EXPERTS_USED},
    [PD_NUMBER_SPARSE_STEP] = {"decoder_sparse_step", NULL, 1, 1024},
    [PD_NUMBER_DENSE_LAYERS] = {"num_dense_layers", "leading_dense_block_count", 0, 1024},
    [PD_NUMBER_ROUTE_SCALE] = {"routed_scaling_factor", "expert_weights_scale", 1, 1},
    [PD_NUMBER_GATING] = {NULL, "expert_gating_func", 2, 2},
    [PD_NUMBER_DELTA_K_HEADS] = {"linear_num_key_heads", "ssm.group_count", 1, 256},
    [PD_NUMBER_DELTA_V_HEADS] = {"linear_num_value_heads", "ssm.time_step_rank", 1, 256},
    [PD_NUMBER_DELTA_K_DIM] = {"linear_key_head_dim", "ssm.state_size", 4, PD_MAX_DELTA_DIM, 4},
    [PD_NUMBER_DELTA_V_DIM] = {"linear_value_head_dim", NULL, 4, PD_MAX_DELTA_DIM, 4},
    [PD_NUMBER_CONV] = {"linear_conv_kernel_dim", "ssm.conv_kernel", 2, PD_MAX_CONV},
    [PD_NUMBER_SHORT_CONV] = {"conv_L_cache", "shortconv.l_cache", 2, PD_MAX_CONV},
    [PD_NUMBER_FULL_INTERVAL] = {"full_attention_interval", "full_attention_interval", 1, 1024},
    [PD_NUMBER_MAMBA_GROUPS] = {"mamba_n_groups", NULL, 1, 256},
    [PD_NUMBER_MAMBA_HEADS] = {"mamba_n_heads", NULL, 1, 256},
    [PD_NUMBER_MAMBA_STATE] = {"mamba_d_state", NULL, 4, PD_MAX_DELTA_DIM, 4},
    [PD_NUMBER_MAMBA_HEAD_DIM] = {"mamba_d_head", NULL, 4, PD_MAX_DELTA_DIM, 4},
    [PD_NUMBER_MAMBA_CONV] = {"mamba_d_conv", NULL, 2, PD_MAX_CONV},
    [PD_NUMBER_MAMBA_EXPAND] = {"mamba_expand", NULL, 1, 64},
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
        return row->low == row->high
            ? pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s is %.10g: only %.10g is supported", key, value, row->low)
            : pd_fail(PERIDOT_ERROR_FORMAT, "%s is %.10g, not between %.10g and %.10g", key, value,
                      row->low, row->high);
    if (row->multiple && (uint32_t)value % row->multiple != 0)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s is %u, not a multiple of %u", key, (uint32_t)value,
                       row->multiple);
    return PERIDOT_OK;
}

/* ---- obstacle ---- */

/* What known families have that is not computed here. */

/* model_type of config.json and GGUF's general.architecture, with spaces around each. */
static const struct { const char *obstacle, *names; } rows[] = {
    {"four streams of activations (AltUp)", " gemma3n gemma3n_text "},
    {"a prompt with an image, all of which sees all of it", " paligemma "},
    {"layers that are linear recurrences (RG-LRU)", " recurrent_gemma recurrentgemma "},
    {"an encoder, to whose text the decoder attends",
     " t5gemma t5gemma2 t5 t5encoder mt5 umt5 bart mbart pegasus marian m2m_100 whisper "},
    {"blocks of tokens that are written together, by denoising",
     " diffusion_gemma diffusion_gemma_text dream llada llada-moe rnd1 "},
    {"attention in chunks, and layers without rotation", " llama4 llama4_text "},
    {"layers that attend to an image (cross-attention)", " mllama mllama_text_model "},
    {"layers with state-space blocks (Mamba)",
     " mamba mamba2 falcon_mamba jamba bamba zamba zamba2 falcon_h1 falcon-h1 nemotron_h "
     "nemotron_h_moe plamo2 olmo_hybrid "},
    {"layers that are linear recurrences (gated delta rule)",
     " kimi_linear kimi-linear "},
    {"layers that are linear recurrences (RWKV)", " rwkv rwkv6 rwkv6qwen2 rwkv7 arwkv7 "},
    {"layers that are short convolutions", " lfm3 "},
    {"keys and values in a compressed form (MLA)",
     " deepseek_v2 deepseek_v3 deepseek_v32 deepseek2 minicpm3 kimi_k25 glm4_moe_lite mistral4 longcat_flash youtu "
     "plm "},
    {"experts in place of its gated units",
     " qwen2_moe qwen2moe granitemoeshared phimoe dbrx grok deepseek "
     "dots1 ernie4_5_moe ernie4_5-moe bailingmoe bailingmoe2 hunyuan_v1_moe hunyuan-moe glm4_moe glm4moe "
     "minimax-m2 minimax_m2 smallthinker grovemoe afmoe flex_olmo exaone_moe exaone-moe arctic jetmoe "},
    {"norms that centre their vector (LayerNorm)",
     " gpt2 gptj gpt_j gpt_neo gpt_neox gptneox gpt_bigcode starcoder starcoder2 bloom mpt falcon phi phi2 opt "
     "stablelm cohere cohere2 command-r nemotron codeshell jais olmo persimmon openelm orion "},
    {"rotation by an image's rows and columns (M-RoPE)",
     " qwen2_vl qwen2_5_vl qwen2vl qwen3_vl qwen3vl qwen3_vl_moe qwen3vlmoe glm4v ernie4_5_vl_moe paddleocr "
     "hunyuan_vl "},
    {"attention to later tokens, of an encoder",
     " bert roberta xlm-roberta distilbert albert electra deberta deberta-v2 modernbert modern-bert nomic_bert "
     "nomic-bert jina-bert-v2 jina-bert-v3 eurobert neo-bert mpnet "},
};

const char *pd_family_obstacle(const char *name, size_t size)
{
    char word[64];
    if (size + 3 > sizeof word || memchr(name, ' ', size) || memchr(name, 0, size)) return NULL;
    word[0] = word[size + 1] = ' ';
    memcpy(word + 1, name, size);
    word[size + 2] = 0;
    for (size_t i = 0; i < PD_COUNT(rows); i++)
        if (strstr(rows[i].names, word)) return rows[i].obstacle;
    return NULL;
}
