/* HTTP, and the command itself: connections, who may ask, and what GET answers. */
#ifndef PERIDOT_COMMAND_SERVE_HTTP_HTTP_H
#define PERIDOT_COMMAND_SERVE_HTTP_HTTP_H

#include "../job/job.h"

/* ---- http ---- */

/* HTTP of peridot serve, by libmicrohttpd: routes, keys, bodies, and answers as they come. One thread, which waits for
 * nobody: what takes time is a job of the reader and the engine. */

/* Begins to listen. */
peridot_status serve_http_open(struct serve_http **out, struct serve_server *server);
unsigned serve_http_port(const struct serve_http *http);
/* Ends connections that are idle or send too slowly. Called every now and then. */
void serve_http_tend(struct serve_http *http);
/* Every job must have ended. NULL is allowed. */
void serve_http_close(struct serve_http *http);

/* ---- access ---- */

/* Who may ask: those who have a key; without keys those who ask this machine by its own names; and which web pages, as
 * browsers say whose request it is. */

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

/* ---- pages ---- */

/* What GET answers: the page, the state, the models, the description of the interface. */

enum { SERVE_POLICY_SIZE = 512 };

/* Content-Security-Policy of the page: its own style and script, by their hashes, and nothing from elsewhere. */
const char *serve_page_policy(char out[SERVE_POLICY_SIZE]);

/* Each writes the body and gives the status. None waits for the engine. */
int serve_get_page(struct serve_buffer *out, struct serve_server *server, const char *path);
int serve_get_health(struct serve_buffer *out, struct serve_server *server, const char *path);
int serve_get_openapi(struct serve_buffer *out, struct serve_server *server, const char *path);
int serve_get_metrics(struct serve_buffer *out, struct serve_server *server, const char *path);
int serve_get_models(struct serve_buffer *out, struct serve_server *server, const char *path);
int serve_get_model(struct serve_buffer *out, struct serve_server *server, const char *path);

#endif
