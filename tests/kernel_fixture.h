/* What the tests of kernels share: a device, buffers that notice every write they did not ask for, and the comparison with
 * the CPU reference. A case is: begin_case, buffers, operations on bench.r, run_case, check_..., end_case. */
#ifndef KERNEL_FIXTURE_H
#define KERNEL_FIXTURE_H

#include "base/num.h"
#include "gpu/vk.h"
#include "model/layout.h"
#include "model/ops.h"
#include "model/random.h"
#include "model/reference.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* ---- which program tests a kernel ---- */

/* Every shader that kernels.def names must be here. Its program fails when it has not run a line that it should. */
static const struct {
    const char *source, *program;
} covered[] = {
    {"embed", "test_kernels"}, {"matvec", "test_kernels"}, {"matvec_rows", "test_kernels"}, {"matmul", "test_kernels"},
    {"matmul_coop", "test_kernels"}, {"pack", "test_kernels"}, {"rmsnorm", "test_kernels"}, {"glu", "test_kernels"},
    {"rope", "test_attention"}, {"attention", "test_attention"}, {"attention_rows", "test_attention"}, {"merge", "test_attention"},
    {"topk", "test_sampler"}, {"measure", "test_kernels"},
};

static const struct {
    const char *name, *source;
} kernels[PD_N_KERNELS] = {
#define PD_KERNEL(name, source, defines, push, needs) {#name, #source},
#include "kernels.def"
#undef PD_KERNEL
};

/* ---- the bench ---- */

enum {
    GUARD = 64,                     /* words before and after a buffer; 256 bytes, to keep its alignment */
    GUARD_WORD = 0x7fc0dead,        /* NaN in fp32, bf16 and (its high half) fp16 */
    ARENA_SIZE = 48 << 20,
};

struct buffer {
    struct pd_span span;            /* without the guards */
    uint32_t n_rows, width, stride; /* words; what is written must lie in [n_rows][width] */
    uint32_t *image, *now;          /* with guards: as uploaded, as found after the run */
    bool written;                   /* by a kernel, as it should be */
};

static struct bench {
    struct pd_gpu *gpu;
    struct pd_heap *heap;
    struct pd_span arena;
    uint64_t used;
    struct pd_commands *commands;
    struct pd_recorder r;
    struct pd_random random;
    struct buffer *buffers[24];
    uint32_t n_buffers;
    char label[200];
} bench;

static inline void check_status(peridot_status status)
{
    if (status != PERIDOT_OK) fail_msg("%s: %s", bench.label, pd_error());
}

static inline int open_bench(void **state)
{
    (void)state;
    pd_random_seed(&bench.random, 7, 0);
    peridot_status status = pd_gpu_open(&bench.gpu, NULL, NULL);
    if (status == PERIDOT_OK) status = pd_heap_create(&bench.heap, bench.gpu, PD_HEAP_DEVICE, ARENA_SIZE);
    if (status == PERIDOT_OK) status = pd_heap_alloc(&bench.arena, bench.heap, ARENA_SIZE, "tests");
    if (status == PERIDOT_OK) status = pd_commands_create(&bench.commands, bench.gpu);
    if (status != PERIDOT_OK) print_error("%s\n", pd_error());
    return status == PERIDOT_OK ? 0 : -1;
}

static inline void drop_case(void)
{
    for (uint32_t i = 0; i < bench.n_buffers; i++) {
        free(bench.buffers[i]->image);
        free(bench.buffers[i]->now);
        free(bench.buffers[i]);
    }
    bench.n_buffers = 0;
    bench.used = 0;
}

static inline int close_bench(void **state)
{
    (void)state;
    drop_case();
    pd_commands_free(bench.commands);
    pd_heap_free(bench.heap);
    pd_gpu_close(bench.gpu);
    return 0;
}

/* ---- a case ---- */

static inline void begin_case(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(bench.label, sizeof bench.label, format, args);
    va_end(args);
    drop_case();
    bench.r = (struct pd_recorder){.gpu = bench.gpu, .commands = bench.commands, .variants = pd_variants_default(pd_gpu_info(bench.gpu))};
    check_status(pd_commands_begin(bench.commands));
}

/* [n_rows][width] words, `stride` apart. Data: zeros to the stride; none: guard words that nobody should read. */
static inline struct buffer *make_words(const void *data, uint32_t n_rows, uint32_t width, uint32_t stride)
{
    struct buffer *b = calloc(1, sizeof *b);
    uint64_t n = (uint64_t)n_rows * stride, size = pd_align((n + 2 * GUARD) * 4, 256);
    assert_non_null(b);
    assert_true(bench.n_buffers < PD_COUNT(bench.buffers) && bench.used + size <= ARENA_SIZE);
    *b = (struct buffer){.n_rows = n_rows, .width = width, .stride = stride, .image = malloc(size), .now = malloc(size)};
    bench.buffers[bench.n_buffers++] = b;
    for (uint64_t i = 0; i < size / 4; i++) b->image[i] = GUARD_WORD;
    for (uint32_t r = 0; data && r < n_rows; r++) {
        uint32_t *row = b->image + GUARD + (size_t)r * stride;
        memset(row, 0, stride * 4);
        memcpy(row, (const uint32_t *)data + (size_t)r * width, width * 4);
    }
    uint64_t start = bench.used + GUARD * 4;
    b->span = bench.arena;
    b->span.address += start;
    b->span.offset += start;
    b->span.size = n * 4;
    if (b->span.host) b->span.host = (uint8_t *)b->span.host + start;
    check_status(pd_span_write(bench.gpu, bench.arena, bench.used, b->image, size));
    bench.used += size;
    return b;
}

