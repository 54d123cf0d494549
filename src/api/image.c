/* The images of peridot.h: of a picture and its crops, each an image of the engine's. An image is ids that follow from
 * its pixels: so equal pictures have equal prompts, and what is shared of prompts is found by ids alone. Images do not
 * change once they are made, and may be shared between threads. */
#include "api/api.h"
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

static peridot_status check_sees(const peridot_model *model)
{
    return model->m.tower ? PERIDOT_OK : pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s", model->tower_error);
}

static peridot_status read_params(peridot_image_params *out, const peridot_model *model,
                                  const peridot_image_params *params)
{
    PD_TRY(PD_PARAMS_READ(*out, params));
    PD_TRY(check_sees(model));
    if (!out->pan_and_scan || model->info.image_crops) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s has no crops of images: pan and scan is Gemma 3's",
                   model->info.name);
}

/* ---- parts ---- */

/* The part is the image's before its ids are: then freeing the image is all that a failure has to do. */
static peridot_status add_part(peridot_image *image, const peridot_model *model, const struct pd_picture *picture)
{
    struct pd_image *part;
    PD_TRY(pd_image_create(&part, model->m.images, &model->tower_config, picture));
    image->parts[image->n_parts++] = part;
    int32_t *ids = realloc(image->ids, (image->n_rows + part->n) * sizeof *ids);
    if (!ids) return pd_fail_alloc((image->n_rows + part->n) * sizeof *ids, "a picture");
    memcpy(ids + image->n_rows, part->ids, part->n * sizeof *ids);
    image->ids = ids;
    image->n_rows += part->n;
    return PERIDOT_OK;
}

static peridot_status add_crops(peridot_image *image, const peridot_model *model, const struct pd_picture *picture)
{
    struct pd_crop crops[PD_TOWER_MOST_CROPS];
    uint32_t n = pd_tower_crops(crops, picture->width, picture->height);
    for (uint32_t i = 0; i < n; i++) {
        struct pd_picture part;
        PD_TRY(pd_picture_crop(&part, picture, crops[i].x, crops[i].y, crops[i].width, crops[i].height));
        peridot_status status = add_part(image, model, &part);
        pd_picture_free(&part);
        PD_TRY(status);
    }
    return PERIDOT_OK;
}

static peridot_status image_create(peridot_image **out, const peridot_model *model, const struct pd_picture *picture,
                                   const peridot_image_params *params)
{
    peridot_image *image = calloc(1, sizeof *image);
    if (!image) return pd_fail_alloc(sizeof *image, "a picture");
    peridot_status status = add_part(image, model, picture);
    if (status == PERIDOT_OK && params->pan_and_scan) status = add_crops(image, model, picture);
    if (status == PERIDOT_OK) *out = image;
    else peridot_image_free(image);
    return status;
}

/* ---- images ---- */

peridot_status peridot_image_read(peridot_image **out, const peridot_model *model, const void *data, size_t size,
                                  const char *name, const peridot_image_params *params)
{
    peridot_image_params known;
    struct pd_picture picture;
    *out = NULL;
    if (!name) name = "the picture";
    PD_TRY(read_params(&known, model, params));
    PD_TRY(pd_picture_read(&picture, data, size, name));
    peridot_status status = image_create(out, model, &picture, &known);
    pd_picture_free(&picture);
    return status == PERIDOT_OK ? status : pd_fail_prefix(status, name);
}

peridot_status peridot_image_pixels(peridot_image **out, const peridot_model *model, const uint8_t *rgb,
                                    uint32_t width, uint32_t height, const peridot_image_params *params)
{
    const struct pd_picture picture = {.width = width, .height = height, .rgb = (uint8_t *)rgb};
    peridot_image_params known;
    *out = NULL;
    PD_TRY(read_params(&known, model, params));
    if (!rgb || width == 0 || height == 0 || width > PD_PICTURE_MAX_SIDE || height > PD_PICTURE_MAX_SIDE
        || (uint64_t)width * height > PD_PICTURE_MAX_PIXELS)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "a picture of %u x %u pixels is not supported", width, height);
    return image_create(out, model, &picture, &known);
}

peridot_image *peridot_image_ref(const peridot_image *image)
{
    peridot_image *owned = (peridot_image *)image;
    pd_refs_add(&owned->refs);
    return owned;
}

void peridot_image_free(peridot_image *image)
{
    if (!image || !pd_refs_drop(&image->refs)) return;
    for (size_t i = 0; i < image->n_parts; i++) pd_image_free(image->parts[i]);
    free(image->ids);
    free(image);
}

const int32_t *peridot_image_ids(const peridot_image *image, size_t *n)
{
    *n = image->n_rows;
    return image->ids;
}

peridot_status peridot_images_place(int32_t *tokens, size_t n, const peridot_model *model,
                                    peridot_image *const *images, size_t n_images)
{
    size_t n_tokens = 0, n_rows = 0, k = 0, row = 0;
    PD_TRY(check_sees(model));
    /* All is counted before anything is written: on failure the prompt is as it was. */
    for (size_t i = 0; i < n; i++) n_tokens += tokens[i] == model->tower_config.row_id;
    for (size_t i = 0; i < n_images; i++) n_rows += images[i]->n_rows;
    if (n_tokens != n_rows)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "the prompt has %zu image token%s (%d), but %zu image%s of %zu rows",
                       n_tokens, PD_S(n_tokens), (int)model->tower_config.row_id, n_images, PD_S(n_images), n_rows);
    for (size_t i = 0; i < n; i++) {
        if (tokens[i] != model->tower_config.row_id) continue;
        const peridot_image *image = images[k];
        tokens[i] = image->ids[row++];
        if (row == image->n_rows) row = 0, k++;
    }
    return PERIDOT_OK;
}
