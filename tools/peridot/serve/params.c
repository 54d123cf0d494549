#include "params.h"
#include "neutral.h"
#include "server.h"
#include "wire.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHAT = SERVE_SET_CHAT, COMPLETIONS = SERVE_SET_COMPLETIONS, RESPONSES = SERVE_SET_RESPONSES,
    EMBEDDINGS = SERVE_SET_EMBEDDINGS, TOKENIZE = SERVE_SET_TOKENIZE, DETOKENIZE = SERVE_SET_DETOKENIZE,
    WRITES = SERVE_SET_WRITES, OPENAI = SERVE_SET_OPENAI
};

struct param {
    const char *name;
    unsigned apis;
    bool (*read)(struct serve_job *job, const struct param *p, yyjson_val *value);
    size_t offset;             /* of the value in the job */
    double min, max;
};

static bool refuse(struct serve_job *job, const struct param *p, const char *what)
{
    return serve_refuse(&job->error, 400, "invalid_value", p->name, "%s %s", p->name, what);
}

static bool refuse_range(struct serve_job *job, const struct param *p)
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

/* ---- kinds ---- */

static void *place(struct serve_job *job, const struct param *p) { return (char *)job + p->offset; }

static bool read_float(struct serve_job *job, const struct param *p, yyjson_val *value)
{
    double x = yyjson_get_num(value);
    if (!yyjson_is_num(value) || !(x >= p->min && x <= p->max)) return refuse_range(job, p);
    *(float *)place(job, p) = (float)x;
    return true;
}

static bool whole(double *out, const struct param *p, yyjson_val *value)
{
    *out = yyjson_get_num(value);
    return yyjson_is_num(value) && *out >= p->min && *out <= p->max && floor(*out) == *out;
}

static bool read_u32(struct serve_job *job, const struct param *p, yyjson_val *value)
{
    double x;
    if (!whole(&x, p, value)) return refuse_range(job, p);
    *(uint32_t *)place(job, p) = (uint32_t)x;
    return true;
}

static bool read_bool(struct serve_job *job, const struct param *p, yyjson_val *value)
{
    if (!yyjson_is_bool(value)) return refuse(job, p, "must be true or false");
    *(bool *)place(job, p) = yyjson_get_bool(value);
    return true;
}

static bool read_nothing(struct serve_job *job, const struct param *p, yyjson_val *value)
{
    (void)job, (void)p, (void)value;
    return true;
}

/* ---- one by one ---- */

static bool read_model(struct serve_job *job, const struct param *p, yyjson_val *value)
{
    const char *name = serve_param_text(job, p->name, value);
    if (!name) return false;
    job->other_model = strcmp(name, job->server->model_id) != 0;
    return true;
}

static bool read_max(struct serve_job *job, const struct param *p, yyjson_val *value)
{
    double x;
    if (!whole(&x, p, value)) return refuse_range(job, p);
    if (x == 0 && job->api->id != SERVE_COMPLETIONS) return refuse(job, p, "must be at least 1, or -1 for no limit");
    job->max_given = x > 0 || job->api->id == SERVE_COMPLETIONS;   /* which would be short without */
    job->n_max = x < 0 ? UINT32_MAX : (uint64_t)x;
    return true;
}

/* What the page asks for. Where the server was told so the oldest turns are not left out nonetheless. */
static bool read_full(struct serve_job *job, const struct param *p, yyjson_val *value)
{
    bool drop = yyjson_equals_str(value, "drop");
    if (!drop && !yyjson_equals_str(value, "refuse")) return refuse(job, p, "must be drop or refuse");
    job->leaves_room = true;
    job->drops = drop && job->server->args->full == SERVE_FULL_DROP;
    return true;
}

static bool read_seed(struct serve_job *job, const struct param *p, yyjson_val *value)
{
    double x;
    if (yyjson_is_int(value))
        job->sampling.seed = yyjson_is_uint(value) ? yyjson_get_uint(value) : (uint64_t)yyjson_get_sint(value);
    else if (whole(&x, p, value)) job->sampling.seed = (uint64_t)(int64_t)x;   /* as 1.0 */
    else return refuse(job, p, "must be a 64-bit integer");
    return true;
}

