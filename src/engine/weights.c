#include "engine/weights.h"

#include "arch/source.h"
#include "base/num.h"
#include "base/os.h"
#include "base/parallel.h"
#include "ops/layout.h"
#include "ops/variants.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is placed as a whole: the matrices of a layer, or one of those that have none. */
enum { PART_EMBEDDING, PART_OUTPUT, PART_PER_LAYER_EMBEDDING, PART_LAYERS };

struct part {
    uint64_t size;                 /* bytes that must be allocated */
    bool host_resident;                      /* in the host's memory */
};

/* The same walk over the model runs twice: once to find every tensor and add up sizes, once to upload. */
struct loader {
    struct pd_weights *w;
    struct pd_gpu *gpu;
    const struct pd_config *config;
    struct pd_source source;
    bool measuring;
    struct part *parts;            /* [PART_LAYERS + 2 n_layers]: of layers, then of their experts */
    struct part *part;             /* of the present matrix */
    bool elsewhere;                /* another rank holds the present part: its tensors are only counted */
    const struct pd_load_params *params;
    uint64_t device_size, file_size, done;
};

/* ---- uploading ---- */

static peridot_status report(struct loader *l, uint64_t size)
{
    l->done += size;
    PD_TRY(pd_checkpoint_check(PERIDOT_OK, l->source.checkpoint));
    if (l->params->progress && !l->params->progress(l->params->user, l->done, l->file_size))
        return pd_fail(PERIDOT_CANCELLED, "loading was cancelled");
    return PERIDOT_OK;
}

/* Bytes of a tensor that is to be loaded. */
static void count_size(struct loader *l, uint64_t size)
{
    if (!l->elsewhere) l->file_size += size;
}

/* part: NULL for what is always on the device. */
static peridot_status alloc(struct pd_span *out, struct loader *l, struct part *part, uint64_t size, const char *what)
{
    if (l->measuring) {
        if (l->elsewhere) return PERIDOT_OK;
        l->device_size += pd_align(size, 256);
        if (part) part->size += pd_align(size, 256);
        return PERIDOT_OK;
    }
    return pd_heap_alloc(out, part && part->host_resident ? l->w->host_resident_heap : l->w->heap, size, what);
}

/* Rows of several tensors, one after the other, or those of experts one expert after the other. */
struct parts {
    const struct pd_tensor *at[3];
    uint32_t n;
    uint32_t n_interleaved, head_dim;   /* the first n_interleaved tensors have their heads' rows interleaved */
};

/* GGUF's Llama files order the rows of a q or k head for rotation of neighbours (x[2i], x[2i + 1]); kernels rotate
 * split halves (x[i], x[i + head_dim / 2]), so row i of half j comes from row 2 i + j. */
static uint32_t interleaved_row(uint32_t row, uint32_t head_dim)
{
    uint32_t in_head = row % head_dim, half = head_dim / 2;
    return row - in_head + 2 * (in_head % half) + in_head / half;
}

/* Whether the rows of an expert come from several tensors. */
static bool are_split_experts(const struct parts *parts) { return parts->n > 1 && parts->at[0]->n_dims == 3; }

static const uint8_t *part_row(const struct parts *parts, uint32_t row)
{
    uint32_t i = 0;
    if (are_split_experts(parts)) {   /* with as many rows each */
        uint32_t n = (uint32_t)parts->at[0]->shape[1], number = row / n;
        i = number % parts->n;
        row = number / parts->n * n + row % n;
    }
    while (row >= pd_tensor_n_rows(parts->at[i])) row -= (uint32_t)pd_tensor_n_rows(parts->at[i++]);
    if (i < parts->n_interleaved) row = interleaved_row(row, parts->head_dim);
    return parts->at[i]->data + row * (parts->at[i]->size / pd_tensor_n_rows(parts->at[i]));
}

static uint64_t slice_size(const struct pd_slice *s)
{
    return pd_device_rows_size(s->row_size, s->n_rows, s->row_interleave);
}

