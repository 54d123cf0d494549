#include "model/ops.h"

#include "base/num.h"

#include <stddef.h>

static const struct pd_kernel *kernel(struct pd_recorder *r, enum pd_kernel_id id, const uint32_t *spec, uint32_t n_spec)
{
    const struct pd_kernel *k = NULL;
    if (r->status == PERIDOT_OK) r->status = pd_kernel_get(&k, r->gpu, id, spec, n_spec);
    return r->status == PERIDOT_OK ? k : NULL;
}

static void dispatch(struct pd_recorder *r, const struct pd_kernel *k, const void *push, uint32_t x, uint32_t y, uint32_t z)
{
    if (k) pd_dispatch(r->commands, k, push, x, y, z);
}

static void barrier(struct pd_recorder *r)
{
    pd_barrier(r->commands);
}

/* kernels.def lists the weight types of a kernel in the order of enum pd_dtype. */
static enum pd_kernel_id typed(enum pd_kernel_id first, enum pd_dtype dtype)
{
    return (enum pd_kernel_id)((int)first + (int)dtype);
}

static uint32_t subgroup_size(const struct pd_recorder *r) { return pd_gpu_info(r->gpu)->subgroup_size; }

void pd_op_embed(struct pd_recorder *r, struct pd_rows x, const struct pd_table *table, uint64_t tokens, uint32_t n_tokens, float scale)
{
    const struct pd_matrix *m = table->matrix;
    struct pd_embed_push push = {.slices = table->addresses.address, .tokens = tokens, .x = x.address,
        .rows_per_slice = table->rows_per_slice, .row_size = m->slices[0].row_size, .n_cols = m->n_cols, .x_stride = x.stride, .scale = scale};
    dispatch(r, kernel(r, typed(PD_KERNEL_embed_f32, m->slices[0].dtype), NULL, 0), &push, 1, n_tokens, 1);
    barrier(r);
}

void pd_op_rmsnorm(struct pd_recorder *r, const struct pd_norm *norm, uint32_t n_tokens)
{
    uint32_t spec[] = {norm->n > 512 ? 256 : 64, norm->y.address != 0, norm->w_post != 0, norm->w != 0};
    struct pd_rmsnorm_push push = {.x = norm->x.address, .y = norm->y.address, .w_post = norm->w_post, .w = norm->w,
        .normed = norm->normed.address, .n = norm->n, .stride = norm->x.stride, .eps = norm->eps};
    dispatch(r, kernel(r, PD_KERNEL_rmsnorm, spec, 4), &push, n_tokens, 1, 1);
    barrier(r);
}

#define MATVEC_ROWS 4   /* rows per subgroup at a time: each load of x serves them all */
#define MATVEC_COLS 8   /* tokens at a time, when there are several: each decoded weight serves them all */

static void matvec(struct pd_recorder *r, const struct pd_slice *slice, const struct pd_matmul_push *push)
{
    uint32_t cols = push->n_tokens == 1 ? 1 : MATVEC_COLS;
    uint32_t spec[] = {(uint32_t)pd_max(64, subgroup_size(r)), MATVEC_ROWS, cols};
    uint32_t rows_per_group = spec[0] / subgroup_size(r) * MATVEC_ROWS;
    uint32_t groups = (uint32_t)pd_min(pd_div_up(slice->n_rows, rows_per_group), 65535);
    dispatch(r, kernel(r, typed(PD_KERNEL_matvec_f32, slice->dtype), spec, 3), push, groups, (uint32_t)pd_div_up(push->n_tokens, cols), 1);
}

static void matmul(struct pd_recorder *r, const struct pd_slice *slice, const struct pd_matmul_push *push)
{
    dispatch(r, kernel(r, typed(PD_KERNEL_matmul_f32, slice->dtype), NULL, 0), push,
             (uint32_t)pd_div_up(slice->n_rows, PD_MATMUL_TILE), (uint32_t)pd_div_up(push->n_tokens, PD_MATMUL_TILE), 1);
}

/* Tiles in shared memory pay from a handful of tokens on, except on a CPU, whose caches do that work without barriers. */
static bool takes_tiles(const struct pd_recorder *r, uint32_t n_tokens)
{
    return n_tokens > 2 * MATVEC_COLS && pd_gpu_info(r->gpu)->type != PERIDOT_DEVICE_CPU;
}

void pd_op_matmul(struct pd_recorder *r, struct pd_rows y, const struct pd_matrix *w, struct pd_rows x, uint32_t n_tokens, float softcap)
{
    for (uint32_t i = 0; i < w->n_slices; i++) {
        const struct pd_slice *slice = &w->slices[i];
        struct pd_matmul_push push = {.w = slice->address, .x = x.address, .y = pd_rows_at(y, 0, slice->first_row).address,
            .row_size = slice->row_size, .n_cols = w->n_cols, .n_rows = slice->n_rows, .n_tokens = n_tokens,
            .x_stride = x.stride, .y_stride = y.stride, .softcap = softcap};
        if (takes_tiles(r, n_tokens)) matmul(r, slice, &push);
        else matvec(r, slice, &push);
    }
    barrier(r);
}

