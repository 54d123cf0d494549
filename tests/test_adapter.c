/* Files of LoRA adapters: what is read of them, and what is refused, by which sentence: keys, names and shapes of
 * tensors, truncated prefixes. */
#define _XOPEN_SOURCE 700   /* mkdtemp */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arch/arch.h"
#include "base/base.h"
#include "folder_fixture.h"
#include "format/format.h"
#include "golden_files.h"

static struct pd_checkpoint *checkpoint;
static struct pd_config config;     /* of tests/golden/llama */
static char *json, *tensors, *gguf; /* of the adapter `first`, as it is */
static size_t json_size, tensors_size, gguf_size;

static int open_all(void **state)
{
    if (make_folder(state) != 0) return -1;
    json = read_golden("lora/llama/first", "adapter_config.json", &json_size);
    tensors = read_golden("lora/llama/first", "adapter_model.safetensors", &tensors_size);
    gguf = read_golden("lora/llama", "first.gguf", &gguf_size);
    if (pd_checkpoint_open(&checkpoint, PERIDOT_GOLDEN "/llama", false) != PERIDOT_OK) return -1;
    return pd_config_read(&config, checkpoint) == PERIDOT_OK ? 0 : -1;
}

static int close_all(void **state)
{
    (void)state;
    static const char *const names[] = {"adapter_config.json", "adapter_model.safetensors", "a.gguf"};
    for (int i = 0; i < 3; i++) remove(in_folder(names[i]));
    pd_config_free(&config);
    pd_checkpoint_close(checkpoint);
    free(json);
    free(tensors);
    free(gguf);
    return remove(folder);
}

