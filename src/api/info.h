/* The part of a model's info that its configuration gives, for models and for files that are not loaded. */
#ifndef PD_API_INFO_H
#define PD_API_INFO_H

#include "arch/config.h"

/* Sets all members: those that need weights or a device to 0 or NULL. Borrows from the configuration. */
void pd_model_info_begin(peridot_model_info *out, const struct pd_config *config);
/* "q8_0, f32": the types of matrices, those of most matrices first. */
void pd_model_info_types(char *out, size_t size, const uint32_t counts[PD_N_DTYPES]);

#endif
