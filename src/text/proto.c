#include "text/proto.h"

#include "base/num.h"

static bool read_varint(uint64_t *out, struct pd_proto_reader *r)
{
    *out = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (r->pos == r->size) return false;
        uint8_t byte = r->data[r->pos++];
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

static bool read_fixed(uint64_t *out, struct pd_proto_reader *r, unsigned size)
{
    if (size > r->size - r->pos) return false;
    *out = 0;
    for (unsigned i = 0; i < size; i++) *out |= (uint64_t)r->data[r->pos + i] << (8 * i);
    r->pos += size;
    return true;
}

static bool read_bytes(struct pd_proto_field *out, struct pd_proto_reader *r)
{
    if (!read_varint(&out->value, r) || out->value > r->size - r->pos) return false;
    out->bytes = r->data + r->pos;
    r->pos += out->value;
    return true;
}

static bool read_value(struct pd_proto_field *out, struct pd_proto_reader *r)
{
    switch (out->wire) {
    case PD_PROTO_VARINT: return read_varint(&out->value, r);
    case PD_PROTO_64: return read_fixed(&out->value, r, 8);
    case PD_PROTO_32: return read_fixed(&out->value, r, 4);
    case PD_PROTO_BYTES: return read_bytes(out, r);
    default: return false;   /* groups: obsolete, and no sentencepiece model has them */
    }
}

bool pd_proto_next(struct pd_proto_field *out, struct pd_proto_reader *r)
{
    uint64_t start = r->pos, tag;
    *out = (struct pd_proto_field){0};
    if (r->pos == r->size) return false;
    if (read_varint(&tag, r) && tag >> 3 != 0 && tag <= UINT32_MAX) {
        out->number = (uint32_t)(tag >> 3);
        out->wire = tag & 7;
        if (read_value(out, r)) return true;
    }
    r->pos = start;
    return false;
}

struct pd_proto_reader pd_proto_message(const struct pd_proto_field *field)
{
    return (struct pd_proto_reader){.data = field->bytes, .size = field->value};
}

static peridot_status write_varint(struct pd_text_buffer *b, uint64_t value)
{
    uint8_t bytes[10];
    size_t n = 0;
    for (; value >= 0x80; value >>= 7) bytes[n++] = (uint8_t)(value | 0x80);
    bytes[n++] = (uint8_t)value;
    return pd_text_append(b, bytes, n);
}

peridot_status pd_proto_write_varint(struct pd_text_buffer *b, uint32_t number, uint64_t value)
{
    PD_TRY(write_varint(b, (uint64_t)number << 3 | PD_PROTO_VARINT));
    return write_varint(b, value);
}

peridot_status pd_proto_write_float(struct pd_text_buffer *b, uint32_t number, float value)
{
    uint32_t u = pd_f32_bits(value);
    const uint8_t bytes[4] = {(uint8_t)u, (uint8_t)(u >> 8), (uint8_t)(u >> 16), (uint8_t)(u >> 24)};
    PD_TRY(write_varint(b, (uint64_t)number << 3 | PD_PROTO_32));
    return pd_text_append(b, bytes, sizeof bytes);
}

peridot_status pd_proto_write_bytes(struct pd_text_buffer *b, uint32_t number, const void *data, size_t size)
{
    PD_TRY(write_varint(b, (uint64_t)number << 3 | PD_PROTO_BYTES));
    PD_TRY(write_varint(b, size));
    return pd_text_append(b, data, size);
}
