#version 460
/* The experts of a token: those with the largest logits, the lower index first of equals, and the softmax of these
 * logits, which is the softmax of all, made to sum to 1; or with RAW that as it is. With SIGMOID, the sigmoid of each
 * logit in the place of the softmax; with BIASED experts are chosen by it and a number of their own. With SCALED times
 * what the expert's results are scaled by. A workgroup takes a token. Grid: [n_tokens]. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

#define LANES 64
layout(local_size_x = LANES) in;
layout(push_constant) uniform Push { pd_route_push p; };
layout(constant_id = 0) const bool SCALED = true;
layout(constant_id = 1) const bool RAW = false;
layout(constant_id = 2) const bool SIGMOID = false;
layout(constant_id = 3) const bool BIASED = false;

shared float logit[PD_MAX_EXPERTS];   /* or what else experts are chosen by */
shared uint best[LANES];
shared uint chosen[PD_MAX_EXPERTS_USED];
shared uint damaged;

bool is_before(uint a, uint b) { return logit[a] > logit[b] || (logit[a] == logit[b] && a < b); }

/* Not yet divided by the sum. top: the largest logit. */
float weight_of(float x, float top)
{
    return SIGMOID ? 1.0 / (1.0 + exp(-clamp(x, -80.0, 80.0))) : softmax_weight(x, top);
}

/* Of experts `first`, first + step, ... the best that was not chosen; p.n_experts: none. */
uint best_of(uint first, uint step)
{
    uint found = p.n_experts;
    for (uint e = first; e < p.n_experts; e += step)
        if (is_finite(logit[e]) && (found == p.n_experts || is_before(e, found))) found = e;
    return found;
}

void main()
{
    uint me = gl_LocalInvocationID.x, m = gl_WorkGroupID.x;
    if (me == 0) damaged = 0;
    barrier();
    for (uint e = me; e < p.n_experts; e += LANES) {
        float x = p.logits.at[m * p.stride + e];
        if (!is_finite(x)) damaged = 1;
        logit[e] = SIGMOID && is_finite(x) ? weight_of(x, 0.0) + (BIASED ? p.biases.at[e] : 0.0) : x;
    }
    barrier();
    float top = 0.0, total = 0.0;
    for (uint j = 0; j < p.n_used; j++) {
        best[me] = best_of(me, LANES);
        barrier();
        if (me == 0) {
            uint found = best[0];
            for (uint l = 1; l < LANES; l++)
                if (best[l] != p.n_experts && (found == p.n_experts || is_before(best[l], found))) found = best[l];
            chosen[j] = found % p.n_experts;   /* where damage leaves too few, any */
        }
        barrier();
        /* Within bounds also where no lane is active: Mesa 26's llvmpipe goes once more through the loop then, and
         * loads what is at one address for all. */
        float x = p.logits.at[m * p.stride + min(chosen[j], p.n_experts - 1)];
        if (j == 0) top = x;
        total += weight_of(x, top);
        barrier();
        if (me == 0) logit[chosen[j]] = NOT_A_NUMBER;
        barrier();
    }
    if (SIGMOID) total = RAW ? 1.0 : total + 1e-6;   /* as published */
    else if (RAW) {
        total = 0.0;
        for (uint e = 0; e < p.n_experts; e++) total += softmax_weight(p.logits.at[m * p.stride + e], top);
    }
    for (uint j = me; j < p.n_used; j += LANES) {
        uint e = chosen[j];
        float w = weight_of(p.logits.at[m * p.stride + e], top) / total;
        if (SCALED) w *= p.scale.at[e];
        p.choices.at[m * p.n_used + j] = pd_choice(e, damaged != 0 ? NOT_A_NUMBER : w);
    }
}
