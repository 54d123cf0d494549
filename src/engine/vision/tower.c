/* A tower's memory, what the host writes for each picture, and how its pass runs. */
#include "engine/vision/vision.h"

#include "base/base.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct pd_tower {
    struct pd_gpu *gpu;
    const struct pd_variants *variants;
    const struct pd_checkpoint *checkpoint;
    struct pd_tower_config config;
    bool keeps, loaded;
    /* Of the picture that is at work: */
    uint32_t n_columns, n_patches, stage, next_piece;
    uint64_t most_work, most_piece_work;   /* that a piece of the stage has, and may have */
    double longest;                /* of them, in seconds */
    struct pd_tower_weights w;
    /* All of these are for the most patches that a picture may have. The walk over them runs twice, too: to add up
     * their size, and to allocate. */
    bool measuring;
    uint64_t size;
    struct pd_heap *heap;
    struct pd_commands *commands;
    struct pd_tower_scratch s;
    struct pd_span patch_span, position_span, out_span, places, angles;
    uint64_t packed, split_sums;   /* see pd_recorder */
    uint64_t piece_work;           /* of layers to come; 0: none was measured */
};

/* ---- creating ---- */

peridot_status pd_tower_create(struct pd_tower **out, struct pd_gpu *gpu, const struct pd_variants *variants,
                               const struct pd_checkpoint *checkpoint, const struct pd_tower_config *config, bool keeps)
{
    struct pd_tower *t = *out = calloc(1, sizeof *t);
    if (!t) return pd_fail_alloc(sizeof *t, "the vision tower");
    *t = (struct pd_tower){.gpu = gpu, .variants = variants, .checkpoint = checkpoint, .config = *config,
        .keeps = keeps};
    return PERIDOT_OK;
}

static void unload(struct pd_tower *t)
{
    pd_commands_free(t->commands);
    pd_tower_weights_free(&t->w, &t->config);
    pd_heap_free(t->heap);
    t->commands = NULL;
    t->heap = NULL;
    t->loaded = false;
}

void pd_tower_free(struct pd_tower *t)
{
    if (!t) return;
    unload(t);
    free(t);
}

const struct pd_tower_config *pd_tower_config_of(const struct pd_tower *t) { return &t->config; }

/* ---- memory ---- */

static peridot_status tower_alloc(struct pd_span *span, struct pd_tower *t, uint64_t size)
{
    t->size += pd_align(pd_max(size, 4), 256);
    *span = (struct pd_span){0};
    return t->measuring ? PERIDOT_OK : pd_heap_alloc(span, t->heap, pd_max(size, 4), "a picture's activations");
}

/* span: where the host writes or reads; else NULL */
static peridot_status alloc_rows(struct pd_rows *out, struct pd_span *span, struct pd_tower *t, uint32_t n,
                                 uint64_t width)
{
    struct pd_span own;
    out->stride = (uint32_t)pd_align(width, PD_PAD);
    PD_TRY(tower_alloc(&own, t, (uint64_t)n * out->stride * sizeof(float)));
    out->address = own.address;
    if (span) *span = own;
    return t->measuring ? PERIDOT_OK : pd_span_zero(t->gpu, own);   /* kernels rely on zeros up to the stride */
}

static peridot_status write_pages(struct pd_tower *t, struct pd_span pages, uint32_t n)
{
    uint32_t *numbers = malloc(n * sizeof *numbers);
    if (!numbers) return pd_fail_alloc(n * sizeof *numbers, "pages");
    for (uint32_t i = 0; i < n; i++) numbers[i] = i;
    peridot_status status = pd_span_write(t->gpu, pages, 0, numbers, n * sizeof *numbers);
    free(numbers);
    return status;
}