/* Rows of a piece that is being uploaded, in bands that are re-laid on all processors at once. */
struct piece {
    const struct pd_slice *slice;
    const struct parts *parts;
    struct pd_row_layout layout;
    uint8_t *dst, *scratch;        /* scratch: [bands] rows */
    uint32_t row, n_rows, band;    /* its rows begin at `row` of the slice; rows of a band */
};

static void put_band(void *user, size_t i)
{
    const struct piece *p = user;
    uint32_t begin = (uint32_t)i * p->band, end = (uint32_t)pd_min(begin + p->band, p->n_rows);
    for (uint32_t row = begin; row < end; row++)
        pd_device_put_row(&p->layout, p->dst, row, part_row(p->parts, p->slice->first_row + p->row + row),
                          p->scratch + i * p->slice->row_size);
}

static peridot_status upload_pieces(struct loader *l, struct pd_span span, struct piece *piece)
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
        PD_TRY(report(l, piece->n_rows * file_row_size));
    }
    return PERIDOT_OK;
}

static peridot_status upload_slice(struct loader *l, const struct pd_slice *slice, struct pd_span span,
                                   const struct parts *parts, uint32_t n_cols)
{
    enum { BAND_SIZE = 256 << 10 };
    uint32_t band = (uint32_t)pd_align(pd_max(BAND_SIZE / slice->row_size, 1), slice->row_interleave);
    uint64_t scratch_size = (PD_UPLOAD_MAX / slice->row_size / band + 1) * (uint64_t)slice->row_size;
    struct piece piece = {
        .slice = slice, .parts = parts, .layout = {slice->dtype, n_cols, slice->row_interleave}, .band = band};
    piece.scratch = malloc(scratch_size);
    if (!piece.scratch) return pd_fail_alloc(scratch_size, "rows");
    peridot_status status = upload_pieces(l, span, &piece);
    free(piece.scratch);
    return status;
}

/* Whether rows of a type may stay in the file's mapping: plain numbers, which a device with unified memory can import.
 * A GPU pins the pages. A CPU would fault where the file is truncated later, in threads of the driver, which block
 * SIGBUS (Mesa), so that no handler could save the process. */
static bool may_stay(const struct loader *l, enum pd_dtype dtype)
{
    bool pinned = pd_gpu_info(l->gpu)->type != PERIDOT_DEVICE_CPU;
    return pd_dtypes[dtype].block_len == 1 && pinned && pd_gpu_can_import(l->gpu);
}

/* The slice's rows, when they are in the file as kernels want them: aligned, in order. Small ones are not worth an
 * allocation of their own. Rows that may stay are never joined with another part's. */
static const uint8_t *rows_in_place(const struct loader *l, const struct pd_slice *slice, const struct parts *parts,
                                    uint32_t n_cols)
{
    enum { WORTH = 64 << 10 };
    const uint8_t *rows = part_row(parts, slice->first_row);
    uint64_t n_interleaved_rows = 0;
    for (uint32_t i = 0; i < parts->n_interleaved; i++) n_interleaved_rows += parts->at[i]->shape[0];
    bool in_order = slice->first_row >= n_interleaved_rows && !are_split_experts(parts);
    bool fits = may_stay(l, slice->dtype) && in_order && pd_row_size(slice->dtype, n_cols) == slice->row_size
        && (uintptr_t)rows % 16 == 0 && (uint64_t)slice->n_rows * slice->row_size >= WORTH;
    return fits ? rows : NULL;
}

/* False when the rows must be copied, also because the driver refuses to import them. */
static bool import_slice(struct loader *l, struct pd_slice *slice, const struct parts *parts, uint32_t n_cols)
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

static peridot_status fill_slice(struct loader *l, struct pd_slice *slice, const struct parts *parts, uint32_t n_cols)
{
    struct pd_span span;
    if (import_slice(l, slice, parts, n_cols))
        return l->measuring ? PERIDOT_OK : report(l, (uint64_t)slice->n_rows * slice->row_size);
    PD_TRY(alloc(&span, l, l->part, slice_size(slice), parts->at[0]->name));
    if (l->measuring) return PERIDOT_OK;
    slice->address = span.address;
    return upload_slice(l, slice, span, parts, n_cols);
}

