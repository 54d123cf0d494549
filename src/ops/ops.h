/* Operations of a forward pass as dispatches of kernels: which variant of a kernel a device takes, how rows of weights
 * lie on it, how a launch is tuned, and the calls that record one. A recorder belongs to one thread. */
#ifndef PD_OPS_OPS_H
#define PD_OPS_OPS_H

#include "format/format.h"
#include "gpu/gpu.h"

/* ---- layout ---- */

/* The type whose kernels read rows of this one: another's, where they lie as its rows do. */
enum pd_dtype pd_device_dtype(enum pd_dtype dtype);
/* Bytes of a row of n weights on the device, a multiple of 16. n must be a multiple of the type's block_len. */
uint32_t pd_device_row_size(enum pd_dtype dtype, uint32_t n);
/* Rows of a group: 8 where lanes of a CPU have rows of their own (matvec_rows), which it then reads in order; else
 * 1. */
uint32_t pd_device_row_interleave(enum pd_dtype dtype, bool lanes_take_rows);
/* Bytes of a matrix of n_rows such rows: whole groups. */
uint64_t pd_device_rows_size(uint32_t row_size, uint32_t n_rows, uint32_t row_interleave);
/* Rows of a matrix. */
struct pd_row_layout {
    enum pd_dtype dtype;
    uint32_t n, row_interleave;   /* weights of a row; rows of a group */
};
/* Re-lays a row of a file as row i of the matrix at dst; its end is padded with zeros. scale: what all its weights are
 * multiplied by, where the type has room for that (NVFP4). scratch: [pd_device_row_size]. */
void pd_device_put_row(const struct pd_row_layout *layout, uint8_t *dst, uint32_t i, const uint8_t *src,
                       float scale, uint8_t *scratch);

/* ---- matrix ---- */

/* Matrices on the device, as operations read them: rows of blocks, in slices. How a row lies there: `layout`, below. */

/* Contiguous rows of one type. A matrix has several where types are mixed or an allocation would be too
 * large. */
struct pd_slice {
    uint64_t address;
    enum pd_dtype dtype;
    uint32_t first_row, n_rows, row_size;
    uint32_t row_interleave;       /* rows of a group: see `layout`; 0 is 1 */
};

struct pd_matrix {
    uint32_t n_rows, n_cols, n_slices;
    struct pd_slice *slices;
};

/* What multiplies rows: y[m] = softcap(w x[m] + bias), and with adapters y[m] = w x[m] + bias + what they add. */
struct pd_linear {
    struct pd_matrix w;            /* [n_rows][n_cols] */
    uint64_t bias;                 /* [n_rows] fp32 on the device; 0: none */
    float softcap;                 /* of what comes out; 0: none */
    bool exact;                    /* fp32, whatever the device does faster */
    uint64_t squares;              /* what pd_op_squares adds up of what it multiplies; 0: nothing */
    uint32_t n_experts;            /* 0: one; else the rows are of so many matrices, one after the other */
    const struct pd_lora *lora;    /* NULL: no adapter adds anything; else there is no softcap */
};

/* What low-rank adapters add to rows of a matrix: of each adapter scale[m] B (A x[m]), the scales being those of the
 * row. The matrices A of all of them are one, below each other. */
struct pd_lora {
    struct pd_linear a;            /* [sum of ranks][n_cols] */
    uint64_t b;                    /* fp32: of each part [rank][n_rows], B turned over */
    uint64_t parts;                /* [n_parts] struct pd_lora_part */
    uint32_t n_parts;
};

/* A matrix that is looked up by row: all of one type, every slice but the last of rows_per_slice rows. */
struct pd_table {
    const struct pd_matrix *matrix;
    struct pd_span addresses;      /* [n_slices] 64-bit device addresses */
    uint32_t rows_per_slice;
};

/* ---- tuning ---- */

/* Tunings of the matvec kernels in a decode step, and which products of a prompt are worth tiles. Defaults are a
 * short table by kind of device; a search (probe/tune.c) measures better ones, which the cache folder keeps for each
 * device and driver. Results differ by rounding only. */

/* How a decode step uses a matrix: the product alone; with the norm before it; with the norm and the gated unit. */
enum pd_use { PD_USE_PLAIN, PD_USE_NORMED, PD_USE_GATED, PD_N_USES };

