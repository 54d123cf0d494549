/* The skeleton of a product of a matrix and many vectors: which tile is whose, the walk over the columns, and what is
 * written of the sums.
 *   y[m][r] = softcap(w[r] . x[m] + bias[r])
 * A workgroup makes a tile of TILE_ROWS rows r by TILE_TOKENS tokens m, so that each weight, which is decoded once,
 * serves TILE_TOKENS products, and each activation TILE_ROWS. Per step the invocations put STEP columns of both into
 * shared memory, and add the products to sums that they keep. Tiles of a split of the columns (see
 * matmul_reduce.comp) walk over their own.
 * Kernels define before: TILE_ROWS, TILE_TOKENS, STEP; GRAIN, the columns that the walk counts by, 32 where all that is
 * loaded lies in blocks of as many, else 1, so that addresses take no more instructions than they need; and AHEAD,
 * whether registers have room for the next step, which then arrives while this one is multiplied; and TILE_BARRIER, if
 * barrier() is not what orders their accesses of shared memory. And after it
 *   begin_tile(first_row, first_token)   finds what this invocation loads, and sets its sums to 0
 *   load_step(at)                        its share of the columns from GRAIN at on; without AHEAD it may store them
 *   store_step()                         what it has loaded to shared memory
 *   add_step()                           the products
 *   write_tile(first_row, first_token)   its sums, by write_sum
 * Grid: [rows / TILE_ROWS, tokens / TILE_TOKENS, slots of experts]. */
#ifndef TILE_BARRIER
#define TILE_BARRIER barrier
#endif
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { pd_matmul_push p; };
#include "weights.glsl"
#include "bias.glsl"
#include "experts.glsl"

void begin_tile(uint first_row, uint first_token);
void load_step(uint at);
void store_step();
void add_step();
void write_tile(uint first_row, uint first_token);

/* Row i of the matrix; past the last one that one stands in. */
uvec2 w_row_at(uint i) { return row_at(p.w, row_of_expert(min(i, p.n_rows - 1)), p.row_size); }

/* What sums for row `to` of y are to be multiplied by where x comes from pack_f16.comp. */
float scale_of_packed(uint to)
{
    return pd_floats(uvec2(p.x)).at[(x_row_for(to) + 1) * p.x_stride - PD_PACK_TAIL];
}

/* To row `to` of y, if the matrix has that row. */
void write_sum(uint to, uint row, float sum)
{
    if (row < p.n_rows) p.y.at[to * p.y_stride + row] = softcap_of(with_bias(sum, row_of_expert(row)), p.softcap);
}

void main()
{
    uint first_row = gl_WorkGroupID.x * TILE_ROWS, first_token = gl_WorkGroupID.y * TILE_TOKENS;
    prepare_weights();
    if (!find_expert(gl_WorkGroupID.z, first_token)) return;
    begin_tile(first_row, first_token);
    if (AHEAD) load_step(p.first_col / GRAIN);
    for (uint at = p.first_col / GRAIN; at * GRAIN < p.end_col; at += STEP / GRAIN) {
        if (!AHEAD) load_step(at);
        store_step();
        TILE_BARRIER();
        uint next = at + STEP / GRAIN;
        if (AHEAD) load_step(next * GRAIN < p.end_col ? next : at);   /* a branch would wait for what it loads */
        add_step();
        TILE_BARRIER();
    }
    write_tile(first_row, first_token);
}
