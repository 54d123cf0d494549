/* Files of weights: GGUF (read and written), safetensors, a folder of Hugging Face, behind one door, the checkpoint;
 * the types that weights are stored in, with how they are decoded on the host; and what metadata says. A
 * file may come from anyone: every offset, count and string is checked before it is used. A checkpoint, once open, is
 * only read, by any number of threads. */
#ifndef PD_FORMAT_FORMAT_H
#define PD_FORMAT_FORMAT_H

#include "base/base.h"
#include "types.def"

#include <stddef.h>
#include <stdint.h>
#include <yyjson.h>

/* ---- meta ---- */

/* The numbers are those of the file. */
enum pd_meta_type {
    PD_META_UINT8, PD_META_INT8, PD_META_UINT16, PD_META_INT16, PD_META_UINT32, PD_META_INT32, PD_META_FLOAT32,
    PD_META_BOOL, PD_META_STRING, PD_META_ARRAY, PD_META_UINT64, PD_META_INT64, PD_META_FLOAT64, PD_META_N_TYPES
};

/* Strings are not NUL-terminated in the file, so they come with a size. */
struct pd_string {
    const char *data;
    uint64_t size;
};

struct pd_meta {
    const char *key;           /* NUL-terminated */
    enum pd_meta_type type;    /* PD_META_ARRAY: see element */
    enum pd_meta_type element; /* of an array or, for a scalar, its type */
    uint64_t n;                /* elements; 1 for a scalar */
    /* private: where the value lies */
    const uint8_t *data;
    const struct pd_string *strings;   /* n of them when strings */
    uint64_t size;                     /* bytes of data */
};

/* Bytes of a scalar; 0 for strings and arrays. */
uint32_t pd_meta_type_size(enum pd_meta_type type);
/* "uint32", "string", ... */
const char *pd_meta_type_name(enum pd_meta_type type);

/* Element i of a value as a number; false when it is not one (or does not fit, or there is no element i). Integers
 * convert to float. */
bool pd_meta_uint(uint64_t *out, const struct pd_meta *m, uint64_t i);
bool pd_meta_int(int64_t *out, const struct pd_meta *m, uint64_t i);
bool pd_meta_float(double *out, const struct pd_meta *m, uint64_t i);
bool pd_meta_bool(bool *out, const struct pd_meta *m, uint64_t i);
bool pd_meta_string(struct pd_string *out, const struct pd_meta *m, uint64_t i);

/* The value for a person's eyes, allocated: a string as it is, control characters and invalid UTF-8 escaped, an array
 * as ["a", "b", ... 256000 in all]; long ones shortened. NULL when out of memory. */
char *pd_meta_text(const struct pd_meta *m);
/* The same for a string that comes from elsewhere. */
char *pd_string_text(struct pd_string s);

/* ---- packed bits ---- */

/* What decoders and the layout of rows on the device both take out of blocks of the IQ and TQ types; and what decoders
 * and quantisers (src/offline) both read. */

static inline uint16_t pd_load_u16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }
static inline uint32_t pd_load_u32(const uint8_t *p) { return pd_load_u16(p) | (uint32_t)pd_load_u16(p + 2) << 16; }
static inline float pd_load_f16(const uint8_t *p) { return pd_f32_from_f16(pd_load_u16(p)); }

/* The 12 bytes of Q4_K and Q5_K: 8 scales and 8 minimums of six bits. Bytes 0..3 hold scales 0..3 and, above them, the
 * upper two bits of scales 4..7; bytes 4..7 the same of the minimums; bytes 8..11 the low nibbles of scales 4..7, and
 * above them those of the minimums. */

struct pd_k_scale {
    uint8_t scale, minimum;   /* 0..63 */
};

static inline struct pd_k_scale pd_k_scale_get(const uint8_t packed[12], int g)
{
    bool low = g < 4;
    struct pd_k_scale s;
    s.scale = (uint8_t)(low ? packed[g] & 63 : (packed[g + 4] & 15) | packed[g - 4] >> 6 << 4);
    s.minimum = (uint8_t)(low ? packed[g + 4] & 63 : packed[g + 4] >> 4 | packed[g] >> 6 << 4);
    return s;
}

/* The signs of eight weights from the lowest seven bits: there is an even number of minuses. */
static inline unsigned pd_eight_signs(uint32_t bits)
{
    unsigned seven = bits & 127, parity = seven ^ seven >> 4;
    parity ^= parity >> 2;
    return seven | ((parity ^ parity >> 1) & 1) << 7;
}

/* IQ1_M: the f16 scale of a block, whose nibbles are the upper ones of four u16 at its end. */
static inline uint16_t pd_iq1_m_scale(const uint8_t *block)
{
    return (uint16_t)(block[49] >> 4 | (block[51] & 0xf0) | (block[53] & 0xf0) << 4 | (block[55] & 0xf0) << 8);
}

/* IQ1_M: the three bits of scale of weights 16 i .. + 15. */
static inline unsigned pd_iq1_m_group_scale(const uint8_t *block, int i)
{
    const uint8_t *four = block + 48 + i / 4 * 2;
    return (unsigned)(four[0] | four[1] << 8) >> i % 4 * 3 & 7;
}

