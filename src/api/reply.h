/* What the tokens of a reply become: text, thoughts and calls of functions, each for its callback. */
#ifndef PD_API_REPLY_H
#define PD_API_REPLY_H

#include "api/thinking.h"
#include "api/tools.h"
#include "grammar/calls/parser.h"

/* The calls in a reply. */
struct pd_calling {
    struct peridot_tools *tools;       /* NULL: there are none */
    peridot_call call;                 /* NULL: nobody asks for them */
    struct pd_call_parser parser;
    struct pd_text_buffer spelled;     /* the bytes of a token, and control tokens as marks */
    struct pd_text_buffer text;        /* what of them is no part of a call */
    uint32_t n;                        /* calls that have begun */
};

/* Becomes an owner of the tools; both may be NULL. */
void pd_calling_begin(struct pd_calling *c, const peridot_tools *tools, peridot_call call);
void pd_calling_end(struct pd_calling *c);

/* Hands on what a token completes; -1 flushes. *part is what it is a part of. *go_on: the reply may go on. */
peridot_status pd_reply_write(bool *go_on, enum pd_reply_part *part, peridot_request *r, int32_t token);

#endif
