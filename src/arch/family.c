#include "arch/family.h"

const struct pd_family_traits pd_families[PD_N_FAMILIES] = {
    [PD_GEMMA1] = {.name = "gemma", .hf_types = {"gemma"}, .scale_embedding = true, .hf_norm_plus_one = true,
        .tied = true, .start_of_turn = 106, .rope_base = 10000},
    [PD_GEMMA2] = {.name = "gemma2", .hf_types = {"gemma2"}, .post_norms = true, .scale_embedding = true,
        .hf_norm_plus_one = true, .tied = true, .start_of_turn = 106, .window_pattern = 2, .rope_base = 10000,
        .rope_base_local = 10000, .attn_softcap = 50, .final_softcap = 30, .n_layers_27b = 46},
    [PD_GEMMA3] = {.name = "gemma3", .hf_types = {"gemma3_text", "gemma3"}, .post_norms = true, .qk_norms = true,
        .scale_embedding = true, .hf_norm_plus_one = true, .tied = true, .start_of_turn = 105, .local_rope = true,
        .window_pattern = 6, .rope_base = 1000000, .rope_base_local = 10000, .n_layers_27b = 62},
    [PD_LLAMA] = {.name = "llama", .hf_types = {"llama"}, .silu = true, .gguf_interleaved = true, .space_prefix = true,
        .rope_base = 10000},
    /* For tests: its layers differ in all that layers can differ in. */
    [PD_TEST_FAMILY] = {.name = "peridot-test", .hf_types = {"peridot_test"}, .post_norms = true, .qk_norms = true,
        .scale_embedding = true, .tied = true, .start_of_turn = 105, .optional_v = true, .local_rope = true,
        .window_pattern = 2, .rope_base = 1000000, .rope_base_local = 10000},
};
