/* What the config.json of each model means: every rule about shapes that the forward pass goes by. Files are made here,
 * without weights. */
#include "config_fixture.h"

#include "arch/arch.h"

#define FULL "\"full_attention\""
#define LOCAL "\"sliding_attention\""

/* An empty config has the defaults of the model's class. */
static void test_json_defaults(void **state)
{
    (void)state;
    struct pd_config c = json_config("{\"model_type\": \"gemma\"}");
    expect_shape(&c, (const uint32_t[]){28, 3072, 24576, 16, 16, 256, 0, 8192});
    close_to((double)c.layers[0].query_scale, 1.0 / 16);
    close_to((double)c.embed_scale, 55.5);   /* sqrt(3072), rounded to bf16 */
    assert_true(c.tied && c.norm_plus_one && !c.rope_interleaved && c.final_softcap == 0);
    pd_config_free(&c);
    c = json_config("{\"model_type\": \"gemma2\"}");
    expect_shape(&c, (const uint32_t[]){26, 2304, 9216, 8, 4, 256, 4096, 8192});
    assert_true(c.attn_softcap == 50 && c.final_softcap == 30 && c.embed_scale == 48);
    assert_true(c.layers[0].window == 4096 && c.layers[1].window == 0 && c.layers[24].window == 4096
                && c.layers[25].window == 0);
    pd_config_free(&c);
    c = json_config("{\"model_type\": \"vaultgemma\"}");
    expect_shape(&c, (const uint32_t[]){26, 2304, 9216, 8, 4, 256, 4096, 8192});
    assert_true(c.attn_softcap == 50 && c.final_softcap == 30 && c.tied && c.norm_plus_one && !c.layers[0].post_norms);
    assert_true(c.layers[0].window == 4096 && c.layers[1].window == 0);
    pd_config_free(&c);
    c = json_config("{\"model_type\": \"llama\"}");
    expect_shape(&c, (const uint32_t[]){32, 4096, 11008, 32, 32, 128, 0, 2048});
    assert_true(!c.tied && !c.norm_plus_one && c.embed_scale == 1 && !c.rope_interleaved);
    pd_config_free(&c);
}

/* The query divisor is the file's, whatever the shape: 144 and 168 in the 27Bs, 256 in the 9B with 224 columns a
 * head. */
static void test_json_divisors(void **state)
{
    (void)state;
    static const struct { const char *json; double divisor; } rows[] = {
        {"{\"model_type\": \"gemma2\", \"hidden_size\": 4608, \"num_attention_heads\": 32, \"num_key_value_heads\": "
         "16, \"head_dim\": 128,"
         " \"num_hidden_layers\": 46, \"query_pre_attn_scalar\": 144}", 144},
        {"{\"model_type\": \"gemma2\", \"hidden_size\": 3584, \"num_attention_heads\": 16, \"num_key_value_heads\": 8,"
         " \"num_hidden_layers\": 42, \"query_pre_attn_scalar\": 256}", 256},
        {"{\"model_type\": \"gemma3_text\", \"hidden_size\": 5376, \"num_attention_heads\": 32, "
         "\"num_key_value_heads\": 16, \"head_dim\": 128,"
         " \"num_hidden_layers\": 62, \"query_pre_attn_scalar\": 168}", 168},
        {"{\"model_type\": \"gemma3_text\", \"num_hidden_layers\": 62, \"head_dim\": 128}", 256},
        {"{\"model_type\": \"gemma\", \"head_dim\": 64, \"query_pre_attn_scalar\": 7}", 64},
        {"{\"model_type\": \"llama\", \"head_dim\": 64}", 64},
    };
    for (size_t i = 0; i < PD_COUNT(rows); i++) {
        struct pd_config c = json_config(rows[i].json);
        close_to(1 / ((double)c.layers[0].query_scale * (double)c.layers[0].query_scale), rows[i].divisor);
        pd_config_free(&c);
    }
}

