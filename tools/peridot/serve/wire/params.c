/* The parameters of requests: a table of their names, the interfaces that have them, and how each is read. What is
 * neither in it nor in that of neutral.c, and is no parameter of another interface, is ignored, and named in a
 * header. */
#include "wire_.h"
#include "../job/job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHAT = SERVE_SET_CHATS, COMPLETIONS = SERVE_SET_COMPLETIONS, RESPONSES = SERVE_SET_RESPONSES,
    EMBEDDINGS = SERVE_SET_EMBEDDINGS, TOKENIZE = SERVE_SET_TOKENIZE, DETOKENIZE = SERVE_SET_DETOKENIZE,
    WRITES = SERVE_SET_WRITES, OPENAI = SERVE_SET_OPENAI,
    MESSAGES = SERVE_SET_MESSAGES, ANTHROPIC = SERVE_SET_ANTHROPIC, RERANK = SERVE_SET_RERANK,
    COMPLETION = SERVE_SET_COMPLETION, INFILL = SERVE_SET_INFILL, LLAMA = SERVE_SET_LLAMA,
    OLLAMA_CHAT = SERVE_SET_OLLAMA_CHAT, GENERATE = SERVE_SET_GENERATE, SHOW = SERVE_SET_SHOW,
    EMBED = SERVE_SET_EMBED, EMBED_ONE = SERVE_SET_EMBED_ONE, OLLAMA = SERVE_SET_OLLAMA, OPTIONS = SERVE_SET_OPTIONS
};

/* ---- kinds ---- */

static void *place(struct serve_job *job, const struct serve_param *p) { return (char *)&job->asks + p->offset; }

static bool read_float(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    double x = yyjson_get_num(value);
    if (!yyjson_is_num(value) || !(x >= p->min && x <= p->max)) return serve_param_refuse_range(job, p);
    *(float *)place(job, p) = (float)x;
    return true;
}

static bool read_u32(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    double x;
    if (!serve_param_whole(&x, p, value)) return serve_param_refuse_range(job, p);
    *(uint32_t *)place(job, p) = (uint32_t)x;
    return true;
}

static bool read_bool(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    if (!yyjson_is_bool(value)) return serve_param_refuse(job, p, "must be true or false");
    *(bool *)place(job, p) = yyjson_get_bool(value);
    return true;
}

static bool params_read_text(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    return serve_param_text(job, p->name, value) != NULL;
}

static bool read_nothing(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    (void)job, (void)p, (void)value;
    return true;
}

/* ---- one by one ---- */

static bool read_model(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    const char *name = serve_param_text(job, p->name, value);
    if (!name) return false;
    job->asks.other_model = !job->asks.adapter && !serve_models_get(job->server, name);
    return true;
}

/* One of a list as llama.cpp's server has it, whose ids are numbers, or by its name. */
static bool add_adapter(struct serve_job *job, const struct serve_param *p, yyjson_val *each)
{
    const struct serve_model *m = job->model;
    yyjson_val *id = yyjson_obj_get(each, "id"), *name = yyjson_obj_get(each, "name"),
               *scale = yyjson_obj_get(each, "scale"), *which = id ? id : name;
    double x = scale ? yyjson_get_num(scale) : 1;
    uint32_t i = 0;
    if (!which || (id && name) || yyjson_obj_size(each) != 1u + (scale != NULL))
        return serve_param_refuse(job, p, "must be a list of {\"name\": ..., \"scale\": ...}");
    if ((scale && !yyjson_is_num(scale)) || !(fabs(x) <= 1e6))
        return serve_param_refuse(job, p, "has a scale that is not a number from -1e6 to 1e6");
    while (i < m->n_adapters && !(yyjson_is_uint(which) ? yyjson_get_uint(which) == i
                                                        : yyjson_equals_str(which, m->adapters[i].name))) i++;
    if (i == m->n_adapters) return serve_param_refuse(job, p, "has an adapter that the model does not have");
    if (job->asks.n_adapters == SERVE_MAX_ADAPTERS) return serve_param_refuse(job, p, "has more than 32 adapters");
    job->asks.adapters[job->asks.n_adapters++] = (peridot_adapter){m->adapters[i].name, (float)x};
    return true;
}

