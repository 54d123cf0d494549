/* How rows of weights lie on the device (shaders/weights.glsl says the same to kernels): sections of low bits, high
 * bits, block scales and superblock scales. Rows of blocks lie one after the other, or interleaved in groups of rows,
 * 16 bytes of each in turn. Re-laying changes no number: a weight on the device is the weight in the file.
 *
 * Files lay blocks out as structs of 17 to 210 bytes, which GPUs cannot load 16 bytes at a time. In sections every load
 * is aligned, and neighbouring lanes read neighbouring memory; packed scales of six bits become bytes, an eighth of a
 * bit more for a weight of q4_k.
 *
 * So blocks are copied where the device could read the mapped file, too, and pages of the file are given back matrix by
 * matrix. To read them where they are would take matvec of experts 22 to 52 % more vector instructions a weight for
 * q4_0 (18 bytes, rows of whole words) and 38 to 78 % more for mxfp4 (17 bytes: words are shifted into place by their
 * address), as Mesa compiles it for Phoenix, gfx1151, Tiger Lake, Meteor Lake, Lunar Lake, Ampere and Adreno 740. */
#include "base/base.h"
#include "format/format.h"
#include "ops/ops.h"
#include "ops/ops_.h"

#include <string.h>

enum pd_dtype pd_device_dtype(enum pd_dtype dtype)
{
    return pd_block_layouts[dtype].device;
}

/* Of n_blocks blocks of 32. */
static uint32_t scales_size(const struct pd_block_layout *l, uint32_t n_blocks)
{
    return n_blocks / l->shared * l->scale;
}

static uint32_t used_size(enum pd_dtype dtype, uint32_t n)
{
    const struct pd_block_layout *l = &pd_block_layouts[dtype];
    if (pd_dtypes[dtype].block_len == 1) return n * pd_dtypes[dtype].block_size;
    return n / 32 * (l->low + l->high) + scales_size(l, n / 32) + n / 256 * l->super + l->row_scale;
}

uint32_t pd_device_row_size(enum pd_dtype dtype, uint32_t n)
{
    return (uint32_t)pd_align(used_size(dtype, n), 16);
}

/* Q8_0's blocks: a fp16 scale, then a byte a weight. */
static void row_of_bytes(uint8_t *dst, const uint8_t *src, uint32_t n)
{
    for (uint32_t b = 0; b < n / 32; b++, src += 34) {
        memcpy(dst + n + 2 * b, src, 2);
        memcpy(dst + (size_t)32 * b, src + 2, 32);
    }
}

static void row_of_blocks(enum pd_dtype dtype, uint8_t *dst, const uint8_t *src, uint32_t n)
{
    const struct pd_block_layout *l = &pd_block_layouts[dtype];
    uint32_t per_block = pd_dtypes[dtype].block_len / 32, n_blocks = n / 32;
    struct pd_block block = {.low = dst};
    block.high = block.low + (size_t)n_blocks * l->low;
    block.scale = block.high + (size_t)n_blocks * l->high;
    block.super = block.scale + scales_size(l, n_blocks);
    for (uint32_t b = 0; b < n_blocks; b += per_block, src += pd_dtypes[dtype].block_size) {
        pd_block_put(dtype, &block, src);
        block.low += per_block * l->low;
        block.high += per_block * l->high;
        block.scale += scales_size(l, per_block);
        block.super += l->super;
    }
}

static void put_row(enum pd_dtype dtype, uint8_t *dst, const uint8_t *src, float scale, uint32_t n)
{
    uint32_t used = used_size(dtype, n);
    if (pd_block_layouts[dtype].row_scale) memcpy(dst + used - sizeof scale, &scale, sizeof scale);
    if (pd_dtypes[dtype].block_len == 1) memcpy(dst, src, used);
    else if (pd_block_layouts[dtype].form == PD_FORM_bytes) row_of_bytes(dst, src, n);
    else row_of_blocks(dtype, dst, src, n);
    memset(dst + used, 0, pd_device_row_size(dtype, n) - used);
}

uint32_t pd_device_row_interleave(enum pd_dtype dtype, bool lanes_take_rows)
{
    return lanes_take_rows && pd_dtypes[dtype].block_len > 1 ? 8 : 1;
}

