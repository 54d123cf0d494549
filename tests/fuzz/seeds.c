/* Writes what the harnesses begin with, a folder for each: fuzz_seeds FOLDER. From the golden files where they are
 * small, else made here. */
#include "../bpe_fixture.h"   /* sets what it needs of POSIX */

#include "../golden_files.h"
#include "sequence.h"

#include "bench/bench.h"
#include "engine/ranks/ranks.h"
#include "format/format.h"
#include "gpu/gpu.h"
#include "grammar/calls/calls.h"
#include "offline/offline.h"
#include "ops/ops.h"
#include "serve/job/job.h"

#include <glob.h>
#include <sys/stat.h>

static const char *target;

static const char *seed_path(const char *harness, const char *name)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s/%s", target, harness);
    FUZZ_CHECK(pd_make_directory(path) == PERIDOT_OK);
    snprintf(path, sizeof path, "%s/%s/%s", target, harness, name);
    return path;
}

static void seed(const char *harness, const char *name, const void *data, size_t size)
{
    write_file(seed_path(harness, name), data, size);
}

static void seed_text(const char *harness, const char *name, const char *text)
{
    seed(harness, name, text, strlen(text));
}

static void seed_file(const char *harness, const char *name, const char *path)
{
    struct pd_map map;
    FUZZ_CHECK(pd_map_open(&map, path) == PERIDOT_OK);
    seed(harness, name, map.data, (size_t)map.size);
    pd_map_close(&map);
}

/* Files of the golden models, each named after its folder. */
static void seed_golden(const char *harness, const char *pattern)
{
    glob_t found;
    char path[512], name[128];
    snprintf(path, sizeof path, "%s/%s", PERIDOT_GOLDEN, pattern);
    FUZZ_CHECK(glob(path, 0, NULL, &found) == 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        snprintf(name, sizeof name, "%s", found.gl_pathv[i] + strlen(PERIDOT_GOLDEN) + 1);
        for (char *slash; (slash = strchr(name, '/')) != NULL;) *slash = '-';
        seed_file(harness, name, found.gl_pathv[i]);
    }
    globfree(&found);
}

/* ---- models of one layer ---- */

static const struct { const char *hf, *gguf; uint32_t rows; } tensors[] = {
    {"embed_tokens", "token_embd", 6}, {"norm", "output_norm", 0}, {"layers.0.input_layernorm", "blk.0.attn_norm", 0},
    {"layers.0.post_attention_layernorm", "blk.0.ffn_norm", 0}, {"layers.0.self_attn.q_proj", "blk.0.attn_q", 4},
    {"layers.0.self_attn.k_proj", "blk.0.attn_k", 4}, {"layers.0.self_attn.v_proj", "blk.0.attn_v", 4},
    {"layers.0.self_attn.o_proj", "blk.0.attn_output", 4}, {"layers.0.mlp.gate_proj", "blk.0.ffn_gate", 4},
    {"layers.0.mlp.up_proj", "blk.0.ffn_up", 4}, {"layers.0.mlp.down_proj", "blk.0.ffn_down", 4},
};

enum { WIDTH = 4 };

