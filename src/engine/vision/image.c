/* Images: rows of embeddings that stand in prompts. Rows have ids, as tokens do, but negative ones that follow from the
 * picture's pixels: so sequences that share a prefix, forks and saved sequences know an image without its rows, which
 * are computed when they are first evaluated. */
#include "engine/vision/vision.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

peridot_status pd_images_create(struct pd_images **out)
{
    *out = calloc(1, sizeof **out);
    if (!*out) return pd_fail_alloc(sizeof **out, "a list of pictures");
    pthread_mutex_init(&(*out)->lock, NULL);
    return PERIDOT_OK;
}

void pd_images_free(struct pd_images *images)
{
    if (!images || !pd_refs_drop(&images->refs)) return;
    pthread_mutex_destroy(&images->lock);
    free(images);
}

/* ---- pixels ---- */

/* Numbers of a patch in the order of its matrix's columns: pixel after pixel, or channel after channel. */
static void fill_patch(float *out, const struct pd_tower_config *c, const struct pd_picture *picture, uint32_t x0,
                       uint32_t y0)
{
    uint32_t n_pixels = c->patch * c->patch;
    for (uint32_t i = 0; i < n_pixels; i++) {
        const uint8_t *rgb = picture->rgb + 3 * ((size_t)(y0 + i / c->patch) * picture->width + x0 + i % c->patch);
        for (uint32_t k = 0; k < 3; k++)
            out[c->channels_last ? 3 * i + k : k * n_pixels + i] = ((float)rgb[k] / 255 - c->mean[k]) / c->std[k];
    }
}

static peridot_status cut_patches(struct pd_patches *out, const struct pd_tower_config *c,
                                  const struct pd_picture *picture)
{
    uint32_t dim = pd_tower_patch_dim(c);
    *out = (struct pd_patches){.n_columns = picture->width / c->patch, .n_patch_rows = picture->height / c->patch};
    size_t n = (size_t)out->n_columns * out->n_patch_rows;
    out->at = malloc(n * dim * sizeof *out->at);
    if (!out->at) return pd_fail_alloc(n * dim * sizeof *out->at, "a picture");
    for (size_t i = 0; i < n; i++) {
        uint32_t column, row;
        pd_patch_place(&column, &row, c, out->n_columns, (uint32_t)i);
        fill_patch(out->at + i * dim, c, picture, column * c->patch, row * c->patch);
    }
    return PERIDOT_OK;
}

/* ---- ids ---- */

/* n_columns: of rows, where the text model has to know them: they are in the first id; else 0.
 * 30 bits of a hash for each row: that two pictures have the same ids is as unlikely as that their hashes are equal. */
static void make_ids(int32_t *ids, uint32_t n, const struct pd_picture *picture, uint32_t n_columns)
{
    static const struct pd_hash_key keys[] = {{{0x7065726964, 1}}, {{0x7065726964, 2}}};
    const uint32_t sides[] = {picture->width, picture->height};
    size_t size = 3 * (size_t)picture->width * picture->height;
    struct pd_hash_key of_picture;
    for (int i = 0; i < 2; i++) {
        const uint64_t parts[] = {pd_siphash(&keys[i], picture->rgb, size), pd_siphash(&keys[i], sides, sizeof sides)};
        of_picture.k[i] = pd_siphash(&keys[i], parts, sizeof parts);
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)(pd_siphash(&of_picture, &i, sizeof i) % 0x3fffffff);
        if (i == 0 && n_columns) bits = bits % (1u << PD_COLUMNS_SHIFT) | n_columns << PD_COLUMNS_SHIFT;
        ids[i] = i == 0 ? INT32_MIN + (int32_t)bits : -2 - (int32_t)bits;
    }
}

/* ---- images ---- */

static peridot_status fill(struct pd_image *image, const struct pd_tower_config *c, const struct pd_picture *picture)
{
    struct pd_picture resized;
    uint32_t width, height;
    enum pd_picture_filter filter = c->kind == PD_TOWER_SIGLIP ? PD_PICTURE_BILINEAR : PD_PICTURE_BICUBIC;
    PD_TRY(pd_tower_size(&width, &height, c, picture->width, picture->height));
    PD_TRY(pd_picture_resize(&resized, picture, width, height, filter));
    image->n = width / (c->patch * c->pool) * (height / (c->patch * c->pool));
    image->ids = malloc(image->n * sizeof *image->ids);
    peridot_status status = image->ids ? cut_patches(&image->patches, c, &resized)
                                       : pd_fail_alloc(image->n * sizeof *image->ids, "a picture");
    uint32_t n_columns = c->kind == PD_TOWER_QWEN ? width / (c->patch * c->pool) : 0;
    if (status == PERIDOT_OK) make_ids(image->ids, image->n, &resized, n_columns);
    pd_picture_free(&resized);
    return status;
}

