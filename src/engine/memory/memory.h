/* What sequences remember: the KV cache in pages, which they share by reference, and the snapshots that they go back
 * to. Threads: see struct pd_model. */
#ifndef PD_ENGINE_MEMORY_MEMORY_H
#define PD_ENGINE_MEMORY_MEMORY_H

#include "arch/arch.h"
#include "engine/ranks/ranks.h"
#include "ops/ops.h"

/* ---- cache ---- */

/* Layers with recurrences have no keys: all that they remember of the tokens so far is a state, of each layer a matrix
 * and the last inputs of its convolution. States are the pages of a pool of their own, a page in all those layers being
 * the state after some position. A sequence has up to PD_N_STATES of them, its latest: a run of rows reads one and
 * writes another, so that steps which are queued and then discarded leave the one that they began with; and the one
 * before the last token's is there to evaluate that again. Where there are drafts, a sequence has one more for each of
 * a draft's tokens: the step leaves the state after each row, of which that of the last one accepted is gone on with.
 * Snapshots keep others. */
#define PD_STATE_KIND PD_MAX_LAYER_KINDS   /* of states, among pools; layers' own kinds have no pages */
#define PD_STATE_INTERVAL 256              /* positions from one that is kept to go back to, to the next one */
#define PD_MAX_DRAFT 31                    /* tokens */
#define PD_N_STATES 4                      /* after the token before the last, after the last, after two queued steps */

/* A page of a kind that snapshots have: all of them together are one reference of the device's page. */
struct pd_kept_page {
    uint32_t n_snapshots;
    uint32_t number;           /* on the device, where host is NULL */
    uint8_t *host;             /* [layers of the kind] both parts of a page */
    uint32_t id;               /* of what other ranks have there */
};

struct pd_page_pool {
    uint32_t window, kv_dim;   /* of the kind's layers */
    uint64_t page_size[2];     /* bytes of a page of one layer: keys, values; of a state its matrix, its tail,
                                  or its tail alone */
    uint32_t n_pages, n_free;  /* 0: they read caches of others */
    uint32_t *free_pages;      /* [n_free], a stack */
    uint16_t *n_references;    /* [n_pages] */
    struct pd_kept_page **kept;   /* [n_pages], of layers with windows, and states: NULL where no snapshot has it */
    struct pd_span tables;     /* in the host's reach: [n_tables][table_pages] page numbers */
};

struct pd_cache {
    struct pd_gpu *gpu;
    struct pd_link *link;      /* where copies of pages are to be made on other ranks too; NULL: nowhere */
    uint32_t n_kept;           /* pages that went to the host's memory so far */
    struct pd_heap *heap;
    struct pd_kv *layers;      /* [n_layers] */
    struct pd_span (*spans)[2];   /* [n_layers]: k, v; none for a layer that reads another's */
    uint32_t *kinds;           /* [n_layers]; PD_STATE_KIND: it has states */
    struct pd_commands *commands;   /* that copy pages */
    struct pd_heap *staging_heap;
    struct pd_span staging;         /* a page of all layers of a kind, to or from the host; made when needed */
    struct pd_snapshot *snapshots;  /* of all sequences, the oldest first */
    uint64_t host_size, host_max;   /* bytes of the host's memory that their pages take, and may take */
    uint32_t n_layers;
    struct pd_page_pool pools[PD_MAX_LAYER_KINDS + 1];
    uint32_t n_kinds, n_tables, table_pages;
    uint32_t n_states;              /* of a sequence at most */
    peridot_kv_type type;
    bool long_rope;                 /* keys are rotated as in long sessions: see pd_rope_is_long */
    uint64_t size;
};

struct pd_cache_shape {
    uint32_t n_tables;         /* sequences at once */
    uint32_t ctx;              /* positions of a sequence at most */
    uint32_t n_positions;      /* of all sequences together */
    uint32_t slack;            /* positions beyond its window that a sequence keeps of a layer with one */
    uint32_t n_draft;          /* tokens of a draft, for each of which there is a state */
    uint32_t n_snapshots;      /* of a sequence, for which layers with windows get pages */
    peridot_kv_type type;
    uint64_t host_max;         /* bytes of the host's memory for the pages of older ones */
    uint32_t first_layer, end_layer;   /* whose keys and values are here; both 0: all */
    struct pd_link *link;      /* see pd_cache */
};

/* tables: heap of what the host writes and kernels read. */
peridot_status pd_cache_create(struct pd_cache *out, struct pd_gpu *gpu, const struct pd_config *config,
                               const struct pd_cache_shape *shape, struct pd_heap *tables);
void pd_cache_free(struct pd_cache *cache);
/* One more layer, the last one, whose keys are in the pages of a kind. */
peridot_status pd_cache_add_layer(struct pd_cache *cache, uint32_t kind);
/* Bytes of the states of a sequence without drafts. */
uint64_t pd_states_size(const struct pd_config *config);
/* Bytes that a cache of this shape takes on the device. */
uint64_t pd_cache_size(const struct pd_config *config, const struct pd_cache_shape *shape);

/* Takes a page that nobody holds, of which there is one: one reference, which give_back returns. */
uint32_t pd_page_take(struct pd_page_pool *pool);
void pd_page_give_back(struct pd_page_pool *pool, uint32_t page);
/* Bytes of a page in all layers of the kind that are here: keys and values. */
uint64_t pd_page_full_size(const struct pd_cache *cache, uint32_t kind);
/* Copies a page in all layers of a kind that are here. */
peridot_status pd_page_copy(struct pd_cache *cache, uint32_t kind, uint32_t to, uint32_t from);
/* Copies one to memory of the host's, *host (malloc). */
peridot_status pd_page_read(uint8_t **host, struct pd_cache *cache, uint32_t kind, uint32_t page);
peridot_status pd_page_write(struct pd_cache *cache, uint32_t kind, uint32_t page, const uint8_t *host);

