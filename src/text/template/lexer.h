/* A program's text as tokens. Between the tags all is data; where a line has only a statement or a comment, its
 * indentation goes (lstrip_blocks) and so does the line's end after them (trim_blocks); a "-" beside a tag takes all
 * white space there, a "+" keeps it. */
#ifndef PD_TEXT_TEMPLATE_LEXER_H
#define PD_TEXT_TEMPLATE_LEXER_H

#include "text/template/value.h"

enum pd_token_kind {
    PD_TOKEN_END,            /* of the program */
    PD_TOKEN_DATA,
    PD_TOKEN_PRINT,          /* {{ */
    PD_TOKEN_PRINT_END,
    PD_TOKEN_TAG,            /* {% */
    PD_TOKEN_TAG_END,
    PD_TOKEN_NAME,
    PD_TOKEN_STRING,
    PD_TOKEN_INT,
    PD_TOKEN_FLOAT,
    PD_TOKEN_OPERATOR
};

/* An operator is its one or two bytes. */
#define PD_OP(a, b) ((unsigned)(a) | (unsigned)(b) << 8)

struct pd_template_token {
    enum pd_token_kind kind;
    unsigned op;             /* PD_OP(a, b), of one byte PD_OP(a, 0) */
    uint32_t line;
    struct pd_chars text;    /* of data, names and strings */
    int64_t i;
    double f;
};

enum { PD_LEXER_MAX_BRACKETS = 200 };

struct pd_lexer {
    struct pd_arena *arena;  /* for what is not in the source as it is */
    const char *source;      /* with \n as the only line ends, and without the last one; terminated */
    size_t size, at;
    uint32_t line;
    enum pd_token_kind in;   /* PD_TOKEN_DATA, PD_TOKEN_PRINT or PD_TOKEN_TAG */
    bool at_line_start;      /* of what comes next in data */
    char brackets[PD_LEXER_MAX_BRACKETS];
    size_t n_brackets;
};

peridot_status pd_lexer_begin(struct pd_lexer *l, struct pd_arena *arena, const char *source, size_t size);
peridot_status pd_lexer_next(struct pd_template_token *out, struct pd_lexer *l);

#endif
