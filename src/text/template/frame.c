#include "text/template/frame.h"

#include "text/template/builtin.h"
#include "text/template/template.h"

#include <string.h>

static peridot_status read_input(struct pd_value *out, struct pd_render *r, struct pd_chars name)
{
    const struct pd_template_input *in = r->in;
    *out = (struct pd_value){.type = PD_UNSET};
    for (size_t i = 0; i < in->n_words; i++)
        if (pd_chars_are(name, in->words[i].name)) {
            *out = pd_value_text((struct pd_chars){in->words[i].text, strlen(in->words[i].text), pd_all_own});
            return PERIDOT_OK;
        }
    PD_TRY(pd_render_spend(r, yyjson_obj_size(in->variables)));
    yyjson_val *json = yyjson_obj_getn(in->variables, name.data, name.size);
    if (json) return pd_value_from_json(out, r, json);
    const struct pd_builtin *function = pd_function_find(name);
    if (function) *out = (struct pd_value){.type = PD_FUNCTION, .function = function};
    return PERIDOT_OK;
}

/* What was read once is kept: it is the same in every frame. */
static peridot_status load_input(struct pd_value *out, struct pd_render *r, struct pd_chars name)
{
    const struct pd_value key = pd_value_text(name);
    struct pd_value *kept;
    PD_TRY(pd_dict_find(&kept, r, r->inputs, &key));
    if (kept) {
        *out = *kept;
        return PERIDOT_OK;
    }
    PD_TRY(read_input(out, r, name));
    return pd_dict_put(r, r->inputs, &key, out);
}

peridot_status pd_frame_reset(struct pd_frame *f, struct pd_render *r, const struct pd_scope *scope)
{
    for (const struct pd_variable *v = scope->variables; v; v = v->next) {
        struct pd_frame *outer = f;
        f->at[v->slot] = (struct pd_value){.type = PD_UNSET};
        if (v->from == PD_FROM_INPUT) PD_TRY(load_input(&f->at[v->slot], r, v->name));
        if (v->from != PD_FROM_OUTER) continue;
        for (uint32_t i = 0; i < v->outer_level; i++) outer = outer->outer;
        f->at[v->slot] = outer->at[v->outer_slot];
    }
    return pd_render_spend(r, scope->n / 4);
}

peridot_status pd_frame_create(struct pd_frame **out, struct pd_render *r, const struct pd_scope *scope,
                               struct pd_frame *outer)
{
    PD_TRY(pd_render_alloc(out, r, 1, sizeof **out));
    PD_TRY(pd_render_alloc(&(*out)->at, r, scope->n, sizeof *(*out)->at));
    (*out)->outer = outer;
    return pd_frame_reset(*out, r, scope);
}

struct pd_value *pd_frame_variable(const struct pd_render *r, const struct pd_code *name)
{
    struct pd_frame *f = r->frame;
    for (uint32_t i = 0; i < name->level; i++) f = f->outer;
    return &f->at[name->slot];
}
