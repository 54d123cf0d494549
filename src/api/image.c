/* The images of peridot.h. A peridot_image is the engine's struct pd_image. */
#include "api/handles.h"
#include "base/num.h"

static struct pd_image *engine_image(const peridot_image *image) { return (struct pd_image *)image; }

static peridot_status check_sees(const peridot_model *model)
{
    return model->m.tower ? PERIDOT_OK : pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s", model->tower_error);
}

static peridot_status create(peridot_image **out, const peridot_model *model, const struct pd_picture *picture)
{
    struct pd_image *image;
    PD_TRY(pd_image_create(&image, model->m.images, &model->tower_config, picture));
    *out = (peridot_image *)image;
    return PERIDOT_OK;
}

peridot_status peridot_image_read(peridot_image **out, const peridot_model *model, const void *data, size_t size,
                                  const char *name)
{
    struct pd_picture picture;
    *out = NULL;
    PD_TRY(check_sees(model));
    PD_TRY(pd_picture_read(&picture, data, size, name ? name : "the picture"));
    peridot_status status = create(out, model, &picture);
    pd_picture_free(&picture);
    return status;
}

peridot_status peridot_image_pixels(peridot_image **out, const peridot_model *model, const uint8_t *rgb,
                                    uint32_t width, uint32_t height)
{
    const struct pd_picture picture = {.width = width, .height = height, .rgb = (uint8_t *)rgb};
    *out = NULL;
    PD_TRY(check_sees(model));
    if (!rgb || width == 0 || height == 0 || width > PD_PICTURE_MAX_SIDE || height > PD_PICTURE_MAX_SIDE
        || (uint64_t)width * height > PD_PICTURE_MAX_PIXELS)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "a picture of %u x %u pixels is not supported", width, height);
    return create(out, model, &picture);
}

peridot_image *peridot_image_ref(const peridot_image *image)
{
    return (peridot_image *)pd_image_ref(engine_image(image));
}

void peridot_image_free(peridot_image *image) { pd_image_free(engine_image(image)); }

const int32_t *peridot_image_ids(const peridot_image *image, size_t *n)
{
    *n = engine_image(image)->n;
    return engine_image(image)->ids;
}

peridot_status peridot_images_place(int32_t *tokens, size_t n, const peridot_model *model,
                                    peridot_image *const *images, size_t n_images)
{
    size_t n_tokens = 0, n_rows = 0, k = 0, row = 0;
    PD_TRY(check_sees(model));
    for (size_t i = 0; i < n; i++) n_tokens += tokens[i] == model->tower_config.row_id;
    for (size_t i = 0; i < n_images; i++) n_rows += engine_image(images[i])->n;
    if (n_tokens != n_rows)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "the prompt has %zu image token%s (%d), but %zu image%s of %zu rows",
                       n_tokens, PD_S(n_tokens), (int)model->tower_config.row_id, n_images, PD_S(n_images), n_rows);
    for (size_t i = 0; i < n; i++) {
        if (tokens[i] != model->tower_config.row_id) continue;
        const struct pd_image *image = engine_image(images[k]);
        tokens[i] = image->ids[row++];
        if (row == image->n) row = 0, k++;
    }
    return PERIDOT_OK;
}
