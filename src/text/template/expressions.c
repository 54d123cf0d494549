/* Expressions, from tokens to trees, by jinja2's levels of binding. Filters, tests and their arguments are looked up
 * here, once, so that rendering finds no surprises. */
#include "text/template/template_.h"

#include "base/base.h"

#include <string.h>

static peridot_status finish(struct pd_code **out, struct pd_code *code)
{
    *out = code;
    return pd_code_finish(code);
}

static peridot_status create_constant(struct pd_code **out, struct pd_parser *p, struct pd_value value)
{
    PD_TRY(pd_code_create(out, p, PD_CODE_CONSTANT, p->token.line));
    (*out)->value = value;
    return PERIDOT_OK;
}

/* ---- primaries ---- */

static peridot_status parse_name(struct pd_code **out, struct pd_parser *p)
{
    static const struct { const char *name; struct pd_value value; } constants[] = {
        {"true", {.type = PD_BOOL, .own = true, .b = true}}, {"True", {.type = PD_BOOL, .own = true, .b = true}},
        {"false", {.type = PD_BOOL, .own = true}}, {"False", {.type = PD_BOOL, .own = true}},
        {"none", {.type = PD_NONE, .own = true}}, {"None", {.type = PD_NONE, .own = true}}};
    const struct pd_template_token name = p->token;
    PD_TRY(pd_parser_next(p));
    for (size_t i = 0; i < PD_COUNT(constants); i++)
        if (pd_chars_are(name.text, constants[i].name)) return create_constant(out, p, constants[i].value);
    PD_TRY(pd_code_create(out, p, PD_CODE_NAME, name.line));
    (*out)->value = pd_value_text(name.text);
    return PERIDOT_OK;
}

/* Strings side by side are one. */
static peridot_status parse_string(struct pd_code **out, struct pd_parser *p)
{
    struct pd_chars text = p->token.text;
    PD_TRY(pd_parser_next(p));
    while (p->token.kind == PD_TOKEN_STRING) {
        const struct pd_chars more = p->token.text;
        char *both = pd_arena_alloc(p->arena, text.size + more.size);
        if (!both) return pd_fail_alloc(text.size + more.size, "a template");
        if (text.size) memcpy(both, text.data, text.size);
        if (more.size) memcpy(both + text.size, more.data, more.size);
        text = (struct pd_chars){both, text.size + more.size, pd_all_own};
        PD_TRY(pd_parser_next(p));
    }
    return create_constant(out, p, pd_value_text(text));
}

/* Expressions up to a bracket, and a comma after the last where there is one. */
static peridot_status parse_list(struct pd_code **out, struct pd_parser *p)
{
    struct pd_code *list, **last;
    bool comma = true;
    PD_TRY(pd_code_create(&list, p, PD_CODE_LIST, p->token.line));
    PD_TRY(pd_parser_next(p));
    for (last = &list->a; comma && !pd_parser_at_op(p, PD_OP(']', 0)); last = &(*last)->next) {
        PD_TRY(pd_parse_expression(last, p));
        PD_TRY(pd_parser_accept_op(&comma, p, PD_OP(',', 0)));
    }
    PD_TRY(pd_parser_expect_op(p, PD_OP(']', 0)));
    return finish(out, list);
}

static peridot_status parse_dict(struct pd_code **out, struct pd_parser *p)
{
    struct pd_code *dict, **key, **value;
    bool comma = true;
    PD_TRY(pd_code_create(&dict, p, PD_CODE_DICT, p->token.line));
    PD_TRY(pd_parser_next(p));
    key = &dict->a;
    value = &dict->b;
    while (comma && !pd_parser_at_op(p, PD_OP('}', 0))) {
        PD_TRY(pd_parse_expression(key, p));
        PD_TRY(pd_parser_expect_op(p, PD_OP(':', 0)));
        PD_TRY(pd_parse_expression(value, p));
        PD_TRY(pd_parser_accept_op(&comma, p, PD_OP(',', 0)));
        key = &(*key)->next;
        value = &(*value)->next;
    }
    PD_TRY(pd_parser_expect_op(p, PD_OP('}', 0)));
    return finish(out, dict);
}

