#include "param.h"
#include "wire.h"

#include <stdlib.h>
#include <string.h>

static bool refuse_memory(struct serve_job *job)
{
    return serve_refuse(&job->error, 500, NULL, NULL, "out of memory");
}

/* ---- OpenAI's, and Ollama's ---- */

/* The library looks at the rest. */
bool serve_read_tools(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    size_t i, n;
    yyjson_val *each;
    if (!yyjson_is_arr(value)) return serve_param_refuse(job, p, "must be a list of functions");
    yyjson_arr_foreach(value, i, n, each) {
        yyjson_val *function = yyjson_obj_get(each, "function"), *type = yyjson_obj_get(each, "type");
        if (yyjson_is_str(type) && !yyjson_equals_str(type, "function"))
            return serve_refuse(&job->error, 400, "unsupported_parameter", p->name,
                                "%s has a tool of type %.32s: only functions are supported", p->name,
                                yyjson_get_str(type));
        if (!yyjson_is_str(yyjson_obj_get(function ? function : each, "name")))
            return serve_param_refuse(job, p, "has a function without a name");
    }
    if (yyjson_arr_size(value) == 0) return true;
    job->tools = yyjson_val_write(value, 0, NULL);
    return job->tools || refuse_memory(job);
}

static bool name_function(struct serve_job *job, const struct serve_param *p, yyjson_val *name)
{
    job->tool_name = serve_param_text(job, p->name, name);
    job->calls_required = job->single_call = true;
    return job->tool_name != NULL;
}

/* A function by its name is {"type": "function", "function": {"name": ...}}, or without the inner object. */
bool serve_read_tool_choice(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    yyjson_val *function = yyjson_obj_get(value, "function");
    if (yyjson_equals_str(yyjson_obj_get(value, "type"), "function"))
        return name_function(job, p, yyjson_obj_get(function ? function : value, "name"));
    job->calls_none = yyjson_equals_str(value, "none");
    job->calls_required = yyjson_equals_str(value, "required");
    return job->calls_none || job->calls_required || yyjson_equals_str(value, "auto")
        || serve_param_refuse(job, p, "must be none, auto, required or a function's name");
}

bool serve_read_parallel(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    if (!yyjson_is_bool(value)) return serve_param_refuse(job, p, "must be true or false");
    job->single_call = job->single_call || !yyjson_get_bool(value);
    return true;
}

/* ---- Anthropic's ---- */

/* {"name": ..., "description": ..., "input_schema": ...} as {"name": ..., "description": ..., "parameters": ...} */
static bool add_tool(struct serve_job *job, const struct serve_param *p, yyjson_mut_doc *doc, yyjson_val *tool)
{
    static const char *const members[][2] = {
        {"name", "name"}, {"description", "description"}, {"input_schema", "parameters"}};
    yyjson_val *type = yyjson_obj_get(tool, "type");
    if (type && !yyjson_is_null(type) && !yyjson_equals_str(type, "custom"))
        return serve_param_refuse(job, p, "has a tool of the server's, which it does not have");
    yyjson_mut_val *o = yyjson_mut_arr_add_obj(doc, yyjson_mut_doc_get_root(doc));
    for (size_t i = 0; i < CMD_COUNT(members); i++) {
        yyjson_val *value = yyjson_obj_get(tool, members[i][0]);
        if (value && !yyjson_mut_obj_add_val(doc, o, members[i][1], yyjson_val_mut_copy(doc, value)))
            return refuse_memory(job);
    }
    return true;
}

bool serve_read_anthropic_tools(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    size_t i, n;
    yyjson_val *each;
    if (!yyjson_is_arr(value)) return serve_param_refuse(job, p, "must be a list of tools");
    if (yyjson_arr_size(value) == 0) return true;
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_doc_set_root(doc, yyjson_mut_arr(doc));
    bool good = doc || refuse_memory(job);
    yyjson_arr_foreach(value, i, n, each) good = good && add_tool(job, p, doc, each);
    if (good) job->tools = yyjson_mut_write(doc, 0, NULL);
    good = good && (job->tools || refuse_memory(job));
    yyjson_mut_doc_free(doc);
    return good;
}

bool serve_read_anthropic_choice(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    yyjson_val *type = yyjson_obj_get(value, "type"), *single = yyjson_obj_get(value, "disable_parallel_tool_use");
    if (single && !yyjson_is_null(single) && !yyjson_is_bool(single))
        return serve_param_refuse(job, p, "has a disable_parallel_tool_use that is not true or false");
    job->single_call = yyjson_is_true(single);
    if (yyjson_equals_str(type, "tool")) return name_function(job, p, yyjson_obj_get(value, "name"));
    job->calls_none = yyjson_equals_str(type, "none");
    job->calls_required = yyjson_equals_str(type, "any");
    return job->calls_none || job->calls_required || yyjson_equals_str(type, "auto")
        || serve_param_refuse(job, p, "must be of type none, auto, any or tool");
}

/* ---- all of them ---- */

bool serve_check_tools(struct serve_job *job)
{
    if (job->calls_required && !job->tools)
        return serve_refuse(&job->error, 400, "invalid_value", "tool_choice", "tool_choice needs tools");
    if (job->calls_none) {
        free(job->tools);
        job->tools = NULL;
    }
    return true;
}
