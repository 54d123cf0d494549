/* The operations of the forward pass: each picks a kernel for its shapes and types and records one dispatch (or one per
 * slice of a matrix). The first failure is kept in the recorder, so that forward.c reads without checks. Every
 * operation that follows another waits for it (one barrier). A recorder belongs to the thread that records a pass; it
 * owns nothing. */
#include "ops/ops.h"

#include "base/base.h"
#include "ops/ops_.h"

#include <math.h>

void pd_op_copy(struct pd_recorder *r, struct pd_span to, uint64_t to_offset, struct pd_span from, uint64_t from_offset,
                uint64_t size)
{
    if (r->commands) pd_copy(r->commands, to, to_offset, from, from_offset, size);
    barrier(r);
}

void pd_op_embed(struct pd_recorder *r, const struct pd_embed *e, uint32_t n_tokens)
{
    const struct pd_matrix *m = e->table->matrix;
    struct pd_embed_push push = {.slices = e->table->addresses.address, .tokens = e->tokens, .x = e->x.address,
        .embedded = e->embedded, .rows_per_slice = e->table->rows_per_slice, .row_size = m->slices[0].row_size,
        .n_cols = m->n_cols, .x_stride = e->x.stride, .scale = e->scale};
    dispatch(r, kernel_of(r, pd_kernel_of(PD_KERNELS_embed, m->slices[0].dtype), m->slices, 0, 0, NULL, 0), &push, 1,
             n_tokens, 1);
    barrier(r);
}

void pd_op_rmsnorm(struct pd_recorder *r, const struct pd_norm *norm, uint32_t n_tokens)
{
    const peridot_device_info *d = pd_gpu_info(r->gpu);
    bool cpu = d->type == PERIDOT_DEVICE_CPU;   /* where invocations take turns at each barrier */
    uint32_t size = cpu ? d->subgroup_size : norm->n > 512 ? 256 : 64;
    uint32_t spec[] = {size, norm->y.address != 0, norm->w_post != 0, norm->w != 0};
    struct pd_rmsnorm_push push = {.x = norm->x.address, .y = norm->y.address, .w_post = norm->w_post, .w = norm->w,
        .normed = norm->normed.address, .n = norm->n, .stride = norm->x.stride, .eps = norm->eps,
        .x_scale = norm->x_scale};
    dispatch(r, kernel(r, PD_KERNEL_rmsnorm, spec, 4), &push, n_tokens, 1, 1);
    barrier(r);
}

#define MATVEC_ROWS 4        /* of several tokens: rows that a subgroup (or lane) multiplies at a time */
#define MATVEC_COLS 8        /* tokens at a time, when there are several: each decoded weight serves them all */
#define MATVEC_LANE_COLS 4   /* the same where lanes take rows: what a lane's registers hold */

#define MATVEC_PREFETCH (1 << 18)   /* bytes of a matrix that a CPU's own cache does not keep until the next step */

/* What surrounds the matrix: the values of matvec.comp's constants. */
struct matvec_mode {
    uint32_t norm_vec4s, branch, store, glu;
};

/* Several tokens at a time fill the registers: tunings are for one. */
static struct pd_tuning matvec_tuning(const struct pd_recorder *r, enum pd_kernel_id id,
                                      const struct pd_matvec_push *push, struct matvec_mode mode, bool by_one)
{
    enum pd_use use = mode.glu ? PD_USE_GATED : mode.norm_vec4s ? PD_USE_NORMED : PD_USE_PLAIN;
    const peridot_device_info *d = pd_gpu_info(r->gpu);
    const struct pd_tunings *tunings = by_one ? r->variants.tunings : NULL;
    struct pd_tuning tuning = pd_tuning_get(tunings, d, id, use, push->n_rows);
    if (!by_one) tuning.rows = MATVEC_ROWS;
    if (r->variants.batch_invariant) tuning.subgroup = pd_tuning_default(d, id, use).subgroup;   /* one order of sums */
    return tuning;
}

