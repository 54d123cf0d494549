/* Texts for the model: of the tools, and of past calls and their results. */
#include "grammar/calls/calls.h"
#include "grammar/grammar.h"

#include <stdlib.h>
#include <string.h>

static peridot_status write_put(struct pd_buffer *out, const char *text)
{
    return pd_buffer_add(out, text, strlen(text));
}

/* A literal as it is written: a tab is white space that is not, and neither are ids. */
static peridot_status put_literal(struct pd_buffer *out, const struct pd_calls *c, const char *literal)
{
    char bytes[PD_CALL_LITERAL];
    size_t n = pd_call_literal(bytes, literal, c->marks);
    for (size_t i = 0; i < n; i++)
        if (bytes[i] != '\t' && bytes[i] != *PD_CALL_ID && bytes[i] != *PD_CALL_MAYBE)
            PD_TRY(pd_buffer_add(out, &(char){pd_call_byte(bytes[i])}, 1));
    return PERIDOT_OK;
}

/* ---- values ---- */

static peridot_status put_json(struct pd_buffer *out, yyjson_val *value)
{
    size_t size;
    char *text = yyjson_val_write(value, 0, &size);
    if (!text) return pd_fail_alloc(yyjson_get_len(value), "arguments of a call");
    peridot_status status = pd_buffer_add(out, text, size);
    free(text);
    return status;
}

struct member {
    yyjson_val *name, *value;
};

static int compare_members(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    return pd_name_compare(yyjson_get_str(x->name), yyjson_get_len(x->name), yyjson_get_str(y->name),
                           yyjson_get_len(y->name));
}

static peridot_status put_value(struct pd_buffer *out, const char *delimiter, yyjson_val *value, uint32_t depth);

static peridot_status put_members(struct pd_buffer *out, const char *delimiter, const struct member *members,
                                  size_t n, uint32_t depth)
{
    for (size_t i = 0; i < n; i++) {
        if (i) PD_TRY(write_put(out, delimiter ? "," : ", "));
        if (!delimiter) PD_TRY(put_json(out, members[i].name));
        else PD_TRY(pd_buffer_add(out, yyjson_get_str(members[i].name), yyjson_get_len(members[i].name)));
        PD_TRY(write_put(out, delimiter ? ":" : ": "));
        PD_TRY(put_value(out, delimiter, members[i].value, depth));
    }
    return PERIDOT_OK;
}

/* In the order of their names in the dialect. */
static peridot_status put_object(struct pd_buffer *out, const char *delimiter, yyjson_val *value, uint32_t depth)
{
    size_t i, n = yyjson_obj_size(value);
    yyjson_val *key, *member;
    struct member *members = malloc((n + 1) * sizeof *members);
    if (!members) return pd_fail_alloc((n + 1) * sizeof *members, "arguments of a call");
    yyjson_obj_foreach(value, i, n, key, member) members[i] = (struct member){key, member};
    if (delimiter && n) qsort(members, n, sizeof *members, compare_members);
    peridot_status status = write_put(out, "{");
    if (status == PERIDOT_OK) status = put_members(out, delimiter, members, n, depth);
    free(members);
    return status == PERIDOT_OK ? write_put(out, "}") : status;
}

static peridot_status put_value(struct pd_buffer *out, const char *delimiter, yyjson_val *value, uint32_t depth)
{
    size_t i, n;
    yyjson_val *member;
    if (delimiter && yyjson_is_str(value)) {
        PD_TRY(write_put(out, delimiter));
        PD_TRY(pd_buffer_add(out, yyjson_get_str(value), yyjson_get_len(value)));
        return write_put(out, delimiter);
    }
    if (!yyjson_is_ctn(value)) return put_json(out, value);
    if (depth == PD_MAX_CALLS)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the arguments of a call nest deeper than %d", PD_MAX_CALLS);
    if (yyjson_is_obj(value)) return put_object(out, delimiter, value, depth + 1);
    PD_TRY(write_put(out, "["));
    yyjson_arr_foreach(value, i, n, member) {
        if (i) PD_TRY(write_put(out, delimiter ? "," : ", "));
        PD_TRY(put_value(out, delimiter, member, depth + 1));
    }
    return write_put(out, "]");
}

static peridot_status put_keywords(struct pd_buffer *out, yyjson_val *arguments)
{
    size_t i, n;
    yyjson_val *key, *value;
    PD_TRY(write_put(out, "("));
    yyjson_obj_foreach(arguments, i, n, key, value) {
        if (i) PD_TRY(write_put(out, ", "));
        PD_TRY(pd_buffer_add(out, yyjson_get_str(key), yyjson_get_len(key)));
        PD_TRY(write_put(out, "="));
        PD_TRY(put_value(out, NULL, value, 1));
    }
    return write_put(out, ")");
}

static peridot_status put_tags(struct pd_buffer *out, const struct pd_tags *tags, yyjson_val *arguments)
{
    size_t i, n;
    yyjson_val *key, *value;
    yyjson_obj_foreach(arguments, i, n, key, value) {
        PD_TRY(write_put(out, tags->name));
        PD_TRY(pd_buffer_add(out, yyjson_get_str(key), yyjson_get_len(key)));
        PD_TRY(write_put(out, tags->value));
        if (yyjson_is_str(value)) PD_TRY(pd_buffer_add(out, yyjson_get_str(value), yyjson_get_len(value)));
        else PD_TRY(put_value(out, NULL, value, 1));
        PD_TRY(write_put(out, tags->after));
        PD_TRY(write_put(out, "\n"));
    }
    return write_put(out, tags->end);
}

