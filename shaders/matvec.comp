#version 460
/* y[m][r] = softcap(w[r] . x[m]) for one or a few tokens. Each subgroup takes ROWS rows and COLS tokens at a time: its
 * lanes stride over the units of a row, a decoded weight serves COLS tokens and a load of x serves ROWS rows. Subgroups
 * stride over the rows, so any grid is right whatever subgroup size the driver picks. All tokens are gone through while
 * a row's weights are still in a cache, and each is summed as if it were alone: its result does not depend on how many
 * there are. x is read in fp32 and sums are fp32.
 * What surrounds a matrix in a decode step is done here, too, as each dispatch costs microseconds:
 *   NORM_VEC4S > 0   the last branch is first added to x, which is then normed, by every workgroup for itself, into
 *                    shared memory
 *   GLU              half of the rows at a time are the gate's, half the up matrix's, and y is their gated product
 * Grid: [any]. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "act.glsl"
#include "weights.glsl"
#if defined(DOT)
#extension GL_EXT_integer_dot_product : require
#include "q16.glsl"
#endif

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint ROWS = 4;
layout(constant_id = 2) const uint COLS = 1;
layout(constant_id = 3) const uint NORM_VEC4S = 0;   /* vec4s of x in shared memory, padding included; 0: x as it is */
layout(constant_id = 4) const uint BRANCH = 0;       /* 0: none, 1: add it, 2: add it normed */
layout(constant_id = 5) const uint STORE = 0;        /* 0: nothing, 1: x', 2: the normed vector */
layout(constant_id = 6) const uint GLU = 0;          /* 0: none, 1: GELU, 2: SiLU */
layout(constant_id = 8) const uint WIDTH = 1;        /* of one token: units of a row that a lane takes at a time */
layout(push_constant) uniform Push { pd_matvec_push p; };

const uint ROWS_OUT = GLU == 0 ? ROWS : ROWS / 2;

/* Lanes read what is a unit apart: vec4s of eight blocks take turns, or they would all be in the same banks. */
shared vec4 normed[NORM_VEC4S == 0 ? 1 : NORM_VEC4S];
#define PLACE(i) ((i) ^ ((i) >> 3 & 7u))
#include "fused_norm.glsl"

float acc[ROWS * COLS];

vec4 load_x(uint token, uint i)
{
    if (NORM_VEC4S != 0) return normed[PLACE(i)];
    return p.x.at[min(token, p.n_tokens - 1) * (p.x_stride / 4) + i];
}

uvec2 rows[ROWS];   /* addresses */

/* Past the last row the last one is done again, and not written. */
void find_rows(uint first)
{
    [[unroll]] for (uint r = 0; r < ROWS; r++)
        rows[r] = row_at(r < ROWS_OUT ? p.w : p.w_up, min(first + r % ROWS_OUT, p.n_rows - 1), p.row_size);
}

#if defined(DOT)
#define STEP 32

q16 pack_block(uint token, uint b)
{
    vec4 x[8];
    [[unroll]] for (uint i = 0; i < 8; i++) x[i] = load_x(token, 8 * b + i);
    return q16_of(x);
}

/* What is in shared memory is packed where it is. */
void pack_normed()
{
    for (uint b = gl_LocalInvocationID.x; b < NORM_VEC4S / 8; b += gl_WorkGroupSize.x) {
        q16 x = pack_block(0, b);
        [[unroll]] for (uint h = 0; h < 2; h++) {
            normed[PLACE(8 * b + h)] = uintBitsToFloat(x.high[h]);
            normed[PLACE(8 * b + 2 + h)] = uintBitsToFloat(x.low[h]);
        }
        normed[PLACE(8 * b + 4)] = vec4(x.scale, intBitsToFloat(x.sums), 0.0);
    }
    barrier();
}

q16 load_block(uint token, uint b)
{
    if (NORM_VEC4S == 0) return pack_block(token, b);
    q16 x;
    [[unroll]] for (uint h = 0; h < 2; h++) {
        x.high[h] = floatBitsToUint(normed[PLACE(8 * b + h)]);
        x.low[h] = floatBitsToUint(normed[PLACE(8 * b + 2 + h)]);
    }
    vec4 last = normed[PLACE(8 * b + 4)];
    x.scale = last.x;
    x.sums = floatBitsToInt(last.yz);
    return x;
}

