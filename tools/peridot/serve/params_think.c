#include "param.h"
#include "server.h"

#include <math.h>

/* On is what the server was told of budgets. */
static bool set_think(struct serve_job *job, const struct serve_param *p, bool on, uint32_t budget)
{
    if (on && !job->model->thinks)
        return serve_refuse(&job->error, 400, "unsupported_parameter", p->name,
                            "%s: this model cannot be told to think: its chat template has no thoughts", p->name);
    const uint32_t given = job->server->args->think;
    job->think = !on ? PERIDOT_THINK_OFF : budget ? budget : given ? given : PERIDOT_THINK_ON;
    return true;
}

/* Agents say so to every model: where it has no thoughts, nothing changes. */
static bool set_effort(struct serve_job *job, const struct serve_param *p, bool on, uint32_t budget)
{
    if (!on || job->model->thinks) return set_think(job, p, on, budget);
    serve_param_ignore(job, p->name);
    return true;
}

/* The first two are off. */
bool serve_read_effort(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    static const char *const efforts[] = {"none", "minimal", "low", "medium", "high", "xhigh", "max"};
    for (size_t i = 0; i < CMD_COUNT(efforts); i++)
        if (yyjson_equals_str(value, efforts[i])) return set_effort(job, p, i > 1, 0);
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
    if (!job->model->runs_template) return serve_param_member(job, p, value, "enable_thinking", serve_read_think);
    if (!yyjson_is_obj(value)) return serve_param_refuse(job, p, "must be an object");
    yyjson_val *think = yyjson_obj_get(value, "enable_thinking");
    if (think && !yyjson_is_null(think) && !serve_read_think(job, p, think)) return false;
    if (yyjson_obj_size(value) == (think != NULL)) return true;
    job->variables = yyjson_val_write(value, 0, NULL);
    return job->variables || serve_refuse(&job->error, 500, NULL, NULL, "out of memory");
}

/* {"effort": "high"}; {"enabled": true}; {"max_tokens": 1024}; with "exclude": true thoughts are not shown. */
bool serve_read_reasoning(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    yyjson_val *effort = yyjson_obj_get(value, "effort"), *enabled = yyjson_obj_get(value, "enabled"),
               *most = yyjson_obj_get(value, "max_tokens");
    double n = yyjson_get_num(most);
    if (!yyjson_is_obj(value)) return serve_param_refuse(job, p, "must be an object");
    job->hides_thoughts = yyjson_is_true(yyjson_obj_get(value, "exclude"));
    job->details_thoughts = true;   /* OpenRouter's clients, who say it so, know them as these */
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
    job->hides_thoughts = yyjson_equals_str(display, "omitted");
    return set_think(job, p, on || (adaptive && job->model->thinks), (uint32_t)n);
}
