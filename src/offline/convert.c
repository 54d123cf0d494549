/* Any checkpoint to GGUF. Tensors stream through two buffers, so that memory does not depend on the model: pieces
 * are decoded and encoded by all processors, and the pages of the source that were read are given back. */
#include "arch/arch.h"
#include "base/base.h"
#include "format/format.h"
#include "offline/offline_.h"
#include "offline/offline.h"
#include "text/text.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    PIECE = 4 << 20,   /* weights that are in memory at a time */
    SHARE = 64 << 10,  /* of them, what one call converts; whole blocks of all types */
};

struct job {
    struct pd_gguf_writer *writer;
    struct pd_merge merge;
    const peridot_convert_params *params;
    struct pd_convert_target target;
    const char *path;
    uint64_t done, total;
    float *weights;      /* [PIECE] */
    uint8_t *blocks;     /* [PIECE] of at most 4 bytes each */
};

/* A piece of one tensor: n weights from `first` on. */
struct piece {
    const struct job *job;
    const struct pd_convert_item *item;
    const struct pd_merge_matrix *merged;
    uint64_t first, n, share;
    bool copied;         /* the weights are checked, and stay as they are */
    atomic_bool bad;     /* some weight is not finite, or has no place in the new type */
};

/* ---- a share of a piece ---- */

/* Whether rows, elements or columns change places. */
static bool is_reordered(const struct pd_convert_item *item)
{
    return item->interleaves || pd_value_order_differs(&item->value_rows)
        || pd_value_order_differs(&item->value_columns);
}

/* Columns of a row, or 1 of a vector, whose elements may change places. */
static uint64_t row_length(const struct pd_convert_item *item) { return item->n_dims > 1 ? item->shape[1] : 1; }

static void convert_decode(float *dst, const struct pd_convert_item *item, uint64_t first, uint64_t n)
{
    const struct pd_tensor *t = item->source;
    if (!is_reordered(item)) {
        pd_tensor_dequantize(dst, t, first, n);
        return;
    }
    uint64_t n_cols = row_length(item), width = n_cols;
    if (pd_value_order_differs(&item->value_columns)) width = item->value_columns.width;
    for (uint64_t done = 0; done < n; done += width) {
        uint32_t row = (uint32_t)((first + done) / n_cols), column = (uint32_t)((first + done) % n_cols);
        if (item->interleaves) row = pd_head_order_split_row(&item->order, row);
        row = pd_value_order_row(&item->value_rows, row);
        if (width < n_cols) column = pd_value_order_row(&item->value_columns, column);
        pd_tensor_dequantize(dst + done, t, row * n_cols + column, width);
    }
}

/* Scales of blocks are f16, too, but so much smaller than weights that only infinities are at stake. */
static bool convert_fits(const float *weights, uint64_t n, enum pd_dtype dtype)
{
    float most = dtype == PD_F16 ? 65504.0f : dtype == PD_BF16 ? 0x1.fep127f : FLT_MAX, largest = 0;
    bool nan = false;
    for (uint64_t i = 0; i < n; i++) {
        float size = fabsf(weights[i]);
        nan = nan || size != size;
        largest = size > largest ? size : largest;
    }
    return !nan && largest <= most;
}

/* n weights of an item from `first` on, row by row where its columns are not equally important. */
static void quantize(uint8_t *blocks, const float *weights, const struct pd_convert_item *item, uint64_t first,
                     uint64_t n)
{
    uint64_t n_cols = item->shape[item->n_dims - 1], n_rows = item->n_dims > 1 ? item->shape[item->n_dims - 2] : 1;
    if (!item->importance.means) {
        pd_quantize(item->dtype, blocks, weights, n);
        return;
    }
    for (uint64_t at = 0, size; at < n; at += size) {
        uint64_t matrix = (first + at) / n_cols / n_rows, column = (first + at) % n_cols;
        const float *means = item->importance.means + matrix * n_cols + column;
        size = pd_min(n_cols - column, n - at);
        pd_quantize_by(item->dtype, blocks + pd_row_size(item->dtype, at), weights + at,
                       item->importance.seen[matrix] ? means : NULL, size);
    }
}

static void convert_share(void *user, size_t i)
{
    struct piece *p = user;
    uint64_t at = i * p->share, n = pd_min(p->share, p->n - at);
    float *weights = p->job->weights + at;
    convert_decode(weights, p->item, p->first + at, n);
    for (uint64_t k = 0; p->item->plus_one && k < n; k++) weights[k] += 1;
    for (uint64_t k = 0; p->item->exponential && k < n; k++) weights[k] = (float)-exp((double)weights[k]);
    pd_merge_add(weights, p->merged, p->first + at, n);
    uint8_t *blocks = p->job->blocks + pd_row_size(p->item->dtype, at);
    if (!convert_fits(weights, n, p->item->dtype)) atomic_store(&p->bad, true);
    else if (p->copied) pd_tensor_copy(blocks, p->item->source, p->first + at, n);
    else quantize(blocks, weights, p->item, p->first + at, n);
}