static void make_safetensors(struct pd_buffer *out)
{
    static const float zeros[6 * WIDTH];
    char line[256];
    uint64_t offset = 0, size;
    struct pd_buffer json = {0};
    put_text(&json, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (size_t i = 0; i < PD_COUNT(tensors); i++) {
        char rows[16] = "";
        if (tensors[i].rows) snprintf(rows, sizeof rows, "%u,", tensors[i].rows);
        uint64_t end = offset + pd_max(tensors[i].rows, 1) * WIDTH * sizeof(float);
        snprintf(line, sizeof line, ",\"model.%s.weight\":{\"dtype\":\"F32\",\"shape\":[%s%d],"
                                    "\"data_offsets\":[%llu,%llu]}",
                 tensors[i].hf, rows, WIDTH, (unsigned long long)offset, (unsigned long long)end);
        put_text(&json, line);
        offset = end;
    }
    put_text(&json, "}");
    size = json.size;
    pd_buffer_add(out, &size, sizeof size);
    pd_buffer_add(out, json.data, json.size);
    for (size_t i = 0; i < PD_COUNT(tensors); i++)
        pd_buffer_add(out, zeros, pd_max(tensors[i].rows, 1) * WIDTH * sizeof(float));
    free(json.data);
}

static const char config[] = "config.json\n{\"model_type\":\"gemma\",\"hidden_size\":4,\"intermediate_size\":4,"
                             "\"num_hidden_layers\":1,\"num_attention_heads\":1,\"num_key_value_heads\":1,"
                             "\"head_dim\":4,\"vocab_size\":6}\n===\n";

static void seed_folder(void)
{
    struct pd_buffer folder_seed = {0}, model = {0};
    make_safetensors(&model);
    seed("fuzz_safetensors", "layer", model.data, model.size);
    put_text(&folder_seed, config);
    put_text(&folder_seed, "model.safetensors\n");
    pd_buffer_add(&folder_seed, model.data, model.size);
    put_text(&folder_seed, "\n===\ntokenizer_config.json\n{\"bos_token\":\"<bos>\",\"add_bos_token\":false,"
                           "\"chat_template\":\"<start_of_turn>\"}"
                    "\n===\ngeneration_config.json\n{\"eos_token_id\":[1,107]}\n===\ntokenizer.model\n");
    struct tiny t;
    struct pd_buffer pieces;
    tiny_make(&t);
    tiny_model(&pieces, &t);
    seed("fuzz_tokenizer_model", "tiny", pieces.data, pieces.size);
    pd_buffer_add(&folder_seed, pieces.data, pieces.size);
    seed("fuzz_checkpoint", "folder", folder_seed.data, folder_seed.size);
    free(pieces.data);
    free(model.data);
    free(folder_seed.data);
}

static void add_matrices(struct pd_gguf_writer *w, enum pd_dtype dtype, uint64_t width)
{
    for (size_t i = 0; i < PD_COUNT(tensors); i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.weight", tensors[i].gguf);
        uint64_t shape[2] = {tensors[i].rows, width};
        if (tensors[i].rows) pd_gguf_writer_add_tensor(w, name, dtype, 2, shape);
        else pd_gguf_writer_add_tensor(w, name, PD_F32, 1, shape + 1);
    }
}

/* A GGUF file of Llama with one value of each type beside what it needs. */
static void seed_gguf(const char *name, enum pd_dtype dtype, uint32_t width)
{
    static const uint8_t zeros[4096];
    static const int64_t integers[] = {1, -1};
    static const struct pd_string strings[] = {{"a", 1}, {"", 0}, {"\x1b[0m", 4}};
    const char *path = seed_path("fuzz_gguf", name);
    struct pd_gguf_writer *w;
    assert_int_equal(pd_gguf_writer_open(&w, path), PERIDOT_OK);
    pd_gguf_writer_add_string(w, "general.architecture", "llama");
    pd_gguf_writer_add_u32(w, "llama.block_count", 1);
    pd_gguf_writer_add_u32(w, "llama.context_length", 64);
    pd_gguf_writer_add_u32(w, "llama.embedding_length", width);
    pd_gguf_writer_add_u32(w, "llama.feed_forward_length", 4);
    pd_gguf_writer_add_u32(w, "llama.attention.head_count", 1);
    pd_gguf_writer_add_f32(w, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    pd_gguf_writer_add_array(w, "x.integers", PD_META_INT64, 2, integers);
    pd_gguf_writer_add_strings(w, "x.strings", PD_COUNT(strings), strings);
    add_matrices(w, dtype, width);
    assert_int_equal(pd_gguf_writer_begin(w), PERIDOT_OK);
    for (size_t i = 0; i < PD_COUNT(tensors); i++) {
        uint64_t rows = pd_max(tensors[i].rows, 1);
        enum pd_dtype type = tensors[i].rows ? dtype : PD_F32;
        uint64_t size = rows * width / pd_dtypes[type].block_len * pd_dtypes[type].block_size;
        assert_int_equal(pd_gguf_writer_write(w, zeros, (size_t)size), PERIDOT_OK);
    }
    assert_int_equal(pd_gguf_writer_commit(w), PERIDOT_OK);
    char copy[1024];
    snprintf(copy, sizeof copy, "%s", path);
    seed_file("fuzz_checkpoint", name, copy);
}

/* A GGUF file of Gemma 4: layers of two kinds, two of which read the keys of the others, and inputs of layers. */
static void seed_gemma4(void)
{
    static const struct pd_shape shape = {.name = "gemma4", PD_GEMMA4, 4, 32, 32, 2, 1, 16, 8, 64, 0, 464, 464, 464,
        false, .pattern = 2, .global_head_dim = 32, .n_shared_kv = 2, .double_wide = true, .per_layer_dim = 32};
    char path[1024];
    snprintf(path, sizeof path, "%s", seed_path("fuzz_checkpoint", "gemma4"));
    assert_int_equal(pd_make_shape(path, &shape, &(peridot_make_params){.type = "q4_0"}), PERIDOT_OK);
}

/* ---- vision towers ---- */

/* What is before the tensors' bytes. */
static void seed_mmproj(const char *name, const char *path)
{
    struct pd_checkpoint *c;
    struct pd_map map;
    assert_int_equal(pd_checkpoint_open(&c, path, true), PERIDOT_OK);
    FUZZ_CHECK(pd_map_open(&map, path) == PERIDOT_OK);
    uint64_t size = map.size;
    for (size_t i = 0; i < pd_checkpoint_n_tensors(c); i++) size -= pd_align(pd_checkpoint_tensor(c, i)->size, 32);
    seed("fuzz_tower", name, map.data, (size_t)size);
    pd_map_close(&map);
    pd_checkpoint_close(c);
}

/* The head of a safetensors file of the tower's tensors alone. */
static void put_tower_head(struct pd_buffer *out, const struct pd_checkpoint *c)
{
    char line[512];
    uint64_t offset = 0;
    put_text(out, "{");
    for (size_t i = 0; i < pd_checkpoint_n_tensors(c); i++) {
        const struct pd_tensor *t = pd_checkpoint_tensor(c, i);
        if (!pd_tensor_is_unread(t->name)) continue;
        snprintf(line, sizeof line, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", offset ? "," : "", t->name,
                 pd_dtypes[t->dtype].upper);
        put_text(out, line);
        for (uint32_t k = 0; k < t->n_dims; k++) {
            snprintf(line, sizeof line, "%s%llu", k ? "," : "", (unsigned long long)t->shape[k]);
            put_text(out, line);
        }
        snprintf(line, sizeof line, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)offset,
                 (unsigned long long)(offset + t->size));
        put_text(out, line);
        offset += t->size;
    }
    put_text(out, "}");
}

static void put_file(struct pd_buffer *out, const char *path)
{
    struct pd_map map;
    if (pd_map_open(&map, path) != PERIDOT_OK) return;
    pd_buffer_add(out, map.data, (size_t)map.size);
    pd_map_close(&map);
}

static void seed_towers(void)
{
    static const char *const names[] = {"gemma3-vision", "gemma4-vision", "gemma4-dense-vision",
        "gemma4-unified-vision"}, *const others[] = {"processor_config.json", "preprocessor_config.json"};
    for (size_t i = 0; i < PD_COUNT(names); i++) {
        struct pd_buffer text = {0};
        struct pd_checkpoint *c;
        char path[512], name[64];
        snprintf(path, sizeof path, "%s/%s/config.json", PERIDOT_GOLDEN, names[i]);
        put_file(&text, path);
        put_text(&text, "\n===\n");
        snprintf(path, sizeof path, "%s/%s", PERIDOT_GOLDEN, names[i]);
        assert_int_equal(pd_checkpoint_open(&c, path, true), PERIDOT_OK);
        put_tower_head(&text, c);
        pd_checkpoint_close(c);
        for (size_t k = 0; k < PD_COUNT(others); k++) {
            put_text(&text, "\n===\n");
            snprintf(path, sizeof path, "%s/%s/%s", PERIDOT_GOLDEN, names[i], others[k]);
            put_file(&text, path);
        }
        seed("fuzz_tower", names[i], text.data, text.size);
        free(text.data);
        snprintf(name, sizeof name, "%s-mmproj", names[i]);
        snprintf(path, sizeof path, "%s/%s/mmproj.gguf", PERIDOT_GOLDEN, names[i]);
        seed_mmproj(name, path);
    }
    seed_mmproj("gemma3-vision-mmproj-q8_0", PERIDOT_GOLDEN "/gemma3-vision/mmproj-q8_0.gguf");
}

/* Of tests/golden/llama, in both forms. */
static void seed_adapters(void)
{
    static const char *const names[] = {"adapter_config.json", "adapter_model.safetensors"};
    struct pd_buffer b = {0};
    seed_golden("fuzz_adapter", "lora/llama/*.gguf");
    for (size_t i = 0; i < PD_COUNT(names); i++) {
        size_t size;
        char *data = read_golden("lora/llama/first", names[i], &size);
        put_text(&b, i ? "\n===\n" : "");
        put_text(&b, names[i]);
        put_text(&b, "\n");
        pd_buffer_add(&b, data, size);
        free(data);
    }
    seed("fuzz_adapter", "peft", b.data, b.size);
    free(b.data);
}

/* ---- vocabularies, texts, conversations ---- */

static void seed_vocabularies(void)
{
    struct tiny t;
    struct pd_buffer b = json_make(&byte_parts);
    seed("fuzz_tokenizer_json", "bytes", b.data, b.size);
    free(b.data);
    b = json_make(&char_parts);
    seed("fuzz_tokenizer_json", "chars", b.data, b.size);
    free(b.data);
    tiny_make(&t);
    seed_file("fuzz_gguf", "tokens", tiny_gguf(&t));
    seed_file("fuzz_checkpoint", "tokens", in_folder("tiny.gguf"));
    seed_golden("fuzz_tokenizer_model", "*/tokenizer.model");
}

static void seed_texts(void)
{
    static const char text[] = "? the  hello\n\n<start_of_turn>user<b> caf\u00e9 \u4e2d 1234's <|eot_id|>\u00a0\t "
                               "\xf0\x9f\x98\x80\xff";
    char copy[sizeof text];
    memcpy(copy, text, sizeof text);
    for (int i = 0; i < 16; i++) {
        char name[8];
        snprintf(name, sizeof name, "%d", i);
        copy[0] = (char)(i % 4 | i / 4 << 4);
        seed("fuzz_text", name, copy, sizeof copy - 1);
    }
    seed_text("fuzz_text", "marks",
              "0e\u0323\u0301 \u1100\u1161\u11a8\uac00\u11a8 \u0344\u212b\u0958 a\u0f71\u0f72\u0f74");
}

static void seed_chats(void)
{
    for (size_t i = 0; peridot_template_name(i); i++) {
        char text[512];
        snprintf(text, sizeof text, "%s\n===\nsystem\nBe <b>.\n===\nuser\n the <end_of_turn><|eot_id|>\n===\n"
                                    "assistant\nhell\n===\nuser\n",
                 peridot_template_name(i));
        seed_text("fuzz_chat", peridot_template_name(i), text);
    }
    seed_text("fuzz_chat", "jinja", "{{ '<start_of_turn>' + role }}\n===\nuser\nhello");
}

/* Templates, each with one of the conversations. */
static void seed_templates(void)
{
    yyjson_doc *doc = yyjson_read_file(PERIDOT_GOLDEN "/template.json", 0, NULL, NULL);
    yyjson_val *root = yyjson_doc_get_root(doc), *conversations = yyjson_obj_get(root, "conversations"), *template;
    size_t i, n;
    FUZZ_CHECK(yyjson_arr_size(conversations) > 0);
    yyjson_arr_foreach(yyjson_obj_get(root, "templates"), i, n, template) {
        struct pd_buffer seed_of = {0};
        char name[24];
        char *json = yyjson_val_write(yyjson_arr_get(conversations, i % yyjson_arr_size(conversations)), 0, NULL);
        FUZZ_CHECK(json);
        put_text(&seed_of, yyjson_get_str(yyjson_obj_get(template, "template")));
        put_text(&seed_of, "\n===\n");
        put_text(&seed_of, json);
        snprintf(name, sizeof name, "%zu", i);
        seed("fuzz_template", name, seed_of.data, seed_of.size);
        free(seed_of.data);
        free(json);
    }
    yyjson_doc_free(doc);
}

#define TOOLS "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\"}}}]"
#define ANSWER "\n===\nh\u00e9\n===\ntab\n===\nnf\n===\na{\"a\":\n===\na\"\u00e9\"}\n===\ne\n===\nng\n===\na{"

/* With tools and pictures, as streams and in one piece; `model`: see fuzz_request.c. */
static void seed_answers(void)
{
    static const struct {
        int model;
        enum serve_api api;
        const char *body;
    } requests[] = {
        {1, SERVE_CHAT,
         "{\"messages\":[{\"role\":\"developer\",\"content\":\"s\"},{\"role\":\"user\",\"content\":\"a\"},"
         "{\"role\":\"assistant\",\"content\":\"\",\"reasoning_content\":\"t\",\"tool_calls\":["
         "{\"id\":\"call_1\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}},"
         "{\"id\":\"call_2\",\"type\":\"function\",\"function\":{\"name\":\"g\",\"arguments\":\"{}\"}}]},"
         "{\"role\":\"tool\",\"tool_call_id\":\"call_2\",\"content\":\"r\"},"
         "{\"role\":\"tool\",\"tool_call_id\":\"call_1\",\"content\":\"r\"}],\"stream\":true," TOOLS "}" ANSWER},
        {2, SERVE_CHAT,
         "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"n\":2,\"logprobs\":true,\"top_logprobs\":2,"
         TOOLS "}" ANSWER},
        {2, SERVE_CHAT,
         "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":"
         "\"data:image/png;base64,QUJD\"},{\"type\":\"image_url\",\"image_url\":"
         "{\"url\":\"https://127.0.0.1/a\"}}]}]}"},
        {2, SERVE_RESPONSES,
         "{\"input\":[{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"a\"},"
         "{\"type\":\"input_image\",\"image_url\":\"data:,x\"}]}]}"},
        {2, SERVE_RESPONSES,
         "{\"input\":[{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"a\"}]},"
         "{\"type\":\"reasoning\",\"summary\":[]},{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"f\","
         "\"arguments\":\"{}\"},{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":\"r\"}],"
         "\"stream\":true,\"tools\":[{\"type\":\"function\",\"name\":\"f\",\"parameters\":{\"type\":\"object\"}}]}"
         ANSWER},
        {2, SERVE_MESSAGES,
         "{\"max_tokens\":90,\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"source\":{\"type\":"
         "\"base64\",\"media_type\":\"image/png\",\"data\":\"QUJD\"}},{\"type\":\"image\",\"source\":{\"type\":\"url\","
         "\"url\":\"https://127.0.0.1:7/a\"}}]}]}"},
        {2, SERVE_MESSAGES,
         "{\"max_tokens\":90,\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"stream\":true,\"tools\":["
         "{\"name\":\"f\",\"input_schema\":{\"type\":\"object\"}}]}" ANSWER},
        {2, SERVE_OLLAMA_CHAT,
         "{\"messages\":[{\"role\":\"user\",\"content\":\"a\",\"images\":[\"QUJD\"]}]}"},
        {2, SERVE_OLLAMA_CHAT,
         "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]," TOOLS "}" ANSWER},
        {2, SERVE_GENERATE,
         "{\"prompt\":\"a\"}" ANSWER},
        {2, SERVE_RERANK,
         "{\"query\":\"a\",\"documents\":[\"b\",{\"text\":\"c\"}],\"top_n\":1}"},
    };
    for (size_t i = 0; i < PD_COUNT(requests); i++) {
        char name[16], text[2048];
        char first = (char)('0' + requests[i].model * SERVE_LIST_TOOLS + (int)requests[i].api);
        snprintf(name, sizeof name, "answer-%zu", i);
        snprintf(text, sizeof text, "%c%s", first, requests[i].body);
        seed_text("fuzz_request", name, text);
    }
}

/* 80 tokens at most */
#define LONG "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static void seed_requests(void)
{
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\",\"minimum\":-3,\"maximum\":12},"
        "\"b\":{\"type\":\"string\",\"pattern\":\"^[a-c]{2,3}$\"},\"c\":{\"enum\":[1,null,\"x\"]},"
        "\"d\":{\"$ref\":\"#/$defs/e\"}},"
        "\"required\":[\"a\"],\"additionalProperties\":false,\"$defs\":{\"e\":{\"type\":\"array\","
        "\"items\":{\"anyOf\":["
        "{\"type\":\"number\"},{\"type\":\"string\",\"format\":\"date\"}]},\"maxItems\":3}}}";
    static const char *const schemas[] = {
        "{\"type\":\"object\",\"patternProperties\":{\"^x-\":{\"type\":\"integer\",\"multipleOf\":7},\"y$\":{}},"
        "\"additionalProperties\":{\"type\":\"number\",\"multipleOf\":0.25,\"maximum\":12.5},\"minProperties\":1,"
        "\"maxProperties\":3,\"required\":[\"x-a\"]}",
        "{\"type\":\"object\",\"propertyNames\":{\"anyOf\":[{\"enum\":[\"a\",\"b\"]},{\"minLength\":3}]},"
        "\"dependentRequired\":{\"a\":[\"b\",\"cde\"]},\"minProperties\":2}",
        "{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"enum\":[\"a\",1,null,true,[2]]},\"minItems\":2,"
         "\"maxItems\":4}",
        "{\"anyOf\":[{\"type\":\"array\",\"items\":{\"contains\":1}},{\"type\":\"string\",\"pattern\":\"(?<=a)b\"},"
        "{\"type\":\"array\",\"items\":[{\"type\":\"null\"},{\"not\":{}}],\"additionalItems\":{\"type\":\"string\","
        "\"format\":\"uri\",\"nullable\":true}}]}",
        "{\"allOf\":[{\"properties\":{\"a\":{\"prefixItems\":[{}],\"unevaluatedItems\":false}}}],"
        "\"unevaluatedProperties\":{\"type\":\"string\",\"format\":\"regex\"}}",
    };
    static const char *const bodies[] = {
        "{\"model\":\"tiny\",\"messages\":[{\"role\":\"system\",\"content\":\"x\"},"
        "{\"role\":\"user\",\"content\":\"" LONG "\"},"
        "{\"role\":\"assistant\",\"content\":\"" LONG "\"},"
        "{\"role\":\"user\",\"content\":\"" LONG "\"}],"
        "\"full\":\"drop\",\"return_token_ids\":true,\"mirostat\":0,\"max_tokens\":5,"
        "\"temperature\":0.5,\"top_p\":0.9,"
        "\"stop\":[\"a\",\"b\"],\"n\":2,\"seed\":7,\"logprobs\":true,\"top_logprobs\":3,\"logit_bias\":{\"5\":-100},"
        "\"response_format\":"
        "{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"x\",\"schema\":{\"type\":\"boolean\"}}}}",
        ("{\"model\":\"tiny\",\"prompt\":[\"a\",\"b\"],\"max_tokens\":5,\"echo\":true,\"logprobs\":2,\"stream\":true,"
         "\"stream_options\":"
         "{\"include_usage\":true},\"presence_penalty\":1,\"frequency_penalty\":-1}"),
        "{\"model\":\"tiny\",\"input\":\"a\",\"instructions\":\"b\",\"max_output_tokens\":5,"
        "\"text\":{\"format\":{\"type\":\"json_object\"}}}",
        "{\"model\":\"tiny\",\"input\":[\"a\"],\"encoding_format\":\"base64\",\"dimensions\":64,\"pooling\":\"mean\"}",
        "{\"content\":\"a\",\"add_special\":true,\"with_pieces\":true}", "{\"tokens\":[1,2]}",
        "{\"system\":[{\"type\":\"text\",\"text\":\"x\"}],\"messages\":[{\"role\":\"user\",\"content\":\"a\"},"
        "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"b\"}]},{\"role\":\"assistant\",\"content\":"
        "[{\"type\":\"thinking\",\"thinking\":\"c\",\"signature\":\"d\"},{\"type\":\"tool_use\",\"id\":\"i\","
        "\"name\":\"n\",\"input\":{}}]},{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\","
        "\"tool_use_id\":\"i\",\"content\":\"r\"}]},{\"role\":\"user\",\"content\":\"e\"}],"
        "\"max_tokens\":5,\"stop_sequences\":[\"f\"],\"thinking\":{\"type\":\"adaptive\",\"display\":\"omitted\"},"
        "\"output_config\":{\"effort\":\"low\",\"format\":{\"type\":\"json_schema\",\"schema\":{\"enum\":[1]}}},"
        "\"tools\":[],\"tool_choice\":{\"type\":\"none\"},\"stream\":true,\"metadata\":{}}",
        "{\"system\":\"x\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"cache_control\":{},"
        "\"tools\":[{\"name\":\"f\",\"input_schema\":{\"type\":\"object\"}}],\"tool_choice\":{\"type\":\"any\"}}",
        "{\"model\":\"tiny:latest\",\"messages\":[{\"role\":\"user\",\"content\":\"" LONG "\"},"
        "{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{}}}]},"
        "{\"role\":\"tool\",\"tool_name\":\"f\",\"content\":\"r\"},"
        "{\"role\":\"user\",\"content\":\"" LONG "\"}],\"think\":false,\"truncate\":true,\"logprobs\":true,"
        "\"format\":{\"type\":\"boolean\"},\"keep_alive\":0,\"options\":{\"num_predict\":5,\"num_ctx\":64,"
        "\"stop\":[\"a\"],\"temperature\":0.5,\"seed\":-1,\"mirostat\":0}}",
        "{\"prompt\":\"a\",\"system\":\"b\",\"raw\":true,\"suffix\":\"c\",\"stream\":false,\"format\":\"json\","
        "\"images\":[],\"template\":\"\",\"context\":[]}",
        "{\"input\":[\"" LONG LONG LONG LONG "\",\"b\"],\"truncate\":true,\"dimensions\":8,\"options\":{}}",
        "{\"prompt\":\"a\"}", "{\"name\":\"tiny\",\"verbose\":true}",
        "{\"query\":\"a\",\"documents\":[\"b\"],\"top_n\":1}",
        "{\"prompt\":\"a<|eot_id|>\",\"n_predict\":5,\"n_indent\":2,\"t_max_predict_ms\":500,\"stop\":[\"b\"],"
        "\"response_fields\":[\"content\",\"timings/prompt_n\"],\"json_schema\":{\"enum\":[1]}}",
        "{\"input_prefix\":\"a\",\"input_suffix\":\"b\",\"prompt\":\"c\",\"input_extra\":[{\"filename\":\"d\","
        "\"text\":\"e\"}],\"n_predict\":0,\"samplers\":[\"top_k\"]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}",
    };
    seed_text("fuzz_schema", "all", schema);
    seed_text("fuzz_schema", "look-ahead",
              "{\"type\":\"string\",\"pattern\":\"^(?!.*ab)(?=[a-c]+$).{2,9}|^x(?<n>y)\"}");
    seed_text("fuzz_schema", "constants",
              "{\"oneOf\":[{\"enum\":[[1],{\"a\":2},3,4,5,6,7,8,9,10]},{\"const\":\"x\"}]}");
    for (size_t i = 0; i < PD_COUNT(schemas); i++) {
        char name[8];
        snprintf(name, sizeof name, "%zu", i);
        seed_text("fuzz_schema", name, schemas[i]);
    }
    for (size_t i = 0; i < PD_COUNT(bodies); i++) {
        char name[8], body[2048];
        snprintf(name, sizeof name, "%zu", i);
        snprintf(body, sizeof body, "%c%s" ANSWER, (char)('0' + i), bodies[i]);
        seed_text("fuzz_request", name, body);
    }
    seed_answers();
}

/* A format each, in its place in the table. */
static void seed_calls(void)
{
    static const char tools[] =
        "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":\"x\",\"parameters\":"
        "{\"type\":\"object\",\"properties\":{\"s\":{\"type\":\"string\",\"pattern\":\"^<.*>$\"},"
        "\"n\":{\"enum\":[1,null,\"<\",{\"k\":[]}]}},\"required\":[\"s\"]}}},{\"name\":\"g\",\"strict\":true}]";
    static const char *const replies[] = {
        "a\xf8" "call:f{s:\xfa<b>\xfa,n:{k:[]}}\xf9",
        "<start_function_call>call:f{s:<escape><b><escape>}<end_function_call>",
        "a\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"s\": \"<\\u00e9>\"}}\n</tool_call>\n",
        "{\"name\": \"f\", \"parameters\": {\"s\": \"<b>\"}}; "
        "{\"type\": \"function\", \"name\": \"g\", \"parameters\": {}}",
        "```json\n[{\"name\": \"g\", \"parameters\": {}}, {\"name\": \"g\", \"parameters\": {\"a\": [-1.5e3]}}]\n"
        "```",
        "<tool_call>{\"name\":\"g\",\"arguments\":{\"a\":true,\"b\":[{}]}}</tool_call> text"};
    for (size_t i = 0; i < PD_COUNT(replies); i++) {
        char text[1024];
        snprintf(text, sizeof text, "%c%s\n===\n%s", (char)(i << 3 | 4 | (i == 0)), tools, replies[i]);
        seed_text("fuzz_calls", pd_call_format_name_at(i), text);
    }
}

/* ---- what Peridot writes itself ---- */

static void seed_cache(void)
{
    static const struct pd_notes verdict = {"wrong", "peridot: kernels that a self-test found wrong"};
    static const struct pd_note notes[] = {{.id = PD_KERNEL_glu}, {.id = PD_KERNEL_topk}};
    static const peridot_device_info device = {.cache_key = "0123456789abcdef"};
    static struct pd_tunings tunings;
    tunings.of[PD_KERNEL_matvec_q8_0][PD_USE_NORMED] = (struct pd_tuning){2, 64, 32, 1};
    tunings.of[PD_KERNEL_matvec_f32][PD_USE_PLAIN] = (struct pd_tuning){4, 128, 0, 2};
    seed_text("fuzz_cache", "empty", "");
    char path[512];
    snprintf(path, sizeof path, "%s/fuzz_cache", target);
    assert_int_equal(pd_notes_write(&verdict, &device, path, notes, PD_COUNT(notes)), PERIDOT_OK);
    assert_int_equal(pd_tunings_write(&tunings, &device, path), PERIDOT_OK);
}

/* As peridot bench writes them. */
static void add_report(yyjson_mut_doc *doc, yyjson_mut_val *report)
{
    static const peridot_device_info device = {.name = "a device", .driver = "a driver"};
    static const peridot_model_info model = {.name = "gemma3-1b random", .family = "gemma3", .types = "q8_0",
                                             .device = &device, .kernels = "", .tuning = ""};
    const struct bench_plan plan = {.note = "a note"};
    const struct bench_run run = {.plan = &plan, .model = &model, .before.power_limit_w = 28,
                                  .rates = {.copy = 1e10, .read = 1e10, .fp32 = 1e11}};
    const struct cmd_rank ranks[2] = {{.host = "a", .n_layers = 1, .bandwidth = 1e9}, {.host = "b", .n_layers = 1}};
    bench_json_run(doc, report, &run);
    bench_json_ranks(doc, report, ranks, 2);
    yyjson_mut_val *tests = yyjson_mut_obj_add_arr(doc, report, "tests");
    for (int i = 0; i < 2; i++) {
        struct bench_test t = {.generation = i, .n_sequences = 1 + (uint32_t)i, .n_tokens = 128, .n_repeats = 2,
                               .speed = {5, 5}, .median = 5, .min = 5, .max = 5, .bytes_per_s = 1e9, .flop_per_s = 1e9,
                               .arithmetic = "fp32", .n_profiled = 1, .n_kernels = 1,
                               .kernels = {{.kernel = "matvec_q8_0", .seconds = 1e-3}}};
        strcpy(t.name, i ? "n128 b2" : "p512");
        bench_json_test(doc, tests, &t);
    }
}

static void seed_reports(void)
{
    for (int schema = REPORT_SCHEMA; schema <= REPORT_SET_SCHEMA; schema++) {
        yyjson_mut_doc *doc = cmd_json_new();
        yyjson_mut_val *root = yyjson_mut_obj(doc);
        yyjson_mut_doc_set_root(doc, root);
        if (schema == REPORT_SET_SCHEMA) {
            yyjson_mut_obj_add_uint(doc, root, "schema", REPORT_SET_SCHEMA);
            yyjson_mut_val *reports = yyjson_mut_obj_add_arr(doc, root, "reports");
            for (int i = 0; i < 2; i++) add_report(doc, yyjson_mut_arr_add_obj(doc, reports));
        } else {
            add_report(doc, root);
        }
        char *text = cmd_json_end(doc, 0, NULL);
        assert_non_null(text);
        seed_text("fuzz_report", schema == REPORT_SCHEMA ? "schema-2" : "schema-3", text);
        free(text);
    }
    seed_golden("fuzz_report", "report/*.json");
}

static void seed_saved(void)
{
    static const int32_t tokens[PD_PAGE + 9] = {2, 199, 5};
    struct fuzz_session *s = fuzz_session();
    struct pd_sequence *q;
    assert_int_equal(pd_sequence_create(&q, &s->set), PERIDOT_OK);
    assert_int_equal(pd_sequence_save(q, &s->model, seed_path("fuzz_saved", "empty")), PERIDOT_OK);
    assert_int_equal(pd_sequence_extend(q, PD_PAGE + 9), PERIDOT_OK);
    pd_sequence_append(q, tokens, PD_PAGE + 9);
    q->logits_pass = 1;
    for (uint32_t i = 0; i < PD_TOPK; i++) q->best[i] = (struct pd_candidate){9 - (float)i / 8, i};
    pd_sampler_set(&q->sampler, &(peridot_sampling){.temperature = 1, .repeat_penalty = 1.1f, .seed = 3});
    assert_int_equal(pd_sequence_save(q, &s->model, seed_path("fuzz_saved", "two-pages")), PERIDOT_OK);
    pd_sequence_free(q);
}

static void seed_tools(void)
{
    seed_text("fuzz_tools", "file",
              "c{\"mcpServers\":{\"a\":{\"command\":\"x\",\"args\":[\"${HOME:-y}\"],\"env\":{\"A\":\"b\"}},"
              "\"b\":{\"url\":\"http://x\",\"headers\":{\"A\":\"b\"},\"allow\":[\"f\"],\"timeout\":2}}, // a comment\n"
              "\"tools\":[{\"name\":\"f\",\"command\":[\"x\",\"y\"],\"parameters\":{\"type\":\"object\"}},]}");
    seed_text("fuzz_tools", "events",
              "e: comment\nevent: message\r\nid: 7\rdata: {\"id\":1,\ndata:\"result\":{}}\r\n\r\ndata\n\n");
    seed_text("fuzz_tools", "call",
              "m{\"name\":\"f\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\","
              "\"x-mcp-header\":\"A\"},\"b\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\","
              "\"x-mcp-header\":\"N\"}}}}}}\n===\n{\"a\":\"\\u00e9\\n\",\"b\":{\"n\":-5}}\n===\n"
              "{\"content\":[{\"type\":\"text\",\"text\":\"a\\u0000\"},{\"type\":\"image\",\"data\":\"AAAA\","
              "\"mimeType\":\"image/png\"},{\"type\":\"resource_link\",\"uri\":\"file:///a\"},"
              "{\"type\":\"resource\",\"resource\":{\"uri\":\"b:c\"}},7],\"isError\":true}");
    seed_text("fuzz_tools", "base64", "bQUJDRA==");
}

static void seed_hub(void)
{
    static const char hash[] = "0123456789abcdef0123456789abcdef01234567", layer[] = "application/vnd.ollama.image";
    char text[2048];
    snprintf(text, sizeof text,
             "h[{\"type\":\"file\",\"path\":\"a/b.gguf\",\"oid\":\"%s\",\"size\":7,\"lfs\":{\"oid\":\"%s%.24s\","
             "\"size\":9}},{\"type\":\"file\",\"path\":\"../c\",\"oid\":\"%s\",\"size\":1}]", hash, hash, hash, hash);
    seed_text("fuzz_hub", "list", text);
    snprintf(text, sizeof text,
             "o{\"layers\":[{\"mediaType\":\"%s.model\",\"digest\":\"sha256:%s%.24s\",\"size\":9},"
             "{\"mediaType\":\"%s.projector\",\"digest\":\"sha256:%s%.24s\",\"size\":3}]}",
             layer, hash, hash, layer, hash, hash);
    seed_text("fuzz_hub", "manifest", text);
}

/* ---- ranks, weights ---- */

static void put_words(struct pd_buffer *out, const uint32_t *words, size_t n)
{
    pd_buffer_add(out, (const char *)words, n * sizeof *words);
}

/* A step of one sequence, a prompt's three rows and its logits, then pages, of which one is kept and restored; and what
 * rank 0 waits for, which is candidates. */
static void seed_ranks(void)
{
    enum { ROW = 4, HEAD = 2, ENTRY = 3, HEADER = 8 };
    static const uint32_t messages[] = {
        PD_OP_PASS, 4 * (ROW + HEAD + 2 * ENTRY), 1, 1, 2, 0, 1, 0,   0, 0, 0, 5,   0, 2,   0, 0, 1,   1, 0, 1,
        PD_OP_PASS, 4 * (3 * ROW + HEAD + ENTRY), 3, 1, 1, 3, 0, 0,   1, 0, 0, 2,   1, 1, 1, 5,   1, 2, 2, 7,   2, 1,
        0, 2, 0,
        PD_OP_HEAD, 0, 0, 1, 0, 0, 0, 0,   PD_OP_READ_LOGITS, 0, 4, 1, 0, 0, 0, 0,
        PD_OP_READ_HIDDEN, 0, 0, 2, 0, 0, 0, 0,   PD_OP_COPY_PAGE, 0, 0, 1, 0, 0, 0, 0,
        PD_OP_KEEP_PAGE, 0, 0, 1, 9, 0, 0, 0,   PD_OP_RESTORE_PAGE, 0, 0, 2, 9, 0, 0, 0,
        PD_OP_KEEP_PAGE, 0, 0, 1, 8, 0, 0, 0,   PD_OP_DROP_PAGE, 0, 8, 0, 0, 0, 0, 0,
        PD_OP_FREE_SESSION, 0, 0, 0, 0, 0, 0, 0,   PD_OP_CLOSE, 0, 0, 0, 0, 0, 0, 0};
    static const uint32_t reply[HEADER] = {PD_OP_REPLY, PD_TOPK * sizeof(struct pd_candidate)};
    static const char kinds[] = "lm";
    struct pd_buffer b = {0};
    for (size_t i = 0; i < strlen(kinds); i++) {
        b.size = 0;
        pd_buffer_add(&b, &kinds[i], 1);
        put_words(&b, messages, PD_COUNT(messages));
        seed("fuzz_ranks", i ? "middle" : "last", b.data, b.size);
    }
    b.size = 0;
    put_text(&b, "f");
    for (uint32_t k = 0; k < 3; k++) {
        put_words(&b, reply, HEADER);
        for (uint32_t i = 0; i < PD_TOPK; i++)
            pd_buffer_add(&b, (const char *)&(struct pd_candidate){9 - (float)i / 8, 3 + i},
                          sizeof(struct pd_candidate));
    }
    seed("fuzz_ranks", "first", b.data, b.size);
    b.size = 0;
    put_text(&b, "o");
    put_words(&b, (const uint32_t[HEADER]){PD_OP_OPEN, 80}, HEADER);
    put_text(&b, PERIDOT_VERSION);
    seed("fuzz_ranks", "open", b.data, b.size);
    free(b.data);
}

/* Of each type all bytes that there are. */
static void seed_weights(void)
{
    uint8_t blocks[1 + 1024];
    for (size_t i = 0; i < sizeof blocks; i++) blocks[i] = (uint8_t)(i * 37 + i / 256);
    for (int type = 0; type < PD_N_DTYPES; type++) {
        blocks[0] = (uint8_t)type;
        seed("fuzz_weights", pd_dtypes[type].name, blocks, sizeof blocks);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2 || make_folder(NULL) != 0) return 2;
    target = argv[1];
    seed_golden("fuzz_config", "*/config.json");
    seed_text("fuzz_index", "two", "{\"metadata\":{\"total_size\":8},"
                                   "\"weight_map\":{\"a\":\"model-00001-of-00002.safetensors\","
                                   "\"b\":\"model-00002-of-00002.safetensors\"}}");
    seed_golden("fuzz_ids", "*/tokens.txt");
    seed_golden("fuzz_picture", "pictures/*.[jpgw][pnie][gfb]*");
    seed_folder();
    seed_gguf("f32", PD_F32, 4);
    seed_gguf("q4_0", PD_Q4_0, 32);
    seed_gemma4();
    seed_towers();
    seed_adapters();
    seed_vocabularies();
    seed_texts();
    seed_chats();
    seed_templates();
    seed_requests();
    seed_calls();
    seed_cache();
    seed_reports();
    seed_saved();
    seed_tools();
    seed_hub();
    seed_ranks();
    seed_weights();
    return remove_folder(NULL);
}
