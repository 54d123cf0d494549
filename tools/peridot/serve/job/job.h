/* A job is a request from its body to its answer. Here are the job, its stages, what waits at them, and its tasks; the
 * server that it belongs to, with its models, and the interface that it came by. */
#ifndef PERIDOT_COMMAND_SERVE_JOB_JOB_H
#define PERIDOT_COMMAND_SERVE_JOB_JOB_H

#include "../../base/base.h"
#include "../../cli/cli.h"
#include "../common/common.h"
#include "peridot.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* ---- stages ---- */

/* A job has a stage, and at each stage an owner: the threads of one kind, which alone move it on, and alone touch it
 * but for what the structs of a job say. It goes to a stage by serve_job_to, and from then on is the next owner's:
 * whoever moved it does not look at it again, but for the connection, which has what is under the answer's lock. */

enum serve_stage {
    SERVE_RECEIVED,            /* its body comes in */
    SERVE_READING,             /* its body is parsed, and its pictures are found */
    SERVE_LOADING,             /* its model is to be opened */
    SERVE_PICTURES,            /* its pictures are read, one at a turn */
    SERVE_RETURNED,            /* it has what it lacked, and a reader is to go on with it */
    SERVE_ENCODING,            /* its body becomes tasks, or is answered */
    SERVE_TRYING,              /* what its reply must keep to is compiled: with a little work, */
    SERVE_COMPILING,           /* or with all that it may take */
    SERVE_QUEUED,              /* its tasks wait for the device */
    SERVE_AT_WORK,             /* one of them was begun */
    SERVE_CALLING,             /* a tool is called, or all are listed */
    SERVE_DONE,                /* the answer is complete */
    SERVE_N_STAGES
};

/* Jobs that wait for a kind of threads, in the order in which they came. */
struct serve_queue {
    pthread_mutex_t *lock;     /* these threads', of what follows */
    pthread_cond_t *changed;
    struct serve_job *first;
    struct serve_fair fair;
    bool closed;               /* what comes is refused, as the server ends */
};

/* A row of the table (serve_stages of stages.h). */
struct serve_stage_row {
    enum serve_owner owner;
    struct serve_queue *(*queue)(const struct serve_job *job);   /* where it waits; NULL: the step follows at once */
    void (*step)(struct serve_job *job);   /* does what the stage is for, and moves the job on; NULL: the engine's
                                              rounds do, for several jobs at a time */
    unsigned next;             /* the set of stages that may follow */
};

/* Moves the job: into the stage's queue, or through its step. A job that comes to a closed queue is refused. */
void serve_job_to(struct serve_job *job, enum serve_stage stage);
/* By whoever took it out of a queue, without the lock. */
void serve_job_step(struct serve_job *job);
/* The step of SERVE_DONE: gives the error, if there is one, and lets go of the job. */
void serve_job_finish(struct serve_job *job);

void serve_queue_init(struct serve_queue *queue, pthread_mutex_t *lock, pthread_cond_t *changed);
/* Under the lock: takes out the one whose turn it is, or NULL: there is none that can be taken now; or all. */
struct serve_job *serve_queue_next(struct serve_queue *queue,
                                   uint64_t (*cost)(const struct serve_job *job, const void *user), const void *user);
struct serve_job *serve_queue_take_all(struct serve_queue *queue);
/* Refuses what waits, and what comes. */
void serve_queue_close(struct serve_queue *queue);

/* ---- job ---- */

struct MHD_Connection;
struct serve_server;
struct serve_interface;
struct serve_response;

/* The one list of interfaces: X(ID, name). Each is the row serve_wire_NAME of a file in wire/ (tools: in stages/). */
#define SERVE_INTERFACES(X) \
    X(CHAT, chat) X(COMPLETIONS, completions) X(RESPONSES, responses) X(EMBEDDINGS, embeddings) \
    X(TOKENIZE, tokenize) X(DETOKENIZE, detokenize) X(MESSAGES, messages) X(COUNT_TOKENS, count_tokens) \
    X(OLLAMA_CHAT, ollama_chat) X(GENERATE, generate) X(EMBED, embed) X(EMBED_ONE, embed_one) X(SHOW, show) \
    X(RERANK, rerank) X(COMPLETION, completion) X(INFILL, infill) X(APPLY_TEMPLATE, apply_template) \
    X(LIST_TOOLS, list_tools) X(CALL_TOOL, call_tool)

