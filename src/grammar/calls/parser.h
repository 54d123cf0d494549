/* Replies taken apart while they stream: text for the user, and calls. However the bytes are split, what comes out is
 * the same. Text that may begin a call is held back until it is one, or none. */
#ifndef PD_GRAMMAR_CALLS_PARSER_H
#define PD_GRAMMAR_CALLS_PARSER_H

#include "grammar/calls/arguments.h"
#include "grammar/calls/calls.h"

/* What is told of a reply, each with `user`; none is NULL. A failure ends the parsing, and is given back. */
struct pd_call_sink {
    void *user;
    peridot_status (*text)(void *user, const char *bytes, size_t size);
    /* A call begins; its arguments come in pieces of whole characters, which together are a JSON object; it is
     * complete. Where a reply ends within a call, or goes on otherwise than a call can, `end` does not come, and a
     * character that was cut is U+FFFD. */
    peridot_status (*begin)(void *user, const char *name, size_t size);
    peridot_status (*arguments)(void *user, const char *json, size_t size);
    peridot_status (*end)(void *user);
};

#define PD_MAX_CALL_HEAD 512       /* bytes from the begin of a block to the arguments of its first call, at most */
struct pd_call_parser {
    const struct pd_call_format *format;
    unsigned marks;
    /* As in pd_calls: calls of other names are text, as they are to the grammar. NULL: there are no other names. */
    yyjson_val *tools;
    const char *name;
    /* The parser's own, zero at first: */
    enum { PD_CALL_FIRST, PD_CALL_TEXT, PD_CALL_ARGUMENTS, PD_CALL_NEXT, PD_CALL_AFTER } state;
    size_t shape;                  /* of the present block */
    struct pd_call_arguments arguments;
    char begun[4];                 /* [n_begun]: bytes of a character of the arguments that is not complete yet */
    size_t n_begun;
    char held[PD_MAX_CALL_HEAD];
    size_t n_held;
};

/* More bytes of a reply. `end`: they are the last. */
peridot_status pd_call_parser_next(struct pd_call_parser *p, const struct pd_call_sink *sink, const char *bytes,
                                   size_t size, bool end);

#endif
