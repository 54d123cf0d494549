/* Sizes of published models, for synthetic models only: those of a real model are read from its file. */
#include "arch/arch.h"

#include "base/base.h"

#include <stdio.h>
#include <string.h>

/* Layers that are not alike; the last three read the caches of layers 3, 4 and 2. */
static const struct pd_layer mixed_layers[] = {
    {.n_heads = 4, .n_kv_heads = 2, .head_dim = 64, .ffn_dim = 512, .window = 24, .has_v = true},
    {.n_heads = 4, .n_kv_heads = 1, .head_dim = 128, .ffn_dim = 768, .has_v = true},
    {.n_heads = 8, .n_kv_heads = 4, .head_dim = 32, .ffn_dim = 256, .window = 40, .has_v = true},
    {.n_heads = 4, .n_kv_heads = 2, .head_dim = 64, .ffn_dim = 256, .window = 24, .has_v = true},
    {.n_heads = 4, .n_kv_heads = 1, .head_dim = 128, .ffn_dim = 512},
    {.n_heads = 4, .n_kv_heads = 2, .head_dim = 64, .ffn_dim = 512, .window = 24, .has_v = true},
    {.n_heads = 4, .n_kv_heads = 1, .head_dim = 128, .ffn_dim = 512},
    {.n_heads = 8, .n_kv_heads = 4, .head_dim = 32, .ffn_dim = 768, .window = 40, .has_v = true},
};

#define LLAMA3 .rope_base = 500000, .eps = 1e-5f
#define GRANITE3 .rope_base = 1e7, .eps = 1e-5f, .embed_scale = 12, .residual_scale = 0.22f
#define MINISTRAL3 .eps = 1e-5f, .yarn_ctx = 16384, .yarn_weight = 1, .query_growth = 0.1f
#define QWEN .rope_base = 1000000
/* All but layers 2, 5, 8, 10, 12 and 14 are short convolutions. */
#define LFM2 .eps = 1e-5f, .keyless = 0xaadb
/* Of 4 H, which has the parameters that are published. */
#define GRANITE4H(n_v) GRANITE3, .delta = {1, n_v, 128, 64, 4, .mamba = true, .conv_bias = true}, \
    .keyless = ~UINT64_C(0x802008020)   /* all but layers 5, 15, 25 and 35 */
#define TINY_GRANITE4H GRANITE3, .query_scale = 0.125f, .logit_divisor = 16, .keyless = 0xb, \
    .delta = {2, 8, 32, 64, 4, .mamba = true, .conv_bias = true}
#define GPT_OSS .rope_base = 150000, .eps = 1e-5f
/* Of 3.5 the sizes that are certain are those of 4B and 9B; that 248,077 of the rows are tokens is not. */
#define QWEN35(...) .rope_base = 1e7, .rotated_columns = 0.25f, .pattern = 4, .delta = {__VA_ARGS__, 128, 128, 4}
#define GEMMA4 .global_head_dim = 512, .final_softcap = 30

/* The tiny ones are for tests: all widths are multiples of 256, tiny-gemma3 has more rows than tokens, and tiny-wide
 * has vectors as long as those of real models. Gemma 3 from 4B up has 64 rows more than pieces; files in circulation
 * fill the token list up to them. */
