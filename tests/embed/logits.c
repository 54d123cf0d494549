/* logits MODEL TEXT: the five likeliest next tokens, with their probabilities. */
#include <peridot.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N = 5 };

static void print_best(const float *logits, uint32_t n, const peridot_vocab *vocab)
{
    double total = 0;
    float above = INFINITY;
    for (uint32_t i = 0; i < n; i++) total += exp((double)logits[i]);
    for (int k = 0; k < N; k++) {
        int32_t best = -1;
        for (uint32_t i = 0; i < n; i++)
            if (logits[i] < above && (best < 0 || logits[i] > logits[best])) best = (int32_t)i;
        if (best < 0) return;
        char *text = NULL;
        size_t size;
        if (peridot_decode(&text, &size, vocab, &best, 1) != PERIDOT_OK) return;
        printf("%d %.4f %s\n", (int)best, exp((double)logits[best]) / total, text);
        peridot_free(text);
        above = logits[best];
    }
}

int main(int argc, char **argv)
{
    peridot_model *model = NULL;
    peridot_session *session = NULL;
    peridot_sequence *sequence = NULL;
    const float *logits;
    int32_t *ids = NULL;
    size_t n;
    if (argc != 3) return 2;
    peridot_status status = peridot_model_open(&model, argv[1], NULL);
    const peridot_vocab *vocab = model ? peridot_model_vocab(model) : NULL;
    if (status == PERIDOT_OK && !vocab) status = PERIDOT_ERROR_UNSUPPORTED;
    if (status == PERIDOT_OK) status = peridot_session_create(&session, model, NULL);
    if (status == PERIDOT_OK) status = peridot_sequence_create(&sequence, session);
    if (status == PERIDOT_OK) status = peridot_encode(&ids, &n, vocab, argv[2], strlen(argv[2]), PERIDOT_ENCODE_BOS);
    if (status == PERIDOT_OK) status = peridot_sequence_eval(sequence, ids, n, NULL);
    if (status == PERIDOT_OK) status = peridot_logits(&logits, sequence);
    if (status == PERIDOT_OK) print_best(logits, peridot_model_get_info(model)->n_outputs, vocab);
    else fprintf(stderr, "%s: %s\n", peridot_status_name(status), peridot_last_error());
    peridot_free(ids);
    peridot_session_free(session);
    peridot_model_close(model);
    return status != PERIDOT_OK;
}
