/* A position's key and value of one head on their way to the cache, by a whole workgroup: it puts their elements into
 * kv_new, calls kv_finish with the side of the cache that the first of them is of, and then writes them with kv_write
 * and takes what a later load will give from kv_rounded. Kernels define KV_NEW, the elements of kv_new: HEAD_DIM for
 * each of them, the key first; and KV_BARRIER. */
shared float kv_new[KV_NEW];

#if defined(KV_F16)
/* Values beyond fp16's range are clamped, not made infinite: an infinity would poison every later sum. What is not
 * finite becomes NaN. */
uint kv_pack(vec2 v)
{
    uint nan = (is_finite(v.x) ? 0u : 0x7e00u) | (is_finite(v.y) ? 0u : 0x7e000000u);
    return packHalf2x16(clamp(v, -65504.0, 65504.0)) | nan;
}
void kv_finish() { KV_BARRIER(); }
float kv_rounded(uint at) { return unpackHalf2x16(kv_pack(vec2(kv_new[at], 0))).x; }
/* first: 0 for what is first in kv_new, HEAD_DIM for what comes after it. */
void kv_write(pd_words cache, uint row, uint first)
{
    for (uint i = 2 * gl_LocalInvocationID.x; i < HEAD_DIM; i += 2 * gl_WorkGroupSize.x)
        cache.at[(row + i) >> 1] = kv_pack(vec2(kv_new[first + i], kv_new[first + i + 1]));
}
#elif defined(KV_F32)
void kv_finish() { KV_BARRIER(); }
float kv_rounded(uint at) { return kv_new[at]; }
void kv_write(pd_words cache, uint row, uint first)
{
    for (uint i = gl_LocalInvocationID.x; i < HEAD_DIM; i += gl_WorkGroupSize.x)
        cache.at[row + i] = floatBitsToUint(kv_new[first + i]);
}
#elif defined(KV_Q8_0)
const uint KV_BLOCKS = (HEAD_DIM + PD_KV_BLOCK - 1) / PD_KV_BLOCK;
shared float kv_new_scale[2 * KV_BLOCKS];   /* of the key's blocks, then of the value's */

/* The least bf16 of which no element is more than 127 times, so that none is clamped, but for those beyond fp16's range
 * as in fp16; NaN where one is not finite. Elements are compared as bits: those of NaN are largest. */
float kv_scale_of(uint largest)
{
    if (largest >= 0x7f800000u) return NOT_A_NUMBER;
    float scale = clamp(uintBitsToFloat(largest), 1e-30, 65504.0) / 127.0;
    return uintBitsToFloat((floatBitsToUint(scale) + 0xffffu) & 0xffff0000u);
}
void kv_finish()
{
    KV_BARRIER();
    for (uint b = gl_LocalInvocationID.x; b < KV_NEW / HEAD_DIM * KV_BLOCKS; b += gl_WorkGroupSize.x) {
        uint first = b % KV_BLOCKS * PD_KV_BLOCK, largest = 0;
        for (uint k = 0; k < PD_KV_BLOCK; k++) {
            uint i = first + (k + b) % PD_KV_BLOCK;   /* not all in the same bank */
            if (i < HEAD_DIM)
                largest = max(largest, floatBitsToUint(kv_new[b / KV_BLOCKS * HEAD_DIM + i]) & 0x7fffffffu);
        }
        kv_new_scale[b] = kv_scale_of(largest);
    }
    KV_BARRIER();
}
float kv_new_scale_at(uint at) { return kv_new_scale[at / HEAD_DIM * KV_BLOCKS + at % HEAD_DIM / PD_KV_BLOCK]; }
float kv_integer(uint at) { return clamp(roundEven(kv_new[at] / kv_new_scale_at(at)), -127.0, 127.0); }
float kv_rounded(uint at) { return kv_integer(at) * kv_new_scale_at(at); }
void kv_write(pd_words cache, uint row, uint first)
{
    for (uint i = 4 * gl_LocalInvocationID.x; i < HEAD_DIM; i += 4 * gl_WorkGroupSize.x) {
        uint four = 0;
        [[unroll]] for (uint k = 0; k < 4; k++) four |= (uint(int(kv_integer(first + i + k))) & 0xffu) << 8 * k;
        cache.at[row + i / 4] = four;
    }
    for (uint b = 2 * gl_LocalInvocationID.x; b < KV_BLOCKS; b += 2 * gl_WorkGroupSize.x) {
        uint at = first / HEAD_DIM * KV_BLOCKS + b, pair = floatBitsToUint(kv_new_scale[at]) >> 16;
        if (b + 1 < KV_BLOCKS) pair |= floatBitsToUint(kv_new_scale[at + 1]);
        cache.at[row + HEAD_DIM / 4 + b / 2] = pair;
    }
}
#else
const uint BLOCKS = PD_KV_BLOCKS(HEAD_DIM);
shared vec2 kv_new_scale[2 * BLOCKS];   /* and minimum: of the first's blocks, then of the second's */

/* The side of the cache that `at` in kv_new is of, where there are key and value. */
uint kv_side_of(uint at) { return at / HEAD_DIM; }
float kv_most(uint side) { return float((PD_KV_HAS_MIN(KV_FORM(side)) ? 1u << PD_KV_BITS(KV_FORM(side)) : 128u) - 1); }

