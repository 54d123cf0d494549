/* What text a model may write next: schemas and patterns compiled to rules over bytes, and the tokens that these
 * allow. */
#ifndef PD_GRAMMAR_GRAMMAR_H
#define PD_GRAMMAR_GRAMMAR_H

#include "base/base.h"
#include "format/format.h"

#include <stdatomic.h>
#include <yyjson.h>

/* ---- work ---- */

/* The budget of work that compiling a schema has: one for its document, patterns and rules together, so that no text
 * keeps a server for longer than half a second, or takes more than some 100 MB. Whoever loops over what a schema's
 * author chose counts the steps here before they are taken: an entry of a list or a comparison is one, an edge that is
 * followed a few. A step is 1 or 2 ns. The count depends on the schema alone: the same one compiles, or is refused, on
 * every machine. */

#define PD_MAX_WORK 250000000u
#define PD_MAX_STATES 200000u      /* of rules, some 20 MB; of a rule or a pattern that is being written as well */

struct pd_work {
    uint64_t done, max;            /* 0 and PD_MAX_WORK at first */
};

/* Of so many thousandths; 0: all. */
uint64_t pd_work_of_effort(uint32_t effort);
/* Fails when more than the budget is needed, and from then on. */
peridot_status pd_work_spend(struct pd_work *w, uint64_t n);
/* The same for n log n: what sorting takes. */
peridot_status pd_work_spend_sort(struct pd_work *w, uint64_t n);
/* Sorts numbers, and counts that. */
peridot_status pd_work_sort(struct pd_work *w, uint32_t *numbers, size_t n);
/* What it fails with. */
peridot_status pd_work_fail(void);

/* ---- chars ---- */

enum { PD_CHARS_START, PD_CHARS_END };
#define PD_LAST_CHAR 0x10ffffu
#define PD_SKIP UINT32_MAX         /* `low` of an edge that takes no character */

struct pd_char_edge {
    uint32_t from, to, low, high;
};

struct pd_chars {
    struct pd_char_edge *edges;
    size_t n_edges, edges_capacity;
    uint32_t n_states;
    struct pd_work *work;
    peridot_status status;
};

void pd_chars_begin(struct pd_chars *c, struct pd_work *work);
void pd_chars_free(struct pd_chars *c);
uint32_t pd_chars_state(struct pd_chars *c);
void pd_chars_edge(struct pd_chars *c, uint32_t from, uint32_t low, uint32_t high, uint32_t to);
void pd_chars_skip(struct pd_chars *c, uint32_t from, uint32_t to);
/* Adds the states and edges of another, from state `from` to state `to`. */
void pd_chars_add(struct pd_chars *c, const struct pd_chars *of, uint32_t from, uint32_t to);
/* Counts work; false when the budget is spent, or something failed before. */
bool pd_chars_work(struct pd_chars *c, uint64_t n);

/* Strings that a regular expression of ECMA-262 finds something in. What is not regular or depends on tables of Unicode
 * is refused by name; look-ahead is taken where an alternative of the pattern begins with ^ and it. \D, \W and \S are
 * ASCII characters here: readers of the language differ on the others. */
peridot_status pd_chars_from_pattern(struct pd_chars *out, struct pd_work *work, const char *pattern, size_t size);
/* Strings of min .. max characters; max UINT32_MAX: of any more. */
peridot_status pd_chars_from_length(struct pd_chars *out, struct pd_work *work, uint32_t min, uint32_t max);
/* *a becomes the strings of both. */
peridot_status pd_chars_intersect(struct pd_chars *a, const struct pd_chars *b);
/* *a becomes deterministic, which keeps intersections with it small; the strings that were not of it. */
peridot_status pd_chars_determinise(struct pd_chars *a);
peridot_status pd_chars_complement(struct pd_chars *a);

/* ---- rules ---- */

#define PD_MAX_CALLS 64      /* that are open at once: how deep values nest */
#define PD_MAX_CALL_EDGES 512u   /* of a state, so that following a byte takes some microseconds at most */
#define PD_NEVER UINT8_MAX
enum { PD_NFA_START, PD_NFA_END };   /* states of every rule that is being written */

/* On bytes low .. high the automaton goes to state `to`. */
struct pd_byte_edge {
    uint8_t low, high;
    uint32_t to;
};

