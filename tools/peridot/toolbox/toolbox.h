/* Tools that a model may call: programs, and servers that speak MCP. */
#ifndef PERIDOT_COMMAND_TOOLBOX_TOOLBOX_H
#define PERIDOT_COMMAND_TOOLBOX_TOOLBOX_H

#include "../console/console.h"

#include <stdio.h>

/* ---- stop ---- */

/* What ends a call early: an interrupt of the command, and whatever else its caller asks about. */

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

/* ---- toolbox ---- */

struct cmd_editor;
struct cmd_toolbox;

/* For a struct with a `struct cmd_texts tools`. */
#define CMD_TOOLS_OPTION(type) \
    {.name = "tools", .metavar = "FILE|URL", .kind = CMD_TEXTS, .offset = offsetof(type, tools), \
     .help = "Tools that the model may call: a JSON file that names programs and MCP servers, or the URL of a server."}

/* Each source is a JSON file (toolbox_.h), or the http(s) URL of a server. Starts the servers and asks them for their
 * tools; an interrupt ends the waiting as PERIDOT_CANCELLED. *out is NULL on failure. */
peridot_status cmd_toolbox_open(struct cmd_toolbox **out, const char *const *sources, size_t n_sources);
/* Ends the servers. NULL is allowed. */
void cmd_toolbox_close(struct cmd_toolbox *t);

/* Asks the servers whose tools may be others now for them again; *changed: cmd_toolbox_json is another text. A tool
 * whose definition has changed is no longer allowed for this conversation. */
peridot_status cmd_toolbox_refresh(bool *changed, struct cmd_toolbox *t);

size_t cmd_toolbox_size(const struct cmd_toolbox *t);
/* [{"type": "function", "function": {"name": ..., "description": ..., "parameters": ...}}, ...], as OpenAI's interface
 * has it. Borrowed until the toolbox is refreshed or closed. Names are 1 to 64 of A-Z a-z 0-9 _ -. */
const char *cmd_toolbox_json(const struct cmd_toolbox *t);
/* For a person: a line for each tool; and where one comes from, "server NAME" or "program FILE". */
void cmd_toolbox_print(FILE *file, const struct cmd_toolbox *t);
void cmd_toolbox_print_source(FILE *file, const struct cmd_toolbox *t, const char *name);
/* For a program that asks a person: {NAME: {"source": "server NAME" or "program FILE", "allowed": a bool}, ...} */
void cmd_toolbox_write_about(FILE *file, const struct cmd_toolbox *t);
/* Which server a tool is called at; NULL: none, so that its calls need not wait for others. */
const void *cmd_toolbox_server(const struct cmd_toolbox *t, const char *name);

bool cmd_toolbox_has(const struct cmd_toolbox *t, const char *name);
/* Whether a call needs no question, as the file or a person in this conversation has said. */
bool cmd_toolbox_is_allowed(const struct cmd_toolbox *t, const char *name);
/* For this conversation. */
void cmd_toolbox_allow(struct cmd_toolbox *t, const char *name);

struct cmd_tool_call {
    const char *name, *arguments;   /* the latter JSON text */
    bool sees;                      /* images are wanted */
};

struct cmd_tool_result {
    char *text;       /* UTF-8 for the model, in which images are named; NULL: there was no call */
    char **images;    /* [n_images] those of a server: "data:TYPE;base64,..." */
    size_t n_images;
};
void cmd_tool_result_free(struct cmd_tool_result *result);

/* Carries out a call without a question. The result is the caller's to free. What goes wrong with a tool is a result,
 * too: it begins with "error: ". A failure is only PERIDOT_CANCELLED, when it was stopped (stop may be NULL), or that
 * there is no memory. */
peridot_status cmd_toolbox_call(struct cmd_tool_result *result, struct cmd_toolbox *t,
                                const struct cmd_tool_call *call, const struct toolbox_stop *stop);

/* Carries out the calls of a reply, one after another. Before each that is not allowed the editor asks the person;
 * where there is none (NULL) the call is refused, which its result says. results[i] are the caller's to free, also on
 * failure; of calls that were not reached they are {0}. PERIDOT_CANCELLED: an interrupt, also at a question. */
peridot_status cmd_toolbox_answer(struct cmd_tool_result *results, struct cmd_toolbox *t,
                                  const struct cmd_tool_call *calls, size_t n, struct cmd_editor *editor);

#endif
