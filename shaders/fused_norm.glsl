/* The vector that a matrix reads in a decode step, the last branch added, and normed, by every workgroup for itself:
 * see pd_matvec_push. The includer has the constants NORM_VEC4S, BRANCH and STORE and the shared vec4s normed[], where vec4 i of
 * x is at PLACE(i). */
float inverse_rms(float squares) { return 1.0 / sqrt(workgroup_sum(squares) / float(p.n_cols) + p.eps); }

void prepare_x()
{
    uint me = gl_LocalInvocationID.x, step = gl_WorkGroupSize.x, n = p.n_cols / 4;
    float squares = 0.0, scale = 1.0;
    if (BRANCH == 2) {
        for (uint i = me; i < n; i += step) squares += dot(p.branch.at[i], p.branch.at[i]);
        scale = inverse_rms(squares);
        squares = 0.0;
    }
    for (uint i = me; i < n; i += step) {
        vec4 x = p.x.at[i];
        if (BRANCH == 1) x += p.branch.at[i];
        if (BRANCH == 2) x += p.branch.at[i] * scale * p.w_post.at[i];
        if (STORE == 1 && gl_WorkGroupID.x == 0) p.store.at[i] = x;
        squares += dot(x, x);
        normed[PLACE(i)] = x;
    }
    scale = inverse_rms(squares);
    for (uint i = me; i < NORM_VEC4S; i += step) {
        vec4 x = i < n ? normed[PLACE(i)] * scale * p.w_norm.at[i] : vec4(0);
        normed[PLACE(i)] = x;
        if (STORE == 2 && gl_WorkGroupID.x == 0 && i < n) p.store.at[i] = x;
    }
    barrier();
}
