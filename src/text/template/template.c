/* Programs as others see them, and their statements: what is written, set, looped over and called as a macro. A render
 * owns all that it makes in one arena, which goes with it. */
#include "text/template/template_.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

static peridot_status execute_all(struct pd_render *r, const struct pd_code *list);

/* What `run` writes in a frame of its own, which is the frame in sight until the caller puts `before` back. */
static peridot_status run_scope(struct pd_value *captured, struct pd_render *r, const struct pd_code *scope,
                                struct pd_frame *frame)
{
    struct pd_builder text = {.r = r}, *const out = r->out;
    struct pd_frame *const before = r->frame;
    if (captured) r->out = &text;
    r->frame = frame;
    PD_TRY(execute_all(r, scope->a));
    r->out = out;
    r->frame = before;
    if (captured) *captured = pd_builder_value(&text);
    return PERIDOT_OK;
}

/* ---- setting variables ---- */

static peridot_status assign(struct pd_render *r, const struct pd_code *target, const struct pd_value *value);

static peridot_status unpack(struct pd_render *r, const struct pd_code *tuple, const struct pd_value *value)
{
    struct pd_iterator it;
    struct pd_value item;
    bool done;
    const struct pd_code *target = tuple->a;
    PD_TRY(pd_iterate(&it, r, value));
    for (;; target = target->next) {
        PD_TRY(pd_iterator_next(&item, &done, &it, r));
        if (done || !target) break;
        PD_TRY(assign(r, target, &item));
    }
    return done && !target ? PERIDOT_OK : pd_render_fail(r, "as many values as variables are expected");
}

static peridot_status assign_member(struct pd_render *r, const struct pd_code *target, const struct pd_value *value)
{
    const struct pd_value *of = pd_frame_variable(r, target->a);
    char shown[PD_SHOWN_SIZE];
    if (of->type != PD_NAMESPACE)
        return pd_render_fail(r, "%s is no namespace", pd_utf8_shown(shown, target->a->value.text.data,
                                                                     target->a->value.text.size));
    if (target->value.text.data[0] == '_') return pd_render_fail(r, "a namespace's member begins with an underscore");
    return pd_dict_put(r, of->dict, &target->value, value);
}

static peridot_status assign(struct pd_render *r, const struct pd_code *target, const struct pd_value *value)
{
    r->line = target->line;
    if (target->kind == PD_CODE_TUPLE) return unpack(r, target, value);
    if (target->kind == PD_CODE_MEMBER_TARGET) return assign_member(r, target, value);
    *pd_frame_variable(r, target) = *value;
    return PERIDOT_OK;
}

static peridot_status execute_set(struct pd_render *r, const struct pd_code *code)
{
    struct pd_value value;
    PD_TRY(pd_evaluate(&value, r, code->a));
    return assign(r, code->b, &value);
}

/* ---- blocks ---- */

/* What a block writes, after its filter. */
static peridot_status execute_block(struct pd_value *out, struct pd_render *r, const struct pd_code *code)
{
    struct pd_frame *frame, *const before = r->frame;
    struct pd_value text, *const captured = r->captured;
    PD_TRY(pd_frame_create(&frame, r, code->a->scope, r->frame));
    PD_TRY(run_scope(&text, r, code->a, frame));
    r->captured = &text;
    r->frame = frame;
    PD_TRY(pd_evaluate(out, r, code->c));
    r->captured = captured;
    r->frame = before;
    return PERIDOT_OK;
}

static peridot_status execute_set_block(struct pd_render *r, const struct pd_code *code)
{
    struct pd_value value;
    PD_TRY(execute_block(&value, r, code));
    return assign(r, code->b, &value);
}

static peridot_status execute_filter_block(struct pd_render *r, const struct pd_code *code)
{
    struct pd_value value;
    PD_TRY(execute_block(&value, r, code));
    return pd_print(r->out, &value);
}

/* {% with %}: the values are those of the frame around. */
static peridot_status execute_scope(struct pd_render *r, const struct pd_code *code)
{
    struct pd_frame *frame;
    PD_TRY(pd_frame_create(&frame, r, code->scope, r->frame));
    const struct pd_code *value = code->c;
    for (const struct pd_code *target = code->b; target; target = target->next, value = value->next)
        PD_TRY(pd_evaluate(&frame->at[target->slot], r, value));
    return run_scope(NULL, r, code, frame);
}

