/* What the tests of the text layer share: a folder for files, and a vocabulary of 300 pieces that can be written as a
 * GGUF file or as a sentencepiece model, whole or spoilt. */
#ifndef TEXT_FIXTURE_H
#define TEXT_FIXTURE_H

#define _XOPEN_SOURCE 700
#include "peridot.h"

#include "api/api.h"
#include "base/base.h"
#include "format/format.h"
#include "text/text_.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "folder_fixture.h"

#define N_TINY 512

struct tiny {
    struct pd_string text[N_TINY];
    float score[N_TINY];
    int32_t type[N_TINY];
    uint64_t n, n_scores, n_types;
    const struct script_turn *turns;  /* [n_turns]: of the model that has the vocabulary, in script_model.h */
    size_t n_turns;
    uint32_t ctx;                     /* of the model that has the vocabulary, in script_model.h; 0: 4096 */
    char byte_names[256][8];
    const char *architecture, *model, *name, *finetune, *jinja, *tools_jinja;
    int64_t bos, eos, unknown, eot;   /* written when >= 0 */
    int prefix;                       /* tokenizer.ggml.add_space_prefix, written when >= 0 */
    bool prefix_first;                /* as of "legacy": false */
    bool no_bos;                      /* tokenizer.ggml.add_bos_token is written, false */
    const char *pre;
    const char *const *merges;        /* [n_merges]; NULL: none are written */
    uint64_t n_merges;
    const int32_t *suppress;          /* [n_suppress] */
    uint64_t n_suppress;
    const struct tiny_id { const char *key; int64_t id; } *ids;   /* [n_ids]: other keys that name tokens */
    uint64_t n_ids;
};

static inline int remove_folder(void **state)
{
    static const char *const names[] = {"tiny.gguf", "tiny.model", "tiny.json", "tokenizer.json",
                                        "tokenizer_config.json", ""};
    (void)state;
    for (size_t i = 0; i < PD_COUNT(names); i++) remove(in_folder(names[i]));
    return 0;
}

static inline void write_file(const char *path, const void *data, size_t size)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static inline void tiny_add(struct tiny *t, const char *text, float score, int32_t type)
{
    t->text[t->n] = (struct pd_string){text, strlen(text)};
    t->score[t->n] = score;
    t->type[t->n++] = type;
    t->n_scores = t->n_types = t->n;
}

/* As a converter writes Gemma's vocabulary: the unknown piece is marked as control, the user-defined run of spaces
 * holds spaces, and turn markers are user-defined, which is what Google's own models say. */
static inline void tiny_make(struct tiny *t)
{
    static const char *const normal[] = {"\u2581", "e", "t", "a", "o", "i", "n", "s", "h", "r", "l", "d", "u", "m", "f",
        "w",
        "b", "c", "<", ">", "_", "he", "ll", "\u2581t", "\u2581the", "hell", "hello", "\u2581hello", "us", "er",
        "user", "mo",
        "de", "mode", "model", "\u00e9"};
    static const char *const user[] = {"<start_of_turn>", "<end_of_turn>", "<unused0>", "\n", "\n\n", "  ", "<b>"};
    *t = (struct tiny){
        .architecture = "gemma2", .model = "llama", .bos = 2, .eos = 1, .unknown = 3, .eot = -1, .prefix = -1};
    tiny_add(t, "<pad>", -1000, 3);
    tiny_add(t, "<eos>", -1000, 3);
    tiny_add(t, "<bos>", -1000, 3);
    tiny_add(t, "<unk>", -1000, 3);
    for (size_t i = 0; i < PD_COUNT(user); i++) tiny_add(t, user[i], -1000, 4);
    for (unsigned i = 0; i < 256; i++) {
        snprintf(t->byte_names[i], sizeof t->byte_names[i], "<0x%02X>", i);
        tiny_add(t, t->byte_names[i], 0, 6);
    }
    for (size_t i = 0; i < PD_COUNT(normal); i++) tiny_add(t, normal[i], -(float)i, 1);
}

