/* The LoRA adapters of a model, on the device: for each matrix of a layer what all of them add to it (struct pd_lora).
 * Which of them a row takes, and by how much, is its sequence's business: see pd_scales. Loaded with the model. */
#include "engine/load/load.h"

#include "base/base.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The walk over the layers runs twice, as that of the weights does: to add up sizes, and to upload. */
struct adapters_walk {
    struct pd_loader l;
    struct pd_weights counts;          /* the loader's: what it loads is none of the model's weights */
    struct pd_adapters *adapters;
    struct pd_adapter files[PD_MAX_ADAPTERS];
};

/* ---- one matrix ---- */

enum { MAX_PARTS = 4 * PD_MAX_ADAPTERS };   /* q, k, v and the gate of each */

struct stack {
    struct pd_lora_part parts[MAX_PARTS];
    const struct pd_adapter_part *from[MAX_PARTS];
    uint32_t n, n_ranks, n_cols;
    uint64_t n_b;
};

static void stack_part(struct stack *s, const struct pd_adapter_part *from, uint32_t adapter, uint32_t first_row,
                       uint32_t n_rows)
{
    s->from[s->n] = from;
    s->parts[s->n++] = (struct pd_lora_part){.adapter = adapter, .first = s->n_ranks, .rank = from->rank,
        .first_row = first_row, .n_rows = n_rows, .b = (uint32_t)s->n_b};
    s->n_ranks += from->rank;
    s->n_b += (uint64_t)from->rank * n_rows;
}

/* The tensors of a matrix lie in the order of their roles. */
static void collect(struct stack *s, const struct adapters_walk *k, uint32_t layer, enum pd_layer_matrix m)
{
    uint32_t first_row = 0;
    s->n = s->n_ranks = 0;
    s->n_b = 0;
    for (enum pd_role role = PD_FIRST_LAYER_ROLE; role < PD_N_ROLES; role++) {
        struct pd_plan plan;
        if (!pd_plan_get(&plan, k->l.config, role, layer) || plan.n_dims != 2 || plan.is_vector || plan.matrix != m)
            continue;
        uint32_t n_rows = plan.n_taken ? plan.n_taken : plan.n_rows;
        s->n_cols = plan.n_cols;
        for (uint32_t i = 0; i < k->adapters->n; i++) {
            const struct pd_adapter_part *part = pd_adapter_get(&k->files[i], role, layer);
            if (part->rank) stack_part(s, part, i, first_row, n_rows);
        }
        first_row += n_rows;
    }
}

static peridot_status adapters_put(struct adapters_walk *k, uint64_t *address, const void *data, uint64_t size)
{
    struct pd_span span;
    if (k->l.measuring) {
        k->l.device_size += pd_align(size, 256);
        return PERIDOT_OK;
    }
    PD_TRY(pd_heap_alloc(&span, k->counts.heap, size, "an adapter"));
    *address = span.address;
    return pd_span_write(k->l.gpu, span, 0, data, size);
}

/* The rows of all parts in one matrix, so that one product gives what every adapter makes of x. */
static peridot_status load_a(struct adapters_walk *k, struct pd_linear *a, const struct stack *s)
{
    const struct pd_tensor *first = s->from[0]->a;
    uint64_t n = (uint64_t)s->n_ranks * s->n_cols;
    float *rows = malloc(n * sizeof *rows);
    if (!rows) return pd_fail_alloc(n * sizeof *rows, "an adapter");
    for (uint32_t i = 0; i < s->n && !k->l.measuring; i++)
        pd_adapter_a(rows + (size_t)s->parts[i].first * s->n_cols, s->from[i]);
    const struct pd_tensor t = {.name = first->name, .file = first->file, .type = "f32", .dtype = PD_F32, .n_dims = 2,
        .shape = {s->n_ranks, s->n_cols, 1, 1}, .data = (const uint8_t *)rows, .size = n * sizeof *rows};
    const struct pd_load_rows parts = {.at = {&t}, .n = 1, .copied = true};
    a->exact = true;
    peridot_status status = pd_load_matrix(&k->l, &a->w, &parts, s->n_cols);
    free(rows);
    return status;
}