static peridot_status add_slice(struct loader *l, struct pd_matrix *m, struct pd_slice slice, const struct parts *parts)
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
static peridot_status load_run(struct loader *l, struct pd_matrix *m, const struct parts *parts, enum pd_dtype dtype,
                               uint32_t first, uint32_t n)
{
    uint32_t row_size = pd_device_row_size(dtype, m->n_cols);
    uint32_t row_interleave = pd_row_layout_of(pd_gpu_info(l->gpu), dtype, m->n_cols).row_interleave;
    uint64_t room = pd_gpu_max_span(l->gpu), pages = may_stay(l, dtype) ? 2 << 12 : 0;
    if ((uint64_t)row_interleave * row_size > room) row_interleave = 1;
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

static void count_part(struct loader *l, const struct pd_tensor *t)
{
    if (!l->measuring) return;
    count_size(l, t->size);
    l->w->type_counts[t->dtype]++;
    l->w->n_params += pd_tensor_n_rows(t) * t->shape[t->n_dims - 1];
}

/* What was copied need not be in memory twice. */
static void forget_parts(const struct parts *parts)
{
    for (uint32_t i = 0; i < parts->n; i++) pd_map_forget(parts->at[i]->data, parts->at[i]->size);
}

/* Neighbouring parts of one type become one run of rows, and so one dispatch, unless they can stay where they are.
 * Those of an expert always do. */
static peridot_status load_matrix(struct loader *l, struct pd_matrix *m, const struct parts *parts, uint32_t n_cols)
{
    uint64_t in_place_size = l->w->in_place_size;
    uint32_t row = 0;
    m->n_cols = n_cols;
    for (uint32_t i = 0; i < parts->n;) {
        enum pd_dtype dtype = parts->at[i]->dtype;
        uint32_t n_rows = 0;
        do {
            count_part(l, parts->at[i]);
            n_rows += (uint32_t)pd_tensor_n_rows(parts->at[i++]);
        } while (i < parts->n && parts->at[i]->dtype == dtype && (!may_stay(l, dtype) || are_split_experts(parts)));
        PD_TRY(load_run(l, m, parts, dtype, row, n_rows));
        row += n_rows;
    }
    m->n_rows = row;
    if (!l->measuring && l->w->in_place_size == in_place_size) forget_parts(parts);
    return PERIDOT_OK;
}

static peridot_status load_norm(struct loader *l, uint64_t *address, const struct pd_plan *plan)
{
    const struct pd_tensor *t;
    struct pd_span span;
    float *row;
    uint32_t n = plan->n_cols;
    PD_TRY(pd_source_get(&t, &l->source, plan));
    PD_TRY(alloc(&span, l, NULL, n * sizeof *row, t->name));
    if (l->measuring) {
        count_size(l, t->size);
        l->w->n_params += n;
        return PERIDOT_OK;
    }
    row = malloc(n * sizeof *row);
    if (!row) return pd_fail_alloc(n * sizeof *row, t->name);
    pd_dequantize(t->dtype, row, t->data, n);
    if (l->config->norm_plus_one)
        for (uint32_t i = 0; i < n; i++) row[i] += 1;
    if (plan->role == PD_ROLE_ROUTER_SCALE)
        for (uint32_t i = 0; i < n; i++) row[i] /= sqrtf((float)n);
    peridot_status status = pd_span_write(l->gpu, span, 0, row, n * sizeof *row);
    free(row);
    PD_TRY(status);
    *address = span.address;
    return report(l, t->size);
}

/* Of all of a matrix's parts, or of none. */
static peridot_status load_bias(struct loader *l, struct pd_linear *linear, const struct parts *biases)
{
    struct pd_span span;
    uint32_t n = 0;
    if (!biases->n) return PERIDOT_OK;
    for (uint32_t i = 0; i < biases->n; i++) {
        const struct pd_tensor *t = biases->at[i];
        if (pd_dtypes[t->dtype].block_len > 1)
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: tensor %s has type %s, which is not supported for a bias",
                           t->file, t->name, t->type);
        n += (uint32_t)t->shape[0];
        if (l->measuring) count_size(l, t->size);
    }
    PD_TRY(alloc(&span, l, NULL, n * sizeof(float), biases->at[0]->name));
    if (l->measuring) {
        l->w->n_params += n;
        return PERIDOT_OK;
    }
    float *bias = malloc(n * sizeof *bias);
    if (!bias) return pd_fail_alloc(n * sizeof *bias, biases->at[0]->name);
    for (uint32_t row = 0, i = 0, end = 0; row < n; row++) {
        if (row == end) end += (uint32_t)biases->at[i++]->shape[0];
        pd_dequantize(biases->at[i - 1]->dtype, bias + row, part_row(biases, row), 1);
    }
    peridot_status status = pd_span_write(l->gpu, span, 0, bias, n * sizeof *bias);
    free(bias);
    PD_TRY(status);
    linear->bias = span.address;
    for (uint32_t i = 0; i < biases->n; i++) PD_TRY(report(l, biases->at[i]->size));
    return PERIDOT_OK;
}

