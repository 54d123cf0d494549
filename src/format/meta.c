/* GGUF metadata: typed values under keys. A value is a scalar or an array of scalars or strings; it is read in
 * place. Arrays of arrays are carried along: no key that is read has one. */
#include "format/format.h"

#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>

static const struct {
    const char *name;
    uint32_t size;
} types[PD_META_N_TYPES] = {
    [PD_META_UINT8] = {"uint8", 1},     [PD_META_INT8] = {"int8", 1},     [PD_META_UINT16] = {"uint16", 2},
    [PD_META_INT16] = {"int16", 2},     [PD_META_UINT32] = {"uint32", 4}, [PD_META_INT32] = {"int32", 4},
    [PD_META_FLOAT32] = {"float32", 4}, [PD_META_BOOL] = {"bool", 1},     [PD_META_STRING] = {"string", 0},
    [PD_META_ARRAY] = {"array", 0},     [PD_META_UINT64] = {"uint64", 8}, [PD_META_INT64] = {"int64", 8},
    [PD_META_FLOAT64] = {"float64", 8},
};

uint32_t pd_meta_type_size(enum pd_meta_type type) { return types[type].size; }
const char *pd_meta_type_name(enum pd_meta_type type) { return types[type].name; }

static bool is_signed(enum pd_meta_type t)
{
    return t == PD_META_INT8 || t == PD_META_INT16 || t == PD_META_INT32 || t == PD_META_INT64;
}

static bool is_unsigned(enum pd_meta_type t)
{
    return t == PD_META_UINT8 || t == PD_META_UINT16 || t == PD_META_UINT32 || t == PD_META_UINT64;
}

/* The bits of element i, an integer, widened to 64 bits with its sign; byte by byte, as values in files are not
 * aligned. */
static uint64_t integer_bits(const struct pd_meta *m, uint64_t i)
{
    uint32_t size = types[m->element].size;
    const uint8_t *p = m->data + i * size;
    uint64_t bits = 0;
    for (uint32_t b = 0; b < size; b++) bits |= (uint64_t)p[b] << 8 * b;
    if (is_signed(m->element) && size < 8 && p[size - 1] & 0x80) bits |= UINT64_MAX << 8 * size;
    return bits;
}

/* Of any type of integers that holds the value: writers do not agree on the types of keys. */
bool pd_meta_uint(uint64_t *out, const struct pd_meta *m, uint64_t i)
{
    if (i >= m->n || !(is_signed(m->element) || is_unsigned(m->element))) return false;
    uint64_t bits = integer_bits(m, i);
    if (is_signed(m->element) && bits > INT64_MAX) return false;
    *out = bits;
    return true;
}

bool pd_meta_int(int64_t *out, const struct pd_meta *m, uint64_t i)
{
    if (i >= m->n || !(is_signed(m->element) || is_unsigned(m->element))) return false;
    uint64_t bits = integer_bits(m, i);
    if (is_unsigned(m->element) && bits > INT64_MAX) return false;
    memcpy(out, &bits, sizeof bits);
    return true;
}

bool pd_meta_float(double *out, const struct pd_meta *m, uint64_t i)
{
    if (i >= m->n) return false;
    uint64_t u;
    int64_t s;
    float f;
    if (m->element == PD_META_FLOAT64) {
        memcpy(out, m->data + 8 * i, 8);
    } else if (m->element == PD_META_FLOAT32) {
        memcpy(&f, m->data + 4 * i, 4);
        *out = f;
    } else if (pd_meta_uint(&u, m, i)) {
        *out = (double)u;
    } else if (pd_meta_int(&s, m, i)) {
        *out = (double)s;
    } else {
        return false;
    }
    return true;
}

bool pd_meta_bool(bool *out, const struct pd_meta *m, uint64_t i)
{
    if (i >= m->n || m->element != PD_META_BOOL) return false;
    *out = m->data[i] != 0;
    return true;
}

bool pd_meta_string(struct pd_string *out, const struct pd_meta *m, uint64_t i)
{
    if (i >= m->n || m->element != PD_META_STRING) return false;
    *out = m->strings[i];
    return true;
}

/* ---- text ---- */

/* Bytes at most; of an array: elements, bytes of each. */
enum { TEXT_SIZE = 512, SHOWN_ELEMENTS = 8, ELEMENT_SIZE = 48 };

struct text {
    char *data;
    size_t size, limit;   /* limit <= TEXT_SIZE: where the present string is cut */
};

static void meta_put(struct text *t, const char *s, size_t size)
{
    memcpy(t->data + t->size, s, size);
    t->size += size;
    t->data[t->size] = 0;
}

/* One character of a string. Gives the bytes read, 0 at the limit. */
static size_t put_character(struct text *t, const char *p, size_t size)
{
    char shown[PD_ESCAPED_MAX];
    size_t n, width = pd_utf8_escape_next(shown, &n, p, size);
    if (t->size + width > t->limit) return 0;
    meta_put(t, shown, width);
    return n;
}

static void put_string(struct text *t, struct pd_string s, size_t max_size)
{
    uint64_t i = 0;
    t->limit = t->size + max_size;
    while (i < s.size) {
        size_t n = put_character(t, s.data + i, (size_t)(s.size - i));
        if (n == 0) break;
        i += n;
    }
    if (i < s.size) meta_put(t, "...", 3);
}

static void put_element(struct text *t, const struct pd_meta *m, uint64_t i)
{
    char number[40] = "";
    uint64_t u;
    int64_t s;
    double f;
    bool b;
    if (pd_meta_bool(&b, m, i)) snprintf(number, sizeof number, "%s", b ? "true" : "false");
    else if (pd_meta_uint(&u, m, i)) snprintf(number, sizeof number, "%llu", (unsigned long long)u);
    else if (pd_meta_int(&s, m, i)) snprintf(number, sizeof number, "%lld", (long long)s);
    else if (pd_meta_float(&f, m, i)) snprintf(number, sizeof number, "%.7g", f);
    else snprintf(number, sizeof number, "[...]");
    meta_put(t, number, strlen(number));
}

static void put_array(struct text *t, const struct pd_meta *m)
{
    char count[64];
    meta_put(t, "[", 1);
    for (uint64_t i = 0; i < pd_min(m->n, SHOWN_ELEMENTS); i++) {
        struct pd_string s;
        if (i) meta_put(t, ", ", 2);
        if (pd_meta_string(&s, m, i)) {
            meta_put(t, "\"", 1);
            put_string(t, s, ELEMENT_SIZE);
            meta_put(t, "\"", 1);
        } else {
            put_element(t, m, i);
        }
    }
    int width = m->n > SHOWN_ELEMENTS ? snprintf(count, sizeof count, ", ... %llu in all]", (unsigned long long)m->n)
                                      : snprintf(count, sizeof count, "]");
    meta_put(t, count, (size_t)width);
}

static struct text text_alloc(void)
{
    return (struct text){.data = calloc(1, TEXT_SIZE + SHOWN_ELEMENTS * (ELEMENT_SIZE + 8) + 64)};
}

char *pd_string_text(struct pd_string s)
{
    struct text t = text_alloc();
    if (t.data) put_string(&t, s, TEXT_SIZE);
    return t.data;
}

char *pd_meta_text(const struct pd_meta *m)
{
    struct pd_string s;
    if (m->type == PD_META_STRING && pd_meta_string(&s, m, 0)) return pd_string_text(s);
    struct text t = text_alloc();
    if (t.data && m->type == PD_META_ARRAY) put_array(&t, m);
    else if (t.data) put_element(&t, m, 0);
    return t.data;
}
