#include "messages.h"
#include "params.h"
#include "server.h"
#include "tasks.h"
#include "wire.h"
#include "../turns.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHAT = SERVE_SET_CHAT, RESPONSES = SERVE_SET_RESPONSES, OPENAI = CHAT | RESPONSES, ANTHROPIC = SERVE_SET_ANTHROPIC,
    OLLAMA = SERVE_SET_OLLAMA_CHAT
};

/* ---- contents ---- */

static bool put_text(struct serve_buffer *out, struct serve_job *job, const char *name, yyjson_val *part)
{
    const char *text = serve_param_text(job, name, yyjson_obj_get(part, "text"));
    if (text) serve_put(out, text, strlen(text));
    return text;
}

/* Thoughts of earlier turns are past. */
static bool pass_over(struct serve_buffer *out, struct serve_job *job, const char *name, yyjson_val *part)
{
    (void)out, (void)job, (void)name, (void)part;
    return true;
}

static const struct part {
    const char *type;
    unsigned apis;
    bool (*read)(struct serve_buffer *out, struct serve_job *job, const char *name, yyjson_val *part);
} kinds[] = {
    {"text", OPENAI | ANTHROPIC | OLLAMA, put_text},
    {"input_text", OPENAI, put_text},
    {"output_text", OPENAI, put_text},
    {"thinking", ANTHROPIC, pass_over},
    {"redacted_thinking", ANTHROPIC, pass_over},
};

static const struct part *find_part(const struct serve_job *job, yyjson_val *type)
{
    for (size_t i = 0; i < CMD_COUNT(kinds); i++)
        if (kinds[i].apis >> job->api->id & 1 && yyjson_equals_str(type, kinds[i].type)) return &kinds[i];
    return NULL;
}

static bool read_parts(struct serve_buffer *out, struct serve_job *job, const char *name, yyjson_val *list)
{
    size_t i, n;
    yyjson_val *each;
    yyjson_arr_foreach(list, i, n, each) {
        yyjson_val *type = yyjson_obj_get(each, "type");
        const struct part *part = find_part(job, type);
        if (!part)
            return serve_refuse(&job->error, 400, "unsupported_parameter", name,
                                "%s has a part of type %.32s: only text is supported", name,
                                yyjson_is_str(type) ? yyjson_get_str(type) : "unknown");
        if (!part->read(out, job, name, each)) return false;
    }
    serve_put(out, "", 1);
    return !out->failed || serve_refuse(&job->error, 500, NULL, NULL, "out of memory");
}

/* ---- messages ---- */

bool serve_conversation_add(struct serve_conversation *c, struct serve_job *job, const char *role,
                            const char *content)
{
    size_t n = c->n;
    if (cmd_array_reserve(&c->messages, &c->capacity, n, 1, sizeof *c->messages, "messages") != PERIDOT_OK
        || cmd_array_reserve(&c->contents, &c->contents_capacity, n, 1, sizeof *c->contents, "messages") != PERIDOT_OK)
        return serve_refuse(&job->error, 500, NULL, NULL, "out of memory");
    c->messages[n] = (peridot_message){role, content};
    c->contents[n] = (struct serve_buffer){0};
    c->n++;
    return true;
}

bool serve_conversation_add_content(struct serve_conversation *c, struct serve_job *job, const char *role,
                                    const char *name, yyjson_val *content)
{
    bool in_parts = yyjson_is_arr(content);
    const char *text = in_parts ? "" : serve_param_text(job, name, content);
    if (!text || !serve_conversation_add(c, job, role, text)) return false;
    struct serve_buffer *parts = &c->contents[c->n - 1];
    if (!in_parts) return true;
    if (!read_parts(parts, job, name, content)) return false;
    c->messages[c->n - 1].content = parts->data;
    return true;
}

bool serve_conversation_join(struct serve_conversation *c, struct serve_job *job)
{
    struct serve_buffer both = {0};
    peridot_message *last = &c->messages[c->n - 1];
    if (c->n < 2 || strcmp(last[-1].role, last->role) != 0) return true;
    serve_put(&both, last[-1].content, strlen(last[-1].content));
    serve_put(&both, "\n\n", 2);
    serve_put(&both, last->content, strlen(last->content) + 1);
    c->n--;
    serve_buffer_free(&c->contents[c->n]);
    serve_buffer_free(&c->contents[c->n - 1]);
    c->contents[c->n - 1] = both;
    last[-1].content = both.data;
    return !both.failed || serve_refuse(&job->error, 500, NULL, NULL, "out of memory");
}

const char *serve_conversation_role(struct serve_job *job, const char *name, yyjson_val *message)
{
    static const struct {
        const char *given, *role;
        unsigned apis;
    } roles[] = {{"system", "system", OPENAI | ANTHROPIC | OLLAMA},
                 {"developer", "system", OPENAI},
                 {"user", "user", OPENAI | ANTHROPIC | OLLAMA},
                 {"assistant", "assistant", OPENAI | ANTHROPIC | OLLAMA}};
    yyjson_val *role = yyjson_obj_get(message, "role");
    char known[64] = "";
    size_t size = 0;
    for (size_t i = 0; i < CMD_COUNT(roles); i++) {
        if (!(roles[i].apis >> job->api->id & 1)) continue;
        if (yyjson_equals_str(role, roles[i].given)) return roles[i].role;
        size += (size_t)snprintf(known + size, sizeof known - size, "%s%s", size ? ", " : "", roles[i].given);
    }
    serve_refuse(&job->error, 400, "invalid_value", name, "%s has a message with the role %.32s: it must be one of %s",
                 name, yyjson_is_str(role) ? yyjson_get_str(role) : "(none)", known);
    return NULL;
}

