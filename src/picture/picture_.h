/* Within this room: what the decoders of the formats get and give. */
#ifndef PD_PICTURE_PICTURE_PRIVATE_H
#define PD_PICTURE_PICTURE_PRIVATE_H

#include "base/base.h"
#include "picture/picture.h"

struct pd_picture_file {
    const uint8_t *bytes;
    size_t size;
    const char *name, *format;   /* "JPEG" */
    uint64_t max_pixels;
};

struct pd_pixels {
    uint32_t width, height, n_channels;   /* 3, or 4 with alpha, which is not premultiplied */
    uint32_t orientation;                 /* EXIF's, 1 to 8 */
    uint8_t *data;                        /* [height][width][n_channels] */
};

/* Reads any file, of at most max_pixels. */
peridot_status pd_picture_decode(struct pd_picture *out, struct pd_picture_file file);

/* A decoder begins here with the size in the file's header: too large ones fail, else there is memory for the pixels,
 * which the caller of the decoder frees whatever comes. */
peridot_status pd_pixels_begin(struct pd_pixels *out, const struct pd_picture_file *file, uint64_t width,
                               uint64_t height, uint32_t n_channels);

peridot_status pd_picture_check_size(const char *name, uint64_t width, uint64_t height, uint64_t max_pixels);
peridot_status pd_picture_damaged(const struct pd_picture_file *file, const char *reason);
peridot_status pd_picture_cut(const struct pd_picture_file *file);
peridot_status pd_picture_no_memory(const struct pd_picture_file *file);

/* The orientation of an EXIF block, with or without "Exif\0\0" before it; 1 where it says none. */
uint32_t pd_exif_orientation(const uint8_t *data, size_t size);
/* Turns the picture upright. */
peridot_status pd_picture_orient(struct pd_picture *p, uint32_t orientation);

/* NULL: this build is without. */
typedef peridot_status pd_picture_decoder(struct pd_pixels *out, const struct pd_picture_file *file);
#ifdef PD_WITH_JPEG
pd_picture_decoder pd_decode_jpeg;
#else
#define pd_decode_jpeg NULL
#endif
#ifdef PD_WITH_PNG
pd_picture_decoder pd_decode_png;
#else
#define pd_decode_png NULL
#endif
#ifdef PD_WITH_WEBP
pd_picture_decoder pd_decode_webp;
#else
#define pd_decode_webp NULL
#endif
#ifdef PD_WITH_GIF
pd_picture_decoder pd_decode_gif;
#else
#define pd_decode_gif NULL
#endif

#endif
