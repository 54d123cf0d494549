/* The messages of a conversation: from a client's JSON to what rows of chat.c and programs read. */
#include "text/text_.h"

#include "base/base.h"
#include "text/template/template.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CALLS = 256 };      /* of a message, so that finding one takes no time */

typedef yyjson_mut_doc doc_t;

static peridot_status fail_memory(void) { return pd_fail_alloc(sizeof(yyjson_mut_val), "messages"); }

static peridot_status messages_begin(struct pd_messages *m)
{
    uint64_t secret;
    *m = (struct pd_messages){.doc = yyjson_mut_doc_new(NULL)};
    m->list = yyjson_mut_arr(m->doc);
    pd_random_bytes(&secret, sizeof secret);
    snprintf(m->mark, sizeof m->mark, "\x02image %016llx\x03", (unsigned long long)secret);
    return m->list ? PERIDOT_OK : fail_memory();
}

void pd_messages_free(struct pd_messages *m)
{
    yyjson_mut_doc_free(m->doc);
    *m = (struct pd_messages){0};
}

/* The last one's are only in JSON, where results have the calls that they answer. */
static peridot_status check_role(const char *role, size_t i, bool json)
{
    static const char *const roles[] = {"system", "developer", "user", "assistant", "tool"};
    for (size_t k = 0; k + !json < PD_COUNT(roles); k++)
        if (strcmp(role, roles[k]) == 0) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_ARGUMENT, "message %zu has the unknown role \"%.40s\"; roles are system, developer, "
                   "user%s", i, role, json ? ", assistant and tool" : " and assistant");
}

/* ---- an array ---- */

static peridot_status add_message(struct pd_messages *m, const peridot_message *message, size_t i)
{
    yyjson_mut_val *o = yyjson_mut_arr_add_obj(m->doc, m->list);
    if (!message->role || !message->content)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "message %zu has no role or no content", i);
    PD_TRY(check_role(message->role, i, false));
    bool good = o && yyjson_mut_obj_add_str(m->doc, o, "role", message->role) &&
                yyjson_mut_obj_add_str(m->doc, o, "content", message->content);
    return good ? PERIDOT_OK : fail_memory();
}

peridot_status pd_messages_from_array(struct pd_messages *out, const peridot_message *messages, size_t n)
{
    peridot_status status = messages_begin(out);
    for (size_t i = 0; i < n && status == PERIDOT_OK; i++) status = add_message(out, &messages[i], i);
    if (status != PERIDOT_OK) pd_messages_free(out);
    return status;
}

/* ---- JSON ---- */

struct reader {
    struct pd_messages *m;
    yyjson_mut_val *message;   /* that is written now, */
    size_t i;                  /* and its number */
    yyjson_mut_val *calls;     /* of the last message that has some; NULL: none */
};

static peridot_status messages_fail(const struct reader *r, const char *what)
{
    return pd_fail(PERIDOT_ERROR_ARGUMENT, "message %zu %s", r->i, what);
}

static bool has_nul(yyjson_val *text) { return strlen(yyjson_get_str(text)) != yyjson_get_len(text); }
static bool is_there(yyjson_val *value) { return value && !yyjson_is_null(value); }

static peridot_status messages_put_text(const struct reader *r, yyjson_mut_val *object, const char *name,
                                        yyjson_val *text)
{
    if (has_nul(text)) return messages_fail(r, "contains a NUL character");
    bool good = yyjson_mut_obj_add_strncpy(r->m->doc, object, name, yyjson_get_str(text), yyjson_get_len(text));
    return good ? PERIDOT_OK : fail_memory();
}

static bool is_one_of(yyjson_val *type, const char *const *names, size_t n)
{
    bool found = false;
    for (size_t k = 0; k < n; k++) found = found || yyjson_equals_str(type, names[k]);
    return found;
}

static bool is_image(yyjson_val *part)
{
    static const char *const types[] = {"image", "image_url", "input_image"};
    return is_one_of(yyjson_obj_get(part, "type"), types, PD_COUNT(types));
}

