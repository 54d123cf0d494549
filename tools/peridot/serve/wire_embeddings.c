/* OpenAI's embeddings: POST /v1/embeddings. */
#include "server.h"
#include "texts.h"
#include "vectors.h"
#include "wire_openai.h"

typedef yyjson_mut_doc doc_t;
typedef yyjson_mut_val val_t;

static doc_t *body(struct serve_job *job)
{
    doc_t *doc = cmd_json_new();
    val_t *root = yyjson_mut_obj(doc), *data = yyjson_mut_arr(doc);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_str(doc, root, "object", "list");
    yyjson_mut_obj_add_val(doc, root, "data", data);
    for (size_t i = 0; i < job->n_tasks; i++) {
        struct serve_task *task = &job->tasks[i];
        val_t *o = yyjson_mut_arr_add_obj(doc, data);
        yyjson_mut_obj_add_str(doc, o, "object", "embedding");
        yyjson_mut_obj_add_uint(doc, o, "index", i);
        yyjson_mut_obj_add_val(doc, o, "embedding", (job->base64 ? serve_vector_base64 : serve_vector)(doc, task));
    }
    yyjson_mut_obj_add_val(doc, root, "model", serve_string(doc, serve_job_model(job)));
    yyjson_mut_obj_add_val(doc, root, "usage", serve_openai_usage(doc, job));
    return doc;
}

const struct serve_interface serve_wire_embeddings = {
    .id = SERVE_EMBEDDINGS, .path = "/v1/embeddings", .kind = SERVE_VECTORS, .input = "input",
    .errors = &serve_errors_openai, .read = serve_read_texts, .body = body,
};
