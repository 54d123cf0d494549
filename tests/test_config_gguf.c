/* What GGUF metadata of each model mean, and every refusal by name. Files are made here, without weights. */
#include "config_fixture.h"

#include "arch/arch.h"
#include "format/format.h"

/* A key of a file: a count, a number (`real`), a string or an array of booleans. */
struct key {
    const char *name;
    uint32_t count;
    float real;
    const char *text;
    const char *flags;      /* "101": an array of booleans; "1": one */
    uint32_t counts[6];     /* with n_counts: an array of counts */
    uint32_t n_counts;
    uint32_t n_factors;     /* no key but the tensor rope_NAME.weight: a half of these 1, the rest 1e30 */
};

static void write_factors(struct pd_gguf_writer *w, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        EXPECT_OK(pd_gguf_writer_write(w, &(float){i < n / 2 ? 1 : 1e30f}, sizeof(float)));
}

static void add_key(struct pd_gguf_writer *w, const char *architecture, const struct key *k)
{
    char name[128];
    uint8_t flags[64] = {0};
    snprintf(name, sizeof name, "%s.%s", architecture, k->name);
    for (size_t i = 0; k->flags && k->flags[i]; i++) flags[i] = k->flags[i] == '1';
    if (k->text) pd_gguf_writer_add_string(w, name, k->text);
    else if (k->flags && !k->flags[1]) pd_gguf_writer_add_bool(w, name, flags[0]);
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
    for (size_t i = 0; i < n; i++) {
        char name[64];
        snprintf(name, sizeof name, "rope_%s.weight", keys[i].name);
        if (keys[i].n_factors)
            pd_gguf_writer_add_tensor(w, name, PD_F32, 1, (const uint64_t[]){keys[i].n_factors});
        else if (keys[i].count != UINT32_MAX) add_key(w, architecture, &keys[i]);   /* that one only leaves a key out */
    }
    EXPECT_OK(pd_gguf_writer_begin(w));
    for (size_t i = 0; i < n; i++) write_factors(w, keys[i].n_factors);
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

/* What Ollama's converter leaves out: the epsilon, and the divisor of the models that see. */
static void test_gguf_ollama(void **state)
{
    (void)state;
    static const struct { const char *architecture; uint32_t layers, vision_layers; double divisor; } rows[] = {
        {"gemma3", 34, 27, 8}, {"gemma3", 48, 27, 8}, {"gemma3", 62, 27, 8}, {"gemma3", 34, UINT32_MAX, 1},
        {"gemma3", 26, 27, 1}, {"gemma2", 34, 27, 1}, {"gemma", 28, UINT32_MAX, 1}, {"gemma4", 42, 27, 1}};
    for (size_t i = 0; i < PD_COUNT(rows); i++) {
        struct pd_config c;
        GGUF_CONFIG(&c, rows[i].architecture, {"block_count", .count = rows[i].layers},
                    {"attention.layer_norm_rms_epsilon", .count = UINT32_MAX},
                    {"vision.block_count", .count = rows[i].vision_layers});
        close_to((double)c.eps, (double)1e-6f);
        close_to(c.ropes[PD_ROPE_GLOBAL].divisor, rows[i].divisor);
        close_to(c.ropes[PD_ROPE_LOCAL].divisor, 1);
        pd_config_free(&c);
    }
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
    assert_true(c.layers[0].window && c.layers[5].window == c.layers[0].window);   /* Mistral's, of all layers */
    pd_config_free(&c);
    GGUF_CONFIG(&c, "llama", {"rope.scaling.type", .text = "linear"}, {"rope.scaling.factor", .real = 4},
                {"attention.sliding_window", .count = UINT32_MAX});
    close_to(frequencies(&c, 0)[0], 0.25);
    assert_int_equal(c.layers[5].window, 0);
    pd_config_free(&c);
    GGUF_CONFIG(&c, "llama", {"rope.scaling.type", .text = "none"}, {"rope.scaling.factor", .real = 4},
                {"attention.sliding_window", .count = UINT32_MAX});
    close_to(frequencies(&c, 0)[0], 1);
    pd_config_free(&c);
    /* one count a layer, all the same */
    GGUF_CONFIG(&c, "llama", {"feed_forward_length", .counts = {64, 64, 64, 64, 64, 64}, .n_counts = 6});
    assert_int_equal(c.layers[0].ffn_dim, 64);
    pd_config_free(&c);
}

static void test_gguf_granite(void **state)
{
    (void)state;
    struct pd_config c;
    GGUF_CONFIG(&c, "granite", {"rope.scaling.finetuned", .flags = "0"});
    assert_true(c.layers[0].no_rope && c.layers[5].no_rope);
    pd_config_free(&c);
    GGUF_CONFIG(&c, "granite", {"rope.scaling.finetuned", .flags = "1"});
    assert_false(c.layers[0].no_rope);
    pd_config_free(&c);
    GGUF_CONFIG(&c, "llama", {"rope.scaling.finetuned", .flags = "0"});   /* where it says something else */
    assert_false(c.layers[0].no_rope);
    pd_config_free(&c);
}

/* Like llama.cpp, no window by its size alone: only where Peridot wrote which layers have it. */
static void test_gguf_qwen(void **state)
{
    (void)state;
    struct pd_config c;
    GGUF_CONFIG(&c, "qwen2", {"rope.freq_base", .real = 1e6f});
    expect_windows(&c, "000000");
    assert_true(c.layers[0].head_dim == 288 && c.layers[0].qkv_biases && !c.rope_interleaved && c.tied);
    close_to(c.ropes[0].base, 1e6);
    pd_config_free(&c);
    GGUF_CONFIG(&c, "qwen3", {"attention.key_length", .count = 128}, {"attention.value_length", .count = 128},
                {"attention.sliding_window_pattern", .flags = "000111"});
    expect_windows(&c, "000111");
    assert_true(c.layers[0].head_dim == 128 && c.layers[0].qk_norms && c.layers[5].window == 1024);
    pd_config_free(&c);
}

/* Numbers that differ from layer to layer. */
/* A window is of both sides; every sixth layer has none. */
static void test_gguf_embedding(void **state)
{
    (void)state;
    struct pd_config c;
    GGUF_CONFIG(&c, "gemma-embedding", {"attention.sliding_window", .count = 512}, {"pooling_type", .count = 3});
    assert_true(c.bidirectional && c.head == PERIDOT_HEAD_NONE && c.embedding.pool == PERIDOT_POOL_LAST);
    assert_int_equal(c.layers[0].window, 257);   /* 256 to each side, and the token itself */
    assert_int_equal(c.layers[5].window, 0);
    assert_int_equal(c.embedding.n_dense, 0);
    assert_string_equal(c.embedding.tasks[1].name, "document");
    pd_config_free(&c);
}

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

/* Keys of published files: layers with a window by "_swa", some numbers one by one. */
#define GEMMA4_KEYS {"attention.key_length", .count = 128}, {"attention.value_length", .count = 128}, \
    {"attention.key_length_swa", .count = 64}, {"attention.value_length_swa", .count = 64}, \
    {"rope.dimension_count", .count = 128}, {"rope.dimension_count_swa", .count = 64}, \
    {"attention.sliding_window_pattern", .flags = "110110"}

static void test_gguf_gemma4(void **state)
{
    (void)state;
    struct pd_config c;
    GGUF_CONFIG(&c, "gemma4", GEMMA4_KEYS, {"attention.head_count_kv", .counts = {4, 4, 1, 4, 4, 1}, .n_counts = 6},
                {"final_logit_softcapping", .real = 30}, {"freqs", .n_factors = 64});
    expect_windows(&c, "110110");
    for (uint32_t i = 0; i < 6; i++) {
        const struct pd_layer *l = &c.layers[i];
        assert_true(l->head_dim == (i % 3 == 2 ? 128 : 64) && l->n_kv_heads == (i % 3 == 2 ? 1 : 4));
        assert_true(l->query_scale == 1 && l->v_norm && l->output_scale && !l->has_v);   /* no tensor is there */
    }
    assert_true(c.per_layer_dim == 0 && c.final_softcap == 30 && c.attn_softcap == 0 && c.embed_scale == 48);
    /* the tensor says which pairs are rotated: here a half, and of no local layer */
    close_to(frequencies(&c, false)[31], pow(1e6, -62.0 / 128));
    close_to(frequencies(&c, false)[32], pow(1e6, -64.0 / 128) / 1e30);
    close_to(frequencies(&c, true)[31], pow(1e4, -62.0 / 64));
    pd_config_free(&c);
    GGUF_CONFIG(&c, "gemma4", GEMMA4_KEYS, {"rope.freq_base", .real = 5e5f}, {"rope.freq_base_swa", .real = 5e3f},
                {"attention.sliding_window", .count = 16});
    assert_true(c.layers[0].window == 16 && c.final_softcap == 0);
    close_to(frequencies(&c, false)[15], pow(5e5, -30.0 / 128));   /* without the tensor a quarter, as in all models */
    assert_true(frequencies(&c, false)[16] == 0);
    close_to(frequencies(&c, true)[31], pow(5e3, -62.0 / 64));
    pd_config_free(&c);
    GGUF_CONFIG(&c, "gemma4", GEMMA4_KEYS, {"attention.shared_kv_layers", .count = 3},
                {"embedding_length_per_layer_input", .count = 32},
                {"feed_forward_length", .counts = {64, 64, 64, 128, 128, 128}, .n_counts = 6});
    assert_true(c.per_layer_dim == 32 && c.layers[2].ffn_dim == 64 && c.layers[3].ffn_dim == 128);
    assert_true(c.layers[2].kv_layer == 2 && c.layers[3].kv_layer == 1 && c.layers[4].kv_layer == 1
                && c.layers[5].kv_layer == 2);
    pd_config_free(&c);
}

#define YARN_KEYS {"rope.scaling.type", .text = "yarn"}, {"rope.scaling.factor", .count = 4}

/* What multiplies cos and sin is 0.1 ln 4 + 1, divided by the same with a weight where the file has one. */
static void test_gguf_yarn(void **state)
{
    (void)state;
    struct pd_config c;
    GGUF_CONFIG(&c, "llama", YARN_KEYS, {"rope.scaling.original_context_length", .count = 512});
    assert_true(c.ropes[0].beta_fast == 32 && c.ropes[0].beta_slow == 1 && c.ropes[0].old_ctx == 512);
    close_to(c.rope_tables[0].attn_factor, 0.1 * log(4) + 1);
    /* 288 columns: the ramp is from 288 ln(512 / 64 pi) / 2 ln 10000 = 14.6, floored, to 68.8, ceiled */
    close_to(c.rope_tables[0].inv_freq[14], pow(1e4, -28.0 / 288));
    close_to(c.rope_tables[0].inv_freq[15], pow(1e4, -30.0 / 288) * (1.0 / 55 / 4 + 54.0 / 55));
    close_to(c.rope_tables[0].inv_freq[69], pow(1e4, -138.0 / 288) / 4);
    close_to(c.rope_tables[0].inv_freq[143], pow(1e4, -286.0 / 288) / 4);
    pd_config_free(&c);
    GGUF_CONFIG(&c, "llama", YARN_KEYS, {"rope.scaling.yarn_log_multiplier", .real = 2},
                {"rope.scaling.attn_factor", .real = 3}, {"rope.scaling.yarn_beta_fast", .count = 16},
                {"rope.scaling.yarn_beta_slow", .count = 2});
    assert_true(c.ropes[0].beta_fast == 16 && c.ropes[0].beta_slow == 2 && c.ropes[0].old_ctx == 8192);
    close_to(c.rope_tables[0].attn_factor, 3 * (0.1 * log(4) + 1) / (0.2 * log(4) + 1));
    pd_config_free(&c);
    /* what config.json says to multiply by, as the converter writes it; 1 says nothing */
    GGUF_CONFIG(&c, "llama", YARN_KEYS, {"rope.scaling.yarn_attn_factor", .real = 1.5f});
    close_to(c.rope_tables[0].attn_factor, 1.5);
    pd_config_free(&c);
    GGUF_CONFIG(&c, "llama", YARN_KEYS, {"rope.scaling.yarn_attn_factor", .count = 1});
    close_to(c.rope_tables[0].attn_factor, 0.1 * log(4) + 1);
    pd_config_free(&c);
    GGUF_CONFIG(&c, "olmo2", YARN_KEYS, {"rope.scaling.yarn_attn_factor", .real = 1.13862944f});   /* rounded to fp32 */
    assert_true(c.ropes[PD_ROPE_GLOBAL].attn_factor == 0.1 * log(4) + 1 && c.ropes[PD_ROPE_LOCAL].attn_factor == 1);
    pd_config_free(&c);
    GGUF_CONFIG(&c, "gemma3", YARN_KEYS);   /* whose layers with a window have no rule */
    close_to(frequencies(&c, true)[143], pow(1e4, -286.0 / 288));
    close_to(frequencies(&c, false)[143], pow(1e6, -286.0 / 288) / 4);
    assert_true(c.rope_tables[c.layers[0].rope].attn_factor == 1 && c.rope_tables[c.layers[5].rope].attn_factor > 1);
    pd_config_free(&c);
    static const struct { struct key key; const char *a, *b; } rows[] = {
        {{"rope.scaling.factor", .count = 0}, "llama.rope.scaling.factor is 0", "not between"},
        {{"rope.scaling.factor", .real = NAN}, "llama.rope.scaling.factor is", "not between"},
        {{"rope.scaling.original_context_length", .count = 0}, "original_context_length is 0", "not between"},
        {{"rope.scaling.yarn_beta_fast", .real = INFINITY}, "yarn_beta_fast is inf", "not between"},
        {{"rope.scaling.yarn_beta_fast", .real = 0.5f}, "beta_fast is 0.5", "beta_slow, which is 1"},
        {{"rope.scaling.yarn_beta_slow", .text = "1"}, "llama.rope.scaling.yarn_beta_slow", "not a number"},
        {{"rope.scaling.yarn_log_multiplier", .real = -1}, "yarn_log_multiplier is -1", "not between"},
        {{"rope.scaling.attn_factor", .real = 1000}, "rope.scaling.attn_factor is 1138", "not between"},
        {{"rope.scaling.yarn_attn_factor", .real = NAN}, "rope.scaling.yarn_attn_factor is", "not between"},
        {{"rope.scaling.yarn_attn_factor", .count = 0}, "rope.scaling.yarn_attn_factor is 0", "not between"},
        {{"rope.scaling.yarn_attn_factor", .text = "1"}, "rope.scaling.yarn_attn_factor", "not a number"},
        {{"rope.freq_base", .count = 1}, "llama.rope.scaling.type", "base of 1"},
    };
    for (size_t i = 0; i < PD_COUNT(rows); i++) {
        const struct key factor = {"rope.scaling.factor", .count = 4};
        bool own = strcmp(rows[i].key.name, factor.name) == 0;
        const struct key keys[] = {rows[i].key, {"rope.scaling.type", .text = "yarn"}, factor};
        EXPECT_FAILURE(read_gguf(&c, "llama", keys, own ? 2 : 3), PERIDOT_ERROR_FORMAT, rows[i].a, rows[i].b);
    }
}

static void test_gguf_longrope(void **state)
{
    (void)state;
    struct pd_config c;
    GGUF_CONFIG(&c, "llama", {"factors_long", .n_factors = 144}, {"factors_short", .n_factors = 144},
                {"rope.scaling.original_context_length", .count = 4096}, {"rope.scaling.attn_factor", .real = 1.25f});
    assert_true(c.n_rope_tables == 1 && c.rope_tables[0].attn_factor == 1.25 && c.rope_tables[0].long_inv_freq);
    assert_true(!pd_rope_is_long(&c, 4096) && pd_rope_is_long(&c, 4097));
    pd_config_free(&c);
    GGUF_CONFIG(&c, "llama", {"rope.scaling.type", .text = "longrope"});   /* with no tensors there is no rule */
    assert_true(!pd_rope_is_long(&c, 8192) && !c.rope_tables[0].long_inv_freq);
    pd_config_free(&c);
    const struct key shorts = {"factors_short", .n_factors = 144};
    EXPECT_FAILURE(read_gguf(&c, "llama", &shorts, 1), PERIDOT_ERROR_FORMAT, "rope_factors_long.weight", "missing");
    const struct key wrong[] = {shorts, {"factors_long", .n_factors = 72}};
    EXPECT_FAILURE(read_gguf(&c, "llama", wrong, 2), PERIDOT_ERROR_FORMAT, "rope_factors_long.weight", "[144]");
}

static void test_gguf_partial(void **state)
{
    (void)state;
    struct pd_config c;
    GGUF_CONFIG(&c, "phi3", {"rope.dimension_count", .count = 72}, {"freqs", .n_factors = 36});
    assert_true(c.rope_tables[0].head_dim == 288 && c.rope_tables[0].n_rotated == 72);
    close_to(c.rope_tables[0].inv_freq[17], pow(1e4, -34.0 / 72));
    assert_true(c.rope_tables[0].inv_freq[36] == 0);
    pd_config_free(&c);
    static const struct { struct key key; const char *a, *b; } rows[] = {
        {{"rope.dimension_count", .count = 0}, "phi3.rope.dimension_count is 0", "even"},
        {{"rope.dimension_count", .count = 71}, "phi3.rope.dimension_count is 71", "even"},
        {{"rope.dimension_count", .count = 290}, "phi3.rope.dimension_count is 290", "288 columns"},
        {{"rope.dimension_count", .real = 72}, "phi3.rope.dimension_count", "not a count"},
        {{"rope.dimension_count", .counts = {72, 72}, .n_counts = 2}, "phi3.rope.dimension_count", "not a count"},
        {{"factors_short", .n_factors = 36}, "rope_factors_short.weight", "[144]"},
    };
    for (size_t i = 0; i < PD_COUNT(rows); i++)
        EXPECT_FAILURE(read_gguf(&c, "phi3", &rows[i].key, 1), PERIDOT_ERROR_FORMAT, rows[i].a, rows[i].b);
}

static void test_gguf_muse_glimmer(void **state)
{
    (void)state;
    static const char *const windows[] = {"101110", "011101"};
    for (size_t i = 0; i < PD_COUNT(windows); i++) {
        struct pd_config c;
        GGUF_CONFIG(&c, "muse-glimmer", {"logit_scale", .real = 0.25f},
                    {i ? "attention.sliding_window_pattern" : "unknown", .flags = windows[i]});
        expect_windows(&c, windows[i]);
        for (uint32_t k = 0; k < 6; k++) assert_int_equal(c.layers[k].no_rope, windows[i][k] == '0');
        assert_true(c.logit_scale == 0.25f && c.final_softcap == 20 && c.post_eps == 1e-8f && c.q_norm_weight == 0);
        assert_true(c.rope_interleaved && !c.norm_plus_one && c.layers[0].qk_norms && c.layers[0].attn_gate);
        pd_config_free(&c);
    }
}

static void test_gguf_gemma4_refusals(void **state)
{
    (void)state;
    static const struct { struct key key; const char *a, *b; } rows[] = {
        {{"attention.key_length_swa", .count = 66}, "gemma4.attention.key_length_swa is 66", "multiple of 4"},
        {{"attention.key_length_swa", .text = "64"}, "gemma4.attention.key_length_swa", "not a count"},
        {{"attention.value_length_swa", .count = 32}, "gemma4.attention.value_length_swa", "32 of 64"},
        {{"rope.dimension_count_swa", .count = 32}, "gemma4.rope.dimension_count_swa", "32 of 64"},
        {{"rope.dimension_count", .count = 32}, "gemma4.rope.dimension_count", "32 of 128"},
        {{"attention.value_length", .count = 64}, "gemma4.attention.value_length", "64 of 128"},
        {{"attention.sliding_window_pattern", .flags = "11"}, "2 entries", "6 layers"},
        {{"attention.shared_kv_layers", .count = 4}, "layer 2 has no keys", "first 2 layers"},
        {{"embedding_length_per_layer_input", .count = 33}, "embedding_length_per_layer_input is 33", "multiple of 32"},
        {{"embedding_length_per_layer_input", .count = 8192}, "embedding_length_per_layer_input is 8192", "between"},
        {{"feed_forward_length", .counts = {64, 64}, .n_counts = 2}, "feed_forward_length has 2 entries", "6 layers"},
        {{"attention.head_count_kv", .counts = {4, 4, 3, 4, 4, 3}, .n_counts = 6}, "8 query heads", "3 kv heads"},
        {{"attn_logit_softcapping", .real = 50}, "gemma4.attn_logit_softcapping is 50", "no such softcap"},
        {{"rope.scaling.type", .text = "dynamic"}, "gemma4.rope.scaling.type", "dynamic"},
        {{"rope.scaling.type", .text = "yarn"}, "gemma4.rope.scaling.factor", "missing"},
        {{"rope.scaling.attn_factor", .real = 2}, "gemma4.rope.scaling.attn_factor is 2", "only 1"},
        {{"freqs", .n_factors = 32}, "rope_freqs.weight", "[64]"},
        {{"freqs", .n_factors = 128}, "rope_freqs.weight", "[64]"},
    };
    for (size_t i = 0; i < PD_COUNT(rows); i++) {
        struct key keys[8] = {rows[i].key};
        const struct key usual[] = {GEMMA4_KEYS};
        size_t n = 1;
        for (size_t k = 0; k < PD_COUNT(usual); k++)
            if (strcmp(usual[k].name, rows[i].key.name) != 0) keys[n++] = usual[k];
        struct pd_config c;
        peridot_status status = read_gguf(&c, "gemma4", keys, n);
        if (status == PERIDOT_OK) fail_msg("gemma4.%s is taken", rows[i].key.name);
        expect_sentence((const char *const[]){"m.gguf: ", rows[i].a, rows[i].b, NULL});
    }
}

/* Layers with recurrences, and a block after them that drafts tokens. */
static void test_gguf_recurrences(void **state)
{
    (void)state;
#define QWEN35_KEYS {"ssm.conv_kernel", .count = 4}, {"ssm.state_size", .count = 128}, \
    {"ssm.group_count", .count = 16}, {"ssm.time_step_rank", .count = 32}, {"ssm.inner_size", .count = 4096}, \
    {"attention.key_length", .count = 256}, {"rope.dimension_count", .count = 64}
    static const struct { struct key key; const char *a, *b; } rows[] = {
        {{"ssm.inner_size", .count = 4000}, "a value head by ssm.inner_size is 125", "multiple of 4"},
        {{"ssm.inner_size", .count = 4095}, "qwen35.ssm.inner_size", "32 value heads share evenly"},
        {{"ssm.group_count", .count = 12}, "32 value heads", "12 key heads evenly"},
        {{"ssm.group_count", .count = UINT32_MAX}, "qwen35.ssm.group_count", "missing"},
        {{"ssm.state_size", .count = 512}, "qwen35.ssm.state_size is 512", "256"},
        {{"attention.recurrent_layers", .flags = "110"}, "qwen35.attention.recurrent_layers", "each of 6 layers"},
        {{"attention.recurrent_layers", .flags = "111111"}, "no layer has attention", "not supported"},
        {{"nextn_predict_layers", .count = 6}, "qwen35.nextn_predict_layers", "below that of the layers, 6"},
        {{"expert_count", .count = 8}, "qwen35.expert_count is 8", "only 0"},
    };
    struct pd_config c;
    GGUF_CONFIG(&c, "qwen35", QWEN35_KEYS, {"attention.recurrent_layers", .flags = "101100"},
                {"nextn_predict_layers", .count = 1});
    assert_int_equal(c.n_layers, 5);
    assert_int_equal(c.n_nextn, 1);
    for (uint32_t i = 0; i < 5; i++) assert_int_equal(pd_layer_recurs(&c.layers[i]), i == 0 || i == 2 || i == 3);
    const struct pd_delta *d = &c.layers[0].delta;
    assert_true(d->n_k == 16 && d->n_v == 32 && d->d_k == 128 && d->d_v == 128 && d->conv == 4);
    assert_int_equal(c.layers[1].n_rotated, 64);
    pd_config_free(&c);
    GGUF_CONFIG(&c, "qwen35", QWEN35_KEYS);   /* every fourth attends */
    for (uint32_t i = 0; i < 6; i++) assert_int_equal(pd_layer_recurs(&c.layers[i]), i != 3);
    pd_config_free(&c);
    GGUF_CONFIG(&c, "qwen3next", QWEN35_KEYS, {"expert_shared_feed_forward_length", .count = 512});
    d = &c.layers[0].delta;   /* heads that share keys are side by side, and z is not with q, k and v */
    assert_true(d->n_k == 16 && d->n_v == 32 && d->grouped && !d->fused_qkvz && !c.layers[3].delta.grouped);
    pd_config_free(&c);
    GGUF_CONFIG(&c, "lfm2", {"shortconv.l_cache", .count = 3},   /* where there are no kv heads */
                {"attention.head_count_kv", .counts = {0, 0, 4, 0, 4, 0}, .n_counts = 6});
    for (uint32_t i = 0; i < 6; i++) assert_int_equal(c.layers[i].delta.n_channels, i == 2 || i == 4 ? 0 : 2304);
    assert_true(c.layers[0].delta.conv == 3 && c.layers[0].n_heads == 0 && c.layers[2].n_kv_heads == 4);
    pd_config_free(&c);
    GGUF_CONFIG(&c, "granitehybrid", {"ssm.conv_kernel", .count = 4}, {"ssm.state_size", .count = 128},
                {"ssm.group_count", .count = 1}, {"ssm.time_step_rank", .count = 48},
                {"ssm.inner_size", .count = 3072}, {"rope.scaling.finetuned", .flags = "0"},
                {"attention.head_count_kv", .counts = {0, 0, 4, 0, 4, 0}, .n_counts = 6});
    d = &c.layers[0].delta;
    assert_true(d->mamba && d->n_k == 1 && d->n_v == 48 && d->d_k == 128 && d->d_v == 64 && !d->conv_bias);
    for (uint32_t i = 0; i < 6; i++) assert_int_equal(pd_layer_recurs(&c.layers[i]), i != 2 && i != 4);
    assert_int_equal(pd_layer_qkv_dim(&c, 0), 2 * 3072 + 2 * 128 + 48);
    assert_true(c.layers[2].no_rope && c.layers[2].n_kv_heads == 4);
    pd_config_free(&c);
    const struct key no_width = {"attention.head_count_kv", .counts = {0, 0, 4, 0, 4, 0}, .n_counts = 6};
    assert_int_equal(read_gguf(&c, "lfm2", &no_width, 1), PERIDOT_ERROR_FORMAT);
    expect_sentence((const char *const[]){"lfm2.shortconv.l_cache", "missing", NULL});
    for (size_t i = 0; i < PD_COUNT(rows); i++) {
        struct key keys[8] = {rows[i].key};
        const struct key usual[] = {QWEN35_KEYS};
        size_t n = 1;
        for (size_t k = 0; k < PD_COUNT(usual); k++)
            if (strcmp(usual[k].name, rows[i].key.name) != 0) keys[n++] = usual[k];
        peridot_status status = read_gguf(&c, "qwen35", keys, n);
        if (status == PERIDOT_OK) fail_msg("qwen35.%s is taken", rows[i].key.name);
        expect_sentence((const char *const[]){"m.gguf: ", rows[i].a, rows[i].b, NULL});
    }
}

static void test_gguf_refusals(void **state)
{
    (void)state;
    static const struct { struct key key; const char *a, *b; peridot_status status; } rows[] = {
        {{"rope.scaling.type", .text = "ntk"}, "rope.scaling.type", "\"ntk\"", PERIDOT_ERROR_UNSUPPORTED},
        {{"expert_count", .count = 8}, "gemma3.expert_count is 8", "only 0", PERIDOT_ERROR_UNSUPPORTED},
        {{"rope.dimension_count", .count = 72}, "gemma3.rope.dimension_count: 72 of 288", "rotated",
         PERIDOT_ERROR_UNSUPPORTED},
        {{"attention.value_length", .count = 128}, "gemma3.attention.value_length", "128 of 288",
         PERIDOT_ERROR_UNSUPPORTED},
        {{"attention.head_count_kv", .counts = {4, 2}, .n_counts = 2}, "attention.head_count_kv has 2 entries",
         "6 layers", PERIDOT_ERROR_FORMAT},
        {{"block_count", .count = UINT32_MAX}, "block_count", "missing", PERIDOT_ERROR_FORMAT},
        {{"embedding_length", .real = 2.5f}, "embedding_length", "count", PERIDOT_ERROR_FORMAT},
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
    EXPECT_FAILURE(read_gguf(&c, "nonesuch", NULL, 0), PERIDOT_ERROR_UNSUPPORTED, "nonesuch", "qwen2, qwen3");
    EXPECT_FAILURE(read_gguf(&c, "gemma3n", NULL, 0), PERIDOT_ERROR_UNSUPPORTED, "general.architecture is \"gemma3n\"",
                   "AltUp");
    EXPECT_FAILURE(read_gguf(&c, "llama4", NULL, 0), PERIDOT_ERROR_UNSUPPORTED, "\"llama4\"", "attention in chunks");
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
        {"llama", {"attention.temperature_scale", .real = 0.5f}, "llama.attention.temperature_scale is 0.5", "llama"},
        {"mistral3", {"attention.temperature_scale", .real = -1}, "mistral3.attention.temperature_scale is -1",
         "not between"},
        {"mistral3", {"attention.temperature_scale", .real = NAN}, "attention.temperature_scale is", "not between"},
        {"mistral3", {"attention.temperature_length", .count = 8}, "attention.temperature_length is 8", "only 0"},
        {"gemma3", {"rope.scaling.attn_factor", .real = 2}, "gemma3.rope.scaling.attn_factor is 2", "only 1"},
        {"llama", {"rope.scaling.attn_factor", .real = NAN}, "llama.rope.scaling.attn_factor is", "not between"},
        {"llama", {"rope.scaling.attn_factor", .count = 0}, "llama.rope.scaling.attn_factor is 0", "not between"},
        {"llama", {"rope.scaling.yarn_attn_factor", .real = 2}, "llama.rope.scaling.yarn_attn_factor is 2", "only 1"},
        {"granite", {"rope.scaling.finetuned", .count = 0}, "granite.rope.scaling.finetuned", "not true or false"},
        {"llama", {"rope.scaling.yarn_ext_factor", .count = 0}, "llama.rope.scaling.yarn_ext_factor is 0", "only 1"},
        {"llama", {"rope.scale_linear", .real = 0.5f}, "llama.rope.scale_linear is 0.5", "only 1"},
        {"llama", {"rope.freq_base", .count = 0}, "llama.rope.freq_base is 0", "not between"},
        {"llama", {"rope.freq_base", .real = INFINITY}, "llama.rope.freq_base is inf", "not between"},
        {"gemma3", {"rope.freq_base_swa", .real = -1}, "gemma3.rope.freq_base_swa is -1", "not between"},
        {"llama", {"attention.layer_norm_rms_epsilon", .count = UINT32_MAX}, "layer_norm_rms_epsilon", "is missing"},
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
        {"muse-glimmer", {"embedding_scale", .real = 2}, "muse-glimmer.embedding_scale is 2", "only 1"},
        {"muse-glimmer", {"logit_scale", .real = -2}, "muse-glimmer.logit_scale is -2", "not between"},
        {"muse-glimmer", {"vocab_size", .count = 96}, "muse-glimmer.logit_scale", "missing"},
        {"gemma3", {"attention.causal", .text = "no"}, "gemma3.attention.causal", "not true"},
        {"gemma-embedding", {"attention.causal", .text = "no"}, "gemma-embedding.attention.causal", "not false"},
        {"gemma-embedding", {"pooling_type", .count = 4}, "gemma-embedding.pooling_type", "not 0, 1, 2 or 3"},
        {"llama", {"pooling_type", .count = 4}, "llama.pooling_type", "not 0, 1, 2 or 3"},   /* without a head for it */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gguf_divisors), cmocka_unit_test(test_gguf_ollama),
        cmocka_unit_test(test_gguf_gemma), cmocka_unit_test(test_gguf_llama),
        cmocka_unit_test(test_gguf_qwen), cmocka_unit_test(test_gguf_layers), cmocka_unit_test(test_gguf_recurrences),
        cmocka_unit_test(test_gguf_refusals),
        cmocka_unit_test(test_gguf_mutations),
        cmocka_unit_test(test_gguf_gemma4), cmocka_unit_test(test_gguf_granite),
        cmocka_unit_test(test_gguf_yarn), cmocka_unit_test(test_gguf_partial),
        cmocka_unit_test(test_gguf_longrope), cmocka_unit_test(test_gguf_muse_glimmer),
        cmocka_unit_test(test_gguf_gemma4_refusals),
        cmocka_unit_test(test_gguf_embedding),
    };
    return cmocka_run_group_tests_name("config of GGUF", tests, make_folder, remove_folder);
}
