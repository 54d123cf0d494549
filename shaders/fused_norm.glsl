/* The vector that a matrix reads in a decode step, the last branch added, and normed, by every workgroup for itself:
 * see pd_matvec_push. The includer has the constants NORM_VEC4S, BRANCH and STORE and the shared vec4s normed[], where
 * vec4 i of x is at PLACE(i). */
#include "norm.glsl"

void prepare_x()
{
    uint me = gl_LocalInvocationID.x, step = gl_WorkGroupSize.x, n = p.n_cols / 4, n_slots = n_norm_slots(p.n_cols);
    float scale = 1.0;
    if (BRANCH == 2) {
        for (uint slot = me; slot < n_slots; slot += step) {
            float squares = 0.0;
            for (uint i = slot; i < n; i += n_slots) squares += dot(p.branch.at[i], p.branch.at[i]);
            norm_slots[slot] = squares;
        }
        scale = inverse_rms(p.n_cols, p.eps);
    }
    for (uint slot = me; slot < n_slots; slot += step) {
        float squares = 0.0;
        for (uint i = slot; i < n; i += n_slots) {
            vec4 x = p.x.at[i];
            if (BRANCH == 1) x = add_branch(x, p.branch.at[i], p.x_scale);
            if (BRANCH == 2) x = add_normed(x, p.branch.at[i], scale, p.w_post.at[i], p.x_scale);
            if (STORE == 1 && gl_WorkGroupID.x == 0) p.store.at[i] = x;
            squares += dot(x, x);
            normed[PLACE(i)] = x;
        }
        norm_slots[slot] = squares;
    }
    scale = inverse_rms(p.n_cols, p.eps);
    for (uint i = me; i < NORM_VEC4S; i += step) {
        vec4 x = i < n ? norm_x(normed[PLACE(i)], scale, p.w_norm.at[i]) : vec4(0);
        normed[PLACE(i)] = x;
        if (STORE == 2 && gl_WorkGroupID.x == 0 && i < n) p.store.at[i] = x;
    }
    barrier();
}