uint64_t pd_device_rows_size(uint32_t row_size, uint32_t n_rows, uint32_t row_interleave)
{
    return pd_align(n_rows, row_interleave) * row_size;
}

void pd_device_put_row(const struct pd_row_layout *layout, uint8_t *dst, uint32_t i, const uint8_t *src,
                       float scale, uint8_t *scratch)
{
    uint32_t row_size = pd_device_row_size(layout->dtype, layout->n), row_interleave = layout->row_interleave;
    uint8_t *to = dst + (size_t)(i - i % row_interleave) * row_size + (size_t)16 * (i % row_interleave);
    put_row(layout->dtype, row_interleave == 1 ? to : scratch, src, scale, layout->n);
    for (uint32_t at = 0; row_interleave > 1 && at < row_size; at += 16)
        memcpy(to + (size_t)at * row_interleave, scratch + at, 16);
}

/* ---- layout blocks ---- */

/* Takes blocks of files apart: quants, codebook indices, signs and scales to where the device's sections have them. One
 * function for each row of types.def. */

/* ---- bits of 32 weights ---- */

/* n bits of each of 32 weights, from bit `shift` on: of the 32 / n weights of a word, weight 4k + j is at bits nk of
 * byte j. */
static void put_bits(uint8_t *dst, const uint8_t *q, uint32_t n, uint32_t shift)
{
    uint32_t mask = 0x01010101u * ((1u << n) - 1);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t word = 0, quad;
        for (uint32_t k = 0; k < 8 / n; k++, q += 4) {
            memcpy(&quad, q, 4);
            word |= (quad >> shift & mask) << n * k;
        }
        memcpy(dst + 4 * i, &word, 4);
    }
}

static void put_nibbles(uint8_t *dst, const uint8_t *q)
{
    for (int j = 0; j < 16; j++) dst[j] = (uint8_t)((q[j] & 15) | (q[j + 16] & 15) << 4);
}

static void put_pairs(uint8_t *dst, const uint8_t *q)
{
    for (int j = 0; j < 16; j++) dst[j] = (uint8_t)(q[2 * j] | q[2 * j + 1] << 4);
}

/* ---- the formats of ggml, block by block ---- */

static void nibbles(uint8_t *q, const uint8_t *qs)
{
    for (int j = 0; j < 16; j++) {
        q[j] = qs[j] & 15;
        q[j + 16] = qs[j] >> 4;
    }
}

static void add_fifth_bits(uint8_t *q, const uint8_t *qh)
{
    for (int j = 0; j < 32; j++) q[j] |= (uint8_t)((qh[j / 8] >> j % 8 & 1) << 4);
}

static void take_q4_0(struct pd_block *b, const uint8_t *src)
{
    memcpy(b->scale, src, 2);
    nibbles(b->q, src + 2);
}

static void take_iq4_nl(struct pd_block *b, const uint8_t *src) { take_q4_0(b, src); }

static void take_q4_1(struct pd_block *b, const uint8_t *src)
{
    memcpy(b->scale, src, 4);
    nibbles(b->q, src + 4);
}

static void take_q5_0(struct pd_block *b, const uint8_t *src)
{
    memcpy(b->scale, src, 2);
    nibbles(b->q, src + 6);
    add_fifth_bits(b->q, src + 2);
}

static void take_q5_1(struct pd_block *b, const uint8_t *src)
{
    memcpy(b->scale, src, 4);
    nibbles(b->q, src + 8);
    add_fifth_bits(b->q, src + 4);
}

/* 2-bit quants of q2_k and q3_k: weight 128 a + 32 j + l is at bits 2j of byte 32 a + l. */
static void crumbs(uint8_t *q, const uint8_t *qs)
{
    for (int e = 0; e < 256; e++) q[e] = qs[e / 128 * 32 + e % 32] >> 2 * (e / 32 % 4) & 3;
}

static void take_q2_k(struct pd_block *b, const uint8_t *src)
{
    memcpy(b->scale, src, 16);
    crumbs(b->q, src + 16);
}

