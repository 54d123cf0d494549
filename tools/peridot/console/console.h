/* The terminal: what is drawn on it, lines that are read from it, with an editor, and how a reply flows. */
#ifndef PERIDOT_COMMAND_CONSOLE_CONSOLE_H
#define PERIDOT_COMMAND_CONSOLE_CONSOLE_H

#include "../base/base.h"

/* ---- lines ---- */

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

/* ---- terminal ---- */

/* From now on the first signal that would end the process, SIGINT or another, only makes cmd_interrupted() true, so
 * that the command can remove what is not complete; a second one kills as usual. */
void cmd_interrupt_watch(void);
bool cmd_interrupted(void);
/* Nobody reads what is written. */
bool cmd_interrupted_by_pipe(void);
/* The session whose work a signal cancels, from the handler; NULL: none. */
void cmd_interrupt_cancels(peridot_session *session);
/* A SIGINT that was caught counts no longer: a conversation goes on. False: there was none, or another signal, which
 * stays. */
bool cmd_interrupt_clear(void);
/* How long after a signal another SIGINT is ignored, in seconds; 0.3 at first. */
void cmd_interrupt_patience(double seconds);
/* How long a signal but SIGINT waits for the program to end in order, as a driver may never come back. */
void cmd_interrupt_hurry(unsigned seconds);
/* What is called before a second signal kills, from its handler. */
void cmd_interrupt_restores(void (*restore)(void));
/* Dies of the signal that was caught, if one was: what started us then sees the truth. */
void cmd_interrupt_raise(void);

/* Writes text that a model or a file made by peridot_printable, so that it cannot move the cursor, change the title or
 * make the terminal answer; tabs and newlines stay. */
void cmd_write_text(FILE *file, const char *text, size_t size);

/* A line on stderr, drawn only when that is a terminal, and no wider than it; also without a step once a second, from
 * cmd_progress_begin to cmd_progress_end, between which nothing else is written there. */
struct cmd_progress {
    const char *label;
    double begin_s, drawn_s;
    uint64_t begin;        /* done before it began */
    bool enabled, drawn, pulses;
};

struct cmd_progress cmd_progress_begin(const char *label);
/* A peridot_progress: `user` is the struct, or one that begins with it. False, which cancels the work, after an
 * interrupt. */
bool cmd_progress_step(void *user, uint64_t done, uint64_t total);
/* The same for tokens of a prompt that takes longer than half a second, with their rate instead of a bar. */
bool cmd_progress_tokens(void *user, uint64_t done, uint64_t total);
/* The same for kernels that take longer than half a second to compile. */
bool cmd_progress_compiling(void *user, uint64_t done, uint64_t total);
/* A peridot_selftest_progress: "comparing kernels: 40 of 260, about 60 s left". */
bool cmd_progress_kernels(void *user, uint32_t n_done, uint32_t n_kernels, double part);
/* Wipes the line. */
void cmd_progress_end(struct cmd_progress *p);

/* ---- flow ---- */

struct cmd_flow {
    FILE *file;
    int columns;        /* of the terminal; 0: it is none */
    int indent;         /* of the lines that one which is too long goes on in */

    /* private */
    int column, spaces; /* where the cursor is, and how many spaces come before the next word */
    char word[256];     /* whose end may be yet to come */
    size_t size;
    int width;          /* in columns */
    bool goes_on;       /* its beginning is written */
};

struct cmd_flow cmd_flow_begin(FILE *file);
void cmd_flow_text(struct cmd_flow *f, const char *text, size_t size);
/* Writes the word that was held back for its end. */
void cmd_flow_end(struct cmd_flow *f);

/* A message on standard error, which ends with a newline. */
void cmd_say(const char *format, ...) PD_PRINTF(1, 2);
/* The same of a message that is written piece by piece into `file`. False: there is no memory for it. */
struct cmd_notice {
    FILE *file;
    char *text;
    size_t size;
};
bool cmd_notice_begin(struct cmd_notice *m);
void cmd_notice_end(struct cmd_notice *m);

/* ---- editor ---- */

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

typedef void (*cmd_completer)(struct cmd_completions *out, void *user, const char *line);

struct cmd_editor;

/* `complete` gets `user`. Takes over SIGWINCH and SIGCONT; cmd_interrupt_watch comes first. */
peridot_status cmd_editor_open(struct cmd_editor **out, cmd_completer complete, void *user);
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