/* The same words by merges, and Gemma 4's control pieces as its converter has them. Scores say nothing. */
static inline void tiny_make_gemma4(struct tiny *t)
{
    static const char *const merges[] = {"\n \n", "\u2581 \u2581", "h e", "l l", "he ll", "hell o", "\u2581 hello",
        "\u2581 t", "\u2581t he", "e r", "u s", "us er", "m o", "d e", "mo de", "mode l"};
    static const struct { const char *text; int32_t type; } marks[] = {{"<|turn>", 3}, {"<turn|>", 3}, {"\n", 1},
        {"\n\n", 1}, {"\u2581\u2581", 1}, {"<b>", 1}, {"<|think|>", 3}, {"<|channel>", 4}, {"<channel|>", 4},
        {"<|tool_response>", 4}, {"</s>", 1}};
    tiny_make(t);
    t->architecture = t->model = "gemma4";
    t->merges = merges;
    t->n_merges = PD_COUNT(merges);
    for (size_t i = 0; i < PD_COUNT(marks); i++) {
        size_t at = i < 7 ? 4 + i : t->n;   /* in the place of Gemma 3's, then behind the others */
        if (at == t->n) tiny_add(t, "", 0, 0);
        t->text[at] = (struct pd_string){marks[i].text, strlen(marks[i].text)};
        t->type[at] = marks[i].type;
    }
    for (size_t i = 0; i < t->n; i++) t->score[i] = -1000;
}

static inline void add_strings(struct pd_gguf_writer *w, const char *key, const char *const *texts, uint64_t n)
{
    struct pd_string *strings = calloc(n + 1, sizeof *strings);
    for (uint64_t i = 0; i < n; i++) strings[i] = (struct pd_string){texts[i], strlen(texts[i])};
    pd_gguf_writer_add_strings(w, key, n, strings);
    free(strings);
}

static inline void add_id(struct pd_gguf_writer *w, const char *key, int64_t id)
{
    if (id >= 0) pd_gguf_writer_add_u32(w, key, (uint32_t)id);
}

static inline void add_text(struct pd_gguf_writer *w, const char *key, const char *text)
{
    if (text) pd_gguf_writer_add_string(w, key, text);
}

static inline void tiny_put(struct pd_gguf_writer *w, const struct tiny *t)
{
    add_text(w, "general.architecture", t->architecture);
    add_text(w, "general.name", t->name);
    add_text(w, "general.finetune", t->finetune);
    add_text(w, "tokenizer.ggml.model", t->model);
    add_text(w, "tokenizer.chat_template", t->jinja);
    add_text(w, "tokenizer.chat_template.tool_use", t->tools_jinja);
    pd_gguf_writer_add_strings(w, "tokenizer.ggml.tokens", t->n, t->text);
    pd_gguf_writer_add_array(w, "tokenizer.ggml.scores", PD_META_FLOAT32, t->n_scores, t->score);
    pd_gguf_writer_add_array(w, "tokenizer.ggml.token_type", PD_META_INT32, t->n_types, t->type);
    add_id(w, "tokenizer.ggml.bos_token_id", t->bos);
    add_id(w, "tokenizer.ggml.eos_token_id", t->eos);
    add_id(w, "tokenizer.ggml.unknown_token_id", t->unknown);
    add_id(w, "tokenizer.ggml.eot_token_id", t->eot);
    add_text(w, "tokenizer.ggml.pre", t->pre);
    if (t->merges) add_strings(w, "tokenizer.ggml.merges", t->merges, t->n_merges);
    if (t->n_suppress)
        pd_gguf_writer_add_array(w, "tokenizer.ggml.suppress_tokens", PD_META_INT32, t->n_suppress, t->suppress);
    for (uint64_t i = 0; i < t->n_ids; i++) add_id(w, t->ids[i].key, t->ids[i].id);
    if (t->no_bos) pd_gguf_writer_add_bool(w, "tokenizer.ggml.add_bos_token", false);
    if (t->prefix >= 0) pd_gguf_writer_add_bool(w, "tokenizer.ggml.add_space_prefix", t->prefix);
    if (t->prefix_first) pd_gguf_writer_add_bool(w, "tokenizer.ggml.add_space_prefix_each", false);
    if (t->prefix_first) pd_gguf_writer_add_bool(w, "tokenizer.ggml.add_space_prefix_unless_space", true);
}

static inline const char *tiny_gguf(const struct tiny *t)
{
    const char *path = in_folder("tiny.gguf");
    struct pd_gguf_writer *w;
    assert_int_equal(pd_gguf_writer_open(&w, path), PERIDOT_OK);
    tiny_put(w, t);
    assert_int_equal(pd_gguf_writer_begin(w), PERIDOT_OK);
    assert_int_equal(pd_gguf_writer_commit(w), PERIDOT_OK);
    return path;
}

