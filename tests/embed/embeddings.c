/* embeddings MODEL TEXT TEXT: how alike two texts are, as the cosine of their mean hidden states. */
#include <peridot.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool add_row(void *user, peridot_sequence *sequence, uint32_t pos, const float *row, size_t n)
{
    double *sum = user;
    (void)sequence, (void)pos;
    for (size_t i = 0; i < n; i++) sum[i] += (double)row[i];
    return true;
}

/* Adds the states of all positions to sum [d_model]. */
static peridot_status embed(double *sum, peridot_sequence *sequence, const peridot_vocab *vocab, const char *text)
{
    peridot_eval_params params = {.size = sizeof params, .hidden = add_row, .user = sum};
    int32_t *ids = NULL;
    size_t n;
    if (!vocab) return PERIDOT_ERROR_UNSUPPORTED;
    peridot_status status = peridot_sequence_truncate(sequence, 0, NULL);
    if (status == PERIDOT_OK) status = peridot_encode(&ids, &n, vocab, text, strlen(text), PERIDOT_ENCODE_BOS);
    if (status == PERIDOT_OK) status = peridot_sequence_eval(sequence, ids, n, &params);
    peridot_free(ids);
    return status;
}

int main(int argc, char **argv)
{
    peridot_model *model = NULL;
    peridot_session *session = NULL;
    peridot_sequence *sequence = NULL;
    if (argc != 4) return 2;
    peridot_status status = peridot_model_open(&model, argv[1], NULL);
    if (status == PERIDOT_OK) status = peridot_session_create(&session, model, NULL);
    if (status == PERIDOT_OK) status = peridot_sequence_create(&sequence, session);
    size_t d = model ? peridot_model_get_info(model)->d_model : 0;
    double *a = calloc(2 * d + 1, sizeof *a), *b = a + d, ab = 0, aa = 0, bb = 0;
    if (status == PERIDOT_OK) status = embed(a, sequence, peridot_model_vocab(model), argv[2]);
    if (status == PERIDOT_OK) status = embed(b, sequence, peridot_model_vocab(model), argv[3]);
    for (size_t i = 0; i < d; i++) ab += a[i] * b[i], aa += a[i] * a[i], bb += b[i] * b[i];
    if (status == PERIDOT_OK) printf("%.4f\n", ab / sqrt(aa * bb));
    else fprintf(stderr, "%s: %s\n", peridot_status_name(status), peridot_last_error());
    free(a);
    peridot_session_free(session);
    peridot_model_close(model);
    return status != PERIDOT_OK;
}
