/* EXIF's orientation: where a camera was held, as a tag in a small TIFF file within the picture's. */
#include "picture/picture_.h"

#include <stdlib.h>

struct tiff {
    const uint8_t *data;
    size_t size;
    bool big_endian;
};

/* Bytes that are not there are zero. */
static uint32_t orientation_get(const struct tiff *t, uint64_t at, uint32_t n_bytes)
{
    uint32_t value = 0;
    for (uint32_t i = 0; i < n_bytes; i++) {
        uint64_t from = at + (t->big_endian ? i : n_bytes - 1 - i);
        value = value << 8 | (from < t->size ? t->data[from] : 0);
    }
    return value;
}

uint32_t pd_exif_orientation(const uint8_t *data, size_t size)
{
    enum { TAG_ORIENTATION = 0x112, TYPE_SHORT = 3 };
    if (size >= 6 && memcmp(data, "Exif\0\0", 6) == 0) data += 6, size -= 6;
    if (size < 8 || (memcmp(data, "II*\0", 4) != 0 && memcmp(data, "MM\0*", 4) != 0)) return 1;
    struct tiff t = {data, size, data[0] == 'M'};
    uint64_t directory = orientation_get(&t, 4, 4);
    uint32_t n = orientation_get(&t, directory, 2);
    for (uint64_t at = directory + 2; n > 0; n--, at += 12) {
        if (orientation_get(&t, at, 2) != TAG_ORIENTATION) continue;
        uint32_t value = orientation_get(&t, at + 8, 2);
        return orientation_get(&t, at + 2, 2) == TYPE_SHORT && value >= 1 && value <= 8 ? value : 1;
    }
    return 1;
}

peridot_status pd_picture_orient(struct pd_picture *p, uint32_t orientation)
{
    enum { TILE = 32 };   /* square: rows of one are columns of the other */
    static const struct { bool swap, flip_x, flip_y; } turns[9] = {   /* of the stored picture: sides, then its axes */
        [2] = {false, true, false}, [3] = {false, true, true}, [4] = {false, false, true}, [5] = {true, false, false},
        [6] = {true, false, true}, [7] = {true, true, true}, [8] = {true, true, false}};
    if (orientation < 2) return PERIDOT_OK;
    uint32_t width = turns[orientation].swap ? p->height : p->width;
    uint32_t height = turns[orientation].swap ? p->width : p->height;
    uint8_t *to = malloc(3 * (size_t)width * height);
    if (!to) return pd_fail_alloc(3 * (size_t)width * height, "a turned picture");
    for (uint32_t top = 0; top < height; top += TILE)
        for (uint32_t left = 0; left < width; left += TILE)
            for (uint32_t y = top; y < height && y < top + TILE; y++)
                for (uint32_t x = left; x < width && x < left + TILE; x++) {
                    uint32_t column = turns[orientation].swap ? y : x, row = turns[orientation].swap ? x : y;
                    if (turns[orientation].flip_x) column = p->width - 1 - column;
                    if (turns[orientation].flip_y) row = p->height - 1 - row;
                    memcpy(to + 3 * ((size_t)y * width + x), p->rgb + 3 * ((size_t)row * p->width + column), 3);
                }
    free(p->rgb);
    *p = (struct pd_picture){width, height, to};
    return PERIDOT_OK;
}
