/* What the tests of the text layer that need the real tokenizers share: where those are, and files of other forms made
 * from them, as the usual converters write them. The data is where CMake's PERIDOT_SHARED says, or the
 * environment's; without it these tests are skipped. */
#ifndef TEXT_SHARED_H
#define TEXT_SHARED_H

#include "text_fixture.h"

#include "text/byte_level.h"
#include "text/piece_index.h"

static inline const char *shared_path(char path[512], const char *format, const char *name)
{
    const char *shared = getenv("PERIDOT_SHARED");
    char rest[128];
    snprintf(rest, sizeof rest, format, name);
    snprintf(path, 512, "%s/data/%s", shared ? shared : PERIDOT_SHARED, rest);
    return path;
}

static inline void skip_without_data(void)
{
    char path[512];
    if (pd_is_directory(shared_path(path, "%s", "vectors"))) return;
    print_message("skipped: there is no %s\n", path);
    skip();
}

static inline char *read_file(const char *format, const char *name)
{
    char path[512];
    FILE *f = fopen(shared_path(path, format, name), "rb");
    if (!f) fail_msg("%s cannot be read", path);
    struct pd_text_buffer b = {0};
    char part[4096];
    for (size_t n; (n = fread(part, 1, sizeof part, f)) > 0;) assert_int_equal(pd_text_append(&b, part, n), PERIDOT_OK);
    fclose(f);
    assert_int_equal(pd_text_terminate(&b), PERIDOT_OK);
    return b.data;
}

static inline char *list(const int32_t *ids, size_t n)
{
    struct pd_text_buffer b = {0};
    char number[16];
    for (size_t i = 0; i < n; i++) {
        int size = snprintf(number, sizeof number, i ? ", %d" : "%d", ids[i]);
        assert_int_equal(pd_text_append(&b, number, (size_t)size), PERIDOT_OK);
    }
    assert_int_equal(pd_text_terminate(&b), PERIDOT_OK);
    return b.data;
}

/* ---- sentencepiece's pieces in other forms ---- */

/* Spaces instead of U+2581 in user-defined pieces. */
static inline struct pd_string unescaped(struct pd_text_buffer *b, const char *text, size_t size)
{
    struct pd_string s = {b->data + b->size, 0};
    size_t length;
    for (size_t i = 0; i < size; i += length) {
        bool space = i + 3 <= size && memcmp(text + i, "\u2581", 3) == 0;
        length = space ? 3 : 1;
        assert_int_equal(pd_text_append(b, space ? " " : text + i, 1), PERIDOT_OK);
        s.size++;
    }
    return s;
}

/* ---- tokenizer.json ---- */

static inline void put_json_string(FILE *f, const char *text, size_t size)
{
    fputc('"', f);
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 32 || c == '"' || c == '\\') fprintf(f, "\\u%04x", c);
        else fputc(c, f);
    }
    fputc('"', f);
}

static inline void put_piece(FILE *f, const struct pd_pieces *p, uint32_t id)
{
    put_json_string(f, pd_pieces_text(p, id), p->piece[id].size);
}

static inline void put_added(FILE *f, const struct pd_pieces *p)
{
    const char *comma = "";
    for (uint32_t i = 0; i < p->n; i++) {
        uint8_t type = p->piece[i].type;
        if (type != PD_PIECE_CONTROL && type != PD_PIECE_UNKNOWN && type != PD_PIECE_USER) continue;
        fprintf(f, "%s{\"id\": %u, \"content\": ", comma, i);
        put_piece(f, p, i);
        fprintf(f, ", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": false, "
                   "\"special\": %s}\n",
                type == PD_PIECE_USER ? "false" : "true");
        comma = ",";
    }
}

struct scored {
    float score;
    uint32_t id;
};

