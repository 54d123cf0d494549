/* Keys and values: the reference keeps a ring of slots for each of two sequences; on the device these are pages in an
 * order of their own, and the tables of pages go round. Passes use the second sequence, decode steps both. What is in
 * them is rounded before the reference reads them, so that all that differs is fp32 arithmetic. And RoPE, which
 * writes them, against the CPU reference. */
#include "selftest/selftest_.h"

#include <math.h>
#include <string.h>

/* ---- caches ---- */

uint32_t pd_trial_kv_width(const struct pd_reference_heads *h) { return h->n_kv_heads * h->head_dim; }

size_t pd_trial_sequence_size(const struct pd_reference_heads *h) { return (size_t)h->ring * pd_trial_kv_width(h); }

/* The device's page that has page i of those of all sequences: the same pages from the last to the first. */
static uint32_t device_page(const struct pd_reference_heads *h, uint32_t i)
{
    return PD_N_SEQUENCES * h->ring / PD_PAGE - 1 - i;
}

/* The device's slot that has slot i of the reference. */
static uint32_t device_slot(const struct pd_reference_heads *h, uint32_t i)
{
    return device_page(h, i / PD_PAGE) * PD_PAGE + i % PD_PAGE;
}

const char *const pd_trial_kv_names[PD_N_KV] = {"k and v", "k for v", "another layer's k and v"};

uint32_t pd_trial_qkv_width(const struct pd_reference_heads *h, enum pd_trial_kv from)
{
    static const uint32_t n[PD_N_KV] = {[PD_KV_OWN] = 2, [PD_KV_V_IS_K] = 1, [PD_KV_SHARED] = 0};
    return (h->n_heads + n[from] * h->n_kv_heads) * h->head_dim;
}

float *pd_trial_device_qkv(struct pd_trial *t, float *qkv, const struct pd_reference_heads *h, enum pd_trial_kv from,
                           uint32_t n_tokens)
{
    uint32_t from_width = pd_trial_qkv_width(h, PD_KV_OWN), width = pd_trial_qkv_width(h, from);
    uint32_t k = h->n_heads * h->head_dim;
    float *rows = pd_trial_floats(t, (size_t)n_tokens * width);
    for (uint32_t m = 0; m < n_tokens; m++) {
        float *row = qkv + (size_t)m * from_width;
        if (from == PD_KV_V_IS_K) memcpy(row + k + pd_trial_kv_width(h), row + k, pd_trial_kv_width(h) * sizeof *row);
        memcpy(rows + (size_t)m * width, row, width * sizeof *row);
    }
    return rows;
}

struct pd_reference_cache pd_trial_written_cache(struct pd_trial *t, const struct pd_reference_cache *cache,
                                                 const struct pd_reference_heads *h, enum pd_trial_kv from)
{
    if (from != PD_KV_SHARED) return *cache;
    size_t n = pd_trial_sequence_size(h);
    return (struct pd_reference_cache){pd_trial_floats(t, n), pd_trial_floats(t, n)};
}

struct pd_trial_buffer *pd_trial_tables(struct pd_trial *t, const struct pd_reference_heads *h)
{
    uint32_t *pages = pd_trial_zeros(t, PD_N_SEQUENCES * PD_TABLE_PAGES * sizeof *pages), n = h->ring / PD_PAGE;
    for (uint32_t i = 0; i < PD_N_SEQUENCES * PD_TABLE_PAGES; i++)
        pages[i] = device_page(h, i / PD_TABLE_PAGES * n + i % PD_TABLE_PAGES % n);
    return pd_trial_words(t, pages, 1, PD_N_SEQUENCES * PD_TABLE_PAGES, PD_N_SEQUENCES * PD_TABLE_PAGES);
}

/* ---- blocks of integers: see kv.glsl ---- */

struct block {
    float scale, least;   /* least: the minimum, or 0; both NaN where an element is not finite */
};

/* The least bf16 that is not below x. */
static float round_up(float x) { return pd_f32_from_bits((pd_f32_bits(x) + (x < 0 ? 0 : 0xffff)) & 0xffff0000); }

