/* A trial of a kernel: buffers with guard words that detect stray writes, operations recorded and run, and the
 * comparison with the CPU reference. A case is: pd_trial_begin, data and buffers, operations on t->r, pd_trial_run,
 * pd_trial_check..., pd_trial_end. A failure of the kernel is kept in t->check, one of the device or the host in
 * t->status, after which cases do nothing, so that they need no error checks. Cases are in selftest_*.c. */
#include "selftest/selftest_.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_SIZE (12u << 20)
#define HOST_SIZE (64u << 20)

static void keep_failure(struct pd_trial *t, peridot_status status)
{
    if (t->status == PERIDOT_OK) t->status = status;
}

peridot_status pd_trial_open(struct pd_trial *t, struct pd_gpu *gpu)
{
    *t = (struct pd_trial){.gpu = gpu, .image = malloc(ARENA_SIZE), .now = malloc(ARENA_SIZE),
        .host = malloc(HOST_SIZE)};
    if (!t->image || !t->now || !t->host) return pd_fail_alloc(2 * ARENA_SIZE + HOST_SIZE, "a self-test");
    PD_TRY(pd_heap_create(&t->heap, gpu, PD_HEAP_DEVICE, ARENA_SIZE));
    PD_TRY(pd_heap_alloc(&t->arena, t->heap, ARENA_SIZE, "a self-test"));
    return pd_commands_create(&t->commands, gpu);
}

void pd_trial_close(struct pd_trial *t)
{
    pd_commands_free(t->commands);
    pd_heap_free(t->heap);
    free(t->image);
    free(t->now);
    free(t->host);
    *t = (struct pd_trial){0};
}

void pd_trial_start(struct pd_trial *t, enum pd_kernel_id id, uint64_t seed)
{
    t->variants = pd_variants_default(pd_gpu_info(t->gpu));
    t->kernel = id;
    t->failure[0] = 0;
    t->check = (peridot_kernel_check){.kernel = pd_kernel_name(id), .failure = t->failure, .passed = true};
    uint64_t stream = pd_hash(0, t->check.kernel, strlen(t->check.kernel));
    pd_random_seed(&t->random, seed, stream);
    pd_random_seed(&t->draw, seed, ~stream);
}

/* ---- a case ---- */

static bool is_stopped(const struct pd_trial *t) { return t->stop && atomic_load(t->stop); }

enum { ONE_IN = 4 };   /* cases whose pipelines are taken, where not all are */

static bool may_compile(struct pd_trial *t)
{
    uint32_t n = 0;
    bool drawn = pd_random_next(&t->draw) % ONE_IN == 0;
    for (const struct pd_kernel *k = NULL; (k = pd_kernel_next(t->gpu, k)) != NULL;)
        n += pd_kernel_id_of(k) == t->kernel;
    return t->max_pipelines == 0 || (n < t->max_pipelines && (drawn || t->takes_first));
}

void pd_trial_begin(struct pd_trial *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(t->label, sizeof t->label, format, args);
    va_end(args);
    t->n_buffers = t->used = 0;
    t->host_used = 0;
    t->ran = t->failed = false;
    t->r = (struct pd_recorder){.gpu = t->gpu, .commands = t->commands, .variants = t->variants};
    if (is_stopped(t)) keep_failure(t, PERIDOT_CANCELLED);
    if (t->status == PERIDOT_OK) keep_failure(t, pd_commands_begin(t->commands));
    pd_kernel_freeze(t->gpu, may_compile(t) ? PD_N_KERNELS : t->kernel);
    t->r.status = t->status;
}

void *pd_trial_zeros(struct pd_trial *t, uint64_t size)
{
    void *p = t->host + t->host_used;
    t->host_used += pd_align(size, 16);
    assert(t->host_used <= HOST_SIZE);
    return memset(p, 0, size);
}

float *pd_trial_floats(struct pd_trial *t, size_t n) { return pd_trial_zeros(t, n * sizeof(float)); }

