/* Tools in a conversation: what the model may call, the calls of a reply, and their results as messages. */
#ifndef PERIDOT_COMMAND_CHAT_CHAT_PRIVATE_H
#define PERIDOT_COMMAND_CHAT_CHAT_PRIVATE_H

#include "chat.h"

enum { CMD_CALLS_MAX = 32 };

/* Of a reply. {0} is the beginning. */
struct cmd_calls {
    struct cmd_call {
        char *name;
        struct pd_buffer arguments;
        bool complete;
    } at[CMD_CALLS_MAX];
    size_t n;                      /* those that are not complete come last */
};

/* Takes a piece of a call. Calls beyond CMD_CALLS_MAX are a failure. */
peridot_status cmd_calls_take(struct cmd_calls *calls, const peridot_call_piece *piece);
/* Drops those that are not complete, as their reply was cut. */
void cmd_calls_end(struct cmd_calls *calls);
void cmd_calls_free(struct cmd_calls *calls);

/* Compiles the tools that there are now, if they are others than before: chat->tools, chat->encoding.tools. Without a
 * toolbox does nothing. */
peridot_status cmd_chat_take_tools(struct cmd_chat *chat);
/* Appends a reply that has calls to the conversation. */
peridot_status cmd_chat_add_calls(struct cmd_chat *chat, const char *text, size_t size, const struct cmd_calls *calls);
/* Asks for the calls, carries them out, and appends their results to the conversation. After PERIDOT_CANCELLED those
 * that were not reached have results that say so. */
peridot_status cmd_chat_answer_calls(struct cmd_chat *chat, const struct cmd_calls *calls);

#endif
