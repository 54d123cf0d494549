/* What the tests of conversion share: a small Hugging Face folder to convert, and the file x.gguf beside it. */
#ifndef CONVERT_FIXTURE_H
#define CONVERT_FIXTURE_H

#include "format_fixture.h"

#include "format/format.h"
#include "peridot_tools.h"

static peridot_convert_stats stats;

static inline peridot_status convert(const char *source, const char *type)
{
    peridot_convert_params params = {.type = type};
    return peridot_convert(in_folder("x.gguf"), source, &params, &stats);
}

static inline struct pd_checkpoint *open_file(const char *path)
{
    struct pd_checkpoint *c;
    EXPECT_OK(pd_checkpoint_open(&c, path, true));
    return c;
}

static inline void expect_text(const struct pd_checkpoint *c, const char *key, const char *expected)
{
    const struct pd_meta *m = pd_checkpoint_find_meta(c, key);
    if (!m) fail_msg("no key %s", key);
    char *text = pd_meta_text(m);
    assert_string_equal(text, expected);
    free(text);
}

/* ---- a small folder ---- */

enum { WIDTH = 32 };

struct model {
    uint32_t vocab_size;
    const char *family, *extra;     /* extra: name of one more tensor */
    float odd;                      /* the last weight of the last matrix */
    uint64_t one;                   /* the index of a 1 in the embedding; 0: there is none */
};

static const char *const gemma_tensors[] = {
    "embed_tokens", "norm", "layers.0.input_layernorm", "layers.0.post_attention_layernorm",
    "layers.0.self_attn.q_proj",
    "layers.0.self_attn.k_proj", "layers.0.self_attn.v_proj", "layers.0.self_attn.o_proj", "layers.0.mlp.gate_proj",
    "layers.0.mlp.up_proj", "layers.0.mlp.down_proj",
};

static inline uint64_t add_header(char *json, size_t size, const char *name, uint32_t rows, uint64_t offset)
{
    char shape[40];
    size_t at = strlen(json);
    uint64_t end = offset + (uint64_t)rows * WIDTH * 4 + (rows ? 0 : WIDTH * 4);
    snprintf(shape, sizeof shape, rows ? "%u,%d" : "%.0u%d", (unsigned)rows, WIDTH);
    snprintf(json + at, size - at, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[%llu,%llu]}",
             at > 1 ? "," : "",
             name, shape, (unsigned long long)offset, (unsigned long long)end);
    return end;
}

/* Gemma 1 or Llama with one layer; all weights are 0, so that the file costs no disk. */
static inline void write_model(const struct model *m)
{
    char config[400], json[4000] = "{", name[128];
    uint64_t offset = 0;
    snprintf(config, sizeof config,
             "{\"model_type\":\"%s\",\"hidden_size\":32,\"intermediate_size\":32,\"num_hidden_layers\":1,"
             "\"num_attention_heads\":1,"
             "\"num_key_value_heads\":1,\"head_dim\":32,\"vocab_size\":%u,\"tie_word_embeddings\":true}",
             m->family, (unsigned)m->vocab_size);
    write_text("config.json", config);
    for (size_t i = 0; i < PD_COUNT(gemma_tensors); i++) {
        snprintf(name, sizeof name, "model.%s.weight", gemma_tensors[i]);
        offset = add_header(json, sizeof json, name, i == 0 ? m->vocab_size : i < 4 ? 0 : WIDTH, offset);
    }
    uint64_t odd = offset - 4;
    if (m->extra) offset = add_header(json, sizeof json, m->extra, 0, offset);
    strcat(json, "}");
    uint64_t size = strlen(json), begin = 8 + size;
    FILE *f = fopen(in_folder("model.safetensors"), "wb");
    assert_non_null(f);
    assert_true(fwrite(&size, 8, 1, f) == 1 && fwrite(json, size, 1, f) == 1);
    assert_int_equal(ftruncate(fileno(f), (off_t)(begin + offset)), 0);
    assert_int_equal(fseek(f, (long)(begin + odd), SEEK_SET), 0);
    assert_int_equal(fwrite(&m->odd, 4, 1, f), 1);
    assert_int_equal(fseek(f, (long)(begin + 4 * m->one), SEEK_SET), 0);
    assert_int_equal(fwrite(&(float){m->one ? 1 : 0}, 4, 1, f), 1);
    assert_int_equal(fclose(f), 0);
}

static inline void remove_model(void)
{
    static const char *const names[] = {"config.json", "model.safetensors", "tokenizer.model", "tokenizer.json",
                                        "tokenizer_config.json", "generation_config.json", "x.gguf"};
    for (size_t i = 0; i < PD_COUNT(names); i++) remove(in_folder(names[i]));
}

/* Whether a test passed or not, the next one finds an empty folder. */
static inline int clean(void **state)
{
    (void)state;
    remove_model();
    return 0;
}

/* rmdir fails, and with it the tests, when something was left in the folder. */
static inline int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

#endif
