/* Weights that are not finite: text stops with a sentence that names the tensor and the weight, and no result of any
 * kind hides a NaN, whichever tensor has it: norms, clamps, softmax and top-k let it through. */
#include "format_fixture.h"
#include "sequence_fixture.h"

#include "api/api.h"
#include "format/format.h"

#include <math.h>

#define MODEL PERIDOT_GOLDEN "/gemma3/model.gguf"   /* plain fp32 */

/* A copy of the model whose weight `index` of the tensor is `value`. */
static void write_spoilt(const char *path, const char *name, uint64_t index, float value)
{
    struct pd_checkpoint *c;
    struct pd_map map;
    struct pd_writer w;
    EXPECT_OK(pd_checkpoint_open(&c, MODEL, true));
    EXPECT_OK(pd_map_open(&map, MODEL));
    const struct pd_tensor *t = pd_checkpoint_find(c, name);
    assert_non_null(t);
    assert_int_equal(t->dtype, PD_F32);
    /* The checkpoint has a mapping of its own: the place is found by what is there. */
    uint64_t at = 0;
    while (at + t->size <= map.size && memcmp(map.data + at, t->data, (size_t)t->size) != 0) at += 4;
    assert_true(at + t->size <= map.size);
    EXPECT_OK(pd_writer_open(&w, path));
    EXPECT_OK(pd_writer_write(&w, map.data, (size_t)(at + 4 * index)));
    EXPECT_OK(pd_writer_write(&w, &value, sizeof value));
    EXPECT_OK(pd_writer_write(&w, map.data + at + 4 * index + 4, (size_t)(map.size - at - 4 * index - 4)));
    EXPECT_OK(pd_writer_commit(&w));
    pd_map_close(&map);
    pd_checkpoint_close(c);
}

static void expect_named(const char *name, uint64_t index, float value)
{
    char path[512], number[64];
    peridot_model *model = NULL;
    peridot_sequence *s = NULL;
    const int32_t tokens[] = {2, 5, 9};
    int32_t token;
    snprintf(path, sizeof path, "%s/spoilt.gguf", folder);
    snprintf(number, sizeof number, "weight %llu ", (unsigned long long)index);
    write_spoilt(path, name, index, value);
    EXPECT_OK(peridot_model_open(&model, path, NULL));
    EXPECT_OK(open_sequence(&s, model, &(peridot_session_params){.ctx = 16}));
    EXPECT_OK(peridot_sequence_eval(s, tokens, 3, NULL));
    assert_int_equal(peridot_sample(&token, s), PERIDOT_ERROR_FORMAT);
    assert_non_null(strstr(peridot_last_error(), name));
    assert_non_null(strstr(peridot_last_error(), number));
    close_sequence(s);
    peridot_model_close(model);
    assert_int_equal(remove(path), 0);
}

static void test_nan(void **state)
{
    (void)state;
    expect_named("blk.2.attn_output.weight", 17, NAN);
}

static void test_infinity(void **state)
{
    (void)state;
    expect_named("blk.0.ffn_norm.weight", 3, INFINITY);
}

/* One row of the output matrix, which is the embedding: one logit. */
static void test_one_logit(void **state)
{
    (void)state;
    expect_named("token_embd.weight", 200 * 64 + 7, NAN);
}

/* ---- every tensor ---- */

enum { N_TOKENS = 20 };
static int32_t tokens[N_TOKENS];

/* A NaN as f32, and two as f16 or bf16. */
static const uint32_t nans[] = {0x7fc07fc0, 0xffc0ffc0};

/* The devices of tests are CPUs, whose addresses are the host's; mappings of files are private, and become writable. */
static uint32_t poke(uint64_t address, uint32_t bits)
{
    uintptr_t at = (uintptr_t)address, page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uint32_t before;
    assert_int_equal(mprotect((void *)(at / page * page), page, PROT_READ | PROT_WRITE), 0);
    memcpy(&before, (void *)at, sizeof before);
    memcpy((void *)at, &bits, sizeof bits);
    return before;
}

