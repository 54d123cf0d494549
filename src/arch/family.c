/* What the families differ in beyond numbers. */
#include "arch/arch.h"

#include "base/base.h"

#include <stdio.h>
#include <string.h>

const struct pd_family_traits pd_families[PD_N_FAMILIES] = {
    [PD_GEMMA1] = {.name = "gemma", .gguf_eps = 1e-6, .scale_embedding = true, .hf_norm_plus_one = true,
        .tied = true, .start_of_turn = 106, .rope_base = 10000, .hf_activation = PD_HF_ACT_OR_ACTIVATION,
        .hf = {3072, 24576, 28, 16, 16, 8192, 256}},
    [PD_GEMMA2] = {.name = "gemma2", .gguf_eps = 1e-6, .post_norms = true, .scale_embedding = true,
        .hf_norm_plus_one = true, .tied = true, .start_of_turn = 106, .window_pattern = 2, .gguf_window = 4096,
        .rope_base = 10000, .rope_base_local = 10000, .attn_softcap = 50, .final_softcap = 30,
        .final_softcap_known = true, .query_divisor = 256, .n_layers_27b = 46, .hf_activation = PD_HF_ACTIVATION,
        .hf = {2304, 9216, 26, 8, 4, 8192, 256}},
    [PD_VAULTGEMMA] = {.name = "vaultgemma", .gguf_eps = 1e-6, .hf_pre_ffn_norm = true, .scale_embedding = true,
        .hf_norm_plus_one = true, .tied = true, .start_of_turn = 106, .window_pattern = 2, .rope_base = 10000,
        .rope_base_local = 10000, .attn_softcap = 50, .final_softcap = 30, .final_softcap_known = true,
        .query_divisor = 256, .hf_activation = PD_HF_ACTIVATION, .hf = {2304, 9216, 26, 8, 4, 8192, 256}},
    [PD_GEMMA3] = {.name = "gemma3", .gguf_eps = 1e-6, .post_norms = true, .qk_norms = true,
        .scale_embedding = true, .hf_norm_plus_one = true, .tied = true, .start_of_turn = 105, .local_rope = true,
        .window_pattern = 6, .own_pattern = true, .rope_base = 1000000, .rope_base_local = 10000,
        .final_softcap_known = true, .query_divisor = 256, .n_layers_27b = 62, .hf_activation = PD_HF_ACTIVATION,
        .hf = {2304, 9216, 26, 8, 4, 131072, 256}},
    [PD_GEMMA4] = {.name = "gemma4", .gguf_eps = 1e-6, .post_norms = true, .qk_norms = true, .v_norms = true,
        .scale_embedding = true, .tied = true, .start_of_turn = 105, .optional_v = true, .experts = true,
        .experts_beside = true, .per_layer_inputs = true, .output_scales = true, .local_rope = true,
        .rotated_part = 0.25, .sizes_by_window = true, .window_pattern = 6, .own_pattern = true,
        .last_is_global = true, .vision_masks = true, .rope_base = 1000000, .rope_base_local = 10000,
        .final_softcap_known = true, .unscaled_queries = true, .hf_activation = PD_HF_ACTIVATION,
        .hf = {2304, 9216, 30, 8, 4, 131072, 256}},
    [PD_GEMMA4_DRAFTER] = {.name = "gemma4-assistant", .gguf_eps = 1e-6, .post_norms = true, .qk_norms = true,
        .tied = true, .output_scales = true, .local_rope = true, .rotated_part = 0.25, .sizes_by_window = true,
        .drafts = true, .window_pattern = 4, .own_pattern = true, .last_is_global = true, .vision_masks = true,
        .rope_base = 1000000, .rope_base_local = 10000, .unscaled_queries = true, .hf_activation = PD_HF_ACTIVATION,
        .hf = {2304, 9216, 30, 8, 4, 131072, 256}},
    [PD_GEMMA_EMBEDDING] = {.name = "gemma-embedding", .gguf_eps = 1e-6, .post_norms = true, .qk_norms = true,
        .scale_embedding = true, .published_f32 = true, .hf_norm_plus_one = true, .local_rope = true, .embeds = true,
        .window_pattern = 6, .own_pattern = true,
        .rope_base = 1000000, .rope_base_local = 10000, .query_divisor = 256, .hf_activation = PD_HF_ACTIVATION,
        .hf = {2304, 9216, 26, 8, 4, 131072, 256}},
    [PD_GEMMA_EMBEDDING2] = {.name = "gemma-embedding2", .gguf_eps = 1e-6, .post_norms = true, .qk_norms = true,
        .v_norms = true, .scale_embedding = true, .per_layer_inputs = true, .per_layer_projected = true, .embeds = true,
        .hf_window_each_side = true, .output_scales = true, .local_rope = true, .sizes_by_window = true,
        .window_pattern = 6, .own_pattern = true, .last_is_global = true, .rope_base = 1000000,
        .rope_base_local = 10000, .unscaled_queries = true, .hf_activation = PD_HF_ACTIVATION,
        .hf = {512, 2048, 24, 4, 2, 262144, 256}},
    /* GGUF knows it as Llama, too. */
    [PD_MIXTRAL] = {.name = "llama", .silu = true, .experts = true, .hf_experts = PD_HF_EXPERTS_MIXTRAL,
        .ffn_is_experts = true, .gguf_by_experts = true, .gguf_interleaved = true, .space_prefix = true,
        .rope_base = 1000000, .gguf_all_windows = true, .hf_all_windows = true, .hf_eps = 1e-5,
        .hf = {4096, 14336, 32, 32, 8, 131072, 0}},
    [PD_LLAMA] = {.name = "llama", .optional_biases = true, .silu = true, .gguf_interleaved = true,
        .space_prefix = true, .rope_base = 10000, .gguf_all_windows = true, .hf = {4096, 11008, 32, 32, 0, 2048, 0}},
    /* GGUF knows it as Llama, whose row comes first. */
    [PD_MISTRAL] = {.name = "llama", .silu = true, .gguf_interleaved = true, .space_prefix = true, .rope_base = 10000,
        .gguf_all_windows = true, .hf_all_windows = true, .hf = {4096, 14336, 32, 32, 8, 131072, 0}},
    [PD_PHI3] = {.name = "phi3", .silu = true, .fused = true, .partial_rope = true, .old_longrope = true,
        .hf_old_ctx = 4096, .rope_base = 10000, .gguf_all_windows = true, .gguf_no_window = true,
        .hf_all_windows = true, .hf = {3072, 8192, 32, 32, 0, 4096, 0}},
    [PD_OLMO3] = {.name = "olmo2", .gguf_by_window = true, .no_pre_norms = true, .post_norms = true,
        .whole_qk_norms = true, .silu = true, .local_rope = true, .window_pattern = 4, .own_pattern = true,
        .rope_base = 500000, .hf = {4096, 11008, 32, 32, 0, 2048, 0}},
    [PD_OLMO2] = {.name = "olmo2", .no_pre_norms = true, .post_norms = true, .whole_qk_norms = true, .silu = true,
        .rope_base = 10000, .hf = {4096, 11008, 32, 32, 0, 2048, 0}},
    [PD_OLMOE] = {.name = "olmoe", .whole_qk_norms = true, .silu = true, .experts = true,
        .hf_experts = PD_HF_EXPERTS_QWEN, .ffn_is_experts = true, .raw_routes = true, .hf_says_routes = true,
        .rope_base = 10000, .hf_eps = 1e-5, .hf = {2048, 2048, 16, 16, 0, 4096, 0}},
    [PD_GRANITE] = {.name = "granite", .optional_biases = true, .silu = true, .gguf_interleaved = true,
        .gguf_rotated = true, .multipliers = true, .rope_base = 10000, .hf = {4096, 11008, 32, 32, 0, 2048, 0}},
    /* Without its state-space blocks and experts it is Granite, and GGUF knows it as that. */
    [PD_GRANITE4] = {.name = "granite", .silu = true, .gguf_interleaved = true, .gguf_rotated = true,
        .multipliers = true, .hf_shared_unit = true, .rope_base = 10000, .hf = {4096, 1024, 32, 32, 0, 2048, 0}},
    /* Where it has state-space blocks GGUF knows it by another name. */
    [PD_GRANITE_HYBRID_MOE] = {.name = "granitehybrid", .mamba = true, .silu = true, .experts = true,
        .shared_expert = true, .hf_experts = PD_HF_EXPERTS_GRANITE, .ffn_is_experts = true, .gguf_by_experts = true,
        .gguf_interleaved = true, .gguf_rotated = true, .multipliers = true, .hf_shared_unit = true,
        .rope_base = 10000, .hf = {4096, 1024, 32, 32, 0, 2048, 0}},
    [PD_GRANITE_HYBRID] = {.name = "granitehybrid", .mamba = true, .silu = true, .gguf_interleaved = true,
        .gguf_rotated = true, .multipliers = true, .hf_shared_unit = true, .rope_base = 10000,
        .hf = {4096, 1024, 32, 32, 0, 2048, 0}},
    [PD_GRANITE_MOE] = {.name = "granitemoe", .silu = true, .experts = true, .hf_experts = PD_HF_EXPERTS_GRANITE,
        .ffn_is_experts = true, .gguf_interleaved = true, .multipliers = true, .rope_base = 10000,
        .hf = {4096, 11008, 32, 32, 0, 2048, 0}},
    [PD_QWEN2] = {.name = "qwen2", .qkv_biases = true, .silu = true, .late_windows = true, .rope_base = 10000,
        .hf = {4096, 22016, 32, 32, 32, 32768, 0}},
    [PD_QWEN3] = {.name = "qwen3", .qk_norms = true, .silu = true, .late_windows = true, .rope_base = 10000,
        .hf = {4096, 22016, 32, 32, 32, 32768, 128}},
    [PD_QWEN3_MOE] = {.name = "qwen3moe", .qk_norms = true, .silu = true, .experts = true,
        .hf_experts = PD_HF_EXPERTS_QWEN, .hf_says_routes = true, .rope_base = 10000,
        .hf = {2048, 6144, 24, 32, 4, 32768, 0}},
    [PD_QWEN3_NEXT] = {.name = "qwen3next", .qk_norms = true, .attn_gate = true, .gate_in_q = true,
        .recurrences = true, .grouped_values = true, .gguf_post_attention_norm = true, .silu = true,
        .hf_norm_plus_one = true, .experts = true, .shared_expert = true, .shared_gate = true,
        .hf_experts = PD_HF_EXPERTS_QWEN, .hf_says_routes = true, .partial_rope = true, .rotated_columns = 0.25,
        .rope_base = 10000, .hf = {2048, 512, 48, 16, 2, 32768, 256}},
    [PD_QWEN35] = {.name = "qwen35", .qk_norms = true, .attn_gate = true, .gate_in_q = true, .recurrences = true,
        .gguf_post_attention_norm = true,
        .silu = true, .hf_norm_plus_one = true, .partial_rope = true, .rotated_columns = 0.25,
        .rope_base = 10000, .hf = {4096, 12288, 32, 16, 4, 32768, 256}},
    [PD_QWEN35_MOE] = {.name = "qwen35moe", .qk_norms = true, .attn_gate = true, .gate_in_q = true,
        .recurrences = true, .gguf_post_attention_norm = true, .silu = true, .hf_norm_plus_one = true, .experts = true,
        .shared_expert = true, .shared_gate = true, .hf_experts = PD_HF_EXPERTS_QWEN, .partial_rope = true,
        .rotated_columns = 0.25, .rope_base = 10000, .hf = {2048, 512, 40, 16, 2, 32768, 256}},
    [PD_LFM2_MOE] = {.name = "lfm2moe", .qk_norms = true, .short_convs = true, .silu = true, .tied = true,
        .experts = true, .hf_experts = PD_HF_EXPERTS_LFM2, .sigmoid_routes = true, .hf_eps = 1e-5,
        .rope_base = 1000000, .hf = {2048, 7168, 32, 32, 8, 128000, 0}},
    [PD_LFM2] = {.name = "lfm2", .qk_norms = true, .short_convs = true, .silu = true, .tied = true, .hf_eps = 1e-5,
        .rope_base = 1000000, .hf = {2560, 12288, 32, 32, 8, 128000, 0}},
    [PD_SMOLLM3] = {.name = "smollm3", .silu = true, .gguf_interleaved = true, .tied = true, .no_rope_interval = 4,
        .rope_base = 2000000, .hf = {2048, 11008, 36, 16, 4, 32768, 0}},
    [PD_MINISTRAL3] = {.name = "mistral3", .silu = true, .gguf_interleaved = true, .query_growth = true,
        .rope_base = 1000000, .hf = {4096, 14336, 34, 32, 8, 262144, 128}},
    [PD_MUSE_GLIMMER] = {.name = "muse-glimmer", .post_norms = true, .qk_norms = true, .q_norm_weight = 3.87,
        .post_eps = 1e-8, .embed_norm = true, .attn_gate = true, .silu = true, .logit_scale = 0.19611613513818404,
        .hf_eps = 1e-5, .hf_norm_plus_one = true, .hf_plain_output_norm = true, .gguf_interleaved = true,
        .no_rope_interval = 4, .windows_rotate = true, .window_pattern = 4, .from_last = true, .rope_base = 10000,
        .final_softcap = 20, .final_softcap_known = true, .hf_activation = PD_HF_ACTIVATION,
        .hf = {6656, 19968, 52, 32, 2, 131072, 128}},
    [PD_GPT_OSS] = {.name = "gpt-oss", .qkv_biases = true, .all_biases = true, .sinks = true, .silu = true,
        .clamped = true, .gguf_post_attention_norm = true, .experts = true, .hf_experts = PD_HF_EXPERTS_GPT_OSS,
        .ffn_is_experts = true, .exact_ramp = true, .window_pattern = 2, .rope_base = 150000, .hf_eps = 1e-5,
        .hf = {2880, 2880, 36, 64, 8, 131072, 64}},
    /* For tests: its layers differ in all that layers can differ in. */
    [PD_TEST_FAMILY] = {.name = "peridot-test", .post_norms = true, .qkv_biases = true, .qk_norms = true,
        .v_norms = true, .scale_embedding = true, .tied = true, .start_of_turn = 105, .optional_v = true,
        .output_scales = true, .local_rope = true, .window_pattern = 2, .own_pattern = true, .rope_base = 1000000,
        .rope_base_local = 10000},
};

