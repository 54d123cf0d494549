#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE   /* getrusage's ru_maxrss */
#include "util.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

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

static void release(struct cmd_output *o)
{
    if (o->file) fclose(o->file);
    free(o->path);
    free(o->temporary);
    *o = (struct cmd_output){0};
}

peridot_status cmd_output_open(struct cmd_output *out, const char *path)
{
    size_t size = strlen(path) + 16;
    *out = (struct cmd_output){.path = malloc(size), .temporary = malloc(size)};
    if (!out->path || !out->temporary) {
        release(out);
        return cmd_fail_alloc(size, "file name");
    }
    strcpy(out->path, path);
    snprintf(out->temporary, size, "%s.tmp%ld", path, (long)getpid() % 100000000);
    out->file = fopen(out->temporary, "wb");
    if (out->file) return PERIDOT_OK;
    cmd_fail(PERIDOT_ERROR_IO, "%s: cannot be written: %s", path, strerror(errno));
    release(out);
    return PERIDOT_ERROR_IO;
}

peridot_status cmd_output_write(struct cmd_output *o, const void *data, size_t size)
{
    if (size == 0 || fwrite(data, 1, size, o->file) == size) return PERIDOT_OK;
    return cmd_fail(PERIDOT_ERROR_IO, "%s: %s", o->path, strerror(errno));
}

peridot_status cmd_output_commit(struct cmd_output *o)
{
    bool ok = fflush(o->file) == 0 && fsync(fileno(o->file)) == 0;
    ok = fclose(o->file) == 0 && ok;
    o->file = NULL;
    ok = ok && rename(o->temporary, o->path) == 0;
    peridot_status status = ok ? PERIDOT_OK : cmd_fail(PERIDOT_ERROR_IO, "%s: %s", o->path, strerror(errno));
    if (!ok) unlink(o->temporary);
    release(o);
    return status;
}

void cmd_output_abort(struct cmd_output *o)
{
    if (o->temporary) unlink(o->temporary);
    release(o);
}
