/* What a config.json may not say: every refusal by name. */
#include "config_fixture.h"

static const struct refusal {
    const char *rest, *a, *b;
    peridot_status status;
} refusals[] = {
    {"\"model_type\": \"nonesuch\"", "nonesuch", "model_type", PERIDOT_ERROR_UNSUPPORTED},
    {"\"model_type\": \"qwen3\", \"attention_bias\": true", "attention_bias", "true", PERIDOT_ERROR_UNSUPPORTED},
    {"\"model_type\": \"qwen2\", \"num_hidden_layers\": 1, \"layer_types\": [\"sliding_attention\"]",
     "layer_types[0]", "unless use_sliding_window is true", PERIDOT_ERROR_UNSUPPORTED},
    {"\"model_type\": \"qwen3_moe\", \"use_sliding_window\": true", "use_sliding_window", "not false",
     PERIDOT_ERROR_UNSUPPORTED},
    {"\"model_type\": \"qwen3_moe\", \"mlp_only_layers\": 3", "mlp_only_layers", "a list", PERIDOT_ERROR_FORMAT},
    {"\"model_type\": \"qwen3_moe\", \"norm_topk_prob\": 1", "norm_topk_prob", "true or false",
     PERIDOT_ERROR_FORMAT},
    {"\"model_type\": \"qwen3_moe\", \"num_experts\": 4", "num_experts_per_tok is 8", "4 experts",
     PERIDOT_ERROR_FORMAT},
    {"\"model_type\": \"mixtral\", \"num_local_experts\": 100000", "num_local_experts", "100000",
     PERIDOT_ERROR_FORMAT},
    {"\"model_type\": \"olmoe\", \"clip_qkv\": 8.0", "clip_qkv", "not null", PERIDOT_ERROR_UNSUPPORTED},
    {"\"model_type\": \"qwen2\", \"use_sliding_window\": 1", "use_sliding_window", "true or false",
     PERIDOT_ERROR_FORMAT},
    {"\"model_type\": \"ministral\", \"num_hidden_layers\": 1, \"sliding_window\": null, \"layer_types\": "
     "[\"sliding_attention\"]", "sliding_window is null", "layer 0 has a window", PERIDOT_ERROR_FORMAT},
    {"\"model_type\": \"ministral\", \"num_hidden_layers\": 2, \"layer_types\": [\"full_attention\"]",
     "1 entries", "2 layers", PERIDOT_ERROR_FORMAT},
    {"\"hidden_size\": 64", "model_type", "missing", PERIDOT_ERROR_FORMAT},
    {"\"model_type\": \"llama\", \"attention_bias\": 1", "attention_bias", "uint", PERIDOT_ERROR_UNSUPPORTED},
    {"\"model_type\": \"smollm3\", \"mlp_bias\": true", "mlp_bias", "true", PERIDOT_ERROR_UNSUPPORTED},
    {"\"model_type\": \"gemma2\", \"use_bidirectional_attention\": true", "use_bidirectional_attention",
     "true", PERIDOT_ERROR_UNSUPPORTED},
    {"\"model_type\": \"llama\", \"hidden_act\": \"relu\"", "relu", "activation", PERIDOT_ERROR_UNSUPPORTED},
    {"\"model_type\": \"gemma2\", \"hidden_activation\": \"silu\"", "silu", "activation",
     PERIDOT_ERROR_UNSUPPORTED},
    {"\"model_type\": \"llama\", \"rope_scaling\": {\"type\": \"mrope\"}", "mrope", "RoPE",
     PERIDOT_ERROR_UNSUPPORTED},
    {"\"model_type\": \"llama\", \"rope_scaling\": {\"rope_type\": \"proportional\"}", "proportional", "RoPE",
     PERIDOT_ERROR_UNSUPPORTED},
    {"\"model_type\": \"llama\", \"rope_parameters\": {\"rope_type\": \"longrope\"}",
     "rope_parameters.short_factor is missing", "list of numbers", PERIDOT_ERROR_FORMAT},
    {"\"model_type\": \"llama\", \"partial_rotary_factor\": 0.5", "partial_rotary_factor", "0.5",
     PERIDOT_ERROR_UNSUPPORTED},
    {"\"model_type\": \"llama\", \"rope_parameters\": {\"rope_type\": \"default\", \"partial_rotary_factor\": "
     "0.25}", "partial_rotary_factor", "0.25",
     PERIDOT_ERROR_UNSUPPORTED},
    {"\"model_type\": \"gemma3_text\", \"rope_parameters\": {\"full_attention\": {\"rope_type\": \"default\", "
     "\"partial_rotary_factor\": 0.25}}",
     "partial_rotary_factor", "0.25", PERIDOT_ERROR_UNSUPPORTED},
    {"\"model_type\": \"gemma3_text\", \"num_hidden_layers\": 1, \"layer_types\": [\"chunked_attention\"]",
     "chunked_attention", "layer_types[0]",
     PERIDOT_ERROR_UNSUPPORTED},
    {"\"model_type\": \"gemma3_text\", \"num_hidden_layers\": 2, \"layer_types\": [\"full_attention\"]",
     "1 entries", "2 layers", PERIDOT_ERROR_FORMAT},
    {"\"model_type\": \"llama\", \"num_hidden_layers\": 3, \"intermediate_size\": [64, 64]",
     "intermediate_size has 2 entries",
        "3 layers", PERIDOT_ERROR_FORMAT},
    {"\"model_type\": \"llama\", \"head_dim\": 64, \"num_attention_heads\": 6, \"num_key_value_heads\": 4",
     "6 query heads", "4 kv heads", PERIDOT_ERROR_FORMAT},
    {"\"model_type\": \"llama\", \"hidden_size\": \"64\"", "hidden_size", "count", PERIDOT_ERROR_FORMAT},
    {"\"model_type\": \"llama\", \"rms_norm_eps\": [1]", "rms_norm_eps", "number", PERIDOT_ERROR_FORMAT},
    {"\"model_type\": \"llama\", \"num_hidden_layers\": 0", "num_hidden_layers is 0", "1024", PERIDOT_ERROR_FORMAT},
    {"\"model_type\": \"llama\", \"rope_theta\": 0", "rope_theta", "0", PERIDOT_ERROR_FORMAT},
    {"\"model_type\": \"gemma2\", \"query_pre_attn_scalar\": 0", "query_pre_attn_scalar is 0", "not between",
     PERIDOT_ERROR_FORMAT},
    {"\"model_type\": \"llama\", \"rope_scaling\": {\"rope_type\": \"llama3\", \"low_freq_factor\": 4.0}",
     "rope_scaling.factor",
        "missing", PERIDOT_ERROR_FORMAT},
}, refusals_of_hybrids[] = {
    {"\"model_type\": \"qwen3_5_text\", \"linear_num_value_heads\": 24", "24 value heads", "share 16 key heads",
     PERIDOT_ERROR_FORMAT},
    {"\"model_type\": \"qwen3_5_text\", \"linear_value_head_dim\": 1000", "linear_value_head_dim", "1000",
     PERIDOT_ERROR_FORMAT},
    {"\"model_type\": \"qwen3_5_text\", \"linear_conv_kernel_dim\": 1", "linear_conv_kernel_dim is 1", "8",
     PERIDOT_ERROR_FORMAT},
    {"\"model_type\": \"qwen3_5_text\", \"num_hidden_layers\": 3", "no layer has attention", "not supported",
     PERIDOT_ERROR_UNSUPPORTED},
    {"\"model_type\": \"qwen3_5_text\", \"num_hidden_layers\": 2, \"layer_types\": [\"full_attention\"]",
     "1 entries", "2 layers", PERIDOT_ERROR_FORMAT},
    {"\"model_type\": \"qwen3_5_text\", \"num_hidden_layers\": 1, \"layer_types\": [\"sliding_attention\"]",
     "layer_types[0]", "sliding_attention", PERIDOT_ERROR_UNSUPPORTED},
    {"\"model_type\": \"qwen3_5_text\", \"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": "
     "1e4, \"mrope_section\": [11, 11]}", "mrope_section", "three counts", PERIDOT_ERROR_FORMAT},
    {"\"model_type\": \"qwen3_next\", \"mlp_only_layers\": [2]", "mlp_only_layers", "layer 2 without experts",
     PERIDOT_ERROR_UNSUPPORTED},
    {"\"model_type\": \"qwen3_next\", \"decoder_sparse_step\": 2", "decoder_sparse_step", "qwen3next model",
     PERIDOT_ERROR_UNSUPPORTED},
    {"\"model_type\": \"qwen3_next\", \"num_experts_per_tok\": 9, \"num_experts\": 8", "num_experts_per_tok is 9",
     "8 experts", PERIDOT_ERROR_FORMAT},
    {"\"model_type\": \"lfm2\", \"conv_bias\": true", "conv_bias", "true", PERIDOT_ERROR_UNSUPPORTED},
    {"\"model_type\": \"lfm2\", \"conv_L_cache\": 9", "conv_L_cache is 9", "8", PERIDOT_ERROR_FORMAT},
    {"\"model_type\": \"lfm2\", \"full_attn_idxs\": [2, 32]", "full_attn_idxs[1]", "32 layers",
     PERIDOT_ERROR_FORMAT},
    {"\"model_type\": \"lfm2\", \"full_attn_idxs\": []", "no layer has attention", "not supported",
     PERIDOT_ERROR_UNSUPPORTED},
    {"\"model_type\": \"lfm2\", \"num_hidden_layers\": 2, \"layer_types\": [\"full_attention\", \"mamba\"]",
     "layer_types[1]", "mamba", PERIDOT_ERROR_UNSUPPORTED},
#define GRANITE_H "\"model_type\": \"granitemoehybrid\", \"num_hidden_layers\": 2, \"num_local_experts\": 0, " \
"\"hidden_size\": 64, \"mamba_n_heads\": 4, \"layer_types\": [\"mamba\", \"attention\"]"
    {GRANITE_H ", \"mamba_d_head\": 16", "mamba_d_head", "4 heads of 16", PERIDOT_ERROR_FORMAT},
    {GRANITE_H ", \"mamba_expand\": 0", "mamba_expand is 0", "64", PERIDOT_ERROR_FORMAT},
    {GRANITE_H ", \"mamba_n_groups\": 3", "4 value heads", "share 3 key heads", PERIDOT_ERROR_FORMAT},
    {GRANITE_H ", \"mamba_proj_bias\": true", "mamba_proj_bias", "true", PERIDOT_ERROR_UNSUPPORTED},
    {GRANITE_H ", \"time_step_limit\": [0.0, 1.0]", "time_step_limit", "infinity", PERIDOT_ERROR_UNSUPPORTED},
    {GRANITE_H ", \"time_step_limit\": [0.1, {\"__float__\": \"Infinity\"}]", "time_step_limit", "infinity",
     PERIDOT_ERROR_UNSUPPORTED},
    {"\"model_type\": \"granitemoehybrid\", \"num_hidden_layers\": 2, \"layer_types\": [\"mamba\", \"conv\"]",
     "layer_types[1]", "nor \"mamba\"", PERIDOT_ERROR_UNSUPPORTED},
    {"\"model_type\": \"lfm2\", \"block_multiple_of\": 1000000, \"block_ffn_dim_multiplier\": 1000",
     "block_ff_dim", "1048576", PERIDOT_ERROR_FORMAT},
    {"\"model_type\": \"lfm2_moe\", \"routed_scaling_factor\": 2.5", "routed_scaling_factor is 2.5", "only 1 is",
     PERIDOT_ERROR_UNSUPPORTED},
    {"\"model_type\": \"granitemoehybrid\", \"layer_types\": [\"attention\"]", "num_local_experts is not 0",
     "without state-space blocks", PERIDOT_ERROR_UNSUPPORTED},
};

