/* What config.json and GGUF metadata of each model mean: every rule about shapes that the forward pass goes by, and
 * every refusal by name. Files are made here, without weights. */
#include "format_fixture.h"

#include "arch/layers.h"
#include "format/gguf_write.h"

#include <math.h>

static void close_to(double got, double want)
{
    if (!(fabs(got - want) <= 1e-6 * fabs(want))) fail_msg("%.9g is not %.9g", got, want);
}

/* ---- config.json ---- */

static peridot_status read_json(struct pd_config *out, const char *json)
{
    struct pd_checkpoint *c;
    write_text("config.json", json);
    PD_TRY(pd_checkpoint_open(&c, folder, false));
    peridot_status status = pd_config_read(out, c);
    pd_checkpoint_close(c);
    return status;
}

static struct pd_config json_config(const char *json)
{
    struct pd_config c;
    EXPECT_OK(read_json(&c, json));
    return c;
}

/* Of the layers without a window, or with one. */
static const double *frequencies(const struct pd_config *c, bool local)
{
    uint32_t i = 0;
    while (i < c->n_layers && (c->layers[i].window != 0) != local) i++;
    assert_true(i < c->n_layers);
    return c->rope_tables[c->layers[i].rope].inv_freq;
}

static void refuse_json(peridot_status status, const char *json, const char *a, const char *b)
{
    struct pd_config c;
    EXPECT_FAILURE(read_json(&c, json), status, a, b);
}

static void expect_shape(const struct pd_config *c, const uint32_t want[8])
{
    const struct pd_layer_sizes most = pd_layers_largest(c);
    const uint32_t got[8] = {c->n_layers, c->d_model, most.ffn_dim, most.n_heads, most.n_kv_heads, most.head_dim,
        most.window,
                             c->ctx_max};
    static const char *const names[8] = {"n_layers", "d_model", "ffn_dim", "n_heads", "n_kv_heads", "head_dim",
        "window", "ctx_max"};
    for (int i = 0; i < 8; i++)
        if (got[i] != want[i]) fail_msg("%s is %u, not %u", names[i], got[i], want[i]);
}

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

static void test_json_refusals(void **state)
{
    (void)state;
    static const struct { const char *rest, *a, *b; peridot_status status; } rows[] = {
        {"\"model_type\": \"qwen2\"", "qwen2", "model_type", PERIDOT_ERROR_UNSUPPORTED},
        {"\"hidden_size\": 64", "model_type", "missing", PERIDOT_ERROR_FORMAT},
        {"\"model_type\": \"llama\", \"attention_bias\": true", "attention_bias", "true", PERIDOT_ERROR_UNSUPPORTED},
        {"\"model_type\": \"llama\", \"mlp_bias\": true", "mlp_bias", "true", PERIDOT_ERROR_UNSUPPORTED},
        {"\"model_type\": \"gemma3_text\", \"use_bidirectional_attention\": true", "use_bidirectional_attention",
         "true", PERIDOT_ERROR_UNSUPPORTED},
        {"\"model_type\": \"llama\", \"hidden_act\": \"relu\"", "relu", "activation", PERIDOT_ERROR_UNSUPPORTED},
        {"\"model_type\": \"gemma2\", \"hidden_activation\": \"silu\"", "silu", "activation",
         PERIDOT_ERROR_UNSUPPORTED},
        {"\"model_type\": \"llama\", \"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 2.0}", "dynamic", "RoPE",
         PERIDOT_ERROR_UNSUPPORTED},
        {"\"model_type\": \"llama\", \"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 2.0}", "yarn", "RoPE",
         PERIDOT_ERROR_UNSUPPORTED},
        {"\"model_type\": \"llama\", \"rope_parameters\": {\"rope_type\": \"longrope\"}", "longrope", "RoPE",
         PERIDOT_ERROR_UNSUPPORTED},
        {"\"model_type\": \"gemma2\", \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8.0}", "llama3", "RoPE",
         PERIDOT_ERROR_UNSUPPORTED},
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
    };
    for (size_t i = 0; i < PD_COUNT(rows); i++) {
        char json[512];
        snprintf(json, sizeof json, "{%s}", rows[i].rest);
        refuse_json(rows[i].status, json, rows[i].a, rows[i].b);
    }
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
        {"\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 8.0}", "rope_scaling.rope_type", "\"yarn\""},
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
    REFUSE_MUTATIONS("\"model_type\": \"gemma\"", rows);
    REFUSE_MUTATIONS("\"model_type\": \"gemma2\"", rows);
    REFUSE_MUTATIONS("\"model_type\": \"gemma3_text\"", rows);
    REFUSE_MUTATIONS("\"model_type\": \"llama\"", rows);
    REFUSE_MUTATIONS("\"model_type\": \"llama\"", llama);
    REFUSE_MUTATIONS("\"model_type\": \"gemma3_text\"", gemma3);
    static const char *const fine[] = {"\"rope_scaling\": {}", "\"rope_parameters\": {}", "\"rope_scaling\": null",
        "\"rope_scaling\": {\"rope_type\": \"default\"}", "\"partial_rotary_factor\": null"};
    ACCEPT_MUTATIONS("\"model_type\": \"llama\"", fine);
    ACCEPT_MUTATIONS("\"model_type\": \"gemma3_text\"", fine);
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
        {"\"text_config\": {\"model_type\": \"qwen2\"}", "text_config.model_type", "qwen2"},
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
        "\"quantization_config\": null"};
    ACCEPT_MUTATIONS("\"model_type\": \"llama\"", fine);
    struct pd_config c;
    EXPECT_FAILURE(read_json(&c, "{\"model_type\": 3}"), PERIDOT_ERROR_FORMAT, "model_type", "not a string");
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

