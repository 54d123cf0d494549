/* One line on standard error for each request: when, who asked, what, the status, the model, tokens, tokens/s,
 * seconds, why it was refused; and one where a model is loaded or let go. No texts. What asks again and again whether
 * the server is there is not told, where it is. */
#define _POSIX_C_SOURCE 200809L   /* localtime_r */
#include "../../base/base.h"
#include "job.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

static pthread_mutex_t whole_lines = PTHREAD_MUTEX_INITIALIZER;   /* where one is written in parts */

bool serve_log_is_json(const struct serve_server *server)
{
    return server->args->log_json || server->args->log_format == SERVE_LOG_JSON;
}

/* "2026-11-27 20:15:03", as the clock of the machine shows it. */
static void put_time(char *to, size_t size)
{
    const time_t now = time(NULL);
    struct tm t;
    localtime_r(&now, &t);
    strftime(to, size, "%Y-%m-%d %H:%M:%S", &t);
}

/* What a client chose to ask for must not forge a line. `least`: ' ' where there may be words, or '!'. */
static void copy_from(char *to, size_t size, const char *from, char least)
{
    size_t i = 0;
    for (; i + 1 < size && from[i]; i++) {
        bool plain = from[i] >= least && from[i] < 127 && from[i] != '"' && from[i] != '\\';
        to[i] = plain ? from[i] : '?';
    }
    to[i] = 0;
}

static void copy(char *to, size_t size, const char *from) { copy_from(to, size, from, '!'); }

void serve_log_begin(struct serve_log_line *line, const char *method, const char *path)
{
    line->begun_s = pd_now();
    copy(line->method, sizeof line->method, method);
    copy(line->path, sizeof line->path, path);
}

void serve_log_ask(struct serve_log_line *line, const char *client, const char *id)
{
    copy(line->client, sizeof line->client, client);
    copy(line->id, sizeof line->id, id ? id : "");
}

/* A quotation mark in it stays one, but is not JSON's. */
void serve_log_refusal(struct serve_log_line *line, const struct serve_error *e)
{
    char text[sizeof e->message];
    if (!e || !e->status) return;
    memcpy(text, e->message, sizeof text);
    for (char *at = text; *at; at++)
        if (*at == '"') *at = '\'';
    copy_from(line->why, sizeof line->why, text, ' ');
}

/* Of a job: tokens of prompts, of the cache, and of replies, and how many of the last come in a second. */
struct numbers {
    uint64_t prompt, cached, reply;
    double speed;              /* 0: not known */
};

/* `ended`: nobody else has the tasks any more. */
static struct numbers count_tokens(const struct serve_job *job, bool ended)
{
    struct numbers n = {0};
    double first = 0, last = 0;
    for (size_t i = 0; job && i < job->work.n_tasks; i++) {
        const struct serve_task *task = &job->work.tasks[i];
        n.prompt += i % job->asks.n ? 0 : task->n_prompt;
        n.cached += task->n_cached;
        n.reply += task->n_reply;
        if (!ended || !task->n_reply) continue;
        first = first > 0 ? pd_min(first, task->first_s) : task->first_s;
        last = task->last_s > last ? task->last_s : last;
    }
    if (last > first && n.reply > job->work.n_tasks) n.speed = (double)(n.reply - job->work.n_tasks) / (last - first);
    return n;
}

static void put_text_line(const struct serve_log_line *line, int status, const char *model, const struct numbers *n)
{
    char when[32], speed[32] = "";
    put_time(when, sizeof when);
    if (n->speed > 0) snprintf(speed, sizeof speed, "%.1f tokens/s, ", n->speed);
    fprintf(stderr, "%s %s %s %s %d", when, line->client, line->method, line->path, status);
    if (model) fprintf(stderr, ", %s: %" PRIu64 " + %" PRIu64 " tokens (%" PRIu64 " cached)", cmd_shown(model),
                       n->prompt, n->reply, n->cached);
    fprintf(stderr, ", %s%.3f s%s%s%s%s\n", speed, pd_now() - line->begun_s, *line->id ? ", id " : "", line->id,
            *line->why ? ": " : "", line->why);
}

static void put_json_line(const struct serve_log_line *line, int status, const char *model, const struct numbers *n)
{
    fprintf(stderr, "{\"time\": %" PRId64 ", \"method\": \"%s\", \"path\": \"%s\", \"status\": %d, "
            "\"client\": \"%s\", \"prompt_tokens\": %" PRIu64 ", \"cached_tokens\": %" PRIu64
            ", \"completion_tokens\": %" PRIu64 ", \"tokens_per_second\": %.1f, \"seconds\": %.3f",
            (int64_t)time(NULL), line->method, line->path, status, line->client, n->prompt, n->cached, n->reply,
            n->speed, pd_now() - line->begun_s);
    if (model) fputs(", \"model\": ", stderr), cmd_json_string(stderr, model, strlen(model));
    if (*line->id) fprintf(stderr, ", \"request_id\": \"%s\"", line->id);
    if (*line->why) fprintf(stderr, ", \"error\": \"%s\"", line->why);
    fputs("}\n", stderr);
}

/* Whoever watches over the server asks this every few seconds. */
static bool is_watching(const struct serve_log_line *line)
{
    return strcmp(line->path, "/health") == 0 || strcmp(line->path, "/v1/health") == 0;
}

void serve_log_end(const struct serve_log_line *line, struct serve_server *server, const struct serve_job *job,
                   bool complete)
{
    static const enum serve_counter counters[] = {[2] = SERVE_REQUESTS_2XX, [4] = SERVE_REQUESTS_4XX,
                                                  [5] = SERVE_REQUESTS_5XX};
    int status = complete ? line->status : 499;   /* as nginx counts clients that went away */
    int kind = status / 100;
    const struct numbers n = count_tokens(job, complete);
    const char *model = job && job->work.n_tasks ? job->model->id : NULL;
    serve_count(&server->metrics, !complete ? SERVE_REQUESTS_CLOSED : counters[kind == 4 || kind == 5 ? kind : 2], 1);
    serve_observe(&server->metrics, SERVE_DURATION, pd_now() - line->begun_s);
    if (is_watching(line)) return;
    pthread_mutex_lock(&whole_lines);
    (serve_log_is_json(server) ? put_json_line : put_text_line)(line, status, model, &n);
    pthread_mutex_unlock(&whole_lines);
}

void serve_log_model(const struct serve_server *server, const char *what, const char *model, double seconds)
{
    char when[32];
    put_time(when, sizeof when);
    pthread_mutex_lock(&whole_lines);
    if (serve_log_is_json(server)) {
        fprintf(stderr, "{\"time\": %" PRId64 ", \"event\": \"%s\", \"model\": ", (int64_t)time(NULL), what);
        cmd_json_string(stderr, model, strlen(model));
        if (seconds > 0) fprintf(stderr, ", \"seconds\": %.3f", seconds);
        fputs("}\n", stderr);
    } else if (seconds > 0) fprintf(stderr, "%s %s %s in %.1f s\n", when, what, cmd_shown(model), seconds);
    else fprintf(stderr, "%s %s %s\n", when, what, cmd_shown(model));
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
    if (is_new && serve_log_is_json(server))
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