/* The published Gemma 3 4B: all numbers in text_config, most of them left to their defaults. */
static void test_json_wrapped(void **state)
{
    (void)state;
    struct pd_config c = json_config(
        "{\"model_type\": \"gemma3\", \"architectures\": [\"Gemma3ForConditionalGeneration\"], \"vision_config\": "
        "{\"hidden_size\": 1152},"
        " \"text_config\": {\"hidden_size\": 2560, \"intermediate_size\": 10240, \"model_type\": \"gemma3_text\", "
        "\"num_hidden_layers\": 34,"
        " \"rope_scaling\": {\"factor\": 8.0, \"rope_type\": \"linear\"}, \"sliding_window\": 1024}}");
    expect_shape(&c, (const uint32_t[]){34, 2560, 10240, 8, 4, 256, 1024, 131072});
    close_to(c.ropes[PD_ROPE_GLOBAL].base, 1e6);
    close_to(c.ropes[PD_ROPE_GLOBAL].divisor, 8);
    close_to(c.ropes[PD_ROPE_LOCAL].base, 1e4);
    close_to(c.ropes[PD_ROPE_LOCAL].divisor, 1);
    close_to(frequencies(&c, 0)[0], 1.0 / 8);
    close_to(frequencies(&c, 1)[0], 1);
    close_to(frequencies(&c, 1)[64], 1e-2);
    close_to((double)c.embed_scale, 50.5);
    for (uint32_t i = 0; i < 34; i++) {
        assert_int_equal(c.layers[i].window, i % 6 == 5 ? 0 : 1024);
        assert_int_equal(c.rope_tables[c.layers[i].rope].rope, i % 6 == 5 ? PD_ROPE_GLOBAL : PD_ROPE_LOCAL);
    }
    pd_config_free(&c);
}

/* Mistral Small's and Ministral's, which say it inside. */
static void test_json_wraps_any(void **state)
{
    (void)state;
    static const char *const types[] = {"mistral", "ministral3"};
    static const enum pd_family families[] = {PD_MISTRAL, PD_MINISTRAL3};
    char json[512];
    for (size_t i = 0; i < PD_COUNT(types); i++) {
        snprintf(json, sizeof json, "{\"model_type\": \"mistral3\", \"vision_config\": {\"model_type\": \"pixtral\"}, "
                 "\"text_config\": {\"model_type\": \"%s\", \"num_hidden_layers\": 2, \"head_dim\": 128, "
                 "\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 1000000}}}", types[i]);
        struct pd_config c = json_config(json);
        assert_int_equal(c.family, families[i]);
        assert_int_equal(c.layers[0].head_dim, 128);
        pd_config_free(&c);
    }
}

/* Newer files list layers and give RoPE by their types; what older keys beside them say does not count. */
static void test_json_new_generation(void **state)
{
    (void)state;
    struct pd_config c = json_config(
        "{\"model_type\": \"gemma3_text\", \"num_hidden_layers\": 3, \"sliding_window\": 512, "
        "\"_sliding_window_pattern\": 6,"
        " \"layer_types\": [\"full_attention\", \"sliding_attention\", \"sliding_attention\"],"
        " \"rope_parameters\": {\"full_attention\": {\"rope_type\": \"linear\", \"factor\": 4.0, \"rope_theta\": "
        "500000.0},"
        " \"sliding_attention\": {\"rope_type\": \"default\", \"rope_theta\": 5000.0}}}");
    assert_true(c.layers[0].window == 0 && c.layers[1].window == 512
                && c.rope_tables[c.layers[2].rope].rope == PD_ROPE_LOCAL);
    close_to(frequencies(&c, 0)[0], 0.25);
    close_to(c.ropes[PD_ROPE_GLOBAL].base, 5e5);
    close_to(c.ropes[PD_ROPE_LOCAL].base, 5e3);
    pd_config_free(&c);
    c = json_config("{\"model_type\": \"gemma3_text\", \"num_hidden_layers\": 4, \"sliding_window_pattern\": 2, "
                    "\"rope_theta\": 2e6,"
                    " \"rope_local_base_freq\": 2e4, \"rope_scaling\": null}");
    assert_true(c.layers[0].window && !c.layers[1].window && c.layers[2].window && !c.layers[3].window);
    close_to(c.ropes[PD_ROPE_GLOBAL].base, 2e6);
    close_to(c.ropes[PD_ROPE_LOCAL].base, 2e4);
    pd_config_free(&c);
    c = json_config("{\"model_type\": \"gemma2\", \"attn_logit_softcapping\": null, \"final_logit_softcapping\": "
                    "20.0}");
    assert_true(c.attn_softcap == 0 && c.final_softcap == 20);
    pd_config_free(&c);
}