/* Of a row's first weight, or (Q8_0) first scale. */
static uint64_t row_address(const struct pd_matrix *m, uint32_t row)
{
    const struct pd_slice *s = m->slices;
    while (row >= s->first_row + s->n_rows) s++;
    uint32_t n = s->row_interleave > 1 ? s->row_interleave : 1, at = row - s->first_row;
    uint32_t offset = s->dtype == PD_Q8_0 ? m->n_cols : 0;
    return s->address + (uint64_t)(at / n * n) * s->row_size + (offset / 16 * n + at % n) * 16;
}

/* Of a weight of a tensor in some layer: 0 where the model has no such tensor. */
static uint64_t find_weight(const struct pd_model *m, enum pd_role role)
{
    const struct pd_weights *w = &m->weights;
    struct pd_plan plan, part;
    uint32_t layer = role < PD_FIRST_LAYER_ROLE ? 0 : role % m->config.n_layers, row = 0;
    if (!pd_plan_get(&plan, &m->config, role, layer) || role == PD_ROLE_ROPE_FREQS) return 0;
    if (role == PD_ROLE_SCORE_BIAS) return (uintptr_t)w->output_bias;
    if (role == PD_ROLE_EMBEDDING) return row_address(&w->embedding, (uint32_t)tokens[1]);
    if (role == PD_ROLE_OUTPUT || role == PD_ROLE_SCORE) return row_address(&w->output.w, 2);
    if (role == PD_ROLE_OUTPUT_NORM) return w->output_norm;
    if (role == PD_ROLE_PER_LAYER_EMBEDDING) return row_address(&w->per_layer_embedding, (uint32_t)tokens[1]);
    if (role == PD_ROLE_PER_LAYER_MODEL_PROJ) return row_address(&w->per_layer_model_proj.w, 2);
    if (role == PD_ROLE_PER_LAYER_MODEL_NORM) return w->per_layer_model_norm;
    if (plan.is_bias) return w->layers[layer].linears[plan.matrix].bias;
    if (plan.n_dims == 1) return w->layers[layer].norms[role];
    for (enum pd_role before = PD_FIRST_LAYER_ROLE; before < role; before++)
        if (pd_plan_get(&part, &m->config, before, layer) && part.n_dims == 2 && part.matrix == plan.matrix)
            row += part.n_rows;
    return row_address(&w->layers[layer].linears[plan.matrix].w, row);
}

static bool take_row(void *user, peridot_sequence *sequence, uint32_t pos, const float *row, size_t n)
{
    (void)user, (void)sequence, (void)pos;
    for (size_t i = 0; i < n; i++) assert_true(isfinite(row[i]));
    return true;
}

static const char *doing;   /* for messages */

static void expect_refused(peridot_status status, const char *result)
{
    if (status != PERIDOT_ERROR_FORMAT || !strstr(peridot_last_error(), "finite"))
        fail_msg("%s: %s: %s", doing, result, status == PERIDOT_OK ? "taken for finite" : peridot_last_error());
}

static void reset(peridot_sequence *q, size_t n, uint64_t address, uint32_t weight)
{
    poke(address, weight);
    reset_sequence(q);
    if (n) EXPECT_OK(peridot_sequence_eval(q, tokens, n, NULL));
}

static bool ignore_text(void *user, int32_t token, const char *text, size_t size)
{
    (void)user, (void)token, (void)text, (void)size;
    return true;
}

