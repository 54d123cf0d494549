#include "api/api.h"

#include <string.h>

void pd_thinking_begin(struct pd_thinking *t, const struct pd_tokenizer *tokenizer)
{
    *t = (struct pd_thinking){.marks = {-1, -1, -1}, .n_most = UINT32_MAX, .named = true};
    if (tokenizer && pd_tokenizer_thoughts(t->marks, tokenizer)) t->header = pd_tokenizer_thought_header(tokenizer);
}

void pd_thinking_read_prompt(struct pd_thinking *t, const int32_t *prompt, size_t n)
{
    size_t begin = n;
    bool headers = t->marks[PD_THOUGHT_START] >= 0;
    int first = headers ? PD_THOUGHT_START : PD_THOUGHT_BEGIN, last = headers ? PD_THOUGHT_START : PD_THOUGHT_END;
    while (begin > 0 && prompt[begin - 1] != t->marks[first] && prompt[begin - 1] != t->marks[last]) begin--;
    for (size_t i = begin ? begin - 1 : n; i < n; i++) pd_thinking_take(t, prompt[i]);   /* some begin the thought */
    t->n = 0;
}

static enum pd_reply_part begin_thought(struct pd_thinking *t)
{
    t->inside = true;
    t->named = !t->hides_name;
    return PD_REPLY_BEGINS_THOUGHT;
}

static enum pd_reply_part take_header(struct pd_thinking *t, int32_t token)
{
    const int32_t *ids = t->header->data;
    t->in_header = token != t->marks[PD_THOUGHT_BEGIN];
    if (!t->in_header) return t->n_header == t->header->n ? begin_thought(t) : PD_REPLY_BEGINS_ANSWER;
    t->n_header = t->n_header < t->header->n && token == ids[t->n_header] ? t->n_header + 1 : token == ids[0];
    return PD_REPLY_HEADER;
}

enum pd_reply_part pd_thinking_take(struct pd_thinking *t, int32_t token)
{
    bool headers = t->marks[PD_THOUGHT_START] >= 0;
    int begins = headers ? PD_THOUGHT_START : PD_THOUGHT_BEGIN;
    if (t->in_header && token >= 0) return take_header(t, token);
    if (t->marks[0] < 0 || t->in_header || (!t->inside && token != t->marks[begins])) return PD_REPLY_ANSWER;
    if (!t->inside && !headers) return begin_thought(t);
    bool ends = t->inside && token == t->marks[PD_THOUGHT_END];
    if (ends || !t->inside) {
        t->in_header = headers;
        t->n_header = 0;
        t->inside = false;
        return ends ? PD_REPLY_ENDS_THOUGHT : PD_REPLY_HEADER;
    }
    t->n += token >= 0;
    return PD_REPLY_THOUGHT;
}

/* That of a thought, so far. */
static bool continues_header(const struct pd_thinking *t, int32_t token)
{
    return token == (t->n_header < t->header->n ? t->header->data[t->n_header] : t->marks[PD_THOUGHT_BEGIN]);
}

bool pd_thinking_refuses(struct pd_thinking *t, int32_t token, bool is_stop)
{
    bool other = t->in_header && t->calls_headers ? !continues_header(t, token) : token != t->marks[0];
    bool refuses = t->grammar && (t->inside || (t->in_header && !t->calls_headers) ? is_stop : other);
    if (refuses) t->resumes = t->redraws = true;
    t->ends_thought = refuses && t->inside;
    t->in_header = t->in_header && (!refuses || t->calls_headers);
    return refuses;
}

void pd_thinking_look(struct pd_thinking *t, enum pd_reply_part part)
{
    bool header = t->marks[PD_THOUGHT_START] >= 0 && !t->calls_headers;
    enum pd_reply_part last = header ? PD_REPLY_BEGINS_ANSWER : PD_REPLY_ENDS_THOUGHT;
    t->ends_thought = t->inside && t->n >= t->n_most;
    t->resumes = t->ends_thought || (part == last && t->grammar);
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
