#version 460
/* Rows of activations as matmul_dot.comp reads them: per block of 32, whose largest value becomes 127 * 256, whole numbers of 16
 * bits, each in two signed bytes: 256 * high + low. An invocation takes a block. What is no number makes the scale none.
 * Grid: [n_tokens]. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

#define LARGEST (127.0 * 256.0)
#define SMALLEST 1.5e-34   /* LARGEST over what is below may be too large for fp32: it becomes zeros */

layout(local_size_x = 128) in;
layout(push_constant) uniform Push { pd_pack_push p; };

/* Bits of non-negative floats are ordered as they are, and those of infinity and NaN come last. */
float largest(vec4 x[8])
{
    uvec4 m = uvec4(0);
    [[unroll]] for (uint i = 0; i < 8; i++) m = max(m, floatBitsToUint(abs(x[i])));
    return uintBitsToFloat(max(max(m.x, m.y), max(m.z, m.w)));
}

uint bytes(ivec4 q) { return uint(q.x & 255 | (q.y & 255) << 8 | (q.z & 255) << 16 | q.w << 24); }

void main()
{
    uint token = gl_WorkGroupID.x, from = token * (p.x_stride / 4);
    for (uint b = gl_LocalInvocationID.x; b < p.n_cols / 32; b += 128) {
        vec4 x[8];
        [[unroll]] for (uint i = 0; i < 8; i++) x[i] = p.x.at[from + 8 * b + i];
        float m = largest(x), scale = m / LARGEST, inverse = m < SMALLEST ? 0.0 : LARGEST / m;
        uint to = token * p.packed_stride + b * PD_Q16_BLOCK;
        ivec2 sums = ivec2(0);
        [[unroll]] for (uint i = 0; i < 8; i++) {
            ivec4 q = ivec4(roundEven(x[i] * inverse)), high = q + 128 >> 8;
            sums[i >> 2] += q.x + q.y + q.z + q.w;
            p.packed.at[to + i] = bytes(high);
            p.packed.at[to + 8 + i] = bytes(q - (high << 8));
        }
        p.packed.at[to + 16] = floatBitsToUint(scale);
        p.packed.at[to + 17] = floatBitsToUint(scale * float(sums.x));
        p.packed.at[to + 18] = floatBitsToUint(scale * float(sums.y));
    }
}
