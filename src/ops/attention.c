/* Attention: which kernel, and how its work is laid out over workgroups.
 *
 * A prompt has many queries that read the same keys, so they share a tile of them; a decode step has one query for each
 * sequence and many keys, so the keys are split over workgroups, each of which leaves a partial result with its maximum
 * and its sum, and attention_reduce combines them. How many splits there are depends on a row's position alone
 * (pd_decode_place): a row's result is the same whatever other rows are in the step. As the number of pages grows from
 * step to step, the grid is read from memory (pd_dispatch_indirect), and the recorded commands stay as they are.
 *
 * Query heads that share a head of keys are taken by one workgroup, as many as its registers hold: the cache is what a
 * long context reads most of, and so it is read once for all of them. */
#include "ops/ops.h"
#include "ops/ops_.h"

#include <stddef.h>

uint32_t pd_kv_form(peridot_kv_type type, int side)
{
    const uint32_t forms[PD_N_KV_TYPES] = {[PERIDOT_KV_F16] = PD_KV_F16(side),
        [PERIDOT_KV_F32] = PD_KV_F32(side), [PERIDOT_KV_Q8_0] = PD_KV_Q8_0(side),
        [PERIDOT_KV_Q8_0_Q4_1] = PD_KV_Q8_0_Q4_1(side), [PERIDOT_KV_Q5_1] = PD_KV_Q5_1(side),
        [PERIDOT_KV_Q4_1] = PD_KV_Q4_1(side)};
    return forms[type];
}

uint32_t pd_kv_head_size(peridot_kv_type type, int side, uint32_t head_dim)
{
    return 4 * PD_KV_WORDS(pd_kv_form(type, side), head_dim);
}

/* Where v begins among the heads of qkv; 0: there are neither k nor v. */
static uint32_t v_head(const struct pd_heads *h)
{
    return h->shares_kv ? 0 : h->v_is_k ? h->n_heads : h->n_heads + h->n_kv_heads;
}

static uint32_t norms_of(const struct pd_heads *h)
{
    return (h->q_norm ? PD_NORM_QK : 0) | (h->v_norm ? PD_NORM_V : 0);
}

void pd_op_rope(struct pd_recorder *r, const struct pd_attention *a)
{
    const struct pd_heads *h = &a->heads;
    uint32_t spec[] = {h->head_dim >= 128 ? 64 : 32, h->head_dim, norms_of(h)};
    struct pd_rope_push push = {.places = a->places, .qkv = a->qkv.address, .angles = a->angles, .w_q = h->q_norm,
        .w_k = h->k_norm, .k_cache = a->kv.k, .v_cache = a->kv.v, .pages = a->kv.pages, .qkv_stride = a->qkv.stride,
        .n_heads = h->n_heads, .n_kv_heads = h->n_kv_heads, .v_head = v_head(h), .eps = h->eps};
    uint32_t n_heads = h->shares_kv ? h->n_heads : h->n_heads + 2 * h->n_kv_heads;
    dispatch(r, kernel(r, pd_kernel_of(PD_KERNELS_rope, a->kv.type), spec, 3), &push, n_heads, a->n_tokens, 1);
    barrier(r);
}

/* How attention is laid out over workgroups: each takes n_heads query heads of n_tokens positions. */
struct attention_plan {
    enum pd_variant variant;
    uint32_t n_heads, n_tokens;
};

#define TILE_QUERIES 32

static const uint32_t attention_queries[PD_N_VARIANTS] = {   /* most queries of a workgroup */
    [PD_VARIANT_ATTENTION_ROWS] = 4, [PD_VARIANT_ATTENTION_COOP] = TILE_QUERIES,
    [PD_VARIANT_ATTENTION_HALF] = TILE_QUERIES, [PD_VARIANT_ATTENTION_TILE] = TILE_QUERIES,
    [PD_VARIANT_ATTENTION_COLUMNS] = 8,
};

#define FEW_QUERIES 8   /* positions that are not worth a tile */

/* So many positions, as pictures have, are worth the 2 s that llvmpipe takes to compile for more queries at once, in
 * place of 1 s: as it loads keys and values lane by lane, 16 give 6.1 Gflop/s, 4 give 3.5 (heads of 72, 4096 keys). */
