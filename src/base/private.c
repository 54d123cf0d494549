/* Files of a folder that is the user's alone: what another put there is neither read nor written. */
#define _DEFAULT_SOURCE
#include "base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
