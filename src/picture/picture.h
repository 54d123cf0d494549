/* Pictures: files of JPEG, PNG, WebP and GIF become rows of pixels, in the size that a model wants. Colour profiles are
 * ignored and samples taken for sRGB, as the models' own preprocessing does.
 *
 * Files are untrusted input. Sizes are checked before anything is decoded; what is damaged or cut short is an error,
 * never a part of a picture. Functions hold no state: threads may use them at the same time. */
#ifndef PD_PICTURE_PICTURE_H
#define PD_PICTURE_PICTURE_H

#include "base/base.h"

/* What is refused beyond. Decoding holds at most about 12 bytes for each pixel beside the file. */
#define PD_PICTURE_MAX_SIDE 32768u
#define PD_PICTURE_MAX_PIXELS 100000000u
#define PD_PICTURE_MAX_FILE ((size_t)1 << 30)

struct pd_picture {
    uint32_t width, height;   /* at least 1 */
    uint8_t *rgb;             /* [height][width][3], sRGB; owned */
};

/* Decodes a file, told by its first bytes: of an animation the first frame, turned as EXIF says, transparent parts over
 * white, samples of 16 bits cut to 8. `name` is for sentences. On failure *out has no pixels. */
peridot_status pd_picture_read(struct pd_picture *out, const uint8_t *bytes, size_t size, const char *name);

/* Antialiased, with the numbers of torchvision's resize of 8-bit tensors, which is what transformers calls: filters as
 * wide as the scale, weights of 16 bits, rows rounded to 8 bits and then columns. A picture of that size is copied. */
enum pd_picture_filter { PD_PICTURE_BILINEAR, PD_PICTURE_BICUBIC };
peridot_status pd_picture_resize(struct pd_picture *out, const struct pd_picture *in, uint32_t width, uint32_t height,
                                 enum pd_picture_filter filter);

/* The part of these sides whose corner is at (x, y), which must be in the picture; what is beyond its edges is left
 * out. */
peridot_status pd_picture_crop(struct pd_picture *out, const struct pd_picture *in, uint32_t x, uint32_t y,
                               uint32_t width, uint32_t height);

void pd_picture_free(struct pd_picture *p);

#endif
