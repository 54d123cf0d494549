/* Values as text: str(), repr() and json.dumps() of Python. */
#ifndef PD_TEXT_TEMPLATE_PRINT_H
#define PD_TEXT_TEMPLATE_PRINT_H

#include "text/template/chars.h"

peridot_status pd_print(struct pd_builder *b, const struct pd_value *v);
peridot_status pd_print_repr(struct pd_builder *b, const struct pd_value *v);
/* str(v) as a text: of a text, the text itself. */
peridot_status pd_value_string(struct pd_chars *out, struct pd_render *r, const struct pd_value *v);
/* Escaped for HTML, and marked safe; what is marked is not escaped again. */
peridot_status pd_value_escape(struct pd_value *out, struct pd_render *r, const struct pd_value *v);

/* The pairs of a dict in the order of their keys, [d->n]. */
peridot_status pd_dict_sorted(struct pd_pair **out, struct pd_render *r, const struct pd_dict *d);

struct pd_json_style {
    bool ascii, sorted;              /* ensure_ascii, sort_keys */
    bool lines;                      /* an item a line, behind `indent` for each level */
    struct pd_chars indent, comma, colon;
};
peridot_status pd_print_json(struct pd_builder *b, const struct pd_value *v, const struct pd_json_style *style);

#endif
