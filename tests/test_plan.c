/* A family whose layers differ in heads, widths, windows and output scales, some of which read an earlier layer's keys
 * and one of which (with those that read it) has keys for values: tiny-mixed is made, loaded, converted from both forms
 * of file, and evaluated as a prompt, in chunks and as decode steps. Logits are compared with a transformer written out
 * here in double precision, which knows the layers from its own list. */
#include "format_fixture.h"
#include "sequence_fixture.h"

#include "arch/arch.h"
#include "format/format.h"
#include "peridot_tools.h"
#include "relative_error.h"

#include <math.h>

enum { N_TOKENS = 100, D_MODEL = 256, VOCAB = 1024, N_LAYERS = 8, MAX_HEAD = 128 };

static const struct layer {
    int n_heads, n_kv_heads, head_dim, ffn_dim, window, reads;
    bool has_v;
} layers[N_LAYERS] = {
    {4, 2, 64, 512, 24, 0, true},  {4, 1, 128, 768, 0, 1, true},  {8, 4, 32, 256, 40, 2, true},
    {4, 2, 64, 256, 24, 3, true},  {4, 1, 128, 512, 0, 4, false}, {4, 2, 64, 512, 24, 3, false},
    {4, 1, 128, 512, 0, 4, false}, {8, 4, 32, 768, 40, 2, false},
};

/* ---- the reference ---- */

/* [N_TOKENS] rows each. */
struct state {
    const struct pd_checkpoint *file;
    double x[N_TOKENS * D_MODEL];
    double keys[N_LAYERS][N_TOKENS][256], values[N_LAYERS][N_TOKENS][256];
};

static float *read_tensor(const struct pd_checkpoint *c, const char *format, const char *suffix, int layer)
{
    char name[64];
    snprintf(name, sizeof name, "blk.%d.", layer);
    snprintf(name + (layer < 0 ? 0 : strlen(name)), 48, "%s.%s", format, suffix);
    const struct pd_tensor *t = pd_checkpoint_find(c, name);
    if (!t) fail_msg("no tensor %s", name);
    uint64_t n = t->shape[0] * t->shape[1];
    float *w = malloc(n * sizeof *w);
    assert_non_null(w);
    pd_dequantize(t->dtype, w, t->data, n);
    return w;
}

static float *read_weights(const struct pd_checkpoint *c, const char *format, int layer)
{
    return read_tensor(c, format, "weight", layer);
}

static void add_bias(double *y, const struct state *s, const char *name, int layer, int rows)
{
    float *bias = read_tensor(s->file, name, "bias", layer);
    for (int i = 0; i < N_TOKENS * rows; i++) y[i] += (double)bias[i % rows];
    free(bias);
}

/* y[n][rows] = w x[n] */
static void multiply(double *y, const struct state *s, const char *name, int layer, int rows, const double *x, int cols)
{
    float *w = read_weights(s->file, name, layer);
    for (int m = 0; m < N_TOKENS; m++)
        for (int r = 0; r < rows; r++) {
            double sum = 0;
            for (int c = 0; c < cols; c++) sum += (double)w[r * cols + c] * x[m * cols + c];
            y[m * rows + r] = sum;
        }
    free(w);
}

/* Of n_rows rows of n; name NULL: by no weight. */
static void norm(double *y, const struct state *s, const char *name, int layer, const double *x, int n_rows, int n)
{
    float *w = name ? read_weights(s->file, name, layer) : NULL;
    for (int m = 0; m < n_rows; m++, x += n, y += n) {
        double squares = 0;
        for (int i = 0; i < n; i++) squares += x[i] * x[i];
        double scale = 1 / sqrt(squares / n + 1e-6);
        for (int i = 0; i < n; i++) y[i] = x[i] * scale * (w ? (double)w[i] : 1);
    }
    free(w);
}

static void rotate(double *x, const struct layer *l, int n_heads)
{
    double base = l->window ? 1e4 : 1e6;
    for (int row = 0; row < N_TOKENS * n_heads; row++, x += l->head_dim)
        for (int i = 0, half = l->head_dim / 2; i < half; i++) {
            double angle = row / n_heads * pow(base, -2.0 * i / l->head_dim), a = x[i], b = x[i + half];
            x[i] = a * cos(angle) - b * sin(angle);
            x[i + half] = a * sin(angle) + b * cos(angle);
        }
}