enum serve_api {
#define API(ID, name) SERVE_##ID,
    SERVE_INTERFACES(API)
#undef API
    SERVE_N_APIS
};

/* What a job asks for: a reply, the continuation of a text, vectors, scores of documents, what the reader answers
 * without a device, or what needs no model, as tools do. */
enum serve_kind { SERVE_CONVERSATION, SERVE_TEXT, SERVE_VECTORS, SERVE_SCORES, SERVE_AT_ONCE, SERVE_TOOLS };

static inline bool serve_kind_writes(enum serve_kind kind) { return kind == SERVE_CONVERSATION || kind == SERVE_TEXT; }

enum {
    SERVE_MAX_TOP = 20,        /* alternatives of a token */
    SERVE_MAX_STOPS = 16,
    SERVE_MAX_BREAKERS = 64,
    SERVE_MAX_BREAKER = 64,    /* bytes of one */
    SERVE_MAX_CHOICES = 16,
    SERVE_MAX_ADAPTERS = 32,
    SERVE_MAX_TASKS = 2048     /* of a job: its texts times its choices */
};

enum serve_finish { SERVE_FINISH_NONE, SERVE_FINISH_STOP, SERVE_FINISH_LENGTH, SERVE_FINISH_CALLS };

struct serve_logprob {
    int32_t token;
    float value;
    uint32_t n_top;
    struct serve_alternative {
        int32_t token;
        float value;
    } top[SERVE_MAX_TOP];      /* likeliest first */
};

/* A call of a function, in a reply. */
struct serve_call {
    char id[32];
    char name[72];
    struct pd_buffer arguments;
    bool complete;
    bool begun, ended;         /* there was an event of its begin, and of its end */
    size_t n_sent;             /* bytes of the arguments in events */
};

/* A text that is written or read. The reader makes it, and from then on it is the engine's; counts of tokens may be
 * read at any time. */
struct serve_task {
    struct serve_job *job;
    struct serve_task *next;   /* the engine's, in order */
    uint32_t index;            /* of the job's tasks */
    int32_t *tokens;           /* [n_prompt + n_reply], of capacity n_prompt + n_max */
    size_t n_prompt;
    atomic_size_t n_reply, n_cached;
    uint32_t n_max;
    peridot_sampling sampling; /* biases and stop texts are the job's */
    /* at work */
    peridot_request *request;
    uint32_t n_pauses;         /* times that it gave way to another */
    bool counted;              /* the request's prompt is evaluated, and was counted */
    double told_s;             /* when a stream was told last how much of the prompt is read */
    double first_s, last_s;    /* when it had its first token, and its last */
    size_t line;               /* where the last line of its text begins that was looked at; 0: none was */
    bool limited;              /* its time is up, or a line is indented too little */
    double prompt_s, reply_s;  /* that both took */
    /* what came out */
    struct pd_buffer text, thought;
    size_t n_thought;          /* tokens of it, with its marks */
    struct serve_call *calls;  /* [n_calls] */
    size_t n_calls, calls_capacity;
    size_t n_sent, n_thought_sent, n_ids_sent;   /* bytes of both, and ids of the reply, in events */
    bool begun;                /* there was an event */
    struct serve_logprob *logprobs;   /* with echo the prompt's, but for its first token; then the reply's */
    size_t n_logprobs, logprobs_capacity, n_logprobs_sent;
    size_t logprob_offset;     /* in the text, of the next one */
    float *row;                /* [row_size]: logits of the token that comes next */
    size_t row_size;
    double *vector;            /* [vector_size] of an embedding */
    size_t vector_size;
    double score;              /* of a document */
    enum serve_finish finish;
    const char *stop;          /* the stop text that it ended with; NULL: none */
};

