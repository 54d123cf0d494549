/* What C hands to kernels: push constants and the step buffer, read by both languages. Pointers come first, so that
 * both lay the structs out alike (std430). In C a pointer is a 64-bit device address; in GLSL it is a buffer reference,
 * or a plain uvec2 (PD_ADDRESS) where the kernel does 64-bit address arithmetic on it (weights may be larger than 4
 * GiB). */
#ifndef PD_PARAMS_H
#define PD_PARAMS_H

#ifdef PD_GLSL
#define PD_PTR(type) type
#define PD_ADDRESS uvec2
#define uint32_t uint
#else
#include <stdint.h>
#define PD_PTR(type) uint64_t
#define PD_ADDRESS uint64_t
#endif

#define PD_MATMUL_ROWS 64    /* matmul, matmul_dot: rows of a tile */
#define PD_ATTENTION_TILE 32 /* attention: keys scored at a time */
#define PD_TOPK_IN 8192      /* topk: values that one workgroup chooses from */
#define PD_TOPK 128          /* topk: values that it keeps */
#define PD_WEIGHT_BITS 24    /* sample: the likeliest candidate's weight is 2^24: the sum of PD_TOPK fits 32 bits */
#define PD_REPEAT_WINDOW 64  /* tokens that penalties look back */
#define PD_MAX_SPLITS 64     /* attention: most parts that the keys of one query are split into */
#define PD_PAGE 64           /* positions of a page of the KV cache */
#define PD_KEYS 0            /* sides of the cache */
#define PD_VALUES 1
#define PD_KV_BLOCK 32       /* elements of a head that have one scale in a cache of integers */
#define PD_KV_MIN 64u        /* in the form of a cache's side: its blocks have a minimum, too; the rest is bits */
#define PD_KV_F16(side) 16u
#define PD_KV_F32(side) 32u
#define PD_KV_Q8_0(side) 8u
#define PD_KV_Q8_0_Q4_1(side) ((side) == PD_KEYS ? 8u : 4u + PD_KV_MIN)
#define PD_KV_Q5_1(side) (5u + PD_KV_MIN)
#define PD_KV_Q4_1(side) (4u + PD_KV_MIN)
#define PD_KV_HAS_MIN(form) ((form) >= PD_KV_MIN)
#define PD_KV_BITS(form) ((form) % PD_KV_MIN)
#define PD_KV_BLOCKS(head_dim) (((head_dim) + PD_KV_BLOCK - 1) / PD_KV_BLOCK)
/* Words of a head: of the lower bits of its elements (all, or four of five), of the fifth bits, and of scales. */
#define PD_KV_LOW_WORDS(form, head_dim) ((PD_KV_BITS(form) / 4 * 4 * (head_dim) + 31) / 32)
#define PD_KV_HIGH_WORDS(form, head_dim) (PD_KV_BITS(form) == 5 ? PD_KV_BLOCKS(head_dim) : 0)
#define PD_KV_SCALE_WORDS(form, head_dim) \
    (PD_KV_HAS_MIN(form) ? PD_KV_BLOCKS(head_dim) : PD_KV_BITS(form) <= 8 ? (PD_KV_BLOCKS(head_dim) + 1) / 2 : 0)
#define PD_KV_WORDS(form, head_dim) (PD_KV_LOW_WORDS(form, head_dim) + PD_KV_HIGH_WORDS(form, head_dim) \
    + PD_KV_SCALE_WORDS(form, head_dim))
