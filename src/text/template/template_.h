/* What the files of this room share: programs as trees, values, and what is done to them. template.h is for all others.
 *
 * In the order of the layers: what a render may use, values and texts, what programs call, trees, reading a program,
 * running it. Each section belongs to the file that it names. */
#ifndef PD_TEXT_TEMPLATE_PRIVATE_H
#define PD_TEXT_TEMPLATE_PRIVATE_H

#include "text/template/template.h"

#include "format/format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- value.c: what a render may use ---- */

/* What a render may use: steps, memory, nesting. Every part of the interpreter takes from here, so that whatever a
 * program does ends soon, with one sentence. */

enum {
    PD_RENDER_MAX_DEPTH = 500,             /* of values, and of nodes that are being evaluated */
    PD_RENDER_MAX_STACK = 2000,
    PD_RENDER_MAX_STEPS = 5000000,         /* nodes, elements, and bytes looked at, 16 for a step */
    PD_RENDER_MAX_SIZE = 64 << 20          /* bytes of all values and of the result, with the marks of their bytes */
};

struct pd_frame;
struct pd_builder;
struct pd_dict;
struct pd_value;

struct pd_render {
    const struct pd_template_input *in;
    struct pd_arena arena;
    size_t size;
    uint64_t n_steps;
    uint32_t depth, line;                  /* line: of the node that is being evaluated */
    struct pd_frame *frame;                /* the variables in sight */
    struct pd_builder *out;                /* where the program writes */
    struct pd_builder *tail;               /* the text that was appended to last (pd_chars_concat) */
    struct pd_value *stack;                /* [PD_RENDER_MAX_STACK]: arguments of calls */
    size_t n_stack;
    struct pd_value *captured;             /* what a block wrote whose filter is being applied */
    struct pd_value *caller;               /* the macro that the block is whose call is being made */
    struct pd_dict *inputs;                /* variables of the input that were read */
    enum pd_flow { PD_FLOW_ON, PD_FLOW_BREAK, PD_FLOW_CONTINUE } flow;
};

/* PERIDOT_ERROR_FORMAT, "line N: ...". */
peridot_status pd_render_fail(const struct pd_render *r, const char *format, ...) PD_PRINTF(2, 3);
/* n steps of the program. */
peridot_status pd_render_spend(struct pd_render *r, uint64_t n);
/* The same for looking at so many bytes. */
peridot_status pd_render_scan(struct pd_render *r, size_t size);
/* Memory for n things of `size` bytes, zeroed; out is the address of the pointer. */
peridot_status pd_render_alloc(void *out, struct pd_render *r, size_t n, size_t size);
/* Around what may nest. */
peridot_status pd_render_enter(struct pd_render *r);
void pd_render_leave(struct pd_render *r);

/* ---- value.c: values ---- */

/* Values of a render. All but namespaces, cyclers and joiners are immutable once made, and all live in the render's
 * arena: nothing is freed before its end, and its limits (above) bound what a program can make.
 *
 * Each byte of a text is the program's own or not; a result of an operation on texts keeps that byte by byte. Numbers,
 * lists and dicts have one mark for what is written when they are: digits, brackets, commas. */

enum pd_value_type {
    PD_UNSET,        /* an argument that was not given */
    PD_UNDEFINED,    /* jinja2's Undefined */
    PD_NONE,
    PD_BOOL,
    PD_INT,
    PD_HUGE,         /* an integer of the input's from 2^63 to 2^64: written, never computed with */
    PD_FLOAT,
    PD_TEXT,
    PD_LIST,
    PD_TUPLE,
    PD_RANGE,
    PD_VIEW,         /* a dict's keys, values or items */
    PD_ITERATOR,     /* what filters give, consumed once */
    PD_DICT,
    PD_NAMESPACE,
    PD_CYCLER,
    PD_MACRO,
    PD_FUNCTION,
    PD_METHOD,
    PD_LOOP,
    PD_JOINER
};

