/* The compiler from a schema to rules, and the rules themselves. */
#ifndef PD_GRAMMAR_GRAMMAR_PRIVATE_H
#define PD_GRAMMAR_GRAMMAR_PRIVATE_H

#include "base/base.h"
#include "grammar/grammar.h"

#include <string.h>

/* ---- compiler ---- */

struct pd_compiler_job {
    struct pd_nodes nodes;
    yyjson_val *constant;          /* NULL: of the nodes */
    uint32_t rule;
    bool keywords;                 /* an object is written as the arguments in f(name=value, ...) are, or as tags */
    bool tagged;                   /* the strings of them, in a tag */
};

#define PD_MAX_FAILED 32
struct pd_compiler_failed {
    struct pd_nodes nodes;
    peridot_status status;
    const char *sentence;
};

struct pd_compiler {
    struct pd_rules *r;
    struct pd_values values;
    struct pd_document d;
    struct pd_compiler_job *jobs;  /* the first n_done are written */
    size_t n_jobs, jobs_capacity, n_done;
    uint32_t n_together;           /* schemas of the rule that is being written, before what they refer to */
    bool chooses;                  /* some rule has alternatives */
    bool arguments;                /* of a tool call, rather than a whole text */
    bool keywords;                 /* they are keywords */
    const struct pd_tags *tags;    /* or tags; NULL: they are not */
    const char *delimiter;         /* see pd_values */
    struct pd_compiler_failed *failed;   /* [PD_MAX_FAILED]: rules that cannot be written */
    uint32_t n_failed;
};

void pd_compiler_free(struct pd_compiler *c);
/* The rule that could not be written, of job n_done, is remembered, and all that was written forgotten; false: too many
 * were, and the last failure stands. */
bool pd_compiler_give_up(struct pd_compiler *c, peridot_status status);
/* The rule of values that satisfy all of `nodes`: of the whole, which may be keywords; of a part. Of strings in
 * a tag. And of one value. */
peridot_status pd_compiler_root(uint32_t *rule, struct pd_compiler *c, const struct pd_nodes *nodes);
peridot_status pd_compiler_rule(uint32_t *rule, struct pd_compiler *c, const struct pd_nodes *nodes);
peridot_status pd_compiler_tagged(uint32_t *rule, struct pd_compiler *c, const struct pd_nodes *nodes);
peridot_status pd_compiler_constant(uint32_t *rule, struct pd_compiler *c, yyjson_val *value);
/* Adds what `key`, unevaluatedProperties or unevaluatedItems, says of a member of which no schema of an alternative
 * says anything else. */
peridot_status pd_compiler_unevaluated(struct pd_nodes *out, struct pd_compiler *c, const struct pd_nodes *of,
                                       const char *key);

/* ---- array ---- */

/* What `of` say of arrays: the rule that is being written, from its start to its end. */
peridot_status pd_write_array(struct pd_compiler *c, const struct pd_nodes *of);

/* ---- strings ---- */

/* What `of`, an alternative, say of strings: the rule that is being written, from its start to its end. */
peridot_status pd_write_string(struct pd_compiler *c, const struct pd_nodes *of);
/* The strings that satisfy all of `nodes`. *out is to be freed even on failure. */
peridot_status pd_strings_find(struct pd_chars *out, struct pd_compiler *c, const struct pd_nodes *nodes);

/* ---- object ---- */

/* Objects of a schema: properties in the order in which they are named, then others. */

/* What `of` say of objects: the rule that is being written, from its start to its end. */
peridot_status pd_write_object(struct pd_compiler *c, const struct pd_nodes *of);

/* ---- pattern ---- */

/* A pattern that is being read: its text and the automaton that it becomes. What goes wrong stays in the automaton. */

#define PD_MAX_RANGES 256

struct pd_range {
    uint32_t low, high;
};

struct pd_pattern {
    struct pd_chars *out;
    const char *text;
    size_t size, at;
    uint32_t depth;
    bool looks_ahead;              /* the text has (?= or (?! somewhere */
};

/* Characters of a class. */
struct pd_ranges {
    struct pd_range r[PD_MAX_RANGES];
    uint32_t n;
    bool ascii;                    /* its complement is of ASCII characters only */
};

static inline bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

static inline void refuse(struct pd_pattern *p, const char *what)
{
    if (p->out->status == PERIDOT_OK)
        p->out->status = pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s (byte %zu of the pattern)", what, p->at);
}

static inline bool ok(const struct pd_pattern *p) { return p->out->status == PERIDOT_OK; }
static inline bool more(const struct pd_pattern *p) { return ok(p) && p->at < p->size; }
static inline bool next_is(const struct pd_pattern *p, char c) { return more(p) && p->text[p->at] == c; }