static void take_q3_k(struct pd_block *b, const uint8_t *src)
{
    const uint8_t *hmask = src, *scales = src + 96;
    crumbs(b->q, src + 32);
    for (int e = 0; e < 256; e++) b->q[e] |= (uint8_t)((hmask[e % 32] >> e / 32 & 1) << 2);
    for (int i = 0; i < 16; i++) {   /* 6 bits: four in the first eight bytes, two in the last four */
        int low = i < 8 ? scales[i] & 15 : scales[i - 8] >> 4, high = scales[8 + i % 4] >> 2 * (i / 4) & 3;
        b->scale[i] = (uint8_t)((low | high << 4) - 32);
    }
}

/* The eight scales and minimums of q4_k and q5_k, 6 bits each in 12 bytes, as pairs of bytes. */
static void pairs_of_six_bits(uint8_t *scale, const uint8_t *s)
{
    for (int j = 0; j < 4; j++) {
        scale[2 * j] = s[j] & 63;
        scale[2 * j + 1] = s[j + 4] & 63;
        scale[2 * j + 8] = (uint8_t)((s[j + 8] & 15) | s[j] >> 6 << 4);
        scale[2 * j + 9] = (uint8_t)(s[j + 8] >> 4 | s[j + 4] >> 6 << 4);
    }
}

/* Weights 64 c .. + 31 are the low nibbles of bytes 32 c .. + 31, the next 32 the high ones. */
static void chunks_of_nibbles(uint8_t *q, const uint8_t *qs)
{
    for (int c = 0; c < 4; c++)
        for (int l = 0; l < 32; l++) {
            q[64 * c + l] = qs[32 * c + l] & 15;
            q[64 * c + 32 + l] = qs[32 * c + l] >> 4;
        }
}

static void take_q4_k(struct pd_block *b, const uint8_t *src)
{
    pairs_of_six_bits(b->scale, src + 4);
    chunks_of_nibbles(b->q, src + 16);
}

static void take_q5_k(struct pd_block *b, const uint8_t *src)
{
    pairs_of_six_bits(b->scale, src + 4);
    chunks_of_nibbles(b->q, src + 48);
    for (int e = 0; e < 256; e++) b->q[e] |= (uint8_t)((src[16 + e % 32] >> e / 32 & 1) << 4);
}

static void take_q6_k(struct pd_block *b, const uint8_t *src)
{
    const uint8_t *ql = src, *qh = src + 128;
    for (int e = 0; e < 256; e++) {
        int half = e / 128, part = e / 32 % 4, l = e % 32;
        int low = ql[64 * half + 32 * (part % 2) + l] >> 4 * (part / 2) & 15, high = qh[32 * half + l] >> 2 * part & 3;
        b->q[e] = (uint8_t)(low | high << 4);
    }
    memcpy(b->scale, src + 192, 16);
}

static void take_iq4_xs(struct pd_block *b, const uint8_t *src)
{
    unsigned scales_h = src[2] | (unsigned)src[3] << 8;
    for (int s = 0; s < 8; s++) {
        int low = src[4 + s / 2] >> 4 * (s % 2) & 15, high = (int)(scales_h >> 2 * s & 3);
        b->scale[s] = (uint8_t)((low | high << 4) - 32);
        nibbles(b->q + 32 * s, src + 8 + 16 * s);
    }
}

/* MXFP4: a byte of scale. */
static void take_mxfp4(struct pd_block *b, const uint8_t *src)
{
    b->scale[0] = src[0];
    nibbles(b->q, src + 1);
}

/* NVFP4: four times 16 weights in 8 bytes. The scale 0x7f is 0. */
static void take_nvfp4(struct pd_block *b, const uint8_t *src)
{
    for (int g = 0; g < 4; g++) b->scale[g] = src[g] == 0x7f ? 0 : src[g];
    for (int e = 0; e < 64; e++) b->q[e] = src[4 + e / 16 * 8 + e % 8] >> e / 8 % 2 * 4 & 15;
}

/* As Q2_K whose scales and minimums are all 1. */
static void put_ternary_scales(struct pd_block *b, const uint8_t *d)
{
    memset(b->scale, 0x11, 16);
    memcpy(b->super, d, 2);
    memcpy(b->super + 2, d, 2);
}

static void take_tq1_0(struct pd_block *b, const uint8_t *src)
{
    for (int e = 0; e < 256; e++) b->q[e] = (uint8_t)pd_tq1_0_digit(src, e);
    put_ternary_scales(b, src + 52);
}

static void take_tq2_0(struct pd_block *b, const uint8_t *src)
{
    crumbs(b->q, src);
    put_ternary_scales(b, src + 64);
}

