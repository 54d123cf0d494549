#define _POSIX_C_SOURCE 200809L
#include "base.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
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

peridot_status cmd_array_reserve(void *array, size_t *capacity, size_t n, size_t more, size_t element_size,
                                 const char *what)
{
    void *data;
    size_t most = SIZE_MAX / 4 / element_size;
    if (more <= *capacity - n) return PERIDOT_OK;
    if (more > most || n > most - more) return cmd_fail_alloc(SIZE_MAX, what);
    size_t wanted = (size_t)cmd_max(cmd_max(n + more, 2 * *capacity), 64);
    memcpy(&data, array, sizeof data);   /* a pointer of any type */
    data = realloc(data, wanted * element_size);
    if (!data) return cmd_fail_alloc(wanted * element_size, what);
    memcpy(array, &data, sizeof data);
    *capacity = wanted;
    return PERIDOT_OK;
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

bool cmd_is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}
