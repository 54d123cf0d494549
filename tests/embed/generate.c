/* generate MODEL PROMPT: writes what the model adds to the prompt. */
#include <peridot.h>

#include <stdio.h>
#include <string.h>

static bool print(void *user, int32_t token, const char *text, size_t size)
{
    (void)user, (void)token;
    fwrite(text, 1, size, stdout);
    return fflush(stdout) == 0;   /* false ends the reply */
}

static peridot_status generate(peridot_model *model, peridot_sequence *sequence, const char *prompt)
{
    peridot_sampling sampling = {.size = sizeof sampling, .temperature = 0.8f, .top_k = 40, .seed = 1};
    const peridot_vocab *vocab = peridot_model_vocab(model);
    int32_t *ids;
    size_t n;
    if (!vocab) return PERIDOT_ERROR_UNSUPPORTED;
    peridot_status status = peridot_encode(&ids, &n, vocab, prompt, strlen(prompt), PERIDOT_ENCODE_BOS);
    if (status == PERIDOT_OK) status = peridot_set_sampling(sequence, &sampling);
    peridot_request_params params = {.size = sizeof params, .prompt = ids, .n_prompt = n, .n_max = 64, .text = print};
    if (status == PERIDOT_OK) status = peridot_generate(sequence, &params, NULL);
    peridot_free(ids);
    return status;
}

int main(int argc, char **argv)
{
    peridot_model *model = NULL;
    peridot_session *session = NULL;
    peridot_sequence *sequence = NULL;
    if (argc != 3) return 2;
    peridot_status status = peridot_model_open(&model, argv[1], NULL);
    if (status == PERIDOT_OK) status = peridot_session_create(&session, model, NULL);
    if (status == PERIDOT_OK) status = peridot_sequence_create(&sequence, session);
    if (status == PERIDOT_OK) status = generate(model, sequence, argv[2]);
    if (status != PERIDOT_OK) fprintf(stderr, "%s: %s\n", peridot_status_name(status), peridot_last_error());
    else putchar('\n');
    peridot_session_free(session);
    peridot_model_close(model);
    return status != PERIDOT_OK;
}