#define MANY_TOKENS 1025
#define MANY_QUERIES 16

static bool is_tile(enum pd_variant v)
{
    return v == PD_VARIANT_ATTENTION_COOP || v == PD_VARIANT_ATTENTION_HALF || v == PD_VARIANT_ATTENTION_TILE;
}

/* How the subgroups of a workgroup of attention_coop share a head: slice, the elements at a time, of which each keeps
 * its part for 32 queries in registers. Small subgroups have few. */
struct coop_shape {
    uint32_t subgroups, workgroup, slice;
};

static uint64_t coop_shared_size(uint32_t head_dim, struct coop_shape s)
{
    uint64_t vec4s = TILE_QUERIES * (head_dim / 8 + 1) + TILE_QUERIES * (PD_PAGE / 4 + 1)
        + pd_max(PD_PAGE * (s.slice / 8 + 1), s.slice * (PD_PAGE / 8 + 1));
    return 16 * vec4s + 4 * (s.workgroup + 2 * TILE_QUERIES);
}

static struct coop_shape coop_shape_of(const peridot_device_info *d, uint32_t head_dim)
{
    struct coop_shape s;
    for (s.slice = head_dim % 128 == 0 ? 128 : 64;; s.slice = 64) {
        uint32_t lanes = d->matrix_subgroup_size;
        s.subgroups = lanes < 32 ? (uint32_t)pd_min(s.slice / d->matrix_m, 256 / lanes) : 4;
        s.workgroup = s.subgroups * lanes;
        if (s.slice == 64 || coop_shared_size(head_dim, s) <= d->max_shared_size) return s;
    }
}

/* Whether they can share the scores of a tile, its elements and its loads evenly, and shared memory has room. */
static bool coop_fits(const peridot_device_info *d, uint32_t head_dim)
{
    if (head_dim % 64 != 0 || head_dim > 512) return false;
    struct coop_shape s = coop_shape_of(d, head_dim);
    /* registers: of Intel's, 32 sums of an invocation and its 16 scores of a softmax spill 18 at most */
    if (d->vendor_id == INTEL && (head_dim > s.workgroup || s.workgroup < 4 * TILE_QUERIES)) return false;
    uint32_t keys = PD_PAGE / d->matrix_m, down = (uint32_t)pd_min(s.subgroups, keys), across = s.subgroups / down;
    return head_dim / s.slice <= 4 && s.subgroups % down == 0 && keys % down == 0
        && TILE_QUERIES / d->matrix_n % across == 0 && s.slice % (s.subgroups * d->matrix_m) == 0
        && 2 * s.slice % s.workgroup == 0 && s.workgroup % TILE_QUERIES == 0
        && s.workgroup <= d->max_workgroup_invocations && coop_shared_size(head_dim, s) <= d->max_shared_size;
}

/* In a decode step kernels of all types are to be right, whatever the cache's: its grid is made before the type is
 * known. */
static enum pd_variant working_variant(const struct pd_recorder *r, const peridot_kv_type *type)
{
    enum pd_variant v = r->variants.of[PD_VARIED_ATTENTION];
    for (uint32_t t = 0; t < PD_N_KV_TYPES; t++)
        if (!type || *type == t) v = choose_variant(r, PD_VARIED_ATTENTION, v, t);
    return v;
}

/* Lanes that take keys of their own take elements of the head in fours, in a decode step all as many, and tiles are of
 * vec4s, or of eight halves. type: NULL in a decode step. */
static enum pd_variant attention_variant(const struct pd_recorder *r, const struct pd_heads *heads, uint32_t n_tokens,
                                         const peridot_kv_type *type)
{
    enum pd_variant v = working_variant(r, type);
    bool same = r->variants.batch_invariant || r->variants.forced[PD_VARIED_ATTENTION];
    bool few = !type || (n_tokens < FEW_QUERIES && !same);
    if (v == PD_VARIANT_ATTENTION_COOP && !coop_fits(pd_gpu_info(r->gpu), heads->head_dim))
        v = pd_variant_after(r->gpu, v, type ? *type : PERIDOT_KV_F16);
    if (v == PD_VARIANT_ATTENTION_HALF && heads->head_dim % 8 != 0) v = PD_VARIANT_ATTENTION_TILE;
    if (is_tile(v) && (few || heads->head_dim % 4 != 0)) v = PD_VARIANT_ATTENTION_COLUMNS;
    if (v == PD_VARIANT_ATTENTION_ROWS && heads->head_dim % (type ? 4 : 4 * pd_max(subgroup_size(r), 8)) != 0)
        v = PD_VARIANT_ATTENTION_COLUMNS;
    return v;
}

