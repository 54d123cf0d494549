/* Statements, from tokens to trees: what stands between "{%" and "%}", and the data around it. */
#include "text/template/template_.h"

#include "base/base.h"

#include <string.h>

static peridot_status parse_until(struct pd_code **out, struct pd_parser *p, const char *const *ends);

/* "%}", statements up to a tag that begins with one of the ends, and that tag up to behind its name. */
static peridot_status parse_body(const char **end, struct pd_code **out, struct pd_parser *p, const char *const *ends)
{
    bool colon;
    PD_TRY(pd_parser_accept_op(&colon, p, PD_OP(':', 0)));
    PD_TRY(pd_parser_expect_kind(p, PD_TOKEN_TAG_END, "%}"));
    PD_TRY(parse_until(out, p, ends));
    if (p->token.kind == PD_TOKEN_END) return pd_parser_fail(p->token.line, "the template ends before %s", ends[0]);
    for (*end = *ends; *ends && !pd_parser_at_name(p, *ends);) *end = *++ends;
    return pd_parser_next(p);
}

/* The same as the statements of a frame of their own. */
static peridot_status fill_scope(struct pd_code *scope, struct pd_parser *p, const char *close)
{
    const char *const ends[] = {close, NULL};
    const char *end;
    const uint32_t n_loops = p->n_loops;
    p->n_loops = 0;   /* no loop around a block is left from within it */
    PD_TRY(parse_body(&end, &scope->a, p, ends));
    p->n_loops = n_loops;
    return pd_code_finish(scope);
}

static peridot_status parse_scope(struct pd_code **out, struct pd_parser *p, const char *close)
{
    PD_TRY(pd_code_create(out, p, PD_CODE_SCOPE, p->token.line));
    return fill_scope(*out, p, close);
}

/* ---- targets of assignments ---- */

static peridot_status parse_target(struct pd_code **out, struct pd_parser *p, bool members);

static peridot_status parse_name(struct pd_code **out, struct pd_parser *p, const char *expected)
{
    static const char *const constants[] = {"true", "True", "false", "False", "none", "None"};
    for (size_t i = 0; i < PD_COUNT(constants); i++)
        if (pd_parser_at_name(p, constants[i])) return pd_parser_fail(p->token.line, "a constant cannot be set");
    PD_TRY(pd_code_create(out, p, PD_CODE_NAME, p->token.line));
    (*out)->value = pd_value_text(p->token.text);
    return pd_parser_expect_kind(p, PD_TOKEN_NAME, expected);
}

/* A variable, with `members` also "namespace.member", or a tuple in parentheses. */
static peridot_status parse_one_target(struct pd_code **out, struct pd_parser *p, bool members)
{
    struct pd_code *of;
    bool nested, dot = false;
    PD_TRY(pd_parser_accept_op(&nested, p, PD_OP('(', 0)));
    if (nested) {
        PD_TRY(pd_parser_enter(p));
        PD_TRY(parse_target(out, p, members));
        pd_parser_leave(p);
        return pd_parser_expect_op(p, PD_OP(')', 0));
    }
    PD_TRY(parse_name(out, p, "the name of a variable"));
    if (members) PD_TRY(pd_parser_accept_op(&dot, p, PD_OP('.', 0)));
    if (!dot) return PERIDOT_OK;
    of = *out;
    PD_TRY(pd_code_create(out, p, PD_CODE_MEMBER_TARGET, of->line));
    (*out)->a = of;
    (*out)->value = pd_value_text(p->token.text);
    PD_TRY(pd_parser_expect_kind(p, PD_TOKEN_NAME, "the name of a member"));
    return pd_code_finish(*out);
}