/* Llama 3.1 8B: the first frequencies stay, the last are divided by 8, and Meta's numbers lie between. */
static void check_llama3(const char *rope)
{
    char json[1024];
    snprintf(json, sizeof json,
             "{\"model_type\": \"llama\", \"hidden_size\": 4096, \"num_attention_heads\": 32, "
             "\"num_key_value_heads\": 8,"
             " \"max_position_embeddings\": 131072, %s}", rope);
    struct pd_config c = json_config(json);
    double f29 = pow(500000, -58.0 / 128), turns = 8192 * f29 / (8 * atan(1)), smooth = (turns - 1) / 3;
    assert_true(turns > 1 && turns < 4);
    close_to(frequencies(&c, 0)[0], 1);
    close_to(frequencies(&c, 0)[28], pow(500000, -56.0 / 128));
    close_to(frequencies(&c, 0)[29], (1 - smooth) * f29 / 8 + smooth * f29);
    close_to(frequencies(&c, 0)[63], pow(500000, -126.0 / 128) / 8);
    close_to(c.ropes[0].divisor, 1);
    pd_config_free(&c);
}

/* Of four layers; windows: '1' for those with one of 512. */
static void check_windows(const char *type, const char *rest, const char *windows)
{
    char json[512];
    snprintf(json, sizeof json, "{\"model_type\": \"%s\", \"num_hidden_layers\": 4, %s}", type, rest);
    struct pd_config c = json_config(json);
    for (uint32_t i = 0; i < 4; i++)
        if (c.layers[i].window != (windows[i] == '1' ? 512 : 0))
            fail_msg("%s: layer %u has window %u", json, i, c.layers[i].window);
    pd_config_free(&c);
}

/* Ministral's layers have windows where layer_types says so, or all of them; Mistral's have, whatever it says. */
static void test_json_ministral(void **state)
{
    (void)state;
    static const char types[] = "\"sliding_window\": 512, \"layer_types\": [" FULL ", " LOCAL ", " FULL ", " LOCAL
        "]";
    check_windows("ministral", types, "0101");
    check_windows("mistral", types, "1111");
    check_windows("ministral", "\"sliding_window\": 512", "1111");
    check_windows("ministral", "\"sliding_window\": null", "0000");
    struct pd_config c = json_config("{\"model_type\": \"ministral\"}");
    assert_true(c.layers[31].window == 4096 && c.layers[0].head_dim == 128 && c.layers[0].n_kv_heads == 8);
    pd_config_free(&c);
}

/* Windows only where use_sliding_window says so, from layer max_window_layers on or where layer_types has them. */
static void test_json_qwen(void **state)
{
    (void)state;
    static const struct { const char *rest, *windows; } rows[] = {
        {"\"sliding_window\": 32768, \"max_window_layers\": 1, \"use_sliding_window\": false", "0000"},
        {"\"sliding_window\": 512, \"max_window_layers\": 1", "0000"},
        {"\"sliding_window\": null, \"max_window_layers\": 1, \"use_sliding_window\": true", "0000"},
        {"\"sliding_window\": 512, \"max_window_layers\": 1, \"use_sliding_window\": true", "0111"},
        {"\"sliding_window\": 512, \"use_sliding_window\": true", "0000"},
        {"\"sliding_window\": 512, \"max_window_layers\": 0, \"use_sliding_window\": true, \"layer_types\": [" LOCAL
         ", " FULL ", " LOCAL ", " FULL "]", "1010"},
        {"\"sliding_window\": null, \"layer_types\": [" FULL ", " FULL ", " FULL ", " FULL "]", "0000"},
    };
    for (size_t i = 0; i < 2 * PD_COUNT(rows); i++)
        check_windows(i % 2 ? "qwen3" : "qwen2", rows[i / 2].rest, rows[i / 2].windows);
    struct pd_config c = json_config("{\"model_type\": \"qwen2\", \"num_attention_heads\": 64}");
    expect_shape(&c, (const uint32_t[]){32, 4096, 22016, 64, 32, 64, 0, 32768});
    assert_true(!c.tied && !c.norm_plus_one && c.layers[0].qkv_biases && !c.layers[0].qk_norms && c.embed_scale == 1);
    pd_config_free(&c);
    c = json_config("{\"model_type\": \"qwen3\", \"attention_bias\": false, \"num_attention_heads\": 64}");
    expect_shape(&c, (const uint32_t[]){32, 4096, 22016, 64, 32, 128, 0, 32768});
    assert_true(!c.tied && !c.layers[0].qkv_biases && c.layers[0].qk_norms && !c.layers[0].post_norms);
    pd_config_free(&c);
}

