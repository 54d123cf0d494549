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

/* ---- what messages are made of ---- */

static bool refuse_memory(struct serve_job *job)
{
    return serve_refuse(&job->error, 500, NULL, NULL, "out of memory");
}

/* A message that is not in the list yet; NULL: memory is short. */
static yyjson_mut_val *make_message(struct serve_conversation *c, struct serve_job *job, const char *role)
{
    if (!c->doc) {
        c->doc = yyjson_mut_doc_new(NULL);
        c->list = yyjson_mut_arr(c->doc);
    }
    yyjson_mut_val *message = c->list ? yyjson_mut_obj(c->doc) : NULL;
    if (message && yyjson_mut_obj_add_strcpy(c->doc, message, "role", role)) return message;
    refuse_memory(job);
    return NULL;
}

static bool put_call(struct serve_conversation *c, yyjson_mut_val *message, const char *id, const char *name,
                     yyjson_mut_val *arguments)
{
    yyjson_mut_val *calls = yyjson_mut_obj_get(message, "tool_calls");
    if (!calls) calls = yyjson_mut_obj_add_arr(c->doc, message, "tool_calls");
    yyjson_mut_val *call = calls ? yyjson_mut_arr_add_obj(c->doc, calls) : NULL;
    yyjson_mut_val *function = call ? yyjson_mut_obj_add_obj(c->doc, call, "function") : NULL;
    return function && yyjson_mut_obj_add_strcpy(c->doc, call, "id", id) &&
           yyjson_mut_obj_add_strcpy(c->doc, function, "name", name) &&
           yyjson_mut_obj_add_val(c->doc, function, "arguments", arguments);
}

/* ---- parts of a content ---- */

struct content {
    struct serve_conversation *c;
    struct serve_job *job;
    const char *name;              /* of the parameter */
    yyjson_mut_val *message;       /* which they are of; NULL: of a result, which has only text */
    struct serve_buffer text;
    bool has_results;
};

static const char *text_of(const struct content *to, yyjson_val *part, const char *member)
{
    return serve_param_text(to->job, to->name, yyjson_obj_get(part, member));
}

static bool put_text(struct content *to, yyjson_val *part)
{
    const char *text = text_of(to, part, "text");
    if (text) serve_put(&to->text, text, strlen(text));
    return text;
}

/* Thoughts of earlier turns are past. */
static bool pass_over(struct content *to, yyjson_val *part)
{
    (void)to, (void)part;
    return true;
}

static bool put_use(struct content *to, yyjson_val *part)
{
    const char *id = text_of(to, part, "id"), *name = id ? text_of(to, part, "name") : NULL;
    yyjson_val *input = yyjson_obj_get(part, "input");
    if (!name) return false;
    if (!yyjson_is_obj(input)) return serve_refuse_type(&to->job->error, to->name, "has a tool_use without an input");
    return put_call(to->c, to->message, id, name, yyjson_val_mut_copy(to->c->doc, input)) || refuse_memory(to->job);
}

static bool put_result(struct content *to, yyjson_val *part)
{
    const char *id = text_of(to, part, "tool_use_id");
    to->has_results = true;
    return id && serve_conversation_add_result(to->c, to->job, id, to->name, yyjson_obj_get(part, "content"));
}

static const struct part {
    const char *type;
    unsigned apis;
    const char *role;              /* of the only messages that have such a part; NULL: all, and results */
    bool (*read)(struct content *to, yyjson_val *part);
} kinds[] = {
    {"text", OPENAI | ANTHROPIC | OLLAMA, NULL, put_text},
    {"input_text", OPENAI, NULL, put_text},
    {"output_text", OPENAI, NULL, put_text},
    {"thinking", ANTHROPIC, "assistant", pass_over},
    {"redacted_thinking", ANTHROPIC, "assistant", pass_over},
    {"tool_use", ANTHROPIC, "assistant", put_use},
    {"tool_result", ANTHROPIC, "user", put_result},
};

