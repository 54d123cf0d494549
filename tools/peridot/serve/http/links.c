/* The connections of peridot serve, from accept to close. A client that does not send its request in time loses its
 * connection. When there are nearly as many connections as the server can hold, the one that has been idle longest
 * gives way to a new one, whatever its address (behind a proxy all have the same); one that waits for its answer is not
 * idle. All functions can be called by any thread. */
#include "http_.h"
#include "../../base/base.h"

#include <stdlib.h>

enum { CROWD = SERVE_MAX_CONNECTIONS * 9 / 10 };   /* the rest is for those that were ended and are not closed yet */

struct serve_link {
    struct serve_link *next, *previous;
    int socket;
    double since_s;            /* when the client's turn began */
    bool waits;                /* for an answer, or is being sent it */
    bool ended;
};

void serve_links_init(struct serve_links *links)
{
    *links = (struct serve_links){0};
    pthread_mutex_init(&links->lock, NULL);
}

void serve_links_destroy(struct serve_links *links) { pthread_mutex_destroy(&links->lock); }

static void links_end(struct serve_links *links, struct serve_link *link)
{
    cmd_socket_end(link->socket);
    link->ended = true;
    links->n_open--;
}

/* The one that has been idle longest goes. */
static void make_room(struct serve_links *links)
{
    struct serve_link *oldest = NULL;
    for (struct serve_link *link = links->first; link; link = link->next)
        if (!link->waits && !link->ended && (!oldest || link->since_s < oldest->since_s)) oldest = link;
    if (oldest) links_end(links, oldest);
}

struct serve_link *serve_links_add(struct serve_links *links, int socket)
{
    struct serve_link *link = calloc(1, sizeof *link);
    if (!link) return NULL;
    pthread_mutex_lock(&links->lock);
    if (links->n_open >= CROWD) make_room(links);
    *link = (struct serve_link){.next = links->first, .socket = socket, .since_s = pd_now()};
    if (link->next) link->next->previous = link;
    links->first = link;
    links->n_open++;
    pthread_mutex_unlock(&links->lock);
    return link;
}

void serve_links_remove(struct serve_links *links, struct serve_link *link)
{
    if (!link) return;
    pthread_mutex_lock(&links->lock);
    if (link->next) link->next->previous = link->previous;
    if (link->previous) link->previous->next = link->next;
    else links->first = link->next;
    if (!link->ended) links->n_open--;
    pthread_mutex_unlock(&links->lock);
    free(link);
}

void serve_links_set_waiting(struct serve_links *links, struct serve_link *link, bool waits)
{
    if (!link) return;
    pthread_mutex_lock(&links->lock);
    link->waits = waits;
    link->since_s = pd_now();
    pthread_mutex_unlock(&links->lock);
}

void serve_links_tend(struct serve_links *links, double timeout_s)
{
    double now = pd_now();
    pthread_mutex_lock(&links->lock);
    for (struct serve_link *link = links->first; link; link = link->next)
        if (!link->waits && !link->ended && now - link->since_s > timeout_s) links_end(links, link);
    pthread_mutex_unlock(&links->lock);
}
