/* The sum of squares of RMSNorm, in an order that depends neither on the size of workgroups nor on that of subgroups:
 * every kernel that norms a vector gets the same bits. Of n_slots slots, slot s sums the vec4s s, s + n_slots, ...;
 * then part i of 16 sums the slots i, i + 16, ...; then all parts are added up. An invocation takes the slots
 *   gl_LocalInvocationID.x, + gl_WorkGroupSize.x, ...
 * and writes their sums to norm_slots. */
#define MAX_NORM_SLOTS 256
#define NORM_PARTS 16
shared float norm_slots[MAX_NORM_SLOTS], norm_parts[NORM_PARTS];

/* For a vector of n numbers: as many as keep a workgroup of 256 at work, but few where most would have nothing. */
uint n_norm_slots(uint n) { return n <= 512 ? 32 : MAX_NORM_SLOTS; }

/* 1 / sqrt(mean of squares + eps) of n numbers, from the slots of all invocations. Holds two barriers. */
float inverse_rms(uint n, float eps)
{
    barrier();
    for (uint i = gl_LocalInvocationID.x; i < NORM_PARTS; i += gl_WorkGroupSize.x) {
        float sum = 0.0;
        for (uint k = i; k < n_norm_slots(n); k += NORM_PARTS) sum += norm_slots[k];
        norm_parts[i] = sum;
    }
    barrier();
    float sum = 0.0;
    [[unroll]] for (uint k = 0; k < NORM_PARTS; k++) sum += norm_parts[k];
    return rms_scale(sum / float(n) + eps);
}

/* The residual stream with a branch normed, or as it is, and what a matrix reads of it; scale: inverse_rms. */
vec4 add_normed(vec4 x, vec4 branch, float scale, vec4 w, float x_scale) { return (x + branch * scale * w) * x_scale; }
vec4 add_branch(vec4 x, vec4 branch, float x_scale) { return (x + branch) * x_scale; }
vec4 norm_x(vec4 x, float scale, vec4 w) { return x * scale * w; }
