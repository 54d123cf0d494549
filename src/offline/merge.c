/* Adapters that become a part of the matrices of a file that is written: W + scale B A, before W is quantised. */
#include "offline/offline_.h"

#include "base/base.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

peridot_status pd_merge_open(struct pd_merge *out, const struct pd_config *config, const peridot_adapter_file *files,
                             size_t n)
{
    *out = (struct pd_merge){.config = config, .files = files};
    if (n > PD_MAX_MERGED)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "%zu adapters are more than the limit of %d", n, PD_MAX_MERGED);
    for (size_t i = 0; i < n; i++) {
        if (!files[i].path) return pd_fail(PERIDOT_ERROR_ARGUMENT, "no adapter was named");
        if (!isfinite(files[i].scale))
            return pd_fail(PERIDOT_ERROR_ARGUMENT, "adapter %s: the scale %g is not a finite number", files[i].path,
                           (double)files[i].scale);
        PD_TRY(pd_adapter_open(&out->adapters[i], files[i].path, config));
        out->n++;
    }
    return PERIDOT_OK;
}

void pd_merge_close(struct pd_merge *m)
{
    while (m->n) pd_adapter_close(&m->adapters[--m->n]);
}

static bool find_plan(struct pd_plan *out, const struct pd_config *c, const char *name)
{
    char known[PD_TENSOR_NAME_SIZE];
    for (uint32_t i = 0; i < c->n_layers; i++)
        for (enum pd_role role = PD_FIRST_LAYER_ROLE; role < PD_N_ROLES; role++) {
            pd_tensor_name_gguf(known, role, i, c->family);
            if (strcmp(known, name) == 0 && pd_plan_get(out, c, role, i)) return true;
        }
    return false;
}

/* Columns `first` to first + rank of b, whose rows are ordered as in the file that is written. */
static void put_part(struct pd_merge_matrix *out, const struct pd_adapter_part *part, float scale, uint32_t first,
                     const struct pd_plan *plan, const struct pd_head_order *order)
{
    uint32_t n_rows = plan->n_rows / (plan->head_half ? 2 : 1);
    pd_adapter_a(out->a + (size_t)first * out->n_cols, part);
    for (uint32_t row = 0; row < n_rows; row++) {
        uint32_t to = row < plan->n_rotated_rows ? pd_head_order_row(order, row) : row;
        if (plan->head_half) to += (to / order->head_dim + plan->head_half - 1) * order->head_dim;
        float *b = out->b + (size_t)to * out->n_ranks + first;
        pd_adapter_b_row(b, part, row);
        for (uint32_t j = 0; j < part->rank; j++) b[j] *= scale;
    }
}

peridot_status pd_merge_find(struct pd_merge_matrix *out, const struct pd_merge *m, const char *name)
{
    struct pd_plan plan, gate;   /* the other half of q's tensor */
    uint32_t first = 0;
    *out = (struct pd_merge_matrix){0};
    if (m->n == 0 || !find_plan(&plan, m->config, name)) return PERIDOT_OK;
    for (uint32_t i = 0; i < m->n; i++) out->n_ranks += pd_adapter_get(&m->adapters[i], plan.role, plan.layer)->rank;
    if (out->n_ranks == 0) return PERIDOT_OK;
    uint64_t n = (uint64_t)out->n_ranks * (plan.n_rows + (uint64_t)plan.n_cols);
    struct pd_head_order order = pd_head_order_of(m->config, plan.layer);
    order.interleaved = pd_families[m->config->family].gguf_interleaved;
    out->n_cols = plan.n_cols;
    out->a = malloc((size_t)out->n_ranks * plan.n_cols * sizeof *out->a);
    out->b = malloc((size_t)out->n_ranks * plan.n_rows * sizeof *out->b);
    if (!out->a || !out->b) return pd_fail_alloc(n * sizeof *out->a, name);
    for (uint32_t i = 0; i < m->n; i++) {
        const struct pd_adapter_part *part = pd_adapter_get(&m->adapters[i], plan.role, plan.layer);
        if (part->rank) put_part(out, part, m->files[i].scale, first, &plan, &order);
        if (part->rank && plan.head_half && pd_plan_get(&gate, m->config, PD_ROLE_ATTN_GATE, plan.layer))
            put_part(out, pd_adapter_get(&m->adapters[i], gate.role, plan.layer), m->files[i].scale, first, &gate,
                     &order);
        first += part->rank;
    }
    return PERIDOT_OK;
}

void pd_merge_matrix_free(struct pd_merge_matrix *x)
{
    free(x->a);
    free(x->b);
    *x = (struct pd_merge_matrix){0};
}

void pd_merge_add(float *weights, const struct pd_merge_matrix *x, uint64_t first, uint64_t n)
{
    if (x->n_ranks == 0) return;
    for (uint64_t at = first, end = first + n; at < end;) {
        uint64_t row = at / x->n_cols, column = at % x->n_cols, here = pd_min(end - at, x->n_cols - column);
        float *w = weights + (at - first);
        for (uint32_t j = 0; j < x->n_ranks; j++) {
            const float *a = x->a + (size_t)j * x->n_cols + column;
            float b = x->b[row * x->n_ranks + j];
            for (uint64_t c = 0; c < here; c++) w[c] += b * a[c];
        }
        at += here;
    }
}
