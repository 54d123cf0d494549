/* The small things of base.h, for POSIX. */
#define _DEFAULT_SOURCE   /* POSIX, and getrusage's ru_maxrss */
#define _DEFAULT_SOURCE
#include "base/base.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
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

/* ---- private ---- */

/* Files of a folder that is the user's alone: what another put there is neither read nor written. */

static int refuse_folder(int fd, const char *folder, const char *why)
{
    pd_fail(PERIDOT_ERROR_IO, "%s: %s", folder, why);
    if (fd >= 0) close(fd);
    return -1;
}

int pd_private_folder(const char *folder)
{
    struct stat st;
    if (lstat(folder, &st) == 0 && S_ISLNK(st.st_mode)) return refuse_folder(-1, folder, "it is a symbolic link");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) return refuse_folder(fd, folder, strerror(errno));
    if (st.st_uid != geteuid()) return refuse_folder(fd, folder, "it belongs to another user");
    if (st.st_mode & (S_IWGRP | S_IWOTH)) return refuse_folder(fd, folder, "others can write to it");
    return fd;
}

peridot_status pd_private_check(const char *folder)
{
    struct stat st;
    if (lstat(folder, &st) != 0) return PERIDOT_OK;
    int fd = pd_private_folder(folder);
    if (fd >= 0) close(fd);
    return fd >= 0 ? PERIDOT_OK : PERIDOT_ERROR_IO;
}

peridot_status pd_private_read(struct pd_map *out, const char *folder, const char *name, uint64_t most)
{
    struct stat st;
    *out = (struct pd_map){0};
    int dir = pd_private_folder(folder);
    if (dir < 0) return PERIDOT_ERROR_IO;
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    close(dir);
    bool own = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid()
        && !(st.st_mode & (S_IWGRP | S_IWOTH)) && (uint64_t)st.st_size <= most;
    peridot_status status = own ? pd_map_copy(out, fd, (uint64_t)st.st_size, name)
                                : pd_fail(PERIDOT_ERROR_IO, "%s/%s: not read", folder, name);
    if (fd >= 0) close(fd);
    return status;
}

peridot_status pd_private_remove(const char *folder, const char *name)
{
    if (!pd_is_directory(folder)) return PERIDOT_OK;
    int dir = pd_private_folder(folder);
    if (dir < 0) return PERIDOT_ERROR_IO;
    bool gone = unlinkat(dir, name, 0) == 0 || errno == ENOENT;
    int error = errno;
    close(dir);
    return gone ? PERIDOT_OK : pd_fail(PERIDOT_ERROR_IO, "%s/%s: cannot be removed: %s", folder, name, strerror(error));
}
