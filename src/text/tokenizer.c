/* Encoding and decoding by a tokenizer that is open: whole texts, and ids one by one as they are drawn. */
#include "text/text_.h"

#include "base/base.h"
#include "text/template/template.h"

#include <stdlib.h>
#include <string.h>

void pd_tokenizer_close(struct pd_tokenizer *t)
{
    if (!t) return;
    pd_sentencepiece_free(t->sentencepiece);
    pd_bpe_free(t->bpe);
    pd_special_free(&t->special);
    pd_pieces_free(&t->pieces);
    pd_template_free(t->program);
    pd_template_free(t->tools_program);
    free(t->thought_header.data);
    free(t->jinja.data);
    free(t->tools_jinja.data);
    free(t);
}

uint32_t pd_tokenizer_size(const struct pd_tokenizer *t) { return t->pieces.n; }
int32_t pd_tokenizer_bos(const struct pd_tokenizer *t) { return t->pieces.bos; }
const char *pd_tokenizer_template(peridot_template_origin *origin, const struct pd_tokenizer *t)
{
    *origin = t->chat_origin;
    return t->program && !t->published ? PD_CHAT_PROGRAM : t->chat ? t->chat->name : NULL;
}

const char *pd_tokenizer_template_error(const struct pd_tokenizer *t) { return t->program_error; }

bool pd_tokenizer_reads_tools(const struct pd_tokenizer *t)
{
    if (t->tools_program) return true;
    return t->program && (pd_template_reads(t->program, "tools") || strstr(t->jinja.data, "message['tools']"));
}

const char *pd_tokenizer_tools_program(const struct pd_tokenizer *t, const char *template_name)
{
    bool runs = t->program && (!template_name || strcmp(template_name, PD_CHAT_PROGRAM) == 0);
    bool calls = runs && (pd_tokenizer_reads_tools(t) || strstr(t->jinja.data, "tool_calls"));
    if (runs && t->tools_program) return t->tools_jinja.data;
    return calls ? t->jinja.data : NULL;
}

bool pd_tokenizer_is_stop(const struct pd_tokenizer *t, int32_t id)
{
    return id >= 0 && (uint32_t)id < t->pieces.n && t->pieces.piece[id].stop;
}

int32_t pd_tokenizer_find_control(const struct pd_tokenizer *t, const char *text)
{
    int32_t id = pd_special_find(&t->special, &t->pieces, text);
    return id >= 0 && t->pieces.piece[id].type == PD_PIECE_CONTROL ? id : -1;
}

bool pd_tokenizer_is_suppressed(const struct pd_tokenizer *t, int32_t id)
{
    return id >= 0 && (uint32_t)id < t->pieces.n && t->pieces.piece[id].suppressed;
}

uint32_t pd_tokenizer_n_suppressed(const struct pd_tokenizer *t) { return t->pieces.n_suppressed; }

bool pd_tokenizer_thoughts(int32_t ids[PD_N_THOUGHT_MARKS], const struct pd_tokenizer *t)
{
    memcpy(ids, t->thoughts, sizeof t->thoughts);
    return ids[0] >= 0;
}

bool pd_tokenizer_names_thoughts(const struct pd_tokenizer *t) { return t->thoughts_named; }
const struct pd_ids *pd_tokenizer_thought_header(const struct pd_tokenizer *t) { return &t->thought_header; }

bool pd_tokenizer_has_channels(const struct pd_tokenizer *t) { return t->channels; }

bool pd_tokenizer_keeps_thoughts(const struct pd_tokenizer *t)
{
    bool headers = t->thoughts[PD_THOUGHT_START] >= 0 && !t->channels;
    return t->program && (strstr(t->jinja.data, PD_THOUGHT_BLOCK) || headers);
}

/* ---- text to ids ---- */

