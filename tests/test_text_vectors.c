/* The real vocabularies of Gemma and Llama against ids that the real tokenizers give, each in every form: a
 * sentencepiece model, a GGUF file and a tokenizer.json of the same pieces. The README of the data says how the vectors
 * are written. */
#include "text_shared.h"

static const struct real {
    const char *model, *vectors, *architecture;
    uint32_t n_pieces;
    const char *chat;      /* ids of one turn of "hi", NULL where there is no template */
} reals[] = {
    {"gemma2", "gemma", "gemma2", 256000, "2, 106, 1645, 108, 544, 107, 108, 106, 2516, 108"},
    {"gemma3", "gemma3", "gemma3", 262145, "2, 105, 2364, 107, 2202, 106, 107, 105, 4368, 107"},
    {"llama2", "llama2", "llama", 32000, NULL},
    {"llama3", "llama32", "llama", 128256,
     "128000, 128006, 9125, 128007, 271, 38766, 1303, 33025, 2696, 25, 6790, 220, 2366, 18, 198, 15724, 2696, 25, "
     "220, 1627, 10263, "
     "220, 2366, 19, 271, 128009, 128006, 882, 128007, 271, 6151, 128009, 128006, 78191, 128007, 271"},
};

/* ---- the same pieces as a GGUF file, as the usual converter writes them ---- */

static void write_gguf(const struct real *real, const struct pd_pieces *p)
{
    struct pd_string *text = calloc(p->n, sizeof *text);
    float *score = calloc(p->n, sizeof *score);
    int32_t *type = calloc(p->n, sizeof *type);
    struct pd_buffer b = {malloc(1 << 20), 0, 1 << 20, false};   /* must not move */
    for (uint32_t i = 0; i < p->n; i++) {
        const struct pd_piece *piece = &p->piece[i];
        bool added = piece->type == PD_PIECE_USER || piece->type == PD_PIECE_CONTROL || piece->type == PD_PIECE_UNKNOWN;
        text[i] = (struct pd_string){pd_pieces_text(p, i), piece->size};
        if (piece->type == PD_PIECE_USER) text[i] = unescaped(&b, text[i].data, piece->size);
        score[i] = added ? -1000 : piece->score;
        type[i] = piece->type == PD_PIECE_UNKNOWN ? PD_PIECE_CONTROL : piece->type;
    }
    struct pd_gguf_writer *w;
    assert_int_equal(pd_gguf_writer_open(&w, in_folder("tiny.gguf")), PERIDOT_OK);
    pd_gguf_writer_add_string(w, "general.architecture", real->architecture);
    pd_gguf_writer_add_string(w, "general.name", "A Model It");
    pd_gguf_writer_add_string(w, "tokenizer.ggml.model", "llama");
    pd_gguf_writer_add_strings(w, "tokenizer.ggml.tokens", p->n, text);
    pd_gguf_writer_add_array(w, "tokenizer.ggml.scores", PD_META_FLOAT32, p->n, score);
    pd_gguf_writer_add_array(w, "tokenizer.ggml.token_type", PD_META_INT32, p->n, type);
    pd_gguf_writer_add_u32(w, "tokenizer.ggml.bos_token_id", (uint32_t)p->bos);
    pd_gguf_writer_add_u32(w, "tokenizer.ggml.eos_token_id", (uint32_t)p->eos);
    pd_gguf_writer_add_bool(w, "tokenizer.ggml.add_space_prefix", p->dummy_prefix);
    assert_int_equal(pd_gguf_writer_begin(w), PERIDOT_OK);
    assert_int_equal(pd_gguf_writer_commit(w), PERIDOT_OK);
    free(text);
    free(score);
    free(type);
    free(b.data);
}

/* ---- vectors ---- */

/* Encodes and compares; then decodes and streams, which must give the text again. `text` with U+2581 in it comes back
 * with spaces, as it does from sentencepiece, unless the vocabulary is byte-level. */
