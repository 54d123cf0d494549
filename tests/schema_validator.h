/* Whether a value satisfies a JSON Schema: a plain reading of the specification, for the keywords that grammars
 * support, which shares nothing with them. */
#ifndef SCHEMA_VALIDATOR_H
#define SCHEMA_VALIDATOR_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <yyjson.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

struct validator {
    yyjson_val *root;
    char why[200];
};

static inline bool invalid(struct validator *v, const char *why)
{
    snprintf(v->why, sizeof v->why, "%s", why);
    return false;
}

static inline bool is_equal(yyjson_val *a, yyjson_val *b)
{
    if (yyjson_is_num(a) && yyjson_is_num(b)) return yyjson_get_num(a) == yyjson_get_num(b);
    return yyjson_equals(a, b);
}

static inline bool has_type(yyjson_val *value, const char *type)
{
    if (strcmp(type, "integer") == 0)
        return yyjson_is_num(value) && yyjson_get_num(value) == floor(yyjson_get_num(value));
    if (strcmp(type, "number") == 0) return yyjson_is_num(value);
    if (strcmp(type, "string") == 0) return yyjson_is_str(value);
    if (strcmp(type, "array") == 0) return yyjson_is_arr(value);
    if (strcmp(type, "object") == 0) return yyjson_is_obj(value);
    if (strcmp(type, "boolean") == 0) return yyjson_is_bool(value);
    return yyjson_is_null(value);
}

static inline size_t count_characters(yyjson_val *text)
{
    size_t n = 0;
    for (size_t i = 0; i < yyjson_get_len(text); i++) n += (yyjson_get_str(text)[i] & 0xc0) != 0x80;
    return n;
}

static inline bool matches(const char *pattern, size_t pattern_size, yyjson_val *text)
{
    int error;
    size_t at;
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)pattern, pattern_size,
                                     PCRE2_UTF | PCRE2_ALT_BSUX | PCRE2_DOLLAR_ENDONLY,
                                     &error, &at, NULL);
    if (!code) return false;
    pcre2_match_data *data = pcre2_match_data_create_from_pattern(code, NULL);
    int found = pcre2_match(code, (PCRE2_SPTR)yyjson_get_str(text), yyjson_get_len(text), 0, 0, data, NULL);
    pcre2_match_data_free(data);
    pcre2_code_free(code);
    return found >= 0;
}

static inline bool is_date(const char *s)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year, month, day, used = 0;
    if (sscanf(s, "%4d-%2d-%2d%n", &year, &month, &day, &used) != 3 || used != 10 || year < 1 || month < 1
        || month > 12)
        return false;
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return day >= 1 && day <= days[month - 1] + (month == 2 && leap);
}

/* Formats by other means than patterns where there are any. */
static inline bool has_format(yyjson_val *text, const char *format)
{
    const char *s = yyjson_get_str(text);
    static const char time[] = "^([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d+)?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)$";
    yyjson_val rest = {.tag = text->tag, .uni.str = s + 11};
    if (strstr("password path binary", format)) return true;   /* which say nothing of texts */
    if (strcmp(format, "date") == 0) return is_date(s) && strlen(s) == 10;
    if (strcmp(format, "time") == 0) return matches(time, strlen(time), text);
    if (strcmp(format, "date-time") == 0) {
        if (!is_date(s) || s[10] != 'T') return false;
        rest.tag = ((uint64_t)(yyjson_get_len(text) - 11) << YYJSON_TAG_BIT) | YYJSON_TYPE_STR;
        return matches(time, strlen(time), &rest);
    }
    if (strcmp(format, "ipv4") == 0) {
        unsigned a, b, c, d;
        int used = 0;
        return sscanf(s, "%3u.%3u.%3u.%3u%n", &a, &b, &c, &d, &used) == 4 && !s[used] && a < 256 && b < 256 && c < 256
            && d < 256;
    }
    if (strncmp(format, "uri", 3) == 0) return strcspn(s, " <>\"\\^`|") == strlen(s);
    return *s != 0;   /* the others: jsonschema of PyPI has looked at them */
}

static inline bool is_valid(struct validator *v, yyjson_val *schema, yyjson_val *value);

