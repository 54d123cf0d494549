#define _POSIX_C_SOURCE 200809L
#include "chat_tools.h"
#include "json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- the calls of a reply ---- */

static peridot_status begin_call(struct cmd_calls *calls, const char *name)
{
    if (calls->n == CMD_CALLS_MAX)
        return cmd_fail(PERIDOT_ERROR_UNSUPPORTED, "the reply has more than %d calls", CMD_CALLS_MAX);
    struct cmd_call call = {.name = strdup(name)};
    if (!call.name) return cmd_fail_alloc(strlen(name), "call");
    calls->at[calls->n++] = call;
    return PERIDOT_OK;
}

peridot_status cmd_calls_take(struct cmd_calls *calls, const peridot_call_piece *piece)
{
    if (piece->name) CMD_TRY(begin_call(calls, piece->name));
    if (!calls->n) return PERIDOT_OK;
    struct cmd_call *call = &calls->at[calls->n - 1];
    CMD_TRY(cmd_array_reserve(&call->arguments, &call->capacity, call->size, piece->size + 1, 1, "arguments"));
    if (piece->size) memcpy(call->arguments + call->size, piece->arguments, piece->size);
    call->arguments[call->size += piece->size] = 0;
    call->complete = piece->complete;
    return PERIDOT_OK;
}

static void free_call(struct cmd_call *call)
{
    free(call->name);
    free(call->arguments);
}

void cmd_calls_end(struct cmd_calls *calls)
{
    while (calls->n && !calls->at[calls->n - 1].complete) free_call(&calls->at[--calls->n]);
}

void cmd_calls_free(struct cmd_calls *calls)
{
    while (calls->n) free_call(&calls->at[--calls->n]);
}

/* ---- what may be called ---- */

peridot_status cmd_chat_take_tools(struct cmd_chat *chat)
{
    bool changed;
    if (!chat->toolbox) return PERIDOT_OK;
    CMD_TRY(cmd_toolbox_refresh(&changed, chat->toolbox));
    const char *json = cmd_toolbox_size(chat->toolbox) ? cmd_toolbox_json(chat->toolbox) : NULL;
    if (changed || !chat->encoding.tools != !json) cmd_conversation_forget_ids(&chat->conversation);
    chat->encoding.tools = json;
    if (chat->tools && !changed) return PERIDOT_OK;
    peridot_tools_free(chat->tools);
    chat->tools = NULL;
    if (!json) return PERIDOT_OK;
    const peridot_tools_params params = {.size = sizeof params, .json = json, .json_size = strlen(json),
                                         .template_name = chat->encoding.template_name};
    return peridot_tools_create(&chat->tools, peridot_model_vocab(chat->model), &params);
}

/* ---- messages ---- */

/* It tells calls apart; `reply`: messages before the one that has the call. */
static const char *call_id(char out[32], size_t reply, size_t i)
{
    snprintf(out, 32, "call_%zu_%zu", reply, i);
    return out;
}

static peridot_status add_message(struct cmd_chat *chat, yyjson_mut_doc *doc, const char *role, const char *text,
                                  size_t size)
{
    char *json = cmd_json_end(doc, YYJSON_WRITE_ALLOW_INVALID_UNICODE, NULL);
    return json ? cmd_conversation_add_json(&chat->conversation, role, text, size, json)
                : cmd_fail_alloc(size, "message");
}

peridot_status cmd_chat_add_calls(struct cmd_chat *chat, const char *text, size_t size, const struct cmd_calls *calls)
{
    char id[32];
    yyjson_mut_doc *doc = cmd_json_new();
    if (!doc) return cmd_fail_alloc(0, "message");
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_str(doc, root, "role", "assistant");
    yyjson_mut_obj_add_strncpy(doc, root, "content", text, size);
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "tool_calls");
    for (size_t i = 0; i < calls->n; i++) {
        yyjson_mut_val *call = yyjson_mut_arr_add_obj(doc, list);
        yyjson_mut_obj_add_strcpy(doc, call, "id", call_id(id, chat->conversation.n, i));
        yyjson_mut_obj_add_str(doc, call, "type", "function");
        yyjson_mut_val *function = yyjson_mut_obj_add_obj(doc, call, "function");
        yyjson_mut_obj_add_str(doc, function, "name", calls->at[i].name);
        yyjson_mut_obj_add_str(doc, function, "arguments", calls->at[i].arguments);
    }
    return add_message(chat, doc, "assistant", text, size);
}

static peridot_status add_result(struct cmd_chat *chat, const char *id, const char *name, const char *result)
{
    yyjson_mut_doc *doc = cmd_json_new();
    if (!doc) return cmd_fail_alloc(0, "message");
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_str(doc, root, "role", "tool");
    yyjson_mut_obj_add_str(doc, root, "tool_call_id", id);
    yyjson_mut_obj_add_str(doc, root, "name", name);
    yyjson_mut_obj_add_str(doc, root, "content", result);
    return add_message(chat, doc, "tool", result, strlen(result));
}

peridot_status cmd_chat_answer_calls(struct cmd_chat *chat, const struct cmd_calls *calls)
{
    struct cmd_tool_call list[CMD_CALLS_MAX];
    char *results[CMD_CALLS_MAX], id[32];
    size_t reply = chat->conversation.n - 1;
    for (size_t i = 0; i < calls->n; i++) list[i] = (struct cmd_tool_call){calls->at[i].name, calls->at[i].arguments};
    peridot_status status = cmd_toolbox_answer(results, chat->toolbox, list, calls->n, chat->editor);
    bool keeps = status == PERIDOT_OK || status == PERIDOT_CANCELLED;
    for (size_t i = 0; i < calls->n; i++) {
        const char *result = results[i] ? results[i] : "error: the user stopped before this call";
        peridot_status added = keeps ? add_result(chat, call_id(id, reply, i), list[i].name, result) : PERIDOT_OK;
        free(results[i]);
        if (added != PERIDOT_OK) status = added, keeps = false;
    }
    return status;
}
