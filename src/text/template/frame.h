/* The variables of a scope while it runs. */
#ifndef PD_TEXT_TEMPLATE_FRAME_H
#define PD_TEXT_TEMPLATE_FRAME_H

#include "text/template/code.h"

struct pd_frame {
    struct pd_frame *outer;      /* of the scope around, where a macro was made */
    struct pd_value *at;         /* [scope->n]; PD_UNSET: it has no value */
};

peridot_status pd_frame_create(struct pd_frame **out, struct pd_render *r, const struct pd_scope *scope,
                               struct pd_frame *outer);
/* As it was when it was created: parameters have no values, others those that they begin with. */
peridot_status pd_frame_reset(struct pd_frame *f, struct pd_render *r, const struct pd_scope *scope);
/* The variable that a name in r->frame stands for. */
struct pd_value *pd_frame_variable(const struct pd_render *r, const struct pd_code *name);

#endif