static bool read_lora(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    size_t i, n;
    yyjson_val *each;
    if (!yyjson_is_arr(value)) return serve_param_refuse(job, p, "must be a list");
    if (job->asks.adapter && yyjson_arr_size(value))
        return serve_param_refuse(job, p, "cannot be given where model names an adapter");
    yyjson_arr_foreach(value, i, n, each) {
        if (!add_adapter(job, p, each)) return false;
    }
    return true;
}

static bool read_max(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    double x;
    bool texts = (COMPLETIONS | LLAMA) >> job->api->id & 1;
    if (!serve_param_whole(&x, p, value)) return serve_param_refuse_range(job, p);
    if (x == 0 && !texts && !(p->apis & OPTIONS))
        return serve_param_refuse(job, p, "must be at least 1, or -1 for no limit");
    job->asks.max_given = x > 0 || texts;   /* completions would be short without */
    job->asks.n_max = x < 0 ? UINT32_MAX : (uint64_t)x;
    return true;
}

/* What the page asks for. Where the server was told so the oldest turns are not left out nonetheless. */
static bool read_full(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    bool drop = yyjson_equals_str(value, "drop");
    if (!drop && !yyjson_equals_str(value, "refuse")) return serve_param_refuse(job, p, "must be drop or refuse");
    job->asks.leaves_room = true;
    job->asks.drops = drop && job->server->args->full == SERVE_FULL_DROP;
    return true;
}

/* OpenAI's: auto is to leave out the oldest. */
static bool read_truncation(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    bool leaves_out = yyjson_equals_str(value, "auto");
    if (!leaves_out && !yyjson_equals_str(value, "disabled"))
        return serve_param_refuse(job, p, "must be auto or disabled");
    job->asks.leaves_room = job->asks.drops = leaves_out && job->server->args->full == SERVE_FULL_DROP;
    return true;
}

static bool read_seed(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    double x;
    if (yyjson_is_int(value))
        job->asks.sampling.seed = yyjson_is_uint(value) ? yyjson_get_uint(value) : (uint64_t)yyjson_get_sint(value);
    else if (serve_param_whole(&x, p, value)) job->asks.sampling.seed = (uint64_t)(int64_t)x;   /* as 1.0 */
    else return serve_param_refuse(job, p, "must be a 64-bit integer");
    return true;
}

static bool add_stop(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    const char *text = serve_param_text(job, p->name, value);
    if (!text) return false;
    if (!*text) return serve_param_refuse(job, p, "must not be empty");
    if (job->asks.sampling.n_stop == SERVE_MAX_STOPS) return serve_param_refuse(job, p, "has more than 16 texts");
    job->asks.stops[job->asks.sampling.n_stop++] = text;
    return true;
}

static bool read_stop(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    size_t i, n;
    yyjson_val *each;
    if (!yyjson_is_arr(value)) return add_stop(job, p, value);
    yyjson_arr_foreach(value, i, n, each) {
        if (!add_stop(job, p, each)) return false;
    }
    return true;
}

/* llama.cpp's: -1 is all, and 0 none, so that nothing is penalised. */
static bool read_dry_last(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    double x;
    if (!serve_param_whole(&x, p, value)) return serve_param_refuse_range(job, p);
    job->asks.dry_off = x == 0;
    job->asks.sampling.dry_last_n = x > 0 ? (uint32_t)x : 0;
    return true;
}

static bool read_breakers(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    size_t i, n;
    yyjson_val *each;
    if (!yyjson_is_arr(value)) return serve_param_refuse(job, p, "must be a list of strings");
    if (yyjson_arr_size(value) > SERVE_MAX_BREAKERS) return serve_param_refuse(job, p, "has more than 64 texts");
    job->asks.sampling.dry_breakers = job->asks.breakers;
    job->asks.sampling.n_dry_breakers = 0;
    yyjson_arr_foreach(value, i, n, each) {
        const char *text = serve_param_text(job, p->name, each);
        if (!text) return false;
        if (strlen(text) > SERVE_MAX_BREAKER) return serve_param_refuse(job, p, "has a text of more than 64 bytes");
        job->asks.breakers[job->asks.sampling.n_dry_breakers++] = text;
    }
    return true;
}

