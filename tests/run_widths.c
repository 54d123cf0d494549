/* run_widths [--thorough] [PART/PARTS] [KERNEL...] LANES:GPU...: the self-test of kernels whose names begin so (all, or
 * every PARTS-th from PART) on llvmpipe as the GPUs would run it (PERIDOT_TEST_GPU, layer_faults.c), with subgroups of
 * LANES where pipelines require no other size. Cases of which all pipelines were run for a GPU before are left out.
 * Drivers may crash at wide subgroups, so each kernel has a process of its own, where llvmpipe compiles without
 * optimizing (GALLIVM_PERF=nopt), which takes a third of the time. A case that ends the process, or takes longer than
 * two minutes of processor time, or ten times that, is tried again in another that does optimize, and so is one that is
 * wrong; the cases after it go on in a third. Prints a row for each pipeline that was dispatched: kernel, constants,
 * lanes, what came of it and the GPUs that take it.
 *   right      in all cases
 *   optimized  in all cases, in some only so
 *   driver     in none: the driver crashed
 *   wrong      in a case, either way
 * stderr says which cases crashed or were wrong; a kernel's second wrong case is its last. The exit status is 1 where a
 * pipeline was wrong. */
#define _POSIX_C_SOURCE 200809L
#include "gpu/gpu_.h"
#include "selftest/selftest.h"
#include "selftest/selftest_.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_PIPELINES = 8192, CASE_SECONDS = 120, LANE_BITS = 32, MAX_WRONG = 2 };

/* ---- the table ---- */

enum outcome { NONE, RIGHT, OPTIMIZED, DRIVER, WRONG };

static struct pipeline {
    char *text;                /* kernel, constants and lanes */
    enum outcome outcome;
    uint32_t gpus;             /* bits */
} pipelines[MAX_PIPELINES];
static uint32_t n_pipelines, n_known;   /* all; those of earlier GPUs */

static struct pipeline *find_pipeline(const char *text, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(pipelines[i].text, text) == 0) return &pipelines[i];
    return NULL;
}

static struct pipeline *add_pipeline(const char *text)
{
    struct pipeline *p = find_pipeline(text, n_pipelines);
    if (p) return p;
    if (n_pipelines == MAX_PIPELINES) abort();
    pipelines[n_pipelines].text = strdup(text);
    return &pipelines[n_pipelines++];
}

/* A crash says nothing of pipelines that other cases ran. */
static void take_outcome(struct pipeline *p, enum outcome outcome)
{
    if (outcome == DRIVER ? p->outcome == NONE : p->outcome == DRIVER || outcome > p->outcome) p->outcome = outcome;
}

static void print_table(char **gpus)
{
    static const char *const names[] = {[NONE] = "none", [RIGHT] = "right", [OPTIMIZED] = "optimized",
        [DRIVER] = "driver", [WRONG] = "wrong"};
    for (uint32_t i = 0; i < n_pipelines; i++) {
        printf("%s %s ", pipelines[i].text, names[pipelines[i].outcome]);
        for (uint32_t g = 0, n = 0; g < 32; g++)
            if (pipelines[i].gpus >> g & 1) printf("%s%s", n++ ? "," : "", strchr(gpus[g], ':') + 1);
        printf("\n");
    }
}

/* ---- in the process of a kernel: what the cases do goes down a pipe ---- */

static struct {
    FILE *out;
    enum pd_kernel_id id;
    uint32_t first, last, n;     /* the cases to run; those seen so far */
    bool runs;                   /* this case */
    const struct pd_kernel *used[32];
    uint32_t n_used;             /* by this case */
} child;

static void note_used(const struct pd_kernel *kernel)
{
    for (uint32_t i = 0; i < child.n_used; i++)
        if (child.used[i] == kernel) return;
    if (child.n_used < PD_COUNT(child.used)) child.used[child.n_used++] = kernel;
}

void __real_pd_dispatch(struct pd_commands *c, const struct pd_kernel *kernel, const void *push, uint32_t x, uint32_t y,
                        uint32_t z);
void __wrap_pd_dispatch(struct pd_commands *c, const struct pd_kernel *kernel, const void *push, uint32_t x, uint32_t y,
                        uint32_t z);
void __wrap_pd_dispatch(struct pd_commands *c, const struct pd_kernel *kernel, const void *push, uint32_t x, uint32_t y,
                        uint32_t z)
{
    note_used(kernel);
    __real_pd_dispatch(c, kernel, push, x, y, z);
}

void __real_pd_dispatch_indirect(struct pd_commands *c, const struct pd_kernel *kernel, const void *push,
                                 struct pd_span span, uint64_t offset);
void __wrap_pd_dispatch_indirect(struct pd_commands *c, const struct pd_kernel *kernel, const void *push,
                                 struct pd_span span, uint64_t offset);
