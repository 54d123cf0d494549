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

/* Control characters, C0 and C1: not fit for a terminal. */
static inline bool pd_utf8_is_control(uint32_t code) { return code < 32 || (code >= 127 && code <= 159); }

/* A text from a file as a sentence can show it: the first characters that fit, control characters as '?'. Gives
 * `out`. */
enum { PD_SHOWN_SIZE = 48 };
const char *pd_utf8_shown(char out[PD_SHOWN_SIZE], const char *text, size_t size);

/* Text without the white space at its ends, as Python's str.strip (and so the chat templates' trim filter) sees it. */
void pd_utf8_trim(const char **text, size_t *size);

#endif