struct pd_tuning {
    /* of the matrix that a subgroup (matvec) or a lane (matvec_rows) multiplies at a time; 0: not measured */
    uint32_t rows;
    uint32_t workgroup;   /* invocations */
    uint32_t subgroup;    /* its size; 0: the driver chooses */
    uint32_t width;       /* units of a row (weights.glsl) that a lane of matvec loads at a time */
};

/* Up to how many tokens matvec multiplies a matrix, and not a kernel that makes tiles; or, of experts, how many of each
 * there are in the mean. */
enum pd_few { PD_FEW_TOKENS, PD_FEW_OF_EXPERT, PD_N_FEWS };
#define PD_MAX_FEW 64

struct pd_tunings {
    struct pd_tuning of[PD_N_KERNELS][PD_N_USES];   /* all zeros for kernels that are not tuned */
    uint32_t few[PD_N_KERNELS][PD_N_FEWS];          /* of kernels that make tiles; 0: not measured */
};

/* Whether it is of matvec, matvec_rows or matvec_dot. */
bool pd_is_tuned(enum pd_kernel_id id);
/* From the table: for matrices of many rows. */
struct pd_tuning pd_tuning_default(const peridot_device_info *device, enum pd_kernel_id id, enum pd_use use);
/* The search's range: tuning i of it, false past the last. pd_tuning_fits: whether a kernel can have it in a use. */
#define PD_MAX_TUNINGS 104   /* that there can be */
bool pd_tuning_at(struct pd_tuning *out, const peridot_device_info *device, uint32_t i);
bool pd_tuning_fits(struct pd_tuning tuning, enum pd_kernel_id id, enum pd_use use);
/* For a matrix of n_rows rows: what was measured, else the default, with fewer rows at a time where a GPU would have
 * too few subgroups. tunings may be NULL. */
struct pd_tuning pd_tuning_get(const struct pd_tunings *tunings, const peridot_device_info *device,
                               enum pd_kernel_id id, enum pd_use use, uint32_t n_rows);
/* Of a kernel that makes tiles: a power of two up to PD_MAX_FEW, as measured or by default; tunings may be NULL. */
bool pd_makes_tiles(enum pd_kernel_id id);
uint32_t pd_few_get(const struct pd_tunings *tunings, enum pd_kernel_id id, enum pd_few few);
const char *pd_few_name(enum pd_few few);
/* One tuning for all kernels and uses that it fits. */
struct pd_tunings pd_tunings_of(struct pd_tuning tuning);
const char *pd_use_name(enum pd_use use);

/* Reads what cache_dir (NULL: nothing) holds for the device; tunings of kernels that have changed since are skipped. */
void pd_tunings_read(struct pd_tunings *out, const peridot_device_info *device, const char *cache_dir);
/* Writes all that was measured. */
peridot_status pd_tunings_write(const struct pd_tunings *tunings, const peridot_device_info *device,
                                const char *cache_dir);

/* ---- variants ---- */

enum pd_varied { PD_VARIED_MATMUL, PD_VARIED_MATVEC, PD_VARIED_ATTENTION, PD_N_VARIED };

/* Rows of the table. */
enum pd_variant {
    PD_VARIANT_MATMUL_COOP, PD_VARIANT_MATMUL_DOT, PD_VARIANT_MATMUL_HALF, PD_VARIANT_MATMUL_TILE,
    PD_VARIANT_MATMUL_MATVEC,
    PD_VARIANT_MATVEC_ROWS, PD_VARIANT_MATVEC_DOT, PD_VARIANT_MATVEC_COLUMNS,
    PD_VARIANT_ATTENTION_ROWS, PD_VARIANT_ATTENTION_COOP, PD_VARIANT_ATTENTION_HALF, PD_VARIANT_ATTENTION_TILE,
    PD_VARIANT_ATTENTION_COLUMNS,
    PD_N_VARIANTS
};

/* What a model takes for each operation. forced: the user named it, and it is taken for few tokens as well. */
struct pd_variants {
    enum pd_variant of[PD_N_VARIED];
    bool forced[PD_N_VARIED];
    bool exact;                         /* only exact ones: see peridot_precision */
    bool batch_invariant;               /* see pd_variants_make_batch_invariant */
    const struct pd_tunings *tunings;   /* NULL: none was measured */
};

