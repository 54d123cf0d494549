/* The tools of peridot.h, and what of them goes into prompts: chat templates that have a format of calls get the list
 * and the calls of messages as they are; for others both become text of messages. */
#include "api/api.h"

#include "base/base.h"
#include "grammar/calls/calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool pd_tools_find_format(struct pd_calls *out, const peridot_vocab *vocab, const char *template_name)
{
    const struct pd_tokenizer *t = vocab->tokenizer;
    peridot_template_origin origin;
    const char *program = pd_tokenizer_tools_program(t, template_name);
    const char *name = template_name ? template_name : pd_tokenizer_template(&origin, t);
    out->format = program ? pd_call_format_of_template(program, strlen(program)) : NULL;
    out->marks = out->format ? pd_api_call_marks(vocab) : 0;
    if (out->format) return true;
    out->format = pd_call_format_find(name && strcmp(name, "gemma") == 0 ? "gemma3" : "generic");
    return false;
}

peridot_status pd_tools_read(yyjson_doc **doc, struct pd_calls *calls, const char *json, size_t size)
{
    *doc = NULL;
    PD_TRY(pd_json_read(doc, (const uint8_t *)json, size));
    calls->tools = yyjson_doc_get_root(*doc);
    peridot_status status = pd_calls_check(calls);
    if (status == PERIDOT_OK) return status;
    yyjson_doc_free(*doc);
    *doc = NULL;
    return status == PERIDOT_ERROR_FORMAT ? pd_fail(PERIDOT_ERROR_ARGUMENT, "%s", pd_error()) : status;
}

/* ---- the handle ---- */

int pd_tools_find_mark(const struct peridot_tools *t, int32_t token)
{
    for (int i = 0; i < PD_N_CALL_MARKS; i++)
        if (t->marks[i] == token) return i;
    return -1;
}

static peridot_status tools_create(struct peridot_tools *t, const peridot_vocab *vocab, const peridot_tools_params *p)
{
    pd_tools_find_format(&t->calls, vocab, p->template_name);
    for (size_t i = 0; i < PD_N_CALL_MARKS; i++)
        t->marks[i] = t->calls.marks >> i & 1 ? pd_tokenizer_find_control(vocab->tokenizer, pd_call_mark(i)) : -1;
    t->calls.choice = p->choice == PERIDOT_TOOLS_REQUIRED ? PD_CALL_REQUIRED : PD_CALL_AUTO;
    t->calls.parallel = !p->single;
    t->calls.effort = p->effort;
    t->calls.loosened = p->loosen ? &t->loosened : NULL;
    if (p->name) {
        t->calls.name = t->name = pd_string_copy(p->name);
        if (!t->name) return pd_fail_alloc(strlen(p->name), "the name of a function");
    }
    PD_TRY(pd_tools_read(&t->doc, &t->calls, p->json, p->json_size));
    t->calls.answer = p->schema;
    t->calls.answer_size = p->schema_size;
    peridot_status status = pd_api_grammar_calls(&t->grammar, vocab, &t->calls);
    t->calls.answer = NULL;   /* the program's */
    return status == PERIDOT_OK ? pd_buffer_end(&t->loosened) : status;
}

peridot_status peridot_tools_create(peridot_tools **out, const peridot_vocab *vocab, const peridot_tools_params *params)
{
    peridot_tools_params known;
    *out = NULL;
    PD_TRY(PD_PARAMS_READ(known, params));
    if (!vocab) return pd_fail(PERIDOT_ERROR_ARGUMENT, "no vocabulary was given");
    if (!known.json) return pd_fail(PERIDOT_ERROR_ARGUMENT, "no functions were given");
    struct peridot_tools *t = calloc(1, sizeof *t);
    if (!t) return pd_fail_alloc(sizeof *t, "tools");
    peridot_status status = tools_create(t, vocab, &known);
    if (status == PERIDOT_OK) *out = t;
    else peridot_tools_free(t);
    return status;
}

peridot_tools *peridot_tools_ref(const peridot_tools *tools)
{
    peridot_tools *shared = (peridot_tools *)tools;   /* but for its count it is as it was */
    if (shared) pd_refs_add(&shared->refs);
    return shared;
}

