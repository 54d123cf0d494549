/* The self-test: every kernel that a device can run against the CPU reference (reference.h), in cases that are small, odd and
 * ragged. The command runs few of them, tests run many; the cases are the same code (selftest_*.c). */
#ifndef PD_SELFTEST_SELFTEST_H
#define PD_SELFTEST_SELFTEST_H

#include "gpu/gpu.h"

struct pd_trial;

struct pd_selftest {
    const char *only;          /* kernels whose names begin so; NULL: all */
    bool thorough;             /* as tests want it; else what takes seconds */
    uint64_t seed;
    peridot_kernel_checked checked;
    void *user;
    void (*after_run)(struct pd_trial *t, void *user);   /* for tests: may change what a case left in memory; NULL: none */
};

/* wrong: what was known before; of the kernels that were tried, what was found. Fails when the device or the host does, or with
 * PERIDOT_CANCELLED; that a kernel is wrong is no failure. */
peridot_status pd_selftest_run(bool wrong[PD_N_KERNELS], struct pd_gpu *gpu, const struct pd_selftest *test);
/* The same with the device's verdict before and after, which cache_dir (NULL: none) remembers. */
peridot_status pd_selftest(struct pd_gpu *gpu, const char *cache_dir, const struct pd_selftest *test);

void pd_verdict_text(peridot_verdict *out, const bool wrong[PD_N_KERNELS]);

#endif
