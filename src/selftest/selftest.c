#define _POSIX_C_SOURCE 200809L
#include "selftest/selftest.h"

#include "base/base.h"
#include "ops/ops.h"
#include "selftest/selftest_.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A row for each row of kernels.def. Where operations have variants, it says which of them dispatch the kernels. */
static const struct kind {
    uint32_t cost;   /* tenths of a second that llvmpipe takes to compile for it, from which what is left is told */
    void (*cases)(struct pd_trial *t, uint32_t type);
    uint32_t n_variants;
    enum pd_variant variants[2];
} kinds[PD_N_KERNEL_KINDS] = {
    [PD_KERNELS_embed] = {2, pd_try_embed},
    [PD_KERNELS_matvec] = {7, pd_try_matvec, 2, {PD_VARIANT_MATMUL_MATVEC, PD_VARIANT_MATVEC_COLUMNS}},
    [PD_KERNELS_matvec_rows] = {9, pd_try_matvec, 2, {PD_VARIANT_MATMUL_MATVEC, PD_VARIANT_MATVEC_ROWS}},
    [PD_KERNELS_matvec_dot] = {8, pd_try_matvec, 2, {PD_VARIANT_MATMUL_MATVEC, PD_VARIANT_MATVEC_DOT}},
    [PD_KERNELS_matmul] = {8, pd_try_matmul, 1, {PD_VARIANT_MATMUL_TILE}},
    [PD_KERNELS_matmul_half] = {20, pd_try_matmul, 1, {PD_VARIANT_MATMUL_HALF}},
    [PD_KERNELS_matmul_reduce] = {3, pd_try_matmul_reduce, 1, {PD_VARIANT_MATMUL_TILE}},
    [PD_KERNELS_pack_half] = {3, pd_try_pack_f16},
    [PD_KERNELS_matmul_coop] = {20, pd_try_matmul, 1, {PD_VARIANT_MATMUL_COOP}},
    [PD_KERNELS_pack_f16] = {3, pd_try_pack_f16},
    [PD_KERNELS_matmul_dot] = {20, pd_try_matmul, 1, {PD_VARIANT_MATMUL_DOT}},
    [PD_KERNELS_pack_q8] = {3, pd_try_pack_dot},
    [PD_KERNELS_pack_q16] = {3, pd_try_pack_dot},
    [PD_KERNELS_rmsnorm] = {3, pd_try_rmsnorm},
    [PD_KERNELS_rope] = {3, pd_try_rope},
    [PD_KERNELS_attention] = {30, pd_try_attention, 1, {PD_VARIANT_ATTENTION_COLUMNS}},
    [PD_KERNELS_attention_rows] = {60, pd_try_attention, 1, {PD_VARIANT_ATTENTION_ROWS}},
    [PD_KERNELS_attention_coop] = {30, pd_try_attention, 1, {PD_VARIANT_ATTENTION_COOP}},
    [PD_KERNELS_attention_half] = {30, pd_try_attention, 1, {PD_VARIANT_ATTENTION_HALF}},
    [PD_KERNELS_attention_tile] = {30, pd_try_attention, 1, {PD_VARIANT_ATTENTION_TILE}},
    [PD_KERNELS_attention_reduce] = {3, pd_try_attention_reduce},
    [PD_KERNELS_glu] = {3, pd_try_glu},
    [PD_KERNELS_lora] = {3, pd_try_lora},
    [PD_KERNELS_route] = {3, pd_try_route},
    [PD_KERNELS_route_group] = {3, pd_try_route},
    [PD_KERNELS_combine] = {3, pd_try_combine},
    [PD_KERNELS_topk] = {3, pd_try_topk},
    [PD_KERNELS_sample] = {3, pd_try_sample},
    [PD_KERNELS_measure] = {3, pd_try_measure},
    [PD_KERNELS_rate_read] = {3, pd_try_measure},
    [PD_KERNELS_rate_fp16] = {3, pd_try_rate},
    [PD_KERNELS_rate_matrix] = {3, pd_try_rate},
    [PD_KERNELS_layernorm] = {3, pd_try_layernorm},
    [PD_KERNELS_pool] = {3, pd_try_pool},
    [PD_KERNELS_conv] = {3, pd_try_recur},
    [PD_KERNELS_delta] = {3, pd_try_recur},
    [PD_KERNELS_delta_norm] = {3, pd_try_recur},
    [PD_KERNELS_clamp] = {3, pd_try_clamp},
    [PD_KERNELS_squares] = {3, pd_try_squares},
};

