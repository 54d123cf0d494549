/* Vision towers that are not what they should be: files whose tensors or numbers are wrong are refused with a sentence
 * that names the place, and a tower that fails at work ends the request whose image it was, and no other. */
#include "vision_fixture.h"

#include "format/format.h"
#include "gpu/gpu_.h"

#include <math.h>

#define GEMMA3 "gemma3-vision"
#define TEXT PERIDOT_GOLDEN "/" GEMMA3 "/model.gguf"
#define TOWER "tower.gguf"

enum { CTX = 256, N_TEXT = 12, WEIGHTS_SIZE = 1 << 20 };   /* of the tower, and not enough for its activations */

/* ---- files with something changed ---- */

/* Bytes that are there once, or the first of them. */
static uint8_t *find_bytes(uint8_t *data, size_t size, const void *what, size_t n)
{
    for (size_t i = 0; i + n <= size; i++)
        if (memcmp(data + i, what, n) == 0) return data + i;
    fail_msg("not in the file: %s", (const char *)what);
    return NULL;
}

static uint8_t *find_text(uint8_t *data, size_t size, const char *text)
{
    return find_bytes(data, size, text, strlen(text));
}

static uint8_t *read_tower(size_t *size, const char *model) { return read_golden(model, "mmproj.gguf", size); }

static void write_tower(uint8_t *data, size_t size)
{
    write_file(TOWER, data, size);
    free(data);
}

static peridot_status open_with(peridot_model **out, const char *text, const char *tower)
{
    const peridot_model_params params = {.size = sizeof params, .vision = tower, .image_rows = 70};
    return peridot_model_open(out, text, &params);
}

