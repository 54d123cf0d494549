/* What characters are, and their case, by Python's rules. */
#ifndef PD_TEXT_TEMPLATE_UNICODE_H
#define PD_TEXT_TEMPLATE_UNICODE_H

#include "text/template/chars.h"

enum pd_unicode_class {
    PD_UNICODE_NOT_PRINTABLE,    /* what repr() escapes */
    PD_UNICODE_NOT_ALPHA, PD_UNICODE_NOT_DECIMAL, PD_UNICODE_NOT_ALNUM, PD_UNICODE_WORD, PD_UNICODE_NOT_WORD
};

/* *out: byte offset of the first character of the class at or after `from`; SIZE_MAX: there is none. */
peridot_status pd_unicode_find(size_t *out, struct pd_render *r, struct pd_chars text, size_t from,
                               enum pd_unicode_class which);

enum pd_case { PD_LOWER, PD_UPPER };
peridot_status pd_builder_add_case(struct pd_builder *b, struct pd_chars text, enum pd_case which);
/* The first letter in upper case, the others in lower. `title`: of one that becomes two, only the first. */
peridot_status pd_builder_add_capitalized(struct pd_builder *b, struct pd_chars text, bool title);
/* Which case a letter has: it changes in the other. */
bool pd_char_is_lower(uint32_t code);
bool pd_char_is_upper(uint32_t code);

#endif
