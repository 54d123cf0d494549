/* A pushdown automaton over bytes: rules, each a finite automaton whose edges are bytes or calls of rules. Bytes are
 * deterministic in a rule; calls may overlap with each other, which is what walk.c has threads for. Every rule takes at
 * least one byte, and its first is never in a call, so that following a byte takes one call at most.
 *
 * Rules are written as nondeterministic automata, one after another (pd_rules_begin, pd_nfa_..., pd_rules_end), and
 * pd_rules_finish finds the states from which no value can be completed, which walks avoid. Functions that write cannot
 * fail by themselves: what goes wrong stays in `status`, and pd_rules_end gives it back. */
#ifndef PD_GRAMMAR_RULES_H
#define PD_GRAMMAR_RULES_H

#include "grammar/work.h"

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

#endif
