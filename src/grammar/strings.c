/* Strings of a schema. */
#include "base/base.h"
#include "grammar/grammar_.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* *all becomes the strings that the pattern matches too. */
static peridot_status strings_add_pattern(struct pd_chars *all, bool *any, struct pd_work *work, const char *pattern,
                                          size_t size)
{
    struct pd_chars one;
    peridot_status status = pd_chars_from_pattern(&one, work, pattern, size);
    if (status == PERIDOT_OK && *any) {
        status = pd_chars_intersect(all, &one);
        pd_chars_free(&one);
    } else if (!*any) {
        *all = one;
        *any = true;
    } else {
        pd_chars_free(&one);
    }
    return status;
}

static peridot_status add_patterns(struct pd_chars *all, bool *any, struct pd_work *work, const struct pd_node *node)
{
    yyjson_val *pattern, *format;
    PD_TRY(pd_node_get(&pattern, node, "pattern", YYJSON_TYPE_STR));
    PD_TRY(pd_node_get(&format, node, "format", YYJSON_TYPE_STR));
    if (pattern) {
        peridot_status status = strings_add_pattern(all, any, work, yyjson_get_str(pattern), yyjson_get_len(pattern));
        char place[512];
        snprintf(place, sizeof place, "pattern at " PD_PATH, node->path);
        if (status != PERIDOT_OK) return pd_fail_prefix(status, place);
    }
    const char *known = format ? pd_format_pattern(yyjson_get_str(format)) : NULL;
    return known ? strings_add_pattern(all, any, work, known, strlen(known)) : PERIDOT_OK;
}

/* *all becomes those of some length too. */
static peridot_status add_length(struct pd_chars *all, bool *any, struct pd_work *work, uint32_t min, uint32_t max)
{
    struct pd_chars length;
    if (*any && min == 0 && max == UINT32_MAX) return PERIDOT_OK;
    peridot_status status = pd_chars_from_length(&length, work, min, max);
    if (status == PERIDOT_OK && *any) {
        status = pd_chars_intersect(all, &length);
    } else if (!*any) {
        *all = length;
        *any = true;
        return status;
    }
    pd_chars_free(&length);
    return status;
}

peridot_status pd_write_string(struct pd_compiler *c, const struct pd_nodes *of)
{
    struct pd_chars all = {0};
    bool any = false;
    uint32_t min, max;
    PD_TRY(pd_nodes_counts(&min, &max, of, "minLength", "maxLength"));
    peridot_status status = PERIDOT_OK;
    for (uint32_t i = 0; i < of->n && status == PERIDOT_OK; i++)
        status = add_patterns(&all, &any, &c->r->work, &of->at[i]);
    if (status == PERIDOT_OK && any) {
        status = add_length(&all, &any, &c->r->work, min, max);
        if (status == PERIDOT_OK) pd_write_strings(&c->values, PD_NFA_START, &all, PD_NFA_END);
        else pd_fail_prefix(status, of->at[0].path);
    }
    if (status == PERIDOT_OK && !any) pd_write_length(&c->values, PD_NFA_START, min, max, PD_NFA_END);
    pd_chars_free(&all);
    return status;
}

/* ---- as a set ---- */

/* Adds those of an alternative. */
static peridot_status add_strings(struct pd_chars *out, struct pd_compiler *c, const struct pd_nodes *of)
{
    struct pd_constants constants = {0};
    struct pd_chars all = {0};
    unsigned types;
    bool given, any = false;
    uint32_t min, max;
    PD_TRY(pd_nodes_types(&types, &c->d, of));
    peridot_status status = pd_constants_find(&constants, &given, &c->d, of, types & PD_JSON_STRING);
    for (size_t i = 0; i < constants.n && status == PERIDOT_OK; i++) {
        const struct pd_key text = {yyjson_get_str(constants.at[i]), yyjson_get_len(constants.at[i])};
        pd_names_add(out, text);
    }
    pd_constants_free(&constants);
    if (given || !(types & PD_JSON_STRING) || status != PERIDOT_OK) return status;
    status = pd_nodes_counts(&min, &max, of, "minLength", "maxLength");
    for (uint32_t i = 0; i < of->n && status == PERIDOT_OK; i++)
        status = add_patterns(&all, &any, &c->r->work, &of->at[i]);
    if (status == PERIDOT_OK) status = add_length(&all, &any, &c->r->work, min, max);
    if (status == PERIDOT_OK) pd_chars_add(out, &all, PD_CHARS_START, PD_CHARS_END);
    pd_chars_free(&all);
    return status == PERIDOT_OK ? out->status : status;
}