bool pd_selftest_is_like_another(enum pd_kernel_id id)
{
    uint32_t type = pd_kernel_type_of(id);   /* of caches, a smaller number */
    return type >= PD_IQ1_S && type != PD_IQ2_XS && type != PD_NVFP4 && type != PD_Q1_0;
}

static void try_kernel(struct pd_trial *t, enum pd_kernel_id id, uint64_t seed)
{
    const struct kind *kind = &kinds[pd_kernel_kind_of(id)];
    pd_trial_start(t, id, seed);
    for (uint32_t i = 0; i < kind->n_variants; i++) pd_variants_force(&t->variants, kind->variants[i]);
    t->check.lacks = pd_kernel_lacks(pd_gpu_info(t->gpu), id);
    t->check.has_fallback = pd_kernel_has_fallback(id);
    if (t->check.lacks) return;
    t->takes_first = false;
    if (kind->cases) kind->cases(t, pd_kernel_type_of(id));
    t->takes_first = true;
    if (kind->cases && t->check.n_cases == 0) kind->cases(t, pd_kernel_type_of(id));
    if (t->check.n_cases == 0 && t->status == PERIDOT_OK) {   /* a new kernel, or cases that no longer reach it */
        pd_trial_begin(t, "%s", t->check.kernel);
        pd_trial_fail(t, "no case of the self-test runs it");
        pd_trial_end(t);
    }
}

/* ---- over several threads ---- */

enum { MAX_WORKERS = 8 };

struct outcome {
    peridot_kernel_check check;
    char failure[512];
    bool done;
};

struct run {
    const struct pd_selftest *test;
    uint32_t n, n_taken, n_done;   /* kernels: of all, those that a worker has begun, and ended */
    uint32_t cost, cost_done;      /* of them */
    enum pd_kernel_id ids[PD_N_KERNELS];
    struct outcome *outcomes;      /* [n] */
    pthread_mutex_t lock, turn;
    pthread_cond_t changed;
    atomic_bool stop;
    uint32_t n_ended;              /* workers */
    peridot_status status;         /* the first failure of a worker, */
    char sentence[512];            /* and what it says */
};

struct worker {
    struct run *run;
    struct pd_gpu *gpu;            /* NULL: it opens one of its own */
    char index[16];
    pthread_t thread;
};

static uint32_t selftest_cost_of(const struct pd_gpu *gpu, enum pd_kernel_id id)
{
    return pd_kernel_lacks(pd_gpu_info(gpu), id) ? 0 : kinds[pd_kernel_kind_of(id)].cost;
}

static bool take_kernel(struct run *r, uint32_t *i)
{
    pthread_mutex_lock(&r->lock);
    *i = r->n_taken;
    bool is_one = r->n_taken < r->n && r->status == PERIDOT_OK && !atomic_load(&r->stop);
    r->n_taken += is_one;
    pthread_mutex_unlock(&r->lock);
    return is_one;
}