static peridot_status load_output_scale(struct loader *l, float *scale, const struct pd_plan *plan)
{
    const struct pd_tensor *t;
    PD_TRY(pd_source_get(&t, &l->source, plan));
    if (l->measuring) {
        count_size(l, t->size);
        l->w->n_params++;
        return PERIDOT_OK;
    }
    pd_dequantize(t->dtype, scale, t->data, 1);
    if (!isfinite(*scale))
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: tensor %s is %g", t->file, t->name, (double)*scale);
    return report(l, t->size);
}

/* ---- the walk ---- */

static peridot_status add_part(struct loader *l, struct parts *parts, const struct pd_plan *plan)
{
    if (plan->rotated && l->config->rope_interleaved) {
        parts->n_interleaved++;
        parts->head_dim = plan->rotated;
    }
    return pd_source_get(&parts->at[parts->n++], &l->source, plan);
}

static bool is_of_experts(enum pd_layer_matrix m)
{
    return m == PD_MATRIX_EXPERTS_GATE_UP || m == PD_MATRIX_EXPERTS_DOWN;
}

static peridot_status check_split_experts(const struct parts *parts)
{
    const struct pd_tensor *a = parts->at[0], *b = parts->at[1];
    if (!are_split_experts(parts) || a->dtype == b->dtype) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: tensor " PD_NAME " has type %s, but " PD_NAME " has %s: only one "
                   "type of both is supported", a->file, a->name, a->type, b->name, b->type);
}

/* Experts are placed apart from the rest of their layer. */
static uint32_t part_of(const struct loader *l, uint32_t layer, enum pd_layer_matrix m)
{
    return PART_LAYERS + layer + (is_of_experts(m) ? l->config->n_layers : 0);
}

static peridot_status load_layer(struct loader *l, uint32_t i)
{
    struct pd_layer_weights *w = &l->w->layers[i];
    struct parts parts[PD_N_LAYER_MATRICES] = {{.n = 0}}, biases[PD_N_LAYER_MATRICES] = {{.n = 0}};
    struct pd_plan plan;
    w->output_scale = 1;
    for (enum pd_role role = PD_FIRST_LAYER_ROLE; role < PD_N_ROLES; role++) {
        if (!pd_plan_get(&plan, l->config, role, i)) continue;
        if (role == PD_ROLE_OUTPUT_SCALE) PD_TRY(load_output_scale(l, &w->output_scale, &plan));
        else if (plan.is_bias) PD_TRY(add_part(l, &biases[plan.matrix], &plan));
        else if (plan.n_dims == 1) PD_TRY(load_norm(l, &w->norms[role], &plan));
        else PD_TRY(add_part(l, &parts[plan.matrix], &plan));
    }
    for (int m = 0; m < PD_N_LAYER_MATRICES; m++) {
        if (!parts[m].n) continue;
        const struct pd_tensor *first = parts[m].at[0];
        l->part = &l->parts[part_of(l, i, (enum pd_layer_matrix)m)];
        PD_TRY(check_split_experts(&parts[m]));
        PD_TRY(load_matrix(l, &w->linears[m].w, &parts[m], (uint32_t)first->shape[first->n_dims - 1]));
        PD_TRY(load_bias(l, &w->linears[m], &biases[m]));
        if (is_of_experts((enum pd_layer_matrix)m)) w->linears[m].n_experts = l->config->layers[i].n_experts;
        if (is_of_experts((enum pd_layer_matrix)m) && w->linears[m].w.n_slices > 1)
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED,
                           "%s: tensor %s: the device cannot hold the experts of a layer in one piece", first->file,
                           first->name);
    }
    w->linears[PD_MATRIX_ROUTER].exact = true;
    return PERIDOT_OK;
}

