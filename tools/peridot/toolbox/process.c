/* A program that runs beside this one, with its three standard streams: those of tools, and servers that speak on them.
 * It is never started by a shell, leads a process group of its own, and is ended with that and all else that it
 * started. process.c is for POSIX, process_windows.c for Windows. */
#define _GNU_SOURCE   /* pipe2, posix_spawn_file_actions_addchdir_np and addclosefrom_np */
#include "../base/base.h"
#include "toolbox_.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/prctl.h>
#endif

#define TERM_SECONDS 2.0   /* from the signal that it may handle to the one that it may not */

/* What a program starts may leave its group (setsid), and is nobody's child when its parent ends: then this process
 * adopts it, where the system has that (Linux), finds it among its children and ends it. Whose it is a variable of its
 * environment says; what has none is taken for that of the program that ends first of those that it is younger than. */
static const char mark_name[] = "PERIDOT_PROCESS=";
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct process *running;   /* under the lock, as are all starts of programs and ends of what they started */

/* ---- starting ---- */

static void close_stream(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

/* A pipe for each standard stream: theirs[i] becomes stream i of the program. */
static bool open_pipes(int ours[3], int theirs[3])
{
    for (int i = 0; i < 3; i++) ours[i] = theirs[i] = -1;
    for (int i = 0; i < 3; i++) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) return false;
        ours[i] = ends[i == 0];
        theirs[i] = ends[i != 0];
        if (fcntl(ours[i], F_SETFL, O_NONBLOCK) != 0) return false;
    }
    return true;
}

static bool is_set_by(const char *const *env, const char *variable)
{
    size_t size = strcspn(variable, "=") + 1;
    for (; env && *env; env++)
        if (strncmp(*env, variable, size) == 0) return true;
    return false;
}

/* Those that are inherited, `env`, and the mark. *out is the caller's; its texts are borrowed. */
static peridot_status make_environment(char ***out, const char *const *env, char *mark)
{
    size_t n = 2, k = 0;
    for (char **at = environ; at && *at; at++) n++;
    for (const char *const *at = env; at && *at; at++) n++;
    *out = malloc(n * sizeof **out);
    if (!*out) return pd_fail_alloc(n * sizeof **out, "environment");
    for (char **at = environ; at && *at; at++)
        if (!is_set_by(env, *at) && strncmp(*at, mark_name, sizeof mark_name - 1) != 0) (*out)[k++] = *at;
    for (const char *const *at = env; at && *at; at++) (*out)[k++] = (char *)(uintptr_t)*at;
    (*out)[k++] = mark;
    (*out)[k] = NULL;
    return PERIDOT_OK;
}

/* Of posix_spawn: in a group of its own, with the signals as they are by default. */
static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int error = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF |
                                                         POSIX_SPAWN_SETSIGMASK);
    if (!error) error = posix_spawnattr_setpgroup(attributes, 0);
    if (!error) error = posix_spawnattr_setsigdefault(attributes, &all);
    return error ? error : posix_spawnattr_setsigmask(attributes, &none);
}

#if defined __GLIBC__ && defined __GLIBC_PREREQ
#if !__GLIBC_PREREQ(2, 34)   /* Debian 11: closes what is open now; what another thread then opens closes on exec */
static int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int from)
{
    DIR *folder = opendir("/proc/self/fd");
    int error = folder ? 0 : errno;
    for (struct dirent *entry; !error && (entry = readdir(folder));) {
        int fd = atoi(entry->d_name);
        if (fd >= from) error = posix_spawn_file_actions_addclose(actions, fd);
    }
    if (folder) closedir(folder);
    return error;
}
#endif
#endif

static int set_actions(posix_spawn_file_actions_t *actions, const int theirs[3], const char *cwd)
{
    int error = cwd ? posix_spawn_file_actions_addchdir_np(actions, cwd) : 0;
    for (int i = 0; i < 3 && !error; i++) error = posix_spawn_file_actions_adddup2(actions, theirs[i], i);
    return error ? error : posix_spawn_file_actions_addclosefrom_np(actions, 3);
}

