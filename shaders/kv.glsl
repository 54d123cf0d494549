/* The KV cache: pages, and the type of its elements: fp16 (KV_F16), fp32 (KV_F32) or blocks of 8-bit integers
 * (KV_Q8_0), in words of 32 bits so that no device needs 16-bit or 8-bit storage. Kernels define HEAD_DIM before. */

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

/* Of each type:
 *   kv_row(head)              where a head of a slot begins; head: slot * n_kv_heads + its number
 *   kv_load(cache, row, i)    its elements i and i + 1; i is even
 *   kv_quad(cache, row, i)    i .. i + 3; i is a multiple of 4
 *   kv_quad_unscaled(...)     the same, to be multiplied by the kv_scale(...) that all elements of a block have, those
 *                             between multiples of PD_KV_BLOCK
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
/* A head is a row of words: integers from -127 to 127, four to a word, then the scales of its blocks as bf16, two to a
 * word. The last block may be shorter. */
uint kv_row(uint head) { return head * PD_KV_Q8_0_WORDS(HEAD_DIM); }
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
#endif

#ifndef KV_Q8_0
#ifndef WIDE
vec4 kv_quad(pd_words cache, uint row, uint i) { return vec4(kv_load(cache, row, i), kv_load(cache, row, i + 2)); }
#endif
vec4 kv_quad_unscaled(pd_words cache, uint row, uint i) { return kv_quad(cache, row, i); }
float kv_scale(pd_words cache, uint row, uint i) { return 1.0; }
#endif
