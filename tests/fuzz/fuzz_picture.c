/* The bytes of a picture's file, of no more pixels than are decoded in a moment. */
#include "harness.h"

#include "picture/picture_.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pd_picture p, small;
    if (!fuzz_ok(pd_picture_decode(&p, (struct pd_picture_file){data, size, "x.img", "", 1 << 16}))) {
        FUZZ_CHECK(!p.rgb);
        return 0;
    }
    FUZZ_CHECK(p.width && p.height && (uint64_t)p.width * p.height <= 1 << 16);
    if (fuzz_ok(pd_picture_resize(&small, &p, 1 + size % 9, 3, size & 1 ? PD_PICTURE_BICUBIC : PD_PICTURE_BILINEAR)))
        pd_picture_free(&small);
    pd_picture_free(&p);
    return 0;
}
