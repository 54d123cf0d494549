/* What a model thinks before it answers: --think, and a thought on a terminal, which is one dimmed line while it is
 * written, and another when it has ended. */
#ifndef PERIDOT_COMMAND_THOUGHT_H
#define PERIDOT_COMMAND_THOUGHT_H

#include "command.h"

#include <stdio.h>

#define CMD_THINK_OPTION(type) \
    {.name = "think", .metavar = "N", .kind = CMD_BUDGET, .offset = offsetof(type, think), .fallback = "off", \
     .help = "Whether the model thinks before it answers, if its family does (Gemma 4): on, off, or at most N tokens " \
             "of thought, after which the answer begins. They count as tokens of the reply."}

/* {0} is the beginning. */
struct cmd_thought {
    char *text;                /* [size] */
    size_t size, capacity;
    uint32_t n;                /* tokens after the mark that begins it */
    bool open, drawn;          /* it is being written; its line is on the terminal */
    double drawn_s;
};

/* Takes a token of a thought: see peridot_request_params. `quiet`: nothing is drawn, as an answer has begun. */
peridot_status cmd_thought_take(struct cmd_thought *t, int32_t token, const char *text, size_t size, bool quiet);
/* Says on standard error how long the thought was, if there was one. `closed`: the answer begins, after a mark; else
 * the reply ended within it. `hint` goes behind. */
void cmd_thought_end(struct cmd_thought *t, bool closed, const char *hint);
/* Writes the text of a thought, dimmed on a terminal, to standard error. */
void cmd_thought_show(const struct cmd_thought *t);
void cmd_thought_free(struct cmd_thought *t);

#endif
