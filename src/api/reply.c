/* What the tokens of a reply become: text, thoughts and calls of functions, each for its callback. */
#include "api/api.h"

#include "grammar/calls/calls.h"

#include <stdlib.h>
#include <string.h>

struct pd_thought_marks pd_reply_marks(const struct pd_tokenizer *tokenizer)
{
    int32_t ids[PD_N_THOUGHT_MARKS] = {-1, -1, -1};
    if (!tokenizer || !pd_tokenizer_thoughts(ids, tokenizer)) return (struct pd_thought_marks){-1, -1, -1, NULL, 0};
    const struct pd_ids *header = pd_tokenizer_thought_header(tokenizer);
    return (struct pd_thought_marks){ids[PD_THOUGHT_BEGIN], ids[PD_THOUGHT_END], ids[PD_THOUGHT_START], header->data,
                                     header->n};
}

void pd_calling_begin(struct pd_calling *c, const peridot_tools *tools, peridot_call call)
{
    *c = (struct pd_calling){.tools = peridot_tools_ref(tools), .call = call};
    if (!tools) return;
    c->parser.format = tools->calls.format;
    c->parser.marks = tools->calls.marks;
    c->parser.tools = tools->calls.tools;
    c->parser.name = tools->calls.name;
}

void pd_calling_end(struct pd_calling *c)
{
    free(c->spelled.data);
    free(c->text.data);
    peridot_tools_free(c->tools);
    *c = (struct pd_calling){0};
}

/* ---- text ---- */

static const struct pd_tokenizer *tokenizer_of(const peridot_request *r)
{
    return r->session->model->vocab ? r->session->model->vocab->tokenizer : NULL;
}

/* Leaves out of a thought's text what belongs to its first line. */
static void skip_name(peridot_request *r, const char **text, size_t *size)
{
    const char *end = r->named || !*size ? NULL : memchr(*text, '\n', *size);
    size_t n = r->named ? 0 : end ? (size_t)(end + 1 - *text) : *size;
    r->named = r->named || end;
    *text += n;
    *size -= n;
}

/* Of a thought's token: it has no stop texts. */
static bool write_thought(peridot_request *r, int32_t token)
{
    peridot_text write = r->thought ? r->thought : r->text;
    const char *text = r->buffer.size ? r->buffer.data : "";
    size_t size = r->buffer.size;
    skip_name(r, &text, &size);
    return !write || write(r->r.user, token, text, size);
}

/* The characters in the buffer. */
static peridot_status write_answer(bool *go_on, peridot_request *r, int32_t token)
{
    const char *text;
    size_t size;
    PD_TRY(pd_stop_next(&text, &size, &r->stop, r->buffer.data, r->buffer.size, token < 0));
    *go_on = (!r->text || r->text(r->r.user, token, text, size)) && !r->stop.found;
    return PERIDOT_OK;
}

/* ---- calls ---- */

/* A token that is taken apart: its text is handed on before what calls there are in it. */
struct parting {
    peridot_request *r;
    int32_t token;
    bool written, go_on;
};

/* `end`: no more text follows. */
static peridot_status write_text(struct parting *p, bool end)
{
    peridot_request *r = p->r;
    if (p->written) return PERIDOT_OK;
    p->written = true;
    if (r->calling.n) r->calling.text.size = 0;   /* white space, or a call that did not get to begin */
    PD_TRY(pd_stream_text(&r->stream, &r->buffer, &r->calling.text, end));
    r->calling.text.size = 0;
    return write_answer(&p->go_on, r, p->token);
}

static peridot_status reply_take_text(void *user, const char *bytes, size_t size)
{
    struct parting *p = user;
    return pd_buffer_add(&p->r->calling.text, bytes, size);
}

static peridot_status reply_write_piece(struct parting *p, const peridot_call_piece *piece)
{
    const struct pd_calling *c = &p->r->calling;
    PD_TRY(write_text(p, true));
    if (p->go_on && c->call) p->go_on = c->call(p->r->r.user, piece);
    return PERIDOT_OK;
}

static peridot_status reply_begin_call(void *user, const char *name, size_t size)
{
    struct parting *p = user;
    char copy[PD_MAX_CALL_NAME + 1] = "";
    PD_TRY(write_text(p, true));   /* before there is a call */
    const peridot_call_piece piece = {.index = p->r->calling.n++, .name = copy, .arguments = ""};
    for (size_t i = 0; i < size && i < PD_MAX_CALL_NAME; i++) copy[i] = name[i];
    return reply_write_piece(p, &piece);
}

static peridot_status take_arguments(void *user, const char *json, size_t size)
{
    struct parting *p = user;
    return reply_write_piece(p, &(peridot_call_piece){.index = p->r->calling.n - 1, .arguments = json, .size = size});
}

static peridot_status end_call(void *user)
{
    struct parting *p = user;
    return reply_write_piece(p, &(peridot_call_piece){.index = p->r->calling.n - 1, .arguments = "", .complete = true});
}

/* The bytes of a token of the answer, as grammar and parser see them. */
static peridot_status spell(peridot_request *r, int32_t token)
{
    struct pd_calling *c = &r->calling;
    c->spelled.size = 0;
    if (token < 0) return PERIDOT_OK;
    int mark = pd_tools_find_mark(c->tools, token);
    if (mark < 0) return pd_stream_spell(&r->stream, &c->spelled, tokenizer_of(r), token);
    return pd_buffer_add(&c->spelled, &(char){pd_call_mark_byte(c->tools->calls.marks, (size_t)mark)}, 1);
}

static peridot_status write_with_calls(bool *go_on, peridot_request *r, int32_t token)
{
    struct parting p = {.r = r, .token = token, .go_on = true};
    const struct pd_call_sink sink = {&p, reply_take_text, reply_begin_call, take_arguments, end_call};
    struct pd_calling *c = &r->calling;
    const char *bytes = c->spelled.size ? c->spelled.data : "";
    PD_TRY(pd_call_parser_next(&c->parser, &sink, bytes, c->spelled.size, token < 0));
    PD_TRY(write_text(&p, token < 0));
    *go_on = p.go_on;
    return PERIDOT_OK;
}

/* ---- a token ---- */

peridot_status pd_reply_write(bool *go_on, struct pd_request *request, enum pd_reply_part part, int32_t token)
{
    peridot_request *r = (peridot_request *)request;
    const struct pd_tokenizer *t = tokenizer_of(r);
    bool header = part == PD_REPLY_HEADER || part == PD_REPLY_BEGINS_ANSWER;
    bool calls = r->calling.tools && t && (part == PD_REPLY_ANSWER || (header && request->thinking.calls_headers));
    if (part == PD_REPLY_BEGINS_THOUGHT) {
        r->calling.parser.n_held = 0;   /* the header was its */
        r->named = !r->hides_name;
    }
    r->buffer.size = 0;
    if (calls) PD_TRY(spell(r, token));
    else if (t && !header)   /* what a thought ends within is not the answer's */
        PD_TRY(pd_stream_next(&r->stream, &r->buffer, t, part == PD_REPLY_ENDS_THOUGHT ? -1 : token));
    if (calls) return write_with_calls(go_on, r, token);
    if (part == PD_REPLY_ANSWER || header) return write_answer(go_on, r, token);
    *go_on = write_thought(r, token);
    return PERIDOT_OK;
}