static void check_text(const peridot_vocab *v, const char *text, size_t size, const char *want)
{
    int32_t *ids;
    size_t n, back_size;
    char *back;
    assert_int_equal(peridot_encode(&ids, &n, v, text, size, 0), PERIDOT_OK);
    char *made = list(ids, n);
    assert_string_equal(made, want);
    assert_int_equal(peridot_decode(&back, &back_size, v, ids, n), PERIDOT_OK);
    struct pd_buffer expected = {0}, streamed = {0}, part = {0};
    struct pd_stream s = {0};
    expected.data = malloc(size + 1);
    expected.capacity = size + 1;
    if (v->tokenizer->pieces.algorithm == PD_ALGORITHM_BYTE_MERGES) pd_buffer_add(&expected, text, size);
    else unescaped(&expected, text, size);
    assert_int_equal(back_size, expected.size);
    assert_memory_equal(back, expected.data, expected.size);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(pd_stream_next(&s, &part, v->tokenizer, ids[i]), PERIDOT_OK);
        pd_buffer_add(&streamed, part.data, part.size);
    }
    assert_int_equal(streamed.size, back_size);
    if (back_size) assert_memory_equal(streamed.data, back, back_size);
    free(expected.data);
    free(streamed.data);
    free(part.data);
    free(made);
    peridot_free(back);
    peridot_free(ids);
}

/* "\n" and "\s" stand for a newline and a space. In place; the new size. */
static size_t unescape_line(char *line)
{
    size_t size = 0;
    for (char *c = line; *c; c++) {
        bool escape = *c == '\\' && (c[1] == 'n' || c[1] == 's');
        line[size++] = !escape ? *c : c[1] == 'n' ? '\n' : ' ';
        c += escape;
    }
    return size;
}

/* Lines end at "\n" only; the next line's start in *rest. */
static char *next_line(char **rest)
{
    char *line = *rest, *end = strchr(line, '\n');
    *rest = end ? end + 1 : line + strlen(line);
    if (end) *end = 0;
    return line;
}

static void check_vectors(const peridot_vocab *v, const struct real *real)
{
    char *input = read_file("vectors/%s", "small_input.txt");
    char *want = read_file("vectors/small_tokens_%s.txt", real->vectors);
    char *text_rest = input, *want_rest = want;
    unsigned n = 0;
    for (; *text_rest; n++) {
        char *text = next_line(&text_rest);
        check_text(v, text, unescape_line(text), next_line(&want_rest));
    }
    assert_int_equal(n, 20);
    free(input);
    free(want);
    input = read_file("vectors/%s", "utf8_input.txt");
    want = read_file("vectors/utf8_tokens_%s.txt", real->vectors);
    want_rest = want;
    check_text(v, input, strlen(input), next_line(&want_rest));
    free(input);
    free(want);
}

/* ---- control tokens ---- */

/* The names of all control pieces, one after the other: parsed, they are those pieces; plain, there is none of them. */
static void check_control(const peridot_vocab *v)
{
    const struct pd_pieces *p = &v->tokenizer->pieces;
    const struct pd_special *special = &v->tokenizer->special;
    struct pd_buffer names = {0};
    int32_t *ids;
    size_t n;
    for (uint32_t i = 0; i < special->n; i++)
        pd_buffer_add(&names, pd_pieces_text(p, special->ids[i]), p->piece[special->ids[i]].size);
    assert_int_equal(peridot_encode(&ids, &n, v, names.data, names.size, SPECIAL), PERIDOT_OK);
    assert_int_equal(n, special->n);
    for (size_t i = 0; i < n; i++) assert_int_equal(ids[i], special->ids[i]);
    peridot_free(ids);
    assert_int_equal(peridot_encode(&ids, &n, v, names.data, names.size, 0), PERIDOT_OK);
    for (size_t i = 0; i < n; i++) assert_int_not_equal(p->piece[ids[i]].type, PD_PIECE_CONTROL);
    peridot_free(ids);
    free(names.data);
}

