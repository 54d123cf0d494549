/* HTTP, and the command itself: connections, who may ask, and what GET answers. */
#ifndef PERIDOT_COMMAND_SERVE_HTTP_HTTP_H
#define PERIDOT_COMMAND_SERVE_HTTP_HTTP_H

#include "../job/job.h"

/* ---- http ---- */

/* Begins to listen, but for a socket that was handed over: whose request started the server waits there */
peridot_status serve_http_open(struct serve_http **out, struct serve_server *server);
/* until it can be answered. */
peridot_status serve_http_ready(struct serve_http *http);
/* Where it listens, as a URL has it; valid as long as the server. */
const char *serve_http_host(const struct serve_http *http);
unsigned serve_http_port(const struct serve_http *http);
/* Ends connections that are idle or send too slowly. Called every now and then. */
void serve_http_tend(struct serve_http *http);
/* Every job must have ended. NULL is allowed. */
void serve_http_close(struct serve_http *http);

#endif
