/* What GET answers as llama.cpp's server does. */
#ifndef PERIDOT_COMMAND_SERVE_WIRE_LLAMA_H
#define PERIDOT_COMMAND_SERVE_WIRE_LLAMA_H

#include "server.h"

/* See pages.h. */
int serve_get_props(struct serve_buffer *out, struct serve_server *server, const char *path);
int serve_get_slots(struct serve_buffer *out, struct serve_server *server, const char *path);

#endif
