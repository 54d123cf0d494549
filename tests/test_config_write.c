/* The GGUF metadata that are written of each model, and the configs that GGUF has no keys for. */
#include "config_fixture.h"

#include "arch/arch.h"
#include "format/format.h"

static peridot_status write_config(const char *json)
{
    struct pd_config c = json_config(json);
    struct pd_gguf_writer *w;
    EXPECT_OK(pd_gguf_writer_open(&w, in_folder("m.gguf")));
    peridot_status status = pd_gguf_add_config(w, &c, 16);
    pd_gguf_writer_abort(w);
    pd_config_free(&c);
    return status;
}

static void test_write_muse_glimmer(void **state)
{
    (void)state;
#define MUSE "{\"model_type\": \"muse_glimmer_text\", \"num_hidden_layers\": 2"
    EXPECT_OK(write_config(MUSE "}"));
    EXPECT_OK(write_config(MUSE ", \"qk_scale_factor\": 2, \"layer_rope_theta\": [10000, 0]}"));
    EXPECT_FAILURE(write_config(MUSE ", \"post_norm_eps\": 1e-6}"), PERIDOT_ERROR_UNSUPPORTED, "an eps of 1e-06",
                   "no key");
    EXPECT_FAILURE(write_config(MUSE ", \"layer_rope_theta\": [0, 10000]}"), PERIDOT_ERROR_UNSUPPORTED,
                   "layer 0 is not rotated", "no key");
}

/* GGUF has no key for a rule of layers with a window, which transformers knows of any layer. */
static void test_write_ropes(void **state)
{
    (void)state;
#define ROPES(full, sliding) "{\"model_type\": \"gemma3_text\", \"num_hidden_layers\": 6, \"rope_parameters\": {" \
        "\"full_attention\": {\"rope_theta\": 1e6, " full "}, " \
        "\"sliding_attention\": {\"rope_theta\": 1e4, " sliding "}}}"
#define YARN "\"rope_type\": \"yarn\", \"factor\": 4"
#define PLAIN "\"rope_type\": \"default\""
    EXPECT_OK(write_config(ROPES(YARN, PLAIN)));
    EXPECT_FAILURE(write_config(ROPES(YARN, YARN)), PERIDOT_ERROR_UNSUPPORTED, "local layers rotate", "no key");
    EXPECT_FAILURE(write_config(ROPES(YARN ", \"attention_factor\": 1.5", PLAIN)), PERIDOT_ERROR_UNSUPPORTED,
                   "local layers rotate", "no key");
    EXPECT_OK(write_config("{\"model_type\": \"gemma2\", \"rope_scaling\": {" YARN "}}"));
    EXPECT_OK(write_config("{\"model_type\": \"smollm3\"}"));
    EXPECT_FAILURE(write_config("{\"model_type\": \"smollm3\", \"no_rope_layer_interval\": 3}"),
                   PERIDOT_ERROR_UNSUPPORTED, "layer 2 is not rotated", "no key");
}

/* Writes a config's keys, which must be possible, and reads them back. */
static struct pd_config rewritten(const char *json, const char *key, bool has_key)
{
    struct pd_config c = json_config(json);
    struct pd_gguf_writer *w;
    struct pd_checkpoint *checkpoint;
    EXPECT_OK(pd_gguf_writer_open(&w, in_folder("m.gguf")));
    EXPECT_OK(pd_gguf_add_config(w, &c, 16));
    EXPECT_OK(pd_gguf_writer_begin(w));
    EXPECT_OK(pd_gguf_writer_commit(w));
    pd_config_free(&c);
    EXPECT_OK(pd_checkpoint_open(&checkpoint, in_folder("m.gguf"), true));
    EXPECT_OK(pd_config_read(&c, checkpoint));
    if (!pd_checkpoint_find_meta(checkpoint, key) == has_key) fail_msg("%s: key %s", json, key);
    pd_checkpoint_close(checkpoint);
    return c;
}

/* Keys that few files have: Granite without rotation, a window of 0, which older readers of Phi-3 miss, and how many
 * layers draft, without which llama.cpp reads none. */
static void test_write_rare_keys(void **state)
{
    (void)state;
#define GRANITE4 "{\"model_type\": \"granitemoehybrid\", \"num_hidden_layers\": 2, \"num_local_experts\": 0, " \
        "\"layer_types\": [\"attention\", \"attention\"], \"position_embedding_type\": "
    struct pd_config c = rewritten(GRANITE4 "\"nope\"}", "granite.rope.scaling.finetuned", true);
    assert_true(c.layers[0].no_rope && c.layers[1].no_rope);
    pd_config_free(&c);
    c = rewritten(GRANITE4 "\"rope\"}", "granite.rope.scaling.finetuned", false);
    assert_true(!c.layers[0].no_rope && !c.layers[1].no_rope);
    pd_config_free(&c);
    c = rewritten("{\"model_type\": \"phi3\", \"sliding_window\": null}", "phi3.attention.sliding_window", true);
    assert_int_equal(c.layers[0].window, 0);
    pd_config_free(&c);
    c = rewritten("{\"model_type\": \"gemma4_assistant\", \"backbone_hidden_size\": 64, \"text_config\": {"
                  "\"model_type\": \"gemma4_text\", \"num_hidden_layers\": 4}}",
                  "gemma4-assistant.nextn_predict_layers", true);
    assert_int_equal(c.target_dim, 64);
    pd_config_free(&c);
}

/* GGUF has a size of heads for layers with a window and one for the others, and not for each layer. */
static void test_write_gemma4(void **state)
{
    (void)state;
    EXPECT_OK(write_config("{\"model_type\": \"gemma4_text\", \"num_hidden_layers\": 6}"));
    EXPECT_FAILURE(write_config("{\"model_type\": \"gemma4_text\", \"num_hidden_layers\": 6, \"per_layer_config\": "
                                "{\"1\": {\"head_dim\": 64}, \"5\": {\"head_dim\": 512}}}"),
                   PERIDOT_ERROR_UNSUPPORTED, "with a window have heads of 256 and of 64", "no key");
    EXPECT_FAILURE(write_config("{\"model_type\": \"gemma4_text\", \"num_hidden_layers\": 12, \"per_layer_config\": "
                                "{\"5\": {\"head_dim\": 512}}}"),
                   PERIDOT_ERROR_UNSUPPORTED, "without a window have heads of 512 and of 256", "no key");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write_gemma4), cmocka_unit_test(test_write_muse_glimmer),
        cmocka_unit_test(test_write_ropes), cmocka_unit_test(test_write_rare_keys),
    };
    return cmocka_run_group_tests_name("config to GGUF", tests, make_folder, remove_folder);
}