/* What a request says. The reader writes it while the job is its, and from then on it is constant: any thread that has
 * the job may read it, and the connection once the answer has begun. Texts are in the document or the job's own. */
struct serve_asks {
    yyjson_doc *document;
    bool stream, include_usage, echo, base64, wants_pieces, token_ids;
    bool progress;             /* a stream tells how much of the prompt is read */
    bool special;              /* control tokens may stand in its texts */
    float ping_s;              /* seconds of silence after which a stream has a comment; 0: never */
    yyjson_val *fields;        /* of the answer: the only ones that are wanted; NULL: all */
    bool other_model;          /* it names a model that is not here */
    const char *adapter;       /* the model's that it names as its model; NULL: none */
    peridot_adapter adapters[SERVE_MAX_ADAPTERS];   /* [n_adapters]: that it takes, and no others */
    size_t n_adapters;
    bool stores;               /* the response is kept: see `stored` */
    char ignored[200];         /* what changes no answer: names with ", " between them */

    /* the prompt */
    bool raw;                  /* it is a text, not a message */
    bool truncates;            /* what does not fit is left out: a text's end, the oldest messages */
    bool continues;            /* the last message, the model's, is how its reply begins: */
    char *reply;               /* its text; NULL: none */
    bool unopened;             /* the prompt does not open the model's turn */
    bool drops;                /* where the messages do not fit, the oldest are left out */
    const char *suffix;        /* of the texts of a completion; NULL: none */
    size_t suffix_size;
    const char *effort;        /* of thoughts: see peridot_chat; NULL: the template's own */
    char *variables;           /* of the chat template, as JSON; NULL: none */
    uint32_t think;
    bool hides_thoughts;       /* where they were is said, but not what they were */
    bool seals_thoughts;       /* as encrypted_content */
    bool details_thoughts;     /* as reasoning_details */

    /* the reply */
    uint64_t n_max;            /* tokens, if max_given; more than fit are cut */
    bool max_given;
    bool leaves_room;          /* without max_given it ends where the next turn still fits */
    float most_ms;             /* once it has a line; 0 or less: no limit */
    uint32_t n_indent;         /* characters that its lines are indented by at least, after the first */
    uint32_t n;                /* choices */
    peridot_sampling sampling;
    const char *stops[SERVE_MAX_STOPS], *breakers[SERVE_MAX_BREAKERS];
    bool dry_off;              /* DRY looks at no tokens */
    peridot_bias *bias;
    bool logprobs;
    uint32_t n_top;
    char *schema;              /* of response_format, as JSON; NULL: none */
    bool json;                 /* any JSON object */
    char *tools;               /* functions that may be called, as JSON; NULL: none */
    char *shown;               /* those of them that the prompt begins with, or that may not be called; NULL: all */
    yyjson_val *allowed;       /* the only ones that may be called; NULL: all of them */
    const char *tool_name;     /* the only one; NULL: any of them */
    bool calls_required, calls_none, single_call;

    /* vectors and scores */
    uint32_t pool, dimensions; /* of vectors: enum peridot_pool; 0: all of them */
    const char *prefix;        /* of their texts, the server's; NULL: none */
    struct cmd_ranking ranking;   /* of documents */
    uint32_t top_n;            /* of these the best; 0: all */
    bool returns_documents;
};

/* What the model does for it. The reader makes it, but for the grammar, which may be a compiler's work; then it is the
 * engine's. The log may read n_tasks and counts of tokens at any time, and the connection what was compiled once the
 * answer has begun. */
struct serve_work {
    peridot_vocab *vocab;      /* by which the body is read; shared with the model */
    struct serve_task *tasks;  /* [n_tasks] */
    atomic_size_t n_tasks;     /* each is whole before it is counted */
    size_t n_ended;
    bool cut;                  /* some of the texts was left out of the prompt */
    size_t n_dropped;          /* messages that were */
    peridot_grammar *grammar;  /* of a schema, or of any JSON; shared with other jobs, as are */
    peridot_tools *compiled;   /* the functions that may be called */
};