peridot_status pd_tokenizer_encode_plain(struct pd_ids *out, const struct pd_tokenizer *t, const char *text,
                                         size_t size, enum pd_text_place place)
{
    if (t->longest) PD_TRY(pd_ids_expect(out, (size + t->longest - 1) / t->longest));
    PD_TRY(pd_ids_go_on(out));
    if (t->bpe) return pd_bpe_encode(out, t->bpe, text, size, place);
    /* The dummy prefix is put there by us, rather than by sentencepiece, as what follows a control token has it or not,
     * by the model ("legacy" in Hugging Face's terms). */
    bool prefix = pd_pieces_puts_prefix(&t->pieces, place) && !t->pieces.remove_spaces;
    bool spaced = size && (*text == ' ' || pd_text_begins_with_space(text, size));
    if (spaced && t->pieces.prefix_unless_space) prefix = false;
    return pd_sentencepiece_encode(out, t->sentencepiece, text, size, prefix);
}

/* Control tokens are taken out from left to right, the longest first; what is between them is plain text. */
static peridot_status encode_special(struct pd_ids *out, const struct pd_tokenizer *t, const char *text, size_t size)
{
    size_t begin = 0, length;
    enum pd_text_place place = PD_PLACE_FIRST;
    for (size_t i = 0; i < size; i += length) {
        int32_t id;
        length = pd_special_match(&id, &t->special, &t->pieces, text + i, size - i);
        if (length) {
            size_t n = i - begin - pd_special_before(&t->pieces, id, text + begin, i - begin, false);
            PD_TRY(pd_tokenizer_encode_plain(out, t, text + begin, n, place));
            PD_TRY(pd_ids_append(out, &id, 1));
            length += pd_special_after(&t->pieces, id, text + i + length, size - i - length, false);
            begin = i + length;
            place = PD_PLACE_AFTER_CONTROL;
        } else {
            length = 1;
        }
    }
    return pd_tokenizer_encode_plain(out, t, text + begin, size - begin, place);
}

/* Exactly one bos, whatever the text began with. */
static peridot_status put_bos(struct pd_ids *ids, int32_t bos)
{
    size_t written = 0;
    while (written < ids->n && ids->data[written] == bos) written++;
    if (written == 0) {
        PD_TRY(pd_ids_append(ids, &bos, 1));
        memmove(ids->data + 1, ids->data, (ids->n - 1) * sizeof *ids->data);
        ids->data[0] = bos;
    } else {
        memmove(ids->data + 1, ids->data + written, (ids->n - written) * sizeof *ids->data);
        ids->n -= written - 1;
    }
    return PERIDOT_OK;
}

static peridot_status tokenizer_encode_text(struct pd_ids *out, const struct pd_tokenizer *t,
                                            const peridot_plain *plain)
{
    const char *text = plain->text_size ? plain->text : "";
    unsigned flags = plain->flags;
    if (flags & PERIDOT_ENCODE_SPECIAL) PD_TRY(encode_special(out, t, text, plain->text_size));
    else PD_TRY(pd_tokenizer_encode_plain(out, t, text, plain->text_size, PD_PLACE_FIRST));
    if (flags & PERIDOT_ENCODE_BOS && t->pieces.bos >= 0 && !t->pieces.no_bos) PD_TRY(put_bos(out, t->pieces.bos));
    return flags & PERIDOT_ENCODE_EOS && t->pieces.end >= 0 ? pd_ids_append(out, &t->pieces.end, 1) : PERIDOT_OK;
}

peridot_status pd_tokenizer_finish_ids(int32_t **out, size_t *n, struct pd_ids *ids, peridot_status status)
{
    *out = NULL;
    *n = 0;
    if (status == PERIDOT_OK && !ids->data) {
        ids->data = malloc(sizeof *ids->data);
        if (!ids->data) status = pd_fail_alloc(sizeof *ids->data, "token ids");
    }
    if (status != PERIDOT_OK) {
        free(ids->data);
        return status;
    }
    *out = ids->data;
    *n = ids->n;
    return PERIDOT_OK;
}

peridot_status pd_tokenizer_encode(int32_t **ids, size_t *n, const struct pd_tokenizer *t, const peridot_plain *plain)
{
    struct pd_ids made = {.limit = plain->limit};
    return pd_tokenizer_finish_ids(ids, n, &made, tokenizer_encode_text(&made, t, plain));
}

bool pd_tokenizer_has_infill(const struct pd_tokenizer *t) { return t->infill[PD_INFILL_MIDDLE] >= 0; }