struct pd_chars {
    const char *data;
    size_t size;
    const unsigned char *own;        /* [size]; pd_all_own: all bytes; NULL: none */
};
extern const unsigned char pd_all_own[1];

struct pd_value {
    unsigned char type;              /* enum pd_value_type */
    bool own;                        /* of all but texts */
    bool markup;                     /* a text that `safe` or `escape` gave */
    /* PD_VIEW: enum pd_view_kind; PD_UNDEFINED: 1 where the sandbox refuses it; PD_TUPLE: 1 where it is a pair of
     * groupby, with names */
    unsigned char kind;
    union {
        bool b;
        int64_t i;
        uint64_t u;
        double f;
        struct pd_chars text;
        struct { struct pd_value *at; size_t n; } list;       /* PD_LIST, PD_TUPLE, PD_RANGE, PD_VIEW */
        struct { const char *name; size_t size; } undefined;   /* for sentences; NULL: nothing to say */
        struct pd_dict *dict;                                 /* PD_DICT, PD_NAMESPACE */
        struct pd_iterator *iterator;
        const struct pd_macro *macro;
        const struct pd_builtin *function;
        struct { const struct pd_builtin *function; const struct pd_value *self; } method;
        struct pd_loop *loop;
        struct pd_cycle *cycle;                               /* PD_CYCLER, PD_JOINER */
    };
};

enum pd_view_kind { PD_VIEW_KEYS, PD_VIEW_VALUES, PD_VIEW_ITEMS };

struct pd_pair {
    struct pd_value key, value;
};

/* What a cycler goes through, or the text of a joiner, which is given from the second time on. */
struct pd_cycle {
    struct pd_value items;           /* a list */
    size_t at;
};

/* In the order of insertion. Found by hash where there are many. */
struct pd_dict {
    struct pd_pair *at;
    size_t n, capacity;
    uint32_t *slots;                 /* [n_slots], a power of 2; 0: free, else 1 + where it is in `at` */
    size_t n_slots;
};

#define PD_CHARS(literal) ((struct pd_chars){literal, sizeof(literal) - 1, pd_all_own})

struct pd_value pd_value_none(void);
struct pd_value pd_value_bool(bool b);
struct pd_value pd_value_int(int64_t i, bool own);
struct pd_value pd_value_float(double f, bool own);
struct pd_value pd_value_text(struct pd_chars text);
struct pd_value pd_value_undefined(struct pd_chars name);
static inline peridot_status pd_give(struct pd_value *out, struct pd_value v)
{
    *out = v;
    return PERIDOT_OK;
}
/* What a client's JSON says. Texts are borrowed. */
peridot_status pd_value_from_json(struct pd_value *out, struct pd_render *r, yyjson_val *json);

static inline bool pd_is_listed(const struct pd_value *v) { return v->type >= PD_LIST && v->type <= PD_VIEW; }
static inline bool pd_is_integer(const struct pd_value *v) { return v->type == PD_INT || v->type == PD_BOOL; }
static inline bool pd_is_number(const struct pd_value *v) { return pd_is_integer(v) || v->type == PD_FLOAT; }
/* Of pd_is_integer and pd_is_number. */
int64_t pd_value_integer(const struct pd_value *v);
double pd_value_double(const struct pd_value *v);
/* Python's name of the type, for sentences. */
const char *pd_value_type_name(const struct pd_value *v);
/* The sentence of what was done to a value that is undefined. */
peridot_status pd_value_fail_undefined(const struct pd_render *r, const struct pd_value *v);
bool pd_value_is_true(const struct pd_value *v);
/* Python's ==; compared texts and elements count as steps. */
peridot_status pd_value_equals(bool *out, struct pd_render *r, const struct pd_value *a, const struct pd_value *b);
/* Python's <: *out is below, at or above 0. Fails where the two have no order. */
peridot_status pd_value_compare(int *out, struct pd_render *r, const struct pd_value *a, const struct pd_value *b);

bool pd_chars_equal(struct pd_chars a, struct pd_chars b);
bool pd_chars_are(struct pd_chars text, const char *literal);

