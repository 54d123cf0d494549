/* One line on standard error for each request: what was asked, the status, tokens and seconds. No texts. */
#include "../../base/base.h"
#include "job.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

static pthread_mutex_t whole_lines = PTHREAD_MUTEX_INITIALIZER;   /* where one is written in parts */

/* What a client chose to ask for must not forge a line. */
static void copy(char *to, size_t size, const char *from)
{
    size_t i = 0;
    for (; i + 1 < size && from[i]; i++) {
        bool plain = from[i] > 32 && from[i] < 127 && from[i] != '"' && from[i] != '\\';
        to[i] = plain ? from[i] : '?';
    }
    to[i] = 0;
}

void serve_log_begin(struct serve_log_line *line, const char *method, const char *path)
{
    line->begun_s = pd_now();
    copy(line->method, sizeof line->method, method);
    copy(line->path, sizeof line->path, path);
}

static void count_tokens(uint64_t tokens[3], const struct serve_job *job)
{
    for (size_t i = 0; job && i < job->work.n_tasks; i++) {
        tokens[0] += i % job->asks.n ? 0 : job->work.tasks[i].n_prompt;
        tokens[1] += job->work.tasks[i].n_cached;
        tokens[2] += job->work.tasks[i].n_reply;
    }
}

void serve_log_end(const struct serve_log_line *line, struct serve_server *server, const struct serve_job *job,
                   bool complete)
{
    static const enum serve_counter counters[] = {[2] = SERVE_REQUESTS_2XX, [4] = SERVE_REQUESTS_4XX,
                                                  [5] = SERVE_REQUESTS_5XX};
    uint64_t tokens[3] = {0};
    double seconds = pd_now() - line->begun_s;
    int status = complete ? line->status : 499;   /* as nginx counts clients that went away */
    int kind = status / 100;
    count_tokens(tokens, job);
    serve_count(&server->metrics, !complete ? SERVE_REQUESTS_CLOSED : counters[kind == 4 || kind == 5 ? kind : 2], 1);
    serve_observe(&server->metrics, SERVE_DURATION, seconds);
    pthread_mutex_lock(&whole_lines);
    if (server->args->log_json)
        fprintf(stderr,
                "{\"time\": %" PRId64 ", \"method\": \"%s\", \"path\": \"%s\", \"status\": %d, "
                "\"prompt_tokens\": %" PRIu64 ", \"cached_tokens\": %" PRIu64 ", \"completion_tokens\": %" PRIu64
                ", \"seconds\": %.3f}\n",
                (int64_t)time(NULL), line->method, line->path, status, tokens[0], tokens[1], tokens[2], seconds);
    else
        fprintf(stderr, "%s %s %d, %" PRIu64 " + %" PRIu64 " tokens (%" PRIu64 " cached), %.3f s\n", line->method,
                line->path, status, tokens[0], tokens[2], tokens[1], seconds);
    pthread_mutex_unlock(&whole_lines);
}

void serve_log_ignored(const struct serve_server *server, const char *name)
{
    static char told[128][64];     /* [n_told] */
    static size_t n_told;
    char plain[sizeof *told];
    size_t i = 0;
    copy(plain, sizeof plain, name);
    pthread_mutex_lock(&whole_lines);
    while (i < n_told && strcmp(told[i], plain) != 0) i++;
    bool is_new = i == n_told && i < sizeof told / sizeof *told;
    if (is_new) memcpy(told[n_told++], plain, sizeof plain);
    if (is_new && server->args->log_json)
        fprintf(stderr, "{\"time\": %" PRId64 ", \"ignored\": \"%s\"}\n", (int64_t)time(NULL), told[i]);
    else if (is_new) fprintf(stderr, "ignored in a request: %s\n", told[i]);
    pthread_mutex_unlock(&whole_lines);
}

void serve_log_prompt(const struct serve_job *job)
{
    if (!job->server->args->log_prompts) return;
    pthread_mutex_lock(&whole_lines);
    fputs("body: ", stderr);
    cmd_json_string(stderr, job->body.text.data, job->body.text.size);
    fputc('\n', stderr);
    pthread_mutex_unlock(&whole_lines);
}
