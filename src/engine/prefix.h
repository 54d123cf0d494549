/* The sequences of a schedule: those of its requests, and those that are kept after their requests have ended, so that
 * a prompt which begins like one of them is only evaluated from there on. Kept ones are idle; they are freed, the least
 * recently used first, when sequences or pages are short. Used by the thread that runs the session. */
#ifndef PD_ENGINE_PREFIX_H
#define PD_ENGINE_PREFIX_H

#include "engine/request.h"

enum { PD_PREFIX_WORTH = 16 };   /* tokens: shorter prefixes are not worth a fork */

struct pd_prefix_cache {
    struct pd_session *s;
    struct pd_prefix {
        struct pd_sequence *sequence;  /* NULL: there is none here */
        struct pd_request *request;    /* NULL: it is kept */
        uint32_t n_before;             /* tokens that were kept when the request took it */
        double used_s;
    } at[PD_MAX_SEQUENCES];
};

/* Gives the request a sequence with the longest prefix of its tokens that was to be had, of `most` at most: a kept one
 * that goes on, a fork of another, or a new one. PERIDOT_ERROR_ARGUMENT: there is none now. */
peridot_status pd_prefix_take(struct pd_prefix_cache *c, struct pd_request *r, size_t most);

enum pd_prefix_keep {
    PD_KEEP_NONE,
    PD_KEEP_BEFORE,            /* what was kept before the request took it */
    PD_KEEP_ALL
};
/* Takes the request's sequence from it, and keeps it so far if that is worth it. */
void pd_prefix_release(struct pd_prefix_cache *c, struct pd_request *r, enum pd_prefix_keep keep);

/* Frees kept sequences until so many positions are free. False: there are not as many. */
bool pd_prefix_make_room(struct pd_prefix_cache *c, uint64_t n_positions);
/* Frees a kept sequence where the session has all that it can have. */
void pd_prefix_make_sequence(struct pd_prefix_cache *c);
/* Numbers of sequences that are kept, and that requests have. */
uint32_t pd_prefix_n_kept(const struct pd_prefix_cache *c);
uint32_t pd_prefix_n_taken(const struct pd_prefix_cache *c);

#endif
