#include "base/log.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void pd_log(const struct pd_log *log, peridot_log_level level, const char *format, ...)
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
