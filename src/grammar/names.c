/* Names of properties as sets of strings. */
#include "base/base.h"
#include "grammar/grammar.h"
#include "grammar/grammar_.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a name, and patterns ---- */

void pd_names_add(struct pd_chars *out, struct pd_key name)
{
    uint32_t state = PD_CHARS_START, code;
    size_t length;
    for (size_t i = 0; i < name.size; i += length) {
        uint32_t next = pd_chars_state(out);
        pd_utf8_next(&code, &length, name.text + i, name.size - i);
        pd_chars_edge(out, state, code, code, next);
        state = next;
    }
    pd_chars_skip(out, state, PD_CHARS_END);
}

peridot_status pd_names_has(bool *out, const struct pd_chars *names, struct pd_key name)
{
    struct pd_chars both;
    pd_chars_begin(&both, names->work);
    pd_names_add(&both, name);
    peridot_status status = both.status;
    if (status == PERIDOT_OK) status = pd_chars_intersect(&both, names);
    *out = both.n_edges > 0;
    pd_chars_free(&both);
    return status;
}

peridot_status pd_names_of_pattern(struct pd_chars *out, struct pd_work *work, const struct pd_node *node,
                                   yyjson_val *pattern)
{
    char place[512];
    peridot_status status = pd_chars_from_pattern(out, work, yyjson_get_str(pattern), yyjson_get_len(pattern));
    snprintf(place, sizeof place, "patternProperties at " PD_PATH, node->path);
    return status == PERIDOT_OK ? PERIDOT_OK : pd_fail_prefix(status, place);
}

peridot_status pd_names_add_matched(struct pd_nodes *out, bool *any, struct pd_document *d, const struct pd_node *node,
                                    struct pd_key name)
{
    size_t i, n;
    yyjson_val *patterns, *pattern, *value;
    PD_TRY(pd_node_get(&patterns, node, "patternProperties", YYJSON_TYPE_OBJ));
    if (!patterns) return PERIDOT_OK;
    yyjson_obj_foreach(patterns, i, n, pattern, value) {
        struct pd_chars names;
        struct pd_node child;
        bool has = false;
        peridot_status status = pd_names_of_pattern(&names, d->work, node, pattern);
        if (status == PERIDOT_OK) status = pd_names_has(&has, &names, name);
        pd_chars_free(&names);
        PD_TRY(status);
        if (!has) continue;
        *any = true;
        PD_TRY(pd_node_child(&child, d, node, "patternProperties",
                             (struct pd_key){yyjson_get_str(pattern), yyjson_get_len(pattern)}, value));
        PD_TRY(pd_nodes_add(out, child));
    }
    return PERIDOT_OK;
}

/* ---- all names but some ---- */

/* A character of the names that are left out. */
struct letter {
    uint32_t code, state;
    uint32_t next, inner;          /* the other letters after the same beginning; those after this one; 0: none */
    bool ends;                     /* a name ends with it */
};

struct letters {
    struct letter *of;             /* the first is before all names */
    size_t n, capacity;
};

static peridot_status names_add_name(struct pd_chars *out, struct letters *l, struct pd_key name)
{
    uint32_t at = 0, code;
    size_t length;
    for (size_t i = 0; i < name.size; i += length) {
        pd_utf8_next(&code, &length, name.text + i, name.size - i);
        uint32_t k = l->of[at].inner;
        while (k && l->of[k].code != code && pd_chars_work(out, 1)) k = l->of[k].next;
        if (!k) {
            PD_TRY(pd_array_reserve(&l->of, &l->capacity, l->n, 1, sizeof *l->of, "names"));
            k = (uint32_t)l->n++;
            l->of[k] = (struct letter){.code = code, .state = pd_chars_state(out), .next = l->of[at].inner};
            l->of[at].inner = k;
        }
        at = k;
    }
    l->of[at].ends = true;
    return out->status;
}

