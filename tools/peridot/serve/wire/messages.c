/* Conversations: the messages of a request, read from its body. */
#include "wire_.h"
#include "../pictures/pictures.h"
#include "../job/job.h"
#include "wire.h"

#include <stdlib.h>
#include <string.h>

enum {
    CHAT = SERVE_SET_CHATS, RESPONSES = SERVE_SET_RESPONSES, OPENAI = CHAT | RESPONSES, ANTHROPIC = SERVE_SET_ANTHROPIC,
    OLLAMA = SERVE_SET_OLLAMA_CHAT
};
enum { MAX_TOLD = 100, MAX_TOLD_SIZE = 65536, MAX_LOOKED_AT = 512 };   /* tools that results refer to */

/* ---- what messages are made of ---- */

/* Gives the message the thought before it, whether or not the template shows it to the model. */
static bool put_thought(struct serve_conversation *c, struct serve_job *job, yyjson_mut_val *message)
{
    struct pd_buffer *t = &c->thought;
    bool good = !t->failed;
    if (t->size && !yyjson_mut_obj_get(message, "reasoning_content"))
        good = good && yyjson_mut_obj_add_strncpy(c->doc, message, "reasoning_content", t->data, t->size);
    t->size = 0;
    return good || serve_refuse_memory(job);
}

/* A message that is not in the list yet; NULL: memory is short. A thought that no message of the assistant's follows is
 * one without a text. */
static yyjson_mut_val *make_message(struct serve_conversation *c, struct serve_job *job, const char *role)
{
    bool assistant = strcmp(role, "assistant") == 0;
    if (c->thought.size && !assistant && !serve_conversation_add(c, job, "assistant", "")) return NULL;
    if (!c->doc) {
        c->doc = yyjson_mut_doc_new(NULL);
        c->list = yyjson_mut_arr(c->doc);
    }
    yyjson_mut_val *message = c->list ? yyjson_mut_obj(c->doc) : NULL;
    if (message && yyjson_mut_obj_add_strcpy(c->doc, message, "role", role) && put_thought(c, job, message))
        return message;
    serve_refuse_memory(job);
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
    yyjson_mut_val *message;       /* which they are of */
    struct pd_buffer text;      /* the part of text that grows */
    yyjson_mut_val *parts;         /* before it; NULL: there are none, and the content is a text */
    bool has_results;
};

static const char *messages_text_of(const struct content *to, yyjson_val *part, const char *member)
{
    return serve_param_text(to->job, to->name, yyjson_obj_get(part, member));
}

/* Lines of a system prompt that say something else in each request and nothing to the model: with them all that
 * follows would be read anew. */
static bool is_volatile(const char *line)
{
    static const char *const begins[] = {"x-anthropic-billing-header:"};   /* Claude Code's */
    for (size_t i = 0; i < PD_COUNT(begins); i++)
        if (strncmp(line, begins[i], strlen(begins[i])) == 0) return true;
    return false;
}

static void put_system(struct pd_buffer *out, const char *text)
{
    for (size_t n; *text; text += n) {
        n = strcspn(text, "\n");
        n += text[n] == '\n';
        if (!is_volatile(text)) pd_buffer_add(out, text, n);
    }
}

static bool messages_put(struct content *to, const char *text)
{
    if (!text) return false;
    if (yyjson_mut_equals_str(yyjson_mut_obj_get(to->message, "role"), "system")) put_system(&to->text, text);
    else pd_buffer_add(&to->text, text, strlen(text));
    return true;
}

/* What tools, models and agents said may have a NUL, which conversations would keep: it is no character there. */
static bool may_have_nul(const struct content *to, yyjson_val *text)
{
    yyjson_mut_val *role = yyjson_mut_obj_get(to->message, "role");
    bool said = yyjson_mut_equals_str(role, "tool") || yyjson_mut_equals_str(role, "assistant")
        || (yyjson_mut_equals_str(role, "user") && ANTHROPIC >> to->job->api->id & 1);
    return said && yyjson_is_str(text);
}

