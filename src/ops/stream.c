/* The residual stream of a pass: the rows x that blocks read through a norm and add a branch to. A branch is added, and
 * the sum normed, where the next matrix reads the stream: in that matrix's own kernel in a decode step of one row
 * (pd_fused_norm), so that neither takes a dispatch; in one dispatch before it in all other passes. The bits are the
 * same. A stream is a value of the thread that records the pass. */
#include "ops/ops.h"

#include <assert.h>

void pd_residual_add(struct pd_residual *s, struct pd_rows branch, uint64_t w_post, float x_scale)
{
    assert(!s->branch.address);
    s->branch = branch;
    s->w_post = w_post;
    s->x_scale = x_scale;
}

void pd_residual_norm(struct pd_residual *s, uint64_t w) { s->w = w; }

void pd_residual_norm_last(struct pd_residual *s, uint64_t w)
{
    s->w = w;
    s->ends = true;
}

/* Every workgroup norms the row for itself, which is worth a dispatch only if there is one. Adapters and sums of
 * squares read it, too. */
static bool fuses(const struct pd_recorder *r, const struct pd_linear *linear, const struct pd_residual *s)
{
    bool one_reads = !linear->lora && !linear->squares;
    return s->w && s->n_rows == 1 && r->decode && !r->chunk && one_reads && pd_can_fuse_norm(r->gpu, s->n);
}

/* ---- a dispatch for the norm ---- */

static void add_and_norm(struct pd_recorder *r, struct pd_residual *s, uint64_t w)
{
    const struct pd_norm norm = {.x = s->x, .y = s->branch, .normed = s->normed, .w_post = s->w_post, .w = w, .n = s->n,
        .eps = s->eps, .x_scale = s->x_scale};
    if (s->branch.address || s->normed_with != w) pd_op_rmsnorm(r, &norm, s->n_rows);
    s->branch.address = 0;
    s->w_post = 0;
    s->normed_with = w;
}

void pd_op_stream_add(struct pd_recorder *r, struct pd_residual *s) { add_and_norm(r, s, 0); }

void pd_op_stream_norm(struct pd_recorder *r, struct pd_residual *s) { add_and_norm(r, s, s->w); }

static struct pd_rows rows_to_read(struct pd_recorder *r, struct pd_residual *s)
{
    pd_op_stream_norm(r, s);
    return s->w ? s->normed : s->x;
}

/* ---- in the kernel of the matrix ---- */

/* Leaves in s what the stream is after the kernel. */
static struct pd_fused_norm fuse(struct pd_residual *s)
{
    struct pd_fused_norm in = {.x = s->x.address, .branch = s->branch.address, .w_post = s->w_post, .w = s->w,
        .n = s->n, .eps = s->eps, .x_scale = s->x_scale};
    if (s->ends) in.normed = s->normed.address;
    else if (s->branch.address) {
        struct pd_rows sum = s->x_other;
        in.x_out = sum.address;
        s->x_other = s->x;
        s->x = sum;
    }
    s->branch.address = 0;
    s->w_post = 0;
    s->normed_with = s->ends ? s->w : 0;
    return in;
}

/* ---- either ---- */

void pd_op_linear_stream(struct pd_recorder *r, struct pd_rows y, const struct pd_linear *linear, struct pd_residual *s)
{
    if (fuses(r, linear, s)) {
        const struct pd_fused_norm in = fuse(s);
        pd_op_fused_norm_linear(r, y, linear, &in);
        return;
    }
    pd_op_linear(r, y, linear, rows_to_read(r, s), s->n_rows);
}

void pd_op_gated_stream(struct pd_recorder *r, struct pd_rows y, const struct pd_linear *linear, struct pd_residual *s,
                        uint32_t activation, struct pd_rows both)
{
    if (fuses(r, linear, s)) {
        const struct pd_fused_norm in = fuse(s);
        pd_op_fused_norm_gated(r, y, linear, &in, activation, both);
        return;
    }
    pd_op_linear(r, both, linear, rows_to_read(r, s), s->n_rows);
    const struct pd_glu glu = pd_glu_of_halves(y, both, linear->w.n_rows / 2, activation);
    pd_op_glu(r, &glu, s->n_rows);
}
