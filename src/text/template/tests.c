#include "text/template/builtin.h"

#include "base/num.h"
#include "text/template/iterate.h"
#include "text/template/lexer.h"
#include "text/template/operators.h"
#include "text/template/print.h"
#include "text/template/unicode.h"

/* The tests of "is". */

#define TEST(name) static PD_BUILTIN(name)
#define GIVE(condition)                     \
    do {                                    \
        (void)r, (void)args;                \
        *out = pd_value_bool(condition);    \
        return PERIDOT_OK;                  \
    } while (0)

TEST(is_defined) { GIVE(a->type != PD_UNDEFINED); }
TEST(is_undefined) { GIVE(a->type == PD_UNDEFINED); }
TEST(is_none) { GIVE(a->type == PD_NONE); }
TEST(is_boolean) { GIVE(a->type == PD_BOOL); }
TEST(is_true) { GIVE(a->type == PD_BOOL && a->b); }
TEST(is_false) { GIVE(a->type == PD_BOOL && !a->b); }
TEST(is_integer) { GIVE(a->type == PD_INT || a->type == PD_HUGE); }
TEST(is_float) { GIVE(a->type == PD_FLOAT); }
TEST(is_number) { GIVE(pd_is_number(a) || a->type == PD_HUGE); }
TEST(is_string) { GIVE(a->type == PD_TEXT); }
TEST(is_mapping) { GIVE(a->type == PD_DICT); }
TEST(is_iterable) { GIVE(pd_is_iterable(a)); }
TEST(is_callable) { GIVE(a->type >= PD_MACRO || a->type == PD_UNDEFINED); }
TEST(is_escaped) { GIVE(a->markup); }

/* Of what is looked up in a dict of Python's. */
static peridot_status check_hashable(const struct pd_render *r, const struct pd_value *v)
{
    const bool good = v->type != PD_LIST && v->type != PD_DICT;
    return good ? PERIDOT_OK : pd_render_fail(r, "a %s is no name", pd_value_type_name(v));
}

TEST(is_filter)
{
    PD_TRY(check_hashable(r, a));
    GIVE(a->type == PD_TEXT && r->is_filter(a));
}

TEST(is_test)
{
    PD_TRY(check_hashable(r, a));
    GIVE(a->type == PD_TEXT && pd_test_find(a->text));
}

TEST(is_sequence)
{
    GIVE(a->type == PD_TEXT || a->type == PD_DICT || a->type == PD_UNDEFINED ||
         (pd_is_listed(a) && a->type != PD_VIEW));
}

static peridot_status remainder_is(struct pd_value *out, struct pd_render *r, const struct pd_value *v,
                                   const struct pd_value *by, int64_t wanted)
{
    struct pd_value rest;
    const struct pd_value result = pd_value_int(wanted, false);
    bool equal;
    PD_TRY(pd_operate(&rest, r, PD_OP('%', 0), v, by));
    PD_TRY(pd_value_equals(&equal, r, &rest, &result));
    *out = pd_value_bool(equal);
    return PERIDOT_OK;
}

TEST(is_odd)
{
    const struct pd_value two = pd_value_int(2, true);
    (void)args;
    return remainder_is(out, r, a, &two, 1);
}

TEST(is_even)
{
    const struct pd_value two = pd_value_int(2, true);
    (void)args;
    return remainder_is(out, r, a, &two, 0);
}

TEST(is_divisible)
{
    (void)args;
    return remainder_is(out, r, a, &a[1], 0);
}

/* What has a case at all has this one, and something has. */
static peridot_status all_have_case(struct pd_value *out, struct pd_render *r, const struct pd_value *v,
                                    bool (*has)(uint32_t), bool (*has_not)(uint32_t))
{
    struct pd_chars text;
    uint32_t code;
    bool any = false, others = false;
    PD_TRY(pd_value_string(&text, r, v));
    PD_TRY(pd_render_spend(r, text.size));
    for (size_t at = 0; at < text.size;) {
        at += pd_chars_next(&code, text, at);
        any |= has(code);
        others |= has_not(code);
    }
    *out = pd_value_bool(any && !others);
    return PERIDOT_OK;
}

