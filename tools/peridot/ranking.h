/* How a reranker is asked for the score of a document, as Qwen3-Reranker was trained: a conversation of ChatML with an
 * instruction, a query and the document, whose reply begins with "yes" or "no". The score is the probability of "yes"
 * of these two. peridot rerank and serve do the same with it. */
#ifndef PERIDOT_COMMAND_RANKING_H
#define PERIDOT_COMMAND_RANKING_H

#include "util.h"

struct cmd_ranking {
    const peridot_vocab *vocab;
    const char *instruct, *query;   /* borrowed; instruct NULL: the one that the model's card has */
    int32_t no, yes;                /* numbers of a row of logits */
};

/* Fails where the model is no reranker: "yes" and "no" are no tokens of its vocabulary, or it lacks those of ChatML. */
peridot_status cmd_ranking_begin(struct cmd_ranking *out, const peridot_vocab *vocab, const char *instruct,
                                 const char *query);
/* The prompt for a document, to be freed. Prompts of a query differ in nothing but the documents, up to
 * which they can be evaluated once. */
peridot_status cmd_ranking_encode(int32_t **ids, size_t *n, const struct cmd_ranking *r, const char *document);
/* 0 to 1, of the logits after the prompt. */
double cmd_ranking_score(const struct cmd_ranking *r, const float *logits);

#endif
