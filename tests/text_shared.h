/* What the tests of the text layer that need the real tokenizers share: where those are, and files of other forms made
 * from them, as the usual converters write them. The data is where CMake's PERIDOT_SHARED says, or the
 * environment's; without it these tests are skipped. */
#ifndef TEXT_SHARED_H
#define TEXT_SHARED_H

#include "text_fixture.h"

#include "grammar/calls/calls.h"
#include "text/text_.h"

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
    struct pd_buffer b = {0};
    char part[4096];
    for (size_t n; (n = fread(part, 1, sizeof part, f)) > 0;) assert_int_equal(pd_buffer_add(&b, part, n), PERIDOT_OK);
    fclose(f);
    assert_int_equal(pd_buffer_end(&b), PERIDOT_OK);
    return b.data;
}

static inline char *list(const int32_t *ids, size_t n)
{
    struct pd_buffer b = {0};
    char number[16];
    for (size_t i = 0; i < n; i++) {
        int size = snprintf(number, sizeof number, i ? ", %d" : "%d", ids[i]);
        assert_int_equal(pd_buffer_add(&b, number, (size_t)size), PERIDOT_OK);
    }
    assert_int_equal(pd_buffer_end(&b), PERIDOT_OK);
    return b.data;
}

/* ---- golden data ---- */

static inline yyjson_doc *open_golden(const char *name)
{
    char path[512];
    yyjson_read_err e;
    snprintf(path, sizeof path, PERIDOT_GOLDEN "/%s", name);
    yyjson_doc *doc = yyjson_read_file(path, 0, NULL, &e);
    if (!doc) fail_msg("%s: %s at byte %zu", path, e.msg, e.pos);
    return doc;
}

static inline char *golden_list(yyjson_val *ids)
{
    struct pd_ids want = {0};
    yyjson_val *id;
    size_t i, n;
    yyjson_arr_foreach(ids, i, n, id)
        assert_int_equal(pd_ids_append(&want, &(int32_t){yyjson_get_int(id)}, 1), PERIDOT_OK);
    char *made = list(want.data, want.n);
    free(want.data);
    return made;
}

static inline void expect_ids(const int32_t *ids, size_t n, yyjson_val *golden)
{
    char *made = list(ids, n), *want = golden_list(golden);
    assert_string_equal(made, want);
    free(made);
    free(want);
}

/* ---- sentencepiece's pieces in other forms ---- */

