/* What the server says of a model, copied from it. */
#ifndef PERIDOT_COMMAND_SERVE_FACTS_H
#define PERIDOT_COMMAND_SERVE_FACTS_H

#include "server.h"

/* Also chooses the template of conversations; sets `misused` where --think asks for what that lacks. */
peridot_status serve_facts_read(struct serve_server *server, struct serve_model *served, const peridot_model *model);
void serve_facts_free(struct serve_model *served);

#endif
