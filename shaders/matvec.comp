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
 * Grid: [any, slots of experts]. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "act.glsl"
#if defined(DOT)
#define QUANT_BYTES
#endif
layout(local_size_x_id = 0) in;
#include "weights.glsl"
#if defined(DOT)
#extension GL_EXT_integer_dot_product : require
#include "dots.glsl"
#endif

layout(constant_id = 1) const uint ROWS = 4;
layout(constant_id = 2) const uint COLS = 1;
layout(constant_id = 3) const uint NORM_VEC4S = 0;   /* vec4s of x in shared memory, padding included; 0: x as it is */
layout(constant_id = 4) const uint BRANCH = 0;       /* 0: none, 1: add it, 2: add it normed */
layout(constant_id = 5) const uint STORE = 0;        /* 0: nothing, 1: x', 2: the normed vector */
layout(constant_id = 6) const uint GLU = 0;          /* 0: none, or PD_GELU, ... */
layout(constant_id = 8) const uint WIDTH = 1;        /* of one token: units of a row that a lane takes at a time */
layout(push_constant) uniform Push { pd_matvec_push p; };
#include "bias.glsl"
#include "experts.glsl"

const uint ROWS_OUT = GLU == 0 ? ROWS : ROWS / 2;

/* Lanes read what is a unit apart: vec4s of eight blocks take turns, or they would all be in the same banks. */
shared vec4 normed[NORM_VEC4S == 0 ? 1 : NORM_VEC4S];
#define PLACE(i) ((i) ^ ((i) >> 3 & 7u))
#include "fused_norm.glsl"

#if defined(DOT)
#define STEP 32
#else
#define STEP UNIT
#endif

struct x_step { vec4 at[STEP / 4]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer x_steps { x_step at[]; };

float acc[ROWS * COLS];
uvec2 rows[ROWS];   /* addresses */

/* Past the last row the last one is done again, and not written. */
void find_rows(uint first)
{
    [[unroll]] for (uint r = 0; r < ROWS; r++)
        rows[r] = row_at(r < ROWS_OUT ? p.w : p.w_up, row_of_expert(min(first + r % ROWS_OUT, p.n_rows - 1)),
                         p.row_size);
}

uvec2 x_of_token;   /* the address of the row of x of the one token */

/* Columns STEP u .. of the token. */
void load_x(out vec4 x[STEP / 4], uint u)
{
    [[unroll]] for (uint i = 0; i < STEP / 4; i++)
        x[i] = NORM_VEC4S != 0 ? normed[PLACE(u * (STEP / 4) + i)] : x_steps(x_of_token).at[u].at[i];
}

#if defined(DOT)
/* What is in shared memory is packed where it is. */
void pack_normed()
{
    for (uint b = gl_LocalInvocationID.x; b < NORM_VEC4S / 8; b += gl_WorkGroupSize.x) {
        vec4 columns[8];
        load_x(columns, b);
        q16 x = q16_of(columns);
        [[unroll]] for (uint h = 0; h < 2; h++) {
            normed[PLACE(8 * b + h)] = uintBitsToFloat(x.high[h]);
            normed[PLACE(8 * b + 2 + h)] = uintBitsToFloat(x.low[h]);
        }
        normed[PLACE(8 * b + 4)] = vec4(x.scale, intBitsToFloat(x.sums), 0.0);
    }
    barrier();
}

q16 load_block(uint b)
{
    vec4 columns[8];
    load_x(columns, b);
    if (NORM_VEC4S == 0) return q16_of(columns);
    q16 x;
    [[unroll]] for (uint h = 0; h < 2; h++) {
        x.high[h] = floatBitsToUint(columns[h]);
        x.low[h] = floatBitsToUint(columns[2 + h]);
    }
    x.scale = columns[4].x;
    x.sums = floatBitsToInt(columns[4].yz);
    return x;
}

/* Block u of one token, by dot products of bytes with whole numbers of 16 bits, for ROWS rows. */
void add_unit(uint u, bool counts)
{
    q16 x = load_block(u);
    if (!counts) x.scale = 0.0;
    int sums[] = {HALVES ? x.sums[0] : x.sums[0] + x.sums[1], x.sums[1]};
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        uvec4 quants[2];
        vec2 scales[PARTS];
        float sum = 0.0;
        load_quants(quants, rows[r], u, p.n_cols);
        load_scales(scales, rows[r], u, p.n_cols);
        [[unroll]] for (uint part = 0; part < PARTS; part++) {
            int dots = 0;
            [[unroll]] for (uint h = 0; h < 2 / PARTS; h++) dots = dot16(quants[part + h], x.high[part + h], dots);
            dots = dots * 256 - CENTRE * sums[part];
            [[unroll]] for (uint h = 0; h < 2 / PARTS; h++) dots = dot16(quants[part + h], x.low[part + h], dots);
            sum += scales[part].x * float(dots);
            if (MINIMUM) sum += scales[part].y * float(sums[part]);
        }
        acc[r] += sum * x.scale;
    }
}
#else
#define PART_QUADS (UNIT / 4 / PARTS)

