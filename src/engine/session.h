/* A session: what sequences of one model share, and the calls that evaluate them. Owns its sequences, the cache that
 * their pages are of, the workspace, and the passes of the decoder and of prompts; borrows the model. All memory of the
 * device is taken when it is created: a pass allocates nothing. One thread at a time uses a session; `cancelled` alone
 * may be set by others. After PERIDOT_ERROR_DEVICE_LOST nothing is evaluated any more, and sequences have their
 * tokens. */
#ifndef PD_ENGINE_SESSION_H
#define PD_ENGINE_SESSION_H

#include "engine/decode.h"
#include "engine/drafter.h"
#include "engine/prefill.h"

#include <stdatomic.h>

struct pd_session {
    struct pd_model *model;
    uint32_t ctx, chunk;               /* positions of a sequence; tokens of a submit at most */
    struct pd_sequence_set set;
    struct pd_workspace workspace;
    struct pd_stage stage;             /* of rank 0 of several */
    bool announced;                    /* the other ranks have sessions for it */
    struct pd_decoder decoder;
    struct pd_prefill prefill;
    uint32_t n_draft;                  /* tokens of a draft at most; 0: none are made */
    struct pd_drafter *drafter;        /* NULL: there is none */
    uint32_t n_rounds;                 /* of requests: see request.c */
    bool text_ended;                   /* a request's, in this round */
    /* Of a round: the time that draws under grammars took and that they may take, and whether one had its turn, which
     * one always has. draw_steps: of a mask in one turn (pd_grammar_mask_some). n_turns: so far. */
    double draw_s, draw_most_s;
    bool drew;
    uint64_t draw_steps, n_turns;
    atomic_bool cancelled;             /* set from outside: the call at work stops between submits */
};

peridot_status pd_session_create(struct pd_session **out, struct pd_model *model, const peridot_session_params *params);
/* Drafts are its guesses then. It has not one yet; the drafter's model stays, on the same device. */
peridot_status pd_session_set_drafter(struct pd_session *s, const struct pd_model *drafter);
/* Its sequences go with it. */
void pd_session_free(struct pd_session *s);
/* Bytes that the cache of a session takes whose other parameters are the default ones; ctx 0: the default, where memory
 * is not short. */
uint64_t pd_session_cache_size(const struct pd_config *config, uint32_t ctx, peridot_kv_type type);
/* Compiles every kernel that the session's passes take, without recording any. */
peridot_status pd_session_prewarm(struct pd_session *s);
/* Dispatches of a decode step. */
uint32_t pd_session_n_dispatches(const struct pd_session *s);

/* See pd_sequence_create, _fork, _load, _truncate and _free; queued steps of the sequence are discarded. */
peridot_status pd_session_add(struct pd_sequence **out, struct pd_session *s);
peridot_status pd_session_fork(struct pd_sequence **out, struct pd_session *s, const struct pd_sequence *q, uint32_t n);
peridot_status pd_session_load(struct pd_sequence **out, struct pd_session *s, const char *path);
peridot_status pd_session_truncate(struct pd_session *s, struct pd_sequence *q, uint32_t n, uint32_t *kept);
void pd_session_remove(struct pd_session *s, struct pd_sequence *q);

/* The scales of the adapters that are named, alone: see pd_adapters_choose. */
peridot_status pd_session_choose_adapters(struct pd_scales *out, const struct pd_session *s,
                                          const peridot_adapter *adapters, size_t n);
/* Of a sequence without tokens, or with those that it has. */
peridot_status pd_session_set_adapters(const struct pd_session *s, struct pd_sequence *q,
                                       const peridot_adapter *adapters, size_t n);

/* What an evaluation of prompts hands out, of each prompt. */
struct pd_eval_params {
    struct pd_row_outputs outputs;     /* `first`, or where `last` is set only the last token */
    bool last;
    peridot_progress progress;         /* NULL: none */
};
/* Evaluates all tokens of n prompts of different sequences: in chunks, or, where each has one token, or chunks have, in
 * decode steps of them all. Ids and lengths are checked first, and nothing is changed if they are wrong. params may be
 * NULL. */
peridot_status pd_session_eval(struct pd_session *s, struct pd_prompt *prompts, uint32_t n,
                               const struct pd_eval_params *params);
peridot_status pd_session_check_tokens(const struct pd_session *s, const struct pd_prompt *prompt);
/* Logits of the last position, [n_outputs], borrowed until the next call. Where a pass of others has overwritten them
 * the last token is evaluated again. */
peridot_status pd_session_logits(const float **out, struct pd_session *s, struct pd_sequence *q);
/* Copies them to the sequence's own row, which no pass of others overwrites. */
peridot_status pd_session_keep_logits(struct pd_session *s, struct pd_sequence *q);
peridot_status pd_session_sample(int32_t *token, struct pd_session *s, struct pd_sequence *q);
/* The same in turns: under a grammar a mask may be made in pieces, and *drawn is false until it is finished. Adds to
 * draw_s. */
peridot_status pd_session_sample_some(bool *drawn, int32_t *token, struct pd_session *s, struct pd_sequence *q);
/* The sequence has a copy of what p points to, and owns the grammar as well. */
peridot_status pd_session_set_sampling(struct pd_session *s, struct pd_sequence *q, const peridot_sampling *p);
/* Bytes of weights and cache that a decode step of n sequences at position `pos` reads. */
uint64_t pd_session_step_size(const struct pd_session *s, uint32_t n, uint32_t pos);
/* Runs a decode step of n sequences (n_tokens 1) or a chunk of the first one, for measurements: see pd_pass_measure. */
peridot_status pd_session_measure(struct pd_session *s, struct pd_commands *commands,
                                  struct pd_sequence *const *sequences, uint32_t n, uint32_t n_tokens);

#endif