static void refuse_all(const struct refusal *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char json[512];
        snprintf(json, sizeof json, "{%s}", rows[i].rest);
        refuse_json(rows[i].status, json, rows[i].a, rows[i].b);
    }
}

static void test_json_refusals(void **state)
{
    (void)state;
    refuse_all(refusals, PD_COUNT(refusals));
    refuse_all(refusals_of_hybrids, PD_COUNT(refusals_of_hybrids));
}

/* Files that say what is not so, or what Peridot does not do: a config that is fine but for one key. */
struct mutation {
    const char *change;      /* members, after those that every file has */
    const char *a, *b;       /* what the sentence says, beside the file's name */
};

static void refuse_mutations(const char *base, const struct mutation *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char json[1024];
        struct pd_config c;
        snprintf(json, sizeof json, "{%s, %s}", base, rows[i].change);
        peridot_status status = read_json(&c, json);
        if (status == PERIDOT_OK) fail_msg("%s is taken", rows[i].change);
        assert_true(status == PERIDOT_ERROR_FORMAT || status == PERIDOT_ERROR_UNSUPPORTED);
        expect_sentence((const char *const[]){"config.json: ", rows[i].a, rows[i].b, NULL});
    }
}

#define REFUSE_MUTATIONS(base, rows) refuse_mutations(base, rows, PD_COUNT(rows))

