/* A JSON Schema as it is read: places in it, with names for sentences, and which keywords there are. */
#include "grammar/grammar.h"

#include "base/base.h"
#include "grammar/grammar_.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_SIZE (1u << 20)
#define MAX_DEPTH 200
#define MAX_PATH 4096
#define MAX_KEYWORDS 200           /* of one schema */
#define MAX_TYPES 16               /* names in its `type` */

/* ---- the document ---- */

/* Brackets that are open at once, outside strings. */
static uint32_t depth_of(const char *text, size_t size)
{
    uint32_t depth = 0, most = 0;
    bool quoted = false;
    for (size_t i = 0; i < size; i++) {
        if (quoted && text[i] == '\\') i++;
        else if (text[i] == '"') quoted = !quoted;
        else if (!quoted && (text[i] == '{' || text[i] == '[')) most = (uint32_t)pd_max(most, ++depth);
        else if (!quoted && (text[i] == '}' || text[i] == ']') && depth) depth--;
    }
    return most;
}

peridot_status pd_document_open(struct pd_document *d, struct pd_work *work, const char *schema, size_t size)
{
    *d = (struct pd_document){.index.work = work, .work = work};
    if (size > MAX_SIZE)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "a schema of %zu bytes is too large (at most %u)", size, MAX_SIZE);
    if (depth_of(schema, size) > MAX_DEPTH)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the schema nests deeper than %d", MAX_DEPTH);
    PD_TRY(pd_json_read(&d->doc, (const uint8_t *)schema, size));
    d->root = yyjson_doc_get_root(d->doc);
    return PERIDOT_OK;
}

void pd_document_close(struct pd_document *d)
{
    yyjson_doc_free(d->doc);
    pd_arena_free(&d->arena);
    pd_index_free(&d->index);
}

/* ---- places ---- */

peridot_status pd_nodes_add(struct pd_nodes *nodes, struct pd_node node)
{
    for (uint32_t i = 0; i < nodes->n; i++)
        if (nodes->at[i].value == node.value) return PERIDOT_OK;
    if (nodes->n == PD_MAX_NODES)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, PD_PATH ": more than %d schemas are about one value", node.path,
                       PD_MAX_NODES);
    nodes->at[nodes->n++] = node;
    return PERIDOT_OK;
}

static peridot_status keep_node(struct pd_node *out, struct pd_document *d, const char *path, size_t size,
                                yyjson_val *value)
{
    PD_TRY(pd_work_spend(d->work, 16 + 4 * size));
    *out = (struct pd_node){value, pd_arena_string(&d->arena, path, size)};
    return out->path ? PERIDOT_OK : pd_fail_alloc(size, "paths");
}

peridot_status pd_node_child(struct pd_node *out, struct pd_document *d, const struct pd_node *parent, const char *key,
                             struct pd_key name, yyjson_val *value)
{
    char path[MAX_PATH];
    size_t n = (size_t)snprintf(path, sizeof path, "%s/%s%s", parent->path, key, name.text ? "/" : "");
    for (size_t i = 0; i < name.size && n + 3 < sizeof path; i++) {
        char c = name.text[i];
        bool special = c == '~' || c == '/', control = (unsigned char)c < 32;
        path[n++] = special ? '~' : control ? '?' : c;
        if (special) path[n++] = c == '~' ? '0' : '1';
    }
    if (n + 3 >= sizeof path)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, PD_PATH ": the path is longer than %d bytes", parent->path, MAX_PATH);
    return keep_node(out, d, path, n, value);
}

peridot_status pd_node_member(struct pd_node *out, struct pd_document *d, const struct pd_node *parent,
                              const char *key, size_t i, yyjson_val *value)
{
    char number[24];
    size_t size = (size_t)snprintf(number, sizeof number, "%zu", i);
    return pd_node_child(out, d, parent, key, (struct pd_key){number, size}, value);
}

/* ---- references ---- */

