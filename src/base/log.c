#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

void pd_log(const struct pd_log *log, peridot_log_level level, const char *format, ...)
{
    char message[1536];
    va_list args;
    if (!log->call) return;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    log->call(log->user, level, message);
}
