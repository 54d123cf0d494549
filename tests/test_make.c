/* Synthetic models: what is written opens, has the sizes of the real ones, weights of the right spread and a vocabulary
 * that sentencepiece splits text with; and what goes wrong leaves no file. */
#include "format_fixture.h"

#include "arch/arch.h"
#include "format/format.h"
#include "offline/offline_.h"
#include "peridot_tools.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>

static peridot_status make(const char *file, const char *shape, const char *type, uint64_t seed)
{
    return peridot_make(in_folder(file), &(peridot_make_params){.shape = shape, .type = type, .seed = seed});
}

static struct pd_checkpoint *open_made(const char *file)
{
    struct pd_checkpoint *c;
    EXPECT_OK(pd_checkpoint_open(&c, in_folder(file), true));
    return c;
}

/* ---- sizes ---- */

struct count {
    unsigned calls;
    uint64_t total;
};

static bool stop_at_once(void *user, uint64_t done, uint64_t total)
{
    struct count *count = user;
    assert_int_equal(done, 0);
    count->calls++;
    count->total = total;
    return false;
}

/* As published, of the text model; Gemma 3 from 4B up with its 262208 rows, and Gemma 4 without the keys that no layer
 * reads; of Qwen 3.5 by their configs, without vision and drafts. */
static void test_n_params(void **state)
{
    (void)state;
    static const struct { const char *shape; double n; } published[] = {
        {"gemma-2b", 2506172416}, {"gemma-7b", 8537680896}, {"gemma2-2b", 2614341888}, {"gemma2-9b", 9241705984},
        {"gemma2-27b", 27227128320}, {"gemma3-270m", 268098176}, {"gemma3-1b", 999885952}, {"gemma3-4b", 3880263168},
        {"gemma3-12b", 11766034176}, {"gemma3-27b", 27009346304}, {"gemma4-e2b", 4628569344},
        {"gemma4-e4b", 7463013376}, {"gemma4-12b", 11907350272}, {"gemma4-26b-a4b", 25233141790},
        {"gemma4-31b", 30697345280}, {"gemma4-e2b-assistant", 77201408}, {"llama3.2-1b", 1235814400},
        {"llama3.1-8b", 8030261248}, {"qwen2.5-0.5b", 494032768}, {"qwen2.5-1.5b", 1543714304},
        {"qwen2.5-3b", 3085938688}, {"qwen2.5-7b", 7615616512}, {"qwen2.5-14b", 14770033664},
        {"qwen2.5-32b", 32763876352}, {"qwen3-0.6b", 596049920}, {"qwen3-1.7b", 1720574976},
        {"qwen3-4b", 4022468096}, {"qwen3-8b", 8190735360}, {"qwen3-14b", 14768307200}, {"qwen3-32b", 32762123264},
        {"qwen3-30b-a3b", 30532122624}, {"qwen3-next-80b-a3b", 79674391296}, {"qwen3.5-0.8b", 752393024},
        {"qwen3.5-2b", 1881825088},
        {"qwen3.5-4b", 4205751296}, {"qwen3.5-9b", 8953803264}, {"qwen3.5-27b", 26895998464},
        {"qwen3.5-35b-a3b", 34660610688},
        {"gpt-oss-20b", 20914757184}, {"gpt-oss-120b", 116829156672},
        {"granite3.3-2b", 2533539840}, {"granite3.3-8b", 8170864640}, {"granite4.0-micro", 3402836480},
        {"granite4.0-h-1b", 1461538368}, {"granite4.0-h-micro", 3191396096}, {"granite4.0-h-tiny", 6939037248},
        {"mistral-7b", 7248023552}, {"mistral-nemo-12b", 12247782400}, {"ministral3-3b", 3429006336},
        {"ministral3-8b", 8489553920}, {"ministral3-14b", 13506073600}, {"phi4-mini", 3836021760},
        {"olmo2-7b", 7298617344}, {"olmo3-7b", 7298011136}, {"olmo3-32b", 32233522176}, {"lfm2-350m", 354483968},
        {"lfm2-700m", 742489344}, {"lfm2-1.2b", 1170340608}, {"lfm2-8b-a1b", 8339930560},
        {"smollm3-3b", 3075098624},
        {"muse-glimmer-30b", 27854780928},
    };
    for (size_t i = 0; i < PD_COUNT(published); i++) {
        struct count count = {0};
        peridot_make_params params = {.shape = published[i].shape, .type = "f32", .progress = stop_at_once,
            .user = &count};
        EXPECT_FAILURE(peridot_make(in_folder("x.gguf"), &params), PERIDOT_CANCELLED, "x.gguf: cancelled");
        assert_int_equal(count.calls, 1);
        if (fabs((double)count.total / 4 / published[i].n - 1) > 1e-3)
            fail_msg("%s: %.0f parameters", published[i].shape, (double)count.total / 4);
        assert_string_equal(peridot_shape_name(i), published[i].shape);
    }
    size_t n = PD_COUNT(published);
    while (peridot_shape_name(n)) n++;
    assert_null(peridot_shape_name(n + 1));
}

