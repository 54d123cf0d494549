/* Rank 0's side of a pass whose layers several ranks hold: what the next rank gets once this one's layers are done. A
 * rank has as many pages of the cache as any other, with the same numbers, so that the tables of rank 0's sequences
 * serve them all; what changed in them goes before the rows. */
#ifndef PD_ENGINE_STAGE_H
#define PD_ENGINE_STAGE_H

#include "engine/input.h"

struct pd_stage {
    const struct pd_workspace *w;
    uint32_t *sent[PD_MAX_LAYER_KINDS];   /* the tables as the other ranks have them */
    uint32_t *body;                       /* of a message, of the largest size */
};

/* An entry of a kind's tables that has changed. */
struct pd_table_entry {
    uint32_t kind, at, page;
};

/* The body of PD_OP_PASS: struct pd_input_row [n_rows], struct pd_head_row [n_heads], struct pd_table_entry
 * [n_entries]; its args are these three numbers, n_keys and n_steps. The reply, where there are
 * heads: struct pd_candidate [n_heads][PD_TOPK]. */
struct pd_stage_pass {
    const struct pd_input *in;
    const int32_t *tokens;             /* [n_rows] */
    const struct pd_head_row *heads;
    uint32_t n_rows, n_heads, n_keys, n_steps;   /* see pd_pass_shape; the steps' heads come first */
};

peridot_status pd_stage_create(struct pd_stage *s, const struct pd_workspace *w);
void pd_stage_free(struct pd_stage *s);
/* After the pass is done here. The reply is to be waited for where there are heads, and goes to `best`. */
peridot_status pd_stage_send(struct pd_stage *s, const struct pd_stage_pass *pass, struct pd_reply *reply, void *best);

#endif