static peridot_status parse_target(struct pd_code **out, struct pd_parser *p, bool members)
{
    struct pd_code *tuple, **last;
    bool comma;
    PD_TRY(parse_one_target(out, p, members));
    PD_TRY(pd_parser_accept_op(&comma, p, PD_OP(',', 0)));
    if (!comma) return PERIDOT_OK;
    PD_TRY(pd_code_create(&tuple, p, PD_CODE_TUPLE, (*out)->line));
    tuple->a = *out;
    for (last = &tuple->a->next; comma; last = &(*last)->next) {
        const bool another = pd_parser_at_op(p, PD_OP('(', 0)) ||
                             (p->token.kind == PD_TOKEN_NAME && !pd_parser_at_name(p, "in"));
        if (!another) break;
        PD_TRY(parse_one_target(last, p, members));
        PD_TRY(pd_parser_accept_op(&comma, p, PD_OP(',', 0)));
    }
    *out = tuple;
    return pd_code_finish(tuple);
}

/* ---- statements ---- */

static peridot_status parse_set(struct pd_code *set, struct pd_parser *p)
{
    bool assigns;
    PD_TRY(parse_target(&set->b, p, true));
    PD_TRY(pd_parser_accept_op(&assigns, p, PD_OP('=', 0)));
    if (assigns) {
        set->kind = PD_CODE_SET;
        return pd_parse_tuple(&set->a, p, true, NULL);
    }
    set->kind = PD_CODE_SET_BLOCK;
    PD_TRY(pd_code_create(&set->c, p, PD_CODE_CAPTURED, p->token.line));
    PD_TRY(pd_parse_filters(&set->c, p, false));
    return parse_scope(&set->a, p, "endset");
}

/* Targets belong to the scope of the loop's body; the scope of its condition has the same variables in the same
 * places. */
static peridot_status parse_for(struct pd_code *loop, struct pd_parser *p)
{
    static const char *const ends[] = {"endfor", "else", NULL};
    const char *end;
    bool filtered, recursive;
    PD_TRY(pd_code_create(&loop->b, p, PD_CODE_SCOPE, p->token.line));
    PD_TRY(parse_target(&loop->b->b, p, false));
    PD_TRY(pd_parser_expect_name(p, "in"));
    PD_TRY(pd_parse_tuple(&loop->a, p, false, "recursive"));
    PD_TRY(pd_parser_accept_name(&filtered, p, "if"));
    if (filtered) {
        PD_TRY(pd_code_create(&loop->d, p, PD_CODE_SCOPE, p->token.line));
        PD_TRY(pd_parse_expression(&loop->d->a, p));
        PD_TRY(pd_code_finish(loop->d));
    }
    PD_TRY(pd_parser_accept_name(&recursive, p, "recursive"));
    loop->op = recursive;
    p->n_loops++;
    PD_TRY(parse_body(&end, &loop->b->a, p, ends));
    p->n_loops--;
    PD_TRY(pd_code_finish(loop->b));
    return strcmp(end, "else") == 0 ? parse_scope(&loop->c, p, "endfor") : PERIDOT_OK;
}

static peridot_status parse_if(struct pd_code *branch, struct pd_parser *p)
{
    static const char *const ends[] = {"endif", "elif", "else", NULL};
    struct pd_code **other = &branch->d, *first = branch;
    const char *end = "elif";
    while (strcmp(end, "elif") == 0) {
        PD_TRY(pd_parse_tuple(&branch->a, p, false, NULL));
        PD_TRY(parse_body(&end, &branch->b, p, ends));
        if (branch != first) PD_TRY(pd_code_finish(branch));
        if (strcmp(end, "elif") != 0) break;
        PD_TRY(pd_code_create(other, p, PD_CODE_IF, p->token.line));
        branch = *other;
        other = &branch->next;
    }
    return strcmp(end, "else") == 0 ? parse_body(&end, &first->c, p, (const char *const[]){"endif", NULL}) : PERIDOT_OK;
}

