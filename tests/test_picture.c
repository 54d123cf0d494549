/* Pictures: files of each format against what Pillow makes of them, other sizes against transformers' processors
 * (golden/pictures), and files that are damaged, cut short or too large. */
#include "format_fixture.h"

#include "picture/picture.h"

#define GOLDEN PERIDOT_GOLDEN "/pictures/"

static struct pd_map open_golden(const char *name)
{
    struct pd_map map;
    char path[512];
    snprintf(path, sizeof path, GOLDEN "%s", name);
    EXPECT_OK(pd_map_open(&map, path));
    return map;
}

static struct pd_picture read_golden(const char *name)
{
    struct pd_picture p;
    struct pd_map map = open_golden(name);
    EXPECT_OK(pd_picture_read(&p, guard_put(&guard, map.data, map.size), map.size, name));
    pd_map_close(&map);
    return p;
}

/* Every sample is within `most` of the next of `want`, which goes on to what is after them. */
static void expect_pixels(const char *what, const struct pd_picture *p, uint32_t width, uint32_t height,
                          const uint8_t **want, int most)
{
    if (p->width != width || p->height != height) fail_msg("%s: %u x %u", what, p->width, p->height);
    for (size_t i = 0; i < 3 * (size_t)width * height; i++, ++*want)
        if (abs(p->rgb[i] - **want) > most)
            fail_msg("%s: sample %zu of pixel %zu, %zu is %u, not %u", what, i % 3, i / 3 % width, i / 3 / width,
                     p->rgb[i], **want);
}

/* ---- what files hold ---- */

/* Calls with each file of decoded.txt and its size. */
static void for_each_file(void (*call)(const char *name, uint32_t width, uint32_t height, void *user), void *user)
{
    char name[64];
    uint32_t width, height, n = 0;
    FILE *f = fopen(GOLDEN "decoded.txt", "r");
    assert_non_null(f);
    for (; fscanf(f, "%63s %u %u", name, &width, &height) == 3; n++) call(name, width, height, user);
    fclose(f);
    assert_true(n > 30);
}

static void expect_decoded(const char *name, uint32_t width, uint32_t height, void *user)
{
    struct pd_picture p = read_golden(name);
    expect_pixels(name, &p, width, height, user, 1);
    pd_picture_free(&p);
    assert_true(!p.rgb && !p.width);
}

static void test_decode(void **state)
{
    (void)state;
    struct pd_map map = open_golden("decoded.rgb");
    const uint8_t *want = map.data;
    for_each_file(expect_decoded, &want);
    assert_ptr_equal(want, map.data + map.size);
    pd_map_close(&map);
}

/* ---- sizes ---- */

static void test_resize(void **state)
{
    (void)state;
    struct pd_picture large = read_golden("large.png"), part, p;
    struct pd_map map = open_golden("resized.rgb");
    const uint8_t *want = map.data;
    char filter[16], what[64];
    uint32_t x, y, width, height, new_width, new_height;
    FILE *f = fopen(GOLDEN "resized.txt", "r");
    assert_non_null(f);
    while (fscanf(f, "%u %u %u %u %15s %u %u", &x, &y, &width, &height, filter, &new_width, &new_height) == 7) {
        snprintf(what, sizeof what, "%s of %u x %u to %u x %u", filter, width, height, new_width, new_height);
        EXPECT_OK(pd_picture_crop(&part, &large, x, y, width, height));
        EXPECT_OK(pd_picture_resize(&p, &part, new_width, new_height,
                                    strcmp(filter, "bicubic") == 0 ? PD_PICTURE_BICUBIC : PD_PICTURE_BILINEAR));
        expect_pixels(what, &p, new_width, new_height, &want, 0);
        pd_picture_free(&part);
        pd_picture_free(&p);
    }
    fclose(f);
    assert_ptr_equal(want, map.data + map.size);
    pd_map_close(&map);
    pd_picture_free(&large);
}

static void test_same_size(void **state)
{
    (void)state;
    struct pd_picture in = read_golden("rgb.png"), out;
    EXPECT_OK(pd_picture_resize(&out, &in, in.width, in.height, PD_PICTURE_BICUBIC));
    assert_ptr_not_equal(out.rgb, in.rgb);
    assert_memory_equal(out.rgb, in.rgb, 3 * (size_t)in.width * in.height);
    pd_picture_free(&out);
    /* An even picture stays so at any scale. */
    memset(in.rgb, 255, 3 * (size_t)in.width * in.height);
    for (uint32_t n = 1; n < 600; n += 83) {
        EXPECT_OK(pd_picture_resize(&out, &in, n, 600 - n, n & 1 ? PD_PICTURE_BICUBIC : PD_PICTURE_BILINEAR));
        for (size_t i = 0; i < 3 * (size_t)n * (600 - n); i++) assert_int_equal(out.rgb[i], 255);
        pd_picture_free(&out);
    }
    pd_picture_free(&in);
}

