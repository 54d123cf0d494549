/* The first frame of a GIF file, by giflib, on the canvas that the header tells. Lines are read one by one into it, as
 * the library's own way of reading whole files allocates what they say without a limit. */
#include "picture/picture_.h"

#include <stdlib.h>

#include <gif_lib.h>

struct state {
    const struct pd_picture_file *file;
    size_t offset;
    bool is_cut;
    int transparent;   /* a colour's index; -1: none */
    GifFileType *gif;
    uint8_t *line;
};

static int read_bytes(GifFileType *gif, GifByteType *out, int size)
{
    struct state *s = gif->UserData;
    size_t n = (size_t)pd_min((uint64_t)size, s->file->size - s->offset);
    s->is_cut = n < (size_t)size;
    memcpy(out, s->file->bytes + s->offset, n);
    s->offset += n;
    return (int)n;
}

static peridot_status gif_fail(const struct state *s)
{
    const char *said = s->gif ? GifErrorString(s->gif->Error) : NULL;
    return s->is_cut ? pd_picture_cut(s->file) : pd_picture_damaged(s->file, said ? said : "its header is wrong");
}

/* Goes on to the first frame, with what extensions say of it. */
static peridot_status find_frame(struct state *s)
{
    GifRecordType type;
    GifByteType *block;
    int code;
    for (;;) {
        if (DGifGetRecordType(s->gif, &type) != GIF_OK) return gif_fail(s);
        if (type == IMAGE_DESC_RECORD_TYPE) return DGifGetImageDesc(s->gif) == GIF_OK ? PERIDOT_OK : gif_fail(s);
        if (type != EXTENSION_RECORD_TYPE) return pd_picture_damaged(s->file, "it has no picture");
        if (DGifGetExtension(s->gif, &code, &block) != GIF_OK) return gif_fail(s);
        if (code == GRAPHICS_EXT_FUNC_CODE && block && block[0] >= 4)
            s->transparent = block[1] & 1 ? block[4] : -1;
        while (block)
            if (DGifGetExtensionNext(s->gif, &block) != GIF_OK) return gif_fail(s);
    }
}

static peridot_status read_line(struct state *s, uint8_t *rgb)
{
    const ColorMapObject *colors = s->gif->Image.ColorMap ? s->gif->Image.ColorMap : s->gif->SColorMap;
    if (!colors) return pd_picture_damaged(s->file, "it has no palette");
    if (DGifGetLine(s->gif, s->line, s->gif->Image.Width) != GIF_OK) return gif_fail(s);
    for (int x = 0; x < s->gif->Image.Width; x++, rgb += 3) {
        if (s->line[x] == s->transparent) continue;
        if (s->line[x] >= colors->ColorCount) return pd_picture_damaged(s->file, "a colour is not in its palette");
        GifColorType color = colors->Colors[s->line[x]];
        rgb[0] = color.Red, rgb[1] = color.Green, rgb[2] = color.Blue;
    }
    return PERIDOT_OK;
}

static peridot_status gif_decode(struct state *s, struct pd_pixels *out)
{
    static const struct { int first, step; } passes[2][4] = {{{0, 1}}, {{0, 8}, {4, 8}, {2, 4}, {1, 2}}};
    int error;
    s->gif = DGifOpen(s, read_bytes, &error);
    if (!s->gif) return gif_fail(s);
    PD_TRY(pd_picture_check_size(s->file->name, pd_max(1, (uint64_t)s->gif->SWidth),
                                 pd_max(1, (uint64_t)s->gif->SHeight), s->file->max_pixels));
    PD_TRY(find_frame(s));
    GifImageDesc frame = s->gif->Image;
    if (frame.Width < 1 || frame.Height < 1) return pd_picture_damaged(s->file, "it has no picture");
    PD_TRY(pd_pixels_begin(out, s->file, pd_max((uint64_t)s->gif->SWidth, (uint64_t)frame.Left + frame.Width),
                           pd_max((uint64_t)s->gif->SHeight, (uint64_t)frame.Top + frame.Height), 3));
    memset(out->data, 255, 3 * (size_t)out->width * out->height);
    s->line = malloc((size_t)pd_max(1, frame.Width));
    if (!s->line) return pd_picture_no_memory(s->file);
    for (int pass = 0; pass < (frame.Interlace ? 4 : 1); pass++)
        for (int y = passes[frame.Interlace][pass].first; y < frame.Height; y += passes[frame.Interlace][pass].step)
            PD_TRY(read_line(s, out->data + 3 * ((size_t)(frame.Top + y) * out->width + frame.Left)));
    return PERIDOT_OK;
}

peridot_status pd_decode_gif(struct pd_pixels *out, const struct pd_picture_file *file)
{
    struct state s = {.file = file, .transparent = -1};
    peridot_status status = gif_decode(&s, out);
    free(s.line);
    if (s.gif) DGifCloseFile(s.gif, NULL);
    return status;
}
