/* The body of a request to peridot serve, read up to the tokens of its texts: the first byte says of which interface,
 * from '0' on. A refusal is JSON. */
#include "vocabulary.h"

#include "serve/read.h"
#include "serve/server.h"
#include "serve/wire.h"

#include <string.h>

static void check_error(const struct serve_job *job)
{
    struct serve_buffer out = {0};
    FUZZ_CHECK(job->error.status >= 400 && job->error.message[0]);
    job->api->errors->put(&out, &job->error);
    yyjson_doc *doc = yyjson_read(out.data, out.size, 0);
    FUZZ_CHECK(doc);
    yyjson_doc_free(doc);
    serve_buffer_free(&out);
}

/* A text and its reply fit the context, whatever was left out for that. */
static void check_tasks(const struct serve_job *job)
{
    for (size_t i = 0; i < job->n_tasks; i++)
        FUZZ_CHECK(job->tasks[i].n_prompt + job->tasks[i].n_max <= job->model->ctx);
    FUZZ_CHECK(job->n_dropped == 0 || job->drops);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct serve_args args = {.full = SERVE_FULL_DROP};
    static struct serve_server server = {.args = &args};
    if (size == 0) return 0;
    server.n_models = 1;
    if (!server.models->id[0]) strcpy(server.models->id, "tiny");
    server.models->embedding_size = 64;
    server.models->ctx = 256;
    const enum serve_api api = (uint8_t)(data[0] - '0') % SERVE_N_APIS;
    struct serve_job *job = serve_job_new(&server, serve_interface_get(api));
    struct serve_buffer out = {0};
    FUZZ_CHECK(job);
    serve_put(&job->body, data + 1, size - 1);
    const peridot_vocab *vocab = fuzz_vocab(FUZZ_VOCAB_LLAMA3);
    if (!serve_read_body(&out, job, vocab) || serve_job_compile(job, vocab, 0) != PERIDOT_OK) check_error(job);
    else if (job->kind != SERVE_AT_ONCE) check_tasks(job);
    serve_buffer_free(&out);
    serve_job_drop(job);
    return 0;
}