static float most_of(uint32_t form) { return PD_KV_HAS_MIN(form) ? (float)(1 << PD_KV_BITS(form)) - 1 : 127; }

/* That of the block of 32 that has element i. */
static struct block block_of(uint32_t form, const float *head, uint32_t head_dim, uint32_t i)
{
    uint32_t first = i / PD_KV_BLOCK * PD_KV_BLOCK;
    float low = head[first], high = low;
    for (uint32_t j = first; j < pd_min(head_dim, first + PD_KV_BLOCK); j++) {
        if (!isfinite(head[j])) return (struct block){NAN, NAN};
        low = fminf(low, head[j]);
        high = fmaxf(high, head[j]);
    }
    low = fmaxf(low, -65504);
    high = fminf(high, 65504);
    if (!PD_KV_HAS_MIN(form)) return (struct block){round_up(fmaxf(fmaxf(-low, high), 1e-30f) / most_of(form)), 0};
    low = -round_up(-low);
    return (struct block){round_up(fmaxf(high - low, 1e-30f) / most_of(form)), low};
}

static uint16_t bf16_of(float x) { return isfinite(x) ? (uint16_t)(pd_f32_bits(x) >> 16) : 0x7fc0; }

/* Where the scales begin, in halves of words; and that of a block. */
static uint32_t scale_at(uint32_t form, uint32_t head_dim, uint32_t block)
{
    uint32_t words = PD_KV_LOW_WORDS(form, head_dim) + PD_KV_HIGH_WORDS(form, head_dim);
    return 2 * words + (PD_KV_HAS_MIN(form) ? 2 * block : block);
}

static void quantise_head(uint32_t *words, uint32_t form, const float *head, uint32_t head_dim)
{
    uint8_t *bytes = (uint8_t *)words;
    uint32_t *high = words + PD_KV_LOW_WORDS(form, head_dim), bits = PD_KV_BITS(form);
    struct block b = {0};
    for (uint32_t i = 0; i < head_dim; i++) {
        if (i % PD_KV_BLOCK == 0) b = block_of(form, head, head_dim, i);
        uint16_t *scale = (uint16_t *)words + scale_at(form, head_dim, i / PD_KV_BLOCK);
        scale[0] = bf16_of(b.scale);
        if (PD_KV_HAS_MIN(form)) scale[1] = bf16_of(b.least);
        if (!isfinite(b.scale)) continue;
        long x = lrintf((fmaxf(-65504, fminf(head[i], 65504)) - b.least) / b.scale);
        if (bits == 8) bytes[i] = (uint8_t)x;
        else bytes[i / 2] |= (uint8_t)((x & 15) << 4 * (i % 2));
        if (bits == 5) high[i / PD_KV_BLOCK] |= (uint32_t)x >> 4 << i % PD_KV_BLOCK;
    }
}

static float integer_at(const uint32_t *head, uint32_t form, uint32_t head_dim, uint32_t i)
{
    const uint8_t *bytes = (const uint8_t *)head;
    const uint32_t *high = head + PD_KV_LOW_WORDS(form, head_dim);
    if (PD_KV_BITS(form) == 8) return (float)(int8_t)bytes[i];
    uint32_t x = bytes[i / 2] >> 4 * (i % 2) & 15;
    if (PD_KV_BITS(form) == 5) x |= (high[i / PD_KV_BLOCK] >> i % PD_KV_BLOCK & 1) << 4;
    return (float)x;
}

static float cache_value(const uint32_t *head, uint32_t form, uint32_t head_dim, uint32_t i)
{
    const uint16_t *halves = (const uint16_t *)head;
    if (form == PD_KV_F16(0)) return pd_f32_from_f16(halves[i]);
    if (form == PD_KV_F32(0)) return pd_f32_from_bits(head[i]);
    const uint16_t *scale = halves + scale_at(form, head_dim, i / PD_KV_BLOCK);
    float x = integer_at(head, form, head_dim, i) * pd_f32_from_bf16(scale[0]);
    return PD_KV_HAS_MIN(form) ? x + pd_f32_from_bf16(scale[1]) : x;
}

