/* peridot rerank: how well documents answer a query, best first, by a model that was trained to say so. */
#include "../base/base.h"
#include "../cli/cli.h"
#include "../console/console.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { N_SEQUENCES = 32, N_AT_ONCE = 256 };   /* requests that the session has at once */

struct rerank_args {
    struct cmd_model_args model;
    const char *query, *instruct, *file;
    uint32_t top, ctx, chunk, kv;
    bool json;
};

static const struct cmd_option options[] = {
    CMD_MODEL_OPTION_OR("It must be a reranker, which the demo model is not."),
    CMD_DEVICE_OPTIONS,
    {.name = "query", .metavar = "TEXT", .kind = CMD_TEXT, .offset = offsetof(struct rerank_args, query),
     .required = true, .help = "What the documents are to answer."},
    {.name = "instruct", .metavar = "TEXT", .kind = CMD_TEXT, .offset = offsetof(struct rerank_args, instruct),
     .help = "The task, in English. Without it: Given a web search query, retrieve relevant passages that answer the "
             "query."},
    {.name = "top", .metavar = "N", .kind = CMD_U32, .offset = offsetof(struct rerank_args, top), .fallback = "0",
     .help = "Write only the best N; 0: all."},
    {.name = "json", .kind = CMD_FLAG, .offset = offsetof(struct rerank_args, json),
     .help = "Write an array of objects with index, relevance_score and document, on a line."},
    {.name = "ctx", .metavar = "N", .kind = CMD_U32, .offset = offsetof(struct rerank_args, ctx), .fallback = "0",
     .help = "The most tokens of a prompt, which holds the query and a document; 0: the model's own, or what memory "
             "allows up to 8192."},
    CMD_CHUNK_OPTION(struct rerank_args),
    CMD_KV_OPTION(struct rerank_args),
    {.metavar = "FILE", .kind = CMD_TEXT, .offset = offsetof(struct rerank_args, file),
     .help = "The documents, one a line. Without it, or with -, standard input."},
};

struct document {
    const struct cmd_ranking *ranking;
    const char *text;
    size_t index;
    peridot_request *request;
    double score;
};

struct documents {
    char *data;                 /* the texts, each terminated */
    struct document *at;        /* [n] */
    size_t n, capacity;
};

/* ---- reading ---- */

static peridot_status add_document(struct documents *d, char *text, size_t size)
{
    text[size] = '\0';
    if (strlen(text) < size)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "document %zu has a NUL in it", d->n);
    PD_TRY(pd_array_reserve(&d->at, &d->capacity, d->n, 1, sizeof *d->at, "documents"));
    d->at[d->n] = (struct document){.text = text, .index = d->n};
    d->n++;
    return PERIDOT_OK;
}

static peridot_status read_documents(struct documents *d, const char *file)
{
    size_t size, i = 0;
    if (file && strcmp(file, "-") != 0) PD_TRY(cmd_read_file(&d->data, &size, file));
    else PD_TRY(cmd_read_all(&d->data, &size, stdin, "standard input"));
    while (i < size) {
        const char *newline = memchr(d->data + i, '\n', size - i);
        size_t n = newline ? (size_t)(newline - d->data) - i : size - i;
        PD_TRY(add_document(d, d->data + i, n));
        i += n + 1;
    }
    return d->n ? PERIDOT_OK : pd_fail(PERIDOT_ERROR_ARGUMENT, "there are no documents");
}

/* ---- scores ---- */

static bool take_row(void *user, peridot_sequence *sequence, uint32_t pos, const float *row, size_t n)
{
    struct document *document = user;
    (void)sequence, (void)pos, (void)n;
    document->score = cmd_ranking_score(document->ranking, row);
    return true;
}

static peridot_status submit(struct document *document, peridot_session *session, const struct cmd_ranking *ranking)
{
    int32_t *ids;
    size_t n;
    uint32_t ctx = peridot_session_ctx(session);
    document->ranking = ranking;
    peridot_status status = cmd_ranking_encode(&ids, &n, ranking, document->text);
    if (status != PERIDOT_OK) return pd_fail(status, "document %zu: %s", document->index, peridot_last_error());
    peridot_request_params params = {.size = sizeof params, .prompt = ids, .n_prompt = n, .user = document};
    cmd_ranking_want(&params, ranking, take_row);
    status = n <= ctx ? peridot_request_submit(&document->request, session, &params)
        : pd_fail(PERIDOT_ERROR_ARGUMENT, "the prompt of document %zu has %zu tokens and the context %" PRIu32
                  " positions (--ctx)", document->index, n, ctx);
    free(ids);
    return status;
}

static peridot_status run_requests(peridot_session *session)
{
    size_t n_running = 1;
    while (n_running) {
        if (cmd_interrupted()) return pd_fail(PERIDOT_CANCELLED, "stopped");
        PD_TRY(peridot_session_run(session, &n_running));
    }
    return PERIDOT_OK;
}