static void attend_head(double *y, const struct state *s, const struct layer *l, int pos, int head, const double *q)
{
    int kv = head / (l->n_heads / l->n_kv_heads) * l->head_dim;
    int first = l->window && pos >= l->window ? pos - l->window + 1 : 0;
    double scores[N_TOKENS], top = -1e30, total = 0;
    for (int j = first; j <= pos; j++) {
        scores[j] = 0;
        for (int i = 0; i < l->head_dim; i++) scores[j] += q[i] * s->keys[l->reads][j][kv + i];
        scores[j] /= sqrt(l->head_dim);
        top = fmax(top, scores[j]);
    }
    for (int j = first; j <= pos; j++) total += scores[j] = exp(scores[j] - top);
    for (int i = 0; i < l->head_dim; i++) {
        y[i] = 0;
        for (int j = first; j <= pos; j++) y[i] += scores[j] / total * s->values[l->reads][j][kv + i];
    }
}

static void own_keys(struct state *s, int i, const double *x)
{
    const struct layer *l = &layers[i];
    int width = l->n_kv_heads * l->head_dim;
    static double k[N_TOKENS * 256], v[N_TOKENS * 256];
    multiply(k, s, "attn_k", i, width, x, D_MODEL);
    add_bias(k, s, "attn_k", i, width);
    memcpy(v, k, sizeof v);
    if (l->has_v) {
        multiply(v, s, "attn_v", i, width, x, D_MODEL);
        add_bias(v, s, "attn_v", i, width);
    }
    norm(k, s, "attn_k_norm", i, k, N_TOKENS * l->n_kv_heads, l->head_dim);
    norm(v, s, NULL, i, v, N_TOKENS * l->n_kv_heads, l->head_dim);
    rotate(k, l, l->n_kv_heads);
    for (int m = 0; m < N_TOKENS; m++) {
        memcpy(s->keys[i][m], k + m * width, (size_t)width * sizeof *k);
        memcpy(s->values[i][m], v + m * width, (size_t)width * sizeof *v);
    }
}

static void add_branch(struct state *s, const char *matrix, const char *post_norm, int i, const double *branch,
                       int width)
{
    static double y[N_TOKENS * D_MODEL];
    multiply(y, s, matrix, i, D_MODEL, branch, width);
    norm(y, s, post_norm, i, y, N_TOKENS, D_MODEL);
    for (int j = 0; j < N_TOKENS * D_MODEL; j++) s->x[j] += y[j];
}

static void run_layer(struct state *s, int i)
{
    const struct layer *l = &layers[i];
    int q_dim = l->n_heads * l->head_dim;
    static double x[N_TOKENS * D_MODEL], q[N_TOKENS * 512], att[N_TOKENS * 512], gate[N_TOKENS * 768],
        up[N_TOKENS * 768];
    norm(x, s, "attn_norm", i, s->x, N_TOKENS, D_MODEL);
    multiply(q, s, "attn_q", i, q_dim, x, D_MODEL);
    add_bias(q, s, "attn_q", i, q_dim);
    norm(q, s, "attn_q_norm", i, q, N_TOKENS * l->n_heads, l->head_dim);
    rotate(q, l, l->n_heads);
    if (l->reads == i) own_keys(s, i, x);
    for (int row = 0; row < N_TOKENS * l->n_heads; row++)
        attend_head(att + row * l->head_dim, s, l, row / l->n_heads, row % l->n_heads, q + row * l->head_dim);
    add_branch(s, "attn_output", "post_attention_norm", i, att, q_dim);
    norm(x, s, "ffn_norm", i, s->x, N_TOKENS, D_MODEL);
    multiply(gate, s, "ffn_gate", i, l->ffn_dim, x, D_MODEL);
    multiply(up, s, "ffn_up", i, l->ffn_dim, x, D_MODEL);
    for (int j = 0; j < N_TOKENS * l->ffn_dim; j++) {
        double g = gate[j];
        gate[j] = 0.5 * g * (1 + tanh(0.7978845608028654 * (g + 0.044715 * g * g * g))) * up[j];
    }
    add_branch(s, "ffn_down", "post_ffw_norm", i, gate, l->ffn_dim);
    float *scale = read_weights(s->file, "layer_output_scale", i);
    for (int j = 0; j < N_TOKENS * D_MODEL; j++) s->x[j] *= (double)*scale;
    free(scale);
}

static int32_t tokens[N_TOKENS];

