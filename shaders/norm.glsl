/* The sum of squares of RMSNorm, in an order that depends neither on the size of workgroups nor on that of subgroups: every
 * kernel that norms a vector gets the same bits. Slot s sums the vec4s s, s + NORM_SLOTS, ...; sums of 16 slots, then their sum.
 * An invocation takes slots  gl_LocalInvocationID.x, + gl_WorkGroupSize.x, ...  and writes their sums to norm_slots. */
#define NORM_SLOTS 256
shared float norm_slots[NORM_SLOTS], norm_parts[NORM_SLOTS / 16];

/* 1 / sqrt(mean of squares + eps) of n numbers, from the slots of all invocations. Holds two barriers. */
float inverse_rms(uint n, float eps)
{
    barrier();
    for (uint i = gl_LocalInvocationID.x; i < NORM_SLOTS / 16; i += gl_WorkGroupSize.x) {
        float sum = 0.0;
        [[unroll]] for (uint k = 0; k < 16; k++) sum += norm_slots[16 * i + k];
        norm_parts[i] = sum;
    }
    barrier();
    float sum = 0.0;
    [[unroll]] for (uint k = 0; k < NORM_SLOTS / 16; k++) sum += norm_parts[k];
    return 1.0 / sqrt(sum / float(n) + eps);
}

/* A branch on its way to the residual stream, and what a matrix reads of it; scale: inverse_rms. */
vec4 norm_branch(vec4 x, vec4 branch, float scale, vec4 w) { return x + branch * scale * w; }
vec4 norm_x(vec4 x, float scale, vec4 w) { return x * scale * w; }