uint32_t pd_decode_columns(const struct pd_variants *variants)
{
    return variants->of[PD_VARIED_MATVEC] == PD_VARIANT_MATVEC_ROWS ? MATVEC_LANE_COLS : MATVEC_COLS;
}

/* n_slots: of experts; 1 where there are none. n_each: tokens of each in the mean. A matrix whose tokens are several
 * takes MATVEC_COLS at a time, each weight being decoded for as many; where there is but one, that is about three times
 * the work. */
static void matvec(struct pd_recorder *r, const struct pd_slice *slice, const struct pd_matvec_push *push,
                   struct matvec_mode mode, uint32_t n_slots, uint32_t n_each)
{
    enum pd_variant v = r->variants.of[PD_VARIED_MATVEC];
    bool by_one = n_each == 1;
    /* several tokens fill its registers */
    if (v == PD_VARIANT_MATVEC_DOT && !by_one) v = PD_VARIANT_MATVEC_COLUMNS;
    v = choose_variant(r, PD_VARIED_MATVEC, v, (uint32_t)slice->dtype);
    bool rows = v == PD_VARIANT_MATVEC_ROWS, cpu = pd_gpu_info(r->gpu)->type == PERIDOT_DEVICE_CPU;
    uint32_t cols = by_one ? 1 : rows ? MATVEC_LANE_COLS : MATVEC_COLS;
    enum pd_kernel_id id = pd_variant_kernel(v, (uint32_t)slice->dtype);
    struct pd_tuning t = matvec_tuning(r, id, push, mode, by_one);
    uint32_t lanes = t.subgroup ? t.subgroup : subgroup_size(r);
    uint32_t at_once = (rows ? t.workgroup : t.workgroup / lanes) * (mode.glu ? t.rows / 2 : t.rows);
    uint32_t most = mode.norm_vec4s == 0 ? 65535 : cpu ? 4 * pd_n_processors() : 256;   /* each norms x for itself */
    bool prefetch = cols == 1 && slice->row_interleave > 1
        && (uint64_t)slice->n_rows * slice->row_size >= MATVEC_PREFETCH;
    uint32_t spec[] = {t.workgroup, t.rows, cols, mode.norm_vec4s, mode.branch, mode.store, mode.glu, lanes,
        rows ? prefetch : t.width, [PD_SUBGROUP_ID] = t.subgroup};
    uint32_t n_spec = t.subgroup ? PD_COUNT(spec) : 9;
    const struct pd_kernel *k = kernel_of(r, id, slice, push->bias, push->experts, spec, n_spec);
    dispatch(r, k, push, (uint32_t)pd_min(pd_div_up(push->n_rows, at_once), most), n_slots, 1);
}

/* Where a slice's rows have theirs; 0: nowhere. */
static uint64_t bias_of(const struct pd_linear *linear, const struct pd_slice *slice)
{
    return linear->bias ? linear->bias + sizeof(float) * slice->first_row : 0;
}

static struct pd_matmul_push matmul_push(struct pd_rows y, const struct pd_linear *linear,
                                         const struct pd_slice *slice, struct pd_rows x, uint32_t n_tokens)
{
    return (struct pd_matmul_push){.w = slice->address, .x = x.address, .y = pd_rows_at(y, 0, slice->first_row).address,
        .bias = bias_of(linear, slice), .row_size = slice->row_size, .n_cols = linear->w.n_cols,
        .end_col = linear->w.n_cols, .n_rows = slice->n_rows, .n_tokens = n_tokens, .x_stride = x.stride,
        .y_stride = y.stride, .softcap = linear->softcap};
}

static struct pd_matvec_push matvec_push(const struct pd_matmul_push *p)
{
    return (struct pd_matvec_push){.w = p->w, .x = p->x, .y = p->y, .bias = p->bias, .experts = p->experts,
        .row_size = p->row_size, .n_cols = p->n_cols, .n_rows = p->n_rows, .n_tokens = p->n_tokens,
        .x_stride = p->x_stride, .y_stride = p->y_stride, .softcap = p->softcap, .expert_rows = p->expert_rows,
        .x_share = p->x_share};
}

