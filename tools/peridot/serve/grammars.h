/* The grammars of requests. A schema may take half a second to compile, so that is done on threads of its own: neither
 * the reader nor the engine waits for it. How long one takes is not to be seen in its text. So each is tried with a
 * little of the work that it may take, which is enough for most; those that need more wait for each other, and leave a
 * thread to tries. In both lines it goes by turns (fair.h). Clients send the same schema again and again: the last ones
 * are kept, those that were refused as well. */
#ifndef PERIDOT_COMMAND_SERVE_GRAMMARS_H
#define PERIDOT_COMMAND_SERVE_GRAMMARS_H

#include "server.h"

struct serve_grammars;

/* Hands a job on, which has its grammar now, or an error; on one of the threads. */
typedef void (*serve_grammar_done)(void *user, struct serve_job *job);

peridot_status serve_grammars_create(struct serve_grammars **out, serve_grammar_done done, void *user);
/* What still waits gets an error. NULL is allowed. */
void serve_grammars_free(struct serve_grammars *grammars);
/* True: the job has its grammar, or an error, or needs none. False: `done` will get it. Its vocab is set. */
bool serve_grammars_find(struct serve_grammars *grammars, struct serve_job *job);

#endif