static inline bool check_string(struct validator *v, yyjson_val *schema, yyjson_val *value)
{
    yyjson_val *min = yyjson_obj_get(schema, "minLength"), *max = yyjson_obj_get(schema, "maxLength"),
               *pattern = yyjson_obj_get(schema, "pattern"), *format = yyjson_obj_get(schema, "format");
    size_t n = count_characters(value);
    if ((min && n < yyjson_get_uint(min)) || (max && n > yyjson_get_uint(max))) return invalid(v, "length");
    if (pattern && !matches(yyjson_get_str(pattern), yyjson_get_len(pattern), value)) return invalid(v, "pattern");
    return !format || has_format(value, yyjson_get_str(format)) || invalid(v, "format");
}

static inline bool check_number(struct validator *v, yyjson_val *schema, double x)
{
    yyjson_val *min = yyjson_obj_get(schema, "minimum"), *max = yyjson_obj_get(schema, "maximum"),
               *above = yyjson_obj_get(schema, "exclusiveMinimum"), *below = yyjson_obj_get(schema, "exclusiveMaximum"),
               *multiple = yyjson_obj_get(schema, "multipleOf");
    if ((min && x < yyjson_get_num(min)) || (max && x > yyjson_get_num(max))) return invalid(v, "minimum or maximum");
    if ((above && x <= yyjson_get_num(above)) || (below && x >= yyjson_get_num(below)))
        return invalid(v, "exclusive limit");
    double ratio = multiple ? x / yyjson_get_num(multiple) : 0;   /* of decimals: whole but for rounding */
    return fabs(ratio - round(ratio)) <= 1e-14 * fabs(ratio) || invalid(v, "multipleOf");
}

static inline bool check_array(struct validator *v, yyjson_val *schema, yyjson_val *value)
{
    yyjson_val *min = yyjson_obj_get(schema, "minItems"), *max = yyjson_obj_get(schema, "maxItems"),
               *prefix = yyjson_obj_get(schema, "prefixItems"), *items = yyjson_obj_get(schema, "items"), *item;
    size_t i, n;
    if (yyjson_is_arr(items)) {
        prefix = items;
        items = yyjson_obj_get(schema, "additionalItems");
    }
    if ((min && yyjson_arr_size(value) < yyjson_get_uint(min))
        || (max && yyjson_arr_size(value) > yyjson_get_uint(max)))
        return invalid(v, "number of items");
    yyjson_arr_foreach(value, i, n, item) {
        yyjson_val *own = i < yyjson_arr_size(prefix) ? yyjson_arr_get(prefix, i) : items;
        if (own && !is_valid(v, own, item)) return false;
        for (size_t k = 0; k < i && yyjson_is_true(yyjson_obj_get(schema, "uniqueItems")); k++)
            if (is_equal(yyjson_arr_get(value, k), item)) return invalid(v, "uniqueItems");
    }
    return true;
}

static inline bool has_all(yyjson_val *value, yyjson_val *names)
{
    size_t i, n;
    yyjson_val *key;
    yyjson_arr_foreach(names, i, n, key)
        if (!yyjson_obj_getn(value, yyjson_get_str(key), yyjson_get_len(key))) return false;
    return true;
}

/* Names that come twice count once. */
static inline size_t count_names(yyjson_val *value)
{
    size_t i, n, k, count = 0;
    yyjson_val *key, *other, *member;
    yyjson_obj_foreach(value, i, n, key, member) {
        bool first = true;
        yyjson_obj_iter iter = yyjson_obj_iter_with(value);
        for (k = 0; k < i && (other = yyjson_obj_iter_next(&iter)); k++) first = first && !yyjson_equals(other, key);
        count += first;
    }
    return count;
}

static inline bool check_names(struct validator *v, yyjson_val *schema, yyjson_val *value)
{
    yyjson_val *names = yyjson_obj_get(schema, "propertyNames"), *min = yyjson_obj_get(schema, "minProperties"),
               *max = yyjson_obj_get(schema, "maxProperties"), *dependent = yyjson_obj_get(schema, "dependentRequired"),
               *key, *member;
    size_t i, n, count = count_names(value);
    if ((min && count < yyjson_get_uint(min)) || (max && count > yyjson_get_uint(max)))
        return invalid(v, "number of properties");
    yyjson_obj_foreach(value, i, n, key, member) if (names && !is_valid(v, names, key)) return false;
    yyjson_obj_foreach(dependent, i, n, key, member)
        if (yyjson_obj_getn(value, yyjson_get_str(key), yyjson_get_len(key)) && !has_all(value, member))
            return invalid(v, "dependentRequired");
    return true;
}

