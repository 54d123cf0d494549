/* Hugging Face's cache of one model, in the layout that its own tools read and write:
 *   models--OWNER--NAME/blobs/HASH              bytes, named by what they are; HASH.incomplete while they come
 *   models--OWNER--NAME/snapshots/COMMIT/PATH   relative links to blobs
 *   models--OWNER--NAME/refs/REVISION           the commit
 *   .locks/models--OWNER--NAME/HASH.lock        held (flock) by who fetches a blob */
#ifndef PERIDOT_COMMAND_MODELS_HUB_CACHE_H
#define PERIDOT_COMMAND_MODELS_HUB_CACHE_H

#include "hub.h"
#include "stores.h"
#include "../terminal.h"

struct hub_cache {
    char folder[CMD_PATH_SIZE];     /* .../models--OWNER--NAME */
    char locks[CMD_PATH_SIZE];
    char snapshot[CMD_PATH_SIZE];
};

/* Makes its folders. */
peridot_status hub_cache_open(struct hub_cache *out, const struct hub *hub);
/* Bytes of a file that are still to be fetched. */
uint64_t hub_cache_missing(const struct hub_cache *cache, const struct hub_file *file);
/* Fails, with the numbers, where the disk has not so many bytes left. */
peridot_status hub_cache_check_room(const struct hub_cache *cache, uint64_t size);
/* Fetches a file unless it is there, checks its hash, and puts it into the snapshot. What came before a failure stays,
 * for the next time. */
struct hub_progress {
    struct cmd_progress line;
    uint64_t before, total;     /* bytes of the files before this one, and of all */
};
peridot_status hub_cache_fetch(const struct hub_cache *cache, struct hub *hub, const struct hub_file *file,
                               struct hub_progress *progress);
/* The revision is the snapshot's commit from now on. */
peridot_status hub_cache_set_revision(const struct hub_cache *cache, const struct hub *hub);

#endif
