/* Files that appear when they are complete: written without a name (O_TMPFILE), or under a random one where the file
 * system has no such files, and then renamed. */
#define _GNU_SOURCE   /* O_TMPFILE, O_PATH, statx */
#include "base/base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { MAX_LINKS = 40 };   /* as the kernel */

/* ---- where a path leads ---- */

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* path is shorter than PATH_MAX, as in all that follows. */
static void folder_of(char out[PATH_MAX], const char *path)
{
    size_t size = (size_t)(file_name(path) - path);
    while (size > 1 && path[size - 1] == '/') size--;
    memcpy(out, size ? path : ".", size ? size : 1);
    out[size ? size : 1] = 0;
}

/* Links in /proc/PID/fd lead to open files, which need not have a name. */
static bool is_in_proc(const char *path)
{
    char folder[PATH_MAX], resolved[PATH_MAX];
    folder_of(folder, path);
    return realpath(folder, resolved) && strncmp(resolved, "/proc/", 6) == 0;
}

/* The descriptor of this process that a path in /proc stands for, or -1: /dev/stdout and /dev/fd/3 lead there. */
static int own_descriptor(const char *path)
{
    char folder[PATH_MAX], resolved[PATH_MAX], own[PATH_MAX];
    const char *name = file_name(path);
    folder_of(folder, path);
    bool is_own = realpath(folder, resolved) && realpath("/proc/self/fd", own) && strcmp(resolved, own) == 0
        && *name && strspn(name, "0123456789") == strlen(name) && strlen(name) < 10;
    return is_own ? atoi(name) : -1;
}

/* A link that another user left in a folder that all may write (/tmp) could lead anywhere: the kernel follows none
 * where fs.protected_symlinks is set. */
static bool is_trusted_link(const char *path, const struct stat *link)
{
    char name[PATH_MAX];
    struct stat folder;
    folder_of(name, path);
    if (stat(name, &folder) != 0) return false;
    bool shared = (folder.st_mode & S_ISVTX) && (folder.st_mode & S_IWOTH);
    return !shared || link->st_uid == geteuid() || link->st_uid == folder.st_uid;
}