static peridot_status append_part(struct pd_buffer *text, const struct reader *r, yyjson_val *part)
{
    static const char *const types[] = {"text", "input_text", "output_text"};
    yyjson_val *type = yyjson_obj_get(part, "type"), *content = yyjson_obj_get(part, "text");
    if (!is_one_of(type, types, PD_COUNT(types)))
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "message %zu has a part of type %.32s: only text and images are "
                       "supported", r->i, yyjson_is_str(type) ? yyjson_get_str(type) : "unknown");
    if (!yyjson_is_str(content)) return messages_fail(r, "has a part whose text is not a string");
    if (has_nul(content)) return messages_fail(r, "contains a NUL character");
    return pd_buffer_add(text, yyjson_get_str(content), yyjson_get_len(content));
}

/* A list, as templates read it. */
static peridot_status put_images(const struct reader *r, yyjson_val *parts)
{
    yyjson_mut_doc *doc = r->m->doc;
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, r->message, "content");
    yyjson_val *part;
    size_t i, n;
    yyjson_arr_foreach(parts, i, n, part) {
        yyjson_mut_val *o = yyjson_mut_arr_add_obj(doc, list);
        if (!o || !yyjson_mut_obj_add_str(doc, o, "type", is_image(part) ? "image" : "text")) return fail_memory();
        if (is_image(part)) {
            r->m->n_images++;
            continue;
        }
        struct pd_buffer text = {0};
        peridot_status status = append_part(&text, r, part);
        if (status == PERIDOT_OK && !yyjson_mut_obj_add_strncpy(doc, o, "text", text.size ? text.data : "", text.size))
            status = fail_memory();
        free(text.data);
        PD_TRY(status);
    }
    return PERIDOT_OK;
}

static peridot_status put_parts(const struct reader *r, yyjson_val *parts)
{
    struct pd_buffer text = {0};
    peridot_status status = PERIDOT_OK;
    yyjson_val *part;
    size_t i, n;
    yyjson_arr_foreach(parts, i, n, part) {
        if (is_image(part)) return put_images(r, parts);
    }
    yyjson_arr_foreach(parts, i, n, part) {
        if (status == PERIDOT_OK) status = append_part(&text, r, part);
    }
    if (status == PERIDOT_OK) status = pd_buffer_end(&text);
    if (status == PERIDOT_OK &&
        !yyjson_mut_obj_add_strncpy(r->m->doc, r->message, "content", text.data, text.size))
        status = fail_memory();
    free(text.data);
    return status;
}

static peridot_status put_content(const struct reader *r, yyjson_val *message)
{
    yyjson_val *content = yyjson_obj_get(message, "content");
    if (yyjson_is_arr(content)) return put_parts(r, content);
    if (yyjson_is_str(content)) return messages_put_text(r, r->message, "content", content);
    if (is_there(content)) return messages_fail(r, "has content that is neither a string nor a list of parts");
    if (!yyjson_equals_str(yyjson_obj_get(message, "role"), "assistant")) return messages_fail(r, "has no content");
    return yyjson_mut_obj_add_str(r->m->doc, r->message, "content", "") ? PERIDOT_OK : fail_memory();
}

static peridot_status put_optional(const struct reader *r, yyjson_mut_val *object, yyjson_val *from, const char *name)
{
    yyjson_val *value = yyjson_obj_get(from, name);
    if (!is_there(value)) return PERIDOT_OK;
    if (yyjson_is_str(value)) return messages_put_text(r, object, name, value);
    return pd_fail(PERIDOT_ERROR_ARGUMENT, "message %zu has a %s that is not a string", r->i, name);
}

/* ---- calls ---- */

/* What a call's arguments are: an object, or JSON text of one, as the interface's own answers have it; a text that is
 * no JSON is none. */
static peridot_status read_arguments(yyjson_mut_val **out, const struct reader *r, yyjson_val *arguments)
{
    yyjson_doc *doc = NULL;
    yyjson_val *object = arguments;
    if (yyjson_is_str(arguments)) {
        doc = yyjson_read(yyjson_get_str(arguments), yyjson_get_len(arguments), 0);
        object = yyjson_doc_get_root(doc);
    }
    bool cut = yyjson_is_str(arguments) && !doc;   /* as a reply that ended within them has it; or empty */
    *out = !is_there(arguments) || cut
               ? yyjson_mut_obj(r->m->doc)
               : yyjson_is_obj(object) ? yyjson_val_mut_copy(r->m->doc, object) : NULL;
    bool wrong = !*out && !yyjson_is_obj(object);
    yyjson_doc_free(doc);
    if (wrong) return messages_fail(r, "has a tool call whose arguments are not a JSON object");
    return *out ? PERIDOT_OK : fail_memory();
}