static void accept_mutations(const char *base, const char *const *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char json[1024];
        struct pd_config c;
        snprintf(json, sizeof json, "{%s, %s}", base, rows[i]);
        EXPECT_OK(read_json(&c, json));
        pd_config_free(&c);
    }
}

#define ACCEPT_MUTATIONS(base, rows) accept_mutations(base, rows, PD_COUNT(rows))

static void test_json_activation(void **state)
{
    (void)state;
    static const struct mutation gemma[] = {
        {"\"hidden_activation\": \"gelu\"", "hidden_activation", "\"gelu\""},
        {"\"hidden_activation\": \"gelu\", \"hidden_act\": \"gelu_pytorch_tanh\"", "hidden_activation", "\"gelu\""},
        {"\"hidden_activation\": \"relu\"", "hidden_activation", "\"relu\""},
        {"\"hidden_activation\": \"silu\"", "hidden_activation", "\"silu\""},
        {"\"hidden_activation\": \"quick_gelu\"", "hidden_activation", "\"quick_gelu\""},
        {"\"hidden_activation\": 1", "hidden_activation", "activation"},
        {"\"hidden_activation\": null", "hidden_activation", "null"},
        {"\"hidden_act\": \"gelu\"", "hidden_act", "\"gelu\""},
        {"\"hidden_act\": \"silu\"", "hidden_act", "\"silu\""},
    };
    static const struct mutation gemma1[] = {
        {"\"hidden_activation\": \"gelu\"", "hidden_activation", "\"gelu\""},
        {"\"hidden_act\": \"gelu_pytorch_tanh\", \"hidden_activation\": \"gelu\"", "hidden_activation", "\"gelu\""},
        {"\"hidden_act\": \"silu\", \"hidden_activation\": null", "hidden_act", "\"silu\""},
        {"\"hidden_act\": \"relu\", \"hidden_activation\": \"gelu_pytorch_tanh\"", "hidden_act", "\"relu\""},
        {"\"hidden_act\": []", "hidden_act", "array"},
    };
    static const struct mutation llama[] = {
        {"\"hidden_act\": \"gelu\"", "hidden_act", "\"gelu\""},
        {"\"hidden_act\": \"gelu_pytorch_tanh\"", "hidden_act", "gelu_pytorch_tanh"},
        {"\"hidden_act\": null", "hidden_act", "null"},
        {"\"hidden_activation\": \"gelu\"", "hidden_activation", "\"gelu\""},
    };
    REFUSE_MUTATIONS("\"model_type\": \"gemma2\"", gemma);
    REFUSE_MUTATIONS("\"model_type\": \"gemma3_text\"", gemma);
    REFUSE_MUTATIONS("\"model_type\": \"gemma\"", gemma1);
    REFUSE_MUTATIONS("\"model_type\": \"llama\"", llama);
    static const char *const tanh_forms[] = {"\"hidden_activation\": \"gelu_pytorch_tanh\"",
        "\"hidden_activation\": \"gelu_new\"", "\"hidden_activation\": \"gelu_python_tanh\"",
        "\"hidden_act\": \"gelu_pytorch_tanh\""};
    static const char *const later[] = {"\"hidden_act\": \"gelu\", \"hidden_activation\": \"gelu_pytorch_tanh\""};
    static const char *const first[] = {"\"hidden_act\": \"gelu\"",
        "\"hidden_act\": \"gelu\", \"hidden_activation\": null",
        "\"hidden_act\": \"gelu\", \"hidden_activation\": \"gelu_pytorch_tanh\"", "\"hidden_act\": null"};
    static const char *const silu[] = {"\"hidden_act\": \"silu\"", "\"hidden_act\": \"swish\""};
    ACCEPT_MUTATIONS("\"model_type\": \"gemma\"", tanh_forms);
    ACCEPT_MUTATIONS("\"model_type\": \"gemma2\"", tanh_forms);
    ACCEPT_MUTATIONS("\"model_type\": \"gemma3_text\"", tanh_forms);
    ACCEPT_MUTATIONS("\"model_type\": \"gemma2\"", later);
    ACCEPT_MUTATIONS("\"model_type\": \"gemma\"", first);
    ACCEPT_MUTATIONS("\"model_type\": \"llama\"", silu);
}

/* transformers computes no softcap of attention in Gemma 3, and none at all in Gemma 1 and Llama. */
static void test_json_softcaps(void **state)
{
    (void)state;
    static const struct mutation attention[] = {
        {"\"attn_logit_softcapping\": 50.0", "attn_logit_softcapping", "null"},
        {"\"attn_logit_softcapping\": 0", "attn_logit_softcapping", "null"},
        {"\"attn_logit_softcapping\": \"none\"", "attn_logit_softcapping", "null"},
    };
    static const struct mutation final[] = {{"\"final_logit_softcapping\": 30.0", "final_logit_softcapping", "null"}};
    static const struct mutation gemma2[] = {
        {"\"attn_logit_softcapping\": 0", "attn_logit_softcapping is 0", "not between"},
        {"\"attn_logit_softcapping\": -50.0", "attn_logit_softcapping is -50", "not between"},
        {"\"attn_logit_softcapping\": \"50\"", "attn_logit_softcapping is string", "number"},
        {"\"final_logit_softcapping\": 0.0", "final_logit_softcapping is 0", "not between"},
        {"\"final_logit_softcapping\": 1e30", "final_logit_softcapping is 1e+30", "not between"},
        {"\"final_logit_softcapping\": false", "final_logit_softcapping is false", "number"},
    };
    REFUSE_MUTATIONS("\"model_type\": \"gemma3_text\"", attention);
    REFUSE_MUTATIONS("\"model_type\": \"gemma\"", attention);
    REFUSE_MUTATIONS("\"model_type\": \"llama\"", attention);
    REFUSE_MUTATIONS("\"model_type\": \"gemma\"", final);
    REFUSE_MUTATIONS("\"model_type\": \"llama\"", final);
    REFUSE_MUTATIONS("\"model_type\": \"gemma2\"", gemma2);
    struct pd_config c = json_config("{\"model_type\": \"gemma3_text\", \"attn_logit_softcapping\": null,"
                                     " \"final_logit_softcapping\": 20}");
    assert_true(c.attn_softcap == 0 && c.final_softcap == 20);   /* this one transformers does compute */
    pd_config_free(&c);
}

