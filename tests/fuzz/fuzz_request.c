/* A request to peridot serve and its answer. The first byte says of which interface, from '0' on for a model with a
 * small context, then the same for one whose template is a program, and for one with room for tools. The body comes
 * first; the parts after it are what the model writes, each with its kind in the first byte: text ('t'), a thought
 * ('h'), a call's name ('n'), its arguments ('a'), or its end ('e'). Whatever is answered is JSON, in one piece or in
 * events. */
#include "vocabulary.h"

#include "grammar/calls/calls.h"
#include "serve/pictures/pictures_.h"
#include "serve/pictures/pictures.h"
#include "serve/stages/stages.h"
#include "serve/stages/stages_.h"
#include "serve/job/job.h"
#include "serve/wire/wire.h"

#include <stdlib.h>
#include <string.h>

enum { N_READ = SERVE_LIST_TOOLS };   /* interfaces of bodies that the reader reads */

/* ---- what is wrong with it ---- */

static void check_json(const char *text, size_t size)
{
    yyjson_doc *doc = yyjson_read(text, size, 0);
    FUZZ_CHECK(doc);
    yyjson_doc_free(doc);
}

static void check_error(const struct serve_job *job)
{
    struct pd_buffer out = {0};
    FUZZ_CHECK(job->error.status >= 400 && job->error.message[0]);
    job->api->errors->put(&out, &job->error);
    check_json(out.data, out.size);
    pd_buffer_free(&out);
}

/* A text and its reply fit the context, whatever was left out for that. */
static void check_tasks(const struct serve_job *job)
{
    for (size_t i = 0; i < job->work.n_tasks; i++)
        FUZZ_CHECK(job->work.tasks[i].n_prompt + job->work.tasks[i].n_max <= job->model->ctx);
    FUZZ_CHECK(job->work.n_dropped == 0 || job->asks.drops);
}

/* ---- its pictures ---- */

/* They are looked for in a job of their own: this one's model does not see. */
static void read_pictures(const struct serve_job *job)
{
    struct serve_job *seeing = serve_job_new(job->server, job->api);
    FUZZ_CHECK(seeing);
    seeing->asks.document = job->asks.document;
    if (!serve_job_find_pictures(seeing)) check_error(seeing);
    for (size_t i = 0; i < seeing->pictures.n; i++) {
        struct pd_buffer file = {0};
        seeing->error = (struct serve_error){0};
        if (!serve_picture_data(&file, seeing, "image 1", seeing->pictures.list[i].part)) check_error(seeing);
        else FUZZ_CHECK(file.size <= SERVE_PICTURE_MAX && !serve_picture_is_remote(seeing->pictures.list[i].part));
        pd_buffer_free(&file);
    }
    seeing->asks.document = NULL;
    serve_job_drop(seeing);
}

/* ---- its answer ---- */

static void end_call(struct serve_call *call)
{
    yyjson_doc *doc = yyjson_read(call->arguments.data, call->arguments.size, 0);
    call->complete = yyjson_is_obj(yyjson_doc_get_root(doc));
    yyjson_doc_free(doc);
}

/* Calls are of jobs with tools, and after the first there is no more text. */
static void write_call(struct serve_task *task, char kind, const struct fuzz_part *part)
{
    struct serve_call *calls = task->calls, *last = calls ? &calls[task->n_calls - 1] : NULL;
    if (!task->job->asks.tools || !task->job->api->call) return;
    if (kind == 'n' && (!last || last->complete)) {
        task->calls = realloc(calls, (task->n_calls + 1) * sizeof *calls);
        FUZZ_CHECK(task->calls);
        last = &task->calls[task->n_calls++];
        *last = (struct serve_call){.id = "call_0"};
        for (size_t i = 0; i < part->size && i < PD_MAX_CALL_NAME; i++)
            last->name[i] = pd_call_is_name_char((char)part->data[i]) ? (char)part->data[i] : '_';
    }
    if (!last || last->complete) return;
    if (kind == 'a') pd_buffer_add(&last->arguments, part->data, part->size);
    if (kind == 'e') end_call(last);
}