static void expect_logits(float *want, const char *path)
{
    struct state *s = calloc(1, sizeof *s);
    struct pd_checkpoint *c;
    static double logits[N_TOKENS * VOCAB];
    assert_non_null(s);
    EXPECT_OK(pd_checkpoint_open(&c, path, true));
    s->file = c;
    float *embedding = read_weights(c, "token_embd", -1);
    for (int m = 0; m < N_TOKENS; m++)
        for (int i = 0; i < D_MODEL; i++) s->x[m * D_MODEL + i] = 16 * (double)embedding[tokens[m] * D_MODEL + i];
    free(embedding);
    for (int i = 0; i < N_LAYERS; i++) run_layer(s, i);
    norm(s->x, s, "output_norm", -1, s->x, N_TOKENS, D_MODEL);
    multiply(logits, s, "token_embd", -1, VOCAB, s->x, D_MODEL);
    for (int i = 0; i < N_TOKENS * VOCAB; i++) want[i] = (float)logits[i];
    pd_checkpoint_close(c);
    free(s);
}

/* ---- the library ---- */

struct comparison {
    const float *want;         /* [N_TOKENS][VOCAB] */
    uint32_t n_rows;
    double worst;
};

static bool compare(void *user, peridot_sequence *sequence, uint32_t pos, const float *row, size_t n)
{
    struct comparison *c = user;
    (void)sequence;
    assert_int_equal(pos, c->n_rows++);
    assert_int_equal(n, VOCAB);
    c->worst = fmax(c->worst, relative_error(row, c->want + (size_t)pos * VOCAB, n));
    return true;
}

struct way {
    const char *name;
    uint32_t chunk, n_first;   /* the tokens after the first come one by one */
};

static const struct way ways[] = {{"all at once", N_TOKENS, N_TOKENS}, {"chunks of 7", 7, N_TOKENS},
                                  {"a prompt, then steps", 64, 37}, {"steps", 16, 1}};

/* An f32 cache costs 4e-6 at most; an f16 cache's rounding grows to 2e-3 in eight layers of random weights. */
static void run_way(peridot_model *model, const struct way *way, peridot_kv_type kv_type, float *want)
{
    peridot_sequence *s;
    struct comparison c = {.want = want};
    peridot_eval_params params = {.logits = compare, .user = &c};
    EXPECT_OK(open_sequence(&s, model, &(peridot_session_params){.ctx = N_TOKENS, .chunk = way->chunk,
        .kv_type = kv_type}));
    EXPECT_OK(peridot_sequence_eval(s, tokens, way->n_first, &params));
    for (uint32_t i = way->n_first; i < N_TOKENS; i++) EXPECT_OK(peridot_sequence_eval(s, tokens + i, 1, &params));
    assert_int_equal(c.n_rows, N_TOKENS);
    if (!(c.worst <= (kv_type == PERIDOT_KV_F16 ? 5e-3 : 1e-4)))
        fail_msg("%s, %s cache: relative error %g", way->name, kv_type == PERIDOT_KV_F16 ? "f16" : "f32", c.worst);
    close_sequence(s);
}

static bool compare_any(void *user, peridot_sequence *sequence, uint32_t pos, const float *row, size_t n)
{
    struct comparison *c = user;
    (void)sequence;
    c->n_rows++;
    c->worst = fmax(c->worst, relative_error(row, c->want + (size_t)pos * VOCAB, n));
    return true;
}

/* Sequences of several lengths, in passes over prompts of all of them and then in steps of all. */
static void run_together(peridot_model *model, float *want)
{
    enum { N = 3, N_STEPS = 16 };
    static const size_t n_first[N] = {20, 37, N_TOKENS - N_STEPS};
    peridot_session *session;
    peridot_prompt prompts[N];
    struct comparison c = {.want = want};
    peridot_eval_params params = {.logits = compare_any, .user = &c};
    EXPECT_OK(peridot_session_create(&session, model, &(peridot_session_params){.ctx = N_TOKENS, .chunk = 64,
        .kv_type = PERIDOT_KV_F32, .n_sequences = N}));
    for (int i = 0; i < N; i++) {
        prompts[i] = (peridot_prompt){.tokens = tokens, .n = n_first[i]};
        EXPECT_OK(peridot_sequence_create(&prompts[i].sequence, session));
    }
    EXPECT_OK(peridot_eval(session, prompts, N, &params));
    for (int step = 0; step < N_STEPS; step++) {
        for (int i = 0; i < N; i++) prompts[i] = (peridot_prompt){prompts[i].sequence, tokens + n_first[i] + step, 1};
        EXPECT_OK(peridot_eval(session, prompts, N, &params));
    }
    assert_int_equal(c.n_rows, n_first[0] + n_first[1] + n_first[2] + N * N_STEPS);
    if (!(c.worst <= 1e-4)) fail_msg("%d sequences: relative error %g", (int)N, c.worst);
    peridot_session_free(session);
}

