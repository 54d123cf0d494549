/* Conversations for templates that are strict of roles. Agents send systems late or several, two users in a row, a user
 * after a tool's result, an assistant first, calls without results; many templates raise at that. Where one does, the
 * messages are put into an order that any has a place for: one system at the beginning, and users, or results of tools,
 * that alternate with the assistant. What a system says late becomes part of the turn beside it, marked, so that it is
 * not taken for the user's own words. */
#include "wire_.h"
#include "../job/job.h"

#include <stdlib.h>
#include <string.h>

struct folding {
    struct serve_conversation *c;
    yyjson_mut_val *list;          /* what is made */
    struct pd_buffer late;      /* what systems said since the last turn that had room for it */
    bool failed;                   /* memory was short, or what is said late is no text */
};

static yyjson_mut_val *last_of(const struct folding *f) { return yyjson_mut_arr_get_last(f->list); }

static bool is(yyjson_mut_val *message, const char *role)
{
    return yyjson_mut_equals_str(yyjson_mut_obj_get(message, "role"), role);
}

static bool is_answered(yyjson_mut_val *message) { return is(message, "user") || is(message, "tool"); }

/* ---- contents ---- */

static void roles_put_text(struct pd_buffer *out, yyjson_mut_val *text)
{
    pd_buffer_add(out, yyjson_mut_get_str(text), yyjson_mut_get_len(text));
}

static void set_content(struct folding *f, yyjson_mut_val *message, yyjson_mut_val *content)
{
    yyjson_mut_val *name = yyjson_mut_str(f->c->doc, "content");
    yyjson_mut_obj_remove_key(message, "content");
    if (!content || !name || !yyjson_mut_obj_add(message, name, content)) f->failed = true;
}

/* A content as parts. */
static yyjson_mut_val *parts_of(struct folding *f, yyjson_mut_val *content)
{
    if (yyjson_mut_is_arr(content)) return content;
    yyjson_mut_val *list = yyjson_mut_arr(f->c->doc), *part = yyjson_mut_arr_add_obj(f->c->doc, list);
    yyjson_mut_obj_add_str(f->c->doc, part, "type", "text");
    if (!yyjson_mut_obj_add_strncpy(f->c->doc, part, "text", yyjson_mut_is_str(content) ? yyjson_mut_get_str(content)
                                    : "", yyjson_mut_get_len(content))) f->failed = true;
    return list;
}

static void add_text_part(struct folding *f, yyjson_mut_val *parts, const char *text, size_t size)
{
    yyjson_mut_val *part = yyjson_mut_arr_add_obj(f->c->doc, parts);
    if (!yyjson_mut_obj_add_str(f->c->doc, part, "type", "text")
        || !yyjson_mut_obj_add_strncpy(f->c->doc, part, "text", text, size)) f->failed = true;
}

/* What the message says becomes that and then the other content, whose parts are taken over. Texts stay apart until all
 * is there (flatten): each is copied twice, however many there are. */
static void roles_join(struct folding *f, yyjson_mut_val *message, yyjson_mut_val *content)
{
    yyjson_mut_val *had = yyjson_mut_obj_get(message, "content"), *all = parts_of(f, had);
    if (!content || !yyjson_mut_get_len(content)) {
        if (!content) f->failed = true;
        return;
    }
    bool empty = yyjson_mut_is_str(had) && !yyjson_mut_get_len(had);
    if (!empty) add_text_part(f, all, "\n\n", 2);
    if (yyjson_mut_is_str(content))
        add_text_part(f, all, yyjson_mut_get_str(content), yyjson_mut_get_len(content));
    for (size_t n = yyjson_mut_is_arr(content) ? yyjson_mut_arr_size(content) : 0; n > 0; n--)
        if (!yyjson_mut_arr_append(all, yyjson_mut_arr_remove_first(content))) f->failed = true;
    if (all != had) set_content(f, message, all);
}

/* A content of texts alone is a text. */
static void flatten(struct folding *f, yyjson_mut_val *message)
{
    yyjson_mut_val *part, *parts = yyjson_mut_obj_get(message, "content");
    struct pd_buffer text = {0};
    size_t i, n;
    bool plain = yyjson_mut_is_arr(parts);
    yyjson_mut_arr_foreach(parts, i, n, part) plain = plain && yyjson_mut_obj_get(part, "text");
    if (!plain) return;
    yyjson_mut_arr_foreach(parts, i, n, part) roles_put_text(&text, yyjson_mut_obj_get(part, "text"));
    set_content(f, message, text.failed ? NULL
                                        : yyjson_mut_strncpy(f->c->doc, text.size ? text.data : "", text.size));
    pd_buffer_free(&text);
}