static void test_wrong_sizes(void **state)
{
    (void)state;
    struct pd_picture in = read_golden("rgb.png"), out;
    EXPECT_FAILURE(pd_picture_resize(&out, &in, 0, 5, PD_PICTURE_BICUBIC), PERIDOT_ERROR_UNSUPPORTED, "0 x 5 pixels");
    EXPECT_FAILURE(pd_picture_resize(&out, &in, 20000, 20000, PD_PICTURE_BICUBIC), PERIDOT_ERROR_UNSUPPORTED,
                   "20000 x 20000");
    EXPECT_FAILURE(pd_picture_crop(&out, &in, 18, 0, 1, 1), PERIDOT_ERROR_ARGUMENT, "(18, 0)", "18 x 17");
    EXPECT_FAILURE(pd_picture_crop(&out, &in, 0, 17, 1, 1), PERIDOT_ERROR_ARGUMENT, "(0, 17)");
    EXPECT_OK(pd_picture_crop(&out, &in, 17, 16, 9, 9));
    assert_true(out.width == 1 && out.height == 1 && memcmp(out.rgb, in.rgb + 3 * (18 * 17 - 1), 3) == 0);
    pd_picture_free(&out);
    pd_picture_free(&in);
}

/* ---- untrusted input ---- */

/* Reads bytes that end at a page nobody may touch. */
static peridot_status read_bytes(struct pd_picture *out, const void *data, size_t size)
{
    return pd_picture_read(out, guard_put(&guard, data, size), size, "x.img");
}

/* A file without its end is no picture. */
static void expect_cut(const char *name, uint32_t width, uint32_t height, void *user)
{
    (void)width, (void)height, (void)user;
    struct pd_picture p;
    struct pd_map map = open_golden(name);
    size_t end = map.size, start = strstr(name, "large") ? end - 99 : 0;
    if (strstr(name, ".gif")) {   /* what is after the first frame is not read */
        while (read_bytes(&p, map.data, --end) == PERIDOT_OK) pd_picture_free(&p);
        assert_true(end > 2 * map.size / 5);
    }
    for (size_t size = start; size < end; size++) {
        if (read_bytes(&p, map.data, size) == PERIDOT_OK) fail_msg("%s: %zu bytes of it", name, size);
        assert_true(!p.rgb);
        if (size > end / 2)
            EXPECT_FAILURE(read_bytes(&p, map.data, size), PERIDOT_ERROR_FORMAT, "x.img: the ", " file ");
    }
    pd_map_close(&map);
}

static void test_cut(void **state)
{
    (void)state;
    for_each_file(expect_cut, NULL);
}

static void expect_no_crash(const char *name, uint32_t width, uint32_t height, void *user)
{
    (void)width, (void)height;
    struct pd_map map = open_golden(name);
    uint8_t *bytes = malloc(map.size);
    struct pd_picture p;
    for (int i = 0; i < 150; i++) {
        memcpy(bytes, map.data, map.size);
        fuzz_spoil(bytes + 4, map.size - 4, user);
        if (read_bytes(&p, bytes, map.size) == PERIDOT_OK) pd_picture_free(&p);
        else assert_true(!p.rgb && strstr(pd_error(), "x.img: "));
    }
    free(bytes);
    pd_map_close(&map);
}

static void test_damaged(void **state)
{
    (void)state;
    uint64_t random = 1;
    for_each_file(expect_no_crash, &random);
}

