#include "engine/sequence.h"

#include "base/num.h"

#include <stdlib.h>
#include <string.h>

peridot_status pd_sequence_create(struct pd_sequence **out, struct pd_sequence_set *set)
{
    uint32_t index = 0;
    *out = NULL;
    while (index < set->n_max && set->at[index]) index++;
    if (index == set->n_max)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "all %u sequences of the session are taken", set->n_max);
    struct pd_sequence *q = calloc(1, sizeof *q);
    if (!q) return pd_fail_alloc(sizeof *q, "sequence");
    q->set = set;
    q->index = q->pages.table = index;
    *out = set->at[index] = q;
    return PERIDOT_OK;
}

static void drop_snapshots(struct pd_sequence *q, uint32_t beyond)
{
    for (int i = 0; i < PD_N_SNAPSHOTS; i++)
        if (q->snapshots[i].pos > beyond) pd_snapshot_free(&q->snapshots[i], &q->set->cache);
}

void pd_sequence_free(struct pd_sequence *q)
{
    if (!q) return;
    drop_snapshots(q, 0);
    pd_pages_truncate(&q->set->cache, &q->pages, 0);
    q->set->at[q->index] = NULL;
    free(q->tokens);
    free(q);
}

/* ---- growing ---- */

/* Of all sequences the snapshot that is furthest behind its sequence; false: there is none. */
static bool drop_oldest(struct pd_sequence_set *set)
{
    struct pd_snapshot *oldest = NULL;
    uint32_t age = 0;
    for (uint32_t i = 0; i < set->n_max; i++)
        for (int k = 0; set->at[i] && k < PD_N_SNAPSHOTS; k++) {
            struct pd_snapshot *s = &set->at[i]->snapshots[k];
            if (!s->pos || (oldest && set->at[i]->pos - s->pos <= age)) continue;
            oldest = s;
            age = set->at[i]->pos - s->pos;
        }
    if (oldest) pd_snapshot_free(oldest, &set->cache);
    return oldest != NULL;
}

static peridot_status grow_tokens(struct pd_sequence *q, uint32_t n)
{
    if (n <= q->capacity) return PERIDOT_OK;
    uint32_t capacity = (uint32_t)pd_min(pd_max(n, 2 * (uint64_t)q->capacity), q->set->ctx);
    int32_t *tokens = realloc(q->tokens, capacity * sizeof *tokens);
    if (!tokens) return pd_fail_alloc(capacity * sizeof *tokens, "tokens");
    q->tokens = tokens;
    q->capacity = capacity;
    return PERIDOT_OK;
}

peridot_status pd_sequence_extend(struct pd_sequence *q, uint32_t n)
{
    PD_TRY(grow_tokens(q, n));
    pd_pages_release(&q->set->cache, &q->pages, q->pos, q->set->slack);
    peridot_status status;
    do status = pd_pages_extend(&q->set->cache, &q->pages, n);
    while (status == PERIDOT_ERROR_MEMORY && drop_oldest(q->set));
    return status;
}

void pd_sequence_append(struct pd_sequence *q, const int32_t *tokens, uint32_t n)
{
    memcpy(q->tokens + q->pos, tokens, n * sizeof *tokens);
    q->pos += n;
    for (uint32_t i = 0; i < n; i++) pd_sampler_accept(&q->sampler, tokens[i]);
}

/* ---- going back ---- */

void pd_sequence_mark(struct pd_sequence *q)
{
    struct pd_snapshot snapshot, *last = &q->snapshots[PD_N_SNAPSHOTS - 1];
    if (q->pos == 0 || last->pos == q->pos) return;
    if (pd_snapshot_take(&snapshot, &q->set->cache, &q->pages, q->pos) != PERIDOT_OK) return;
    pd_snapshot_free(&q->snapshots[0], &q->set->cache);
    memmove(q->snapshots, q->snapshots + 1, sizeof *last * (PD_N_SNAPSHOTS - 1));
    *last = snapshot;
}

static const struct pd_snapshot *find_snapshot(const struct pd_sequence *q, uint32_t n)
{
    const struct pd_snapshot *found = NULL;
    for (int i = 0; i < PD_N_SNAPSHOTS; i++)
        if (q->snapshots[i].pos && q->snapshots[i].pos <= n && (!found || q->snapshots[i].pos > found->pos))
            found = &q->snapshots[i];
    return found;
}

uint32_t pd_sequence_nearest(const struct pd_sequence *q, uint32_t n)
{
    if (n == 0 || n >= pd_pages_least(&q->set->cache, &q->pages)) return n;
    const struct pd_snapshot *snapshot = find_snapshot(q, n);
    return snapshot ? snapshot->pos : 0;
}

static void forget_after(struct pd_sequence *q, uint32_t n)
{
    q->pos = n;
    q->logits = PD_LOGITS_NONE;
    q->sampler.n_seen = 0;
    for (uint32_t i = n > PD_REPEAT_WINDOW ? n - PD_REPEAT_WINDOW : 0; i < n; i++)
        pd_sampler_accept(&q->sampler, q->tokens[i]);
}

peridot_status pd_sequence_truncate(struct pd_sequence *q, uint32_t n, uint32_t *kept)
{
    if (n > q->pos) return pd_fail(PERIDOT_ERROR_ARGUMENT, "of %u tokens %u cannot be kept", q->pos, n);
    *kept = pd_sequence_nearest(q, n);
    if (*kept == q->pos) return PERIDOT_OK;
    if (*kept && *kept < pd_pages_least(&q->set->cache, &q->pages))
        pd_snapshot_restore(find_snapshot(q, *kept), &q->set->cache, &q->pages);
    drop_snapshots(q, *kept);
    peridot_status status;
    do status = pd_pages_truncate(&q->set->cache, &q->pages, *kept);
    while (status == PERIDOT_ERROR_MEMORY && drop_oldest(q->set));
    if (status != PERIDOT_OK) {   /* some pages may be gone, and others not */
        *kept = 0;
        pd_pages_truncate(&q->set->cache, &q->pages, 0);
    }
    forget_after(q, *kept);
    return status;
}

peridot_status pd_sequence_fork(struct pd_sequence **out, const struct pd_sequence *q, uint32_t n)
{
    *out = NULL;
    if (n > q->pos) return pd_fail(PERIDOT_ERROR_ARGUMENT, "a sequence of %u tokens has no first %u", q->pos, n);
    if (n && n < pd_pages_least(&q->set->cache, &q->pages))
        return pd_fail(PERIDOT_ERROR_ARGUMENT,
                       "the keys of the first %u tokens are gone: layers with windows have passed over them", n);
    PD_TRY(pd_sequence_create(out, q->set));
    struct pd_sequence *copy = *out;
    peridot_status status = grow_tokens(copy, n);
    if (status == PERIDOT_OK) status = pd_pages_fork(&q->set->cache, &copy->pages, &q->pages, n);
    if (status != PERIDOT_OK) {
        pd_sequence_free(copy);
        *out = NULL;
        return status;
    }
    if (n) memcpy(copy->tokens, q->tokens, n * sizeof *copy->tokens);
    copy->sampler = q->sampler;
    forget_after(copy, n);
    return PERIDOT_OK;
}