float *pd_trial_random(struct pd_trial *t, size_t n, float amplitude)
{
    float *x = pd_trial_floats(t, n);
    for (size_t i = 0; i < n; i++) x[i] = pd_random_uniform(&t->random) * amplitude;
    return x;
}

struct pd_trial_buffer *pd_trial_words(struct pd_trial *t, const void *data, uint32_t n_rows, uint32_t width,
                                       uint32_t stride)
{
    uint32_t n = n_rows * stride, end = (uint32_t)pd_align(t->used + n + 2 * PD_TRIAL_GUARD, PD_TRIAL_GUARD);
    assert(t->n_buffers < PD_COUNT(t->buffers) && end <= ARENA_SIZE / 4);
    for (uint32_t i = t->used; i < end; i++) t->image[i] = PD_TRIAL_GUARD_WORD;
    struct pd_trial_buffer *b = &t->buffers[t->n_buffers++];
    *b = (struct pd_trial_buffer){.span = t->arena, .n_rows = n_rows, .width = width, .stride = stride,
        .start = t->used + PD_TRIAL_GUARD};
    for (uint32_t r = 0; data && r < n_rows; r++) {
        uint32_t *row = t->image + b->start + (size_t)r * stride;
        memset(row, 0, stride * 4);
        memcpy(row, (const uint32_t *)data + (size_t)r * width, width * 4);
    }
    b->address = b->span.address += 4 * (uint64_t)b->start;
    b->span.offset += 4 * (uint64_t)b->start;
    b->span.size = 4 * (uint64_t)n;
    if (b->span.host) b->span.host = (uint32_t *)b->span.host + b->start;
    t->used = end;
    return b;
}

struct pd_trial_buffer *pd_trial_rows(struct pd_trial *t, const float *data, uint32_t n_rows, uint32_t width)
{
    return pd_trial_words(t, data, n_rows, width, (uint32_t)pd_align(width, PD_PAD));
}

struct pd_rows pd_trial_rows_of(const struct pd_trial_buffer *b)
{
    return (struct pd_rows){b ? b->address : 0, b ? b->stride : 0};
}

uint64_t pd_trial_address(const struct pd_trial_buffer *b) { return b ? b->address : 0; }

void pd_trial_dispatch(struct pd_trial *t, enum pd_kernel_id id, const uint32_t *spec, uint32_t n_spec,
                       const void *push, const uint32_t grid[2])
{
    const struct pd_kernel *kernel;
    if (t->r.status == PERIDOT_OK) t->r.status = pd_kernel_get(&kernel, t->gpu, id, spec, n_spec);
    if (t->r.status == PERIDOT_OK) pd_dispatch(t->commands, kernel, push, grid[0], grid[1], 1);
}

static peridot_status upload_and_run(struct pd_trial *t)
{
    uint64_t size = 4 * (uint64_t)t->used;
    PD_TRY(pd_commands_end(t->commands));
    PD_TRY(pd_span_write(t->gpu, t->arena, 0, t->image, size));
    PD_TRY(pd_commands_run(t->commands));
    return pd_span_read(t->gpu, t->now, t->arena, 0, size);
}

/* Who loses the device is seen by who runs: it stops the others before they can find theirs lost, too. */
static peridot_status run_in_turn(struct pd_trial *t)
{
    if (t->turn) pthread_mutex_lock(t->turn);
    peridot_status status = is_stopped(t) ? PERIDOT_CANCELLED : upload_and_run(t);
    if (status == PERIDOT_ERROR_DEVICE_LOST && t->stop) atomic_store(t->stop, true);
    if (t->turn) pthread_mutex_unlock(t->turn);
    return status;
}

/* A kernel that the driver does not compile fails; a device that is lost ends the trial, and the kernel that lost it
 * failed. */