/* The body: the connection's until it is complete, the reader's then. */
struct serve_body {
    struct pd_buffer text;  /* freed once it is parsed */
    size_t size;
    bool is_long;              /* it is counted in the server's n_long */
    bool bare;                 /* its path lacks the /v1 that it could have */
};

/* The pictures of its messages, in their order (pictures.h). Whoever owns the job has them, but an engine that closes
 * or opens its model takes images away and reads them again, under the lock of the model's images. */
struct serve_job_pictures {
    struct serve_picture *list;   /* [n] */
    size_t n;
    size_t n_read;             /* of these, which is all of them before the job goes on */
    bool has_images;           /* some were read: the job is among those that have images */
    bool has_place;            /* among the jobs whose pictures are in memory */
    void (*free)(struct serve_job *job);   /* NULL: there are none */
    struct serve_job *next;    /* of those that have images */
};

/* The response that it goes on from (`stored`): found by the reader, held until the job is freed. */
struct serve_past {
    struct serve_response *response;   /* NULL: none */
    size_t n_items, size;      /* items of its input that are from there, and bytes that are lent for them */
};

/* Where a stream is: whoever has the job writes its events, one thread after the other. */
struct serve_events {
    bool begun;                /* serve_write_begin was called */
    uint64_t n;                /* where they are numbered */
    enum serve_item {          /* what they are about now: */
        SERVE_ITEM_NONE, SERVE_ITEM_THOUGHT, SERVE_ITEM_MESSAGE, SERVE_ITEM_CALL
    } item;
    size_t n_items;            /* item n_items - 1 */
};

/* The answer, under its lock: whoever has the job adds to it, and the connection sends it. */
struct serve_answer {
    pthread_mutex_t lock;
    struct MHD_Connection *connection;   /* NULL: it has gone */
    int socket;                /* -1: none */
    bool suspended;            /* the connection waits to be woken */
    int status;                /* of HTTP; 0: not known yet */
    bool done;                 /* `out` is complete */
    struct pd_buffer out;
    size_t n_taken;            /* bytes of it that were sent */
    double written_s;          /* when something was written last */
};

/* Among the streams that are sent pings, under the lock of those. */
struct serve_ping {
    struct serve_job *next, **at;   /* NULL: it is not there */
};

struct serve_stream;

struct serve_job {
    /* constant, but that the reader may choose another model, and an interface that has its path in common */
    struct serve_server *server;
    const struct serve_model *model;
    const struct serve_interface *api;
    enum serve_kind kind;
    double begun_s;
    int64_t created;           /* seconds since 1970 */
    char id[40];
    struct serve_client client;   /* who asks */
    struct serve_stream *stream;  /* where its answer is kept as it comes; NULL: nowhere */

    /* any thread's */
    atomic_int n_owners;       /* its connection, and whoever has it at its stage */
    atomic_bool closed;        /* nobody waits for the answer */
    atomic_bool stopped;       /* it is to end with what it has */

    /* the owner's: see `stages` */
    enum serve_stage stage;
    struct serve_job *next;    /* in its queue */
    struct serve_error error;

    struct serve_body body;
    struct serve_asks asks;
    struct serve_past past;
    struct serve_job_pictures pictures;
    struct serve_work work;
    struct serve_events events;
    struct serve_answer answer;
    struct serve_ping ping;
};

struct serve_job *serve_job_new(struct serve_server *server, const struct serve_interface *api);
void serve_job_own(struct serve_job *job);
/* Gives up the ownership; the last owner frees it. */
void serve_job_drop(struct serve_job *job);

/* The name that the answer has for its model. */
const char *serve_job_model(const struct serve_job *job);
/* Compiles what response_format or tools ask for, if they ask for anything; `effort`: see
 * peridot_grammar_json_schema_within. On failure the job has the error. */