static peridot_status add_call(const struct reader *r, yyjson_val *call)
{
    doc_t *doc = r->m->doc;
    yyjson_val *from = yyjson_obj_get(call, "function"), *name = yyjson_obj_get(from, "name");
    yyjson_mut_val *o = yyjson_mut_arr_add_obj(doc, r->calls), *function = yyjson_mut_obj(doc), *arguments;
    if (!yyjson_is_str(name)) return messages_fail(r, "has a tool call that has no name");
    PD_TRY(put_optional(r, o, call, "id"));
    PD_TRY(messages_put_text(r, function, "name", name));
    PD_TRY(read_arguments(&arguments, r, yyjson_obj_get(from, "arguments")));
    bool good = yyjson_mut_obj_add_str(doc, o, "type", "function") &&
                yyjson_mut_obj_add_val(doc, function, "arguments", arguments) &&
                yyjson_mut_obj_add_val(doc, o, "function", function);
    return good ? PERIDOT_OK : fail_memory();
}

static peridot_status put_calls(struct reader *r, yyjson_val *message)
{
    yyjson_val *from = yyjson_obj_get(message, "tool_calls"), *call;
    size_t i, n;
    if (!is_there(from) || (yyjson_is_arr(from) && yyjson_arr_size(from) == 0)) return PERIDOT_OK;
    if (!yyjson_is_arr(from) || !yyjson_equals_str(yyjson_obj_get(message, "role"), "assistant"))
        return messages_fail(r, "has tool_calls that are not a list, or not the assistant's");
    if (yyjson_arr_size(from) > MAX_CALLS) return messages_fail(r, "has more than 256 tool calls");
    if (yyjson_mut_is_arr(yyjson_mut_obj_get(r->message, "content")))   /* templates write results before or after it */
        return messages_fail(r, "has an image beside its tool calls, which is not supported");
    r->calls = yyjson_mut_obj_add_arr(r->m->doc, r->message, "tool_calls");
    if (!r->calls) return fail_memory();
    yyjson_arr_foreach(from, i, n, call) PD_TRY(add_call(r, call));
    r->m->has_calls = true;
    return PERIDOT_OK;
}

/* The function of the call with this id, among the last ones. */
static const char *find_call(yyjson_mut_val *calls, const char *id)
{
    yyjson_mut_val *call;
    size_t i, n;
    yyjson_mut_arr_foreach(calls, i, n, call) {
        if (yyjson_mut_equals_str(yyjson_mut_obj_get(call, "id"), id))
            return yyjson_mut_get_str(yyjson_mut_obj_get(yyjson_mut_obj_get(call, "function"), "name"));
    }
    return NULL;
}

/* Templates want the name of what a result is of; the interface has the call's id. */
static peridot_status name_result(const struct reader *r)
{
    const char *id = yyjson_mut_get_str(yyjson_mut_obj_get(r->message, "tool_call_id"));
    const char *name = id ? find_call(r->calls, id) : NULL;
    if (!name || yyjson_mut_obj_get(r->message, "name")) return PERIDOT_OK;
    return yyjson_mut_obj_add_str(r->m->doc, r->message, "name", name) ? PERIDOT_OK : fail_memory();
}

static peridot_status read_message(struct reader *r, yyjson_val *message)
{
    yyjson_val *role = yyjson_obj_get(message, "role");
    if (!yyjson_is_str(role)) return messages_fail(r, "is not an object with a role");
    PD_TRY(check_role(yyjson_get_str(role), r->i, true));
    PD_TRY(messages_put_text(r, r->message, "role", role));
    PD_TRY(put_content(r, message));
    PD_TRY(put_optional(r, r->message, message, "reasoning_content"));
    PD_TRY(put_optional(r, r->message, message, "name"));
    PD_TRY(put_calls(r, message));
    if (!yyjson_equals_str(role, "tool")) return PERIDOT_OK;
    r->m->has_calls = true;
    PD_TRY(put_optional(r, r->message, message, "tool_call_id"));
    return name_result(r);
}

static peridot_status read_list(struct pd_messages *m, yyjson_val *list)
{
    struct reader r = {.m = m};
    yyjson_val *message;
    size_t n;
    if (!yyjson_is_arr(list)) return pd_fail(PERIDOT_ERROR_ARGUMENT, "the messages are not a list");
    yyjson_arr_foreach(list, r.i, n, message) {
        r.message = yyjson_mut_obj(m->doc);
        PD_TRY(r.message ? read_message(&r, message) : fail_memory());
        yyjson_mut_arr_append(m->list, r.message);
    }
    return PERIDOT_OK;
}

