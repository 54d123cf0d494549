/* safetensors: the parser of one file. As with GGUF it works on bytes in memory and answers with a sentence or with
 * tensors that lie inside the file; here the format also demands that the data is tiled: no gap, no overlap, nothing
 * after the last tensor. Layout: u64 header size, the header (a JSON object: name to {dtype, shape, data_offsets}), the
 * data. */
#ifndef PD_FORMAT_SAFETENSORS_H
#define PD_FORMAT_SAFETENSORS_H

#include "format/tensor.h"

/* Tensors in the order of their data, not indexed by name (a model may have many files). Names live in `arena`; `data`
 * and `path` must outlive them. The dtype of a tensor may be PD_DTYPE_OTHER. */
peridot_status pd_safetensors_parse(struct pd_tensor_list *out, struct pd_arena *arena, const uint8_t *data,
                                    uint64_t size, const char *path);

#endif
