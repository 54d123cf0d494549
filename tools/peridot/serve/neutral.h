/* Parameters that other servers have and whose values change no answer here: a table of their names, of the interfaces
 * that have them, and of the values that are accepted. */
#ifndef PERIDOT_COMMAND_SERVE_NEUTRAL_H
#define PERIDOT_COMMAND_SERVE_NEUTRAL_H

#include "job.h"

/* Whether an interface of the set has such a parameter. */
bool serve_is_neutral(unsigned apis, const char *name);
/* Accepts its value, or says which ones are. null is always accepted. */
bool serve_neutral_read(struct serve_job *job, unsigned apis, const char *name, yyjson_val *value);

#endif