TEST(is_lower)
{
    (void)args;
    return all_have_case(out, r, a, pd_char_is_lower, pd_char_is_upper);
}

TEST(is_upper)
{
    (void)args;
    return all_have_case(out, r, a, pd_char_is_upper, pd_char_is_lower);
}

static bool is_same(const struct pd_value *a, const struct pd_value *b)
{
    if (a->type != b->type) return false;
    switch (a->type) {
    case PD_NONE: return true;
    case PD_BOOL: return a->b == b->b;
    case PD_TEXT: return a->text.data == b->text.data && a->text.size == b->text.size;
    case PD_INT: return a->i == b->i && a->i >= -5 && a->i <= 256;   /* of which CPython has one each */
    case PD_LIST: case PD_TUPLE: return a->list.at == b->list.at && a->list.n == b->list.n;
    case PD_DICT: case PD_NAMESPACE: return a->dict == b->dict;
    default: return false;
    }
}

TEST(is_sameas) { GIVE(is_same(a, &a[1])); }

TEST(is_in)
{
    bool found;
    PD_TRY(pd_contains(&found, r, &a[1], a));
    GIVE(found);
}

static peridot_status compare(struct pd_value *out, struct pd_render *r, const struct pd_value *a, unsigned op)
{
    bool holds;
    PD_TRY(pd_compare(&holds, r, op, a, &a[1]));
    *out = pd_value_bool(holds);
    return PERIDOT_OK;
}

#define COMPARISON(name, op)        \
    TEST(name)                      \
    {                               \
        (void)args;                 \
        return compare(out, r, a, op); \
    }
COMPARISON(is_eq, PD_OP('=', '='))
COMPARISON(is_ne, PD_OP('!', '='))
COMPARISON(is_lt, PD_OP('<', 0))
COMPARISON(is_le, PD_OP('<', '='))
COMPARISON(is_gt, PD_OP('>', 0))
COMPARISON(is_ge, PD_OP('>', '='))

static const struct pd_builtin tests[] = {
    {"defined", "", is_defined}, {"undefined", "", is_undefined}, {"none", "", is_none}, {"boolean", "", is_boolean},
    {"true", "", is_true}, {"false", "", is_false}, {"integer", "", is_integer}, {"float", "", is_float},
    {"number", "", is_number}, {"string", "", is_string}, {"mapping", "", is_mapping},
    {"iterable", "", is_iterable}, {"sequence", "", is_sequence}, {"callable", "", is_callable},
    {"escaped", "", is_escaped}, {"filter", "", is_filter}, {"test", "", is_test}, {"odd", "", is_odd},
    {"even", "", is_even}, {"divisibleby", "num!", is_divisible}, {"lower", "", is_lower}, {"upper", "", is_upper},
    {"sameas", "other!", is_sameas}, {"in", "seq!", is_in}, {"==", "other!", is_eq}, {"eq", "other!", is_eq},
    {"equalto", "other!", is_eq}, {"!=", "other!", is_ne}, {"ne", "other!", is_ne}, {"<", "other!", is_lt},
    {"lt", "other!", is_lt}, {"lessthan", "other!", is_lt}, {"<=", "other!", is_le}, {"le", "other!", is_le},
    {">", "other!", is_gt}, {"gt", "other!", is_gt}, {"greaterthan", "other!", is_gt}, {">=", "other!", is_ge},
    {"ge", "other!", is_ge},
};

const struct pd_builtin *pd_test_find(struct pd_chars name)
{
    for (size_t i = 0; i < PD_COUNT(tests); i++)
        if (pd_chars_are(name, tests[i].name)) return &tests[i];
    return NULL;
}
