/* A JSON Schema as it is read: places in it, with names for sentences, and which keywords there are. */
#ifndef PD_GRAMMAR_NODE_H
#define PD_GRAMMAR_NODE_H

#include "format/arena.h"
#include "grammar/index.h"

/* These walk what may be large without charging for it: pd_index_... are in their place. */
#ifdef __GNUC__
#pragma GCC poison yyjson_obj_getn yyjson_arr_get yyjson_equals
#endif

#define PD_MAX_NODES 32            /* that one value must satisfy */
#define PD_PATH "%.400s"           /* how a sentence shows a path */

enum pd_json_type {
    PD_JSON_NULL = 1, PD_JSON_BOOLEAN = 2, PD_JSON_INTEGER = 4, PD_JSON_FRACTION = 8, PD_JSON_STRING = 16,
    PD_JSON_ARRAY = 32, PD_JSON_OBJECT = 64,
    PD_JSON_NUMBER = PD_JSON_INTEGER | PD_JSON_FRACTION, PD_JSON_ANY = 127
};

/* A schema in the document. */
struct pd_node {
    yyjson_val *value;
    const char *path;              /* JSON pointer, as "#/properties/name" */
};

/* Of a member of an object; {0}: none. */
struct pd_name {
    const char *text;
    size_t size;
};

/* Schemas that a value must satisfy all. */
struct pd_nodes {
    struct pd_node at[PD_MAX_NODES];
    uint32_t n;
};

struct pd_document {
    yyjson_doc *doc;
    yyjson_val *root;
    struct pd_arena arena;         /* paths */
    struct pd_index index;
    struct pd_work *work;
    uint32_t n_exact;              /* oneOf within one another that are followed: no alternative may be left out */
};

peridot_status pd_document_open(struct pd_document *d, struct pd_work *work, const char *schema, size_t size);
void pd_document_close(struct pd_document *d);

/* Adds a schema, once. */
peridot_status pd_nodes_add(struct pd_nodes *nodes, struct pd_node node);
/* The schema at `value`, below keyword `key` of `parent` and `name` there, if there is one. */
peridot_status pd_node_child(struct pd_node *out, struct pd_document *d, const struct pd_node *parent, const char *key,
                             struct pd_name name, yyjson_val *value);
/* The same of member i of a list. */
peridot_status pd_node_member(struct pd_node *out, struct pd_document *d, const struct pd_node *parent,
                              const char *key, size_t i, yyjson_val *value);
/* Member i of a list, NULL past its last. */
peridot_status pd_list_get(yyjson_val **out, struct pd_document *d, yyjson_val *list, size_t i);
/* What its $ref refers to. */
peridot_status pd_node_follow(struct pd_node *out, struct pd_document *d, const struct pd_node *node,
                              yyjson_val *reference);
/* Fails by name where a schema has a keyword that is not supported, or one twice, or so many that looking for one would
 * take long. */
peridot_status pd_node_check(const struct pd_document *d, const struct pd_node *node);
/* No value satisfies a schema, as it is not any. */
bool pd_node_is_never(const struct pd_node *node);
/* Counts the work of looking at each keyword of a schema. */
peridot_status pd_node_spend(const struct pd_document *d, const struct pd_node *node);
/* Types that `type` allows, PD_JSON_ANY without one. */
peridot_status pd_node_types(unsigned *types, const struct pd_node *node);
/* Types that the keywords of a schema are about; 0: it has none. */
unsigned pd_node_is_about(const struct pd_node *node);
/* A keyword about some type, for a sentence; NULL: there is none. */
const char *pd_node_find_limit(const struct pd_node *node);
/* A keyword's value that must be of a type; *out NULL where it is absent. */
peridot_status pd_node_get(yyjson_val **out, const struct pd_node *node, const char *key, yyjson_type type);
/* A keyword's value that is a count, where there is one. */
peridot_status pd_node_count(uint32_t *out, const struct pd_node *node, const char *key);
/* The largest of counts that are at least something (0: none is given), and the smallest of those that are at most
 * (UINT32_MAX: none). */
peridot_status pd_nodes_counts(uint32_t *min, uint32_t *max, const struct pd_nodes *of, const char *min_key,
                               const char *max_key);

unsigned pd_json_type_of(yyjson_val *value);

#endif
