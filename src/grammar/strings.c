#include "grammar/strings.h"

#include "grammar/alternatives.h"
#include "grammar/constants.h"
#include "grammar/formats.h"
#include "grammar/names.h"

#include <stdio.h>
#include <string.h>

/* *all becomes the strings that the pattern matches too. */
static peridot_status add_pattern(struct pd_chars *all, bool *any, struct pd_work *work, const char *pattern,
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
        peridot_status status = add_pattern(all, any, work, yyjson_get_str(pattern), yyjson_get_len(pattern));
        char place[512];
        snprintf(place, sizeof place, "pattern at " PD_PATH, node->path);
        if (status != PERIDOT_OK) return pd_fail_prefix(status, place);
    }
    const char *known = format ? pd_format_pattern(yyjson_get_str(format)) : NULL;
    return known ? add_pattern(all, any, work, known, strlen(known)) : PERIDOT_OK;
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
        const struct pd_name text = {yyjson_get_str(constants.at[i]), yyjson_get_len(constants.at[i])};
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
