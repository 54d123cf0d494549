/* Pictures at URLs, for those hosts that --allow-url names: what a request asks for is fetched with this machine's
 * rights, so that nothing else is. */
#ifndef PERIDOT_COMMAND_SERVE_FETCH_H
#define PERIDOT_COMMAND_SERVE_FETCH_H

#include "server.h"

/* The file at the URL, of `max` bytes at most; false: the job's error says why not, beginning with `name`. It ends when
 * nobody waits for the job any more. */
bool serve_fetch(struct serve_buffer *out, struct serve_job *job, const char *name, const char *url, size_t max);

#endif