/* After a text of the rule, which begins with a byte of low .. high, it goes to state `to`. Those of a state are in the
 * order of `low`. */
struct pd_call_edge {
    uint32_t rule, to;
    uint8_t low, high;
};

struct pd_state {
    uint32_t bytes, calls;         /* its first edges of either kind */
    uint32_t n_bytes, n_calls;
    uint8_t height;                /* calls that must be open at once, at least, to get to the rule's end */
    bool ends;                     /* the rule may end here */
};

struct pd_nfa_edge {
    uint32_t from, to, rule;       /* rule: of a call */
    uint8_t kind, low, high;
};

struct pd_rules {
    struct pd_state *states;
    struct pd_byte_edge *bytes;
    struct pd_call_edge *calls;
    uint32_t *starts;              /* [n_rules]: the state in which each begins */
    size_t n_states, n_bytes, n_calls, n_rules;
    size_t states_capacity, bytes_capacity, calls_capacity, starts_capacity;
    /* While rules are written: */
    struct pd_nfa_edge *edges;
    size_t n_edges, edges_capacity;
    uint32_t n_nfa_states;
    struct pd_work work;           /* of the schema: its document and its patterns are charged to it too */
    peridot_status status;
};

/* Zero-initialise ({0}). */
void pd_rules_free(struct pd_rules *r);
/* Number of a new rule, which is to be written later. */
uint32_t pd_rules_add(struct pd_rules *r);
void pd_rules_begin(struct pd_rules *r);
peridot_status pd_rules_end(struct pd_rules *r, uint32_t rule);
/* Adds the rules of another, which are finished; *rule: the number that its first has here. */
peridot_status pd_rules_append(uint32_t *rule, struct pd_rules *r, const struct pd_rules *of);
/* When all are written. The heights of states are then known; of rule 0's start it is PD_NEVER where it has no text of
 * PD_MAX_CALLS calls at most. */
peridot_status pd_rules_finish(struct pd_rules *r);
/* Finds the heights of finished rules anew, for texts that cannot go on by one of the bytes that are `lacking`. */
peridot_status pd_rules_restrict(struct pd_rules *r, const bool lacking[256]);

/* In the rule that is being written: a new state; edges on a byte of low .. high, on one of some characters, without a
 * byte, and on a rule's text. */
uint32_t pd_nfa_state(struct pd_rules *r);
void pd_nfa_bytes(struct pd_rules *r, uint32_t from, uint8_t low, uint8_t high, uint32_t to);
void pd_nfa_any_of(struct pd_rules *r, uint32_t from, const char *characters, uint32_t to);
void pd_nfa_skip(struct pd_rules *r, uint32_t from, uint32_t to);
void pd_nfa_call(struct pd_rules *r, uint32_t from, uint32_t rule, uint32_t to);
/* The state after a text. */
uint32_t pd_nfa_text(struct pd_rules *r, uint32_t from, const char *text, size_t size);
/* Counts work; false when the budget is spent, there are too many states, or something failed before. */
bool pd_rules_work(struct pd_rules *r, uint64_t n);

/* ---- values ---- */

/* A number as it is written: digits before the point and after it, without zeros that say nothing. */
struct pd_decimal {
    bool given, negative, exclusive;
    char whole[24], fraction[24];
    double value;
};

/* Whole numbers of of / 10^places; of 0: any numbers. */
struct pd_multiple {
    uint64_t of;
    uint32_t places;
};

/* Arguments as `name` NAME `value` VALUE `after`, each, and then `end`, which begins with the byte that `name` begins
 * with and differs in the second. The first byte of `after` is in it once. */
struct pd_tags {
    const char *name, *value, *after, *end;
};

#define PD_MAX_MULTIPLE 10000u
#define PD_MAX_PLACES 9u
struct pd_number_range {
    struct pd_decimal min, max;
    struct pd_multiple multiple;   /* within those limits; integers are multiples of 1 */
};

struct pd_char_rule {
    uint32_t low, high, rule;
};

struct pd_values {
    struct pd_rules *rules;
    const char *delimiter;         /* of strings in the dialect; NULL: JSON */
    bool keywords;                 /* the object that is being written is of keywords */
    const struct pd_tags *tags;    /* or of these; NULL: it is not */
    uint32_t space, escape;        /* rules of white space and of an escape in a free string */
    struct pd_char_rule *chars;    /* rules of characters that are not one byte */
    size_t n_chars, chars_capacity, n_written;
};