/* Heads that share a kv head, as many as fit: a tile has a number of rows to fill, the others 16 KiB for q. */
static struct attention_plan plan_attention(const struct pd_recorder *r, const struct pd_heads *heads,
                                            uint32_t n_tokens, const peridot_kv_type *type)
{
    enum pd_variant v = attention_variant(r, heads, n_tokens, type);
    uint32_t most = v == PD_VARIANT_ATTENTION_ROWS && n_tokens >= MANY_TOKENS ? MANY_QUERIES : attention_queries[v];
    uint32_t group = heads->n_heads / heads->n_kv_heads, n = group < most ? group : most;
    while (n > 1 && (group % n != 0 || (is_tile(v) ? most % n != 0 : n * heads->head_dim > 4096))) n--;
    return (struct attention_plan){.variant = v, .n_heads = n,
        .n_tokens = !type || v == PD_VARIANT_ATTENTION_COLUMNS ? 1 : most / n};
}

uint32_t pd_attention_groups(const struct pd_recorder *r, const struct pd_heads *heads)
{
    return heads->n_heads / plan_attention(r, heads, 1, NULL).n_heads;
}

static const struct pd_kernel *attention_kernel(struct pd_recorder *r, const struct attention_plan *plan,
                                                const struct pd_kv *kv, const struct pd_heads *heads, bool decode)
{
    uint32_t norms = decode ? norms_of(heads) : 0;
    enum pd_kernel_id id = pd_variant_kernel(plan->variant, kv->type);
    uint32_t dim = heads->head_dim, group = heads->n_heads / heads->n_kv_heads, lanes = subgroup_size(r);
    uint32_t with_sinks = heads->sinks && !decode ? PD_SINKS_ID + 1 : 0;
    if (plan->variant == PD_VARIANT_ATTENTION_COOP) {
        const peridot_device_info *d = pd_gpu_info(r->gpu);
        struct coop_shape s = coop_shape_of(d, dim);
        uint32_t spec[] = {s.workgroup, dim, plan->n_heads, group, d->matrix_subgroup_size, d->matrix_m, d->matrix_n,
            d->matrix_k, [PD_SINKS_ID] = with_sinks != 0, s.slice};
        return kernel(r, id, spec, PD_COUNT(spec));
    }
    if (is_tile(plan->variant)) {
        uint32_t spec[] = {dim > 128 ? 256 : 128, dim, plan->n_heads, group, [PD_SINKS_ID] = true};
        return kernel(r, id, spec, with_sinks ? with_sinks : 4);
    }
    if (plan->variant == PD_VARIANT_ATTENTION_ROWS) {
        uint32_t spec[] = {lanes, dim, plan->n_heads, group, plan->n_tokens, decode, norms, lanes, true};
        return kernel(r, id, spec, with_sinks ? with_sinks : 8);
    }
    uint32_t workgroup = (uint32_t)pd_max(dim > 256 ? 256 : dim == 256 ? 128 : 64, lanes);
    uint32_t spec[] = {workgroup, dim, plan->n_heads, group, (uint32_t)pd_div_up(dim / 2, workgroup), decode, norms,
        [PD_SINKS_ID] = true};
    return kernel(r, id, spec, with_sinks ? with_sinks : 7);
}

static struct pd_attention_push attention_push(const struct pd_attention *a, struct pd_rows y)
{
    return (struct pd_attention_push){.places = a->places, .q = a->qkv.address, .k_cache = a->kv.k, .v_cache = a->kv.v,
        .pages = a->kv.pages, .angles = a->angles, .w_q = a->heads.q_norm, .w_k = a->heads.k_norm, .y = y.address,
        .sinks = a->heads.sinks,
        .q_stride = a->qkv.stride, .y_stride = y.stride, .n_tokens = a->n_tokens, .n_kv_heads = a->heads.n_kv_heads,
        .window = a->heads.window, .v_head = v_head(&a->heads), .scale = a->heads.scale, .softcap = a->heads.softcap,
        .eps = a->heads.eps};
}