struct pd_trial_buffer *pd_trial_cache(struct pd_trial *t, float *values, const struct pd_reference_heads *h,
                                       peridot_kv_type type, int side)
{
    uint32_t d = h->head_dim, head_words = pd_kv_head_size(type, side, d) / 4, n_slots = PD_N_SEQUENCES * h->ring;
    uint32_t *words = pd_trial_zeros(t, (uint64_t)n_slots * h->n_kv_heads * head_words * sizeof *words);
    uint32_t form = pd_kv_form(type, side);
    for (uint32_t i = 0; i < n_slots * h->n_kv_heads; i++, values += d) {
        uint32_t *head = words + (device_slot(h, i / h->n_kv_heads) * h->n_kv_heads + i % h->n_kv_heads) * head_words;
        if (type == PERIDOT_KV_F32) memcpy(head, values, d * sizeof *values);
        else if (type != PERIDOT_KV_F16) quantise_head(head, form, values, d);
        for (uint32_t k = 0; k < d; k++) {
            if (type == PERIDOT_KV_F16) ((uint16_t *)head)[k] = pd_f16_from_f32(values[k]);
            values[k] = cache_value(head, form, d, k);
        }
    }
    return pd_trial_words(t, words, n_slots, h->n_kv_heads * head_words, h->n_kv_heads * head_words);
}

struct pd_heads pd_trial_heads(const struct pd_reference_heads *h, const struct pd_trial_buffer *q_norm,
                               const struct pd_trial_buffer *k_norm)
{
    return (struct pd_heads){.n_heads = h->n_heads, .n_kv_heads = h->n_kv_heads, .head_dim = h->head_dim,
        .scale = h->scale, .softcap = h->softcap, .eps = h->eps,
        .q_norm = pd_trial_address(q_norm), .k_norm = pd_trial_address(k_norm), .v_norm = h->v_norm};
}

void pd_trial_set_kv(struct pd_heads *heads, enum pd_trial_kv from)
{
    heads->v_is_k = from == PD_KV_V_IS_K;
    heads->shares_kv = from == PD_KV_SHARED;
}

float pd_trial_growth(uint32_t token) { return 0.25f * (float)(token % 3); }

void pd_trial_grow(float *q, const struct pd_reference_heads *h, uint32_t token)
{
    for (uint32_t i = 0; i < h->n_heads * h->head_dim; i++) q[i] *= 1 + pd_trial_growth(token);
}

struct pd_trial_buffer *pd_trial_places(struct pd_trial *t, uint32_t pos, const struct pd_reference_sight *sights,
                                        uint32_t n_tokens)
{
    struct pd_place *places = pd_trial_zeros(t, n_tokens * sizeof *places);
    for (uint32_t m = 0; m < n_tokens; m++)
        places[m] = (struct pd_place){.pos = pos + m, .last = sights ? sights[m].last : pos + m,
            .text = PD_TABLE_PAGES * PD_PAGE, .q_growth = pd_trial_growth(m)};
    return pd_trial_words(t, places, n_tokens, sizeof *places / 4, sizeof *places / 4);
}

/* How far the cache's type may move element i of a head: an fp16 unit, as it may go either way; half the step of a
 * block of integers, whose scale is up to 2^-7 larger than it need be, and whose minimum has a rounding of its own. */
static double rounding(uint32_t form, const float *head, uint32_t head_dim, uint32_t i)
{
    if (form == PD_KV_F16(0)) return 0x1p-10 * fmax(0x1p-14, fmin(fabs((double)head[i]), 65504));
    if (form == PD_KV_F32(0)) return 0;
    return (double)block_of(form, head, head_dim, i).scale * (1 + 0x1p-7) / 2;
}