static void check_chat(const peridot_vocab *v, const struct real *real)
{
    int32_t *ids;
    size_t n;
    assert_int_equal(peridot_vocab_has_chat(v), real->chat != NULL);
    if (!real->chat) return;
    assert_int_equal(peridot_encode_chat(&ids, &n, v, " hi\n"), PERIDOT_OK);
    char *made = list(ids, n);
    assert_string_equal(made, real->chat);
    free(made);
    assert_true(pd_tokenizer_is_stop(v->tokenizer, v->tokenizer->pieces.eos));
    assert_true(pd_tokenizer_is_stop(v->tokenizer, ids[n - 5]));   /* what ended the user's turn */
    peridot_free(ids);
}

static peridot_vocab *check_form(const struct real *real, const char *path)
{
    peridot_vocab *v = open_vocab(path);
    assert_int_equal(peridot_vocab_size(v), real->n_pieces);
    check_vectors(v, real);
    check_control(v);
    return v;
}

static void check_real(const struct real *real)
{
    char path[512];
    skip_without_data();
    peridot_vocab *model = check_form(real, shared_path(path, "tokenizers/%s.model", real->model));
    assert_false(peridot_vocab_has_chat(model));
    write_gguf(real, &model->tokenizer->pieces);
    peridot_vocab *v = check_form(real, in_folder("tiny.gguf"));
    check_chat(v, real);
    peridot_vocab_close(v);
    write_tokenizer_json(in_folder("tiny.json"), &model->tokenizer->pieces);
    v = check_form(real, in_folder("tiny.json"));
    assert_int_equal(pd_tokenizer_bos(v->tokenizer), pd_tokenizer_bos(model->tokenizer));
    peridot_vocab_close(v);
    peridot_vocab_close(model);
}

static void test_gemma2(void **state) { (void)state; check_real(&reals[0]); }
static void test_gemma3(void **state) { (void)state; check_real(&reals[1]); }
static void test_llama2(void **state) { (void)state; check_real(&reals[2]); }

static void check_gemma4(const struct real *real, const char *path)
{
    static const int32_t stops[] = {1, 50, 106};
    peridot_vocab *v = check_form(real, path);
    const struct pd_tokenizer *t = v->tokenizer;
    int32_t *ids;
    size_t n, n_stops = 0;
    for (uint32_t i = 0; i < real->n_pieces; i++) n_stops += pd_tokenizer_is_stop(t, (int32_t)i);
    assert_int_equal(n_stops, PD_COUNT(stops));
    for (size_t i = 0; i < PD_COUNT(stops); i++) assert_true(pd_tokenizer_is_stop(t, stops[i]));
    assert_int_equal(pd_tokenizer_n_suppressed(t), 2);
    assert_true(pd_tokenizer_is_suppressed(t, 258882) && pd_tokenizer_is_suppressed(t, 258883));
    assert_int_equal(peridot_encode(&ids, &n, v, "Hello\n\n  \t", 10, BOS), PERIDOT_OK);
    char *made = list(ids, n);
    assert_string_equal(made, "2, 9259, 108, 138, 255968");
    free(made);
    peridot_free(ids);
    assert_int_equal(peridot_encode(&ids, &n, v, "</s><|channel><bos>", 19, 0), PERIDOT_OK);
    for (size_t i = 0; i < n; i++) assert_true(t->pieces.piece[ids[i]].type != PD_PIECE_CONTROL);
    assert_int_equal(ids[0], 212);
    peridot_free(ids);
    expect_text(v, (const int32_t[]){212, 98, 9259}, 3, "</s>Hello");
    peridot_vocab_close(v);
}