/* ---- contents ---- */

static void check_spread(const struct pd_tensor *t, double expected)
{
    uint64_t n = t->shape[0] * t->shape[1];
    float *w = malloc(n * sizeof *w);
    double sum = 0, squares = 0;
    assert_non_null(w);
    pd_dequantize(t->dtype, w, t->data, n);
    for (uint64_t i = 0; i < n; i++) {
        sum += w[i];
        squares += (double)w[i] * w[i];
    }
    double deviation = sqrt(squares / (double)n);
    /* Blocks have one scale: of larger ones there are fewer, and their scales spread more. */
    double tolerance = pd_dtypes[t->dtype].block_len >= 128 ? 0.05 : 0.02;
    if (fabs(deviation / expected - 1) > tolerance || fabs(sum / (double)n) > tolerance * expected)
        fail_msg("%s %s: mean %g, deviation %g, not %g", t->name, t->type, sum / (double)n, deviation, expected);
    free(w);
}

/* No quantiser makes -128. */
static void check_q8_0(const struct pd_tensor *t)
{
    for (uint64_t block = 0; block < t->size; block += 34)
        for (int i = 2; i < 34; i++) assert_int_not_equal(t->data[block + (uint64_t)i], 0x80);
}

static void check_tensors(const struct pd_checkpoint *c, const struct pd_shape *s)
{
    bool drafts = s->family == PD_GEMMA4_DRAFTER, gemma4 = s->family == PD_GEMMA4, llama = s->family == PD_LLAMA;
    bool hybrid = s->family == PD_QWEN35;
    bool qwen = s->family == PD_QWEN2 || s->family == PD_QWEN3 || s->family == PD_QWEN3_MOE || hybrid;
    bool oss = s->family == PD_GPT_OSS, granite = s->delta.mamba;
    bool gemma = !llama && !qwen && !drafts && !oss && !granite;
    bool has_qk_norms = s->family == PD_GEMMA3 || gemma4 || drafts || s->family == PD_TEST_FAMILY
        || s->family == PD_QWEN3 || s->family == PD_QWEN3_MOE;
    bool has_biases = s->family == PD_QWEN2 || s->family == PD_TEST_FAMILY || oss;
    bool post = s->family == PD_GEMMA2 || (has_qk_norms && !qwen);
    const struct pd_tensor *t = pd_checkpoint_find(c, "token_embd.weight");
    assert_int_equal(t->shape[0], s->vocab_size);
    check_spread(t, (gemma ? 0.125 : 1) / sqrt(s->d_model));
    t = pd_checkpoint_find(c, granite && s->n_experts ? "blk.1.ffn_down_shexp.weight" : "blk.1.ffn_down.weight");
    assert_true((t != NULL) == (s->ffn_dim != 0));
    if (t) {
        assert_int_equal(t->shape[0], s->d_model);
        assert_int_equal(t->shape[1], s->ffn_dim);
        check_spread(t, 1 / sqrt(s->ffn_dim));
        if (t->dtype == PD_Q8_0) check_q8_0(t);
    }
    assert_true((s->n_experts != 0) == (pd_checkpoint_find(c, "blk.1.ffn_down_exps.weight") != NULL));
    t = pd_checkpoint_find(c, hybrid ? "blk.3.attn_k.weight" : granite ? "blk.2.attn_k.weight" : "blk.0.attn_k.weight");
    assert_true(drafts ? !t : t && t->shape[0] == s->n_kv_heads * s->head_dim);
    assert_int_equal(pd_checkpoint_find(c, "blk.0.attn_norm.weight")->dtype, PD_F32);
    assert_true(post == (pd_checkpoint_find(c, "blk.0.post_ffw_norm.weight") != NULL));
    assert_true(has_qk_norms == (pd_checkpoint_find(c, "blk.0.attn_q_norm.weight") != NULL));
    assert_true((hybrid || granite) == (pd_checkpoint_find(c, "blk.0.ssm_a") != NULL));
    assert_true(granite == (pd_checkpoint_find(c, "blk.0.ssm_d") != NULL));
    assert_true(hybrid == (pd_checkpoint_find(c, "blk.3.attn_q_norm.weight") != NULL && !has_qk_norms));
    assert_true(has_biases == (pd_checkpoint_find(c, "blk.0.attn_v.bias") != NULL));
    assert_true(oss == (pd_checkpoint_find(c, "blk.0.attn_sinks.weight") != NULL));
    assert_true((llama || drafts || gemma4) == (pd_checkpoint_find(c, "rope_freqs.weight") != NULL));
    assert_true(s->untied == (pd_checkpoint_find(c, "output.weight") != NULL));
}

