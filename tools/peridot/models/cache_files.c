/* What Hugging Face's cache takes of the system: cache_files.c for POSIX, ../windows.c for Windows. Descriptors are
 * those of read and write; what fails sets errno. */
#define _DEFAULT_SOURCE   /* flock */
#include "models.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

bool cache_make_folder(const char *path) { return mkdir(path, 0777) == 0 || errno == EEXIST; }

int cache_open(const char *path) { return open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666); }

bool cache_sync(int fd) { return fsync(fd) == 0; }

bool cache_move(const char *from, const char *to) { return rename(from, to) == 0; }

bool cache_link(const char *path, const char *target, const char *blob)
{
    char present[4096];
    (void)blob;
    ssize_t n = readlink(path, present, sizeof present);
    if (n == (ssize_t)strlen(target) && memcmp(present, target, (size_t)n) == 0) return true;
    if (unlink(path) != 0 && errno != ENOENT) return false;
    return symlink(target, path) == 0 || errno == EEXIST;
}

bool cache_space(uint64_t *left, const char *folder)
{
    struct statvfs st;
    if (statvfs(folder, &st) != 0) return false;
    *left = (uint64_t)st.f_bavail * st.f_frsize;
    return true;
}

/* A file system without locks does without. Who unlocks may have removed the file: then it is busy. */
enum cache_lock cache_lock(int *fd, const char *path)
{
    struct stat mine, named;
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0664);
    if (*fd < 0) return CACHE_FAILED;
    bool held = flock(*fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    if (held && fstat(*fd, &mine) == 0 && stat(path, &named) == 0 && mine.st_ino == named.st_ino) return CACHE_HELD;
    close(*fd);
    return CACHE_BUSY;
}