#define PD_MAX_LAYER_KINDS 8 /* kinds of layers that a model may have: alike in heads and window */
#define PD_GELU 1            /* activations of gated units: see act.glsl */
#define PD_SILU 2
#define PD_SIGMOID 3         /* of gates of attention, in glu alone */
#define PD_CLAMPED_SILU 4
#define PD_GELU_ERF 5        /* of towers, in glu alone */
#define PD_NORM_QK 1         /* rope and attention: q and k heads are normed, */
#define PD_NORM_V 2          /* v heads are, by no weight */
#define PD_PAD 32            /* rows of activations are padded with zeros to a multiple of this many floats */
#define PD_PACK_PAD 64       /* pack_f16: rows are padded with zeros to a multiple of this many columns */
#define PD_PACK_TAIL 4       /* pack_f16: words at the end of a row, of which the first is its scale */
#define PD_PREFETCH_ID 8     /* matvec_rows (matvec has its width there): whether it loads cache lines ahead */
#define PD_SPLIT_PAD 64      /* matmul: splits of the columns begin at multiples of this many, as steps do */
#define PD_ROW_INTERLEAVE_ID 10    /* weights.glsl: rows of a group, which are interleaved */
#define PD_BIAS_ID 12        /* bias.glsl: whether there is a bias */
#define PD_SUBGROUP_ID 11    /* no shader has it: the size of subgroups to compile for, 0: the driver's choice */
#define PD_EXPERTS_ID 13     /* experts.glsl: whether the matrix is one of experts */
#define PD_ALIGNED_ID 14     /* matmul_coop: whether matrix instructions take aligned registers */
#define PD_SINKS_ID 8        /* attention: whether there are sinks (in attention_reduce it is 1) */
#define PD_MAX_EXPERTS 512   /* of a layer */
#define PD_MAX_EXPERTS_USED 32   /* by a token */
#define PD_NO_STATE 0xffffffffu   /* in place of a state's number: zeros */
#define PD_MAX_DELTA_DIM 256      /* d_k and d_v of a recurrence */
#define PD_MAX_CONV 8             /* rows that its convolution sees */
/* matmul_dot: whether it multiplies weights of a type by activations of 8 bits rather than 16: those of at most five
 * bits, whose own rounding costs at least eight times as much (tests/reports/real-llvmpipe.md, quality.txt). */
#define PD_IS_COARSE(low, high) ((low) <= 16 && (high) <= 4)
#define PD_DOT_BLOCK(bytes) (8 * (bytes) + 4)   /* pack_q8, pack_q16: words of 32 columns of one or two bytes */

/* Grids of decode attention, one for each kind of layer, so that a recorded command buffer can be replayed. */
struct pd_step {
    uint32_t dispatch[PD_MAX_LAYER_KINDS][4]; /* VkDispatchIndirectCommand, padded */
};

/* Where a token stands, for layers of one kind. Sequences have tables of pages, one after the other in one list, which
 * makes a line of slots: slot s is position s % PD_PAGE of page pages[s / PD_PAGE]. The key of position j of a text is
 * in slot text + j. In decode steps the keys that the token sees are split at whole pages, by its own position alone,
 * so that what comes out does not depend on the other tokens of the step: split i has split_pages pages from number
 * i * split_pages on, counted from the page of the first key that it sees. */
struct pd_place {
    uint32_t pos, text;
    uint32_t last;           /* position of the last key that it sees: its own, or of rows of a prompt a later one that
                                the same pass writes, too */
    uint32_t split_pages, n_splits;
    uint32_t first_split;    /* splits of the tokens before it in the step */
    float q_growth;          /* its queries are multiplied by 1 + q_growth */
};

/* Consecutive rows of one sequence, of layers with recurrences: which of the cache's states they begin with, and which
 * one takes what comes of them. */
struct pd_state_run {
    uint32_t first, n;
    uint32_t from, to;            /* from: PD_NO_STATE where they begin a text */
};

/* One candidate of the vocabulary. */
struct pd_candidate {
    float logit;
    uint32_t id;
};

/* An expert that a token takes, and what its result is multiplied by. */
struct pd_choice {
    uint32_t expert;
    float weight;
};

/* Pairs of a token and one of its experts, token * n_used + the expert's place among the token's, that have the same
 * expert: n of them, from word `first` on, counted from the first slot. */
struct pd_expert_slot {
    uint32_t expert, n, first, unused;
};

/* What an adapter adds to rows of a matrix: see struct pd_lora. */
struct pd_lora_part {
    uint32_t adapter;        /* its column of the scales */
    uint32_t first, rank;    /* its columns of t */
    uint32_t first_row, n_rows;
    uint32_t b;              /* where its [rank][n_rows] numbers are */
};

/* How a token is drawn from candidates, best first. A candidate's weight is
 * 2^-((best - logit) scale) 2^PD_WEIGHT_BITS. */