static void test_json_windows(void **state)
{
    (void)state;
    static const struct mutation rows[] = {
        {"\"sliding_window\": null", "sliding_window is null", "layer 0"},
        {"\"sliding_window\": 0", "sliding_window is 0", "layer 0"},
        {"\"sliding_window\": -1", "sliding_window is sint", "count"},
        {"\"sliding_window\": 512.5", "sliding_window is real", "count"},
        {"\"sliding_window\": \"512\"", "sliding_window is string", "count"},
        {"\"sliding_window\": 3000000000", "sliding_window is 3000000000", "2147483647"},
        {"\"sliding_window\": 99999999999", "sliding_window is uint", "count"},
        {"\"sliding_window_pattern\": 0", "sliding_window_pattern is 0", "1"},
        {"\"sliding_window_pattern\": \"6\"", "sliding_window_pattern is string", "count"},
        {"\"_sliding_window_pattern\": 3", "_sliding_window_pattern", "layer_types"},
        {"\"num_hidden_layers\": 2, \"layer_types\": \"full_attention\"", "layer_types is string", "list"},
        {"\"num_hidden_layers\": 2, \"layer_types\": []", "layer_types has 0 entries", "2 layers"},
        {"\"num_hidden_layers\": 1, \"layer_types\": [1]", "layer_types[0]", "uint"},
        {"\"num_hidden_layers\": 1, \"layer_types\": [\"linear_attention\"]", "layer_types[0]", "linear_attention"},
    };
    static const struct mutation gemma2[] = {{"\"sliding_window_pattern\": 3", "sliding_window_pattern is 3",
        "always 2"}};
    static const struct mutation llama[] = {
        {"\"num_hidden_layers\": 1, \"layer_types\": [\"sliding_attention\"]", "layer_types[0]", "llama"}};
    static const char *const global[] = {
        "\"num_hidden_layers\": 1, \"layer_types\": [\"full_attention\"], \"sliding_window\": null"};
    REFUSE_MUTATIONS("\"model_type\": \"gemma3_text\"", rows);
    REFUSE_MUTATIONS("\"model_type\": \"gemma2\"", rows);
    REFUSE_MUTATIONS("\"model_type\": \"gemma2\"", gemma2);
    REFUSE_MUTATIONS("\"model_type\": \"llama\"", llama);
    ACCEPT_MUTATIONS("\"model_type\": \"gemma2\"", global);
    ACCEPT_MUTATIONS("\"model_type\": \"llama\"", global);
}

static void test_json_rope(void **state)
{
    (void)state;
    static const struct mutation rows[] = {
        {"\"rope_scaling\": \"linear\"", "rope_scaling is string", "object"},
        {"\"rope_scaling\": [8]", "rope_scaling is array", "object"},
        {"\"rope_scaling\": 8.0", "rope_scaling is real", "object"},
        {"\"rope_scaling\": true", "rope_scaling is true", "object"},
        {"\"rope_scaling\": {\"factor\": 8.0}", "rope_scaling.rope_type", "missing"},
        {"\"rope_scaling\": {\"rope_type\": null, \"factor\": 8.0}", "rope_scaling.rope_type is null", "string"},
        {"\"rope_scaling\": {\"rope_type\": 1, \"factor\": 8.0}", "rope_scaling.rope_type is uint", "string"},
        {"\"rope_scaling\": {\"type\": [], \"factor\": 8.0}", "rope_scaling.type is array", "string"},
        {"\"rope_scaling\": {\"rope_type\": \"Linear\", \"factor\": 8.0}", "rope_scaling.rope_type", "\"Linear\""},
        {"\"rope_scaling\": {\"rope_type\": \"\", \"factor\": 8.0}", "rope_scaling.rope_type", "\"\""},
        {"\"rope_scaling\": {\"rope_type\": \"Yarn\", \"factor\": 8.0}", "rope_scaling.rope_type", "\"Yarn\""},
        {"\"rope_scaling\": {\"rope_type\": \"dynamic\"}", "rope_scaling.factor", "missing"},
        {"\"rope_scaling\": {\"rope_type\": \"dynamic\", \"factor\": 0}", "rope_scaling.factor is 0", "not between"},
        {"\"rope_scaling\": {\"rope_type\": \"linear\", \"type\": \"yarn\", \"factor\": 2}", "rope_scaling.rope_type",
         "not the same"},
        {"\"rope_scaling\": {\"rope_type\": \"linear\"}", "rope_scaling.factor", "missing"},
        {"\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": null}", "rope_scaling.factor is null", "number"},
        {"\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": \"8\"}", "rope_scaling.factor is string", "number"},
        {"\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 0}", "rope_scaling.factor is 0", "not between"},
        {"\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 0.0}", "rope_scaling.factor is 0", "not between"},
        {"\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": -8}", "rope_scaling.factor is -8", "not between"},
        {"\"rope_scaling\": {\"type\": \"linear\", \"factor\": 1e30}", "rope_scaling.factor is 1e+30", "not between"},
        {"\"rope_theta\": 0", "rope_theta is 0", "not between"},
        {"\"rope_theta\": -10000.0", "rope_theta is -10000", "not between"},
        {"\"rope_theta\": 1e300", "rope_theta is 1e+300", "not between"},
        {"\"rope_theta\": \"10000\"", "rope_theta is string", "number"},
        {"\"partial_rotary_factor\": \"half\"", "partial_rotary_factor is string", "number"},
        {"\"rope_parameters\": \"default\"", "rope_parameters is string", "object"},
    };
    REFUSE_MUTATIONS("\"model_type\": \"gemma\"", rows);
    REFUSE_MUTATIONS("\"model_type\": \"gemma2\"", rows);
    REFUSE_MUTATIONS("\"model_type\": \"gemma3_text\"", rows);
    REFUSE_MUTATIONS("\"model_type\": \"llama\"", rows);
    static const char *const fine[] = {"\"rope_scaling\": {}", "\"rope_parameters\": {}", "\"rope_scaling\": null",
        "\"rope_scaling\": {\"rope_type\": \"default\"}", "\"partial_rotary_factor\": null",
        "\"rope_scaling\": {\"rope_type\": \"dynamic\", \"factor\": 2}"};
    ACCEPT_MUTATIONS("\"model_type\": \"llama\"", fine);
    ACCEPT_MUTATIONS("\"model_type\": \"gemma3_text\"", fine);
}

