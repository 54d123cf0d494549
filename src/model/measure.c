#include "model/measure.h"

#include "base/num.h"
#include "base/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_SIZE (128u << 20)   /* beyond the caches of most devices */
#define WORKGROUP 256
#define N_RUNS 5

/* ---- the device ---- */

enum mode { READ, COPY, FMA, N_MODES };

struct bench {
    struct pd_gpu *gpu;
    struct pd_heap *heap;
    struct pd_commands *commands;
    struct pd_span from, to;
};

static peridot_status get_kernel(const struct pd_kernel **out, struct pd_gpu *gpu, enum mode mode)
{
    uint32_t spec[] = {WORKGROUP, (uint32_t)mode};
    return pd_kernel_get(out, gpu, PD_KERNEL_measure, spec, 2);
}

peridot_status pd_measure_compile(struct pd_gpu *gpu)
{
    const struct pd_kernel *kernel;
    for (int mode = 0; mode < N_MODES; mode++) PD_TRY(get_kernel(&kernel, gpu, (enum mode)mode));
    return PERIDOT_OK;
}

static peridot_status record(struct bench *b, enum mode mode, uint32_t n, uint32_t n_groups)
{
    struct pd_measure_push push = {.from = b->from.address, .to = b->to.address, .n = n, .factor = 0.9999f};
    const struct pd_kernel *kernel;
    PD_TRY(get_kernel(&kernel, b->gpu, mode));
    PD_TRY(pd_commands_begin(b->commands));
    pd_dispatch(b->commands, kernel, &push, n_groups, 1, 1);
    return pd_commands_end(b->commands);
}

/* The best of a few runs after a first one, which compiles and wakes the device. */
static peridot_status best_time(double *out, struct bench *b)
{
    *out = 1e30;
    PD_TRY(pd_commands_run(b->commands));
    for (int i = 0; i < N_RUNS; i++) {
        double start = pd_now();
        PD_TRY(pd_commands_run(b->commands));
        double time = pd_now() - start;
        if (time < *out) *out = time;
    }
    return PERIDOT_OK;
}

static peridot_status measure(peridot_rates *out, struct bench *b)
{
    uint32_t n = BUFFER_SIZE / 16, n_groups = 4096, rounds = 64;
    double time;
    PD_TRY(pd_commands_create(&b->commands, b->gpu));
    PD_TRY(pd_heap_create(&b->heap, b->gpu, PD_HEAP_DEVICE, BUFFER_SIZE));
    PD_TRY(pd_heap_alloc(&b->from, b->heap, BUFFER_SIZE, "measuring"));
    PD_TRY(pd_heap_alloc(&b->to, b->heap, BUFFER_SIZE, "measuring"));
    PD_TRY(pd_span_zero(b->gpu, b->from));
    PD_TRY(pd_span_zero(b->gpu, b->to));   /* pages that were never touched would be read from nowhere */
    PD_TRY(record(b, READ, n, n_groups));
    PD_TRY(best_time(&time, b));
    out->read = BUFFER_SIZE / time;
    PD_TRY(record(b, COPY, n, n_groups));
    PD_TRY(best_time(&time, b));
    out->copy = 2.0 * BUFFER_SIZE / time;
    do {   /* more work until a run is long enough to be timed from the host */
        PD_TRY(record(b, FMA, rounds, n_groups));
        PD_TRY(best_time(&time, b));
        rounds *= 4;
    } while (time < 0.02);
    out->fp32 = 2.0 * 64 * (rounds / 4) * (double)n_groups * WORKGROUP / time;
    return PERIDOT_OK;
}

peridot_status pd_measure(peridot_rates *out, struct pd_gpu *gpu)
{
    struct bench b = {.gpu = gpu};
    *out = (peridot_rates){0};
    peridot_status status = measure(out, &b);
    pd_commands_free(b.commands);
    pd_heap_free(b.heap);
    return status;
}

/* ---- a pass ---- */

static int longest_first(const void *left, const void *right)
{
    double a = ((const peridot_kernel_time *)left)->seconds, b = ((const peridot_kernel_time *)right)->seconds;
    return a > b ? -1 : a < b;
}

/* Sums the times of dispatches by kernel. */
static peridot_status collect(peridot_kernel_time **out, size_t *n, const struct pd_dispatch_time *times, uint32_t n_times)
{
    peridot_kernel_time *sums = calloc(PD_N_KERNELS, sizeof *sums);
    if (!sums) return pd_fail_alloc(PD_N_KERNELS * sizeof *sums, "times");
    for (int id = 0; id < PD_N_KERNELS; id++) {
        peridot_kernel_time *sum = &sums[*n];
        for (uint32_t i = 0; i < n_times; i++) {
            if ((int)times[i].id != id) continue;
            sum->n++;
            sum->seconds += times[i].seconds;
        }
        if (!sum->n) continue;
        snprintf(sum->kernel, sizeof sum->kernel, "%s", pd_kernel_name((enum pd_kernel_id)id));
        ++*n;
    }
    qsort(sums, *n, sizeof *sums, longest_first);
    *out = sums;
    return PERIDOT_OK;
}

peridot_status pd_session_profile(peridot_kernel_time **out, size_t *n, struct pd_session *s, uint32_t n_tokens)
{
    const struct pd_dispatch_time *times;
    struct pd_commands *commands;
    uint32_t n_times = 0;
    *out = NULL;
    *n = 0;
    PD_TRY(pd_commands_create(&commands, s->model->gpu));
    peridot_status status = pd_commands_time(commands, true);
    if (status == PERIDOT_OK) status = pd_session_run_pass(s, commands, n_tokens);
    if (status == PERIDOT_OK) status = pd_commands_times(&times, &n_times, commands);
    if (status == PERIDOT_OK) status = collect(out, n, times, n_times);
    pd_commands_free(commands);
    return status;
}
