/* Values of a render. All but namespaces, cyclers and joiners are immutable once made, and all live in the render's
 * arena: nothing is freed before its end, and its limits (render.h) bound what a program can make.
 *
 * Each byte of a text is the program's own or not; a result of an operation on texts keeps that byte by byte. Numbers,
 * lists and dicts have one mark for what is written when they are: digits, brackets, commas. */
#ifndef PD_TEXT_TEMPLATE_VALUE_H
#define PD_TEXT_TEMPLATE_VALUE_H

#include "text/template/render.h"

#include <stdbool.h>
#include <stdint.h>
#include <yyjson.h>

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
/* What a client's JSON says. Texts are borrowed. */
peridot_status pd_value_from_json(struct pd_value *out, struct pd_render *r, yyjson_val *json);

static inline bool pd_is_text(const struct pd_value *v) { return v->type == PD_TEXT; }
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
/* Its keys, values or items as a PD_VIEW. */
peridot_status pd_dict_view(struct pd_value *out, struct pd_render *r, const struct pd_dict *d, enum pd_view_kind kind);

#endif
