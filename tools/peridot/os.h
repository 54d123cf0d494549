/* The operating system under the command, where systems differ: os.c for POSIX, windows.c for Windows. */
#ifndef PERIDOT_COMMAND_OS_H
#define PERIDOT_COMMAND_OS_H

#include "util.h"

/* ---- the process ---- */

/* Opens a stand-in for each standard stream that is closed: a file that is opened would get its number, and messages
 * would be written into it. Results for a closed standard output fail to be written, and its stand-in sees to that. A
 * limit on sizes of files becomes an error of write. */
bool cmd_process_begin(void);
/* The running executable. */
bool cmd_executable_path(char *path, size_t size);
void cmd_random_bytes(void *out, size_t size);
void cmd_sleep(double seconds);
/* For a server: as many open files as n connections may need, and writing to one that is gone is an error. */
void cmd_allow_connections(unsigned n);

/* Nothing but the process is in its window, which closes when it ends: it was started by a double click. */
bool cmd_owns_window(void);

/* ---- standard input ---- */

/* A file always has something to give, if only its end; so does a pipe whose writer is gone. */
bool cmd_input_is_ready(void);
/* As read: 0 at the end, -1 with errno. */
ptrdiff_t cmd_input_read(void *to, size_t size);

/* Writing to standard output failed because nobody reads it any more, and no signal says so. */
bool cmd_output_is_gone(void);
/* Columns of the terminal that a stream is; 0: it is none. */
int cmd_columns(FILE *file);

/* ---- files ---- */

/* Whose folder it is: what can be made again, or what is remembered. */
enum cmd_own { CMD_OWN_CACHE, CMD_OWN_STATE };
/* Puts this user's folder for it into `path`, which need not be there; false where the environment does not say. */
bool cmd_own_folder(char *path, size_t size, enum cmd_own own);
/* What parts folders in a list of them. */
extern const char cmd_list_separator[2];
/* A path that someone typed, with slashes between its parts. */
void cmd_path_clean(char *path);
/* Something is there, if only a link that leads nowhere. */
bool cmd_path_exists(const char *path);
/* Where this user's folder can be read by others, it no longer can. */
void cmd_make_private(const char *folder);
/* Makes a new folder of this user's where temporary files go, and puts its path into `path`. */
bool cmd_temporary_folder(char *path, size_t size);
/* A stream into memory; its text, freed by the caller, is there once it is closed. */
FILE *cmd_memory_open(char **text, size_t *size);
bool cmd_memory_close(FILE *file, char **text, size_t *size);

/* ---- signals ---- */

/* Has `handler` called at each signal that would end the process; those that are ignored stay so, as under nohup. */
void cmd_signals_catch(void (*handler)(int number));
/* Ends the process as the signal would have. */
void cmd_signal_end(int number);
/* In so many seconds a signal comes. Windows has none. */
void cmd_alarm(unsigned seconds);
/* Nobody reads the pipe that was written to. */
bool cmd_signal_is_pipe(int number);
/* Holds back, or lets through, those that end a server: for this thread, and those that it makes. */
void cmd_signals_hold(bool hold);
/* True when one that is held back comes within the time. */
bool cmd_signals_wait(double seconds);

/* ---- sockets ---- */

/* The other side has closed it. */
bool cmd_socket_is_closed(int socket);
/* Ends it for both sides; who opened it closes it. */
void cmd_socket_end(int socket);

#endif
