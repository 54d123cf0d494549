/* Tools that are programs: the arguments are one JSON object on standard input, the result is standard output. */
#ifndef PERIDOT_COMMAND_TOOLBOX_PROGRAM_H
#define PERIDOT_COMMAND_TOOLBOX_PROGRAM_H

#include "bytes.h"
#include "config.h"

/* Adds the result, or why there is none after "error: ". */
peridot_status program_call(struct toolbox_bytes *result, const struct toolbox_entry *entry, const char *arguments);

#endif