/* ---- tensors ---- */

static peridot_status write_bytes(struct job *j, const void *data, uint64_t size)
{
    PD_TRY(pd_gguf_writer_write(j->writer, data, (size_t)size));
    j->done += size;
    if (!j->params->progress || j->params->progress(j->params->user, j->done, j->total)) return PERIDOT_OK;
    return pd_fail(PERIDOT_CANCELLED, "%s: cancelled; nothing was written", j->path);
}

static peridot_status fail_bad(const struct pd_convert_item *item)
{
    const struct pd_tensor *t = item->source;
    uint64_t index;
    if (pd_tensor_find_nonfinite(t, &index))
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: weight %llu of tensor " PD_NAME " is not a finite number", t->file,
                       (unsigned long long)index, t->name);
    return pd_fail(PERIDOT_ERROR_FORMAT, "%s: tensor " PD_NAME " has weights that %s cannot hold", t->file, t->name,
                   pd_dtypes[item->dtype].name);
}

/* Shares are whole rows where rows change places. */
static uint64_t share_of(const struct pd_convert_item *item)
{
    uint64_t n_cols = row_length(item);
    return is_reordered(item) ? pd_max(SHARE / n_cols, 1) * n_cols : SHARE;
}

static peridot_status write_weights(struct job *j, const struct pd_convert_item *item,
                                    const struct pd_merge_matrix *merged)
{
    const struct pd_tensor *t = item->source;
    bool as_it_is = !item->plus_one && !item->exponential && !is_reordered(item);
    bool copied = t->dtype == item->dtype && as_it_is && !merged->n_ranks;
    uint64_t n = 1;
    for (uint32_t i = 0; i < item->n_dims; i++) n *= item->shape[i];
    uint64_t share = share_of(item), most = PIECE / share * share;
    for (uint64_t first = 0; first < n; first += most) {
        struct piece p = {.job = j, .item = item, .merged = merged, .first = first, .n = pd_min(most, n - first),
            .share = share, .copied = copied};
        atomic_init(&p.bad, false);
        pd_parallel((size_t)pd_div_up(p.n, share), convert_share, &p);
        if (atomic_load(&p.bad)) return fail_bad(item);
        PD_TRY(write_bytes(j, j->blocks, pd_row_size(item->dtype, p.n)));
        if (!is_reordered(item) && !t->experts && !t->stride[0])
            pd_map_forget(t->data + pd_row_size(t->dtype, first), pd_row_size(t->dtype, p.n));
    }
    pd_tensor_forget(t);
    return PERIDOT_OK;
}

static peridot_status write_item(struct job *j, const struct pd_convert_item *item)
{
    struct pd_merge_matrix merged;
    if (!item->source) return write_bytes(j, item->made, item->shape[0] * sizeof *item->made);
    peridot_status status = pd_merge_find(&merged, &j->merge, item->name);
    if (status == PERIDOT_OK) status = write_weights(j, item, &merged);
    pd_merge_matrix_free(&merged);
    return status;
}

/* ---- metadata ---- */

/* What is said of this file anew, or was about another file only. */
static bool is_own_key(const char *key)
{
    static const char *const keys[] = {"general.file_type", "general.quantization_version", "general.alignment",
        "split.no", "split.count", "split.tensors.count"};
    for (size_t i = 0; i < PD_COUNT(keys); i++)
        if (!strcmp(key, keys[i])) return true;
    return false;
}

static peridot_status copy_metadata(struct pd_gguf_writer *w, const struct pd_checkpoint *c)
{
    for (size_t i = 0; i < pd_checkpoint_n_meta(c); i++)
        if (!is_own_key(pd_checkpoint_meta(c, i)->key)) pd_gguf_writer_add_meta(w, pd_checkpoint_meta(c, i));
    return PERIDOT_OK;
}

/* *found becomes true where the directory has such a file. */
static peridot_status find_file(bool *found, const struct pd_checkpoint *c, const char *name)
{
    char *path = pd_path_join(pd_checkpoint_path(c), name);
    if (!path) return pd_fail_alloc(strlen(name), "file name");
    if (pd_is_file(path)) *found = true;
    free(path);
    return PERIDOT_OK;
}

/* A directory without a tokenizer gives a file without one, which evaluates ids; a tokenizer that cannot be carried
 * over is a failure. */