/* Block u of one token, by dot products of bytes with whole numbers of 16 bits, for ROWS rows. */
void add_unit(uint token, uint u, bool counts)
{
    q16 x = load_block(token, u);
    if (!counts) x.scale = 0.0;
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        uvec4 quants[2];
        ivec2 dots;
        load_quants(quants, rows[r], u, p.n_cols);
        [[unroll]] for (uint h = 0; h < 2; h++)
            dots[h] = dot16(quants[h], x.low[h], dot16(quants[h], x.high[h], 0) << 8) - CENTRE * x.sums[h];
        [[unroll]] for (uint h = 0; h < (HALVES ? 2 : 1); h++) {
            vec2 scale = scale_and_offset(rows[r], u, h, p.n_cols) * x.scale;
            acc[r] += scale.x * float(HALVES ? dots[h] : dots[0] + dots[1]);
            if (MINIMUM) acc[r] += scale.y * float(HALVES ? x.sums[h] : x.sums[0] + x.sums[1]);
        }
    }
}
#else
#define STEP UNIT

/* Unit u of one token, for ROWS rows. */
void add_unit(uint token, uint u, bool counts)
{
    vec4 x[UNIT / 4];
    [[unroll]] for (uint i = 0; i < UNIT / 4; i++) x[i] = load_x(token, u * (UNIT / 4) + i);
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        float scale = load_unit(rows[r], u, p.n_cols), sum = 0.0;
        [[unroll]] for (uint i = 0; i < UNIT / 4; i++) sum += dot(unit_w[i], x[i]);
        acc[r] += counts ? sum * scale : 0.0;
    }
}

/* Unit u of COLS tokens: their sums fill the registers, so a few weights at a time. */
void add_unit_of_tokens(uint first_token, uint u)
{
    float sum[ROWS * COLS];
    [[unroll]] for (uint i = 0; i < ROWS * COLS; i++) sum[i] = 0.0;
    [[dont_unroll]] for (uint i = 0; i < UNIT / 4; i++) {
        uint q = u * (UNIT / 4) + i;
        vec4 w[ROWS];
        [[unroll]] for (uint r = 0; r < ROWS; r++) w[r] = load_quad_of_unit(rows[r], q, p.n_cols);
        [[unroll]] for (uint c = 0; c < COLS; c++) {
            vec4 x = load_x(first_token + c, q);
            [[unroll]] for (uint r = 0; r < ROWS; r++) sum[r * COLS + c] += dot(w[r], x);
        }
    }
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        float scale = scale_of_unit(rows[r], u, p.n_cols);
        [[unroll]] for (uint c = 0; c < COLS; c++) acc[r * COLS + c] += sum[r * COLS + c] * scale;
    }
}
#endif

/* Of WIDTH units at a time number k is k subgroups further. Past the row's n the last is read again, and does not
 * count. */
void add_units(uint token)
{
    uint n = (p.n_cols + STEP - 1) / STEP;
    for (uint u = gl_SubgroupInvocationID; u < n; u += WIDTH * gl_SubgroupSize)
        [[unroll]] for (uint k = 0; k < WIDTH; k++) {
            uint at = u + k * gl_SubgroupSize;
            bool counts = k == 0 || at < n;
            add_unit(token, counts ? at : n - 1, counts);
        }
}

void write_row(uint first_row, uint token, uint r, uint c)
{
    float y = subgroupAdd(acc[r * COLS + c]);
    if (GLU == 0) y = softcap_of(y, p.softcap);
    else y = (GLU == 1 ? gelu(y) : silu(y)) * subgroupAdd(acc[(r + ROWS - ROWS_OUT) * COLS + c]);
    if (subgroupElect() && first_row + r < p.n_rows && token < p.n_tokens)
        p.y.at[token * p.y_stride + first_row + r] = y;
}

void main()
{
    uint stride = gl_NumWorkGroups.x * gl_NumSubgroups * ROWS_OUT;
    if (NORM_VEC4S != 0) prepare_x();
#if defined(DOT)
    if (NORM_VEC4S != 0) pack_normed();
#endif
    for (uint first = (gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID) * ROWS_OUT; first < p.n_rows;
         first += stride) {
        find_rows(first);
        for (uint token = 0; token < p.n_tokens; token += COLS) {
            [[unroll]] for (uint i = 0; i < ROWS * COLS; i++) acc[i] = 0.0;
            if (COLS == 1) add_units(token);
#if !defined(DOT)
            else for (uint u = gl_SubgroupInvocationID; u < (p.n_cols + UNIT - 1) / UNIT; u += gl_SubgroupSize)
                add_unit_of_tokens(token, u);
#endif
            [[unroll]] for (uint r = 0; r < ROWS_OUT; r++)
                [[unroll]] for (uint c = 0; c < COLS; c++) write_row(first, token + c, r, c);
        }
    }
}
