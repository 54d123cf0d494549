/* WebP by libwebp: the picture, or the first frame of an animation on its canvas. */
#include "picture/picture_.h"

#include <webp/decode.h>
#include <webp/demux.h>

static peridot_status decode_frame(struct pd_pixels *out, const struct pd_picture_file *file, const WebPIterator *frame)
{
    size_t row = (size_t)out->width * out->n_channels;
    size_t first = (size_t)frame->y_offset * row + (size_t)frame->x_offset * out->n_channels;
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config)) return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "another libwebp than built with");
    if (frame->x_offset < 0 || frame->y_offset < 0 || frame->width < 1 || frame->height < 1 ||
        (uint64_t)frame->x_offset + (uint64_t)frame->width > out->width ||
        (uint64_t)frame->y_offset + (uint64_t)frame->height > out->height)
        return pd_picture_damaged(file, "a frame is beyond its edges");
    config.output.colorspace = out->n_channels == 4 ? MODE_RGBA : MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = out->data + first;
    config.output.u.RGBA.stride = (int)row;
    config.output.u.RGBA.size = row * out->height - first;
    VP8StatusCode code = WebPDecode(frame->fragment.bytes, frame->fragment.size, &config);
    WebPFreeDecBuffer(&config.output);
    switch (code) {
    case VP8_STATUS_OK: return PERIDOT_OK;
    case VP8_STATUS_OUT_OF_MEMORY: return pd_picture_no_memory(file);
    case VP8_STATUS_SUSPENDED:
    case VP8_STATUS_NOT_ENOUGH_DATA: return pd_picture_cut(file);
    default: return pd_picture_damaged(file, "its data contradict the format");
    }
}

static peridot_status webp_decode(struct pd_pixels *out, const struct pd_picture_file *file, WebPDemuxer *demuxer)
{
    WebPIterator frame;
    WebPChunkIterator exif;
    uint32_t width = WebPDemuxGetI(demuxer, WEBP_FF_CANVAS_WIDTH);
    uint32_t height = WebPDemuxGetI(demuxer, WEBP_FF_CANVAS_HEIGHT);
    PD_TRY(pd_picture_check_size(file->name, width, height, file->max_pixels));
    if (!WebPDemuxGetFrame(demuxer, 1, &frame)) return pd_picture_damaged(file, "it has no picture");
    peridot_status status = pd_pixels_begin(out, file, width, height, frame.has_alpha ? 4 : 3);
    if (status == PERIDOT_OK) {   /* around the frame, white or transparent */
        memset(out->data, frame.has_alpha ? 0 : 255, (size_t)width * height * out->n_channels);
        status = decode_frame(out, file, &frame);
    }
    WebPDemuxReleaseIterator(&frame);
    if (status == PERIDOT_OK && WebPDemuxGetChunk(demuxer, "EXIF", 1, &exif)) {
        out->orientation = pd_exif_orientation(exif.chunk.bytes, exif.chunk.size);
        WebPDemuxReleaseChunkIterator(&exif);
    }
    return status;
}

peridot_status pd_decode_webp(struct pd_pixels *out, const struct pd_picture_file *file)
{
    WebPData data = {file->bytes, file->size};
    WebPDemuxState state;
    WebPDemuxer *demuxer = WebPDemuxPartial(&data, &state);
    peridot_status status = state == WEBP_DEMUX_PARSE_ERROR ? pd_picture_damaged(file, "its chunks are wrong")
                          : !demuxer || state != WEBP_DEMUX_DONE ? pd_picture_cut(file)
                              : webp_decode(out, file, demuxer);
    WebPDemuxDelete(demuxer);
    return status;
}
