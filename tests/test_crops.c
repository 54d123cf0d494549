/* Gemma 3's pan and scan against Hugging Face transformers: which parts of a picture become images, and what a model
 * makes of a prompt with a picture and its parts. */
#include "vision_fixture.h"

#include "arch/arch.h"
#include "base/base.h"

#define TOLERANCE 2e-5    /* see test_vision.c */

enum { CTX = 256, N_LOGITS = 8 };

static const peridot_image_params cropped = {.size = sizeof cropped, .pan_and_scan = true};

/* ---- where ---- */

static uint32_t number(yyjson_val *list, size_t i) { return (uint32_t)yyjson_get_uint(yyjson_arr_get(list, i)); }

static void test_boxes(void **state)
{
    (void)state;
    yyjson_doc *doc = yyjson_read_file(PERIDOT_GOLDEN "/pan-and-scan.json", 0, NULL, NULL);
    assert_non_null(doc);
    yyjson_val *row;
    size_t i, n, n_seen[1 + PD_TOWER_MOST_CROPS] = {0};
    yyjson_arr_foreach(yyjson_doc_get_root(doc), i, n, row) {
        struct pd_crop got[PD_TOWER_MOST_CROPS];
        yyjson_val *want = yyjson_arr_get(row, 2);
        uint32_t width = number(row, 0), height = number(row, 1), n_crops = pd_tower_crops(got, width, height);
        if (n_crops != yyjson_arr_size(want)) fail_msg("%u x %u: %u crops", width, height, n_crops);
        for (uint32_t k = 0; k < n_crops; k++) {
            yyjson_val *box = yyjson_arr_get(want, k);
            const struct pd_crop c = {number(box, 0), number(box, 1), number(box, 2), number(box, 3)};
            if (memcmp(&got[k], &c, sizeof c) != 0)
                fail_msg("%u x %u: crop %u is %u x %u at (%u, %u)", width, height, k, got[k].width, got[k].height,
                         got[k].x, got[k].y);
        }
        n_seen[n_crops]++;
    }
    assert_true(n_seen[0] > 10 && n_seen[2] > 10 && n_seen[3] > 10 && n_seen[4] > 10);
    yyjson_doc_free(doc);
}

/* ---- models ---- */

static peridot_model *open_model(const char *name)
{
    char path[1024];
    peridot_model *model;
    const peridot_model_params params = {.size = sizeof params, .precision = PERIDOT_PRECISION_EXACT};
    snprintf(path, sizeof path, PERIDOT_GOLDEN "/%s", name);
    EXPECT_OK(peridot_model_open(&model, path, &params));
    return model;
}

static peridot_image *read_cropped(const peridot_model *model, const char *name)
{
    size_t size;
    void *data = read_golden("gemma3-vision", name, &size);
    peridot_image *image;
    EXPECT_OK(peridot_image_read(&image, model, data, size, name, &cropped));
    free(data);
    return image;
}

struct comparison {
    const float *want;             /* from position `first` on */
    uint32_t first, n;
    double worst;
};

static bool on_row(void *user, peridot_sequence *q, uint32_t pos, const float *row, size_t n)
{
    struct comparison *c = user;
    (void)q;
    if (pos < c->first) return true;
    double error = relative_error(row, c->want + (pos - c->first) * n, n);
    c->worst = error <= c->worst ? c->worst : error;   /* a NaN is the worst */
    c->n++;
    return true;
}

static void compare(peridot_session *session, const int32_t *ids, size_t n, const char *name, bool hidden)
{
    size_t size;
    float *golden = read_golden("gemma3-vision", name, &size);
    struct comparison c = {.want = golden, .first = hidden ? 0 : (uint32_t)n - N_LOGITS};
    peridot_eval_params params = {.size = sizeof params, .user = &c};
    peridot_sequence *q;
    *(hidden ? &params.hidden : &params.logits) = on_row;
    EXPECT_OK(peridot_sequence_create(&q, session));
    EXPECT_OK(peridot_sequence_eval(q, ids, n, &params));
    peridot_sequence_free(q);
    print_message("%s: worst %.1e of %u rows\n", name, c.worst, c.n);
    assert_int_equal(c.n, hidden ? n : N_LOGITS);
    assert_true(c.worst < TOLERANCE);
    free(golden);
}

static void test_prompt(void **state)
{
    (void)state;
    peridot_model *model = open_model("gemma3-vision");
    peridot_image *images[] = {read_cropped(model, "crops.png"), read_cropped(model, "image-1.png")};
    peridot_session *session;
    int32_t ids[MAX_TOKENS];
    size_t n = read_golden_ids(ids, MAX_TOKENS, "gemma3-vision", "tokens-crops.txt");
    assert_int_equal(images[0]->n_parts, 4);
    assert_int_equal(images[1]->n_parts, 1);
    EXPECT_FAILURE(peridot_images_place(ids, n, model, images, 1), PERIDOT_ERROR_ARGUMENT, "1 image of 64 rows");
    EXPECT_OK(peridot_images_place(ids, n, model, images, 2));
    EXPECT_OK(peridot_session_create(&session, model,
        &(peridot_session_params){.size = sizeof(peridot_session_params), .ctx = CTX, .kv_type = PERIDOT_KV_F32}));
    compare(session, ids, n, "hidden-crops.f32", true);
    compare(session, ids, n, "logits-crops.f32", false);
    peridot_session_free(session);
    for (int i = 0; i < 2; i++) peridot_image_free(images[i]);
    assert_null(model->m.images->first);
    peridot_model_close(model);
}

