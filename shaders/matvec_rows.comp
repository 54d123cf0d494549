#version 460
/* matvec.comp for a software device, where a subgroup's load is a load by each lane and neighbouring addresses
 * gain nothing: a lane takes ROWS rows of its own, so that a weight is loaded once and never summed across lanes, and
 * lanes share x: each loads a part of 32 columns, and columns go around by subgroupBroadcast. The same constants and
 * push constants. */
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_ballot : require
#include "common.glsl"
#include "act.glsl"
layout(local_size_x_id = 0) in;
#include "weights.glsl"

layout(constant_id = 1) const uint ROWS = 4;
layout(constant_id = 2) const uint COLS = 1;
layout(constant_id = 3) const uint NORM_VEC4S = 0;
layout(constant_id = 4) const uint BRANCH = 0;
layout(constant_id = 5) const uint STORE = 0;
layout(constant_id = 6) const uint GLU = 0;
layout(constant_id = 7) const uint LANES = 8;   /* the subgroup size */
layout(constant_id = PD_PREFETCH_ID) const uint PREFETCH = 0;
layout(push_constant) uniform Push { pd_matvec_push p; };
#include "bias.glsl"
#include "experts.glsl"

const uint ROWS_OUT = GLU == 0 ? ROWS : ROWS / 2;

shared vec4 normed[NORM_VEC4S == 0 ? 1 : NORM_VEC4S];
#define PLACE(i) (i)
#include "fused_norm.glsl"

float acc[ROWS * COLS];
const uint SHARE = 32 / LANES;
float x_lane[COLS * SHARE];        /* of 32 columns: column LANES k + lane */
float x_sum[COLS * 2];             /* of their halves, or all in the first */

float sum_of_columns(uint c, uint first, uint n)
{
    const uint n_lanes = min(n, LANES);
    float part = 0.0, sum = 0.0;
    [[unroll]] for (uint k = 0; k < n / n_lanes; k++)
        if (in_sum_of_x(gl_SubgroupInvocationID)) part += x_lane[c * SHARE + first / LANES + k];
    [[unroll]] for (uint l = 0; l < n_lanes; l++) sum += subgroupBroadcast(part, first % LANES + l);
    return sum;
}

void load_x(uint first_token, uint b)
{
    [[unroll]] for (uint c = 0; c < COLS; c++)
        [[unroll]] for (uint k = 0; k < SHARE; k++) {
            uint i = 32 * b + LANES * k + gl_SubgroupInvocationID;
            if (NORM_VEC4S != 0) x_lane[k] = normed[i >> 2][i & 3];
            else x_lane[c * SHARE + k] = pd_floats(p.x).at[x_row(first_token + c) * p.x_stride + i];
        }
    [[unroll]] for (uint c = 0; c < COLS && SUM_OF_X; c++)
        [[unroll]] for (uint h = 0; h < (HALVES ? 2 : 1); h++)
            x_sum[2 * c + h] = sum_of_columns(c, 16 * h, HALVES ? 16 : 32);
    [[unroll]] for (uint i = 0; i < COLS * SHARE; i++)
        x_lane[i] *= x_scale_of(LANES * (i % SHARE) + gl_SubgroupInvocationID);
}

vec4 x_quad(uint c, uint i)
{
    vec4 x;
    [[unroll]] for (uint k = 0; k < 4; k++)
        x[k] = subgroupBroadcast(x_lane[c * SHARE + (4 * i + k) / LANES], (4 * i + k) % LANES);
    return x;
}

uvec2 row_address(uint first, uint r, uint lane)
{
    uint row = min(first + (r % ROWS_OUT) * LANES + lane, p.n_rows - 1);
    return row_at(r < ROWS_OUT ? p.w : p.w_up, row_of_expert(row), p.row_size);
}

uvec2 rows[ROWS];

/* Lanes load words by a gather instruction. A CPU's prefetcher may learn nothing from gathers (AMD's does not), and
 * each would wait for memory. There is no gather of bytes: lanes load them one by one, from which the prefetcher does
 * learn. So a byte of each cache line (64 bytes, of four lanes) is loaded first. The sum of these bytes stays below
 * 2^32 - 1, but no compiler knows that, and so it keeps the loads. */