/* EmbeddingGemma 300M is a Gemma 3 that sees both ways. */
static void test_json_embedding(void **state)
{
    (void)state;
    struct pd_config c = json_config(
        "{\"model_type\": \"gemma3_text\", \"architectures\": [\"Gemma3TextModel\"], \"num_hidden_layers\": 24, "
        "\"hidden_size\": 768, \"sliding_window\": 512, \"use_bidirectional_attention\": true}");
    assert_true(c.family == PD_GEMMA_EMBEDDING && c.bidirectional && c.head == PERIDOT_HEAD_NONE);
    for (uint32_t i = 0; i < 24; i++) assert_int_equal(c.layers[i].window, i % 6 == 5 ? 0 : 257);
    assert_true(c.embedding.pool == PERIDOT_POOL_MEAN && c.embedding.n_dense == 0);
    close_to((double)c.embed_scale, sqrt(768));   /* its weights were published as float32: not rounded */
    pd_config_free(&c);
    c = json_config("{\"model_type\": \"gemma3_text\", \"use_bidirectional_attention\": false}");
    assert_true(c.family == PD_GEMMA3 && !c.bidirectional && c.head == PERIDOT_HEAD_LANGUAGE);
    pd_config_free(&c);
}

static void test_json_llama(void **state)
{
    (void)state;
    check_llama3("\"rope_theta\": 500000.0, \"rope_scaling\": {\"factor\": 8.0, \"low_freq_factor\": 1.0, "
                 "\"high_freq_factor\": 4.0,"
                 " \"original_max_position_embeddings\": 8192, \"rope_type\": \"llama3\"}");
    check_llama3("\"rope_parameters\": {\"rope_theta\": 500000.0, \"factor\": 8.0, \"low_freq_factor\": 1.0, "
                 "\"high_freq_factor\": 4.0,"
                 " \"original_max_position_embeddings\": 8192, \"rope_type\": \"llama3\"}");
    struct pd_config c =
        json_config("{\"model_type\": \"llama\", \"rope_scaling\": {\"type\": \"linear\", \"factor\": 2.0}, "
                    "\"hidden_size\": 2048,"
                                     " \"head_dim\": 80, \"tie_word_embeddings\": true, \"partial_rotary_factor\": "
                                     "1.0}");
    assert_true(c.layers[0].head_dim == 80 && c.tied);
    close_to(frequencies(&c, 0)[0], 0.5);
    pd_config_free(&c);
}

/* What multiplies cos and sin is sqrt(1 + ln(factor) / ln(old context)); the factor is that of the contexts where the
 * rule has none, and the old context is that of the config before the rule's. */
static void test_json_longrope(void **state)
{
    (void)state;
#define LONGROPE "\"rope_scaling\": {\"rope_type\": \"longrope\", \"short_factor\": [1, 1.5], \"long_factor\": [2, 4]"
    static const struct { const char *rest; double old_ctx; } rows[] = {
        {LONGROPE ", \"original_max_position_embeddings\": 256}", 256},
        {LONGROPE ", \"original_max_position_embeddings\": 256}, \"original_max_position_embeddings\": 512", 512},
        {LONGROPE ", \"original_max_position_embeddings\": 256, \"factor\": 4}", 256},
        {LONGROPE ", \"original_max_position_embeddings\": 256, \"attention_factor\": 3}", 256},
        {LONGROPE "}", 4096},
    };
    const double squares[] = {1 + log(16) / log(256), 1 + log(8) / log(512), 1 + log(4) / log(256), 9, 1};
    for (size_t i = 0; i < PD_COUNT(rows); i++) {
        char json[512];
        snprintf(json, sizeof json,
                 "{\"model_type\": \"llama\", \"head_dim\": 4, \"max_position_embeddings\": 4096, %s}", rows[i].rest);
        struct pd_config c = json_config(json);
        const struct pd_rope_table *table = &c.rope_tables[0];
        assert_true(c.n_rope_tables == 1 && c.ropes[0].old_ctx == rows[i].old_ctx);
        close_to(table->attn_factor, sqrt(squares[i]));
        close_to(table->inv_freq[1], 1e-2 / 1.5);
        close_to(table->long_inv_freq[1], 1e-2 / 4);
        uint32_t old_ctx = (uint32_t)rows[i].old_ctx;
        assert_true(!pd_rope_is_long(&c, old_ctx) && pd_rope_is_long(&c, old_ctx + 1));
        pd_config_free(&c);
    }
}

