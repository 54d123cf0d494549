/* Speculative decoding. A draft is some tokens that are likely to come: those that followed where the last tokens came
 * before in the text, or those that a smaller model draws. They are evaluated with the next token in one decode step,
 * as rows of one sequence: each row attends to the keys of those before it, and is computed as it would be alone. Then
 * tokens are drawn row by row, as without a draft, from the same logits and by the same random numbers, for as long as
 * what is drawn is the draft's next token. So the text is the same, bit for bit, at any temperature and with any chain.
 * Rejection sampling would keep a token that was looked up as often: with the token's probability. A draft model draws
 * by the same random numbers as the model, so that the two agree more often than independent draws would, if less often
 * than rejection sampling could make them. Keys of rows that are not accepted are overwritten before they are read, so
 * there is nothing to undo. */
#ifndef PD_ENGINE_DRAFT_H
#define PD_ENGINE_DRAFT_H

#include "engine/session.h"

/* How a request drafts. */
struct pd_draft {
    uint32_t n_most;           /* tokens; 0: never */
    bool automatic;            /* none while steps without a draft are faster */
    struct pd_drafter *drafter;    /* NULL: another way; */
    struct pd_session *session;    /* the draft model's; NULL: what followed in the text before */
    struct pd_sequence *sequence;  /* of that session: it takes the same tokens */
    uint64_t n_drafted, n_accepted;
    double draw_s;             /* the last draft's draws under a grammar took so long */
    bool grows;                /* all of the last draft was drawn: the next one may be longer */
    double step_s;             /* lately a step without a draft took so long; 0: not known yet */
    uint32_t n_since;          /* drafts since that was measured */
    double gain;               /* by which steps with drafts were faster lately, in tokens; 0: not known yet */
    uint32_t pause, next_pause;    /* steps without drafts that are left, and of the next such time */
};

/* Adds a draft of at most n_most tokens to the first of rows->tokens, which is given. The sequence has room for all. */
peridot_status pd_draft_make(struct pd_draft_rows *rows, struct pd_draft *draft, uint32_t n_most);
/* A step, with what comes before it, took so long: with n_drafted tokens, of which n_accepted were drawn. */
void pd_draft_took(struct pd_draft *draft, double seconds, uint32_t n_drafted, uint32_t n_accepted);
/* The tokens after the longest text of up to 8 tokens, but not under 2, that ends `tokens` and is in them before: after
 * the latest of equally long ones. Gives their number, at most n_most. */
uint32_t pd_draft_lookup(int32_t *out, uint32_t n_most, const int32_t *tokens, uint32_t n);

#endif
