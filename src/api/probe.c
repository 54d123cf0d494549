/* The measuring of peridot_tools.h: rates, tuning, profiles and compiled kernels. */
#include "api/handles.h"
#include "probe/measure.h"
#include "probe/pipelines.h"
#include "probe/tune.h"

peridot_status peridot_measure(peridot_rates *out, peridot_model *model) { return pd_measure(out, model->m.gpu); }

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
