#include "vectors.h"

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
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n = task->vector_size * sizeof(float);
    unsigned char *bytes = malloc(n + 3);
    struct serve_buffer b = {0};
    if (!bytes) return yyjson_mut_null(doc);
    memset(bytes, 0, n + 3);
    for (size_t i = 0; i < task->vector_size; i++) {
        const float value = (float)task->vector[i];
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        for (size_t k = 0; k < 4; k++) bytes[4 * i + k] = (unsigned char)(bits >> 8 * k);
    }
    for (size_t i = 0; i < n; i += 3) {
        uint32_t word = (uint32_t)bytes[i] << 16 | (uint32_t)bytes[i + 1] << 8 | bytes[i + 2];
        char four[4] = {digits[word >> 18], digits[word >> 12 & 63], digits[word >> 6 & 63], digits[word & 63]};
        if (i + 1 >= n) four[2] = '=';
        if (i + 2 >= n) four[3] = '=';
        serve_put(&b, four, 4);
    }
    val_t *value = serve_text(doc, b.data, b.size);
    serve_buffer_free(&b);
    free(bytes);
    return value;
}
