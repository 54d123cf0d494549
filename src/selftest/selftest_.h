/* A trial of one kernel, the reference that it is held against, and the cases. */
#ifndef PD_SELFTEST_SELFTEST_PRIVATE_H
#define PD_SELFTEST_SELFTEST_PRIVATE_H

#include "base/base.h"
#include "ops/ops.h"
#include "params.h"
#include "selftest/selftest.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* ---- reference ---- */

struct pd_reference_heads {
    uint32_t n_heads, n_kv_heads, head_dim;
    uint32_t ring;                   /* positions of the cache: position p is in slot p % ring */
    float scale, softcap, eps;
    const float *q_norm, *k_norm;    /* [head_dim], or NULL */
    const float *sinks;              /* [n_heads], or NULL */
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

/* y [n_heads][head_dim] from the splits of attention, [n_heads][n_splits][head_dim + 2]: sums, maximum, total; sinks
 * [n_heads], or NULL */
void pd_reference_attention_reduce(float *y, const float *partial, const float *sinks, uint32_t n_heads,
                                   uint32_t n_splits, uint32_t head_dim);

/* y[m][i] = act(x[m][i]) * x[m][n + i]: see act.glsl.   x [n_tokens][2 n] */
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

/* The n_used experts of a token, the best first and the lower number first of equals, with the softmax of their
 * logits, or what else the routes say, times their scales; weights are NaN where any logit is no number. NULL: none. */
void pd_reference_route(struct pd_choice *choices, const float *logits, const float *scale, const float *biases,
                        const struct pd_routes *routes);

/* The PD_TOPK best of n logits, best first and the lower id first of equals. NaN comes before all
 * numbers; what is too low for a number is the lowest (-3.4e38). Places beyond n get that and id 0xffffffff. */
void pd_reference_topk(struct pd_candidate best[PD_TOPK], const float *logits, uint32_t n);

/* ---- trial ---- */

enum {
    PD_TRIAL_GUARD = 64,              /* words before and after a buffer; 256 bytes, to keep its alignment */
    PD_TRIAL_GUARD_WORD = 0x7fc0dead, /* NaN in fp32, bf16 and (its high half) fp16 */
};

struct pd_trial_buffer {
    uint64_t address;
    struct pd_span span;            /* without the guards */
    uint32_t n_rows, width, stride; /* words; what is written must lie in [n_rows][width] */
    uint32_t start;                 /* its first word in image and now; 0: no buffer */
    bool written;                   /* by a kernel, as it should be */
};

struct pd_trial {
    struct pd_gpu *gpu;
    struct pd_heap *heap;
    struct pd_span arena;
    struct pd_commands *commands;
    uint32_t *image, *now;          /* the arena with all guards: as uploaded, as found after the run */
    uint32_t used;                  /* words of it */
    uint8_t *host;                  /* what the host needs for a case */
    uint64_t host_used;
    struct pd_trial_buffer buffers[24];
    uint32_t n_buffers;

