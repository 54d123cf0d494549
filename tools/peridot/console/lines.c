/* The lines of standard input as they come: what is there can be told from what must be waited for, so that a command
 * may work on many lines at once and yet answer at once where someone types them, or writes one when the last is
 * answered. */
#include "console.h"
#include "../base/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { READ_SIZE = 1 << 16 };

/* Makes room for READ_SIZE bytes after what is there. */
static peridot_status make_room(struct cmd_lines *l)
{
    if (l->begin) memmove(l->data, l->data + l->begin, l->end - l->begin);
    l->end -= l->begin;
    l->seen -= l->begin;
    l->begin = 0;
    return pd_array_reserve(&l->data, &l->capacity, l->end, READ_SIZE, 1, "line");
}

static peridot_status lines_read_some(struct cmd_lines *l)
{
    PD_TRY(make_room(l));
    ptrdiff_t size = cmd_input_read(l->data + l->end, READ_SIZE);
    if (cmd_interrupted()) return pd_fail(PERIDOT_CANCELLED, "stopped");
    if (size < 0 && errno != EINTR) return pd_fail(PERIDOT_ERROR_IO, "standard input: %s", strerror(errno));
    if (size > 0) l->end += (size_t)size;
    l->ended = size == 0;
    return PERIDOT_OK;
}

peridot_status cmd_lines_next(enum cmd_lines_state *state, const char **text, size_t *size, struct cmd_lines *l,
                              bool wait)
{
    for (;;) {
        const char *newline = l->seen < l->end ? memchr(l->data + l->seen, '\n', l->end - l->seen) : NULL;
        size_t end = newline ? (size_t)(newline - l->data) : l->end;
        *state = newline || (l->ended && l->begin < l->end) ? CMD_LINES_ONE : l->ended ? CMD_LINES_END : CMD_LINES_WAIT;
        *text = l->data ? l->data + l->begin : "";
        *size = end - l->begin;
        l->seen = newline ? end + 1 : end;
        if (*state == CMD_LINES_ONE) l->begin = l->seen;
        if (*state != CMD_LINES_WAIT || (!wait && !cmd_input_is_ready())) return PERIDOT_OK;
        if (*size > CMD_TEXT_MAX)
            return pd_fail(PERIDOT_ERROR_IO, "standard input: a line of more than the %d MiB that are read",
                           CMD_TEXT_MAX >> 20);
        PD_TRY(lines_read_some(l));
    }
}