static bool add_stop(struct serve_job *job, const struct param *p, yyjson_val *value)
{
    const char *text = serve_param_text(job, p->name, value);
    if (!text) return false;
    if (!*text) return refuse(job, p, "must not be empty");
    if (job->sampling.n_stop == SERVE_MAX_STOPS) return refuse(job, p, "has more than 16 texts");
    job->stops[job->sampling.n_stop++] = text;
    return true;
}

static bool read_stop(struct serve_job *job, const struct param *p, yyjson_val *value)
{
    size_t i, n;
    yyjson_val *each;
    if (!yyjson_is_arr(value)) return add_stop(job, p, value);
    yyjson_arr_foreach(value, i, n, each) {
        if (!add_stop(job, p, each)) return false;
    }
    return true;
}

static bool read_bias(struct serve_job *job, const struct param *p, yyjson_val *value)
{
    size_t i, n;
    yyjson_val *key, *each;
    if (!yyjson_is_obj(value)) return refuse(job, p, "must be an object of token ids and numbers");
    if (yyjson_obj_size(value) > 1024) return refuse(job, p, "has more than 1024 tokens");
    job->bias = calloc(yyjson_obj_size(value) + 1, sizeof *job->bias);
    if (!job->bias) return serve_refuse(&job->error, 500, NULL, NULL, "out of memory");
    yyjson_obj_foreach(value, i, n, key, each) {
        char *end;
        const char *name = yyjson_get_str(key);
        unsigned long id = *name >= '0' && *name <= '9' ? strtoul(name, &end, 10) : ULONG_MAX;
        double x = yyjson_get_num(each);
        if (id > INT32_MAX || end != name + yyjson_get_len(key))
            return refuse(job, p, "has a key that is not a token id");
        if (!yyjson_is_num(each) || !(x >= -100 && x <= 100)) return refuse_range(job, p);
        job->bias[job->sampling.n_bias++] = (peridot_bias){(int32_t)id, x == -100 ? -INFINITY : (float)x};
    }
    return true;
}

static bool read_logprobs(struct serve_job *job, const struct param *p, yyjson_val *value)
{
    if (job->api->id == SERVE_CHAT) return read_bool(job, p, value);
    double x;
    if (!whole(&x, p, value)) return refuse_range(job, p);
    job->logprobs = true;
    job->n_top = (uint32_t)x;
    return true;
}

static bool read_stream_options(struct serve_job *job, const struct param *p, yyjson_val *value)
{
    size_t i, n;
    yyjson_val *key, *each;
    if (!yyjson_is_obj(value)) return refuse(job, p, "must be an object");
    yyjson_obj_foreach(value, i, n, key, each) {
        bool usage = yyjson_equals_str(key, "include_usage");
        bool often = yyjson_equals_str(key, "continuous_usage_stats");   /* vLLM's */
        if (!usage && !often && !yyjson_equals_str(key, "include_obfuscation"))
            return refuse(job, p, "has an unknown member");
        if (!yyjson_is_bool(each)) return refuse(job, p, "has a value that is not true or false");
        if (often && yyjson_get_bool(each)) return refuse(job, p, "supports continuous_usage_stats only as false");
        if (usage) job->include_usage = yyjson_get_bool(each);
    }
    return true;
}

static bool read_encoding(struct serve_job *job, const struct param *p, yyjson_val *value)
{
    job->base64 = yyjson_equals_str(value, "base64");
    return job->base64 || yyjson_equals_str(value, "float") ? true : refuse(job, p, "must be float or base64");
}

static bool read_pooling(struct serve_job *job, const struct param *p, yyjson_val *value)
{
    static const char *const names[] = {
        [PERIDOT_POOL_MEAN] = "mean", [PERIDOT_POOL_LAST] = "last", [PERIDOT_POOL_CLS] = "cls"};
    for (uint32_t i = PERIDOT_POOL_MEAN; i < CMD_COUNT(names); i++) {
        if (!yyjson_equals_str(value, names[i])) continue;
        job->pool = i;
        return true;
    }
    return refuse(job, p, "must be mean, last or cls");
}