static void destroy(struct pd_image *image)
{
    free(image->patches.at);
    free(image->rows);
    free(image->ids);
    pd_images_free(image->images);
    free(image);
}

/* With the list's lock. */
static struct pd_image *image_find(const struct pd_images *images, const int32_t *ids, size_t n)
{
    struct pd_image *image = images->first;
    while (image && (image->n > n || memcmp(image->ids, ids, image->n * sizeof *ids) != 0)) image = image->next;
    if (image) pd_refs_add(&image->refs);
    return image;
}

struct pd_image *pd_images_find(struct pd_images *images, const int32_t *ids, size_t n)
{
    pthread_mutex_lock(&images->lock);
    struct pd_image *image = image_find(images, ids, n);
    pthread_mutex_unlock(&images->lock);
    return image;
}

peridot_status pd_image_create(struct pd_image **out, struct pd_images *images, const struct pd_tower_config *config,
                               const struct pd_picture *picture)
{
    struct pd_image *image = calloc(1, sizeof *image);
    *out = NULL;
    if (!image) return pd_fail_alloc(sizeof *image, "a picture");
    image->images = images;
    pd_refs_add(&images->refs);
    peridot_status status = fill(image, config, picture);
    if (status != PERIDOT_OK) {
        destroy(image);
        return status;
    }
    pthread_mutex_lock(&images->lock);
    *out = image_find(images, image->ids, image->n);
    if (!*out) {
        image->next = images->first;
        images->first = *out = image;
        image = NULL;
    }
    pthread_mutex_unlock(&images->lock);
    if (image) destroy(image);
    return PERIDOT_OK;
}

struct pd_image *pd_image_ref(struct pd_image *image)
{
    pd_refs_add(&image->refs);
    return image;
}

void pd_image_free(struct pd_image *image)
{
    if (!image) return;
    struct pd_images *images = image->images;
    pthread_mutex_lock(&images->lock);
    bool last = pd_refs_drop(&image->refs);
    if (last) {
        struct pd_image **at = &images->first;
        while (*at != image) at = &(*at)->next;
        *at = image->next;
    }
    pthread_mutex_unlock(&images->lock);
    if (last) destroy(image);
}

static void leave_tower(struct pd_images *images, struct pd_tower *tower)
{
    struct pd_image *image = images->at_work;
    images->at_work = NULL;
    pd_tower_end(tower);
    pd_image_free(image);
}

/* The last piece is done. */
static peridot_status take_rows(struct pd_image *image, struct pd_tower *tower)
{
    size_t size = (size_t)image->n * pd_tower_config_of(tower)->d_out * sizeof *image->rows;
    float *rows = malloc(size);
    if (!rows) return pd_fail_alloc(size, "a picture");
    peridot_status status = pd_tower_take_rows(rows, tower);
    if (status != PERIDOT_OK) {
        free(rows);
        return status;
    }
    image->rows = rows;
    free(image->patches.at);
    image->patches.at = NULL;
    return PERIDOT_OK;
}

/* Whether all others have freed it. */
static bool is_abandoned(struct pd_images *images)
{
    pthread_mutex_lock(&images->lock);
    bool alone = images->at_work && images->at_work->refs.n_more == 0;
    pthread_mutex_unlock(&images->lock);
    return alone;
}

/* A piece of the picture that is at work; or begins with `image`. */
static peridot_status image_go_on(struct pd_image *image, struct pd_tower *tower, const struct pd_tower_watch *watch)
{
    struct pd_images *images = image->images;
    bool done = false;
    if (is_abandoned(images)) leave_tower(images, tower);
    if (!images->at_work) {
        PD_TRY(pd_tower_begin(tower, &image->patches, watch));
        images->at_work = pd_image_ref(image);
    }
    peridot_status status = pd_tower_step(&done, tower);
    if (status == PERIDOT_OK && done) status = take_rows(images->at_work, tower);
    if (status != PERIDOT_OK || done) leave_tower(images, tower);
    return status;
}

peridot_status pd_image_encode(struct pd_image *image, struct pd_tower *tower, const struct pd_tower_watch *watch)
{
    double begun = pd_now();
    while (!image->rows) {
        const struct pd_image *at_work = image->images->at_work;
        peridot_status asked = pd_tower_ask(watch), status = asked;
        if (asked == PERIDOT_OK) status = image_go_on(image, tower, watch);
        bool is_others = asked == PERIDOT_OK && at_work && at_work != image && status != PERIDOT_ERROR_DEVICE_LOST;
        if (status != PERIDOT_OK && is_others) continue;   /* who has that image will learn it */
        if (status != PERIDOT_OK) {
            if (image->images->at_work == image) leave_tower(image->images, tower);
            return status;
        }
        if (watch->most_s > 0 && pd_now() - begun > watch->most_s) break;
    }
    return PERIDOT_OK;
}

void pd_images_leave(struct pd_images *images, struct pd_tower *tower)
{
    if (images && images->at_work) leave_tower(images, tower);
}