peridot_status serve_job_compile(struct serve_job *job, const peridot_vocab *vocab, uint32_t effort);
/* Memory is short. False. */
bool serve_refuse_memory(struct serve_job *job);
/* The error of a schema, with a status of HTTP. False. */
bool serve_job_refuse_schema(struct serve_job *job, int status, const char *sentence);
/* The error of a picture in the messages: "NAME: ...", with status 400. False. */
bool serve_job_refuse_picture(struct serve_job *job, const char *name, const char *format, ...) PD_PRINTF(3, 4);
/* The client has closed the connection; it is looked at now. */
bool serve_job_is_gone(struct serve_job *job);
/* What takes time is worth it: the client is there, and the server goes on. Else the job has an error. */
bool serve_job_is_awaited(struct serve_job *job);
/* Whether the connection can begin to answer; under the lock. */
bool serve_job_is_ready(const struct serve_job *job);
/* Where a stream has been silent for long, now. */
void serve_job_ping(struct serve_job *job, double now);
/* More of the body; `end`: it is complete. */
void serve_job_write(struct serve_job *job, const struct pd_buffer *more, bool end);
/* All of it, with status 200. */
void serve_job_answer(struct serve_job *job, const struct pd_buffer *body);

/* ---- model ---- */

/* The models of the server, and what it says of each: that is copied once, as a model itself is its engine's and may be
 * gone for a while. Where a device is lost, or the model was unloaded, the same one is opened again. */

struct serve_engine;
struct serve_images;
struct serve_server;

struct serve_model {
    char id[256];
    char *path;                        /* NULL: the demo model */
    atomic_bool loaded;                /* it is open, and its device was not lost */
    /* set before `known` */
    uint32_t embedding_size, d_model, n_vocab;
    uint32_t ctx_max;                  /* that it was trained for */
    atomic_bool drafts;                /* its session has room for them */
    atomic_uint ctx, n_positions;      /* of its session, which may be smaller when it is opened again */
    uint64_t n_params, weights_size;
    char family[32], type[32];         /* of most weights: "q4_k" */
    char *bos, *eos;                   /* texts of these tokens; "": it has none */
    peridot_pool pool;
    int32_t rank_labels[2];            /* see cmd_ranking_labels */
    bool only_embeds;                  /* it is an embedding model */
    struct serve_prefix {
        char *task, *prefix;
    } *prefixes;                       /* [n_prefixes]: the model's tasks */
    uint32_t n_prefixes;
    peridot_adapter *adapters;         /* [n_adapters]: with the scales of the command line */
    uint32_t n_adapters;
    const char *template_name;         /* of conversations; NULL: the model's own */
    bool is_cpu;
    char *template_note;               /* that the one in its files cannot be run; NULL: it can, or is not wanted */
    bool runs_template;                /* it is a program in the model's files, and may read variables of requests */
    bool thinks;                       /* the template has thoughts */
    bool sees;                         /* it reads images */
    peridot_sampling sampling;         /* where a request says nothing */
    atomic_bool known;                 /* it was open once */
    struct serve_engine *engine;
    struct serve_images *images;       /* of its jobs, whoever has them */
};

enum { SERVE_MAX_MODELS = 64 };

/* Names the models of the command line; those in a folder are in the order of their names. */
peridot_status serve_models_find(struct serve_server *server);
void serve_models_free(struct serve_server *server);
/* What opens it. */
struct cmd_model_args serve_model_args(const struct serve_server *server, const struct serve_model *model);
/* The model of that name, with or without Ollama's ":latest"; NULL: there is none. */
const struct serve_model *serve_models_get(const struct serve_server *server, const char *name);
/* The first model's adapter that the name NAME or MODEL:NAME stands for, as if it were a model; NULL: there is none. */
const peridot_adapter *serve_models_get_adapter(const struct serve_server *server, const char *name);

/* ---- pings ---- */

/* Comments in streams that are silent: workers.c. Of any thread. */

struct serve_job;

struct serve_pings {
    pthread_mutex_t lock;      /* of the list */
    struct serve_job *first;
};

/* Calls that for each, now and then. */
void serve_pings_tend(struct serve_pings *p, void (*ping)(struct serve_job *job, double now));

/* ---- stored ---- */

struct serve_job;
struct serve_server;

enum { SERVE_STORED_MAX = 1000, SERVE_STORED_BYTES = 64 << 20 };

