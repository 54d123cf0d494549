/* The KV cache: pages, and the type of its elements: fp16 (KV_F16), fp32 (KV_F32) or blocks of small integers (others),
 * in words of 32 bits so that no device needs 16-bit or 8-bit storage. Kernels define HEAD_DIM before. KV_FORM says
 * what either side of a cache of blocks is made of: see params.h. */

/* The slot of the cache that has a key of a text (see pd_place); the slots of a page are neighbours. `last` is the last
 * key that the text has, and stands in for those past it: llvmpipe (Mesa 26.1) loads from uniform addresses where no
 * invocation is active, too, after the last turn of a loop or a return, and the table may end there. */
uint slot_of_key(pd_words pages, uint text, uint key, uint last)
{
    uint slot = text + min(key, last);
    return pages.at[slot / PD_PAGE] * PD_PAGE + slot % PD_PAGE;
}

/* Of n slots from `slot` on, those that are in its `tile`: slots between two multiples of a divisor of PD_PAGE. */
uint slots_of_tile(uint slot, uint tile, uint n) { return min(tile - slot % tile, n); }

/* Of each type, where s is SIDE(PD_KEYS) or SIDE(PD_VALUES), whichever `cache` is: an argument for caches of blocks,
 * whose sides may differ, and nothing for others:
 *   kv_row(s head)              where a head of a slot begins; head: slot * n_kv_heads + its number
 *   kv_load(s cache, row, i)    its elements i and i + 1; i is even
 *   kv_quad(s cache, row, i)    i .. i + 3; i is a multiple of 4
 *   kv_quad_unscaled(...)       the same, to be multiplied by the kv_scale(...) that all elements of a block have,
 *                               those between multiples of PD_KV_BLOCK
 * Writing is in kv_write.glsl. */
#if defined(KV_F16)
uint kv_row(uint head) { return head * HEAD_DIM; }
vec2 kv_load(pd_words cache, uint row, uint i) { return unpackHalf2x16(cache.at[(row + i) >> 1]); }
#ifdef WIDE
vec4 kv_quad(pd_words cache, uint row, uint i)
{
    uvec2 w = unpackUint2x32(pd_pairs(uvec2(cache)).at[(row + i) >> 2]);
    return vec4(unpackHalf2x16(w.x), unpackHalf2x16(w.y));
}
#endif
#elif defined(KV_F32)
uint kv_row(uint head) { return head * HEAD_DIM; }
vec2 kv_load(pd_words cache, uint row, uint i)
{
    return uintBitsToFloat(uvec2(cache.at[row + i], cache.at[row + i + 1]));
}
#ifdef WIDE
vec4 kv_quad(pd_words cache, uint row, uint i)
{
    return uintBitsToFloat(uvec4(unpackUint2x32(pd_pairs(uvec2(cache)).at[(row + i) >> 1]),
                                 unpackUint2x32(pd_pairs(uvec2(cache)).at[((row + i) >> 1) + 1])));
}
#endif
#elif defined(KV_Q8_0)
/* Apart from the blocks below, as whose text Intel's compilers made up to 18 % more instructions of it. */
/* A head is a row of words: integers from -127 to 127, four to a word, then the scales of its blocks as bf16, two to a
 * word. The last block may be shorter. */
uint kv_row(uint head) { return head * (HEAD_DIM / 4 + (HEAD_DIM + 63) / 64); }
float kv_scale(pd_words cache, uint row, uint i)
{
    uint pair = cache.at[row + HEAD_DIM / 4 + i / (2 * PD_KV_BLOCK)];
    return uintBitsToFloat(i / PD_KV_BLOCK % 2 == 0 ? pair << 16 : pair & 0xffff0000u);
}
vec4 kv_quad_unscaled(pd_words cache, uint row, uint i)
{
    int four = int(cache.at[row + i / 4]);
    return vec4(ivec4(four << 24, four << 16, four << 8, four) >> 24);
}
vec4 kv_quad(pd_words cache, uint row, uint i)
{
    return kv_quad_unscaled(cache, row, i) * kv_scale(cache, row, i);
}
vec2 kv_load(pd_words cache, uint row, uint i)
{
    int two = int(cache.at[row + i / 4] >> 8 * (i & 2));
    return vec2(ivec2(two << 24, two << 16) >> 24) * kv_scale(cache, row, i);
}
#else
#define KV_SIDES
#define SIDE(side) side,
uint kv_row(uint side, uint head) { return head * PD_KV_WORDS(KV_FORM(side), HEAD_DIM); }
/* A head is a row of words: the integers, from -127 to 127 or, where blocks have a minimum, from 0 on, four of 8 bits
 * or eight of 4 to a word; of five bits the fifth ones, those of a block in a word; then the scales of the blocks as
 * bf16, two to a word, or each block's scale and, in the high half, minimum. The last block may be shorter. */
