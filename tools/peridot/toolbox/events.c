#include "events.h"

#include <string.h>

/* Fields but data (event, id, retry) and comments say nothing of the message. */
static peridot_status end_line(struct events *e, events_take take, void *user)
{
    static const char field[] = "data:";
    enum { FIELD = sizeof field - 1 };
    const struct toolbox_bytes *line = &e->line;
    peridot_status status = PERIDOT_OK;
    if (line->size == 0 && e->data.size) {
        status = take(user, e->data.data, e->data.size - 1);   /* less the last newline */
        e->data.size = 0;
    } else if (line->size >= FIELD && memcmp(line->data, field, FIELD) == 0) {
        size_t begin = FIELD + (line->data[FIELD] == ' ');
        status = toolbox_bytes_add(&e->data, line->data + begin, line->size - begin);
        if (status == PERIDOT_OK) status = toolbox_bytes_add(&e->data, "\n", 1);
    }
    e->line.size = 0;
    return status;
}

peridot_status events_feed(struct events *e, const char *text, size_t size, size_t most, events_take take, void *user)
{
    for (size_t i = 0; i < size;) {
        if (e->after_return && text[i] == '\n') i++;
        e->after_return = false;
        size_t begin = i;
        while (i < size && text[i] != '\n' && text[i] != '\r') i++;
        if (i - begin + e->line.size + e->data.size > most)
            return cmd_fail(PERIDOT_ERROR_IO, "sent an event of more than %zu bytes", most);
        CMD_TRY(toolbox_bytes_add(&e->line, text + begin, i - begin));
        if (i == size) break;
        e->after_return = text[i++] == '\r';
        CMD_TRY(end_line(e, take, user));
    }
    return PERIDOT_OK;
}

void events_free(struct events *e)
{
    toolbox_bytes_free(&e->line);
    toolbox_bytes_free(&e->data);
}
