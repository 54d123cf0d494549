/* Reading what tests/golden holds of a model. */
#ifndef GOLDEN_FILES_H
#define GOLDEN_FILES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* size: bytes, without the zero that follows them. The caller frees it. */
static inline void *read_golden(const char *model, const char *name, size_t *size)
{
    char path[1024];
    snprintf(path, sizeof path, PERIDOT_GOLDEN "/%s/%s", model, name);
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s: cannot be opened", path);
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    char *data = malloc(*size + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, *size, f), *size);
    data[*size] = 0;
    fclose(f);
    return data;
}

/* Ids apart by commas or lines, as many as `most`. */
static inline size_t read_golden_ids(int32_t *ids, size_t most, const char *model, const char *name)
{
    size_t size, n = 0;
    char *text = read_golden(model, name, &size);
    for (char *at = text; n < most && *at; n++) {
        ids[n] = (int32_t)strtol(at, &at, 10);
        at += *at == ',' || *at == '\n';
    }
    free(text);
    return n;
}

#endif