static int spawn(int *pid, const int theirs[3], const struct process_params *params, char **env)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    pid_t made = 0;
    int error = posix_spawn_file_actions_init(&actions);
    if (error) return error;
    error = posix_spawnattr_init(&attributes);
    if (!error) {
        error = set_attributes(&attributes);
        if (!error) error = set_actions(&actions, theirs, params->cwd);
        if (!error) error = posix_spawnp(&made, params->command[0], &actions, &attributes,
                                         (char *const *)(uintptr_t)params->command, env);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    *pid = made;
    return error;
}

/* Of a process: its parent, and when it began. */
static bool read_origin(int *parent, unsigned long long *begun, int pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file) fclose(file);
    text[n] = 0;
    const char *name_end = strrchr(text, ')');   /* fields 4 and 22 of proc_pid_stat(5) */
    return name_end && sscanf(name_end + 1, " %*c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
                              " %*s %llu", parent, begun) == 2;
}

/* Under the lock, so that nobody takes the program for what another one started. */
static int spawn_known(struct process *p, const int theirs[3], const struct process_params *params, char **env)
{
    int parent;
#ifdef PR_SET_CHILD_SUBREAPER
    prctl(PR_SET_CHILD_SUBREAPER, 1);
#endif
    pthread_mutex_lock(&lock);
    int error = spawn(&p->pid, theirs, params, env);
    if (!error) {
        if (!read_origin(&parent, &p->begun, p->pid)) p->begun = ULLONG_MAX;
        p->next = running;
        running = p;
    }
    pthread_mutex_unlock(&lock);
    return error;
}

peridot_status process_start(struct process *p, const struct process_params *params)
{
    static atomic_uint last;
    int ours[3], theirs[3], error = 0;
    char **env;
    *p = (struct process){.in = -1, .out = -1, .err = -1, .max_output = params->max_output};
    snprintf(p->mark, sizeof p->mark, "%s%d.%u", mark_name, (int)getpid(), ++last);
    PD_TRY(make_environment(&env, params->env, p->mark));
    if (!open_pipes(ours, theirs)) error = errno;
    else error = spawn_known(p, theirs, params, env);
    for (int i = 0; i < 3; i++) close_stream(&theirs[i]);
    free(env);
    if (!error) {
        p->in = ours[0], p->out = ours[1], p->err = ours[2];
        return PERIDOT_OK;
    }
    for (int i = 0; i < 3; i++) close_stream(&ours[i]);
    return pd_fail(PERIDOT_ERROR_IO, "%s cannot be started%s%s: %s", cmd_shown(params->command[0]),
                   params->cwd ? " in " : "", params->cwd ? cmd_shown(params->cwd) : "", strerror(error));
}

/* ---- streams ---- */

peridot_status process_write(struct process *p, const void *data, size_t size)
{
    return pd_buffer_add(&p->input, data, size);
}

void process_end_input(struct process *p)
{
    p->ends_input = true;
    if (p->input.size == 0) close_stream(&p->in);
}

/* As write; a reader that is gone is EPIPE, and no signal, which would end this program. */
static ssize_t write_quietly(int fd, const void *data, size_t size)
{
    static const struct timespec now = {0};
    sigset_t pipe_signal, before;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    ssize_t n = write(fd, data, size);
    int error = errno;
    if (n < 0 && error == EPIPE) sigtimedwait(&pipe_signal, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return n;
}

static bool is_for_later(int error) { return error == EAGAIN || error == EINTR; }

/* What nobody reads is lost: why it went is in what it wrote itself. */
static void write_some(struct process *p)
{
    ssize_t n = write_quietly(p->in, p->input.data, p->input.size);
    if (n < 0 && is_for_later(errno)) return;
    pd_buffer_drop(&p->input, n < 0 ? p->input.size : (size_t)n);
    if (n < 0 || (p->ends_input && p->input.size == 0)) close_stream(&p->in);
}

static peridot_status process_read_some(struct process *p, int *fd,
                                        peridot_status (*keep)(struct process *p, const char *data, size_t size))
{
    char data[1 << 14];
    ssize_t n = read(*fd, data, sizeof data);
    if (n < 0 && is_for_later(errno)) return PERIDOT_OK;
    if (n > 0) {
        p->n_read += (size_t)n;
        return keep(p, data, (size_t)n);
    }
    close_stream(fd);
    p->output_has_ended = p->out < 0;
    p->has_ended = p->out < 0 && p->err < 0;
    return PERIDOT_OK;
}

peridot_status process_step(struct process *p, double seconds)
{
    struct pollfd streams[3] = {{.fd = p->input.size ? p->in : -1, .events = POLLOUT},
                                {.fd = p->out, .events = POLLIN}, {.fd = p->err, .events = POLLIN}};
    if (poll(streams, 3, (int)(1000 * seconds)) <= 0) return PERIDOT_OK;
    if (streams[0].revents) write_some(p);
    if (streams[1].revents) PD_TRY(process_read_some(p, &p->out, process_keep_output));
    return streams[2].revents ? process_read_some(p, &p->err, process_keep_errors) : PERIDOT_OK;
}

/* ---- the end ---- */

/* It stays a zombie until process_close, so that its id, and its group's, are nobody else's. */
bool process_has_exited(const struct process *p)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
}

