/* Text on a terminal in lines that end between words, as it comes: words are whole, wide characters of East Asian
 * scripts may begin a line each, and what would drive the terminal is escaped (peridot_printable). Where the file is no
 * terminal, text is written as it is. */
#ifndef PERIDOT_COMMAND_FLOW_H
#define PERIDOT_COMMAND_FLOW_H

#include "util.h"

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
void cmd_say(const char *format, ...) CMD_PRINTF(1, 2);
/* The same of a message that is written piece by piece into `file`. False: there is no memory for it. */
struct cmd_notice {
    FILE *file;
    char *text;
    size_t size;
};
bool cmd_notice_begin(struct cmd_notice *m);
void cmd_notice_end(struct cmd_notice *m);

#endif