/* Of a tensor's entry the name, or what comes at a place after it: [n_dims, dims[n_dims], type]. Of a key the value. */
static const struct damage {
    const char *model, *at, *name;     /* name: in the place of `at`, which is as long; NULL: as it is */
    size_t offset, size;               /* from the end of `at` on are the bytes of */
    uint64_t value;                    /* this, unless size is 0 */
    peridot_status status;
    const char *sentence;
} damages[] = {
    /* tensors */
    {GEMMA3, "v.blk.1.ln1.weight", "v.blk.1.ln9.weight", 0, 0, 0, PERIDOT_ERROR_FORMAT,
     "tensor v.blk.1.ln1.weight is missing"},
    {GEMMA3, "v.blk.0.attn_q.bias", "v.blk.0.attn_z.bias", 0, 0, 0, PERIDOT_ERROR_FORMAT,
     "tensor v.blk.0.attn_q.bias is missing"},
    {GEMMA3, "mm.soft_emb_norm.weight", "mm.soft_emb_morm.weight", 0, 0, 0, PERIDOT_ERROR_FORMAT,
     "tensor mm.soft_emb_norm.weight is missing"},
    {"gemma4-vision", "v.blk.1.ffn_up.output_max", "v.blk.1.ffn_up.output_mix", 0, 0, 0, PERIDOT_ERROR_FORMAT,
     "tensor v.blk.1.ffn_up.output_max is missing"},
    {"gemma4-unified-vision", "v.patch_norm.2.bias", "v.patch_morm.2.bias", 0, 0, 0, PERIDOT_ERROR_FORMAT,
     "tensor v.patch_norm.2.bias is missing"},
    {GEMMA3, "v.position_embd.weight", NULL, 4, 8, 48, PERIDOT_ERROR_FORMAT, "v.position_embd.weight"},
    {GEMMA3, "mm.input_projection.weight", NULL, 4, 8, 32, PERIDOT_ERROR_FORMAT,
     "mm.input_projection.weight does not make the 64 numbers of a row of the text model of the tower's 96"},
    {GEMMA3, "v.blk.0.ffn_up.weight", NULL, 12, 8, 52, PERIDOT_ERROR_FORMAT, "v.blk.0.ffn_up.weight"},
    {GEMMA3, "v.blk.0.ffn_up.weight", NULL, 20, 4, 25, PERIDOT_ERROR_UNSUPPORTED, "v.blk.0.ffn_up.weight"},   /* i16 */
    {GEMMA3, "v.blk.0.ffn_up.weight", NULL, 20, 4, 99, PERIDOT_ERROR_UNSUPPORTED, "v.blk.0.ffn_up.weight"},
    {"qwen35-vision", "v.patch_embd.weight.1", "v.patch_embd.weight.2", 0, 0, 0, PERIDOT_ERROR_FORMAT,
     "v.patch_embd.weight.1 is missing"},
    {"qwen35-vision", "mm.2.weight", "mm.3.weight", 0, 0, 0, PERIDOT_ERROR_FORMAT, "mm.2.weight is missing"},
    {"qwen35-vision", "v.position_embd.weight", NULL, 12, 8, 35, PERIDOT_ERROR_FORMAT, "not that of a square"},
    {"qwen35-vision", "clip.vision.embedding_length", NULL, 4, 4, 40, PERIDOT_ERROR_FORMAT, "multiple of 32"},
    {"gemma4-vision", "v.position_embd.weight", NULL, 20, 8, 1, PERIDOT_ERROR_FORMAT, "position_embedding"},
    /* numbers */
    {GEMMA3, "clip.vision.projection_dim", "clip.vision.projection_dix", 0, 0, 0, PERIDOT_OK, NULL},   /* not read */
    {GEMMA3, "clip.vision.image_size", NULL, 4, 4, 0, PERIDOT_ERROR_FORMAT, "clip.vision.image_size is not between"},
    {GEMMA3, "clip.vision.image_size", NULL, 4, 4, 97, PERIDOT_ERROR_FORMAT, "image_size is not a whole number"},
    {GEMMA3, "clip.vision.image_size", NULL, 4, 4, 12000, PERIDOT_ERROR_FORMAT, "makes pictures too large"},
    {GEMMA3, "clip.vision.image_size", NULL, 0, 4, 6, PERIDOT_ERROR_FORMAT, "clip.vision.image_size is not a count"},
    {GEMMA3, "clip.vision.patch_size", NULL, 4, 4, 1u << 31, PERIDOT_ERROR_FORMAT, "clip.vision.patch_size is not"},
    {GEMMA3, "clip.vision.embedding_length", NULL, 4, 4, 0, PERIDOT_ERROR_FORMAT, "embedding_length is not between"},
    {GEMMA3, "clip.vision.embedding_length", NULL, 4, 4, 98, PERIDOT_ERROR_FORMAT, "attention.head_count"},
    {GEMMA3, "clip.vision.embedding_length", "clip.vision.embedding_lenght", 0, 0, 0, PERIDOT_ERROR_FORMAT,
     "clip.vision.embedding_length is missing"},
    {GEMMA3, "clip.vision.embedding_length", NULL, 4, 4, 65536, PERIDOT_ERROR_FORMAT, "heads that are too long"},
    {GEMMA3, "clip.vision.feed_forward_length", NULL, 4, 4, 100, PERIDOT_ERROR_FORMAT, "v.blk.0.ffn_"},
    {GEMMA3, "clip.vision.block_count", NULL, 4, 4, 1024, PERIDOT_ERROR_FORMAT, "v.blk.2.ln1.weight is missing"},
    {GEMMA3, "clip.vision.block_count", NULL, 4, 4, 1025, PERIDOT_ERROR_FORMAT, "block_count is not between 1 and"},
    {GEMMA3, "clip.vision.attention.head_count", NULL, 4, 4, 0, PERIDOT_ERROR_FORMAT, "head_count is not between"},
    {GEMMA3, "clip.vision.attention.head_count", NULL, 4, 4, 97, PERIDOT_ERROR_FORMAT, "multiple of 4"},
    {GEMMA3, "attention.layer_norm_epsilon", NULL, 4, 4, 0x7fc00000, PERIDOT_ERROR_FORMAT, "epsilon is not between"},
    {GEMMA3, "clip.vision.image_std", NULL, 16, 4, 0, PERIDOT_ERROR_FORMAT, "image_std is not three positive"},
    {GEMMA3, "clip.vision.image_mean", NULL, 16, 4, 0x7fc00000, PERIDOT_ERROR_FORMAT, "image_std is not three"},
    /* other files */
    {GEMMA3, "gemma3", "pixtra", 0, 0, 0, PERIDOT_OK, NULL},   /* its name */
    {"gemma4-vision", "gemma4v", "pixtral", 0, 0, 0, PERIDOT_ERROR_UNSUPPORTED, "of type \"pixtral\" is not known"},
    {"gemma4-vision", "gemma4v", "gemma4a", 0, 0, 0, PERIDOT_ERROR_UNSUPPORTED, "of type \"gemma4a\" is not known"},
    {"gemma4-vision", "clip.vision.projector_type", "clip.vision.projector_tipe", 0, 0, 0, PERIDOT_ERROR_FORMAT,
     "it has no clip.projector_type"},
};

