/* Writes GGUF files, version 3. First all keys and the descriptions of all tensors, then `begin`, then the tensors'
 * data in the same order, in pieces of any size; padding between tensors is the writer's work. The file appears at its
 * path only with `commit`.
 *     pd_gguf_writer_open, add_*..., begin, write..., commit (or abort, at any time) */
#ifndef PD_FORMAT_GGUF_WRITE_H
#define PD_FORMAT_GGUF_WRITE_H

#include "format/dtype.h"
#include "format/meta.h"

struct pd_gguf_writer;

peridot_status pd_gguf_writer_open(struct pd_gguf_writer **out, const char *path);

/* These copy what they are given. They cannot fail by themselves: a lack of memory is kept and told by begin. Keys and
 * names must be unique. */
void pd_gguf_writer_add_u32(struct pd_gguf_writer *w, const char *key, uint32_t value);
void pd_gguf_writer_add_f32(struct pd_gguf_writer *w, const char *key, float value);
void pd_gguf_writer_add_bool(struct pd_gguf_writer *w, const char *key, bool value);
void pd_gguf_writer_add_string(struct pd_gguf_writer *w, const char *key, const char *value);
/* n scalars as they lie in memory. */
void pd_gguf_writer_add_array(struct pd_gguf_writer *w, const char *key, enum pd_meta_type element, uint64_t n,
                              const void *data);
void pd_gguf_writer_add_strings(struct pd_gguf_writer *w, const char *key, uint64_t n, const struct pd_string *strings);
/* A key of another file, as it is. */
void pd_gguf_writer_add_meta(struct pd_gguf_writer *w, const struct pd_meta *m);
/* shape: outermost first; columns must be whole blocks. */
void pd_gguf_writer_add_tensor(struct pd_gguf_writer *w, const char *name, enum pd_dtype dtype, uint32_t n_dims,
                               const uint64_t *shape);

/* Bytes of all tensors without padding: what write will be given in all. */
uint64_t pd_gguf_writer_data_size(const struct pd_gguf_writer *w);
/* Fails, with both numbers, when the disk is too full for the whole file. */
peridot_status pd_gguf_writer_begin(struct pd_gguf_writer *w);
/* The next bytes of the present tensor, at most to its end. */
peridot_status pd_gguf_writer_write(struct pd_gguf_writer *w, const void *data, size_t size);
/* Frees the writer either way; on failure nothing is left of the file. All data must have been written. */
peridot_status pd_gguf_writer_commit(struct pd_gguf_writer *w);
/* Frees the writer and removes what was written. NULL is allowed. */
void pd_gguf_writer_abort(struct pd_gguf_writer *w);

#endif
