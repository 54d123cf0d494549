/* What the files of this folder have among themselves. */
#ifndef PD_OFFLINE_OFFLINE_PRIVATE_H
#define PD_OFFLINE_OFFLINE_PRIVATE_H

#include "arch/arch.h"
#include "base/base.h"
#include "format/format.h"
#include "offline/offline.h"
#include "peridot_tools.h"

/* ---- merge ---- */

enum { PD_MAX_MERGED = 32 };

struct pd_merge {
    const struct pd_config *config;
    const peridot_adapter_file *files;
    struct pd_adapter adapters[PD_MAX_MERGED];
    uint32_t n;
};

/* What is added to one matrix, its rows in a GGUF file's order. */
struct pd_merge_matrix {
    uint32_t n_ranks;          /* of all adapters; 0: nothing is added */
    uint32_t n_cols;
    float *a, *b;              /* [n_ranks][n_cols], [n_rows][n_ranks] */
};

/* Borrows config and files. *out must be closed even on failure. */
peridot_status pd_merge_open(struct pd_merge *out, const struct pd_config *config, const peridot_adapter_file *files,
                             size_t n);
void pd_merge_close(struct pd_merge *m);
/* By the tensor's name in a GGUF file. pd_merge_matrix_free frees it, even on failure. */
peridot_status pd_merge_find(struct pd_merge_matrix *out, const struct pd_merge *m, const char *name);
void pd_merge_matrix_free(struct pd_merge_matrix *x);
/* Adds it to n weights of the matrix, from number `first` on. */
void pd_merge_add(float *weights, const struct pd_merge_matrix *x, uint64_t first, uint64_t n);

/* ---- random weights ---- */

enum { PD_RANDOM_TABLE = 4096 };

/* What a tensor's weights are drawn from: uniform, mean 0. */
struct pd_random_weights {
    struct pd_random random;
    enum pd_dtype dtype;
    float half_width;
    uint16_t table[PD_RANDOM_TABLE];   /* weights as f16 or bf16, or f16 scales of blocks */
};

void pd_random_weights_init(struct pd_random_weights *w, enum pd_dtype dtype, float standard_deviation, uint64_t seed,
                            uint64_t stream);
/* The next n blocks. */
void pd_random_weights_fill(struct pd_random_weights *w, uint8_t *dst, uint64_t n);

/* ---- convert plan ---- */

/* How much the columns of a tensor's matrices count. */
struct pd_column_importance {
    const float *means;               /* [n_matrices][n_cols], positive; NULL: it is not known */
    const bool *seen;                 /* [n_matrices]; false: nothing is known of this one */
};

struct pd_convert_item {
    const char *name;
    const struct pd_tensor *source;   /* NULL: `made` is its data, n_dims is 1 and dtype f32 */
    const float *made;
    enum pd_dtype dtype;              /* PD_N_DTYPES: not chosen yet */
    uint32_t n_dims;
    uint64_t shape[4];                /* outermost first */
    bool plus_one;                    /* add 1 to every weight: Hugging Face centres norm weights on zero */
    bool interleaves;                 /* rows of q and k are ordered for rotation of neighbours, in heads */
    struct pd_head_order order;       /* of so many rows */
    struct pd_value_order value_rows, value_columns;   /* see pd_plan */
    bool exponential;                 /* every weight becomes -exp(weight): Hugging Face has logarithms of decays */
    struct pd_column_importance importance;
};

struct pd_convert_plan {
    struct pd_arena arena;            /* names and what is made */
    struct pd_convert_item *items;
    uint32_t n, capacity;
    uint32_t vocab_size;              /* rows of the embedding; 0 for a GGUF source, whose keys are copied */
    uint32_t n_replaced;              /* matrices that got another type because their rows are not whole blocks */
    uint32_t n_ignored;               /* tensors that are left out: those of vision */
};

/* What matrices become: those of a mix what it says; else `dtype`, but where it has below 6 bits embeddings and output
 * q6_k. What published files never quantise becomes bf16; all else becomes f32. */
struct pd_convert_target {
    enum pd_dtype dtype;
    const struct pd_mix *mix;         /* NULL: none */
    bool has_imatrix;
};

