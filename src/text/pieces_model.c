/* A sentencepiece ModelProto (sentencepiece_model.proto in google/sentencepiece) to pieces and back. Reading takes
 * pieces, the trainer's ids and the normaliser's flags, and refuses what changes the maths; writing gives a model that
 * differs from another only in its pieces, so that one path through sentencepiece serves every file. */
#include "text/text_.h"

#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>

/* Field numbers. */
enum { MODEL_PIECES = 1, MODEL_TRAINER = 2, MODEL_NORMALIZER = 3 };
enum { PIECE_TEXT = 1, PIECE_SCORE = 2, PIECE_TYPE = 3 };
enum { TRAINER_TYPE = 3, TRAINER_SUFFIX = 24, TRAINER_BYTE_FALLBACK = 35, TRAINER_BOS = 41, TRAINER_EOS = 42,
       TRAINER_BOS_PIECE = 46, TRAINER_EOS_PIECE = 47 };
enum { NORMALIZER_NAME = 1, NORMALIZER_RULES = 2, NORMALIZER_PREFIX = 3, NORMALIZER_REMOVE = 4, NORMALIZER_ESCAPE = 5 };
/* What the specs say, with the defaults of the .proto file. */
struct spec {
    int64_t type, bos, eos;
    bool suffix, prefix, remove, escape, rules, has_trainer, has_normalizer;
    struct pd_proto_field bos_piece, eos_piece;
};

static peridot_status bad_byte(const struct pd_proto_reader *r, const uint8_t *start)
{
    return pd_fail(PERIDOT_ERROR_FORMAT, "not a sentencepiece model, or one that was cut short (byte %llu)",
                   (unsigned long long)(r->data - start + r->pos));
}

static peridot_status read_piece(struct pd_pieces *out, struct pd_proto_reader r, const uint8_t *start)
{
    struct pd_proto_field f, text = {0};
    double score = 0;
    int64_t type = PD_PIECE_NORMAL;
    while (pd_proto_next(&f, &r)) {
        if (f.number == PIECE_TEXT && f.wire == PD_PROTO_BYTES) text = f;
        else if (f.number == PIECE_SCORE && f.wire == PD_PROTO_32) score = pd_f32_from_bits((uint32_t)f.value);
        else if (f.number == PIECE_TYPE && f.wire == PD_PROTO_VARINT) type = (int64_t)f.value;
    }
    if (r.pos < r.size) return bad_byte(&r, start);
    return pd_pieces_add(out, (const char *)text.bytes, text.value, score, type);
}

static peridot_status read_trainer(struct spec *out, struct pd_proto_reader r, const uint8_t *start)
{
    struct pd_proto_field f;
    out->has_trainer = true;
    while (pd_proto_next(&f, &r)) {
        if (f.wire == PD_PROTO_VARINT) {
            if (f.number == TRAINER_TYPE) out->type = (int64_t)f.value;
            else if (f.number == TRAINER_BOS) out->bos = (int64_t)f.value;
            else if (f.number == TRAINER_EOS) out->eos = (int64_t)f.value;
            else if (f.number == TRAINER_SUFFIX) out->suffix = f.value != 0;
        } else if (f.wire == PD_PROTO_BYTES) {
            if (f.number == TRAINER_BOS_PIECE) out->bos_piece = f;
            else if (f.number == TRAINER_EOS_PIECE) out->eos_piece = f;
        }
    }
    return r.pos < r.size ? bad_byte(&r, start) : PERIDOT_OK;
}

static peridot_status read_normalizer(struct spec *out, struct pd_proto_reader r, const uint8_t *start)
{
    struct pd_proto_field f;
    out->has_normalizer = true;
    while (pd_proto_next(&f, &r)) {
        if (f.wire == PD_PROTO_VARINT) {
            if (f.number == NORMALIZER_PREFIX) out->prefix = f.value != 0;
            else if (f.number == NORMALIZER_REMOVE) out->remove = f.value != 0;
            else if (f.number == NORMALIZER_ESCAPE) out->escape = f.value != 0;
        } else if (f.wire == PD_PROTO_BYTES && f.number == NORMALIZER_RULES) {
            out->rules = f.value != 0;
        }
    }
    return r.pos < r.size ? bad_byte(&r, start) : PERIDOT_OK;
}