static bool put_value(struct content *to, yyjson_val *value)
{
    const char *text = yyjson_get_str(value);
    size_t size = yyjson_get_len(value);
    if (!may_have_nul(to, value)) return messages_put(to, serve_param_text(to->job, to->name, value));
    for (size_t n; size > 0; text += n, size -= n) {
        const char *nul = memchr(text, 0, size);
        n = nul ? (size_t)(nul - text) : size;
        pd_buffer_add(&to->text, text, n);
        if (nul) pd_buffer_add(&to->text, "\xef\xbf\xbd", 3);
        n += nul != NULL;
    }
    return true;
}

static bool put_text(struct content *to, yyjson_val *part) { return put_value(to, yyjson_obj_get(part, "text")); }

/* Adds the text so far to a list of parts. */
static bool end_text(struct serve_conversation *c, struct serve_job *job, yyjson_mut_val *parts,
                     struct pd_buffer *text)
{
    if (!text->size) return !text->failed || serve_refuse_memory(job);
    yyjson_mut_val *part = text->failed ? NULL : yyjson_mut_arr_add_obj(c->doc, parts);
    bool good = part && yyjson_mut_obj_add_str(c->doc, part, "type", "text") &&
                yyjson_mut_obj_add_strncpy(c->doc, part, "text", text->data, text->size);
    text->size = 0;
    return good || serve_refuse_memory(job);
}

/* The part says which of the job's it is: results stand before the message that they came in. */
static bool put_image(struct content *to, yyjson_val *part)
{
    struct serve_conversation *c = to->c;
    size_t i = 0;
    while (i < to->job->pictures.n && to->job->pictures.list[i].part != part) i++;
    if (i == to->job->pictures.n)
        return serve_refuse_type(&to->job->error, to->name, "has an image in an unexpected place");
    if (!to->parts) to->parts = yyjson_mut_arr(c->doc);
    if (!to->parts) return serve_refuse_memory(to->job);
    if (!end_text(c, to->job, to->parts, &to->text)) return false;
    yyjson_mut_val *image = yyjson_mut_arr_add_obj(c->doc, to->parts);
    return (image && yyjson_mut_obj_add_str(c->doc, image, "type", "image") &&
            yyjson_mut_obj_add_uint(c->doc, image, "picture", i)) || serve_refuse_memory(to->job);
}

static bool take_thought(struct content *to, yyjson_val *part)
{
    return serve_thought_read_block(&to->c->thought, to->job, part);
}

/* Encrypted by another server. */
static bool pass_over(struct content *to, yyjson_val *part)
{
    (void)to, (void)part;
    return true;
}

static bool put_use(struct content *to, yyjson_val *part)
{
    const char *id = messages_text_of(to, part, "id"), *name = id ? messages_text_of(to, part, "name") : NULL;
    yyjson_val *input = yyjson_obj_get(part, "input");
    if (!name) return false;
    if (!yyjson_is_obj(input)) return serve_refuse_type(&to->job->error, to->name, "has a tool_use without an input");
    return put_call(to->c, to->message, id, name, yyjson_val_mut_copy(to->c->doc, input))
        || serve_refuse_memory(to->job);
}

static bool put_result(struct content *to, yyjson_val *part)
{
    const char *id = messages_text_of(to, part, "tool_use_id");
    to->has_results = true;
    return id && serve_conversation_add_result(to->c, to->job, id, to->name, yyjson_obj_get(part, "content"));
}

static yyjson_val *find_tool(const struct serve_job *job, const char *name)
{
    size_t i, n;
    yyjson_val *each, *tools = yyjson_obj_get(yyjson_doc_get_root(job->asks.document), "tools");
    yyjson_arr_foreach(tools, i, n, each) {
        if (i == MAX_LOOKED_AT) break;
        if (yyjson_equals_str(yyjson_obj_get(each, "name"), name)) return each;
    }
    return NULL;
}

/* A tool that was deferred: what it is, or its name alone where there are many, or it is large. */
static bool put_reference(struct content *to, yyjson_val *part)
{
    const char *name = messages_text_of(to, part, "tool_name");
    if (!name) return false;
    yyjson_val *tool = to->c->n_told++ < MAX_TOLD ? find_tool(to->job, name) : NULL;
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    size_t size = 0;
    char *text = tool && serve_add_anthropic_tool(doc, list, tool)
        ? yyjson_mut_val_write(yyjson_mut_arr_get_first(list), 0, &size) : NULL;
    if (text && size <= MAX_TOLD_SIZE) pd_buffer_add(&to->text, text, size);
    else messages_put(to, name);
    pd_buffer_add(&to->text, "\n", 1);
    free(text);
    yyjson_mut_doc_free(doc);
    return true;
}