static bool read_bias(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    size_t i, n;
    yyjson_val *key, *each;
    if (!yyjson_is_obj(value)) return serve_param_refuse(job, p, "must be an object of token ids and numbers");
    if (yyjson_obj_size(value) > 1024) return serve_param_refuse(job, p, "has more than 1024 tokens");
    job->asks.bias = calloc(yyjson_obj_size(value) + 1, sizeof *job->asks.bias);
    if (!job->asks.bias) return serve_refuse_memory(job);
    yyjson_obj_foreach(value, i, n, key, each) {
        char *end;
        const char *name = yyjson_get_str(key);
        unsigned long id = *name >= '0' && *name <= '9' ? strtoul(name, &end, 10) : ULONG_MAX;
        double x = yyjson_get_num(each);
        if (id > INT32_MAX || end != name + yyjson_get_len(key))
            return serve_param_refuse(job, p, "has a key that is not a token id");
        if (!yyjson_is_num(each) || !(x >= -100 && x <= 100)) return serve_param_refuse_range(job, p);
        job->asks.bias[job->asks.sampling.n_bias++] = (peridot_bias){(int32_t)id, x == -100 ? -INFINITY : (float)x};
    }
    return true;
}

static bool read_logprobs(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    double x;
    if (!serve_param_whole(&x, p, value)) return serve_param_refuse_range(job, p);
    job->asks.logprobs = true;
    job->asks.n_top = (uint32_t)x;
    return true;
}

/* vLLM's. Its value was read with the images: see is_cropped of pictures.c. */
static bool read_pan_and_scan(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    return yyjson_is_bool(value) || serve_param_refuse(job, p, "has a do_pan_and_scan that is not true or false");
}

static bool read_processor(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    return serve_param_member(job, p, value, (struct serve_member){"do_pan_and_scan", read_pan_and_scan});
}

static bool read_stream_options(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    size_t i, n;
    yyjson_val *key, *each;
    if (!yyjson_is_obj(value)) return serve_param_refuse(job, p, "must be an object");
    yyjson_obj_foreach(value, i, n, key, each) {
        bool usage = yyjson_equals_str(key, "include_usage");
        bool often = yyjson_equals_str(key, "continuous_usage_stats");   /* vLLM's */
        if (!usage && !often && !yyjson_equals_str(key, "include_obfuscation"))
            return serve_param_refuse(job, p, "has an unknown member");
        if (!yyjson_is_bool(each)) return serve_param_refuse(job, p, "has a value that is not true or false");
        if (often && yyjson_get_bool(each))
            return serve_param_refuse(job, p, "supports continuous_usage_stats only as false");
        if (usage) job->asks.include_usage = yyjson_get_bool(each);
    }
    return true;
}

static bool read_encoding(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    bool base64 = job->asks.base64 = yyjson_equals_str(value, "base64");
    return base64 || yyjson_equals_str(value, "float") || serve_param_refuse(job, p, "must be float or base64");
}

static bool read_pooling(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    static const char *const names[] = {
        [PERIDOT_POOL_MEAN] = "mean", [PERIDOT_POOL_LAST] = "last", [PERIDOT_POOL_CLS] = "cls"};
    for (uint32_t i = PERIDOT_POOL_MEAN; i < PD_COUNT(names); i++) {
        if (!yyjson_equals_str(value, names[i])) continue;
        job->asks.pool = i;
        return true;
    }
    return serve_param_refuse(job, p, "must be mean, last or cls");
}

static bool read_dimensions(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    double n = yyjson_get_num(value);
    job->asks.dimensions = yyjson_is_num(value) && n >= 1 && n <= job->model->embedding_size ? (uint32_t)n : 0;
    if (job->asks.dimensions && job->asks.dimensions == n) return true;
    return serve_refuse(&job->error, 400, "unsupported_parameter", p->name, "this model's vectors have %u dimensions, "
                        "and less are a whole number", job->model->embedding_size);
}

