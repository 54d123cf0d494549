#include "wire_.h"
#include "../job/job.h"

#include <stdlib.h>
#include <string.h>

/* ---- OpenAI's, and Ollama's ---- */

/* A list that is written: its functions are looked at by the library. */
struct list {
    struct serve_job *job;
    const struct serve_param *p;
    yyjson_mut_doc *doc;
    size_t budget;             /* of grammars: SERVE_LARK_BUDGET */
};

static bool add_function(struct list *l, yyjson_val *tool)
{
    yyjson_val *function = yyjson_obj_get(tool, "function");
    if (!yyjson_is_str(yyjson_obj_get(function ? function : tool, "name")))
        return serve_param_refuse(l->job, l->p, "has a function without a name");
    return yyjson_mut_arr_append(yyjson_mut_doc_get_root(l->doc), yyjson_val_mut_copy(l->doc, tool))
        || serve_refuse_memory(l->job);
}

/* What a custom tool's text must be. The model is told the grammar as it is given. */
static bool add_grammar(struct list *l, yyjson_mut_val *input, yyjson_val *format)
{
    yyjson_val *inner = yyjson_obj_get(format, "grammar"), *from = inner ? inner : format,
               *definition = yyjson_obj_get(from, "definition"), *syntax = yyjson_obj_get(from, "syntax");
    char *pattern = yyjson_is_str(definition) ? malloc(SERVE_LARK_MAX) : NULL;
    if (yyjson_is_str(definition) && (!pattern || !yyjson_mut_obj_add_val(l->doc, input, "description",
                                                                          yyjson_val_mut_copy(l->doc, definition)))) {
        free(pattern);
        return serve_refuse_memory(l->job);
    }
    bool (*read)(char *, size_t *, const char *, size_t) = yyjson_equals_str(syntax, "lark") ? serve_lark_pattern
        : yyjson_equals_str(syntax, "regex") ? serve_regex_pattern : NULL;
    bool good = true;
    if (pattern && read && read(pattern, &l->budget, yyjson_get_str(definition), yyjson_get_len(definition)))
        good = yyjson_mut_obj_add_strcpy(l->doc, input, "pattern", pattern) || serve_refuse_memory(l->job);
    else
        serve_param_ignore(l->job, "tools.format");
    free(pattern);
    return good;
}

/* A tool that takes a text is a function with one, and answers name it as the text. */
static bool add_custom(struct list *l, yyjson_val *tool)
{
    yyjson_val *inner = yyjson_obj_get(tool, "custom"), *from = inner ? inner : tool,
               *description = yyjson_obj_get(from, "description"), *format = yyjson_obj_get(from, "format");
    const char *name = serve_param_text(l->job, l->p->name, yyjson_obj_get(from, "name"));
    if (!name) return false;
    yyjson_mut_val *o = yyjson_mut_arr_add_obj(l->doc, yyjson_mut_doc_get_root(l->doc)),
                   *function = yyjson_mut_obj_add_obj(l->doc, o, "function"),
                   *parameters, *input;
    bool good = yyjson_mut_obj_add_str(l->doc, o, "type", "function")
        && yyjson_mut_obj_add_str(l->doc, function, "name", name)
        && (!yyjson_is_str(description)
            || yyjson_mut_obj_add_val(l->doc, function, "description", yyjson_val_mut_copy(l->doc, description)))
        && (parameters = yyjson_mut_obj_add_obj(l->doc, function, "parameters")) != NULL
        && yyjson_mut_obj_add_str(l->doc, parameters, "type", "object")
        && (input = yyjson_mut_obj_add_obj(l->doc, yyjson_mut_obj_add_obj(l->doc, parameters, "properties"), "input"))
            != NULL
        && yyjson_mut_obj_add_str(l->doc, input, "type", "string")
        && yyjson_mut_arr_add_str(l->doc, yyjson_mut_obj_add_arr(l->doc, parameters, "required"), "input")
        && yyjson_mut_obj_add_bool(l->doc, parameters, "additionalProperties", false);
    if (!good) return serve_refuse_memory(l->job);
    return !yyjson_is_obj(format) || yyjson_equals_str(yyjson_obj_get(format, "type"), "text")
        || add_grammar(l, input, format);
}

