/* Allocations that fail while images are read, encoded by the vision tower and evaluated: see alloc_fixture.h. */
#include "vision_fixture.h"
#include "alloc_fixture.h"

enum { CTX = 256 };

static struct seeing seeing;
static peridot_session *session;

/* A picture's file, and the rows that image 1 has. */
static const char *name;
static void *data;
static size_t size;
static float *rows;
static int32_t first_id;           /* that it had before; 0: it was not read yet */

/* ---- reading ---- */

static peridot_status read_picture(void)
{
    peridot_image *image;
    size_t n;
    peridot_status status = peridot_image_read(&image, seeing.model, data, size, name, NULL);
    assert_true((status == PERIDOT_OK) == (image != NULL));
    if (image) {
        const int32_t *got = peridot_image_ids(image, &n);
        if (first_id == 0) first_id = got[0];
        assert_int_equal(got[0], first_id);
    }
    peridot_image_free(image);
    return status;
}

static peridot_status take_pixels(void)
{
    static const uint8_t rgb[3 * 20 * 30];
    peridot_image *image;
    peridot_status status = peridot_image_pixels(&image, seeing.model, rgb, 20, 30, NULL);
    peridot_image_free(image);
    return status;
}

static void open_picture(const char *folder_name, const char *file)
{
    free(data);
    name = file;
    data = read_golden(folder_name, file, &size);
    first_id = 0;
}

/* Where there is alpha, memory may be kept that could be given back. */
static void test_pictures(void **state)
{
    static const struct { const char *name; bool has_alpha; } files[] = {{"rgb.jpg", false}, {"turned-6.jpg", false},
        {"progressive.jpg", false}, {"rgb.png", false}, {"interlaced.png", false}, {"palette-alpha.png", true},
        {"turned-6.png", false}, {"lossy-alpha.webp", true}, {"moving.webp", false}, {"interlaced.gif", false},
        {"moving.gif", false}};
    (void)state;
    for (size_t i = 0; i < PD_COUNT(files); i++) {
        open_picture("pictures", files[i].name);
        check_call(&(struct call){.name = name, .run = read_picture, .degrades = files[i].has_alpha});
    }
    check_call(&(struct call){.name = "image_pixels", .run = take_pixels});
}

/* ---- evaluating ---- */

static const struct pd_images *images(void) { return seeing.model->m.images; }

/* An image of its own, whose rows are not there yet; none of it stays. */
static peridot_status read_first(peridot_image **out)
{
    return peridot_image_read(out, seeing.model, data, size, name, NULL);
}

static void check_rows(peridot_image *image)
{
    const struct pd_image *i = engine_of(image);
    size_t rows_size = (size_t)i->n * seeing.model->tower_config.d_out * sizeof *rows;
    assert_non_null(i->rows);
    if (!rows) {
        rows = malloc(rows_size);
        assert_non_null(rows);
        memcpy(rows, i->rows, rows_size);
    }
    assert_memory_equal(i->rows, rows, rows_size);
}

/* Twice: what failed at first is done again. */
static peridot_status evaluate(void)
{
    peridot_image *image;
    peridot_sequence *q = NULL;
    peridot_status status = read_first(&image);
    if (status == PERIDOT_OK) status = peridot_sequence_create(&q, session);
    if (status == PERIDOT_OK) status = peridot_sequence_eval(q, seeing.one, seeing.n_one, NULL);
    if (status == PERIDOT_OK) check_rows(image);
    if (status == PERIDOT_ERROR_MEMORY && q) {   /* the allocation that fails is behind it */
        uint32_t pos = peridot_sequence_pos(q);
        status = peridot_sequence_eval(q, seeing.one + pos, seeing.n_one - pos, NULL);
        if (status != PERIDOT_OK) fail_msg("a second try fails: %s", peridot_last_error());
        check_rows(image);
        status = pd_fail(PERIDOT_ERROR_MEMORY, "out of memory, at first");
    }
    peridot_sequence_free(q);
    peridot_image_free(image);
    assert_true(!images()->first && !images()->at_work);
    return status;
}

static bool take_text(void *user, int32_t token, const char *text, size_t n)
{
    (void)user, (void)token, (void)text, (void)n;
    return true;
}