/* Puts what the link `path` says into path. */
static bool follow_one(char path[PATH_MAX])
{
    char target[PATH_MAX];
    ssize_t size = readlink(path, target, sizeof target - 1);
    if (size < 0) return false;
    target[size] = 0;
    size_t kept = target[0] == '/' ? 0 : (size_t)(file_name(path) - path);
    if (kept + (size_t)size >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    strcpy(path + kept, target);
    return true;
}

/* Follows the links that a path ends with, so that what they lead to is replaced, or made, and not they. False:
 * errno. */
static bool writer_follow(char path[PATH_MAX])
{
    for (int i = 0; i < MAX_LINKS; i++) {
        struct stat st;
        if (lstat(path, &st) != 0) return errno == ENOENT;
        if (!S_ISLNK(st.st_mode) || is_in_proc(path)) return true;
        if (!is_trusted_link(path, &st)) {
            errno = EACCES;
            return false;
        }
        if (!follow_one(path)) return false;
    }
    errno = ELOOP;
    return false;
}

/* ---- opening ---- */

/* A file that is a mount point, as containers have them, cannot be replaced. */
static bool is_mount_point(const char *path)
{
    struct statx st;
    return statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, 0, &st) == 0 && (st.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

static int open_in_place(const char *path)
{
    int own = own_descriptor(path);
    if (own < 0) return open(path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY);
    int flags = fcntl(own, F_GETFL);
    if (flags >= 0 && (flags & O_ACCMODE) == O_RDONLY) errno = EBADF;
    else if (flags >= 0) return fcntl(own, F_DUPFD_CLOEXEC, 3);   /* goes on where it is, appends where it does */
    return -1;
}

static bool name_temporary(struct pd_writer *w)
{
    unsigned char random[8];
    if (getrandom(random, sizeof random, 0) != sizeof random) return false;
    int size = snprintf(w->temporary, sizeof w->temporary, "peridot-");
    for (size_t i = 0; i < sizeof random; i++)
        size += snprintf(w->temporary + size, sizeof w->temporary - (size_t)size, "%02x", random[i]);
    snprintf(w->temporary + size, sizeof w->temporary - (size_t)size, ".tmp");
    return true;
}

/* The path by which a file without a name can be given one; false where /proc is not there. */
static bool descriptor_path(char out[32], int fd)
{
    snprintf(out, 32, "/proc/self/fd/%d", fd);
    return access(out, F_OK) == 0;
}

/* A new file in the folder that nobody else writes. -1: errno. */
static int create_temporary(struct pd_writer *w, mode_t mode)
{
    char link[32];
    int fd = openat(w->folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
    if (fd >= 0 && descriptor_path(link, fd)) return fd;
    if (fd >= 0) close(fd);
    for (int tries = 0; tries < 100; tries++) {
        if (!name_temporary(w)) break;
        fd = openat(w->folder, w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (fd >= 0) return fd;
        if (errno != EEXIST) break;
    }
    w->temporary[0] = 0;
    return -1;
}

static bool link_temporary(struct pd_writer *w)
{
    char link[32];
    for (int tries = 0; tries < 100; tries++) {
        if (!descriptor_path(link, fileno(w->file)) || !name_temporary(w)) break;
        if (linkat(AT_FDCWD, link, w->folder, w->temporary, AT_SYMLINK_FOLLOW) == 0) return true;
        if (errno != EEXIST) break;
    }
    w->temporary[0] = 0;
    return false;
}

/* Gives the new file the mode and the owner of the one that it will replace, which must be one that may be written. */
static bool take_over(int fd, const char *path, const struct stat *old)
{
    struct stat now;
    if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0 || fstat(fd, &now) != 0) return false;
    uid_t uid = now.st_uid == old->st_uid ? (uid_t)-1 : old->st_uid;
    gid_t gid = now.st_gid == old->st_gid ? (gid_t)-1 : old->st_gid;
    if ((uid != (uid_t)-1 || gid != (gid_t)-1) && fchown(fd, uid, gid) != 0) return false;
    return (now.st_mode & 07777) == (old->st_mode & 07777) || fchmod(fd, old->st_mode & 07777) == 0;
}

static peridot_status fail_open(struct pd_writer *w, const char *path, int fd)
{
    peridot_status status = pd_fail(errno == EINTR ? PERIDOT_CANCELLED : PERIDOT_ERROR_IO, "%s: cannot be written: %s",
                                    path, strerror(errno));
    if (fd >= 0) close(fd);
    pd_writer_abort(w);
    return status;
}

static peridot_status open_stream(struct pd_writer *w, int fd)
{
    if (fd >= 0) w->file = fdopen(fd, "wb");
    return w->file ? PERIDOT_OK : fail_open(w, w->path, fd);
}

static peridot_status open_folder(struct pd_writer *w, const char *folder, const char *name)
{
    if (!(w->name = pd_string_copy(name))) return pd_fail_alloc(strlen(name) + 1, "file name");
    w->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (w->folder >= 0) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_IO, "%s: cannot be written: folder %s: %s", w->path, folder, strerror(errno));
}

/* old: the file that is there, or NULL. */
static peridot_status open_replacement(struct pd_writer *w, const char *path, const struct stat *old)
{
    char folder[PATH_MAX];
    folder_of(folder, path);
    PD_TRY(open_folder(w, folder, file_name(path)));
    int fd = create_temporary(w, old ? 0600 : 0666);
    if (fd < 0)
        return pd_fail(PERIDOT_ERROR_IO, "%s: cannot be written: folder %s: %s", w->path, folder, strerror(errno));
    if (old && !take_over(fd, path, old)) return fail_open(w, w->path, fd);
    return open_stream(w, fd);
}

peridot_status pd_writer_open(struct pd_writer *out, const char *path)
{
    char place[PATH_MAX];
    struct stat st;
    *out = (struct pd_writer){.path = pd_string_copy(path), .folder = -1};
    if (!out->path) return pd_fail_alloc(strlen(path) + 1, "file name");
    errno = *path ? ENAMETOOLONG : ENOENT;
    if (!*path || strlen(path) >= sizeof place || !writer_follow(strcpy(place, path))) return fail_open(out, path, -1);
    bool there = stat(place, &st) == 0;
    if (!there && errno != ENOENT) return fail_open(out, path, -1);
    if (there ? S_ISDIR(st.st_mode) : !*file_name(place)) {
        pd_writer_abort(out);
        return pd_fail(PERIDOT_ERROR_IO, "%s: cannot be written: it is a folder", path);
    }
    if (there && (!S_ISREG(st.st_mode) || is_in_proc(place) || is_mount_point(place)))
        return open_stream(out, open_in_place(place));
    peridot_status status = open_replacement(out, place, there ? &st : NULL);
    if (status != PERIDOT_OK) pd_writer_abort(out);
    return status;
}

peridot_status pd_private_write(struct pd_writer *out, const char *folder, const char *name)
{
    *out = (struct pd_writer){.folder = -1};
    PD_TRY(pd_make_directory(folder));
    out->path = pd_path_join(folder, name);
    out->name = pd_string_copy(name);
    if (!out->path || !out->name) {
        pd_writer_abort(out);
        return pd_fail_alloc(strlen(folder) + strlen(name) + 2, "file name");
    }
    out->folder = pd_private_folder(folder);
    if (out->folder >= 0) return open_stream(out, create_temporary(out, 0600));
    pd_writer_abort(out);
    return PERIDOT_ERROR_IO;
}

/* ---- writing ---- */

uint64_t pd_writer_available(const struct pd_writer *w)
{
    struct statvfs fs;
    struct stat st;
    bool known = fstat(fileno(w->file), &st) == 0 && S_ISREG(st.st_mode) && fstatvfs(fileno(w->file), &fs) == 0;
    return known ? (uint64_t)fs.f_bavail * fs.f_frsize : UINT64_MAX;
}

peridot_status pd_writer_commit(struct pd_writer *w)
{
    bool ok = fflush(w->file) == 0 && (fsync(fileno(w->file)) == 0 || errno == EINVAL);   /* EINVAL: a pipe, a device */
    if (ok && w->name && !w->temporary[0]) ok = link_temporary(w);
    int error = errno;
    if (fclose(w->file) != 0 && ok) ok = false, error = errno;
    w->file = NULL;
    if (ok && w->name) {
        ok = renameat(w->folder, w->temporary, w->folder, w->name) == 0;
        error = errno;
        if (ok) w->temporary[0] = 0;
    }
    peridot_status status = ok ? PERIDOT_OK : pd_fail(PERIDOT_ERROR_IO, "%s: %s", w->path, strerror(error));
    pd_writer_abort(w);
    return status;
}

void pd_writer_abort(struct pd_writer *w)
{
    if (w->name && w->temporary[0]) unlinkat(w->folder, w->temporary, 0);
    if (w->name && w->folder >= 0) close(w->folder);
    if (w->file) fclose(w->file);
    free(w->path);
    free(w->name);
    *w = (struct pd_writer){0};
}

/* ---- files that are read ---- */

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* A .gguf file in a Hugging Face folder is none of the model's, but what conversion may have made of it. */
static bool is_file_of(const struct stat *st, const char *folder)
{
    bool found = false;
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && !found && (entry = readdir(dir));) {
        struct stat other;
        size_t size = strlen(entry->d_name);
        bool is_result = size > 5 && strcmp(entry->d_name + size - 5, ".gguf") == 0;
        found = !is_result && fstatat(dirfd(dir), entry->d_name, &other, 0) == 0 && is_same_file(st, &other);
    }
    if (dir) closedir(dir);
    return found;
}

peridot_status pd_writer_check(const char *path, const char *source)
{
    struct stat out, in;
    if (stat(path, &out) != 0 || !S_ISREG(out.st_mode) || stat(source, &in) != 0) return PERIDOT_OK;
    if (is_same_file(&out, &in))
        return pd_fail(PERIDOT_ERROR_IO, "%s: cannot be written: it is the file that is read (%s)", path, source);
    if (S_ISDIR(in.st_mode) && is_file_of(&out, source))
        return pd_fail(PERIDOT_ERROR_IO, "%s: cannot be written: it is a file of the folder that is read (%s)", path,
                       source);
    return PERIDOT_OK;
}
