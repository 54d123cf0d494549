/* What ends a call early: an interrupt of the command, and whatever else its caller asks about. */
#ifndef PERIDOT_COMMAND_TOOLBOX_STOP_H
#define PERIDOT_COMMAND_TOOLBOX_STOP_H

#include "../terminal.h"

/* Asked about ten times a second, by the thread of the call. */
struct toolbox_stop {
    bool (*is_wanted)(void *user);
    void *user;
};

/* `stop` may be NULL. */
static inline bool toolbox_is_stopped(const struct toolbox_stop *stop)
{
    return cmd_interrupted() || (stop && stop->is_wanted(stop->user));
}

#endif
