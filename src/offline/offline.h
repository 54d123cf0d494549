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
const char *pd_convert_type_find(const char *name);
peridot_status pd_make(const char *path, const peridot_make_params *params);
/* The same with any shape; params->shape is not read. */
peridot_status pd_make_shape(const char *path, const struct pd_shape *shape, const peridot_make_params *params);

/* What a file of a published shape comes to in a type or mix that peridot_convert writes, without writing one: what
 * pd_source_count would find. experts [n_layers of config, which is the shape's]. */
peridot_status pd_shape_count(struct pd_source_totals *out, uint64_t *experts, const struct pd_config *config,
                              const struct pd_shape *shape, const char *type);

/* ---- quantisers ---- */

/* False for types that are only read. */
bool pd_has_quantizer(enum pd_dtype dtype);
/* n weights (a multiple of block_len) from floats to blocks, which need no alignment. Quantisers give the same weights
 * as those of ggml, or such as err no more. */
void pd_quantize(enum pd_dtype dtype, void *dst, const float *src, uint64_t n);
/* importance [n]: by how much the square of each weight's error counts; for types of 8 and more bits it is ignored. */
void pd_quantize_by(enum pd_dtype dtype, void *dst, const float *src, const float *importance, uint64_t n);

#endif