static inline bool begins_with(const struct pd_pattern *p, const char *text)
{
    size_t n = strlen(text);
    return more(p) && p->size - p->at >= n && memcmp(p->text + p->at, text, n) == 0;
}

static inline bool take(struct pd_pattern *p, char c)
{
    bool is = next_is(p, c);
    p->at += is;
    return is;
}

static inline uint32_t take_char(struct pd_pattern *p)
{
    uint32_t code = 0;
    size_t length = 1;
    pd_chars_work(p->out, 8);
    if (!more(p)) refuse(p, "it ends too early");
    else if (pd_utf8_next(&code, &length, p->text + p->at, p->size - p->at) != PD_UTF8_CHARACTER)
        refuse(p, "it is not UTF-8");
    if (ok(p)) p->at += length;
    return code;
}

/* The characters that an expression of one stands for, of which c is the first of the text: a class, an escape, a dot,
 * or c itself. */
void pd_pattern_take_ranges(struct pd_pattern *p, struct pd_ranges *r, uint32_t c);

/* ---- names ---- */

/* Adds a name to a set. */
void pd_names_add(struct pd_chars *out, struct pd_key name);
/* Whether a set has a name. */
peridot_status pd_names_has(bool *out, const struct pd_chars *names, struct pd_key name);
/* The names that a pattern of patternProperties at `node` finds something in. *out is to be freed even on failure. */
peridot_status pd_names_of_pattern(struct pd_chars *out, struct pd_work *work, const struct pd_node *node,
                                   yyjson_val *pattern);
/* All names but n given ones. *out is to be freed even on failure. */
peridot_status pd_names_but(struct pd_chars *out, struct pd_work *work, const struct pd_key *names, size_t n);

/* Adds the schemas of patternProperties at `node` whose patterns match a name. */
peridot_status pd_names_add_matched(struct pd_nodes *out, bool *any, struct pd_document *d, const struct pd_node *node,
                                    struct pd_key name);

/* ---- formats ---- */

/* The formats of JSON Schema as patterns. */

/* The pattern of a format; NULL: it has none, and is an annotation. */
const char *pd_format_pattern(const char *name);

/* ---- object parts ---- */

/* An object of a schema between finding what it has (object.c) and writing it (object.c). */

#define PD_MAX_PATTERNS 10
#define PD_MAX_KINDS 32            /* of other names, by the patterns that match them */

enum pd_presence { PD_ABSENT, PD_OPTIONAL, PD_REQUIRED };

struct pd_member_rule {
    uint32_t rule;
    bool tagged;                   /* with what comes after the value in a tag */
};

struct pd_property {
    struct pd_key name;
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

/* ---- constants ---- */

/* The values of enum and const, and other types that have few values. */

/* Zero-initialise ({0}). */
struct pd_constants {
    yyjson_val **at;
    size_t n, capacity;
};

void pd_constants_free(struct pd_constants *c);
/* Adds the values of some types that an alternative has; *given: false where it has no enum and const. */
peridot_status pd_constants_find(struct pd_constants *out, bool *given, struct pd_document *d,
                                 const struct pd_nodes *of, unsigned types);
/* Whether some reader may take two values for the same, as large integers are that only differ beyond a double. */
peridot_status pd_constants_may_equal(bool *out, struct pd_document *d, yyjson_val *a, yyjson_val *b);
/* Adds all values that satisfy all of `nodes`, each once; *finite: false where there are others than constants, null,
 * true and false. */
peridot_status pd_constants_find_all(struct pd_constants *out, bool *finite, struct pd_document *d,
                                     const struct pd_nodes *nodes);

/* ---- alternatives ---- */

struct pd_alternatives {
    struct pd_nodes *of;
    size_t n, capacity;
};

/* Of values that satisfy all of `nodes`. None: there is no such value. */
peridot_status pd_alternatives_find(struct pd_alternatives *out, struct pd_document *d, const struct pd_nodes *nodes);
void pd_alternatives_free(struct pd_alternatives *a);

/* Types of what an alternative writes: where `type` is absent, those that its keywords are about. */
peridot_status pd_nodes_types(unsigned *types, struct pd_document *d, const struct pd_nodes *nodes);
/* Schemas of a property: of `properties` and patternProperties, else of additionalProperties where that is given. */
peridot_status pd_nodes_property(struct pd_nodes *out, struct pd_document *d, const struct pd_nodes *of,
                                 struct pd_key name);

#pragma GCC poison yyjson_obj_getn yyjson_arr_get yyjson_equals

#endif
