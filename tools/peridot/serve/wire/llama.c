/* What llama.cpp's server has of its own, as editors' plugins and its clients use it: POST /completion (and
 * /completions: see choose_interface), /infill and /apply-template, GET /props and /slots; /tokenize and /detokenize
 * are in tokens.c. Here slots are the texts that are written at the same time: any request may have any. */
#include "../job/job.h"
#include "wire.h"
#include "wire_.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef yyjson_mut_doc doc_t;
typedef yyjson_mut_val val_t;

/* ---- errors ---- */

static void put_error(struct pd_buffer *b, const struct serve_error *e)
{
    static const struct {
        int status;
        const char *type;
    } types[] = {{401, "authentication_error"}, {403, "permission_error"},    {404, "not_found_error"},
                 {429, "unavailable_error"},    {500, "server_error"},        {501, "not_supported_error"},
                 {503, "unavailable_error"}};
    const char *type = e->n_prompt ? "exceed_context_size_error" : "invalid_request_error";
    doc_t *doc = cmd_json_new();
    val_t *root = yyjson_mut_obj(doc), *error = yyjson_mut_obj(doc);
    for (size_t i = 0; i < PD_COUNT(types); i++)
        if (types[i].status == e->status) type = types[i].type;
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_val(doc, root, "error", error);
    yyjson_mut_obj_add_int(doc, error, "code", e->status);
    yyjson_mut_obj_add_val(doc, error, "message", serve_error_sentence(doc, e));
    yyjson_mut_obj_add_str(doc, error, "type", type);
    if (e->n_prompt) {
        yyjson_mut_obj_add_uint(doc, error, "n_prompt_tokens", e->n_prompt);
        yyjson_mut_obj_add_uint(doc, error, "n_ctx", e->n_ctx);
    }
    serve_put_json(b, doc);
}

static void tell_length(char *out, size_t size, const struct serve_length *l)
{
    snprintf(out, size, "request (%s%" PRIu64 " tokens) exceeds the available context size (%" PRIu32
             " tokens), try increasing it", l->at_least ? "at least " : "", l->n_prompt, l->ctx);
}

const struct serve_error_form serve_errors_llama = {put_error, "data: ", "\n\n", tell_length, true};

/* ---- answers ---- */

static void add_real(doc_t *doc, val_t *o, const char *name, double value)
{
    yyjson_mut_obj_add_real(doc, o, name, isfinite(value) ? value : 0);
}

/* How a text is drawn: of a job's, or where a request says nothing. */
static void add_settings(doc_t *doc, val_t *o, const peridot_sampling *s)
{
    yyjson_mut_obj_add_uint(doc, o, "seed", s->seed);
    add_real(doc, o, "temperature", (double)s->temperature);
    yyjson_mut_obj_add_uint(doc, o, "top_k", s->top_k);
    add_real(doc, o, "top_p", (double)s->top_p);
    add_real(doc, o, "min_p", (double)s->min_p);
    add_real(doc, o, "repeat_penalty", s->repeat_penalty > 0 ? (double)s->repeat_penalty : 1);
    add_real(doc, o, "presence_penalty", (double)s->presence_penalty);
    add_real(doc, o, "frequency_penalty", (double)s->frequency_penalty);
}

static val_t *settings(doc_t *doc, const struct serve_task *task)
{
    const struct serve_job *job = task->job;
    val_t *o = yyjson_mut_obj(doc), *stop = yyjson_mut_arr(doc);
    yyjson_mut_obj_add_uint(doc, o, "n_ctx", job->model->ctx);
    yyjson_mut_obj_add_uint(doc, o, "n_predict", task->n_max);
    add_settings(doc, o, &task->sampling);
    for (size_t i = 0; i < job->asks.sampling.n_stop; i++)
        yyjson_mut_arr_append(stop, serve_string(doc, job->asks.stops[i]));
    yyjson_mut_obj_add_val(doc, o, "stop", stop);
    yyjson_mut_obj_add_bool(doc, o, "stream", job->asks.stream);
    yyjson_mut_obj_add_uint(doc, o, "n_indent", job->asks.n_indent);
    add_real(doc, o, "t_max_predict_ms", (double)job->asks.most_ms);
    return o;
}

