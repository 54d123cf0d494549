/* A conversation in a terminal. */
#ifndef PERIDOT_COMMAND_CHAT_CHAT_H
#define PERIDOT_COMMAND_CHAT_CHAT_H

#include "../base/base.h"
#include "../cli/cli.h"
#include "../console/console.h"
#include "../toolbox/toolbox.h"

/* ---- conversation ---- */

struct cmd_picture {
    char *url;             /* "file:PATH", the path as it was given, or "data:...;base64,..." */
    peridot_image *image;
};

struct cmd_pictures {
    struct cmd_picture *at;
    size_t n, capacity;
};

struct cmd_message {
    const char *role;      /* "system", "user", "assistant" or "tool" */
    char *text;
    char *json;            /* all of it, as OpenAI's chat completions have messages */
    bool is_plain;         /* a role and a text, and nothing more */
    size_t begin;          /* ids before it; 0: not known, or none */
    struct cmd_pictures pictures;   /* before the text of the user's, after that of a tool's */
};

/* {0} is the beginning. */
struct cmd_conversation {
    struct cmd_message *messages;
    size_t n, capacity;
    size_t first;          /* messages before it, but for the system's, are left out */
    int32_t *ids;          /* [n_ids], of all messages but those left out; 0: to be made */
    size_t n_ids, ids_capacity;
    char *unsent;          /* the user's last message, where it has got no reply; NULL: none */
    struct cmd_pictures attached;   /* those of the user's next message */
};

void cmd_conversation_free(struct cmd_conversation *c);
/* The ids of all messages are to be made anew, as they are encoded in another way. */
void cmd_conversation_forget_ids(struct cmd_conversation *c);
/* Leaves only the system's message. */
void cmd_conversation_reset(struct cmd_conversation *c);

/* The system's message, or NULL. */
const char *cmd_conversation_system(const struct cmd_conversation *c);
/* Sets it; NULL removes it. */
peridot_status cmd_conversation_set_system(struct cmd_conversation *c, const char *text);

/* Adds a picture, and becomes an owner of it; its URL is two texts, the second after the first. */
peridot_status cmd_pictures_add(struct cmd_pictures *p, const char *prefix, const char *url, peridot_image *image);
void cmd_pictures_free(struct cmd_pictures *p);
/* Adds a picture to the user's next message, and becomes an owner of it. */
peridot_status cmd_conversation_attach(struct cmd_conversation *c, const char *path, peridot_image *image);
/* Takes them off again. */
void cmd_conversation_detach(struct cmd_conversation *c);
/* Appends a message; of `text` only `size` bytes. The user's gets the pictures that were attached. */
peridot_status cmd_conversation_add(struct cmd_conversation *c, const char *role, const char *text, size_t size);
/* Appends a message that has more than a role and a text: `json`, which it takes over, and the pictures in it, which go
 * over to it (NULL: none). */
peridot_status cmd_conversation_add_json(struct cmd_conversation *c, const char *role, const char *text, size_t size,
                                         char *json, struct cmd_pictures *pictures);
void cmd_conversation_drop_last(struct cmd_conversation *c);
/* Appends an id of the model's reply. */
peridot_status cmd_conversation_add_id(struct cmd_conversation *c, int32_t id);
/* Takes back the last message of the user, and what came after it: it becomes `unsent`, and its pictures are attached
 * to the next one. False when there is none. */
bool cmd_conversation_undo(struct cmd_conversation *c);
/* The user's last message: unsent, or of the conversation; NULL: there is none. */
const char *cmd_conversation_last(const struct cmd_conversation *c);
/* Turns of the user in messages [begin, end). */
size_t cmd_conversation_turns(const struct cmd_conversation *c, size_t begin, size_t end);

struct cmd_encoding {
    const peridot_vocab *vocab;
    const peridot_model *model;   /* that pictures of files are for */
    bool pan_and_scan;     /* of pictures: see peridot_image_params */
    const char *template_name;
    uint32_t think;        /* see peridot_chat */
    const char *tools;     /* the same; NULL: none */
    uint32_t ctx;
    uint32_t reserve;      /* positions that a reply should have */
    bool refuses;          /* what does not fit, rather than leave out turns */
};

/* Whether the template has a place for each message. */
peridot_status cmd_conversation_check(const struct cmd_conversation *c, const struct cmd_encoding *e);
/* Makes the ids up to the reply to the last message, which is the user's, or a tool's; those of thoughts before it go.
 * Where they and the reply do not fit, the oldest turns are left out (cli.h); *n_left_out is their number. Nothing
 * else changes on failure. */
peridot_status cmd_conversation_encode(struct cmd_conversation *c, size_t *n_left_out, const struct cmd_encoding *e);

/* Reads the pictures again, for another model of the same kind: e->model. Those that cannot be read stay as they are,
 * which a line says. */
void cmd_conversation_read_again(struct cmd_conversation *c, const struct cmd_encoding *e);
/* Writes all messages, also those left out, as [{"role": ..., "content": ...}, ...]. */
peridot_status cmd_conversation_save(const struct cmd_conversation *c, const char *path);
/* Replaces the conversation by a file's. A last message of the user, which has no reply, becomes `unsent`. Nothing
 * changes on failure. `e` is what the messages must suit. */
peridot_status cmd_conversation_load(struct cmd_conversation *c, const char *path, const struct cmd_encoding *e);

/* ---- chat ---- */

/* What peridot chat is at work on: chat.c reads messages, commands.c does those that begin with /, turn.c
 * answers the others, tools.c has what is called meanwhile. */

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
    peridot_sampling plain;       /* args.sampling.p without what the model's publisher recommends */
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

/* Goes on with another model, whose name the arguments borrow. On failure the one before is opened again. */
peridot_status cmd_chat_change_model(struct cmd_chat *chat, const char *name);

/* Does what a line that begins with / says. */
peridot_status cmd_chat_command(struct cmd_chat *chat, const char *line);
/* Whether a line is nothing but paths of pictures, as a terminal writes files that are dragged into it; and shows them
 * to the model with the next message. */
bool cmd_chat_is_pictures(const char *line);
peridot_status cmd_chat_attach(struct cmd_chat *chat, const char *line);
/* A cmd_completer: the commands, their values and files. `user` is the chat. */
void cmd_chat_complete(struct cmd_completions *out, void *user, const char *line);

#endif
