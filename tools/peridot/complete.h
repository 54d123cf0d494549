/* Completion of command lines in shells. */
#ifndef PERIDOT_COMMAND_COMPLETE_H
#define PERIDOT_COMMAND_COMPLETE_H

#include "command.h"

/* Prints what the last of the words after "peridot", which may be empty, can become: lines "CANDIDATE<tab>MEANING".
 * CMD_FAILURE: the name of a file as well. */
int cmd_complete(int n, char **words);

#endif