    struct pd_random random;
    struct pd_recorder r;
    struct pd_variants variants;    /* that operations take; pd_trial_start sets the defaults of the device */
    uint32_t n_splits;              /* of products; 0: columns are not split */
    bool thorough;                  /* many cases, for tests; else few, for users */
    /* Pipelines of the kernel that may be compiled, drawn from those of all cases; cases that take others are left out.
     * 0: all. */
    uint32_t max_pipelines;
    struct pd_random draw;
    bool takes_first;               /* none is drawn: the first ones are taken */
    char label[200];                /* of the case */
    bool ran, failed;               /* the case */
    enum pd_kernel_id kernel;       /* being tested: cases that do not dispatch it do not count */
    peridot_kernel_check check;     /* of that kernel */
    char failure[512];              /* the sentence in it */
    peridot_status status;
    pthread_mutex_t *turn;          /* held while the device runs a case; NULL: trials may run theirs at once */
    atomic_bool *stop;              /* once it is set, as a lost device does, cases do nothing any more; NULL: none */
    void (*after_run)(struct pd_trial *t, void *user);   /* for tests: may change `now`; NULL: none */
    void *user;
};

peridot_status pd_trial_open(struct pd_trial *t, struct pd_gpu *gpu);
void pd_trial_close(struct pd_trial *t);
/* The cases that follow test this kernel, with random numbers that depend on the seed and its name. */
void pd_trial_start(struct pd_trial *t, enum pd_kernel_id id, uint64_t seed);

void pd_trial_begin(struct pd_trial *t, const char *format, ...) PD_PRINTF(2, 3);
/* Zeros on the host, and random numbers from -amplitude to amplitude; until the next begin. */
void *pd_trial_zeros(struct pd_trial *t, uint64_t size);
float *pd_trial_floats(struct pd_trial *t, size_t n);
float *pd_trial_random(struct pd_trial *t, size_t n, float amplitude);
/* [n_rows][width] words, `stride` apart: data, padded with zeros to the stride, or (NULL) guard words that no kernel
 * should read. */
struct pd_trial_buffer *pd_trial_words(struct pd_trial *t, const void *data, uint32_t n_rows, uint32_t width,
                                       uint32_t stride);
/* Activations: rows of floats with the padding that kernels rely on. */
struct pd_trial_buffer *pd_trial_rows(struct pd_trial *t, const float *data, uint32_t n_rows, uint32_t width);
struct pd_rows pd_trial_rows_of(const struct pd_trial_buffer *b);   /* of NULL: none */
uint64_t pd_trial_address(const struct pd_trial_buffer *b);         /* of NULL: 0 */

/* Dispatches a kernel directly, where no operation does it so. */
void pd_trial_dispatch(struct pd_trial *t, enum pd_kernel_id id, const uint32_t *spec, uint32_t n_spec,
                       const void *push, const uint32_t grid[2]);
/* Runs what was recorded, unless the kernel being tested is not in it, or takes a pipeline that is not compiled. Where
 * t->ran is false the case may end: nothing is compared. */
void pd_trial_run(struct pd_trial *t);
/* Row r of a buffer as the run left it. */
const uint32_t *pd_trial_row(const struct pd_trial *t, const struct pd_trial_buffer *b, uint32_t r);

/* How far a number may be off: tolerance * magnitude. */
struct pd_bound {
    double magnitude, tolerance;
};
/* One number. `what` and `at` name it in the sentence. */
void pd_trial_check(struct pd_trial *t, const char *what, uint64_t at, double got, double want, struct pd_bound bound);
/* Every element of the buffer's rows, which are written. Magnitude NULL: the root mean square of the element's row. */
void pd_trial_check_rows(struct pd_trial *t, struct pd_trial_buffer *b, const float *want, const float *magnitude,
                         double tolerance);
/* The case failed, in words. */
void pd_trial_fail(struct pd_trial *t, const char *format, ...) PD_PRINTF(2, 3);
/* Checks that nothing was written outside the rows that may be, and counts the case. */
void pd_trial_end(struct pd_trial *t);

/* ---- selftest matrix ---- */

/* Rows of one type; a matrix has up to three runs of them. */
struct pd_trial_part {
    enum pd_dtype dtype;
    uint32_t n_rows;
};

struct pd_trial_matrix {
    struct pd_matrix m;
    struct pd_slice slices[8];
    float *w;                /* [n_rows][n_cols] as the reference reads it */
    float *bias;             /* [n_rows], or NULL */
    uint64_t bias_address;
    bool in_groups;          /* see pd_device_row_interleave */
};

/* A matrix of random parts, with no bias. On a CPU its rows lie either way: in groups where models' decode steps take
 * matvec_rows, else not. */
void pd_trial_matrix(struct pd_trial *t, struct pd_trial_matrix *m, const struct pd_trial_part *parts, uint32_t n_parts,
                     uint32_t n_cols);
/* Four numbers of columns that rows of the type may have. */
const uint32_t *pd_trial_cols(enum pd_dtype dtype);
float *pd_trial_absolute(struct pd_trial *t, const float *from, size_t n);

/* ---- selftest pack ---- */

/* Activations as tests of matrices make them, and as kernels read them packed. */

/* Tokens of which some are large, as Gemma's are, and some small. */
float *pd_random_activations(struct pd_trial *t, uint32_t n_tokens, uint32_t n_cols, float amplitude);
/* Rows of pack_q8's or pack_q16's (`by`) as floats: numbers times scales. */
float *pd_unpack_dot(struct pd_trial *t, const struct pd_trial_buffer *packed, enum pd_kernel_id by, uint32_t n_cols);

/* ---- selftest kv ---- */

enum {
    PD_N_SEQUENCES = 2,
    PD_TABLE_PAGES = 9000 / PD_PAGE + 1,   /* of a sequence: cases have no later position */
};

/* Where a layer's keys and values come from. */
enum pd_trial_kv {
    PD_KV_OWN,      /* qkv has q, k and v */
    PD_KV_V_IS_K,   /* q and k: values are k as the matrix gave it */
    PD_KV_SHARED,   /* q: the cache is another layer's, which has them all, and nothing is written */
    PD_N_KV
};
extern const char *const pd_trial_kv_names[PD_N_KV];

/* Which heads are normed. */
enum pd_trial_norms { PD_NORMS_NONE, PD_NORMS_QK, PD_NORMS_QKV, PD_N_NORMS };

uint32_t pd_trial_kv_width(const struct pd_reference_heads *h);
/* Numbers of a sequence in a cache half. */
size_t pd_trial_sequence_size(const struct pd_reference_heads *h);
/* Columns of qkv on the device. The reference has those of PD_KV_OWN, of which these are the first. */
uint32_t pd_trial_qkv_width(const struct pd_reference_heads *h, enum pd_trial_kv from);
/* Rows of qkv as the device has them, from the reference's, whose v becomes k where there is no v. */
float *pd_trial_device_qkv(struct pd_trial *t, float *qkv, const struct pd_reference_heads *h, enum pd_trial_kv from,
                           uint32_t n_tokens);
/* Where the reference puts k and v of a sequence: nowhere that counts, where the cache has them. */
struct pd_reference_cache pd_trial_written_cache(struct pd_trial *t, const struct pd_reference_cache *cache,
                                                 const struct pd_reference_heads *h, enum pd_trial_kv from);
/* The pages of all sequences, PD_TABLE_PAGES each. */
struct pd_trial_buffer *pd_trial_tables(struct pd_trial *t, const struct pd_reference_heads *h);
/* A half of the cache on the device, all sequences; values become what its type makes of them. */
struct pd_trial_buffer *pd_trial_cache(struct pd_trial *t, float *values, const struct pd_reference_heads *h,
                                       peridot_kv_type type, int side);
/* With norms of q and k where there are buffers of them. */
struct pd_heads pd_trial_heads(const struct pd_reference_heads *h, const struct pd_trial_buffer *q_norm,
                               const struct pd_trial_buffer *k_norm);
void pd_trial_set_kv(struct pd_heads *heads, enum pd_trial_kv from);
/* Of tokens: exact in fp32, and none of the first. Queries that are ready have grown. */
float pd_trial_growth(uint32_t token);
void pd_trial_grow(float *q, const struct pd_reference_heads *h, uint32_t token);
/* sights: [n_tokens], or NULL where only positions count. */
struct pd_trial_buffer *pd_trial_places(struct pd_trial *t, uint32_t pos, const struct pd_reference_sight *sights,
                                        uint32_t n_tokens);
/* cos and sin of position * 10000^(-2 i / head_dim), as a session makes them. */
float *pd_trial_angles(struct pd_trial *t, uint32_t head_dim, uint32_t pos, uint32_t n_tokens);

/* What a pass wrote to the cache. */
struct pd_trial_written {
    peridot_kv_type type;
    uint32_t sequence, pos, n_tokens;
};
/* The slots that were written are right to fp32 arithmetic and the rounding of the cache's type, within the range of
 * fp16 but in an fp32 cache, as the reference does not round. All other slots must stay as they were. What is in a
 * cache of integers then takes the place of the reference's, so that attention is compared over the same numbers. */
void pd_trial_check_cache(struct pd_trial *t, int side, struct pd_trial_buffer *b, float *want,
                          const struct pd_reference_heads *h, const struct pd_trial_written *written);

/* ---- selftest cases ---- */

/* The cases of each kernel, private to the self-test. type: an enum pd_dtype or a peridot_kv_type, for kernels of
 * several (pd_kernel_of). */

/* selftest_matrix.c */
void pd_try_embed(struct pd_trial *t, uint32_t type);
/* selftest_product.c */
void pd_try_matvec(struct pd_trial *t, uint32_t type);
void pd_try_matmul(struct pd_trial *t, uint32_t type);
void pd_try_matmul_reduce(struct pd_trial *t, uint32_t type);
void pd_try_squares(struct pd_trial *t, uint32_t type);
/* selftest_pack.c */
void pd_try_pack_dot(struct pd_trial *t, uint32_t type);
void pd_try_pack_f16(struct pd_trial *t, uint32_t type);
/* selftest_kv.c */
void pd_try_rope(struct pd_trial *t, uint32_t type);
/* selftest_attention.c */
void pd_try_attention(struct pd_trial *t, uint32_t type);
void pd_try_attention_reduce(struct pd_trial *t, uint32_t type);
/* selftest_vector.c */
void pd_try_rmsnorm(struct pd_trial *t, uint32_t type);
void pd_try_glu(struct pd_trial *t, uint32_t type);
void pd_try_topk(struct pd_trial *t, uint32_t type);
void pd_try_sample(struct pd_trial *t, uint32_t type);
void pd_try_measure(struct pd_trial *t, uint32_t type);
void pd_try_rate(struct pd_trial *t, uint32_t type);
/* selftest_image.c */
void pd_try_layernorm(struct pd_trial *t, uint32_t type);
void pd_try_pool(struct pd_trial *t, uint32_t type);
void pd_try_clamp(struct pd_trial *t, uint32_t type);
/* selftest_lora.c */
void pd_try_lora(struct pd_trial *t, uint32_t type);
/* selftest_experts.c */
void pd_try_route(struct pd_trial *t, uint32_t type);
void pd_try_combine(struct pd_trial *t, uint32_t type);
/* selftest_delta.c */
void pd_try_recur(struct pd_trial *t, uint32_t type);

#endif
