/* Bytes and ids that grow, with the limits that a caller sets for them; and stop texts, found in text that comes in
 * pieces. */
#include "text/text_.h"

#include "base/base.h"

#include <string.h>

bool pd_text_begins_with_space(const char *text, size_t size) { return size >= 3 && memcmp(text, PD_SPACE, 3) == 0; }

peridot_status pd_text_append_escaped(struct pd_buffer *b, const char *text, size_t size)
{
    size_t begin = 0;
    if (size == 0) return PERIDOT_OK;   /* text may be NULL */
    for (size_t i = 0; i < size; i++) {
        if (text[i] != ' ') continue;
        PD_TRY(pd_buffer_add(b, text + begin, i - begin));
        PD_TRY(pd_buffer_add(b, PD_SPACE, 3));
        begin = i + 1;
    }
    return pd_buffer_add(b, text + begin, size - begin);
}

peridot_status pd_text_append_unescaped(struct pd_buffer *b, const char *text, size_t size)
{
    size_t begin = 0;
    if (size == 0) return PERIDOT_OK;   /* text may be NULL */
    for (size_t i = 0; i < size; i++) {
        if (!pd_text_begins_with_space(text + i, size - i)) continue;
        PD_TRY(pd_buffer_add(b, text + begin, i - begin));
        PD_TRY(pd_buffer_add(b, " ", 1));
        begin = i + 3;
        i += 2;
    }
    return pd_buffer_add(b, text + begin, size - begin);
}

peridot_status pd_text_check_span(size_t size)
{
    const size_t most = (size_t)1 << 29;
    if (size <= most) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_ARGUMENT, "a line of %zu bytes is too long to encode (at most %zu)", size, most);
}

peridot_status pd_ids_go_on(const struct pd_ids *ids)
{
    const peridot_encode_limit *limit = ids->limit;
    if (!limit || !limit->go_on || limit->go_on(limit->user)) return PERIDOT_OK;
    return pd_fail(PERIDOT_CANCELLED, "encoding was ended");
}

peridot_status pd_ids_expect(struct pd_ids *ids, uint64_t n)
{
    peridot_encode_limit *limit = ids->limit;
    ids->n_least += n;
    if (!limit || limit->n_most == 0 || ids->n_least <= limit->n_most) return PERIDOT_OK;
    limit->n_least = ids->n_least;
    return pd_fail(PERIDOT_ERROR_ARGUMENT, "the text has at least %llu tokens, of which %llu are of use",
                   (unsigned long long)limit->n_least, (unsigned long long)limit->n_most);
}

enum { ASK_EACH = 1 << 14 };   /* ids: some milliseconds */

peridot_status pd_ids_append(struct pd_ids *ids, const int32_t *data, size_t n)
{
    if (ids->n / ASK_EACH != (ids->n + n) / ASK_EACH) PD_TRY(pd_ids_go_on(ids));
    PD_TRY(pd_array_reserve(&ids->data, &ids->capacity, ids->n, n, sizeof *ids->data, "token ids"));
    if (n) memcpy(ids->data + ids->n, data, n * sizeof *data);
    ids->n += n;
    return PERIDOT_OK;
}

/* ---- stop ---- */

/* What is left of the text begins with the stop text (whole), or the stop text begins with all that is left (begun). */
static void match(const char *stop, const char *rest, size_t size, bool *whole, bool *begun)
{
    size_t n = strlen(stop);
    if (n && size >= n && memcmp(rest, stop, n) == 0) *whole = true;
    if (n > size && memcmp(rest, stop, size) == 0) *begun = true;
}

/* True when the text can be shown no further than `at`. */
static bool stops_at(struct pd_stop *s, size_t at, bool last)
{
    bool begun = false;
    for (size_t i = 0; i < s->n; i++) match(s->texts[i], s->held.data + at, s->held.size - at, &s->found, &begun);
    return s->found || (begun && !last);
}

peridot_status pd_stop_next(const char **out, size_t *size, struct pd_stop *s, const char *text, size_t n, bool last)
{
    struct pd_buffer *held = &s->held;
    *out = "", *size = 0;
    held->size -= s->n_given;
    if (s->n_given) memmove(held->data, held->data + s->n_given, held->size);
    s->n_given = 0;
    if (s->found) return PERIDOT_OK;
    PD_TRY(pd_buffer_add(held, text, n));
    while (s->n_given < held->size && !stops_at(s, s->n_given, last)) s->n_given++;
    if (held->data) *out = held->data;
    *size = s->n_given;
    return PERIDOT_OK;
}
