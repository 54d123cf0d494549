/* The CPU reference of every kernel in shaders/: plain C with sums in double, to be read beside the kernel of the same
 * name and to be trusted. Slow. Rows lie close together (a stride is a width), weights are floats, and a KV cache is
 * [ring][n_kv_heads][head_dim] floats, whatever the device keeps: who compares rounds on the way. */
#include "selftest/selftest_.h"

#include <math.h>
#include <stddef.h>

double pd_reference_softcap(double x, double cap)
{
    return cap == 0 ? x : cap * tanh(x / cap);
}

static double dot(const float *a, const float *b, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

/* 1 / sqrt(mean(x^2) + eps) */
static double rms_scale(const float *x, uint32_t n, float eps)
{
    return 1 / sqrt(dot(x, x, n) / n + (double)eps);
}

void pd_reference_embed(float *x, const float *table, const uint32_t *tokens, uint32_t n_tokens, uint32_t n_cols,
                        float scale)
{
    for (uint32_t m = 0; m < n_tokens; m++)
        for (uint32_t i = 0; i < n_cols; i++) x[(size_t)m * n_cols + i] = table[(size_t)tokens[m] * n_cols + i] * scale;
}

void pd_reference_matmul(float *y, const struct pd_reference_matrix *matrix, const float *x, uint32_t n_tokens,
                         float softcap)
{
    uint32_t n_rows = matrix->n_rows, n_cols = matrix->n_cols;
    for (uint32_t m = 0; m < n_tokens; m++)
        for (uint32_t r = 0; r < n_rows; r++) {
            double sum = dot(matrix->w + (size_t)r * n_cols, x + (size_t)m * n_cols, n_cols);
            if (matrix->bias) sum += (double)matrix->bias[r];
            y[(size_t)m * n_rows + r] = (float)pd_reference_softcap(sum, (double)softcap);
        }
}

void pd_reference_rmsnorm(float *x, float *normed, const struct pd_reference_norm *norm, uint32_t n_tokens)
{
    const float *y = norm->y, *w_post = norm->w_post;
    uint32_t n = norm->n;
    for (uint32_t m = 0; m < n_tokens; m++, x += n, normed += normed ? n : 0, y += y ? n : 0) {
        double scale = y && w_post ? rms_scale(y, n, norm->eps) : 1;
        for (uint32_t i = 0; y && i < n; i++)
            x[i] = (float)(((double)x[i] + (double)y[i] * scale * (w_post ? (double)w_post[i] : 1))
                           * (double)norm->x_scale);
        scale = rms_scale(x, n, norm->eps);
        for (uint32_t i = 0; norm->w && i < n; i++) normed[i] = (float)((double)x[i] * scale * (double)norm->w[i]);
    }
}

/* to = rotate(rms(x) * w), the norm only where there is a w. The two halves of a head are rotated against each other:
 * (x[i], x[i + d/2]) -> (x[i] cos - x[i + d/2] sin, x[i] sin + x[i + d/2] cos). to may be x. */
static void rotate_head(float *to, const float *x, const float *w, const float *angles, uint32_t head_dim, float eps)
{
    double scale = w ? rms_scale(x, head_dim, eps) : 1;
    uint32_t half = head_dim / 2;
    for (uint32_t i = 0; i < half; i++) {
        double a = (double)x[i] * scale * (w ? (double)w[i] : 1),
            b = (double)x[i + half] * scale * (w ? (double)w[i + half] : 1);
        double c = (double)angles[i], s = (double)angles[half + i];
        to[i] = (float)(a * c - b * s);
        to[i + half] = (float)(a * s + b * c);
    }
}

/* Where the cache keeps head h of position p. */
static size_t slot(const struct pd_reference_heads *heads, uint32_t p, uint32_t h)
{
    return ((size_t)(p % heads->ring) * heads->n_kv_heads + h) * heads->head_dim;
}

void pd_reference_rope(float *qkv, const struct pd_reference_cache *cache, const struct pd_reference_heads *heads,
                       const float *angles, uint32_t pos, uint32_t n_tokens)
{
    uint32_t d = heads->head_dim;
    for (uint32_t m = 0; m < n_tokens; m++, angles += d) {
        for (uint32_t h = 0; h < heads->n_heads; h++, qkv += d)
            rotate_head(qkv, qkv, heads->q_norm, angles, d, heads->eps);
        for (uint32_t h = 0; h < heads->n_kv_heads; h++, qkv += d)
            rotate_head(cache->k + slot(heads, pos + m, h), qkv, heads->k_norm, angles, d, heads->eps);
        for (uint32_t h = 0; h < heads->n_kv_heads; h++, qkv += d) {
            double scale = heads->v_norm ? rms_scale(qkv, d, heads->eps) : 1;
            for (uint32_t i = 0; i < d; i++) cache->v[slot(heads, pos + m, h) + i] = (float)((double)qkv[i] * scale);
        }
    }
}

/* One query head over the keys that it sees:
 *   s[j] = softcap(scale q . k[j]),   y = sum_j exp(s[j]) v[j] / sum_j exp(s[j])
 * with the largest score taken off first, as exp would overflow. */
static void attend(float *y, const float *q, const struct pd_reference_cache *cache,
                   const struct pd_reference_heads *heads, struct pd_reference_sight sight, uint32_t head)
{
    uint32_t d = heads->head_dim, kv_head = head / (heads->n_heads / heads->n_kv_heads);
    double top = heads->sinks ? (double)heads->sinks[head] : -INFINITY, total = heads->sinks ? 1 : 0, sum[512] = {0};
    for (uint32_t j = sight.first; j <= sight.last; j++) {
        double score = (double)heads->scale * dot(q, cache->k + slot(heads, j, kv_head), d);
        score = pd_reference_softcap(score, (double)heads->softcap);
        double rescale = exp(fmin(top - score, 0)), weight = exp(fmin(score - top, 0));
        const float *v = cache->v + slot(heads, j, kv_head);
        for (uint32_t i = 0; i < d; i++) sum[i] = sum[i] * rescale + weight * (double)v[i];
        total = total * rescale + weight;
        top = fmax(top, score);
    }
    for (uint32_t i = 0; i < d; i++) y[i] = (float)(sum[i] / total);
}

void pd_reference_attention(float *y, const float *q, const struct pd_reference_cache *cache,
                            const struct pd_reference_heads *heads, const struct pd_reference_sight *sights,
                            uint32_t n_tokens)
{
    for (uint32_t m = 0; m < n_tokens; m++)
        for (uint32_t h = 0; h < heads->n_heads; h++, y += heads->head_dim, q += heads->head_dim)
            attend(y, q, cache, heads, sights[m], h);
}

/* With M the largest maximum and f[s] = exp(maximum[s] - M):   y = sum_s f[s] sums[s] / sum_s f[s] total[s] */
void pd_reference_attention_reduce(float *y, const float *partial, const float *sinks, uint32_t n_heads,
                                   uint32_t n_splits, uint32_t head_dim)
{
    size_t stride = head_dim + 2;
    for (uint32_t h = 0; h < n_heads; h++, partial += n_splits * stride, y += head_dim) {
        double top = sinks ? (double)sinks[h] : -INFINITY;
        for (uint32_t s = 0; s < n_splits; s++) top = fmax(top, (double)partial[s * stride + head_dim]);
        double total = sinks ? exp((double)sinks[h] - top) : 0;
        for (uint32_t s = 0; s < n_splits; s++)
            total += exp((double)partial[s * stride + head_dim] - top) * (double)partial[s * stride + head_dim + 1];
        for (uint32_t d = 0; d < head_dim; d++) {
            double sum = 0;
            for (uint32_t s = 0; s < n_splits; s++)
                sum += exp((double)partial[s * stride + head_dim] - top) * (double)partial[s * stride + d];
            y[d] = (float)(sum / total);
        }
    }
}

/* Hendrycks and Gimpel 2016, the tanh form: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) */
static double gelu(double x)
{
    return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}

static double silu(double x)
{
    return x / (1 + exp(-x));
}

void pd_reference_lora(float *y, float *magnitudes, const struct pd_reference_lora *l, const float *t,
                       uint32_t n_tokens)
{
    for (uint32_t i = 0; i < n_tokens * l->n_rows; i++) {
        uint32_t m = i / l->n_rows, row = i % l->n_rows;
        double sum = y[i], size = fabs(sum);
        for (uint32_t k = 0; k < l->n_parts; k++) {
            const struct pd_lora_part *p = &l->parts[k];
            double scale = l->scales[m * l->n_adapters + p->adapter];
            if (scale == 0 || row < p->first_row || row - p->first_row >= p->n_rows) continue;
            for (uint32_t j = 0; j < p->rank; j++) {
                double b = l->b[p->b + j * p->n_rows + row - p->first_row];
                double term = scale * b * t[m * l->n_ranks + p->first + j];
                sum += term;
                size += fabs(term);
            }
        }
        y[i] = (float)sum;
        magnitudes[i] = (float)size;
    }
}

static double activate(double x, uint32_t activation)
{
    if (activation == PD_GELU_ERF) return x / 2 * erfc(-x / sqrt(2.0));
    return activation == PD_GELU ? gelu(x) : activation == PD_SILU ? silu(x) : 1 / (1 + exp(-x));
}

static double clamped_silu(double gate, double up)
{
    double g = fmin(gate, 7), u = fmax(-7, fmin(up, 7));
    return g / (1 + exp(-1.702 * g)) * (u + 1);
}

void pd_reference_glu(float *y, const float *x, uint32_t n, uint32_t n_tokens, uint32_t activation)
{
    for (uint32_t m = 0; m < n_tokens; m++, x += 2 * (size_t)n, y += n)
        for (uint32_t i = 0; i < n; i++)
            y[i] = (float)(activation == PD_CLAMPED_SILU ? clamped_silu((double)x[i], (double)x[n + i])
                               : activate((double)x[i], activation) * (double)x[n + i]);
}

static bool before(struct pd_candidate a, struct pd_candidate b)
{
    if (isnan(a.logit) || isnan(b.logit)) return isnan(b.logit) ? isnan(a.logit) && a.id < b.id : true;
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

/* Insertion into a sorted list that is full of the lowest candidate from the start. */
void pd_reference_topk(struct pd_candidate best[PD_TOPK], const float *logits, uint32_t n)
{
    const float lowest = -3.4e38f;
    for (uint32_t i = 0; i < PD_TOPK; i++) best[i] = (struct pd_candidate){lowest, UINT32_MAX};
    for (uint32_t id = 0; id < n; id++) {
        struct pd_candidate c = {logits[id] < lowest ? lowest : logits[id], id};
        if (!before(c, best[PD_TOPK - 1])) continue;
        uint32_t at = PD_TOPK - 1;
        for (; at > 0 && before(c, best[at - 1]); at--) best[at] = best[at - 1];
        best[at] = c;
    }
}

/* Not yet divided by the sum. */
static double route_weight(const struct pd_routes *routes, double logit, double top)
{
    return routes->sigmoid ? 1 / (1 + exp(-logit)) : exp(logit - top);
}

void pd_reference_route(struct pd_choice *choices, const float *logits, const float *scale, const float *biases,
                        const struct pd_routes *routes)
{
    double total = 0, by[PD_MAX_EXPERTS];   /* chosen */
    uint32_t n_experts = routes->n_experts, n_used = routes->n_used;
    bool damaged = false, taken[PD_MAX_EXPERTS] = {false};
    for (uint32_t e = 0; e < n_experts; e++) damaged = damaged || !isfinite(logits[e]);
    for (uint32_t e = 0; e < n_experts; e++)
        by[e] = (double)(routes->sigmoid ? (float)route_weight(routes, (double)logits[e], 0) : logits[e])
            + (biases ? (double)biases[e] : 0);
    for (uint32_t j = 0; j < n_used; j++) {
        uint32_t best = n_experts;
        for (uint32_t e = 0; e < n_experts; e++)
            if (!taken[e] && (best == n_experts || by[e] > by[best])) best = e;
        taken[best] = true;
        choices[j].expert = best;
        total += route_weight(routes, (double)logits[best], (double)logits[choices[0].expert]);
    }
    if (routes->sigmoid) total = routes->raw ? 1 : total + 1e-6;
    else if (routes->raw) total = 0;
    for (uint32_t e = 0; routes->raw && !routes->sigmoid && e < n_experts; e++)
        total += exp((double)logits[e] - (double)logits[choices[0].expert]);
    for (uint32_t j = 0; j < n_used; j++) {
        uint32_t e = choices[j].expert;
        double w = route_weight(routes, (double)logits[e], (double)logits[choices[0].expert]) / total;
        choices[j].weight = damaged ? NAN : (float)(w * (scale ? (double)scale[e] : 1));
    }
}
