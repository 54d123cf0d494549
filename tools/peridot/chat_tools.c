#define _POSIX_C_SOURCE 200809L
#include "chat_tools.h"

#include "json.h"
#include "os.h"

#include <stdlib.h>
#include <string.h>

/* ---- the calls of a reply ---- */

void cmd_chat_calls_free(struct cmd_chat_calls *calls)
{
    for (size_t i = 0; i < calls->n; i++) {
        free(calls->at[i].name);
        free(calls->at[i].arguments);
    }
    free(calls->at);
    *calls = (struct cmd_chat_calls){0};
}

static peridot_status begin_call(struct cmd_chat_calls *calls, const char *name)
{
    CMD_TRY(cmd_array_reserve(&calls->at, &calls->capacity, calls->n, 1, sizeof *calls->at, "calls"));
    calls->at[calls->n] = (struct cmd_chat_call){.name = strdup(name)};
    return calls->at[calls->n++].name ? PERIDOT_OK : cmd_fail_alloc(strlen(name), "calls");
}

peridot_status cmd_chat_calls_take(struct cmd_chat_calls *calls, const peridot_call_piece *piece)
{
    if (piece->name) CMD_TRY(begin_call(calls, piece->name));
    struct cmd_chat_call *call = &calls->at[calls->n - 1];
    CMD_TRY(cmd_array_reserve(&call->arguments, &call->capacity, call->size, piece->size + 1, 1, "calls"));
    if (piece->size) memcpy(call->arguments + call->size, piece->arguments, piece->size);
    call->size += piece->size;
    call->arguments[call->size] = 0;
    call->complete = piece->complete;
    return PERIDOT_OK;
}

/* ---- tools ---- */

peridot_status cmd_chat_compile_tools(struct cmd_chat *chat)
{
    bool changed = false;
    if (!chat->toolbox) return PERIDOT_OK;
    if (chat->tools) CMD_TRY(cmd_toolbox_refresh(&changed, chat->toolbox));
    if (chat->tools && !changed) return PERIDOT_OK;
    const char *list = cmd_toolbox_json(chat->toolbox);
    const peridot_tools_params params = {.size = sizeof params, .json = list, .json_size = strlen(list),
                                         .template_name = chat->encoding.template_name};
    peridot_tools *tools;
    CMD_TRY(peridot_tools_create(&tools, chat->encoding.vocab, &params));
    peridot_tools_free(chat->tools);
    chat->tools = tools;
    chat->encoding.tools = list;
    cmd_conversation_forget_ids(&chat->conversation);
    return PERIDOT_OK;
}

/* ---- results ---- */

enum { ID_SIZE = 48 };

/* Of call i of message n: no other in the conversation has it. */
static const char *make_id(char id[ID_SIZE], size_t n, size_t i)
{
    snprintf(id, ID_SIZE, "call_%zu_%zu", n, i);
    return id;
}

static size_t count_complete(const struct cmd_chat_calls *calls)
{
    size_t n = 0;
    while (n < calls->n && calls->at[n].complete) n++;
    return n;
}

static void write_calls(FILE *file, const struct cmd_chat_calls *calls, size_t n, size_t message)
{
    char id[ID_SIZE];
    for (size_t i = 0; i < n; i++) {
        const struct cmd_chat_call *call = &calls->at[i];
        fprintf(file, "%s{\"id\": \"%s\", \"type\": \"function\", \"function\": {\"name\": ", i ? ", " : "[",
                make_id(id, message, i));
        cmd_json_string(file, call->name, strlen(call->name));
        fputs(", \"arguments\": ", file);
        cmd_json_string(file, call->arguments, call->size);
        fputs("}}", file);
    }
    fputs("]", file);
}

static peridot_status add_calls(struct cmd_conversation *c, const struct cmd_chat_calls *calls, size_t n)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = cmd_memory_open(&text, &size);
    if (file) write_calls(file, calls, n, c->n - 1);
    if (!file || !cmd_memory_close(file, &text, &size)) return cmd_fail_alloc(size, "calls");
    peridot_status status = cmd_conversation_set_calls(c, text);
    free(text);
    return status;
}

static peridot_status add_results(struct cmd_conversation *c, char *const *results, size_t n)
{
    size_t message = c->n - 1;
    char id[ID_SIZE];
    for (size_t i = 0; i < n; i++) CMD_TRY(cmd_conversation_add_result(c, make_id(id, message, i), results[i]));
    return PERIDOT_OK;
}

peridot_status cmd_chat_carry_out(struct cmd_chat *chat, const struct cmd_chat_calls *calls)
{
    size_t n = count_complete(calls);   /* one that was cut short is none */
    if (n == 0) return PERIDOT_OK;
    struct cmd_tool_call *list = calloc(n, sizeof *list);
    char **results = calloc(n, sizeof *results);
    peridot_status status = list && results ? PERIDOT_OK : cmd_fail_alloc(n * sizeof *list, "calls");
    for (size_t i = 0; list && i < n; i++) list[i] = (struct cmd_tool_call){calls->at[i].name, calls->at[i].arguments};
    if (status == PERIDOT_OK) status = cmd_toolbox_answer(results, chat->toolbox, list, n, chat->editor);
    if (status == PERIDOT_OK) status = add_calls(&chat->conversation, calls, n);
    if (status == PERIDOT_OK) status = add_results(&chat->conversation, results, n);
    for (size_t i = 0; results && i < n; i++) free(results[i]);
    free(results);
    free(list);
    return status;
}
