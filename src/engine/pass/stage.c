/* Rank 0's side of a pass whose layers several ranks hold: what the next rank gets once this one's layers are done. A
 * rank has as many pages of the cache as any other, with the same numbers, so that the tables of rank 0's sequences
 * serve them all; what changed in them goes before the rows, with the states that recurrences read and write. Numbers
 * are those of one device, bit for bit. */
#include "engine/pass/pass.h"

#include <stdlib.h>
#include <string.h>

static uint64_t n_entries_of(const struct pd_cache *cache) { return (uint64_t)cache->n_tables * cache->table_pages; }

peridot_status pd_stage_create(struct pd_stage *s, const struct pd_workspace *w)
{
    const struct pd_cache *cache = w->cache;
    uint64_t n = n_entries_of(cache);
    uint64_t size = w->n_rows * sizeof(struct pd_input_row) + 2 * PD_MAX_SEQUENCES * sizeof(struct pd_head_row)
        + cache->n_kinds * n * sizeof(struct pd_table_entry) + PD_MAX_RUNS * sizeof(struct pd_state_run);
    *s = (struct pd_stage){.w = w, .body = malloc(size)};
    if (!s->body) return pd_fail_alloc(size, "messages");
    for (uint32_t kind = 0; kind < cache->n_kinds; kind++) {
        s->sent[kind] = malloc(n * sizeof **s->sent);
        if (!s->sent[kind]) return pd_fail_alloc(n * sizeof **s->sent, "tables of pages");
        memset(s->sent[kind], 0xff, n * sizeof **s->sent);   /* no page's number */
    }
    return PERIDOT_OK;
}

void pd_stage_free(struct pd_stage *s)
{
    for (uint32_t kind = 0; kind < PD_MAX_LAYER_KINDS; kind++) free(s->sent[kind]);
    free(s->body);
    *s = (struct pd_stage){0};
}

/* Entries of one sequence's tables that have changed; their number. */
static uint32_t find_changes(struct pd_table_entry *out, struct pd_stage *s, uint32_t table)
{
    const struct pd_cache *cache = s->w->cache;
    uint32_t n = 0, begin = table * cache->table_pages;
    for (uint32_t kind = 0; kind < cache->n_kinds; kind++) {
        const struct pd_page_pool *pool = &cache->pools[kind];
        const uint32_t *now = pool->tables.host;
        for (uint32_t at = begin; pool->n_pages && at < begin + cache->table_pages; at++)
            if (now[at] != s->sent[kind][at] && now[at] < pool->n_pages)
                out[n++] = (struct pd_table_entry){kind, at, s->sent[kind][at] = now[at]};
    }
    return n;
}

peridot_status pd_stage_send(struct pd_stage *s, const struct pd_stage_pass *pass, struct pd_reply *reply, void *best)
{
    struct pd_link *link = s->w->model->link;
    uint64_t row_size = s->w->scratch.x.stride * sizeof(float);
    struct pd_input_row *rows = (struct pd_input_row *)s->body;
    struct pd_head_row *heads = (struct pd_head_row *)(rows + pass->n_rows);
    struct pd_table_entry *entries = (struct pd_table_entry *)(heads + pass->n_heads);
    uint32_t n_entries = 0;
    bool seen[PD_MAX_SEQUENCES] = {0};
    memcpy(rows, pass->in->rows, pass->n_rows * sizeof *rows);
    if (pass->n_heads) memcpy(heads, pass->heads, pass->n_heads * sizeof *heads);
    for (uint32_t i = 0; i < pass->n_rows; i++) {
        if (!seen[rows[i].table]) n_entries += find_changes(entries + n_entries, s, rows[i].table);
        seen[rows[i].table] = true;
        rows[i].token = pd_is_image_row(pass->tokens[i]) ? 0 : pass->tokens[i];
    }
    struct pd_state_run *runs = (struct pd_state_run *)(entries + n_entries);
    if (pass->n_runs) memcpy(runs, pass->in->runs.host, pass->n_runs * sizeof *runs);
    const struct pd_message m = {.op = PD_OP_PASS,
        .size = (uint32_t)((uint8_t *)(runs + pass->n_runs) - (uint8_t *)s->body),
        .args = {pass->n_rows, pass->n_heads, n_entries, pass->n_keys, pass->n_steps, pass->n_runs}};
    PD_TRY(pd_link_send(link, &m, s->body));
    PD_TRY(pd_link_send_rows(link, pass->in->rows_out.host, pass->n_rows * row_size));
    if (pass->n_heads)
        pd_link_expect(link, reply, best, pass->n_heads * PD_TOPK * (uint32_t)sizeof(struct pd_candidate));
    return PERIDOT_OK;
}
