/* Messages that someone types: libedit's line editing, a history kept across runs, messages of several lines, and
 * completion. Only for a terminal; what a pipe brings is read as `lines`. */
#define _XOPEN_SOURCE 700
#define _DEFAULT_SOURCE   /* SIGWINCH, DT_DIR */
#include "../base/base.h"
#include "console.h"
#include "console_.h"

#include <dirent.h>
#include <errno.h>
#include <histedit.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

enum { HISTORY_ENTRIES = 1000, PATH_SIZE = 4096, CHANGED_SIGNALS = 2 };

struct cmd_editor {
    EditLine *edit;
    History *history;
    FILE *out;
    cmd_completer complete;
    void *user;
    const char *prompt, *initial;
    char history_path[PATH_SIZE];      /* "": it is not kept */
    mbstate_t partial;                 /* of a character whose bytes come one by one */
    bool escapes;                      /* the terminal knows escape sequences */
    bool stopped;                      /* a signal ended the line */
    bool was_empty;                    /* and nothing was on it */
    struct pd_buffer message;
    struct sigaction before[CHANGED_SIGNALS];
};

static const int changed_signals[CHANGED_SIGNALS] = {SIGWINCH, SIGCONT};
static volatile sig_atomic_t changed[CHANGED_SIGNALS];

static void on_change(int number)
{
    for (int i = 0; i < CHANGED_SIGNALS; i++)
        if (changed_signals[i] == number) changed[i] = 1;
}

/* ---- keys ---- */

/* The window has another size; or a shell had the terminal, and left it in another mode. */
static void adapt(struct cmd_editor *e)
{
    bool has_other_size = changed[0], was_stopped = changed[1];
    int rows = has_other_size ? cmd_editor_rows(e->edit, e->prompt, cmd_columns(e->out)) : 0;
    changed[0] = changed[1] = 0;
    if (has_other_size) el_resize(e->edit);
    if (was_stopped) {
        el_set(e->edit, EL_PREP_TERM, 0);
        el_set(e->edit, EL_PREP_TERM, 1);
    }
    if (has_other_size || was_stopped) cmd_editor_redraw(e->edit, e->out, e->escapes, rows);
}

/* False when a signal comes rather than a key. Signals are let in only while it waits: one that came just before would
 * go unseen. */
static bool wait_for_key(struct cmd_editor *e)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGCONT};
    sigset_t blocked, before;
    int n = 0;
    sigemptyset(&blocked);
    for (size_t i = 0; i < PD_COUNT(signals); i++) sigaddset(&blocked, signals[i]);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    while (n == 0 && !cmd_interrupted()) {
        fd_set input;
        FD_ZERO(&input);
        FD_SET(STDIN_FILENO, &input);
        adapt(e);
        n = pselect(STDIN_FILENO + 1, &input, NULL, NULL, NULL, &before);
        if (n < 0 && errno == EINTR) n = 0;
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return n > 0;
}

static int read_key(EditLine *edit, wchar_t *key)
{
    struct cmd_editor *e = NULL;
    el_get(edit, EL_CLIENTDATA, &e);
    for (;;) {
        char byte;
        if (!wait_for_key(e)) {
            const LineInfo *line = el_line(edit);
            e->stopped = true;
            e->was_empty = line->buffer == line->lastchar;
            return -1;
        }
        ssize_t n = read(STDIN_FILENO, &byte, 1);
        if (n <= 0) return (int)n;
        size_t size = mbrtowc(key, &byte, 1, &e->partial);
        if (size == (size_t)-2) continue;
        if (size == (size_t)-1) {
            memset(&e->partial, 0, sizeof e->partial);
            *key = 0xfffd;
        }
        return 1;
    }
}

