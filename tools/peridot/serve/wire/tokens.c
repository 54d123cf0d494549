/* Tokens as JSON: their pieces of text, their probabilities, their ids; and vectors. */
#include "../job/job.h"
#include "wire.h"
#include "wire_.h"

#include <stdlib.h>
#include <string.h>

typedef yyjson_mut_doc doc_t;
typedef yyjson_mut_val val_t;

/* A piece that begins a text loses its space: it is decoded after another. */
void serve_put_piece(struct pd_buffer *out, const peridot_vocab *vocab, int32_t token)
{
    int32_t *before = NULL, both[2];
    size_t n, size_before = 0, size = 0;
    char *text_before = NULL, *text = NULL;
    peridot_status status = peridot_encode(&before, &n, vocab, "a", 1, 0);
    if (status == PERIDOT_OK && n) {
        both[0] = before[n - 1];
        both[1] = token;
        status = peridot_decode(&text_before, &size_before, vocab, both, 1);
        if (status == PERIDOT_OK) status = peridot_decode(&text, &size, vocab, both, 2);
    }
    if (status != PERIDOT_OK) out->failed = true;
    else if (size > size_before) pd_buffer_add(out, text + size_before, size - size_before);
    peridot_free(before);
    peridot_free(text_before);
    peridot_free(text);
}

/* JSON has no infinity. */
static double finite(float value) { return value > -9999 ? (double)value : -9999; }

static val_t *chat_token(doc_t *doc, const peridot_vocab *vocab, int32_t token, float value)
{
    struct pd_buffer piece = {0};
    val_t *o = yyjson_mut_obj(doc), *bytes = yyjson_mut_arr(doc);
    serve_put_piece(&piece, vocab, token);
    for (size_t i = 0; i < piece.size; i++) yyjson_mut_arr_add_uint(doc, bytes, (unsigned char)piece.data[i]);
    yyjson_mut_obj_add_val(doc, o, "token", serve_buffer_text(doc, &piece));
    yyjson_mut_obj_add_real(doc, o, "logprob", finite(value));
    yyjson_mut_obj_add_val(doc, o, "bytes", bytes);
    return o;
}

val_t *serve_chat_logprobs(doc_t *doc, const struct serve_task *task, size_t first, size_t end)
{
    val_t *o = yyjson_mut_obj(doc), *content = yyjson_mut_arr(doc);
    if (!task->job->asks.logprobs) return yyjson_mut_null(doc);
    for (size_t i = first; i < end; i++) {
        const struct serve_logprob *p = &task->logprobs[i];
        val_t *token = chat_token(doc, task->job->work.vocab, p->token, p->value), *top = yyjson_mut_arr(doc);
        for (uint32_t k = 0; k < p->n_top; k++)
            yyjson_mut_arr_append(top, chat_token(doc, task->job->work.vocab, p->top[k].token, p->top[k].value));
        yyjson_mut_obj_add_val(doc, token, "top_logprobs", top);
        yyjson_mut_arr_append(content, token);
    }
    yyjson_mut_obj_add_val(doc, o, "content", content);
    yyjson_mut_obj_add_null(doc, o, "refusal");
    return o;
}

static val_t *piece_value(doc_t *doc, const peridot_vocab *vocab, int32_t token, size_t *offset)
{
    struct pd_buffer piece = {0};
    serve_put_piece(&piece, vocab, token);
    if (offset) *offset += piece.size;
    return serve_buffer_text(doc, &piece);
}

static val_t *top_of(doc_t *doc, const struct serve_task *task, const struct serve_logprob *p)
{
    val_t *o = yyjson_mut_obj(doc);
    for (uint32_t k = 0; k < p->n_top; k++)
        yyjson_mut_obj_put(o, piece_value(doc, task->job->work.vocab, p->top[k].token, NULL),
                           yyjson_mut_real(doc, finite(p->top[k].value)));
    return o;
}