static const struct pd_shape shapes[] = {
    /*             name       family  layers d_model  ffn heads kv hd window  ctx rope   rows  tokens  pieces untied */
    {.name = "gemma-2b",    PD_GEMMA1,  18, 2048, 16384,  8,  1, 256,    0,   8192,  0, 256000, 256000, 256000, false},
    {.name = "gemma-7b",    PD_GEMMA1,  28, 3072, 24576, 16, 16, 256,    0,   8192,  0, 256000, 256000, 256000, false},
    {.name = "gemma2-2b",   PD_GEMMA2,  26, 2304,  9216,  8,  4, 256, 4096,   8192,  0, 256000, 256000, 256000, false},
    {.name = "gemma2-9b",   PD_GEMMA2,  42, 3584, 14336, 16,  8, 256, 4096,   8192,  0, 256000, 256000, 256000, false},
    {.name = "gemma2-27b",  PD_GEMMA2,  46, 4608, 36864, 32, 16, 128, 4096,   8192,  0, 256000, 256000, 256000, false},
    {.name = "gemma3-270m", PD_GEMMA3,  18,  640,  2048,  4,  1, 256,  512,  32768,  0, 262144, 262144, 262144, false},
    {.name = "gemma3-1b",   PD_GEMMA3,  26, 1152,  6912,  4,  1, 256,  512,  32768,  0, 262144, 262144, 262144, false},
    {.name = "gemma3-4b",   PD_GEMMA3,  34, 2560, 10240,  8,  4, 256, 1024, 131072,  8, 262208, 262208, 262144, false},
    {.name = "gemma3-12b",  PD_GEMMA3,  48, 3840, 15360, 16,  8, 256, 1024, 131072,  8, 262208, 262208, 262144, false},
    {.name = "gemma3-27b",  PD_GEMMA3,  62, 5376, 21504, 32, 16, 128, 1024, 131072,  8, 262208, 262208, 262144, false},
    {.name = "gemma4-e2b",  PD_GEMMA4,  35, 1536,  6144,  8,  1, 256,  512, 131072,  0, 262144, 262144, 262144, false,
     GEMMA4, .pattern = 5, .n_shared_kv = 20, .double_wide = true, .per_layer_dim = 256},
    {.name = "gemma4-e4b",  PD_GEMMA4,  42, 2560, 10240,  8,  2, 256,  512, 131072,  0, 262144, 262144, 262144, false,
     GEMMA4, .n_shared_kv = 18, .per_layer_dim = 256},
    {.name = "gemma4-12b",  PD_GEMMA4,  48, 3840, 15360, 16,  8, 256, 1024, 262144,  0, 262144, 262144, 262144, false,
     GEMMA4, .global_kv_heads = 1},
    {.name = "gemma4-26b-a4b", PD_GEMMA4, 30, 2816, 2112, 16,  8, 256, 1024, 262144,  0, 262144, 262144, 262144, false,
     GEMMA4, .global_kv_heads = 2, .n_experts = 128, .n_experts_used = 8, .expert_dim = 704},
    {.name = "gemma4-31b",  PD_GEMMA4,  60, 5376, 21504, 32, 16, 256, 1024, 262144,  0, 262144, 262144, 262144, false,
     GEMMA4, .global_kv_heads = 4},
    {.name = "gemma4-e2b-assistant", PD_GEMMA4_DRAFTER, 4, 256, 2048, 4, 1, 256, 512, 131072, 0, 262144, 262144, 262144,
     false, .global_head_dim = 512, .target_dim = 1536},
    {.name = "llama3.2-1b", PD_LLAMA,   16, 2048,  8192, 32,  8,  64,    0, 131072, 32, 128256, 128256, 128256, false,
     LLAMA3},
    {.name = "llama3.1-8b", PD_LLAMA,   32, 4096, 14336, 32,  8, 128,    0, 131072,  8, 128256, 128256, 128256, true,
     LLAMA3},
    {.name = "qwen2.5-0.5b", PD_QWEN2,  24,  896,  4864, 14,  2,  64,    0,  32768,  0, 151936, 151936, 151665, false,
     QWEN},
    {.name = "qwen2.5-1.5b", PD_QWEN2,  28, 1536,  8960, 12,  2, 128,    0,  32768,  0, 151936, 151936, 151665, false,
     QWEN},
    {.name = "qwen2.5-3b",  PD_QWEN2,   36, 2048, 11008, 16,  2, 128,    0,  32768,  0, 151936, 151936, 151665, false,
     QWEN},
    {.name = "qwen2.5-7b",  PD_QWEN2,   28, 3584, 18944, 28,  4, 128,    0,  32768,  0, 152064, 152064, 151665, true,
     QWEN},
    {.name = "qwen2.5-14b", PD_QWEN2,   48, 5120, 13824, 40,  8, 128,    0,  32768,  0, 152064, 152064, 151665, true,
     QWEN},
    {.name = "qwen2.5-32b", PD_QWEN2,   64, 5120, 27648, 40,  8, 128,    0,  32768,  0, 152064, 152064, 151665, true,
     QWEN},
    {.name = "qwen3-0.6b",  PD_QWEN3,   28, 1024,  3072, 16,  8, 128,    0,  40960,  0, 151936, 151936, 151669, false,
     QWEN},
    {.name = "qwen3-1.7b",  PD_QWEN3,   28, 2048,  6144, 16,  8, 128,    0,  40960,  0, 151936, 151936, 151669, false,
     QWEN},
    {.name = "qwen3-4b",    PD_QWEN3,   36, 2560,  9728, 32,  8, 128,    0,  40960,  0, 151936, 151936, 151669, false,
     QWEN},
    {.name = "qwen3-8b",    PD_QWEN3,   36, 4096, 12288, 32,  8, 128,    0,  40960,  0, 151936, 151936, 151669, true,
     QWEN},
    {.name = "qwen3-14b",   PD_QWEN3,   40, 5120, 17408, 40,  8, 128,    0,  40960,  0, 151936, 151936, 151669, true,
     QWEN},
    {.name = "qwen3-32b",   PD_QWEN3,   64, 5120, 25600, 64,  8, 128,    0,  40960,  0, 151936, 151936, 151669, true,
     QWEN},
    {.name = "qwen3-30b-a3b", PD_QWEN3_MOE, 48, 2048, 0, 32,  4, 128,    0,  40960,  0, 151936, 151936, 151669, true,
     QWEN, .n_experts = 128, .n_experts_used = 8, .expert_dim = 768},
    {.name = "qwen3-next-80b-a3b", PD_QWEN3_NEXT, 48, 2048, 512, 16, 2, 256, 0, 262144, 0, 151936, 151936, 151669, true,
     QWEN35(16, 32), .n_experts = 512, .n_experts_used = 10, .expert_dim = 512},
    {.name = "qwen3.5-0.8b", PD_QWEN35, 24, 1024,  3584,  8,  2, 256,    0, 262144,  0, 248320, 248320, 248077, false,
     QWEN35(16, 16)},
    {.name = "qwen3.5-2b",  PD_QWEN35,  24, 2048,  6144,  8,  2, 256,    0, 262144,  0, 248320, 248320, 248077, false,
     QWEN35(16, 16)},
    {.name = "qwen3.5-4b",  PD_QWEN35,  32, 2560,  9216, 16,  4, 256,    0, 262144,  0, 248320, 248320, 248077, false,
     QWEN35(16, 32)},
    {.name = "qwen3.5-9b",  PD_QWEN35,  32, 4096, 12288, 16,  4, 256,    0, 262144,  0, 248320, 248320, 248077, true,
     QWEN35(16, 32)},
    {.name = "qwen3.5-27b", PD_QWEN35,  64, 5120, 17408, 24,  4, 256,    0, 262144,  0, 248320, 248320, 248077, true,
     QWEN35(16, 48)},
    {.name = "qwen3.5-35b-a3b", PD_QWEN35_MOE, 40, 2048, 512, 16, 2, 256,  0, 262144,  0, 248320, 248320, 248077, true,
     QWEN35(16, 32), .n_experts = 256, .n_experts_used = 8, .expert_dim = 512},
    {.name = "gpt-oss-20b", PD_GPT_OSS, 24, 2880,    0, 64,  8,  64,  128, 131072, 32, 201088, 201088, 201088, true,
     GPT_OSS, .yarn_ctx = 4096, .n_experts = 32, .n_experts_used = 4, .expert_dim = 2880},
    {.name = "gpt-oss-120b", PD_GPT_OSS, 36, 2880,    0, 64, 8,  64,  128, 131072, 32, 201088, 201088, 201088, true,
     GPT_OSS, .yarn_ctx = 4096, .n_experts = 128, .n_experts_used = 4, .expert_dim = 2880},
    {.name = "granite3.3-2b", PD_GRANITE, 40, 2048, 8192, 32,  8,  64,    0, 131072,  0,  49159,  49159,  49159, false,
     GRANITE3, .query_scale = 0.015625f, .logit_divisor = 8},
    {.name = "granite3.3-8b", PD_GRANITE, 40, 4096, 12800, 32, 8, 128,    0, 131072,  0,  49159,  49159,  49159, false,
     GRANITE3, .query_scale = 0.0078125f, .logit_divisor = 16},
    {.name = "granite4.0-micro", PD_GRANITE4, 40, 2560, 8192, 40, 8, 64, 0, 131072, 0, 100352, 100352, 100352, false,
     GRANITE3, .query_scale = 0.015625f, .logit_divisor = 10},
    {.name = "granite4.0-h-1b", PD_GRANITE_HYBRID, 40, 1536, 4096, 12, 4, 128, 0, 131072, 0, 100352, 100352, 100352,
     false, GRANITE4H(48), .query_scale = 0.0078125f, .logit_divisor = 6},
    {.name = "granite4.0-h-micro", PD_GRANITE_HYBRID, 40, 2048, 8192, 32, 8, 64, 0, 131072, 0, 100352, 100352, 100352,
     false, GRANITE4H(64), .query_scale = 0.015625f, .logit_divisor = 8},
    {.name = "granite4.0-h-tiny", PD_GRANITE_HYBRID_MOE, 40, 1536, 1024, 12, 4, 128, 0, 131072, 0, 100352, 100352,
     100352, false, GRANITE4H(48), .query_scale = 0.0078125f, .logit_divisor = 6, .n_experts = 64,
     .n_experts_used = 6, .expert_dim = 512},
    {.name = "mistral-7b",  PD_MISTRAL, 32, 4096, 14336, 32,  8, 128,    0,  32768,  0,  32768,  32768,  32768, true,
     .rope_base = 1e6, .eps = 1e-5f},
    {.name = "mistral-nemo-12b", PD_MISTRAL, 40, 5120, 14336, 32, 8, 128, 0, 131072, 0, 131072, 131072, 131072, true,
     .rope_base = 1e6, .eps = 1e-5f},
    {.name = "ministral3-3b", PD_MINISTRAL3, 26, 3072, 9216, 32, 8, 128, 0, 262144, 16, 131072, 131072, 131072, false,
     MINISTRAL3},
    {.name = "ministral3-8b", PD_MINISTRAL3, 34, 4096, 14336, 32, 8, 128, 0, 262144, 16, 131072, 131072, 131072, true,
     MINISTRAL3},
    {.name = "ministral3-14b", PD_MINISTRAL3, 40, 5120, 16384, 32, 8, 128, 0, 262144, 16, 131072, 131072, 131072, true,
     MINISTRAL3},
    {.name = "phi4-mini",   PD_PHI3,    32, 3072,  8192, 24,  8, 128,    0, 131072,  0, 200064, 200064, 200064, false,
     .eps = 1e-5f, .rotated_columns = 0.75f},
    {.name = "olmo2-7b",    PD_OLMO2,   32, 4096, 11008, 32, 32, 128,    0,   4096,  0, 100352, 100352, 100278, true,
     .rope_base = 5e5},
    {.name = "olmo3-7b",    PD_OLMO3,   32, 4096, 11008, 32, 32, 128, 4096,  65536,  8, 100278, 100278, 100278, true,
     .yarn_ctx = 8192},
    {.name = "olmo3-32b",   PD_OLMO3,   64, 5120, 27648, 40,  8, 128, 4096,  65536,  8, 100278, 100278, 100278, true,
     .yarn_ctx = 8192},
    {.name = "lfm2-350m",   PD_LFM2,    16, 1024,  4608, 16,  8,  64,    0, 128000,  0,  65536,  65536,  65536, false,
     LFM2},
    {.name = "lfm2-700m",   PD_LFM2,    16, 1536,  6912, 24,  8,  64,    0, 128000,  0,  65536,  65536,  65536, false,
     LFM2},
    {.name = "lfm2-1.2b",   PD_LFM2,    16, 2048,  8192, 32,  8,  64,    0, 128000,  0,  65536,  65536,  65536, false,
     LFM2},
    {.name = "lfm2-8b-a1b", PD_LFM2_MOE, 24, 2048, 7168, 32,  8,  64,    0, 128000,  0,  65536,  65536,  65536, false,
     .eps = 1e-5f, .keyless = 0xdbbbbb, .n_dense = 2, .n_experts = 32, .n_experts_used = 4, .expert_dim = 1792},
    {.name = "smollm3-3b",  PD_SMOLLM3, 36, 2048, 11008, 16,  4, 128,    0,  65536,  0, 128256, 128256, 128256, false,
     .rope_base = 5e6},
    {.name = "muse-glimmer-30b", PD_MUSE_GLIMMER, 52, 6656, 19968, 32, 2, 128, 2048, 131072, 0, 202048, 202048, 202048,
     true, .rope_base = 5e5, .eps = 1e-5f},
    {.name = "tiny-gemma",  PD_GEMMA1,   2,  256,   512,  4,  1,  64,    0,    512,  0,   1024,   1024,   1024, false},
    {.name = "tiny-gemma2", PD_GEMMA2,   4,  256,   512,  4,  2,  64,   32,    512,  0,   1024,   1024,   1024, false},
    {.name = "tiny-gemma3", PD_GEMMA3,   7,  256,   512,  4,  2,  64,   32,    512,  8,   1088,   1024,   1000, false},
    {.name = "tiny-gemma4", PD_GEMMA4,   6,  256,   512,  4,  2,  64,   32,    512,  0,   1024,   1024,   1024, false,
     .pattern = 3, .global_head_dim = 128, .final_softcap = 30, .global_kv_heads = 1},
    {.name = "tiny-gemma4-moe", PD_GEMMA4, 3, 256,  256,  4,  2,  64,   32,    512,  0,   1024,   1024,   1024, false,
     .pattern = 3, .global_head_dim = 128, .final_softcap = 30, .global_kv_heads = 1, .n_experts = 8,
     .n_experts_used = 2, .expert_dim = 256},
    {.name = "tiny-gemma4-e", PD_GEMMA4, 6,  256,   256,  4,  1,  64,   32,    512,  0,   1024,   1024,   1024, false,
     .pattern = 3, .global_head_dim = 128, .final_softcap = 30, .n_shared_kv = 3, .double_wide = true,
     .per_layer_dim = 256},
    {.name = "tiny-gemma4-assistant", PD_GEMMA4_DRAFTER, 4, 256, 256, 4, 2, 64, 32, 512, 0, 1024, 1024, 1024, false,
     .global_head_dim = 128, .global_kv_heads = 1, .target_dim = 256},
    {.name = "tiny-llama",  PD_LLAMA,    2,  256,   512,  4,  2,  64,    0,    512,  8,   1024,   1024,   1024, true,
     LLAMA3},
    {.name = "tiny-qwen2",  PD_QWEN2,    2,  256,   512,  4,  2,  64,    0,    512,  0,   1024,   1024,   1000, true,
     QWEN},
    {.name = "tiny-qwen3",  PD_QWEN3,    2,  256,   512,  4,  2, 128,    0,    512,  0,   1024,   1024,   1000, false,
     QWEN},
    {.name = "tiny-qwen3-moe", PD_QWEN3_MOE, 2, 256,   0,  4,  2, 128,    0,    512,  0,   1024,   1024,   1000, true,
     QWEN, .n_experts = 8, .n_experts_used = 2, .expert_dim = 256},
    {.name = "tiny-qwen3.5", PD_QWEN35,  4,  256,   512,  4,  2,  64,    0, 262144,  0,   1024,   1024,   1000, false,
     QWEN35(2, 4)},
    {.name = "tiny-granite4-h", PD_GRANITE_HYBRID, 4, 256, 512, 4, 2, 64,  0, 131072,  0,   1024,   1024,   1024, false,
     TINY_GRANITE4H},
    {.name = "tiny-granite4-h-moe", PD_GRANITE_HYBRID_MOE, 4, 256, 256, 4, 2, 64, 0, 131072, 0, 1024, 1024, 1024, false,
     TINY_GRANITE4H, .n_experts = 8, .n_experts_used = 2, .expert_dim = 256},
    {.name = "tiny-gpt-oss", PD_GPT_OSS, 2, 256,     0,  8,  2,  64,   32,    512, 32,   1024,   1024,   1000, true,
     GPT_OSS, .yarn_ctx = 64, .n_experts = 8, .n_experts_used = 2, .expert_dim = 256},
    {.name = "tiny-wide",   PD_GEMMA2,   2, 1280,   256,  4,  2,  64,   32,    512,  0,   1024,   1024,   1024, false},
    {.name = "tiny-mixed",  PD_TEST_FAMILY, 8, 256, 768,  4,  1, 128,   40,    512,  0,   1024,   1024,   1024, false,
     .layers = mixed_layers, .n_shared_kv = 3},
};

