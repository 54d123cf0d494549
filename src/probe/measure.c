/* What the device does at best (peridot_measure), and where the time of a pass goes (peridot_session_profile). */
#include "probe/probe.h"

#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_SIZE (128u << 20)   /* beyond the caches of most devices */
#define WORKGROUP 256
#define MAX_GROUPS 4096
#define MIN_RUNS 5
#define MAX_RUNS 200
#define MIN_SECONDS 0.1            /* clocks of an idle device take as long to rise */
#define MAX_SECONDS 0.6
#define STABLE 0.02                /* the three shortest runs differ by no more */

/* ---- the device ---- */

enum rate { READ, COPY, FP32, FP16, MATRIX, N_RATES };

struct bench {
    struct pd_gpu *gpu;
    struct pd_heap *heap;
    struct pd_commands *commands;
    struct pd_span from, to;
};

static bool can_run(const struct pd_gpu *gpu, enum pd_kernel_id id)
{
    return !pd_kernel_lacks(pd_gpu_info(gpu), id) && !pd_kernel_is_wrong(gpu, id);
}

static enum pd_kernel_id kernel_of(const struct pd_gpu *gpu, enum rate rate)
{
    bool is_cpu = pd_gpu_info(gpu)->type == PERIDOT_DEVICE_CPU;
    if (rate == READ && is_cpu && can_run(gpu, PD_KERNEL_rate_read)) return PD_KERNEL_rate_read;
    return rate == FP16 ? PD_KERNEL_rate_fp16 : rate == MATRIX ? PD_KERNEL_rate_matrix : PD_KERNEL_measure;
}

/* A device may be unable to run the kernel, or its self-test may have failed. */
static bool can_measure(const struct pd_gpu *gpu, enum rate rate) { return can_run(gpu, kernel_of(gpu, rate)); }

static peridot_status get_kernel(const struct pd_kernel **out, struct pd_gpu *gpu, enum rate rate)
{
    const peridot_device_info *d = pd_gpu_info(gpu);
    const enum pd_kernel_id id = kernel_of(gpu, rate);
    const uint32_t modes[] = {WORKGROUP, (uint32_t)rate}, sizes[] = {WORKGROUP, d->matrix_m, d->matrix_n, d->matrix_k};
    if (id == PD_KERNEL_rate_matrix) return pd_kernel_get(out, gpu, id, sizes, PD_COUNT(sizes));
    return pd_kernel_get(out, gpu, id, modes, id == PD_KERNEL_measure ? 2 : 1);
}

peridot_status pd_measure_compile(struct pd_gpu *gpu)
{
    const struct pd_kernel *kernel;
    for (int rate = 0; rate < N_RATES; rate++)
        if (can_measure(gpu, (enum rate)rate)) PD_TRY(get_kernel(&kernel, gpu, (enum rate)rate));
    return PERIDOT_OK;
}

static peridot_status record(struct bench *b, enum rate rate, uint32_t n, uint32_t n_groups, uint32_t n_dispatches)
{
    struct pd_measure_push push = {.from = b->from.address, .to = b->to.address, .n = n, .factor = 0.9999f};
    const struct pd_kernel *kernel;
    PD_TRY(get_kernel(&kernel, b->gpu, rate));
    PD_TRY(pd_commands_begin(b->commands));
    for (uint32_t i = 0; i < n_dispatches; i++) {
        if (i) pd_barrier(b->commands);
        pd_dispatch(b->commands, kernel, &push, n_groups, 1, 1);
    }
    return pd_commands_end(b->commands);
}

static peridot_status time_run(double *out, struct bench *b)
{
    double start = pd_now();
    PD_TRY(pd_commands_run(b->commands));
    *out = pd_now() - start;
    return PERIDOT_OK;
}

/* The time of the shortest run, once the three shortest agree or time is up; *spread is how far they differ. */
static peridot_status stable_time(double *out, double *spread, struct bench *b)
{
    double best[3] = {1e30, 1e30, 1e30}, begin = pd_now();
    for (int i = 0; i < MAX_RUNS; i++) {
        double time, elapsed;
        PD_TRY(time_run(&time, b));
        for (int k = 0; k < 3; k++)
            if (time < best[k]) {
                double longer = best[k];
                best[k] = time;
                time = longer;
            }
        *spread = best[2] / best[0] - 1;
        elapsed = pd_now() - begin;
        if (i + 1 >= MIN_RUNS && elapsed > MIN_SECONDS && (*spread < STABLE || elapsed > MAX_SECONDS)) break;
    }
    *out = best[0];
    return PERIDOT_OK;
}

/* Of a workgroup's round: see measure.comp and rate_*.comp. */
static double round_flop(const struct pd_gpu *gpu, enum rate rate)
{
    const peridot_device_info *d = pd_gpu_info(gpu);
    if (rate != MATRIX) return 2.0 * (rate == FP16 ? 128 : 64) * WORKGROUP;
    return 2.0 * 4 * d->matrix_m * d->matrix_n * d->matrix_k * (WORKGROUP / d->matrix_subgroup_size);
}

/* More work until a run is long enough to be timed from the host: first workgroups, until every device is full, then
 * rounds. */
