#include "base/names.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

bool pd_name_valid(const char *text, size_t size)
{
    for (size_t i = 0, length; i < size; i += length) {
        uint32_t code;
        if (pd_utf8_next(&code, &length, text + i, size - i) != PD_UTF8_CHARACTER || pd_utf8_is_control(code))
            return false;
    }
    return size > 0;
}

static int compare_names(const void *a, const void *b)
{
    const struct pd_name *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    if (order) return order;
    return (x->index > y->index) - (x->index < y->index);
}

void pd_names_sort(struct pd_name_index *x)
{
    if (x->n) qsort(x->names, x->n, sizeof *x->names, compare_names);
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