void pd_values_begin(struct pd_values *v, struct pd_rules *r, const char *delimiter);
void pd_values_free(struct pd_values *v);
/* Writes the rules that others call. */
peridot_status pd_values_finish(struct pd_values *v);

/* Optional white space, one space or a newline and at most PD_INDENT spaces; a bracket, comma or colon and the white
 * space after it: the state after them. */
#define PD_INDENT 32
uint32_t pd_write_space(struct pd_values *v, uint32_t from);
uint32_t pd_write_mark(struct pd_values *v, uint32_t from, char mark);
/* In a string: a character of low .. high; any, however it is spelt. */
void pd_write_char(struct pd_values *v, uint32_t from, uint32_t low, uint32_t high, uint32_t to);
void pd_write_any_char(struct pd_values *v, uint32_t from, uint32_t to);
/* Strings with their quotes: this one; those of an automaton; those of some length. */
void pd_write_text(struct pd_values *v, uint32_t from, const char *text, size_t size, uint32_t to);
void pd_write_strings(struct pd_values *v, uint32_t from, const struct pd_chars *c, uint32_t to);
void pd_write_length(struct pd_values *v, uint32_t from, uint32_t min, uint32_t max, uint32_t to);
/* How the dialect writes members: in this order of their names, which are of these characters, and spaces within. */
int pd_name_compare(const char *a, size_t a_size, const char *b, size_t b_size);
bool pd_is_name_char(uint32_t c);
bool pd_is_keyword_char(uint32_t c);
/* Names of members: this one, which must be a name in the dialect; those of an automaton that are, NULL: any. */
bool pd_is_name(const struct pd_values *v, const char *text, size_t size);
void pd_write_name(struct pd_values *v, uint32_t from, const char *text, size_t size, uint32_t to);
void pd_write_names(struct pd_values *v, uint32_t from, const struct pd_chars *names, uint32_t to);
/* Those of an automaton in a tag, with what comes after them. */
void pd_write_tagged(struct pd_values *v, uint32_t from, const struct pd_chars *c, uint32_t to);
/* A constant of any type. */
void pd_write_constant(struct pd_values *v, uint32_t from, yyjson_val *value, uint32_t to);

/* False: the value is no number that a limit can be, or has more digits than can be compared exactly. */
bool pd_decimal_read(struct pd_decimal *out, yyjson_val *value, bool exclusive);
/* *m becomes the multiples of both. False: the value is no number above 0, or has too many digits. */
bool pd_multiple_add(struct pd_multiple *m, yyjson_val *value);
void pd_write_number(struct pd_values *v, uint32_t from, const struct pd_number_range *range, uint32_t to);

/* ---- index ---- */

struct pd_index_slot;

/* Zero-initialise but for `work`. */
struct pd_index {
    struct pd_work *work;
    struct pd_index_slot *slots;   /* [mask + 1]; NULL: none yet */
    size_t n, mask;
};

void pd_index_free(struct pd_index *x);
/* *out: the first member of that name, NULL where `object` has none or is no object. */
peridot_status pd_index_get(yyjson_val **out, struct pd_index *x, yyjson_val *object, const char *name, size_t size);
/* Whether a member of `list` equals the value as JSON does: [1, 2.0] is [1.0, 2]. Lists and objects with the same hash
 * of 128 bits are taken for equal. False where `list` is no list. */
peridot_status pd_index_has(bool *out, struct pd_index *x, yyjson_val *list, yyjson_val *value);
/* The same where numbers are read as doubles, by which large integers are equal that differ: for what must tell
 * values apart whoever reads them. */
peridot_status pd_index_may_have(bool *out, struct pd_index *x, yyjson_val *list, yyjson_val *value);
/* The same of two values. */
peridot_status pd_index_equals(bool *out, struct pd_index *x, yyjson_val *a, yyjson_val *b);
peridot_status pd_index_may_equal(bool *out, struct pd_index *x, yyjson_val *a, yyjson_val *b);

/* ---- walk ---- */

#define PD_MAX_THREADS 16

struct pd_walk_thread {
    uint32_t state;
    uint32_t n_calls;
    uint32_t returns[PD_MAX_CALLS];   /* the innermost call last */
};