/* ---- macros ---- */

static peridot_status fill_defaults(struct pd_render *r, const struct pd_code *scope, struct pd_frame *frame)
{
    for (const struct pd_code *parameter = scope->b; parameter; parameter = parameter->next) {
        struct pd_value *at = &frame->at[parameter->slot];
        if (at->type != PD_UNSET) continue;
        if (parameter->a) PD_TRY(pd_evaluate(at, r, parameter->a));
        else *at = pd_value_undefined(parameter->value.text);
    }
    return PERIDOT_OK;
}

static peridot_status fail_macro(const struct pd_render *r)
{
    return pd_render_fail(r, "a macro is called with arguments that it does not take");
}

/* Arguments without names that are more than the n parameters. */
static peridot_status fill_varargs(struct pd_value *out, struct pd_render *r, const struct pd_args *args, size_t n)
{
    const size_t n_more = args->n > n + 1 ? args->n - n - 1 : 0;
    if (!out) return n_more ? fail_macro(r) : PERIDOT_OK;
    PD_TRY(pd_list_create(out, r, n_more));
    out->type = PD_TUPLE;
    for (size_t i = 0; i < n_more; i++) out->list.at[i] = args->at[n + 1 + i];
    return PERIDOT_OK;
}

/* Whether a parameter that has no value yet is called so. */
static bool is_wanted(const struct pd_code *parameters, const struct pd_args *args, struct pd_chars name)
{
    for (size_t i = 1; parameters; parameters = parameters->next, i++)
        if (i >= args->n && pd_chars_equal(parameters->value.text, name)) return true;
    return false;
}

/* Arguments with names that no parameter has. */
static peridot_status fill_kwargs(struct pd_value *kwargs, struct pd_value *caller, struct pd_render *r,
                                  const struct pd_args *args, const struct pd_code *parameters)
{
    const struct pd_value *value = args->at + args->n;
    if (kwargs) PD_TRY(pd_dict_create(kwargs, r, true));
    if (caller) *caller = pd_value_undefined(PD_CHARS("caller"));
    for (const struct pd_code *named = args->named; named; named = named->next, value++) {
        if (is_wanted(parameters, args, named->value.text)) continue;
        if (caller && pd_chars_are(named->value.text, "caller")) *caller = *value;
        else if (kwargs) PD_TRY(pd_dict_put(r, kwargs->dict, &named->value, value));
        else return fail_macro(r);
    }
    return PERIDOT_OK;
}

static peridot_status fill_specials(struct pd_render *r, const struct pd_code *scope, struct pd_frame *frame,
                                    const struct pd_args *args, size_t n)
{
    struct pd_value *at[PD_N_SPECIALS];
    for (size_t i = 0; i < PD_N_SPECIALS; i++) {
        const struct pd_variable *v = scope->scope->specials[i];
        at[i] = v ? &frame->at[v->slot] : NULL;
    }
    PD_TRY(fill_varargs(at[PD_SPECIAL_VARARGS], r, args, n));
    return fill_kwargs(at[PD_SPECIAL_KWARGS], at[PD_SPECIAL_CALLER], r, args, scope->b);
}

static peridot_status call_macro(struct pd_value *out, struct pd_render *r, const struct pd_macro *macro,
                                 const struct pd_args *args)
{
    const struct pd_code *const scope = macro->code->b;
    struct pd_frame *frame, *const before = r->frame;
    size_t n = 1;
    PD_TRY(pd_frame_create(&frame, r, scope->scope, macro->frame));
    for (const struct pd_code *parameter = scope->b; parameter; parameter = parameter->next, n++) {
        const struct pd_value *named = n < args->n ? NULL : pd_args_find(args, parameter->value.text);
        if (n < args->n) frame->at[parameter->slot] = args->at[n];
        else if (named) frame->at[parameter->slot] = *named;
    }
    PD_TRY(fill_specials(r, scope, frame, args, n - 1));
    r->frame = frame;
    PD_TRY(fill_defaults(r, scope, frame));
    r->frame = before;
    return run_scope(out, r, scope, frame);
}

static peridot_status create_macro(struct pd_value *out, struct pd_render *r, const struct pd_code *code)
{
    struct pd_macro *macro;
    PD_TRY(pd_render_alloc(&macro, r, 1, sizeof *macro));
    *macro = (struct pd_macro){code, r->frame, call_macro};
    *out = (struct pd_value){.type = PD_MACRO, .macro = macro};
    return PERIDOT_OK;
}