static peridot_status put_middle(struct pd_buffer *out, const struct pd_calls *c, const char *name)
{
    char part[PD_CALL_LITERAL];
    const char *middle = c->format->middle, *again = strstr(middle, PD_CALL_NAME);
    if (!again) return put_literal(out, c, middle);
    memcpy(part, middle, (size_t)(again - middle));
    part[again - middle] = 0;
    PD_TRY(put_literal(out, c, part));
    PD_TRY(write_put(out, name));
    return put_literal(out, c, again + 1);
}

/* ---- calls and results ---- */

peridot_status pd_calls_write(struct pd_buffer *out, const struct pd_calls *c, const struct pd_call *calls,
                              size_t n)
{
    const struct pd_call_format *f = c->format;
    const struct pd_call_shape *shape = &f->shapes[0];
    for (size_t i = 0; i < n; i++) {
        bool begins = i == 0 || !shape->between, ends = i + 1 == n || !shape->between;
        if (i && begins) PD_TRY(put_literal(out, c, f->separator));
        PD_TRY(put_literal(out, c, begins ? shape->begin : shape->between));
        PD_TRY(put_literal(out, c, pd_call_before(f, shape)));
        PD_TRY(write_put(out, calls[i].name));
        PD_TRY(put_middle(out, c, calls[i].name));
        if (f->tags) PD_TRY(put_tags(out, f->tags, calls[i].arguments));
        else if (f->keywords) PD_TRY(put_keywords(out, calls[i].arguments));
        else if (calls[i].arguments) PD_TRY(put_value(out, pd_call_delimiter(f, c->marks), calls[i].arguments, 0));
        else PD_TRY(write_put(out, "{}"));
        PD_TRY(put_literal(out, c, f->after));
        if (ends) PD_TRY(put_literal(out, c, shape->end));
    }
    return PERIDOT_OK;
}

peridot_status pd_calls_write_result(struct pd_buffer *out, const struct pd_calls *c, const char *name,
                                     const char *content, size_t size)
{
    for (const char *at = c->format->result; *at; at++) {
        if (*at == '\1') PD_TRY(write_put(out, name));
        else if (*at == '\2') PD_TRY(pd_buffer_add(out, content, size));
        else PD_TRY(pd_buffer_add(out, at, 1));
    }
    return PERIDOT_OK;
}

/* ---- the tools ---- */

static peridot_status put_tool(struct pd_buffer *out, const struct pd_tool *tool)
{
    PD_TRY(write_put(out, "{\"name\": \""));
    PD_TRY(write_put(out, tool->name));
    PD_TRY(write_put(out, "\""));
    if (tool->description) PD_TRY(write_put(out, ", \"description\": "));
    if (tool->description) PD_TRY(put_json(out, tool->description));
    if (tool->parameters) PD_TRY(write_put(out, ", \"parameters\": "));
    if (tool->parameters) PD_TRY(put_json(out, tool->parameters));
    return write_put(out, "}");
}

peridot_status pd_calls_list(struct pd_buffer *out, const struct pd_calls *c)
{
    size_t i, n;
    yyjson_val *value;
    PD_TRY(write_put(out, "["));
    yyjson_arr_foreach(c->tools, i, n, value) {
        struct pd_tool tool;
        PD_TRY(pd_tool_read(&tool, value, i));
        if (i) PD_TRY(write_put(out, ", "));
        PD_TRY(put_tool(out, &tool));
    }
    return write_put(out, "]");
}

static peridot_status put_example(struct pd_buffer *out, const struct pd_calls *c)
{
    static const char arguments[] = "{\"argument\": \"value\"}";
    yyjson_doc *doc = yyjson_read(arguments, sizeof arguments - 1, 0);
    if (!doc) return pd_fail_alloc(sizeof arguments, "arguments of a call");
    const struct pd_call example = {"function_name", yyjson_doc_get_root(doc)};
    peridot_status status = pd_calls_write(out, c, &example, 1);
    yyjson_doc_free(doc);
    return status;
}

peridot_status pd_calls_describe(struct pd_buffer *out, const struct pd_calls *c)
{
    size_t i, n;
    yyjson_val *value;
    PD_TRY(write_put(out, "You can call these functions. Each is described in a line of JSON, its arguments by a JSON "
                    "Schema:\n"));
    yyjson_arr_foreach(c->tools, i, n, value) {
        struct pd_tool tool;
        PD_TRY(pd_tool_read(&tool, value, i));
        PD_TRY(put_tool(out, &tool));
        PD_TRY(write_put(out, "\n"));
    }
    PD_TRY(write_put(out, "To call one, end your reply with its name and its arguments in this form:\n"));
    PD_TRY(put_example(out, c));
    PD_TRY(write_put(out, c->parallel ? "\nSeveral calls may follow one another. " : "\n"));
    return write_put(out,
                     "The results are given to you in the next message. Answer without a call where none is needed.");
}