/* A part of a unit is added alike for one token and for several: what its minimum takes, then its products, whose sum
 * begins with what CENTRE takes from all quants. */
float add_columns(float sum, vec4 x) { return sum + x.x + x.y + x.z + x.w; }
float add_minimum(float sum, float sum_x, vec2 scale) { return MINIMUM ? fma(sum_x, scale.y, sum) : sum; }
float sum_of_centre(float sum_x) { return CENTRE == 0 ? 0.0 : -float(CENTRE) * sum_x; }
float add_products(float sum, vec4 w, vec4 x)
{
    return fma(w.w, x.w, fma(w.z, x.z, fma(w.y, x.y, fma(w.x, x.x, sum))));
}

/* Unit u of one token, for ROWS rows. */
void add_unit(uint u, bool counts)
{
    vec4 x[UNIT / 4];
    float sum_x[PARTS];
    load_x(x, u);
    [[unroll]] for (uint part = 0; part < PARTS; part++) {
        sum_x[part] = 0.0;
        [[unroll]] for (uint i = 0; i < PART_QUADS; i++)
            sum_x[part] = add_columns(sum_x[part], x[part * PART_QUADS + i]);
    }
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        vec2 scales[PARTS];
        unit_bits bits = load_unit_bits(rows[r], u, p.n_cols);
        load_scales(scales, rows[r], u * UNIT / 32, p.n_cols);
        float sum = acc[r];
        [[unroll]] for (uint part = 0; part < PARTS; part++) {
            float products = sum_of_centre(sum_x[part]);
            sum = add_minimum(sum, sum_x[part], scales[part]);
            [[unroll]] for (uint i = 0; i < PART_QUADS; i++)
                products = add_products(products, quad_of_unit(bits, part * PART_QUADS + i), x[part * PART_QUADS + i]);
            sum = fma(products, scales[part].x, sum);
        }
        acc[r] = counts ? sum : acc[r];
    }
}

vec4 load_x_quad(uint token, uint q)
{
    return p.x.at[x_row(token) * (p.x_stride / 4) + q];
}

/* Part `part` of unit u of COLS tokens: their sums fill the registers, so a few weights at a time, and x is read twice.
 */