/* Both texts are plain. The one before begins a text; Code Llama's own program, too, puts no space before the other. */
static peridot_status encode_infill(struct pd_ids *out, const struct pd_tokenizer *t, const peridot_infill *texts)
{
    if (!pd_tokenizer_has_infill(t))
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the vocabulary has no tokens for fill-in-the-middle");
    if (t->pieces.bos >= 0 && !t->pieces.no_bos) PD_TRY(pd_ids_append(out, &t->pieces.bos, 1));
    PD_TRY(pd_ids_append(out, &t->infill[PD_INFILL_PREFIX], 1));
    if (texts->prefix_size)
        PD_TRY(pd_tokenizer_encode_plain(out, t, texts->prefix, texts->prefix_size, PD_PLACE_FIRST));
    PD_TRY(pd_ids_append(out, &t->infill[PD_INFILL_SUFFIX], 1));
    if (texts->suffix_size)
        PD_TRY(pd_tokenizer_encode_plain(out, t, texts->suffix, texts->suffix_size, PD_PLACE_WITHIN));
    return pd_ids_append(out, &t->infill[PD_INFILL_MIDDLE], 1);
}

peridot_status pd_tokenizer_encode_infill(int32_t **ids, size_t *n, const struct pd_tokenizer *t,
                                          const peridot_infill *texts)
{
    struct pd_ids made = {.limit = texts->limit};
    return pd_tokenizer_finish_ids(ids, n, &made, encode_infill(&made, t, texts));
}

/* ---- ids to text ---- */

static unsigned hex(char c) { return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'A' + 10); }

static peridot_status append_piece(struct pd_buffer *out, bool *started, const struct pd_tokenizer *t, int32_t id)
{
    if (id < 0 || (uint32_t)id >= t->pieces.n)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "token id %d is out of range (the vocabulary has %u pieces)", id,
                       t->pieces.n);
    const struct pd_piece *piece = &t->pieces.piece[id];
    const char *text = pd_pieces_text(&t->pieces, (uint32_t)id);
    size_t size = piece->size;
    if (piece->type == PD_PIECE_CONTROL) return PERIDOT_OK;
    bool prefixed = !*started && t->pieces.strip_prefix && pd_text_begins_with_space(text, size);
    *started = true;
    if (piece->type == PD_PIECE_UNKNOWN) return pd_buffer_add(out, " \xe2\x81\x87 ", 5);   /* U+2047 */
    if (piece->type == PD_PIECE_BYTE) {
        char byte = (char)(hex(text[3]) << 4 | hex(text[4]));   /* "<0x0A>": sentencepiece accepts no other spelling */
        return pd_buffer_add(out, &byte, 1);
    }
    if (t->pieces.algorithm == PD_ALGORITHM_BYTE_MERGES) return pd_buffer_add(out, text, size);
    return pd_text_append_unescaped(out, text + 3 * prefixed, size - 3 * prefixed);
}

/* A dummy prefix, which is no text, stands before the first piece and after bos. */
static peridot_status append_special(struct pd_buffer *out, bool *started, const struct pd_tokenizer *t,
                                     int32_t id)
{
    bool control = id >= 0 && (uint32_t)id < t->pieces.n && t->pieces.piece[id].type == PD_PIECE_CONTROL;
    if (!control) return append_piece(out, started, t, id);
    const char *text = pd_pieces_text(&t->pieces, (uint32_t)id);
    size_t size = t->pieces.piece[id].size;
    *started = *started || id != t->pieces.bos;
    if (t->pieces.algorithm == PD_ALGORITHM_BYTE_MERGES) return pd_buffer_add(out, text, size);
    return pd_text_append_unescaped(out, text, size);
}

typedef peridot_status append_fn(struct pd_buffer *out, bool *started, const struct pd_tokenizer *t, int32_t id);

