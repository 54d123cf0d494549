/* Tools that are programs: the arguments are one JSON object on standard input, the result is standard output. */
#ifndef PERIDOT_COMMAND_TOOLBOX_PROGRAM_H
#define PERIDOT_COMMAND_TOOLBOX_PROGRAM_H

#include "bytes.h"
#include "config.h"
#include "stop.h"

/* Adds the result, or why there is none after "error: ". PERIDOT_CANCELLED: it was stopped (stop may be NULL). */
peridot_status program_call(struct toolbox_bytes *result, const struct toolbox_entry *entry, const char *arguments,
                            const struct toolbox_stop *stop);

#endif