/* What texts of a task begin with. */
static bool read_task(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    const struct serve_model *m = job->model;
    for (uint32_t i = 0; i < m->n_prefixes && !job->asks.prefix; i++)
        if (yyjson_equals_str(value, m->prefixes[i].task)) job->asks.prefix = m->prefixes[i].prefix;
    if (job->asks.prefix) return true;
    return m->n_prefixes ? serve_param_refuse(job, p, "is not one of the model's tasks, as query and document are")
                         : serve_param_refuse(job, p, "is not known: this model has no tasks");
}

static bool read_best_of(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    yyjson_val *n = yyjson_obj_get(yyjson_doc_get_root(job->asks.document), "n");
    if (yyjson_is_num(value) && yyjson_get_num(value) == (yyjson_is_num(n) ? yyjson_get_num(n) : 1)) return true;
    return serve_refuse(&job->error, 400, "unsupported_parameter", p->name,
                        "best_of is supported only where it equals n");
}

/* Clients send an empty one where there is none. */
static bool read_suffix(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    if (!yyjson_is_str(value)) return serve_param_refuse(job, p, "must be a string");
    job->asks.suffix_size = yyjson_get_len(value);
    if (job->asks.suffix_size) job->asks.suffix = yyjson_get_str(value);
    return true;
}

/* llama.cpp's. */
static bool read_schema(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    if (!yyjson_is_obj(value)) return serve_param_refuse(job, p, "must be an object");
    free(job->asks.schema);
    job->asks.schema = yyjson_val_write(value, 0, NULL);
    return job->asks.schema || serve_refuse_memory(job);
}

static bool read_fields(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    size_t i, n;
    yyjson_val *each;
    bool good = yyjson_is_arr(value) && yyjson_arr_size(value) <= 256;
    yyjson_arr_foreach(value, i, n, each) good = good && yyjson_is_str(each);
    if (!good) return serve_param_refuse(job, p, "must be a list of at most 256 names");
    job->asks.fields = yyjson_arr_size(value) ? value : NULL;
    return true;
}

static bool read_ctx(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    double x;
    if (!serve_param_whole(&x, p, value)) return serve_param_refuse_range(job, p);
    return x <= job->model->ctx
        || serve_refuse(&job->error, 400, "unsupported_parameter", p->name, "%s is more than the %u positions of this "
                        "server's context: peridot serve --ctx sets it", p->name, job->model->ctx);
}

/* Clients that find this code go on by sending all messages each time. */
static bool read_thread(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    (void)value;
    return serve_refuse(&job->error, 400, "thread_unsupported_request", p->name, "thread is not supported: this server "
                        "keeps no conversations");
}

static bool read_opens(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    bool good = read_bool(job, p, value);
    job->asks.unopened = good && !yyjson_get_bool(value);
    return good;
}

/* What is beside the text; of all that OpenAI has there is one thing here. */
static bool read_include(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    size_t i, n;
    yyjson_val *each;
    (void)p;
    yyjson_arr_foreach(value, i, n, each)
        job->asks.seals_thoughts = job->asks.seals_thoughts || yyjson_equals_str(each, "reasoning.encrypted_content");
    return true;
}

static bool read_options(struct serve_job *job, const struct serve_param *p, yyjson_val *value);

#define AT(member) .offset = offsetof(struct serve_asks, member)