static void test_json_rope_rules(void **state)
{
    (void)state;
#define YARN "\"rope_scaling\": {\"rope_type\": \"yarn\", "
    static const struct mutation yarn[] = {
        {YARN "\"beta_fast\": 32}", "rope_scaling.factor", "missing"},
        {YARN "\"factor\": -4}", "rope_scaling.factor is -4", "not between"},
        {YARN "\"factor\": \"4\"}", "rope_scaling.factor is string", "number"},
        {YARN "\"factor\": 4, \"beta_fast\": 0}", "rope_scaling.beta_fast is 0", "not between"},
        {YARN "\"factor\": 4, \"beta_slow\": -1}", "rope_scaling.beta_slow is -1", "not between"},
        {YARN "\"factor\": 4, \"beta_fast\": 1, \"beta_slow\": 2}", "beta_fast is 1", "beta_slow, which is 2"},
        {YARN "\"factor\": 4, \"attention_factor\": 0}", "rope_scaling.attention_factor is 0", "not between"},
        {YARN "\"factor\": 4, \"attention_factor\": \"1\"}", "rope_scaling.attention_factor is string", "number"},
        {YARN "\"factor\": 4, \"mscale\": 1000, \"mscale_all_dim\": -1}", "mscale_all_dim is -1", "not between"},
        {YARN "\"factor\": 4, \"truncate\": 0}", "rope_scaling.truncate is uint", "true or false"},
        {YARN "\"factor\": 4, \"original_max_position_embeddings\": 0}", "original_max_position_embeddings is 0",
         "not between"},
        {YARN "\"factor\": 4}, \"original_max_position_embeddings\": 1e30", "original_max_position_embeddings is 1e+30",
         "not between"},
        {YARN "\"factor\": 4}, \"rope_theta\": 1", "rope_scaling.rope_type", "base of 1"},
        {YARN "\"factor\": 4}, \"rope_parameters\": {\"rope_type\": \"yarn\", \"factor\": 4, \"beta_fast\": 16}",
         "rope_scaling and rope_parameters", "contradict"},
    };
#define LONG "\"head_dim\": 8, \"rope_scaling\": {\"rope_type\": \"longrope\", "
#define FACTORS "\"short_factor\": [1, 1.5, 2, 3], \"long_factor\": [1, 2, 3, 4]"
    static const struct mutation longrope[] = {
        {LONG "\"short_factor\": 2, \"long_factor\": 2}", "rope_scaling.short_factor is uint", "list of numbers"},
        {LONG "\"short_factor\": [1, 1, 1, 1]}", "rope_scaling.long_factor is missing", "list of numbers"},
        {LONG "\"short_factor\": [], \"long_factor\": []}", "rope_scaling.short_factor has 0 entries", ""},
        {LONG "\"short_factor\": [1, 1, 1, 1], \"long_factor\": [1, 1]}", "rope_scaling.long_factor has 2 entries",
         "short_factor another"},
        {LONG "\"short_factor\": [1, 1, 0, 1], \"long_factor\": [1, 1, 1, 1]}", "rope_scaling.short_factor[2]",
         "not a number between"},
        {LONG "\"short_factor\": [1, 1, 1, 1], \"long_factor\": [1, -1, 1, 1]}", "rope_scaling.long_factor[1]",
         "not a number between"},
        {LONG "\"short_factor\": [1, 1, 1, 1], \"long_factor\": [1, 1, 1, null]}", "rope_scaling.long_factor[3]",
         "not a number between"},
        {LONG "\"short_factor\": [1, 1, 1, 1], \"long_factor\": [1, 1, 1, 1e300]}", "rope_scaling.long_factor[3]",
         "not a number between"},
        {LONG FACTORS ", \"factor\": 0}", "rope_scaling.factor is 0", "not between"},
        {LONG FACTORS ", \"attention_factor\": -1}", "rope_scaling.attention_factor is -1", "not between"},
        {LONG FACTORS "}, \"original_max_position_embeddings\": 0", "original_max_position_embeddings is 0", "between"},
        {LONG FACTORS "}, \"rope_parameters\": {\"rope_type\": \"longrope\", \"short_factor\": [1, 1.5, 2, 4], "
         "\"long_factor\": [1, 2, 3, 4]}", "rope_scaling and rope_parameters", "contradict"},
    };
    static const struct mutation llama[] = {
        {"\"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8.0}", "rope_scaling.low_freq_factor", "missing"},
        {"\"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8.0, \"low_freq_factor\": 1.0,"
         " \"high_freq_factor\": 4.0}", "rope_scaling.original_max_position_embeddings", "missing"},
        {"\"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 0, \"low_freq_factor\": 1.0,"
         " \"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 8192}", "rope_scaling.factor is 0",
         "between"},
        {"\"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 4.0,"
         " \"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 8192}", "high_freq_factor is 4", "larger"},
        {"\"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 1.0,"
         " \"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 0}",
         "original_max_position_embeddings is 0", "between"},
        {"\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 4.0}, \"rope_parameters\": {\"rope_type\": "
         "\"linear\","
         " \"factor\": 8.0}", "rope_scaling and rope_parameters", "contradict"},
        {"\"rope_parameters\": {\"rope_type\": \"linear\", \"factor\": 0}", "rope_parameters.factor is 0", "between"},
        {"\"rope_parameters\": {\"rope_theta\": 1e4, \"factor\": 8}", "rope_parameters.rope_type", "missing"},
        {"\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"default\"}}", "rope_parameters cannot be",
         "llama"},
    };
    REFUSE_MUTATIONS("\"model_type\": \"llama\"", llama);
    REFUSE_MUTATIONS("\"model_type\": \"llama\"", yarn);
    REFUSE_MUTATIONS("\"model_type\": \"llama\"", longrope);
    refuse_json(PERIDOT_ERROR_FORMAT, "{\"model_type\": \"llama\", \"head_dim\": 16, \"rope_scaling\": {\"rope_type\": "
                "\"longrope\", " FACTORS "}}", "4 factors of rotation", "8 pairs of a head");
}

