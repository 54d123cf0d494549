/* The residual stream of a pass: the rows x that blocks read through a norm and add a branch to. A branch is added, and
 * the sum normed, where the next matrix reads the stream: in that matrix's own kernel in a decode step of one row
 * (pd_fused_norm), so that neither takes a dispatch; in one dispatch before it in all other passes. The bits are the
 * same. A stream is a value of the thread that records the pass. */
#ifndef PD_OPS_STREAM_H
#define PD_OPS_STREAM_H

#include "ops/ops.h"

struct pd_stream {
    struct pd_rows x;          /* [n_rows][n] */
    struct pd_rows x_other;    /* [1][n]: where a fused kernel leaves the sum, as x is still read; both then swap */
    struct pd_rows normed;     /* [n_rows][n]: what matrices read where the norm has a dispatch of its own */
    uint32_t n_rows, n;
    float eps;
    /* What is still to be done: x = (x + (w_post ? rms(branch) * w_post : branch)) * x_scale, unless branch has no
     * address; then matrices read rms(x) * w. */
    struct pd_rows branch;     /* [n_rows][n] */
    uint64_t w_post, w;        /* [n] */
    float x_scale;
    uint64_t normed_with;      /* the w by which normed holds the present x; 0: it does not */
    bool ends;                 /* nothing reads x after the next matrix, which leaves the normed rows in `normed` */
};

/* The branch is to be added: see pd_stream. None may be pending. */
void pd_stream_add(struct pd_stream *s, struct pd_rows branch, uint64_t w_post, float x_scale);
/* What reads the stream from now on reads rms(x) * w, or where w is 0, x. */
void pd_stream_norm(struct pd_stream *s, uint64_t w);
/* For the last time: whoever reads it, the normed rows are in s->normed afterwards. */
void pd_stream_norm_last(struct pd_stream *s, uint64_t w);

/* y[m] = linear(rms(x[m]) s->w), linear(x[m]) where that is 0 */
void pd_op_linear_stream(struct pd_recorder *r, struct pd_rows y, const struct pd_linear *linear, struct pd_stream *s);
/* y[m] = act(gate(rms(x[m]) s->w)) * up(rms(x[m]) s->w): see pd_op_fused_norm_gated. */
void pd_op_gated_stream(struct pd_recorder *r, struct pd_rows y, const struct pd_linear *linear, struct pd_stream *s,
                        uint32_t activation, struct pd_rows both);
/* Adds what is pending to s->x. */
void pd_op_stream_add(struct pd_recorder *r, struct pd_stream *s);
/* And leaves rms(x) * s->w in s->normed. */
void pd_op_stream_norm(struct pd_recorder *r, struct pd_stream *s);

#endif
