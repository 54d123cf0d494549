/* JSON Schema to rules. */
#include "grammar/grammar.h"

#include "base/base.h"
#include "grammar/grammar_.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READ_COST 4000             /* steps for the four limits of a schema: digits are found by printing them */

/* What an alternative says, for values of one type: a rule from its start to its end. */
typedef peridot_status write_type(struct pd_compiler *c, const struct pd_nodes *of);

static peridot_status fail_empty(const struct pd_nodes *of, const char *what)
{
    return pd_fail(PERIDOT_ERROR_ARGUMENT, PD_PATH ": no value is valid: %s", of->n ? of->at[0].path : "#", what);
}

/* ---- null, true and false, numbers ---- */

static peridot_status write_null(struct pd_compiler *c, const struct pd_nodes *of)
{
    (void)of;
    pd_nfa_skip(c->r, pd_nfa_text(c->r, PD_NFA_START, "null", 4), PD_NFA_END);
    return PERIDOT_OK;
}

static peridot_status write_boolean(struct pd_compiler *c, const struct pd_nodes *of)
{
    (void)of;
    pd_nfa_skip(c->r, pd_nfa_text(c->r, PD_NFA_START, "true", 4), PD_NFA_END);
    pd_nfa_skip(c->r, pd_nfa_text(c->r, PD_NFA_START, "false", 5), PD_NFA_END);
    return PERIDOT_OK;
}

/* *limit becomes the one of `key` if that is narrower. */
static peridot_status narrow(struct pd_decimal *limit, const struct pd_node *node, const char *key, bool exclusive,
                             int sign)
{
    struct pd_decimal other;
    yyjson_val *value = yyjson_obj_get(node->value, key);
    if (!value) return PERIDOT_OK;
    if (!yyjson_is_num(value))
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s at " PD_PATH " is not a number", key, node->path);
    if (!pd_decimal_read(&other, value, exclusive))
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s at " PD_PATH " has more digits than can be compared exactly", key,
                       node->path);
    double further = limit->given ? sign * (other.value - limit->value) : 1;
    if (further > 0 || (further == 0 && exclusive)) *limit = other;
    return PERIDOT_OK;
}

static peridot_status add_multiple(struct pd_multiple *m, const struct pd_node *node)
{
    yyjson_val *value = yyjson_obj_get(node->value, "multipleOf");
    if (!value) return PERIDOT_OK;
    if (!yyjson_is_num(value) || yyjson_get_num(value) <= 0)
        return pd_fail(PERIDOT_ERROR_FORMAT, "multipleOf at " PD_PATH " is not a number above 0", node->path);
    if (pd_multiple_add(m, value)) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "multipleOf at " PD_PATH " has too many digits", node->path);
}

/* A limit, or, as drafts before 6 have it, whether the one beside it is exclusive. */
static peridot_status narrow_both(struct pd_decimal *limit, const struct pd_node *node, const char *key,
                                  const char *exclusive_key, int sign)
{
    yyjson_val *exclusive = yyjson_obj_get(node->value, exclusive_key);
    bool flag = yyjson_is_bool(exclusive) && yyjson_obj_get(node->value, key);
    PD_TRY(narrow(limit, node, key, flag && yyjson_is_true(exclusive), sign));
    return flag ? PERIDOT_OK : narrow(limit, node, exclusive_key, true, sign);
}

static peridot_status find_range(struct pd_number_range *range, struct pd_work *work, const struct pd_nodes *of,
                                 bool integer)
{
    PD_TRY(pd_work_spend(work, READ_COST * of->n));
    range->multiple.of = integer;
    for (uint32_t i = 0; i < of->n; i++) {
        PD_TRY(narrow_both(&range->min, &of->at[i], "minimum", "exclusiveMinimum", 1));
        PD_TRY(narrow_both(&range->max, &of->at[i], "maximum", "exclusiveMaximum", -1));
        PD_TRY(add_multiple(&range->multiple, &of->at[i]));
        if (range->multiple.of > PD_MAX_MULTIPLE || range->multiple.places > PD_MAX_PLACES)
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "multipleOf at " PD_PATH " is too large to be supported, or has "
                                                      "too many places", of->at[i].path);
    }
    const struct pd_decimal *min = &range->min, *max = &range->max;
    if (!min->given || !max->given || min->value < max->value ||
        (min->value == max->value && !min->exclusive && !max->exclusive))
        return PERIDOT_OK;
    return fail_empty(of, "its limits leave no number");
}

static peridot_status write_integer(struct pd_compiler *c, const struct pd_nodes *of)
{
    struct pd_number_range range = {0};
    PD_TRY(find_range(&range, &c->r->work, of, true));
    pd_write_number(&c->values, PD_NFA_START, &range, PD_NFA_END);
    return PERIDOT_OK;
}