static peridot_status add_tokenizer(struct pd_gguf_writer *w, const struct pd_checkpoint *c, uint32_t n_tokens,
                                    bool *found)
{
    struct pd_tokenizer *t;
    PD_TRY(find_file(found, c, "tokenizer.model"));
    PD_TRY(find_file(found, c, "tokenizer.json"));
    if (!*found) return PERIDOT_OK;
    PD_TRY(pd_tokenizer_from_checkpoint(&t, c));
    peridot_status status = pd_tokenizer_add_gguf(w, t, n_tokens);
    pd_tokenizer_close(t);
    return status == PERIDOT_OK ? status : pd_fail_prefix(status, pd_checkpoint_path(c));
}

static peridot_status add_metadata(struct job *j, const struct pd_checkpoint *c, const struct pd_config *config,
                                   const struct pd_convert_plan *p, bool *has_tokenizer)
{
    struct pd_gguf_writer *w = j->writer;
    const struct pd_convert_target *t = &j->target;
    uint32_t file_type = t->mix ? t->mix->file_type : pd_dtypes[t->dtype].file_type;
    if (pd_checkpoint_kind(c) == PD_CHECKPOINT_GGUF) {
        *has_tokenizer = pd_checkpoint_find_meta(c, "tokenizer.ggml.tokens") != NULL;
        PD_TRY(copy_metadata(w, c));
        pd_gguf_add_type(w, file_type);
        return PERIDOT_OK;
    }
    peridot_status status = pd_gguf_add_config(w, config, p->vocab_size);
    if (status != PERIDOT_OK) return pd_fail_prefix(status, pd_checkpoint_path(c));
    pd_gguf_add_type(w, file_type);
    struct pd_recommended recommended;
    PD_TRY(pd_recommended_read(&recommended, c));
    pd_recommended_write(w, &recommended);
    return add_tokenizer(w, c, p->vocab_size, has_tokenizer);
}

/* ---- all ---- */

static peridot_status write_items(struct job *j, const struct pd_convert_plan *p)
{
    for (uint32_t i = 0; i < p->n; i++) {
        const struct pd_convert_item *item = &p->items[i];
        pd_gguf_writer_add_tensor(j->writer, item->name, item->dtype, item->n_dims, item->shape);
    }
    j->total = pd_gguf_writer_data_size(j->writer);
    PD_TRY(pd_gguf_writer_begin(j->writer));
    for (uint32_t i = 0; i < p->n; i++) PD_TRY(write_item(j, &p->items[i]));
    return PERIDOT_OK;
}

static peridot_status write_file(struct job *j, const struct pd_checkpoint *c, const struct pd_config *config,
                                 const struct pd_convert_plan *p, bool *has_tokenizer)
{
    PD_TRY(pd_gguf_writer_open(&j->writer, j->path));
    j->weights = malloc(PIECE * sizeof *j->weights);
    j->blocks = malloc(PIECE * sizeof(float));
    peridot_status status = j->weights && j->blocks ? add_metadata(j, c, config, p, has_tokenizer)
                                                    : pd_fail_alloc(PIECE * 2 * sizeof(float),
                                                                    "weights being converted");
    if (status == PERIDOT_OK) status = write_items(j, p);
    status = pd_checkpoint_check(status, c);
    if (status == PERIDOT_OK) status = pd_gguf_writer_commit(j->writer);
    else pd_gguf_writer_abort(j->writer);
    free(j->weights);
    free(j->blocks);
    return status;
}

/* Of the matrices that the file tells of. */
static peridot_status find_importance(struct pd_convert_plan *p, struct pd_importance *m, const char *path)
{
    for (uint32_t i = 0; m && i < p->n; i++) {
        struct pd_convert_item *item = &p->items[i];
        uint64_t n_cols = item->shape[item->n_dims - 1], n_matrices = item->n_dims > 2 ? item->shape[0] : 1;
        if (!item->source || item->n_dims < 2) continue;
        PD_TRY(pd_importance_find(&item->importance, m, item->name, n_matrices, n_cols));
    }
    if (!m || pd_importance_n_found(m)) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_FORMAT, "%s: is of another model: it names none of the matrices", path);
}

/* Few bits need to be spent where they count. */
static peridot_status check_importance(const struct pd_convert_plan *p, const struct job *j)
{
    for (uint32_t i = 0; i < p->n; i++) {
        const struct pd_convert_item *item = &p->items[i];
        if (item->importance.means || !pd_mix_needs_importance(j->target.mix, item)) continue;
        if (!j->params->imatrix)
            return pd_fail(PERIDOT_ERROR_ARGUMENT, "type %s needs an importance matrix, as peridot imatrix makes one: "
                           PD_NAME " becomes %s", j->params->type, item->name, pd_dtypes[item->dtype].name);
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: does not tell of " PD_NAME ", which is not to become %s without",
                       j->params->imatrix, item->name, pd_dtypes[item->dtype].name);
    }
    return PERIDOT_OK;
}