/* Plain data: a copy goes on by itself. */
struct pd_walk {
    uint32_t n;                       /* 0: the text is none of the grammar's */
    struct pd_walk_thread threads[PD_MAX_THREADS];
};

void pd_walk_begin(struct pd_walk *w, const struct pd_rules *r);
/* False, with the walk as it was, when the text cannot go on with these bytes. */
bool pd_walk_take(struct pd_walk *w, const struct pd_rules *r, const char *bytes, size_t size);
/* The text may end here. */
bool pd_walk_is_complete(const struct pd_walk *w, const struct pd_rules *r);

/* The same for short texts: levels of a walk, one for each byte of the present text. */
#define PD_MAX_STEPS 64
struct pd_trail_thread {
    uint32_t state, call;             /* call: index of the innermost open one; 0: none */
};

struct pd_trail_call {
    uint32_t to, outer;
    uint32_t depth;                   /* calls that are open, this one included */
};

struct pd_trail_level {
    uint32_t n, n_calls;
    struct pd_trail_thread threads[PD_MAX_THREADS];
};

struct pd_trail {
    const struct pd_rules *rules;
    struct pd_trail_level levels[PD_MAX_STEPS + 1];
    struct pd_trail_call calls[1 + PD_MAX_THREADS * (PD_MAX_CALLS + PD_MAX_STEPS)];
};

/* *level becomes that after one more byte; false when there is none. Calls that begin there are written after the first
 * n_calls, one for each thread at most. */
bool pd_level_step(struct pd_trail_level *level, const struct pd_rules *r, struct pd_trail_call *calls,
                   uint32_t n_calls, const struct pd_trail_level *from, uint8_t byte);

void pd_trail_begin(struct pd_trail *t, const struct pd_rules *r, const struct pd_walk *w);
/* Level `at` + 1 becomes that after one more byte; false when there is none. at < PD_MAX_STEPS. */
bool pd_trail_step(struct pd_trail *t, uint32_t at, uint8_t byte);
/* Levels 1 .. size become those of a text of at most PD_MAX_STEPS bytes; false when there is none. */
bool pd_trail_take(struct pd_trail *t, const char *bytes, size_t size);

/* ---- node ---- */

/* These walk what may be large without charging for it: pd_index_... are in their place. */
#ifdef __GNUC__
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
struct pd_key {
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
                             struct pd_key name, yyjson_val *value);
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

/* ---- schema ---- */

struct pd_tags;

/* *out is to be freed even on failure. */
peridot_status pd_schema_compile(struct pd_rules *out, const char *schema, size_t size);
/* With a budget of its own. */
peridot_status pd_schema_compile_within(struct pd_rules *out, uint64_t max_work, const char *schema, size_t size);
/* How the arguments of a tool call are written: in JSON, or where one of these is there, in one of the dialects. */
struct pd_argument_form {
    const char *delimiter;
    bool keywords;
    const struct pd_tags *tags;
};
/* The arguments of a tool call: an object, without white space around it. `work` is charged. */
peridot_status pd_schema_compile_arguments(struct pd_rules *out, struct pd_work *work,
                                           const struct pd_argument_form *form, const char *schema, size_t size);

/* ---- tags ---- */

/* Arguments of calls as tags (pd_tags): which of them are text as it is. Grammar and parser must agree, so that
 * neither looks at more of a schema than this does. */

/* Whether the property of that name may be a string, as one may of which `parameters`, a schema or NULL, says nothing,
 * or says it too deep or after too much else. text NULL: one that `properties` does not name. *steps: the work. */
bool pd_is_tag_text(uint64_t *steps, yyjson_val *parameters, struct pd_key name);

/* ---- spellings ---- */

struct pd_spelling {
    uint32_t id, offset;
    uint16_t size;                 /* at least 1 */
    uint16_t shared;               /* bytes that it begins with like the one before */
};

/* Of characters that a string holds as they are, whole, and at most PD_PLAIN_CHARS of them: most tokens are so. */
#define PD_PLAIN_CHARS 16

