/* What tools are made of. */
#ifndef PERIDOT_COMMAND_TOOLBOX_TOOLBOX_PRIVATE_H
#define PERIDOT_COMMAND_TOOLBOX_TOOLBOX_PRIVATE_H

#include "../base/base.h"
#include "toolbox.h"

#include <yyjson.h>

/* ---- config ---- */

#define TOOLBOX_TIMEOUT 30.0
enum { TOOLBOX_MAX_OUTPUT = 64 << 10 };

/* {0}: none. at[n] is NULL, once there is one. */
struct toolbox_texts {
    char **at;
    size_t n, capacity;
};

struct toolbox_entry {
    char *name;
    bool is_server;
    char *url;                         /* of a server; NULL: it is a program that speaks on its standard streams */
    struct toolbox_texts command;      /* the program and its arguments */
    struct toolbox_texts env;          /* "NAME=VALUE", beside what is inherited */
    char *cwd;                         /* NULL: inherited */
    struct toolbox_texts headers;      /* "Name: value", of a URL */
    char *description, *parameters;    /* of a tool that is a program; the latter is JSON text */
    double timeout_s;
    size_t max_output;
    bool allows_all;
    struct toolbox_texts allow;        /* tools of a server that are allowed */
};

/* {0} is the beginning. */
struct toolbox_config {
    struct toolbox_entry *entries;
    size_t n, capacity;
};

/* Appends what a file names, or the server at a URL. */
peridot_status toolbox_config_add(struct toolbox_config *c, const char *source);
void toolbox_config_free(struct toolbox_config *c);

/* Appends a copy of a text. */
peridot_status toolbox_texts_add(struct toolbox_texts *t, const char *text);
bool toolbox_texts_have(const struct toolbox_texts *t, const char *text);
void toolbox_texts_free(struct toolbox_texts *t);

/* ---- mcp content ---- */

/* Adds the texts of a CallToolResult; without any its structuredContent. What is not text is named in brackets;
 * images are also added to `images`, as "data:TYPE;base64,...", unless that is NULL. */
peridot_status mcp_add_content(struct pd_buffer *out, struct toolbox_texts *images, yyjson_val *result);

/* ---- mcp ---- */

struct mcp;

/* Starts a server, if it is a program, without waiting for it: several start at the same time. The entry is borrowed.
 * *out is NULL on failure. */
peridot_status mcp_open(struct mcp **out, const struct toolbox_entry *entry);
/* Ends it, if it is a program. NULL is allowed. */
void mcp_close(struct mcp *m);

/* A tool as the server has it; texts are borrowed until mcp_take_tool returns. */
struct mcp_tool {
    const char *name, *description;   /* the latter NULL: none */
    const char *parameters;           /* the JSON Schema of an object */
};
typedef peridot_status (*mcp_take_tool)(void *user, const struct mcp_tool *tool);
/* Hands out the server's tools; at first, agrees with it on a version. */
peridot_status mcp_list(struct mcp *m, mcp_take_tool take, void *user);
/* The server has said since that its tools are others now; or may have done so, with nobody listening. */
peridot_status mcp_has_changed(bool *changed, struct mcp *m);

/* The tool of that name, with arguments that are a JSON object; connects anew where the server has ended. What goes
 * wrong at the server is a failure; what the tool itself reports a result that begins with "error: ".
 * PERIDOT_CANCELLED: it was stopped (stop may be NULL). */
struct toolbox_result {
    struct pd_buffer text;
    struct toolbox_texts *images;   /* as URLs; NULL: they are not wanted */
};
peridot_status mcp_call(struct toolbox_result *result, struct mcp *m, const struct mcp_tool *tool,
                        yyjson_val *arguments, const struct toolbox_stop *stop);

/* ---- mcp headers ---- */

/* Headers of HTTP that repeat what a call says, since revision 2026-07-28: Mcp-Name, and Mcp-Param-NAME for parameters
 * whose schema has "x-mcp-header": NAME. */

/* Why a tool with this schema (NULL: none) must not be offered; NULL: it may. */
const char *mcp_headers_check(yyjson_val *schema);
/* Adds the headers of a call. */
peridot_status mcp_headers_make(struct toolbox_texts *out, const struct mcp_tool *tool, yyjson_val *arguments);

/* ---- names ---- */

/* Names of tools, as the formats of models need them, and what a source of tools looks like. */

enum { TOOLBOX_NAME_SIZE = 65 };   /* with its end */

#define TOOLBOX_NO_PARAMETERS "{\"type\":\"object\",\"properties\":{}}"

/* 1 to 64 of A-Z a-z 0-9 _ -. */
bool toolbox_is_name(const char *text);
/* A name made of "PREFIX_TEXT", or of a text alone (prefix NULL): other characters become _, and what is too long is
 * cut. */
void toolbox_make_name(char out[TOOLBOX_NAME_SIZE], const char *prefix, const char *text);
/* Begins with http:// or https://. */
bool toolbox_is_url(const char *text);

/* ---- result ---- */

/* Adds a text of a tool, without white space at its end. Bytes that are no UTF-8, and zero bytes, become U+FFFD. */
peridot_status result_add_text(struct pd_buffer *out, const char *text, size_t size);
/* Cuts a result that is longer than `most` bytes; n_more bytes were left out already. A note at its end says so. */
peridot_status result_cut(struct pd_buffer *out, size_t most, size_t n_more);

