/* How a reranker is asked for the score of a document, as Qwen3-Reranker was trained: a conversation of ChatML with an
 * instruction, a query and the document, whose reply begins with "yes" or "no". The score is the probability of "yes"
 * of these two. A GGUF file may have a head with these two labels in place of its output matrix. peridot rerank and
 * serve do the same with both. */
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The texts of Qwen3-Reranker's model card. */
static const char system_text[] =
    "Judge whether the Document meets the requirements based on the Query and the Instruct provided. Note that the "
    "answer can only be \"yes\" or \"no\".";
static const char usual_instruct[] = "Given a web search query, retrieve relevant passages that answer the query";
static const char no_thought[] = "<think>\n\n</think>\n\n";

static peridot_status find_token(int32_t *out, const peridot_vocab *vocab, const char *word)
{
    int32_t *ids;
    size_t n;
    PD_TRY(peridot_encode(&ids, &n, vocab, word, strlen(word), 0));
    if (n == 1) *out = ids[0];
    peridot_free(ids);
    if (n == 1) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the model is no reranker: \"%s\" is no token of its vocabulary", word);
}

void cmd_ranking_labels(int32_t labels[2], const peridot_model *model)
{
    bool has = peridot_model_get_info(model)->is_reranker;
    labels[1] = !has ? -1 : strcmp(peridot_model_label(model, 0), "yes") != 0;
    labels[0] = !has ? -1 : 1 - labels[1];
}

peridot_status cmd_ranking_begin(struct cmd_ranking *out, const peridot_vocab *vocab, const int32_t labels[2],
                                 const char *instruct, const char *query)
{
    const peridot_message message = {"user", ""};
    int32_t *ids;
    size_t n;
    *out = (struct cmd_ranking){.vocab = vocab, .instruct = instruct ? instruct : usual_instruct, .query = query,
                                .no = labels[0], .yes = labels[1], .scores_labels = labels[0] >= 0};
    if (!out->scores_labels) PD_TRY(find_token(&out->no, vocab, "no"));
    if (!out->scores_labels) PD_TRY(find_token(&out->yes, vocab, "yes"));
    if (peridot_encode_messages(&ids, &n, vocab, &message, 1, "chatml") != PERIDOT_OK)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the model is no reranker: its vocabulary lacks ChatML's tokens");
    peridot_free(ids);
    return PERIDOT_OK;
}

/* The conversation, and what the reply begins with. */
static peridot_status ranking_encode(int32_t **ids, size_t *n, const struct cmd_ranking *r, const char *user_text)
{
    const peridot_message messages[] = {{"system", system_text}, {"user", user_text}};
    const peridot_chat chat = {.size = sizeof chat, .template_name = "chatml", .messages = messages,
                               .n_messages = PD_COUNT(messages), .limit = r->limit};
    int32_t *begun, *more;
    size_t n_begun, n_more;
    *ids = NULL;
    PD_TRY(peridot_encode(&more, &n_more, r->vocab, no_thought, sizeof no_thought - 1, PERIDOT_ENCODE_SPECIAL));
    peridot_status status = peridot_encode_turns(&begun, &n_begun, r->vocab, &chat);
    *n = n_begun + n_more;
    if (status == PERIDOT_OK) *ids = malloc(*n * sizeof **ids);
    if (status == PERIDOT_OK && !*ids) status = pd_fail_alloc(*n * sizeof **ids, "prompt");
    if (status == PERIDOT_OK) {
        memcpy(*ids, begun, n_begun * sizeof *begun);
        memcpy(*ids + n_begun, more, n_more * sizeof *more);
    }
    peridot_free(begun);
    peridot_free(more);
    return status;
}

peridot_status cmd_ranking_encode(int32_t **ids, size_t *n, const struct cmd_ranking *r, const char *document)
{
    static const char form[] = "<Instruct>: %s\n<Query>: %s\n<Document>: %s";
    size_t size = sizeof form + strlen(r->instruct) + strlen(r->query) + strlen(document);
    char *text = malloc(size);
    if (!text) return pd_fail_alloc(size, "prompt");
    snprintf(text, size, form, r->instruct, r->query, document);
    peridot_status status = ranking_encode(ids, n, r, text);
    free(text);
    return status;
}

/* Logits are had with a token, whatever it is: prompts are then evaluated from where they differ. */
void cmd_ranking_want(peridot_request_params *params, const struct cmd_ranking *r, peridot_row take)
{
    params->n_max = !r->scores_labels;
    *(r->scores_labels ? &params->prompt_logits : &params->logits) = take;
    params->prompt_last = true;
}

double cmd_ranking_score(const struct cmd_ranking *r, const float *row)
{
    return 1 / (1 + exp((double)row[r->no] - (double)row[r->yes]));
}
