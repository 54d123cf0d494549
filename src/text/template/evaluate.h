/* Expressions. */
#ifndef PD_TEXT_TEMPLATE_EVALUATE_H
#define PD_TEXT_TEMPLATE_EVALUATE_H

#include "text/template/builtin.h"
#include "text/template/code.h"

/* What {% macro %} makes. */
struct pd_macro {
    const struct pd_code *code;
    struct pd_frame *frame;              /* where it was made */
    peridot_status (*call)(struct pd_value *out, struct pd_render *r, const struct pd_macro *macro,
                           const struct pd_args *args);
};

peridot_status pd_evaluate(struct pd_value *out, struct pd_render *r, const struct pd_code *code);

#endif
