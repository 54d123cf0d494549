/* Resizing, as torchvision does it to 8-bit tensors (ATen's UpSampleKernel.cpp, which follows Pillow): each pixel of a
 * row is a weighted sum of those that its filter covers, in whole numbers; then the same for columns. */
#include "picture/picture_.h"

#include "base/base.h"

#include <math.h>
#include <stdlib.h>

/* For each of n_out positions, n[i] samples from first[i] on, and their weights at weights[i * stride]. */
struct taps {
    uint32_t *first, *n;
    int16_t *weights;
    size_t stride;
    int precision;   /* weights are multiplied by 2^precision */
};

static double bilinear(double x) { return fabs(x) < 1 ? 1 - fabs(x) : 0; }

/* Keys' cubic convolution, a = -0.5. */
static double bicubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    return x < 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static const struct { double (*at)(double x), radius; } filters[] = {
    [PD_PICTURE_BILINEAR] = {bilinear, 1}, [PD_PICTURE_BICUBIC] = {bicubic, 2}};

static void taps_free(struct taps *t)
{
    free(t->first);
    free(t->n);
    free(t->weights);
}

/* Rounds weights to 16 bits, with as many places as the largest allows. */
static void round_weights(struct taps *t, const double *weights, size_t n, double largest)
{
    while (t->precision < 22 && (int)(0.5 + largest * (1 << (t->precision + 1))) < 1 << 15) t->precision++;
    for (size_t i = 0; i < n; i++) {
        double w = weights[i] * (1 << t->precision);
        t->weights[i] = (int16_t)(w < 0 ? w - 0.5 : w + 0.5);
    }
}

static peridot_status taps_make(struct taps *t, uint32_t n_in, uint32_t n_out, enum pd_picture_filter filter)
{
    double scale = (double)n_in / n_out, widen = scale > 1 ? scale : 1, narrow = 1 / widen;
    double radius = filters[filter].radius * widen, largest = 0;
    size_t stride = 2 * (size_t)ceil(radius) + 1;
    double *weights = calloc(stride * n_out, sizeof *weights);
    *t = (struct taps){malloc(n_out * sizeof *t->first), malloc(n_out * sizeof *t->n),
                       malloc(stride * n_out * sizeof *t->weights), stride, 0};
    if (!weights || !t->first || !t->n || !t->weights) {
        free(weights);
        taps_free(t);
        return pd_fail_alloc(stride * n_out * sizeof *weights, "the weights of a filter");
    }
    for (uint32_t i = 0; i < n_out; i++) {
        double center = scale * (i + 0.5), total = 0, *w = weights + i * stride;
        uint32_t first = (uint32_t)fmax(center - radius + 0.5, 0);
        uint32_t n = (uint32_t)pd_min(pd_min((uint64_t)(center + radius + 0.5), n_in) - first, stride);
        for (uint32_t k = 0; k < n; k++) total += w[k] = filters[filter].at((first + k - center + 0.5) * narrow);
        for (uint32_t k = 0; k < n; k++) largest = fmax(largest, w[k] /= total);
        t->first[i] = first, t->n[i] = n;
    }
    round_weights(t, weights, stride * n_out, largest);
    free(weights);
    return PERIDOT_OK;
}

/* ---- one pass: from [n_rows][width][3] to pixels or rows that are fewer or more ---- */

enum { ROWS = 16, COLUMNS = 1024 };   /* of one call, and of sums that are kept at a time */

struct pass {
    const struct taps *taps;
    const uint8_t *in;
    uint8_t *out;
    size_t in_row, out_row;   /* bytes */
    uint32_t n_rows;          /* of out */
};

static uint8_t round_sum(int32_t sum, int precision)
{
    sum >>= precision;
    return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

static void resize_rows(void *user, size_t block)
{
    const struct pass *p = user;
    const struct taps *t = p->taps;
    for (size_t y = block * ROWS; y < p->n_rows && y < (block + 1) * ROWS; y++)
        for (size_t x = 0; 3 * x < p->out_row; x++) {
            const uint8_t *in = p->in + y * p->in_row + 3 * (size_t)t->first[x];
            const int16_t *w = t->weights + x * t->stride;
            int32_t half = 1 << t->precision >> 1, sum[3] = {half, half, half};
            for (uint32_t k = 0; k < t->n[x]; k++, in += 3)
                for (int c = 0; c < 3; c++) sum[c] += w[k] * in[c];
            for (int c = 0; c < 3; c++) p->out[y * p->out_row + 3 * x + (size_t)c] = round_sum(sum[c], t->precision);
        }
}

static void resize_columns(void *user, size_t block)
{
    const struct pass *p = user;
    const struct taps *t = p->taps;
    int32_t sums[COLUMNS];
    for (size_t y = block * ROWS; y < p->n_rows && y < (block + 1) * ROWS; y++)
        for (size_t x = 0; x < p->out_row; x += COLUMNS) {
            size_t n = (size_t)pd_min(COLUMNS, p->out_row - x);
            for (size_t i = 0; i < n; i++) sums[i] = 1 << t->precision >> 1;
            for (uint32_t k = 0; k < t->n[y]; k++) {
                const uint8_t *in = p->in + ((size_t)t->first[y] + k) * p->in_row + x;
                int32_t w = t->weights[y * t->stride + k];
                for (size_t i = 0; i < n; i++) sums[i] += w * in[i];
            }
            for (size_t i = 0; i < n; i++) p->out[y * p->out_row + x + i] = round_sum(sums[i], t->precision);
        }
}

/* One side of `out` is that of `in`. */
static peridot_status resize_side(struct pd_picture *out, const struct pd_picture *in, uint32_t width, uint32_t height,
                                  enum pd_picture_filter filter)
{
    bool is_row = width != in->width;
    size_t size = 3 * (size_t)width * height;
    struct taps taps;
    PD_TRY(taps_make(&taps, is_row ? in->width : in->height, is_row ? width : height, filter));
    *out = (struct pd_picture){width, height, malloc(size)};
    if (out->rgb) {
        struct pass pass = {&taps, in->rgb, out->rgb, 3 * (size_t)in->width, 3 * (size_t)width, height};
        pd_parallel((size_t)pd_div_up(height, ROWS), is_row ? resize_rows : resize_columns, &pass);
    }
    taps_free(&taps);
    return out->rgb ? PERIDOT_OK : pd_fail_alloc(size, "a resized picture");
}

peridot_status pd_picture_resize(struct pd_picture *out, const struct pd_picture *in, uint32_t width, uint32_t height,
                                 enum pd_picture_filter filter)
{
    struct pd_picture rows = *in;
    *out = (struct pd_picture){0};
    PD_TRY(pd_picture_check_size("resizing", width, height, PD_PICTURE_MAX_PIXELS));
    PD_TRY(pd_picture_check_size("resizing", width, in->height, PD_PICTURE_MAX_PIXELS));   /* between the passes */
    if (width == in->width && height == in->height) return pd_picture_crop(out, in, 0, 0, width, height);
    if (width != in->width) PD_TRY(resize_side(&rows, in, width, in->height, filter));
    if (height == in->height) {
        *out = rows;
        return PERIDOT_OK;
    }
    peridot_status status = resize_side(out, &rows, width, height, filter);
    if (rows.rgb != in->rgb) free(rows.rgb);
    return status;
}
