/* The weight types of tensors in files: names, block sizes, and the conversions between a row of floats and its blocks
 * on the CPU. One table; a new type is a row in it, a decoder and (where we write it) an encoder. Block layouts are
 * GGUF's. All numbers in files are little-endian, as are all hosts that Peridot runs on. */
#ifndef PD_FORMAT_DTYPE_H
#define PD_FORMAT_DTYPE_H

#include "base/status.h"

enum pd_dtype {
    PD_F32, PD_F16, PD_BF16, PD_Q8_0, PD_Q4_0, PD_Q4_1, PD_Q5_0, PD_Q5_1, PD_Q2_K, PD_Q3_K, PD_Q4_K, PD_Q5_K, PD_Q6_K,
    PD_IQ4_NL, PD_IQ4_XS, PD_TQ1_0, PD_TQ2_0, PD_IQ1_S, PD_IQ1_M, PD_IQ2_XXS, PD_IQ2_XS, PD_IQ2_S, PD_IQ3_XXS, PD_IQ3_S,
    PD_MXFP4, PD_NVFP4, PD_Q1_0, PD_Q2_0, PD_N_DTYPES,
    PD_DTYPE_OTHER = PD_N_DTYPES   /* a type without a row: only tensors that the model ignores may have one */
};

struct pd_dtype_info {
    const char *name;          /* "q8_0", as options and reports spell it */
    const char *safetensors;   /* "BF16", or NULL when safetensors has no such type */
    uint32_t gguf;             /* ggml_type number */
    uint32_t block_len;        /* weights in a block */
    uint32_t block_size;       /* bytes of a block in a file */
    /* n blocks at a time; encode is NULL for types that are only read. */
    void (*decode)(float *dst, const uint8_t *src, uint64_t n);
    void (*encode)(uint8_t *dst, const float *src, uint64_t n);
    void (*encode_by)(uint8_t *dst, const float *src, const float *importance, uint64_t n);   /* NULL: there is none */
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
/* n weights (a multiple of block_len) from blocks to floats and back. The blocks need no alignment. Quantisers give the
 * same blocks as the reference quantiser of ggml. */
void pd_dequantize(enum pd_dtype dtype, float *dst, const void *src, uint64_t n);
void pd_quantize(enum pd_dtype dtype, void *dst, const float *src, uint64_t n);
/* importance [n]: by how much the square of each weight's error counts; for types that cannot tell it is ignored. */
void pd_quantize_by(enum pd_dtype dtype, void *dst, const float *src, const float *importance, uint64_t n);

#endif
