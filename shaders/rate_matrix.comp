#version 460
/* What the device's cooperative matrices can do, fp16 with fp32 sums: n rounds of 4 products per subgroup, each added
 * to a sum of its own. Factors come from shared memory once, with a number of its own in each place, so that no product
 * is another. */
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "common.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint M = 16;
layout(constant_id = 2) const uint N = 16;
layout(constant_id = 3) const uint K = 16;
layout(push_constant) uniform Push { pd_measure_push p; };

const uint A_SIZE = M * K / 4, B_SIZE = N * K / 4;   /* f16vec4s */

shared f16vec4 factors[2 * A_SIZE + 2 * B_SIZE];

void main()
{
    coopmat<float16_t, gl_ScopeSubgroup, M, K, gl_MatrixUseA> a[2];
    coopmat<float16_t, gl_ScopeSubgroup, K, N, gl_MatrixUseB> b[2];
    coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator> sums[4];
    for (uint i = gl_LocalInvocationID.x; i < 2 * (A_SIZE + B_SIZE); i += gl_WorkGroupSize.x)
        factors[i] = f16vec4(p.factor / (vec4(i) + vec4(1.0, 1.2, 1.5, 1.7)));
    barrier();
    [[unroll]] for (uint i = 0; i < 2; i++)
        coopMatLoad(a[i], factors, i * A_SIZE, K / 4, gl_CooperativeMatrixLayoutRowMajor);
    [[unroll]] for (uint i = 0; i < 2; i++)
        coopMatLoad(b[i], factors, 2 * A_SIZE + i * B_SIZE, K / 4, gl_CooperativeMatrixLayoutColumnMajor);
    [[unroll]] for (uint i = 0; i < 4; i++)
        sums[i] = coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator>(0.0);
    for (uint r = 0; r < p.n; r++)
        [[unroll]] for (uint i = 0; i < 4; i++) sums[i] = coopMatMulAdd(a[i % 2], b[i / 2], sums[i]);
    float sum = 0.0;
    [[unroll]] for (uint i = 0; i < 4; i++)
        for (uint k = 0; k < sums[i].length(); k++) sum += sums[i][k];
    if (sum == 12345.0) p.to.at[0] = uvec4(gl_GlobalInvocationID.x);
}