static peridot_status load_embedding(struct loader *l)
{
    struct parts embedding = {.n = 1};
    PD_TRY(pd_source_get_embedding(&embedding.at[0], &l->source));
    l->w->vocab_size = (uint32_t)embedding.at[0]->shape[0];
    return load_matrix(l, &l->w->embedding, &embedding, l->config->d_model);
}

/* Labels' biases are few, and added on the host. */
static peridot_status load_label_biases(struct loader *l)
{
    struct pd_weights *w = l->w;
    const struct pd_tensor *t;
    struct pd_plan plan;
    if (!pd_plan_get(&plan, l->config, PD_ROLE_SCORE_BIAS, 0) || !pd_source_find(&l->source, plan.role, 0))
        return PERIDOT_OK;
    plan.n_cols = w->n_outputs;
    PD_TRY(pd_source_get(&t, &l->source, &plan));
    if (l->measuring) {
        w->n_params += w->n_outputs;
        return PERIDOT_OK;
    }
    w->output_bias = malloc(w->n_outputs * sizeof *w->output_bias);
    if (!w->output_bias) return pd_fail_alloc(w->n_outputs * sizeof *w->output_bias, t->name);
    pd_dequantize(t->dtype, w->output_bias, t->data, w->n_outputs);
    return PERIDOT_OK;
}

static peridot_status load_output(struct loader *l)
{
    struct pd_weights *w = l->w;
    const struct pd_config *c = l->config;
    struct parts output = {.n = 1};
    struct pd_plan plan;
    bool classifies = pd_plan_get(&plan, c, PD_ROLE_SCORE, 0);
    w->n_outputs = c->head == PERIDOT_HEAD_NONE ? 0 : w->vocab_size;
    if (!classifies && !pd_plan_get(&plan, c, PD_ROLE_OUTPUT, 0)) return PERIDOT_OK;
    if (!classifies) plan.n_rows = w->vocab_size;
    PD_TRY(pd_source_get(&output.at[0], &l->source, &plan));
    w->n_outputs = (uint32_t)output.at[0]->shape[0];
    PD_TRY(load_matrix(l, &w->output.w, &output, c->d_model));
    return load_label_biases(l);
}

static peridot_status load_one(struct loader *l, struct pd_matrix *m, enum pd_role role, uint32_t n_rows)
{
    struct parts parts = {.n = 1};
    struct pd_plan plan;
    pd_plan_get(&plan, l->config, role, 0);
    if (plan.n_rows == PD_ANY_SIZE) plan.n_rows = n_rows;
    PD_TRY(pd_source_get(&parts.at[0], &l->source, &plan));
    return load_matrix(l, m, &parts, plan.n_cols);
}

/* The projection is small beside a layer and always on the device. */
static peridot_status load_per_layer(struct loader *l)
{
    struct pd_weights *w = l->w;
    struct pd_plan plan, table;
    if (!pd_plan_get(&plan, l->config, PD_ROLE_PER_LAYER_MODEL_NORM, 0)) return PERIDOT_OK;
    if (pd_plan_get(&table, l->config, PD_ROLE_PER_LAYER_EMBEDDING, 0))
        PD_TRY(load_one(l, &w->per_layer_embedding, PD_ROLE_PER_LAYER_EMBEDDING, w->vocab_size));
    l->part = NULL;
    PD_TRY(load_one(l, &w->per_layer_model_proj.w, PD_ROLE_PER_LAYER_MODEL_PROJ, 0));
    return load_norm(l, &w->per_layer_model_norm, &plan);
}