/* By columns: what one number of A x adds to neighbouring rows, which neighbouring invocations have, lies together. */
static void turn_over(float *out, float *row, const struct stack *s, uint32_t i)
{
    const struct pd_lora_part *part = &s->parts[i];
    for (uint32_t r = 0; r < part->n_rows; r++) {
        pd_adapter_b_row(row, s->from[i], r);
        for (uint32_t j = 0; j < part->rank; j++) out[part->b + (size_t)j * part->n_rows + r] = row[j];
    }
}

static peridot_status load_b(struct adapters_walk *k, struct pd_lora *lora, const struct stack *s)
{
    uint64_t size = s->n_b * sizeof(float);
    if (size > pd_gpu_max_span(k->l.gpu))
        return pd_fail(PERIDOT_ERROR_MEMORY, "%s: tensor %s: the adapters to this matrix take %.1f MB, more than the "
                       "device holds in one piece", s->from[0]->b->file, s->from[0]->b->name, (double)size / 1e6);
    if (k->l.measuring) return adapters_put(k, &lora->b, NULL, size);
    float *b = malloc(size), *row = malloc(s->n_ranks * sizeof *row);
    peridot_status status = PERIDOT_OK;
    if (!b || !row) status = pd_fail_alloc(size, "an adapter");
    for (uint32_t i = 0; i < s->n && status == PERIDOT_OK; i++) turn_over(b, row, s, i);
    if (status == PERIDOT_OK) status = adapters_put(k, &lora->b, b, size);
    free(b);
    free(row);
    return status;
}

static peridot_status load_matrix(struct adapters_walk *k, struct pd_linear *linear, struct pd_lora *lora,
                                  const struct stack *s)
{
    struct pd_adapters *a = k->adapters;
    a->most_ranks = (uint32_t)pd_max(a->most_ranks, s->n_ranks);
    lora->n_parts = s->n;
    PD_TRY(load_a(k, &lora->a, s));
    PD_TRY(load_b(k, lora, s));
    PD_TRY(adapters_put(k, &lora->parts, s->parts, s->n * sizeof *s->parts));
    linear->lora = lora;
    return PERIDOT_OK;
}

/* ---- all of them ---- */

static peridot_status adapters_walk(struct adapters_walk *k, struct pd_weights *w)
{
    struct stack s;
    for (uint32_t i = w->first_layer; i < w->end_layer; i++)
        for (int m = 0; m < PD_N_LAYER_MATRICES; m++) {
            collect(&s, k, i, (enum pd_layer_matrix)m);
            if (s.n)
                PD_TRY(load_matrix(k, &w->layers[i].linears[m], &k->adapters->loras[i * PD_N_LAYER_MATRICES + m], &s));
        }
    return PERIDOT_OK;
}

/* As it was named, or as its file or folder is called. */
static peridot_status set_name(struct pd_adapters *a, uint32_t i, const peridot_adapter_file *file)
{
    char *name = a->at[i].name;
    const char *from = file->name && *file->name ? file->name : file->path;
    size_t n = strlen(from);
    if (from == file->path) {
        while (n > 1 && (from[n - 1] == '/' || from[n - 1] == '\\')) n--;
        size_t begin = n;
        while (begin > 0 && from[begin - 1] != '/' && from[begin - 1] != '\\') begin--;
        from += begin;
        n -= begin;
        if (n > 5 && strncmp(from + n - 5, ".gguf", 5) == 0) n -= 5;
    }
    pd_utf8_escape(name, sizeof a->at[i].name, from, n);
    for (uint32_t k = 0; k < i; k++)
        if (strcmp(a->at[k].name, name) == 0)
            return pd_fail(PERIDOT_ERROR_ARGUMENT, "two adapters are called %s", name);
    return PERIDOT_OK;
}

static uint64_t hash_of(const struct pd_adapter *a, uint32_t n_layers)
{
    uint64_t h = pd_checkpoint_hash(a->checkpoint);
    for (size_t i = 0; i < (size_t)n_layers * PD_N_ROLES; i++)
        if (a->parts[i].rank) h = pd_hash(h, &a->parts[i].scale, sizeof a->parts[i].scale);
    return h;
}

static peridot_status check_scale(float scale, const char *name)
{
    if (isfinite(scale)) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_ARGUMENT, "adapter %s: the scale %g is not a finite number", name, (double)scale);
}