static peridot_status write_number(struct pd_compiler *c, const struct pd_nodes *of)
{
    struct pd_number_range range = {0};
    PD_TRY(find_range(&range, &c->r->work, of, false));
    pd_write_number(&c->values, PD_NFA_START, &range, PD_NFA_END);
    return PERIDOT_OK;
}

/* ---- values ---- */

/* An alternative among others that nothing satisfies is left out. */
static peridot_status write_alternative(struct pd_compiler *c, const struct pd_nodes *of, bool alone)
{
    static const struct {
        unsigned type;
        write_type *write;
    } writers[] = {{PD_JSON_NULL, write_null}, {PD_JSON_BOOLEAN, write_boolean}, {PD_JSON_FRACTION, write_number},
                   {PD_JSON_INTEGER, write_integer}, {PD_JSON_STRING, pd_write_string}, {PD_JSON_ARRAY, pd_write_array},
                   {PD_JSON_OBJECT, pd_write_object}};
    struct pd_constants constants = {0};
    unsigned types;
    bool given;
    PD_TRY(pd_nodes_types(&types, &c->d, of));
    peridot_status status = pd_constants_find(&constants, &given, &c->d, of, types);
    if (status == PERIDOT_OK && constants.n && (c->values.keywords || c->values.tags))
        status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "arguments that are constants are not supported in this format of "
                         "calls");
    for (size_t i = 0; i < constants.n && status == PERIDOT_OK && c->r->status == PERIDOT_OK; i++)
        pd_write_constant(&c->values, PD_NFA_START, constants.at[i], PD_NFA_END);
    bool found = constants.n > 0;
    pd_constants_free(&constants);
    if (status != PERIDOT_OK) return status;
    if (c->r->status != PERIDOT_OK) return pd_fail_prefix(c->r->status, of->n ? of->at[0].path : "#");
    if (given) return found || !alone ? PERIDOT_OK : fail_empty(of, "its enum, const and type leave none");
    if (types == 0 && alone) return fail_empty(of, "its types exclude each other");
    if (types & PD_JSON_FRACTION) types &= ~(unsigned)PD_JSON_INTEGER;   /* numbers are both */
    for (size_t i = 0; i < PD_COUNT(writers); i++)
        if (types & writers[i].type) PD_TRY(writers[i].write(c, of));
    return PERIDOT_OK;
}

/* Where there are several, those that are not supported or that no value satisfies are left out. */
static peridot_status write_alternatives(struct pd_compiler *c, const struct pd_alternatives *a)
{
    peridot_status failed = PERIDOT_OK;
    bool any = a->n == 0;
    c->chooses = c->chooses || a->n > 1;
    for (size_t i = 0; i < a->n; i++) {
        size_t n_edges = c->r->n_edges, n_jobs = c->n_jobs;
        peridot_status status = write_alternative(c, &a->of[i], a->n == 1);
        if (status != PERIDOT_ERROR_UNSUPPORTED && status != PERIDOT_ERROR_ARGUMENT) {
            PD_TRY(status);
            any = true;
            continue;
        }
        failed = status;
        c->r->n_edges = n_edges;   /* of what it wrote until it failed; its states lead nowhere */
        c->n_jobs = n_jobs;
        if (c->r->status != PERIDOT_OK) return c->r->status;
    }
    return any ? PERIDOT_OK : failed;
}

static peridot_status write_tagged(struct pd_compiler *c, const struct pd_nodes *of)
{
    struct pd_chars strings;
    peridot_status status = pd_strings_find(&strings, c, of);
    if (status == PERIDOT_OK && strings.n_edges == 0)
        status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, PD_PATH ": no string is valid, which this format of calls has here",
                         of->n ? of->at[0].path : "#");
    if (status == PERIDOT_OK) pd_write_tagged(&c->values, PD_NFA_START, &strings, PD_NFA_END);
    pd_chars_free(&strings);
    return status;
}

static peridot_status write_rule(struct pd_compiler *c, const struct pd_compiler_job *job)
{
    struct pd_alternatives a = {0};
    peridot_status status = PERIDOT_OK;
    pd_rules_begin(c->r);
    c->n_together = job->nodes.n;
    c->values.keywords = job->keywords && !c->tags;
    c->values.tags = job->keywords || job->tagged ? c->tags : NULL;
    if (job->tagged) status = write_tagged(c, &job->nodes);
    else if (job->constant) pd_write_constant(&c->values, PD_NFA_START, job->constant, PD_NFA_END);
    else status = pd_alternatives_find(&a, &c->d, &job->nodes);
    if (status == PERIDOT_OK && !job->tagged) status = write_alternatives(c, &a);
    pd_alternatives_free(&a);
    if (status != PERIDOT_OK) return status;
    if (c->r->status == PERIDOT_OK) pd_rules_end(c->r, job->rule);
    return c->r->status == PERIDOT_OK ? PERIDOT_OK
                                      : pd_fail_prefix(c->r->status, job->nodes.n ? job->nodes.at[0].path : "#");
}

