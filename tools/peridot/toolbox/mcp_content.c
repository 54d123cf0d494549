/* What a call of a tool gave, as text and images. */
#define _POSIX_C_SOURCE 200809L
#include "../base/base.h"
#include "toolbox_.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *mcp_content_text_of(yyjson_val *object, const char *key)
{
    const char *text = yyjson_get_str(yyjson_obj_get(object, key));
    return text ? text : "";
}

static peridot_status mcp_content_add_text(struct pd_buffer *out, yyjson_val *text)
{
    return result_add_text(out, yyjson_get_str(text), yyjson_get_len(text));
}

/* "[image, image/png]" */
static peridot_status add_note(struct pd_buffer *out, const char *type, const char *about)
{
    PD_TRY(pd_buffer_add(out, "[", 1));
    PD_TRY(result_add_text(out, type, pd_min(strlen(type), 64)));
    PD_TRY(pd_buffer_print(out, "%s", *about ? ", " : ""));
    PD_TRY(result_add_text(out, about, pd_min(strlen(about), 1024)));
    return pd_buffer_add(out, "]", 1);
}

static peridot_status mcp_content_add_block(struct pd_buffer *out, yyjson_val *block)
{
    const char *type = mcp_content_text_of(block, "type");
    yyjson_val *resource = yyjson_obj_get(block, "resource");
    yyjson_val *text = yyjson_obj_get(resource ? resource : block, "text");
    if (yyjson_is_str(text)) return mcp_content_add_text(out, text);
    if (strcmp(type, "resource_link") == 0) return add_note(out, "link", mcp_content_text_of(block, "uri"));
    if (resource) return add_note(out, "resource", mcp_content_text_of(resource, "uri"));
    return add_note(out, *type ? type : "content", mcp_content_text_of(block, "mimeType"));
}

enum { MAX_IMAGES = 8 };

/* {"type": "image", "data": base64, "mimeType": ...} */
static peridot_status add_image(struct toolbox_texts *images, yyjson_val *block)
{
    static const char form[] = "data:%s;base64,%s";
    const char *data = mcp_content_text_of(block, "data"), *type = mcp_content_text_of(block, "mimeType");
    size_t n, size = strlen(data);
    if (!images || images->n == MAX_IMAGES || strcmp(mcp_content_text_of(block, "type"), "image") != 0)
        return PERIDOT_OK;
    if (!size || strlen(type) > 64 || strpbrk(type, ";,")) return PERIDOT_OK;
    unsigned char *decoded = malloc(size + 2);
    if (!decoded) return pd_fail_alloc(size, "image");
    bool good = cmd_base64_decode(decoded, &n, data, size);
    free(decoded);
    if (!good) return PERIDOT_OK;
    size += strlen(type) + sizeof form;
    char *url = malloc(size);
    if (!url) return pd_fail_alloc(size, "image");
    snprintf(url, size, form, type, data);
    peridot_status status = toolbox_texts_add(images, url);
    free(url);
    return status;
}

static peridot_status add_structured(struct pd_buffer *out, yyjson_val *value)
{
    size_t size;
    char *text = yyjson_val_write(value, 0, &size);
    if (!text) return pd_fail_alloc(0, "result");
    peridot_status status = result_add_text(out, text, size);
    free(text);
    return status;
}

peridot_status mcp_add_content(struct pd_buffer *out, struct toolbox_texts *images, yyjson_val *result)
{
    yyjson_val *content = yyjson_obj_get(result, "content"), *block;
    yyjson_val *structured = yyjson_obj_get(result, "structuredContent");
    const char *type = mcp_content_text_of(result, "resultType");
    size_t i, n;
    if (*type && strcmp(type, "complete") != 0)
        return pd_buffer_print(out, "error: the tool asks for more than its arguments, which cannot be given");
    if (yyjson_is_true(yyjson_obj_get(result, "isError"))) PD_TRY(pd_buffer_print(out, "error: "));
    if (yyjson_arr_size(content) == 0 && structured) return add_structured(out, structured);
    yyjson_arr_foreach(content, i, n, block) {
        if (i) PD_TRY(pd_buffer_add(out, "\n", 1));
        PD_TRY(mcp_content_add_block(out, block));
        PD_TRY(add_image(images, block));
    }
    return PERIDOT_OK;
}

/* ---- mcp headers ---- */

enum { MAX_DEPTH = 64, MAX_HEADERS = 64 };
static const char annotation[] = "x-mcp-header";

/* ---- schemas ---- */

struct seen {
    const char *names[MAX_HEADERS];
    size_t n;
};

/* A field name of HTTP (RFC 9110, section 5.1), which no other parameter has. */
static bool is_new_name(struct seen *seen, yyjson_val *value)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~";
    const char *name = yyjson_get_str(value);
    if (!name || !*name || strlen(name) != yyjson_get_len(value) || name[strspn(name, letters)]) return false;
    for (size_t i = 0; i < seen->n; i++)
        if (strcasecmp(seen->names[i], name) == 0) return false;
    if (seen->n == MAX_HEADERS) return false;
    seen->names[seen->n++] = name;
    return true;
}