static const struct serve_param params[] = {
    {"model", OPENAI | ANTHROPIC | OLLAMA | SHOW | TOKENIZE | DETOKENIZE, .read = read_model},
    {"lora", OPENAI | MESSAGES, .read = read_lora},
    {"messages", CHAT | ANTHROPIC | OLLAMA_CHAT, .read = read_nothing},
    {"name", SHOW, .read = read_model},
    {"prompt", COMPLETIONS | COMPLETION | GENERATE | EMBED_ONE, .read = read_nothing},
    {"prompt", INFILL, .read = params_read_text},
    {"input_prefix", INFILL, .read = params_read_text},
    {"input_suffix", INFILL, .read = params_read_text},
    {"input_extra", INFILL, .read = read_nothing},
    {"input", RESPONSES | EMBEDDINGS | EMBED, .read = read_nothing},
    {"system", ANTHROPIC, .read = read_nothing},
    {"system", GENERATE, .read = params_read_text},
    {"thread", ANTHROPIC, .read = read_thread},
    {"options", OLLAMA, .read = read_options},
    {"images", GENERATE, .read = read_nothing},
    {"raw", GENERATE, .read = read_bool, AT(raw)},
    {"truncate", OLLAMA, .read = read_bool, AT(truncates)},
    {"instructions", RESPONSES, .read = read_nothing},
    {"previous_response_id", RESPONSES, .read = read_nothing},   /* serve_stored_continue did */
    {"store", RESPONSES, .read = read_bool, AT(stores)},
    {"truncation", RESPONSES, .read = read_truncation},
    {"include", RESPONSES, .read = read_include},
    {"content", TOKENIZE, .read = read_nothing},
    {"tokens", DETOKENIZE, .read = read_nothing},
    {"add_special", TOKENIZE, .read = read_bool, AT(echo)},
    {"parse_special", TOKENIZE, .read = read_bool, AT(special)},
    {"with_pieces", TOKENIZE, .read = read_bool, AT(wants_pieces)},
    {"n_predict", LLAMA, .read = read_max, .min = -2, .max = 1e9},
    {"n_indent", LLAMA, .read = read_u32, AT(n_indent), .min = 0, .max = 1e6},
    {"t_max_predict_ms", LLAMA, .read = read_float, AT(most_ms), .min = -1, .max = 1e9},
    {"response_fields", LLAMA, .read = read_fields},
    {"return_tokens", LLAMA, .read = read_bool, AT(token_ids)},
    {"json_schema", LLAMA, .read = read_schema},
    {"max_tokens", CHAT | COMPLETIONS | LLAMA, .read = read_max, .min = -1, .max = 1e9},
    {"max_tokens", MESSAGES, .read = read_max, .min = 1, .max = 1e9},
    {"max_completion_tokens", CHAT, .read = read_max, .min = -1, .max = 1e9},
    {"num_predict", OPTIONS, .read = read_max, .min = -2, .max = 1e9},
    {"num_ctx", OPTIONS, .read = read_ctx, .min = 1, .max = 1e9},
    {"max_output_tokens", RESPONSES, .read = read_max, .min = -1, .max = 1e9},
    {"full", CHAT, .read = read_full},
    {"continue_final_message", CHAT, .read = read_bool, AT(continues)},   /* vLLM's */
    {"add_generation_prompt", CHAT, .read = read_opens, AT(unopened)},
    {"return_progress", CHAT, .read = read_bool, AT(progress)},   /* llama.cpp's */
    {"reasoning_effort", CHAT, .read = serve_read_effort},
    {"reasoning", CHAT | RESPONSES, .read = serve_read_reasoning},
    {"chat_template_kwargs", CHAT, .read = serve_read_kwargs},
    {"enable_thinking", CHAT, .read = serve_read_think},
    {"mm_processor_kwargs", CHAT, .read = read_processor},
    {"think", CHAT | OLLAMA_CHAT | GENERATE, .read = serve_read_think},
    {"thinking", CHAT | ANTHROPIC, .read = serve_read_thinking},
    {"temperature", WRITES | MESSAGES | OPTIONS, .read = read_float, AT(sampling.temperature), .min = 0, .max = 2},
    {"top_p", WRITES | MESSAGES | OPTIONS, .read = read_float, AT(sampling.top_p), .min = 0, .max = 1},
    {"top_k", WRITES | MESSAGES | OPTIONS, .read = read_u32, AT(sampling.top_k), .min = 0, .max = 1e9},
    {"min_p", WRITES | OPTIONS, .read = read_float, AT(sampling.min_p), .min = 0, .max = 1},
    {"repeat_penalty", WRITES | OPTIONS, .read = read_float, AT(sampling.repeat_penalty), .min = 0, .max = 100},
    {"top_n_sigma", WRITES | MESSAGES | OPTIONS, .read = read_float, AT(sampling.top_n_sigma), .min = -1, .max = 100},
    {"xtc_probability", WRITES | MESSAGES | OPTIONS, .read = read_float, AT(sampling.xtc_probability), .min = 0,
     .max = 1},
    {"xtc_threshold", WRITES | MESSAGES | OPTIONS, .read = read_float, AT(sampling.xtc_threshold), .min = 0, .max = 1},
    {"dry_multiplier", WRITES | MESSAGES | OPTIONS, .read = read_float, AT(sampling.dry_multiplier), .min = 0,
     .max = 100},
    {"dry_base", WRITES | MESSAGES | OPTIONS, .read = read_float, AT(sampling.dry_base), .min = 0, .max = 100},
    {"dry_allowed_length", WRITES | MESSAGES | OPTIONS, .read = read_u32, AT(sampling.dry_allowed_length), .min = 0,
     .max = 1e9},
    {"dry_penalty_last_n", WRITES | MESSAGES | OPTIONS, .read = read_dry_last, .min = -1, .max = 1e9},
    {"dry_sequence_breakers", WRITES | MESSAGES | OPTIONS, .read = read_breakers},
    {"presence_penalty", CHAT | COMPLETIONS | LLAMA | OPTIONS, .read = read_float, AT(sampling.presence_penalty),
     .min = -2, .max = 2},
    {"frequency_penalty", CHAT | COMPLETIONS | LLAMA | OPTIONS, .read = read_float, AT(sampling.frequency_penalty),
     .min = -2, .max = 2},
    {"seed", WRITES | MESSAGES | OPTIONS, .read = read_seed, .min = -0x1p53, .max = 0x1p53},
    {"logit_bias", CHAT | COMPLETIONS, .read = read_bias},
    {"stop_sequences", MESSAGES, .read = read_stop},
    {"stop", WRITES | OPTIONS, .read = read_stop},
    {"n", CHAT | COMPLETIONS, .read = read_u32, AT(n), .min = 1, .max = SERVE_MAX_CHOICES},
    {"stream", WRITES | MESSAGES | OLLAMA_CHAT | GENERATE, .read = read_bool, AT(stream)},
    {"sse_ping_interval", WRITES | MESSAGES, .read = read_float, AT(ping_s), .min = -1, .max = 1e6},   /* llama.cpp's */
    {"stream_options", WRITES, .read = read_stream_options},
    {"logprobs", CHAT | OLLAMA_CHAT | GENERATE, .read = read_bool, AT(logprobs)},
    {"logprobs", COMPLETIONS, .read = read_logprobs, .min = 0, .max = SERVE_MAX_TOP},
    {"top_logprobs", CHAT | OLLAMA_CHAT | GENERATE, .read = read_u32, AT(n_top), .min = 0, .max = SERVE_MAX_TOP},
    {"return_token_ids", CHAT | COMPLETIONS, .read = read_bool, AT(token_ids)},
    {"echo", COMPLETIONS, .read = read_bool, AT(echo)},
    {"suffix", COMPLETIONS | GENERATE, .read = read_suffix},
    {"best_of", COMPLETIONS, .read = read_best_of},
    {"tools", CHAT | RESPONSES | OLLAMA_CHAT, .read = serve_read_tools},
    {"tool_choice", CHAT | RESPONSES, .read = serve_read_tool_choice},
    {"parallel_tool_calls", CHAT | RESPONSES, .read = serve_read_parallel},
    {"tools", ANTHROPIC, .read = serve_read_anthropic_tools},
    {"tool_choice", ANTHROPIC, .read = serve_read_anthropic_choice},
    {"response_format", CHAT | COMPLETIONS, .read = serve_read_format},
    {"format", OLLAMA_CHAT | GENERATE, .read = serve_read_ollama_format},
    {"output_config", ANTHROPIC, .read = serve_read_output_config},
    {"output_format", ANTHROPIC, .read = serve_read_format},   /* before there was output_config */
    {"text", RESPONSES, .read = serve_read_text_format},
    {"encoding_format", EMBEDDINGS, .read = read_encoding},
    {"dimensions", EMBEDDINGS | EMBED, .read = read_dimensions},
    {"pooling", EMBEDDINGS, .read = read_pooling},
    {"task", EMBEDDINGS, .read = read_task},
    {"query", RERANK, .read = params_read_text},
    {"instruct", RERANK, .read = params_read_text},
    {"documents", RERANK, .read = read_nothing},
    {"top_n", RERANK, .read = read_u32, AT(top_n), .min = 1, .max = 1e9},
    {"return_documents", RERANK, .read = read_bool, AT(returns_documents)},
};

