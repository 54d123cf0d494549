/* peridot_selftest: opens the device and says what was found. */
#include "selftest/selftest.h"

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