peridot_status pd_messages_from_json(struct pd_messages *out, const char *json, size_t size)
{
    yyjson_doc *doc;
    *out = (struct pd_messages){0};
    PD_TRY(pd_json_read(&doc, (const uint8_t *)json, size));
    peridot_status status = messages_begin(out);
    if (status == PERIDOT_OK) status = read_list(out, yyjson_doc_get_root(doc));
    yyjson_doc_free(doc);
    if (status != PERIDOT_OK) pd_messages_free(out);
    return status;
}

/* ---- as an array ---- */

/* The parts of a content with images as one text, which stays with the document. */
static peridot_status flatten(const char **out, const struct pd_messages *m, yyjson_mut_val *parts, bool trims)
{
    struct pd_buffer text = {0};
    yyjson_mut_val *part;
    size_t i, n;
    peridot_status status = PERIDOT_OK;
    yyjson_mut_arr_foreach(parts, i, n, part) {
        yyjson_mut_val *of_part = yyjson_mut_obj_get(part, "text");
        const char *bytes = of_part ? yyjson_mut_get_str(of_part) : m->mark;
        size_t size = of_part ? yyjson_mut_get_len(of_part) : strlen(m->mark);
        if (of_part && trims) pd_utf8_trim(&bytes, &size);
        if (status == PERIDOT_OK) status = pd_buffer_add(&text, bytes, size);
    }
    if (status == PERIDOT_OK) status = pd_buffer_end(&text);
    yyjson_mut_val *kept = status == PERIDOT_OK ? yyjson_mut_strncpy(m->doc, text.data, text.size) : NULL;
    free(text.data);
    *out = yyjson_mut_get_str(kept);
    return status == PERIDOT_OK && !kept ? fail_memory() : status;
}

peridot_status pd_messages_to_array(peridot_message **out, size_t *n, const struct pd_messages *m, bool trims)
{
    yyjson_mut_val *message;
    size_t i, n_messages;
    *n = yyjson_mut_arr_size(m->list);
    *out = malloc((*n + 1) * sizeof **out);
    if (!*out) return pd_fail_alloc(*n * sizeof **out, "messages");
    yyjson_mut_arr_foreach(m->list, i, n_messages, message) {
        (*out)[i].role = yyjson_mut_get_str(yyjson_mut_obj_get(message, "role"));
        yyjson_mut_val *content = yyjson_mut_obj_get(message, "content");
        (*out)[i].content = yyjson_mut_get_str(content);
        if (!yyjson_mut_is_arr(content)) continue;
        peridot_status status = flatten(&(*out)[i].content, m, content, trims);
        if (status == PERIDOT_OK) continue;
        free(*out);
        *out = NULL;
        return status;
    }
    return PERIDOT_OK;
}

/* ---- program messages ---- */

/* ---- what programs want ---- */

static bool is_result(yyjson_mut_val *message)
{
    return yyjson_mut_equals_str(yyjson_mut_obj_get(message, "role"), "tool");
}

/* Programs that do not know the role would refuse it. */
static bool rename_developer(struct pd_messages *m)
{
    yyjson_mut_val *message;
    size_t i, n;
    yyjson_mut_arr_foreach(m->list, i, n, message) {
        yyjson_mut_val *role = yyjson_mut_obj_get(message, "role");
        if (yyjson_mut_equals_str(role, "developer")) yyjson_mut_set_str(role, "system");
    }
    return true;
}

/* Mistral's programs want ids of nine letters or digits; other ids become such, and where there is none, call and
 * result have their number. */
static bool shorten(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, unsigned number)
{
    char made[16];
    const char *id = yyjson_mut_get_str(yyjson_mut_obj_get(object, key));
    if (id && strlen(id) == 9) return true;
    uint64_t value = id ? pd_hash(0, id, strlen(id)) & 0xfffffffff : number;
    snprintf(made, sizeof made, "%09llx", (unsigned long long)value);
    return yyjson_mut_obj_put(object, yyjson_mut_str(doc, key), yyjson_mut_strcpy(doc, made));
}

