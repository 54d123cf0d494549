/* What GET answers: the page, the state, the models, the description of the interface. */
#include "http_.h"

#include <stdio.h>
#include <string.h>

/* Made by embed.cmake of page/ and openapi.json. */
extern const unsigned char serve_page[], serve_openapi[];
extern const size_t serve_page_size, serve_openapi_size;
extern const char serve_page_hashes[];

const char *serve_page_policy(char out[SERVE_POLICY_SIZE])
{
    snprintf(out, SERVE_POLICY_SIZE,
             "default-src 'none'; %simg-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
             "frame-ancestors 'none'; require-trusted-types-for 'script'", serve_page_hashes);
    return out;
}

int serve_get_page(struct pd_buffer *out, struct serve_server *server, const char *path)
{
    (void)server, (void)path;
    pd_buffer_add(out, serve_page, serve_page_size);
    return 200;
}

int serve_get_openapi(struct pd_buffer *out, struct serve_server *server, const char *path)
{
    (void)server, (void)path;
    pd_buffer_add(out, serve_openapi, serve_openapi_size);
    return 200;
}

int serve_get_metrics(struct pd_buffer *out, struct serve_server *server, const char *path)
{
    (void)path;
    serve_put_metrics(out, &server->metrics);
    return 200;
}

int serve_get_health(struct pd_buffer *out, struct serve_server *server, const char *path)
{
    bool ready = server->ready && !server->draining;
    (void)path;
    if (ready) pd_buffer_print(out, "{\"status\": \"ok\"%s}", server->args->tools.n ? ", \"tools\": true" : "");
    else {
        struct serve_error error = {0};
        if (server->draining) serve_refuse(&error, 503, "ending", NULL, "the server is shutting down");
        else serve_refuse(&error, 503, "loading", NULL, "the model is not loaded");
        serve_errors_openai.put(out, &error);
    }
    return ready ? 200 : 503;
}

/* As llama.cpp's server has it. */
static void add_meta(yyjson_mut_doc *doc, yyjson_mut_val *o, const struct serve_model *m)
{
    const struct {
        const char *name;
        uint64_t value;
    } members[] = {{"n_vocab", m->n_vocab},  {"n_ctx", m->ctx},         {"n_ctx_train", m->ctx_max},
                   {"n_embd", m->d_model},   {"n_params", m->n_params}, {"size", m->weights_size}};
    yyjson_mut_val *meta = yyjson_mut_obj_add_obj(doc, o, "meta");
    for (size_t i = 0; i < PD_COUNT(members); i++)
        yyjson_mut_obj_add_uint(doc, meta, members[i].name, members[i].value);
}

/* adapter: one of the model's, as if it were a model; NULL: the model itself. */
static yyjson_mut_val *model(yyjson_mut_doc *doc, const struct serve_server *server, const struct serve_model *m,
                             const peridot_adapter *adapter)
{
    yyjson_mut_val *o = yyjson_mut_obj(doc);
    const char *id = adapter ? adapter->name : m->id;
    yyjson_mut_obj_add_val(doc, o, "id", serve_text(doc, id, strlen(id)));
    yyjson_mut_obj_add_str(doc, o, "object", "model");
    yyjson_mut_obj_add_sint(doc, o, "created", server->created);
    yyjson_mut_obj_add_str(doc, o, "owned_by", "peridot");
    yyjson_mut_obj_add_str(doc, o, "type", "model");   /* as Anthropic has it, with the next */
    yyjson_mut_obj_add_val(doc, o, "display_name", serve_text(doc, id, strlen(id)));
    if (adapter) yyjson_mut_obj_add_val(doc, o, "parent", serve_text(doc, m->id, strlen(m->id)));   /* as in vLLM */
    yyjson_mut_obj_add_bool(doc, o, "loaded", m->loaded);
    if (!m->known) return o;
    yyjson_mut_obj_add_bool(doc, o, "thinks", m->thinks);
    yyjson_mut_obj_add_uint(doc, o, "max_model_len", m->ctx);    /* as vLLM says what a request may have, and */
    yyjson_mut_obj_add_uint(doc, o, "context_length", m->ctx);   /* as OpenRouter does */
    add_meta(doc, o, m);
    yyjson_mut_val *modalities = yyjson_mut_arr(doc);   /* as OpenRouter has them */
    yyjson_mut_arr_add_str(doc, modalities, "text");
    if (m->sees) yyjson_mut_arr_add_str(doc, modalities, "image");
    yyjson_mut_obj_add_val(doc, yyjson_mut_obj_add_obj(doc, o, "architecture"), "input_modalities", modalities);
    return o;
}

int serve_get_models(struct pd_buffer *out, struct serve_server *server, const char *path)
{
    yyjson_mut_doc *doc = cmd_json_new();
    yyjson_mut_val *root = yyjson_mut_obj(doc), *data = yyjson_mut_arr(doc);
    (void)path;
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_str(doc, root, "object", "list");
    for (const struct serve_model *m = server->models; m < server->models + server->n_models; m++) {
        yyjson_mut_arr_append(data, model(doc, server, m, NULL));
        for (uint32_t i = 0; m->known && i < m->n_adapters; i++)
            yyjson_mut_arr_append(data, model(doc, server, m, &m->adapters[i]));
    }
    yyjson_mut_obj_add_val(doc, root, "data", data);
    yyjson_mut_obj_add_bool(doc, root, "has_more", false);
    serve_put_json(out, doc);
    return 200;
}

int serve_get_model(struct pd_buffer *out, struct serve_server *server, const char *path)
{
    const char *id = strstr(path, "/models/") + strlen("/models/");
    const struct serve_model *m = serve_models_get(server, id);
    const peridot_adapter *adapter = m ? NULL : serve_models_get_adapter(server, id);
    if (!m && !adapter) {
        struct serve_error error = {0};
        serve_refuse(&error, 404, "model_not_found", "model", "there is no model %.200s: this server has %s%s", id,
                     server->models->id, server->n_models > 1 ? " and others" : "");
        serve_errors_openai.put(out, &error);
        return 404;
    }
    yyjson_mut_doc *doc = cmd_json_new();
    yyjson_mut_doc_set_root(doc, model(doc, server, m ? m : server->models, adapter));
    serve_put_json(out, doc);
    return 200;
}
