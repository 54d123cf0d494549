/* Sequences: timelines of tokens that share one cache. */
#include "engine/sequence/sequence.h"

#include "base/base.h"
#include "engine/memory/memory.h"
#include "engine/vision/vision.h"

#include <stdlib.h>
#include <string.h>

peridot_status pd_sequence_create(struct pd_sequence **out, struct pd_sequence_set *set)
{
    uint32_t index = 0;
    *out = NULL;
    while (index < set->n_max && set->at[index]) index++;
    if (index == set->n_max)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "all %u sequences of the session are in use", set->n_max);
    struct pd_sequence *q = calloc(1, sizeof *q);
    if (!q) return pd_fail_alloc(sizeof *q, "sequence");
    q->set = set;
    q->scales = set->scales;
    q->index = q->pages.table = index;
    *out = set->at[index] = q;
    return PERIDOT_OK;
}

void pd_next_mask_drop(struct pd_next_mask *m)
{
    pd_mask_job_free(m->job);
    free(m->made);
    *m = (struct pd_next_mask){0};
}

void pd_sequence_free(struct pd_sequence *q)
{
    if (!q) return;
    pd_snapshots_drop(&q->set->cache, &q->pages, 0);
    pd_pages_truncate(&q->set->cache, &q->pages, 0);
    q->set->at[q->index] = NULL;
    pd_next_mask_drop(&q->next_mask);
    pd_chain_free(q->chain);
    free(q->dry.at);
    free(q->tokens);
    free(q);
}

/* ---- growing ---- */

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
    return pd_pages_extend(&q->set->cache, &q->pages, n);
}

void pd_sequence_append(struct pd_sequence *q, const int32_t *tokens, uint32_t n)
{
    memcpy(q->tokens + q->pos, tokens, n * sizeof *tokens);
    q->pos += n;
    q->sampler.dry = NULL;     /* rows of images end repetitions, too */
    for (uint32_t i = 0; i < n; i++)
        if (!pd_is_image_row(tokens[i])) pd_sampler_accept(&q->sampler, tokens[i]);
}

/* ---- going back ---- */

void pd_sequence_mark(struct pd_sequence *q)
{
    struct pd_cache *cache = &q->set->cache;
    if (pd_snapshot_before(cache, &q->pages, q->pos) != q->pos) pd_snapshot_take(cache, &q->pages, q->pos);
}

/* No sequence ends within an image, whose rows see each other. */
uint32_t pd_sequence_nearest(const struct pd_sequence *q, uint32_t n)
{
    n = pd_image_border(q->tokens, n, q->pos);
    return pd_image_border(q->tokens, pd_pages_before(&q->set->cache, &q->pages, n), q->pos);
}

static void forget_after(struct pd_sequence *q, uint32_t n)
{
    q->pos = n;
    q->logits_pass = 0;
    pd_sampler_truncate(&q->sampler, n);
    q->sampler.n_seen = 0;
    uint32_t first = n;
    for (uint32_t n_text = 0; first > 0 && n_text < PD_REPEAT_WINDOW; first--)
        n_text += !pd_is_image_row(q->tokens[first - 1]);
    for (uint32_t i = first; i < n; i++)
        if (!pd_is_image_row(q->tokens[i])) pd_sampler_accept(&q->sampler, q->tokens[i]);
}

peridot_status pd_sequence_truncate(struct pd_sequence *q, uint32_t n, uint32_t *kept)
{
    if (n > q->pos) return pd_fail(PERIDOT_ERROR_ARGUMENT, "cannot keep %u of %u token%s", n, q->pos, PD_S(q->pos));
    struct pd_cache *cache = &q->set->cache;
    *kept = pd_sequence_nearest(q, n);
    if (*kept == q->pos) return PERIDOT_OK;
    peridot_status status = PERIDOT_OK;
    bool gone = !pd_pages_reach(cache, &q->pages, *kept);
    pd_snapshots_drop(cache, &q->pages, *kept);
    if (gone) status = pd_snapshot_restore(cache, &q->pages, *kept);
    if (status == PERIDOT_OK) status = pd_pages_truncate(cache, &q->pages, *kept);
    if (status == PERIDOT_ERROR_DEVICE_LOST) {   /* no pages are of use any more, but the tokens are */
        *kept = q->pos;
        return status;
    }
    if (status != PERIDOT_OK) {   /* some pages may be gone, and others not */
        *kept = 0;
        pd_snapshots_drop(cache, &q->pages, 0);
        pd_pages_truncate(cache, &q->pages, 0);
    }
    forget_after(q, *kept);
    return status;
}

static peridot_status share(struct pd_sequence *to, const struct pd_sequence *from, uint32_t n)
{
    struct pd_cache *cache = &from->set->cache;
    PD_TRY(grow_tokens(to, n));
    PD_TRY(pd_pages_fork(cache, &to->pages, &from->pages, n));   /* which may drop snapshots, to make room */
    PD_TRY(pd_snapshots_share(cache, &to->pages, &from->pages, n));
    if (pd_pages_reach(cache, &from->pages, n)) return PERIDOT_OK;
    if (pd_snapshot_before(cache, &to->pages, n) != n)
        return pd_fail(PERIDOT_ERROR_MEMORY, "the KV cache is full: it no longer has the keys of the first %u tokens",
                       n);
    PD_TRY(pd_snapshot_restore(cache, &to->pages, n));
    return pd_pages_truncate(cache, &to->pages, n);
}

peridot_status pd_sequence_fork(struct pd_sequence **out, const struct pd_sequence *q, uint32_t n)
{
    bool recurs = pd_cache_has_states(&q->set->cache);
    *out = NULL;
    if (n > q->pos)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "cannot fork %u of %u token%s", n, q->pos, PD_S(q->pos));
    if (pd_image_border(q->tokens, n, q->pos) != n)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "token %u is within an image, where no sequence ends", n);
    if (pd_sequence_nearest(q, n) != n)
        return pd_fail(PERIDOT_ERROR_ARGUMENT,
                       "the %s of the first %u token%s %s gone: layers with %s have passed over them",
                       recurs ? "state" : "keys", n, PD_S(n), recurs ? "is" : "are",
                       recurs ? "recurrences" : "windows");
    PD_TRY(pd_sequence_create(out, q->set));
    struct pd_sequence *copy = *out;
    copy->scales = q->scales;
    peridot_status status = share(copy, q, n);
    if (status != PERIDOT_OK) {
        pd_sequence_free(copy);
        *out = NULL;
        return status;
    }
    if (n) memcpy(copy->tokens, q->tokens, n * sizeof *copy->tokens);
    copy->sampler = q->sampler;
    copy->chain = pd_chain_ref(q->chain);
    forget_after(copy, n);
    return PERIDOT_OK;
}
