/* What the server says of its model. It is copied once, as the model may be gone for a while when it is asked for: when
 * a device is lost, the same one is opened again. */
#ifndef PERIDOT_COMMAND_SERVE_FACTS_H
#define PERIDOT_COMMAND_SERVE_FACTS_H

#include "server.h"

/* Also chooses the template of conversations; sets `misused` where --think asks for what that lacks. */
peridot_status serve_facts_read(struct serve_server *server, const peridot_model *model);
void serve_facts_free(struct serve_server *server);

#endif
