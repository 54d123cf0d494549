/* Why Vulkan shows no GPU on a machine that has one. */
#ifndef PERIDOT_COMMAND_DRIVER_H
#define PERIDOT_COMMAND_DRIVER_H

/* A sentence, without a full stop, on the GPU that Linux lists and what would let Vulkan use it; NULL: it lists none of
 * a maker whose drivers are known. For when Vulkan found no GPU. Borrowed until the next call. */
const char *cmd_driver_advice(void);

#endif