static bool is_primitive(yyjson_val *schema)
{
    static const char *const types[] = {"string", "integer", "boolean"};
    for (size_t i = 0; i < PD_COUNT(types); i++)
        if (yyjson_equals_str(yyjson_obj_get(schema, "type"), types[i])) return true;
    return false;
}

/* Annotations stand at parameters that are reached by "properties" alone, and nowhere else. `is_parameter`: the value
 * is a schema so reached; `below_properties`: an object of such. */
static bool is_valid(yyjson_val *value, struct seen *seen, int depth, bool is_parameter, bool below_properties)
{
    yyjson_val *key, *child;
    size_t i, n;
    if (depth > MAX_DEPTH) return false;
    yyjson_arr_foreach(value, i, n, child) if (!is_valid(child, seen, depth + 1, false, false)) return false;
    yyjson_obj_foreach(value, i, n, key, child) {
        if (!below_properties && yyjson_equals_str(key, annotation)) {
            if (!is_parameter || !is_primitive(value) || !is_new_name(seen, child)) return false;
            continue;
        }
        bool properties = is_parameter && yyjson_equals_str(key, "properties");
        if (!is_valid(child, seen, depth + 1, below_properties, properties)) return false;
    }
    return true;
}

const char *mcp_headers_check(yyjson_val *schema)
{
    struct seen seen = {.n = 0};
    return is_valid(schema, &seen, 0, true, false) ? NULL : "its schema has an x-mcp-header that is not valid";
}

/* ---- calls ---- */

/* What HTTP carries as it is, and nobody takes for what is encoded. */
static bool mcp_content_is_plain(const char *text, size_t size)
{
    if (size == 0 || text[0] == ' ' || text[size - 1] == ' ' || strncmp(text, "=?base64?", 9) == 0) return false;
    for (size_t i = 0; i < size; i++)
        if (text[i] < ' ' || text[i] > '~') return false;
    return true;
}

static peridot_status add_header(struct toolbox_texts *out, const char *prefix, const char *name, const char *text,
                                 size_t size)
{
    size_t most = strlen(prefix) + strlen(name) + size / 3 * 4 + size + 32;
    char *line = malloc(most);
    if (!line) return pd_fail_alloc(most, "header");
    int n = snprintf(line, most, "%s%s: ", prefix, name);
    if (mcp_content_is_plain(text, size)) {
        snprintf(line + n, most - (size_t)n, "%s", text);
    } else {
        strcpy(line + n, "=?base64?");
        strcpy(cmd_base64_encode(line + n + 9, text, size), "?=");
    }
    peridot_status status = toolbox_texts_add(out, line);
    free(line);
    return status;
}

static peridot_status add_parameter(struct toolbox_texts *out, const char *name, yyjson_val *value)
{
    char number[32] = "";
    if (yyjson_is_str(value)) return add_header(out, "Mcp-Param-", name, yyjson_get_str(value), yyjson_get_len(value));
    if (yyjson_is_bool(value)) snprintf(number, sizeof number, "%s", yyjson_get_bool(value) ? "true" : "false");
    else if (yyjson_is_uint(value)) snprintf(number, sizeof number, "%" PRIu64, yyjson_get_uint(value));
    else if (yyjson_is_sint(value)) snprintf(number, sizeof number, "%" PRId64, yyjson_get_sint(value));
    else if (yyjson_is_real(value)) snprintf(number, sizeof number, "%.0f", yyjson_get_real(value));
    return number[0] ? add_header(out, "Mcp-Param-", name, number, strlen(number)) : PERIDOT_OK;
}

static peridot_status add_parameters(struct toolbox_texts *out, yyjson_val *schema, yyjson_val *arguments, int depth)
{
    yyjson_val *key, *child, *properties = yyjson_obj_get(schema, "properties");
    size_t i, n;
    if (depth > MAX_DEPTH || !properties) return PERIDOT_OK;
    yyjson_obj_foreach(properties, i, n, key, child) {
        yyjson_val *value = yyjson_obj_getn(arguments, yyjson_get_str(key), yyjson_get_len(key));
        const char *name = yyjson_get_str(yyjson_obj_get(child, annotation));
        if (value && name) PD_TRY(add_parameter(out, name, value));
        if (value) PD_TRY(add_parameters(out, child, value, depth + 1));
    }
    return PERIDOT_OK;
}

peridot_status mcp_headers_make(struct toolbox_texts *out, const struct mcp_tool *tool, yyjson_val *arguments)
{
    PD_TRY(add_header(out, "Mcp-", "Name", tool->name, strlen(tool->name)));
    yyjson_doc *schema = yyjson_read(tool->parameters, strlen(tool->parameters), 0);
    if (!schema) return pd_fail_alloc(strlen(tool->parameters), "parameters");
    peridot_status status = add_parameters(out, yyjson_doc_get_root(schema), arguments, 0);
    yyjson_doc_free(schema);
    return status;
}