const struct pd_shape *pd_shape_get(size_t i) { return i < PD_COUNT(shapes) ? &shapes[i] : NULL; }

const struct pd_shape *pd_shape_find(const char *name)
{
    for (size_t i = 0; i < PD_COUNT(shapes); i++)
        if (!strcmp(shapes[i].name, name)) return &shapes[i];
    return NULL;
}

static void set_ropes(struct pd_config *c, const struct pd_shape *s)
{
    const struct pd_family_traits *family = &pd_families[s->family];
    struct pd_rope rope = {.base = s->rope_base != 0 ? s->rope_base : family->rope_base, .divisor = 1,
        .rotated_part = family->rotated_part, .rotated_columns = s->rotated_columns, .low_freq_factor = 1,
        .high_freq_factor = 4, .old_ctx = 8192, .attn_factor = 1};
    if (s->yarn_ctx) {
        rope.divisor = s->rope_factor;
        rope.beta_fast = 32;
        rope.beta_slow = 1;
        rope.exact_ramp = family->exact_ramp;
        rope.yarn_weight = s->yarn_weight;
        rope.old_ctx = s->yarn_ctx;
        rope.attn_factor = pd_rope_yarn_factor(&rope);
    } else if (family->local_rope) {
        rope.divisor = s->rope_factor ? s->rope_factor : 1;
    } else {
        rope.factor = s->rope_factor;   /* Llama 3.1's */
    }
    c->ropes[PD_ROPE_GLOBAL] = c->ropes[PD_ROPE_LOCAL] = rope;
    double base = family->rope_base_local > 0 ? family->rope_base_local : rope.base;
    if (family->local_rope) c->ropes[PD_ROPE_LOCAL] = (struct pd_rope){.base = base, .divisor = 1, .attn_factor = 1};
}

