/* Rows of prompts that requests want as they are evaluated: hidden states or logits of every position, or of the last.
 * Such prompts are read in passes of their own, several of a kind in one; each pass is sized in time by what those
 * before it took, the calls for its rows included (pace.h). */
#ifndef PD_ENGINE_PROMPT_ROWS_H
#define PD_ENGINE_PROMPT_ROWS_H

#include "engine/request.h"

struct pd_prompt_rows {
    struct pd_pace pace[2];    /* of passes without logits, and with */
};

void pd_prompt_rows_init(struct pd_prompt_rows *rows, const struct pd_session *s);
/* Whether what is left of the request's prompt is to be read here. */
bool pd_prompt_rows_wanted(const struct pd_request *r);
/* One pass over the prompts of some of n > 0 such requests. `writes`: others write texts meanwhile. What goes wrong
 * with one ends that one; an error is returned where it ends all. */
peridot_status pd_prompt_rows_read(struct pd_prompt_rows *rows, struct pd_session *s,
                                   struct pd_request *const *requests, uint32_t n, bool writes);

#endif