/* What a drafter has between its target and itself. */
static peridot_status load_projections(struct loader *l)
{
    struct pd_plan plan;
    if (!pd_plan_get(&plan, l->config, PD_ROLE_PRE_PROJ, 0)) return PERIDOT_OK;
    l->part = NULL;
    PD_TRY(load_one(l, &l->w->pre_proj.w, PD_ROLE_PRE_PROJ, 0));
    return load_one(l, &l->w->post_proj.w, PD_ROLE_POST_PROJ, 0);
}

/* Column after column, so that sums go along rows. */
static peridot_status put_dense(float **out, const struct pd_tensor *t)
{
    uint32_t n_rows = (uint32_t)t->shape[0], n_cols = (uint32_t)t->shape[1];
    uint64_t size = (uint64_t)n_rows * n_cols * sizeof **out;
    float *row = malloc(n_cols * sizeof *row);
    *out = malloc(size);
    for (uint32_t r = 0; row && *out && r < n_rows; r++) {
        pd_dequantize(t->dtype, row, t->data + r * (t->size / n_rows), n_cols);
        for (uint32_t i = 0; i < n_cols; i++) (*out)[(size_t)i * n_rows + r] = row[i];
    }
    bool good = row && *out;
    free(row);
    return good ? PERIDOT_OK : pd_fail_alloc(size, t->name);
}

/* A text is multiplied by them once, so that the host may do it. */
static peridot_status load_dense(struct loader *l)
{
    static const enum pd_role roles[] = {PD_ROLE_DENSE_2, PD_ROLE_DENSE_3, PD_ROLE_EMBEDDING_PROJ};
    uint32_t n = 0;
    for (size_t i = 0; i < PD_COUNT(roles); i++) {
        const struct pd_tensor *t;
        struct pd_plan plan;
        if (!pd_plan_get(&plan, l->config, roles[i], 0)) continue;
        PD_TRY(pd_source_get(&t, &l->source, &plan));
        if (l->measuring) {
            l->w->type_counts[t->dtype]++;
            l->w->n_params += t->shape[0] * t->shape[1];
        } else PD_TRY(put_dense(&l->w->dense[n++], t));
    }
    return PERIDOT_OK;
}

/* Whether the walk goes through a part: all of them are measured, those that are here loaded. */
static bool begin_part(struct loader *l, uint32_t part)
{
    const struct pd_weights *w = l->w;
    bool ties = w->has_output && l->config->tied && l->config->head == PERIDOT_HEAD_LANGUAGE;
    bool is_here = part == PART_EMBEDDING   ? w->first_layer == 0 || ties || l->config->per_layer_dim
        : part == PART_OUTPUT               ? w->has_output
        : part == PART_PER_LAYER_EMBEDDING  ? true
                                            : part - PART_LAYERS >= w->first_layer && part - PART_LAYERS < w->end_layer;
    l->part = &l->parts[part];
    l->elsewhere = !is_here;
    return l->measuring || is_here;
}

static peridot_status walk(struct loader *l)
{
    struct pd_plan norm;
    if (begin_part(l, PART_EMBEDDING)) PD_TRY(load_embedding(l));
    if (begin_part(l, PART_OUTPUT)) {
        PD_TRY(load_output(l));
        pd_plan_get(&norm, l->config, PD_ROLE_OUTPUT_NORM, 0);
        PD_TRY(load_norm(l, &l->w->output_norm, &norm));
    }
    if (begin_part(l, PART_PER_LAYER_EMBEDDING)) PD_TRY(load_per_layer(l));
    PD_TRY(load_dense(l));
    PD_TRY(load_projections(l));
    for (uint32_t i = 0; i < l->config->n_layers; i++)
        if (begin_part(l, PART_LAYERS + i)) PD_TRY(load_layer(l, i));
    return PERIDOT_OK;
}

