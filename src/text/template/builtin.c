#include "text/template/builtin.h"

#include "base/utf8.h"
#include "text/template/code.h"

#include <stdio.h>
#include <string.h>

/* Parameter after parameter of a row: its name up to *size, whether it must be given; NULL past the last. */
static const char *next_parameter(size_t *size, bool *required, const char *at)
{
    while (*at == ' ') at++;
    *size = strcspn(at, " !");
    *required = at[*size] == '!';
    return *size ? at : NULL;
}

/* The place of the parameter of this name, 0: there is none; a call gives n arguments before those with names. */
static size_t find_parameter(const struct pd_builtin *f, struct pd_chars name)
{
    size_t size, place = 1;
    bool required;
    for (const char *at = f->parameters; (at = next_parameter(&size, &required, at)); at += size + required, place++)
        if (pd_chars_equal(name, (struct pd_chars){at, size, NULL})) return place;
    return 0;
}

static peridot_status fail(const struct pd_builtin *f, const char *kind, uint32_t line, const char *what)
{
    return pd_fail(PERIDOT_ERROR_FORMAT, "line %u: %s %s %s", (unsigned)line, kind, f->name, what);
}

peridot_status pd_builtin_check(const struct pd_builtin *f, const char *kind, uint32_t line, size_t n,
                                const struct pd_code *named)
{
    char what[PD_SHOWN_SIZE + 40], shown[PD_SHOWN_SIZE];
    bool given[PD_MAX_PARAMETERS + 1] = {false}, required;
    size_t size, place = 1;
    if (strcmp(f->parameters, "*") == 0) return PERIDOT_OK;
    for (; named; named = named->next) {
        const struct pd_chars name = named->value.text;
        const size_t at = find_parameter(f, name);
        snprintf(what, sizeof what, "takes no argument %s", pd_utf8_shown(shown, name.data, name.size));
        if (!at) return fail(f, kind, line, what);
        if (at < n || given[at]) return fail(f, kind, line, "is given an argument twice");
        given[at] = true;
    }
    for (const char *at = f->parameters; (at = next_parameter(&size, &required, at)); at += size + required, place++)
        if (required && place >= n && !given[place]) return fail(f, kind, line, "lacks an argument");
    return n > place ? fail(f, kind, line, "has too many arguments") : PERIDOT_OK;
}

peridot_status pd_builtin_call(struct pd_value *out, struct pd_render *r, const struct pd_builtin *f,
                               const struct pd_args *args)
{
    struct pd_value a[PD_MAX_PARAMETERS + 1] = {{.type = PD_UNSET}};
    size_t i = 0;
    PD_TRY(pd_builtin_check(f, "the call of", r->line, args->n, args->named));
    if (strcmp(f->parameters, "*") == 0) {
        a[0] = args->at[0];
        return f->call(out, r, a, args);
    }
    for (; i < args->n; i++) a[i] = args->at[i];
    for (const struct pd_code *named = args->named; named; named = named->next)
        a[find_parameter(f, named->value.text)] = args->at[i++];
    return f->call(out, r, a, args);
}