static peridot_status set_layers(struct pd_config *c, const struct pd_shape *s)
{
    uint32_t pattern = s->pattern ? s->pattern : pd_families[s->family].window_pattern;
    PD_TRY(pd_layers_create(c));
    for (uint32_t i = 0; i < c->n_layers; i++) {
        struct pd_layer *l = &c->layers[i];
        bool local = pattern && !pd_family_is_nth(&pd_families[s->family], pattern, i, c->n_layers);
        *l = (struct pd_layer){.n_heads = s->n_heads, .n_kv_heads = s->n_kv_heads, .head_dim = s->head_dim,
            .ffn_dim = s->ffn_dim, .window = local ? s->window : 0, .has_v = local || !s->global_kv_heads,
            .n_experts = s->n_experts, .n_experts_used = s->n_experts_used, .expert_dim = s->expert_dim};
        if (i < s->n_dense) l->n_experts = l->n_experts_used = l->expert_dim = 0;
        if (!local && s->global_head_dim) l->head_dim = s->global_head_dim;
        if (!local && s->global_kv_heads) l->n_kv_heads = s->global_kv_heads;
        if (s->double_wide && i >= c->n_layers - c->n_shared_kv) l->ffn_dim *= 2;
        if (s->layers) *l = s->layers[i];
        bool recurs = (i < 64 && s->keyless >> i & 1) || (local && s->delta.n_v);
        const struct pd_delta conv = {.conv = 3, .n_channels = s->d_model};
        if (recurs) *l = (struct pd_layer){.ffn_dim = s->ffn_dim, .has_v = true, .n_experts = l->n_experts,
            .n_experts_used = l->n_experts_used, .expert_dim = l->expert_dim, .delta = s->delta.n_v ? s->delta : conv};
        l->choice_biases = l->n_experts && pd_families[s->family].sigmoid_routes;
        l->raw_routes = pd_families[s->family].raw_routes;
        l->experts_split = s->n_experts && !pd_families[s->family].experts_beside;
        PD_TRY(pd_layer_set_experts(l, &pd_families[s->family], s->name));
        l->kv_layer = i;
        if (recurs) continue;
        l->no_rope = s->delta.mamba || pd_rope_is_usually_absent(c, i);
        l->query_scale = s->query_scale != 0 ? s->query_scale : pd_layer_usual_scale(c, l);
    }
    return pd_layers_complete(c);
}