/* *any becomes true where a pattern matches. */
static inline bool check_patterns(struct validator *v, yyjson_val *schema, yyjson_val *name, yyjson_val *value,
                                  bool *any)
{
    yyjson_val *key, *member;
    size_t i, n;
    yyjson_obj_foreach(yyjson_obj_get(schema, "patternProperties"), i, n, key, member) {
        if (!matches(yyjson_get_str(key), yyjson_get_len(key), name)) continue;
        *any = true;
        if (!is_valid(v, member, value)) return false;
    }
    return true;
}

static inline bool check_object(struct validator *v, yyjson_val *schema, yyjson_val *value)
{
    yyjson_val *properties = yyjson_obj_get(schema, "properties"), *required = yyjson_obj_get(schema, "required"),
               *others = yyjson_obj_get(schema, "additionalProperties"), *key, *member;
    size_t i, n;
    if (!has_all(value, required)) return invalid(v, "required");
    if (!check_names(v, schema, value)) return false;
    yyjson_obj_foreach(value, i, n, key, member) {
        yyjson_val *own = yyjson_obj_getn(properties, yyjson_get_str(key), yyjson_get_len(key));
        bool named = own != NULL;
        if (own && !is_valid(v, own, member)) return false;
        if (!check_patterns(v, schema, key, member, &named)) return false;
        if (!named && others && !is_valid(v, others, member)) return false;
    }
    return true;
}

static inline bool check_combined(struct validator *v, yyjson_val *schema, yyjson_val *value)
{
    yyjson_val *all = yyjson_obj_get(schema, "allOf"), *any = yyjson_obj_get(schema, "anyOf"),
               *one = yyjson_obj_get(schema, "oneOf"), *member;
    size_t i, n, n_any = 0, n_one = 0;
    yyjson_arr_foreach(all, i, n, member) if (!is_valid(v, member, value)) return false;
    yyjson_arr_foreach(any, i, n, member) n_any += is_valid(v, member, value);
    yyjson_arr_foreach(one, i, n, member) n_one += is_valid(v, member, value);
    if (any && n_any == 0) return invalid(v, "anyOf");
    return !one || n_one == 1 || invalid(v, "oneOf");
}

static inline bool check_constants(struct validator *v, yyjson_val *schema, yyjson_val *value)
{
    yyjson_val *constant = yyjson_obj_get(schema, "const"), *list = yyjson_obj_get(schema, "enum"), *member;
    size_t i, n;
    bool found = !list;
    yyjson_arr_foreach(list, i, n, member) found = found || is_equal(member, value);
    return (found && (!constant || is_equal(constant, value))) || invalid(v, "enum or const");
}

static inline bool is_valid(struct validator *v, yyjson_val *schema, yyjson_val *value)
{
    if (yyjson_is_bool(schema)) return yyjson_is_true(schema) || invalid(v, "false");
    yyjson_val *type = yyjson_obj_get(schema, "type"), *reference = yyjson_obj_get(schema, "$ref"), *name;
    size_t i, n;
    bool fits = !type || (yyjson_is_str(type) && has_type(value, yyjson_get_str(type)));
    if (yyjson_is_arr(type)) yyjson_arr_foreach(type, i, n, name) fits = fits || has_type(value, yyjson_get_str(name));
    if (!fits && !(yyjson_is_null(value) && yyjson_is_true(yyjson_obj_get(schema, "nullable"))))
        return invalid(v, "type");
    if (reference) {
        const char *pointer = yyjson_get_str(reference) + 1;
        yyjson_val *target = *pointer ? yyjson_ptr_get(v->root, pointer) : v->root;
        if (!target) return invalid(v, "$ref");
        if (!is_valid(v, target, value)) return false;
    }
    if (!check_constants(v, schema, value) || !check_combined(v, schema, value)) return false;
    if (yyjson_is_str(value)) return check_string(v, schema, value);
    if (yyjson_is_num(value)) return check_number(v, schema, yyjson_get_num(value));
    if (yyjson_is_arr(value)) return check_array(v, schema, value);
    return !yyjson_is_obj(value) || check_object(v, schema, value);
}

#endif
