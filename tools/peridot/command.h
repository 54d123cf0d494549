/* A command and its options as rows of tables, which drive the parser (options.c), the help pages (help.c) and the
 * dispatch (main.c); and how a command ends (exit.c). A new command is a file with one `const struct cmd_command`, and
 * a line in the table of commands.c. Nothing here knows more of the library than its public headers say. */
#ifndef PERIDOT_COMMAND_H
#define PERIDOT_COMMAND_H

#include "util.h"

enum cmd_exit { CMD_OK = 0, CMD_FAILURE = 1, CMD_USAGE = 2 };

enum cmd_kind {
    CMD_FLAG,     /* bool; takes no value */
    CMD_TEXT,     /* const char *, borrowed from argv */
    CMD_TEXTS,    /* struct cmd_texts: may be given again and again */
    CMD_U32,
    CMD_F32,
    CMD_SIZE,     /* uint64_t: bytes, with k, M, G or T after a number */
    CMD_SEED,     /* uint64_t; the word "random" draws one */
    CMD_BUDGET,   /* uint32_t: off (0), on (UINT32_MAX), or a number */
    CMD_CHOICE    /* uint32_t: index into `value` */
};

enum { CMD_TEXTS_MAX = 64 };

struct cmd_texts {
    const char *at[CMD_TEXTS_MAX];  /* borrowed from argv */
    size_t n;
};

struct cmd_option {
    char letter;                    /* 'm' for -m; 0: none */
    const char *name;               /* "model" for --model; NULL: this row is the operand */
    const char *metavar;            /* what stands for the value in help; NULL for a flag */
    enum cmd_kind kind;
    size_t offset;                  /* of the value in the command's arguments */
    const char *fallback;           /* the default as one would type it; NULL: zero */
    const char *help;
    bool required;
    double min, max;                /* of a number; both 0: whatever the type holds */
    const char *(*value)(size_t i); /* the allowed values, NULL past the last; NULL: any */
    /* the value that another spelling stands for, NULL where it stands for none; NULL: there is only one */
    const char *(*spelling)(const char *text);
    size_t given;                   /* where `bit` is not 0: of a uint32_t, which has it once the option was given */
    uint32_t bit;
};

struct cmd_command {
    const char *name;
    const char *summary;            /* completes "peridot NAME - ", no full stop */
    const char *description;        /* paragraphs, with a blank line between them */
    const char *examples;           /* lines */
    const struct cmd_option *options;
    size_t n_options;
    size_t args_size;               /* of the struct that the offsets point into */
    int (*run)(const struct cmd_command *command, const void *args);   /* gives the exit status */
};

/* Of a cmd_command: what it takes, an array of options for a struct of arguments. */
#define CMD_ARGUMENTS(list, type) .options = list, .n_options = CMD_COUNT(list), .args_size = sizeof(type)

/* "peridot: SENTENCE; see peridot COMMAND --help" on stderr; gives CMD_USAGE. `command` may be NULL. */
int cmd_usage(const struct cmd_command *command, const char *format, ...) CMD_PRINTF(2, 3);
/* Turns a status into an exit status; a failure prints the library's sentence. */
int cmd_exit(peridot_status status);

#endif