static void test_json_rope_of_families(void **state)
{
    (void)state;
    static const struct mutation partial[] = {
        {"\"partial_rotary_factor\": 0", "partial_rotary_factor is 0", "not between"},
        {"\"partial_rotary_factor\": -0.5", "partial_rotary_factor is -0.5", "not between"},
        {"\"partial_rotary_factor\": 1.5", "partial_rotary_factor is 1.5", "not between"},
        {"\"rope_parameters\": {\"rope_type\": \"default\", \"partial_rotary_factor\": \"half\"}",
         "rope_parameters.partial_rotary_factor is string", "number"},
    };
    static const struct mutation no_rope[] = {
        {"\"no_rope_layers\": [1]", "no_rope_layers has 1 entries", "2 layers"},
        {"\"no_rope_layers\": [1, 2]", "no_rope_layers[1]", "not 0 or 1"},
        {"\"no_rope_layers\": [true, 1]", "no_rope_layers[0]", "not 0 or 1"},
        {"\"no_rope_layers\": 4", "no_rope_layers is uint", "a list"},
        {"\"use_sliding_window\": true, \"sliding_window\": 64", "use_sliding_window is true", "smollm3"},
        {"\"no_rope_layer_interval\": 0", "no_rope_layer_interval is 0", "not between"},
    };
    static const struct mutation bases[] = {
        {"\"layer_rope_theta\": [0]", "layer_rope_theta has 1 entries", "2 layers"},
        {"\"layer_rope_theta\": [true, 0]", "layer_rope_theta[0]", "not a number"},
        {"\"layer_rope_theta\": [0, 500000]", "layer_rope_theta[1] is 500000", "neither 0 nor rope_theta"},
        {"\"layer_rope_theta\": 0", "layer_rope_theta is uint", "a list"},
        {"\"attention_bias\": true", "attention_bias", "true"},
        {"\"post_norm_eps\": 0", "post_norm_eps is 0", "not between"},
        {"\"qk_scale_factor\": null", "qk_scale_factor is null", "number"},
        {"\"output_multiplier\": -1", "output_multiplier is -1", "not between"},
    };
#define GROWTH "\"rope_parameters\": {\"rope_type\": \"default\", \"llama_4_scaling_beta\": "
    static const struct mutation growth[] = {
        {GROWTH "-0.1}", "rope_parameters.llama_4_scaling_beta is -0.1", "not between"},
        {GROWTH "1e9}", "rope_parameters.llama_4_scaling_beta is 1000000000", "not between"},
        {GROWTH "[0.1]}", "rope_parameters.llama_4_scaling_beta is array", "number"},
    };
    static const struct mutation gemma3[] = {
        {"\"rope_local_base_freq\": 0", "rope_local_base_freq is 0", "not between"},
        {"\"rope_local_base_freq\": \"1e4\"", "rope_local_base_freq is string", "number"},
        {"\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 1e6}", "rope_parameters must be", "gemma3"},
        {"\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"linear\", \"rope_theta\": 1e6}}",
         "rope_parameters.full_attention.factor", "missing"},
        {"\"rope_parameters\": {\"sliding_attention\": {\"rope_type\": \"default\", \"rope_theta\": 0}}",
         "rope_parameters.sliding_attention.rope_theta is 0", "between"},
        {"\"rope_parameters\": {\"sliding_attention\": []}", "sliding_attention is array", "object"},
    };
    REFUSE_MUTATIONS("\"model_type\": \"phi3\"", partial);
    REFUSE_MUTATIONS("\"model_type\": \"ministral3\"", growth);
    refuse_json(PERIDOT_ERROR_UNSUPPORTED, "{\"model_type\": \"llama\", \"rope_scaling\": {\"rope_type\": \"default\", "
                "\"llama_4_scaling_beta\": 0.1}}", "rope_scaling.llama_4_scaling_beta is 0.1", "llama");
    refuse_json(PERIDOT_ERROR_UNSUPPORTED, "{\"model_type\": \"ministral3\"}", "rope_parameters is missing",
                "mistral3");
    REFUSE_MUTATIONS("\"model_type\": \"smollm3\", \"num_hidden_layers\": 2", no_rope);
    REFUSE_MUTATIONS("\"model_type\": \"muse_glimmer_text\", \"num_hidden_layers\": 2", bases);
    refuse_json(PERIDOT_ERROR_UNSUPPORTED, "{\"model_type\": \"llama\", \"num_hidden_layers\": 2, \"no_rope_layers\": "
                "[1, 0]}", "no_rope_layers[1] is 0", "llama");
    refuse_json(PERIDOT_ERROR_UNSUPPORTED, "{\"model_type\": \"phi3\", \"partial_rotary_factor\": 0.01}",
                "0 of 96 columns of a head", "not pairs");
    refuse_json(PERIDOT_ERROR_UNSUPPORTED, "{\"model_type\": \"phi3\", \"partial_rotary_factor\": 0.99}",
                "95 of 96 columns of a head", "not pairs");
    REFUSE_MUTATIONS("\"model_type\": \"gemma3_text\"", gemma3);
}

