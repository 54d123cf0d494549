/* Tensors to the device: rows are re-laid as the device wants them, or stay in the file's mapping. */
#include "engine/load/load.h"

#include "base/base.h"
#include "ops/ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

peridot_status pd_load_report(struct pd_loader *l, uint64_t size)
{
    l->done += size;
    PD_TRY(pd_checkpoint_check(PERIDOT_OK, l->source.checkpoint));
    if (l->params->progress && !l->params->progress(l->params->user, l->done, l->file_size))
        return pd_fail(PERIDOT_CANCELLED, "loading was cancelled");
    return PERIDOT_OK;
}

void pd_load_count(struct pd_loader *l, uint64_t size)
{
    if (!l->elsewhere) l->file_size += size;
}

/* part: NULL for what is always on the device. */
static peridot_status upload_alloc(struct pd_span *out, struct pd_loader *l, struct pd_load_part *part, uint64_t size,
                                   const char *what)
{
    if (l->measuring) {
        if (l->elsewhere) return PERIDOT_OK;
        l->device_size += pd_align(size, 256);
        if (part) part->size += pd_align(size, 256);
        return PERIDOT_OK;
    }
    return pd_heap_alloc(out, part && part->host_resident ? l->w->host_resident_heap : l->w->heap, size, what);
}

struct file_row {
    const uint8_t *data;
    float scale;          /* what its weights are multiplied by */
};

/* Rows of a part, of which a tensor may have others as well. */
static uint32_t rows_of_part(const struct pd_load_rows *parts, uint32_t i)
{
    return parts->n_taken[i] ? parts->n_taken[i] : (uint32_t)pd_tensor_n_rows(parts->at[i]);
}

/* scratch: see pd_tensor_row. */
static struct file_row part_row(const struct pd_load_rows *parts, uint32_t row, uint8_t *scratch)
{
    uint32_t i = 0;
    if (row < parts->n_reordered) row = pd_head_order_row(&parts->order, row);
    if (pd_load_splits_experts(parts)) {   /* with as many rows each */
        uint32_t n = (uint32_t)parts->at[0]->shape[1], number = row / n;
        i = number % parts->n;
        row = number / parts->n * n + row % n;
    }
    while (row >= rows_of_part(parts, i)) row -= rows_of_part(parts, i++);
    if (parts->head_half[i]) row += (row / parts->head_dim + parts->head_half[i] - 1) * parts->head_dim;
    row = pd_value_order_row(&parts->value_rows[i], row);
    const struct pd_tensor *t = parts->at[i];
    return (struct file_row){pd_tensor_row(t, row, scratch), pd_tensor_scale(t, row)};
}

static uint64_t slice_size(const struct pd_slice *s)
{
    return pd_device_rows_size(s->row_size, s->n_rows, s->row_interleave);
}

/* Rows of a piece that is being uploaded, in bands that are re-laid on all processors at once. */
struct piece {
    const struct pd_slice *slice;
    const struct pd_load_rows *parts;
    struct pd_row_layout layout;
    uint8_t *dst, *scratch;        /* scratch: [bands][3] rows: of the device, of the file, and in order; */
    uint64_t scratch_size;         /* a band's so large */
    uint32_t row, n_rows, band;    /* its rows begin at `row` of the slice; rows of a band */
};

/* A row of plain numbers with its columns as on the device. */
static const uint8_t *order_columns(uint8_t *out, const struct piece *p, const uint8_t *row)
{
    const struct pd_value_order *order = &p->parts->value_columns;
    size_t size = pd_dtypes[p->layout.dtype].block_size, n = order->width * size;
    if (!pd_value_order_differs(order)) return row;
    for (uint32_t i = 0; i < p->layout.n; i += order->width)
        memcpy(out + i * size, row + pd_value_order_row(order, i) * size, n);
    return out;
}

