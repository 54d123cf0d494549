/* Expressions, evaluated: each node spends a step and a level of depth, so that any program ends. */
#include "text/template/template_.h"

#include "base/base.h"

/* ---- calls ---- */

static peridot_status push(struct pd_render *r, const struct pd_code *code)
{
    struct pd_value value = {.type = PD_UNSET};
    if (code) PD_TRY(pd_evaluate(&value, r, code));
    if (r->n_stack == PD_RENDER_MAX_STACK) return pd_render_fail(r, "too many arguments of calls");
    r->stack[r->n_stack++] = value;
    return PERIDOT_OK;
}

/* The first argument is the value itself; `list` those without names, `named` the others. */
static peridot_status push_arguments(struct pd_args *out, struct pd_render *r, const struct pd_value *first,
                                     const struct pd_code *list, const struct pd_code *named)
{
    const size_t begin = r->n_stack;
    *out = (struct pd_args){.at = r->stack + begin, .named = named};
    PD_TRY(push(r, NULL));
    if (first) out->at[0] = *first;
    for (; list; list = list->next) PD_TRY(push(r, list));
    out->n = r->n_stack - begin;
    for (; named; named = named->next) PD_TRY(push(r, named->a));
    out->n_named = r->n_stack - begin - out->n;
    return PERIDOT_OK;
}

static peridot_status call_value(struct pd_value *out, struct pd_render *r, const struct pd_value *callee,
                                 const struct pd_args *args)
{
    switch (callee->type) {
    case PD_FUNCTION: return pd_builtin_call(out, r, callee->function, args);
    case PD_METHOD:
        args->at[0] = *callee->method.self;
        return pd_builtin_call(out, r, callee->method.function, args);
    case PD_MACRO: return callee->macro->call(out, r, callee->macro, args);
    case PD_LOOP: return callee->loop->call(out, r, callee->loop, args);
    case PD_JOINER:
        if (args->n > 1 || args->n_named) return pd_render_fail(r, "a joiner is called with arguments");
        *out = callee->cycle->at++ ? callee->cycle->items.list.at[0] : pd_value_text(PD_CHARS(""));
        return PERIDOT_OK;
    case PD_UNDEFINED: return pd_value_fail_undefined(r, callee);
    default: return pd_render_fail(r, "a value of type %s cannot be called", pd_value_type_name(callee));
    }
}

/* A method that is called where it is named is not made a value first. */
static peridot_status evaluate_callee(struct pd_value *out, struct pd_value *self, struct pd_render *r,
                                      const struct pd_code *code)
{
    if (code->kind != PD_CODE_MEMBER) return pd_evaluate(out, r, code);
    PD_TRY(pd_evaluate(self, r, code->a));
    r->line = code->line;
    const struct pd_builtin *method = pd_method_find((enum pd_value_type)self->type, code->value.text);
    if (!method || !pd_is_callable(method)) return pd_get_member(out, r, self, code->value.text);
    *out = (struct pd_value){.type = PD_METHOD, .method = {method, self}};
    return PERIDOT_OK;
}

static peridot_status evaluate_call(struct pd_value *out, struct pd_render *r, const struct pd_code *code)
{
    struct pd_value callee, self;
    struct pd_args args;
    const size_t n_stack = r->n_stack;
    PD_TRY(evaluate_callee(&callee, &self, r, code->a));
    PD_TRY(push_arguments(&args, r, NULL, code->b, code->c));
    r->line = code->line;
    PD_TRY(call_value(out, r, &callee, &args));
    r->n_stack = n_stack;
    return PERIDOT_OK;
}

static peridot_status evaluate_builtin(struct pd_value *out, struct pd_render *r, const struct pd_code *code)
{
    struct pd_args args;
    struct pd_value of;
    char shown[PD_SHOWN_SIZE];
    const size_t n_stack = r->n_stack;
    PD_TRY(pd_evaluate(&of, r, code->a));
    PD_TRY(push_arguments(&args, r, &of, code->a->next, code->c));
    r->line = code->line;
    if (!code->builtin)
        return pd_render_fail(r, "there is no %s %s", code->kind == PD_CODE_FILTER ? "filter" : "test",
                              pd_utf8_shown(shown, code->value.text.data, code->value.text.size));
    PD_TRY(pd_builtin_call(out, r, code->builtin, &args));
    r->n_stack = n_stack;
    return PERIDOT_OK;
}

/* ---- literals and operators ---- */

static peridot_status evaluate_list(struct pd_value *out, struct pd_render *r, const struct pd_code *code)
{
    size_t n = 0;
    for (const struct pd_code *item = code->a; item; item = item->next) n++;
    PD_TRY(pd_list_create(out, r, n));
    out->type = code->kind == PD_CODE_TUPLE ? PD_TUPLE : PD_LIST;
    n = 0;
    for (const struct pd_code *item = code->a; item; item = item->next)
        PD_TRY(pd_evaluate(&out->list.at[n++], r, item));
    return PERIDOT_OK;
}

