/* The small things of os.h, for POSIX. */
#define _DEFAULT_SOURCE   /* POSIX, and getrusage's ru_maxrss */
#include "base/os.h"

#include "base/random.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static bool has_mode(const char *path, mode_t type)
{
    struct stat st;
    return stat(path, &st) == 0 && (st.st_mode & S_IFMT) == type;
}

bool pd_is_directory(const char *path) { return has_mode(path, S_IFDIR); }
bool pd_is_file(const char *path) { return has_mode(path, S_IFREG); }

bool pd_make_one_directory(const char *path) { return mkdir(path, 0700) == 0; }

void pd_path_clean(char *path) { (void)path; }

void pd_random_bytes(void *out, size_t size)
{
    if (getrandom(out, size, GRND_NONBLOCK) == (ssize_t)size) return;
    /* A system that has none yet: at least another one each time. */
    uint64_t state = (uint64_t)time(NULL) ^ (uint64_t)(pd_now() * 1e9) << 20 ^ (uint64_t)(uintptr_t)out;
    for (size_t i = 0; i < size; i++) ((uint8_t *)out)[i] = (uint8_t)(pd_splitmix(state += PD_SPLITMIX_STEP) >> 24);
}

double pd_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void pd_local_time(struct tm *out)
{
    time_t now = time(NULL);
    localtime_r(&now, out);
}

uint64_t pd_memory_available(void)
{
    FILE *f = fopen("/proc/meminfo", "r");
    if (!f) return UINT64_MAX;
    char line[128];
    unsigned long long kib = 0;
    while (fgets(line, sizeof line, f) && sscanf(line, "MemAvailable: %llu", &kib) != 1) continue;
    fclose(f);
    return kib ? kib << 10 : UINT64_MAX;
}

uint64_t pd_memory_peak(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss << 10 : 0;   /* KiB, on Linux */
}

uint32_t pd_n_processors(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 1 ? (uint32_t)n : 1;
}

pd_function pd_library_function(const char *library, const char *name)
{
    pd_function function;
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void *symbol = handle ? dlsym(handle, name) : NULL;
    memcpy(&function, &symbol, sizeof function);   /* ISO C has no cast from one to the other */
    return function;
}