struct pd_draw {
    float scale;             /* log2(e) / temperature */
    uint32_t n;              /* candidates that take part: top-k; 1: greedy */
    uint32_t top_p;          /* of 2^32: the part of the weight after which candidates are out; 0: none */
    uint32_t min_weight;     /* those below are out: min-p */
    uint32_t random;         /* of 2^32 */
    /* Where adjusts is not 0, n_bias biases change logits before all that, then penalties those of the last n_recent
     * tokens. */
    uint32_t adjusts, n_bias, n_recent;
    uint32_t next;           /* where among the recent tokens the one that is drawn belongs */
    float repeat, inverse_repeat, presence, frequency;
    float reach;             /* candidates further below the best logit are out: top-n-sigma; 0: none */
    uint32_t xtc;            /* of 2^32: of those with such a part of the kept weight only the last stays; 0: off */
};

/* x[m] = row tokens[m] of the matrix, times scale. Grid: [1, n_tokens]. */
#define PD_EMBEDDED 0xffffffffu   /* instead of a token: the row is in `embedded` */
struct pd_embed_push {
    PD_PTR(pd_addresses) slices;  /* address of each slice of the matrix */
    PD_PTR(pd_words) tokens;
    PD_PTR(pd_floats) x;          /* [n_tokens][x_stride] */
    PD_PTR(pd_floats) embedded;   /* the same */
    uint32_t rows_per_slice, row_size, n_cols, x_stride;
    float scale;
};

/* y[m][r] = softcap(w[r] . x[m] + bias[r]), r < n_rows, m < n_tokens. */
struct pd_matmul_push {
    PD_ADDRESS w;                 /* [n_rows] rows of row_size bytes */
    PD_PTR(pd_vec4s) x;           /* [n_tokens][x_stride] */
    PD_PTR(pd_floats) y;          /* [n_tokens][y_stride], already at `first` */
    PD_PTR(pd_floats) bias;       /* [n_rows], of all experts */
    PD_PTR(pd_words) experts;     /* slots: see experts.glsl */
    uint32_t row_size, n_cols, n_rows, n_tokens, x_stride, y_stride;
    float softcap;                /* 0: none */
    uint32_t expert_rows, x_share;   /* rows of an expert's matrix; pairs that have a row of x in common */
    uint32_t first_col, end_col;  /* columns that are summed: all, or a split of them (see matmul_reduce.comp) */
};

/* See matmul_reduce.comp. */
struct pd_matmul_reduce_push {
    PD_PTR(pd_floats) split_sums; /* [n_splits][n_tokens][n_rows] */
    PD_PTR(pd_floats) y;          /* [n_tokens][y_stride] */
    PD_PTR(pd_floats) bias;       /* [n_rows] */
    uint32_t n_splits, n_tokens, n_rows, y_stride;
    float softcap;                /* 0: none */
};

/* Rows of activations for matmul kernels whose x they are: [n_tokens][packed_stride] words. Grid: [n_tokens].
 * pack_f16 (matmul_coop): n_cols fp16, times a power of two, zeros up to PD_PACK_PAD of them, then that power's
 * inverse.
 * pack_q16 (matmul_dot): blocks of 32 columns: 32 high bytes, 32 low bytes, a scale and the sums of the halves as
 * floats, a word that is not used. pack_q8 (the same, see PD_IS_COARSE): without low bytes. */
struct pd_pack_push {
    PD_PTR(pd_vec4s) x;           /* [n_tokens][x_stride] */
    PD_PTR(pd_words) packed;
    uint32_t n_cols, x_stride, packed_stride;
};

/* What matmul does, for few tokens. With a norm before it (one token):
 *   x' = (x + (branch, or rms(branch) * w_post)) * x_scale;   y = w . (rms(x') * w_norm)
 * and store: x', or the normed vector. With a gated unit behind it: y[m][r] = act(w[r] . x[m]) * (w_up[r] . x[m]). */
