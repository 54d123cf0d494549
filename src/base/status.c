#include "base/status.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char sentence[1024];

/* Names from files and words of users may be anything: what is no UTF-8, or controls a terminal, becomes '?'. */
static void make_plain(void)
{
    const char *end = sentence + strlen(sentence);
    size_t length;
    for (char *at = sentence; at < end; at += length) {
        uint32_t code;
        bool is = pd_utf8_next(&code, &length, at, (size_t)(end - at)) == PD_UTF8_CHARACTER;
        if (!is || pd_utf8_is_control(code)) memset(at, '?', length);
    }
}

peridot_status pd_fail(peridot_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    make_plain();
    return status;
}

peridot_status pd_fail_prefix(peridot_status status, const char *prefix)
{
    char rest[sizeof sentence];
    memcpy(rest, sentence, sizeof rest);
    return pd_fail(status, "%s: %.900s", prefix, rest);
}

peridot_status pd_fail_alloc(size_t size, const char *what)
{
    return pd_fail(PERIDOT_ERROR_MEMORY, "out of memory for %zu bytes (%s)", size, what);
}

const char *pd_error(void)
{
    return sentence;
}
