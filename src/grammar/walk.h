/* Where a text is in a grammar. A thread is a state and the states to which the open calls return; where calls overlap
 * there are several. Every thread can be completed within the limits, so that dropping one, where there are too many,
 * only narrows what is written. */
#ifndef PD_GRAMMAR_WALK_H
#define PD_GRAMMAR_WALK_H

#include "grammar/rules.h"

#define PD_MAX_THREADS 16

struct pd_walk_thread {
    uint32_t state;
    uint32_t n_calls;
    uint32_t returns[PD_MAX_CALLS];   /* the innermost call last */
};

/* Plain data: a copy goes on by itself. */
struct pd_walk {
    uint32_t n;                       /* 0: the text is none of the grammar's */
    struct pd_walk_thread threads[PD_MAX_THREADS];
};

void pd_walk_begin(struct pd_walk *w, const struct pd_rules *r);
/* False, with the walk as it was, when the text cannot go on with these bytes. */
bool pd_walk_take(struct pd_walk *w, const struct pd_rules *r, const char *bytes, size_t size);
/* The text may end here. */
bool pd_walk_is_complete(const struct pd_walk *w, const struct pd_rules *r);

/* The same for short texts: levels of a walk, one for each byte of the present text. */
#define PD_MAX_STEPS 64
struct pd_trail_thread {
    uint32_t state, call;             /* call: index of the innermost open one; 0: none */
};

struct pd_trail_call {
    uint32_t to, outer;
    uint32_t depth;                   /* calls that are open, this one included */
};

struct pd_trail_level {
    uint32_t n, n_calls;
    struct pd_trail_thread threads[PD_MAX_THREADS];
};

struct pd_trail {
    const struct pd_rules *rules;
    struct pd_trail_level levels[PD_MAX_STEPS + 1];
    struct pd_trail_call calls[1 + PD_MAX_THREADS * (PD_MAX_CALLS + PD_MAX_STEPS)];
};

/* *level becomes that after one more byte; false when there is none. Calls that begin there are written after the first
 * n_calls, one for each thread at most. */
bool pd_level_step(struct pd_trail_level *level, const struct pd_rules *r, struct pd_trail_call *calls,
                   uint32_t n_calls, const struct pd_trail_level *from, uint8_t byte);

void pd_trail_begin(struct pd_trail *t, const struct pd_rules *r, const struct pd_walk *w);
/* Level `at` + 1 becomes that after one more byte; false when there is none. at < PD_MAX_STEPS. */
bool pd_trail_step(struct pd_trail *t, uint32_t at, uint8_t byte);
/* Levels 1 .. size become those of a text of at most PD_MAX_STEPS bytes; false when there is none. */
bool pd_trail_take(struct pd_trail *t, const char *bytes, size_t size);

#endif
