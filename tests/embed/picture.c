/* picture MODEL FILE [VISION]: asks a model what a picture shows. VISION is the file of its vision tower (mmproj),
 * which a Hugging Face directory has among its own files. */
#include <peridot.h>

#include <stdio.h>
#include <stdlib.h>

enum { MOST = 1 << 24 };   /* bytes of a picture's file */

static bool print(void *user, int32_t token, const char *text, size_t size)
{
    (void)user, (void)token;
    fwrite(text, 1, size, stdout);
    return fflush(stdout) == 0;
}

/* A turn in the model's chat template; the part of the type "image" is `image`, whose rows stand in its place. */
static peridot_status ask(peridot_model *model, peridot_sequence *sequence, peridot_image *image)
{
    static const char turn[] = "[{\"role\": \"user\", \"content\": [{\"type\": \"image\"}, "
                               "{\"type\": \"text\", \"text\": \"What is this?\"}]}]";
    const peridot_vocab *vocab = peridot_model_vocab(model);
    peridot_chat chat = {.size = sizeof chat, .json = turn, .json_size = sizeof turn - 1, .images = &image,
                         .n_images = 1};
    peridot_request_params params = {.size = sizeof params, .n_max = 64, .text = print};
    int32_t *ids = NULL;
    peridot_status status = vocab ? peridot_encode_turns(&ids, &params.n_prompt, vocab, &chat)
                                  : PERIDOT_ERROR_UNSUPPORTED;
    params.prompt = ids;
    if (!status) status = peridot_generate(sequence, &params, NULL);
    peridot_free(ids);
    return status;
}

int main(int argc, char **argv)
{
    peridot_model *model = NULL;
    peridot_session *session = NULL;
    peridot_sequence *sequence = NULL;
    peridot_image *image = NULL;
    FILE *file = argc > 2 ? fopen(argv[2], "rb") : NULL;
    char *data = malloc(MOST);
    if (!file || !data) return 2;
    peridot_model_params params = {.size = sizeof params, .vision = argc > 3 ? argv[3] : NULL};
    peridot_status status = peridot_model_open(&model, argv[1], &params);
    if (!status) status = peridot_image_read(&image, model, data, fread(data, 1, MOST, file), argv[2],
                                              NULL);
    if (!status) status = peridot_session_create(&session, model, NULL);
    if (!status) status = peridot_sequence_create(&sequence, session);
    if (!status) status = ask(model, sequence, image);
    if (status) fprintf(stderr, "%s: %s\n", peridot_status_name(status), peridot_last_error());
    peridot_session_free(session);
    peridot_image_free(image);
    peridot_model_close(model);
    free(data);
    fclose(file);
    return status != PERIDOT_OK;
}
