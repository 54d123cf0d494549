/* What a model thinks within a reply, told by marks among its tokens. Thoughts have a budget; stop texts and grammars
 * are for the answer. So the mark that ends a thought may have to be written for the model, and a token drawn again
 * under the grammar: the request then goes on from what it was given instead of what it drew.
 *
 * There are models whose every part of a reply has a header, which says whether it is a thought (marks.start); a call's
 * grammar may begin with that of what is none. This knows tokens alone: what becomes text of them is the caller's. */
#include "engine/rounds/rounds.h"

void pd_thinking_begin(struct pd_thinking *t, const struct pd_thought_marks *marks)
{
    *t = (struct pd_thinking){.marks = *marks, .n_most = UINT32_MAX};
}

void pd_thinking_read_prompt(struct pd_thinking *t, const int32_t *prompt, size_t n)
{
    size_t begin = n;
    bool headers = t->marks.start >= 0;
    int32_t first = headers ? t->marks.start : t->marks.begin, last = headers ? t->marks.start : t->marks.end;
    while (begin > 0 && prompt[begin - 1] != first && prompt[begin - 1] != last) begin--;
    for (size_t i = begin ? begin - 1 : n; i < n; i++) pd_thinking_take(t, prompt[i]);   /* some begin the thought */
    t->n = 0;
}

static enum pd_reply_part begin_thought(struct pd_thinking *t)
{
    t->place = PD_IN_THOUGHT;
    return PD_REPLY_BEGINS_THOUGHT;
}

/* Whether a header that is a thought's so far goes on as one. */
static bool continues_header(const struct pd_thinking *t, int32_t token)
{
    return token == (t->n_header < t->marks.n_header ? t->marks.header[t->n_header] : t->marks.begin);
}

static enum pd_reply_part take_header(struct pd_thinking *t, int32_t token)
{
    if (token == t->marks.begin && t->n_header == t->marks.n_header) return begin_thought(t);
    if (token == t->marks.begin) {
        t->place = PD_IN_ANSWER;
        return PD_REPLY_BEGINS_ANSWER;
    }
    bool goes_on = t->n_header < t->marks.n_header && continues_header(t, token);
    t->n_header = goes_on ? t->n_header + 1 : token == t->marks.header[0];
    return PD_REPLY_HEADER;
}

enum pd_reply_part pd_thinking_take(struct pd_thinking *t, int32_t token)
{
    bool headers = t->marks.start >= 0, inside = t->place == PD_IN_THOUGHT;
    if (t->place == PD_IN_HEADER && token >= 0) return take_header(t, token);
    if (t->marks.begin < 0 || t->place == PD_IN_HEADER) return PD_REPLY_ANSWER;
    if (!inside && token != (headers ? t->marks.start : t->marks.begin)) return PD_REPLY_ANSWER;
    if (!inside && !headers) return begin_thought(t);
    if (!inside || token == t->marks.end) {
        t->place = headers ? PD_IN_HEADER : PD_IN_ANSWER;
        t->n_header = 0;
        return inside ? PD_REPLY_ENDS_THOUGHT : PD_REPLY_HEADER;
    }
    t->n += token >= 0;
    return PD_REPLY_THOUGHT;
}

size_t pd_thinking_begun(const struct pd_thinking *t)
{
    return t->place == PD_IN_HEADER && t->calls_headers ? t->n_header : 0;
}

bool pd_thinking_precedes(const struct pd_thinking *t) { return t->place == PD_IN_HEADER && !t->calls_headers; }

bool pd_thinking_begins_answer(const struct pd_thinking *t, enum pd_reply_part part)
{
    bool header = t->marks.start >= 0 && !t->calls_headers;
    return part == (header ? PD_REPLY_BEGINS_ANSWER : PD_REPLY_ENDS_THOUGHT);
}

bool pd_thinking_is_over(const struct pd_thinking *t) { return t->place == PD_IN_THOUGHT && t->n >= t->n_most; }

bool pd_thinking_refuses(const struct pd_thinking *t, int32_t token, bool is_stop)
{
    if (t->place == PD_IN_THOUGHT || pd_thinking_precedes(t)) return is_stop;
    return t->place == PD_IN_HEADER ? !continues_header(t, token) : token != t->marks.begin;
}
