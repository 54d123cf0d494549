/* A parsed program: a tree of nodes in one arena. A node's children are lists, linked by `next`; what is in which list
 * is said beside the kinds. Names are resolved when a program is parsed (scope.h): a name is a variable of one of the
 * frames around it. */
#ifndef PD_TEXT_TEMPLATE_CODE_H
#define PD_TEXT_TEMPLATE_CODE_H

#include "text/template/value.h"

enum pd_code_kind {
    /* statements */
    PD_CODE_DATA,        /* value: the text */
    PD_CODE_PRINT,       /* a: what is written */
    PD_CODE_SET,         /* a: the value; b: the target */
    PD_CODE_SET_BLOCK,   /* a: a PD_CODE_SCOPE; b: the target; c: a filter of what the scope wrote, applied in it */
    PD_CODE_FOR,         /* a: what is iterated; b: a PD_CODE_SCOPE, its parameters the targets; c: the same for "else";
                          * d: for "if", whose only statement is an expression; op: 1 where it is recursive */
    PD_CODE_IF,          /* a: the condition; b: statements; c: of "else"; d: of "elif", each a PD_CODE_IF */
    PD_CODE_MACRO,       /* b: a PD_CODE_SCOPE, whose parameters are PD_CODE_PARAMETER; c: the name */
    PD_CODE_CALL_BLOCK,  /* a: a PD_CODE_CALL, with a PD_CODE_CALLER among its arguments; b: as of PD_CODE_MACRO */
    PD_CODE_FILTER_BLOCK,   /* a: a PD_CODE_SCOPE; c: the filter */
    PD_CODE_SCOPE,       /* a: statements; b: parameters. As a statement: "with" and "generation"; c: values of b */
    PD_CODE_BREAK,
    PD_CODE_CONTINUE,
    PD_CODE_PARAMETER,   /* a: the default, if there is one; level, slot */
    /* expressions */
    PD_CODE_NAME,        /* value: the name's text */
    PD_CODE_MEMBER_TARGET,   /* a: the namespace's name; value: the member's */
    PD_CODE_CONSTANT,    /* value */
    PD_CODE_CAPTURED,    /* what the block wrote that a filter is applied to */
    PD_CODE_CALLER,      /* the block of {% call %}, a macro without a name */
    PD_CODE_LIST,        /* a: items */
    PD_CODE_TUPLE,
    PD_CODE_DICT,        /* a: keys; b: values */
    PD_CODE_MEMBER,      /* a: of what; value: the name */
    PD_CODE_ITEM,        /* a: of what; b: which */
    PD_CODE_SLICE,       /* a: of what; b, c, d: from, to, step, PD_CODE_CONSTANT none where absent */
    PD_CODE_CALL,        /* a: what is called; b: arguments; c: those with names, each a PD_CODE_KEYWORD */
    PD_CODE_FILTER,      /* a: of what, then arguments; c: those with names; value: its name; builtin, NULL: none */
    PD_CODE_TEST,
    PD_CODE_KEYWORD,     /* a: the value; value: the name */
    PD_CODE_NOT,         /* a */
    PD_CODE_AND,         /* a, b */
    PD_CODE_OR,
    PD_CODE_CONDITION,   /* a: the condition; b: the value; c: the other, or nothing */
    PD_CODE_COMPARE,     /* a: the first; b: PD_CODE_OPERAND, one after the other */
    PD_CODE_OPERAND,     /* op, a */
    PD_CODE_CONCAT,      /* a: all operands of ~ */
    PD_CODE_UNARY,       /* op, a */
    PD_CODE_BINARY       /* op, a, b */
};

enum { PD_OP_IN = 1, PD_OP_NOT_IN };   /* of PD_CODE_OPERAND; others are as the lexer gives them */

/* Where a variable's value comes from when its frame begins. */
enum pd_variable_from {
    PD_FROM_PARAMETER,
    PD_FROM_INPUT,       /* the render's input, or a function that all programs have */
    PD_FROM_OUTER,       /* a variable of a frame around this one */
    PD_FROM_NOWHERE      /* it has none until it is set */
};

struct pd_variable {
    struct pd_variable *next, *next_input;   /* in its scope; of all that are from the input */
    struct pd_chars name;
    enum pd_variable_from from;
    bool is_set;                 /* by the program, in some branch at least */
    uint32_t slot, outer_level, outer_slot;
};

/* Names that stand for what a macro is called with, where its body has them. */
enum pd_special { PD_SPECIAL_CALLER, PD_SPECIAL_KWARGS, PD_SPECIAL_VARARGS, PD_N_SPECIALS };

/* What a frame has: for a program, the body of a loop, a macro, a block. */
struct pd_scope {
    struct pd_scope *parent;
    struct pd_variable *variables, **last;
    uint32_t n;
    struct pd_variable *specials[PD_N_SPECIALS];   /* of a macro; NULL: its body does not have the name */
};

struct pd_code {
    enum pd_code_kind kind;
    unsigned op;
    uint32_t line, depth;        /* depth: of the tree below */
    uint32_t level, slot;        /* of a name: so many frames outwards, and the variable there; of the body of a loop:
                                  * slot is that of `loop` */
    struct pd_code *next, *a, *b, *c, *d;
    const struct pd_builtin *builtin;
    struct pd_scope *scope;      /* of PD_CODE_SCOPE */
    struct pd_value value;
};

enum { PD_CODE_MAX_DEPTH = 150 };

struct pd_template {
    struct pd_arena arena;
    struct pd_code *root;        /* a PD_CODE_SCOPE */
    struct pd_variable *inputs;
};

#endif