/* With a NaN for the weight from the first token on, and from a later one on; and then without. */
static void check_weight(peridot_sequence *q, const struct pd_model *m, enum pd_role role, uint32_t nan)
{
    const peridot_eval_params logits = {.logits = take_row}, hidden = {.hidden = take_row};
    bool has_head = m->config.head != PERIDOT_HEAD_NONE, text = m->config.head == PERIDOT_HEAD_LANGUAGE,
        only_output = role == PD_ROLE_OUTPUT || role == PD_ROLE_SCORE || role == PD_ROLE_SCORE_BIAS,
        only_input = role == PD_ROLE_PER_LAYER_EMBEDDING
            || (role == PD_ROLE_EMBEDDING && m->weights.output.w.slices != m->weights.embedding.slices);
    uint64_t address = find_weight(m, role);
    const float *row;
    int32_t token;
    if (!address) return;
    uint32_t weight = poke(address, nan);
    reset(q, N_TOKENS, address, nan);
    if (text) expect_refused(peridot_sample(&token, q), "a sample");
    if (has_head) expect_refused(peridot_logits(&row, q), "logits");
    reset(q, 0, address, nan);
    if (has_head) expect_refused(peridot_sequence_eval(q, tokens, N_TOKENS, &logits), "rows of logits");
    reset(q, 0, address, nan);
    peridot_status status = peridot_sequence_eval(q, tokens, N_TOKENS, &hidden);
    if (only_output) EXPECT_OK(status);
    else expect_refused(status, "hidden states");

    reset(q, N_TOKENS, address, weight);
    poke(address, nan);
    peridot_request_params params = {.n_max = 4, .text = ignore_text};
    if (text && !only_input) expect_refused(peridot_generate(q, &params, NULL), "text");
    reset(q, 3, address, weight);
    poke(address, nan);
    if (has_head) expect_refused(peridot_sequence_eval(q, tokens + 1, 1, &logits), "logits of a step");
    reset(q, 3, address, weight);
    poke(address, nan);
    status = peridot_sequence_eval(q, tokens + 1, 1, &hidden);
    if (only_output) EXPECT_OK(status);
    else expect_refused(status, "hidden states of a step");

    reset(q, 0, address, weight);
    EXPECT_OK(peridot_sequence_eval(q, tokens, N_TOKENS, has_head ? &logits : &hidden));
}

static void check_model(const char *name, const char *kernel, peridot_kv_type kv)
{
    char path[512], what[128];
    peridot_model *model;
    peridot_sequence *q;
    snprintf(path, sizeof path, PERIDOT_GOLDEN "/%s", name);
    EXPECT_OK(
        peridot_model_open(&model, path, &(peridot_model_params){.kernels = &kernel, .n_kernels = kernel != NULL}));
    const struct pd_model *m = &model->m;
    if (peridot_model_get_info(model)->device->type != PERIDOT_DEVICE_CPU) skip();
    EXPECT_OK(open_sequence(&q, model, &(peridot_session_params){.ctx = 64, .kv_type = kv}));
    doing = what;
    for (enum pd_role role = 0; role < PD_N_ROLES; role++) {
        snprintf(what, sizeof what, "%s, role %d, %s, kv type %d", name, (int)role, kernel ? kernel : "usual kernels",
                 (int)kv);
        check_weight(q, m, role, nans[role % PD_COUNT(nans)]);
    }
    close_sequence(q);
    peridot_model_close(model);
}

static void test_every_tensor(void **state)
{
    (void)state;
    static const char *const models[] = {"gemma1", "gemma2", "gemma3", "llama", "gemma4-small"},
        *const variants[] = {"attention=tile", "attention=columns"},
        *const of_blocks[] = {NULL, "matvec=dot", "matmul=dot"};
    for (size_t i = 0; i < PD_COUNT(models); i++) {
        check_model(models[i], NULL, PERIDOT_KV_F16);
        check_model(models[i], NULL, i % 2 ? PERIDOT_KV_F32 : PERIDOT_KV_Q8_0);
    }
    for (size_t i = 0; i < PD_COUNT(variants); i++) {   /* with softcaps and without */
        check_model("gemma2", variants[i], PERIDOT_KV_F16);
        check_model("llama", variants[i], PERIDOT_KV_Q8_0);
    }
    for (size_t i = 0; i < PD_COUNT(of_blocks); i++)
        check_model("gemma2-q8_0/model.gguf", of_blocks[i], PERIDOT_KV_F16);
}

static void test_heads(void **state)
{
    (void)state;
    check_model("gemma2-sequence", NULL, PERIDOT_KV_F16);
    check_model("gemma2-token", NULL, PERIDOT_KV_F16);
    check_model("llama-sequence", NULL, PERIDOT_KV_F16);
    check_model("llama-base", NULL, PERIDOT_KV_F16);
}

static int remove_made_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nan), cmocka_unit_test(test_infinity), cmocka_unit_test(test_one_logit),
        cmocka_unit_test(test_every_tensor), cmocka_unit_test(test_heads)};
    for (int i = 0; i < N_TOKENS; i++) tokens[i] = i == 0 ? 2 : (31 * i) % 250;
    return cmocka_run_group_tests_name("nonfinite", tests, make_folder, remove_made_folder);
}
