/* Files mapped for reading. A read of a page that is gone, as the file was truncated or its disk fails, raises SIGBUS:
 * while files are mapped, a handler puts zeros in its place and marks the mapping, and the reader asks at the end
 * (pd_map_check). */
#define _DEFAULT_SOURCE   /* POSIX, and madvise, since posix_madvise of glibc ignores "dontneed" */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- faults ---- */

/* A mapping that the handler knows. Regions stay in the list for good, as the handler may be in it at any time, and are
 * used again. */
struct pd_region {
    struct pd_region *next;
    atomic_uintptr_t begin, end;   /* whole pages; end 0: not in use */
    atomic_bool damaged;
};

static struct pd_region *_Atomic regions;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;   /* of what follows, and for changes of the list */
static size_t n_mapped;
static bool installed;
static struct sigaction before;    /* the host's */
static uintptr_t page_size;

static struct pd_region *find_region(uintptr_t at)
{
    struct pd_region *r = atomic_load(&regions);
    while (r && !(at < atomic_load(&r->end) && at >= atomic_load(&r->begin))) r = r->next;
    return r;
}

/* As if there were no handler here. */
static void pass_on(int number, siginfo_t *info, void *context)
{
    bool sent = info->si_code <= 0;   /* by kill, rather than by a fault */
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(number, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(number);
    } else if (before.sa_handler == SIG_DFL || !sent) {
        signal(number, SIG_DFL);   /* the fault comes again on return */
        if (sent) raise(number);
    }
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    uintptr_t at = (uintptr_t)info->si_addr, page = at - at % page_size;
    struct pd_region *r = info->si_code > 0 ? find_region(at) : NULL;
    int error = errno;
    bool mended = r && mmap((void *)page, atomic_load(&r->end) - page, PROT_READ,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED;
    errno = error;
    if (mended) atomic_store(&r->damaged, true);
    else pass_on(number, info, context);
}

/* A host that sets a handler after us is left alone: it may have ours to call. */
static void install(void)
{
    struct sigaction action;
    if (installed) return;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
    installed = sigaction(SIGBUS, NULL, &before) == 0 && sigaction(SIGBUS, &action, NULL) == 0;
}

static void uninstall(void)
{
    struct sigaction present;
    if (!installed || sigaction(SIGBUS, NULL, &present) != 0 || !(present.sa_flags & SA_SIGINFO)
        || present.sa_sigaction != on_fault) return;
    installed = sigaction(SIGBUS, &before, NULL) != 0;
}

static struct pd_region *add_region(const void *data, size_t size)
{
    pthread_mutex_lock(&lock);
    struct pd_region *r = atomic_load(&regions);
    while (r && atomic_load(&r->end)) r = r->next;
    if (!r && (r = calloc(1, sizeof *r))) {
        r->next = atomic_load(&regions);
        atomic_store(&regions, r);
    }
    if (r) {
        if (n_mapped++ == 0) install();
        uintptr_t end = (uintptr_t)data + size;
        atomic_store(&r->damaged, false);
        atomic_store(&r->begin, (uintptr_t)data);
        atomic_store(&r->end, (end + page_size - 1) / page_size * page_size);
    }
    pthread_mutex_unlock(&lock);
    return r;
}

static void remove_region(struct pd_region *r)
{
    pthread_mutex_lock(&lock);
    atomic_store(&r->end, 0);
    if (--n_mapped == 0) uninstall();
    pthread_mutex_unlock(&lock);
}

/* ---- files ---- */

/* Only regular files: nothing is waited for (FIFOs), and nothing has no end (/dev/zero). -1: after a sentence. */
static int open_regular(uint64_t *size, const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) != 0) pd_fail(PERIDOT_ERROR_IO, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode)) pd_fail(PERIDOT_ERROR_IO, "%s: not a regular file", path);
    else return *size = (uint64_t)st.st_size, fd;
    if (fd >= 0) close(fd);
    return -1;
}

static peridot_status fail_map(const char *path)
{
    return pd_fail(PERIDOT_ERROR_IO, "%s: cannot be mapped: %s", path, strerror(errno));
}

peridot_status pd_map_open(struct pd_map *out, const char *path)
{
    *out = (struct pd_map){0};
    uint64_t size;
    int fd = open_regular(&size, path);
    if (fd < 0) return PERIDOT_ERROR_IO;
    void *p = size ? mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    struct pd_region *region = p && p != MAP_FAILED ? add_region(p, (size_t)size) : NULL;
    if (region) {
        *out = (struct pd_map){.data = p, .size = size, .region = region, .fd = fd};
        return PERIDOT_OK;
    }
    peridot_status status = !p ? PERIDOT_OK : p == MAP_FAILED ? fail_map(path)
                                                              : pd_fail_alloc(sizeof *region, "mapping");
    close(fd);
    if (p && p != MAP_FAILED) munmap(p, (size_t)size);
    return status;
}

static peridot_status map_read_all(uint8_t *to, uint64_t size, int fd, const char *path)
{
    for (uint64_t done = 0; done < size;) {
        ssize_t n = read(fd, to + done, (size_t)(size - done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return pd_fail(PERIDOT_ERROR_IO, "%s: %s", path, strerror(errno));
        if (n == 0)
            return pd_fail(PERIDOT_ERROR_IO, "%s: it was truncated while it was read, at byte %llu of %llu", path,
                           (unsigned long long)done, (unsigned long long)size);
        done += (uint64_t)n;
    }
    return PERIDOT_OK;
}

peridot_status pd_map_copy(struct pd_map *out, int fd, uint64_t size, const char *path)
{
    *out = (struct pd_map){0};
    if (size > PD_MAP_READ_MAX)
        return pd_fail(PERIDOT_ERROR_IO, "%s: has %llu bytes, more than the %llu that are read of such a file", path,
                       (unsigned long long)size, (unsigned long long)PD_MAP_READ_MAX);
    if (size == 0) return PERIDOT_OK;
    void *p = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return pd_fail_alloc((size_t)size, path);
    *out = (struct pd_map){.data = p, .size = size};
    peridot_status status = map_read_all(p, size, fd, path);
    if (status != PERIDOT_OK) pd_map_close(out);
    return status;
}

peridot_status pd_map_read(struct pd_map *out, const char *path)
{
    *out = (struct pd_map){0};
    uint64_t size;
    int fd = open_regular(&size, path);
    if (fd < 0) return PERIDOT_ERROR_IO;
    peridot_status status = pd_map_copy(out, fd, size, path);
    close(fd);
    return status;
}

peridot_status pd_map_check(peridot_status status, const struct pd_map *map, const char *path)
{
    struct stat st;
    if (!map->region) return status;
    /* what is missing of a file's last page reads as zeros */
    bool shorter = fstat(map->fd, &st) == 0 && (uint64_t)st.st_size < map->size;
    if (!shorter && !atomic_load(&map->region->damaged)) return status;
    return pd_fail(PERIDOT_ERROR_IO, "%s: it was truncated, or its disk failed, while it was read", path);
}

void pd_map_close(struct pd_map *map)
{
    if (map->region) {
        remove_region(map->region);
        close(map->fd);
    }
    if (map->data) munmap((void *)(uintptr_t)map->data, (size_t)map->size);
    *map = (struct pd_map){0};
}

void pd_map_forget(const void *data, uint64_t size)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = ((uintptr_t)data + page - 1) / page * page;
    uintptr_t end = ((uintptr_t)data + (uintptr_t)size) / page * page;
    if (begin < end) madvise((void *)begin, end - begin, MADV_DONTNEED);
}
