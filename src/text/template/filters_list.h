/* Filters of what can be iterated: rows of the table in filters.c. */
#ifndef PD_TEXT_TEMPLATE_FILTERS_LIST_H
#define PD_TEXT_TEMPLATE_FILTERS_LIST_H

#include "text/template/builtin.h"

PD_BUILTIN(pd_filter_default);       /* default_value boolean */
PD_BUILTIN(pd_filter_length);
PD_BUILTIN(pd_filter_list);
PD_BUILTIN(pd_filter_items);
PD_BUILTIN(pd_filter_first);
PD_BUILTIN(pd_filter_last);
PD_BUILTIN(pd_filter_reverse);
PD_BUILTIN(pd_filter_join);          /* d attribute */
PD_BUILTIN(pd_filter_sort);          /* reverse case_sensitive attribute */
PD_BUILTIN(pd_filter_dictsort);      /* case_sensitive by reverse */
PD_BUILTIN(pd_filter_unique);        /* case_sensitive attribute */
PD_BUILTIN(pd_filter_min);           /* case_sensitive attribute */
PD_BUILTIN(pd_filter_max);
PD_BUILTIN(pd_filter_sum);           /* attribute start */
PD_BUILTIN(pd_filter_batch);         /* linecount fill_with */
PD_BUILTIN(pd_filter_slice);         /* slices fill_with */
PD_BUILTIN(pd_filter_groupby);       /* attribute default case_sensitive */
PD_BUILTIN(pd_filter_attr);          /* name */

/* An attribute by jinja2's path, "a.b.0", or an index; PD_UNSET or none: the value itself. */
peridot_status pd_get_path(struct pd_value *out, struct pd_render *r, const struct pd_value *of,
                           const struct pd_value *path, const struct pd_value *otherwise);

#endif
