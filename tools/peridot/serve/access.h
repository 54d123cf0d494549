/* Who may ask: those who have a key; without keys those who ask this machine by its own names; and which web pages, as
 * browsers say whose request it is. */
#ifndef PERIDOT_COMMAND_SERVE_ACCESS_H
#define PERIDOT_COMMAND_SERVE_ACCESS_H

#include "server.h"

enum serve_right {
    SERVE_PUBLIC,
    SERVE_WITH_KEY,
    SERVE_OWN_PAGE             /* with a key, and only the page of this server: what runs programs */
};

/* Headers of a request; NULL: it does not have it. */
struct serve_asker {
    const char *host, *origin, *authorization, *api_key;   /* api_key: of x-api-key, Anthropic's clients have it */
};

/* False: the error says why not. */
bool serve_may_ask(struct serve_error *error, const struct serve_server *server, const struct serve_asker *asker,
                   enum serve_right right);
/* Which of the server's keys it has, from 1 on; 0: none. */
uint32_t serve_key_number(const struct serve_server *server, const struct serve_asker *asker);

#endif