/* Phi 3's, by its older names. */
static void test_json_old_longrope(void **state)
{
    (void)state;
    static const char *const names[] = {"su", "yarn"};
    for (size_t i = 0; i < PD_COUNT(names); i++) {
        char json[512];
        snprintf(json, sizeof json, "{\"model_type\": \"phi3\", \"hidden_size\": 128, "
                 "\"max_position_embeddings\": 4096, \"original_max_position_embeddings\": 256, "
                 "\"rope_scaling\": {\"type\": \"%s\", \"short_factor\": [1, 1.5], \"long_factor\": [2, 4]}}",
                 names[i]);
        struct pd_config c = json_config(json);
        close_to(c.rope_tables[0].long_inv_freq[1], 1e-2 / 4);
        pd_config_free(&c);
    }
}

/* The first columns of a head, by halves of their own; exponents are of these columns. */
static void test_json_partial(void **state)
{
    (void)state;
    struct pd_config c = json_config("{\"model_type\": \"phi3\", \"hidden_size\": 3072, \"num_attention_heads\": 24, "
                                     "\"num_key_value_heads\": 8, \"partial_rotary_factor\": 0.75}");
    const struct pd_rope_table *table = &c.rope_tables[0];
    assert_true(c.n_rope_tables == 1 && table->n_rotated == 96 && table->head_dim == 128);
    close_to(table->inv_freq[47], pow(1e4, -94.0 / 96));
    assert_true(table->inv_freq[48] == 0 && table->inv_freq[63] == 0);
    pd_config_free(&c);
    c = json_config("{\"model_type\": \"phi3\", \"rope_parameters\": {\"rope_type\": \"default\", "
                    "\"partial_rotary_factor\": 0.5}, \"partial_rotary_factor\": 0.75}");
    assert_true(c.layers[31].n_rotated == 48);   /* the rule's comes first */
    pd_config_free(&c);
}

/* Every fourth layer, unless the file says which. Rotations of an angle of 0 leave these as they are. */
static void test_json_no_rope(void **state)
{
    (void)state;
    static const struct { const char *rest, *want; } rows[] = {{"", "111011101110"},
        {", \"no_rope_layer_interval\": 3", "110110110110"}, {", \"no_rope_layers\": null", "111011101110"},
        {", \"no_rope_layers\": [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0], \"no_rope_layer_interval\": 2", "011111111110"}};
    for (size_t i = 0; i < PD_COUNT(rows); i++) {
        char json[256];
        snprintf(json, sizeof json, "{\"model_type\": \"smollm3\", \"num_hidden_layers\": 12%s}", rows[i].rest);
        struct pd_config c = json_config(json);
        assert_int_equal(c.n_rope_tables, 2);
        for (uint32_t k = 0; k < 12; k++)
            close_to(c.rope_tables[c.layers[k].rope].inv_freq[0], rows[i].want[k] == '1' ? 1 : 0);
        pd_config_free(&c);
    }
}

/* Every fourth layer, counted from the last, sees all and is not rotated; but each of both may be said by itself. */
static void test_json_muse_glimmer(void **state)
{
    (void)state;
    static const struct { const char *rest, *windows, *rotated; } rows[] = {{"", "101110", "101110"},
        {", \"layer_rope_theta\": [0, 500000, 500000.0, 0, 0.0, 500000]", "101110", "011001"},
        {", \"layer_types\": [" FULL ", " LOCAL ", " FULL ", " LOCAL ", " FULL ", " LOCAL "]", "010101", "101110"}};
    for (size_t i = 0; i < PD_COUNT(rows); i++) {
        char json[512];
        snprintf(json, sizeof json, "{\"model_type\": \"muse_glimmer\", \"vision_config\": {}, \"text_config\": "
                 "{\"num_hidden_layers\": 6, \"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": "
                 "500000}%s}}", rows[i].rest);
        struct pd_config c = json_config(json);
        for (uint32_t k = 0; k < 6; k++) {
            assert_int_equal(c.layers[k].window, rows[i].windows[k] == '1' ? 2048 : 0);
            assert_int_equal(c.layers[k].no_rope, rows[i].rotated[k] == '0');
        }
        pd_config_free(&c);
    }
    struct pd_config c = json_config("{\"model_type\": \"muse_glimmer_text\"}");
    expect_shape(&c, (const uint32_t[]){52, 6656, 19968, 32, 2, 128, 2048, 131072});
    assert_true(c.eps == 1e-5f && c.post_eps == 1e-8f && c.q_norm_weight == 3.87f && c.final_softcap == 20);
    assert_true(!c.tied && c.layers[0].attn_gate && c.layers[0].post_norms && c.layers[0].activation == PD_SILU);
    assert_int_equal(pd_layer_qkv_dim(&c, 0), (32 + 2 * 2 + 32) * 128);
    close_to((double)c.logit_scale, sqrt(256.0 / 6656));
    pd_config_free(&c);
}

