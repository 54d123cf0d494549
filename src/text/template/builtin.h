/* What programs can call: filters, tests, methods and functions are rows of tables. A row says how its parameters are
 * called, so that one binder serves them all, and a program that calls what is not there is refused when it is
 * parsed; as in jinja2, filters and tests in branches of "if" may be missing until they are called. */
#ifndef PD_TEXT_TEMPLATE_BUILTIN_H
#define PD_TEXT_TEMPLATE_BUILTIN_H

#include "text/template/value.h"

struct pd_code;

/* Arguments as they were given: n without names, then n_named, whose names are those of the PD_CODE_KEYWORD nodes. The
 * first is what a filter, a test or a method is applied to, PD_UNSET for functions. */
struct pd_args {
    struct pd_value *at;
    size_t n, n_named;
    const struct pd_code *named;
};

enum { PD_MAX_PARAMETERS = 6 };

struct pd_builtin {
    const char *name;
    /* Of parameters after the first argument, in their order: "old! new! count", "!" where one must be given. "*": the
     * function takes any arguments, and reads them itself. */
    const char *parameters;
    /* a[0]: the first argument; a[i]: parameter i, PD_UNSET where it was not given. NULL: a method that the sandbox
     * refuses. */
    peridot_status (*call)(struct pd_value *out, struct pd_render *r, struct pd_value *a, const struct pd_args *args);
};

/* The head of such a function. */
#define PD_BUILTIN(name) \
    peridot_status name(struct pd_value *out, struct pd_render *r, struct pd_value *a, const struct pd_args *args)

/* Fails where a call gives what the function does not take: n arguments without names, the first one among them, then
 * those named. */
peridot_status pd_builtin_check(const struct pd_builtin *f, const char *kind, uint32_t line, size_t n,
                                const struct pd_code *named);
peridot_status pd_builtin_call(struct pd_value *out, struct pd_render *r, const struct pd_builtin *f,
                               const struct pd_args *args);

const struct pd_builtin *pd_filter_find(struct pd_chars name);
const struct pd_builtin *pd_test_find(struct pd_chars name);
const struct pd_builtin *pd_function_find(struct pd_chars name);
/* Of a value of this type. */
const struct pd_builtin *pd_method_find(enum pd_value_type type, struct pd_chars name);
/* Whether values of some type have a method of this name. */
bool pd_method_is_known(struct pd_chars name);

#endif
