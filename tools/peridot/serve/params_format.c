#include "param.h"

#include <stdlib.h>
#include <string.h>

/* It is compiled when the tasks are made. A body may have several: the last one counts. */
static bool set_schema(struct serve_job *job, yyjson_val *schema)
{
    free(job->schema);
    job->schema = yyjson_val_write(schema, 0, NULL);
    return job->schema || serve_refuse(&job->error, 500, NULL, NULL, "out of memory");
}

/* The schema, wherever clients put it. */
bool serve_read_format(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    yyjson_val *type = yyjson_obj_get(value, "type"), *nested = yyjson_obj_get(value, "json_schema");
    if (nested && !yyjson_is_null(nested) && !yyjson_is_obj(nested))
        return serve_param_refuse(job, p, "has a json_schema that is not an object");
    if (yyjson_equals_str(type, "text")) return true;
    if (yyjson_equals_str(type, "json_object")) job->json = true;
    else if (!yyjson_equals_str(type, "json_schema"))
        return serve_param_refuse(job, p, "must be of type text, json_object or json_schema");
    yyjson_val *schema = yyjson_obj_get(nested, "schema");
    if (!schema || yyjson_is_null(schema)) schema = yyjson_obj_get(value, "schema");
    if (!schema || yyjson_is_null(schema))
        return job->json ? true : serve_param_refuse(job, p, "has the type json_schema but no schema");
    return set_schema(job, schema);
}

/* What else there is, as verbosity, is no matter of its form. */
bool serve_read_text_format(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    size_t i, n;
    yyjson_val *key, *each;
    if (!yyjson_is_obj(value)) return serve_param_refuse(job, p, "must be an object");
    yyjson_obj_foreach(value, i, n, key, each) {
        if (yyjson_is_null(each)) continue;
        if (!yyjson_equals_str(key, "format")) serve_param_ignore(job, yyjson_get_str(key));
        else if (!serve_read_format(job, p, each)) return false;
    }
    return true;
}

/* Anthropic's has an effort beside the format. */
bool serve_read_output_config(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    return serve_read_text_format(job, p, value);
}

bool serve_read_ollama_format(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    if (yyjson_is_obj(value)) return set_schema(job, value);
    job->json = yyjson_equals_str(value, "json");
    return job->json || yyjson_equals_str(value, "") || serve_param_refuse(job, p, "must be json or a schema");
}
