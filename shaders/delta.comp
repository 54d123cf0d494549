#version 460
/* The gated delta rule (struct pd_delta) over the rows of a run, in their order, in fp32:
 *   S = exp(decay softplus(a + dt)) S;   S += k (sigmoid(b) (v - S^T k))^T;   y = S^T q
 * with q and k of each head of length 1, and q * D_K^-0.5; or with MAMBA the rule of Mamba-2, where these are as they
 * are, and softplus is the step that both the decay and what is added are in:
 *   S = exp(decay softplus(a + dt)) S;   S += k (softplus(a + dt) v)^T;   y = S^T q + skip v
 * The columns of S do not depend on each other: PARTS invocations take one through the run, with its elements in
 * registers, so that S is read and written once. y is summed of the old S, as S'^T q = g S^T q + (k . q) d, which makes
 * the sums of a row independent of each other: they are the only thing that invocations exchange. What a row's k, q and
 * gates say to all columns is computed of many rows at once, by the invocations of one column each. With KEEPS the S
 * after each row goes to a state of its own, for drafts. S is stored in fours of columns. Grid: [workgroups for the
 * columns of each head, runs]. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint D_K = 128;
layout(constant_id = 2) const uint PARTS = 8;
layout(constant_id = 3) const bool KEEPS = false;
layout(constant_id = 4) const bool SUBGROUPS = false;   /* PARTS is what a subgroup has */
layout(constant_id = 5) const bool MAMBA = false;
layout(constant_id = 6) const uint EACH = 1;            /* columns of an invocation: 1 or 4 */
layout(push_constant) uniform Push { pd_delta_push p; };

#define EPS 1e-6   /* of the lengths of q and k */
const uint QUADS = (D_K / 4 + PARTS - 1) / PARTS;       /* fours of elements of an invocation */
const uint ROWS = gl_WorkGroupSize.x / PARTS;           /* whose factors a workgroup computes at once */

shared vec2 exchanged[2 * gl_WorkGroupSize.x];

/* Of a row: of v and S^T k in what is added, of S^T q and that in y; and g. */
struct factors { vec4 of; float g; };

shared vec4 row_factors[ROWS];
shared float row_decays[ROWS];

vec4 s[QUADS * EACH];   /* [QUADS][EACH]: fours PARTS * i + part of columns */
uint turn = 0;

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

/* Over the invocations of a column. */
vec2 sum_parts(vec2 x)
{
    if (SUBGROUPS) return subgroupAdd(x);
    uint lane = gl_LocalInvocationID.x, at = turn++ % 2 * gl_WorkGroupSize.x;   /* the other half may still be read */
    exchanged[at + lane] = x;
    barrier();
    vec2 sum = vec2(0.0);
    [[unroll]] for (uint i = 0; i < PARTS; i++) sum += exchanged[at + lane - lane % PARTS + i];
    return sum;
}

/* Four of a vector that begins `part` fours before `at`. */
vec4 quad_at(uvec2 at, uint i, uint part)
{
    return PARTS * (i + 1) <= D_K / 4 || PARTS * i + part < D_K / 4 ? pd_vec4s(at).at[PARTS * i] : vec4(0.0);
}

/* of_q, of_k: addresses of the invocation's first fours in row 0. */
factors find_factors(uint m, uint head, uvec2 of_q, uvec2 of_k)
{
    uint lane = gl_LocalInvocationID.x, part = lane % PARTS, gates = m * p.gates_stride + head;
    uvec2 at_q = address_of(of_q, m, 4 * p.x_stride), at_k = address_of(of_k, m, 4 * p.x_stride);
    vec4 qq = vec4(0.0), kk = vec4(0.0), qk = vec4(0.0);
    [[unroll]] for (uint i = 0; i < QUADS; i++) {
        vec4 q = quad_at(at_q, i, part), k = quad_at(at_k, i, part);
        qq += q * q;
        kk += k * k;
        qk += q * k;
    }
    vec2 lengths = MAMBA ? vec2(0.0) : sum_parts(vec2(qq.x + qq.y + qq.z + qq.w, kk.x + kk.y + kk.z + kk.w));
    float product = sum_parts(vec2(qk.x + qk.y + qk.z + qk.w, 0.0)).x;
    float k_scale = MAMBA ? 1.0 : rms_scale(lengths.y + EPS);
    float q_scale = MAMBA ? 1.0 : rms_scale(lengths.x + EPS) * inversesqrt(float(D_K));
    float a = p.gates.at[gates + (MAMBA ? 0 : p.n_v)] + p.dt.at[head], step = softplus(a);
    float g = decay_of(a, p.decay.at[head], step);
    float beta = MAMBA ? step : 1.0 / (1.0 + exp(-clamp(p.gates.at[gates], -80.0, 80.0)));
    return factors(vec4(beta * k_scale, beta * k_scale * g * k_scale, q_scale * g, q_scale * product), g);
}

