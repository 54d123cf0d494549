/* Weight formats: the one place where kernels meet them. A row of n_cols weights lies at a 16-byte aligned address, re-laid
 * at load (src/model/weights.c) so that a unit of UNIT consecutive weights is one uvec4 load: first all quants, then, for
 * block formats, one fp16 scale per 32 weights. Rows end padded with zeros. Defines:
 *   UNIT                        weights per unit, a multiple of 4 dividing 32
 *   load_unit(row, u, n_cols)   unit u of the row as UNIT/4 vec4s in unit_w[], to be multiplied by the scale it returns
 *   load_quad(row, q, n_cols)   weights 4q .. 4q + 3, final: little code, where a unit at once does not matter
 */
#if defined(W_F32)
#define UNIT 4
#elif defined(W_F16) || defined(W_BF16)
#define UNIT 8
#elif defined(W_Q8_0)
#define UNIT 16
#elif defined(W_Q4_0)
#define UNIT 32
#endif

vec4 unit_w[UNIT / 4];

vec4 bytes_signed(uint w)
{
    return vec4(bitfieldExtract(int(w), 0, 8), bitfieldExtract(int(w), 8, 8),
                bitfieldExtract(int(w), 16, 8), bitfieldExtract(int(w), 24, 8));
}

vec4 bytes_unsigned(uint w)
{
    return vec4(w & 0xffu, w >> 8 & 0xffu, w >> 16 & 0xffu, w >> 24);
}

/* fp16 scale of block b; the scales start quants_size bytes into the row. */
float block_scale(uvec2 row, uint quants_size, uint b)
{
    vec2 pair = unpackHalf2x16(pd_words(row).at[(quants_size >> 2) + (b >> 1)]);
    return (b & 1u) == 0u ? pair.x : pair.y;
}

float load_unit(uvec2 row, uint u, uint n_cols)
{
    uvec4 w = pd_uvec4s(row).at[u];
#if defined(W_F32)
    unit_w[0] = uintBitsToFloat(w);
    return 1.0;
#elif defined(W_F16)
    unit_w[0] = vec4(unpackHalf2x16(w.x), unpackHalf2x16(w.y));
    unit_w[1] = vec4(unpackHalf2x16(w.z), unpackHalf2x16(w.w));
    return 1.0;
#elif defined(W_BF16)
    unit_w[0] = uintBitsToFloat(uvec4(w.x << 16, w.x & 0xffff0000u, w.y << 16, w.y & 0xffff0000u));
    unit_w[1] = uintBitsToFloat(uvec4(w.z << 16, w.z & 0xffff0000u, w.w << 16, w.w & 0xffff0000u));
    return 1.0;
#elif defined(W_Q8_0)
    [[unroll]] for (int i = 0; i < 4; i++) unit_w[i] = bytes_signed(w[i]);
    return block_scale(row, n_cols, u >> 1);
#elif defined(W_Q4_0)
    /* Byte j holds weight j in its low nibble and weight j + 16 in its high one; 8 stands for zero. */
    [[unroll]] for (int i = 0; i < 4; i++) {
        unit_w[i] = bytes_unsigned(w[i] & 0x0f0f0f0fu) - 8.0;
        unit_w[i + 4] = bytes_unsigned(w[i] >> 4 & 0x0f0f0f0fu) - 8.0;
    }
    return block_scale(row, n_cols >> 1, u);
#endif
}

vec4 load_quad(uvec2 row, uint q, uint n_cols)
{
#if defined(W_F32)
    return uintBitsToFloat(pd_uvec4s(row).at[q]);
#elif defined(W_F16)
    return vec4(unpackHalf2x16(pd_words(row).at[2 * q]), unpackHalf2x16(pd_words(row).at[2 * q + 1]));
#elif defined(W_BF16)
    uvec2 w = uvec2(pd_words(row).at[2 * q], pd_words(row).at[2 * q + 1]);
    return uintBitsToFloat(uvec4(w.x << 16, w.x & 0xffff0000u, w.y << 16, w.y & 0xffff0000u));
#elif defined(W_Q8_0)
    return bytes_signed(pd_words(row).at[q]) * block_scale(row, n_cols, q >> 3);
#elif defined(W_Q4_0)
    uint w = pd_words(row).at[(q >> 3) * 4 + (q & 3u)] >> (q & 4u);
    return (bytes_unsigned(w & 0x0f0f0f0fu) - 8.0) * block_scale(row, n_cols >> 1, q >> 3);
#endif
}
