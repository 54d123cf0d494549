/* How a reranker is asked for the score of a document, as Qwen3-Reranker was trained: a conversation of ChatML with an
 * instruction, a query and the document, whose reply begins with "yes" or "no". The score is the probability of "yes"
 * of these two. A GGUF file may have a head with these two labels in place of its output matrix. peridot rerank and
 * serve do the same with both. */
#ifndef PERIDOT_COMMAND_RANKING_H
#define PERIDOT_COMMAND_RANKING_H

#include "util.h"

struct cmd_ranking {
    const peridot_vocab *vocab;
    const char *instruct, *query;   /* borrowed; instruct NULL: the one that the model's card has */
    int32_t no, yes;                /* numbers of a row of logits or of label scores */
    bool scores_labels;
    peridot_encode_limit *limit;    /* of prompts; NULL: none */
};

/* Which of the model's labels are "no" and "yes", where it is_reranker; else -1. */
void cmd_ranking_labels(int32_t labels[2], const peridot_model *model);
/* Fails where the model is no reranker: its vocabulary lacks ChatML's tokens or, unless it has labels, "yes" or
 * "no". */
peridot_status cmd_ranking_begin(struct cmd_ranking *out, const peridot_vocab *vocab, const int32_t labels[2],
                                 const char *instruct, const char *query);
/* The prompt for a document, to be freed. Prompts of a query differ in nothing but the documents, up to
 * which they can be evaluated once. */
peridot_status cmd_ranking_encode(int32_t **ids, size_t *n, const struct cmd_ranking *r, const char *document);
/* What the request is for: the row of numbers after the prompt, which cmd_ranking_score reads. */
void cmd_ranking_want(peridot_request_params *params, const struct cmd_ranking *r, peridot_row take);
/* 0 to 1, of the row after the prompt. */
double cmd_ranking_score(const struct cmd_ranking *r, const float *row);

#endif