peridot_status pd_shape_config(struct pd_config *out, const struct pd_shape *s)
{
    const struct pd_family_traits *family = &pd_families[s->family];
    *out = (struct pd_config){.family = s->family, .n_layers = s->n_layers, .d_model = s->d_model, .ctx_max = s->ctx,
        .eps = s->eps != 0 ? s->eps : 1e-6f, .attn_softcap = (float)family->attn_softcap,
        .final_softcap = s->final_softcap != 0 ? s->final_softcap : (float)family->final_softcap,
        .embed_scale = s->embed_scale != 0 ? s->embed_scale : 1,
        .residual_scale = s->residual_scale != 0 ? s->residual_scale : 1,
        .logit_scale = s->logit_divisor != 0 ? 1 / s->logit_divisor
            : family->logit_scale != 0 ? (float)family->logit_scale : 1,
        .post_eps = (float)family->post_eps, .query_growth = s->query_growth,
        .fused_gate_up = family->fused,
        .n_shared_kv = s->n_shared_kv, .per_layer_dim = s->per_layer_dim, .target_dim = s->target_dim};
    out->tied = !s->untied;
    snprintf(out->name, sizeof out->name, "%s random", s->name);
    set_ropes(out, s);
    peridot_status status = set_layers(out, s);
    if (status != PERIDOT_OK) pd_config_free(out);
    return status;
}