static peridot_status tokenizer_decode(char **out, size_t *size, const struct pd_tokenizer *t, const int32_t *ids,
                                       size_t n, append_fn *append)
{
    struct pd_buffer text = {0};
    bool started = false;
    peridot_status status = PERIDOT_OK;
    *out = NULL;
    *size = 0;
    for (size_t i = 0; i < n && status == PERIDOT_OK; i++) status = append(&text, &started, t, ids[i]);
    if (status == PERIDOT_OK) status = pd_buffer_end(&text);
    if (status != PERIDOT_OK) {
        free(text.data);
        return status;
    }
    *out = text.data;
    *size = text.size;
    return PERIDOT_OK;
}

peridot_status pd_tokenizer_decode(char **out, size_t *size, const struct pd_tokenizer *t, const int32_t *ids, size_t n)
{
    return tokenizer_decode(out, size, t, ids, n, append_piece);
}

peridot_status pd_tokenizer_decode_special(char **out, size_t *size, const struct pd_tokenizer *t, const int32_t *ids,
                                           size_t n)
{
    return tokenizer_decode(out, size, t, ids, n, append_special);
}

peridot_status pd_tokenizer_spell(struct pd_buffer *out, const struct pd_tokenizer *t, int32_t id)
{
    bool started = true, unused = id >= 0 && (uint32_t)id < t->pieces.n &&
                                  (t->pieces.piece[id].type == PD_PIECE_UNKNOWN ||
                                   t->pieces.piece[id].type == PD_PIECE_UNUSED);
    return unused ? PERIDOT_OK : append_piece(out, &started, t, id);
}

/* ---- streaming ---- */

/* Appends the whole characters of the first n bytes of b, and holds the start of an incomplete one. */
static peridot_status append_characters(struct pd_buffer *b, struct pd_stream *s, size_t n)
{
    uint32_t code;
    size_t length;
    for (size_t i = 0; i < n; i += length) {
        char bytes[4];
        enum pd_utf8_state state = pd_utf8_next(&code, &length, b->data + i, n - i);
        if (state == PD_UTF8_INVALID) {
            PD_TRY(pd_buffer_add(b, "\xef\xbf\xbd", 3));
            continue;
        }
        memcpy(bytes, b->data + i, length);   /* b may move */
        if (state == PD_UTF8_CHARACTER) {
            PD_TRY(pd_buffer_add(b, bytes, length));
        } else {
            memcpy(s->held, bytes, length);
            s->n_held = length;
        }
    }
    return PERIDOT_OK;
}

/* First the raw bytes are in the buffer; what comes out is behind them, and moves to the front at the end. */
static peridot_status convert(struct pd_stream *s, struct pd_buffer *buffer)
{
    size_t raw = buffer->size;
    s->n_held = 0;
    PD_TRY(append_characters(buffer, s, raw));
    buffer->size -= raw;
    if (buffer->size) memmove(buffer->data, buffer->data + raw, buffer->size);
    return PERIDOT_OK;
}

static peridot_status flush(struct pd_stream *s, struct pd_buffer *buffer)
{
    size_t held = s->n_held;
    s->n_held = 0;
    return held ? pd_buffer_add(buffer, "\xef\xbf\xbd", 3) : PERIDOT_OK;
}

peridot_status pd_stream_next(struct pd_stream *s, struct pd_buffer *buffer, const struct pd_tokenizer *t,
                              int32_t id)
{
    buffer->size = 0;
    if (id == -1) return flush(s, buffer);
    PD_TRY(pd_buffer_add(buffer, s->held, s->n_held));
    PD_TRY(append_piece(buffer, &s->started, t, id));
    return convert(s, buffer);
}

peridot_status pd_stream_spell(struct pd_stream *s, struct pd_buffer *bytes, const struct pd_tokenizer *t,
                               int32_t id)
{
    return append_piece(bytes, &s->started, t, id);
}

peridot_status pd_stream_text(struct pd_stream *s, struct pd_buffer *buffer, const struct pd_buffer *bytes,
                              bool end)
{
    buffer->size = 0;
    PD_TRY(pd_buffer_add(buffer, s->held, s->n_held));
    if (bytes->size) PD_TRY(pd_buffer_add(buffer, bytes->data, bytes->size));
    PD_TRY(convert(s, buffer));
    return end ? flush(s, buffer) : PERIDOT_OK;
}