/* As smart_resize of transformers has them, and within the rows whatever the shape. */
static void test_qwen_sizes(void **state)
{
    (void)state;
    static const struct { uint32_t from[2], rows, want[2]; } rows[] = {
        {{640, 480}, 1120, {640, 480}}, {{4032, 3024}, 1120, {1216, 896}}, {{100, 80}, 1120, {288, 256}},
        {{48, 1000}, 1120, {64, 1184}}, {{80, 112}, 1120, {224, 320}}, {{16, 16}, 1120, {256, 256}},
        {{1000, 50}, 1120, {1152, 64}}, {{333, 777}, 1120, {320, 768}},
        {{8000, 40}, 70, {2240, 32}}, {{16, 16}, 20, {128, 128}}, {{100, 10000}, 8, {32, 256}}};
    uint32_t size[2];
    for (size_t i = 0; i < PD_COUNT(rows); i++) {
        const struct pd_tower_config c = {.kind = PD_TOWER_QWEN, .patch = 16, .pool = 2, .most_rows = rows[i].rows,
                                          .least_pixels = 65536};
        EXPECT_OK(pd_tower_size(&size[0], &size[1], &c, rows[i].from[0], rows[i].from[1]));
        if (size[0] != rows[i].want[0] || size[1] != rows[i].want[1])
            fail_msg("%u x %u: %u x %u", rows[i].from[0], rows[i].from[1], size[0], size[1]);
    }
    const struct pd_tower_config c = {.kind = PD_TOWER_QWEN, .patch = 16, .pool = 2, .most_rows = 70};
    EXPECT_FAILURE(pd_tower_size(&size[0], &size[1], &c, 8001, 40), PERIDOT_ERROR_ARGUMENT, "too long and narrow");
}

static void test_damages(void **state)
{
    (void)state;
    for (size_t i = 0; i < PD_COUNT(damages); i++) {
        const struct damage *d = &damages[i];
        char text[1024];
        size_t size;
        peridot_model *model;
        uint8_t *data = read_tower(&size, d->model), *at = find_text(data, size, d->at);
        size_t n = strlen(d->at);
        if (d->name) memcpy(at, d->name, n);
        memcpy(at + n + d->offset, &d->value, d->size);
        write_tower(data, size);
        bool is_gemma3 = strcmp(d->model, GEMMA3) == 0;
        snprintf(text, sizeof text, PERIDOT_GOLDEN "/%s%s", d->model, is_gemma3 ? "/model.gguf" : "");
        peridot_status status = open_with(&model, text, in_folder(TOWER));
        if (status != d->status) fail_msg("%s: status %d, %s", d->at, (int)status, peridot_last_error());
        if (status == PERIDOT_OK) {
            peridot_model_close(model);
            continue;
        }
        assert_null(model);
        if (!strstr(peridot_last_error(), d->sentence) || !strstr(peridot_last_error(), TOWER))
            fail_msg("\"%s\" is not in \"%s\"", d->sentence, peridot_last_error());
    }
    remove(in_folder(TOWER));
}

