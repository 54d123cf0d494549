#include "mcp_content.h"
#include "result.h"
#include "../base64.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text_of(yyjson_val *object, const char *key)
{
    const char *text = yyjson_get_str(yyjson_obj_get(object, key));
    return text ? text : "";
}

static peridot_status add_text(struct toolbox_bytes *out, yyjson_val *text)
{
    return result_add_text(out, yyjson_get_str(text), yyjson_get_len(text));
}

/* "[image, image/png]" */
static peridot_status add_note(struct toolbox_bytes *out, const char *type, const char *about)
{
    CMD_TRY(toolbox_bytes_add(out, "[", 1));
    CMD_TRY(result_add_text(out, type, cmd_min(strlen(type), 64)));
    CMD_TRY(toolbox_bytes_print(out, "%s", *about ? ", " : ""));
    CMD_TRY(result_add_text(out, about, cmd_min(strlen(about), 1024)));
    return toolbox_bytes_add(out, "]", 1);
}

static peridot_status add_block(struct toolbox_bytes *out, yyjson_val *block)
{
    const char *type = text_of(block, "type");
    yyjson_val *resource = yyjson_obj_get(block, "resource");
    yyjson_val *text = yyjson_obj_get(resource ? resource : block, "text");
    if (yyjson_is_str(text)) return add_text(out, text);
    if (strcmp(type, "resource_link") == 0) return add_note(out, "link", text_of(block, "uri"));
    if (resource) return add_note(out, "resource", text_of(resource, "uri"));
    return add_note(out, *type ? type : "content", text_of(block, "mimeType"));
}

enum { MAX_IMAGES = 8 };

/* {"type": "image", "data": base64, "mimeType": ...} */
static peridot_status add_image(struct toolbox_texts *images, yyjson_val *block)
{
    static const char form[] = "data:%s;base64,%s";
    const char *data = text_of(block, "data"), *type = text_of(block, "mimeType");
    size_t n, size = strlen(data);
    if (!images || images->n == MAX_IMAGES || strcmp(text_of(block, "type"), "image") != 0) return PERIDOT_OK;
    if (!size || strlen(type) > 64 || strpbrk(type, ";,")) return PERIDOT_OK;
    unsigned char *decoded = malloc(size + 2);
    if (!decoded) return cmd_fail_alloc(size, "image");
    bool good = cmd_base64_decode(decoded, &n, data, size);
    free(decoded);
    if (!good) return PERIDOT_OK;
    size += strlen(type) + sizeof form;
    char *url = malloc(size);
    if (!url) return cmd_fail_alloc(size, "image");
    snprintf(url, size, form, type, data);
    peridot_status status = toolbox_texts_add(images, url);
    free(url);
    return status;
}

static peridot_status add_structured(struct toolbox_bytes *out, yyjson_val *value)
{
    size_t size;
    char *text = yyjson_val_write(value, 0, &size);
    if (!text) return cmd_fail_alloc(0, "result");
    peridot_status status = result_add_text(out, text, size);
    free(text);
    return status;
}

peridot_status mcp_add_content(struct toolbox_bytes *out, struct toolbox_texts *images, yyjson_val *result)
{
    yyjson_val *content = yyjson_obj_get(result, "content"), *block;
    yyjson_val *structured = yyjson_obj_get(result, "structuredContent");
    const char *type = text_of(result, "resultType");
    size_t i, n;
    if (*type && strcmp(type, "complete") != 0)
        return toolbox_bytes_print(out, "error: the tool asks for more than its arguments, which cannot be given");
    if (yyjson_is_true(yyjson_obj_get(result, "isError"))) CMD_TRY(toolbox_bytes_print(out, "error: "));
    if (yyjson_arr_size(content) == 0 && structured) return add_structured(out, structured);
    yyjson_arr_foreach(content, i, n, block) {
        if (i) CMD_TRY(toolbox_bytes_add(out, "\n", 1));
        CMD_TRY(add_block(out, block));
        CMD_TRY(add_image(images, block));
    }
    return PERIDOT_OK;
}
