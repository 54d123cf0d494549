/* The schedule of a session: which of its requests has a sequence, and which takes part in the next round.
 *
 * A request comes with a sequence, on which it begins at once, or without one. Those without wait in the order in which
 * they came, until fewer than n_parallel have sequences and the cache has room for the prompt and the beginning of the
 * reply; who cannot begin yet keeps those behind waiting. A request begins on what the session has of its prompt
 * (prefix.h). One whose whole prompt another is evaluating waits for that, to share it. When the cache is full, kept
 * sequences go first; then the request that needs more gives up its sequence and goes on later from its tokens, before
 * all others that wait: to the same text.
 *
 * Each round is a step of those that write and a chunk of the prompts: see request.h.
 *
 * Owns the sequences that it found; requests are the caller's, and are removed before they go. Used by the thread that
 * runs the session; callbacks of requests may add others, and not remove any. */
#ifndef PD_ENGINE_SCHEDULE_H
#define PD_ENGINE_SCHEDULE_H

#include "engine/prefix.h"

struct pd_schedule {
    struct pd_session *s;
    uint32_t n_parallel;
    struct pd_request *waiting;        /* in order */
    struct pd_request *running[PD_MAX_SEQUENCES];   /* those with sequences, whether these were given or found */
    uint32_t n_waiting, n_running;
    struct pd_prefix_cache prefixes;
    uint64_t n_preempted;              /* times that a request gave up its sequence */
};

/* n_parallel: requests at most that have sequences which the schedule found. */
void pd_schedule_init(struct pd_schedule *c, struct pd_session *s, uint32_t n_parallel);
/* Adds a request that has begun on a sequence of its own. */
void pd_schedule_attach(struct pd_schedule *c, struct pd_request *r);
/* Adds a request without a sequence, whose tokens become the schedule's to replace; pd_schedule_remove leaves them to
 * the caller again. */
peridot_status pd_schedule_add(struct pd_schedule *c, struct pd_request *r);
/* The same for a request that is done and goes on, with other tokens: before all others that wait, and as of when it
 * was added. */
peridot_status pd_schedule_resume(struct pd_schedule *c, struct pd_request *r);
/* Takes a request out, whatever its state. Of what it added to the cache nothing is kept if it is not done. */
void pd_schedule_remove(struct pd_schedule *c, struct pd_request *r);
/* A round: see peridot_session_run. */
peridot_status pd_schedule_run(struct pd_schedule *c);

#endif
