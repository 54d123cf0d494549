/* Software devices compile a kernel when it first runs, one after another, on the thread that runs it: 16 s of silence
 * for a model that is new to llvmpipe. So kernels are run here with nothing to do, dispatches of no workgroups, as soon
 * as there are pipelines. Where that takes long, other devices help from the end of the list: what they compile, this
 * one finds in the driver's own cache on disk. Without such a cache it compiles all the same. Where the first ones take
 * no time, that cache has them all: the rest can wait. */
#define _POSIX_C_SOURCE 200809L
#include "gpu/gpu_.h"

#include "base/base.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_HELPERS = 7, FEW = 4 };   /* kernels that tell whether the others were compiled before */
#define COMPILED_S 0.03   /* what was compiled before is there in milliseconds */

struct warming {
    const struct pd_gpu *gpu;
    const struct pd_kernel **kernels;   /* [n] */
    size_t n;
    atomic_size_t next, end;            /* this device's next one; where the helpers have come to */
};

static peridot_status run_nothing(struct pd_commands *c, const struct pd_kernel *kernel)
{
    static const uint8_t push[128];
    PD_TRY(pd_commands_begin(c));
    pd_dispatch(c, kernel, push, 0, 0, 0);
    PD_TRY(pd_commands_end(c));
    return pd_commands_run(c);
}

/* False when there is nothing left to take from the end. */
static bool take_last(struct warming *w, size_t *i)
{
    *i = atomic_load(&w->end);
    while (*i > atomic_load(&w->next) + 1)
        if (atomic_compare_exchange_weak(&w->end, i, *i - 1)) {
            --*i;
            return true;
        }
    return false;
}

/* A helper that fails has not helped. */
static void *help(void *argument)
{
    struct warming *w = argument;
    struct pd_gpu *gpu;
    struct pd_commands *commands = NULL;
    char index[16];
    snprintf(index, sizeof index, "%" PRIu32, w->gpu->info.index);
    if (pd_gpu_open(&gpu, index, NULL) != PERIDOT_OK) return NULL;
    peridot_status status = pd_commands_create(&commands, gpu);
    for (size_t i; status == PERIDOT_OK && take_last(w, &i);) {
        const struct pd_kernel *kernel;
        status = pd_kernel_get(&kernel, gpu, w->kernels[i]->id, w->kernels[i]->spec, w->kernels[i]->n_spec);
        if (status == PERIDOT_OK) status = run_nothing(commands, kernel);
    }
    pd_commands_free(commands);
    pd_gpu_close(gpu);
    return NULL;
}

static peridot_status warm(struct warming *w, struct pd_commands *c, peridot_progress progress, void *user)
{
    pthread_t helpers[MAX_HELPERS];
    size_t n_helpers = 0, wanted = 0;
    peridot_status status = PERIDOT_OK;
    bool compiles = false;
    for (size_t i = 0; status == PERIDOT_OK && i < w->n && (compiles || i < FEW); i++) {
        double begin = pd_now();
        atomic_store(&w->next, i);
        status = run_nothing(c, w->kernels[i]);
        compiles = compiles || pd_now() - begin > COMPILED_S;
        if (compiles && wanted == 0 && w->n - i > FEW) {
            wanted = (size_t)pd_min(pd_n_processors() - 1, MAX_HELPERS);
            while (n_helpers < wanted && pthread_create(&helpers[n_helpers], NULL, help, w) == 0) n_helpers++;
        }
        if (status == PERIDOT_OK && progress && !progress(user, i + 1, w->n))
            status = pd_fail(PERIDOT_CANCELLED, "compiling was cancelled");
    }
    atomic_store(&w->next, w->n);
    for (size_t i = 0; i < n_helpers; i++) pthread_join(helpers[i], NULL);
    return status;
}

peridot_status pd_kernels_warm(struct pd_gpu *gpu, peridot_progress progress, void *user)
{
    struct warming w = {.gpu = gpu};
    if (gpu->info.type != PERIDOT_DEVICE_CPU) return PERIDOT_OK;
    for (struct pd_kernel *k = gpu->kernels; k; k = k->next) w.n += !k->warm;
    if (w.n == 0) return PERIDOT_OK;
    w.kernels = malloc(w.n * sizeof *w.kernels);
    if (!w.kernels) return pd_fail_alloc(w.n * sizeof *w.kernels, "kernels");
    size_t i = 0;
    for (struct pd_kernel *k = gpu->kernels; k; k = k->next) {
        if (!k->warm) w.kernels[i++] = k;
        k->warm = true;
    }
    atomic_init(&w.next, 0);
    atomic_init(&w.end, w.n);
    struct pd_commands *commands;
    peridot_status status = pd_commands_create(&commands, gpu);
    if (status == PERIDOT_OK) status = warm(&w, commands, progress, user);
    pd_commands_free(commands);
    free(w.kernels);
    return status;
}