static inline void tiny_message(struct pd_buffer *out, uint32_t number, struct pd_buffer *message)
{
    assert_int_equal(pd_proto_write_bytes(out, number, message->data, message->size), PERIDOT_OK);
    message->size = 0;
}

/* As a sentencepiece ModelProto: `out` is to be freed. */
static inline void tiny_model(struct pd_buffer *out, const struct tiny *t)
{
    struct pd_buffer m = {0};
    *out = (struct pd_buffer){0};
    for (uint64_t i = 0; i < t->n; i++) {
        bool spaces = t->text[i].size == 2 && memcmp(t->text[i].data, "  ", 2) == 0;
        pd_proto_write_bytes(&m, 1, spaces ? "\u2581\u2581" : t->text[i].data, spaces ? 6 : t->text[i].size);
        pd_proto_write_float(&m, 2, t->score[i]);
        pd_proto_write_varint(&m, 3, i == (uint64_t)t->unknown ? 2 : (uint32_t)t->type[i]);
        tiny_message(out, 1, &m);
    }
    pd_proto_write_varint(&m, 3, 2);     /* BPE */
    pd_proto_write_varint(&m, 35, 1);    /* byte fallback */
    pd_proto_write_varint(&m, 41, (uint64_t)t->bos);
    pd_proto_write_varint(&m, 42, (uint64_t)t->eos);
    tiny_message(out, 2, &m);
    pd_proto_write_varint(&m, 3, t->prefix > 0);
    pd_proto_write_varint(&m, 4, 0);     /* no removal of spaces */
    tiny_message(out, 3, &m);
    free(m.data);
}

static inline peridot_vocab *open_vocab(const char *path)
{
    peridot_vocab *v;
    if (peridot_vocab_open(&v, path) != PERIDOT_OK) fail_msg("%s", peridot_last_error());
    return v;
}

static inline peridot_vocab *open_tiny(const struct tiny *t)
{
    return open_vocab(tiny_gguf(t));
}

enum { BOS = PERIDOT_ENCODE_BOS, SPECIAL = PERIDOT_ENCODE_SPECIAL };

/* Pieces with "|" after each, to be freed. */
static inline char *spell(const peridot_vocab *v, const int32_t *ids, size_t n)
{
    struct pd_buffer b = {0};
    const struct pd_pieces *p = &v->tokenizer->pieces;
    for (size_t i = 0; i < n; i++) {
        assert_true(ids[i] >= 0 && (uint32_t)ids[i] < p->n);
        pd_buffer_add(&b, pd_pieces_text(p, (uint32_t)ids[i]), p->piece[ids[i]].size);
        pd_buffer_add(&b, "|", 1);
    }
    assert_int_equal(pd_buffer_end(&b), PERIDOT_OK);
    return b.data;
}

static inline void check_spelling(const peridot_vocab *v, int32_t *ids, size_t n, const char *pieces)
{
    char *spelt = spell(v, ids, n);
    assert_string_equal(spelt, pieces);
    free(spelt);
    peridot_free(ids);
}

static inline void expect(const peridot_vocab *v, const char *text, unsigned flags, const char *pieces)
{
    int32_t *ids;
    size_t n;
    assert_int_equal(peridot_encode(&ids, &n, v, text, strlen(text), flags), PERIDOT_OK);
    assert_non_null(ids);
    check_spelling(v, ids, n, pieces);
}

static inline void expect_chat(const peridot_vocab *v, const char *text, const char *pieces)
{
    int32_t *ids;
    size_t n;
    assert_int_equal(peridot_encode_chat(&ids, &n, v, text), PERIDOT_OK);
    check_spelling(v, ids, n, pieces);
}

static inline void expect_text(const peridot_vocab *v, const int32_t *ids, size_t n, const char *text)
{
    char *made;
    size_t size;
    assert_int_equal(peridot_decode(&made, &size, v, ids, n), PERIDOT_OK);
    assert_int_equal(size, strlen(text));
    assert_string_equal(made, text);
    peridot_free(made);
}

static inline int32_t id_of(const peridot_vocab *v, const char *piece)
{
    int32_t id = pd_pieces_find(&v->tokenizer->pieces, piece, strlen(piece));
    assert_true(id >= 0);
    return id;
}

static inline uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

#endif