static bool put_refusal(struct content *to, yyjson_val *part) { return put_value(to, yyjson_obj_get(part, "refusal")); }

/* A text, or parts of text alone. */
static bool put_texts(struct content *to, yyjson_val *content)
{
    size_t i, n;
    yyjson_val *each;
    if (!yyjson_is_arr(content)) return put_value(to, content);
    yyjson_arr_foreach(content, i, n, each) {
        if (!put_text(to, each)) return false;
    }
    return true;
}

static bool put_found(struct content *to, yyjson_val *part)
{
    static const char *const heads[] = {"title", "source"};
    for (size_t i = 0; i < PD_COUNT(heads); i++) {
        if (!put_value(to, yyjson_obj_get(part, heads[i]))) return false;
        pd_buffer_add(&to->text, "\n", 1);
    }
    return put_texts(to, yyjson_obj_get(part, "content"));
}

/* Of a text; others are read by none of the models. */
static bool put_document(struct content *to, yyjson_val *part)
{
    yyjson_val *source = yyjson_obj_get(part, "source"), *type = yyjson_obj_get(source, "type");
    if (yyjson_equals_str(type, "text")) return put_value(to, yyjson_obj_get(source, "data"));
    if (yyjson_equals_str(type, "content")) return put_texts(to, yyjson_obj_get(source, "content"));
    return serve_refuse(&to->job->error, 400, "unsupported_parameter", to->name,
                        "%s has a document that is not a text: no other is supported", to->name);
}

/* What the tools of another server did. */
static bool leave_out(struct content *to, yyjson_val *part)
{
    serve_param_ignore(to->job, yyjson_get_str(yyjson_obj_get(part, "type")));
    return true;
}

static const struct part {
    const char *type;
    unsigned apis;
    const char *role;              /* of the only messages that have such a part; NULL: all */
    bool (*read)(struct content *to, yyjson_val *part);
} kinds[] = {
    {"text", OPENAI | ANTHROPIC | OLLAMA, NULL, put_text},
    {"input_text", OPENAI, NULL, put_text},
    {"output_text", OPENAI, NULL, put_text},
    {"refusal", OPENAI, "assistant", put_refusal},
    {"search_result", ANTHROPIC, NULL, put_found},
    {"thinking", ANTHROPIC, "assistant", take_thought},
    {"redacted_thinking", ANTHROPIC, "assistant", pass_over},
    {"tool_use", ANTHROPIC, "assistant", put_use},
    {"tool_result", ANTHROPIC, "user", put_result},
    {"tool_reference", ANTHROPIC, "tool", put_reference},
    {"document", ANTHROPIC, NULL, put_document},
    {"container_upload", ANTHROPIC, "user", leave_out},
    {"server_tool_use", ANTHROPIC, "assistant", leave_out},
    {"mcp_tool_use", ANTHROPIC, "assistant", leave_out},
    {"_tool_result", ANTHROPIC, "assistant", leave_out},   /* web_search_tool_result and its like */
    {"image_url", OPENAI, NULL, put_image},
    {"input_image", OPENAI, NULL, put_image},
    {"image", ANTHROPIC, NULL, put_image},
};

static bool is_kind(yyjson_val *type, const char *kind)
{
    size_t size = yyjson_get_len(type), n = strlen(kind);
    bool fits = yyjson_is_str(type) && (*kind == '_' ? size > n : size == n);
    return fits && memcmp(yyjson_get_str(type) + size - n, kind, n) == 0;
}

static const struct part *find_part(const struct content *to, yyjson_val *type)
{
    yyjson_mut_val *role = yyjson_mut_obj_get(to->message, "role");
    for (size_t i = 0; i < PD_COUNT(kinds); i++) {
        bool fits = !kinds[i].role || yyjson_mut_equals_str(role, kinds[i].role);
        if (fits && is_kind(type, kinds[i].type) && kinds[i].apis >> to->job->api->id & 1) return &kinds[i];
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
                                "%s has a part of type %.32s: only text and images are supported", to->name,
                                yyjson_is_str(type) ? yyjson_get_str(type) : "unknown");
        if (!part->read(to, each)) return false;
    }
    return true;
}

