/* Whose turn it is where jobs wait: for the reader, for a picture, for a grammar, for the device. First come, first
 * served would let one client with a hundred long jobs keep all others out. So the next job is one of the client whose
 * jobs were taken least often of late; of several of a client it is, by turns, the one that costs least and the one
 * that has waited longest: a short one passes long ones, and none waits for ever. That alone helps where all have the
 * same address, as behind a proxy. */
#ifndef PERIDOT_COMMAND_SERVE_FAIR_H
#define PERIDOT_COMMAND_SERVE_FAIR_H

#include <stdbool.h>
#include <stdint.h>

struct serve_job;

/* Who asks: the address (of IPv6 its first half, which one household has) and the number of the API key; {0}: not
 * known. */
struct serve_client {
    uint64_t address;
    uint32_t key;
};

bool serve_client_is(const struct serve_client *a, const struct serve_client *b);

enum { SERVE_FAIR_MEMORY = 16 };

/* Under the lock of whoever has the jobs. */
struct serve_fair {
    struct serve_client last[SERVE_FAIR_MEMORY];   /* [n_taken], and from then on a ring: whose jobs were taken */
    uint64_t n_taken;
};

#define SERVE_FAIR_NEVER UINT64_MAX    /* the cost of what cannot be taken now */

/* What comes next: the begin of a choice, and one offer of each that waits, the oldest first. */
struct serve_fair_choice {
    const struct serve_fair *fair;
    bool cheapest;             /* of a client's; else the oldest */
    void *best;                /* NULL: none */
    unsigned taken;            /* turns that its client had */
    uint64_t cost;
};

struct serve_fair_choice serve_fair_begin(const struct serve_fair *fair);
void serve_fair_offer(struct serve_fair_choice *choice, void *what, const struct serve_client *client, uint64_t cost);
/* A turn of the client's begins. */
void serve_fair_take(struct serve_fair *fair, const struct serve_client *client);

/* The same for a list by job->next, to whose end jobs are added: takes one out; NULL: there is none that can be taken
 * now. */
struct serve_job *serve_fair_next(struct serve_fair *fair, struct serve_job **list,
                                  uint64_t (*cost)(const struct serve_job *job, const void *user), const void *user);
void serve_fair_add(struct serve_job **list, struct serve_job *job);

#endif