struct pd_spellings {
    struct pd_refs refs;           /* the vocabulary, and grammars */
    uint32_t n_pieces;             /* of the vocabulary */
    char *bytes;
    size_t n_bytes, bytes_capacity;
    struct pd_spelling *sorted;    /* [n] */
    size_t n, sorted_capacity;
    uint32_t *plain;               /* [n_pieces / 32 + 1]: bits of the plain ones, n_plain */
    struct pd_spelling *others;    /* [n - n_plain]: all but those, sorted */
    size_t n_plain;
    size_t longest;                /* bytes of one */
    uint32_t *of_id;               /* [n_pieces]: index in `sorted`, UINT32_MAX: it adds none */
    bool lacking[256];             /* bytes that are no token by themselves */
    bool lacks;                    /* and some of them are of UTF-8 */
    uint32_t *stops;               /* [n_stops]: ids of stop tokens */
    size_t n_stops, stops_capacity;
};

/* *s is zeroed at first; pieces are added one by one, then it is finished. Pieces without bytes are never allowed. */
peridot_status pd_spellings_add(struct pd_spellings *s, uint32_t id, const char *bytes, size_t size);
peridot_status pd_spellings_add_stop(struct pd_spellings *s, uint32_t id);
/* PERIDOT_ERROR_UNSUPPORTED when there is no stop token. */
peridot_status pd_spellings_finish(struct pd_spellings *s, uint32_t n_pieces);
/* Frees the arrays. */
void pd_spellings_free(struct pd_spellings *s);
/* Gives up an ownership of spellings that malloc gave; the last owner frees them. NULL is allowed. */
void pd_spellings_drop(struct pd_spellings *s);

/* ---- grammar ---- */

#define PD_N_MASKS 512             /* that a grammar keeps: 16 MB for a vocabulary of 256,000 */

/* The tokens that may come next where a walk is. */
struct pd_mask {
    uint64_t key;                  /* hash of the walk */
    struct pd_walk walk;
    uint32_t n_allowed;
    uint32_t bits[];               /* [n_pieces / 32] */
};

struct peridot_grammar {
    struct pd_refs refs;
    struct pd_rules rules;
    struct pd_spellings *spellings;         /* owned with the vocabulary */
    struct pd_mask *_Atomic *masks;         /* [PD_N_MASKS]; each NULL at first, and never changed after that */
};

/* From a JSON Schema; see peridot_grammar_json_schema. max_work: see pd_schema_compile_within. */
peridot_status pd_grammar_create(peridot_grammar **out, struct pd_spellings *spellings, const char *schema,
                                 size_t size, uint64_t max_work);
/* From rules, which it takes, whatever it returns. */
peridot_status pd_grammar_create_of(peridot_grammar **out, struct pd_spellings *spellings, struct pd_rules *rules);
/* Another owner. NULL is allowed, here and below. */
peridot_grammar *pd_grammar_ref(const peridot_grammar *g);
/* Gives up an ownership; the last owner frees it. */
void pd_grammar_free(peridot_grammar *g);

/* Whether each of n tokens may come next. */
void pd_grammar_allows(bool *allowed, const peridot_grammar *g, const struct pd_walk *w, const uint32_t *ids,
                       size_t n);
/* The token has come: false, with the walk as it was, when it cannot. A stop token cannot. */
bool pd_grammar_take(struct pd_walk *w, const peridot_grammar *g, int32_t token);

/* All tokens that may come next. *made is what the caller frees, NULL where the grammar keeps it. */
peridot_status pd_grammar_mask(const struct pd_mask **out, struct pd_mask **made, const peridot_grammar *g,
                               const struct pd_walk *w);
/* It is that of the walk. */
bool pd_mask_is_of(const struct pd_mask *m, const struct pd_walk *w);
static inline bool pd_mask_has(const struct pd_mask *m, uint32_t id) { return m->bits[id / 32] >> (id % 32) & 1; }

/* The same in pieces of at most *steps steps, of which *steps becomes those that are left; a step is some 5 ns. *job is
 * NULL at first. *out NULL: the mask is not finished, and the next call for the same walk goes on with it, one for
 * another begins anew; else *job is NULL again. */
struct pd_mask_job;
peridot_status pd_grammar_mask_some(const struct pd_mask **out, struct pd_mask **made, struct pd_mask_job **job,
                                    const peridot_grammar *g, const struct pd_walk *w, uint64_t *steps);
/* Of a mask that is wanted no more. NULL is allowed. */
void pd_mask_job_free(struct pd_mask_job *job);

#endif
