/* The operating system: files mapped for reading, files written, folders, clocks. What differs between systems is in
 * map.c, posix.c, private.c and writer.c. */
#ifndef PD_BASE_OS_H
#define PD_BASE_OS_H

#include "base/status.h"

#include <stdio.h>
#include <time.h>

struct pd_map {
    const uint8_t *data;   /* NULL when size is 0 */
    uint64_t size;
    struct pd_region *region;   /* NULL: a copy */
    int fd;                     /* of the file, where there is a region */
};

/* Maps a regular file read-only. Where its bytes are gone when they are read, zeros are: see pd_map_check. Threads that
 * read it must not block SIGBUS. */
peridot_status pd_map_open(struct pd_map *out, const char *path);
/* Copies a regular file, of no more than PD_MAP_READ_MAX bytes, into memory. */
#define PD_MAP_READ_MAX ((uint64_t)1 << 30)
peridot_status pd_map_read(struct pd_map *out, const char *path);
/* Copies the next `size` bytes of a descriptor. */
peridot_status pd_map_copy(struct pd_map *out, int fd, uint64_t size, const char *path);
/* What came of reading the mapping: status, or a failure where bytes were gone. */
peridot_status pd_map_check(peridot_status status, const struct pd_map *map, const char *path);
void pd_map_close(struct pd_map *map);
/* These bytes of a mapping are not read again soon: the pages that lie wholly among them need no memory until then. */
void pd_map_forget(const void *data, uint64_t size);

/* A file that appears at `path` when it is complete. What replaces a file takes over its mode and owner; its other hard
 * links keep the old one. Links are followed. What cannot be replaced is written in place, as it comes: devices, FIFOs,
 * descriptors of the process (/dev/stdout), mount points. */
struct pd_writer {
    FILE *file;
    char *path;            /* as it was given */
    char *name;            /* in the folder; NULL: written in place */
    char temporary[32];    /* in the folder; "": it has no name yet */
    int folder;
    uint64_t offset;
};

peridot_status pd_writer_open(struct pd_writer *out, const char *path);
peridot_status pd_writer_write(struct pd_writer *w, const void *data, size_t size);
/* Bytes that its disk still has room for; UINT64_MAX when unknown. */
uint64_t pd_writer_available(const struct pd_writer *w);
/* Flushes, syncs and renames. The writer is closed either way; on failure nothing is left of the file. */
peridot_status pd_writer_commit(struct pd_writer *w);
/* Closes and removes the temporary file. Harmless after commit. */
void pd_writer_abort(struct pd_writer *w);
/* Fails where `path` is the file `source`, or one in the folder `source`, by whatever name. */
peridot_status pd_writer_check(const char *path, const char *source);

/* Files of a folder that is this user's alone, and no link: what another put there is neither read nor written. The
 * folder is made (0700) when something is written; its files have mode 0600. */
peridot_status pd_private_read(struct pd_map *out, const char *folder, const char *name, uint64_t most);
peridot_status pd_private_write(struct pd_writer *out, const char *folder, const char *name);
peridot_status pd_private_remove(const char *folder, const char *name);
/* Fails, with the reason, where a folder that is there cannot be used so. */
peridot_status pd_private_check(const char *folder);
/* A descriptor of the folder; -1 after a sentence. */
int pd_private_folder(const char *folder);

bool pd_is_directory(const char *path);
bool pd_is_file(const char *path);
/* Makes a folder and its parents, for this user alone. */
peridot_status pd_make_directory(const char *path);
bool pd_make_one_directory(const char *path);
/* "DIR/NAME", allocated; NULL when out of memory. */
char *pd_path_join(const char *directory, const char *name);
/* A path that someone gave, allocated, with slashes between its parts; NULL when out of memory. */
char *pd_path_copy(const char *path);
/* A path with slashes between its parts, in place. */
void pd_path_clean(char *path);
char *pd_string_copy(const char *s);
/* From the system's generator, which nobody can predict. */
void pd_random_bytes(void *out, size_t size);
/* Monotonic seconds. */
double pd_now(void);
/* Date and time of day where the machine is. */
void pd_local_time(struct tm *out);
/* Bytes of memory the host can give without swapping; UINT64_MAX when unknown. */
uint64_t pd_memory_available(void);
/* The most bytes of memory that this process has held at once, mapped files in memory included; 0 when unknown. */
uint64_t pd_memory_peak(void);
/* At least 1. */
uint32_t pd_n_processors(void);

/* A function of a shared library, which stays loaded; NULL: there is none. */
typedef void (*pd_function)(void);
pd_function pd_library_function(const char *library, const char *name);

#endif
