/* Chat templates as data: a row per family says how a conversation becomes a prompt. Files carry their template as a
 * Jinja program; Peridot does not run it, but recognises whose it is: by its hash where it is a published one, else by
 * a mark that it contains. What a row gives is, id for id, what its published programs give with
 * add_generation_prompt. */
#ifndef PD_TEXT_CHAT_H
#define PD_TEXT_CHAT_H

#include "text/special.h"
#include "text/thoughts.h"

enum pd_chat_kind {
    PD_CHAT_END,      /* of the parts */
    PD_CHAT_BOS,
    PD_CHAT_EOS,
    PD_CHAT_PIECE,    /* a control piece, by its text */
    PD_CHAT_TEXT,     /* plain text of the template */
    PD_CHAT_CONTENT   /* the message, trimmed; always encoded as plain text, so that nobody forges a turn */
};

struct pd_chat_part {
    enum pd_chat_kind kind;
    const char *text;
};

enum pd_chat_role { PD_CHAT_SYSTEM, PD_CHAT_USER, PD_CHAT_ASSISTANT, PD_CHAT_N_ROLES };

/* Where the text of a first message of the system goes. */
enum pd_chat_system {
    PD_CHAT_SYSTEM_TURN,     /* a turn like the others'; there may be more of them */
    PD_CHAT_SYSTEM_BLOCK,    /* the row's `block`, which is there even without such a message; later ones are turns */
    PD_CHAT_SYSTEM_JOINED    /* before the first user's text, between system_begin and system_end; only once, and turns
                              * alternate */
};

struct pd_chat {
    const char *name;
    const char *mark;                /* what the family's Jinja template contains, and no row's above; NULL: none */
    uint64_t published[2];           /* pd_chat_hash of the published ones; 0: none */
    const char *needs;               /* a piece that the vocabulary must have; NULL: those of the turns will do */
    const char *stops[3];            /* the pieces that end the model's turn, beside eos */
    enum pd_chat_system system;
    const char *system_begin, *system_end;
    bool trim_joined;                /* a user's text is trimmed after the system's was put before it, not by itself */
    bool untrimmed;                  /* messages are taken as they are */
    bool joins_replies;              /* a message of the model's after another has no mark before it */
    struct pd_chat_part begin[2];    /* first of all */
    struct pd_chat_part block[8];    /* of SYSTEM_BLOCK; of others the system's turn that has the model think */
    struct pd_chat_part turns[PD_CHAT_N_ROLES][7];
    struct pd_chat_part between[2];  /* before a turn that others come before, unless it is the model's without marks */
    struct pd_chat_part open[5];     /* at the end: the model's turn */
    const char *thinks[PD_N_THOUGHT_MARKS];   /* the marks of a thought in the model's turn; NULL: none */
    /* After `open` where the model is not to think: of programs that contain the mark, as those of some sizes do. */
    const char *no_thought_mark;
    struct pd_chat_part no_thought[4];
};

/* Of a Jinja program, whatever its comments and its white space outside of quotes. */
uint64_t pd_chat_hash(const char *jinja, size_t size);
/* Whether the row stands for a published program of this hash. */
bool pd_chat_is_published(const struct pd_chat *chat, uint64_t hash);
/* By a program's mark: NULL when it is of no family in the table, or the vocabulary lacks a piece of the family's. */
const struct pd_chat *pd_chat_by_template(const char *jinja, size_t size, const struct pd_special *s,
                                          const struct pd_pieces *p);
/* For files without a template: a model whose name says that it was tuned to instructions ("gemma-2-2b-it"), and whose
 * vocabulary has a family's pieces. */
const struct pd_chat *pd_chat_by_name(const char *name, size_t size, const struct pd_special *s,
                                      const struct pd_pieces *p);
/* A row by its own name, which the caller typed: fails when there is none, or the vocabulary lacks its pieces. */
peridot_status pd_chat_get(const struct pd_chat **out, const char *name, const struct pd_special *s,
                           const struct pd_pieces *p);
/* Name i of the table, NULL past the last. */
const char *pd_chat_name(size_t i);
/* Whether the row's `no_thought` is the program's, too. */
bool pd_chat_has_no_thought(const struct pd_chat *chat, const char *jinja, size_t size);
/* The marks of thoughts, of the family that the vocabulary fits or the usual ones; -1 where it has none. True: a
 * thought's first line is its name. */
bool pd_chat_find_thoughts(int32_t ids[PD_N_THOUGHT_MARKS], const struct pd_special *s, const struct pd_pieces *p);
/* Marks every family's end of turn that the vocabulary has as a stop. */
void pd_chat_mark_stops(struct pd_pieces *p, const struct pd_special *s);

#endif