static peridot_status parse_parameters(struct pd_code **out, struct pd_parser *p)
{
    struct pd_code **last = out;
    bool comma = true, has_default = false, any = false;
    PD_TRY(pd_parser_expect_op(p, PD_OP('(', 0)));
    while (comma && !pd_parser_at_op(p, PD_OP(')', 0))) {
        PD_TRY(pd_code_create(last, p, PD_CODE_PARAMETER, p->token.line));
        (*last)->value = pd_value_text(p->token.text);
        PD_TRY(pd_parser_expect_kind(p, PD_TOKEN_NAME, "the name of a parameter"));
        PD_TRY(pd_parser_accept_op(&has_default, p, PD_OP('=', 0)));
        if (has_default) PD_TRY(pd_parse_expression(&(*last)->a, p));
        else if (any) return pd_parser_fail(p->token.line, "a parameter without a default after one with a default");
        any |= has_default;
        PD_TRY(pd_code_finish(*last));
        last = &(*last)->next;
        PD_TRY(pd_parser_accept_op(&comma, p, PD_OP(',', 0)));
    }
    return pd_parser_expect_op(p, PD_OP(')', 0));
}

static peridot_status parse_macro(struct pd_code *macro, struct pd_parser *p)
{
    struct pd_code *parameters = NULL;
    PD_TRY(parse_name(&macro->c, p, "the name of a macro"));
    PD_TRY(parse_parameters(&parameters, p));
    PD_TRY(parse_scope(&macro->b, p, "endmacro"));
    macro->b->b = parameters;
    return pd_code_finish(macro->b);
}

/* "call(x) m(1)" writes m(1, caller=a macro of x and the block). */
static peridot_status parse_call_block(struct pd_code *block, struct pd_parser *p)
{
    struct pd_code *parameters = NULL, *keyword, **last;
    if (pd_parser_at_op(p, PD_OP('(', 0))) PD_TRY(parse_parameters(&parameters, p));
    PD_TRY(pd_parse_expression(&block->a, p));
    if (block->a->kind != PD_CODE_CALL) return pd_parser_fail(block->line, "a call is expected behind {%% call %%}");
    PD_TRY(pd_code_create(&keyword, p, PD_CODE_KEYWORD, block->line));
    keyword->value = pd_value_text(PD_CHARS("caller"));
    PD_TRY(pd_code_create(&keyword->a, p, PD_CODE_CALLER, block->line));
    for (last = &block->a->c; *last;) last = &(*last)->next;
    *last = keyword;
    PD_TRY(pd_code_finish(keyword));
    PD_TRY(pd_code_finish(block->a));
    PD_TRY(parse_scope(&block->b, p, "endcall"));
    block->b->b = parameters;
    return pd_code_finish(block->b);
}

/* Nothing is escaped here: what says otherwise is refused. */
static peridot_status parse_autoescape(struct pd_code *scope, struct pd_parser *p)
{
    struct pd_code *value;
    PD_TRY(pd_parse_expression(&value, p));
    if (value->kind != PD_CODE_CONSTANT || value->value.type != PD_BOOL || value->value.b)
        return pd_parser_fail(scope->line, "autoescape that is not false is not supported");
    return fill_scope(scope, p, "endautoescape");
}

static peridot_status parse_with(struct pd_code *with, struct pd_parser *p)
{
    struct pd_code **target = &with->b, **value = &with->c;
    bool comma = true;
    while (comma && p->token.kind != PD_TOKEN_TAG_END) {
        PD_TRY(parse_name(target, p, "the name of a variable"));
        PD_TRY(pd_parser_expect_op(p, PD_OP('=', 0)));
        PD_TRY(pd_parse_expression(value, p));
        target = &(*target)->next;
        value = &(*value)->next;
        PD_TRY(pd_parser_accept_op(&comma, p, PD_OP(',', 0)));
    }
    return fill_scope(with, p, "endwith");
}

static peridot_status parse_generation(struct pd_code *scope, struct pd_parser *p)
{
    return fill_scope(scope, p, "endgeneration");
}

static peridot_status parse_filter_block(struct pd_code *block, struct pd_parser *p)
{
    PD_TRY(pd_code_create(&block->c, p, PD_CODE_CAPTURED, p->token.line));
    PD_TRY(pd_parse_filters(&block->c, p, true));
    return parse_scope(&block->a, p, "endfilter");
}

static peridot_status parse_jump(struct pd_code *jump, struct pd_parser *p)
{
    return p->n_loops ? PERIDOT_OK : pd_parser_fail(jump->line, "break or continue outside of a loop");
}

