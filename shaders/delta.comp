#version 460
/* The gated delta rule (struct pd_delta) over the rows of a run, in their order, in fp32:
 *   S = exp(decay softplus(a + dt)) S;   S += k (sigmoid(b) (v - S^T k))^T;   y = S^T q
 * with q and k of each head of length 1, and q * D_K^-0.5; or with MAMBA the rule of Mamba-2, where these are as they
 * are, heads share keys side by side, and softplus is the step that both the decay and what is added are in:
 *   S = exp(decay softplus(a + dt)) S;   S += k (softplus(a + dt) v)^T;   y = S^T q + skip v
 * The columns of S do not depend on each other: a subgroup
 * takes some pairs of a head's through the run, and its lanes share their D_K elements, so that there is no barrier and
 * S is read and written once. y is summed of the old S, as S'^T q = g S^T q + (k . q) d, which makes all sums of a row
 * independent of each other. With KEEPS the S after each row goes to a state of its own, for drafts. S is stored in
 * fours of columns. Grid: [workgroups for all of them, runs]. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint D_K = 128;
layout(constant_id = 2) const uint LANES = 32;   /* of a subgroup */
layout(constant_id = 3) const bool KEEPS = false;
layout(constant_id = 4) const uint PAIRS = 2;    /* 1, or 2 */
layout(constant_id = 5) const bool MAMBA = false;
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer pd_vec2s { vec2 at[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) writeonly buffer pd_vec2s_written { vec2 at[]; };
layout(push_constant) uniform Push { pd_delta_push p; };

#define EPS 1e-6   /* of the lengths of q and k */
const uint EACH = (D_K + LANES - 1) / LANES;     /* elements of a lane */

vec2 s[EACH * PAIRS];                            /* element LANES * i + lane of a pair of columns, pair by pair */

/* log(1 + exp(x)); Vulkan's log is too coarse near 1. log(1 + e) = 2 atanh(e / (2 + e)), e <= 1. */
float softplus(float x)
{
    float e = exp(-min(abs(x), 80.0)), t = e / (2.0 + e), t2 = t * t, sum = 0.0;
    [[unroll]] for (int n = 15; n > 0; n -= 2) sum = sum * t2 + 1.0 / float(n);
    return max(x, 0.0) + 2.0 * t * sum;
}

/* exp(decay step), step = softplus(x), of a decay that is not above 0. */
float decay_of(float x, float decay, float step)
{
    float exponent = decay * step;
    return is_finite(x) && is_finite(exponent) ? exp(max(exponent, -80.0)) : NOT_A_NUMBER;
}

void write_state(uint state, uint at, uint lane)
{
    pd_vec2s_written to = pd_vec2s_written(address_of(p.states, state, p.state_size));
    [[unroll]] for (uint i = 0; i < EACH; i++)
        [[unroll]] for (uint c = 0; c < PAIRS; c++)
            if (LANES * i + lane < D_K) to.at[at + 2 * (LANES * i + lane) + c] = s[i * PAIRS + c];
}

void main()
{
    uint parts = p.d_v / (2 * PAIRS), unit = gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID;
    uint head = unit / parts, pair = unit % parts * PAIRS, lane = gl_SubgroupInvocationID;
    if (head >= p.n_v) return;
    uint k_head = MAMBA ? head / (p.n_v / p.n_k) : head % p.n_k, keys = MAMBA ? p.n_v * p.d_v : 0;
    uint at_q = keys + ((MAMBA ? p.n_k : 0) + k_head) * D_K, at_k = keys + ((MAMBA ? 0 : p.n_k) + k_head) * D_K;
    uint at_v = (MAMBA ? 0 : 2 * p.n_k * D_K) + head * p.d_v + 2 * pair;
    uint at_s = (head * p.d_v / 4 + pair / 2) * D_K * 2 + pair % 2;
    pd_state_run run = p.runs.at[gl_WorkGroupID.y];
    pd_vec2s from = pd_vec2s(address_of(p.states, run.from == PD_NO_STATE ? run.to : run.from, p.state_size));
    [[unroll]] for (uint i = 0; i < EACH; i++) {
        uint e = LANES * i + lane;
        [[unroll]] for (uint c = 0; c < PAIRS; c++)
            s[i * PAIRS + c] = run.from == PD_NO_STATE || e >= D_K ? vec2(0.0) : from.at[at_s + 2 * e + c];
    }
    for (uint m = run.first; m < run.first + run.n; m++) {
        uint x = m * p.x_stride, gates = m * p.gates_stride + head;
        float k[EACH];
        vec2 sk[PAIRS], sq[PAIRS];
        vec3 lengths = vec3(0.0);
        [[unroll]] for (uint c = 0; c < PAIRS; c++) sk[c] = sq[c] = vec2(0.0);
        [[unroll]] for (uint i = 0; i < EACH; i++) {
            uint e = LANES * i + lane;
            float q = e < D_K ? p.x.at[x + at_q + e] : 0.0;
            k[i] = e < D_K ? p.x.at[x + at_k + e] : 0.0;
            [[unroll]] for (uint c = 0; c < PAIRS; c++) {
                sk[c] += s[i * PAIRS + c] * k[i];
                sq[c] += s[i * PAIRS + c] * q;
            }
            lengths += vec3(q * q, k[i] * k[i], q * k[i]);
        }
        lengths = subgroupAdd(lengths);
        float k_scale = MAMBA ? 1.0 : rms_scale(lengths.y + EPS);
        float q_scale = MAMBA ? 1.0 : rms_scale(lengths.x + EPS) * inversesqrt(float(D_K));
        float a = p.gates.at[gates + (MAMBA ? 0 : p.n_v)] + p.dt.at[head], step = softplus(a);
        float g = decay_of(a, p.decay.at[head], step);
        float beta = MAMBA ? step : 1.0 / (1.0 + exp(-clamp(p.gates.at[gates], -80.0, 80.0)));
        float skip = MAMBA ? p.skip.at[head] : 0.0;
        [[unroll]] for (uint c = 0; c < PAIRS; c++) {
            vec2 v = vec2(p.x.at[x + at_v + 2 * c], p.x.at[x + at_v + 2 * c + 1]);
            vec2 d = beta * (MAMBA ? v : v - g * k_scale * subgroupAdd(sk[c]));
            vec2 y = q_scale * (g * subgroupAdd(sq[c]) + k_scale * lengths.z * d) + (MAMBA ? skip * v : vec2(0.0));
            [[unroll]] for (uint i = 0; i < EACH; i++) s[i * PAIRS + c] = g * s[i * PAIRS + c] + (k_scale * k[i]) * d;
            uint at_y = m * p.y_stride + head * p.d_v + 2 * (pair + c);
            if (subgroupElect()) p.y.at[at_y] = y.x, p.y.at[at_y + 1] = y.y;
        }
        if (KEEPS && m + 1 < run.first + run.n) write_state(p.row_states.at[m], at_s, lane);
    }
    write_state(run.to, at_s, lane);
}