static int hex(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One name of a pointer, which %XX and ~ spell: bytes read, and of the name. */
static size_t read_name(char *name, size_t *size, const char *text, size_t n)
{
    size_t i = 0;
    for (*size = 0; i < n && text[i] != '/'; i++) {
        char c = text[i];
        if (c == '%' && i + 2 < n && hex(text[i + 1]) >= 0 && hex(text[i + 2]) >= 0) {
            c = (char)(hex(text[i + 1]) << 4 | hex(text[i + 2]));
            i += 2;
        }
        if (c == '~' && i + 1 < n && (text[i + 1] == '0' || text[i + 1] == '1')) c = text[++i] == '0' ? '~' : '/';
        name[(*size)++] = c;
    }
    return i;
}

peridot_status pd_list_get(yyjson_val **out, struct pd_document *d, yyjson_val *list, size_t i)
{
    yyjson_arr_iter members = yyjson_arr_iter_with(list);
    *out = NULL;
    if (i >= yyjson_arr_size(list)) return PERIDOT_OK;
    PD_TRY(pd_work_spend(d->work, 1 + i));
    for (size_t k = 0; k <= i; k++) *out = yyjson_arr_iter_next(&members);
    return PERIDOT_OK;
}

static peridot_status find_member(yyjson_val **out, struct pd_document *d, yyjson_val *value, const char *name,
                                  size_t size)
{
    size_t index = 0;
    *out = NULL;
    if (yyjson_is_obj(value)) return pd_index_get(out, &d->index, value, name, size);
    if (size == 0 || size > 7) return PERIDOT_OK;
    for (size_t i = 0; i < size; i++) {
        if (name[i] < '0' || name[i] > '9') return PERIDOT_OK;
        index = 10 * index + (size_t)(name[i] - '0');
    }
    return pd_list_get(out, d, value, index);
}

peridot_status pd_node_follow(struct pd_node *out, struct pd_document *d, const struct pd_node *node,
                              yyjson_val *reference)
{
    char name[MAX_PATH], shown[PD_SHOWN_SIZE];
    const char *text = yyjson_get_str(reference);
    size_t size = yyjson_get_len(reference), used;
    yyjson_val *value = d->root;
    if (!text) return pd_fail(PERIDOT_ERROR_FORMAT, "$ref at " PD_PATH " is not a string", node->path);
    if (size == 0 || size >= MAX_PATH || text[0] != '#' || (size > 1 && text[1] != '/'))
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED,
                       "$ref at " PD_PATH " refers to %s: only # and #/... are supported, which are in the schema",
                       node->path, pd_utf8_shown(shown, text, size));
    for (size_t i = 1; i < size && value; i += used) {
        i++;
        size_t n;
        used = read_name(name, &n, text + i, size - i);
        PD_TRY(find_member(&value, d, value, name, n));
    }
    if (!value)
        return pd_fail(PERIDOT_ERROR_FORMAT, "$ref at " PD_PATH " refers to %s, which is not in the schema",
                       node->path, pd_utf8_shown(shown, text, size));
    return keep_node(out, d, text, size, value);
}

/* ---- keywords ---- */

static const struct keyword {
    const char *name;
    unsigned about;
} keywords[] = {
    {"type", 0}, {"nullable", 0}, {"enum", 0}, {"const", 0}, {"$ref", 0}, {"anyOf", 0}, {"oneOf", 0}, {"allOf", 0},
    {"properties", PD_JSON_OBJECT}, {"required", PD_JSON_OBJECT}, {"additionalProperties", PD_JSON_OBJECT},
    {"patternProperties", PD_JSON_OBJECT}, {"propertyNames", PD_JSON_OBJECT}, {"minProperties", PD_JSON_OBJECT},
    {"maxProperties", PD_JSON_OBJECT}, {"dependentRequired", PD_JSON_OBJECT},
    {"unevaluatedProperties", PD_JSON_OBJECT},
    {"items", PD_JSON_ARRAY}, {"prefixItems", PD_JSON_ARRAY}, {"additionalItems", PD_JSON_ARRAY},
    {"minItems", PD_JSON_ARRAY}, {"maxItems", PD_JSON_ARRAY}, {"uniqueItems", PD_JSON_ARRAY},
    {"unevaluatedItems", PD_JSON_ARRAY},
    {"minLength", PD_JSON_STRING}, {"maxLength", PD_JSON_STRING}, {"pattern", PD_JSON_STRING},
    {"format", PD_JSON_STRING},
    {"minimum", PD_JSON_NUMBER}, {"maximum", PD_JSON_NUMBER}, {"exclusiveMinimum", PD_JSON_NUMBER},
    {"exclusiveMaximum", PD_JSON_NUMBER}, {"multipleOf", PD_JSON_NUMBER},
};

/* What says nothing of which values are valid: of JSON Schema, of OpenAPI, of what makes and edits schemas. */
static const char *const annotations[] = {
    "$anchor", "$comment", "$defs", "$dynamicAnchor", "$id", "$schema", "$vocabulary", "contentEncoding",
    "contentMediaType", "contentSchema", "default", "defaultSnippets", "definitions", "deprecated",
    "deprecationMessage", "description", "discriminator", "enumDescriptions", "enumNames", "errorMessage", "example",
    "examples", "externalDocs", "markdownDescription", "markdownEnumDescriptions", "propertyOrdering", "readOnly",
    "strict", "title", "tsType", "writeOnly", "xml",
};