static peridot_status alloc_cache(struct pd_tower *t, uint32_t n)
{
    const struct pd_tower_config *c = &t->config;
    struct pd_span pages, k, v;
    uint32_t n_pages = (uint32_t)pd_div_up(n, PD_PAGE);
    t->s.kv.type = pd_tower_kv_type(t->variants);
    uint64_t size = (uint64_t)n_pages * PD_PAGE * c->n_heads * pd_kv_head_size(t->s.kv.type, PD_KEYS, c->head_dim);
    PD_TRY(tower_alloc(&pages, t, n_pages * sizeof(uint32_t)));
    if (!t->measuring) PD_TRY(write_pages(t, pages, n_pages));
    PD_TRY(tower_alloc(&k, t, size));
    PD_TRY(tower_alloc(&v, t, size));
    t->s.kv.k = k.address;
    t->s.kv.v = v.address;
    t->s.kv.pages = pages.address;
    return PERIDOT_OK;
}

static peridot_status alloc_layers(struct pd_tower *t, uint32_t n)
{
    const struct pd_tower_config *c = &t->config;
    uint64_t q_dim = (uint64_t)c->n_heads * c->head_dim;
    uint32_t n_block = (uint32_t)pd_min(n, PD_TOWER_BLOCK);
    if (c->clamps) PD_TRY(alloc_rows(&t->s.clamped, NULL, t, n, c->d_model));
    PD_TRY(alloc_rows(&t->s.qkv, NULL, t, n, 3 * q_dim));
    PD_TRY(alloc_rows(&t->s.att, NULL, t, n, q_dim));
    PD_TRY(alloc_rows(&t->s.gate, NULL, t, n_block, c->ffn_dim));
    PD_TRY(alloc_rows(&t->s.up, NULL, t, n_block, c->ffn_dim));
    PD_TRY(tower_alloc(&t->places, t, n * sizeof(struct pd_place)));
    PD_TRY(tower_alloc(&t->angles, t, (uint64_t)n * c->head_dim * sizeof(float)));
    t->s.places = t->places.address;
    t->s.angles = t->angles.address;
    return alloc_cache(t, n);
}

static peridot_status alloc_scratch(struct pd_tower *t, uint32_t n)
{
    const struct pd_tower_config *c = &t->config;
    struct pd_span span;
    uint64_t split_sums = pd_split_sums_size(t->variants, pd_gpu_info(t->gpu));
    uint64_t q_dim = (uint64_t)c->n_heads * c->head_dim;
    uint32_t widest = (uint32_t)pd_max(pd_max(c->d_model, c->ffn_dim), pd_max(q_dim, pd_tower_patch_dim(c)));
    if (split_sums) PD_TRY(tower_alloc(&span, t, split_sums));
    t->split_sums = split_sums ? span.address : 0;
    if (pd_variant_pack(t->variants->of[PD_VARIED_MATMUL], PD_F32) == PD_N_KERNELS) return PERIDOT_OK;
    uint32_t n_merged = c->kind == PD_TOWER_QWEN ? c->pool * c->pool : 1;
    uint64_t n_words = pd_max((uint64_t)n * pd_packed_most(widest),
                              (uint64_t)n / n_merged * pd_packed_most(n_merged * c->d_model));
    PD_TRY(tower_alloc(&span, t, n_words * sizeof(uint32_t)));
    t->packed = span.address;
    return PERIDOT_OK;
}

static peridot_status alloc_all(struct pd_tower *t)
{
    const struct pd_tower_config *c = &t->config;
    uint32_t n = pd_tower_n_patches(c);
    PD_TRY(alloc_rows(&t->s.patches, &t->patch_span, t, n, pd_tower_patch_dim(c)));
    PD_TRY(alloc_rows(&t->s.x, NULL, t, n, c->d_model));
    PD_TRY(alloc_rows(&t->s.positions, &t->position_span, t, n, c->d_model));
    PD_TRY(alloc_rows(&t->s.normed, NULL, t, n, pd_max(c->d_model, c->n_layers ? 0 : pd_tower_patch_dim(c))));
    PD_TRY(alloc_rows(&t->s.branch, NULL, t, n, c->d_model));
    PD_TRY(alloc_rows(&t->s.out, &t->out_span, t, c->most_rows, c->d_out));
    if (c->n_layers) PD_TRY(alloc_layers(t, n));
    return alloc_scratch(t, n);
}