struct pd_matvec_push {
    PD_ADDRESS w;
    PD_ADDRESS w_up;              /* gated unit: the other matrix, alike */
    PD_PTR(pd_vec4s) x;
    PD_PTR(pd_floats) y;
    PD_PTR(pd_vec4s) branch;
    PD_PTR(pd_vec4s) w_post;      /* [n_cols] */
    PD_PTR(pd_vec4s) w_norm;      /* [n_cols] */
    PD_PTR(pd_vec4s_written) store;
    PD_PTR(pd_floats) bias;       /* as in matmul; gated unit: [2 n_rows] */
    PD_PTR(pd_words) experts;     /* as in matmul; gated unit: expert_rows are those of both matrices */
    uint32_t row_size, n_cols, n_rows, n_tokens, x_stride, y_stride;
    float softcap, eps, x_scale;
    uint32_t expert_rows, x_share;
};

/* x = (x + (post ? rms(y) * w_post : y)) * x_scale   (with_add);   normed = rms(x) * w   (with_out).
 * Grid: [n_tokens]. */
struct pd_rmsnorm_push {
    PD_PTR(pd_vec4s_both) x;      /* [n_tokens][stride] */
    PD_PTR(pd_vec4s) y;           /* [n_tokens][stride] */
    PD_PTR(pd_vec4s) w_post;      /* [n] */
    PD_PTR(pd_vec4s) w;           /* [n] */
    PD_PTR(pd_vec4s_written) normed;   /* [n_tokens][stride] */
    uint32_t n, stride;
    float eps, x_scale;
};

/* Norms q, k and v heads (those that the model norms), rotates q and k, writes k and v to the cache.
 * Grid: [n_heads + 2 n_kv_heads, n_tokens], or [n_heads, n_tokens] in a layer that reads another's cache. */
struct pd_rope_push {
    PD_PTR(pd_places) places;     /* [n_tokens] */
    PD_PTR(pd_floats) qkv;        /* [n_tokens][qkv_stride]: q heads, k heads, v heads; q is rotated in place */
    PD_PTR(pd_floats) angles;     /* [n_tokens][head_dim]: cos of head_dim/2 angles, then sin */
    PD_PTR(pd_floats) w_q;        /* [head_dim] */
    PD_PTR(pd_floats) w_k;        /* [head_dim] */
    PD_PTR(pd_words) k_cache;     /* [pages][PD_PAGE][n_kv_heads] heads: see kv.glsl */
    PD_PTR(pd_words) v_cache;
    PD_PTR(pd_words) pages;       /* of all sequences: see pd_place */
    uint32_t qkv_stride, n_heads, n_kv_heads;
    uint32_t v_head;              /* head of qkv where v begins; k's, as the matrix gave it, where there is no v */
    float eps;
};

/* Online-softmax attention of one query position over one split of its keys, for some or all query heads of one kv head
 * at once (specialisation constant HEADS). Grid: [n_heads / HEADS, most splits of a token, n_tokens]. The tokens of a
 * decode step are of different sequences, and the last keys that they see are their own. */
struct pd_attention_push {
    PD_PTR(pd_places) places;     /* [n_tokens] */
    PD_PTR(pd_floats) q;          /* [n_tokens][q_stride] */
    PD_PTR(pd_words) k_cache;     /* [pages][PD_PAGE][n_kv_heads] heads: see kv.glsl */
    PD_PTR(pd_words) v_cache;
    PD_PTR(pd_words) pages;       /* of all sequences: see pd_place */
    PD_PTR(pd_floats) angles;     /* in a decode step q has q, k and v as in rope, and this and norms are as there */
    PD_PTR(pd_floats) w_q;
    PD_PTR(pd_floats) w_k;
    PD_PTR(pd_floats) y;          /* [n_tokens][y_stride]; in a decode step partial results, see attention_reduce */
    PD_PTR(pd_floats) sinks;      /* [n_heads]: see attention.glsl; not read in a decode step */
    uint32_t q_stride, y_stride, n_tokens, n_kv_heads, window;   /* window 0: all keys */
    uint32_t v_head;              /* as in rope; 0: q has only q, the cache all keys, and nothing is written to it */
    float scale, softcap, eps;
};

/* Reduces the splits of attention in a decode step. partial: for each token [n_heads][n_splits][head_dim + 2]: sums
 * over values, then the running maximum and the sum of weights. Grid: [n_heads, n_tokens]. */