/* The server's own tools, which it does not have, are left out. */
static bool add_tool_of_type(struct list *l, yyjson_val *tool)
{
    yyjson_val *type = yyjson_obj_get(tool, "type");
    if (!yyjson_is_str(type) || yyjson_equals_str(type, "function")) return add_function(l, tool);
    if (yyjson_equals_str(type, "custom")) return add_custom(l, tool);
    serve_param_ignore(l->job, yyjson_get_str(type));
    return true;
}

/* A namespace has no others in it. */
static bool add_all(struct list *l, yyjson_val *tools)
{
    size_t i, n, k, n_inner;
    yyjson_val *each, *inner;
    yyjson_arr_foreach(tools, i, n, each) {
        bool nested = yyjson_equals_str(yyjson_obj_get(each, "type"), "namespace");
        if (!nested && !add_tool_of_type(l, each)) return false;
        yyjson_arr_foreach(nested ? yyjson_obj_get(each, "tools") : NULL, k, n_inner, inner) {
            if (!add_tool_of_type(l, inner)) return false;
        }
    }
    return true;
}

bool serve_read_tools(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    struct list l = {.job = job, .p = p, .budget = SERVE_LARK_BUDGET};
    if (!yyjson_is_arr(value)) return serve_param_refuse(job, p, "must be a list of functions");
    l.doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_doc_set_root(l.doc, yyjson_mut_arr(l.doc));
    bool good = (l.doc || serve_refuse_memory(job)) && add_all(&l, value);
    if (good && yyjson_mut_arr_size(yyjson_mut_doc_get_root(l.doc))) {
        job->asks.tools = yyjson_mut_write(l.doc, 0, NULL);
        good = job->asks.tools || serve_refuse_memory(job);
    }
    yyjson_mut_doc_free(l.doc);
    return good;
}

static bool name_function(struct serve_job *job, const struct serve_param *p, yyjson_val *name)
{
    job->asks.tool_name = serve_param_text(job, p->name, name);
    job->asks.calls_required = job->asks.single_call = true;
    return job->asks.tool_name != NULL;
}

/* Whether a tool of the request is of that type. NULL is none. */
static bool has_type(const struct serve_job *job, const char *type)
{
    size_t i, n;
    yyjson_val *each, *tools = yyjson_obj_get(yyjson_doc_get_root(job->asks.document), "tools");
    bool has = false;
    yyjson_arr_foreach(tools, i, n, each) has = has || (type && yyjson_equals_str(yyjson_obj_get(each, "type"), type));
    return has;
}

/* {"type": "allowed_tools", "mode": "auto" or "required", "tools": [...]}, or with an inner object of the two. */
static bool read_allowed(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    yyjson_val *inner = yyjson_obj_get(value, "allowed_tools"), *from = inner ? inner : value,
               *mode = yyjson_obj_get(from, "mode");
    job->asks.allowed = yyjson_obj_get(from, "tools");
    job->asks.calls_required = yyjson_equals_str(mode, "required");
    if (!yyjson_is_arr(job->asks.allowed))
        return serve_param_refuse(job, p, "has allowed_tools without a list of tools");
    return job->asks.calls_required || yyjson_equals_str(mode, "auto")
        || serve_param_refuse(job, p, "has allowed_tools whose mode is not auto or required");
}

/* A function by its name is {"type": "function", "function": {"name": ...}}, or without the inner object. */
bool serve_read_tool_choice(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    yyjson_val *type = yyjson_obj_get(value, "type");
    bool custom = yyjson_equals_str(type, "custom");
    yyjson_val *inner = yyjson_obj_get(value, custom ? "custom" : "function");
    if (custom || yyjson_equals_str(type, "function"))
        return name_function(job, p, yyjson_obj_get(inner ? inner : value, "name"));
    if (yyjson_equals_str(type, "allowed_tools")) return read_allowed(job, p, value);
    if (has_type(job, yyjson_get_str(type))) {   /* of a tool that is left out */
        serve_param_ignore(job, p->name);
        return true;
    }
    job->asks.calls_none = yyjson_equals_str(value, "none");
    job->asks.calls_required = yyjson_equals_str(value, "required");
    return job->asks.calls_none || job->asks.calls_required || yyjson_equals_str(value, "auto")
        || serve_param_refuse(job, p, "must be none, auto, required or a function's name");
}

bool serve_read_parallel(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    if (!yyjson_is_bool(value)) return serve_param_refuse(job, p, "must be true or false");
    job->asks.single_call = job->asks.single_call || !yyjson_get_bool(value);
    return true;
}