peridot_status pd_strings_find(struct pd_chars *out, struct pd_compiler *c, const struct pd_nodes *nodes)
{
    struct pd_alternatives a;
    pd_chars_begin(out, &c->r->work);
    peridot_status status = pd_alternatives_find(&a, &c->d, nodes);
    for (size_t i = 0; i < a.n && status == PERIDOT_OK; i++) status = add_strings(out, c, &a.of[i]);
    pd_alternatives_free(&a);
    return status == PERIDOT_OK ? out->status : status;
}

/* ---- constants ---- */

void pd_constants_free(struct pd_constants *c)
{
    free(c->at);
    *c = (struct pd_constants){0};
}

static peridot_status add_value(struct pd_constants *c, yyjson_val *value)
{
    PD_TRY(pd_array_reserve(&c->at, &c->capacity, c->n, 1, sizeof *c->at, "constants"));
    c->at[c->n++] = value;
    return PERIDOT_OK;
}

/* Whether all schemas from number `first` on that have constants have this one. */
static peridot_status is_in_all(bool *out, struct pd_index *x, const struct pd_nodes *of, uint32_t first,
                                yyjson_val *value)
{
    *out = true;
    for (uint32_t i = first; i < of->n && *out; i++) {
        yyjson_val *constant = yyjson_obj_get(of->at[i].value, "const"),
                   *list = yyjson_obj_get(of->at[i].value, "enum");
        if (constant) PD_TRY(pd_index_equals(out, x, constant, value));
        if (list && *out) PD_TRY(pd_index_has(out, x, list, value));
    }
    return PERIDOT_OK;
}

static peridot_status check_keywords(bool *any, const struct pd_nodes *of)
{
    *any = false;
    for (uint32_t i = 0; i < of->n; i++) {
        yyjson_val *list;
        PD_TRY(pd_node_get(&list, &of->at[i], "enum", YYJSON_TYPE_ARR));
        *any = *any || list || yyjson_obj_get(of->at[i].value, "const");
    }
    for (uint32_t i = 0; *any && i < of->n; i++)
        if (pd_node_find_limit(&of->at[i]))
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED,
                           "keyword %s at " PD_PATH " is not supported beside enum and const",
                           pd_node_find_limit(&of->at[i]), of->at[i].path);
    return PERIDOT_OK;
}

peridot_status pd_constants_find(struct pd_constants *out, bool *given, struct pd_document *d,
                                 const struct pd_nodes *of, unsigned types)
{
    PD_TRY(check_keywords(given, of));
    for (uint32_t i = 0; i < of->n; i++) {
        yyjson_val *constant = yyjson_obj_get(of->at[i].value, "const"),
                   *list = yyjson_obj_get(of->at[i].value, "enum"), *value;
        size_t n = constant ? 1 : yyjson_arr_size(list);
        yyjson_arr_iter members = yyjson_arr_iter_with(list);
        PD_TRY(pd_work_spend(d->work, n));
        for (size_t k = 0; k < n; k++) {
            bool in_all;
            value = constant ? constant : yyjson_arr_iter_next(&members);
            if (!(types & pd_json_type_of(value))) continue;
            PD_TRY(is_in_all(&in_all, &d->index, of, constant ? i : i + 1, value));
            if (in_all) PD_TRY(add_value(out, value));
        }
        if (constant || list) break;
    }
    return PERIDOT_OK;
}

/* Those of an alternative, of which one may be there already. */
static peridot_status add_all(struct pd_constants *out, bool *finite, struct pd_document *d, const struct pd_nodes *of)
{
    static const yyjson_val plain[] = {{.tag = YYJSON_TYPE_NULL}, {.tag = YYJSON_TYPE_BOOL | YYJSON_SUBTYPE_FALSE},
                                       {.tag = YYJSON_TYPE_BOOL | YYJSON_SUBTYPE_TRUE}};
    bool given;
    unsigned types;
    PD_TRY(pd_nodes_types(&types, d, of));
    PD_TRY(pd_constants_find(out, &given, d, of, types));
    if (given) return PERIDOT_OK;
    *finite = *finite && !(types & ~(unsigned)(PD_JSON_NULL | PD_JSON_BOOLEAN));
    for (size_t i = 0; i < PD_COUNT(plain) && *finite; i++) {
        yyjson_val *value = (yyjson_val *)&plain[i];   /* which nobody writes to */
        if (types & pd_json_type_of(value)) PD_TRY(add_value(out, value));
    }
    return PERIDOT_OK;
}

