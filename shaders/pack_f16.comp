#version 460
/* Rows of activations as matmul_coop.comp reads them: fp16, times a power of two of each row's own, so that its largest
 * value comes to lie between 2^LARGEST and twice that. Gemma's activations reach 1e5, beyond fp16, and a row of small
 * ones would be rounded away below 6e-8; like this what is 2^28 times smaller than the largest is still a normal
 * number. For matmul.comp with HALF, which sums in fp16 (PD_HALF), 2^17 times smaller; and what is smaller yet loses
 * bits, but is at most 2^-29 of the largest off.
 * Grid: [n_tokens]. */
#extension GL_GOOGLE_include_directive : require
#if defined(PD_HALF)
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#define LARGEST 3
#define PACK(x) packFloat2x16(f16vec2(x))   /* to the nearest */
#else
#define LARGEST 14
#define PACK(x) packHalf2x16(x)
#endif
#include "common.glsl"

layout(local_size_x = 128) in;
layout(push_constant) uniform Push { pd_pack_push p; };

shared float largest[128 / 4];   /* of each subgroup, which has 4 lanes or more */

float row_maximum(uint from)
{
    float m = 0.0;
    for (uint i = gl_LocalInvocationID.x; i < (p.n_cols + 3) / 4; i += 128) {
        vec4 x = abs(p.x.at[from + i]);   /* rows are padded with zeros to PD_PAD */
        m = max(m, max(max(x.x, x.y), max(x.z, x.w)));
    }
    m = subgroupMax(m);
    if (subgroupElect()) largest[gl_SubgroupID] = m;
    barrier();
    for (uint i = 0; i < gl_NumSubgroups; i++) m = max(m, largest[i]);
    return m;
}

void main()
{
    uint token = gl_WorkGroupID.x, from = token * (p.x_stride / 4), to = token * p.packed_stride;
    int exponent = clamp(int(floatBitsToUint(row_maximum(from)) >> 23), LARGEST + 1, 254) - 127 - LARGEST;
    float scale = uintBitsToFloat(uint(127 - exponent) << 23);
    uint n_words = p.packed_stride - PD_PACK_TAIL;
    for (uint i = gl_LocalInvocationID.x; i < n_words / 2; i += 128) {
        vec4 x = 4 * i < p.n_cols ? p.x.at[from + i] * scale : vec4(0);
        p.packed.at[to + 2 * i] = PACK(x.xy);
        p.packed.at[to + 2 * i + 1] = PACK(x.zw);
    }
    if (gl_LocalInvocationID.x == 0) p.packed.at[to + n_words] = uint(127 + exponent) << 23;
}
