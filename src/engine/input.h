/* What a pass reads of the host's memory: of each row its token, its place in the cache and its angles. Kernels read it
 * while the pass is at work: the host writes it only before. */
#ifndef PD_ENGINE_INPUT_H
#define PD_ENGINE_INPUT_H

#include "engine/workspace.h"

/* What a pass reads of the host's memory. */
struct pd_input {
    struct pd_span step, tokens, places, angles;   /* places: [kinds][n_rows]; angles: of each RoPE table
                                                      [n_rows][head_dim] */
    struct pd_span lora_scales;                    /* [n_rows][n_adapters]; empty where the model has none */
    uint32_t n_rows;                               /* at most */
    struct pd_input_row {
        uint32_t table, pos, last;
        int32_t token;                 /* layers may have inputs of their own of it */
    } *rows;                           /* [n_rows]: what other ranks are told; NULL: there are none */
    struct pd_span embedded;           /* [n_rows][x.stride]: embeddings; empty until there is one */
    /* Where there are: rows of the residual stream from the rank before, and to the next one, in the host's memory. */
    struct pd_span rows_in, rows_out;
};
/* tokens: where these are, or an empty span. */
peridot_status pd_input_create(struct pd_input *in, const struct pd_workspace *w, uint32_t n_rows,
                               struct pd_span tokens);
void pd_input_free(struct pd_input *in);
/* Row m stands at position pos of the sequence with these pages. It sees its keys up to its own, or to that of position
 * `last`, which the same pass writes: the end of its text, where the model reads texts whole, or of its image. Where
 * layers have windows, how far it sees is the config's business. */
void pd_input_write(const struct pd_input *in, const struct pd_workspace *w, uint32_t m, const struct pd_pages *pages,
                    uint32_t pos, uint32_t last);
/* By how much row m takes each of the model's adapters. */
void pd_input_adapt(const struct pd_input *in, const struct pd_workspace *w, uint32_t m,
                    const struct pd_scales *scales);
/* The grids of a decode step of n rows that are written. */
void pd_input_write_grids(const struct pd_input *in, const struct pd_workspace *w, uint32_t n);

/* Rows of d_model go in instead of the embeddings of n rows from `first` on, where rows[i] is not NULL. */
peridot_status pd_input_embed(struct pd_input *in, const struct pd_workspace *w, uint32_t first,
                              const float *const *rows, uint32_t n);

/* Row m: a query at pos that reads the keys before it, of which the last is at pos - 1, and has none of its own. */
void pd_input_write_query(const struct pd_input *in, const struct pd_workspace *w, uint32_t m,
                          const struct pd_pages *pages, uint32_t pos);
/* What the forward pass over n_rows reads. */
struct pd_forward_args pd_input_forward_args(const struct pd_input *in, const struct pd_workspace *w,
                                             struct pd_recorder *r, uint32_t n_rows);

#endif
