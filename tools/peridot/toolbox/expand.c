#define _POSIX_C_SOURCE 200809L
#include "expand.h"
#include "bytes.h"

#include <stdlib.h>
#include <string.h>

/* Of what stands between the braces. */
static peridot_status add_variable(struct toolbox_bytes *to, const char *inner, size_t size, char *why, size_t why_size)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
    enum { PREFIX = sizeof "env:" - 1 };
    char name[128];
    if (size > PREFIX && strncmp(inner, "env:", PREFIX) == 0) inner += PREFIX, size -= PREFIX;
    size_t n = cmd_min(strspn(inner, letters), size);
    bool has_default = size - n >= 2 && inner[n] == ':' && inner[n + 1] == '-';
    if (n == 0 || n >= sizeof name || (n < size && !has_default)) {
        snprintf(why, why_size, "has ${%.*s}, which is no variable of the environment", (int)cmd_min(size, 64), inner);
        return PERIDOT_ERROR_FORMAT;
    }
    memcpy(name, inner, n);
    name[n] = 0;
    const char *value = getenv(name);
    if (value) return toolbox_bytes_add(to, value, strlen(value));
    if (has_default) return toolbox_bytes_add(to, inner + n + 2, size - n - 2);
    snprintf(why, why_size, "has ${%s}, which is not set in the environment", name);
    return PERIDOT_ERROR_FORMAT;
}

peridot_status toolbox_expand(char **out, const char *text, char *why, size_t why_size)
{
    struct toolbox_bytes to = {0};
    peridot_status status = toolbox_bytes_add(&to, "", 0);
    while (status == PERIDOT_OK && *text) {
        const char *begin = strstr(text, "${"), *end = begin ? strchr(begin, '}') : NULL;
        if (!end) begin = text + strlen(text);
        status = toolbox_bytes_add(&to, text, (size_t)(begin - text));
        if (status == PERIDOT_OK && end)
            status = add_variable(&to, begin + 2, (size_t)(end - begin - 2), why, why_size);
        text = end ? end + 1 : begin;
    }
    *out = to.data;
    if (status != PERIDOT_OK) free(to.data), *out = NULL;
    return status;
}