void __wrap_pd_dispatch_indirect(struct pd_commands *c, const struct pd_kernel *kernel, const void *push,
                                 struct pd_span span, uint64_t offset)
{
    note_used(kernel);
    __real_pd_dispatch_indirect(c, kernel, push, span, offset);
}

/* As the pipeline requires (compile in gpu/kernel.c), or as llvmpipe takes by itself. */
static uint32_t lanes_of(const struct pd_gpu *gpu, const struct pd_kernel *k)
{
    const char *bits = getenv("LP_NATIVE_VECTOR_WIDTH");
    uint32_t required = k->n_spec > PD_SUBGROUP_ID ? k->spec[PD_SUBGROUP_ID] : 0;
    if (pd_kernel_sources[k->id].needs == PD_NEEDS_wide && !required) required = gpu->info.subgroup_size;
    return required ? required : bits ? (uint32_t)strtoul(bits, NULL, 10) / LANE_BITS : gpu->info.subgroup_size;
}

/* Says so; whether it was run for an earlier GPU. */
static bool print_used(const struct pd_gpu *gpu, const struct pd_kernel *k)
{
    char text[256];
    int at = snprintf(text, sizeof text, "%s %s", pd_kernel_name(k->id), k->n_spec ? "" : "-");
    for (uint32_t i = 0; i < k->n_spec; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%u", i ? "," : "", (unsigned)k->spec[i]);
    snprintf(text + at, sizeof text - (size_t)at, " %u", (unsigned)lanes_of(gpu, k));
    fprintf(child.out, "uses %s\n", text);
    return find_pipeline(text, n_known) != NULL;
}

void __real_pd_trial_run(struct pd_trial *t);
void __wrap_pd_trial_run(struct pd_trial *t);
void __wrap_pd_trial_run(struct pd_trial *t)
{
    child.runs = t->kernel == child.id && t->r.status == PERIDOT_OK && pd_commands_has(t->commands, t->kernel);
    if (child.runs) {
        bool known = true;
        fprintf(child.out, "case %u %s\n", (unsigned)child.n, t->label);
        for (uint32_t i = 0; i < child.n_used; i++) known = print_used(t->gpu, child.used[i]) && known;
        child.runs = !known && child.n >= child.first && child.n <= child.last;
        child.n++;
        fprintf(child.out, child.runs ? "runs\n" : "skips\n");
        fflush(child.out);
    }
    if (child.runs) __real_pd_trial_run(t);
    child.n_used = 0;
}

void __real_pd_trial_end(struct pd_trial *t);
void __wrap_pd_trial_end(struct pd_trial *t);
void __wrap_pd_trial_end(struct pd_trial *t)
{
    __real_pd_trial_end(t);
    if (!child.runs) return;
    if (t->failed) fprintf(child.out, "wrong %s\n", t->failure);
    else fprintf(child.out, "right\n");
    fflush(child.out);
    child.runs = false;
    t->failure[0] = 0;
}

static bool checked(void *user, const peridot_kernel_check *check)
{
    (void)user, (void)check;
    return true;
}

/* Does not return. */
static void run_child(bool thorough)
{
    bool wrong[PD_N_KERNELS] = {false};
    const struct pd_selftest test = {.only = pd_kernel_name(child.id), .thorough = thorough, .n_workers = 1,
        .seed = 7, .checked = checked};
    struct pd_gpu *gpu;
    peridot_status status = pd_gpu_open(&gpu, NULL, NULL);
    if (status == PERIDOT_OK) status = pd_selftest_run(wrong, gpu, &test);
    if (status != PERIDOT_OK) fprintf(stderr, "run_widths: %s\n", pd_error());
    else fprintf(child.out, "end\n");
    fflush(child.out);
    _exit(status != PERIDOT_OK);
}

/* ---- the process that starts the others ---- */

struct attempt {
    uint32_t gpu, at;          /* the last case that began */
    char label[256];
    struct pipeline *used[32];
    uint32_t n_used;
    enum outcome good;         /* what a case that is right makes of its pipelines */
    bool in_case, wrong, complete;
};

/* False at the first case that is wrong, which the caller tries again. */
static bool take_line(struct attempt *a, const char *line)
{
    if (strncmp(line, "case ", 5) == 0) {
        a->at = (uint32_t)strtoul(line + 5, NULL, 10);
        snprintf(a->label, sizeof a->label, "%s", line + 5);
        a->n_used = 0;
    } else if (strncmp(line, "uses ", 5) == 0) {
        a->used[a->n_used] = add_pipeline(line + 5);
        a->used[a->n_used++]->gpus |= 1u << a->gpu;
    } else if (strcmp(line, "runs") == 0) a->in_case = true;
    else if (strcmp(line, "end") == 0) a->complete = true;
    else if (strcmp(line, "right") == 0) {
        a->in_case = false;
        for (uint32_t i = 0; i < a->n_used; i++) take_outcome(a->used[i], a->good);
    } else if (strncmp(line, "wrong", 5) == 0) {
        fprintf(stderr, "%s: %s\n", a->used[0]->text, line);
        a->in_case = false;
        a->wrong = true;
    }
    return !a->wrong;
}

static double processor_seconds(pid_t pid)
{
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0) return 0;
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Whether the process says something before its case has had its time: others may keep it waiting. */
static bool await_lines(int fd, pid_t pid)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    double begun = processor_seconds(pid);
    for (int seconds = 0; seconds < 10 * CASE_SECONDS && processor_seconds(pid) - begun < CASE_SECONDS; seconds++) {
        int ready = poll(&wait, 1, 1000);
        if (ready) return ready > 0;
    }
    return false;
}

