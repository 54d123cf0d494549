/* The editor's insides. */
#ifndef PERIDOT_COMMAND_CONSOLE_CONSOLE_PRIVATE_H
#define PERIDOT_COMMAND_CONSOLE_CONSOLE_PRIVATE_H

#include "console.h"

#include <histedit.h>
#include <stdbool.h>
#include <stdio.h>

/* ---- editor screen ---- */

/* Where the editor's line is on the terminal, so that it can be drawn again after what libedit does not see: a window
 * of another size, another prompt. */

/* Rows from the one that the prompt begins on to that of the cursor. Terminals break lines anew when they become
 * narrower; one that does not, as xterm, loses what stands above. */
int cmd_editor_rows(EditLine *edit, const char *prompt, int columns);
/* Draws the line anew, from `rows` above the cursor on. Without escape sequences: below. */
void cmd_editor_redraw(EditLine *edit, FILE *out, bool escapes, int rows);

/* ---- editor search ---- */

struct cmd_editor_search {
    EditLine *edit;
    History *history;
    FILE *out;
    bool escapes;              /* of the terminal */
    const char **prompt;       /* which another one replaces until the search ends */
};

/* Reads what to look for until Return, which takes the line, Ctrl-G, which gives back the one from before, or another
 * key, which then does what it does. The result is that of a function of libedit. */
unsigned char cmd_editor_search(const struct cmd_editor_search *how);

#endif
