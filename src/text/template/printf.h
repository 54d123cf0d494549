/* Texts with values put in: format % values, and str.format. */
#ifndef PD_TEXT_TEMPLATE_PRINTF_H
#define PD_TEXT_TEMPLATE_PRINTF_H

#include "text/template/builtin.h"

/* The first argument is the first value. */
peridot_status pd_printf(struct pd_value *out, struct pd_render *r, const struct pd_value *format,
                         const struct pd_args *args);
/* The first argument is the format. */
peridot_status pd_str_format(struct pd_value *out, struct pd_render *r, const struct pd_args *args);

#endif