static peridot_status parse_parentheses(struct pd_code **out, struct pd_parser *p)
{
    bool empty;
    PD_TRY(pd_parser_next(p));
    PD_TRY(pd_parser_accept_op(&empty, p, PD_OP(')', 0)));
    if (empty) return pd_code_create(out, p, PD_CODE_TUPLE, p->token.line);
    PD_TRY(pd_parse_tuple(out, p, true, NULL));
    return pd_parser_expect_op(p, PD_OP(')', 0));
}

static peridot_status parse_primary(struct pd_code **out, struct pd_parser *p)
{
    const struct pd_template_token token = p->token;
    if (token.kind == PD_TOKEN_NAME) return parse_name(out, p);
    if (token.kind == PD_TOKEN_STRING) return parse_string(out, p);
    if (token.kind == PD_TOKEN_INT || token.kind == PD_TOKEN_FLOAT) {
        PD_TRY(pd_parser_next(p));
        return create_constant(out, p, token.kind == PD_TOKEN_INT ? pd_value_int(token.i, true)
                                                                  : pd_value_float(token.f, true));
    }
    if (pd_parser_at_op(p, PD_OP('(', 0))) return parse_parentheses(out, p);
    if (pd_parser_at_op(p, PD_OP('[', 0))) return parse_list(out, p);
    if (pd_parser_at_op(p, PD_OP('{', 0))) return parse_dict(out, p);
    return pd_parser_fail_token(p, "an expression");
}

/* ---- calls, filters, tests ---- */

struct call {
    struct pd_code **args, **named;   /* where the lists end */
    struct pd_code *first_named;
    size_t n_args;
};

static peridot_status parse_argument(struct call *call, struct pd_parser *p)
{
    const struct pd_template_token name = p->token;
    bool named = false;
    if (pd_parser_at_op(p, PD_OP('*', 0)) || pd_parser_at_op(p, PD_OP('*', '*')))
        return pd_parser_fail(p->token.line, "arguments by * and ** are not supported");
    if (name.kind == PD_TOKEN_NAME) {
        PD_TRY(pd_parser_look_ahead(p));
        named = p->ahead.kind == PD_TOKEN_OPERATOR && p->ahead.op == PD_OP('=', 0);
    }
    if (!named) {
        if (call->first_named) return pd_parser_fail(name.line, "an argument without a name after one with a name");
        PD_TRY(pd_parse_expression(call->args, p));
        call->args = &(*call->args)->next;
        call->n_args++;
        return PERIDOT_OK;
    }
    struct pd_code *keyword;
    PD_TRY(pd_code_create(&keyword, p, PD_CODE_KEYWORD, name.line));
    keyword->value = pd_value_text(name.text);
    PD_TRY(pd_parser_next(p));
    PD_TRY(pd_parser_next(p));
    PD_TRY(pd_parse_expression(&keyword->a, p));
    *call->named = keyword;
    call->named = &keyword->next;
    if (!call->first_named) call->first_named = keyword;
    return pd_code_finish(keyword);
}

static peridot_status check_names(const struct pd_code *named)
{
    char shown[PD_SHOWN_SIZE];
    size_t n = 0;
    for (; named; named = named->next) {
        if (++n > PD_MAX_PARAMETERS * 8) return pd_parser_fail(named->line, "too many arguments with names");
        for (const struct pd_code *other = named->next; other; other = other->next)
            if (pd_chars_equal(named->value.text, other->value.text))
                return pd_parser_fail(named->line, "two arguments are called %s",
                                      pd_utf8_shown(shown, named->value.text.data, named->value.text.size));
    }
    return PERIDOT_OK;
}

