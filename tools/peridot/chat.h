/* What peridot chat is at work on: chat.c reads messages, chat_commands.c does those that begin with /, chat_turn.c
 * answers the others, chat_tools.c has what is called meanwhile. */
#ifndef PERIDOT_COMMAND_CHAT_H
#define PERIDOT_COMMAND_CHAT_H

#include "conversation.h"
#include "draft.h"
#include "editor.h"
#include "open.h"
#include "sampling.h"
#include "thought.h"
#include "toolbox/toolbox.h"

struct cmd_chat_args {
    struct cmd_model_args model;
    const char *system, *load, *template_name;
    struct cmd_texts tools;
    uint32_t n, think, ctx, chunk, kv, full;   /* full: 1, refuse */
    struct cmd_sampling sampling;
    struct cmd_draft_args draft;
};

#define CMD_CHAT_LENGTH_OPTION \
    {.letter = 'n', .name = "length", .metavar = "N", .kind = CMD_U32, .offset = offsetof(struct cmd_chat_args, n), \
     .fallback = "0", .help = "A reply has at most N tokens; 0: until the model ends it, or as long as the context " \
                              "has room for another turn; and at most 256 of a model without a chat template, which " \
                              "may never end."}

#define CMD_CHAT_FULL_OPTION \
    {.name = "full", .metavar = "WAY", .kind = CMD_CHOICE, .offset = offsetof(struct cmd_chat_args, full), \
     .fallback = "drop", .value = cmd_chat_full_name, \
     .help = "When the conversation no longer fits the context: drop leaves out its oldest turns, refuse refuses the " \
             "message."}

/* "drop", "refuse" */
const char *cmd_chat_full_name(size_t i);

struct cmd_chat {
    struct cmd_chat_args args;
    const struct cmd_command *command;   /* whose options they are */
    peridot_model *model;
    peridot_session *session;
    peridot_sequence *sequence;
    struct cmd_draft draft;
    peridot_sequence *drafts;     /* NULL: there is no draft model */
    peridot_grammar *grammar;     /* of --json-schema, for every reply */
    struct cmd_toolbox *toolbox;  /* NULL: there was no --tools */
    peridot_tools *tools;         /* of the toolbox, for every reply; NULL: none */
    uint32_t n_replies;           /* with tools */
    struct cmd_conversation conversation;
    struct cmd_encoding encoding;
    uint32_t most;                /* tokens of a reply */
    uint32_t next;                /* positions that a reply without a length leaves to the next turn */
    uint32_t limit;               /* tokens that the last reply could have */
    peridot_sampling sampling;
    peridot_bias bias[CMD_TEXTS_MAX];
    struct cmd_texts kept;        /* values of /set, which the arguments borrow */
    struct cmd_editor *editor;    /* NULL: standard input is no terminal */
    peridot_stats stats;          /* of the last reply */
    struct cmd_thought thought;   /* before it */
    uint32_t n_reused;            /* tokens of its prompt that the cache had */
    bool refused;                 /* a setting was, which a sentence has said already */
    bool leaves;                  /* nothing more is read */
};

extern const struct cmd_command cmd_chat;   /* takes a struct cmd_chat_args */

/* A session and a sequence of the model, which samples as `sampling` says. */
peridot_status cmd_chat_open_session(struct cmd_chat *chat);
/* Sends a message of the user and writes the reply. On failure the message is the conversation's `unsent`. */
peridot_status cmd_chat_answer(struct cmd_chat *chat, const char *text);
/* Takes the length of replies, and the room that they should find, from chat->args. */
void cmd_chat_take_length(struct cmd_chat *chat);
/* Takes from chat->args whether the model is to think. */
peridot_status cmd_chat_take_think(struct cmd_chat *chat);
/* Writes what the last reply cost to standard error. */
void cmd_chat_print_stats(const struct cmd_chat *chat);

/* Does what a line that begins with / says. */
peridot_status cmd_chat_command(struct cmd_chat *chat, const char *line);
/* Whether a line is nothing but paths of pictures, as a terminal writes files that are dragged into it; and shows them
 * to the model with the next message. */
bool cmd_chat_is_pictures(const char *line);
peridot_status cmd_chat_attach(struct cmd_chat *chat, const char *line);
/* A cmd_complete: the commands, their values and files. `user` is the chat. */
void cmd_chat_complete(struct cmd_completions *out, void *user, const char *line);

#endif
