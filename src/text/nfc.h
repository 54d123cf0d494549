/* Unicode's normalization form C (UAX 15), which some tokenizers give texts before they split them: canonically
 * equivalent texts become one, in which letters and their accents are one character where there is such a character. */
#ifndef PD_TEXT_NFC_H
#define PD_TEXT_NFC_H

#include "text/buffer.h"

/* Appends the text, which must be valid UTF-8, in form C. */
peridot_status pd_text_append_nfc(struct pd_text_buffer *out, const char *text, size_t size);

#endif
