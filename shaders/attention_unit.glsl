/* The unit of each row of queries that become fp16: a power of two above its largest element, so that no element of
 * the row divided by it is above 1. Kernels declare q_unit[ROWS] in shared memory before. */
void find_q_units()
{
    uint row = me / LINE;
    float most = 0;
    for (uint i = me % LINE; i < QUADS; i += LINE) {
        vec4 q = abs(pd_vec4s(uvec2(p.q)).at[query_of(row) + i] * p.scale);
        most = max(most, max(max(q.x, q.y), max(q.z, q.w)));
    }
    PUT(part[me], most);
    TILE_BARRIER();
    [[unroll]] for (uint i = 0; i < LINE; i++) most = max(most, GET(part[LINE * row + i]));
    uint exponent = clamp(floatBitsToUint(most) >> 23, 15, 252) + 1;
    if (me % LINE == 0) PUT(q_unit[row], uintBitsToFloat(exponent << 23));
    TILE_BARRIER();
}
