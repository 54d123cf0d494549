/* Activations for dot products of bytes, in blocks of 32 with a scale each: whole numbers of 16 bits in two signed
 * bytes (256 * high + low), the largest of the block being 127 * 256. Where a value is not finite, the scale is not
 * either. The includer has GL_EXT_integer_dot_product. */
#define Q16_LARGEST (127.0 * 256.0)
#define SMALLEST 1.5e-34   /* Q16_LARGEST over what is below may be too large for fp32: it becomes zeros */

struct q16 {
    uvec4 high[2], low[2];   /* of the halves of the block: 16 bytes each */
    ivec2 sums;              /* of their whole numbers */
    float scale;
};

/* Bits of non-negative floats are ordered as they are, and those of infinity and NaN come last. */
float largest(vec4 x[8])
{
    uvec4 m = uvec4(0);
    [[unroll]] for (uint i = 0; i < 8; i++) m = max(m, floatBitsToUint(abs(x[i])));
    return uintBitsToFloat(max(max(m.x, m.y), max(m.z, m.w)));
}

int dot16(uvec4 a, uvec4 b, int sum)
{
    [[unroll]] for (uint k = 0; k < 4; k++) sum += dotPacked4x8EXT(int(a[k]), int(b[k]));
    return sum;
}

/* 1.5 * 2^23 and a number below 2^22 are a float that ends in that number, rounded to even, in two's complement. With
 * 128 more, the byte above the last is `high`, and the last, less 128, is `low`. Bytes 0 and 2 of a word come from
 * pairs of such floats, 1 and 3 too. */
q16 q16_of(vec4 x[8])
{
    q16 block;
    float m = largest(x), inverse = m < SMALLEST ? 0.0 : Q16_LARGEST / m;
    block.scale = m / Q16_LARGEST;
    [[unroll]] for (uint i = 0; i < 8; i++) {
        uvec4 u = floatBitsToUint(x[i] * inverse + (12582912.0 + 128.0));
        uvec2 pairs = u.xy & 0xffffu | u.zw << 16;
        block.high[i >> 2][i & 3u] = pairs.x >> 8 & 0x00ff00ffu | pairs.y & 0xff00ff00u;
        block.low[i >> 2][i & 3u] = (pairs.x & 0x00ff00ffu | (pairs.y & 0x00ff00ffu) << 8) ^ 0x80808080u;
    }
    const uvec4 ones = uvec4(0x01010101u);
    [[unroll]] for (uint h = 0; h < 2; h++)
        block.sums[h] = dot16(ones, block.low[h], dot16(ones, block.high[h], 0) << 8);
    return block;
}
