/* The terminal: Ctrl-C as a question that long work asks, a progress bar, and text that models wrote. */
#ifndef PERIDOT_COMMAND_TERMINAL_H
#define PERIDOT_COMMAND_TERMINAL_H

#include "util.h"

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

/* A line on stderr, drawn only when that is a terminal, and no wider than it. */
struct cmd_progress {
    const char *label;
    double begin_s, drawn_s;
    uint64_t begin;        /* done before it began */
    bool enabled, drawn;
};

struct cmd_progress cmd_progress_begin(const char *label);
/* A peridot_progress: `user` is the struct, or one that begins with it. False, which cancels the work, after an
 * interrupt. */
bool cmd_progress_step(void *user, uint64_t done, uint64_t total);
/* The same for tokens of a prompt that takes longer than half a second, with their rate instead of a bar. */
bool cmd_progress_tokens(void *user, uint64_t done, uint64_t total);
/* The same for kernels that take longer than half a second to compile. */
bool cmd_progress_compiling(void *user, uint64_t done, uint64_t total);
/* A peridot_selftest_progress: "kernel 40 of 260, about 1 min 0 s left". */
bool cmd_progress_kernels(void *user, uint32_t n_done, uint32_t n_kernels, double part);
/* Wipes the line. */
void cmd_progress_end(struct cmd_progress *p);

#endif
