#define _POSIX_C_SOURCE 200809L   /* gmtime_r */
#include "wire_ollama.h"
#include "server.h"

#include <string.h>
#include <time.h>

typedef yyjson_mut_doc doc_t;
typedef yyjson_mut_val val_t;

static void put_error(struct serve_buffer *b, const struct serve_error *e)
{
    doc_t *doc = cmd_json_new();
    val_t *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_val(doc, root, "error", serve_error_sentence(doc, e));
    serve_put_json(b, doc);
}

static void tell_length(char *out, size_t size, const struct serve_length *l)
{
    static const char own[] = " (the input length exceeds the context length)";
    serve_tell_length(out, size, l);
    snprintf(out + strlen(out), size - strlen(out), "%s", own);
}

const struct serve_error_form serve_errors_ollama = {put_error, "", "\n", tell_length, false};

val_t *serve_time(doc_t *doc, int64_t seconds)
{
    char text[32];
    struct tm utc;
    const time_t time = (time_t)seconds;
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&time, &utc));
    return yyjson_mut_strcpy(doc, text);
}

doc_t *serve_ollama_new(val_t **root, const struct serve_job *job)
{
    doc_t *doc = cmd_json_new();
    *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, *root);
    yyjson_mut_obj_add_val(doc, *root, "model", serve_string(doc, serve_job_model(job)));
    yyjson_mut_obj_add_val(doc, *root, "created_at", serve_time(doc, (int64_t)time(NULL)));
    return doc;
}

static void add_duration(doc_t *doc, val_t *root, const char *name, double seconds)
{
    yyjson_mut_obj_add_uint(doc, root, name, (uint64_t)(1e9 * seconds));
}

void serve_ollama_add_costs(doc_t *doc, val_t *root, const struct serve_job *job)
{
    const struct serve_usage u = serve_usage_of(job);
    double prompt_s = 0, reply_s = 0;
    for (size_t i = 0; i < job->n_tasks; i++) {
        prompt_s += job->tasks[i].prompt_s;
        reply_s += job->tasks[i].reply_s;
    }
    add_duration(doc, root, "total_duration", cmd_now() - job->begun_s);
    yyjson_mut_obj_add_uint(doc, root, "load_duration", 0);   /* the model is always there */
    yyjson_mut_obj_add_uint(doc, root, "prompt_eval_count", u.prompt);
    if (job->kind == SERVE_VECTORS) return;
    add_duration(doc, root, "prompt_eval_duration", prompt_s);
    yyjson_mut_obj_add_uint(doc, root, "eval_count", u.reply);
    add_duration(doc, root, "eval_duration", reply_s);
}