peridot_status pd_tower_ask(const struct pd_tower_watch *watch)
{
    if (watch->stop && *watch->stop) return pd_fail(PERIDOT_CANCELLED, "stopped within a picture");
    if (watch->go_on && !watch->go_on(watch->user))
        return pd_fail(PERIDOT_CANCELLED, "stopped by the caller within a picture");
    return PERIDOT_OK;
}

static bool loads_on(void *user, uint64_t done, uint64_t total)
{
    (void)done, (void)total;
    return pd_tower_ask(user) == PERIDOT_OK;
}

static peridot_status tower_load(struct pd_tower *t, const struct pd_tower_watch *watch)
{
    const struct pd_load_params params = {.progress = loads_on, .user = (void *)watch};
    if (t->loaded) return PERIDOT_OK;
    peridot_status status = pd_tower_weights_load(&t->w, t->gpu, t->checkpoint, &t->config, &params);
    if (status == PERIDOT_CANCELLED) return pd_fail(status, "stopped while the vision tower was loaded");
    PD_TRY(status);
    PD_TRY(pd_commands_create(&t->commands, t->gpu));
    t->measuring = true;
    t->size = 0;
    PD_TRY(alloc_all(t));
    PD_TRY(pd_gpu_check_budget(t->gpu, t->size, "a picture in the vision tower"));
    t->measuring = false;
    PD_TRY(pd_heap_create(&t->heap, t->gpu, PD_HEAP_DEVICE, 64u << 20));
    PD_TRY(alloc_all(t));
    t->loaded = true;
    return PERIDOT_OK;
}

/* ---- what is written for each picture ---- */

static peridot_status write_rows(struct pd_tower *t, struct pd_span span, struct pd_rows rows, const float *from,
                                 uint32_t n, uint32_t width)
{
    uint64_t size = (uint64_t)rows.stride * sizeof(float);
    if (rows.stride == width) return pd_span_write(t->gpu, span, 0, from, n * size);
    float *padded = calloc(n, size);
    if (!padded) return pd_fail_alloc(n * size, "a picture");
    for (uint32_t i = 0; i < n; i++)
        memcpy(padded + (size_t)i * rows.stride, from + (size_t)i * width, width * sizeof(float));
    peridot_status status = pd_span_write(t->gpu, span, 0, padded, n * size);
    free(padded);
    return status;
}

/* Adds row i of the table of positions. */
static void add_position(float *out, const struct pd_tower_config *c, const struct pd_tensor *table, uint32_t i,
                         float *scratch)
{
    pd_tensor_dequantize(scratch, table, (uint64_t)i * c->d_model, c->d_model);
    for (uint32_t k = 0; k < c->d_model; k++) out[k] += scratch[k];
}

/* Place i of n among `side` of the table, whose ends are theirs: between two of it. */
static double between(uint32_t *first, uint32_t i, uint32_t n, uint32_t side)
{
    double at = n > 1 ? (double)i * (side - 1) / (n - 1) : 0;
    *first = (uint32_t)pd_min((uint64_t)at, side - 1);
    return at - *first;
}

/* Qwen's table is a square, interpolated to the picture's patches. */
static void interpolate_position(float *out, const struct pd_tower_config *c, const struct pd_tensor *table,
                                 const struct pd_patches *p, uint32_t i, float *scratch)
{
    uint32_t column, row, x, y, side = (uint32_t)(sqrt(c->n_positions) + 0.5);
    pd_patch_place(&column, &row, c, p->n_columns, i);
    double right = between(&x, column, p->n_columns, side), below = between(&y, row, p->n_patch_rows, side);
    for (uint32_t corner = 0; corner < 4; corner++) {
        uint32_t at_x = (uint32_t)pd_min(x + corner % 2, side - 1), at_y = (uint32_t)pd_min(y + corner / 2, side - 1);
        double part = (corner % 2 ? right : 1 - right) * (corner / 2 ? below : 1 - below);
        pd_tensor_dequantize(scratch, table, ((uint64_t)at_y * side + at_x) * c->d_model, c->d_model);
        for (uint32_t k = 0; part > 0 && k < c->d_model; k++) out[k] += (float)part * scratch[k];
    }
}