/* "(...)": adds to the list of `args`, and to that of those with names. */
static peridot_status parse_arguments(size_t *n, struct pd_parser *p, struct pd_code **args, struct pd_code **named)
{
    struct call call = {.args = args, .named = named};
    bool comma = true;
    PD_TRY(pd_parser_expect_op(p, PD_OP('(', 0)));
    while (comma && !pd_parser_at_op(p, PD_OP(')', 0))) {
        PD_TRY(parse_argument(&call, p));
        PD_TRY(pd_parser_accept_op(&comma, p, PD_OP(',', 0)));
    }
    *n = call.n_args;
    PD_TRY(check_names(*named));
    return pd_parser_expect_op(p, PD_OP(')', 0));
}

static peridot_status parse_call(struct pd_code **code, struct pd_parser *p)
{
    struct pd_code *call;
    char shown[PD_SHOWN_SIZE];
    size_t n;
    const struct pd_code *callee = *code;
    if (callee->kind == PD_CODE_MEMBER && !pd_method_is_known(callee->value.text))
        return pd_parser_fail(callee->line, "there is no method %s",
                              pd_utf8_shown(shown, callee->value.text.data, callee->value.text.size));
    PD_TRY(pd_code_create(&call, p, PD_CODE_CALL, p->token.line));
    call->a = *code;
    PD_TRY(parse_arguments(&n, p, &call->b, &call->c));
    return finish(code, call);
}

/* A filter or a test of *code; the name is the present token. One that is not there may be in a branch that is never
 * taken (scope.c). */
static peridot_status begin_builtin(struct pd_code **out, struct pd_parser *p, struct pd_code *of, bool is_filter)
{
    const struct pd_chars name = p->token.text;
    PD_TRY(pd_code_create(out, p, is_filter ? PD_CODE_FILTER : PD_CODE_TEST, p->token.line));
    if (p->token.kind != PD_TOKEN_NAME) return pd_parser_fail_token(p, is_filter ? "a filter" : "a test");
    (*out)->a = of;
    (*out)->value = pd_value_text(name);
    (*out)->builtin = is_filter ? pd_filter_find(name) : pd_test_find(name);
    return pd_parser_next(p);
}

static peridot_status check_arguments(const struct pd_code *code, size_t n)
{
    const char *kind = code->kind == PD_CODE_FILTER ? "filter" : "test";
    return code->builtin ? pd_builtin_check(code->builtin, kind, code->line, n + 1, code->c) : PERIDOT_OK;
}

peridot_status pd_parse_filters(struct pd_code **code, struct pd_parser *p, bool first)
{
    bool bar = first;
    if (!first) PD_TRY(pd_parser_accept_op(&bar, p, PD_OP('|', 0)));
    while (bar) {
        struct pd_code *filter;
        size_t n = 0;
        PD_TRY(begin_builtin(&filter, p, *code, true));
        if (pd_parser_at_op(p, PD_OP('(', 0))) PD_TRY(parse_arguments(&n, p, &filter->a->next, &filter->c));
        PD_TRY(check_arguments(filter, n));
        PD_TRY(finish(code, filter));
        PD_TRY(pd_parser_accept_op(&bar, p, PD_OP('|', 0)));
    }
    return PERIDOT_OK;
}

static peridot_status parse_postfix(struct pd_code **code, struct pd_parser *p);

/* What may come after the name of a test without parentheses: jinja2 takes any other name for its argument. */
static bool begins_argument(const struct pd_parser *p)
{
    if (p->token.kind == PD_TOKEN_NAME)
        return !pd_parser_at_name(p, "else") && !pd_parser_at_name(p, "or") && !pd_parser_at_name(p, "and");
    return p->token.kind == PD_TOKEN_STRING || p->token.kind == PD_TOKEN_INT || p->token.kind == PD_TOKEN_FLOAT ||
           pd_parser_at_op(p, PD_OP('[', 0)) || pd_parser_at_op(p, PD_OP('{', 0));
}