/* What a trial that was stopped has found counts for nothing. */
static void put_outcome(struct run *r, uint32_t i, const struct pd_trial *t)
{
    struct outcome *o = &r->outcomes[i];
    if (t->status != PERIDOT_OK && t->status != PERIDOT_ERROR_DEVICE_LOST) return;
    pthread_mutex_lock(&r->lock);
    o->check = t->check;
    memcpy(o->failure, t->failure, sizeof o->failure);
    o->check.failure = o->failure;
    o->done = true;
    r->n_done++;
    r->cost_done += selftest_cost_of(t->gpu, r->ids[i]);
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

static peridot_status test_kernels(struct run *r, struct pd_gpu *gpu)
{
    const struct pd_selftest *test = r->test;
    struct pd_trial t;
    peridot_status status = pd_trial_open(&t, gpu);
    t.turn = pd_gpu_info(gpu)->type == PERIDOT_DEVICE_CPU ? NULL : &r->turn;
    t.stop = &r->stop;
    t.after_run = test->after_run;
    t.user = test->user;
    for (uint32_t i; status == PERIDOT_OK && take_kernel(r, &i); status = t.status) {
        t.thorough = test->thorough;
        t.max_pipelines = test->max_pipelines ? test->max_pipelines(r->ids[i]) : 0;
        pd_kernel_release(gpu, r->ids[i]);   /* what others compiled of it would count */
        try_kernel(&t, r->ids[i], test->seed);
        put_outcome(r, i, &t);
        pd_kernel_freeze(gpu, PD_N_KERNELS);
        pd_kernel_release(gpu, r->ids[i]);
    }
    pd_trial_close(&t);
    return status;
}

static void *selftest_work(void *argument)
{
    struct worker *w = argument;
    struct run *r = w->run;
    struct pd_gpu *own = NULL;
    peridot_status status = w->gpu ? PERIDOT_OK : pd_gpu_open(&own, w->index, NULL);
    if (status == PERIDOT_OK) status = test_kernels(r, w->gpu ? w->gpu : own);
    pthread_mutex_lock(&r->lock);
    if (r->status == PERIDOT_OK && status != PERIDOT_OK && status != PERIDOT_CANCELLED) {
        r->status = status;
        snprintf(r->sentence, sizeof r->sentence, "%s", pd_error());
    }
    pthread_mutex_unlock(&r->lock);
    pd_gpu_close(own);
    pthread_mutex_lock(&r->lock);
    r->n_ended++;
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* Until something has changed, or a tenth of a second has passed. */
static void wait_a_moment(struct run *r)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 100000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&r->changed, &r->lock, &until);
}

/* Tells of the kernels in their order, while the workers go on. */
static peridot_status listen(struct run *r, uint32_t n_workers, bool wrong[PD_N_KERNELS])
{
    const struct pd_selftest *test = r->test;
    peridot_status status = PERIDOT_OK;
    uint32_t told = 0;
    pthread_mutex_lock(&r->lock);
    while (r->n_ended < n_workers || (told < r->n && r->outcomes[told].done)) {
        bool is_done = told < r->n && r->outcomes[told].done, go_on = true;
        uint32_t n_done = r->n_done;
        double part = (double)r->cost_done / pd_max(r->cost, 1);
        pthread_mutex_unlock(&r->lock);
        if (is_done) {
            const peridot_kernel_check *check = &r->outcomes[told].check;
            if (!check->lacks) wrong[r->ids[told]] = !check->passed;
            told++;
            go_on = status != PERIDOT_OK || !test->checked || test->checked(test->user, check);
        } else if (status == PERIDOT_OK && test->progress) go_on = test->progress(test->user, n_done, r->n, part);
        if (!go_on) {
            status = PERIDOT_CANCELLED;
            atomic_store(&r->stop, true);
        }
        pthread_mutex_lock(&r->lock);
        if (r->n_ended < n_workers && !(told < r->n && r->outcomes[told].done)) wait_a_moment(r);
    }
    pthread_mutex_unlock(&r->lock);
    return status;
}

