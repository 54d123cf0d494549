/* Schemas of tools made looser, level by level: one tool's schema that is too large or not supported must not refuse
 * all that a request asks. What is left out allows more, never less: a call still has the names that were declared. */
#include "grammar/calls/calls.h"

#include <string.h>

enum { MAX_DEPTH = 32, MAX_ENUM = 1000, MAX_REQUIRED = 256 };

typedef yyjson_mut_doc doc_t;
typedef yyjson_mut_val val_t;

static val_t *loose(doc_t *doc, yyjson_val *schema, int depth);

static bool is_type(yyjson_val *name)
{
    static const char *const types[] = {"null", "boolean", "object", "array", "number", "string", "integer"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (yyjson_equals_str(name, types[i])) return true;
    return false;
}

static void put_type(doc_t *doc, val_t *out, yyjson_val *type)
{
    size_t i, n, n_known = 0;
    yyjson_val *each;
    yyjson_arr_foreach(type, i, n, each) n_known += is_type(each);
    if (is_type(type) || (n_known > 0 && n_known == yyjson_arr_size(type)))
        yyjson_mut_obj_add_val(doc, out, "type", yyjson_val_mut_copy(doc, type));
}

/* Those of the list that are properties; of a long one, none, as each is looked for. */
static void put_required(doc_t *doc, val_t *out, yyjson_val *properties, yyjson_val *required)
{
    size_t i, n;
    yyjson_val *each;
    val_t *list = yyjson_mut_arr(doc);
    if (yyjson_arr_size(required) > MAX_REQUIRED) return;
    yyjson_arr_foreach(required, i, n, each) {
        const char *name = yyjson_get_str(each);
        bool known = name && yyjson_obj_getn(properties, name, yyjson_get_len(each)), there = false;
        for (size_t k = 0; known && !there && k < yyjson_mut_arr_size(list); k++)
            there = yyjson_mut_equals_strn(yyjson_mut_arr_get(list, k), name, yyjson_get_len(each));
        if (known && !there) yyjson_mut_arr_append(list, yyjson_val_mut_copy(doc, each));
    }
    yyjson_mut_obj_add_val(doc, out, "required", list);
}

/* depth < 0: of the names alone, whose values may be anything. */
static void put_properties(doc_t *doc, val_t *out, yyjson_val *schema, int depth)
{
    size_t i, n;
    yyjson_val *key, *each, *properties = yyjson_obj_get(schema, "properties");
    if (!yyjson_is_obj(properties)) return;
    val_t *list = yyjson_mut_obj(doc);
    yyjson_obj_foreach(properties, i, n, key, each)
        yyjson_mut_obj_add(list, yyjson_val_mut_copy(doc, key),
                           depth < 0 ? yyjson_mut_bool(doc, true) : loose(doc, each, depth + 1));
    yyjson_mut_obj_add_val(doc, out, "properties", list);
    put_required(doc, out, properties, yyjson_obj_get(schema, "required"));
}

static void put_any_of(doc_t *doc, val_t *out, yyjson_val *list, int depth)
{
    size_t i, n;
    yyjson_val *each;
    val_t *any = yyjson_mut_arr(doc);
    yyjson_arr_foreach(list, i, n, each) yyjson_mut_arr_append(any, loose(doc, each, depth + 1));
    yyjson_mut_obj_add_val(doc, out, "anyOf", any);
}

/* Types, names, lists of values and alternatives stay; bounds, patterns, references and conditions do not. */
static val_t *loose(doc_t *doc, yyjson_val *schema, int depth)
{
    yyjson_val *values = yyjson_obj_get(schema, "enum"), *items = yyjson_obj_get(schema, "items"),
               *any = yyjson_obj_get(schema, "anyOf"), *one = yyjson_obj_get(schema, "oneOf"),
               *more = yyjson_obj_get(schema, "additionalProperties"), *list = yyjson_is_arr(any) ? any : one;
    if (!yyjson_is_obj(schema) || depth > MAX_DEPTH || yyjson_obj_get(schema, "$ref"))
        return yyjson_mut_bool(doc, true);
    val_t *out = yyjson_mut_obj(doc);
    if (yyjson_arr_size(values) > 0 && yyjson_arr_size(values) <= MAX_ENUM) {
        yyjson_mut_obj_add_val(doc, out, "enum", yyjson_val_mut_copy(doc, values));
        return out;
    }
    if (yyjson_arr_size(list) > 0 && !yyjson_obj_get(schema, "properties")) {
        put_any_of(doc, out, list, depth);
        return out;
    }
    put_type(doc, out, yyjson_obj_get(schema, "type"));
    put_properties(doc, out, schema, depth);
    if (yyjson_is_obj(items)) yyjson_mut_obj_add_val(doc, out, "items", loose(doc, items, depth + 1));
    if (yyjson_is_bool(more)) yyjson_mut_obj_add_val(doc, out, "additionalProperties", yyjson_val_mut_copy(doc, more));
    return out;
}

char *pd_tool_schema(size_t *size, yyjson_val *schema, int looseness)
{
    if (!looseness) return yyjson_val_write(schema, 0, size);
    doc_t *doc = yyjson_mut_doc_new(NULL);
    val_t *root = looseness == 1 ? loose(doc, schema, 0) : yyjson_mut_obj(doc);
    if (looseness == 2) put_properties(doc, root, schema, -1);
    if (yyjson_mut_is_obj(root) && !yyjson_mut_obj_get(root, "type") && !yyjson_mut_obj_get(root, "anyOf"))
        yyjson_mut_obj_add_str(doc, root, "type", "object");
    yyjson_mut_doc_set_root(doc, root);
    char *text = root ? yyjson_mut_write(doc, 0, size) : NULL;
    yyjson_mut_doc_free(doc);
    return text;
}
