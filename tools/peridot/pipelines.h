/* The second half of `peridot devices`: what a device's compiler makes of the kernels. */
#ifndef PERIDOT_COMMAND_PIPELINES_H
#define PERIDOT_COMMAND_PIPELINES_H

#include "command.h"

/* device NULL: PERIDOT_DEVICE, or else the library's choice. */
peridot_status cmd_pipelines_print(const char *device, bool json, bool assembly);

#endif