static bool read_dimensions(struct serve_job *job, const struct param *p, yyjson_val *value)
{
    double n = yyjson_get_num(value);
    job->dimensions = yyjson_is_num(value) && n >= 1 && n <= job->server->embedding_size ? (uint32_t)n : 0;
    if (job->dimensions && job->dimensions == n) return true;
    return serve_refuse(&job->error, 400, "unsupported_parameter", p->name, "this model's vectors have %u dimensions, "
                        "and less are a whole number", job->server->embedding_size);
}

/* What texts of a task begin with. */
static bool read_task(struct serve_job *job, const struct param *p, yyjson_val *value)
{
    const struct serve_server *s = job->server;
    for (uint32_t i = 0; i < s->n_prefixes && !job->prefix; i++)
        if (yyjson_equals_str(value, s->prefixes[i].task)) job->prefix = s->prefixes[i].prefix;
    if (job->prefix) return true;
    return s->n_prefixes ? refuse(job, p, "is not one of the model's tasks, as query and document are")
                         : refuse(job, p, "is not known: this model has no tasks");
}

static bool read_best_of(struct serve_job *job, const struct param *p, yyjson_val *value)
{
    yyjson_val *n = yyjson_obj_get(yyjson_doc_get_root(job->document), "n");
    if (yyjson_is_num(value) && yyjson_get_num(value) == (yyjson_is_num(n) ? yyjson_get_num(n) : 1)) return true;
    return serve_refuse(&job->error, 400, "unsupported_parameter", p->name,
                        "best_of is supported only where it equals n");
}

/* Clients send an empty one where there is none. */
static bool read_suffix(struct serve_job *job, const struct param *p, yyjson_val *value)
{
    if (!yyjson_is_str(value)) return refuse(job, p, "must be a string");
    job->suffix_size = yyjson_get_len(value);
    if (job->suffix_size) job->suffix = yyjson_get_str(value);
    return true;
}

/* The schema, wherever clients put it; it is compiled when the tasks are made. */
static bool read_format(struct serve_job *job, const struct param *p, yyjson_val *value)
{
    yyjson_val *type = yyjson_obj_get(value, "type"), *nested = yyjson_obj_get(value, "json_schema");
    if (nested && !yyjson_is_null(nested) && !yyjson_is_obj(nested))
        return refuse(job, p, "has a json_schema that is not an object");
    if (yyjson_equals_str(type, "text")) return true;
    if (yyjson_equals_str(type, "json_object")) job->json = true;
    else if (!yyjson_equals_str(type, "json_schema"))
        return refuse(job, p, "must be of type text, json_object or json_schema");
    yyjson_val *schema = yyjson_obj_get(nested, "schema");
    if (!schema || yyjson_is_null(schema)) schema = yyjson_obj_get(value, "schema");
    if (!schema || yyjson_is_null(schema))
        return job->json ? true : refuse(job, p, "has the type json_schema but no schema");
    job->schema = yyjson_val_write(schema, 0, NULL);
    return job->schema ? true : serve_refuse(&job->error, 500, NULL, NULL, "out of memory");
}

static bool read_text_format(struct serve_job *job, const struct param *p, yyjson_val *value)
{
    size_t i, n;
    yyjson_val *key, *each;
    if (!yyjson_is_obj(value)) return refuse(job, p, "must be an object");
    yyjson_obj_foreach(value, i, n, key, each) {
        bool format = yyjson_equals_str(key, "format"), neutral = yyjson_equals_str(each, "medium");
        if (!format && !(yyjson_equals_str(key, "verbosity") && (neutral || yyjson_is_null(each))))
            return refuse(job, p, "can only contain format, and the verbosity medium");
        if (format && !yyjson_is_null(each) && !read_format(job, p, each)) return false;
    }
    return true;
}

/* ---- thinking ---- */

/* On is what the server was told of budgets. */
static bool set_think(struct serve_job *job, const struct param *p, bool on, uint32_t budget)
{
    const struct serve_server *s = job->server;
    if (on && !s->thinks)
        return serve_refuse(&job->error, 400, "unsupported_parameter", p->name,
                            "%s: this model cannot be told to think: its chat template has no thoughts", p->name);
    job->think = !on ? PERIDOT_THINK_OFF : budget ? budget : s->args->think ? s->args->think : PERIDOT_THINK_ON;
    return true;
}