peridot_status pd_list_create(struct pd_value *out, struct pd_render *r, size_t n);   /* to be filled */
peridot_status pd_dict_create(struct pd_value *out, struct pd_render *r, bool own);
/* NULL where there is none. Fails where the key cannot be one. */
peridot_status pd_dict_find(struct pd_value **out, struct pd_render *r, const struct pd_dict *d,
                            const struct pd_value *key);
peridot_status pd_dict_put(struct pd_render *r, struct pd_dict *d, const struct pd_value *key,
                           const struct pd_value *value);
/* Stable. */
typedef peridot_status pd_pair_is_before(bool *out, struct pd_render *r, const void *context, const struct pd_pair *a,
                                         const struct pd_pair *b);
peridot_status pd_pairs_sort(struct pd_render *r, struct pd_pair *at, size_t n, pd_pair_is_before *is_before,
                             const void *context);
/* Its keys, values or items as a PD_VIEW. */
peridot_status pd_dict_view(struct pd_value *out, struct pd_render *r, const struct pd_dict *d, enum pd_view_kind kind);

/* ---- chars.c: texts ---- */

/* Texts byte by byte and character by character: building them, cutting them, their case. A character is a code point;
 * each byte that is part of none counts as one. */

/* A text that grows, in the render's arena. */
struct pd_builder {
    struct pd_render *r;
    char *data;
    unsigned char *own;
    size_t size, capacity;
};

peridot_status pd_builder_reserve(struct pd_builder *b, size_t more);
peridot_status pd_builder_add(struct pd_builder *b, struct pd_chars text);
peridot_status pd_builder_bytes(struct pd_builder *b, const char *data, size_t size, bool own);
peridot_status pd_builder_string(struct pd_builder *b, const char *text, bool own);
/* What was built, as a value; more may be added afterwards. */
struct pd_value pd_builder_value(const struct pd_builder *b);

/* Bytes from..from + size. */
struct pd_chars pd_chars_part(struct pd_chars text, size_t from, size_t size);
bool pd_chars_is_own(struct pd_chars text);        /* all of it; one without bytes: if its source was */
/* a then b, in a's place where a was made by the last call and has room behind it: a loop that appends is linear. */
peridot_status pd_chars_concat(struct pd_value *out, struct pd_render *r, struct pd_chars a, struct pd_chars b);

/* Bytes of the character at `at` < size, its code point in *code (the byte where it is part of none). */
size_t pd_chars_next(uint32_t *code, struct pd_chars text, size_t at);
/* Where the character that ends before byte `at` > 0 begins. */
size_t pd_chars_previous(struct pd_chars text, size_t at);
size_t pd_chars_count(struct pd_chars text);
/* Byte offset of character i, `size` past the last. */
size_t pd_chars_offset(struct pd_chars text, size_t i);
bool pd_chars_is_ascii(struct pd_chars text);
/* *out: byte offset of the first occurrence at or after `from`, or of the last that ends at or before `to`; SIZE_MAX:
 * there is none. */
peridot_status pd_chars_find(size_t *out, struct pd_render *r, struct pd_chars text, struct pd_chars what, size_t from);
peridot_status pd_chars_find_last(size_t *out, struct pd_render *r, struct pd_chars text, struct pd_chars what,
                                  size_t to);

/* Without the characters of `set` (NULL: white space) at its ends. */
enum { PD_STRIP_LEFT = 1, PD_STRIP_RIGHT = 2 };
struct pd_chars pd_chars_strip(struct pd_chars text, const struct pd_chars *set, unsigned sides);

bool pd_char_is_space(uint32_t code);
/* Ends a line for str.splitlines. */
bool pd_char_is_line_end(uint32_t code);

/* ---- chars.c: what characters are ---- */

/* What characters are, and their case, by Python's rules. */

