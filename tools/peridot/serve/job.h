/* A job is a request of HTTP from its body to its answer. A connection, the reader (which makes tasks of the body) and
 * the engine (which does them) have it in turn; the connection may go away at any time. Tasks are what the model does:
 * one text that is written, or one that is read. */
#ifndef PERIDOT_COMMAND_SERVE_JOB_H
#define PERIDOT_COMMAND_SERVE_JOB_H

#include "error.h"
#include "fair.h"
#include "../ranking.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

struct MHD_Connection;
struct serve_server;
struct serve_interface;
struct serve_response;

enum serve_api {
    SERVE_CHAT, SERVE_COMPLETIONS, SERVE_RESPONSES, SERVE_EMBEDDINGS, SERVE_TOKENIZE, SERVE_DETOKENIZE, SERVE_MESSAGES,
    SERVE_COUNT_TOKENS, SERVE_OLLAMA_CHAT, SERVE_GENERATE, SERVE_EMBED, SERVE_EMBED_ONE, SERVE_SHOW,
    SERVE_RERANK, SERVE_COMPLETION, SERVE_INFILL, SERVE_APPLY_TEMPLATE, SERVE_LIST_TOOLS, SERVE_CALL_TOOL, SERVE_N_APIS
};

/* What a job asks for: a reply, the continuation of a text, vectors, scores of documents, what the reader answers
 * without a device, or what needs no model (tools.h). */
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
    struct serve_buffer arguments;
    bool complete;
    bool begun, ended;         /* there was an event of its begin, and of its end */
    size_t n_sent;             /* bytes of the arguments in events */
};

struct serve_task {
    struct serve_job *job;
    struct serve_task *next;   /* the engine's, in order */
    uint32_t index;            /* of the job's tasks */
    int32_t *tokens;           /* [n_prompt + n_reply], of capacity n_prompt + n_max */
    size_t n_prompt;
    atomic_size_t n_reply, n_cached;   /* the engine's; the log may read them while it is at work */
    uint32_t n_max;
    peridot_sampling sampling; /* biases and stop texts are the job's */
    /* the engine's */
    peridot_request *request;
    uint32_t n_pauses;         /* times that it gave way to another */
    bool counted;              /* the request's prompt is evaluated, and was counted */
    double first_s, last_s;    /* when it had its first token, and its last */
    size_t line;               /* where the last line of its text begins that was looked at; 0: none was */
    bool limited;              /* its time is up, or a line is indented too little */
    double prompt_s, reply_s;  /* that both took */
    /* what came out */
    struct serve_buffer text, thought;
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

struct serve_job {
    struct serve_server *server;
    const struct serve_model *model;
    const struct serve_interface *api;
    enum serve_kind kind;
    atomic_int n_owners;
    struct serve_client client;   /* who asks */
    double begun_s;
    int64_t created;           /* seconds since 1970 */
    char id[40];
    float ping_s;              /* seconds of silence after which a stream has a comment; 0: never */
    struct serve_job *next_ping, **at_ping;   /* see pings.c; NULL: it is not there */

    /* the connection's and whoever writes: under the lock */
    pthread_mutex_t lock;
    struct MHD_Connection *connection;   /* NULL: it has gone */
    int socket;                /* -1: none */
    bool suspended;            /* the connection waits to be woken */
    int status;                /* of HTTP; 0: not known yet */
    bool done;                 /* `out` is complete */
    struct serve_buffer out;
    size_t n_taken;            /* bytes of it that were sent */
    double written_s;          /* when something was written last */

    atomic_bool closed;        /* nobody waits for the answer */
    struct serve_error error;