/* What a terminal sends between ESC [ 200 ~ and ESC [ 201 ~ was pasted: its newlines don't end the message. */
static unsigned char paste(EditLine *edit, int key)
{
    static const wchar_t end[] = L"\033[201~";
    enum { END = sizeof end / sizeof *end - 1 };
    size_t n = 0, capacity = 1024;
    wchar_t *text = malloc(capacity * sizeof *text);
    (void)key;
    while (text && el_wgetc(edit, &text[n]) == 1) {
        if (text[n] == '\r') text[n] = '\n';
        if (++n >= END && wmemcmp(text + n - END, end, END) == 0) {
            n -= END;
            break;
        }
        if (n + 1 < capacity) continue;
        wchar_t *longer = realloc(text, (capacity *= 2) * sizeof *text);
        if (!longer) free(text);
        text = longer;
    }
    if (!text) return CC_ERROR;
    text[n] = 0;
    int inserted = n ? el_winsertstr(edit, text) : 0;
    free(text);
    return inserted < 0 ? CC_ERROR : CC_REFRESH;
}

static unsigned char search(EditLine *edit, int key)
{
    struct cmd_editor *e = NULL;
    (void)key;
    el_get(edit, EL_CLIENTDATA, &e);
    return cmd_editor_search(&(struct cmd_editor_search){.edit = edit, .history = e->history, .out = e->out,
                                                         .escapes = e->escapes, .prompt = &e->prompt});
}

static unsigned char insert_initial(EditLine *edit, int key)
{
    struct cmd_editor *e = NULL;
    (void)key;
    el_get(edit, EL_CLIENTDATA, &e);
    if (e->initial) el_insertstr(edit, e->initial);
    e->initial = NULL;
    return CC_REFRESH;
}

/* ---- completion ---- */

void cmd_completions_add(struct cmd_completions *c, const char *text)
{
    char *copy = c->n < CMD_COMPLETIONS_MAX ? strdup(text) : NULL;
    if (copy) c->at[c->n++] = copy;
}

void cmd_completions_add_files(struct cmd_completions *c, const char *path)
{
    char folder[PATH_SIZE], candidate[2 * PATH_SIZE];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t size = (size_t)(name - path);
    struct dirent *entry;
    if (size >= sizeof folder) return;
    memcpy(folder, path, size);
    folder[size] = 0;
    DIR *dir = opendir(size ? folder : ".");
    while (dir && (entry = readdir(dir)) != NULL) {
        struct stat st;
        if (strncmp(entry->d_name, name, strlen(name)) != 0 || (entry->d_name[0] == '.' && name[0] != '.')) continue;
        int n = snprintf(candidate, sizeof candidate, "%s%s", folder, entry->d_name);
        if (n < 0 || stat(candidate, &st) != 0) continue;
        if (S_ISDIR(st.st_mode)) strcpy(candidate + n, "/");
        cmd_completions_add(c, candidate);
    }
    if (dir) closedir(dir);
}

static int compare(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void list(struct cmd_editor *e, const struct cmd_completions *c)
{
    struct cmd_flow flow = cmd_flow_begin(e->out);
    fputc('\n', e->out);
    for (size_t i = 0; i < c->n; i++) {
        cmd_flow_text(&flow, c->at[i], strlen(c->at[i]));
        cmd_flow_text(&flow, i + 1 < c->n ? "  " : "\n", i + 1 < c->n ? 2 : 1);
    }
}

static unsigned char complete(EditLine *edit, int key)
{
    struct cmd_editor *e = NULL;
    struct cmd_completions c = {0};
    const LineInfo *line = el_line(edit);
    char *before = strndup(line->buffer, (size_t)(line->cursor - line->buffer));
    unsigned char result = CC_ERROR;
    (void)key;
    el_get(edit, EL_CLIENTDATA, &e);
    if (before) e->complete(&c, e->user, before);
    if (c.n) {
        size_t given = strlen(before) - c.begin, common = strlen(c.at[0]);
        qsort(c.at, c.n, sizeof *c.at, compare);
        for (size_t i = 1; i < c.n; i++)
            for (common = pd_min(common, strlen(c.at[i])); memcmp(c.at[0], c.at[i], common) != 0;) common--;
        while (common < strlen(c.at[0]) && ((unsigned char)c.at[0][common] & 0xc0) == 0x80) common--;   /* UTF-8 */
        char tail[PATH_SIZE] = "";
        if (common > given) snprintf(tail, sizeof tail, "%.*s", (int)(common - given), c.at[0] + given);
        result = CC_REFRESH;
        if (tail[0]) el_insertstr(edit, tail);
        else if (c.n > 1) list(e, &c), result = CC_REDISPLAY;
    }
    for (size_t i = 0; i < c.n; i++) free(c.at[i]);
    free(before);
    return result;
}

/* ---- history ---- */

/* Makes the folders on the way to the file that lack. */
static bool make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        int failed = mkdir(path, 0700);
        *slash = '/';
        if (failed && errno != EEXIST) return false;
    }
    return true;
}

