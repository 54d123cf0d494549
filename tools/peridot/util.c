#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE   /* getrusage's ru_maxrss */
#include "util.h"

#include <stdarg.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

peridot_status cmd_fail(peridot_status status, const char *format, ...)
{
    char sentence[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    peridot_set_error(sentence);
    return status;
}

peridot_status cmd_fail_alloc(size_t size, const char *what)
{
    return cmd_fail(PERIDOT_ERROR_MEMORY, "out of memory for %zu bytes (%s)", size, what);
}

uint64_t cmd_hash(uint64_t before, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    uint64_t hash = before ? before : 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

double cmd_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

uint64_t cmd_memory_peak(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss << 10 : 0;   /* KiB, on Linux */
}

bool cmd_is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}