static const struct part *find_part(const struct content *to, yyjson_val *type)
{
    yyjson_mut_val *role = yyjson_mut_obj_get(to->message, "role");
    for (size_t i = 0; i < CMD_COUNT(kinds); i++) {
        bool fits = !kinds[i].role || yyjson_mut_equals_str(role, kinds[i].role);
        if (fits && kinds[i].apis >> to->job->api->id & 1 && yyjson_equals_str(type, kinds[i].type)) return &kinds[i];
    }
    return NULL;
}

static bool read_parts(struct content *to, yyjson_val *list)
{
    size_t i, n;
    yyjson_val *each;
    yyjson_arr_foreach(list, i, n, each) {
        yyjson_val *type = yyjson_obj_get(each, "type");
        const struct part *part = find_part(to, type);
        if (!part)
            return serve_refuse(&to->job->error, 400, "unsupported_parameter", to->name,
                                "%s has a part of type %.32s: only text is supported", to->name,
                                yyjson_is_str(type) ? yyjson_get_str(type) : "unknown");
        if (!part->read(to, each)) return false;
    }
    return true;
}

/* The text is terminated. */
static bool read_content(struct content *to, yyjson_val *content)
{
    const char *text = "";
    if (yyjson_is_arr(content)) {
        if (!read_parts(to, content)) return false;
    } else {
        text = serve_param_text(to->job, to->name, content);
        if (!text) return false;
    }
    serve_put(&to->text, text, strlen(text) + 1);
    return !to->text.failed || refuse_memory(to->job);
}

/* ---- messages ---- */

bool serve_conversation_add(struct serve_conversation *c, struct serve_job *job, const char *role, const char *content)
{
    yyjson_mut_val *message = make_message(c, job, role);
    if (!message) return false;
    return (yyjson_mut_obj_add_strcpy(c->doc, message, "content", content) &&
            yyjson_mut_arr_append(c->list, message)) || refuse_memory(job);
}

bool serve_conversation_add_content(struct serve_conversation *c, struct serve_job *job, const char *role,
                                    const char *name, yyjson_val *content)
{
    struct content to = {.c = c, .job = job, .name = name, .message = make_message(c, job, role)};
    bool good = to.message && read_content(&to, content);
    bool empty = good && to.has_results && !*to.text.data;   /* all of it was results */
    if (good && !empty)
        good = (yyjson_mut_obj_add_strcpy(c->doc, to.message, "content", to.text.data) &&
                yyjson_mut_arr_append(c->list, to.message)) || refuse_memory(job);
    serve_buffer_free(&to.text);
    return good;
}

bool serve_conversation_add_call(struct serve_conversation *c, struct serve_job *job, const char *id, const char *name,
                                 const char *arguments)
{
    yyjson_mut_val *message = yyjson_mut_arr_get_last(c->list);
    if (!yyjson_mut_equals_str(yyjson_mut_obj_get(message, "role"), "assistant")) {
        if (!serve_conversation_add(c, job, "assistant", "")) return false;
        message = yyjson_mut_arr_get_last(c->list);
    }
    return put_call(c, message, id, name, yyjson_mut_strcpy(c->doc, arguments)) || refuse_memory(job);
}

bool serve_conversation_add_result(struct serve_conversation *c, struct serve_job *job, const char *id,
                                   const char *name, yyjson_val *content)
{
    struct content to = {.c = c, .job = job, .name = name};
    yyjson_mut_val *message = make_message(c, job, "tool");
    bool none = !content || yyjson_is_null(content);
    bool good = message && (none || read_content(&to, content));
    if (good)
        good = (yyjson_mut_obj_add_strcpy(c->doc, message, "tool_call_id", id) &&
                yyjson_mut_obj_add_strcpy(c->doc, message, "content", none ? "" : to.text.data) &&
                yyjson_mut_arr_append(c->list, message)) || refuse_memory(job);
    serve_buffer_free(&to.text);
    return good;
}

static const char *member(yyjson_mut_val *message, const char *name)
{
    const char *text = yyjson_mut_get_str(yyjson_mut_obj_get(message, name));
    return text ? text : "";
}