static void test_json_numbers(void **state)
{
    (void)state;
    static const char *const counts[] = {"num_hidden_layers", "hidden_size", "max_position_embeddings", "vocab_size",
        "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim"};
    static const char *const bad_counts[] = {"0", "-1", "64.5", "\"64\"", "{}", "true", "2147483648", "4294967296",
        "18446744073709551616"};
    static const char *const numbers[] = {"rms_norm_eps", "query_pre_attn_scalar"};
    static const char *const bad_numbers[] = {"0", "-1e-6", "\"1e-6\"", "[]", "{}", "false", "1e30", "1e-60", "null"};
    char change[128];
    struct mutation row = {change, NULL, " is "};
    for (size_t i = 0; i < PD_COUNT(counts); i++)
        for (size_t j = 0; j < PD_COUNT(bad_counts); j++) {
            snprintf(change, sizeof change, "\"%s\": %s", counts[i], bad_counts[j]);
            row.a = counts[i];
            refuse_mutations("\"model_type\": \"gemma2\"", &row, 1);
        }
    for (size_t i = 0; i < PD_COUNT(numbers); i++)
        for (size_t j = 0; j < PD_COUNT(bad_numbers); j++) {
            snprintf(change, sizeof change, "\"%s\": %s", numbers[i], bad_numbers[j]);
            row.a = numbers[i];
            refuse_mutations("\"model_type\": \"gemma3_text\"", &row, 1);
        }
    static const struct mutation rows[] = {
        {"\"num_attention_heads\": 8, \"num_key_value_heads\": 3", "num_key_value_heads", "multiple"},
        {"\"num_attention_heads\": 4, \"num_key_value_heads\": 8", "num_key_value_heads", "multiple"},
        {"\"hidden_size\": 4096, \"num_attention_heads\": 33", "hidden_size", "multiple of num_attention_heads"},
        {"\"head_dim\": 63", "head_dim is 63", "multiple of 4"},
        {"\"head_dim\": 66", "head_dim is 66", "multiple of 4"},
        {"\"hidden_size\": 4098", "hidden_size is 4098", "multiple of 4"},
        {"\"tie_word_embeddings\": \"true\"", "tie_word_embeddings is string", "true or false"},
        {"\"tie_word_embeddings\": 1", "tie_word_embeddings is uint", "true or false"},
    };
    REFUSE_MUTATIONS("\"model_type\": \"llama\"", rows);
    static const char *const fine[] = {"\"head_dim\": null", "\"num_key_value_heads\": null"};
    ACCEPT_MUTATIONS("\"model_type\": \"llama\"", fine);
}

static void test_json_unsupported(void **state)
{
    (void)state;
    static const struct mutation rows[] = {
        {"\"attention_bias\": true", "attention_bias", "true"},
        {"\"attention_bias\": \"true\"", "attention_bias", "string"},
        {"\"attention_bias\": 1", "attention_bias", "uint"},
        {"\"mlp_bias\": true", "mlp_bias", "true"},
        {"\"use_bidirectional_attention\": \"all\"", "use_bidirectional_attention", "string"},
        {"\"quantization_config\": {\"quant_method\": \"gptq\", \"bits\": 4}", "quantization_config", "quantised"},
        {"\"quantization_config\": {}", "quantization_config", "quantised"},
        {"\"compression_config\": {}", "compression_config", "quantised"},
        {"\"text_config\": \"gemma\"", "text_config is string", "object"},
        {"\"text_config\": {\"hidden_size\": 64}", "inside a gemma2 model", "not known"},
        {"\"text_config\": {\"model_type\": \"nonesuch\"}", "text_config.model_type", "nonesuch"},
    };
    REFUSE_MUTATIONS("\"model_type\": \"gemma2\"", rows);
    static const struct mutation wrapped[] = {
        {"\"text_config\": {\"model_type\": \"gemma2\"}", "gemma2 model inside a gemma3 model", "not known"},
        {"\"text_config\": {\"rms_norm_eps\": 0}", "text_config.rms_norm_eps is 0", "not between"},
        {"\"text_config\": {\"attention_bias\": true}", "text_config.attention_bias", "true"},
        {"\"quantization_config\": {}, \"text_config\": {}", "quantization_config", "quantised"},
    };
    REFUSE_MUTATIONS("\"model_type\": \"gemma3\"", wrapped);
    static const char *const fine[] = {"\"attention_bias\": false", "\"mlp_bias\": null",
        "\"attention_bias\": true, \"mlp_bias\": true", "\"quantization_config\": null"};
    ACCEPT_MUTATIONS("\"model_type\": \"llama\"", fine);
    struct pd_config c;
    EXPECT_FAILURE(read_json(&c, "{\"model_type\": 3}"), PERIDOT_ERROR_FORMAT, "model_type", "not a string");
}

/* Models of these families that are not computed are refused with the reason, all others with what is known. */
static void test_obstacles(void **state)
{
    (void)state;
    static const struct { const char *name, *reason; } rows[] = {
        {"gemma3n", "four streams of activations (AltUp)"}, {"gemma3n_text", "AltUp"},
        {"paligemma", "a prompt with an image"}, {"recurrent_gemma", "linear recurrences"}, {"t5gemma", "an encoder"},
        {"t5gemma2", "an encoder"}, {"diffusion_gemma", "denoising"}, {"diffusion_gemma_text", "denoising"},
        {"llama4", "attention in chunks"}, {"llama4_text", "attention in chunks"}, {"mllama", "cross-attention"},
        {"mllama_text_model", "cross-attention"}, {"falcon_h1", "state-space blocks"},
        {"kimi_linear", "gated delta rule"}, {"qwen2_moe", "experts"},
        {"deepseek_v3", "MLA"}, {"starcoder2", "LayerNorm"}, {"bert", "an encoder"},
    };
    struct pd_config c;
    for (size_t i = 0; i < PD_COUNT(rows); i++) {
        char json[96];
        snprintf(json, sizeof json, "{\"model_type\": \"%s\"}", rows[i].name);
        EXPECT_FAILURE(read_json(&c, json), PERIDOT_ERROR_UNSUPPORTED, rows[i].name, rows[i].reason,
                       "which Peridot does not compute");
    }
    EXPECT_FAILURE(read_json(&c, "{\"model_type\": \"gemma3\", \"text_config\": {\"model_type\": \"gemma3n_text\"}}"),
                   PERIDOT_ERROR_UNSUPPORTED, "text_config.model_type", "AltUp");
    EXPECT_FAILURE(read_json(&c, "{\"model_type\": \"gemma3nn\"}"), PERIDOT_ERROR_UNSUPPORTED, "gemma3nn",
                   "is not known (known: gemma, gemma2, vaultgemma, gemma3, ");
}