static bool shorten_ids(struct pd_messages *m)
{
    bool good = true;
    yyjson_mut_val *message, *call;
    unsigned n_calls = 0, n_results = 0;
    size_t i, k, n, n_of_message;
    yyjson_mut_arr_foreach(m->list, i, n, message) {
        if (is_result(message)) good = good && shorten(m->doc, message, "tool_call_id", n_results++);
        yyjson_mut_arr_foreach(yyjson_mut_obj_get(message, "tool_calls"), k, n_of_message, call)
            good = good && shorten(m->doc, call, "id", n_calls++);
    }
    return good;
}

/* A call comes without a text where programs ask for that. */
static bool empty_contents(struct pd_messages *m)
{
    bool good = true;
    yyjson_mut_val *message;
    size_t i, n;
    yyjson_mut_arr_foreach(m->list, i, n, message) {
        bool empty = yyjson_mut_equals_str(yyjson_mut_obj_get(message, "content"), "");
        if (empty && yyjson_mut_obj_get(message, "tool_calls"))
            good = good && yyjson_mut_obj_put(message, yyjson_mut_str(m->doc, "content"), yyjson_mut_null(m->doc));
    }
    return good;
}

/* Of the results that the list begins with, that of this id, or else the first; NULL: there are none. */
static yyjson_mut_val *take_result(yyjson_mut_val *list, yyjson_mut_val *id)
{
    size_t i = 0;
    yyjson_mut_val *result = yyjson_mut_arr_get_first(list);
    if (!is_result(result)) return NULL;
    while (is_result(result) && !yyjson_mut_equals(yyjson_mut_obj_get(result, "tool_call_id"), id))
        result = yyjson_mut_arr_get(list, ++i);
    return yyjson_mut_arr_remove(list, is_result(result) ? i : 0);
}

/* The first of a message's calls as a message before it, with the text. */
static bool split_call(struct pd_messages *m, yyjson_mut_val *out, yyjson_mut_val *message, yyjson_mut_val *calls)
{
    yyjson_mut_val *call = yyjson_mut_arr_remove_first(calls), *first = yyjson_mut_arr_add_obj(m->doc, out);
    yyjson_mut_val *of_first = first ? yyjson_mut_obj_add_arr(m->doc, first, "tool_calls") : NULL;
    yyjson_mut_val *content = yyjson_mut_obj_remove_key(message, "content");
    yyjson_mut_val *result = take_result(m->list, yyjson_mut_obj_get(call, "id"));
    return of_first && yyjson_mut_arr_append(of_first, call) &&
           yyjson_mut_obj_add_str(m->doc, first, "role", "assistant") &&
           yyjson_mut_obj_add_val(m->doc, first, "content", content) &&
           yyjson_mut_obj_add_str(m->doc, message, "content", "") && (!result || yyjson_mut_arr_append(out, result));
}

/* Llama's programs take one call a message: others go into messages of their own, each before its result. */
static bool split_calls(struct pd_messages *m)
{
    yyjson_mut_val *out = yyjson_mut_arr(m->doc), *message;
    bool good = out != NULL;
    while (good && (message = yyjson_mut_arr_remove_first(m->list))) {
        yyjson_mut_val *calls = yyjson_mut_obj_get(message, "tool_calls");
        while (good && yyjson_mut_arr_size(calls) > 1) good = split_call(m, out, message, calls);
        good = good && yyjson_mut_arr_append(out, message);
        yyjson_mut_val *result = calls ? take_result(m->list, yyjson_mut_obj_get(yyjson_mut_arr_get_first(calls), "id"))
                                       : NULL;
        if (result) good = good && yyjson_mut_arr_append(out, result);
    }
    m->list = out;
    return good;
}

static bool messages_add_block(yyjson_mut_doc *doc, yyjson_mut_val *blocks, const char *type, const char *key,
                               yyjson_mut_val *text)
{
    yyjson_mut_val *block = yyjson_mut_arr_add_obj(doc, blocks);
    return block && yyjson_mut_obj_add_str(doc, block, "type", type) &&
           yyjson_mut_obj_add(block, yyjson_mut_str(doc, key), yyjson_mut_val_mut_copy(doc, text));
}

typedef bool move_thought(yyjson_mut_doc *doc, yyjson_mut_val *message, yyjson_mut_val *thought);

/* Takes thoughts out of messages, and hands each to `move`. */
static bool move_thoughts(struct pd_messages *m, move_thought *move)
{
    bool good = true;
    yyjson_mut_val *message;
    size_t i, n;
    yyjson_mut_arr_foreach(m->list, i, n, message) {
        yyjson_mut_val *thought = yyjson_mut_obj_remove_key(message, "reasoning_content");
        if (thought) good = good && move(m->doc, message, thought);
    }
    return good;
}