static peridot_status execute_macro(struct pd_render *r, const struct pd_code *code)
{
    struct pd_value macro;
    PD_TRY(create_macro(&macro, r, code));
    *pd_frame_variable(r, code->c) = macro;
    return PERIDOT_OK;
}

static peridot_status execute_call_block(struct pd_render *r, const struct pd_code *code)
{
    struct pd_value macro, value, *const caller = r->caller;
    PD_TRY(create_macro(&macro, r, code));
    r->caller = &macro;
    PD_TRY(pd_evaluate(&value, r, code->a));
    r->caller = caller;
    return pd_print(r->out, &value);
}

/* ---- loops ---- */

/* The values of a loop for which its "if" holds, asked when the next one is wanted. */
struct condition {
    const struct pd_code *loop;
    struct pd_frame *frame;
};

static peridot_status next_chosen(struct pd_value *out, bool *done, struct pd_render *r, struct pd_iterator *it)
{
    const struct condition *condition = it->context;
    struct pd_frame *const before = r->frame;
    struct pd_value holds;
    for (;;) {
        PD_TRY(pd_iterator_next(out, done, it->from, r));
        if (*done) return PERIDOT_OK;
        PD_TRY(pd_frame_reset(condition->frame, r, condition->loop->d->scope));
        r->frame = condition->frame;
        PD_TRY(assign(r, condition->loop->b->b, out));
        PD_TRY(pd_evaluate(&holds, r, condition->loop->d->a));
        r->frame = before;
        if (pd_value_is_true(&holds)) return PERIDOT_OK;
    }
}

static peridot_status add_condition(struct pd_loop *l, struct pd_render *r, const struct pd_code *code)
{
    struct pd_value all;
    struct condition *condition;
    PD_TRY(pd_iterator_keep(&all, r, &l->it));
    PD_TRY(pd_render_alloc(&condition, r, 1, sizeof *condition));
    PD_TRY(pd_frame_create(&condition->frame, r, code->d->scope, r->frame));
    condition->loop = code;
    l->it = (struct pd_iterator){.next = next_chosen, .from = all.iterator, .context = condition};
    l->iterated = (struct pd_value){.type = PD_UNSET};
    return PERIDOT_OK;
}

static peridot_status call_loop(struct pd_value *out, struct pd_render *r, const struct pd_loop *l,
                                const struct pd_args *args);

/* In r->frame, over what is given. */
static peridot_status run_for(struct pd_render *r, const struct pd_code *code, const struct pd_value *iterated,
                              int64_t depth0)
{
    struct pd_frame *frame, *const before = r->frame;
    struct pd_loop *l;
    bool done = false, ran_through = false;
    PD_TRY(pd_render_alloc(&l, r, 1, sizeof *l));
    *l = (struct pd_loop){.index0 = -1, .iterated = *iterated, .depth0 = depth0, .call = call_loop,
                          .code = code, .frame = before};
    r->line = code->line;
    PD_TRY(pd_iterate(&l->it, r, &l->iterated));
    if (code->d) PD_TRY(add_condition(l, r, code));
    PD_TRY(pd_frame_create(&frame, r, code->b->scope, before));
    for (;;) {
        PD_TRY(pd_loop_next(&done, l, r));
        if (done) break;
        PD_TRY(pd_frame_reset(frame, r, code->b->scope));
        r->frame = frame;
        PD_TRY(assign(r, code->b->b, &l->current));
        frame->at[code->b->slot] = (struct pd_value){.type = PD_LOOP, .loop = l};
        PD_TRY(execute_all(r, code->b->a));
        r->frame = before;
        const bool leaves = r->flow == PD_FLOW_BREAK;
        ran_through |= r->flow == PD_FLOW_ON;
        r->flow = PD_FLOW_ON;
        if (leaves) break;
    }
    if (ran_through || !code->c) return PERIDOT_OK;   /* jinja2 asks whether a body was run to its end */
    PD_TRY(pd_frame_create(&frame, r, code->c->scope, before));
    return run_scope(NULL, r, code->c, frame);
}

