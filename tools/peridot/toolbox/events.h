/* Server-sent events, as HTML's standard says (section 9.2.6): of each event its data. */
#ifndef PERIDOT_COMMAND_TOOLBOX_EVENTS_H
#define PERIDOT_COMMAND_TOOLBOX_EVENTS_H

#include "bytes.h"

/* {0} is the beginning. */
struct events {
    struct toolbox_bytes line;   /* whose end is yet to come */
    struct toolbox_bytes data;   /* of the event, so far */
    bool after_return;           /* a \n that follows is no line of its own */
};

typedef peridot_status (*events_take)(void *user, const char *data, size_t size);

/* Takes a part of a stream. A failure where an event has more than `most` bytes. */
peridot_status events_feed(struct events *e, const char *text, size_t size, size_t most, events_take take, void *user);
void events_free(struct events *e);

#endif
