/* Prompts: of texts as they are, and of conversations by the template of their model. */
#define _POSIX_C_SOURCE 200809L   /* strdup */
#include "../../base/base.h"
#include "../../cli/cli.h"
#include "../job/job.h"
#include "../pictures/pictures.h"
#include "wire_.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- of texts ---- */

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

static bool prompt_encode_text(int32_t **ids, size_t *n, struct serve_job *job, const peridot_vocab *vocab,
                               yyjson_val *value)
{
    struct pd_buffer text = {0};
    peridot_encode_limit limit = serve_limit(job);
    if (job->asks.prefix) pd_buffer_add(&text, job->asks.prefix, strlen(job->asks.prefix));
    pd_buffer_add(&text, yyjson_get_str(value), yyjson_get_len(value));
    const peridot_plain plain = {.size = sizeof plain, .text = text.data, .text_size = text.size, .limit = &limit,
                                 .flags = PERIDOT_ENCODE_BOS | (job->kind == SERVE_VECTORS ? PERIDOT_ENCODE_EOS : 0u)
                                     | (job->asks.special ? PERIDOT_ENCODE_SPECIAL : 0u)};
    peridot_status status = text.failed ? PERIDOT_ERROR_MEMORY : peridot_encode_plain(ids, n, vocab, &plain);
    pd_buffer_free(&text);
    return status == PERIDOT_OK || serve_refuse_encoding(job, &limit, status);
}

static bool prompt_read_text(struct serve_job *job, const peridot_vocab *vocab, const char *name, yyjson_val *value)
{
    int32_t *ids;
    size_t n;
    if (!yyjson_is_str(value))
        return serve_refuse_type(&job->error, name, "must be a string, a list of token ids, or a list of these");
    if (!(job->asks.suffix ? encode_infill : prompt_encode_text)(&ids, &n, job, vocab, value)) return false;
    bool good = serve_tasks_add(job, ids, n);
    peridot_free(ids);
    return good;
}

bool serve_read_texts(struct pd_buffer *out, struct serve_job *job, const peridot_vocab *vocab, yyjson_val *root)
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
    if (!many) return prompt_read_text(job, vocab, name, value);
    yyjson_arr_foreach(value, i, n, each) {
        if (!(yyjson_is_arr(each) ? serve_read_ids : prompt_read_text)(job, vocab, name, each))
            return serve_refuse_element(&job->error, name, i);
    }
    return true;
}

/* ---- of a conversation ---- */

/* The messages as the library takes them: each as JSON, with its role beside it, and images. */
struct encoded {
    peridot_message *at;       /* [n] */
    char **texts;              /* [n] */
    size_t n, *n_images;       /* [n] */
    peridot_image *images[SERVE_MAX_PICTURES];   /* of all of them */
    size_t n_all;
};

static size_t take_images(struct encoded *m, const struct serve_job *job, yyjson_mut_val *message)
{
    size_t i, n, before = m->n_all;
    yyjson_mut_val *each;
    yyjson_mut_arr_foreach(yyjson_mut_obj_get(message, "content"), i, n, each) {
        yyjson_mut_val *picture = yyjson_mut_obj_get(each, "picture");
        if (picture) m->images[m->n_all++] = job->pictures.list[yyjson_mut_get_uint(picture)].image;
    }
    return m->n_all - before;
}

/* Where the messages and a reply of some length do not fit, the oldest turns are left out (cmd_turns_encode). */
static bool encode_fitting(int32_t **ids, size_t *n, struct serve_job *job, const peridot_vocab *vocab,
                           const struct encoded *m)
{
    uint64_t reply = serve_reserve(job->model->ctx);
    size_t n_left_out = 0, n_kept;
    if (job->asks.max_given) reply = pd_min(reply, job->asks.n_max);
    peridot_encode_limit limit = serve_limit(job);
    const char *tools = job->asks.shown ? job->asks.shown : job->asks.tools;
    const struct cmd_turns turns = {.vocab = vocab, .template_name = job->model->template_name,
                                    .think = job->asks.think, .ctx = job->model->ctx, .reserve = (uint32_t)reply,
                                    .messages = m->at, .n = m->n, .json = true, .images = m->images,
                                    .n_images = m->n_images, .tools = tools, .variables = job->asks.variables,
                                    .limit = &limit, .reply = job->asks.reply,
                                    .effort = job->asks.effort};
    peridot_status status = job->asks.leaves_room ? cmd_turns_leave_out(&n_left_out, &turns, true) : PERIDOT_OK;
    bool full = n_left_out > 0 && !job->asks.drops;
    if (status == PERIDOT_OK) status = cmd_turns_encode(ids, n, &n_kept, &turns, full ? 0 : n_left_out);
    if (status != PERIDOT_OK && full && limit.n_least) *n = limit.n_least;
    else if (status != PERIDOT_OK) return serve_refuse_encoding(job, &limit, status);
    job->work.n_dropped = m->n - n_kept;
    return !full
        || serve_refuse(&job->error, 400, "context_length_exceeded", job->api->input,
                        "The conversation no longer fits: its messages have %s%zu tokens, and a reply needs %" PRIu64
                        " more, in a context of %" PRIu32 ".", limit.n_least ? "at least " : "", *n, reply,
                        job->model->ctx);
}

