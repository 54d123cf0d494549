#include "text/template/chars.h"

#include "base/num.h"
#include "base/utf8.h"

#include <string.h>

/* ---- building ---- */

peridot_status pd_builder_reserve(struct pd_builder *b, size_t more)
{
    char *data;
    unsigned char *own;
    if (more <= b->capacity - b->size) return PERIDOT_OK;
    if (more > PD_RENDER_MAX_SIZE) more = PD_RENDER_MAX_SIZE;   /* which fails below, and does not overflow */
    size_t capacity = pd_max(b->size + more, pd_max(2 * b->capacity, 64));
    PD_TRY(pd_render_alloc(&data, b->r, capacity, 1));
    PD_TRY(pd_render_alloc(&own, b->r, capacity, 1));
    if (b->size) memcpy(data, b->data, b->size);
    if (b->size) memcpy(own, b->own, b->size);
    b->data = data;
    b->own = own;
    b->capacity = capacity;
    return PERIDOT_OK;
}

static void copy_marks(unsigned char *own, struct pd_chars text)
{
    if (text.own && text.own != pd_all_own) memcpy(own, text.own, text.size);
    else memset(own, text.own != NULL, text.size);
}

peridot_status pd_builder_add(struct pd_builder *b, struct pd_chars text)
{
    if (text.size == 0) return PERIDOT_OK;
    PD_TRY(pd_render_spend(b->r, 1 + text.size / 16));
    PD_TRY(pd_builder_reserve(b, text.size));
    memcpy(b->data + b->size, text.data, text.size);
    copy_marks(b->own + b->size, text);
    b->size += text.size;
    return PERIDOT_OK;
}

peridot_status pd_builder_bytes(struct pd_builder *b, const char *data, size_t size, bool own)
{
    return pd_builder_add(b, (struct pd_chars){data, size, own ? pd_all_own : NULL});
}

peridot_status pd_builder_string(struct pd_builder *b, const char *text, bool own)
{
    return pd_builder_bytes(b, text, strlen(text), own);
}

struct pd_value pd_builder_value(const struct pd_builder *b)
{
    return pd_value_text((struct pd_chars){b->size ? b->data : "", b->size, b->size ? b->own : pd_all_own});
}

/* ---- parts ---- */

struct pd_chars pd_chars_part(struct pd_chars text, size_t from, size_t size)
{
    bool mixed = text.own && text.own != pd_all_own;
    return (struct pd_chars){text.data + from, size, mixed ? text.own + from : text.own};
}

bool pd_chars_is_own(struct pd_chars text)
{
    if (!text.own || text.own == pd_all_own) return text.own != NULL;
    return !memchr(text.own, 0, text.size);
}

peridot_status pd_chars_concat(struct pd_value *out, struct pd_render *r, struct pd_chars a, struct pd_chars b)
{
    struct pd_builder *last = r->tail;
    PD_TRY(pd_render_scan(r, b.size));
    if (a.size == 0 || b.size == 0) {
        *out = pd_value_text(a.size ? a : b);
        return PERIDOT_OK;
    }
    bool grows = last->size && a.data == last->data && a.size == last->size && a.own == last->own;
    if (!grows) {
        *last = (struct pd_builder){.r = r};
        PD_TRY(pd_builder_reserve(last, a.size + b.size));
        PD_TRY(pd_builder_add(last, a));
    }
    PD_TRY(pd_builder_add(last, b));
    *out = pd_builder_value(last);
    return PERIDOT_OK;
}

/* ---- characters ---- */

size_t pd_chars_next(uint32_t *code, struct pd_chars text, size_t at)
{
    size_t length;
    *code = (unsigned char)text.data[at];
    if (*code < 0x80) return 1;
    if (pd_utf8_next(code, &length, text.data + at, text.size - at) == PD_UTF8_CHARACTER) return length;
    *code = (unsigned char)text.data[at];
    return 1;
}

size_t pd_chars_previous(struct pd_chars text, size_t at)
{
    uint32_t code;
    for (size_t n = 4; n > 1; n--)
        if (n <= at && (unsigned char)text.data[at - n] >= 0xc0 && pd_chars_next(&code, text, at - n) == n)
            return at - n;
    return at - 1;
}

size_t pd_chars_offset(struct pd_chars text, size_t i)
{
    uint32_t code;
    size_t at = 0;
    while (i-- && at < text.size) at += pd_chars_next(&code, text, at);
    return at;
}

size_t pd_chars_count(struct pd_chars text)
{
    uint32_t code;
    size_t n = 0;
    for (size_t at = 0; at < text.size; n++) at += pd_chars_next(&code, text, at);
    return n;
}

bool pd_chars_is_ascii(struct pd_chars text)
{
    for (size_t i = 0; i < text.size; i++)
        if ((unsigned char)text.data[i] >= 0x80) return false;
    return true;
}

/* Each place where the first byte is right costs a step, and what is compared there. */
static peridot_status look(bool *found, struct pd_render *r, const char *at, struct pd_chars what)
{
    PD_TRY(pd_render_spend(r, 1 + what.size / 16));
    *found = memcmp(at, what.data, what.size) == 0;
    return PERIDOT_OK;
}

peridot_status pd_chars_find(size_t *out, struct pd_render *r, struct pd_chars text, struct pd_chars what, size_t from)
{
    bool found = what.size == 0 && from <= text.size;
    *out = found ? from : SIZE_MAX;
    if (found) return PERIDOT_OK;
    const size_t begin = from;
    while (!found && from <= text.size && what.size <= text.size - from) {
        const char *first = memchr(text.data + from, what.data[0], text.size - from - what.size + 1);
        if (!first) break;
        PD_TRY(look(&found, r, first, what));
        from = (size_t)(first - text.data) + !found;
    }
    if (found) *out = from;
    return pd_render_scan(r, (found ? from : text.size) - pd_min(begin, text.size));
}

peridot_status pd_chars_find_last(size_t *out, struct pd_render *r, struct pd_chars text, struct pd_chars what,
                                  size_t to)
{
    bool found = what.size == 0;
    size_t end = to;
    while (!found && end >= what.size && end > 0) {
        if (text.data[end - what.size] == what.data[0]) PD_TRY(look(&found, r, text.data + end - what.size, what));
        if (!found) end--;
    }
    *out = found ? end - what.size : SIZE_MAX;
    return pd_render_scan(r, to - end);
}

/* ---- white space ---- */

bool pd_char_is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool pd_char_is_line_end(uint32_t c)
{
    return (c >= 10 && c <= 13) || (c >= 28 && c <= 30) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

static bool is_stripped(struct pd_chars text, size_t at, size_t size, const struct pd_chars *set)
{
    uint32_t code, other;
    if (pd_chars_next(&code, text, at) != size) return false;
    if (!set) return pd_char_is_space(code);
    for (size_t i = 0, n; i < set->size; i += n) {
        n = pd_chars_next(&other, *set, i);
        if (n == size && memcmp(set->data + i, text.data + at, n) == 0) return true;
    }
    return false;
}

struct pd_chars pd_chars_strip(struct pd_chars text, const struct pd_chars *set, unsigned sides)
{
    uint32_t code;
    size_t begin = 0, end = text.size;
    while (sides & PD_STRIP_LEFT && begin < end) {
        size_t n = pd_chars_next(&code, text, begin);
        if (!is_stripped(text, begin, n, set)) break;
        begin += n;
    }
    while (sides & PD_STRIP_RIGHT && begin < end) {
        size_t at = pd_chars_previous(text, end);
        if (!is_stripped(text, at, end - at, set)) break;
        end = at;
    }
    return pd_chars_part(text, begin, end - begin);
}
