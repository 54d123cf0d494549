/* Linear recurrences: the gated delta rule and Mamba-2's, with the convolution before it and the norm and gate after
 * it; and short convolutions, which have gates and no rule. One kernel walks the rows of a run with the state in
 * registers, for a decode step and a prompt alike: a row's result is the same however a text is cut into passes, and
 * whatever other rows there are. */
#include "ops/ops_.h"

#include "base/base.h"

uint64_t pd_state_size(uint32_t n_v, uint32_t d_k, uint32_t d_v) { return sizeof(float) * n_v * d_k * d_v; }

uint64_t pd_tail_size(uint32_t n_channels, uint32_t conv) { return sizeof(float) * n_channels * (conv - 1); }

static uint32_t n_channels(const struct pd_recurrence *c) { return 2 * c->n_k * c->d_k + c->n_v * c->d_v; }

/* Of x: where the parts begin that the convolution, the norm and the rule read. Mamba-2 has z first, and no b. */
static uint32_t at_conv(const struct pd_recurrence *c) { return c->mamba ? c->n_v * c->d_v : 0; }
static uint32_t at_z(const struct pd_recurrence *c) { return c->mamba ? 0 : n_channels(c); }
static uint32_t at_gates(const struct pd_recurrence *c) { return n_channels(c) + c->n_v * c->d_v; }

static void convolve(struct pd_recorder *r, const struct pd_recurrence *c)
{
    uint32_t n = n_channels(c), spec[] = {64, c->conv, c->row_states != 0, 0, c->conv_bias != 0};
    struct pd_conv_push push = {.runs = c->runs, .x = pd_rows_at(c->x, 0, at_conv(c)).address, .y = c->qkv.address,
        .w = c->w_conv, .bias = c->conv_bias, .tails = c->tails, .row_states = c->row_states, .n = n,
        .x_stride = c->x.stride, .y_stride = c->qkv.stride, .tail_size = (uint32_t)pd_tail_size(n, c->conv)};
    dispatch(r, kernel(r, PD_KERNEL_conv, spec, PD_COUNT(spec)), &push, (uint32_t)pd_div_up(n, spec[0]), c->n_runs, 1);
    barrier(r);
}

void pd_op_short_conv(struct pd_recorder *r, const struct pd_short_conv *c)
{
    uint32_t spec[] = {64, c->conv, c->row_states != 0, 1, 0};
    struct pd_conv_push push = {.runs = c->runs, .x = c->x.address, .y = c->y.address, .w = c->w, .tails = c->tails,
        .row_states = c->row_states, .n = c->n, .x_stride = c->x.stride, .y_stride = c->y.stride,
        .tail_size = (uint32_t)pd_tail_size(c->n, c->conv)};
    dispatch(r, kernel(r, PD_KERNEL_conv, spec, PD_COUNT(spec)), &push, (uint32_t)pd_div_up(c->n, spec[0]), c->n_runs,
             1);
    barrier(r);
    end_part(r, (uint64_t)c->n_rows * c->n * c->conv);
}

/* A column's elements are shared out to eight invocations, or to a subgroup that has fewer. A subgroup of as many is
 * best, as it needs no shared memory; Intel's GPUs have it. On a CPU, which gains nothing from many of them,
 * invocations take four columns each. */
static void apply_rule(struct pd_recorder *r, const struct pd_recurrence *c)
{
    const peridot_device_info *d = pd_gpu_info(r->gpu);
    bool cpu = d->type == PERIDOT_DEVICE_CPU;
    uint32_t parts = (uint32_t)pd_min(d->subgroup_size, 8), workgroup = cpu ? parts : 64, each = cpu ? 4 : 1;
    bool subgroups = parts == d->subgroup_size || (d->subgroup_size_control && d->min_subgroup_size <= parts);
    uint32_t spec[] = {workgroup, c->d_k, parts, c->row_states != 0, subgroups, c->mamba, each,
        [PD_SUBGROUP_ID] = subgroups ? parts : 0};
    struct pd_delta_push push = {.runs = c->runs, .x = c->qkv.address,
        .gates = pd_rows_at(c->x, 0, at_gates(c)).address, .dt = c->dt, .decay = c->decay, .skip = c->skip,
        .y = c->y.address, .states = c->states, .row_states = c->row_states, .n_k = c->n_k, .n_v = c->n_v,
        .d_v = c->d_v, .n_beside = c->mamba || c->grouped ? c->n_v / c->n_k : 1, .x_stride = c->qkv.stride,
        .gates_stride = c->x.stride, .y_stride = c->y.stride,
        .state_size = (uint32_t)pd_state_size(c->n_v, c->d_k, c->d_v)};
    uint32_t n_groups = c->n_v * (uint32_t)pd_div_up(c->d_v, workgroup / parts * each);
    dispatch(r, kernel(r, PD_KERNEL_delta, spec, PD_COUNT(spec)), &push, n_groups, c->n_runs, 1);
    barrier(r);
}

static void norm_heads(struct pd_recorder *r, const struct pd_recurrence *c)
{
    uint32_t n = c->mamba ? c->n_v / c->n_k * c->d_v : c->d_v;   /* columns that are normed as one */
    uint32_t n_groups = c->n_v * c->d_v / n, spec[] = {n > 1024 ? 128 : n > 32 ? 64 : 32, c->mamba};
    struct pd_delta_norm_push push = {.y = c->y.address, .z = pd_rows_at(c->x, 0, at_z(c)).address,
        .w = c->w_norm, .n = n, .y_stride = c->y.stride, .z_stride = c->x.stride, .eps = c->eps};
    dispatch(r, kernel(r, PD_KERNEL_delta_norm, spec, PD_COUNT(spec)), &push, n_groups, c->n_rows, 1);
    barrier(r);
}

void pd_op_recur(struct pd_recorder *r, const struct pd_recurrence *c)
{
    convolve(r, c);
    apply_rule(r, c);
    norm_heads(r, c);
    end_part(r, (uint64_t)c->n_rows * c->n_v * c->d_v * 4 * c->d_k);
}