static void put_band(void *user, size_t i)
{
    const struct piece *p = user;
    uint32_t begin = (uint32_t)i * p->band, end = (uint32_t)pd_min(begin + p->band, p->n_rows);
    uint8_t *scratch = p->scratch + i * p->scratch_size, *of_file = scratch + p->scratch_size / 3;
    for (uint32_t row = begin; row < end; row++) {
        struct file_row from = part_row(p->parts, p->slice->first_row + p->row + row, of_file);
        from.data = order_columns(of_file + p->scratch_size / 3, p, from.data);
        pd_device_put_row(&p->layout, p->dst, row, from.data, from.scale, scratch);
    }
}

static peridot_status upload_pieces(struct pd_loader *l, struct pd_span span, struct piece *piece)
{
    const struct pd_slice *slice = piece->slice;
    uint32_t per_piece = PD_UPLOAD_MAX / slice->row_size / slice->row_interleave * slice->row_interleave;
    uint64_t file_row_size = pd_row_size(slice->dtype, piece->layout.n);
    for (piece->row = 0; piece->row < slice->n_rows; piece->row += piece->n_rows) {
        void *dst;
        piece->n_rows = (uint32_t)pd_min(per_piece, slice->n_rows - piece->row);
        PD_TRY(pd_upload_begin(&dst, l->gpu, span, (uint64_t)piece->row * slice->row_size,
                               pd_device_rows_size(slice->row_size, piece->n_rows, slice->row_interleave)));
        piece->dst = dst;
        pd_parallel(pd_div_up(piece->n_rows, piece->band), put_band, piece);
        PD_TRY(pd_upload_end(l->gpu));
        PD_TRY(pd_load_report(l, piece->n_rows * file_row_size));
    }
    return PERIDOT_OK;
}

static peridot_status upload_slice(struct pd_loader *l, const struct pd_slice *slice, struct pd_span span,
                                   const struct pd_load_rows *parts, uint32_t n_cols)
{
    enum { BAND_SIZE = 256 << 10 };
    uint32_t band = (uint32_t)pd_align(pd_max(BAND_SIZE / slice->row_size, 1), slice->row_interleave);
    uint64_t largest = pd_align(pd_max(slice->row_size, pd_row_size(slice->dtype, n_cols)), 64);
    struct piece piece = {.slice = slice, .parts = parts, .layout = {slice->dtype, n_cols, slice->row_interleave},
        .band = band, .scratch_size = 3 * largest};
    uint64_t scratch_size = (PD_UPLOAD_MAX / slice->row_size / band + 1) * piece.scratch_size;
    piece.scratch = malloc(scratch_size);
    if (!piece.scratch) return pd_fail_alloc(scratch_size, "rows");
    peridot_status status = upload_pieces(l, span, &piece);
    free(piece.scratch);
    return status;
}

/* Whether rows of a type may stay in the file's mapping: plain numbers, which a device with unified memory can import.
 * A GPU pins the pages. A CPU would fault where the file is truncated later, in threads of the driver, which block
 * SIGBUS (Mesa), so that no handler could save the process. */
static bool may_stay(const struct pd_loader *l, enum pd_dtype dtype)
{
    bool pinned = pd_gpu_info(l->gpu)->type != PERIDOT_DEVICE_CPU;
    return pd_dtypes[dtype].block_len == 1 && pinned && pd_gpu_can_import(l->gpu);
}

/* The slice's rows, when they are in the file as kernels want them: aligned, in order. Small ones are not worth an
 * allocation of their own. Rows that may stay are never joined with another part's. */
static const uint8_t *rows_in_place(const struct pd_loader *l, const struct pd_slice *slice,
                                    const struct pd_load_rows *parts, uint32_t n_cols)
{
    enum { WORTH = 64 << 10 };
    bool in_order = slice->first_row >= parts->n_reordered && !pd_load_splits_experts(parts) && !parts->at[0]->experts
        && !parts->at[0]->stride[0] && !pd_value_order_differs(&parts->value_columns);
    for (uint32_t i = 0; i < parts->n; i++)
        in_order = in_order && !parts->head_half[i] && !pd_value_order_differs(&parts->value_rows[i]);
    const uint8_t *rows = in_order ? part_row(parts, slice->first_row, NULL).data : NULL;
    bool fits = may_stay(l, slice->dtype) && in_order && !parts->copied
        && pd_row_size(slice->dtype, n_cols) == slice->row_size && (uintptr_t)rows % 16 == 0
        && (uint64_t)slice->n_rows * slice->row_size >= WORTH;
    return fits ? rows : NULL;
}

