#version 460
/* The experts of a token: those with the largest logits, the lower index first of equals, and the softmax of these
 * logits, which is the softmax of all, made to sum to 1; or with RAW that as it is. With SCALED times what the expert's
 * results are scaled by. A workgroup takes a token. Grid: [n_tokens]. */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

#define LANES 64
layout(local_size_x = LANES) in;
layout(push_constant) uniform Push { pd_route_push p; };
layout(constant_id = 0) const bool SCALED = true;
layout(constant_id = 1) const bool RAW = false;

shared float logit[PD_MAX_EXPERTS];
shared uint best[LANES];
shared uint chosen[PD_MAX_EXPERTS_USED];
shared uint damaged;

bool is_before(uint a, uint b) { return logit[a] > logit[b] || (logit[a] == logit[b] && a < b); }

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
        logit[e] = p.logits.at[m * p.stride + e];
        if (!is_finite(logit[e])) damaged = 1;
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
        float x = logit[chosen[j]];
        if (j == 0) top = x;
        total += softmax_weight(x, top);
        barrier();
        if (me == 0) logit[chosen[j]] = NOT_A_NUMBER;
        barrier();
    }
    if (RAW) {
        total = 0.0;
        for (uint e = 0; e < p.n_experts; e++) total += softmax_weight(p.logits.at[m * p.stride + e], top);
    }
    for (uint j = me; j < p.n_used; j += LANES) {
        uint e = chosen[j];
        float w = softmax_weight(p.logits.at[m * p.stride + e], top) / total;
        if (SCALED) w *= p.scale.at[e];
        p.choices.at[m * p.n_used + j] = pd_choice(e, damaged != 0 ? NOT_A_NUMBER : w);
    }
}
