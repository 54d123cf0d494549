/* What Hugging Face's cache takes of the system: cache_files.c for POSIX, ../windows.c for Windows. Descriptors are
 * those of read and write; what fails sets errno. */
#ifndef PERIDOT_CACHE_FILES_H
#define PERIDOT_CACHE_FILES_H

#include "../util.h"

/* True where the folder is there, or is made. */
bool cache_make_folder(const char *path);
/* For reading and writing, made where it is not there, never through a link; -1: it cannot be. */
int cache_open(const char *path);
/* What was written is on the disk. */
bool cache_sync(int fd);
/* Replaces what is there. Nobody has either of them open. */
bool cache_move(const char *from, const char *to);
/* Makes `path` what leads to the file `blob`, which `target` names from path's folder, whatever was there. */
bool cache_link(const char *path, const char *target, const char *blob);
/* Bytes that the folder's disk has free for this user. */
bool cache_space(uint64_t *left, const char *folder);

enum cache_lock { CACHE_HELD, CACHE_BUSY, CACHE_FAILED };
/* Held until the descriptor is closed. */
enum cache_lock cache_lock(int *fd, const char *path);

#endif