/* What is no tower at all, or one of another model. */
static void test_other_files(void **state)
{
    static const struct { const char *text, *tower; peridot_status status; const char *sentence; } others[] = {
        {TEXT, PERIDOT_GOLDEN "/none.gguf", PERIDOT_ERROR_IO, "none.gguf"},
        {TEXT, TEXT, PERIDOT_ERROR_FORMAT, "it is not the vision part of a model"},
        {TEXT, PERIDOT_GOLDEN "/" GEMMA3 "/image-1.png", PERIDOT_ERROR_FORMAT, "image-1.png"},
        {TEXT, PERIDOT_GOLDEN "/gemma4-vision/mmproj.gguf", PERIDOT_ERROR_ARGUMENT, "one of gemma4, which does not"},
        {PERIDOT_GOLDEN "/gemma2-q8_0/model.gguf", PERIDOT_GOLDEN "/" GEMMA3 "/mmproj.gguf", PERIDOT_ERROR_ARGUMENT,
         "one of gemma3, which does not fit"},
    };
    (void)state;
    for (size_t i = 0; i < PD_COUNT(others); i++) {
        peridot_model *model;
        peridot_status status = open_with(&model, others[i].text, others[i].tower);
        if (status != others[i].status || !strstr(peridot_last_error(), others[i].sentence))
            fail_msg("%s: status %d, \"%s\"", others[i].tower, (int)status, peridot_last_error());
    }
}

/* Without a tower a model is as good as ever for text, and says why it sees nothing. */
static void test_blind(void **state)
{
    static const struct { const char *text, *sentence; } blind[] = {
        {TEXT, "is in a file of its own (mmproj), and none was given"},
        {PERIDOT_GOLDEN "/gemma3", " does not see images"},
        {PERIDOT_GOLDEN "/llama/model.gguf", " does not see images"},
    };
    (void)state;
    for (size_t i = 0; i < PD_COUNT(blind); i++) {
        peridot_model *model;
        peridot_image *image;
        const char *sentence;
        int32_t tokens[] = {2, 3};
        const uint8_t pixel[3] = {0};
        EXPECT_OK(open_with(&model, blind[i].text, NULL));
        assert_int_equal(peridot_model_get_info(model)->image_rows, 0);
        EXPECT_FAILURE(peridot_image_read(&image, model, pixel, 3, NULL, NULL), PERIDOT_ERROR_UNSUPPORTED,
                       blind[i].sentence);
        EXPECT_FAILURE(peridot_image_pixels(&image, model, pixel, 1, 1, NULL), PERIDOT_ERROR_UNSUPPORTED,
                       blind[i].sentence);
        EXPECT_FAILURE(peridot_images_place(tokens, 2, model, NULL, 0), PERIDOT_ERROR_UNSUPPORTED, blind[i].sentence);
        sentence = peridot_last_error();
        assert_string_equal(sentence + strlen(sentence) - strlen(blind[i].sentence), blind[i].sentence);
        peridot_model_close(model);
    }
}

/* ---- a tower that fails at work ---- */

struct text {
    int32_t tokens[N_TEXT];
    uint32_t n, n_asked, n_most;       /* progress: so often, until it says no; 0: never */
};

static bool keep_token(void *user, int32_t token, const char *text, size_t size)
{
    struct text *t = user;
    (void)text, (void)size;
    if (token >= 0) t->tokens[t->n++] = token;
    return true;
}

static bool ask(void *user, uint64_t done, uint64_t total)
{
    struct text *t = user;
    assert_true(done <= total);
    return ++t->n_asked != t->n_most;
}

static peridot_session *open_session(const struct seeing *s)
{
    peridot_session *session;
    EXPECT_OK(peridot_session_create(&session, s->model,
        &(peridot_session_params){.size = sizeof(peridot_session_params), .ctx = CTX, .n_sequences = 3}));
    return session;
}

static const int32_t plain[] = {2, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51};

