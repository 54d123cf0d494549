#include "sequence.h"

#include "gpu/gpu_.h"

#include <stdlib.h>

enum { N_LAYERS = 2, N_PAGES = 4, KV_DIM = 2, CTX = N_PAGES * PD_PAGE, WINDOW = PD_PAGE };

static void *zeroed(size_t size)
{
    void *memory = calloc(1, size);
    FUZZ_CHECK(memory);
    return memory;
}

static struct pd_span host_span(uint64_t size)
{
    return (struct pd_span){.size = size, .host = zeroed(size)};
}

/* A layer that sees all, and one with a window. */
static void make_cache(struct pd_cache *c)
{
    *c = (struct pd_cache){.n_layers = N_LAYERS, .n_kinds = N_LAYERS, .n_tables = 1, .table_pages = N_PAGES,
        .spans = zeroed(N_LAYERS * sizeof *c->spans), .kinds = zeroed(N_LAYERS * sizeof *c->kinds)};
    for (uint32_t i = 0; i < N_LAYERS; i++) {
        struct pd_page_pool *pool = &c->pools[i];
        *pool = (struct pd_page_pool){.window = i ? WINDOW : 0, .kv_dim = KV_DIM, .n_pages = N_PAGES,
            .free_pages = zeroed(N_PAGES * sizeof *pool->free_pages),
            .n_references = zeroed(N_PAGES * sizeof *pool->n_references),
            .tables = host_span(N_PAGES * sizeof(uint32_t))};
        while (pool->n_free < N_PAGES) {
            pool->free_pages[pool->n_free] = pool->n_free;
            pool->n_free++;
        }
        c->kinds[i] = i;
        for (int half = 0; half < 2; half++) c->spans[i][half] = host_span((uint64_t)N_PAGES * PD_PAGE * KV_DIM * 2);
    }
}

struct fuzz_session *fuzz_session(void)
{
    static struct fuzz_session s;
    if (s.model.checkpoint) return &s;
    FUZZ_CHECK(pd_checkpoint_open(&s.model.checkpoint, PERIDOT_GOLDEN "/gemma2-q4_0/model.gguf", true) == PERIDOT_OK);
    s.model.gpu = zeroed(sizeof *s.model.gpu);
    s.model.weights.vocab_size = s.model.n_pieces = FUZZ_N_PIECES;
    make_cache(&s.set.cache);
    s.set.n_max = 1;
    s.set.ctx = CTX;
    return &s;
}

uint32_t fuzz_n_free_pages(const struct fuzz_session *s)
{
    uint32_t n = 0;
    for (uint32_t kind = 0; kind < s->set.cache.n_kinds; kind++) n += s->set.cache.pools[kind].n_free;
    return n;
}
