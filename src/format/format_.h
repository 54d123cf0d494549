/* What the files of this folder have among themselves: the parts of a GGUF, the decoders of types, and how K types pack
 * their scales. */
#ifndef PD_FORMAT_FORMAT_PRIVATE_H
#define PD_FORMAT_FORMAT_PRIVATE_H

#include "base/base.h"
#include "format/format.h"

#include <stdint.h>

/* ---- safetensors ---- */

/* Tensors in the order of their data, not indexed by name (a model may have many files). Names live in `arena`; `data`
 * and `path` must outlive them. The dtype of a tensor may be PD_DTYPE_OTHER. */
peridot_status pd_safetensors_parse(struct pd_tensor_list *out, struct pd_arena *arena, const uint8_t *data,
                                    uint64_t size, const char *path);

/* ---- experts ---- */

/* Makes one tensor of those of experts that are apart; names live in `arena`. */
peridot_status pd_experts_join(struct pd_tensor_list *list, struct pd_arena *arena);
/* Makes tensors as other families have them of those of gpt-oss's experts: see pd_tensor.stride. */
peridot_status pd_experts_unpack(struct pd_tensor_list *list, struct pd_arena *arena);

/* ---- dtype private ---- */

/* Private to dtype*.c: what the rows of types.def name, and the reading and writing of bytes. The block coders follow
 * ggml's reference (ggml-quants.c: dequantize_row_*, quantize_row_*_ref) operation by operation, because files made
 * here and elsewhere should be equal. Each product is its own statement where its rounding counts, so that no compiler
 * fuses it with the addition after it. In all of them n counts blocks. */

/* dtype.c, dtype_blocks.c, dtype_iq.c */
#define ROW(name, ...) void pd_##name##_decode(float *dst, const uint8_t *src, uint64_t n);
PD_TYPES(ROW, )
#undef ROW

/* ---- gguf ---- */

struct pd_gguf {
    struct pd_arena arena;
    uint32_t version;
    uint64_t alignment;
    uint64_t data_start;   /* byte where tensor offsets count from; may lie past an empty file's end */
    struct pd_meta *meta;             /* n_meta, in file order */
    size_t n_meta;
    struct pd_name_index meta_index;
    struct pd_tensor_list tensors;    /* in the order of their descriptions */
};

/* `data` and `path` must outlive *out. On failure *out is empty. A tensor of a type that Peridot does not read is
 * PERIDOT_ERROR_UNSUPPORTED. */
peridot_status pd_gguf_parse(struct pd_gguf *out, const uint8_t *data, uint64_t size, const char *path);
void pd_gguf_free(struct pd_gguf *g);
/* NULL: none. */
const struct pd_meta *pd_gguf_find_meta(const struct pd_gguf *g, const char *key);

/* ---- gguf parts ---- */

struct pd_gguf_parts {
    struct pd_arena arena;
    struct pd_map *maps;             /* one for each of n files, */
    char **paths;                    /* their names */
    struct pd_gguf *parts;           /* and what they hold */
    size_t n;
    struct pd_tensor_list tensors;   /* of all, part after part */
};

/* `path`: of the only file or the first part. On failure *out must be closed all the same. */
peridot_status pd_gguf_parts_open(struct pd_gguf_parts *out, const char *path);
void pd_gguf_parts_close(struct pd_gguf_parts *p);
peridot_status pd_gguf_parts_check(peridot_status status, const struct pd_gguf_parts *p);

#endif
