/* The operating system under the command, where systems differ: os.c for POSIX, windows.c for Windows. */
#define _GNU_SOURCE   /* POLLRDHUP */
#include "base.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- the process ---- */

bool cmd_process_begin(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_WRONLY) != fd) return false;
    signal(SIGXFSZ, SIG_IGN);
    return true;
}

bool cmd_executable_path(char *path, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", path, size);
    if (n <= 0 || (size_t)n >= size) return false;
    path[n] = 0;
    return true;
}

static struct timespec to_timespec(double seconds)
{
    time_t whole = (time_t)seconds;
    return (struct timespec){.tv_sec = whole, .tv_nsec = (long)(1e9 * (seconds - (double)whole))};
}

void cmd_sleep(double seconds)
{
    const struct timespec time = to_timespec(seconds);
    nanosleep(&time, NULL);
}

void cmd_allow_connections(unsigned n)
{
    struct rlimit limit;
    signal(SIGPIPE, SIG_IGN);
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= 2 * n) return;
    limit.rlim_cur = (rlim_t)pd_min(limit.rlim_max, 2 * n);
    setrlimit(RLIMIT_NOFILE, &limit);
}

bool cmd_owns_window(void) { return false; }

/* ---- standard input ---- */

bool cmd_input_is_ready(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&input, 1, 0) != 0;
}

ptrdiff_t cmd_input_read(void *to, size_t size) { return read(STDIN_FILENO, to, size); }

bool cmd_output_is_gone(void) { return false; }

int cmd_columns(FILE *file)
{
    enum { UNKNOWN = 80 };
    struct winsize size;
    if (!isatty(fileno(file))) return 0;
    return ioctl(fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : UNKNOWN;
}

/* ---- files ---- */

/* A relative folder in XDG_CACHE_HOME or XDG_STATE_HOME is to be ignored. */
bool cmd_own_folder(char *path, size_t size, enum cmd_own own)
{
    static const struct { const char *variable, *below_home; } places[] = {
        [CMD_OWN_CACHE] = {"XDG_CACHE_HOME", ".cache"}, [CMD_OWN_STATE] = {"XDG_STATE_HOME", ".local/state"}};
    const char *given = getenv(places[own].variable), *home = getenv("HOME");
    int n = -1;
    if (given && given[0] == '/') n = snprintf(path, size, "%s/peridot", given);
    else if (home && home[0] == '/') n = snprintf(path, size, "%s/%s/peridot", home, places[own].below_home);
    return n >= 0 && (size_t)n < size;
}

const char cmd_list_separator[2] = ":";

bool cmd_path_exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

void cmd_make_private(const char *folder)
{
    struct stat st;
    if (lstat(folder, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && st.st_mode & 077)
        chmod(folder, 0700);
}

bool cmd_temporary_folder(char *path, size_t size)
{
    const char *base = getenv("TMPDIR");
    int n = snprintf(path, size, "%s/peridot-XXXXXX", base && *base ? base : "/tmp");
    return n >= 0 && (size_t)n < size && mkdtemp(path);
}

FILE *cmd_memory_open(char **text, size_t *size) { return open_memstream(text, size); }

bool cmd_memory_close(FILE *file, char **text, size_t *size)
{
    (void)text, (void)size;
    return fclose(file) == 0;
}

/* ---- signals ---- */

void cmd_signals_catch(void (*handler)(int number))
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU,
                                  SIGVTALRM, SIGPROF};
    struct sigaction action, present;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    sigfillset(&action.sa_mask);
    for (size_t i = 0; i < PD_COUNT(numbers); i++)
        if (sigaction(numbers[i], NULL, &present) == 0 && present.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
}

void cmd_signal_end(int number)
{
    signal(number, SIG_DFL);
    raise(number);   /* within a handler pending until it returns */
}

void cmd_alarm(unsigned seconds) { alarm(seconds); }

bool cmd_signal_is_pipe(int number) { return number == SIGPIPE; }

static void ending_signals(sigset_t *out)
{
    sigemptyset(out);
    sigaddset(out, SIGINT);
    sigaddset(out, SIGTERM);
    sigaddset(out, SIGHUP);
    sigaddset(out, SIGQUIT);
}

void cmd_signals_hold(bool hold)
{
    sigset_t signals;
    ending_signals(&signals);
    pthread_sigmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &signals, NULL);
}

bool cmd_thread_begin(pthread_t *out, void *(*run)(void *user), void *user)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    bool begun = pthread_create(out, NULL, run, user) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return begun;
}

bool cmd_signals_wait(double seconds)
{
    const struct timespec time = to_timespec(seconds);
    sigset_t signals;
    ending_signals(&signals);
    return sigtimedwait(&signals, NULL, &time) > 0;
}

/* ---- sockets ---- */

bool cmd_socket_is_closed(int socket)
{
    struct pollfd p = {.fd = socket, .events = POLLRDHUP};
    return poll(&p, 1, 0) > 0 && p.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

void cmd_socket_end(int socket) { shutdown(socket, SHUT_RDWR); }

peridot_status cmd_socket_inherited(int *out)
{
    enum { FIRST = 3 };
    const char *pid = getenv("LISTEN_PID"), *n = getenv("LISTEN_FDS");
    char own[24];
    int listens = 0;
    socklen_t size = sizeof listens;
    *out = -1;
    snprintf(own, sizeof own, "%ld", (long)getpid());
    if (!pid || !n || strcmp(pid, own) != 0) return PERIDOT_OK;
    if (strcmp(n, "1") != 0)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "LISTEN_FDS: one socket is needed, and no other");
    if (getsockopt(FIRST, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || !listens)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "LISTEN_FDS: descriptor 3 is no socket that listens");
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    fcntl(FIRST, F_SETFD, FD_CLOEXEC);
    *out = FIRST;
    return PERIDOT_OK;
}