static void read_lines(struct attempt *a, int fd, pid_t pid)
{
    char buffer[4096];
    size_t size = 0;
    while (await_lines(fd, pid)) {
        ssize_t n = read(fd, buffer + size, sizeof buffer - 1 - size);
        if (n <= 0) return;
        buffer[size += (size_t)n] = 0;
        char *line = buffer;
        for (char *end; (end = strchr(line, '\n')); line = end + 1) {
            *end = 0;
            if (!take_line(a, line)) return;
        }
        size = strlen(line);
        memmove(buffer, line, size + 1);
    }
}

static struct attempt try_cases(enum pd_kernel_id id, uint32_t gpu, uint32_t first, uint32_t last, bool thorough,
                                bool optimized)
{
    struct attempt a = {.gpu = gpu, .at = first, .good = optimized ? OPTIMIZED : RIGHT};
    int pipes[2];
    fflush(stdout);
    if (pipe(pipes) != 0) abort();
    pid_t pid = fork();
    if (pid < 0) abort();
    if (pid == 0) {
        close(pipes[0]);
        setenv("GALLIVM_PERF", optimized ? "" : "nopt", 1);
        child.out = fdopen(pipes[1], "w");
        child.id = id, child.first = first, child.last = last;
        run_child(thorough);
    }
    close(pipes[1]);
    read_lines(&a, pipes[0], pid);
    close(pipes[0]);
    if (!a.complete) kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return a;
}

static void try_kernel(enum pd_kernel_id id, uint32_t gpu, bool thorough)
{
    for (uint32_t first = 0, n_wrong = 0; n_wrong < MAX_WRONG;) {
        struct attempt a = try_cases(id, gpu, first, UINT32_MAX, thorough, false);
        if (a.complete) return;
        if (!a.in_case && !a.wrong) {
            fprintf(stderr, "run_widths: %s ended outside a case, after %s\n", pd_kernel_name(id), a.label);
            exit(2);
        }
        struct attempt b = try_cases(id, gpu, a.at, a.at, thorough, true);
        if (!b.complete)
            fprintf(stderr, "%s: case %s: %s\n", a.used[0]->text, a.label,
                    b.wrong ? "wrong" : a.wrong ? "wrong, and crashed where optimized" : "crashed");
        for (uint32_t i = 0; i < a.n_used && !b.complete; i++)
            take_outcome(a.used[i], a.wrong || b.wrong ? WRONG : DRIVER);
        first = a.at + 1;
        n_wrong += b.wrong;
    }
}

static void try_gpu(uint32_t gpu, const char *lanes_and_name, char **names, int n_names, const unsigned part[2],
                    bool thorough)
{
    char bits[16];
    unsigned seen = 0;
    snprintf(bits, sizeof bits, "%lu", LANE_BITS * strtoul(lanes_and_name, NULL, 10));
    setenv("LP_NATIVE_VECTOR_WIDTH", bits, 1);
    setenv("PERIDOT_TEST_GPU", strchr(lanes_and_name, ':') + 1, 1);
    n_known = n_pipelines;
    for (int id = 0; id < PD_N_KERNELS; id++) {
        const char *name = pd_kernel_name((enum pd_kernel_id)id);
        bool named = n_names == 0;
        for (int i = 0; i < n_names; i++) named = named || strncmp(name, names[i], strlen(names[i])) == 0;
        if (named && seen++ % part[1] == part[0] - 1) try_kernel((enum pd_kernel_id)id, gpu, thorough);
    }
}

int main(int argc, char **argv)
{
    bool thorough = false, wrong = false;
    unsigned part[2] = {1, 1};
    int at = 1, first;
    if (at < argc && strcmp(argv[at], "--thorough") == 0) thorough = true, at++;
    if (at < argc && sscanf(argv[at], "%u/%u", &part[0], &part[1]) == 2) at++;
    for (first = at; first < argc && !strchr(argv[first], ':'); first++) {}
    for (int i = first; i < argc; i++)
        try_gpu((uint32_t)(i - first), argv[i], argv + at, first - at, part, thorough);
    print_table(argv + first);
    for (uint32_t i = 0; i < n_pipelines; i++) wrong = wrong || pipelines[i].outcome == WRONG;
    return wrong;
}