/* False when the rows must be copied, also because the driver refuses to import them. */
static bool import_slice(struct pd_loader *l, struct pd_slice *slice, const struct pd_load_rows *parts, uint32_t n_cols)
{
    struct pd_span span;
    const uint8_t *rows = rows_in_place(l, slice, parts, n_cols);
    uint64_t size = (uint64_t)slice->n_rows * slice->row_size;
    if (!rows || l->measuring) return rows != NULL;
    if (pd_heap_import(&span, l->w->heap, rows, size) != PERIDOT_OK) return false;
    slice->address = span.address;
    l->w->in_place_size += size;
    return true;
}

static peridot_status fill_slice(struct pd_loader *l, struct pd_slice *slice, const struct pd_load_rows *parts,
                                 uint32_t n_cols)
{
    struct pd_span span;
    if (import_slice(l, slice, parts, n_cols))
        return l->measuring ? PERIDOT_OK : pd_load_report(l, (uint64_t)slice->n_rows * slice->row_size);
    PD_TRY(upload_alloc(&span, l, l->part, slice_size(slice), parts->at[0]->name));
    if (l->measuring) return PERIDOT_OK;
    slice->address = span.address;
    return upload_slice(l, slice, span, parts, n_cols);
}

static peridot_status add_slice(struct pd_loader *l, struct pd_matrix *m, struct pd_slice slice,
                                const struct pd_load_rows *parts)
{
    PD_TRY(fill_slice(l, &slice, parts, m->n_cols));
    if (l->measuring) return PERIDOT_OK;
    struct pd_slice *slices = realloc(m->slices, sizeof *slices * (m->n_slices + 1));
    if (!slices) return pd_fail_alloc(sizeof *slices * (m->n_slices + 1), "slices");
    m->slices = slices;
    m->slices[m->n_slices++] = slice;
    return PERIDOT_OK;
}

/* Rows [first, first + n) of one type, in slices of as many rows as one allocation can hold (less two pages, as an
 * import covers whole ones). */
static peridot_status load_run(struct pd_loader *l, struct pd_matrix *m, const struct pd_load_rows *parts,
                               enum pd_dtype dtype, uint32_t first, uint32_t n)
{
    uint32_t row_size = pd_device_row_size(dtype, m->n_cols);
    uint32_t row_interleave = pd_row_layout_of(pd_gpu_info(l->gpu), dtype, m->n_cols).row_interleave;
    uint64_t room = pd_gpu_max_span(l->gpu), pages = may_stay(l, dtype) ? 2 << 12 : 0;
    if (m->n_cols > PD_UPLOAD_MAX || row_size > PD_UPLOAD_MAX)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s has rows of %u numbers: more than 16 MiB are not supported",
                       parts->at[0]->name, m->n_cols);
    if ((uint64_t)row_interleave * row_size > pd_min(room, PD_UPLOAD_MAX)) row_interleave = 1;
    if (room > pages + row_size) room -= pages;
    uint32_t most = (uint32_t)pd_max(room / row_size / row_interleave, 1) * row_interleave;
    for (uint32_t end = first + n; first < end;) {
        uint32_t rows = (uint32_t)pd_min(most, end - first);
        struct pd_slice slice = {.dtype = dtype, .first_row = first, .n_rows = rows, .row_size = row_size,
            .row_interleave = row_interleave};
        PD_TRY(add_slice(l, m, slice, parts));
        first += rows;
    }
    return PERIDOT_OK;
}

