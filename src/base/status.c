/* Errors inside the library: a peridot_status to return and, for the person, one sentence made where the failure is
 * known and carried per thread. pd_fail sets the sentence and gives back the status, so a failure is one line:
 *     return pd_fail(PERIDOT_ERROR_FORMAT, "%s: tensor %s ends past the file (offset %llu)", path, name, offset);
 * Whatever the arguments are, the sentence is one line of UTF-8 that is fit for a terminal (pd_utf8_escape). */
#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

peridot_status pd_fail(peridot_status status, const char *format, ...)
{
    char raw[PD_SENTENCE_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(raw, sizeof raw, format, args);
    va_end(args);
    peridot_set_error(raw);
    return status;
}

peridot_status pd_fail_prefix(peridot_status status, const char *prefix)
{
    return pd_fail(status, "%s: %.900s", prefix, peridot_last_error());
}

peridot_status pd_fail_alloc(size_t size, const char *what)
{
    return pd_fail(PERIDOT_ERROR_MEMORY, "out of memory for %zu bytes (%s)", size, what);
}

/* ---- log ---- */

void pd_log(const struct pd_logger *log, peridot_log_level level, const char *format, ...)
{
    char raw[1536], message[sizeof raw];
    va_list args;
    if (!log->call) return;
    va_start(args, format);
    vsnprintf(raw, sizeof raw, format, args);
    va_end(args);
    pd_utf8_escape(message, sizeof message, raw, strlen(raw));
    log->call(log->user, level, message);
}