peridot_status pd_constants_may_equal(bool *out, struct pd_document *d, yyjson_val *a, yyjson_val *b)
{
    if (!yyjson_is_str(a) || !yyjson_is_str(b)) return pd_index_may_equal(out, &d->index, a, b);
    *out = yyjson_equals_strn(a, yyjson_get_str(b), yyjson_get_len(b));
    return pd_work_spend(d->work, 2 + (*out ? yyjson_get_len(a) / 8 : 0));
}

/* Numbers that some readers take for the same are left out but for the first. */
static peridot_status leave_each_once(struct pd_constants *c, struct pd_document *d)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        bool same = false;
        for (size_t k = 0; k < n && !same; k++) PD_TRY(pd_constants_may_equal(&same, d, c->at[k], c->at[i]));
        if (!same) c->at[n++] = c->at[i];
    }
    c->n = n;
    return PERIDOT_OK;
}

peridot_status pd_constants_find_all(struct pd_constants *out, bool *finite, struct pd_document *d,
                                     const struct pd_nodes *nodes)
{
    struct pd_alternatives a;
    *finite = true;
    peridot_status status = pd_alternatives_find(&a, d, nodes);
    for (size_t i = 0; i < a.n && status == PERIDOT_OK && *finite; i++) status = add_all(out, finite, d, &a.of[i]);
    pd_alternatives_free(&a);
    return status == PERIDOT_OK && *finite ? leave_each_once(out, d) : status;
}

/* ---- formats ---- */

/* Each pattern is of valid texts alone, and of those that are useful: RFC 3339 for dates and times, without leap
 * seconds; RFC 5321 without quotes; RFC 1123; RFC 4291; RFC 9562; RFC 3986 with a name that DNS could have after //,
 * and without an empty path; RFC 6901; RFC 6570. What is international is written in ASCII; a regex has one level of
 * groups. */

#define HOUR "([01][0-9]|2[0-3])"
#define SIXTY "[0-5][0-9]"
#define TIME HOUR ":" SIXTY ":" SIXTY "(\\.[0-9]{1,9})?(Z|[+-]" HOUR ":" SIXTY ")"
#define LEAP "(0[48]|[2468][048]|[13579][26])"
#define YEAR "([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
#define DATE "(" YEAR "-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|" \
             "02-(0[1-9]|1[0-9]|2[0-8]))|([0-9]{2}" LEAP "|" LEAP "00)-02-29)"
#define COUNT "[0-9]{1,6}"
#define CLOCK "T(" COUNT "H(" COUNT "M(" COUNT "S)?)?|" COUNT "M(" COUNT "S)?|" COUNT "S)"
#define DAYS "(" COUNT "D|" COUNT "M(" COUNT "D)?|" COUNT "Y(" COUNT "M(" COUNT "D)?)?)"

#define LABEL "[A-Za-z0-9]([A-Za-z0-9]|-[A-Za-z0-9]){0,30}"
#define HOST LABEL "(\\." LABEL "){0,3}"
#define EMAIL "^[A-Za-z0-9_+-]{1,20}(\\.[A-Za-z0-9_+-]{1,20}){0,2}@" LABEL "(\\." LABEL "){1,3}$"
#define BYTE "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define IPV4 BYTE "(\\." BYTE "){3}"
#define HEX "[0-9a-fA-F]"
#define GROUP HEX "{1,4}"
#define IPV6 "((" GROUP ":){7}" GROUP "|(" GROUP ":){6}" IPV4 "|::(" GROUP "(:" GROUP "){0,5})?|" \
             "(" GROUP ":){1}(:" GROUP "){1,6}|(" GROUP ":){2}(:" GROUP "){1,5}|(" GROUP ":){3}(:" GROUP "){1,4}|" \
             "(" GROUP ":){4}(:" GROUP "){1,3}|(" GROUP ":){5}(:" GROUP "){1,2}|(" GROUP ":){6}:" GROUP "|" \
             "(" GROUP ":){1,7}:|::(ffff:)?" IPV4 ")"