/* TQ1_0: weight i in 0..2. Five digits to the base 3 are a byte, as a fraction of 256: 32 bytes have the digits of 160
 * weights, 16 those of 80, 4 (of four digits) those of 16; digit k of byte j is weight j + k times the run's bytes. */
static inline unsigned pd_tq1_0_digit(const uint8_t *block, int i)
{
    static const struct { uint8_t first, n_bytes, at; } runs[] = {{0, 32, 0}, {160, 16, 32}, {240, 4, 48}};
    static const uint8_t powers[] = {1, 3, 9, 27, 81};
    int r = (i >= 160) + (i >= 240), j = i - runs[r].first;
    uint8_t rest = (uint8_t)(block[runs[r].at + j % runs[r].n_bytes] * powers[j / runs[r].n_bytes]);
    return rest * 3u >> 8;
}

/* ---- arena ---- */

/* Memory with one lifetime: many small pieces, freed together. What a parsed file keeps (names, arrays) lives in
 * one. */

struct pd_arena_block;

/* Zero-initialise ({0}). */
struct pd_arena {
    struct pd_arena_block *last;
};

/* size bytes, zeroed, aligned for any type; NULL when out of memory. size may be 0. */
void *pd_arena_alloc(struct pd_arena *a, size_t size);
/* n things of `size` bytes; NULL also when the product overflows. */
void *pd_arena_array(struct pd_arena *a, size_t n, size_t size);
/* A NUL-terminated copy of `size` bytes. */
char *pd_arena_string(struct pd_arena *a, const void *data, size_t size);
void pd_arena_free(struct pd_arena *a);

/* ---- dtype ---- */

/* The weight types of tensors in files: names, block sizes, and the conversions between a row of floats and its blocks
 * on the CPU. They are the rows of shaders/types.def. Block layouts are GGUF's. All numbers in files are
 * little-endian, as are all hosts that Peridot runs on. */

enum pd_dtype {
#define ROW(name, NAME, ...) PD_##NAME,
    PD_TYPES(ROW, )
#undef ROW
    PD_N_DTYPES,
    PD_DTYPE_OTHER = PD_N_DTYPES   /* a type without a row: only tensors that the model ignores may have one */
};

struct pd_dtype_info {
    const char *name;          /* "q8_0", as options and reports spell it */
    const char *upper;         /* "Q8_0", as safetensors spells types of one number */
    void (*decode)(float *dst, const uint8_t *src, uint64_t n);   /* n blocks */
    enum pd_dtype smaller;     /* see pd_dtype_for_row */
    uint32_t gguf;             /* ggml_type number */
    uint32_t file_type;        /* llama_ftype of a file most of whose weights have it */
    uint32_t block_len;        /* weights in a block */
    uint32_t block_size;       /* bytes of a block in a file */
    uint32_t scale_at;         /* byte of a block where its fp16 scale is and, where it has one, after it the minimum */
    uint32_t n_scales;         /* 1; 2 with the minimum; 0: none of fp16, or not in one place */
};

extern const struct pd_dtype_info pd_dtypes[PD_N_DTYPES];

/* False when the name or number is not known. Names as options and as names of files have them: "q4_k", "Q4_K",
 * "Q4_K_M", "IQ3_M". */
bool pd_dtype_by_name(enum pd_dtype *out, const char *name);
bool pd_dtype_by_gguf(enum pd_dtype *out, uint32_t ggml_type);
bool pd_dtype_by_safetensors(enum pd_dtype *out, const char *name);
/* Name of any ggml type, known to us or not ("q6_k"), for messages; "type 99" is never NULL but "unknown". */
const char *pd_gguf_type_name(uint32_t ggml_type);

/* The type itself where rows of n weights are whole blocks of it; else one of blocks of 32 with as many bits or the
 * next more; else f16. */
enum pd_dtype pd_dtype_for_row(enum pd_dtype dtype, uint64_t n);
/* Bytes of n weights; n must be a multiple of block_len. */
uint64_t pd_row_size(enum pd_dtype dtype, uint64_t n);
/* n weights (a multiple of block_len) from blocks, which need no alignment, to floats. src/offline has the way back. */
void pd_dequantize(enum pd_dtype dtype, float *dst, const void *src, uint64_t n);

/* ---- tensor ---- */

