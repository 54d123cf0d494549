/* What a pass reads of the host's memory: of each row its token, its place in the cache and its angles. Recorded
 * commands hold the addresses and not the values, so that a pass is replayed with other rows. Each pass has an input of
 * its own, which the host does not write while the pass is under way. */
#include "engine/pass/pass.h"

#include "base/base.h"
#include "engine/memory/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static peridot_status open_rows(struct pd_input *in, const struct pd_workspace *w)
{
    uint64_t size = (uint64_t)in->n_rows * w->scratch.x.stride * sizeof(float);
    in->rows = calloc(in->n_rows, sizeof *in->rows);
    if (!in->rows) return pd_fail_alloc(in->n_rows * sizeof *in->rows, "rows");
    if (w->model->weights.first_layer) PD_TRY(pd_heap_alloc(&in->rows_in, w->host_heap, size, "rows"));
    return w->model->weights.has_output ? PERIDOT_OK : pd_heap_alloc(&in->rows_out, w->host_heap, size, "rows");
}

peridot_status pd_input_create(struct pd_input *in, const struct pd_workspace *w, uint32_t n_rows,
                               struct pd_span tokens)
{
    const struct pd_config *c = &w->model->config;
    uint64_t angles_size = 0;
    *in = (struct pd_input){.tokens = tokens, .n_rows = n_rows};
    for (uint32_t i = 0; i < c->n_rope_tables; i++) angles_size += sizeof(float) * n_rows * c->rope_tables[i].head_dim;
    PD_TRY(pd_heap_alloc(&in->step, w->input_heap, sizeof(struct pd_step), "the step"));
    if (!tokens.size) PD_TRY(pd_heap_alloc(&in->tokens, w->input_heap, sizeof(uint32_t) * n_rows, "tokens"));
    PD_TRY(pd_heap_alloc(&in->places, w->input_heap, sizeof(struct pd_place) * c->n_kinds * n_rows, "places"));
    PD_TRY(pd_heap_alloc(&in->angles, w->input_heap, angles_size, "RoPE angles"));
    uint64_t scales_size = (uint64_t)n_rows * w->model->adapters.n * sizeof(float);
    if (scales_size) PD_TRY(pd_heap_alloc(&in->lora_scales, w->input_heap, scales_size, "the adapters of rows"));
    if (pd_cache_has_states(w->cache)) {
        PD_TRY(pd_heap_alloc(&in->runs, w->input_heap, sizeof(struct pd_state_run) * PD_MAX_RUNS, "runs of rows"));
        PD_TRY(pd_heap_alloc(&in->row_states, w->input_heap, sizeof(uint32_t) * w->n_decode, "states of rows"));
    }
    return w->model->link ? open_rows(in, w) : PERIDOT_OK;
}

peridot_status pd_input_keep_before(struct pd_input *in, const struct pd_workspace *w)
{
    return pd_heap_alloc(&in->before, w->input_heap, sizeof(uint32_t) * (in->n_rows + w->n_sequences), "rows");
}

void pd_input_free(struct pd_input *in)
{
    free(in->rows);
    in->rows = NULL;
}

/* Of a text that is read whole as far as windows go to both sides; of an image all of it, whatever the window, in
 * layers that the family says. */
static uint32_t last_key(const struct pd_config *c, uint32_t window, uint32_t pos, uint32_t last)
{
    if (c->bidirectional) return window && last - pos >= window ? pos + window - 1 : last;
    return c->image_sight & (window ? PD_SIGHT_LOCAL : PD_SIGHT_GLOBAL) ? last : pos;
}

static void write_places(const struct pd_input *in, const struct pd_workspace *w, uint32_t m,
                         const struct pd_pages *pages, uint32_t pos, uint32_t last)
{
    const struct pd_config *c = &w->model->config;
    /* Ministral 3's, after Llama 4's: far queries are sharpened, as a softmax over more keys is flatter. */
    double growth = c->query_growth != 0 ? c->query_growth * log(1 + floor(pos / c->ropes[PD_ROPE_GLOBAL].old_ctx)) : 0;
    for (uint32_t kind = 0; kind < c->n_kinds; kind++) {
        uint32_t window = w->cache->pools[kind].window;
        struct pd_place place = pd_decode_place(pos, window, w->split_pages);
        place.last = last_key(c, window, pos, last);
        place.text = pd_pages_text(w->cache, pages);
        place.q_growth = (float)growth;
        ((struct pd_place *)in->places.host)[kind * in->n_rows + m] = place;
    }
}

/* See pd_config.rope_sections. */
static uint32_t axis_of(const struct pd_config *c, uint32_t pair)
{
    uint32_t axis = pair % 3;
    return axis && pair < 3 * c->rope_sections[axis] ? axis : 0;
}