static peridot_status read_fields(struct pd_pieces *out, struct spec *spec, struct pd_proto_reader r)
{
    const uint8_t *start = r.data;
    struct pd_proto_field f;
    while (pd_proto_next(&f, &r)) {
        if (f.wire != PD_PROTO_BYTES) continue;
        if (f.number == MODEL_PIECES) PD_TRY(read_piece(out, pd_proto_message(&f), start));
        else if (f.number == MODEL_TRAINER) PD_TRY(read_trainer(spec, pd_proto_message(&f), start));
        else if (f.number == MODEL_NORMALIZER) PD_TRY(read_normalizer(spec, pd_proto_message(&f), start));
    }
    return r.pos < r.size ? bad_byte(&r, start) : PERIDOT_OK;
}

static peridot_status check_spec(const struct spec *s)
{
    bool known = s->type >= PD_ALGORITHM_UNIGRAM && s->type <= PD_ALGORITHM_CHAR;
    const char *what = !known     ? "an unknown type"
                     : s->rules   ? "a normaliser with character rules"
                     : s->suffix  ? "spaces as suffixes"
                     : !s->escape ? "spaces that are not escaped" : NULL;
    if (!what) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the sentencepiece model has %s, which Peridot does not know", what);
}

/* By id, else by name: trainers leave either at a default that fits another vocabulary ("<s>" is an HTML tag in
 * Gemma's). */
static int32_t find_control(const struct pd_pieces *p, int64_t id, const struct pd_proto_field *name)
{
    if (id >= 0 && id < p->n && p->piece[id].type == PD_PIECE_CONTROL) return (int32_t)id;
    return name->bytes ? pd_pieces_find_control(p, (const char *)name->bytes, name->value) : -1;
}

peridot_status pd_pieces_read_model(struct pd_pieces *out, const uint8_t *data, uint64_t size)
{
    struct spec spec = {.type = 1, .bos = 1, .eos = 2, .prefix = true, .remove = true, .escape = true};
    *out = (struct pd_pieces){.bos = -1, .eos = -1, .end = -1, .algorithm = PD_ALGORITHM_UNIGRAM};
    PD_TRY(read_fields(out, &spec, (struct pd_proto_reader){.data = data, .size = size}));
    if (out->n == 0) return pd_fail(PERIDOT_ERROR_FORMAT, "not a sentencepiece model (it has no pieces)");
    /* All writers write both, after the pieces: without them the defaults of the .proto file would hold. */
    if (!spec.has_trainer || !spec.has_normalizer)
        return pd_fail(PERIDOT_ERROR_FORMAT, "the sentencepiece model is cut off: it lacks its settings");
    PD_TRY(check_spec(&spec));
    out->algorithm = (enum pd_algorithm)spec.type;
    out->remove_spaces = spec.remove;
    out->dummy_prefix = out->strip_prefix = out->prefix_each = spec.prefix;
    out->bos = find_control(out, spec.bos, &spec.bos_piece);
    out->eos = find_control(out, spec.eos, &spec.eos_piece);
    return pd_pieces_check(out);
}

static peridot_status write_field(struct pd_buffer *out, struct pd_buffer *scratch, const char *text,
                                  size_t size, struct pd_piece piece)
{
    scratch->size = 0;
    PD_TRY(pd_proto_write_bytes(scratch, PIECE_TEXT, text, size));
    PD_TRY(pd_proto_write_float(scratch, PIECE_SCORE, piece.score));
    PD_TRY(pd_proto_write_varint(scratch, PIECE_TYPE, piece.type));
    return pd_proto_write_bytes(out, MODEL_PIECES, scratch->data, scratch->size);
}

/* A piece that plain text must not make, or cannot, goes under a name with a space, which no escaped text has, whatever
 * the file calls it; sentencepiece does not need its name, since control tokens in text are found by ourselves. */
static peridot_status write_hidden(struct pd_buffer *out, struct pd_buffer *scratch, uint32_t id,
                                   uint8_t type)
{
    char name[24];
    size_t size = (size_t)snprintf(name, sizeof name, "control %u", id);
    return write_field(out, scratch, name, size, (struct pd_piece){.type = type});
}