static void matmul_matvec(struct pd_recorder *r, const struct pd_product *p)
{
    const struct pd_matvec_push push = matvec_push(&p->push);
    matvec(r, p->slice, &push, (struct matvec_mode){0}, p->n_slots, p->n_each);
}

static void multiply(struct pd_recorder *r, enum pd_variant variant, const struct pd_product *p)
{
    if (variant == PD_VARIANT_MATMUL_MATVEC) matmul_matvec(r, p);
    else pd_matmul_tiles(r, variant, p);
}

/* e: of experts, or NULL. */
static bool are_few(const struct pd_recorder *r, enum pd_kernel_id tiles, uint32_t n_tokens, const struct pd_routes *e)
{
    bool same = r->chunk && r->variants.batch_invariant;   /* a prompt's rows are the same in chunks of any size */
    if (r->variants.forced[PD_VARIED_MATMUL]) return n_tokens == 1;
    if (r->decode || same) return r->decode;
    uint64_t few = pd_few_get(r->variants.tunings, tiles, e ? PD_FEW_OF_EXPERT : PD_FEW_TOKENS);
    return e ? (uint64_t)n_tokens * e->n_used <= few * e->n_experts : n_tokens <= few;
}

static enum pd_variant matmul_variant(const struct pd_recorder *r, const struct pd_linear *linear, enum pd_dtype dtype,
                                      uint32_t n_tokens, const struct pd_routes *e)
{
    enum pd_variant v = r->variants.of[PD_VARIED_MATMUL];
    if (linear->exact && v != PD_VARIANT_MATMUL_MATVEC) v = PD_VARIANT_MATMUL_TILE;
    v = choose_variant(r, PD_VARIED_MATMUL, v, (uint32_t)dtype);
    if (v == PD_VARIANT_MATMUL_MATVEC || !are_few(r, pd_variant_kernel(v, (uint32_t)dtype), n_tokens, e)) return v;
    return choose_variant(r, PD_VARIED_MATMUL, PD_VARIANT_MATMUL_MATVEC, (uint32_t)dtype);
}

bool pd_op_can_mix(const struct pd_recorder *r)
{
    return r->variants.of[PD_VARIED_MATMUL] == PD_VARIANT_MATMUL_MATVEC && r->variants.batch_invariant;
}

uint32_t pd_op_matmul_tokens(const struct pd_recorder *r)
{
    switch (r->variants.of[PD_VARIED_MATMUL]) {
    case PD_VARIANT_MATMUL_COOP: return 64;
    case PD_VARIANT_MATMUL_DOT: case PD_VARIANT_MATMUL_HALF: case PD_VARIANT_MATMUL_TILE: return 32;
    default: return pd_decode_columns(&r->variants);
    }
}

/* x is packed once for all slices that read it packed alike; before it is packed otherwise a barrier waits for
 * those. */
static void multiply_slices(struct pd_recorder *r, struct pd_rows y, const struct pd_linear *linear, struct pd_rows x,
                            uint32_t n_tokens)
{
    const struct pd_matrix *w = &linear->w;
    struct pd_rows packed = {0};
    enum pd_kernel_id packed_by = PD_N_KERNELS;
    if (linear->squares)
        pd_op_squares(r, &(struct pd_squares){.x = x, .sums = linear->squares, .n = w->n_cols, .n_tokens = n_tokens});
    for (uint32_t i = 0; i < w->n_slices; i++) {
        const struct pd_slice *slice = &w->slices[i];
        enum pd_variant variant = matmul_variant(r, linear, slice->dtype, n_tokens, NULL);
        enum pd_kernel_id by = pd_variant_pack(variant, (uint32_t)slice->dtype);
        if (by != PD_N_KERNELS && by != packed_by) {
            if (packed_by != PD_N_KERNELS) barrier(r);
            packed = pd_matmul_pack(r, by, x, w->n_cols, n_tokens);
            packed_by = by;
        }
        struct pd_rows from = by != PD_N_KERNELS ? packed : x;
        uint64_t work = (uint64_t)slice->n_rows * w->n_cols;
        uint32_t n_parts = count_parts(r, n_tokens, work, PART_ROWS);
        for (uint32_t k = 0; k < n_parts; k++) {
            uint32_t first = part_begin(n_tokens, n_parts, k, PART_ROWS);
            uint32_t n = part_begin(n_tokens, n_parts, k + 1, PART_ROWS) - first;
            const struct pd_product p = {.slice = slice, .push = matmul_push(pd_rows_at(y, first, 0), linear, slice,
                pd_rows_at(from, first, 0), n), .n_slots = 1, .n_each = n};
            multiply(r, variant, &p);
            end_part(r, n * work);
        }
    }
}