static void count_part(struct pd_loader *l, const struct pd_tensor *t)
{
    if (!l->measuring) return;
    pd_load_count(l, t->size);
    l->w->type_counts[t->dtype]++;
    l->w->n_params += pd_tensor_n_rows(t) * t->shape[t->n_dims - 1];
}

/* What was copied need not be in memory twice. */
static void forget_parts(const struct pd_load_rows *parts)
{
    for (uint32_t i = 0; i < parts->n; i++) pd_tensor_forget(parts->at[i]);
}

peridot_status pd_load_matrix(struct pd_loader *l, struct pd_matrix *m, const struct pd_load_rows *parts,
                              uint32_t n_cols)
{
    uint64_t in_place_size = l->w->in_place_size;
    uint32_t row = 0;
    m->n_cols = n_cols;
    for (uint32_t i = 0; i < parts->n;) {
        enum pd_dtype dtype = parts->at[i]->dtype;
        uint32_t n_rows = 0;
        do {
            if (!parts->again[i]) count_part(l, parts->at[i]);
            n_rows += rows_of_part(parts, i++);
        } while (i < parts->n && parts->at[i]->dtype == dtype
                 && (!may_stay(l, dtype) || pd_load_splits_experts(parts)));
        PD_TRY(load_run(l, m, parts, dtype, row, n_rows));
        row += n_rows;
    }
    m->n_rows = row;
    if (!l->measuring && l->w->in_place_size == in_place_size && !parts->copied) forget_parts(parts);
    return PERIDOT_OK;
}

/* Elements of norms of heads are ordered as rows of q and k are. */
static void read_vector(float *out, const struct pd_loader *l, const struct pd_tensor *t, const struct pd_plan *plan)
{
    uint32_t n = plan->n_dims == 2 ? plan->n_rows : plan->n_cols, width = plan->n_dims == 2 ? plan->n_cols : 1;
    const struct pd_head_order order = pd_head_order_of(l->config, plan->layer);
    if (!plan->n_rotated_rows || !pd_head_order_differs(&order)) {
        for (uint32_t i = 0; i < n; i++)
            pd_tensor_dequantize(out + i * width, t, (uint64_t)pd_value_order_row(&plan->value_rows, i) * width, width);
        return;
    }
    for (uint32_t i = 0; i < plan->n_cols; i++)
        pd_tensor_dequantize(out + i, t, pd_head_order_row(&order, i), 1);
}

/* Frees the row. */
static peridot_status put_vector(struct pd_loader *l, uint64_t *address, struct pd_span span, float *row, uint32_t n)
{
    peridot_status status = pd_span_write(l->gpu, span, 0, row, n * sizeof *row);
    free(row);
    *address = span.address;
    return status;
}

peridot_status pd_load_constant(struct pd_loader *l, uint64_t *address, float value, uint32_t n)
{
    struct pd_span span;
    PD_TRY(upload_alloc(&span, l, NULL, n * sizeof(float), "norm"));
    if (l->measuring) return PERIDOT_OK;
    float *row = malloc(n * sizeof *row);
    if (!row) return pd_fail_alloc(n * sizeof *row, "norm");
    for (uint32_t i = 0; i < n; i++) row[i] = value;
    return put_vector(l, address, span, row, n);
}