/* The defaults of the device. */
struct pd_variants pd_variants_default(const peridot_device_info *device);
/* The device's best of that precision, but for what `list` names: n texts such as "matmul=tile". */
peridot_status pd_variants_choose(struct pd_variants *out, const peridot_device_info *device,
                                  peridot_precision precision, const char *const *list, size_t n);
/* Takes what gives a row of a decode step the same bits whatever other rows there are, unless the user named another:
 * matvec=dot is for one row only, and tuned sizes of subgroups change the order of sums. */
void pd_variants_make_batch_invariant(struct pd_variants *variants);
/* Takes v as if the user had named it. */
void pd_variants_force(struct pd_variants *variants, enum pd_variant v);
/* How rows of n weights lie on a device: as suits the kernels that it takes by default. All others read them, too. */
struct pd_row_layout pd_row_layout_of(const peridot_device_info *device, enum pd_dtype dtype, uint32_t n);
/* Its kernel for a type (an enum pd_dtype of weights or a peridot_kv_type of the cache); PD_N_KERNELS: it has none. */
enum pd_kernel_id pd_variant_kernel(enum pd_variant v, uint32_t type);
/* v where it has a kernel for the type, else the first of its fallbacks that has. */
enum pd_variant pd_variant_for_type(enum pd_variant v, uint32_t type);
/* The kernel that packs activations as its kernel for a type reads them; PD_N_KERNELS: it reads them as they are. */
enum pd_kernel_id pd_variant_pack(enum pd_variant v, uint32_t type);
/* The first of v and its fallbacks that has a kernel for the type which no self-test has disabled; v if there is
 * none. An exact variant falls back to exact ones alone. */
enum pd_variant pd_variant_working(const struct pd_gpu *gpu, enum pd_variant v, uint32_t type);
/* The same, but of its fallbacks alone; v if there is none. */
enum pd_variant pd_variant_after(const struct pd_gpu *gpu, enum pd_variant v, uint32_t type);
/* Whether another kernel is taken where this one is wrong. */
bool pd_kernel_has_fallback(enum pd_kernel_id id);
/* "matmul=tile, matvec=columns" */
void pd_variants_text(char *out, size_t size, const struct pd_variants *variants);
/* Whether the device and this build can run it. */
bool pd_variant_available(const peridot_device_info *device, enum pd_variant v);
/* See peridot_device_variant. */
bool pd_variants_at(peridot_variant *out, const peridot_device_info *device, size_t i);

/* ---- ops ---- */

/* Activations on the device: rows of fp32, `stride` floats apart, padded with zeros to a multiple of PD_PAD. */
struct pd_rows {
    uint64_t address;
    uint32_t stride;
};

static inline struct pd_rows pd_rows_at(struct pd_rows rows, uint32_t row, uint32_t column)
{
    return (struct pd_rows){rows.address + 4 * ((uint64_t)row * rows.stride + column), rows.stride};
}

struct pd_recorder {
    struct pd_gpu *gpu;
    /* NULL: kernels are compiled and nothing is recorded; addresses only say whether a buffer exists */
    struct pd_commands *commands;
    struct pd_variants variants;
    /* [tokens, or pairs of experts][pd_packed_most of the widest matrix] words: scratch of variants that read x
     * packed */
    uint64_t packed;
    /* pd_split_sums_size bytes: scratch of products with few tiles, whose columns are split; 0: none are */
    uint64_t split_sums;
    uint32_t n_splits;         /* of every product, for tests; 0: as it has tiles */
    bool chunk;                /* some rows are of prompts */
    /* Operations are recorded in pieces of about so many multiplications, which can be submitted one by one; 0: one */
    uint64_t piece_work;
    uint64_t work, most_work;  /* of the piece that is recorded, and of the largest one */
    /* Where the model has adapters: scratch, [tokens][sum of a matrix's ranks], and by how much each of the tokens
     * takes each of them: [tokens][n_adapters] */
    struct pd_rows lora;
    uint64_t lora_scales;
    uint32_t n_adapters;
    bool decode;               /* some are of decode steps: matrices sum each as if it were alone, however many there
                                  are */
    peridot_status status;
};

