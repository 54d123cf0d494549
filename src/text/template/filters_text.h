/* Filters of texts and numbers: rows of the table in filters.c. */
#ifndef PD_TEXT_TEMPLATE_FILTERS_TEXT_H
#define PD_TEXT_TEMPLATE_FILTERS_TEXT_H

#include "text/template/builtin.h"

PD_BUILTIN(pd_filter_string);
PD_BUILTIN(pd_filter_safe);
PD_BUILTIN(pd_filter_escape);
PD_BUILTIN(pd_filter_forceescape);
PD_BUILTIN(pd_filter_striptags);
PD_BUILTIN(pd_filter_urlencode);
PD_BUILTIN(pd_filter_xmlattr);       /* autospace */
PD_BUILTIN(pd_filter_title);
PD_BUILTIN(pd_filter_replace);       /* old new count */
PD_BUILTIN(pd_filter_indent);        /* width first blank */
PD_BUILTIN(pd_filter_wordcount);
PD_BUILTIN(pd_filter_format);
PD_BUILTIN(pd_filter_tojson);        /* ensure_ascii indent separators sort_keys */
PD_BUILTIN(pd_filter_int);           /* default base */
PD_BUILTIN(pd_filter_float);         /* default */
PD_BUILTIN(pd_filter_abs);
PD_BUILTIN(pd_filter_round);         /* precision method */

#endif
