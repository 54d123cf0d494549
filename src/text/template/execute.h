/* Statements. */
#ifndef PD_TEXT_TEMPLATE_EXECUTE_H
#define PD_TEXT_TEMPLATE_EXECUTE_H

#include "text/template/code.h"

/* Runs a program: writes to r->out. */
peridot_status pd_execute(struct pd_render *r, const struct pd_template *t);

#endif