static const struct keyword *find_keyword(yyjson_val *key)
{
    for (size_t i = 0; i < PD_COUNT(keywords); i++)
        if (yyjson_equals_str(key, keywords[i].name)) return &keywords[i];
    return NULL;
}

static bool is_annotation(yyjson_val *key)
{
    for (size_t i = 0; i < PD_COUNT(annotations); i++)
        if (yyjson_equals_str(key, annotations[i])) return true;
    return yyjson_get_len(key) > 2 && memcmp(yyjson_get_str(key), "x-", 2) == 0;
}

/* Keywords that say nothing: by their value, or without another. */
static bool is_neutral(yyjson_val *schema, yyjson_val *key, yyjson_val *value)
{
    if (yyjson_equals_str(key, "uniqueItems") || yyjson_equals_str(key, "not")) return yyjson_is_false(value);
    if (yyjson_equals_str(key, "unevaluatedProperties") || yyjson_equals_str(key, "unevaluatedItems"))
        return yyjson_is_true(value);
    if (yyjson_equals_str(key, "minProperties")) return yyjson_is_num(value) && yyjson_get_num(value) <= 0;
    if (yyjson_equals_str(key, "if")) return !yyjson_obj_get(schema, "then") && !yyjson_obj_get(schema, "else");
    if (yyjson_equals_str(key, "then") || yyjson_equals_str(key, "else")) return !yyjson_obj_get(schema, "if");
    if (yyjson_equals_str(key, "minContains") || yyjson_equals_str(key, "maxContains"))
        return !yyjson_obj_get(schema, "contains");
    return yyjson_equals_str(key, "format") && yyjson_is_str(value) && !pd_format_pattern(yyjson_get_str(value));
}

bool pd_node_is_never(const struct pd_node *node)
{
    yyjson_val *inverted = yyjson_obj_get(node->value, "not");
    return yyjson_is_true(inverted) || (yyjson_is_obj(inverted) && yyjson_obj_size(inverted) == 0);
}

/* The types that a member of a schema is about. */
static unsigned about(yyjson_val *schema, yyjson_val *key, yyjson_val *value)
{
    const struct keyword *keyword = find_keyword(key);
    return keyword && keyword->about && !is_neutral(schema, key, value) ? keyword->about : 0;
}

peridot_status pd_node_spend(const struct pd_document *d, const struct pd_node *node)
{
    return pd_work_spend(d->work, 16 + 32 * yyjson_obj_size(node->value));
}

peridot_status pd_node_check(const struct pd_document *d, const struct pd_node *node)
{
    bool seen[PD_COUNT(keywords)] = {false};
    size_t i, n;
    yyjson_val *key, *value;
    if (!yyjson_is_obj(node->value))
        return pd_fail(PERIDOT_ERROR_FORMAT, PD_PATH ": a schema is an object, true or false, and this is %s",
                       node->path, yyjson_get_type_desc(node->value));
    if (yyjson_obj_size(node->value) > MAX_KEYWORDS)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the schema at " PD_PATH " has more than %d keywords", node->path,
                       MAX_KEYWORDS);
    PD_TRY(pd_node_spend(d, node));
    yyjson_obj_foreach(node->value, i, n, key, value) {
        const struct keyword *keyword = find_keyword(key);
        bool inner_id = yyjson_equals_str(key, "$id") && node->value != d->root;
        char shown[PD_SHOWN_SIZE];
        if (inner_id || (!keyword && !is_annotation(key) && !is_neutral(node->value, key, value) &&
             !(yyjson_equals_str(key, "not") && pd_node_is_never(node))))
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "keyword %s at " PD_PATH " is not supported",
                           pd_utf8_shown(shown, yyjson_get_str(key), yyjson_get_len(key)), node->path);
        if (keyword && seen[keyword - keywords])
            return pd_fail(PERIDOT_ERROR_FORMAT, "keyword %s at " PD_PATH " is there twice", keyword->name, node->path);
        if (keyword) seen[keyword - keywords] = true;
    }
    return PERIDOT_OK;
}

unsigned pd_node_is_about(const struct pd_node *node)
{
    unsigned types = 0;
    size_t i, n;
    yyjson_val *key, *value;
    yyjson_obj_foreach(node->value, i, n, key, value) types |= about(node->value, key, value);
    return types;
}

