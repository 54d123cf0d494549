/* Where the editor's line is on the terminal, so that it can be drawn again after what libedit does not see: a window
 * of another size, another prompt. */
#ifndef PERIDOT_COMMAND_EDITOR_SCREEN_H
#define PERIDOT_COMMAND_EDITOR_SCREEN_H

#include <histedit.h>

#include <stdbool.h>
#include <stdio.h>

/* Rows from the one that the prompt begins on to that of the cursor. Terminals break lines anew when they become
 * narrower; one that does not, as xterm, loses what stands above. */
int cmd_editor_rows(EditLine *edit, const char *prompt, int columns);
/* Draws the line anew, from `rows` above the cursor on. Without escape sequences: below. */
void cmd_editor_redraw(EditLine *edit, FILE *out, bool escapes, int rows);

#endif
