/* What a model thinks within a reply. Thoughts have a budget; stop texts and grammars are for the answer. So where the
 * budget is used up, and where an answer under a grammar begins, the engine's request ends, and goes on at once from
 * the tokens so far. Callbacks and statistics do not show the seam. */
#ifndef PD_API_THINKING_H
#define PD_API_THINKING_H

#include "text/tokenizer.h"

/* A header's last token is that of what follows it. */
enum pd_reply_part {
    PD_REPLY_ANSWER, PD_REPLY_BEGINS_THOUGHT, PD_REPLY_THOUGHT, PD_REPLY_ENDS_THOUGHT, PD_REPLY_HEADER,
    PD_REPLY_BEGINS_ANSWER
};

struct pd_thinking {
    int32_t marks[PD_N_THOUGHT_MARKS];   /* -1: thoughts are text like other */
    const struct pd_ids *header;      /* of a thought, where there are headers: the tokenizer's */
    size_t n_header;                  /* of its ids that have come last, in a header */
    bool in_header;
    bool calls_headers;               /* they are of the calls, whose grammar begins with that of what is no thought */
    uint32_t n_most, n;               /* tokens of thoughts: at most, and so far */
    bool inside, named;               /* within a thought, after its first line */
    bool hides_name;                  /* that line is left out */
    bool counts;                      /* the request may have to go on as another one: `drawn` is kept */
    const peridot_grammar *grammar;   /* that waits for the answer; the chain's */
    /* Where the engine's request ends for another one: */
    bool resumes;
    bool redraws;                     /* the last token that was drawn is none of the reply's */
    bool ends_thought;                /* the mark is to follow */
    int32_t next[2];                  /* what is to be evaluated first */
    struct pd_ids drawn;              /* since it began last */
    /* Of the parts that have ended: */
    uint32_t n_parts;
    peridot_stats before;
};

void pd_thinking_begin(struct pd_thinking *t, const struct pd_tokenizer *tokenizer);
/* What n tokens before the reply begin: a header, or a thought. */
void pd_thinking_read_prompt(struct pd_thinking *t, const int32_t *prompt, size_t n);
/* What a token of the reply is a part of. -1, its end, is a part of what it ends in. */
enum pd_reply_part pd_thinking_take(struct pd_thinking *t, int32_t token);
/* Whether the token is not to be taken: the answer must begin here, under the grammar. */
bool pd_thinking_refuses(struct pd_thinking *t, int32_t token, bool is_stop);
/* After the token was taken: whether the request has to go on as another one. */
void pd_thinking_look(struct pd_thinking *t, enum pd_reply_part part);
/* Leaves out of a thought's text what belongs to its first line. */
void pd_thinking_skip_name(struct pd_thinking *t, const char **text, size_t *size);

#endif