static peridot_status open_files(struct adapters_walk *k, const peridot_adapter_file *files, size_t n)
{
    struct pd_adapters *a = k->adapters;
    if (n > PD_MAX_ADAPTERS)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "%zu adapters are more than the limit of %d", n, PD_MAX_ADAPTERS);
    for (uint32_t i = 0; i < n; i++) {
        if (!files[i].path) return pd_fail(PERIDOT_ERROR_ARGUMENT, "no adapter was named");
        PD_TRY(set_name(a, i, &files[i]));
        PD_TRY(check_scale(files[i].scale, a->at[i].name));
        PD_TRY(pd_adapter_open(&k->files[i], files[i].path, k->l.config));
        a->n++;
        a->at[i].hash = hash_of(&k->files[i], k->l.config->n_layers);
        a->scales.of[i] = files[i].scale;
    }
    return PERIDOT_OK;
}

static peridot_status adapters_load(struct adapters_walk *k, struct pd_weights *w, const peridot_adapter_file *files,
                                    size_t n)
{
    struct pd_adapters *a = k->adapters;
    size_t n_loras = (size_t)k->l.config->n_layers * PD_N_LAYER_MATRICES;
    PD_TRY(open_files(k, files, n));
    a->loras = calloc(n_loras, sizeof *a->loras);
    if (!a->loras) return pd_fail_alloc(n_loras * sizeof *a->loras, "adapters");
    k->l.source.checkpoint = k->files[0].checkpoint;
    k->l.measuring = true;
    PD_TRY(adapters_walk(k, w));
    a->size = k->l.device_size;
    PD_TRY(pd_gpu_check_budget(k->l.gpu, a->size, a->n == 1 ? "the adapter" : "the adapters"));
    PD_TRY(pd_heap_create(&a->heap, k->l.gpu, PD_HEAP_DEVICE, pd_min(a->size + (64 << 10), 256u << 20)));
    k->counts.heap = a->heap;
    k->l.measuring = false;
    PD_TRY(adapters_walk(k, w));
    for (uint32_t i = 0; i < a->n; i++) PD_TRY(pd_checkpoint_check(PERIDOT_OK, k->files[i].checkpoint));
    w->size += a->size;
    w->decode_read_size += a->size;
    return PERIDOT_OK;
}

peridot_status pd_adapters_load(struct pd_adapters *out, struct pd_weights *w, struct pd_gpu *gpu,
                                const struct pd_config *config, const peridot_adapter_file *files, size_t n)
{
    static const struct pd_load_params params = {0};
    *out = (struct pd_adapters){0};
    if (n == 0) return PERIDOT_OK;
    struct adapters_walk *k = calloc(1, sizeof *k);
    if (!k) return pd_fail_alloc(sizeof *k, "adapters");
    k->adapters = out;
    k->l = (struct pd_loader){.w = &k->counts, .gpu = gpu, .config = config, .params = &params};
    peridot_status status = adapters_load(k, w, files, n);
    for (uint32_t i = 0; i < n && i < PD_MAX_ADAPTERS; i++) pd_adapter_close(&k->files[i]);
    free(k);
    return status;
}

void pd_adapters_free(struct pd_adapters *a, const struct pd_config *config)
{
    for (size_t i = 0; a->loras && i < (size_t)config->n_layers * PD_N_LAYER_MATRICES; i++)
        free(a->loras[i].a.w.slices);
    free(a->loras);
    pd_heap_free(a->heap);
    *a = (struct pd_adapters){0};
}

/* ---- choosing ---- */

static peridot_status fail_unknown(const struct pd_adapters *a, const char *name)
{
    char list[400] = "";
    size_t size = 0;
    for (uint32_t i = 0; i < a->n && size + 150 < sizeof list; i++)
        size += (size_t)snprintf(list + size, sizeof list - size, "%s%.120s", i ? ", " : "", a->at[i].name);
    return pd_fail(PERIDOT_ERROR_ARGUMENT, "the model has no adapter %.120s; it has: %s", name,
                   *list ? list : "none");
}

peridot_status pd_adapters_choose(struct pd_scales *out, const struct pd_adapters *a, const peridot_adapter *named,
                                  size_t n)
{
    *out = (struct pd_scales){{0}};
    for (size_t i = 0; i < n; i++) {
        const char *name = named[i].name ? named[i].name : "";
        uint32_t k = 0;
        while (k < a->n && strcmp(a->at[k].name, name) != 0) k++;
        if (k == a->n) return fail_unknown(a, name);
        PD_TRY(check_scale(named[i].scale, name));
        out->of[k] = named[i].scale;
    }
    return PERIDOT_OK;
}