/* "NAME_n", "NAME_ms", "NAME_per_token_ms", "NAME_per_second" */
static void add_rate(doc_t *doc, val_t *o, const char *name, size_t n, double seconds)
{
    const struct {
        const char *what;
        double value;
    } all[] = {{"ms", 1e3 * seconds},
               {"per_token_ms", n ? 1e3 * seconds / (double)n : 0},
               {"per_second", seconds > 0 ? (double)n / seconds : 0}};
    char key[48];
    snprintf(key, sizeof key, "%s_n", name);
    yyjson_mut_obj_add(o, yyjson_mut_strcpy(doc, key), yyjson_mut_uint(doc, n));
    for (size_t i = 0; i < PD_COUNT(all); i++) {
        snprintf(key, sizeof key, "%s_%s", name, all[i].what);
        yyjson_mut_obj_add(o, yyjson_mut_strcpy(doc, key), yyjson_mut_real(doc, all[i].value));
    }
}

static val_t *timings(doc_t *doc, const struct serve_task *task)
{
    val_t *o = yyjson_mut_obj(doc);
    size_t cached = pd_min(task->n_cached, task->n_prompt);
    yyjson_mut_obj_add_uint(doc, o, "cache_n", cached);
    add_rate(doc, o, "prompt", task->n_prompt - cached, task->prompt_s);
    add_rate(doc, o, "predicted", task->n_reply, task->reply_s);
    return o;
}

static val_t *prompt_text(doc_t *doc, const struct serve_task *task)
{
    char *text;
    size_t size;
    if (peridot_decode_special(&text, &size, task->job->work.vocab, task->tokens, task->n_prompt) != PERIDOT_OK) {
        cmd_json_fail();
        return NULL;
    }
    val_t *value = serve_text(doc, text, size);
    peridot_free(text);
    return value;
}

/* What every answer begins with, and every event: the text, and the tokens where they are asked for. */
static val_t *llama_begin(doc_t *doc, struct serve_task *task, val_t *content, bool stop)
{
    val_t *o = yyjson_mut_obj(doc), *tokens = yyjson_mut_arr(doc);
    size_t first = task->n_ids_sent;
    if (task->job->asks.token_ids) {
        tokens = serve_token_ids(doc, task->tokens + task->n_prompt + first, task->n_reply - first);
        task->n_ids_sent = task->n_reply;
    }
    yyjson_mut_obj_add_uint(doc, o, "index", task->index);
    yyjson_mut_obj_add_val(doc, o, "content", content);
    yyjson_mut_obj_add_val(doc, o, "tokens", tokens);
    yyjson_mut_obj_add_int(doc, o, "id_slot", 0);
    yyjson_mut_obj_add_bool(doc, o, "stop", stop);
    yyjson_mut_obj_add_uint(doc, o, "tokens_predicted", task->n_reply);
    yyjson_mut_obj_add_uint(doc, o, "tokens_evaluated", task->n_prompt);
    return o;
}

/* "timings/prompt_n" is prompt_n of timings; NULL: there is no such. */
static val_t *find_field(val_t *o, const char *path, size_t size)
{
    while (o) {
        const char *llama_end = memchr(path, '/', size);
        size_t n = llama_end ? (size_t)(llama_end - path) : size;
        o = yyjson_mut_obj_getn(o, path, n);
        if (!llama_end) break;
        path += n + 1, size -= n + 1;
    }
    return o;
}

/* The fields that are wanted, each under the name that it is asked for by. */
static val_t *choose_fields(doc_t *doc, val_t *o, yyjson_val *fields)
{
    val_t *chosen = yyjson_mut_obj(doc);
    size_t i, n;
    yyjson_val *each;
    if (!fields) return o;
    yyjson_arr_foreach(fields, i, n, each) {
        val_t *found = find_field(o, yyjson_get_str(each), yyjson_get_len(each));
        if (!found || yyjson_mut_obj_getn(chosen, yyjson_get_str(each), yyjson_get_len(each))) continue;
        yyjson_mut_obj_add(chosen, yyjson_mut_strn(doc, yyjson_get_str(each), yyjson_get_len(each)),
                           yyjson_mut_val_mut_copy(doc, found));
    }
    return chosen;
}