void pd_op_rope(struct pd_recorder *r, struct pd_rows qkv, const struct pd_kv *kv, const struct pd_heads *heads,
                uint64_t step, uint64_t angles, uint32_t n_tokens)
{
    uint32_t spec[] = {heads->head_dim >= 128 ? 64 : 32, heads->head_dim, heads->q_norm != 0};
    struct pd_rope_push push = {.step = step, .qkv = qkv.address, .angles = angles, .w_q = heads->q_norm, .w_k = heads->k_norm,
        .k_cache = kv->k, .v_cache = kv->v, .qkv_stride = qkv.stride, .n_heads = heads->n_heads, .n_kv_heads = heads->n_kv_heads,
        .ring = kv->ring, .eps = heads->eps};
    enum pd_kernel_id id = kv->type == PERIDOT_KV_F16 ? PD_KERNEL_rope_f16 : PD_KERNEL_rope_f32;
    dispatch(r, kernel(r, id, spec, 3), &push, heads->n_heads + 2 * heads->n_kv_heads, n_tokens, 1);
    barrier(r);
}

/* Query heads of one workgroup: all that share a kv head, as long as q fits 16 KiB of shared memory beside the scores. */
static uint32_t heads_per_group(const struct pd_heads *heads)
{
    uint32_t group = heads->n_heads / heads->n_kv_heads, n = group;
    while (n > 1 && (group % n != 0 || n > 16 || n * heads->head_dim > 4096)) n--;
    return n;
}

uint32_t pd_attention_groups(const struct pd_heads *heads)
{
    return heads->n_heads / heads_per_group(heads);
}

static const struct pd_kernel *attention_kernel(struct pd_recorder *r, const struct pd_kv *kv, const struct pd_heads *heads, bool split)
{
    uint32_t workgroup = (uint32_t)pd_max(heads->head_dim >= 256 ? 128 : 64, subgroup_size(r));
    uint32_t spec[] = {workgroup, heads->head_dim, heads_per_group(heads), heads->n_heads / heads->n_kv_heads,
        (uint32_t)pd_div_up(heads->head_dim / 2, workgroup), split};
    return kernel(r, kv->type == PERIDOT_KV_F16 ? PD_KERNEL_attention_f16 : PD_KERNEL_attention_f32, spec, 6);
}

static struct pd_attention_push attention_push(struct pd_rows y, struct pd_rows q, const struct pd_kv *kv, const struct pd_heads *heads, uint64_t step)
{
    return (struct pd_attention_push){.step = step, .q = q.address, .k_cache = kv->k, .v_cache = kv->v, .y = y.address,
        .q_stride = q.stride, .y_stride = y.stride, .n_kv_heads = heads->n_kv_heads, .ring = kv->ring, .window = heads->window,
        .scale = heads->scale, .softcap = heads->softcap};
}

void pd_op_attention(struct pd_recorder *r, struct pd_rows y, struct pd_rows q, const struct pd_kv *kv, const struct pd_heads *heads,
                     uint64_t step, uint32_t n_tokens)
{
    struct pd_attention_push push = attention_push(y, q, kv, heads, step);
    dispatch(r, attention_kernel(r, kv, heads, false), &push, pd_attention_groups(heads), 1, n_tokens);
    barrier(r);
}

void pd_op_attention_split(struct pd_recorder *r, struct pd_rows y, struct pd_rows q, const struct pd_kv *kv, const struct pd_heads *heads,
                           struct pd_span step, uint32_t kind, uint64_t partial)
{
    struct pd_attention_push push = attention_push((struct pd_rows){.address = partial}, q, kv, heads, step.address);
    const struct pd_kernel *k = attention_kernel(r, kv, heads, true);
    uint64_t grid = offsetof(struct pd_step, dispatch) + kind * sizeof ((struct pd_step *)0)->dispatch[0];
    if (k) pd_dispatch_indirect(r->commands, k, &push, step, grid);
    barrier(r);
    struct pd_merge_push merge = {.step = step.address, .partial = partial, .y = y.address, .head_dim = heads->head_dim, .local = kind};
    uint32_t spec[] = {(uint32_t)pd_min(pd_align(heads->head_dim, 32), 256)};
    dispatch(r, kernel(r, PD_KERNEL_merge, spec, 1), &merge, heads->n_heads, 1, 1);
    barrier(r);
}

void pd_op_glu(struct pd_recorder *r, struct pd_rows y, struct pd_rows x, uint32_t n, uint32_t n_tokens, bool silu)
{
    uint32_t spec[] = {64, silu};
    struct pd_glu_push push = {.x = x.address, .y = y.address, .n = n, .x_stride = x.stride, .y_stride = y.stride};
    dispatch(r, kernel(r, PD_KERNEL_glu, spec, 2), &push, (uint32_t)pd_div_up(n, spec[0]), n_tokens, 1);
    barrier(r);
}

uint32_t pd_topk_scratch(uint32_t n)
{
    return (uint32_t)pd_div_up(n, PD_TOPK_IN) * PD_TOPK;
}

void pd_op_topk(struct pd_recorder *r, uint64_t best, uint64_t logits, uint32_t n, uint64_t a, uint64_t b)
{
    struct pd_topk_push push = {.logits = logits, .n = n};
    for (uint32_t first = 1;; first = 0) {
        uint32_t spec[] = {0, first}, blocks = (uint32_t)pd_div_up(push.n, PD_TOPK_IN);
        push.best = blocks == 1 ? best : a;
        dispatch(r, kernel(r, PD_KERNEL_topk, spec, 2), &push, blocks, 1, 1);
        barrier(r);
        if (blocks == 1) return;
        push.found = a;
        push.n = blocks * PD_TOPK;
        a = b;
        b = push.found;
    }
}
