#include "../../base/base.h"
#include "../job/job.h"
#include "wire_.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool serve_read_ids(struct serve_job *job, const peridot_vocab *vocab, const char *name, yyjson_val *list)
{
    size_t i, n, n_ids = yyjson_arr_size(list);
    yyjson_val *each;
    int32_t *ids = malloc((n_ids + 1) * sizeof *ids);
    bool good = ids || serve_refuse_memory(job);
    yyjson_arr_foreach(list, i, n, each) {
        double id = yyjson_get_num(each);   /* 1.0 is a whole number too */
        good = good && yyjson_is_num(each) && id >= 0 && id < peridot_vocab_size(vocab) && floor(id) == id;
        if (good) ids[i] = (int32_t)id;
    }
    if (good && job->asks.suffix)
        good = serve_refuse(&job->error, 400, "unsupported_parameter", "suffix",
                            "suffix needs a prompt that is text, not token ids");
    else if (good) good = serve_tasks_add(job, ids, n_ids);
    else serve_refuse_type(&job->error, name, "contains a number that is not a token id");
    free(ids);
    return good;
}

/* Of a text and job->asks.suffix. */
static bool encode_infill(int32_t **ids, size_t *n, struct serve_job *job, const peridot_vocab *vocab,
                          yyjson_val *value)
{
    peridot_encode_limit limit = serve_limit(job);
    const peridot_infill infill = {.size = sizeof infill, .prefix = yyjson_get_str(value),
        .prefix_size = yyjson_get_len(value), .suffix = job->asks.suffix, .suffix_size = job->asks.suffix_size,
        .limit = &limit};
    if (!peridot_vocab_has_infill(vocab))
        return serve_refuse(&job->error, 400, "unsupported_parameter", "suffix",
                            "suffix is not supported: %s's vocabulary has no tokens for fill-in-the-middle",
                            job->model->id);
    peridot_status status = peridot_encode_infill(ids, n, vocab, &infill);
    return status == PERIDOT_OK || serve_refuse_encoding(job, &limit, status);
}

static bool encode_text(int32_t **ids, size_t *n, struct serve_job *job, const peridot_vocab *vocab,
                        yyjson_val *value)
{
    struct serve_buffer text = {0};
    peridot_encode_limit limit = serve_limit(job);
    unsigned flags = PERIDOT_ENCODE_BOS | (job->kind == SERVE_VECTORS ? PERIDOT_ENCODE_EOS : 0u)
                   | (job->asks.special ? PERIDOT_ENCODE_SPECIAL : 0u);
    if (job->asks.prefix) serve_put(&text, job->asks.prefix, strlen(job->asks.prefix));
    serve_put(&text, yyjson_get_str(value), yyjson_get_len(value));
    peridot_status status = text.failed ? PERIDOT_ERROR_MEMORY
                                        : peridot_encode_within(ids, n, vocab, text.data, text.size, flags, &limit);
    serve_buffer_free(&text);
    return status == PERIDOT_OK || serve_refuse_encoding(job, &limit, status);
}

static bool read_text(struct serve_job *job, const peridot_vocab *vocab, const char *name, yyjson_val *value)
{
    int32_t *ids;
    size_t n;
    if (!yyjson_is_str(value))
        return serve_refuse_type(&job->error, name, "must be a string, a list of token ids, or a list of these");
    if (!(job->asks.suffix ? encode_infill : encode_text)(&ids, &n, job, vocab, value)) return false;
    bool good = serve_tasks_add(job, ids, n);
    peridot_free(ids);
    return good;
}

bool serve_read_texts(struct serve_buffer *out, struct serve_job *job, const peridot_vocab *vocab, yyjson_val *root)
{
    const char *name = job->api->input;
    yyjson_val *value = yyjson_obj_get(root, name), *each;
    size_t i, n;
    (void)out;
    if (!value || yyjson_is_null(value)) return serve_refuse_type(&job->error, name, "is required");
    bool ids = yyjson_is_arr(value) && yyjson_is_num(yyjson_arr_get_first(value));
    bool many = yyjson_is_arr(value) && !ids;
    if (!serve_tasks_make(job, many ? yyjson_arr_size(value) : 1)) return false;
    if (ids) return serve_read_ids(job, vocab, name, value);
    if (!many) return read_text(job, vocab, name, value);
    yyjson_arr_foreach(value, i, n, each) {
        if (!(yyjson_is_arr(each) ? serve_read_ids : read_text)(job, vocab, name, each))
            return serve_refuse_element(&job->error, name, i);
    }
    return true;
}

/* ---- vectors ---- */

typedef yyjson_mut_doc doc_t;
typedef yyjson_mut_val val_t;

val_t *serve_vector(doc_t *doc, const struct serve_task *task)
{
    val_t *vector = yyjson_mut_arr(doc);
    for (size_t i = 0; i < task->vector_size; i++)
        yyjson_mut_arr_add_real(doc, vector, (double)(float)task->vector[i]);
    return vector;
}

val_t *serve_vector_base64(doc_t *doc, const struct serve_task *task)
{
    size_t n = task->vector_size * sizeof(float);
    unsigned char *bytes = malloc(n + 1);
    struct serve_buffer b = {.data = malloc((n + 2) / 3 * 4 + 1)};
    for (size_t i = 0; bytes && i < task->vector_size; i++) {
        const float value = (float)task->vector[i];
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        for (size_t k = 0; k < 4; k++) bytes[4 * i + k] = (unsigned char)(bits >> 8 * k);
    }
    b.failed = !bytes || !b.data;
    if (!b.failed) b.size = (size_t)(cmd_base64_encode(b.data, bytes, n) - b.data);
    free(bytes);
    return serve_buffer_text(doc, &b);
}
