/* Which variable a name is. As in jinja2, that is settled before a program runs: a frame has a variable of its own for
 * each name that is set anywhere in it, which begins as the one of the same name further out; "if" is no frame. */
#ifndef PD_TEXT_TEMPLATE_SCOPE_H
#define PD_TEXT_TEMPLATE_SCOPE_H

#include "text/template/code.h"

peridot_status pd_scope_resolve(struct pd_template *t);

#endif
