/* The variable `loop`: where a loop is, with jinja2's peeking ahead. */
#ifndef PD_TEXT_TEMPLATE_LOOP_H
#define PD_TEXT_TEMPLATE_LOOP_H

#include "text/template/iterate.h"

struct pd_loop {
    struct pd_iterator it;
    struct pd_value iterated;            /* whose length is the loop's; PD_UNSET: that is not known yet */
    struct pd_value before, current, after;
    bool has_after, has_length, has_changed;
    int64_t index0;                      /* -1 before the first */
    int64_t depth0;                      /* calls of itself around it */
    /* loop(x): what the loop, which must be recursive, writes for the values of x; its code, and the frame around. */
    peridot_status (*call)(struct pd_value *out, struct pd_render *r, const struct pd_loop *loop,
                           const struct pd_args *args);
    const struct pd_code *code;
    struct pd_frame *frame;
    size_t length;
    struct pd_value changed;             /* the arguments of loop.changed, last time */
};

peridot_status pd_loop_next(bool *done, struct pd_loop *l, struct pd_render *r);
/* An attribute; *found false: it is none, or a method (loop.cycle, loop.changed). */
peridot_status pd_loop_member(struct pd_value *out, bool *found, struct pd_loop *l, struct pd_render *r,
                              struct pd_chars name);

#endif