void peridot_tools_free(peridot_tools *tools)
{
    if (!tools || !pd_refs_drop(&tools->refs)) return;
    pd_grammar_free(tools->grammar);
    yyjson_doc_free(tools->doc);
    free(tools->name);
    free(tools->loosened.data);
    free(tools);
}

const char *peridot_tools_loosened(const peridot_tools *tools) { return tools ? tools->loosened.data : ""; }

/* ---- text of messages ---- */

static peridot_status fail_memory(void) { return pd_fail_alloc(sizeof(yyjson_mut_val), "messages"); }

static const char *member(yyjson_mut_val *message, const char *name)
{
    const char *text = yyjson_mut_get_str(yyjson_mut_obj_get(message, name));
    return text ? text : "";
}

static bool has_role(yyjson_mut_val *message, const char *role)
{
    return message && yyjson_mut_equals_str(yyjson_mut_obj_get(message, "role"), role);
}

/* The message's content becomes what the buffer holds, which is emptied. */
static peridot_status set_content(struct pd_messages *m, yyjson_mut_val *message, struct pd_buffer *text)
{
    yyjson_mut_val *value = yyjson_mut_strncpy(m->doc, text->data, text->size);
    text->size = 0;
    return yyjson_mut_obj_put(message, yyjson_mut_str(m->doc, "content"), value) && value ? PERIDOT_OK : fail_memory();
}

static peridot_status write_calls(struct pd_buffer *out, yyjson_mut_val *list, const struct pd_calls *c)
{
    size_t i, n = yyjson_mut_arr_size(list), n_unused;
    struct pd_call *calls = calloc(n + 1, sizeof *calls);
    yyjson_doc *copy = yyjson_mut_val_imut_copy(list, NULL);
    peridot_status status = calls && copy ? PERIDOT_OK : fail_memory();
    yyjson_val *call;
    yyjson_arr_foreach(yyjson_doc_get_root(copy), i, n_unused, call) {
        yyjson_val *function = yyjson_obj_get(call, "function");
        if (status == PERIDOT_OK)
            calls[i] = (struct pd_call){yyjson_get_str(yyjson_obj_get(function, "name")),
                                        yyjson_obj_get(function, "arguments")};
    }
    if (status == PERIDOT_OK) status = pd_calls_write(out, c, calls, n);
    yyjson_doc_free(copy);
    free(calls);
    return status;
}

/* What texts are made in. */
struct writer {
    struct pd_messages *m;
    const struct pd_calls *calls;
    const struct pd_tokenizer *tokenizer;   /* whose control tokens the calls have; NULL: they have none */
    struct pd_buffer part, text;
    yyjson_mut_val *results;       /* the user's message that `run` is to be the content of; NULL: there is none */
    struct pd_buffer run;     /* the results of the last calls, and what the user said then: */
    yyjson_mut_val *parts;         /* what is before it, where there are images; NULL: there are none */
};

/* The text with its control tokens as messages have them. */
static peridot_status append_marked(struct writer *w, const struct pd_buffer *from)
{
    char marked[sizeof w->m->mark + PD_MARKED_ID];
    for (size_t i = 0; i < from->size; i++) {
        const char *name = pd_call_mark(pd_call_mark_index(w->calls->marks, from->data[i]));
        int32_t id = name && w->tokenizer ? pd_tokenizer_find_control(w->tokenizer, name) : -1;
        if (id < 0) PD_TRY(pd_buffer_add(&w->text, &from->data[i], 1));
        else PD_TRY(pd_buffer_add(&w->text, marked, (size_t)snprintf(marked, sizeof marked, "%s%0*x", w->m->mark,
                                                                     PD_MARKED_ID, (unsigned)id)));
    }
    return PERIDOT_OK;
}

/* The part behind a text, if that is not empty, with a blank line between them. */
static peridot_status append_after(struct writer *w, const char *first)
{
    PD_TRY(pd_buffer_add(&w->text, first, strlen(first)));
    if (*first) PD_TRY(pd_buffer_add(&w->text, "\n\n", 2));
    return append_marked(w, &w->part);
}