static void compare_file(const char *path, const char *const *kernels, size_t n_kernels)
{
    static float want[N_TOKENS * VOCAB];
    peridot_model *model;
    expect_logits(want, path);
    EXPECT_OK(peridot_model_open(&model, path, &(peridot_model_params){.kernels = kernels, .n_kernels = n_kernels}));
    for (size_t i = 0; i < PD_COUNT(ways); i++) {
        run_way(model, &ways[i], PERIDOT_KV_F16, want);
        run_way(model, &ways[i], PERIDOT_KV_F32, want);
    }
    run_together(model, want);
    peridot_model_close(model);
}

/* ---- made ---- */

static void make(const char *name, const char *type)
{
    EXPECT_OK(peridot_make(in_folder(name), &(peridot_make_params){.shape = "tiny-mixed", .type = type, .seed = 3}));
}

static void test_config(void **state)
{
    (void)state;
    struct pd_checkpoint *c;
    struct pd_config config;
    make("x.gguf", "q4_0");
    EXPECT_OK(pd_checkpoint_open(&c, in_folder("x.gguf"), true));
    EXPECT_OK(pd_config_read(&config, c));
    assert_int_equal(config.n_layers, N_LAYERS);
    for (int i = 0; i < N_LAYERS; i++) {
        const struct pd_layer *got = &config.layers[i];
        const struct layer *want = &layers[i];
        assert_true((int)got->n_heads == want->n_heads && (int)got->n_kv_heads == want->n_kv_heads);
        assert_true((int)got->head_dim == want->head_dim && (int)got->ffn_dim == want->ffn_dim);
        assert_true((int)got->window == want->window && (int)got->kv_layer == want->reads && got->has_v == want->has_v);
    }
    pd_config_free(&config);
    pd_checkpoint_close(c);
    remove(in_folder("x.gguf"));
}

static void test_made(void **state)
{
    (void)state;
    make("x.gguf", "q4_k");
    compare_file(in_folder("x.gguf"), NULL, 0);
    remove(in_folder("x.gguf"));
}

/* Every variant of attention that the device has. */
static void test_attention(void **state)
{
    (void)state;
    static const char *const variants[] = {"attention=columns", "attention=rows", "attention=tile"};
    make("x.gguf", "f32");
    for (size_t i = 0; i < PD_COUNT(variants); i++) {
        peridot_model *model;
        peridot_model_params params = {.kernels = &variants[i], .n_kernels = 1};
        if (peridot_model_open(&model, in_folder("x.gguf"), &params) != PERIDOT_OK) continue;
        peridot_model_close(model);
        compare_file(in_folder("x.gguf"), &variants[i], 1);
    }
    remove(in_folder("x.gguf"));
}

/* ---- converted ---- */

/* A Hugging Face directory with the tensors of an f32 GGUF file. */
static void write_folder(const struct pd_checkpoint *c, const struct pd_config *config)
{
    static char header[32 << 10];
    char name[PD_TENSOR_NAME_SIZE];
    FILE *data = tmpfile(), *f = fopen(in_folder("model.safetensors"), "wb");
    size_t at = 1;
    uint64_t offset = 0;
    assert_true(data && f);
    header[0] = '{';
    for (enum pd_role role = 0; role < PD_N_ROLES; role++)
        for (uint32_t i = 0; i < (role < PD_FIRST_LAYER_ROLE ? 1 : config->n_layers); i++) {
            struct pd_plan plan;
            pd_tensor_name_gguf(name, role, i, config->family);
            const struct pd_tensor *t = pd_checkpoint_find(c, name);
            if (!t || !pd_plan_get(&plan, config, role, i)) continue;
            pd_tensor_name_hf(name, role, i, config->family, "model.");
            char shape[32];
            snprintf(shape, sizeof shape, t->n_dims == 2 ? "%u,%u" : "%u", (unsigned)t->shape[0],
                     (unsigned)t->shape[1]);
            at += (size_t)snprintf(header + at, sizeof header - at,
                "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[%llu,%llu]}", at > 1 ? "," : "", name,
                shape,
                (unsigned long long)offset, (unsigned long long)(offset + t->size));
            assert_int_equal(fwrite(t->data, 1, t->size, data), t->size);
            offset += t->size;
        }
    at += (size_t)snprintf(header + at, sizeof header - at, "}");
    assert_true(at < sizeof header);
    uint64_t size = at;
    char *copy = malloc(offset);
    rewind(data);
    assert_true(copy && fread(copy, 1, offset, data) == offset);
    assert_true(fwrite(&size, 8, 1, f) == 1 && fwrite(header, at, 1, f) == 1 && fwrite(copy, offset, 1, f) == 1);
    free(copy);
    fclose(data);
    assert_int_equal(fclose(f), 0);
    write_text("config.json",
        "{\"model_type\":\"peridot_test\",\"hidden_size\":256,\"num_hidden_layers\":8,\"max_position_embeddings\":512,"
        "\"intermediate_size\":[512,768,256,256,512,512,512,768],\"num_attention_heads\":[4,4,8,4,4,4,4,8],"
        "\"num_key_value_heads\":[2,1,4,2,1,2,1,4],\"head_dim\":[64,128,32,64,128,64,128,32],"
        "\"sliding_window\":[24,24,40,24,24,24,24,40],\"num_kv_shared_layers\":3,\"rope_theta\":1000000,"
        "\"rope_local_base_freq\":10000,"
        "\"layer_types\":[\"sliding_attention\",\"full_attention\",\"sliding_attention\","
        "\"sliding_attention\",\"full_attention\",\"sliding_attention\",\"full_attention\",\"sliding_attention\"]}");
}