static bool exits_within(const struct process *p, double seconds)
{
    for (double end = pd_now() + seconds; !process_has_exited(p);) {
        if (pd_now() >= end) return false;
        cmd_sleep(0.005);
    }
    return true;
}

/* Which of those that run a process comes from, as it says; NULL: it does not say, or it comes from none. */
static const struct process *find_source(int pid)
{
    const struct process *source = NULL;
    char path[64], *variable = NULL;
    size_t size = 0;
    snprintf(path, sizeof path, "/proc/%d/environ", pid);
    FILE *file = fopen(path, "re");
    while (file && !source && getdelim(&variable, &size, 0, file) > 0)
        for (source = running; source && strcmp(source->mark, variable) != 0;) source = source->next;
    if (file) fclose(file);
    free(variable);
    return source;
}

static bool is_running(int pid)
{
    const struct process *p = running;
    while (p && p->pid != pid) p = p->next;
    return p != NULL;
}

/* Under the lock. A child has its number until it is waited for, so that no other is meant. */
static bool end_if_from(const struct process *p, int pid)
{
    int parent;
    unsigned long long begun;
    if (!read_origin(&parent, &begun, pid) || parent != getpid() || is_running(pid)) return false;
    const struct process *source = find_source(pid);
    if (source ? source != p : begun < p->begun) return false;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, WNOHANG);
    return true;
}

/* False: there was none. */
static bool end_adopted(const struct process *p)
{
    bool any = false;
    pthread_mutex_lock(&lock);
    DIR *dir = opendir("/proc");
    for (const struct dirent *e; dir && (e = readdir(dir)) != NULL;)
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9') any |= end_if_from(p, atoi(e->d_name));
    if (dir) closedir(dir);
    pthread_mutex_unlock(&lock);
    return any;
}

/* Each that ends may leave others. */
void process_end_rest(struct process *p)
{
    kill(-p->pid, SIGKILL);
    for (double end = pd_now() + TERM_SECONDS; end_adopted(p) && pd_now() < end;) cmd_sleep(0.002);
}

static void end_group(const struct process *p)
{
    kill(-p->pid, SIGTERM);
    exits_within(p, TERM_SECONDS);
    kill(-p->pid, SIGKILL);
    kill(p->pid, SIGKILL);   /* it may have gone to another group */
    exits_within(p, TERM_SECONDS);
}

/* Which frees its number. */
static int wait_for(struct process *p)
{
    int status = 0;
    pthread_mutex_lock(&lock);
    struct process **at = &running;
    while (*at != p) at = &(*at)->next;
    *at = p->next;
    while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR) {}
    pthread_mutex_unlock(&lock);
    return status;
}

void process_close(struct process *p, double seconds, char how[64])
{
    char unused[64];
    if (!how) how = unused;
    how[0] = 0;
    if (p->pid) {
        close_stream(&p->in), close_stream(&p->out), close_stream(&p->err);
        if (!exits_within(p, seconds)) end_group(p);
        process_end_rest(p);
        int status = wait_for(p);
        if (WIFSIGNALED(status)) snprintf(how, 64, "was ended by signal %d", WTERMSIG(status));
        else if (WEXITSTATUS(status)) snprintf(how, 64, "ended with status %d", WEXITSTATUS(status));
    }
    p->pid = 0;
    pd_buffer_free(&p->input);
}