static void expect_meta(const struct pd_checkpoint *c, const char *key, const char *expected)
{
    const struct pd_meta *m = pd_checkpoint_find_meta(c, key);
    if (!m) fail_msg("no key %s", key);
    char *text = pd_meta_text(m);
    assert_string_equal(text, expected);
    free(text);
}

static void test_tiny(void **state)
{
    (void)state;
    for (size_t i = 0; pd_shape_get(i); i++) {
        const struct pd_shape *s = pd_shape_get(i);
        for (int type = 0; !strncmp(s->name, "tiny-", 5) && type < PD_N_DTYPES; type++) {
            EXPECT_OK(make("x.gguf", s->name, pd_dtypes[type].name, 1));
            struct pd_checkpoint *c = open_made("x.gguf");
            check_tensors(c, s);
            assert_int_equal(pd_checkpoint_find_meta(c, "tokenizer.ggml.tokens")->n, s->n_tokens);
            pd_checkpoint_close(c);
        }
    }
    remove(in_folder("x.gguf"));
}

static void test_metadata(void **state)
{
    (void)state;
    EXPECT_OK(make("x.gguf", "tiny-gemma3", "q8_0", 1));
    struct pd_checkpoint *c = open_made("x.gguf");
    expect_meta(c, "general.architecture", "gemma3");
    expect_meta(c, "general.name", "tiny-gemma3 random");
    expect_meta(c, "general.file_type", "7");
    expect_meta(c, "gemma3.attention.sliding_window", "32");
    expect_meta(c, "gemma3.attention.layer_norm_rms_epsilon", "1e-06");
    expect_meta(c, "gemma3.rope.freq_base", "1000000");
    expect_meta(c, "gemma3.rope.scaling.type", "linear");
    expect_meta(c, "gemma3.rope.scaling.factor", "8");
    expect_meta(c, "tokenizer.ggml.eot_token_id", "106");
    expect_meta(c, "tokenizer.ggml.add_space_prefix", "false");
    pd_checkpoint_close(c);
    EXPECT_OK(make("x.gguf", "tiny-gemma2", "q4_0", 1));   /* over the other */
    c = open_made("x.gguf");
    expect_meta(c, "gemma2.attn_logit_softcapping", "50");
    expect_meta(c, "gemma2.final_logit_softcapping", "30");
    expect_meta(c, "tokenizer.ggml.eot_token_id", "107");
    pd_checkpoint_close(c);
    remove(in_folder("x.gguf"));
}

/* 640 columns are not whole blocks of 256. */
static void test_narrow(void **state)
{
    (void)state;
    EXPECT_OK(make("x.gguf", "gemma3-270m", "q4_k", 1));
    struct pd_checkpoint *c = open_made("x.gguf");
    assert_int_equal(pd_checkpoint_find(c, "blk.3.attn_q.weight")->dtype, PD_Q5_0);
    assert_int_equal(pd_checkpoint_find(c, "blk.3.ffn_down.weight")->dtype, PD_Q4_K);
    pd_checkpoint_close(c);
    remove(in_folder("x.gguf"));
}

