/* many MODEL PROMPT PROMPT ...: goes on with prompts side by side, as a server would, and writes what became of each.
 * Those that find no sequence wait for one. */
#include <peridot.h>

#include <stdio.h>
#include <string.h>

enum { MOST = 16, SIZE = 4096 };

struct text {
    char bytes[SIZE];
    size_t n;
};

static bool take(void *user, int32_t token, const char *piece, size_t size)
{
    struct text *t = user;
    (void)token;
    if (size >= SIZE - t->n) return false;   /* the last byte stays 0 */
    memcpy(t->bytes + t->n, piece, size);
    t->n += size;
    return true;
}

static peridot_status ask(peridot_request **out, peridot_session *s, const peridot_vocab *vocab, const char *text,
                          struct text *reply)
{
    peridot_request_params params = {.size = sizeof params, .n_max = 24, .text = take, .user = reply};
    int32_t *ids = NULL;
    peridot_status status = vocab ? PERIDOT_OK : PERIDOT_ERROR_UNSUPPORTED;
    if (!status) status = peridot_encode(&ids, &params.n_prompt, vocab, text, strlen(text), PERIDOT_ENCODE_BOS);
    params.prompt = ids;
    if (!status) status = peridot_request_submit(out, s, &params);
    peridot_free(ids);
    return status;
}

int main(int argc, char **argv)
{
    peridot_model *model = NULL;
    peridot_session *session = NULL;
    peridot_request *requests[MOST];
    static struct text texts[MOST];
    size_t n = (size_t)argc - 2, n_running = n;
    if (argc < 3 || n > MOST) return 2;
    peridot_session_params params = {.size = sizeof params, .n_sequences = 4, .ctx = 256};
    peridot_status status = peridot_model_open(&model, argv[1], NULL);
    if (!status) status = peridot_session_create(&session, model, &params);
    for (size_t i = 0; i < n && !status; i++)
        status = ask(&requests[i], session, peridot_model_vocab(model), argv[2 + i], &texts[i]);
    while (!status && n_running) status = peridot_session_run(session, &n_running);   /* requests may come and go */
    for (size_t i = 0; i < n && !status; i++)
        if (peridot_request_done(requests[i], &status, NULL)) printf("%s|%s\n", argv[2 + i], texts[i].bytes);
    if (status) fprintf(stderr, "%s: %s\n", peridot_status_name(status), peridot_last_error());
    peridot_session_free(session);
    peridot_model_close(model);
    return status != PERIDOT_OK;
}