static peridot_status run_workers(struct run *r, struct pd_gpu *gpu, bool wrong[PD_N_KERNELS])
{
    struct worker workers[MAX_WORKERS];
    uint32_t wanted = r->test->n_workers ? r->test->n_workers : pd_n_processors(), n = 0;
    wanted = (uint32_t)pd_min(pd_min(wanted, MAX_WORKERS), r->n);
    for (; n < wanted; n++) {
        struct worker *w = &workers[n];
        *w = (struct worker){.run = r, .gpu = n == 0 ? gpu : NULL};
        snprintf(w->index, sizeof w->index, "%" PRIu32, pd_gpu_info(gpu)->index);
        if (pthread_create(&w->thread, NULL, selftest_work, w) != 0) break;
    }
    if (n == 0 && wanted > 0) return pd_fail(PERIDOT_ERROR_MEMORY, "no thread can be made for the self-test");
    peridot_status status = listen(r, n, wrong);
    for (uint32_t i = 0; i < n; i++) pthread_join(workers[i].thread, NULL);
    if (status == PERIDOT_CANCELLED) return pd_fail(status, "the self-test was cancelled");
    return r->status == PERIDOT_OK ? PERIDOT_OK : pd_fail(r->status, "%s", r->sentence);
}

peridot_status pd_selftest_run(bool wrong[PD_N_KERNELS], struct pd_gpu *gpu, const struct pd_selftest *test)
{
    struct run r = {.test = test, .lock = PTHREAD_MUTEX_INITIALIZER, .turn = PTHREAD_MUTEX_INITIALIZER,
        .changed = PTHREAD_COND_INITIALIZER};
    size_t only = test->only ? strlen(test->only) : 0;
    for (int id = 0; id < PD_N_KERNELS; id++)
        if (!only || strncmp(pd_kernel_name((enum pd_kernel_id)id), test->only, only) == 0)
            r.cost += selftest_cost_of(gpu, r.ids[r.n++] = (enum pd_kernel_id)id);
    if (r.n == 0)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "there is no kernel whose name begins with \"%s\"", test->only);
    r.outcomes = calloc(r.n, sizeof *r.outcomes);
    if (!r.outcomes) return pd_fail_alloc(r.n * sizeof *r.outcomes, "a self-test");
    peridot_status status = run_workers(&r, gpu, wrong);
    free(r.outcomes);
    return status;
}

peridot_status pd_selftest(struct pd_gpu *gpu, const char *cache_dir, const struct pd_selftest *test)
{
    bool wrong[PD_N_KERNELS];
    for (int id = 0; id < PD_N_KERNELS; id++) wrong[id] = pd_kernel_is_wrong(gpu, (enum pd_kernel_id)id);
    peridot_status status = pd_selftest_run(wrong, gpu, test);
    if (status != PERIDOT_OK && status != PERIDOT_ERROR_DEVICE_LOST && status != PERIDOT_CANCELLED) return status;
    peridot_status kept = pd_verdict_set(gpu, cache_dir, wrong);
    return status != PERIDOT_OK ? status : kept;
}

/* ", " before all names but the first; a list that is too long ends in "...". */
static void selftest_add_name(char *list, size_t size, const char *name)
{
    size_t at = strlen(list), left = size - at;
    if (strlen(name) + sizeof ", , ..." <= left) snprintf(list + at, left, "%s%s", at ? ", " : "", name);
    else if (at > 3 && strcmp(list + at - 3, "...") != 0) snprintf(list + at, left, ", ...");
}

void pd_verdict_text(peridot_verdict *out, const bool wrong[PD_N_KERNELS])
{
    out->disabled[0] = out->broken[0] = 0;
    for (int id = 0; id < PD_N_KERNELS; id++) {
        if (!wrong[id]) continue;
        bool off = pd_kernel_has_fallback((enum pd_kernel_id)id);
        selftest_add_name(off ? out->disabled : out->broken, sizeof out->disabled,
                          pd_kernel_name((enum pd_kernel_id)id));
    }
}