/* Llama 3.1 8B has these factors in its published GGUF files: 1 for the first 29 frequencies, 8 from the 36th on. */
static void test_rope_freqs(void **state)
{
    (void)state;
    EXPECT_OK(make("x.gguf", "tiny-llama", "f32", 1));
    struct pd_checkpoint *c = open_made("x.gguf");
    const struct pd_tensor *t = pd_checkpoint_find(c, "rope_freqs.weight");
    float factors[32];
    assert_int_equal(t->size, sizeof factors);
    memcpy(factors, t->data, sizeof factors);
    for (int i = 0; i < 32; i++) {
        double turns = 8192 * pow(500000, -i / 32.0) / 6.283185307179586;
        double expected = turns > 4 ? 1 : turns < 1 ? 8 : 1 / ((4 - turns) / 3 / 8 + (turns - 1) / 3);
        assert_true(fabs(factors[i] / expected - 1) < 1e-6);
    }
    assert_true(factors[14] == 1 && factors[15] > 1 && factors[17] < 8 && factors[18] == 8);
    pd_checkpoint_close(c);
    remove(in_folder("x.gguf"));
}

/* Their config.json's numbers: YaRN in layers without a window alone, weighted or not. */
static void test_ropes(void **state)
{
    (void)state;
    struct pd_config c;
    EXPECT_OK(pd_shape_config(&c, pd_shape_find("ministral3-8b")));
    const struct pd_rope *rope = &c.ropes[PD_ROPE_GLOBAL];
    assert_true(rope->base == 1e6 && rope->divisor == 16 && rope->old_ctx == 16384 && rope->beta_fast == 32);
    assert_true(rope->factor == 0 && rope->attn_factor == 1 && fabs(c.query_growth - 0.1) < 1e-6);
    pd_config_free(&c);
    EXPECT_OK(pd_shape_config(&c, pd_shape_find("olmo3-7b")));
    rope = c.ropes;
    assert_true(rope[PD_ROPE_GLOBAL].divisor == 8);
    assert_true(fabs(rope[PD_ROPE_GLOBAL].attn_factor - 1.2079441541679836) < 1e-9);
    assert_true(rope[PD_ROPE_LOCAL].base == 5e5 && rope[PD_ROPE_LOCAL].divisor == 1);
    assert_true(rope[PD_ROPE_LOCAL].beta_fast == 0 && c.layers[2].window == 4096 && c.layers[3].window == 0);
    pd_config_free(&c);
    EXPECT_OK(pd_shape_config(&c, pd_shape_find("phi4-mini")));
    assert_int_equal(c.layers[0].n_rotated, 96);
    pd_config_free(&c);
}

static void check_shape(const struct pd_checkpoint *c, const char *name, uint64_t n_rows, uint64_t n_cols)
{
    const struct pd_tensor *t = pd_checkpoint_find(c, name);
    if (!t) fail_msg("no tensor %s", name);
    if (t->n_dims != 2 || t->shape[0] != n_rows || t->shape[1] != n_cols)
        fail_msg("%s: %llu x %llu", name, (unsigned long long)t->shape[0], (unsigned long long)t->shape[1]);
}

/* Layers without a window have heads of their own, one kv head, and no values. */
static void test_gemma4(void **state)
{
    (void)state;
    EXPECT_OK(make("x.gguf", "tiny-gemma4", "q4_0", 1));
    struct pd_checkpoint *c = open_made("x.gguf");
    check_shape(c, "blk.1.attn_q.weight", 256, 256);
    check_shape(c, "blk.1.attn_v.weight", 128, 256);
    check_shape(c, "blk.2.attn_q.weight", 512, 256);
    check_shape(c, "blk.2.attn_k.weight", 128, 256);
    assert_null(pd_checkpoint_find(c, "blk.2.attn_v.weight"));
    assert_null(pd_checkpoint_find(c, "per_layer_token_embd.weight"));
    expect_meta(c, "gemma4.attention.key_length", "128");
    expect_meta(c, "gemma4.attention.key_length_swa", "64");
    expect_meta(c, "gemma4.attention.head_count_kv", "[2, 2, 1, 2, 2, 1]");
    expect_meta(c, "gemma4.attention.sliding_window_pattern", "[true, true, false, true, true, false]");
    expect_meta(c, "gemma4.final_logit_softcapping", "30");
    const struct pd_tensor *t = pd_checkpoint_find(c, "rope_freqs.weight");
    assert_int_equal(t->shape[0], 64);
    for (size_t i = 0; i < 64; i++) {
        float factor;
        memcpy(&factor, t->data + i * sizeof factor, sizeof factor);
        assert_true(factor == (i < 16 ? 1.f : 1e30f));
    }
    pd_checkpoint_close(c);
    remove(in_folder("x.gguf"));
}

