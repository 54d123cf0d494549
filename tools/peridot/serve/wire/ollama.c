/* What Ollama's interfaces have in common: answers are JSON objects, those of a stream a line each, of which the last
 * one is "done" and says what it took. */
#define _POSIX_C_SOURCE 200809L   /* gmtime_r */
#include "../job/job.h"
#include "wire.h"
#include "wire_.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

typedef yyjson_mut_doc doc_t;
typedef yyjson_mut_val val_t;

static void put_error(struct pd_buffer *b, const struct serve_error *e)
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
    for (size_t i = 0; i < job->work.n_tasks; i++) {
        prompt_s += job->work.tasks[i].prompt_s;
        reply_s += job->work.tasks[i].reply_s;
    }
    add_duration(doc, root, "total_duration", pd_now() - job->begun_s);
    yyjson_mut_obj_add_uint(doc, root, "load_duration", 0);   /* the model is always there */
    yyjson_mut_obj_add_uint(doc, root, "prompt_eval_count", u.prompt);
    if (job->kind == SERVE_VECTORS) return;
    add_duration(doc, root, "prompt_eval_duration", prompt_s);
    yyjson_mut_obj_add_uint(doc, root, "eval_count", u.reply);
    add_duration(doc, root, "eval_duration", reply_s);
}

/* ---- wire ollama models ---- */

/* What Ollama's clients ask of models: /api/tags, /api/ps, /api/show, /api/version. What is not known of a model
 * before it was loaded is empty. */

typedef yyjson_mut_doc doc_t;
typedef yyjson_mut_val val_t;

#define FOLLOWED_VERSION "0.12.11"   /* clients ask for one that has what they use; logprobs are the last of it */

static doc_t *new_object(val_t **root)
{
    doc_t *doc = cmd_json_new();
    *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, *root);
    return doc;
}

/* "270M", "4.3B" */
static val_t *parameter_size(doc_t *doc, uint64_t n)
{
    char text[32];
    if (n >= 1000000000) snprintf(text, sizeof text, "%.1fB", 1e-9 * (double)n);
    else snprintf(text, sizeof text, "%.0fM", 1e-6 * (double)n);
    return yyjson_mut_strcpy(doc, text);
}

static val_t *details(doc_t *doc, const struct serve_model *m)
{
    val_t *o = yyjson_mut_obj(doc), *families = yyjson_mut_arr(doc);
    const char *family = m->known ? m->family : "";
    char type[sizeof m->type] = "";
    for (size_t i = 0; i < sizeof type && m->known; i++) type[i] = (char)toupper((unsigned char)m->type[i]);
    if (m->known) yyjson_mut_arr_append(families, serve_string(doc, family));
    yyjson_mut_obj_add_str(doc, o, "parent_model", "");
    yyjson_mut_obj_add_str(doc, o, "format", "gguf");
    yyjson_mut_obj_add_val(doc, o, "family", serve_string(doc, family));
    yyjson_mut_obj_add_val(doc, o, "families", families);
    yyjson_mut_obj_add_val(doc, o, "parameter_size", parameter_size(doc, m->known ? m->n_params : 0));
    yyjson_mut_obj_add_strcpy(doc, o, "quantization_level", type);
    return o;
}

/* Clients want 64 digits that tell models apart. They are made of the name and the size, not of the file's bytes. */
static val_t *digest(doc_t *doc, const struct serve_model *m)
{
    uint64_t hash = 0xcbf29ce484222325;   /* FNV-1a */
    char text[65];
    for (const char *at = m->id; *at; at++) hash = (hash ^ (unsigned char)*at) * 0x100000001b3;
    hash = (hash ^ (m->known ? m->weights_size : 0)) * 0x100000001b3;
    snprintf(text, sizeof text, "%016" PRIx64 "%016" PRIx64 "%032d", hash, hash * 0x100000001b3, 0);
    return yyjson_mut_strcpy(doc, text);
}

static val_t *model(doc_t *doc, const struct serve_model *m)
{
    val_t *o = yyjson_mut_obj(doc);
    yyjson_mut_obj_add_val(doc, o, "name", serve_string(doc, m->id));
    yyjson_mut_obj_add_val(doc, o, "model", serve_string(doc, m->id));
    yyjson_mut_obj_add_uint(doc, o, "size", m->known ? m->weights_size : 0);
    yyjson_mut_obj_add_val(doc, o, "digest", digest(doc, m));
    yyjson_mut_obj_add_val(doc, o, "details", details(doc, m));
    return o;
}

static val_t *new_list(doc_t **doc)
{
    val_t *root;
    *doc = new_object(&root);
    return yyjson_mut_obj_add_arr(*doc, root, "models");
}