enum pd_unicode_class {
    PD_UNICODE_NOT_PRINTABLE,    /* what repr() escapes */
    PD_UNICODE_NOT_ALPHA, PD_UNICODE_NOT_DECIMAL, PD_UNICODE_NOT_ALNUM, PD_UNICODE_WORD, PD_UNICODE_NOT_WORD
};

/* *out: byte offset of the first character of the class at or after `from`; SIZE_MAX: there is none. */
peridot_status pd_unicode_find(size_t *out, struct pd_render *r, struct pd_chars text, size_t from,
                               enum pd_unicode_class which);

enum pd_case { PD_LOWER, PD_UPPER, PD_CAPITALIZED };
peridot_status pd_builder_add_case(struct pd_builder *b, struct pd_chars text, enum pd_case which);
/* The first letter in upper case, the others in lower. `title`: of one that becomes two, only the first. */
peridot_status pd_builder_add_capitalized(struct pd_builder *b, struct pd_chars text, bool title);
/* Which case a letter has; cased: either, or that of titles. */
bool pd_char_is_lower(uint32_t code);
bool pd_char_is_upper(uint32_t code);
bool pd_char_is_cased(uint32_t code);

/* ---- builtins.c: what programs call ---- */

/* Filters, tests, methods and functions are rows of four tables (in builtins.c, those of methods in members.c). A row
 * says how its parameters are called, so that one binder serves them all, and a program that calls what is not there
 * is refused when it is parsed; as in jinja2, filters and tests in branches of "if" may be missing until they are
 * called. */

struct pd_code;

/* Arguments as they were given: n without names, then n_named, whose names are those of the PD_CODE_KEYWORD nodes. The
 * first is what a filter, a test or a method is applied to, PD_UNSET for functions. */
struct pd_args {
    struct pd_value *at;
    size_t n, n_named;
    const struct pd_code *named;
};
/* One of those with names; NULL: it was not given. */
const struct pd_value *pd_args_find(const struct pd_args *args, struct pd_chars name);

/* a[0]: what a filter, a test or a method is applied to; a[i]: parameter i, PD_UNSET where it was not given. `which`
 * tells apart the rows that share a function. */
typedef peridot_status pd_builtin_on(struct pd_value *out, struct pd_render *r, struct pd_value *a);
typedef peridot_status pd_builtin_as(struct pd_value *out, struct pd_render *r, struct pd_value *a, int which);
typedef peridot_status pd_builtin_any(struct pd_value *out, struct pd_render *r, const struct pd_args *args, int which);
/* The heads of such functions. */
#define PD_BUILTIN(name) peridot_status name(struct pd_value *out, struct pd_render *r, struct pd_value *a)
#define PD_BUILTIN_AS(name) \
    peridot_status name(struct pd_value *out, struct pd_render *r, struct pd_value *a, int which)
#define PD_BUILTIN_ANY(name) \
    peridot_status name(struct pd_value *out, struct pd_render *r, const struct pd_args *args, int which)

enum { PD_MAX_PARAMETERS = 6 };

struct pd_builtin {
    const char *name;                /* NULL: the end of the table */
    /* Of parameters after the first argument, in their order: "old! new! count", "!" where one must be given. */
    const char *parameters;
    /* One of the three; none: a method that the sandbox refuses. */
    pd_builtin_on *on;
    pd_builtin_as *as;
    int which;
    pd_builtin_any *any;             /* takes any arguments, and reads them itself */
};

/* The rows. */
#define PD_ON(its_name, its_parameters, function) {.name = its_name, .parameters = its_parameters, .on = function}
#define PD_AS(its_name, its_parameters, function, as_which) \
    {.name = its_name, .parameters = its_parameters, .as = function, .which = as_which}
#define PD_ANY(its_name, function, as_which) {.name = its_name, .any = function, .which = as_which}
#define PD_REFUSED(its_name) {.name = its_name}
#define PD_END {.name = NULL}

static inline bool pd_is_callable(const struct pd_builtin *f) { return f->on || f->as || f->any; }
/* NULL: there is none. */
const struct pd_builtin *pd_builtin_find(const struct pd_builtin *table, struct pd_chars name);
/* Fails where a call gives what the function does not take: n arguments without names, the first one among them, then
 * those named. */
