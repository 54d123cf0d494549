#include "picture/decode.h"

#include <stdlib.h>

peridot_status pd_pixels_begin(struct pd_pixels *out, const struct pd_picture_file *file, uint64_t width,
                               uint64_t height, uint32_t n_channels)
{
    PD_TRY(pd_picture_check_size(file->name, width, height, file->max_pixels));
    *out = (struct pd_pixels){.width = (uint32_t)width, .height = (uint32_t)height, .n_channels = n_channels,
                              .orientation = 1, .data = malloc((size_t)(width * height * n_channels))};
    return out->data ? PERIDOT_OK : pd_picture_no_memory(file);
}

peridot_status pd_picture_check_size(const char *name, uint64_t width, uint64_t height, uint64_t max_pixels)
{
    if (width && height && width <= PD_PICTURE_MAX_SIDE && height <= PD_PICTURE_MAX_SIDE &&
        width * height <= max_pixels)
        return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED,
                   "%s: the picture has %llu x %llu pixels; sides are 1 to %u, and all pixels at most %llu", name,
                   (unsigned long long)width, (unsigned long long)height, PD_PICTURE_MAX_SIDE,
                   (unsigned long long)max_pixels);
}

peridot_status pd_picture_damaged(const struct pd_picture_file *file, const char *reason)
{
    return pd_fail(PERIDOT_ERROR_FORMAT, "%s: the %s file is damaged: %s", file->name, file->format, reason);
}

peridot_status pd_picture_cut(const struct pd_picture_file *file)
{
    return pd_fail(PERIDOT_ERROR_FORMAT, "%s: the %s file ends before its picture does: it was cut short", file->name,
                   file->format);
}

peridot_status pd_picture_no_memory(const struct pd_picture_file *file)
{
    return pd_fail(PERIDOT_ERROR_MEMORY, "%s: out of memory for decoding the %s file", file->name, file->format);
}
