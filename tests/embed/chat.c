/* chat MODEL: a conversation, each line of standard input a turn of its user. A turn evaluates only what it adds. */
#include <peridot.h>

#include <stdio.h>
#include <string.h>

enum { CTX = 512, REPLY = 24 };

struct conversation {
    int32_t ids[CTX];
    size_t n;
};

static bool take(void *user, int32_t token, const char *text, size_t size)
{
    struct conversation *c = user;
    if (token >= 0 && c->n < CTX) c->ids[c->n++] = token;   /* -1: the last of the text, and no token */
    fwrite(text, 1, size, stdout);
    return c->n < CTX;
}

static peridot_status answer(struct conversation *c, peridot_sequence *q, const peridot_vocab *vocab, const char *line)
{
    if (!vocab) return PERIDOT_ERROR_UNSUPPORTED;
    peridot_chat chat = {.size = sizeof chat, .template_name = peridot_vocab_has_chat(vocab) ? NULL : "plain",
                         .ids = c->ids, .n_ids = c->n, .messages = &(peridot_message){"user", line}, .n_messages = 1};
    int32_t *added;
    size_t n;
    peridot_status status = peridot_encode_turns(&added, &n, vocab, &chat);
    if (status != PERIDOT_OK) return status;
    for (size_t i = 0; i < n && c->n < CTX; i++) c->ids[c->n++] = added[i];
    peridot_free(added);
    const int32_t *next = c->ids + peridot_sequence_pos(q);   /* the last token of a reply may not be evaluated yet */
    peridot_request_params params = {.size = sizeof params, .prompt = next, .n_prompt = (size_t)(c->ids + c->n - next),
                                     .n_max = REPLY, .text = take, .user = c};
    return peridot_generate(q, &params, NULL);
}

int main(int argc, char **argv)
{
    static struct conversation conversation;
    peridot_model *model = NULL;
    peridot_session *session = NULL;
    peridot_sequence *sequence = NULL;
    char line[1024];
    peridot_status status = argc == 2 ? peridot_model_open(&model, argv[1], NULL) : PERIDOT_ERROR_ARGUMENT;
    if (status == PERIDOT_OK) status = peridot_session_create(&session, model, NULL);
    if (status == PERIDOT_OK) status = peridot_sequence_create(&sequence, session);
    while (status == PERIDOT_OK && conversation.n < CTX && fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        status = answer(&conversation, sequence, peridot_model_vocab(model), line);
        puts("");
    }
    if (status != PERIDOT_OK) fprintf(stderr, "%s: %s\n", peridot_status_name(status), peridot_last_error());
    peridot_session_free(session);
    peridot_model_close(model);
    return status != PERIDOT_OK;
}