/* Activations: rows of floats with the padding that kernels count on. */
static inline struct buffer *make_rows(const float *data, uint32_t n_rows, uint32_t width)
{
    return make_words(data, n_rows, width, (uint32_t)pd_align(width, PD_PAD));
}

static inline struct pd_rows rows_of(const struct buffer *b)
{
    return (struct pd_rows){b ? b->span.address : 0, b ? b->stride : 0};
}

static inline uint64_t address_of(const struct buffer *b) { return b ? b->span.address : 0; }

static inline void dispatch(enum pd_kernel_id id, const uint32_t *spec, uint32_t n_spec, const void *push, uint32_t x, uint32_t y)
{
    const struct pd_kernel *kernel;
    check_status(pd_kernel_get(&kernel, bench.gpu, id, spec, n_spec));
    pd_dispatch(bench.commands, kernel, push, x, y, 1);
}

static inline void run_case(void)
{
    check_status(pd_commands_end(bench.commands));
    check_status(bench.r.status);
    check_status(pd_commands_run(bench.commands));
    for (uint32_t i = 0; i < bench.n_buffers; i++) {
        struct buffer *b = bench.buffers[i];
        uint64_t before = b->span.address - bench.arena.address - GUARD * 4;
        check_status(pd_span_read(bench.gpu, b->now, bench.arena, before, b->span.size + 2 * GUARD * 4));
    }
}

/* Row r as the run left it. */
static inline const uint32_t *row_words(const struct buffer *b, uint32_t r) { return b->now + GUARD + (size_t)r * b->stride; }

/* Every buffer has only changed where it was to be written. */
static inline void end_case(void)
{
    for (uint32_t k = 0; k < bench.n_buffers; k++) {
        const struct buffer *b = bench.buffers[k];
        for (uint64_t i = 0; i < b->span.size / 4 + 2 * GUARD; i++) {
            if (b->now[i] == b->image[i]) continue;
            uint64_t at = i - GUARD;
            bool allowed = b->written && i >= GUARD && at < b->span.size / 4 && at % b->stride < b->width;
            if (!allowed)
                fail_msg("%s: buffer %u ([%u][%u], stride %u) was written at word %lld", bench.label, k, b->n_rows, b->width,
                         b->stride, (long long)at);
        }
    }
    drop_case();
}

/* ---- data and comparisons ---- */

static inline float *random_floats(size_t n, float amplitude)
{
    float *x = malloc(sizeof *x * (n ? n : 1));
    assert_non_null(x);
    for (size_t i = 0; i < n; i++) x[i] = pd_random_uniform(&bench.random) * amplitude;
    return x;
}

static inline float *zeros(size_t n)
{
    float *x = calloc(n, sizeof *x);
    assert_non_null(x);
    return x;
}

/* Every element of the buffer's rows is within tolerance * magnitude of what is wanted. Magnitude NULL: the root mean square
 * of the element's row. */
static inline void check_rows(struct buffer *b, const float *want, const float *magnitude, double tolerance)
{
    b->written = true;
    for (uint32_t r = 0; r < b->n_rows; r++, want += b->width, magnitude += magnitude ? b->width : 0) {
        double squares = 0;
        for (uint32_t i = 0; i < b->width; i++) squares += (double)want[i] * (double)want[i];
        double rms = sqrt(squares / b->width);
        for (uint32_t i = 0; i < b->width; i++) {
            float got = pd_f32_from_bits(row_words(b, r)[i]);
            double limit = tolerance * (magnitude ? (double)magnitude[i] : rms);
            if (!(fabs((double)got - (double)want[i]) <= limit))
                fail_msg("%s: [%u][%u] is %.9g, not %.9g +- %.2g", bench.label, r, i, (double)got, (double)want[i], limit);
        }
    }
}

/* ---- the last test of a program ---- */

static inline bool has_run(enum pd_kernel_id id)
{
    for (const struct pd_kernel *k = bench.gpu->kernels; k; k = k->next)
        if (k->id == id) return true;
    return false;
}

static inline const char *program_of(const char *source)
{
    for (size_t i = 0; i < PD_COUNT(covered); i++)
        if (strcmp(covered[i].source, source) == 0) return covered[i].program;
    return NULL;
}

static inline void check_covered(const char *this_program)
{
    for (int id = 0; id < PD_N_KERNELS; id++) {
        const char *program = program_of(kernels[id].source);
        if (!program) fail_msg("kernel %s has no test: write one, and say so in kernel_fixture.h", kernels[id].name);
        if (pd_kernel_lacks(pd_gpu_info(bench.gpu), (enum pd_kernel_id)id)) continue;
        if (strcmp(program, this_program) == 0 && !has_run((enum pd_kernel_id)id))
            fail_msg("%s did not run kernel %s", this_program, kernels[id].name);
    }
}

#endif