/* ---- GGUF ---- */

/* A key of a file: a count, a number (`real`), a string or an array of booleans. */
struct key {
    const char *name;
    uint32_t count;
    float real;
    const char *text;
    const char *flags;      /* "101": an array of booleans */
    uint32_t counts[6];     /* with n_counts: an array of counts */
    uint32_t n_counts;
};

static void add_key(struct pd_gguf_writer *w, const char *architecture, const struct key *k)
{
    char name[128];
    uint8_t flags[64] = {0};
    snprintf(name, sizeof name, "%s.%s", architecture, k->name);
    for (size_t i = 0; k->flags && k->flags[i]; i++) flags[i] = k->flags[i] == '1';
    if (k->text) pd_gguf_writer_add_string(w, name, k->text);
    else if (k->flags) pd_gguf_writer_add_array(w, name, PD_META_BOOL, strlen(k->flags), flags);
    else if (k->n_counts) pd_gguf_writer_add_array(w, name, PD_META_UINT32, k->n_counts, k->counts);
    else if (k->real != 0) pd_gguf_writer_add_f32(w, name, k->real);
    else pd_gguf_writer_add_u32(w, name, k->count);
}

/* The keys that every file has, and others, which may replace them. */
static peridot_status read_gguf(struct pd_config *out, const char *architecture, const struct key *keys, size_t n)
{
    static const struct key common[] = {{"block_count", .count = 6}, {"embedding_length", .count = 2304},
        {"feed_forward_length", .count = 64},
        {"attention.head_count", .count = 8}, {"attention.head_count_kv", .count = 4},
        {"context_length", .count = 8192},
        {"attention.layer_norm_rms_epsilon", .real = 1e-6f}, {"attention.sliding_window", .count = 1024}};
    struct pd_gguf_writer *w;
    struct pd_checkpoint *c;
    EXPECT_OK(pd_gguf_writer_open(&w, in_folder("m.gguf")));
    pd_gguf_writer_add_string(w, "general.architecture", architecture);
    for (size_t i = 0; i < PD_COUNT(common); i++) {
        bool replaced = false;
        for (size_t j = 0; j < n; j++) replaced = replaced || strcmp(keys[j].name, common[i].name) == 0;
        if (!replaced) add_key(w, architecture, &common[i]);
    }
    for (size_t i = 0; i < n; i++)
        if (keys[i].count != UINT32_MAX) add_key(w, architecture, &keys[i]);   /* that one only leaves a key out */
    EXPECT_OK(pd_gguf_writer_begin(w));
    EXPECT_OK(pd_gguf_writer_commit(w));
    EXPECT_OK(pd_checkpoint_open(&c, in_folder("m.gguf"), true));
    peridot_status status = pd_config_read(out, c);
    pd_checkpoint_close(c);
    return status;
}

#define GGUF_CONFIG(out, architecture, ...) \
    EXPECT_OK(read_gguf(out, architecture, (const struct key[]){__VA_ARGS__}, \
                        sizeof((const struct key[]){__VA_ARGS__}) / sizeof(struct key)))