static val_t *whole(doc_t *doc, struct serve_task *task, val_t *content)
{
    const struct serve_job *job = task->job;
    const char *type = task->finish == SERVE_FINISH_LENGTH ? "limit" : task->stop ? "word" : "eos";
    val_t *o = llama_begin(doc, task, content, true);
    yyjson_mut_obj_add_val(doc, o, "model", serve_string(doc, serve_job_model(job)));
    yyjson_mut_obj_add_val(doc, o, "generation_settings", settings(doc, task));
    yyjson_mut_obj_add_val(doc, o, "prompt", prompt_text(doc, task));
    yyjson_mut_obj_add_bool(doc, o, "has_new_line", task->text.size && memchr(task->text.data, '\n', task->text.size));
    yyjson_mut_obj_add_bool(doc, o, "truncated", job->work.cut);
    yyjson_mut_obj_add_str(doc, o, "stop_type", type);
    yyjson_mut_obj_add_val(doc, o, "stopping_word", serve_string(doc, task->stop ? task->stop : ""));
    yyjson_mut_obj_add_uint(doc, o, "tokens_cached", task->n_prompt + task->n_reply);
    yyjson_mut_obj_add_val(doc, o, "timings", timings(doc, task));
    return choose_fields(doc, o, job->asks.fields);
}

static void llama_piece(struct serve_task *task, const char *text, size_t size)
{
    if (!size) return;
    doc_t *doc = cmd_json_new();
    yyjson_mut_doc_set_root(doc, llama_begin(doc, task, serve_text(doc, text, size), false));
    serve_send_event(task->job, NULL, doc);
}

static void llama_end(struct serve_job *job)
{
    for (size_t i = 0; i < job->work.n_tasks; i++) {
        doc_t *doc = cmd_json_new();
        yyjson_mut_doc_set_root(doc, whole(doc, &job->work.tasks[i], yyjson_mut_str(doc, "")));
        serve_send_event(job, NULL, doc);
    }
}

/* One, or a list where there are several prompts. */
static doc_t *llama_body(struct serve_job *job)
{
    doc_t *doc = cmd_json_new();
    val_t *list = yyjson_mut_arr(doc);
    for (size_t i = 0; i < job->work.n_tasks; i++) {
        struct serve_task *task = &job->work.tasks[i];
        yyjson_mut_arr_append(list, whole(doc, task, serve_text(doc, task->text.data, task->text.size)));
    }
    yyjson_mut_doc_set_root(doc, job->work.n_tasks == 1 ? yyjson_mut_arr_remove_first(list) : list);
    return doc;
}

/* Control tokens count in a prompt, which may be one that /apply-template made. */
static bool read_completion(struct pd_buffer *out, struct serve_job *job, const peridot_vocab *vocab,
                            yyjson_val *root)
{
    job->asks.special = true;
    return serve_read_texts(out, job, vocab, root);
}

const struct serve_interface serve_wire_completion = {
    .id = SERVE_COMPLETION, .path = "/completion", .kind = SERVE_TEXT, .input = "prompt", .schema = "json_schema",
    .errors = &serve_errors_llama, .stream_type = SERVE_EVENTS, .ping = ":\n\n", .read = read_completion,
    .piece = llama_piece, .end = llama_end, .body = llama_body,
};
const struct serve_interface serve_wire_infill = {
    .id = SERVE_INFILL, .path = "/infill", .kind = SERVE_TEXT, .input = "prompt", .schema = "json_schema",
    .errors = &serve_errors_llama, .stream_type = SERVE_EVENTS, .ping = ":\n\n", .read = serve_read_infill,
    .piece = llama_piece, .end = llama_end, .body = llama_body,
};

