/* An object of a schema between finding what it has (object.c) and writing it (object_write.c). */
#ifndef PD_GRAMMAR_OBJECT_PARTS_H
#define PD_GRAMMAR_OBJECT_PARTS_H

#include "grammar/compiler.h"

#define PD_MAX_PATTERNS 10
#define PD_MAX_KINDS 32            /* of other names, by the patterns that match them */

enum pd_presence { PD_ABSENT, PD_OPTIONAL, PD_REQUIRED };

struct pd_member_rule {
    uint32_t rule;
    bool tagged;                   /* with what comes after the value in a tag */
};

struct pd_property {
    struct pd_name name;
    enum pd_presence presence;
    bool written;                  /* some value of it is valid */
    struct pd_member_rule rule;    /* of its value */
};

/* Names that the same patterns match. */
struct pd_name_kind {
    struct pd_chars names;
    uint32_t matched;              /* bit i: pattern i matches */
    struct pd_member_rule rule;
};

struct pd_name_pattern {
    const struct pd_node *node;
    yyjson_val *pattern, *value;
};

struct pd_object {
    struct pd_compiler *c;
    const struct pd_nodes *of;
    struct pd_property *properties;   /* in the order in which they are written */
    size_t n, capacity;
    struct pd_name_pattern patterns[PD_MAX_PATTERNS];
    uint32_t n_patterns;
    struct pd_name_kind kinds[PD_MAX_KINDS];
    uint32_t n_kinds;
    struct pd_chars names;         /* that propertyNames allows, where `limited` */
    bool limited;
    bool named;                    /* some schema names its properties, or has patterns of their names */
    bool others;                   /* properties are wanted that no schema names */
    bool listed;                   /* the first n_listed properties are all that propertyNames allows */
    size_t n_listed;
    uint32_t min, max;             /* members */
};

/* The rule that is being written, from its start to its end. */
peridot_status pd_object_write(struct pd_object *o);

#endif