/* Gemma 4's vocabulary as far as it is Gemma 3's: the merges of such a vocabulary give the ids that its scores give. */
static void test_gemma4(void **state)
{
    (void)state;
    char path[512];
    skip_without_data();
    peridot_vocab *model = open_vocab(shared_path(path, "tokenizers/%s.model", "gemma3"));
    const struct pd_pieces *p = &model->tokenizer->pieces;
    uint64_t n = write_gemma4_gguf(in_folder("tiny.gguf"), p, "gemma4", NULL, NULL);
    assert_int_equal(n, 514906);   /* as many as the published vocabulary has */
    check_gemma4(&reals[1], in_folder("tiny.gguf"));
    write_gemma4_gguf(in_folder("tiny.gguf"), p, "llama", "gemma4", NULL);   /* Ollama's */
    check_gemma4(&reals[1], in_folder("tiny.gguf"));
    peridot_vocab_close(model);
}

/* Files from before tokenizer.ggml.pre lack it. */
static void test_llama3(void **state)
{
    (void)state;
    static const char *const pre[] = {"llama-bpe", "llama3", NULL};
    const struct real *real = &reals[3];
    char path[512];
    skip_without_data();
    peridot_vocab *json = check_form(real, shared_path(path, "tokenizers/%s", "llama3.tokenizer.json"));
    assert_false(peridot_vocab_has_chat(json));
    for (size_t i = 0; i < PD_COUNT(pre); i++) {
        write_byte_level_gguf(in_folder("tiny.gguf"), &json->tokenizer->pieces, pre[i]);
        peridot_vocab *v = check_form(real, in_folder("tiny.gguf"));
        check_chat(v, real);
        peridot_vocab_close(v);
    }
    peridot_vocab_close(json);
}

/* A directory and a GGUF file that others made. */
static void test_stories260k(void **state)
{
    (void)state;
    char path[512];
    static const char text[] = "Once upon a time, there was a little girl named Lily.";
    static const char want[] = "1, 403, 407, 261, 378, 432, 383, 286, 261, 376, 298, 315, 421, 395, 317, 426";
    skip_without_data();
    for (int form = 0; form < 2; form++) {
        peridot_vocab *v = open_vocab(shared_path(path, "stories260K/%s", form ? "hf" : "stories260K.gguf"));
        int32_t *ids;
        size_t n, size;
        char *back;
        assert_int_equal(peridot_encode(&ids, &n, v, text, strlen(text), BOS), PERIDOT_OK);
        char *made = list(ids, n);
        assert_string_equal(made, want);
        free(made);
        assert_int_equal(peridot_decode(&back, &size, v, ids, n), PERIDOT_OK);
        assert_string_equal(back, text);
        peridot_free(back);
        peridot_free(ids);
        peridot_vocab_close(v);
    }
}

/* The demo model that ships with the project. */
static void test_demo_model(void **state)
{
    (void)state;
    static const char text[] = "Once upon a time there was a fox; \u201cgood day\u201d, said he.\n\nThe end.";
    int32_t *ids;
    size_t n, size;
    char *back;
    if (!pd_is_file(PERIDOT_MODELS "/stories.gguf")) {
        print_message("skipped: there is no " PERIDOT_MODELS "/stories.gguf\n");
        skip();
    }
    peridot_vocab *v = open_vocab(PERIDOT_MODELS "/stories.gguf");
    assert_int_equal(peridot_encode(&ids, &n, v, text, strlen(text), BOS), PERIDOT_OK);
    assert_int_equal(ids[0], pd_tokenizer_bos(v->tokenizer));
    assert_int_equal(peridot_decode(&back, &size, v, ids, n), PERIDOT_OK);
    assert_string_equal(back, text);
    check_control(v);
    peridot_free(back);
    peridot_free(ids);
    peridot_vocab_close(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemma2), cmocka_unit_test(test_gemma3), cmocka_unit_test(test_llama2),
        cmocka_unit_test(test_llama3), cmocka_unit_test(test_gemma4),
        cmocka_unit_test(test_stories260k), cmocka_unit_test(test_demo_model),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
