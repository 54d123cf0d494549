/* os.h for Windows, editor.h without libedit, and neither models/hub_cache.h nor toolbox/process.h. It is compiled and
 * linked by .ci/cross, and has not run: no Windows machine has been at hand. Paths are in the process's code page. */
#include <winsock2.h>   /* before windows.h */

#include "os.h"
#include "editor.h"
#include "terminal.h"
#include "text.h"
#include "models/hub_cache.h"
#include "toolbox/process.h"

#include <io.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <windows.h>
/* After windows.h. */
#include <bcrypt.h>
#include <direct.h>
#include <fcntl.h>
#include <psapi.h>

/* ---- the process ---- */

bool cmd_process_begin(void)
{
    _setmode(_fileno(stdin), _O_BINARY);
    _setmode(_fileno(stdout), _O_BINARY);
    SetConsoleOutputCP(CP_UTF8);
    return true;
}

bool cmd_executable_path(char *path, size_t size)
{
    DWORD n = GetModuleFileNameA(NULL, path, (DWORD)size);
    for (char *p = path; n && (p = strchr(p, '\\'));) *p = '/';
    return n > 0 && n < size;
}

void cmd_random_bytes(void *out, size_t size)
{
    BCryptGenRandom(NULL, out, (ULONG)size, BCRYPT_USE_SYSTEM_PREFERRED_RNG);
}

void cmd_sleep(double seconds) { Sleep((DWORD)(1000 * seconds)); }
void cmd_allow_connections(unsigned n) { (void)n; }

uint64_t cmd_memory_peak(void)
{
    PROCESS_MEMORY_COUNTERS counters;
    return GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters) ? counters.PeakWorkingSetSize : 0;
}

/* ---- standard input ---- */

/* What is no pipe is taken to be ready. */
bool cmd_input_is_ready(void)
{
    DWORD n = 0;
    return !PeekNamedPipe(GetStdHandle(STD_INPUT_HANDLE), NULL, 0, NULL, &n, NULL) || n > 0;
}

ptrdiff_t cmd_input_read(void *to, size_t size) { return _read(_fileno(stdin), to, (unsigned)size); }

/* ---- files ---- */

int cmd_columns(FILE *file)
{
    CONSOLE_SCREEN_BUFFER_INFO info;
    if (!GetConsoleScreenBufferInfo((HANDLE)_get_osfhandle(_fileno(file)), &info)) return 0;
    return info.srWindow.Right - info.srWindow.Left + 1;
}

bool cmd_path_exists(const char *path) { return GetFileAttributesA(path) != INVALID_FILE_ATTRIBUTES; }
void cmd_make_private(const char *folder) { (void)folder; }   /* a profile's folders are */

bool cmd_temporary_folder(char *path, size_t size)
{
    char base[MAX_PATH + 1];
    uint32_t random;
    DWORD n = GetTempPathA(sizeof base, base);
    cmd_random_bytes(&random, sizeof random);
    if (!n || n >= sizeof base) return false;
    int written = snprintf(path, size, "%speridot-%08x", base, random);
    return written >= 0 && (size_t)written < size && _mkdir(path) == 0;
}

FILE *cmd_memory_open(char **text, size_t *size)
{
    *text = NULL, *size = 0;
    return tmpfile();
}

bool cmd_memory_close(FILE *file, char **text, size_t *size)
{
    long n = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    *text = n >= 0 ? malloc((size_t)n + 1) : NULL;
    rewind(file);
    bool ok = *text && fread(*text, 1, (size_t)n, file) == (size_t)n;
    if (ok) (*text)[*size = (size_t)n] = 0;
    return fclose(file) == 0 && ok;
}

/* ---- signals: those of the C library, SIGINT and SIGTERM ---- */

static volatile sig_atomic_t held;

static void on_held(int number)
{
    signal(number, on_held);
    held = number;
}

void cmd_signals_catch(void (*handler)(int number))
{
    signal(SIGINT, handler);
    signal(SIGTERM, handler);
}

bool cmd_signal_is_pipe(int number)
{
    (void)number;
    return false;
}

void cmd_signals_hold(bool hold)
{
    if (hold) cmd_signals_catch(on_held);
}

