/* What all of serve has that knows of no job: threads that take work, turns, buffers, errors and counts. */
#ifndef PERIDOT_COMMAND_SERVE_COMMON_COMMON_H
#define PERIDOT_COMMAND_SERVE_COMMON_COMMON_H

#include "../../base/base.h"
#include "peridot.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- workers ---- */

enum { SERVE_MAX_WORKERS = 4 };

/* What threads are to jobs. */
enum serve_owner {
    SERVE_NOBODY, SERVE_CONNECTION, SERVE_READER, SERVE_PICTURE_READER, SERVE_COMPILER, SERVE_ENGINE, SERVE_TOOL_CALLER
};

struct serve_workers {
    pthread_mutex_t lock;      /* of the list */
    pthread_cond_t changed;    /* signalled, with the lock, when there is work */
    pthread_t threads[SERVE_MAX_WORKERS];
    size_t n_threads;
    bool stop;
    enum serve_owner owner;    /* of the jobs that they take */
    bool (*work)(void *user);
    void *user;
};

/* What this thread is to jobs: workers say it themselves. */
void serve_act_as(enum serve_owner owner);
enum serve_owner serve_acting(void);

/* As many as n threads, at most SERVE_MAX_WORKERS, or fewer, but one. `work` is called with the lock, and unlocks it
 * while it does what it took; false: there is nothing to do. */
peridot_status serve_workers_start(struct serve_workers *workers, size_t n, enum serve_owner owner,
                                   bool (*work)(void *user), void *user);
/* Returns when each has done what it had taken. What nobody took is the caller's, and the lock is still there. */
void serve_workers_stop(struct serve_workers *workers);
/* After they have stopped, or did not start. */
void serve_workers_free(struct serve_workers *workers);

/* ---- fair ---- */

/* Whose turn it is where jobs wait: for the reader, for a picture, for a grammar, for the device. First come, first
 * served would let one client with a hundred long jobs keep all others out. So the next job is one of the client whose
 * jobs were taken least often of late; of several of a client it is, by turns, the one that costs least and the one
 * that has waited longest: a short one passes long ones, and none waits for ever. That alone helps where all have the
 * same address, as behind a proxy. */

/* Who asks: the address (of IPv6 its first half, which one household has) and the number of the API key; {0}: not
 * known. */
struct serve_client {
    uint64_t address;
    uint32_t key;
};

bool serve_client_is(const struct serve_client *a, const struct serve_client *b);

enum { SERVE_FAIR_MEMORY = 16 };

/* Under the lock of whoever has the jobs. */
struct serve_fair {
    struct serve_client last[SERVE_FAIR_MEMORY];   /* [n_taken], and from then on a ring: whose jobs were taken */
    uint64_t n_taken;
};

#define SERVE_FAIR_NEVER UINT64_MAX    /* the cost of what cannot be taken now */

/* What comes next: the begin of a choice, and one offer of each that waits, the oldest first. */
struct serve_fair_choice {
    const struct serve_fair *fair;
    bool cheapest;             /* of a client's; else the oldest */
    void *best;                /* NULL: none */
    unsigned taken;            /* turns that its client had */
    uint64_t cost;
};

struct serve_fair_choice serve_fair_begin(const struct serve_fair *fair);
void serve_fair_offer(struct serve_fair_choice *choice, void *what, const struct serve_client *client, uint64_t cost);
/* A turn of the client's begins. */
void serve_fair_take(struct serve_fair *fair, const struct serve_client *client);

/* ---- buffer ---- */

/* The document as text; frees it. */
void serve_put_json(struct pd_buffer *buffer, yyjson_mut_doc *doc);

/* A JSON string of any bytes: those that are no UTF-8 become U+FFFD. */
yyjson_mut_val *serve_text(yyjson_mut_doc *doc, const char *text, size_t size);
/* The same of what a buffer holds, which is freed. */
yyjson_mut_val *serve_buffer_text(yyjson_mut_doc *doc, struct pd_buffer *buffer);
/* {NAME: TEXT} */
void serve_put_text(struct pd_buffer *buffer, const char *name, const char *text, size_t size);

/* ---- error ---- */

struct serve_error {
    int status;                /* of HTTP; 0: nothing went wrong */
    const char *code;          /* "context_length_exceeded"; NULL: none */
    char param[64];            /* the parameter that is at fault; "": none */
    char message[512];
    uint64_t n_prompt;         /* tokens of a prompt that does not fit, of which there may be more; 0: another error */
    uint32_t n_ctx;            /* that it does not fit */
};