static bool read_message(struct serve_conversation *c, struct serve_job *job, const char *name, yyjson_val *message)
{
    static const char *const unsupported[] = {"tool_calls", "function_call", "tool_call_id", "tool_name", "images",
                                              "audio"};
    yyjson_val *content = yyjson_obj_get(message, "content"), *type = yyjson_obj_get(message, "type");
    for (size_t i = 0; i < CMD_COUNT(unsupported); i++) {
        yyjson_val *value = yyjson_obj_get(message, unsupported[i]);
        if (value && !yyjson_is_null(value) && yyjson_get_len(value) > 0)
            return serve_refuse(&job->error, 400, "unsupported_parameter", name,
                                "%s has a message with %s, which is not supported", name, unsupported[i]);
    }
    if (job->api->id == SERVE_RESPONSES && yyjson_equals_str(type, "reasoning")) return true;   /* it is past */
    if (type && !yyjson_equals_str(type, "message"))
        return serve_refuse(&job->error, 400, "unsupported_parameter", name,
                            "%s has an item of type %.32s: only messages are supported", name,
                            yyjson_is_str(type) ? yyjson_get_str(type) : "unknown");
    const char *role = serve_conversation_role(job, name, message);
    bool empty = job->api->id == SERVE_OLLAMA_CHAT && (!content || yyjson_is_null(content));   /* of a thought alone */
    if (role && empty) return serve_conversation_add(c, job, role, "");
    return role && serve_conversation_add_content(c, job, role, name, content);
}

bool serve_conversation_read(struct serve_conversation *c, struct serve_job *job, yyjson_val *messages)
{
    const char *name = job->api->input;
    size_t i, n;
    yyjson_val *each;
    if (!yyjson_is_arr(messages) || yyjson_arr_size(messages) == 0)
        return serve_refuse_type(&job->error, name, "must be a list of at least one message");
    yyjson_arr_foreach(messages, i, n, each) {
        if (!yyjson_is_obj(each)) return serve_refuse_type(&job->error, name, "must be a list of objects");
        if (!read_message(c, job, name, each)) return false;
    }
    return true;
}

/* ---- the prompt ---- */

uint64_t serve_reserve(uint32_t ctx) { return cmd_max(64, ctx / 8); }

/* Where the messages and a reply of some length do not fit, the oldest turns are left out (turns.h). */
static bool encode_fitting(int32_t **ids, size_t *n, struct serve_job *job, const peridot_vocab *vocab,
                           const struct serve_conversation *c)
{
    uint64_t reply = serve_reserve(job->server->ctx);
    size_t n_left_out = 0, n_kept;
    if (job->max_given) reply = cmd_min(reply, job->n_max);
    const struct cmd_turns turns = {.vocab = vocab, .template_name = job->server->template_name, .think = job->think,
                                    .ctx = job->server->ctx, .reserve = (uint32_t)reply, .messages = c->messages,
                                    .n = c->n};
    peridot_status status = job->leaves_room ? cmd_turns_leave_out(&n_left_out, &turns, true) : PERIDOT_OK;
    bool full = n_left_out > 0 && !job->drops;
    if (status == PERIDOT_OK) status = cmd_turns_encode(ids, n, &n_kept, &turns, full ? 0 : n_left_out);
    if (status != PERIDOT_OK) return serve_refuse_status(&job->error, status);
    job->n_dropped = c->n - n_kept;
    return !full
        || serve_refuse(&job->error, 400, "context_length_exceeded", job->api->input,
                        "The conversation no longer fits: its messages have %zu tokens, and a reply needs %" PRIu64
                        " more, in a context of %" PRIu32 ".", *n, reply, job->server->ctx);
}

bool serve_conversation_encode(int32_t **ids, size_t *n, struct serve_job *job, const peridot_vocab *vocab,
                               yyjson_val *root)
{
    struct serve_conversation c = {0};
    *ids = NULL;
    *n = 0;
    bool good = job->api->read_messages(&c, job, root) && encode_fitting(ids, n, job, vocab, &c);
    for (size_t i = 0; i < c.n; i++) serve_buffer_free(&c.contents[i]);
    free(c.messages);
    free(c.contents);
    return good;
}

bool serve_read_conversation(struct serve_buffer *out, struct serve_job *job, const peridot_vocab *vocab,
                             yyjson_val *root)
{
    int32_t *ids;
    size_t n;
    (void)out;
    bool good = serve_conversation_encode(&ids, &n, job, vocab, root) && serve_tasks_make(job, 1)
        && serve_tasks_add(job, ids, n);
    peridot_free(ids);
    return good;
}