/* The last three layers have no keys of their own and a wider ffn; scores have a deviation of 1 without a scale. */
static void test_gemma4_e(void **state)
{
    (void)state;
    EXPECT_OK(make("x.gguf", "tiny-gemma4-e", "q4_0", 1));
    struct pd_checkpoint *c = open_made("x.gguf");
    assert_non_null(pd_checkpoint_find(c, "blk.2.attn_v.weight"));
    assert_null(pd_checkpoint_find(c, "blk.3.attn_k.weight"));
    assert_null(pd_checkpoint_find(c, "blk.3.attn_k_norm.weight"));
    check_shape(c, "blk.2.ffn_up.weight", 256, 256);
    check_shape(c, "blk.3.ffn_up.weight", 512, 256);
    check_shape(c, "blk.5.inp_gate.weight", 256, 256);
    check_shape(c, "per_layer_token_embd.weight", 1024, 6 * 256);
    check_spread(pd_checkpoint_find(c, "per_layer_token_embd.weight"), 1. / 16);
    assert_int_equal(pd_checkpoint_find(c, "per_layer_model_proj.weight")->dtype, PD_BF16);
    expect_meta(c, "gemma4.attention.shared_kv_layers", "3");
    expect_meta(c, "gemma4.embedding_length_per_layer_input", "256");
    expect_meta(c, "gemma4.feed_forward_length", "[256, 256, 256, 512, 512, 512]");
    float norm;
    memcpy(&norm, pd_checkpoint_find(c, "blk.0.attn_q_norm.weight")->data, sizeof norm);
    assert_true(fabs(norm * pow(64, 0.25) - 1) < 0.11);
    pd_checkpoint_close(c);
    EXPECT_OK(make("x.gguf", "tiny-gemma4-e", "f32", 1));
    c = open_made("x.gguf");
    assert_int_equal(pd_checkpoint_find(c, "per_layer_model_proj.weight")->dtype, PD_F32);
    pd_checkpoint_close(c);
    remove(in_folder("x.gguf"));
}

/* ---- vocabulary ---- */

static void check_text(const peridot_vocab *v, const char *text, size_t n_expected)
{
    int32_t *ids;
    char *back;
    size_t n, size;
    EXPECT_OK(peridot_encode(&ids, &n, v, text, strlen(text), 0));
    EXPECT_OK(peridot_decode(&back, &size, v, ids, n));
    assert_string_equal(back, text);
    if (n_expected) assert_int_equal(n, n_expected);
    peridot_free(ids);
    peridot_free(back);
}

static void test_vocab(void **state)
{
    (void)state;
    static const char *const shapes[] = {"tiny-gemma2", "tiny-gemma3", "tiny-gemma4", "tiny-llama"};
    for (size_t i = 0; i < PD_COUNT(shapes); i++) {
        peridot_vocab *v;
        EXPECT_OK(make("x.gguf", shapes[i], "q4_0", 1));
        EXPECT_OK(peridot_vocab_open(&v, in_folder("x.gguf")));
        assert_int_equal(peridot_vocab_size(v), 1024);
        check_text(v, "Hello, world 42!\n\xc3\xa4\xe2\x82\xac", 0);
        check_text(v, "aaab", strcmp(shapes[i], "tiny-llama") ? 2 : 0);   /* aa ab */
        peridot_vocab_close(v);
    }
    remove(in_folder("x.gguf"));
}

/* Full-size lists: as long as they should be, no piece twice. */
static void check_unique(const struct pd_synthetic_vocab *v)
{
    struct pd_name_index x = {malloc(v->n * sizeof(struct pd_name)), v->n};
    size_t first, second;
    char *text = malloc(v->n * 32);
    assert_true(x.names && text);
    for (size_t i = 0; i < v->n; i++) {
        struct pd_string s = v->tokens[i];
        assert_true(s.size > 0 && s.size < 32);
        memcpy(text + i * 32, s.data, s.size);
        text[i * 32 + s.size] = 0;
        x.names[i] = (struct pd_name){text + i * 32, i};
    }
    pd_names_sort(&x);
    if (pd_names_duplicate(&x, &first, &second)) fail_msg("%s twice: %zu, %zu", text + first * 32, first, second);
    free(text);
    free(x.names);
}