/* The first two are off. */
static bool read_effort(struct serve_job *job, const struct param *p, yyjson_val *value)
{
    static const char *const efforts[] = {"none", "minimal", "low", "medium", "high", "xhigh"};
    for (size_t i = 0; i < CMD_COUNT(efforts); i++)
        if (yyjson_equals_str(value, efforts[i])) return set_think(job, p, i > 1, 0);
    return refuse(job, p, "must be none, minimal, low, medium, high or xhigh");
}

static bool read_think(struct serve_job *job, const struct param *p, yyjson_val *value)
{
    if (yyjson_is_str(value)) return read_effort(job, p, value);   /* Ollama's */
    if (!yyjson_is_bool(value)) return refuse(job, p, "must be true or false");
    return set_think(job, p, yyjson_get_bool(value), 0);
}

/* Each member of an object is a parameter of its own. */
static bool read_members(struct serve_job *job, const struct param *p, yyjson_val *value, const char *name,
                         bool (*read)(struct serve_job *job, const struct param *p, yyjson_val *value))
{
    size_t i, n;
    yyjson_val *key, *each;
    if (!yyjson_is_obj(value)) return refuse(job, p, "must be an object");
    yyjson_obj_foreach(value, i, n, key, each) {
        if (!yyjson_equals_str(key, name))
            return serve_refuse(&job->error, 400, "unsupported_parameter", p->name, "%s can only contain %s", p->name,
                                name);
        if (!yyjson_is_null(each) && !read(job, p, each)) return false;
    }
    return true;
}

static bool read_kwargs(struct serve_job *job, const struct param *p, yyjson_val *value)
{
    return read_members(job, p, value, "enable_thinking", read_think);
}

static bool read_reasoning(struct serve_job *job, const struct param *p, yyjson_val *value)
{
    return read_members(job, p, value, "effort", read_effort);
}

/* {"type": "enabled", "budget_tokens": 1024} */
static bool read_thinking(struct serve_job *job, const struct param *p, yyjson_val *value)
{
    yyjson_val *type = yyjson_obj_get(value, "type"), *budget = yyjson_obj_get(value, "budget_tokens");
    bool on = yyjson_equals_str(type, "enabled");
    double n = budget ? yyjson_get_num(budget) : 0;
    if (!on && !yyjson_equals_str(type, "disabled")) return refuse(job, p, "must be of type enabled or disabled");
    if (budget && (!yyjson_is_num(budget) || !(n >= 1 && n <= 1e9) || floor(n) != n))
        return refuse(job, p, "has budget_tokens that are no whole number from 1 to 1000000000");
    return set_think(job, p, on, (uint32_t)n);
}

#define AT(member) .offset = offsetof(struct serve_job, member)

