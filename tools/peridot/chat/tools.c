#define _POSIX_C_SOURCE 200809L
#include "chat_.h"
#include "../console/console.h"
#include "../cli/cli.h"
#include "../base/base.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- the calls of a reply ---- */

static peridot_status tools_begin_call(struct cmd_calls *calls, const char *name)
{
    if (calls->n == CMD_CALLS_MAX)
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "the reply has more than %d calls", CMD_CALLS_MAX);
    struct cmd_call call = {.name = strdup(name)};
    if (!call.name) return pd_fail_alloc(strlen(name), "call");
    calls->at[calls->n++] = call;
    return PERIDOT_OK;
}

peridot_status cmd_calls_take(struct cmd_calls *calls, const peridot_call_piece *piece)
{
    if (piece->name) PD_TRY(tools_begin_call(calls, piece->name));
    if (!calls->n) return PERIDOT_OK;
    struct cmd_call *call = &calls->at[calls->n - 1];
    PD_TRY(pd_buffer_add(&call->arguments, piece->arguments, piece->size));
    call->complete = piece->complete;
    return PERIDOT_OK;
}

static void free_call(struct cmd_call *call)
{
    free(call->name);
    pd_buffer_free(&call->arguments);
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
    PD_TRY(cmd_toolbox_refresh(&changed, chat->toolbox));
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
                                  size_t size, struct cmd_pictures *pictures)
{
    char *json = cmd_json_end(doc, YYJSON_WRITE_ALLOW_INVALID_UNICODE, NULL);
    return json ? cmd_conversation_add_json(&chat->conversation, role, text, size, json, pictures)
                : pd_fail_alloc(size, "message");
}

peridot_status cmd_chat_add_calls(struct cmd_chat *chat, const char *text, size_t size, const struct cmd_calls *calls)
{
    char id[32];
    yyjson_mut_doc *doc = cmd_json_new();
    if (!doc) return pd_fail_alloc(0, "message");
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
        yyjson_mut_obj_add_str(doc, function, "arguments", calls->at[i].arguments.data);
    }
    return add_message(chat, doc, "assistant", text, size, NULL);
}

/* A text, or where there are pictures parts: the text, and they. */
static void add_content(yyjson_mut_doc *doc, yyjson_mut_val *message, const char *text,
                        const struct cmd_pictures *pictures)
{
    if (!pictures->n) {
        yyjson_mut_obj_add_str(doc, message, "content", text);
        return;
    }
    yyjson_mut_val *parts = yyjson_mut_obj_add_arr(doc, message, "content"), *part = yyjson_mut_arr_add_obj(doc, parts);
    yyjson_mut_obj_add_str(doc, part, "type", "text");
    yyjson_mut_obj_add_str(doc, part, "text", text);
    for (size_t i = 0; i < pictures->n; i++) {
        part = yyjson_mut_arr_add_obj(doc, parts);
        yyjson_mut_obj_add_str(doc, part, "type", "image_url");
        yyjson_mut_obj_add_str(doc, yyjson_mut_obj_add_obj(doc, part, "image_url"), "url", pictures->at[i].url);
    }
}

static peridot_status add_result(struct cmd_chat *chat, const char *id, const char *name, const char *result,
                                 struct cmd_pictures *pictures)
{
    yyjson_mut_doc *doc = cmd_json_new();
    if (!doc) return pd_fail_alloc(0, "message");
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_str(doc, root, "role", "tool");
    yyjson_mut_obj_add_str(doc, root, "tool_call_id", id);
    yyjson_mut_obj_add_str(doc, root, "name", name);
    add_content(doc, root, result, pictures);
    return add_message(chat, doc, "tool", result, strlen(result), pictures);
}

/* Those images that can be read. */
static peridot_status read_pictures(struct cmd_pictures *out, const struct cmd_chat *chat,
                                    const struct cmd_tool_result *result)
{
    for (size_t i = 0; i < result->n_images; i++) {
        peridot_image *image;
        if (cmd_image_read_url(&image, chat->model, result->images[i], chat->args.model.pan_and_scan) != PERIDOT_OK) {
            cmd_say("a tool's image is not shown to the model: %s\n", peridot_last_error());
            continue;
        }
        peridot_status status = cmd_pictures_add(out, "", result->images[i], image);
        peridot_image_free(image);
        PD_TRY(status);
    }
    return PERIDOT_OK;
}

/* With its images, where the template has a place for them. */
static peridot_status take_result(struct cmd_chat *chat, const char *id, const char *name,
                                  const struct cmd_tool_result *result)
{
    const char *text = result->text ? result->text : "error: the user stopped before this call";
    struct cmd_pictures pictures = {0}, none = {0};
    peridot_status status = read_pictures(&pictures, chat, result);
    bool sees = pictures.n > 0;
    if (status == PERIDOT_OK) status = add_result(chat, id, name, text, &pictures);
    cmd_pictures_free(&pictures);
    if (status != PERIDOT_OK || !sees || cmd_conversation_check(&chat->conversation, &chat->encoding) == PERIDOT_OK)
        return status;
    cmd_say("a tool's images are not shown to the model: %s\n", peridot_last_error());
    cmd_conversation_drop_last(&chat->conversation);
    return add_result(chat, id, name, text, &none);
}

peridot_status cmd_chat_answer_calls(struct cmd_chat *chat, const struct cmd_calls *calls)
{
    struct cmd_tool_call list[CMD_CALLS_MAX];
    struct cmd_tool_result results[CMD_CALLS_MAX];
    char id[32];
    size_t reply = chat->conversation.n - 1;
    bool sees = peridot_model_get_info(chat->model)->image_rows > 0;
    for (size_t i = 0; i < calls->n; i++)
        list[i] = (struct cmd_tool_call){calls->at[i].name, calls->at[i].arguments.data, sees};
    peridot_status status = cmd_toolbox_answer(results, chat->toolbox, list, calls->n, chat->editor);
    bool keeps = status == PERIDOT_OK || status == PERIDOT_CANCELLED;
    for (size_t i = 0; i < calls->n; i++) {
        peridot_status added = keeps ? take_result(chat, call_id(id, reply, i), list[i].name, &results[i]) : PERIDOT_OK;
        cmd_tool_result_free(&results[i]);
        if (added != PERIDOT_OK) status = added, keeps = false;
    }
    return status;
}