static void write_file(const char *name, const char *data, size_t size)
{
    FILE *f = fopen(in_folder(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

/* A copy in which all of the one text is the other, *size then. */
static char *replaced(const char *data, size_t *size, const char *from, const char *to)
{
    size_t n_from = strlen(from), n_to = strlen(to), n = 0, found = 0;
    char *out = malloc(*size * (n_to + 1) + 1);
    assert_non_null(out);
    for (size_t i = 0; i < *size;) {
        bool here = i + n_from <= *size && memcmp(data + i, from, n_from) == 0;
        memcpy(out + n, here ? to : data + i, here ? n_to : 1);
        n += here ? n_to : 1;
        i += here ? n_from : 1;
        found += here;
    }
    if (!found) fail_msg("there is no %s", from);
    *size = n;
    return out;
}

static peridot_status open_path(const char *path)
{
    struct pd_adapter a;
    peridot_status status = pd_adapter_open(&a, path, &config);
    if (status == PERIDOT_OK) pd_adapter_close(&a);
    return status;
}

static void expect_refusal(const char *path, const char *part)
{
    if (open_path(path) == PERIDOT_OK) fail_msg("%s: was not refused", part);
    if (!strstr(pd_error(), part)) fail_msg("\"%s\" is not in: %s", part, pd_error());
}

/* ---- right ---- */

static void check_part(const struct pd_adapter *a, enum pd_role role, uint32_t layer, uint32_t rank, float scale)
{
    const struct pd_adapter_part *part = pd_adapter_get(a, role, layer);
    assert_int_equal(part->rank, rank);
    if (rank && !(part->scale > scale * 0.999999f && part->scale < scale * 1.000001f))
        fail_msg("a scale of %g, not %g", (double)part->scale, (double)scale);
}

static void test_peft(void **state)
{
    (void)state;
    struct pd_adapter a;
    assert_int_equal(pd_adapter_open(&a, PERIDOT_GOLDEN "/lora/llama/first", &config), PERIDOT_OK);
    check_part(&a, PD_ROLE_Q, 0, 4, 8.0f / 4);
    check_part(&a, PD_ROLE_O, 0, 3, 5.0f / 3);       /* by both patterns */
    check_part(&a, PD_ROLE_DOWN, 0, 4, 8.0f / 4);
    check_part(&a, PD_ROLE_DOWN, 1, 6, 8.0f / 6);    /* by a pattern with the layer in it */
    pd_adapter_close(&a);
    assert_int_equal(pd_adapter_open(&a, PERIDOT_GOLDEN "/lora/llama/second", &config), PERIDOT_OK);
    check_part(&a, PD_ROLE_Q, 1, 2, 3 / 1.41421356f);
    check_part(&a, PD_ROLE_K, 1, 0, 0);
    pd_adapter_close(&a);
}

/* Rows of q and k are in another order there; both files have the same adapter. */
static void test_same(void **state)
{
    (void)state;
    static const enum pd_role roles[] = {PD_ROLE_Q, PD_ROLE_K, PD_ROLE_V, PD_ROLE_O, PD_ROLE_UP, PD_ROLE_DOWN};
    struct pd_adapter a, b;
    assert_int_equal(pd_adapter_open(&a, PERIDOT_GOLDEN "/lora/llama/first", &config), PERIDOT_OK);
    assert_int_equal(pd_adapter_open(&b, PERIDOT_GOLDEN "/lora/llama/first.gguf", &config), PERIDOT_OK);
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        const struct pd_adapter_part *p = pd_adapter_get(&a, roles[i], 1), *q = pd_adapter_get(&b, roles[i], 1);
        float x[8], y[8];
        assert_int_equal(p->rank, q->rank);
        for (uint32_t row = 0; row < p->b->shape[0]; row++) {
            pd_adapter_b_row(x, p, row);
            pd_adapter_b_row(y, q, row);
            for (uint32_t j = 0; j < p->rank; j++) assert_true(x[j] - y[j] < 1e-6f && y[j] - x[j] < 1e-6f);
        }
    }
    pd_adapter_close(&a);
    pd_adapter_close(&b);
}

/* ---- wrong ---- */

struct edit {
    const char *from, *to, *sentence;
};

/* Each edit of a file's bytes is refused where `path` is opened; the file is then as it was. */
static void refuse_edits(const struct edit *edits, size_t n, const char *file, const char *bytes, size_t n_bytes,
                         const char *path)
{
    for (size_t i = 0; i < n; i++) {
        size_t size = n_bytes;
        char *edited = replaced(bytes, &size, edits[i].from, edits[i].to);
        write_file(file, edited, size);
        expect_refusal(path, edits[i].sentence);
        free(edited);
    }
    write_file(file, bytes, n_bytes);
}

static void test_config(void **state)
{
    (void)state;
    static const struct edit edits[] = {
        {"\"LORA\"", "\"LOHA\"", "adapter_config.json: peft_type LOHA is not supported"},
        {"\"peft_type\": \"LORA\",", "", "peft_type is missing"},
        {"\"use_dora\": false", "\"use_dora\": true", "use_dora is not supported"},
        {"\"fan_in_fan_out\": false", "\"fan_in_fan_out\": true", "fan_in_fan_out is not supported"},
        {"\"lora_bias\": false", "\"lora_bias\": true", "lora_bias is not supported"},
        {"\"bias\": \"none\"", "\"bias\": \"lora_only\"", "bias lora_only is not supported"},
        {"\"modules_to_save\": null", "\"modules_to_save\": [\"lm_head\"]", "modules_to_save is not supported"},
        {"\"layer_replication\": null", "\"layer_replication\": [[0, 1]]", "layer_replication is not supported"},
        {"\"init_lora_weights\": true", "\"init_lora_weights\": \"pissa\"", "init_lora_weights pissa is not supported"},
        {"\"init_lora_weights\": true", "\"init_lora_weights\": \"a\\u001bb\"", "init_lora_weights string is not"},
        {"\"use_rslora\": false", "\"use_rslora\": 1", "use_rslora is neither true nor false"},
        {"\"target_parameters\": null", "\"target_parameters\": [\"mlp.experts.down_proj\"]",
         "target_parameters is not supported"},
        {"\"use_rslora\": false", "\"new_kind\": {\"a\": 1}", "new_kind is not supported"},
        {"\"use_rslora\": false", "\"new_kind\": {\"a\": null, \"b\": {\"c\": true}}", "new_kind is not supported"},
        {"\"use_rslora\": false", "\"new_kind\": [0]", "new_kind is not supported"},
        {"\"r\": 4", "\"r\": 0", "r is not a rank"},
        {"\"r\": 4", "\"r\": -1", "r is not a rank"},
        {"\"r\": 4", "\"r\": 4000000000", "r is not a rank"},
        {"\"r\": 4,", "", "r is not a rank"},
        {"\"r\": 4", "\"r\": 5", "but the model and its rank say [5, 32]"},
        {"\"lora_alpha\": 8", "\"lora_alpha\": \"8\"", "lora_alpha is not a number"},
        {"\"o_proj\": 3", "\"o_proj\": 3.5", "o_proj is not a rank"},
        {"\"o_proj\": 3", "\"o_.*\": 3", "rank_pattern: o_.* is not a module's name"},
        {"\"self_attn.o_proj\": 5", "\"self_attn.o_proj\": null", "self_attn.o_proj is not a number"},
    };
    write_file("adapter_model.safetensors", tensors, tensors_size);
    refuse_edits(edits, PD_COUNT(edits), "adapter_config.json", json, json_size, folder);
    assert_int_equal(open_path(folder), PERIDOT_OK);
}

/* Keys of newer versions that say nothing, or nothing of what is computed. */
static void test_idle(void **state)
{
    (void)state;
    static const char *const idle[][2] = {{"use_rslora\": false", "new_kind\": null"},
        {"use_rslora\": false", "new_kind\": false"}, {"use_rslora\": false", "new_kind\": \"\""},
        {"use_rslora\": false", "new_kind\": []"},
        {"use_rslora\": false", "new_kind\": {\"a\": {\"b\": null}, \"c\": [], \"d\": \"\"}"},
        {"use_rslora\": false", "use_rslora\": false, \"use_rslora\": false"},
        {"velora_config\": null", "velora_config\": {\"num_groups\": 64}"},
        {"init_lora_weights\": true", "init_lora_weights\": \"mica\""}};
    write_file("adapter_model.safetensors", tensors, tensors_size);
    for (size_t i = 0; i < PD_COUNT(idle); i++) {
        size_t size = json_size;
        char *edited = replaced(json, &size, idle[i][0], idle[i][1]);
        write_file("adapter_config.json", edited, size);
        if (open_path(folder) != PERIDOT_OK) fail_msg("%s: %s", idle[i][1], pd_error());
        free(edited);
    }
    write_file("adapter_config.json", json, json_size);
}

/* The adapter's tensors by other names, with the size of the header as it is then. */
static void write_renamed(const char *from, const char *to)
{
    size_t size = tensors_size;
    uint64_t header;
    char *edited = replaced(tensors, &size, from, to);
    memcpy(&header, edited, 8);
    header += size - tensors_size;
    memcpy(edited, &header, 8);
    write_file("adapter_model.safetensors", edited, size);
    free(edited);
}

/* Names as other programs write them mean the same. */
static void test_names(void **state)
{
    (void)state;
    static const char *const names[][2] = {{".weight\"", ".default.weight\""}, {".weight\"", ".my_adapter.weight\""},
        {"base_model.model.", ""}, {"base_model.model.model.", "base_model.model.model.language_model."}};
    write_file("adapter_config.json", json, json_size);
    for (size_t i = 0; i < PD_COUNT(names); i++) {
        struct pd_adapter a;
        write_renamed(names[i][0], names[i][1]);
        if (pd_adapter_open(&a, folder, &config) != PERIDOT_OK) fail_msg("%s: %s", names[i][1], pd_error());
        check_part(&a, PD_ROLE_O, 0, 3, 5.0f / 3);
        check_part(&a, PD_ROLE_DOWN, 1, 6, 8.0f / 6);
        pd_adapter_close(&a);
    }
    write_renamed("layers.1.mlp.up_proj.lora_B.weight", "layers.1.mlp.up_proj.lora_B.other.weight");
    expect_refusal(folder, "layers.1.mlp.up_proj.lora_B.weight is missing");
}

/* A converter that copies the model's frequencies. */
static void test_frequencies(void **state)
{
    (void)state;
    static const uint64_t shape[] = {8};
    static const float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    struct pd_checkpoint *c;
    struct pd_gguf_writer *w;
    assert_int_equal(pd_checkpoint_open(&c, PERIDOT_GOLDEN "/lora/llama/first.gguf", true), PERIDOT_OK);
    assert_int_equal(pd_gguf_writer_open(&w, in_folder("a.gguf")), PERIDOT_OK);
    for (size_t i = 0; i < pd_checkpoint_n_meta(c); i++) pd_gguf_writer_add_meta(w, pd_checkpoint_meta(c, i));
    pd_gguf_writer_add_tensor(w, "rope_freqs.weight", PD_F32, 1, shape);
    for (size_t i = 0; i < pd_checkpoint_n_tensors(c); i++) {
        const struct pd_tensor *t = pd_checkpoint_tensor(c, i);
        pd_gguf_writer_add_tensor(w, t->name, t->dtype, t->n_dims, t->shape);
    }
    assert_int_equal(pd_gguf_writer_begin(w), PERIDOT_OK);
    assert_int_equal(pd_gguf_writer_write(w, ones, sizeof ones), PERIDOT_OK);
    for (size_t i = 0; i < pd_checkpoint_n_tensors(c); i++) {
        const struct pd_tensor *t = pd_checkpoint_tensor(c, i);
        assert_int_equal(pd_gguf_writer_write(w, t->data, (size_t)t->size), PERIDOT_OK);
    }
    assert_int_equal(pd_gguf_writer_commit(w), PERIDOT_OK);
    pd_checkpoint_close(c);
    if (open_path(in_folder("a.gguf")) != PERIDOT_OK) fail_msg("%s", pd_error());
}

static void test_tensors(void **state)
{
    (void)state;
    /* of as many bytes, as offsets follow */
    static const struct edit edits[] = {
        {"model.layers.0.self_attn.q_proj.lora_A", "model.layers.9.self_attn.q_proj.lora_A",
         "q_proj.lora_A.weight is missing"},
        {"model.layers.0.self_attn.q_proj.lora_", "model.layers.9.self_attn.q_proj.lora_",
         "layers.9.self_attn.q_proj.lora_A.weight is not supported in an adapter of this llama model"},
        {"model.layers.0.self_attn.q_proj.lora_", "model.layers.0.self_attn.x_proj.lora_",
         "layers.0.self_attn.x_proj.lora_A.weight is not supported"},
        {"layers.0.self_attn.q_proj.lora_", "layers.0.mlp.experts.down.lora_",
         "layers.0.mlp.experts.down.lora_A.weight is not supported in an adapter of this llama model: adapters are to "
         "the matrices of attention, recurrences and gated units alone"},
        {"model.layers.", "model.lazers.", "no tensor adapts a layer"},
        {"q_proj.lora_A.weight", "q_proj.lora_magnitud", "q_proj.lora_A.weight is missing"},
        {"\"shape\":[32,4]", "\"shape\":[4,32]", "has shape [4, 32], but the model and its rank say [32, 4]"},
    };
    write_file("adapter_config.json", json, json_size);
    refuse_edits(edits, PD_COUNT(edits), "adapter_model.safetensors", tensors, tensors_size, folder);
}

static void test_gguf(void **state)
{
    (void)state;
    static const struct edit edits[] = {
        {"general.type", "general.tyqe", "metadata key general.type is nothing, not adapter"},
        {"adapter.type", "adapter.tyqe", "metadata key adapter.type is nothing, not lora"},
        {"adapter.lora.alpha", "adapter.lora.alphb", "metadata key adapter.lora.alphb is not known"},
        {"general.architecture", "general.architecturf", "metadata key general.architecture is nothing, not llama"},
        {"blk.0.attn_q.weight.lora_a", "blk.0.attn_q.weight.lora_c", "blk.0.attn_q.weight.lora_a is missing"},
        {"blk.0.attn_q.weight.lora_", "blk.7.attn_q.weight.lora_", "blk.7.attn_q.weight.lora_a is not supported"},
        {"blk.0.ffn_up.weight", "blk.0.ffn_oq.weight", "blk.0.ffn_oq.weight.lora_a is not supported"},
    };
    refuse_edits(edits, PD_COUNT(edits), "a.gguf", gguf, gguf_size, in_folder("a.gguf"));
    expect_refusal(PERIDOT_GOLDEN "/llama/model.gguf", "metadata key general.type is model, not adapter");
    expect_refusal(PERIDOT_GOLDEN "/lora/gemma3/first.gguf", "metadata key general.architecture is gemma3, not llama");
    expect_refusal(PERIDOT_GOLDEN "/llama", "no adapter_config.json in this folder");
}

static void test_truncated(void **state)
{
    (void)state;
    write_file("adapter_config.json", json, json_size);
    for (size_t size = 0; size < gguf_size; size += size < 4096 ? 7 : 101) {
        write_file("a.gguf", gguf, size);
        assert_int_not_equal(open_path(in_folder("a.gguf")), PERIDOT_OK);
    }
    for (size_t size = 0; size < tensors_size; size += size < 4096 ? 7 : 101) {
        write_file("adapter_model.safetensors", tensors, size);
        assert_int_not_equal(open_path(folder), PERIDOT_OK);
    }
    write_file("adapter_model.safetensors", tensors, tensors_size);
    for (size_t size = 0; size + 2 < json_size; size += 3) {
        write_file("adapter_config.json", json, size);
        assert_int_not_equal(open_path(folder), PERIDOT_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peft), cmocka_unit_test(test_same), cmocka_unit_test(test_config),
        cmocka_unit_test(test_idle), cmocka_unit_test(test_names), cmocka_unit_test(test_frequencies),
        cmocka_unit_test(test_tensors), cmocka_unit_test(test_gguf), cmocka_unit_test(test_truncated),
    };
    return cmocka_run_group_tests_name("adapter", tests, open_all, close_all);
}
