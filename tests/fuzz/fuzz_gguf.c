/* The bytes of a GGUF file: its structure, and all values as text and as numbers. */
#include "harness.h"

#include "format/format_.h"

#include <stdlib.h>
#include <string.h>

static void read_value(const struct pd_meta *m)
{
    uint64_t whole, last = m->n ? m->n - 1 : 0;
    int64_t integer;
    double number;
    bool flag;
    struct pd_string text;
    for (uint64_t i = 0; i <= last; i += last ? last : 1) {
        pd_meta_uint(&whole, m, i);
        pd_meta_int(&integer, m, i);
        pd_meta_float(&number, m, i);
        pd_meta_bool(&flag, m, i);
        if (pd_meta_string(&text, m, i) && text.size) FUZZ_CHECK(text.data);
    }
    char *shown = pd_meta_text(m);
    FUZZ_CHECK(shown && strlen(shown) < 4096);
    free(shown);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pd_gguf g;
    if (!fuzz_ok(pd_gguf_parse(&g, data, size, "x.gguf"))) return 0;
    for (size_t i = 0; i < g.n_meta; i++) {
        read_value(&g.meta[i]);
        FUZZ_CHECK(pd_gguf_find_meta(&g, g.meta[i].key) == &g.meta[i]);
    }
    for (size_t i = 0; i < g.tensors.n; i++) {
        const struct pd_tensor *t = &g.tensors.items[i];
        FUZZ_CHECK(t->data >= data && t->size <= size && (size_t)(t->data - data) <= size - t->size);
        FUZZ_CHECK(pd_tensor_list_find(&g.tensors, t->name) == t);
    }
    pd_gguf_free(&g);
    return 0;
}
