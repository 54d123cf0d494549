/* Names in files: are they fit to be shown, are they unique, where is one. The index is a sorted array: finding
 * duplicates among n names costs n log n whatever a hostile file holds. */
#ifndef PD_BASE_NAMES_H
#define PD_BASE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a sentence shows a name from a file: long ones are cut, so that the rest of the sentence has room. */
#define PD_NAME "%.120s"

struct pd_name {
    const char *name;   /* NUL-terminated, borrowed */
    size_t index;       /* of what it names */
};

struct pd_name_index {
    struct pd_name *names;   /* n of them; the index sorts them in place */
    size_t n;
};

/* Valid UTF-8, not empty, no control characters: safe in a sentence, a terminal and JSON. */
bool pd_name_valid(const char *text, size_t size);

void pd_names_sort(struct pd_name_index *x);
/* After sort: some pair with one name, lower index first; false when all names differ. */
bool pd_names_duplicate(const struct pd_name_index *x, size_t *first, size_t *second);
/* After sort: index of the name, or SIZE_MAX. */
size_t pd_names_find(const struct pd_name_index *x, const char *name);

#endif
