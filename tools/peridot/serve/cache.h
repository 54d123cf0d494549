/* The sequences of the engine's session, and which task has which: those of conversations that have ended are kept,
 * and go, the least recently used first, when sequences or pages are short. */
#ifndef PERIDOT_COMMAND_SERVE_CACHE_H
#define PERIDOT_COMMAND_SERVE_CACHE_H

#include "job.h"

enum { SERVE_MAX_SLOTS = 64 };

struct serve_slot {
    peridot_sequence *sequence;        /* NULL: free */
    struct serve_task *task;           /* NULL: the sequence is kept */
    uint32_t n_kept;                   /* positions that were kept when the task took it */
    double used_s;
};

struct serve_cache {
    peridot_session *session;
    struct serve_slot slots[SERVE_MAX_SLOTS];
    uint32_t n_slots;
};

/* Gives the task a sequence, which has the longest prefix of its tokens that was to be had, of `most` at most:
 * task->n_cached. False: there is none now. */
bool serve_cache_take(struct serve_cache *cache, struct serve_task *task, size_t most);
/* The task is done with its sequence, which is freed, or kept: if nobody waits for the job any more, only what was kept
 * before the task took it. */
void serve_cache_release(struct serve_cache *cache, struct serve_task *task, bool keep);
/* Frees kept sequences until so many positions are free. False: there are not as many. */
bool serve_cache_make_room(struct serve_cache *cache, uint64_t n_positions);
uint32_t serve_cache_n_kept(const struct serve_cache *cache);
/* The session is going away. */
void serve_cache_forget(struct serve_cache *cache);

#endif
