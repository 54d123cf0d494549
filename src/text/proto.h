/* The protobuf wire format, as much as a sentencepiece model needs of it: tagged varints, 32-bit and length-delimited
 * fields (protobuf.dev/programming-guides/encoding). */
#ifndef PD_TEXT_PROTO_H
#define PD_TEXT_PROTO_H

#include "text/buffer.h"

enum pd_proto_wire { PD_PROTO_VARINT = 0, PD_PROTO_64 = 1, PD_PROTO_BYTES = 2, PD_PROTO_32 = 5 };

struct pd_proto_reader {
    const uint8_t *data;
    uint64_t size, pos;
};

struct pd_proto_field {
    uint32_t number;
    uint32_t wire;           /* enum pd_proto_wire */
    uint64_t value;          /* VARINT, 64, 32 */
    const uint8_t *bytes;    /* BYTES: `value` of them */
};

/* The next field; false at the end, and at a byte that is no field: then pos < size tells it from the end. */
bool pd_proto_next(struct pd_proto_field *out, struct pd_proto_reader *r);
struct pd_proto_reader pd_proto_message(const struct pd_proto_field *field);

peridot_status pd_proto_write_varint(struct pd_text_buffer *b, uint32_t number, uint64_t value);
peridot_status pd_proto_write_float(struct pd_text_buffer *b, uint32_t number, float value);
peridot_status pd_proto_write_bytes(struct pd_text_buffer *b, uint32_t number, const void *data, size_t size);

#endif
