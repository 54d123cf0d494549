/* Python's operators on values. */
#ifndef PD_TEXT_TEMPLATE_OPERATORS_H
#define PD_TEXT_TEMPLATE_OPERATORS_H

#include "text/template/value.h"

/* op: as the lexer gives it. */
peridot_status pd_operate(struct pd_value *out, struct pd_render *r, unsigned op, const struct pd_value *a,
                          const struct pd_value *b);
peridot_status pd_negate(struct pd_value *out, struct pd_render *r, const struct pd_value *v, bool minus);
/* One comparison, op of a PD_CODE_OPERAND. */
peridot_status pd_compare(bool *out, struct pd_render *r, unsigned op, const struct pd_value *a,
                          const struct pd_value *b);
peridot_status pd_contains(bool *out, struct pd_render *r, const struct pd_value *in, const struct pd_value *what);
/* v[which], v[from:to:step]. */
peridot_status pd_get_element(struct pd_value *out, bool *found, struct pd_render *r, const struct pd_value *v,
                              const struct pd_value *which);
peridot_status pd_get_slice(struct pd_value *out, struct pd_render *r, const struct pd_value *v,
                            const struct pd_value bounds[3]);

#endif