peridot_status pd_builtin_check(const struct pd_builtin *f, const char *kind, uint32_t line, size_t n,
                                const struct pd_code *named);
peridot_status pd_builtin_call(struct pd_value *out, struct pd_render *r, const struct pd_builtin *f,
                               const struct pd_args *args);

const struct pd_builtin *pd_filter_find(struct pd_chars name);
const struct pd_builtin *pd_test_find(struct pd_chars name);
const struct pd_builtin *pd_function_find(struct pd_chars name);
/* Of a value of this type. */
const struct pd_builtin *pd_method_find(enum pd_value_type type, struct pd_chars name);
/* Whether values of some type have a method of this name. */
bool pd_method_is_known(struct pd_chars name);

/* ---- builtins_text.c, builtins_layout.c, builtins_list.c, numbers.c: for the tables ---- */

enum { PD_FIND_LAST = 1, PD_FIND_MUST = 2 };   /* of pd_str_find; MUST: fails where the text is not found */
/* Of a text, or of what becomes one. Of has_affix and remove_affix, partition, split: 1 at the end, or from there. */
pd_builtin_as pd_str_case, pd_str_is_case, pd_str_lacks, pd_str_pad, pd_str_strip, pd_str_split, pd_str_find,
    pd_str_has_affix, pd_str_remove_affix, pd_str_partition;
pd_builtin_on pd_str_count, pd_str_isascii, pd_str_isspace, pd_str_join, pd_str_replace, pd_str_splitlines,
    pd_str_swapcase, pd_str_title, pd_str_zfill;
pd_builtin_any pd_str_format, pd_filter_format;
pd_builtin_on pd_filter_escape, pd_filter_forceescape, pd_filter_indent, pd_filter_pprint, pd_filter_replace,
    pd_filter_safe, pd_filter_string, pd_filter_striptags, pd_filter_title, pd_filter_tojson, pd_filter_truncate,
    pd_filter_urlencode, pd_filter_wordcount, pd_filter_wordwrap, pd_filter_xmlattr;
/* Of numbers. */
pd_builtin_on pd_filter_abs, pd_filter_float, pd_filter_int, pd_filter_round, pd_function_strftime_now;
/* Of what can be iterated, and of any value. The end: 1 the last; the extreme: 1 the greatest. */
pd_builtin_as pd_filter_end, pd_filter_extreme;
pd_builtin_on pd_filter_attr, pd_filter_batch, pd_filter_default, pd_filter_dictsort, pd_filter_groupby,
    pd_filter_items, pd_filter_join, pd_filter_length, pd_filter_list, pd_filter_reverse, pd_filter_slice,
    pd_filter_sort, pd_filter_sum, pd_filter_unique;

/* A line of a text: without what ends it, and how many bytes that is. */
struct pd_line {
    struct pd_chars text;
    size_t end_size;
};
struct pd_line pd_line_at(struct pd_chars text, size_t at);

/* An attribute by jinja2's path, "a.b.0", or an index; PD_UNSET or none: the value itself. */
peridot_status pd_get_path(struct pd_value *out, struct pd_render *r, const struct pd_value *of,
                           const struct pd_value *path, const struct pd_value *otherwise);

/* ---- operators.c: going through values ---- */

/* One value after another: elements of lists, keys of dicts, characters of texts, and what filters give lazily. */

struct pd_iterator {
    /* The next value; *done: there is none. */
    peridot_status (*next)(struct pd_value *out, bool *done, struct pd_render *r, struct pd_iterator *it);
    struct pd_value source;
    size_t at;
    struct pd_iterator *from;    /* whose values this one changes or chooses */
    /* For what others make of `from`. */
    const struct pd_builtin *builtin;
    struct pd_args args;
    struct pd_value attribute, other;
    bool negated, backwards;
    const void *context;
};

