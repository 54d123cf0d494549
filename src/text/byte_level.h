/* How byte-level vocabularies spell bytes: as 256 characters that can be seen. The printable ones of Latin-1 stand for
 * themselves, the other 68 bytes, in order, for U+0100 and what follows (a space is U+0120). Source: bytes_to_unicode
 * in encoder.py of openai/gpt-2. */
#ifndef PD_TEXT_BYTE_LEVEL_H
#define PD_TEXT_BYTE_LEVEL_H

#include "text/buffer.h"

/* Appends the bytes that a text spells. *spelt is false, and nothing appended, when it has a character that is none of
 * the 256. */
peridot_status pd_byte_level_read(struct pd_text_buffer *out, bool *spelt, const char *text, size_t size);
/* Appends the spelling of bytes. */
peridot_status pd_byte_level_write(struct pd_text_buffer *out, const char *bytes, size_t size);

#endif