static peridot_request_params params_of(const struct seeing *s, bool sees, struct text *out)
{
    static const peridot_sampling chain = {.size = sizeof chain, .temperature = 5, .top_k = 40, .seed = 3};
    *out = (struct text){.n_most = out->n_most};
    return (peridot_request_params){.size = sizeof(peridot_request_params), .prompt = sees ? s->one : plain,
        .n_prompt = sees ? s->n_one : PD_COUNT(plain), .n_max = N_TEXT, .text = keep_token, .progress = ask,
        .user = out, .sampling = &chain};
}

static void run(peridot_session *session)
{
    size_t n_running = 1;
    while (n_running) EXPECT_OK(peridot_session_run(session, &n_running));
}

/* Three requests, of which the second has the image: it ends with `status` and the sentence, the others as they would
 * without it. */
static void check_failing(const struct seeing *s, uint32_t n_most, peridot_status want, const char *sentence)
{
    struct text alone = {0}, texts[3] = {{.n = 0}, {.n_most = n_most}, {.n = 0}};
    peridot_request *requests[3];
    peridot_session *session = open_session(s);
    peridot_request_params params = params_of(s, false, &alone);
    EXPECT_OK(peridot_request_submit(&requests[0], session, &params));
    run(session);
    peridot_request_free(requests[0]);
    peridot_session_free(session);
    session = open_session(s);
    uint64_t size = s->model->m.gpu->info.heap_size;
    if (want == PERIDOT_ERROR_MEMORY) s->model->m.gpu->info.heap_size = 1000;
    for (int i = 0; i < 3; i++) {
        params = params_of(s, i == 1, &texts[i]);
        EXPECT_OK(peridot_request_submit(&requests[i], session, &params));
    }
    run(session);
    for (int i = 0; i < 3; i++) {
        peridot_status status;
        peridot_stats stats = {.size = sizeof stats};
        assert_true(peridot_request_done(requests[i], &status, &stats));
        assert_int_equal(status, i == 1 ? want : PERIDOT_OK);
        assert_int_equal(stats.n_preempted, 0);
        if (i == 1) expect_sentence((const char *const[]){sentence, NULL});
        else assert_memory_equal(texts[i].tokens, alone.tokens, sizeof alone.tokens);
        peridot_request_free(requests[i]);
    }
    assert_int_equal(texts[1].n, 0);
    params = params_of(s, true, &texts[1]);
    peridot_sequence *q;
    EXPECT_OK(peridot_sequence_create(&q, session));
    texts[1].n_most = n_most;
    EXPECT_FAILURE(peridot_generate(q, &params, NULL), want, sentence);
    if (n_most == 0) EXPECT_FAILURE(peridot_sequence_eval(q, s->one, s->n_one, NULL), want, sentence);
    assert_null(engine_of(s->images[0])->rows);
    s->model->m.gpu->info.heap_size = size;
    peridot_session_free(session);
}

/* ---- a tower in the model's own file ---- */

/* Names of a tower's tensors as Ollama's converter has them, for which the others are written. */
static const char *ollama_name(char out[128], const char *name)
{
    static const char *const names[][2] = {{".patch_embd.", ".patch_embedding."}, {".post_ln.", ".post_layernorm."},
        {".position_embd.", ".position_embedding."}, {"mm.soft_emb", "mm.mm_soft_emb"}, {".ln1.", ".layer_norm1."},
        {"mm.input_proj", "mm.mm_input_proj"}, {".attn_out.", ".attn_output."}, {".ln2.", ".layer_norm2."},
        {".ffn_up.", ".mlp.fc1."}, {".ffn_down.", ".mlp.fc2."}};
    snprintf(out, 128, "%s", name);
    for (size_t i = 0; i < PD_COUNT(names); i++) {
        const char *at = strstr(name, names[i][0]);
        if (at) snprintf(out, 128, "%.*s%s%s", (int)(at - name), name, names[i][1], at + strlen(names[i][0]));
    }
    return out;
}