static peridot_status convert(struct job *j, const struct pd_checkpoint *c, struct pd_config *config,
                              peridot_convert_stats *stats)
{
    struct pd_importance *importance = NULL;
    struct pd_convert_plan p;
    if (pd_checkpoint_n_tensors(c) == 0)
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s: has no tensors", pd_checkpoint_path(c));
    bool merges = j->params->n_adapters != 0;
    if (pd_checkpoint_kind(c) == PD_CHECKPOINT_HF || merges) PD_TRY(pd_config_read(config, c));
    if (pd_checkpoint_kind(c) == PD_CHECKPOINT_HF) config->n_nextn = pd_config_has_block(config, c);
    if (merges) PD_TRY(pd_merge_open(&j->merge, config, j->params->adapters, j->params->n_adapters));
    peridot_status status = pd_convert_plan_create(&p, c, config, &j->target);
    bool has_tokenizer = false;
    if (status == PERIDOT_OK && j->params->imatrix) status = pd_importance_open(&importance, j->params->imatrix);
    if (status == PERIDOT_OK) status = find_importance(&p, importance, j->params->imatrix);
    if (status == PERIDOT_OK) status = check_importance(&p, j);
    if (status == PERIDOT_OK) status = write_file(j, c, config, &p, &has_tokenizer);
    uint32_t n_weighted = importance ? pd_importance_n_found(importance) : 0;
    uint32_t n_unseen = importance ? pd_importance_n_unseen(importance) : 0;
    *stats = (peridot_convert_stats){.n_tensors = p.n, .n_weighted = n_weighted, .n_unseen = n_unseen,
                                     .n_replaced = p.n_replaced, .n_ignored = p.n_ignored,
                                     .has_tokenizer = has_tokenizer, .size = j->total};
    pd_importance_close(importance);
    pd_convert_plan_free(&p);
    return status;
}

static const struct pd_mix *find_mix(const char *name)
{
    const struct pd_mix *mix = NULL;
    for (size_t i = 0; (mix = pd_mix_get(i)) != NULL && strcmp(mix->name, name) != 0;) i++;
    return mix;
}

/* Mixes come first: of some names that are a type's, too, people know the mix. */
static bool find_target(struct pd_convert_target *out, const char *name)
{
    const char *known = pd_convert_type_find(name);
    if (!known) return false;
    out->mix = find_mix(known);
    if (out->mix) out->dtype = out->mix->dtype;
    return out->mix || pd_dtype_by_name(&out->dtype, known);
}

static peridot_status check_type(struct pd_convert_target *out, const char *name)
{
    if (find_target(out, name)) return PERIDOT_OK;
    char list[400] = "";
    size_t size = 0;
    for (size_t i = 0; pd_convert_type(i); i++)
        size += (size_t)snprintf(list + size, sizeof list - size, "%s%s", size ? ", " : "", pd_convert_type(i));
    return pd_fail(PERIDOT_ERROR_ARGUMENT, "cannot convert to type %s; the types are %s", name ? name : "(none)", list);
}

peridot_status pd_convert(const char *dst_path, const char *src_path, const peridot_convert_params *params,
                          peridot_convert_stats *stats)
{
    struct pd_checkpoint *c;
    struct pd_config config = {0};
    struct job j = {.params = params, .path = dst_path, .target = {.has_imatrix = params->imatrix != NULL}};
    PD_TRY(check_type(&j.target, params->type));
    PD_TRY(pd_writer_check(dst_path, src_path));
    PD_TRY(pd_checkpoint_open(&c, src_path, true));
    peridot_status status = pd_checkpoint_check_output(c, dst_path);
    if (status == PERIDOT_OK) status = convert(&j, c, &config, stats);
    pd_merge_close(&j.merge);
    pd_config_free(&config);
    pd_checkpoint_close(c);
    return status;
}

/* Types that are no mix's name, and mixes. */
const char *pd_convert_type(size_t i)
{
    for (int t = 0; t < PD_N_DTYPES; t++)
        if (pd_has_quantizer((enum pd_dtype)t) && !find_mix(pd_dtypes[t].name) && i-- == 0) return pd_dtypes[t].name;
    const struct pd_mix *mix = pd_mix_get(i);
    return mix ? mix->name : NULL;
}

const char *pd_convert_type_find(const char *name)
{
    char lower[16];
    enum pd_dtype dtype;
    size_t n = name ? strlen(name) : sizeof lower;
    if (n >= sizeof lower) return NULL;
    for (size_t i = 0; i <= n; i++) lower[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] | 0x20) : name[i];
    const char *known;
    for (size_t i = 0; (known = pd_convert_type(i)) != NULL; i++)
        if (!strcmp(known, lower)) return known;
    return pd_dtype_by_name(&dtype, lower) && pd_has_quantizer(dtype) ? pd_dtypes[dtype].name : NULL;
}