static void open_history(struct cmd_editor *e)
{
    HistEvent event;
    char folder[PATH_SIZE];
    int size = cmd_own_folder(folder, sizeof folder, CMD_OWN_STATE)
             ? snprintf(e->history_path, PATH_SIZE, "%s/history", folder) : -1;
    if (size < 0 || size >= PATH_SIZE) e->history_path[0] = 0;
    history(e->history, &event, H_SETSIZE, HISTORY_ENTRIES);
    history(e->history, &event, H_SETUNIQUE, 1);
    if (e->history_path[0] && history(e->history, &event, H_LOAD, e->history_path) > 2 * HISTORY_ENTRIES)
        history(e->history, &event, H_SAVE, e->history_path);   /* less what is too old */
}

/* Adds a message to the file's end, so that conversations that go on beside each other keep theirs. */
static bool append_to_file(char *path, const char *message)
{
    HistEvent event;
    History *one = history_init();
    mode_t mask = umask(077);
    FILE *file = one && make_folders(path) ? fopen(path, "a") : NULL;
    umask(mask);
    bool ok = file && fseek(file, 0, SEEK_END) == 0;   /* an empty file gets a first line that says what it is */
    ok = ok && history(one, &event, H_SETSIZE, 1) >= 0 && history(one, &event, H_ENTER, message) >= 0;
    ok = ok && history(one, &event, H_SAVE_FP, file) >= 0;
    if (file) ok = fclose(file) == 0 && ok;
    if (one) history_end(one);
    return ok;
}

static void keep_message(struct cmd_editor *e)
{
    HistEvent event;
    history(e->history, &event, H_ENTER, e->message.data);
    if (!e->history_path[0] || append_to_file(e->history_path, e->message.data)) return;
    fprintf(stderr, "%s: %s: what is typed is not kept for later\n", e->history_path, strerror(errno));
    e->history_path[0] = 0;
}

/* ---- messages ---- */

static char *get_prompt(EditLine *edit)
{
    struct cmd_editor *e = NULL;
    el_get(edit, EL_CLIENTDATA, &e);
    return (char *)(uintptr_t)e->prompt;
}

/* Adds a line to the message. */
static enum cmd_editor_state read_line(struct cmd_editor *e, const char *prompt)
{
    static const char paste_on[] = "\033[?2004h", paste_off[] = "\033[?2004l";
    int size = 0;
    e->prompt = prompt;
    e->stopped = false;
    el_resize(e->edit);   /* the size may have changed during a reply */
    if (e->initial) el_push(e->edit, "\033[999~");
    if (e->escapes) fputs(paste_on, e->out);
    const char *line = el_gets(e->edit, &size);
    if (e->escapes) fputs(paste_off, e->out);
    if (!line || size <= 0) fputc('\n', e->out);
    fflush(e->out);
    if (e->stopped) return e->was_empty && e->message.size == 0 ? CMD_EDITOR_INTERRUPTED : CMD_EDITOR_CLEARED;
    if (!line || size <= 0) return CMD_EDITOR_END;
    size_t n = strlen(line);
    if (n && line[n - 1] == '\n') n--;
    return pd_buffer_add(&e->message, line, n) == PERIDOT_OK ? CMD_EDITOR_MESSAGE : CMD_EDITOR_END;
}