static bool make_encoded(struct encoded *m, struct serve_job *job, const struct serve_conversation *c)
{
    size_t i, n;
    yyjson_mut_val *each;
    m->n = yyjson_mut_arr_size(c->list);
    m->at = calloc(m->n + 1, sizeof *m->at);
    m->texts = calloc(m->n + 1, sizeof *m->texts);
    m->n_images = calloc(m->n + 1, sizeof *m->n_images);
    if (!m->at || !m->texts || !m->n_images) return serve_refuse_memory(job);
    yyjson_mut_arr_foreach(c->list, i, n, each) {
        m->texts[i] = yyjson_mut_val_write(each, 0, NULL);
        if (!m->texts[i]) return serve_refuse_memory(job);
        const char *role = yyjson_mut_get_str(yyjson_mut_obj_get(each, "role"));
        m->at[i] = (peridot_message){role ? role : "", m->texts[i]};
        m->n_images[i] = take_images(m, job, each);
    }
    return true;
}

static bool encode_all(int32_t **ids, size_t *n, struct serve_job *job, const peridot_vocab *vocab,
                       const struct serve_conversation *c)
{
    struct encoded m = {0};
    if (!serve_job_hold_images(job)) return false;
    bool good = make_encoded(&m, job, c) && encode_fitting(ids, n, job, vocab, &m);
    serve_job_release_images(job);
    for (size_t i = 0; m.texts && i < m.n; i++) free(m.texts[i]);
    free(m.texts);
    free(m.n_images);
    free(m.at);
    return good;
}

/* The last message's text goes where the reply begins, which then has no thought. */
static bool take_reply(struct serve_conversation *c, struct serve_job *job)
{
    if (!job->asks.continues) return true;
    yyjson_mut_val *last = yyjson_mut_arr_remove_last(c->list);
    const char *text = yyjson_mut_get_str(yyjson_mut_obj_get(last, "content"));
    bool own = yyjson_mut_equals_str(yyjson_mut_obj_get(last, "role"), "assistant");
    if (!own || !text || yyjson_mut_obj_get(last, "tool_calls"))
        return serve_refuse(&job->error, 400, "invalid_value", job->api->input, "the last message cannot be continued: "
                            "it must be a text of the assistant's");
    if (job->asks.schema || job->asks.json)
        return serve_refuse(&job->error, 400, "unsupported_parameter", job->api->input, "a reply that is begun cannot "
                            "have a format: its grammar holds from the beginning");
    free(job->asks.reply);
    job->asks.reply = strdup(text);
    job->asks.think = PERIDOT_THINK_OFF;
    return job->asks.reply || serve_refuse_memory(job);
}

/* Not that they are too long, or of the server. */
static bool is_of_messages(const struct serve_error *e)
{
    return e->status == 400 && (!e->code || strcmp(e->code, "context_length_exceeded") != 0);
}

bool serve_conversation_encode(int32_t **ids, size_t *n, struct serve_job *job, const peridot_vocab *vocab,
                               yyjson_val *root)
{
    struct serve_conversation c = {0};
    *ids = NULL;
    *n = 0;
    bool read = job->api->read_messages(&c, job, root) && take_reply(&c, job);
    bool loses = read && serve_conversation_loses(&c, job, vocab);
    bool good = read && !loses && encode_all(ids, n, job, vocab, &c);
    struct serve_error first = job->error;   /* of the template, perhaps, which is strict of roles */
    for (int i = 0; read && !good && (loses || is_of_messages(&job->error)) && i < 2; i++) {
        loses = false;
        job->error = (struct serve_error){0};
        good = serve_conversation_fold(&c, job, i == 0) && encode_all(ids, n, job, vocab, &c);
        if (!good && is_of_messages(&job->error)) job->error = first;
    }
    yyjson_mut_doc_free(c.doc);
    pd_buffer_free(&c.thought);
    return good;
}

bool serve_read_conversation(struct pd_buffer *out, struct serve_job *job, const peridot_vocab *vocab,
                             yyjson_val *root)
{
    int32_t *ids;
    size_t n;
    (void)out;
    bool good = serve_conversation_encode(&ids, &n, job, vocab, root) && serve_tasks_make(job, 1)
        && serve_tasks_add(job, ids, n);
    peridot_free(ids);
    return good;
}
