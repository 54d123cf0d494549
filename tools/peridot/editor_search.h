/* Ctrl-R: what was typed before, found by a part of it. */
#ifndef PERIDOT_COMMAND_EDITOR_SEARCH_H
#define PERIDOT_COMMAND_EDITOR_SEARCH_H

#include <histedit.h>

#include <stdbool.h>
#include <stdio.h>

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
