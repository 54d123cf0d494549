/* The lines of standard input as they come: what is there can be told from what must be waited for, so that a command
 * may work on many lines at once and yet answer at once where someone types them, or writes one when the last is
 * answered. */
#ifndef PERIDOT_COMMAND_LINES_H
#define PERIDOT_COMMAND_LINES_H

#include "util.h"

/* {0} is the beginning; `data` is freed by the owner. */
struct cmd_lines {
    char *data;
    size_t capacity, begin, seen, end;   /* of data: the line begins; no newline before; read so far */
    bool ended;
};

enum cmd_lines_state {
    CMD_LINES_ONE,     /* here is a line */
    CMD_LINES_WAIT,    /* none for now */
    CMD_LINES_END
};

/* The next line, without its newline, borrowed until the next call; the last one needs none. Lines end at \n alone: a
 * \r before it is part of the text. With `wait` false it gives CMD_LINES_WAIT rather than wait for input. An interrupt
 * ends the waiting as PERIDOT_CANCELLED. */
peridot_status cmd_lines_next(enum cmd_lines_state *state, const char **text, size_t *size, struct cmd_lines *lines,
                              bool wait);

#endif