/* Positions of the pages that nobody holds: of layers without windows, where there are any. */
uint32_t pd_cache_free_positions(const struct pd_cache *cache);

/* The pages that a sequence holds: of each kind those with numbers begin .. end - 1 in its table. */
struct pd_pages {
    uint32_t table;
    uint32_t begin[PD_MAX_LAYER_KINDS], end[PD_MAX_LAYER_KINDS];
    struct pd_state_entry {
        uint32_t pos, page;    /* after so many positions; 0: there is none */
    } states[PD_N_STATES + PD_MAX_DRAFT];   /* [n_states], in any order */
};

/* [table_pages]: the sequence's table of pages of a kind. */
uint32_t *pd_pages_table(const struct pd_cache *cache, uint32_t kind, const struct pd_pages *pages);
/* Gives back all pages of a kind. */
void pd_pages_clear(struct pd_cache *cache, struct pd_pages *pages, uint32_t kind);

/* ---- states ---- */

/* Whether the model has recurrences. Of others all states are there. */
bool pd_cache_has_states(const struct pd_cache *cache);
/* Whether the sequence has the state after its first n positions; that of none is zeros, which need no memory. */
bool pd_states_have(const struct pd_cache *cache, const struct pd_pages *pages, uint32_t n);
/* The last position at or before n of which it has one; 0: there is none. */
uint32_t pd_states_before(const struct pd_pages *pages, uint32_t n);
/* The page of the one that it has after n > 0 positions. */
uint32_t pd_states_number(const struct pd_pages *pages, uint32_t n);
/* Drops those after more than n positions; all where n is 0. */
void pd_states_truncate(struct pd_cache *cache, struct pd_pages *pages, uint32_t n);
/* Makes a page that others hold its state after n positions, in place of the earliest where it has too many. */
void pd_states_put(struct pd_cache *cache, struct pd_pages *pages, uint32_t n, uint32_t page);
/* The same of a new page, which is to be written. */
peridot_status pd_states_add(struct pd_cache *cache, struct pd_pages *pages, uint32_t n);
/* Of out->n rows from position pos on: the states that they read and write; each: [out->n] pages of those after each
 * row, NULL: only that after the last. Those of later positions, which such rows write anew, are dropped. */
peridot_status pd_states_step(struct pd_state_run *out, uint32_t *each, struct pd_cache *cache, struct pd_pages *pages,
                              uint32_t pos);

/* Rows from position pos on that a pass may have at most, so that it ends where a state is to be kept. */
uint32_t pd_states_room(const struct pd_cache *cache, uint32_t pos);

/* ---- snapshots ---- */

/* That a sequence has at most: the ends of 8 turns and of the prompts before them. Where there are states: the ends of
 * the last two turns and of their prompts, of each the place a PD_STATE_INTERVAL or less before it, and others that are
 * the further apart the older they are. */
#define PD_N_SNAPSHOTS 16
#define PD_N_DEVICE_SNAPSHOTS 2    /* for which the device has pages: those of others go to the host when it is short */

/* Makes n pages of a kind free. Where the host's memory does not take the pages of snapshots, these are dropped, the
 * oldest first. PERIDOT_ERROR_MEMORY where sequences hold too many. */
peridot_status pd_cache_make_room(struct pd_cache *cache, uint32_t kind, uint32_t n);
/* Keeps what it takes to go back to position `pos`, and drops one of the sequence's where it has PD_N_SNAPSHOTS. */
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

/* ---- pages ---- */

/* Number in the cache of page i of the sequence, begin <= i < end. */
uint32_t pd_pages_number(const struct pd_cache *cache, const struct pd_pages *pages, uint32_t kind, uint32_t i);
/* Of a sequence without pages: those before begin[kind] are never taken. */
void pd_pages_skip(const struct pd_cache *cache, struct pd_pages *pages, const uint32_t begin[PD_MAX_LAYER_KINDS]);
/* First slot of the sequence: see pd_place. */
uint32_t pd_pages_text(const struct pd_cache *cache, const struct pd_pages *pages);
/* Takes pages for all positions below n. Where too few are left, pages that only snapshots have go to the host's
 * memory, those of the oldest first; PERIDOT_ERROR_MEMORY (no sequence is changed) where these are too few as well. */
peridot_status pd_pages_extend(struct pd_cache *cache, struct pd_pages *pages, uint32_t n);
/* Gives back pages that positions from `pos` on do not see, but for `slack` positions before them. */
void pd_pages_release(struct pd_cache *cache, struct pd_pages *pages, uint32_t pos, uint32_t slack);
/* Keeps the pages of the first n positions; 0: none. A page that is to be written again, and is shared, is copied. */
peridot_status pd_pages_truncate(struct pd_cache *cache, struct pd_pages *pages, uint32_t n);
/* Makes `to`, which has none, share the pages of the first n positions, as far as `from` has them; the last one is
 * copied unless it is full. */
peridot_status pd_pages_fork(struct pd_cache *cache, struct pd_pages *to, const struct pd_pages *from, uint32_t n);
/* Whether a sequence can go back to its first n positions as it is: the next one sees only keys that are still there,
 * and the state after them is. */
bool pd_pages_reach(const struct pd_cache *cache, const struct pd_pages *pages, uint32_t n);
/* The last position at or before n to which it can go back, by a snapshot or without; 0 always is one. */
uint32_t pd_pages_before(const struct pd_cache *cache, const struct pd_pages *pages, uint32_t n);

#endif