/* User-defined pieces first, then the best scores, then the lowest ids. */
static inline int compare_scored(const void *a, const void *b)
{
    const struct scored *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

/* All pairs of pieces that make a piece: what a list of merges is made of when there were only scores. */
static inline void put_pairs(FILE *f, const struct pd_pieces *p, const struct pd_piece_index *x, uint32_t id,
                             const char **comma)
{
    const char *text = pd_pieces_text(p, id);
    size_t size = p->piece[id].size;
    for (size_t i = 1; i < size; i++) {
        if (((unsigned char)text[i] & 0xc0) == 0x80) continue;
        if (pd_piece_index_find(x, p, text, i) < 0 || pd_piece_index_find(x, p, text + i, size - i) < 0) continue;
        fprintf(f, "%s[", *comma);
        put_json_string(f, text, i);
        fputs(", ", f);
        put_json_string(f, text + i, size - i);
        fputs("]\n", f);
        *comma = ",";
    }
}

static inline void put_merges(FILE *f, const struct pd_pieces *p)
{
    struct scored *order = calloc(p->n, sizeof *order);
    struct pd_piece_index index;
    const char *comma = "";
    assert_int_equal(pd_piece_index_create(&index, p), PERIDOT_OK);
    for (uint32_t i = 0; i < p->n; i++) {
        order[i] = (struct scored){p->piece[i].score, i};
        if (p->piece[i].type == PD_PIECE_USER) order[i].score = 1;
    }
    qsort(order, p->n, sizeof *order, compare_scored);
    for (uint32_t i = 0; i < p->n; i++) put_pairs(f, p, &index, order[i].id, &comma);
    pd_piece_index_free(&index);
    free(order);
}

#define JSON_ESCAPE "{\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": \"\u2581\"}"
#define JSON_UNESCAPE "{\"type\": \"Replace\", \"pattern\": {\"String\": \"\u2581\"}, \"content\": \" \"}, " \
                      "{\"type\": \"ByteFallback\"}, {\"type\": \"Fuse\"}"

/* As Llama 2's published file has the steps when there is a dummy prefix, as Gemma's when not. */
static inline void put_steps(FILE *f, const struct pd_pieces *p)
{
    if (p->dummy_prefix)
        fputs("\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Prepend\", \"prepend\": "
              "\"\u2581\"}, "
              JSON_ESCAPE "]}, \"pre_tokenizer\": null, \"decoder\": {\"type\": \"Sequence\", \"decoders\": "
                          "[" JSON_UNESCAPE
              ", {\"type\": \"Strip\", \"content\": \" \", \"start\": 1, \"stop\": 0}]},\n", f);
    else
        fputs("\"normalizer\": " JSON_ESCAPE ", \"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"String\": \" "
                                             "\"}, "
              "\"behavior\": \"MergedWithPrevious\", \"invert\": false}, \"decoder\": {\"type\": \"Sequence\", "
              "\"decoders\": ["
              JSON_UNESCAPE "]},\n", f);
    fputs("\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": ", f);
    put_piece(f, p, (uint32_t)p->bos);
    fputs("}}, {\"Sequence\": {\"id\": \"A\"}}]},\n", f);
}

/* A tokenizer.json of the pieces of a sentencepiece model. */
static inline void write_tokenizer_json(const char *path, const struct pd_pieces *p)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fputs("{\"version\": \"1.0\", \"truncation\": null, \"padding\": null, \"added_tokens\": [", f);
    put_added(f, p);
    fputs("],\n", f);
    put_steps(f, p);
    fputs("\"model\": {\"type\": \"BPE\", \"dropout\": null, \"unk_token\": \"<unk>\", \"fuse_unk\": true, "
          "\"byte_fallback\": true, "
          "\"ignore_merges\": false, \"vocab\": {", f);
    for (uint32_t i = 0; i < p->n; i++) {
        fputs(i ? ",\n" : "", f);
        put_piece(f, p, i);
        fprintf(f, ": %u", i);
    }
    fputs("}, \"merges\": [", f);
    put_merges(f, p);
    fputs("]}}\n", f);
    assert_int_equal(fclose(f), 0);
}

/* ---- a byte-level vocabulary as a GGUF file ---- */

/* Strings into one buffer that must not move: `b` has room for all. */
static inline struct pd_string spell_bytes(struct pd_text_buffer *b, const struct pd_pieces *p, uint32_t id)
{
    struct pd_string s = {b->data + b->size, b->size};
    const char *text = pd_pieces_text(p, id);
    if (p->piece[id].type == PD_PIECE_NORMAL) pd_byte_level_write(b, text, p->piece[id].size);
    else pd_text_append(b, text, p->piece[id].size);
    assert_true(b->data + s.size == s.data);
    s.size = b->size - s.size;
    return s;
}

static inline void add_merges(struct pd_gguf_writer *w, struct pd_text_buffer *b, const struct pd_pieces *p)
{
    struct pd_string *lines = calloc(p->n_merges, sizeof *lines);
    for (uint32_t i = 0; i < p->n_merges; i++) {
        struct pd_string left = spell_bytes(b, p, p->merges[i].left);
        pd_text_append(b, " ", 1);
        struct pd_string right = spell_bytes(b, p, p->merges[i].right);
        lines[i] = (struct pd_string){left.data, left.size + 1 + right.size};
    }
    pd_gguf_writer_add_strings(w, "tokenizer.ggml.merges", p->n_merges, lines);
    free(lines);
}

/* `pre`: tokenizer.ggml.pre, left out when NULL. */
static inline void write_byte_level_gguf(const char *path, const struct pd_pieces *p, const char *pre)
{
    struct pd_string *text = calloc(p->n, sizeof *text);
    int32_t *type = calloc(p->n, sizeof *type);
    struct pd_text_buffer b = {malloc(1 << 24), 0, 1 << 24};
    struct pd_gguf_writer *w;
    for (uint32_t i = 0; i < p->n; i++) {
        text[i] = spell_bytes(&b, p, i);
        type[i] = p->piece[i].type;
    }
    assert_int_equal(pd_gguf_writer_open(&w, path), PERIDOT_OK);
    pd_gguf_writer_add_string(w, "general.architecture", "llama");
    pd_gguf_writer_add_string(w, "general.name", "A Model Instruct");
    pd_gguf_writer_add_string(w, "tokenizer.ggml.model", "gpt2");
    if (pre) pd_gguf_writer_add_string(w, "tokenizer.ggml.pre", pre);
    pd_gguf_writer_add_strings(w, "tokenizer.ggml.tokens", p->n, text);
    pd_gguf_writer_add_array(w, "tokenizer.ggml.token_type", PD_META_INT32, p->n, type);
    add_merges(w, &b, p);
    add_id(w, "tokenizer.ggml.bos_token_id", p->bos);
    add_id(w, "tokenizer.ggml.eos_token_id", p->eos);
    assert_int_equal(pd_gguf_writer_begin(w), PERIDOT_OK);
    assert_int_equal(pd_gguf_writer_commit(w), PERIDOT_OK);
    free(text);
    free(type);
    free(b.data);
}

#endif