/* ---- a template ---- */

static bool llama_read_messages(struct serve_conversation *c, struct serve_job *job, yyjson_val *root)
{
    return serve_conversation_read(c, job, yyjson_obj_get(root, "messages"));
}

/* A bos at its beginning, which /completion puts before a prompt. */
static size_t count_bos(const peridot_vocab *vocab, const int32_t *ids, size_t n)
{
    int32_t *bos;
    size_t n_bos;
    bool begins = peridot_encode(&bos, &n_bos, vocab, "", 0, PERIDOT_ENCODE_BOS) == PERIDOT_OK && n_bos && n
               && ids[0] == bos[0];
    peridot_free(bos);
    return begins;
}

/* {"prompt": ...} */
static bool apply_template(struct pd_buffer *out, struct serve_job *job, const peridot_vocab *vocab,
                           yyjson_val *root)
{
    int32_t *ids;
    size_t n, size;
    char *text = NULL;
    job->asks.stream = false;
    bool good = serve_conversation_encode(&ids, &n, job, vocab, root);
    if (good) {
        size_t n_bos = count_bos(vocab, ids, n);
        peridot_status status = peridot_decode_special(&text, &size, vocab, ids + n_bos, n - n_bos);
        good = status == PERIDOT_OK || serve_refuse_status(&job->error, status);
    }
    peridot_free(ids);
    if (!good) return false;
    serve_put_text(out, "prompt", text, size);
    peridot_free(text);
    return true;
}

const struct serve_interface serve_wire_apply_template = {
    .id = SERVE_APPLY_TEMPLATE, .path = "/apply-template", .kind = SERVE_AT_ONCE, .input = "messages",
    .schema = "response_format", .errors = &serve_errors_llama, .read = apply_template,
    .read_messages = llama_read_messages,
};

/* ---- what GET answers: of the first model ---- */

static int refuse_loading(struct pd_buffer *out)
{
    struct serve_error error = {0};
    serve_refuse(&error, 503, NULL, NULL, "Loading model");
    serve_errors_llama.put(out, &error);
    return 503;
}

static void add_slot(doc_t *doc, val_t *o, const struct serve_server *server, uint32_t i, bool at_work)
{
    yyjson_mut_obj_add_uint(doc, o, "id", i);
    yyjson_mut_obj_add_uint(doc, o, "n_ctx", server->models->ctx);
    yyjson_mut_obj_add_bool(doc, o, "speculative", server->models->drafts);
    yyjson_mut_obj_add_bool(doc, o, "is_processing", at_work);
}

int serve_get_props(struct pd_buffer *out, struct serve_server *server, const char *path)
{
    const struct serve_model *m = server->models;
    (void)path;
    if (!m->known) return refuse_loading(out);
    doc_t *doc = cmd_json_new();
    val_t *root = yyjson_mut_obj(doc), *slot = yyjson_mut_obj(doc), *params = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_val(doc, root, "default_generation_settings", slot);
    add_slot(doc, slot, server, 0, false);
    add_settings(doc, params, &m->sampling);
    yyjson_mut_obj_add_val(doc, slot, "params", params);
    yyjson_mut_obj_add_uint(doc, root, "total_slots", server->args->n_parallel);
    yyjson_mut_obj_add_val(doc, root, "model_alias", serve_string(doc, m->id));
    yyjson_mut_obj_add_val(doc, root, "model_path", serve_string(doc, m->id));   /* without its folder */
    val_t *modalities = yyjson_mut_obj_add_obj(doc, root, "modalities");
    yyjson_mut_obj_add_bool(doc, modalities, "vision", m->sees);
    yyjson_mut_obj_add_bool(doc, modalities, "audio", false);
    yyjson_mut_obj_add_val(doc, root, "bos_token", serve_string(doc, m->bos));
    yyjson_mut_obj_add_val(doc, root, "eos_token", serve_string(doc, m->eos));
    yyjson_mut_obj_add_val(doc, root, "build_info", serve_string(doc, "peridot " PERIDOT_VERSION));
    yyjson_mut_obj_add_bool(doc, root, "is_sleeping", !m->loaded);
    serve_put_json(out, doc);
    return 200;
}

