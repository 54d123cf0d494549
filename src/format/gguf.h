/* GGUF, versions 2 and 3: the parser. It works on bytes in memory (a mapped file) and keeps pointers into them.
 * Whatever the bytes are, it answers with a sentence or with tensors that lie inside them, do not overlap, and have
 * unique names; what it allocates is bounded by the size of the file, and its time by n log n of it.
 * Layout: "GGUF", u32 version, u64 n_tensors, u64 n_meta, the metadata, the tensors' descriptions, padding to
 * general.alignment (32), the data. Strings are u64 size and bytes. Source: docs/gguf.md of the ggml project. */
#ifndef PD_FORMAT_GGUF_H
#define PD_FORMAT_GGUF_H

#include "format/meta.h"
#include "format/tensor.h"

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

#endif