static void expect_same(const char *a, const char *b)
{
    struct pd_checkpoint *x, *y;
    EXPECT_OK(pd_checkpoint_open(&x, a, true));
    EXPECT_OK(pd_checkpoint_open(&y, b, true));
    assert_int_equal(pd_checkpoint_n_tensors(x), pd_checkpoint_n_tensors(y));
    for (size_t i = 0; i < pd_checkpoint_n_tensors(x); i++) {
        const struct pd_tensor *t = pd_checkpoint_tensor(x, i), *u = pd_checkpoint_find(y, t->name);
        if (!u || u->size != t->size || memcmp(t->data, u->data, t->size) != 0) fail_msg("tensor %s", t->name);
    }
    for (size_t i = 0; i < pd_checkpoint_n_meta(x); i++) {   /* name and tokenizer are not the same */
        const struct pd_meta *m = pd_checkpoint_meta(x, i), *other = pd_checkpoint_find_meta(y, m->key);
        if (strncmp(m->key, "peridot-test.", 13) != 0) continue;
        if (!other) fail_msg("no key %s", m->key);
        char *text = pd_meta_text(m), *other_text = pd_meta_text(other);
        assert_string_equal(text, other_text);
        free(text);
        free(other_text);
    }
    pd_checkpoint_close(x);
    pd_checkpoint_close(y);
}

static void test_converted(void **state)
{
    (void)state;
    struct pd_checkpoint *c;
    struct pd_config config;
    peridot_convert_params params = {.type = "f32"};
    make("x.gguf", "f32");
    EXPECT_OK(pd_checkpoint_open(&c, in_folder("x.gguf"), true));
    EXPECT_OK(pd_config_read(&config, c));
    write_folder(c, &config);
    pd_config_free(&config);
    pd_checkpoint_close(c);
    EXPECT_OK(peridot_convert(in_folder("y.gguf"), folder, &params, NULL));
    expect_same(in_folder("x.gguf"), in_folder("y.gguf"));
    params.type = "q8_0";
    EXPECT_OK(peridot_convert(in_folder("z.gguf"), in_folder("y.gguf"), &params, NULL));
    compare_file(in_folder("z.gguf"), NULL, 0);
    EXPECT_OK(peridot_convert(in_folder("x.gguf"), folder, &params, NULL));
    expect_same(in_folder("x.gguf"), in_folder("z.gguf"));
}

static int remove_folder(void **state)
{
    (void)state;
    static const char *const names[] = {"x.gguf", "y.gguf", "z.gguf", "config.json", "model.safetensors"};
    for (size_t i = 0; i < PD_COUNT(names); i++) remove(in_folder(names[i]));
    return rmdir(folder);
}

int main(void)
{
    for (int i = 0; i < N_TOKENS; i++) tokens[i] = (i * 37 + 11) % VOCAB;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_config), cmocka_unit_test(test_made),
        cmocka_unit_test(test_attention), cmocka_unit_test(test_converted)};
    return cmocka_run_group_tests_name("plan", tests, make_folder, remove_folder);
}
