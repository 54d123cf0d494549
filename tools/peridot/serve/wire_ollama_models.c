/* What Ollama's clients ask of models: /api/tags, /api/ps, /api/show, /api/version. The served model is the only
 * one. */
#include "server.h"
#include "wire_ollama.h"
#include "wire_ollama_models.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

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

static val_t *details(doc_t *doc, const struct serve_server *s)
{
    val_t *o = yyjson_mut_obj(doc), *families = yyjson_mut_arr(doc);
    char type[sizeof s->type];
    for (size_t i = 0; i < sizeof type; i++) type[i] = (char)toupper((unsigned char)s->type[i]);
    yyjson_mut_arr_append(families, serve_string(doc, s->family));
    yyjson_mut_obj_add_str(doc, o, "parent_model", "");
    yyjson_mut_obj_add_str(doc, o, "format", "gguf");
    yyjson_mut_obj_add_val(doc, o, "family", serve_string(doc, s->family));
    yyjson_mut_obj_add_val(doc, o, "families", families);
    yyjson_mut_obj_add_val(doc, o, "parameter_size", parameter_size(doc, s->n_params));
    yyjson_mut_obj_add_strcpy(doc, o, "quantization_level", type);
    return o;
}

/* Clients want 64 digits that tell models apart. They are made of the name and the size, not of the file's bytes. */
static val_t *digest(doc_t *doc, const struct serve_server *s)
{
    uint64_t hash = 0xcbf29ce484222325;   /* FNV-1a */
    char text[65];
    for (const char *at = s->model_id; *at; at++) hash = (hash ^ (unsigned char)*at) * 0x100000001b3;
    hash = (hash ^ s->weights_size) * 0x100000001b3;
    snprintf(text, sizeof text, "%016" PRIx64 "%016" PRIx64 "%032d", hash, hash * 0x100000001b3, 0);
    return yyjson_mut_strcpy(doc, text);
}

static val_t *model(doc_t *doc, const struct serve_server *s)
{
    val_t *o = yyjson_mut_obj(doc);
    yyjson_mut_obj_add_val(doc, o, "name", serve_string(doc, s->model_id));
    yyjson_mut_obj_add_val(doc, o, "model", serve_string(doc, s->model_id));
    yyjson_mut_obj_add_uint(doc, o, "size", s->weights_size);
    yyjson_mut_obj_add_val(doc, o, "digest", digest(doc, s));
    yyjson_mut_obj_add_val(doc, o, "details", details(doc, s));
    return o;
}

/* {"models": [{...}]}; none while it is loaded. */
static val_t *only_model(doc_t **doc, const struct serve_server *s)
{
    val_t *root, *list, *o;
    *doc = new_object(&root);
    list = yyjson_mut_obj_add_arr(*doc, root, "models");
    o = model(*doc, s);
    if (s->ready) yyjson_mut_arr_append(list, o);
    return o;
}

int serve_get_tags(struct serve_buffer *out, struct serve_server *server, const char *path)
{
    doc_t *doc;
    val_t *o = only_model(&doc, server);
    (void)path;
    yyjson_mut_obj_add_val(doc, o, "modified_at", serve_time(doc, server->created));
    serve_put_json(out, doc);
    return 200;
}

/* It stays until the server ends. */
int serve_get_ps(struct serve_buffer *out, struct serve_server *server, const char *path)
{
    doc_t *doc;
    val_t *o = only_model(&doc, server);
    (void)path;
    yyjson_mut_obj_add_str(doc, o, "expires_at", "9999-12-31T23:59:59Z");
    yyjson_mut_obj_add_uint(doc, o, "size_vram", server->is_cpu ? 0 : server->weights_size);
    yyjson_mut_obj_add_uint(doc, o, "context_length", server->ctx);
    serve_put_json(out, doc);
    return 200;
}

int serve_get_version(struct serve_buffer *out, struct serve_server *server, const char *path)
{
    (void)server, (void)path;
    serve_print(out, "{\"version\":\"%s\"}", FOLLOWED_VERSION);
    return 200;
}

int serve_refuse_models(struct serve_buffer *out, struct serve_server *server, const char *path)
{
    struct serve_error error = {0};
    serve_refuse(&error, 400, NULL, NULL,
                 "%s is not supported: this server has the one model that it was started with, %s. Fetch another with "
                 "`peridot pull NAME`, and serve it with `peridot serve -m NAME`.", path, server->model_id);
    serve_errors_ollama.put(out, &error);
    return 400;
}

static val_t *capabilities(doc_t *doc, const struct serve_server *s, const peridot_vocab *vocab)
{
    const struct {
        const char *name;
        bool has;
    } all[] = {{"completion", !s->only_embeds}, {"embedding", s->only_embeds}, {"thinking", s->thinks},
               {"insert", !s->only_embeds && peridot_vocab_has_infill(vocab)}};
    val_t *list = yyjson_mut_arr(doc);
    for (size_t i = 0; i < CMD_COUNT(all); i++)
        if (all[i].has) yyjson_mut_arr_add_str(doc, list, all[i].name);
    return list;
}

static void add_info(doc_t *doc, val_t *info, const struct serve_server *s, const char *name, uint64_t value)
{
    char key[64];
    snprintf(key, sizeof key, "%s.%s", s->family, name);
    yyjson_mut_obj_add(info, yyjson_mut_strcpy(doc, key), yyjson_mut_uint(doc, value));
}

static bool show(struct serve_buffer *out, struct serve_job *job, const peridot_vocab *vocab, yyjson_val *body)
{
    const struct serve_server *s = job->server;
    val_t *root, *info;
    (void)body;
    doc_t *doc = new_object(&root);
    yyjson_mut_obj_add_str(doc, root, "modelfile", "");
    yyjson_mut_obj_add_str(doc, root, "parameters", "");
    yyjson_mut_obj_add_str(doc, root, "template", "");
    yyjson_mut_obj_add_val(doc, root, "details", details(doc, s));
    info = yyjson_mut_obj_add_obj(doc, root, "model_info");
    yyjson_mut_obj_add_val(doc, info, "general.architecture", serve_string(doc, s->family));
    yyjson_mut_obj_add_uint(doc, info, "general.parameter_count", s->n_params);
    add_info(doc, info, s, "context_length", s->ctx_max);
    add_info(doc, info, s, "embedding_length", s->embedding_size);
    yyjson_mut_obj_add_val(doc, root, "capabilities", capabilities(doc, s, vocab));
    yyjson_mut_obj_add_val(doc, root, "modified_at", serve_time(doc, s->created));
    serve_put_json(out, doc);
    return true;
}

const struct serve_interface serve_wire_show = {
    .id = SERVE_SHOW, .path = "/api/show", .kind = SERVE_AT_ONCE, .errors = &serve_errors_ollama, .read = show};