static void add_lora(struct pd_recorder *r, struct pd_rows y, const struct pd_linear *linear, uint32_t n_tokens)
{
    const struct pd_lora *l = linear->lora;
    const struct pd_lora_push push = {.parts = l->parts, .b = l->b, .t = r->lora.address, .scales = r->lora_scales,
        .y = y.address, .n_parts = l->n_parts, .n_rows = linear->w.n_rows, .n_adapters = r->n_adapters,
        .t_stride = r->lora.stride, .y_stride = y.stride};
    dispatch(r, kernel(r, PD_KERNEL_lora, NULL, 0), &push, (uint32_t)pd_div_up(linear->w.n_rows, 64), n_tokens, 1);
    end_part(r, (uint64_t)n_tokens * linear->w.n_rows * l->a.w.n_rows);
    barrier(r);
}

void pd_op_linear(struct pd_recorder *r, struct pd_rows y, const struct pd_linear *linear, struct pd_rows x,
                  uint32_t n_tokens)
{
    multiply_slices(r, y, linear, x, n_tokens);
    if (linear->lora) multiply_slices(r, r->lora, &linear->lora->a, x, n_tokens);
    barrier(r);
    if (linear->lora) add_lora(r, y, linear, n_tokens);
}

/* Where rows from this one on are a matrix; 0 where it is within a group of rows. */
static uint64_t address_of_row(const struct pd_slice *s, uint32_t row)
{
    return s->row_interleave > 1 && row % s->row_interleave != 0 ? 0 : s->address + (uint64_t)row * s->row_size;
}

/* ---- of experts ---- */

void pd_op_route(struct pd_recorder *r, const struct pd_routes *e, struct pd_rows logits, uint64_t scale)
{
    uint32_t n_pairs = e->n_tokens * e->n_used;
    struct pd_route_push route = {.logits = logits.address, .scale = scale, .biases = e->biases, .choices = e->choices,
        .n_experts = e->n_experts, .n_used = e->n_used, .stride = logits.stride};
    struct pd_route_group_push group = {.choices = e->choices, .slots = e->slots, .n_experts = e->n_experts,
        .n_pairs = n_pairs, .n_slots = (uint32_t)pd_min(e->n_experts, n_pairs)};
    uint32_t spec[] = {scale != 0, e->raw, e->sigmoid, e->biases != 0};
    dispatch(r, kernel(r, PD_KERNEL_route, spec, 4), &route, e->n_tokens, 1, 1);
    barrier(r);
    dispatch(r, kernel(r, PD_KERNEL_route_group, NULL, 0), &group, 1, 1, 1);
    barrier(r);
}

static enum pd_variant experts_variant(const struct pd_recorder *r, const struct pd_linear *linear,
                                       const struct pd_routes *e)
{
    return matmul_variant(r, linear, linear->w.slices[0].dtype, e->n_tokens, e);
}

/* An expert may have all tokens. */
static struct pd_product experts_product(struct pd_rows y, const struct pd_linear *linear, struct pd_rows x,
                                      const struct pd_routes *e, uint32_t x_share)
{
    const struct pd_slice *slice = linear->w.slices;
    uint32_t n_pairs = e->n_tokens * e->n_used;
    struct pd_product p = {.slice = slice, .push = matmul_push(y, linear, slice, x, e->n_tokens),
        .n_slots = (uint32_t)pd_min(e->n_experts, n_pairs), .n_each = (uint32_t)pd_div_up(n_pairs, e->n_experts)};
    p.push.n_rows = p.push.expert_rows = linear->w.n_rows / linear->n_experts;
    p.push.experts = e->slots;
    p.push.x_share = x_share;
    return p;
}

