/* One value after another: elements of lists, keys of dicts, characters of texts, and what filters give lazily. */
#ifndef PD_TEXT_TEMPLATE_ITERATE_H
#define PD_TEXT_TEMPLATE_ITERATE_H

#include "text/template/builtin.h"

struct pd_iterator {
    /* The next value; *done: there is none. */
    peridot_status (*next)(struct pd_value *out, bool *done, struct pd_render *r, struct pd_iterator *it);
    struct pd_value source;
    size_t at;
    struct pd_iterator *from;    /* whose values this one changes or chooses */
    /* For what others make of `from`. */
    const struct pd_builtin *builtin;
    struct pd_args args;
    struct pd_value attribute, other;
    bool negated;
    const void *context;
};

/* An iterator's own values are consumed; all else can be iterated again. Fails for what is not iterable. */
peridot_status pd_iterate(struct pd_iterator *out, struct pd_render *r, const struct pd_value *v);
peridot_status pd_iterate_backwards(struct pd_iterator *out, struct pd_render *r, const struct pd_value *v);
bool pd_is_iterable(const struct pd_value *v);
peridot_status pd_iterator_next(struct pd_value *out, bool *done, struct pd_iterator *it, struct pd_render *r);
/* As a value, in the arena. */
peridot_status pd_iterator_keep(struct pd_value *out, struct pd_render *r, const struct pd_iterator *it);
/* All that is left, as a PD_LIST. */
peridot_status pd_iterator_list(struct pd_value *out, struct pd_render *r, struct pd_iterator *it);
/* list(v). */
peridot_status pd_value_list(struct pd_value *out, struct pd_render *r, const struct pd_value *v);
/* len(v); *known false: it has none. */
size_t pd_value_length(bool *known, const struct pd_value *v);

#endif