static bool read_content(struct content *to, yyjson_val *content)
{
    if (yyjson_is_arr(content)) return read_parts(to, content) && (!to->text.failed || serve_refuse_memory(to->job));
    return put_value(to, content) && (!to->text.failed || serve_refuse_memory(to->job));
}

/* The message's content: a text, or parts. */
static bool add_content(struct content *to)
{
    yyjson_mut_doc *doc = to->c->doc;
    yyjson_mut_val *message = to->message;
    if (to->parts)
        return end_text(to->c, to->job, to->parts, &to->text) &&
               (yyjson_mut_obj_add_val(doc, message, "content", to->parts) || serve_refuse_memory(to->job));
    return yyjson_mut_obj_add_strncpy(doc, message, "content", to->text.size ? to->text.data : "", to->text.size)
        || serve_refuse_memory(to->job);
}

/* ---- messages ---- */

bool serve_conversation_add(struct serve_conversation *c, struct serve_job *job, const char *role, const char *content)
{
    yyjson_mut_val *message = make_message(c, job, role);
    if (!message) return false;
    return (yyjson_mut_obj_add_strcpy(c->doc, message, "content", content) &&
            yyjson_mut_arr_append(c->list, message)) || serve_refuse_memory(job);
}

bool serve_conversation_add_seen(struct serve_conversation *c, struct serve_job *job, const char *role,
                                 const char *name, yyjson_val *content, yyjson_val *images)
{
    size_t i, n;
    yyjson_val *each;
    struct content to = {.c = c, .job = job, .name = name, .message = make_message(c, job, role)};
    bool good = to.message;
    yyjson_arr_foreach(images, i, n, each) good = good && put_image(&to, each);
    good = good && ((!content && images) || read_content(&to, content));
    good = good && put_thought(c, job, to.message);
    bool empty = to.has_results && !to.text.size && !to.parts;   /* all of it was results */
    if (good && !empty)
        good = add_content(&to) && (yyjson_mut_arr_append(c->list, to.message) || serve_refuse_memory(job));
    pd_buffer_free(&to.text);
    return good;
}

bool serve_conversation_add_content(struct serve_conversation *c, struct serve_job *job, const char *role,
                                    const char *name, yyjson_val *content)
{
    return serve_conversation_add_seen(c, job, role, name, content, NULL);
}

bool serve_conversation_add_call(struct serve_conversation *c, struct serve_job *job, const char *id, const char *name,
                                 const char *arguments)
{
    yyjson_mut_val *message = yyjson_mut_arr_get_last(c->list);
    bool thought = c->thought.size && yyjson_mut_obj_get(message, "reasoning_content");   /* another one begins */
    if (thought || !yyjson_mut_equals_str(yyjson_mut_obj_get(message, "role"), "assistant")) {
        if (!serve_conversation_add(c, job, "assistant", "")) return false;
        message = yyjson_mut_arr_get_last(c->list);
    }
    if (!put_thought(c, job, message)) return false;
    return put_call(c, message, id, name, yyjson_mut_strcpy(c->doc, arguments)) || serve_refuse_memory(job);
}

bool serve_conversation_add_result(struct serve_conversation *c, struct serve_job *job, const char *id,
                                   const char *name, yyjson_val *content)
{
    struct content to = {.c = c, .job = job, .name = name, .message = make_message(c, job, "tool")};
    bool none = !content || yyjson_is_null(content);
    bool good = to.message && (none || read_content(&to, content));
    if (good)
        good = (yyjson_mut_obj_add_strcpy(c->doc, to.message, "tool_call_id", id) &&
                yyjson_mut_arr_append(c->list, to.message)) || serve_refuse_memory(job);
    good = good && add_content(&to);
    pd_buffer_free(&to.text);
    return good;
}

static const char *member(yyjson_mut_val *message, const char *name)
{
    const char *text = yyjson_mut_get_str(yyjson_mut_obj_get(message, name));
    return text ? text : "";
}