/* ---- Anthropic's ---- */

/* {"name": ..., "description": ..., "input_schema": ...} as {"name": ..., "description": ..., "parameters": ...} */
bool serve_add_anthropic_tool(yyjson_mut_doc *doc, yyjson_mut_val *list, yyjson_val *tool)
{
    static const char *const members[][2] = {
        {"name", "name"}, {"description", "description"}, {"input_schema", "parameters"}};
    yyjson_mut_val *o = yyjson_mut_arr_add_obj(doc, list);
    bool good = o != NULL;
    for (size_t i = 0; i < PD_COUNT(members); i++) {
        yyjson_val *value = yyjson_obj_get(tool, members[i][0]);
        good = good && (!value || yyjson_mut_obj_add_val(doc, o, members[i][1], yyjson_val_mut_copy(doc, value)));
    }
    return good;
}

/* The server's own, which it does not have. */
static bool is_own(yyjson_val *tool)
{
    yyjson_val *type = yyjson_obj_get(tool, "type");
    return yyjson_is_str(type) && !yyjson_equals_str(type, "custom");
}

/* Those that are not left out; without `deferred`, those that the prompt begins with. */
static bool write_tools(char **out, struct serve_job *job, yyjson_val *tools, bool deferred)
{
    size_t i, n;
    yyjson_val *each;
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    bool good = list != NULL;
    yyjson_mut_doc_set_root(doc, list);
    yyjson_arr_foreach(tools, i, n, each) {
        if (is_own(each)) serve_param_ignore(job, yyjson_get_str(yyjson_obj_get(each, "type")));
        else if (deferred || !yyjson_is_true(yyjson_obj_get(each, "defer_loading")))
            good = good && serve_add_anthropic_tool(doc, list, each);
    }
    if (good && yyjson_mut_arr_size(list)) *out = yyjson_mut_write(doc, 0, NULL);
    good = good && (*out || !yyjson_mut_arr_size(list));
    yyjson_mut_doc_free(doc);
    return good || serve_refuse_memory(job);
}

/* Tools that are deferred can be called, but the prompt tells of them only where a result refers to them: what comes
 * before is as it was, and in the cache. */
bool serve_read_anthropic_tools(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    size_t i, n;
    yyjson_val *each;
    bool defers = false;
    if (!yyjson_is_arr(value)) return serve_param_refuse(job, p, "must be a list of tools");
    yyjson_arr_foreach(value, i, n, each) defers = defers || yyjson_is_true(yyjson_obj_get(each, "defer_loading"));
    if (!write_tools(&job->asks.tools, job, value, true)) return false;
    return !defers || write_tools(&job->asks.shown, job, value, false);
}

bool serve_read_anthropic_choice(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    yyjson_val *type = yyjson_obj_get(value, "type"), *single = yyjson_obj_get(value, "disable_parallel_tool_use");
    if (single && !yyjson_is_null(single) && !yyjson_is_bool(single))
        return serve_param_refuse(job, p, "has a disable_parallel_tool_use that is not true or false");
    job->asks.single_call = yyjson_is_true(single);
    if (yyjson_equals_str(type, "tool")) return name_function(job, p, yyjson_obj_get(value, "name"));
    job->asks.calls_none = yyjson_equals_str(type, "none");
    job->asks.calls_required = yyjson_equals_str(type, "any");
    return job->asks.calls_none || job->asks.calls_required || yyjson_equals_str(type, "auto")
        || serve_param_refuse(job, p, "must be of type none, auto, any or tool");
}

/* ---- all of them ---- */

/* As OpenAI's interfaces name one: {"name": ...}, or {TYPE: {"name": ...}}. */
static yyjson_val *name_of(yyjson_val *tool)
{
    yyjson_val *inner = yyjson_obj_get(tool, "function");
    if (!inner) inner = yyjson_obj_get(tool, "custom");
    return yyjson_obj_get(inner ? inner : tool, "name");
}

static yyjson_val *tool_named(yyjson_val *tools, const char *name)
{
    size_t i, n;
    yyjson_val *each;
    yyjson_arr_foreach(tools, i, n, each) {
        if (yyjson_equals_str(name_of(each), name)) return each;
    }
    return NULL;
}