struct serve_stored {
    pthread_mutex_t lock;
    struct serve_response *first, *last;   /* the one that was used most recently is the first */
    size_t n;                  /* of these */
    size_t size;               /* bytes of all that are in memory: some are only parents, or are being read */
    atomic_size_t lent;        /* bytes that requests have taken from here */
};

void serve_stored_free(struct serve_stored *stored);

/* Where the job's request goes on from a response, puts the items of that conversation before its own input. False: the
 * job's error says why not. */
bool serve_stored_continue(struct serve_job *job);
/* Keeps the answer, as it is written, unless the request says otherwise or memory is short for it. */
void serve_stored_add(struct serve_job *job, yyjson_mut_val *response);
/* A request about what is kept; texts are NULL where it does not have them. */
struct serve_ask {
    const char *method, *path;
    uint32_t key;              /* of the client */
    const char *limit, *order, *after, *stream;
};
/* /v1/responses/ID and /v1/responses/ID/input_items: writes the body and gives the status. */
int serve_ask_stored(struct pd_buffer *out, struct serve_server *server, const struct serve_ask *ask);

/* ---- streams ---- */

/* Answers that go on when their connection ends, and can be read again by an id that the client chose: see streams.c.
 * Functions can be called by any thread. */

struct serve_stream_reader;

enum { SERVE_STREAM_ID_MIN = 16, SERVE_STREAM_ID_MAX = 64 };   /* of A-Z a-z 0-9 - _ */

struct serve_streams {
    pthread_mutex_t lock;
    struct serve_stream *first;    /* the youngest */
    size_t n, size;                /* of these, and bytes of their texts */
};

void serve_streams_free(struct serve_streams *streams);
/* Before the job is anybody else's: its answer is kept, unless there are too many that have not ended. False: the id is
 * none, or taken, and the error says so. */
bool serve_streams_keep(struct serve_error *error, struct serve_job *job, const char *id);
/* Its connection has ended. */
void serve_streams_leave(struct serve_job *job);
/* Lets go of those that ended or were left long ago, and stops the latter. Called every now and then. */
void serve_streams_tend(struct serve_streams *streams);
/* Stops the reply of that id, which stays readable. False: this key has none of that id. */
bool serve_streams_stop(struct serve_streams *streams, const char *id, uint32_t key);
/* Reads the answer of that id from its first byte, for a connection; freed by serve_stream_close. NULL: this key has
 * none of that id, or memory is short. */
struct serve_stream_reader *serve_stream_open(struct serve_streams *streams, const char *id, uint32_t key,
                                              struct MHD_Connection *connection);
void serve_stream_close(struct serve_stream_reader *reader);
const char *serve_stream_type(const struct serve_stream_reader *reader);
/* Some bytes, at most `size`. 0: there are none yet, and the connection was suspended until there are; -1: the answer
 * is complete; -2: it was too long to be kept. */
ptrdiff_t serve_stream_read(struct serve_stream_reader *reader, char *to, size_t size);

/* ---- server ---- */

/* What the threads of peridot serve share: the one of HTTP, the reader, the engine, and the main thread, which watches
 * them. */

enum { SERVE_FULL_DROP, SERVE_FULL_REFUSE };   /* --full */
enum { SERVE_LOG_TEXT, SERVE_LOG_JSON };       /* --log-format */

struct serve_args {
    struct cmd_model_args model;
    const char *host, *key, *key_file, *alias, *cors, *template_name;
    struct cmd_texts models, tools;    /* the former are -m; model.path is not used */
    struct cmd_texts allowed_urls;     /* hosts that pictures may be fetched from */
    uint32_t port, n_parallel, n_queue, ctx, kv, timeout_s, idle_s, full, think, log_format;
    bool insecure, log_json, log_prompts, install_service, yes;
    struct cmd_draft_args draft;
    struct cmd_sampling sampling;      /* where a request says nothing */
};

enum { SERVE_BODY_MAX = 32 << 20, SERVE_MAX_KEYS = 64 };