static int compare_codes(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* What may follow a beginning: the letters with which it is one of a name still, and the others, which make it free. */
static peridot_status write_letters(struct pd_chars *out, const struct letters *l, uint32_t at, uint32_t other)
{
    uint32_t n = 0, begin = 0, *codes;
    for (uint32_t k = l->of[at].inner; k; k = l->of[k].next) n++;
    PD_TRY(pd_work_spend_sort(out->work, 16 + n));
    codes = malloc((n + 1) * sizeof *codes);
    if (!codes) return pd_fail_alloc(n * sizeof *codes, "names");
    n = 0;
    for (uint32_t k = l->of[at].inner; k; k = l->of[k].next) {
        pd_chars_edge(out, l->of[at].state, l->of[k].code, l->of[k].code, l->of[k].state);
        codes[n++] = l->of[k].code;
    }
    qsort(codes, n, sizeof *codes, compare_codes);
    for (uint32_t i = 0; i < n; begin = codes[i++] + 1)
        if (codes[i] > begin) pd_chars_edge(out, l->of[at].state, begin, codes[i] - 1, other);
    pd_chars_edge(out, l->of[at].state, begin, PD_LAST_CHAR, other);
    free(codes);
    return PERIDOT_OK;
}

peridot_status pd_names_but(struct pd_chars *out, struct pd_work *work, const struct pd_key *names, size_t n)
{
    struct letters l = {0};
    pd_chars_begin(out, work);
    uint32_t other = pd_chars_state(out);
    peridot_status status = pd_array_reserve(&l.of, &l.capacity, 0, 1, sizeof *l.of, "names");
    if (status == PERIDOT_OK) l.of[l.n++] = (struct letter){.state = PD_CHARS_START};
    for (size_t i = 0; i < n && status == PERIDOT_OK; i++) status = names_add_name(out, &l, names[i]);
    for (uint32_t i = 0; i < l.n && status == PERIDOT_OK; i++) {
        status = write_letters(out, &l, i, other);
        if (!l.of[i].ends) pd_chars_skip(out, l.of[i].state, PD_CHARS_END);
    }
    pd_chars_edge(out, other, 0, PD_LAST_CHAR, other);
    pd_chars_skip(out, other, PD_CHARS_END);
    free(l.of);
    return status == PERIDOT_OK ? out->status : status;
}

/* ---- tags ---- */

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

static yyjson_val *names_get(struct search *s, yyjson_val *object, const char *key)
{
    return get_member(s, object, key, strlen(key));
}

static yyjson_val *names_follow(struct search *s, yyjson_val *schema)
{
    const char *ref = yyjson_get_str(names_get(s, schema, "$ref"));
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
    yyjson_val *type = names_get(s, schema, "type"), *constant = names_get(s, schema, "const"),
               *list = names_get(s, schema, "enum");
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
    other = names_follow(s, schema);
    if (other && !may_be_string(s, other, depth + 1)) return false;
    for (size_t k = 0; k < PD_COUNT(lists); k++) {
        size_t n_may = 0;
        yyjson_val *list = names_get(s, schema, lists[k]);
        yyjson_arr_foreach(list, i, n, part) n_may += may_be_string(s, part, depth + 1);
        if (list && (k == 0 ? n_may < n : n_may == 0)) return false;
    }
    return true;
}

/* What the schema, or one that is part of it, says of the property; NULL: nothing. */
static yyjson_val *find_property(struct search *s, yyjson_val *schema, struct pd_key name, int depth)
{
    static const char *const lists[] = {"allOf", "anyOf", "oneOf"};
    size_t i, n;
    yyjson_val *part, *found;
    if (!yyjson_is_obj(schema) || depth == MAX_DEPTH || s->n > MAX_STEPS) return NULL;
    if (name.text) found = get_member(s, names_get(s, schema, "properties"), name.text, name.size);
    else found = names_get(s, schema, "additionalProperties");
    if (!found) found = find_property(s, names_follow(s, schema), name, depth + 1);
    for (size_t k = 0; k < PD_COUNT(lists) && !found; k++)
        yyjson_arr_foreach(names_get(s, schema, lists[k]), i, n, part)
            if (!found) found = find_property(s, part, name, depth + 1);
    return found;
}

bool pd_is_tag_text(uint64_t *steps, yyjson_val *parameters, struct pd_key name)
{
    struct search s = {.root = parameters};
    yyjson_val *schema = name.text ? find_property(&s, parameters, name, 0) : NULL;
    if (!schema) schema = find_property(&s, parameters, (struct pd_key){0}, 0);
    bool text = may_be_string(&s, schema, 0);
    *steps = s.n;
    return text;
}