static peridot_status evaluate_dict(struct pd_value *out, struct pd_render *r, const struct pd_code *code)
{
    struct pd_value key, value;
    const struct pd_code *v = code->b;
    PD_TRY(pd_dict_create(out, r, true));
    for (const struct pd_code *k = code->a; k; k = k->next, v = v->next) {
        PD_TRY(pd_evaluate(&key, r, k));
        PD_TRY(pd_evaluate(&value, r, v));
        PD_TRY(pd_dict_put(r, out->dict, &key, &value));
    }
    return PERIDOT_OK;
}

static peridot_status evaluate_concat(struct pd_value *out, struct pd_render *r, const struct pd_code *code)
{
    struct pd_chars all = {"", 0, pd_all_own}, text;
    for (const struct pd_code *item = code->a; item; item = item->next) {
        struct pd_value value;
        PD_TRY(pd_evaluate(&value, r, item));
        r->line = code->line;
        PD_TRY(pd_value_string(&text, r, &value));
        PD_TRY(pd_chars_concat(&value, r, all, text));
        all = value.text;
    }
    return pd_give(out, pd_value_text(all));
}

static peridot_status evaluate_compare(struct pd_value *out, struct pd_render *r, const struct pd_code *code)
{
    struct pd_value left, right;
    bool holds = true;
    PD_TRY(pd_evaluate(&left, r, code->a));
    for (const struct pd_code *operand = code->b; operand && holds; operand = operand->next) {
        PD_TRY(pd_evaluate(&right, r, operand->a));
        r->line = code->line;
        PD_TRY(pd_compare(&holds, r, operand->op, &left, &right));
        left = right;
    }
    return pd_give(out, pd_value_bool(holds));
}

static peridot_status evaluate_logical(struct pd_value *out, struct pd_render *r, const struct pd_code *code)
{
    PD_TRY(pd_evaluate(out, r, code->a));
    if (code->kind == PD_CODE_NOT) *out = pd_value_bool(!pd_value_is_true(out));
    else if (pd_value_is_true(out) == (code->kind == PD_CODE_AND)) return pd_evaluate(out, r, code->b);
    return PERIDOT_OK;
}

static peridot_status evaluate_condition(struct pd_value *out, struct pd_render *r, const struct pd_code *code)
{
    struct pd_value condition;
    PD_TRY(pd_evaluate(&condition, r, code->a));
    const struct pd_code *chosen = pd_value_is_true(&condition) ? code->b : code->c;
    if (chosen) return pd_evaluate(out, r, chosen);
    return pd_give(out, pd_value_undefined(PD_CHARS("a value without else")));
}

static peridot_status evaluate_operands(struct pd_value *out, struct pd_render *r, const struct pd_code *code)
{
    struct pd_value left, others[3];
    const struct pd_code *const codes[] = {code->b, code->c, code->d};
    PD_TRY(pd_evaluate(&left, r, code->a));
    for (size_t i = 0; i < PD_COUNT(codes); i++)
        if (codes[i]) PD_TRY(pd_evaluate(&others[i], r, codes[i]));
    r->line = code->line;
    switch (code->kind) {
    case PD_CODE_MEMBER: return pd_get_member(out, r, &left, code->value.text);
    case PD_CODE_ITEM: return pd_get_item(out, r, &left, &others[0]);
    case PD_CODE_SLICE: return pd_get_slice(out, r, &left, others);
    case PD_CODE_UNARY: return pd_negate(out, r, &left, code->op == PD_OP('-', 0));
    default: return pd_operate(out, r, code->op, &left, &others[0]);
    }
}

static peridot_status evaluate_name(struct pd_value *out, struct pd_render *r, const struct pd_code *code)
{
    *out = *pd_frame_variable(r, code);
    if (out->type == PD_UNSET) *out = pd_value_undefined(code->value.text);
    return PERIDOT_OK;
}

static peridot_status evaluate(struct pd_value *out, struct pd_render *r, const struct pd_code *code)
{
    switch (code->kind) {
    case PD_CODE_NAME: return evaluate_name(out, r, code);
    case PD_CODE_CONSTANT: *out = code->value; return PERIDOT_OK;
    case PD_CODE_CAPTURED: *out = *r->captured; return PERIDOT_OK;
    case PD_CODE_CALLER: *out = *r->caller; return PERIDOT_OK;
    case PD_CODE_LIST: case PD_CODE_TUPLE: return evaluate_list(out, r, code);
    case PD_CODE_DICT: return evaluate_dict(out, r, code);
    case PD_CODE_CALL: return evaluate_call(out, r, code);
    case PD_CODE_FILTER: case PD_CODE_TEST: return evaluate_builtin(out, r, code);
    case PD_CODE_NOT: case PD_CODE_AND: case PD_CODE_OR: return evaluate_logical(out, r, code);
    case PD_CODE_CONDITION: return evaluate_condition(out, r, code);
    case PD_CODE_COMPARE: return evaluate_compare(out, r, code);
    case PD_CODE_CONCAT: return evaluate_concat(out, r, code);
    default: return evaluate_operands(out, r, code);
    }
}

peridot_status pd_evaluate(struct pd_value *out, struct pd_render *r, const struct pd_code *code)
{
    r->line = code->line;
    PD_TRY(pd_render_spend(r, 1));
    PD_TRY(pd_render_enter(r));
    peridot_status status = evaluate(out, r, code);
    pd_render_leave(r);
    return status;
}
