/* Pictures as models see them: three bytes a pixel, upright, over white. The format is known by the file's first bytes,
 * not by its name. A picture comes from the internet: its size is checked before there is memory for it, decoders write
 * into memory of that size, and whatever is wrong is one sentence that names the file. Decoding is left to the formats'
 * own libraries, and what is between them and pixels (orientation, alpha, sizes) follows Pillow, with which models were
 * trained. Nothing is kept between calls: any thread may decode. */
#include "picture/picture_.h"

#include <stdlib.h>

/* ---- formats ---- */

static const struct format {
    const char *name, *magic;   /* '.' stands for any byte */
    uint8_t magic_size;
    pd_picture_decoder *decode;
} formats[] = {
    {"JPEG", "\xff\xd8\xff", 3, pd_decode_jpeg},
    {"PNG", "\x89PNG\r\n\x1a\n", 8, pd_decode_png},
    {"WebP", "RIFF....WEBP", 12, pd_decode_webp},
    {"GIF", "GIF87a", 6, pd_decode_gif},
    {"GIF", "GIF89a", 6, pd_decode_gif},
}, others[] = {   /* only to name them */
    {"HEIC", "....ftyphei", 11, NULL},
    {"HEIC", "....ftypmif1", 12, NULL},
    {"AVIF", "....ftypavi", 11, NULL},
    {"JPEG XL", "\xff\x0a", 2, NULL},
    {"JPEG XL", "\0\0\0\x0cJXL ", 8, NULL},
    {"TIFF", "II*\0", 4, NULL},
    {"TIFF", "MM\0*", 4, NULL},
    {"BMP", "BM", 2, NULL},
    {"PDF", "%PDF-", 5, NULL},
    {"SVG", "<svg", 4, NULL},
    {"SVG", "<?xml", 5, NULL},
    {"a web page", "<!", 2, NULL},
    {"a web page", "<html", 5, NULL},
};

static const struct format *find_format(const struct format *table, size_t n, const struct pd_picture_file *file)
{
    for (size_t f = 0; f < n; f++) {
        size_t i = 0, size = table[f].magic_size;
        if (size > file->size) continue;
        while (i < size && (table[f].magic[i] == '.' || (uint8_t)table[f].magic[i] == file->bytes[i])) i++;
        if (i == size) return &table[f];
    }
    return NULL;
}

static peridot_status fail_unknown(const struct pd_picture_file *file)
{
    const struct format *other = find_format(others, PD_COUNT(others), file);
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: it is %s: only JPEG, PNG, WebP and GIF are read", file->name,
                   other ? other->name : file->size ? "not a known kind of picture" : "empty");
}

/* ---- reading ---- */

/* Over white, in place. */
static void compose(struct pd_pixels *p)
{
    size_t n = (size_t)p->width * p->height;
    const uint8_t *from = p->data;
    for (uint8_t *to = p->data, *end = to + 3 * n; to < end; to += 3, from += 4) {
        uint32_t alpha = from[3];
        for (int c = 0; c < 3; c++) to[c] = (uint8_t)((from[c] * alpha + 255 * (255 - alpha) + 127) / 255);
    }
    uint8_t *smaller = realloc(p->data, 3 * n);
    if (smaller) p->data = smaller;
    p->n_channels = 3;
}

peridot_status pd_picture_decode(struct pd_picture *out, struct pd_picture_file file)
{
    struct pd_pixels pixels = {.orientation = 1};
    *out = (struct pd_picture){0};
    if (file.size > PD_PICTURE_MAX_FILE)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: the file has %zu bytes; at most %zu are read", file.name,
                       file.size, PD_PICTURE_MAX_FILE);
    const struct format *format = find_format(formats, PD_COUNT(formats), &file);
    if (!format) return fail_unknown(&file);
    if (!format->decode)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: this build does not read %s files", file.name, format->name);
    file.format = format->name;
    peridot_status status = format->decode(&pixels, &file);
    if (status != PERIDOT_OK) {
        free(pixels.data);
        return status;
    }
    if (pixels.n_channels == 4) compose(&pixels);
    *out = (struct pd_picture){pixels.width, pixels.height, pixels.data};
    status = pd_picture_orient(out, pixels.orientation);
    if (status != PERIDOT_OK) pd_picture_free(out);
    return status;
}

peridot_status pd_picture_read(struct pd_picture *out, const uint8_t *bytes, size_t size, const char *name)
{
    return pd_picture_decode(out, (struct pd_picture_file){.bytes = bytes, .size = size, .name = name,
                                                           .max_pixels = PD_PICTURE_MAX_PIXELS});
}

void pd_picture_free(struct pd_picture *p)
{
    free(p->rgb);
    *p = (struct pd_picture){0};
}

peridot_status pd_picture_crop(struct pd_picture *out, const struct pd_picture *in, uint32_t x, uint32_t y,
                               uint32_t width, uint32_t height)
{
    *out = (struct pd_picture){0};
    if (x >= in->width || y >= in->height || !width || !height)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "a part of %u x %u pixels at (%u, %u) is not in a picture of %u x %u",
                       width, height, x, y, in->width, in->height);
    struct pd_picture p = {.width = (uint32_t)pd_min(width, in->width - x),
                           .height = (uint32_t)pd_min(height, in->height - y)};
    size_t row = 3 * (size_t)p.width, in_row = 3 * (size_t)in->width;
    p.rgb = malloc(row * p.height);
    if (!p.rgb) return pd_fail_alloc(row * p.height, "a part of a picture");
    for (size_t i = 0; i < p.height; i++) memcpy(p.rgb + i * row, in->rgb + (y + i) * in_row + 3 * (size_t)x, row);
    *out = p;
    return PERIDOT_OK;
}

/* ---- decode ---- */

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