/* An iterator's own values are consumed; all else can be iterated again. Fails for what is not iterable. */
peridot_status pd_iterate(struct pd_iterator *out, struct pd_render *r, const struct pd_value *v);
peridot_status pd_iterate_backwards(struct pd_iterator *out, struct pd_render *r, const struct pd_value *v);
bool pd_is_iterable(const struct pd_value *v);
peridot_status pd_iterator_next(struct pd_value *out, bool *done, struct pd_iterator *it, struct pd_render *r);
/* As a value, in the arena. */
peridot_status pd_iterator_keep(struct pd_value *out, struct pd_render *r, const struct pd_iterator *it);
/* All that is left, as a PD_LIST. */
peridot_status pd_iterator_list(struct pd_value *out, struct pd_render *r, struct pd_iterator *it);
/* list(v). */
peridot_status pd_value_list(struct pd_value *out, struct pd_render *r, const struct pd_value *v);
/* len(v); *known false: it has none. */
size_t pd_value_length(bool *known, const struct pd_value *v);

/* ---- trees ---- */

/* A parsed program: a tree of nodes in one arena. A node's children are lists, linked by `next`; what is in which list
 * is said beside the kinds. Names are resolved when a program is parsed (scope.c): a name is a variable of one of the
 * frames around it. */

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

/* ---- lexer.c ---- */

/* A program's text as tokens. Between the tags all is data; where a line has only a statement or a comment, its
 * indentation goes (lstrip_blocks) and so does the line's end after them (trim_blocks); a "-" beside a tag takes all
 * white space there, a "+" keeps it. */

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

/* ---- lexer.c, expressions.c, statements.c ---- */

/* From tokens to nodes, by jinja2's grammar: lexer.c has what both parsers use, expressions.c and statements.c are
 * the parsers. */

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

/* ---- scope.c ---- */

/* Which variable a name is. As in jinja2, that is settled before a program runs: a frame has a variable of its own for
 * each name that is set anywhere in it, which begins as the one of the same name further out; "if" is no frame. */

peridot_status pd_scope_resolve(struct pd_template *t);

/* ---- scope.c: frames ---- */

/* The variables of a scope while it runs. */

struct pd_frame {
    struct pd_frame *outer;      /* of the scope around, where a macro was made */
    struct pd_value *at;         /* [scope->n]; PD_UNSET: it has no value */
};

peridot_status pd_frame_create(struct pd_frame **out, struct pd_render *r, const struct pd_scope *scope,
                               struct pd_frame *outer);
/* As it was when it was created: parameters have no values, others those that they begin with. */
peridot_status pd_frame_reset(struct pd_frame *f, struct pd_render *r, const struct pd_scope *scope);
/* The variable that a name in r->frame stands for. */
struct pd_value *pd_frame_variable(const struct pd_render *r, const struct pd_code *name);

/* ---- operators.c ---- */

/* Python's operators on values. */

/* op: as the lexer gives it. */
peridot_status pd_operate(struct pd_value *out, struct pd_render *r, unsigned op, const struct pd_value *a,
                          const struct pd_value *b);
peridot_status pd_negate(struct pd_value *out, struct pd_render *r, const struct pd_value *v, bool minus);
/* One comparison, op of a PD_CODE_OPERAND. */
peridot_status pd_compare(bool *out, struct pd_render *r, unsigned op, const struct pd_value *a,
                          const struct pd_value *b);
/* v[which], v[from:to:step]. */
peridot_status pd_get_element(struct pd_value *out, bool *found, struct pd_render *r, const struct pd_value *v,
                              const struct pd_value *which);
peridot_status pd_get_slice(struct pd_value *out, struct pd_render *r, const struct pd_value *v,
                            const struct pd_value bounds[3]);

/* ---- members.c: the variable loop ---- */

/* The variable `loop`: where a loop is, with jinja2's peeking ahead. */

