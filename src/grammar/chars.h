/* Sets of strings as nondeterministic automata over characters: what patterns, formats and limits of length become
 * before strings.c writes them as JSON. Functions that write keep what goes wrong in `status`. */
#ifndef PD_GRAMMAR_CHARS_H
#define PD_GRAMMAR_CHARS_H

#include "grammar/work.h"

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

#endif