/* ---- turns ---- */

static void append(struct folding *f, const char *role, const char *text, size_t size)
{
    yyjson_mut_val *message = yyjson_mut_arr_add_obj(f->c->doc, f->list);
    if (!yyjson_mut_obj_add_strcpy(f->c->doc, message, "role", role)
        || !yyjson_mut_obj_add_strncpy(f->c->doc, message, "content", text, size)) f->failed = true;
}

/* Calls that have no results are told. */
static void tell_calls(struct folding *f, yyjson_mut_val *message)
{
    struct pd_buffer text = {0};
    size_t i, n;
    yyjson_mut_val *each, *calls = yyjson_mut_obj_get(message, "tool_calls");
    if (!calls) return;
    yyjson_mut_arr_foreach(calls, i, n, each) {
        yyjson_mut_val *function = yyjson_mut_obj_get(each, "function"),
                       *arguments = yyjson_mut_obj_get(function, "arguments");
        char *json = yyjson_mut_is_str(arguments) ? NULL : yyjson_mut_val_write(arguments, 0, NULL);
        pd_buffer_add(&text, i ? "\n[called " : "[called ", strlen(i ? "\n[called " : "[called "));
        roles_put_text(&text, yyjson_mut_obj_get(function, "name"));
        pd_buffer_add(&text, " ", 1);
        if (json) pd_buffer_add(&text, json, strlen(json));
        else roles_put_text(&text, arguments);
        pd_buffer_add(&text, "]", 1);
        free(json);
    }
    yyjson_mut_obj_remove_key(message, "tool_calls");
    if (text.failed) f->failed = true;
    else roles_join(f, message, yyjson_mut_strncpy(f->c->doc, text.size ? text.data : "", text.size));
    pd_buffer_free(&text);
}

/* What a system says late, where there is no room yet. */
static void hold(struct folding *f, yyjson_mut_val *content)
{
    size_t i, n;
    yyjson_mut_val *part, *parts = parts_of(f, content);
    pd_buffer_add(&f->late, "<system>\n", 9);
    yyjson_mut_arr_foreach(parts, i, n, part) {
        roles_put_text(&f->late, yyjson_mut_obj_get(part, "text"));
        if (!yyjson_mut_obj_get(part, "text")) f->failed = true;   /* an image */
    }
    pd_buffer_add(&f->late, "\n</system>\n\n", 12);
}

static yyjson_mut_val *held(struct folding *f)
{
    size_t size = f->late.size > 2 ? f->late.size - 2 : 0;   /* without the last line break */
    yyjson_mut_val *text = yyjson_mut_strncpy(f->c->doc, size ? f->late.data : "", size);
    f->late.size = 0;
    return text;
}

static void fold_user(struct folding *f, yyjson_mut_val *message)
{
    if (f->late.size) {   /* before what the user says */
        yyjson_mut_val *content = yyjson_mut_obj_get(message, "content");
        set_content(f, message, held(f));
        roles_join(f, message, content);
    }
    if (is(last_of(f), "assistant")) tell_calls(f, last_of(f));
    if (is_answered(last_of(f))) roles_join(f, last_of(f), yyjson_mut_obj_get(message, "content"));
    else yyjson_mut_arr_append(f->list, message);
}

static void fold_assistant(struct folding *f, yyjson_mut_val *message)
{
    yyjson_mut_val *last = last_of(f);
    if (f->late.size && is_answered(last)) roles_join(f, last, held(f));
    if (!last || is(last, "system")) append(f, "user", "", 0);
    if (!is(last, "assistant")) {
        yyjson_mut_arr_append(f->list, message);
        return;
    }
    yyjson_mut_val *name, *calls = yyjson_mut_obj_remove_key(message, "tool_calls");
    tell_calls(f, last);
    roles_join(f, last, yyjson_mut_obj_get(message, "content"));
    if (!calls) return;
    name = yyjson_mut_str(f->c->doc, "tool_calls");
    if (!name || !yyjson_mut_obj_add(last, name, calls)) f->failed = true;
}

