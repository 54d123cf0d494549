#include "cache.h"

#include <string.h>

enum {
    WORTH = 16,                /* shorter prefixes are not worth a fork */
    TAIL = 32                  /* tokens of a kept conversation that may be cut off for one that goes on from it */
};

/* ---- kept sequences ---- */

static struct serve_slot *oldest_kept(struct serve_cache *c, const struct serve_slot *but)
{
    struct serve_slot *oldest = NULL;
    for (uint32_t i = 0; i < c->n_slots; i++) {
        struct serve_slot *slot = &c->slots[i];
        if (slot->sequence && !slot->task && slot != but && (!oldest || slot->used_s < oldest->used_s)) oldest = slot;
    }
    return oldest;
}

static void clear(struct serve_slot *slot)
{
    peridot_sequence_free(slot->sequence);
    *slot = (struct serve_slot){0};
}

bool serve_cache_make_room(struct serve_cache *c, uint64_t n_positions)
{
    struct serve_slot *slot;
    while (peridot_session_free_positions(c->session) < n_positions && (slot = oldest_kept(c, NULL)) != NULL)
        clear(slot);
    return peridot_session_free_positions(c->session) >= n_positions;
}

uint32_t serve_cache_n_kept(const struct serve_cache *c)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n_slots; i++) n += c->slots[i].sequence && !c->slots[i].task;
    return n;
}

void serve_cache_forget(struct serve_cache *c)
{
    for (uint32_t i = 0; i < c->n_slots; i++) {
        if (c->slots[i].task) c->slots[i].task->sequence = NULL;
        c->slots[i] = (struct serve_slot){0};
    }
}

/* ---- a sequence for a task ---- */

static struct serve_slot *free_slot(struct serve_cache *c, const struct serve_slot *but)
{
    for (uint32_t i = 0; i < c->n_slots; i++)
        if (!c->slots[i].sequence) return &c->slots[i];
    struct serve_slot *slot = oldest_kept(c, but);
    if (slot) clear(slot);
    return slot;
}

static size_t common(const peridot_sequence *sequence, const struct serve_task *task, size_t most)
{
    const int32_t *tokens = peridot_sequence_tokens(sequence);
    size_t n = 0, end = cmd_min(peridot_sequence_pos(sequence), most);
    while (n < end && tokens[n] == task->tokens[n]) n++;
    return n;
}

static struct serve_slot *find_prefix(size_t *n, struct serve_cache *c, const struct serve_task *task, size_t most)
{
    struct serve_slot *best = NULL;
    *n = WORTH - 1;
    for (uint32_t i = 0; i < c->n_slots; i++) {
        struct serve_slot *slot = &c->slots[i];
        size_t same = slot->sequence ? common(slot->sequence, task, most) : 0;
        if (same < *n || (same == *n && (!best || slot->task))) continue;   /* of equals one that is not at work */
        *n = same;
        best = slot;
    }
    return best;
}

static bool take(struct serve_slot *slot, struct serve_task *task, size_t n_cached)
{
    slot->task = task;
    slot->n_kept = 0;
    slot->used_s = cmd_now();
    task->sequence = slot->sequence;
    task->n_cached = n_cached;
    return true;
}

/* Goes back to what both have. Where windows have passed over that, to what is left of it. */
static bool cut(struct serve_slot *slot, struct serve_task *task, size_t n)
{
    uint32_t kept = 0;
    if (peridot_sequence_truncate(slot->sequence, (uint32_t)n, &kept) != PERIDOT_OK) kept = 0;
    take(slot, task, kept);
    slot->n_kept = kept;
    return true;
}

bool serve_cache_take(struct serve_cache *c, struct serve_task *task, size_t most)
{
    size_t n;
    struct serve_slot *best = find_prefix(&n, c, task, most), *slot;
    if (best && !best->task && n + TAIL >= peridot_sequence_pos(best->sequence)) return cut(best, task, n);
    slot = free_slot(c, best);
    uint32_t at = best ? peridot_sequence_nearest(best->sequence, (uint32_t)n) : 0;
    task->n_shared = best ? n : 0;   /* what is not there yet will be from now on */
    if (slot && at >= WORTH && peridot_sequence_fork(&slot->sequence, best->sequence, at) == PERIDOT_OK)
        return take(slot, task, at);
    if (best && !best->task) return cut(best, task, n);
    if (!slot) return false;
    return peridot_sequence_create(&slot->sequence, c->session) == PERIDOT_OK && take(slot, task, 0);
}

void serve_cache_release(struct serve_cache *c, struct serve_task *task, bool keep)
{
    uint32_t unused;
    for (uint32_t i = 0; i < c->n_slots; i++) {
        struct serve_slot *slot = &c->slots[i];
        if (slot->task != task) continue;
        slot->task = NULL;
        slot->used_s = cmd_now();
        peridot_set_sampling(slot->sequence, NULL);   /* what it draws by is of no more use */
        if (keep && task->job->closed)
            keep = peridot_sequence_truncate(slot->sequence, slot->n_kept, &unused) == PERIDOT_OK;
        if (!keep || peridot_sequence_pos(slot->sequence) < WORTH) clear(slot);
    }
    task->sequence = NULL;
}
