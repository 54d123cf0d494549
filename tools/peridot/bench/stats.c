/* Numbers from numbers: what repeats have in common, and what logits say of an answer. */
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_speed(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

void bench_summarise(struct bench_test *test)
{
    double sorted[REPORT_REPEATS], mean = 0, squares = 0;
    uint32_t n = test->n_repeats;
    if (n == 0) return;
    memcpy(sorted, test->speed, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_speed);
    for (uint32_t i = 0; i < n; i++) mean += sorted[i] / n;
    for (uint32_t i = 0; i < n; i++) squares += (sorted[i] - mean) * (sorted[i] - mean);
    test->min = sorted[0];
    test->max = sorted[n - 1];
    test->median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
    test->sd = n > 1 ? sqrt(squares / (n - 1)) : 0;
}

/* To nearest, ties to even; NaN stays NaN. */
static uint16_t bf16_from_f32(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

/* Rounded to 8 bits of mantissa: what differs then is another answer rather than another order of additions. Values
 * next to a rounding step still may fall to either side, so checksums of different devices seldom agree. */
static uint64_t checksum(const float *logits, size_t n)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < n; i++) {
        uint16_t rounded = bf16_from_f32(logits[i]);
        unsigned char bytes[2] = {(unsigned char)(rounded & 0xff), (unsigned char)(rounded >> 8)};
        hash = cmd_hash(hash, bytes, sizeof bytes);
    }
    return hash;
}

void bench_look_at_logits(struct bench_test *test, const float *logits, size_t n, bool first)
{
    uint64_t hash = checksum(logits, n);
    double squares = 0;
    size_t top = 0;
    bool finite = n > 0;
    for (size_t i = 0; i < n; i++) {
        finite = finite && isfinite(logits[i]);
        squares += (double)logits[i] * (double)logits[i];
        if (logits[i] > logits[top]) top = i;
    }
    test->equal = first || (test->equal && hash == test->checksum);
    test->finite = finite && (first || test->finite);
    test->checksum = hash;
    test->top_token = (uint32_t)top;
    test->top_logit = finite ? (double)logits[top] : 0;
    test->rms = finite ? sqrt(squares / (double)n) : 0;
}