/* Whether the text of the message goes on that of the one before. */
static bool goes_on(yyjson_mut_val *before, yyjson_mut_val *message)
{
    return before && strcmp(member(before, "role"), member(message, "role")) == 0 &&
           strcmp(member(message, "role"), "tool") != 0 && !yyjson_mut_obj_get(before, "tool_calls") &&
           !yyjson_mut_obj_get(message, "tool_calls");
}

static bool set_content(struct serve_conversation *c, struct serve_job *job, yyjson_mut_val *message,
                        struct serve_buffer *text)
{
    yyjson_mut_val *value = text->failed ? NULL : yyjson_mut_strncpy(c->doc, text->data, text->size);
    text->size = 0;
    return (value && yyjson_mut_obj_replace(message, yyjson_mut_str(c->doc, "content"), value)) || refuse_memory(job);
}

/* Each text is copied once: a body may have hundreds of thousands of them. */
bool serve_conversation_join(struct serve_conversation *c, struct serve_job *job)
{
    struct serve_buffer run = {0};     /* the text so far of `first`, where others go on it */
    yyjson_mut_val *first = NULL;
    bool good = true;
    for (size_t n = yyjson_mut_arr_size(c->list); n > 0 && good; n--) {   /* around the list once */
        yyjson_mut_val *message = yyjson_mut_arr_remove_first(c->list);
        if (!goes_on(first, message)) {
            good = !run.size || set_content(c, job, first, &run);
            first = message;
            yyjson_mut_arr_append(c->list, message);
            continue;
        }
        if (!run.size) serve_put(&run, member(first, "content"), strlen(member(first, "content")));
        serve_put(&run, "\n\n", 2);
        serve_put(&run, member(message, "content"), strlen(member(message, "content")));
    }
    good = good && (!run.size || set_content(c, job, first, &run));
    serve_buffer_free(&run);
    return good;
}

