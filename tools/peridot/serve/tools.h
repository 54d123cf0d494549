/* The tools of --tools, which the page lets a model call. A tool may take long, so calls have threads of their own:
 * neither HTTP nor replies wait for them. Calls at one server come one after another, others run at the same time. A
 * call ends early when its connection is closed, or the server ends. */
#ifndef PERIDOT_COMMAND_SERVE_TOOLS_H
#define PERIDOT_COMMAND_SERVE_TOOLS_H

#include "server.h"

enum { SERVE_CALL_MAX = 1 << 20 };   /* bytes of a request */

/* With the toolbox of the server. */
peridot_status serve_tools_create(struct serve_tools **out, struct serve_server *server);
/* Ends the calls, with status 503. NULL is allowed, here and below. */
void serve_tools_stop(struct serve_tools *tools);
void serve_tools_free(struct serve_tools *tools);

/* Takes over an ownership of a job whose interface is of the kind SERVE_TOOLS; false: it does not, and the job's error
 * says why. */
bool serve_tools_add(struct serve_tools *tools, struct serve_job *job);
/* Whether a call is to end early; asked by its thread. */
bool serve_tools_ends(const struct serve_tools *tools, struct serve_job *job);

/* Their interfaces. */
extern const struct serve_interface serve_wire_list_tools, serve_wire_call_tool;

#endif