/* Heads of 8: in files of 6 rotated columns, and of all as neighbours. */
static void test_head_order(void **state)
{
    (void)state;
    static const struct { struct pd_head_order order; uint32_t rows[8]; } cases[] = {
        {{8, 8, false}, {0, 1, 2, 3, 4, 5, 6, 7}}, {{8, 8, true}, {0, 2, 4, 6, 1, 3, 5, 7}},
        {{8, 6, false}, {0, 1, 2, 6, 3, 4, 5, 7}}, {{8, 4, false}, {0, 1, 4, 5, 2, 3, 6, 7}},
        {{8, 4, true}, {0, 2, 4, 5, 1, 3, 6, 7}}};
    for (size_t i = 0; i < PD_COUNT(cases); i++) {
        assert_true(pd_head_order_differs(&cases[i].order) == (i > 0));
        for (uint32_t row = 0; row < 16; row++)
            assert_int_equal(pd_head_order_row(&cases[i].order, row), row / 8 * 8 + cases[i].rows[row % 8]);
    }
}

static void test_json_heads(void **state)
{
    (void)state;
    static const struct { const char *json; peridot_head head; uint32_t n_labels; } rows[] = {
        {"{\"model_type\": \"gemma2\", \"architectures\": [\"Gemma2ForCausalLM\"], \"id2label\": {\"0\": \"a\"}}",
         PERIDOT_HEAD_LANGUAGE, 0},
        {"{\"model_type\": \"gemma2\", \"architectures\": [\"Gemma2Model\"]}", PERIDOT_HEAD_LANGUAGE, 0},
        {"{\"model_type\": \"llama\", \"architectures\": [\"LlamaModel\"]}", PERIDOT_HEAD_NONE, 0},
        {"{\"model_type\": \"llama\", \"architectures\": [\"LlamaModel\"], \"tie_word_embeddings\": true}",
         PERIDOT_HEAD_LANGUAGE, 0},
        {"{\"model_type\": \"llama\", \"architectures\": [\"LlamaForSequenceClassification\"]}", PERIDOT_HEAD_SEQUENCE,
         0},
        {"{\"model_type\": \"gemma2\", \"architectures\": [\"Gemma2ForSequenceClassification\"], \"id2label\": "
         "{\"1\": \"b\", \"0\": \"a\"}}", PERIDOT_HEAD_SEQUENCE, 2},
        {"{\"model_type\": \"gemma2\", \"architectures\": [\"Gemma2ForTokenClassification\"], \"id2label\": {\"0\": "
         "\"a\"}}", PERIDOT_HEAD_TOKEN, 1},
    };
    for (size_t i = 0; i < PD_COUNT(rows); i++) {
        struct pd_config c = json_config(rows[i].json);
        assert_int_equal(c.head, rows[i].head);
        assert_int_equal(c.n_labels, rows[i].n_labels);
        if (c.n_labels) assert_string_equal(c.labels[0], "a");
        /* it is the language head's */
        if (c.head == PERIDOT_HEAD_SEQUENCE || c.head == PERIDOT_HEAD_TOKEN) assert_true(c.final_softcap == 0);
        pd_config_free(&c);
    }
}

/* ---- Gemma 4 ---- */