/* Words of a row that is packed by the kernel, and the most by any of them. */
uint32_t pd_packed_stride(enum pd_kernel_id pack, uint32_t n_cols);
uint32_t pd_packed_most(uint32_t n_cols);
/* 0 where columns are never split: on software devices, and where a row's bits may not depend on how many there are. */
uint64_t pd_split_sums_size(const struct pd_variants *variants, const peridot_device_info *device);

/* Copies size bytes, from an offset in a span to one in another. */
void pd_op_copy(struct pd_recorder *r, struct pd_span to, uint64_t to_offset, struct pd_span from, uint64_t from_offset,
                uint64_t size);

/* x[m] = table[tokens[m]] * scale, or embedded[m] where the token is PD_EMBEDDED */
struct pd_embed {
    struct pd_rows x;
    const struct pd_table *table;
    uint64_t tokens;           /* [n_tokens] */
    uint64_t embedded;         /* rows of x's stride; 0: token 0 stands in for PD_EMBEDDED */
    float scale;
};
void pd_op_embed(struct pd_recorder *r, const struct pd_embed *e, uint32_t n_tokens);

/* x = (x + (w_post ? rms(y) * w_post : y)) * x_scale (when y has an address), then normed = rms(x) * w (when w is not
 * 0) */
struct pd_norm {
    struct pd_rows x, y, normed;
    uint64_t w_post, w;
    uint32_t n;
    float eps, x_scale;
};
void pd_op_rmsnorm(struct pd_recorder *r, const struct pd_norm *norm, uint32_t n_tokens);

/* y[m] = linear(x[m]): matvec for few tokens, tiles for more. Where it has adapters, the tokens are
 * those of lora_scales.   x [n_tokens][n_cols], y [n_tokens][n_rows] */
void pd_op_linear(struct pd_recorder *r, struct pd_rows y, const struct pd_linear *linear, struct pd_rows x,
                  uint32_t n_tokens);
/* Experts: each token takes n_used of the matrices of a pd_linear. A pair is a token and one of its experts, and pairs
 * are [n_tokens][n_used]. */
struct pd_routes {
    uint64_t choices;          /* [n_tokens][n_used] struct pd_choice */
    uint64_t slots;            /* [n_experts] struct pd_expert_slot, then [n_tokens][n_used] words */
    uint32_t n_experts, n_used, n_tokens;
    bool raw;                  /* weights are those of the softmax over all experts; else they sum to 1 */
    bool sigmoid;              /* or they are sigmoids of logits, raw or not, */
    uint64_t biases;           /* to which these are added to choose by, [n_experts]; 0: none are */
    /* What every token's shared expert found, [n_tokens][n], which pd_op_combine adds times sigmoid of the number in
     * `gate`, [n_tokens][1], or as it is; no address: there is none. */
    struct pd_rows shared, gate;
};
/* Fills both from logits [n_tokens][n_experts], which are not changed; scale [n_experts]: of what each expert finds; 0:
 * nothing is scaled. */
void pd_op_route(struct pd_recorder *r, const struct pd_routes *routes, struct pd_rows logits, uint64_t scale);
/* y[pair] = the pair's expert(x[pair / x_share]): x_share is 1, or n_used where a token's experts read the same.
 * linear is of n_experts matrices in one slice. */
void pd_op_experts(struct pd_recorder *r, struct pd_rows y, const struct pd_linear *linear, struct pd_rows x,
                   const struct pd_routes *routes, uint32_t x_share);
/* y[pair] = act(gate(x[token])) * up(x[token]), the halves of the rows of the pair's expert; `both` ([pairs][2 n]) is
 * used where they are not computed in one dispatch. */
struct pd_gated {
    struct pd_rows y, x, both;
    uint32_t activation;
};
void pd_op_experts_gated(struct pd_recorder *r, const struct pd_linear *linear, const struct pd_gated *gated,
                         const struct pd_routes *routes);
/* y[m] = the sum of a token's pairs x, weighted: n columns. */
void pd_op_combine(struct pd_recorder *r, struct pd_rows y, struct pd_rows x, const struct pd_routes *routes,
                   uint32_t n);
/* Whether rows of prompts have the same bits beside rows of decode steps as without these. */
bool pd_op_can_mix(const struct pd_recorder *r);
/* Tokens of a prompt that most matrices are multiplied by at once: two take about as long. */
uint32_t pd_op_matmul_tokens(const struct pd_recorder *r);

