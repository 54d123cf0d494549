#include "text/special.h"

#include "base/num.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

struct entry {
    const char *text;
    uint32_t size, id;
};

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = memcmp(x->text, y->text, pd_min(x->size, y->size));
    if (order) return order;
    if (x->size != y->size) return x->size < y->size ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

peridot_status pd_special_create(struct pd_special *out, const struct pd_pieces *p, unsigned types)
{
    *out = (struct pd_special){0};
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n; i++) n += types >> p->piece[i].type & 1;
    struct entry *entries = malloc((n + 1) * sizeof *entries);
    out->ids = malloc((n + 1) * sizeof *out->ids);
    if (!entries || !out->ids) {
        free(entries);
        pd_special_free(out);
        return pd_fail_alloc(n * sizeof *entries, "pieces matched literally");
    }
    for (uint32_t i = 0; i < p->n; i++)
        if (types >> p->piece[i].type & 1)
            entries[out->n++] = (struct entry){pd_pieces_text(p, i), p->piece[i].size, i};
    qsort(entries, n, sizeof *entries, compare_entries);
    for (uint32_t i = 0; i < n; i++) {
        out->ids[i] = entries[i].id;
        out->starts[(unsigned char)entries[i].text[0]] = true;
    }
    free(entries);
    return PERIDOT_OK;
}

void pd_special_free(struct pd_special *s)
{
    free(s->ids);
    *s = (struct pd_special){0};
}

/* First index in [lo, hi) whose byte k is at least `byte` (pieces that end before k come first). */
static uint32_t lower_bound(const struct pd_special *s, const struct pd_pieces *p, uint32_t lo, uint32_t hi, size_t k,
                            unsigned byte)
{
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2, id = s->ids[mid];
        if (p->piece[id].size <= k || (unsigned char)pd_pieces_text(p, id)[k] < byte) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

size_t pd_special_match(int32_t *id, const struct pd_special *s, const struct pd_pieces *p, const char *text,
                        size_t size)
{
    uint32_t lo = 0, hi = s->n;
    size_t longest = 0;
    if (size && !s->starts[(unsigned char)text[0]]) return 0;
    /* Pieces in [lo, hi) agree with the text in their first k bytes. */
    for (size_t k = 0; k < size && lo < hi; k++) {
        unsigned byte = (unsigned char)text[k];
        lo = lower_bound(s, p, lo, hi, k, byte);
        hi = lower_bound(s, p, lo, hi, k, byte + 1);
        if (lo == hi || p->piece[s->ids[lo]].size != k + 1) continue;
        longest = k + 1;
        *id = (int32_t)s->ids[lo];
    }
    return longest;
}

static bool is_space(const struct pd_pieces *p, size_t *length, const char *text, size_t size)
{
    uint32_t code;
    if (pd_utf8_next(&code, length, text, size) != PD_UTF8_CHARACTER) return false;
    return pd_utf8_is_space(code) || (code == 0x2581 && p->algorithm == PD_ALGORITHM_CHAR_MERGES);
}

size_t pd_special_after(const struct pd_pieces *p, int32_t id, const char *text, size_t size)
{
    size_t n = 0, length;
    while (p->piece[id].rstrip && n < size && is_space(p, &length, text + n, size - n)) n += length;
    return n;
}

size_t pd_special_before(const struct pd_pieces *p, int32_t id, const char *text, size_t size)
{
    size_t n = 0, length;
    while (p->piece[id].lstrip && n < size) {
        size_t at = size - n - 1;
        while (at && (text[at] & 0xc0) == 0x80) at--;
        if (!is_space(p, &length, text + at, size - n - at) || length != size - n - at) break;
        n += length;
    }
    return n;
}

int32_t pd_special_find(const struct pd_special *s, const struct pd_pieces *p, const char *name)
{
    int32_t id = -1;
    size_t size = strlen(name);
    return pd_special_match(&id, s, p, name, size) == size ? id : -1;
}
