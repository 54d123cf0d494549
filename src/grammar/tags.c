#include "grammar/tags.h"

#include "base/num.h"

#include <string.h>

enum { MAX_DEPTH = 8, MAX_STEPS = 1 << 14 };   /* of schemas within or behind others; members that are looked at */

struct search {
    yyjson_val *root;
    uint64_t n;                    /* steps */
};

static yyjson_val *get_member(struct search *s, yyjson_val *object, const char *name, size_t size)
{
    size_t i, n;
    yyjson_val *key, *value;
    yyjson_obj_foreach(object, i, n, key, value) {
        if (++s->n > MAX_STEPS) return NULL;
        if (yyjson_equals_strn(key, name, size)) return value;
    }
    return NULL;
}

static yyjson_val *get(struct search *s, yyjson_val *object, const char *key)
{
    return get_member(s, object, key, strlen(key));
}

static yyjson_val *follow(struct search *s, yyjson_val *schema)
{
    const char *ref = yyjson_get_str(get(s, schema, "$ref"));
    s->n += ref ? MAX_STEPS / 64 : 0;
    return ref && *ref == '#' ? yyjson_ptr_get(s->root, ref + 1) : NULL;
}

/* A list that has a string: any, or this one. */
static bool has_string(struct search *s, yyjson_val *list, const char *text)
{
    size_t i, n;
    yyjson_val *value;
    yyjson_arr_foreach(list, i, n, value)
        if (++s->n > MAX_STEPS || (text ? yyjson_equals_str(value, text) : yyjson_is_str(value))) return true;
    return false;
}

static bool says_string(struct search *s, yyjson_val *schema)
{
    yyjson_val *type = get(s, schema, "type"), *constant = get(s, schema, "const"), *list = get(s, schema, "enum");
    struct pd_node node = {schema, ""};
    if (type && !yyjson_equals_str(type, "string") && !has_string(s, type, "string")) return false;
    if (constant || list) return yyjson_is_str(constant) || has_string(s, list, NULL);
    unsigned about = type ? 0 : pd_node_is_about(&node);
    return !about || (about & PD_JSON_STRING);
}

static bool may_be_string(struct search *s, yyjson_val *schema, int depth)
{
    static const char *const lists[] = {"allOf", "anyOf", "oneOf"};
    size_t i, n;
    yyjson_val *part, *other;
    if (!yyjson_is_obj(schema) || depth == MAX_DEPTH || s->n > MAX_STEPS) return true;
    if (!says_string(s, schema)) return false;
    other = follow(s, schema);
    if (other && !may_be_string(s, other, depth + 1)) return false;
    for (size_t k = 0; k < PD_COUNT(lists); k++) {
        size_t n_may = 0;
        yyjson_val *list = get(s, schema, lists[k]);
        yyjson_arr_foreach(list, i, n, part) n_may += may_be_string(s, part, depth + 1);
        if (list && (k == 0 ? n_may < n : n_may == 0)) return false;
    }
    return true;
}

/* What the schema, or one that is part of it, says of the property; NULL: nothing. */
static yyjson_val *find_property(struct search *s, yyjson_val *schema, struct pd_name name, int depth)
{
    static const char *const lists[] = {"allOf", "anyOf", "oneOf"};
    size_t i, n;
    yyjson_val *part, *found;
    if (!yyjson_is_obj(schema) || depth == MAX_DEPTH || s->n > MAX_STEPS) return NULL;
    if (name.text) found = get_member(s, get(s, schema, "properties"), name.text, name.size);
    else found = get(s, schema, "additionalProperties");
    if (!found) found = find_property(s, follow(s, schema), name, depth + 1);
    for (size_t k = 0; k < PD_COUNT(lists) && !found; k++)
        yyjson_arr_foreach(get(s, schema, lists[k]), i, n, part)
            if (!found) found = find_property(s, part, name, depth + 1);
    return found;
}

bool pd_is_tag_text(uint64_t *steps, yyjson_val *parameters, struct pd_name name)
{
    struct search s = {.root = parameters};
    yyjson_val *schema = name.text ? find_property(&s, parameters, name, 0) : NULL;
    if (!schema) schema = find_property(&s, parameters, (struct pd_name){0}, 0);
    bool text = may_be_string(&s, schema, 0);
    *steps = s.n;
    return text;
}
