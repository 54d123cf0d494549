/* The pages of Ollama's interface: what GET answers, as in pages.h. */
#ifndef PERIDOT_COMMAND_SERVE_WIRE_OLLAMA_MODELS_H
#define PERIDOT_COMMAND_SERVE_WIRE_OLLAMA_MODELS_H

#include "server.h"

int serve_get_tags(struct serve_buffer *out, struct serve_server *server, const char *path);
int serve_get_ps(struct serve_buffer *out, struct serve_server *server, const char *path);
int serve_get_version(struct serve_buffer *out, struct serve_server *server, const char *path);
/* Whatever would change which models there are. */
int serve_refuse_models(struct serve_buffer *out, struct serve_server *server, const char *path);

#endif
