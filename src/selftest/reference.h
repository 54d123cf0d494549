/* The CPU reference of every kernel in shaders/: plain C with sums in double, to be read beside the kernel of the same
 * name and to be trusted. Slow. Rows lie close together (a stride is a width), weights are floats, and a KV cache is
 * [ring][n_kv_heads][head_dim] floats, whatever the device keeps: who compares rounds on the way. */
#ifndef PD_SELFTEST_REFERENCE_H
#define PD_SELFTEST_REFERENCE_H

#include "params.h"

#include <stdbool.h>

struct pd_reference_heads {
    uint32_t n_heads, n_kv_heads, head_dim;
    uint32_t ring;                   /* positions of the cache: position p is in slot p % ring */
    float scale, softcap, eps;
    const float *q_norm, *k_norm;    /* [head_dim], or NULL */
    bool v_norm;                     /* by no weight */
};

struct pd_reference_cache {
    float *k, *v;                    /* [ring][n_kv_heads][head_dim] */
};

/* cap tanh(x / cap); cap 0: x */
double pd_reference_softcap(double x, double cap);

/* x[m] = table[tokens[m]] * scale.   x [n_tokens][n_cols] */
void pd_reference_embed(float *x, const float *table, const uint32_t *tokens, uint32_t n_tokens, uint32_t n_cols,
                        float scale);

struct pd_reference_matrix {
    const float *w;          /* [n_rows][n_cols] */
    uint32_t n_rows, n_cols;
    const float *bias;       /* [n_rows], or NULL */
};

/* y[m][r] = softcap(w[r] . x[m] + bias[r]).   y [n_tokens][n_rows], x [n_tokens][n_cols].   matvec: one token */
void pd_reference_matmul(float *y, const struct pd_reference_matrix *matrix, const float *x, uint32_t n_tokens,
                         float softcap);

struct pd_reference_norm {
    const float *y;          /* [n_tokens][n], or NULL */
    const float *w_post, *w; /* [n], or NULL */
    uint32_t n;
    float eps, x_scale;
};

/* x = (x + (w_post ? rms(y) * w_post : y)) * x_scale (unless y is NULL), then normed = rms(x) * w (unless w is NULL).
 * x, normed [n_tokens][n] */
void pd_reference_rmsnorm(float *x, float *normed, const struct pd_reference_norm *norm, uint32_t n_tokens);

/* Norms and rotates q (in place) and k, norms v, and writes k and v of positions pos .. to the cache.
 * qkv [n_tokens][(n_heads + 2 n_kv_heads) head_dim]: q, k, v;   angles [n_tokens][head_dim]: cos, then sin */
void pd_reference_rope(float *qkv, const struct pd_reference_cache *cache, const struct pd_reference_heads *heads,
                       const float *angles, uint32_t pos, uint32_t n_tokens);

/* Positions of the first and the last key that a query sees. */
struct pd_reference_sight {
    uint32_t first, last;
};

/* y[m] = attention of a position that sees these keys of the cache.   y, q [n_tokens][n_heads head_dim] */
void pd_reference_attention(float *y, const float *q, const struct pd_reference_cache *cache,
                            const struct pd_reference_heads *heads, const struct pd_reference_sight *sights,
                            uint32_t n_tokens);

/* y [n_heads][head_dim] from the splits of attention, [n_heads][n_splits][head_dim + 2]: sums, maximum, total */
void pd_reference_attention_reduce(float *y, const float *partial, uint32_t n_heads, uint32_t n_splits,
                                   uint32_t head_dim);

/* y[m][i] = act(x[m][i]) * x[m][n + i], the activation being SiLU or the tanh form of GELU.   x [n_tokens][2 n] */
void pd_reference_glu(float *y, const float *x, uint32_t n, uint32_t n_tokens, uint32_t activation);

/* What the parts add to y [n_tokens][n_rows] of t [n_tokens][n_ranks]; scales [n_tokens][n_adapters]. magnitudes: the
 * sum of the sizes of all terms, y's own among them. */
struct pd_reference_lora {
    const struct pd_lora_part *parts;
    const float *b, *scales;
    uint32_t n_parts, n_rows, n_ranks, n_adapters;
};
void pd_reference_lora(float *y, float *magnitudes, const struct pd_reference_lora *lora, const float *t,
                       uint32_t n_tokens);

/* The n_used experts of a token, the best first and the lower number first of equals, with the softmax of their logits
 * times their scales; weights are NaN where any logit is no number. */
void pd_reference_route(struct pd_choice *choices, const float *logits, const float *scale, uint32_t n_experts,
                        uint32_t n_used);

/* The PD_TOPK best of n logits, best first and the lower id first of equals. NaN comes before all
 * numbers; what is too low for a number is the lowest (-3.4e38). Places beyond n get that and id 0xffffffff. */
void pd_reference_topk(struct pd_candidate best[PD_TOPK], const float *logits, uint32_t n);

#endif
