/* A device that has memory and executes nothing: for harnesses and sanitizers that have no use for a driver. */
#ifndef NULL_DEVICE_H
#define NULL_DEVICE_H

#include "gpu/gpu_.h"

enum { NULL_DEVICE_MEMORY = 128 << 20 };

void null_device_open(struct pd_gpu *out);
/* Ends the process where memory is left. */
void null_device_close(struct pd_gpu *gpu);

#endif
