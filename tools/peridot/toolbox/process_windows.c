/* toolbox_.h for Windows: a program leads a process group and a job of its own, and inherits its three pipes alone.
 * Batch files are refused, as a shell would take their arguments apart. */
#include "toolbox_.h"
#include "../base/base.h"
#include "../console/console.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <windows.h>

#define TERM_SECONDS 2.0   /* from the event that it may handle to the end */
#define POLL_SECONDS 0.005

enum { TO_IT, FROM_IT, ERRORS, PIECE = 4096, COMMAND_SIZE = 32768 };

static void close_handle(void **handle)
{
    if (*handle) CloseHandle(*handle);
    *handle = NULL;
}

/* ---- starting ---- */

/* A pipe for each standard stream: theirs[i] becomes stream i of the program. A write to ours does not wait. */
static bool open_pipes(void *ours[3], void *theirs[3])
{
    SECURITY_ATTRIBUTES inherited = {.nLength = sizeof inherited, .bInheritHandle = TRUE};
    DWORD mode = PIPE_NOWAIT;
    for (int i = TO_IT; i <= ERRORS; i++) {
        HANDLE ends[2];
        if (!CreatePipe(&ends[0], &ends[1], &inherited, 1 << 16)) return false;
        ours[i] = ends[i == TO_IT];
        theirs[i] = ends[i != TO_IT];
        if (!SetHandleInformation(ours[i], HANDLE_FLAG_INHERIT, 0)) return false;
    }
    return SetNamedPipeHandleState(ours[TO_IT], &mode, NULL, NULL);
}

/* As a program takes its command line apart: backslashes count double before a quotation mark. */
static bool add_argument(char *line, size_t *n, const char *argument)
{
    size_t size = strlen(argument), backslashes = 0;
    if (*n + 2 * size + 4 > COMMAND_SIZE) return false;
    if (*n) line[(*n)++] = ' ';
    line[(*n)++] = '"';
    for (const char *c = argument;; c++) {
        if (*c == '\\') backslashes++;
        else {
            if (*c == '"' || !*c)
                for (size_t more = backslashes + (*c == '"'); more; more--) line[(*n)++] = '\\';
            backslashes = 0;
        }
        if (!*c) break;
        line[(*n)++] = *c;
    }
    line[(*n)++] = '"';
    line[*n] = 0;
    return true;
}

static bool make_command(char line[COMMAND_SIZE], const char *const *command)
{
    size_t n = 0;
    for (; *command; command++)
        if (!add_argument(line, &n, *command)) return false;
    return true;
}

/* In PATH, and not in the present folder, unless the name has one. */
static bool find_program(char path[MAX_PATH], const char *name)
{
    const char *folders = strpbrk(name, "/\\:") ? NULL : getenv("PATH");
    DWORD n = SearchPathA(folders, name, ".exe", MAX_PATH, path, NULL);
    if (n == 0 || n >= MAX_PATH) return false;
    return n < 4 || (strcasecmp(path + n - 4, ".bat") != 0 && strcasecmp(path + n - 4, ".cmd") != 0);
}

static bool is_set_by(const char *const *env, const char *variable)
{
    size_t size = strcspn(variable, "=") + 1;
    for (; env && *env; env++)
        if (strncasecmp(*env, variable, size) == 0) return true;
    return false;
}

/* Those that are inherited, and `env`: texts one behind the other, and an empty one. */
static char *make_environment(const char *const *env)
{
    char *inherited = GetEnvironmentStringsA(), *out = NULL;
    size_t size = 2, n = 0;
    for (const char *at = inherited; at && *at; at += strlen(at) + 1) size += strlen(at) + 1;
    for (const char *const *at = env; at && *at; at++) size += strlen(*at) + 1;
    if (inherited) out = calloc(1, size);
    for (const char *at = inherited; out && *at; at += strlen(at) + 1)
        if (!is_set_by(env, at)) n += (size_t)sprintf(out + n, "%s", at) + 1;
    for (const char *const *at = env; out && at && *at; at++) n += (size_t)sprintf(out + n, "%s", *at) + 1;
    if (inherited) FreeEnvironmentStringsA(inherited);
    return out;
}

/* Of what could be inherited, only these. */
static bool set_inherited(STARTUPINFOEXA *start, void *theirs[3])
{
    SIZE_T size = 0;
    InitializeProcThreadAttributeList(NULL, 1, 0, &size);
    start->lpAttributeList = malloc(size);
    return start->lpAttributeList && InitializeProcThreadAttributeList(start->lpAttributeList, 1, 0, &size)
        && UpdateProcThreadAttribute(start->lpAttributeList, 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST, theirs,
                                     3 * sizeof *theirs, NULL, NULL);
}

/* All that the program starts ends with the job. */
static void *make_job(HANDLE process)
{
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {
        .BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE};
    HANDLE job = CreateJobObjectA(NULL, NULL);
    if (job && SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof limits)
        && AssignProcessToJobObject(job, process)) return job;
    if (job) CloseHandle(job);
    return NULL;
}

