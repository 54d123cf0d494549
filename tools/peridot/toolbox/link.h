/* The way to an MCP server, over which JSON-RPC messages go: its standard streams (link_stdio.c), or Streamable HTTP
 * (link_http.c). What the messages say is mcp.c's; a link knows of them what HTTP's headers repeat. Sentences about
 * failures go on after "server NAME: ". */
#ifndef PERIDOT_COMMAND_TOOLBOX_LINK_H
#define PERIDOT_COMMAND_TOOLBOX_LINK_H

#include "bytes.h"
#include "config.h"
#include "stop.h"

enum { LINK_MAX_MESSAGE = 8 << 20 };   /* of the server, in bytes */

struct link_message {
    const char *text;            /* one line of JSON */
    size_t size;
    const char *version;         /* of the protocol; NULL: not agreed yet */
    const struct toolbox_texts *headers;   /* more of HTTP's; NULL: none */
};

struct link_receiver {
    /* Takes a message. Where it is the one that was waited for, `done` is true afterwards. */
    peridot_status (*take)(struct link_receiver *r, const char *text, size_t size);
    bool done;
    const struct toolbox_stop *stop;   /* may be NULL */
    struct toolbox_bytes replies;   /* lines: messages that `take` wants to be sent back; the link empties it */
};

struct link {
    const struct link_kind *kind;
    bool is_lost;                /* the server has ended, or forgotten the session: connect anew */
    bool sends_headers;
    long http_status;            /* of the last exchange; 0: none */
};

struct link_kind {
    peridot_status (*open)(struct link **out, const struct toolbox_entry *entry);
    /* Sends a message and waits for the receiver to be done: until `deadline` (cmd_now), or a stop, which is
     * PERIDOT_CANCELLED. */
    peridot_status (*request)(struct link *l, const struct link_message *m, struct link_receiver *r, double deadline);
    /* Sends a message that has no response, without waiting for long, also after a stop. */
    void (*notify)(struct link *l, const struct link_message *m);
    /* Takes the messages that have come unasked, and sees whether the server has ended. */
    peridot_status (*poll)(struct link *l, struct link_receiver *r);
    void (*close)(struct link *l);
};

extern const struct link_kind link_stdio, link_http;

#endif