struct serve_server {
    const struct serve_args *args;
    char *key_text;                    /* what --api-key-file holds */
    const char *keys[SERVE_MAX_KEYS];
    size_t n_keys;
    int64_t created;
    struct serve_model models[SERVE_MAX_MODELS];   /* the first answers requests for names that are not here */
    size_t n_models;
    pthread_mutex_t loading;           /* held by the engine that opens a model */
    bool misused;                      /* --think asks for what it lacks: the server cannot begin */
    atomic_bool ready;                 /* the first model was loaded, and if it is the only one, no device was lost */
    atomic_bool draining;              /* no new requests */
    atomic_bool stopping;              /* what waits is refused */
    char failure[512];                 /* why the server ends; set before `failed` */
    atomic_bool failed;
    atomic_uint n_jobs;                /* whose bodies are here, and that are not done, */
    atomic_uint n_long;                /* and those with a long body that are not freed yet */
    struct serve_metrics metrics;
    struct serve_pings pings;          /* streams */
    const struct serve_thoughts *thoughts;   /* what their seals are made by */
    struct serve_stored stored;        /* responses */
    struct serve_streams streams;      /* and answers that can be taken up again */
    struct serve_http *http;
    struct serve_reader *reader;
    const struct serve_stage_row *stages;   /* [SERVE_N_STAGES] */
    struct serve_grammars *grammars;   /* the reader's, as are */
    struct serve_pictures *pictures;
    struct cmd_toolbox *toolbox;       /* of --tools; NULL: none, as are */
    struct serve_tools *tools;
};

/* ---- write ---- */

/* Before anything is written: the events that begin a stream. Again, it does nothing. */
void serve_write_begin(struct serve_job *job);
/* The text of a task grew. */
void serve_write_piece(struct serve_task *task);
/* A task has ended. */
void serve_write_task_end(struct serve_task *task);
/* All have: the answer is complete. */
void serve_write_end(struct serve_job *job);

/* ---- log ---- */

struct serve_log_line {
    char method[12], path[64];
    char client[48];           /* its address */
    char id[64];               /* that the client gave the request, as X-Request-Id; "": none */
    char why[200];             /* it was refused, or failed; "": it was not */
    double begun_s;
    int status;                /* 0: none was sent */
};

void serve_log_begin(struct serve_log_line *line, const char *method, const char *path);
/* id: NULL: none. What of both is no plain letter is replaced, so that line->id can be a header's value. */
void serve_log_ask(struct serve_log_line *line, const char *client, const char *id);
/* NULL: nothing went wrong. */
void serve_log_refusal(struct serve_log_line *line, const struct serve_error *e);
bool serve_log_is_json(const struct serve_server *server);
/* What became of a model: "loaded", "unloaded"; seconds that it took, or 0. */
void serve_log_model(const struct serve_server *server, const char *what, const char *model, double seconds);
/* job may be NULL; `complete`: all of the answer was sent. Counts it, too. */
void serve_log_end(const struct serve_log_line *line, struct serve_server *server, const struct serve_job *job,
                   bool complete);
/* Something that a request says and nothing is done with: named once in the life of the process, and only so many. */
void serve_log_ignored(const struct serve_server *server, const char *name);
/* With --log-prompts: the body of a request. */
void serve_log_prompt(const struct serve_job *job);

/* ---- tasks ---- */

/* All but serve_limit: false, and the job's error, where it is too much or memory is short. */

/* Room for the tasks of so many texts. */
bool serve_tasks_make(struct serve_job *job, size_t n_texts);
/* The tasks of the next text: its choices. */
bool serve_tasks_add(struct serve_job *job, const int32_t *ids, size_t n_ids);

/* What encoding the job's texts may give, and that it ends where nobody waits for it. */
peridot_encode_limit serve_limit(struct serve_job *job);
/* Encoding has failed. */
bool serve_refuse_encoding(struct serve_job *job, const peridot_encode_limit *limit, peridot_status status);

/* Tokens that a turn of a conversation has at least: of its reply, and of the message after it. */
uint64_t serve_reserve(uint32_t ctx);

/* ---- wire ---- */

