#include "text/template/parser.h"

#include "base/num.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- tokens ---- */

peridot_status pd_parser_fail(uint32_t line, const char *format, ...)
{
    char sentence[256];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    return pd_fail(PERIDOT_ERROR_FORMAT, "line %u: %s", (unsigned)line, sentence);
}

peridot_status pd_parser_fail_token(const struct pd_parser *p, const char *expected)
{
    static const char *const names[] = {
        [PD_TOKEN_END] = "the end of the template", [PD_TOKEN_DATA] = "text", [PD_TOKEN_PRINT] = "{{",
        [PD_TOKEN_PRINT_END] = "}}", [PD_TOKEN_TAG] = "{%", [PD_TOKEN_TAG_END] = "%}", [PD_TOKEN_STRING] = "a string",
        [PD_TOKEN_INT] = "an integer", [PD_TOKEN_FLOAT] = "a number"};
    const struct pd_template_token *t = &p->token;
    char shown[PD_SHOWN_SIZE], op[3] = {(char)(t->op & 0xff), (char)(t->op >> 8), 0};
    const char *found = t->kind == PD_TOKEN_OPERATOR ? op
                        : t->kind == PD_TOKEN_NAME ? pd_utf8_shown(shown, t->text.data, t->text.size)
                                                   : names[t->kind];
    return pd_parser_fail(t->line, "%s where %s is expected", found, expected);
}

peridot_status pd_parser_next(struct pd_parser *p)
{
    if (!p->has_ahead) return pd_lexer_next(&p->token, &p->lexer);
    p->token = p->ahead;
    p->has_ahead = false;
    return PERIDOT_OK;
}

peridot_status pd_parser_look_ahead(struct pd_parser *p)
{
    if (!p->has_ahead) PD_TRY(pd_lexer_next(&p->ahead, &p->lexer));
    p->has_ahead = true;
    return PERIDOT_OK;
}

bool pd_parser_at_name(const struct pd_parser *p, const char *name)
{
    return p->token.kind == PD_TOKEN_NAME && pd_chars_are(p->token.text, name);
}

bool pd_parser_at_op(const struct pd_parser *p, unsigned op)
{
    return p->token.kind == PD_TOKEN_OPERATOR && p->token.op == op;
}

peridot_status pd_parser_accept_name(bool *found, struct pd_parser *p, const char *name)
{
    *found = pd_parser_at_name(p, name);
    return *found ? pd_parser_next(p) : PERIDOT_OK;
}

peridot_status pd_parser_accept_op(bool *found, struct pd_parser *p, unsigned op)
{
    *found = pd_parser_at_op(p, op);
    return *found ? pd_parser_next(p) : PERIDOT_OK;
}

peridot_status pd_parser_expect_name(struct pd_parser *p, const char *name)
{
    return pd_parser_at_name(p, name) ? pd_parser_next(p) : pd_parser_fail_token(p, name);
}

peridot_status pd_parser_expect_op(struct pd_parser *p, unsigned op)
{
    char text[3] = {(char)(op & 0xff), (char)(op >> 8), 0};
    return pd_parser_at_op(p, op) ? pd_parser_next(p) : pd_parser_fail_token(p, text);
}

peridot_status pd_parser_expect_kind(struct pd_parser *p, enum pd_token_kind kind, const char *expected)
{
    return p->token.kind == kind ? pd_parser_next(p) : pd_parser_fail_token(p, expected);
}

peridot_status pd_parser_enter(struct pd_parser *p)
{
    if (p->depth++ < PD_CODE_MAX_DEPTH) return PERIDOT_OK;
    return pd_parser_fail(p->token.line, "the template nests deeper than %d", PD_CODE_MAX_DEPTH);
}

void pd_parser_leave(struct pd_parser *p) { p->depth--; }

/* ---- nodes ---- */

peridot_status pd_code_create(struct pd_code **out, struct pd_parser *p, enum pd_code_kind kind, uint32_t line)
{
    *out = pd_arena_alloc(p->arena, sizeof **out);
    if (!*out) return pd_fail_alloc(sizeof **out, "a template");
    (*out)->kind = kind;
    (*out)->line = line;
    return PERIDOT_OK;
}

peridot_status pd_code_finish(struct pd_code *code)
{
    const struct pd_code *const lists[] = {code->a, code->b, code->c, code->d};
    for (size_t i = 0; i < PD_COUNT(lists); i++)
        for (const struct pd_code *child = lists[i]; child; child = child->next)
            if (child->depth >= code->depth) code->depth = child->depth + 1;
    if (code->depth <= PD_CODE_MAX_DEPTH) return PERIDOT_OK;
    return pd_parser_fail(code->line, "the template nests deeper than %d", PD_CODE_MAX_DEPTH);
}
