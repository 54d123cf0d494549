#version 460
/* y[m][c] = silu(sum over j of w[c][j] x[m - WIDTH + 1 + j][c]): a causal convolution of each channel over the rows of
 * a run; BIASED: of bias[c] and that. GATED: rows have three parts b, c and h of n columns, and y = c times the sum, of
 * b h in the place of x.
 * What was before a run's first row is in a state's tail, or zeros; the last rows go to the tail of another state; with
 * KEEPS what they would be after each row, to one of its own. An invocation takes a channel through a run, so that its
 * sums do not depend on how rows are cut into runs. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "act.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint WIDTH = 4;
layout(constant_id = 2) const bool KEEPS = false;
layout(constant_id = 3) const bool GATED = false;
layout(constant_id = 4) const bool BIASED = false;
layout(push_constant) uniform Push { pd_conv_push p; };

void main()
{
    uint c = gl_GlobalInvocationID.x;
    if (c >= p.n) return;
    pd_state_run run = p.runs.at[gl_WorkGroupID.y];
    float seen[WIDTH], w[WIDTH];   /* the last one of `seen` is the row's own */
    float bias = BIASED ? p.bias.at[c] : 0.0;
    pd_floats from = pd_floats(address_of(p.tails, run.from == PD_NO_STATE ? run.to : run.from, p.tail_size)),
              to = pd_floats(address_of(p.tails, run.to, p.tail_size));
    [[unroll]] for (uint j = 0; j < WIDTH; j++) w[j] = p.w.at[c * WIDTH + j];
    [[unroll]] for (uint j = 1; j < WIDTH; j++) seen[j] = run.from == PD_NO_STATE ? 0.0 : from.at[(j - 1) * p.n + c];
    for (uint m = run.first; m < run.first + run.n; m++) {
        float sum = bias;
        [[unroll]] for (uint j = 1; j < WIDTH; j++) seen[j - 1] = seen[j];
        uint at = m * p.x_stride + c;
        seen[WIDTH - 1] = GATED ? p.x.at[at] * p.x.at[at + 2 * p.n] : p.x.at[at];
        [[unroll]] for (uint j = 0; j < WIDTH; j++) sum += w[j] * seen[j];
        p.y.at[m * p.y_stride + c] = GATED ? p.x.at[at + p.n] * sum : silu(sum);
        if (!KEEPS || m + 1 == run.first + run.n) continue;
        pd_floats kept = pd_floats(address_of(p.tails, p.row_states.at[m], p.tail_size));
        [[unroll]] for (uint j = 1; j < WIDTH; j++) kept.at[(j - 1) * p.n + c] = seen[j];
    }
    [[unroll]] for (uint j = 1; j < WIDTH; j++) to.at[(j - 1) * p.n + c] = seen[j];
}
