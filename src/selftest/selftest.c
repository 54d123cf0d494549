#include "selftest/selftest.h"

#include "ops/kernels.h"
#include "selftest/selftest_cases.h"

#include <stdio.h>
#include <string.h>

/* A row for each row of kernels.def. Where operations have variants, it says which of them dispatch the kernels. */
static const struct kind {
    void (*cases)(struct pd_trial *t, uint32_t type);
    uint32_t n_variants;
    enum pd_variant variants[2];
} kinds[PD_N_KERNEL_KINDS] = {
    [PD_KERNELS_embed] = {pd_try_embed},
    [PD_KERNELS_matvec] = {pd_try_matvec, 2, {PD_VARIANT_MATMUL_MATVEC, PD_VARIANT_MATVEC_COLUMNS}},
    [PD_KERNELS_matvec_rows] = {pd_try_matvec, 2, {PD_VARIANT_MATMUL_MATVEC, PD_VARIANT_MATVEC_ROWS}},
    [PD_KERNELS_matvec_dot] = {pd_try_matvec, 2, {PD_VARIANT_MATMUL_MATVEC, PD_VARIANT_MATVEC_DOT}},
    [PD_KERNELS_matmul] = {pd_try_matmul, 1, {PD_VARIANT_MATMUL_TILE}},
    [PD_KERNELS_matmul_half] = {pd_try_matmul, 1, {PD_VARIANT_MATMUL_HALF}},
    [PD_KERNELS_matmul_reduce] = {pd_try_matmul_reduce, 1, {PD_VARIANT_MATMUL_TILE}},
    [PD_KERNELS_pack_half] = {pd_try_pack_f16},
    [PD_KERNELS_matmul_coop] = {pd_try_matmul, 1, {PD_VARIANT_MATMUL_COOP}},
    [PD_KERNELS_pack_f16] = {pd_try_pack_f16},
    [PD_KERNELS_matmul_dot] = {pd_try_matmul, 1, {PD_VARIANT_MATMUL_DOT}},
    [PD_KERNELS_pack_q16] = {pd_try_pack_q16},
    [PD_KERNELS_matmul_dot8] = {pd_try_matmul, 1, {PD_VARIANT_MATMUL_DOT8}},
    [PD_KERNELS_pack_q8] = {pd_try_pack_q8},
    [PD_KERNELS_rmsnorm] = {pd_try_rmsnorm},
    [PD_KERNELS_rope] = {pd_try_rope},
    [PD_KERNELS_attention] = {pd_try_attention, 1, {PD_VARIANT_ATTENTION_COLUMNS}},
    [PD_KERNELS_attention_rows] = {pd_try_attention, 1, {PD_VARIANT_ATTENTION_ROWS}},
    [PD_KERNELS_attention_half] = {pd_try_attention, 1, {PD_VARIANT_ATTENTION_HALF}},
    [PD_KERNELS_attention_tile] = {pd_try_attention, 1, {PD_VARIANT_ATTENTION_TILE}},
    [PD_KERNELS_attention_reduce] = {pd_try_attention_reduce},
    [PD_KERNELS_glu] = {pd_try_glu},
    [PD_KERNELS_lora] = {pd_try_lora},
    [PD_KERNELS_route] = {pd_try_route},
    [PD_KERNELS_route_group] = {pd_try_route},
    [PD_KERNELS_combine] = {pd_try_combine},
    [PD_KERNELS_topk] = {pd_try_topk},
    [PD_KERNELS_sample] = {pd_try_sample},
    [PD_KERNELS_measure] = {pd_try_measure},
    [PD_KERNELS_rate_read] = {pd_try_measure},
    [PD_KERNELS_rate_fp16] = {pd_try_rate},
    [PD_KERNELS_rate_matrix] = {pd_try_rate},
    [PD_KERNELS_layernorm] = {pd_try_layernorm},
    [PD_KERNELS_pool] = {pd_try_pool},
    [PD_KERNELS_clamp] = {pd_try_clamp},
    [PD_KERNELS_squares] = {pd_try_squares},
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
    if (kind->cases) kind->cases(t, pd_kernel_type_of(id));
    if (t->check.n_cases == 0 && t->status == PERIDOT_OK) {   /* a new kernel, or cases that no longer reach it */
        pd_trial_begin(t, "%s", t->check.kernel);
        pd_trial_fail(t, "no case of the self-test runs it");
        pd_trial_end(t);
    }
}

static peridot_status test_kernels(bool wrong[PD_N_KERNELS], struct pd_trial *t, const struct pd_selftest *test)
{
    size_t only = test->only ? strlen(test->only) : 0;
    for (int id = 0; id < PD_N_KERNELS; id++) {
        if (only && strncmp(pd_kernel_name((enum pd_kernel_id)id), test->only, only) != 0) continue;
        bool alike = pd_selftest_is_like_another((enum pd_kernel_id)id);
        t->thorough = test->thorough && !alike;
        t->brief = !test->thorough && alike && pd_gpu_info(t->gpu)->type == PERIDOT_DEVICE_CPU;
        try_kernel(t, (enum pd_kernel_id)id, test->seed);
        if (!t->check.lacks) wrong[id] = !t->check.passed;
        PD_TRY(t->status);
        if (test->checked && !test->checked(test->user, &t->check))
            return pd_fail(PERIDOT_CANCELLED, "the self-test was cancelled");
    }
    return PERIDOT_OK;
}

peridot_status pd_selftest_run(bool wrong[PD_N_KERNELS], struct pd_gpu *gpu, const struct pd_selftest *test)
{
    struct pd_trial t;
    peridot_status status = pd_trial_open(&t, gpu);
    t.after_run = test->after_run;
    t.user = test->user;
    if (status == PERIDOT_OK) status = test_kernels(wrong, &t, test);
    pd_trial_close(&t);
    return status;
}

peridot_status pd_selftest(struct pd_gpu *gpu, const char *cache_dir, const struct pd_selftest *test)
{
    bool wrong[PD_N_KERNELS];
    for (int id = 0; id < PD_N_KERNELS; id++) wrong[id] = pd_kernel_is_wrong(gpu, (enum pd_kernel_id)id);
    peridot_status status = pd_selftest_run(wrong, gpu, test);
    if (status != PERIDOT_OK && status != PERIDOT_ERROR_DEVICE_LOST) return status;
    peridot_status kept = pd_verdict_set(gpu, cache_dir, wrong);
    return status != PERIDOT_OK ? status : kept;
}

/* ", " before all names but the first; a list that is too long ends in "...". */
static void add_name(char *list, size_t size, const char *name)
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
        add_name(off ? out->disabled : out->broken, sizeof out->disabled, pd_kernel_name((enum pd_kernel_id)id));
    }
}
