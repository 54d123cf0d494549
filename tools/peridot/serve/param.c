#include "param.h"
#include "log.h"

#include <math.h>
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
    char text[64], *at = job->ignored;
    size_t size = strlen(at), n = strlen(name);
    if (n >= sizeof text) n = sizeof text - 1;
    for (size_t i = 0; i < n; i++)
        text[i] = name[i] < 32 || name[i] > 126 || strchr("\"\\,", name[i]) ? '?' : name[i];
    text[n] = 0;
    serve_log_ignored(job->server, text);
    while ((at = strstr(at, text)) != NULL) {
        bool whole = (at == job->ignored || at[-1] == ' ') && (at[n] == ',' || !at[n]);
        if (whole) return;
        at++;
    }
    if (size + n + 3 < sizeof job->ignored)
        snprintf(job->ignored + size, sizeof job->ignored - size, "%s%s", size ? ", " : "", text);
}

bool serve_param_member(struct serve_job *job, const struct serve_param *p, yyjson_val *value, const char *name,
                        bool (*read)(struct serve_job *job, const struct serve_param *p, yyjson_val *value))
{
    size_t i, n;
    yyjson_val *key, *each;
    if (!yyjson_is_obj(value)) return serve_param_refuse(job, p, "must be an object");
    yyjson_obj_foreach(value, i, n, key, each) {
        if (!yyjson_equals_str(key, name))
            return serve_refuse(&job->error, 400, "unsupported_parameter", p->name, "%s can only contain %s", p->name,
                                name);
        if (!yyjson_is_null(each) && !read(job, p, each)) return false;
    }
    return true;
}