static void test_json_gemma4(void **state)
{
    (void)state;
    static const struct mutation rows[] = {
        {"\"use_bidirectional_attention\": \"all\"", "use_bidirectional_attention is string", "not supported"},
        {"\"use_bidirectional_attention\": true", "use_bidirectional_attention is true", "not supported"},
        {"\"attn_logit_softcapping\": 50.0", "attn_logit_softcapping", "no such softcap"},
        {"\"hidden_activation\": \"silu\"", "hidden_activation", "\"silu\""},
        {"\"global_head_dim\": 1024", "global_head_dim is 1024", "not between"},
        {"\"global_head_dim\": 130", "global_head_dim is 130", "multiple of 4"},
        {"\"global_head_dim\": \"512\"", "global_head_dim is string", "count"},
        {"\"attention_k_eq_v\": true, \"num_global_key_value_heads\": 3", "num_key_value_heads 3", "8 query heads"},
        {"\"attention_k_eq_v\": true, \"num_global_key_value_heads\": 0", "num_global_key_value_heads is 0",
         "not between"},
        {"\"hidden_size_per_layer_input\": 100", "hidden_size_per_layer_input is 100", "multiple of 32"},
        {"\"hidden_size_per_layer_input\": -1", "hidden_size_per_layer_input is sint", "count"},
        {"\"num_kv_shared_layers\": 2000", "num_kv_shared_layers is 2000", "not between"},
        {"\"per_layer_config\": [1]", "per_layer_config is array", "object"},
        {"\"per_layer_config\": {\"5\": 512}", "per_layer_config: \"5\"", "6 layers"},
        {"\"per_layer_config\": {\"6\": {}}", "per_layer_config: \"6\"", "6 layers"},
        {"\"per_layer_config\": {\"full_attention\": {}}", "per_layer_config: \"full_attention\"", "6 layers"},
        {"\"per_layer_config\": {\"5\": {\"intermediate_size\": 64}}", "per_layer_config.5: intermediate_size",
         "not known"},
        {"\"per_layer_config\": {\"5\": {\"head_dim\": 0}}", "per_layer_config.head_dim is 0", "not between"},
        {"\"per_layer_config\": {\"5\": {\"num_key_value_heads\": \"1\"}}",
         "per_layer_config.num_key_value_heads is string", "count"},
        {"\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 8.0}", "rope_scaling", "rope_parameters"},
        {"\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 1e6}", "rope_parameters must be",
         "gemma4"},
        {"\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"proportional\", \"rope_theta\": 1e6, "
         "\"partial_rotary_factor\": 0}}", "full_attention.partial_rotary_factor is 0", "not between"},
        {"\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"proportional\", \"rope_theta\": 1e6, "
         "\"partial_rotary_factor\": 1.5}}", "full_attention.partial_rotary_factor is 1.5", "not between"},
        {"\"rope_parameters\": {\"sliding_attention\": {\"rope_type\": \"default\", \"rope_theta\": 1e4, "
         "\"partial_rotary_factor\": 0.25}}", "sliding_attention.partial_rotary_factor is 0.25", "only 1"},
        {"\"partial_rotary_factor\": 0.25", "partial_rotary_factor is 0.25", "only 1"},
        {"\"text_config\": {}", "inside a gemma4 model", "not known"},
    };
    static const char *const fine[] = {"\"use_bidirectional_attention\": \"vision\"",
        "\"use_bidirectional_attention\": null", "\"rope_scaling\": null", "\"per_layer_config\": null",
        "\"num_kv_shared_layers\": 0, \"use_double_wide_mlp\": true"};
    static const struct mutation gemma3[] = {
        {"\"use_bidirectional_attention\": \"vision\"", "use_bidirectional_attention is string", "not supported"},
        {"\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"proportional\", \"rope_theta\": 1e6}}",
         "\"proportional\"", "not known for a gemma3 model"},
    };
    REFUSE_MUTATIONS("\"model_type\": \"gemma4_text\", \"num_hidden_layers\": 6", rows);
    ACCEPT_MUTATIONS("\"model_type\": \"gemma4_text\", \"num_hidden_layers\": 6", fine);
    REFUSE_MUTATIONS("\"model_type\": \"gemma3_text\"", gemma3);
    refuse_json(PERIDOT_ERROR_FORMAT, "{\"model_type\": \"gemma4_text\", \"num_kv_shared_layers\": 30}",
                "30 of 30 layers", "share");
    refuse_json(PERIDOT_ERROR_FORMAT, "{\"model_type\": \"gemma4_text\", \"num_kv_shared_layers\": 25}",
                "layer 5 has no keys", "first 5 layers");
    struct pd_config c;
    EXPECT_FAILURE(read_json(&c, "{\"model_type\": \"gemma4\", \"text_config\": {\"model_type\": \"gemma3_text\"}}"),
                   PERIDOT_ERROR_UNSUPPORTED, "gemma3 model inside a gemma4 model");
}

static void test_json_labels(void **state)
{
    (void)state;
    static const char *const maps[] = {"{\"0\": \"a\", \"2\": \"b\"}", "{\"0\": \"a\", \"one\": \"b\"}", "{\"0\": 1}",
        "{\"0\": \"a\", \"00\": \"b\"}", "{\"-1\": \"a\"}"};
    for (size_t i = 0; i < PD_COUNT(maps); i++) {
        char json[256];
        snprintf(json, sizeof json,
                 "{\"model_type\": \"gemma2\", \"architectures\": [\"Gemma2ForSequenceClassification\"], "
                 "\"id2label\": %s}", maps[i]);
        refuse_json(PERIDOT_ERROR_FORMAT, json, "id2label", "index");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_refusals), cmocka_unit_test(test_json_labels),
        cmocka_unit_test(test_json_activation), cmocka_unit_test(test_json_softcaps),
        cmocka_unit_test(test_json_windows), cmocka_unit_test(test_json_rope), cmocka_unit_test(test_json_rope_rules),
        cmocka_unit_test(test_json_rope_of_families), cmocka_unit_test(test_json_numbers),
        cmocka_unit_test(test_json_unsupported), cmocka_unit_test(test_json_gemma4),
        cmocka_unit_test(test_obstacles),
    };
    return cmocka_run_group_tests_name("config refusals", tests, make_folder, remove_folder);
}
