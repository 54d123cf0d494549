/* A vision tower, and a picture through it on a device that executes nothing: the head of an mmproj file, or a Hugging
 * Face directory's config.json, head of model.safetensors, processor_config.json and preprocessor_config.json. The
 * numbers of all tensors are 0: no input has their bytes. */
#define _POSIX_C_SOURCE 200809L
#include "../null_device.h"
#include "harness.h"

#include "arch/arch.h"
#include "base/base.h"
#include "engine/vision/vision.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { D_OUT = 64, IMAGE_ROWS = 70, WIDTH = 30, HEIGHT = 20, MOST_DATA = 1 << 20, MOST_PIXELS = 1 << 18 };

/* A file's head, and zeros. */
static const char *write_head(const char *name, const void *head, size_t size, uint64_t n_zeros)
{
    const char *path = fuzz_file(name, head, size);
    FUZZ_CHECK(truncate(path, (off_t)(size + n_zeros)) == 0);
    return path;
}

/* With as many zeros as the tensors take: no byte may belong to none. */
static void write_safetensors(const uint8_t *json, size_t size)
{
    yyjson_doc *doc = yyjson_read((const char *)json, size, 0);
    yyjson_obj_iter iter = yyjson_obj_iter_with(yyjson_doc_get_root(doc));
    uint64_t end = 0, json_size = size;
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&iter));) {
        yyjson_val *offsets = yyjson_obj_get(yyjson_obj_iter_get_val(key), "data_offsets");
        end = pd_max(end, yyjson_get_uint(yyjson_arr_get(offsets, 1)));
    }
    yyjson_doc_free(doc);
    uint8_t *head = malloc(8 + size);
    FUZZ_CHECK(head);
    memcpy(head, &json_size, 8);
    memcpy(head + 8, json, size);
    write_head("model.safetensors", head, 8 + size, pd_min(end, MOST_DATA));
    free(head);
}

static const char *write_all(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"config.json", "model.safetensors", "processor_config.json",
        "preprocessor_config.json"};
    struct fuzz_part input = {data, size}, part;
    if (size >= 4 && memcmp(data, "GGUF", 4) == 0) return write_head("x.gguf", data, size, MOST_DATA);
    for (size_t i = 0; i < PD_COUNT(names); i++) {
        bool found = fuzz_next_part(&part, &input);
        fuzz_remove(names[i]);
        if (found && i == 1) write_safetensors(part.data, part.size);
        else if (found) fuzz_file(names[i], part.data, part.size);
    }
    return fuzz_folder();
}

/* Larger pictures take too long here. */
static bool is_small(const struct pd_tower_config *t)
{
    uint64_t pixels = (uint64_t)t->patch * t->patch * pd_tower_n_patches(t);
    return pixels <= MOST_PIXELS;
}

static void encode(struct pd_gpu *gpu, struct pd_images *images, const struct pd_checkpoint *c,
                   const struct pd_tower_config *config)
{
    static uint8_t rgb[3 * WIDTH * HEIGHT];
    const struct pd_picture picture = {.width = WIDTH, .height = HEIGHT, .rgb = rgb};
    const struct pd_variants variants = pd_variants_default(pd_gpu_info(gpu));
    const struct pd_tower_watch watch = {.piece_work = 1 << 18};
    struct pd_image *image;
    struct pd_tower *tower;
    if (!fuzz_ok(pd_image_create(&image, images, config, &picture))) return;
    FUZZ_CHECK(image->n > 0 && image->n <= config->most_rows);
    FUZZ_CHECK(pd_tower_create(&tower, gpu, &variants, c, config, true) == PERIDOT_OK);
    if (fuzz_ok(pd_image_encode(image, tower, &watch))) FUZZ_CHECK(image->rows && !image->patches.at);
    pd_image_free(image);
    pd_tower_free(tower);
}

static void use_tower(const struct pd_checkpoint *c, const struct pd_config *config)
{
    struct pd_tower_config t;
    struct pd_tower_totals totals;
    struct pd_images *images;
    struct pd_gpu gpu;
    if (!fuzz_ok(pd_tower_read(&t, c, c, config)) || t.kind == PD_TOWER_NONE) return;
    if (!fuzz_ok(pd_tower_check(&totals, &t, c))) return;
    if (pd_checkpoint_kind(c) == PD_CHECKPOINT_GGUF && !t.image_size) t.most_rows = IMAGE_ROWS;
    if (!is_small(&t)) return;
    FUZZ_CHECK(pd_images_create(&images) == PERIDOT_OK);
    null_device_open(&gpu);
    encode(&gpu, images, c, &t);
    FUZZ_CHECK(!images->first && !images->at_work);
    null_device_close(&gpu);
    pd_images_free(images);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum pd_family families[] = {PD_GEMMA3, PD_GEMMA4};
    struct pd_checkpoint *c;
    struct pd_config config;
    if (!fuzz_ok(pd_checkpoint_open(&c, write_all(data, size), true))) return 0;
    if (pd_checkpoint_kind(c) == PD_CHECKPOINT_HF && fuzz_ok(pd_config_read(&config, c))) {
        use_tower(c, &config);
        pd_config_free(&config);
    }
    for (size_t i = 0; i < PD_COUNT(families) && pd_checkpoint_kind(c) == PD_CHECKPOINT_GGUF; i++)
        use_tower(c, &(struct pd_config){.family = families[i], .name = "text", .d_model = D_OUT});
    pd_checkpoint_close(c);
    return 0;
}
