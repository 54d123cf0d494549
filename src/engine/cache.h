/* The KV cache: pages of PD_PAGE positions, which sequences take as they grow and share by reference. Layers whose
 * attention has one shape are of one kind: they have the same page numbers, each with buffers of its own, so that a
 * table of pages per sequence and kind serves them all. Here are the memory of the pages, their counts of references
 * and the sequences' tables; pages.h has what sequences do with pages, snapshots.h what is kept to go back. One thread
 * at a time uses a cache. */
#ifndef PD_ENGINE_CACHE_H
#define PD_ENGINE_CACHE_H

#include "arch/config.h"
#include "engine/link.h"
#include "ops/ops.h"

/* A page of a kind that snapshots have: all of them together are one reference of the device's page. */
struct pd_kept_page {
    uint32_t n_snapshots;
    uint32_t number;           /* on the device, where host is NULL */
    uint8_t *host;             /* [layers of the kind][k, v][PD_PAGE] positions */
    uint32_t id;               /* of what other ranks have there */
};

struct pd_page_pool {
    uint32_t window, kv_dim;   /* of the kind's layers */
    uint64_t page_size;        /* bytes of a page of one layer's keys; values take as many */
    uint32_t n_pages, n_free;  /* 0: they read caches of others */
    uint32_t *free_pages;      /* [n_free], a stack */
    uint16_t *n_references;    /* [n_pages] */
    struct pd_kept_page **kept;   /* [n_pages], of layers with windows: NULL where no snapshot has the page */
    struct pd_span tables;     /* in the host's reach: [n_tables][table_pages] page numbers */
};

struct pd_cache {
    struct pd_gpu *gpu;
    struct pd_link *link;      /* where copies of pages are to be made on other ranks too; NULL: nowhere */
    uint32_t n_kept;           /* pages that went to the host's memory so far */
    struct pd_heap *heap;
    struct pd_kv *layers;      /* [n_layers] */
    struct pd_span (*spans)[2];   /* [n_layers]: k, v; none for a layer that reads another's */
    uint32_t *kinds;           /* [n_layers] */
    struct pd_commands *commands;   /* that copy pages */
    struct pd_heap *staging_heap;
    struct pd_span staging;         /* a page of all layers of a kind, to or from the host; made when needed */
    struct pd_snapshot *snapshots;  /* of all sequences, the oldest first */
    uint64_t host_size, host_max;   /* bytes of the host's memory that their pages take, and may take */
    uint32_t n_layers;
    struct pd_page_pool pools[PD_MAX_LAYER_KINDS];
    uint32_t n_kinds, n_tables, table_pages;
    peridot_kv_type type;
    bool long_rope;                 /* keys are rotated as in long sessions: see pd_rope_is_long */
    uint64_t size;
};

struct pd_cache_shape {
    uint32_t n_tables;         /* sequences at once */
    uint32_t ctx;              /* positions of a sequence at most */
    uint32_t n_positions;      /* of all sequences together */
    uint32_t slack;            /* positions beyond its window that a sequence keeps of a layer with one */
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
};

/* [table_pages]: the sequence's table of pages of a kind. */
uint32_t *pd_pages_table(const struct pd_cache *cache, uint32_t kind, const struct pd_pages *pages);
/* Gives back all pages of a kind. */
void pd_pages_clear(struct pd_cache *cache, struct pd_pages *pages, uint32_t kind);

#endif