static void write_angles(const struct pd_input *in, const struct pd_workspace *w, uint32_t m, const uint32_t turns[3])
{
    const struct pd_config *c = &w->model->config;
    float *table = in->angles.host;
    for (uint32_t t = 0; t < c->n_rope_tables; t++) {
        const struct pd_rope_table *rope = &c->rope_tables[t];
        uint32_t head_dim = rope->head_dim, half = head_dim / 2;
        const double *inv_freq = rope->long_inv_freq && w->cache->long_rope ? rope->long_inv_freq : rope->inv_freq;
        float *row = table + (size_t)m * head_dim;
        for (uint32_t i = 0; i < half; i++) {
            /* in fp64: fp32 has an angle of 100,000 to 1/128 only */
            double angle = turns[axis_of(c, i)] * inv_freq[i], factor = i < rope->n_rotated / 2 ? rope->attn_factor : 1;
            row[i] = (float)(factor * cos(angle));
            row[half + i] = (float)(factor * sin(angle));
        }
        table += (size_t)in->n_rows * head_dim;
    }
}

void pd_input_write(const struct pd_input *in, const struct pd_workspace *w, uint32_t m, const struct pd_pages *pages,
                    const struct pd_position *at)
{
    if (in->rows) in->rows[m] = (struct pd_input_row){.table = pages->table, .pos = at->pos, .last = at->last};
    write_places(in, w, m, pages, at->pos, at->last);
    write_angles(in, w, m, at->turns);
}

void pd_input_adapt(const struct pd_input *in, const struct pd_workspace *w, uint32_t m,
                    const struct pd_scales *scales)
{
    uint32_t n = w->model->adapters.n;
    if (n) memcpy((float *)in->lora_scales.host + (size_t)m * n, scales->of, n * sizeof(float));
}

void pd_input_write_query(const struct pd_input *in, const struct pd_workspace *w, uint32_t m,
                          const struct pd_pages *pages, uint32_t pos)
{
    write_places(in, w, m, pages, pos - 1, pos - 1);
    write_angles(in, w, m, (const uint32_t[]){pos, pos, pos});
}

void pd_input_write_grids(const struct pd_input *in, const struct pd_workspace *w, uint32_t n)
{
    const struct pd_config *c = &w->model->config;
    struct pd_step step = {0};
    for (uint32_t kind = 0; kind < c->n_kinds; kind++) {
        struct pd_place *places = (struct pd_place *)in->places.host + kind * in->n_rows;
        uint32_t n_splits = 0, most = 0;
        for (uint32_t m = 0; m < n; m++) {
            places[m].first_split = n_splits;
            n_splits += places[m].n_splits;
            most = (uint32_t)pd_max(most, places[m].n_splits);
        }
        /* One dispatch for all rows: workgroups past the splits of their row end at once. */
        step.dispatch[kind][0] = w->attention_groups[kind];
        step.dispatch[kind][1] = most;
        step.dispatch[kind][2] = n;
    }
    memcpy(in->step.host, &step, sizeof step);
}

/* Its memory is taken at the first image: few texts have one. */
peridot_status pd_input_embed(struct pd_input *in, const struct pd_workspace *w, uint32_t first,
                              const float *const *rows, uint32_t n)
{
    uint32_t stride = w->scratch.x.stride, d_model = w->model->config.d_model;
    if (!in->embedded.size)
        PD_TRY(pd_heap_alloc(&in->embedded, w->input_heap, (uint64_t)in->n_rows * stride * sizeof(float),
                             "embeddings"));
    for (uint32_t m = 0; m < n; m++) {
        if (!rows[m]) continue;
        ((uint32_t *)in->tokens.host)[first + m] = PD_EMBEDDED;
        memcpy((float *)in->embedded.host + (size_t)(first + m) * stride, rows[m], d_model * sizeof(float));
    }
    return PERIDOT_OK;
}

struct pd_forward_args pd_input_forward_args(const struct pd_input *in, const struct pd_workspace *w,
                                             struct pd_recorder *r, uint32_t n_rows)
{
    const struct pd_config *c = &w->model->config;
    struct pd_forward_args pass = {.recorder = r,
                           .config = c,
                           .weights = &w->model->weights,
                           .cache = w->cache,
                           .scratch = &w->scratch,
                           .step = in->step,
                           .tokens = in->tokens.address,
                           .embedded = in->embedded.address,
                           .lora_scales = in->lora_scales.address,
                           .runs = in->runs.address,
                           .row_states = in->row_states.address,
                           .rows_in = in->rows_in,
                           .rows_out = in->rows_out,
                           .n_tokens = n_rows};
    uint64_t offset = 0;
    for (uint32_t i = 0; i < c->n_rope_tables; i++) {
        pass.angles[i] = in->angles.address + offset;
        offset += sizeof(float) * in->n_rows * c->rope_tables[i].head_dim;
    }
    for (uint32_t kind = 0; kind < c->n_kinds; kind++)
        pass.places[kind] = in->places.address + sizeof(struct pd_place) * kind * in->n_rows;
    return pass;
}