/* Files do not carry the divisor: it is head_dim, but d_model / heads in the 27Bs, which their depth gives away. */
static void test_gguf_divisors(void **state)
{
    (void)state;
    static const struct { const char *architecture; uint32_t layers, d_model, heads, head_dim;
                          double divisor; } rows[] = {
        {"gemma2", 46, 4608, 32, 128, 144}, {"gemma2", 42, 3584, 16, 256, 256}, {"gemma2", 26, 2304, 8, 256, 256},
        {"gemma3", 62, 5376, 32, 128, 168}, {"gemma3", 46, 4608, 32, 128, 128}, {"gemma2", 62, 5376, 32, 128, 128},
        {"gemma3", 48, 3840, 16, 256, 256}, {"gemma", 28, 3072, 16, 256, 256}, {"llama", 46, 4608, 32, 128, 128},
    };
    for (size_t i = 0; i < PD_COUNT(rows); i++) {
        struct pd_config c;
        GGUF_CONFIG(&c, rows[i].architecture, {"block_count", .count = rows[i].layers},
                    {"embedding_length", .count = rows[i].d_model},
                    {"attention.head_count", .count = rows[i].heads},
                    {"attention.key_length", .count = rows[i].head_dim});
        close_to(1 / ((double)c.layers[0].query_scale * (double)c.layers[0].query_scale), rows[i].divisor);
        pd_config_free(&c);
    }
}

static void expect_windows(const struct pd_config *c, const char *locals)
{
    for (uint32_t i = 0; i < c->n_layers; i++)
        if (c->layers[i].window != (locals[i] == '1' ? pd_layers_largest(c).window : 0))
            fail_msg("layer %u has window %u", i, c->layers[i].window);
}

static void test_gguf_gemma(void **state)
{
    (void)state;
    struct pd_config c;
    GGUF_CONFIG(&c, "gemma3", {"rope.scaling.type", .text = "linear"}, {"rope.scaling.factor", .real = 8},
                {"attention.key_length", .count = 256});
    expect_shape(&c, (const uint32_t[]){6, 2304, 64, 8, 4, 256, 1024, 8192});
    close_to(frequencies(&c, 0)[64], 1e-3 / 8);
    close_to(frequencies(&c, 1)[64], 1e-2);
    assert_true(!c.norm_plus_one && !c.rope_interleaved && c.tied && c.attn_softcap == 0);
    expect_windows(&c, "111110");
    pd_config_free(&c);
    GGUF_CONFIG(&c, "gemma3", {"rope.freq_base", .real = 5e5f}, {"rope.freq_base_swa", .real = 2e4f},
                {"attention.sliding_window_pattern", .count = 3});
    close_to(c.ropes[PD_ROPE_GLOBAL].base, 5e5);
    close_to(c.ropes[PD_ROPE_GLOBAL].divisor, 1);
    close_to(c.ropes[PD_ROPE_LOCAL].base, 2e4);
    assert_int_equal(c.layers[0].head_dim, 288);   /* without its key, d_model / heads */
    expect_windows(&c, "110110");
    pd_config_free(&c);
    GGUF_CONFIG(&c, "gemma3", {"attention.sliding_window_pattern", .flags = "011101"});
    expect_windows(&c, "011101");
    pd_config_free(&c);
    GGUF_CONFIG(&c, "gemma2", {"attention.sliding_window", .count = UINT32_MAX},
                {"attn_logit_softcapping", .real = 20});
    /* the defaults of files that lack them */
    assert_true(c.layers[0].window == 4096 && c.attn_softcap == 20 && c.final_softcap == 30);
    expect_windows(&c, "101010");
    pd_config_free(&c);
    GGUF_CONFIG(&c, "gemma", {"attention.head_count_kv", .count = 1});
    assert_true(c.layers[0].window == 0 && c.final_softcap == 0);
    expect_windows(&c, "000000");
    pd_config_free(&c);
}

static void test_gguf_llama(void **state)
{
    (void)state;
    struct pd_config c;
    GGUF_CONFIG(&c, "llama", {"attention.head_count_kv", .count = UINT32_MAX}, {"rope.freq_base", .real = 5e5f},
                {"rope.dimension_count", .count = 288});
    assert_true(c.rope_interleaved && c.layers[0].n_kv_heads == 8 && c.embed_scale == 1);
    close_to(c.ropes[0].base, 5e5);
    pd_config_free(&c);
    GGUF_CONFIG(&c, "llama", {"rope.scaling.type", .text = "linear"}, {"rope.scaling.factor", .real = 4});
    close_to(frequencies(&c, 0)[0], 0.25);
    pd_config_free(&c);
    GGUF_CONFIG(&c, "llama", {"rope.scaling.type", .text = "none"}, {"rope.scaling.factor", .real = 4});
    close_to(frequencies(&c, 0)[0], 1);
    pd_config_free(&c);
    /* one count a layer, all the same */
    GGUF_CONFIG(&c, "llama", {"feed_forward_length", .counts = {64, 64, 64, 64, 64, 64}, .n_counts = 6});
    assert_int_equal(c.layers[0].ffn_dim, 64);
    pd_config_free(&c);
}