void add_part_of_tokens(uint first_token, uint u, uint part, bool counts)
{
    float products[ROWS * COLS], sum_x[COLS];
    uint first = (PARTS * u + part) * PART_QUADS, n = min(PART_QUADS, p.n_cols);   /* not known to the compiler */
    [[unroll]] for (uint c = 0; c < COLS; c++) sum_x[c] = 0.0;
    if (OFFSET)
        [[dont_unroll]] for (uint i = 0; i < n; i++)
            [[unroll]] for (uint c = 0; c < COLS; c++)
                sum_x[c] = add_columns(sum_x[c], load_x_quad(first_token + c, first + i));
    [[unroll]] for (uint i = 0; i < ROWS * COLS; i++) products[i] = sum_of_centre(sum_x[i % COLS]);
    [[dont_unroll]] for (uint i = 0; i < n; i++) {
        vec4 w[ROWS];
        [[unroll]] for (uint r = 0; r < ROWS; r++) w[r] = load_quad_quants(rows[r], first + i, p.n_cols);
        [[unroll]] for (uint c = 0; c < COLS; c++) {
            vec4 x = load_x_quad(first_token + c, first + i);
            [[unroll]] for (uint r = 0; r < ROWS; r++)
                products[r * COLS + c] = add_products(products[r * COLS + c], w[r], x);
        }
    }
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        vec2 scales[PARTS];
        load_scales(scales, rows[r], u * UNIT / 32, p.n_cols);
        vec2 scale = part == 0 ? scales[0] : scales[PARTS - 1];
        [[unroll]] for (uint c = 0; c < COLS; c++) {
            float sum = add_minimum(acc[r * COLS + c], sum_x[c], scale);
            sum = fma(products[r * COLS + c], scale.x, sum);
            acc[r * COLS + c] = counts ? sum : acc[r * COLS + c];
        }
    }
}
#endif

/* Of WIDTH units at a time number k is k subgroups further. Past the row's n the last is read again, and does not
 * count. */
void add_units(uint token)
{
    uint n = (p.n_cols + STEP - 1) / STEP;
    x_of_token = address_of(uvec2(p.x), x_row(token), 4 * p.x_stride);
    for (uint u = gl_SubgroupInvocationID; u < n; u += WIDTH * gl_SubgroupSize)
        [[unroll]] for (uint k = 0; k < WIDTH; k++) {
            uint at = u + k * gl_SubgroupSize;
            bool counts = k == 0 || at < n;
            add_unit(counts ? at : n - 1, counts);
        }
}

#if !defined(DOT)
/* The same for COLS tokens. In this loop and those in it all lanes count alike: llvmpipe (Mesa 26.1) gets wrong, or
 * never ends, loops in a loop where they do not. */
void add_units_of_tokens(uint first_token)
{
    uint n = (p.n_cols + UNIT - 1) / UNIT;
    for (uint first = 0; first < n; first += gl_SubgroupSize) {
        uint u = first + gl_SubgroupInvocationID;
        [[dont_unroll]] for (uint part = 0; part < PARTS; part++)
            add_part_of_tokens(first_token, min(u, n - 1), part, u < n);
    }
}
#endif

void write_row(uint first_row, uint token, uint r, uint c)
{
    uint row = min(first_row + r, p.n_rows - 1);
    float y = with_bias(subgroupAdd(acc[r * COLS + c]), row_of_expert(row));
    if (GLU == 0) y = softcap_of(y, p.softcap);
    else
        y = gated(GLU, y, with_bias(subgroupAdd(acc[(r + ROWS - ROWS_OUT) * COLS + c]), row_of_expert(p.n_rows + row)));
    if (subgroupElect() && first_row + r < p.n_rows && token < n_tokens)
        p.y.at[y_row(token) * p.y_stride + first_row + r] = y;
}

void main()
{
    uint stride = gl_NumWorkGroups.x * gl_NumSubgroups * ROWS_OUT;
    prepare_weights();
    if (!find_expert(gl_WorkGroupID.y, 0)) return;
    if (NORM_VEC4S != 0) prepare_x();
#if defined(DOT)
    if (NORM_VEC4S != 0) pack_normed();
#endif
    for (uint first = (gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID) * ROWS_OUT; first < p.n_rows;
         first += stride) {
        find_rows(first);
        for (uint token = 0; token < n_tokens; token += COLS) {
            [[unroll]] for (uint i = 0; i < ROWS * COLS; i++) acc[i] = 0.0;
            if (COLS == 1) add_units(token);
#if !defined(DOT)
            else add_units_of_tokens(token);
#endif
            [[unroll]] for (uint r = 0; r < ROWS_OUT; r++)
                [[unroll]] for (uint c = 0; c < COLS; c++) write_row(first, token + c, r, c);
        }
    }
}
