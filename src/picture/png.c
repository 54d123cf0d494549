/* PNG by libpng: any depth and palette becomes 8 bits, 3 or 4 channels. The library reports errors by a callback that
 * must not return, hence the jump; it is set once, and what has to be freed is in the struct that is told of it. */
#include "picture/picture_.h"

#include <setjmp.h>
#include <stdio.h>

#include <png.h>

/* All that changes after setjmp is here, and in *out. */
struct state {
    const struct pd_picture_file *file;
    size_t offset;
    bool is_cut;
    char said[128];
    png_structp png;
    png_infop info;
    jmp_buf jump;
};

static void on_error(png_structp png, png_const_charp message)
{
    struct state *s = png_get_error_ptr(png);
    snprintf(s->said, sizeof s->said, "%s", message);
    longjmp(s->jump, 1);
}

static void on_warning(png_structp png, png_const_charp message) { (void)png, (void)message; }

static void read_bytes(png_structp png, png_bytep out, size_t size)
{
    struct state *s = png_get_io_ptr(png);
    s->is_cut = size > s->file->size - s->offset;
    if (s->is_cut) png_error(png, "cut");
    memcpy(out, s->file->bytes + s->offset, size);
    s->offset += size;
}

/* To RGB or RGBA of 8 bits. */
static peridot_status png_begin(struct state *s, struct pd_pixels *out)
{
    png_uint_32 width, height;
    int depth, type;
    png_get_IHDR(s->png, s->info, &width, &height, &depth, &type, NULL, NULL, NULL);
    bool has_alpha = (type & PNG_COLOR_MASK_ALPHA) || png_get_valid(s->png, s->info, PNG_INFO_tRNS);
    PD_TRY(pd_pixels_begin(out, s->file, width, height, has_alpha ? 4 : 3));
    png_set_expand(s->png);
    png_set_strip_16(s->png);
    png_set_gray_to_rgb(s->png);
    return PERIDOT_OK;
}

static peridot_status png_decode(struct state *s, struct pd_pixels *out)
{
    /* Text and profiles, which may be large when they are unpacked, are left out. */
    static const png_byte unread[] = "iCCP\0iTXt\0sPLT\0tEXt\0zTXt";
    if (setjmp(s->jump)) return s->is_cut ? pd_picture_cut(s->file) : pd_picture_damaged(s->file, s->said);
    s->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, s, on_error, on_warning);
    s->info = s->png ? png_create_info_struct(s->png) : NULL;
    if (!s->info) return pd_picture_no_memory(s->file);
    png_set_read_fn(s->png, s, read_bytes);
    png_set_user_limits(s->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);   /* there is a sentence for them in begin */
    png_set_keep_unknown_chunks(s->png, PNG_HANDLE_CHUNK_NEVER, unread, sizeof unread / 5);
    png_read_info(s->png, s->info);
    PD_TRY(png_begin(s, out));
    int n_passes = png_set_interlace_handling(s->png);
    png_read_update_info(s->png, s->info);
    size_t row_size = (size_t)out->width * out->n_channels;
    if (png_get_rowbytes(s->png, s->info) != row_size) png_error(s->png, "its rows have another size");
    for (int pass = 0; pass < n_passes; pass++)
        for (size_t y = 0; y < out->height; y++) png_read_row(s->png, out->data + y * row_size, NULL);
    png_read_end(s->png, s->info);
    png_uint_32 size = 0;
    png_bytep exif = NULL;
    if (png_get_eXIf_1(s->png, s->info, &size, &exif)) out->orientation = pd_exif_orientation(exif, size);
    return PERIDOT_OK;
}

peridot_status pd_decode_png(struct pd_pixels *out, const struct pd_picture_file *file)
{
    struct state s = {.file = file};
    peridot_status status = png_decode(&s, out);
    png_destroy_read_struct(&s.png, &s.info, NULL);
    return status;
}