/* Numbers that differ from layer to layer. */
static void test_gguf_layers(void **state)
{
    (void)state;
    struct pd_config c;
    GGUF_CONFIG(&c, "gemma3", {"feed_forward_length", .counts = {64, 64, 96, 64, 64, 32}, .n_counts = 6},
                {"attention.head_count_kv", .counts = {4, 4, 4, 4, 4, 1}, .n_counts = 6},
                {"attention.key_length", .counts = {64, 64, 64, 64, 64, 128}, .n_counts = 6},
                {"attention.value_length", .counts = {64, 64, 64, 64, 64, 128}, .n_counts = 6},
                {"attention.sliding_window", .counts = {8, 8, 8, 16, 8, 8}, .n_counts = 6});
    assert_true(c.layers[0].ffn_dim == 64 && c.layers[2].ffn_dim == 96 && c.layers[5].ffn_dim == 32);
    assert_true(c.layers[4].n_kv_heads == 4 && c.layers[5].n_kv_heads == 1);
    assert_true(c.layers[0].window == 8 && c.layers[3].window == 16 && c.layers[5].window == 0);
    assert_true(c.layers[0].head_dim == 64 && c.layers[5].head_dim == 128);
    close_to((double)c.layers[0].query_scale, 1.0 / 8);
    close_to((double)c.layers[5].query_scale, 1 / sqrt(128));
    assert_true(c.n_kinds == 3 && c.kinds[1] == 3 && c.kinds[2] == 5 && c.layers[4].kind == 0 && c.layers[5].kind == 2);
    assert_true(c.n_rope_tables == 2 && c.layers[3].rope == c.layers[0].rope);
    close_to(frequencies(&c, 0)[32], 1e-3);
    close_to(frequencies(&c, 1)[16], 1e-2);
    pd_config_free(&c);
}

static void test_gguf_refusals(void **state)
{
    (void)state;
    static const struct { struct key key; const char *a, *b; peridot_status status; } rows[] = {
        {{"rope.scaling.type", .text = "yarn"}, "rope.scaling.type", "yarn", PERIDOT_ERROR_UNSUPPORTED},
        {{"expert_count", .count = 8}, "gemma3.expert_count is 8", "only 0", PERIDOT_ERROR_UNSUPPORTED},
        {{"rope.dimension_count", .count = 72}, "gemma3.rope.dimension_count: 72 of 288", "rotated",
         PERIDOT_ERROR_UNSUPPORTED},
        {{"attention.value_length", .count = 128}, "gemma3.attention.value_length", "128 of 288",
         PERIDOT_ERROR_UNSUPPORTED},
        {{"attention.head_count_kv", .counts = {4, 2}, .n_counts = 2}, "attention.head_count_kv has 2 entries",
         "6 layers", PERIDOT_ERROR_FORMAT},
        {{"block_count", .count = UINT32_MAX}, "block_count", "missing", PERIDOT_ERROR_FORMAT},
        {{"embedding_length", .real = 2.5f}, "embedding_length", "count", PERIDOT_ERROR_FORMAT},
        {{"attention.layer_norm_rms_epsilon", .count = UINT32_MAX}, "layer_norm_rms_epsilon", "missing",
         PERIDOT_ERROR_FORMAT},
        {{"attention.layer_norm_rms_epsilon", .text = "small"}, "layer_norm_rms_epsilon", "number",
         PERIDOT_ERROR_FORMAT},
        {{"attention.shared_kv_layers", .count = 6}, "6 of 6 layers", "share", PERIDOT_ERROR_FORMAT},
        {{"attention.shared_kv_layers", .count = 1}, "layer 5 has no keys", "first 5 layers", PERIDOT_ERROR_FORMAT},
        {{"attention.sliding_window_pattern", .flags = "101"}, "3 entries", "6 layers", PERIDOT_ERROR_FORMAT},
        {{"attention.sliding_window", .count = UINT32_MAX}, "attention.sliding_window", "missing",
         PERIDOT_ERROR_FORMAT},
        {{"attention.head_count", .count = 9}, "9 query heads", "4 kv heads", PERIDOT_ERROR_FORMAT},
        {{"attention.key_length", .count = 6}, "gemma3.attention.key_length is 6", "multiple of 4",
         PERIDOT_ERROR_UNSUPPORTED},
    };
    struct pd_config c;
    for (size_t i = 0; i < PD_COUNT(rows); i++)
        EXPECT_FAILURE(read_gguf(&c, "gemma3", &rows[i].key, 1), rows[i].status, rows[i].a, rows[i].b, "m.gguf");
    EXPECT_FAILURE(read_gguf(&c, "qwen3", NULL, 0), PERIDOT_ERROR_UNSUPPORTED, "qwen3", "llama");
}

