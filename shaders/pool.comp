#version 460
/* Rows of an image from those of its patches, which are a grid of `width` columns, row by row: the mean of a block of
 * `side` by `side` of them, times scale; then, where the model's features are standardised, (y - bias) * w. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool STANDARDISE = false;
layout(push_constant) uniform Push { pd_pool_push p; };

void main()
{
    uint i = gl_GlobalInvocationID.x, m = gl_WorkGroupID.y;
    if (i >= p.n) return;
    uint blocks = p.width / p.side, first = m / blocks * p.side * p.width + m % blocks * p.side;
    float sum = 0.0;
    for (uint row = 0; row < p.side; row++)
        for (uint column = 0; column < p.side; column++)
            sum += p.x.at[(first + row * p.width + column) * p.x_stride + i];
    float mean = sum / float(p.side * p.side) * p.scale;
    p.y.at[m * p.y_stride + i] = STANDARDISE ? (mean - p.bias.at[i]) * p.w.at[i] : mean;
}
