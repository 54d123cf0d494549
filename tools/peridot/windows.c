/* What base, models and console ask of the system, for Windows; the editor without libedit. Wine runs it (.ci/windows);
 * no Windows machine has been at hand. Paths, arguments and consoles are in UTF-8 (windows.manifest). */
#include <winsock2.h>   /* before windows.h */

#include "base/base.h"
#include "console/console.h"
#include "models/models.h"

#include <errno.h>
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

/* ---- the process ---- */

/* Where other programs look for HOME, too, and the folders of models are below it. */
static void set_home(void)
{
    const char *home = getenv("HOME"), *profile = getenv("USERPROFILE");
    char *copy = (!home || !*home) && profile && *profile ? strdup(profile) : NULL;
    if (!copy) return;
    pd_path_clean(copy);
    _putenv_s("HOME", copy);
    free(copy);
}

/* Old consoles know colours when they are told to. */
static void prepare_console(DWORD handle)
{
    DWORD mode;
    HANDLE console = GetStdHandle(handle);
    if (GetConsoleMode(console, &mode)) SetConsoleMode(console, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
}

/* Standard output has a buffer, as the console would not put the bytes of a character together. */
bool cmd_process_begin(void)
{
    static char buffer[1 << 16];
    _setmode(_fileno(stdin), _O_BINARY);
    _setmode(_fileno(stdout), _O_BINARY);
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    SetConsoleCP(CP_UTF8);
    SetConsoleOutputCP(CP_UTF8);
    prepare_console(STD_OUTPUT_HANDLE);
    prepare_console(STD_ERROR_HANDLE);
    set_home();
    return true;
}

bool cmd_executable_path(char *path, size_t size)
{
    DWORD n = GetModuleFileNameA(NULL, path, (DWORD)size);
    if (n) pd_path_clean(path);
    return n > 0 && n < size;
}

void cmd_sleep(double seconds) { Sleep((DWORD)(1000 * seconds)); }
void cmd_allow_connections(unsigned n) { (void)n; }

bool cmd_owns_window(void)
{
    DWORD processes[2];
    return GetConsoleProcessList(processes, 2) == 1 && _isatty(_fileno(stdin)) && _isatty(_fileno(stdout));
}

/* ---- standard input ---- */

/* What is no pipe is taken to be ready. */
bool cmd_input_is_ready(void)
{
    DWORD n = 0;
    return !PeekNamedPipe(GetStdHandle(STD_INPUT_HANDLE), NULL, 0, NULL, &n, NULL) || n > 0;
}

ptrdiff_t cmd_input_read(void *to, size_t size) { return _read(_fileno(stdin), to, (unsigned)size); }

/* What else would a pipe fail for? */
bool cmd_output_is_gone(void) { return GetFileType(GetStdHandle(STD_OUTPUT_HANDLE)) == FILE_TYPE_PIPE; }

/* ---- files ---- */

int cmd_columns(FILE *file)
{
    CONSOLE_SCREEN_BUFFER_INFO info;
    if (!GetConsoleScreenBufferInfo((HANDLE)_get_osfhandle(_fileno(file)), &info)) return 0;
    return info.srWindow.Right - info.srWindow.Left + 1;
}

const char cmd_list_separator[2] = ";";

/* An absolute folder in XDG_CACHE_HOME or XDG_STATE_HOME comes first here, too. */
bool cmd_own_folder(char *path, size_t size, enum cmd_own own)
{
    const char *given = getenv(own == CMD_OWN_CACHE ? "XDG_CACHE_HOME" : "XDG_STATE_HOME");
    const char *local = getenv("LOCALAPPDATA");
    bool absolute = given && given[0] && (given[1] == ':' || strchr("/\\", given[0]));
    int n = absolute || (local && *local) ? snprintf(path, size, "%s/peridot", absolute ? given : local) : -1;
    if (n > 0 && (size_t)n < size) pd_path_clean(path);
    return n > 0 && (size_t)n < size;
}

bool cmd_path_exists(const char *path) { return GetFileAttributesA(path) != INVALID_FILE_ATTRIBUTES; }
void cmd_make_private(const char *folder) { (void)folder; }   /* a profile's folders are */

bool cmd_temporary_folder(char *path, size_t size)
{
    char base[MAX_PATH + 1];
    uint32_t random;
    DWORD n = GetTempPathA(sizeof base, base);
    pd_random_bytes(&random, sizeof random);
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

/* ---- signals: Ctrl-C is SIGINT, and what closes the window or ends the session SIGTERM ---- */

static void (*on_signal)(int number);

/* In a thread of its own. When a window closes the system ends the process once this returns, and after some seconds
 * anyhow: until then the command can end by itself. */
static BOOL WINAPI on_event(DWORD event)
{
    if (!on_signal) return FALSE;
    on_signal(event == CTRL_C_EVENT ? SIGINT : SIGTERM);
    if (event != CTRL_C_EVENT && event != CTRL_BREAK_EVENT) Sleep(INFINITE);
    return TRUE;
}

void cmd_signals_catch(void (*handler)(int number))
{
    if (!on_signal) SetConsoleCtrlHandler(on_event, TRUE);
    on_signal = handler;
}

/* With the status by which cmd.exe knows that a batch file is to end, too. */
void cmd_signal_end(int number)
{
    fflush(NULL);
    ExitProcess(number == SIGINT ? (UINT)STATUS_CONTROL_C_EXIT : 128 + (UINT)number);
}

static volatile sig_atomic_t held;

static void on_held(int number) { held = number; }

void cmd_alarm(unsigned seconds) { (void)seconds; }

bool cmd_signal_is_pipe(int number)
{
    (void)number;
    return false;
}

void cmd_signals_hold(bool hold)
{
    if (hold) cmd_signals_catch(on_held);
}

bool cmd_thread_begin(pthread_t *out, void *(*run)(void *user), void *user)
{
    return pthread_create(out, NULL, run, user) == 0;
}

bool cmd_signals_wait(double seconds)
{
    for (double end = pd_now() + seconds; !held && pd_now() < end;) Sleep(10);
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

peridot_status cmd_socket_inherited(int *out)
{
    *out = -1;
    return PERIDOT_OK;
}

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

peridot_status cmd_editor_open(struct cmd_editor **out, cmd_completer complete, void *user)
{
    (void)complete, (void)user;
    *out = calloc(1, sizeof **out);
    return *out ? PERIDOT_OK : pd_fail_alloc(sizeof **out, "line editor");
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

/* ---- files of Hugging Face's cache ---- */

/* errno as the system's last error. */
static bool set_errno(bool ok)
{
    DWORD error = ok ? 0 : GetLastError();
    if (!ok)
        errno = error == ERROR_ACCESS_DENIED || error == ERROR_SHARING_VIOLATION ? EACCES
              : error == ERROR_DISK_FULL ? ENOSPC
              : error == ERROR_FILE_NOT_FOUND || error == ERROR_PATH_NOT_FOUND ? ENOENT : EIO;
    return ok;
}

bool cache_make_folder(const char *path) { return _mkdir(path) == 0 || errno == EEXIST; }

int cache_open(const char *path) { return _open(path, _O_RDWR | _O_CREAT | _O_BINARY, _S_IREAD | _S_IWRITE); }

bool cache_sync(int fd) { return _commit(fd) == 0; }

bool cache_move(const char *from, const char *to)
{
    return set_errno(MoveFileExA(from, to, MOVEFILE_REPLACE_EXISTING));
}

/* Symbolic links take a right that few users have: the file gets a second name, or on disks without these a copy. */
bool cache_link(const char *path, const char *target, const char *blob)
{
    enum { FLAGS = 2 };   /* SYMBOLIC_LINK_FLAG_ALLOW_UNPRIVILEGED_CREATE, which headers of Windows 7 lack */
    (void)target;
    DeleteFileA(path);
    return CreateHardLinkA(path, blob, NULL) || CreateSymbolicLinkA(path, blob, FLAGS)
        || set_errno(CopyFileA(blob, path, FALSE));
}

bool cache_space(uint64_t *left, const char *folder)
{
    ULARGE_INTEGER available;
    bool ok = set_errno(GetDiskFreeSpaceExA(folder, &available, NULL, NULL));
    *left = ok ? available.QuadPart : 0;
    return ok;
}

/* Nobody else can open it until it is closed. */
enum cache_lock cache_lock(int *fd, const char *path)
{
    HANDLE file = CreateFileA(path, GENERIC_READ | GENERIC_WRITE, 0, NULL, OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL, NULL);
    if (file == INVALID_HANDLE_VALUE && GetLastError() == ERROR_SHARING_VIOLATION) return CACHE_BUSY;
    if (!set_errno(file != INVALID_HANDLE_VALUE)) return CACHE_FAILED;
    *fd = _open_osfhandle((intptr_t)file, _O_RDWR | _O_BINARY);
    return *fd < 0 ? CACHE_FAILED : CACHE_HELD;
}

struct cmd_hash {
    BCRYPT_HASH_HANDLE handle;
    ULONG size;
};

struct cmd_hash *cmd_hash_begin(bool sha256)
{
    struct cmd_hash *hash = calloc(1, sizeof *hash);
    BCRYPT_ALG_HANDLE algorithm;
    const wchar_t *name = sha256 ? BCRYPT_SHA256_ALGORITHM : BCRYPT_SHA1_ALGORITHM;
    if (hash && BCryptOpenAlgorithmProvider(&algorithm, name, NULL, 0) == 0) {
        NTSTATUS status = BCryptCreateHash(algorithm, &hash->handle, NULL, 0, NULL, 0, 0);
        hash->size = sha256 ? 32 : 20;
        if (status == 0) return hash;   /* the algorithm stays open: there are two */
        BCryptCloseAlgorithmProvider(algorithm, 0);
    }
    free(hash);
    return NULL;
}

void cmd_hash_add(struct cmd_hash *hash, const void *data, size_t size)
{
    BCryptHashData(hash->handle, (PUCHAR)data, (ULONG)size, 0);
}

void cmd_hash_end(struct cmd_hash *hash, unsigned char out[32])
{
    if (hash && out) BCryptFinishHash(hash->handle, out, hash->size, 0);
    if (hash) BCryptDestroyHash(hash->handle);
    free(hash);
}