static peridot_status parse_test(struct pd_code **code, struct pd_parser *p)
{
    struct pd_code *test, *not;
    const uint32_t line = p->token.line;
    bool negated;
    size_t n = 0;
    PD_TRY(pd_parser_next(p));
    PD_TRY(pd_parser_accept_name(&negated, p, "not"));
    PD_TRY(begin_builtin(&test, p, *code, false));
    if (pd_parser_at_op(p, PD_OP('(', 0))) {
        PD_TRY(parse_arguments(&n, p, &test->a->next, &test->c));
    } else if (begins_argument(p)) {
        if (pd_parser_at_name(p, "is")) return pd_parser_fail_token(p, "no second test");
        PD_TRY(parse_primary(&test->a->next, p));
        PD_TRY(parse_postfix(&test->a->next, p));
        n = 1;
    }
    PD_TRY(check_arguments(test, n));
    PD_TRY(finish(code, test));
    if (!negated) return PERIDOT_OK;
    PD_TRY(pd_code_create(&not, p, PD_CODE_NOT, line));
    not->a = *code;
    return finish(code, not);
}

/* ---- subscripts ---- */

static peridot_status parse_member(struct pd_code **code, struct pd_parser *p)
{
    struct pd_code *member;
    const struct pd_template_token token = p->token;
    if (token.kind != PD_TOKEN_NAME && token.kind != PD_TOKEN_INT) return pd_parser_fail_token(p, "a name or an index");
    PD_TRY(pd_parser_next(p));
    PD_TRY(pd_code_create(&member, p, token.kind == PD_TOKEN_NAME ? PD_CODE_MEMBER : PD_CODE_ITEM, token.line));
    member->a = *code;
    if (token.kind == PD_TOKEN_NAME) member->value = pd_value_text(token.text);
    else PD_TRY(create_constant(&member->b, p, pd_value_int(token.i, true)));
    return finish(code, member);
}

/* One of the three of a slice. */
static peridot_status parse_bound(struct pd_code **out, struct pd_parser *p)
{
    if (pd_parser_at_op(p, PD_OP(':', 0)) || pd_parser_at_op(p, PD_OP(']', 0)))
        return create_constant(out, p, pd_value_none());
    return pd_parse_expression(out, p);
}

static peridot_status parse_item(struct pd_code **code, struct pd_parser *p)
{
    struct pd_code *item;
    bool colon, step = false;
    PD_TRY(pd_code_create(&item, p, PD_CODE_ITEM, p->token.line));
    item->a = *code;
    PD_TRY(parse_bound(&item->b, p));
    PD_TRY(pd_parser_accept_op(&colon, p, PD_OP(':', 0)));
    if (colon) {
        item->kind = PD_CODE_SLICE;
        PD_TRY(parse_bound(&item->c, p));
        PD_TRY(pd_parser_accept_op(&step, p, PD_OP(':', 0)));
        if (step) PD_TRY(parse_bound(&item->d, p));
        else PD_TRY(create_constant(&item->d, p, pd_value_none()));
    }
    PD_TRY(pd_parser_expect_op(p, PD_OP(']', 0)));
    return finish(code, item);
}

static peridot_status parse_postfix(struct pd_code **code, struct pd_parser *p)
{
    for (;;) {
        bool dot, bracket = false;
        PD_TRY(pd_parser_accept_op(&dot, p, PD_OP('.', 0)));
        if (!dot) PD_TRY(pd_parser_accept_op(&bracket, p, PD_OP('[', 0)));
        if (dot) PD_TRY(parse_member(code, p));
        else if (bracket && pd_parser_at_op(p, PD_OP(']', 0))) return pd_parser_fail_token(p, "an index");
        else if (bracket) PD_TRY(parse_item(code, p));
        else if (pd_parser_at_op(p, PD_OP('(', 0))) PD_TRY(parse_call(code, p));
        else return PERIDOT_OK;
    }
}

/* ---- operators ---- */

