/* A trial of a kernel: buffers with guard words that detect stray writes, operations recorded and run, and the
 * comparison with the CPU reference. A case is: pd_trial_begin, data and buffers, operations on t->r, pd_trial_run,
 * pd_trial_check..., pd_trial_end. A failure of the kernel is kept in t->check, one of the device or the host in
 * t->status, after which cases do nothing, so that they need no error checks. Cases are in selftest_*.c. */
#ifndef PD_SELFTEST_TRIAL_H
#define PD_SELFTEST_TRIAL_H

#include "base/num.h"
#include "base/random.h"
#include "ops/ops.h"
#include "selftest/reference.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    PD_TRIAL_GUARD = 64,              /* words before and after a buffer; 256 bytes, to keep its alignment */
    PD_TRIAL_GUARD_WORD = 0x7fc0dead, /* NaN in fp32, bf16 and (its high half) fp16 */
};

struct pd_trial_buffer {
    uint64_t address;
    struct pd_span span;            /* without the guards */
    uint32_t n_rows, width, stride; /* words; what is written must lie in [n_rows][width] */
    uint32_t start;                 /* its first word in image and now; 0: no buffer */
    bool written;                   /* by a kernel, as it should be */
};

struct pd_trial {
    struct pd_gpu *gpu;
    struct pd_heap *heap;
    struct pd_span arena;
    struct pd_commands *commands;
    uint32_t *image, *now;          /* the arena with all guards: as uploaded, as found after the run */
    uint32_t used;                  /* words of it */
    uint8_t *host;                  /* what the host needs for a case */
    uint64_t host_used;
    struct pd_trial_buffer buffers[24];
    uint32_t n_buffers;

    struct pd_random random;
    struct pd_recorder r;
    struct pd_variants variants;    /* that operations take; pd_trial_start sets the defaults of the device */
    uint32_t n_splits;              /* of products; 0: columns are not split */
    bool thorough;                  /* many cases, for tests; else few, for users */
    /* Pipelines of the kernel that may be compiled, drawn from those of all cases; cases that take others are left out.
     * 0: all. */
    uint32_t max_pipelines;
    struct pd_random draw;
    bool takes_first;               /* none is drawn: the first ones are taken */
    char label[200];                /* of the case */
    bool ran, failed;               /* the case */
    enum pd_kernel_id kernel;       /* being tested: cases that do not dispatch it do not count */
    peridot_kernel_check check;     /* of that kernel */
    char failure[512];              /* the sentence in it */
    peridot_status status;
    pthread_mutex_t *turn;          /* held while the device runs a case; NULL: trials may run theirs at once */
    atomic_bool *stop;              /* once it is set, as a lost device does, cases do nothing any more; NULL: none */
    void (*after_run)(struct pd_trial *t, void *user);   /* for tests: may change `now`; NULL: none */
    void *user;
};

peridot_status pd_trial_open(struct pd_trial *t, struct pd_gpu *gpu);
void pd_trial_close(struct pd_trial *t);
/* The cases that follow test this kernel, with random numbers that depend on the seed and its name. */
void pd_trial_start(struct pd_trial *t, enum pd_kernel_id id, uint64_t seed);

void pd_trial_begin(struct pd_trial *t, const char *format, ...) PD_PRINTF(2, 3);
/* Zeros on the host, and random numbers from -amplitude to amplitude; until the next begin. */
void *pd_trial_zeros(struct pd_trial *t, uint64_t size);
float *pd_trial_floats(struct pd_trial *t, size_t n);
float *pd_trial_random(struct pd_trial *t, size_t n, float amplitude);
/* [n_rows][width] words, `stride` apart: data, padded with zeros to the stride, or (NULL) guard words that no kernel
 * should read. */
struct pd_trial_buffer *pd_trial_words(struct pd_trial *t, const void *data, uint32_t n_rows, uint32_t width,
                                       uint32_t stride);
/* Activations: rows of floats with the padding that kernels rely on. */
struct pd_trial_buffer *pd_trial_rows(struct pd_trial *t, const float *data, uint32_t n_rows, uint32_t width);
struct pd_rows pd_trial_rows_of(const struct pd_trial_buffer *b);   /* of NULL: none */
uint64_t pd_trial_address(const struct pd_trial_buffer *b);         /* of NULL: 0 */

/* Dispatches a kernel directly, where no operation does it so. */
void pd_trial_dispatch(struct pd_trial *t, enum pd_kernel_id id, const uint32_t *spec, uint32_t n_spec,
                       const void *push, const uint32_t grid[2]);
/* Runs what was recorded, unless the kernel being tested is not in it, or takes a pipeline that is not compiled. Where
 * t->ran is false the case may end: nothing is compared. */
void pd_trial_run(struct pd_trial *t);
/* Row r of a buffer as the run left it. */
const uint32_t *pd_trial_row(const struct pd_trial *t, const struct pd_trial_buffer *b, uint32_t r);

/* How far a number may be off: tolerance * magnitude. */
struct pd_bound {
    double magnitude, tolerance;
};
/* One number. `what` and `at` name it in the sentence. */
void pd_trial_check(struct pd_trial *t, const char *what, uint64_t at, double got, double want, struct pd_bound bound);
/* Every element of the buffer's rows, which are written. Magnitude NULL: the root mean square of the element's row. */
void pd_trial_check_rows(struct pd_trial *t, struct pd_trial_buffer *b, const float *want, const float *magnitude,
                         double tolerance);
/* The case failed, in words. */
void pd_trial_fail(struct pd_trial *t, const char *format, ...) PD_PRINTF(2, 3);
/* Checks that nothing was written outside the rows that may be, and counts the case. */
void pd_trial_end(struct pd_trial *t);

#endif