void pd_op_attention(struct pd_recorder *r, const struct pd_attention *a)
{
    struct attention_plan plan = plan_attention(r, &a->heads, a->n_tokens, &a->kv.type);
    const struct pd_kernel *k = attention_kernel(r, &plan, &a->kv, &a->heads, false);
    uint64_t work = 2 * (uint64_t)a->heads.n_heads * a->heads.head_dim * a->n_keys;
    uint32_t unit = (uint32_t)pd_min(plan.n_tokens, PART_ROWS), n_parts = count_parts(r, a->n_tokens, work, unit);
    for (uint32_t i = 0; i < n_parts; i++) {
        uint32_t first = part_begin(a->n_tokens, n_parts, i, unit);
        struct pd_attention part = *a;
        part.n_tokens = part_begin(a->n_tokens, n_parts, i + 1, unit) - first;
        part.qkv = pd_rows_at(a->qkv, first, 0);
        part.places += first * sizeof(struct pd_place);
        struct pd_attention_push push = attention_push(&part, pd_rows_at(a->y, first, 0));
        dispatch(r, k, &push, a->heads.n_heads / plan.n_heads, 1, (uint32_t)pd_div_up(part.n_tokens, plan.n_tokens));
        end_part(r, part.n_tokens * work);
    }
    barrier(r);
}

/* A token's keys must be in the cache before a later one of its sequence reads them: with a window of one position the
 * kernel computes and writes the token's own key and value, and reads no others. The dispatch after this one writes
 * them again, with the same bits. */
static void write_keys(struct pd_recorder *r, const struct pd_kernel *k, struct pd_attention_push push, uint32_t groups)
{
    push.window = 1;
    dispatch(r, k, &push, groups, 1, push.n_tokens);
    barrier(r);
}

void pd_op_attention_decode(struct pd_recorder *r, const struct pd_attention *a)
{
    struct pd_attention_push push = attention_push(a, (struct pd_rows){.address = a->partial});
    struct attention_plan plan = plan_attention(r, &a->heads, 1, NULL);
    const struct pd_kernel *k = attention_kernel(r, &plan, &a->kv, &a->heads, true);
    if (a->consecutive && !a->heads.shares_kv) write_keys(r, k, push, a->heads.n_heads / plan.n_heads);
    uint64_t grid = offsetof(struct pd_step, dispatch) + a->kind * sizeof ((struct pd_step *)0)->dispatch[0];
    if (k && r->commands) pd_dispatch_indirect(r->commands, k, &push, a->step, grid);
    barrier(r);
    struct pd_attention_reduce_push reduce = {.places = a->places, .partial = a->partial, .y = a->y.address,
        .sinks = a->heads.sinks, .head_dim = a->heads.head_dim, .y_stride = a->y.stride};
    /* A subgroup reads all splits: in a smaller workgroup it would have too few invocations for that. */
    uint64_t least = pd_min(subgroup_size(r), PD_MAX_SPLITS);
    uint32_t spec[] = {(uint32_t)pd_max(pd_min(pd_align(a->heads.head_dim, 32), 256), least), true};
    dispatch(r, kernel(r, PD_KERNEL_attention_reduce, spec, a->heads.sinks ? 2 : 1), &reduce, a->heads.n_heads,
             a->n_tokens, 1);
    barrier(r);
}

struct pd_place pd_decode_place(uint32_t pos, uint32_t window, uint32_t split_pages)
{
    uint32_t lowest = window && pos + 1 > window ? pos + 1 - window : 0, n_pages = pos / PD_PAGE - lowest / PD_PAGE + 1;
    struct pd_place place = {.pos = pos, .last = pos,
        .split_pages = (uint32_t)pd_max(split_pages, pd_div_up(n_pages, PD_MAX_SPLITS))};
    place.n_splits = (uint32_t)pd_div_up(n_pages, place.split_pages);
    return place;
}
