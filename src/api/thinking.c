#include "api/thinking.h"

#include <string.h>

enum pd_reply_part pd_thinking_take(struct pd_thinking *t, int32_t token)
{
    if (t->marks[0] < 0 || (!t->inside && token != t->marks[0])) return PD_REPLY_ANSWER;
    if (!t->inside) {
        t->inside = true;
        t->named = !t->hides_name;
        return PD_REPLY_BEGINS_THOUGHT;
    }
    t->inside = token != t->marks[1];
    if (!t->inside) return PD_REPLY_ENDS_THOUGHT;
    t->n += token >= 0;
    return PD_REPLY_THOUGHT;
}

bool pd_thinking_refuses(struct pd_thinking *t, int32_t token, bool is_stop)
{
    bool refuses = t->grammar && (t->inside ? is_stop : token != t->marks[0]);
    if (refuses) t->resumes = t->redraws = true;
    t->ends_thought = refuses && t->inside;
    return refuses;
}

void pd_thinking_look(struct pd_thinking *t, enum pd_reply_part part)
{
    t->ends_thought = t->inside && t->n >= t->n_most;
    t->resumes = t->ends_thought || (part == PD_REPLY_ENDS_THOUGHT && t->grammar);
    t->redraws = false;
}

void pd_thinking_skip_name(struct pd_thinking *t, const char **text, size_t *size)
{
    const char *end = t->named || !*size ? NULL : memchr(*text, '\n', *size);
    size_t n = t->named ? 0 : end ? (size_t)(end + 1 - *text) : *size;
    t->named = t->named || end;
    *text += n;
    *size -= n;
}