static void add_tensors(struct pd_gguf_writer *w, const struct pd_checkpoint *c, bool ollama, bool data)
{
    char name[128];
    for (size_t i = 0; i < pd_checkpoint_n_tensors(c); i++) {
        const struct pd_tensor *t = pd_checkpoint_tensor(c, i);
        if (data) EXPECT_OK(pd_gguf_writer_write(w, t->data, (size_t)t->size));
        else pd_gguf_writer_add_tensor(w, ollama ? ollama_name(name, t->name) : t->name, t->dtype, t->n_dims, t->shape);
    }
}

/* Text and tower in one file, with keys under the model's name and without the text's epsilon, as Ollama's blobs are,
 * and something of a part that Peridot does not know. */
static void write_blob(const char *path, bool ollama)
{
    static const char before[] = "clip.vision.";
    static const uint64_t shape[] = {4};
    const float other[4] = {0};
    struct pd_checkpoint *text, *tower;
    struct pd_gguf_writer *w;
    char key[128];
    EXPECT_OK(pd_checkpoint_open(&text, TEXT, true));
    EXPECT_OK(pd_checkpoint_open(&tower, PERIDOT_GOLDEN "/" GEMMA3 "/mmproj.gguf", true));
    EXPECT_OK(pd_gguf_writer_open(&w, path));
    for (size_t i = 0; i < pd_checkpoint_n_meta(text); i++)
        if (!strstr(pd_checkpoint_meta(text, i)->key, "rms_epsilon"))
            pd_gguf_writer_add_meta(w, pd_checkpoint_meta(text, i));
    for (size_t i = 0; i < pd_checkpoint_n_meta(tower); i++) {
        struct pd_meta m = *pd_checkpoint_meta(tower, i);
        if (strncmp(m.key, before, strlen(before)) != 0 || (ollama && strstr(m.key, "scale_factor"))) continue;
        snprintf(key, sizeof key, "gemma3.vision.%s", m.key + strlen(before));
        m.key = key;
        pd_gguf_writer_add_meta(w, &m);
    }
    if (ollama) pd_gguf_writer_add_u32(w, "gemma3.mm.tokens_per_image", 16);
    add_tensors(w, text, false, false);
    add_tensors(w, tower, ollama, false);
    pd_gguf_writer_add_tensor(w, "a.conv1d.weight", PD_F32, 1, shape);
    EXPECT_OK(pd_gguf_writer_begin(w));
    add_tensors(w, text, false, true);
    add_tensors(w, tower, ollama, true);
    EXPECT_OK(pd_gguf_writer_write(w, other, sizeof other));
    EXPECT_OK(pd_gguf_writer_commit(w));
    pd_checkpoint_close(text);
    pd_checkpoint_close(tower);
}

static void describe(struct text *out, const char *path, const char *tower)
{
    const peridot_model_params open = {.size = sizeof open, .vision = tower};
    struct seeing s = {.name = GEMMA3};
    *out = (struct text){.n = 0};
    EXPECT_OK(peridot_model_open(&s.model, path, &open));
    s.images[0] = read_image(s.model, GEMMA3, "image-1.png");
    s.n_one = read_golden_ids(s.one, MAX_TOKENS, GEMMA3, "tokens.txt");
    EXPECT_OK(peridot_images_place(s.one, s.n_one, s.model, s.images, 1));
    peridot_session *session = open_session(&s);
    peridot_sequence *q;
    EXPECT_OK(peridot_sequence_create(&q, session));
    const peridot_request_params params = params_of(&s, true, out);
    EXPECT_OK(peridot_generate(q, &params, NULL));
    peridot_session_free(session);
    seeing_close(&s);
}

static void test_inside(void **state)
{
    struct text want, got;
    (void)state;
    describe(&want, TEXT, PERIDOT_GOLDEN "/" GEMMA3 "/mmproj.gguf");
    for (int ollama = 0; ollama < 2; ollama++) {
        peridot_file *file;
        write_blob(in_folder(TOWER), ollama);
        describe(&got, in_folder(TOWER), NULL);
        assert_int_equal(got.n, want.n);
        assert_memory_equal(got.tokens, want.tokens, sizeof want.tokens);
        EXPECT_OK(peridot_file_open(&file, in_folder(TOWER)));
        EXPECT_OK(peridot_file_check(file));
        assert_non_null(peridot_file_vision(file));
        peridot_file_close(file);
    }
    remove(in_folder(TOWER));
}