struct piece {
    uint64_t id;
    const char *text;
};

static void check_full_vocab(const struct pd_synthetic_vocab *v, const struct piece *known)
{
    for (; known->text; known++) {
        struct pd_string s = v->tokens[known->id];
        if (s.size != strlen(known->text) || memcmp(s.data, known->text, s.size) != 0)
            fail_msg("token %llu is %.*s, not %s", (unsigned long long)known->id, (int)s.size, s.data, known->text);
    }
    check_unique(v);
}

static void test_full_vocab(void **state)
{
    (void)state;
    static const struct piece gemma3[] = {{0, "<pad>"}, {1, "<eos>"}, {2, "<bos>"}, {3, "<unk>"},
        {105, "<start_of_turn>"}, {106, "<end_of_turn>"}, {107, "\n"}, {0, NULL}};
    static const struct piece gemma4[] = {{0, "<pad>"}, {1, "<eos>"}, {2, "<bos>"}, {3, "<unk>"}, {4, "<mask>"},
        {46, "<|tool>"}, {52, "<|\"|>"}, {98, "<|think|>"}, {101, "<channel|>"}, {104, "<unused104>"},
        {105, "<|turn>"}, {106, "<turn|>"}, {107, "\n"}, {255999, "<|image>"}, {258884, "<|video|>"}, {0, NULL}};
    static const struct { const char *shape; const struct piece *known; } vocabularies[] = {
        {"gemma3-270m", gemma3}, {"gemma4-e2b", gemma4}};
    for (size_t i = 0; i < PD_COUNT(vocabularies); i++) {
        struct pd_synthetic_vocab v;
        EXPECT_OK(pd_synthetic_vocab_create(&v, pd_shape_find(vocabularies[i].shape)));
        assert_int_equal(v.n, 262144);
        check_full_vocab(&v, vocabularies[i].known);
        pd_synthetic_vocab_free(&v);
    }
}

/* ---- seeds, progress, failures ---- */

static bool same_weights(const char *a, const char *b)
{
    struct pd_checkpoint *x = open_made(a), *y = open_made(b);
    bool same = true;
    for (size_t i = 0; i < pd_checkpoint_n_tensors(x); i++) {
        const struct pd_tensor *t = pd_checkpoint_tensor(x, i), *u = pd_checkpoint_find(y, t->name);
        assert_int_equal(t->size, u->size);
        same = same && !memcmp(t->data, u->data, t->size);
    }
    pd_checkpoint_close(x);
    pd_checkpoint_close(y);
    return same;
}

static void test_seed(void **state)
{
    (void)state;
    for (int type = 0; type < PD_N_DTYPES; type++) {
        EXPECT_OK(make("x.gguf", "tiny-gemma", pd_dtypes[type].name, 1));
        EXPECT_OK(make("y.gguf", "tiny-gemma", pd_dtypes[type].name, 1));
        assert_true(same_weights("x.gguf", "y.gguf"));
        EXPECT_OK(make("y.gguf", "tiny-gemma", pd_dtypes[type].name, 2));
        assert_false(same_weights("x.gguf", "y.gguf"));
    }
    struct pd_checkpoint *c = open_made("x.gguf");
    const struct pd_tensor *q = pd_checkpoint_find(c, "blk.0.attn_q.weight"),
        *u = pd_checkpoint_find(c, "blk.1.attn_q.weight");
    assert_memory_not_equal(q->data, u->data, q->size);
    pd_checkpoint_close(c);
    remove(in_folder("x.gguf"));
    remove(in_folder("y.gguf"));
}

static bool watch(void *user, uint64_t done, uint64_t total)
{
    struct count *count = user;
    count->calls++;
    count->total = total;
    return done * 2 < total || total < 1 << 20;
}

static void test_progress(void **state)
{
    (void)state;
    struct count count = {0};
    peridot_make_params params = {.shape = "tiny-gemma", .type = "q4_0", .progress = watch, .user = &count};
    EXPECT_OK(peridot_make(in_folder("x.gguf"), &params));
    assert_int_equal(count.calls, 21);   /* the beginning, and 20 tensors, all small */
    remove(in_folder("x.gguf"));
    params.type = "f32";
    EXPECT_FAILURE(peridot_make(in_folder("x.gguf"), &params), PERIDOT_CANCELLED, "cancelled");
    assert_false(pd_is_file(in_folder("x.gguf")));   /* remove_folder finds what lies there under another name */
}

