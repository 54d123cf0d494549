/* Messages that someone types: libedit's line editing, a history kept across runs, messages of several lines, and
 * completion. Only for a terminal; what a pipe brings is read by lines.h. */
#ifndef PERIDOT_COMMAND_EDITOR_H
#define PERIDOT_COMMAND_EDITOR_H

#include "util.h"

enum { CMD_COMPLETIONS_MAX = 256 };

/* What line[begin..] may become. */
struct cmd_completions {
    size_t begin;
    char *at[CMD_COMPLETIONS_MAX];
    size_t n;
};

/* Adds one; what does not fit is left out. */
void cmd_completions_add(struct cmd_completions *c, const char *text);
/* Adds the files, and the folders with a / at their end, that `path` may become. */
void cmd_completions_add_files(struct cmd_completions *c, const char *path);

typedef void (*cmd_complete)(struct cmd_completions *out, void *user, const char *line);

struct cmd_editor;

/* `complete` gets `user`. Takes over SIGWINCH and SIGCONT; cmd_interrupt_watch comes first. */
peridot_status cmd_editor_open(struct cmd_editor **out, cmd_complete complete, void *user);
void cmd_editor_close(struct cmd_editor *e);

enum cmd_editor_state {
    CMD_EDITOR_MESSAGE,
    CMD_EDITOR_CLEARED,       /* Ctrl-C, and what had been typed is gone */
    CMD_EDITOR_INTERRUPTED,   /* Ctrl-C where nothing had been typed, or another signal */
    CMD_EDITOR_END            /* Ctrl-D, or the terminal is gone */
};

/* The next message, without the newline at its end, borrowed until the next call. A line that ends in \ and one between
 * lines of """ go on. `initial` (NULL: nothing) is there to be changed at first. */
enum cmd_editor_state cmd_editor_read(const char **text, struct cmd_editor *e, const char *initial);

/* One line in answer to a question, borrowed as a message is; the history does not get it. What was typed before the
 * question is no answer to it, and is dropped. */
enum cmd_editor_state cmd_editor_ask(const char **answer, struct cmd_editor *e, const char *question);

/* Whether what is typed shows at once, or when the editor reads it: during a reply "^C" would stand in it. The terminal
 * is as it was when a signal ends the program. */
void cmd_editor_echo(struct cmd_editor *e, bool shows);

#endif