static peridot_status parse_unary(struct pd_code **out, struct pd_parser *p, bool filters)
{
    const uint32_t line = p->token.line;
    const unsigned op = p->token.op;
    PD_TRY(pd_parser_enter(p));
    if (pd_parser_at_op(p, PD_OP('-', 0)) || pd_parser_at_op(p, PD_OP('+', 0))) {
        struct pd_code *unary;
        PD_TRY(pd_code_create(&unary, p, PD_CODE_UNARY, line));
        unary->op = op;
        PD_TRY(pd_parser_next(p));
        PD_TRY(parse_unary(&unary->a, p, false));
        PD_TRY(finish(out, unary));
    } else {
        PD_TRY(parse_primary(out, p));
    }
    PD_TRY(parse_postfix(out, p));
    while (filters) {
        if (pd_parser_at_op(p, PD_OP('|', 0))) PD_TRY(pd_parse_filters(out, p, false));
        else if (pd_parser_at_name(p, "is")) PD_TRY(parse_test(out, p));
        else if (pd_parser_at_op(p, PD_OP('(', 0))) PD_TRY(parse_call(out, p));
        else break;
    }
    pd_parser_leave(p);
    return PERIDOT_OK;
}

/* From what binds least; each from left to right, "**" too. */
static const struct { unsigned ops[4]; } levels[] = {
    {{PD_OP('+', 0), PD_OP('-', 0)}}, {{PD_OP('~', 0)}},
    {{PD_OP('*', 0), PD_OP('/', 0), PD_OP('/', '/'), PD_OP('%', 0)}}, {{PD_OP('*', '*')}}};

static bool is_at_level(const struct pd_parser *p, size_t level)
{
    for (size_t i = 0; i < 4; i++)
        if (levels[level].ops[i] && pd_parser_at_op(p, levels[level].ops[i])) return true;
    return false;
}

static peridot_status parse_binary(struct pd_code **out, struct pd_parser *p, size_t level)
{
    if (level == PD_COUNT(levels)) return parse_unary(out, p, true);
    PD_TRY(parse_binary(out, p, level + 1));
    while (is_at_level(p, level)) {
        struct pd_code *code;
        const bool concat = pd_parser_at_op(p, PD_OP('~', 0));
        PD_TRY(pd_code_create(&code, p, concat ? PD_CODE_CONCAT : PD_CODE_BINARY, (*out)->line));
        code->op = p->token.op;
        code->a = *out;
        struct pd_code **last = concat ? &code->a->next : &code->b;
        do {
            PD_TRY(pd_parser_next(p));
            PD_TRY(parse_binary(last, p, level + 1));
            last = &(*last)->next;
        } while (concat && is_at_level(p, level));
        PD_TRY(finish(out, code));
    }
    return PERIDOT_OK;
}

/* The comparison that comes next; 0: none. */
static peridot_status take_comparison(unsigned *op, struct pd_parser *p)
{
    static const unsigned ops[] = {PD_OP('=', '='), PD_OP('!', '='), PD_OP('<', 0), PD_OP('<', '='), PD_OP('>', 0),
                                   PD_OP('>', '=')};
    *op = 0;
    for (size_t i = 0; i < PD_COUNT(ops); i++)
        if (pd_parser_at_op(p, ops[i])) *op = ops[i];
    if (pd_parser_at_name(p, "in")) *op = PD_OP_IN;
    if (pd_parser_at_name(p, "not")) {
        PD_TRY(pd_parser_look_ahead(p));
        if (p->ahead.kind != PD_TOKEN_NAME || !pd_chars_are(p->ahead.text, "in")) return PERIDOT_OK;
        PD_TRY(pd_parser_next(p));
        *op = PD_OP_NOT_IN;
    }
    return *op ? pd_parser_next(p) : PERIDOT_OK;
}

