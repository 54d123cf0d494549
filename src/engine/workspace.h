/* What the passes of a session share on the device: activations and logits. Passes use it one after the other, in the
 * order in which they are submitted, so that none needs a copy of its own; rows of logits stay after the pass, and
 * written_by says of which pass each is. Owns its heaps, of which the decoder's and the passes' own memory is, too. The
 * thread of the session uses it. */
#ifndef PD_ENGINE_WORKSPACE_H
#define PD_ENGINE_WORKSPACE_H

#include "engine/forward.h"
#include "engine/model.h"
#include "engine/sequence.h"

#define PD_LOGITS_ROWS 32    /* rows of logits computed at once for callers that want every row */

struct pd_workspace {
    const struct pd_model *model;
    const struct pd_cache *cache;
    struct pd_variants variants;       /* the model's, or those whose results do not depend on how many sequences
                                          decode */
    struct pd_tunings tunings;         /* the model's when the session was created: variants point to them */
    struct pd_heap *device_heap, *host_heap, *input_heap;
    struct pd_scratch scratch;
    uint32_t n_rows, n_sequences;      /* most rows of a pass, and sequences */
    uint32_t n_decode;                 /* most rows of a decode step, those of drafts included */
    uint32_t n_spare;                  /* rows of logits for callers that want every row */
    struct pd_rows logits;             /* [n_sequences + n_decode + n_spare][n_outputs] */
    uint64_t n_passes, *written_by;    /* [pd_spare_row]: the number of the pass that each row of logits is of */
    struct pd_span normed_span, logits_span;
    struct pd_rows hidden;             /* [pd_spare_row][d_model]: what each row of logits is of, for a drafter; */
    struct pd_span hidden_span;        /* no address: it is not kept */
    uint64_t topk[2];                  /* scratch of the selection */
    float *host_rows;                  /* n_spare rows on the host, and one at least, of n_outputs or d_model */
    struct pd_commands *head_commands; /* of rows of logits that callers want */
    double done_s;                     /* when a pass or a piece was last seen to be done */
    uint32_t split_pages;              /* see pd_decode_place */
    uint32_t attention_groups[PD_MAX_LAYER_KINDS];   /* of a step: see pd_attention_groups */
};

/* Rows of logits: at the end of a sequence's prompt, of row m of a decode step, and for callers that want every row. */
static inline uint32_t pd_own_row(const struct pd_sequence *q) { return q->index; }
static inline uint32_t pd_step_row(const struct pd_workspace *w, uint32_t m) { return w->n_sequences + m; }
static inline uint32_t pd_spare_row(const struct pd_workspace *w) { return w->n_sequences + w->n_decode; }

/* The caller sets input_heap, of what the host writes and kernels read, which is the workspace's from then on, n_rows,
 * n_sequences, n_decode and n_spare. */
peridot_status pd_workspace_create(struct pd_workspace *w, const struct pd_model *model, const struct pd_cache *cache);
void pd_workspace_free(struct pd_workspace *w);
/* From now on passes leave the hidden states of rows that have logits. */
peridot_status pd_workspace_keep_hidden(struct pd_workspace *w);

struct pd_recorder pd_workspace_recorder(const struct pd_workspace *w, struct pd_commands *commands);
/* The best candidates of n rows of logits, to host memory at `best`. */
void pd_workspace_select(const struct pd_workspace *w, struct pd_recorder *r, uint32_t row, uint32_t n, uint64_t best);

/* Reads n rows from row `first` of logits (with a classification head's biases added) or of hidden states to
 * host_rows. */
peridot_status pd_workspace_read_logits(struct pd_workspace *w, uint32_t first, uint32_t n);
peridot_status pd_workspace_read_hidden(struct pd_workspace *w, uint32_t first, uint32_t n);

#endif
