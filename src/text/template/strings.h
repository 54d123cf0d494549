/* What can be done with one text: rows of the tables of methods and filters. The first argument is a text, or becomes
 * one. */
#ifndef PD_TEXT_TEMPLATE_STRINGS_H
#define PD_TEXT_TEMPLATE_STRINGS_H

#include "text/template/builtin.h"

PD_BUILTIN(pd_str_upper);
PD_BUILTIN(pd_str_lower);
PD_BUILTIN(pd_str_capitalize);
PD_BUILTIN(pd_str_swapcase);
PD_BUILTIN(pd_str_center);           /* width, 80 where it is not given; fillchar */
PD_BUILTIN(pd_str_ljust);
PD_BUILTIN(pd_str_rjust);
PD_BUILTIN(pd_str_zfill);            /* width */
PD_BUILTIN(pd_str_strip);            /* chars */
PD_BUILTIN(pd_str_lstrip);
PD_BUILTIN(pd_str_rstrip);
PD_BUILTIN(pd_str_split);            /* sep maxsplit */
PD_BUILTIN(pd_str_rsplit);
PD_BUILTIN(pd_str_splitlines);       /* keepends */
PD_BUILTIN(pd_str_replace);          /* old new count, all of them texts and an integer */

/* A line of a text: without what ends it, and how many bytes that is. */
struct pd_line {
    struct pd_chars text;
    size_t end_size;
};
struct pd_line pd_line_at(struct pd_chars text, size_t at);

#endif