/* {"models": [{...}]}; none while the first one is loaded. */
int serve_get_tags(struct pd_buffer *out, struct serve_server *server, const char *path)
{
    doc_t *doc;
    val_t *list = new_list(&doc);
    (void)path;
    for (size_t i = 0; i < server->n_models && server->ready; i++) {
        val_t *o = model(doc, &server->models[i]);
        yyjson_mut_obj_add_val(doc, o, "modified_at", serve_time(doc, server->created));
        yyjson_mut_arr_append(list, o);
    }
    serve_put_json(out, doc);
    return 200;
}

/* Those that are loaded. When they are unloaded depends on what comes. */
int serve_get_ps(struct pd_buffer *out, struct serve_server *server, const char *path)
{
    doc_t *doc;
    val_t *list = new_list(&doc);
    (void)path;
    for (size_t i = 0; i < server->n_models; i++) {
        const struct serve_model *m = &server->models[i];
        if (!m->loaded) continue;
        val_t *o = model(doc, m);
        yyjson_mut_obj_add_str(doc, o, "expires_at", "9999-12-31T23:59:59Z");
        yyjson_mut_obj_add_uint(doc, o, "size_vram", m->is_cpu ? 0 : m->weights_size);
        yyjson_mut_obj_add_uint(doc, o, "context_length", m->ctx);
        yyjson_mut_arr_append(list, o);
    }
    serve_put_json(out, doc);
    return 200;
}

int serve_get_version(struct pd_buffer *out, struct serve_server *server, const char *path)
{
    (void)server, (void)path;
    pd_buffer_print(out, "{\"version\":\"%s\"}", FOLLOWED_VERSION);
    return 200;
}

int serve_refuse_models(struct pd_buffer *out, struct serve_server *server, const char *path)
{
    struct serve_error error = {0};
    serve_refuse(&error, 400, NULL, NULL,
                 "%s is not supported: this server has only what it was started with, as %s. Fetch another with "
                 "`peridot pull NAME`, and serve it with `peridot serve -m NAME`.", path, server->models->id);
    serve_errors_ollama.put(out, &error);
    return 400;
}

static val_t *capabilities(doc_t *doc, const struct serve_model *m, const peridot_vocab *vocab)
{
    const struct {
        const char *name;
        bool has;
    } all[] = {{"completion", !m->only_embeds}, {"embedding", m->only_embeds}, {"tools", !m->only_embeds},
               {"thinking", m->thinks}, {"vision", m->sees},
               {"insert", !m->only_embeds && peridot_vocab_has_infill(vocab)}};
    val_t *list = yyjson_mut_arr(doc);
    for (size_t i = 0; i < PD_COUNT(all); i++)
        if (all[i].has) yyjson_mut_arr_add_str(doc, list, all[i].name);
    return list;
}

static void add_info(doc_t *doc, val_t *info, const struct serve_model *m, const char *name, uint64_t value)
{
    char key[64];
    snprintf(key, sizeof key, "%s.%s", m->family, name);
    yyjson_mut_obj_add(info, yyjson_mut_strcpy(doc, key), yyjson_mut_uint(doc, value));
}

static bool ollama_show(struct pd_buffer *out, struct serve_job *job, const peridot_vocab *vocab, yyjson_val *body)
{
    const struct serve_model *m = job->model;
    val_t *root, *info;
    char parameters[32];
    (void)body;
    doc_t *doc = new_object(&root);
    yyjson_mut_obj_add_str(doc, root, "modelfile", "");
    snprintf(parameters, sizeof parameters, "num_ctx %" PRIu32, (uint32_t)m->ctx);
    yyjson_mut_obj_add_strcpy(doc, root, "parameters", parameters);
    yyjson_mut_obj_add_str(doc, root, "template", "");
    yyjson_mut_obj_add_val(doc, root, "details", details(doc, m));
    info = yyjson_mut_obj_add_obj(doc, root, "model_info");
    yyjson_mut_obj_add_val(doc, info, "general.architecture", serve_string(doc, m->family));
    yyjson_mut_obj_add_uint(doc, info, "general.parameter_count", m->n_params);
    add_info(doc, info, m, "context_length", m->ctx);   /* what is served: agents plan by it */
    add_info(doc, info, m, "embedding_length", m->embedding_size);
    yyjson_mut_obj_add_val(doc, root, "capabilities", capabilities(doc, m, vocab));
    yyjson_mut_obj_add_val(doc, root, "modified_at", serve_time(doc, job->server->created));
    serve_put_json(out, doc);
    return true;
}

const struct serve_interface serve_wire_show = {
    .id = SERVE_SHOW, .path = "/api/show", .kind = SERVE_AT_ONCE, .errors = &serve_errors_ollama, .read = ollama_show};
