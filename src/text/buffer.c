#include "text/buffer.h"

#include "base/array.h"

#include <string.h>

bool pd_text_begins_with_space(const char *text, size_t size) { return size >= 3 && memcmp(text, PD_SPACE, 3) == 0; }

peridot_status pd_text_append_escaped(struct pd_text_buffer *b, const char *text, size_t size)
{
    size_t begin = 0;
    if (size == 0) return PERIDOT_OK;   /* text may be NULL */
    for (size_t i = 0; i < size; i++) {
        if (text[i] != ' ') continue;
        PD_TRY(pd_text_append(b, text + begin, i - begin));
        PD_TRY(pd_text_append(b, PD_SPACE, 3));
        begin = i + 1;
    }
    return pd_text_append(b, text + begin, size - begin);
}

peridot_status pd_text_append_unescaped(struct pd_text_buffer *b, const char *text, size_t size)
{
    size_t begin = 0;
    if (size == 0) return PERIDOT_OK;   /* text may be NULL */
    for (size_t i = 0; i < size; i++) {
        if (!pd_text_begins_with_space(text + i, size - i)) continue;
        PD_TRY(pd_text_append(b, text + begin, i - begin));
        PD_TRY(pd_text_append(b, " ", 1));
        begin = i + 3;
        i += 2;
    }
    return pd_text_append(b, text + begin, size - begin);
}

peridot_status pd_text_check_span(size_t size)
{
    const size_t most = (size_t)1 << 29;
    if (size <= most) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_ARGUMENT, "a line of %zu bytes is too long to encode (at most %zu)", size, most);
}

peridot_status pd_ids_append(struct pd_ids *ids, const int32_t *data, size_t n)
{
    PD_TRY(pd_array_reserve(&ids->data, &ids->capacity, ids->n, n, sizeof *ids->data, "token ids"));
    if (n) memcpy(ids->data + ids->n, data, n * sizeof *data);
    ids->n += n;
    return PERIDOT_OK;
}