static bool ends_with(const char *text, size_t size, const char *end)
{
    size_t n = strlen(end);
    return size >= n && memcmp(text + size - n, end, n) == 0;
}

enum cmd_editor_state cmd_editor_read(const char **text, struct cmd_editor *e, const char *initial)
{
    static const char quotes[] = "\"\"\"";
    enum { QUOTES = sizeof quotes - 1 };
    enum cmd_editor_state state;
    const char *prompt = ">>> ";
    bool quoted = false, goes_on;
    e->message.size = 0;
    e->initial = initial;
    do {
        state = read_line(e, prompt);
        if (state != CMD_EDITOR_MESSAGE) return state;
        if (prompt[0] == '>') quoted = strncmp(e->message.data, quotes, QUOTES) == 0;
        if (quoted) {
            goes_on = e->message.size < 2 * QUOTES || !ends_with(e->message.data, e->message.size, quotes);
        } else {
            goes_on = ends_with(e->message.data, e->message.size, "\\");
            if (goes_on) e->message.size--;
        }
        if (goes_on && pd_buffer_add(&e->message, "\n", 1) != PERIDOT_OK) return CMD_EDITOR_END;
        prompt = "... ";
    } while (goes_on);
    if (e->message.data[strspn(e->message.data, " \t\n")]) keep_message(e);
    *text = e->message.data;
    if (!quoted) return state;
    e->message.size -= QUOTES;
    if (e->message.data[e->message.size - 1] == '\n') e->message.size--;
    e->message.data[e->message.size] = 0;
    *text += QUOTES;
    *text += **text == '\n';
    return state;
}

/* ---- what is typed during a reply ---- */

static struct termios with_echo;
static volatile sig_atomic_t is_silent;

static void restore_echo(void)
{
    if (is_silent) tcsetattr(STDIN_FILENO, TCSANOW, &with_echo);
    is_silent = 0;
}

void cmd_editor_echo(struct cmd_editor *e, bool shows)
{
    struct termios silent;
    (void)e;
    if (shows) {
        restore_echo();
    } else if (!is_silent && tcgetattr(STDIN_FILENO, &with_echo) == 0) {
        silent = with_echo;
        silent.c_lflag &= ~(tcflag_t)ECHO;
        is_silent = 1;
        tcsetattr(STDIN_FILENO, TCSANOW, &silent);
    }
}

enum cmd_editor_state cmd_editor_ask(const char **answer, struct cmd_editor *e, const char *question)
{
    restore_echo();
    tcflush(STDIN_FILENO, TCIFLUSH);
    e->message.size = 0;
    e->initial = NULL;
    enum cmd_editor_state state = read_line(e, question);
    *answer = e->message.data;
    return state;
}

/* ---- opening ---- */

static void bind_keys(EditLine *edit)
{
    static const char *const keys[][2] = {
        {"\t", "peridot-complete"}, {"\\e[200~", "peridot-paste"}, {"\\e[999~", "peridot-initial"},
        {"^R", "peridot-search"}, {"\\e[3~", "ed-delete-next-char"}, {"^W", "ed-delete-prev-word"},
        {"\\e[1;5C", "em-next-word"}, {"\\e[1;5D", "ed-prev-word"},
        {"^@", "em-delete-or-list"},   /* a Ctrl-D that was typed during a reply: what the terminal makes of it */
    };
    el_set(edit, EL_EDITOR, "emacs");
    el_set(edit, EL_ADDFN, "peridot-complete", "Complete a command or a file", complete);
    el_set(edit, EL_ADDFN, "peridot-paste", "Insert what was pasted", paste);
    el_set(edit, EL_ADDFN, "peridot-search", "Find what was typed before", search);
    el_set(edit, EL_ADDFN, "peridot-initial", "Insert the text to change", insert_initial);
    for (size_t i = 0; i < PD_COUNT(keys); i++) el_set(edit, EL_BIND, keys[i][0], keys[i][1], NULL);
    el_source(edit, NULL);   /* ~/.editrc */
}

