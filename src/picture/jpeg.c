/* JPEG by libjpeg-turbo, with its default arithmetic, as Pillow has it. A file that ends early is refused, though the
 * library would make the rest up: a model would describe the grey. The jump is as in png.c. */
#include "picture/picture_.h"

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>
#include <jerror.h>

/* Each scan of a progressive file goes over the whole picture, 0.1 s for the largest, however few bytes it has.
 * Encoders write about ten. */
enum { MAX_SCANS = 50 };
/* For the coefficients of a progressive file, at most 4 components of 2 bytes for a pixel, and small things. */
enum { MAX_MEMORY = 1 << 30 };

/* All that changes after setjmp is here, and in *out. */
struct jpeg {
    struct jpeg_decompress_struct c;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf jump;
};

static void on_error(j_common_ptr c)
{
    struct jpeg *j = c->client_data;
    longjmp(j->jump, 1);
}

/* Warnings mean that a part of the picture was made up, but for these. */
static void on_message(j_common_ptr c, int level)
{
    static const int harmless[] = {JWRN_ADOBE_XFORM, JWRN_EXTRANEOUS_DATA, JWRN_JFIF_MAJOR, JWRN_NOT_SEQUENTIAL};
    if (level >= 0) return;
    for (size_t i = 0; i < PD_COUNT(harmless); i++)
        if (c->err->msg_code == harmless[i]) return;
    on_error(c);
}

static void on_output(j_common_ptr c) { (void)c; }

static void jpeg_on_progress(j_common_ptr c)
{
    if (((j_decompress_ptr)c)->input_scan_number <= MAX_SCANS) return;
    c->err->msg_code = JERR_BAD_PROGRESSION;
    on_error(c);
}

static peridot_status jpeg_fail(struct jpeg *j, const struct pd_picture_file *file)
{
    char said[JMSG_LENGTH_MAX];
    switch (j->errors.msg_code) {
    case JWRN_JPEG_EOF:
    case JERR_INPUT_EOF:
    case JERR_INPUT_EMPTY: return pd_picture_cut(file);
    case JERR_OUT_OF_MEMORY:
    case JERR_NO_BACKING_STORE: return pd_picture_no_memory(file);
    case JERR_BAD_PROGRESSION: return pd_picture_damaged(file, "its scans are too many, or contradict each other");
    default:
        j->errors.format_message((j_common_ptr)&j->c, said);
        return pd_picture_damaged(file, said);
    }
}

/* Inverted, as Adobe writes them and all others after it: 0 is full ink. */
static void from_cmyk(uint8_t *rgb, const uint8_t *cmyk, uint32_t width)
{
    for (uint32_t x = 0; x < width; x++, rgb += 3, cmyk += 4)
        for (int c = 0; c < 3; c++) rgb[c] = (uint8_t)((cmyk[c] * cmyk[3] + 127) / 255);
}

static peridot_status jpeg_decode(struct jpeg *j, struct pd_pixels *out, const struct pd_picture_file *file)
{
    struct jpeg_decompress_struct *c = &j->c;
    if (setjmp(j->jump)) return jpeg_fail(j, file);
    jpeg_create_decompress(c);
    c->client_data = j;
    c->progress = &j->progress;
    c->mem->max_memory_to_use = MAX_MEMORY;
    jpeg_mem_src(c, file->bytes, (unsigned long)file->size);
    jpeg_save_markers(c, JPEG_APP0 + 1, 0xffff);
    jpeg_read_header(c, TRUE);
    PD_TRY(pd_pixels_begin(out, file, c->image_width, c->image_height, 3));
    for (jpeg_saved_marker_ptr m = c->marker_list; m; m = m->next)
        if (m->data_length >= 6 && memcmp(m->data, "Exif\0\0", 6) == 0) {
            out->orientation = pd_exif_orientation(m->data, m->data_length);
            break;
        }
    bool is_cmyk = c->jpeg_color_space == JCS_CMYK || c->jpeg_color_space == JCS_YCCK;
    c->out_color_space = is_cmyk ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(c);
    JSAMPARRAY line = is_cmyk ? c->mem->alloc_sarray((j_common_ptr)c, JPOOL_IMAGE, 4 * c->image_width, 1) : NULL;
    while (c->output_scanline < c->output_height) {
        JSAMPROW row = out->data + 3 * (size_t)c->image_width * c->output_scanline;
        jpeg_read_scanlines(c, is_cmyk ? line : &row, 1);
        if (is_cmyk) from_cmyk(row, line[0], c->image_width);
    }
    jpeg_finish_decompress(c);
    return PERIDOT_OK;
}

peridot_status pd_decode_jpeg(struct pd_pixels *out, const struct pd_picture_file *file)
{
    struct jpeg j = {.progress.progress_monitor = jpeg_on_progress};
    j.c.err = jpeg_std_error(&j.errors);
    j.c.client_data = &j;
    j.errors.error_exit = on_error;
    j.errors.emit_message = on_message;
    j.errors.output_message = on_output;
    peridot_status status = jpeg_decode(&j, out, file);
    jpeg_destroy_decompress(&j.c);
    return status;
}