/* A submitted request keeps crops as it keeps the whole. */
static void test_request(void **state)
{
    (void)state;
    peridot_model *model = open_model("gemma3-vision");
    peridot_image *image = read_cropped(model, "crops.png");
    peridot_session *session;
    peridot_request *request;
    peridot_status status;
    int32_t ids[MAX_TOKENS];
    size_t n, n_running = 1;
    const int32_t *rows = peridot_image_ids(image, &n);
    memcpy(ids, rows, n * sizeof *ids);
    const peridot_request_params params = {.size = sizeof params, .prompt = ids, .n_prompt = n, .n_max = 2};
    EXPECT_OK(peridot_session_create(&session, model,
        &(peridot_session_params){.size = sizeof(peridot_session_params), .ctx = CTX}));
    EXPECT_OK(peridot_request_submit(&request, session, &params));
    peridot_image_free(image);
    while (n_running) EXPECT_OK(peridot_session_run(session, &n_running));
    assert_true(peridot_request_done(request, &status, NULL));
    EXPECT_OK(status);
    peridot_request_free(request);
    peridot_session_free(session);
    assert_null(model->m.images->first);
    peridot_model_close(model);
}

/* Crops are of the pixels that were given; the whole is that of a picture without crops, and is shared with it. */
static void test_parts(void **state)
{
    enum { WIDTH = 600, HEIGHT = 256, HALF = WIDTH / 2 };
    static uint8_t rgb[HEIGHT][WIDTH][3], half[HEIGHT][HALF][3];
    (void)state;
    peridot_model *model = open_model("gemma3-vision");
    peridot_image *image, *whole, *right;
    for (uint32_t y = 0; y < HEIGHT; y++)
        for (uint32_t x = 0; x < WIDTH; x++) {
            const uint8_t pixel[] = {(uint8_t)x, (uint8_t)(x * y >> 6), (uint8_t)(3 * y + x)};
            memcpy(rgb[y][x], pixel, sizeof pixel);
            if (x >= HALF) memcpy(half[y][x - HALF], pixel, sizeof pixel);
        }
    EXPECT_OK(peridot_image_pixels(&image, model, **rgb, WIDTH, HEIGHT, &cropped));
    EXPECT_OK(peridot_image_pixels(&whole, model, **rgb, WIDTH, HEIGHT, NULL));
    EXPECT_OK(peridot_image_pixels(&right, model, **half, HALF, HEIGHT, NULL));
    assert_int_equal(image->n_parts, 3);
    assert_int_equal(whole->n_parts, 1);
    assert_ptr_equal(image->parts[0], whole->parts[0]);
    assert_ptr_equal(image->parts[2], right->parts[0]);
    assert_ptr_not_equal(image->parts[1], right->parts[0]);
    peridot_image_free(image);
    peridot_image_free(right);
    assert_ptr_equal(model->m.images->first, whole->parts[0]);
    peridot_image_free(whole);
    peridot_model_close(model);
}

static void test_others(void **state)
{
    static const char *const names[] = {"gemma4-vision", "gemma4-dense-vision", "gemma4-unified-vision"};
    const uint8_t pixel[3] = {0};
    peridot_image *image;
    (void)state;
    for (size_t i = 0; i < PD_COUNT(names); i++) {
        peridot_model *model = open_model(names[i]);
        assert_int_equal(peridot_model_get_info(model)->image_crops, 0);
        EXPECT_FAILURE(peridot_image_pixels(&image, model, pixel, 1, 1, &cropped), PERIDOT_ERROR_UNSUPPORTED,
                       "has no crops of images: pan and scan is Gemma 3's");
        EXPECT_FAILURE(peridot_image_read(&image, model, pixel, 3, NULL, &cropped), PERIDOT_ERROR_UNSUPPORTED,
                       "has no crops of images");
        assert_null(image);
        peridot_model_close(model);
    }
    peridot_model *model = open_model("gemma3-vision");
    assert_int_equal(peridot_model_get_info(model)->image_crops, PD_TOWER_MOST_CROPS);
    peridot_model_close(model);
}

/* What a person still holds when the model is closed, as a conversation does whose device was lost. */
static void test_outlives(void **state)
{
    (void)state;
    size_t n, n_again;
    peridot_model *model = open_model("gemma3-vision"), *again = open_model("gemma3-vision");
    peridot_image *image = read_cropped(model, "crops.png"), *same = read_cropped(model, "crops.png");
    peridot_model_close(model);
    peridot_image *other = read_cropped(again, "crops.png");
    const int32_t *ids = peridot_image_ids(image, &n), *ids_again = peridot_image_ids(other, &n_again);
    assert_int_equal(n, n_again);
    assert_memory_equal(ids, ids_again, n * sizeof *ids);
    peridot_model_close(again);
    peridot_image_free(same);
    peridot_image_free(other);
    peridot_image_free(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_boxes), cmocka_unit_test(test_prompt), cmocka_unit_test(test_request),
        cmocka_unit_test(test_parts), cmocka_unit_test(test_others), cmocka_unit_test(test_outlives),
    };
    return cmocka_run_group_tests_name("crops", tests, NULL, NULL);
}
