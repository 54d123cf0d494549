/* A snapshot keeps the pages of layers with windows that a position sees, so that its sequence can go back there. Which
 * sequence that is, its table says. The end of a prompt or of a turn is such a position. Where sequences need pages
 * that only snapshots hold, these go to the host's memory, or are dropped. */
#ifndef PD_ENGINE_SNAPSHOTS_H
#define PD_ENGINE_SNAPSHOTS_H

#include "engine/cache.h"

#define PD_N_SNAPSHOTS 16          /* that a sequence has at most: the ends of 8 turns and of the prompts before them */
#define PD_N_DEVICE_SNAPSHOTS 2    /* for which the device has pages: those of others go to the host when it is short */

/* Makes n pages of a kind free. Where the host's memory does not take the pages of snapshots, these are dropped, the
 * oldest first. PERIDOT_ERROR_MEMORY where sequences hold too many. */
peridot_status pd_cache_make_room(struct pd_cache *cache, uint32_t kind, uint32_t n);
/* Keeps what it takes to go back to position `pos`, and drops the oldest of the sequence's where it has
 * PD_N_SNAPSHOTS. */
peridot_status pd_snapshot_take(struct pd_cache *cache, const struct pd_pages *pages, uint32_t pos);
/* Position of the sequence's last snapshot at or before n; 0: there is none. */
uint32_t pd_snapshot_before(const struct pd_cache *cache, const struct pd_pages *pages, uint32_t n);
/* Gives `pages`, which holds those of layers without windows up to `pos`, those of its snapshot there. On
 * failure the page table is incomplete. */
peridot_status pd_snapshot_restore(struct pd_cache *cache, struct pd_pages *pages, uint32_t pos);
/* Makes those of `from` up to `pos` snapshots of `to` as well, which has none. */
peridot_status pd_snapshots_share(struct pd_cache *cache, const struct pd_pages *to, const struct pd_pages *from,
                                  uint32_t pos);
/* Drops the sequence's snapshots beyond `pos`. */
void pd_snapshots_drop(struct pd_cache *cache, const struct pd_pages *pages, uint32_t pos);
/* Drops the oldest snapshot of all, which there is. */
void pd_snapshots_drop_oldest(struct pd_cache *cache);

#endif
