#version 460
/* Rows of activations as matmul_dot.comp reads them (dots.glsl), of X_BYTES each: per block 32 high bytes, 32 low ones,
 * the scale, and the sums of the halves. An invocation takes a block. Grid: [n_tokens]. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_integer_dot_product : require
#include "common.glsl"
#include "dots.glsl"

layout(local_size_x = 128) in;
layout(push_constant) uniform Push { pd_pack_push p; };

void main()
{
    uint token = gl_WorkGroupID.x, from = token * (p.x_stride / 4);
    for (uint b = gl_LocalInvocationID.x; b < p.n_cols / 32; b += 128) {
        vec4 x[8];
        [[unroll]] for (uint i = 0; i < 8; i++) x[i] = p.x.at[from + 8 * b + i];
        uint to = token * p.packed_stride + b * PD_DOT_BLOCK(X_BYTES), last = to + 8 * X_BYTES;
        q16 block = q16_of(x);
        [[unroll]] for (uint i = 0; i < 8; i++) {
            p.packed.at[to + i] = block.high[i >> 2][i & 3u];
            if (X_BYTES == 2) p.packed.at[to + 8 + i] = block.low[i >> 2][i & 3u];
        }
#if X_BYTES == 1   /* high bytes alone are x rounded to 8 bits */
        block.scale *= 256.0;
        [[unroll]] for (uint h = 0; h < 2; h++) block.sums[h] = dot16(uvec4(0x01010101u), block.high[h], 0);
#endif
        p.packed.at[last] = floatBitsToUint(block.scale);
        p.packed.at[last + 1] = floatBitsToUint(block.scale * float(block.sums.x));
        p.packed.at[last + 2] = floatBitsToUint(block.scale * float(block.sums.y));
    }
}