void pd_trial_run(struct pd_trial *t)
{
    if (t->status != PERIDOT_OK || t->r.status == PERIDOT_CANCELLED) return;
    if (t->r.status == PERIDOT_OK && !pd_commands_has(t->commands, t->kernel)) return;
    peridot_status status = t->r.status == PERIDOT_OK ? run_in_turn(t) : t->r.status;
    t->ran = status == PERIDOT_OK;
    if (!t->ran && status != PERIDOT_CANCELLED) pd_trial_fail(t, "%s", pd_error());
    if (t->r.status == PERIDOT_OK || status == PERIDOT_ERROR_DEVICE_LOST) keep_failure(t, status);
    if (t->ran && t->after_run) t->after_run(t, t->user);
}

const uint32_t *pd_trial_row(const struct pd_trial *t, const struct pd_trial_buffer *b, uint32_t r)
{
    return t->now + b->start + (size_t)r * b->stride;
}

/* ---- comparing ---- */

void pd_trial_fail(struct pd_trial *t, const char *format, ...)
{
    t->failed = true;
    if (t->failure[0]) return;
    int n = snprintf(t->failure, sizeof t->failure, "%s: ", t->label);
    va_list args;
    va_start(args, format);
    vsnprintf(t->failure + n, sizeof t->failure - (size_t)n, format, args);
    va_end(args);
}

/* Where tolerances differ, the worst error is the largest part of its own. */
static double taken(double error, double tolerance) { return error == 0 ? 0 : error / tolerance; }

void pd_trial_check(struct pd_trial *t, const char *what, uint64_t at, double got, double want, struct pd_bound bound)
{
    if (!t->ran) return;
    double off = got == want || (isnan(got) && isnan(want)) ? 0 : fabs(got - want),
        error = off == 0 ? 0 : off / bound.magnitude;
    if (isnan(error)) error = INFINITY;
    if (taken(error, bound.tolerance) > taken(t->check.error, t->check.tolerance) || t->check.tolerance == 0) {
        t->check.error = error;
        t->check.tolerance = bound.tolerance;
    }
    double allowed = bound.tolerance * bound.magnitude;
    if (!(off <= allowed))
        pd_trial_fail(t, "%s[%llu] is %.9g, not %.9g +- %.2g", what, (unsigned long long)at, got, want, allowed);
}

void pd_trial_check_rows(struct pd_trial *t, struct pd_trial_buffer *b, const float *want, const float *magnitude,
                         double tolerance)
{
    b->written = true;
    for (uint32_t r = 0; t->ran && r < b->n_rows; r++, want += b->width, magnitude += magnitude ? b->width : 0) {
        const uint32_t *row = pd_trial_row(t, b, r);
        char what[24];
        double squares = 0;
        snprintf(what, sizeof what, "[%u]", r);
        for (uint32_t i = 0; i < b->width; i++) squares += (double)want[i] * (double)want[i];
        double rms = sqrt(squares / b->width);
        for (uint32_t i = 0; i < b->width; i++)
            pd_trial_check(t, what, i, (double)pd_f32_from_bits(row[i]), (double)want[i],
                           (struct pd_bound){magnitude ? (double)magnitude[i] : rms, tolerance});
    }
}

/* Word i of the arena may differ from what was uploaded. */
static bool may_change(const struct pd_trial *t, uint32_t i)
{
    for (uint32_t k = 0; k < t->n_buffers; k++) {
        const struct pd_trial_buffer *b = &t->buffers[k];
        if (i < b->start || i >= b->start + b->n_rows * b->stride) continue;
        return b->written && (i - b->start) % b->stride < b->width;
    }
    return false;
}

void pd_trial_end(struct pd_trial *t)
{
    for (uint32_t i = 0; t->ran && i < t->used; i++) {
        if (t->now[i] == t->image[i] || may_change(t, i)) continue;
        pd_trial_fail(t, "word %u of the case's memory was written, and should not be", i);
        break;
    }
    if (!t->ran && !t->failed) return;
    t->check.n_cases++;
    if (t->failed) t->check.passed = false;
}