const char *pd_node_find_limit(const struct pd_node *node)
{
    size_t i, n;
    yyjson_val *key, *value;
    yyjson_obj_foreach(node->value, i, n, key, value)
        if (about(node->value, key, value)) return yyjson_get_str(key);
    return NULL;
}

/* ---- values of keywords ---- */

static unsigned type_named(yyjson_val *name)
{
    static const struct {
        const char *name;
        unsigned type;
    } types[] = {{"null", PD_JSON_NULL}, {"boolean", PD_JSON_BOOLEAN}, {"integer", PD_JSON_INTEGER},
                 {"number", PD_JSON_NUMBER}, {"string", PD_JSON_STRING}, {"array", PD_JSON_ARRAY},
                 {"object", PD_JSON_OBJECT}};
    for (size_t i = 0; i < PD_COUNT(types); i++)
        if (yyjson_equals_str(name, types[i].name)) return types[i].type;
    return 0;
}

peridot_status pd_node_types(unsigned *types, const struct pd_node *node)
{
    yyjson_val *type = yyjson_obj_get(node->value, "type"), *name;
    size_t i, n;
    *types = type ? type_named(type) : PD_JSON_ANY;
    bool known = *types != 0 || yyjson_arr_size(type) > 0;
    if (yyjson_arr_size(type) > MAX_TYPES)
        return pd_fail(PERIDOT_ERROR_FORMAT, "type at " PD_PATH " names more than %d types", node->path, MAX_TYPES);
    if (yyjson_is_arr(type))
        yyjson_arr_foreach(type, i, n, name) {
            known = known && type_named(name);
            *types |= type_named(name);
        }
    if (type && yyjson_is_true(yyjson_obj_get(node->value, "nullable"))) *types |= PD_JSON_NULL;
    if (known) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_FORMAT, "type at " PD_PATH " names no type, or one that JSON lacks", node->path);
}

peridot_status pd_node_get(yyjson_val **out, const struct pd_node *node, const char *key, yyjson_type type)
{
    *out = yyjson_obj_get(node->value, key);
    if (!*out || yyjson_get_type(*out) == type) return PERIDOT_OK;
    return pd_fail(type == YYJSON_TYPE_OBJ && yyjson_is_arr(*out) ? PERIDOT_ERROR_UNSUPPORTED : PERIDOT_ERROR_FORMAT,
                   "%s at " PD_PATH " cannot be %s", key, node->path, yyjson_get_type_desc(*out));
}

peridot_status pd_node_count(uint32_t *out, const struct pd_node *node, const char *key)
{
    yyjson_val *value = yyjson_obj_get(node->value, key);
    double count = yyjson_get_num(value);
    if (!value) return PERIDOT_OK;
    if (!yyjson_is_num(value) || count < 0 || count != floor(count))
        return pd_fail(PERIDOT_ERROR_FORMAT, "%s at " PD_PATH " is not a count", key, node->path);
    if (count > 1e6)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s at " PD_PATH " is more than a million", key, node->path);
    *out = (uint32_t)count;
    return PERIDOT_OK;
}

peridot_status pd_nodes_counts(uint32_t *min, uint32_t *max, const struct pd_nodes *of, const char *min_key,
                               const char *max_key)
{
    *min = 0;
    *max = UINT32_MAX;
    for (uint32_t i = 0; i < of->n; i++) {
        uint32_t least = 0, most = UINT32_MAX;
        PD_TRY(pd_node_count(&least, &of->at[i], min_key));
        PD_TRY(pd_node_count(&most, &of->at[i], max_key));
        *min = (uint32_t)pd_max(*min, least);
        *max = (uint32_t)pd_min(*max, most);
    }
    if (*min <= *max) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_ARGUMENT, PD_PATH ": no value is valid: %s %u is more than %s %u", of->at[0].path,
                   min_key, *min, max_key, *max);
}

unsigned pd_json_type_of(yyjson_val *value)
{
    switch (yyjson_get_type(value)) {
    case YYJSON_TYPE_NULL: return PD_JSON_NULL;
    case YYJSON_TYPE_BOOL: return PD_JSON_BOOLEAN;
    case YYJSON_TYPE_STR: return PD_JSON_STRING;
    case YYJSON_TYPE_ARR: return PD_JSON_ARRAY;
    case YYJSON_TYPE_OBJ: return PD_JSON_OBJECT;
    default:
        return !yyjson_is_real(value) || yyjson_get_real(value) == floor(yyjson_get_real(value)) ? PD_JSON_INTEGER
                                                                                                 : PD_JSON_FRACTION;
    }
}