static peridot_status pieces_model_write_piece(struct pd_buffer *out, struct pd_buffer *scratch,
                                               const struct pd_pieces *p, uint32_t id)
{
    struct pd_piece piece = p->piece[id];
    if (piece.type == PD_PIECE_CONTROL) return write_hidden(out, scratch, id, PD_PIECE_CONTROL);
    return write_field(out, scratch, pd_pieces_text(p, id), piece.size, piece);
}

/* sentencepiece wants a piece for the unknown, even where bytes leave nothing unknown. */
static peridot_status write_unknown(struct pd_buffer *out, struct pd_buffer *scratch,
                                    const struct pd_pieces *p)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (p->piece[i].type == PD_PIECE_UNKNOWN) return PERIDOT_OK;
    return write_hidden(out, scratch, p->n, PD_PIECE_UNKNOWN);
}

static peridot_status write_specs(struct pd_buffer *out, struct pd_buffer *scratch, const struct pd_pieces *p)
{
    scratch->size = 0;
    PD_TRY(pd_proto_write_varint(scratch, TRAINER_TYPE, p->algorithm));
    PD_TRY(pd_proto_write_varint(scratch, TRAINER_BYTE_FALLBACK, pd_pieces_has_bytes(p)));
    PD_TRY(pd_proto_write_bytes(out, MODEL_TRAINER, scratch->data, scratch->size));
    scratch->size = 0;
    PD_TRY(pd_proto_write_bytes(scratch, NORMALIZER_NAME, "identity", 8));
    PD_TRY(pd_proto_write_varint(scratch, NORMALIZER_PREFIX, p->remove_spaces && p->dummy_prefix));
    PD_TRY(pd_proto_write_varint(scratch, NORMALIZER_REMOVE, p->remove_spaces));
    PD_TRY(pd_proto_write_varint(scratch, NORMALIZER_ESCAPE, 1));
    return pd_proto_write_bytes(out, MODEL_NORMALIZER, scratch->data, scratch->size);
}

peridot_status pd_pieces_write_model(struct pd_buffer *out, const struct pd_pieces *p)
{
    struct pd_buffer scratch = {0};
    peridot_status status = PERIDOT_OK;
    for (uint32_t i = 0; i < p->n && status == PERIDOT_OK; i++) status = pieces_model_write_piece(out, &scratch, p, i);
    if (status == PERIDOT_OK) status = write_unknown(out, &scratch, p);
    if (status == PERIDOT_OK) status = write_specs(out, &scratch, p);
    free(scratch.data);
    return status;
}

/* ---- proto ---- */

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

static peridot_status write_varint(struct pd_buffer *b, uint64_t value)
{
    uint8_t bytes[10];
    size_t n = 0;
    for (; value >= 0x80; value >>= 7) bytes[n++] = (uint8_t)(value | 0x80);
    bytes[n++] = (uint8_t)value;
    return pd_buffer_add(b, bytes, n);
}

peridot_status pd_proto_write_varint(struct pd_buffer *b, uint32_t number, uint64_t value)
{
    PD_TRY(write_varint(b, (uint64_t)number << 3 | PD_PROTO_VARINT));
    return write_varint(b, value);
}

peridot_status pd_proto_write_float(struct pd_buffer *b, uint32_t number, float value)
{
    uint32_t u = pd_f32_bits(value);
    const uint8_t bytes[4] = {(uint8_t)u, (uint8_t)(u >> 8), (uint8_t)(u >> 16), (uint8_t)(u >> 24)};
    PD_TRY(write_varint(b, (uint64_t)number << 3 | PD_PROTO_32));
    return pd_buffer_add(b, bytes, sizeof bytes);
}

peridot_status pd_proto_write_bytes(struct pd_buffer *b, uint32_t number, const void *data, size_t size)
{
    PD_TRY(write_varint(b, (uint64_t)number << 3 | PD_PROTO_BYTES));
    PD_TRY(write_varint(b, size));
    return pd_buffer_add(b, data, size);
}