static const struct serve_param *params_find(unsigned api, const char *name)
{
    for (size_t i = 0; i < PD_COUNT(params); i++)
        if (params[i].apis & api && strcmp(params[i].name, name) == 0) return &params[i];
    return NULL;
}

/* Whether it does so where it is known, and other interfaces that write would do without; what only llama.cpp's own
 * have is unknown elsewhere. */
static bool changes_texts(unsigned apis, const char *name)
{
    const unsigned write = (WRITES & ~(unsigned)LLAMA) | MESSAGES | OLLAMA_CHAT | GENERATE | OPTIONS;
    return apis & (write | LLAMA) && params_find(write, name);
}

/* The members of an object, which are parameters of an interface. */
static bool params_read_all(struct serve_job *job, unsigned apis, yyjson_val *object)
{
    size_t i, n;
    yyjson_val *key, *value;
    yyjson_obj_foreach(object, i, n, key, value) {
        const char *name = yyjson_get_str(key);
        bool whole = strlen(name) == yyjson_get_len(key);   /* no NUL is in it */
        const struct serve_param *p = whole ? params_find(apis, name) : NULL;
        if (yyjson_is_null(value)) continue;
        if (!p && (!whole || !serve_is_neutral(apis, name))) {
            if (whole && changes_texts(apis, name))
                return serve_refuse(&job->error, 400, "unknown_parameter", name,
                                    "Unrecognized request argument supplied: %.64s", name);
            serve_param_ignore(job, name);
            continue;
        }
        if (yyjson_obj_get(object, name) != value)
            return serve_refuse(&job->error, 400, "invalid_value", name, "%.64s is given twice", name);
        if (!(p ? p->read(job, p, value) : serve_neutral_read(job, apis, name, value))) return false;
    }
    return true;
}

