/* Speculative decoding as options: --draft and --draft-tokens, for every command that writes text. */
#ifndef PERIDOT_COMMAND_DRAFT_H
#define PERIDOT_COMMAND_DRAFT_H

#include "open.h"

/* A member of such a command's arguments. */
struct cmd_draft_args {
    const char *name;          /* "ngram", "assistant", or a model; NULL: no drafts */
    uint32_t n;                /* 0: automatic */
};

#define CMD_DRAFT_OPTIONS(type, member) \
    {.name = "draft", .metavar = "MODEL", .kind = CMD_TEXT, .offset = offsetof(type, member.name), \
     .help = "Write faster, and the same text: tokens that are likely to come are guessed by this smaller model with " \
             "the same vocabulary, or by the model's own drafter (gemma4-assistant), and evaluated several at a " \
             "time. assistant: the drafter that lies beside the model. ngram: needs no model, guesses what followed " \
             "the same words earlier in the text."}, \
    {.name = "draft-tokens", .metavar = "N", .kind = CMD_U32, .offset = offsetof(type, member.n), .fallback = "0", \
     .max = 31, .help = "Guess N tokens each time; 0: as many as suit the device, and none while guessing does not " \
                        "pay."}

/* A draft model with a session of its own, or a drafter, which needs none. */
struct cmd_draft {
    peridot_model *model;      /* NULL: none */
    peridot_session *session;
};

/* What sessions and requests take as n_draft. */
uint32_t cmd_draft_tokens(const struct cmd_draft_args *args);
/* Opens the draft model, if one is named, on the device of `of`. */
peridot_status cmd_draft_open(struct cmd_draft *out, const struct cmd_draft_args *args,
                              const struct cmd_model_args *model, peridot_model *of);
/* The drafter that sessions of `of` take; NULL: it is none. */
peridot_model *cmd_draft_drafter(const struct cmd_draft *draft);
/* If it is a model that is no drafter: its session, with p's context and number of sequences. */
peridot_status cmd_draft_create_session(struct cmd_draft *draft, const peridot_session_params *p);
void cmd_draft_close(struct cmd_draft *draft);

#endif