/* The config is that of a Hugging Face directory, and not read for a GGUF file. Checks all shapes. *out is freed by
 * pd_convert_plan_free even on failure; tensors are borrowed. */
peridot_status pd_convert_plan_create(struct pd_convert_plan *out, const struct pd_checkpoint *c,
                                      const struct pd_config *config, const struct pd_convert_target *target);
void pd_convert_plan_free(struct pd_convert_plan *p);

/* ---- mixes ---- */

struct pd_mix {
    const char *name;
    enum pd_dtype dtype;       /* of matrices that no rule speaks of */
    uint32_t file_type;        /* llama_ftype */
};

/* What rules ask of a model. */
struct pd_mix_model {
    uint64_t n_layers, n_experts, heads_per_key;
    bool is_70b;               /* Llama's or Qwen's of 80 layers, whose heads share keys */
    bool has_imatrix;
};

/* NULL past the last. */
const struct pd_mix *pd_mix_get(size_t i);
/* Chooses for those of the n items whose type is not chosen yet, as if all rows were whole blocks. */
peridot_status pd_mix_choose(struct pd_convert_item *items, uint32_t n, const struct pd_mix *mix,
                             const struct pd_mix_model *model);
/* Whether the matrix is not to be written without an importance. mix: of the file, or NULL. */
bool pd_mix_needs_importance(const struct pd_mix *mix, const struct pd_convert_item *item);

/* ---- synthetic vocab ---- */

/* tokenizer.ggml.token_type */
enum pd_token_type {
    PD_TOKEN_NORMAL = 1, PD_TOKEN_UNKNOWN, PD_TOKEN_CONTROL, PD_TOKEN_USER_DEFINED, PD_TOKEN_UNUSED, PD_TOKEN_BYTE
};

struct pd_synthetic_vocab {
    struct pd_arena arena;
    uint32_t n, capacity;
    struct pd_string *tokens;
    float *scores;
    int32_t *types;
    uint32_t bos, eos, unknown, end_of_turn;   /* end_of_turn: 0 when there is none */
    bool has_pad;                              /* pad is id 0 */
    bool failed;                               /* out of memory on the way */
};

peridot_status pd_synthetic_vocab_create(struct pd_synthetic_vocab *out, const struct pd_shape *shape);
void pd_synthetic_vocab_free(struct pd_synthetic_vocab *v);

/* ---- importance ---- */

struct pd_importance;

peridot_status pd_importance_open(struct pd_importance **out, const char *path);
/* NULL is allowed. */
void pd_importance_close(struct pd_importance *m);
/* Of the tensor of a GGUF name, until it is closed. A file that has it in another size is refused. */
peridot_status pd_importance_find(struct pd_column_importance *out, struct pd_importance *m, const char *name,
                                  uint64_t n_matrices, uint64_t n_cols);
/* How many were found, and how many matrices of theirs nothing is known of. */
uint32_t pd_importance_n_found(const struct pd_importance *m);
uint32_t pd_importance_n_unseen(const struct pd_importance *m);

/* ---- quantisers, private ---- */

/* What the rows of types.def that write name, and the writing of bytes. Each product is its own statement where its
 * rounding counts, so that no compiler fuses it with the addition after it. In all of them n counts blocks. */

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

#define WRITER_reads(name)
#define WRITER_writes(name) \
    void pd_##name##_encode(uint8_t *dst, const float *src, const float *importance, uint64_t n);
#define ROW(name, NAME, form, writes, ...) WRITER_##writes(name)
PD_TYPES(ROW, )
#undef ROW
#undef WRITER_writes
#undef WRITER_reads

/* For blocks of 32 weights with an importance each, what makes the errors that count by it least, of 8 blocks or the n
 * that are left: w = scale * q with q in -most..most - 1, and w = scale * q - minimum with q in 0..most, 15 or 31. */
struct pd_block_fits {
    float scale[8], minimum[8];
};
void pd_fit_scales(struct pd_block_fits *out, const float *src, const float *importance, uint64_t n, float most);
void pd_fit_steps(struct pd_block_fits *out, const float *src, const float *importance, uint64_t n, float most);

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