void write_state(uint state, uint at)
{
    uint part = gl_LocalInvocationID.x % PARTS;
    pd_floats to = pd_floats(address_of(p.states, state, p.state_size));
    [[unroll]] for (uint i = 0; i < QUADS; i++)
        [[unroll]] for (uint e = 0; e < 4 * EACH; e++)
            if (PARTS * i + part < D_K / 4)
                to.at[at + 16 * (PARTS * i + part) + e / EACH * 4 + e % EACH] = s[i * EACH + e % EACH][e / EACH];
}

void read_state(pd_state_run run, uint at)
{
    uint part = gl_LocalInvocationID.x % PARTS;
    bool none = run.from == PD_NO_STATE;
    pd_floats from = pd_floats(address_of(p.states, none ? run.to : run.from, p.state_size));
    [[unroll]] for (uint i = 0; i < QUADS; i++)
        [[unroll]] for (uint e = 0; e < 4 * EACH; e++)
            s[i * EACH + e % EACH][e / EACH] = none || PARTS * i + part >= D_K / 4
                ? 0.0 : from.at[at + 16 * (PARTS * i + part) + e / EACH * 4 + e % EACH];
}

void main()
{
    uint lane = gl_LocalInvocationID.x, part = lane % PARTS, n_columns = ROWS * EACH;
    uint groups = (p.d_v + n_columns - 1) / n_columns, head = gl_WorkGroupID.x / groups;
    uint column = gl_WorkGroupID.x % groups * n_columns + lane / PARTS * EACH;
    bool is_there = column < p.d_v;
    column = min(column, p.d_v - EACH);
    uint k_head = head / p.n_beside % p.n_k, keys = MAMBA ? p.n_v * p.d_v : 0;
    uint at_q = keys + ((MAMBA ? p.n_k : 0) + k_head) * D_K, at_k = keys + ((MAMBA ? 0 : p.n_k) + k_head) * D_K;
    uint at_v = (MAMBA ? 0 : 2 * p.n_k * D_K) + head * p.d_v + column;
    uvec2 of_q = address_of(uvec2(p.x), at_q / 4 + part, 16), of_k = address_of(uvec2(p.x), at_k / 4 + part, 16);
    uvec2 of_v = address_of(uvec2(p.x), at_v, 4);
    uint at_s = (head * p.d_v + column) / 4 * 4 * D_K + column % 4;
    float skip = MAMBA ? p.skip.at[head] : 0.0;
    pd_state_run run = p.runs.at[gl_WorkGroupID.y];
    uint end = run.first + run.n;
    read_state(run, at_s);
    for (uint block = run.first; block < end; block += ROWS) {
        factors row = find_factors(min(block + lane / PARTS, end - 1), head, of_q, of_k);
        if (ROWS > 1) {
            barrier();   /* those of the last block were read */
            if (part == 0) row_factors[lane / PARTS] = row.of;
            if (part == 0) row_decays[lane / PARTS] = row.g;
            barrier();
        }
        for (uint m = block; m < min(block + ROWS, end); m++) {
            uvec2 at_q = address_of(of_q, m, 4 * p.x_stride), at_k = address_of(of_k, m, 4 * p.x_stride);
            pd_floats v = pd_floats(address_of(of_v, m, 4 * p.x_stride));
            vec4 k[QUADS], sk[EACH], sq[EACH];
            if (ROWS > 1) row = factors(row_factors[m - block], row_decays[m - block]);
            [[unroll]] for (uint c = 0; c < EACH; c++) sk[c] = sq[c] = vec4(0.0);
            [[unroll]] for (uint i = 0; i < QUADS; i++) {
                vec4 q = quad_at(at_q, i, part);
                k[i] = quad_at(at_k, i, part);
                [[unroll]] for (uint c = 0; c < EACH; c++) {
                    sk[c] += s[i * EACH + c] * k[i];
                    sq[c] += s[i * EACH + c] * q;
                }
            }
            [[unroll]] for (uint c = 0; c < EACH; c++) {
                vec2 sums = sum_parts(vec2(MAMBA ? 0.0 : sk[c].x + sk[c].y + sk[c].z + sk[c].w,
                                           sq[c].x + sq[c].y + sq[c].z + sq[c].w));
                float d = row.of.x * v.at[c] - (MAMBA ? 0.0 : row.of.y * sums.x);
                [[unroll]] for (uint i = 0; i < QUADS; i++) s[i * EACH + c] = row.g * s[i * EACH + c] + k[i] * d;
                uint y = m * p.y_stride + head * p.d_v + column + c;
                if (part == 0 && is_there) p.y.at[y] = row.of.z * sums.y + row.of.w * d + skip * v.at[c];
            }
            if (KEEPS && is_there && m + 1 < end) write_state(p.row_states.at[m], at_s);
        }
    }
    if (is_there) write_state(run.to, at_s);
}