static peridot_status call_loop(struct pd_value *out, struct pd_render *r, const struct pd_loop *l,
                                const struct pd_args *args)
{
    struct pd_builder text = {.r = r}, *const before_out = r->out;
    struct pd_frame *const before = r->frame;
    if (!l->code->op) return pd_render_fail(r, "a loop that is not recursive is called");
    if (args->n != 2 || args->n_named) return pd_render_fail(r, "a loop is not called with one argument");
    const struct pd_value iterated = args->at[1];
    r->out = &text;
    r->frame = l->frame;
    PD_TRY(run_for(r, l->code, &iterated, l->depth0 + 1));
    r->out = before_out;
    r->frame = before;
    return pd_give(out, pd_builder_value(&text));
}

static peridot_status execute_for(struct pd_render *r, const struct pd_code *code)
{
    struct pd_value iterated;
    PD_TRY(pd_evaluate(&iterated, r, code->a));
    return run_for(r, code, &iterated, 0);
}

/* ---- the others ---- */

static peridot_status execute_if(struct pd_render *r, const struct pd_code *code)
{
    struct pd_value condition;
    PD_TRY(pd_evaluate(&condition, r, code->a));
    if (pd_value_is_true(&condition)) return execute_all(r, code->b);
    for (const struct pd_code *other = code->d; other; other = other->next) {
        PD_TRY(pd_evaluate(&condition, r, other->a));
        if (pd_value_is_true(&condition)) return execute_all(r, other->b);
    }
    return execute_all(r, code->c);
}

static peridot_status execute_print(struct pd_render *r, const struct pd_code *code)
{
    struct pd_value value;
    PD_TRY(pd_evaluate(&value, r, code->a));
    r->line = code->line;
    return pd_print(r->out, &value);
}

static peridot_status execute(struct pd_render *r, const struct pd_code *code)
{
    switch (code->kind) {
    case PD_CODE_DATA: return pd_builder_add(r->out, code->value.text);
    case PD_CODE_PRINT: return execute_print(r, code);
    case PD_CODE_SET: return execute_set(r, code);
    case PD_CODE_SET_BLOCK: return execute_set_block(r, code);
    case PD_CODE_FOR: return execute_for(r, code);
    case PD_CODE_IF: return execute_if(r, code);
    case PD_CODE_MACRO: return execute_macro(r, code);
    case PD_CODE_CALL_BLOCK: return execute_call_block(r, code);
    case PD_CODE_FILTER_BLOCK: return execute_filter_block(r, code);
    case PD_CODE_BREAK: r->flow = PD_FLOW_BREAK; return PERIDOT_OK;
    case PD_CODE_CONTINUE: r->flow = PD_FLOW_CONTINUE; return PERIDOT_OK;
    default: return execute_scope(r, code);
    }
}

static peridot_status execute_all(struct pd_render *r, const struct pd_code *list)
{
    for (; list && r->flow == PD_FLOW_ON; list = list->next) {
        r->line = list->line;
        PD_TRY(pd_render_spend(r, 1));
        PD_TRY(pd_render_enter(r));
        PD_TRY(execute(r, list));
        pd_render_leave(r);
    }
    return PERIDOT_OK;
}

static peridot_status execute_program(struct pd_render *r, const struct pd_template *t)
{
    struct pd_frame *frame;
    PD_TRY(pd_frame_create(&frame, r, t->root->scope, NULL));
    return run_scope(NULL, r, t->root, frame);
}

/* ---- the door ---- */

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

static peridot_status template_run(struct pd_template_output *out, struct pd_render *r, const struct pd_template *t)
{
    struct pd_value inputs;
    PD_TRY(pd_render_alloc(&r->stack, r, PD_RENDER_MAX_STACK, sizeof *r->stack));
    PD_TRY(pd_dict_create(&inputs, r, false));
    r->inputs = inputs.dict;
    PD_TRY(execute_program(r, t));
    return copy_out(out, r->out);
}

peridot_status pd_template_render(struct pd_template_output *out, const struct pd_template *t,
                                  const struct pd_template_input *in)
{
    struct pd_render r = {.in = in, .line = 1};
    struct pd_builder text = {.r = &r}, tail = {.r = &r};
    *out = (struct pd_template_output){0};
    r.out = &text;
    r.tail = &tail;
    peridot_status status = template_run(out, &r, t);
    pd_arena_free(&r.arena);
    return status;
}

void pd_template_output_free(struct pd_template_output *out)
{
    free(out->text);
    free(out->own);
    *out = (struct pd_template_output){0};
}
