#include "../job/job.h"
#include "wire_.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool serve_param_refuse(struct serve_job *job, const struct serve_param *p, const char *what)
{
    return serve_refuse(&job->error, 400, "invalid_value", p->name, "%s %s", p->name, what);
}

bool serve_param_refuse_range(struct serve_job *job, const struct serve_param *p)
{
    return serve_refuse(&job->error, 400, "invalid_value", p->name, "%s must be a %snumber from %.10g to %.10g",
                        p->name, p->max > 100 ? "whole " : "", p->min, p->max);
}

const char *serve_param_text(struct serve_job *job, const char *name, yyjson_val *value)
{
    const char *text = yyjson_get_str(value);
    if (text && strlen(text) == yyjson_get_len(value)) return text;
    serve_refuse_type(&job->error, name, text ? "contains a NUL character" : "must be a string");
    return NULL;
}

bool serve_param_whole(double *out, const struct serve_param *p, yyjson_val *value)
{
    *out = yyjson_get_num(value);
    return yyjson_is_num(value) && *out >= p->min && *out <= p->max && floor(*out) == *out;
}

void serve_param_ignore(struct serve_job *job, const char *name)
{
    if (!*name) name = "?";   /* a name must be found below */
    char text[64], *at = job->asks.ignored;
    size_t size = strlen(at), n = strlen(name);
    if (n >= sizeof text) n = sizeof text - 1;
    for (size_t i = 0; i < n; i++)
        text[i] = name[i] < 32 || name[i] > 126 || strchr("\"\\,", name[i]) ? '?' : name[i];
    text[n] = 0;
    serve_log_ignored(job->server, text);
    while ((at = strstr(at, text)) != NULL) {
        bool whole = (at == job->asks.ignored || at[-1] == ' ') && (at[n] == ',' || !at[n]);
        if (whole) return;
        at++;
    }
    if (size + n + 3 < sizeof job->asks.ignored)
        snprintf(job->asks.ignored + size, sizeof job->asks.ignored - size, "%s%s", size ? ", " : "", text);
}

bool serve_param_member(struct serve_job *job, const struct serve_param *p, yyjson_val *value,
                        struct serve_member member)
{
    size_t i, n;
    yyjson_val *key, *each;
    if (!yyjson_is_obj(value)) return serve_param_refuse(job, p, "must be an object");
    yyjson_obj_foreach(value, i, n, key, each) {
        if (!yyjson_equals_str(key, member.name))
            return serve_refuse(&job->error, 400, "unsupported_parameter", p->name, "%s can only contain %s", p->name,
                                member.name);
        if (!yyjson_is_null(each) && !member.read(job, p, each)) return false;
    }
    return true;
}

/* ---- params format ---- */

/* It is compiled when the tasks are made. A body may have several: the last one counts. */
static bool set_schema(struct serve_job *job, yyjson_val *schema)
{
    free(job->asks.schema);
    job->asks.schema = yyjson_val_write(schema, 0, NULL);
    return job->asks.schema || serve_refuse_memory(job);
}

/* The schema, wherever clients put it. */
bool serve_read_format(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    yyjson_val *type = yyjson_obj_get(value, "type"), *nested = yyjson_obj_get(value, "json_schema");
    if (nested && !yyjson_is_null(nested) && !yyjson_is_obj(nested))
        return serve_param_refuse(job, p, "has a json_schema that is not an object");
    if (yyjson_equals_str(type, "text")) return true;
    if (yyjson_equals_str(type, "json_object")) job->asks.json = true;
    else if (!yyjson_equals_str(type, "json_schema"))
        return serve_param_refuse(job, p, "must be of type text, json_object or json_schema");
    yyjson_val *schema = yyjson_obj_get(nested, "schema");
    if (!schema || yyjson_is_null(schema)) schema = yyjson_obj_get(value, "schema");
    if (!schema || yyjson_is_null(schema))
        return job->asks.json ? true : serve_param_refuse(job, p, "has the type json_schema but no schema");
    return set_schema(job, schema);
}

enum { N_OFF = 2, N_EFFORTS = 7 };

/* Index of an effort, or how many there are. The first two are off. */
static size_t find_effort(struct serve_job *job, yyjson_val *value)
{
    static const char *const efforts[] = {"none", "minimal", "low", "medium", "high", "xhigh", "max", NULL};
    size_t i = 0;
    while (efforts[i] && !yyjson_equals_str(value, efforts[i])) i++;
    if (efforts[i]) job->asks.effort = efforts[i];
    return i;
}

/* What else there is, as verbosity, is no matter of its form. */
static bool read_members(struct serve_job *job, const struct serve_param *p, yyjson_val *value, const char *heeded)
{
    size_t i, n;
    yyjson_val *key, *each;
    if (!yyjson_is_obj(value)) return serve_param_refuse(job, p, "must be an object");
    yyjson_obj_foreach(value, i, n, key, each) {
        if (yyjson_is_null(each) || yyjson_equals_str(key, heeded)) continue;
        if (!yyjson_equals_str(key, "format")) serve_param_ignore(job, yyjson_get_str(key));
        else if (!serve_read_format(job, p, each)) return false;
    }
    return true;
}