static peridot_status write_reply(struct writer *w, yyjson_mut_val *message)
{
    yyjson_mut_val *calls = yyjson_mut_obj_get(message, "tool_calls");
    if (!calls) return PERIDOT_OK;
    w->part.size = 0;
    PD_TRY(write_calls(&w->part, calls, w->calls));
    PD_TRY(append_after(w, member(message, "content")));
    yyjson_mut_obj_remove_key(message, "tool_calls");
    return set_content(w->m, message, &w->text);
}

static peridot_status add_part(struct writer *w, const char *type)
{
    yyjson_mut_val *part = yyjson_mut_arr_add_obj(w->m->doc, w->parts);
    bool good = part && yyjson_mut_obj_add_str(w->m->doc, part, "type", type);
    if (good && w->run.size) good = yyjson_mut_obj_add_strncpy(w->m->doc, part, "text", w->run.data, w->run.size);
    w->run.size = 0;
    return good ? PERIDOT_OK : fail_memory();
}

static peridot_status end_results(struct writer *w)
{
    yyjson_mut_val *results = w->results, *parts = w->parts;
    w->results = NULL;
    if (!results || !parts) return results ? set_content(w->m, results, &w->run) : PERIDOT_OK;
    if (w->run.size) PD_TRY(add_part(w, "text"));
    w->parts = NULL;
    return yyjson_mut_obj_put(results, yyjson_mut_str(w->m->doc, "content"), parts) ? PERIDOT_OK : fail_memory();
}

static bool is_image(yyjson_mut_val *part) { return yyjson_mut_equals_str(yyjson_mut_obj_get(part, "type"), "image"); }

static peridot_status append_text(struct pd_buffer *out, yyjson_mut_val *object, const char *name)
{
    return pd_buffer_add(out, member(object, name), strlen(member(object, name)));
}

static peridot_status append_image(struct writer *w)
{
    if (!w->parts) w->parts = yyjson_mut_arr(w->m->doc);
    if (w->run.size) PD_TRY(add_part(w, "text"));
    return add_part(w, "image");
}

/* Its images come after a result's text, and stay where they are in what the user said. */
static peridot_status write_result(struct writer *w, yyjson_mut_val *message)
{
    yyjson_mut_val *parts = yyjson_mut_obj_get(message, "content"), *part;
    bool result = has_role(message, "tool");
    struct pd_buffer *text = result ? &w->part : &w->run;
    size_t i, n;
    w->part.size = 0;
    if (w->run.size) PD_TRY(pd_buffer_add(&w->run, "\n\n", 2));
    PD_TRY(append_text(text, message, "content"));   /* nothing, where it is parts */
    yyjson_mut_arr_foreach(parts, i, n, part) {
        if (!is_image(part)) PD_TRY(append_text(text, part, "text"));
        else if (!result) PD_TRY(append_image(w));
    }
    if (!result) return PERIDOT_OK;
    PD_TRY(pd_calls_write_result(&w->run, w->calls, member(message, "name"), text->size ? text->data : "", text->size));
    yyjson_mut_arr_foreach(parts, i, n, part) {
        if (is_image(part)) PD_TRY(append_image(w));
    }
    return PERIDOT_OK;
}

/* Results, and what the user says after them, are one message: many templates want the user's turns and the model's to
 * alternate. */
static peridot_status write_all(struct writer *w)
{
    for (size_t n = yyjson_mut_arr_size(w->m->list); n > 0; n--) {   /* around the list once */
        yyjson_mut_val *message = yyjson_mut_arr_remove_first(w->m->list);
        bool result = has_role(message, "tool"), goes_on = result || (w->results && has_role(message, "user"));
        if (!goes_on || !w->results) yyjson_mut_arr_append(w->m->list, message);
        if (!goes_on) {
            PD_TRY(end_results(w));
            if (has_role(message, "assistant")) PD_TRY(write_reply(w, message));
            continue;
        }
        PD_TRY(write_result(w, message));
        if (!w->results) w->results = message;
        yyjson_mut_set_str(yyjson_mut_obj_get(w->results, "role"), "user");
        if (!result) PD_TRY(end_results(w));
    }
    return end_results(w);
}

