/* The connections of peridot serve, from accept to close. A client that does not send its request in time loses its
 * connection. When there are nearly as many connections as the server can hold, the one that has been idle longest
 * gives way to a new one, whatever its address (behind a proxy all have the same); one that waits for its answer is not
 * idle. All functions can be called by any thread. */
#ifndef PERIDOT_COMMAND_SERVE_LINKS_H
#define PERIDOT_COMMAND_SERVE_LINKS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { SERVE_MAX_CONNECTIONS = 1000 };

struct serve_link;

struct serve_links {
    pthread_mutex_t lock;
    struct serve_link *first;
    uint32_t n_open;           /* those that were not told to end */
};

void serve_links_init(struct serve_links *links);
void serve_links_destroy(struct serve_links *links);

/* A connection was accepted. NULL where memory is short: then nobody ends it early. */
struct serve_link *serve_links_add(struct serve_links *links, int socket);
/* It is closed. */
void serve_links_remove(struct serve_links *links, struct serve_link *link);
/* Whether the client waits for an answer; else it has to send a request. `link` may be NULL. */
void serve_links_set_waiting(struct serve_links *links, struct serve_link *link, bool waits);
/* Ends the connections whose clients have owed a request for so long. Called every now and then. */
void serve_links_tend(struct serve_links *links, double timeout_s);

#endif
