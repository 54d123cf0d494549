#version 460
/* Draws the next token from the PD_TOPK best, which topk has sorted: what pd_draw_from does in sampler.c, in the same numbers.
 *   w[i] = 2^-((best[0] - best[i]) scale) for i < n;   last = the last i that top-p and min-p keep;
 *   the token is the first whose sum w[0] + .. + w[i] is beyond random * (w[0] + .. + w[last]).
 * One workgroup; each invocation has a candidate, and adds up the weights for itself. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "draw.h"

layout(local_size_x = PD_TOPK) in;
layout(push_constant) uniform Push { pd_pick_push p; };

shared uint weight[PD_TOPK], sum[PD_TOPK];
shared uint last;

uint weight_of(uint i)
{
    precise float below = p.best.at[0].logit - p.best.at[i].logit;
    precise float x = below * p.draw.d.scale;
    if (!(x < PD_WEIGHT_BITS + 1)) return 0;   /* also what is no number */
    uint whole = uint(x);
    precise float rest = x - float(whole);
    return pd_pow2(rest) >> (31 - PD_WEIGHT_BITS + whole);
}

void main()
{
    uint i = gl_LocalInvocationID.x, n = p.draw.d.n;
    weight[i] = i == 0 ? 1 << PD_WEIGHT_BITS : i < n ? weight_of(i) : 0;
    if (i == 0) last = 0;
    barrier();
    uint below = 0, total = 0;   /* sum of the weights before i, and of all */
    for (uint k = 0; k < n; k++) {
        if (k < i) below += weight[k];
        total += weight[k];
    }
    sum[i] = below + weight[i];
    bool in_top_p = p.draw.d.top_p == 0 || below < pd_high(p.draw.d.top_p, total);
    if (weight[i] > 0 && weight[i] >= p.draw.d.min_weight && in_top_p) atomicMax(last, i);
    barrier();
    uint at = pd_high(p.draw.d.random, sum[last]);
    if (at < below || at >= sum[i]) return;
    p.token.at[0] = p.best.at[i].id;
    p.drawn.at[0].logit = p.best.at[0].logit;
    p.drawn.at[0].id = p.best.at[i].id;
}