/* The first message, where it is the system's, else a new one before it. */
static yyjson_mut_val *system_message(struct pd_messages *m)
{
    yyjson_mut_val *first = yyjson_mut_arr_get_first(m->list);
    if (has_role(first, "system") || has_role(first, "developer")) return first;
    first = yyjson_mut_obj(m->doc);
    bool good = first && yyjson_mut_obj_add_str(m->doc, first, "role", "system") &&
                yyjson_mut_obj_add_str(m->doc, first, "content", "") && yyjson_mut_arr_prepend(m->list, first);
    return good ? first : NULL;
}

static yyjson_mut_val *user_message(struct pd_messages *m)
{
    size_t i, n;
    yyjson_mut_val *message;
    yyjson_mut_arr_foreach(m->list, i, n, message) {
        if (has_role(message, "user")) return message;
    }
    return NULL;
}

/* The part before what the user says first. */
static peridot_status describe_to_user(struct writer *w, yyjson_mut_val *message)
{
    yyjson_mut_val *content = yyjson_mut_obj_get(message, "content"), *part;
    PD_TRY(append_marked(w, &w->part));
    PD_TRY(pd_buffer_add(&w->text, "\n\n", 2));
    if (!yyjson_mut_is_arr(content)) {
        PD_TRY(append_text(&w->text, message, "content"));
        return set_content(w->m, message, &w->text);
    }
    part = yyjson_mut_obj(w->m->doc);
    bool good = yyjson_mut_obj_add_str(w->m->doc, part, "type", "text") &&
                yyjson_mut_obj_add_strncpy(w->m->doc, part, "text", w->text.data, w->text.size) &&
                yyjson_mut_arr_prepend(content, part);
    w->text.size = 0;
    return good ? PERIDOT_OK : fail_memory();
}

static peridot_status describe(struct writer *w)
{
    yyjson_mut_val *user = w->m->no_system ? user_message(w->m) : NULL, *first = user ? user : system_message(w->m);
    w->part.size = 0;
    PD_TRY(pd_calls_describe(&w->part, w->calls));
    if (!first) return fail_memory();
    if (user) return describe_to_user(w, user);
    PD_TRY(append_after(w, member(first, "content")));
    return set_content(w->m, first, &w->text);
}

static peridot_status put_tools(struct writer *w)
{
    yyjson_mut_val *first = system_message(w->m);
    PD_TRY(pd_calls_list(&w->text, w->calls));
    bool good = first && yyjson_mut_obj_add_strncpy(w->m->doc, first, "tools", w->text.data, w->text.size);
    return good ? PERIDOT_OK : fail_memory();
}

static peridot_status write_replies(struct writer *w)
{
    yyjson_mut_val *message;
    size_t i, n;
    yyjson_mut_arr_foreach(w->m->list, i, n, message) PD_TRY(write_reply(w, message));
    return PERIDOT_OK;
}

static void writer_free(struct writer *w)
{
    free(w->part.data);
    free(w->text.data);
    free(w->run.data);
}

peridot_status pd_tools_suit_template(struct pd_messages *m, const struct pd_calls *calls,
                                      const struct pd_tokenizer *t, const char *program)
{
    struct writer w = {.m = m, .calls = calls, .tokenizer = t};
    peridot_status status = strstr(program, "tool_calls") ? PERIDOT_OK : write_replies(&w);
    if (status == PERIDOT_OK && calls->tools && calls->format->in_system) status = put_tools(&w);
    else if (status == PERIDOT_OK && calls->tools && !pd_tokenizer_reads_tools(t)) status = describe(&w);
    writer_free(&w);
    return status;
}

peridot_status pd_tools_write_messages(struct pd_messages *m, const struct pd_calls *calls)
{
    struct writer w = {.m = m, .calls = calls};
    peridot_status status = write_all(&w);
    if (status == PERIDOT_OK && calls->tools) status = describe(&w);
    m->has_calls = false;
    writer_free(&w);
    return status;
}
