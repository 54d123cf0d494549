#include "text/program_messages.h"

#include "base/num.h"
#include "text/template/template.h"

#include <stdio.h>
#include <string.h>

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

static bool add_block(yyjson_mut_doc *doc, yyjson_mut_val *blocks, const char *type, const char *key,
                      yyjson_mut_val *text)
{
    yyjson_mut_val *block = yyjson_mut_arr_add_obj(doc, blocks);
    return block && yyjson_mut_obj_add_str(doc, block, "type", type) &&
           yyjson_mut_obj_add(block, yyjson_mut_str(doc, key), yyjson_mut_val_mut_copy(doc, text));
}

/* Mistral's programs read thoughts as a block of the content. */
static bool put_thoughts(struct pd_messages *m)
{
    bool good = true;
    yyjson_mut_val *message;
    size_t i, n;
    yyjson_mut_arr_foreach(m->list, i, n, message) {
        yyjson_mut_val *thought = yyjson_mut_obj_remove_key(message, "reasoning_content");
        yyjson_mut_val *content = yyjson_mut_obj_get(message, "content"), *blocks = yyjson_mut_arr(m->doc);
        if (!thought || !yyjson_mut_is_str(content)) continue;
        good = good && add_block(m->doc, blocks, "thinking", "thinking", thought) &&
               (!yyjson_mut_get_len(content) || add_block(m->doc, blocks, "text", "text", content)) &&
               yyjson_mut_obj_put(message, yyjson_mut_str(m->doc, "content"), blocks);
    }
    return good;
}

bool pd_program_suit_messages(struct pd_messages *m, const char *jinja)
{
    static const struct {
        const char *mark;
        bool mentions;             /* of the mark: programs of this want */
        bool (*apply)(struct pd_messages *m);
    } wants[] = {
        {"single tool-calls", true, split_calls}, {"developer", false, rename_developer},
        {"length != 9", true, shorten_ids}, {"['content'] is not none", true, empty_contents},
        {PD_THOUGHT_BLOCK, true, put_thoughts},
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