/* SigLIP has a row for each patch; Gemma 4 adds one of the column and one of the row, in one table or in two. */
static peridot_status write_positions(struct pd_tower *t, const struct pd_patches *p)
{
    const struct pd_tower_config *c = &t->config;
    const struct pd_tensor *table;
    struct pd_tower_plan plan;
    uint32_t n = p->n_columns * p->n_patch_rows;
    pd_tower_plan_get(&plan, c, PD_TOWER_POSITIONS);
    PD_TRY(pd_tower_find(&table, c, t->checkpoint, &plan, PD_TOWER_WEIGHT, 0));
    bool paired = c->kind == PD_TOWER_PATCHES && pd_checkpoint_kind(t->checkpoint) == PD_CHECKPOINT_HF;
    float *rows = calloc((size_t)n + 1, c->d_model * sizeof *rows);
    if (!rows) return pd_fail_alloc((size_t)n * c->d_model * sizeof *rows, "positions");
    float *scratch = rows + (size_t)n * c->d_model;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t column = i % p->n_columns, row = i / p->n_columns;
        float *out = rows + (size_t)i * c->d_model;
        if (c->kind == PD_TOWER_QWEN) {
            interpolate_position(out, c, table, p, i, scratch);
            continue;
        }
        if (c->kind == PD_TOWER_SIGLIP) {
            add_position(out, c, table, i, scratch);
            continue;
        }
        add_position(out, c, table, paired ? 2 * column : column, scratch);
        add_position(out, c, table, paired ? 2 * row + 1 : c->n_positions + row, scratch);
    }
    peridot_status status = write_rows(t, t->position_span, t->s.positions, rows, n, c->d_model);
    free(rows);
    return status;
}

/* cos of half a head's angles, then sin: see tower_weights.c for their order. SigLIP does not rotate. */
static void write_angles_of(float *out, const struct pd_tower_config *c, uint32_t column, uint32_t row)
{
    const bool by_row_first = c->kind == PD_TOWER_QWEN;
    const double base = by_row_first ? 10000 : 100;
    uint32_t half = c->head_dim / 2, quarter = c->head_dim / 4;
    for (uint32_t i = 0; i < half; i++) {
        double at = c->kind == PD_TOWER_SIGLIP ? 0 : (i < quarter) != by_row_first ? column : row;
        double angle = at * pow(base, -2.0 * (i % quarter) / half);
        out[i] = (float)cos(angle);
        out[half + i] = (float)sin(angle);
    }
}

static peridot_status write_places(struct pd_tower *t, const struct pd_patches *p)
{
    const struct pd_tower_config *c = &t->config;
    uint32_t n = p->n_columns * p->n_patch_rows;
    struct pd_place *places = malloc(n * sizeof *places);
    float *angles = malloc((size_t)n * c->head_dim * sizeof *angles);
    peridot_status status = PERIDOT_OK;
    if (!places || !angles) status = pd_fail_alloc((size_t)n * c->head_dim * sizeof *angles, "positions");
    for (uint32_t i = 0; status == PERIDOT_OK && i < n; i++) {
        uint32_t column, row;
        pd_patch_place(&column, &row, c, p->n_columns, i);
        places[i] = (struct pd_place){.pos = i, .last = n - 1};
        write_angles_of(angles + (size_t)i * c->head_dim, c, column, row);
    }
    if (status == PERIDOT_OK) status = pd_span_write(t->gpu, t->places, 0, places, n * sizeof *places);
    if (status == PERIDOT_OK)
        status = pd_span_write(t->gpu, t->angles, 0, angles, (uint64_t)n * c->head_dim * sizeof *angles);
    free(places);
    free(angles);
    return status;
}