/* Whatever it calls itself. */
static void append_system(struct folding *f, yyjson_mut_val *message)
{
    yyjson_mut_val *name = yyjson_mut_str(f->c->doc, "role"), *role = yyjson_mut_str(f->c->doc, "system");
    yyjson_mut_obj_remove_key(message, "role");
    if (!name || !role || !yyjson_mut_obj_add(message, name, role)) f->failed = true;
    yyjson_mut_arr_append(f->list, message);
}

static void fold_system(struct folding *f, yyjson_mut_val *message, bool has_system)
{
    yyjson_mut_val *last = last_of(f);
    if (!has_system || (last && !is(last, "system"))) hold(f, yyjson_mut_obj_get(message, "content"));
    else if (last) roles_join(f, last, yyjson_mut_obj_get(message, "content"));
    else append_system(f, message);
}

bool serve_conversation_fold(struct serve_conversation *c, struct serve_job *job, bool has_system)
{
    struct folding f = {.c = c, .list = yyjson_mut_arr(c->doc)};
    f.failed = !f.list;
    for (size_t n = yyjson_mut_arr_size(c->list); n > 0 && !f.failed; n--) {
        yyjson_mut_val *message = yyjson_mut_arr_remove_first(c->list);
        if (is(message, "system") || is(message, "developer")) fold_system(&f, message, has_system);
        else if (is(message, "user")) fold_user(&f, message);
        else if (is(message, "assistant")) fold_assistant(&f, message);
        else yyjson_mut_arr_append(f.list, message);
    }
    if (f.late.size && is_answered(last_of(&f))) roles_join(&f, last_of(&f), held(&f));
    else if (f.late.size) append(&f, "user", f.late.data, f.late.size - 2);
    size_t i, n;
    yyjson_mut_val *message;
    yyjson_mut_arr_foreach(f.list, i, n, message) flatten(&f, message);
    bool good = !f.failed && !f.late.failed;
    pd_buffer_free(&f.late);
    c->list = f.list;
    return good || serve_refuse(&job->error, 400, NULL, NULL, "the messages cannot be put in another order");
}

/* ---- what templates lose ---- */

/* The conversation's roles, each message with its number in place of what it says, as the template writes them. NULL:
 * it raises, or memory is short. Calls are left out. */
static char *write_roles(size_t *size, struct serve_job *job, const peridot_vocab *vocab,
                         const struct serve_conversation *c)
{
    peridot_encode_limit limit = serve_limit(job);
    size_t i, n, n_ids, n_messages = 0;
    yyjson_mut_val *each;
    int32_t *ids = NULL;
    char *text = NULL, (*numbers)[24] = calloc(yyjson_mut_arr_size(c->list), sizeof *numbers);
    peridot_message *messages = calloc(yyjson_mut_arr_size(c->list), sizeof *messages);
    peridot_chat chat = {.template_name = job->model->template_name, .messages = messages, .think = job->asks.think,
                         .limit = &limit};
    yyjson_mut_arr_foreach(c->list, i, n, each) {
        if (!numbers || !messages || is(each, "tool")) continue;
        snprintf(numbers[i], sizeof numbers[i], "q%zuq", i);
        const char *role = yyjson_mut_get_str(yyjson_mut_obj_get(each, "role"));
        messages[n_messages++] = (peridot_message){.role = role, .content = numbers[i]};
    }
    chat.n_messages = n_messages;
    if (numbers && messages && peridot_encode_turns(&ids, &n_ids, vocab, &chat) == PERIDOT_OK)
        peridot_decode(&text, size, vocab, ids, n_ids);
    peridot_free(ids);
    free(messages);
    free(numbers);
    return text;
}

bool serve_conversation_loses(const struct serve_conversation *c, struct serve_job *job, const peridot_vocab *vocab)
{
    size_t i, n = yyjson_mut_arr_size(c->list), size, n_late = 0;
    yyjson_mut_val *each;
    bool *late = calloc(n, sizeof *late);   /* and not found yet */
    if (!late) return false;
    yyjson_mut_arr_foreach(c->list, i, n, each)
        n_late += late[i] = i > 0 && (is(each, "system") || is(each, "developer"));
    char *text = n_late ? write_roles(&size, job, vocab, c) : NULL;
    for (char *at = text; at && (at = strchr(at, 'q')) != NULL; at++) {
        char *end;
        unsigned long long number = strtoull(at + 1, &end, 10);
        if (end == at + 1 || *end != 'q' || number >= n) continue;
        n_late -= late[number];
        late[number] = false;
        at = end;
    }
    bool loses = text && n_late > 0;
    peridot_free(text);
    free(late);
    return loses;
}
