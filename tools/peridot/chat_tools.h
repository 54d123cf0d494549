/* Tools in a conversation: what the model may call, the calls of a reply, and their results as messages. */
#ifndef PERIDOT_COMMAND_CHAT_TOOLS_H
#define PERIDOT_COMMAND_CHAT_TOOLS_H

#include "chat.h"

/* The calls of a reply. {0} is the beginning. */
struct cmd_chat_calls {
    struct cmd_chat_call {
        char *name, *arguments;        /* JSON text, [size] and a NUL */
        size_t size, capacity;
        bool complete;
    } *at;                             /* [n] */
    size_t n, capacity;
};

void cmd_chat_calls_free(struct cmd_chat_calls *calls);
peridot_status cmd_chat_calls_take(struct cmd_chat_calls *calls, const peridot_call_piece *piece);

/* Compiles the toolbox's list, where it is new: the conversation's ids are then to be made anew. */
peridot_status cmd_chat_compile_tools(struct cmd_chat *chat);
/* Gives the reply that was added last its calls, carries them out, after the questions that these need, and adds their
 * results. PERIDOT_CANCELLED after an interrupt. */
peridot_status cmd_chat_carry_out(struct cmd_chat *chat, const struct cmd_chat_calls *calls);

#endif
