/* Writing model files without a device: peridot_convert (convert.c) and peridot_make (make.c). */
#ifndef PD_OFFLINE_OFFLINE_H
#define PD_OFFLINE_OFFLINE_H

#include "arch/arch.h"
#include "base/base.h"
#include "peridot_tools.h"

/* stats must be zero. */
peridot_status pd_convert(const char *dst_path, const char *src_path, const peridot_convert_params *params,
                          peridot_convert_stats *stats);
const char *pd_convert_type(size_t i);
peridot_status pd_make(const char *path, const peridot_make_params *params);
/* The same with any shape; params->shape is not read. */
peridot_status pd_make_shape(const char *path, const struct pd_shape *shape, const peridot_make_params *params);

#endif
