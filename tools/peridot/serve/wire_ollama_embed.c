/* Ollama's POST /api/embed, and /api/embeddings, which came before it and has one text. */
#include "texts.h"
#include "vectors.h"
#include "wire_ollama.h"

typedef yyjson_mut_doc doc_t;
typedef yyjson_mut_val val_t;

static doc_t *body(struct serve_job *job)
{
    val_t *root;
    doc_t *doc = serve_ollama_new(&root, job);
    val_t *list = yyjson_mut_arr(doc);
    yyjson_mut_obj_remove_key(root, "created_at");
    for (size_t i = 0; i < job->n_tasks; i++) yyjson_mut_arr_append(list, serve_vector(doc, &job->tasks[i]));
    yyjson_mut_obj_add_val(doc, root, "embeddings", list);
    serve_ollama_add_costs(doc, root, job);
    return doc;
}

static doc_t *one_body(struct serve_job *job)
{
    doc_t *doc = cmd_json_new();
    val_t *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_val(doc, root, "embedding", serve_vector(doc, &job->tasks[0]));
    return doc;
}

static bool read_one(struct serve_buffer *out, struct serve_job *job, const peridot_vocab *vocab, yyjson_val *root)
{
    if (!yyjson_is_str(yyjson_obj_get(root, "prompt")))
        return serve_refuse_type(&job->error, "prompt", "must be a string");
    return serve_read_texts(out, job, vocab, root);
}

const struct serve_interface serve_wire_embed = {
    .id = SERVE_EMBED, .path = "/api/embed", .kind = SERVE_VECTORS, .input = "input",
    .errors = &serve_errors_ollama, .truncates = true, .read = serve_read_texts, .body = body,
};
const struct serve_interface serve_wire_embed_one = {
    .id = SERVE_EMBED_ONE, .path = "/api/embeddings", .kind = SERVE_VECTORS, .input = "prompt",
    .errors = &serve_errors_ollama, .truncates = true, .read = read_one, .body = one_body,
};
