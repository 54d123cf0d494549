/* What GET answers: the page, the state, the models, the description of the interface. */
#ifndef PERIDOT_COMMAND_SERVE_PAGES_H
#define PERIDOT_COMMAND_SERVE_PAGES_H

#include "server.h"

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