/* The tool in the request's list, or in a namespace of it, whose name *space is then. */
static yyjson_val *tool_of(yyjson_val **space, const struct serve_job *job, const struct serve_call *call)
{
    size_t i, n;
    yyjson_val *each, *all = yyjson_obj_get(yyjson_doc_get_root(job->asks.document), "tools");
    *space = NULL;
    yyjson_arr_foreach(all, i, n, each) {
        bool nested = yyjson_equals_str(yyjson_obj_get(each, "type"), "namespace");
        yyjson_val *found = nested ? tool_named(yyjson_obj_get(each, "tools"), call->name) : NULL;
        if (found) *space = yyjson_obj_get(each, "name");
        if (found) return found;
        if (!nested && yyjson_equals_str(name_of(each), call->name)) return each;
    }
    return NULL;
}

yyjson_val *serve_namespace(const struct serve_job *job, const struct serve_call *call)
{
    yyjson_val *space;
    tool_of(&space, job, call);
    return space;
}

bool serve_is_custom(const struct serve_job *job, const struct serve_call *call)
{
    yyjson_val *space;
    return yyjson_equals_str(yyjson_obj_get(tool_of(&space, job, call), "type"), "custom");
}

yyjson_mut_val *serve_custom_input(yyjson_mut_doc *doc, const struct serve_call *call)
{
    yyjson_doc *arguments = yyjson_read(call->arguments.data, call->arguments.size, 0);
    yyjson_val *input = yyjson_obj_get(yyjson_doc_get_root(arguments), "input");
    yyjson_mut_val *text = yyjson_is_str(input) ? yyjson_val_mut_copy(doc, input)
                                                : serve_text(doc, call->arguments.data, call->arguments.size);
    yyjson_doc_free(arguments);
    return text;
}

/* Of the tools that may be called those that tool_choice allows; the prompt tells of all. */
static bool keep_allowed(struct serve_job *job)
{
    yyjson_doc *all = yyjson_read(job->asks.tools, strlen(job->asks.tools), 0);
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    size_t i, n;
    yyjson_val *each;
    bool good = all && list;
    yyjson_mut_doc_set_root(doc, list);
    yyjson_arr_foreach(yyjson_doc_get_root(all), i, n, each) {
        const char *name = yyjson_get_str(name_of(each));
        if (name && tool_named(job->asks.allowed, name))
            good = good && yyjson_mut_arr_append(list, yyjson_val_mut_copy(doc, each));
    }
    bool none = good && !yyjson_mut_arr_size(list);
    char *kept = good && !none ? yyjson_mut_write(doc, 0, NULL) : NULL;
    yyjson_mut_doc_free(doc);
    yyjson_doc_free(all);
    if (none)
        return serve_refuse(&job->error, 400, "invalid_value", "tool_choice", "tool_choice allows none of the tools");
    if (!kept) return serve_refuse_memory(job);
    job->asks.shown = job->asks.tools;
    job->asks.tools = kept;
    return true;
}

/* Whether tool_choice wants a tool that was left out. */
static bool wants_own(const struct serve_job *job)
{
    size_t i, n;
    yyjson_val *each, *tools = yyjson_obj_get(yyjson_doc_get_root(job->asks.document), "tools");
    const char *name = job->asks.tool_name;
    bool wants = false;
    yyjson_arr_foreach(tools, i, n, each) {
        yyjson_val *type = yyjson_obj_get(each, "type");
        bool own = yyjson_is_str(type) && !yyjson_equals_str(type, "function") && !yyjson_equals_str(type, "custom");
        wants = wants || (own && (name ? yyjson_equals_str(yyjson_obj_get(each, "name"), name) : !job->asks.tools));
    }
    return wants;
}

bool serve_check_tools(struct serve_job *job)
{
    if (job->asks.calls_required && wants_own(job)) {
        job->asks.calls_required = false;
        job->asks.tool_name = NULL;
        serve_param_ignore(job, "tool_choice");
    }
    if (job->asks.calls_required && !job->asks.tools)
        return serve_refuse(&job->error, 400, "invalid_value", "tool_choice", "tool_choice needs tools");
    if (job->asks.allowed && job->asks.tools && !keep_allowed(job)) return false;
    if (job->asks.calls_none) {
        if (!job->asks.shown) job->asks.shown = job->asks.tools;
        else free(job->asks.tools);
        job->asks.tools = NULL;
    }
    return true;
}
