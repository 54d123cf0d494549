/* Bytes that grow at their end, with a zero byte behind them. */
#ifndef PERIDOT_COMMAND_TOOLBOX_BYTES_H
#define PERIDOT_COMMAND_TOOLBOX_BYTES_H

#include "../util.h"

/* {0} is the beginning; data is NULL until something was added, if only nothing. */
struct toolbox_bytes {
    char *data;
    size_t size, capacity;
};

peridot_status toolbox_bytes_add(struct toolbox_bytes *b, const void *data, size_t size);
peridot_status toolbox_bytes_print(struct toolbox_bytes *b, const char *format, ...) CMD_PRINTF(2, 3);
/* Takes away the first bytes. */
void toolbox_bytes_drop(struct toolbox_bytes *b, size_t size);
void toolbox_bytes_free(struct toolbox_bytes *b);

#endif