/* Whether the message goes on the one before. */
static bool goes_on(yyjson_mut_val *before, yyjson_mut_val *message)
{
    return before && strcmp(member(before, "role"), member(message, "role")) == 0 &&
           strcmp(member(message, "role"), "tool") != 0 && !yyjson_mut_obj_get(before, "tool_calls");
}

/* Messages that become one: the first, and what of its text is not in it yet. */
struct run {
    yyjson_mut_val *first;
    struct pd_buffer text;
    bool goes_on;              /* there was a second */
};

/* Each text is copied once: a body may have hundreds of thousands of them. */
static bool end_run(struct serve_conversation *c, struct serve_job *job, struct run *run)
{
    yyjson_mut_val *parts = yyjson_mut_obj_get(run->first, "content");
    bool goes_on = run->goes_on;
    run->goes_on = false;
    if (!goes_on) return true;
    if (yyjson_mut_is_arr(parts)) return end_text(c, job, parts, &run->text);
    yyjson_mut_val *text = run->text.failed ? NULL : yyjson_mut_strncpy(c->doc, run->text.data, run->text.size);
    run->text.size = 0;
    return (text && yyjson_mut_obj_replace(run->first, yyjson_mut_str(c->doc, "content"), text))
        || serve_refuse_memory(job);
}

/* What its content ends with, if that is text. */
static void begin_run(struct run *run)
{
    yyjson_mut_val *parts = yyjson_mut_obj_get(run->first, "content");
    yyjson_mut_val *last = yyjson_mut_arr_get_last(parts);
    const char *text = yyjson_mut_is_arr(parts) ? member(last, "text") : member(run->first, "content");
    if (yyjson_mut_is_arr(parts) && *text) yyjson_mut_arr_remove_last(parts);
    pd_buffer_add(&run->text, text, strlen(text));
}

/* Takes over the parts of a message; texts go to the run's. */
static bool put_parts(struct serve_conversation *c, struct serve_job *job, struct run *run, yyjson_mut_val *list)
{
    yyjson_mut_val *parts = yyjson_mut_obj_get(run->first, "content");
    if (!yyjson_mut_is_arr(parts)) {
        parts = yyjson_mut_arr(c->doc);
        if (!parts || !yyjson_mut_obj_replace(run->first, yyjson_mut_str(c->doc, "content"), parts))
            return serve_refuse_memory(job);
    }
    for (size_t n = yyjson_mut_arr_size(list); n > 0; n--) {
        yyjson_mut_val *part = yyjson_mut_arr_remove_first(list);
        const char *text = member(part, "text");
        if (*text) pd_buffer_add(&run->text, text, strlen(text));
        else if (!end_text(c, job, parts, &run->text) || !yyjson_mut_arr_append(parts, part))
            return serve_refuse_memory(job);
    }
    return true;
}

static bool messages_go_on(struct serve_conversation *c, struct serve_job *job, struct run *run,
                           yyjson_mut_val *message)
{
    static const char *const moved[] = {"reasoning_content", "tool_calls"};
    yyjson_mut_val *content = yyjson_mut_obj_get(message, "content");
    for (size_t i = 0; i < PD_COUNT(moved); i++) {
        yyjson_mut_val *value = yyjson_mut_obj_get(run->first, moved[i]) ? NULL
                                                                        : yyjson_mut_obj_remove_key(message, moved[i]);
        if (value && !yyjson_mut_obj_add_val(c->doc, run->first, moved[i], value)) return serve_refuse_memory(job);
    }
    if (!run->goes_on) begin_run(run);
    run->goes_on = true;
    if (run->text.size && yyjson_mut_get_len(content)) pd_buffer_add(&run->text, "\n\n", 2);
    if (yyjson_mut_is_arr(content)) return put_parts(c, job, run, content);
    pd_buffer_add(&run->text, member(message, "content"), strlen(member(message, "content")));
    return true;
}