/* The whole text: the value, and a space or a newline beside it, which models like to write. */
static peridot_status write_text(struct pd_compiler *c, uint32_t text_rule, uint32_t value_rule)
{
    pd_rules_begin(c->r);
    uint32_t before = pd_nfa_state(c->r), after = pd_nfa_state(c->r);
    pd_nfa_skip(c->r, PD_NFA_START, before);
    pd_nfa_any_of(c->r, PD_NFA_START, " ", before);
    pd_nfa_call(c->r, before, value_rule, after);
    pd_nfa_skip(c->r, after, PD_NFA_END);
    pd_nfa_any_of(c->r, after, " \n", PD_NFA_END);
    return pd_rules_end(c->r, text_rule);
}

/* Values of arguments are objects, whether their schema says so or not. */
static bool wants_object(const struct pd_compiler *c)
{
    bool says_so = yyjson_equals_str(yyjson_obj_get(c->d.root, "type"), "object") &&
                   !yyjson_obj_get(c->d.root, "nullable");
    return c->arguments && !says_so;
}

static peridot_status write_rules(struct pd_compiler *c, uint32_t text_rule)
{
    static const yyjson_val object[] = {   /* {"type": "object"} */
        {.tag = (uint64_t)1 << YYJSON_TAG_BIT | YYJSON_TYPE_OBJ, .uni.ofs = 3 * sizeof(yyjson_val)},
        {.tag = (uint64_t)4 << YYJSON_TAG_BIT | YYJSON_TYPE_STR, .uni.str = "type"},
        {.tag = (uint64_t)6 << YYJSON_TAG_BIT | YYJSON_TYPE_STR, .uni.str = "object"}};
    struct pd_nodes root = {.at = {{c->d.root, "#"}}, .n = 1};
    uint32_t value_rule;
    if (wants_object(c)) root.at[root.n++] = (struct pd_node){(yyjson_val *)object, "#"};   /* nobody writes to it */
    pd_values_begin(&c->values, c->r, c->delimiter);
    PD_TRY(pd_compiler_root(&value_rule, c, &root));
    for (; c->n_done < c->n_jobs; c->n_done++) {
        const struct pd_compiler_job job = c->jobs[c->n_done];   /* they move when there are more */
        PD_TRY(write_rule(c, &job));
    }
    PD_TRY(pd_values_finish(&c->values));
    if (c->arguments) c->r->starts[text_rule] = c->r->starts[value_rule];
    else PD_TRY(write_text(c, text_rule, value_rule));
    PD_TRY(pd_rules_finish(c->r));
    if (c->r->states[c->r->starts[text_rule]].height != PD_NEVER) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_ARGUMENT, "#: no value is valid: what is required contradicts itself, never ends, or "
                                          "nests too deep");
}

/* A rule within alternatives that cannot be written may be in one that can be left out: all is written again, and who
 * needs that rule fails as it did. */
static peridot_status schema_compile(struct pd_compiler *c)
{
    for (;;) {
        peridot_status status = write_rules(c, pd_rules_add(c->r));
        bool again = c->chooses && c->r->status == PERIDOT_OK && c->n_done > 0 && c->n_done < c->n_jobs &&
                     (status == PERIDOT_ERROR_UNSUPPORTED || status == PERIDOT_ERROR_ARGUMENT);
        if (!again || !pd_compiler_give_up(c, status)) return status;
    }
}

static peridot_status compile_schema(struct pd_compiler *c, const char *schema, size_t size)
{
    peridot_status status = pd_document_open(&c->d, &c->r->work, schema, size);
    if (status == PERIDOT_OK) status = schema_compile(c);
    pd_document_close(&c->d);
    pd_compiler_free(c);
    return status;
}

peridot_status pd_schema_compile_within(struct pd_rules *out, uint64_t max_work, const char *schema, size_t size)
{
    struct pd_compiler c = {.r = out};
    *out = (struct pd_rules){.work.max = max_work};
    return compile_schema(&c, schema, size);
}

peridot_status pd_schema_compile(struct pd_rules *out, const char *schema, size_t size)
{
    return pd_schema_compile_within(out, PD_MAX_WORK, schema, size);
}

peridot_status pd_schema_compile_arguments(struct pd_rules *out, struct pd_work *work,
                                           const struct pd_argument_form *form, const char *schema, size_t size)
{
    struct pd_compiler c = {.r = out, .arguments = true, .keywords = form->keywords, .tags = form->tags,
        .delimiter = form->delimiter};
    *out = (struct pd_rules){.work = *work};
    peridot_status status = compile_schema(&c, schema, size);
    *work = out->work;
    return status;
}
