#version 460
/* y[m][i] += the sum over parts of scale[m][adapter] * (b[i] . t[m]), t being what the adapters' first matrices made of
 * x: see struct pd_lora. A part is what one adapter adds to some of the rows. One that a row does not use is not read,
 * so that the row's bits are those that it has without it. Grid: [blocks of n_rows, n_tokens].
 *     A loop's body may run once more with no invocation in it, as it does on Mesa 26's llvmpipe: what all of a
 * subgroup read alike is read then, too, and must be there. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(local_size_x = 64) in;
layout(push_constant) uniform Push { pd_lora_push p; };

void main()
{
    uint i = gl_GlobalInvocationID.x, m = gl_WorkGroupID.y;
    if (i >= p.n_rows) return;
    float sum = p.y.at[m * p.y_stride + i];
    for (uint k = 0; k < p.n_parts; k++) {
        pd_lora_part part = p.parts.at[min(k, p.n_parts - 1)];
        uint row = i - part.first_row;
        float scale = p.scales.at[m * p.n_adapters + part.adapter], found = 0.0;
        if (scale == 0.0 || row >= part.n_rows) continue;
        for (uint j = 0; j < part.rank; j++) {
            uint at = part.first + min(j, part.rank - 1);
            found += p.b.at[part.b + j * part.n_rows + row] * p.t.at[m * p.t_stride + at];
        }
        sum += scale * found;
    }
    p.y.at[m * p.y_stride + i] = sum;
}
