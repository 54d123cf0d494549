/* A tensor in a file, and the list of a file's or a model's tensors with their names sorted. */
#ifndef PD_FORMAT_TENSOR_H
#define PD_FORMAT_TENSOR_H

#include "base/names.h"
#include "format/arena.h"
#include "format/dtype.h"

struct pd_tensor {
    const char *name;
    const char *file;         /* path of the file that holds it, for messages */
    const char *type;         /* name of the dtype, also of one that has no row: "q8_0", "i64" */
    enum pd_dtype dtype;      /* PD_DTYPE_OTHER: only in tensors that text models ignore */
    uint32_t n_dims;          /* 1..4; 0: a scalar (safetensors only) */
    uint64_t shape[4];        /* outermost first; unused ones are 1 */
    const uint8_t *data;      /* in the mapping; may be unaligned in safetensors */
    uint64_t size;            /* bytes; 0 only when a dimension is 0 (safetensors only) */
    const uint8_t *scales;    /* [n_scales] f32, maybe unaligned: what its weights are multiplied by */
    uint64_t n_scales;        /* 1, or one for each expert; 0: none (only NVFP4 in GGUF has them) */
    bool is_scale;            /* it holds the scales of another tensor, or of that one's inputs, which nothing reads */
};

struct pd_tensor_list {
    struct pd_tensor *items;
    size_t n;
    struct pd_name_index index;
};

/* An array of n empty tensors. Their number must come from a header that is long enough to hold them. */
peridot_status pd_tensor_list_alloc(struct pd_tensor_list *out, struct pd_arena *arena, size_t n);
/* Sorts the names once all are set; PERIDOT_ERROR_FORMAT when two tensors share one. */
peridot_status pd_tensor_list_index(struct pd_tensor_list *list, struct pd_arena *arena);
/* NULL: none. */
const struct pd_tensor *pd_tensor_list_find(const struct pd_tensor_list *list, const char *name);

/* Product of the dimensions; false when it does not fit. */
bool pd_tensor_n_weights(uint64_t *out, const struct pd_tensor *t);
/* Sets t->size from its dtype and shape; the sentence says which number is wrong. */
peridot_status pd_tensor_set_size(struct pd_tensor *t);
/* Rows of the matrices that it holds; of a vector, its numbers. */
uint64_t pd_tensor_n_rows(const struct pd_tensor *t);
/* What the weights of a row are multiplied by. */
float pd_tensor_scale(const struct pd_tensor *t, uint64_t row);
/* n weights from number `first` on, whole blocks, with their scales. */
void pd_tensor_dequantize(float *dst, const struct pd_tensor *t, uint64_t first, uint64_t n);
/* By its name in a Hugging Face directory: a part of a multimodal model that text does not need, or of a drafter that
 * only spares it logits. */
bool pd_tensor_is_unread(const char *name);
/* True, with the first one's index, when some weight is NaN or infinite (or its block's or its tensor's scale is). For
 * sentences: it reads all of the tensor. */
bool pd_tensor_find_nonfinite(const struct pd_tensor *t, uint64_t *index);

#endif