static void open_tower(struct seeing *s, const char *tower)
{
    const peridot_model_params params = {.size = sizeof params, .vision = tower};
    seeing_open(s, GEMMA3, "/model.gguf", &params);
}

static void test_not_finite(void **state)
{
    static const char *const tensors[] = {"v.post_ln.weight", "v.blk.1.attn_v.weight", "mm.soft_emb_norm.weight"};
    (void)state;
    for (size_t i = 0; i < PD_COUNT(tensors); i++) {
        struct pd_checkpoint *c;
        struct seeing s;
        size_t size;
        const uint32_t nans[] = {0xffffffff, 0xffffffff};   /* in F32 and F16 */
        uint8_t *data = read_tower(&size, GEMMA3);
        EXPECT_OK(pd_checkpoint_open(&c, PERIDOT_GOLDEN "/" GEMMA3 "/mmproj.gguf", true));
        memcpy(find_bytes(data, size, pd_checkpoint_find(c, tensors[i])->data, 64), nans, sizeof nans);
        pd_checkpoint_close(c);
        write_tower(data, size);
        open_tower(&s, in_folder(TOWER));
        check_failing(&s, 0, PERIDOT_ERROR_FORMAT, "its vision tower gives numbers that are not finite");
        seeing_close(&s);
    }
    remove(in_folder(TOWER));
}

/* Where one image is at work for another's sake: its failure is not the other's. */
static void test_failing_before(void **state)
{
    const struct pd_tower_watch piece = {.piece_work = 1 << 14, .most_s = 1e-9}, all = {.piece_work = 1 << 14};
    struct seeing s;
    (void)state;
    open_tower(&s, PERIDOT_GOLDEN "/" GEMMA3 "/mmproj.gguf");
    struct pd_image *bad = engine_of(s.images[0]), *good = engine_of(s.images[1]);
    for (uint32_t i = 0; i < 96; i++) bad->patches.at[i] = NAN;
    EXPECT_OK(pd_image_encode(bad, s.model->m.tower, &piece));   /* the first piece */
    assert_null(bad->rows);
    EXPECT_OK(pd_image_encode(good, s.model->m.tower, &all));
    assert_non_null(good->rows);
    EXPECT_FAILURE(pd_image_encode(bad, s.model->m.tower, &all), PERIDOT_ERROR_FORMAT, "not finite");
    seeing_close(&s);
}

static void test_no_memory(void **state)
{
    struct seeing s;
    (void)state;
    open_tower(&s, PERIDOT_GOLDEN "/" GEMMA3 "/mmproj.gguf");
    check_failing(&s, 0, PERIDOT_ERROR_MEMORY, "the vision tower needs");
    struct pd_gpu *gpu = s.model->m.gpu;
    uint64_t size = gpu->info.heap_size;
    gpu->info.heap_size = pd_gpu_allocated(gpu) + WEIGHTS_SIZE;
    EXPECT_FAILURE(pd_image_encode(engine_of(s.images[0]), s.model->m.tower, &(struct pd_tower_watch){.piece_work = 1}),
                   PERIDOT_ERROR_MEMORY, "a picture in the vision tower needs");
    gpu->info.heap_size = size;
    struct text text = {0};
    peridot_session *session = open_session(&s);
    peridot_sequence *q;
    EXPECT_OK(peridot_sequence_create(&q, session));
    const peridot_request_params params = params_of(&s, true, &text);
    EXPECT_OK(peridot_generate(q, &params, NULL));   /* now there is some */
    peridot_session_free(session);
    seeing_close(&s);
}

/* A file that was cut short while it is mapped. */
static void test_cut_short(void **state)
{
    struct seeing s;
    size_t size;
    (void)state;
    uint8_t *data = read_tower(&size, GEMMA3);
    write_tower(data, size);
    open_tower(&s, in_folder(TOWER));
    assert_int_equal(truncate(in_folder(TOWER), 8192), 0);
    check_failing(&s, 0, PERIDOT_ERROR_IO, TOWER);
    seeing_close(&s);
    remove(in_folder(TOWER));
}