/* A token a piece, as far as there is room. False: there is none. */
static bool write_piece(struct serve_task *task, struct fuzz_part part)
{
    static const float row[300];
    const int32_t token = (int32_t)(task->n_reply % 200);
    const char kind = part.size ? (char)part.data[0] : 't';
    if (task->n_reply == task->n_max) return false;
    if (part.size) part.data++, part.size--;
    task->tokens[task->n_prompt + task->n_reply++] = token;
    if (kind == 'h' && task->job->kind == SERVE_CONVERSATION) {
        task->n_thought++;
        pd_buffer_add(&task->thought, part.data, part.size);
    } else if (kind == 't' && !task->n_calls) {
        if (task->job->asks.logprobs) {
            FUZZ_CHECK(serve_take_logits(task, NULL, 0, row, 300));
            serve_take_token(task, token);
        }
        pd_buffer_add(&task->text, part.data, part.size);
    } else write_call(task, kind, &part);
    serve_write_piece(task);
    return true;
}

static void finish(struct serve_task *task)
{
    bool called = task->n_calls && task->calls[task->n_calls - 1].complete, full = task->n_reply == task->n_max;
    size_t n = task->job->asks.dimensions ? task->job->asks.dimensions : task->job->model->embedding_size;
    task->finish = called ? SERVE_FINISH_CALLS : full ? SERVE_FINISH_LENGTH : SERVE_FINISH_STOP;
    if (task->job->kind == SERVE_VECTORS) {
        task->vector = calloc(n, sizeof *task->vector);
        FUZZ_CHECK(task->vector);
        task->vector_size = n;
    }
    serve_write_task_end(task);
}

/* A stream: lines of JSON, or events with a line of it each. */
static void check_stream(const struct serve_job *job)
{
    static const char data[] = "data: ", done[] = "[DONE]";
    bool events = strcmp(job->api->stream_type, SERVE_EVENTS) == 0;
    const char *at = job->answer.out.data, *end = at + job->answer.out.size;
    for (const char *next; at < end; at = next + 1) {
        next = memchr(at, '\n', (size_t)(end - at));
        FUZZ_CHECK(next);
        if (events && (size_t)(next - at) < sizeof data) continue;   /* between events */
        if (events && memcmp(at, data, sizeof data - 1) != 0) {
            FUZZ_CHECK(memcmp(at, "event: ", 7) == 0);
            continue;
        }
        if (events) at += sizeof data - 1;
        if ((size_t)(next - at) != sizeof done - 1 || memcmp(at, done, sizeof done - 1) != 0)
            check_json(at, (size_t)(next - at));
    }
}

static void answer(struct serve_job *job, struct fuzz_part reply)
{
    struct fuzz_part part;
    size_t i = 0;
    serve_write_begin(job);
    while (serve_kind_writes(job->kind) && fuzz_next_part(&part, &reply)
           && write_piece(&job->work.tasks[i++ % job->work.n_tasks], part)) {}
    for (i = 0; i < job->work.n_tasks; i++) finish(&job->work.tasks[i]);
    serve_write_end(job);
    FUZZ_CHECK(job->answer.done && !job->answer.out.failed);
    if (job->asks.stream) check_stream(job);
    else check_json(job->answer.out.data, job->answer.out.size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct serve_args args = {.full = SERVE_FULL_DROP, .allowed_urls = {{"127.0.0.1"}, 1}};
    static const struct serve_thoughts thoughts;
    static struct serve_server server = {.args = &args, .thoughts = &thoughts};
    if (size == 0) return 0;
    server.n_models = 1;
    if (!server.models->id[0]) strcpy(server.models->id, "tiny");
    server.models->embedding_size = 64;
    const uint8_t first = (uint8_t)(data[0] - '0');
    const enum serve_api api = first % N_READ;
    bool runs = first / N_READ == 1;
    server.models->ctx = first < N_READ ? 256 : 2048;
    server.models->runs_template = runs;
    struct fuzz_part input = {data + 1, size - 1}, body;
    struct serve_job *job = serve_job_new(&server, serve_interface_get(api));
    struct pd_buffer out = {0};
    FUZZ_CHECK(job && fuzz_next_part(&body, &input));
    pd_buffer_add(&job->body.text, body.data, body.size);
    const peridot_vocab *vocab = fuzz_vocab(runs ? FUZZ_VOCAB_PROGRAM : FUZZ_VOCAB_LLAMA3);
    job->work.vocab = peridot_vocab_ref(vocab);
    bool good = serve_read_body(&out, job, vocab) && serve_job_compile(job, vocab, 0) == PERIDOT_OK;
    if (job->asks.document) read_pictures(job);
    if (!good) check_error(job);
    else if (out.size) check_json(out.data, out.size);
    else if (job->kind != SERVE_AT_ONCE) {
        check_tasks(job);
        answer(job, input);
    }
    pd_buffer_free(&out);
    serve_job_drop(job);
    return 0;
}
