/* Connections, who may ask, and what GET answers. */
#ifndef PERIDOT_COMMAND_SERVE_HTTP_HTTP_PRIVATE_H
#define PERIDOT_COMMAND_SERVE_HTTP_HTTP_PRIVATE_H

#include "http.h"

/* ---- links ---- */

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

/* ---- access ---- */

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

/* ---- service ---- */

/* Shows the units of systemd that start this server, and writes them where that is agreed to. */
peridot_status serve_service_install(const struct serve_args *args);

/* ---- pages ---- */

enum { SERVE_POLICY_SIZE = 512 };

/* Content-Security-Policy of the page: its own style and script, by their hashes, and nothing from elsewhere. */
const char *serve_page_policy(char out[SERVE_POLICY_SIZE]);

/* Each writes the body and gives the status. None waits for the engine. */
int serve_get_page(struct pd_buffer *out, struct serve_server *server, const char *path);
int serve_get_health(struct pd_buffer *out, struct serve_server *server, const char *path);
int serve_get_openapi(struct pd_buffer *out, struct serve_server *server, const char *path);
int serve_get_metrics(struct pd_buffer *out, struct serve_server *server, const char *path);
int serve_get_models(struct pd_buffer *out, struct serve_server *server, const char *path);
int serve_get_model(struct pd_buffer *out, struct serve_server *server, const char *path);

#endif
