/* The bytes of a safetensors file. */
#include "harness.h"

#include "format/format_.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pd_arena arena = {0};
    struct pd_tensor_list tensors;
    if (fuzz_ok(pd_safetensors_parse(&tensors, &arena, data, size, "x.safetensors"))) {
        for (size_t i = 0; i < tensors.n; i++) {
            const struct pd_tensor *t = &tensors.items[i];
            FUZZ_CHECK(t->data >= data && t->size <= size && (size_t)(t->data - data) <= size - t->size);
        }
        fuzz_ok(pd_tensor_list_index(&tensors, &arena));
    }
    pd_arena_free(&arena);
    return 0;
}