static peridot_status write_input(struct pd_tower *t, const struct pd_patches *p)
{
    uint32_t n = p->n_columns * p->n_patch_rows;
    PD_TRY(write_rows(t, t->patch_span, t->s.patches, p->at, n, pd_tower_patch_dim(&t->config)));
    PD_TRY(write_positions(t, p));
    return t->config.n_layers ? write_places(t, p) : PERIDOT_OK;
}

/* Each stage is recorded when those before are done, so that its pieces take as long as they should. */
static peridot_status record(struct pd_tower *t)
{
    struct pd_recorder r = {.gpu = t->gpu, .variants = *t->variants, .packed = t->packed,
        .split_sums = t->split_sums, .commands = t->commands, .chunk = true,
        .piece_work = pd_min(t->piece_work, t->most_piece_work)};
    const struct pd_tower_pass p = {.recorder = &r, .config = &t->config, .weights = &t->w, .scratch = t->s,
        .n = t->n_patches, .n_columns = t->n_columns};
    t->next_piece = 0;
    t->longest = 0;
    PD_TRY(pd_commands_begin(t->commands));
    pd_tower_forward(&p, t->stage);
    peridot_status status = pd_commands_end(t->commands);
    t->most_work = r.most_work;
    return r.status != PERIDOT_OK ? r.status : status;
}

/* ---- running ---- */

/* The first pieces are short: attention to all patches can take many times as long as multiplying matrices does. */
static peridot_status tower_begin(struct pd_tower *t, const struct pd_patches *patches,
                                  const struct pd_tower_watch *watch)
{
    PD_TRY(tower_load(t, watch));
    PD_TRY(write_input(t, patches));
    t->n_columns = patches->n_columns;
    t->n_patches = patches->n_columns * patches->n_patch_rows;
    t->most_piece_work = watch->piece_work;
    if (!t->piece_work) t->piece_work = pd_max(watch->piece_work / 16, 1);
    t->stage = 0;
    return record(t);
}

/* After a failure, what was loaded in part goes again, and all of it where it is not to be kept. */
peridot_status pd_tower_begin(struct pd_tower *t, const struct pd_patches *patches,
                              const struct pd_tower_watch *watch)
{
    peridot_status status = tower_begin(t, patches, watch);
    if (status != PERIDOT_OK && !(t->loaded && t->keeps)) unload(t);
    return status;
}

peridot_status pd_tower_step(bool *done, struct pd_tower *t)
{
    bool is_layer = t->stage > 0 && t->stage <= t->config.n_layers;
    double begun = pd_now();
    PD_TRY(pd_commands_submit_piece(t->commands, t->next_piece++));
    PD_TRY(pd_commands_wait(t->commands));
    t->longest = fmax(t->longest, pd_now() - begun);
    if (t->next_piece < pd_commands_n_pieces(t->commands)) return PERIDOT_OK;
    if (is_layer) t->piece_work = pd_next_piece(t->most_work, t->longest);
    *done = ++t->stage == pd_tower_n_stages(&t->config);
    return *done ? PERIDOT_OK : record(t);
}

peridot_status pd_tower_take_rows(float *rows, struct pd_tower *t)
{
    uint32_t n = t->n_patches / t->config.pool / t->config.pool, width = t->config.d_out, stride = t->s.out.stride;
    float *read = malloc((size_t)n * stride * sizeof *read);
    if (!read) return pd_fail_alloc((size_t)n * stride * sizeof *read, "a picture");
    peridot_status status = pd_span_read(t->gpu, read, t->out_span, 0, (uint64_t)n * stride * sizeof *read);
    for (uint32_t i = 0; status == PERIDOT_OK && i < n * width; i++) {
        rows[i] = read[(size_t)(i / width) * stride + i % width];
        if (!isfinite(rows[i]))
            status = pd_fail(PERIDOT_ERROR_FORMAT, "%s: its vision tower gives numbers that are not finite",
                             pd_checkpoint_path(t->checkpoint));
    }
    free(read);
    return status;
}

void pd_tower_end(struct pd_tower *t)
{
    if (!t->keeps) unload(t);
}