/* ---- the formats with codebooks: bytes of low and high bits are written as they are ---- */

static void take_iq2_xxs(struct pd_block *b, const uint8_t *src)
{
    for (int g = 0; g < 8; g++) {
        memcpy(b->low + 4 * g, src + 2 + 8 * g, 4);
        memcpy(b->high + 4 * g, src + 6 + 8 * g, 4);
    }
}

static void take_iq2_xs(struct pd_block *b, const uint8_t *src)
{
    memcpy(b->low, src + 2, 64);
    memcpy(b->scale, src + 66, 8);
}

static void take_iq2_s(struct pd_block *b, const uint8_t *src)
{
    memcpy(b->low, src + 2, 32);
    memcpy(b->high, src + 34, 32);
    for (int g = 0; g < 8; g++) {
        b->scale[2 * g] = src[74 + g];
        b->scale[2 * g + 1] = src[66 + g];
    }
}

static void take_iq3_xxs(struct pd_block *b, const uint8_t *src)
{
    memcpy(b->low, src + 2, 64);
    memcpy(b->high, src + 66, 32);
}

static void take_iq3_s(struct pd_block *b, const uint8_t *src)
{
    memcpy(b->low, src + 2, 64);
    memcpy(b->high, src + 74, 32);
    for (int g = 0; g < 8; g++) {
        b->scale[2 * g] = src[106 + g / 2] >> g % 2 * 4 & 15;
        b->scale[2 * g + 1] = src[66 + g];
    }
}

static void take_iq1_s(struct pd_block *b, const uint8_t *src)
{
    memcpy(b->low, src + 2, 32);
    memcpy(b->scale, src + 34, 16);
}

static void take_iq1_m(struct pd_block *b, const uint8_t *src)
{
    uint16_t d = pd_iq1_m_scale(src);
    memcpy(b->low, src, 32);
    memcpy(b->high, src + 32, 16);
    for (int g = 0; g < 8; g++)
        b->scale[g] = (uint8_t)(pd_iq1_m_group_scale(src, 2 * g) | pd_iq1_m_group_scale(src, 2 * g + 1) << 4);
    memcpy(b->super, &d, 2);
}

static void take_q1_0(struct pd_block *b, const uint8_t *src)
{
    memcpy(b->scale, src, 2);
    for (int i = 0; i < 128; i++) b->q[i] = src[2 + i / 8] >> i % 8 & 1;
}

static void take_q2_0(struct pd_block *b, const uint8_t *src)
{
    memcpy(b->scale, src, 2);
    for (int i = 0; i < 64; i++) b->q[i] = src[2 + i / 4] >> 2 * (i % 4) & 3;
}

/* ---- the table ---- */

#define TAKE_floats(name) NULL
#define TAKE_bytes(name)  NULL
#define TAKE_bits(name)   take_##name
#define TAKE_values(name) take_##name
#define TAKE_codes(name)  take_##name
#define TAKE_other(name)  take_##name
#define ROW(name, NAME, form, writes, smaller, device, file, on_device, ...) \
    [PD_##NAME] = {TAKE_##form(name), PD_FORM_##form, PD_##device, PD_OF_ROW on_device},
const struct pd_block_layout pd_block_layouts[PD_N_DTYPES] = {PD_TYPES(ROW, )};
#undef ROW

void pd_block_put(enum pd_dtype dtype, struct pd_block *b, const uint8_t *src)
{
    const struct pd_block_layout *l = &pd_block_layouts[dtype];
    const struct pd_dtype_info *info = &pd_dtypes[dtype];
    memcpy(b->super, src + info->scale_at, pd_min(l->super, 2 * info->n_scales));
    l->take(b, src);
    for (uint32_t i = 0; l->form != PD_FORM_codes && i < info->block_len / 32; i++) {
        if (l->form == PD_FORM_values) put_pairs(b->low + 16 * i, b->q + 32 * i);
        else if (l->low == 16) put_nibbles(b->low + 16 * i, b->q + 32 * i);
        else put_bits(b->low + l->low * i, b->q + 32 * i, l->low / 4, 0);
        if (l->high) put_bits(b->high + l->high * i, b->q + 32 * i, l->high / 4, l->low == 16 ? 4 : 2);
    }
}