static void add_squares(struct pd_recorder *r, const struct pd_linear *linear, struct pd_rows x,
                        const struct pd_routes *e, uint32_t x_share)
{
    if (linear->squares)
        pd_op_squares(r, &(struct pd_squares){x, linear->squares, linear->w.n_cols, e->n_tokens, e, x_share});
}

static void end_experts(struct pd_recorder *r, const struct pd_linear *linear, const struct pd_routes *e)
{
    end_part(r, (uint64_t)e->n_tokens * e->n_used * (linear->w.n_rows / linear->n_experts) * linear->w.n_cols);
    barrier(r);
}

void pd_op_experts(struct pd_recorder *r, struct pd_rows y, const struct pd_linear *linear, struct pd_rows x,
                   const struct pd_routes *e, uint32_t x_share)
{
    enum pd_variant variant = experts_variant(r, linear, e);
    enum pd_kernel_id by = pd_variant_pack(variant, (uint32_t)linear->w.slices[0].dtype);
    add_squares(r, linear, x, e, x_share);
    if (by != PD_N_KERNELS) x = pd_matmul_pack(r, by, x, linear->w.n_cols, e->n_tokens * e->n_used / x_share);
    const struct pd_product p = experts_product(y, linear, x, e, x_share);
    multiply(r, variant, &p);
    end_experts(r, linear, e);
}

/* In one dispatch where it is by matvec, of one token or several. */
void pd_op_experts_gated(struct pd_recorder *r, const struct pd_linear *linear, const struct pd_gated *g,
                         const struct pd_routes *e)
{
    uint32_t n = linear->w.n_rows / linear->n_experts / 2;
    uint64_t up = address_of_row(linear->w.slices, n);
    if (!up || experts_variant(r, linear, e) != PD_VARIANT_MATMUL_MATVEC) {
        const struct pd_glu glu = pd_glu_of_halves(g->y, g->both, n, g->activation);
        pd_op_experts(r, g->both, linear, g->x, e, e->n_used);
        pd_op_glu(r, &glu, e->n_tokens * e->n_used);
        return;
    }
    add_squares(r, linear, g->x, e, e->n_used);
    const struct pd_product p = experts_product(g->y, linear, g->x, e, e->n_used);
    struct pd_matvec_push push = matvec_push(&p.push);
    push.n_rows = n;
    push.w_up = up;
    matvec(r, p.slice, &push, (struct matvec_mode){.glu = g->activation}, p.n_slots, p.n_each);
    end_experts(r, linear, e);
}

void pd_op_combine(struct pd_recorder *r, struct pd_rows y, struct pd_rows x, const struct pd_routes *e, uint32_t n)
{
    uint32_t spec[] = {e->shared.address != 0, e->gate.address != 0};
    struct pd_combine_push push = {.choices = e->choices, .x = x.address, .y = y.address, .beside = e->shared.address,
        .gate = e->gate.address, .n = n, .n_used = e->n_used, .x_stride = x.stride, .y_stride = y.stride,
        .beside_stride = e->shared.stride, .gate_stride = e->gate.stride};
    dispatch(r, kernel(r, PD_KERNEL_combine, spec, 2), &push, (uint32_t)pd_div_up(n, 64), e->n_tokens, 1);
    barrier(r);
}

/* ---- with the norm before a matrix ---- */

bool pd_can_fuse_norm(const struct pd_gpu *gpu, uint32_t n)
{
    uint32_t reduce_size = 2048;   /* norm.glsl, generously */
    return n % 4 == 0 && pd_align(n, PD_PAD) * sizeof(float) + reduce_size <= pd_gpu_info(gpu)->max_shared_size;
}

