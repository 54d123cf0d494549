/* Requests: prompts that are to be continued, each on a sequence of its own. They are served in rounds: a decode step
 * of all that are being continued, then a chunk of the prompts that wait, sized so that the others hardly do; on a CPU
 * both may be one pass (prefill.h). So requests can come and go at any time, and a long prompt keeps nobody waiting.
 * A request goes from WAITING (schedule.h), or at once, to PROMPT, from there by DRAW or directly to DECODE, and on to
 * DONE; DRAW and DECODE alternate under a grammar. Requests are their callers'; callbacks are called by the thread that
 * runs the session. */
#ifndef PD_ENGINE_REQUEST_H
#define PD_ENGINE_REQUEST_H

#include "engine/draft.h"

enum pd_token_verdict {
    PD_TOKEN_GO_ON,
    PD_TOKEN_LAST,             /* it is part of the text, which ends here */
    PD_TOKEN_STOPS             /* it says that the text has ended */
};

/* In this order, but that DRAW and DECODE alternate, and that one which is preempted (schedule.h) waits again. */
enum pd_request_state {
    PD_REQUEST_WAITING,        /* for a sequence: see schedule.h */
    PD_REQUEST_PROMPT,         /* its prompt is evaluated */
    PD_REQUEST_DRAW,           /* the next token is yet to be drawn under a grammar, which may take long */
    PD_REQUEST_DECODE,         /* the token that was drawn last is yet to be evaluated */
    PD_REQUEST_DONE
};

struct pd_request {
    struct pd_prompt prompt;   /* what is left of it */
    size_t n_given;            /* its tokens at first */
    size_t n_shared;           /* of the prompt's tokens: at their end the sequence is marked; 0: none */
    uint32_t n_max;            /* tokens to generate at most */
    /* For each token that was drawn; -1: the text has ended, and nothing is to be held back any more. */
    peridot_status (*token)(enum pd_token_verdict *verdict, struct pd_request *r, int32_t token);
    /* The caller's, as in peridot_request_params. */
    peridot_row logits;
    peridot_progress progress;
    peridot_row prompt_logits, prompt_hidden;
    bool prompt_last;
    void *user;
    struct pd_draft draft;
    /* Of a request that the schedule finds a sequence for. */
    bool scheduled;
    int32_t *tokens;           /* [n_tokens], malloc: its text when it began last */
    size_t n_tokens, n_replied, share_at;   /* share_at: n_shared of them all */
    peridot_sampling sampling; /* what it points to stays */
    struct pd_scales scales;   /* of the sequence */
    uint32_t n_cached, n_preempted;    /* see peridot_stats */
    uint32_t n_tries;          /* times that it was preempted before anything was evaluated, since something was */
    struct pd_request *behind; /* that waits next */
    /* Set by pd_request_begin and pd_requests_run: */
    enum pd_request_state state;
    struct pd_session *session;        /* that it began in */
    struct pd_row_outputs outputs;     /* prompt_logits and prompt_hidden, of prompt.outputs */
    struct pd_image_calls image_calls; /* of prompt.image_calls */
    bool is_hopeless;          /* memory was short for its images, not in the cache: it does not go on later */
    peridot_status status;     /* of a request that is done */
    size_t n_prompt, n_rest;   /* tokens of the prompt, and of those that are not in prompt.n_left yet */
    int32_t next;              /* the token that is yet to be evaluated */
    uint32_t n_generated;
    uint64_t turn;             /* number of its last turn to draw */
    double begun, prompt_s, first_token_s, decode_begun, decode_s;   /* see peridot_stats */
    uint64_t decode_read_size;
    char error[512];           /* the sentence of `status` */
};

/* Checks the prompt, prompt.tokens of which must stay until it is evaluated. */
peridot_status pd_request_begin(struct pd_request *r, struct pd_session *s);
/* Ends a request that has begun, with the present sentence where `status` is an error. */
void pd_request_end(struct pd_session *s, struct pd_request *r, peridot_status status);
/* One round for n requests, of which those that are done are passed over. What goes wrong with one ends that one; an
 * error is returned where it ends all. A prompt that is alone is read in a chunk of this size, or, if that is
 * PD_CHUNK_FULL, in as many as it takes. */
peridot_status pd_requests_run(struct pd_session *s, struct pd_request *const *requests, uint32_t n,
                               enum pd_chunk_aim alone);

#endif