/* Headers of 60,000 x 60,000 pixels, or the most that a format can say, and of none. */
static void test_bombs(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t at;              /* of the width; 0: the frame header of a JPEG */
        uint8_t size[8], size_size;
        const char *said;
    } bombs[] = {
        {"rgb.jpg", 0, {0xea, 0x60, 0xea, 0x60}, 4, "60000 x 60000 pixels"},
        {"progressive.jpg", 0, {0xea, 0x60, 0xea, 0x60}, 4, "60000 x 60000 pixels"},
        {"rgb.png", 16, {0, 0, 0xea, 0x60, 0, 0, 0xea, 0x60}, 8, "60000 x 60000 pixels"},
        {"palette.gif", 6, {0x60, 0xea, 0x60, 0xea}, 4, "60000 x 60000 pixels"},
        {"palette.gif", 6, {0x40, 0x9c, 1, 0}, 4, "40000 x 1 pixels"},
        {"frame.gif", 6, {0x20, 0x4e, 0x20, 0x4e}, 4, "20000 x 20000 pixels"},
        {"moving.webp", 24, {0x5f, 0xea, 0, 0x5f, 0xea, 0}, 6, "60000 x 60000 pixels"},
        {"lossy.webp", 26, {0xff, 0x3f, 0xff, 0x3f}, 4, "16383 x 16383 pixels"},
        {"lossless.webp", 21, {0xff, 0xff, 0xff, 0x0f}, 4, "16384 x 16384 pixels"},
    };
    for (size_t i = 0; i < PD_COUNT(bombs); i++) {
        struct pd_picture p;
        struct pd_map map = open_golden(bombs[i].name);
        size_t at = bombs[i].at;
        uint8_t *bytes = malloc(map.size);
        memcpy(bytes, map.data, map.size);
        while (!bombs[i].at && !(at > 5 && bytes[at - 5] == 0xff && (bytes[at - 4] & 0xfd) == 0xc0)) at++;
        memcpy(bytes + at, bombs[i].size, bombs[i].size_size);
        if (strstr(bombs[i].name, "png")) memcpy(bytes + 29, "\x0f\xb0\xe2\x15", 4);   /* the header's checksum */
        EXPECT_FAILURE(read_bytes(&p, bytes, map.size), PERIDOT_ERROR_UNSUPPORTED, "x.img: ", bombs[i].said, "32768",
                       "100000000");
        free(bytes);
        pd_map_close(&map);
    }
}

/* A progressive JPEG of one gray block, with a scan for the first coefficient and for each of n_more. */
static void make_scans(struct blob *b, uint8_t n_more)
{
    static const uint8_t head[] = "\xff\xd8\xff\xc2\0\x0b\x08\0\x08\0\x08\1\1\x11\0"            /* SOF2 */
                                  "\xff\xc4\0\x14\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"      /* DHT, DC: "0" is 0 */
                                  "\xff\xc4\0\x14\x10\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"   /* AC: "0" ends it */
                                  "\xff\xdb\0\x43";                                            /* DQT */
    b->size = 0;
    put(b, head, sizeof head - 1);
    for (int i = 0; i <= 64; i++) put(b, (uint8_t[]){i > 0}, 1);
    for (uint8_t k = 0; k <= n_more; k++) put(b, (uint8_t[]){0xff, 0xda, 0, 8, 1, 1, 0, k, k, 0, 0x7f}, 11);
    put(b, "\xff\xd9", 2);
}

static void test_scans(void **state)
{
    (void)state;
    static struct blob b;
    struct pd_picture p;
    make_scans(&b, 49);
    EXPECT_OK(read_bytes(&p, b.data, b.size));
    assert_true(p.width == 8 && p.rgb[0] == 128 && p.rgb[191] == 128);
    pd_picture_free(&p);
    make_scans(&b, 50);
    EXPECT_FAILURE(read_bytes(&p, b.data, b.size), PERIDOT_ERROR_FORMAT, "scans are too many");
}

static void test_unknown(void **state)
{
    (void)state;
    struct pd_picture p;
    EXPECT_FAILURE(read_bytes(&p, "", 0), PERIDOT_ERROR_UNSUPPORTED, "x.img: it is empty");
    EXPECT_FAILURE(read_bytes(&p, "<!DOCTYPE html>", 15), PERIDOT_ERROR_UNSUPPORTED, "x.img: it is a web page");
    EXPECT_FAILURE(read_bytes(&p, "\xff\xd8", 2), PERIDOT_ERROR_UNSUPPORTED, "not a known kind of picture: only JPEG");
    EXPECT_FAILURE(read_bytes(&p, "\0\0\0\x18" "ftypheic\0\0\0\0", 16), PERIDOT_ERROR_UNSUPPORTED, "it is HEIC: only");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decode),  cmocka_unit_test(test_resize),      cmocka_unit_test(test_same_size),
        cmocka_unit_test(test_cut),     cmocka_unit_test(test_wrong_sizes), cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_bombs),   cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_scans),
    };
    return cmocka_run_group_tests(tests, open_guard, close_guard);
}
