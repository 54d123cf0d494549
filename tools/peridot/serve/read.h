/* The reader: threads that make tasks of bodies, so that neither connections nor the device wait for JSON and
 * tokenizing. Bodies go by turns (fair.h), and long ones leave threads to others. It answers what needs no device, and
 * hands pictures and schemas to threads of their own (pictures.h, grammars.h). */
#ifndef PERIDOT_COMMAND_SERVE_READ_H
#define PERIDOT_COMMAND_SERVE_READ_H

#include "server.h"

peridot_status serve_reader_create(struct serve_reader **out, struct serve_server *server);
/* Refuses what is still waiting. NULL is allowed. */
void serve_reader_free(struct serve_reader *reader);
/* Takes over an ownership of the job, whose body is complete; false: too many wait already. */
bool serve_reader_add(struct serve_reader *reader, struct serve_job *job);
/* The same for a job that waited for its model to be loaded, for which there is always room. */
void serve_reader_return(struct serve_reader *reader, struct serve_job *job);

/* Makes the tasks of a job from its body, or puts the answer into `out` where no device is needed for it. False: the
 * job's error says why. */
bool serve_read_body(struct serve_buffer *out, struct serve_job *job, const peridot_vocab *vocab);

/* The one table of interfaces. */
const struct serve_interface *serve_interface_get(enum serve_api id);

#endif
