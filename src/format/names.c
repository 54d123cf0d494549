#include "format/names.h"

#include <stdlib.h>
#include <string.h>

/* Unicode 15, table 3-7: well-formed sequences; the second byte's range depends on the first. */
size_t pd_utf8_length(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    uint8_t first = data[0], low = 0x80, high = 0xbf;
    if (first < 0x80) return 1;
    if (first < 0xc2 || first > 0xf4) return 0;
    size_t n = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (first == 0xe0) low = 0xa0;    /* overlong */
    if (first == 0xed) high = 0x9f;   /* surrogates */
    if (first == 0xf0) low = 0x90;    /* overlong */
    if (first == 0xf4) high = 0x8f;   /* above U+10FFFF */
    if (n > size || data[1] < low || data[1] > high) return 0;
    for (size_t i = 2; i < n; i++)
        if ((data[i] & 0xc0) != 0x80) return 0;
    return n;
}

bool pd_name_valid(const uint8_t *data, size_t size)
{
    size_t i = 0;
    while (i < size) {
        size_t n = pd_utf8_length(data + i, size - i);
        bool c1_control = n == 2 && data[i] == 0xc2 && data[i + 1] < 0xa0;
        if (n == 0 || data[i] < 0x20 || data[i] == 0x7f || c1_control) return false;
        i += n;
    }
    return size > 0;
}

static int compare(const void *a, const void *b)
{
    const struct pd_name *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    if (order) return order;
    return (x->index > y->index) - (x->index < y->index);
}

void pd_names_sort(struct pd_name_index *x)
{
    if (x->n) qsort(x->names, x->n, sizeof *x->names, compare);
}

bool pd_names_duplicate(const struct pd_name_index *x, size_t *first, size_t *second)
{
    for (size_t i = 1; i < x->n; i++) {
        if (strcmp(x->names[i - 1].name, x->names[i].name)) continue;
        *first = x->names[i - 1].index;
        *second = x->names[i].index;
        return true;
    }
    return false;
}

size_t pd_names_find(const struct pd_name_index *x, const char *name)
{
    size_t low = 0, high = x->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(x->names[middle].name, name);
        if (order == 0) return x->names[middle].index;
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    return SIZE_MAX;
}
