/* Weights that are no numbers: text stops with a sentence that names the tensor and the weight. */
#include "format_fixture.h"
#include "sequence_fixture.h"

#include "format/checkpoint.h"

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

static int remove_made_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nan), cmocka_unit_test(test_infinity)};
    return cmocka_run_group_tests_name("nonfinite", tests, make_folder, remove_made_folder);
}