static void test_arguments(void **state)
{
    (void)state;
    EXPECT_FAILURE(make("x.gguf", "gemma9", "f32", 1), PERIDOT_ERROR_ARGUMENT, "shape gemma9", "gemma2-2b, ",
                   "tiny-llama");
    EXPECT_FAILURE(make("x.gguf", "tiny-llama", "q9", 1), PERIDOT_ERROR_ARGUMENT, "type q9",
                   "f32, f16, bf16, q8_0, q4_0, q4_1");
    EXPECT_FAILURE(make("x.gguf", NULL, "f32", 1), PERIDOT_ERROR_ARGUMENT, "shape (none)");
    EXPECT_FAILURE(peridot_make(NULL, NULL), PERIDOT_ERROR_ARGUMENT, "NULL");
    EXPECT_FAILURE(make("no/x.gguf", "tiny-llama", "f32", 1), PERIDOT_ERROR_IO, "no/x.gguf", NO_SUCH_FILE);
    EXPECT_FAILURE(make("", "tiny-llama", "f32", 1), PERIDOT_ERROR_IO, "is a folder");
}

/* A limit on the size of files stands for a full disk. */
static void test_full_disk(void **state)
{
    (void)state;
    struct rlimit old, low;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    low = old;
    low.rlim_cur = 1 << 20;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    peridot_status status = make("x.gguf", "tiny-gemma3", "f32", 1);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, handler);
    EXPECT_FAILURE(status, PERIDOT_ERROR_IO, "x.gguf: ", "File too large");
}

/* rmdir fails, and with it the tests, when something was left in the folder. */
/* ---- without a file ---- */

/* What is said of a shape is what a file of it has. */
static void try_count(const char *shape, const char *type)
{
    peridot_file *file, *planned;
    peridot_split a, b;
    EXPECT_OK(make("f32.gguf", shape, "f32", 1));
    EXPECT_OK(peridot_convert(in_folder("x.gguf"), in_folder("f32.gguf"), &(peridot_convert_params){.type = type},
                              NULL));
    EXPECT_OK(peridot_file_open(&file, in_folder("x.gguf")));
    EXPECT_OK(peridot_file_of_shape(&planned, shape, type));
    const peridot_model_info *x = peridot_file_model(file), *y = peridot_file_model(planned);
    assert_int_equal(y->weights_size, x->weights_size);
    assert_int_equal(y->n_params, x->n_params);
    assert_string_equal(y->types, x->types);
    assert_int_equal(peridot_file_cache_size(planned, 512, PERIDOT_KV_F16),
                     peridot_file_cache_size(file, 512, PERIDOT_KV_F16));
    for (uint32_t n = 0; n < 3; n++) {
        assert_int_equal(peridot_file_split(&b, planned, n), peridot_file_split(&a, file, n));
        assert_memory_equal(&a, &b, sizeof a);
    }
    assert_int_equal(peridot_file_n_tensors(planned) + peridot_file_n_metadata(planned), 0);
    peridot_file_close(planned);
    peridot_file_close(file);
}

static void test_count(void **state)
{
    (void)state;
    peridot_file *file;
    try_count("tiny-qwen3-moe", "q4_k_m");
    try_count("tiny-gpt-oss", "mxfp4_moe");
    try_count("tiny-gemma4-moe", "q2_k");
    EXPECT_FAILURE(peridot_file_of_shape(&file, "tiny", "q4_k_m"), PERIDOT_ERROR_ARGUMENT, "there is no shape tiny");
    EXPECT_FAILURE(peridot_file_of_shape(&file, "tiny-gpt-oss", "q9"), PERIDOT_ERROR_ARGUMENT, "there is no type q9");
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_n_params),  cmocka_unit_test(test_tiny),       cmocka_unit_test(test_metadata),
        cmocka_unit_test(test_rope_freqs), cmocka_unit_test(test_ropes),     cmocka_unit_test(test_vocab),
        cmocka_unit_test(test_full_vocab), cmocka_unit_test(test_seed),      cmocka_unit_test(test_progress),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_full_disk),  cmocka_unit_test(test_narrow),   cmocka_unit_test(test_gemma4),
        cmocka_unit_test(test_gemma4_e), cmocka_unit_test(test_count),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