/* Beside one without an image, after a token that no prompt had before: so the session has no prefix with the image. */
static peridot_status submit(void)
{
    static const int32_t plain[] = {2, 40, 41, 42};
    static int32_t n_calls;
    peridot_request_params params = {.size = sizeof params, .prompt = plain, .n_prompt = PD_COUNT(plain), .n_max = 4,
        .text = take_text};
    peridot_request *requests[2] = {NULL};
    peridot_image *image;
    assert_true(first_row(seeing.one) > 1);
    seeing.one[1] = 4 + n_calls++ % 256;
    peridot_status status = read_first(&image), own;
    for (int i = 0; i < 2 && status == PERIDOT_OK; i++) {
        status = peridot_request_submit(&requests[i], session, &params);
        params.prompt = seeing.one;
        params.n_prompt = seeing.n_one;
    }
    size_t n_running = 2;
    while (status == PERIDOT_OK && n_running) status = peridot_session_run(session, &n_running);
    for (int i = 0; i < 2 && status == PERIDOT_OK; i++)
        if (peridot_request_done(requests[i], &own, NULL)) status = own;
    if (status == PERIDOT_OK) assert_non_null(engine_of(image)->rows);
    for (int i = 0; i < 2; i++) peridot_request_free(requests[i]);
    peridot_image_free(image);
    assert_true(!images()->first && !images()->at_work);
    return status;
}

/* ---- files, models ---- */

static peridot_status show(const char *path)
{
    peridot_file *file;
    peridot_status status = peridot_file_open(&file, path);
    if (status == PERIDOT_OK) assert_non_null(peridot_file_vision(file));
    peridot_file_close(file);
    return status;
}

static peridot_status show_directory(void) { return show(PERIDOT_GOLDEN "/gemma3-vision"); }
static peridot_status show_mmproj(void) { return show(PERIDOT_GOLDEN "/gemma4-vision/mmproj.gguf"); }

static peridot_status open_model(const char *path, const char *vision)
{
    const peridot_model_params params = {.size = sizeof params, .vision = vision, .cache_dir = in_folder("cache")};
    peridot_model *model;
    peridot_status status = peridot_model_open(&model, path, &params);
    if (status == PERIDOT_OK) assert_true(peridot_model_get_info(model)->image_rows > 0);
    peridot_model_close(model);
    return status;
}

static peridot_status open_directory(void) { return open_model(PERIDOT_GOLDEN "/gemma4-vision", NULL); }

static peridot_status open_mmproj(void)
{
    return open_model(PERIDOT_GOLDEN "/gemma3-vision/model.gguf", PERIDOT_GOLDEN "/gemma3-vision/mmproj.gguf");
}

/* Without memory it is not opened without its tower instead. */
static void test_models(void **state)
{
    static const struct call calls[] = {{.name = "file_open, directory", .run = show_directory},
        {.name = "file_open, mmproj", .run = show_mmproj},
        {.name = "model_open, directory", .run = open_directory, .degrades = true, .n_tried = 40},
        {.name = "model_open, mmproj", .run = open_mmproj, .degrades = true, .n_tried = 40}};
    (void)state;
    check_calls(calls, PD_COUNT(calls));
}

/* Weights that are loaded for each picture, and those that stay. */
static void test_sessions(void **state)
{
    /* A place to go back to is only kept where there is memory for it. */
    static const struct call calls[] = {{.name = "eval", .run = evaluate, .degrades = true, .n_tried = 20},
        {.name = "submit", .run = submit, .degrades = true, .n_tried = 20}};
    static const char *const folders[] = {"gemma3-vision", "gemma4-vision", "gemma4-unified-vision"};
    (void)state;
    for (size_t i = 0; i < 2 * PD_COUNT(folders); i++) {
        const peridot_model_params params = {.size = sizeof params, .gpu_memory = i % 2 ? 1 << 30 : 0};
        seeing_close(&seeing);
        seeing_open(&seeing, folders[i / 2], "", &params);
        open_picture(folders[i / 2], "image-1.png");
        for (int k = 0; k < 2; k++) {
            peridot_image_free(seeing.images[k]);
            seeing.images[k] = NULL;
        }
        EXPECT_OK(peridot_session_create(&session, seeing.model,
            &(peridot_session_params){.size = sizeof(peridot_session_params), .ctx = CTX, .n_sequences = 3}));
        print_message("%s, %s\n", folders[i / 2], i % 2 ? "loaded each time" : "kept");
        check_calls(calls, PD_COUNT(calls));
        peridot_session_free(session);
        free(rows);
        rows = NULL;
    }
}

static int open_shared(void **state)
{
    if (make_folder(state) != 0) return -1;
    seeing_open(&seeing, "gemma4-vision", "", NULL);
    return 0;
}

static int close_shared(void **state)
{
    char command[128];
    (void)state;
    free(data);
    seeing_close(&seeing);
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pictures), cmocka_unit_test(test_models), cmocka_unit_test(test_sessions),
    };
    return cmocka_run_group_tests_name("alloc_images", tests, open_shared, close_shared);
}
