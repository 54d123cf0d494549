/* The operations of the forward pass: each picks a kernel for its shapes and types and records one dispatch (or one per
 * slice of a matrix). The first failure is kept in the recorder, so that forward.c reads without checks. Every
 * operation that follows another waits for it (one barrier). A recorder belongs to the thread that records a pass; it
 * owns nothing. */
#ifndef PD_OPS_OPS_H
#define PD_OPS_OPS_H

#include "gpu/gpu.h"
#include "ops/matrix.h"
#include "ops/variants.h"

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
};
/* Fills both from logits [n_tokens][n_experts], which are not changed; scale [n_experts]: of what each expert finds. */
void pd_op_route(struct pd_recorder *r, const struct pd_routes *routes, struct pd_rows logits, uint64_t scale);
/* y[pair] = the pair's expert(x[pair / x_share]): x_share is 1, or n_used where a token's experts read the same.
 * linear is of n_experts matrices in one slice, without bias. */
void pd_op_experts(struct pd_recorder *r, struct pd_rows y, const struct pd_linear *linear, struct pd_rows x,
                   const struct pd_routes *routes, uint32_t x_share);
/* y[pair] = act(gate(x[token])) * up(x[token]), the halves of the rows of the pair's expert; `both` ([pairs][2 n]) is
 * used where they are not computed in one dispatch. */
void pd_op_experts_gated(struct pd_recorder *r, struct pd_rows y, const struct pd_linear *linear, struct pd_rows x,
                         const struct pd_routes *routes, uint32_t activation, struct pd_rows both);
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
/* Bytes of a head there. */
uint32_t pd_kv_head_size(peridot_kv_type type, uint32_t head_dim);

/* Shapes of attention, for rope and attention alike. */
struct pd_heads {
    uint32_t n_heads, n_kv_heads, head_dim, window;
    float scale, softcap, eps;
    uint64_t q_norm, k_norm;   /* [head_dim]; 0: none */
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
/* sums[i] += the sum of x[m][i]^2: n columns of n_rows */
void pd_op_squares(struct pd_recorder *r, uint64_t sums, struct pd_rows x, uint32_t n, uint32_t n_rows);
/* y = clamp(x, low, high), n columns; x and y may be the same */
void pd_op_clamp(struct pd_recorder *r, struct pd_rows y, struct pd_rows x, uint32_t n, uint32_t n_rows, float low,
                 float high);

/* y[m][i] = act(gate[m][i]) * up[m][i] for i < n, act being PD_GELU, PD_SILU or PD_SIGMOID; up may be y, or has no
 * address: act(gate[m][i]) */
void pd_op_glu(struct pd_recorder *r, struct pd_rows y, struct pd_rows gate, struct pd_rows up, uint32_t n,
               uint32_t n_tokens, uint32_t activation);

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

#endif