static const struct pd_hf_type hf_types[] = {
    {.name = "gemma", .family = PD_GEMMA1}, {.name = "gemma2", .family = PD_GEMMA2},
    {.name = "vaultgemma", .family = PD_VAULTGEMMA},
    {.name = "gemma3", .family = PD_GEMMA3, .wraps = true},
    {.name = "gemma3_text", .family = PD_GEMMA3, .embeds = PD_GEMMA_EMBEDDING},
    {.name = "gemma4", .family = PD_GEMMA4, .wraps = true, .window = 512, .per_layer_dim = 256},
    {.name = "gemma4_text", .family = PD_GEMMA4, .window = 512, .per_layer_dim = 256},
    {.name = "gemma4_unified", .family = PD_GEMMA4, .wraps = true, .window = 1024, .ctx_max = 262144},
    {.name = "gemma4_unified_text", .family = PD_GEMMA4, .window = 1024, .ctx_max = 262144},
    {.name = "gemma4_assistant", .family = PD_GEMMA4_DRAFTER, .wraps = true, .wrapped = PD_GEMMA4},
    {.name = "gemma4_unified_assistant", .family = PD_GEMMA4_DRAFTER, .wraps = true, .wrapped = PD_GEMMA4},
    {.name = "embedding_gemma2", .family = PD_GEMMA_EMBEDDING2, .wraps = true, .window = 512, .per_layer_dim = 512},
    {.name = "embedding_gemma2_text", .family = PD_GEMMA_EMBEDDING2, .window = 512, .per_layer_dim = 512},
    {.name = "llama", .family = PD_LLAMA}, {.name = "mistral", .family = PD_MISTRAL, .window = 4096},
    {.name = "mixtral", .family = PD_MIXTRAL},
    {.name = "phi3", .family = PD_PHI3}, {.name = "olmo2", .family = PD_OLMO2},
    {.name = "olmo3", .family = PD_OLMO3}, {.name = "olmoe", .family = PD_OLMOE},
    {.name = "granite", .family = PD_GRANITE}, {.name = "granitemoehybrid", .family = PD_GRANITE4},
    {.name = "granitemoe", .family = PD_GRANITE_MOE},
    {.name = "qwen2", .family = PD_QWEN2},
    {.name = "qwen3", .family = PD_QWEN3}, {.name = "qwen3_moe", .family = PD_QWEN3_MOE},
    {.name = "qwen3_next", .family = PD_QWEN3_NEXT},
    {.name = "qwen3_5", .family = PD_QWEN35, .wraps = true}, {.name = "qwen3_5_text", .family = PD_QWEN35},
    {.name = "qwen3_5_moe", .family = PD_QWEN35_MOE, .wraps = true},
    {.name = "qwen3_5_moe_text", .family = PD_QWEN35_MOE},
    {.name = "lfm2", .family = PD_LFM2}, {.name = "lfm2_moe", .family = PD_LFM2_MOE},
    {.name = "smollm3", .family = PD_SMOLLM3},
    {.name = "ministral", .family = PD_MISTRAL, .window = 4096, .window_types = true},
    {.name = "ministral3", .family = PD_MINISTRAL3}, {.name = "mistral3", .family = PD_MISTRAL, .wraps_any = true},
    {.name = "muse_glimmer", .family = PD_MUSE_GLIMMER, .wraps = true, .window = 2048},
    {.name = "muse_glimmer_text", .family = PD_MUSE_GLIMMER, .window = 2048},
    {.name = "gpt_oss", .family = PD_GPT_OSS, .window = 128},
    {.name = "peridot_test", .family = PD_TEST_FAMILY},
};