static peridot_status make_lookup(struct loader *l, struct pd_table *t, const struct pd_matrix *m)
{
    *t = (struct pd_table){.matrix = m, .rows_per_slice = m->slices[0].n_rows};
    PD_TRY(pd_heap_alloc(&t->addresses, l->w->heap, m->n_slices * sizeof(uint64_t), "embedding slices"));
    for (uint32_t i = 0; i < m->n_slices; i++)
        PD_TRY(pd_span_write(l->gpu, t->addresses, i * sizeof(uint64_t), &m->slices[i].address, sizeof(uint64_t)));
    return PERIDOT_OK;
}

static uint64_t matrix_size(const struct pd_matrix *m)
{
    uint64_t size = 0;
    for (uint32_t i = 0; i < m->n_slices; i++) size += (uint64_t)m->slices[i].n_rows * m->slices[i].row_size;
    return size;
}

/* ---- placing ---- */

static void move_part(struct loader *l, uint32_t i)
{
    struct part *part = &l->parts[i];
    uint32_t n = l->config->n_layers, of_layer = i < PART_LAYERS + n ? i + n : i - n;   /* its experts, or the rest */
    part->host_resident = true;
    l->w->size -= part->size;
    l->w->host_resident_size += part->size;
    l->w->n_host_resident_layers += i >= PART_LAYERS && !l->parts[of_layer].host_resident;
}

static void move_away(struct loader *l, uint32_t i)
{
    if (l->parts[i].host_resident || !l->parts[i].size || l->w->size <= l->params->gpu_memory) return;
    move_part(l, i);
}

/* First goes an embedding that is only looked up, a row a token; then experts, of which a token reads a few, and
 * layers, the last ones first; then what makes logits. */
static peridot_status place(struct loader *l)
{
    struct pd_weights *w = l->w;
    uint64_t available = pd_memory_available();
    if (pd_gpu_info(l->gpu)->unified_memory) return PERIDOT_OK;
    if (l->parts[PART_PER_LAYER_EMBEDDING].size) move_part(l, PART_PER_LAYER_EMBEDDING);   /* a row is read at a time */
    if (!l->params->gpu_memory) return PERIDOT_OK;
    if (l->parts[PART_OUTPUT].size || !w->n_outputs || !w->has_output) move_away(l, PART_EMBEDDING);
    for (uint32_t i = l->config->n_layers; i-- > 0;) move_away(l, part_of(l, i, PD_MATRIX_EXPERTS_DOWN));
    for (uint32_t i = l->config->n_layers; i-- > 0;) move_away(l, PART_LAYERS + i);
    move_away(l, PART_OUTPUT);
    move_away(l, PART_EMBEDDING);
    if (w->size > l->params->gpu_memory)
        return pd_fail(PERIDOT_ERROR_MEMORY, "%.3f MB of GPU memory is too little: the norms alone take %.3f MB",
                       (double)l->params->gpu_memory / 1e6, (double)w->size / 1e6);
    if (w->host_resident_size > available)
        return pd_fail(PERIDOT_ERROR_MEMORY,
                       "with %.1f MB of GPU memory this model needs %.1f MB of host memory, of which %.1f MB is free",
                       (double)l->params->gpu_memory / 1e6, (double)w->host_resident_size / 1e6,
                       (double)available / 1e6);
    return PERIDOT_OK;
}

static peridot_status check_budget(const struct loader *l)
{
    char sentence[512];
    const char *what = l->w->host_resident_size ? "this part of the model" : "this model";
    peridot_status status = pd_gpu_check_budget(l->gpu, l->w->size, what);
    if (status == PERIDOT_OK || pd_gpu_info(l->gpu)->unified_memory) return status;
    snprintf(sentence, sizeof sentence, "%s", pd_error());
    return pd_fail(status, "%s (--gpu-memory SIZE leaves layers in the host's memory)", sentence);
}

/* A token reads n_used of the n_experts matrices. */
static void add_read(struct loader *l, const struct pd_linear *linear, uint32_t part, uint32_t n_used)
{
    uint64_t size = matrix_size(&linear->w);
    if (linear->n_experts) size = size / linear->n_experts * n_used;
    l->w->decode_read_size += size;
    if (l->parts[part].host_resident) l->w->decode_host_resident_size += size;
}

