/* What goes wrong with a request: a status of HTTP and a sentence, in the form that a client expects. */
#include "common.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

bool serve_refuse(struct serve_error *e, int status, const char *code, const char *param, const char *format, ...)
{
    va_list args;
    if (e->status) return false;
    e->status = status;
    e->code = code;
    snprintf(e->param, sizeof e->param, "%s", param ? param : "");
    va_start(args, format);
    vsnprintf(e->message, sizeof e->message, format, args);
    va_end(args);
    return false;
}

bool serve_refuse_type(struct serve_error *e, const char *name, const char *what)
{
    return serve_refuse(e, 400, "invalid_type", name, "%s %s", name, what);
}

bool serve_refuse_status(struct serve_error *e, peridot_status status)
{
    bool theirs = status == PERIDOT_ERROR_ARGUMENT || status == PERIDOT_ERROR_UNSUPPORTED;
    bool lost = status == PERIDOT_ERROR_DEVICE_LOST || status == PERIDOT_ERROR_LINK;
    return serve_refuse(e, theirs ? 400 : lost ? 503 : 500, NULL, NULL, "%s", peridot_last_error());
}

bool serve_refuse_element(struct serve_error *e, const char *name, size_t i)
{
    char message[sizeof e->message];
    snprintf(message, sizeof message, "%s", e->message);
    int n = snprintf(e->message, sizeof e->message, "%s[%zu]: ", name, i);
    if (n >= 0 && (size_t)n < sizeof e->message) snprintf(e->message + n, sizeof e->message - (size_t)n, "%s", message);
    return false;
}

yyjson_mut_val *serve_error_sentence(yyjson_mut_doc *doc, const struct serve_error *e)
{
    char text[sizeof e->param + sizeof e->message + 2];
    bool named = strstr(e->message, e->param);   /* "" is */
    snprintf(text, sizeof text, "%s%s%s", named ? "" : e->param, named ? "" : ": ", e->message);
    return serve_text(doc, text, strlen(text));
}

static const char *type_of(int status)
{
    static const struct {
        int status;
        const char *type;
    } types[] = {{401, "authentication_error"}, {403, "permission_error"}, {429, "rate_limit_error"},
                 {500, "server_error"},         {503, "server_error"}};
    for (size_t i = 0; i < PD_COUNT(types); i++)
        if (types[i].status == status) return types[i].type;
    return "invalid_request_error";
}

static void put_openai(struct pd_buffer *b, const struct serve_error *e)
{
    yyjson_mut_doc *doc = cmd_json_new();
    yyjson_mut_val *root = yyjson_mut_obj(doc), *error = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_val(doc, root, "error", error);
    yyjson_mut_obj_add_val(doc, error, "message", serve_text(doc, e->message, strlen(e->message)));
    yyjson_mut_obj_add_str(doc, error, "type", type_of(e->status));
    yyjson_mut_obj_add_val(doc, error, "param",
                           e->param[0] ? serve_text(doc, e->param, strlen(e->param)) : yyjson_mut_null(doc));
    yyjson_mut_obj_add_val(doc, error, "code", e->code ? yyjson_mut_str(doc, e->code) : yyjson_mut_null(doc));
    serve_put_json(b, doc);
}

void serve_tell_length(char *out, size_t size, const struct serve_length *l)
{
    snprintf(out, size, "This model's maximum context length is %" PRIu32 " tokens. However, your %s resulted in %s%"
             PRIu64 " tokens. Please reduce the length of the %s.", l->ctx, l->what, l->at_least ? "at least " : "",
             l->n_prompt, l->what);
}

bool serve_refuse_length(struct serve_error *e, const struct serve_error_form *form, const struct serve_length *l)
{
    char text[sizeof e->message];
    form->tell_length(text, sizeof text, l);
    if (e->status) return false;
    e->n_prompt = l->n_prompt;
    e->n_ctx = l->ctx;
    return serve_refuse(e, 400, "context_length_exceeded", form->no_param ? NULL : l->what, "%s", text);
}

const struct serve_error_form serve_errors_openai = {put_openai, "data: ", "\n\n", serve_tell_length, false};

/* ---- buffer ---- */

void serve_put_json(struct pd_buffer *b, yyjson_mut_doc *doc)
{
    size_t size = 0;
    char *text = cmd_json_end(doc, 0, &size);
    if (text) pd_buffer_add(b, text, size);
    else b->failed = true;
    free(text);
}

yyjson_mut_val *serve_text(yyjson_mut_doc *doc, const char *text, size_t size)
{
    struct pd_buffer clean = {0};
    size_t i = 0, n;
    while (i < size && (n = peridot_utf8_size(text + i, size - i)) > 0) i += n;
    if (i == size) return yyjson_mut_strncpy(doc, text ? text : "", size);
    for (i = 0; i < size; i += n ? n : 1) {
        n = peridot_utf8_size(text + i, size - i);
        if (n) pd_buffer_add(&clean, text + i, n);
        else pd_buffer_add(&clean, "\xef\xbf\xbd", 3);
    }
    return serve_buffer_text(doc, &clean);
}

yyjson_mut_val *serve_buffer_text(yyjson_mut_doc *doc, struct pd_buffer *b)
{
    if (b->failed) cmd_json_fail();
    yyjson_mut_val *value = serve_text(doc, b->data, b->size);
    pd_buffer_free(b);
    return value;
}

void serve_put_text(struct pd_buffer *b, const char *name, const char *text, size_t size)
{
    yyjson_mut_doc *doc = cmd_json_new();
    yyjson_mut_val *o = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, o);
    yyjson_mut_obj_add_val(doc, o, name, serve_text(doc, text, size));
    serve_put_json(b, doc);
}