static bool read_options(struct serve_job *job, const struct serve_param *p, yyjson_val *value)
{
    return yyjson_is_obj(value) ? params_read_all(job, OPTIONS, value)
        : serve_param_refuse(job, p, "must be an object");
}

bool serve_params_read(struct serve_job *job, yyjson_val *root)
{
    if (!yyjson_is_obj(root))
        return serve_refuse(&job->error, 400, "invalid_type", NULL, "the body must be a JSON object");
    if (!params_read_all(job, 1u << job->api->id, root)) return false;
    if (!serve_check_tools(job)) return false;
    if (job->asks.sampling.top_p == 0) job->asks.sampling.top_p = 1e-6f;   /* to the library 0 is all */
    if (job->asks.dry_off) job->asks.sampling.dry_multiplier = 0;
    if (job->asks.suffix && job->asks.echo)
        return serve_refuse(&job->error, 400, "unsupported_parameter", "echo", "echo is not supported with suffix: the "
                            "prompt would not be a text that the answer continues");
    if (job->asks.unopened && !job->asks.continues)
        return serve_refuse(&job->error, 400, "unsupported_parameter", "add_generation_prompt", "add_generation_prompt "
                            "is only false with continue_final_message");
    if (job->asks.n_top && !job->asks.logprobs)
        return serve_refuse(&job->error, 400, "invalid_value", "top_logprobs", "top_logprobs needs logprobs: true");
    return true;
}