/* ---- stopping it ---- */

static bool cancel(void *user, uint64_t done, uint64_t total)
{
    (void)done, (void)total;
    peridot_cancel(user);
    return true;
}

/* Wherever it is stopped, in loading or in one of many pieces, the next one has the same rows. */
static void test_stopping(void **state)
{
    enum { N_STOPS = 24 };
    const peridot_model_params little = {.size = sizeof little, .gpu_memory = 1 << 30};   /* it is loaded each time */
    struct seeing s;
    struct text text = {0};
    peridot_sequence *q;
    (void)state;
    seeing_open(&s, "gemma4-vision", "", &little);
    peridot_session *session = open_session(&s);
    const peridot_eval_params asking = {.size = sizeof asking, .progress = ask, .user = &text},
                              cancelling = {.size = sizeof cancelling, .progress = cancel, .user = session};
    EXPECT_OK(peridot_sequence_create(&q, session));
    session->s->prefill.piece_work = 1 << 18;
    EXPECT_OK(peridot_sequence_eval(q, s.one, s.n_one, &asking));
    uint32_t n = text.n_asked;
    size_t size = engine_of(s.images[0])->n * s.model->tower_config.d_out * sizeof(float);
    float *rows = malloc(size);
    assert_non_null(rows);
    memcpy(rows, engine_of(s.images[0])->rows, size);
    assert_true(n > N_STOPS);   /* loading, and pieces */
    uint32_t n_stopped = 0;
    for (uint32_t i = 0; i < N_STOPS; i++) {
        peridot_image_free(s.images[0]);
        s.images[0] = read_image(s.model, s.name, "image-1.png");
        text = (struct text){.n_most = 1 + i * n / N_STOPS};
        EXPECT_OK(peridot_sequence_truncate(q, 0, NULL));
        session->s->prefill.piece_work = 1 << 18;
        peridot_status status = peridot_sequence_eval(q, s.one, s.n_one, &asking);
        if (status == PERIDOT_OK) {   /* pieces are sized in time, and so not always as many */
            assert_true(text.n_asked < text.n_most);
            break;
        }
        EXPECT_FAILURE(status, PERIDOT_CANCELLED, "stopped");
        assert_int_equal(text.n_asked, text.n_most);
        n_stopped++;
        uint32_t pos = peridot_sequence_pos(q);
        EXPECT_FAILURE(peridot_sequence_eval(q, s.one + pos, s.n_one - pos, &cancelling), PERIDOT_CANCELLED, "stopped");
        pos = peridot_sequence_pos(q);
        EXPECT_OK(peridot_sequence_eval(q, s.one + pos, s.n_one - pos, NULL));
        assert_memory_equal(engine_of(s.images[0])->rows, rows, size);
    }
    assert_true(n_stopped > N_STOPS / 4);
    free(rows);
    peridot_session_free(session);
    seeing_close(&s);
}

/* By the progress of the request whose image it is: it alone ends. */
static void test_stopped_request(void **state)
{
    struct seeing s;
    (void)state;
    open_tower(&s, PERIDOT_GOLDEN "/" GEMMA3 "/mmproj.gguf");
    check_failing(&s, 1, PERIDOT_CANCELLED, "stopped");
    seeing_close(&s);
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_qwen_sizes),
        cmocka_unit_test(test_damages), cmocka_unit_test(test_other_files), cmocka_unit_test(test_blind),
        cmocka_unit_test(test_inside),
        cmocka_unit_test(test_not_finite), cmocka_unit_test(test_failing_before),
        cmocka_unit_test(test_no_memory), cmocka_unit_test(test_cut_short),
        cmocka_unit_test(test_stopping), cmocka_unit_test(test_stopped_request),
    };
    return cmocka_run_group_tests_name("tower", tests, make_folder, remove_folder);
}
