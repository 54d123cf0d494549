/* The cases of each kernel, private to the self-test. type: an enum pd_dtype or a peridot_kv_type, for kernels of
 * several (pd_kernel_of). */
#ifndef PD_SELFTEST_SELFTEST_CASES_H
#define PD_SELFTEST_SELFTEST_CASES_H

#include "selftest/trial.h"

/* selftest_matrix.c */
void pd_try_embed(struct pd_trial *t, uint32_t type);
void pd_try_matvec(struct pd_trial *t, uint32_t type);
void pd_try_matmul(struct pd_trial *t, uint32_t type);
void pd_try_matmul_reduce(struct pd_trial *t, uint32_t type);
/* selftest_pack.c */
void pd_try_pack_q16(struct pd_trial *t, uint32_t type);
void pd_try_pack_f16(struct pd_trial *t, uint32_t type);
/* selftest_attention.c */
void pd_try_rope(struct pd_trial *t, uint32_t type);
void pd_try_attention(struct pd_trial *t, uint32_t type);
void pd_try_attention_reduce(struct pd_trial *t, uint32_t type);
/* selftest_vector.c */
void pd_try_rmsnorm(struct pd_trial *t, uint32_t type);
void pd_try_glu(struct pd_trial *t, uint32_t type);
void pd_try_topk(struct pd_trial *t, uint32_t type);
void pd_try_sample(struct pd_trial *t, uint32_t type);
void pd_try_measure(struct pd_trial *t, uint32_t type);
void pd_try_rate(struct pd_trial *t, uint32_t type);
/* selftest_image.c */
void pd_try_layernorm(struct pd_trial *t, uint32_t type);
void pd_try_pool(struct pd_trial *t, uint32_t type);
void pd_try_clamp(struct pd_trial *t, uint32_t type);
void pd_try_squares(struct pd_trial *t, uint32_t type);
/* selftest_lora.c */
void pd_try_lora(struct pd_trial *t, uint32_t type);
/* selftest_experts.c */
void pd_try_route(struct pd_trial *t, uint32_t type);
void pd_try_combine(struct pd_trial *t, uint32_t type);

#endif
