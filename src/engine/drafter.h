/* A drafter: a few layers that guess the tokens after one that is yet to be evaluated (draft.h). They have no keys of
 * their own: each reads what the last layer of its kind in the target, the model that they draft for, has of the text
 * so far, in the target's cache. What goes in is the target's embedding of the token beside the hidden state that the
 * token was drawn from; then each guess, beside the hidden state that the drafter gives with it. All guesses stand at
 * the token's position, where there is no key yet, and see one key more than the target's windows have before it;
 * nothing is written, so that a draft is one submission. Owns a workspace of one row; borrows
 * the drafter's model and the target's session, whose thread uses it. Formula: Gemma4AssistantForCausalLM and
 * SinglePositionMultiTokenCandidateGenerator of transformers. */
#ifndef PD_ENGINE_DRAFTER_H
#define PD_ENGINE_DRAFTER_H

#include "engine/decode.h"

struct pd_drafter {
    const struct pd_model *model;
    struct pd_decoder *decoder;        /* of the target's session */
    struct pd_cache cache;             /* the target's, with the layers that the drafter's read: owns that list alone */
    struct pd_workspace w;
    struct pd_input input;
    struct pd_target target;
    struct pd_span in;                 /* of target.in */
    struct pd_span tokens, draws, recent, bias;   /* [1 + PD_MAX_DRAFT], [PD_MAX_DRAFT]; see pd_sample_push */
    struct pd_span drawn, best;        /* [PD_MAX_DRAFT], [PD_MAX_DRAFT][PD_TOPK] */
    struct pd_commands *commands;
    uint32_t n, hidden_row;            /* what is recorded: guesses, and whose hidden state; n 0: nothing */
};

/* How many query heads share a key is the target's business, which has the keys. Layers that cannot read its keys are
 * left as they are. */
void pd_drafter_share_keys(struct pd_config *config, const struct pd_config *target);
/* Whether the drafter's layers can read the target's cache: PERIDOT_ERROR_ARGUMENT, with a sentence, where not. */
peridot_status pd_drafter_check(const struct pd_model *model, const struct pd_model *target);
/* Both models are on one device, and have been checked. From now on the target's passes keep hidden states. */
peridot_status pd_drafter_create(struct pd_drafter **out, const struct pd_model *model, struct pd_decoder *decoder);
void pd_drafter_free(struct pd_drafter *d);
/* Adds n guesses to the first of rows->tokens, or none where the hidden state that it was drawn from is not there any
 * more. They are drawn by the sequence's chain, but for its grammar. Discards the queued steps. */
peridot_status pd_drafter_guess(struct pd_draft_rows *rows, struct pd_drafter *d, uint32_t n);

#endif