int serve_get_slots(struct pd_buffer *out, struct serve_server *server, const char *path)
{
    double n_running = serve_gauge_get(&server->metrics, SERVE_RUNNING);
    (void)path;
    if (!server->models->known) return refuse_loading(out);
    doc_t *doc = cmd_json_new();
    val_t *list = yyjson_mut_arr(doc);
    yyjson_mut_doc_set_root(doc, list);
    for (uint32_t i = 0; i < server->args->n_parallel; i++)
        add_slot(doc, yyjson_mut_arr_add_obj(doc, list), server, i, i < n_running);
    serve_put_json(out, doc);
    return 200;
}

/* ---- infill ---- */

enum { BYTES = 16 };           /* of a text for a token of the context: more of it is not even encoded */

struct ids {
    int32_t *at;               /* [n] */
    size_t n, capacity;
};

struct text {
    const char *data;
    size_t size;
};

static bool llama_put(struct ids *out, struct serve_job *job, const int32_t *ids, size_t n)
{
    if (pd_array_reserve(&out->at, &out->capacity, out->n, n, sizeof *ids, "tokens") != PERIDOT_OK)
        return serve_refuse_memory(job);
    if (n) memcpy(out->at + out->n, ids, n * sizeof *ids);
    out->n += n;
    return true;
}

/* Its tokens are the caller's to choose from: they have no limit but that of the text. */
static peridot_encode_limit limit_of(struct serve_job *job)
{
    peridot_encode_limit limit = serve_limit(job);
    limit.n_most = 0;
    return limit;
}

static bool llama_put_text(struct ids *out, struct serve_job *job, const peridot_vocab *vocab, struct text text,
                           unsigned flags)
{
    int32_t *ids;
    size_t n;
    peridot_encode_limit limit = limit_of(job);
    const peridot_plain plain = {.size = sizeof plain, .text = text.data, .text_size = text.size, .flags = flags,
                                 .limit = &limit};
    peridot_status status = peridot_encode_plain(&ids, &n, vocab, &plain);
    bool good = status == PERIDOT_OK ? llama_put(out, job, ids, n) : serve_refuse_encoding(job, &limit, status);
    peridot_free(ids);
    return good;
}

/* ---- the frame ---- */

/* The whole prompt of two texts: bos, where there is one, and the texts between three tokens. */
static bool llama_encode(struct ids *out, struct serve_job *job, const peridot_vocab *vocab, struct text prefix,
                         struct text suffix)
{
    peridot_encode_limit limit = limit_of(job);
    const peridot_infill infill = {.size = sizeof infill, .prefix = prefix.data, .prefix_size = prefix.size,
                                   .suffix = suffix.data, .suffix_size = suffix.size, .limit = &limit};
    peridot_status status = peridot_encode_infill(&out->at, &out->n, vocab, &infill);
    return status == PERIDOT_OK || serve_refuse_encoding(job, &limit, status);
}

/* The parts of a text that an editor sends, without what could not fit by its bytes alone: of what stands before the
 * place its end, of what stands after it its beginning. Characters stay whole. */
static struct text last_of(struct text text, size_t most)
{
    size_t cut = text.size > most ? text.size - most : 0;
    while (cut && cut < text.size && ((unsigned char)text.data[cut] & 0xc0) == 0x80) cut++;
    return (struct text){text.data + cut, text.size - cut};
}

static struct text first_of(struct text text, size_t most)
{
    size_t size = pd_min(text.size, most);
    while (size < text.size && size && ((unsigned char)text.data[size] & 0xc0) == 0x80) size--;
    return (struct text){text.data, size};
}

/* ---- other files ---- */

/* What vocabularies call the tokens before the name of a repository and before that of a file. */
static const char *const marks[][2] = {
    {"<|repo_name|>", "<|file_sep|>"},   /* Qwen Coder */
    {"<repo_name>", "<file_sep>"},       /* StarCoder 2 */
    {"<reponame>", "<filename>"},        /* StarCoder, Granite Code */
};