    /* the reader's */
    struct serve_job *next;
    struct serve_buffer body;
    size_t size;               /* of the body, which is freed once it is read */
    bool is_long;              /* by its body; counted in the server's n_long */
    yyjson_doc *document;      /* stop texts are in it */
    bool bare;                 /* its path lacks the /v1 that it could have */
    bool stream, include_usage, echo, base64, wants_pieces, token_ids;
    bool special;              /* control tokens may stand in its texts */
    float most_ms;             /* for a reply, once it has a line; 0 or less: no limit */
    uint32_t n_indent;         /* characters that its lines are indented by at least, after the first */
    yyjson_val *fields;        /* of the answer, in the document: the only ones that are wanted; NULL: all */
    bool cut;                  /* some of the texts was left out of the prompt */
    bool logprobs;
    uint32_t n_top, n, think;
    bool raw;                  /* the prompt is a text, not a message */
    bool truncates;            /* what does not fit is left out: a text's end, the oldest messages */
    bool hides_thoughts;       /* where they were is said, but not what they were */
    bool seals_thoughts;       /* as encrypted_content */
    bool details_thoughts;     /* as reasoning_details */
    bool stores;               /* the response is kept: see stored.h */
    struct serve_response *previous;   /* that the request goes on from, held; NULL: none */
    size_t n_past, past_size;  /* items of its input that are from there, and bytes that are lent for them */
    uint32_t pool, dimensions; /* of vectors: enum peridot_pool; 0: all of them */
    struct cmd_ranking ranking;   /* of documents; its texts are in the document */
    uint32_t top_n;            /* of these the best; 0: all */
    bool returns_documents;
    const char *prefix;        /* of their texts, the server's; NULL: none */
    uint64_t n_max;            /* tokens of a reply, if max_given; more than fit are cut */
    bool max_given;
    bool leaves_room;          /* a reply without max_given ends where the next turn still fits */
    bool drops;                /* where the messages do not fit, the oldest are left out */
    size_t n_dropped;          /* messages that were */
    const char *suffix;        /* of the texts of a completion, in the document; NULL: none */
    size_t suffix_size;
    const char *adapter;       /* the model's that the request names as its model; NULL: none */
    peridot_adapter adapters[SERVE_MAX_ADAPTERS];   /* [n_adapters]: that it takes, and no others */
    size_t n_adapters;
    bool other_model;          /* the request names a model that is not here */
    peridot_sampling sampling;
    const char *stops[SERVE_MAX_STOPS], *breakers[SERVE_MAX_BREAKERS];
    bool dry_off;              /* DRY looks at no tokens */
    peridot_bias *bias;
    char *schema;              /* of response_format, as JSON; NULL: none */
    bool json;                 /* any JSON object */
    peridot_grammar *grammar;  /* of either, shared with other jobs */
    char *variables;           /* of the chat template, as JSON; NULL: none */
    char *tools;               /* functions that may be called, as JSON; NULL: none */
    char *shown;               /* those of them that the prompt begins with, or that may not be called; NULL: all */
    char ignored[200];         /* of the request, which changes no answer: names with ", " between them */
    const char *tool_name;     /* the only one, in the document; NULL: any of them */
    bool calls_required, calls_none, single_call;
    peridot_tools *compiled;   /* of these, shared with other jobs */
    struct serve_task *tasks;  /* [n_tasks] */
    atomic_size_t n_tasks;     /* the log may read it while tasks are made: each is whole before it is counted */
    size_t n_ended;
    bool answered;             /* serve_write_begin was called */
    uint64_t n_events;         /* in a stream whose events are numbered */
    enum serve_item {          /* what events are about now: */
        SERVE_ITEM_NONE, SERVE_ITEM_THOUGHT, SERVE_ITEM_MESSAGE, SERVE_ITEM_CALL
    } item;
    size_t n_items;            /* item n_items - 1 */
    peridot_vocab *vocab;      /* by which the body was read; shared with the model */
    struct serve_picture *pictures;   /* [n_pictures]: of its messages, in their order; see pictures.h */
    size_t n_pictures;
    size_t n_read;             /* of these, which is all of them before the job goes on */
    bool has_images;           /* some were read: the job is among those that have images */
    bool has_place;            /* among the jobs whose pictures are in memory */
    void (*free_pictures)(struct serve_job *job);   /* NULL: there are none */
    struct serve_job *next_seeing;    /* of those that have images */
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
/* The error of a schema, with a status of HTTP. False. */
bool serve_job_refuse_schema(struct serve_job *job, int status, const char *sentence);
/* The error of a picture in the messages: "NAME: ...", with status 400. False. */
bool serve_job_refuse_picture(struct serve_job *job, const char *name, const char *format, ...) CMD_PRINTF(3, 4);
/* The client has closed the connection; it is looked at now. */
bool serve_job_is_gone(struct serve_job *job);
/* What takes time is worth it: the client is there, and the server goes on. Else the job has an error. */
bool serve_job_is_awaited(struct serve_job *job);
/* Whether the connection can begin to answer; under the lock. */
bool serve_job_is_ready(const struct serve_job *job);
/* The answer begins: 200, or the error's status with its object as the whole body. Does nothing once it has begun. */
void serve_job_begin(struct serve_job *job, int status);
void serve_job_fail(struct serve_job *job);
/* Where a stream has been silent for long, now. */
void serve_job_ping(struct serve_job *job, double now);
/* More of the body; `end`: it is complete. */
void serve_job_write(struct serve_job *job, const struct serve_buffer *more, bool end);

#endif