#define ESCAPED "%" HEX HEX
#define REST "([A-Za-z0-9]|-[A-Za-z0-9])*"
#define URI_HOST "(([A-Za-z0-9]" REST "\\.)*[A-Za-z]" REST "|" IPV4 "|\\[" IPV6 "\\])"
#define PATH_CHAR "([A-Za-z0-9._~!$&'()*+,;=:@-]|" ESCAPED ")"
#define USER "(([A-Za-z0-9._~!$&'()*+,;=:-]|" ESCAPED ")+@)?"
#define PORT "(:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?"
#define AUTHORITY USER URI_HOST PORT
#define SEGMENTS "(/" PATH_CHAR "*)*"
#define ROOTED "/(" PATH_CHAR "+" SEGMENTS ")?"
#define AFTER_PATH "(\\?([/?]|" PATH_CHAR ")*)?(#([/?]|" PATH_CHAR ")*)?"
#define URI "[A-Za-z][A-Za-z0-9+.-]*:(//" AUTHORITY SEGMENTS "|" ROOTED "|" PATH_CHAR "+" SEGMENTS ")" AFTER_PATH
#define FILE_URI "file://" ROOTED
#define RELATIVE "(//" AUTHORITY SEGMENTS "|" ROOTED "|([A-Za-z0-9._~!$&'()*+,;=@-]|" ESCAPED ")+" SEGMENTS ")?" \
                 AFTER_PATH

#define POINTER "(/([^~/]|~[01])*)*"
#define VARIABLE "[A-Za-z0-9_]+(\\.[A-Za-z0-9_]+)*(:[1-9][0-9]{0,3}|\\*)?"
#define TEMPLATE "([A-Za-z0-9._~:/?#@!$&()*+,;=-]|" ESCAPED "|\\{[+#./;?&]?" VARIABLE "(," VARIABLE ")*\\})*"
#define ATOM "([A-Za-z0-9 _,:;<>=@/\"'#%&~!-]|\\.|\\\\[dwsDWS.]|\\[\\^?[A-Za-z0-9_ ]+\\])"
#define REPEAT "([*+?]|\\{[1-9]\\})?"
#define SEQUENCE "(" ATOM REPEAT ")*"
#define EXPRESSION "\\^?(" ATOM REPEAT "|\\(" SEQUENCE "(\\|" SEQUENCE ")*\\)" REPEAT ")*\\$?"

const char *pd_format_pattern(const char *name)
{
    static const struct {
        const char *name, *pattern;
    } formats[] = {
        {"date", "^" DATE "$"},
        {"time", "^" TIME "$"},
        {"date-time", "^" DATE "T" TIME "$"},
        {"duration", "^P(" DAYS "(" CLOCK ")?|" CLOCK "|" COUNT "W)$"},
        {"email", EMAIL},
        {"idn-email", EMAIL},
        {"hostname", "^" HOST "$"},
        {"idn-hostname", "^" HOST "$"},
        {"ipv4", "^" IPV4 "$"},
        {"ipv6", "^" IPV6 "$"},
        {"uuid", "^" HEX "{8}-" HEX "{4}-" HEX "{4}-" HEX "{4}-" HEX "{12}$"},
        {"uri", "^(" URI "|" FILE_URI ")$"},
        {"uri-reference", "^(" URI "|" FILE_URI "|" RELATIVE ")$"},
        {"iri", "^(" URI "|" FILE_URI ")$"},
        {"iri-reference", "^(" URI "|" FILE_URI "|" RELATIVE ")$"},
        {"json-pointer", "^" POINTER "$"},
        {"relative-json-pointer", "^(0|[1-9][0-9]{0,5})(#|" POINTER ")$"},
        {"uri-template", "^" TEMPLATE "$"},
        {"regex", "^" EXPRESSION "$"},
    };
    for (size_t i = 0; i < PD_COUNT(formats); i++)
        if (strcmp(formats[i].name, name) == 0) return formats[i].pattern;
    return NULL;
}