static peridot_status score(struct document *documents, size_t n, peridot_session *session,
                            const struct cmd_ranking *ranking)
{
    peridot_status status = PERIDOT_OK;
    for (size_t i = 0; i < n && status == PERIDOT_OK; i++) status = submit(&documents[i], session, ranking);
    if (status == PERIDOT_OK) status = run_requests(session);
    for (size_t i = 0; i < n && status == PERIDOT_OK; i++) peridot_request_done(documents[i].request, &status, NULL);
    for (size_t i = 0; i < n; i++) peridot_request_free(documents[i].request);
    return status;
}

static peridot_status score_all(struct documents *d, const struct rerank_args *args)
{
    peridot_session_params params = {.size = sizeof params, .ctx = args->ctx, .chunk = args->chunk,
                                     .kv_type = (peridot_kv_type)args->kv, .n_sequences = N_SEQUENCES};
    struct cmd_ranking ranking;
    peridot_model *model = NULL;
    peridot_session *session = NULL;
    const peridot_vocab *vocab = NULL;
    int32_t labels[2];
    peridot_status status = cmd_model_open_text(&model, &args->model, NULL);
    if (status == PERIDOT_OK && !(vocab = peridot_model_vocab(model))) status = PERIDOT_ERROR_UNSUPPORTED;
    if (status == PERIDOT_OK) cmd_ranking_labels(labels, model);
    if (status == PERIDOT_OK) status = cmd_ranking_begin(&ranking, vocab, labels, args->instruct, args->query);
    if (status == PERIDOT_OK)
        params.n_positions = args->ctx ? args->ctx : (uint32_t)pd_min(peridot_model_get_info(model)->ctx_max, 8192);
    if (status == PERIDOT_OK) status = cmd_session_create(&session, model, &params);
    /* what the prompts have in common is evaluated with the first */
    if (status == PERIDOT_OK) status = score(d->at, 1, session, &ranking);
    for (size_t i = 1; i < d->n && status == PERIDOT_OK; i += N_AT_ONCE)
        status = score(d->at + i, (size_t)pd_min(d->n - i, N_AT_ONCE), session, &ranking);
    peridot_session_free(session);
    peridot_model_close(model);
    return status;
}

/* ---- results ---- */

static int by_score(const void *left, const void *right)
{
    const struct document *a = left, *b = right;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static void print_columns(const struct document *d, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        printf("%.6f\t%zu\t", d[i].score, d[i].index);
        cmd_print_column(stdout, d[i].text, strlen(d[i].text));
        fputc('\n', stdout);
    }
}

static void rerank_print_json(const struct document *d, size_t n)
{
    fputc('[', stdout);
    for (size_t i = 0; i < n; i++) {
        printf("%s{\"index\": %zu, \"relevance_score\": %.9g, \"document\": ", i ? ", " : "", d[i].index, d[i].score);
        cmd_json_string(stdout, d[i].text, strlen(d[i].text));
        fputc('}', stdout);
    }
    fputs("]\n", stdout);
}

static int run_rerank(const struct cmd_command *command, const void *arguments)
{
    const struct rerank_args *args = arguments;
    struct documents d = {0};
    cmd_interrupt_watch();
    peridot_status status = cmd_model_need_head(&args->model, CMD_HEAD_LANGUAGE | CMD_HEAD_RERANKER, command->name);
    if (status == PERIDOT_OK) status = read_documents(&d, args->file);
    if (status == PERIDOT_OK) status = score_all(&d, args);
    if (status == PERIDOT_OK) {
        qsort(d.at, d.n, sizeof *d.at, by_score);
        (args->json ? rerank_print_json : print_columns)(d.at, args->top ? (size_t)pd_min(args->top, d.n) : d.n);
    }
    free(d.at);
    free(d.data);
    return cmd_exit(status);
}

const struct cmd_command cmd_rerank = {
    .name = "rerank",
    .summary = "sort documents by how well they answer a query",
    .description =
        "Writes a line for each document, best first: its score, its index, which counts lines from 0, and the "
        "document, with tabs between them. The score is the probability, from 0 to 1, that the model answers yes and "
        "not no when it is asked whether the document meets the query, as Qwen3-Reranker is. What is common to the "
        "prompts, all before the document, is evaluated once.\n\n"
        "Models whose vocabulary lacks the tokens yes, no, or those of ChatML are refused. Control tokens in documents "
        "have no meaning.",
    .examples = "peridot rerank -m qwen3-reranker-0.6b --query \"Which stones do volcanoes make?\" paragraphs.txt\n"
                "peridot rerank -m qwen3-reranker-0.6b --query \"How to rename a file?\" --top 5 --json < pages.txt",
    CMD_ARGUMENTS(options, struct rerank_args),
    .run = run_rerank,
};