static peridot_status parse_compare(struct pd_code **out, struct pd_parser *p)
{
    struct pd_code *compare, **last;
    unsigned op;
    PD_TRY(parse_binary(out, p, 0));
    PD_TRY(take_comparison(&op, p));
    if (!op) return PERIDOT_OK;
    PD_TRY(pd_code_create(&compare, p, PD_CODE_COMPARE, (*out)->line));
    compare->a = *out;
    for (last = &compare->b; op; last = &(*last)->next) {
        PD_TRY(pd_code_create(last, p, PD_CODE_OPERAND, p->token.line));
        (*last)->op = op;
        PD_TRY(parse_binary(&(*last)->a, p, 0));
        PD_TRY(pd_code_finish(*last));
        PD_TRY(take_comparison(&op, p));
    }
    return finish(out, compare);
}

static peridot_status parse_not(struct pd_code **out, struct pd_parser *p)
{
    struct pd_code *not;
    if (!pd_parser_at_name(p, "not")) return parse_compare(out, p);
    PD_TRY(pd_code_create(&not, p, PD_CODE_NOT, p->token.line));
    PD_TRY(pd_parser_enter(p));
    PD_TRY(pd_parser_next(p));
    PD_TRY(parse_not(&not->a, p));
    pd_parser_leave(p);
    return finish(out, not);
}

static peridot_status parse_logical(struct pd_code **out, struct pd_parser *p, bool is_or)
{
    bool more;
    if (is_or) PD_TRY(parse_logical(out, p, false));
    else PD_TRY(parse_not(out, p));
    for (;;) {
        struct pd_code *code;
        PD_TRY(pd_parser_accept_name(&more, p, is_or ? "or" : "and"));
        if (!more) return PERIDOT_OK;
        PD_TRY(pd_code_create(&code, p, is_or ? PD_CODE_OR : PD_CODE_AND, (*out)->line));
        code->a = *out;
        if (is_or) PD_TRY(parse_logical(&code->b, p, false));
        else PD_TRY(parse_not(&code->b, p));
        PD_TRY(finish(out, code));
    }
}

peridot_status pd_parse_expression(struct pd_code **out, struct pd_parser *p)
{
    bool more;
    PD_TRY(pd_parser_enter(p));
    PD_TRY(parse_logical(out, p, true));
    for (;;) {
        struct pd_code *code;
        PD_TRY(pd_parser_accept_name(&more, p, "if"));
        if (!more) break;
        PD_TRY(pd_code_create(&code, p, PD_CODE_CONDITION, (*out)->line));
        code->b = *out;
        PD_TRY(parse_logical(&code->a, p, true));
        PD_TRY(pd_parser_accept_name(&more, p, "else"));
        if (more) PD_TRY(pd_parse_expression(&code->c, p));
        PD_TRY(finish(out, code));
    }
    pd_parser_leave(p);
    return PERIDOT_OK;
}

/* ---- tuples ---- */

static bool is_tuple_end(const struct pd_parser *p, const char *end)
{
    return p->token.kind == PD_TOKEN_PRINT_END || p->token.kind == PD_TOKEN_TAG_END ||
           pd_parser_at_op(p, PD_OP(')', 0)) || (end && pd_parser_at_name(p, end));
}

peridot_status pd_parse_tuple(struct pd_code **out, struct pd_parser *p, bool conditions, const char *end)
{
    struct pd_code *tuple, **last;
    bool comma;
    PD_TRY(conditions ? pd_parse_expression(out, p) : parse_logical(out, p, true));
    PD_TRY(pd_parser_accept_op(&comma, p, PD_OP(',', 0)));
    if (!comma) return PERIDOT_OK;
    PD_TRY(pd_code_create(&tuple, p, PD_CODE_TUPLE, (*out)->line));
    tuple->a = *out;
    for (last = &tuple->a->next; comma && !is_tuple_end(p, end); last = &(*last)->next) {
        PD_TRY(conditions ? pd_parse_expression(last, p) : parse_logical(last, p, true));
        PD_TRY(pd_parser_accept_op(&comma, p, PD_OP(',', 0)));
    }
    return finish(out, tuple);
}
