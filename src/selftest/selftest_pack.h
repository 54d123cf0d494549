/* Activations as tests of matrices make them, and as kernels read them packed. */
#ifndef PD_SELFTEST_SELFTEST_PACK_H
#define PD_SELFTEST_SELFTEST_PACK_H

#include "selftest/trial.h"

/* Tokens of which some are large, as Gemma's are, and some small. */
float *pd_random_activations(struct pd_trial *t, uint32_t n_tokens, uint32_t n_cols, float amplitude);
/* Rows of pack_q16's as floats: numbers times scales. */
float *pd_unpack_q16(struct pd_trial *t, const struct pd_trial_buffer *packed, uint32_t n_cols);

#endif