void pd_trial_check_cache(struct pd_trial *t, int side, struct pd_trial_buffer *b, float *want,
                          const struct pd_reference_heads *h, const struct pd_trial_written *written)
{
    static const char *const names[] = {[PD_KEYS] = "k", [PD_VALUES] = "v"};
    peridot_kv_type type = written->type;
    uint32_t width = pd_trial_kv_width(h), d = h->head_dim, form = pd_kv_form(type, side), words = PD_KV_WORDS(form, d);
    float *got = pd_trial_floats(t, width);
    for (uint32_t m = 0; t->ran && m < written->n_tokens; m++) {
        uint32_t slot = written->sequence * h->ring + (written->pos + m) % h->ring, on_device = device_slot(h, slot);
        float *slot_want = want + (size_t)slot * width;
        for (uint32_t i = 0; i < width; i++) {
            const float *head = slot_want + i / d * d;
            double x = (double)slot_want[i];
            if (type != PERIDOT_KV_F32) x = fmax(-65504, fmin(x, 65504));
            got[i] = cache_value(pd_trial_row(t, b, on_device) + i / d * words, form, d, i % d);
            pd_trial_check(t, names[side], (uint64_t)slot * width + i, (double)got[i], x,
                           (struct pd_bound){4e-6 + fabs(x) * 1e-6 + rounding(form, head, d, i % d), 1});
        }
        if (PD_KV_BITS(form) <= 8) memcpy(slot_want, got, width * sizeof *got);
        size_t at = b->start + (size_t)on_device * b->stride;
        memcpy(t->now + at, t->image + at, b->width * 4);
    }
}

float *pd_trial_angles(struct pd_trial *t, uint32_t head_dim, uint32_t pos, uint32_t n_tokens)
{
    float *angles = pd_trial_floats(t, (size_t)n_tokens * head_dim);
    for (uint32_t m = 0; m < n_tokens; m++)
        for (uint32_t i = 0; i < head_dim / 2; i++) {
            double angle = (pos + m) * pow(10000, -2.0 * i / head_dim);
            angles[(size_t)m * head_dim + i] = (float)cos(angle);
            angles[(size_t)m * head_dim + head_dim / 2 + i] = (float)sin(angle);
        }
    return angles;
}

/* ---- rope ---- */

/* For q the root mean square of its head; k and v must stay as they are. */
static float *rope_magnitudes(struct pd_trial *t, const float *qkv, const struct pd_reference_heads *h,
                              enum pd_trial_kv from, uint32_t n_tokens)
{
    uint32_t d = h->head_dim, width = pd_trial_qkv_width(h, from);
    float *magnitudes = pd_trial_floats(t, (size_t)n_tokens * width);
    for (uint32_t m = 0; m < n_tokens; m++)
        for (uint32_t head = 0; head < h->n_heads; head++) {
            size_t at = (size_t)m * width + head * d;
            double squares = 0;
            for (uint32_t i = 0; i < d; i++) squares += (double)qkv[at + i] * (double)qkv[at + i];
            for (uint32_t i = 0; i < d; i++) magnitudes[at + i] = (float)sqrt(squares / d);
        }
    return magnitudes;
}

struct rope_case {
    uint32_t ring, pos, n_tokens;
};

