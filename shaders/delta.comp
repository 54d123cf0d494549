#version 460
/* The gated delta rule (struct pd_delta) over the rows of a run, in their order, in fp32:
 *   S = exp(decay softplus(a + dt)) S;   S += k (sigmoid(b) (v - S^T k))^T;   y = S^T q
 * with q and k of each head of length 1, and q * D_K^-0.5. The columns of S do not depend on each other: a subgroup
 * takes four of a head through the run, and its lanes share their D_K elements, so that there is no barrier and S is
 * read and written once. y is summed of the old S, as S'^T q = g S^T q + (k . q) d, which makes all sums of a row
 * independent of each other. With KEEPS the S after each row goes to a state of its own, for drafts. Grid: [workgroups
 * for all fours of columns, runs]. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint D_K = 128;
layout(constant_id = 2) const uint LANES = 32;   /* of a subgroup */
layout(constant_id = 3) const bool KEEPS = false;
layout(push_constant) uniform Push { pd_delta_push p; };

#define EPS 1e-6   /* of the lengths of q and k */
const uint EACH = (D_K + LANES - 1) / LANES;     /* elements of a lane */

vec4 s[EACH];                                    /* element LANES * i + lane of the four columns */

/* log(1 + exp(x)); Vulkan's log is too coarse near 1. log(1 + e) = 2 atanh(e / (2 + e)), e <= 1. */
float softplus(float x)
{
    float e = exp(-min(abs(x), 80.0)), t = e / (2.0 + e), t2 = t * t, sum = 0.0;
    [[unroll]] for (int n = 15; n > 0; n -= 2) sum = sum * t2 + 1.0 / float(n);
    return max(x, 0.0) + 2.0 * t * sum;
}

/* exp(decay softplus(x)), of a decay that is not above 0. */
float decay_of(float x, float decay)
{
    float exponent = decay * softplus(x);
    return is_finite(x) && is_finite(exponent) ? exp(max(exponent, -80.0)) : NOT_A_NUMBER;
}

void main()
{
    uint fours = p.d_v / 4, unit = gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID, lane = gl_SubgroupInvocationID;
    uint head = unit / fours, four = unit % fours;
    if (head >= p.n_v) return;
    uint k_head = head % p.n_k;
    uint at_q = k_head * D_K, at_k = (p.n_k + k_head) * D_K, at_v = 2 * p.n_k * D_K + head * p.d_v + 4 * four;
    pd_state_run run = p.runs.at[gl_WorkGroupID.y];
    pd_vec4s from = pd_vec4s(address_of(p.states, run.from == PD_NO_STATE ? run.to : run.from, p.state_size));
    pd_vec4s_written to = pd_vec4s_written(address_of(p.states, run.to, p.state_size));
    [[unroll]] for (uint i = 0; i < EACH; i++) {
        uint e = LANES * i + lane;
        s[i] = run.from == PD_NO_STATE || e >= D_K ? vec4(0.0) : from.at[unit * D_K + e];
    }
    for (uint m = run.first; m < run.first + run.n; m++) {
        uint x = m * p.x_stride, gates = m * p.gates_stride + head;
        float q[EACH], k[EACH];
        vec4 sk = vec4(0.0), sq = vec4(0.0), lengths = vec4(0.0);
        [[unroll]] for (uint i = 0; i < EACH; i++) {
            uint e = LANES * i + lane;
            q[i] = e < D_K ? p.x.at[x + at_q + e] : 0.0;
            k[i] = e < D_K ? p.x.at[x + at_k + e] : 0.0;
            sk += s[i] * k[i];
            sq += s[i] * q[i];
            lengths += vec4(q[i] * q[i], k[i] * k[i], q[i] * k[i], 0.0);
        }
        sk = subgroupAdd(sk);
        sq = subgroupAdd(sq);
        lengths = subgroupAdd(lengths);
        float k_scale = rms_scale(lengths.y + EPS), q_scale = rms_scale(lengths.x + EPS) * inversesqrt(float(D_K));
        float g = decay_of(p.gates.at[gates + p.n_v] + p.dt.at[head], p.decay.at[head]);
        float beta = 1.0 / (1.0 + exp(-clamp(p.gates.at[gates], -80.0, 80.0)));
        vec4 v = vec4(p.x.at[x + at_v], p.x.at[x + at_v + 1], p.x.at[x + at_v + 2], p.x.at[x + at_v + 3]);
        vec4 d = beta * (v - g * k_scale * sk);
        vec4 y = q_scale * (g * sq + k_scale * lengths.z * d);
        [[unroll]] for (uint i = 0; i < EACH; i++) s[i] = g * s[i] + (k_scale * k[i]) * d;
        if (subgroupElect())
            for (uint c = 0; c < 4; c++) p.y.at[m * p.y_stride + head * p.d_v + 4 * four + c] = y[c];
        if (!KEEPS || m + 1 == run.first + run.n) continue;
        pd_vec4s_written kept = pd_vec4s_written(address_of(p.states, p.row_states.at[m], p.state_size));
        [[unroll]] for (uint i = 0; i < EACH; i++)
            if (LANES * i + lane < D_K) kept.at[unit * D_K + LANES * i + lane] = s[i];
    }
    [[unroll]] for (uint i = 0; i < EACH; i++)
        if (LANES * i + lane < D_K) to.at[unit * D_K + LANES * i + lane] = s[i];
}
