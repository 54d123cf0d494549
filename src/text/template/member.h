/* v.name and v[which], as jinja2's sandbox looks for them: attributes before keys with a dot, keys before attributes in
 * brackets. */
#ifndef PD_TEXT_TEMPLATE_MEMBER_H
#define PD_TEXT_TEMPLATE_MEMBER_H

#include "text/template/value.h"

/* An attribute that the object has in Python, not a key. */
peridot_status pd_get_attribute(struct pd_value *out, bool *found, struct pd_render *r, const struct pd_value *of,
                                struct pd_chars name);
peridot_status pd_get_member(struct pd_value *out, struct pd_render *r, const struct pd_value *of,
                             struct pd_chars name);
peridot_status pd_get_item(struct pd_value *out, struct pd_render *r, const struct pd_value *of,
                           const struct pd_value *which);

#endif
