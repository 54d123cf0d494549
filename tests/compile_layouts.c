/* compile_layouts: the command, of which `devices --pipelines` compiles matvec as decode steps use it in every layout
 * that a search on the device would try, instead of the pipelines of models. tools/pipelines --layouts predicts by it
 * which layout is best. */
#include "base/base.h"
#include "ops/ops.h"
#include "probe/probe.h"

peridot_status __wrap_pd_pipelines_compile(struct pd_gpu *gpu);

/* As matvec in ops.c has them, for Gemma 2 2B. */
static peridot_status compile(struct pd_gpu *gpu, enum pd_kernel_id id, enum pd_use use, struct pd_tuning t)
{
    const struct pd_kernel *kernel;
    uint32_t norm = use == PD_USE_PLAIN ? 0 : (uint32_t)pd_align(2304, PD_PAD) / 4, glu = use == PD_USE_GATED;
    uint32_t spec[] = {t.workgroup, t.rows, 1, norm, norm ? 2 : 0, norm ? 1 : 0, glu,
        t.subgroup ? t.subgroup : pd_gpu_info(gpu)->subgroup_size, t.width, [PD_ROW_INTERLEAVE_ID] = 1,
        [PD_SUBGROUP_ID] = t.subgroup};
    return pd_kernel_get(&kernel, gpu, id, spec, t.subgroup ? PD_COUNT(spec) : 9);
}

/* Of workgroups the default's, as a loop's instructions are the same in all. */
peridot_status __wrap_pd_pipelines_compile(struct pd_gpu *gpu)
{
    static const enum pd_dtype dtypes[] = {PD_F16, PD_Q8_0, PD_Q4_0, PD_Q4_K, PD_Q6_K};
    const peridot_device_info *device = pd_gpu_info(gpu);
    enum pd_variant v = pd_variants_default(device).of[PD_VARIED_MATVEC];
    struct pd_tuning t;
    for (size_t i = 0; i < PD_COUNT(dtypes) * PD_N_USES; i++) {
        enum pd_kernel_id id = pd_variant_kernel(pd_variant_for_type(v, dtypes[i / PD_N_USES]), dtypes[i / PD_N_USES]);
        enum pd_use use = (enum pd_use)(i % PD_N_USES);
        uint32_t workgroup = pd_tuning_default(device, id, use).workgroup;
        for (uint32_t at = 0; pd_tuning_at(&t, device, at); at++)
            if (t.workgroup == workgroup && pd_tuning_fits(t, id, use)) PD_TRY(compile(gpu, id, use, t));
    }
    return PERIDOT_OK;
}
