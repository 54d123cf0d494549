/* UTF-8: characters in bytes that come from files, users and models, so that anything may be malformed. */
#ifndef PD_BASE_UTF8_H
#define PD_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pd_utf8_state { PD_UTF8_CHARACTER, PD_UTF8_INCOMPLETE, PD_UTF8_INVALID };

/* Looks at the start of `size` > 0 bytes. CHARACTER: *length bytes are one, its value in *code. INCOMPLETE: all the
 * bytes are the start of one. INVALID: the first *length bytes can never be part of one, and stand for one U+FFFD (the
 * "maximal subpart" of Unicode 3.9, as browsers do). */
enum pd_utf8_state pd_utf8_next(uint32_t *code, size_t *length, const char *text, size_t size);

/* Gives the number of bytes. */
size_t pd_utf8_write(char out[4], uint32_t code);

/* Not fit for a terminal: control characters (C0, C1), those that change the direction of a text, and those that end
 * lines or paragraphs. */
bool pd_utf8_is_control(uint32_t code);

/* A text from a file as people may see it: the bytes of what is not fit for a terminal, and of malformed characters, as
 * "\x1b", line breaks as "\n". All of it, or what fits, with "..." at its end. The result is terminated, and no text
 * in it is changed again. Gives its size. */
size_t pd_utf8_escape(char *out, size_t out_size, const char *text, size_t size);
/* The same of the first character alone, which takes *length bytes of the text; not terminated. */
enum { PD_ESCAPED_MAX = 4 };
size_t pd_utf8_escape_next(char out[PD_ESCAPED_MAX], size_t *length, const char *text, size_t size);

/* The same for a part of a sentence. Gives `out`. */
enum { PD_SHOWN_SIZE = 48 };
const char *pd_utf8_shown(char out[PD_SHOWN_SIZE], const char *text, size_t size);

/* White space to Unicode. */
bool pd_utf8_is_space(uint32_t code);
/* Text without the white space at its ends, as Python's str.strip (and so the chat templates' trim filter) sees it. */
void pd_utf8_trim(const char **text, size_t *size);

#endif
