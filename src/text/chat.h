/* Chat templates as data: a row per family says how one turn of the user becomes a prompt. Files carry their template as a
 * Jinja program; Peridot does not run it, but recognises whose it is. */
#ifndef PD_TEXT_CHAT_H
#define PD_TEXT_CHAT_H

#include "text/special.h"

enum pd_chat_kind {
    PD_CHAT_END,      /* of the parts */
    PD_CHAT_PIECE,    /* a control piece, by its text */
    PD_CHAT_TEXT,     /* plain text of the template */
    PD_CHAT_USER      /* the user's text, trimmed; always encoded as plain text, so that nobody forges a turn */
};

struct pd_chat_part {
    enum pd_chat_kind kind;
    const char *text;
};

struct pd_chat {
    const char *name;
    const char *mark;                /* what the family's Jinja template contains, and no other's */
    const char *stop;                /* the piece that ends the model's turn */
    struct pd_chat_part parts[8];    /* after bos: the user's turn, and the model's turn opened */
};

/* NULL when the template is of no family in the table, or the vocabulary lacks one of the family's pieces. */
const struct pd_chat *pd_chat_by_template(const char *jinja, size_t size, const struct pd_special *s,
                                          const struct pd_pieces *p);
/* For files without a template: a model whose name says that it was tuned to instructions ("gemma-2-2b-it"), and whose
 * vocabulary has a family's pieces. */
const struct pd_chat *pd_chat_by_name(const char *name, size_t size, const struct pd_special *s, const struct pd_pieces *p);
/* Marks every family's end of turn that the vocabulary has as a stop. */
void pd_chat_mark_stops(struct pd_pieces *p, const struct pd_special *s);

#endif