val_t *serve_text_logprobs(doc_t *doc, struct serve_task *task, size_t first, size_t end)
{
    val_t *o = yyjson_mut_obj(doc), *tokens = yyjson_mut_arr(doc), *values = yyjson_mut_arr(doc),
          *tops = yyjson_mut_arr(doc), *offsets = yyjson_mut_arr(doc);
    if (!task->job->asks.logprobs) return yyjson_mut_null(doc);
    if (first == 0 && task->job->asks.echo) {
        yyjson_mut_arr_add_uint(doc, offsets, task->logprob_offset);
        yyjson_mut_arr_append(tokens, piece_value(doc, task->job->work.vocab, task->tokens[0], &task->logprob_offset));
        yyjson_mut_arr_add_null(doc, values);
        yyjson_mut_arr_add_null(doc, tops);
    }
    for (size_t i = first; i < end; i++) {
        const struct serve_logprob *p = &task->logprobs[i];
        yyjson_mut_arr_add_uint(doc, offsets, task->logprob_offset);
        yyjson_mut_arr_append(tokens, piece_value(doc, task->job->work.vocab, p->token, &task->logprob_offset));
        yyjson_mut_arr_add_real(doc, values, finite(p->value));
        yyjson_mut_arr_append(tops, top_of(doc, task, p));
    }
    yyjson_mut_obj_add_val(doc, o, "tokens", tokens);
    yyjson_mut_obj_add_val(doc, o, "token_logprobs", values);
    yyjson_mut_obj_add_val(doc, o, "top_logprobs", tops);
    yyjson_mut_obj_add_val(doc, o, "text_offset", offsets);
    return o;
}

val_t *serve_token_ids(doc_t *doc, const int32_t *ids, size_t n)
{
    val_t *list = yyjson_mut_arr(doc);
    for (size_t i = 0; i < n; i++) yyjson_mut_arr_add_sint(doc, list, ids[i]);
    return list;
}

/* ---- wire tokens ---- */

/* What llama.cpp's server has beside OpenAI's interfaces: POST /tokenize and /detokenize. They need no device. */

static bool tokenize(struct pd_buffer *out, struct serve_job *job, const peridot_vocab *vocab, yyjson_val *root)
{
    int32_t *ids;
    size_t n;
    yyjson_val *content = yyjson_obj_get(root, "content");
    if (!yyjson_is_str(content)) return serve_refuse_type(&job->error, "content", "must be a string");
    peridot_encode_limit limit = serve_limit(job);
    const peridot_plain plain = {.size = sizeof plain, .text = yyjson_get_str(content),
                                 .text_size = yyjson_get_len(content), .limit = &limit,
                                 .flags = (job->asks.echo ? PERIDOT_ENCODE_BOS : 0u)
                                     | (job->asks.special ? PERIDOT_ENCODE_SPECIAL : 0u)};
    peridot_status status = peridot_encode_plain(&ids, &n, vocab, &plain);
    if (status != PERIDOT_OK) return serve_refuse_encoding(job, &limit, status);
    yyjson_mut_doc *doc = cmd_json_new();
    yyjson_mut_val *root_out = yyjson_mut_obj(doc), *list = yyjson_mut_arr(doc);
    yyjson_mut_doc_set_root(doc, root_out);
    yyjson_mut_obj_add_val(doc, root_out, "tokens", list);
    for (size_t i = 0; i < n; i++) {
        yyjson_mut_val *id = yyjson_mut_sint(doc, ids[i]), *both = job->asks.wants_pieces ? yyjson_mut_obj(doc) : NULL;
        if (both) {
            struct pd_buffer piece = {0};
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

static bool detokenize(struct pd_buffer *out, struct serve_job *job, const peridot_vocab *vocab, yyjson_val *root)
{
    yyjson_val *tokens = yyjson_obj_get(root, "tokens");
    char *text = NULL;
    size_t size = 0;
    if (!yyjson_is_arr(tokens)) return serve_refuse_type(&job->error, "tokens", "must be a list of token ids");
    if (yyjson_arr_size(tokens)) {
        if (!serve_tasks_make(job, 1) || !serve_read_ids(job, vocab, "tokens", tokens)) return false;
        const struct serve_task *task = job->work.tasks;
        peridot_status status = peridot_decode(&text, &size, vocab, task->tokens, task->n_prompt);
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

/* ---- vectors ---- */

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
    struct pd_buffer b = {.data = malloc((n + 2) / 3 * 4 + 1)};
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
