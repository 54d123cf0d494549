/* Images in conversations: the tokens around their rows, by the vocabulary. */
#include "text/tokenizer.h"

#include "base/num.h"
#include "text/tokenizer_private.h"

#include <string.h>

bool pd_tokenizer_image_marks(struct pd_image_marks *out, const struct pd_tokenizer *t)
{
    static const struct { const char *marker, *begin, *end, *around; } rows[] = {
        {"<|image|>", "<|image>", "<image|>", ""},                                    /* Gemma 4 */
        {"<start_of_image>", "<start_of_image>", "<end_of_image>", "\n\n"}};          /* Gemma 3 */
    for (size_t i = 0; i < PD_COUNT(rows); i++) {
        *out = (struct pd_image_marks){.marker = pd_special_find(&t->special, &t->pieces, rows[i].marker),
            .begin = pd_special_find(&t->special, &t->pieces, rows[i].begin),
            .end = pd_special_find(&t->special, &t->pieces, rows[i].end), .around = rows[i].around};
        if (out->marker >= 0 && out->begin >= 0 && out->end >= 0) return true;
    }
    return false;
}

peridot_status pd_tokenizer_put_image(struct pd_ids *out, struct pd_text_buffer *plain, const struct pd_tokenizer *t,
                                      const struct pd_image_marks *marks, const struct pd_chat_image *image,
                                      enum pd_text_place place)
{
    /* Gemma 3's, as only its images have crops: before the whole, before the first crop, and before others. */
    static const char *const of_crops[] = {
        "Here is the original image ", " and here are some crops to help you see better ", " "};
    for (size_t k = 0; k <= image->n_crops; k++) {
        const char *before = image->n_crops ? of_crops[pd_min(k, 2)] : "";
        PD_TRY(pd_text_append(plain, before, strlen(before)));
        PD_TRY(pd_text_append(plain, marks->around, strlen(marks->around)));
        PD_TRY(pd_tokenizer_encode_plain(out, t, plain->data, plain->size, k ? PD_PLACE_AFTER_CONTROL : place));
        PD_TRY(pd_ids_append(out, &marks->begin, 1));
        PD_TRY(pd_ids_append(out, image->ids + k * image->n, image->n));
        PD_TRY(pd_ids_append(out, &marks->end, 1));
        plain->size = 0;
        PD_TRY(pd_text_append(plain, marks->around, strlen(marks->around)));
    }
    return PERIDOT_OK;
}