bool serve_conversation_join(struct serve_conversation *c, struct serve_job *job)
{
    struct run run = {0};
    bool good = true;
    for (size_t n = yyjson_mut_arr_size(c->list); n > 0 && good; n--) {   /* around the list once */
        yyjson_mut_val *message = yyjson_mut_arr_remove_first(c->list);
        if (goes_on(run.first, message)) {
            good = messages_go_on(c, job, &run, message);
            continue;
        }
        good = end_run(c, job, &run);
        run.first = message;
        yyjson_mut_arr_append(c->list, message);
    }
    good = good && end_run(c, job, &run);
    pd_buffer_free(&run.text);
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
    for (size_t i = 0; i < PD_COUNT(roles); i++) {
        if (!(roles[i].apis >> job->api->id & 1)) continue;
        if (yyjson_equals_str(role, roles[i].given)) return roles[i].role;
        size += (size_t)snprintf(known + size, sizeof known - size, "%s%s", size ? ", " : "", roles[i].given);
    }
    serve_refuse(&job->error, 400, "invalid_value", name, "%s has a message with the role %.32s: it must be one of %s",
                 name, yyjson_is_str(role) ? yyjson_get_str(role) : "(none)", known);
    return NULL;
}

/* {"custom": {"name": ..., "input": text}} as a function with a text, as params_tools.c has it. */
static bool read_custom_calls(struct serve_conversation *c, struct serve_job *job, yyjson_mut_val *calls)
{
    size_t i, n;
    yyjson_mut_val *call;
    bool good = true;
    yyjson_mut_arr_foreach(calls, i, n, call) {
        yyjson_mut_val *custom = yyjson_mut_obj_remove_key(call, "custom");
        if (!yyjson_mut_is_obj(custom)) continue;
        yyjson_mut_val *name = yyjson_mut_obj_remove_key(custom, "name"), *function = yyjson_mut_obj(c->doc);
        yyjson_mut_obj_remove_key(call, "type");
        good = good && (!name || yyjson_mut_obj_add_val(c->doc, function, "name", name))
            && yyjson_mut_obj_add_val(c->doc, function, "arguments", custom)
            && yyjson_mut_obj_add_val(c->doc, call, "function", function);
    }
    return good || serve_refuse_memory(job);
}

/* What the library reads as it is. */
static bool copy_members(struct serve_conversation *c, struct serve_job *job, yyjson_val *message)
{
    static const char *const names[][2] = {{"tool_calls", "tool_calls"}, {"tool_call_id", "tool_call_id"},
        {"name", "name"}, {"tool_name", "name"}, {"reasoning_content", "reasoning_content"},
        {"reasoning", "reasoning_content"}, {"thinking", "reasoning_content"}};
    yyjson_mut_val *last = yyjson_mut_arr_get_last(c->list);
    for (size_t i = 0; i < PD_COUNT(names); i++) {
        yyjson_val *value = yyjson_obj_get(message, names[i][0]);
        if (!value || yyjson_is_null(value) || yyjson_mut_obj_get(last, names[i][1])) continue;
        if (!yyjson_mut_obj_add_val(c->doc, last, names[i][1], yyjson_val_mut_copy(c->doc, value)))
            return serve_refuse_memory(job);
    }
    return read_custom_calls(c, job, yyjson_mut_obj_get(last, "tool_calls"))
        && serve_thought_read_details(&c->thought, job, yyjson_obj_get(message, "reasoning_details"))
        && put_thought(c, job, last);
}

bool serve_conversation_read_one(struct serve_conversation *c, struct serve_job *job, yyjson_val *message)
{
    static const char *const unsupported[] = {"function_call", "audio", "images"};
    const char *name = job->api->input;
    yyjson_val *content = yyjson_obj_get(message, "content"), *type = yyjson_obj_get(message, "type");
    bool ollama = job->api->id == SERVE_OLLAMA_CHAT;   /* where a message may have images, or be a thought alone */
    if (!yyjson_is_obj(message)) return serve_refuse_type(&job->error, name, "must be a list of objects");
    for (size_t i = 0; i < PD_COUNT(unsupported) - ollama; i++) {
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
    bool may_lack = ollama || yyjson_obj_get(message, "tool_calls");
    bool none = may_lack && (!content || yyjson_is_null(content));
    yyjson_val *images = ollama ? yyjson_obj_get(message, "images") : NULL;
    if (!role) return false;
    bool good = none && !yyjson_arr_size(images)
        ? serve_conversation_add(c, job, role, "")
        : serve_conversation_add_seen(c, job, role, name, none ? NULL : content, images);
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