static const struct param params[] = {
    {"model", OPENAI, .read = read_model},
    {"messages", CHAT, .read = read_nothing},
    {"prompt", COMPLETIONS, .read = read_nothing},
    {"input", RESPONSES | EMBEDDINGS, .read = read_nothing},
    {"instructions", RESPONSES, .read = read_nothing},
    {"content", TOKENIZE, .read = read_nothing},
    {"tokens", DETOKENIZE, .read = read_nothing},
    {"add_special", TOKENIZE, .read = read_bool, AT(echo)},
    {"with_pieces", TOKENIZE, .read = read_bool, AT(wants_pieces)},
    {"max_tokens", CHAT | COMPLETIONS, .read = read_max, .min = -1, .max = 1e9},
    {"max_completion_tokens", CHAT, .read = read_max, .min = -1, .max = 1e9},
    {"max_output_tokens", RESPONSES, .read = read_max, .min = -1, .max = 1e9},
    {"full", CHAT, .read = read_full},
    {"reasoning_effort", CHAT, .read = read_effort},
    {"reasoning", RESPONSES, .read = read_reasoning},
    {"chat_template_kwargs", CHAT, .read = read_kwargs},
    {"enable_thinking", CHAT, .read = read_think},
    {"think", CHAT, .read = read_think},
    {"thinking", CHAT, .read = read_thinking},
    {"temperature", WRITES, .read = read_float, AT(sampling.temperature), .min = 0, .max = 2},
    {"top_p", WRITES, .read = read_float, AT(sampling.top_p), .min = 0, .max = 1},
    {"top_k", WRITES, .read = read_u32, AT(sampling.top_k), .min = 0, .max = 1e9},
    {"min_p", WRITES, .read = read_float, AT(sampling.min_p), .min = 0, .max = 1},
    {"repeat_penalty", WRITES, .read = read_float, AT(sampling.repeat_penalty), .min = 0, .max = 100},
    {"presence_penalty", CHAT | COMPLETIONS, .read = read_float, AT(sampling.presence_penalty), .min = -2, .max = 2},
    {"frequency_penalty", CHAT | COMPLETIONS, .read = read_float, AT(sampling.frequency_penalty), .min = -2, .max = 2},
    {"seed", WRITES, .read = read_seed, .min = -0x1p53, .max = 0x1p53},
    {"logit_bias", CHAT | COMPLETIONS, .read = read_bias},
    {"stop", WRITES, .read = read_stop},
    {"n", CHAT | COMPLETIONS, .read = read_u32, AT(n), .min = 1, .max = SERVE_MAX_CHOICES},
    {"stream", WRITES, .read = read_bool, AT(stream)},
    {"stream_options", WRITES, .read = read_stream_options},
    {"logprobs", CHAT | COMPLETIONS, .read = read_logprobs, AT(logprobs), .min = 0, .max = SERVE_MAX_TOP},
    {"top_logprobs", CHAT, .read = read_u32, AT(n_top), .min = 0, .max = SERVE_MAX_TOP},
    {"return_token_ids", CHAT | COMPLETIONS, .read = read_bool, AT(token_ids)},
    {"echo", COMPLETIONS, .read = read_bool, AT(echo)},
    {"suffix", COMPLETIONS, .read = read_suffix},
    {"best_of", COMPLETIONS, .read = read_best_of},
    {"response_format", CHAT | COMPLETIONS, .read = read_format},
    {"text", RESPONSES, .read = read_text_format},
    {"encoding_format", EMBEDDINGS, .read = read_encoding},
    {"dimensions", EMBEDDINGS, .read = read_dimensions},
    {"pooling", EMBEDDINGS, .read = read_pooling},
    {"task", EMBEDDINGS, .read = read_task},
};

static const struct param *find(unsigned api, const char *name)
{
    for (size_t i = 0; i < CMD_COUNT(params); i++)
        if (params[i].apis & api && strcmp(params[i].name, name) == 0) return &params[i];
    return NULL;
}

bool serve_params_read(struct serve_job *job, yyjson_val *root)
{
    size_t i, n;
    yyjson_val *key, *value;
    if (!yyjson_is_obj(root))
        return serve_refuse(&job->error, 400, "invalid_type", NULL, "the body must be a JSON object");
    yyjson_obj_foreach(root, i, n, key, value) {
        const char *name = yyjson_get_str(key);
        const struct param *p = find(1u << job->api->id, name);
        bool whole = strlen(name) == yyjson_get_len(key);   /* no NUL is in it */
        if (!whole || (!p && !serve_is_neutral(job, name)))
            return serve_refuse(&job->error, 400, "unknown_parameter", name,
                                "Unrecognized request argument supplied: %.64s", name);
        if (yyjson_obj_get(root, name) != value)
            return serve_refuse(&job->error, 400, "invalid_value", name, "%.64s is given twice", name);
        if (yyjson_is_null(value)) continue;
        if (!(p ? p->read(job, p, value) : serve_neutral_read(job, name, value))) return false;
    }
    if (job->sampling.top_p == 0) job->sampling.top_p = 1e-6f;   /* to the library 0 is all */
    if (job->suffix && job->echo)
        return serve_refuse(&job->error, 400, "unsupported_parameter", "echo", "echo is not supported with suffix: the "
                            "prompt would not be a text that the answer continues");
    if (job->n_top && !job->logprobs)
        return serve_refuse(&job->error, 400, "invalid_value", "top_logprobs", "top_logprobs needs logprobs: true");
    return true;
}