static peridot_status measure_flop(double *out, double *spread, struct bench *b, enum rate rate)
{
    double time = 0;
    uint32_t n_groups = 64, rounds = 64;
    if (!can_measure(b->gpu, rate)) return PERIDOT_OK;
    for (;;) {
        PD_TRY(record(b, rate, rounds, n_groups, 1));
        PD_TRY(time_run(&time, b));   /* compiles, and warms the device up */
        PD_TRY(time_run(&time, b));
        if (time >= 0.02 || rounds >= 1u << 26) break;
        *(n_groups < MAX_GROUPS ? &n_groups : &rounds) *= 4;
    }
    PD_TRY(stable_time(&time, spread, b));
    *out = round_flop(b->gpu, rate) * rounds * n_groups / time;
    return PERIDOT_OK;
}

/* The same with dispatches. */
static peridot_status measure_bytes(double *out, double *spread, struct bench *b, enum rate rate, double size)
{
    double time = 0;
    uint32_t n = 1;
    for (;;) {
        PD_TRY(record(b, rate, BUFFER_SIZE / 16, MAX_GROUPS, n));
        PD_TRY(time_run(&time, b));
        PD_TRY(time_run(&time, b));
        if (time >= 0.01 || n >= 64) break;
        n *= 4;
    }
    PD_TRY(stable_time(&time, spread, b));
    *out = size * n / time;
    return PERIDOT_OK;
}

static peridot_status measure(peridot_rates *out, struct bench *b)
{
    PD_TRY(pd_commands_create(&b->commands, b->gpu));
    PD_TRY(pd_heap_create(&b->heap, b->gpu, PD_HEAP_DEVICE, BUFFER_SIZE));
    PD_TRY(pd_heap_alloc(&b->from, b->heap, BUFFER_SIZE, "measuring"));
    PD_TRY(pd_heap_alloc(&b->to, b->heap, BUFFER_SIZE, "measuring"));
    PD_TRY(pd_span_zero(b->gpu, b->from));
    /* the system would read pages that were never written as one page of zeros */
    PD_TRY(pd_span_zero(b->gpu, b->to));
    PD_TRY(measure_bytes(&out->read, &out->spread.read, b, READ, BUFFER_SIZE));
    PD_TRY(measure_bytes(&out->copy, &out->spread.copy, b, COPY, 2.0 * BUFFER_SIZE));
    PD_TRY(measure_flop(&out->fp32, &out->spread.fp32, b, FP32));
    PD_TRY(measure_flop(&out->fp16, &out->spread.fp16, b, FP16));
    return measure_flop(&out->matrix, &out->spread.matrix, b, MATRIX);
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

static peridot_status measure_read(double *out, struct bench *b, enum pd_heap_kind kind)
{
    double spread;
    PD_TRY(pd_heap_create(&b->heap, b->gpu, kind, BUFFER_SIZE));
    PD_TRY(pd_heap_alloc(&b->from, b->heap, BUFFER_SIZE, "measuring"));
    b->to = b->from;   /* of which no more is written than what the kernel never has to */
    PD_TRY(pd_span_zero(b->gpu, b->from));
    return measure_bytes(out, &spread, b, READ, BUFFER_SIZE);
}

peridot_status pd_measure_reads(peridot_reads *out, struct pd_gpu *gpu)
{
    struct bench b = {.gpu = gpu};
    const struct { double *out; enum pd_heap_kind kind; } of[] = {
        {&out->device, PD_HEAP_DEVICE}, {&out->host, PD_HEAP_HOST_RESIDENT}};
    bool unified = pd_gpu_info(gpu)->unified_memory;
    *out = (peridot_reads){0};
    peridot_status status = pd_commands_create(&b.commands, gpu);
    for (size_t i = 0; i < (unified ? 1 : PD_COUNT(of)) && status == PERIDOT_OK; i++) {
        status = measure_read(of[i].out, &b, of[i].kind);
        pd_heap_free(b.heap);
        b.heap = NULL;
    }
    if (unified) out->host = out->device;
    pd_commands_free(b.commands);
    return status;
}

/* ---- a pass ---- */

static int longest_first(const void *left, const void *right)
{
    double a = ((const peridot_kernel_time *)left)->seconds, b = ((const peridot_kernel_time *)right)->seconds;
    return a > b ? -1 : a < b;
}

/* Sums the times of dispatches by kernel. */
static peridot_status collect(peridot_kernel_time **out, size_t *n, const struct pd_dispatch_time *times,
                              uint32_t n_times)
{
    peridot_kernel_time *sums = calloc(PD_N_KERNELS, sizeof *sums);
    if (!sums) return pd_fail_alloc(PD_N_KERNELS * sizeof *sums, "times");
    for (int id = 0; id < PD_N_KERNELS; id++) {
        peridot_kernel_time *sum = &sums[*n];
        for (uint32_t i = 0; i < n_times; i++) {
            if ((int)pd_kernel_id_of(times[i].kernel) != id) continue;
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

peridot_status pd_session_profile(peridot_kernel_time **out, size_t *n, struct pd_session *s,
                                  struct pd_sequence *const *sequences, uint32_t n_sequences, uint32_t n_tokens)
{
    const struct pd_dispatch_time *times;
    struct pd_commands *commands;
    uint32_t n_times = 0;
    *out = NULL;
    *n = 0;
    PD_TRY(pd_commands_create(&commands, s->model->gpu));
    peridot_status status = pd_commands_time(commands, true);
    if (status == PERIDOT_OK) status = pd_session_measure(s, commands, sequences, n_sequences, n_tokens);
    if (status == PERIDOT_OK) status = pd_commands_times(&times, &n_times, commands);
    if (status == PERIDOT_OK) status = collect(out, n, times, n_times);
    pd_commands_free(commands);
    return status;
}