bool serve_read_text_format(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    return read_members(job, p, value, NULL);
}

/* Anthropic's has an effort beside the format, which says nothing of whether the model thinks. */
bool serve_read_output_config(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    const bool known = find_effort(job, yyjson_obj_get(value, "effort")) < N_EFFORTS;
    return read_members(job, p, value, known && job->model->thinks ? "effort" : NULL);
}

bool serve_read_ollama_format(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    if (yyjson_is_obj(value)) return set_schema(job, value);
    job->asks.json = yyjson_equals_str(value, "json");
    return job->asks.json || yyjson_equals_str(value, "") || serve_param_refuse(job, p, "must be json or a schema");
}

/* ---- params think ---- */

/* On is what the server was told of budgets. */
static bool set_think(struct serve_job *job, const struct serve_param *p, bool on, uint32_t budget)
{
    if (on && !job->model->thinks)
        return serve_refuse(&job->error, 400, "unsupported_parameter", p->name,
                            "%s: this model cannot be told to think: its chat template has no thoughts", p->name);
    const uint32_t given = job->server->args->think;
    job->asks.think = !on ? PERIDOT_THINK_OFF : budget ? budget : given ? given : PERIDOT_THINK_ON;
    return true;
}

/* Agents say so to every model: where it has no thoughts, nothing changes. */
static bool set_effort(struct serve_job *job, const struct serve_param *p, bool on, uint32_t budget)
{
    if (!on || job->model->thinks) return set_think(job, p, on, budget);
    serve_param_ignore(job, p->name);
    return true;
}

bool serve_read_effort(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    size_t i = find_effort(job, value);
    if (i < N_EFFORTS) return set_effort(job, p, i >= N_OFF, 0);
    return serve_param_refuse(job, p, "must be none, minimal, low, medium, high, xhigh or max");
}

bool serve_read_think(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    if (yyjson_is_str(value)) return serve_read_effort(job, p, value);   /* Ollama's */
    if (!yyjson_is_bool(value)) return serve_param_refuse(job, p, "must be true or false");
    return set_think(job, p, yyjson_get_bool(value), 0);
}

/* Variables of the model's template; this one is known by all. */
bool serve_read_kwargs(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    const struct serve_member thinking = {"enable_thinking", serve_read_think};
    if (!job->model->runs_template) return serve_param_member(job, p, value, thinking);
    if (!yyjson_is_obj(value)) return serve_param_refuse(job, p, "must be an object");
    yyjson_val *think = yyjson_obj_get(value, "enable_thinking");
    if (think && !yyjson_is_null(think) && !serve_read_think(job, p, think)) return false;
    if (yyjson_obj_size(value) == (think != NULL)) return true;
    job->asks.variables = yyjson_val_write(value, 0, NULL);
    return job->asks.variables || serve_refuse_memory(job);
}

/* {"effort": "high"}; {"enabled": true}; {"max_tokens": 1024}; with "exclude": true thoughts are not shown. */
bool serve_read_reasoning(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    yyjson_val *effort = yyjson_obj_get(value, "effort"), *enabled = yyjson_obj_get(value, "enabled"),
               *most = yyjson_obj_get(value, "max_tokens");
    double n = yyjson_get_num(most);
    if (!yyjson_is_obj(value)) return serve_param_refuse(job, p, "must be an object");
    job->asks.hides_thoughts = yyjson_is_true(yyjson_obj_get(value, "exclude"));
    job->asks.details_thoughts = true;   /* OpenRouter's clients, who say it so, know them as these */
    if (yyjson_is_num(most) && n >= 1 && n <= 1e9) return set_effort(job, p, true, (uint32_t)n);
    if (effort && !yyjson_is_null(effort)) return serve_read_effort(job, p, effort);
    return !yyjson_is_bool(enabled) || set_effort(job, p, yyjson_get_bool(enabled), 0);
}

/* {"type": "enabled", "budget_tokens": 1024}; adaptive: as the model does, if it does. */
bool serve_read_thinking(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    yyjson_val *type = yyjson_obj_get(value, "type"), *budget = yyjson_obj_get(value, "budget_tokens");
    yyjson_val *display = yyjson_obj_get(value, "display");
    bool adaptive = yyjson_equals_str(type, "adaptive"), on = yyjson_equals_str(type, "enabled");
    double n = budget ? yyjson_get_num(budget) : 0;
    if (!on && !adaptive && !yyjson_equals_str(type, "disabled"))
        return serve_param_refuse(job, p, "must be of type enabled, adaptive or disabled");
    if (budget && !yyjson_is_null(budget) && (!yyjson_is_num(budget) || !(n >= 0 && n <= 1e9) || floor(n) != n))
        return serve_param_refuse(job, p, "has budget_tokens that are no whole number from 0 to 1000000000");
    job->asks.hides_thoughts = yyjson_equals_str(display, "omitted");
    return set_think(job, p, on || (adaptive && job->model->thinks), (uint32_t)n);
}