struct pd_tensor {
    const char *name;
    const char *file;         /* path of the file that holds it, for messages */
    const char *type;         /* name of the dtype, also of one that has no row: "q8_0", "i64" */
    enum pd_dtype dtype;      /* PD_DTYPE_OTHER: only in tensors that text models ignore */
    uint32_t n_dims;          /* 1..4; 0: a scalar (safetensors only) */
    uint64_t shape[4];        /* outermost first; unused ones are 1 */
    const uint8_t *data;      /* in the mapping; may be unaligned in safetensors */
    const uint8_t *const *experts;   /* [shape[0]]: where each matrix is, where they are apart (data: the first) */
    /* Of gpt-oss's experts in Hugging Face directories (experts.c): where a weight is, counted in weights from data on;
     * stride[0] 0: rows are as ever. With block_scales there are blocks of MXFP4, 16 bytes each of 32 weights that are
     * neighbours by twos, and a scale for each block; else plain numbers. */
    uint64_t first, stride[3];
    const uint8_t *block_scales;
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
/* Where a row of its matrices is, in the mapping, or in scratch, where a row has room: see stride. */
const uint8_t *pd_tensor_row(const struct pd_tensor *t, uint64_t row, uint8_t *scratch);
/* n weights from number `first` on, whole blocks, with their scales; or these as they are in the file. */
void pd_tensor_dequantize(float *dst, const struct pd_tensor *t, uint64_t first, uint64_t n);
void pd_tensor_copy(uint8_t *dst, const struct pd_tensor *t, uint64_t first, uint64_t n);
/* It was read: see pd_map_forget. */
void pd_tensor_forget(const struct pd_tensor *t);
/* By its name in a Hugging Face directory: a part of a multimodal model that text does not need, or of a drafter that
 * only spares it logits. */
bool pd_tensor_is_unread(const char *name);
/* True, with the first one's index, when some weight is NaN or infinite (or its block's or its tensor's scale is). For
 * sentences: it reads all of the tensor. */
bool pd_tensor_find_nonfinite(const struct pd_tensor *t, uint64_t *index);

/* ---- hf ---- */

struct pd_hf {
    struct pd_arena arena;
    yyjson_doc *config;
    yyjson_doc *modules;             /* of modules.json, an array of objects; NULL: there is none */
    struct pd_map *maps;             /* one for each of n_maps files, */
    char **paths;                    /* and their names */
    size_t n_maps;
    struct pd_tensor_list tensors;   /* file after file, in the order of their data */
};

enum pd_hf_part {
    PD_HF_CONFIG,      /* config.json alone */
    PD_HF_MODEL,       /* with the tensors */
    PD_HF_ADAPTER      /* adapter_config.json and adapter_model.safetensors: PEFT's */
};

/* On failure *out is empty. */
peridot_status pd_hf_open(struct pd_hf *out, const char *directory, enum pd_hf_part part);
void pd_hf_close(struct pd_hf *h);
peridot_status pd_hf_check(peridot_status status, const struct pd_hf *h);
/* Whether a string of a file names something in the model's own folder: with a slash or a drive it could be
 * anywhere. */
bool pd_hf_is_own_name(const char *name);

/* ---- gguf write ---- */

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

/* ---- checkpoint ---- */

struct pd_checkpoint;

enum pd_checkpoint_kind { PD_CHECKPOINT_GGUF, PD_CHECKPOINT_HF };

/* `path`: a .gguf file (told by its magic, not its name), the first of its parts, or a directory. A GGUF without
 * tensors opens. A tensor of a type that Peridot does not know is refused by name. A Hugging Face directory needs
 * config.json; its tensors are opened only when with_tensors. There, tensors of the vision tower, which text models
 * ignore, may have any type (PD_DTYPE_OTHER). */
peridot_status pd_checkpoint_open(struct pd_checkpoint **out, const char *path, bool with_tensors);
/* The same of an adapter to a model: a .gguf file, or a PEFT directory, whose adapter_config.json is the config
 * then. */
peridot_status pd_checkpoint_open_adapter(struct pd_checkpoint **out, const char *path);
void pd_checkpoint_close(struct pd_checkpoint *c);
/* What came of reading its files: status, or a failure where a part of one was gone (pd_map_check). */
peridot_status pd_checkpoint_check(peridot_status status, const struct pd_checkpoint *c);
/* Tells models apart: of all tensors' names, types and shapes, and of some bytes of each. */
uint64_t pd_checkpoint_hash(const struct pd_checkpoint *c);
/* Fails where `path` is one of its files. */
peridot_status pd_checkpoint_check_output(const struct pd_checkpoint *c, const char *path);

enum pd_checkpoint_kind pd_checkpoint_kind(const struct pd_checkpoint *c);
const char *pd_checkpoint_path(const struct pd_checkpoint *c);

size_t pd_checkpoint_n_tensors(const struct pd_checkpoint *c);
const struct pd_tensor *pd_checkpoint_tensor(const struct pd_checkpoint *c, size_t i);   /* in file order */
const struct pd_tensor *pd_checkpoint_find(const struct pd_checkpoint *c, const char *name);   /* NULL: none */

/* Hugging Face: the root object of config.json; NULL for GGUF. */
yyjson_val *pd_checkpoint_config(const struct pd_checkpoint *c);
/* The root array of sentence-transformers' modules.json; NULL: there is none. */
yyjson_val *pd_checkpoint_modules(const struct pd_checkpoint *c);

/* GGUF metadata; none in a Hugging Face directory. */
size_t pd_checkpoint_n_meta(const struct pd_checkpoint *c);
const struct pd_meta *pd_checkpoint_meta(const struct pd_checkpoint *c, size_t i);
const struct pd_meta *pd_checkpoint_find_meta(const struct pd_checkpoint *c, const char *key);   /* NULL: none */

#endif