static struct pd_matvec_push fused_norm_push(const struct pd_fused_norm *in, uint64_t y, const struct pd_slice *slice,
                                             uint32_t n_rows)
{
    return (struct pd_matvec_push){.w = slice->address, .x = in->x, .y = y, .branch = in->branch, .w_post = in->w_post,
        .w_norm = in->w, .store = in->x_out ? in->x_out : in->normed, .row_size = slice->row_size, .n_cols = in->n,
        .n_rows = n_rows, .n_tokens = 1, .eps = in->eps, .x_scale = in->x_scale};
}

static struct matvec_mode fused_norm_mode(const struct pd_fused_norm *in)
{
    return (struct matvec_mode){.norm_vec4s = (uint32_t)pd_align(in->n, PD_PAD) / 4,
        .branch = !in->branch ? 0 : in->w_post ? 2 : 1, .store = in->x_out ? 1 : in->normed ? 2 : 0};
}

/* Several slices prepare and store the same vector; none writes what another reads. */
void pd_op_fused_norm_linear(struct pd_recorder *r, struct pd_rows y, const struct pd_linear *linear,
                             const struct pd_fused_norm *in)
{
    for (uint32_t i = 0; i < linear->w.n_slices; i++) {
        const struct pd_slice *slice = &linear->w.slices[i];
        struct pd_matvec_push push = fused_norm_push(in, pd_rows_at(y, 0, slice->first_row).address, slice,
            slice->n_rows);
        push.bias = bias_of(linear, slice);
        push.softcap = linear->softcap;
        matvec(r, slice, &push, fused_norm_mode(in), 1, 1);
    }
    barrier(r);
}

/* Where the second half of the rows begins, when one kernel can read both halves; else 0. */
static uint64_t second_half(const struct pd_matrix *w)
{
    uint32_t n = w->n_rows / 2;
    const struct pd_slice *s = w->slices;
    if (w->n_slices == 1) return address_of_row(s, n);
    return w->n_slices == 2 && s[0].n_rows == n && s[0].dtype == s[1].dtype ? s[1].address : 0;
}

void pd_op_fused_norm_gated(struct pd_recorder *r, struct pd_rows y, const struct pd_linear *linear,
                            const struct pd_fused_norm *in, uint32_t activation, struct pd_rows both)
{
    const struct pd_matrix *w = &linear->w;
    uint64_t up = second_half(w);
    if (!up) {
        pd_op_fused_norm_linear(r, both, linear, in);
        const struct pd_glu glu = pd_glu_of_halves(y, both, w->n_rows / 2, activation);
        pd_op_glu(r, &glu, 1);
        return;
    }
    struct pd_matvec_push push = fused_norm_push(in, y.address, w->slices, w->n_rows / 2);
    struct matvec_mode mode = fused_norm_mode(in);
    push.w_up = up;
    push.bias = linear->bias;
    mode.glu = activation;
    matvec(r, w->slices, &push, mode, 1, 1);
    barrier(r);
}

struct pd_glu pd_glu_of_halves(struct pd_rows y, struct pd_rows both, uint32_t n, uint32_t activation)
{
    return (struct pd_glu){y, both, pd_rows_at(both, 0, n), n, activation};
}

void pd_op_glu(struct pd_recorder *r, const struct pd_glu *g, uint32_t n_tokens)
{
    uint32_t spec[] = {64, g->activation, false};
    struct pd_glu_push push = {.gate = g->gate.address, .up = g->up.address, .y = g->y.address, .n = g->n,
        .gate_stride = g->gate.stride, .up_stride = g->up.stride, .y_stride = g->y.stride};
    dispatch(r, kernel(r, PD_KERNEL_glu, spec, g->up.address ? 2 : 3), &push, (uint32_t)pd_div_up(g->n, spec[0]),
             n_tokens, 1);
    barrier(r);
}

/* ---- of images ---- */