/* The same in GGUF metadata, as far as it has such keys. */
static void test_gguf_mutations(void **state)
{
    (void)state;
    static const struct { const char *architecture; struct key key; const char *a, *b; } rows[] = {
        {"gemma3", {"attn_logit_softcapping", .real = 50}, "gemma3.attn_logit_softcapping is 50", "no such softcap"},
        {"gemma", {"final_logit_softcapping", .real = 30}, "gemma.final_logit_softcapping is 30", "no such softcap"},
        {"llama", {"final_logit_softcapping", .real = 30}, "llama.final_logit_softcapping is 30", "no such softcap"},
        {"gemma2", {"attn_logit_softcapping", .real = -50}, "gemma2.attn_logit_softcapping is -50", "not between"},
        {"gemma2", {"final_logit_softcapping", .real = NAN}, "gemma2.final_logit_softcapping is", "not between"},
        {"gemma2", {"attn_logit_softcapping", .text = "50"}, "gemma2.attn_logit_softcapping", "not a number"},
        {"gemma2", {"attention.sliding_window", .count = 0}, "gemma2.attention.sliding_window is 0", "layer 0"},
        {"gemma3", {"attention.sliding_window", .real = 512}, "gemma3.attention.sliding_window", "not a count"},
        {"gemma3", {"attention.sliding_window", .count = 3000000000}, "sliding_window is 3000000000", "not between"},
        {"gemma3", {"attention.sliding_window_pattern", .count = 0}, "sliding_window_pattern is 0", "not between"},
        {"gemma3", {"attention.sliding_window_pattern", .text = "6"}, "sliding_window_pattern", "not a count"},
        {"gemma3", {"attention.sliding_window_pattern", .counts = {1, 1, 1, 1, 1, 0}, .n_counts = 6},
         "sliding_window_pattern", "booleans"},
        {"llama", {"rope.scaling.type", .text = "linear"}, "llama.rope.scaling.factor", "missing"},
        {"llama", {"rope.scaling.type", .text = ""}, "llama.rope.scaling.type is \"\"", "linear"},
        {"llama", {"rope.scaling.type", .count = 1}, "llama.rope.scaling.type", "not a string"},
        {"llama", {"rope.scaling.factor", .count = 0}, "llama.rope.scaling.factor is 0", "not between"},
        {"gemma3", {"rope.scaling.factor", .real = -8}, "gemma3.rope.scaling.factor is -8", "not between"},
        {"gemma3", {"rope.scaling.factor", .real = 1e30f}, "gemma3.rope.scaling.factor is 1.00", "not between"},
        {"gemma3", {"rope.scaling.factor", .text = "8"}, "gemma3.rope.scaling.factor", "not a number"},
        {"llama", {"rope.scaling.attn_factor", .real = 2}, "llama.rope.scaling.attn_factor is 2", "only 1"},
        {"llama", {"rope.scale_linear", .real = 0.5f}, "llama.rope.scale_linear is 0.5", "only 1"},
        {"llama", {"rope.freq_base", .count = 0}, "llama.rope.freq_base is 0", "not between"},
        {"llama", {"rope.freq_base", .real = INFINITY}, "llama.rope.freq_base is inf", "not between"},
        {"gemma3", {"rope.freq_base_swa", .real = -1}, "gemma3.rope.freq_base_swa is -1", "not between"},
        {"llama", {"attention.layer_norm_rms_epsilon", .count = 0}, "layer_norm_rms_epsilon is 0", "not between"},
        {"llama", {"attention.layer_norm_rms_epsilon", .real = -1e-6f}, "layer_norm_rms_epsilon is -", "not between"},
        {"llama", {"attention.layer_norm_rms_epsilon", .real = NAN}, "layer_norm_rms_epsilon is", "not between"},
        {"llama", {"attention.scale", .count = 0}, "llama.attention.scale is 0", "not between"},
        {"llama", {"attention.scale", .real = NAN}, "llama.attention.scale is", "not between"},
        {"llama", {"attention.head_count_kv", .count = 3}, "llama.attention.head_count_kv", "8 query heads"},
        {"llama", {"attention.head_count_kv", .count = 0}, "llama.attention.head_count_kv is 0", "not between"},
        {"llama", {"attention.head_count", .count = 0}, "llama.attention.head_count is 0", "not between"},
        {"llama", {"attention.head_count", .count = 20}, "llama.attention.key_length is missing", "20 heads"},
        {"llama", {"attention.head_count", .text = "8"}, "llama.attention.head_count", "not a count"},
        {"llama", {"attention.key_length", .count = 63}, "llama.attention.key_length is 63", "multiple of 4"},
        {"llama", {"attention.key_length", .count = 4096}, "llama.attention.key_length is 4096", "not between"},
        {"llama", {"rope.dimension_count", .text = "all"}, "llama.rope.dimension_count", "not a count"},
        {"llama", {"block_count", .count = 0}, "llama.block_count is 0", "not between"},
        {"llama", {"block_count", .count = 3000000000}, "llama.block_count is 3000000000", "not between"},
        {"llama", {"block_count", .counts = {6, 6}, .n_counts = 2}, "llama.block_count", "not a count"},
        {"llama", {"embedding_length", .count = 0}, "llama.embedding_length is 0", "not between"},
        {"llama", {"embedding_length", .count = 2306}, "llama.embedding_length is 2306", "multiple of 4"},
        {"llama", {"feed_forward_length", .count = 0}, "llama.feed_forward_length is 0", "not between"},
        {"llama", {"context_length", .count = 0}, "llama.context_length is 0", "not between"},
        {"llama", {"vocab_size", .count = 0}, "llama.vocab_size is 0", "not between"},
        {"llama", {"vocab_size", .real = 2.5f}, "llama.vocab_size", "not a count"},
        {"llama", {"logit_scale", .real = 2}, "llama.logit_scale is 2", "only 1"},
        {"gemma3", {"attention.causal", .text = "no"}, "gemma3.attention.causal", "not true"},
        {"gemma3", {"hidden_activation", .text = "gelu"}, "gemma3.hidden_activation", "\"gelu\""},
        {"llama", {"hidden_activation", .count = 1}, "llama.hidden_activation", "activation"},
    };
    struct pd_config c;
    for (size_t i = 0; i < PD_COUNT(rows); i++) {
        peridot_status status = read_gguf(&c, rows[i].architecture, &rows[i].key, 1);
        if (status == PERIDOT_OK) fail_msg("%s.%s is taken", rows[i].architecture, rows[i].key.name);
        assert_true(status == PERIDOT_ERROR_FORMAT || status == PERIDOT_ERROR_UNSUPPORTED);
        expect_sentence((const char *const[]){"m.gguf: ", rows[i].a, rows[i].b, NULL});
    }
    GGUF_CONFIG(&c, "gemma3", {"attn_logit_softcapping", .count = 0}, {"final_logit_softcapping", .real = 20},
                {"hidden_activation", .text = "gelu_pytorch_tanh"}, {"expert_count", .count = 0});
    assert_true(c.attn_softcap == 0 && c.final_softcap == 20);
    pd_config_free(&c);
}

static int remove_folder(void **state)
{
    (void)state;
    remove(in_folder("config.json"));
    remove(in_folder("m.gguf"));
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_defaults), cmocka_unit_test(test_json_divisors), cmocka_unit_test(test_json_wrapped),
        cmocka_unit_test(test_json_new_generation), cmocka_unit_test(test_json_llama),
        cmocka_unit_test(test_json_heads),
        cmocka_unit_test(test_json_refusals), cmocka_unit_test(test_json_labels), cmocka_unit_test(test_gguf_divisors),
        cmocka_unit_test(test_gguf_gemma), cmocka_unit_test(test_gguf_llama), cmocka_unit_test(test_gguf_layers),
        cmocka_unit_test(test_gguf_refusals), cmocka_unit_test(test_json_activation),
        cmocka_unit_test(test_json_softcaps), cmocka_unit_test(test_json_windows), cmocka_unit_test(test_json_rope),
        cmocka_unit_test(test_json_numbers), cmocka_unit_test(test_json_unsupported),
        cmocka_unit_test(test_gguf_mutations),
    };
    return cmocka_run_group_tests_name("config", tests, make_folder, remove_folder);
}
