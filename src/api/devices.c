/* The devices of peridot.h, and what peridot_tools.h says of their kernels. */
#include "api/api.h"
#include "base/base.h"
#include "ops/ops.h"
#include "probe/probe.h"
#include "selftest/selftest.h"

#include <stdlib.h>
#include <string.h>

/* One block: pointers, the last of them NULL, then what they point to. */
peridot_status peridot_devices(const peridot_device_info ***out, size_t *n)
{
    peridot_device_info *list;
    *out = NULL;
    PD_TRY(pd_gpu_list(&list, n));
    size_t offset = (size_t)pd_align((*n + 1) * sizeof **out, _Alignof(peridot_device_info)),
        size = offset + *n * sizeof *list;
    char *block = calloc(1, size);
    for (size_t i = 0; block && i < *n; i++) {
        void *copy = block + offset + i * sizeof *list;
        ((const peridot_device_info **)block)[i] = memcpy(copy, &list[i], sizeof *list);
    }
    free(list);
    *out = (const peridot_device_info **)block;
    return block ? PERIDOT_OK : pd_fail_alloc(size, "list of devices");
}

peridot_status peridot_device_find(peridot_device_info **out, const char *device)
{
    peridot_device_info *list;
    uint32_t index;
    char reason[256];
    size_t n;
    *out = NULL;
    PD_TRY(pd_gpu_list(&list, &n));
    peridot_status status = pd_gpu_choose(&index, reason, list, (uint32_t)n, device);
    if (status == PERIDOT_OK) *out = memmove(list, &list[index], sizeof *list);
    else free(list);
    return status;
}

bool peridot_device_variant(peridot_variant *out, const peridot_device_info *device, size_t i)
{
    return pd_variants_at(out, device, i);
}

peridot_verdict peridot_device_verdict(const peridot_device_info *device, const char *cache_dir)
{
    peridot_verdict verdict;
    bool wrong[PD_N_KERNELS];
    pd_verdict_read(wrong, device, cache_dir);
    pd_verdict_text(&verdict, wrong);
    return verdict;
}

/* ---- probe ---- */

/* The measuring of peridot_tools.h: rates, tuning, profiles and compiled kernels. */

peridot_status peridot_measure(peridot_rates *out, peridot_model *model) { return pd_measure(out, model->m.gpu); }

peridot_status peridot_measure_reads(peridot_reads *out, const char *device, const char *cache_dir)
{
    struct pd_gpu *gpu;
    *out = (peridot_reads){0};
    PD_TRY(pd_gpu_open(&gpu, device, cache_dir));
    peridot_status status = pd_measure_reads(out, gpu);
    pd_gpu_close(gpu);
    return status;
}

peridot_status peridot_tune(peridot_model *model, const peridot_tune_params *params)
{
    static const peridot_tune_params none = {0};
    peridot_status status = pd_tune(&model->m, params ? params : &none);
    pd_tunings_text(model->tuning, sizeof model->tuning, &model->m);
    model->info.untuned = pd_tune_is_due(&model->m);
    if (status == PERIDOT_OK) pd_log(&model->log, PERIDOT_LOG_INFO, "tuning: %s", model->tuning);
    return status;
}

peridot_status peridot_profile(peridot_kernel_time **out, size_t *n, peridot_sequence *const *sequences,
                               size_t n_sequences, uint32_t n_tokens)
{
    struct pd_sequence *of[PD_MAX_SEQUENCES];
    *out = NULL;
    *n = 0;
    if (n_sequences == 0 || n_sequences > PD_MAX_SEQUENCES)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "the number of sequences, %zu, is not between 1 and %d",
                       n_sequences, PD_MAX_SEQUENCES);
    for (size_t i = 0; i < n_sequences; i++) of[i] = sequences[i]->q;
    return pd_session_profile(out, n, sequences[0]->session->s, of, (uint32_t)n_sequences, n_tokens);
}

uint64_t peridot_session_step_size(const peridot_session *session, uint32_t n_sequences, uint32_t pos)
{
    return pd_session_step_size(session->s, n_sequences, pos);
}

double peridot_session_token_flop(const peridot_session *session, uint32_t pos, bool logits)
{
    return pd_token_flop(session->s->model, pos, logits);
}

uint32_t peridot_session_n_dispatches(const peridot_session *session) { return pd_session_n_dispatches(session->s); }

peridot_status peridot_pipelines(const char *device, peridot_device_info *info, peridot_pipeline_call call, void *user)
{
    struct pd_gpu *gpu;
    if (!call) return pd_fail(PERIDOT_ERROR_ARGUMENT, "peridot_pipelines: call is NULL");
    PD_TRY(pd_gpu_open_compiler(&gpu, device));
    if (info) *info = *pd_gpu_info(gpu);
    peridot_status status = pd_pipelines_compile(gpu);
    if (status == PERIDOT_OK) status = pd_pipelines_report(gpu, call, user);
    pd_gpu_close(gpu);
    return status;
}

/* ---- selftest ---- */

/* peridot_selftest: opens the device and says what was found. */

struct listener {
    const peridot_selftest_params *params;
    peridot_selftest_result *result;
};

static bool listen(void *user, const peridot_kernel_check *check)
{
    struct listener *l = user;
    l->result->n_kernels += !check->lacks;
    l->result->n_cases += check->n_cases;
    return !l->params->checked || l->params->checked(l->params->user, check);
}

/* On a software device, which takes up to seconds for each. */
static uint32_t few_pipelines(enum pd_kernel_id id) { return pd_selftest_is_like_another(id) ? 1 : 2; }

static bool step(void *user, uint32_t n_done, uint32_t n_kernels, double part)
{
    const struct listener *l = user;
    return !l->params->progress || l->params->progress(l->params->user, n_done, n_kernels, part);
}

peridot_status peridot_selftest(peridot_selftest_result *out, const peridot_selftest_params *params)
{
    static const peridot_selftest_params none = {0};
    struct pd_gpu *gpu;
    *out = (peridot_selftest_result){0};
    struct listener listener = {params ? params : &none, out};
    struct pd_selftest test = {.only = listener.params->only, .seed = 1, .checked = listen, .progress = step,
        .user = &listener};
    PD_TRY(pd_gpu_open(&gpu, listener.params->device, listener.params->cache_dir));
    out->device = *pd_gpu_info(gpu);
    if (out->device.type == PERIDOT_DEVICE_CPU && !listener.params->all) test.max_pipelines = few_pipelines;
    peridot_status status = pd_selftest(gpu, listener.params->cache_dir, &test);
    bool wrong[PD_N_KERNELS];
    for (int id = 0; id < PD_N_KERNELS; id++) wrong[id] = pd_kernel_is_wrong(gpu, (enum pd_kernel_id)id);
    pd_verdict_text(&out->verdict, wrong);
    pd_gpu_close(gpu);
    return status;
}