void pd_op_layernorm(struct pd_recorder *r, const struct pd_layernorm *norm, uint32_t n_rows)
{
    uint32_t spec[] = {norm->n > 256 ? 256 : 64};
    struct pd_layernorm_push push = {.x = norm->x.address, .y = norm->y.address, .w = norm->w, .b = norm->b,
        .n = norm->n, .x_stride = norm->x.stride, .y_stride = norm->y.stride, .eps = norm->eps};
    dispatch(r, kernel(r, PD_KERNEL_layernorm, spec, 1), &push, n_rows, 1, 1);
    barrier(r);
}

void pd_op_pool(struct pd_recorder *r, const struct pd_pool *pool, uint32_t n_rows)
{
    uint32_t spec[] = {64, pool->w != 0};
    struct pd_pool_push push = {.x = pool->x.address, .y = pool->y.address, .bias = pool->bias, .w = pool->w,
        .n = pool->n, .x_stride = pool->x.stride, .y_stride = pool->y.stride, .width = pool->width,
        .side = pool->side, .scale = pool->scale};
    dispatch(r, kernel(r, PD_KERNEL_pool, spec, 2), &push, (uint32_t)pd_div_up(pool->n, spec[0]), n_rows, 1);
    barrier(r);
}

void pd_op_squares(struct pd_recorder *r, const struct pd_squares *s)
{
    const struct pd_routes *e = s->routes;
    uint32_t spec[] = {64, [PD_EXPERTS_ID] = e != NULL};
    uint32_t n_slots = e ? (uint32_t)pd_min(e->n_experts, e->n_tokens * e->n_used) : 1;
    struct pd_squares_push push = {.x = s->x.address, .sums = s->sums, .experts = e ? e->slots : 0, .n = s->n,
        .x_stride = s->x.stride, .n_tokens = s->n_tokens, .expert_rows = 1, .x_share = s->x_share};
    dispatch(r, kernel(r, PD_KERNEL_squares, spec, e ? PD_COUNT(spec) : 1), &push,
             (uint32_t)pd_div_up(s->n + 1, spec[0]), n_slots, 1);
    barrier(r);
}

void pd_op_clamp(struct pd_recorder *r, const struct pd_clamp *c, uint32_t n_rows)
{
    uint32_t spec[] = {64};
    struct pd_clamp_push push = {.x = c->x.address, .y = c->y.address, .n = c->n, .x_stride = c->x.stride,
        .y_stride = c->y.stride, .low = c->low, .high = c->high};
    dispatch(r, kernel(r, PD_KERNEL_clamp, spec, 1), &push, (uint32_t)pd_div_up(c->n, spec[0]), n_rows, 1);
    barrier(r);
}

uint32_t pd_topk_scratch(uint32_t n)
{
    return (uint32_t)pd_div_up(n, PD_TOPK_IN) * PD_TOPK;
}

void pd_op_topk(struct pd_recorder *r, const struct pd_topk *topk)
{
    struct pd_topk_push push = {.logits = topk->logits.address, .n = topk->n, .stride = topk->logits.stride};
    uint64_t a = topk->scratch[0], b = topk->scratch[1];
    for (uint32_t first = 1;; first = 0) {
        uint32_t spec[] = {0, first}, blocks = (uint32_t)pd_div_up(push.n, PD_TOPK_IN);
        push.best = blocks == 1 ? topk->best : a;
        dispatch(r, kernel(r, PD_KERNEL_topk, spec, 2), &push, blocks, topk->n_rows, 1);
        barrier(r);
        if (blocks == 1) return;
        push.found = a;
        push.n = push.stride = blocks * PD_TOPK;
        a = b;
        b = push.found;
    }
}

void pd_op_sample(struct pd_recorder *r, const struct pd_sample_push *push, uint32_t n_rows)
{
    dispatch(r, kernel(r, PD_KERNEL_sample, NULL, 0), push, n_rows, 1, 1);
    barrier(r);
}

uint64_t pd_next_piece(uint64_t most_work, double longest)
{
    return (uint64_t)fmin(fmax((double)most_work * PD_PIECE_SECONDS / fmax(longest, 1e-6), 1), 1e18);
}