struct pd_loop {
    struct pd_iterator it;
    struct pd_value iterated;            /* whose length is the loop's; PD_UNSET: that is not known yet */
    struct pd_value before, current, after;
    bool has_after, has_length, has_changed;
    int64_t index0;                      /* -1 before the first */
    int64_t depth0;                      /* calls of itself around it */
    /* loop(x): what the loop, which must be recursive, writes for the values of x; its code, and the frame around. */
    peridot_status (*call)(struct pd_value *out, struct pd_render *r, const struct pd_loop *loop,
                           const struct pd_args *args);
    const struct pd_code *code;
    struct pd_frame *frame;
    size_t length;
    struct pd_value changed;             /* the arguments of loop.changed, last time */
};

peridot_status pd_loop_next(bool *done, struct pd_loop *l, struct pd_render *r);

/* ---- members.c ---- */

/* v.name and v[which], as jinja2's sandbox looks for them: attributes before keys with a dot, keys before attributes in
 * brackets. */

/* An attribute that the object has in Python, not a key. */
peridot_status pd_get_attribute(struct pd_value *out, bool *found, struct pd_render *r, const struct pd_value *of,
                                struct pd_chars name);
peridot_status pd_get_member(struct pd_value *out, struct pd_render *r, const struct pd_value *of,
                             struct pd_chars name);
peridot_status pd_get_item(struct pd_value *out, struct pd_render *r, const struct pd_value *of,
                           const struct pd_value *which);

/* ---- evaluate.c ---- */

/* What {% macro %} makes. */
struct pd_macro {
    const struct pd_code *code;
    struct pd_frame *frame;              /* where it was made */
    peridot_status (*call)(struct pd_value *out, struct pd_render *r, const struct pd_macro *macro,
                           const struct pd_args *args);
};

peridot_status pd_evaluate(struct pd_value *out, struct pd_render *r, const struct pd_code *code);

/* ---- print.c ---- */

/* Values as text: str(), repr() and json.dumps() of Python. */

peridot_status pd_print(struct pd_builder *b, const struct pd_value *v);
peridot_status pd_print_repr(struct pd_builder *b, const struct pd_value *v);
/* str(v) as a text: of a text, the text itself. */
peridot_status pd_value_string(struct pd_chars *out, struct pd_render *r, const struct pd_value *v);
/* Escaped for HTML, and marked safe; what is marked is not escaped again. */
peridot_status pd_value_escape(struct pd_value *out, struct pd_render *r, const struct pd_value *v);

/* The pairs of a dict in the order of their keys, [d->n]. */
peridot_status pd_dict_sorted(struct pd_pair **out, struct pd_render *r, const struct pd_dict *d);

struct pd_json_style {
    bool ascii, sorted;              /* ensure_ascii, sort_keys */
    bool lines;                      /* an item a line, behind `indent` for each level */
    struct pd_chars indent, comma, colon;
};
peridot_status pd_print_json(struct pd_builder *b, const struct pd_value *v, const struct pd_json_style *style);

/* ---- print.c: formats ---- */

/* Texts with values put in: format % values, and str.format. */

/* The first argument is the first value. */
peridot_status pd_printf(struct pd_value *out, struct pd_render *r, const struct pd_value *format,
                         const struct pd_args *args);

/* ---- numbers.c ---- */

/* Numbers as Python writes and reads them, whatever the locale. */

enum { PD_NUMBER_SIZE = 32 };

/* The shortest digits that are this number and no other: "1.0", "1e+16", "1e-07", "nan". Gives the size. */
size_t pd_float_write(char out[PD_NUMBER_SIZE], double f);
/* As int(text, base) and float(text) read them; *ok: whether they would. An integer beyond 64 bits fails. */
peridot_status pd_int_read(int64_t *out, bool *ok, struct pd_render *r, struct pd_chars text, int64_t base);
void pd_float_read(double *out, bool *ok, struct pd_chars text);
/* Without what is behind the point. *ok: whether it is a number; fails where it is none of 64 bits. */
peridot_status pd_int_from_float(int64_t *out, bool *ok, struct pd_render *r, double f);

#endif