struct pd_attention_reduce_push {
    PD_PTR(pd_places) places;     /* [n_tokens] */
    PD_PTR(pd_floats) partial;
    PD_PTR(pd_floats) y;          /* [n_tokens][y_stride] */
    PD_PTR(pd_floats) sinks;      /* [n_heads] */
    uint32_t head_dim, y_stride;
};

/* See layernorm.comp. Grid: [n_rows]. */
struct pd_layernorm_push {
    PD_PTR(pd_floats) x;          /* [n_rows][x_stride] */
    PD_PTR(pd_floats) y;          /* [n_rows][y_stride] */
    PD_PTR(pd_floats) w;          /* [n] */
    PD_PTR(pd_floats) b;          /* [n] */
    uint32_t n, x_stride, y_stride;
    float eps;
};

/* See pool.comp. Grid: [blocks of n, rows that come out]. */
struct pd_pool_push {
    PD_PTR(pd_floats) x;          /* [patches][x_stride] */
    PD_PTR(pd_floats) y;          /* [patches / side^2][y_stride] */
    PD_PTR(pd_floats) bias;       /* [n] */
    PD_PTR(pd_floats) w;          /* [n] */
    uint32_t n, x_stride, y_stride, width, side;
    float scale;
};

/* See clamp.comp. Grid: [blocks of n, n_rows]. */
struct pd_clamp_push {
    PD_PTR(pd_floats) x;          /* [n_rows][x_stride] */
    PD_PTR(pd_floats) y;          /* [n_rows][y_stride] */
    uint32_t n, x_stride, y_stride;
    float low, high;
};

/* See conv.comp. Grid: [blocks of n, runs]. */
struct pd_conv_push {
    PD_PTR(pd_state_runs) runs;
    PD_PTR(pd_floats) x;          /* [n_rows][x_stride]: n columns, or three times n */
    PD_PTR(pd_floats) y;          /* [n_rows][y_stride] */
    PD_PTR(pd_floats) w;          /* [n][width] */
    PD_PTR(pd_floats) bias;       /* [n], with BIASED */
    PD_ADDRESS tails;             /* of each state [width - 1][n], the oldest row first */
    PD_PTR(pd_words) row_states;  /* [n_rows], with KEEPS: states that take what comes of a run's rows but its last */
    uint32_t n, x_stride, y_stride, tail_size;
};

/* See delta.comp. */
struct pd_delta_push {
    PD_PTR(pd_state_runs) runs;
    PD_PTR(pd_floats) x;          /* [n_rows][x_stride]: q [n_k][d_k], k [n_k][d_k], v [n_v][d_v]; MAMBA: v, k, q */
    PD_PTR(pd_floats) gates;      /* [n_rows][gates_stride]: b [n_v], a [n_v]; MAMBA: a */
    PD_PTR(pd_floats) dt;         /* [n_v] */
    PD_PTR(pd_floats) decay;      /* [n_v] */
    PD_PTR(pd_floats) skip;       /* [n_v], with MAMBA */
    PD_PTR(pd_floats) y;          /* [n_rows][y_stride]: [n_v][d_v] */
    PD_ADDRESS states;            /* of each [n_v][d_v / 4][d_k][4] */
    PD_PTR(pd_words) row_states;  /* see pd_conv_push */
    uint32_t n_k, n_v, d_v;
    uint32_t n_beside;            /* so many heads of values side by side have one head of keys, the next the next */
    uint32_t x_stride, gates_stride, y_stride, state_size;
};

/* See delta_norm.comp. */
struct pd_delta_norm_push {
    PD_PTR(pd_floats) y;          /* [n_rows][y_stride] */
    PD_PTR(pd_floats) z;          /* [n_rows][z_stride] */
    PD_PTR(pd_floats) w;          /* [n]; GATE_FIRST: of all heads */
    uint32_t n, y_stride, z_stride;
    float eps;
};

/* See squares.comp. Grid: [blocks of n + 1, slots of experts or 1]. */
struct pd_squares_push {
    PD_PTR(pd_floats) x;          /* [n_tokens or pairs / x_share][x_stride] */
    PD_PTR(pd_floats) sums;       /* [n_experts or 1][n + 1] */
    PD_PTR(pd_words) experts;     /* slots: see experts.glsl */
    uint32_t n, x_stride, n_tokens;
    uint32_t expert_rows, x_share;   /* 1: an expert has one row of sums; as in matmul */
};