/* Row of `marks` that the vocabulary has; their count: none. */
static size_t llama_find_marks(const peridot_vocab *vocab)
{
    size_t i, n_found = 0;
    for (i = 0; i < PD_COUNT(marks) && n_found < 2; i += n_found < 2) {
        n_found = 0;
        for (size_t k = 0; k < 2; k++) {
            int32_t *ids;
            size_t n = 0;
            bool good = peridot_encode(&ids, &n, vocab, marks[i][k], strlen(marks[i][k]), PERIDOT_ENCODE_SPECIAL)
                     == PERIDOT_OK;
            n_found += good && n == 1;
            peridot_free(ids);
        }
    }
    return i;
}

/* "": there is none. */
static struct text llama_text_of(yyjson_val *value)
{
    return yyjson_is_str(value) ? (struct text){yyjson_get_str(value), yyjson_get_len(value)} : (struct text){"", 0};
}

/* A file, or what stands between files where they have no names. */
static bool put_file(struct ids *out, struct serve_job *job, const peridot_vocab *vocab, size_t row, yyjson_val *file)
{
    static const char between[] = "\n\n--- snippet ---\n\n";
    yyjson_val *name = yyjson_obj_get(file, "filename");
    const struct text given = name ? llama_text_of(name) : (struct text){"tmp", 3},
                      text = llama_text_of(yyjson_obj_get(file, "text"));
    size_t most = (size_t)BYTES * job->model->ctx;
    job->work.cut = job->work.cut || text.size > most;
    if (row == PD_COUNT(marks)) {
        if (!llama_put_text(out, job, vocab, (struct text){between, sizeof between - 1}, 0)) return false;
    } else if (!llama_put_text(out, job, vocab, (struct text){marks[row][1], strlen(marks[row][1])},
                               PERIDOT_ENCODE_SPECIAL)
               || !llama_put_text(out, job, vocab, first_of(given, 256), 0)
               || !llama_put_text(out, job, vocab, (struct text){"\n", 1}, 0)) return false;
    return llama_put_text(out, job, vocab, first_of(text, most), 0);
}

static bool check_files(struct serve_job *job, yyjson_val *files)
{
    size_t i, n;
    yyjson_val *each;
    bool good = !files || yyjson_is_null(files) || yyjson_is_arr(files);
    yyjson_arr_foreach(files, i, n, each) {
        yyjson_val *name = yyjson_obj_get(each, "filename");
        good = good && yyjson_is_str(yyjson_obj_get(each, "text")) && (!name || yyjson_is_str(name));
    }
    return good
        || serve_refuse_type(&job->error, "input_extra", "must be a list of {\"filename\": ..., \"text\": ...}");
}

/* The files of the list that fit `room` tokens, the last first, in the list's order. */
static bool put_files(struct ids *out, struct serve_job *job, const peridot_vocab *vocab, yyjson_val *files,
                      uint64_t room)
{
    static const char name[] = "myproject\n";   /* as llama.cpp's server has it: clients say none */
    size_t row = llama_find_marks(vocab), n = yyjson_arr_size(files), first = n;
    struct ids all = {0}, file = {0};
    bool good = true, named = row < PD_COUNT(marks);
    if (!n) return true;
    if (named)
        good = llama_put_text(&all, job, vocab, (struct text){marks[row][0], strlen(marks[row][0])},
                              PERIDOT_ENCODE_SPECIAL)
            && llama_put_text(&all, job, vocab, (struct text){name, sizeof name - 1}, 0);
    size_t n_all = all.n;
    while (good && first > 0) {   /* how many there is room for */
        file.n = 0;
        good = put_file(&file, job, vocab, row, yyjson_arr_get(files, first - 1));
        if (n_all + file.n > room) break;
        n_all += file.n;
        first--;
    }
    job->work.cut = job->work.cut || first > 0;
    for (size_t i = first; i < n && good; i++) good = put_file(&all, job, vocab, row, yyjson_arr_get(files, i));
    if (good && first < n) good = llama_put(out, job, all.at, all.n);
    free(all.at);
    free(file.at);
    return good;
}

