/* Filters that fit what they are given into lines of a width: rows of the table in filters.c. */
#ifndef PD_TEXT_TEMPLATE_FILTERS_LAYOUT_H
#define PD_TEXT_TEMPLATE_FILTERS_LAYOUT_H

#include "text/template/builtin.h"

PD_BUILTIN(pd_filter_truncate);      /* length killwords end leeway */
PD_BUILTIN(pd_filter_wordwrap);      /* width break_long_words wrapstring break_on_hyphens */
PD_BUILTIN(pd_filter_pprint);

#endif