/* y[m][i] = act(gate[m][i]) * up[m][i]. Grid: [blocks of n, n_tokens]. */
struct pd_glu_push {
    PD_PTR(pd_floats) gate;       /* [n_tokens][gate_stride] */
    PD_PTR(pd_floats) up;         /* [n_tokens][up_stride] */
    PD_PTR(pd_floats) y;          /* [n_tokens][y_stride] */
    uint32_t n, gate_stride, up_stride, y_stride;
};

/* See lora.comp. Grid: [blocks of n_rows, n_tokens]. */
struct pd_lora_push {
    PD_PTR(pd_lora_parts) parts;  /* [n_parts] */
    PD_PTR(pd_floats) b;
    PD_PTR(pd_floats) t;          /* [n_tokens][t_stride] */
    PD_PTR(pd_floats) scales;     /* [n_tokens][n_adapters] */
    PD_PTR(pd_floats) y;          /* [n_tokens][y_stride] */
    uint32_t n_parts, n_rows, n_adapters, t_stride, y_stride;
};

/* See route.comp. Grid: [n_tokens]. */
struct pd_route_push {
    PD_PTR(pd_floats) logits;     /* [n_tokens][stride] */
    PD_PTR(pd_floats) scale;      /* [n_experts], if SCALED */
    PD_PTR(pd_floats) biases;     /* [n_experts], if BIASED */
    PD_PTR(pd_choices) choices;   /* [n_tokens][n_used] */
    uint32_t n_experts, n_used, stride;
};

/* See route_group.comp. Grid: [1]. */
struct pd_route_group_push {
    PD_PTR(pd_choices) choices;   /* [n_pairs] */
    PD_PTR(pd_words) slots;       /* [n_slots] struct pd_expert_slot, then [n_pairs] pairs */
    uint32_t n_experts, n_pairs, n_slots;
};

/* See combine.comp. Grid: [blocks of n, n_tokens]. */
struct pd_combine_push {
    PD_PTR(pd_choices) choices;   /* [n_tokens][n_used] */
    PD_PTR(pd_floats) x;          /* [n_tokens][n_used][x_stride] */
    PD_PTR(pd_floats) y;          /* [n_tokens][y_stride] */
    PD_PTR(pd_floats) beside;     /* [n_tokens][beside_stride], if BESIDE, */
    PD_PTR(pd_floats) gate;       /* and [n_tokens][gate_stride], of which the first one counts */
    uint32_t n, n_used, x_stride, y_stride, beside_stride, gate_stride;
};

/* The PD_TOPK largest of each PD_TOPK_IN values of a row (lower id first of equals), sorted if that is all.
 * Grid: [blocks, n_rows]. */
struct pd_topk_push {
    PD_PTR(pd_floats) logits;     /* first pass: [n_rows][stride] */
    PD_PTR(pd_candidates) found;  /* later passes: [n_rows][stride] */
    PD_PTR(pd_candidates) best;   /* [n_rows][blocks][PD_TOPK] */
    uint32_t n, stride;           /* n values of a row count */
};

/* Draws a token for each row from its best: see sample.comp. Grid: [n_rows]. */
struct pd_sample_push {
    PD_PTR(pd_candidates) best;   /* [n_rows][PD_TOPK], sorted */
    PD_PTR(pd_draws) draws;       /* [n_rows] */
    PD_PTR(pd_words) tokens;      /* [n_rows]: where the next step's embed reads them */
    PD_PTR(pd_candidates) drawn;  /* [n_rows]: the token, and the best logit */
    PD_PTR(pd_words) recent;      /* [n_rows][PD_REPEAT_WINDOW]: rings of the last tokens; the one drawn is added */
    PD_PTR(pd_candidates) bias;   /* [n_rows][PD_TOPK], draw.n_bias of them: tokens, and what their logits get */
};

/* See measure.comp and rate_*.comp. Grid: [any]. */
struct pd_measure_push {
    PD_PTR(pd_uvec4s) from;
    PD_PTR(pd_uvec4s_written) to;
    uint32_t n;
    float factor;
};

#ifdef PD_GLSL
#undef uint32_t
#endif
#endif