/* ---- all of it ---- */

/* The tokens of either text, without those of the frame around them. */
struct parts {
    struct ids frame, prefix, suffix;
    struct text given[2];
};

static bool encode_parts(struct parts *p, struct serve_job *job, const peridot_vocab *vocab)
{
    static const struct text none = {"", 0};
    size_t most = (size_t)BYTES * job->model->ctx;
    job->work.cut = p->given[0].size > most || p->given[1].size > most;
    return llama_encode(&p->frame, job, vocab, none, none) && llama_encode(&p->prefix, job, vocab,
                                                                           last_of(p->given[0], most), none)
        && llama_encode(&p->suffix, job, vocab, none, first_of(p->given[1], most));
}

/* bos, files, PREFIX before SUFFIX after MIDDLE. Of `room` tokens the text before the place may have three quarters,
 * or what the other leaves. */
static bool compose(struct ids *out, struct serve_job *job, const peridot_vocab *vocab, struct parts *p,
                    yyjson_val *files)
{
    uint32_t ctx = job->model->ctx;
    uint64_t reply = job->asks.max_given ? pd_min(job->asks.n_max, ctx / 2) : serve_reserve(ctx);
    size_t n_bos = p->frame.n - 3, n_prefix = p->prefix.n - p->frame.n, n_suffix = p->suffix.n - p->frame.n;
    uint64_t room = ctx > reply + p->frame.n + 1 ? ctx - reply - p->frame.n - 1 : 0;
    size_t most = (size_t)pd_max(room - room / 4, room > n_suffix ? room - n_suffix : 0);
    size_t keep = (size_t)pd_min(n_prefix, most), after = (size_t)pd_min(n_suffix, room - keep);
    job->work.cut = job->work.cut || keep < n_prefix || after < n_suffix;
    const int32_t *mark = p->frame.at + n_bos;
    return llama_put(out, job, p->frame.at, n_bos) && put_files(out, job, vocab, files, room - keep - after)
        && llama_put(out, job, mark, 1) && llama_put(out, job, p->prefix.at + n_bos + 1 + n_prefix - keep, keep)
        && llama_put(out, job, mark + 1, 1) && llama_put(out, job, p->suffix.at + n_bos + 2, after)
        && llama_put(out, job, mark + 2, 1);
}

bool serve_read_infill(struct pd_buffer *out, struct serve_job *job, const peridot_vocab *vocab, yyjson_val *root)
{
    struct pd_buffer before = {0};
    struct ids all = {0};
    yyjson_val *files = yyjson_obj_get(root, "input_extra");
    const struct text prefix = llama_text_of(yyjson_obj_get(root, "input_prefix")),
                      prompt = llama_text_of(yyjson_obj_get(root, "prompt")),
                      suffix = llama_text_of(yyjson_obj_get(root, "input_suffix"));
    (void)out;
    if (!peridot_vocab_has_infill(vocab))
        return serve_refuse(&job->error, 501, "unsupported_model", NULL, "infill is not supported: %s's vocabulary has "
                            "no tokens for fill-in-the-middle", job->model->id);
    if (!check_files(job, files)) return false;
    pd_buffer_add(&before, prefix.data, prefix.size);
    pd_buffer_add(&before, prompt.data, prompt.size);   /* what was typed at the place */
    struct parts p = {.given = {{before.size ? before.data : "", before.size}, suffix}};
    bool good = (!before.failed || serve_refuse_memory(job)) && encode_parts(&p, job, vocab)
             && compose(&all, job, vocab, &p, files) && serve_tasks_make(job, 1) && serve_tasks_add(job, all.at, all.n);
    pd_buffer_free(&before);
    free(all.at);
    peridot_free(p.frame.at);
    peridot_free(p.prefix.at);
    peridot_free(p.suffix.at);
    return good;
}
