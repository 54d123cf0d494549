/* What llama.cpp's server has beside OpenAI's interfaces: POST /tokenize and /detokenize. They need no device. */
#include "params.h"
#include "tasks.h"
#include "texts.h"
#include "tokens.h"
#include "wire.h"

static bool tokenize(struct serve_buffer *out, struct serve_job *job, const peridot_vocab *vocab, yyjson_val *root)
{
    int32_t *ids;
    size_t n;
    yyjson_val *content = yyjson_obj_get(root, "content");
    if (!yyjson_is_str(content)) return serve_refuse_type(&job->error, "content", "must be a string");
    peridot_encode_limit limit = serve_limit(job);
    peridot_status status = peridot_encode_within(&ids, &n, vocab, yyjson_get_str(content), yyjson_get_len(content),
                                                  (job->echo ? PERIDOT_ENCODE_BOS : 0u)
                                                  | (job->special ? PERIDOT_ENCODE_SPECIAL : 0u), &limit);
    if (status != PERIDOT_OK) return serve_refuse_encoding(job, &limit, status);
    yyjson_mut_doc *doc = cmd_json_new();
    yyjson_mut_val *root_out = yyjson_mut_obj(doc), *list = yyjson_mut_arr(doc);
    yyjson_mut_doc_set_root(doc, root_out);
    yyjson_mut_obj_add_val(doc, root_out, "tokens", list);
    for (size_t i = 0; i < n; i++) {
        yyjson_mut_val *id = yyjson_mut_sint(doc, ids[i]), *both = job->wants_pieces ? yyjson_mut_obj(doc) : NULL;
        if (both) {
            struct serve_buffer piece = {0};
            serve_put_piece(&piece, vocab, ids[i]);
            yyjson_mut_obj_add_val(doc, both, "id", id);
            yyjson_mut_obj_add_val(doc, both, "piece", serve_buffer_text(doc, &piece));
        }
        yyjson_mut_arr_append(list, both ? both : id);
    }
    peridot_free(ids);
    serve_put_json(out, doc);
    return true;
}

static bool detokenize(struct serve_buffer *out, struct serve_job *job, const peridot_vocab *vocab, yyjson_val *root)
{
    yyjson_val *tokens = yyjson_obj_get(root, "tokens");
    char *text = NULL;
    size_t size = 0;
    if (!yyjson_is_arr(tokens)) return serve_refuse_type(&job->error, "tokens", "must be a list of token ids");
    if (yyjson_arr_size(tokens)) {
        if (!serve_tasks_make(job, 1) || !serve_read_ids(job, vocab, "tokens", tokens)) return false;
        peridot_status status = peridot_decode(&text, &size, vocab, job->tasks[0].tokens, job->tasks[0].n_prompt);
        if (status != PERIDOT_OK) return serve_refuse_status(&job->error, status);
    }
    serve_put_text(out, "content", text, size);
    peridot_free(text);
    return true;
}

const struct serve_interface serve_wire_tokenize = {
    .id = SERVE_TOKENIZE, .path = "/tokenize", .kind = SERVE_AT_ONCE,
    .errors = &serve_errors_openai, .read = tokenize};
const struct serve_interface serve_wire_detokenize = {
    .id = SERVE_DETOKENIZE, .path = "/detokenize", .kind = SERVE_AT_ONCE,
    .errors = &serve_errors_openai, .read = detokenize};
