/* The KV cache: pages, and the element type: fp16 pairs (KV_F16) or fp32 (KV_F32), in words of 32 bits so that no
 * device needs 16-bit storage. Elements are addressed in pairs; i is even. */

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

#if defined(KV_F16)
vec2 kv_load(pd_words cache, uint i) { return unpackHalf2x16(cache.at[i >> 1]); }
/* Values beyond fp16's range are clamped, not made infinite: an infinity would poison every later sum. What is not
 * finite becomes NaN. */
uint kv_pack(vec2 v)
{
    uint nan = (is_finite(v.x) ? 0u : 0x7e00u) | (is_finite(v.y) ? 0u : 0x7e000000u);
    return packHalf2x16(clamp(v, -65504.0, 65504.0)) | nan;
}
void kv_store(pd_words cache, uint i, vec2 v) { cache.at[i >> 1] = kv_pack(v); }
/* What a later load gives. */
vec2 kv_round(vec2 v) { return unpackHalf2x16(kv_pack(v)); }
#ifdef WIDE
/* Elements i .. i + 3; i is a multiple of 4. */
vec4 kv_quad(pd_words cache, uint i)
{
    uvec2 w = unpackUint2x32(pd_pairs(uvec2(cache)).at[i >> 2]);
    return vec4(unpackHalf2x16(w.x), unpackHalf2x16(w.y));
}
#endif
#elif defined(KV_F32)
vec2 kv_load(pd_words cache, uint i) { return uintBitsToFloat(uvec2(cache.at[i], cache.at[i + 1])); }
void kv_store(pd_words cache, uint i, vec2 v)
{
    cache.at[i] = floatBitsToUint(v.x);
    cache.at[i + 1] = floatBitsToUint(v.y);
}
vec2 kv_round(vec2 v) { return v; }
#ifdef WIDE
vec4 kv_quad(pd_words cache, uint i)
{
    return uintBitsToFloat(uvec4(unpackUint2x32(pd_pairs(uvec2(cache)).at[i >> 1]),
                                 unpackUint2x32(pd_pairs(uvec2(cache)).at[(i >> 1) + 1])));
}
#endif
#endif