static bool to_block(yyjson_mut_doc *doc, yyjson_mut_val *message, yyjson_mut_val *thought)
{
    yyjson_mut_val *content = yyjson_mut_obj_get(message, "content"), *blocks = yyjson_mut_arr(doc);
    if (!yyjson_mut_is_str(content)) return true;
    return messages_add_block(doc, blocks, "thinking", "thinking", thought) &&
           (!yyjson_mut_get_len(content) || messages_add_block(doc, blocks, "text", "text", content)) &&
           yyjson_mut_obj_put(message, yyjson_mut_str(doc, "content"), blocks);
}

static bool to_thinking(yyjson_mut_doc *doc, yyjson_mut_val *message, yyjson_mut_val *thought)
{
    bool says = yyjson_mut_get_len(yyjson_mut_obj_get(message, "content")) > 0;
    if (says && yyjson_mut_obj_get(message, "tool_calls")) return true;
    return yyjson_mut_obj_put(message, yyjson_mut_str(doc, "thinking"), thought);
}

/* Mistral's programs read thoughts as a block of the content. */
static bool put_thoughts(struct pd_messages *m) { return move_thoughts(m, to_block); }

/* gpt-oss's programs read thoughts by another name, and of messages with calls, which may say nothing then. */
static bool rename_thoughts(struct pd_messages *m) { return move_thoughts(m, to_thinking); }

bool pd_program_suit_messages(struct pd_messages *m, const char *jinja)
{
    static const struct {
        const char *mark;
        bool mentions;             /* of the mark: programs of this want */
        bool (*apply)(struct pd_messages *m);
    } wants[] = {
        {"single tool-calls", true, split_calls}, {"developer", false, rename_developer},
        {"length != 9", true, shorten_ids}, {"['content'] is not none", true, empty_contents},
        {PD_THOUGHT_BLOCK, true, put_thoughts}, {"message.thinking", true, rename_thoughts},
        {"max 1 tool call per message", true, split_calls},
    };
    bool good = true;
    for (size_t i = 0; i < PD_COUNT(wants); i++)
        if ((strstr(jinja, wants[i].mark) != NULL) == wants[i].mentions) good = good && wants[i].apply(m);
    return good;
}

/* ---- arguments as text ---- */

/* As json.dumps writes it. */
static peridot_status write_json(struct pd_template_output *out, yyjson_mut_val *value)
{
    static const char source[] = "{{ value | tojson }}";
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    bool good = root && yyjson_mut_obj_add_val(doc, root, "value", yyjson_mut_val_mut_copy(doc, value));
    yyjson_doc *variables = good ? yyjson_mut_val_imut_copy(root, NULL) : NULL;
    const struct pd_template_input in = {.variables = yyjson_doc_get_root(variables)};
    struct pd_template *t = NULL;
    peridot_status status = variables ? pd_template_parse(&t, source, sizeof source - 1)
                                      : pd_fail_alloc(sizeof *value, "messages");
    *out = (struct pd_template_output){0};
    if (status == PERIDOT_OK) status = pd_template_render(out, t, &in);
    pd_template_free(t);
    yyjson_doc_free(variables);
    yyjson_mut_doc_free(doc);
    return status;
}

static peridot_status write_arguments(yyjson_mut_doc *doc, yyjson_mut_val *call)
{
    yyjson_mut_val *function = yyjson_mut_obj_get(call, "function");
    struct pd_template_output json;
    peridot_status status = write_json(&json, yyjson_mut_obj_get(function, "arguments"));
    if (status == PERIDOT_OK && !yyjson_mut_obj_put(function, yyjson_mut_str(doc, "arguments"),
                                                    yyjson_mut_strncpy(doc, json.text, json.size)))
        status = pd_fail_alloc(json.size, "messages");
    pd_template_output_free(&json);
    return status;
}

peridot_status pd_program_write_arguments(struct pd_messages *m)
{
    yyjson_mut_val *message, *call;
    size_t i, k, n, n_calls;
    yyjson_mut_arr_foreach(m->list, i, n, message) {
        yyjson_mut_arr_foreach(yyjson_mut_obj_get(message, "tool_calls"), k, n_calls, call)
            PD_TRY(write_arguments(m->doc, call));
    }
    return PERIDOT_OK;
}
