#include "names.h"

#include <string.h>

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";

bool toolbox_is_name(const char *text)
{
    size_t size = strspn(text, letters);
    return size > 0 && size < TOOLBOX_NAME_SIZE && !text[size];
}

static size_t append(char out[TOOLBOX_NAME_SIZE], size_t n, const char *text)
{
    for (; *text && n + 1 < TOOLBOX_NAME_SIZE; text++) out[n++] = strchr(letters, *text) ? *text : '_';
    return n;
}

void toolbox_make_name(char out[TOOLBOX_NAME_SIZE], const char *prefix, const char *text)
{
    size_t n = prefix ? append(out, append(out, 0, prefix), "_") : 0;
    out[append(out, n, text)] = 0;
}

bool toolbox_is_url(const char *text)
{
    return strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0;
}
