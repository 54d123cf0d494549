#include "text/template/template.h"

#include "text/template/builtin.h"
#include "text/template/chars.h"
#include "text/template/execute.h"
#include "text/template/parser.h"
#include "text/template/scope.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_SOURCE = 1 << 20 };

peridot_status pd_template_parse(struct pd_template **out, const char *source, size_t size)
{
    *out = NULL;
    if (size > MAX_SOURCE)
        return pd_fail(PERIDOT_ERROR_FORMAT, "line 1: a template of %zu bytes (at most %d)", size, MAX_SOURCE);
    struct pd_template *t = calloc(1, sizeof *t);
    if (!t) return pd_fail_alloc(sizeof *t, "a template");
    peridot_status status = pd_parse_program(&t->root, &t->arena, source, size);
    if (status == PERIDOT_OK) status = pd_scope_resolve(t);
    if (status == PERIDOT_OK) *out = t;
    else pd_template_free(t);
    return status;
}

void pd_template_free(struct pd_template *t)
{
    if (t) pd_arena_free(&t->arena);
    free(t);
}

bool pd_template_reads(const struct pd_template *t, const char *variable)
{
    for (const struct pd_variable *v = t->inputs; v; v = v->next_input)
        if (pd_chars_are(v->name, variable)) return true;
    return false;
}

static peridot_status copy_out(struct pd_template_output *out, const struct pd_builder *b)
{
    out->text = malloc(b->size + 1);
    out->own = malloc(b->size + 1);
    if (!out->text || !out->own) return pd_fail_alloc(b->size, "the text of a template");
    if (b->size) memcpy(out->text, b->data, b->size);
    if (b->size) memcpy(out->own, b->own, b->size);
    out->text[b->size] = 0;
    out->size = b->size;
    return PERIDOT_OK;
}

static bool is_filter(const struct pd_value *name) { return pd_filter_find(name->text) != NULL; }

static peridot_status run(struct pd_template_output *out, struct pd_render *r, const struct pd_template *t)
{
    struct pd_value inputs;
    PD_TRY(pd_render_alloc(&r->stack, r, PD_RENDER_MAX_STACK, sizeof *r->stack));
    PD_TRY(pd_dict_create(&inputs, r, false));
    r->inputs = inputs.dict;
    PD_TRY(pd_execute(r, t));
    return copy_out(out, r->out);
}

peridot_status pd_template_render(struct pd_template_output *out, const struct pd_template *t,
                                  const struct pd_template_input *in)
{
    struct pd_render r = {.in = in, .line = 1, .is_filter = is_filter};
    struct pd_builder text = {.r = &r}, tail = {.r = &r};
    *out = (struct pd_template_output){0};
    r.out = &text;
    r.tail = &tail;
    peridot_status status = run(out, &r, t);
    pd_arena_free(&r.arena);
    return status;
}

void pd_template_output_free(struct pd_template_output *out)
{
    free(out->text);
    free(out->own);
    *out = (struct pd_template_output){0};
}
