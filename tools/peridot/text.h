/* Text for people and from them: wrapping, sizes, near misses, and reading a whole stream. */
#ifndef PERIDOT_COMMAND_TEXT_H
#define PERIDOT_COMMAND_TEXT_H

#include "util.h"

#include <stdio.h>

/* Words written one after another, in lines of at most 80 columns. */
struct cmd_wrap {
    FILE *file;
    int indent;      /* of every line */
    int column;      /* 0: nothing is on this line yet */
    bool man;        /* the source of a man page: not indented, and with fonts */
};

/* In a word of cmd_wrap_word these characters begin a font, for man pages. */
#define CMD_BOLD "\1"
#define CMD_ITALIC "\2"
#define CMD_ROMAN "\3"

void cmd_wrap_word(struct cmd_wrap *w, const char *word, size_t size);
/* The words of a text; a newline in it ends the line, a second one leaves a blank line. */
void cmd_wrap_text(struct cmd_wrap *w, const char *text);
/* Ends the line, if there is one. */
void cmd_wrap_end(struct cmd_wrap *w);

/* "1.46 GB": decimal units, three digits. The result points into one of four buffers used in turn. */
const char *cmd_size_text(uint64_t size);

/* "45 s", "12 min 05 s", "3 h 20 min". The result is overwritten by the next call. */
const char *cmd_time_text(double seconds);

/* What comes from files or arguments, as a terminal may see it (peridot_printable), cut where it is longer than a
 * kilobyte. The result points into one of four buffers used in turn. */
const char *cmd_shown(const char *text);
/* The same for a column of a row, where tabs, line breaks and backslashes are "\t", "\n", "\r" and "\\". Bytes that
 * are no UTF-8, as in a part of a character, stay. */
void cmd_print_column(FILE *file, const char *text, size_t size);

/* Edits (insert, delete, replace) that make a[0..size) into b; CMD_NEAR + 1 when it takes more than CMD_NEAR. */
enum { CMD_NEAR = 2 };
int cmd_distance(const char *a, size_t size, const char *b);
/* The entry of a list (NULL past its last) that `text` was probably meant to be, or NULL. */
const char *cmd_nearest(const char *text, const char *(*at)(size_t i));

/* Everything up to the end of a stream, NUL-terminated, *size without it; freed by the caller. A failure where that is
 * more than CMD_TEXT_MAX bytes, as no text that is encoded may be. */
enum { CMD_TEXT_MAX = 1 << 29 };
peridot_status cmd_read_all(char **out, size_t *size, FILE *file, const char *name);
peridot_status cmd_read_file(char **out, size_t *size, const char *path);

#endif