/* The least bf16 that is not below a number. */
float kv_round_up(float x)
{
    uint bits = floatBitsToUint(x);
    return uintBitsToFloat((bits + (x < 0.0 ? 0u : 0xffffu)) & 0xffff0000u);
}

/* The least bf16 of which no element is more than kv_most times, above the minimum where there is one, so that none is
 * clamped, but for those beyond fp16's range as in fp16; NaN where one is not finite. */
vec2 kv_scale_of(uint side, float lowest, float highest)
{
    if (!is_finite(lowest) || !is_finite(highest)) return vec2(NOT_A_NUMBER);
    vec2 ends = clamp(vec2(lowest, highest), -65504.0, 65504.0);
    if (!PD_KV_HAS_MIN(KV_FORM(side)))
        return vec2(kv_round_up(max(max(-ends.x, ends.y), 1e-30) / kv_most(side)), 0.0);
    float least = -kv_round_up(-ends.x);
    return vec2(kv_round_up(max(ends.y - least, 1e-30) / kv_most(side)), least);
}

void kv_finish(uint side)
{
    KV_BARRIER();
    for (uint b = gl_LocalInvocationID.x; b < KV_NEW / HEAD_DIM * BLOCKS; b += gl_WorkGroupSize.x) {
        uint first = b % BLOCKS * PD_KV_BLOCK;
        float lowest = kv_new[b / BLOCKS * HEAD_DIM + first], highest = lowest, other = 0.0;
        for (uint k = 0; k < PD_KV_BLOCK; k++) {
            uint i = first + (k + b) % PD_KV_BLOCK;   /* not all in the same bank */
            if (i >= HEAD_DIM) continue;
            float x = kv_new[b / BLOCKS * HEAD_DIM + i];
            if (!is_finite(x)) other = NOT_A_NUMBER;
            lowest = min(lowest, x);
            highest = max(highest, x);
        }
        kv_new_scale[b] = kv_scale_of(side + b / BLOCKS, is_finite(other) ? lowest : other, highest);
    }
    KV_BARRIER();
}
vec2 kv_new_scale_at(uint at) { return kv_new_scale[at / HEAD_DIM * BLOCKS + at % HEAD_DIM / PD_KV_BLOCK]; }
float kv_integer(uint side, uint at)
{
    vec2 s = kv_new_scale_at(at);
    if (!PD_KV_HAS_MIN(KV_FORM(side))) return clamp(roundEven(kv_new[at] / s.x), -kv_most(side), kv_most(side));
    return clamp(roundEven((kv_new[at] - s.y) / s.x), 0.0, kv_most(side));
}
float kv_rounded(uint at)
{
    vec2 s = kv_new_scale_at(at);
    return kv_integer(kv_side_of(at), at) * s.x + s.y;
}

/* The lower bits of the elements from i on that are in a word. */
uint kv_low_word(uint side, uint first, uint i)
{
    uint bits = PD_KV_BITS(KV_FORM(side)) / 4 * 4, word = 0;
    [[unroll]] for (uint k = 0; k < 8 && k < 32 / bits; k++)
        if (i + k < HEAD_DIM) word |= (uint(int(kv_integer(side, first + i + k))) & ((1u << bits) - 1)) << bits * k;
    return word;
}

void kv_write(uint side, pd_words cache, uint row, uint first)
{
    uint n = 32 / (PD_KV_BITS(KV_FORM(side)) / 4 * 4), high = row + PD_KV_LOW_WORDS(KV_FORM(side), HEAD_DIM);
    for (uint i = n * gl_LocalInvocationID.x; i < HEAD_DIM; i += n * gl_WorkGroupSize.x)
        cache.at[row + i / n] = kv_low_word(side, first, i);
    for (uint b = gl_LocalInvocationID.x; b < PD_KV_HIGH_WORDS(KV_FORM(side), HEAD_DIM); b += gl_WorkGroupSize.x) {
        uint word = 0;
        for (uint k = 0; k < min(HEAD_DIM - b * PD_KV_BLOCK, PD_KV_BLOCK); k++)
            word |= uint(kv_integer(side, first + b * PD_KV_BLOCK + k)) >> 4 << k;
        cache.at[high + b] = word;
    }
    for (uint w = gl_LocalInvocationID.x; w < PD_KV_SCALE_WORDS(KV_FORM(side), HEAD_DIM); w += gl_WorkGroupSize.x) {
        bool has_min = PD_KV_HAS_MIN(KV_FORM(side));
        uint b = has_min ? w : 2 * w, at = first / HEAD_DIM * BLOCKS + b;
        uint pair = floatBitsToUint(kv_new_scale[at].x) >> 16;
        if (has_min) pair |= floatBitsToUint(kv_new_scale[at].y) & 0xffff0000u;
        else if (b + 1 < BLOCKS) pair |= floatBitsToUint(kv_new_scale[at + 1].x);
        cache.at[row + kv_scales_at(side) + w] = pair;
    }
}
#endif

#ifndef KV_SIDES
#define kv_finish(side) kv_finish()
#endif