uint kv_scales_at(uint side)
{
    return PD_KV_LOW_WORDS(KV_FORM(side), HEAD_DIM) + PD_KV_HIGH_WORDS(KV_FORM(side), HEAD_DIM);
}

vec2 kv_scale_and_min(uint side, pd_words cache, uint row, uint i)
{
    uint block = i / PD_KV_BLOCK, at = row + kv_scales_at(side);
    if (PD_KV_HAS_MIN(KV_FORM(side))) {
        uint both = cache.at[at + block];
        return uintBitsToFloat(uvec2(both << 16, both & 0xffff0000u));
    }
    uint pair = cache.at[at + block / 2];
    return vec2(uintBitsToFloat(block % 2 == 0 ? pair << 16 : pair & 0xffff0000u), 0.0);
}

/* Integers of the n elements from i on, and of what comes after them. */
ivec4 kv_integers(uint side, pd_words cache, uint row, uint i, uint n)
{
    if (PD_KV_BITS(KV_FORM(side)) == 8) {
        int four = int(cache.at[row + i / 4] >> (n == 4 ? 0 : 8 * (i & 2)));
        return ivec4(four << 24, four << 16, four << 8, four) >> 24;
    }
    uint low = cache.at[row + i / 8] >> 4 * (i & 7);
    uvec4 x = uvec4(low, low >> 4, low >> 8, low >> 12) & 15u;
    if (PD_KV_BITS(KV_FORM(side)) == 5) {
        uint high = cache.at[row + PD_KV_LOW_WORDS(KV_FORM(side), HEAD_DIM) + i / PD_KV_BLOCK] >> i % PD_KV_BLOCK;
        x |= uvec4(high << 4, high << 3, high << 2, high << 1) & 16u;
    }
    return ivec4(x);
}

vec4 kv_quad(uint side, pd_words cache, uint row, uint i)
{
    vec2 s = kv_scale_and_min(side, cache, row, i);
    vec4 x = vec4(kv_integers(side, cache, row, i, 4)) * s.x;
    return PD_KV_HAS_MIN(KV_FORM(side)) ? x + s.y : x;
}

vec2 kv_load(uint side, pd_words cache, uint row, uint i)
{
    vec2 s = kv_scale_and_min(side, cache, row, i), x = vec2(kv_integers(side, cache, row, i, 2).xy) * s.x;
    return PD_KV_HAS_MIN(KV_FORM(side)) ? x + s.y : x;
}

vec4 kv_quad_unscaled(uint side, pd_words cache, uint row, uint i)
{
    if (PD_KV_HAS_MIN(KV_FORM(side))) return kv_quad(side, cache, row, i);
    return vec4(kv_integers(side, cache, row, i, 4));
}

float kv_scale(uint side, pd_words cache, uint row, uint i)
{
    return PD_KV_HAS_MIN(KV_FORM(side)) ? 1.0 : kv_scale_and_min(side, cache, row, i).x;
}
#endif

#ifndef KV_SIDES
#define SIDE(side)
#ifndef KV_Q8_0
#ifndef WIDE
vec4 kv_quad(pd_words cache, uint row, uint i) { return vec4(kv_load(cache, row, i), kv_load(cache, row, i + 2)); }
#endif
vec4 kv_quad_unscaled(pd_words cache, uint row, uint i) { return kv_quad(cache, row, i); }
float kv_scale(pd_words cache, uint row, uint i) { return 1.0; }
#endif
#endif