/* An interface is how a kind of client speaks: its path, what it asks for, the form of its answers, whole and as
 * events. Each is a row, in a file of wire/, and is listed in SERVE_INTERFACES; its parameters are those of
 * params.c and neutral.c that have its bit. */

struct serve_conversation;

#define SERVE_EVENTS "text/event-stream; charset=utf-8"   /* server-sent events */

/* Sets of interfaces. */
enum {
#define SET(ID, name) SERVE_SET_##ID = 1 << SERVE_##ID,
    SERVE_INTERFACES(SET)
#undef SET
    SERVE_SET_OPTIONS = 1 << SERVE_N_APIS,   /* members of Ollama's `options` */
    SERVE_SET_LLAMA = SERVE_SET_COMPLETION | SERVE_SET_INFILL,   /* llama.cpp's server's own */
    SERVE_SET_CHATS = SERVE_SET_CHAT | SERVE_SET_APPLY_TEMPLATE,
    SERVE_SET_WRITES = SERVE_SET_CHATS | SERVE_SET_COMPLETIONS | SERVE_SET_RESPONSES | SERVE_SET_LLAMA,
    SERVE_SET_OPENAI = SERVE_SET_WRITES | SERVE_SET_EMBEDDINGS | SERVE_SET_RERANK,
    SERVE_SET_ANTHROPIC = SERVE_SET_MESSAGES | SERVE_SET_COUNT_TOKENS,
    SERVE_SET_OLLAMA = SERVE_SET_OLLAMA_CHAT | SERVE_SET_GENERATE | SERVE_SET_EMBED | SERVE_SET_EMBED_ONE
};

struct serve_interface {
    enum serve_api id;
    const char *path;          /* of its POST; one that begins with /v1 is found without it, too */
    enum serve_kind kind;
    const char *id_prefix;     /* of answers' ids; NULL: they have none */
    const char *input;         /* the parameter that holds its messages or texts; */
    const char *schema;        /* and the one that holds a schema */
    uint32_t n_default;        /* tokens of a reply for which no length was given; 0: as many as fit */
    const struct serve_error_form *errors;
    const char *stream_type;   /* Content-Type of a stream; NULL: there are none */
    const char *ping;          /* what a stream has that nobody reads; NULL: nothing */
    bool streams, truncates;   /* where a request does not say whether: see serve_job */

    /* Makes the tasks, or puts the answer into `out` where no device is needed for it. False: the job's error says
     * why. */
    bool (*read)(struct pd_buffer *out, struct serve_job *job, const peridot_vocab *vocab, yyjson_val *root);
    /* of a conversation, called by serve_read_conversation: adds its messages */
    bool (*read_messages)(struct serve_conversation *c, struct serve_job *job, yyjson_val *root);

    /* events of a stream: before all others (NULL: none), more text, more of a thought (NULL: none), after all */
    void (*begin)(struct serve_job *job);
    void (*piece)(struct serve_task *task, const char *text, size_t size);
    void (*thought)(struct serve_task *task, const char *text, size_t size);
    /* so many tokens of the prompt are read (NULL: none) */
    void (*progress)(struct serve_task *task, uint64_t n);
    /* more of the arguments of call i, which is new unless `begun`, and done where `complete` (NULL: none) */
    void (*call)(struct serve_task *task, size_t i, const char *text, size_t size);
    void (*end)(struct serve_job *job);
    /* an answer that is no stream; NULL: `read` wrote it */
    yyjson_mut_doc *(*body)(struct serve_job *job);
};

/* Tokens of a job; those of a prompt with several choices count once. */
struct serve_usage {
    uint64_t prompt, cached, reply, thought;
};
struct serve_usage serve_usage_of(const struct serve_job *job);

/* A server-sent event, of a name or of none. Frees the document. */
void serve_send_event(struct serve_job *job, const char *name, yyjson_mut_doc *doc);
/* The document on a line. Frees it. */
void serve_send_line(struct serve_job *job, yyjson_mut_doc *doc);
yyjson_mut_val *serve_string(yyjson_mut_doc *doc, const char *text);

#endif