/* Spaces instead of U+2581 in user-defined pieces. */
static inline struct pd_string unescaped(struct pd_buffer *b, const char *text, size_t size)
{
    struct pd_string s = {b->data + b->size, 0};
    size_t length;
    for (size_t i = 0; i < size; i += length) {
        bool space = i + 3 <= size && memcmp(text + i, "\u2581", 3) == 0;
        length = space ? 3 : 1;
        assert_int_equal(pd_buffer_add(b, space ? " " : text + i, 1), PERIDOT_OK);
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

/* A text of `size` bytes and where its second half begins. */
typedef void (*take_merge)(void *user, const char *text, size_t middle, size_t size);

/* All pairs of pieces that make a piece: what a list of merges is made of when there were only scores. */
static inline void find_pairs(take_merge take, void *user, const struct pd_pieces *p, const struct pd_piece_index *x,
                              uint32_t id)
{
    const char *text = pd_pieces_text(p, id);
    size_t size = p->piece[id].size;
    for (size_t i = 1; i < size; i++) {
        if (((unsigned char)text[i] & 0xc0) == 0x80) continue;
        if (pd_piece_index_find(x, p, text, i) < 0 || pd_piece_index_find(x, p, text + i, size - i) < 0) continue;
        take(user, text, i, size);
    }
}

/* last_first: of user-defined pieces the last, which are the longest runs, so that merging makes these. */
static inline void find_merges(take_merge take, void *user, const struct pd_pieces *p, bool last_first)
{
    struct scored *order = calloc(p->n, sizeof *order);
    struct pd_piece_index index;
    assert_int_equal(pd_piece_index_create(&index, p), PERIDOT_OK);
    for (uint32_t i = 0; i < p->n; i++) {
        order[i] = (struct scored){p->piece[i].score, i};
        if (p->piece[i].type == PD_PIECE_USER) order[i].score = last_first ? 1 + (float)i : 1;
    }
    qsort(order, p->n, sizeof *order, compare_scored);
    for (uint32_t i = 0; i < p->n; i++) find_pairs(take, user, p, &index, order[i].id);
    pd_piece_index_free(&index);
    free(order);
}

struct json_merges {
    FILE *file;
    const char *comma;
};

static inline void put_merge(void *user, const char *text, size_t middle, size_t size)
{
    struct json_merges *m = user;
    fprintf(m->file, "%s[", m->comma);
    put_json_string(m->file, text, middle);
    fputs(", ", m->file);
    put_json_string(m->file, text + middle, size - middle);
    fputs("]\n", m->file);
    m->comma = ",";
}

#define JSON_ESCAPE "{\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": \"\u2581\"}"
#define JSON_UNESCAPE "{\"type\": \"Replace\", \"pattern\": {\"String\": \"\u2581\"}, \"content\": \" \"}, " \
                      "{\"type\": \"ByteFallback\"}, {\"type\": \"Fuse\"}"

/* As Llama 2's published file has the steps when there is a dummy prefix, as files of "legacy": false have it, or as
 * Gemma's when there is none. */
static inline void put_steps(FILE *f, const struct pd_pieces *p)
{
    if (p->dummy_prefix && p->prefix_unless_space)
        fprintf(f, "\"normalizer\": null, \"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": "
                   "\"\u2581\", \"prepend_scheme\": \"%s\", \"split\": false}, "
                   "\"decoder\": {\"type\": \"Sequence\", \"decoders\": ["
                   JSON_UNESCAPE ", {\"type\": \"Strip\", \"content\": \" \", \"start\": 1, \"stop\": 0}]},\n",
                p->prefix_each ? "always" : "first");
    else if (p->dummy_prefix)
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
    find_merges(put_merge, &(struct json_merges){f, ""}, p, false);
    fputs("]}}\n", f);
    assert_int_equal(fclose(f), 0);
}

/* ---- Gemma 3's pieces as Gemma 4's ---- */

/* Gemma 4's control pieces, in the places that it has them. Its converter makes some of them user-defined. */
static const struct {
    uint32_t id;
    const char *text;
    int32_t type;
} gemma4_control[] = {
    {46, "<|tool>", PD_PIECE_CONTROL}, {47, "<tool|>", PD_PIECE_CONTROL},
    {48, "<|tool_call>", PD_PIECE_USER}, {49, "<tool_call|>", PD_PIECE_USER},
    {50, "<|tool_response>", PD_PIECE_USER}, {51, "<tool_response|>", PD_PIECE_USER},
    {52, "<|\"|>", PD_PIECE_USER}, {98, "<|think|>", PD_PIECE_CONTROL},
    {100, "<|channel>", PD_PIECE_USER}, {101, "<channel|>", PD_PIECE_USER},
    {105, "<|turn>", PD_PIECE_CONTROL}, {106, "<turn|>", PD_PIECE_CONTROL},
    {90, "<|image>", PD_PIECE_CONTROL}, {91, "<|image|>", PD_PIECE_CONTROL}, {92, "<image|>", PD_PIECE_CONTROL},
};

struct merge_lines {
    struct pd_buffer text;   /* must not move */
    struct pd_string *lines;
    uint64_t n;
};

static inline void add_merge_line(void *user, const char *text, size_t middle, size_t size)
{
    struct merge_lines *m = user;
    struct pd_string line = {m->text.data + m->text.size, size + 1};
    pd_buffer_add(&m->text, text, middle);
    pd_buffer_add(&m->text, " ", 1);
    pd_buffer_add(&m->text, text + middle, size - middle);
    assert_true(m->n < 1 << 20 && line.data + line.size == m->text.data + m->text.size);
    m->lines[m->n++] = line;
}

/* As the usual converter writes Gemma 4's vocabulary: scores say nothing, merges are listed, and runs of spaces and
 * newlines are made by merging. Gemma 4 merges tags, too, which its merges do not make: here they stay as Gemma 3 has
 * them, user-defined, so that texts have the same ids. kind, pre: tokenizer.ggml.model and, unless NULL,
 * tokenizer.ggml.pre. */
static inline uint64_t write_gemma4_gguf(const char *path, const struct pd_pieces *p, const char *kind, const char *pre,
                                         const char *jinja)
{
    struct pd_string *text = calloc(p->n, sizeof *text);
    float *score = calloc(p->n, sizeof *score);
    int32_t *type = calloc(p->n, sizeof *type);
    struct merge_lines merges = {{malloc(1 << 24), 0, 1 << 24, false}, calloc(1 << 20, sizeof *merges.lines), 0};
    struct pd_gguf_writer *w;
    for (uint32_t i = 0; i < p->n; i++) {
        uint8_t was = p->piece[i].type;
        text[i] = (struct pd_string){pd_pieces_text(p, i), p->piece[i].size};
        score[i] = -1000;
        type[i] = was == PD_PIECE_UNKNOWN ? PD_PIECE_CONTROL : was;
        if (was == PD_PIECE_USER && !strchr("<[", text[i].data[0])) type[i] = PD_PIECE_NORMAL;
    }
    for (size_t i = 0; i < PD_COUNT(gemma4_control); i++) {
        text[gemma4_control[i].id] = (struct pd_string){gemma4_control[i].text, strlen(gemma4_control[i].text)};
        type[gemma4_control[i].id] = gemma4_control[i].type;
    }
    find_merges(add_merge_line, &merges, p, true);
    assert_int_equal(pd_gguf_writer_open(&w, path), PERIDOT_OK);
    pd_gguf_writer_add_string(w, "general.architecture", "gemma4");
    pd_gguf_writer_add_string(w, "tokenizer.ggml.model", kind);
    add_text(w, "tokenizer.ggml.pre", pre);
    add_text(w, "tokenizer.chat_template", jinja);
    pd_gguf_writer_add_strings(w, "tokenizer.ggml.tokens", p->n, text);
    pd_gguf_writer_add_array(w, "tokenizer.ggml.scores", PD_META_FLOAT32, p->n, score);
    pd_gguf_writer_add_array(w, "tokenizer.ggml.token_type", PD_META_INT32, p->n, type);
    pd_gguf_writer_add_strings(w, "tokenizer.ggml.merges", merges.n, merges.lines);
    pd_gguf_writer_add_u32(w, "tokenizer.ggml.bos_token_id", (uint32_t)p->bos);
    pd_gguf_writer_add_u32(w, "tokenizer.ggml.eos_token_id", (uint32_t)p->eos);
    pd_gguf_writer_add_array(w, "tokenizer.ggml.suppress_tokens", PD_META_INT32, 2, (const int32_t[]){258883, 258882});
    assert_int_equal(pd_gguf_writer_begin(w), PERIDOT_OK);
    assert_int_equal(pd_gguf_writer_commit(w), PERIDOT_OK);
    free(text);
    free(score);
    free(type);
    free(merges.text.data);
    free(merges.lines);
    return merges.n;
}

/* ---- a byte-level vocabulary as a GGUF file ---- */

/* Strings into one buffer that must not move: `b` has room for all. */
static inline struct pd_string spell_bytes(struct pd_buffer *b, const struct pd_pieces *p, uint32_t id)
{
    struct pd_string s = {b->data + b->size, b->size};
    const char *text = pd_pieces_text(p, id);
    if (p->piece[id].type == PD_PIECE_NORMAL) pd_byte_level_write(b, text, p->piece[id].size);
    else pd_buffer_add(b, text, p->piece[id].size);
    assert_true(b->data + s.size == s.data);
    s.size = b->size - s.size;
    return s;
}

static inline void add_merges(struct pd_gguf_writer *w, struct pd_buffer *b, const struct pd_pieces *p)
{
    struct pd_string *lines = calloc(p->n_merges, sizeof *lines);
    for (uint32_t i = 0; i < p->n_merges; i++) {
        struct pd_string left = spell_bytes(b, p, p->merges[i].left);
        pd_buffer_add(b, " ", 1);
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
    struct pd_buffer b = {malloc(1 << 24), 0, 1 << 24, false};
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

/* ---- images ---- */

/* A conversation of golden data with images, by the template of that name: row i of image k is -100 (k + 1) - i. */
static inline void check_images(const peridot_vocab *v, yyjson_val *conversation, const char *name)
{
    enum { N_ROWS = 3, N_IMAGES = 4, MOST_CROPS = 4 };
    int32_t rows[N_IMAGES][(1 + MOST_CROPS) * N_ROWS], *ids;
    struct pd_chat_image images[N_IMAGES];
    struct pd_messages messages;
    size_t n, size;
    yyjson_val *n_crops = yyjson_obj_get(conversation, "n_crops");
    for (int k = 0; k < N_IMAGES; k++) {
        images[k] = (struct pd_chat_image){rows[k], N_ROWS, yyjson_get_uint(yyjson_arr_get(n_crops, (size_t)k))};
        for (int i = 0; i < (1 + MOST_CROPS) * N_ROWS; i++) rows[k][i] = -100 * (k + 1) - i;
    }
    char *json = yyjson_val_write(yyjson_obj_get(conversation, "messages"), 0, &size);
    yyjson_val *golden = yyjson_obj_get(conversation, "ids");
    const struct pd_calls calls = {.format = pd_call_format_find("gemma3")};
    assert_int_equal(pd_messages_from_json(&messages, json, size), PERIDOT_OK);
    assert_int_equal(messages.n_images, n_crops ? yyjson_arr_size(n_crops)
                                                : yyjson_get_uint(yyjson_obj_get(conversation, "n_images")));
    if (yyjson_get_bool(yyjson_obj_get(conversation, "written")))
        assert_int_equal(pd_tools_write_messages(&messages, &calls), PERIDOT_OK);
    const struct pd_chat_prompt prompt = {.template_name = name, .messages = &messages, .images = images,
                                          .think = yyjson_get_bool(yyjson_obj_get(conversation, "think"))};
    peridot_status status = pd_tokenizer_encode_chat(&ids, &n, v->tokenizer, &prompt);
    if (yyjson_is_null(golden)) {
        assert_int_equal(status, PERIDOT_ERROR_UNSUPPORTED);
        assert_non_null(strstr(peridot_last_error(), " of the role system"));
    } else {
        if (status != PERIDOT_OK) fail_msg("%s", peridot_last_error());
        expect_ids(ids, n, golden);
    }
    free(ids);
    free(json);
    pd_messages_free(&messages);
}

#endif
