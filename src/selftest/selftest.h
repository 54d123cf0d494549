/* The self-test: every kernel that a device can run against the CPU reference (selftest_.h), on small and odd shapes.
 * The command runs few cases, tests run many; both are the same code (selftest_*.c). Compiling takes most of the time,
 * and software devices compile when a kernel first runs: so kernels are spread over threads that have a device each. On
 * a GPU these run cases one at a time, so that a device that is lost tells by which kernel. */
#ifndef PD_SELFTEST_SELFTEST_H
#define PD_SELFTEST_SELFTEST_H

#include "gpu/gpu.h"

struct pd_trial;

struct pd_selftest {
    const char *only;          /* kernels whose names begin so; NULL: all */
    bool thorough;             /* many cases, for tests; else few, in seconds */
    uint32_t (*max_pipelines)(enum pd_kernel_id id);   /* that are compiled of a kernel, or 0: all; NULL: all of each */
    uint32_t n_workers;        /* threads, each with a device of its own; 0: as many as processors */
    uint64_t seed;
    peridot_kernel_checked checked;   /* in the order of kernels.def; from the calling thread, as is progress */
    peridot_selftest_progress progress;   /* several times a second; NULL: none */
    void *user;
    /* for tests: may change what a case left in memory, from a worker's thread; NULL: none */
    void (*after_run)(struct pd_trial *t, void *user);
};

/* wrong is set for the kernels that were tested, and left as it was for others. Fails when the device or the host does,
 * or with PERIDOT_CANCELLED; a wrong kernel is no failure. Nothing else may use the gpu meanwhile. */
peridot_status pd_selftest_run(bool wrong[PD_N_KERNELS], struct pd_gpu *gpu, const struct pd_selftest *test);
/* The same for the verdict of the gpu, which is kept in cache_dir (NULL: nowhere). */
peridot_status pd_selftest(struct pd_gpu *gpu, const char *cache_dir, const struct pd_selftest *test);
/* Whether the kernel differs from another type's in tables and offsets alone: few cases will do for it. */
bool pd_selftest_is_like_another(enum pd_kernel_id id);

void pd_verdict_text(peridot_verdict *out, const bool wrong[PD_N_KERNELS]);

#endif