const uint LINES = LANES / 4, LINES_LANE = PREFETCH == 0 || LOW > 32 ? 0 : (ROWS * LINES + LANES - 1) / LANES;
uvec2 lines[LINES_LANE == 0 ? 1 : LINES_LANE];
uint fetched;

void find_lines(uint first)
{
    fetched = 0;
    [[unroll]] for (uint t = 0; t < LINES_LANE; t++) {
        uint i = t * LANES + gl_SubgroupInvocationID;
        lines[t] = row_address(first, min(i / LINES, ROWS - 1), 4 * (i % LINES));
    }
}

void fetch_lines(uint b)
{
    [[unroll]] for (uint t = 0; t < LINES_LANE; t++)
        [[unroll]] for (uint at = 0; at < LOW; at += 16)
            fetched += uint(pd_bytes(lines[t]).at[bytes_to(b * LOW + at)]);
}

void add_block(uint b)
{
    block_bits bits[ROWS];
    vec2 scales[ROWS][PARTS];
    float sum[ROWS * COLS];
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        bits[r] = load_bits(rows[r], b, p.n_cols);
        load_scales(scales[r], rows[r], b, p.n_cols);
    }
    [[unroll]] for (uint j = 0; j < 4; j++) {
        if (j == 0 || HALVES && j == 2) [[unroll]] for (uint i = 0; i < ROWS * COLS; i++) sum[i] = 0.0;
        uvec2 words[ROWS];
        [[unroll]] for (uint r = 0; r < ROWS; r++) words[r] = octet_words(bits[r], rows[r], b, j);
        vec4 x[2 * COLS];
        [[unroll]] for (uint c = 0; c < COLS; c++) {
            x[2 * c] = x_quad(c, 2 * j);
            x[2 * c + 1] = x_quad(c, 2 * j + 1);
        }
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            vec4 w[2];
            octet(w, words[r], bits[r], rows[r], b, j, p.n_cols);
            [[unroll]] for (uint c = 0; c < COLS; c++)
                sum[r * COLS + c] += dot(w[0], x[2 * c]) + dot(w[1], x[2 * c + 1]);
        }
        const uint part = HALVES ? j >> 1 : 0;
        if (j == 3 || HALVES && j == 1)
            [[unroll]] for (uint r = 0; r < ROWS; r++) {
                vec2 scale = scale_of_sums(scales[r][part]);
                [[unroll]] for (uint c = 0; c < COLS; c++)
                    acc[r * COLS + c] += sum[r * COLS + c] * scale.x
                        + (SUM_OF_X ? x_sum[2 * c + part] * scale.y : 0.0);
            }
    }
}

void write_rows(uint first_row, uint first_token)
{
    [[unroll]] for (uint r = 0; r < ROWS_OUT; r++)
        [[unroll]] for (uint c = 0; c < COLS; c++) {
            uint row = first_row + r * LANES + gl_SubgroupInvocationID, token = first_token + c;
            uint bias_row = min(row, p.n_rows - 1);
            float y = with_bias(acc[r * COLS + c], row_of_expert(bias_row));
            if (GLU == 0) y = softcap_of(y, p.softcap);
            else
                y = gated(GLU, y, with_bias(acc[(r + ROWS - ROWS_OUT) * COLS + c], row_of_expert(p.n_rows + bias_row)));
            if (row < p.n_rows && token < n_tokens && fetched != ~0u) p.y.at[y_row(token) * p.y_stride + row] = y;
        }
}

void main()
{
    uint n_blocks = (p.n_cols + 31) / 32;
    uint per_subgroup = ROWS_OUT * LANES, stride = gl_NumWorkGroups.x * gl_NumSubgroups * per_subgroup;
    prepare_weights();
    if (!find_expert(gl_WorkGroupID.y, 0)) return;
    if (NORM_VEC4S != 0) prepare_x();
    for (uint first = (gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID) * per_subgroup; first < p.n_rows;
         first += stride) {
        [[unroll]] for (uint r = 0; r < ROWS; r++) rows[r] = row_address(first, r, gl_SubgroupInvocationID);
        find_lines(first);
        for (uint token = 0; token < n_tokens; token += COLS) {
            [[unroll]] for (uint i = 0; i < ROWS * COLS; i++) acc[i] = 0.0;
            for (uint b = 0; b < n_blocks; b++) {
                fetch_lines(b);
                load_x(token, b);
                add_block(b);
            }
            write_rows(first, token);
        }
    }
}