peridot_status pd_load_norm(struct pd_loader *l, uint64_t *address, const struct pd_plan *plan)
{
    const struct pd_tensor *t;
    struct pd_span span;
    float *row;
    uint32_t n = plan->n_cols * (plan->n_dims == 2 ? plan->n_rows : 1);
    if (plan->constant != 0) return pd_load_constant(l, address, plan->constant, n);
    PD_TRY(pd_source_get(&t, &l->source, plan));
    PD_TRY(upload_alloc(&span, l, NULL, n * sizeof *row, t->name));
    if (l->measuring) {
        pd_load_count(l, t->size);
        l->w->n_params += n;
        return PERIDOT_OK;
    }
    row = malloc(n * sizeof *row);
    if (!row) return pd_fail_alloc(n * sizeof *row, t->name);
    read_vector(row, l, t, plan);
    if (plan->plus_one)
        for (uint32_t i = 0; i < n; i++) row[i] += 1;
    bool is_post = plan->role == PD_ROLE_POST_ATTN_NORM || plan->role == PD_ROLE_POST_FFN_NORM;
    if (is_post && l->config->post_eps != 0)
        for (uint32_t i = 0; i < n; i++) row[i] /= pd_stream_scale(l->config);
    if (plan->role == PD_ROLE_DELTA_DECAY && l->config->hf_recurrences)
        for (uint32_t i = 0; i < n; i++) row[i] = (float)-exp((double)row[i]);
    if (plan->role == PD_ROLE_ROUTER_SCALE)
        for (uint32_t i = 0; i < n; i++) row[i] /= sqrtf((float)n);
    if (plan->role == PD_ROLE_OUTPUT_NORM)   /* the matrix after it may be the embedding */
        for (uint32_t i = 0; i < n; i++) row[i] *= l->config->logit_scale;
    PD_TRY(put_vector(l, address, span, row, n));
    return pd_load_report(l, t->size);
}

/* Of all parts, one after the other; or of an expert's, and then of the next one's. */
static void read_biases(float *out, const struct pd_load_rows *biases, uint32_t n_experts)
{
    uint64_t at = 0, n;
    for (uint32_t e = 0; e < n_experts; e++)
        for (uint32_t i = 0; i < biases->n; i++, at += n) {
            n = biases->at[i]->shape[0] / n_experts * biases->at[i]->shape[1];
            pd_tensor_dequantize(out + at, biases->at[i], e * n, n);
        }
}

peridot_status pd_load_bias(struct pd_loader *l, struct pd_linear *linear, const struct pd_load_rows *biases)
{
    struct pd_span span;
    uint32_t n = 0;
    if (!biases->n) return PERIDOT_OK;
    for (uint32_t i = 0; i < biases->n; i++) {
        const struct pd_tensor *t = biases->at[i];
        if (pd_dtypes[t->dtype].block_len > 1)
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: tensor %s has type %s, which is not supported for a bias",
                           t->file, t->name, t->type);
        n += (uint32_t)(t->shape[0] * t->shape[1]);
        if (l->measuring) pd_load_count(l, t->size);
    }
    PD_TRY(upload_alloc(&span, l, NULL, n * sizeof(float), biases->at[0]->name));
    if (l->measuring) {
        l->w->n_params += n;
        return PERIDOT_OK;
    }
    float *file = malloc(2 * (size_t)n * sizeof *file), *bias = file ? file + n : NULL;
    if (!file) return pd_fail_alloc(2 * (size_t)n * sizeof *bias, biases->at[0]->name);
    read_biases(file, biases, biases->at[0]->n_dims == 2 ? (uint32_t)biases->at[0]->shape[0] : 1);
    for (uint32_t row = 0; row < n; row++)
        bias[row] = file[row < biases->n_reordered ? pd_head_order_row(&biases->order, row) : row];
    peridot_status status = pd_span_write(l->gpu, span, 0, bias, n * sizeof *bias);
    free(file);
    PD_TRY(status);
    linear->bias = span.address;
    for (uint32_t i = 0; i < biases->n; i++) PD_TRY(pd_load_report(l, biases->at[i]->size));
    return PERIDOT_OK;
}

peridot_status pd_load_output_scale(struct pd_loader *l, float *scale, const struct pd_plan *plan)
{
    const struct pd_tensor *t;
    PD_TRY(pd_source_get(&t, &l->source, plan));
    if (l->measuring) {
        pd_load_count(l, t->size);
        l->w->n_params++;
        return PERIDOT_OK;
    }
    pd_tensor_dequantize(scale, t, 0, 1);
    if (!isfinite(*scale))
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: tensor %s is %g", t->file, t->name, (double)*scale);
    return pd_load_report(l, t->size);
}
