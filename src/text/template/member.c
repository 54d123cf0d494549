#include "text/template/member.h"

#include "text/template/builtin.h"
#include "text/template/loop.h"
#include "text/template/operators.h"

#include <string.h>

/* What the sandbox refuses can be looked at, and is undefined. */
static struct pd_value unsafe(struct pd_chars name)
{
    struct pd_value v = pd_value_undefined(name);
    v.kind = 1;
    return v;
}

static bool is_dunder(struct pd_chars name)
{
    return name.size > 4 && memcmp(name.data, "__", 2) == 0 && memcmp(name.data + name.size - 2, "__", 2) == 0;
}

static peridot_status bind_method(struct pd_value *out, struct pd_render *r, const struct pd_value *of,
                                  const struct pd_builtin *method)
{
    struct pd_value *self;
    PD_TRY(pd_render_alloc(&self, r, 1, sizeof *self));
    *self = *of;
    *out = (struct pd_value){.type = PD_METHOD, .method = {method, self}};
    return PERIDOT_OK;
}

peridot_status pd_get_attribute(struct pd_value *out, bool *found, struct pd_render *r, const struct pd_value *of,
                                struct pd_chars name)
{
    struct pd_value *member;
    const struct pd_value key = pd_value_text(name);
    *found = true;
    if (of->type == PD_NAMESPACE) {
        PD_TRY(pd_dict_find(&member, r, of->dict, &key));
        *found = member != NULL;
        if (member) *out = *member;
        return PERIDOT_OK;
    }
    if (of->type == PD_LOOP) {
        PD_TRY(pd_loop_member(out, found, of->loop, r, name));
        if (*found) return PERIDOT_OK;
    }
    if (of->type == PD_CYCLER && pd_chars_are(name, "current")) {
        *out = of->cycle->items.list.at[of->cycle->at];
        return PERIDOT_OK;
    }
    if (of->type == PD_TUPLE && of->kind && of->list.n == 2)
        for (size_t i = 0; i < 2; i++) {
            if (!pd_chars_are(name, i ? "list" : "grouper")) continue;
            *out = of->list.at[i];
            return PERIDOT_OK;
        }
    const struct pd_builtin *method = pd_method_find((enum pd_value_type)of->type, name);
    *found = method || is_dunder(name);
    if (method && method->call) return bind_method(out, r, of, method);
    if (*found) *out = unsafe(name);
    return PERIDOT_OK;
}

/* of.name: the attribute, else the key. */
peridot_status pd_get_member(struct pd_value *out, struct pd_render *r, const struct pd_value *of,
                             struct pd_chars name)
{
    bool found;
    const struct pd_value object = *of, key = pd_value_text(name);
    if (object.type == PD_UNDEFINED && !is_dunder(name)) return pd_value_fail_undefined(r, of);
    PD_TRY(pd_get_attribute(out, &found, r, &object, name));
    if (!found && object.type == PD_DICT) PD_TRY(pd_get_element(out, &found, r, &object, &key));
    if (!found) *out = pd_value_undefined(name);
    return PERIDOT_OK;
}

peridot_status pd_get_item(struct pd_value *out, struct pd_render *r, const struct pd_value *of,
                           const struct pd_value *which)
{
    bool found;
    const struct pd_value object = *of, key = *which;
    PD_TRY(pd_get_element(out, &found, r, &object, &key));
    if (!found && key.type == PD_TEXT) PD_TRY(pd_get_attribute(out, &found, r, &object, key.text));
    if (!found) *out = key.type == PD_TEXT ? pd_value_undefined(key.text) : pd_value_undefined(PD_CHARS("an element"));
    return PERIDOT_OK;
}
