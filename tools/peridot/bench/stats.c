/* Numbers from numbers: what repeats have in common, and what logits say of an answer. */
#include "bench.h"

#include <inttypes.h>
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
        hash = pd_hash(hash, bytes, sizeof bytes);
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

/* ---- cost ---- */

/* What a token costs, whoever computes it, as the engine counts it. */

double bench_flop_of(const peridot_session *session, const struct bench_test *t)
{
    uint32_t begin = t->depth + t->generation;
    double sum = 0;
    for (uint32_t i = 0; i < t->n_tokens; i++)   /* of a prompt only the last one's logits are computed */
        sum += peridot_session_token_flop(session, begin + i, t->generation || i + 1 == t->n_tokens);
    return sum;
}

/* ---- hash ---- */

/* What identifies a model in reports. */

static peridot_status hash_metadata(uint64_t *hash, const peridot_file *file)
{
    for (size_t i = 0; i < peridot_file_n_metadata(file); i++) {
        char *text;
        const char *key = peridot_file_metadata_key(file, i);
        PD_TRY(peridot_file_metadata_text(&text, file, i));
        *hash = pd_hash(*hash, key, strlen(key) + 1);
        *hash = pd_hash(*hash, text, strlen(text) + 1);
        peridot_free(text);
    }
    for (size_t i = 0; i < peridot_file_n_tensors(file); i++) {
        const peridot_tensor_info *t = peridot_file_tensor(file, i);
        *hash = pd_hash(*hash, t->name, strlen(t->name) + 1);
        *hash = pd_hash(*hash, t->type, strlen(t->type) + 1);
        for (uint32_t d = 0; d < t->n_dims; d++) {
            char number[24];
            int size = snprintf(number, sizeof number, "%" PRIu64 ",", t->shape[d]);
            *hash = pd_hash(*hash, number, (size_t)size);
        }
    }
    return PERIDOT_OK;
}

peridot_status bench_hash_file(uint64_t *hash, const char *path)
{
    peridot_file *file;
    PD_TRY(peridot_file_open(&file, path));
    peridot_status status = hash_metadata(hash, file);
    peridot_file_close(file);
    return status;
}

/* ---- tokens ---- */

/* The tokens that are measured. */

peridot_status bench_make_tokens(int32_t **out, size_t n, uint32_t vocab_size)
{
    uint64_t x = 1;
    *out = malloc(n * sizeof **out);
    if (!*out) return pd_fail_alloc(n * sizeof **out, "tokens");
    for (size_t i = 0; i < n; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        (*out)[i] = (int32_t)((x >> 33) % vocab_size);
    }
    return PERIDOT_OK;
}