static const struct {
    const char *name;
    enum pd_code_kind kind;
    peridot_status (*parse)(struct pd_code *code, struct pd_parser *p);
} statements[] = {
    {"set", PD_CODE_SET, parse_set}, {"for", PD_CODE_FOR, parse_for}, {"if", PD_CODE_IF, parse_if},
    {"macro", PD_CODE_MACRO, parse_macro}, {"with", PD_CODE_SCOPE, parse_with},
    {"generation", PD_CODE_SCOPE, parse_generation}, {"filter", PD_CODE_FILTER_BLOCK, parse_filter_block},
    {"call", PD_CODE_CALL_BLOCK, parse_call_block}, {"autoescape", PD_CODE_SCOPE, parse_autoescape},
    {"break", PD_CODE_BREAK, parse_jump}, {"continue", PD_CODE_CONTINUE, parse_jump},
};

/* A tag, from its name to "%}". */
static peridot_status parse_statement(struct pd_code **out, struct pd_parser *p)
{
    char shown[PD_SHOWN_SIZE];
    const struct pd_template_token name = p->token;
    size_t i = 0;
    if (name.kind != PD_TOKEN_NAME) return pd_parser_fail_token(p, "the name of a tag");
    while (i < PD_COUNT(statements) && !pd_chars_are(name.text, statements[i].name)) i++;
    if (i == PD_COUNT(statements))
        return pd_parser_fail(name.line, "there is no tag %s", pd_utf8_shown(shown, name.text.data, name.text.size));
    PD_TRY(pd_code_create(out, p, statements[i].kind, name.line));
    PD_TRY(pd_parser_next(p));
    PD_TRY(pd_parser_enter(p));
    PD_TRY(statements[i].parse(*out, p));
    pd_parser_leave(p);
    PD_TRY(pd_parser_expect_kind(p, PD_TOKEN_TAG_END, "%}"));
    return pd_code_finish(*out);
}

static peridot_status parse_print(struct pd_code **out, struct pd_parser *p)
{
    PD_TRY(pd_code_create(out, p, PD_CODE_PRINT, p->token.line));
    PD_TRY(pd_parser_next(p));
    PD_TRY(pd_parse_tuple(&(*out)->a, p, true, NULL));
    PD_TRY(pd_parser_expect_kind(p, PD_TOKEN_PRINT_END, "}}"));
    return pd_code_finish(*out);
}

static bool is_end(const struct pd_parser *p, const char *const *ends)
{
    for (; *ends; ends++)
        if (pd_parser_at_name(p, *ends)) return true;
    return false;
}

/* Statements up to the name of a tag that ends them, or the end of the program. */
static peridot_status parse_until(struct pd_code **out, struct pd_parser *p, const char *const *ends)
{
    for (struct pd_code **last = out; p->token.kind != PD_TOKEN_END; last = &(*last)->next) {
        if (p->token.kind == PD_TOKEN_DATA) {
            PD_TRY(pd_code_create(last, p, PD_CODE_DATA, p->token.line));
            (*last)->value = pd_value_text(p->token.text);
            PD_TRY(pd_parser_next(p));
            continue;
        }
        if (p->token.kind == PD_TOKEN_PRINT) {
            PD_TRY(parse_print(last, p));
            continue;
        }
        PD_TRY(pd_parser_next(p));
        if (is_end(p, ends)) break;
        PD_TRY(parse_statement(last, p));
    }
    return PERIDOT_OK;
}

peridot_status pd_parse_program(struct pd_code **out, struct pd_arena *arena, const char *source, size_t size)
{
    static const char *const no_ends[] = {NULL};
    struct pd_parser p = {.arena = arena};
    PD_TRY(pd_lexer_begin(&p.lexer, arena, source, size));
    PD_TRY(pd_parser_next(&p));
    PD_TRY(pd_code_create(out, &p, PD_CODE_SCOPE, 1));
    PD_TRY(parse_until(&(*out)->a, &p, no_ends));
    return pd_code_finish(*out);
}