/* ---- expand ---- */

/* Variables of the environment in texts of files, so that keys need not stand in them. */

/* A copy of a text, where ${NAME}, ${env:NAME} and ${NAME:-DEFAULT} are what the environment has. PERIDOT_ERROR_FORMAT,
 * with the end of a sentence in `why`: what else stands in braces, or is not set and has no default. */
peridot_status toolbox_expand(char **out, const char *text, char *why, size_t why_size);

/* ---- program ---- */

/* Adds the result, or why there is none after "error: ". PERIDOT_CANCELLED: it was stopped (stop may be NULL). */
peridot_status program_call(struct pd_buffer *result, const struct toolbox_entry *entry, const char *arguments,
                            const struct toolbox_stop *stop);

/* ---- process ---- */

struct process_params {
    const char *const *command;   /* the program, sought in PATH, and its arguments; NULL at the end */
    const char *const *env;       /* "NAME=VALUE", beside what is inherited; NULL at the end, or NULL */
    const char *cwd;              /* NULL: this one's */
    size_t max_output;            /* what it writes beyond that, and nobody has taken out, is dropped */
};

enum { PROCESS_ERRORS = 4096 };

/* {0}: none. */
struct process {
    struct pd_buffer output;  /* of standard output */
    size_t n_dropped;
    char errors[PROCESS_ERRORS];  /* [n_errors]: how standard error ended */
    size_t n_errors;
    size_t n_read;                /* bytes of both, as they came */
    bool output_has_ended, has_ended;   /* standard output is closed; standard error as well */

    struct pd_buffer input;   /* of standard input, yet to be read by it */

    /* private */
    int pid, in, out, err;        /* pid 0: none; streams -1: closed */
    void *program, *job, *streams[3];   /* the same on Windows: handles, NULL: closed */
    char mark[48];                /* in the environment of all that it starts */
    unsigned long long begun;     /* when it began, as the system counts that */
    struct process *next;         /* of those that run */
    bool ends_input;
    size_t max_output;
};

/* PERIDOT_ERROR_IO where the program cannot be started. */
peridot_status process_start(struct process *p, const struct process_params *params);
/* Has `size` bytes written to its standard input, as far as it reads them. */
peridot_status process_write(struct process *p, const void *data, size_t size);
/* Closes its standard input when all is written. */
void process_end_input(struct process *p);
/* Writes and reads what can be, and waits for that for at most `seconds`, or until a signal comes. */
peridot_status process_step(struct process *p, double seconds);
/* It runs no longer. */
bool process_has_exited(const struct process *p);
/* Once it has exited: ends all that it started, which may have left its group. What that wrote can still be read. */
void process_end_rest(struct process *p);
/* Closes the streams, waits for at most `seconds` until it exits, and then ends it and its group, first with a signal
 * that it may handle, and all else that it started. `how` (may be NULL) is "" for success, else "ended with status 3"
 * or the like. What it wrote stays: the output is freed by the caller. */
void process_close(struct process *p, double seconds, char how[64]);

/* For process.c and process_windows.c: adds to the output what there is room for, and to `errors`, which lose what came
 * first. */
peridot_status process_keep_output(struct process *p, const char *data, size_t size);
peridot_status process_keep_errors(struct process *p, const char *data, size_t size);

/* ---- link ---- */

/* The way to an MCP server, over which JSON-RPC messages go: its standard streams (link_stdio.c), or Streamable HTTP
 * (link_http.c). What the messages say is mcp.c's; a link knows of them what HTTP's headers repeat. Sentences about
 * failures go on after "server NAME: ". */

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
    struct pd_buffer replies;   /* lines: messages that `take` wants to be sent back; the link empties it */
};

struct link {
    const struct link_kind *kind;
    bool is_lost;                /* the server has ended, or forgotten the session: connect anew */
    bool sends_headers;
    long http_status;            /* of the last exchange; 0: none */
};

struct link_kind {
    peridot_status (*open)(struct link **out, const struct toolbox_entry *entry);
    /* Sends a message and waits for the receiver to be done: until `deadline` (pd_now), or a stop, which is
     * PERIDOT_CANCELLED. */
    peridot_status (*request)(struct link *l, const struct link_message *m, struct link_receiver *r, double deadline);
    /* Sends a message that has no response, without waiting for long, also after a stop. */
    void (*notify)(struct link *l, const struct link_message *m);
    /* Takes the messages that have come unasked, and sees whether the server has ended. */
    peridot_status (*poll)(struct link *l, struct link_receiver *r);
    void (*close)(struct link *l);
};

extern const struct link_kind link_stdio, link_http;

/* ---- events ---- */

/* Server-sent events, as HTML's standard says (section 9.2.6): of each event its data. */

/* {0} is the beginning. */
struct events {
    struct pd_buffer line;   /* whose end is yet to come */
    struct pd_buffer data;   /* of the event, so far */
    bool after_return;           /* a \n that follows is no line of its own */
};

typedef peridot_status (*events_take)(void *user, const char *data, size_t size);

/* Takes a part of a stream. A failure where an event has more than `most` bytes. */
peridot_status events_feed(struct events *e, const char *text, size_t size, size_t most, events_take take, void *user);
void events_free(struct events *e);

#endif
