#version 460
/* Draws the next token from the PD_TOPK best, which topk has sorted: what pd_sampler_adjust and pd_draw_from do in
 * sampler.c, in the same numbers. Biases and penalties change logits, which are put in order again; then
 *   w[i] = 2^-((best[0] - best[i]) scale) for i < n and best[0] - best[i] <= reach;
 *   last = the last i that top-p and min-p keep;
 *   first = 0, or where XTC cuts, the last i that has its part of the weight;
 *   the token is the first whose sum w[first] + .. + w[i] is beyond random * (w[first] + .. + w[last]).
 * One workgroup a row; each invocation has a candidate, and adds up the weights for itself. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "draw.h"

layout(local_size_x = PD_TOPK) in;
layout(push_constant) uniform Push { pd_sample_push p; };

shared pd_candidate best[PD_TOPK], bias[PD_TOPK];
shared uint recent[PD_REPEAT_WINDOW];
shared uint weight[PD_TOPK], sum[PD_TOPK];
shared uint first, last;

pd_candidate adjusted(pd_candidate c, pd_draw d)
{
    uint count = 0;
    precise float logit = c.logit;
    for (uint k = 0; k < d.n_bias; k++)
        if (bias[k].id == c.id) logit += bias[k].logit;
    for (uint k = 0; k < d.n_recent; k++) count += uint(recent[k] == c.id);
    if (count > 0) {
        logit *= logit > 0.0 ? d.inverse_repeat : d.repeat;
        precise float often = d.frequency * float(count);
        logit = logit - d.presence - often;
    }
    return pd_candidate(logit, c.id);
}

/* Each candidate goes where as many are as are better. Of what is no number some may go nowhere, and what was there
 * stays. */
void sort(uint i)
{
    pd_candidate mine = best[i];
    uint place = 0;
    for (uint k = 0; k < PD_TOPK; k++)
        place += uint(best[k].logit > mine.logit || (best[k].logit == mine.logit && best[k].id < mine.id));
    barrier();
    best[place] = mine;
}

uint weight_of(uint i, pd_draw d)
{
    precise float below = best[0].logit - best[i].logit;
    precise float x = below * d.scale;
    if (d.reach > 0.0 && below > d.reach) return 0;
    if (!(x < PD_WEIGHT_BITS + 1)) return 0;   /* also what is no number */
    uint whole = uint(x);
    precise float rest = x - float(whole);
    return pd_pow2(rest) >> (31 - PD_WEIGHT_BITS + whole);
}

void main()
{
    uint i = gl_LocalInvocationID.x, row = gl_WorkGroupID.x;
    pd_draw d = p.draws.at[row];
    bool finite = is_finite(p.best.at[row * PD_TOPK].logit);
    if (!finite) d.adjusts = 0;   /* the host refuses it: the first candidate will do */
    uint n = finite ? d.n : 1;
    best[i] = p.best.at[row * PD_TOPK + i];
    if (d.adjusts != 0) {
        if (i < d.n_bias) bias[i] = p.bias.at[row * PD_TOPK + i];
        if (i < d.n_recent) recent[i] = p.recent.at[row * PD_REPEAT_WINDOW + i];
        barrier();
        best[i] = adjusted(best[i], d);
        barrier();
        sort(i);
    }
    barrier();
    weight[i] = i == 0 ? 1 << PD_WEIGHT_BITS : i < n ? weight_of(i, d) : 0;
    if (i == 0) first = last = 0;
    barrier();
    uint below = 0, total = 0;   /* sum of the weights before i, and of all */
    for (uint k = 0; k < n; k++) {
        if (k < i) below += weight[k];
        total += weight[k];
    }
    sum[i] = below + weight[i];
    bool in_top_p = d.top_p == 0 || below < pd_high(d.top_p, total);
    if (weight[i] > 0 && weight[i] >= d.min_weight && in_top_p) atomicMax(last, i);
    barrier();
    if (d.xtc != 0 && i <= last && weight[i] >= pd_high(d.xtc, sum[last])) atomicMax(first, i);
    barrier();
    uint out_of_it = sum[first] - weight[first];
    uint at = out_of_it + pd_high(d.random, sum[last] - out_of_it);
    if (at < below || at >= sum[i]) return;
    p.tokens.at[row] = best[i].id;
    p.recent.at[row * PD_REPEAT_WINDOW + d.next] = best[i].id;
    p.drawn.at[row].logit = p.best.at[row * PD_TOPK].logit;
    p.drawn.at[row].id = best[i].id;
}
