/* From tokens to nodes, by jinja2's grammar: tokens.c has what both parsers use, expressions.c and statements.c are
 * the parsers. */
#ifndef PD_TEXT_TEMPLATE_PARSER_H
#define PD_TEXT_TEMPLATE_PARSER_H

#include "text/template/code.h"
#include "text/template/lexer.h"

struct pd_parser {
    struct pd_arena *arena;
    struct pd_lexer lexer;
    struct pd_template_token token, ahead;   /* token: the one to be read next */
    bool has_ahead;
    uint32_t depth;
    uint32_t n_loops;            /* around what is read, in the same macro or block */
};

peridot_status pd_parser_fail(uint32_t line, const char *format, ...) PD_PRINTF(2, 3);
/* A sentence that names the present token, which is not what must come here. */
peridot_status pd_parser_fail_token(const struct pd_parser *p, const char *expected);
peridot_status pd_parser_next(struct pd_parser *p);
peridot_status pd_parser_look_ahead(struct pd_parser *p);   /* at the token after it: p->ahead */
bool pd_parser_at_name(const struct pd_parser *p, const char *name);
bool pd_parser_at_op(const struct pd_parser *p, unsigned op);
/* Reads it where it is there. */
peridot_status pd_parser_accept_name(bool *found, struct pd_parser *p, const char *name);
peridot_status pd_parser_accept_op(bool *found, struct pd_parser *p, unsigned op);
peridot_status pd_parser_expect_name(struct pd_parser *p, const char *name);
peridot_status pd_parser_expect_op(struct pd_parser *p, unsigned op);
peridot_status pd_parser_expect_kind(struct pd_parser *p, enum pd_token_kind kind, const char *expected);
/* Around what may nest. */
peridot_status pd_parser_enter(struct pd_parser *p);
void pd_parser_leave(struct pd_parser *p);

peridot_status pd_code_create(struct pd_code **out, struct pd_parser *p, enum pd_code_kind kind, uint32_t line);
/* Once its children are there: fails where the tree becomes too deep. */
peridot_status pd_code_finish(struct pd_code *code);

/* "a, b" makes a tuple. Without `conditions`, "x if y" ends before the "if". */
peridot_status pd_parse_tuple(struct pd_code **out, struct pd_parser *p, bool conditions, const char *end);
peridot_status pd_parse_expression(struct pd_code **out, struct pd_parser *p);
/* "| name(...)" of *code, as often as it is there; `first`: the first bar is not. */
peridot_status pd_parse_filters(struct pd_code **code, struct pd_parser *p, bool first);

/* A whole program: *out is its statements, as a PD_CODE_SCOPE. */
peridot_status pd_parse_program(struct pd_code **out, struct pd_arena *arena, const char *source, size_t size);

#endif