/* A prompt that is too long. */
struct serve_length {
    const char *what;          /* the parameter */
    uint64_t n_prompt;         /* its tokens; */
    bool at_least;             /* they were not counted to the end */
    uint32_t ctx;
};

/* Sets it, unless something went wrong before; false. code and param may be NULL. */
bool serve_refuse(struct serve_error *error, int status, const char *code, const char *param, const char *format, ...)
    PD_PRINTF(5, 6);
/* The same for a parameter of a wrong type: "NAME WHAT". False. */
bool serve_refuse_type(struct serve_error *error, const char *name, const char *what);
/* The same with the library's sentence for a status: 400 for what is wrong with the request. False. */
bool serve_refuse_status(struct serve_error *error, peridot_status status);
/* The error is of element i of a list: its sentence begins with "NAME[i]: ". False. */
bool serve_refuse_element(struct serve_error *error, const char *name, size_t i);

/* How clients are told. */
struct serve_error_form {
    void (*put)(struct pd_buffer *buffer, const struct serve_error *error);   /* a JSON object */
    const char *before, *after;   /* of it within a stream */
    /* The sentence for a prompt that is too long: clients know such by the words of the server that they are made for,
     * and make it shorter. */
    void (*tell_length)(char *out, size_t size, const struct serve_length *length);
    bool no_param;                /* that sentence has no place for the parameter */
};
/* The sentence for forms that have nothing else: it names the parameter. */
yyjson_mut_val *serve_error_sentence(yyjson_mut_doc *doc, const struct serve_error *error);
/* {"error": {"message", "type", "param", "code"}} */
extern const struct serve_error_form serve_errors_openai;
/* {"error": "..."} */
extern const struct serve_error_form serve_errors_ollama;
/* {"type": "error", "error": {"type", "message", "details": {"error_code"}}}, the latter where there is a code */
extern const struct serve_error_form serve_errors_anthropic;
/* {"error": {"code": status, "message", "type"}}, and n_prompt_tokens and n_ctx where a prompt is too long: llama.cpp's
 * server */
extern const struct serve_error_form serve_errors_llama;
/* The error of a prompt that is too long. False. */
bool serve_refuse_length(struct serve_error *error, const struct serve_error_form *form,
                         const struct serve_length *length);
/* OpenAI's sentence for it, which others have parts of. */
void serve_tell_length(char *out, size_t size, const struct serve_length *length);

/* ---- metrics ---- */

enum serve_counter {
    SERVE_REQUESTS_2XX, SERVE_REQUESTS_4XX, SERVE_REQUESTS_5XX, SERVE_REQUESTS_CLOSED,
    SERVE_PROMPT_TOKENS, SERVE_CACHED_TOKENS, SERVE_GENERATED_TOKENS, SERVE_DRAFTED_TOKENS,
    SERVE_ACCEPTED_TOKENS, SERVE_PREEMPTIONS, SERVE_LOST_DEVICES,
    SERVE_N_COUNTERS
};
enum serve_gauge { SERVE_WAITING, SERVE_RUNNING, SERVE_POSITIONS, SERVE_FREE_POSITIONS, SERVE_KEPT, SERVE_DRAFT_SAVED,
                   SERVE_N_GAUGES };
enum serve_histogram { SERVE_FIRST_TOKEN, SERVE_NEXT_TOKEN, SERVE_DURATION, SERVE_N_HISTOGRAMS };
enum { SERVE_N_BUCKETS = 14 };

struct serve_metrics {
    pthread_mutex_t lock;
    uint64_t counters[SERVE_N_COUNTERS];
    double gauges[SERVE_N_GAUGES];
    struct serve_buckets {
        uint64_t n[SERVE_N_BUCKETS + 1];   /* the last: more than the highest bound */
        double sum;
    } histograms[SERVE_N_HISTOGRAMS];
};

void serve_count(struct serve_metrics *m, enum serve_counter counter, uint64_t n);
/* A gauge is the sum of what the engines have. */
void serve_gauge_add(struct serve_metrics *m, enum serve_gauge gauge, double change);
double serve_gauge_get(struct serve_metrics *m, enum serve_gauge gauge);
void serve_observe(struct serve_metrics *m, enum serve_histogram histogram, double seconds);
void serve_put_metrics(struct pd_buffer *out, struct serve_metrics *m);

#endif