const struct pd_hf_type *pd_hf_type_find(const char *name)
{
    for (size_t i = 0; i < PD_COUNT(hf_types); i++)
        if (strcmp(hf_types[i].name, name) == 0) return &hf_types[i];
    return NULL;
}

static void family_add_name(char out[PD_NAMES_SIZE], const char *name)
{
    size_t n = strlen(out);
    snprintf(out + n, PD_NAMES_SIZE - n, "%s%s", n ? ", " : "", name);
}

void pd_hf_type_names(char out[PD_NAMES_SIZE])
{
    *out = 0;
    for (size_t i = 0; i < PD_COUNT(hf_types); i++)
        if (hf_types[i].family != PD_TEST_FAMILY) family_add_name(out, hf_types[i].name);
}

void pd_family_names(char out[PD_NAMES_SIZE])
{
    *out = 0;
    for (size_t i = 0; i < PD_TEST_FAMILY; i++)
        if (i == 0 || strcmp(pd_families[i].name, pd_families[i - 1].name) != 0)
            family_add_name(out, pd_families[i].name);
}

bool pd_family_is_nth(const struct pd_family_traits *family, uint32_t n, uint32_t i, uint32_t n_layers)
{
    return (family->from_last ? n_layers - 1 - i : i + 1) % n == 0;
}

bool pd_family_has_activation(const struct pd_family_traits *family, const char *name)
{
    /* One formula, coded in several ways; plain "gelu" is that of the error function. */
    static const char *const tanh_forms[] = {"gelu_pytorch_tanh", "gelu_python_tanh", "gelu_new", "gelu_fast",
        "gelu_accurate"};
    if (family->silu) return strcmp(name, "silu") == 0 || strcmp(name, "swish") == 0;
    for (size_t i = 0; i < PD_COUNT(tanh_forms); i++)
        if (strcmp(name, tanh_forms[i]) == 0) return true;
    return false;
}
