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

/* ---- dtype private ---- */

/* Private to dtype*.c: what the rows of types.def name, and the reading and writing of bytes. The block coders follow
 * ggml's reference (ggml-quants.c: dequantize_row_*, quantize_row_*_ref) operation by operation, because files made
 * here and elsewhere should be equal. Each product is its own statement where its rounding counts, so that no compiler
 * fuses it with the addition after it. In all of them n counts blocks. */

static inline uint16_t pd_load_u16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }
static inline uint32_t pd_load_u32(const uint8_t *p) { return pd_load_u16(p) | (uint32_t)pd_load_u16(p + 2) << 16; }
static inline float pd_load_f16(const uint8_t *p) { return pd_f32_from_f16(pd_load_u16(p)); }

static inline void pd_store_u16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

static inline void pd_store_f16(uint8_t *p, float f) { pd_store_u16(p, pd_f16_from_f32(f)); }

/* A float to an integer in low..high; NaN, which only infinite or NaN weights lead to, gives 0. */
static inline int pd_clamp_to_int(float x, int low, int high)
{
    if (x != x) return 0;
    if (x < (float)low) return low;
    return x > (float)high ? high : (int)x;
}

/* dtype.c, dtype_block32.c, dtype_k.c, dtype_iq.c */
#define READER(name) void pd_##name##_decode(float *dst, const uint8_t *src, uint64_t n);
#define READER_reads(name) READER(name)
#define READER_writes(name) \
    READER(name) void pd_##name##_encode(uint8_t *dst, const float *src, const float *importance, uint64_t n);
#define ROW(name, NAME, form, writes, ...) READER_##writes(name)
PD_TYPES(ROW, )
#undef ROW
#undef READER_writes
#undef READER_reads
#undef READER

/* For blocks of 32 weights with an importance each, what makes the errors that count by it least, of 8 blocks or the n
 * that are left: w = scale * q with q in -most..most - 1, and w = scale * q - minimum with q in 0..most, 15 or 31. */
struct pd_block_fits {
    float scale[8], minimum[8];
};
void pd_fit_scales(struct pd_block_fits *out, const float *src, const float *importance, uint64_t n, float most);
void pd_fit_steps(struct pd_block_fits *out, const float *src, const float *importance, uint64_t n, float most);

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

/* ---- k scales ---- */

/* The 12 bytes of Q4_K and Q5_K: 8 scales and 8 minimums of six bits. Bytes 0..3 hold scales 0..3 and, above them, the
 * upper two bits of scales 4..7; bytes 4..7 the same of the minimums; bytes 8..11 the low nibbles of scales 4..7, and
 * above them those of the minimums. */

struct pd_k_scale {
    uint8_t scale, minimum;   /* 0..63 */
};

static inline struct pd_k_scale pd_k_scale_get(const uint8_t packed[12], int g)
{
    if (g < 4) return (struct pd_k_scale){packed[g] & 63, packed[g + 4] & 63};
    return (struct pd_k_scale){(uint8_t)((packed[g + 4] & 15) | packed[g - 4] >> 6 << 4),
                               (uint8_t)(packed[g + 4] >> 4 | packed[g] >> 6 << 4)};
}

/* Into bytes that were cleared. */
static inline void pd_k_scale_set(uint8_t packed[12], int g, struct pd_k_scale s)
{
    if (g < 4) {
        packed[g] |= s.scale;
        packed[g + 4] |= s.minimum;
        return;
    }
    packed[g + 4] = (uint8_t)((s.scale & 15) | (s.minimum & 15) << 4);
    packed[g - 4] |= (uint8_t)(s.scale >> 4 << 6);
    packed[g] |= (uint8_t)(s.minimum >> 4 << 6);
}

#endif