/* The residual and norm before a matrix, fused into its kernel in a decode step: x' = (x + (w_post ? rms(branch)
 * * w_post : branch)) * x_scale, then rms(x') * w. branch 0: x' = x. */
struct pd_fused_norm {
    uint64_t x, branch;        /* [n] fp32, padded with zeros to a multiple of PD_PAD */
    uint64_t w_post, w;        /* [n] */
    uint64_t x_out;            /* where x' goes, not x itself; 0: nowhere */
    uint64_t normed;           /* or where the normed vector goes */
    uint32_t n;
    float eps, x_scale;
};
/* Whether the device has the shared memory for vectors of n. */
bool pd_can_fuse_norm(const struct pd_gpu *gpu, uint32_t n);
/* y = linear(fused_norm(in)), one token */
void pd_op_fused_norm_linear(struct pd_recorder *r, struct pd_rows y, const struct pd_linear *linear,
                             const struct pd_fused_norm *in);
/* y = act(gate(fused_norm(in))) * up(fused_norm(in)), gate and up being the halves of linear's rows; `both` ([2 n]) is
 * used where the halves cannot be read side by side (mixed types) */
void pd_op_fused_norm_gated(struct pd_recorder *r, struct pd_rows y, const struct pd_linear *linear,
                            const struct pd_fused_norm *in, uint32_t activation, struct pd_rows both);

#define PD_COUNT_TYPE(type, enumerator, ...) +1
enum { PD_N_KV_TYPES = PD_CACHES(PD_COUNT_TYPE, ) };

/* The part of a KV cache that belongs to one layer. */
struct pd_kv {
    uint64_t k, v;             /* [pages][PD_PAGE][n_kv_heads] heads: see kv.glsl */
    uint64_t pages;            /* of all sequences: see pd_place */
    peridot_kv_type type;
};
/* What a side of it (PD_KEYS, PD_VALUES) is made of: see params.h; and bytes of a head there. */
uint32_t pd_kv_form(peridot_kv_type type, int side);
uint32_t pd_kv_head_size(peridot_kv_type type, int side, uint32_t head_dim);

/* Shapes of attention, for rope and attention alike. */
struct pd_heads {
    uint32_t n_heads, n_kv_heads, head_dim, window;
    float scale, softcap, eps;
    uint64_t q_norm, k_norm;   /* [head_dim]; 0: none */
    uint64_t sinks;            /* [n_heads], see attention.glsl; 0: none */
    bool v_norm;               /* values are normed, by no weight */
    bool shares_kv;            /* the keys are another layer's: qkv has q only, and nothing is written */
    bool v_is_k;               /* qkv has no v: values are k as the matrix gave it */
};

/* Attention of one layer over the keys up to each token's own. */
struct pd_attention {
    struct pd_heads heads;
    struct pd_kv kv;
    struct pd_rows qkv, y;     /* y[m] [n_heads][head_dim] */
    uint64_t places;           /* [n_tokens] struct pd_place, of the kind of layer */
    uint64_t angles;           /* [n_tokens][head_dim]: cos, then sin */
    uint32_t n_tokens, n_keys; /* n_keys: that one of them may see, where pieces are counted */
    uint32_t kind;             /* of layer: which grid of the step */
    bool consecutive;          /* tokens of a decode step may be consecutive ones of a sequence */
    struct pd_span step;       /* struct pd_step: the grids of a decode step */
    uint64_t partial;          /* results of its splits: see pd_attention_reduce_push */
};

/* Norms and rotates q in place; writes k and v to the cache, normed and k rotated. */
void pd_op_rope(struct pd_recorder *r, const struct pd_attention *a);
/* y[m] = attention(q[m]), all positions of a chunk at once, after pd_op_rope. */
void pd_op_attention(struct pd_recorder *r, const struct pd_attention *a);
/* Both for one token of each of n_tokens sequences, or several consecutive ones: takes qkv as the matrix gave it; keys
 * are split over workgroups. */
void pd_op_attention_decode(struct pd_recorder *r, const struct pd_attention *a);
/* The place of a decode step's token, but for text and first_split: its keys are split by split_pages pages, or more
 * where that would be more than PD_MAX_SPLITS splits. */
struct pd_place pd_decode_place(uint32_t pos, uint32_t window, uint32_t split_pages);
/* Tokens of a decode step that take one reading of the weights together. */
uint32_t pd_decode_columns(const struct pd_variants *variants);
/* Workgroups of attention along x: the step's grid needs it. */
uint32_t pd_attention_groups(const struct pd_recorder *r, const struct pd_heads *heads);

