/* The operating system: files mapped for reading, files written whole or not at all, folders, clocks. */
#ifndef PD_BASE_OS_H
#define PD_BASE_OS_H

#include "base/status.h"

#include <stdio.h>

struct pd_map {
    const uint8_t *data;   /* NULL when size is 0 */
    uint64_t size;
};

/* Maps a regular file read-only. */
peridot_status pd_map_open(struct pd_map *out, const char *path);
void pd_map_close(struct pd_map *map);
/* These bytes of a mapping are not read again soon: the pages that lie wholly among them need no memory until then. */
void pd_map_forget(const void *data, uint64_t size);

/* A file that appears at `path` only when it is complete: written beside it under a temporary name, then renamed. */
struct pd_writer {
    FILE *file;
    char *path, *temporary;
    uint64_t offset;
};

peridot_status pd_writer_open(struct pd_writer *out, const char *path);
peridot_status pd_writer_write(struct pd_writer *w, const void *data, size_t size);
/* Flushes, syncs and renames. The writer is closed either way; on failure the temporary file is gone. */
peridot_status pd_writer_commit(struct pd_writer *w);
/* Closes and removes the temporary file. Harmless after commit. */
void pd_writer_abort(struct pd_writer *w);

bool pd_is_directory(const char *path);
bool pd_is_file(const char *path);
/* Makes a folder and its parents. */
peridot_status pd_make_directory(const char *path);
/* "DIR/NAME", allocated; NULL when out of memory. */
char *pd_path_join(const char *directory, const char *name);
char *pd_string_copy(const char *s);
/* Monotonic seconds. */
double pd_now(void);
/* Bytes of memory the host can give without swapping; UINT64_MAX when unknown. */
uint64_t pd_memory_available(void);
/* The most bytes of memory that this process has held at once, mapped files in memory included; 0 when unknown. */
uint64_t pd_memory_peak(void);
/* Bytes that may still be written to the disk on which a file of this path lies, or would; UINT64_MAX when unknown. */
uint64_t pd_disk_available(const char *path);
/* At least 1. */
uint32_t pd_n_processors(void);

#endif
