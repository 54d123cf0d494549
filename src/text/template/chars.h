/* Texts byte by byte and character by character: building them, cutting them, their case. A character is a code point;
 * each byte that is part of none counts as one. */
#ifndef PD_TEXT_TEMPLATE_CHARS_H
#define PD_TEXT_TEMPLATE_CHARS_H

#include "text/template/value.h"

/* A text that grows, in the render's arena. */
struct pd_builder {
    struct pd_render *r;
    char *data;
    unsigned char *own;
    size_t size, capacity;
};

peridot_status pd_builder_reserve(struct pd_builder *b, size_t more);
peridot_status pd_builder_add(struct pd_builder *b, struct pd_chars text);
peridot_status pd_builder_bytes(struct pd_builder *b, const char *data, size_t size, bool own);
peridot_status pd_builder_string(struct pd_builder *b, const char *text, bool own);
/* What was built, as a value; more may be added afterwards. */
struct pd_value pd_builder_value(const struct pd_builder *b);

/* Bytes from..from + size. */
struct pd_chars pd_chars_part(struct pd_chars text, size_t from, size_t size);
bool pd_chars_is_own(struct pd_chars text);        /* all of it; one without bytes: if its source was */
/* a then b, in a's place where a was made by the last call and has room behind it: a loop that appends is linear. */
peridot_status pd_chars_concat(struct pd_value *out, struct pd_render *r, struct pd_chars a, struct pd_chars b);

/* Bytes of the character at `at` < size, its code point in *code (the byte where it is part of none). */
size_t pd_chars_next(uint32_t *code, struct pd_chars text, size_t at);
/* Where the character that ends before byte `at` > 0 begins. */
size_t pd_chars_previous(struct pd_chars text, size_t at);
size_t pd_chars_count(struct pd_chars text);
/* Byte offset of character i, `size` past the last. */
size_t pd_chars_offset(struct pd_chars text, size_t i);
bool pd_chars_is_ascii(struct pd_chars text);
/* *out: byte offset of the first occurrence at or after `from`, or of the last that ends at or before `to`; SIZE_MAX:
 * there is none. */
peridot_status pd_chars_find(size_t *out, struct pd_render *r, struct pd_chars text, struct pd_chars what, size_t from);
peridot_status pd_chars_find_last(size_t *out, struct pd_render *r, struct pd_chars text, struct pd_chars what,
                                  size_t to);

/* Without the characters of `set` (NULL: white space) at its ends. */
enum { PD_STRIP_LEFT = 1, PD_STRIP_RIGHT = 2 };
struct pd_chars pd_chars_strip(struct pd_chars text, const struct pd_chars *set, unsigned sides);

bool pd_char_is_space(uint32_t code);
/* Ends a line for str.splitlines. */
bool pd_char_is_line_end(uint32_t code);

#endif
