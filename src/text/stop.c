#include "text/stop.h"

#include <string.h>

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
    struct pd_text_buffer *held = &s->held;
    *out = "", *size = 0;
    held->size -= s->n_given;
    if (s->n_given) memmove(held->data, held->data + s->n_given, held->size);
    s->n_given = 0;
    if (s->found) return PERIDOT_OK;
    PD_TRY(pd_text_append(held, text, n));
    while (s->n_given < held->size && !stops_at(s, s->n_given, last)) s->n_given++;
    if (held->data) *out = held->data;
    *size = s->n_given;
    return PERIDOT_OK;
}
