#include "vectors.h"
#include "../base64.h"

#include <stdlib.h>
#include <string.h>

typedef yyjson_mut_doc doc_t;
typedef yyjson_mut_val val_t;

val_t *serve_vector(doc_t *doc, const struct serve_task *task)
{
    val_t *vector = yyjson_mut_arr(doc);
    for (size_t i = 0; i < task->vector_size; i++)
        yyjson_mut_arr_add_real(doc, vector, (double)(float)task->vector[i]);
    return vector;
}

val_t *serve_vector_base64(doc_t *doc, const struct serve_task *task)
{
    size_t n = task->vector_size * sizeof(float);
    unsigned char *bytes = malloc(n + 1);
    struct serve_buffer b = {.data = malloc((n + 2) / 3 * 4 + 1)};
    for (size_t i = 0; bytes && i < task->vector_size; i++) {
        const float value = (float)task->vector[i];
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        for (size_t k = 0; k < 4; k++) bytes[4 * i + k] = (unsigned char)(bits >> 8 * k);
    }
    b.failed = !bytes || !b.data;
    if (!b.failed) b.size = (size_t)(cmd_base64_encode(b.data, bytes, n) - b.data);
    free(bytes);
    return serve_buffer_text(doc, &b);
}