static bool spawn(struct process *p, void *theirs[3], const struct process_params *params, const char *path, char *env)
{
    static const DWORD flags = CREATE_NEW_PROCESS_GROUP | CREATE_SUSPENDED | EXTENDED_STARTUPINFO_PRESENT;
    STARTUPINFOEXA start = {.StartupInfo = {.cb = sizeof start, .dwFlags = STARTF_USESTDHANDLES,
        .hStdInput = theirs[TO_IT], .hStdOutput = theirs[FROM_IT], .hStdError = theirs[ERRORS]}};
    PROCESS_INFORMATION made;
    char *line = malloc(COMMAND_SIZE);
    bool ok = line && make_command(line, params->command) && set_inherited(&start, theirs)
        && CreateProcessA(path, line, NULL, NULL, TRUE, flags, env, params->cwd, &start.StartupInfo, &made);
    free(start.lpAttributeList);
    free(line);
    if (!ok) return false;
    p->pid = (int)made.dwProcessId;
    p->program = made.hProcess;
    p->job = make_job(made.hProcess);
    ResumeThread(made.hThread);
    CloseHandle(made.hThread);
    return true;
}

peridot_status process_start(struct process *p, const struct process_params *params)
{
    void *theirs[3] = {NULL};
    char path[MAX_PATH];
    *p = (struct process){.max_output = params->max_output};
    if (!find_program(path, params->command[0]))
        return pd_fail(PERIDOT_ERROR_IO, "%s cannot be started: there is no such program, or it is a batch file",
                       cmd_shown(params->command[0]));
    char *env = make_environment(params->env);
    bool ok = env && open_pipes(p->streams, theirs) && spawn(p, theirs, params, path, env);
    DWORD error = GetLastError();
    for (int i = TO_IT; i <= ERRORS; i++) close_handle(&theirs[i]);
    free(env);
    if (ok) return PERIDOT_OK;
    for (int i = TO_IT; i <= ERRORS; i++) close_handle(&p->streams[i]);
    return pd_fail(PERIDOT_ERROR_IO, "%s cannot be started%s%s: error %lu of Windows", cmd_shown(params->command[0]),
                   params->cwd ? " in " : "", params->cwd ? cmd_shown(params->cwd) : "", error);
}

/* ---- streams ---- */

peridot_status process_write(struct process *p, const void *data, size_t size)
{
    return pd_buffer_add(&p->input, data, size);
}

void process_end_input(struct process *p)
{
    p->ends_input = true;
    if (p->input.size == 0) close_handle(&p->streams[TO_IT]);
}

/* What nobody reads is lost: why it went is in what it wrote itself. A piece that has no room is written later. */
static bool write_some(struct process *p)
{
    DWORD n = 0;
    if (!p->streams[TO_IT] || !p->input.size) return false;
    bool ok = WriteFile(p->streams[TO_IT], p->input.data, (DWORD)pd_min(p->input.size, PIECE), &n, NULL);
    if (ok && n == 0) return false;
    pd_buffer_drop(&p->input, ok ? n : p->input.size);
    if (!ok || (p->ends_input && p->input.size == 0)) close_handle(&p->streams[TO_IT]);
    return true;
}

static peridot_status process_windows_read_some(bool *any, struct process *p, int stream,
                                                peridot_status (*keep)(struct process *p, const char *data,
                                                                       size_t size))
{
    char data[PIECE];
    DWORD n = 0;
    if (!p->streams[stream]) return PERIDOT_OK;
    bool open = PeekNamedPipe(p->streams[stream], NULL, 0, NULL, &n, NULL);
    if (open && n == 0) return PERIDOT_OK;
    *any = true;
    if (open && ReadFile(p->streams[stream], data, sizeof data, &n, NULL) && n) {
        p->n_read += n;
        return keep(p, data, n);
    }
    close_handle(&p->streams[stream]);
    p->output_has_ended = !p->streams[FROM_IT];
    p->has_ended = !p->streams[FROM_IT] && !p->streams[ERRORS];
    return PERIDOT_OK;
}

/* Pipes cannot be waited for: it looks again and again. */
peridot_status process_step(struct process *p, double seconds)
{
    for (double end = pd_now() + seconds;;) {
        bool any = write_some(p);
        PD_TRY(process_windows_read_some(&any, p, FROM_IT, process_keep_output));
        PD_TRY(process_windows_read_some(&any, p, ERRORS, process_keep_errors));
        if (any || pd_now() >= end || cmd_interrupted()) return PERIDOT_OK;
        cmd_sleep(POLL_SECONDS);
    }
}

/* ---- the end ---- */

static bool exits_within(const struct process *p, double seconds)
{
    return WaitForSingleObject(p->program, (DWORD)(1000 * seconds)) == WAIT_OBJECT_0;
}

bool process_has_exited(const struct process *p) { return exits_within(p, 0); }

void process_end_rest(struct process *p)
{
    if (p->job) TerminateJobObject(p->job, 1);
}

static void end_group(const struct process *p)
{
    GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, (DWORD)p->pid);
    exits_within(p, TERM_SECONDS);
    if (p->job) TerminateJobObject(p->job, 1);
    else TerminateProcess(p->program, 1);
    exits_within(p, TERM_SECONDS);
}

void process_close(struct process *p, double seconds, char how[64])
{
    DWORD status = 0;
    if (how) how[0] = 0;
    for (int i = TO_IT; i <= ERRORS; i++) close_handle(&p->streams[i]);
    if (p->program) {
        if (!exits_within(p, seconds)) end_group(p);
        GetExitCodeProcess(p->program, &status);
        if (status && how) snprintf(how, 64, "ended with status %lu", status);
    }
    close_handle(&p->job), close_handle(&p->program);
    p->pid = 0;
    pd_buffer_free(&p->input);
}