static void count_reads(struct loader *l)
{
    struct pd_weights *w = l->w;
    if (w->n_outputs && w->has_output)
        add_read(l, &w->output, w->output.w.slices != w->embedding.slices ? PART_OUTPUT : PART_EMBEDDING, 0);
    w->decode_read_size += matrix_size(&w->per_layer_model_proj.w) + matrix_size(&w->pre_proj.w)
        + matrix_size(&w->post_proj.w);
    for (uint32_t i = 0; i < l->config->n_layers; i++)
        for (int m = 0; m < PD_N_LAYER_MATRICES; m++)
            add_read(l, &w->layers[i].linears[m], part_of(l, i, (enum pd_layer_matrix)m),
                     l->config->layers[i].n_experts_used);
}

static peridot_status load(struct loader *l)
{
    struct pd_weights *w = l->w;
    l->parts = calloc(PART_LAYERS + 2 * (size_t)l->config->n_layers, sizeof *l->parts);
    w->layers = calloc(l->config->n_layers, sizeof *w->layers);
    if (!w->layers || !l->parts) return pd_fail_alloc(l->config->n_layers * sizeof *w->layers, "layers");
    l->measuring = true;
    PD_TRY(walk(l));
    PD_TRY(pd_source_check_unused(&w->n_ignored, &l->source));
    w->size = l->device_size;
    PD_TRY(place(l));
    PD_TRY(check_budget(l));
    /* Blocks of a quarter GiB waste little; a tensor that is larger gets a block of its own. */
    PD_TRY(pd_heap_create(&w->heap, l->gpu, PD_HEAP_DEVICE, pd_min(w->size + (64 << 10), 256u << 20)));
    PD_TRY(pd_heap_create(&w->host_resident_heap, l->gpu, PD_HEAP_HOST_RESIDENT,
                          pd_min(w->host_resident_size + (64 << 10), 256u << 20)));
    l->measuring = false;
    PD_TRY(walk(l));
    if (!w->first_layer || l->config->per_layer_dim) PD_TRY(make_lookup(l, &w->lookup, &w->embedding));
    if (w->per_layer_embedding.n_slices)
        PD_TRY(make_lookup(l, &w->per_layer_lookup, &w->per_layer_embedding));
    if (!w->output.w.n_slices && w->n_outputs) w->output.w = w->embedding;
    w->output.softcap = l->config->final_softcap;
    count_reads(l);
    return PERIDOT_OK;
}

peridot_status pd_weights_load(struct pd_weights *out, struct pd_gpu *gpu, const struct pd_config *config,
                               const struct pd_checkpoint *checkpoint, const struct pd_load_params *params)
{
    uint32_t end = params->n_layers ? params->first_layer + params->n_layers : config->n_layers;
    *out = (struct pd_weights){
        .first_layer = params->first_layer, .end_layer = end, .has_output = end == config->n_layers};
    struct loader l = {.w = out, .gpu = gpu, .config = config, .params = params};
    peridot_status status = pd_source_open(&l.source, checkpoint, config);
    if (status == PERIDOT_OK) status = pd_checkpoint_check(load(&l), checkpoint);
    pd_source_close(&l.source);
    free(l.parts);
    if (status != PERIDOT_OK) pd_weights_free(out, config);
    return status;
}

void pd_weights_free(struct pd_weights *w, const struct pd_config *config)
{
    for (uint32_t i = 0; w->layers && i < config->n_layers; i++)
        for (int m = 0; m < PD_N_LAYER_MATRICES; m++) free(w->layers[i].linears[m].w.slices);
    if (w->output.w.slices != w->embedding.slices) free(w->output.w.slices);
    free(w->embedding.slices);
    free(w->per_layer_embedding.slices);
    free(w->per_layer_model_proj.w.slices);
    free(w->pre_proj.w.slices);
    free(w->post_proj.w.slices);
    for (int i = 0; i < PD_MAX_DENSE; i++) free(w->dense[i]);
    free(w->output_bias);
    free(w->layers);
    pd_heap_free(w->heap);
    pd_heap_free(w->host_resident_heap);
    *w = (struct pd_weights){0};
}