const char *serve_conversation_role(struct serve_job *job, const char *name, yyjson_val *message)
{
    static const struct {
        const char *given, *role;
        unsigned apis;
    } roles[] = {{"system", "system", OPENAI | ANTHROPIC | OLLAMA},
                 {"developer", "developer", OPENAI},
                 {"user", "user", OPENAI | ANTHROPIC | OLLAMA},
                 {"assistant", "assistant", OPENAI | ANTHROPIC | OLLAMA},
                 {"tool", "tool", CHAT | OLLAMA}};
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

/* What the library reads as it is. */
static bool copy_members(struct serve_conversation *c, struct serve_job *job, yyjson_val *message)
{
    static const char *const names[][2] = {{"tool_calls", "tool_calls"}, {"tool_call_id", "tool_call_id"},
        {"name", "name"}, {"tool_name", "name"}, {"reasoning_content", "reasoning_content"}};
    yyjson_mut_val *last = yyjson_mut_arr_get_last(c->list);
    for (size_t i = 0; i < CMD_COUNT(names); i++) {
        yyjson_val *value = yyjson_obj_get(message, names[i][0]);
        if (!value || yyjson_is_null(value)) continue;
        if (!yyjson_mut_obj_add_val(c->doc, last, names[i][1], yyjson_val_mut_copy(c->doc, value)))
            return refuse_memory(job);
    }
    return true;
}

bool serve_conversation_read_one(struct serve_conversation *c, struct serve_job *job, yyjson_val *message)
{
    static const char *const unsupported[] = {"function_call", "images", "audio"};
    const char *name = job->api->input;
    yyjson_val *content = yyjson_obj_get(message, "content"), *type = yyjson_obj_get(message, "type");
    if (!yyjson_is_obj(message)) return serve_refuse_type(&job->error, name, "must be a list of objects");
    for (size_t i = 0; i < CMD_COUNT(unsupported); i++) {
        yyjson_val *value = yyjson_obj_get(message, unsupported[i]);
        if (value && !yyjson_is_null(value) && yyjson_get_len(value) > 0)
            return serve_refuse(&job->error, 400, "unsupported_parameter", name,
                                "%s has a message with %s, which is not supported", name, unsupported[i]);
    }
    if (type && !yyjson_equals_str(type, "message"))
        return serve_refuse(&job->error, 400, "unsupported_parameter", name,
                            "%s has an item of type %.32s, which is not supported", name,
                            yyjson_is_str(type) ? yyjson_get_str(type) : "unknown");
    const char *role = serve_conversation_role(job, name, message);
    bool ollama = job->api->id == SERVE_OLLAMA_CHAT;   /* where a message may be a thought alone */
    bool may_lack = ollama || yyjson_obj_get(message, "tool_calls");
    bool none = may_lack && (!content || yyjson_is_null(content));
    if (!role) return false;
    bool good = none ? serve_conversation_add(c, job, role, "")
                     : serve_conversation_add_content(c, job, role, name, content);
    return good && copy_members(c, job, message);
}

bool serve_conversation_read(struct serve_conversation *c, struct serve_job *job, yyjson_val *messages)
{
    const char *name = job->api->input;
    size_t i, n;
    yyjson_val *each;
    if (!yyjson_is_arr(messages) || yyjson_arr_size(messages) == 0)
        return serve_refuse_type(&job->error, name, "must be a list of at least one message");
    yyjson_arr_foreach(messages, i, n, each) {
        if (!serve_conversation_read_one(c, job, each)) return false;
    }
    return true;
}

/* ---- the prompt ---- */

/* Where the messages and a reply of some length do not fit, the oldest turns are left out (turns.h). */
static bool encode_fitting(int32_t **ids, size_t *n, struct serve_job *job, const peridot_vocab *vocab,
                           const peridot_message *messages, size_t n_messages)
{
    uint64_t reply = serve_reserve(job->model->ctx);
    size_t n_left_out = 0, n_kept;
    if (job->max_given) reply = cmd_min(reply, job->n_max);
    const struct cmd_turns turns = {.vocab = vocab, .template_name = job->model->template_name, .think = job->think,
                                    .ctx = job->model->ctx, .reserve = (uint32_t)reply, .messages = messages,
                                    .n = n_messages, .json = true, .tools = job->tools,
                                    .variables = job->variables};
    peridot_status status = job->leaves_room ? cmd_turns_leave_out(&n_left_out, &turns, true) : PERIDOT_OK;
    bool full = n_left_out > 0 && !job->drops;
    if (status == PERIDOT_OK) status = cmd_turns_encode(ids, n, &n_kept, &turns, full ? 0 : n_left_out);
    if (status != PERIDOT_OK) return serve_refuse_status(&job->error, status);
    job->n_dropped = n_messages - n_kept;
    return !full
        || serve_refuse(&job->error, 400, "context_length_exceeded", job->api->input,
                        "The conversation no longer fits: its messages have %zu tokens, and a reply needs %" PRIu64
                        " more, in a context of %" PRIu32 ".", *n, reply, job->model->ctx);
}

/* Each as JSON, with its role beside it. */
static bool encode_all(int32_t **ids, size_t *n, struct serve_job *job, const peridot_vocab *vocab,
                       const struct serve_conversation *c)
{
    size_t i, n_messages = yyjson_mut_arr_size(c->list), n_unused;
    peridot_message *messages = calloc(n_messages + 1, sizeof *messages);
    char **texts = calloc(n_messages + 1, sizeof *texts);
    bool good = (messages && texts) || refuse_memory(job);
    yyjson_mut_val *each;
    yyjson_mut_arr_foreach(c->list, i, n_unused, each) {
        if (good) texts[i] = yyjson_mut_val_write(each, 0, NULL);
        good = good && (texts[i] || refuse_memory(job));
        if (good) messages[i] = (peridot_message){member(each, "role"), texts[i]};
    }
    good = good && encode_fitting(ids, n, job, vocab, messages, n_messages);
    for (i = 0; texts && i < n_messages; i++) free(texts[i]);
    free(texts);
    free(messages);
    return good;
}

bool serve_conversation_encode(int32_t **ids, size_t *n, struct serve_job *job, const peridot_vocab *vocab,
                               yyjson_val *root)
{
    struct serve_conversation c = {0};
    *ids = NULL;
    *n = 0;
    bool good = job->api->read_messages(&c, job, root) && encode_all(ids, n, job, vocab, &c);
    yyjson_mut_doc_free(c.doc);
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