/* A quarter of the pairs of a head is rotated in layers without a window, by exponents of the whole head. */
static void test_json_gemma4(void **state)
{
    (void)state;
    struct pd_config c = json_config("{\"model_type\": \"gemma4_text\"}");
    expect_shape(&c, (const uint32_t[]){30, 2304, 9216, 8, 4, 512, 512, 131072});
    assert_true(c.per_layer_dim == 256 && c.per_layer_scale == 16 && c.embed_scale == 48 && c.n_shared_kv == 0);
    assert_true(c.tied && !c.norm_plus_one && !c.rope_interleaved && c.final_softcap == 0 && c.attn_softcap == 0);
    for (uint32_t i = 0; i < 30; i++) {
        const struct pd_layer *l = &c.layers[i];
        assert_true(l->query_scale == 1 && l->qk_norms && l->v_norm && l->post_norms && l->output_scale && l->has_v);
        assert_true(!l->qkv_biases && l->ffn_dim == 9216 && l->n_kv_heads == 4 && l->kv_layer == i);
        assert_true(i % 6 == 5 ? !l->window && l->head_dim == 512 : l->window == 512 && l->head_dim == 256);
    }
    close_to(frequencies(&c, false)[1], pow(1e6, -2.0 / 512));
    close_to(frequencies(&c, false)[63], pow(1e6, -126.0 / 512));
    assert_true(frequencies(&c, false)[64] == 0 && frequencies(&c, false)[255] == 0);
    close_to(frequencies(&c, true)[127], pow(1e4, -254.0 / 256));
    pd_config_free(&c);
    c = json_config("{\"model_type\": \"gemma4_unified\", \"text_config\": {\"model_type\": "
                    "\"gemma4_unified_text\", \"use_bidirectional_attention\": \"vision\", "
                    "\"final_logit_softcapping\": 30.0}}");
    expect_shape(&c, (const uint32_t[]){30, 2304, 9216, 8, 4, 512, 1024, 262144});
    assert_true(c.per_layer_dim == 0 && c.final_softcap == 30);
    pd_config_free(&c);
}

/* Whatever layer_types says of it. */
static void test_json_gemma4_last(void **state)
{
    (void)state;
    struct pd_config c = json_config("{\"model_type\": \"gemma4_text\", \"num_hidden_layers\": 3, \"layer_types\": ["
                                     FULL ", " LOCAL ", " LOCAL "]}");
    assert_true(!c.layers[0].window && c.layers[1].window == 512 && !c.layers[2].window);
    assert_true(c.layers[1].head_dim == 256 && c.layers[2].head_dim == 512);
    pd_config_free(&c);
}

struct heads {
    uint32_t n_kv_heads, head_dim;
    bool has_v;
};

/* As published, where values from keys decide about the number of kv heads; and as transformers writes, by layer. */
static void test_json_gemma4_heads(void **state)
{
    (void)state;
    static const struct { const char *rest; struct heads local, global; } rows[] = {
        {"\"global_head_dim\": 128, \"num_global_key_value_heads\": 1, \"attention_k_eq_v\": true", {4, 256, true},
         {1, 128, false}},
        {"\"global_head_dim\": 128, \"num_global_key_value_heads\": 1, \"attention_k_eq_v\": false", {4, 256, true},
         {4, 128, true}},
        {"\"num_global_key_value_heads\": 1", {4, 256, true}, {4, 512, true}},
        {"\"num_global_key_value_heads\": null, \"attention_k_eq_v\": true", {4, 256, true}, {4, 512, false}},
        {"\"head_dim\": 64, \"per_layer_config\": {\"2\": {\"head_dim\": 128, \"num_key_value_heads\": 2}}",
         {4, 64, true}, {2, 128, true}},
        {"\"per_layer_config\": {\"2\": {\"num_key_value_heads\": 2}}, \"attention_k_eq_v\": true", {4, 256, true},
         {2, 256, false}},
        {"\"global_head_dim\": 128, \"num_global_key_value_heads\": 1, \"attention_k_eq_v\": true, "
         "\"per_layer_config\": {\"1\": {\"head_dim\": 64}, \"0\": {\"head_dim\": 64}}", {4, 64, true},
         {4, 256, false}},
        {"\"per_layer_config\": {}", {4, 256, true}, {4, 256, true}},
    };
    for (size_t i = 0; i < PD_COUNT(rows); i++) {
        char json[512];
        snprintf(json, sizeof json, "{\"model_type\": \"gemma4_text\", \"num_hidden_layers\": 3, %s}", rows[i].rest);
        struct pd_config c = json_config(json);
        for (uint32_t k = 0; k < 3; k++) {
            const struct heads *want = k == 2 ? &rows[i].global : &rows[i].local;
            const struct pd_layer *l = &c.layers[k];
            if (l->n_kv_heads != want->n_kv_heads || l->head_dim != want->head_dim || l->has_v != want->has_v)
                fail_msg("%s: layer %u has %u kv heads of %u, v %d", rows[i].rest, k, l->n_kv_heads, l->head_dim,
                         l->has_v);
        }
        pd_config_free(&c);
    }
}

