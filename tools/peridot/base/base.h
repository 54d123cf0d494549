/* What the command stands on beside what it has in common with the library (src/base): text for people, JSON that is
 * written, and what it asks of the system. */
#ifndef PERIDOT_COMMAND_BASE_BASE_H
#define PERIDOT_COMMAND_BASE_BASE_H

#include "../../../src/base/base.h"
#include "peridot_tools.h"

#include <pthread.h>

/* ---- json ---- */

/* A string with its quotes. Bytes that are no UTF-8, as of a token that is part of a character, become U+FFFD. */
void cmd_json_string(FILE *file, const char *text, size_t size);

/* An empty document, one at a time in a thread. A part of it that there was no memory for is remembered: yyjson leaves
 * it out. */
yyjson_mut_doc *cmd_json_new(void);
/* A part of the document that is being written could not be made. */
void cmd_json_fail(void);
/* The document as text of *size bytes (NULL: not wanted), to be freed; NULL when memory was short for it or a part of
 * it. Frees the document. */
char *cmd_json_end(yyjson_mut_doc *doc, yyjson_write_flag flags, size_t *size);
/* The same on standard output, over several lines. `what` it is: "the list of devices". */
peridot_status cmd_json_print(yyjson_mut_doc *doc, const char *what);

/* ---- os ---- */

/* ---- the process ---- */

/* Opens a stand-in for each standard stream that is closed: a file that is opened would get its number, and messages
 * would be written into it. Results for a closed standard output fail to be written, and its stand-in sees to that. A
 * limit on sizes of files becomes an error of write. */
bool cmd_process_begin(void);
/* The running executable. */
bool cmd_executable_path(char *path, size_t size);
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
/* A thread that gets no signal, to be joined. */
bool cmd_thread_begin(pthread_t *out, void *(*run)(void *user), void *user);

/* ---- sockets ---- */

/* The other side has closed it. */
bool cmd_socket_is_closed(int socket);
/* Ends it for both sides; who opened it closes it. */
void cmd_socket_end(int socket);
/* The socket that whoever started the process has opened for it to listen on (sd_listen_fds(3) of systemd); -1: none.
 * What the process starts does not get it. A failure where what was handed over is something else. */
peridot_status cmd_socket_inherited(int *out);

/* ---- base64 ---- */

/* Base64 (RFC 4648) as people have it: of either alphabet, with the line breaks of MIME and `base64`, with or without
 * its padding, and percent-encoded where it was part of a URL. Padding that is there must be whole, and bits of no byte
 * must be 0. */

/* out: [size / 4 * 3 + 2]. False: it is not base64. */
bool cmd_base64_decode(unsigned char *out, size_t *n_out, const char *text, size_t size);
/* In the alphabet of + and /, padded; out: [(size + 2) / 3 * 4 + 1]. The end of it, where a 0 is. */
char *cmd_base64_encode(char *out, const void *data, size_t size);

/* ---- digest ---- */

struct cmd_hash;
/* SHA-256, or SHA-1; NULL: there is no memory. */
struct cmd_hash *cmd_hash_begin(bool sha256);
void cmd_hash_add(struct cmd_hash *hash, const void *data, size_t size);
/* Frees it; out may be NULL. */
void cmd_hash_end(struct cmd_hash *hash, unsigned char out[32]);

/* ---- http ---- */

/* The one client of HTTP and HTTPS. It trusts the certificates of SSL_CERT_FILE or of the system, goes by way of the
 * proxy that the environment names, and redirects from HTTPS to HTTPS alone. */

struct cmd_http;               /* keeps connections from one request to the next; one thread at a time, not nested */
struct cmd_http_answer;
struct sockaddr;

/* What a URL means, as libcurl reads it. */
struct cmd_http_place {
    const char *scheme, *host, *port;   /* port "": the scheme's own */
    bool has_user;
};

/* Of what is 0 or NULL there is none. All is borrowed for as long as the request takes. */
struct cmd_http_request {
    const char *url;
    const char *headers;       /* lines "NAME: VALUE\n"; a redirection to another host takes no Authorization along */
    const char *method;        /* "DELETE"; NULL: POST of a text, or GET */
    const char *text;
    size_t text_size;
    uint64_t offset;           /* the first byte that is asked for: an answer of 206 has it */
    long connect_s, whole_s, stalled_s;   /* limits: of connecting, of everything, and of no byte coming */
    long n_redirects;          /* that are followed, whose own bodies have an end as well */
    bool direct;               /* without a proxy, which knows another "this machine" and hides addresses */
    bool reads_errors;         /* the body of an answer that is neither 200 nor 206 counts as well */
    size_t most;               /* bytes of a body that is kept */
    void *user;                /* of what follows: */
    /* Whether this place may be asked; who forbids it says why himself. */
    bool (*allows)(void *user, const struct cmd_http_place *place);
    /* Whether this address may be connected to, which counts where a name may lead anywhere. */
    bool (*connects)(const struct sockaddr *address);
    /* Takes the body as it comes; NULL: cmd_http_keep. A failure ends the request. */
    peridot_status (*take)(void *user, struct cmd_http_answer *answer, const char *data, size_t size);
    /* Called ten times a second, and whenever something came. A failure ends the request, as does the end_s it sets. */
    peridot_status (*look)(void *user, struct cmd_http_answer *answer);
};

enum cmd_http_end {
    CMD_HTTP_ANSWERED,         /* with whatever status */
    CMD_HTTP_OWN,              /* `allows`, `take` or `look` failed, or there is no memory */
    CMD_HTTP_NO_URL,           /* where there is `allows` */
    CMD_HTTP_NO_ADDRESS,       /* none that `connects` */
    CMD_HTTP_TOO_LARGE,        /* more than `most` */
    CMD_HTTP_PASSING,          /* went wrong, and may go well another time */
    CMD_HTTP_WRONG             /* so that it will not */
};

struct cmd_http_answer {
    enum cmd_http_end end;
    long code;                 /* status of HTTP; 0: none has come */
    struct pd_buffer body;     /* what was kept */
    uint64_t n_taken;          /* bytes of the body before those that are taken */
    double end_s;              /* when it is enough, if more would come or not (pd_now) */
    const char *kind;          /* libcurl's words for what went wrong, without what is particular to this request */
    struct cmd_http_transfer *transfer;   /* private */
};

/* NULL: there is no memory. */
struct cmd_http *cmd_http_open(void);
void cmd_http_close(struct cmd_http *http);   /* may be NULL */
/* Asks, and waits for the answer, which is to be freed even on failure. Where the end is NO_ADDRESS or later, the
 * failure is a sentence without a subject: the host is the caller's to name. */
peridot_status cmd_http_ask(struct cmd_http_answer *out, struct cmd_http *http, const struct cmd_http_request *request);
void cmd_http_free(struct cmd_http_answer *answer);
/* Adds to the body. */
peridot_status cmd_http_keep(struct cmd_http_answer *answer, const char *data, size_t size);
/* A header of the last answer, "" where there is none; valid until the next call, or the answer is freed. */
const char *cmd_http_header(const struct cmd_http_answer *answer, const char *name);
/* Where it redirects to, if that is not followed; NULL: nowhere. Valid as long as the answer. */
const char *cmd_http_target(const struct cmd_http_answer *answer);

/* ---- text ---- */

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
/* Another limit, for what is no text of the model's. */
peridot_status cmd_read_most(char **out, size_t *size, FILE *file, const char *name, size_t most);
peridot_status cmd_read_all(char **out, size_t *size, FILE *file, const char *name);
peridot_status cmd_read_file(char **out, size_t *size, const char *path);

#endif