/* y = (x - mean(x)) / sqrt(variance(x) + eps) * w + b, of rows of n */
struct pd_layernorm {
    struct pd_rows x, y;
    uint64_t w, b;             /* [n] */
    uint32_t n;
    float eps;
};
void pd_op_layernorm(struct pd_recorder *r, const struct pd_layernorm *norm, uint32_t n_rows);
/* y[m] = (the mean of block m, of side x side patches of a grid with `width` columns) * scale, n columns of them;
 * then, where w has an address, (y - bias) * w */
struct pd_pool {
    struct pd_rows x, y;
    uint64_t bias, w;          /* [n] */
    uint32_t n, width, side;
    float scale;
};
void pd_op_pool(struct pd_recorder *r, const struct pd_pool *pool, uint32_t n_rows);
/* sums[i] += the sum of x[m][i]^2, n columns of n_tokens rows; sums[n] += n_tokens. With routes, of each expert the
 * same of the pairs that took it; row m of x is that of the x_share pairs from x_share m on. */
struct pd_squares {
    struct pd_rows x;
    uint64_t sums;                     /* fp32 [n_experts or 1][n + 1] */
    uint32_t n, n_tokens;
    const struct pd_routes *routes;    /* NULL: none */
    uint32_t x_share;
};
void pd_op_squares(struct pd_recorder *r, const struct pd_squares *squares);
/* y = clamp(x, low, high), n columns; x and y may be the same */
struct pd_clamp {
    struct pd_rows x, y;
    uint32_t n;
    float low, high;
};
void pd_op_clamp(struct pd_recorder *r, const struct pd_clamp *clamp, uint32_t n_rows);

/* A recurrence of one layer over runs of rows: see struct pd_delta of arch. */
struct pd_recurrence {
    uint64_t runs;             /* [n_runs] struct pd_state_run */
    uint32_t n_runs, n_rows;
    uint32_t n_k, n_v, d_k, d_v, conv;
    bool mamba;                /* Mamba-2's rule */
    bool grouped;              /* value heads that share a key head are side by side, as Mamba-2's are; else tiled */
    struct pd_rows x;          /* what the layer's matrix gives: q, k, v, z, b, a; of Mamba-2 z, v, k, q, a */
    struct pd_rows qkv;        /* scratch [n_rows][2 n_k d_k + n_v d_v] */
    struct pd_rows y;          /* [n_rows][n_v][d_v] */
    uint64_t states, tails;    /* of the cache, fp32: see pd_delta_push and pd_conv_push */
    uint64_t row_states;       /* 0: nothing is kept of rows within a run */
    uint64_t w_conv, conv_bias, dt, decay, w_norm;   /* fp32; conv_bias 0: none */
    uint64_t skip;             /* Mamba-2's */
    float eps;                 /* of the norm */
};
/* y = norm(delta rule(silu(convolution(q, k, v)), b, a)) silu(z), or norm(Mamba-2's rule(...) silu(z)) */
void pd_op_recur(struct pd_recorder *r, const struct pd_recurrence *c);
/* y = c convolution(b h) of one layer over runs of rows: b, c and h are the parts of x, n columns each */
struct pd_short_conv {
    uint64_t runs;             /* [n_runs] struct pd_state_run */
    uint32_t n_runs, n_rows, n, conv;
    struct pd_rows x, y;       /* [n_rows][3 n], [n_rows][n] */
    uint64_t tails, w;         /* see pd_conv_push */
    uint64_t row_states;       /* see pd_recurrence */
};
void pd_op_short_conv(struct pd_recorder *r, const struct pd_short_conv *c);
/* Bytes of a layer's state, and of the tail of its convolution. */
uint64_t pd_state_size(uint32_t n_v, uint32_t d_k, uint32_t d_v);
uint64_t pd_tail_size(uint32_t n_channels, uint32_t conv);

/* y[m][i] = act(gate[m][i]) * up[m][i] for i < n, act being PD_GELU, PD_SILU or PD_SIGMOID; up may be y, or has no
 * address: act(gate[m][i]) */