/* E2B: a tail that reads the keys of the layers before it, and is twice as wide. */
static void test_json_gemma4_tail(void **state)
{
    (void)state;
    char types[1024] = "", json[2048];
    for (uint32_t i = 0; i < 35; i++)
        snprintf(types + strlen(types), sizeof types - strlen(types), "%s%s", i ? ", " : "", i % 5 == 4 ? FULL : LOCAL);
    for (int wide = 0; wide < 2; wide++) {
        snprintf(json, sizeof json, "{\"model_type\": \"gemma4\", \"text_config\": {\"num_hidden_layers\": 35, "
                 "\"hidden_size\": 1536, \"intermediate_size\": 6144, \"num_key_value_heads\": 1, "
                 "\"num_kv_shared_layers\": 20, \"use_double_wide_mlp\": %s, \"layer_types\": [%s]}}",
                 wide ? "true" : "false", types);
        struct pd_config c = json_config(json);
        close_to((double)c.embed_scale, 39.25);
        for (uint32_t i = 0; i < 35; i++) {
            assert_int_equal(c.layers[i].kv_layer, i < 15 ? i : i % 5 == 4 ? 14 : 13);
            assert_int_equal(c.layers[i].ffn_dim, wide && i >= 15 ? 12288 : 6144);
        }
        pd_config_free(&c);
    }
}

static void test_json_gemma4_rope(void **state)
{
    (void)state;
    struct pd_config c = json_config(
        "{\"model_type\": \"gemma4_text\", \"rope_parameters\": {" FULL ": {\"rope_type\": \"proportional\", "
        "\"partial_rotary_factor\": 0.5, \"rope_theta\": 5e5, \"factor\": 2.0}, " LOCAL ": {\"rope_type\": "
        "\"default\", \"rope_theta\": 5e3}}}");
    close_to(frequencies(&c, false)[0], 0.5);
    close_to(frequencies(&c, false)[127], pow(5e5, -254.0 / 512) / 2);
    assert_true(frequencies(&c, false)[128] == 0);
    close_to(frequencies(&c, true)[127], pow(5e3, -254.0 / 256));
    pd_config_free(&c);
    c = json_config("{\"model_type\": \"gemma4_text\", \"rope_parameters\": {" FULL ": {\"rope_type\": \"default\", "
                    "\"rope_theta\": 1e6}}}");
    close_to(frequencies(&c, false)[255], pow(1e6, -510.0 / 512));
    /* which a GGUF file must say, or it would be taken for a quarter */
    struct pd_plan plan;
    float factors[256];
    assert_true(pd_plan_get(&plan, &c, PD_ROLE_ROPE_FREQS, 0) && plan.n_cols == 256);
    pd_rope_factors(factors, &c, 256);
    for (int i = 0; i < 256; i++) assert_true(factors[i] == 1);
    pd_config_free(&c);
    c = json_config("{\"model_type\": \"gemma4_text\", \"rope_parameters\": {" FULL ": {\"rope_type\": "
                    "\"proportional\", \"rope_theta\": 1e6}}}");
    close_to(frequencies(&c, false)[255], pow(1e6, -510.0 / 512));   /* without a factor, all */
    pd_config_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_defaults), cmocka_unit_test(test_json_divisors), cmocka_unit_test(test_json_wrapped),
        cmocka_unit_test(test_json_wraps_any), cmocka_unit_test(test_json_new_generation),
        cmocka_unit_test(test_json_embedding),
        cmocka_unit_test(test_json_llama), cmocka_unit_test(test_json_ministral),
        cmocka_unit_test(test_json_qwen), cmocka_unit_test(test_json_longrope),
        cmocka_unit_test(test_json_old_longrope), cmocka_unit_test(test_json_partial),
        cmocka_unit_test(test_json_no_rope), cmocka_unit_test(test_json_muse_glimmer),
        cmocka_unit_test(test_head_order),
        cmocka_unit_test(test_json_heads), cmocka_unit_test(test_json_gemma4),
        cmocka_unit_test(test_json_gemma4_last), cmocka_unit_test(test_json_gemma4_heads),
        cmocka_unit_test(test_json_gemma4_tail), cmocka_unit_test(test_json_gemma4_rope),
    };
    return cmocka_run_group_tests_name("config", tests, make_folder, remove_folder);
}
