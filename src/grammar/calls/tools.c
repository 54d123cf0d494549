/* The list of tools of a request, which may be anything. */
#include "grammar/calls/calls.h"

#include "base/base.h"

#include <string.h>

#define MAX_TOOLS 512

bool pd_call_is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("_.:/-", c));
}

static bool tools_is_name(const char *text, size_t size)
{
    size_t n = 0;
    while (n < size && pd_call_is_name_char(text[n])) n++;
    return n == size && n > 0 && n <= PD_MAX_CALL_NAME;
}

static peridot_status fail_name(yyjson_val *name, size_t i)
{
    char shown[PD_SHOWN_SIZE];
    if (!yyjson_is_str(name)) return pd_fail(PERIDOT_ERROR_FORMAT, "tool %zu has no name", i);
    return pd_fail(PERIDOT_ERROR_ARGUMENT, "tool %zu: its name \"%s\" is not of 1 to %d letters, digits, _ . : / and -",
                   i, pd_utf8_shown(shown, yyjson_get_str(name), yyjson_get_len(name)), PD_MAX_CALL_NAME);
}

peridot_status pd_tool_read(struct pd_tool *out, yyjson_val *value, size_t i)
{
    yyjson_val *type = yyjson_obj_get(value, "type"), *function = yyjson_obj_get(value, "function");
    if (!yyjson_is_obj(value) || (function && !yyjson_is_obj(function)))
        return pd_fail(PERIDOT_ERROR_FORMAT, "tool %zu is not an object with a function", i);
    if (type && !yyjson_equals_str(type, "function"))
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "tool %zu: its type is not \"function\", and no other is supported",
                       i);
    if (!function) function = value;
    yyjson_val *name = yyjson_obj_get(function, "name");
    if (!yyjson_is_str(name) || !tools_is_name(yyjson_get_str(name), yyjson_get_len(name))) return fail_name(name, i);
    *out = (struct pd_tool){yyjson_get_str(name), yyjson_get_len(name), yyjson_obj_get(function, "description"),
                            yyjson_obj_get(function, "parameters"),
                            yyjson_is_true(yyjson_obj_get(function, "strict"))};
    if (yyjson_is_null(out->description)) out->description = NULL;
    if (yyjson_is_null(out->parameters)) out->parameters = NULL;
    if (out->description && !yyjson_is_str(out->description))
        return pd_fail(PERIDOT_ERROR_FORMAT, "tool %s: its description is not a text", out->name);
    if (out->parameters && !yyjson_is_obj(out->parameters) && !yyjson_is_bool(out->parameters))
        return pd_fail(PERIDOT_ERROR_FORMAT, "tool %s: its parameters are not a JSON Schema", out->name);
    return PERIDOT_OK;
}

peridot_status pd_calls_check(const struct pd_calls *c)
{
    size_t i, n;
    yyjson_val *value;
    const char *names[MAX_TOOLS];
    bool found = !c->name;
    if (!yyjson_is_arr(c->tools)) return pd_fail(PERIDOT_ERROR_FORMAT, "the tools are not a list");
    if (yyjson_arr_size(c->tools) == 0) return pd_fail(PERIDOT_ERROR_ARGUMENT, "the list of tools is empty");
    if (yyjson_arr_size(c->tools) > MAX_TOOLS)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "there are more than %d tools", MAX_TOOLS);
    yyjson_arr_foreach(c->tools, i, n, value) {
        struct pd_tool tool;
        PD_TRY(pd_tool_read(&tool, value, i));
        for (size_t k = 0; k < i; k++)
            if (strcmp(names[k], tool.name) == 0)
                return pd_fail(PERIDOT_ERROR_ARGUMENT, "tool %s is there twice (tools %zu and %zu)", tool.name, k, i);
        names[i] = tool.name;
        found = found || strcmp(tool.name, c->name) == 0;
    }
    char shown[PD_SHOWN_SIZE];
    if (found) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_ARGUMENT, "there is no tool %s, which must be called",
                   pd_utf8_shown(shown, c->name, strlen(c->name)));
}
