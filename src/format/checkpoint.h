/* A checkpoint: the tensors and metadata of a model, whichever form it comes in: one GGUF file (v2, v3), or a Hugging Face
 * directory (config.json with one or many safetensors files). Files are mapped, never copied; all structure is checked
 * at open, so that a tensor handed out lies inside its file and has the size that its shape and type say. */
#ifndef PD_FORMAT_CHECKPOINT_H
#define PD_FORMAT_CHECKPOINT_H

#include "format/dtype.h"

#include <yyjson.h>

struct pd_checkpoint;

struct pd_tensor {
    const char *name;
    const char *file;         /* path of the file that holds it, for messages */
    enum pd_dtype dtype;
    uint32_t n_dims;          /* 1..4 */
    uint64_t shape[4];        /* outermost first; unused ones are 1 */
    const uint8_t *data;      /* in the mapping; may be unaligned in safetensors */
    uint64_t size;            /* bytes */
};

enum pd_checkpoint_kind { PD_CHECKPOINT_GGUF, PD_CHECKPOINT_HF };

/* `path`: a .gguf file (told by its magic, not its name) or a directory. A GGUF without tensors opens. A tensor of a type
 * that Peridot does not know is refused by name. A Hugging Face directory needs config.json; its tensors are opened only
 * when with_tensors. */
peridot_status pd_checkpoint_open(struct pd_checkpoint **out, const char *path, bool with_tensors);
void pd_checkpoint_close(struct pd_checkpoint *c);

enum pd_checkpoint_kind pd_checkpoint_kind(const struct pd_checkpoint *c);
const char *pd_checkpoint_path(const struct pd_checkpoint *c);

size_t pd_checkpoint_n_tensors(const struct pd_checkpoint *c);
const struct pd_tensor *pd_checkpoint_tensor(const struct pd_checkpoint *c, size_t i);   /* in file order */
const struct pd_tensor *pd_checkpoint_find(const struct pd_checkpoint *c, const char *name);   /* NULL: none */

/* Hugging Face: the root object of config.json (and generation_config.json / tokenizer_config.json when there, else NULL). */
yyjson_val *pd_checkpoint_config(const struct pd_checkpoint *c);
yyjson_val *pd_checkpoint_generation_config(const struct pd_checkpoint *c);
yyjson_val *pd_checkpoint_tokenizer_config(const struct pd_checkpoint *c);

/* GGUF metadata. A value is a scalar or an array; strings are not NUL-terminated in the file, so they come with a size. */
enum pd_meta_type {
    PD_META_UINT8, PD_META_INT8, PD_META_UINT16, PD_META_INT16, PD_META_UINT32, PD_META_INT32, PD_META_FLOAT32,
    PD_META_BOOL, PD_META_STRING, PD_META_ARRAY, PD_META_UINT64, PD_META_INT64, PD_META_FLOAT64
};

struct pd_meta {
    const char *key;           /* NUL-terminated */
    enum pd_meta_type type;    /* PD_META_ARRAY: see element */
    enum pd_meta_type element; /* of an array; never an array itself (nested arrays are refused) */
    uint64_t n;                /* elements; 1 for a scalar */
    /* private: where the value lies */
    const uint8_t *data;
    const struct pd_string *strings;   /* n of them when strings */
};

struct pd_string {
    const char *data;
    uint64_t size;
};

size_t pd_checkpoint_n_meta(const struct pd_checkpoint *c);
const struct pd_meta *pd_checkpoint_meta(const struct pd_checkpoint *c, size_t i);
const struct pd_meta *pd_checkpoint_find_meta(const struct pd_checkpoint *c, const char *key);   /* NULL: none */

/* Element i of a value as a number; false when it is not one (or does not fit). Integers convert to float. */
bool pd_meta_uint(uint64_t *out, const struct pd_meta *m, uint64_t i);
bool pd_meta_int(int64_t *out, const struct pd_meta *m, uint64_t i);
bool pd_meta_float(double *out, const struct pd_meta *m, uint64_t i);
bool pd_meta_bool(bool *out, const struct pd_meta *m, uint64_t i);
bool pd_meta_string(struct pd_string *out, const struct pd_meta *m, uint64_t i);

#endif