static void try_rope(struct pd_trial *t, struct pd_reference_heads h, const struct rope_case *c, enum pd_trial_kv from,
                     enum pd_trial_norms norms, peridot_kv_type type)
{
    uint32_t pos = c->pos, n_tokens = c->n_tokens;
    h.ring = c->ring;
    h.v_norm = norms == PD_NORMS_QKV;
    pd_trial_begin(t, "rope %u, %u heads of %u, %s, norms %d, kv type %d, ring %u, position %u, %u tokens", h.n_heads,
                   h.n_kv_heads, h.head_dim, pd_trial_kv_names[from], (int)norms, (int)type, h.ring, pos, n_tokens);
    uint32_t width = pd_trial_qkv_width(&h, PD_KV_OWN),
        cache_size = PD_N_SEQUENCES * (uint32_t)pd_trial_sequence_size(&h);
    float *qkv = pd_trial_random(t, (size_t)n_tokens * width, 5);
    const float *angles = pd_trial_angles(t, h.head_dim, pos, n_tokens);
    float *k = pd_trial_random(t, cache_size, 1), *v = pd_trial_random(t, cache_size, 1);
    float *q_norm = pd_trial_random(t, h.head_dim, 2), *k_norm = pd_trial_random(t, h.head_dim, 2);
    qkv[width - 1] = 1e5f;   /* of v */
    qkv[width - 2] = -1e9f;
    qkv[width - 3] = 1e-7f;
    struct pd_trial_buffer *rows = pd_trial_rows(t, pd_trial_device_qkv(t, qkv, &h, from, n_tokens), n_tokens,
                                                 pd_trial_qkv_width(&h, from));
    struct pd_trial_buffer *k_cache = pd_trial_cache(t, k, &h, type, PD_KEYS),
        *v_cache = pd_trial_cache(t, v, &h, type, PD_VALUES);
    struct pd_trial_buffer *w_q = pd_trial_rows(t, q_norm, 1, h.head_dim),
        *w_k = pd_trial_rows(t, k_norm, 1, h.head_dim);
    struct pd_trial_buffer *places = pd_trial_places(t, pos, NULL, n_tokens);
    struct pd_trial_buffer *angle_rows = pd_trial_words(t, angles, n_tokens, h.head_dim, h.head_dim);
    struct pd_attention a = {.heads = pd_trial_heads(&h, norms ? w_q : NULL, norms ? w_k : NULL),
        .kv = {.k = k_cache->address, .v = v_cache->address, .pages = pd_trial_tables(t, &h)->address, .type = type},
        .qkv = pd_trial_rows_of(rows), .places = places->address, .angles = angle_rows->address, .n_tokens = n_tokens};
    pd_trial_set_kv(&a.heads, from);
    pd_op_rope(&t->r, &a);
    pd_trial_run(t);
    h.q_norm = norms ? q_norm : NULL;
    h.k_norm = norms ? k_norm : NULL;
    struct pd_reference_cache second = {k + pd_trial_sequence_size(&h), v + pd_trial_sequence_size(&h)};
    second = pd_trial_written_cache(t, &second, &h, from);
    pd_reference_rope(qkv, &second, &h, angles, pos, n_tokens);
    for (uint32_t m = 0; m < n_tokens; m++) pd_trial_grow(qkv + (size_t)m * width, &h, m);
    float *want = pd_trial_device_qkv(t, qkv, &h, from, n_tokens);
    pd_trial_check_rows(t, rows, want, rope_magnitudes(t, want, &h, from, n_tokens), 4e-6);
    struct pd_trial_written written = {type, 1, pos, from == PD_KV_SHARED ? 0 : n_tokens};
    pd_trial_check_cache(t, PD_KEYS, k_cache, k, &h, &written);
    pd_trial_check_cache(t, PD_VALUES, v_cache, v, &h, &written);
    pd_trial_end(t);
}

void pd_try_rope(struct pd_trial *t, uint32_t type)
{
    static const uint32_t head_dims[] = {4, 16, 20, 32, 64, 128, 256, 512}, heads[][2] = {{1, 1}, {4, 2}, {6, 1}};
    static const struct rope_case places[] = {
        {64, 0, 1}, {64, 63, 1}, {128, 62, 5}, {128, 188, 8}, {64, 1000, 3}, {128, 8191, 33}};
    for (size_t d = 0; d < PD_COUNT(head_dims); d++)
        for (size_t p = 0; p < PD_COUNT(places); p++)
            for (int norms = 0; norms < PD_N_NORMS; norms++) {
                if (!t->thorough && (p != 2 + d % 4 || (size_t)norms != d % PD_N_NORMS)) continue;
                const uint32_t *n = heads[(d + p) % PD_COUNT(heads)];
                struct pd_reference_heads h = {.n_heads = n[0], .n_kv_heads = n[1], .head_dim = head_dims[d],
                    .eps = 1e-6f};
                for (int from = 0; from < PD_N_KV; from++)
                    if (from == PD_KV_OWN || (d + p) % 3 == (size_t)from)
                        try_rope(t, h, &places[p], (enum pd_trial_kv)from, (enum pd_trial_norms)norms,
                                 (peridot_kv_type)type);
            }
}