bool cmd_signals_wait(double seconds)
{
    for (double end = cmd_now() + seconds; !held && cmd_now() < end;) Sleep(10);
    bool came = held != 0;
    held = 0;
    return came;
}

/* ---- sockets ---- */

bool cmd_socket_is_closed(int socket)
{
    WSAPOLLFD p = {.fd = (SOCKET)socket, .events = POLLRDNORM};
    return WSAPoll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLERR);
}

void cmd_socket_end(int socket) { shutdown((SOCKET)socket, SD_BOTH); }

/* ---- messages that someone types: the console edits lines ---- */

struct cmd_editor {
    char line[1 << 16];
};

void cmd_completions_add(struct cmd_completions *c, const char *text)
{
    char *copy = c->n < CMD_COMPLETIONS_MAX ? strdup(text) : NULL;
    if (copy) c->at[c->n++] = copy;
}

void cmd_completions_add_files(struct cmd_completions *c, const char *path) { (void)c, (void)path; }

peridot_status cmd_editor_open(struct cmd_editor **out, cmd_complete complete, void *user)
{
    (void)complete, (void)user;
    *out = calloc(1, sizeof **out);
    return *out ? PERIDOT_OK : cmd_fail_alloc(sizeof **out, "line editor");
}

void cmd_editor_close(struct cmd_editor *e) { free(e); }
void cmd_editor_echo(struct cmd_editor *e, bool shows) { (void)e, (void)shows; }

enum cmd_editor_state cmd_editor_ask(const char **answer, struct cmd_editor *e, const char *question)
{
    fputs(question, stdout);
    fflush(stdout);
    if (!fgets(e->line, sizeof e->line, stdin)) return cmd_interrupted() ? CMD_EDITOR_INTERRUPTED : CMD_EDITOR_END;
    e->line[strcspn(e->line, "\r\n")] = 0;
    *answer = e->line;
    return CMD_EDITOR_MESSAGE;
}

enum cmd_editor_state cmd_editor_read(const char **text, struct cmd_editor *e, const char *initial)
{
    (void)initial;
    return cmd_editor_ask(text, e, ">>> ");
}

/* ---- Hugging Face's cache, which takes links and locks ---- */

peridot_status hub_cache_open(struct hub_cache *out, const struct hub *hub)
{
    (void)out, (void)hub;
    return cmd_fail(PERIDOT_ERROR_UNSUPPORTED, "peridot pull does not run on Windows yet: give -m a file");
}

uint64_t hub_cache_missing(const struct hub_cache *cache, const struct hub_file *file)
{
    (void)cache;
    return file->size;
}

peridot_status hub_cache_check_room(const struct hub_cache *cache, uint64_t size)
{
    (void)cache, (void)size;
    return PERIDOT_ERROR_UNSUPPORTED;
}

peridot_status hub_cache_fetch(const struct hub_cache *cache, struct hub *hub, const struct hub_file *file,
                               struct hub_progress *progress)
{
    (void)cache, (void)hub, (void)file, (void)progress;
    return PERIDOT_ERROR_UNSUPPORTED;
}

peridot_status hub_cache_set_revision(const struct hub_cache *cache, const struct hub *hub)
{
    (void)cache, (void)hub;
    return PERIDOT_ERROR_UNSUPPORTED;
}

/* ---- programs that are tools, and servers of tools ---- */

peridot_status process_start(struct process *p, const struct process_params *params)
{
    *p = (struct process){0};
    return cmd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s is not started: on Windows only servers at a URL can be used so far",
                    cmd_shown(params->command[0]));
}

peridot_status process_write(struct process *p, const void *data, size_t size)
{
    (void)p, (void)data, (void)size;
    return PERIDOT_ERROR_UNSUPPORTED;
}

peridot_status process_step(struct process *p, double seconds)
{
    (void)p, (void)seconds;
    return PERIDOT_ERROR_UNSUPPORTED;
}

bool process_has_exited(const struct process *p)
{
    (void)p;
    return true;
}

void process_end_input(struct process *p) { (void)p; }

void process_close(struct process *p, double seconds, char how[64])
{
    (void)p, (void)seconds;
    if (how) how[0] = 0;
}