peridot_status cmd_editor_open(struct cmd_editor **out, cmd_completer complete_line, void *user)
{
    /* the bytes of characters: where the environment says nothing of UTF-8, they are UTF-8 all the same */
    if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1) setlocale(LC_CTYPE, "C.UTF-8");
    struct cmd_editor *e = *out = calloc(1, sizeof *e);
    if (!e) return pd_fail_alloc(sizeof *e, "line editor");
    e->complete = complete_line;
    e->user = user;
    const char *term = getenv("TERM");
    e->escapes = term && strcmp(term, "dumb") != 0;
    e->out = isatty(STDOUT_FILENO) ? stdout : stderr;
    e->history = history_init();
    e->edit = el_init("peridot", stdin, e->out, stderr);
    if (!e->history || !e->edit) {
        cmd_editor_close(e);
        *out = NULL;
        return pd_fail_alloc(sizeof *e, "line editor");
    }
    struct sigaction action = {.sa_handler = on_change};
    for (int i = 0; i < CHANGED_SIGNALS; i++) sigaction(changed_signals[i], &action, &e->before[i]);
    cmd_interrupt_restores(restore_echo);
    open_history(e);
    el_set(e->edit, EL_CLIENTDATA, e);
    el_set(e->edit, EL_SIGNAL, 0);
    el_set(e->edit, EL_PROMPT, get_prompt);
    el_set(e->edit, EL_HIST, history, e->history);
    el_set(e->edit, EL_GETCFN, read_key);
    bind_keys(e->edit);
    return PERIDOT_OK;
}

void cmd_editor_close(struct cmd_editor *e)
{
    if (!e) return;
    if (e->edit && e->history)
        for (int i = 0; i < CHANGED_SIGNALS; i++) sigaction(changed_signals[i], &e->before[i], NULL);
    restore_echo();
    if (e->edit) el_end(e->edit);
    if (e->history) history_end(e->history);
    pd_buffer_free(&e->message);
    free(e);
}

/* ---- editor screen ---- */

struct place {
    int row, column, columns;
};

/* As libedit draws it: control characters are ^X. */
static void advance(struct place *p, wchar_t c)
{
    enum { TAB = 8 };
    int width = c == '\t' ? TAB - p->column % TAB : wcwidth(c) < 0 ? 2 : wcwidth(c);
    if (c == '\n' || p->column + width > p->columns) {
        p->row++;
        p->column = 0;
    }
    if (c == '\n') return;
    p->column += width;
    if (p->column < p->columns) return;
    p->row++;
    p->column = 0;
}

int cmd_editor_rows(EditLine *edit, const char *prompt, int columns)
{
    struct place place = {.columns = columns > 2 ? columns : 2};
    const LineInfoW *line = el_wline(edit);
    mbstate_t state = {0};
    wchar_t c;
    size_t left = strlen(prompt);
    for (size_t n; left && (n = mbrtowc(&c, prompt, left, &state)) + 2 > 2; prompt += n, left -= n) advance(&place, c);
    for (const wchar_t *at = line->buffer; at < line->cursor; at++) advance(&place, *at);
    return place.row;
}

void cmd_editor_redraw(EditLine *edit, FILE *out, bool escapes, int rows)
{
    if (!escapes) fputc('\n', out);
    else if (rows) fprintf(out, "\033[%dA\r\033[J", rows);
    else fputs("\r\033[J", out);
    el_set(edit, EL_REFRESH);
}