struct pd_glu {
    struct pd_rows y, gate, up;
    uint32_t n, activation;
};
void pd_op_glu(struct pd_recorder *r, const struct pd_glu *glu, uint32_t n_tokens);
/* Of a matrix's rows: gates in the first half, what they gate in the other. */
struct pd_glu pd_glu_of_halves(struct pd_rows y, struct pd_rows both, uint32_t n, uint32_t activation);

/* The PD_TOPK best of the first n logits of each row, sorted. */
struct pd_topk {
    struct pd_rows logits;
    uint32_t n, n_rows;
    uint64_t best;         /* [n_rows][PD_TOPK] */
    uint64_t scratch[2];   /* n_rows * pd_topk_scratch(n) candidates each */
};
void pd_op_topk(struct pd_recorder *r, const struct pd_topk *topk);
uint32_t pd_topk_scratch(uint32_t n);
/* Draws the next token of each row from them. */
void pd_op_sample(struct pd_recorder *r, const struct pd_sample_push *push, uint32_t n_rows);

#define PD_PIECE_SECONDS 0.1   /* what a piece of a recording aims at */
/* Multiplications of a piece to come, after the longest of some took so long and none had more than most_work. */
uint64_t pd_next_piece(uint64_t most_work, double longest);

/* ---- stream ---- */

struct pd_residual {
    struct pd_rows x;          /* [n_rows][n] */
    struct pd_rows x_other;    /* [1][n]: where a fused kernel leaves the sum, as x is still read; both then swap */
    struct pd_rows normed;     /* [n_rows][n]: what matrices read where the norm has a dispatch of its own */
    uint32_t n_rows, n;
    float eps;
    /* What is still to be done: x = (x + (w_post ? rms(branch) * w_post : branch)) * x_scale, unless branch has no
     * address; then matrices read rms(x) * w. */
    struct pd_rows branch;     /* [n_rows][n] */
    uint64_t w_post, w;        /* [n] */
    float x_scale;
    uint64_t normed_with;      /* the w by which normed holds the present x; 0: it does not */
    bool ends;                 /* nothing reads x after the next matrix, which leaves the normed rows in `normed` */
};

/* The branch is to be added: see pd_residual. None may be pending. */
void pd_residual_add(struct pd_residual *s, struct pd_rows branch, uint64_t w_post, float x_scale);
/* What reads the stream from now on reads rms(x) * w, or where w is 0, x. */
void pd_residual_norm(struct pd_residual *s, uint64_t w);
/* For the last time: whoever reads it, the normed rows are in s->normed afterwards. */
void pd_residual_norm_last(struct pd_residual *s, uint64_t w);

/* y[m] = linear(rms(x[m]) s->w), linear(x[m]) where that is 0 */
void pd_op_linear_stream(struct pd_recorder *r, struct pd_rows y, const struct pd_linear *linear,
                         struct pd_residual *s);
/* y[m] = act(gate(rms(x[m]) s->w)) * up(rms(x[m]) s->w): see pd_op_fused_norm_gated. */
void pd_op_gated_stream(struct pd_recorder *r, struct pd_rows y, const struct pd_linear *linear, struct pd_residual *s,
                        uint32_t activation, struct pd_rows both);
/* Adds what is pending to s->x. */
void pd_op_stream_add(struct pd_recorder *r, struct pd_residual *s);
/* And leaves rms(x) * s->w in s->normed. */
void pd_op_stream_norm(struct pd_recorder *r, struct pd_residual *s);

/* ---- kernels ---- */

/* The rows of kernels.def: kinds of kernels, and which of its kernels a kind has for a type of weights or of the
 * cache. */

enum pd_kernel_kind {
#define PD_KERNEL(name, source, defines, push, needs) PD_KERNELS_##name,
#define PD_TYPED(name, source, types, defines, push, needs) PD_KERNELS_##name,
#include "kernels.def"
    PD_N_KERNEL_KINDS
};

/* type: an enum pd_dtype or a peridot_kv_type, whichever the row lists; 0 for a row without types. PD_N_KERNELS: the
 * kind has no kernel for it. */
enum pd_kernel_id pd_kernel_of(enum pd_kernel_kind kind, uint32_t type);
/* And back. */
enum pd_kernel_kind pd_kernel_kind_of(enum pd_kernel_id id);
uint32_t pd_kernel_type_of(enum pd_kernel_id id);

#endif
